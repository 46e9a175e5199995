// Requests to this server, with the admin token where one was entered. It is kept for the tab.
const store = sessionStorage;

function headers(more) {
  const token = store.getItem('admin-token');
  return token ? { ...more, Authorization: `Bearer ${token}` } : { ...more };
}

// send makes a request. Where the server wants a token, it asks for one and tries again.
export async function send(path, options = {}) {
  for (;;) {
    const response = await fetch(path, { ...options, headers: headers(options.headers), credentials: 'omit' });
    if (response.status !== 403) return response;
    const why = await response.clone().text();
    if (!why.includes('admin_token')) return response;
    await askForToken(store.getItem('admin-token') ? 'The server rejected this token.' : '', options.signal);
  }
}

export async function get(path, options) {
  const response = await send(path, options);
  if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
  return response.json();
}

let asking;
function askForToken(problem, signal) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById('token');
    const input = document.getElementById('token-value');
    document.getElementById('token-problem').textContent = problem;
    input.value = '';
    const done = () => {
      if (!input.value) { dialog.showModal(); return; } // Escape: nothing can be shown without one
      store.setItem('admin-token', input.value);
      input.value = '';
      dialog.removeEventListener('close', done);
      asking = undefined;
      resolve();
    };
    dialog.addEventListener('close', done);
    if (!dialog.open) dialog.showModal();
  });
  return Promise.race([asking, new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))]);
}

// lines yields the lines of a response's body as they come.
export async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + value).split('\n');
    rest = parts.pop();
    yield* parts;
  }
  if (rest) yield rest;
}
