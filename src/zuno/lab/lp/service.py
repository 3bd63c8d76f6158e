"""Backtests of the LP desk as a person asks for them: arms side by side over one recorded pool."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from zuno.kernel.canonical import Digest, canonical
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Seconds
from zuno.lab.lp.arms import ASK_NOBODY, WHOLE_RUN, Arm, Move
from zuno.lab.lp.backtest import ArmResult, Schedule
from zuno.lab.lp.fast import Convention, to_columns
from zuno.lab.lp.page import build_lp_page
from zuno.lab.lp.views import ArmView, LpLabView, build_arm_view, complete_arm
from zuno.lab.replies import NameModels
from zuno.lab.reports import LabReports, build_report, report_id, trial_id
from zuno.lab.workers import Progress, check_any_done, check_workers, read_or_stop
from zuno.lp.model.ballot import EDITION, RiskProfile
from zuno.lp.model.market import HOUR
from zuno.lp.model.minutes import MinuteRepairs, PoolMinutes

if TYPE_CHECKING:
    from zuno.lab.lp.ablation import LpAblation
    from zuno.lab.lp.sweep import LpSweep

KIND: Final = "lp"
WARM_UP: Final = Seconds(168 * HOUR)
"""Of the record that is history before the first decision: fewer hours are too few for stress."""
MOST_CAPITAL: Final = 10**9
MOST_HOURS: Final = 168


@dataclass(frozen=True, slots=True)
class LpQuestion:
    """What is backtested."""

    folder: str
    arms: tuple[Arm, ...]
    capital: int
    """Whole dollars, half of them in each token at the start."""
    every_hours: int
    half_width: Fraction
    """Of the range at the start and of a reset, in the log of the price."""
    gas_gwei: Decimal
    profile: RiskProfile
    convention: Convention = Convention.INTRABAR
    """Of the fast engine's figure."""
    models: bool = False
    """Whether the configured models argue; else everybody goes by rules."""

    @property
    def command(self) -> str:
        models = " --models" if self.models else ""
        return (
            f"zuno lab lp {self.describe_data()} --arms {','.join(self.arms)} {self.describe_conditions()} "
            f"--convention {self.convention}{models}"
        )

    def describe_data(self) -> str:
        return f"--data {shlex.quote(plain_text(self.folder, 200))}"

    def describe_conditions(self) -> str:
        width = Decimal(self.half_width.numerator * 100) / self.half_width.denominator
        return (
            f"--capital {self.capital} --every {self.every_hours} --width {width.normalize():f} "
            f"--profile {self.profile} --gas-gwei {self.gas_gwei.normalize():f}"
        )

    @property
    def conditions(self) -> dict[str, Any]:
        """What an arm's result hangs on, beside the data."""
        return {
            "capital": self.capital,
            "everyHours": self.every_hours,
            "halfWidth": self.half_width,
            "gasGwei": self.gas_gwei,
            "profile": self.profile,
            "models": self.models,
        }


@dataclass(frozen=True, slots=True)
class ArmTask:
    """One arm for one process."""

    question: LpQuestion
    arm: Arm
    schedule: Schedule
    moves: tuple[Move, ...] = ()
    """Of the random arm: those of the debate."""


@dataclass(frozen=True, slots=True)
class HourProgress:
    """A sign of life."""

    arm: Arm


ReadMinutes: TypeAlias = Callable[[str], PoolMinutes]
RunArms: TypeAlias = Callable[
    [Sequence[ArmTask], int, Callable[[ArmResult | HourProgress], None], asyncio.Event], Awaitable[None]
]


class LpLab:
    """Backtests over recorded minutes; each leaves a report in the home."""

    def __init__(
        self,
        read_minutes: ReadMinutes,
        run_arms: RunArms,
        reports: LabReports,
        fee_pips: int,
        ablation: LpAblation,
        sweep: LpSweep,
        name_models: NameModels,
    ) -> None:
        """`fee_pips`: of the recorded pool. `ablation`: what each part of the argument adds. `sweep`: many ranges."""
        self.ablation = ablation
        self.sweep = sweep
        self._read_minutes = read_minutes
        self._run_arms = run_arms
        self.reports = reports
        self._fee_pips = fee_pips
        self._name_models = name_models

    async def compare(
        self, question: LpQuestion, workers: int, tell: Progress, stop: asyncio.Event, *, resume: bool = False
    ) -> LpLabView:
        """Every arm over the same hours. Once `stop` is set, the arms that are done are the answer, and `resume` goes
        on from them."""
        check_workers(workers)
        recorded = await read_or_stop(self._read_minutes, question.folder, stop)
        schedule = plan_schedule(recorded, question.every_hours)
        data, columns = fingerprint_minutes(recorded), to_columns(recorded)
        conditions = question.conditions | dict(await self._name_models() if question.models else {})
        asked = conditions | {"arms": question.arms, "convention": question.convention}
        report = report_id(KIND, asked, data, EDITION)
        done = {arm.arm: arm for arm in self.reports.load_parts(report, ArmView, resume=resume)}
        hours, played = -(-(schedule.end - schedule.start) // HOUR), 0
        total = hours * sum(arm not in done for arm in question.arms)

        def hear(said: ArmResult | HourProgress) -> None:
            nonlocal played
            if isinstance(said, ArmResult):
                done[said.arm] = build_arm_view(said, columns, self._fee_pips, question.convention)
                matched = done[Arm.DEBATE] if said.arm is Arm.RANDOM else done[said.arm]
                if not done[said.arm].unanswered and not matched.unanswered:
                    self.reports.keep_part(report, done[said.arm])
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
                await self._run_arms(tasks, 1 if question.models else workers, hear, stop)
        check_any_done(len(done))
        alone = replace(question, models=False).conditions
        asked_of = {arm: alone if arm in ASK_NOBODY else conditions for arm in done}
        self.reports.note_trials(KIND, {trial_id(KIND, arm, of, data, EDITION): arm for arm, of in asked_of.items()})
        arms = [done[arm] for arm in question.arms if arm in done]
        view = build_view(question, report, recorded.repairs, schedule, arms)
        self._save(view, question)
        return view

    def _save(self, view: LpLabView, question: LpQuestion) -> None:
        title = f"LP backtest: {', '.join(question.arms)}"
        unanswered = sum(arm.unanswered for arm in view.arms)
        report = build_report(view.report, KIND, title, question.command, view, unanswered=unanswered)
        self.reports.save(report, build_lp_page(view, title, question.command))


def plan_waves(arms: Sequence[Arm]) -> tuple[tuple[Arm, ...], ...]:
    """The random arm makes the debate's moves, so it comes after it."""
    return tuple(arm for arm in arms if arm is not Arm.RANDOM), tuple(arm for arm in arms if arm is Arm.RANDOM)


def fingerprint_minutes(recorded: PoolMinutes) -> Digest:
    """Of the minutes and of what was put right in them."""
    rows = "\n".join(
        f"{row.at} {row.open_tick} {row.close_tick} {row.lowest_tick} {row.highest_tick} "
        f"{row.in0} {row.in1} {row.liquidity}"
        for row in recorded.minutes
    )
    return Digest(sha256(rows.encode() + canonical(recorded.repairs)).hexdigest())


def plan_schedule(recorded: PoolMinutes, every_hours: int) -> Schedule:
    """From the first whole hour after the warm-up to the end of the record's last whole hour."""
    first, last = recorded.minutes[0].at // 1000, recorded.minutes[-1].at // 1000 + 60
    start, end = -(-(first + WARM_UP) // HOUR) * HOUR, last // HOUR * HOUR
    if end - start < 24 * HOUR:
        raise Refused(
            f"The record covers {(last - first) // HOUR} hours; {WARM_UP // HOUR} of them are history, and at least a "
            "day must follow."
        )
    return Schedule(Seconds(start), Seconds(end), Seconds(every_hours * HOUR))


def read_question(
    folder: str,
    arms: str,
    capital: int,
    every_hours: int,
    width_pct: str,
    profile: str,
    gas_gwei: str,
    convention: str = Convention.INTRABAR,
    *,
    models: bool = False,
) -> LpQuestion:
    """What a person typed. `UsageError` says what of it cannot be."""
    if convention not in tuple(Convention):
        raise UsageError(f"{plain_text(convention, 40)!r} is no convention; choose from {', '.join(Convention)}.")
    check_capital(capital)
    if not 1 <= every_hours <= MOST_HOURS:
        raise UsageError(f"--every is {every_hours}; give hours from 1 to {MOST_HOURS}.")
    if profile not in tuple(RiskProfile):
        raise UsageError(f"{plain_text(profile, 40)!r} is no risk profile; choose from {', '.join(RiskProfile)}.")
    return LpQuestion(
        folder=folder,
        arms=parse_arms(arms),
        capital=capital,
        every_hours=every_hours,
        half_width=Fraction(_read_number("--width", width_pct, Decimal("0.1"), Decimal(100))) / 100,
        gas_gwei=_read_number("--gas-gwei", gas_gwei, Decimal(0), Decimal(10_000)),
        profile=RiskProfile(profile),
        convention=Convention(convention),
        models=models,
    )


def check_capital(capital: int) -> None:
    if not 100 <= capital <= MOST_CAPITAL:
        raise UsageError(
            f"--capital is {plain_text(str(capital), 40)}; give whole dollars from 100 to {MOST_CAPITAL:,}."
        )


def _read_number(name: str, text: str, least: Decimal, most: Decimal) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not least <= number <= most:
        raise UsageError(f"{name} is {plain_text(text, 40)!r}; give a number from {least} to {most}.")
    return number


def parse_arms(text: str) -> tuple[Arm, ...]:
    """Names with commas between them, each once."""
    found = []
    for name in filter(None, map(str.strip, text.split(","))):
        if name not in WHOLE_RUN:
            raise UsageError(f"{plain_text(name, 40)!r} is no arm; choose from {', '.join(WHOLE_RUN)}.")
        found.append(Arm(name))
    if not found:
        raise UsageError(f"--arms names none; choose from {', '.join(WHOLE_RUN)}.")
    if Arm.RANDOM in found and Arm.DEBATE not in found:
        raise UsageError("The arm random makes the debate's moves: name debate too.")
    return tuple(dict.fromkeys(found))


def build_view(
    question: LpQuestion, report: str, repairs: MinuteRepairs, schedule: Schedule, arms: Sequence[ArmView]
) -> LpLabView:
    held = next((arm for arm in arms if arm.arm == Arm.HOLD), None)
    return LpLabView(
        ok=all(arm.residual == 0 for arm in arms),
        stopped=len(arms) < len(question.arms),
        report=report,
        data=plain_text(question.folder, 200),
        edition=EDITION,
        since=schedule.start,
        until=schedule.end,
        hours=(schedule.end - schedule.start) // HOUR,
        capital_usd=question.capital,
        every_hours=question.every_hours,
        half_width_pct=float(100 * question.half_width),
        profile=question.profile,
        gas_gwei=float(question.gas_gwei),
        repairs=repairs,
        models=tuple(sorted({arm.by for arm in arms if arm.model_tokens})),
        arms=tuple(complete_arm(arm, held) for arm in arms),
    )
