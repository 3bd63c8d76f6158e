"""What experts read beside the features: how far the price came, who took, how wide its bands are, what others did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import Final

import numpy as np

from zuno.kernel.units import Millis
from zuno.trading.measure import indicators
from zuno.trading.measure.bars import Bars, Floats
from zuno.trading.measure.features import fresh_rows
from zuno.trading.measure.frames import FrameCache
from zuno.trading.measure.indicators import rolling_sum, taker_delta
from zuno.trading.measure.portable import PRICE_PLACES, RATIO_PLACES
from zuno.trading.measure.structure import PriceDirection
from zuno.trading.measure.triage import SPIKE_VOLUME
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import HOUR_MS, MacroRelease, Timeframe, candles, macro
from zuno.trading.model.venues import BINANCE, FRED, YAHOO

FLOW_BARS: Final = 30
ACTION_BARS: Final = 20
REJECTION_WICK: Final = 0.6
"""The share of a bar's range, which is no less than usual, from which a wick is a rejection."""
WIDTH_BARS: Final = 180
"""Days a band's width is held against."""
LEAST_PAST: Final = 60
PRINTS: Final = 5
"""Prints a change of the dollar or of stocks is taken over."""


@dataclass(frozen=True, slots=True)
class MacroQuote:
    """A figure of the economy as one venue prints it."""

    venue: str
    figure: str
    called: str
    """By its own name, so that nobody takes it for what it stands in for."""

    @property
    def name(self) -> str:
        return f"{self.venue}/{self.figure}"


DOLLAR: Final = (
    MacroQuote(YAHOO, "DXY", "DXY"),
    MacroQuote(FRED, "DTWEXBGS", "broad dollar index of FRED (DTWEXBGS, not DXY)"),
)
STOCKS: Final = (
    MacroQuote(YAHOO, "NASDAQ", "Nasdaq"),
    MacroQuote(FRED, "NASDAQCOM", "Nasdaq by FRED (NASDAQCOM)"),
)
"""Who is asked first, and who stands in for it."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure against five prints earlier. All of them are of one venue's one figure."""

    of: MacroQuote
    share: float


@dataclass(frozen=True, slots=True)
class TakerFlow:
    """Takers and the price over the last bars of one timeframe."""

    timeframe: Timeframe
    moved: float
    """The price's change, as a share."""
    balance: float
    """What takers bought less what they sold, as a share of what was traded."""
    rank: Known[float]
    """The share of earlier stretches as long in which they leaned less to buying."""
    slope: float
    """Of the line through the running balance: base units a bar."""


@dataclass(frozen=True, slots=True)
class PriceAction:
    """The last bar of the mode's shortest timeframe against the twenty before it: price and volume alone."""

    timeframe: Timeframe
    breakout: PriceDirection | None
    """Whether it closed above their highest high or below their lowest low."""
    level: float
    """That high or low; of no breakout, the nearer of the two."""
    volume_ratio: float
    """Its volume over their mean."""
    rejection: PriceDirection | None
    """A wick of most of its range says where the price was sent back to."""
    wick_share: float
    """The longer wick as a share of the range."""

    @property
    def volume_backing(self) -> float:
        """How much of a volume spike it had: none at the usual volume or less, all from twice as much on."""
        return min(1.0, max(0.0, (self.volume_ratio - 1) / (SPIKE_VOLUME - 1)))


@dataclass(frozen=True, slots=True)
class PriceContext:
    day: Known[float]
    """The price's change over 24 hours, as a share."""
    week: Known[float]
    flow: Known[TakerFlow]
    """Of the mode's middle timeframe."""
    days: Known[TakerFlow]
    """Of 1d bars."""
    width_rank: Known[float]
    """The share of earlier days whose Bollinger bands were narrower than the last."""
    dollar: Known[FigureChange]
    stocks: Known[FigureChange]
    action: Known[PriceAction]


def read_price_context(bundle: Bundle, cache: FrameCache | None = None) -> PriceContext:
    def window(timeframe: Timeframe) -> Known[Bars]:
        return _window(bundle, timeframe, cache or FrameCache())

    hours, days = window(Timeframe.H1), window(Timeframe.D1)
    return PriceContext(
        day=_price_change(hours, 24),
        week=_price_change(hours, 7 * 24),
        flow=_flow(window(bundle.mode.timeframes[1])),
        days=_flow(days),
        width_rank=_width_rank(days),
        dollar=_first_known(bundle, DOLLAR),
        stocks=_first_known(bundle, STOCKS),
        action=measure_price_action(window(bundle.mode.timeframes[0])),
    )


def _window(bundle: Bundle, timeframe: Timeframe, cache: FrameCache) -> Known[Bars]:
    rows = fresh_rows(bundle, candles(BINANCE, bundle.symbol, timeframe))
    if isinstance(rows, Missing):
        return rows
    window = cache.read_newest(bundle.symbol, timeframe, rows, bundle.as_of)
    return window if len(window) else Missing(f"no {timeframe} bar can be believed")


def _price_change(hours: Known[Bars], count: int) -> Known[float]:
    if isinstance(hours, Missing):
        return hours
    end = int(hours.at[-1])
    place = int(np.searchsorted(hours.at, end - count * HOUR_MS))
    if hours.at[place] != end - count * HOUR_MS:
        return Missing(f"the hour {count} hours before the last is not known")
    return float(hours.close[-1] / hours.close[place]) - 1


def measure_price_action(window: Known[Bars]) -> Known[PriceAction]:
    if isinstance(window, Missing):
        return window
    if len(window) <= ACTION_BARS:
        return Missing(f"{len(window)} {window.timeframe} bars are known, {ACTION_BARS + 1} are needed")
    before, usual = slice(-1 - ACTION_BARS, -1), fmean(window.volume[-1 - ACTION_BARS : -1].tolist())
    if not usual:
        return Missing(f"nothing traded in the {ACTION_BARS} {window.timeframe} bars before the last")
    opened, high, low, close = (float(c[-1]) for c in (window.open, window.high, window.low, window.close))
    top, bottom = float(window.high[before].max()), float(window.low[before].min())
    breakout = PriceDirection.UP if close > top else PriceDirection.DOWN if close < bottom else None
    upper, lower = high - max(opened, close), min(opened, close) - low
    wick = round(max(upper, lower) / (high - low), RATIO_PLACES) if high > low else 0.0
    reach = round(high - low, PRICE_PLACES) >= round(fmean((window.high - window.low)[before].tolist()), PRICE_PLACES)
    rejected = wick >= REJECTION_WICK and reach
    return PriceAction(
        window.timeframe,
        breakout,
        top if breakout is PriceDirection.UP or (breakout is None and top - close <= close - bottom) else bottom,
        round(float(window.volume[-1]) / usual, RATIO_PLACES),
        None if not rejected else PriceDirection.UP if lower > upper else PriceDirection.DOWN,
        wick,
    )


def _flow(window: Known[Bars]) -> Known[TakerFlow]:
    if isinstance(window, Missing):
        return window
    if len(window) <= FLOW_BARS:
        return Missing(f"{len(window)} {window.timeframe} bars are known, {FLOW_BARS + 1} are needed")
    delta, volume = taker_delta(window), window.volume
    if np.isnan(delta[-FLOW_BARS:]).any() or not volume[-FLOW_BARS:].sum():
        return Missing(f"who took is not known of all the last {FLOW_BARS} {window.timeframe} bars")
    shares = _shares(delta, volume)
    past = shares[:-1][np.isfinite(shares[:-1])]
    rank: Known[float] = Missing(f"{len(past)} earlier stretches are known, {LEAST_PAST} are needed")
    if len(past) >= LEAST_PAST:
        rank = float(np.mean(past < shares[-1]))
    return TakerFlow(
        window.timeframe,
        float(window.close[-1] / window.close[-1 - FLOW_BARS]) - 1,
        float(shares[-1]),
        rank,
        _slope(np.cumsum(delta[-FLOW_BARS:]).tolist()),
    )


def _slope(values: Sequence[float]) -> float:
    """Of the line with the least squares, a step to the next value being one."""
    middle = (len(values) - 1) / 2
    return fsum((place - middle) * value for place, value in enumerate(values)) / fsum(
        (place - middle) ** 2 for place in range(len(values))
    )


def _shares(delta: Floats, volume: Floats) -> Floats:
    """Of every stretch, the balance over the volume; NaN where a bar does not say, or nothing traded."""
    sums, traded = (rolling_sum(column, FLOW_BARS)[FLOW_BARS - 1 :] for column in (delta, volume))
    shares: Floats = np.divide(sums, traded, out=np.full(len(sums), np.nan), where=traded > 0)
    return shares


def _width_rank(days: Known[Bars]) -> Known[float]:
    if isinstance(days, Missing):
        return days
    bands = indicators.bollinger(days.close)
    width = ((bands.upper - bands.lower) / bands.middle)[-WIDTH_BARS - 1 :]
    past = width[:-1][np.isfinite(width[:-1])]
    if len(past) < LEAST_PAST or not np.isfinite(width[-1]):
        return Missing(f"{len(past)} days have a band, {LEAST_PAST} are needed")
    return float(np.mean(past < width[-1]))


def _first_known(bundle: Bundle, several: Sequence[MacroQuote]) -> Known[FigureChange]:
    """Of the first whose change is known; where none is, why none."""
    reasons = []
    for quoted in several:
        share = _figure_change(bundle, quoted)
        if not isinstance(share, Missing):
            return FigureChange(quoted, share)
        reasons.append(f"{quoted.name}: {share.reason}")
    return Missing("; ".join(reasons))


def _figure_change(bundle: Bundle, quoted: MacroQuote) -> Known[float]:
    """Against five prints earlier, of what the world knew."""
    known: dict[Millis, MacroRelease] = {}
    prints: Known[Sequence[MacroRelease]] = fresh_rows(bundle, macro(quoted.venue, quoted.figure))
    if isinstance(prints, Missing):
        return prints
    for row in sorted(prints, key=lambda row: row.released):
        if row.released <= bundle.as_of and 0 < row.value < float("inf"):
            known[row.at] = row
    if len(known) <= PRINTS:
        return Missing(f"{len(known)} prints are known, {PRINTS + 1} are needed")
    values = [known[day].value for day in sorted(known)]
    return values[-1] / values[-1 - PRINTS] - 1
