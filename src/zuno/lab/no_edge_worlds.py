"""Markets in which nothing can be foreseen: random walks, and blocks of a recorded history in random order.

Everything is drawn and added up in whole numbers (logarithms in 1e-9): the same bars on every machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.lab.market_views import MarketRows
from zuno.markets.feeds import BINANCE
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.measure.portable import NANO, exp, nano_log
from zuno.trading.model.bundle import CANDLES_ONLY
from zuno.trading.model.market import DAY_MS, HOUR_MS, Candle, Series, Timeframe, candles
from zuno.trading.ports.series import Origin

Ints = NDArray[np.int64]
BEGIN: Final = Timeframe.W1.floor(1_600_000_000_000)
WARM_HOURS: Final = 190 * 24
"""Before the first decision: as much as a cycle reads of hours, and half a year of days."""
TRADED_HOURS: Final = 80 * 24
HOURS: Final = WARM_HOURS + TRADED_HOURS
BLOCK_HOURS: Final = 24
"""A block is a day of the recorded history, and stays one: what hours of a day have in common is kept."""
STEPS: Final = 60
"""Of an hour of a random walk, one each minute."""
EVEN: Final = 21_651
"""Four even draws up to this, either way, have a deviation of 25,000; a size of 24 makes 0.06 % a minute of it."""
BURSTS: Final = 6
"""One day in so many a random walk moves thrice as far in some hours: without them nothing ever breaks out."""
PRICES: Final = {Symbol("BTCUSDT"): 60_000.0, Symbol("ETHUSDT"): 3_000.0}


class WorldKind(StrEnum):
    WALK = "random walk"
    BLOCKS = "shuffled blocks"


@dataclass(frozen=True, slots=True, eq=False)
class HourPool:
    """Hours of a recorded market relative to the close before each, in 1e-9 of a logarithm, without a mean."""

    symbol: Symbol
    label: str
    hours: Ints
    """Rows of open, high, low, close and volume (in thousandths); whole days."""


@dataclass(frozen=True, slots=True, eq=False)
class NoEdgeWorld:
    kind: WorldKind
    seed: int
    symbol: Symbol
    store: MarketRows
    bars: NDArray[np.float64]
    """Rows of open, high, low, close and volume of each hour."""
    path: NDArray[np.float64]
    """What trades are played on: rows of start, end, open, high, low and close. Each minute of a walk is one price, so
    that a level which is leapt over is filled where the price lands; of blocks the hours are known alone."""

    def at(self, hour: int) -> Millis:
        """When an hour begins."""
        return Millis(BEGIN + hour * HOUR_MS)


def build_pool(symbol: Symbol, label: str, bars: Sequence[Candle]) -> HourPool | None:
    """Of hours, oldest first; days of which an hour is missing are left out. None without thirty whole days."""
    table = np.array([bar[1:6] for bar in bars], dtype=np.float64).reshape(-1, 5)
    times = np.array([bar.at for bar in bars], dtype=np.int64)
    follows = np.diff(times) == HOUR_MS
    logs = nano_log(table[:, :4])
    parts = np.column_stack((logs[1:] - logs[:-1, 3:4], np.rint(table[1:, 4] * 1000).astype(np.int64)))
    opens = times[1:]
    starts = np.flatnonzero(opens % DAY_MS == 0)
    days = [parts[start : start + 24] for start in starts if follows[start : start + 24].sum() == 24]
    if len(days) < 30:
        return None
    hours = np.concatenate(days)
    moves = hours[:, 3]
    mean = round(int(moves.sum()) / len(moves))
    micro = (moves - mean) // 1000  # squares of these have room
    half_variance = round(int((micro * micro).sum()) / len(moves) / 2 / 1000)
    hours[:, :4] -= mean + half_variance  # then a price goes nowhere on average, and not only its logarithm
    hours[:, 1] = np.maximum(hours[:, 1], np.maximum(hours[:, 0], hours[:, 3]))
    hours[:, 2] = np.minimum(hours[:, 2], np.minimum(hours[:, 0], hours[:, 3]))
    return HourPool(symbol, label, hours)


def make_world(kind: WorldKind, seed: int, pool: HourPool | None = None) -> NoEdgeWorld:
    """`pool`: the hours that blocks are taken from; of a random walk none is needed."""
    chance = Generator(PCG64(SeedSequence([list(WorldKind).index(kind), seed])))
    if kind is WorldKind.BLOCKS:
        assert pool is not None
        symbol, parts, inside = pool.symbol, _draw_blocks(chance, pool), None
    else:
        symbol = tuple(DEFAULT_SYMBOLS)[seed % 2]
        parts, inside = _draw_walk(chance)
    bars = np.column_stack((_to_prices(_log_before(parts) + parts[:, :4], symbol), parts[:, 4] / 1000))
    path = _span_rows(bars[:, :4], HOUR_MS)
    if inside is not None:
        minutes = _to_prices(_log_before(parts) + inside, symbol).reshape(-1, 1)
        path = _span_rows(np.repeat(minutes, 4, axis=1), HOUR_MS // STEPS)
    label = f"{CANDLES_ONLY} ({kind.value}, seed {seed}{f', of {pool.label}' if pool else ''})"
    rows: dict[Series[Any], Sequence[Candle]] = {}
    for timeframe in (Timeframe.H1, Timeframe.H4, Timeframe.D1, Timeframe.W1):
        rows[candles(BINANCE, symbol, timeframe)] = _join_hours(bars, timeframe)
    return NoEdgeWorld(kind, seed, symbol, MarketRows(Origin(True, label), rows), bars, path)


def _draw_blocks(chance: Generator, pool: HourPool) -> Ints:
    days = len(pool.hours) // BLOCK_HOURS
    chosen = chance.integers(0, days, HOURS // BLOCK_HOURS)
    return pool.hours.reshape(days, BLOCK_HOURS, 5)[chosen].reshape(HOURS, 5).copy()


def _draw_walk(chance: Generator) -> tuple[Ints, Ints]:
    """Its hours and the steps inside them: sums of four even draws, their size by the day and in bursts."""
    sizes = np.repeat(chance.integers(17, 33, HOURS // 24), 24)
    hours = np.flatnonzero(chance.integers(0, 24 * BURSTS, HOURS) == 0)
    for after in range(3):
        sizes[np.minimum(hours + after, HOURS - 1)] *= 3
    draws = chance.integers(-EVEN, EVEN + 1, (HOURS, STEPS, 4)).sum(axis=2)
    squares = sizes * sizes * 5 // 16  # half the variance, in 1e-9
    inside = np.cumsum(draws * sizes[:, None] - squares[:, None], axis=1)
    zero = np.zeros(HOURS, dtype=np.int64)
    high, low = np.maximum(zero, inside.max(axis=1)), np.minimum(zero, inside.min(axis=1))
    volume = 200_000 + (high - low) // 50 * chance.integers(5, 16, HOURS)
    return np.column_stack((zero, high, low, inside[:, -1], volume)), inside


def _log_before(parts: Ints) -> Ints:
    """Of the price at which each hour begins, as a column."""
    return np.concatenate(([0], np.cumsum(parts[:-1, 3])))[:, None]


def _to_prices(logs: Ints, symbol: Symbol) -> NDArray[np.float64]:
    """In whole cents."""
    cents: NDArray[np.float64] = np.rint(exp(logs / NANO) * PRICES[symbol] * 100)
    return cents / 100


def _span_rows(prices: NDArray[np.float64], millis: int) -> NDArray[np.float64]:
    starts = BEGIN + millis * np.arange(len(prices))
    return np.column_stack((starts, starts + millis, prices))


def _join_hours(bars: NDArray[np.float64], timeframe: Timeframe) -> list[Candle]:
    """Bars of whole hours; what is left over at the end is not closed."""
    each = timeframe.millis // HOUR_MS
    count = len(bars) // each
    grouped = bars[: count * each].reshape(count, each, 5)
    columns = (
        grouped[:, 0, 0].tolist(),
        grouped[:, :, 1].max(axis=1).tolist(),
        grouped[:, :, 2].min(axis=1).tolist(),
        grouped[:, -1, 3].tolist(),
        np.rint(grouped[:, :, 4].sum(axis=1) * 1000).tolist(),
    )
    return [
        Candle(Millis(BEGIN + place * timeframe.millis), opened, high, low, close, volume / 1000, None)
        for place, (opened, high, low, close, volume) in enumerate(zip(*columns, strict=True))
    ]


def find_breakouts(bars: NDArray[np.float64]) -> list[int]:
    """Hours whose last close left the range of the twenty before it, on volume: where the rules open most."""
    high, low, close, volume = bars[:, 1], bars[:, 2], bars[:, 3], bars[:, 4]
    highs = np.lib.stride_tricks.sliding_window_view(high, 20).max(axis=1)
    lows = np.lib.stride_tricks.sliding_window_view(low, 20).min(axis=1)
    usual = np.rint(np.lib.stride_tricks.sliding_window_view(volume, 24).mean(axis=1) * 1000)
    hours = []
    for hour in range(WARM_HOURS, len(bars)):
        last = hour - 1
        beyond = close[last] > highs[last - 20] or close[last] < lows[last - 20]
        if beyond and 1000 * volume[last] > 1.5 * usual[last - 24]:
            hours.append(hour)
    return hours
