"""Prices of the synthetic market: the size of a move is drawn from one random stream, its direction from another.

Every log step is symmetric given all that came before: volatility clusters, jumps and panics change its size and never
its direction. So the mirror image of what follows is exactly as likely, and no rule has an edge. Nothing that is shown
may depend on a later step; `mirror` is there to prove it.

Time is cut into minutes near the end, hours before that and days before those; each bar is walked in smaller steps, so
that it has a high and a low of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.measure.bars import Floats
from zuno.trading.measure.portable import exp, log
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS

Ints: TypeAlias = NDArray[np.int64]
Size: TypeAlias = int | tuple[int, ...] | None

END: Final = 1_767_225_600_000
"""2026-01-01 00:00 UTC: the market's last moment, the same for every seed."""
DAYS, HOURS_DAYS, MINUTES_DAYS = 3_300, 400, 45
DAYS_FROM: Final = END - DAYS * DAY_MS
HOURS_FROM: Final = END - HOURS_DAYS * DAY_MS
MINUTES_FROM: Final = END - MINUTES_DAYS * DAY_MS
HOURS: Final = DAYS * 24


@dataclass(frozen=True, slots=True)
class Coin:
    """What a coin is like: of the leading one all others take a part of their steps."""

    start: float
    sigma: float
    """How far the logarithm goes in an ordinary hour."""
    together: float
    """Correlation of its steps with the leading coin's."""
    traded: float
    """What changes hands on an ordinary day, in dollars."""
    open_usd: float
    lots: int
    won_lots: int
    """Per unit of the coin."""

    @property
    def ticks(self) -> int:
        """Per dollar: a price has about six digits."""
        return int(10 ** max(0, 5 - exponent_of(self.start)))


LEADER: Final = Symbol("BTCUSDT")
COINS: Final[Mapping[str, Coin]] = {
    "BTC": Coin(40_000.0, 0.0036, 1.0, 9e9, 6e9, 1_000, 10_000),
    "ETH": Coin(2_000.0, 0.0046, 0.8, 6e9, 4e9, 1_000, 1_000),
}
"""Any other is drawn from the seed and its name."""


def exponent_of(price: float) -> int:
    """The power of ten a price begins with."""
    return int(f"{price:e}".partition("e")[2])


def draw_coin(seed: int, base: str) -> Coin:
    if base in COINS:
        return COINS[base]
    draw = RandomStream(seed, f"coin {base}")

    def between(low: float, high: float) -> float:
        """Any order of magnitude as likely as another; of three digits, so that a last bit says nothing."""
        far = float(log(high / low)) * draw.uniform()
        return float(f"{low * float(exp(far)):.2e}")

    start, traded = between(0.1, 300.0), between(2e8, 3e9)
    sigma, together = between(0.0045, 0.0075), between(0.6, 0.85)
    lots = int(10 ** max(0, exponent_of(start)))
    return Coin(start, sigma, together, traded, traded * between(0.3, 0.7), lots, lots)


@dataclass(frozen=True, slots=True)
class PathZone:
    """A stretch of time in bars of one length, each walked in so many steps."""

    start: int
    end: int
    bar: int
    steps: int

    @property
    def bars(self) -> int:
        return (self.end - self.start) // self.bar

    @property
    def per_hour(self) -> int:
        return self.steps * HOUR_MS // self.bar


ZONES: Final = (
    PathZone(DAYS_FROM, HOURS_FROM, DAY_MS, 48),
    PathZone(HOURS_FROM, MINUTES_FROM, HOUR_MS, 12),
    PathZone(MINUTES_FROM, END, MINUTE_MS, 5),
)


@dataclass(frozen=True, slots=True, eq=False)
class Jumps:
    """Sudden moves of all symbols, by the hour they fell in."""

    hour: Ints
    """Counted from the first day."""
    cascade: NDArray[np.bool_]
    """Positions were forced out; else they were opened."""


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """One symbol's path and its hidden volatility."""

    symbol: Symbol
    coin: Coin
    sigma: Floats
    """How far an hour goes, from the first day on."""
    steps: tuple[Floats, Floats, Floats]
    """Steps of the logarithm, bars × steps, zone by zone."""
    jumps: Jumps

    def mirror(self, after: int) -> Path:
        """The path with the opposite moves from then on: as likely as this one."""
        flipped = []
        for zone, steps in zip(ZONES, self.steps, strict=True):
            flat = steps.reshape(-1).copy()
            flat[max(0, (after - zone.start) * zone.per_hour // HOUR_MS) :] *= -1
            flipped.append(flat.reshape(steps.shape))
        return replace(self, steps=(flipped[0], flipped[1], flipped[2]))


class RandomStream:
    """Draws that are the same on every machine; each part of a market has a stream of its own name, so that a change in
    one leaves the others alone.

    numpy promises the bits, but the tails of its normals and exponentials use a library's logarithm and scaling may be
    fused by a compiler: so draws are cut to whole 2⁻³² and scaled here. Poisson counts are left as they are: they
    differ only where two doubles agree in sixteen digits.
    """

    def __init__(self, seed: int, name: str) -> None:
        self._draw = Generator(PCG64(SeedSequence([seed, *name.encode()])))

    def integers(self, low: int, high: int, size: int | None = None) -> Any:
        return self._draw.integers(low, high, size)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Size = None) -> Any:
        return low + (high - low) * self._draw.random(size)

    def normal(self, scale: float = 1.0, size: Size = None) -> Any:
        return scale * _quantise(self._draw.standard_normal(size))

    def exponential(self, scale: float, size: int) -> Floats:
        return np.asarray(scale * _quantise(self._draw.standard_exponential(size)))

    def permutation(self, of: Any) -> Any:
        return self._draw.permutation(of)

    def poisson(self, rate: Any) -> Any:
        return self._draw.poisson(rate)


def _quantise(drawn: Any) -> Any:
    return np.rint(drawn * 2.0**32) / 2.0**32


def sum_last_axis(values: Floats) -> Floats:
    """Sum along the last axis, in order: numpy's own sum promises no order."""
    return np.asarray(np.cumsum(values, axis=-1)[..., -1])


def by_daytime(far: float, hours: Ints) -> Floats:
    """A factor about one that is largest at 15:00."""
    return np.asarray(1 + far * np.round(np.cos(2 * np.pi * (np.arange(24) - 15) / 24), 12)[hours % 24])


def decay_noise(noise: Floats, keep: float, start: float = 0.0) -> Floats:
    """What is left of all earlier noise when so much of it is kept each time."""
    left = start
    return np.array([left := keep * left + new for new in noise.tolist()], float)


def draw_paths(seed: int, symbols: Sequence[Symbol] = DEFAULT_SYMBOLS) -> Mapping[Symbol, Path]:
    """A symbol's path is the same whatever others are asked for."""
    jumps, size, aftershock = _jumps(seed)
    movement = _movement(seed, aftershock)
    lean = RandomStream(seed, "lean").integers(0, 2, len(size)) * 2 - 1
    place = RandomStream(seed, "place").uniform(0, 0.3, len(size))
    shared = [RandomStream(seed, f"walk {zone.bar}").normal(size=(zone.bars, zone.steps)) for zone in ZONES]
    made: dict[Symbol, Path] = {}
    for symbol in symbols:
        coin = draw_coin(seed, symbol.base)
        restless = RandomStream(seed, f"movement {symbol}").normal(size=HOURS)
        sigma = coin.sigma * movement * exp(decay_noise(restless, 1 - 1 / 48) * 0.12 * np.sqrt(2 / 48))
        share = coin.sigma / COINS[LEADER.base].sigma
        walks = []
        for zone, common in zip(ZONES, shared, strict=True):
            own = RandomStream(seed, f"walk {zone.bar} {symbol}").normal(size=(zone.bars, zone.steps))
            mixed = coin.together * common + np.sqrt(1 - coin.together**2) * own
            hours = sigma[hour_of(zone.start) : hour_of(zone.end)]
            step_sigma = np.repeat(hours / np.sqrt(zone.per_hour), zone.per_hour)
            walk = (mixed.reshape(-1) * step_sigma).reshape(zone.bars, zone.steps)
            walks.append(_with_jumps(zone, walk, jumps.hour, place, lean * size * share))
        made[symbol] = Path(symbol, coin, sigma, (walks[0], walks[1], walks[2]), jumps)
    return made


def hour_of(at: int) -> int:
    """The hour a moment falls in, from the first day on."""
    return (at - DAYS_FROM) // HOUR_MS


def hours_to_bars(zone: PathZone, hours: Floats) -> Floats:
    """A number per hour as one per bar of a zone: the mean of its hours."""
    part = hours[hour_of(zone.start) : hour_of(zone.end)]
    if zone.bar > HOUR_MS:
        return np.asarray(sum_last_axis(part.reshape(zone.bars, -1)) / (len(part) // zone.bars), dtype=np.float64)
    return np.repeat(part, HOUR_MS // zone.bar)


def _jumps(seed: int) -> tuple[Jumps, Floats, Floats]:
    """When, how far, and how much more restless it makes the hours from then on."""
    draw = RandomStream(seed, "jumps")
    fell = draw.uniform(size=HOURS) < 0.005
    fell[HOURS - 72 :] = False  # the last days are quiet, so that what is looked at first is an ordinary market
    fear = draw_panics(seed)
    fell[fear] = True
    hour = np.flatnonzero(fell)
    size = np.minimum(0.013 + draw.exponential(0.007, len(hour)), 0.10)
    in_panic = np.isin(hour, fear)
    size[in_panic] += 0.03
    cascade = (draw.uniform(size=len(hour)) < 0.5) | in_panic
    aftershock = np.zeros(HOURS)
    for at, much in zip(hour.tolist(), size, strict=True):
        ahead = np.arange(min(48, HOURS - at))
        aftershock[at : at + 48] += 60 * much * exp(-ahead / 4)
    for at in fear.tolist():
        ahead = np.arange(min(20 * 24, HOURS - at))
        aftershock[at : at + 20 * 24] += 1.4 * exp(-ahead / 72)
    return Jumps(hour, cascade), size, aftershock


def draw_panics(seed: int) -> Ints:
    """Hours in which fear sets in: every other month or so, and always once in the time of minutes."""
    draw = RandomStream(seed, "panics")
    many = HOURS - MINUTES_DAYS * 24
    count = int(draw.poisson(many / (60 * 24)))
    within = int(draw.integers(6 * 24, 28 * 24))
    return np.sort(np.append(draw.integers(0, many, count), many + within)).astype(np.int64)


def _movement(seed: int, aftershock: Floats) -> Floats:
    """Volatility of each hour against an ordinary one, for all symbols."""
    draw = RandomStream(seed, "movement")
    weeks = decay_noise(draw.normal(size=HOURS), 1 - 1 / 480) * 0.45 * np.sqrt(2 / 480)
    hours = decay_noise(draw.normal(size=HOURS), 1 - 1 / 12) * 0.32 * np.sqrt(2 / 12)
    hour = np.arange(HOURS)
    daily = by_daytime(0.22, hour)
    weekday = (DAYS_FROM // DAY_MS + hour // 24 + 3) % 7
    weekend = np.where(weekday >= 5, 0.8, 1.0)
    level = exp(np.clip(weeks + hours, -1.2, 1.2))
    early = np.minimum(1, 0.5 + 0.5 * hour / hour_of(HOURS_FROM))  # quieter long ago: else some seeds end in the clouds
    return np.asarray(early * level * daily * weekend * (1 + np.minimum(aftershock, 4.0)), dtype=np.float64)


def _with_jumps(zone: PathZone, walk: Floats, hour: Ints, place: Floats, far: Floats) -> Floats:
    first, last = hour_of(zone.start), hour_of(zone.end)
    inside = (hour >= first) & (hour < last)
    step = ((hour[inside] - first + place[inside]) * zone.per_hour).astype(np.int64)
    flat = walk.reshape(-1)
    flat[step] += far[inside]
    return flat.reshape(walk.shape)
