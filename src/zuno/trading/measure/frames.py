"""One timeframe of a symbol's own bars, measured: the last values of every indicator and the structure of its bars; of
one window, or of many windows of one past at once, bit by bit the same."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan
from operator import attrgetter
from typing import Any, Final, TypeVar

import numpy as np

from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.measure import indicators, structure
from zuno.trading.measure.bars import LOOKBACK, Bars, Floats, bars, exact_bars, join_bars
from zuno.trading.measure.levels import AnchoredVwap, Structure, find_zones, list_levels
from zuno.trading.measure.portable import PRICE_DIGITS, RATIO_PLACES, log, places
from zuno.trading.model.bundle import same_rows
from zuno.trading.model.market import Candle, Timeframe


def measure_structure_of_window(bars: Bars, columns: indicators.IndicatorSeries, shoulder: int) -> Structure:
    """Of exactly these sound bars, with pivots of that shoulder. `columns`: their indicators."""
    now = indicators.take_last_indicators(bars, columns)
    return StructureHistory(bars, shoulder).read(0, len(bars), now, columns.rsi)


def anchor_vwaps(bars: Bars, turns: Sequence[structure.Pivot]) -> tuple[AnchoredVwap, ...]:
    """Since the newest confirmed high and since the newest low; unknown without any volume since."""
    anchors = [pivot for extreme in structure.Extreme for pivot in structure.select_pivots(extreme, turns)[-1:]]
    prices = ((pivot, float(indicators.anchored_vwap(bars, pivot.at)[-1])) for pivot in anchors)
    return tuple(AnchoredVwap(pivot, price) for pivot, price in prices if not isnan(price))


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Frame:
    timeframe: Timeframe
    readings: indicators.IndicatorValues
    structure: Structure


def measure_frame(given: Bars, shoulder: int) -> Frame | None:
    """Of the last `LOOKBACK` sound bars; None when there is none."""
    clean = indicators.drop_invalid_bars(given)
    window = clean.last(LOOKBACK)
    if not len(window):
        return None
    columns = indicators.compute_indicators(window)
    seen = indicators.take_last_indicators(window, columns, unsound=len(given) - len(clean))
    shape = StructureHistory(window, shoulder).read(0, len(window), seen, columns.rsi)
    return Frame(given.timeframe, seen, shape)


class FrameCache:
    """Bars and frames of each timeframe, reused while the candles are the very same objects."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[Sequence[Candle], Any]] = {}

    def read_bars(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle]) -> Bars:
        """Of a window that went on only what came is made anew."""
        kept, known = self._kept.get((symbol, timeframe), ((), None))
        gone = bisect_left(kept, rows[0].at, key=_time_of) if rows else 0
        shared = len(kept) - gone

        def make() -> Bars:
            if known is None or not 0 < shared < len(rows) or not same_rows(kept[gone:], rows[:shared]):
                return bars(timeframe, rows)
            return join_bars(known.cut(slice(gone, None)), bars(timeframe, rows[shared:]))

        return self._read((symbol, timeframe), rows, make)

    def read_frame(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle], shoulder: int) -> Frame | None:
        """With pivots of that shoulder; None where no bar can be believed."""

        def measure() -> Frame | None:
            return measure_frame(self.read_bars(symbol, timeframe, rows), shoulder)

        return self._read((symbol, timeframe, shoulder), rows, measure)

    def read_newest(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle], as_of: Millis) -> Bars:
        """The last `LOOKBACK` sound bars that had closed by then."""
        make = partial(indicators.take_newest_valid_bars, timeframe, rows, as_of)
        moment, window = self._read((symbol, timeframe, "newest"), rows, lambda: (as_of, make()))
        return window if moment == as_of else make()

    def read_shared(self, name: str, rows: Sequence[Any], as_of: Millis, measure: Callable[[], T]) -> T:
        """What is the same for every market of one moment."""
        kept = self._kept.get((name,))
        if kept is None or kept[1][0] != as_of or not same_rows(kept[0], rows):
            self._kept[name,] = kept = (rows, (as_of, measure()))
        shared: T = kept[1][1]
        return shared

    def _read(self, name: tuple[object, ...], rows: Sequence[Any], measure: Callable[[], T]) -> T:
        """What was measured under that name, or is now."""
        kept = self._kept.get(name)
        if kept is not None and same_rows(kept[0], rows):
            cached: T = kept[1]
            return cached
        measured = measure()
        self._kept[name] = (rows, measured)
        return measured


FEWEST: Final = 300
"""Bars from which every gauge is known; a shorter window is measured by itself."""
AT_ONCE: Final = 128
"""Windows whose Supertrends are computed together: so many stay in the processor's cache."""
_time_of: Final = attrgetter("at")


class PreparedFrames(FrameCache):
    """A cache for the candles of many moments of one past, prepared in order. Anything else is measured as usual."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[int, tuple[FrameHistory, int, int]] = {}
        """By the identity of the rows, which are held here."""
        self._rows: list[Sequence[Candle]] = []

    def prepare(self, timeframe: Timeframe, shoulder: int, moments: Iterable[Sequence[Candle]]) -> None:
        """`moments`: the candles of each."""
        joined: list[Candle] = []
        spans: list[tuple[Sequence[Candle], int, int]] = []
        for rows in moments:
            if not rows:
                continue
            first = bisect_left(joined, rows[0].at, key=_time_of)
            known = len(joined) - first
            if list(rows[:known]) == joined[first:]:  # else a row was mended in between: measured as ever
                joined += rows[known:]
                spans.append((rows, first, first + len(rows)))
        history = FrameHistory(timeframe, shoulder, joined, [(first, last) for _, first, last in spans])
        for rows, first, last in spans:
            self._rows.append(rows)
            self._places[id(rows)] = history, first, last

    def read_bars(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle]) -> Bars:
        if id(rows) not in self._places:
            return super().read_bars(symbol, timeframe, rows)
        history, first, last = self._places[id(rows)]
        return history.bars(first, last)

    def read_frame(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle], shoulder: int) -> Frame | None:
        history, first, last = self._places.get(id(rows), (None, 0, 0))
        frame = None if history is None or history.shoulder != shoulder else history.frame(first, last)
        return super().read_frame(symbol, timeframe, rows, shoulder) if frame is None else frame

    def read_newest(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle], as_of: Millis) -> Bars:
        history, first, last = self._places.get(id(rows), (None, 0, 0))
        window = None if history is None else history.newest(first, last, as_of)
        return super().read_newest(symbol, timeframe, rows, as_of) if window is None else window


class FrameHistory:
    """Candles of one length, of which windows are asked for by their rows."""

    def __init__(
        self, timeframe: Timeframe, shoulder: int, rows: Sequence[Candle], spans: Sequence[tuple[int, int]]
    ) -> None:
        """`spans`: the first and the last row, without the last, of the candles that will be asked for."""
        self.shoulder = shoulder
        self._exact = exact_bars(timeframe, rows)
        self._spans = spans
        self._rounded: dict[tuple[int, ...], _RoundedHistory] = {}

    def bars(self, first: int, last: int) -> Bars:
        """As `bars` makes them of these candles."""
        return self._round(first).bars.cut(slice(first, last))

    def newest(self, first: int, last: int, as_of: Millis) -> Bars | None:
        """As `indicators.take_newest_valid_bars` finds them; None where it has to look closer."""
        start = max(first, last - LOOKBACK - indicators.SPARE)
        closed = int(self._exact.at[last - 1]) + self._exact.timeframe.millis <= as_of
        rounded = self._round(start)
        if not closed or not rounded.is_sound(start, last):
            return None
        return rounded.bars.cut(slice(max(start, last - LOOKBACK), last))

    def frame(self, first: int, last: int) -> Frame | None:
        """None where it has to be measured by itself: some candles are unsound, or they are few."""
        rounded = self._round(first)
        if last - first < FEWEST or not rounded.is_sound(first, last):
            return None
        return rounded.frame(max(first, last - LOOKBACK), last)

    def _round(self, first: int) -> _RoundedHistory:
        """To the digits that the first of these candles asks for; most often all ask for what is there already."""
        bars = self._exact
        prices = (bars.open, bars.high, bars.low, bars.close)
        decimals = tuple(places(float(column[first]), PRICE_DIGITS) for column in prices)
        if decimals not in self._rounded:
            rounded = [np.round(column, digits) for column, digits in zip(prices, decimals, strict=True)]
            self._rounded[decimals] = self._same_history(rounded)
        return self._rounded[decimals]

    def _same_history(self, prices: Sequence[Floats]) -> _RoundedHistory:
        for known in self._rounded.values():
            if all(map(np.array_equal, (known.bars.open, known.bars.high, known.bars.low, known.bars.close), prices)):
                return known
        exact = self._exact
        opened, high, low, close = prices
        bars = Bars(exact.timeframe, exact.at, opened, high, low, close, exact.volume, exact.taker_buy)
        windows = sorted({(max(first, last - LOOKBACK), last) for first, last in self._spans})
        return _RoundedHistory(bars, self.shoulder, windows)


class _RoundedHistory:
    """Bars whose prices are rounded alike, and the windows that are asked of them."""

    def __init__(self, bars: Bars, shoulder: int, windows: Sequence[tuple[int, int]]) -> None:
        self.bars = bars
        self._shoulder = shoulder
        self._windows = windows
        self._unsound = np.concatenate(([0], np.cumsum(~indicators.mark_valid_bars(bars)))).tolist()
        self._frames: dict[tuple[int, int], Frame] = {}
        self._prepared = False

    def is_sound(self, first: int, last: int) -> bool:
        return bool(self._unsound[last] == self._unsound[first])

    def frame(self, first: int, last: int) -> Frame:
        if not self._prepared:
            self._prepare()
        if (first, last) not in self._frames:
            window = self.bars.cut(slice(first, last))
            strength = indicators.rsi(window.close)
            readings = indicators.round_indicators(window, self._newest_row(first, last, window, strength))
            structure = self._structure.read(first - self._start, last - self._start, readings, strength)
            self._frames[first, last] = Frame(window.timeframe, readings, structure)
        return self._frames[first, last]

    def _prepare(self) -> None:
        self._prepared = True
        self._start = self._windows[0][0]
        past = self.bars.cut(slice(self._start, None))
        self._structure = StructureHistory(past, self._shoulder)
        high, low, close = past.high, past.low, past.close
        self._bands = indicators.bollinger(close)
        self._cloud = indicators.ichimoku(high, low, close)
        self._mfi = indicators.mfi(high, low, close, past.volume)
        self._cmf = indicators.cmf(high, low, close, past.volume)
        self._supertrends: dict[tuple[int, int], tuple[float, float]] = {}
        whole = [(first, last) for first, last in self._windows if last - first == LOOKBACK]
        for start in range(0, len(whole), AT_ONCE):
            self._prepare_supertrends(whole[start : start + AT_ONCE])

    def _prepare_supertrends(self, windows: Sequence[tuple[int, int]]) -> None:
        bars, width = indicators.SUPERTREND
        cuts = [self.bars.cut(slice(first, last)) for first, last in windows]
        spread = np.stack([indicators.atr(cut.high, cut.low, cut.close, bars)[bars:] for cut in cuts], axis=1)
        high, low, close = (
            np.stack([column[bars:] for column in columns], axis=1)
            for columns in zip(*((cut.high, cut.low, cut.close) for cut in cuts), strict=True)
        )
        lines, sides = indicators.newest_supertrends(high, low, close, width * spread)
        self._supertrends.update(zip(windows, zip(lines.tolist(), sides.tolist(), strict=True), strict=True))

    def _newest_row(self, first: int, last: int, window: Bars, strength: Floats) -> list[float]:
        """The last row of `indicators.compute_indicators`, in its order."""
        high, low, close, volume = window.high, window.low, window.close, window.volume
        row = last - 1 - self._start
        bands = indicators.Band(*(column[row : row + 1] for column in self._bands))
        channel = indicators.Band(*(column[-1:] for column in indicators.keltner(high, low, close)))
        trend = self._supertrends.get((first, last))
        if trend is None:
            line, side = indicators.supertrend(high, low, close)
            trend = float(line[-1]), float(side[-1])
        newest = (
            strength[-1],
            *(column[-1] for column in indicators.stoch_rsi(strength[-FEWEST // 4 :])),
            *(column[-1] for column in indicators.macd(close)),
            indicators.adx(high, low, close)[-1],
            *(indicators.ema(close, span)[-1] for span in indicators.EMA_BARS),
            indicators.atr(high, low, close)[-1],
            *(column[0] for column in bands),
            ((bands.upper - bands.lower) / bands.middle)[0],
            *(column[0] for column in channel),
            indicators.squeeze(bands, channel)[0],
            *trend,
            *(column[row] for column in self._cloud),
            self._mfi[row],
            self._cmf[row],
            indicators.obv(close, volume)[-1],
            indicators.vwap(window)[-1],
            indicators.cvd(window)[-1],
        )
        return [float(value) for value in newest]


class StructureHistory:
    """Of sound bars of one length, with pivots of one shoulder."""

    def __init__(self, bars: Bars, shoulder: int) -> None:
        self._bars = bars
        self._shoulder = shoulder
        self._ends = structure.close_times(bars)
        self._turns = structure.find_pivots(bars, shoulder)
        self._breaks = structure.find_breaks(bars, self._turns)
        self._gaps = structure.find_fair_value_gaps(bars)
        self._lines = structure.find_trend_lines(bars, self._turns)
        self._pairs = sorted(structure.list_neighbours(bars, self._turns), key=_pair_known_at)
        self._taken = indicators.taker_delta(bars)
        self._logs = log(bars.high), log(bars.low), log(bars.close)

    def read(self, first: int, last: int, now: indicators.IndicatorValues, strength: Floats) -> Structure:
        """Of the bars from row `first` up to but without `last`, of which these are the readings and the RSI."""
        # The first bar that has its whole left shoulder in the window.
        since, end = int(self._bars.at[min(first + self._shoulder, last - 1)]), self._ends[last - 1]
        bars = self._bars.cut(slice(first, last))
        begin = bisect_left(self._turns, since, key=_time_of)
        pivots = self._turns[begin : bisect_right(self._turns, end, key=_known_at)]
        breaks = self._choose_breaks(since, end)
        high, low, close = (column[first:last] for column in self._logs)
        reach = float(indicators.atr(high, low, close)[-1])
        shape = Structure(
            pivots=pivots,
            swings=structure.find_swings(pivots),
            breaks=breaks,
            trend=breaks[-1].way if breaks else None,
            gaps=self._choose_gaps(first, last, end),
            fibonacci=structure.measure_fibonacci(pivots),
            lines=self._choose_lines(since, end),
            divergences=self._choose_divergences(first, last, since, end, strength),
            profile=indicators.volume_profile(bars),
            anchored=anchor_vwaps(bars, pivots),
            log_atr=None if isnan(reach) else round(reach, RATIO_PLACES),
        )
        levels = list_levels(bars.timeframe, now, shape)
        return replace(shape, levels=levels, zones=find_zones(levels, now.atr))

    def _choose_breaks(self, since: int, end: int) -> tuple[structure.Break, ...]:
        """Of pivots of the window; the first of all is a BOS."""
        breaks: list[structure.Break] = []
        for each in _within(self._breaks, since, end, _known_at):
            if each.pivot.at >= since:
                turned = bool(breaks) and breaks[-1].way is not each.way
                kind = structure.BreakKind.CHOCH if turned else structure.BreakKind.BOS
                breaks.append(each if each.kind is kind else replace(each, kind=kind))
        return tuple(breaks)

    def _choose_gaps(self, first: int, last: int, end: int) -> tuple[structure.Gap, ...]:
        if last - first < 3:
            return ()
        begin = bisect_left(self._gaps, int(self._bars.at[first + 1]), key=_time_of)
        return tuple(
            replace(gap, filled_at=None) if gap.filled_at is not None and gap.filled_at > end else gap
            for gap in self._gaps[begin : bisect_right(self._gaps, end, key=_known_at)]
        )

    def _choose_lines(self, since: int, end: int) -> tuple[structure.TrendLine, ...]:
        return tuple(
            replace(line, broken_at=None) if line.broken_at is not None and line.broken_at > end else line
            for line in _within(self._lines, since, end, _known_at)
            if line.first.at >= since
        )

    def _choose_divergences(
        self, first: int, last: int, since: int, end: int, strength: Floats
    ) -> tuple[structure.Divergence, ...]:
        pairs = [
            (before, after, start - first, stop - first)
            for before, after, start, stop in _within(self._pairs, since, end, _pair_known_at)
            if start >= first + self._shoulder
        ]
        return structure.find_divergences(pairs, strength, self._taken[first:last])


_known_at: Final = attrgetter("known_at")


def _pair_known_at(pair: tuple[structure.Pivot, structure.Pivot, int, int]) -> Millis:
    return pair[1].known_at


def _within(several: Sequence[T], since: int, end: int, moment: Callable[[T], int]) -> Sequence[T]:
    """Of what is in order of its moments, those from `since` to `end`."""
    return several[bisect_left(several, since, key=moment) : bisect_right(several, end, key=moment)]
