"""Many ranges over the same minutes by the fast engine: how much of a good result is the choice of the range.

A range is opened once at the start of the schedule and kept. Half of the capital lies in each token before; what the
range does not need of one is swapped for the pool's fee, without impact. Fees count at the last price.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from zuno.amm.integers import Q96
from zuno.amm.model import Range
from zuno.amm.ticks import ceil_to_spacing, floor_to_spacing, sqrt_price_at_tick
from zuno.kernel.errors import Usage
from zuno.kernel.text import plain_text
from zuno.kernel.units import Tick
from zuno.kernel.view import PartialView, View
from zuno.lab.lp.fast import PIPS, MinuteColumns, amounts_by_minute, fees_by_minute, to_columns
from zuno.lab.lp.service import ReadMinutes, fingerprint_minutes, plan_schedule
from zuno.lab.lp.views import USD
from zuno.lab.reports import LabReports, trial_id
from zuno.lab.service import Progress, check_workers
from zuno.lp.model.ballot import EDITION

KIND: Final = "sweep-lp"
SHIFTS: Final = 25
"""Of a range's centre from the price, for every width: from half a width below to half a width above."""
MOST_RANGES: Final = 10_000
NARROWEST, WIDEST = 60, 6_000
"""Half-widths in ticks: 0.6 % and 82 %."""
SHOWN: Final = 5
_QUANTILES: Final = (5, 25, 50, 75, 95)


@dataclass(frozen=True, slots=True)
class SweepTask:
    """Some of the ranges for one process."""

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


class QuantileView(View):
    share: int
    """Per cent of the ranges that did no better."""
    vs_hold_usd: float


class SweepView(PartialView):
    data: str
    since: int
    until: int
    capital_usd: int
    ranges: int
    above_hold: float
    """Share of the ranges that ended above holding."""
    quantiles: tuple[QuantileView, ...]
    best: tuple[RangeView, ...]
    worst: tuple[RangeView, ...]
    trials: int
    """Ranges that were ever tried in this home: the best of so many is no forecast."""


RunSweep: TypeAlias = Callable[[Sequence[SweepTask], int, Callable[[RangeView], None], asyncio.Event], Awaitable[None]]


class LpSweep:
    def __init__(self, read_minutes: ReadMinutes, run_sweep: RunSweep, reports: LabReports, fee_pips: int) -> None:
        self._read_minutes = read_minutes
        self._run_sweep = run_sweep
        self._reports = reports
        self._fee_pips = fee_pips

    async def sweep(
        self, folder: str, count: int, capital: int, workers: int, tell: Progress, stop: asyncio.Event
    ) -> SweepView:
        """So many ranges over the hours of a backtest. Once `stop` is set, those that are done are the answer."""
        check_workers(workers)
        recorded = await asyncio.to_thread(self._read_minutes, folder)
        schedule = plan_schedule(recorded, 1)
        columns = to_columns(recorded).between(schedule.start, schedule.end)
        ranges = plan_ranges(int(columns.before[0]), count)
        found: list[RangeView] = []

        def hear(view: RangeView) -> None:
            found.append(view)
            tell(len(found), count)

        tell(0, count)
        await self._run_sweep(share_ranges(columns, ranges, capital, self._fee_pips, workers), workers, hear, stop)
        data = fingerprint_minutes(recorded)
        names = [f"{view.lower}…{view.upper}" for view in found]
        asked = {"capital": capital}
        self._reports.note_trials(KIND, {trial_id(KIND, name, asked, data, EDITION): name for name in names})
        span = (schedule.start, schedule.end)
        return build_view(found, folder, capital, span, count, self._reports.count_trials(KIND))


def plan_ranges(tick: int, count: int, spacing: int = 10) -> tuple[Range, ...]:
    """Every width at every shift, the narrowest first."""
    if count % SHIFTS or not SHIFTS <= count <= MOST_RANGES:
        raise Usage(f"--ranges is {count}; give a multiple of {SHIFTS} from {SHIFTS} to {MOST_RANGES}.")
    widths = count // SHIFTS
    found = []
    for step in range(widths):
        half = NARROWEST + (WIDEST - NARROWEST) * step // max(1, widths - 1)
        for place in range(SHIFTS):
            centre = tick + half * (2 * place - (SHIFTS - 1)) // (2 * (SHIFTS - 1))
            lower = floor_to_spacing(centre - half, spacing)
            found.append(Range(Tick(lower), Tick(max(lower + spacing, ceil_to_spacing(centre + half, spacing)))))
    return tuple(found)


def share_ranges(
    columns: MinuteColumns, ranges: Sequence[Range], capital: int, fee_pips: int, workers: int
) -> list[SweepTask]:
    shares = (ranges[place::workers] for place in range(workers))
    return [SweepTask(columns, tuple(share), capital, fee_pips) for share in shares if share]


def play_range(columns: MinuteColumns, held: Range, capital: int, fee_pips: int) -> RangeView:
    start, last = (sqrt_price_at_tick(int(tick)) / Q96 for tick in (columns.before[0], columns.close[-1]))
    low, high = (sqrt_price_at_tick(edge) / Q96 for edge in (held.lower, held.upper))
    root = min(max(start, low), high)
    each0, each1 = (high - root) / (root * high), root - low
    whole = capital * USD
    needed0 = whole * each0 / (each0 + each1 / (start * start))
    kept = whole - abs(needed0 - whole / 2) * fee_pips / PIPS
    liquidity = int(kept / (each0 + each1 / (start * start)))
    held0, held1 = amounts_by_minute(columns, held, liquidity)
    earned0, earned1 = (np.cumsum(fees) for fees in fees_by_minute(columns, held, liquidity, fee_pips))
    ticks, places = np.unique(columns.close, return_inverse=True)
    prices = np.array([(sqrt_price_at_tick(int(tick)) / Q96) ** 2 for tick in ticks])[places]
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


def build_view(
    found: Sequence[RangeView], folder: str, capital: int, span: tuple[int, int], asked: int, trials: int
) -> SweepView:
    ordered = sorted(found, key=lambda view: (view.vs_hold_usd, view.lower, view.upper))
    return SweepView(
        ok=True,
        stopped=len(found) < asked,
        data=plain_text(folder, 200),
        since=span[0],
        until=span[1],
        capital_usd=capital,
        ranges=len(found),
        above_hold=round(sum(view.vs_hold_usd > 0 for view in found) / max(1, len(found)), 6),
        quantiles=tuple(
            QuantileView(share=share, vs_hold_usd=ordered[(len(ordered) - 1) * share // 100].vs_hold_usd)
            for share in _QUANTILES
            if ordered
        ),
        best=tuple(reversed(ordered[-SHOWN:])),
        worst=tuple(ordered[:SHOWN]),
        trials=trials,
    )
