"""Market history from files into the store: what each file held, what was new, and what was set aside and why."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from zuno.kernel.errors import Malformed, Refused, Unavailable, UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.view import ForeignText, VerdictView, View
from zuno.markets.market import DEFAULT_SYMBOLS
from zuno.markets.venues import DEFAULT_VENUE
from zuno.present.document import Document, Tone, document, lines, table
from zuno.present.values import count, foreign
from zuno.trading.data.imports import Imported, ImportState, make_coarser, parse_importable, take_columns
from zuno.trading.data.intake import Now, clause
from zuno.trading.model.known import derive
from zuno.trading.model.market import Series
from zuno.trading.model.wanted import is_read
from zuno.trading.ports.imports import (
    DATES,
    ISO,
    REPEATED_HEADER,
    FoundFile,
    ImportBlock,
    ImportFile,
    ImportReader,
    NotNeeded,
)
from zuno.trading.ports.series import ColumnStore
from zuno.trading.service.data import format_stretch

Listen = Callable[["ImportProgress"], None]
Confirm = Callable[[str], bool]
MOST_LISTED: Final = 200
"""Lines of one file that are kept; the others are counted by their reason."""
MOST_LINES: Final = 10
"""Of these, how many a screen lists."""
_LONGEST_REASON: Final = 120
_READ_FROM_NOW: Final = (
    "the desk reads these rows from now on; the synthetic market and its accounts are where ZUNO_RECORDING=synthetic "
    "says, and what is running reads these rows when it is started again"
)
_FIGURES: Final = re.compile(r"-?\d[\d.,e+-]*")


@dataclass(frozen=True, slots=True)
class ImportProgress:
    file: str
    done: float
    """Of all files by size, 0 to 1."""
    rows: int


class SetAsideView(View):
    line: int
    reason: ForeignText


class ImportedView(View):
    series: str
    rows: int
    new: int
    changed: int
    """Other numbers stood there, and these took their place."""
    unmade: int
    """Bars that were not made of shorter ones because a part is missing."""
    first: int | None
    last: int | None
    place: str
    """From when to when, for people."""


class ImportedFileView(View):
    file: ForeignText
    layout: str
    """What it was recognised as; empty where it was not."""
    rows: int
    series: tuple[ImportedView, ...]
    repeated: int
    """Rows that stood in it twice."""
    blank: int
    """Rows without a value."""
    set_aside: int
    lines: tuple[SetAsideView, ...]
    """The first of those that were set aside."""
    reasons: dict[str, int]
    """All of them, by reason."""
    notes: tuple[ForeignText, ...]
    failure: ForeignText
    """Why it was not imported, or not to its end; empty where it was."""
    incomplete: bool
    """Whether anything the desk reads was set aside or not imported."""

    @property
    def name(self) -> str:
        return self.file.rpartition("/")[2]

    def describe_rest(self) -> Iterator[str]:
        """What became of lines that are no rows of a series."""
        yield from self.notes
        if self.repeated:
            yield f"{self.repeated:,} rows stood in it twice"
        if self.blank:
            yield f"{self.blank:,} rows have no value"
        yield from (f"line {line.line:,}: {line.reason}" for line in self.lines[:MOST_LINES])
        if rest := self.set_aside - min(MOST_LINES, len(self.lines)):
            yield f"{rest:,} more lines set aside; `--json` has them by reason"


class ImportView(VerdictView):
    """`ok`: everything the desk reads was imported; else exit code 3."""

    files: tuple[ImportedFileView, ...]
    rows: int
    new: int
    changed: int
    set_aside: int
    made: dict[str, int]
    """Coarser bars that were made of them, by series."""
    said: str
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        rows = [
            (foreign(file.name), part.series, count(part.rows), count(part.new), count(part.changed), part.place)
            for file in self.files
            for part in file.series
        ]
        columns = ("file", "series", "rows", "new", "changed", "from – to")
        failed = (foreign(f"{file.file}: {file.failure}", Tone.BAD) for file in self.files if file.failure)
        rest = (foreign(f"{file.name}: {line}") for file in self.files for line in file.describe_rest())
        made = (f"{number:,} bars of {series} made" for series, number in self.made.items())
        return document(
            self.said,
            table(columns, rows, spare=("changed", "from – to")) if rows else None,
            lines(*failed),
            notes=(*rest, *made, *self.notes),
        )


@dataclass(slots=True)
class _FileTally:
    rows: int = 0
    layout: str = ""
    repeated: int = 0
    blank: int = 0
    failure: str = ""
    incomplete: bool = False
    lines: list[SetAsideView] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    series: dict[Series[Any], Imported] = field(default_factory=dict)

    def set_aside(self, line: int, reason: str) -> None:
        self.reasons[plain_text(_FIGURES.sub("…", reason), _LONGEST_REASON)] += 1
        if len(self.lines) < MOST_LISTED:
            self.lines.append(SetAsideView(line=line, reason=reason))


class Imports:
    """Into one store, as history: rows are known from when they were complete. A second import changes nothing."""

    def __init__(
        self, reader: ImportReader, store: ColumnStore, now: Now, *, read_here: bool, first: bool = False
    ) -> None:
        """`read_here`: the desk reads that store; `first`: it does from this import on."""
        self._reader, self._store, self._now = reader, store, now
        self._read_here, self._first = read_here, first

    async def run(
        self,
        paths: Sequence[str],
        series: str | None,
        layout: str,
        listen: Listen,
        confirm: Confirm,
        *,
        dates: str = ISO,
    ) -> ImportView:
        """Every file of these paths; one that cannot be read is told, and the others go on. `confirm` is asked about
        prices far from what the symbol traded at."""
        wanted = None if series is None else _parse_target(series)
        if layout not in self._reader.formats:
            raise UsageError(f"{plain_text(layout, 40)!r} is no format; write {', '.join(self._reader.formats)}.")
        if dates not in DATES:
            raise UsageError(f"{plain_text(dates, 40)!r} is no order of dates; write {', '.join(DATES)}.")
        files = await asyncio.to_thread(self._reader.find, paths)
        state = ImportState(self._store, self._now(), confirm)
        tallies = [(file, _FileTally()) for file in files]

        def tell(place: int, done: float) -> None:
            behind = sum(file.size for file in files[:place]) + done * files[place].size
            rows = sum(tally.rows for _, tally in tallies)
            listen(ImportProgress(files[place].name, behind / max(1, sum(file.size for file in files)), rows))

        for place, (file, tally) in enumerate(tallies):
            tell(place, 0.0)
            try:
                opened = await asyncio.to_thread(self._reader.open, file, wanted, layout, dates)
                await self._import_file(file.name, opened, state, tally, partial(tell, place))
            except (Refused, Malformed, Unavailable, UsageError) as error:
                tally.failure, tally.incomplete = clause(error), tally.incomplete or not isinstance(error, NotNeeded)
        made = {str(series): count for series, count in (await make_coarser(state)).items() if count}
        return self._view(tallies, made, sorted(map(str, state.unchecked)))

    async def _import_file(
        self, name: str, file: ImportFile, state: ImportState, tally: _FileTally, tell: Callable[[float], None]
    ) -> None:
        try:
            tally.layout, tally.notes = file.layout, list(file.notes)
            blocks = file.blocks()
            coming = asyncio.create_task(asyncio.to_thread(next, blocks, None))
            try:
                while (block := await coming) is not None:
                    coming = asyncio.create_task(asyncio.to_thread(next, blocks, None))  # read while this is written
                    tally.rows += block.rows
                    await self._take(name, block, state, tally)
                    tell(block.done)
            finally:
                await asyncio.gather(coming, return_exceptions=True)
        finally:
            file.close()

    async def _take(self, name: str, block: ImportBlock, state: ImportState, tally: _FileTally) -> None:
        for unread in block.unread:
            tally.set_aside(unread.line, unread.reason)
            tally.incomplete |= unread.reason != REPEATED_HEADER and any(is_read(part.series) for part in block.columns)
        for columns in block.columns:
            found = await take_columns(state, columns, block.lines, name, block.parts)
            tally.series.setdefault(columns.series, Imported()).add(found)
            tally.repeated += found.repeated
            tally.blank += found.blank
            for line, reason in found.set_aside:
                tally.set_aside(line, reason)
            tally.incomplete |= len(found.set_aside) > found.unfinished and is_read(columns.series)

    def _view(
        self, tallies: Sequence[tuple[FoundFile, _FileTally]], made: dict[str, int], unchecked: Sequence[str]
    ) -> ImportView:
        files = tuple(
            derive(
                ImportedFileView,
                tally,
                file=file.path,
                series=tuple(_series_view(series, found) for series, found in tally.series.items()),
                set_aside=tally.reasons.total(),
                reasons=dict(tally.reasons.most_common()),
            )
            for file, tally in tallies
        )
        parts = [part for file in files for part in file.series]
        rows, new, changed = (sum(getattr(part, name) for part in parts) for name in ("rows", "new", "changed"))
        aside, failed = sum(file.set_aside for file in files), sum(bool(file.failure) for file in files)
        many = "1 file" if len(files) == 1 else f"{len(files)} files"
        said = f"{rows:,} rows of {many}: {new:,} new, {changed:,} changed, {aside:,} lines set aside."
        notes = [] if self._read_here else ["the desk reads another store: ZUNO_RECORDING=own makes it read this one"]
        notes += [f"nothing could be held against the prices of {series}: not checked" for series in unchecked]
        notes += [_READ_FROM_NOW] if self._first and rows else []
        if failed:
            notes.append(f"{failed} of {len(files)} files were not imported, or not to their end")
        return ImportView(
            ok=not any(file.incomplete for file in files) and (rows > 0 or not failed),
            files=files,
            rows=rows,
            new=new,
            changed=changed,
            set_aside=aside,
            made=made,
            said=said,
            notes=tuple(notes),
        )


def _parse_target(text: str) -> Series[Any]:
    try:
        return parse_importable(text)
    except ValueError:
        name = f"{DEFAULT_VENUE.feed}/{DEFAULT_SYMBOLS[0]}"
        raise UsageError(
            f"{plain_text(text, 60)!r} is no series that can be imported; write candles/{name}/1h, funding/{name} or "
            "another that `zuno data status` lists."
        ) from None


def _series_view(series: Series[Any], found: Imported) -> ImportedView:
    place = "" if found.first is None or found.last is None else format_stretch(found.first, found.last)
    return derive(ImportedView, found, series=str(series), place=place)
