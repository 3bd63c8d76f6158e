"""The trading desk's cycles as a person asks for them: run one, take a broken one up again, look at what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from zuno.app.archive import ReplayView
from zuno.domain.trading import Mode, Symbol
from zuno.domain.units import Millis
from zuno.messages.bundle import Bundle
from zuno.messages.outcome import NodeEvent, Outcome
from zuno.ports.model import Attempt

Listen = Callable[[NodeEvent], None]


def _deaf(event: NodeEvent) -> None:
    """Nobody listens: everything is on record all the same."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run as the journal knows it."""

    run_id: str
    symbol: Symbol
    mode: Mode
    as_of: Millis
    at: Millis
    """When it was started, by the clock on the wall."""
    state: Literal["ended", "unfinished"]
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class Told:
    """Everything that is on record of a run: for a report or for whoever asks why."""

    line: RunLine
    bundle: Bundle
    attempts: tuple[Attempt, ...]
    """What models were asked and said, in that order."""
    picture: bytes | None


class Cycles:
    """Runs of the trading desk. One symbol is argued about by one process of a home at a time."""

    async def run(
        self,
        symbol: str,
        mode: str = "swing",
        as_of: str | None = None,
        listen: Listen = _deaf,
        *,
        chart: bool = True,
    ) -> Outcome:
        raise NotImplementedError

    async def resume(self, run_id: str, listen: Listen = _deaf) -> Outcome:
        raise NotImplementedError

    async def outcome(self, run_id: str) -> Outcome:
        """`Unknown` for a run nobody started, `Refused` for one that has not ended."""
        raise NotImplementedError

    async def told(self, run_id: str) -> Told:
        """A run that has not ended has no outcome in its line."""
        raise NotImplementedError

    async def runs(self) -> tuple[RunLine, ...]:
        """The newest first."""
        raise NotImplementedError

    async def replay(self, run_id: str) -> ReplayView:
        raise NotImplementedError
