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
let account = null;
let asking = null;
let notedSession = () => {};
let notedSignOut = () => {};

/** `changed(session, before)` at every look at the session, `signedOut()` at the first refusal of the login. */
export function watchSession(changed, signedOut) {
  notedSession = changed;
  notedSignOut = signedOut;
}

/** Whoever asks while it is on its way gets the same answer. */
export function loadSession() {
  asking ??= askSession().finally(() => { asking = null; });
  return asking;
}

async function askSession() {
  const before = session;
  session = await get("/session");
  if (before && !isSameDesk(before, session)) account = null;
  notedSession(session, before);
  return session;
}

/** Whether two sessions are of one home, chain and mode: what a tab shows of the one holds for the other. */
export function isSameDesk(before, after) {
  return ["home", "chain", "mode", "trading", "liquidity", "accounts"].every((key) => JSON.stringify(before[key]) === JSON.stringify(after[key]));
}

/** The one of the home's accounts, `{name, mode}`, that was chosen; else the first, which is live where money may be traded. */
export function currentAccount() {
  const { accounts } = currentSession();
  return accounts.find((item) => item.name === account) ?? accounts[0];
}

export function chooseAccount(name) {
  account = name;
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
    const before = session;
    await loadSession();
    if (session.csrfToken === before.csrfToken) throw error;
    if (!isSameDesk(before, session)) throw new Problem(409, { title: "Changed", detail: "Zuno's server was started again with another home, chain or mode; nothing was done. Look again first." });
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
  if (answer.status === 401) notedSignOut();
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

/**
 * One connection for a tab that is looked at: a browser has six for one server, so a hidden tab gives its own back.
 * It is resumed by the id of the last event.
 */
export class EventStream {
  constructor() {
    this.listeners = new Map();
    this.watchers = new Set();
    this.state = "connecting";
    this.source = null;
    this.delay = 1000;
    this.waiting = false;
    this.lastId = "";
    this.returns = new Set();
    this.ended = false;
    addEventListener("pagehide", () => this.source?.close());
    addEventListener("pageshow", (event) => { if (event.persisted) this.resume(); });
    document.addEventListener("visibilitychange", () => (document.hidden ? this.rest() : this.resume()));
    this.on("start", () => {}); // the id of the newest entry
    this.on("entry", () => {}); // every kept event carries its id there
  }

  rest() {
    if (!this.source) return;
    this.source.close();
    this.setState("lost");
  }

  resume() {
    if (this.source?.readyState === EventSource.CLOSED && !this.waiting) this.open();
  }

  /** For good: this browser is not signed in any more. */
  end() {
    this.ended = true;
    this.source?.close();
    this.setState("lost");
  }

  open() {
    if (this.ended) return;
    this.source = new EventSource(`${ROOT}/events${encodeQuery({ after: this.lastId })}`);
    const { source } = this;
    this.source.onopen = () => {
      this.delay = 1000;
      const back = this.state === "lost";
      this.setState("connected");
      if (back) for (const action of this.returns) action();
    };
    this.source.onerror = () => {
      this.setState("lost");
      if (source === this.source && source.readyState === EventSource.CLOSED && !this.waiting) this.reopen();
    };
    for (const type of this.listeners.keys()) this.attach(type);
  }

  /** The browser gives up after an answer that is no stream: too many viewers, a refused session, an id of another home. */
  async reopen() {
    this.waiting = true;
    await new Promise((resolve) => setTimeout(resolve, this.delay));
    this.delay = Math.min(this.delay * 2, 30000);
    try {
      await loadSession();
      const stream = new AbortController();
      const answer = await fetch(`${ROOT}/events${encodeQuery({ after: this.lastId })}`, { signal: stream.signal });
      stream.abort();
      if (answer.status === 409) this.lastId = "";
    } catch { /* not there yet: asked again */ }
    this.waiting = false;
    if (!document.hidden) this.open();
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
