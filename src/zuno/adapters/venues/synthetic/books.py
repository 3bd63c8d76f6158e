"""The synthetic market's order books: five snapshots in the minute before every full hour."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from zuno.adapters.venues.synthetic.candles import SyntheticMarket
from zuno.adapters.venues.synthetic.path import HOURS, MINUTES_FROM, SIGMA, Ints, RandomStream, decay_noise, hour_of
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Floats
from zuno.trading.measure.portable import exp, log, tanh
from zuno.trading.model.market import HOUR_MS, Book, Quote, books
from zuno.trading.model.venues import BINANCE
from zuno.trading.ports.series import Batch

LEVELS: Final = 50
LOOKS_MS: Final = (48_500, 36_500, 24_500, 12_500, 500)
"""Before the hour: each half a second before the price's next step is due."""
NEAR_USD: Final = 400_000.0
"""What an ordinary level holds."""
THIN: Final = 0.012
"""Share of hours with almost no depth."""
WALLS: Final = 0.02
"""Share of hours in which a wall is shown and withdrawn."""


def build_batches(seed: int, made: SyntheticMarket) -> list[Batch[Any]]:
    draw = RandomStream(seed, f"books {made.symbol}")
    hours = HOURS - hour_of(MINUTES_FROM)
    ends = MINUTES_FROM + HOUR_MS * (1 + np.arange(hours))
    at = (ends[:, None] - np.array(LOOKS_MS)).reshape(-1)
    middle = made.last_steps[59::60].reshape(-1)
    relative_volatility = made.path.sigma[hour_of(MINUTES_FROM) :] / SIGMA[made.symbol]
    away = _draw_level_distances(draw, middle, np.repeat(relative_volatility, len(LOOKS_MS)))
    sizes = _sizes(draw, made, middle, hours)
    _put_walls(draw, sizes)
    bids, asks = middle[:, None] - away[0], middle[:, None] + away[1]
    return [Batch(books(BINANCE, made.symbol), _books(made, at, (bids, asks), sizes))]


def _draw_level_distances(draw: RandomStream, middle: Ints, relative_volatility: Floats) -> tuple[Ints, Ints]:
    """Ticks from the middle to each level: a narrow spread, levels further and further apart, some 40 bps in all."""
    place = np.arange(1, LEVELS + 1)
    apart = np.diff(0.05 * exp(1.7 * log(place)), prepend=0.0) * 1e-4 * middle[:, None]
    first = np.maximum(1, np.rint(middle * 5e-6 * np.minimum(relative_volatility, 6)))[:, None]
    sides = []
    for _ in range(2):
        gaps = np.maximum(1, np.rint(apart * draw.uniform(0.6, 1.4, apart.shape)))
        gaps[:, :1] = np.maximum(1, np.rint(first * draw.uniform(0.5, 1.5, first.shape)))
        sides.append(np.cumsum(gaps, axis=1).astype(np.int64))
    return sides[0], sides[1]


def _sizes(draw: RandomStream, made: SyntheticMarket, middle: Ints, hours: int) -> tuple[Ints, Ints]:
    """Lots of each level: never five times the others by chance, for that would look like a wall."""
    looks = len(LOOKS_MS)
    lean = np.repeat(tanh(decay_noise(draw.normal(0.30, hours), 0.5)), looks)
    depth = exp(draw.normal(0.3, hours)) * np.where(draw.uniform(size=hours) < THIN, 0.002, 1.0)
    lots = np.repeat(depth, looks) * NEAR_USD / made.grain.price(middle) * made.grain.lots
    sides = []
    for sign in (1, -1):
        noise = np.clip(exp(draw.normal(0.4, (len(middle), LEVELS))), 0.45, 2.1)
        sides.append(np.maximum(1, np.rint(noise * (lots * (1 + sign * lean))[:, None])).astype(np.int64))
    return sides[0], sides[1]


def _put_walls(draw: RandomStream, sizes: tuple[Ints, Ints]) -> None:
    """In the second and third snapshot one level holds many times the others; in the fourth it does not."""
    looks = len(LOOKS_MS)
    hours = len(sizes[0]) // looks
    walled = np.flatnonzero(draw.uniform(size=hours) < WALLS)
    side, level = draw.integers(0, 2, hours), draw.integers(25, 40, hours)
    times = draw.uniform(9, 18, hours)
    for hour in walled.tolist():
        rows = sizes[side[hour]][hour * looks + 1 : hour * looks + 3]
        rows[:, level[hour]] = np.rint(np.median(rows, axis=1) * times[hour]).astype(np.int64)


def _books(made: SyntheticMarket, at: Ints, ticks: tuple[Ints, Ints], lots: tuple[Ints, Ints]) -> list[Book]:
    sides = [_quotes(made, price, size) for price, size in zip(ticks, lots, strict=True)]
    return [Book(Millis(moment), bids, asks) for moment, bids, asks in zip(at.tolist(), *sides, strict=True)]


def _quotes(made: SyntheticMarket, ticks: Ints, lots: Ints) -> list[tuple[Quote, ...]]:
    quote = partial(tuple.__new__, Quote)  # a million of them: the named tuple's own way takes twice as long
    prices, sizes = made.grain.price(ticks).tolist(), made.grain.size(lots).tolist()
    return [tuple(map(quote, zip(*level, strict=True))) for level in zip(prices, sizes, strict=True)]
