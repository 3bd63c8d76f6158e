// What an owner does about positions here: plans without a debate, a range of one's own, levels, mandates, which pool pays.
import { h, replace } from "../dom.js";
import { compact, number, percent, signed } from "../format.js";
import { act, actButton } from "../acts.js";
import { commandButton, headline, notes, pairs, urgent } from "../documents.js";
import { withTools } from "../list_tools.js";
import { badge, button, collapse, facts, fillWith, loading, notice, sourceLine, table } from "../widgets.js";
import { planLink, poolName } from "./lp_parts.js";

/** A part that is drawn when it is opened first. `draw()` brings its content. */
export function opened(summary, draw, { open = false } = {}) {
  const place = h("div", { class: "stack-tight" });
  const details = h("details", { class: "opened", open }, h("summary", null, summary), place);
  let done = false;
  const show = async () => {
    if (done || !details.open) return;
    done = true;
    replace(place, loading());
    try {
      replace(place, await draw());
    } catch (error) {
      done = false;
      replace(place, notice(error.message, "bad"));
    }
  };
  details.addEventListener("toggle", show);
  return details;
}

/**
 * A button that makes a plan and goes to its page, where it is approved. Where the desk refuses and says that `--anyway` does it, that
 * is offered. `body()` is what is sent.
 */
function planButton(api, label, path, body, { kind, place, chain, title }) {
  const make = async (more) => {
    const sent = body();
    replace(place);
    try {
      const plan = await api.post(path, { ...sent, ...more, chain });
      location.hash = planLink(plan.planId);
      return "Planned. Nothing is signed: look at it, then approve it.";
    } catch (error) {
      if (error.status === 0) throw error; // asked again, it is the same plan
      const anyway = error.status === 409 && /--anyway/.test(error.message) && !more?.anyway;
      replace(place, notice(error.message, "bad"), anyway ? actButton(api, "Plan it anyway", () => make({ anyway: true }), { kind: "danger" }) : null);
      place.querySelector("button")?.focus();
      return false;
    }
  };
  return actButton(api, label, () => make(), { kind, title });
}

/** Collect, compound, close, add and remove, for one position. */
export function actsPart(api, position, chain) {
  const place = h("div", { class: "stack-tight", role: "status" });
  const at = `/lp/positions/${encodeURIComponent(position.id)}`;
  const tokens = [position.pool.currency0, position.pool.currency1].map((token) => (token.verified ? token.symbol : token.address));
  const name = (what) => `zuno lp ${what} ${position.id}${chain ? ` --chain ${chain}` : ""}`;
  const plain = (label, what, kind) => planButton(api, label, `${at}/${what}`, () => ({}), { kind, place, chain, title: name(what) });
  const amounts = tokens.map((token, side) => h("input", { type: "text", inputmode: "decimal", maxlength: "40", size: "10", "aria-label": `Amount of ${[position.pool.currency0, position.pool.currency1][side].symbol} to add`, placeholder: token.length < 12 ? token : "amount" }));
  const share = h("input", { type: "text", inputmode: "decimal", maxlength: "10", size: "5", value: "50", "aria-label": "Share of the liquidity to remove, in percent" });
  const added = () => {
    const typed = amounts.map((field, side) => field.value.trim() && `${field.value.trim()} ${tokens[side]}`).filter(Boolean);
    return { amounts: typed };
  };
  return [
    h("div", { class: "actions", role: "group", "aria-label": "Plans without a debate" }, plain("Collect fees", "collect"), plain("Compound", "compound"), plain("Close", "close", "danger")),
    byEnter(h("div", { class: "ask-desk", role: "group", "aria-label": "Add liquidity" }, amounts, planButton(api, "Add", `${at}/add`, added, { place, chain, title: name("add") }))),
    byEnter(h("div", { class: "ask-desk", role: "group", "aria-label": "Remove liquidity" }, h("label", { class: "field" }, share, "%"), planButton(api, "Remove", `${at}/remove`, () => ({ percent: share.value.trim() }), { place, chain, title: name("remove") }))),
    place,
    h("p", { class: "hint" }, "Each makes a plan that you look at, simulate and approve; of an amount that is left empty, what goes with the other is taken."),
  ];
}

function byEnter(group) {
  group.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.matches("input")) { event.preventDefault(); group.querySelector("button").click(); } });
  return group;
}

/** For all positions of the wallet at once. */
export function walletActs(api, chain) {
  const place = h("div", { class: "stack-tight", role: "status" });
  const plain = (label, path, kind, title) => planButton(api, label, path, () => ({}), { kind, place, chain, title });
  return [
    h("div", { class: "actions", role: "group", "aria-label": "For every position" }, plain("Collect all fees", "/lp/positions/all/collect", "", "zuno lp collect --all"), plain("Close all", "/lp/positions/all/close", "danger", "zuno lp close --all"), plain("Revoke allowances", "/lp/allowances/revoke", "", "zuno lp revoke")),
    place,
  ];
}

/** The range picker for a position, kept while the page reads again; `update(position, liquidity)`. */
export async function moveOwnRange(api, position, chain, bands) {
  const { ownRange } = await import("../own_range.js");
  const picker = ownRange(api, { chain, position: position.id });
  const update = (now, view) => picker.update({
    price: Number(view.price), priceUnit: view.priceUnit, spacing: now.pool.tickSpacing, bands: readBands(view),
    held: { lower: Number(now.priceLower), upper: Number(now.priceUpper), tickLower: now.tickLower, tickUpper: now.tickUpper },
  });
  update(position, bands);
  return { element: picker.element, update };
}

function readBands(view) {
  return view.bands.map((band) => ({ low: Number(band.priceLower), high: Number(band.priceUpper), amount: Number(band.liquidity) }));
}

/** Open a position in a pool of one's choice, with a range of one's own. */
export async function openOwnRange(api, chain, chosen) {
  const [{ ownRange }, { pools }] = await Promise.all([import("../own_range.js"), api.get("/lp/pools", { chain })]);
  const wish = h("input", { type: "text", maxlength: "300", placeholder: "0.5 ETH, or 0.5 ETH and 800 USDC", "aria-label": "What to bring" });
  const pool = h("select", { "aria-label": "Pool" }, pools.map((item) => h("option", { value: item.id, selected: item.id === chosen }, item.label)));
  const place = h("div", { class: "stack-tight" });
  let picker = null;
  const draw = async () => {
    const picked = pools.find((item) => item.id === pool.value);
    const view = await api.get(`/lp/pools/${encodeURIComponent(picked.id)}/liquidity`, { chain });
    if (pool.value !== picked.id) return;
    picker = ownRange(api, { chain, pool: picked.id, wish: () => wish.value.trim() });
    replace(place, picker.element);
    picker.update({ price: Number(view.price), priceUnit: view.priceUnit, spacing: picked.tickSpacing, bands: readBands(view), held: null });
    api.every(20_000, async () => {
      if (!place.isConnected || pool.value !== picked.id) return;
      const now = await api.get(`/lp/pools/${encodeURIComponent(picked.id)}/liquidity`, { chain }).catch(() => null);
      if (now && pool.value === picked.id) picker.update({ price: Number(now.price), priceUnit: now.priceUnit, spacing: picked.tickSpacing, bands: readBands(now), held: null });
    });
  };
  wish.addEventListener("input", () => picker?.reask());
  pool.addEventListener("change", () => draw().catch((error) => replace(place, notice(error.message, "bad"))));
  if (!pools.length) return notice("No pool is known on this chain.");
  await draw();
  return [h("div", { class: "ask-desk" }, pool, wish), place];
}

const LEVELS = [["price_above", "price rises to"], ["price_below", "price falls to"], ["fees_above", "uncollected fees reach"]];

/** Levels that are told to the owner: of one position, or (without one) of all. */
export function levelsPart(api, { position, chain } = {}) {
  const list = h("div", { class: "slot" }, loading());
  const load = collapse(() => fillWith(list, () => api.get("/lp/alerts"), (view) => {
    const own = (item) => !position || (String(item.position) === String(position.id) && item.chain === position.chain);
    const alerts = view.alerts.filter(own);
    return [
      alerts.length ? table("Alerts", [
        { name: "Alert", cell: (alert) => [alert.reason, h("span", { class: "sub" }, alert.position ? `position ${alert.position} · ${alert.chain}` : alert.chain)] },
        { name: "State", cell: (alert) => badge(alert.state, alert.state === "active" ? "warn" : "") },
        { name: "", cell: (alert) => [actButton(api, "Seen", () => api.post(`/lp/alerts/${encodeURIComponent(alert.id)}/ack`), { after: load, title: "silent until it recovers or gets worse" }), " ", actButton(api, "6 h", () => api.post(`/lp/alerts/${encodeURIComponent(alert.id)}/snooze`, { span: "6h" }), { after: load, title: "silent for six hours" })] },
      ], alerts) : null,
      table("Levels", [
        { name: "Tell me when", cell: (rule) => [`${rule.condition.replaceAll("_", " ")} ${number(rule.level)}`, h("span", { class: "sub" }, `${rule.unit} · position ${rule.position}`)], sort: (rule) => rule.condition },
        { name: "State", cell: (rule) => badge(rule.state, rule.state === "reached" ? "warn" : "") },
        { name: "", cell: (rule) => actButton(api, "Remove", () => api.post(`/lp/alerts/${encodeURIComponent(rule.id)}/remove`), { after: load, title: `zuno alerts remove ${rule.id}` }) },
      ], view.rules.filter(own), { empty: "No level is set." }),
      sourceLine({ href: api.address("/lp/alerts"), text: "the monitor's book" }),
    ];
  }, { keep: true }));
  load();
  if (!position) return list;
  const which = h("select", { "aria-label": "Tell me when" }, LEVELS.map(([value, text]) => h("option", { value }, text)));
  const level = h("input", { type: "text", inputmode: "decimal", maxlength: "40", size: "10", "aria-label": "Level", placeholder: number(position.price).replaceAll(",", "") });
  const answer = h("div", { class: "stack-tight", role: "status" });
  const add = actButton(api, "Set level", async () => {
    replace(answer);
    try {
      const done = await api.post("/lp/alerts", { position: position.id, chain, condition: which.value, level: level.value.trim() });
      replace(answer, done.notes.map((text) => notice(text)));
      level.value = "";
      return done.done;
    } catch (error) {
      if (error.status === 0) throw error;
      replace(answer, notice(error.message, "bad"));
      return false;
    }
  }, { after: load, title: `zuno alerts add ${position.id}` });
  return [byEnter(h("div", { class: "ask-desk", role: "group", "aria-label": "Set a level" }, which, level, add)), answer, list];
}

/** What the monitor may do by itself: shown, paused, ended. It is granted at a terminal. */
export function mandatesPart(api) {
  const list = h("div", { class: "slot" }, loading());
  const load = collapse(() => fillWith(list, () => api.read("/lp/mandates"), ({ view, document }) => [
    h("p", null, headline(document, { level: "b" })),
    urgent(document),
    view.mandates.map((mandate, place) => [
      facts(pairs(document?.sections[place])),
      h("ul", { class: "bullets" }, mandate.terms.map((text) => h("li", null, text))),
      actButton(api, "Revoke", async () => (await api.post("/lp/mandates/revoke", { chain: mandate.mandate.chain })).said, { kind: "danger", after: load, title: `zuno lp mandate revoke --chain ${mandate.mandate.chain}` }),
    ]),
    notes(document),
    h("div", { class: "actions" },
      view.paused
        ? actButton(api, "Resume", () => act(api, "/lp/mandates/resume", {}, { title: "The monitor acts again", action: "Resume" }).then((done) => done?.said), { after: load, title: "zuno lp resume" })
        : view.mandates.length ? actButton(api, "Pause", async () => (await api.post("/lp/mandates/pause")).said, { after: load, title: "zuno lp pause" }) : null,
      commandButton("Grant one at a terminal", "lp mandate grant --position ID --exit-below PRICE")),
    sourceLine({ href: api.address("/lp/mandates"), text: "the journal" }),
  ], { keep: true }));
  load();
  api.on("entry", (data) => { if (/mandate/.test(data.kind ?? "")) load(); });
  return list;
}

/** Which pools' fees pay for their LVR, and how sure that is. */
export async function rankPart(api, chain, choose) {
  const view = await api.get("/lp/pools/rank", { chain });
  const most = Math.max(2, ...view.pools.map((row) => row.ci80?.[1] ?? 0));
  return [
    withTools(table("Pools by fee cover", [
      { name: "Pool", cell: (row) => [poolName(row.pool), row.measuredBy ? h("span", { class: "sub" }, `by ${row.measuredBy}`) : null] },
      { name: "Fee cover", number: true, title: "fees over what arbitrage took, 30 days", cell: (row) => [number(row.feesOverLvr, row.feesOverLvr === null ? undefined : 2), row.ci80 ? h("span", { class: "sub" }, `80 %: ${number(row.ci80[0], 2)} – ${number(row.ci80[1], 2)}`) : null], sort: (row) => row.feesOverLvr ?? -1 },
      { name: "Pays", cell: (row) => row.pays ? badge("pays", "good") : badge(row.notRanked ? String(row.notRanked).replaceAll("_", " ") : "does not pay", row.notRanked ? "" : "warn"), sort: (row) => (row.ci80 ? row.ci80[0] / most : -1) },
      { name: "Fees less LVR, 7 d", number: true, hide: true, title: "per $10,000 in range", cell: (row) => signed(row.feesPer10k7d === null ? null : row.feesPer10k7d - row.lvrPer10k7d, 2) },
      { name: "30 d", number: true, hide: true, title: "per $10,000 in range", cell: (row) => signed(row.feesPer10k30d === null ? null : row.feesPer10k30d - row.lvrPer10k30d, 2) },
      { name: "Depth ±2 %", number: true, hide: true, cell: (row) => (row.depthUsd === null ? "–" : `$${compact(row.depthUsd)}`), sort: (row) => row.depthUsd ?? -1 },
      { name: "Volume, 7 d", number: true, hide: true, cell: (row) => (row.volumeUsd7d === null ? "–" : `$${compact(row.volumeUsd7d)}`), sort: (row) => row.volumeUsd7d ?? -1 },
      { name: "Yours dilutes", number: true, hide: true, title: `a position of $${compact(view.amountUsd)}`, cell: (row) => percent(row.dilution, 2) },
      { name: "", cell: (row) => button("Open here", () => choose(row.pool.id)) },
    ], view.pools, { empty: "No pool is known on this chain." }), { name: "ranked pools", rows: view.pools }),
    h("p", { class: "hint" }, `Sums are dollars per $10,000 in a range of ±${view.rangePercent} % that is in range all the time. A pool pays where the low end of its fee cover is above 1 by so much that the best of ${view.ranked} does not only look good by chance.`),
    view.notes.map((text) => notice(text)),
    sourceLine({ href: api.address("/lp/pools/rank"), at: view.until, text: `finished days, ${view.chain} block ${view.block}` }),
  ];
}
