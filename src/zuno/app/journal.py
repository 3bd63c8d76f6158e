"""The journal as a person asks about it: is it whole, and what was written last."""

from __future__ import annotations

from zuno.app.views import EntryView, FaultView, JournalTailView, JournalVerdictView
from zuno.domain.errors import Usage
from zuno.memory.journal import ChainedJournal
from zuno.ports.journal import Entry

MAX_TAIL = 1_000


class JournalAudit:
    """Reads only: neither a repair nor a key is written here."""

    def __init__(self, journal: ChainedJournal) -> None:
        self._journal = journal

    async def verify(self) -> JournalVerdictView:
        verdict = await self._journal.verify()
        fault = verdict.fault
        return JournalVerdictView(
            ok=verdict.ok,
            entries=verdict.entries,
            first_bad=None if fault is None else FaultView(seq=fault.seq, reason=fault.reason),
            notes=verdict.notes,
        )

    async def tail(self, count: int) -> JournalTailView:
        if not 1 <= count <= MAX_TAIL:
            raise Usage(f"Between 1 and {MAX_TAIL} entries can be shown.")
        return JournalTailView(entries=tuple(_shown(entry) for entry in await self._journal.latest(count)))


def _shown(entry: Entry) -> EntryView:
    return EntryView(
        seq=entry.seq,
        at=entry.at,
        kind=entry.kind,
        request_id=entry.request_id,
        role=entry.author.role,
        key=entry.author.key or "",
        code=entry.code,
        bundle=entry.bundle,
        hash=entry.hash,
    )
