"""A plan of the LP desk in a chat: what it chose and why, what it would do, how far it has come."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from zuno.doors.plan_text import (
    amount_text,
    candidate_kind,
    candidate_range,
    capital_in,
    capital_text,
    capital_verb,
    confidence_text,
    count_text,
    leftover_text,
    opens_nothing,
    positions_text,
    price_band,
    regimes_text,
    result_text,
    signed_amount,
    voices_text,
)
from zuno.doors.telegram.layout import (
    TABLE_WIDTH,
    block,
    bold,
    code,
    command,
    fact,
    italic,
    join,
    note,
    paragraphs,
    quote,
    table,
    text,
    warning,
)
from zuno.doors.telegram.reply import Button, Reply
from zuno.kernel.numbers_text import short_text, thousands_text, time_text
from zuno.lp.model.debate import Role, Thought
from zuno.lp.service.archive import PlanDiffView, PlanLine, PlanListView, WhyView
from zuno.lp.service.execution_view import (
    ApprovalView,
    CallView,
    CompoundView,
    ExecutionView,
    SimulationView,
    StepView,
    UnsignedView,
)
from zuno.lp.service.plan_view import PlanView, ThoughtView
from zuno.lp.service.recommend import Waiting
from zuno.lp.service.views import PoolKeyView
from zuno.lp.watch.alerts import chain_label

MOST_PLANS: Final = 10
MOST_THOUGHTS: Final = 6
"""Of a debate that goes on, the newest that are shown."""
_THOUGHT_CHARS: Final = 240
_NAME_WIDTH: Final = 9
"""Of a candidate beside its range."""
_TO: Final = {"add": "to", "remove": "from"}
_GOOD_STATES: Final = frozenset({"confirmed", "approved", "final"})
_BAD_STATES: Final = frozenset({"failed", "rejected", "expired", "cancelled", "reverted", "partial", "superseded"})
_VERDICTS: Final = {"approve": "✓", "reject": "✕"}


def show_plan(view: PlanView) -> Reply:
    chosen = view.recommended
    what = f"{candidate_kind(view, chosen)} {candidate_range(chosen)}".strip()
    head = join(
        bold(
            f"{chain_label(view.chain)} · {_VERDICTS.get(view.verdict, '⚠')} {view.verdict.replace('_', ' ')}: {what}"
        ),
        italic(f"{view.kind} {view.position_id or ''} on {view.chain} at block {view.block}"),
        *map(note, view.computed_notes),
    )
    facts = join(
        text(view.because),
        *map(warning, view.cautions),
        fact("confidence", confidence_text(view)),
        "" if opens_nothing(view, chosen) else fact("pool", chosen.pool.label),
        "" if view.own_range is None else fact("your range", view.own_range),
        "" if chosen.tick_lower is None else fact("ticks", f"{chosen.tick_lower} to {chosen.tick_upper}"),
        "" if chosen.tick_lower is None else fact(capital_verb(chosen), capital_in(chosen)),
        fact("before", chosen.prep_action.removesuffix(" first")) if chosen.prep_action else "",
        fact("stays home", leftover_text(chosen.leftover)) if chosen.leftover else "",
        fact("regime", view.regime),
        fact("regimes", regimes_text(view)) if len(view.regimes) > 1 else "",
        fact("decided by", f"{view.decided_by} after {count_text(view.rounds, 'revision')}, profile {view.profile}"),
        f"{bold('plan')}: {code(view.plan_id)}",
    )
    return Reply(
        paragraphs(head, facts, _candidates(view), warn_unverified(candidate.pool for candidate in view.candidates)),
        _plan_buttons(view),
    )


def show_plan_list(view: PlanListView) -> Reply:
    if not view.plans:
        return Reply(f"No plans yet; {command('/recommend 1')} asks for one.")
    more = italic(f"{MOST_PLANS} of {len(view.plans)}") if len(view.plans) > MOST_PLANS else ""
    return Reply(paragraphs(bold("Plans, newest first"), *map(_plan_line, view.plans[:MOST_PLANS]), more))


def show_debate(view: WhyView) -> Reply:
    """The argument: what each candidate was found to be, and everything that was said."""
    head = join(bold(f"Why: {view.request_id}"), italic(f"held by {view.code}"))
    if view.plan is None:
        end = f"The flow failed: {view.failed}" if view.failed else "The debate did not end: nothing was decided."
        if view.seen_by:
            end = f"As seen by the {' and the '.join(view.seen_by)} of this home; the end is with whoever asked."
        return Reply(paragraphs(head, *map(_thought, view.transcript), warning(end)))
    plan = view.plan
    reasons = [
        f"{bold(f'{candidate.index} {candidate_kind(plan, candidate)}: {candidate.verdict}')} {text(candidate.reason)}"
        for candidate in plan.candidates
    ]
    earlier = [
        f"{bold(f'round {candidate.round}: {candidate.kind}, {candidate.verdict}')} {text(candidate.reason)}"
        for candidate in plan.earlier
    ]
    head = join(
        bold(f"{chain_label(plan.chain)} · Why {plan.verdict.replace('_', ' ')}: {plan.recommended.kind}"),
        italic(f"{view.request_id}, held by {view.code}"),
        *map(note, plan.computed_notes),
    )
    return Reply(
        paragraphs(
            head,
            text(plan.because),
            join(bold("Candidates"), *reasons, quote(*earlier)),
            join(bold("The debate"), *map(_thought, plan.transcript)),
            fact("voices", voices_text(plan)),
            join(bold("Sources"), quote(*_sources(plan))),
        ),
        _plan_buttons(plan)[1:],
    )


def show_plan_diff(view: PlanDiffView) -> Reply:
    if not view.changes:
        return Reply(text(f"{view.before} and {view.after} say the same."))
    changes = [fact(change.what, f"{change.before} → {change.after}") for change in view.changes]
    return Reply(paragraphs(join(bold("Plans compared"), text(f"{view.before} → {view.after}")), join(*changes)))


def show_simulation(view: SimulationView) -> Reply:
    return Reply(_simulation(view), (Button("Approve…", f"/approve {view.plan_id}"),) if view.ok else ())


def show_approval(view: ApprovalView) -> Reply:
    """What is signed when the owner says yes; the buttons are the confirmation's own."""
    signed = join(
        bold("What is signed"),
        f"{bold('plan')}: {code(view.plan_hash)}",
        f"{bold('what it does')}: {code(view.draft_hash)}",
        f"{bold('hash that is signed')}: {code(view.approval_hash)}",
        fact("chain id", str(view.chain_id)),
        f"{bold('wallet')}: {code(view.wallet)}",
        fact("who", view.who),
    )
    return Reply(paragraphs(_simulation(view), signed))


def show_execution(view: ExecutionView) -> Reply:
    about = positions_text(view, f" {_TO.get(view.action, 'of')}")
    mark = "✓" if view.state in _GOOD_STATES else "⚠" if view.state in _BAD_STATES else "⏳"
    facts = []
    if view.capital:
        named_first = sorted(view.capital, key=lambda capital: not capital.named)
        facts.append(fact("brings at most", " and ".join(map(capital_text, named_first))))
    if isinstance(view, CompoundView):
        facts += _compound(view)
    if view.new_position_id is not None:
        facts.append(fact("new position", view.new_position_id))
    if view.leftover is not None:
        facts.append(fact("stays home", leftover_text(view.leftover)))
    if view.in_wallet:
        facts.append(fact("in the wallet now", " and ".join(map(amount_text, view.in_wallet))))
    if view.gas_cost_eth != "0":
        facts.append(fact("gas paid", f"{short_text(view.gas_cost_eth)} ETH"))
    if view.state == "approved" and view.expires_text is not None:
        facts.append(fact("approved until", f"{view.expires_text} by the chain's clock"))
    if view.outcome is not None and (result := result_text(view.outcome)):
        facts.append(fact("result so far", result))
    if view.next:
        facts.append(fact("next", view.next))
    return Reply(
        paragraphs(
            join(
                bold(f"{chain_label(view.chain)} · {mark} {view.action}{about}: {view.state}"),
                italic(f"on {view.chain}"),
                text(view.why),
            ),
            join(*map(_step, view.steps)),
            join(*facts, f"{bold('plan')}: {code(view.plan_id)}"),
            join(*(warning(f"problem: {problem}") for problem in view.problems)),
            note(view.outcome_note) if view.outcome_note else "",
        ),
        _execution_buttons(view),
    )


def show_unsigned(view: UnsignedView) -> Reply:
    count = count_text(len(view.transactions), "transaction") if view.safe is None else "a Safe's batch"
    return Reply(
        paragraphs(
            bold(f"{chain_label(view.chain)} · {count} to sign elsewhere"),
            join(
                f"{bold('plan')}: {code(view.plan_id)}",
                f"{bold('wallet')}: {code(view.wallet)}, whose key is elsewhere",
                text(f"zuno plan apply {view.plan_id} --json prints them for another signer or a Safe."),
            ),
            join(*map(note, view.notes)),
        )
    )


def show_debate_progress(title: str, thoughts: Sequence[Thought], waiting: Waiting | None = None) -> str:
    """The newest thoughts and, as long as it goes on, whom it waits for, for a message that is edited."""
    said = [thought for thought in thoughts if thought.role is not Role.CLI]
    lines = [_thought(thought, _THOUGHT_CHARS) for thought in said[-MOST_THOUGHTS:]]
    return paragraphs(bold(title), join(*lines), "" if waiting is None else f"⏳ {text(str(waiting))}")


# -- parts


def _plan_buttons(view: PlanView) -> tuple[Button, ...]:
    why = Button("Why", f"/why {view.plan_id}")
    if view.recommended.kind == "hold":
        return (why,)
    return why, Button("Simulate", f"/plan {view.plan_id} simulate"), Button("Approve…", f"/approve {view.plan_id}")


def _execution_buttons(view: ExecutionView) -> tuple[Button, ...]:
    if view.state in {"approved", "handed_out"}:
        return (Button("Apply…", f"/apply {view.plan_id}"),)
    if view.state in {"drafted", "simulated"}:
        return (Button("Simulate", f"/plan {view.plan_id} simulate"), Button("Approve…", f"/approve {view.plan_id}"))
    return ()


def _candidates(view: PlanView) -> str:
    rows = [
        (
            f"{'→' if candidate.index == view.recommended.index else ' '}{candidate.index} "
            f"{candidate_kind(view, candidate)}",
            _money(candidate.carry.net24h),
            _money(candidate.carry.worth),
            candidate.verdict,
        )
        for candidate in view.candidates
    ]
    units = {candidate.carry.token for candidate in view.candidates}
    unit = units.pop() if len(units) == 1 else "the second token of its pool"
    return join(
        _ranges(view),
        table(("", "net/day", "worth", "verdict"), rows, left=("verdict",)),
        italic(f"net of LVR a day, worth over 14 days after cost, in {unit}"),
    )


def _ranges(view: PlanView) -> str:
    """The ranges of the candidates in one pool, drawn one under another by the logarithm of the price."""
    spans = []
    for candidate in view.candidates:
        low, high = float(candidate.price_lower or 0), float(candidate.price_upper or 0)
        if candidate.pool.id == view.recommended.pool.id and 0 < low < high < math.inf:
            spans.append((math.log(low), math.log(high), candidate))
    if not spans:
        return ""
    least, lowest = min((low, candidate.price_lower or "") for low, _, candidate in spans)
    most, highest = max((high, candidate.price_upper or "") for _, high, candidate in spans)
    room, lines = TABLE_WIDTH - _NAME_WIDTH - 1, []
    for low, high, candidate in spans:
        start, end = (round((edge - least) / (most - least) * (room - 1)) for edge in (low, high))
        bar = "├" + "─" * (end - start - 1) + "┤" if end > start else "│"
        name = f"{candidate.index} {candidate_kind(view, candidate)}"[:_NAME_WIDTH]
        lines.append(f"{name:<{_NAME_WIDTH}} {' ' * start}{bar}")
    left, right = short_text(lowest), short_text(highest)
    lines.append(f"{'':<{_NAME_WIDTH}} {left}{right:>{room - len(left)}}")
    return block(lines)


def _money(value: str | None) -> str:
    return "?" if value is None else short_text(value)


def _plan_line(plan: PlanLine) -> str:
    what = " ".join(part for part in (plan.kind, plan.position_id, "on", plan.chain) if part)
    state = "" if plan.choice == "hold" else f", {plan.state}"
    verdict = "" if plan.verdict is None else f"{plan.verdict.replace('_', ' ')}: "
    return join(
        bold(f"{verdict}{plan.choice}{state}"),
        text(f"{what}, {time_text(plan.at // 1000)}, by {plan.decided_by}"),
        code(plan.plan_id),
    )


def _thought(thought: Thought | ThoughtView, limit: int = 2_000) -> str:
    said = thought.text if len(thought.text) <= limit else f"{thought.text[: limit - 1]}…"
    return f"{bold(f'{thought.role} {thought.round}')} {text(said)}"


def _sources(view: PlanView) -> list[str]:
    lines = []
    for source in view.sources:
        about = f"{source.source}, {source.age_seconds} s old" if source.source else "none"
        notes = f"; {'; '.join(source.notes)}" if source.notes else ""
        lines.append(text(f"{source.feed}: {about}{' STALE' if source.stale else ''}{notes}"))
    return lines


def _simulation(view: SimulationView) -> str:
    about = positions_text(view, f" {_TO.get(view.action, 'of')}")
    outcome = "✓ it goes through" if view.error is None else f"⚠ it would fail: {view.error}"
    changes = ", ".join(map(signed_amount, view.changes)) or "nothing"
    facts = [
        text(outcome),
        fact("changes", changes),
        fact("gas", f"{thousands_text(str(view.gas_used))} units, about {short_text(view.gas_cost_eth)} ETH"),
    ]
    if view.range_low is not None and view.range_high is not None:
        span = f"{short_text(view.range_low)} – {short_text(view.range_high)} {view.price_unit}"
        facts.append(fact("range", span))
    if view.leftover is not None:
        facts.append(fact("stays home", leftover_text(view.leftover)))
    if view.price_after is not None:
        moved = f"{short_text(view.price_before)} → {short_text(view.price_after)} ({view.price_impact_bps} bps)"
        facts.append(fact("price", moved))
    return paragraphs(
        join(
            bold(f"{chain_label(view.chain)} · {view.action.capitalize()}{about}"),
            italic(f"{view.pool.label} on {view.chain} at block {view.block}"),
        ),
        join(*facts, f"{bold('plan')}: {code(view.plan_id)}"),
        _bounds(view),
        join(bold("Steps"), *map(_call, view.steps)),
        join(*map(note, view.notes)),
        warn_unverified([view.pool]),
    )


def _bounds(view: SimulationView) -> str:
    bounds = view.bounds
    most_out = ", ".join(f"at most {amount_text(flow)}" for flow in bounds.most_out) or "nothing"
    return join(
        bold("Bounds"),
        fact("price", price_band(view)),
        fact("tick", f"{bounds.tick_low} to {bounds.tick_high} (drift {bounds.tick_drift})"),
        fact("slippage", f"{bounds.slippage_bps} bps"),
        fact("leaves the wallet", most_out),
        fact("gas", f"at most {short_text(bounds.most_gas_eth)} ETH, {short_text(bounds.max_fee_gwei)} gwei a unit"),
        fact("until", bounds.expires_text),
    )


def _call(call: CallView) -> str:
    name = bold(f"{call.index + 1}. {call.kind.replace('_', ' ')}")
    later = " (built again from what the first half pays)" if call.later else ""
    error = warning(f"would revert: {call.error}") if call.error else ""
    return join(f"{name}{later}", error, quote(*map(text, call.words)))


def _step(step: StepView) -> str:
    mark = "✓" if step.state in _GOOD_STATES else "⚠" if step.state in _BAD_STATES else "·"
    told = step.why or (f"{step.attempts} attempts" if step.attempts > 1 else "")
    line = f"{mark} {step.index + 1}. {step.kind.replace('_', ' ')}: {step.state}{f', {told}' if told else ''}"
    return join(text(line), code(step.tx_hash) if step.tx_hash else "")


def _compound(view: CompoundView) -> list[str]:
    facts = [
        fact("fees owed", f"${view.fees_usd}, of which ${view.goes_in_usd} go in; gas about ${view.gas_usd}"),
        fact("earned back", "never" if view.break_even_hours is None else f"in {view.break_even_hours} h"),
    ]
    if view.best_in_hours is not None:
        best = "now" if float(view.best_in_hours) == 0 else f"in {view.best_in_hours} h"
        facts.append(fact("pays best", f"{best}, at ${view.fees24h_usd} of fees a day, ${view.net24h_usd} after LVR"))
    return facts


def warn_unverified(pools: Iterable[PoolKeyView]) -> str:
    """A line for each token that only its own contract vouches for."""
    tokens = {token.address: token for pool in pools for token in (pool.currency0, pool.currency1)}
    return join(
        *(
            f"⚠ {text(token.display_name)} is {code(token.address)}: its contract alone gives it this name, "
            "so no price is looked up"
            for token in tokens.values()
            if not token.verified
        )
    )
