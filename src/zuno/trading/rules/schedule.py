"""When the desk has to do what, from the clock alone. Whether it is done already is in the journal: every job has a
name made of its slot, so that a restart neither skips nor doubles one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, HOUR_MS, Mode, Symbol

CADENCE: Final[Mapping[Mode, int]] = {Mode.SWING: 4 * HOUR_MS, Mode.POSITION: DAY_MS}
"""How often a mode's cycle runs, counted from midnight UTC."""


class JobKind(StrEnum):
    CYCLE = "cycle"
    DAILY_SUMMARY = "daily_summary"
    """Of the day that ended."""
    EVALUATION = "evaluation"
    """What was learned from closed trades, once a day."""


@dataclass(frozen=True, slots=True)
class Job:
    """One thing that is due at the beginning of its slot."""

    kind: JobKind
    slot: Millis
    symbol: Symbol | None = None
    mode: Mode | None = None

    def name(self, account: str) -> str:
        """The same whenever the same job of the same account is meant."""
        return digest(canonical([account, self.kind, self.slot, self.symbol, self.mode]))[:16]


def slot_of(span: int, now: Millis) -> Millis:
    return Millis(now // span * span)


def current_jobs(symbols: Iterable[Symbol], mode: Mode, now: Millis) -> tuple[Job, ...]:
    """The newest slot of every job at a moment. What was missed before it is not made up for: its market is gone."""
    day = slot_of(DAY_MS, now)
    slot = slot_of(CADENCE[mode], now)
    return (
        Job(JobKind.DAILY_SUMMARY, day),
        *(Job(JobKind.CYCLE, slot, symbol, mode) for symbol in symbols),
        Job(JobKind.EVALUATION, day),
    )


def next_slot(mode: Mode, now: Millis) -> Millis:
    """When the next job is due, strictly later."""
    return Millis(slot_of(CADENCE[mode], now) + CADENCE[mode])
