// The frame: which page is shown, and the state of the process in the corner.
import { get } from './api.js';
import { h } from './dom.js';
import * as decisions from './decisions.js';
import * as playground from './playground.js';
import * as configuration from './configuration.js';
import { endpoints, memory, cost } from './status.js';

const pages = { decisions, playground, endpoints, memory, cost, configuration };
const main = document.getElementById('main');
const state = document.getElementById('state');
let leave; // ends what the page that is shown does
let shown;

// A page is { title, show(into, signal, argument) }; signal is aborted when it is left.
function open() {
  const [name, ...argument] = location.hash.slice(1).split('/');
  const page = pages[name] ?? pages.decisions;
  if (shown === page && page.turn) {
    page.turn(argument.join('/'));
    return;
  }
  leave?.abort();
  leave = new AbortController();
  shown = page;
  for (const link of document.querySelectorAll('nav a')) {
    if (pages[link.hash.slice(1)] === page) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = `${page.title} · signalbox`;
  main.replaceChildren();
  const { signal } = leave;
  Promise.resolve(page.show(main, signal, argument.join('/'))).catch((problem) => {
    if (!signal.aborted) main.prepend(h('p', { class: 'problem', role: 'alert' }, String(problem.message ?? problem)));
  });
}

function tell(text, kind) {
  if (state.textContent !== text) state.textContent = text;
  state.className = `pill ${kind}`;
}

async function watch() {
  for (;;) {
    if (document.hidden) await new Promise((next) => document.addEventListener('visibilitychange', next, { once: true }));
    try {
      const o = await get('api/overview');
      if (o.draining) tell('draining', 'warn');
      else if (!o.ready) tell('not ready', 'bad');
      else if (o.degraded.length) tell('ready, degraded', 'warn');
      else tell('ready', 'good');
      state.title = o.degraded.join('\n');
      document.dispatchEvent(new CustomEvent('overview', { detail: o }));
    } catch {
      tell('not reachable', 'bad');
    }
    await new Promise((next) => setTimeout(next, 2000));
  }
}

addEventListener('hashchange', open);
open();
watch();
