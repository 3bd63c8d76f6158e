// What a view says of itself in words: the server writes its document once for every door, and the page shows it.
import { h } from "./dom.js";
import { button, notice, stat, stats, table, toast } from "./widgets.js";

const TONES = { good: "up", bad: "down", warn: "warn", quiet: "soft" };

/** Places of this page that show what a command of the terminal prints. */
const PLACES = [
  [/^lp (?:inspect|pnl|whatif|recommend rebalance) (\S+)(?: --chain (\S+))?$/, (id, chain) => `#/liquidity/${encodeURIComponent(id)}${chain ? `?chain=${encodeURIComponent(chain)}` : ""}`],
  [/^lp (?:positions|portfolio|closed|recommend create)\b/, () => "#/liquidity"],
  [/^plan (?:show|status|why|simulate|approve|apply|cancel) (\S+)$/, (id) => `#/plans/${encodeURIComponent(id)}`],
  [/^why (plan_\S+)$/, (id) => `#/plans/${encodeURIComponent(id)}`],
  [/^(?:trade )?why (run_\S+)$/, (id) => `#/runs/${encodeURIComponent(id)}`],
  [/^trade (?:status|positions|profit|balance|trades|performance|runs|locks|sleeves|kill|run)\b/, () => "#/trading"],
  [/^alerts\b/, () => "#/"],
  [/^memory (?:list|lessons)$/, () => "#/trust"],
];

/** Headline and context; `level` is that of its heading, `title` stands there where there is no document. */
export function headline(document, { level = "h1", title } = {}) {
  return [
    h(level, { class: TONES[document?.headline.tone] ?? null }, document?.headline.text || title),
    document?.context.text ? h("span", { class: "soft" }, document.context.text) : null,
  ];
}

/** What comes before every figure. */
export function urgent(document) {
  return (document?.urgent ?? []).map((value) => h("p", { class: "notice warn urgent" }, markCommands(value.text)));
}

export function notes(document) {
  return (document?.notes ?? []).map((value) => notice(markCommands(value.text)));
}

/** The sentences a document opens with. */
export function opening(document) {
  return (document?.sections[0]?.sentences ?? []).map((value) => h("p", { class: TONES[value.tone] ?? null }, value.text));
}

/** What stands in backticks is a command. */
function markCommands(text) {
  return text.split("`").map((part, place) => (place % 2 ? h("code", null, part) : part));
}

/**
 * What may be done next. `here` is what the page that asks has for commands by how they begin: a function to call, or an
 * element to go to. Else a command leads to its place in this page, or is shown to be copied.
 */
export function acts(document, here = {}, kind = "") {
  const offered = document?.acts ?? [];
  if (!offered.length) return null;
  return h("div", { class: "actions acts", role: "group", "aria-label": "What can be done next" }, offered.map((act) => drawAct(act, here, kind)));
}

export function findAct(command, here) {
  const known = Object.keys(here).find((start) => command === start || command.startsWith(`${start} `));
  return known === undefined ? null : here[known];
}

function drawAct({ label, command }, here, kind) {
  const own = findAct(command, here);
  if (own instanceof Element) return button(label, () => goTo(own), { title: `zuno ${command}`, kind });
  if (own) return button(label, own, { title: `zuno ${command}`, kind });
  for (const [pattern, address] of PLACES) {
    const match = pattern.exec(command);
    const href = match && address(...match.slice(1));
    if (href && href.split("?")[0] !== location.hash.split("?")[0]) return h("a", { class: `button ${kind}`, href, title: `zuno ${command}` }, label);
  }
  return commandButton(label, command);
}

/** What is done at a terminal alone: its command, to be copied. */
export function commandButton(label, command) {
  return h("button", { type: "button", class: "button copy", title: "Copy the command for a terminal", onclick: () => copy(`zuno ${command}`) }, `${label}: `, h("code", null, `zuno ${command}`));
}

function goTo(element) {
  element.scrollIntoView({ block: "center" });
  (element.querySelector("input, select, button, a, [tabindex='0']") ?? element).focus({ preventScroll: true });
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied: ${text}`, "good");
  } catch {
    toast(`Type ${text} in a terminal.`);
  }
}

/** Facts of a section in their order: figures as a strip, with those that only the page knows (`more`) behind them. A part
 * ("of that collected") stands below the figure it is a part of. */
export function figures(section, source, ...more) {
  const strip = [];
  for (const fact of (section?.facts ?? []).filter((each) => each.figure)) {
    const part = fact.label.startsWith("of that ") && strip.pop();
    strip.push(part ? { ...part, about: [part.about, `${fact.label.slice(8)} ${fact.value.text}`].filter(Boolean).join(" · ") } : fact);
  }
  return stats(source, strip.map(figure), more);
}

/** "0.62, ahead of …" is a figure and a note. */
function figure({ label, value, about, stale }) {
  const [text, ...rest] = value.text.split(", ");
  const note = [rest.join(", "), about, stale ? "STALE" : ""].filter(Boolean).join(" · ") || null;
  return stat(capital(label), text, { tone: `${TONES[value.tone] ?? ""} ${text.length > 14 ? "long" : ""}`, note });
}

/** Facts of a section that are words, as pairs for `facts`. */
export function wordPairs(section) {
  return (section?.facts ?? []).filter((fact) => !fact.figure).map(pair);
}

export function pairs(section) {
  return (section?.facts ?? []).map(pair);
}

/** A section's first table as it was written; nothing where the document has no such section. */
export function tableOf(document, title) {
  const [written] = sectionOf(document, title)?.tables ?? [];
  return written && table(title, written.columns.map(({ name }, place) => ({ name, number: place > 0,
    cell: (row) => h("span", { class: TONES[row.cells[place].tone] }, row.cells[place].text) })), written.rows);
}

export function sectionOf(document, title) {
  return (document?.sections ?? []).find((section) => section.title === title);
}

function pair(fact) {
  return [capital(fact.label), [fact.value.text, fact.about ? h("span", { class: "sub" }, fact.about) : null, fact.stale ? h("span", { class: "badge warn" }, "stale") : null], TONES[fact.value.tone]];
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
