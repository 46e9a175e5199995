// A prompt, sent as a client would send it, and what became of it.
import { send, get, lines } from './api.js';
import { h, facts, pill } from './dom.js';
import { explained } from './decisions.js';

export const title = 'Playground';

let marker = ''; // what the guard puts behind claims that failed
document.addEventListener('overview', ({ detail }) => { marker = detail.guard_marker ?? ''; });

export function show(main, signal) {
  const field = (id, label, hint, input) => {
    input.id = id;
    return [h('label', { for: id }, label, hint && h('span', { class: 'quiet' }, ` ${hint}`)), input];
  };
  const prompt = h('textarea', { rows: 5, required: true, spellcheck: 'false' });
  const system = h('textarea', { rows: 2, spellcheck: 'false' });
  const facts_ = h('textarea', { rows: 3, spellcheck: 'false' });
  const model = h('input', { value: 'auto', autocomplete: 'off', spellcheck: 'false' });
  const guard = h('select', {}, ['', 'observe', 'annotate', 'hold', 'terminate'].map((mode) => h('option', { value: mode }, mode || 'set by the route')));
  const key = h('input', { type: 'password', autocomplete: 'off', spellcheck: 'false', value: sessionStorage.getItem('api-key') ?? '' });
  const go = h('button', { type: 'submit', class: 'primary' }, 'Send');
  const stop = h('button', { type: 'button', disabled: true }, 'Stop');
  const answer = h('div', { class: 'answer', 'aria-live': 'polite', 'aria-label': 'Answer' });
  const claims = h('div');
  const sent = h('div');
  const why = h('div', {}, h('p', { class: 'quiet' }, 'Signals, parameters and the evaluation of the rules appear when the response has ended.'));
  const form = h('form', { class: 'card', onsubmit: run },
    field('prompt', 'Prompt', '(Ctrl + Enter sends it)', prompt),
    field('facts', 'Facts', 'to check the response against, one per line', facts_),
    h('div', { class: 'fields' }, h('div', {}, field('model', 'Model', '', model)), h('div', {}, field('guard', 'Guard', '', guard)),
      h('div', {}, field('key', 'API key', '(if needed)', key))),
    h('details', {}, h('summary', {}, 'System prompt'), field('system', 'System prompt', '', system)),
    h('p', { class: 'row' }, go, stop));
  main.append(h('h1', {}, title), h('div', { class: 'split even' },
    h('div', {}, form, h('section', { class: 'card' }, h('h2', {}, 'Answer'), answer, claims)),
    h('section', { class: 'card' }, h('h2', {}, 'What happened'), sent, why)));
  prompt.addEventListener('keydown', (e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) form.requestSubmit(); });

  async function run(event) {
    event.preventDefault();
    const cut = new AbortController();
    signal.addEventListener('abort', () => cut.abort());
    stop.onclick = () => cut.abort();
    go.disabled = true;
    stop.disabled = false;
    for (const el of [answer, claims, sent, why]) el.replaceChildren();
    sessionStorage.setItem('api-key', key.value);
    let id;
    try {
      const response = await send('api/ask', {
        method: 'POST', signal: cut.signal, body: JSON.stringify(bodyOf()),
        headers: { 'Content-Type': 'application/json', ...(key.value && { 'X-Signalbox-Console-Key': key.value }) },
      });
      id = response.headers.get('x-request-id');
      sent.append(headersOf(response));
      if (response.ok) await read(response);
      else {
        const { error } = await response.json();
        answer.append(h('p', { class: 'problem', role: 'alert' }, `${error.message} (${error.code ?? error.type})`));
      }
    } catch (problem) {
      answer.append(h('p', { class: 'problem', role: 'alert' }, cut.signal.aborted ? 'Stopped.' : problem.message));
    }
    go.disabled = false;
    stop.disabled = true;
    if (!id || signal.aborted) return;
    try {
      why.replaceChildren(...explained(await get(`api/decisions/${encodeURIComponent(id)}`, { signal })));
      sent.replaceChildren(); // the decision tells all of it
    } catch (problem) {
      why.replaceChildren(h('p', { class: 'quiet' }, problem.message));
    }
  }

  function bodyOf() {
    const known = facts_.value.split('\n').map((f) => f.trim()).filter(Boolean);
    const extras = { ...(known.length && { facts: known }), ...(guard.value && { guard: guard.value }) };
    const messages = [{ role: 'user', content: prompt.value }];
    if (system.value.trim()) messages.unshift({ role: 'system', content: system.value });
    return { model: model.value, stream: true, stream_options: { include_usage: true }, messages, ...(Object.keys(extras).length && { signalbox: extras }) };
  }

  async function read(response) {
    let text = '', thought = '', summary;
    const thinking = h('span', { class: 'reasoning', hidden: true });
    const said = h('span');
    answer.append(thinking, said);
    for await (const line of lines(response)) {
      if (!line.startsWith('data: ') || line === 'data: [DONE]') continue;
      const event = JSON.parse(line.slice(6));
      if (event.error) throw new Error(event.error.message);
      summary = event.x_signalbox?.guard?.failed ? event.x_signalbox.guard : summary;
      const choice = event.choices?.[0];
      thought += choice?.delta?.reasoning_content ?? choice?.delta?.reasoning ?? '';
      text += choice?.delta?.content ?? '';
      thinking.hidden = !thought;
      thinking.textContent = thought;
      said.textContent = text;
      if (choice?.finish_reason === 'content_filter') claims.append(h('p', {}, pill('ended by the guard', 'bad')));
    }
    if (summary) marks(said, text, summary);
  }

  // marks puts the guard's verdicts on the words. Offsets are code points of the text without markers.
  function marks(into, shown, summary) {
    const plain = [...(marker ? shown.replaceAll(marker, '') : shown)];
    const spans = summary.failed.filter((c) => c.text && plain.slice(c.start, c.end).join('') === c.text).sort((a, b) => a.start - b.start);
    if (spans.length) {
      let at = 0;
      into.replaceChildren();
      for (const c of spans) {
        if (c.start < at) continue;
        const words = [...c.text];
        const [from, to] = c.span ?? [0, 0];
        into.append(plain.slice(at, c.start).join(''), h('mark', { class: c.verdict, title: told(c) },
          words.slice(0, from).join(''), h('strong', {}, words.slice(from, to).join('')), words.slice(to).join('')));
        at = c.end;
      }
      into.append(plain.slice(at).join(''));
    }
    claims.append(h('h3', {}, `Guard, ${summary.mode}: ${summary.verdict}`), h('p', { class: 'quiet' }, `${summary.failed.length} of ${summary.claims} claims failed.`),
      h('ul', {}, summary.failed.map((c) => h('li', { class: 'wrap' }, c.text ? `“${c.text}” ` : 'withheld ', h('span', { class: 'quiet' }, told(c))))));
  }

  const told = (c) => `${c.verdict}, supported to ${Number(c.score).toFixed(2)}${c.fact === undefined ? '' : `, by fact ${Number.isInteger(c.fact) ? c.fact + 1 : c.fact}`}`;

  function headersOf(response) {
    const value = (name) => response.headers.get(`x-signalbox-${name}`);
    return facts([
      ['Route', value('route')], ['Model', value('model')], ['Endpoint', value('endpoint')], ['Domain', value('domain')],
      ['Reasoning', value('reasoning')], ['Guard', value('guard')], ['Cache', value('cache')], ['Degraded', value('degraded')],
    ]);
  }
}
