"""Intervals by resampling blocks of what happened, the same on every machine: whole numbers and a fixed seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.random import PCG64, Generator

DRAWS: Final = 2_000
SEED: Final = 0
LEAST_BLOCKS: Final = 5
"""Of which an interval is made; with fewer there is none."""


def interval_of_sum(changes: Sequence[int], block: int) -> tuple[int, int] | None:
    """The middle 95 % of what these changes could have added up to, their order kept within circular blocks."""
    values = np.array(changes, dtype=np.int64)
    count = len(values)
    if count < LEAST_BLOCKS * block:
        return None
    blocks = -(-count // block)
    starts = Generator(PCG64(SEED)).integers(0, count, (DRAWS, blocks))
    running = np.concatenate(([0], np.cumsum(np.concatenate((values, values[:block])))))
    whole = running[starts + block] - running[starts]
    sums = whole[:, :-1].sum(axis=1)
    last = count - (blocks - 1) * block
    sums += running[starts[:, -1] + last] - running[starts[:, -1]]
    ordered = np.sort(sums)
    cut = DRAWS // 40
    return int(ordered[cut]), int(ordered[-1 - cut])
