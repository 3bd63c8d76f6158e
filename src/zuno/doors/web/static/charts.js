// Charts as plain SVG. Each is a figure with a text alternative, a read-out that follows the pointer and the arrow keys,
// and its data as a table behind a disclosure. Colours come from classes, so a change of theme needs no redrawing.
import { h, replace, s, uniqueId } from "./dom.js";
import { compact, number, time } from "./format.js";

const HOUR = 3600_000;
const TIME_STEPS = [HOUR / 12, HOUR / 4, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 48 * HOUR, 72 * HOUR, 120 * HOUR, 168 * HOUR, 336 * HOUR, 720 * HOUR, 2160 * HOUR, 8760 * HOUR];
const ROWS_OF_TABLE = 120;

/** A scale from values to pixels. */
export function linear([low, high], [from, to]) {
  const span = high - low || 1;
  const scale = (value) => from + ((value - low) / span) * (to - from);
  scale.invert = (pixel) => low + ((pixel - from) / (to - from || 1)) * span;
  return scale;
}

/** Round numbers to write at an axis. */
export function niceTicks(low, high, wanted) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? 10 * power;
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) ticks.push(Number(value.toPrecision(12)));
  return ticks;
}

export function timeTicks(low, high, wanted) {
  const step = TIME_STEPS.find((size) => (high - low) / size <= wanted) ?? TIME_STEPS.at(-1);
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) ticks.push(value);
  return { ticks, step };
}

export function timeLabel(moment, step) {
  const iso = new Date(moment).toISOString();
  return step >= 24 * HOUR ? iso.slice(5, 10) : step >= HOUR && iso.slice(11, 16) === "00:00" ? iso.slice(5, 10) : iso.slice(11, 16);
}

/** Lowest and highest with a little air. */
export function extent(values, air = 0.06) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low === Infinity) return [0, 1];
  const pad = (high - low || Math.abs(high) || 1) * air;
  return [low - pad, high + pad];
}

export function path(points) {
  let text = "";
  for (const [x, y] of points) text += `${text ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
  return text;
}

/** The frame every chart stands in. `draw(svg, width, height)` is called when there is room, and again when it changes. */
export function chartFigure({ label, summary, height = 220, draw, table, legend, focusable = false }) {
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const svg = s("svg", { "aria-hidden": "true", class: "plot" });
  const area = h("div", { class: "chart", role: "img", "aria-label": summary ? `${label}. ${summary}` : label, tabindex: focusable ? "0" : null }, svg);
  const figure = h("figure", { class: "chart-figure" },
    focusable || legend ? h("div", { class: "chart-head" }, legend ?? null, readout) : null, area,
    table ? dataTable(label, table) : null);
  let last = 0;
  const redraw = () => {
    const width = Math.floor(area.clientWidth);
    if (width < 40) return;
    last = width;
    const tall = typeof height === "function" ? height(width) : height;
    svg.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", tall);
    svg.replaceChildren();
    draw(svg, width, tall);
    if (!figure.dataset.drawn) performance.mark("chart-drawn");
    figure.dataset.drawn = "true";
  };
  new ResizeObserver(() => { if (Math.floor(area.clientWidth) !== last) redraw(); }).observe(area);
  return { figure, area, svg, readout, redraw };
}

/** The numbers behind a chart, for those who would rather read them. Built when it is opened. */
function dataTable(label, { columns, rows }) {
  const place = h("div", { class: "table-wrap", tabindex: "0", role: "group", "aria-label": `${label}, data` });
  const details = h("details", { class: "chart-data" }, h("summary", null, "Data"), place);
  details.addEventListener("toggle", () => {
    if (!details.open || place.firstChild) return;
    const all = typeof rows === "function" ? rows() : rows;
    const step = Math.max(1, Math.ceil(all.length / ROWS_OF_TABLE));
    const shown = all.filter((_, index) => index % step === 0 || index === all.length - 1);
    replace(place, h("table", null,
      h("caption", null, step > 1 ? `${label}: every ${step}th of ${all.length} rows` : label),
      h("thead", null, h("tr", null, columns.map((column, index) => h("th", { scope: "col", class: index ? "number" : null }, column)))),
      h("tbody", null, shown.map((row) => h("tr", null, row.map((cell, index) =>
        index ? h("td", { class: "number" }, cell) : h("th", { scope: "row" }, cell)))))));
  });
  return details;
}

export function legendOf(items) {
  return h("ul", { class: "legend" }, items.map(([name, kind]) => h("li", null, h("i", { class: `key ${kind}`, "aria-hidden": "true" }), name)));
}

function drawYAxis(svg, scale, ticks, left, right, format, taken) {
  for (const value of ticks) {
    const y = scale(value);
    svg.append(s("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }));
    if (taken.every((other) => Math.abs(other - y) > 13)) svg.append(s("text", { class: "axis", x: right + 5, y: y + 3.5 }, format(value)));
  }
}

/**
 * Lines, bands and bars over time or another number.
 * series: `{name, points: [[x, y]], kind: "line" | "area" | "bars" | "step", tone: "c1"}`; bands: `{points: [[x, low, high]], tone}`;
 * spans: `{from, to, name, tone}` between two y values; marks: `{x, name}` upright lines; levels: `{y, name, tone}`.
 * x: "time" (milliseconds) or "number". rest: the x that is read out while nothing is pointed at; without it the newest. Zoom by dragging, by + and −; 0 shows all. Arrow keys read point by point.
 */
export function xyChart({ label, summary, series, bands = [], spans = [], marks = [], levels = [], x = "time", xFormat, yFormat = compact, readFormat = number, height = 230, zoom = true, zeroLine = false, legend, yDomain, rest }) {
  const formatX = xFormat ?? (x === "time" ? time : compact);
  const main = series.find((item) => item.points.length) ?? { points: [] };
  const all = [...series.flatMap((item) => item.points.map(([at]) => at)), ...bands.flatMap((band) => band.points.map(([at]) => at))];
  const whole = all.length ? [Math.min(...all), Math.max(...all)] : [0, 1];
  const barred = series.find((item) => item.kind === "bars");
  if (barred && barred.points.length) {
    const half = barred.points.length > 1 ? (barred.points[1][0] - barred.points[0][0]) / 2 : (x === "time" ? 12 * HOUR : 0.5);
    whole[0] -= half;
    whole[1] += half;
  }
  let view = [...whole];
  let cursor = null;
  let scales = null;
  const cross = s("g", { class: "cross" });
  const chart = chartFigure({
    label, summary, height, draw, focusable: true,
    legend: legend === undefined && series.length + bands.length > 1 ? legendOf([...series.map((item) => [item.name, item.tone ?? "c1"]), ...bands.filter((band) => band.name).map((band, index) => [band.name, `${band.tone ?? "c1"} ${index ? "deep" : "wash"}`])]) : legend,
    table: { columns: [x === "time" ? "time" : "x", ...series.map((item) => item.name)], rows: () => main.points.map(([at], index) => [formatX(at), ...series.map((item) => readFormat(item.points[index]?.[1]))]) },
  });

  function draw(svg, width, tall) {
    const inner = { left: 2, right: width - 58, top: 8, bottom: tall - 20 };
    const clip = uniqueId("clip");
    const inView = (at) => at >= view[0] && at <= view[1];
    const ys = [...series.flatMap((item) => item.points.filter(([at]) => inView(at)).map(([, value]) => value)), ...bands.flatMap((band) => band.points.filter(([at]) => inView(at)).flatMap(([, low, high]) => [low, high])), ...levels.filter((level) => level.fit).map((level) => level.y), ...spans.filter((span) => span.fit).flatMap((span) => [span.from, span.to])];
    if (barred || zeroLine) ys.push(0);
    const domain = yDomain ?? extent(ys);
    const toX = linear(view, [inner.left, inner.right]);
    const toY = linear(domain, [inner.bottom, inner.top]);
    scales = { toX, toY, inner };
    drawYAxis(svg, toY, niceTicks(domain[0], domain[1], Math.max(2, Math.floor(tall / 32))), inner.left, inner.right, yFormat, levels.filter((level) => level.name).map((level) => toY(level.y)));
    drawXAxis(svg, toX, inner, tall);
    svg.append(s("defs", null, s("clipPath", { id: clip }, s("rect", { x: inner.left, y: inner.top, width: inner.right - inner.left, height: inner.bottom - inner.top }))));
    const body = s("g", { "clip-path": `url(#${clip})` });
    for (const span of spans) {
      const top = Math.max(toY(span.to), inner.top - 2);
      const bottom = Math.min(toY(span.from), inner.bottom + 2);
      if (bottom <= top) continue;
      body.append(s("rect", { class: `span ${span.tone ?? "c1"}`, x: inner.left, y: top, width: inner.right - inner.left, height: bottom - top }),
        s("line", { class: `edge ${span.tone ?? "c1"}`, x1: inner.left, x2: inner.right, y1: toY(span.to), y2: toY(span.to) }),
        s("line", { class: `edge ${span.tone ?? "c1"}`, x1: inner.left, x2: inner.right, y1: toY(span.from), y2: toY(span.from) }));
      if (span.name) body.append(s("text", { class: "note", x: inner.left + 6, y: Math.min(Math.max(top + 13, inner.top + 12), inner.bottom - 4) }, span.name));
    }
    for (const band of bands) {
      const upper = band.points.map(([at, , high]) => [toX(at), toY(high)]);
      const lower = band.points.map(([at, low]) => [toX(at), toY(low)]).reverse();
      body.append(s("path", { class: `band ${band.tone ?? "c1"}`, d: `${path([...upper, ...lower])}Z` }));
    }
    if (domain[0] < 0 && domain[1] > 0) body.append(s("line", { class: "zero", x1: inner.left, x2: inner.right, y1: toY(0), y2: toY(0) }));
    for (const item of series) drawSeries(body, item, toX, toY, inner);
    for (const level of levels) {
      const y = toY(level.y);
      body.append(s("line", { class: `level ${level.tone ?? ""}`, x1: inner.left, x2: inner.right, y1: y, y2: y }));
      if (level.name && y > inner.top && y < inner.bottom) svg.append(s("rect", { class: "tag", x: inner.right + 1, y: y - 8, width: width - inner.right - 1, height: 16, rx: 2 }), s("text", { class: "tag-text", x: inner.right + 5, y: y + 4 }, level.name));
    }
    for (const mark of marks) body.append(s("line", { class: "mark", x1: toX(mark.x), x2: toX(mark.x), y1: inner.top, y2: inner.bottom }), mark.name ? s("text", { class: "note", x: toX(mark.x) + 4, y: inner.top + 10 }, mark.name) : "");
    svg.append(body, cross);
    drawCursor();
  }

  function drawXAxis(svg, toX, inner, tall) {
    const wanted = Math.max(2, Math.floor((inner.right - inner.left) / 76));
    const { ticks, step } = x === "time" ? timeTicks(view[0], view[1], wanted) : { ticks: niceTicks(view[0], view[1], wanted), step: 0 };
    for (const value of ticks) {
      const at = toX(value);
      if (at < inner.left + 14 || at > inner.right - 8) continue;
      svg.append(s("line", { class: "grid", x1: at, x2: at, y1: inner.top, y2: inner.bottom }),
        s("text", { class: "axis middle", x: at, y: tall - 6 }, x === "time" ? timeLabel(value, step) : formatX(value)));
    }
  }

  function drawSeries(body, item, toX, toY, inner) {
    const tone = item.tone ?? "c1";
    if (item.kind === "bars") {
      const wide = Math.max(1, ((inner.right - inner.left) / Math.max(1, item.points.length)) * 0.62);
      for (const [at, value] of item.points) {
        const top = Math.min(toY(value), toY(0));
        body.append(s("rect", { class: `bar ${value < 0 ? "down" : tone}`, x: toX(at) - wide / 2, y: top, width: wide, height: Math.max(1, Math.abs(toY(value) - toY(0))) }));
      }
      return;
    }
    const points = item.points.map(([at, value]) => [toX(at), toY(value)]);
    const line = item.kind === "step" ? points.flatMap((point, index) => (index ? [[point[0], points[index - 1][1]], point] : [point])) : points;
    if (item.kind === "area" && points.length) body.append(s("path", { class: `wash ${tone}`, d: `${path([[points[0][0], inner.bottom], ...points, [points.at(-1)[0], inner.bottom]])}Z` }));
    body.append(s("path", { class: `line ${tone}`, d: path(line) }));
  }

  function visible() {
    return main.points.map((point, index) => index).filter((index) => main.points[index][0] >= view[0] && main.points[index][0] <= view[1]);
  }

  function setCursor(index) {
    cursor = index;
    drawCursor();
    readPoint(index ?? restIndex());
  }

  function restIndex() {
    const after = rest === undefined ? -1 : main.points.findIndex(([at]) => at >= rest);
    return after < 0 ? main.points.length - 1 : after;
  }

  function readPoint(index) {
    if (!main.points[index]) return;
    const at = main.points[index][0];
    replace(chart.readout, h("span", { class: "when" }, formatX(at)), series.map((item) => {
      const point = item.points[index]?.[0] === at ? item.points[index] : item.points.find(([moment]) => moment === at);
      return point ? h("span", null, h("i", { class: `key ${item.tone ?? "c1"}`, "aria-hidden": "true" }), `${item.name} `, h("b", null, readFormat(point[1]))) : null;
    }));
  }

  function drawCursor() {
    cross.replaceChildren();
    if (cursor === null || !scales || !main.points[cursor]) return;
    const { toX, toY, inner } = scales;
    const [at, value] = main.points[cursor];
    if (at < view[0] || at > view[1]) return;
    cross.append(s("line", { x1: toX(at), x2: toX(at), y1: inner.top, y2: inner.bottom }), s("circle", { cx: toX(at), cy: toY(value), r: 3.5 }));
  }

  function nearest(pixel) {
    const at = scales.toX.invert(pixel);
    let best = null;
    let gap = Infinity;
    for (const index of visible()) {
      const distance = Math.abs(main.points[index][0] - at);
      if (distance < gap) [best, gap] = [index, distance];
    }
    return best;
  }

  function showSpan(low, high) {
    const least = (whole[1] - whole[0]) / Math.max(4, main.points.length / 4);
    if (high - low < least) return;
    view = [Math.max(whole[0], low), Math.min(whole[1], high)];
    chart.redraw();
  }

  function zoomBy(factor) {
    const middle = cursor === null ? (view[0] + view[1]) / 2 : main.points[cursor][0];
    showSpan(middle - (middle - view[0]) * factor, middle + (view[1] - middle) * factor);
  }

  const { area } = chart;
  const pixelOf = (event) => event.clientX - area.getBoundingClientRect().left;
  let dragFrom = null;
  area.addEventListener("pointermove", (event) => { if (scales) setCursor(nearest(pixelOf(event))); });
  area.addEventListener("pointerleave", () => { dragFrom = null; if (document.activeElement !== area) setCursor(null); });
  area.addEventListener("pointerdown", (event) => { if (zoom && event.pointerType === "mouse") dragFrom = pixelOf(event); });
  area.addEventListener("pointerup", (event) => {
    if (dragFrom === null || !scales) return;
    const [from, to] = [dragFrom, pixelOf(event)].sort((a, b) => a - b);
    dragFrom = null;
    if (to - from > 8) showSpan(scales.toX.invert(from), scales.toX.invert(to));
  });
  area.addEventListener("dblclick", () => showSpan(...whole));
  area.addEventListener("keydown", (event) => {
    const shown = visible();
    if (!shown.length || event.ctrlKey || event.metaKey) return;
    const place = cursor === null ? -1 : shown.indexOf(cursor);
    const step = event.shiftKey ? Math.max(1, Math.round(shown.length / 12)) : 1;
    const moves = { ArrowRight: () => shown[Math.min(shown.length - 1, place + step)], ArrowLeft: () => shown[place < 0 ? shown.length - 1 : Math.max(0, place - step)], Home: () => shown[0], End: () => shown.at(-1) };
    if (moves[event.key]) setCursor(moves[event.key]());
    else if (zoom && (event.key === "+" || event.key === "=")) zoomBy(0.6);
    else if (zoom && event.key === "-") zoomBy(1 / 0.6);
    else if (event.key === "0" || event.key === "Escape") { showSpan(...whole); setCursor(null); }
    else return;
    event.preventDefault();
  });
  area.addEventListener("blur", () => setCursor(null));
  readPoint(restIndex());
  if (zoom) chart.figure.querySelector(".chart-head").append(h("span", { class: "zoom" },
    zoomButton("Zoom in", "+", () => zoomBy(0.6)), zoomButton("Zoom out", "−", () => zoomBy(1 / 0.6)), zoomButton("Show all", "⤢", () => showSpan(...whole))));
  return chart.figure;
}

function zoomButton(label, text, onclick) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick }, text);
}

/** From a start over changes to an end: steps `{name, value, total}`; `total: true` stands on the ground. */
export function waterfall({ label, summary, steps, format = number, unit = "", height }) {
  let level = 0;
  const bars = steps.map((step) => {
    const from = step.total ? 0 : level;
    level = step.total ? step.value : level + step.value;
    return { ...step, from, to: level };
  });
  const rowHeight = 24;
  const chart = chartFigure({
    label,
    summary: summary ?? bars.map((bar) => `${bar.name} ${format(bar.value)}`).join(", "),
    height: height ?? bars.length * rowHeight + 8,
    draw: (svg, width) => {
      const nameWidth = Math.min(150, width * 0.34);
      const valueWidth = 92;
      const scale = linear(extent([0, ...bars.flatMap((bar) => [bar.from, bar.to])], 0.02), [nameWidth, width - valueWidth]);
      svg.append(s("line", { class: "zero", x1: scale(0), x2: scale(0), y1: 0, y2: bars.length * rowHeight + 4 }));
      bars.forEach((bar, index) => {
        const y = 4 + index * rowHeight;
        const [left, right] = [scale(bar.from), scale(bar.to)].sort((a, b) => a - b);
        const tone = bar.total ? "total" : bar.value < 0 ? "down" : bar.value > 0 ? "up" : "faint";
        svg.append(s("text", { class: "name", x: 0, y: y + 14 }, bar.name),
          s("rect", { class: `bar ${tone}`, x: left, y: y + 3, width: Math.max(1.5, right - left), height: rowHeight - 9, rx: 1.5 }),
          s("text", { class: `value end ${bar.total ? "strong" : tone}`, x: width, y: y + 14 }, format(bar.value)));
        if (index < bars.length - 1) svg.append(s("line", { class: "joint", x1: scale(bar.to), x2: scale(bar.to), y1: y + rowHeight - 6, y2: y + rowHeight + 3 }));
      });
    },
    table: { columns: ["", unit || "value"], rows: bars.map((bar) => [bar.name, format(bar.value)]) },
  });
  return chart.figure;
}

/** A range with the price in it, small enough for a table row. */
export function rangeBar({ lower, upper, price, inRange, label }) {
  const [low, high, now] = [Number(lower), Number(upper), Number(price)];
  const pad = Math.max((high - low) * 0.25, Math.max(0, low - now), Math.max(0, now - high)) * 1.15;
  const scale = linear([low - pad, high + pad], [2, 158]);
  const clamp = (value) => Math.min(157, Math.max(3, value));
  return s("svg", { class: `range-bar ${inRange ? "in" : "out"}`, viewBox: "0 0 160 18", role: "img", "aria-label": label },
    s("line", { class: "rail", x1: 2, x2: 158, y1: 9, y2: 9 }),
    s("rect", { class: "range", x: scale(low), y: 5, width: Math.max(2, scale(high) - scale(low)), height: 8, rx: 1.5 }),
    s("line", { class: "now", x1: clamp(scale(now)), x2: clamp(scale(now)), y1: 1, y2: 17 }));
}

/**
 * Ranges as bars over one price axis, with the pool's liquidity above them.
 * ranges: `{name, lower, upper, tone, note}`; liquidity: `{low, high, amount}` bands.
 */
export function rangesChart({ label, summary, ranges, liquidity = [], price, priceUnit, domain, rowHeight = 26 }) {
  const drawn = ranges.filter((range) => range.lower !== null && range.lower !== undefined);
  const edges = [price, ...drawn.flatMap((range) => [range.lower, range.upper])];
  const span = domain ?? extent(edges, 0.22);
  const shown = liquidity.filter((band) => band.high > span[0] && band.low < span[1]);
  const skyline = shown.length ? 84 : 8;
  const tall = skyline + drawn.length * rowHeight + 28;
  const chart = chartFigure({
    label, summary, height: tall, focusable: true,
    legend: shown.length ? legendOf([["liquidity", "depth"], ["at the price", "depth here"]]) : null,
    draw: (svg, width) => {
      const inner = { left: 2, right: width - 2 };
      const scale = linear(span, [inner.left, inner.right]);
      const most = Math.max(...shown.map((band) => band.amount), 1);
      for (const value of niceTicks(span[0], span[1], Math.max(2, Math.floor(width / 72)))) {
        const at = scale(value);
        if (at < 22 || at > width - 22) continue;
        svg.append(s("line", { class: "grid", x1: at, x2: at, y1: 4, y2: tall - 22 }), s("text", { class: "axis middle", x: at, y: tall - 7 }, compact(value)));
      }
      for (const band of shown) {
        const left = Math.max(inner.left, scale(band.low));
        const right = Math.min(inner.right, scale(band.high));
        const size = (band.amount / most) * (skyline - 22);
        svg.append(s("rect", { class: `depth ${band.low <= price && price < band.high ? "here" : ""}`, x: left, y: skyline - 6 - size, width: Math.max(1, right - left), height: size }));
      }
      svg.append(s("line", { class: "now", x1: scale(price), x2: scale(price), y1: 10, y2: tall - 22 }));
      drawn.forEach((range, index) => {
        const y = skyline + index * rowHeight;
        const left = Math.max(inner.left, scale(range.lower));
        const right = Math.min(inner.right, scale(range.upper));
        svg.append(s("rect", { class: `candidate ${range.tone ?? "c1"}`, x: left, y: y + 4, width: Math.max(2, right - left), height: rowHeight - 9, rx: 2 }));
        const text = s("text", { class: "note", y: y + rowHeight / 2 + 3.5 }, range.note ? `${range.name} · ${range.note}` : range.name);
        svg.append(text);
        const wide = 12 + (text.getComputedTextLength() || text.textContent.length * 6.5);
        const inside = right - left > wide;
        const room = width - right > wide;
        const before = !inside && !room && left > wide;
        text.setAttribute("x", before ? left - 6 : inside || !room ? Math.max(4, Math.min(left + 7, width - wide)) : right + 6);
        if (before) text.classList.add("end");
      });
      svg.append(s("text", { class: "note middle strong", x: Math.min(width - 40, Math.max(40, scale(price))), y: 8 }, number(price)));
    },
    table: { columns: ["range", `from, ${priceUnit}`, "to", ""], rows: ranges.map((range) => [range.name, number(range.lower), number(range.upper), range.note ?? ""]) },
  });
  const { area, readout, svg } = chart;
  const readPrice = () => replace(readout, h("span", { class: "when" }, "price now"), h("span", null, h("b", null, number(price)), ` ${priceUnit}`));
  readPrice();
  area.addEventListener("pointermove", (event) => {
    const at = linear([2, svg.viewBox.baseVal.width - 2], span)(event.clientX - area.getBoundingClientRect().left);
    const band = liquidity.find((item) => item.low <= at && at < item.high);
    replace(readout, h("span", { class: "when" }, `${number(at)} ${priceUnit}`), band ? h("span", null, "liquidity ", h("b", null, compact(band.amount))) : null);
  });
  area.addEventListener("pointerleave", readPrice);
  let chosen = -1;
  area.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp" && event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    chosen = Math.min(drawn.length - 1, Math.max(0, chosen + (event.key === "ArrowDown" || event.key === "ArrowRight" ? 1 : -1)));
    const range = drawn[chosen];
    if (range) replace(readout, h("span", { class: "when" }, range.name), h("span", null, `${number(range.lower)} – ${number(range.upper)} ${priceUnit} `, range.note ?? ""));
    event.preventDefault();
  });
  return chart.figure;
}

/** A line without axes, for a table row or a figure. */
export function sparkline(values, { label, tone = "c1", width = 120, height = 28 } = {}) {
  const known = values.map(Number).filter(Number.isFinite);
  const [low, high] = extent(known, 0.08);
  const toX = linear([0, Math.max(1, known.length - 1)], [1, width - 1]);
  const toY = linear([low, high], [height - 1, 1]);
  return s("svg", { class: "sparkline", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label ?? "trend" },
    s("path", { class: `line ${tone}`, d: path(known.map((value, index) => [toX(index), toY(value)])) }));
}

