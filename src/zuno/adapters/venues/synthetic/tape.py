"""The synthetic market's tape (forced trades, large trades, proven minutes) and its order books.

A fall forces longs out and a rise shorts; how many depends on how far the minute moved against the usual.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from zuno.adapters.venues.synthetic.candles import SyntheticMarket
from zuno.adapters.venues.synthetic.path import (
    COINS,
    END,
    HOURS,
    MINUTES_FROM,
    Ints,
    RandomStream,
    decay_noise,
    hour_of,
    sum_last_axis,
)
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, BYBIT, OKX, large_trades_feed, tape_feeds
from zuno.trading.measure.bars import Floats
from zuno.trading.measure.portable import exp, log, tanh
from zuno.trading.model import market
from zuno.trading.model.wanted import large_trades, own_book
from zuno.trading.ports.series import Batch

HEARD_FROM: Final[Mapping[str, int]] = {
    BINANCE: MINUTES_FROM,
    BYBIT: END - 21 * market.DAY_MS,
    OKX: END - 21 * market.DAY_MS,
}
"""Since when a venue's forced trades are recorded: all but the first were added later."""
PER_MINUTE: Final = 50
"""The venue shows about one forced order a second at most."""
LARGE_PER_MINUTE: Final = 12
"""So many large takers at most, none with more than that part of what its side took."""
FORCED_USD: Final[Mapping[str, float]] = {BINANCE: 9_000.0, BYBIT: 6_000.0, OKX: 4_000.0}
LARGE_USD: Final = 100_000.0
_Traded: TypeAlias = tuple[int, market.Side, float, float, float]


def build_batches(seed: int, made: SyntheticMarket) -> list[Batch[Any]]:
    heard = [market.Heartbeat(at) for at in made.minutes.at.tolist()]
    given = [
        _whales(seed, made),
        Batch(market.alive(market.Feed.WHALES, large_trades_feed(made.symbol), made.symbol), heard),
    ]
    for venue in tape_feeds(made.symbol):
        given.append(_liquidations(seed, venue, made))
        minutes = heard[(HEARD_FROM[venue] - MINUTES_FROM) // market.MINUTE_MS :]
        given.append(Batch(market.alive(market.Feed.LIQUIDATIONS, venue, made.symbol), minutes))
    return given


def _liquidations(seed: int, venue: str, made: SyntheticMarket) -> Batch[Any]:
    usual = made.minute_sigma()
    went, relative_volatility = sum_last_axis(made.path.steps[2]) / usual, usual * np.sqrt(60) / made.path.coin.sigma
    parts = []
    for side, against in ((market.Side.LONG, -went), (market.Side.SHORT, went)):
        name = f"forced {venue} {side} {made.symbol}"
        far = np.maximum(0, against - 1)
        minute = _minutes(
            seed, name, np.minimum(0.006 + 0.4 * far * np.sqrt(far) * relative_volatility, 45), PER_MINUTE // 2
        )
        noise = exp(RandomStream(seed, f"{name} size").normal(size=len(minute)))
        usd = FORCED_USD[venue] * noise * (1 + np.minimum(far, 60) ** 2 / 40)[minute]
        place = RandomStream(seed, f"{name} place").uniform(size=len(minute)) ** 2
        parts.append(_strikes(seed, name, made, side, minute, place if side is market.Side.LONG else 1 - place, usd))
    rows = [row for row in _in_order(parts, "f") if row.at >= HEARD_FROM[venue]]
    return Batch(market.liquidations(venue, made.symbol), rows)


def _whales(seed: int, made: SyntheticMarket) -> Batch[Any]:
    """Takers of at least $100k, the way the minute's takers lean, and never the whole of its volume."""
    name = f"large {made.symbol}"
    minutes, prices = made.minutes, made.grain.price(made.minutes.close)
    traded = made.grain.size(minutes.volume) * prices
    usual = made.path.coin.traded * market.MINUTE_MS / market.DAY_MS
    minute = _minutes(seed, name, np.minimum(0.25 * traded / usual, 4), LARGE_PER_MINUTE)
    draws = RandomStream(seed, f"{name} size").uniform(size=(len(minute), 3))
    usd = 1.02 * LARGE_USD * exp(-log(1 - draws[:, 0]) / 1.6)
    bought = draws[:, 1] < (minutes.taker_buy / minutes.volume)[minute]
    share = (minutes.taker_buy / minutes.volume)[minute]
    usd = np.minimum(usd, np.where(bought, share, 1 - share) * traded[minute] / LARGE_PER_MINUTE)
    kept = usd >= 1.01 * LARGE_USD
    parts = [
        _strikes(seed, name, made, side, minute[mask], draws[mask, 2], usd[mask])
        for side, mask in ((market.Side.LONG, kept & bought), (market.Side.SHORT, kept & ~bought))
    ]
    return Batch(large_trades(made.symbol), _in_order(parts, "w"))


def _minutes(seed: int, name: str, rate: Floats, most: int) -> Ints:
    """The minute of each event. Sizes and places have other streams: how many come later must not change them."""
    count = np.minimum(RandomStream(seed, f"{name} count").poisson(rate), most)
    return np.repeat(np.arange(len(count)), count)


def _strikes(
    seed: int, name: str, made: SyntheticMarket, side: market.Side, minute: Ints, place: Floats, usd: Floats
) -> list[_Traded]:
    """Trades inside their minute's range; several in one minute follow each other."""
    bars = made.minutes
    low, high = bars.low[minute], bars.high[minute]
    price = made.grain.price(np.rint(low + place * (high - low)))
    quantity = made.grain.size(np.maximum(1, np.rint(usd / price * made.grain.lots)))
    at = bars.at[minute] + _spread_out(seed, f"{name} {side}", minute)
    paid = np.round(price * quantity, 2)
    return [
        (*row[:1], side, *row[1:]) for row in zip(*map(np.ndarray.tolist, (at, price, quantity, paid)), strict=True)
    ]


def _spread_out(seed: int, name: str, minute: Ints) -> Ints:
    """Milliseconds into the minute, in order, each trade in a slot of its own."""
    _, first, count = np.unique(minute, return_index=True, return_counts=True)
    slot = market.MINUTE_MS / np.repeat(count, count)
    rank = np.arange(len(minute)) - np.repeat(first, count)
    within = RandomStream(seed, f"second {name}").uniform(0, 0.98, len(minute))
    return np.asarray((rank + within) * slot).astype(np.int64)


def _in_order(parts: list[list[_Traded]], mark: str) -> list[market.TapeEvent]:
    rows = sorted(row for part in parts for row in part)
    return [market.TapeEvent(Millis(row[0]), *row[1:], f"{mark}{number}") for number, row in enumerate(rows)]


LEVELS: Final = 50
LOOKS_MS: Final = (48_500, 36_500, 24_500, 12_500, 500)
"""Before the hour: each half a second before the price's next step is due."""
NEAR_USD: Final = 400_000.0
"""What an ordinary level holds."""
THIN: Final = 0.012
"""Share of hours with almost no depth."""
WALLS: Final = 0.02
"""Share of hours in which a wall is shown and withdrawn."""


def build_book_batches(seed: int, made: SyntheticMarket) -> list[Batch[Any]]:
    draw = RandomStream(seed, f"books {made.symbol}")
    hours = HOURS - hour_of(MINUTES_FROM)
    ends = MINUTES_FROM + market.HOUR_MS * (1 + np.arange(hours))
    at = (ends[:, None] - np.array(LOOKS_MS)).reshape(-1)
    middle = made.last_steps[59::60].reshape(-1)
    relative_volatility = made.path.sigma[hour_of(MINUTES_FROM) :] / made.path.coin.sigma
    away = _draw_level_distances(draw, middle, np.repeat(relative_volatility, len(LOOKS_MS)))
    sizes = _sizes(draw, made, middle, hours)
    _put_walls(draw, sizes)
    bids, asks = middle[:, None] - away[0], middle[:, None] + away[1]
    quotes = [_quotes(made, price, size) for price, size in zip((bids, asks), sizes, strict=True)]
    return [Batch(own_book(made.symbol), list(map(market.Book, at.tolist(), *quotes)))]


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
    thin = min(1.0, max(0.1, made.path.coin.traded / COINS["ETH"].traded))
    lots = np.repeat(depth, looks) * NEAR_USD * thin / made.grain.price(middle) * made.grain.lots
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


def _quotes(made: SyntheticMarket, ticks: Ints, lots: Ints) -> list[tuple[market.Quote, ...]]:
    quote = partial(tuple.__new__, market.Quote)  # a million of them: the named tuple's own way takes twice as long
    prices, sizes = made.grain.price(ticks).tolist(), made.grain.size(lots).tolist()
    return [tuple(map(quote, zip(*level, strict=True))) for level in zip(prices, sizes, strict=True)]
