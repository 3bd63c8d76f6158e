"""Frames of many moments at once: each over its own last bars, and bit by bit the one that is measured by itself.

Recursive gauges (averages, RSI, ATR, ADX, Supertrend) begin anew in every window and are computed window by window.
What a few bars say on their own (bands, clouds, money flow, turns, gaps, lines) is computed of the whole past once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

import numpy as np

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import LOOKBACK, Bars, Floats, exact_bars
from zuno.trading.measure.frames import Frame, FrameCache
from zuno.trading.measure.indicators import momentum, volatility_bands
from zuno.trading.measure.indicators import volume as flows
from zuno.trading.measure.indicators.all import SPARE, mark_valid_bars, round_indicators
from zuno.trading.measure.portable import PRICE_DIGITS, places
from zuno.trading.measure.structure.history import StructureHistory
from zuno.trading.model.market import Candle, Symbol, Timeframe

FEWEST: Final = 300
"""Bars from which every gauge is known; a shorter window is measured by itself."""
AT_ONCE: Final = 128
"""Windows whose Supertrends are computed together: so many stay in the processor's cache."""
_time_of: Final = attrgetter("at")


class PreparedFrames(FrameCache):
    """A cache that knows beforehand which candles it will be asked of: those of many moments of one past, in order.
    What was not prepared is measured as ever."""

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
        """As `take_newest_valid_bars` finds them; None where it has to look closer."""
        start = max(first, last - LOOKBACK - SPARE)
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
        self._unsound = np.concatenate(([0], np.cumsum(~mark_valid_bars(bars)))).tolist()
        self._frames: dict[tuple[int, int], Frame] = {}
        self._prepared = False

    def is_sound(self, first: int, last: int) -> bool:
        """Whether a market can have made all of these."""
        return bool(self._unsound[last] == self._unsound[first])

    def frame(self, first: int, last: int) -> Frame:
        if not self._prepared:
            self._prepare()
        if (first, last) not in self._frames:
            window = self.bars.cut(slice(first, last))
            strength = momentum.rsi(window.close)
            readings = round_indicators(window, self._newest_row(first, last, window, strength))
            structure = self._structure.structure(first - self._start, last - self._start, readings, strength)
            self._frames[first, last] = Frame(window.timeframe, readings, structure)
        return self._frames[first, last]

    def _prepare(self) -> None:
        self._prepared = True
        self._start = self._windows[0][0]
        past = self.bars.cut(slice(self._start, None))
        self._structure = StructureHistory(past, self._shoulder)
        high, low, close = past.high, past.low, past.close
        self._bands = volatility_bands.bollinger(close)
        self._cloud = volatility_bands.ichimoku(high, low, close)
        self._mfi = flows.mfi(high, low, close, past.volume)
        self._cmf = flows.cmf(high, low, close, past.volume)
        self._supertrends: dict[tuple[int, int], tuple[float, float]] = {}
        whole = [(first, last) for first, last in self._windows if last - first == LOOKBACK]
        for start in range(0, len(whole), AT_ONCE):
            self._prepare_supertrends(whole[start : start + AT_ONCE])

    def _prepare_supertrends(self, windows: Sequence[tuple[int, int]]) -> None:
        bars, width = volatility_bands.SUPERTREND
        cuts = [self.bars.cut(slice(first, last)) for first, last in windows]
        spread = np.stack([volatility_bands.atr(cut.high, cut.low, cut.close, bars)[bars:] for cut in cuts], axis=1)
        high, low, close = (
            np.stack([column[bars:] for column in columns], axis=1)
            for columns in zip(*((cut.high, cut.low, cut.close) for cut in cuts), strict=True)
        )
        lines, sides = volatility_bands.newest_supertrends(high, low, close, width * spread)
        self._supertrends.update(zip(windows, zip(lines.tolist(), sides.tolist(), strict=True), strict=True))

    def _newest_row(self, first: int, last: int, window: Bars, strength: Floats) -> list[float]:
        """The last row of `compute_indicators`, in its order."""
        high, low, close, volume = window.high, window.low, window.close, window.volume
        row = last - 1 - self._start
        bands, cloud = self._bands, self._cloud
        channel = volatility_bands.keltner(high, low, close)
        upper, middle, lower = (column[row : row + 1] for column in (bands.upper, bands.middle, bands.lower))
        newest = volatility_bands.Band(upper, middle, lower)
        outer = volatility_bands.Band(channel.upper[-1:], channel.middle[-1:], channel.lower[-1:])
        trend = self._supertrends.get((first, last))
        if trend is None:
            line, side = volatility_bands.supertrend(high, low, close)
            trend = float(line[-1]), float(side[-1])
        k, d = momentum.stoch_rsi(strength[-FEWEST // 4 :])
        found = (
            strength[-1],
            k[-1],
            d[-1],
            *(column[-1] for column in momentum.macd(close)),
            momentum.adx(high, low, close)[-1],
            *(momentum.ema(close, bars)[-1] for bars in (9, 21, 50, 200)),
            volatility_bands.atr(high, low, close)[-1],
            upper[0],
            middle[0],
            lower[0],
            ((upper - lower) / middle)[0],
            outer.upper[0],
            outer.middle[0],
            outer.lower[0],
            volatility_bands.squeeze(newest, outer)[0],
            *trend,
            *(column[row] for column in (cloud.tenkan, cloud.kijun, cloud.span_a, cloud.span_b)),
            cloud.lead_a[row],
            cloud.lead_b[row],
            close[-1],
            self._mfi[row],
            self._cmf[row],
            flows.obv(close, volume)[-1],
            flows.vwap(window)[-1],
            flows.cvd(window)[-1],
        )
        return [float(value) for value in found]
