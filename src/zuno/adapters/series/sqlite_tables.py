"""The tables of `series.db`: how rows become columns or documents, and what is asked of them on a connection."""

from __future__ import annotations

import json
import sqlite3
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from zuno.adapters.series.merge_rows import BAD, Key, RowNote, RowPut, StoredRow
from zuno.adapters.series.parquet_files import SealedFile
from zuno.kernel.canonical import encode_rows
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Millis
from zuno.trading.model.bundle import decode_row, encode_row
from zuno.trading.model.market import (
    DAY_MS,
    MINUTE_MS,
    Book,
    Candle,
    Funding,
    Heartbeat,
    Level,
    MacroRelease,
    MarkAndIndex,
    OptionChain,
    Series,
    Side,
    TapeEvent,
    Text,
)
from zuno.trading.ports.series import Origin, RejectedRow, Slice, Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NUMBERS: Final = 6
_FAST: Final = 1
"""Compression level: more would slow bulk writes and save a tenth."""


@dataclass(frozen=True, slots=True)
class RowShape:
    """How rows of one kind are stored. Both tables have the columns series, at, id and known."""

    table: str
    """rows: up to six numbers; documents: canonical JSON, compressed."""
    columns: tuple[str, ...]
    """What must be read to make a row again."""
    to_columns: Callable[[Any], tuple[Any, ...]]
    """A row's own columns: six numbers, or the document."""
    from_columns: Callable[[Sequence[Any]], Any]


def shape_of(row: type[Any]) -> RowShape:
    return _SHAPES[row]


def _numeric(count: int, kind: type[Any]) -> RowShape:
    rest = (None,) * (NUMBERS - count)
    # Its `_make` counts the columns each time, and rows come by ten thousands.
    from_columns = partial(tuple.__new__, kind)
    columns = ("at", *(f"v{place}" for place in range(count)))
    return RowShape("rows", columns, lambda row: (*row[1:], *rest), from_columns)


_new_event = partial(tuple.__new__, TapeEvent)


def _strike(columns: Sequence[Any]) -> TapeEvent:
    at, long, price, quantity, usd, name = columns
    return _new_event((at, Side.LONG if long else Side.SHORT, price, quantity, usd, name))


def _print(columns: Sequence[Any]) -> MacroRelease:
    at, value, released = columns
    return MacroRelease(at, value, Millis(int(released)))


def _document(kind: type[Any]) -> RowShape:
    def from_columns(columns: Sequence[Any]) -> Any:
        at, body = columns
        plain = orjson.loads(zlib.decompress(body))
        if not isinstance(plain, list):
            raise Malformed(f"A {kind.__name__} is kept as a list.")
        return decode_row(kind, [at, *plain])

    def to_columns(row: Any) -> tuple[bytes]:
        return (zlib.compress(encode_rows(encode_row(row)[1:]), _FAST),)  # type: ignore[arg-type]  # lists and text

    return RowShape("documents", ("at", "body"), to_columns, from_columns)


_SHAPES: Final[Mapping[type[Any], RowShape]] = {
    Candle: _numeric(6, Candle),
    Funding: _numeric(2, Funding),
    Level: _numeric(1, Level),
    MarkAndIndex: _numeric(2, MarkAndIndex),
    Heartbeat: _numeric(0, Heartbeat),
    MacroRelease: RowShape("rows", ("at", "v0", "id"), lambda row: (row.value, None, None, None, None, None), _print),
    TapeEvent: RowShape(
        "rows",
        ("at", "v0", "v1", "v2", "v3", "id"),
        lambda row: (row.side is Side.LONG, row.price, row.quantity, row.usd, None, None),
        _strike,
    ),
    Book: _document(Book),
    OptionChain: _document(OptionChain),
    Text: _document(Text),
}

VERSION: Final = "1"
NUMBER_COLUMNS: Final = ", ".join(f"v{place}" for place in range(NUMBERS))
OWN: Final = {"rows": NUMBER_COLUMNS, "documents": "body"}
SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS series (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    f"""CREATE TABLE IF NOT EXISTS rows (
        series INTEGER NOT NULL, at INTEGER NOT NULL, id TEXT NOT NULL, known INTEGER NOT NULL,
        {", ".join(f"v{place} REAL" for place in range(NUMBERS))},
        PRIMARY KEY (series, at, id)) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS documents (
        series INTEGER NOT NULL, at INTEGER NOT NULL, id TEXT NOT NULL, known INTEGER NOT NULL, body BLOB NOT NULL,
        UNIQUE (series, at, id))""",
    """CREATE TABLE IF NOT EXISTS notes (
        series INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, detail TEXT NOT NULL,
        replaced BLOB, mended TEXT, known INTEGER, UNIQUE (series, at, kind, id, detail))""",
    # Files of history, and how much of which series each holds.
    """CREATE TABLE IF NOT EXISTS files (
        name TEXT PRIMARY KEY, size INTEGER NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS sealed (
        series INTEGER NOT NULL, file TEXT NOT NULL, count INTEGER NOT NULL, first INTEGER NOT NULL,
        last INTEGER NOT NULL, PRIMARY KEY (series, file)) WITHOUT ROWID""",
    # Rows of those files that no longer count, because one in the table took their place.
    """CREATE TABLE IF NOT EXISTS superseded (
        series INTEGER NOT NULL, at INTEGER NOT NULL, id TEXT NOT NULL, file TEXT NOT NULL,
        PRIMARY KEY (series, at, id, file)) WITHOUT ROWID""",
    # What stood where other numbers stand now, and from when until when that was what was known.
    f"""CREATE TABLE IF NOT EXISTS earlier (
        series INTEGER NOT NULL, at INTEGER NOT NULL, id TEXT NOT NULL, known INTEGER NOT NULL, until INTEGER NOT NULL,
        {", ".join(f"v{place} REAL" for place in range(NUMBERS))}, body BLOB,
        PRIMARY KEY (series, at, id, known)) WITHOUT ROWID""",
    # Since when all of a series is known, for those of which no row was ever put in another's place.
    "CREATE TABLE IF NOT EXISTS latest (series INTEGER PRIMARY KEY, known INTEGER NOT NULL)",
    # How rows came in, and from which file.
    """CREATE TABLE IF NOT EXISTS sources (
        series INTEGER NOT NULL, source TEXT NOT NULL, file TEXT NOT NULL, rows INTEGER NOT NULL,
        first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (series, source, file)) WITHOUT ROWID""",
)
TABLES: Final = (
    "series", "rows", "documents", "notes", "files", "sealed", "superseded", "earlier", "latest", "sources"
)  # fmt: skip
NOTED: Final = """SELECT name, kind, at, id, detail, mended, replaced FROM notes JOIN series ON number = series
    ORDER BY name, at, kind, id, detail"""


def read_origin(connection: sqlite3.Connection) -> Origin | None:
    meta = dict(connection.execute("SELECT name, value FROM meta WHERE name IN ('synthetic', 'label')").fetchall())
    return Origin(meta["synthetic"] == "1", meta["label"]) if len(meta) == 2 else None


def write_origin(connection: sqlite3.Connection, origin: Origin) -> None:
    meta = (("synthetic", str(int(origin.synthetic))), ("label", origin.label))
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta)


def note_source(
    connection: sqlite3.Connection, number: int, source: Source, file: str, rows: int, first: int, last: int
) -> None:
    connection.execute(
        """INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
        rows = rows + excluded.rows, first = MIN(first, excluded.first), last = MAX(last, excluded.last)""",
        (number, source, file, rows, first, last),
    )


def is_empty(connection: sqlite3.Connection) -> bool:
    return not any(
        connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in ("rows", "documents", "sealed")
    )


def select_rows(
    connection: sqlite3.Connection, shape: RowShape, columns: Sequence[str], number: int, asked: TableRead
) -> list[tuple[Any, ...]]:
    limit, order = ("", "") if asked.newest is None else (f" LIMIT {int(asked.newest)}", " DESC")
    besides = "" if asked.besides is None else " AND (at > ? OR known > ?)"
    rows = connection.execute(
        f"SELECT {', '.join(columns)} FROM {shape.table} WHERE series = ? AND at BETWEEN ? AND ? "
        f"AND known <= ?{besides} ORDER BY at{order}, id{order}{limit}",
        (number, asked.since, asked.until, asked.known_by, *(asked.besides or ())),
    ).fetchall()
    return rows if asked.newest is None else rows[::-1]


def find_pending(
    connection: sqlite3.Connection, table: str, number: int, since: Millis, until: Millis, known_by: Millis
) -> Millis | None:
    """The time of the first row that is here and was not known by then."""
    row = connection.execute(
        f"SELECT at FROM {table} WHERE series = ? AND at BETWEEN ? AND ? AND known > ? ORDER BY at LIMIT 1",
        (number, since, until, known_by),
    ).fetchone()
    return None if row is None else Millis(row[0])


def find_number(connection: sqlite3.Connection, series: Series[Any]) -> int | None:
    row = connection.execute("SELECT number FROM series WHERE name = ?", (str(series),)).fetchone()
    return None if row is None else int(row[0])


def find_numbers(connection: sqlite3.Connection, several: Sequence[Series[Any]]) -> list[int | None]:
    known = dict(connection.execute("SELECT name, number FROM series").fetchall())
    return [known.get(str(series)) for series in several]


def has_sealed(connection: sqlite3.Connection, number: int) -> bool:
    return connection.execute("SELECT 1 FROM sealed WHERE series = ? LIMIT 1", (number,)).fetchone() is not None


def keep_latest(
    connection: sqlite3.Connection, table: str, number: int, puts: Sequence[RowPut], standing: Mapping[Key, StoredRow]
) -> None:
    """Before these are put. A row in another's place may lower the latest: then it is looked for when it is asked."""
    if any((at, name) in standing for at, name, _, _ in puts):
        connection.execute("DELETE FROM latest WHERE series = ?", (number,))
    elif puts:
        raise_latest(connection, table, number, max(known for _, _, known, _ in puts))


def raise_latest(connection: sqlite3.Connection, table: str, number: int, newest: int) -> None:
    """Before rows that take no other's place are put, of which this is the latest known."""
    begun = connection.execute(f"SELECT 1 FROM {table} WHERE series = ? LIMIT 1", (number,)).fetchone()
    if begun is None and not has_sealed(connection, number):
        connection.execute("INSERT OR REPLACE INTO latest VALUES (?, ?)", (number, newest))
    else:
        connection.execute("UPDATE latest SET known = MAX(known, ?) WHERE series = ?", (newest, number))


def ensure_number(connection: sqlite3.Connection, series: Series[Any]) -> int:
    connection.execute("INSERT OR IGNORE INTO series (name) VALUES (?)", (str(series),))
    return int(connection.execute("SELECT number FROM series WHERE name = ?", (str(series),)).fetchone()[0])


def _has_known_column(connection: sqlite3.Connection) -> bool:
    asked = "SELECT 1 FROM pragma_table_info('notes') WHERE name = 'known'"
    return connection.execute(asked).fetchone() is not None


def add_known_column(connection: sqlite3.Connection) -> None:
    """For files of an older Zuno. When their notes became known is unknown, so no bundle includes them."""
    if not _has_known_column(connection):
        connection.execute("ALTER TABLE notes ADD COLUMN known INTEGER")


def read_rejected(
    connection: sqlite3.Connection, slices: Sequence[Slice[Any]], known_by: Millis
) -> tuple[tuple[RejectedRow, ...], ...]:
    """All of them by one question: there are few or none, and every series has to be looked at."""
    rejected: list[list[RejectedRow]] = [[] for _ in slices]
    wanted = [(place, str(asked.series), asked.since, asked.until) for place, asked in enumerate(slices)]
    if wanted and _has_known_column(connection):
        for place, at, detail in connection.execute(
            f"""WITH asked (place, name, since, until) AS (VALUES {", ".join(["(?, ?, ?, ?)"] * len(wanted))})
            SELECT place, at, detail FROM asked CROSS JOIN series ON series.name = asked.name
            CROSS JOIN notes ON notes.series = number AND at BETWEEN since AND until
            WHERE kind = ? AND known <= ? ORDER BY at, detail""",
            (*chain.from_iterable(wanted), BAD, known_by),
        ):
            rejected[place].append(RejectedRow(Millis(at), detail))
    return tuple(map(tuple, rejected))


def write_notes(connection: sqlite3.Connection, number: int, series: Series[Any], notes: Sequence[RowNote]) -> None:
    to_columns = shape_of(series.row).to_columns
    # What happens again is news again, whatever was done about it the last time.
    connection.executemany(
        """INSERT INTO notes (series, at, kind, id, detail, replaced, mended, known) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET replaced = excluded.replaced, mended = excluded.mended,
        known = MIN(ifnull(known, excluded.known), excluded.known)""",
        [
            (number, note.at, note.kind, note.id, note.detail, replaced, note.mended, note.known)
            for note in notes
            for replaced in [None if note.replaced is None else _pack(to_columns(note.replaced))]
        ],
    )


def _pack(columns: Sequence[Any]) -> bytes:
    """A row that was replaced, as one value: its document, or its numbers."""
    return columns[0] if isinstance(columns[0], bytes) else json.dumps(columns).encode()


def unpack_row(series: Series[Any], at: int, own: str, packed: bytes) -> Any:
    shape = shape_of(series.row)
    held: dict[str, Any] = {"at": at, "id": own, "body": packed}
    if shape.table == "rows":
        held.update((f"v{place}", number) for place, number in enumerate(json.loads(packed)))
    return shape.from_columns([held[column] for column in shape.columns])


def list_files(connection: sqlite3.Connection) -> list[SealedFile]:
    return [SealedFile(*file) for file in connection.execute("SELECT name, size, digest FROM files ORDER BY name")]


def add_file(connection: sqlite3.Connection, file: SealedFile, spans: Sequence[tuple[int, int, int, int]]) -> None:
    """`spans`: of each series in it the number, how many rows there are, and the times of the first and the last."""
    connection.execute("INSERT INTO files VALUES (?, ?, ?)", (file.name, file.size, file.digest))
    connection.executemany(
        "INSERT INTO sealed (series, file, count, first, last) VALUES (?, ?, ?, ?, ?)",
        [(number, file.name, *rest) for number, *rest in spans],
    )


def next_part_name(connection: sqlite3.Connection, table: str, month: str) -> str:
    parts = connection.execute("SELECT COUNT(*) FROM files WHERE name LIKE ?", (f"{table}-{month}-%",)).fetchone()[0]
    return f"{table}-{month}-{parts + 1:04}.parquet"


def among_collected(connection: sqlite3.Connection, number: int, at: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these times lie between the first and the last collected row (or row without a source)."""
    first, last, noted = connection.execute(
        """SELECT MIN(first) FILTER (WHERE source = ?1), MAX(last) FILTER (WHERE source = ?1), COUNT(*)
        FROM sources WHERE series = ?2""",
        (Source.COLLECTED, number),
    ).fetchone()
    if not noted:
        first, last = connection.execute(
            """SELECT MIN(low), MAX(high) FROM (SELECT MIN(at) low, MAX(at) high FROM rows WHERE series = ?1
            UNION ALL SELECT MIN(first), MAX(last) FROM sealed WHERE series = ?1)""",
            (number,),
        ).fetchone()
    import numpy as np

    return np.asarray((at >= first) & (at <= last) if first is not None else at != at, dtype=bool)


_BEATS: Final = "FROM rows WHERE series = ? AND at BETWEEN ? AND ? AND known <= ? ORDER BY at"


def read_runs(
    connection: sqlite3.Connection, number: int, span: tuple[int, int], known_by: Millis, cache: RowCache
) -> list[tuple[Millis, int]] | None:
    """The first minute of each run of heartbeats, and how many it has. A day of which every minute is there is counted
    once, another one listed; None where something is no time."""
    ends = [
        connection.execute(f"SELECT at {_BEATS}{order} LIMIT 1", (number, *span, known_by)).fetchone()
        for order in ("", " DESC")
    ]
    if None in ends or any(type(at) is not int or at < 0 for (at,) in ends):
        return None
    (first,), (last,) = ends
    runs: list[tuple[Millis, int]] = []
    for day in range(first // DAY_MS * DAY_MS, last + 1, DAY_MS):
        low, high = max(day, first), min(day + DAY_MS - 1, last)
        begins, whole = -(-low // MINUTE_MS) * MINUTE_MS, high // MINUTE_MS - (low - 1) // MINUTE_MS
        daily: list[tuple[int, int]] | None = [(begins, whole)]
        if not cache.is_whole_day(number, day, known_by):
            (count,) = connection.execute(
                f"SELECT SUM(1 - 2 * (at % {MINUTE_MS})) {_BEATS}", (number, low, high, known_by)
            ).fetchone()
            if count != whole:
                daily = _list_runs(connection, (number, low, high, known_by))
            elif whole == DAY_MS // MINUTE_MS:
                cache.keep_whole_day(number, day, known_by)
        if daily is None:
            return None
        for start, length in daily:
            if runs and start == runs[-1][0] + runs[-1][1] * MINUTE_MS:
                start, length = runs[-1][0], runs.pop()[1] + length
            runs.append((Millis(start), length))
    return runs


def _list_runs(connection: sqlite3.Connection, asked: tuple[int, int, int, int]) -> list[tuple[int, int]] | None:
    import numpy as np

    (times,) = connection.execute(f"SELECT group_concat(at) FROM (SELECT at {_BEATS})", asked).fetchone()
    if not times:
        return []
    if times.encode().translate(None, b"0123456789,"):
        return None
    minutes = np.fromstring(times, dtype=np.int64, sep=",")
    first = np.concatenate(([0], np.flatnonzero(np.diff(minutes) != MINUTE_MS) + 1))
    counts = np.diff(first, append=len(minutes))
    return list(zip(minutes[first].tolist(), counts.tolist(), strict=True))


MOST_ROWS: Final = 20_000
"""Of one series; longer reads are not cached."""
_time_of = attrgetter("at")


@dataclass(frozen=True, slots=True)
class TableRead:
    """The rows of a time that were known by then, oldest first."""

    since: Millis
    until: Millis
    known_by: Millis
    newest: int | None = None
    """Only so many of the last."""
    besides: tuple[Millis, Millis] | None = None
    """Without those up to the first moment that were known by the second."""


ReadRows: TypeAlias = Callable[[TableRead], list[Any]]
FindPending: TypeAlias = Callable[[Millis, Millis, Millis], Millis | None]
"""The first row between two moments that was not known by a third."""


@dataclass(slots=True)
class CachedRows:
    """What stands in the table from `since` to `until` and was known by `known_by`; some rows before may be here."""

    since: Millis
    until: Millis
    known_by: Millis
    reach: int
    """How long the time was that was asked for."""
    rows: list[Any]
    settled: Millis
    """All rows before it are known, or not in the table."""

    def choose(self, asked: TableRead, rows: list[Any]) -> list[Any] | None:
        """Of rows up to the end that was asked for those that were; None where there may be more of them."""
        chosen = rows[bisect_left(rows, asked.since, key=_time_of) :]
        if asked.since < self.since and (asked.newest is None or len(chosen) < asked.newest):
            return None
        return chosen if asked.newest is None else chosen[-asked.newest :]


class RowCache:
    """Valid as long as writers call `forget` and `check_version` is called before reading."""

    def __init__(self) -> None:
        self._held: dict[int, CachedRows] = {}
        self._whole_days: dict[int, dict[int, Millis]] = {}
        """Of series of minutes: by its first moment a day that has them all, and by when it was known to."""
        self._answers: dict[Slice[Any], Sequence[Any]] = {}
        """What was asked as it is known at `_known_by`: the markets of a desk share many series."""
        self._known_by: Millis | None = None
        self._version: int | None = None

    def check_version(self, version: int) -> None:
        """Of the file, which changes when another process writes."""
        if version != self._version:
            self.clear()
            self._version = version

    def forget(self, series: int, first: int) -> None:
        """Drop what is cached from that time on."""
        self._answers.clear()
        self._whole_days.pop(series, None)
        held = self._held.get(series)
        if held is not None and first <= held.until:
            del self._held[series]

    def clear(self) -> None:
        self._answers.clear()
        self._held.clear()
        self._whole_days.clear()
        self._version = None

    def answer(self, asked: Slice[Any], known_by: Millis, read: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """The same question about the same moment is read once."""
        if known_by != self._known_by:
            self._answers.clear()
            self._known_by = known_by
        if (rows := self._answers.get(asked)) is None:
            rows = self._answers[asked] = read()
        return rows

    def keep_whole_day(self, series: int, day: int, known_by: Millis) -> None:
        days = self._whole_days.setdefault(series, {})
        days[day] = min(known_by, days.get(day, known_by))

    def is_whole_day(self, series: int, day: int, known_by: Millis) -> bool:
        known = self._whole_days.get(series, {}).get(day)
        return known is not None and known <= known_by

    def read(self, series: int, asked: TableRead, read_table: ReadRows, find_pending: FindPending) -> list[Any]:
        held = self._held.get(series)
        cached = None
        if held is not None and held.until > asked.until and held.known_by == asked.known_by:
            cached = held.choose(asked, held.rows[: bisect_right(held.rows, asked.until, key=_time_of)])
        elif held is not None and held.until <= asked.until and held.known_by <= asked.known_by:
            cached = self._extend(held, asked, read_table, find_pending)
        if cached is not None:
            return cached
        rows = read_table(asked)
        reach = asked.until - asked.since
        if len(rows) <= MOST_ROWS and (held is None or reach >= held.reach):
            # The first of so many may have others beside it at its moment.
            cut = asked.newest is not None and len(rows) >= asked.newest
            since = Millis(rows[0].at + 1) if cut and rows else asked.since
            settled = find_pending(since, asked.until, asked.known_by) or asked.until
            self._held[series] = CachedRows(since, asked.until, asked.known_by, reach, rows, settled)
        return rows

    def _extend(
        self, held: CachedRows, asked: TableRead, read_table: ReadRows, find_pending: FindPending
    ) -> list[Any] | None:
        """What was asked for, where what is held and what came since are all of it."""
        rows = held.rows
        if (held.until, held.known_by) != (asked.until, asked.known_by):
            besides = (held.until, held.known_by)
            since = max(held.since, held.settled)
            came = read_table(TableRead(since, asked.until, asked.known_by, besides=besides))
            if came and rows and came[0].at <= rows[-1].at:
                return None  # a hole was filled, or several events are of one moment
            rows = rows + came
        chosen = held.choose(asked, rows)
        if chosen is None:
            return None
        held.settled = find_pending(held.settled, asked.until, asked.known_by) or asked.until
        held.until, held.known_by = asked.until, asked.known_by
        held.reach = max(held.reach, asked.until - asked.since)
        oldest = Millis(asked.until - held.reach)
        if oldest > held.since:
            held.since, rows = oldest, rows[bisect_left(rows, oldest, key=_time_of) :]
        held.rows = rows
        return chosen
