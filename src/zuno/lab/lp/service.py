"""Backtests of the LP desk: arms side by side over one recorded pool."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from zuno.kernel.canonical import Digest
from zuno.kernel.text import plain_text
from zuno.kernel.wire import derive
from zuno.lab.lp.arms import ASK_NOBODY, Arm, Move
from zuno.lab.lp.backtest import ArmResult, Schedule
from zuno.lab.lp.cover import PoolPath, RecordCover, measure_record, path_of_minutes, path_of_tape
from zuno.lab.lp.days import LpDaysView, build_days_view
from zuno.lab.lp.fast import to_columns
from zuno.lab.lp.question import LpQuestion, ReadRecord, fingerprint_minutes, plan_schedule
from zuno.lab.lp.scores import Days, ScoredRecord
from zuno.lab.lp.tape import map_ticks, replay, to_swap_columns
from zuno.lab.lp.views import ArmView, LpLabView, TapeView, build_arm_view, complete_arm
from zuno.lab.replies import NameModels
from zuno.lab.reports import LabReports, report_id, trial_id
from zuno.lab.workers import Progress, RunTasks, check_any_done, check_workers, read_or_stop, write_command
from zuno.lp.model.ballot import EDITION
from zuno.lp.model.market import HOUR
from zuno.lp.model.minutes import MinuteRepairs, PoolMinutes
from zuno.lp.model.tape import PoolDays, PoolTape
from zuno.lp.rules.fee_cover import GRIDS

if TYPE_CHECKING:
    from zuno.lab.lp.ablation import LpAblation
    from zuno.lab.lp.sweep import LpSweep

KIND: Final = "lp"


@dataclass(frozen=True, slots=True)
class ArmTask:
    question: LpQuestion
    arm: Arm
    schedule: Schedule
    moves: tuple[Move, ...] = ()
    """Of the random arm: those of the debate."""


@dataclass(frozen=True, slots=True)
class LpLab:
    """Backtests over recorded minutes; each leaves a report in the home."""

    read_record: ReadRecord
    run_arms: RunTasks[ArmTask, ArmResult | None]
    """None: an hour of an arm was played."""
    reports: LabReports
    fee_pips: int
    """Of the recorded pool."""
    tick_spacing: int
    ablation: LpAblation
    sweep: LpSweep
    name_models: NameModels

    async def compare(
        self, question: LpQuestion, workers: int, tell: Progress, stop: asyncio.Event, *, resume: bool = False
    ) -> LpLabView | LpDaysView:
        """Run every arm over the same hours. Once `stop` is set, the view holds those done; `resume` goes on."""
        check_workers(workers)
        record = await read_or_stop(self.read_record, question.folder, stop)
        if isinstance(record, PoolDays):
            return self._report_days(question, record)
        tape = record if isinstance(record, PoolTape) else None
        recorded = record if isinstance(record, PoolMinutes) else record.to_minutes()
        found = await asyncio.to_thread(measure_record, path_of(record, self.fee_pips))
        schedule = plan_schedule(recorded, question.every_hours)
        days, data = Days.between(schedule.start, schedule.end), fingerprint_minutes(recorded)
        swaps = None if tape is None else to_swap_columns(tape)
        scored = ScoredRecord(to_columns(recorded), found.minutes or GRIDS[-1], self.fee_pips, swaps)
        ticks = None if tape is None else map_ticks(tape, self.tick_spacing)
        play = partial(replay, tape, ticks, self.fee_pips) if tape is not None and ticks is not None else None
        conditions = question.conditions | dict(await self.name_models() if question.models else {})
        asked = conditions | {"arms": question.arms, "fundingBp": question.funding_bp}
        report = report_id(KIND, asked, data, EDITION)
        done = {Arm(arm.name): arm for arm in self.reports.load_parts(report, ArmView, resume=resume)}
        hours, played = -(-(schedule.end - schedule.start) // HOUR), 0
        total = hours * sum(arm not in done for arm in question.arms)

        def hear(message: ArmResult | None) -> None:
            nonlocal played
            if message is not None:
                done[message.arm] = build_arm_view(message, scored, days, question.funding_bp, play)
                matched = done[Arm.DEBATE] if message.arm is Arm.RANDOM else done[message.arm]
                if not done[message.arm].unanswered and not matched.unanswered:
                    self.reports.keep_part(report, done[message.arm])
            else:
                played += 1
                tell(min(played, total), total)

        tell(0, total)
        for wave in plan_waves(question.arms):
            if stop.is_set():
                break
            tasks = [
                ArmTask(question, arm, schedule, done[Arm.DEBATE].moves if arm is Arm.RANDOM else ())
                for arm in wave
                if arm not in done
            ]
            if tasks:
                # What one arm was answered the next one finds in the book: arms that ask models run one by one.
                await self.run_arms(tasks, 1 if question.models else workers, hear, stop)
        check_any_done(len(done))
        alone = replace(question, models=False).conditions
        asked_of = {arm: alone if arm in ASK_NOBODY else conditions for arm in done}
        self.reports.note_trials(KIND, {trial_id(KIND, arm, of, data, EDITION): arm for arm, of in asked_of.items()})
        arms = [done[arm] for arm in question.arms if arm in done]
        view = build_view(question, report, recorded.repairs, schedule, arms, found)
        if tape is not None and ticks is not None:
            known, unknown = map(len, ticks.list_ticks())
            tape_view = TapeView(swaps=len(tape.swaps), ticks_known=known, ticks_unknown=unknown)
            view = view.model_copy(update={"tape": tape_view})
        title, unanswered = f"LP backtest: {', '.join(question.arms)}", sum(arm.unanswered for arm in view.arms)
        self.reports.save_view(report, KIND, title, question.command, view, unanswered=unanswered)
        return view

    def _report_days(self, question: LpQuestion, record: PoolDays) -> LpDaysView:
        data = Digest(sha256(repr(record.days).encode()).hexdigest())
        report = report_id(KIND, {"capital": question.capital}, data, EDITION)
        view = build_days_view(record, report, plain_text(question.folder, 200), question.capital)
        command = write_command("lp", {**question.data_option, "capital": question.capital})
        self.reports.save_view(report, KIND, "LP: a pool by day", command, view)
        return view


def path_of(record: PoolMinutes | PoolTape, fee_pips: int) -> PoolPath:
    return path_of_tape(record, fee_pips) if isinstance(record, PoolTape) else path_of_minutes(record, fee_pips)


def plan_waves(arms: Sequence[Arm]) -> tuple[tuple[Arm, ...], ...]:
    """The random arm makes the debate's moves, so it comes after it."""
    return tuple(arm for arm in arms if arm is not Arm.RANDOM), tuple(arm for arm in arms if arm is Arm.RANDOM)


def build_view(
    question: LpQuestion,
    report: str,
    repairs: MinuteRepairs,
    schedule: Schedule,
    arms: Sequence[ArmView],
    found: RecordCover,
) -> LpLabView:
    held, rule = (next((arm for arm in arms if arm.name == name), None) for name in (Arm.HOLD, Arm.COVER))
    return derive(
        LpLabView,
        question,
        found,
        ok=all(arm.residual == 0 for arm in arms),
        stopped=len(arms) < len(question.arms),
        report=report,
        data=plain_text(question.folder, 200),
        edition=EDITION,
        since=schedule.start,
        until=schedule.end,
        hours=(schedule.end - schedule.start) // HOUR,
        capital_usd=question.capital,
        half_width_pct=float(100 * question.half_width),
        gas_gwei=float(question.gas_gwei),
        fees_over_lvr=None if found.cover is None else found.cover.ratio,
        ci80=None if found.cover is None else (found.cover.low, found.cover.high),
        funding_bp=float(question.funding_bp),
        tape=None,
        repairs=repairs,
        models=tuple(sorted({arm.by for arm in arms if arm.model_tokens})),
        arms=tuple(complete_arm(arm, held, rule) for arm in arms),
    )
