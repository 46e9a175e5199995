// Elements are made of names and texts only: what comes from requests or from model servers never
// becomes markup. The page's policy (Trusted Types) makes the browser refuse the other way.

// h makes an element. Of props, on* are listeners, and all others attributes; children are elements
// and texts.
export function h(name, props, ...children) {
  const el = document.createElement(name);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (key.startsWith('on')) el.addEventListener(key.slice(2), value);
    else if (value === true) el.setAttribute(key, '');
    else if (value !== false && value !== undefined && value !== null) el.setAttribute(key, value);
  }
  el.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false));
  return el;
}

export const pill = (text, kind = '') => h('span', { class: `pill ${kind}` }, text);

// facts is a list of terms; those without a value are left out.
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== null && value !== '');
  return h('dl', {}, shown.map(([term, value]) => [h('dt', {}, term), h('dd', {}, value)]));
}

// table makes a table; columns are [heading, class].
export function table(caption, columns, rows) {
  return h('div', { class: 'scroll' }, h('table', {},
    h('caption', {}, h('span', {}, caption)),
    h('thead', {}, h('tr', {}, columns.map(([text, kind]) => h('th', { scope: 'col', class: kind }, text)))),
    h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((cell, i) =>
      i === 0 ? h('th', { scope: 'row', class: columns[i][1] }, cell) : h('td', { class: columns[i][1] }, cell)))))));
}

export const number = (n) => new Intl.NumberFormat('en').format(n);
export const tokens = (n) => (n >= 10000 ? new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(n) : number(n));
export const ms = (n) => (n === undefined ? '' : n >= 10000 ? `${(n / 1000).toFixed(1)} s` : n >= 100 ? `${n.toFixed(0)} ms` : `${n.toFixed(1)} ms`);
export const usd = (n) => (n === undefined || n === null ? '' : n === 0 ? '$0' : n >= 0.01 ? `$${n.toFixed(n >= 1 ? 2 : 4)}` : `$${new Intl.NumberFormat('en', { minimumSignificantDigits: 3, maximumSignificantDigits: 3 }).format(n)}`);
export const percent = (x) => `${(100 * x).toFixed(x > 0 && x < 0.1 ? 1 : 0)} %`;
export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return `${i ? n.toFixed(1) : n} ${units[i]}`;
}
