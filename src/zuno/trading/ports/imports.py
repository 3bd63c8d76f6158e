"""Files of market history from elsewhere: what they hold, by columns, and which of their lines cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from zuno.kernel.errors import Refused
from zuno.trading.model.market import Series
from zuno.trading.ports.series import Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REPEATED_HEADER = "a header in the middle of the file"
ISO, DAY_FIRST, MONTH_FIRST = DATES = ("iso", "day-first", "month-first")
"""How dates may be written, as somebody says: 2024-12-31, 31/12/2024 or 12/31/2024."""


class NotNeeded(Refused):
    """What a file holds is read by nobody here: nothing is lost without it."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    path: str
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class UnreadLine:
    line: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class ImportBlock:
    """A part of a file, as large as is held at once."""

    columns: tuple[Columns, ...]
    """Of each series in the file: rows as they stand there, in its order."""
    lines: NDArray[np.int64]
    """Where each row stands: lines of a text count from 1, rows of a table too."""
    unread: tuple[UnreadLine, ...]
    rows: int
    """Lines or rows gone through, those that are no row included."""
    done: float
    """How much of the file has been gone through, 0 to 1."""
    parts: int = 1
    """How many rows make one bar of the series; where several do the block is the whole file."""


class ImportFile(Protocol):
    """A file whose columns are understood."""

    @property
    def layout(self) -> str:
        """What it was recognised as."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of how it was understood."""

    def blocks(self) -> Iterator[ImportBlock]:
        """The whole of it, once. `Malformed` where it ends before its end; what came before counts."""

    def close(self) -> None: ...


class ImportReader(Protocol):
    """Promises:

    - `formats`: the names of what it knows; the first lets the file say which it is.
    - `find`: the files of these paths, those of a folder in the order of their names, however deep; `Refused` for a
      path that is not there. Files of a folder that hold no tables are left out.
    - `open`: a file whose columns are understood; `Refused`, saying why and what would help, where they are not. A
      `series` that is given is the file's; without it the file's own columns and its name say whose it is.
    - `dates` says which number of 01/02/2024 is the day; it is never guessed. A file with dates in another order is
      `Refused` with the line, before a block of it was handed out where an order other than ISO's was named.
    - A file is gone through in blocks, whatever its size. What a file does not say is NaN, never zero.
    """

    formats: tuple[str, ...]

    def find(self, paths: Sequence[str]) -> list[FoundFile]: ...
    def open(self, file: FoundFile, series: Series[Any] | None, layout: str, dates: str) -> ImportFile: ...
