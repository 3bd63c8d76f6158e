"""Tables in text: where a field ends, whether there is a header, when a row was, block by block.

A block that is clean goes through DuckDB in columns. One that is not, or whose times are written in several ways, is
read line by line: slower, and every line that is no row is named.
"""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from zuno.adapters.imports.layouts import (
    FileHead,
    RecognisedFile,
    SeriesColumns,
    clean_name,
    find_layout,
    name_symbol,
    symbol_column,
    time_column,
)
from zuno.kernel.errors import Malformed, Refused, ZunoError
from zuno.kernel.text import plain_text
from zuno.trading.measure.columns import WIDTH
from zuno.trading.model.market import MacroRelease, Series
from zuno.trading.ports.imports import REPEATED_HEADER, ImportBlock, UnreadLine
from zuno.trading.ports.series import Columns

if TYPE_CHECKING:
    import duckdb

BLOCK_BYTES: Final = 12 * 2**20
PIECE_BYTES: Final = 2**20
HEAD_BYTES: Final = 2**16
LOOKED_AT: Final = 200
"""Lines that say what a file is."""
_DELIMITERS: Final = ",;\t|"
_TIME: Final = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)?"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text is cut into fields."""

    delimiter: str
    names: tuple[str, ...] | None
    width: int
    decimal_comma: bool = False


class TextTable(RecognisedFile):
    """A file of text, opened as bytes; `done` says how far it has been read, 0 to 1."""

    def __init__(
        self,
        name: str,
        source: Any,
        close: Callable[[], None],
        done: Callable[[], float],
        series: Series[Any] | None,
        asked: str,
    ) -> None:
        self._source, self._close, self._done = source, close, done
        self._head = _read_start(source)
        complete = self._head.rpartition(b"\n")[0] or self._head
        lines = [line for line in complete.split(b"\n")[:LOOKED_AT] if line.strip()]
        if not lines:
            raise Refused("It is empty.")
        self._dialect = _sniff([line.decode("utf-8", "replace") for line in lines])
        rows = list(_split(self._dialect, lines[1:] if self._dialect.names is not None else lines))
        self._layout = find_layout(_describe(name, self._dialect, rows), series, asked)

    def close(self) -> None:
        self._close()

    def blocks(self) -> Iterator[ImportBlock]:
        import duckdb

        quiet = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        line = 1
        with (
            TemporaryDirectory(prefix="zuno-import-") as folder,
            duckdb.connect(config={"threads": 1, **quiet}) as duck,
        ):
            for block in self._cut():
                text = block
                if line == 1 and self._dialect.names is not None:
                    skipped = block.index(b"\n") + 1 if b"\n" in block else len(block)
                    while not block[:skipped].strip() and skipped < len(block):
                        skipped = block.index(b"\n", skipped) + 1 if b"\n" in block[skipped:] else len(block)
                    text, line = block[skipped:], line + block[:skipped].count(b"\n")
                if text.strip():
                    yield self._read_block(duck, Path(folder) / "block.csv", text, line)
                line += text.count(b"\n")

    def _cut(self) -> Iterator[bytes]:
        """Whole lines, as many as are held at once."""
        held, size = [self._head], len(self._head)
        while True:
            try:
                more = self._source.read1(PIECE_BYTES)
            except (EOFError, OSError, ValueError, zlib.error, BadZipFile) as error:
                whole = b"".join(held)
                if b"\n" in whole:
                    yield whole[: whole.rfind(b"\n") + 1]
                raise Malformed(f"It ends before its end or is damaged ({type(error).__name__}).") from error
            held.append(more)
            size += len(more)
            if more and size < BLOCK_BYTES:
                continue
            whole = b"".join(held).replace(b"\r\n", b"\n")
            if not more:
                if whole:
                    yield whole if whole.endswith(b"\n") else whole + b"\n"
                return
            end = whole.rfind(b"\n") + 1
            if not end:
                raise Malformed("A line of it is longer than any row is.")
            yield whole[:end]
            held, size = [whole[end:]], len(whole) - end

    def _read_block(self, duck: duckdb.DuckDBPyConnection, path: Path, text: bytes, line: int) -> ImportBlock:
        count = text.count(b"\n")
        found = self._read_columns(duck, path, text, count)
        if found is not None:
            times, numbers = found
            lines = np.arange(line, line + count, dtype=np.int64)
            unread: list[UnreadLine] = []
        else:
            times, numbers, lines, unread = self._read_lines(text, line)
        columns = tuple(build_columns(target, times, numbers) for target in self._layout.targets)
        return ImportBlock(columns, lines, tuple(unread), count, self._done())

    # -- in columns

    def _read_columns(
        self, duck: duckdb.DuckDBPyConnection, path: Path, text: bytes, count: int
    ) -> tuple[NDArray[np.int64], dict[int, NDArray[np.float64]]] | None:
        """The block's times and numbers; None where a line of it has to be looked at."""
        import duckdb

        if self._dialect.decimal_comma or b"\r" in text:
            return None
        time, symbol = self._layout.time, self._layout.symbol
        first = next(iter(_split(self._dialect, [text[: text.index(b"\n")]])), [])
        if len(first) != self._dialect.width:
            return None
        wanted = sorted({place for target in self._layout.targets for place in target.places if place is not None})
        written = _time_query(f"c{time}", first[time])
        if written is None:
            return None
        moment, as_number, sure = written
        kinds = {f"c{place}": "DOUBLE" if place in wanted else "VARCHAR" for place in range(self._dialect.width)}
        kinds[f"c{time}"] = "DOUBLE" if as_number else "VARCHAR"
        chosen = ", ".join([f"{moment} AS moment", f"{sure} AS sure", *(f"c{place}" for place in wanted)])
        path.write_bytes(text)
        table = """read_csv($path, delim=$delim, header=false, auto_detect=false, columns=$kinds,
            quote='"', escape='"', parallel=false)"""
        asked = {"path": str(path), "delim": self._dialect.delimiter, "kinds": kinds}
        try:
            found = duck.execute(f"SELECT {chosen} FROM {table}", asked).fetchnumpy()
            if symbol is not None:
                whose = duck.execute(f"SELECT DISTINCT c{symbol} FROM {table} LIMIT 2", asked).fetchall()
                if len(whose) != 1 or not self._is_own(whose[0][0]):
                    return None
        except duckdb.Error:
            return None
        moments = found["moment"]
        if len(moments) != count or isinstance(moments, np.ma.MaskedArray) or not np.all(found["sure"]):
            return None
        times = moments_of_numbers(moments) if as_number else moments.astype(np.int64)
        return times, {place: _filled(found[f"c{place}"]) for place in wanted}

    def _is_own(self, symbol: str | None) -> bool:
        names = {target.series.name.partition("/")[0] for target in self._layout.targets}
        try:
            return {name_symbol(symbol or "").value} == names
        except ZunoError:
            return False

    # -- line by line

    def _read_lines(
        self, text: bytes, line: int
    ) -> tuple[NDArray[np.int64], dict[int, NDArray[np.float64]], NDArray[np.int64], list[UnreadLine]]:
        places = sorted({place for target in self._layout.targets for place in target.places if place is not None})
        times: list[int] = []
        lines: list[int] = []
        rows: list[list[float]] = []
        unread: list[UnreadLine] = []
        for place, fields in enumerate(_split(self._dialect, text.split(b"\n")[:-1], keep_empty=True), line):
            if not fields or not any(fields):
                continue
            try:
                at, numbers = self._read_fields(fields, places)
            except ValueError as error:
                unread.append(UnreadLine(place, str(error)))
                continue
            times.append(at)
            lines.append(place)
            rows.append(numbers)
        table = np.array(rows, dtype=np.float64).reshape(-1, len(places)).T
        numbers_by_place = {place: table[index] for index, place in enumerate(places)}
        return np.array(times, dtype=np.int64), numbers_by_place, np.array(lines, dtype=np.int64), unread

    def _read_fields(self, fields: Sequence[str], places: Sequence[int]) -> tuple[int, list[float]]:
        if len(fields) != self._dialect.width:
            raise ValueError(f"it has {len(fields)} fields, the others have {self._dialect.width}")
        if self._dialect.names is not None and tuple(map(clean_name, fields)) == self._dialect.names:
            raise ValueError(REPEATED_HEADER)
        symbol = self._layout.symbol
        if symbol is not None and not self._is_own(fields[symbol]):
            raise ValueError(f"it is about {plain_text(fields[symbol], 40)}")
        at = read_time(fields[self._layout.time])
        if at is None:
            raise ValueError(f"{plain_text(fields[self._layout.time], 40)!r} is no time")
        return at, [self._read_number(fields[place]) for place in places]

    def _read_number(self, text: str) -> float:
        if not text.strip():
            return float("nan")
        try:
            return float(text.replace(",", ".") if self._dialect.decimal_comma else text)
        except ValueError:
            raise ValueError(f"{plain_text(text, 40)!r} is no number") from None


def build_columns(target: SeriesColumns, times: NDArray[np.int64], numbers: dict[int, NDArray[np.float64]]) -> Columns:
    """The columns of one series; NaN where the file has none."""
    values = []
    width = 1 if target.series.row is MacroRelease else WIDTH[target.series.row]
    for index in range(width):
        place = target.places[index] if index < len(target.places) else None
        constant = target.constants[index] if index < len(target.constants) else None
        if place is not None:
            values.append(numbers[place])
        else:
            values.append(np.full(len(times), np.nan if constant is None else constant))
    if target.factor != 1.0:
        values[0] = values[0] * target.factor
    return Columns(target.series, times + target.later, tuple(values))


def moments_of_numbers(moments: NDArray[Any]) -> NDArray[np.int64]:
    """Milliseconds of times in seconds, milliseconds, microseconds or nanoseconds, told by how large they are."""
    size = np.abs(moments)
    scale = np.select([size < 1e11, size < 1e14, size < 1e17], [1e3, 1.0, 1e-3], 1e-6)
    found: NDArray[np.int64] = np.rint(moments * scale).astype(np.int64)
    return found


def read_time(text: str) -> int | None:
    """Unix milliseconds of a time in ISO's way, UTC where it has no zone, or of a number; None for anything else."""
    text = text.strip().strip('"')
    match = _TIME.fullmatch(text)
    if match is None:
        try:
            number = float(text)
        except ValueError:
            return None
        return int(moments_of_numbers(np.array([number]))[0]) if abs(number) < 1e20 else None
    year, month, day, hour, minute, second, part, zone = match.groups()
    try:
        naive = datetime(*(int(field or 0) for field in (year, month, day, hour, minute, second)), tzinfo=UTC)  # type: ignore[arg-type,misc]
    except ValueError:
        return None
    millis = (naive - _EPOCH) // timedelta(milliseconds=1) + int((part or "0").ljust(3, "0")[:3])
    return millis - _offset(zone or "")


def _offset(zone: str) -> int:
    """Milliseconds a zone is ahead of UTC."""
    if zone in ("", "Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * 60 + int(digits[2:])) * 60_000


def _time_query(column: str, example: str) -> tuple[str, bool, str] | None:
    """How DuckDB reads a column of times like this one, whether they are numbers, and what is true of each that is
    written in the same way. None where line by line is surer."""
    match = _TIME.fullmatch(example.strip())
    if match is None:
        return (column, True, f"{column} IS NOT NULL") if _is_number(example) else None
    zone = match[8] or ""
    body = f"rtrim(left({column}, length({column}) - {len(zone)}))" if zone else column
    sure = f"regexp_full_match({body}, '[0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}}([ T][0-9:.]+)?')"
    if zone:
        sure += f" AND ends_with({column}, '{zone}')"
    return f"epoch_ms(CAST({body} AS TIMESTAMP)) - ({_offset(zone)})", False, sure


def _filled(values: Any) -> NDArray[np.float64]:
    return np.ma.filled(values, np.nan) if isinstance(values, np.ma.MaskedArray) else values


def _read_start(source: Any) -> bytes:
    """Without a byte order mark; texts of two bytes a letter are not read."""
    start = b""
    try:
        while len(start) < HEAD_BYTES and (more := source.read1(HEAD_BYTES)):
            start += more
    except (EOFError, OSError, ValueError, zlib.error, BadZipFile) as error:
        if not start:
            raise Malformed(f"Nothing of it can be read: it is damaged ({type(error).__name__}).") from error
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Refused("It is written in UTF-16: save it as UTF-8.")
    start = start.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    if b"\x00" in start:
        raise Refused("It is no text: its form is not known here.")
    return start


def _sniff(lines: Sequence[str]) -> Dialect:
    """The delimiter that cuts most lines into the same number of fields."""
    best: tuple[int, int, str] = (0, 0, "")
    for delimiter in _DELIMITERS:
        widths = [len(fields) for fields in csv.reader(lines, delimiter=delimiter)]
        width = max(set(widths), key=widths.count)
        if width > 1:
            best = max(best, (widths.count(width), width, delimiter), key=lambda found: found[:2])
    if not best[2]:
        raise Refused("It is no table: its lines are not cut by a comma, a semicolon, a tab or a bar.")
    _, width, delimiter = best
    first = next(csv.reader([lines[0]], delimiter=delimiter))
    header = len(first) == width and all(read_time(field) is None and not _is_number(field) for field in first)
    comma = delimiter == ";" and any(re.search(r"\d,\d", line) for line in lines[1:])
    return Dialect(delimiter, tuple(map(clean_name, first)) if header else None, width, comma)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _split(dialect: Dialect, lines: Sequence[bytes], keep_empty: bool = False) -> Iterator[list[str]]:
    for line in lines:
        fields = next(csv.reader([line.decode("utf-8", "replace").strip("\r\x00")], delimiter=dialect.delimiter), [])
        if fields or keep_empty:
            yield [field.strip() for field in fields]


def _describe(name: str, dialect: Dialect, rows: Sequence[Sequence[str]]) -> FileHead:
    whole = [row for row in rows if len(row) == dialect.width]
    symbol = symbol_column(dialect.names)
    time = time_column(dialect.names)
    times = [at for row in whole if (at := read_time(row[time])) is not None]
    if not times:
        raise Refused("No row of it has a time that can be read: ISO's way, or a number since 1970.")
    said = whole[0][symbol] if symbol is not None and whole else None
    return FileHead(name, dialect.names, dialect.width, said, common_step(times))


def common_step(times: Sequence[int]) -> int | None:
    """How far most rows are from the next."""
    steps = [abs(after - before) for before, after in pairwise(times) if after != before]
    return max(set(steps), key=steps.count) if steps else None
