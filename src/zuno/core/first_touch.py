"""How often a target is touched before a stop in a market that goes nowhere on average but moves as this one did.

A block bootstrap of the market's own bars, highs and lows kept, its mean and its lean taken out. In a bar that touches
both, the stop came first: nobody knows better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from zuno.core.bars import LOOKBACK, Bars, Floats
from zuno.core.known import Known, Missing
from zuno.domain.trading import Side

PATHS: Final = 4_096
BLOCK: Final = 24
LEAST_STEPS: Final = 10 * BLOCK
"""Bars that follow one another; fewer make no past to draw from."""
MOST_BARS: Final = 6_000
"""What is not decided by then is not decided in time."""


@dataclass(frozen=True, slots=True)
class Touch:
    """Shares of all paths, and how long they took."""

    target: float
    stop: float
    time: float
    """Neither was touched before the hold was over."""
    bars: float
    """How many a path lasts on average."""


def first_touch(
    bars: Bars, entry: float, stop: float, take: float, side: Side, hold_bars: int, seed: int
) -> Known[Touch]:
    """Of the last thousand bars, sound ones. `ValueError` where the stop is not behind, or the target not ahead."""
    if not (stop < entry < take if side is Side.LONG else 0 < take < entry < stop):
        raise ValueError(f"a {side} from {entry} cannot stop at {stop} and take at {take}")
    steps = _steps(bars.last(LOOKBACK))
    if isinstance(steps, Missing):
        return steps
    up, down = (take, stop) if side is Side.LONG else (stop, take)
    upper, lower, lasted = _walked(steps, up / entry, down / entry, min(hold_bars, MOST_BARS), seed, side)
    target, stopped = (upper, lower) if side is Side.LONG else (lower, upper)
    return Touch(target / PATHS, stopped / PATHS, (PATHS - target - stopped) / PATHS, lasted / PATHS)


def driftless(touch: Touch, gain: float, loss: float) -> float:
    """The odds at which winning `gain` or losing `loss` is worth what the touches are; a time exit brings nothing."""
    return touch.target + touch.time * loss / (gain + loss)


def _steps(bars: Bars) -> Known[Floats]:
    """Close, high and low of each bar over the close before, where the bar before is there."""
    follows = np.flatnonzero(np.diff(bars.at) == bars.timeframe.millis) + 1
    if len(follows) < LEAST_STEPS:
        return Missing(f"{len(follows)} bars that follow one another are known, {LEAST_STEPS} are needed")
    return np.asarray(np.stack((bars.close[follows], bars.high[follows], bars.low[follows])) / bars.close[follows - 1])


def _windows(steps: Floats) -> Floats:
    """Every block of the past as it was, and upside down: a thousand bars lean one way or the other by chance, and what
    leans is no yardstick. The mean return of either is none."""
    mirrored = 1 / steps[[0, 2, 1]]
    found: list[Floats] = []
    for given in (steps, mirrored):
        fair = given / given[0].mean()
        # The past wraps round, so that its ends are drawn as often as the rest.
        around = np.concatenate((fair, fair[:, : BLOCK - 1]), axis=1)
        found.append(np.lib.stride_tricks.sliding_window_view(around, BLOCK, axis=1))
    return np.concatenate(found, axis=1)


def _walked(steps: Floats, up: float, down: float, hold: int, seed: int, side: Side) -> tuple[int, int, int]:
    """Paths that touched the upper and the lower bound first, and the bars all of them lasted."""
    generator, windows = np.random.PCG64(seed), _windows(steps)
    count = windows.shape[1]
    at = np.ones(PATHS)
    upper = lower = lasted = 0
    for start in range(0, hold, BLOCK):
        width = min(BLOCK, hold - start)
        # Raw words: numpy promises them for ever, its bounded integers only for a version.
        words = generator.random_raw(PATHS)[: len(at)]
        closes, highs, lows = windows[:, (words % np.uint64(count)).astype(np.int64), :width]
        ends = at[:, None] * np.cumprod(closes, axis=1)
        begins = np.concatenate((at[:, None], ends[:, :-1]), axis=1)
        over, under = begins * highs >= up, begins * lows <= down
        touched = over | under
        done = touched.any(axis=1)
        first = touched.argmax(axis=1)
        row = np.arange(len(at))
        rose, fell = over[row, first] & done, under[row, first] & done
        both = rose & fell
        if side is Side.LONG:
            rose &= ~both
        else:
            fell &= ~both
        upper, lower = upper + int(rose.sum()), lower + int(fell.sum())
        lasted += int((first[done] + 1).sum()) + width * int((~done).sum())
        at = ends[~done, -1]
        if not len(at):
            break
    return upper, lower, lasted
