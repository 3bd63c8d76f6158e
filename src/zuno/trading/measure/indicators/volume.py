"""What volume says: MFI, CMF, OBV, volume-weighted prices and the balance of those who took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import talib

from zuno.trading.measure.bars import Bars, Floats
from zuno.trading.measure.indicators.rolling import ratio, rolling_sum, row_blocks, typical
from zuno.trading.model.market import DAY_MS

MFI_BARS: Final = 14
CMF_BARS: Final = 20


def mfi(high: Floats, low: Floats, close: Floats, volume: Floats) -> Floats:
    """The share of 14 bars' money that came while the typical price rose, 0–100; what came while it stood still counts
    for neither. Unknown where no money counted. (ta-lib says 0 there.)"""
    price = typical(high, low, close)
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
    """Chaikin's, 20 bars: volume weighted by where each bar closed in its range (−1 at the low, 1 at the high, 0 where
    it has none), as a share of the volume. Unknown without any."""
    place = np.nan_to_num(ratio((close - low) - (high - close), high - low))  # NaN where it has no range
    return ratio(rolling_sum(place * volume, CMF_BARS), rolling_sum(volume, CMF_BARS))


def obv(close: Floats, volume: Floats) -> Floats:
    """Volume added on a rise and taken off on a fall, from the first bar on: its changes mean something, its height
    does not."""
    return talib.OBV(close, volume)


def vwap(bars: Bars) -> Floats:
    """The volume-weighted typical price of each UTC day so far.

    Unknown in a day that is not here from midnight, before any volume, and in bars of a day or more, which have no day
    inside.
    """
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


def newest_anchored_vwaps(bars: Bars, since: Sequence[int]) -> list[float]:
    """The last value of `anchored_vwap` for each of these times, at which bars opened."""
    if not since:
        return []
    money, volume = _running_money(bars)
    starts = np.searchsorted(bars.at, since, side="left")
    over, under = (column[-1] - np.where(starts > 0, column[starts - 1], 0.0) for column in (money, volume))
    found: list[float] = ratio(over, under).tolist()
    return found


def cvd(bars: Bars) -> Floats:
    """What takers bought less what they sold, added up. Unknown where the venue does not say; after such a bar it
    counts from zero again, for what it passed over is not known."""
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
    money, volume = _running_money(bars)
    before = np.maximum(first - 1, 0)
    begun = first > 0
    return ratio(money - np.where(begun, money[before], 0.0), volume - np.where(begun, volume[before], 0.0))


def _running_money(bars: Bars) -> tuple[Floats, Floats]:
    """Σ price · volume and Σ volume from the first bar on."""
    return np.cumsum(typical(bars.high, bars.low, bars.close) * bars.volume), np.cumsum(bars.volume)
