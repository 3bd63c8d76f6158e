"""The journal: a hash chain of signed entries, so that any change is detected."""

import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from zuno.journal import chain
from zuno.journal.blocks import MAX_BUNDLE, ArchiveMissing
from zuno.journal.port import Author, DamagedRow, Entry, EntryFilter, JournalStore, Link, Payload, Row, Tail
from zuno.kernel.canonical import Digest, Json, digest, to_json
from zuno.kernel.errors import Broken, NotFound, Refused, Unavailable
from zuno.kernel.signing import NodeKey
from zuno.kernel.units import Millis

RECOVERED = "journal_recovered"
"""The kind of the entry that says what a crash left behind."""

_SHORTEST_SECRET = 8  # a shorter one would be found in innocent text
_RECENT_BUNDLES = 256  # bundles known to be stored and whole
_RECENT_ENTRIES = 32  # looked at before the first entry of a process: some milliseconds
CHECKPOINT_EVERY: Final = 1_000
"""Entries behind the last checkpoint from which on a verified journal is sealed again."""


class VerifyMode(StrEnum):
    """How much of a journal is verified. Without a checkpoint each of them verifies everything."""

    CHAIN = "chain"
    """Every hash, link, column and bundle; the signatures of checkpoints and of what the last one does not seal. The
    signed head and each hash cover all before them: only the signature column of sealed entries goes unread."""
    ALL = "all"
    """Every signature and the form of every body as well: before a record is restored, compacted or moved."""
    QUICK = "quick"
    """From the entry that the last checkpoint seals: what is before it, and bundles that only it names, is not read."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `verify` found: how many entries hold up to the first that does not."""

    entries: int
    fault: chain.Fault | None
    notes: tuple[str, ...] = ()
    mode: VerifyMode = VerifyMode.ALL
    """What was done: `ALL` also where no checkpoint let less be enough."""
    first: int = 1
    signatures: int = 0
    """Of how many entries they were checked."""
    sealed: int | None = None
    """Up to where the newest checkpoint seals the journal."""

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
        self._secrets = _encode_secrets(secrets)
        self._bundles: deque[str] = deque(maxlen=_RECENT_BUNDLES)
        self._founded = False
        self._checked_recent = False
        self._vouched: tuple[bytes, chain.ChainState] | None = None

    async def start(self) -> tuple[str, ...]:
        """Repair what a crash left behind; record it in the journal and return it as notes.

        `Broken` when the newest entry is not the one this node signed last. An empty journal stays empty.
        """
        if _is_empty(await self._store.tail()):
            return ()
        notes: tuple[str, ...] = ()

        def repair(tail: Tail) -> Link | None:
            nonlocal notes
            state = self._check_tail(tail)
            notes = _describe_recovery(state)
            return self._seal_recovery(state) if notes else None

        await self._store.append(repair)
        return notes

    async def append(
        self,
        *,
        kind: str,
        author: Author,
        payload: Payload,
        request_id: str | None = None,
        bundle: Digest | None = None,
        only: EntryFilter | None = None,
    ) -> Entry:
        """`only`: return the first entry that matches, append only if there is none."""
        content = to_json(payload)
        if not isinstance(content, dict):
            raise TypeError(f"a payload is a model or a mapping, not {type(payload).__name__}")
        await self._ensure_founded()
        await self._check_recent()
        if bundle is not None and bundle not in self._bundles:
            await self.bundle(bundle)
        written: list[Entry] = []

        def build_link(tail: Tail) -> Link | None:
            state = self._check_tail(tail)
            if tail.broken is not None:
                raise Broken(f"The journal is broken ({tail.broken}) and takes no entries; run `zuno journal verify`.")
            if _describe_recovery(state):
                return self._seal_recovery(state)  # record the crash first, our own entry in the next pass
            if tail.first is not None:
                first = chain.verify_row(tail.first, self._key)
                if isinstance(first, chain.Fault):
                    raise _describe_damage(first)
                written.append(first)
                return None
            record, link = self._seal(state, kind, author, content, request_id, bundle)
            written.append(chain.build_entry(record, link.row))
            return link

        while not written:
            await self._store.append(build_link, only)
        return written[0]

    async def append_once(self, *, kind: str, author: Author, payload: Payload, request_id: str) -> Entry:
        only = EntryFilter(request_id, kind)
        return await self.append(kind=kind, author=author, payload=payload, request_id=request_id, only=only)

    async def put_bundle(self, content: bytes) -> Digest:
        if len(content) > MAX_BUNDLE:
            raise ValueError(f"a bundle of {len(content)} bytes")
        self._refuse_secrets(content)
        name = digest(content)
        if name not in self._bundles:
            await self._ensure_founded()
            await self._store.put_bundle(name, content)
            self._bundles.append(name)
        return name

    async def bundle(self, name: Digest) -> bytes:
        content = await self._store.bundle(name)
        if content is None:
            raise NotFound(f"The journal has no bundle {name[:12]}….")
        if digest(content) != name:
            raise Broken(f"The journal's bundle {name[:12]}… {_OTHER_BYTES}; run `zuno journal verify`.")
        self._bundles.append(name)
        return content

    async def entries(
        self, *, request_id: str | None = None, kind: str | None = None, after: int = 0
    ) -> AsyncIterator[Entry]:
        async for row in self._store.rows(after=after, request_id=request_id, kind=kind):
            yield await self._read_row(row)

    async def latest(
        self, count: int = 1, *, request_id: str | None = None, kind: str | None = None, before: int | None = None
    ) -> list[Entry]:
        rows = await self._store.newest(count, request_id=request_id, kind=kind, before=before)
        return [await self._read_row(row) for row in rows]

    async def verify_range(self, first: int, last: int | None) -> None:
        prev: Entry | None = None
        async for row in self._store.rows(after=first - 1, upto=last):
            prev = await self._read_next(row, prev)
        seq = first if prev is None else prev.seq + 1
        if last is None:
            state = chain.verify_tail(await self._store.tail(), self._key)
            if isinstance(state, chain.Fault):
                raise _describe_damage(state)
        elif seq != last + 1:
            raise Broken(f"The journal is damaged: entry {seq} is missing; run `zuno journal verify`.")

    async def _check_recent(self) -> None:
        """Once per process, before its first entry: the newest entries are verified."""
        if self._checked_recent:
            return
        prev: Entry | None = None
        for row in reversed(await self._store.newest(_RECENT_ENTRIES)):
            prev = await self._read_next(row, prev)
        self._checked_recent = True

    async def _mark_damage(self, fault: chain.Fault) -> Broken:
        """Record damage wherever it is met: from then on the journal takes no entries."""
        if self._key_fault() is None:
            with suppress(Broken, Unavailable):
                await self._store.mark_broken(_describe_fault(fault))
        return _describe_damage(fault)

    async def verify(self, mode: VerifyMode = VerifyMode.CHAIN, *, seal: bool = False) -> Verdict:
        """Verify the chain. Nothing is repaired; a journal that does not hold is marked, where that can be written, and
        takes no entries until it holds again. `seal`: write a checkpoint where there is none, or where the last one is
        `CHECKPOINT_EVERY` entries old; never after a quick look."""
        verdict, last = await self._verify(mode)
        fault = verdict.fault
        try:
            if fault is not None:
                if self._key_fault() is None:
                    await self._store.mark_broken(_describe_fault(fault))
            elif verdict.mode is not VerifyMode.QUICK and (await self._store.tail()).broken is not None:
                await self._store.mark_broken(None)
        except (Broken, Unavailable):
            pass  # what is wrong is told all the same
        if not seal or not verdict.ok or verdict.notes or verdict.mode is VerifyMode.QUICK or not verdict.entries:
            return verdict
        return await self._write_checkpoint(verdict, last)

    async def _write_checkpoint(self, verdict: Verdict, last: str) -> Verdict:
        if verdict.sealed is not None and verdict.entries - verdict.sealed < CHECKPOINT_EVERY:
            return verdict
        sealed = chain.CheckpointRecord(upto=verdict.entries, hash=last, signatures=verdict.signatures)
        try:
            await self.append(kind=chain.CHECKPOINT, author=Author("journal"), payload=sealed)
        except (Broken, Refused, Unavailable) as error:
            return replace(verdict, notes=(f"No checkpoint was written: {error}",))
        return replace(verdict, sealed=sealed.upto)

    async def _verify(self, mode: VerifyMode) -> tuple[Verdict, str]:
        """The verdict and the hash of the last entry that holds."""
        checked: set[str] = set()
        count, prev, signatures, verdict = 0, chain.FIRST_PREV, 0, Verdict(0, None, mode=mode)
        try:
            tail = await self._store.tail()
            fault = None if _is_empty(tail) else self._key_fault()
            if _is_empty(tail) or fault is not None:
                return replace(verdict, fault=fault), prev
            seals = await self._list_checkpoints()
            sealed = max(seals, default=None)
            verdict = replace(verdict, sealed=sealed, mode=VerifyMode.ALL if sealed is None else mode)
            if sealed is not None and mode is VerifyMode.QUICK:
                if tail.broken is not None:  # somebody looked where this look has no eyes
                    return replace(verdict, fault=chain.Fault(None, tail.broken)), prev
                verdict, count, prev = replace(verdict, first=sealed), sealed - 1, ""
            signed_from = 1 if sealed is None or mode is VerifyMode.ALL else sealed + 1
            public = self._key.public
            async for row in self._store.rows(after=count or None, upto=0 if tail.last is None else tail.last.seq):
                signed = count + 1 >= signed_from or not prev
                frame = self._verify_place(row, count + 1, prev, public, signed=signed)
                fault = frame if isinstance(frame, chain.Fault) else None
                if isinstance(frame, chain.Frame) and frame.bundle is not None and frame.bundle not in checked:
                    fault = await self._bundle_fault(frame.seq, frame.bundle, checked)
                if isinstance(row, Row) and seals.get(count + 1, row.hash) != row.hash:
                    fault = fault or chain.Fault(row.seq, "it is not the entry that a checkpoint seals")
                if fault is not None or not isinstance(row, Row):
                    return replace(verdict, entries=count, fault=fault, signatures=signatures), prev
                count, prev, signatures = count + 1, row.hash, signatures + (signed or row.kind == chain.CHECKPOINT)
            verdict = replace(verdict, entries=count, signatures=signatures)
            state = chain.verify_tail(tail, self._key)
            if isinstance(state, chain.Fault):
                return replace(verdict, fault=state), prev
            fault, notes = (None, ()) if verdict.mode is VerifyMode.QUICK else await self._store_fault(checked)
        except Broken as error:
            fault = chain.Fault(count + 1, str(error).rstrip("."))
            return replace(verdict, entries=count, fault=fault, signatures=signatures), prev
        return replace(verdict, fault=fault, notes=(*_describe_recovery(state), *notes) if fault is None else ()), prev

    def _verify_place(
        self, row: Row | DamagedRow, seq: int, prev: str, public: str, *, signed: bool
    ) -> chain.Frame | chain.Fault:
        """A row in its place; `signed`: with its signature, as a checkpoint's always is."""
        frame = chain.verify_link(row, seq, prev, public)
        if isinstance(frame, chain.Fault) or not isinstance(row, Row):
            return frame
        if row.kind == chain.CHECKPOINT:
            entry = chain.verify_row(row, self._key)
            sealed = entry if isinstance(entry, chain.Fault) else chain.read_checkpoint(entry)
            return sealed if isinstance(sealed, chain.Fault) else frame
        return (chain.verify_signature(row, self._key) if signed else None) or frame

    async def _list_checkpoints(self) -> dict[int, str]:
        """The hash of each entry that a checkpoint seals. One that does not hold counts for nothing: the walk along the
        chain comes upon it."""
        seals: dict[int, str] = {}
        with suppress(Broken):
            async for row in self._store.rows(kind=chain.CHECKPOINT):
                entry = chain.verify_row(row, self._key)
                sealed = entry if isinstance(entry, chain.Fault) else chain.read_checkpoint(entry)
                if not isinstance(sealed, chain.Fault):
                    seals[sealed.upto] = sealed.hash
        return seals

    async def close(self) -> None:
        await self._store.close()

    def _key_fault(self) -> chain.Fault | None:
        """Without the node's key no entry can be verified; that is not the first entry's fault."""
        try:
            _ = self._key.public
        except Broken as error:
            return chain.Fault(None, str(error).rstrip("."))
        return None

    async def _ensure_founded(self) -> None:
        """Before the first entry, create the key and a head that says: no entries."""
        if not self._founded:
            if _is_empty(await self._store.tail()):
                self._key.ensure()
                await self._store.initialise(chain.first_head(self._key))
            self._founded = True

    def _check_tail(self, tail: Tail) -> chain.ChainState:
        if self._vouched is not None and tail.begun is None and tail.head == self._vouched[0]:
            state = self._vouched[1]  # the head we signed ourselves, and it is on disk: no need to check it again
            if isinstance(tail.last, Row) and (tail.last.seq, tail.last.hash) == (state.seq, state.hash):
                return state
        checked = chain.verify_tail(tail, self._key)
        if isinstance(checked, chain.Fault):
            raise Broken(f"The journal cannot be written: {_describe_fault(checked)}; run `zuno journal verify`.")
        return checked

    def _seal_recovery(self, state: chain.ChainState) -> Link:
        payload: dict[str, Json] = {"headRepairedAt": state.seq if state.repaired else None, "lost": None}
        if state.lost is not None:
            payload["lost"] = to_json(state.lost)
        _, link = self._seal(state, RECOVERED, Author("journal"), payload)
        return replace(link, mended_head=chain.sign_head(state.seq, state.hash, self._key)) if state.repaired else link

    def _seal(
        self,
        state: chain.ChainState,
        kind: str,
        author: Author,
        payload: dict[str, Json],
        request_id: str | None = None,
        bundle: Digest | None = None,
    ) -> tuple[chain.EntryRecord, Link]:
        record = chain.EntryRecord(
            seq=state.seq + 1,
            at=self._now(),
            request_id=request_id,
            kind=kind,
            author=chain.RecordAuthor(role=author.role, key=author.key or self._key.public),
            code=self._code(),
            node=self._key.public,
            payload=payload,
            bundle=bundle,
            prev=state.hash,
        )
        link = chain.seal_record(record, self._key)
        self._refuse_secrets(link.row.body)
        self._vouched = link.head, chain.ChainState(record.seq, Digest(link.row.hash))
        return record, link

    def _refuse_secrets(self, data: bytes) -> None:
        if any(secret in data for secret in self._secrets):
            raise Refused("A configured secret was about to be written to the journal; nothing was written.")

    async def _read_row(self, row: Row | DamagedRow) -> Entry:
        return await self._read_next(row, None)

    async def _read_next(self, row: Row | DamagedRow, after: Entry | None) -> Entry:
        key = self._key
        entry = (
            chain.verify_row(row, key) if after is None else chain.verify_next_row(row, after.seq + 1, after.hash, key)
        )
        if isinstance(entry, chain.Fault):
            raise await self._mark_damage(entry)
        return entry

    async def _bundle_fault(self, seq: int, name: str, checked: set[str]) -> chain.Fault | None:
        try:
            content = await self._store.bundle(name)
        except ArchiveMissing:  # noted when all bundles are read
            return None
        if content is None:
            return chain.Fault(seq, f"its bundle {name[:12]}… is missing")
        if digest(content) != name:
            return chain.Fault(seq, f"its bundle {name[:12]}… {_OTHER_BYTES}")
        checked.add(name)
        return None

    async def _store_fault(self, checked: Collection[str]) -> tuple[chain.Fault | None, tuple[str, ...]]:
        """Check every bundle, whether or not an entry names it in its field, and the store's files; also: notes on
        archive files that are missing."""
        missing: Counter[str] = Counter()
        try:
            async for name, content in self._store.read_bundles():
                if name in checked:
                    continue
                if isinstance(content, ArchiveMissing):
                    missing[content.file] += 1
                elif content is None or digest(content) != name:
                    anew = await self._store.bundle(name)  # a compaction may have given the numbers of blocks anew
                    if anew is None or digest(anew) != name:
                        return await self._name_fault(name), ()
        except Broken as error:
            return chain.Fault(None, str(error).rstrip(".")), ()
        damage = await self._store.inspect()
        notes = tuple(
            f"archive/{file} is missing: {count} of its bundles were not verified." for file, count in missing.items()
        )
        return None if damage is None else chain.Fault(None, damage), notes

    async def _name_fault(self, name: str) -> chain.Fault:
        """The fault of the first entry that speaks of a damaged bundle."""
        async for row in self._store.rows():
            if isinstance(row, Row) and name.encode() in row.body:
                return chain.Fault(row.seq, f"its bundle {name[:12]}… {_OTHER_BYTES}")
        return chain.Fault(None, f"the bundle {name[:12]}…, which no entry names, {_OTHER_BYTES}")


_OTHER_BYTES = "holds other bytes than its name says"


def _is_empty(tail: Tail) -> bool:
    return tail.head is None and not tail.exists


def _describe_recovery(state: chain.ChainState) -> tuple[str, ...]:
    notes = []
    if state.repaired:
        notes.append(f"A process died after entry {state.seq} was written and before its head was: nothing is lost.")
    if (lost := state.lost) is not None:
        entry = f"entry {lost.seq} ({lost.kind}{f' of {lost.request_id}' if lost.request_id else ''})"
        notes.append(f"A process died while {entry} was being written: that entry is lost.")
    return tuple(notes)


def _describe_damage(fault: chain.Fault) -> Broken:
    return Broken(f"The journal is damaged: {_describe_fault(fault)}; run `zuno journal verify`.")


def _describe_fault(fault: chain.Fault) -> str:
    return fault.reason if fault.seq is None else f"entry {fault.seq}: {fault.reason}"


def _encode_secrets(secrets: Collection[str]) -> tuple[bytes, ...]:
    """Each secret, raw and JSON-escaped."""
    long_enough = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
    escaped = {json.dumps(secret, ensure_ascii=False)[1:-1] for secret in long_enough}
    return tuple(sorted(secret.encode() for secret in long_enough | escaped))
