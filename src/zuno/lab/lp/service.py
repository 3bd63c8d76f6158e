"""Backtests of the LP desk as a person asks for them: arms side by side over one recorded pool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from typing import Final, TypeAlias

from zuno.kernel.errors import Refused, Usage
from zuno.kernel.text import plain_text
from zuno.kernel.units import Seconds
from zuno.kernel.view import PartialView, View
from zuno.lab.bootstrap import interval_of_sum
from zuno.lab.lp.arms import Arm
from zuno.lab.lp.backtest import ArmResult, Schedule
from zuno.lab.service import MOST_WORKERS, Progress
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.market import HOUR
from zuno.lp.model.minutes import MinuteRepairs, PoolMinutes

WARM_UP: Final = Seconds(168 * HOUR)
"""Of the record that is history before the first decision: fewer hours are too few for stress."""
BLOCK_HOURS: Final = 24
MOST_CAPITAL: Final = 10**9
MOST_HOURS: Final = 168
USD: Final = 10**6


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


@dataclass(frozen=True, slots=True)
class ArmTask:
    """One arm for one process."""

    question: LpQuestion
    arm: Arm
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class HourPlayed:
    """A sign of life."""

    arm: Arm


ReadMinutes: TypeAlias = Callable[[str], PoolMinutes]
RunArms: TypeAlias = Callable[
    [Sequence[ArmTask], int, Callable[[ArmResult | HourPlayed], None], asyncio.Event], Awaitable[None]
]


class ComparisonView(View):
    """Against holding the same tokens, hour by hour over the same prices."""

    net_pnl_usd: float
    ci95: tuple[float, float] | None


class ArmView(View):
    """USD; `residual` is what balances show and the terms do not explain, and anything but 0 is a fault."""

    arm: str
    by: str
    """Who decided: nobody, a rule, or the debate by rules."""
    net_pnl_usd: float
    fees: float
    price_effect: float
    divergence_loss: float
    lvr: float
    gas: float
    swap_cost: float
    residual: float
    model_cost_usd: float
    time_in_range: float
    max_drawdown: float
    """Largest fall from a peak, as a share of it, between two hours' ends."""
    decisions: int
    rebalances: int
    refused: int
    ci95: tuple[float, float] | None
    """Of the net result, days resampled; null where there are too few."""
    vs_hold: ComparisonView | None


class RepairsView(View):
    files: int
    rows: int
    sorted_rows: int
    widened: int
    repeated: int
    contradicted: int
    missing: int
    missing_days: tuple[str, ...]
    without_liquidity: int


class LpLabView(PartialView):
    data: str
    since: int
    until: int
    """Unix seconds of the first and the last moment that counted."""
    hours: int
    capital_usd: int
    every_hours: int
    half_width_pct: float
    profile: str
    gas_gwei: float
    repairs: RepairsView
    arms: tuple[ArmView, ...]


class LpLab:
    """Nothing is read from a home and nothing is written there."""

    def __init__(self, read_minutes: ReadMinutes, run_arms: RunArms) -> None:
        self._read_minutes = read_minutes
        self._run_arms = run_arms

    async def compare(self, question: LpQuestion, workers: int, tell: Progress, stop: asyncio.Event) -> LpLabView:
        """Every arm over the same hours. Once `stop` is set, the arms that are done are the answer."""
        if not 1 <= workers <= MOST_WORKERS:
            raise Usage(f"--workers is {workers}; give a whole number from 1 to {MOST_WORKERS}.")
        recorded = await asyncio.to_thread(self._read_minutes, question.folder)
        schedule = plan_schedule(recorded, question.every_hours)
        tasks = [ArmTask(question, arm, schedule) for arm in question.arms]
        hours, played = -(-(schedule.end - schedule.start) // HOUR), 0
        results: dict[Arm, ArmResult] = {}

        def hear(said: ArmResult | HourPlayed) -> None:
            nonlocal played
            if isinstance(said, ArmResult):
                results[said.arm] = said
            else:
                played += 1
                tell(played, hours * len(tasks))

        tell(0, hours * len(tasks))
        await self._run_arms(tasks, workers, hear, stop)
        done = [results[arm] for arm in question.arms if arm in results]
        return build_view(question, recorded.repairs, schedule, done, stopped=len(done) < len(tasks))


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
    folder: str, arms: str, capital: int, every_hours: int, width_pct: str, profile: str, gas_gwei: str
) -> LpQuestion:
    """What a person typed. `Usage` says what of it cannot be."""
    if not 100 <= capital <= MOST_CAPITAL:
        raise Usage(f"--capital is {capital}; give whole dollars from 100 to {MOST_CAPITAL:,}.")
    if not 1 <= every_hours <= MOST_HOURS:
        raise Usage(f"--every is {every_hours}; give hours from 1 to {MOST_HOURS}.")
    if profile not in tuple(RiskProfile):
        raise Usage(f"{plain_text(profile, 40)!r} is no risk profile; choose from {', '.join(RiskProfile)}.")
    return LpQuestion(
        folder=folder,
        arms=parse_arms(arms),
        capital=capital,
        every_hours=every_hours,
        half_width=Fraction(_read_number("--width", width_pct, Decimal("0.1"), Decimal(100))) / 100,
        gas_gwei=_read_number("--gas-gwei", gas_gwei, Decimal(0), Decimal(10_000)),
        profile=RiskProfile(profile),
    )


def _read_number(name: str, text: str, least: Decimal, most: Decimal) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not least <= number <= most:
        raise Usage(f"{name} is {plain_text(text, 40)!r}; give a number from {least} to {most}.")
    return number


def parse_arms(text: str) -> tuple[Arm, ...]:
    """Names with commas between them, each once."""
    found = []
    for name in text.split(","):
        try:
            found.append(Arm(name.strip()))
        except ValueError:
            raise Usage(f"{plain_text(name, 40)!r} is no arm; choose from {', '.join(Arm)}.") from None
    return tuple(dict.fromkeys(found))


def build_view(
    question: LpQuestion, repairs: MinuteRepairs, schedule: Schedule, results: Sequence[ArmResult], *, stopped: bool
) -> LpLabView:
    held = next((result for result in results if result.arm is Arm.HOLD), None)
    arms = tuple(_arm_view(result, held) for result in results)
    return LpLabView(
        ok=all(result.residual == 0 for result in results),
        stopped=stopped,
        data=plain_text(question.folder, 200),
        since=schedule.start,
        until=schedule.end,
        hours=(schedule.end - schedule.start) // HOUR,
        capital_usd=question.capital,
        every_hours=question.every_hours,
        half_width_pct=float(100 * question.half_width),
        profile=question.profile,
        gas_gwei=float(question.gas_gwei),
        repairs=RepairsView.model_validate(repairs, from_attributes=True),
        arms=arms,
    )


_DECIDED_BY: Final = {Arm.HOLD: "nobody", Arm.PASSIVE: "nobody", Arm.RESET: "rule", Arm.DEBATE: "debate by rules"}


def _arm_view(result: ArmResult, held: ArmResult | None) -> ArmView:
    terms = result.terms
    changes = _hourly_changes(result)
    return ArmView(
        arm=result.arm,
        by=_DECIDED_BY[result.arm],
        net_pnl_usd=_usd(result.net),
        fees=_usd(terms.fees),
        price_effect=_usd(terms.price_effect + result.idle_effect),
        divergence_loss=_usd(terms.divergence_loss),
        lvr=round(result.lvr / USD, 6),
        gas=_usd(terms.gas),
        swap_cost=_usd(terms.swap_cost),
        residual=_usd(result.residual),
        model_cost_usd=0.0,
        time_in_range=round(result.minutes_in_range / result.minutes, 6),
        max_drawdown=_max_drawdown(result.hourly),
        decisions=result.decisions,
        rebalances=result.rebalances,
        refused=result.refused,
        ci95=_interval(changes),
        vs_hold=None if held is None or held is result else _compare(result, held),
    )


def _compare(result: ArmResult, held: ArmResult) -> ComparisonView:
    differences = [ours - theirs for ours, theirs in zip(_hourly_changes(result), _hourly_changes(held), strict=True)]
    return ComparisonView(net_pnl_usd=_usd(result.net - held.net), ci95=_interval(differences))


def _hourly_changes(result: ArmResult) -> list[int]:
    """In millionths of a dollar."""
    return [round(after - before) for before, after in pairwise(result.hourly)]


def _interval(changes: Sequence[int]) -> tuple[float, float] | None:
    found = interval_of_sum(changes, BLOCK_HOURS)
    return None if found is None else (found[0] / USD, found[1] / USD)


def _max_drawdown(worths: Sequence[Fraction]) -> float:
    peak, worst = worths[0], Fraction(0)
    for worth in worths:
        peak = max(peak, worth)
        worst = max(worst, 1 - worth / peak)
    return round(float(worst), 6)


def _usd(amount: Fraction) -> float:
    return round(float(amount / USD), 6)
