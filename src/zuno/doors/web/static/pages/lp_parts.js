// What several liquidity pages show: the table of positions, states of plans, the words of a debate.
import { h } from "../dom.js";
import { money, number, percent, signed, signedPercent, tone } from "../format.js";
import { turnPrice, turnRange, turnUnit } from "../price_way.js";
import { badge, table } from "../widgets.js";
import { rangeBar } from "../charts.js";

/** Positions with exact amounts, and their yield where the portfolio knows it. */
export async function fetchPositions(api, query) {
  const [positions, { view, document }] = await Promise.all([api.get("/lp/positions", query), api.read("/lp/portfolio", query).catch((error) => {
    if (error.name === "AbortError") throw error;
    return { view: null, document: null };
  })]);
  return { positions, portfolio: view, document };
}

/** Which blocks, and which dollars, a portfolio was counted by. */
export function portfolioSource(portfolio, api) {
  const blocks = portfolio.chains?.length ? portfolio.chains.map((chain) => `${chain.chain} block ${chain.block}`).join(", ") : "positions on chain";
  const prices = (portfolio.prices ?? []).map((price) => `${price.token}: ${price.source}`).join(", ");
  return { href: api.address("/lp/portfolio"), at: portfolio.chains?.[0]?.timestamp, text: prices ? `${blocks} · ${prices}` : blocks };
}

export function positionLink(position) {
  return `#/liquidity/${encodeURIComponent(position.id)}?chain=${encodeURIComponent(position.chain)}`;
}

export function planLink(planId) {
  return `#/plans/${encodeURIComponent(planId)}`;
}

/** The pool's name; a token nobody vouches for is marked. */
export function poolName(pool) {
  const doubtful = [pool.currency0, pool.currency1].filter((token) => !token.verified);
  return [pool.label.replace(" %", "\u00a0%"), doubtful.length ? h("span", { class: "badge warn", title: doubtful.map((token) => token.address).join(", ") }, "unverified token") : null];
}

export function inRangeBadge(position) {
  if (!position.inRange) return badge("out of range", "bad");
  return Number(position.edgeDistancePercent) < 15 ? badge("near edge", "warn") : badge("in range", "good");
}

export function positionRangeBar(position) {
  const [lower, upper] = turnRange(position.priceLower, position.priceUpper);
  const price = turnPrice(position.price);
  return rangeBar({
    lower, upper, price, inRange: position.inRange,
    label: `range ${number(lower)} to ${number(upper)}, price ${number(price)}, ${position.inRange ? "in range" : "out of range"}`,
  });
}

/** What a position made since it was opened. */
function madeOf(summary) {
  return summary?.result === null || summary === undefined ? "–" : h("span", { class: tone(summary.result) }, `${signed(summary.result, 2)} ${summary.unit}`, h("span", { class: "sub" }, signedPercent(summary.resultShare)));
}

export function positionsTable({ positions, portfolio }, { brief = false } = {}) {
  const yields = new Map((portfolio?.positions ?? []).map((line) => [`${line.chain}/${line.id}`, line]));
  const of = (position) => yields.get(`${position.chain}/${position.id}`) ?? {};
  const columns = [
    { name: "Position", cell: (position) => [poolName(position.pool), h("span", { class: "sub" }, `#${position.id} · ${position.chain} `, inRangeBadge(position))] },
    { name: "Range", cell: (position) => [positionRangeBar(position), h("span", { class: "sub", title: turnUnit(position.priceUnit) }, turnRange(position.priceLower, position.priceUpper).map((edge) => number(edge, edge < 10 ? undefined : 0)).join(" – "))], sort: (position) => turnPrice(position.priceLower) },
    { name: "Price", number: true, hide: true, title: "now", cell: (position) => number(turnPrice(position.price)) },
    { name: "Worth", number: true, cell: (position) => [money(position.valueHuman, position.valueUnit), h("span", { class: "sub phone" }, madeOf(of(position).summary))] },
    { name: "Result", number: true, hide: true, title: "since it was opened", cell: (position) => madeOf(of(position).summary) },
    { name: "Against holding", number: true, hide: true, cell: (position) => money(of(position).againstHolding) },
    { name: "Fees a day", number: true, hide: true, title: "of the last week", cell: (position) => money(of(position).fees24h) },
    { name: "In range", number: true, hide: true, title: "share of the window", cell: (position) => percent(of(position).timeInRange) },
    { name: "Uncollected", number: true, hide: true, cell: (position) => [`${number(position.fees0Human)} ${position.pool.currency0.symbol}`, h("span", { class: "sub" }, `${number(position.fees1Human)} ${position.pool.currency1.symbol}`)] },
  ];
  const shown = brief ? columns.filter((column) => !["Price", "Uncollected"].includes(column.name)) : columns;
  return table("Liquidity positions", shown, positions.positions, { href: positionLink, empty: "This wallet holds no position on this chain." });
}

export function planState(state) {
  const kind = { confirmed: "good", approved: "info", applying: "info", handed_out: "info", failed: "bad", partial: "warn", cancelled: "", expired: "warn" }[state] ?? "";
  return badge(state.replaceAll("_", " "), kind);
}

export function verdictBadge(verdict) {
  const kind = { accept: "good", approve: "good", veto: "bad", reject: "bad", revise: "warn", approve_with_caution: "warn" }[verdict] ?? "";
  return badge(String(verdict).replaceAll("_", " "), kind);
}

const ROLES = { scout: "c5", strategist: "c1", critic: "c2", arbiter: "c4" };

/** One thing that was said. Text is a model's or a rule's: shown as text, whatever it holds. */
export function thoughtLine(thought) {
  const vetoed = /\bveto\b/.test(thought.text);
  return h("li", { class: `thought ${ROLES[thought.role] ?? "c6"}${vetoed ? " vetoed" : ""}` },
    h("span", { class: "who" }, thought.role, thought.speaker ? h("span", { class: "sub" }, thought.speaker === "deterministic" ? "by rule" : thought.speaker) : null),
    h("span", { class: "said" }, thought.text));
}

/** A debate, round by round. */
export function transcript(thoughts) {
  const list = h("ol", { class: "debate" });
  let round = null;
  for (const thought of thoughts) {
    if (thought.round !== round) {
      round = thought.round;
      list.append(h("li", { class: "round" }, round === 0 ? "First round" : `Revision ${round}`));
    }
    list.append(thoughtLine(thought));
  }
  return list;
}
