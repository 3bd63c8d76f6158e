"""What a backtest of the LP desk is asked: which record, which arms, how much capital, how often."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from hashlib import sha256
from typing import Any, Final, TypeAlias

from zuno.kernel.canonical import Digest, canonical
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Seconds
from zuno.lab.lp.arms import WHOLE_RUN, Arm
from zuno.lab.lp.backtest import Schedule
from zuno.lab.workers import parse_arms, write_command
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.market import HOUR
from zuno.lp.model.minutes import PoolMinutes
from zuno.lp.model.tape import PoolRecord

WARM_UP: Final = Seconds(168 * HOUR)
"""Of the record that is history before the first decision: fewer hours are too few for stress."""
MOST_CAPITAL: Final = 10**9
MOST_HOURS: Final = 168


@dataclass(frozen=True, slots=True)
class LpQuestion:
    folder: str
    arms: tuple[Arm, ...]
    capital: int
    """Whole dollars, half of them in each token at the start."""
    every_hours: int
    half_width: Fraction
    """Of the range at the start and of a reset, in the log of the price."""
    gas_gwei: Decimal
    profile: RiskProfile
    funding_bp: Decimal = Decimal(0)
    """What a short beside a position receives every eight hours, in basis points."""
    models: bool = False
    """Whether the configured models argue; else everybody goes by rules."""

    @property
    def command(self) -> str:
        funding = f"{self.funding_bp.normalize():f}"
        options = {**self.data_option, "arms": ",".join(self.arms), **self.list_conditions(), "funding": funding}
        return write_command("lp", options, models=self.models)

    @property
    def data_option(self) -> dict[str, str]:
        return {"data": shlex.quote(plain_text(self.folder, 200))}

    def list_conditions(self) -> dict[str, object]:
        """As options of a command."""
        width = Decimal(self.half_width.numerator * 100) / self.half_width.denominator
        shape = {"every": self.every_hours, "width": f"{width.normalize():f}", "profile": self.profile}
        return {"capital": self.capital, **shape, "gas-gwei": f"{self.gas_gwei.normalize():f}"}

    @property
    def conditions(self) -> dict[str, Any]:
        """What an arm's result hangs on, beside the data."""
        costs = {"gasGwei": self.gas_gwei, "profile": self.profile, "models": self.models}
        return {"capital": self.capital, "everyHours": self.every_hours, "halfWidth": self.half_width, **costs}


ReadMinutes: TypeAlias = Callable[[str], PoolMinutes]
ReadRecord: TypeAlias = Callable[[str], PoolRecord]


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
    funding_bp: str = "0",
    *,
    models: bool = False,
) -> LpQuestion:
    """Parse a command's options; `UsageError` names what is wrong."""
    check_capital(capital)
    if not 1 <= every_hours <= MOST_HOURS:
        raise UsageError(f"--every is {every_hours}; give hours from 1 to {MOST_HOURS}.")
    if profile not in tuple(RiskProfile):
        raise UsageError(f"{plain_text(profile, 40)!r} is no risk profile; choose from {', '.join(RiskProfile)}.")
    chosen = parse_arms(arms, WHOLE_RUN)
    if Arm.RANDOM in chosen and Arm.DEBATE not in chosen:
        raise UsageError("The arm random makes the debate's moves: name debate too.")
    return LpQuestion(
        folder=folder,
        arms=chosen,
        capital=capital,
        every_hours=every_hours,
        half_width=Fraction(_read_number("--width", width_pct, Decimal("0.1"), Decimal(100))) / 100,
        gas_gwei=_read_number("--gas-gwei", gas_gwei, Decimal(0), Decimal(10_000)),
        profile=RiskProfile(profile),
        funding_bp=_read_number("--funding", funding_bp, Decimal(-100), Decimal(100)),
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
