// A plan: what the desk decided and why, what it was weighed by, and what can be done with it.
import { h, replace } from "../dom.js";
import { clock, isKnown, money, number, percent, shorten, signed, span, time, tone } from "../format.js";
import { figures, findAct, headline, notes, pairs, urgent, wordPairs } from "../documents.js";
import { askForWord, badge, button, collapse, facts, fillWith, loading, notice, panel, problemNotice, sourceLine, stat, table, toast } from "../widgets.js";
import { rangesChart, waterfall, xyChart } from "../charts.js";
import { planState, transcript, verdictBadge } from "./lp_parts.js";
import { showInstructed } from "./instructed.js";

const REFRESH = 20_000;

export async function show(root, params, api) {
  const at = `/lp/plans/${encodeURIComponent(params.id)}`;
  const argued = await api.read(at).catch((error) => {
    if (error.status !== 409) throw error;
    return null; // it was made without a debate
  });
  if (!argued) return showInstructed(root, params, api, at);
  const { view: plan, document } = argued;
  const slots = Object.fromEntries(["state", "change", "envelopes", "candidates", "fan"].map((name) => [name, h("div", { class: "slot" }, loading())]));
  const readAt = h("time", null, "…");
  const source = { href: api.address(at), at: plan.timestamp, text: `the journal · ${plan.chain} block ${plan.block}` };
  const why = document?.sections[0].facts.find((fact) => fact.label === "why");
  const decided = { facts: (document?.sections[0].facts ?? []).filter((fact) => fact !== why) };
  const about = plan.positionId ? `position ${plan.positionId}` : "a new position";
  replace(root,
    h("div", { class: "page-head" }, h("a", { href: "#/liquidity", class: "crumb" }, "Liquidity"), h("span", { class: "crumb", "aria-hidden": "true" }, "/"),
      headline(document, { title: `${capital(plan.recommended.kind)} ${about}` })),
    urgent(document),
    why ? h("p", null, why.value.text) : null,
    plan.recommended.kind === "hold" ? h("p", { class: "notice" }, plan.positionId ? "Holding needs no transaction: there is nothing to approve." : "Nothing is opened: there is nothing to approve.")
      : panel("Carry it out", { id: "carry-out" }, slots.state, sourceLine({ href: api.address(`${at}/status`), text: [`${plan.chain}, the journal and the chain, read at `, readAt] })),
    panel("Before → after", { id: "change", source }, slots.change),
    planFigures(plan, document, source),
    h("div", { class: "grid" },
      panel("Candidates over price and liquidity", { wide: "half" }, slots.candidates),
      panel("Stress: a thousand paths, 14 days", { wide: "half" }, slots.fan),
      panel("What was decided", { source }, facts(wordPairs(decided)), (document?.sections.at(-1)?.sentences ?? []).map((value) => h("p", null, value.text)), notes(document)),
      panel("Carry of the choice", { wide: "half", source }, carryPart(plan)),
      panel(plan.positionId ? "Against holding" : "Against opening nothing", { wide: "half", source }, edgePart(plan)),
      panel("The ballot", { source }, candidatesTable(plan), earlierTable(plan)),
      panel("The argument", { wide: "half", source }, transcript(plan.transcript)),
      h("div", { class: "half stack" },
        panel("Who spoke", { source }, voicesTable(plan), slots.envelopes),
        panel("Sources", {}, sourcesTable(plan), sourceLine({ href: api.address(at), at: plan.timestamp, text: `${plan.chain} block ${plan.block} · decided bytes ${shorten(plan.hash, 10, 6)}` })))));

  fillWith(slots.change, () => findPosition(plan, api), (position) => changePart(plan, position, document));
  fillWith(slots.envelopes, () => api.get(`/lp/debates/${encodeURIComponent(plan.requestId)}`), (debate) => envelopesPart(debate.messages));
  const poolId = plan.recommended.pool.id;
  fillWith(slots.candidates, () => api.get(`/lp/pools/${encodeURIComponent(poolId)}/liquidity`, { chain: plan.chain }), (liquidity) => [candidatesChart(plan, liquidity), sourceLine({ href: api.address(`/lp/pools/${encodeURIComponent(poolId)}/liquidity`), at: liquidity.timestamp, text: `initialised ticks, ${liquidity.chain} block ${liquidity.block}; ranges of block ${plan.block}` })]);
  fillWith(slots.fan, async () => {
    const [fan, open] = await Promise.all([api.get(`${at}/fan`), api.get("/lp/positions", { chain: plan.chain }).catch(() => ({ positions: [] }))]);
    const near = open.positions.find((position) => position.pool.id === poolId);
    return { fan, history: near ? await api.get(`/lp/positions/${encodeURIComponent(near.id)}/history`, { chain: plan.chain }) : null };
  }, ({ fan, history }) => fanPart(plan, fan, history, api, at));
  const result = h("div", { class: "slot", "aria-live": "polite" });
  const loadState = collapse(() => fillWith(slots.state, async () => {
    const status = await api.read(`${at}/status`);
    replace(readAt, `${clock(Date.now())} UTC`);
    return status;
  }, (status) => statePart(status, api, at, result, loadState), { keep: true }));
  if (plan.recommended.kind === "hold") return;
  await loadState();
  api.on("plan", (data) => { if (!data.planId || data.planId === params.id) loadState(); });
  api.onReturn(loadState);
  api.every(REFRESH, loadState);
}

function capital(word) {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** The position as it is now; null where there is none, or none any more. */
async function findPosition(plan, api) {
  if (!plan.positionId) return null;
  try {
    const view = await api.get("/lp/positions", { chain: plan.chain });
    return view.positions.find((position) => position.id === plan.positionId) ?? null;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return null;
  }
}

/** What there is and what there would be, in round figures; exact ones are one click away. */
function changePart(plan, position, document) {
  const { recommended: chosen, positionId } = plan;
  const hold = plan.candidates.find((candidate) => candidate.kind === "hold");
  const { currency0, currency1 } = chosen.pool;
  const opens = chosen.priceLower !== null;
  const span = (candidate) => candidate?.priceLower ? `${number(candidate.priceLower)} – ${number(candidate.priceUpper)}` : null;
  const pair = (amount0, amount1) => `${number(amount0)} ${currency0.symbol} + ${number(amount1)} ${currency1.symbol}`;
  const stays = (candidate) => candidate?.stress ? `${candidate.stress.x1.medianHours} h${candidate.stress.x1.censored ? " or more" : ""}` : "–";
  const fees = position && (Number(position.fees0Human) || Number(position.fees1Human)) ? pair(position.fees0Human, position.fees1Human) : "none";
  const rows = [
    ["Range", positionId ? span(hold) ?? "–" : "none", opens ? span(chosen) : "none: it is closed"],
    ["In the position", position ? pair(position.amount0Human, position.amount1Human) : "–", opens ? pair(chosen.amount0Human, chosen.amount1Human) : "nothing"],
    ["Uncollected fees", positionId ? (position ? fees : "–") : "none", chosen.kind === "hold" ? "stay uncollected" : positionId ? (opens ? "rolled into the new range" : "paid out to the wallet") : "none"],
    [`Net carry a day, ${chosen.carry.token}`, positionId && hold ? signed(hold.carry.net24h, 2) : "0", signed(chosen.carry.net24h, 2)],
    ["Stays in range, median path", positionId ? stays(hold) : "–", stays(chosen)],
  ];
  const cost = document?.sections.at(-1)?.sentences.map((value) => value.text).filter((text) => text.startsWith("costs ")) ?? [];
  return [
    table("Before and after", [
      { name: "", cell: ([name]) => name },
      { name: positionId ? "Before" : "Now", number: true, wrap: true, cell: ([, before]) => before },
      { name: "After", number: true, wrap: true, cell: ([, , after]) => after },
    ], rows),
    facts([
      chosen.prepAction ? ["Swap", roundFigures(chosen.prepAction)] : ["Swap", "none"],
      ["Cost", cost[0] ? capital(cost[0].slice("costs ".length)) : chosen.kind === "hold" ? "none" : `${number(chosen.carry.cost, 2)} ${chosen.carry.token}`],
      ["Stays home", chosen.leftover ? pair(chosen.leftover.token0, chosen.leftover.token1) : "nothing"],
    ]),
    h("h3", null, "What could go wrong"),
    h("ul", { class: "bullets" }, risksOf(plan).map((text) => h("li", null, text))),
    h("details", null, h("summary", null, "Exact integers"), facts([
      [`${currency0.symbol}, base units`, chosen.amount0], [`${currency1.symbol}, base units`, chosen.amount1],
      opens ? ["Ticks", `${chosen.tickLower} to ${chosen.tickUpper}`] : null, ["Decided on block", String(plan.block)], ["Swap as decided", chosen.prepAction ?? "none"],
    ])),
  ];
}

/** Amounts of a sentence with three or four digits, for eyes. */
function roundFigures(text) {
  return text.replace(/\b\d[\d,]*\.\d+\b/g, (found) => number(Number(found.replaceAll(",", "")).toPrecision(4)));
}

function risksOf(plan) {
  const { recommended: chosen } = plan;
  const risks = [];
  if (chosen.stress) risks.push(`The price leaves this range within a day on ${percent(chosen.stress.x1.pExit24h)} of paths, on ${percent(chosen.stress.x2.pExit24h)} at twice the volatility; outside it earns nothing.`);
  else if (chosen.kind === "close") risks.push("The fees that a range would have earned from here are given up.");
  if (chosen.prepAction?.includes("swap ")) risks.push("The swap may move against it: beyond the slippage of the approval nothing is done.");
  if (chosen.kind !== "hold") risks.push("The chain moves on until it is applied: where price or gas leaves the approval's bounds it is refused, and the desk has to be asked again.");
  if (plan.sources.some((source) => source.stale)) risks.push("It was decided on stale figures: see the sources.");
  return risks.length ? risks : ["Nothing is done, so only the market can change what there is."];
}

/** Who sent what to whom over the mesh. */
function envelopesPart(messages) {
  return h("details", null, h("summary", null, `${messages.length} envelopes over the mesh`), table("Envelopes of this debate", [
    { name: "At", cell: (row) => clock(row.at) },
    { name: "From", cell: (row) => h("span", { title: row.sender }, shorten(row.sender, 12, 4)) },
    { name: "To", cell: (row) => h("span", { title: row.to }, shorten(row.to, 12, 4)) },
    { name: "Kind", cell: (row) => row.kind.replaceAll("_", " ") },
  ], messages));
}

function planFigures(plan, document, source) {
  const { carry } = plan.recommended;
  return figures(document?.sections[0], source,
    stat("Net carry, 24 h", `${signed(carry.net24h, 2)} ${carry.token}`, { tone: tone(carry.net24h), note: "fees less LVR" }),
    stat("Cost to move", `${number(carry.cost, 2)} ${carry.token}`, { note: isKnown(carry.breakevenHours) ? `earned back in ${carry.breakevenHours} h` : null }));
}

function toneOf(candidate, chosen) {
  if (chosen) return "c1";
  return { accept: "up", revise: "warn", veto: "down" }[candidate.verdict] ?? "faint";
}

function candidatesChart(plan, liquidity) {
  const poolId = plan.recommended.pool.id;
  const label = plan.recommended.pool.label;
  const rows = [
    ...plan.candidates.filter((candidate) => candidate.priceLower !== null && candidate.pool.id === poolId).map((candidate) => ({
      name: `${candidate.index} ${candidate.kind}${candidate.own ? " (own)" : ""}`, lower: Number(candidate.priceLower), upper: Number(candidate.priceUpper), tone: toneOf(candidate, candidate.index === plan.recommended.index),
      note: candidate.index === plan.recommended.index ? "chosen" : candidate.verdict,
    })),
    ...plan.earlier.filter((candidate) => candidate.pool === label).map((candidate) => ({
      name: `${candidate.index} ${candidate.kind}`, lower: Number(candidate.priceLower), upper: Number(candidate.priceUpper), tone: toneOf(candidate), note: `${candidate.verdict}, round ${candidate.round}`,
    })),
  ];
  return [
    rangesChart({
      label: `Candidates in ${label}`, summary: rows.map((row) => `${row.name}: ${number(row.lower)} to ${number(row.upper)}, ${row.note}`).join("; "),
      ranges: rows, price: Number(liquidity.price), priceUnit: liquidity.priceUnit,
      liquidity: liquidity.bands.map((band) => ({ low: Number(band.priceLower), high: Number(band.priceUpper), amount: Number(band.liquidity) })),
    }),
  ];
}

function fanPart(plan, fan, history, api, at) {
  const pool = fan.pools.find((item) => item.pool.id === plan.recommended.pool.id) ?? fan.pools[0];
  if (!pool?.points.length) return h("p", { class: "empty" }, "No price history to draw paths from.");
  const place = h("div", null);
  const hours = history?.prices?.length ? history.prices.slice(-168) : [];
  const start = hours.length ? hours.at(-1).at * 1000 : 0;
  const draw = (multiple) => {
    const rows = [[0, ...fan.shares.map(() => Number(pool.price))], ...pool.points.map((point) => [point.hour, ...point[multiple]])].map(([hour, ...prices]) => [hours.length ? start + hour * 3600_000 : hour, ...prices]);
    const { recommended } = plan;
    replace(place, xyChart({
      label: `Paths of ${pool.priceUnit}`, x: hours.length ? "time" : "number", xFormat: hours.length ? undefined : (hour) => `${hour} h`,
      summary: `after 14 days between ${number(rows.at(-1)[1])} and ${number(rows.at(-1)[5])} on nine paths of ten`,
      series: [{ name: "median path", points: rows.map((row) => [row[0], row[3]]), tone: "c2" }, ...(hours.length ? [{ name: "price", points: hours.map((point) => [point.at * 1000, Number(point.price)]), tone: "c1" }] : [])],
      bands: [{ points: rows.map((row) => [row[0], row[1], row[5]]), tone: "c2", name: "90 % of paths" }, { points: rows.map((row) => [row[0], row[2], row[4]]), tone: "c2", name: "50 %" }],
      spans: recommended.priceLower === null ? [] : [{ from: Number(recommended.priceLower), to: Number(recommended.priceUpper), name: recommended.kind, tone: "c3", fit: true }],
      height: 260,
    }));
  };
  const choices = h("div", { class: "choices", role: "group", "aria-label": "Volatility" }, ["x1", "x2", "x3"].map((multiple) => h("button", { type: "button", "aria-pressed": String(multiple === "x1"), onclick: (event) => {
    for (const other of event.currentTarget.parentElement.children) other.setAttribute("aria-pressed", String(other === event.currentTarget));
    draw(multiple);
  } }, `${multiple.slice(1)}× volatility`)));
  draw("x1");
  return [choices, place, stressTable(plan), sourceLine({ href: api.address(`${at}/fan`), text: `the pair's own days, shuffled; ${fan.paths} paths from block ${fan.block}` })];
}

function stressTable(plan) {
  const { stress } = plan.recommended;
  if (!stress) return null;
  return table("How long the range lasts", [
    { name: "Volatility", cell: ([name]) => `${name.slice(1)}×` },
    { name: "Median until it leaves", number: true, cell: ([, point]) => `${point.medianHours} h${point.censored ? " or more" : ""}` },
    { name: "One in ten by", number: true, hide: true, cell: ([, point]) => `${point.p10Hours} h` },
    { name: "Leaves in 24 h", number: true, cell: ([, point]) => percent(point.pExit24h) },
    { name: "Time in range", number: true, hide: true, cell: ([, point]) => percent(point.inRangeShare) },
  ], Object.entries(stress));
}

function carryPart(plan) {
  const { carry } = plan.recommended;
  if (!isKnown(carry.net24h)) return h("p", { class: "empty" }, "The carry is not known.");
  const steps = [{ name: "Fees, 24 h", value: Number(carry.fees24h) }, { name: "LVR, 24 h", value: -Number(carry.lvr24h) }, { name: "Net, 24 h", value: Number(carry.net24h), total: true }];
  return [waterfall({ label: `Carry in ${carry.token}`, steps, format: (value) => signed(value, 2), unit: carry.token }), h("p", { class: "hint" }, `In ${carry.token}; fees at the yield of the last days, LVR at the pair's own volatility, both while in range.`)];
}

function edgePart(plan) {
  const hold = plan.candidates.find((candidate) => candidate.kind === "hold");
  const { carry, kind } = plan.recommended;
  if (!isKnown(carry.worth)) return h("p", { class: "empty" }, "The worth is not known.");
  const steps = [{ name: "Carry, 14 days", value: Number(carry.worth) + Number(carry.cost) }, { name: "Cost to move", value: -Number(carry.cost) }, { name: `${capital(kind)}`, value: Number(carry.worth), total: true }];
  if (hold && kind !== "hold" && isKnown(hold.carry.worth)) steps.push({ name: "Hold, 14 days", value: Number(hold.carry.worth), total: true });
  return [waterfall({ label: `Worth over 14 days in ${carry.token}`, steps: steps.filter((step) => step.total || step.value !== 0), format: (value) => signed(value, 2), unit: carry.token }), h("p", { class: "hint" }, plan.because)];
}

function candidatesTable(plan) {
  return table("Candidates of the last round", [
    { name: "Candidate", cell: (row) => [h("span", null, `${row.index} ${row.kind}`), row.index === plan.recommended.index ? badge("chosen", "info") : null, row.own ? badge("own range") : null, plan.positionId ? null : h("span", { class: "sub" }, row.pool.label)] },
    { name: "Range", number: true, wrap: true, cell: (row) => row.priceLower === null ? "–" : `${number(row.priceLower)} – ${number(row.priceUpper)}` },
    { name: "Net carry, 24 h", number: true, hide: true, cell: (row) => signed(row.carry.net24h, 2) },
    { name: "Cost", number: true, hide: true, cell: (row) => number(row.carry.cost, 2) },
    { name: "Worth, 14 d", number: true, cell: (row) => signed(row.carry.worth, 2) },
    { name: "1× / 2× / 3×", number: true, hide: true, title: "median hours until the price leaves the range", cell: (row) => row.stress ? `${row.stress.x1.medianHours} / ${row.stress.x2.medianHours} / ${row.stress.x3.medianHours} h` : "–" },
    { name: "Verdict", cell: (row) => verdictBadge(row.verdict) },
    { name: "Why", hide: true, cell: (row) => row.reason },
  ], plan.candidates, { showCaption: true });
}

function earlierTable(plan) {
  if (!plan.earlier.length) return null;
  return table("Proposed before, and why it did not do", [
    { name: "Candidate", cell: (row) => `${row.index} ${row.kind}` },
    { name: "Round", number: true, cell: (row) => String(row.round) },
    { name: "Range", number: true, wrap: true, cell: (row) => `${number(row.priceLower)} – ${number(row.priceUpper)}` },
    { name: "Verdict", cell: (row) => verdictBadge(row.verdict) },
    { name: "Why", hide: true, cell: (row) => row.reason },
  ], plan.earlier, { showCaption: true });
}

function voicesTable(plan) {
  return table("Who spoke", [
    { name: "Role", cell: (row) => row.role },
    { name: "Round", number: true, cell: (row) => String(row.round) },
    { name: "By", cell: (row) => row.model ?? (row.speaker === "deterministic" ? "rules" : row.speaker) },
    { name: "Why", hide: true, cell: (row) => row.why },
    { name: "Cost", number: true, cell: (row) => row.tokens ? `${row.tokens} tokens, $${number(row.usd)}` : "–" },
  ], plan.voices);
}

function sourcesTable(plan) {
  return table("Sources", [
    { name: "Feed", cell: (row) => row.feed },
    { name: "Source", cell: (row) => [row.source ?? "–", row.stale ? badge("stale", "warn") : null, row.notes.length ? h("span", { class: "sub" }, row.notes.join("; ")) : null] },
    { name: "Age", number: true, cell: (row) => isKnown(row.ageSeconds) ? h("span", { title: time(row.asOf) }, span(row.ageSeconds)) : "–" },
  ], plan.sources);
}

// -- carrying it out

/** `result` is what the last button brought; it stays while the state around it changes. */
export function statePart({ view, document }, api, at, result, reload) {
  const run = (work) => async (event) => {
    const { currentTarget } = event;
    currentTarget.disabled = true;
    replace(result, loading("Asking the chain …"));
    try {
      await work();
    } catch (error) {
      replace(result, problemNotice(error), error.status === 0 ? notice("Whether it was done is not known: look at its state before you try again.", "warn") : null);
      await reload(); // it may stand otherwise by now: another tab, an approval that ended
    } finally {
      currentTarget.disabled = false;
      if (document.activeElement === document.body) keepFocus();
    }
  };
  const over = ["confirmed", "cancelled", "failed", "expired"].includes(view.state);
  const doable = {
    "plan simulate": ["Simulate", async () => replace(result, simulationPart(await api.post(`${at}/simulate`)))],
    "plan approve": ["Approve …", () => approve(api, at, result, reload)],
    "plan apply": ["Apply …", () => apply(api, at, result, reload)],
    "plan cancel": ["Cancel", () => cancel(api, at, result, reload)],
  };
  const offered = (document?.acts ?? []).map((act) => findAct(act.command, doable));
  const closed = !["approved", "applying", "handed_out", "partial"].includes(view.state);
  const actions = over ? null : h("div", { class: "actions" }, Object.entries(doable).map(([command, entry]) => {
    const [label, work] = entry;
    const act = document?.acts.find((item) => findAct(item.command, { [command]: entry }));
    const kind = command === "plan cancel" ? "danger" : offered.at(-1) === entry ? "primary" : "";
    return button(act?.label ?? label, run(work), { kind, disabled: command === "plan apply" && closed, title: `zuno ${command} ${view.planId}` });
  }));
  return [
    h("div", { class: "row wrap" }, headline(document, { level: "h3", title: view.action }), planState(view.state), view.newPositionId ? h("a", { href: `#/liquidity/${encodeURIComponent(view.newPositionId)}?chain=${encodeURIComponent(view.chain)}` }, `new position ${view.newPositionId}`) : null),
    urgent(document),
    actions, result,
    view.steps.length ? stepsTable(view) : null,
    facts((document?.sections ?? []).flatMap(pairs)),
    notes(document),
  ];
}

/** Whoever works by keyboard goes on where the next step is, or reads what became of the plan. */
function keepFocus() {
  const place = document.getElementById("carry-out");
  const next = place?.querySelector(".actions .primary:not([disabled])") ?? place?.querySelector("h3, h2");
  if (next && !next.matches("button")) next.tabIndex = -1;
  next?.focus();
}

function stepsTable(view) {
  return table("Steps", [
    { name: "Step", cell: (step) => [`${step.index + 1} ${step.kind.replaceAll("_", " ")}`, h("span", { class: "sub long" }, step.words.join("; "))] },
    { name: "State", cell: (step) => badge(step.state, { final: "good", mined: "good", sent: "info", failed: "bad" }[step.state] ?? "") },
    { name: "Transaction", hide: true, cell: (step) => step.txHash ? h("span", { class: "mono", title: step.txHash }, shorten(step.txHash, 10, 6)) : "–" },
    { name: "Block", number: true, hide: true, cell: (step) => step.block === null ? "–" : String(step.block) },
    { name: `Gas, ${view.gasCoin}`, number: true, hide: true, cell: (step) => step.gasCost === null ? "–" : number(step.gasCost) },
  ], view.steps);
}

function simulationPart(view) {
  const { bounds } = view;
  return [
    view.ok ? notice(`Tried on block ${view.block}: every step goes through (${view.how}).`, "good") : notice(view.error ?? "It would not go through.", "bad"),
    facts([
      ["Wallet", h("span", { class: "mono", title: view.wallet }, shorten(view.wallet, 8, 6))],
      ...view.changes.map((change) => [`Change of ${change.symbol}`, h("span", { class: tone(change.amountHuman) }, signed(change.amountHuman))]),
      view.rangeLow ? ["Opens", `${number(view.rangeLow)} – ${number(view.rangeHigh)} ${view.priceUnit}`] : null,
      ["Gas", `${number(view.gasCost)} ${view.gasCoin} (${view.gasUsed.toLocaleString("en-US")})`],
      view.priceImpactBps ? ["Price impact", `${view.priceImpactBps} bps`] : null,
      view.leftover ? ["Stays in the wallet", `${number(view.leftover.token0)} ${view.leftover.symbol0} · ${number(view.leftover.token1)} ${view.leftover.symbol1}`] : null,
    ]),
    h("h3", null, "Bounds of an approval"),
    facts([
      ["Price", `${number(bounds.priceLow)} – ${number(bounds.priceHigh)} ${view.priceUnit}`],
      ["Slippage", `${bounds.slippageBps} bps`],
      ["Most gas", `${number(bounds.mostGas)} ${view.gasCoin} at ${bounds.maxFeeGwei} gwei`],
      ...bounds.mostOut.map((flow) => [`Most ${flow.symbol} out`, number(flow.amountHuman)]),
      ["Ends", bounds.expiresText],
    ]),
    h("h3", null, "Every call"),
    h("ol", { class: "calls" }, view.steps.map((step) => h("li", null, h("b", null, step.kind.replaceAll("_", " ")), " ", step.later ? badge("built again later") : null, h("ul", null, step.words.map((text) => h("li", null, text))), step.error ? notice(step.error, "bad") : null))),
    view.notes.map((text) => notice(text)),
    h("p", null, view.cost.text),
  ];
}

/** With real money a cancel sends transactions of its own, and the server asks for a word. */
async function cancel(api, at, result, reload) {
  try {
    await api.post(`${at}/cancel`);
  } catch (error) {
    const word = error.document?.word;
    if (!word) throw error;
    if (!(await askForWord({ title: "Cancel: this may send transactions", word, action: "Cancel the plan", danger: true, content: [h("p", null, error.message)] }))) {
      replace(result);
      return;
    }
    await api.post(`${at}/cancel`, { word });
  }
  toast("The plan is called off.");
  await reload();
}

async function approve(api, at, result, reload) {
  const offer = await api.post(`${at}/approve`, {});
  const [word, secondWord] = offer.asks;
  const yes = await askForWord({ title: offer.playMoney ? "Approve with play money" : "Approve: this moves real money", word, action: "Approve", danger: !offer.playMoney, content: [
    facts([["Plan", h("span", { class: "mono" }, offer.planId)], ["Chain", `${offer.chain} (${offer.chainId})`], ["Signed hash", h("span", { class: "mono", title: offer.approvalHash }, shorten(offer.approvalHash, 12, 8))]]), simulationPart(offer)] });
  replace(result);
  if (!yes) return;
  if (secondWord && !(await askForWord({ title: "It costs more than it moves", word: secondWord, action: "Approve", danger: true, content: [h("p", null, offer.cost.text)] }))) return;
  await api.post(`${at}/approve`, { word, secondWord, approvalHash: offer.approvalHash });
  toast("Approved. Apply it before the approval ends.", "good");
  await reload();
}

/** What a signer elsewhere is to send: one transaction, or the batch of a Safe. */
function handedOutPart(view) {
  const bytes = view.safe ?? view.transactions[0];
  return [view.notes.map((text) => notice(text)), h("pre", { class: "mono" }, JSON.stringify(bytes, null, 2))];
}

async function apply(api, at, result, reload) {
  const offer = await api.post(`${at}/apply`, {});
  if (offer.transactions) return replace(result, handedOutPart(offer)); // nothing new: what waits for its signer
  const yes = await askForWord({ title: offer.playMoney ? "Apply with play money" : "Apply: this moves real money", word: "apply", action: "Apply", danger: !offer.playMoney, content: [
    h("p", null, "The chain is read again, and the plan is refused where anything has left its bounds."),
    facts([["Plan", h("span", { class: "mono" }, offer.planId)], ["Chain", `${offer.chain} (${offer.chainId})`], ["Approval", h("span", { class: "mono", title: offer.approvalHash }, shorten(offer.approvalHash, 12, 8))]]), simulationPart(offer)] });
  if (!yes) {
    replace(result);
    return;
  }
  const list = h("ol", { class: "calls", "aria-live": "polite" });
  replace(result, list);
  const stop = api.on("step", (data) => { if (data.planId === offer.planId) list.append(h("li", null, data.text)); });
  try {
    const done = await api.post(`${at}/apply`, { word: "apply", approvalHash: offer.approvalHash });
    toast(done.transactions ? "This wallet is only watched: sign where its key is." : `The plan is ${done.state}.`, "good");
    if (done.transactions) replace(result, handedOutPart(done));
  } finally {
    stop();
  }
  await reload();
}
