// One cycle of the trading desk: its graph live, the blackboard, the decision, and every rule on the way to the ruling.
import { candleChart, styled } from "../charts_trading.js";
import { h, replace, s } from "../dom.js";
import { isKnown, money, number, percent, shorten, signed, span, time, tone, words } from "../format.js";
import { acts, headline, notes, urgent } from "../documents.js";
import { badge, button, facts, fillWith, loading, notice, panel, problemNotice, sourceLine, table } from "../widgets.js";

/** The graph: who waits for whom, from left to right. */
const STEPS = [
  ["collect_data", "context_gathering"],
  ["triage", "generate_chart"],
  ["meta_agent", "liquidity_expert", "microstructure_expert", "macro_expert", "vlm_expert"],
  ["blackboard_synthesis", "judge_agent"],
  ["risk_manager", "portfolio_leverage_guard"],
  ["execute_trade", "generate_report", "data_synthesis"],
];
const NAMES = {
  collect_data: "Market data", context_gathering: "Context", triage: "Triage", generate_chart: "Chart", meta_agent: "Meta", liquidity_expert: "Liquidity",
  microstructure_expert: "Microstructure", macro_expert: "Macro", vlm_expert: "Chart reader", blackboard_synthesis: "Blackboard", judge_agent: "Judge",
  risk_manager: "Risk officer", portfolio_leverage_guard: "Leverage guard", execute_trade: "Order gate", generate_report: "Report", data_synthesis: "Record",
};
const VOICES = { meta_agent: "meta", liquidity_expert: "liquidity", microstructure_expert: "microstructure", macro_expert: "macro", vlm_expert: "vlm_geometric", blackboard_synthesis: "synthesis", judge_agent: "judge", risk_manager: "risk_manager" };
const MARKS = { waits: "●", speaks: "✓", done: "✓", skipped: "–" };
const SPOKE = { model: "model", repaired: "model, repaired", fallback: "rules, the model failed", deterministic: "rules" };
const EXPERTS = [["liquidity", "Liquidity"], ["microstructure", "Microstructure"], ["macro", "Macro and options"], ["vlm_geometry", "Chart"]];
const POLL = 2000;

export async function show(root, params, api) {
  await styled;
  const id = params.id;
  const graph = new CycleGraph();
  const head = h("div", { class: "page-head" }, h("h1", null, "Run ", h("span", { class: "mono" }, shorten(id, 8, 4))));
  const body = h("div", { class: "stack" }, loading("Waiting for the run …"));
  const replayed = h("div", { class: "stack" });
  const warnings = h("div", { class: "stack-tight" });
  const answer = h("div", { class: "slot" });
  replace(root, h("p", { class: "crumb" }, h("a", { href: "#/trading" }, "Trading"), " / run"), head, answer, warnings,
    panel("Cycle", { source: { href: api.address(`/trading/runs/${encodeURIComponent(id)}`), at: null, text: "events of this run · the journal" } }, graph.element), replayed, body);
  let ended = false;
  let failed = false;

  const load = async () => {
    if (ended) return;
    try {
      const { view: why, document: words } = await api.read(`/trading/runs/${encodeURIComponent(id)}`);
      if (why.state === "failed") return fail(why.error);
      if (why.state === "starting") return replace(body, h("p", { class: "empty", role: "status" }, "Reading the market …"));
      graph.readRecord(why);
      ended = why.run !== null || why.state === "expired";
      replace(head, drawHead(why, words, api, replayed));
      replace(answer, why.run ? answerPart(why, why.run) : null);
      replace(warnings, urgent(words));
      document.title = `${why.symbol} run · Zuno`;
      replace(body, why.run ? [drawRun(why, why.run, api), notes(words)] : h("p", { class: "empty", role: "status" }, failed ? "The run was cut off." : `Under way: ${why.reached.length} of ${why.reached.length + why.waiting.length} steps are on record.`));
    } catch (error) {
      if (error.name === "AbortError" || failed) return;
      replace(body, problemNotice(error, load));
    }
  };
  const fail = (why) => {
    failed = true;
    replace(body, h("div", { class: "notice bad", role: "alert" }, h("strong", null, "The run failed."), h("span", null, why ?? "")));
  };
  api.on("node", (event) => {
    if (event.runId !== id) return;
    graph.hear(event);
    if (event.node === "context_gathering" && event.state !== "waits") load();
  });
  api.on("run_ended", (event) => {
    if (event.runId === id) load();
  });
  api.on("job", (event) => {
    if (event.id !== id) return;
    if (event.state === "failed") fail(event.error);
    else load();
  });
  api.onReturn(load);
  lightFirst(id, graph, api);
  await load();
  if (!ended) api.every(POLL, load);
}

/** Who is at work, before anything is on record: the server knows its jobs at once, the record only when the desk has time. */
async function lightFirst(id, graph, api) {
  try {
    if ((await api.get("/jobs")).jobs.some((job) => job.id === id && job.state === "running")) graph.begin();
  } catch { /* of another process: its record says it */ }
}

/** What came of it in one sentence, and one thing to do. */
function answerPart({ symbol }, run) {
  const { ruling, execution, decision } = run;
  const wanted = `The Judge said ${decision.decision}${["LONG", "SHORT"].includes(decision.decision) ? ` at ${decision.win_probability_pct} % to win` : ""}`;
  const size = `${ruling.decision} ${symbol}, ${number(ruling.allocation_pct, 2)} % of the account at ${number(ruling.leverage, 1)}×`;
  const opened = { refused: `${size}: refused, ${execution?.reason}.` }[execution?.state] ?? (execution ? `${size}: ${execution.state} on ${execution.account ?? "the account"}.` : `${size}; nothing was sent, for nobody was to act on it.`);
  const sentence = ["LONG", "SHORT"].includes(ruling.decision) ? opened
    : ruling.veto ? `No trade in ${symbol}. ${wanted}; the rules held it back: ${words(ruling.veto)}.`
      : `${ruling.decision === "HOLD" ? "No trade" : ruling.decision.replaceAll("_", " ")} in ${symbol}. ${wanted}${ruling.changes.length ? ` and ${ruling.changes.length} rules changed it` : ""}.`;
  const acted = execution && execution.state !== "refused";
  return [h("p", { class: "answer" }, sentence), h("div", { class: "actions acts" }, h("a", { class: "button primary", href: `#/trading?symbol=${encodeURIComponent(symbol)}` }, acted ? "See the position" : "Look at the market"))];
}

/** Who has spoken, who is at work, who waits. */
class CycleGraph {
  constructor() {
    this.nodes = new Map();
    this.live = false;
    this.element = h("div", { class: "cycle", role: "group", "aria-label": "Graph of the cycle" }, STEPS.map((step) =>
      h("div", { class: step.length > 2 ? "cycle-step wide" : "cycle-step" }, step.map((name) => this.addNode(name)))));
  }

  addNode(name) {
    const mark = h("i", { "aria-hidden": "true" }, "·");
    const state = h("span", { class: "visually-hidden" }, "waits for its turn");
    const note = h("span", { class: "node-note" });
    const element = h("div", { class: "node" }, h("span", { class: "node-name" }, mark, NAMES[name] ?? name, state), note);
    this.nodes.set(name, { element, mark, note, state });
    return element;
  }

  hear({ node, state, source, usd, note }) {
    const place = this.nodes.get(node);
    if (!place) return;
    place.element.dataset.state = state;
    if (source) place.element.dataset.source = source;
    replace(place.mark, MARKS[state] ?? "·");
    replace(place.state, { waits: " is at work", speaks: " has spoken", done: " is done", skipped: " was skipped" }[state] ?? "");
    const text = [source ? SPOKE[source] ?? source : null, usd ? money(usd, "USD", 4) : null, note || null].filter(Boolean).join(" · ");
    replace(place.note, text);
    place.note.title = text;
  }

  /** The first step works as long as nothing else is known. */
  begin() {
    this.live = true;
    if ([...this.nodes.values()].every(({ element }) => !element.dataset.state)) this.hear({ node: STEPS[0][0], state: "waits" });
  }

  readRecord(why) {
    const voices = Object.fromEntries((why.run?.voices ?? []).map((voice) => [voice.role, voice]));
    for (const node of why.reached) {
      const voice = voices[VOICES[node]];
      const seen = this.nodes.get(node)?.element.dataset.state;
      if (voice) this.hear({ node, state: "speaks", source: voice.source, usd: voice.usd, note: voice.model ?? voice.why });
      else if (!seen || seen === "waits") this.hear({ node, state: node === "execute_trade" && why.run && !why.run.execution ? "skipped" : "done", note: "" });
    }
    if (why.run || !this.live) return;
    const turn = STEPS.find((step) => step.some((node) => !why.reached.includes(node))) ?? [];
    for (const node of turn) if (!why.reached.includes(node) && !this.nodes.get(node).element.dataset.state) this.hear({ node, state: "waits" });
  }
}

function drawHead(why, words, api, replayed) {
  return [
    headline(words, { title: `${why.symbol} ${why.mode}` }), h("span", { class: "mono soft" }, shorten(why.runId, 8, 4)),
    badge(why.state, why.state === "ended" ? "good" : "warn"), h("span", { class: "soft" }, `run ${time(why.started)}`),
    why.run ? h("span", { class: "end" }, acts(words), replayButton(why.runId, api, replayed)) : null,
  ];
}

/** Argue again from the record and compare: in the page, nothing is written. */
export function replayButton(id, api, place) {
  const go = button("Replay", async () => {
    go.disabled = true;
    replace(place, loading("Arguing again from the record …"));
    await fillWith(place, () => api.get(`/trust/replay/${encodeURIComponent(id)}`), drawReplay);
    go.disabled = false;
  }, { title: "Run the recorded inputs through this code again and compare the result" });
  return go;
}

export function drawReplay(view) {
  const verdict = view.identical ? "Replayed: the recorded inputs give the same bytes." : view.ok ? `Edition ${view.edition} is older than this code: the record is intact, it was not argued again.` : "The replay differs from the record.";
  return h("div", { class: `notice ${view.ok ? "good" : "bad"}`, role: "status" }, h("strong", null, verdict),
    h("span", { class: "mono" }, `${shorten(view.hash, 10, 6)}${view.replayedHash ? ` = ${shorten(view.replayedHash, 10, 6)}` : ""}`),
    h("span", { class: "hint" }, `edition ${view.edition}, code ${view.codeThen} → ${view.codeNow}`),
    view.differences.length ? h("ul", { class: "bullets" }, view.differences.map((text) => h("li", null, text))) : null,
    view.viewDifferences.length ? [h("p", { class: "hint" }, "Today's code shows these differently; the stored values are what was shown."), h("ul", { class: "bullets" }, view.viewDifferences.map((text) => h("li", null, text)))] : null);
}

function drawRun(why, run, api) {
  const href = api.address(`/trading/runs/${encodeURIComponent(run.runId)}`);
  const source = { href, at: null, text: `the journal · bundle ${shorten(run.bundleHash, 8, 4)} · as of ${time(run.asOf)}` };
  return [
    drawVerdict(run, source),
    h("div", { class: "grid" },
      panel("From decision to ruling", { wide: "two-thirds", source }, drawChanges(run)),
      panel("Expected value", { wide: "third", source }, drawExpectation(run.ev))),
    panel("Blackboard", { source }, drawBoard(run.blackboard)),
    h("div", { class: "grid" },
      panel("Judge's reasoning", { wide: "half", source }, drawReasoning(run)),
      panel("Trade", { wide: "half", source }, drawTrade(run, api))),
    h("div", { class: "grid" },
      panel("What the Judge remembered", { wide: "half", source }, drawMemory(run.memory)),
      panel("Who spoke, and for how much", { wide: "half", source }, drawVoices(why, run))),
    panel("Inputs and their age", { source }, drawInputs(run)),
  ];
}

function drawVerdict(run, source) {
  const ruling = run.ruling;
  const execution = run.execution;
  return panel("Ruling", { source },
    h("div", { class: "from-to" },
      h("div", null, h("h3", null, "Regime"), h("span", null, run.regime), h("span", { class: "sub" }, `risk budget ${run.meta.risk_budget_pct} %, ${run.meta.risk_bias.toLowerCase()}`)),
      h("div", null, h("h3", null, "Judge"), h("span", { class: "verdict" }, run.decision.decision), h("span", { class: "sub" }, `${run.decision.allocation_pct} % at ${run.decision.leverage}×, win ${run.decision.win_probability_pct} %`)),
      h("span", { class: "verdict soft", "aria-hidden": "true" }, "→"),
      h("div", null, h("h3", null, "Ruling"), h("span", { class: `verdict ${{ LONG: "up", SHORT: "down" }[ruling.decision] ?? ""}` }, ruling.decision),
        h("span", { class: "sub" }, ruling.veto ? `held by ${words(ruling.veto)}` : `${number(ruling.allocation_pct, 2)} % at ${number(ruling.leverage, 1)}×${ruling.execution_style ? `, ${ruling.execution_style.toLowerCase().replaceAll("_", " ")}` : ""}`)),
      h("div", null, h("h3", null, "Execution"), execution ? badge(execution.state, execution.state === "refused" ? "bad" : "good") : badge("not asked"), h("span", { class: "sub" }, execution ? execution.reason || execution.account || "" : "the ruling was not to be acted on")),
      h("div", null, h("h3", null, "Valid until"), h("span", null, time(ruling.valid_until)))),
    run.meta.rationale ? h("p", { class: "prose" }, run.meta.rationale, run.meta.trust_directive.note ? [" · ", h("em", null, run.meta.trust_directive.note)] : null) : null,
    run.anomalies.length ? h("ul", { class: "bullets" }, run.anomalies.map((found) => h("li", null, h("strong", null, found.name), " ", found.said, h("span", { class: "hint" }, ` · ${found.source ?? "no source"}`)))) : null);
}

function drawChanges(run) {
  if (!run.ruling.changes.length) return h("p", { class: "empty" }, "No rule changed anything: the ruling is what the Judge decided.");
  return h("ol", { class: "changes", "aria-label": "Rules that changed the decision, in their order" }, run.ruling.changes.map((change) => h("li", null,
    h("div", { class: "controls" }, h("strong", null, change.by.replaceAll("_", " ")), h("span", { class: "soft" }, change.field.replaceAll("_", " ")),
      h("span", { class: "change" }, figure(change.from), " → ", h("strong", null, figure(change.to)))),
    h("p", { class: "prose" }, change.why))));
}

function figure(value) {
  return value === null || value === undefined ? "none" : typeof value === "number" ? number(value) : String(value);
}

/** EV with its parts: what an edge is worth, less every cost. */
function drawExpectation(ev) {
  if (!ev || ev.ev_pct === null || ev.ev_pct === undefined) return h("p", { class: "empty" }, "Nothing was to be opened, so there is no expected value.");
  const first = ev.lambda === undefined;
  const gross = first ? ev.p * ev.profit_pct - (1 - ev.p) * ev.loss_pct : ev.gross_pct ?? ev.lambda * ev.edge * (ev.profit_pct + ev.loss_pct) * ev.resolved;
  const parts = first ? [["EV", ev.ev_pct]] : [["Edge", gross], ["Fees", -ev.fees_pct], ["Slippage", -ev.slippage_pct], ["Funding", -ev.funding_pct], ["EV", ev.ev_pct]];
  const most = Math.max(0.0001, ...parts.map(([, value]) => Math.abs(value)));
  return [
    h("div", { class: "waterfall" }, parts.map(([name, value]) => [
      h("span", { class: name === "EV" ? null : "soft" }, name),
      h("span", { class: "track" }, s("svg", { viewBox: "0 0 200 10", preserveAspectRatio: "none", "aria-hidden": "true" },
        s("rect", { class: value < 0 ? "minus" : "plus", x: value < 0 ? 100 - (Math.abs(value) / most) * 98 : 100, width: (Math.abs(value) / most) * 98, y: 1, height: 8 }), s("line", { class: "axis", x1: 100, x2: 100, y1: 0, y2: 10 }))),
      h("span", { class: `number ${tone(value)}` }, `${signed(value, 4)} %`)])),
    facts(first ? [["Judge's probability", percent(ev.p_judge)], ["Shrunk to", percent(ev.p)]] : [
      ["Judge's probability", percent(ev.p_judge)],
      ["Fair, by distance alone", percent(ev.fair)],
      ["Edge claimed", `${signed(ev.edge * 100, 1)} points`],
      ["Believed (λ)", `${number(ev.lambda, 2)} from ${ev.n} closed trades`],
      ["Slope of the record", isKnown(ev.beta) ? `${number(ev.beta, 2)} ± ${number(ev.beta_se, 2)}` : "none yet"],
      ["Resolved before the hold ends", percent(ev.resolved)],
      ["Policy", ev.policy === "seed" ? "seed: the Judge's own odds alone" : "record: the edge that closed trades support"],
      ["Expected time", `${number(ev.duration_hours, 1)} h`],
      ["Fill probability", percent(ev.fill, 0)],
      ["Target / stop", `${signed(ev.profit_pct, 2)} % / −${number(ev.loss_pct, 2)} %`],
      ["Models", money(ev.llm_cost_usd, "USD", 4)],
    ]),
    ev.exploration ? notice("Opened on paper to build a record, without a proven edge.", "warn") : null,
  ];
}

function nameExpert(name) {
  return (EXPERTS.find(([key]) => key === name)?.[1] ?? words(name)).toLowerCase();
}

function drawBoard(board) {
  const synthesis = board.synthesis;
  return [
    h("div", { class: "board" }, EXPERTS.map(([name, title]) => {
      const entry = board[name];
      if (!entry) return h("article", { class: "voice" }, h("h3", null, title), h("p", { class: "empty" }, "Absent: it weighs nothing."));
      const bias = entry.stance > 0 ? "bullish" : entry.stance < 0 ? "bearish" : "neutral";
      return h("article", { class: "voice", "data-stance": String(entry.stance) },
        h("div", { class: "voice-head" }, h("h3", null, title), badge(bias, entry.stance > 0 ? "good" : entry.stance < 0 ? "bad" : "")),
        h("meter", { class: "meter", min: "0", max: "1", value: String(entry.confidence), "aria-label": `${title}: confidence ${percent(entry.confidence, 0)}` }),
        h("span", { class: "hint" }, `confidence ${percent(entry.confidence, 0)}`, entry.anomaly && entry.anomaly !== "none" ? ` · ${entry.anomaly.replaceAll("_", " ")}` : "", entry.pattern && entry.pattern !== "none" ? ` · ${entry.pattern.replaceAll("_", " ")}` : "", ` · ${SPOKE[entry.source] ?? entry.source}`),
        h("p", { class: "prose" }, entry.rationale));
    })),
    synthesis ? h("div", { class: "stack" },
      h("div", { class: "from-to" },
        h("div", null, h("h3", null, "Dominant signal"), h("span", { class: `verdict ${{ BULLISH: "up", BEARISH: "down" }[synthesis.dominant_signal] ?? ""}` }, synthesis.dominant_signal), h("span", { class: "sub" }, `score ${signed(synthesis.score, 3)}`)),
        h("div", null, h("h3", null, "Most confident"), h("span", null, nameExpert(synthesis.highest_confidence_expert))),
        h("div", { class: "prose" }, h("h3", null, "Open question"), synthesis.key_uncertainty)),
      synthesis.consensus_signals.length ? h("div", { class: "agree" }, h("h3", null, "Agreement"), h("ul", { class: "bullets" }, synthesis.consensus_signals.map((text) => h("li", null, text)))) : h("p", { class: "hint" }, "No two experts agree on a direction."),
      synthesis.conflicts.map((conflict) => h("div", { class: "conflict" }, h("h3", null, "Conflict: ", conflict.between.map(nameExpert).join(" against ")),
        h("p", null, conflict.expert_a_claim, " — ", conflict.expert_b_claim), h("p", { class: "hint" }, "Decided by: ", conflict.tiebreaker)))) : null,
  ];
}

const REASONS = [["counter_scenario", "Against it"], ["technical", "Technical"], ["derivatives", "Derivatives"], ["experts", "Experts"], ["narrative", "Narrative"], ["meta_agent_context", "Regime"], ["final_logic", "Decision"]];

function drawReasoning(run) {
  const decision = run.decision;
  return [
    h("p", { class: "hint" }, `spoken by ${SPOKE[decision.source] ?? decision.source}${decision.why ? `: ${decision.why}` : ""}`),
    h("dl", { class: "prose" }, REASONS.filter(([name]) => decision.reasoning[name]).map(([name, title]) => [h("dt", null, title), h("dd", null, decision.reasoning[name])]),
      decision.ev_rationale ? [h("dt", null, "Probability"), h("dd", null, decision.ev_rationale)] : null),
    decision.key_factors.length ? h("ul", { class: "bullets" }, decision.key_factors.map((text) => h("li", null, text))) : null,
  ];
}

/** The trade on the candles as they stood then, with its card. */
function drawTrade(run, api) {
  const card = run.ruling.card;
  const wanted = run.decision;
  const plan = card ?? (wanted.entry_price && wanted.stop_loss && wanted.take_profit ? { side: wanted.decision.toLowerCase(), entry: wanted.entry_price, stop: wanted.stop_loss, target: wanted.take_profit, liquidation: null } : null);
  if (!plan) return [h("p", { class: "empty" }, "Nothing was to be opened."), chartAt(run, [], api)];
  return [
    card ? null : notice(`The Judge wanted this trade; it was not opened${run.ruling.veto ? ` (${words(run.ruling.veto)})` : ""}.`, "warn"),
    chartAt(run, [{ ...plan, label: plan.side }], api),
    facts([
      ["Side", plan.side.toUpperCase(), plan.side === "long" ? "up" : "down"],
      ["Entry", number(plan.entry)],
      ["Stop", card ? `${number(card.stop)} (${signed(card.stop_pct, 2)} %)` : number(plan.stop)],
      ["Target", card ? `${number(card.target)} (${signed(card.target_pct, 2)} %)` : number(plan.target)],
      ...(card ? [
        ["Liquidation", card.liquidation ? number(card.liquidation) : "none: nothing is borrowed"],
        ["Size", `${number(card.quantity, 6)} (${money(card.notional_usd)} notional, ${money(card.margin_usd)} margin)`],
        ["Loss at stop", `${money(card.loss_at_stop_usd)} (${number(card.loss_at_stop_pct, 2)} % of equity)`],
        ["Reward to risk", number(card.reward_risk, 2)],
        ["Hold", card.hold],
      ] : []),
    ]),
    run.ruling.legs.length ? h("p", { class: "hint" }, run.ruling.legs.map((leg) => `${leg.venue}: ${leg.side} ${leg.quantity ?? ""} for ${number(leg.margin)} ${leg.currency} of margin`).join(" · ")) : null,
  ];
}

function chartAt(run, trades, api) {
  const place = h("div", null, loading());
  const asOf = run.live ? null : run.asOf;
  fillWith(place, () => api.get("/trading/chart", { symbol: run.symbol, interval: run.mode === "swing" ? "4h" : "1d", mode: run.mode, bars: 60, as_of: asOf }), (view) => [
    candleChart(view, { trades, newest: "then", show: { heat: true, levels: false, averages: false } }),
    sourceLine({ href: api.address(`/trading/chart?symbol=${encodeURIComponent(run.symbol)}`), text: `${view.origin} · ${view.source} · as of ${time(view.asOf)}` })]);
  return place;
}

function drawMemory(memory) {
  if (!memory) return h("p", { class: "empty" }, "The desk's memory was not asked.");
  const cited = new Set(memory.cited);
  return [
    h("p", { class: "hint" }, `recalled by ${memory.source}${memory.note ? `: ${memory.note}` : ""}`),
    memory.changed ? notice(memory.changed) : null,
    memory.memories.length ? memory.memories.map((note) => h("div", { class: "memory" },
      h("div", { class: "controls" }, badge(note.verdict, { SUCCESS: "good", FAILURE: "bad" }[note.verdict] ?? ""), h("strong", null, `${note.side} ${note.symbol}`), h("span", { class: tone(note.r) }, `${signed(note.r, 2)} R`), isKnown(note.similarity) ? h("span", { class: "hint" }, `similarity ${percent(note.similarity, 0)}`) : null, cited.has(note.id) ? badge("cited", "info") : null),
      h("p", { class: "prose" }, note.outcome), h("p", { class: "prose" }, note.constraint))) : h("p", { class: "empty" }, "No closed trade was recalled."),
    memory.lessons.map((lesson) => h("div", { class: "memory" }, h("strong", null, `Lesson from ${lesson.cases.length} cases`), h("p", { class: "prose" }, lesson.text))),
    h("details", null, h("summary", { class: "hint" }, "The setup of the moment"), h("p", { class: "prose" }, memory.setup)),
  ];
}

function drawVoices(why, run) {
  return [
    table("Voices", [
      { name: "Role", cell: (row) => row.role.replaceAll("_", " ") },
      { name: "Spoken by", cell: (row) => [SPOKE[row.source] ?? row.source, h("span", { class: "sub long" }, row.model ?? row.why)] },
      { name: "Tokens", number: true, hide: true, cell: (row) => String(row.tokens) },
      { name: "USD", number: true, cell: (row) => (row.usd === null ? "not known" : money(row.usd, "USD", 4)) },
    ], run.voices, { empty: "No agent spoke." }),
    why.attempts.length ? h("details", null, h("summary", null, `${why.attempts.length} model attempts`), why.attempts.map((attempt) => h("div", { class: "memory" },
      h("div", { class: "controls" }, badge(attempt.outcome, attempt.outcome === "ok" ? "good" : "warn"), h("strong", null, attempt.role), h("span", null, attempt.model), h("span", { class: "hint" }, `${attempt.tokens} tokens · ${attempt.latencyMs} ms`)),
      attempt.why ? h("p", { class: "hint" }, attempt.why) : null, h("p", { class: "prose mono" }, attempt.said)))) : null,
    run.degraded.length ? h("div", null, h("h3", null, "Done without"), h("ul", { class: "bullets" }, run.degraded.map((gap) => h("li", null, `${gap.what}: ${gap.why}`)))) : null,
  ];
}

function drawInputs(run) {
  const oldest = run.sources.filter((row) => row.stale).length;
  return [
    h("p", { class: "hint" }, `${run.sources.length} series, ${oldest} stale, ${run.absent.length} absent · hash ${shorten(run.hash, 10, 6)} · ${run.code}`),
    h("details", null, h("summary", null, "All series"),
      table("Series that were read", [
        { name: "Series", cell: (row) => h("span", { class: "mono" }, row.series) },
        { name: "As of", cell: (row) => time(row.asOf) },
        { name: "Age", number: true, cell: (row) => h("span", { title: `${number(row.ageSeconds, 0)} s` }, span(row.ageSeconds)) },
        { name: "Rows", number: true, hide: true, cell: (row) => String(row.rows) },
        { name: "", cell: (row) => (row.stale ? badge("stale", "warn") : "") },
      ], run.sources)),
    run.absent.length ? h("details", null, h("summary", null, `${run.absent.length} absent`), h("ul", { class: "bullets" }, run.absent.map((gap) => h("li", null, `${gap.what}: ${gap.why}`)))) : null,
  ];
}

