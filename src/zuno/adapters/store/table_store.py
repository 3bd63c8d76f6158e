"""A journal in database tables with its head in a file: the same order of writes for each database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

from zuno.adapters.store.head_file import HeadFile, HeldLock
from zuno.journal.port import BuildLink, DamagedRow, EntryFilter, Row, Tail
from zuno.kernel.canonical import Digest
from zuno.kernel.errors import Broken, Refused

PAGE = 500
P = ParamSpec("P")
R = TypeVar("R")


class Tables(Protocol):
    """Plain calls on one connection, from one thread. Reading creates nothing; vendor errors are translated."""

    @property
    def name(self) -> str:
        """Which database it is that is read; empty where a home has but one."""
        ...

    def exists(self) -> bool: ...

    def last(self) -> Row | DamagedRow | None: ...

    def insert(self, row: Row) -> None:
        """Commit durably, or raise; `Broken` when the number is taken, `Refused` when this process lost a lease."""
        ...

    def page(
        self, after: int | None, upto: int | None, request_id: str | None, kind: str | None, limit: int, newest: bool
    ) -> list[Row | DamagedRow]: ...

    def put_bundle(self, name: str, content: bytes) -> None: ...

    def bundle(self, name: str) -> bytes | None: ...

    def bundle_names(self, after: str | None, limit: int) -> list[str]: ...

    def inspect(self) -> str | None: ...

    def close(self) -> None: ...


class TableStore:
    """The `JournalStore` over tables. One thread does all the work, so a cancelled caller never cuts a write in two."""

    def __init__(self, tables: Tables, head_file: HeadFile) -> None:
        self._tables = tables
        self._head_file = head_file
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="zuno-journal")

    async def initialise(self, head: bytes) -> None:
        await self._call(self._create_head, head)

    async def append(self, build: BuildLink, where: EntryFilter | None = None) -> Row | None:
        return await self._call(self._append, build, where)

    async def tail(self) -> Tail:
        return await self._call(self._tail)

    async def rows(
        self,
        *,
        after: int | None = None,
        upto: int | None = None,
        request_id: str | None = None,
        kind: str | None = None,
    ) -> AsyncIterator[Row | DamagedRow]:
        while True:
            page = await self._call(self._tables.page, after, upto, request_id, kind, PAGE, False)
            for row in page:
                yield row
            if len(page) < PAGE:
                return
            after = page[-1].seq

    async def newest(
        self, count: int, *, request_id: str | None = None, kind: str | None = None, before: int | None = None
    ) -> list[Row | DamagedRow]:
        upto = None if before is None else before - 1
        return await self._call(self._tables.page, None, upto, request_id, kind, count, True)

    async def put_bundle(self, name: Digest, content: bytes) -> None:
        await self._call(self._put_bundle, name, content)

    async def bundle(self, name: str) -> bytes | None:
        return await self._call(self._tables.bundle, name)

    async def bundle_names(self) -> AsyncIterator[str]:
        after: str | None = None
        while page := await self._call(self._tables.bundle_names, after, PAGE):
            for name in page:
                yield name
            after = page[-1]

    async def mark_broken(self, why: str | None) -> None:
        await self._call(self._mark_broken, why)

    async def inspect(self) -> str | None:
        return await self._call(self._tables.inspect)

    async def close(self) -> None:
        await self._call(self._tables.close)

    async def _call(self, work: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(work, *arguments, **named))

    def _create_head(self, head: bytes) -> None:
        with self._head_file.alone():
            if self._head_file.head() is None and not self._tables.exists():
                self._head_file.create(head)

    def _append(self, build: BuildLink, where: EntryFilter | None) -> Row | None:
        with self._head_file.alone() as held:
            tail = self._look(held)
            if where is not None:
                rows = self._tables.page(None, None, where.request_id, where.kind, 1, False)
                tail = replace(tail, first=next(iter(rows), None))
            link = build(tail)
            if link is None:
                return None
            if tail.head is None:
                raise Broken("A journal begins with its head.")
            if link.mended_head is not None:
                self._head_file.replace_head(link.mended_head)
            held.begin(link.note)
            try:
                self._tables.insert(link.row)
            except Refused:  # nothing was written
                held.finish()
                raise
            self._head_file.replace_head(link.head)
            held.finish()
            return link.row

    def _put_bundle(self, name: str, content: bytes) -> None:
        with self._head_file.alone():
            self._tables.put_bundle(name, content)

    def _tail(self) -> Tail:
        with self._head_file.looking() as held:
            return self._look(held)

    def _look(self, held: HeldLock) -> Tail:
        head = self._head_file
        last, broken = self._tables.last(), head.read_damage(self._tables.name)
        return Tail(last, head.head(), held.read_note(), self._tables.exists(), broken=broken)

    def _mark_broken(self, why: str | None) -> None:
        with self._head_file.alone():
            self._head_file.mark_broken(why, self._tables.name)
