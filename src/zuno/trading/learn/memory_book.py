"""The desk's memory as the journal holds it: post-mortems, less what its owner forgot. Files and indexes follow it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from zuno.journal.port import Entry, Journal
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.wire import Wire
from zuno.trading.model.memory import MEMORY_FORGOTTEN, POST_MORTEM, Channel, MemoryRecord, PostMortem
from zuno.trading.ports.recall import MemoryIndex

W = TypeVar("W", bound=Wire)
_PREFIX: Final = "pm_"


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


async def update_index(book: MemoryBook, index: MemoryIndex) -> int:
    """Bring an index in step with the journal; how many records it lacked. News in it stay, unless it is damaged
    and made anew."""
    known = await book.read()
    records = {id: memory_record(each) for id, each in known.items()}
    try:
        there = await index.ids()
        missing = [record for id, record in records.items() if id not in there]
        if missing:
            await index.add(missing)
    except Broken:
        await index.rebuild([*records.values()], sorted(book.forgotten))
        return len(records)
    for id in sorted(id for id in there if id.startswith(_PREFIX) and id not in records):
        await index.remove(id)
    return len(missing)


async def update_indexes(book: MemoryBook, indexes: Sequence[MemoryIndex]) -> tuple[str, ...]:
    """All of them; why one could not be."""
    notes = []
    for index in indexes:
        try:
            await update_index(book, index)
        except (Unavailable, Broken) as error:  # the journal holds it all: the next evaluation tries again
            notes.append(f"{index.name} was not updated: {error}")
    return tuple(notes)


def read_post_mortem(entry: Entry) -> PostMortem:
    return parse_entry(entry, PostMortem, "post-mortem")


def parse_entry(entry: Entry, shape: type[W], what: str) -> W:
    """What an entry of the journal holds. `Broken` where it was not written from this shape."""
    try:
        return shape.model_validate_json(canonical(entry.payload), strict=True)
    except ValueError as error:
        raise Broken(f"Entry {entry.seq} of the journal is no {what}.") from error
