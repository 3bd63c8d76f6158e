"""Where memories are kept for recall, and how text becomes a vector."""

from collections.abc import Collection, Sequence
from typing import Protocol

from zuno.trading.model.memory import MemoryRecord, RecallQuery, RecallResult


class Embedder(Protocol):
    """Promises: the same text gives the same vector, on every machine where it works offline; every vector has
    `dimension` whole numbers from -127 to 127 (a unit vector in int8), so that products of two are exact in floats and
    rankings do not hang on a last bit; an empty text gives zeros. `Unavailable` where a provider does not answer or
    answers with another dimension."""

    @property
    def name(self) -> str:
        """Of the model; vectors of different names are never compared."""

    @property
    def dimension(self) -> int: ...

    @property
    def duplicate(self) -> float:
        """The cosine from which on two headlines are taken to be the same news."""

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        """One vector for each text, as its int8 bytes."""


class MemoryIndex(Protocol):
    """Promises:

    - `add` is idempotent by id, all of them or none, on disk when it returns; the same id with other content is
      `Broken`;
    - `recall` finds what was known strictly before the query's moment, of its market and channels, most similar first
      after time decay, ties by id; what was added later than the moment never alters the answer;
    - what was removed is not found, and adding it again does not bring it back;
    - an empty query finds nothing; a long one is cut, not refused;
    - `Unavailable` where the store cannot be reached or read (a caller then falls back to the most recent and says so),
      `Broken` where what is there is no index: it can be rebuilt from the journal.
    """

    @property
    def name(self) -> str: ...
    async def add(self, records: Sequence[MemoryRecord]) -> None: ...
    async def recall(self, query: RecallQuery) -> RecallResult: ...
    async def remove(self, id: str) -> None: ...

    async def ids(self) -> frozenset[str]:
        """Everything that can be found, for whoever compares it with the journal."""

    async def rebuild(self, records: Sequence[MemoryRecord], removed: Collection[str] = ()) -> None:
        """Replace the index by these records, after damage or for another embedder. `removed` are never found."""
