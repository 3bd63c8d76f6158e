"""The market's past in one SQLite file for the present, and files of Parquet for what was sealed.

Every row is in exactly one place: in the file, or in one file of history unless a later row has superseded it there.
Numbers that others took the place of are kept aside, in a table that is small and only asked for what was known before.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from heapq import merge
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from zuno.adapters.series.merge_rows import (
    BAD,
    CheckedBatch,
    Key,
    RowNote,
    RowPut,
    StoredRow,
    add_counts,
    check_batches,
    check_origin,
    declare_origin,
    merge_batch,
    newest_prints,
    sources_of,
)
from zuno.adapters.series.parquet_files import FileGone, ParquetFiles, SealedFile
from zuno.adapters.series.row_cache import RowCache, TableRead
from zuno.adapters.series.row_shapes import NUMBERS, RowShape, shape_of
from zuno.adapters.sqlite_file import SqliteFile
from zuno.kernel.errors import Broken, Malformed
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, MINUTE_MS, Heartbeat, Heartbeats, MacroRelease, Row, Series, parse_series
from zuno.trading.ports.series import (
    Batch,
    Columns,
    ColumnsWritten,
    Flaw,
    Origin,
    RejectedRow,
    RenewedStore,
    RowSource,
    SeriesSnapshot,
    Slice,
    Source,
    Span,
    WriteCounts,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

R = TypeVar("R", bound=Row)
T = TypeVar("T")
VERSION: Final = "1"
_REMEDY: Final = "put it back from a copy, or move it away"
_PATIENCE: Final = 180_000
"""Milliseconds somebody waits for another's write: a whole market is one, and takes seconds on a machine at ease."""
_SEALED_AT_ONCE: Final = 5_000
"""Rows of one month that are written as a file of history when they come in columns; fewer are quicker in the table."""
_FEW: Final = 200
"""Keys looked up one by one; more are read as one stretch."""
_NUMBERS: Final = ", ".join(f"v{place}" for place in range(NUMBERS))
_OWN: Final = {"rows": _NUMBERS, "documents": "body"}
_SCHEMA: Final = (
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
_TABLES: Final = (
    "series", "rows", "documents", "notes", "files", "sealed", "superseded", "earlier", "latest", "sources"
)  # fmt: skip


class SqliteSeries:
    """`series.db` of a folder and `history/` beside it. The first write makes them; reading makes nothing."""

    def __init__(self, folder: Path, origin: Origin) -> None:
        """`origin`: whose past a store that is not there yet will be; one that is there keeps its own."""
        self._wanted = origin
        self._remedy = "`zuno data synth` makes it anew" if origin.synthetic else _REMEDY
        self._file = SqliteFile(folder / "series.db", self._prepare, f"{self._remedy}.")
        self._parquet = ParquetFiles(folder / "history")
        self._cache = RowCache()

    @property
    def origin(self) -> Origin:
        return self._file.read(_origin) or self._wanted

    async def write(self, batches: Sequence[Batch[Any]]) -> WriteCounts:
        return await asyncio.to_thread(self._write, batches)

    async def write_columns(
        self, columns: Columns, source: Source, file: str, now: Millis, replace: NDArray[np.bool_] | bool = True
    ) -> ColumnsWritten:
        def act(connection: sqlite3.Connection) -> ColumnsWritten:
            return self._put_columns(connection, columns, source, file, now, replace)

        return await asyncio.to_thread(self._file.write, act)

    async def read_columns(self, series: Series[Any], since: Millis, until: Millis) -> Columns:
        def act(connection: sqlite3.Connection) -> Columns | None:
            number = _number(connection, series)
            return None if number is None else self._standing_columns(connection, series, number, (since, until))

        return await asyncio.to_thread(self._read_retrying, act) or _no_columns(series)

    async def read(
        self, series: Series[R], since: Millis, until: Millis, known_by: Millis, newest: int | None = None
    ) -> tuple[R, ...]:
        asked = Slice(series, since, until, newest)
        return (
            await asyncio.to_thread(
                self._read_retrying,
                lambda connection: self._slice(connection, asked, _number(connection, series), known_by),
            )
            or ()
        )

    async def read_many(self, slices: Sequence[Slice[Any]], known_by: Millis) -> SeriesSnapshot:
        def act(connection: sqlite3.Connection) -> SeriesSnapshot:
            self._cache.check_version(connection.execute("PRAGMA data_version").fetchone()[0])
            numbers = _numbers(connection, [asked.series for asked in slices])
            rows = tuple(
                self._slice_in_runs(connection, asked, number, known_by)
                for asked, number in zip(slices, numbers, strict=True)
            )
            return SeriesSnapshot(_origin(connection) or self._wanted, rows, _asides(connection, slices, known_by))

        nothing = ((),) * len(slices)
        return await asyncio.to_thread(self._read_retrying, act) or SeriesSnapshot(self._wanted, nothing, nothing)

    async def spans(self) -> tuple[Span, ...]:
        return await asyncio.to_thread(self._read_retrying, self._spans) or ()

    async def newest_known(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        return await self._of_each(several, self._newest_known)

    async def all_known(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        return await self._of_each(several, self._all_known)

    async def first_times(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        return await self._of_each(several, self._first_time)

    async def sources(self) -> tuple[RowSource, ...]:
        return await asyncio.to_thread(self._file.read, self._sources) or ()

    async def flaws(self) -> tuple[Flaw, ...]:
        """Also holds the file's pages together and every sealed file against its hash."""

        def act(connection: sqlite3.Connection) -> tuple[Flaw, ...]:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise Broken(f"{self._file.path} is damaged ({found}); {self._remedy}.")
            self._parquet.inspect(_files(connection))
            return tuple(map(self._flaw, connection.execute(_NOTED).fetchall()))

        return await asyncio.to_thread(self._read_retrying, act) or ()

    async def mend(self, flaws: Sequence[Flaw]) -> None:
        def act(connection: sqlite3.Connection) -> None:
            connection.executemany(
                """UPDATE notes SET mended = ? WHERE series = (SELECT number FROM series WHERE name = ?)
                AND at = ? AND kind = ? AND detail = ?""",
                [(flaw.mended, str(flaw.series), flaw.first, flaw.kind, flaw.detail) for flaw in flaws],
            )

        if flaws and self._file.exists():
            await asyncio.to_thread(self._file.write, act)

    async def seal(self, before: Millis) -> int:
        return await asyncio.to_thread(self._seal, before) if self._file.exists() else 0

    async def renew(self, origin: Origin, batches: Sequence[Batch[Any]] = ()) -> RenewedStore:
        begun = await asyncio.to_thread(self._renew, origin, batches, lambda _: True)
        assert begun is not None
        return begun

    async def begin(self, origin: Origin, batches: Sequence[Batch[Any]]) -> bool:
        return await asyncio.to_thread(self._renew, origin, batches, _is_empty) is not None

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    # -- opening

    def _close(self) -> None:
        self._file.close()
        self._parquet.close()
        self._cache.clear()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
        newer = "SELECT COUNT(*) FROM sqlite_master WHERE name IN ('earlier', 'latest', 'sources')"
        if connection.execute(newer).fetchone()[0] < 3:  # a new file, or one from before these tables
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute("INSERT OR IGNORE INTO meta VALUES ('version', ?)", (VERSION,))
                if _origin(connection) is None:
                    _write_origin(connection, self._wanted)
        version = connection.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
        if version != (VERSION,):
            raise Broken(f"{self._file.path} was written by another version of Zuno; move it away.")
        kept = _origin(connection)
        if kept is not None:
            check_origin(kept, self._wanted)

    def _read_retrying(self, act: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            return self._file.read(act)
        except FileGone:
            return self._file.read(act)  # renewed by another process between its manifest and its files

    @contextmanager
    def _readable(self, series: object) -> Iterator[None]:
        """Rows of that series, written by us: in another form they are an older Zuno's, or damaged."""
        try:
            yield
        except (Malformed, ValueError, TypeError, KeyError, IndexError, zlib.error) as error:
            raise Broken(
                f"{self._file.path} keeps {series} in a form this Zuno does not read; {self._remedy}."
            ) from error

    def _spans(self, connection: sqlite3.Connection) -> tuple[Span, ...]:
        live = connection.execute(
            """SELECT series, COUNT(*), MIN(at), MAX(at), 0 FROM rows GROUP BY series
            UNION ALL SELECT series, COUNT(*), MIN(at), MAX(at), 0 FROM documents GROUP BY series
            UNION ALL SELECT series, SUM(count), MIN(first), MAX(last), SUM(count) FROM sealed GROUP BY series"""
        ).fetchall()
        hidden = dict(connection.execute("SELECT series, COUNT(*) FROM superseded GROUP BY series").fetchall())
        spans = []
        for number, name in connection.execute("SELECT number, name FROM series ORDER BY name").fetchall():
            parts = [part[1:] for part in live if part[0] == number]
            if parts:
                counts, firsts, lasts, sealed = zip(*parts, strict=True)
                gone = hidden.get(number, 0)
                with self._readable(name):
                    series = parse_series(name)
                spans.append(Span(series, sum(counts) - gone, min(firsts), max(lasts), sum(sealed) - gone))
        return tuple(spans)

    def _sources(self, connection: sqlite3.Connection) -> tuple[RowSource, ...]:
        if not _has_sources(connection):
            return ()
        found = connection.execute(
            """SELECT name, source, file, rows, first, last FROM sources JOIN series ON number = series
            ORDER BY name, first, source, file"""
        ).fetchall()
        with self._readable("where rows came from"):
            return tuple(RowSource(parse_series(name), Source(source), *rest) for name, source, *rest in found)

    def _flaw(self, noted: tuple[Any, ...]) -> Flaw:
        name, kind, at, own, detail, mended, packed = noted
        with self._readable(name):
            series = parse_series(name)
            replaced = None if packed is None else _unpack(series, at, own, packed)
        return Flaw(series, kind, Millis(at), Millis(at), 1, detail, mended, replaced)

    # -- rows

    def _write(self, batches: Sequence[Batch[Any]]) -> WriteCounts:
        offered = check_batches(batches)
        return self._file.write(lambda connection: self._put_all(connection, offered)) if offered else _NOTHING

    def _renew(
        self, origin: Origin, batches: Sequence[Batch[Any]], may: Callable[[sqlite3.Connection], bool]
    ) -> RenewedStore | None:
        offered = check_batches(batches)

        def act(connection: sqlite3.Connection) -> RenewedStore | None:
            check_origin(_origin(connection) or self._wanted, origin)
            if not may(connection):
                return None
            self._cache.clear()
            for table in _TABLES:
                connection.execute(f"DELETE FROM {table}")
            _write_origin(connection, origin)
            written = self._put_all(connection, offered)
            return RenewedStore(_origin(connection) or origin, written, self._spans(connection))

        begun = self._file.write(act)
        if begun is not None:
            self._file.write(self._tidy)
        return begun

    def _put_all(
        self, connection: sqlite3.Connection, offered: Sequence[tuple[Batch[Any], CheckedBatch]]
    ) -> WriteCounts:
        _add_known_column(connection)
        self._declare(connection, sources_of(offered))
        done = _NOTHING
        for batch, sound in offered:
            done = add_counts(done, self._put_batch(connection, batch, sound))
        return done

    def _declare(self, connection: sqlite3.Connection, sources: Collection[Source]) -> None:
        kept = _origin(connection) or self._wanted
        declared = declare_origin(kept, self._wanted, sources, empty=not kept.candles_only and _is_empty(connection))
        if declared != kept:
            _write_origin(connection, declared)

    def _put_batch(self, connection: sqlite3.Connection, batch: Batch[Any], sound: CheckedBatch) -> WriteCounts:
        number = _ensure_number(connection, batch.series)
        standing = self._stored_rows(connection, batch.series, number, sound)
        result = merge_batch(sound, standing, _changed_keys(connection, number, sound) if standing else ())
        shape = shape_of(batch.series.row)
        to_columns = shape.to_columns
        _keep_latest(connection, shape.table, number, result.puts, standing)
        self._cache.forget(number, min((at for at, _, _, _ in result.puts), default=_EVER))
        places = ", ".join("?" * (NUMBERS if shape.table == "rows" else 1))
        connection.executemany(
            f"INSERT OR REPLACE INTO {shape.table} (series, at, id, known, {_OWN[shape.table]}) "
            f"VALUES ({number}, ?, ?, ?, {places})",
            ((at, name, known, *to_columns(row)) for at, name, known, row in result.puts),
        )
        connection.executemany(
            f"INSERT INTO earlier (series, at, id, known, until, {_OWN[shape.table]}) "
            f"VALUES ({number}, ?, ?, ?, ?, {places})",
            ((at, name, known, until, *to_columns(row)) for at, name, known, until, row in result.pasts),
        )
        self._supersede(connection, number, batch.series, result.puts)
        if result.puts and not self._wanted.synthetic:
            times = [at for at, _, _, _ in result.puts]
            _note_source(connection, number, batch.source, batch.file, len(times), min(times), max(times))
        _note(connection, number, batch.series, result.notes)
        return result.counts

    def _put_columns(
        self,
        connection: sqlite3.Connection,
        columns: Columns,
        source: Source,
        file: str,
        now: Millis,
        replace: NDArray[np.bool_] | bool,
    ) -> ColumnsWritten:
        """What is new goes into files of history, month by month, or into the table where a month has few; what takes
        another's place goes the way of single rows."""
        import numpy as np

        from zuno.trading.measure.columns import compare, complete_times, pick, rows_of

        series = columns.series
        if not len(columns):
            nothing = np.zeros(0, dtype=bool)
            return ColumnsWritten(nothing, nothing, nothing)
        _add_known_column(connection)
        self._declare(connection, (source,))
        number = _ensure_number(connection, series)
        span = (int(columns.at[0]), int(columns.at[-1]))
        standing = self._standing_columns(connection, series, number, span)
        found = compare(columns, standing)
        late = _among_collected(connection, number, columns.at)
        known = np.where(late, now, complete_times(series, columns.at))
        changed = found.other & replace
        if found.new.any():
            new = pick(columns, found.new)
            _raise_latest(connection, "rows", number, int(known[found.new].max()))
            self._cache.forget(number, int(new.at[0]))
            self._append(connection, number, new, known[found.new])
            if not self._wanted.synthetic:
                _note_source(connection, number, source, file, len(new), int(new.at[0]), int(new.at[-1]))
        for chosen, at in ((changed & late, now), (changed & ~late, None)):
            batch: Batch[Any] = Batch(series, rows_of(pick(columns, chosen)), at, source, file)
            for _, sound in check_batches([batch]):
                self._put_batch(connection, batch, sound)
        return ColumnsWritten(found.new, changed, found.other & ~changed)

    def _append(self, connection: sqlite3.Connection, number: int, columns: Columns, known: NDArray[np.int64]) -> None:
        """Rows in whose places none stand."""
        import numpy as np

        low, few = 0, np.zeros(len(columns), dtype=bool)
        while low < len(columns):
            month, end = _month(int(columns.at[low]))
            high = int(np.searchsorted(columns.at, end))
            if high - low < _SEALED_AT_ONCE:
                few[low:high] = True
            else:
                part = slice(low, high)
                numbers = {f"v{place}": column[part] for place, column in enumerate(columns.values)}
                file = self._parquet.write_columns(
                    _part_name(connection, "rows", month),
                    str(columns.series),
                    {"at": columns.at[part], "known": known[part], **numbers},
                )
                connection.execute("INSERT INTO files VALUES (?, ?, ?)", (file.name, file.size, file.digest))
                first, last = int(columns.at[low]), int(columns.at[high - 1])
                connection.execute(
                    "INSERT INTO sealed (series, file, count, first, last) VALUES (?, ?, ?, ?, ?)",
                    (number, file.name, high - low, first, last),
                )
            low = high
        numbers_of_row = [column[few].tolist() for column in columns.values]  # NaN is NULL to SQLite
        numbers_of_row += [[None] * int(few.sum())] * (NUMBERS - len(numbers_of_row))
        places = ", ".join("?" * NUMBERS)
        connection.executemany(
            f"INSERT INTO rows (series, at, id, known, {_NUMBERS}) VALUES ({number}, ?, '', ?, {places})",
            zip(columns.at[few].tolist(), known[few].tolist(), *numbers_of_row, strict=True),
        )

    def _standing_columns(
        self, connection: sqlite3.Connection, series: Series[Any], number: int, span: tuple[int, int]
    ) -> Columns:
        import numpy as np

        names = shape_of(series.row).columns
        live = connection.execute(
            f"SELECT {_join(names)} FROM rows WHERE series = ? AND at BETWEEN ? AND ? ORDER BY at", (number, *span)
        ).fetchall()
        stacks = [np.array(live, dtype=np.float64).reshape(-1, len(names)).T]
        times = [np.array([row[0] for row in live], dtype=np.int64)]
        sealed = self._sealed_files(connection, number, span)
        for files, hidden in _group_unhidden(sealed):
            found = self._parquet.read_columns(files, names, str(series), span)
            shown = np.array([(at, "") not in hidden for at in found["at"].tolist()], dtype=bool) if hidden else ...
            times.append(found["at"][shown])
            stacks.append(np.vstack([found[name][shown] for name in names]))
        at, table = np.concatenate(times), np.hstack(stacks)
        order = np.argsort(at, kind="stable")
        return Columns(series, at[order], tuple(table[1:, order]))

    def _stored_rows(
        self, connection: sqlite3.Connection, series: Series[Any], number: int, sound: CheckedBatch
    ) -> dict[Key, StoredRow]:
        if not sound.rows:
            return {}
        span = sound.span()
        shape = shape_of(series.row)
        query = f"SELECT id, known, {_join(shape.columns)} FROM {shape.table} WHERE series = ? AND "
        if len(sound.rows) <= _FEW:
            asked = query + "at = ? AND id = ?"
            found = [row for at, name, _, _ in sound.rows for row in connection.execute(asked, (number, at, name))]
        else:
            found = connection.execute(query + "at BETWEEN ? AND ?", (number, *span)).fetchall()
        for file, hidden in self._sealed_files(connection, number, span):
            columns = ("id", "known", *shape.columns)
            rows = self._parquet.read([file], columns, str(series), span, _EVER, None)
            found += [row for row in rows if (row[2], row[0]) not in hidden]
        with self._readable(series):
            return {(Millis(row[2]), row[0]): (Millis(row[1]), shape.from_columns(row[2:])) for row in found}

    def _supersede(
        self, connection: sqlite3.Connection, number: int, series: Series[Any], puts: Sequence[RowPut]
    ) -> None:
        """What was put over a sealed row hides that one."""
        keys = {(at, name) for at, name, _, _ in puts} if _any_sealed(connection, number) else set()
        if not keys:
            return
        span = (min(keys)[0], max(keys)[0])
        for file, _ in self._sealed_files(connection, number, span):
            there = self._parquet.read([file], ("at", "id"), str(series), span, _EVER, None)
            connection.executemany(
                "INSERT OR IGNORE INTO superseded (series, at, id, file) VALUES (?, ?, ?, ?)",
                [(number, at, name, file.name) for at, name in there if (at, name) in keys],
            )

    def _slice(
        self,
        connection: sqlite3.Connection,
        asked: Slice[R],
        number: int | None,
        known_by: Millis,
        cache: RowCache | None = None,
    ) -> tuple[R, ...]:
        series, newest, span = asked.series, asked.newest, (asked.since, asked.until)
        if number is None or newest == 0:
            return ()
        if series.row is MacroRelease:
            prints = newest_prints(self._rows(connection, series, number, span, known_by, None, cache))
            return tuple(prints if newest is None else prints[-newest:])
        return tuple(self._rows(connection, series, number, span, known_by, newest, cache))

    def _slice_in_runs(
        self, connection: sqlite3.Connection, asked: Slice[R], number: int | None, known_by: Millis
    ) -> Sequence[R]:
        """The same; heartbeats in runs where all of them are in the table: a row of each would cost more than
        everything else a cycle reads."""
        if asked.series.row is Heartbeat and asked.newest is None:
            span = (asked.since, asked.until)
            if number is not None and not self._sealed_files(connection, number, span):
                runs = _read_runs(connection, number, span, known_by, self._cache)
                if runs is not None:
                    return cast("Sequence[R]", Heartbeats(runs))
        return self._slice(connection, asked, number, known_by, self._cache)

    def _rows(
        self,
        connection: sqlite3.Connection,
        series: Series[Any],
        number: int,
        span: tuple[Millis, Millis],
        known_by: Millis,
        newest: int | None,
        cache: RowCache | None,
    ) -> Iterable[Any]:
        """The rows of that time and known by then, oldest first, wherever they rest."""
        shape = shape_of(series.row)
        asked = TableRead(*span, known_by, newest)
        limit, order = ("", "") if newest is None else (f" LIMIT {int(newest)}", " DESC")
        with_id = (*shape.columns, "id")
        earlier = connection.execute(
            f"SELECT {_join(with_id)} FROM earlier WHERE series = ? AND at BETWEEN ? AND ? "
            f"AND known <= ? AND until > ? ORDER BY at{order}, id{order}{limit}",
            (number, *span, known_by, known_by),
        ).fetchall()
        sealed = list(self._sealed_files(connection, number, span))
        if not earlier and not sealed:  # the rule: then nothing is merged, and no id is needed for it

            def read_table(asked: TableRead) -> list[Any]:
                with self._readable(series):
                    return list(map(shape.from_columns, _read_table(connection, shape, shape.columns, number, asked)))

            return read_table(asked) if cache is None else cache.read(number, asked, read_table)
        live = _read_table(connection, shape, with_id, number, asked)
        stacks = [live, earlier if newest is None else earlier[::-1]]
        for file, hidden in sealed:
            # So many are enough: a key that is hidden here is shown by another stack.
            rows = self._parquet.read([file], with_id, str(series), span, known_by, newest)
            stacks.append([row for row in rows if (row[0], row[-1]) not in hidden] if hidden else rows)
        whole = list(merge(*stacks, key=_place))
        with self._readable(series):
            return [shape.from_columns(row[:-1]) for row in (whole if newest is None else whole[-newest:])]

    async def _of_each(
        self, several: Sequence[Series[Any]], ask: Callable[[sqlite3.Connection, Series[Any], int], Millis | None]
    ) -> tuple[Millis | None, ...]:
        def act(connection: sqlite3.Connection) -> tuple[Millis | None, ...]:
            numbers = _numbers(connection, several)
            held = zip(several, numbers, strict=True)
            return tuple(None if number is None else ask(connection, series, number) for series, number in held)

        return await asyncio.to_thread(self._read_retrying, act) or (None,) * len(several)

    def _newest_known(self, connection: sqlite3.Connection, series: Series[Any], number: int) -> Millis | None:
        table = shape_of(series.row).table
        lasts = connection.execute(
            f"SELECT MAX(at) FROM {table} WHERE series = ? UNION ALL SELECT MAX(last) FROM sealed WHERE series = ?",
            (number, number),
        ).fetchall()
        last = max((at for (at,) in lasts if at is not None), default=None)
        if last is None:
            return None
        found = connection.execute(
            f"""SELECT known FROM {table} WHERE series = ? AND at = ?
            UNION ALL SELECT known FROM earlier WHERE series = ? AND at = ?""",
            (number, last, number, last),
        ).fetchall()
        for file, hidden in self._sealed_files(connection, number, (last, last)):
            rows = self._parquet.read([file], ("known", "at", "id"), str(series), (last, last), _EVER, None)
            found += [row[:1] for row in rows if row[1:] not in hidden]
        return Millis(min(known for (known,) in found))

    def _all_known(self, connection: sqlite3.Connection, series: Series[Any], number: int) -> Millis | None:
        table = shape_of(series.row).table
        kept = connection.execute("SELECT known FROM latest WHERE series = ?", (number,)).fetchone()
        if kept is not None:
            return Millis(kept[0])
        found = [connection.execute(f"SELECT MAX(known) FROM {table} WHERE series = ?", (number,)).fetchone()[0]]
        for file, hidden in self._sealed_files(connection, number, (-_EVER, _EVER)):
            found.append(self._parquet.all_known(file, hidden, str(series)))
        return max((known for known in found if known is not None), default=None)

    def _first_time(self, connection: sqlite3.Connection, series: Series[Any], number: int) -> Millis | None:
        found = connection.execute(
            f"""SELECT MIN(at) FROM {shape_of(series.row).table} WHERE series = ?
            UNION ALL SELECT MIN(first) FROM sealed WHERE series = ?""",
            (number, number),
        ).fetchall()
        return min((at for (at,) in found if at is not None), default=None)

    def _sealed_files(
        self, connection: sqlite3.Connection, number: int, span: tuple[int, int]
    ) -> list[tuple[SealedFile, set[Key]]]:
        """Files that hold rows of that series and time, each with the keys in it that no longer count."""
        files = connection.execute(
            """SELECT name, size, digest FROM files JOIN sealed ON file = name
            WHERE series = ? AND first <= ? AND last >= ? ORDER BY first, name""",
            (number, span[1], span[0]),
        ).fetchall()
        if not files:
            return []
        hidden: dict[str, set[Key]] = {}
        for at, name, file in connection.execute(
            "SELECT at, id, file FROM superseded WHERE series = ? AND at BETWEEN ? AND ?", (number, *span)
        ):
            hidden.setdefault(file, set()).add((at, name))
        return [(SealedFile(*file), hidden.get(file[0], set())) for file in files]

    # -- sealing

    def _seal(self, before: Millis) -> int:
        """Month by month, each a transaction of its own: nobody waits long, and a crash costs the month it was at."""
        self._file.write(self._tidy)
        return sum(self._seal_table(table, before) for table in _OWN)

    def _seal_table(self, table: str, before: Millis) -> int:
        moved = 0
        while count := self._file.write(lambda connection: self._seal_month(connection, table, before)):
            moved += count
        return moved

    def _seal_month(self, connection: sqlite3.Connection, table: str, before: Millis) -> int:
        """The oldest month that has rows to seal: first its file, for good, then its rows' place, at one stroke."""
        numbers = connection.execute("SELECT number, name FROM series ORDER BY name").fetchall()
        oldest = [
            at
            for number, _ in numbers
            for (at,) in connection.execute(f"SELECT MIN(at) FROM {table} WHERE series = ?", (number,))
            if at is not None and at < before
        ]
        if not oldest:
            return 0
        month, end = _month(min(oldest))
        until = min(end, before)
        rows: list[tuple[Any, ...]] = []
        spans: list[tuple[int, int, int, int]] = []
        for number, name in numbers:
            found = connection.execute(
                f"SELECT ?, at, id, known, {_OWN[table]} FROM {table} WHERE series = ? AND at < ? ORDER BY at, id",
                (name, number, until),
            ).fetchall()
            if found:
                rows += found
                spans.append((number, len(found), found[0][1], found[-1][1]))
        file = self._parquet.write(_part_name(connection, table, month), table, rows)
        connection.execute("INSERT INTO files VALUES (?, ?, ?)", (file.name, file.size, file.digest))
        connection.executemany(
            "INSERT INTO sealed (series, file, count, first, last) VALUES (?, ?, ?, ?, ?)",
            [(number, file.name, count, first, last) for number, count, first, last in spans],
        )
        connection.executemany(
            f"DELETE FROM {table} WHERE series = ? AND at < ?", [(number, until) for number, *_ in spans]
        )
        return len(rows)

    def _tidy(self, connection: sqlite3.Connection) -> None:
        self._parquet.tidy([file.name for file in _files(connection)])


_EVER: Final = 2**62
_NOTHING: Final = WriteCounts(0, 0, 0, 0)
_NOTED: Final = """SELECT name, kind, at, id, detail, mended, replaced FROM notes JOIN series ON number = series
    ORDER BY name, at, kind, id, detail"""


def _origin(connection: sqlite3.Connection) -> Origin | None:
    said = dict(connection.execute("SELECT name, value FROM meta WHERE name IN ('synthetic', 'label')").fetchall())
    return Origin(said["synthetic"] == "1", said["label"]) if len(said) == 2 else None


def _write_origin(connection: sqlite3.Connection, origin: Origin) -> None:
    said = (("synthetic", str(int(origin.synthetic))), ("label", origin.label))
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", said)


def _has_sources(connection: sqlite3.Connection) -> bool:
    """A file that an older Zuno wrote has no such table until something is written."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sources'").fetchone() is not None


def _note_source(
    connection: sqlite3.Connection, number: int, source: Source, file: str, rows: int, first: int, last: int
) -> None:
    connection.execute(
        """INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
        rows = rows + excluded.rows, first = MIN(first, excluded.first), last = MAX(last, excluded.last)""",
        (number, source, file, rows, first, last),
    )


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not any(
        connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in ("rows", "documents", "sealed")
    )


def _read_table(
    connection: sqlite3.Connection, shape: RowShape, columns: Sequence[str], number: int, asked: TableRead
) -> list[tuple[Any, ...]]:
    limit, order = ("", "") if asked.newest is None else (f" LIMIT {int(asked.newest)}", " DESC")
    besides = "" if asked.besides is None else " AND (at > ? OR known > ?)"
    rows = connection.execute(
        f"SELECT {_join(columns)} FROM {shape.table} WHERE series = ? AND at BETWEEN ? AND ? AND known <= ?{besides} "
        f"ORDER BY at{order}, id{order}{limit}",
        (number, asked.since, asked.until, asked.known_by, *(asked.besides or ())),
    ).fetchall()
    return rows if asked.newest is None else rows[::-1]


def _number(connection: sqlite3.Connection, series: Series[Any]) -> int | None:
    found = connection.execute("SELECT number FROM series WHERE name = ?", (str(series),)).fetchone()
    return None if found is None else int(found[0])


def _numbers(connection: sqlite3.Connection, several: Sequence[Series[Any]]) -> list[int | None]:
    """Of each of these, by one question."""
    known = dict(connection.execute("SELECT name, number FROM series").fetchall())
    return [known.get(str(series)) for series in several]


def _any_sealed(connection: sqlite3.Connection, number: int) -> bool:
    return connection.execute("SELECT 1 FROM sealed WHERE series = ? LIMIT 1", (number,)).fetchone() is not None


def _keep_latest(
    connection: sqlite3.Connection, table: str, number: int, puts: Sequence[RowPut], standing: Mapping[Key, StoredRow]
) -> None:
    """Before these are put. A row in another's place may lower the latest: then it is looked for when it is asked."""
    if not puts:
        return
    if any((at, name) in standing for at, name, _, _ in puts):
        connection.execute("DELETE FROM latest WHERE series = ?", (number,))
        return
    _raise_latest(connection, table, number, max(known for _, _, known, _ in puts))


def _raise_latest(connection: sqlite3.Connection, table: str, number: int, newest: int) -> None:
    """Before rows that take no other's place are put, of which this is the latest known."""
    begun = connection.execute(f"SELECT 1 FROM {table} WHERE series = ? LIMIT 1", (number,)).fetchone()
    if begun is None and not _any_sealed(connection, number):
        connection.execute("INSERT OR REPLACE INTO latest VALUES (?, ?)", (number, newest))
    else:
        connection.execute("UPDATE latest SET known = MAX(known, ?) WHERE series = ?", (newest, number))


def _ensure_number(connection: sqlite3.Connection, series: Series[Any]) -> int:
    connection.execute("INSERT OR IGNORE INTO series (name) VALUES (?)", (str(series),))
    return int(connection.execute("SELECT number FROM series WHERE name = ?", (str(series),)).fetchone()[0])


def _changed_keys(connection: sqlite3.Connection, number: int, sound: CheckedBatch) -> set[Key]:
    asked = "SELECT DISTINCT at, id FROM earlier WHERE series = ? AND at BETWEEN ? AND ?"
    return set(connection.execute(asked, (number, *sound.span())))


def _has_known_column(connection: sqlite3.Connection) -> bool:
    asked = "SELECT 1 FROM pragma_table_info('notes') WHERE name = 'known'"
    return connection.execute(asked).fetchone() is not None


def _add_known_column(connection: sqlite3.Connection) -> None:
    """Of a file from before they did. Nobody can say when its notes came to be known, so no bundle tells them."""
    if not _has_known_column(connection):
        connection.execute("ALTER TABLE notes ADD COLUMN known INTEGER")


def _asides(
    connection: sqlite3.Connection, slices: Sequence[Slice[Any]], known_by: Millis
) -> tuple[tuple[RejectedRow, ...], ...]:
    """All of them by one question: there are few or none, and every series has to be looked at."""
    found: list[list[RejectedRow]] = [[] for _ in slices]
    wanted = [(place, str(asked.series), asked.since, asked.until) for place, asked in enumerate(slices)]
    if wanted and _has_known_column(connection):
        for place, at, detail in connection.execute(
            f"""WITH asked (place, name, since, until) AS (VALUES {", ".join(["(?, ?, ?, ?)"] * len(wanted))})
            SELECT place, at, detail FROM asked CROSS JOIN series ON series.name = asked.name
            CROSS JOIN notes ON notes.series = number AND at BETWEEN since AND until
            WHERE kind = ? AND known <= ? ORDER BY at, detail""",
            (*chain.from_iterable(wanted), BAD, known_by),
        ):
            found[place].append(RejectedRow(Millis(at), detail))
    return tuple(map(tuple, found))


def _note(connection: sqlite3.Connection, number: int, series: Series[Any], notes: Sequence[RowNote]) -> None:
    to_columns = shape_of(series.row).to_columns
    # What happens again is news again, whatever was done about it the last time.
    connection.executemany(
        """INSERT INTO notes (series, at, kind, id, detail, replaced, mended, known) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET replaced = excluded.replaced, mended = excluded.mended,
        known = MIN(ifnull(known, excluded.known), excluded.known)""",
        [
            (
                number,
                note.at,
                note.kind,
                note.id,
                note.detail,
                None if note.replaced is None else _pack(to_columns(note.replaced)),
                note.mended,
                note.known,
            )
            for note in notes
        ],
    )


def _pack(columns: Sequence[Any]) -> bytes:
    """A row that was replaced, as one value: its document, or its numbers."""
    return columns[0] if isinstance(columns[0], bytes) else json.dumps(columns).encode()


def _unpack(series: Series[Any], at: int, own: str, packed: bytes) -> Any:
    shape = shape_of(series.row)
    held: dict[str, Any] = {"at": at, "id": own, "body": packed}
    if shape.table == "rows":
        held.update((f"v{place}", number) for place, number in enumerate(json.loads(packed)))
    return shape.from_columns([held[column] for column in shape.columns])


def _files(connection: sqlite3.Connection) -> list[SealedFile]:
    return [SealedFile(*file) for file in connection.execute("SELECT name, size, digest FROM files ORDER BY name")]


def _part_name(connection: sqlite3.Connection, table: str, month: str) -> str:
    parts = connection.execute("SELECT COUNT(*) FROM files WHERE name LIKE ?", (f"{table}-{month}-%",)).fetchone()[0]
    return f"{table}-{month}-{parts + 1:04}.parquet"


def _group_unhidden(files: Sequence[tuple[SealedFile, set[Key]]]) -> Iterator[tuple[list[SealedFile], set[Key]]]:
    """Files in which every row counts are read together, the others one by one."""
    whole = [file for file, hidden in files if not hidden]
    if whole:
        yield whole, set()
    yield from (([file], hidden) for file, hidden in files if hidden)


def _among_collected(connection: sqlite3.Connection, number: int, at: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these times lie between the first and the last row that was collected, or that came before it was kept
    how rows come."""
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


def _no_columns(series: Series[Any]) -> Columns:
    import numpy as np

    numbers = len(shape_of(series.row).columns) - 1
    return Columns(series, np.empty(0, dtype=np.int64), tuple(np.empty(0) for _ in range(numbers)))


def _join(columns: Sequence[str]) -> str:
    return ", ".join(columns)


_BEATS: Final = "FROM rows WHERE series = ? AND at BETWEEN ? AND ? AND known <= ? ORDER BY at"


def _read_runs(
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
        found: list[tuple[int, int]] | None = [(begins, whole)]
        if not cache.is_whole_day(number, day, known_by):
            (count,) = connection.execute(
                f"SELECT SUM(1 - 2 * (at % {MINUTE_MS})) {_BEATS}", (number, low, high, known_by)
            ).fetchone()
            if count != whole:
                found = _list_runs(connection, (number, low, high, known_by))
            elif whole == DAY_MS // MINUTE_MS:
                cache.keep_whole_day(number, day, known_by)
        if found is None:
            return None
        for start, length in found:
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


def _place(row: Sequence[Any]) -> tuple[int, str]:
    return row[0], row[-1]


def _month(at: int) -> tuple[str, Millis]:
    """The UTC month of a moment, and when it ends."""
    day = datetime.fromtimestamp(at / 1000, UTC)
    after = datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=UTC)
    return f"{day:%Y-%m}", Millis(int(after.timestamp()) * 1000)
