// Two reports of the lab beside each other: every figure that both have, its difference, and whether their intervals are apart.
import { h } from "../dom.js";
import { isKnown, number, signed, words } from "../format.js";
import { withTools } from "../list_tools.js";
import { badge, facts, notice, panel, table } from "../widgets.js";

/** What a row of a list is known by, whichever place it has there. */
const NAMES = ["arm", "name", "policy", "strategy", "symbol", "market", "role", "rule", "kind", "id", "width", "seed"];
const INTERVAL = /^(ci\d*|.*interval|middle\d*.*)$/i;
const MOST_ROWS = 600;

/** Figures of a report by their place: `arms debate / netPnl`. A curve is no figure, an interval is one of two edges. */
export function listFigures(value, at = [], into = new Map()) {
  if (typeof value === "number" && Number.isFinite(value)) into.set(at.join(" / "), value);
  else if (Array.isArray(value)) {
    if (value.length === 2 && value.every((item) => typeof item === "number") && INTERVAL.test(at.at(-1) ?? "")) into.set(at.join(" / "), value);
    else for (const [place, item] of value.entries()) {
      if (item === null || typeof item !== "object" || Array.isArray(item)) continue;
      const key = NAMES.find((name) => item[name] !== undefined && item[name] !== null && typeof item[name] !== "object");
      listFigures(item, [...at.slice(0, -1), `${at.at(-1) ?? ""} ${key ? item[key] : place + 1}`.trim()], into);
    }
  } else if (value !== null && typeof value === "object") for (const [name, item] of Object.entries(value)) listFigures(item, [...at, name], into);
  return into;
}

/** `null` where only one has it; of intervals whether they are apart, and how far their middles are. */
export function compareFigures(first, second) {
  const [mine, other] = [listFigures(first.body), listFigures(second.body)];
  const rows = [...mine].filter(([place, value]) => other.has(place) && Array.isArray(value) === Array.isArray(other.get(place))).map(([place, value]) => {
    const against = other.get(place);
    if (!Array.isArray(value)) return { place, first: value, second: against, difference: against - value, apart: null };
    const middle = (edges) => (edges[0] + edges[1]) / 2;
    return { place, first: value, second: against, difference: middle(against) - middle(value), apart: Math.max(value[0], against[0]) > Math.min(value[1], against[1]) };
  });
  return { rows, alone: [mine.size - rows.length, other.size - rows.length] };
}

const writeNumber = (value) => (Number.isInteger(value) ? value.toLocaleString("en-US") : number(value)).replace("-", "−");
const show = (value) => (Array.isArray(value) ? value.map(writeNumber).join(" to ") : writeNumber(value));
const name = (place) => place.split(" / ").map((part) => words(part.replace(/([a-z0-9])([A-Z])/g, "$1 $2")).toLowerCase()).join(" · ");

export function drawComparison([first, second], api) {
  const { rows, alone } = compareFigures(first, second);
  const changed = rows.filter((row) => row.difference !== 0 || row.apart !== null);
  const intervals = rows.filter((row) => row.apart !== null);
  const source = { href: api.address(`/lab/reports/${encodeURIComponent(second.id)}`), text: `${second.id} against ${first.id}` };
  const columns = [
    { name: "Figure", cell: (row) => [name(row.place), h("span", { class: "sub phone" }, `${show(row.first)} → ${show(row.second)}`)] },
    { name: "First", number: true, hide: true, cell: (row) => show(row.first), sort: (row) => [row.first].flat()[0] },
    { name: "Second", number: true, hide: true, cell: (row) => show(row.second), sort: (row) => [row.second].flat()[0] },
    { name: "Difference", number: true, title: "the second less the first; of intervals of their middles", cell: (row) => [signed(row.difference), h("span", { class: "sub" }, !Array.isArray(row.first) && isKnown(row.difference / Math.abs(row.first)) && row.first !== 0 ? `${signed((100 * row.difference) / Math.abs(row.first), 1)} %` : "")], sort: (row) => row.difference },
  ];
  return [
    panel("Two reports", { source },
      first.kind === second.kind ? null : notice(`One is of ${words(first.kind)}, the other of ${words(second.kind)}: figures of one name may mean two things.`, "warn"),
      [first, second].some((report) => report.partial) ? notice("One of them was stopped before its end.", "warn") : null,
      facts([["First", h("a", { href: `#/lab/${encodeURIComponent(first.id)}` }, first.title)], ["made by", h("code", { class: "long" }, first.command), "long"], ["Second", h("a", { href: `#/lab/${encodeURIComponent(second.id)}` }, second.title)], ["made by", h("code", { class: "long" }, second.command), "long"],
        ["Figures in both", `${rows.length}, ${changed.length} of them differ`], ["In one alone", `${alone[0]} in the first, ${alone[1]} in the second`]])),
    panel("Intervals", { source }, intervals.length ? [
      withTools(table("Intervals of both", [...columns, { name: "", cell: (row) => (row.apart ? badge("apart", "good") : badge("overlap")) }], intervals), { name: "intervals", rows: intervals }),
      h("p", { class: "hint" }, "Intervals that overlap do not tell the two apart. Those that are apart do, if both are of the same question.")]
      : h("p", { class: "empty" }, "No interval stands in both: a difference without one may be chance.")),
    panel("Figures that differ", { source }, withTools(table("Figures that differ", columns, changed.filter((row) => row.apart === null).slice(0, MOST_ROWS), { empty: "None does." }), { name: "differences", rows: changed })),
  ];
}
