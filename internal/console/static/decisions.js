// The stream of decisions, and one of them opened.
import { send, get, lines } from './api.js';
import { h, pill, facts, table, ms, usd, tokens, number } from './dom.js';

export const title = 'Decisions';

const most = 300; // rows that are shown
const kinds = { true: 'good', false: '', unknown: 'warn', skipped: 'quiet', not_reached: 'quiet' };
const words = { true: 'true', false: 'false', unknown: 'unknown', skipped: 'not looked at', not_reached: 'not reached' };

let page; // what turn needs of the page that is shown

export async function show(main, signal, id) {
  const body = h('tbody');
  const note = h('p', { class: 'quiet', role: 'status' }, 'No requests yet. Send one from the playground or from any client.');
  const filter = h('input', { id: 'filter', type: 'search', autocomplete: 'off', oninput: refilter });
  const pause = h('button', { type: 'button', 'aria-pressed': 'false', onclick: toggle }, 'Pause');
  const split = h('div', { class: 'split' });
  const columns = [['Time', ''], ['Route', ''], ['Model', ''], ['Status', ''], ['Signals', 'wide'], ['Decision time', 'num'], ['Took', 'num'], ['Cost', 'num wide']];
  const list = h('section', { class: 'card' }, h('div', { class: 'scroll' }, h('table', {},
    h('caption', {}, h('span', {}, 'Newest first. Open one to see why it was routed that way.')),
    h('thead', {}, h('tr', {}, columns.map(([text, kind]) => h('th', { scope: 'col', class: kind }, text)))), body)), note);
  split.append(list);
  main.append(h('div', { class: 'row' }, h('h1', {}, title),
    h('span', { class: 'row inline' }, h('label', { for: 'filter' }, 'Show only'), filter), pause), split);
  let paused = false, waiting = [], after = 0;
  page = { split, body, signal };
  if (id) turn(id);

  function toggle() {
    paused = !paused;
    pause.setAttribute('aria-pressed', String(paused));
    pause.textContent = paused ? 'Resume' : 'Pause';
    if (!paused) { add(waiting); waiting = []; }
  }
  function refilter() {
    const wanted = filter.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
  function add(decisions) {
    for (const s of decisions) body.prepend(rowOf(s));
    while (body.rows.length > most) body.lastChild.remove();
    if (filter.value) refilter();
    select();
  }

  while (!signal.aborted) { // a stream that breaks goes on where it was
    try {
      const response = await send(`api/live?after=${after}`, { signal });
      if (!response.ok) throw new Error(`status ${response.status}`);
      for await (const line of lines(response)) {
        const { decisions, skipped } = JSON.parse(line);
        if (decisions.length) after = decisions.at(-1).seq;
        if (paused) waiting = waiting.concat(decisions).slice(-most);
        else add(decisions);
        const behind = skipped ? `${number(skipped)} more were made than a page can show. ` : '';
        note.textContent = behind + (paused && waiting.length ? `${number(waiting.length)} wait behind the pause.` : '');
        if (!body.rows.length && !waiting.length) note.textContent = 'No requests yet. Send one from the playground or from any client.';
      }
    } catch (problem) {
      if (signal.aborted) return;
      note.textContent = `The stream of decisions was interrupted (${problem.message}); reconnecting.`;
    }
    after = 0; // the process may be another one
    await new Promise((next) => setTimeout(next, 1000));
    if (!signal.aborted) body.replaceChildren();
  }
}

function verdict(d) {
  const kind = d.status >= 500 ? 'bad' : d.status >= 400 ? 'warn' : 'good';
  return pill(String(d.status), kind);
}

function target(d) {
  if (d.cache === 'exact' || d.cache === 'semantic') return `${d.model ?? ''} (cache)`;
  return d.model || { block: 'declined', answer: 'fixed answer' }[d.action.verb] || 'no answer';
}

// telling are the signals that a person looks for: what was found.
function telling(d) {
  const out = [];
  for (const [name, s] of Object.entries(d.signals).sort()) {
    const attack = name === 'jailbreak' || name === 'injection';
    if (s.state !== 'evaluated') out.push([`${name} unknown`, 'warn']);
    else if (attack) { if (s.score >= 0.1) out.push([`${name} ${s.score.toFixed(2)}`, s.score >= 0.5 ? 'bad' : '']); }
    else if (s.label) out.push([`${name} ${s.label}`, '']);
    else if ((name === 'keyword' || name === 'pii') && s.labels?.length) out.push([`${name} ${s.labels.join(', ')}`, name === 'pii' ? 'warn' : '']);
  }
  if (d.guard?.failed) out.push([`guard ${d.guard.failed} failed`, 'bad']);
  if (d.conversation && d.conversation.state !== 'new') out.push([`conversation ${d.conversation.state}`, '']);
  return out.map(([text, kind]) => h('span', { class: `chip ${kind}` }, text));
}

function rowOf(s) {
  const d = s.decision;
  const time = new Date(d.time).toLocaleTimeString('en-GB');
  const go = () => { location.hash = `decisions/${encodeURIComponent(d.id)}`; };
  return h('tr', { class: 'pick', 'data-id': d.id, onclick: go },
    h('td', {}, h('button', { type: 'button', class: 'link mono', 'aria-label': `Open the decision of ${time}, route ${d.route}` }, time)),
    h('td', { class: 'wrap' }, d.route || 'default'), h('td', { class: 'wrap' }, target(d)), h('td', {}, verdict(d)),
    h('td', { class: 'wide' }, telling(d)), h('td', { class: 'num' }, ms(d.decide_ms)), h('td', { class: 'num' }, ms(s.took_ms)),
    h('td', { class: 'num wide' }, usd(s.cost_usd)));
}

function select() {
  for (const row of page.body.rows) row.setAttribute('aria-selected', String(row.dataset.id === page.id));
}

// turn opens a decision beside the list, or closes it.
export async function turn(id) {
  const { split, signal } = page;
  page.id = id ? decodeURIComponent(id) : '';
  split.querySelector('aside')?.remove();
  split.classList.toggle('open', Boolean(id));
  select();
  if (!id) return;
  const close = h('button', { type: 'button', onclick: () => { location.hash = 'decisions'; } }, 'Close');
  const body = h('div', {}, h('p', { class: 'quiet' }, 'Reading…'));
  const heading = h('h2', { tabindex: '-1' }, 'Decision');
  const aside = h('aside', { class: 'card', 'aria-label': 'Decision', onkeydown: (e) => { if (e.key === 'Escape') close.click(); } },
    h('div', { class: 'row' }, heading, close), body);
  split.append(aside);
  heading.focus();
  try {
    const s = await get(`api/decisions/${id}`, { signal });
    body.replaceChildren(...explained(s));
  } catch (problem) {
    body.replaceChildren(h('p', { class: 'problem', role: 'alert' }, problem.message));
  }
}

// explained is all that is known of a decision.
export function explained(s) {
  const d = s.decision;
  const from = d.request;
  const parts = [
    facts([
      ['Route', h('strong', {}, d.route || 'default')], ['Because', outcomes[d.outcome] ?? d.outcome],
      ['Model', target(d)], ['First choice', d.chosen && d.chosen !== d.model ? d.chosen : ''], ['Endpoint', d.endpoint], ['Status', verdict(d)], ['Error', d.error],
      ['Message', s.message],
      ['Asked for', from.model], ['Tenant', from.tenant], ['Role', from.role],
      ['Prompt', `about ${tokens(from.tokens)} tokens${from.context_tokens ? ` and ${tokens(from.context_tokens)} of contexts` : ''}`],
      ['Contexts', from.contexts?.join(', ')], ['Brings', from.features?.join(', ')],
      ['Request', h('code', {}, d.id)],
    ]),
    h('h3', {}, 'Evaluation of the rules'), routesOf(s.routes ?? [], d),
    h('h3', {}, 'Signals'), signalsOf(s.signals ?? {}),
    h('h3', {}, 'Parameters'),
    facts([
      ['Reasoning', d.reasoning || (d.endpoint ? 'model default' : d.action.reasoning || 'set by the client')],
      ['Token limit', d.max_tokens ? number(d.max_tokens) : d.action.max_tokens || 'set by the client'],
      ['System prompt', d.action.prompt ? `${d.action.prompt} (${d.action.prompt_mode})` : 'set by the client'],
      ['Candidates', d.action.models?.map((m) => m.name).join(', ')], ['Cache', d.cache],
      ['Guard', d.guard ? `${d.guard.mode}: ${d.guard.verdict}, ${d.guard.failed ?? 0} of ${d.guard.claims} claims failed` : d.action.guard],
      ['Placed by', d.placed ? `${d.placed.by}${d.placed.home ? ', at its home' : ''}${d.placed.predicted_tokens ? `, ${tokens(d.placed.predicted_tokens)} tokens expected there` : ''}` : ''],
      ['Conversation', d.conversation ? [d.conversation.state, d.conversation.reason].filter(Boolean).join(': ') : ''],
      ['Escalation', d.escalation && escalated(d.escalation)], ['Canary arm', d.arm], ['Budget', d.budget],
      ['Mirror', d.mirror && [d.mirror.model, d.mirror.result, d.mirror.cost_usd && usd(d.mirror.cost_usd)].filter(Boolean).join(', ')],
    ]),
    h('h3', {}, 'Time and cost'),
    facts([
      ['Decision time', `${ms(d.decide_ms)}, of which ${ms(s.classify_ms)} for signals`], ['First byte', s.first_ms ? ms(s.first_ms) : ''],
      ['Total time', ms(s.took_ms)],
      ['Tokens', d.tokens ? `${tokens(d.tokens.prompt)} in${d.tokens.cached ? ` (${tokens(d.tokens.cached)} cached)` : ''}, ${tokens(d.tokens.completion)} out` : ''],
      ['Cost', s.cost_usd === undefined ? '' : `${usd(s.cost_usd)}; ${usd(s.baseline_usd)} with the most expensive model`],
    ]),
  ];
  if (d.prompt) parts.push(h('h3', {}, 'Last user message'), h('pre', {}, d.prompt.last_user));
  parts.push(h('details', {}, h('summary', {}, 'As JSON'), h('pre', {}, JSON.stringify(s, null, 2))));
  return parts;
}

// escalated tells what became of answers that were judged, and who gave those that nobody got.
const escalated = (x) => [[x.result, x.reason].filter(Boolean).join(': '),
  ...(x.from ?? []).map((t) => `${t.model} thrown away for ${t.reason}`)].join('; ');

const outcomes = {
  matched: 'its condition is true', default: 'no route matched', fail_closed: 'a signal is unknown, and the route does not allow that',
  unavailable: 'a required signal is unknown',
};

function signalsOf(signals) {
  const names = Object.keys(signals).sort((a, b) => (signals[a].state === 'skipped') - (signals[b].state === 'skipped') || a.localeCompare(b));
  if (!names.length) return h('p', { class: 'quiet' }, 'The rules read no signals.');
  return table('Signals that the rules use', [['Signal', ''], ['Value', 'wrap'], ['Score', 'num'], ['Time', 'num'], ['Reason', 'wrap']], names.map((name) => {
    const s = signals[name];
    const value = s.state === 'evaluated' ? s.value || s.labels?.join(', ') || (s.nearest ? `none, nearest ${s.nearest}` : 'none') : pill(s.state === 'skipped' ? 'not computed' : s.state, kinds[s.state]);
    return [name, value, s.score === undefined ? '' : s.score.toFixed(3), s.state === 'skipped' ? '' : ms(s.ms), [s.reason, s.partial && 'partial'].filter(Boolean).join('; ')];
  }));
}

function routesOf(routes, d) {
  const items = routes.map((r) => {
    const taken = r.name === d.route;
    return h('li', { class: `route ${taken ? 'taken' : ''}` },
      pill(words[r.value], `mark ${kinds[r.value]}`), h('strong', {}, r.name), taken && ' — taken', r.tree && h('ul', {}, node(r.tree)));
  });
  if (!routes.some((r) => r.name === d.route)) items.push(h('li', { class: 'route taken' }, h('strong', {}, d.route || 'default'), ' — taken'));
  return h('ul', { class: 'tree' }, items);
}

function node(n) {
  if (n.op) {
    return h('li', {}, pill(words[n.value], `mark ${kinds[n.value]}`), h('span', { class: 'op' }, `${n.op} of`), h('ul', {}, n.members.map(node)));
  }
  const v = n.leaf;
  const why = [
    v.found && `found ${v.found}`, v.score !== undefined && `score ${v.score.toFixed(3)}`, v.threshold !== undefined && `threshold ${v.threshold}`, v.reason,
  ].filter(Boolean).join(', ');
  return h('li', {}, pill(words[n.value], `mark ${kinds[n.value]}`), h('code', {}, v.leaf), why && h('span', { class: 'quiet' }, ` ${why}`));
}
