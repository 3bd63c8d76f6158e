"""How often a target is touched before a stop in a market that goes nowhere on average but moves as this one did.

A block bootstrap of the market's own bars, highs and lows kept, its mean and its trend removed. In a bar that touches
both, the stop came first: nobody knows better. Whole numbers of 1e-9 of log price, so that every machine draws the same
paths and counts the same touches.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zuno.trading.measure.bars import LOOKBACK, Bars
from zuno.trading.measure.portable import NANO, exp, nano_log
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import Side

Ints: TypeAlias = NDArray[np.int64]
PATHS: Final = 4_096
BLOCK: Final = 24
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


def first_touch(
    bars: Bars, entry: float, stop: float, take: float, side: Side, hold_bars: int, seed: int
) -> Known[TouchOdds]:
    """Of the last thousand bars, sound ones. `ValueError` where the stop is not behind, or the target not ahead."""
    if not (0 < stop < entry < take if side is Side.LONG else 0 < take < entry < stop):
        raise ValueError(f"a {side} from {entry} cannot stop at {stop} and take at {take}")
    steps = _log_returns(bars.last(LOOKBACK))
    if isinstance(steps, Missing):
        return steps
    target, stopped, lasted = _walk_paths(
        _bootstrap_blocks(steps, side),
        abs(int(nano_log(take) - nano_log(entry))),
        -abs(int(nano_log(stop) - nano_log(entry))),
        min(hold_bars, MAX_HOLD_BARS),
        seed,
    )
    return TouchOdds(target / PATHS, stopped / PATHS, (PATHS - target - stopped) / PATHS, lasted / PATHS)


def driftless_odds(touch: TouchOdds, gain: float, loss: float) -> float:
    """The odds at which winning `gain` or losing `loss` is worth what the touches are; a time exit brings nothing."""
    return touch.target + touch.time * loss / (gain + loss)


def _log_returns(bars: Bars) -> Known[Ints]:
    """Close, high and low of each bar against the close before, where the bar before is there; in 1e-9 of log price."""
    follows = np.flatnonzero(np.diff(bars.at) == bars.timeframe.millis) + 1
    if len(follows) < MIN_RETURNS:
        return Missing(f"{len(follows)} bars that follow one another are known, {MIN_RETURNS} are needed")
    close, high, low = (nano_log(column) for column in (bars.close, bars.high, bars.low))
    return np.stack((close[follows], high[follows], low[follows])) - close[follows - 1]


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Every block of the past by how far it goes from where it begins: a row for each bar, a column for each block."""

    close: Ints
    high: Ints
    low: Ints
    highest: Ints
    """So far."""
    lowest: Ints


def _mirror_returns(steps: Ints) -> Ints:
    """The same returns with up and down swapped."""
    return -steps[[0, 2, 1]]


def _bootstrap_blocks(steps: Ints, side: Side) -> _Blocks:
    """Every block of the past as it was, and upside down: a thousand bars lean one way or the other by chance, and what
    leans is no yardstick. The mean return of either is none. Seen from the side: a SHORT's gain is up."""
    found: list[Ints] = []
    for given in (steps, _mirror_returns(steps)):
        returns = exp(given[0] / NANO)
        fair = given - nano_log(fsum(returns.tolist()) / len(returns))
        seen = fair if side is Side.LONG else _mirror_returns(fair)
        # The past wraps round, so that its ends are drawn as often as the rest.
        around = np.concatenate((seen, seen[:, : BLOCK - 1]), axis=1)
        found.append(np.lib.stride_tricks.sliding_window_view(around, BLOCK, axis=1))
    closes, highs, lows = np.ascontiguousarray(np.concatenate(found, axis=1).transpose(0, 2, 1))
    ends = np.cumsum(closes, axis=0)
    begins = ends - closes
    high, low = begins + highs, begins + lows
    return _Blocks(ends, high, low, np.maximum.accumulate(high, axis=0), np.minimum.accumulate(low, axis=0))


def _walk_paths(blocks: _Blocks, target: int, stop: int, hold: int, seed: int) -> tuple[int, int, int]:
    """Paths that touched the target and the stop first, and the bars all of them lasted."""
    generator, count = np.random.PCG64(seed), blocks.close.shape[1]
    at = np.zeros(PATHS, dtype=np.int64)
    won = lost = lasted = 0
    for start in range(0, hold, BLOCK):
        last = min(BLOCK, hold - start) - 1
        # Raw words: numpy promises them for ever, its bounded integers only for a version.
        words = generator.random_raw(PATHS)[: len(at)]
        drawn = (words % np.uint64(count)).astype(np.int64)
        done = (blocks.highest[last, drawn] >= target - at) | (blocks.lowest[last, drawn] <= stop - at)
        block, begin = drawn[done], at[done]
        stopped = blocks.low[: last + 1, block] <= stop - begin
        first = (stopped | (blocks.high[: last + 1, block] >= target - begin)).argmax(axis=0)
        losing = int(stopped[first, np.arange(len(block))].sum())
        won, lost = won + len(block) - losing, lost + losing
        lasted += int((first + 1).sum()) + (last + 1) * (len(at) - len(block))
        at = (at + blocks.close[last, drawn])[~done]
        if not len(at):
            break
    return won, lost, lasted
