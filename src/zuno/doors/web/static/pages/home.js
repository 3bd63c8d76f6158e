// Both desks: what they say first, what is urgent, one act; then figures, history and what waits. One question brings it all.
import { h, replace } from "../dom.js";
import { money, number, shorten, shortTime, signed, signedPercent, tone } from "../format.js";
import { accountChoice, openAccount } from "../accounts.js";
import { acts, figures, headline, notes, sectionOf, urgent } from "../documents.js";
import { badge, collapse, facts, fillWith, loading, panel, sourceLine, table, timeAge } from "../widgets.js";
import { rangeBar, xyChart } from "../charts.js";
import { planLink, planState, poolName, portfolioSource, positionLink } from "./lp_parts.js";

const REFRESH = 20_000;
const KEEP = { keep: true };
const MOST_SHOWN = 8;
const NEAR = 0.15;

export async function show(root, params, pageApi) {
  const api = await openAccount(pageApi);
  const slots = Object.fromEntries(["answer", "problem", "lp", "trading", "positions", "worth", "equity", "waiting", "alerts", "now", "desk"].map((name) => [name, h("div", { class: "slot" })]));
  replace(slots.problem, loading());
  replace(root,
    slots.answer, slots.problem,
    h("div", { class: "grid" }, h("section", { class: "half", "aria-label": "Liquidity" }, slots.lp), h("section", { class: "half", "aria-label": "Trading" }, slots.trading)),
    h("div", { class: "grid" },
      h("div", { class: "two-thirds stack" },
        panel("Liquidity positions", { actions: h("a", { href: "#/liquidity" }, "All positions") }, slots.positions),
        h("div", { class: "grid" },
          panel("Worth of these positions", { wide: "half" }, slots.worth),
          panel("Trading: desk, core and hold", { wide: "half", actions: h("a", { href: "#/trading" }, "Trading") }, slots.equity))),
      h("div", { class: "third stack" },
        panel("Waits for you", { id: "waiting" }, slots.waiting),
        panel("Alerts", {}, slots.alerts),
        panel("Running now", { id: "running" }, slots.now, slots.desk))));

  /** Each part is drawn again where its own data changed. */
  const part = (slot, data, draw) => fillWith(slot, async () => data, draw, KEEP);
  const load = collapse(() => fillWith(slots.problem, () => api.read("/home", { account: api.account.name }), ({ view, document }) => {
    part(slots.answer, document && { ...document, sections: [] }, (words) => [
      h("div", { class: "page-head answer" }, headline(words, { title: "Home" }), accountChoice(api)), urgent(words), acts(words, {}, "primary"), notes(words)]);
    part(slots.lp, [document?.sections, view.portfolio?.prices, view.portfolio?.chains], () => view.portfolio && sectionOf(document, "Liquidity")
      ? figures(sectionOf(document, "Liquidity"), portfolioSource(view.portfolio, api)) : null);
    part(slots.trading, [document?.sections, view.trading?.asOf], () => view.trading
      ? figures(sectionOf(document, "Trading"), { href: api.address("/trading/account"), at: view.trading.asOf, text: view.trading.account }) : null);
    part(slots.positions, view.portfolio?.positions, (positions) => positionsPart(positions, view.portfolio, api));
    part(slots.worth, view.portfolio?.history, (history) => worthPart(history, view.portfolio, api));
    part(slots.equity, view.performance?.points, () => equityPart(view.performance, api));
    part(slots.waiting, view.plans, (plans) => waitingPlans(plans, api));
    part(slots.alerts, view.alerts, (alerts) => alertList(alerts, api));
    part(slots.now, view.jobs, (jobs) => runningPart(jobs, api));
    part(slots.desk, [view.trading?.running, view.trading?.mandate], () => view.trading ? deskPart(view.trading, api) : null);
    return null;
  }, KEEP));
  const loadJobs = () => fillWith(slots.now, async () => (await api.get("/jobs")).jobs.slice(0, 10), (jobs) => runningPart(jobs, api), KEEP);
  await load();
  for (const type of ["plan", "debate", "run_ended"]) api.on(type, load);
  api.on("entry", (entry) => { if (/^(alert|trade)/.test(entry.kind)) load(); });
  api.on("job", loadJobs);
  api.onReturn(load);
  api.every(REFRESH, load);
}

/** Those out of range first; the rest is one link away. */
function positionsPart(positions, portfolio, api) {
  if (!portfolio) return h("p", { class: "empty" }, "The positions could not be read.");
  const shown = [...positions].sort((a, b) => rank(a) - rank(b)).slice(0, MOST_SHOWN);
  return [
    table("Liquidity positions", [
      { name: "Position", cell: (line) => [poolName(line.pool), h("span", { class: "sub" }, `#${line.id} · ${line.chain} `, stateBadge(line))] },
      { name: "Range", cell: (line) => [rangeBar({ lower: line.priceLower, upper: line.priceUpper, price: line.price, inRange: line.inRange, label: `range ${number(line.priceLower)} to ${number(line.priceUpper)}, price ${number(line.price)}` }), h("span", { class: "sub" }, `${number(line.priceLower, 0)} – ${number(line.priceUpper, 0)}`)] },
      { name: "Worth", number: true, cell: (line) => [money(line.worth), h("span", { class: "sub phone" }, result(line))] },
      { name: "Result", number: true, hide: true, title: "since it was opened", cell: result },
      { name: "Against holding", number: true, hide: true, cell: (line) => h("span", { class: tone(line.againstHolding) }, signed(line.againstHolding, 2)) },
      { name: "Fees, 7 d", number: true, hide: true, cell: (line) => line.fees24h === null ? "–" : money(line.fees24h * line.windowHours / 24) },
    ], shown, { href: positionLink, empty: "No position is open." }),
    positions.length > shown.length ? h("p", { class: "hint" }, `${shown.length} of ${positions.length}, those out of range first.`) : null,
    sourceLine(portfolioSource(portfolio, api)),
  ];
}

function edge(line) {
  const [lower, upper] = [line.summary.toLowerPercent, line.summary.toUpperPercent].map((text) => Math.abs(Number(text)));
  return Math.min(lower, upper) / (lower + upper || 1);
}

function rank(line) {
  return line.inRange ? 1 + edge(line) : 0;
}

function stateBadge(line) {
  if (!line.inRange) return badge("out of range", "bad");
  return edge(line) < NEAR ? badge("near edge", "warn") : badge("in range", "good");
}

function result(line) {
  return line.result === null ? "–" : h("span", { class: tone(line.result) }, signed(line.result, 2), h("span", { class: "sub" }, signedPercent(line.summary.resultShare)));
}

function worthPart(history, portfolio, api) {
  if (!history?.length) return h("p", { class: "empty" }, "Their past is not known.");
  const points = history.map((point) => [point.at * 1000, Number(point.worth)]);
  return [
    xyChart({ label: "Worth of the open positions in USD, without fees", series: [{ name: "worth", points, kind: "area", tone: "c3" }], summary: `from ${money(points[0][1])} to ${money(points.at(-1)[1])}`, zoom: false, height: 200 }),
    h("p", { class: "hint" }, `What was in ${portfolio.totals.fees24hOf} of ${portfolio.totals.positions} positions, at the pools' prices of the week; fees apart.`),
    sourceLine(portfolioSource(portfolio, api)),
  ];
}

function waitingPlans(waiting, api) {
  const source = sourceLine({ href: api.address("/lp/plans/waiting"), at: waiting[0]?.at, text: "plans in the journal, checked against the chain" });
  if (!waiting.length) return [h("p", { class: "empty" }, "Nothing waits for approval."), source];
  return [h("ul", { class: "list" }, waiting.slice(0, 6).map((plan) => h("li", null,
    h("div", { class: "row" }, h("a", { href: planLink(plan.planId) }, `${plan.choice} position ${plan.positionId ?? "(new)"}`), planState(plan.state)),
    h("span", { class: "sub" }, `${plan.chain} · decided by ${plan.decidedBy} · `, timeAge(plan.at), ` · ${shorten(plan.planId, 9, 4)}`)))), source];
}

function alertList(view, api) {
  if (!view) return h("p", { class: "empty" }, "The alerts could not be read.");
  const shown = view.alerts.slice(0, 6);
  return [
    shown.length
      ? h("ul", { class: "list" }, shown.map((alert) => h("li", null,
        h("div", { class: "row" }, badge(alert.severity, alert.severity === "critical" ? "bad" : "warn"),
          alert.position ? h("a", { href: `#/liquidity/${encodeURIComponent(alert.position)}?chain=${encodeURIComponent(alert.chain)}` }, `position ${alert.position}`) : alert.condition,
          alert.state === "active" ? null : badge(alert.state)),
        h("span", { class: "sub" }, `${alert.reason} · since ${shortTime(alert.raisedAt)}`))))
      : h("p", { class: "empty" }, "No alert is on."),
    view.lookedAt ? null : h("p", { class: "hint" }, "No monitor has looked yet; ", h("code", null, "zuno monitor run"), " keeps looking."),
    sourceLine({ href: api.address("/lp/alerts"), at: view.lookedAt, text: view.lookedAt ? "the monitor" : "no monitor yet" }),
  ];
}

const WORK = { recommend: "debate", analyze: "cycle", apply: "applying a plan", cancel: "calling a plan off" };

/** What this server is doing, and how the last things ended. */
function runningPart(jobs, api) {
  const running = jobs.filter((job) => job.state === "running");
  const shown = running.length ? running : jobs.slice(0, 1);
  return [
    shown.length
      ? h("ul", { class: "list" }, shown.slice(0, 5).map((job) => h("li", null,
        h("div", { class: "row" }, h("span", null, WORK[job.what] ?? job.what, " ", job.id.startsWith("run_") ? h("a", { href: `#/runs/${encodeURIComponent(job.id)}` }, shorten(job.id, 8, 4)) : null),
          badge(job.state === "running" ? "runs" : job.state, { running: "info", failed: "bad", ended: "good" }[job.state] ?? "")),
        h("span", { class: "sub" }, `${job.about} · begun `, timeAge(job.started), job.error ? ` · ${job.error}` : ""))))
      : h("p", { class: "empty" }, "No debate and no cycle was begun in the page since ", h("a", { href: api.address("/jobs"), target: "_blank", rel: "noopener" }, "this server"), " started."),
  ];
}

function deskPart(account, api) {
  const { mandate } = account;
  return [facts([["Desk", account.running ?? "not running"], ["Mandate", mandate ? (mandate.active ? `until ${mandate.expires}` : `expired at ${mandate.expires}`) : "none: paper only"]]),
    sourceLine({ href: api.address("/trading/account"), at: account.asOf, text: account.origin })];
}

const LINES = [["equityUsd", "desk", "c1"], ["coreUsd", "core", "c2"], ["holdUsd", "hold", "c4"]];

/** The desk beside what its sleeves alone, and its markets held, would have made of the same money. */
function equityPart(performance, api) {
  const points = performance?.points ?? [];
  if (points.length < 2) return h("p", { class: "empty" }, "No trade has been closed yet. ", h("a", { href: "#/trading" }, "Analyse a symbol"), " to begin.");
  const series = LINES.map(([field, name, colour]) => ({ name, tone: colour, points: points.filter((point) => point[field] !== null).map((point) => [Date.parse(point.at), point[field]]) })).filter((line) => line.points.length > 1);
  return [
    xyChart({ label: "Trading equity in USD beside core and hold", series, summary: series.map((line) => `${line.name} from ${money(line.points[0][1])} to ${money(line.points.at(-1)[1])}`).join("; "), zoom: false, height: 200 }),
    sourceLine({ href: api.address("/trading/equity"), at: performance.asOf, text: performance.origin }),
  ];
}
