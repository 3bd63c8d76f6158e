"""Fee cover of a recorded pool over any stretch of its record, and whether a fortnight predicts the week after."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import atanh, fsum, log, sqrt, tanh
from statistics import StatisticsError, correlation
from typing import Final

from zuno.amm.fees import PIPS
from zuno.amm.integers import Q96, Q128
from zuno.amm.model import price_of
from zuno.amm.ticks import cached_sqrt_price_at_tick
from zuno.kernel.units import Seconds
from zuno.kernel.view import View
from zuno.lab.comparisons import DEVIATIONS
from zuno.lab.model import format_span
from zuno.lp.model.minutes import PoolMinutes
from zuno.lp.model.tape import PoolDays, PoolTape
from zuno.lp.rules import fee_cover
from zuno.present.document import Section, lines, section

DAY: Final = 86_400
BY_MINUTES: Final = (5, 30, 60)
"""Spans of a return that are shown beside the one that the fee allows."""
BEFORE, AFTER = 14, 7
LEAST_WEEKS: Final = 5
MOST_DAYS: Final = 14


@dataclass(frozen=True, slots=True)
class PoolPath:
    """A pool's price from each moment on, and what a unit of liquidity in range earned by then since the one before."""

    prices: tuple[fee_cover.LogPrice, ...]
    roots: tuple[float, ...]
    fees: tuple[float, ...]
    """In token1."""
    fee_pips: int

    def cut(self, start: int, end: int) -> "PoolPath":
        """From the price that stood at `start` to `end`."""
        first, last = (bisect_right(self.prices, at, key=lambda price: price[0]) for at in (start, end))
        first = max(0, first - 1)
        return PoolPath(self.prices[first:last], self.roots[first:last], self.fees[first:last], self.fee_pips)

    def choose_minutes(self, edges: Sequence[int]) -> int | None:
        return fee_cover.choose_minutes(self.prices, edges, self.fee_pips)

    def measure_days(self, edges: Sequence[int], minutes: int) -> tuple[fee_cover.PoolDay, ...]:
        """A day between any two edges; one without a price is left out."""
        variances = fee_cover.measure_variances(self.prices, edges, minutes)
        places = [bisect_right(self.prices, edge, key=lambda price: price[0]) for edge in edges]
        return tuple(
            fee_cover.PoolDay(
                start // DAY, fsum(self.fees[first:last]), fsum(self.roots[first:last]) / (last - first) * found / 4
            )
            for (start, _), (first, last), found in zip(pairwise(edges), pairwise(places), variances, strict=True)
            if found is not None and last > first
        )


def path_of_minutes(recorded: PoolMinutes, fee_pips: int) -> PoolPath:
    """A minute's price stands from its end on."""
    prices, roots, fees = [], [], []
    logs: dict[int, int] = {}
    for row in recorded.minutes:
        root = cached_sqrt_price_at_tick(row.close_tick)
        if row.close_tick not in logs:
            logs[row.close_tick] = fee_cover.log_of(price_of(root))
        prices.append((row.at // 1000 + 60, logs[row.close_tick]))
        roots.append(root / Q96)
        came_in = row.in0 * roots[-1] ** 2 + row.in1
        fees.append(came_in * fee_pips / PIPS / row.liquidity if row.liquidity else 0.0)
    return PoolPath(tuple(prices), tuple(roots), tuple(fees), fee_pips)


def path_of_tape(tape: PoolTape, fee_pips: int) -> PoolPath:
    """By swap, from the way its price went."""
    swaps = tape.swaps
    roots = [swap.sqrt_price_x96 / Q96 for swap in swaps]
    rate = fee_pips / (PIPS - fee_pips)
    rose = (max(after - before, (1 / after - 1 / before) * after * after) for before, after in pairwise(roots))
    prices = ((swap.at, fee_cover.log_of(price_of(swap.sqrt_price_x96))) for swap in swaps)
    return PoolPath(tuple(prices), tuple(roots), (0.0, *(rate * way for way in rose)), fee_pips)


@dataclass(frozen=True, slots=True)
class RecordCover:
    cover: fee_cover.FeeCover | None
    minutes: int | None
    """That a return of the pool's own price must span; None: none is long enough."""
    by_minutes: Mapping[int, float]
    weeks: "WeeksView"


def measure_record(path: PoolPath) -> RecordCover:
    """By its days in UTC and what it has of the first and the last one."""
    first, last = path.prices[0][0] - 60, path.prices[-1][0]
    edges = [first, *range((first // DAY + 1) * DAY, last, DAY), last]
    minutes = path.choose_minutes(edges)
    spans = sorted({*BY_MINUTES, *([] if minutes is None else [minutes])})
    days = {span: path.measure_days(edges, span) for span in spans}
    covers = {span: fee_cover.measure_fee_cover(rows) for span, rows in days.items()}
    return RecordCover(
        None if minutes is None else covers[minutes],
        minutes,
        {span: cover.ratio for span, cover in covers.items() if cover is not None},
        predict_weeks(() if minutes is None else days[minutes]),
    )


def measure_until(path: PoolPath, at: Seconds) -> fee_cover.FeeCover | None:
    """Of the last days before a moment, at most fourteen whole ones; nothing later is looked at."""
    days = min(MOST_DAYS, (at - path.prices[0][0] + 60) // DAY)
    if days < 2:
        return None
    edges = [at - DAY * back for back in range(days, -1, -1)]
    seen = path.cut(edges[0], at)
    minutes = seen.choose_minutes(edges)
    return None if minutes is None else fee_cover.measure_fee_cover(seen.measure_days(edges, minutes))


def days_of(recorded: PoolDays) -> tuple[fee_cover.PoolDay, ...]:
    """A day's variance is its one squared return: enough over years, far too little for an interval by day."""
    days = []
    for before, after in pairwise(recorded.days):
        if after.day != before.day + 1:
            continue
        price, root = price_of(after.sqrt_price_x96), after.sqrt_price_x96 / Q96
        growth = [(after.growth0_x128 - before.growth0_x128), (after.growth1_x128 - before.growth1_x128)]
        moved = (fee_cover.log_of(price) - fee_cover.log_of(price_of(before.sqrt_price_x96))) / 1e9
        days.append(
            fee_cover.PoolDay(after.day, float((growth[0] * price + growth[1]) / Q128), root * moved * moved / 4)
        )
    return tuple(days)


class FollowingView(View):
    """Weeks after fortnights of one kind."""

    weeks: int
    fees_over_lvr: float | None


class WeeksView(View):
    """Whether the fee cover of a fortnight predicts that of the week after; weeks do not overlap."""

    weeks: int
    correlation: float | None
    """Of the logarithms; null: too few weeks."""
    ci95: tuple[float, float] | None
    smallest: float | None
    """Correlation that four of five such records would show."""
    after_paying: FollowingView
    after_not_paying: FollowingView

    def describe(self) -> Section:
        found = (
            f"Correlation of the logarithms over {self.weeks} weeks: {self.correlation:+.2f} "
            f"({format_span(self.ci95)}); {self.smallest:.2f} is found in four of five such records."
            if self.correlation is not None and self.smallest is not None
            else f"Not judged: {self.weeks} weeks with a fortnight before them, {LEAST_WEEKS} are needed."
        )
        kinds = (("1 or more", self.after_paying), ("under 1", self.after_not_paying))
        after = [
            f"After fortnights of {name} ({kind.weeks} weeks): {kind.fees_over_lvr:.2f}."
            for name, kind in kinds
            if kind.fees_over_lvr is not None
        ]
        return section("Does the fee cover of a fortnight predict that of the week after?", lines(found, *after))


def predict_weeks(days: Sequence[fee_cover.PoolDay]) -> WeeksView:
    pairs = [
        (_sums(days[place - BEFORE : place]), _sums(days[place : place + AFTER]))
        for place in range(BEFORE, len(days) - AFTER + 1, AFTER)
    ]
    pairs = [pair for pair in pairs if min(*pair[0], *pair[1]) > 0]
    logs = [(log(before[0] / before[1]), log(after[0] / after[1])) for before, after in pairs]
    found = _correlate(logs) if len(pairs) >= LEAST_WEEKS else None
    reach = DEVIATIONS / sqrt(len(pairs) - 3) if len(pairs) >= LEAST_WEEKS else 0.0
    ends = None if found is None else (tanh(atanh(found) - reach), tanh(atanh(found) + reach))

    def follow(paid: bool) -> FollowingView:
        after = [after for before, after in pairs if (before[0] >= before[1]) is paid]
        fees, lvr = fsum(week[0] for week in after), fsum(week[1] for week in after)
        return FollowingView(weeks=len(after), fees_over_lvr=round(fees / lvr, 6) if after else None)

    return WeeksView(
        weeks=len(pairs),
        correlation=None if found is None else round(found, 6),
        ci95=None if ends is None else (round(ends[0], 6), round(ends[1], 6)),
        smallest=None if found is None else round(tanh(reach * (1 + 0.84 / 1.96)), 6),
        after_paying=follow(True),
        after_not_paying=follow(False),
    )


def _sums(days: Sequence[fee_cover.PoolDay]) -> tuple[float, float]:
    return fsum(day.fees for day in days), fsum(day.lvr for day in days)


def _correlate(pairs: Sequence[tuple[float, float]]) -> float | None:
    try:
        return correlation(*zip(*pairs, strict=True))
    except StatisticsError:  # one of both stands still
        return None
