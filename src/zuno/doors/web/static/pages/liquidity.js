// All positions of the wallet, what they earn, and the plans about them.
import { h, replace } from "../dom.js";
import { number, shortTime, shorten, signed, time, tone } from "../format.js";
import { figures, opening, urgent } from "../documents.js";
import { withTools } from "../list_tools.js";
import { collapse, fillWith, loading, notice, panel, sourceLine, table, timeAge } from "../widgets.js";
import { rangesChart } from "../charts.js";
import { fetchPositions, planLink, planState, portfolioSource, positionsTable, verdictBadge } from "./lp_parts.js";
import { recommendForm } from "./debate.js";
import { turnBands, turnButton, turnPrice, turnRange, turnUnit } from "../price_way.js";
import { levelsPart, mandatesPart, openOwnRange, opened, rankPart, walletActs } from "./lp_acts.js";

const REFRESH = 20_000;
const MOST_MISSING = 3;

export async function show(root, params, api) {
  const slots = Object.fromEntries(["totals", "positions", "ranges", "plans", "closed"].map((name) => [name, h("div", { class: "slot" }, loading())]));
  const debate = recommendForm(api, { create: true });
  let chosen = null;
  const opening = h("div", { class: "stack-tight", id: "open-own" });
  const drawOpening = (open) => replace(opening, opened("With a range of your own, in a pool of your choice", () => openOwnRange(api, params.chain, chosen), { open }));
  const choose = (pool) => {
    chosen = pool;
    drawOpening(true);
    opening.scrollIntoView({ block: "start" });
  };
  drawOpening(false);
  replace(root,
    h("div", { class: "page-head" }, h("h1", null, "Liquidity"), h("div", { class: "end" }, turnButton(api.redraw))),
    slots.totals,
    panel("Positions", {}, walletActs(api, params.chain), slots.positions),
    h("div", { class: "grid" },
      panel("Ranges and liquidity around the price", { wide: "half" }, slots.ranges),
      h("div", { class: "half stack" },
        panel("Open a position", {}, debate),
        panel("Plans", {}, slots.plans),
        panel("Closed positions", {}, slots.closed))),
    panel("Open with a range of your own", {}, opening),
    panel("Which pool pays", { id: "rank" }, opened("Rank the pools of this chain by their fee cover", () => rankPart(api, params.chain, choose))),
    h("div", { class: "grid" },
      panel("What the monitor may do", { wide: "half", id: "mandates" }, mandatesPart(api)),
      panel("Levels and alerts", { wide: "half", id: "levels" }, levelsPart(api))));

  const load = collapse(() => Promise.all([
    fillWith(slots.positions, () => fetchPositions(api, { chain: params.chain }), (data) => {
      replace(slots.totals, totals(data, api));
      fillWith(slots.ranges, () => fetchLiquidity(api, data.positions), (pools) => [
        pools.length ? pools.map(poolChart) : h("p", { class: "empty" }, "No position, no range."),
        sourceLine({ href: api.address(pools.length ? `/lp/pools/${encodeURIComponent(pools[0].pool.id)}/liquidity` : "/lp/pools"), at: data.positions.timestamp, text: `initialised ticks, ${data.positions.chain} block ${data.positions.block}` })], { keep: true });
      return [
        data.positions.note ? notice(data.positions.note, "warn") : null,
        withTools(positionsTable(data), { name: "positions", rows: data.positions.positions }),
        data.positions.missing.length ? notice(`Could not be read: ${data.positions.missing.map((item) => `${item.id} (${item.reason})`).join(", ")}`, "warn") : null,
        sourceLine({ href: api.address("/lp/positions"), at: data.positions.timestamp, text: `${data.positions.chain} block ${data.positions.block}` }),
      ];
    }, { keep: true }),
    fillWith(slots.plans, () => api.get("/lp/plans", { limit: 25 }), (page) => [withTools(plansTable(page.items), { name: "plans", rows: page.items }), sourceLine({ href: api.address("/lp/plans"), at: page.items[0]?.at, text: "the journal" })], { keep: true }),
    fillWith(slots.closed, () => api.get("/lp/closed", { chain: params.chain }), (view) => [closedTable(view), sourceLine({ href: api.address("/lp/closed"), at: view.timestamp, text: "measured on chain" })], { keep: true }),
  ]));
  await load();
  api.on("plan", load);
  api.onReturn(load);
  api.every(REFRESH, load);
}

function totals({ portfolio, document }, api) {
  if (!portfolio) return null;
  const missing = (document?.notes ?? []).filter(({ text }) => /^(not priced|fees unknown):/.test(text));
  return [
    urgent(document),
    opening(document),
    figures(document?.sections[0], portfolioSource(portfolio, api)),
    missing.slice(0, MOST_MISSING).map(({ text }) => notice(text, "warn")),
    missing.length > MOST_MISSING ? notice(`And ${missing.length - MOST_MISSING} more positions that a total leaves out; each total says of how many it is.`, "warn") : null,
  ];
}

async function fetchLiquidity(api, view) {
  const pools = new Map();
  for (const position of view.positions) {
    const known = pools.get(position.pool.id) ?? { pool: position.pool, positions: [], chain: position.chain };
    known.positions.push(position);
    pools.set(position.pool.id, known);
  }
  return Promise.all([...pools.values()].map(async (entry) => ({
    ...entry,
    liquidity: await api.get(`/lp/pools/${encodeURIComponent(entry.pool.id)}/liquidity`, { chain: entry.chain }).catch((error) => {
      if (error.name === "AbortError") throw error;
      return null;
    }),
  })));
}

function poolChart({ pool, positions, liquidity }) {
  const [price, priceUnit] = [turnPrice(positions[0].price), turnUnit(positions[0].priceUnit)];
  const edges = new Map(positions.map((position) => [position, turnRange(position.priceLower, position.priceUpper)]));
  return h("div", { class: "stack-tight" }, h("h3", null, pool.label), rangesChart({
    label: `Ranges in ${pool.label}`,
    summary: positions.map((position) => `position ${position.id} from ${edges.get(position).map((edge) => number(edge)).join(" to ")}`).join("; "),
    ranges: positions.map((position) => ({ name: `#${position.id}`, lower: edges.get(position)[0], upper: edges.get(position)[1], tone: position.inRange ? "up" : "down", note: position.inRange ? "in range" : "out of range" })),
    liquidity: turnBands(liquidity?.bands ?? []),
    price, priceUnit,
  }));
}

function plansTable(plans) {
  return table("Plans", [
    { name: "Plan", cell: (plan) => [`${plan.choice} ${plan.positionId ? `#${plan.positionId}` : ""}`, h("span", { class: "sub change", title: plan.planId }, shorten(plan.planId, 9, 4))] },
    { name: "Verdict", cell: (plan) => plan.verdict ? verdictBadge(plan.verdict) : "asked for" },
    { name: "Decided by", hide: true, cell: (plan) => plan.decidedBy },
    { name: "State", cell: (plan) => [planState(plan.state), h("span", { class: "sub phone" }, timeAge(plan.at))] },
    { name: "When", number: true, hide: true, cell: (plan) => h("span", { title: time(plan.at) }, timeAge(plan.at)), sort: (plan) => plan.at },
  ], plans, { href: (plan) => planLink(plan.planId), empty: "No plan yet. Open a position and ask the desk." });
}

function closedTable(view) {
  return [
    view.note ? notice(view.note) : null,
    withTools(table("Closed positions", [
      { name: "Position", cell: (line) => [line.pool?.label ?? `#${line.id}`, h("span", { class: "sub" }, `#${line.id} · ${line.became}${line.newPositionId ? ` into #${line.newPositionId}` : ""}`)] },
      { name: "Result", number: true, cell: (line) => h("span", { class: tone(line.result) }, line.result === null ? "–" : `${signed(line.result)} ${line.unit}`) },
      { name: "Fees", number: true, hide: true, cell: (line) => signed(line.fees) },
      { name: "LVR", number: true, hide: true, cell: (line) => signed(line.lvr === null ? null : -Number(line.lvr)) },
      { name: "Closed", number: true, hide: true, cell: (line) => line.closedAt ? h("span", { title: time(line.closedAt) }, shortTime(line.closedAt)) : "–" },
    ], view.positions, { empty: "None has been closed." }), { name: "closed positions", rows: view.positions }),
  ];
}
