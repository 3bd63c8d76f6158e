"""Bars for the tests of rules over prices: walks from a seed, and small ones that hypothesis can shrink."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, bars
from zuno.trading.model.market import Candle, Timeframe

MIDNIGHT = 1_700_006_400_000
"""2023-11-15, 00:00 UTC."""


def walk(count: int, seed: int = 1, timeframe: Timeframe = Timeframe.H1, start: float = 30_000.0) -> Bars:
    """A market of no particular direction."""
    dice = random.Random(seed)
    rows: list[Candle] = []
    price = start
    for i in range(count):
        close = price * (1 + dice.gauss(0, 0.01))
        high = max(price, close) * (1 + abs(dice.gauss(0, 0.004)))
        low = min(price, close) * (1 - abs(dice.gauss(0, 0.004)))
        volume = dice.lognormvariate(3, 1)
        at = timeframe.floor(MIDNIGHT) + i * timeframe.millis
        rows.append(Candle(Millis(at), price, high, low, close, volume, volume * dice.random()))
        price = close
    return bars(timeframe, rows)


def of_closes(closes: Sequence[float], timeframe: Timeframe = Timeframe.H1, volume: float = 1.0) -> Bars:
    """Bars that reach exactly from the close before to their own."""
    steps = [(closes[0], closes[0]), *pairwise(closes)]
    return bars(
        timeframe,
        [
            Candle(
                Millis(timeframe.floor(MIDNIGHT) + i * timeframe.millis),
                a,
                max(a, b),
                min(a, b),
                b,
                volume,
                volume / 2,
            )
            for i, (a, b) in enumerate(steps)
        ],
    )


def flat(count: int, price: float = 100.0, volume: float = 1.0, timeframe: Timeframe = Timeframe.H1) -> Bars:
    return of_closes([price] * count, timeframe, volume)


@st.composite
def small_markets(draw: st.DrawFn, least: int = 1, most: int = 90) -> Bars:
    """Whole-number prices, so that ties, flat stretches, bars without height or volume and missing bars abound. Of all
    lengths alike: a list left to itself is short, and most gauges need more bars than it has."""
    count = draw(st.integers(least, most))
    pieces = draw(
        st.lists(
            st.tuples(
                st.integers(-4, 4),
                st.integers(0, 3),
                st.integers(0, 3),
                st.integers(0, 5),
                st.sampled_from((0.0, 0.25, 0.5, 1.0, None)),
                st.sampled_from((1, 1, 1, 1, 1, 1, 3)),
            ),
            min_size=count,
            max_size=count,
        )
    )
    rows: list[Candle] = []
    price, at = 60, MIDNIGHT + draw(st.integers(0, 30)) * Timeframe.H1.millis
    for step, above, below, volume, share, skip in pieces:
        close = max(8, price + step)
        taken = None if share is None else volume * share
        high, low = max(price, close) + above, min(price, close) - below
        rows.append(Candle(Millis(at), float(price), float(high), float(low), float(close), float(volume), taken))
        price = close
        at += skip * Timeframe.H1.millis
    return bars(Timeframe.H1, rows)
