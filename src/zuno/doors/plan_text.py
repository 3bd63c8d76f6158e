"""Texts about a plan that every door shows alike: choice, capital, bounds."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from zuno.kernel.numbers_text import short_text

if TYPE_CHECKING:
    from zuno.lp.service.execution_view import ApprovalView, CapitalView, ExecutionView, FlowView, SimulationView
    from zuno.lp.service.plan_view import CandidateView, PlanView, RecommendedView
    from zuno.lp.service.views import LeftoverView, PoolKeyView


def approval_text(view: ApprovalView) -> str:
    """What is about to happen in two lines: id, amounts, bounds."""
    moved = ", ".join(f"{signed_amount(flow)}" for flow in view.changes) or "see the steps above"
    bounds = view.bounds
    out = ", ".join(map(amount_text, bounds.most_out))
    leaves = f"at most {out} leave the wallet in a step" if out else "nothing leaves the wallet"
    about = positions_text(view, "")
    return (
        f"{view.plan_id}: {view.action}{about} on {view.chain}; expected: {moved}; {leaves}, "
        f"gas at most {short_text(bounds.most_gas_eth)} ETH.\n"
        f"Bounds: ticks {bounds.tick_low} to {bounds.tick_high} ({price_band(view)}), "
        f"slippage {bounds.slippage_bps} bps, until {bounds.expires_text}. Hash {view.approval_hash}"
    )


def positions_text(view: SimulationView | ExecutionView, before: str) -> str:
    """The positions a plan is about, after a preposition of its own."""
    ids = [*([view.position_id] if view.position_id else []), *view.other_position_ids]
    if not ids:
        return ""
    return f"{before} position{'s' if len(ids) > 1 else ''} {', '.join(ids)}"


def leftover_text(left: LeftoverView) -> str:
    """What a plan leaves in the wallet, and why."""
    tokens = ((left.token0, left.symbol0), (left.token1, left.symbol1))
    amounts = " and ".join(f"{short_text(f'{Decimal(amount):.9f}')} {symbol}" for amount, symbol in tokens)
    return f"{amounts}, {100 * left.share:.2f} %: {left.why}"


def price_band(view: SimulationView) -> str:
    return f"{short_text(view.bounds.price_low)} – {short_text(view.bounds.price_high)} {view.price_unit}"


def amount_text(flow: FlowView) -> str:
    return f"{short_text(flow.amount_human)} {flow.symbol}"


def capital_text(capital: CapitalView) -> str:
    return amount_text(capital) if capital.named else f"{amount_text(capital)} (what goes with it)"


def signed_amount(flow: FlowView) -> str:
    sign = "" if flow.amount.startswith("-") else "+"
    return f"{sign}{short_text(flow.amount_human)} {flow.symbol}"


def result_text(outcome: dict[str, object]) -> str:
    terms = outcome.get("inToken1")
    if not isinstance(terms, dict):
        return ""
    return f"{short_text(str(terms['result']))} {terms['token']} against its deposits (`zuno lp pnl` explains it)"


def capital_verb(chosen: CandidateView) -> str:
    return "holds" if chosen.kind == "hold" else "puts in"


def capital_in(chosen: RecommendedView) -> str:
    return pair_text(chosen.pool, short_text(chosen.amount0_human), short_text(chosen.amount1_human))


def opens_nothing(view: PlanView, candidate: CandidateView) -> bool:
    return view.kind == "create" and candidate.tick_lower is None


def candidate_kind(view: PlanView, candidate: CandidateView) -> str:
    """What there is to hold in a create is nothing."""
    return "open nothing" if opens_nothing(view, candidate) else candidate.kind


def candidate_range(candidate: CandidateView, between: str = " – ") -> str:
    if candidate.price_lower is None or candidate.price_upper is None:
        return ""
    return f"{short_text(candidate.price_lower)}{between}{short_text(candidate.price_upper)}"


def stress_hours(candidate: CandidateView) -> str:
    if candidate.stress is None:
        return ""
    points = (candidate.stress.x1, candidate.stress.x2, candidate.stress.x3)
    return "/".join(f"{'≥' if point.censored else ''}{point.median_hours}" for point in points)


def count_text(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def confidence_text(view: PlanView) -> str:
    if (share := view.over_runner_up) is None:
        return f"{view.confidence:.2f}"
    return f"{view.confidence:.2f}, ahead of the runner-up on {100 * share:.0f} % of paths"


def voices_text(view: PlanView) -> str:
    """The speakers of a debate, with the reason where one ran as a fallback."""
    counts: dict[str, list[str]] = {}
    for voice in view.voices:
        speaker = voice.speaker if not voice.model else f"{voice.speaker} {voice.model}"
        why = f" ({voice.why})" if voice.why else ""
        counts.setdefault(speaker + why, []).append(voice.role)
    tokens = sum(voice.tokens for voice in view.voices)
    spent = [None if voice.usd is None else Decimal(voice.usd) for voice in view.voices]
    known = sum(usd for usd in spent if usd is not None)
    price = f"at least ${known}, some unpriced" if None in spent else f"${known}"
    cost = f"; {tokens:,} tokens, {price}" if tokens else ""
    return "; ".join(f"{', '.join(dict.fromkeys(roles))}: {speaker}" for speaker, roles in counts.items()) + cost


def regimes_text(view: PlanView) -> str:
    return "; ".join(f"{line.pool} {line.regime}" for line in view.regimes)


def pair_text(pool: PoolKeyView, amount0: str, amount1: str, between: str = ", ") -> str:
    return f"{amount0} {pool.currency0.display_name}{between}{amount1} {pool.currency1.display_name}"
