// Charts of the trading desk: candles with levels, heat map and trades; equity, drawdown, daily PnL; reliability.
// Plain SVG drawn at its own width. Every chart reads out by pointer and arrow keys and has its figures as a table.
import { h, replace, s, uniqueId } from "./dom.js";
import { compact, money, number, percent, signed, time, toDate } from "./format.js";

/** Styles of these charts and of the pages around them come with them, after the first view. */
export const styled = new Promise((resolve) => {
  const link = h("link", { rel: "stylesheet" });
  link.addEventListener("load", resolve);
  link.addEventListener("error", resolve);
  link.href = new URL("./trading.css", import.meta.url).pathname;
  document.head.append(link);
});

/**
 * A chart that draws itself again when its width changes. `draw(width, height)` gives
 * `{nodes, count, locate(index) → x, nearest(x, y) → index, read(index) → text}`; `rows()` gives `{columns, rows}` for the table.
 */
function frame({ label, height, draw, rows, kind }) {
  const readout = h("p", { class: "desk-readout", "aria-hidden": "true" });
  const spoken = h("p", { class: "visually-hidden", role: "status" });
  const svg = s("svg", { "aria-hidden": "true", focusable: "false" });
  const hint = uniqueId("hint");
  const plot = h("div", { class: `desk-plot ${kind ?? ""}`, tabindex: "0", role: "group", "aria-roledescription": "chart", "aria-label": label, "aria-describedby": hint }, svg);
  const cursor = s("line", { class: "cursor", visibility: "hidden" });
  const figure = h("figure", { class: "figure" }, readout, plot, spoken, h("p", { id: hint, class: "visually-hidden" }, "Arrow keys read the values one by one."));
  let drawn = null;
  let current = -1;
  let drawnWidth = 0;

  const paint = (width) => {
    drawnWidth = width;
    const tall = typeof height === "function" ? height(width) : height;
    for (const [name, value] of [["width", width], ["height", tall], ["viewBox", `0 0 ${width} ${tall}`]]) svg.setAttribute(name, value);
    drawn = draw(width, tall);
    for (const [name, value] of [["y1", drawn.top ?? 0], ["y2", drawn.bottom ?? tall]]) cursor.setAttribute(name, value);
    replace(svg, drawn.nodes, cursor);
    point(drawn.count - 1, false);
    cursor.setAttribute("visibility", "hidden");
  };
  const point = (index, aloud) => {
    if (!drawn?.count) return;
    current = Math.max(0, Math.min(drawn.count - 1, index));
    const x = drawn.locate(current);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.setAttribute("visibility", "visible");
    const parts = drawn.read(current);
    replace(readout, parts.map((part) => Array.isArray(part) ? h("span", null, h("b", null, part[0]), " ", h("span", { class: part[2] }, part[1])) : h("span", { class: "when" }, part)));
    if (aloud) replace(spoken, parts.map((part) => (Array.isArray(part) ? `${part[0]} ${part[1]}` : part)).join(", "));
  };
  plot.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    if (drawn) point(drawn.nearest(event.clientX - box.left, event.clientY - box.top), false);
  });
  plot.addEventListener("pointerleave", () => {
    point(drawn ? drawn.count - 1 : 0, false);
    cursor.setAttribute("visibility", "hidden");
  });
  plot.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
    if (event.key in steps) point(current + steps[event.key], true);
    else if (event.key === "Home") point(0, true);
    else if (event.key === "End") point(Infinity, true);
    else return;
    event.preventDefault();
  });
  if (rows) figure.append(figuresTable(label, rows));
  const observer = new ResizeObserver((entries) => {
    const width = Math.floor(entries[0].contentRect.width);
    if (width > 40 && width !== drawnWidth) paint(width);
  });
  observer.observe(plot);
  figure.redraw = () => drawnWidth && paint(drawnWidth);
  return figure;
}

/** The same figures as a table, built when it is opened. */
function figuresTable(label, rows) {
  const place = h("div", { class: "table-wrap", tabindex: "0", role: "region", "aria-label": `${label}: figures` });
  const details = h("details", { class: "figures" }, h("summary", null, "Data"), place);
  details.addEventListener("toggle", () => {
    if (!details.open || place.firstChild) return;
    const made = rows();
    place.append(h("table", null, h("caption", { class: "visually-hidden" }, label),
      h("thead", null, h("tr", null, made.columns.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, made.rows.map((row) => h("tr", null, row.map((cell, index) => index ? h("td", { class: "number" }, cell) : h("th", { scope: "row" }, cell)))))));
  });
  return details;
}

const round = (value) => Math.round(value * 10) / 10;
const fit = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

/** Round values over a stretch, about so many. */
function ticks(low, high, about) {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) found.push(Math.abs(value) < step / 1e6 ? 0 : value);
  return found;
}

const DAY = 86400000;
function timeTicks(first, last, width) {
  const steps = [3600000, 4 * 3600000, 12 * 3600000, DAY, 2 * DAY, 3 * DAY, 5 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY];
  const most = Math.max(2, Math.floor(width / 84));
  const step = steps.find((candidate) => (last - first) / candidate <= most) ?? steps.at(-1);
  const found = [];
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) found.push(at);
  return found.map((at) => [at, step >= DAY ? new Date(at).toISOString().slice(5, 10) : new Date(at).toISOString().slice(5, 16).replace("T", " ")]);
}

function axes({ left, right, bottom, xs, ys, x, y, yText, gutterLeft, within }) {
  return [
    ys.map((value) => s("line", { class: "grid-line", x1: left, x2: right, y1: round(y(value)), y2: round(y(value)) })),
    ys.map((value) => s("text", { class: within ? "tick within" : "tick", x: within ? left + 2 : gutterLeft ? left - 6 : right + 6, y: round(y(value)) + (within ? -3 : 3.5), "text-anchor": gutterLeft ? "end" : "start" }, yText(value))),
    xs.map(([at, text]) => s("text", { class: "tick", x: round(x(at)), y: bottom + 15, "text-anchor": "middle" }, text)),
    s("line", { class: "axis-line", x1: left, x2: right, y1: bottom, y2: bottom }),
  ];
}

// -- candles

/**
 * Candles of a market chart document with its levels and heat map, and trades on them. `trades`:
 * `{label, side, entry, stop, target, liquidation, opened, closed, exit}`; times and prices may be absent. `closed`: trades of
 * which only the way from entry to exit is drawn.
 */
export function candleChart(view, { trades = [], closed = [], show = {}, label, newest = "now" } = {}) {
  const price = view.price;
  if (!price.candles) return h("p", { class: "empty" }, price.why ?? "No bar is known.");
  const bars = price.candles;
  const count = bars.close.length;
  const openedAt = (index) => view.first + view.places[index] * view.intervalMs;
  const placeAt = (at) => (at - view.first) / view.intervalMs;
  const last = bars.close[count - 1];
  const change = (last / bars.open[0] - 1);
  const name = label ?? `${view.symbol}, ${count} bars of ${view.interval}: ${number(last)}, ${signed(change * 100, 1)} % since ${time(view.first)}; ` +
    `low ${number(Math.min(...bars.low))}, high ${number(Math.max(...bars.high))}` +
    [...trades, ...closed].map((trade) => `; ${trade.label ?? trade.side} in at ${number(trade.entry)}${trade.stop ? `, stop ${number(trade.stop)}` : ""}${trade.target ? `, target ${number(trade.target)}` : ""}${trade.exit ? `, out at ${number(trade.exit)}` : ""}`).join("");

  const draw = (width, height) => {
    const narrow = width < 560;
    const gutter = narrow ? 56 : 132;
    const edge = { left: 2, right: width - gutter, top: 6, bottom: height - 22 };
    const volume = show.volume === false ? null : (view.panels ?? []).find((panel) => panel.name === "volume" && panel.values);
    const floor = volume ? edge.bottom - Math.round((edge.bottom - edge.top) * 0.14) : edge.bottom;
    const asked = [...trades, ...closed.map(({ entry, exit }) => ({ entry, exit }))].flatMap((trade) => [trade.entry, trade.stop, trade.target, trade.exit].filter((value) => Number.isFinite(value)));
    let low = Math.min(...bars.low, ...asked);
    let high = Math.max(...bars.high, ...asked);
    const room = (high - low || high || 1) * 0.04;
    low -= room;
    high += room;
    const width_ = Math.max(view.width, view.places[count - 1] + 1) + (trades.some((trade) => !trade.closed) ? Math.ceil(view.width * 0.06) : 1);
    const x = fit(0, width_, edge.left, edge.right);
    const y = fit(low, high, floor, edge.top);
    const step = (edge.right - edge.left) / width_;
    const half = Math.max(0.5, step * 0.34);
    const mid = (place) => x(place + 0.5);
    const inside = (value) => value >= low && value <= high;

    const nodes = [];
    if (show.heat !== false && price.heat?.columns) nodes.push(heatLayer(price.heat, view.places, x, y, low, high));
    const ys = ticks(low, high, Math.max(3, Math.floor((floor - edge.top) / 56)));
    nodes.push(axes({ ...edge, xs: timeTicks(openedAt(0), openedAt(count - 1), edge.right - edge.left), ys, x: (at) => mid(placeAt(at)), y, yText: (value) => number(value, value >= 1000 ? 0 : 2), within: true }));
    if (show.profile && price.profile?.volumes) nodes.push(profileLayer(price.profile, y, edge, low, high));
    for (const zone of price.zones ?? []) {
      if (show.levels === false || zone.high < low || zone.low > high) continue;
      nodes.push(s("rect", { class: "zone", x: round(x(zone.since)), width: Math.max(0, round(edge.right - x(zone.since))), y: round(y(Math.min(zone.high, high))), height: Math.max(1, round(y(Math.max(zone.low, low)) - y(Math.min(zone.high, high)))) }));
    }
    if (volume) {
      const most = Math.max(...volume.values.filter((value) => value !== null), 1);
      const tall = fit(0, most, 0, edge.bottom - floor - 4);
      nodes.push(s("path", { class: "volume", d: volume.values.map((value, index) => value ? `M${round(mid(view.places[index]) - half)} ${edge.bottom}v${-round(tall(value))}h${round(2 * half)}V${edge.bottom}z` : "").join("") }));
    }
    if (show.averages !== false) for (const curve of price.curves ?? []) nodes.push(s("path", { class: `curve ${String(curve.kind).replaceAll("_", "-")}`, d: linePath(curve.values, (index) => mid(view.places[index]), y, inside) }));
    if (show.levels !== false) for (const slant of price.slants ?? []) nodes.push(s("line", { class: "slant", x1: round(mid(slant.start[0])), y1: round(y(slant.start[1])), x2: round(mid(slant.end[0])), y2: round(y(slant.end[1])) }));
    nodes.push(candlePaths(bars, view.places, mid, y, half));
    const labels = [{ price: last, text: `${newest} ${number(last, last >= 1000 ? 0 : 2)}`, kind: "now", rank: 0 }];
    for (const trade of trades) nodes.push(tradeLayer(trade, { mid, y, edge: { ...edge, bottom: floor }, placeAt, labels, inside, last: view.places[count - 1] }));
    for (const trade of closed) nodes.push(closedLayer(trade, { mid, y, edge, placeAt }));
    if (show.levels !== false) for (const mark of price.marks ?? []) {
      if (["now", "entry", "stop", "target", "liquidation"].includes(mark.kind) || !inside(mark.price)) continue;
      const at = round(y(mark.price));
      nodes.push(s("line", { class: `level k-${mark.kind}`, x1: round(Math.max(edge.left, x(mark.since))), x2: edge.right, y1: at, y2: at }));
      labels.push({ price: mark.price, text: `${mark.label} ${number(mark.price, mark.price >= 1000 ? 0 : 2)}`, kind: mark.kind, rank: { pool: 3, pivot: 4, profile: 5, gap: 6, fibonacci: 7 }[mark.kind] ?? 8 });
    }
    nodes.push(s("line", { class: "level k-now", x1: edge.left, x2: edge.right, y1: round(y(last)), y2: round(y(last)) }));
    nodes.push(placeLabels(labels, y, edge, floor, narrow));
    if (view.synthetic) nodes.push(s("text", { class: "watermark", x: edge.left + 8, y: floor - 8 }, "SYNTHETIC"));
    return {
      nodes, count, top: edge.top, bottom: edge.bottom,
      locate: (index) => mid(view.places[index]),
      nearest: (px) => nearestPlace(view.places, (px - edge.left) / step - 0.5),
      read: (index) => {
        const up = bars.close[index] >= bars.open[index];
        const parts = [`${time(openedAt(index))}`, ["O", number(bars.open[index])], ["H", number(bars.high[index])], ["L", number(bars.low[index])], ["C", number(bars.close[index]), up ? "up" : "down"]];
        if (volume?.values[index]) parts.push(["Vol", compact(volume.values[index])]);
        const pools = price.heat?.columns?.[index];
        if (show.heat !== false && pools && Math.max(...pools) > 0) {
          const row = pools.indexOf(Math.max(...pools));
          parts.push(["largest pool", `$${compact(pools[row])} at ${number((price.heat.edges[row] + price.heat.edges[row + 1]) / 2, 0)}`]);
        }
        return parts;
      },
    };
  };
  return frame({
    label: name,
    kind: "candles",
    height: (width) => (width < 560 ? 300 : 430),
    draw,
    rows: () => ({
      columns: ["opened", "open", "high", "low", "close"],
      rows: bars.close.map((close, index) => [time(openedAt(index)), number(bars.open[index]), number(bars.high[index]), number(bars.low[index]), number(close)]).reverse(),
    }),
  });
}

function nearestPlace(places, wanted) {
  let best = 0;
  for (let index = 1; index < places.length; index += 1) if (Math.abs(places[index] - wanted) <= Math.abs(places[best] - wanted)) best = index;
  return best;
}

function linePath(values, x, y, inside) {
  let pen = false;
  let path = "";
  values.forEach((value, index) => {
    if (value === null || value === undefined || !inside(value)) {
      pen = false;
      return;
    }
    path += `${pen ? "L" : "M"}${round(x(index))} ${round(y(value))}`;
    pen = true;
  });
  return path;
}

function candlePaths(bars, places, mid, y, half) {
  const wicks = { up: "", down: "" };
  const bodies = { up: "", down: "" };
  bars.close.forEach((close, index) => {
    const way = close >= bars.open[index] ? "up" : "down";
    const at = round(mid(places[index]));
    const top = round(y(Math.max(close, bars.open[index])));
    const base = round(y(Math.min(close, bars.open[index])));
    wicks[way] += `M${at} ${round(y(bars.high[index]))}V${round(y(bars.low[index]))}`;
    bodies[way] += `M${round(at - half)} ${top}h${round(2 * half)}V${Math.max(base, top + 1)}h${-round(2 * half)}z`;
  });
  return ["up", "down"].map((way) => [s("path", { class: `wick ${way}`, d: wicks[way] }), s("path", { class: `body ${way}`, d: bodies[way] })]);
}

const SHADES = 6;
/** Pools that stand to be forced out, in shades; runs of one shade are one rectangle, one path for each shade. */
function heatLayer(heat, places, x, y, low, high) {
  const most = Math.max(1, ...heat.columns.map((column) => Math.max(...column)));
  const shade = (usd) => (usd <= 0 ? 0 : Math.max(0, Math.ceil(SHADES * Math.sqrt(usd / most) - 0.6)));
  const paths = Array.from({ length: SHADES + 1 }, () => "");
  const forced = [];
  const loudest = Math.max(1, ...heat.forced.map((column) => Math.max(...column)));
  for (let row = 0; row + 1 < heat.edges.length; row += 1) {
    const from = Math.max(heat.edges[row], low);
    const to = Math.min(heat.edges[row + 1], high);
    if (to <= from) continue;
    const top = round(y(to));
    const tall = round(y(from) - y(to));
    let start = 0;
    for (let index = 1; index <= places.length; index += 1) {
      const before = shade(heat.columns[start][row]);
      if (index < places.length && shade(heat.columns[index][row]) === before && places[index] === places[index - 1] + 1) continue;
      if (before) paths[before] += `M${round(x(places[start]))} ${top}H${round(x(places[index - 1] + 1))}v${tall}H${round(x(places[start]))}z`;
      start = index;
    }
    heat.forced.forEach((column, index) => {
      if (column[row] > loudest * 0.2) forced.push(`M${round(x(places[index]))} ${top}H${round(x(places[index] + 1))}v${tall}H${round(x(places[index]))}z`);
    });
  }
  return [paths.map((d, level) => level && d ? s("path", { class: `heat heat-${level}`, d }) : null), forced.length ? s("path", { class: "heat forced", d: forced.join("") }) : null];
}

function profileLayer(profile, y, edge, low, high) {
  const most = Math.max(...profile.volumes, 1);
  const step = (profile.high - profile.low) / profile.volumes.length;
  const wide = (edge.right - edge.left) * 0.14;
  return s("path", { class: "profile", d: profile.volumes.map((volume, index) => {
    const from = Math.max(low, profile.low + index * step);
    const to = Math.min(high, profile.low + (index + 1) * step);
    return to > from ? `M${edge.right} ${round(y(to) + 0.5)}h${-round((volume / most) * wide)}V${round(y(from) - 0.5)}H${edge.right}z` : "";
  }).join("") });
}

function tradeLayer(trade, { mid, y, edge, placeAt, labels, inside, last }) {
  const nodes = [];
  const begin = Math.max(edge.left, trade.opened ? mid(placeAt(toDate(trade.opened).getTime()) - 0.5) : mid(last));
  const end = trade.closed ? Math.min(edge.right, mid(placeAt(toDate(trade.closed).getTime()) - 0.5)) : edge.right;
  const band = (to, kind) => {
    if (!Number.isFinite(to)) return;
    const top = Math.max(edge.top, Math.min(y(to), y(trade.entry)));
    const base = Math.min(edge.bottom, Math.max(y(to), y(trade.entry)));
    nodes.push(s("rect", { class: `trade-band ${kind}`, x: round(begin), width: Math.max(1, round(end - begin)), y: round(top), height: Math.max(1, round(base - top)) }));
  };
  band(trade.target, "gain");
  band(trade.stop, "loss");
  const rows = [["entry", trade.entry, "entry"], ["stop", trade.stop, "stop"], ["target", trade.target, "target"], ["liquidation", trade.liquidation, "liq."]];
  for (const [kind, value, text] of rows) {
    if (!Number.isFinite(value) || !inside(value)) continue;
    nodes.push(s("line", { class: `trade-line ${kind}`, x1: round(begin), x2: round(end), y1: round(y(value)), y2: round(y(value)) }));
    if (!trade.closed) labels.push({ price: value, text: `${text} ${number(value, value >= 1000 ? 0 : 2)}`, kind, rank: 1 });
  }
  const long = trade.side === "long";
  if (trade.opened && begin > edge.left) nodes.push(arrow(begin, y(trade.entry), long, "entry"));
  if (trade.closed && Number.isFinite(trade.exit)) {
    const won = (trade.exit - trade.entry) * (long ? 1 : -1) > 0;
    nodes.push(s("line", { class: `trade-path ${won ? "up" : "down"}`, x1: round(begin), y1: round(y(trade.entry)), x2: round(end), y2: round(y(trade.exit)) }));
    nodes.push(arrow(end, y(trade.exit), !long, won ? "won" : "lost"));
    nodes.push(s("text", { class: "trade-text", x: round(begin) - 8, y: round(y(trade.entry)) + (long ? 18 : -10), "text-anchor": "end" }, `in ${number(trade.entry)}`));
    nodes.push(s("text", { class: "trade-text", x: round(end) + 8, y: round(y(trade.exit)) + (long ? -10 : 18) }, `out ${number(trade.exit)}`));
  }
  return nodes;
}

function closedLayer(trade, { mid, y, edge, placeAt }) {
  const place = (at) => mid(placeAt(toDate(at).getTime()) - 0.5);
  const [begin, end] = [Math.max(edge.left, place(trade.opened)), Math.min(edge.right, place(trade.closed))];
  const long = trade.side === "long";
  const won = (trade.exit - trade.entry) * (long ? 1 : -1) > 0;
  return [
    s("line", { class: `trade-path ${won ? "up" : "down"}`, x1: round(begin), y1: round(y(trade.entry)), x2: round(end), y2: round(y(trade.exit)) }),
    arrow(begin, y(trade.entry), long, "entry"),
    arrow(end, y(trade.exit), !long, won ? "won" : "lost"),
  ];
}

function arrow(x, y, up, kind) {
  const way = up ? 1 : -1;
  return s("path", { class: `arrow ${kind}`, d: `M${round(x)} ${round(y + 3 * way)}l-6 ${10 * way}h12z` });
}

/** Labels at the right edge; what matters more takes its place first, what would overlap stays unlabelled. */
function placeLabels(labels, y, edge, floor, narrow) {
  const taken = [];
  const tall = 13;
  const nodes = [];
  for (const label of [...labels].sort((a, b) => a.rank - b.rank)) {
    let at = Math.max(edge.top + 6, Math.min(floor - 4, y(label.price)));
    for (let turn = 0; turn < 4 && taken.some((other) => Math.abs(other - at) < tall); turn += 1) {
      const near = taken.find((other) => Math.abs(other - at) < tall);
      at = label.rank <= 1 ? (at >= near ? near + tall : near - tall) : at;
    }
    if (taken.some((other) => Math.abs(other - at) < tall - 0.5)) continue;
    taken.push(at);
    const short = narrow ? number(label.price, label.price >= 1000 ? 0 : 2) : label.text;
    const wide = Math.min(narrow ? 54 : 130, short.length * 6.7 + 8);
    nodes.push(s("rect", { class: `tag k-${label.kind}`, x: edge.right + 2, y: round(at - 6.5), width: round(wide), height: 13, rx: 2 }),
      s("text", { class: `tag-text k-${label.kind}`, x: edge.right + 6, y: round(at + 3.5) }, short.length > 22 ? `${short.slice(0, 21)}…` : short));
  }
  return nodes;
}

// -- lines over time

/** A line with its area over time: `points` are `{at, value}`. */
export function lineChart({ label, points, format, kind = "", height = 180, zero = false, marks = [], beside = [] }) {
  const known = points.filter((point) => Number.isFinite(point.value));
  if (known.length < 2) return h("p", { class: "empty" }, "Two points in time are needed to draw a line.");
  const times = known.map((point) => toDate(point.at).getTime());
  const values = known.map((point) => point.value);
  const draw = (width, tall) => {
    const edge = { left: 2, right: width - 70, top: 8, bottom: tall - 20 };
    const all = [...values, ...beside.flatMap((line) => line.values.filter(Number.isFinite)), ...(zero ? [0] : [])];
    let low = Math.min(...all);
    let high = Math.max(...all);
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    low -= zero && low === 0 ? 0 : room;
    high += zero && high === 0 ? 0 : room;
    const x = fit(times[0], times.at(-1), edge.left, edge.right);
    const y = fit(low, high, edge.bottom, edge.top);
    const trace = (along) => along.map((value, index) => `${index ? "L" : "M"}${round(x(times[index]))} ${round(y(value))}`).join("");
    const path = trace(values);
    const base = round(y(zero ? 0 : low));
    return {
      nodes: [
        axes({ ...edge, xs: timeTicks(times[0], times.at(-1), edge.right), ys: ticks(low, high, Math.max(2, Math.floor(tall / 44))), x, y, yText: format }),
        s("path", { class: `area ${kind}`, d: `${path}L${round(x(times.at(-1)))} ${base}L${round(x(times[0]))} ${base}z` }),
        beside.map((line) => s("path", { class: `line ${line.name}`, d: trace(line.values) })),
        s("path", { class: `line ${kind}`, d: path }),
        marks.map((mark) => s("circle", { class: `close ${mark.kind}`, cx: round(x(toDate(mark.at).getTime())), cy: round(y(mark.value)), r: 3 })),
      ],
      count: values.length, top: edge.top, bottom: edge.bottom,
      locate: (index) => x(times[index]),
      nearest: (px) => nearestPlace(times, times[0] + ((px - edge.left) / (edge.right - edge.left)) * (times.at(-1) - times[0])),
      read: (index) => [time(times[index]), ["", format(values[index])], ...beside.map((line) => [line.name, format(line.values[index])])],
    };
  };
  return frame({ label, kind: "lines", height, draw, rows: () => ({ columns: ["time", "value"], rows: values.map((value, index) => [time(times[index]), format(value)]).reverse() }) });
}

export function equityChart(view, closed = []) {
  const points = view.points.map((point) => ({ at: point.at, value: point.equityUsd }));
  const times = points.map((point) => toDate(point.at).getTime());
  const marks = times.length < 2 ? [] : closed.map((trade) => ({ at: trade.closed, value: points[nearestPlace(times, toDate(trade.closed).getTime())].value, kind: trade.netPnl > 0 ? "won" : "lost" }));
  return lineChart({
    label: `Equity from ${money(view.startUsd)} to ${money(view.equityUsd)}, ${signed(view.returnPct, 2)} %; largest drawdown ${number(view.maxDrawdownPct, 2)} %; ${closed.length} closed trades are marked`,
    points, marks, format: (value) => money(value), kind: "equity", height: 200,
    beside: ["core", "hold"].map((name) => ({ name, values: view.points.map((point) => point[`${name}Usd`]) })).filter((line) => line.values.every(Number.isFinite)),
  });
}

export function drawdownChart(view) {
  return lineChart({
    label: `Drawdown from the peak, at most ${number(view.maxDrawdownPct, 2)} %`,
    points: view.points.map((point) => ({ at: point.at, value: point.drawdownPct === null ? NaN : -Math.abs(point.drawdownPct) })),
    format: (value) => `${signed(value, 2)} %`, kind: "drawdown", height: 120, zero: true,
  });
}

/** One bar for each day: `rows` are `{name, value, note}`. */
export function barChart({ label, rows, format, height = 150 }) {
  if (!rows.length) return h("p", { class: "empty" }, "Nothing to draw yet.");
  const values = rows.map((row) => row.value);
  const draw = (width, tall) => {
    const edge = { left: 2, right: width - 62, top: 8, bottom: tall - 20 };
    const low = Math.min(0, ...values);
    const high = Math.max(0, ...values);
    const room = (high - low || 1) * 0.05;
    const y = fit(low - (low < 0 ? room : 0), high + (high > 0 ? room : 0), edge.bottom, edge.top);
    const step = (edge.right - edge.left) / rows.length;
    const wide = Math.min(34, step * 0.7);
    const mid = (index) => edge.left + (index + 0.5) * step;
    const every = Math.max(1, Math.ceil(rows.length / Math.max(1, Math.floor(edge.right / 64))));
    return {
      nodes: [
        axes({ ...edge, xs: rows.map((row, index) => [index, row.name]).filter((_, index) => index % every === 0), ys: ticks(low, high, Math.max(2, Math.floor(tall / 44))), x: mid, y, yText: format }),
        rows.map((row, index) => s("rect", { class: `bar-value ${row.value < 0 ? "down" : "up"}`, x: round(mid(index) - wide / 2), width: round(wide), y: round(Math.min(y(0), y(row.value))), height: Math.max(1, round(Math.abs(y(row.value) - y(0)))) })),
        s("line", { class: "axis-line", x1: edge.left, x2: edge.right, y1: round(y(0)), y2: round(y(0)) }),
      ],
      count: rows.length, top: edge.top, bottom: edge.bottom,
      locate: mid,
      nearest: (px) => Math.max(0, Math.min(rows.length - 1, Math.floor((px - edge.left) / step))),
      read: (index) => [rows[index].title ?? rows[index].name, ["", format(rows[index].value), rows[index].value < 0 ? "down" : "up"], ...(rows[index].note ? [rows[index].note] : [])],
    };
  };
  return frame({ label, kind: "bars", height, draw, rows: () => ({ columns: ["", "value", ""], rows: rows.map((row) => [row.title ?? row.name, format(row.value), row.note ?? ""]) }) });
}

export function dailyChart(view) {
  const total = view.groups.reduce((sum, day) => sum + day.netPnl, 0);
  return barChart({
    label: `Net PnL of closed trades by day, ${money(total)} over ${view.groups.length} days`,
    rows: view.groups.map((day) => ({ name: day.name.slice(5), title: day.name, value: day.netPnl, note: `${day.trades} trade${day.trades === 1 ? "" : "s"}, ${day.wins} won` })),
    format: (value) => money(value),
  });
}

// -- reliability

/** What an agent claimed against what came; on the diagonal they are equal, a larger dot stands for more claims. */
export function reliabilityChart(agent) {
  const bins = agent.bins;
  const label = `${agent.role}: ${agent.n} claims, Brier ${number(agent.brier, 3)}; ` + bins.map((bin) => `claimed ${percent(bin.claimed, 0)}, came ${percent(bin.came, 0)} of ${bin.n}`).join("; ");
  const most = Math.max(1, ...bins.map((bin) => bin.n));
  const draw = (width, tall) => {
    const side = Math.min(width - 44, tall - 34);
    const edge = { left: 34, right: 34 + side, top: 6, bottom: 6 + side };
    const x = fit(0, 1, edge.left, edge.right);
    const y = fit(0, 1, edge.bottom, edge.top);
    const marks = side < 170 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
    return {
      nodes: [
        axes({ ...edge, xs: marks.map((value) => [value, percent(value, 0)]), ys: marks, x, y, yText: (value) => percent(value, 0).replace(" %", ""), gutterLeft: true }),
        s("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
        s("text", { class: "tick", x: edge.right, y: edge.bottom + 28, "text-anchor": "end" }, "claimed"),
        s("text", { class: "tick", x: edge.left + 4, y: edge.top + 10 }, "came"),
        bins.length > 1 ? s("path", { class: "line reliability", d: bins.map((bin, index) => `${index ? "L" : "M"}${round(x(bin.claimed))} ${round(y(bin.came))}`).join("") }) : null,
        bins.map((bin) => s("circle", { class: `dot ${agent.enough ? "" : "few"}`, cx: round(x(bin.claimed)), cy: round(y(bin.came)), r: round(3 + 7 * Math.sqrt(bin.n / most)) })),
      ],
      count: bins.length, top: edge.top, bottom: edge.bottom,
      locate: (index) => x(bins[index].claimed),
      nearest: (px) => nearestPlace(bins.map((bin) => x(bin.claimed)), px),
      read: (index) => [`${bins[index].n} claim${bins[index].n === 1 ? "" : "s"}`, ["claimed", percent(bins[index].claimed)], ["came", percent(bins[index].came)]],
    };
  };
  return frame({ label, kind: "reliability", height: (width) => Math.min(230, width - 4), draw, rows: () => ({ columns: ["claimed", "came", "claims"], rows: bins.map((bin) => [percent(bin.claimed), percent(bin.came), String(bin.n)]) }) });
}

