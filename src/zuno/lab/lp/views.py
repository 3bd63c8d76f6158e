"""What a backtest of the LP desk says, in dollars."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from zuno.amm.model import price_of
from zuno.kernel.view import PartialView, View
from zuno.lab.bootstrap import interval_of_sum
from zuno.lab.cutoffs import ModelCutoffView
from zuno.lab.lp.arms import Arm, Move
from zuno.lab.lp.backtest import ArmResult
from zuno.lab.lp.fast import USD, Convention, MinuteColumns, earn_fees
from zuno.lab.lp.ranges import RangeView
from zuno.lp.model.minutes import MinuteRepairs

BLOCK_HOURS: Final = 24


class ComparisonView(View):
    """Against holding the same tokens, hour by hour over the same prices."""

    net_pnl_usd: float
    ci95: tuple[float, float] | None


class FastFeesView(View):
    """Fees by both engines, at the last price: the exact one plays every minute on the integer pool."""

    convention: str
    exact_usd: float
    fast_usd: float
    difference_pct: float | None
    """Of the exact figure."""


class ArmView(View):
    """USD; `residual` is what balances show and the terms do not explain, and anything but 0 is a fault."""

    arm: str
    by: str
    """Who decided: nobody, a rule, or the debate by rules."""
    net_pnl_usd: float
    fees: float
    price_effect: float
    divergence_loss: float
    lvr: float
    gas: float
    swap_cost: float
    residual: float
    model_tokens: int
    model_cost_usd: float
    unanswered: int
    """Questions to models that nobody answered, so that rules did."""
    time_in_range: float
    max_drawdown: float
    """Largest fall from a peak, as a share of it, between two hours' ends."""
    decisions: int
    rebalances: int
    refused: int
    moves: tuple[Move, ...]
    """Where each rebalance put the range, in ticks from the price; null: it closed the position."""
    ci95: tuple[float, float] | None
    """Of the net result, days resampled; null where there are too few."""
    vs_hold: ComparisonView | None
    fast_fees: FastFeesView | None
    """Null where it held no position, or is the mean of several runs."""
    equity_usd: tuple[float, ...]
    """At the end of every hour, the start first."""

    @property
    def changes(self) -> list[int]:
        """From hour to hour, in millionths of a dollar."""
        worths = [round(worth * USD) for worth in self.equity_usd]
        return [after - before for before, after in pairwise(worths)]


class LpLabView(PartialView):
    report: str
    """The id of its files in the home: `lab/ID.json`, `lab/ID.html`."""
    data: str
    edition: int
    since: int
    until: int
    """Unix seconds of the first and the last moment that counted."""
    hours: int
    capital_usd: int
    every_hours: int
    half_width_pct: float
    profile: str
    gas_gwei: float
    repairs: MinuteRepairs
    models: tuple[str, ...]
    """Who argued beside the rules; none: nobody."""
    arms: tuple[ArmView, ...]


DECIDED_BY: Final = {
    Arm.HOLD: "nobody",
    Arm.PASSIVE: "nobody",
    Arm.RESET: "rule",
    Arm.RANDOM: "chance",
    Arm.SCORE: "rule",
    Arm.NO_CRITIC: "Strategist by rules",
    Arm.PLACEBO: "debate by rules",
    Arm.DEBATE: "debate by rules",
}


def build_arm_view(result: ArmResult, columns: MinuteColumns, fee_pips: int, convention: Convention) -> ArmView:
    """Of one arm alone; `vs_hold` is for whoever knows the others."""
    terms = result.terms
    return ArmView(
        arm=result.arm,
        by=", ".join(sorted(result.used.models)) or DECIDED_BY[result.arm],
        net_pnl_usd=to_usd(result.net - Fraction(result.used.usd) * USD),
        fees=to_usd(terms.fees),
        price_effect=to_usd(terms.price_effect + result.idle_effect),
        divergence_loss=to_usd(terms.divergence_loss),
        lvr=round(result.lvr / USD, 6),
        gas=to_usd(terms.gas),
        swap_cost=to_usd(terms.swap_cost),
        residual=float(result.residual / USD),
        model_tokens=result.used.tokens,
        model_cost_usd=float(result.used.usd),
        unanswered=result.used.unanswered,
        time_in_range=round(result.minutes_in_range / result.minutes, 6),
        max_drawdown=measure_drawdown(result.hourly),
        decisions=result.decisions,
        rebalances=result.rebalances,
        refused=result.refused,
        moves=result.moves,
        ci95=None,
        vs_hold=None,
        fast_fees=compare_engines(result, columns, fee_pips, convention),
        equity_usd=tuple(worth / USD for worth in result.hourly),
    )


def complete_arm(arm: ArmView, held: ArmView | None) -> ArmView:
    """With its interval, and beside holding."""
    against = None
    if held is not None and held.arm != arm.arm:
        differences = [ours - theirs for ours, theirs in zip(arm.changes, held.changes, strict=True)]
        against = ComparisonView(
            net_pnl_usd=round(arm.net_pnl_usd - held.net_pnl_usd, 6), ci95=usd_interval(differences)
        )
    return arm.model_copy(update={"ci95": usd_interval(arm.changes), "vs_hold": against})


def compare_engines(
    result: ArmResult, columns: MinuteColumns, fee_pips: int, convention: Convention
) -> FastFeesView | None:
    """Fees of the same positions over the same minutes, computed all at once."""
    if not result.spans:
        return None
    price = price_of(result.sqrt_price_x96)
    earned = [
        earn_fees(columns.select_minutes(span.start, span.end), span.range, span.liquidity, fee_pips, convention)
        for span in result.spans
    ]
    exact = result.fees0 + result.fees1 / price
    fast = sum((Fraction(fees.fees0) + Fraction(fees.fees1) / price for fees in earned), Fraction(0))
    return FastFeesView(
        convention=convention,
        exact_usd=to_usd(exact),
        fast_usd=to_usd(fast),
        difference_pct=round(float(100 * (fast / exact - 1)), 6) if exact else None,
    )


def usd_interval(changes: Sequence[int]) -> tuple[float, float] | None:
    found = interval_of_sum(changes, BLOCK_HOURS)
    return None if found is None else (found[0] / USD, found[1] / USD)


def measure_drawdown(worths: Sequence[int]) -> float:
    peak, worst = worths[0], Fraction(0)
    for worth in worths:
        peak = max(peak, worth)
        worst = max(worst, 1 - Fraction(worth, peak))
    return round(float(worst), 6)


def to_usd(amount: Fraction) -> float:
    return round(float(amount / USD), 6)


class RegimeGainView(View):
    """Of the episodes of one kind of market, told by the price over the same horizon that is scored: nobody knew it
    when deciding."""

    regime: str
    episodes: int
    gain_usd: float
    """A decision."""
    ci95: tuple[float, float] | None


class ArmGainView(View):
    """An arm, and what the full debate gained over it; USD a decision, models and trading paid."""

    arm: str
    by: str
    episodes: int
    moved: int
    """Episodes in which it did something."""
    net_usd: float
    model_tokens: int
    model_cost_usd: float
    unanswered: int
    """Questions to models that nobody answered, so that rules did."""
    gain_usd: float | None
    """Of the debate over it; null for the debate itself."""
    ci95: tuple[float, float] | None
    p: float | None
    p_corrected: float | None
    """For all of these comparisons together (Holm)."""
    better: int | None
    """Decisions of the debate that differ and came out better; null where there is no decision to compare."""
    worse: int | None
    verdict: str
    """gain, loss, not shown."""
    regimes: tuple[RegimeGainView, ...]


class NotRunView(View):
    arm: str
    why: str


class LpAblationView(PartialView):
    report: str
    desk: str
    data: str
    edition: int
    since: int
    until: int
    episodes: int
    asked: int
    every_hours: int
    horizon_hours: int
    capital_usd: int
    half_width_pct: float
    profile: str
    repairs: MinuteRepairs
    reference: str
    """What the others are held against."""
    noise_floor_usd: float | None
    """Mean absolute difference, a decision, of the debate and the debate with fresh replies; null: not measured."""
    noise_floor_said: str
    headline: str
    models: tuple[ModelCutoffView, ...]
    arms: tuple[ArmGainView, ...]
    not_run: tuple[NotRunView, ...]


class QuantileView(View):
    share: int
    """Per cent of the ranges that did no better."""
    vs_hold_usd: float


class SweepView(PartialView):
    report: str
    data: str
    since: int
    until: int
    capital_usd: int
    asked: int
    ranges: int
    """That were played, each once: narrow ones that are alike after rounding to the pool's tick spacing are one."""
    above_hold: float
    """Share of the ranges that ended above holding."""
    quantiles: tuple[QuantileView, ...]
    best: tuple[RangeView, ...]
    worst: tuple[RangeView, ...]
    repairs: MinuteRepairs
    trials: int
    """Ranges that were ever tried in this home: the best of so many is no forecast."""


def describe_alike(view: SweepView) -> str:
    """How many of the ranges that were asked for are no ranges of their own; empty where all are."""
    if view.stopped or view.ranges == view.asked:
        return ""
    return (
        f"Of {view.asked:,} ranges {view.asked - view.ranges:,} narrow ones are the same as another after rounding "
        f"to the pool's tick spacing: {view.ranges:,} distinct ones were played."
    )
