"""Ranges that are opened once and kept over recorded minutes, by the fast engine.

A process that plays them loads this module and what it names, nothing of the desks: its start is part of the sweep.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from zuno.amm.integers import Q96
from zuno.amm.model import Range
from zuno.amm.ticks import ceil_to_spacing, floor_to_spacing, sqrt_price_at_tick
from zuno.kernel.errors import UsageError
from zuno.kernel.units import Tick
from zuno.kernel.view import View
from zuno.lab.lp.fast import PIPS, USD, MinuteColumns, amounts_at, fees_by_minute

SHIFTS: Final = 25
"""Of a range's centre from the price, for every width: from half a width below to half a width above."""
MOST_RANGES: Final = 10_000
TASKS_PER_WORKER: Final = 24
NARROWEST, WIDEST = 60, 6_000
"""Half-widths in ticks: 0.6 % and 82 %."""


@dataclass(frozen=True, slots=True)
class SweepTask:
    columns: MinuteColumns
    ranges: tuple[Range, ...]
    capital: int
    fee_pips: int


class RangeView(View):
    """A range that was kept, USD."""

    lower: int
    upper: int
    net_pnl_usd: float
    vs_hold_usd: float
    fees: float
    time_in_range: float
    max_drawdown: float


def check_count(count: int) -> None:
    if count % SHIFTS or not SHIFTS <= count <= MOST_RANGES:
        raise UsageError(f"--ranges is {count}; give a multiple of {SHIFTS} from {SHIFTS} to {MOST_RANGES}.")


def plan_ranges(tick: int, count: int, spacing: int = 10) -> tuple[Range, ...]:
    """Every width at every shift, the narrowest first. Rounded to the spacing, some of the narrowest are alike."""
    check_count(count)
    widths = count // SHIFTS
    ranges = []
    for step in range(widths):
        half = NARROWEST + (WIDEST - NARROWEST) * step // max(1, widths - 1)
        for place in range(SHIFTS):
            centre = tick + half * (2 * place - (SHIFTS - 1)) // (2 * (SHIFTS - 1))
            lower = floor_to_spacing(centre - half, spacing)
            ranges.append(Range(Tick(lower), Tick(max(lower + spacing, ceil_to_spacing(centre + half, spacing)))))
    return tuple(ranges)


def share_ranges(
    columns: MinuteColumns, ranges: Sequence[Range], capital: int, fee_pips: int, workers: int
) -> list[SweepTask]:
    """More tasks than workers: one that is slower than the others does less."""
    count = 1 if workers == 1 else TASKS_PER_WORKER * workers
    shares = (ranges[place::count] for place in range(count))
    return [SweepTask(columns, tuple(share), capital, fee_pips) for share in shares if share]


async def play_ranges(task: SweepTask) -> AsyncIterator[RangeView]:
    """Work of a `TaskRunner`."""
    for held in task.ranges:
        await asyncio.sleep(0)
        yield play_range(task.columns, held, task.capital, task.fee_pips)


def play_range(columns: MinuteColumns, held: Range, capital: int, fee_pips: int) -> RangeView:
    start, last = (sqrt_price_at_tick(int(tick)) / Q96 for tick in (columns.before[0], columns.close[-1]))
    low, high = (sqrt_price_at_tick(edge) / Q96 for edge in (held.lower, held.upper))
    root = min(max(start, low), high)
    each0, each1 = (high - root) / (root * high), root - low
    whole = capital * USD
    needed0 = whole * each0 / (each0 + each1 / (start * start))
    kept = whole - abs(needed0 - whole / 2) * fee_pips / PIPS
    liquidity = int(kept / (each0 + each1 / (start * start)))
    held0, held1 = amounts_at(columns.roots, held, liquidity)
    earned0, earned1 = (np.cumsum(fees) for fees in fees_by_minute(columns, held, liquidity, fee_pips))
    prices = columns.roots * columns.roots
    worth = held0 + earned0 + (held1 + earned1) / prices
    peaks = np.maximum(np.maximum.accumulate(worth), whole)
    net = float(worth[-1]) - whole
    hold = whole / 2 + whole / 2 * (start * start) / (last * last) - whole
    inside = (columns.close >= held.lower) & (columns.close < held.upper)
    return RangeView(
        lower=held.lower,
        upper=held.upper,
        net_pnl_usd=round(net / USD, 4),
        vs_hold_usd=round((net - hold) / USD, 4),
        fees=round((float(earned0[-1]) + float(earned1[-1]) / float(prices[-1])) / USD, 4),
        time_in_range=round(int(np.count_nonzero(inside)) / len(columns), 6),
        max_drawdown=round(float(np.max(1 - worth / peaks)), 6),
    )
