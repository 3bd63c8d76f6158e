"""Many ranges over the same minutes by the fast engine: how much of a good result is the choice of the range.

A range is opened once at the start of the schedule and kept. Half of the capital lies in each token before; what the
range does not need of one is swapped for the pool's fee, without impact. Fees count at the last price.
"""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from zuno.amm.model import Range
from zuno.kernel.text import plain_text
from zuno.lab.lp.backtest import Schedule
from zuno.lab.lp.fast import to_columns
from zuno.lab.lp.question import ReadMinutes, check_capital, fingerprint_minutes, plan_schedule
from zuno.lab.lp.ranges import SHIFTS, RangeView, SweepTask, check_count, plan_ranges, share_ranges
from zuno.lab.lp.views import QuantileView, SweepView
from zuno.lab.report_page import heat_map
from zuno.lab.reports import LabReports, report_id, trial_id
from zuno.lab.workers import Progress, check_any_done, check_workers, read_or_stop, write_command
from zuno.lp.model.ballot import EDITION
from zuno.lp.model.minutes import PoolMinutes

KIND: Final = "sweep-lp"
SHOWN: Final = 5
MOST_ROWS: Final = 40
"""Of the heat map."""
_QUANTILES: Final = (5, 25, 50, 75, 95)


@dataclass(frozen=True, slots=True)
class LpSweep:
    read_minutes: ReadMinutes
    run_sweep: Callable[
        [Awaitable[Sequence[SweepTask]], int, Callable[[RangeView], None], asyncio.Event], Awaitable[None]
    ]
    reports: LabReports
    fee_pips: int

    async def sweep(
        self, folder: str, count: int, capital: int, workers: int, tell: Progress, stop: asyncio.Event
    ) -> SweepView:
        """Play `count` ranges over the hours of a backtest. Once `stop` is set, the view holds the finished ones."""
        check_workers(workers)
        check_count(count)
        check_capital(capital)
        recorded: PoolMinutes
        schedule: Schedule
        grid: tuple[Range, ...]
        ranges: tuple[Range, ...] = ()
        played: list[RangeView] = []

        async def plan() -> list[SweepTask]:
            """Worker processes start while the minutes are read."""
            nonlocal recorded, schedule, grid, ranges
            recorded = await read_or_stop(self.read_minutes, folder, stop)
            schedule = plan_schedule(recorded, 1)
            columns = to_columns(recorded).select_minutes(schedule.start, schedule.end)
            grid = plan_ranges(int(columns.before[0]), count)
            ranges = tuple(dict.fromkeys(grid))
            tell(0, len(ranges))
            return share_ranges(columns, ranges, capital, self.fee_pips, workers)

        def hear(view: RangeView) -> None:
            played.append(view)
            tell(len(played), len(ranges))

        await self.run_sweep(plan(), workers, hear, stop)
        check_any_done(len(played))
        data = fingerprint_minutes(recorded)
        names = [f"{view.lower}…{view.upper}" for view in played]
        asked = {"capital": capital}
        self.reports.note_trials(KIND, {trial_id(KIND, name, asked, data, EDITION): name for name in names})
        ordered = sorted(played, key=lambda view: (view.vs_hold_usd, view.lower, view.upper))
        view = SweepView(
            ok=True,
            stopped=len(played) < len(ranges),
            report=report_id(KIND, asked | {"ranges": count}, data, EDITION),
            data=plain_text(folder, 200),
            since=schedule.start,
            until=schedule.end,
            capital_usd=capital,
            asked=count,
            ranges=len(played),
            above_hold=round(sum(view.vs_hold_usd > 0 for view in played) / len(played), 6),
            quantiles=tuple(
                QuantileView(share=share, vs_hold_usd=ordered[(len(ordered) - 1) * share // 100].vs_hold_usd)
                for share in _QUANTILES
            ),
            best=tuple(reversed(ordered[-SHOWN:])),
            worst=tuple(ordered[:SHOWN]),
            repairs=recorded.repairs,
            trials=self.reports.count_trials(KIND),
        )
        self._save(view, grid, played)
        return view

    def _save(self, view: SweepView, grid: Sequence[Range], played: Sequence[RangeView]) -> None:
        title = f"LP sweep: {view.ranges:,} ranges opened once and kept"
        options = {"data": shlex.quote(view.data), "ranges": view.asked, "capital": view.capital_usd}
        command = write_command("sweep", options)
        chart = heat_map(
            "Net result less that of holding, by the range's half-width and by where its centre lies",
            [f"{100 * (2 * place - (SHIFTS - 1)) / (2 * (SHIFTS - 1)):+.0f} %" for place in range(SHIFTS)],
            list(_chart_rows(grid, played)),
            ("centre from the price, in half-widths", "half-width, ticks"),
            ("above holding", "below holding"),
        )
        self.reports.save_view(view.report, KIND, title, command, view, charts={"Against holding": (chart,)})


def _chart_rows(grid: Sequence[Range], played: Sequence[RangeView]) -> Iterator[tuple[str, list[float | None]]]:
    """A row for every width, at most `MOST_ROWS`."""
    ended = {(row.lower, row.upper): row.vs_hold_usd for row in played}
    widths = len(grid) // SHIFTS
    shown = range(widths) if widths <= MOST_ROWS else [widths * place // MOST_ROWS for place in range(MOST_ROWS)]
    for step in shown:
        row = grid[step * SHIFTS : (step + 1) * SHIFTS]
        half = (row[0].upper - row[0].lower) // 2
        yield f"±{half:,}", [ended.get((held.lower, held.upper)) for held in row]
