// Both desks at a glance. Every part is asked for by itself: one that is slow or fails leaves the others standing.
import { h, replace } from "../dom.js";
import { money, percent, shorten, shortTime } from "../format.js";
import { accountChoice, openAccount } from "../accounts.js";
import { acts, figures, headline, notes, urgent, wordPairs } from "../documents.js";
import { badge, collapse, facts, fillWith, loading, panel, sourceLine, stat, stats, timeAge } from "../widgets.js";
import { xyChart } from "../charts.js";
import { fetchPositions, planLink, planState, portfolioSource, positionsTable } from "./lp_parts.js";

const REFRESH = 20_000;
const HOUR = 3_600_000;
const KEEP = { keep: true };

export async function show(root, params, pageApi) {
  const api = await openAccount(pageApi);
  const lp = h("div", { class: "stack" }, loading());
  const trading = h("div", { class: "stack" }, loading());
  const slots = Object.fromEntries(["positions", "fees", "approval", "alerts", "now", "desk", "equity"].map((name) => [name, h("div", { class: "slot" }, loading())]));
  replace(root,
    h("div", { class: "page-head" }, h("h1", null, "Home"), accountChoice(api)),
    h("div", { class: "grid" }, h("section", { class: "half", "aria-label": "Liquidity" }, lp), h("section", { class: "half", "aria-label": "Trading" }, trading)),
    h("div", { class: "grid" },
      h("div", { class: "two-thirds stack" },
        panel("Liquidity positions", { actions: h("a", { href: "#/liquidity" }, "All positions") }, slots.positions),
        h("div", { class: "grid" },
          panel("Liquidity fees by day", { wide: "half" }, slots.fees),
          panel("Trading equity", { wide: "half", actions: h("a", { href: "#/trading" }, "Trading") }, slots.equity))),
      h("div", { class: "third stack" },
        panel("Waits for you", { id: "waiting" }, slots.approval),
        panel("Alerts", {}, slots.alerts),
        panel("Running now", { id: "running" }, slots.now, slots.desk))));

  const load = collapse(() => Promise.all([
    fillWith(slots.positions, async () => ({ ...await fetchPositions(api), hour: Math.floor(Date.now() / HOUR) }), (data) => { // fees go on while nothing else changes
      replace(lp, deskHead(data.document, "Liquidity", { alerts: slots.alerts }), lpFigures(data, api));
      fillWith(slots.fees, () => fetchFees(api, data.positions.positions), (days) => feesPart(days, api));
      return [positionsTable(data, { brief: true }), sourceLine({ href: api.address("/lp/positions"), at: data.positions.timestamp, text: `${data.positions.chain} block ${data.positions.block}` })];
    }, KEEP),
    fillWith(slots.approval, () => api.get("/lp/plans/waiting"), (view) => waitingPlans(view.plans, api), KEEP),
    fillWith(slots.alerts, () => api.get("/lp/alerts"), (view) => alertList(view, api), KEEP),
    loadJobs(),
    fillWith(slots.desk, () => api.read("/trading/account"), ({ view, document }) => {
      const draw = (performance) => replace(trading, deskHead(document, "Trading"), tradingFigures(view, document, performance, api));
      draw(null);
      fillWith(slots.equity, async () => ({ view, performance: await api.get("/trading/equity") }), ({ performance }) => {
        draw(performance);
        return equityPart(performance, api);
      }, KEEP);
      return deskPart(view, document, api);
    }, KEEP),
  ]));
  const loadJobs = () => fillWith(slots.now, () => api.get("/jobs"), (view) => runningPart(view.jobs, api), KEEP);
  await load();
  for (const type of ["plan", "debate", "run_ended"]) api.on(type, load);
  api.on("entry", (entry) => { if (/^(alert|trade)/.test(entry.kind)) load(); });
  api.on("job", loadJobs);
  api.onReturn(load);
  api.every(REFRESH, load);
}

/** Fees of all positions by the day they end on, one entry for each token they are told in. */
async function fetchFees(api, positions) {
  const views = await Promise.all(positions.slice(0, 12).map((position) => api.get(`/lp/positions/${encodeURIComponent(position.id)}/history`, { chain: position.chain })));
  const units = new Map();
  for (const view of views) {
    const days = units.get(view.unit) ?? new Map();
    for (const day of view.fees) days.set(day.toTimestamp, (days.get(day.toTimestamp) ?? 0) + Number(day.worth));
    units.set(view.unit, days);
  }
  return units;
}

function feesPart(units, api) {
  const drawn = [...units].filter(([, days]) => days.size);
  if (!drawn.length) return h("p", { class: "empty" }, "No whole day yet.");
  return [
    drawn.map(([unit, days]) => {
      const points = [...days].sort((a, b) => a[0] - b[0]).map(([at, value]) => [at * 1000, value]);
      const sum = points.reduce((total, [, value]) => total + value, 0);
      return xyChart({ label: `Fees by day in ${unit}`, summary: `${money(sum, unit)} in ${points.length} days`, series: [{ name: unit, points, kind: "bars", tone: "c3" }], zoom: false, height: 170 });
    }),
    sourceLine({ href: api.address("/lp/positions"), at: drawn[0][1].size ? [...drawn[0][1].keys()].sort().at(-1) : null, text: `fee growth on chain, in ${drawn.map(([unit]) => unit).join(" and ")} at today's price` }),
  ];
}

/** What a desk says of itself: headline, what is urgent, what can be done. */
function deskHead(document, title, here) {
  return [h("div", { class: "page-head" }, headline(document, { level: "h2", title }), h("div", { class: "end" }, acts(document, here))), urgent(document)];
}

function lpFigures({ portfolio, document }, api) {
  if (!portfolio) return stats(null, stat("Liquidity worth", "–", { note: "could not be priced" }));
  return figures(document?.sections[0], portfolioSource(portfolio, api));
}

function tradingFigures(account, document, performance, api) {
  const drawdown = performance?.maxDrawdownPct;
  return figures(document?.sections[0], { href: api.address("/trading/account"), at: account.asOf, text: account.account },
    stat("Max drawdown", drawdown === null || drawdown === undefined ? "–" : percent(drawdown / 100, 2), { note: performance?.maxDrawdownUsd ? money(performance.maxDrawdownUsd) : "nothing closed yet" }));
}

function waitingPlans(waiting, api) {
  const source = sourceLine({ href: api.address("/lp/plans/waiting"), at: waiting[0]?.at, text: "plans in the journal, checked against the chain" });
  if (!waiting.length) return [h("p", { class: "empty" }, "Nothing waits for approval."), source];
  return [h("ul", { class: "list" }, waiting.slice(0, 6).map((plan) => h("li", null,
    h("div", { class: "row" }, h("a", { href: planLink(plan.planId) }, `${plan.choice} position ${plan.positionId ?? "(new)"}`), planState(plan.state)),
    h("span", { class: "sub" }, `${plan.chain} · decided by ${plan.decidedBy} · `, timeAge(plan.at), ` · ${shorten(plan.planId, 9, 4)}`)))), source];
}

function alertList(view, api) {
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

function deskPart(account, document, api) {
  return [facts(wordPairs(document?.sections[0])), notes(document), sourceLine({ href: api.address("/trading/account"), at: account.asOf, text: account.origin })];
}

function equityPart(performance, api) {
  const points = (performance.points ?? []).map((point) => [new Date(point.at).getTime(), Number(point.equityUsd ?? point.equity)]).filter(([at, value]) => Number.isFinite(at) && Number.isFinite(value));
  if (points.length < 2) return h("p", { class: "empty" }, "No trade has been closed yet. ", h("a", { href: "#/trading" }, "Analyse a symbol"), " to begin.");
  return [
    xyChart({ label: "Trading equity in USD", series: [{ name: "equity", points, kind: "area", tone: "c1" }], summary: `from ${money(points[0][1])} to ${money(points.at(-1)[1])}`, height: 200 }),
    sourceLine({ href: api.address("/trading/equity"), at: performance.asOf, text: performance.origin }),
  ];
}
