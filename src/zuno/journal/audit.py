"""`zuno journal`: verify the chain, show the newest entries."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

from pydantic import SerializerFunctionWrapHandler, model_serializer

from zuno.journal.chain import Fault
from zuno.journal.journal import ChainedJournal, Verdict, VerifyMode
from zuno.journal.port import Entry
from zuno.kernel.errors import NotFound, UsageError, ZunoError
from zuno.kernel.view import VerdictView, View
from zuno.kernel.wire import derive
from zuno.present.document import Document, document, facts, lines, table
from zuno.present.values import bad, count, good, quiet, when


class JournalVerdictView(VerdictView):
    entries: int
    """How many entries hold, from the first on; those before `first` as a checkpoint says."""
    mode: VerifyMode = VerifyMode.ALL
    first: int = 1
    signatures: int = 0
    sealed: int | None = None
    unchecked: str = ""
    """What was not looked at."""
    first_bad: Fault | None = None
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        entries = f"{self.entries:,} {'entry' if self.entries == 1 else 'entries'}"
        if self.first_bad is None:
            held = "is whole" if self.first == 1 else f"holds from entry {self.first:,} on"
            whole = good(f"The journal {held}: {entries}, each chained to the one before and signed.")
            done = facts(
                ("verified", self.mode),
                ("from entry", count(self.first)),
                ("signatures checked", count(self.signatures)),
                ("sealed up to entry", "no checkpoint yet" if self.sealed is None else count(self.sealed)),
                ("not checked", self.unchecked or "nothing"),
            )
            return document(whole if self.ok else bad(whole.text), done, notes=self.notes)
        where = "" if self.first_bad.seq is None else f" at entry {self.first_bad.seq}"
        broken = bad(f"The journal is BROKEN{where}: {self.first_bad.reason}.")
        return document(broken, lines(quiet(f"{entries} before that hold.")), notes=self.notes)

    @model_serializer(mode="wrap")
    def _omit_absent(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in whole(self).items() if value or isinstance(value, bool | int)}


class EntryView(View):
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


class WholeEntryView(EntryView):
    """An entry as it was read: hash and signature were checked."""

    payload: dict[str, Any]
    prev: str
    signature: str


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


@dataclass(eq=False)
class JournalAudit:
    """Reads: neither a repair nor a key is written here. A checkpoint is, where `verify` is to seal."""

    journal: ChainedJournal
    recompute: Callable[[], Awaitable[tuple[str, ...]]] | None = None
    """Computes again what entries say of other entries, with `--all`; what is wrong with it."""
    check_writable: Callable[[], Awaitable[None]] | None = None
    """`Refused` for a journal that this Zuno leaves alone."""

    async def verify(self, mode: VerifyMode = VerifyMode.CHAIN, *, seal: bool = False) -> JournalVerdictView:
        try:
            if seal and self.check_writable is not None:
                await self.check_writable()
        except ZunoError:  # whatever it is, the verdict says more of it
            seal = False
        verdict = await self.journal.verify(mode, seal=seal)
        fault = verdict.fault
        if fault is None and mode is VerifyMode.ALL and verdict.entries and self.recompute is not None:
            wrong = await self.recompute()
            fault = Fault(None, "; ".join(wrong)) if wrong else None
        unchecked = _describe_unchecked(verdict) if fault is None else ""
        return derive(JournalVerdictView, verdict, ok=fault is None, first_bad=fault, unchecked=unchecked)

    async def last_request(self, kinds: Collection[str]) -> str:
        """The request or run whose entry of one of these kinds is the newest."""
        latest = [entry for kind in kinds for entry in await self.journal.latest(1, kind=kind)]
        newest = max(latest, key=lambda entry: entry.seq, default=None)
        if newest is None or newest.request_id is None:
            raise NotFound("Nothing was decided here yet; `zuno lp recommend` and `zuno trade run` do.")
        return newest.request_id

    async def since(self, seq: int, count: int) -> list[Entry]:
        """At most `count` entries after a number, oldest first."""
        entries: list[Entry] = []
        async for entry in self.journal.entries(after=seq):
            entries.append(entry)
            if len(entries) == count:
                break
        return entries

    async def newest(self) -> Entry | None:
        return next(iter(await self.journal.latest(1)), None)

    async def find(self, seq: int) -> WholeEntryView:
        for entry in await self.since(seq - 1, 1) if seq > 0 else ():
            if entry.seq == seq:
                payload, key = dict(entry.payload), entry.author.key or ""
                return derive(WholeEntryView, entry, role=entry.author.role, key=key, payload=payload)
        raise NotFound(f"The journal has no entry {seq}.")

    async def page(
        self, count: int, before: int | None = None, *, kind: str | None = None, request_id: str | None = None
    ) -> JournalTailView:
        """The newest `count` entries, or those before an entry's number."""
        if not 1 <= count <= MAX_TAIL:
            raise UsageError(f"Between 1 and {MAX_TAIL} entries can be shown.")
        entries = await self.journal.latest(count, before=before, kind=kind, request_id=request_id)
        views = (derive(EntryView, each, role=each.author.role, key=each.author.key or "") for each in entries)
        return JournalTailView(entries=tuple(views))


def _describe_unchecked(verdict: Verdict) -> str:
    if verdict.mode is VerifyMode.QUICK and verdict.first > 1:
        return f"entries 1 to {verdict.first - 1:,} and the bundles they name; a checkpoint seals them"
    unsigned = verdict.entries - verdict.signatures
    return f"the signatures of {unsigned:,} entries that a checkpoint seals" if unsigned else ""
