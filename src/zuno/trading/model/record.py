"""The desk's own record as a cycle is given it: how trades came out by judge and regime, and what was explored."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from zuno.kernel.canonical import to_json
from zuno.kernel.units import Millis
from zuno.kernel.wire import Wire
from zuno.trading.model.account import Above, NotBelow, Timestamp
from zuno.trading.model.bundle import Slot
from zuno.trading.model.cycle import JudgeKind, RegimeFamily

RECORD: Final = "record"
"""The slot of a bundle that holds it."""
MAX_EDGE: Final = 0.20
"""Beyond which no claim counts, whoever makes it."""

Share = Annotated[float, Field(gt=0, lt=1)]
Edge = Annotated[float, Field(ge=-MAX_EDGE, le=MAX_EDGE)]


class ClosedTrade(Wire):
    """A trade that has ended, by target, stop, time or a decision."""

    closed: Timestamp
    judge: JudgeKind
    family: RegimeFamily
    edge: Edge
    """As it was claimed when the trade was opened, clamped."""
    profit_pct: Above
    loss_pct: Above
    """From entry to target and to stop, in per cent of the entry."""
    exit_pct: float
    """From entry to exit, in per cent of the entry before costs; below zero is a loss."""


class Calibration(Wire):
    """Sums over the closed trades of one judge and regime family, from which its slope and error follow."""

    judge: JudgeKind
    family: RegimeFamily
    n: Annotated[int, Field(ge=0)]
    edge_gain: float
    """Σ edge · (score − fair)."""
    edge_squared: NotBelow
    """Σ edge²."""
    edge_variance: NotBelow
    """Σ edge² · fair · (1 − fair)."""


class Exploration(Wire):
    """An exploration that was ruled, by the market's clock."""

    at: Timestamp
    judge: JudgeKind
    family: RegimeFamily


class DeskRecord(Wire):
    """What was learned before a moment."""

    calibrations: tuple[Calibration, ...] = ()
    explorations: tuple[Exploration, ...] = ()
    """Of the last thirty days."""
    money: Annotated[bool, Field(exclude_if=lambda money: not money)] = False
    """Whether the cycle acts with money: then nothing is explored, and an edge needs trades that prove it."""


def record_slot(record: DeskRecord, as_of: Millis) -> Slot:
    return Slot(RECORD, to_json(record), as_of, "journal")
