"""Many ranges over the same minutes by the fast engine: how much of a good result is the choice of the range.

A range is opened once at the start of the schedule and kept. Half of the capital lies in each token before; what the
range does not need of one is swapped for the pool's fee, without impact. Fees count at the last price.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from zuno.kernel.text import plain_text
from zuno.kernel.view import PartialView, View
from zuno.lab.lp.fast import to_columns
from zuno.lab.lp.ranges import RangeView, SweepTask, plan_ranges, share_ranges
from zuno.lab.lp.service import ReadMinutes, fingerprint_minutes, plan_schedule
from zuno.lab.reports import LabReports, trial_id
from zuno.lab.workers import Progress, check_workers
from zuno.lp.model.ballot import EDITION

KIND: Final = "sweep-lp"
SHOWN: Final = 5
_QUANTILES: Final = (5, 25, 50, 75, 95)


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
        columns = to_columns(recorded).select_minutes(schedule.start, schedule.end)
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
