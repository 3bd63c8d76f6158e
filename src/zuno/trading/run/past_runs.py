"""What earlier runs of a journal came to: each entry is read and verified once, later only what was written since."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from zuno.journal.port import Journal
from zuno.kernel.canonical import to_json
from zuno.kernel.units import Millis
from zuno.trading.model.bundle import Slot
from zuno.trading.model.market import Mode, Symbol
from zuno.trading.model.slots import Exploration
from zuno.trading.rules.expectancy import MONTH_MS
from zuno.trading.run.record import ENDED, EXPLORED, ExplorationClaim, MarketMoment, RunRequest, RunSummary


@dataclass(frozen=True, slots=True)
class LoggedClaim:
    """An exploration as it stands in the journal."""

    seq: int
    run_id: str
    claim: ExplorationClaim


class RunHistory(Protocol):
    """Earlier runs, for whoever looks back at them."""

    async def list_ended(self) -> list[RunSummary]:
        """The newest first."""
        ...

    async def list_claims(self) -> list[LoggedClaim]:
        """The oldest first."""
        ...

    async def find_summary(self, run_id: str) -> RunSummary | None:
        """How a run ended; None where it has not."""
        ...


class PastRuns:
    """The newest runs that ended, and every exploration. Other processes may write to the journal beside this one."""

    def __init__(self, journal: Journal, most: int) -> None:
        """`most`: runs that are looked back at."""
        self.journal = journal
        self._most = most
        self._ended: dict[str, RunSummary] = {}
        self._claims: list[LoggedClaim] = []
        self._last_ended: int | None = None
        self._last_claim = 0
        self._reading = asyncio.Lock()

    async def list_ended(self) -> list[RunSummary]:
        async with self._reading:
            if self._last_ended is None:
                found = (await self.journal.latest(self._most, kind=ENDED))[::-1]
            else:
                found = [entry async for entry in self.journal.entries(kind=ENDED, after=self._last_ended)]
            for entry in found:
                self._ended[entry.request_id or ""] = RunSummary.model_validate(dict(entry.payload))
            self._last_ended = found[-1].seq if found else self._last_ended or 0
            for run_id in list(self._ended)[: -self._most]:
                del self._ended[run_id]
        return list(self._ended.values())[::-1]

    async def list_claims(self) -> list[LoggedClaim]:
        async with self._reading:
            async for entry in self.journal.entries(kind=EXPLORED, after=self._last_claim):
                claim = ExplorationClaim.model_validate(dict(entry.payload), strict=False)
                self._claims.append(LoggedClaim(entry.seq, entry.request_id or "", claim))
                self._last_claim = entry.seq
        return list(self._claims)

    async def find_summary(self, run_id: str) -> RunSummary | None:
        if run_id in self._ended:
            return self._ended[run_id]
        found = await self.journal.latest(1, request_id=run_id, kind=ENDED)
        return RunSummary.model_validate(dict(found[0].payload)) if found else None


async def read_previous_decision(past: RunHistory, asked: RunRequest, moment: MarketMoment) -> list[Slot]:
    """What was decided last about a symbol of this market in this mode, strictly earlier; of two at one moment the
    newer word."""
    best: RunSummary | None = None
    for run in await past.list_ended():
        same = (run.symbol, run.mode, run.origin) == (asked.symbol, asked.mode, moment.origin)
        same = same and asked.account in (None, run.account)
        if same and run.as_of < moment.as_of and (best is None or run.as_of > best.as_of):
            best = run
    if best is None:
        return []
    content = best.model_dump(exclude={"symbol", "origin", "hash"})
    return [Slot("previous_decision", to_json(content), best.as_of, "journal")]


async def list_explorations(
    past: RunHistory, asked: RunRequest, moment: MarketMoment, before: int | None = None
) -> tuple[Exploration, ...]:
    """Explorations of this market in the thirty days before, of every symbol; `before`: of entries earlier than this
    one. Of the same moment those of another symbol or mode count; a run that is made again does not count against
    itself, what was ruled twice counts once. One that has not ended counts; one that came to nothing does not."""
    found: dict[tuple[Millis, Symbol, Mode], Exploration] = {}
    for logged in await past.list_claims():
        if before is not None and logged.seq >= before:
            break
        claim = logged.claim
        at, key = claim.explored.at, (claim.explored.at, claim.symbol, claim.mode)
        if claim.origin != moment.origin or not moment.as_of - MONTH_MS < at <= moment.as_of:
            continue
        if asked.account not in (None, claim.account):
            continue
        if key == (moment.as_of, asked.symbol, asked.mode):
            continue
        ended = await past.find_summary(logged.run_id)
        if ended is None or ended.exploration:
            found[key] = claim.explored
    return tuple(found[key] for key in sorted(found))
