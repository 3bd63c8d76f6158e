// The lab: reports of studies and backtests when there are some, each with the command that made it and its whole document.
import { styled } from "../charts_trading.js";
import { xyChart } from "../charts.js";
import { h, replace } from "../dom.js";
import { isKnown, number, time, words } from "../format.js";
import { drawComparison } from "./lab_compare.js";
import { badge, button, fillWith, loading, notice, panel, table } from "../widgets.js";

const STUDIES = [
  ["zuno lab study --seeds 1-8", "how the desk rules over synthetic markets: the mix of rulings, and whether a mirrored market gets the mirrored ruling"],
  ["zuno lab memory --seeds 1-6", "whether memory helps: the same markets with and without it, where a setup is planted and where none is"],
  ["zuno lab noedge --worlds 40", "how often the desk finds an edge in markets that have none"],
];
const MOST_ROWS = 200;
const MOST_COLUMNS = 12;

export async function show(root, params, api) {
  await styled;
  const place = h("div", { class: "stack" }, loading());
  replace(root, h("div", { class: "page-head" }, params.id || params.first ? [h("a", { href: "#/lab", class: "crumb" }, "Lab"), h("span", { class: "crumb", "aria-hidden": "true" }, "/"), h("h1", null, params.id ?? "Compare")] : h("h1", null, "Lab")), place);
  const read = (id) => api.get(`/lab/reports/${encodeURIComponent(id)}`);
  if (params.id) await fillWith(place, () => read(params.id), (report) => drawReport(report, api));
  else if (params.first && params.second) await fillWith(place, () => Promise.all([read(params.first), read(params.second)]), (reports) => drawComparison(reports, api));
  else await fillWith(place, () => api.get("/lab/reports"), (view) => drawList(view, api));
}

function drawList(view, api) {
  const source = { href: api.address("/lab/reports"), text: view.folder ?? "this home" };
  if (!view.reports.length) return panel("Reports", { source },
    h("p", null, "This home has no report yet. A study runs in a terminal and leaves its report here:"),
    h("dl", { class: "prose" }, STUDIES.map(([command, what]) => [h("dt", null, h("code", null, command)), h("dd", null, what)])),
    h("p", { class: "hint" }, "Synthetic markets show that the machinery works; they are no evidence of profit in a real one."));
  const chosen = [];
  const compare = button("Compare two", () => { location.hash = `#/lab?first=${encodeURIComponent(chosen[0])}&second=${encodeURIComponent(chosen[1])}`; }, { disabled: true, title: "Choose two reports" });
  const choose = (id, box) => {
    if (box.checked) chosen.push(id);
    else chosen.splice(chosen.indexOf(id), 1);
    compare.disabled = chosen.length !== 2;
  };
  return panel("Reports", { source, actions: view.reports.length > 1 ? compare : null }, table("Reports of the lab", [
    { name: "Report", cell: (row) => [row.title, h("span", { class: "sub" }, row.id)] },
    { name: "Kind", hide: true, cell: (row) => words(row.kind) },
    { name: "Command", hide: true, cell: (row) => h("code", { class: "long" }, row.command) },
    { name: "", cell: (row) => (row.partial ? badge("partial", "warn") : badge("whole", "good")) },
    { name: "Compare", cell: (row) => h("input", { type: "checkbox", "aria-label": `Compare ${row.title} ${row.id}`, onchange: (event) => choose(row.id, event.currentTarget) }) },
  ], view.reports, { href: (row) => `#/lab/${encodeURIComponent(row.id)}` }));
}

function drawReport(report, api) {
  const source = { href: api.address(`/lab/reports/${encodeURIComponent(report.id)}`), text: `made by ${report.command}` };
  const plain = Object.entries(report.body).filter(([, value]) => !isNested(value));
  const nested = Object.entries(report.body).filter(([, value]) => isNested(value));
  return [
    panel(report.title, { source }, report.partial ? notice("It was stopped before its end: what is there is usable, --resume goes on.", "warn") : null,
      h("p", null, h("code", { class: "long" }, report.command)),
      h("p", null, h("a", { class: "button", href: `#/lab/${encodeURIComponent(report.id)}/page` }, "Its own page, with charts")), drawFacts(plain)),
    nested.map(([name, value]) => panel(title(name), { source }, drawValue(name, value))),
  ];
}

const isNested = (value) => value !== null && typeof value === "object";
const title = (name) => words(name.replace(/([a-z0-9])([A-Z])/g, "$1 $2")).toLowerCase();

function plainText(value, name = "") {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number" && /^(since|until|at|from|to|.*timestamp)$/i.test(name) && value > 1e9) return time(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  if (typeof value === "number") return number(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return String(value);
}

/** A pair such as an interval as it is, anything larger as a sign that there is more in the document. */
function listText(value) {
  return Array.isArray(value) && value.length <= 3 && value.every((item) => !isNested(item)) ? value.map((item) => plainText(item)).join(" to ") : "…";
}

function drawFacts(entries) {
  return entries.length ? h("dl", { class: "facts narrow" }, entries.map(([name, value]) => [h("dt", null, title(name)), h("dd", { class: "long" }, plainText(value, name))])) : null;
}

/** A document as people read it: lists of numbers as lines, lists of objects as tables, the rest as names and values. */
function drawValue(name, value) {
  if (!Array.isArray(value)) {
    const entries = Object.entries(value);
    return [drawFacts(entries.filter(([, item]) => !isNested(item))), entries.filter(([, item]) => isNested(item)).map(([key, item]) => h("div", { class: "stack-tight" }, h("h3", null, title(key)), drawValue(key, item)))];
  }
  if (!value.length) return h("p", { class: "empty" }, "none");
  if (value.length > 2 && value.every((item) => typeof item === "number")) return xyChart({ label: title(name), x: "number", series: [{ name: title(name), points: value.map((item, index) => [index, item]) }], height: 180 });
  if (value.every((item) => item !== null && typeof item === "object" && !Array.isArray(item))) return drawTable(name, value);
  return h("ul", { class: "bullets" }, value.slice(0, MOST_ROWS).map((item) => h("li", null, isNested(item) ? JSON.stringify(item) : plainText(item))));
}

function drawTable(name, rows) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) => rows.some((row) => !isNested(row[key]) || listText(row[key]) !== "…")).slice(0, MOST_COLUMNS);
  return [
    table(title(name), keys.map((key, index) => ({ name: title(key), number: index > 0 && rows.every((row) => row[key] === null || row[key] === undefined || isKnown(row[key])), cell: (row) => (isNested(row[key]) ? h("span", { class: "change" }, listText(row[key])) : plainText(row[key], key)) })), rows.slice(0, MOST_ROWS)),
    rows.length > MOST_ROWS ? h("p", { class: "hint" }, `the first ${MOST_ROWS} of ${rows.length}`) : null,
  ];
}
