"""`zuno journal`: verify the chain, show the newest entries."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from pydantic import SerializerFunctionWrapHandler, model_serializer

from zuno.journal.chain import Fault
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Entry
from zuno.kernel.errors import NotFound, UsageError
from zuno.kernel.view import VerdictView, View
from zuno.present.document import Document, document, lines, table
from zuno.present.values import bad, good, quiet, when


class JournalVerdictView(VerdictView):
    entries: int
    """How many entries hold, from the first on."""
    first_bad: Fault | None = None
    """The first check that failed."""
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        entries = f"{self.entries:,} {'entry' if self.entries == 1 else 'entries'}"
        if self.first_bad is None:
            whole = good(f"The journal is whole: {entries}, each chained to the one before and signed.")
            return document(whole if self.ok else bad(whole.text), notes=self.notes)
        where = "" if self.first_bad.seq is None else f" at entry {self.first_bad.seq}"
        broken = bad(f"The journal is BROKEN{where}: {self.first_bad.reason}.")
        return document(broken, lines(quiet(f"{entries} before that hold.")), notes=self.notes)

    @model_serializer(mode="wrap")
    def _omit_absent(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in whole(self).items() if value or isinstance(value, bool | int)}


class EntryView(View):
    LEFT_OUT: ClassVar = frozenset({"key", "code", "bundle"})
    seq: int
    at: int
    """Unix milliseconds."""
    kind: str
    request_id: str | None
    role: str
    key: str
    code: str
    bundle: str | None
    hash: str


class JournalTailView(View):
    entries: tuple[EntryView, ...]
    """Newest first."""

    def to_document(self) -> Document:
        if not self.entries:
            return document("The journal is empty.")
        rows = (
            (str(entry.seq), when(entry.at // 1_000), entry.kind, entry.request_id or "", entry.role, entry.hash[:12])
            for entry in self.entries
        )
        columns = ("entry", "time", "kind", "request", "by", "hash")
        return document("", table(columns, rows, spare=("hash", "request")))


MAX_TAIL = 1_000


class JournalAudit:
    """Reads only: neither a repair nor a key is written here."""

    def __init__(self, journal: ChainedJournal) -> None:
        self._journal = journal

    async def verify(self) -> JournalVerdictView:
        verdict = await self._journal.verify()
        return JournalVerdictView(ok=verdict.ok, entries=verdict.entries, first_bad=verdict.fault, notes=verdict.notes)

    async def last_request(self, kinds: Collection[str]) -> str:
        """The request or run whose entry of one of these kinds is the newest."""
        found = [entry for kind in kinds for entry in await self._journal.latest(1, kind=kind)]
        newest = max(found, key=lambda entry: entry.seq, default=None)
        if newest is None or newest.request_id is None:
            raise NotFound("Nothing was decided here yet; `zuno lp recommend` and `zuno trade run` do.")
        return newest.request_id

    async def tail(self, count: int) -> JournalTailView:
        return await self.page(count)

    async def since(self, seq: int, count: int) -> list[Entry]:
        """At most `count` entries after a number, oldest first."""
        found: list[Entry] = []
        async for entry in self._journal.entries(after=seq):
            found.append(entry)
            if len(found) == count:
                break
        return found

    async def newest(self) -> Entry | None:
        return next(iter(await self._journal.latest(1)), None)

    async def page(self, count: int, before: int | None = None) -> JournalTailView:
        """The newest `count` entries, or those before an entry's number."""
        if not 1 <= count <= MAX_TAIL:
            raise UsageError(f"Between 1 and {MAX_TAIL} entries can be shown.")
        found = await self._journal.latest(count, before=before)
        return JournalTailView(entries=tuple(map(_to_entry_view, found)))


def _to_entry_view(entry: Entry) -> EntryView:
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
