"""What earlier runs of a journal came to: each entry is read and verified once, later only what was written since."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from zuno.journal.port import Journal
from zuno.trading.run.record import ENDED, EXPLORED, ExplorationClaim, RunSummary


@dataclass(frozen=True, slots=True)
class LoggedClaim:
    """An exploration as it stands in the journal."""

    seq: int
    run_id: str
    claim: ExplorationClaim


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
        """The newest first."""
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
        """The oldest first."""
        async with self._reading:
            async for entry in self.journal.entries(kind=EXPLORED, after=self._last_claim):
                claim = ExplorationClaim.model_validate(dict(entry.payload), strict=False)
                self._claims.append(LoggedClaim(entry.seq, entry.request_id or "", claim))
                self._last_claim = entry.seq
        return list(self._claims)

    async def find_summary(self, run_id: str) -> RunSummary | None:
        """How a run ended; None where it has not."""
        if run_id in self._ended:
            return self._ended[run_id]
        found = await self.journal.latest(1, request_id=run_id, kind=ENDED)
        return RunSummary.model_validate(dict(found[0].payload)) if found else None
