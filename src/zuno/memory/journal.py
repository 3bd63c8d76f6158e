"""The journal: every entry follows the one before by hash and is signed, so that a change is found later."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from zuno.domain.errors import Broken, Refused, Unknown
from zuno.domain.units import Millis
from zuno.memory.chain import Fault, Standing, entry_of, first_head, follows, forged, opened, standing
from zuno.messages.codec import Digest, Json, digest, plain
from zuno.messages.record import FIRST_PREV, EntryRecord, RecordAuthor, WriteNote
from zuno.ports.journal import About, Author, Damaged, Entry, JournalStore, Link, Row, Tail
from zuno.ports.signing import NodeKey

RECOVERED = "journal_recovered"
"""The kind of the entry that says what a crash left behind."""

MAX_BUNDLE = 64 * 1024 * 1024
_SHORTEST_SECRET = 8  # a shorter one would be found in innocent text
_REMEMBERED = 4_096  # bundles known to be stored and whole


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `verify` found: how many entries hold from the first on, and the first that does not."""

    entries: int
    fault: Fault | None
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.fault is None


class ChainedJournal:
    """The `Journal` over any store. `secrets` are values that must never be written, whoever tries."""

    def __init__(
        self,
        store: JournalStore,
        key: NodeKey,
        *,
        code: Callable[[], str],
        now: Callable[[], Millis],
        secrets: Collection[str] = (),
    ) -> None:
        self._store = store
        self._key = key
        self._code = code
        self._now = now
        self._secrets = _spellings(secrets)
        self._bundles = _Remembered(_REMEMBERED)
        self._founded = False
        self._vouched: tuple[bytes, Standing] | None = None

    async def start(self) -> tuple[str, ...]:
        """Mend what a crash left behind and say it, in the journal and in the sentences returned.

        `Broken` when the newest entry is not the one this node vouched for. A journal nobody began stays so.
        """
        if _untouched(await self._store.tail()):
            return ()
        said: tuple[str, ...] = ()

        def mend(tail: Tail) -> Link | None:
            nonlocal said
            stands = self._stands(tail)
            said = _aftermath(stands)
            return self._recovery(stands) if said else None

        await self._store.append(mend)
        return said

    async def append(
        self,
        *,
        kind: str,
        author: Author,
        payload: BaseModel | Mapping[str, object],
        request_id: str | None = None,
        bundle: Digest | None = None,
    ) -> Entry:
        return await self._written(kind, author, payload, request_id, bundle, None)

    async def append_once(
        self, *, kind: str, author: Author, payload: BaseModel | Mapping[str, object], request_id: str
    ) -> Entry:
        return await self._written(kind, author, payload, request_id, None, About(request_id, kind))

    async def _written(
        self,
        kind: str,
        author: Author,
        payload: BaseModel | Mapping[str, object],
        request_id: str | None,
        bundle: Digest | None,
        only: About | None,
    ) -> Entry:
        """The entry; `only`: the first of these, ours where there is none."""
        content = plain(payload)
        if not isinstance(content, dict):
            raise TypeError(f"a payload is a model or a mapping, not {type(payload).__name__}")
        await self._found()
        if bundle is not None and bundle not in self._bundles:
            await self.bundle(bundle)
        written: list[Entry] = []

        def forge(tail: Tail) -> Link | None:
            stands = self._stands(tail)
            if _aftermath(stands):
                return self._recovery(stands)  # first what the crash left behind, then our own on the next turn
            if tail.first is not None:
                written.append(self._open(tail.first))
                return None
            record = self._record(stands, kind, author, content, request_id, bundle)
            link = self._forged(record)
            written.append(entry_of(record, link.row))
            return link

        while not written:
            await self._store.append(forge, only)
        return written[0]

    async def put_bundle(self, content: bytes) -> Digest:
        if len(content) > MAX_BUNDLE:
            raise ValueError(f"a bundle of {len(content)} bytes")
        self._keep_secrets(content)
        name = digest(content)
        if name not in self._bundles:
            await self._found()
            await self._store.put_bundle(name, content)
            self._bundles.add(name)
        return name

    async def bundle(self, name: Digest) -> bytes:
        content = await self._store.bundle(name)
        if content is None:
            raise Unknown(f"The journal has no bundle {name[:12]}….")
        if digest(content) != name:
            raise Broken(f"The journal's bundle {name[:12]}… {_OTHER_BYTES}; run `zuno journal verify`.")
        self._bundles.add(name)
        return content

    async def entries(
        self, *, request_id: str | None = None, kind: str | None = None, after: int = 0
    ) -> AsyncIterator[Entry]:
        async for row in self._store.rows(after=after, request_id=request_id, kind=kind):
            yield self._open(row)

    async def latest(self, count: int = 1, *, request_id: str | None = None, kind: str | None = None) -> list[Entry]:
        rows = await self._store.newest(count, request_id=request_id, kind=kind)
        return [self._open(row) for row in rows]

    async def vouch(self, first: int, last: int | None) -> None:
        seq, prev = first, None
        async for row in self._store.rows(after=first - 1, upto=last):
            entry = opened(row, self._key) if prev is None else follows(row, seq, prev, self._key)
            if isinstance(entry, Fault):
                raise Broken(f"The journal is damaged: {_sentence(entry)}; run `zuno journal verify`.")
            seq, prev = entry.seq + 1, entry.hash
        if last is None:
            stands = standing(await self._store.tail(), self._key)
            if isinstance(stands, Fault):
                raise Broken(f"The journal is damaged: {_sentence(stands)}; run `zuno journal verify`.")
        elif seq != last + 1:
            raise Broken(f"The journal is damaged: entry {seq} is missing; run `zuno journal verify`.")

    async def verify(self) -> Verdict:
        """Walk the whole chain as it stood when asked; nothing is written, not even a repair."""
        count = 0
        whole = _Remembered(_REMEMBERED)
        try:
            tail = await self._store.tail()
            if _untouched(tail):
                return Verdict(0, None)
            if fault := self._key_fault():
                return Verdict(0, fault)
            prev = FIRST_PREV
            async for row in self._store.rows(upto=0 if tail.last is None else tail.last.seq):
                entry = follows(row, count + 1, prev, self._key)
                fault = entry if isinstance(entry, Fault) else await self._bundle_fault(entry, whole)
                if fault is not None or isinstance(entry, Fault):
                    return Verdict(count, fault)
                count, prev = count + 1, entry.hash
            stands = standing(tail, self._key)
            if isinstance(stands, Fault):
                return Verdict(count, stands)
            fault = await self._store_fault()
        except Broken as error:
            return Verdict(count, Fault(count + 1, str(error).rstrip(".")))
        return Verdict(count, fault, _aftermath(stands) if fault is None else ())

    async def close(self) -> None:
        await self._store.close()

    def _key_fault(self) -> Fault | None:
        """Without the node's key no entry can be told from a forged one: that is no fault of the first."""
        try:
            _ = self._key.public
        except Broken as error:
            return Fault(None, str(error).rstrip("."))
        return None

    async def _found(self) -> None:
        """Before the first entry there is a key and a head that says: no entries yet."""
        if not self._founded:
            if _untouched(await self._store.tail()):
                self._key.ensure()
                await self._store.found(first_head(self._key))
            self._founded = True

    def _stands(self, tail: Tail) -> Standing:
        if self._vouched is not None and tail.begun is None and tail.head == self._vouched[0]:
            stands = self._vouched[1]  # the head we signed ourselves, and it is on disk: no need to check it again
            if isinstance(tail.last, Row) and (tail.last.seq, tail.last.hash) == (stands.seq, stands.hash):
                return stands
        found = standing(tail, self._key)
        if isinstance(found, Fault):
            raise Broken(f"The journal cannot be written: {_sentence(found)}; run `zuno journal verify`.")
        return found

    def _recovery(self, stands: Standing) -> Link:
        payload: dict[str, Json] = {"headRepairedAt": stands.seq if stands.repaired else None, "lost": None}
        if stands.lost is not None:
            payload["lost"] = plain(stands.lost)
        return self._forged(self._record(stands, RECOVERED, Author("journal"), payload, None, None))

    def _record(
        self,
        stands: Standing,
        kind: str,
        author: Author,
        payload: dict[str, Json],
        request_id: str | None,
        bundle: Digest | None,
    ) -> EntryRecord:
        return EntryRecord(
            seq=stands.seq + 1,
            at=self._now(),
            request_id=request_id,
            kind=kind,
            author=RecordAuthor(role=author.role, key=author.key or self._key.public),
            code=self._code(),
            node=self._key.public,
            payload=payload,
            bundle=bundle,
            prev=stands.hash,
        )

    def _forged(self, record: EntryRecord) -> Link:
        link = forged(record, self._key)
        self._keep_secrets(link.row.body)
        self._vouched = link.head, Standing(record.seq, Digest(link.row.hash))
        return link

    def _keep_secrets(self, data: bytes) -> None:
        if any(secret in data for secret in self._secrets):
            raise Refused("A configured secret was about to be written to the journal; nothing was written.")

    def _open(self, row: Row | Damaged) -> Entry:
        entry = opened(row, self._key)
        if isinstance(entry, Fault):
            raise Broken(f"The journal is damaged: {_sentence(entry)}; run `zuno journal verify`.")
        return entry

    async def _bundle_fault(self, entry: Entry, whole: _Remembered) -> Fault | None:
        if entry.bundle is None or entry.bundle in whole:
            return None
        content = await self._store.bundle(entry.bundle)
        if content is None:
            return Fault(entry.seq, f"its bundle {entry.bundle[:12]}… is missing")
        if digest(content) != entry.bundle:
            return Fault(entry.seq, f"its bundle {entry.bundle[:12]}… {_OTHER_BYTES}")
        whole.add(entry.bundle)
        return None

    async def _store_fault(self) -> Fault | None:
        """What no entry refers to: bundles on their own, and the files themselves."""
        async for name in self._store.bundle_names():
            content = await self._store.bundle(name)
            if content is None or digest(content) != name:
                return Fault(None, f"the bundle {name[:12]}…, which no entry names, {_OTHER_BYTES}")
        found = await self._store.inspect()
        return None if found is None else Fault(None, found)


_OTHER_BYTES = "holds other bytes than its name says"


class _Remembered:
    """The names seen last, a bounded number of them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._names: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        self._names[name] = None
        self._names.move_to_end(name)
        if len(self._names) > self._size:
            self._names.popitem(last=False)


def _untouched(tail: Tail) -> bool:
    return tail.head is None and not tail.exists


def _aftermath(stands: Standing) -> tuple[str, ...]:
    said = []
    if stands.repaired:
        said.append(f"A process died after entry {stands.seq} was written and before its head was: nothing is lost.")
    if stands.lost is not None:
        said.append(f"A process died while {_named(stands.lost)} was being written: that entry is lost.")
    return tuple(said)


def _named(note: WriteNote) -> str:
    return f"entry {note.seq} ({note.kind}" + (f" of {note.request_id})" if note.request_id else ")")


def _sentence(fault: Fault) -> str:
    return fault.reason if fault.seq is None else f"entry {fault.seq}: {fault.reason}"


def _spellings(secrets: Collection[str]) -> tuple[bytes, ...]:
    """Each secret as it is and as it looks inside JSON."""
    long_enough = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
    escaped = {json.dumps(secret, ensure_ascii=False)[1:-1] for secret in long_enough}
    return tuple(sorted(one.encode() for one in long_enough | escaped))
