"""How a cycle of the trading desk is shown to people: from the ruling down to the age of the data it stands on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from zuno.doors.cli.layout import BAD, QUIET, Rows, grid, heading, notes_block
from zuno.trading.model.cycle import (
    Call,
    Expectation,
    FirstExpectation,
    GeometryEntry,
    RuleChange,
    Synthesis,
    TradeCard,
)
from zuno.trading.model.market import Symbol
from zuno.trading.service.memory_view import ReadMemoryView
from zuno.trading.service.report import (
    ARROW,
    SPOKE,
    STANCE,
    Entry,
    bias_text,
    expert_entries,
    feed_ages,
    format_absent,
    format_number,
    format_signed,
    format_span,
    headline_notes,
    price_distances,
    shared_reason,
)
from zuno.trading.service.runs_view import AttemptView, CycleWhyView, RunLineView, RunsView, RunView

_WAY = {Call.LONG: "bold blue", Call.SHORT: "bold yellow"}
"""Told apart by everybody; the arrow beside it says the same."""
_STANCE = {1: "blue", 0: QUIET, -1: "yellow"}


def show_run(view: RunView) -> RenderableType:
    return Group(
        _title(view),
        *notes_block(view.computed_notes),
        *_ruling(view),
        heading("Regime"),
        *_regime(view),
        heading("Blackboard"),
        *_board(view),
        *_conflicts(view.blackboard.synthesis),
        heading("The Judge"),
        *_judge(view),
        *_memory(view.memory),
        heading("What it is worth"),
        _worth(view),
        heading("From decision to ruling"),
        _changes(view.ruling.changes),
        heading("Data"),
        _data(view),
        *_degraded_sources(view),
        heading("Who spoke"),
        _voices(view),
        *_places(view),
    )


def show_why(view: CycleWhyView) -> RenderableType:
    """The argument in the order it was had."""
    title = heading(f"{view.run_id}: {view.symbol}, {view.mode}, as of {view.as_of} · {view.market}")
    parts: list[RenderableType] = [title, Text(f"started {view.started}, {view.state}", style=QUIET)]
    if (run := view.run) is not None:
        parts += notes_block(run.computed_notes)
        parts += [heading("Regime"), *_regime(run), heading("Blackboard"), *_board(run)]
        parts += [*_conflicts(run.blackboard.synthesis), heading("The Judge"), *_judge(run), *_memory(run.memory)]
        parts += [heading("What it is worth"), _worth(run), heading("Rules that fired"), _changes(view.rules)]
        parts += [*_ruling(run), *_degraded_sources(run), heading("Who spoke"), _voices(run)]
    parts += [heading("What models were asked"), *_attempts(view.attempts)]
    if run is None:
        parts += [heading("How far it came"), _indent(Text(f"on record: {', '.join(view.reached)}"))]
        parts += [_indent(Text(f"not reached: {', '.join(view.waiting)}", style=BAD))]
        parts += notes_block([f"it has not ended; `zuno trade resume {view.run_id}` takes it up again"])
    else:
        parts.append(Text(f"outcome {run.hash}\nbundle {run.bundle_hash}", style=QUIET))
    return Group(*parts)


def show_runs(view: RunsView) -> RenderableType:
    if not view.runs:
        return Text("No run is on record; `zuno trade run BTCUSDT` makes one.")
    spare = ("started", "regime", "veto", "judge")
    table = Rows("run", "symbol", "mode", "as of", "ruling", "judge", "veto", "regime", "started", spare=spare)
    for run in view.runs:
        table.add_row(
            run.run_id,
            f"{run.symbol}{_kind(run)}",
            run.mode,
            "–" if run.as_of is None else f"{run.as_of[:16]}Z",
            _call_briefly(run.ruling) if run.state == "ended" else Text(run.state, style=BAD),
            _call_briefly(run.decision),
            run.veto or "–",
            run.regime or "–",
            run.started,
        )
    return Group(table, Text("older runs are left out", style=QUIET)) if view.more else table


def _call_briefly(call: str | None) -> Text:
    return Text(f"{ARROW[Call.CANCEL_AND_CLOSE]} CLOSE", style="bold") if call == Call.CANCEL_AND_CLOSE else _call(call)


def _kind(run: RunLineView) -> str:
    return " SYNTHETIC" if run.synthetic else " CANDLES ONLY" if run.candles_only else ""


def _title(view: RunView) -> Text:
    return heading(f"{view.symbol}, {view.mode}, as of {view.as_of} · {view.market}")


def _ruling(view: RunView) -> Iterator[RenderableType]:
    ruling = view.ruling
    line = Text.assemble(("Ruling: ", "bold"), _call(ruling.decision))
    if ruling.veto is not None:
        line.append(f"  (the Judge said {view.decision.decision}; held by {ruling.veto})")
    yield line
    for note in headline_notes(view):
        yield _indent(Text(note, style=BAD))
    facts = grid()
    if ruling.allocation_pct:
        share = format_number(ruling.allocation_pct)
        facts.add_row("size", f"{share} % of the equity as margin, at {format_number(ruling.leverage)}×")
    if ruling.target_exchange is not None:
        facts.add_row("where", ruling.target_exchange)
    if ruling.execution_style is not None:
        facts.add_row("how", ruling.execution_style)
    if (card := ruling.card) is not None:
        _add_card(facts, card, Symbol(view.symbol).base)
    for leg in ruling.legs:
        margin, notional = (
            f"{format_number(leg.margin)} {leg.currency}",
            f"{format_number(leg.notional)} {leg.currency}",
        )
        lots = "" if leg.quantity is None else f"{leg.quantity:.8g} {Symbol(view.symbol).base}, "
        facts.add_row(
            "leg", f"{leg.venue} {leg.side}: {lots}{margin} margin, {notional} notional, {format_number(leg.leverage)}×"
        )
    for close in ruling.closes:
        way = "closes" if close.what == "position" else "cancels"
        facts.add_row(
            way, f"{close.venue} {close.what} {close.id}: {close.side} {close.quantity:.6g} {Symbol(view.symbol).base}"
        )
    facts.add_row("good until", ruling.valid_until)
    if (done := view.execution) is not None:
        facts.add_row("orders", f"{done.state}: {done.reason}" if done.reason else done.state)
    yield _indent(facts)


def _add_card(facts: Table, card: TradeCard, base: str) -> None:
    """The trade card: what is opened, what it risks and what it is expected to bring."""
    if card.exploration:
        facts.add_row("exploration", Text("on paper, for the record: no edge is proven yet", style=BAD))
    facts.add_row("entry", format_number(card.entry))
    facts.add_row("stop loss", f"{format_number(card.stop)}  ({format_signed(card.stop_pct)} %)")
    facts.add_row("take profit", f"{format_number(card.target)}  ({format_signed(card.target_pct)} %)")
    facts.add_row("quantity", f"{card.quantity:.8g} {base}, notional ${card.notional_usd:,.2f}")
    risk = f"${card.loss_at_stop_usd:,.2f} with fees and slippage, {card.loss_at_stop_pct:.2f} % of the equity"
    facts.add_row("loss at stop", risk)
    facts.add_row("reward:risk", f"{card.reward_risk:.2f}")
    if card.liquidation is not None:
        facts.add_row("liquidation", format_number(card.liquidation))
    facts.add_row("time", f"{card.duration_hours:.1f} h expected, {card.hold} at most")
    edge = f"fair rate {100 * card.fair:.1f} %, edge {format_signed(100 * card.edge, 1)} points"
    facts.add_row("EV", f"{format_signed(card.ev_pct, 3)} % of the notional; {edge}")


def _regime(view: RunView) -> Iterator[RenderableType]:
    meta = view.meta
    facts = grid()
    facts.add_row("regime", Text.assemble((meta.regime, "bold"), "  ", _spoke(meta.source)))
    facts.add_row("risk", f"budget {meta.risk_budget_pct} %, {meta.risk_bias}")
    facts.add_row("trust", f"{meta.trust_directive.expert}: {meta.trust_directive.note}")
    facts.add_row("because", meta.rationale)
    if meta.why and meta.source != "deterministic":
        facts.add_row("note", meta.why)
    for anomaly in view.anomalies:
        facts.add_row("anomaly", Text(f"{anomaly.name}: {anomaly.said}", style=BAD))
    if not view.anomalies:
        facts.add_row("anomalies", "none")
    yield _indent(facts)


def _board(view: RunView) -> Iterator[RenderableType]:
    for expert, entry, model in expert_entries(view):
        if entry is None:
            yield _indent(Text.assemble((expert, "bold"), ("  absent, and weighs nothing", QUIET)))
            continue
        line = Text(expert, style="bold")
        line.append(f"  {STANCE[entry.stance]}", style=_STANCE[entry.stance])
        line.append(f"  {entry.confidence:.2f}", style="not bold")
        line.append(f"  {entry.anomaly}", style="not bold")
        if leant := bias_text(entry):
            line.append(f"  {leant}", style="not bold")
        line.append_text(_spoke(entry.source, model, before="  "))
        yield _indent(line)
        yield _indent(Group(*_entry_text(entry)), 4)


def _entry_text(entry: Entry) -> Iterator[Text]:
    yield Text(entry.rationale)
    if isinstance(entry, GeometryEntry):
        levels = entry.key_levels
        support = f"support {format_number(levels.immediate_support)} / {format_number(levels.major_support)}"
        resistance = (
            f"resistance {format_number(levels.immediate_resistance)} / {format_number(levels.major_resistance)}"
        )
        yield Text(
            f"pattern {entry.pattern}, {support}, {resistance}, POC {format_number(levels.volume_poc)}", style=QUIET
        )
        if entry.fibonacci_context:
            yield Text(entry.fibonacci_context, style=QUIET)
    if entry.why and entry.source != "deterministic":  # that no model sits is told once, with the voices
        yield Text(entry.why, style=QUIET)


def _conflicts(found: Synthesis | None) -> Iterator[RenderableType]:
    if found is None:
        return
    yield heading("Agreement and conflict")
    facts = grid()
    signal = (
        f"{found.dominant_signal}, score {format_signed(found.score, 3)}, surest is {found.highest_confidence_expert}"
    )
    facts.add_row("signal", Text.assemble(signal, "  ", _spoke(found.source)))
    for signal in found.consensus_signals:
        facts.add_row("agreed", signal)
    for conflict in found.conflicts:
        first, second = conflict.between
        facts.add_row("conflict", Text(f"{first} ⇄ {second}", style="bold"))
        facts.add_row("", f"{first}: {conflict.expert_a_claim}")
        facts.add_row("", f"{second}: {conflict.expert_b_claim}")
        facts.add_row("", f"settled by: {conflict.tiebreaker}")
    if not found.conflicts:
        facts.add_row("conflicts", "none")
    facts.add_row("open", found.key_uncertainty)
    yield _indent(facts)


def _judge(view: RunView) -> Iterator[RenderableType]:
    made = view.decision
    facts = grid()
    facts.add_row("decision", Text.assemble(_call(made.decision), "  ", _spoke(made.source)))
    if (away := price_distances(made)) is not None:
        facts.add_row("entry", format_number(made.entry_price))
        facts.add_row("stop loss", f"{format_number(made.stop_loss)}  ({format_signed(away[0])} %)")
        facts.add_row("take profit", f"{format_number(made.take_profit)}  ({format_signed(away[1])} %)")
        facts.add_row("asks for", f"{made.allocation_pct} % at {made.leverage}×, for {made.hold_duration}")
    said = made.reasoning
    for name, text in (
        ("against it", said.counter_scenario),
        ("because", said.final_logic),
        ("regime", said.meta_agent_context),
        ("technical", said.technical),
        ("derivatives", said.derivatives),
        ("experts", said.experts),
        ("narrative", said.narrative),
        ("expectancy", made.ev_rationale),
        ("factors", "; ".join(made.key_factors)),
        ("note", "" if made.why == shared_reason(view) else made.why),
    ):
        if text:
            facts.add_row(name, text)
    yield _indent(facts)


def _memory(read: ReadMemoryView | None) -> Iterator[RenderableType]:
    if read is None:
        return
    yield heading("What it remembered")
    facts = grid()
    for memory in read.memories:
        alike = "the most recent" if memory.similarity is None else f"similarity {memory.similarity:.2f}"
        r = "" if memory.r is None else f", {format_signed(memory.r)} R"
        trade = f"{memory.side} {memory.symbol} closed {memory.closed[:10]}: {memory.verdict}{r}, {alike}"
        facts.add_row("memory", Text.assemble((memory.id, "bold"), f"  {trade}"))
        facts.add_row("", Text(memory.constraint, style=QUIET))
    for lesson in read.lessons:
        facts.add_row("lesson", Text.assemble((lesson.id, "bold"), f"  {lesson.text}"))
    if not read.memories and not read.note:
        facts.add_row("memory", "no closed trade had a setup like this one")
    cited = f"nothing by rule; its words cite {', '.join(read.cited)}" if read.cited else "nothing"
    facts.add_row("changed", read.changed or cited)
    facts.add_row("asked", f"{read.source}: {read.note}" if read.note else read.source)
    yield _indent(facts)


def _worth(view: RunView) -> RenderableType:
    ev, cost = view.ev, f"${view.llm_cost_usd:.4f}"
    if ev is None:
        return Text(f"  Nothing was to be opened; models cost {cost}.")
    facts = grid()
    worth = Text(f"{format_signed(ev.ev_pct, 3)} %", style="bold")
    if isinstance(ev, FirstExpectation):
        sum_ = f"{ev.p:.3f} × {ev.profit_pct:.3f} % − {1 - ev.p:.3f} × {ev.loss_pct:.3f} %, less models {cost}"
        facts.add_row("EV", Text.assemble(worth, f" of the notional = {sum_}"))
        facts.add_row(
            "p", f"{ev.p:.3f}: the Judge's {ev.p_judge:.3f} shrunk towards {ev.p0:.3f}, the rate without drift"
        )
    else:
        _add_worth(facts, ev, worth, cost)
    costs = f"fees {ev.fees_pct:.3f} %, slippage {ev.slippage_pct:.3f} %, funding {format_signed(ev.funding_pct, 3)} %"
    facts.add_row("costs in it", costs)
    return _indent(facts)


def _add_worth(facts: Table, ev: Expectation, worth: Text, cost: str) -> None:
    spread = f"({ev.profit_pct:.3f} + {ev.loss_pct:.3f}) %"
    sum_ = f"{ev.lambda_:.3f} × {format_signed(ev.edge, 3)} × {spread} × {ev.resolved:.3f} − costs, less models {cost}"
    filled = "" if ev.fill == 1 else f", × {ev.fill:.3f} that it is filled"
    facts.add_row("EV", Text.assemble(worth, f" of the notional = {sum_}{filled}"))
    fair = f"{100 * ev.fair:.1f} % by the distances alone; the Judge says {100 * ev.p_judge:.0f} %"
    facts.add_row("fair rate", f"{fair}, an edge of {format_signed(100 * ev.edge, 1)} points counts at most")
    slope = (
        "none yet"
        if ev.beta is None or ev.beta_se is None
        else f"{format_signed(ev.beta)} ± {ev.beta_se:.2f} of what was claimed"
    )
    facts.add_row("record", f"{ev.n} closed trades, slope {slope}: lambda {ev.lambda_:.3f}")
    facts.add_row(
        "lasts",
        f"{ev.duration_hours:.1f} h on average; {100 * ev.timed_out:.1f} % of paths end by time "
        f"(standard error {ev.standard_error:.4f})",
    )
    if ev.exploration:
        facts.add_row("exploration", "on paper, for the record: no edge is proven yet")


def _changes(changes: Sequence[RuleChange]) -> RenderableType:
    table = Rows("by", "what", "from → to", "why")
    for change in changes:
        table.add_row(
            change.by, change.field, f"{format_number(change.from_)} → {format_number(change.to)}", change.why
        )
    return _indent(table) if changes else Text("  Nothing was changed.")


def _data(view: RunView) -> RenderableType:
    table = Rows("feed", "from", "series", "newest", "oldest", "state", spare=("from", "series"))
    for age in feed_ages(view.sources):
        stale = f"{age.stale} of {age.series} STALE" if age.stale else "fresh"
        style = BAD if age.stale else ""
        table.add_row(
            age.feed,
            age.sources,
            str(age.series),
            age.newest,
            format_span(age.oldest_seconds),
            Text(stale, style=style),
        )
    return _indent(table)


def _degraded_sources(view: RunView) -> Iterator[RenderableType]:
    for line in format_absent(view.absent):
        yield _indent(Text(line, style=QUIET))
    if view.degraded:
        yield heading("Done without")
    for missing in view.degraded:
        yield _indent(Text(f"{missing.what}: {missing.why}", style=BAD))


def _voices(view: RunView) -> RenderableType:
    shared = shared_reason(view)
    table = Rows("role", "spoke", "model", "tokens", "cost", "why", spare=("why", "tokens"))
    for voice in view.voices:
        table.add_row(
            voice.role,
            SPOKE[voice.source],
            voice.model or "–",
            f"{voice.tokens:,}",
            money(voice.usd),
            "" if voice.why == shared else voice.why,
        )
    if not shared:
        return _indent(table)
    return Group(_indent(table), _indent(Text(f"rules spoke where no reason is given: {shared}", style=QUIET)))


def _attempts(attempts: Sequence[AttemptView]) -> Iterator[RenderableType]:
    for attempt in attempts:
        line = Text.assemble((f"{attempt.role} {attempt.attempt}", "bold"), f"  {attempt.model}  ")
        line.append(attempt.outcome, style="" if attempt.outcome == "ok" else BAD)
        about = " (estimated)" if attempt.estimated else ""
        line.append(
            f"  {attempt.tokens:,} tokens, {money(attempt.usd)}{about}, {attempt.latency_ms / 1000:.1f} s", style=QUIET
        )
        yield _indent(line)
        for text in (attempt.why, attempt.said):
            if text:
                yield _indent(Text(text, style=QUIET), 4)
    if not attempts:
        yield Text("  None: the rules spoke for everybody.")


def _places(view: RunView) -> Iterator[RenderableType]:
    facts = grid()
    facts.add_row("chart", view.chart or "none")
    facts.add_row("page", view.report or "none")
    facts.add_row("run", f"{view.run_id}  (`zuno trade why {view.run_id}`)")
    facts.add_row("outcome", view.hash)
    facts.add_row("bundle", view.bundle_hash)
    yield facts
    unsent = [] if view.execution is not None else ["nothing was sent: execution is not enabled"]
    yield from notes_block([*view.notes, *unsent])


# -- one cell


def _call(call: str | None) -> Text:
    return Text("–") if call is None else Text(f"{ARROW[Call(call)]} {call}", style=_WAY.get(Call(call), "bold"))


def _spoke(source: str, model: str | None = None, before: str = "") -> Text:
    named = f" {model}" if model and source in ("model", "repaired") else ""
    return Text(f"{before}[{SPOKE[source]}{named}]", style=BAD if source == "fallback" else f"not bold {QUIET}")


def money(usd: float | None) -> str:
    return "not known" if usd is None else f"${usd:.4f}" if usd else "$0"


def _indent(what: RenderableType, columns: int = 2) -> Padding:
    return Padding(what, (0, 0, 0, columns))
