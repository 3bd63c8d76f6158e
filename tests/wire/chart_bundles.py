"""Bundles to draw charts of: a small market by hand, with everything a chart shows, or with parts of it gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import BINANCE, PERPETUALS
from zuno.markets.market import Symbol
from zuno.trading.model.bundle import Absent, Block, Bundle
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Candle,
    Feed,
    Funding,
    Heartbeat,
    Level,
    Mode,
    Series,
    Side,
    TapeEvent,
    Timeframe,
    alive,
    candles,
    funding,
    liquidations,
    open_interest,
)

BTC = Symbol("BTCUSDT")
AS_OF = Millis(1_767_225_600_000)  # 2026-01-01 00:00 UTC, a Thursday
DAYS: Series[Candle] = candles(BINANCE, BTC, Timeframe.D1)
WEEKS: Series[Candle] = candles(BINANCE, BTC, Timeframe.W1)
HOURS: Series[Candle] = candles(BINANCE, BTC, Timeframe.H1)
MINUTES: Series[Candle] = candles(BINANCE, BTC, Timeframe.M1)


def walk(timeframe: Timeframe, count: int, seed: int = 1, until: int = AS_OF) -> tuple[Candle, ...]:
    """Bars that end with the last bucket closed by then."""
    dice = np.random.default_rng(seed)
    last = timeframe.floor(until) - timeframe.millis
    close = np.round(40_000 * np.exp(np.cumsum(dice.normal(0, 0.02, count))), 1)
    opened = np.concatenate(([40_000.0], close[:-1]))
    high = np.round(np.maximum(opened, close) * (1 + np.abs(dice.normal(0, 0.005, count))), 1)
    low = np.round(np.minimum(opened, close) * (1 - np.abs(dice.normal(0, 0.005, count))), 1)
    volume = dice.lognormal(3, 0.5, count)
    at = [Millis(last - (count - 1 - place) * timeframe.millis) for place in range(count)]
    columns = (opened, high, low, close, volume, volume * dice.uniform(0.3, 0.7, count))
    return tuple(map(Candle, at, *(column.tolist() for column in columns)))


def block(series: Series[Any], rows: Sequence[Any], age: int = 0, notes: tuple[str, ...] = ()) -> Block:
    return Block(series, tuple(rows), AS_OF, Seconds(age), Seconds(600), notes)


def whole(mode: Mode = Mode.SWING, days: int = 400, weeks: int = 300, origin: str = "SYNTHETIC seed 1") -> Bundle:
    """Everything there is to draw."""
    dice = np.random.default_rng(7)
    blocks = [
        block(DAYS, walk(Timeframe.D1, days)),
        block(WEEKS, walk(Timeframe.W1, weeks, 2)),
        block(HOURS, walk(Timeframe.H1, 24 * 60, 3)),
        block(MINUTES, walk(Timeframe.M1, 60, 4)),
    ]
    for place, venue in enumerate(PERPETUALS):
        moments = range(AS_OF - 180 * DAY_MS, AS_OF + 1, 8 * HOUR_MS)
        rates = dice.normal(1e-4, 1e-4, len(moments)).tolist()
        levels = (10_000 * (place + 1) * np.exp(np.cumsum(dice.normal(0, 0.01, len(moments))))).tolist()
        blocks.append(
            block(
                funding(venue, BTC), [Funding(Millis(at), rate, 8.0) for at, rate in zip(moments, rates, strict=True)]
            )
        )
        blocks.append(
            block(open_interest(venue, BTC), [Level(Millis(at), one) for at, one in zip(moments, levels, strict=True)])
        )
    for venue in PERPETUALS:
        minutes = [Heartbeat(Millis(at)) for at in range(AS_OF - 2 * DAY_MS, AS_OF, MINUTE_MS)]
        price = walk(Timeframe.D1, days)[-1].close if days else 40_000.0
        strikes = [
            TapeEvent(
                Millis(AS_OF - (place + 1) * HOUR_MS), Side.LONG, price * (1 - place / 1_000), 1.0, 5e4, str(place)
            )
            for place in range(20)
        ]
        blocks += [block(alive(Feed.LIQUIDATIONS, venue, BTC), minutes), block(liquidations(venue, BTC), strikes)]
    return Bundle(BTC, mode, AS_OF, origin, tuple(sorted(blocks, key=lambda one: str(one.series))), ())


def without(bundle: Bundle, *gone: Series[Any], why: str = "the venue did not answer") -> Bundle:
    names = {str(series) for series in gone}
    left = tuple(one for one in bundle.blocks if str(one.series) not in names)
    return replace(bundle, blocks=left, absent=tuple(Absent(name, why) for name in sorted(names)))


def changed(bundle: Bundle, series: Series[Any], change: Callable[[tuple[Any, ...]], Sequence[Any]]) -> Bundle:
    """With other rows of one series."""
    return replace(
        bundle,
        blocks=tuple(
            replace(one, rows=tuple(change(tuple(one.rows)))) if one.series == series else one for one in bundle.blocks
        ),
    )
