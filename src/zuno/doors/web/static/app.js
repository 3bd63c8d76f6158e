// The shell: which page is shown, the mode that must never be mistaken, theme, connection to the server.
import { EventStream, currentSession, documentAddress, get, getText, isSameDesk, loadSession, logIn, post, read, takeCode, useFactor, watchSession } from "./api.js";
import { h, replace, s } from "./dom.js";
import { askForCode, button, keepAges, loading, problemNotice, titleNumbers, toast } from "./widgets.js";

const TABS = [
  ["#/", "Home", "home"],
  ["#/liquidity", "Liquidity", "liquidity"],
  ["#/trading", "Trading", "trading"],
  ["#/trust", "Trust", "trust"],
  ["#/lab", "Lab", "lab"],
];

/** Pattern of the address → module of the page, its name, and the tab it stands under. */
const ROUTES = [
  [/^\/?$/, "home", "Home", "home"],
  [/^\/liquidity$/, "liquidity", "Liquidity", "liquidity"],
  [/^\/liquidity\/(?<id>[^/]+)$/, "position", "Position", "liquidity"],
  [/^\/plans\/(?<id>[^/]+)$/, "plan", "Plan", "liquidity"],
  [/^\/trading$/, "trading", "Trading", "trading"],
  [/^\/runs\/(?<id>[^/]+)$/, "run", "Run", "trading"],
  [/^\/trust$/, "trust", "Trust", "trust"],
  [/^\/lab$/, "lab", "Lab", "lab"],
  [/^\/lab\/(?<id>[^/]+)$/, "lab", "Report", "lab"],
  [/^\/lab\/(?<id>[^/]+)\/page$/, "report", "Report", "lab"],
  [/^\/document\/(?<path>[^/]+)$/, "document", "Document", null],
];

const main = document.getElementById("main");
const stream = new EventStream();
let leave = null;
let turn = 0;
let signedOut = false;

function readAddress() {
  const [path, query] = (location.hash.slice(1) || "/").split("?");
  for (const [pattern, module, name, tab] of ROUTES) {
    const match = pattern.exec(path);
    if (match) {
      const groups = Object.fromEntries(Object.entries(match.groups ?? {}).map(([key, value]) => [key, decode(value)]));
      return { module, name, tab, params: { ...Object.fromEntries(new URLSearchParams(query)), ...groups } };
    }
  }
  return null;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function showPage({ focus }) {
  if (location.hash === "#main" || signedOut) return;
  const route = readAddress();
  turn += 1;
  const mine = turn;
  leave?.();
  const controller = new AbortController();
  const stops = [];
  leave = () => {
    controller.abort();
    for (const stop of stops.splice(0)) stop();
  };
  drawTabs(route?.tab);
  document.title = route ? `${route.name} · Zuno` : "Zuno";
  if (!route) {
    replace(main, h("div", { class: "page" }, h("h1", null, "No such page"), h("p", null, h("a", { href: "#/" }, "Home"))));
    return;
  }
  delete main.dataset.shown;
  const page = h("div", { class: `page page-${route.module}` }, loading());
  replace(main, page);
  try {
    const module = await import(`./pages/${route.module}.js`);
    if (mine !== turn) return;
    const stop = await module.show(page, route.params, pageApi(controller.signal, stops));
    if (mine === turn) {
      performance.mark("page-shown");
      main.dataset.shown = route.module;
    }
    if (typeof stop === "function") (mine === turn ? stops.push(stop) : stop());
  } catch (error) {
    if (error.name === "AbortError") return;
    console.error(error);
    if (mine === turn) replace(page, h("h1", null, route.name), problemNotice(error, () => showPage({ focus: false })));
  }
  if (mine === turn && focus) main.focus({ preventScroll: true });
  if (mine === turn && focus) scrollTo(0, 0);
}

/** What a page may use. Everything asked or listened to ends when the page is left. */
function pageApi(signal, stops) {
  return {
    signal,
    get: (path, query) => get(path, { query, signal }),
    read: (path, query) => read(path, { query, signal }),
    getText: (path) => getText(path, { signal }),
    post: (path, body) => post(path, body),
    address: documentAddress,
    session: currentSession,
    redraw: () => showPage({ focus: false }),
    toast,
    /** `on("thought", (data, event) => …)`, until the page is left. */
    on: (type, listener) => {
      const stop = stream.on(type, listener);
      stops.push(stop);
      return stop;
    },
    /** What was told while the connection was gone is told again, except what is not kept: ask anew. */
    onReturn: (action) => {
      const stop = stream.onReturn(action);
      stops.push(stop);
      return stop;
    },
    /** Run again and again while the page is open and looked at. */
    every: (milliseconds, action) => {
      const timer = setInterval(() => { if (!document.hidden) action(); }, milliseconds);
      stops.push(() => clearInterval(timer));
    },
    leaving: (stop) => stops.push(stop),
  };
}

function drawTabs(current) {
  replace(document.getElementById("tabs"), TABS.map(([href, name, key]) =>
    h("a", { href, "aria-current": key === current ? "page" : null }, tabIcon(key), h("span", null, name))));
}

const ICONS = {
  home: "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
  liquidity: "M3 20V14h4v6M10 20V6h4v14M17 20v-9h4v9",
  trading: "M7 3v4M7 15v6M4 7h6v8H4zM17 3v6M17 17v4M14 9h6v8h-6z",
  trust: "M12 3l8 3v6c0 5-3.5 8-8 9-4.500-1-8-4-8-9V6z",
  lab: "M9 3h6M10 3v6l-6 11h16L14 9V3",
};

function tabIcon(key) {
  return s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: ICONS[key] }));
}

const MODES = {
  SYNTHETIC: "invented prices and play money. Nothing here is a market.",
  PAPER: "no real money moves.",
  LIVE: "real money moves.",
};

/** The most serious word of both desks, which the server names: real money on either is LIVE. */
function drawMode(session) {
  const mode = session.mode.toUpperCase();
  document.documentElement.dataset.mode = mode.toLowerCase();
  replace(document.getElementById("mode"), mode);
  const money = { synthetic: "play money", test: "test money", real: "real money" }[session.liquidity];
  const parts = `Trading: ${session.trading}. Liquidity: ${session.chain}, ${money}.`;
  const limits = session.mayAct ? null : session.scope === "look" ? "This login may only look." : ["Acting is off: ", h("code", null, "zuno web allow --for 30m"), " lets this page act; kill, pause and cancel always work."];
  const banner = document.getElementById("banner");
  replace(banner, h("strong", null, mode), h("span", null, MODES[mode]), h("span", { class: "banner-parts" }, parts), limits ? h("span", { class: "banner-limits" }, limits) : null);
  banner.hidden = false;
}

/** A server that came back with another home, chain or mode: nothing of what is shown holds, nor what a dialog asks. */
function followSession(session, before) {
  drawMode(session);
  if (before && isSameDesk(before, session)) return;
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.dispatchEvent(new Event("cancel"));
  if (before) showPage({ focus: false });
}

/** Ask for the session until it is known. */
async function lookAgain() {
  try {
    await loadSession();
  } catch (error) {
    if (error.status !== 401) setTimeout(() => { if (stream.state === "connected") lookAgain(); }, 3000);
  }
}

function showSignedOut() {
  if (signedOut) return;
  signedOut = true;
  leave?.();
  turn += 1;
  stream.end();
  drawConnection("lost");
  delete main.dataset.shown;
  replace(main, h("div", { class: "page" }, h("h1", null, "Not signed in"),
    h("p", null, "Type ", h("code", null, "zuno web link"), " in a terminal, and open the link that it prints: it is good for one login within two minutes."),
    button("Try again", () => location.reload())));
}

function drawTheme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const current = () => document.documentElement.dataset.theme || (system.matches ? "dark" : "light");
  const paint = () => {
    const dark = current() === "dark";
    button.setAttribute("aria-label", dark ? "Use the light theme" : "Use the dark theme");
    button.title = button.getAttribute("aria-label");
    replace(button, s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" },
      s("path", { d: dark ? "M12 4V2M12 22v-2M4 12H2M22 12h-2M6 6L4.600 4.600M19.400 19.400L18 18M6 18l-1.400 1.400M19.400 4.600L18 6M12 8a4 4 0 100 8 4 4 0 000-8z" : "M20 14A8 8 0 0110 4a8 8 0 1010 10z" })));
  };
  button.addEventListener("click", () => {
    const next = current() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("zuno-theme", next);
    } catch { /* it holds until the page is closed */ }
    paint();
  });
  system.addEventListener("change", paint);
  paint();
}

function drawConnection(state) {
  const place = document.getElementById("wire");
  place.dataset.state = state;
  const words = { connecting: "connecting", connected: "connected", lost: "reconnecting" };
  replace(place.querySelector("b"), words[state]);
  place.title = state === "connected" ? "New events arrive by themselves" : "Waiting for Zuno's server";
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

/** Keys 1 to 5 lead to the pages, unless something is being typed. */
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog, [tabindex='0'].chart")) return;
  const tab = TABS[Number(event.key) - 1];
  if (tab) location.hash = tab[0];
});

/** By the code of a login link, if the page was opened by one. A link that is no good leaves the login there was. */
async function useCode() {
  const code = takeCode();
  if (code === null) return false;
  try {
    await logIn(code);
    return true;
  } catch (error) {
    toast(error.message, "bad");
    return false;
  }
}

drawTheme();
stream.watchState(drawConnection);
titleNumbers(main);
keepAges(main);
watchSession(followSession, showSignedOut);
useFactor(askForCode);
stream.onReturn(lookAgain);
await useCode();
addEventListener("hashchange", async () => {
  if (await useCode()) location.reload();
  else showPage({ focus: true });
});
lookAgain().finally(() => stream.open());
showPage({ focus: false });
