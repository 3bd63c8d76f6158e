"""Technical indicators: the formula of each as a column over bars, all of them at once, and their last values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from math import fsum, isfinite
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
import talib
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import LOOKBACK, Bars, Floats
from zuno.trading.measure.bars import bars as bars_of
from zuno.trading.measure.portable import GAUGE_DIGITS, RATIO_PLACES, places
from zuno.trading.model.chart import VolumeProfile
from zuno.trading.model.market import DAY_MS, Candle, Timeframe

BLOCK_ROWS: Final = 8_192


def row_blocks(rows: int) -> Iterator[slice]:
    """All rows in blocks that fit the processor's cache: faster than fresh arrays of long columns."""
    return (slice(start, min(start + BLOCK_ROWS, rows)) for start in range(0, rows, BLOCK_ROWS))


def rolling_sum(values: Floats, window: int) -> Floats:
    """The sum of each value and the `window − 1` before it; NaN until there are so many. Summed anew in every window,
    by doubling, because a running sum accumulates rounding."""
    out = np.full(len(values), np.nan)
    sums = out[window - 1 :]
    for rows in row_blocks(len(sums)):
        total = sums[rows]
        total[:] = 0.0
        block, size, start = values[rows.start : rows.stop + window - 1], 1, 0
        while size <= window:
            if window & size:
                total += block[start : start + len(total)]
                start += size
            block = block[:-size] + block[size:] if 2 * size <= window else block
            size *= 2
    return out


def lag(values: Floats, by: int) -> Floats:
    """Each value as it stood so many rows before."""
    count = min(by, len(values))
    return np.concatenate((np.full(count, np.nan), values[: len(values) - count]))


def ratio(over: Floats, under: Floats) -> Floats:
    """A share of a whole; NaN where the whole is nothing, and so its share."""
    with np.errstate(invalid="ignore"):
        return over / under


RSI_BARS: Final = 14
STOCH_BARS: Final = 14
STOCH_SMOOTHING: Final = 3
MACD_BARS: Final = (12, 26, 9)
EMA_BARS: Final = (9, 21, 50, 200)
ADX_BARS: Final = 14
_ROUNDING: Final = 1e-9
"""An RSI that stays as it is still trembles in its last digits: a range of no more than this is none."""


def ema(close: Floats, bars: int) -> Floats:
    """Exponential average with weight 2/(bars + 1), begun at the plain mean of the first `bars` closes."""
    return talib.EMA(close, bars)


def rsi(close: Floats) -> Floats:
    """Wilder's RSI of 14 bars. It keeps its value while nothing moves; 50 before the first move."""
    out = talib.RSI(close, RSI_BARS)
    moved = close != close[:1]
    out[RSI_BARS : moved.argmax() if moved.any() else None] = 50.0
    return out


def stoch_rsi(strength: Floats) -> tuple[Floats, Floats]:
    """StochRSI 14/14/3/3 as %K and %D (ta-lib smooths once less). Unknown where the RSI had no range."""
    low, span = talib.MIN(strength, STOCH_BARS), talib.MAX(strength, STOCH_BARS)
    span -= low
    span[~(span > _ROUNDING)] = np.nan
    raw = np.subtract(strength, low, out=low)
    raw /= span
    raw *= 100
    k = _mean_of_three(raw)
    return k, _mean_of_three(k)


def macd(close: Floats) -> tuple[Floats, Floats, Floats]:
    """Line (EMA12 − EMA26), signal (EMA9 of the line) and histogram, known from the 34th bar on, as ta-lib has them."""
    return talib.MACD(close, *MACD_BARS)


def adx(high: Floats, low: Floats, close: Floats) -> Floats:
    """Wilder's ADX of 14 bars, 0–100; 0 before any direction. A bar without direction leaves it as it is."""
    return talib.ADX(high, low, close, ADX_BARS)


def _mean_of_three(values: Floats) -> Floats:
    out = np.full(len(values), np.nan)
    sums = np.add(values[2:], values[1:-1], out=out[2:])
    sums += values[:-2]
    sums /= STOCH_SMOOTHING
    return out


ATR_BARS: Final = 14
BOLLINGER: Final = (20, 2.0)
KELTNER: Final = (20, 1.5)
SUPERTREND: Final = (10, 3.0)
TENKAN: Final = 9
KIJUN: Final = 26
SENKOU_B: Final = 52
SHIFT: Final = 26
"""Bars the cloud stands ahead of what it is computed from, and chikou behind."""
_SLACK: Final = 1e-12
"""Of the price: what rounding may put between two bands that are the same."""


class Band(NamedTuple):
    upper: Floats
    middle: Floats
    lower: Floats


def atr(high: Floats, low: Floats, close: Floats, bars: int = ATR_BARS) -> Floats:
    """Wilder's average of the true range; the first bar has none, for nothing closed before it."""
    return talib.ATR(high, low, close, bars)


def bollinger(close: Floats) -> Band:
    """The mean of 20 closes ± two population deviations. (ta-lib's formula loses half the digits.)"""
    window, width = BOLLINGER
    middle = rolling_sum(close, window)
    middle /= window
    upper, lower = np.full(len(close), np.nan), np.full(len(close), np.nan)
    before = window - 1
    for rows in row_blocks(len(close) - before):
        start, stop = rows.start + before, rows.stop + before
        mean, squares, apart = middle[start:stop], np.zeros(stop - start), np.empty(stop - start)
        for back in range(window):
            np.subtract(close[start - back : stop - back], mean, out=apart)
            squares += np.square(apart, out=apart)
        spread = width * np.sqrt(squares / window)
        np.add(mean, spread, out=upper[start:stop])
        np.subtract(mean, spread, out=lower[start:stop])
    return Band(upper, middle, lower)


def keltner(high: Floats, low: Floats, close: Floats) -> Band:
    """EMA20, and 1.5 times the ATR of 20 bars either side."""
    window, width = KELTNER
    middle = ema(close, window)
    spread = width * atr(high, low, close, window)
    return Band(middle + spread, middle, middle - spread)


def squeeze(inner: Band, outer: Band) -> Floats:
    """1 where Bollinger's bands lie inside Keltner's, else 0; in a market that stands still both are one line: 1."""
    slack = _SLACK * inner.middle
    inside = (inner.upper <= outer.upper + slack) & (inner.lower >= outer.lower - slack)
    return np.where(np.isnan(inner.upper) | np.isnan(outer.upper), np.nan, inside.astype(np.float64))


def supertrend(high: Floats, low: Floats, close: Floats) -> tuple[Floats, Floats]:
    """Supertrend 10×3: the line, and the side the price is on (1 above, −1 below). It begins above the line when the
    first close that has an ATR is not below its bar's middle."""
    bars, width = SUPERTREND
    spread = width * atr(high, low, close, bars)
    middle = (high + low) / 2
    line, sides = np.full(len(close), np.nan), np.full(len(close), np.nan)
    known = np.flatnonzero(~np.isnan(spread))
    if not len(known):
        return line, sides
    start = int(known[0])
    rows = zip(*((column[start:]).tolist() for column in (middle + spread, middle - spread, close)), strict=True)
    states = _ratchet(rows, up=bool(close[start] >= middle[start]))
    line[start:] = [price for price, _ in states]
    sides[start:] = [side for _, side in states]
    return line, sides


def newest_supertrends(high: Floats, low: Floats, close: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """The last values of `supertrend` for many windows of one length, each a column. `spread`: width times ATR10."""
    middle = (high + low) / 2
    uppers, lowers = middle + spread, middle - spread
    many = close.shape[1]
    up = close[0] >= middle[0]
    ceiling, floor, before = np.full(many, math.inf), np.full(many, -math.inf), np.full(many, math.nan)
    for upper, lower, now in zip(uppers, lowers, close, strict=True):
        np.copyto(ceiling, upper, where=(upper < ceiling) | (before > ceiling))
        np.copyto(floor, lower, where=(lower > floor) | (before < floor))
        up = np.where(up, now >= floor, now > ceiling)
        before = now
    return np.where(up, floor, ceiling), np.where(up, 1.0, -1.0)


def ichimoku(high: Floats, low: Floats, close: Floats) -> tuple[Floats, ...]:
    """Tenkan, the middle of 9 bars; kijun, of 26; the cloud between their mean and the middle of 52, over each bar and
    26 ahead of it; chikou. Every row holds what was known when its bar closed."""
    tenkan, kijun, lead_b = ((talib.MAX(high, bars) + talib.MIN(low, bars)) / 2 for bars in (TENKAN, KIJUN, SENKOU_B))
    lead_a = (tenkan + kijun) / 2
    chikou = np.where(np.arange(len(close)) >= SHIFT, close, np.nan)
    return tenkan, kijun, lag(lead_a, SHIFT), lag(lead_b, SHIFT), lead_a, lead_b, chikou


def _ratchet(rows: Iterable[tuple[float, float, float]], up: bool) -> list[tuple[float, float]]:
    states: list[tuple[float, float]] = []
    ceiling, floor, before = math.inf, -math.inf, math.nan
    for upper, lower, close in rows:
        if upper < ceiling or before > ceiling:
            ceiling = upper
        if lower > floor or before < floor:
            floor = lower
        if up and close < floor:
            up = False
        elif not up and close > ceiling:
            up = True
        states.append((floor, 1.0) if up else (ceiling, -1.0))
        before = close
    return states


MFI_BARS: Final = 14
CMF_BARS: Final = 20


def mfi(high: Floats, low: Floats, close: Floats, volume: Floats) -> Floats:
    """The share of 14 bars' money that came while the typical price rose, 0–100. Unknown without any move."""
    price = talib.TYPPRICE(high, low, close)
    out = np.full(len(price), np.nan)
    known = out[MFI_BARS:]
    for rows in row_blocks(len(known)):
        before, now = price[rows.start : rows.stop + MFI_BARS - 1], price[rows.start + 1 : rows.stop + MFI_BARS]
        money = now * volume[rows.start + 1 : rows.stop + MFI_BARS]
        rising, falling = (
            rolling_sum(money * moved, MFI_BARS)[MFI_BARS - 1 :] for moved in (now > before, now < before)
        )
        np.multiply(ratio(rising, rising + falling), 100, out=known[rows])
    return out


def cmf(high: Floats, low: Floats, close: Floats, volume: Floats) -> Floats:
    """Chaikin money flow of 20 bars: volume weighted by where each bar closed in its range. Unknown without volume."""
    place = np.nan_to_num(ratio((close - low) - (high - close), high - low))  # NaN where it has no range
    return ratio(rolling_sum(place * volume, CMF_BARS), rolling_sum(volume, CMF_BARS))


def obv(close: Floats, volume: Floats) -> Floats:
    """On-balance volume from the first bar on: only its changes mean something."""
    return talib.OBV(close, volume)


def vwap(bars: Bars) -> Floats:
    """The volume-weighted typical price of each UTC day so far. Unknown in days that are not here from midnight on,
    before any volume, and in bars of a day or more."""
    out = np.full(len(bars), np.nan)
    if not len(bars) or bars.timeframe.millis >= DAY_MS:
        return out
    days = bars.at // DAY_MS
    first = np.searchsorted(days, days, side="left")
    out = _vwap_since(bars, first)
    out[bars.at[first] % DAY_MS != 0] = np.nan
    return out


def anchored_vwap(bars: Bars, since: int) -> Floats:
    """The volume-weighted typical price since the bar that opened then, or the first after it; unknown before."""
    start = int(np.searchsorted(bars.at, since, side="left"))
    out = _vwap_since(bars, np.full(len(bars), min(start, max(0, len(bars) - 1))))
    out[:start] = np.nan
    return out


def cvd(bars: Bars) -> Floats:
    """What takers bought less what they sold, added up; it restarts from zero after a bar for which that is unknown."""
    delta = taker_delta(bars)
    known = ~np.isnan(delta)
    total = np.cumsum(np.where(known, delta, 0.0))
    unknown = np.maximum.accumulate(np.where(known, -1, np.arange(len(bars)))) if len(bars) else np.arange(0)
    base = np.where(unknown >= 0, total[unknown], 0.0)
    return np.where(known, total - base, np.nan)


def taker_delta(bars: Bars) -> Floats:
    """Bought less sold by takers, bar by bar."""
    return 2 * bars.taker_buy - bars.volume


def _vwap_since(bars: Bars, first: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
    """Σ price · volume / Σ volume from row `first` of each row on."""
    money, volume = np.cumsum(talib.TYPPRICE(bars.high, bars.low, bars.close) * bars.volume), np.cumsum(bars.volume)
    before = np.maximum(first - 1, 0)
    begun = first > 0
    return ratio(money - np.where(begun, money[before], 0.0), volume - np.where(begun, volume[before], 0.0))


BINS: Final = 24
VALUE_AREA: Final = 0.70


def volume_profile(bars: Bars) -> VolumeProfile | None:
    """Of all these bars: each bar's volume lies evenly between its low and its high. None without volume."""
    total = fsum(bars.volume.tolist())
    if not total > 0:
        return None
    low, high = float(np.min(bars.low)), float(np.max(bars.high))
    if low == high:
        return VolumeProfile(low, high, (total, *(0.0,) * (BINS - 1)), low, low, low)
    edges = np.linspace(low, high, BINS + 1)
    volumes = _volume_by_bin(bars, edges)
    first, last = _value_area(volumes)
    busiest = int(np.argmax(volumes))
    middle = float(edges[busiest] + edges[busiest + 1]) / 2
    return VolumeProfile(low, high, tuple(volumes), middle, float(edges[first]), float(edges[last + 1]))


def _volume_by_bin(bars: Bars, edges: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    """Volume of each bin: by how much of a bar's height lies in it; a bar without height goes to the bin it is in."""
    height = bars.high - bars.low
    tall = height > 0
    low, high, density = bars.low[tall], bars.high[tall], bars.volume[tall] / height[tall]
    first = np.searchsorted(edges[1:-1], low, side="right")
    count = np.maximum(np.searchsorted(edges[1:-1], high, side="left") - first + 1, 1)
    # Each bar once for each bin it reaches into; a bin adds up its own in their order.
    row = np.repeat(np.arange(len(low)), count)
    place = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    covered = np.minimum(high[row], edges[place + 1]) - np.maximum(low[row], edges[place])
    volumes = np.bincount(place, density[row] * np.maximum(covered, 0.0), BINS)
    places = np.clip(np.searchsorted(edges, bars.low[~tall], side="right") - 1, 0, BINS - 1)
    np.add.at(volumes, places, bars.volume[~tall])
    return [float(volume) for volume in volumes]


def _value_area(volumes: list[float]) -> tuple[int, int]:
    first = last = volumes.index(max(volumes))
    held, wanted = volumes[first], VALUE_AREA * sum(volumes)
    while held < wanted and (first > 0 or last < len(volumes) - 1):
        below = volumes[first - 1] if first > 0 else -1.0
        above = volumes[last + 1] if last < len(volumes) - 1 else -1.0
        if above >= below:
            last += 1
        else:
            first -= 1
        held += max(above, below)
    return first, last


T = TypeVar("T")
_NO_PRICE: Final = frozenset("rsi stoch_rsi_k stoch_rsi_d adx bb_width squeeze supertrend_side mfi cmf obv cvd".split())


@dataclass(frozen=True, slots=True, eq=False)
class Indicators(Generic[T]):
    rsi: T
    stoch_rsi_k: T
    stoch_rsi_d: T
    macd: T
    macd_signal: T
    macd_histogram: T
    adx: T
    ema9: T
    ema21: T
    ema50: T
    ema200: T
    atr: T
    bb_upper: T
    bb_middle: T
    bb_lower: T
    bb_width: T
    """(upper − lower) / middle."""
    keltner_upper: T
    keltner_middle: T
    keltner_lower: T
    squeeze: T
    """1 or 0."""
    supertrend: T
    supertrend_side: T
    """1 when the price is above its line, −1 when below."""
    tenkan: T
    kijun: T
    span_a: T
    """The cloud over this bar: computed 26 bars before it."""
    span_b: T
    lead_a: T
    """The cloud that will stand over the bar 26 ahead."""
    lead_b: T
    chikou: T
    """This bar's close, to be drawn 26 bars back; unknown while there is no such bar."""
    mfi: T
    cmf: T
    obv: T
    vwap: T
    cvd: T


@dataclass(frozen=True, slots=True, eq=False)
class IndicatorSeries(Indicators[Floats]):
    """One value a bar; NaN where it cannot be known yet. No row depends on a later one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorValues(Indicators[float | None]):
    """The last value of every column, to the digits it is kept to; None where it cannot be known."""

    at: Millis
    """When the last bar opened."""
    bars: int
    """How many these rest on."""
    missing: int
    """Buckets between the first and the last of them that have no bar."""
    unsound: int
    """Bars that no market can have made, left out."""
    close: float
    squeeze: bool | None
    supertrend_side: int | None


INDICATOR_NAMES: Final = tuple(each.name for each in fields(Indicators))


def compute_indicators(bars: Bars) -> IndicatorSeries:
    """All indicators over these valid bars. The desk gives `bars.last(LOOKBACK)`: smoothing depends on it."""
    if not len(bars):
        return IndicatorSeries(*(np.empty(0) for _ in fields(IndicatorSeries)))
    high, low, close, volume = bars.high, bars.low, bars.close, bars.volume
    strength, bands, channel = rsi(close), bollinger(close), keltner(high, low, close)
    columns: list[Floats] = [  # in the order of the fields
        strength,
        *stoch_rsi(strength),
        *macd(close),
        adx(high, low, close),
        *(ema(close, span) for span in EMA_BARS),
        atr(high, low, close),
        *bands,
        (bands.upper - bands.lower) / bands.middle,
        *channel,
        squeeze(bands, channel),
        *supertrend(high, low, close),
        *ichimoku(high, low, close),
        mfi(high, low, close, volume),
        cmf(high, low, close, volume),
        obv(close, volume),
        vwap(bars),
        cvd(bars),
    ]
    return IndicatorSeries(*columns)


def take_last_indicators(bars: Bars, indicators: IndicatorSeries, unsound: int = 0) -> IndicatorValues:
    return round_indicators(bars, [float(getattr(indicators, name)[-1]) for name in INDICATOR_NAMES], unsound)


def round_indicators(bars: Bars, row: Sequence[float], unsound: int = 0) -> IndicatorValues:
    """The last row of every column, in their order, to the digits each is kept to."""
    close = float(bars.close[-1])
    decimals = places(close, GAUGE_DIGITS)
    kept = {
        name: round(value, RATIO_PLACES if name in _NO_PRICE else decimals) if isfinite(value) else None
        for name, value in zip(INDICATOR_NAMES, row, strict=True)
    }
    squeezed, side = kept.pop("squeeze"), kept.pop("supertrend_side")
    at = int(bars.at[-1])
    return IndicatorValues(
        at=Millis(at),
        bars=len(bars),
        missing=(at - int(bars.at[0])) // bars.timeframe.millis + 1 - len(bars),
        unsound=unsound,
        close=close,
        squeeze=None if squeezed is None else squeezed == 1,
        supertrend_side=None if side is None else int(side),
        **kept,
    )


def drop_invalid_bars(bars: Bars) -> Bars:
    """Bars a market can have made: positive prices, low ≤ open, close ≤ high, volume ≥ takers' volume ≥ 0."""
    good = mark_valid_bars(bars)
    return bars if np.all(good) else bars.cut(good)


def mark_valid_bars(bars: Bars) -> NDArray[np.bool_]:
    prices = np.stack((bars.open, bars.high, bars.low, bars.close))
    good = np.all(np.isfinite(prices) & (prices > 0), axis=0) & np.isfinite(bars.volume) & (bars.volume >= 0)
    good &= (bars.low <= np.minimum(bars.open, bars.close)) & (np.maximum(bars.open, bars.close) <= bars.high)
    good &= np.isnan(bars.taker_buy) | ((bars.taker_buy >= 0) & (bars.taker_buy <= bars.volume * (1 + 1e-9)))
    return np.asarray(good)


SPARE: Final = 100
"""Bars beyond the lookback that are looked at: so many may be unsound or not closed yet."""


def take_newest_valid_bars(timeframe: Timeframe, rows: Sequence[Candle], as_of: int) -> Bars:
    """The last `LOOKBACK` valid bars that had closed by then."""
    for given in (rows[-LOOKBACK - SPARE :], rows):
        window = drop_invalid_bars(bars_of(timeframe, given).upto(as_of)).last(LOOKBACK)
        if len(window) == LOOKBACK or len(given) == len(rows):
            break
    return window
