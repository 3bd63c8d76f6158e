"""The desk's memory as the journal holds it: post-mortems, less what its owner forgot. Files and indexes follow it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from zuno.journal.port import Entry, Journal
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.wire import Wire
from zuno.trading.model.memory import (
    MEMORY_FORGOTTEN,
    POST_MORTEM,
    Channel,
    MemoryRecord,
    PostMortem,
    RecallQuery,
    RecallResult,
)
from zuno.trading.ports.recall import MemoryIndex

W = TypeVar("W", bound=Wire)
_PREFIX: Final = "pm_"
_LEAST_PART: Final = 10
"""Memories that an index is given at once: a tenth of what it lacks, but not fewer than these."""
TellProgress = Callable[[str, int, int], None]
"""Told which store took in how many memories of how many it lacked."""


def post_mortem_id(account: str, trade: str) -> str:
    """The same for whoever writes it: a trade has one."""
    return f"{_PREFIX}{digest(canonical([account, trade]))[:24]}"


def memory_record(post_mortem: PostMortem) -> MemoryRecord:
    return MemoryRecord(
        id=post_mortem.id,
        channel=Channel.SYSTEM_POST_MORTEM,
        origin=post_mortem.origin,
        symbol=post_mortem.symbol,
        at=post_mortem.closed,
        text=post_mortem.setup,
    )


class MemoryBook:
    """Reads on from where it has read."""

    def __init__(self, journal: Callable[[], Awaitable[Journal]]) -> None:
        self._journal = journal
        self._read_to = {POST_MORTEM: 0, MEMORY_FORGOTTEN: 0}
        self._written: dict[str, PostMortem] = {}
        self.forgotten: set[str] = set()

    async def read(self) -> dict[str, PostMortem]:
        """Every post-mortem that was not forgotten, by id, in the order they were written."""
        journal = await self._journal()
        async for entry in journal.entries(kind=POST_MORTEM, after=self._read_to[POST_MORTEM]):
            written = read_post_mortem(entry)
            self._written[written.id] = written
            self._read_to[POST_MORTEM] = entry.seq
        async for entry in journal.entries(kind=MEMORY_FORGOTTEN, after=self._read_to[MEMORY_FORGOTTEN]):
            self.forgotten.add(entry.request_id or "")
            self._read_to[MEMORY_FORGOTTEN] = entry.seq
        return {id: written for id, written in self._written.items() if id not in self.forgotten}

    async def find(self, id: str) -> PostMortem | None:
        """One post-mortem; None where there is none, or it was forgotten. The others are not read for it."""
        journal = await self._journal()
        entries = await journal.latest(1, request_id=id, kind=POST_MORTEM)
        if not entries or await journal.latest(1, request_id=id, kind=MEMORY_FORGOTTEN):
            return None
        return read_post_mortem(entries[0])

    async def newest(self, count: int) -> tuple[PostMortem, ...]:
        """Of the last that were written, those that were not forgotten, the last close first."""
        journal = await self._journal()
        forgotten = {entry.request_id async for entry in journal.entries(kind=MEMORY_FORGOTTEN)}
        written = [read_post_mortem(entry) for entry in await journal.latest(count, kind=POST_MORTEM)]
        kept = [each for each in written if each.id not in forgotten]
        return tuple(sorted(kept, key=lambda each: (-each.closed, each.id)))


async def update_index(book: MemoryBook, index: MemoryIndex, tell: TellProgress | None = None) -> None:
    """Bring an index in step with the journal, in parts: each stays, whatever ends the next one. What is damaged
    or of another embedding is made anew, from the first part: an embedder that does not answer costs no vectors."""
    try:
        await _add_missing(book, index, tell)
    except Broken:
        first = [memory_record(each) for each in [*(await book.read()).values()][:_LEAST_PART]]
        await index.rebuild(first, sorted(book.forgotten))
        await _add_missing(book, index, tell)


async def _add_missing(book: MemoryBook, index: MemoryIndex, tell: TellProgress | None) -> None:
    there, written = await index.ids(), await book.read()  # what is in an index was in the journal before
    if there - written.keys() - book.forgotten:
        raise Broken(f"{index.name} holds memories that are not in the journal.")
    missing = [memory_record(each) for id, each in written.items() if id not in there]
    part = max(_LEAST_PART, len(missing) // 10 + 1)
    for start in range(0, len(missing), part):
        await index.add(missing[start : start + part])
        if tell is not None:
            tell(index.name, min(start + part, len(missing)), len(missing))
    if missing:
        kept = await index.ids()
        await book.read()  # what was forgotten meanwhile, perhaps in another process, need not be there
        if written.keys() - kept - book.forgotten:
            raise Broken(f"{index.name} does not keep what it is given.")
    for id in sorted(there & book.forgotten):
        await index.remove(id)


class MemoryIndexes:
    """Indexes in step with the journal: they are compared with it when a process begins (another store may have been
    chosen) and when something new is in it. The last of them is asked, and `tell` hears of it."""

    def __init__(self, book: MemoryBook, indexes: Sequence[MemoryIndex], tell: TellProgress | None = None) -> None:
        self._book = book
        self._indexes = indexes
        self._tell = tell
        self._updated: tuple[int, int] | None = None
        """How much was written and forgotten when all of them were in step."""

    @property
    def name(self) -> str:
        return self._indexes[-1].name

    async def recall(self, query: RecallQuery) -> RecallResult:
        """What the index lacks, or who answers in its place, is in the note."""
        notes = await self.update()
        answer = await self._indexes[-1].recall(query)
        self._updated = None if answer.note else self._updated  # it may be damaged since
        return answer.model_copy(update={"note": answer.note or "; ".join(notes)})

    async def remove(self, id: str) -> None:
        await self._indexes[-1].remove(id)

    async def update(self) -> tuple[str, ...]:
        """Why one could not be: the journal holds it all, and the next time tries again."""
        written = await self._book.read()
        state = (len(written), len(self._book.forgotten))
        if state == self._updated:
            return ()
        notes = []
        for index in self._indexes:
            try:
                await update_index(self._book, index, self._tell if index is self._indexes[-1] else None)
            except (Unavailable, Broken) as error:
                notes.append(f"{index.name} lacks memories, of {len(written):,} in the journal: {error}")
        self._updated = None if notes else state
        return tuple(notes)


def read_post_mortem(entry: Entry) -> PostMortem:
    return parse_entry(entry, PostMortem, "post-mortem")


def parse_entry(entry: Entry, shape: type[W], what: str) -> W:
    """What an entry of the journal holds. `Broken` where it was not written from this shape."""
    try:
        return shape.model_validate_json(canonical(entry.payload), strict=True)
    except ValueError as error:
        raise Broken(f"Entry {entry.seq} of the journal is no {what}.") from error
