// The lab: reports of studies when there are some.
import { styled } from "../charts_trading.js";
import { h, replace } from "../dom.js";
import { time } from "../format.js";
import { fillWith, loading, panel } from "../widgets.js";

const STUDIES = [
  ["zuno lab study --seeds 1-8", "how the desk rules over synthetic markets: the mix of rulings, and whether a mirrored market gets the mirrored ruling"],
  ["zuno lab memory --seeds 1-6", "whether memory helps: the same markets with and without it, where a setup is planted and where none is"],
];

export async function show(root, params, api) {
  await styled;
  const place = h("div", { class: "stack" }, loading());
  replace(root, h("div", { class: "page-head" }, h("h1", null, "Lab")), place);
  await fillWith(place, () => api.get("/lab/reports"), (view) => view.reports.length ? view.reports.map((report) => drawReport(report, api)) : panel("Reports", { source: { href: api.address("/lab/reports"), at: null, text: "this home" } },
    h("p", null, "This home has no report yet. A study runs in a terminal and prints its result:"),
    h("dl", { class: "prose" }, STUDIES.map(([command, what]) => [h("dt", null, h("code", null, command)), h("dd", null, what)])),
    h("p", { class: "hint" }, "With --json the result is one document. Synthetic markets show that the machinery works; they are no evidence of profit in a real one.")));
}

function drawReport(report, api) {
  if (typeof report === "string") return panel(report, {}, h("p", null, report));
  return panel(report.title ?? report.name ?? "Report", { source: { href: api.address("/lab/reports"), at: report.at ?? null, text: "this home" } },
    report.at ? h("p", { class: "hint" }, time(report.at)) : null, h("p", { class: "prose" }, report.summary ?? report.text ?? ""));
}
