"""What a position earned over recorded minutes, all of them at once.

A minute pays fee × gross input × L / (L + ours) for the part of its trading that happened inside the range. What part
that is depends on the convention:

close-tick: the price went straight from the close of the minute before to this close; a minute that changes side counts
by its share of the distance in ticks. This is how demeter counts.
intrabar: the price went from the close of the minute before through lowest and highest, the shorter way first, to this
close; falling pays in token0 and rising in token1.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zuno.amm.integers import Q96
from zuno.amm.model import Range
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.lp.model.minutes import MINUTE_MS, PoolMinutes

Floats: TypeAlias = NDArray[np.float64]
PIPS: Final = 1_000_000
USD: Final = 10**6
"""In the smallest unit of the pool's dollar."""


class Convention(StrEnum):
    CLOSE_TICK = "close-tick"
    INTRABAR = "intrabar"


@dataclass(frozen=True, slots=True)
class MinuteColumns:
    """Minutes in columns. Ticks are whole; amounts are the nearest floats to the recorded whole numbers."""

    at: NDArray[np.int64]
    before: Floats
    """Close tick of the minute before; the first minute's open."""
    close: Floats
    lowest: Floats
    """Of the minute and of the price it began at."""
    highest: Floats
    in0: Floats
    in1: Floats
    liquidity: Floats
    roots: Floats
    """Square roots of the closing prices, from the contracts' own."""
    fell: Floats
    rose: Floats
    """Ticks that the price went down and up along the intrabar path."""
    low_first: Floats
    """1 where that path went to the lowest tick first, else 0."""

    def __len__(self) -> int:
        return len(self.at)

    def select_minutes(self, start: int, end: int) -> MinuteColumns:
        """The minutes that began at `start` or later and were over by `end`, both in Unix seconds."""
        first, last = np.searchsorted(self.at, (1000 * start, 1000 * end - MINUTE_MS + 1))
        return MinuteColumns(*(getattr(self, field.name)[first:last] for field in fields(self)))


def to_columns(recorded: PoolMinutes) -> MinuteColumns:
    rows = recorded.minutes
    close = np.array([row.close_tick for row in rows], dtype=np.float64)
    before = np.concatenate(([float(rows[0].open_tick)], close[:-1]))
    lowest = np.minimum(np.array([row.lowest_tick for row in rows], dtype=np.float64), before)
    highest = np.maximum(np.array([row.highest_tick for row in rows], dtype=np.float64), before)
    down_first, up_first = (before - lowest) + (highest - close), (highest - before) + (close - lowest)
    low_first = down_first <= up_first
    ticks, places = np.unique(close, return_inverse=True)
    return MinuteColumns(
        at=np.array([row.at for row in rows], dtype=np.int64),
        before=before,
        close=close,
        lowest=lowest,
        highest=highest,
        in0=np.array([float(row.in0) for row in rows]),
        in1=np.array([float(row.in1) for row in rows]),
        liquidity=np.array([float(row.liquidity) for row in rows]),
        roots=np.array([sqrt_price_at_tick(int(tick)) / Q96 for tick in ticks])[places],
        # Lowest first: down to it, up over the whole span, down to the close. Highest first is its mirror image.
        fell=np.where(low_first, down_first, highest - lowest),
        rose=np.where(low_first, highest - lowest, up_first),
        low_first=low_first.astype(np.float64),
    )


def fees_by_minute(
    columns: MinuteColumns, held: Range, liquidity: int, fee_pips: int, convention: Convention = Convention.INTRABAR
) -> tuple[Floats, Floats]:
    inside0, inside1 = share_inside(columns, held, convention)
    ours = float(liquidity)
    # A minute without anybody else's liquidity would make all of its trading ours: it pays nothing.
    diluted = np.where(columns.liquidity > 0, ours / (columns.liquidity + ours), 0.0) * (fee_pips / PIPS)
    return columns.in0 * diluted * inside0, columns.in1 * diluted * inside1


def amounts_at(roots: Floats, held: Range, liquidity: int) -> tuple[Floats, Floats]:
    """What a position holds at these square roots of prices, from the contracts' own for its edges."""
    low, high = sqrt_price_at_tick(held.lower) / Q96, sqrt_price_at_tick(held.upper) / Q96
    roots = np.clip(roots, low, high)
    return liquidity * (high - roots) / (roots * high), liquidity * (roots - low)


def share_inside(columns: MinuteColumns, held: Range, convention: Convention) -> tuple[Floats, Floats]:
    """Of the trading that paid in token0 and in token1, the share that happened inside the range, for every minute."""
    standing = ((columns.close >= held.lower) & (columns.close < held.upper)).astype(np.float64)
    start, end = np.clip(columns.before, held.lower, held.upper), np.clip(columns.close, held.lower, held.upper)
    if convention is Convention.CLOSE_TICK:
        share = _ratio(np.abs(end - start), np.abs(columns.close - columns.before), standing)
        return share, share
    span = np.clip(columns.highest, held.lower, held.upper) - np.clip(columns.lowest, held.lower, held.upper)
    down_inside = span + columns.low_first * (start - end)
    return _ratio(down_inside, columns.fell, standing), _ratio(down_inside - (start - end), columns.rose, standing)


def _ratio(part: Floats, whole: Floats, otherwise: Floats) -> Floats:
    return np.where(whole > 0, part / np.maximum(whole, 1.0), otherwise)
