"""The prices an agent may name: measured levels, the market price, and ATR steps from it."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, log10, sqrt
from operator import attrgetter
from typing import Final

import numpy as np

from zuno.trading.measure.bars import bars
from zuno.trading.measure.features import Features, fresh_rows
from zuno.trading.measure.frames import Frame
from zuno.trading.measure.heat import measure_open_now
from zuno.trading.measure.indicators import drop_invalid_bars
from zuno.trading.measure.portable import RATIO_PLACES, log_of, round_digits
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import HOUR_MS, Candle, Mode, Side, Timeframe, open_interest
from zuno.trading.model.wanted import own_candles
from zuno.trading.rules.account import last_close, read_markets

SNAP_ATR: Final = 0.1
"""Of the ATR: how far from a level a price may lie and still mean it."""
RANGE_STEPS_ATR: Final = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
"""Distances from the market's price, in ATR, either way."""
MARK: Final = "mark"
RANGE: Final = "range"
LIQ_CLUSTER: Final = "pool"
LIQ_CLUSTERS_PER_SIDE: Final = 2
"""Liquidation pools on either side of the market."""
LIQ_CLUSTER_BARS: Final = 180
POOL_REACH_ATR: Final = 10.0
"""ATR from the market to the furthest pool."""
LEVEL_REACH_ATR: Final = 8.0
"""ATR from the market to the furthest measured level, which is as far as a usual stop's best target: one that the price
has left further behind is quoted nowhere."""
POOL_ROWS: Final = 80
_price_of: Final = attrgetter("price")
ATR_FRAME: Final = {Mode.SWING: Timeframe.H4, Mode.POSITION: Timeframe.D1}


@dataclass(frozen=True, slots=True)
class MenuLevel:
    id: str
    kind: str
    price: float
    """A multiple of the tick."""


@dataclass(frozen=True, slots=True)
class PriceMenu:
    """By price and then by name."""

    levels: tuple[MenuLevel, ...]
    atr: Known[float]
    """What distances are measured in: of 4h bars in SWING, of 1d bars in POSITION."""
    tick: float
    now: Known[float]
    """Where the market is."""
    reach: float = inf
    """How far from the market levels are quoted, as a share of the price, in logarithms: the same either way."""

    def is_near(self, *prices: float) -> bool:
        """Whether any of these lies within reach, or the market between them; all do where the market is not known."""
        if isinstance(self.now, Missing) or min(prices) <= self.now <= max(prices):
            return True
        return min(abs(round(log_of(price / self.now), RATIO_PLACES)) for price in prices) <= self.reach

    @property
    def mark(self) -> float | None:
        """The market's own price, where it is on the menu."""
        return next((level.price for level in self.levels if level.kind == MARK), None)

    def snap(self, price: float | None) -> float | None:
        """The nearest level no further than a tenth of an ATR; of two as near the lower."""
        if price is None or isinstance(self.atr, Missing) or not isfinite(price) or not self.levels:
            return None
        above = bisect_left(self.levels, price, key=_price_of)
        beside = [level.price for level in self.levels[max(0, above - 1) : above + 1]]
        nearest = min(beside, key=lambda level: (abs(level - price), level))
        return nearest if abs(nearest - price) <= SNAP_ATR * self.atr else None


@dataclass(frozen=True, slots=True)
class TradePrices:
    """Entry, stop and target of a trade, and what they risk and win as shares of the entry."""

    side: Side
    entry: float
    stop: float
    take: float

    @property
    def is_ordered(self) -> bool:
        """The stop is behind the entry and the target ahead of it."""
        low, high = (self.stop, self.take) if self.side is Side.LONG else (self.take, self.stop)
        return low < self.entry < high

    @property
    def risk(self) -> float:
        return abs(self.entry - self.stop) / self.entry

    @property
    def reward(self) -> float:
        return abs(self.take - self.entry) / self.entry

    @property
    def fair_odds(self) -> float:
        """How often the target comes first where nothing drifts."""
        return self.risk / (self.risk + self.reward)


def build_price_menu(bundle: Bundle, features: Features) -> PriceMenu:
    rows = fresh_rows(bundle, own_candles(bundle.symbol, ATR_FRAME[bundle.mode]))
    frame = frame_of(features, ATR_FRAME[bundle.mode])
    atr, now = _atr(rows, frame), price_now(bundle, features)
    known = None if isinstance(atr, Missing) or isinstance(frame, Missing) else frame.structure.log_atr
    bounds = PriceMenu((), atr, 0.0, now, reach=inf if known is None else LEVEL_REACH_ATR * known)
    measured = (frame for _, frame in features.frames if not isinstance(frame, Missing))
    levels = (MenuLevel(level.id, level.kind, level.price) for frame in measured for level in frame.structure.levels)
    current = filter(lambda level: _is_current(level, bounds), levels)
    candidates = (*current, *_range_levels(now, atr), *_liquidation_pools(bundle, rows, bounds))
    catalogue, _ = read_markets(bundle)
    tick = catalogue.find(bundle.symbol.venue, bundle.symbol).tick
    rounded = (replace(level, price=round_to_tick(level.price, tick)) for level in candidates)
    kept = sorted((level for level in rounded if level.price > 0), key=attrgetter("price", "id", "kind"))
    return replace(bounds, levels=tuple(kept), tick=tick)


def round_to_tick(price: float, tick: float) -> float:
    """The nearest multiple of the tick, spelled as short as it is."""
    return round(round(price / tick) * tick, max(0, round(-log10(tick))))


def frame_of(features: Features, timeframe: Timeframe) -> Known[Frame]:
    return dict(features.frames).get(timeframe, Missing(f"{timeframe} was not measured"))


def hour_atr(features: Features, menu: PriceMenu, mode: Mode) -> Known[float]:
    """ATR14 of 1h bars; where the mode has no hours, what the menu's longer bars make of it by the root of time."""
    frame = frame_of(features, Timeframe.H1)
    if not isinstance(frame, Missing) and frame.readings.atr:
        return frame.readings.atr
    hours = ATR_FRAME[mode].millis / HOUR_MS
    return menu.atr if isinstance(menu.atr, Missing) else round_digits(menu.atr / sqrt(hours))


def _atr(rows: Known[Sequence[Candle]], frame: Known[Frame]) -> Known[float]:
    """Of bars that are not stale: yesterday's reach is no measure of today's stop."""
    if isinstance(rows, Missing):
        return rows
    if isinstance(frame, Missing):
        return frame
    return frame.readings.atr or Missing(f"{frame.readings.bars} bars of {frame.timeframe} make no ATR")


def price_now(bundle: Bundle, features: Features) -> Known[float]:
    """The book's mid, else the last close of the finest bars that are not stale."""
    if not isinstance(features.book, Missing):
        return features.book.mid
    close = last_close(bundle, bundle.symbol)
    if isinstance(close, Missing):
        return Missing(f"neither a book nor a close of {bundle.symbol} is fresh ({features.book.reason})")
    return close


def _is_current(level: MenuLevel, bounds: PriceMenu) -> bool:
    """Whether a measured level is within reach, and on its own side of the market: a line of support above the price,
    which the running bar fell through, supports nothing."""
    price = level.price
    if price <= 0 or not bounds.is_near(price):
        return False
    if isinstance(bounds.now, Missing):
        return True
    broken = "line_support" if price > bounds.now else "line_resistance" if price < bounds.now else None
    return broken is None or not level.id.endswith(broken)


def _range_levels(now: Known[float], atr: Known[float]) -> Iterator[MenuLevel]:
    if isinstance(now, Missing):
        return
    yield MenuLevel("mark", MARK, now)
    if isinstance(atr, Missing):
        return
    for step in RANGE_STEPS_ATR:
        yield MenuLevel(f"range_up_{step:g}", RANGE, now + step * atr)
        yield MenuLevel(f"range_down_{step:g}", RANGE, now - step * atr)


def _liquidation_pools(bundle: Bundle, rows: Known[Sequence[Candle]], bounds: PriceMenu) -> Iterator[MenuLevel]:
    """The largest liquidation pools above and below the market, from the chart's heat map model."""
    now, atr = bounds.now, bounds.atr
    if isinstance(now, Missing) or isinstance(atr, Missing) or isinstance(rows, Missing):
        return
    shown = drop_invalid_bars(bars(ATR_FRAME[bundle.mode], rows[-LIQ_CLUSTER_BARS:]))
    edges = now + atr * np.linspace(-POOL_REACH_ATR, POOL_REACH_ATR, POOL_ROWS + 1)
    standing = measure_open_now(shown, bundle.rows(open_interest(bundle.symbol.venue.feed, bundle.symbol.pair)), edges)
    if isinstance(standing, Missing):
        return
    middles = (edges[:-1] + edges[1:]) / 2
    fullest = [place for place in np.argsort(-standing, kind="stable").tolist() if bounds.is_near(middles[place])]
    for name, beyond in (("above", middles > now), ("below", middles < now)):
        places = [place for place in fullest if beyond[place] and standing[place] > 0][:LIQ_CLUSTERS_PER_SIDE]
        for rank, place in enumerate(places, 1):
            yield MenuLevel(f"pool_{name}_{rank}", LIQ_CLUSTER, float(middles[place]))
