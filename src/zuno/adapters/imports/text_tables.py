"""Tables in text: delimiter, header and times are detected, and rows are read block by block.

A clean block is read in columns by DuckDB. Any other is read line by line: slower, and every bad line is named.
"""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from sys import maxsize
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from zuno.adapters.imports.layouts import (
    FileHead,
    RecognisedFile,
    SeriesColumns,
    clean_name,
    find_layout,
    is_about,
    symbol_column,
    time_column,
)
from zuno.kernel.errors import Malformed, Refused
from zuno.kernel.text import plain_text
from zuno.trading.measure.columns import WIDTH
from zuno.trading.model.market import MacroRelease, Series
from zuno.trading.ports.imports import DAY_FIRST, ISO, MONTH_FIRST, REPEATED_HEADER, ImportBlock, UnreadLine
from zuno.trading.ports.series import Columns

if TYPE_CHECKING:
    import duckdb

BLOCK_BYTES: Final = 12 * 2**20
PIECE_BYTES: Final = 2**20
HEAD_BYTES: Final = 2**16
LOOKED_AT: Final = 200
"""Lines from which the form of a file is detected."""
_DELIMITERS: Final = ",;\t|"
_CLOCK: Final = (
    r"(?:,?[ T](\d\d?)(?::(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?(?:[ -]?([AaPp])[Mm])?)?\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)?"
)
_TIME: Final = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)" + _CLOCK)
_LOCAL_TIME: Final = re.compile(r"(\d\d?)[-/.](\d\d?)[-/.](\d{4})" + _CLOCK)
_Rows: TypeAlias = tuple[NDArray[np.int64], dict[int, NDArray[np.float64]], NDArray[np.int64], list[UnreadLine]]
"""Times, numbers by their column, lines in the file, and the lines that could not be read."""
_ORDER: Final = {ISO: (0, 1, 2), DAY_FIRST: (2, 1, 0), MONTH_FIRST: (2, 0, 1)}
"""Where year, month and day stand."""


@dataclass(frozen=True, slots=True)
class Dialect:
    delimiter: str
    names: tuple[str, ...] | None
    width: int
    skip: int = 0
    """Lines before the first row: the header, and what stands above it."""
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
        dates: str,
    ) -> None:
        self._raw, self._close, self._done, self._dates = source, close, done, dates
        self._source, self._head = _open_start(source)
        complete = self._head.rpartition(b"\n")[0] or self._head
        lines = complete.split(b"\n")[:LOOKED_AT]
        if not any(map(bytes.strip, lines)):
            raise Refused("It is empty.")
        self._dialect = _sniff([line.decode("utf-8", "replace") for line in lines])
        names, width = self._dialect.names, self._dialect.width
        whole = (row for row in _split(self._dialect, lines[self._dialect.skip :]) if len(row) == width)
        first, symbol = next(whole, None), symbol_column(names)
        own = None if symbol is None or first is None else first[symbol]
        head = FileHead(name, names, width, own, common_step(self._read_times(lines)))
        self._layout = find_layout(head, series, asked)

    @property
    def notes(self) -> tuple[str, ...]:
        above = (f"its header is line {self._dialect.skip}",) if self._dialect.skip > 1 else ()
        return self._layout.notes + above

    def close(self) -> None:
        self._close()

    def _read_times(self, lines: Sequence[bytes]) -> list[int]:
        """Of these lines. Where an order of dates was named, every date of the file has to have it."""
        time, place, times = time_column(self._dialect.names), 0, []
        blocks = iter([b"\n".join(lines) + b"\n"]) if self._dates == ISO else self._cut()
        with suppress(Malformed):  # told where it is read
            for block in blocks:
                for fields in _split(self._dialect, block.split(b"\n")[:-1]):
                    place += 1
                    if place > self._dialect.skip and len(fields) == self._dialect.width:
                        at = read_time(fields[time], self._dates, place)
                        times += [] if at is None or place > LOOKED_AT else [at]
        if self._dates != ISO:
            self._raw.seek(0)
            self._source, self._head = _open_start(self._raw)
        if not times:
            known = "2024-12-31 23:00, a number since 1970, or by `--dates` 31/12/2024 or 12/31/2024"
            raise Refused(f"No row of it has a time that can be read: {known}.")
        return times

    def blocks(self) -> Iterator[ImportBlock]:
        line = 1
        with TemporaryDirectory(prefix="zuno-import-") as folder, open_duck() as duck:
            for block in self._cut(BLOCK_BYTES if self._layout.targets[0].parts == 1 else maxsize):
                text = block
                if line == 1:
                    text, line = block.split(b"\n", self._dialect.skip)[-1], 1 + self._dialect.skip
                if text.strip():
                    yield self._read_block(duck, Path(folder) / "block.csv", text, line)
                line += text.count(b"\n")

    def _cut(self, most: int = BLOCK_BYTES) -> Iterator[bytes]:
        """Whole lines, about as many bytes as that at once."""
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
            if more and size < most:
                continue
            whole = b"".join(held).replace(b"\r\n", b"\n")
            held.clear()
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
        block = self._read_columns(duck, path, text, line) or self._read_lines(text, line)
        times, numbers, lines, unread = block
        columns = tuple(build_columns(target, times, numbers) for target in self._layout.targets)
        return ImportBlock(columns, lines, tuple(unread), count, self._done(), self._layout.targets[0].parts)

    # -- in columns

    def _read_columns(self, duck: duckdb.DuckDBPyConnection, path: Path, text: bytes, line: int) -> _Rows | None:
        """None where the block has to be read line by line."""
        import duckdb

        if self._dialect.decimal_comma or b"\r" in text:
            return None
        time, symbol = self._layout.time, self._layout.symbol
        first = next(iter(_split(self._dialect, [text[: text.index(b"\n")]])), [])
        if len(first) != self._dialect.width:
            return None
        wanted = self._layout.places
        written = _time_query(f"c{time}", first[time]) if self._dates == ISO else None
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
            arrays = duck.execute(f"SELECT {chosen} FROM {table}", asked).fetchnumpy()
            if symbol is not None:
                whose = duck.execute(f"SELECT DISTINCT c{symbol} FROM {table} LIMIT 2", asked).fetchall()
                if len(whose) != 1 or not self._is_own(whose[0][0]):
                    return None
        except duckdb.Error:
            return None
        moments = arrays["moment"]
        if len(moments) != text.count(b"\n") or isinstance(moments, np.ma.MaskedArray) or not np.all(arrays["sure"]):
            return None
        times = moments_of_numbers(moments) if as_number else moments.astype(np.int64)
        numbers = {place: np.ma.filled(arrays[f"c{place}"], np.nan) for place in wanted}
        return times, numbers, np.arange(line, line + len(times), dtype=np.int64), []

    def _is_own(self, symbol: str | None) -> bool:
        return is_about(symbol or "", self._layout.targets[0].series)

    # -- line by line

    def _read_lines(self, text: bytes, line: int) -> _Rows:
        places = self._layout.places
        rows: list[list[float]] = []
        unread: list[UnreadLine] = []
        for place, fields in enumerate(_split(self._dialect, text.split(b"\n")[:-1]), line):
            if not any(fields):
                continue
            try:
                rows.append([place, *self._read_fields(fields, places, place)])
            except ValueError as error:
                unread.append(UnreadLine(place, str(error)))
        lines, times, *numbers = np.array(rows, dtype=np.float64).reshape(-1, 2 + len(places)).T
        return times.astype(np.int64), dict(zip(places, numbers, strict=True)), lines.astype(np.int64), unread

    def _read_fields(self, fields: Sequence[str], places: Sequence[int], line: int) -> list[float]:
        """Its time, and the numbers in these places."""
        if len(fields) != self._dialect.width:
            raise ValueError(f"it has {len(fields)} fields, the others have {self._dialect.width}")
        names = self._dialect.names
        if names is not None and all(clean_name(field) == name for field, name in zip(fields, names, strict=True)):
            raise ValueError(REPEATED_HEADER)
        symbol = self._layout.symbol
        if symbol is not None and not self._is_own(fields[symbol]):
            raise ValueError(f"it is about {plain_text(fields[symbol], 40)}")
        at = read_time(fields[self._layout.time], self._dates, line)
        if at is None:
            raise ValueError(f"{plain_text(fields[self._layout.time], 40)!r} is no time")
        return [at, *(self._read_number(fields[place]) for place in places)]

    def _read_number(self, text: str) -> float:
        if not text.strip():
            return float("nan")
        try:
            return float(text.replace(",", ".") if self._dialect.decimal_comma else text)
        except ValueError:
            raise ValueError(f"{plain_text(text, 40)!r} is no number") from None


def open_duck() -> duckdb.DuckDBPyConnection:
    import duckdb

    quiet = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    return duckdb.connect(config={"threads": 1, **quiet})


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
    """Milliseconds of times in seconds, milliseconds, microseconds or nanoseconds, told apart by their size."""
    size = np.abs(moments)
    scale = np.select([size < 1e11, size < 1e14, size < 1e17], [1e3, 1.0, 1e-3], 1e-6)
    rounded: NDArray[np.int64] = np.rint(moments * scale).astype(np.int64)
    return rounded


def read_time(text: str, dates: str, line: int) -> int | None:
    """Unix milliseconds of a time (UTC without a zone) or number, else None. `Refused` for another order of dates."""
    text = text.strip().strip('"')
    match = _TIME.fullmatch(text)
    local = _LOCAL_TIME.fullmatch(text) if match is None else None
    if match is None and local is None:
        try:
            number = float(text)
        except ValueError:
            return None
        return int(moments_of_numbers(np.array([number]))[0]) if abs(number) < 1e20 else None
    if (local is None) != (dates == ISO):
        which = "its dates are not all ISO's: say their order by `--dates day-first` or `--dates month-first`"
        raise Refused(f"Line {line}: {text!r}; {which if dates == ISO else f'this is not {dates}'}.")
    *date, hour, minute, second, part, half, zone = (match or local).groups()  # type: ignore[union-attr]
    year, month, day = (int(date[place]) for place in _ORDER[dates])
    if local is not None and month > 12:
        raise Refused(f"Line {line}: {text!r} has no month {month}, so that its dates are not {dates}.")
    if half is not None:
        hour = int(hour) % 12 + 12 * (half in "Pp") if 1 <= int(hour) <= 12 else 24
    try:
        naive = datetime(year, month, day, int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC)
    except ValueError:
        return None
    millis = int(naive.timestamp()) * 1_000 + int((part or "0").ljust(3, "0")[:3])
    return millis - _offset(zone or "")


def _offset(zone: str) -> int:
    """Milliseconds a zone is ahead of UTC."""
    if zone in ("", "Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * 60 + int(digits[2:])) * 60_000


def _time_query(column: str, example: str) -> tuple[str, bool, str] | None:
    """How DuckDB reads times like this one: query, numeric, a condition. None: read line by line."""
    match = _TIME.fullmatch(example.strip())
    if match is None:
        return (column, True, f"{column} IS NOT NULL") if _is_number(example) else None
    if match[8]:
        return None
    zone = match[9] or ""
    body = f"rtrim(left({column}, length({column}) - {len(zone)}))" if zone else column
    sure = f"regexp_full_match({body}, '[0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}}([ T][0-9:.]+)?')"
    if zone:
        sure += f" AND ends_with({column}, '{zone}')"
    return f"epoch_ms(CAST({body} AS TIMESTAMP)) - ({_offset(zone)})", False, sure


class _JsonRows:
    """The rows of a JSON list of lists as lines, as of freqtrade's files."""

    def __init__(self, source: Any, start: bytes) -> None:
        self._source, self._start, self._end = source, start, b""

    def read1(self, size: int) -> bytes:
        """`EOFError` where the list does not end."""
        while more := self._start or self._source.read1(size):
            text = self._end + more.translate(None, b"[ \t\r\n")
            rows = text.rstrip(b"]")
            self._start, self._end = b"", text[len(rows) :]
            if rows:
                return rows.replace(b"],", b"\n")
        if self._end != b"]]":
            raise EOFError
        return b""


def _open_start(source: Any) -> tuple[Any, bytes]:
    """A source of lines, and the first of them."""
    start = _read_start(source)
    if not (json := start.lstrip()).startswith((b"[", b"{")):
        return source, start
    if not json[1:].lstrip().startswith(b"["):
        raise Refused("It is JSON, and no list of rows as freqtrade's: [[time, open, high, low, close, volume], …].")
    rows = _JsonRows(source, start)
    return rows, _read_start(rows)


def _read_start(source: Any) -> bytes:
    """Some whole lines, without a byte order mark; texts of two bytes a letter are not read."""
    start = b""
    try:
        while (len(start) < HEAD_BYTES or start.count(b"\n") < 3) and (more := source.read1(HEAD_BYTES)):
            start += more
            if len(start) > BLOCK_BYTES:
                break
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
        widths = [len(_split_line(line, delimiter)) for line in lines if line.strip()]
        width = max(set(widths), key=widths.count)
        if width > 1:
            best = max(best, (widths.count(width), width, delimiter), key=lambda candidate: candidate[:2])
    if not best[2]:
        raise Refused("It is no table: its lines are not cut by a comma, a semicolon, a tab or a bar.")
    _, width, delimiter = best
    # What stands above a header, as CryptoDataDownload's address or Excel's `sep=;`, has fewer fields.
    place, first = next(
        (place, fields) for place, line in enumerate(lines) if len(fields := _split_line(line, delimiter)) == width
    )
    header = not any(_is_number(field) or _TIME.fullmatch(field) or _LOCAL_TIME.fullmatch(field) for field in first)
    skip = place + 1 if header else 0
    comma = delimiter != "," and any(re.search(r"\d,\d", line) for line in lines[skip:])
    return Dialect(delimiter, tuple(map(clean_name, first)) if header else None, width, skip, comma)


def _split_line(line: str, delimiter: str) -> list[str]:
    line = line.strip("\r\x00")
    fields = line.split(delimiter)
    if '"' in line:
        with suppress(csv.Error):  # a quoted one is longer than any is
            fields = next(csv.reader([line], delimiter=delimiter), [])
    return [field.strip() for field in fields]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _split(dialect: Dialect, lines: Sequence[bytes]) -> Iterator[list[str]]:
    return (_split_line(line.decode("utf-8", "replace"), dialect.delimiter) for line in lines)


def common_step(times: Sequence[int]) -> int | None:
    steps = [after - before for before, after in pairwise(sorted(set(times)))]
    return max(set(steps), key=steps.count) if steps else None
