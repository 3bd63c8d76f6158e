"""The journal: what the house writes through to remember, and the sequence of rows it is kept in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

from zuno.domain.units import Millis
from zuno.messages.codec import Digest, Json


@dataclass(frozen=True, slots=True)
class Author:
    """Who says it: a role, and the key it speaks with (None: this node's own)."""

    role: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was said or done, as it stands in the journal for good."""

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
    """Promises, to everyone who writes or reads the past:

    - An entry that `append` returned is on disk, chained to the one before and signed; several processes may append.
    - `append` raises `Broken` when the newest entry is not the one this node last vouched for, and writes nothing;
      `Unavailable` when the store did not answer: the entry may or may not be there, and the next start says which.
    - Reading checks each entry's own hash and signature (`Broken`); only `zuno journal verify` checks the whole chain.
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
        """The bytes of that hash, checked. `Unknown` when there are none."""
        ...

    def entries(
        self, *, request_id: str | None = None, kind: str | None = None, after: int = 0
    ) -> AsyncIterator[Entry]:
        """Entries in the order they were written, read in pages; all, or those of a request, a kind, or both."""
        ...

    async def vouch(self, first: int, last: int | None) -> None:
        """`Broken` unless all entries from `first` to `last` are there, each behind the one before; None means up to
        the newest, which must then be the one this node last vouched for."""
        ...

    async def latest(self, count: int = 1, *, request_id: str | None = None, kind: str | None = None) -> list[Entry]:
        """The newest `count`, newest first."""
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
class Damaged:
    """A stored row that is not even a row: a column holds what no writer of ours puts there."""

    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class About:
    """The entries of one kind in one request."""

    request_id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Tail:
    """Where the sequence ends, seen while nobody else writes."""

    last: Row | Damaged | None
    head: bytes | None
    """The signed head kept outside the sequence."""
    begun: bytes | None
    """The note of a write that was begun and never finished: its process died."""
    exists: bool
    """Whether there is anything that could hold rows; a store nobody wrote to yet does not exist."""
    first: Row | Damaged | None = None
    """The first row of what was asked about, where something was."""


@dataclass(frozen=True, slots=True)
class Link:
    """The next row, the head that vouches for it, and a note to leave while it is being written."""

    row: Row
    head: bytes
    note: bytes


Forge = Callable[[Tail], Link | None]
"""Given the tail, the next link, or None to write nothing. Runs while the journal is held, possibly on a thread."""


class JournalStore(Protocol):
    """Promises a sequence of rows that only grows, bundles by name, and one head outside of both:

    - `append` holds the journal alone among all processes while it reads the tail, forges and writes. The order is:
      note begun, row committed durably, head replaced durably, note cleared. A crash leaves a prefix of that order.
      What it is asked `about` is looked up in the same turn, so that nobody writes between the look and the row.
    - A row is written whole or not at all; a number that is taken is never written again (`Broken`).
    - Rows come by number; a row that cannot be read is a `Damaged` in its place. What the store cannot read at all
      (not a database, damaged pages) is `Broken`; a store that does not answer is `Unavailable`.
    - Looking at a store that does not exist yet finds nothing and creates nothing.
    """

    async def found(self, head: bytes) -> None:
        """Lay the first head down before the first row, where neither exists; otherwise do nothing."""
        ...

    async def append(self, forge: Forge, about: About | None = None) -> Row | None: ...

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
    ) -> AsyncIterator[Row | Damaged]:
        """Rows numbered above `after` and not above `upto`, oldest first, without holding them all in memory."""
        ...

    async def newest(
        self, count: int, *, request_id: str | None = None, kind: str | None = None
    ) -> list[Row | Damaged]:
        """The `count` rows of the highest numbers, newest first."""
        ...

    async def put_bundle(self, name: Digest, content: bytes) -> None:
        """Keep `content` under `name` unless that name is kept already."""
        ...

    async def bundle(self, name: str) -> bytes | None: ...

    def bundle_names(self) -> AsyncIterator[str]:
        """Every name that is kept, in order."""
        ...

    async def inspect(self) -> str | None:
        """What the store's own check of its files finds wrong, in a few words."""
        ...

    async def close(self) -> None: ...
