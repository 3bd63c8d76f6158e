"""A cycle of the trading desk in a chat: the ruling with its card, the argument behind it, and who waits meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from zuno.doors.telegram.layout import bold, code, fact, italic, join, note, paragraphs, quote, table, text, warning
from zuno.doors.telegram.reply import Button, Reply
from zuno.kernel.text import plain_text
from zuno.trading.model.cycle import Call, Expectation, FirstExpectation, GeometryEntry, Node, RuleChange, TradeCard
from zuno.trading.model.market import Symbol
from zuno.trading.model.outcome import NodeEvent
from zuno.trading.model.trade_events import account_mode
from zuno.trading.service.memory_view import ReadMemoryView
from zuno.trading.service.report import (
    ARROW,
    SPOKE,
    STANCE,
    Entry,
    bias_text,
    expert_entries,
    format_absent,
    format_number,
    format_signed,
    headline_notes,
    shared_reason,
)
from zuno.trading.service.runs_view import AttemptView, CycleWhyView, RunLineView, RunsView, RunView

MOST_RUNS: Final = 10
_NOTE_CHARS: Final = 80
_MARKS: Final = {"waits": "⏳", "speaks": "✓", "done": "✓", "skipped": "–"}


def show_run(view: RunView) -> Reply:
    """The ruling and its trade card, short enough for the caption of a picture as a rule."""
    buttons = (Button("Why", f"/why {view.run_id}"), *_report_buttons(view.run_id))
    return Reply(paragraphs(_head(view, f"{view.symbol} {view.mode}"), _ruling(view), _facts(view)), buttons)


def show_experts(view: RunView) -> Reply:
    experts = (_expert(expert, entry, model) for expert, entry, model in expert_entries(view))
    return Reply(paragraphs(_head(view, f"Experts on {view.symbol}"), *experts, _synthesis(view)))


def show_why(view: CycleWhyView) -> Reply:
    """The argument in the order it was had."""
    started = italic(f"started {view.started}, {view.state}")
    head = _head(view, f"Why: {view.symbol} {view.mode}")
    if (run := view.run) is None:
        return Reply(
            paragraphs(
                join(head, started),
                fact("on record", ", ".join(view.reached)),
                fact("not reached", ", ".join(view.waiting)),
                _attempts(view.attempts),
                note(f"it has not ended; zuno trade resume {view.run_id} takes it up again"),
            )
        )
    return Reply(
        paragraphs(
            join(head, started),
            _ruling(run),
            _regime(run),
            _judge(run),
            _memory(run.memory),
            _worth(run),
            join(bold("Rules that fired"), _changes(view.rules)),
            _degraded(run),
            _attempts(view.attempts),
            join(f"{bold('run')}: {code(view.run_id)}", f"{bold('outcome')}: {code(run.hash)}"),
        ),
        _report_buttons(view.run_id),
    )


def show_runs(view: RunsView) -> Reply:
    if not view.runs:
        return Reply("No run is on record; /analyze BTC makes one.")
    lines = [_run_line(run) for run in view.runs[:MOST_RUNS]]
    whole = f"more than {len(view.runs)}" if view.more else len(view.runs)
    more = italic(f"{len(lines)} of {whole}") if view.more or len(view.runs) > MOST_RUNS else ""
    return Reply(paragraphs(bold("Runs, newest first"), *lines, more))


def show_progress(symbol: str, mode: str, heard: dict[Node, NodeEvent], *, over: bool = False) -> str:
    """Who waits and who spoke, for a message that is edited."""
    lines = [_progress_line(node, heard[node]) for node in Node if node in heard]
    left = sum(node not in heard for node in Node)
    spent = f"spent ${sum(event.usd or 0.0 for event in heard.values()):.4f}"
    tail = italic(spent if over else f"{left} steps to go · {spent}")
    return paragraphs(bold(f"{'Analysed' if over else 'Analysing'} {symbol}, {mode}"), join(*lines), tail)


# -- parts


def _head(view: RunView | CycleWhyView, title: str) -> str:
    """A ruling that nobody acts on moves no money, whatever the prices are."""
    run = view if isinstance(view, RunView) else view.run
    account = None if run is None or run.execution is None else run.execution.account
    label = "SYNTHETIC" if view.synthetic else "PAPER" if account is None else account_mode(account).upper()
    computed = () if run is None else run.computed_notes
    return join(bold(f"{label} · {title}"), italic(f"as of {view.as_of} · {view.market}"), *map(note, computed))


def _report_buttons(run_id: str) -> tuple[Button, ...]:
    parts = (("Experts", "experts"), ("Full page", "page"), ("Replay", "replay"))
    return tuple(Button(name, f"/report {run_id} {part}") for name, part in parts)


def _call(call: str | None) -> str:
    if call is None:
        return "–"
    return f"{ARROW[Call(call)]} {'CLOSE' if call == Call.CANCEL_AND_CLOSE else call}"


def _spoke(source: str, model: str | None = None) -> str:
    named = f" {model}" if model and source in ("model", "repaired") else ""
    return f"[{SPOKE[source]}{named}]"


def _ruling(view: RunView) -> str:
    ruling, base = view.ruling, Symbol(view.symbol).base
    lines = [bold(f"Ruling: {_call(ruling.decision)}")]
    if ruling.veto is not None:
        lines.append(text(f"the Judge said {view.decision.decision}; held by {ruling.veto}"))
    lines += map(warning, headline_notes(view))
    if ruling.allocation_pct:
        size = f"{format_number(ruling.allocation_pct)} % of the equity as margin, at {format_number(ruling.leverage)}×"
        where = ", ".join(part for part in (ruling.target_exchange, ruling.execution_style) if part)
        lines.append(fact("size", f"{size}{f', {where}' if where else ''}"))
    if ruling.card is not None:
        lines += _card(ruling.card, base)
    for close in ruling.closes:
        way = "closes" if close.what == "position" else "cancels"
        lines.append(fact(way, f"{close.venue} {close.what} {close.id}: {close.side} {close.quantity:.6g} {base}"))
    return join(*lines)


def _card(card: TradeCard, base: str) -> Iterator[str]:
    if card.exploration:
        yield warning("exploration, on paper, for the record: no edge is proven yet")
    yield fact("entry", format_number(card.entry))
    yield fact("stop loss", f"{format_number(card.stop)} ({format_signed(card.stop_pct)} %)")
    yield fact("take profit", f"{format_number(card.target)} ({format_signed(card.target_pct)} %)")
    yield fact("quantity", f"{card.quantity:.8g} {base}, notional ${card.notional_usd:,.2f}")
    yield fact("loss at stop", f"${card.loss_at_stop_usd:,.2f} with costs, {card.loss_at_stop_pct:.2f} % of the equity")
    liquidation = "" if card.liquidation is None else f", liquidation {format_number(card.liquidation)}"
    yield fact("reward:risk", f"{card.reward_risk:.2f}{liquidation}")
    yield fact("time", f"{card.duration_hours:.1f} h expected, {card.hold} at most")
    yield fact(
        "EV", f"{format_signed(card.ev_pct, 3)} % of the notional, edge {format_signed(100 * card.edge, 1)} points"
    )


def _facts(view: RunView) -> str:
    done = "nothing was sent: a chat only asks for a ruling"
    if view.execution is not None:
        done = f"orders {view.execution.state}" + (f": {view.execution.reason}" if view.execution.reason else "")
    return join(
        fact("regime", f"{view.regime} {_spoke(view.meta.source)}"),
        *(warning(f"{anomaly.name}: {anomaly.said}") for anomaly in view.anomalies),
        fact("good until", view.ruling.valid_until),
        fact("models", f"${view.llm_cost_usd:.4f}"),
        f"{bold('run')}: {code(view.run_id)}",
        *map(note, (*view.notes, done)),
    )


def _regime(view: RunView) -> str:
    meta = view.meta
    return join(
        bold(f"Regime: {meta.regime} {_spoke(meta.source)}"),
        text(f"risk budget {meta.risk_budget_pct} %, {meta.risk_bias}; trusts {meta.trust_directive.expert}"),
        *(warning(f"{anomaly.name}: {anomaly.said}") for anomaly in view.anomalies),
        quote(text(meta.rationale)),
    )


def _expert(expert: str, entry: Entry | None, model: str | None) -> str:
    if entry is None:
        return join(bold(expert), "absent, and weighs nothing")
    about = [STANCE[entry.stance], f"{entry.confidence:.2f}", entry.anomaly, bias_text(entry)]
    levels = ""
    if isinstance(entry, GeometryEntry):
        found = entry.key_levels
        levels = text(
            f"pattern {entry.pattern}, support {format_number(found.immediate_support)} / "
            f"{format_number(found.major_support)}, resistance {format_number(found.immediate_resistance)} / "
            f"{format_number(found.major_resistance)}, POC {format_number(found.volume_poc)}"
        )
    why = text(entry.why) if entry.why and entry.source != "deterministic" else ""
    return join(
        bold(expert),
        text(f"{', '.join(part for part in about if part)} {_spoke(entry.source, model)}"),
        quote(text(entry.rationale), levels, why),
    )


def _synthesis(view: RunView) -> str:
    if (found := view.blackboard.synthesis) is None:
        return ""
    conflicts = [
        join(
            bold(f"{conflict.between[0]} ⇄ {conflict.between[1]}"),
            quote(
                text(f"{conflict.between[0]}: {conflict.expert_a_claim}"),
                text(f"{conflict.between[1]}: {conflict.expert_b_claim}"),
                text(f"settled by: {conflict.tiebreaker}"),
            ),
        )
        for conflict in found.conflicts
    ]
    return join(
        bold("Agreement and conflict"),
        text(
            f"{found.dominant_signal}, score {format_signed(found.score, 3)}, "
            f"surest is {found.highest_confidence_expert}"
        ),
        *conflicts,
        "" if found.conflicts else "no conflict",
        fact("open", found.key_uncertainty) if found.key_uncertainty else "",
    )


def _judge(view: RunView) -> str:
    made, said = view.decision, view.decision.reasoning
    reasons = (
        ("against it", said.counter_scenario),
        ("technical", said.technical),
        ("derivatives", said.derivatives),
        ("experts", said.experts),
        ("narrative", said.narrative),
        ("factors", "; ".join(made.key_factors)),
    )
    why = "" if made.why == shared_reason(view) else made.why
    return join(
        bold(f"The Judge: {_call(made.decision)} {_spoke(made.source)}"),
        text(said.final_logic),
        quote(*(fact(name, reason) for name, reason in reasons if reason)),
        note(why) if why else "",
    )


def _memory(read: ReadMemoryView | None) -> str:
    if read is None:
        return ""
    memories = [
        fact(memory.id, f"{memory.side} {memory.symbol} {memory.closed[:10]}: {memory.verdict}; {memory.constraint}")
        for memory in read.memories
    ]
    cited = f"nothing by rule; its words cite {', '.join(read.cited)}" if read.cited else "nothing"
    return join(
        bold("What it remembered"),
        quote(*memories, *(fact(lesson.id, lesson.text) for lesson in read.lessons)),
        text(read.note) if read.note else "" if memories else "no closed trade had a setup like this one",
        fact("changed", read.changed or cited),
    )


def _worth(view: RunView) -> str:
    ev, cost = view.ev, f"${view.llm_cost_usd:.4f}"
    if ev is None:
        return join(bold("What it is worth"), text(f"Nothing was to be opened; models cost {cost}."))
    return join(
        bold(f"What it is worth: {format_signed(ev.ev_pct, 3)} % of the notional"),
        quote(*_worth_lines(ev), fact("models", cost)),
    )


def _worth_lines(ev: Expectation | FirstExpectation) -> Iterator[str]:
    if isinstance(ev, FirstExpectation):
        yield fact("p", f"{ev.p:.3f}: the Judge's {ev.p_judge:.3f} shrunk towards {ev.p0:.3f}, the rate without drift")
    else:
        yield fact(
            "fair rate", f"{100 * ev.fair:.1f} % by the distances alone; the Judge says {100 * ev.p_judge:.0f} %"
        )
        yield fact("edge", f"{format_signed(100 * ev.edge, 1)} points count at most")
        slope = "none yet" if ev.beta is None or ev.beta_se is None else f"{format_signed(ev.beta)} ± {ev.beta_se:.2f}"
        yield fact("record", f"{ev.n} closed trades, slope {slope}: lambda {ev.lambda_:.3f}")
        yield fact("lasts", f"{ev.duration_hours:.1f} h on average; {100 * ev.timed_out:.1f} % of paths end by time")
    costs = f"fees {ev.fees_pct:.3f} %, slippage {ev.slippage_pct:.3f} %, funding {format_signed(ev.funding_pct, 3)} %"
    yield fact("costs in it", costs)


def _changes(changes: Sequence[RuleChange]) -> str:
    lines = (
        f"{bold(change.by)} {text(change.field)} {text(format_number(change.from_))} → "
        f"{text(format_number(change.to))}: {text(change.why)}"
        for change in changes
    )
    return quote(*lines) or "Nothing was changed."


def _degraded(view: RunView) -> str:
    missing = [warning(f"{missing.what}: {missing.why}") for missing in view.degraded]
    absent = quote(*map(text, format_absent(view.absent)))
    return join(bold("Done without"), *missing, absent) if missing or absent else ""


def _attempts(attempts: Sequence[AttemptView]) -> str:
    if not attempts:
        return join(bold("What models were asked"), "None: the rules spoke for everybody.")
    rows = [
        (f"{attempt.role} {attempt.attempt}", attempt.outcome, "?" if attempt.usd is None else f"${attempt.usd:.4f}")
        for attempt in attempts
    ]
    return join(bold("What models were asked"), table(("role", "outcome", "cost"), rows, left=("outcome",)))


def _run_line(run: RunLineView) -> str:
    kind = " SYNTHETIC" if run.synthetic else " CANDLES ONLY" if run.candles_only else ""
    ruling = _call(run.ruling) if run.state == "ended" else run.state
    when = "–" if run.as_of is None else f"{run.as_of[:16]}Z"
    judge = f"the Judge said {run.decision}, held by {run.veto}" if run.veto else ""
    return join(
        bold(f"{ruling} {run.symbol} {run.mode}{kind}"),
        text(f"{when}, {run.regime or 'no regime'}"),
        text(judge),
        code(run.run_id),
    )


def _progress_line(node: Node, event: NodeEvent) -> str:
    who = "" if event.source is None else SPOKE[event.source]
    cost = f"${event.usd:.4f}" if event.usd else ""
    told = plain_text(event.note, _NOTE_CHARS) if event.note and event.source != "deterministic" else ""
    about = ", ".join(part for part in (who, cost, told) if part)
    return f"{_MARKS[event.state]} {text(node.replace('_', ' '))}{f' · {text(about)}' if about else ''}"
