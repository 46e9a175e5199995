// What requests are served by, what a text would change, and reading the file again.
import { send, get } from './api.js';
import { h, facts, pill } from './dom.js';

export const title = 'Configuration';

export async function show(main, signal) {
  main.append(h('h1', {}, title));
  const top = h('section', { class: 'card' });
  const disk = h('div');
  const text = h('textarea', { id: 'text', rows: 26, spellcheck: 'false', autocomplete: 'off' });
  const result = h('div', { 'aria-live': 'polite' });
  const check = h('button', { type: 'button', class: 'primary', onclick: preview }, 'Check and compare');
  const reset = h('button', { type: 'button', onclick: () => { text.value = running.text; result.replaceChildren(); } }, 'Reset to the active configuration');
  let running;
  main.append(top, disk, h('section', { class: 'card' }, h('h2', {}, 'Try a change'),
    h('p', { class: 'quiet' }, 'Nothing is saved. Edit, check the problems and the diff, then copy the text to the file.'),
    h('div', { class: 'split even' },
      h('div', {}, h('label', { for: 'text' }, 'Active configuration'), text, h('p', { class: 'row' }, check, reset)), result)));
  await read();
  text.value = running.text;

  async function read() {
    running = await get('api/configuration', { signal });
    const told = h('p', { role: 'status' });
    const reload = h('button', {
      type: 'button', disabled: !running.file, onclick: async () => {
        reload.disabled = true;
        const response = await send('../-/reload', { method: 'POST', signal });
        if (response.ok) await read();
        else { told.className = 'problem'; told.textContent = (await response.text()).trim(); reload.disabled = false; }
      },
    }, 'Reload the file');
    top.replaceChildren(facts([
      ['File', running.file ? h('code', {}, running.file) : 'none (built in)'], ['Generation', String(running.generation)],
      ['Last reload', running.problem ? pill('failed', 'bad') : running.generation > 1 ? pill('succeeded', 'good') : 'none since the start'], ['', running.problem && h('pre', { class: 'problem' }, running.problem)],
      ['Pending a restart', running.restart && h('span', {}, running.restart.map((name, i) => [i ? ', ' : '', h('code', {}, name)]))],
      ['Warnings', running.warnings.length ? h('ul', {}, running.warnings.map(noteOf)) : 'none'],
    ]), h('p', { class: 'row' }, reload, told));
    disk.replaceChildren(...(running.disk
      ? [h('section', { class: 'card' }, h('h2', {}, 'The file differs from the active configuration'), ...drawn(running.disk, 'It is valid; a reload would apply it.'))] : []));
  }

  async function preview() {
    check.disabled = true;
    try {
      const p = await get('api/preview', { method: 'POST', body: text.value, signal });
      result.replaceChildren(h('h2', {}, 'Changes'), ...drawn(p, 'It is valid.'));
    } catch (problem) {
      result.replaceChildren(h('p', { class: 'problem', role: 'alert' }, problem.message));
    }
    check.disabled = false;
  }
}

const noteOf = (n) => h('li', { class: 'wrap' }, pill(n.warning ? 'warning' : 'problem', n.warning ? 'warn' : 'bad'), ' ',
  n.line ? h('code', {}, `${n.line}:${n.column} `) : '', n.path && h('code', {}, `${n.path}: `), n.text);

function drawn(p, good) {
  const out = [h('p', {}, p.valid ? pill(good, 'good') : pill('It is invalid; the active configuration would stay.', 'bad'))];
  if (p.problems.length) out.push(h('ul', {}, p.problems.map(noteOf)));
  if (p.restart.length) out.push(h('p', {}, 'Needs a restart: ', p.restart.map((name, i) => [i ? ', ' : '', h('code', {}, name)])));
  if (!p.diff) return [...out, h('p', { class: 'quiet' }, 'No difference.')];
  const rows = p.diff.split('\n').slice(3).filter((line, i, all) => line || i < all.length - 1);
  const kind = { '+': 'add', '-': 'del', '@': 'at' };
  return [...out, h('pre', { class: 'diff', tabindex: '0', 'aria-label': 'Difference' }, rows.map((line) => h('span', { class: kind[line[0]] }, line || ' ')))];
}
