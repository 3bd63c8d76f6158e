"""The structure of any window of a longer past, chosen from what was found in the whole of it once.

Whether a bar is a turn, jumps a gap or breaks a line is said by the bars beside it, not by where a window begins: a
window has those that lie in it whole, and of what became of them what was known by its end.
`measure_structure_of_window` measures the same of one window.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace

import numpy as np

from zuno.trading.measure.bars import Bars, Floats
from zuno.trading.measure.indicators.all import IndicatorValues
from zuno.trading.measure.indicators.profile import volume_profile
from zuno.trading.measure.indicators.volatility_bands import atr
from zuno.trading.measure.indicators.volume import taker_delta
from zuno.trading.measure.portable import RATIO_PLACES, log
from zuno.trading.measure.structure.all import Structure, anchor_vwaps
from zuno.trading.measure.structure.gaps import Gap, find_fair_value_gaps
from zuno.trading.measure.structure.levels import Measured, find_zones, list_levels
from zuno.trading.measure.structure.lines import (
    Divergence,
    DivergenceSource,
    TakerSums,
    TrendLine,
    find_trend_lines,
    list_neighbours,
    make_divergence,
    mark_divergent_moves,
)
from zuno.trading.measure.structure.pivots import Extreme, close_times, find_pivots
from zuno.trading.measure.structure.swings import (
    Break,
    BreakKind,
    Swing,
    find_breaks,
    find_swings,
    find_trend,
    measure_fibonacci,
)


class StructureHistory:
    """Of sound bars of one length, with pivots of one shoulder."""

    def __init__(self, bars: Bars, shoulder: int) -> None:
        self._bars = bars
        self._shoulder = shoulder
        self._ends = close_times(bars)
        turns = find_pivots(bars, shoulder)
        self._turns = turns
        self._turn_times = [pivot.at for pivot in turns]
        self._turns_known = [pivot.known_at for pivot in turns]
        self._swings = find_swings(turns)
        found = find_breaks(bars, turns)
        self._breaks = [{kind: replace(each, kind=kind) for kind in BreakKind} for each in found]
        self._broken = [(each.pivot.at, each.way) for each in found]
        self._breaks_known = [each.known_at for each in found]
        gaps = find_fair_value_gaps(bars)
        self._gaps = [(gap, replace(gap, filled_at=None)) for gap in gaps]
        self._gap_times = [gap.at for gap in gaps]
        self._gaps_known = [gap.known_at for gap in gaps]
        lines = find_trend_lines(bars, turns)
        self._lines = [(line, replace(line, broken_at=None)) for line in lines]
        self._lines_known = [line.known_at for line in lines]
        pairs = sorted(list_neighbours(bars, turns), key=lambda pair: pair[1].known_at)
        self._pairs = pairs
        self._pairs_known = [second.known_at for _, second, _, _ in pairs]
        self._starts = np.array([start for *_, start, _ in pairs], dtype=np.intp)
        self._stops = np.array([stop for *_, stop in pairs], dtype=np.intp)
        self._moved = np.array([second.price - first.price for first, second, _, _ in pairs])
        self._divergences: dict[tuple[DivergenceSource, int], Divergence] = {}
        self._taken = taker_delta(bars)
        self._said = ~np.isnan(self._taken)
        self._logs = log(bars.high), log(bars.low), log(bars.close)

    def structure(self, first: int, last: int, now: IndicatorValues, strength: Floats) -> Structure:
        """Of the bars from row `first` up to but without `last`, of which these are the readings and the RSI."""
        window = self._bars.cut(slice(first, last))
        since, end = self._oldest_turn(first, last), self._ends[last - 1]
        turns = self._turns[bisect_left(self._turn_times, since) : bisect_right(self._turns_known, end)]
        measured = Measured(
            timeframe=window.timeframe,
            now=end,
            readings=now,
            pivots=turns,
            fibonacci=measure_fibonacci(turns),
            gaps=self._choose_gaps(first, last, end),
            lines=self._choose_lines(since, end),
            profile=volume_profile(window),
            anchored=anchor_vwaps(window, turns),
        )
        menu = list_levels(measured)
        broken = self._choose_breaks(since, end)
        return Structure(
            pivots=turns,
            swings=self._choose_swings(since, end),
            breaks=broken,
            trend=find_trend(broken),
            gaps=measured.gaps,
            fibonacci=measured.fibonacci,
            lines=measured.lines,
            divergences=self._choose_divergences(first, last, since, end, strength),
            profile=measured.profile,
            anchored=measured.anchored,
            levels=menu,
            zones=find_zones(menu, now.atr),
            log_atr=self._measure_log_atr(first, last),
        )

    def _oldest_turn(self, first: int, last: int) -> int:
        """When the first bar opened that has its whole left shoulder in the window."""
        return int(self._bars.at[min(first + self._shoulder, last - 1)])

    def _choose_swings(self, since: int, end: int) -> tuple[Swing, ...]:
        """The first of a kind is held against none."""
        place = bisect_left(self._turn_times, since)
        found = list(self._swings[place : bisect_right(self._turns_known, end)])
        for extreme in Extreme:
            first = next((row for row, swing in enumerate(found) if swing.pivot.extreme is extreme), None)
            if first is not None:
                found[first] = Swing(found[first].pivot, None)
        return tuple(found)

    def _choose_breaks(self, since: int, end: int) -> tuple[Break, ...]:
        """Of pivots of the window; the first of all is a BOS."""
        span = range(bisect_left(self._breaks_known, since), bisect_right(self._breaks_known, end))
        found: list[Break] = []
        for place in span:
            at, way = self._broken[place]
            if at >= since:
                turned = found and found[-1].way is not way
                found.append(self._breaks[place][BreakKind.CHOCH if turned else BreakKind.BOS])
        return tuple(found)

    def _choose_gaps(self, first: int, last: int, end: int) -> tuple[Gap, ...]:
        if last - first < 3:
            return ()
        begin = bisect_left(self._gap_times, int(self._bars.at[first + 1]))
        return tuple(
            still if gap.filled_at is not None and gap.filled_at > end else gap
            for gap, still in self._gaps[begin : bisect_right(self._gaps_known, end)]
        )

    def _choose_lines(self, since: int, end: int) -> tuple[TrendLine, ...]:
        span = slice(bisect_left(self._lines_known, since), bisect_right(self._lines_known, end))
        return tuple(
            still if line.broken_at is not None and line.broken_at > end else line
            for line, still in self._lines[span]
            if line.first.at >= since
        )

    def _choose_divergences(
        self, first: int, last: int, since: int, end: int, strength: Floats
    ) -> tuple[Divergence, ...]:
        places = np.arange(bisect_left(self._pairs_known, since), bisect_right(self._pairs_known, end))
        places = places[self._starts[places] >= first + self._shoulder]
        starts, stops, moved = self._starts[places] - first, self._stops[places] - first, self._moved[places]
        found = [
            (place, DivergenceSource.RSI)
            for place in places[mark_divergent_moves(moved, strength[stops] - strength[starts])].tolist()
        ]
        if self._said[first:last].any():
            sums = TakerSums(self._taken[first:last])
            found += [(place, DivergenceSource.CVD) for place in places[sums.move_apart(moved, starts, stops)].tolist()]
            found.sort(key=lambda each: each[0])  # of one pair the RSI's first
        return tuple(self._divergence(gauge, place) for place, gauge in found)

    def _divergence(self, gauge: DivergenceSource, place: int) -> Divergence:
        if (gauge, place) not in self._divergences:
            before, after, _, _ = self._pairs[place]
            self._divergences[gauge, place] = make_divergence(gauge, before, after)
        return self._divergences[gauge, place]

    def _measure_log_atr(self, first: int, last: int) -> float | None:
        high, low, close = (column[first:last] for column in self._logs)
        reach = float(atr(high, low, close)[-1])
        return None if np.isnan(reach) else round(reach, RATIO_PLACES)
