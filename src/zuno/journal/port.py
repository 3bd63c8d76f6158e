"""The journal port, and the port of the store that holds its rows."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

from zuno.journal.blocks import ArchiveMissing
from zuno.kernel.canonical import Digest, Json
from zuno.kernel.units import Millis


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote an entry: a role and its key (None: this node's key)."""

    role: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    seq: int
    at: Millis
    request_id: str | None
    kind: str
    author: Author
    code: str
    """The version of Zuno that wrote it."""
    payload: Mapping[str, Json]
    bundle: Digest | None
    prev: Digest
    hash: Digest
    signature: str


Payload = BaseModel | Mapping[str, object]


class Journal(Protocol):
    """What writers and readers can rely on:

    - An entry that `append` returned is on disk, chained to the one before and signed; several processes may append.
    - `append` raises `Broken`, and writes nothing, when the newest entry is not the one this node signed last;
      `Unavailable` when the store did not answer: the entry may or may not be there, and the next start finds out.
    - Reading checks the hash and signature of each entry (`Broken`); the first append of a process checks the newest
      entries. Damage that is found is remembered and stops every later append. Only `zuno journal verify` checks the
      whole chain.
    - A value without canonical bytes, or one that holds a configured secret, is refused before anything is written.
    """

    async def append(
        self,
        *,
        kind: str,
        author: Author,
        payload: Payload,
        request_id: str | None = None,
        bundle: Digest | None = None,
    ) -> Entry:
        """Write one entry; `bundle` names bytes that `put_bundle` stored before."""

    async def append_once(self, *, kind: str, author: Author, payload: Payload, request_id: str) -> Entry:
        """Write an entry unless the request has one of this kind; then return that one and write nothing. The look-up
        and the write are one step, among all processes."""

    async def put_bundle(self, content: bytes) -> Digest:
        """Store bytes once under their hash; storing them again is harmless."""

    async def bundle(self, name: Digest) -> bytes:
        """The bytes stored under that hash, checked against it. `NotFound` when there are none."""

    def entries(
        self, *, request_id: str | None = None, kind: str | None = None, after: int = 0
    ) -> AsyncIterator[Entry]:
        """Entries in the order they were written, read in pages; all, or those of a request, a kind, or both.
        `request_id` with a star at its end: those of all requests whose names begin so."""

    async def verify_range(self, first: int, last: int | None) -> None:
        """`Broken` unless every entry from `first` to `last` is there and chained to the one before. None means up to
        the newest, which must be the one this node signed last."""

    async def latest(
        self, count: int = 1, *, request_id: str | None = None, kind: str | None = None, before: int | None = None
    ) -> list[Entry]:
        """The newest `count` entries, newest first; with `before`, of those numbered below it."""


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as stored. The body is the entry, in canonical bytes; the other columns only help to find it."""

    seq: int
    at: int
    request_id: str | None
    kind: str
    body: bytes
    hash: str
    signature: str


@dataclass(frozen=True, slots=True)
class DamagedRow:
    """A stored row that cannot be read: a column holds a value of the wrong type."""

    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class EntryFilter:
    request_id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the journal, read while nobody writes."""

    last: Row | DamagedRow | None
    head: bytes | None
    """The signed head kept outside the sequence."""
    begun: bytes | None
    """The note left by a process that died while it wrote; None if every write was finished."""
    exists: bool
    """Whether the store exists; it is created by the first write."""
    first: Row | DamagedRow | None = None
    """The first row that matches the filter, if one was given."""
    broken: str | None = None
    """What is wrong with the journal, as `mark_broken` stored it; None: nothing is known to be."""


@dataclass(frozen=True, slots=True)
class Link:
    """The next row, its signed head, and the note kept while it is being written."""

    row: Row
    head: bytes
    note: bytes
    mended_head: bytes | None = None
    """The head that a crash left unwritten. It is written first, so that a second crash leaves one unfinished write,
    never two."""


BuildLink = Callable[[Tail], Link | None]
"""Builds the next link from the tail; None: write nothing. It runs under the journal's lock, possibly on a thread."""


class JournalStore(Protocol):
    """An append-only sequence of rows, bundles by name, and one head that is stored apart from both:

    - `append` holds one lock among all processes while it reads the tail, builds the link and writes it. The order is:
      write the head that a crash left unwritten, write the note, commit the row, replace the head, clear the note. Row
      and head are durable before the next step. A crash leaves the first steps done and the others not.
    - `append` looks up the first row that matches `where` under the same lock and hands it over as `Tail.first`.
    - A row is written whole or not at all; a number that is taken is never written again (`Broken`).
    - Rows come in the order of their numbers; one that cannot be read comes as a `DamagedRow` in its place. What the
      store cannot read at all (not a database, damaged pages) is `Broken`; a store that does not answer is
      `Unavailable`.
    - Reading a store that does not exist yet finds nothing and creates nothing.
    """

    async def initialise(self, head: bytes) -> None:
        """Write the first head before the first row, if neither exists."""

    async def append(self, build: BuildLink, where: EntryFilter | None = None) -> Row | None: ...

    async def tail(self) -> Tail:
        """The tail at a moment when nobody writes."""

    def rows(
        self,
        *,
        after: int | None = None,
        upto: int | None = None,
        request_id: str | None = None,
        kind: str | None = None,
    ) -> AsyncIterator[Row | DamagedRow]:
        """Rows numbered above `after` and not above `upto`, oldest first, without holding them all in memory;
        `request_id` may end with a star."""

    async def newest(
        self, count: int, *, request_id: str | None = None, kind: str | None = None, before: int | None = None
    ) -> list[Row | DamagedRow]:
        """The `count` rows with the highest numbers, newest first; with `before`, of those numbered below it."""

    async def put_bundle(self, name: Digest, content: bytes) -> None:
        """Store `content` under `name` unless there is something under that name."""

    async def bundle(self, name: str) -> bytes | None:
        """`ArchiveMissing` where it lies in an archive file that is not there."""

    def read_bundles(self) -> AsyncIterator[tuple[str, bytes | ArchiveMissing | None]]:
        """Every bundle by its name, sorted, read anew, in less time than one by one."""

    async def mark_broken(self, why: str | None) -> None:
        """Store what is wrong, apart from the rows, for every process to see; None clears it."""

    async def inspect(self) -> str | None:
        """Run the store's own check of its files: what is wrong, in a few words, or None."""

    async def close(self) -> None: ...
