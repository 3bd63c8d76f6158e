// One position: its price and range, the pool's liquidity, what it earned, where the money went, what if the price moves.
import { h, replace } from "../dom.js";
import { isKnown, money, number, percent, signed, span, time, tone } from "../format.js";
import { acts, figures, headline, notes, opening, pairs, sectionOf, urgent, wordPairs } from "../documents.js";
import { badge, collapse, facts, fillWith, loading, notice, panel, sourceLine, stat, table } from "../widgets.js";
import { rangesChart, waterfall, xyChart } from "../charts.js";
import { inRangeBadge, poolName } from "./lp_parts.js";
import { recommendForm } from "./debate.js";
import { turnBands, turnButton, turnPrice, turnRange, turnUnit } from "../price_way.js";
import { actsPart, levelsPart, moveOwnRange, opened } from "./lp_acts.js";

const REFRESH = 20_000;
const KEEP = { keep: true };
const SLIDER = "Change of the price in percent";

export async function show(root, params, api) {
  const at = `/lp/positions/${encodeURIComponent(params.id)}`;
  const query = { chain: params.chain };
  try {
    await api.get(at, query);
  } catch (error) {
    if (error.status !== 404) throw error;
    await showGone(root, params, api, at, query, error);
    return;
  }
  const slots = Object.fromEntries(["head", "acts", "urgent", "figures", "price", "holds", "liquidity", "fees", "attribution", "market"].map((name) => [name, h("div", { class: "slot" }, loading())]));
  for (const name of ["acts", "urgent"]) replace(slots[name]);
  const whatIf = h("div", { class: "slot" }, loading());
  const token = { side: "inToken1" };
  const moved = { percent: 0 };
  let known = null;
  let picker = null;
  let around = null;
  const own = opened("Choose both edges, see what they would earn, and let the desk answer", async () => {
    around = around ?? await api.get(`/lp/pools/${encodeURIComponent(known.pool.id)}/liquidity`, query);
    picker = await moveOwnRange(api, known, params.chain, around);
    return picker.element;
  });
  const act = h("div", { class: "stack-tight" });
  const levels = h("div", { class: "stack-tight" });
  replace(root,
    h("div", { class: "page-head" }, h("a", { href: "#/liquidity", class: "crumb" }, "Liquidity"), h("span", { class: "crumb", "aria-hidden": "true" }, "/"), slots.head, h("div", { class: "end" }, turnButton(api.redraw), slots.acts)),
    slots.urgent,
    slots.figures,
    h("div", { class: "grid" },
      panel("Price and range, 30 days", { wide: "two-thirds top" }, slots.price),
      h("div", { class: "third stack" },
        panel("Ask the desk", { id: "ask" }, recommendForm(api, { position: params.id, chain: params.chain })),
        panel("What it holds", {}, slots.holds)),
      panel("A range of your own", { id: "own-range" }, own),
      panel("Collect, add, remove, close", { wide: "half", id: "acts" }, act),
      panel("Tell me", { wide: "half", id: "levels" }, levels),
      panel("Liquidity around the price", { wide: "half" }, slots.liquidity),
      panel("Fees by day", { wide: "half" }, slots.fees),
      panel("Where the money went", { wide: "half" }, slots.attribution),
      panel("What if the price moves", { wide: "half" }, whatIf),
      panel("The market around it", {}, slots.market)));

  const load = collapse(() => Promise.all([
    fillWith(slots.figures, async () => {
      const [{ view: position, document }, portfolio] = await Promise.all([api.read(at, query), api.get("/lp/portfolio", query).catch(() => null)]);
      if (!known) {
        replace(act, actsPart(api, position, params.chain));
        replace(levels, levelsPart(api, { position, chain: params.chain }));
      }
      known = position;
      return { position, document, line: portfolio?.positions.find((item) => item.id === position.id && item.chain === position.chain) ?? {} };
    }, ({ position, document, line }) => {
      replace(slots.head, headline(document, { title: `Position ${params.id}` }), " ", poolName(position.pool), " ", inRangeBadge(position));
      replace(slots.acts, acts(document, { "lp recommend rebalance": root.querySelector("#ask"), "lp pnl": slots.attribution, "lp whatif": whatIf }));
      replace(slots.urgent, urgent(document), opening(document));
      replace(slots.market, marketTable(position), sourceLine({ href: api.address(at), at: position.timestamp, text: `${position.chain} block ${position.block}` }));
      replace(slots.holds, facts([...wordPairs(document?.sections[0]), ...pairs(sectionOf(document, "Detail"))]), notes(document), sourceLine({ href: api.address(at), at: position.timestamp, text: `${position.chain} block ${position.block}` }));
      return positionFigures(document, line, { href: api.address(at), at: position.timestamp, text: `${position.chain} block ${position.block}` });
    }, KEEP).then(() => known && fillWith(slots.liquidity,
      async () => ({ position: known, view: await api.get(`/lp/pools/${encodeURIComponent(known.pool.id)}/liquidity`, query) }),
      ({ position, view }) => {
        around = view;
        picker?.update(position, view);
        return liquidityPart(position, view, api);
      }, KEEP)),
    fillWith(slots.price, () => api.get(`${at}/history`, query), (view) => {
      replace(slots.fees, feesPart(view, api, at));
      return pricePart(view, api, at);
    }, KEEP),
    fillWith(slots.attribution, () => api.get(`${at}/attribution`, query), (view) => attributionPart(view, token, api, at), KEEP),
    // a slider that is held stays in the hand
    whatIf.querySelector("input:active") ? null : fillWith(whatIf, () => api.get(`${at}/whatif`, query), (view) => whatIfPart(view, moved, api, at, query), KEEP),
  ]));
  await load();
  api.on("plan", load);
  api.onReturn(load);
  api.every(REFRESH, load);
}

/** A position that was closed or rebalanced: its account is still there. */
async function showGone(root, params, api, at, query, error) {
  const slot = h("div", { class: "slot" }, loading());
  replace(root,
    h("div", { class: "page-head" }, h("a", { href: "#/liquidity", class: "crumb" }, "Liquidity"), h("span", { class: "crumb", "aria-hidden": "true" }, "/"), h("h1", null, `Position ${params.id}`), badge("not open")),
    notice(error.message),
    panel("Where the money went", {}, slot));
  await fillWith(slot, () => api.get(`${at}/attribution`, query), (view) => attributionPart(view, { side: "inToken1" }, api, at));
}

function positionFigures(document, line, source) {
  return figures(document?.sections[0], source,
    stat("Time in range", percent(line.timeInRange), { note: line.windowHours ? `of ${number(line.windowHours, 0)} h` : null }));
}

function pricePart(view, api, at) {
  if (!view.prices.length) return view.notes.map((text) => notice(text, "warn"));
  const points = view.prices.map((point) => [point.at * 1000, turnPrice(point.price)]);
  const [from, to] = turnRange(view.priceLower, view.priceUpper);
  const now = turnPrice(view.priceNow);
  const unit = turnUnit(view.priceUnit);
  return [
    xyChart({
      label: `Price of ${view.pool.label}`, summary: `now ${number(now)} ${unit}; range ${number(from)} to ${number(to)}`,
      series: [{ name: unit, points, tone: "c1" }],
      spans: [{ from, to, name: "range", tone: "c3", fit: true }],
      levels: [{ y: now, name: number(now), fit: true }],
      height: (width) => (width < 500 ? 220 : 300),
    }),
    sourceLine({ href: api.address(`${at}/history`), at: view.prices.at(-1).at, text: `hourly closes: ${view.pricesSource}` }),
  ];
}

function feesPart(view, api, at) {
  if (!view.fees.length) return [h("p", { class: "empty" }, "No whole day with this liquidity yet."), view.notes.map((text) => notice(text, "warn"))];
  const points = view.fees.map((day) => [day.toTimestamp * 1000, Number(day.worth)]);
  const total = points.reduce((sum, [, value]) => sum + value, 0);
  return [
    xyChart({ label: `Fees by day in ${view.unit}`, summary: `${number(total)} ${view.unit} in ${points.length} days`, series: [{ name: view.unit, points, kind: "bars", tone: "c3" }], zoom: false, height: 180 }),
    sourceLine({ href: api.address(`${at}/history`), at: view.timestamp, text: `fee growth, at today's price; ${number(total)} ${view.unit} in ${points.length} d` }),
  ];
}

function liquidityPart(position, view, api) {
  const bands = turnBands(view.bands);
  const [lower, upper] = turnRange(position.priceLower, position.priceUpper);
  const price = turnPrice(view.price);
  return [
    rangesChart({
      label: `Liquidity of ${view.pool.label}`, summary: `${bands.length} bands from half the price to twice`, liquidity: bands, price, priceUnit: turnUnit(view.priceUnit),
      ranges: [{ name: `#${position.id}`, lower, upper, tone: position.inRange ? "up" : "down", note: position.inRange ? `${percent(Number(position.liquidity) / Number(position.poolState?.liquidity || Infinity), 2)} of what is active` : "out of range, earns nothing" }],
      domain: [Math.min(price * 0.72, lower * 0.94), Math.max(price * 1.34, upper * 1.06)],
    }),
    sourceLine({ href: api.address(`/lp/pools/${encodeURIComponent(view.pool.id)}/liquidity`), at: view.timestamp, text: `initialised ticks, ${view.chain} block ${view.block}` }),
  ];
}

function attributionPart(view, token, api, at) {
  const place = h("div", { class: "stack-tight" });
  const draw = () => replace(place, attributionChart(view, view[token.side]));
  draw();
  const choices = ["inToken0", "inToken1"].map((side) => h("button", { type: "button", "aria-pressed": String(token.side === side), onclick: (event) => {
    token.side = side;
    for (const other of event.currentTarget.parentElement.children) other.setAttribute("aria-pressed", String(other === event.currentTarget));
    draw();
  } }, view[side].token));
  return [
    h("div", { class: "choices", role: "group", "aria-label": "In which token" }, choices),
    place,
    table("Attribution in both tokens", [
      { name: "Term", cell: (row) => row[0] },
      { name: view.inToken0.token, number: true, cell: (row) => signed(row[1]) },
      { name: view.inToken1.token, number: true, cell: (row) => signed(row[2]) },
    ], bothTokens(view)),
    view.exact ? null : view.computed.map((text) => notice(text, "warn")),
    view.notes.map((text) => notice(text)),
    sourceLine({ href: api.address(`${at}/attribution`), at: view.toTimestamp, text: view.exact ? "measured on chain, residual 0" : "partly computed" }),
  ];
}

function attributionChart(view, terms) {
  const steps = [
    { name: "Fees", value: Number(terms.fees) },
    { name: "Price effect", value: Number(terms.priceEffect) },
    { name: "Divergence loss", value: -Number(terms.divergenceLoss) },
    { name: "Gas", value: -Number(terms.gas) },
    { name: "Swap cost", value: -Number(terms.swapCost) },
  ].filter((step) => step.value !== 0);
  return [
    h("p", null, "Result ", h("b", { class: tone(terms.result) }, `${signed(terms.result)} ${terms.token}`), ` since ${time(view.fromTimestamp)}. `,
      h("span", { class: "soft" }, `Against rebalancing, arbitrage took ${number(terms.lvr)} ${terms.token} (LVR).`)),
    waterfall({ label: `Where the money went, in ${terms.token}`, steps: [...steps, { name: "Result", value: Number(terms.result), total: true }], format: (value) => signed(value, Math.abs(value) < 10 ? 4 : 2), unit: terms.token }),
  ];
}

function bothTokens(view) {
  const terms = [["Put in", "flows", 1], ["Fees", "fees", 1], ["Price effect", "priceEffect", 1], ["Divergence loss", "divergenceLoss", -1], ["Gas", "gas", -1], ["Swap cost", "swapCost", -1], ["Result", "result", 1], ["Worth now", "navEnd", 1]];
  return terms.map(([name, key, sign]) => [name, sign * Number(view.inToken0[key]), sign * Number(view.inToken1[key])]);
}

function whatIfPart(view, moved, api, at, query) {
  const result = h("div", { class: "slot", "aria-live": "polite" });
  const shown = h("output", { class: "move" });
  const focused = document.activeElement?.getAttribute("aria-label") === SLIDER;
  const slider = h("input", { type: "range", min: "-50", max: "50", step: "1", value: String(moved.percent), "aria-label": SLIDER, list: "whatif-marks" });
  const chart = h("div", null);
  const rows = view.table.map((row) => ({ price: Number(row.price), worth: Number(row.worth), hold: Number(row.hodlWorth) }));
  let timer = null;
  let asked = 0;
  const drawCurve = (price) => replace(chart, xyChart({
    label: "Worth of the position at other prices", x: "number", xFormat: (value) => number(value, 0), zoom: false, height: (width) => (width < 500 ? 200 : 300),
    series: [{ name: "position", points: rows.map((row) => [row.price, row.worth]), tone: "c1" }, { name: "tokens held", points: rows.map((row) => [row.price, row.hold]), tone: "c2" }],
    marks: [{ x: price, name: number(price, 0) }], rest: price,
    summary: `in ${view.unit}, from ${number(rows[0].price)} to ${number(rows.at(-1).price)} ${view.priceUnit}`,
  }));
  const drawCase = (data) => replace(result, facts([
    ["Price", `${number(data.price)} ${view.priceUnit}`],
    ["Worth, without fees", money(data.worth, view.unit)],
    ["Against today", h("span", { class: tone(Number(data.worth) - Number(today.worth)) }, `${signed(Number(data.worth) - Number(today.worth), 2)} ${view.unit}`)],
    ["Divergence loss", money(data.divergenceLoss, view.unit)],
    ["Loss since the mint", isKnown(data.sinceMint?.divergenceLoss) ? money(data.sinceMint.divergenceLoss, view.unit) : "unknown"],
    ["Would hold", `${number(data.amount0Human)} ${view.pool.currency0.symbol} · ${number(data.amount1Human)} ${view.pool.currency1.symbol}`],
    ["State", data.inRange ? badge("in range", "good") : badge("out of range", "bad")],
  ]));
  const today = view.table.find((row) => Number(row.percent) === 0) ?? view;
  const move = async (percentMoved) => {
    asked += 1;
    const mine = asked;
    try {
      const data = await api.get(`${at}/whatif`, { ...query, move: `${percentMoved >= 0 ? "+" : ""}${percentMoved}%` });
      if (mine !== asked) return;
      drawCase(data);
      drawCurve(Number(data.price));
    } catch (error) {
      if (error.name !== "AbortError" && mine === asked) replace(result, notice(error.message, "bad"));
    }
  };
  slider.addEventListener("input", () => {
    moved.percent = Number(slider.value);
    drawMove();
    clearTimeout(timer);
    timer = setTimeout(() => move(moved.percent), 90);
  });
  const drawMove = () => {
    const value = moved.percent;
    replace(shown, `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value)} %`);
    slider.setAttribute("aria-valuetext", `${value} percent`);
  };
  drawMove();
  if (moved.percent) move(moved.percent);
  if (focused) queueMicrotask(() => slider.focus());
  drawCase(today);
  drawCurve(Number(view.priceNow));
  return [
    h("div", { class: "slider" }, h("span", { "aria-hidden": "true" }, "−50 %"), slider, h("span", { "aria-hidden": "true" }, "+50 %"), shown),
    h("div", { class: "split" }, chart, result),
    view.notes.map((text) => notice(text)),
    sourceLine({ href: api.address(`${at}/whatif`), at: view.timestamp, text: "the pool's own arithmetic" }),
  ];
}

function marketFigure({ value, unit }) {
  if (/^bps\b/.test(unit)) return `${number(Number(value) / 100, 2)} %${unit.slice(3)}`;
  return `${number(value)} ${unit}`;
}

function marketTable(position) {
  const names = { referencePrice: "Reference price", realizedVol: "Realised volatility", gasPrice: "Gas price", l1DataFee: "L1 data fee", nativePrice: "Native coin" };
  return table("Market", [
    { name: "Figure", cell: (row) => names[row[0]] ?? row[0] },
    { name: "Value", number: true, cell: (row) => row[1].value === null ? h("span", { class: "soft" }, "unknown") : marketFigure(row[1]) },
    { name: "Source", cell: (row) => [row[1].source ?? "–", row[1].stale ? badge("stale", "warn") : null] },
    { name: "Age", number: true, cell: (row) => isKnown(row[1].ageSeconds) ? h("span", { title: time(row[1].asOf) }, span(row[1].ageSeconds)) : "–" },
    { name: "Note", hide: true, cell: (row) => row[1].notes.join("; ") },
  ], Object.entries(position.market));
}
