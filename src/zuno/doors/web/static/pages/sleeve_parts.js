// Sleeves and strategies: what each has of the account, what it made, what it would hold and why, and the owner's own in shadow.
import { xyChart } from "../charts.js";
import { acts, notes } from "../documents.js";
import { h } from "../dom.js";
import { isKnown, money, number, percent, signed, signedPercent, span, time, toDate, tone } from "../format.js";
import { addCsv, makeSortable } from "../list_tools.js";
import { badge, facts, fillWith, loading, panel, table } from "../widgets.js";

const LINES = { desk: "the whole account", core: "its sleeves without the debate", hold: "the desk's markets at equal weights" };
const TONES = ["c1", "up", "warn", "c5", "c4", "c6", "c2", "c3"];
const MOST_POINTS = 400;

/** A place that fills itself, part by part: one that cannot be read leaves the others standing. */
export function sleevesPart(api) {
  const places = Object.fromEntries(["record", "targets", "tilt", "own"].map((name) => [name, h("div", { class: "slot" }, loading())]));
  /** `account`: the answer of /trading/account, where the page has it. */
  const load = (account = null) => Promise.all([
    fillWith(places.record, () => Promise.all([account ?? api.get("/trading/account"), api.get("/trading/curves")]), ([account, curves]) => drawRecord(account, curves, api), { keep: true }),
    fillWith(places.targets, () => Promise.all([api.get("/trading/strategies"), api.get("/trading/targets")]), ([list, targets]) => drawTargets(list, targets, api), { keep: true }),
    fillWith(places.tilt, () => api.get("/trust/calibration", { account: api.account.name }), (view) => drawTilt(view, api), { keep: true }),
    fillWith(places.own, () => api.get("/trading/shadows"), (view) => drawOwn(view, api), { keep: true }),
  ]);
  return { load, place: h("div", { class: "stack", id: "sleeves" }, places.record, places.targets, h("div", { class: "grid" }, h("div", { class: "half stack" }, places.tilt), h("div", { class: "half stack" }, places.own))) };
}

function drawRecord(account, curves, api) {
  const rows = account.sleeves.map((sleeve) => ({ ...sleeve, line: curves.lines.find((line) => line.name === sleeve.name) }));
  const result = (row) => (isKnown(row.openUsd) ? row.realisedUsd + row.openUsd : row.realisedUsd);
  const held = (row) => row.holds.map((part) => `${number(part.quantity, 5)} ${part.symbol.replace(/USDT$/, "")}`).join(", ") || "cash";
  const drawn = table("Sleeves", [
    { name: "Sleeve", cell: (row) => [row.name, h("span", { class: "sub" }, `${percent(row.share, 0)} of the capital`), h("span", { class: "sub phone" }, held(row)), row.balanced ? null : badge("NOT balanced", "bad")] },
    { name: "Equity", number: true, cell: (row) => [money(row.equityUsd), h("span", { class: "sub" }, isKnown(row.weight) ? `${percent(row.weight, 1)} now` : "–")] },
    { name: "Result", number: true, title: "realised and open, fees and funding included", cell: (row) => h("span", { class: tone(result(row)) }, money(result(row)), h("span", { class: "sub" }, `open ${money(row.openUsd)}`)) },
    { name: "Return", number: true, cell: (row) => h("span", { class: tone(row.line?.returnPct) }, isKnown(row.line?.returnPct) ? `${signed(row.line.returnPct, 2)} %` : "–") },
    { name: "Max drawdown", number: true, hide: true, cell: (row) => (isKnown(row.line?.maxDrawdownPct) ? `${number(row.line.maxDrawdownPct, 1)} %` : "–") },
    { name: "Sharpe", number: true, hide: true, title: "a year, of daily returns; from 30 of them on", cell: (row) => (isKnown(row.line?.sharpe) ? signed(row.line.sharpe, 2) : "–") },
    { name: "Holds", hide: true, cell: (row) => held(row) },
  ], rows, { empty: "This account has no sleeves." });
  return panel("Sleeves", { actions: addCsv(drawn, "sleeves", rows.map(({ line, ...sleeve }) => ({ ...sleeve, returnPct: line?.returnPct ?? null, maxDrawdownPct: line?.maxDrawdownPct ?? null, sharpe: line?.sharpe ?? null }))), source: { href: api.address("/trading/curves"), at: null, text: `${account.origin} · ${account.account} · as of ${time(account.asOf)}` } },
    makeSortable(drawn, "sleeves"),
    curves.at.length > 1 ? drawCurves(curves) : h("p", { class: "empty" }, "The curves begin with the first trade."),
    acts({ acts: [{ label: "Move cash between sleeves", command: `trade transfer${rows.length > 1 ? ` ${rows[0].name} ${rows[1].name} 100` : ""}` }] }));
}

function drawCurves({ at, lines }) {
  const moments = at.map((moment) => toDate(moment).getTime());
  const step = Math.max(1, Math.ceil(at.length / MOST_POINTS));
  const kept = moments.map((_, place) => place).filter((place) => place % step === 0 || place === moments.length - 1);
  return h("div", { class: "slot" },
    xyChart({ label: `Equity of ${lines.map((line) => `${line.name}, ${signed(line.returnPct, 2)} %`).join("; ")}`, series: lines.map((line, place) => ({ name: line.name, tone: TONES[place % TONES.length], points: kept.map((index) => [moments[index], line.usd[index]]) })), readFormat: (value) => money(value), height: 210 }),
    h("p", { class: "hint" }, `Each from the account's first equity on, over the same days: ${Object.entries(LINES).filter(([name]) => lines.some((line) => line.name === name)).map(([name, what]) => `${name} is ${what}`).join("; ")}.`));
}

function drawTargets(list, view, api) {
  const shares = new Map(list.sleeves.map((line) => [line.name, line]));
  const shown = new Set(view.sleeves.map((sleeve) => sleeve.name));
  const rest = list.sleeves.filter((line) => !shown.has(line.name));
  return panel("Strategies and their targets", { source: { href: api.address("/trading/targets"), at: null, text: `${view.origin} · as of ${time(view.asOf)}` } },
    view.sleeves.map((sleeve) => {
      const drawn = table(`Targets of ${sleeve.name}`, [
        { name: "Market", cell: (row) => [row.market, h("span", { class: "sub phone" }, row.why)] },
        { name: "Weight", number: true, cell: (row) => signedPercent(row.weight) },
        { name: "Target", number: true, cell: (row) => [money(row.usd), row.prevented ? h("span", { class: "sub down" }, row.prevented) : null] },
        { name: "Why", hide: true, cell: (row) => row.why },
      ], sleeve.targets, { empty: "It would hold nothing." });
      return h("div", { class: "slot" },
        h("h3", null, `${sleeve.name}: ${percent(sleeve.share, 0)} of the account${isKnown(sleeve.capitalUsd) ? `, ${money(sleeve.capitalUsd)}` : ""}`),
        h("p", { class: "prose" }, sleeve.rule, sleeve.scale === 1 ? "" : ` Scaled to ${number(sleeve.scale, 2)} by the fall from its high of a year.`),
        makeSortable(drawn, `targets-${sleeve.name}`));
    }),
    rest.length ? h("details", null, h("summary", null, `${rest.length} without targets of their own`), facts(rest.map((line) => [`${line.name}, ${percent(shares.get(line.name).share, 0)}`, line.rule, "long"]))) : null,
    notes({ notes: view.notes.map((text) => ({ text })) }));
}

/** What the debate's leanings were worth to the core. */
function drawTilt(view, api) {
  const record = view.tilts;
  return panel("Tilt of the core by the debate", { source: { href: api.address(`/trust/calibration?account=${encodeURIComponent(api.account.name)}`), at: null, text: record ? `last of ${time(record.day)}` : `${view.account} · as of ${time(view.asOf)}` } },
    record ? [
      facts([["A full tilt earned", isKnown(record.beta) ? `${signed(record.beta, 3)} ± ${number(record.error, 3)} σ of a day` : "–", tone(record.beta)], ["How much of it counts", percent(record.weight, 1)], ["Days scored", number(record.days, 0)]]),
      table("The last tilts", [
        { name: "Market", cell: (row) => row.market },
        { name: "Says", cell: (row) => badge(row.says) },
        { name: "Tilt", number: true, cell: (row) => signed(row.tilt, 2) },
        { name: "Beyond the core", number: true, hide: true, cell: (row) => (isKnown(row.residual) ? signed(row.residual, 2) : "–") },
        { name: "Core's weight ×", number: true, cell: (row) => number(row.multiplier, 2) },
      ], record.markets)]
      : h("p", { class: "empty" }, "No day was scored yet: a tilt is scored on the day after it was said."));
}

function drawOwn(view, api) {
  const drawn = table("Your own strategies", [
    { name: "Strategy", cell: (row) => [row.name, h("span", { class: "sub" }, row.form, row.asked ? `, asked ${time(row.asked).slice(0, 10)}` : ", not asked yet"), row.aside ? h("span", { class: "sub down" }, `set aside: ${row.aside}`) : null] },
    { name: "Return", number: true, cell: (row) => h("span", { class: tone(row.gain) }, signedPercent(row.gain, 2), h("span", { class: "sub" }, span(row.days * 86400))) },
    { name: "Fall", number: true, cell: (row) => percent(row.fall, 1) },
    { name: "Sharpe", number: true, hide: true, cell: (row) => (isKnown(row.sharpe) ? signed(row.sharpe, 2) : "–") },
    { name: "Costs", number: true, hide: true, cell: (row) => percent(row.costs, 2) },
    { name: "Wants", hide: true, cell: (row) => Object.entries(row.targets).map(([market, weight]) => `${market} ${signedPercent(weight)}`).join(", ") || "nothing" },
  ], view.shadows, { empty: "None is added. A Python file, a CSV or signals to a webhook can be asked once a day, in shadow." });
  return panel("Your strategies in shadow", { source: { href: api.address("/trading/shadows"), text: "the journal of this home" } },
    makeSortable(drawn, "shadows"),
    view.shadows.length ? h("p", { class: "hint" }, "A shadow holds nothing, and some weeks of it say nothing about a strategy.") : null,
    acts({ acts: [{ label: "Add one", command: "strategy add NAME --file FILE" }] }));
}
