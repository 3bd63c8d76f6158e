"""Where the market's past is kept: rows and documents by their own time, and by the time they could be known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from zuno.kernel.units import Millis
from zuno.trading.model.bundle import CANDLES_ONLY
from zuno.trading.model.market import Row, Series

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

R = TypeVar("R", bound=Row)


class Source(StrEnum):
    """How rows came into a store."""

    COLLECTED = "collected"
    """As they happened, by `data collect` or a live run."""
    DOWNLOADED = "downloaded"
    IMPORTED = "imported"
    REPAIRED = "repaired"
    """By `data check --repair`."""


@dataclass(frozen=True, slots=True)
class Batch(Generic[R]):
    """Rows of one series as one source gave them, in whatever order and state."""

    series: Series[R]
    rows: Sequence[R]
    known: Millis | None = None
    """When they reached us. None for history of a time nothing is kept of: each row is then known from the moment it
    was complete (a bar's end, a print's release, an event's own time), as it would have been to somebody who watched.
    What mends a past that is kept, or fills a hole in it, reaches us now: nobody knew it before."""
    source: Source = Source.COLLECTED
    file: str = ""
    """Of what was imported: the name of its file."""


@dataclass(frozen=True, slots=True)
class WriteCounts:
    new: int
    same: int
    changed: int
    """Rows that took the place of one of the same key with other numbers."""
    bad: int
    """Rows no market can have made: kept aside with the reason, never read."""


@dataclass(frozen=True, slots=True)
class Span:
    series: Series[Any]
    count: int
    first: Millis
    last: Millis
    sealed: int
    """Of these, how many rest in files of history."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something about a series that is not as it should be, and where."""

    series: Series[Any]
    kind: str
    """gap · duplicate · conflict · bad · frozen (the same numbers again and again) · doubled (two of one interval) ·
    disagreement (a coarse bar is not what its fine bars add up to)"""
    first: Millis
    last: Millis
    count: int
    detail: str
    mended: str | None = None
    replaced: Any = None
    """Of a conflict: the row that stood here before."""


@dataclass(frozen=True, slots=True)
class Origin:
    synthetic: bool
    label: str
    """`SYNTHETIC seed 11`, `recorded`, or `PUBLIC_HISTORY`."""

    @property
    def candles_only(self) -> bool:
        return self.label.startswith(CANDLES_ONLY)


INVENTED: Final = Origin(True, "SYNTHETIC")
RECORDED: Final = Origin(False, "recorded")
PUBLIC_HISTORY: Final = Origin(False, f"{CANDLES_ONLY} (public history)")
"""Of a store that holds what was imported or downloaded and nothing that was collected."""


@dataclass(frozen=True, slots=True)
class RowSource:
    series: Series[Any]
    source: Source
    file: str
    rows: int
    """New or changed when they came."""
    first: Millis
    last: Millis


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Rows of one series as columns, for series of numbers with a time: candles, funding, levels, marks."""

    series: Series[Any]
    at: NDArray[np.int64]
    values: tuple[NDArray[np.float64], ...]
    """A row's numbers beside its time, in its order; NaN where the row says nothing."""

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsWritten:
    """What became of columns: the places that were new and those that replaced others."""

    new: NDArray[np.bool_]
    changed: NDArray[np.bool_]
    left: NDArray[np.bool_]
    """Places where other numbers stand, which stay."""


@dataclass(frozen=True, slots=True)
class Slice(Generic[R]):
    """What is asked of one series: the time, both ends included, and how many of the last rows at most."""

    series: Series[R]
    since: Millis
    until: Millis
    newest: int | None = None


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row no market can have made: its place, and what is wrong with it."""

    at: Millis
    detail: str


@dataclass(frozen=True, slots=True)
class SeriesSnapshot:
    """Several series as they stood at one moment, whoever writes meanwhile."""

    origin: Origin
    rows: tuple[Sequence[Any], ...]
    """Of each slice that was asked for, in its order."""
    asides: tuple[tuple[RejectedRow, ...], ...]
    """The same: what was set aside of the slice's whole time, oldest first."""


@dataclass(frozen=True, slots=True)
class RenewedStore:
    """What a store was begun again with, as it stood when that was written."""

    origin: Origin
    written: WriteCounts
    spans: tuple[Span, ...]


class SeriesStore(Protocol):
    """Promises, to everyone who keeps or reads a market's past:

    - A `write` is all or nothing, survives a kill -9 once it returned, and may be repeated: the same row again changes
      nothing, other numbers under the same key take its place and are counted, and noted as a conflict.
    - A row given at two times is known from the earlier. Other numbers are known from when they came, and not before
      those whose place they take, which stay what was known until then.
    - A row that cannot be (NaN, a negative price or volume, a number beyond what any market has, high below low, a bar
      off its bucket or not closed by the time it was known) is set aside with its reason and place and never read.
      That it was is known from when it reached us, of history from when it would have been complete; where the same
      row came at two times, from the earlier.
    - `read` gives each key once, oldest first: of the time asked for, both ends included, the newest numbers known by
      `known_by`. Of several prints of one day the newest released by then.
    - Rows come back equal to what went in. Rows that were sealed into files are read like the others.
    - A store of recorded rows whose first rows were imported or downloaded declares itself `PUBLIC_HISTORY`, until the
      first row that was collected: then it is `recorded`, for every moment.
    - Several processes may write; `Unavailable` when the store does not answer, `Broken` when it is damaged.
    """

    @property
    def origin(self) -> Origin: ...
    async def write(self, batches: Sequence[Batch[Any]]) -> WriteCounts: ...

    async def read(
        self, series: Series[R], since: Millis, until: Millis, known_by: Millis, newest: int | None = None
    ) -> tuple[R, ...]:
        """Rows of [since, until]; `newest`: only so many of the last."""

    async def read_many(self, slices: Sequence[Slice[Any]], known_by: Millis) -> SeriesSnapshot:
        """Each as `read` gives it, with what was set aside and whose they are, all of one state of the store."""

    async def spans(self) -> tuple[Span, ...]:
        """Every series that has rows, by name."""

    async def newest_known(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        """For each of these, in order: since when something of its last moment is known; None without rows."""

    async def all_known(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        """The same: since when all of it is. What fills a hole or mends a row may come long after what lies behind."""

    async def first_times(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        """Of each of these: the time of its first row; None where nothing is here."""

    async def sources(self) -> tuple[RowSource, ...]:
        """Where the rows came from, by series; empty for invented markets and for rows older than this record."""

    async def flaws(self) -> tuple[Flaw, ...]:
        """What was set aside and what conflicted, by place."""

    async def mend(self, flaws: Sequence[Flaw]) -> None:
        """Note what was done about flaws; those that were not noted here are passed over."""

    async def seal(self, before: Millis) -> int:
        """Move rows of before that moment into files of history; how many went. A crash in between loses none."""

    async def renew(self, origin: Origin, batches: Sequence[Batch[Any]] = ()) -> RenewedStore:
        """Forget everything and begin again with that origin and these rows, all at one stroke: everybody sees the old
        past whole or the new one. `Refused` where invented would replace recorded."""

    async def begin(self, origin: Origin, batches: Sequence[Batch[Any]]) -> bool:
        """The same where no row is here, judged in that very stroke; False where there are some, which stay."""

    async def close(self) -> None: ...


class ColumnStore(SeriesStore, Protocol):
    async def write_columns(
        self, columns: Columns, source: Source, file: str, now: Millis, replace: NDArray[np.bool_] | bool = True
    ) -> ColumnsWritten:
        """The same of history in sound columns, strictly increasing in time; rows among collected ones are known from
        `now`. `replace`: whether a row may take the place of other numbers."""

    async def read_columns(self, series: Series[Any], since: Millis, until: Millis) -> Columns:
        """The newest numbers of [since, until], oldest first."""
