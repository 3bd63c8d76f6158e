"""Where liquidations stand to be, by a model, and where they were observed: a density over price and time.

New positions open at a bar's typical price, both ways alike, at the leverages of `TIERS`; they stand until the price
touches their liquidation or they fade, by half in `HALF_LIFE_MS`. Open interest, where it is known at every bar, says
how much is opened and closed; else a share of the volume. A picture of a rule of thumb, not a measurement."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, Floats
from zuno.trading.measure.portable import USD_PLACES
from zuno.trading.measure.tape import Stream, TapeMinutes, valid_unique_events
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS, Level

ROWS: Final = 48
TIERS: Final = ((5.0, 0.30), (10.0, 0.30), (25.0, 0.20), (50.0, 0.15), (100.0, 0.05))
"""Leverage, and the share of new positions that is opened at it."""
MAINTENANCE: Final = 0.005
"""The share of its notional that a position must keep."""
VOLUME_SHARE: Final = 0.10
"""Of a bar's volume, what opens positions that outlive it; where open interest is not known."""
HALF_LIFE_MS: Final = 3 * DAY_MS
OBSERVED_SHARE: Final = 0.5
"""Of a bar's minutes, how many must have been heard for it to be drawn from what was observed."""


class HeatOrigin(StrEnum):
    MODELLED = "modelled"
    BOTH = "observed and modelled"


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """Dollars by price (rows, lowest first) and bar (columns, oldest first)."""

    source: str
    """What the pools are modelled from: `open interest` or `volume`."""
    at: NDArray[np.int64]
    edges: Floats
    """Of the rows: one more than there are."""
    usd: Floats
    """Pools: what stands to be forced out as of each bar."""
    forced: Floats
    """What was forced out and observed, as much of it as has not faded by then."""
    observed: NDArray[np.bool_]
    """Columns in which somebody listened."""
    heard: NDArray[np.bool_]
    """Columns in which silence is a zero; one that nobody listened to leaves none open."""

    @property
    def origin(self) -> HeatOrigin:
        return HeatOrigin.BOTH if self.observed.any() else HeatOrigin.MODELLED


def build_heat_map(
    bars: Bars, streams: Sequence[Stream] = (), open_interest: Sequence[Level] = (), edges: Floats | None = None
) -> Known[HeatMap]:
    """Pools at every bar, and observed liquidations where at least half of a bar was listened to. `edges`: of the price
    rows, by default `ROWS` equal ones around the range."""
    if not len(bars):
        return Missing("no bar is known to draw a map over")
    if not _sound(bars):
        return Missing("a bar has a price or a volume that is none")
    rows = _rows(bars) if edges is None else edges
    heard = _shares_heard(bars, streams)
    observed = heard >= OBSERVED_SHARE
    opened, kept, source = _flows(bars, open_interest)
    pools = np.zeros((len(rows) - 1, len(bars)))
    for column, (levels, standing) in enumerate(_walk_open_positions(bars, opened, kept)):
        pools[:, column] = _by_row(levels, rows, standing)
    forced = _fade(np.where(observed, _sum_observed(bars, streams, rows), 0.0), _kept_share(bars))
    return HeatMap(source, bars.at, rows, pools, forced, observed, ~observed | (heard == 1))


def measure_open_now(bars: Bars, open_interest: Sequence[Level], edges: Floats) -> Known[Floats]:
    """What stands to be forced out as of the last bar alone, row by row."""
    if not len(bars) or not _sound(bars):
        return Missing("there is no bar to model it from, or one that is none")
    opened, kept, _ = _flows(bars, open_interest)
    levels, standing = _place_positions(bars, opened)
    for column in range(1, len(bars)):
        standing[:column] *= kept[column]
    lowest = np.append(np.minimum.accumulate(bars.low[:0:-1])[::-1], np.inf)
    highest = np.append(np.maximum.accumulate(bars.high[:0:-1])[::-1], -np.inf)
    standing[_find_touched(levels, lowest[:, None], highest[:, None])] = 0.0
    return _by_row(levels, edges, standing)


def _by_row(levels: Floats, edges: Floats, standing: Floats) -> Floats:
    """In whole cents: the order in which equal levels are added is the machine's own."""
    return np.round(np.histogram(levels, edges, weights=standing)[0], USD_PLACES)


def _sound(bars: Bars) -> bool:
    prices = np.stack((bars.high, bars.low, bars.close))
    volume = np.isfinite(bars.volume) & (bars.volume >= 0)
    return bool(np.all(np.isfinite(prices)) and np.all(prices > 0) and np.all(volume))


def _rows(bars: Bars) -> Floats:
    low, high = float(bars.low.min()), float(bars.high.max())
    margin = (high - low) / 10 or high / 100
    return np.linspace(max(low - margin, low / 2), high + margin, ROWS + 1)


def _shares_heard(bars: Bars, streams: Sequence[Stream]) -> Floats:
    """Of each bar's minutes, the share in which every stream was proven alive."""
    heard, span = TapeMinutes(streams), bars.timeframe.millis
    tallies = (heard.tally(Millis(int(at)), Millis(int(at) + span)) for at in bars.at)
    return np.fromiter((tally.heard / tally.minutes for tally in tallies), dtype=float, count=len(bars))


def _sum_observed(bars: Bars, streams: Sequence[Stream], edges: Floats) -> Floats:
    usd = np.zeros((len(edges) - 1, len(bars)))
    for row in (row for stream in streams for row in valid_unique_events(stream.strikes)):
        column = int(np.searchsorted(bars.at, row.at, side="right")) - 1
        place = int(np.searchsorted(edges, row.price, side="right")) - 1
        inside = column >= 0 and row.at < bars.at[column] + bars.timeframe.millis
        if inside and 0 <= place < len(usd):
            usd[place, column] += row.usd
    return usd


def _walk_open_positions(bars: Bars, opened: Floats, kept: Floats) -> Iterator[tuple[Floats, Floats]]:
    """As of each bar: where positions would be liquidated, and the dollars that still stand there."""
    levels, dollars = _place_positions(bars, opened)
    standing = np.zeros_like(dollars)
    for column in range(len(bars)):
        touched = _find_touched(levels, bars.low[column], bars.high[column])
        standing = np.where(touched, 0.0, standing * kept[column])
        standing[column] = dollars[column]
        alive = slice(0, column + 1)
        yield levels[alive], standing[alive]


def _place_positions(bars: Bars, opened: Floats) -> tuple[Floats, Floats]:
    """Of what each bar opens, a row: where it would be liquidated, longs first, and the dollars there."""
    typical = (bars.high + bars.low + bars.close) / 3
    leverage, weight = (np.array(column) for column in zip(*TIERS, strict=True))
    reach = 1 / leverage - MAINTENANCE
    levels = np.concatenate((np.outer(typical, 1 - reach), np.outer(typical, 1 + reach)), axis=1)
    return levels, np.outer(opened * typical, np.concatenate((weight, weight)))


def _find_touched(levels: Floats, low: Floats, high: Floats) -> NDArray[np.bool_]:
    longs = np.arange(levels.shape[1]) < len(TIERS)
    return np.where(longs, levels >= low, levels <= high)


def _flows(bars: Bars, open_interest: Sequence[Level]) -> tuple[Floats, Floats, str]:
    """Base units opened in each bar, the share of what stood before it that is kept, and where both come from."""
    known, kept = _open_at_ends(bars, open_interest), np.full(len(bars), _kept_share(bars))
    if known is None:
        return bars.volume * VOLUME_SHARE, kept, "volume"
    before = np.concatenate((known[:1], known[:-1]))
    kept = np.minimum(kept, known / before)
    return known - kept * before, kept, "open interest"


def _kept_share(bars: Bars) -> float:
    """Of what stood before a bar, what is left after it."""
    return float(round(0.5 ** (bars.timeframe.millis / HALF_LIFE_MS), 12))


def _fade(dollars: Floats, kept: float) -> Floats:
    """With every column what is left of those before it; in whole cents."""
    faded = dollars.copy()
    for column in range(1, dollars.shape[1]):
        faded[:, column] += kept * faded[:, column - 1]
    return np.round(faded, USD_PLACES)


def _open_at_ends(bars: Bars, open_interest: Sequence[Level]) -> Floats | None:
    """The last open interest within each bar; None unless every bar has a valid one and there are at least two bars."""
    rows = sorted(open_interest, key=lambda row: row.at)
    at = np.array([row.at for row in rows], dtype=np.int64)
    place = np.searchsorted(at, bars.at + bars.timeframe.millis, side="right") - 1
    if not rows or len(bars) < 2 or np.any(place < 0) or np.any(at[place] < bars.at):
        return None
    values = np.array([row.value for row in rows])[place]
    return values if np.all(np.isfinite(values) & (values > 0)) else None
