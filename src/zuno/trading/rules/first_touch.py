"""How long a trade lasts, and how often it ends at its target, its stop or by time, in a market without drift.

A block bootstrap of the market's own bars, highs and lows kept, its mean and its trend removed. In a bar that touches
both, the stop came first: nobody knows better. Whole numbers of 1e-9 of log price, so that every machine draws the same
paths and counts the same touches. The shares are no probability of winning: time exits and the sample's own lean bias
them; that is the fair rate of the distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zuno.trading.measure.bars import LOOKBACK, Bars
from zuno.trading.measure.portable import NANO, exp, nano_log
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import Side

Ints: TypeAlias = NDArray[np.int64]
PATHS: Final = 10_000
"""A share's standard error is then 0.005 at most."""
BLOCK: Final = 24
_STRIDES: Final = (16, 8, 4, 2, 1)
"""That add up to any bar of a block."""
MIN_RETURNS: Final = 10 * BLOCK
"""Consecutive bars needed for the bootstrap."""
MAX_HOLD_BARS: Final = 6_000
"""Longer holds are cut to this."""


@dataclass(frozen=True, slots=True)
class TouchOdds:
    """Shares of all paths, and how long they took."""

    target: float
    stop: float
    time: float
    """Neither was touched before the hold was over."""
    bars: float
    """How many a path lasts on average."""
    error: float
    """Standard error: of the shares and of the duration as a share of the hold, the largest."""


def first_touch(
    bars: Bars, entry: float, stop: float, take: float, side: Side, hold_bars: int, seed: int
) -> Known[TouchOdds]:
    """Of the last thousand bars, sound ones. `ValueError` where the stop is not behind, or the target not ahead."""
    if not (0 < stop < entry < take if side is Side.LONG else 0 < take < entry < stop):
        raise ValueError(f"a {side} from {entry} cannot stop at {stop} and take at {take}")
    steps = log_returns(bars)
    if isinstance(steps, Missing):
        return steps
    hold = min(hold_bars, MAX_HOLD_BARS)
    ends = _walk_paths(
        _bootstrap_blocks(steps, side),
        abs(int(nano_log(take) - nano_log(entry))),
        -abs(int(nano_log(stop) - nano_log(entry))),
        hold,
        seed,
    )
    won, lost, late = (count / PATHS for count in (ends.won, ends.lost, PATHS - ends.won - ends.lost))
    mean = ends.lasted / PATHS
    spread = max(0.0, ends.lasted_squared / PATHS - mean * mean) / hold**2
    error = sqrt(max(spread, *(share * (1 - share) for share in (won, lost, late))) / PATHS)
    return TouchOdds(won, lost, late, mean, error)


def fill_share(bars: Bars, away: int, side: Side) -> Known[float]:
    """How often a market without drift trades through a price within one bar, where that price lies `away` (1e-9 of
    log price) behind the market as the side sees it. By the rule of succession: never is not known of anything."""
    steps = log_returns(bars)
    if isinstance(steps, Missing):
        return steps
    reached = sum(int((low < -away).sum()) for _, _, low in _both_ways_up(steps, side))
    return (reached + 1) / (2 * len(steps[0]) + 2)


def log_returns(bars: Bars) -> Known[Ints]:
    """Close, high and low of each of the last thousand bars against the close before, where the bar before is there;
    in 1e-9 of log price."""
    bars = bars.last(LOOKBACK)
    follows = np.flatnonzero(np.diff(bars.at) == bars.timeframe.millis) + 1
    if len(follows) < MIN_RETURNS:
        return Missing(f"{len(follows)} bars that follow one another are known, {MIN_RETURNS} are needed")
    close, high, low = nano_log(np.stack((bars.close, bars.high, bars.low)))
    steps: Ints = np.stack((close[follows], high[follows], low[follows])) - close[follows - 1]
    return steps


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Every block of the past by how far it goes from where it begins: a row for each bar, a column for each block."""

    close: Ints
    highest: Ints
    """So far."""
    lowest: Ints


def _mirror_returns(steps: Ints) -> Ints:
    """The same returns with up and down swapped."""
    return -steps[[0, 2, 1]]


def _both_ways_up(steps: Ints, side: Side) -> tuple[Ints, Ints]:
    """The past as it was, and upside down: a thousand bars lean one way or the other by chance, and what leans is no
    yardstick. The mean return of either is none. Seen from the side: a SHORT's gain is up."""
    found: list[Ints] = []
    for given in (steps, _mirror_returns(steps)):
        returns = exp(given[0] / NANO)
        fair = given - nano_log(fsum(returns.tolist()) / len(returns))
        found.append(fair if side is Side.LONG else _mirror_returns(fair))
    return found[0], found[1]


def _bootstrap_blocks(steps: Ints, side: Side) -> _Blocks:
    past = len(steps[0])
    blocks = _Blocks(*(np.empty((BLOCK, 2 * past), dtype=np.int64) for _ in range(3)))
    for place, seen in enumerate(_both_ways_up(steps, side)):
        # The past wraps round, so that its ends are drawn as often as the rest.
        close, high, low = np.concatenate((seen, seen[:, : BLOCK - 1]), axis=1)
        ends = np.cumsum(close)
        begins = ends - close
        start, highs, lows = begins[:past], begins + high, begins + low
        highest, lowest = highs[:past], lows[:past]
        own = slice(place * past, (place + 1) * past)
        for bar in range(BLOCK):
            highest = np.maximum(highest, highs[bar : bar + past])
            lowest = np.minimum(lowest, lows[bar : bar + past])
            blocks.close[bar, own] = ends[bar : bar + past] - start
            blocks.highest[bar, own] = highest - start
            blocks.lowest[bar, own] = lowest - start
    return blocks


@dataclass(frozen=True, slots=True)
class _PathEnds:
    """Paths that touched the target and the stop first, the bars all of them lasted, and the sum of their squares."""

    won: int
    lost: int
    lasted: int
    lasted_squared: int


def _walk_paths(blocks: _Blocks, target: int, stop: int, hold: int, seed: int) -> _PathEnds:
    generator, count = np.random.PCG64(seed), blocks.close.shape[1]
    close, highest, lowest = (table.ravel() for table in (blocks.close, blocks.highest, blocks.lowest))
    at = np.zeros(PATHS, dtype=np.int64)
    won = lost = lasted = squared = 0
    for start in range(0, hold, BLOCK):
        last = min(BLOCK, hold - start) - 1
        # Raw words: numpy promises them for ever, its bounded integers only for a version.
        drawn = (generator.random_raw(len(at)) % np.uint64(count)).astype(np.int64)
        up, down, end = target - at, stop - at, drawn + last * count
        done = (highest.take(end) >= up) | (lowest.take(end) <= down)
        block, up, down = drawn[done], up[done], down[done]
        # Highest and lowest so far only grow: the bar that reaches a bound is found by halving.
        before = np.zeros(len(block), dtype=np.int64)
        for stride in _STRIDES:
            further = before + stride
            bar = block + np.minimum(further - 1, last) * count
            inside = (highest.take(bar) < up) & (lowest.take(bar) > down) & (further <= last)
            before = np.where(inside, further, before)
        losing = int((lowest.take(block + before * count) <= down).sum())
        ended = start + 1 + before
        won, lost = won + len(block) - losing, lost + losing
        lasted, squared = lasted + int(ended.sum()), squared + int((ended * ended).sum())
        at = (at + close.take(end))[~done]
        if not len(at):
            break
    return _PathEnds(won, lost, lasted + hold * len(at), squared + hold * hold * len(at))
