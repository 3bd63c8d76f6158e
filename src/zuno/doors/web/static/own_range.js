// A range of one's own on the liquidity chart: drag or type both edges, see what it would earn and cost, let the desk answer.
import { h, replace, s, setVariable } from "./dom.js";
import { compact, isKnown, money, number, percent, signed, signedPercent, tone } from "./format.js";
import { badge, facts, notice, sourceLine, stat, stats } from "./widgets.js";
import { legendOf, linear, niceTicks, xyChart } from "./charts.js";
import { pricesTurned } from "./price_way.js";
import { verdictBadge } from "./pages/lp_parts.js";
import { holdDebate } from "./pages/debate.js";

/** Milliseconds without a change until the server is asked. */
const SETTLE = 150;
const TALL = 190;
const SPANS = [0.05, 0.1, 0.2, 0.5];
const PROFILES = ["conservative", "balanced", "aggressive"];
const SIDES = ["lower", "upper"];

/**
 * `about`: what `/lp/range` and `/lp/recommend` are asked about, `{chain, position}` or `{chain, pool, wish()}`. The pool comes by
 * `update({price, priceUnit, spacing, bands, held})`, again and again: what was dragged or typed stays. `held` is the range that
 * there is, `{lower, upper, tickLower, tickUpper}`.
 */
export function ownRange(api, about) {
  let pool = null;
  let edges = null; // prices as the server tells them, never turned over
  let typed = {}; // by side, what the owner wrote, as long as it was not dragged since
  let ticks = null; // where the edges are known by them: the range held now, and what the last answer was about
  let turned = pricesTurned();
  let domain = null;
  let dragging = null;
  let asked = 0;
  let pending = Promise.resolve(null);
  let giveUp = () => {}; // of what is asked no more
  let timer = null;
  let answer = null;

  const shown = (price) => (turned ? 1 / price : price);
  const sideShown = (side) => (turned ? SIDES[1 - SIDES.indexOf(side)] : side);
  const unit = () => (turned ? pool.priceUnit.split(" per ").reverse().join(" per ") : pool.priceUnit);

  const fields = Object.fromEntries(SIDES.map((side) => [side, h("input", { type: "text", inputmode: "decimal", maxlength: "40", autocomplete: "off", spellcheck: "false", name: `range-${side}`, "aria-describedby": "range-unit range-said" })]));
  const handles = Object.fromEntries(SIDES.map((side) => [side, h("div", { class: "edge-handle", role: "slider", tabindex: "0", "data-edge": side, "aria-label": side === "lower" ? "Lower edge" : "Upper edge" })]));
  const svg = s("svg", { class: "plot", "aria-hidden": "true" });
  const stage = h("div", { class: "range-stage" }, svg, SIDES.map((side) => handles[side]));
  const unitNote = h("span", { class: "soft", id: "range-unit" });
  const turn = h("button", { type: "button", class: "button", "aria-pressed": String(turned) }, "Invert");
  const problems = h("div", { id: "range-said", role: "status", class: "stack-tight" });
  const results = h("div", { class: "stack-tight range-results", "aria-live": "off" });
  const debate = h("div", { class: "stack-tight" });
  const profile = h("select", { "aria-label": "Risk profile" }, PROFILES.map((name) => h("option", { value: name, selected: name === "balanced" }, name)));
  const anyway = h("input", { type: "checkbox" });
  const go = h("button", { type: "submit", class: "button primary" }, "Let the desk answer");
  const form = h("form", { class: "ask-desk", onsubmit: letAnswer }, h("label", { class: "field" }, "Profile", profile), h("label", { class: "field check" }, anyway, "take mine, even against its advice"), go);
  const spans = h("div", { class: "choices", role: "group", "aria-label": "Width around the price" });

  profile.addEventListener("change", () => ask(0));
  turn.addEventListener("click", () => {
    turned = !turned;
    domain = null;
    typed = {};
    turn.setAttribute("aria-pressed", String(turned));
    drawAll();
    drawAnswer();
  });
  for (const side of SIDES) {
    fields[side].addEventListener("input", () => type(side));
    handles[side].addEventListener("keydown", (event) => step(event, side));
    handles[side].addEventListener("pointerdown", (event) => grab(event, side));
  }
  stage.addEventListener("pointermove", drag);
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) stage.addEventListener(end, drop);
  let width = 0;
  new ResizeObserver(() => { if (pool && Math.floor(stage.clientWidth) !== width) draw(); }).observe(stage);

  // -- the edges

  function type(side) {
    typed[side] = fields[side].value;
    const value = read(typed[side]);
    if (value > 0) {
      const real = sideShown(side);
      edges = { ...edges, [real]: turned ? 1 / value : value };
    }
    ticks = null;
    if (edges.lower < edges.upper) draw();
    ask();
  }

  function grab(event, side) {
    if (event.button) return;
    dragging = { side, offset: event.clientX - handles[side].getBoundingClientRect().left - handles[side].offsetWidth / 2 };
    handles[side].setPointerCapture?.(event.pointerId);
    handles[side].focus();
    event.preventDefault();
  }

  function drag(event) {
    if (!dragging) return;
    const at = scale().invert(event.clientX - dragging.offset - stage.getBoundingClientRect().left);
    place(dragging.side, Math.min(domain[1], Math.max(domain[0], at)));
  }

  function drop() {
    if (!dragging) return;
    dragging = null;
    domain = null;
    draw();
    ask(0);
  }

  function step(event, side) {
    const count = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (!count) return;
    event.preventDefault();
    place(side, shown(edges[sideShown(side)]) * (1.0001 ** pool.spacing) ** (count * (event.shiftKey ? 10 : 1)));
  }

  /** An edge, as it is shown, to a price as it is shown; the other edge stays where it is. */
  function place(side, price) {
    const real = sideShown(side);
    const least = 1.0001 ** pool.spacing;
    const value = shown(price);
    const bound = real === "lower" ? Math.min(value, edges.upper / least) : Math.max(value, edges.lower * least);
    if (!(bound > 0) || !Number.isFinite(bound)) return;
    edges = { ...edges, [real]: bound };
    typed = {};
    ticks = null;
    drawAll();
    ask();
  }

  function spread(share) {
    edges = { lower: pool.price * (1 - share), upper: pool.price * (1 + share) };
    typed = {};
    ticks = null;
    domain = null;
    drawAll();
    ask(0);
  }

  function hold() {
    edges = { lower: pool.held.lower, upper: pool.held.upper };
    ticks = { lower: pool.held.tickLower, upper: pool.held.tickUpper };
    typed = {};
    domain = null;
    drawAll();
    ask(0);
  }

  // -- asking

  function query() {
    if (ticks) return { lower: String(ticks.lower), upper: String(ticks.upper), ticks: true };
    const written = Object.fromEntries(SIDES.map((side) => {
      const own = typed[sideShown(side)];
      return [side, own !== undefined && (!turned || !(read(own) > 0)) ? own.trim() || "–" : plain(edges[side])];
    }));
    return { ...written, ticks: false };
  }

  function ask(wait = SETTLE) {
    clearTimeout(timer);
    asked += 1;
    results.classList.add("old");
    const mine = asked;
    giveUp();
    pending = new Promise((resolve) => {
      giveUp = () => resolve(null);
      timer = setTimeout(() => resolve(load(mine)), wait);
    });
  }

  async function load(mine) {
    const wish = about.wish?.();
    if (about.wish && !wish) {
      answer = null;
      say(notice("Say what to bring: 0.5 ETH, or 0.5 ETH and 800 USDC."));
      replace(results);
      return null;
    }
    const wanted = query();
    try {
      const view = await api.get("/lp/range", { chain: about.chain, position: about.position, pool: about.pool, wish, profile: profile.value, ...wanted });
      if (mine !== asked) return null;
      answer = { view, wanted };
      say();
      drawAnswer();
      return answer;
    } catch (error) {
      if (error.name === "AbortError" || mine !== asked) return null;
      answer = null;
      say(notice(error.message, "bad"));
      return null;
    }
  }

  function say(problem = null) {
    replace(problems, problem);
    for (const side of SIDES) fields[side].setAttribute("aria-invalid", String(Boolean(problem)));
    results.classList.toggle("old", Boolean(problem));
  }

  async function letAnswer(event) {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    try {
      let known = null;
      let waited = null; // an edge may move, or the price, while the figures are on their way
      while (waited !== pending) known = await (waited = pending);
      if (!known) return;
      const { candidate } = known.view;
      const range = { range: [String(candidate.tickLower), String(candidate.tickUpper)], ticks: true, anyway: anyway.checked };
      const wish = about.wish?.();
      const body = about.position ? { kind: "rebalance", position: about.position } : { kind: "create", wish, pool: about.pool };
      if (candidate.kind === "hold") say(notice("This is the range that it has now: move an edge first.", "warn"));
      else await holdDebate(api, { ...body, ...range, chain: about.chain, profile: profile.value }, debate);
    } finally {
      go.disabled = false;
    }
  }

  // -- drawing

  function scale() {
    return linear(domain, [2, Math.max(3, width - 2)]);
  }

  function drawAll() {
    for (const side of SIDES) {
      const price = shown(edges[sideShown(side)]);
      if (typed[side] === undefined) fields[side].value = plain(price, 6);
    }
    replace(unitNote, unit());
    draw();
  }

  function draw() {
    width = Math.floor(stage.clientWidth);
    if (width < 40) return;
    const [low, high] = SIDES.map((side) => shown(edges[sideShown(side)]));
    const price = shown(pool.price);
    if (!domain || (!dragging && (low < domain[0] || high > domain[1]))) domain = [Math.max(0, Math.min(price * 0.72, low * 0.94)), Math.max(price * 1.34, high * 1.06)];
    const at = scale();
    svg.setAttribute("viewBox", `0 0 ${width} ${TALL}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", TALL);
    svg.replaceChildren();
    for (const value of niceTicks(domain[0], domain[1], Math.max(2, Math.floor(width / 72)))) {
      if (at(value) > 22 && at(value) < width - 22) svg.append(s("line", { class: "grid", x1: at(value), x2: at(value), y1: 4, y2: TALL - 22 }), s("text", { class: "axis middle", x: at(value), y: TALL - 7 }, compact(value)));
    }
    const bands = pool.bands.map(({ low: from, high: to, amount }) => (turned ? { low: 1 / to, high: 1 / from, amount } : { low: from, high: to, amount })).filter((band) => band.high > domain[0] && band.low < domain[1]);
    const most = Math.max(...bands.map((band) => band.amount), 1);
    for (const band of bands) {
      const [left, right] = [Math.max(2, at(band.low)), Math.min(width - 2, at(band.high))];
      const size = (band.amount / most) * (TALL - 54);
      svg.append(s("rect", { class: `depth ${band.low <= price && price < band.high ? "here" : ""}`, x: left, y: TALL - 22 - size, width: Math.max(1, right - left), height: size }));
    }
    const [left, right] = [at(Math.max(domain[0], low)), at(Math.min(domain[1], high))];
    svg.append(s("rect", { class: "candidate c1 own-span", x: left, y: 16, width: Math.max(2, right - left), height: TALL - 38 }));
    svg.append(s("line", { class: "now", x1: at(price), x2: at(price), y1: 14, y2: TALL - 22 }), s("text", { class: "note middle strong", x: Math.min(width - 40, Math.max(40, at(price))), y: 10 }, number(price)));
    SIDES.forEach((side, index) => {
      const value = [low, high][index];
      const handle = handles[side];
      setVariable(handle, "--at", `${[left, right][index]}px`);
      handle.setAttribute("aria-valuemin", "0");
      handle.setAttribute("aria-valuemax", plain(domain[1] * 100, 6));
      handle.setAttribute("aria-valuenow", plain(value, 6));
      handle.setAttribute("aria-valuetext", `${number(value)} ${unit()}, ${signedPercent(value / price - 1)} from the price`);
    });
  }

  function drawAnswer() {
    if (!answer) return;
    const { view } = answer;
    const { candidate, hold: held } = view;
    const buffers = turned ? [view.bufferUpper, view.bufferLower].map((change) => 100 / (1 + Number(change) / 100) - 100) : [view.bufferLower, view.bufferUpper];
    const rows = view.table.map((row) => ({ price: shown(Number(row.price)), worth: Number(row.worth), held: Number(row.hodlWorth) })).sort((one, other) => one.price - other.price);
    const { carry, stress } = candidate;
    const today = Number(view.table.find((row) => Number(row.percent) === 0).worth);
    const kept = view.positionId ? (text) => `now: ${text}` : () => null;
    const snapped = SIDES.map((side) => shown(Number(sideShown(side) === "lower" ? candidate.priceLower : candidate.priceUpper)));
    replace(results,
      h("p", null, candidate.kind === "hold" ? badge("held now") : verdictBadge(candidate.verdict), " ", h("b", null, `${number(snapped[0])} – ${number(snapped[1])} ${unit()}`), " on the pool's ticks. ", h("span", { class: "soft" }, candidate.kind === "hold" ? "Move an edge to see another range beside it." : `By rule: ${candidate.reason}.`)),
      stats(null,
        stat("Fees, 24 h", isKnown(carry.fees24h) ? `${number(carry.fees24h, 2)} ${carry.token}` : "unknown", { note: kept(number(held.carry.fees24h, 2)) }),
        stat("Net, 24 h", isKnown(carry.net24h) ? `${signed(carry.net24h, 2)} ${carry.token}` : "unknown", { tone: tone(carry.net24h), note: kept(signed(held.carry.net24h, 2)) ?? "fees less LVR", title: "fees less LVR" }),
        stat("Fee cover", view.cover ? number(view.cover.ratio, 2) : "unknown", { tone: view.cover ? (view.cover.high < 1 ? "down" : view.cover.low > 1 ? "up" : "warn") : "", note: view.cover ? `80 %: ${number(view.cover.low, 2)} – ${number(view.cover.high, 2)}, ${view.cover.days} d` : null, title: "fees over what arbitrage took; under 1 no width pays" }),
        stat("Buffer", view.inRange ? `${signedPercent(buffers[0] / 100)} / ${signedPercent(buffers[1] / 100)}` : "out of range", { tone: `long ${view.inRange ? "" : "down"}`, note: "to the edges" }),
        stat("In range", stress ? percent(stress.x1.inRangeShare, 0) : "unknown", { note: stress ? stress.x1.censored ? "of 14 d; most paths never leave" : `of 14 d; half of the paths leave in ${stress.x1.medianHours} h` : null }),
        stat("Worth, 14 d", isKnown(carry.worth) ? `${signed(carry.worth, 2)} ${carry.token}` : "unknown", { tone: tone(carry.worth), note: kept(signed(held.carry.worth, 2)) ?? "after its cost" }),
        stat("Cost", isKnown(carry.cost) ? `${number(carry.cost, 2)} ${carry.token}` : "unknown", { note: candidate.leftover?.share > 0.0005 ? `${percent(candidate.leftover.share, 2)} stays home` : null })),
      facts([
        ["Goes in", `${number(candidate.amount0Human)} ${candidate.pool.currency0.symbol} · ${number(candidate.amount1Human)} ${candidate.pool.currency1.symbol}`],
        ["Worth", money(today, view.unit)],
        ...[-20, 20].map((change) => { const row = view.table.find((item) => Number(item.percent) === change); return row ? [`If ${pool.priceUnit.split(" per ").at(-1)} goes ${change < 0 ? "−" : "+"}20 %`, h("span", { class: tone(row.worth - today) }, `${signed(row.worth - today, 2)} ${view.unit}`, row.inRange ? "" : ", out of range")] : null; }),
      ]),
      xyChart({
        label: "Worth of this range at other prices", x: "number", xFormat: (value) => number(value), zoom: false, height: 170,
        series: [{ name: "this range", points: rows.map((row) => [row.price, row.worth]), tone: "c1" }, { name: "tokens held", points: rows.map((row) => [row.price, row.held]), tone: "c2" }],
        marks: [{ x: shown(Number(view.price)), name: "now" }], rest: shown(Number(view.price)), summary: `in ${view.unit}, without fees`,
      }),
      sourceLine({ href: api.address(`/lp/range?${new URLSearchParams(Object.entries({ chain: about.chain, position: about.position, pool: about.pool, wish: about.wish?.(), profile: profile.value, ...answer.wanted }).filter(([, value]) => value !== undefined && value !== null))}`), at: view.timestamp, text: `the rules of the debate, ${view.chain} block ${view.block}` }));
    results.classList.remove("old");
  }

  const element = h("div", { class: "stack-tight own-range" },
    h("div", { class: "range-fields" },
      h("label", { class: "field" }, "From", fields.lower), h("label", { class: "field" }, "to", fields.upper), unitNote, turn, spans),
    legendOf([["liquidity", "depth"], ["your range", "c1"]]), stage,
    h("p", { class: "hint" }, "Drag an edge, or choose it by Tab and move it with ← and → (Page Up and Down: ten steps)."),
    problems, results, form, debate);

  return {
    element,
    /** The pool as it is now. */
    update(now) {
      const first = pool === null;
      const moved = !first && now.price !== pool.price;
      pool = now;
      if (first) {
        replace(spans, SPANS.map((share) => h("button", { type: "button", onclick: () => spread(share) }, `±${Math.round(share * 100)} %`)), now.held ? h("button", { type: "button", onclick: hold }, "held now") : null);
        if (now.held) hold();
        else spread(0.1);
        return;
      }
      draw();
      if (moved) ask();
    },
    /** What is brought has changed. */
    reask: () => { if (pool) ask(); },
  };
}

/** What an owner wrote, as a number; NaN for anything else. */
function read(text) {
  return /^\d[\d,]*(\.\d*)?$/.test(text.trim()) ? Number(text.trim().replaceAll(",", "")) : NaN;
}

/** A number as the server reads it: no exponent, no thousands, as many digits as matter. */
function plain(value, digits = 10) {
  const size = Math.floor(Math.log10(Math.abs(value) || 1));
  const text = value.toFixed(Math.min(100, Math.max(0, digits - 1 - size)));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
