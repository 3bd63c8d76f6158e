// The server's JSON under /api/v1, its problem documents, and its event stream.

/** The path that everything is under: behind a proxy it may be more than "/". */
export const BASE = new URL(".", import.meta.url).pathname;
const ROOT = `${BASE}api/v1`;

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

/** Where the header's secret lies: only pages of this very origin, port included, can read it; tabs share it. */
const SECRET = "zuno-session";
const LOGIN = "#login=";
let held = null; // where storage is forbidden: it holds until the page is closed

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

/** The one-time code of a login link, which leaves the address and the history at once; null where there is none. */
export function takeCode() {
  if (!location.hash.startsWith(LOGIN)) return null;
  const code = location.hash.slice(LOGIN.length);
  history.replaceState(null, "", "#/");
  return code;
}

/** A session of this browser's own for a code: its cookie is set by the answer, its header's secret is kept here. */
export async function logIn(code) {
  const answer = await ask(`${BASE}login`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) });
  const document = await readJson(answer);
  if (!answer.ok) throw new Problem(answer.status, document ?? {});
  held = document.secret;
  try {
    localStorage.setItem(SECRET, held);
  } catch { /* storage is forbidden */ }
}

function sessionHeader() {
  let secret = held;
  try {
    secret = localStorage.getItem(SECRET) ?? held;
  } catch { /* storage is forbidden */ }
  return secret ? { "X-Zuno-Session": secret } : {};
}

export async function get(path, { query, signal } = {}) {
  return request("GET", path + encodeQuery(query), undefined, signal);
}

/** `{view, document}`: the JSON, and what it says of itself in words (headline, urgent lines, facts in their order, acts); null where it says nothing. */
export async function read(path, { query, signal } = {}) {
  return request("GET", path + encodeQuery(query), undefined, signal, "application/vnd.zuno.document+json");
}

/** The answer as it was sent: a document with every digit, or a page. */
export async function getText(path, { signal } = {}) {
  const answer = await send(path, { signal });
  if (!answer.ok) throw new Problem(answer.status, (await readJson(answer)) ?? {});
  return answer.text();
}

const FACTOR = "urn:zuno:problem:factor";
const codes = new Map(); // codes of the second factor by the act they were typed for, while it is not done
let askCode = async () => null;

/** `ask(sentence)` brings the code that was typed, or null. */
export function useFactor(ask) {
  askCode = ask;
}

/** Post, and where the server wants a code of the second factor, ask for it; what is shown before an act keeps it. */
async function postWithCode(path, body, signal) {
  for (;;) {
    const code = codes.get(path);
    codes.delete(path);
    try {
      const answer = await request("POST", path, body, signal, undefined, code ? { "X-Zuno-Factor": code } : {});
      if (code && answer?.approvalHash && !body.word) codes.set(path, code);
      return answer;
    } catch (error) {
      if (code && error.status === 409) codes.set(path, code);
      if (error.type !== FACTOR) throw error;
      const typed = await askCode(error.message);
      if (!typed) throw error;
      codes.set(path, typed);
    }
  }
}

export async function post(path, body = {}, { signal } = {}) {
  try {
    return await postWithCode(path, body, signal);
  } finally {
    if (session && !session.mayAct) loadSession().catch(() => {}); // somebody may have let it act meanwhile
  }
}

async function request(method, path, body, signal, accept = "application/json", more = {}) {
  const headers = { Accept: accept, ...more, ...(body === undefined ? {} : { "Content-Type": "application/json" }) };
  const answer = await send(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  const document = await readJson(answer);
  if (!answer.ok) throw new Problem(answer.status, document ?? {});
  return document;
}

/** Ask the interface with this browser's login. */
async function send(path, { headers, ...options } = {}) {
  const answer = await ask(ROOT + path, { ...options, headers: { ...headers, ...sessionHeader() } });
  if (answer.status === 401) notedSignOut();
  return answer;
}

async function ask(address, options) {
  try {
    return await fetch(address, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "Unreachable", detail: "Zuno's server does not answer. Is `zuno web` still running?" });
  }
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

/** Where this page shows a document, for links that show where a number came from: the header is needed to read it. */
export function documentAddress(path) {
  return `#/document/${encodeURIComponent(path)}`;
}

/**
 * One connection for a tab that is looked at: a browser has six for one server, so a hidden tab gives its own back.
 * It is read by `fetch`, for an EventSource sends no header, and resumed by the id of the last event.
 */
export class EventStream {
  constructor() {
    this.listeners = new Map();
    this.watchers = new Set();
    this.state = "connecting";
    this.reading = null;
    this.waiting = null;
    this.retry = 1000;
    this.delay = 1000;
    this.lastId = "";
    this.returns = new Set();
    this.ended = false;
    addEventListener("pagehide", () => this.rest());
    addEventListener("pageshow", (event) => { if (event.persisted) this.open(); });
    document.addEventListener("visibilitychange", () => (document.hidden ? this.rest() : this.open()));
  }

  rest() {
    if (!this.reading) return;
    this.reading.abort();
    this.reading = null;
    this.setState("lost");
  }

  /** For good: this browser is not signed in any more. */
  end() {
    this.ended = true;
    this.rest();
    this.setState("lost");
  }

  /** Read events until they end, then again after a while; once at a time. */
  async open() {
    if (this.ended || this.reading || this.waiting || document.hidden) return;
    const reading = new AbortController();
    this.reading = reading;
    let delay = this.retry;
    try {
      const answer = await send("/events", { signal: reading.signal, cache: "no-store", headers: this.lastId ? { "Last-Event-ID": this.lastId } : {} });
      if (answer.ok) {
        this.connected();
        await this.read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
        delay = this.retry;
      } else {
        // Too many viewers, or an id of another home.
        reading.abort();
        if (answer.status === 409) this.lastId = "";
        delay = this.delay;
        this.delay = Math.min(this.delay * 2, 30000);
        await loadSession();
      }
    } catch { /* a lost connection: asked again */ }
    if (this.reading !== reading) return; // given back
    this.reading = null;
    this.setState("lost");
    this.waiting = setTimeout(() => {
      this.waiting = null;
      this.open();
    }, delay);
  }

  connected() {
    this.delay = this.retry;
    const back = this.state === "lost";
    this.setState("connected");
    if (back) for (const action of this.returns) action();
  }

  /** Lines of a stream as they are defined: `field: value`, an empty one ends an event, a colon begins a comment. */
  async read(reader) {
    let rest = "";
    let event = { type: "message", id: null, data: [] };
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line) {
          this.take(event, line);
        } else {
          this.tell(event);
          event = { type: "message", id: null, data: [] };
        }
      }
    }
  }

  take(event, line) {
    const [, name, value] = /^([^:]*)(?:: ?(.*))?$/.exec(line);
    if (name === "event") event.type = value;
    else if (name === "data") event.data.push(value ?? "");
    else if (name === "id") event.id = value ?? "";
    else if (name === "retry" && /^[0-9]+$/.test(value)) this.retry = Number(value);
  }

  tell({ type, id, data }) {
    if (id !== null) this.lastId = id;
    if (!data.length) return;
    let read;
    try {
      read = JSON.parse(data.join("\n"));
    } catch {
      return;
    }
    for (const listener of this.listeners.get(type) ?? []) listener(read, { lastEventId: this.lastId });
  }

  /** Call `action()` when a lost connection is there again; the answer stops it. */
  onReturn(action) {
    this.returns.add(action);
    return () => this.returns.delete(action);
  }

  /** Call `listener(data, event)` for events of a type; the answer stops it. */
  on(type, listener) {
    if (!this.listeners.has(type)) this.listeners.set(type, new Set());
    this.listeners.get(type).add(listener);
    return () => this.listeners.get(type).delete(listener);
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
