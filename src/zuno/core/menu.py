"""Every price a mind may name: what was measured, where the market is, and distances from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, log10
from typing import Final

import numpy as np

from zuno.core.bars import bars
from zuno.core.features import Features, Frame, fresh
from zuno.core.heat import standing_now
from zuno.core.indicators.columns import sound
from zuno.core.known import Known, Missing
from zuno.domain.trading import Mode, Timeframe, candles, open_interest
from zuno.domain.venues import BINANCE
from zuno.messages.bundle import Bundle

SNAP: Final = 0.1
"""Of the ATR: how far from a level a price may lie and still mean it."""
STEPS: Final = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
"""Distances from the market's price, in ATR, either way."""
MARK: Final = "mark"
RANGE: Final = "range"
POOL: Final = "pool"
POOLS: Final = 2
"""Liquidation pools on either side of the market."""
POOL_BARS: Final = 180
POOL_REACH: Final = 10.0
"""ATR from the market to the furthest pool."""
POOL_ROWS: Final = 80
ATR_FRAME: Final = {Mode.SWING: Timeframe.H4, Mode.POSITION: Timeframe.D1}


@dataclass(frozen=True, slots=True)
class MenuLevel:
    id: str
    kind: str
    price: float
    """A multiple of the tick."""


@dataclass(frozen=True, slots=True)
class Menu:
    """By price and then by name."""

    levels: tuple[MenuLevel, ...]
    atr: Known[float]
    """What distances are measured in: of 4h bars in SWING, of 1d bars in POSITION."""
    tick: float
    now: Known[float]
    """Where the market is."""

    def snap(self, price: float) -> float | None:
        """The nearest level no further than a tenth of an ATR; of two as near the lower."""
        if isinstance(self.atr, Missing) or not isfinite(price) or not self.levels:
            return None
        nearest = min(self.levels, key=lambda level: (abs(level.price - price), level.price))
        return nearest.price if abs(nearest.price - price) <= SNAP * self.atr else None


def menu_of(bundle: Bundle, features: Features) -> Menu:
    atr, now = atr_of(bundle, features), price_now(bundle, features)
    found = (*_measured(features), *_from_here(now, atr), *_pools(bundle, now, atr))
    tick = bundle.symbol.tick
    rounded = (MenuLevel(one.id, one.kind, to_tick(one.price, tick)) for one in found)
    kept = sorted((one for one in rounded if one.price > 0), key=lambda one: (one.price, one.id))
    return Menu(tuple(kept), atr, tick, now)


def to_tick(price: float, tick: float) -> float:
    """The nearest multiple of the tick, spelled as short as it is."""
    return round(round(price / tick) * tick, max(0, round(-log10(tick))))


def frame_of(features: Features, timeframe: Timeframe) -> Known[Frame]:
    return next((frame for one, frame in features.frames if one is timeframe), Missing(f"{timeframe} was not measured"))


def atr_of(bundle: Bundle, features: Features) -> Known[float]:
    """Of bars that are not stale: yesterday's reach is no measure of today's stop."""
    timeframe = ATR_FRAME[bundle.mode]
    rows, frame = fresh(bundle, candles(BINANCE, bundle.symbol, timeframe)), frame_of(features, timeframe)
    if isinstance(rows, Missing):
        return rows
    if isinstance(frame, Missing):
        return frame
    return frame.readings.atr or Missing(f"{frame.readings.bars} bars of {timeframe} make no ATR")


def price_now(bundle: Bundle, features: Features) -> Known[float]:
    """The book's mid, else the last close of the finest bars that are not stale."""
    if not isinstance(features.book, Missing):
        return features.book.mid
    for timeframe in Timeframe:
        rows = fresh(bundle, candles(BINANCE, bundle.symbol, timeframe))
        if not isinstance(rows, Missing) and rows and isfinite(rows[-1].close) and rows[-1].close > 0:
            return rows[-1].close
    return Missing(f"neither a book nor a close of {bundle.symbol} is fresh ({features.book.reason})")


def _measured(features: Features) -> Iterator[MenuLevel]:
    for _, frame in features.frames:
        if not isinstance(frame, Missing):
            yield from (MenuLevel(one.id, one.kind, one.price) for one in frame.structure.levels)


def _from_here(now: Known[float], atr: Known[float]) -> Iterator[MenuLevel]:
    if isinstance(now, Missing):
        return
    yield MenuLevel("mark", MARK, now)
    if isinstance(atr, Missing):
        return
    for step in STEPS:
        yield MenuLevel(f"range_up_{step:g}", RANGE, now + step * atr)
        yield MenuLevel(f"range_down_{step:g}", RANGE, now - step * atr)


def _pools(bundle: Bundle, now: Known[float], atr: Known[float]) -> Iterator[MenuLevel]:
    """Where most stands to be forced out, by the same model the chart draws, above and below; the fullest first."""
    timeframe = ATR_FRAME[bundle.mode]
    rows = fresh(bundle, candles(BINANCE, bundle.symbol, timeframe))
    if isinstance(now, Missing) or isinstance(atr, Missing) or isinstance(rows, Missing):
        return
    shown = sound(bars(timeframe, rows[-POOL_BARS:]))
    edges = now + atr * np.linspace(-POOL_REACH, POOL_REACH, POOL_ROWS + 1)
    standing = standing_now(shown, bundle.rows(open_interest(BINANCE, bundle.symbol)), edges)
    if isinstance(standing, Missing):
        return
    middles = (edges[:-1] + edges[1:]) / 2
    fullest = np.argsort(-standing, kind="stable").tolist()
    for name, beyond in (("above", middles > now), ("below", middles < now)):
        places = [place for place in fullest if beyond[place] and standing[place] > 0][:POOLS]
        for rank, place in enumerate(places, 1):
            yield MenuLevel(f"pool_{name}_{rank}", POOL, float(middles[place]))
