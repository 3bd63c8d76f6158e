"""The lab's studies and backtests, and what a study's moments add up to: counts, symmetry, calibration, power, bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb, fsum, sqrt
from typing import TYPE_CHECKING, Final

from zuno.kernel.wire import derive
from zuno.lab import model as views
from zuno.lab.comparisons import POWER_Z
from zuno.lab.market_study import MarketPlan, MarketStudy, describe_markets
from zuno.lab.mirror import mirror_call
from zuno.trading.measure.triage import Label, Rule
from zuno.trading.model.cycle import Call
from zuno.trading.rules.draft import RuleName, RuleOwner

if TYPE_CHECKING:
    from zuno.lab.checks import DeskChecks
    from zuno.lab.memory_service import MemoryStudy
    from zuno.lab.reports import LabReports
    from zuno.lab.strategies import StrategyLab
    from zuno.lab.trading.service import TradeLab

MIN_MOMENTS: Final = 200
"""Moments from which on the bars are judged: with fewer, a rule may well never fire."""
LEAST_ACTIVE, MOST_ACTIVE, MOST_ONE_RULE = 0.05, 0.50, 0.40
LEAST_MIRRORED: Final = 0.95
SMALL_EV_PCT: Final = 0.15
"""Per cent of EV by which a ruling and its mirror image may differ; what is not opened is worth nothing."""
BUCKETS: Final = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0)
CI_Z: Final = 1.96
"""Standard errors that hold 95 % of what chance makes."""
DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class StudyDesk:
    """Entry to the lab's studies, backtests and checks; of the home it uses the reports alone."""

    market: MarketStudy[views.MomentResult, views.StudyView]
    memory: MemoryStudy
    reports: LabReports
    trade: TradeLab
    checks: DeskChecks
    strategies: StrategyLab


def build_view(results: Sequence[views.MomentResult], plans: Sequence[MarketPlan], stopped: bool) -> views.StudyView:
    total = len(results)
    judged = total >= MIN_MOMENTS and not stopped
    missed = tuple(failed_criteria(results)) if judged else ()
    held = [result for result in results if result.holding in ("long", "short")]
    return views.StudyView(
        ok=not missed,
        stopped=stopped,
        **describe_markets([plan.seed for plan in plans], sum(plan.moments for plan in plans), total),
        judged=judged,
        missed=missed,
        decisions=count_names((result.own.decision for result in results), total),
        rulings=count_names((result.own.ruling for result in results), total),
        exploration=sum(result.exploration for result in results),
        vetoes=count_names((result.own.veto for result in results if result.own.veto), total),
        regimes=count_names((result.regime for result in results), total),
        triage=count_names((name for result in results for name in result.anomalies), total),
        rules=count_rules(results),
        kinds=count_kinds(results),
        open_positions=len(held),
        closed=sum(result.own.ruling == Call.CANCEL_AND_CLOSE for result in held),
        symmetry=compare_sides(results),
        calibration=calibrate(results),
        power=state_power(results),
    )


def count_names(names: Iterable[str], total: int) -> tuple[views.CountView, ...]:
    """The most frequent first, equals by name."""
    counts = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    return tuple(views.CountView(name=name, count=count, share=_share(count, total)) for name, count in counts)


def count_rules(results: Sequence[views.MomentResult]) -> dict[str, tuple[views.CountView, ...]]:
    """By owner, in the order of the rules; those that never fired too."""
    fired = Counter(rule for result in results for rule in result.rules)
    return {
        owner.value: tuple(
            views.CountView(name=rule.value, count=fired[rule.value], share=_share(fired[rule.value], len(results)))
            for rule in RuleName
            if rule.owner is owner
        )
        for owner in RuleOwner
    }


def count_kinds(results: Sequence[views.MomentResult]) -> tuple[views.KindView, ...]:
    kinds = dict.fromkeys(result.kind for result in results)
    return tuple(
        views.KindView(
            kind=kind,
            moments=sum(result.kind == kind for result in results),
            active=sum(result.kind == kind and result.own.ruling != Call.HOLD for result in results),
        )
        for kind in kinds
    )


def compare_sides(results: Sequence[views.MomentResult]) -> views.SymmetryView:
    long, short = (sum(result.own.decision == call for result in results) for call in (Call.LONG, Call.SHORT))
    pairs = [(result, result.mirrored) for result in results if result.mirrored is not None]
    differences = tuple(
        _difference(result, other) for result, other in pairs if mirror_call(Call(result.own.ruling)) != other.ruling
    )
    mirrored = len(pairs) - len(differences)
    return views.SymmetryView(
        long=long,
        short=short,
        chance=None if not long + short else _round(binomial_p_value(long, short)),
        ruled_long=sum(result.own.ruling == Call.LONG for result in results),
        ruled_short=sum(result.own.ruling == Call.SHORT for result in results),
        compared=len(pairs),
        mirrored=mirrored,
        share=_share(mirrored, len(pairs)) if pairs else None,
        differences=differences,
    )


def binomial_p_value(long: int, short: int) -> float:
    """The two-sided chance of a split at least so uneven where both sides are equally likely."""
    total, fewer = long + short, min(long, short)
    tail = sum(comb(total, count) for count in range(fewer + 1))
    return min(1.0, float(2 * tail / (1 << total)))


def _difference(result: views.MomentResult, other: views.RulingSummary) -> views.MirrorDifferenceView:
    own = result.own
    return derive(
        views.MirrorDifferenceView,
        own,
        result,
        mirrored=other.ruling,
        mirrored_ev_pct=other.ev_pct,
        mirrored_veto=other.veto,
        mirrored_score=other.score,
        small=abs((own.ev_pct or 0.0) - (other.ev_pct or 0.0)) <= SMALL_EV_PCT,
    )


def calibrate(results: Sequence[views.MomentResult]) -> views.CalibrationView:
    trades = [result.trade for result in results if result.trade is not None]
    if not trades:
        nothing: dict[str, None] = dict.fromkeys(("fair", "realised", "difference", "se", "inside"))
        return views.CalibrationView(trades=0, buckets=(), **nothing)
    fair, realised = _mean([trade.fair for trade in trades]), _mean([trade.y for trade in trades])
    error = standard_error(results)
    return views.CalibrationView(
        trades=len(trades),
        fair=_round(fair),
        realised=_round(realised),
        difference=_round(realised - fair),
        se=_round(error),
        inside=abs(realised - fair) <= CI_Z * error,
        buckets=tuple(_buckets(trades)),
    )


def standard_error(results: Sequence[views.MomentResult]) -> float:
    """Of the mean of y − f. Trades of one market overlap, markets do not: the larger of the two errors counts."""
    trades = [result.trade for result in results if result.trade is not None]
    markets: dict[int, list[float]] = {}
    for result in results:
        if result.trade is not None:
            markets.setdefault(result.seed, []).append(result.trade.y - result.trade.fair)
    between = sqrt(fsum(fsum(differences) ** 2 for differences in markets.values())) / len(trades)
    return max(_independent_error(trades), between if len(markets) > 1 else 0.0)


def state_power(results: Sequence[views.MomentResult]) -> views.PowerView:
    trades = [result.trade for result in results if result.trade is not None]
    if not trades:
        return views.PowerView(
            trades=0, smallest_edge=None, smallest_edge_pct=None, said="No trade was scored: no edge could be seen."
        )
    edge = POWER_Z * standard_error(results)
    worth = edge * _mean([trade.span_pct for trade in trades])
    return views.PowerView(
        trades=len(trades),
        smallest_edge=_round(edge),
        smallest_edge_pct=_round(worth),
        said=(
            f"With {len(trades)} scored trades an edge of {100 * edge:.1f} points ({worth:.2f} % a trade before costs) "
            "is found in four of five studies; a smaller one may well go unseen."
        ),
    )


def _buckets(trades: Sequence[views.TradeScore]) -> Iterator[views.BucketView]:
    for low, high in pairwise(BUCKETS):
        some = [trade for trade in trades if low <= trade.fair < high]
        if some:
            yield views.BucketView(
                low=low,
                high=high,
                trades=len(some),
                fair=_round(_mean([trade.fair for trade in some])),
                realised=_round(_mean([trade.y for trade in some])),
                se=_round(_independent_error(some)),
            )


def _independent_error(trades: Sequence[views.TradeScore]) -> float:
    return sqrt(fsum(trade.fair * (1 - trade.fair) for trade in trades)) / len(trades)


def failed_criteria(results: Sequence[views.MomentResult]) -> Iterator[str]:
    rulings = Counter(result.own.ruling for result in results)
    for call in Call:
        if not rulings[call.value]:
            yield f"no ruling is {call.value}"
    opened = sum(result.own.ruling in (Call.LONG, Call.SHORT) and not result.exploration for result in results)
    if opened:
        yield f"{opened} rulings open outside exploration, and no trade has been closed"
    active = 1 - rulings[Call.HOLD.value] / len(results)
    if not LEAST_ACTIVE <= active <= MOST_ACTIVE:
        yield f"{active:.0%} of the rulings are not HOLD; {LEAST_ACTIVE:.0%} to {MOST_ACTIVE:.0%} are asked for"
    fired = Counter(rule for result in results for rule in result.rules)
    anomalies = Counter(name for result in results for name in result.anomalies)
    # What a model asks for beyond the rules is no rule: without a model it never comes.
    ours = [rule for rule in RuleName if rule.owner is not RuleOwner.DESK and rule is not RuleName.TIGHTENED]
    names = [(rule.value, fired[rule.value]) for rule in ours]
    names += [(name.value, anomalies[name.value]) for kind in (Rule, Label) for name in kind]
    for name, count in names:
        if not count:
            yield f"{name} never fires"
        if count > MOST_ONE_RULE * len(results):
            yield f"{name} fires in {count / len(results):.0%} of the cycles"
    calibration = calibrate(results)
    if calibration.inside is not True:
        yield "the realised rate of wins is outside the band of a market without drift"
    symmetry = compare_sides(results)
    if symmetry.share is not None and symmetry.share < LEAST_MIRRORED:
        yield f"{symmetry.share:.1%} of the rulings are mirrored in the mirrored market; {LEAST_MIRRORED:.0%} are asked"
    large = sum(not difference.small for difference in symmetry.differences)
    if large:
        yield f"{large} rulings differ from their mirror images by more than {SMALL_EV_PCT} % of EV"


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _share(count: int, total: int) -> float:
    return _round(count / total) if total else 0.0


def _round(value: float) -> float:
    return round(value, DIGITS)
