"""A journal in memory, for tests, replays and labs."""

from bisect import bisect_right
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import islice

from zuno.journal.blocks import ArchiveMissing
from zuno.journal.port import BuildLink, DamagedRow, EntryFilter, Row, Tail
from zuno.kernel.canonical import Digest
from zuno.kernel.errors import Broken


class MemoryStore:
    """Nothing here awaits, so a write cannot be interleaved."""

    def __init__(self) -> None:
        self.kept: dict[int, Row | DamagedRow] = {}
        self.bundles: dict[str, bytes] = {}
        self.head: bytes | None = None
        self.begun: bytes | None = None
        self.broken: str | None = None

    async def initialise(self, head: bytes) -> None:
        if self.head is None and not self._exists():
            self.head = head

    async def append(self, build: BuildLink, where: EntryFilter | None = None) -> Row | None:
        rows = None if where is None else self.rows(request_id=where.request_id, kind=where.kind)
        first = None if rows is None else await anext(rows, None)
        link = build(replace(await self.tail(), first=first))
        if link is None:
            return None
        if self.head is None:
            raise Broken("A journal begins with its head.")
        self.head = link.mended_head or self.head
        self.begun = link.note
        if link.row.seq in self.kept:
            raise Broken(f"Entry {link.row.seq} is in the journal already.")
        self.kept[link.row.seq] = link.row
        self.head = link.head
        self.begun = None
        return link.row

    async def tail(self) -> Tail:
        last = self.kept[max(self.kept)] if self.kept else None
        return Tail(last, self.head, self.begun, self._exists(), broken=self.broken)

    async def mark_broken(self, why: str | None) -> None:
        self.broken = why

    async def rows(
        self,
        *,
        after: int | None = None,
        upto: int | None = None,
        request_id: str | None = None,
        kind: str | None = None,
    ) -> AsyncIterator[Row | DamagedRow]:
        for seq in self._numbers(after, upto):
            if _matches(self.kept[seq], request_id, kind):
                yield self.kept[seq]

    async def newest(
        self, count: int, *, request_id: str | None = None, kind: str | None = None, before: int | None = None
    ) -> list[Row | DamagedRow]:
        numbers = reversed(self._numbers(upto=None if before is None else before - 1))
        rows = (self.kept[seq] for seq in numbers if _matches(self.kept[seq], request_id, kind))
        return list(islice(rows, count))

    def _numbers(self, after: int | None = None, upto: int | None = None) -> list[int]:
        numbers = sorted(self.kept)
        first = 0 if after is None else bisect_right(numbers, after)
        return numbers[first : None if upto is None else bisect_right(numbers, upto)]

    async def put_bundle(self, name: Digest, content: bytes) -> None:
        self.bundles.setdefault(name, content)

    async def bundle(self, name: str) -> bytes | None:
        return self.bundles.get(name)

    async def read_bundles(self) -> AsyncIterator[tuple[str, bytes | ArchiveMissing | None]]:
        for name in sorted(self.bundles):
            yield name, self.bundles[name]

    async def inspect(self) -> str | None:
        return None

    async def close(self) -> None:
        return None

    def _exists(self) -> bool:
        return bool(self.kept or self.bundles)


def _matches(row: Row | DamagedRow, request_id: str | None, kind: str | None) -> bool:
    if isinstance(row, DamagedRow):
        return request_id is None and kind is None
    if request_id is not None and request_id.endswith("*"):
        request_id = row.request_id if (row.request_id or "").startswith(request_id[:-1]) else request_id
    return request_id in (None, row.request_id) and kind in (None, row.kind)
