"""Funding, open interest, long/short ratio and basis of each venue in the synthetic market.

All of it follows the price: positions are opened behind a move, pay funding for it, and are forced out by a jump. In
high volume and large moves open interest changes by the per cent at all venues together; whether it grows or shrinks is
drawn independently of the price's direction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zuno.adapters.venues.synthetic import path
from zuno.adapters.venues.synthetic.candles import SyntheticMarket
from zuno.markets.feeds import BINANCE, BYBIT, HYPERLIQUID, OKX, ROWS, perpetual_feeds
from zuno.markets.market import Symbol
from zuno.trading.measure.bars import Floats
from zuno.trading.measure.portable import exp, log
from zuno.trading.model import market
from zuno.trading.ports.series import Batch

VENUES: Final[Mapping[str, float]] = {BINANCE: 1.0, BYBIT: 0.6, OKX: 0.45, HYPERLIQUID: 0.3}
"""Each venue's open interest against the largest."""
FOUR_HOURS: Final = (OKX, Symbol("ETHUSDT"))
"""Where funding is paid every four hours; everywhere else every eight."""
GRID: Final = 5 * market.MINUTE_MS
CLOSE_LOOK: Final = 2 * market.DAY_MS
"""So long before the end a venue is polled every five minutes; before that every hour."""
TOLD: Final = 4
"""Five-minute steps of an hour after which its jump, if any, has happened."""
CROWD: Final = 0.010
"""How far open interest moves in an hour of twice the usual volatility, one deviation."""
MAX_EXCESS_VOLATILITY: Final = 3.0
"""Excess volatility beyond this has no further effect."""
INTEREST, BAND, CAP = 0.0001, 0.0005, 0.0025
"""Of funding: what is paid when the premium is small, how far it pulls, and the most a venue takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """One symbol every five minutes over the hourly span: what happened by each moment."""

    at: path.Ints
    step: Floats
    """Of the logarithm, in the five minutes that ended then."""
    surprise: Floats
    """That step against the usual one."""
    price: Floats
    volume: Floats
    """In lots. Before there are minutes, an equal part of the hour: nobody polls within an hour there."""


def build_grid(made: SyntheticMarket) -> Grid:
    hours, minutes = made.path.steps[1], made.path.steps[2]
    step = np.concatenate([hours.reshape(-1), path.sum_last_axis(minutes.reshape(-1, 25))])
    usual = np.repeat(made.path.sigma[path.hour_of(path.HOURS_FROM) :] / np.sqrt(12), 12)
    at = path.HOURS_FROM + GRID * (1 + np.arange(len(step)))
    before = log(made.path.coin.start) + path.sum_last_axis(made.path.steps[0].reshape(-1))
    early = made.bars[market.Timeframe.H1].volume[: len(hours)]
    volume = np.concatenate([np.repeat(early / 12, 12), made.minutes.volume.reshape(-1, 5).sum(axis=1)])
    return Grid(at, step, np.clip(step / usual, -5, 5), exp(before + np.cumsum(step)), volume)


def build_batches(seed: int, made: SyntheticMarket) -> list[Batch[Any]]:
    seen = build_grid(made)
    noise = path.RandomStream(seed, f"premium {made.symbol}").normal(size=len(seen.at))
    # How far the perpetual stands above its index: it leans the way the price went, for a day or two.
    premium = INTEREST + path.decay_noise((0.8 * seen.surprise + 0.6 * noise) * 1.7e-5, 0.9988)
    crowd = _crowd_moves(seed, made, seen)
    given: list[Batch[Any]] = []
    for venue in perpetual_feeds(made.symbol):
        draw = path.RandomStream(seed, f"venue {venue} {made.symbol}")
        own = np.clip(premium + path.decay_noise(draw.normal(size=len(premium)) * 4e-6, 0.999), -0.002, 0.002)
        given += _funding(venue, made.symbol, seen, own)
        given.append(_open(draw, venue, made, seen, crowd))
        if ROWS[venue].long_short:
            given.append(_crowd(draw, venue, made.symbol, seen))
        given.append(_basis(draw, venue, made, seen, own))
    return given


def mark_polled(at: path.Ints) -> NDArray[np.bool_]:
    return np.asarray(((at % market.HOUR_MS == 0) & (at > path.MINUTES_FROM)) | (at > path.END - CLOSE_LOOK))


def _rate(premium: Floats, hours: int) -> Floats:
    rate = premium + np.clip(INTEREST - premium, -BAND, BAND)
    return np.round(np.clip(rate, -CAP, CAP) * hours / 8, 8)


def _funding(venue: str, symbol: Symbol, seen: Grid, premium: Floats) -> list[Batch[Any]]:
    hours = 1 if venue == HYPERLIQUID else 4 if (venue, symbol) == FOUR_HOURS else 8
    size = hours * market.HOUR_MS // GRID
    by_interval = premium.reshape(-1, size)
    settled = _rate(path.sum_last_axis(by_interval) / size, hours)
    so_far = np.cumsum(by_interval, axis=1) / np.arange(1, size + 1)
    predicted = _rate(so_far.reshape(-1), hours)
    read = mark_polled(seen.at)
    return [
        _rows(market.funding(venue, symbol), seen.at[size - 1 :: size], settled, hours),
        _rows(market.funding_next(venue, symbol), seen.at[read], predicted[read], hours),
    ]


def _rows(series: Any, at: path.Ints, rates: Floats, hours: int) -> Batch[Any]:
    return Batch(
        series, [market.Funding(*pair, float(hours)) for pair in zip(at.tolist(), rates.tolist(), strict=True)]
    )


def build_level_batch(series: market.Series[market.Level], at: path.Ints, values: Floats) -> Batch[Any]:
    return Batch(series, list(map(market.Level._make, zip(at.tolist(), values.tolist(), strict=True))))


def _open(draw: path.RandomStream, venue: str, made: SyntheticMarket, seen: Grid, crowd: Floats) -> Batch[Any]:
    """In base units: it grows with trends behind it, moves with the crowd, and is torn down, or built up, by jumps."""
    push = draw.normal(size=len(seen.at)) * 0.0006 + np.abs(seen.surprise) * 0.0001 - 0.00008
    pushed = push + crowd + _jump_changes(draw, made, len(seen.at))
    level = path.decay_noise(pushed, 1 - 1 / 1_800)
    size = made.path.coin.open_usd / made.path.coin.start * VENUES[venue] * exp(np.clip(level, -1.2, 1.2))
    read = mark_polled(seen.at) | (seen.at % (4 * market.HOUR_MS) == 0)
    return build_level_batch(market.open_interest(venue, made.symbol), seen.at[read], np.round(size[read], 3))


def _crowd_moves(seed: int, made: SyntheticMarket, seen: Grid) -> Floats:
    """What comes and leaves at every venue alike, while both volume and movement are beyond the usual."""
    way = np.repeat(path.RandomStream(seed, f"crowd {made.symbol}").normal(size=len(seen.at) // 12), 12)
    jumps, first = made.path.jumps, path.hour_of(path.HOURS_FROM)
    inside = jumps.hour >= first
    for hour, cascade in zip((jumps.hour[inside] - first).tolist(), jumps.cascade[inside].tolist(), strict=True):
        after = slice(hour * 12 + TOLD, hour * 12 + 12)
        way[after] = np.abs(way[after]) * (-1 if cascade else 1)
    square = np.square(seen.step)
    went = np.sqrt(_lately(square, market.HOUR_MS) / _lately(square, 7 * market.DAY_MS))
    traded = seen.volume / _lately(seen.volume, market.DAY_MS)
    return np.asarray(
        way * CROWD / 12 * np.clip(np.minimum(went, traded) - 1, 0, MAX_EXCESS_VOLATILITY), dtype=np.float64
    )


def _lately(column: Floats, span: int) -> Floats:
    """The mean over the time that ended then, or over as much of it as there is."""
    count, sums = span // GRID, np.append(0.0, np.cumsum(column))
    place = np.arange(1, len(sums))
    start = np.maximum(0, place - count)
    return np.asarray((sums[place] - sums[start]) / (place - start), dtype=np.float64)


def _jump_changes(draw: path.RandomStream, made: SyntheticMarket, count: int) -> Floats:
    """What each jump did to open positions within its hour."""
    jumps, first = made.path.jumps, path.hour_of(path.HOURS_FROM)
    inside = jumps.hour >= first
    size = draw.uniform(0.02, 0.06, len(jumps.hour))
    change = np.where(jumps.cascade, -size, 0.6 * size)[inside]
    torn = np.zeros(count)
    for hour, much in zip(jumps.hour[inside] - first, change, strict=True):
        torn[hour * 12 + TOLD : hour * 12 + 12] += much / (12 - TOLD)
    return torn


def _crowd(draw: path.RandomStream, venue: str, symbol: Symbol, seen: Grid) -> Batch[Any]:
    """Accounts buy dips: the ratio leans against the last days."""
    late = seen.at > path.MINUTES_FROM
    lean = path.decay_noise(-0.004 * seen.surprise[late] + 0.006 * draw.normal(size=int(late.sum())), 0.998)
    ratio = np.round(1.35 * exp(np.clip(lean, -0.9, 0.9)), 4)
    read = mark_polled(seen.at[late])
    return build_level_batch(market.long_short(venue, symbol), seen.at[late][read], ratio[read])


def _basis(draw: path.RandomStream, venue: str, made: SyntheticMarket, seen: Grid, premium: Floats) -> Batch[Any]:
    read = mark_polled(seen.at)
    apart = draw.normal(size=len(seen.at))[read] * 2e-5
    digits = max(2, len(str(made.grain.ticks)) - 1)
    mark = np.round(seen.price[read] * (1 + apart), digits)
    spot = np.round(seen.price[read] / (1 + premium[read]), digits)
    columns = zip(seen.at[read].tolist(), mark.tolist(), spot.tolist(), strict=True)
    return Batch(market.basis(venue, made.symbol), [market.MarkAndIndex(*row) for row in columns])
