// The server's JSON under /api/v1, its problem documents, and its event stream.

const ROOT = "/api/v1";

/** What the server refused or could not do, as RFC 9457 says it. */
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `the server answered ${status}`);
    this.status = status;
    this.title = document.title || "";
    this.type = document.type || "";
    this.document = document;
  }
}

let session = null;

export async function loadSession() {
  session = await get("/session");
  return session;
}

export function currentSession() {
  return session ?? {};
}

export async function get(path, { query, signal } = {}) {
  return request("GET", path + encodeQuery(query), undefined, signal);
}

export async function post(path, body = {}, { signal } = {}) {
  if (!session) await loadSession();
  try {
    return await request("POST", path, body, signal);
  } catch (error) {
    // A server that was started again has a new session: take its token and try once more.
    if (!(error instanceof Problem) || error.status !== 403) throw error;
    const before = session.csrfToken;
    if ((await loadSession()).csrfToken === before) throw error;
    return request("POST", path, body, signal);
  }
}

async function request(method, path, body, signal) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    headers["X-CSRF-Token"] = session.csrfToken;
  }
  let answer;
  try {
    answer = await fetch(ROOT + path, {
      method,
      headers,
      signal,
      credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "Unreachable", detail: "Zuno's server does not answer. Is `zuno web` still running?" });
  }
  const document = await readJson(answer);
  if (!answer.ok) throw new Problem(answer.status, document ?? {});
  return document;
}

async function readJson(answer) {
  if (answer.status === 204) return null;
  try {
    return await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (answer.ok) throw new Problem(0, { title: "Unreadable", detail: "The answer of Zuno's server broke off; it is asked again." });
    return null;
  }
}

function encodeQuery(query) {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

/** The address of a document, for links that show where a number came from. */
export function documentAddress(path) {
  return ROOT + path;
}

/** One connection for the whole page. The browser resumes it by the id of the last event it saw. */
export class EventStream {
  constructor() {
    this.listeners = new Map();
    this.watchers = new Set();
    this.state = "connecting";
    this.source = null;
    this.delay = 1000;
    this.lastId = "";
    this.returns = new Set();
    addEventListener("pagehide", () => this.source?.close());
    this.on("entry", () => {}); // every kept event carries its id there
  }

  open() {
    this.source = new EventSource(`${ROOT}/events${encodeQuery({ after: this.lastId })}`);
    this.source.onopen = () => {
      this.delay = 1000;
      const back = this.state === "lost";
      this.setState("live");
      if (back) for (const action of this.returns) action();
    };
    this.source.onerror = () => {
      this.setState("lost");
      if (this.source.readyState === EventSource.CLOSED) this.reopen();
    };
    for (const type of this.listeners.keys()) this.attach(type);
  }

  /** The browser gives up after an answer that is no stream: too many viewers, a refused session, an id of another home. */
  async reopen() {
    await new Promise((resolve) => setTimeout(resolve, this.delay));
    this.delay = Math.min(this.delay * 2, 30000);
    try {
      await loadSession();
      const stream = new AbortController();
      const answer = await fetch(`${ROOT}/events${encodeQuery({ after: this.lastId })}`, { signal: stream.signal });
      stream.abort();
      if (answer.status === 409) this.lastId = "";
    } catch { /* not there yet, or not for this browser: asked again */ }
    this.open();
  }

  /** Call `action()` when a lost connection is there again; the answer stops it. */
  onReturn(action) {
    this.returns.add(action);
    return () => this.returns.delete(action);
  }

  /** Call `listener(data, event)` for events of a type; the answer stops it. */
  on(type, listener) {
    const known = this.listeners.has(type);
    if (!known) this.listeners.set(type, new Set());
    this.listeners.get(type).add(listener);
    if (!known && this.source) this.attach(type);
    return () => this.listeners.get(type)?.delete(listener);
  }

  attach(type) {
    this.source.addEventListener(type, (event) => {
      if (event.lastEventId) this.lastId = event.lastEventId;
      let data;
      try {
        data = JSON.parse(event.data);
      } catch {
        return;
      }
      for (const listener of this.listeners.get(type) ?? []) listener(data, event);
    });
  }

  watchState(watcher) {
    this.watchers.add(watcher);
    watcher(this.state);
    return () => this.watchers.delete(watcher);
  }

  setState(state) {
    if (state === this.state) return;
    this.state = state;
    for (const watcher of this.watchers) watcher(state);
  }
}
