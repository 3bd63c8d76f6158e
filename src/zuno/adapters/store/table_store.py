"""A journal in database tables with its head in a file: the same order of writes for each database."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from errno import EACCES, EPERM, EROFS
from functools import partial
from pathlib import Path
from typing import Final, ParamSpec, Protocol, TypeAlias, TypeVar

from zuno.adapters.atomic_file import flush_to_disk, read_file, replace_file, translate_write_errors
from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.journal.blocks import ArchiveMissing, Recipe, build_recipe, decode_stored, join, point_to_archive
from zuno.journal.port import BuildLink, DamagedRow, EntryFilter, Row, Tail
from zuno.kernel.canonical import Digest, digest
from zuno.kernel.errors import Broken, Refused, Unavailable

PAGE = 500
P = ParamSpec("P")
R = TypeVar("R")
_KNOWN_BLOCKS: Final = 16_384
_Known: TypeAlias = defaultdict[str, dict[int, bytes]]
"""Blocks read in one pass, by archive file; the journal's own under no name."""


class Tables(Protocol):
    """Plain calls on one connection, from one thread. Reading creates nothing; vendor errors are translated."""

    @property
    def name(self) -> str:
        """Which database it is that is read; empty where a home has but one."""

    def exists(self) -> bool: ...
    def insert(self, *rows: Row) -> None:
        """Commit durably, all or none; `Broken` when a number is taken, `Refused` when this process lost a lease."""

    def page(
        self, after: int | None, upto: int | None, request_id: str | None, kind: str | None, limit: int, newest: bool
    ) -> list[Row | DamagedRow]: ...
    def transaction(self) -> AbstractContextManager[None]:
        """What `store` and `put_blocks` do in it is durable at its end, or not done."""

    def store(self, stored: Mapping[str, bytes]) -> None:
        """What stands for bundles, by their names; in place of what is there."""

    def find_stored(self, name: str) -> bytes | None: ...
    def put_blocks(self, pieces: Mapping[bytes, bytes]) -> Mapping[bytes, int]:
        """The numbers of blocks by their hashes; those that are new are stored."""

    def blocks(self, ids: Collection[int]) -> dict[int, bytes]:
        """Without those that are missing or damaged."""

    def shrink(self, used: Collection[int]) -> None:
        """Remove all other blocks, and give the room back to the disk."""

    def bundle_names(self, after: str | None, limit: int) -> list[str]: ...
    def inspect(self) -> str | None: ...
    def close(self) -> None: ...


class Archive:
    """Old bundles in database files of their own, which are only added to."""

    def __init__(self, folder: Path, open_file: Callable[[Path], Tables]) -> None:
        self._folder = folder
        self._open_file = open_file

    def exists(self, file: str) -> bool:
        return (self._folder / file).exists()

    def put(self, file: str, bundles: Mapping[str, bytes]) -> None:
        """On disk when this returns."""
        with translate_write_errors(self._folder / file):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(self._open_file(self._folder / file)) as tables, tables.transaction():
                tables.store({name: build_recipe(content, tables.put_blocks) for name, content in bundles.items()})
            for path in (self._folder / file, self._folder, self._folder.parent):
                flush_to_disk(path)

    def read(self, file: str, name: str, known: dict[int, bytes]) -> bytes:
        """`ArchiveMissing` without the file, `Broken` where it does not hold the bundle."""
        if not self.exists(file):
            raise ArchiveMissing(file)
        with closing(self._open_file(self._folder / file)) as tables:
            content = read_stored(tables, name, tables.find_stored(name) or b"", known)
        if not isinstance(content, bytes) or digest(content) != name:
            raise Broken(f"archive/{file} is damaged: the bundle {name[:12]}… is not whole there.")
        return content


class TableStore:
    """The `JournalStore` over tables. One thread does all the work, so a cancelled caller never cuts a write in two."""

    def __init__(self, tables: Tables, head_file: HeadFile, archive: Archive) -> None:
        self._tables = tables
        self._head_file = head_file
        self._archive = archive
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
        return await self._call(self._read_bundle, name, defaultdict(dict))

    async def read_bundles(self) -> AsyncIterator[tuple[str, bytes | ArchiveMissing | None]]:
        known: _Known = defaultdict(dict)
        async for name in self.bundle_names():
            try:
                yield name, await self._call(self._read_bundle, name, known)
            except ArchiveMissing as missing:
                yield name, missing

    async def convert_bundles(self, names: Sequence[str]) -> int:
        return await self._call(self._convert_bundles, names)

    async def archive_bundles(self, file: str, names: Sequence[str]) -> int:
        return await self._call(self._archive_bundles, file, names)

    async def shrink(self) -> None:
        await self._call(self._shrink)

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
            if self._tables.find_stored(name) is None:
                self._put_recipes({name: content})

    def _put_recipes(self, bundles: Mapping[str, bytes]) -> None:
        with self._tables.transaction():
            put_blocks = self._tables.put_blocks
            self._tables.store({name: build_recipe(content, put_blocks) for name, content in bundles.items()})

    def _read_bundle(self, name: str, known: _Known) -> bytes | None:
        for _ in range(2):  # between two looks a compaction may have moved it
            if (stored := self._tables.find_stored(name)) is None:
                return None
            content = read_stored(self._tables, name, stored, known[""])
            if isinstance(content, str):
                return self._archive.read(content, name, known[content])
            if content is not None:
                return content
        return stored  # damaged: for the judge to see

    def _convert_bundles(self, names: Sequence[str]) -> int:
        with self._head_file.alone():
            # What is in blocks already, archived or damaged has other bytes than its name says.
            stored = {name: self._tables.find_stored(name) for name in names}
            whole = {name: content for name, content in stored.items() if content and digest(content) == name}
            self._put_recipes(whole)
            return len(whole)

    def _archive_bundles(self, file: str, names: Sequence[str]) -> int:
        """The bytes are on disk in the archive, and were read back from there, before the journal points to it."""
        known: _Known = defaultdict(dict)
        here = [
            name for name in names if not isinstance(decode_stored(name, self._tables.find_stored(name) or b""), str)
        ]
        contents = {name: self._read_bundle(name, known) for name in here}
        bundles = {name: content for name, content in contents.items() if content and digest(content) == name}
        if bundles:
            if not self._archive.exists(file) and file in self._decode_all():
                raise ArchiveMissing(file)  # a second file of that name would hide the first one's bundles
            self._archive.put(file, bundles)
            for name in bundles:
                self._archive.read(file, name, known[file])
            with self._head_file.alone(), self._tables.transaction():
                self._tables.store(dict.fromkeys(bundles, point_to_archive(file)))
        return len(bundles)

    def _shrink(self) -> None:
        """Alone: a bundle that is being written may use any block. Of a journal that has not begun nothing is made:
        without a head it would be a broken one."""
        with self._head_file.alone():
            if self._tables.exists():
                self._tables.shrink(
                    {part for recipe in self._decode_all() for part in recipe or () if isinstance(part, int)}
                )

    def _decode_all(self) -> Iterator[Recipe | str | None]:
        after: str | None = None
        while page := self._tables.bundle_names(after, PAGE):
            yield from (decode_stored(name, self._tables.find_stored(name) or b"") for name in page)
            after = page[-1]

    def _tail(self) -> Tail:
        with self._head_file.lock_to_look() as held:
            return self._look(held)

    def _look(self, held: JournalLock) -> Tail:
        head = self._head_file
        last, broken = read_last(self._tables), head.read_damage(self._tables.name)
        return Tail(last, head.head(), held.read_note(), self._tables.exists(), broken=broken)

    def _mark_broken(self, why: str | None) -> None:
        with self._head_file.alone():
            self._head_file.mark_broken(why, self._tables.name)


def read_last(tables: Tables) -> Row | DamagedRow | None:
    return next(iter(tables.page(None, None, None, None, 1, True)), None)


def read_stored(tables: Tables, name: str, stored: bytes, known: dict[int, bytes]) -> bytes | str | None:
    """The bundle's bytes, or the archive file they went to; None where a block is missing. `known`: blocks read before,
    which are kept for the next bundle while they are few."""
    recipe = decode_stored(name, stored)
    if not isinstance(recipe, list):
        return stored if recipe is None else recipe
    if len(known) > _KNOWN_BLOCKS:
        known.clear()
    known |= tables.blocks({part for part in recipe if isinstance(part, int)} - known.keys())
    return join(recipe, known)


_SECTOR = 512
_FORBIDDEN = {EACCES, EPERM, EROFS}
_flush = getattr(os, "fdatasync", os.fsync)


class HeadFile:
    """`NAME.head` and `NAME.lock` in a home. The lock file's content is the note of the write under way; `NAME.broken`
    holds what a check of the whole journal found, `NAME.DIGEST.broken` that of one of several databases."""

    def __init__(self, home: Path, name: str, patience: float = WAIT_SECONDS) -> None:
        self._head = home / f"{name}.head"
        self._lock = home / f"{name}.lock"
        self._broken = home / f"{name}.broken"
        self._patience = patience

    @contextmanager
    def alone(self) -> Iterator[JournalLock]:
        """Hold the journal; other processes and stores wait."""
        lock = JournalLock(self._lock, timeout=self._patience, signed=False, parents=False)
        with lock:
            yield lock

    @contextmanager
    def lock_to_look(self) -> Iterator[JournalLock]:
        """As `alone`, for readers: in a home that cannot be written no lock is made."""
        lock = JournalLock(self._lock, timeout=self._patience, signed=False, parents=False)
        try:
            lock.take()
        except Unavailable as error:
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _FORBIDDEN:
                raise
            lock = JournalLock(self._lock, timeout=self._patience, signed=False, shared=True)
            lock.take()
        try:
            yield lock
        finally:
            lock.leave()

    def head(self) -> bytes | None:
        sector = read_file(self._head)
        if sector is None:
            return None
        whole = len(sector) == _SECTOR and sector.endswith(b"\n")
        return sector[:-1].rstrip(b" ") + b"\n" if whole else sector  # anything else is for the judge to see

    def read_damage(self, database: str) -> str | None:
        for mark in self._marks(database):
            if (content := read_file(mark)) is not None:
                return content.decode("utf-8", "replace").partition("\n")[0]
        return None

    def mark_broken(self, why: str | None, database: str) -> None:
        """Only while held."""
        marks = self._marks(database)
        with translate_write_errors(self._head):
            if why is None:
                for mark in marks:
                    mark.unlink(missing_ok=True)
            else:
                replace_file(marks[0], f"{' '.join(why.split())}\n{database}\n".encode())

    def _marks(self, database: str) -> list[Path]:
        """This database's own, then the one that names none."""
        own = self._broken.with_suffix(f".{digest(database.encode())[:16]}.broken")
        return [own, self._broken] if database else [self._broken]

    def create(self, head: bytes) -> None:
        """Write the first head. Only while held."""
        with translate_write_errors(self._head):
            replace_file(self._head, _pad(head))

    def replace_head(self, head: bytes) -> None:
        """Overwrite the head in place, one sector and one flush. Only while held."""
        with translate_write_errors(self._head):
            handle = os.open(self._head, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.pwrite(handle, _pad(head), 0)
                _flush(handle)
            finally:
                os.close(handle)


class JournalLock(FileLock):
    def read_note(self) -> bytes | None:
        return os.pread(self.handle, 4_096, 0) or None

    def begin(self, note: bytes) -> None:
        """Write the note. It survives the process, not a power cut."""
        with translate_write_errors(self.path):
            os.pwrite(self.handle, note, 0)
            os.ftruncate(self.handle, len(note))

    def finish(self) -> None:
        os.ftruncate(self.handle, 0)


def _pad(head: bytes) -> bytes:
    if not head.endswith(b"\n") or len(head) > _SECTOR:
        raise ValueError("a head is one line of at most a sector")
    return head[:-1].ljust(_SECTOR - 1) + b"\n"
