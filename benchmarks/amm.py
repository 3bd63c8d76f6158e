"""How fast the exact pool is, as ratios measured in one run: `python benchmarks/amm.py`.

Prints one JSON line per figure and ends with 1 when a bar is missed.
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable
from time import perf_counter

from benchmarks.figure import report
from zuno.amm.pool import Pool
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE, sqrt_price_at_tick

OWNER = "0x" + "be" * 20
REPEATS = 80  # short turns: on a busy machine a long one is never undisturbed
START = 1_285
DOWN, UP = MIN_SQRT_PRICE + 1, MAX_SQRT_PRICE - 1


# --- the yardstick: frozen on purpose, so that making the package faster cannot move the bar

_FACTORS = (
    0xFFFCB933BD6FAD37AA2D162D1A594001,
    0xFFF97272373D413259A46990580E213A,
    0xFFF2E50F5F656932EF12357CF3C7FDCC,
    0xFFE5CACA7E10E4E61C3624EAA0941CD0,
    0xFFCB9843D60F6159C9DB58835C926644,
    0xFF973B41FA98C081472E6896DFB254C0,
    0xFF2EA16466C96A3843EC78B326B52861,
    0xFE5DEE046A99A2A811C461F1969C3053,
    0xFCBE86C7900A88AEDCFFC83B479AA3A4,
    0xF987A7253AC413176F2B074CF7815E54,
    0xF3392B0822B70005940C7A398E4B70F3,
    0xE7159475A2C29B7443B29C7FA6E889D9,
    0xD097F3BDFD2022B8845AD8F792AA5825,
    0xA9F746462D870FDF8A65DC1F90E061E5,
    0x70D869A156D2A1B890BB3DF62BAF32F7,
    0x31BE135F97D08FD981231505542FCFA6,
    0x9AA508B5B7A84E1C677DE54F3E99BC9,
    0x5D6AF8DEDB81196699C329225EE604,
    0x2216E584F5FA1EA926041BEDFE98,
    0x48A170391F7DC42444E8FA2,
)


def yardstick(tick: int) -> int:
    """sqrt price at a tick, the plain way: one branch for every bit."""
    distance = abs(tick)
    ratio = 1 << 128
    for bit in range(20):
        if distance & (1 << bit):
            ratio = (ratio * _FACTORS[bit]) >> 128
    if tick > 0:
        ratio = ((1 << 256) - 1) // ratio
    return (ratio + 0xFFFFFFFF) >> 32


# --- measuring


def best_times(*jobs: tuple[Callable[[], object], int]) -> list[float]:
    """Microseconds per unit of each job, the best of many turns; the jobs take turns, so a busy machine hits all."""
    best = [float("inf")] * len(jobs)
    gc.disable()
    try:
        for _ in range(REPEATS):
            for place, (job, units) in enumerate(jobs):
                start = perf_counter()
                job()
                best[place] = min(best[place], (perf_counter() - start) / units * 1e6)
    finally:
        gc.enable()
    return best


# --- pools


def ladder(rungs: int, spacing: int = 1, past_swaps: int = 0) -> Pool:
    """A wide floor of liquidity and one narrow range on every tick; the price is away from ticks and word edges."""
    pool = Pool.initialize(3000, spacing, (sqrt_price_at_tick(START) + sqrt_price_at_tick(START + 1)) // 2)
    pool.modify_liquidity(OWNER, -200_000, 200_000, 10**24, 0)
    for rung in range(-rungs // 2, rungs // 2):
        pool.modify_liquidity(OWNER, rung * spacing, (rung + 1) * spacing, 10**18 + rung, 1)
    for turn in range(past_swaps):
        pool.swap(turn % 2 == 0, -(10**15), DOWN if turn % 2 == 0 else UP)
    return pool


def back_and_forth(pool: Pool, swaps: int, amount: int) -> Callable[[], None]:
    """Swaps that stay in range, alternately both ways, exact input and exact output."""

    def job() -> None:
        swap = pool.swap
        for _ in range(swaps // 4):
            swap(True, -amount, DOWN)
            swap(False, -amount, UP)
            swap(True, amount, DOWN)
            swap(False, amount, UP)

    return job


def across(pool: Pool, ticks: int) -> Callable[[], None]:
    """Down across this many initialised ticks, and up again."""
    start = sqrt_price_at_tick(START) + 1
    end = sqrt_price_at_tick(START - ticks) + 1

    def job() -> None:
        pool.swap(True, -(10**30), end)
        pool.swap(False, -(10**30), start)

    pool.swap(True, -(10**30), start)
    rehearsal = pool.swap(True, -(10**30), end)
    if rehearsal.ticks_crossed != ticks:
        raise ValueError(f"meant to cross {ticks} ticks, crossed {rehearsal.ticks_crossed}")
    pool.swap(False, -(10**30), start)
    return job


def main() -> int:
    dice = random.Random(1)
    random_ticks = [dice.randint(-887_272, 887_272) for _ in range(200)]
    fresh, aged = ladder(0, spacing=10), ladder(10_000, spacing=10, past_swaps=10_000)
    few, many = ladder(4_000), ladder(4_000)

    def measure_yardstick() -> None:
        for tick in random_ticks:
            yardstick(tick)

    plain, in_fresh, in_aged, over_64, over_512 = best_times(
        (measure_yardstick, len(random_ticks)),
        (back_and_forth(fresh, 200, 10**15), 200),
        (back_and_forth(aged, 200, 10**15), 200),
        (across(few, 64), 2 * 64),
        (across(many, 512), 2 * 512),
    )
    passed = [
        report("in-range swap", in_fresh, "µs", plain, "bit-loop sqrt price at a random tick", 2.5),
        report("crossing 512 ticks", over_512, "µs per tick", over_64, "crossing 64 ticks", 1.5),
        report(
            "swap in an old pool, 10,000 ticks and 10,000 past swaps",
            in_aged,
            "µs",
            in_fresh,
            "the same swap in a fresh pool",
            1.5,
        ),
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
