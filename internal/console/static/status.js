// The pages that show the state of the process, as the frame reads it every two seconds.
import { get } from './api.js';
import { h, pill, table, number, tokens, usd, bytes, percent } from './dom.js';

// live is a page that is drawn from each overview. below, where there is one, is a part under it
// that reads more: it gets the element to draw into, a signal that ends with the page, and the
// argument of the page, and returns what is to be called with each overview.
function live(title, draw, below) {
  let page; // what turn needs of the page that is shown
  const turn = (argument) => {
    const { part, signal } = page;
    page.read = below(part, signal, argument);
    page.read();
  };
  return {
    title,
    turn: below && turn,
    show(main, signal, argument) {
      const body = h('div', {}, h('p', { class: 'quiet' }, 'Reading…'));
      const part = h('div');
      main.append(h('h1', {}, title), body, part);
      if (below) {
        page = { part, signal };
        turn(argument);
        document.addEventListener('overview', () => page.read(), { signal });
      }
      let before;
      document.addEventListener('overview', ({ detail }) => {
        const text = JSON.stringify({ ...detail, now: 0 });
        if (text === before) return;
        before = text;
        body.replaceChildren(...[draw(detail)].flat(Infinity).filter(Boolean));
      }, { signal });
    },
  };
}

const states = { up: 'good', suspect: 'warn', resting: 'warn', asleep: 'warn', draining: 'warn', ejected: 'bad', down: 'bad' };

export const endpoints = live('Endpoints', (o) => [
  o.degraded.length > 0 && h('section', { class: 'card' }, h('h2', {}, 'Degraded: not working as configured'),
    h('ul', {}, o.degraded.map((text) => h('li', { class: 'wrap' }, text)))),
  h('section', { class: 'card' }, table(
    'Requests of this process, and of other clients where the model server reports them. Cached prefixes: the prompts that the server is expected to hold. Reused: the cached tokens that responses reported. Short prompts are not tracked. Open an endpoint to see which ones.',
    [['Endpoint', 'wrap'], ['Model', 'wrap'], ['State', ''], ['In flight', 'num'], ['Running', 'num'], ['Waiting', 'num'], ['Queued tokens', 'num'],
      ['Cached prefixes', 'num'], ['Reused', 'num'], ['Placed', 'num'], ['Away from home', 'num'], ['Restarts', 'num']],
    o.models.flatMap((m) => m.endpoints.map((e) => [
      e.prefix ? h('a', { href: `#endpoints/${encodeURIComponent(m.model)}/${encodeURIComponent(e.name)}` }, e.name) : e.name,
      m.model, pill(e.state, states[e.state]), number(e.inflight), number(e.running), number(e.waiting), tokens(e.queued_tokens),
      e.prefix ? `${tokens(e.prefix.tokens)} tokens` : 'not kept', e.prefix ? `${tokens(e.prefix.cached_tokens)} tokens` : '',
      e.prefix ? number(e.prefix.placed) : '', e.prefix ? number(e.prefix.away) : '', e.prefix ? number(e.prefix.restarts) : '',
    ])))),
  o.models.some((m) => m.queued) && h('section', { class: 'card' }, table('Requests waiting for an endpoint', [['Model', ''], ['Waiting', 'num']],
    o.models.filter((m) => m.queued).map((m) => [m.model, number(m.queued)]))),
], prefixes);

const sources = {
  contexts: 'stored contexts', session: 'a session', session_id: 'a session', claude_session: 'a session of a coding agent',
  prompt_cache_key: 'prompt_cache_key', previous_response: 'a previous response', prefix: 'the first 4 KiB of text',
};

const when = (time) => new Date(time).toLocaleTimeString('en-GB');
const decision = (id, time) => h('a', { class: 'mono', href: `#decisions/${encodeURIComponent(id)}`, 'aria-label': `Decision of ${when(time)}` }, when(time));

// filled reads a list with each overview and draws it where it has changed.
function filled(into, path, signal, draw) {
  let before;
  return async () => {
    try {
      const list = await get(path, { signal });
      const text = JSON.stringify(list);
      if (text === before || signal.aborted) return;
      before = text;
      into.replaceChildren(draw(list));
    } catch (problem) {
      if (!signal.aborted) into.replaceChildren(h('p', { class: 'problem', role: 'alert' }, problem.message));
    }
  };
}

// prefixes lists what one endpoint should have.
function prefixes(part, signal, argument) {
  part.replaceChildren();
  if (!argument) return () => {};
  const [model, endpoint] = argument.split('/').map(decodeURIComponent);
  const heading = h('h2', { tabindex: '-1' }, `Cached prefixes of ${endpoint}, ${model}`);
  const body = h('div');
  part.append(h('section', { class: 'card', id: 'prefixes' }, h('div', { class: 'row' }, heading,
    h('button', { type: 'button', onclick: () => { location.hash = 'endpoints'; } }, 'Close')), body));
  heading.focus();
  const path = `api/prefixes?model=${encodeURIComponent(model)}&endpoint=${encodeURIComponent(endpoint)}`;
  return filled(body, path, signal, (list) => (list.length === 0
    ? h('p', { class: 'quiet' }, 'No tracked prompt was answered here. Tracked prompts name a context or a session, or have 1,024 tokens or more.')
    : table('Grouped by what the prompts belong to, newest first, at most 64. The least recently used blocks are evicted first.',
      [['Belongs to', 'wrap'], ['Fingerprint', 'mono'], ['Last answered', ''], ['Prompt', 'num'], ['Requests', 'num'], ['Reused', 'num'], ['In the cache', '']],
      list.map((x) => [sources[x.by] ?? x.by, x.key, decision(x.id, x.last), `${tokens(x.tokens)} tokens`, number(x.requests),
        `${tokens(x.cached)} tokens`, x.held ? pill('expected', 'good') : pill('gone', '')]))));
}

// bar is as long as share, in [0,1].
function bar(share, kind = '') {
  if (!(share > 0)) return '';
  const el = h('div', { class: `bar ${kind}`, 'aria-hidden': 'true' });
  el.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return el;
}

const tiers = { hot: 'unpacked in RAM', l2: 'packed in RAM', l3: 'in Redis' };

export const memory = live('Memory', (o) => {
  const most = Math.max(1, ...o.contexts.map((t) => t.bytes));
  const talks = o.tally.conversations;
  const turns = Object.values(talks).reduce((a, b) => a + b, 0);
  const kinds = [['new', 'first turns, and turns of unknown conversations'],
    ['kept', 'answered by the model of the turn before'], ['moved', 'moved to another model']];
  return [
    h('section', { class: 'card' }, h('h2', {}, 'Contexts by tier'), o.contexts.length === 0
      ? h('p', { class: 'quiet' }, 'Contexts are disabled.')
      : [table('A context is counted in the slowest tier that holds a part of it.', [['Tier', ''], ['Where', ''], ['Contexts', 'num'], ['Size', 'num'], ['', 'bars']],
        o.contexts.map((t) => [t.name, tiers[t.name] ?? '', number(t.contexts), bytes(t.bytes), bar(t.bytes / most, 'own')])),
      h('p', { class: 'quiet' }, `Redis: ${o.redis}.`)]),
    h('section', { class: 'card' }, h('h2', {}, 'Conversations'), turns === 0
      ? h('p', { class: 'quiet' }, 'No request since the start belonged to a conversation that could be identified.')
      : table('Requests since the process started', [['Conversation', ''], ['Meaning', ''], ['Requests', 'num'], ['Share', 'num'], ['', 'bars']],
        kinds.map(([kind, meaning]) => {
          const n = talks[kind] ?? 0;
          return [kind, meaning, number(n), percent(n / turns), bar(n / turns, 'own')];
        }))),
  ];
}, conversations);

const reasons = {
  same: 'no other model is better', prefill: 'a move is not worth the prefill', tool_result: 'a tool result', server_state: 'only its server has the previous response', subject: 'the subject changed',
  figures: 'another model is better, cheaper or faster', rules: 'the rules took another route', escalated: 'the response was not good enough',
  unavailable: 'no endpoint was healthy', window: 'the context window is too small', not_permitted: 'the caller may not use it', canary: 'canary',
  budget: 'a budget is nearly used up',
};

// conversations lists those of more than one turn.
function conversations(part, signal) {
  const body = h('div');
  part.replaceChildren(h('section', { class: 'card', id: 'conversations' }, h('h2', {}, 'Conversations of more than one turn'), body));
  return filled(body, 'api/conversations', signal, (list) => (list.length === 0
    ? h('p', { class: 'quiet' }, 'None yet.')
    : table('Newest first, at most 128. Turns after the first stay with the previous model (kept) or move to another one.',
      [['Last turn', ''], ['Tenant', 'wrap'], ['Identified by', ''], ['Model', 'wrap'], ['Prompt', 'num'], ['Kept', 'num'], ['Moved', 'num'], ['Last move', 'wrap']],
      list.map((x) => [decision(x.id, x.last), x.tenant, x.named ? 'its name' : 'its turns', x.model, `${tokens(x.tokens)} tokens`, number(x.kept), number(x.moved),
        x.from ? [`${x.from} → ${x.to}`, h('span', { class: 'quiet' }, `: ${reasons[x.reason] ?? x.reason}`)] : '']))));
}

// limits names those that have refused requests, the one that refused most first.
function limits(by) {
  const all = Object.entries(by).sort((a, b) => b[1] - a[1]);
  return all.length === 1 ? `the limit on ${all[0][0]}` : `limits on ${all.map(([limit, n]) => `${limit} (${number(n)})`).join(' and ')}`;
}

export const cost = live('Cost', (o) => {
  const sum = (key) => o.tally.spent.reduce((a, s) => a + s[key], 0);
  const spent = sum('cost_usd'), baseline = sum('baseline_usd'), untold = sum('untold');
  const refused = Object.values(o.tally.refused).reduce((a, b) => a + b, 0);
  const most = Math.max(1e-12, ...o.tally.spent.map((s) => s.baseline_usd));
  const tile = (name, value, note) => h('div', { class: 'tile' }, h('span', { class: 'quiet' }, name), h('b', {}, value), h('span', { class: 'quiet' }, note));
  return [
    h('div', { class: 'tiles' },
      tile('Spent', usd(spent), untold > 0 ? 'from responses that reported their tokens' : 'since the process started'),
      tile('Most expensive model only', usd(baseline), o.dearest ? `if ${o.dearest} had answered ${untold > 0 ? 'the same' : 'everything'}` : 'no model has a price'),
      tile('Saved', baseline > 0 ? percent(1 - spent / baseline) : 'nothing yet', baseline > 0 ? usd(baseline - spent) : ''),
      tile('Requests', number(o.tally.decided), 'routed'),
      tile('Refused', number(refused), refused > 0 ? `over ${limits(o.tally.refused)}, before routing` : 'no request was over a limit of its caller'),
      tile('Unreported usage', number(untold), untold > 0 ? 'responses without token counts; not in the sums' : 'every response reported its tokens')),
    h('section', { class: 'card' }, h('h2', {}, 'By model'), o.tally.spent.length === 0
      ? h('p', { class: 'quiet' }, 'No requests yet.')
      : table('Upper bar: actual cost. Lower bar: the cost of the same tokens with the most expensive model. Unreported: responses without token counts, not in the sums.',
        [['Model', 'wrap'], ['Requests', 'num'], ['Unreported', 'num'], ['Prompt tokens', 'num'], ['Cached', 'num'], ['Completion tokens', 'num'], ['Cost', 'num'], ['Most expensive', 'num'], ['', 'bars']],
        o.tally.spent.map((s) => [s.model, number(s.requests), number(s.untold), tokens(s.prompt_tokens), tokens(s.cached_tokens), tokens(s.completion_tokens),
          usd(s.cost_usd), usd(s.baseline_usd), [bar(s.cost_usd / most, 'own'), bar(s.baseline_usd / most)]]))),
    h('section', { class: 'card' }, h('h2', {}, 'Requests by route'), table('Since the process started', [['Route', 'wrap'], ['Requests', 'num'], ['', 'bars']],
      Object.entries(o.tally.routes).sort((a, b) => b[1] - a[1]).map(([route, n]) => [route, number(n), bar(n / o.tally.decided, 'own')]))),
  ];
});
