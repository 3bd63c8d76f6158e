"""The journal port, and the port of the store that holds its rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

from zuno.kernel.canonical import Digest, Json
from zuno.kernel.units import Millis


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote an entry: a role and its key (None: this node's key)."""

    role: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One journal entry."""

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


class Journal(Protocol):
    """What writers and readers can rely on:

    - An entry that `append` returned is on disk, chained to the one before and signed; several processes may append.
    - `append` raises `Broken` when the newest entry is not the one this node signed last, and writes nothing;
      `Unavailable` when the store did not answer: the entry may or may not be there, and the next start says which.
    - Reading checks each entry's own hash and signature (`Broken`), and the first append of a process the newest
      entries; damage that is met is remembered, and nothing is appended any more. Only `verify` checks the whole chain.
    - A value without canonical bytes, or one that holds a configured secret, is refused before anything is written.
    """

    async def append(
        self,
        *,
        kind: str,
        author: Author,
        payload: BaseModel | Mapping[str, object],
        request_id: str | None = None,
        bundle: Digest | None = None,
    ) -> Entry:
        """Write one entry; `bundle` names bytes that `put_bundle` stored before."""
        ...

    async def append_once(
        self, *, kind: str, author: Author, payload: BaseModel | Mapping[str, object], request_id: str
    ) -> Entry:
        """Write the one entry of its kind that a request may have. Where there is one, nothing is written and the first
        is returned; among all processes looking and writing are one step."""
        ...

    async def put_bundle(self, content: bytes) -> Digest:
        """Store bytes once under their hash; storing them again is harmless."""
        ...

    async def bundle(self, name: Digest) -> bytes:
        """The bytes of that hash, checked. `NotFound` when there are none."""
        ...

    def entries(
        self, *, request_id: str | None = None, kind: str | None = None, after: int = 0
    ) -> AsyncIterator[Entry]:
        """Entries in the order they were written, read in pages; all, or those of a request, a kind, or both."""
        ...

    async def verify_range(self, first: int, last: int | None) -> None:
        """`Broken` unless all entries from `first` to `last` are there, each behind the one before; None means up to
        the newest, which must then be the one this node signed last."""
        ...

    async def latest(
        self, count: int = 1, *, request_id: str | None = None, kind: str | None = None, before: int | None = None
    ) -> list[Entry]:
        """The newest `count`, newest first; `before`: of those with a lower number."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as stored: the body's canonical bytes decide, the columns beside it are for looking things up."""

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
    """The entries of one kind in one request."""

    request_id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the journal, read while nobody writes."""

    last: Row | DamagedRow | None
    head: bytes | None
    """The signed head kept outside the sequence."""
    begun: bytes | None
    """The note of an unfinished write: its process died."""
    exists: bool
    """Whether the store exists; it is created by the first write."""
    first: Row | DamagedRow | None = None
    """The first row that matches the filter, if one was given."""
    broken: str | None = None
    """What a check of the whole journal found, if it found something."""


@dataclass(frozen=True, slots=True)
class Link:
    """The next row, its signed head, and the note kept while it is being written."""

    row: Row
    head: bytes
    note: bytes
    mended_head: bytes | None = None
    """The head a crash left unwritten; written first, so that a second crash finds one unfinished write and not two."""


BuildLink = Callable[[Tail], Link | None]
"""From the tail, the next link, or None to write nothing. Runs under the journal's lock, possibly on a thread."""


class JournalStore(Protocol):
    """An append-only sequence of rows, bundles by name, and one head kept outside of both:

    - `append` holds the lock among all processes while it reads the tail, builds and writes the link. The order is: a
      head that a crash left unwritten, note begun, row committed durably, head replaced durably, note cleared. A crash
      leaves a prefix of that order.
      What matches `where` is looked up under the same lock.
    - A row is written whole or not at all; a number that is taken is never written again (`Broken`).
    - Rows come by number; a row that cannot be read is a `Damaged` in its place. What the store cannot read at all
      (not a database, damaged pages) is `Broken`; a store that does not answer is `Unavailable`.
    - Looking at a store that does not exist yet finds nothing and creates nothing.
    """

    async def initialise(self, head: bytes) -> None:
        """Write the first head before the first row, if neither exists."""
        ...

    async def append(self, build: BuildLink, where: EntryFilter | None = None) -> Row | None: ...

    async def tail(self) -> Tail:
        """The tail at a moment when nobody writes."""
        ...

    def rows(
        self,
        *,
        after: int | None = None,
        upto: int | None = None,
        request_id: str | None = None,
        kind: str | None = None,
    ) -> AsyncIterator[Row | DamagedRow]:
        """Rows numbered above `after` and not above `upto`, oldest first, without holding them all in memory."""
        ...

    async def newest(
        self, count: int, *, request_id: str | None = None, kind: str | None = None, before: int | None = None
    ) -> list[Row | DamagedRow]:
        """The `count` rows of the highest numbers, newest first; `before`: of those below a number."""
        ...

    async def put_bundle(self, name: Digest, content: bytes) -> None:
        """Keep `content` under `name` unless that name is kept already."""
        ...

    async def bundle(self, name: str) -> bytes | None: ...

    def bundle_names(self) -> AsyncIterator[str]:
        """Every name that is kept, in order."""
        ...

    async def mark_broken(self, why: str | None) -> None:
        """Remember what is wrong, for every process and outside of the rows; None: nothing is, any more."""
        ...

    async def inspect(self) -> str | None:
        """What the store's own check of its files finds wrong, in a few words."""
        ...

    async def close(self) -> None: ...
