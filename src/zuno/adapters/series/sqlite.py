"""Market data in one SQLite file, and in Parquet files for sealed months; every row is in one place. Replaced numbers
are kept in a table that is read only for what was known before."""

from __future__ import annotations

import asyncio
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial, reduce
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from zuno.adapters.series import sqlite_tables as tables
from zuno.adapters.series.merge_rows import (
    CheckedBatch,
    Key,
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
from zuno.adapters.sqlite_file import SqliteFile
from zuno.kernel.errors import Broken, Malformed
from zuno.kernel.units import Millis
from zuno.trading.model.market import Heartbeat, Heartbeats, MacroRelease, Row, Series, parse_series
from zuno.trading.ports.series import (
    Batch,
    Columns,
    ColumnsWritten,
    Flaw,
    Origin,
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
_REMEDY: Final = "put it back from a copy, or move it away"
_PATIENCE: Final = 180_000
"""Milliseconds somebody waits for another's write: a whole market is one, and takes seconds on a machine at ease."""
_SEALED_AT_ONCE: Final = 5_000
"""Rows of one month that are written as a file of history when they come in columns; fewer are quicker in the table."""
_FEW: Final = 200
"""Keys looked up one by one; more are read as one stretch."""
_EVER: Final = 2**62
_NOTHING: Final = WriteCounts(0, 0, 0, 0)


class SqliteSeries:
    """`series.db` of a folder and `history/` beside it. The first write makes them; reading makes nothing."""

    def __init__(self, folder: Path, origin: Origin) -> None:
        """`origin`: for a store that does not exist yet; one that does keeps its own."""
        self._wanted = origin
        self._remedy = "`zuno data synth` makes it anew" if origin.synthetic else _REMEDY
        self._file = SqliteFile(folder / "series.db", self._prepare, f"{self._remedy}.")
        self._parquet = ParquetFiles(folder / "history")
        self._cache = tables.RowCache()

    @property
    def origin(self) -> Origin:
        return self._file.read(tables.read_origin) or self._wanted

    def has_imported(self) -> bool:
        return any(rows.source is Source.IMPORTED for rows in self._file.read(self._sources) or ())

    async def write(self, batches: Sequence[Batch[Any]]) -> WriteCounts:
        return await asyncio.to_thread(self._write, batches)

    async def write_columns(
        self, columns: Columns, source: Source, file: str, now: Millis, replace: NDArray[np.bool_] | bool = True
    ) -> ColumnsWritten:
        """New rows go into Parquet files by month, or into the table if few; replacing rows go row by row."""

        def act(connection: sqlite3.Connection) -> ColumnsWritten:
            import numpy as np

            from zuno.trading.measure.columns import compare_rows, complete_times, take_rows, to_rows

            series = columns.series
            if not len(columns):
                nothing = np.zeros(0, dtype=bool)
                return ColumnsWritten(nothing, nothing, nothing)
            tables.add_known_column(connection)
            self._declare(connection, (source,))
            number = tables.ensure_number(connection, series)
            span = (int(columns.at[0]), int(columns.at[-1]))
            standing = self._standing_columns(connection, series, number, span)
            fresh, other = compare_rows(columns, standing)
            late = tables.among_collected(connection, number, columns.at)
            known = np.where(late, now, complete_times(series, columns.at))
            changed = other & replace
            if fresh.any():
                new = take_rows(columns, fresh)
                tables.raise_latest(connection, "rows", number, int(known[fresh].max()))
                self._cache.forget(number, int(new.at[0]))
                self._append(connection, number, new, known[fresh])
                if not self._wanted.synthetic:
                    tables.note_source(connection, number, source, file, len(new), int(new.at[0]), int(new.at[-1]))
            for chosen, at in ((changed & late, now), (changed & ~late, None)):
                batch: Batch[Any] = Batch(series, to_rows(take_rows(columns, chosen)), at, source, file)
                for sound in check_batches([batch]):
                    self._put_batch(connection, sound)
            return ColumnsWritten(fresh, changed, other & ~changed)

        return await self._file.run(act)

    async def read_columns(self, series: Series[Any], since: Millis, until: Millis) -> Columns:
        def act(connection: sqlite3.Connection) -> Columns | None:
            number = tables.find_number(connection, series)
            return None if number is None else self._standing_columns(connection, series, number, (since, until))

        return await asyncio.to_thread(self._read_retrying, act) or _no_columns(series)

    async def read(
        self, series: Series[R], since: Millis, until: Millis, known_by: Millis, newest: int | None = None
    ) -> tuple[R, ...]:
        asked = Slice(series, since, until, newest)

        def act(connection: sqlite3.Connection) -> tuple[R, ...]:
            return self._slice(connection, asked, tables.find_number(connection, series), known_by, cached=False)

        return await asyncio.to_thread(self._read_retrying, act) or ()

    async def read_many(self, slices: Sequence[Slice[Any]], known_by: Millis) -> SeriesSnapshot:
        def act(connection: sqlite3.Connection) -> SeriesSnapshot:
            self._cache.check_version(connection.execute("PRAGMA data_version").fetchone()[0])
            numbers = tables.find_numbers(connection, [asked.series for asked in slices])
            rows = tuple(
                self._cache.answer(asked, known_by, partial(self._slice_in_runs, connection, asked, number, known_by))
                for asked, number in zip(slices, numbers, strict=True)
            )
            return SeriesSnapshot(
                tables.read_origin(connection) or self._wanted, rows, tables.read_rejected(connection, slices, known_by)
            )

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
        """Also checks the file's pages and every sealed file's hash."""

        def act(connection: sqlite3.Connection) -> tuple[Flaw, ...]:
            damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if damage != "ok":
                raise Broken(f"{self._file.path} is damaged ({damage}); {self._remedy}.")
            self._parquet.inspect(tables.list_files(connection))
            return tuple(map(self._flaw, connection.execute(tables.NOTED).fetchall()))

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
        return await asyncio.to_thread(self._renew, origin, batches, tables.is_empty) is not None

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
                for statement in tables.SCHEMA:
                    connection.execute(statement)
                connection.execute("INSERT OR IGNORE INTO meta VALUES ('version', ?)", (tables.VERSION,))
                if tables.read_origin(connection) is None:
                    tables.write_origin(connection, self._wanted)
        version = connection.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
        if version != (tables.VERSION,):
            raise Broken(f"{self._file.path} was written by another version of Zuno; move it away.")
        kept = tables.read_origin(connection)
        if kept is not None:
            check_origin(kept, self._wanted)

    def _read_retrying(self, act: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            return self._file.read(act)
        except FileGone:
            return self._file.read(act)  # renewed by another process between its manifest and its files

    @contextmanager
    def _readable(self, series: object) -> Iterator[None]:
        """`Broken` for rows in another form: an older Zuno's, or damaged."""
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
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sources'").fetchone() is None:
            return ()  # a file of an older Zuno, until the next write
        rows = connection.execute(
            """SELECT name, source, file, rows, first, last FROM sources JOIN series ON number = series
            ORDER BY name, first, source, file"""
        ).fetchall()
        with self._readable("where rows came from"):
            return tuple(RowSource(parse_series(name), Source(source), *rest) for name, source, *rest in rows)

    def _flaw(self, noted: tuple[Any, ...]) -> Flaw:
        name, kind, at, own, detail, mended, packed = noted
        with self._readable(name):
            series = parse_series(name)
            replaced = None if packed is None else tables.unpack_row(series, at, own, packed)
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
            check_origin(tables.read_origin(connection) or self._wanted, origin)
            if not may(connection):
                return None
            self._cache.clear()
            for table in tables.TABLES:
                connection.execute(f"DELETE FROM {table}")
            tables.write_origin(connection, origin)
            written = self._put_all(connection, offered)
            return RenewedStore(tables.read_origin(connection) or origin, written, self._spans(connection))

        begun = self._file.write(act)
        if begun is not None:
            self._file.write(self._tidy)
        return begun

    def _put_all(self, connection: sqlite3.Connection, offered: Sequence[CheckedBatch]) -> WriteCounts:
        tables.add_known_column(connection)
        self._declare(connection, sources_of(offered))
        return reduce(add_counts, (self._put_batch(connection, sound) for sound in offered), _NOTHING)

    def _declare(self, connection: sqlite3.Connection, sources: Collection[Source]) -> None:
        kept = tables.read_origin(connection) or self._wanted
        declared = declare_origin(
            kept, self._wanted, sources, empty=not kept.candles_only and tables.is_empty(connection)
        )
        if declared != kept:
            tables.write_origin(connection, declared)

    def _put_batch(self, connection: sqlite3.Connection, sound: CheckedBatch) -> WriteCounts:
        batch, number = sound.batch, tables.ensure_number(connection, sound.batch.series)
        standing = self._stored_rows(connection, number, sound)
        replaced = "SELECT DISTINCT at, id FROM earlier WHERE series = ? AND at BETWEEN ? AND ?"
        changed = set(connection.execute(replaced, (number, *sound.span()))) if standing else ()
        result = merge_batch(sound, standing, changed)
        shape = tables.shape_of(batch.series.row)
        to_columns = shape.to_columns
        tables.keep_latest(connection, shape.table, number, result.puts, standing)
        self._cache.forget(number, min((at for at, _, _, _ in result.puts), default=_EVER))
        places = ", ".join("?" * (tables.NUMBERS if shape.table == "rows" else 1))
        connection.executemany(
            f"INSERT OR REPLACE INTO {shape.table} (series, at, id, known, {tables.OWN[shape.table]}) "
            f"VALUES ({number}, ?, ?, ?, {places})",
            ((at, name, known, *to_columns(row)) for at, name, known, row in result.puts),
        )
        connection.executemany(
            f"INSERT INTO earlier (series, at, id, known, until, {tables.OWN[shape.table]}) "
            f"VALUES ({number}, ?, ?, ?, ?, {places})",
            ((at, name, known, until, *to_columns(row)) for at, name, known, until, row in result.pasts),
        )
        self._supersede(connection, number, batch.series, result.puts)
        if result.puts and not self._wanted.synthetic:
            times = [at for at, _, _, _ in result.puts]
            tables.note_source(connection, number, batch.source, batch.file, len(times), min(times), max(times))
        tables.write_notes(connection, number, batch.series, result.notes)
        return result.counts

    def _append(self, connection: sqlite3.Connection, number: int, columns: Columns, known: NDArray[np.int64]) -> None:
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
                    tables.next_part_name(connection, "rows", month),
                    str(columns.series),
                    {"at": columns.at[part], "known": known[part], **numbers},
                )
                tables.add_file(
                    connection, file, [(number, high - low, int(columns.at[low]), int(columns.at[high - 1]))]
                )
            low = high
        numbers_of_row = [column[few].tolist() for column in columns.values]  # NaN is NULL to SQLite
        numbers_of_row += [[None] * int(few.sum())] * (tables.NUMBERS - len(numbers_of_row))
        places = ", ".join("?" * tables.NUMBERS)
        connection.executemany(
            f"INSERT INTO rows (series, at, id, known, {tables.NUMBER_COLUMNS}) VALUES ({number}, ?, '', ?, {places})",
            zip(columns.at[few].tolist(), known[few].tolist(), *numbers_of_row, strict=True),
        )

    def _standing_columns(
        self, connection: sqlite3.Connection, series: Series[Any], number: int, span: tuple[int, int]
    ) -> Columns:
        import numpy as np

        names = tables.shape_of(series.row).columns
        live = connection.execute(
            f"SELECT {', '.join(names)} FROM rows WHERE series = ? AND at BETWEEN ? AND ? ORDER BY at", (number, *span)
        ).fetchall()
        stacks = [np.array(live, dtype=np.float64).reshape(-1, len(names)).T]
        times = [np.array([row[0] for row in live], dtype=np.int64)]
        sealed = self._sealed_files(connection, number, span)
        for files, hidden in _group_unhidden(sealed):
            columns = self._parquet.read_columns(files, names, str(series), span)
            shown = np.array([(at, "") not in hidden for at in columns["at"].tolist()], dtype=bool) if hidden else ...
            times.append(columns["at"][shown])
            stacks.append(np.vstack([columns[name][shown] for name in names]))
        at, table = np.concatenate(times), np.hstack(stacks)
        order = np.argsort(at, kind="stable")
        return Columns(series, at[order], tuple(table[1:, order]))

    def _stored_rows(self, connection: sqlite3.Connection, number: int, sound: CheckedBatch) -> dict[Key, StoredRow]:
        if not sound.rows:
            return {}
        series, span = sound.batch.series, sound.span()
        shape = tables.shape_of(series.row)
        query = f"SELECT id, known, {', '.join(shape.columns)} FROM {shape.table} WHERE series = ? AND "
        if len(sound.rows) <= _FEW:
            asked = query + "at = ? AND id = ?"
            stored = [row for at, name, _, _ in sound.rows for row in connection.execute(asked, (number, at, name))]
        else:
            stored = connection.execute(query + "at BETWEEN ? AND ?", (number, *span)).fetchall()
        for file, hidden in self._sealed_files(connection, number, span):
            columns = ("id", "known", *shape.columns)
            rows = self._parquet.read([file], columns, str(series), span, _EVER, None)
            stored += [row for row in rows if (row[2], row[0]) not in hidden]
        with self._readable(series):
            return {(Millis(row[2]), row[0]): (Millis(row[1]), shape.from_columns(row[2:])) for row in stored}

    def _supersede(
        self, connection: sqlite3.Connection, number: int, series: Series[Any], puts: Sequence[RowPut]
    ) -> None:
        """Hide sealed rows that were replaced."""
        keys = {(at, name) for at, name, _, _ in puts} if tables.has_sealed(connection, number) else set()
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
        self, connection: sqlite3.Connection, asked: Slice[R], number: int | None, known_by: Millis, cached: bool
    ) -> tuple[R, ...]:
        if number is None or asked.newest == 0:
            return ()
        if asked.series.row is MacroRelease:
            whole = Slice(asked.series, asked.since, asked.until)
            prints = newest_prints(self._rows(connection, whole, number, known_by, cached))
            return tuple(prints if asked.newest is None else prints[-asked.newest :])
        return tuple(self._rows(connection, asked, number, known_by, cached))

    def _slice_in_runs(
        self, connection: sqlite3.Connection, asked: Slice[R], number: int | None, known_by: Millis
    ) -> Sequence[R]:
        """As `_slice`, with heartbeats in runs where all are in the table, which is much faster."""
        if asked.series.row is Heartbeat and asked.newest is None:
            span = (asked.since, asked.until)
            if number is not None and not self._sealed_files(connection, number, span):
                runs = tables.read_runs(connection, number, span, known_by, self._cache)
                if runs is not None:
                    return cast("Sequence[R]", Heartbeats(runs))
        return self._slice(connection, asked, number, known_by, cached=True)

    def _rows(
        self, connection: sqlite3.Connection, wanted: Slice[Any], number: int, known_by: Millis, cached: bool
    ) -> Iterable[Any]:
        """The rows of that time known by then, oldest first, from table and files."""
        series, span, newest = wanted.series, (wanted.since, wanted.until), wanted.newest
        shape = tables.shape_of(series.row)
        asked = tables.TableRead(*span, known_by, newest)

        def read_table(asked: tables.TableRead) -> list[Any]:
            with self._readable(series):
                return list(
                    map(shape.from_columns, tables.select_rows(connection, shape, shape.columns, number, asked))
                )

        limit, order = ("", "") if newest is None else (f" LIMIT {int(newest)}", " DESC")
        with_id = (*shape.columns, "id")
        earlier = connection.execute(
            f"SELECT {', '.join(with_id)} FROM earlier WHERE series = ? AND at BETWEEN ? AND ? "
            f"AND known <= ? AND until > ? ORDER BY at{order}, id{order}{limit}",
            (number, *span, known_by, known_by),
        ).fetchall()
        sealed = list(self._sealed_files(connection, number, span))
        if not earlier and not sealed:  # the rule: then nothing is merged, and no id is needed for it
            pending = partial(tables.find_pending, connection, shape.table, number)
            return self._cache.read(number, asked, read_table, pending) if cached else read_table(asked)
        live = tables.select_rows(connection, shape, with_id, number, asked)
        stacks = [live, earlier if newest is None else earlier[::-1]]
        for file, hidden in sealed:
            # So many are enough: a key that is hidden here is shown by another stack.
            rows = self._parquet.read([file], with_id, str(series), span, known_by, newest)
            stacks.append([row for row in rows if (row[0], row[-1]) not in hidden] if hidden else rows)
        whole = list(merge(*stacks, key=lambda row: (row[0], row[-1])))
        with self._readable(series):
            return [shape.from_columns(row[:-1]) for row in (whole if newest is None else whole[-newest:])]

    async def _of_each(
        self, several: Sequence[Series[Any]], ask: Callable[[sqlite3.Connection, Series[Any], int], Millis | None]
    ) -> tuple[Millis | None, ...]:
        def act(connection: sqlite3.Connection) -> tuple[Millis | None, ...]:
            numbers = tables.find_numbers(connection, several)
            held = zip(several, numbers, strict=True)
            return tuple(None if number is None else ask(connection, series, number) for series, number in held)

        return await asyncio.to_thread(self._read_retrying, act) or (None,) * len(several)

    def _newest_known(self, connection: sqlite3.Connection, series: Series[Any], number: int) -> Millis | None:
        table = tables.shape_of(series.row).table
        lasts = connection.execute(
            f"SELECT MAX(at) FROM {table} WHERE series = ? UNION ALL SELECT MAX(last) FROM sealed WHERE series = ?",
            (number, number),
        ).fetchall()
        last = max((at for (at,) in lasts if at is not None), default=None)
        if last is None:
            return None
        times = connection.execute(
            f"""SELECT known FROM {table} WHERE series = ? AND at = ?
            UNION ALL SELECT known FROM earlier WHERE series = ? AND at = ?""",
            (number, last, number, last),
        ).fetchall()
        for file, hidden in self._sealed_files(connection, number, (last, last)):
            rows = self._parquet.read([file], ("known", "at", "id"), str(series), (last, last), _EVER, None)
            times += [row[:1] for row in rows if row[1:] not in hidden]
        return Millis(min(known for (known,) in times))

    def _all_known(self, connection: sqlite3.Connection, series: Series[Any], number: int) -> Millis | None:
        table = tables.shape_of(series.row).table
        kept = connection.execute("SELECT known FROM latest WHERE series = ?", (number,)).fetchone()
        if kept is not None:
            return Millis(kept[0])
        moments = [connection.execute(f"SELECT MAX(known) FROM {table} WHERE series = ?", (number,)).fetchone()[0]]
        for file, hidden in self._sealed_files(connection, number, (-_EVER, _EVER)):
            moments.append(self._parquet.all_known(file, hidden, str(series)))
        return max((known for known in moments if known is not None), default=None)

    def _first_time(self, connection: sqlite3.Connection, series: Series[Any], number: int) -> Millis | None:
        times = connection.execute(
            f"""SELECT MIN(at) FROM {tables.shape_of(series.row).table} WHERE series = ?
            UNION ALL SELECT MIN(first) FROM sealed WHERE series = ?""",
            (number, number),
        ).fetchall()
        return min((at for (at,) in times if at is not None), default=None)

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
        """Month by month, each its own transaction, so that nobody waits long and a crash costs one month."""
        self._file.write(self._tidy)
        moved = 0
        for table in tables.OWN:
            while count := self._file.write(partial(self._seal_month, table=table, before=before)):
                moved += count
        return moved

    def _seal_month(self, connection: sqlite3.Connection, table: str, before: Millis) -> int:
        """Seal the oldest month: first its file, then its rows' place in one transaction."""
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
        own = tables.OWN[table]
        for number, name in numbers:
            sealed = connection.execute(
                f"SELECT ?, at, id, known, {own} FROM {table} WHERE series = ? AND at < ? ORDER BY at, id",
                (name, number, until),
            ).fetchall()
            if sealed:
                rows += sealed
                spans.append((number, len(sealed), sealed[0][1], sealed[-1][1]))
        file = self._parquet.write(tables.next_part_name(connection, table, month), table, rows)
        tables.add_file(connection, file, spans)
        connection.executemany(
            f"DELETE FROM {table} WHERE series = ? AND at < ?", [(number, until) for number, *_ in spans]
        )
        return len(rows)

    def _tidy(self, connection: sqlite3.Connection) -> None:
        self._parquet.tidy([file.name for file in tables.list_files(connection)])


def _group_unhidden(files: Sequence[tuple[SealedFile, set[Key]]]) -> Iterator[tuple[list[SealedFile], set[Key]]]:
    """Files in which every row counts are read together, the others one by one."""
    whole = [file for file, hidden in files if not hidden]
    if whole:
        yield whole, set()
    yield from (([file], hidden) for file, hidden in files if hidden)


def _no_columns(series: Series[Any]) -> Columns:
    import numpy as np

    numbers = len(tables.shape_of(series.row).columns) - 1
    return Columns(series, np.empty(0, dtype=np.int64), tuple(np.empty(0) for _ in range(numbers)))


def _month(at: int) -> tuple[str, Millis]:
    """The UTC month of a moment, and when it ends."""
    day = datetime.fromtimestamp(at / 1000, UTC)
    after = datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=UTC)
    return f"{day:%Y-%m}", Millis(int(after.timestamp()) * 1000)
