"""The market's past in this process alone: forgotten at its end, with every promise of the file but durability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from zuno.adapters.series.merge_rows import (
    BAD,
    CheckedBatch,
    Key,
    PastRow,
    RowNote,
    StoredRow,
    add_counts,
    check_batches,
    check_origin,
    declare_origin,
    merge_batch,
    newest_prints,
    sources_of,
)
from zuno.kernel.units import Millis
from zuno.trading.measure.columns import WIDTH, compare_rows, take_rows, to_rows
from zuno.trading.model.market import MacroRelease, Row, Series
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

R = TypeVar("R", bound=Row)


class MemorySeries:
    """A `SeriesStore` without a file."""

    def __init__(self, origin: Origin) -> None:
        self.origin = self._wanted = origin
        self._sources: dict[tuple[Series[Any], Source, str], RowSource] = {}
        self._rows: dict[Series[Any], dict[Key, StoredRow]] = {}
        self._pasts: dict[Series[Any], dict[Key, list[PastRow]]] = {}
        self._notes: dict[tuple[str, str, Millis, str, str], tuple[Series[Any], RowNote]] = {}
        self._sealed: set[tuple[Series[Any], Key]] = set()

    async def write(self, batches: Sequence[Batch[Any]]) -> WriteCounts:
        return self._put_batches(check_batches(batches))

    def _put_batches(self, offered: Sequence[CheckedBatch]) -> WriteCounts:
        done = WriteCounts(0, 0, 0, 0)
        self.origin = declare_origin(self.origin, self._wanted, sources_of(offered), empty=not self._rows)
        for sound in offered:
            batch = sound.batch
            pasts = self._pasts.setdefault(batch.series, {})
            result = merge_batch(sound, self._rows.get(batch.series, {}), pasts)
            for past in result.pasts:
                pasts.setdefault(past[:2], []).append(past)
            for at, name, known, row in result.puts:
                self._rows.setdefault(batch.series, {})[at, name] = (known, row)
                self._sealed.discard((batch.series, (at, name)))
            if result.puts and not self.origin.synthetic:
                self._note_source(batch, [at for at, _, _, _ in result.puts])
            for note in result.notes:
                place = (str(batch.series), note.kind, note.at, note.id, note.detail)
                _, before = self._notes.get(place, (batch.series, note))
                self._notes[place] = (batch.series, replace(note, known=min(note.known, before.known)))
            done = add_counts(done, result.counts)
        return done

    async def write_columns(
        self, columns: Columns, source: Source, file: str, now: Millis, replace: Any = True
    ) -> ColumnsWritten:
        series, held = columns.series, self._rows.get(columns.series, {})
        fresh, other = compare_rows(columns, self._columns(series))
        noted = [one for one in self._sources.values() if one.series == series]
        collected = [one for one in noted if one.source is Source.COLLECTED]
        low = min((one.first for one in collected), default=1 if noted or not held else min(held)[0])
        high = max((one.last for one in collected), default=0 if noted or not held else max(held)[0])
        changed = other & replace
        chosen = [row for row, put in zip(to_rows(columns), fresh | changed, strict=True) if put]
        past = [row for row in chosen if not low <= row.at <= high]
        late = [row for row in chosen if low <= row.at <= high]
        self._put_batches(
            check_batches([Batch(series, past, None, source, file), Batch(series, late, now, source, file)])
        )
        return ColumnsWritten(fresh, changed, other & ~changed)

    async def read_columns(self, series: Series[Any], since: Millis, until: Millis) -> Columns:
        columns = self._columns(series)
        return take_rows(columns, (columns.at >= since) & (columns.at <= until))

    def _columns(self, series: Series[Any]) -> Columns:
        rows = [row for _, (_, row) in sorted(self._rows.get(series, {}).items())]
        table = np.array(rows, dtype=np.float64).reshape(-1, WIDTH[series.row] + 1)
        return Columns(series, np.array([row.at for row in rows], dtype=np.int64), tuple(table.T[1:]))

    def _note_source(self, batch: Batch[Any], times: Sequence[Millis]) -> None:
        key = (batch.series, batch.source, batch.file)
        seen = self._sources.get(key, RowSource(*key, 0, times[0], times[0]))
        first, last = min(seen.first, *times), max(seen.last, *times)
        self._sources[key] = RowSource(*key, seen.rows + len(times), first, last)

    async def read(
        self, series: Series[R], since: Millis, until: Millis, known_by: Millis, newest: int | None = None
    ) -> tuple[R, ...]:
        return self._read_slice(Slice(series, since, until, newest), known_by)

    async def read_many(self, slices: Sequence[Slice[Any]], known_by: Millis) -> SeriesSnapshot:
        rows = tuple(self._read_slice(asked, known_by) for asked in slices)
        return SeriesSnapshot(self.origin, rows, tuple(self._asides(asked, known_by) for asked in slices))

    def _asides(self, asked: Slice[Any], known_by: Millis) -> tuple[RejectedRow, ...]:
        found = [
            RejectedRow(note.at, note.detail)
            for series, note in self._notes.values()
            if note.kind == BAD and series == asked.series
            if note.known <= known_by and asked.since <= note.at <= asked.until
        ]
        return tuple(sorted(found, key=lambda aside: (aside.at, aside.detail)))

    def _read_slice(self, asked: Slice[R], known_by: Millis) -> tuple[R, ...]:
        series, newest = asked.series, asked.newest
        found = {key: row for key, (known, row) in self._rows.get(series, {}).items() if known <= known_by}
        for pasts in self._pasts.get(series, {}).values():
            found.update(((at, name), row) for at, name, known, end, row in pasts if known <= known_by < end)
        rows = [found[key] for key in sorted(found) if asked.since <= key[0] <= asked.until]
        if series.row is MacroRelease:
            rows = newest_prints(iter(rows))
        return tuple(rows if newest is None else rows[max(0, len(rows) - newest) :])

    async def spans(self) -> tuple[Span, ...]:
        return tuple(self._span(series) for series in sorted(self._rows, key=str))

    async def newest_known(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        return tuple(map(self._newest_known, several))

    def _newest_known(self, series: Series[Any]) -> Millis | None:
        held, pasts = self._rows.get(series, {}), self._pasts.get(series, {})
        last = max(held, default=(None, ""))[0]
        first = [known for (at, _), (known, _) in held.items() if at == last]
        first += [past[2] for (at, _), stood in pasts.items() if at == last for past in stood]
        return min(first, default=None)

    async def all_known(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        return tuple(
            max((known for known, _ in self._rows.get(series, {}).values()), default=None) for series in several
        )

    async def first_times(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        return tuple(min(self._rows.get(series, {}), default=(None, ""))[0] for series in several)

    async def sources(self) -> tuple[RowSource, ...]:
        return tuple(
            sorted(self._sources.values(), key=lambda found: (str(found.series), found.first, found.source, found.file))
        )

    async def flaws(self) -> tuple[Flaw, ...]:
        return tuple(
            Flaw(series, note.kind, note.at, note.at, 1, note.detail, note.mended, note.replaced)
            for _, (series, note) in sorted(self._notes.items(), key=lambda item: (item[0][0], item[0][2], *item[0]))
        )

    async def mend(self, flaws: Sequence[Flaw]) -> None:
        for flaw in flaws:
            for place, (series, note) in self._notes.items():
                if (place[0], place[1], place[2], place[4]) == (str(flaw.series), flaw.kind, flaw.first, flaw.detail):
                    self._notes[place] = (series, replace(note, mended=flaw.mended))

    async def seal(self, before: Millis) -> int:
        old = {(series, key) for series, held in self._rows.items() for key in held if key[0] < before}
        count = len(old - self._sealed)
        self._sealed |= old
        return count

    async def renew(self, origin: Origin, batches: Sequence[Batch[Any]] = ()) -> RenewedStore:
        offered = check_batches(batches)
        check_origin(self.origin, origin)
        self.origin = origin
        self._rows, self._pasts, self._notes, self._sealed, self._sources = {}, {}, {}, set(), {}
        written = self._put_batches(offered)
        return RenewedStore(self.origin, written, await self.spans())

    async def begin(self, origin: Origin, batches: Sequence[Batch[Any]]) -> bool:
        check_origin(self.origin, origin)
        if self._rows:
            return False
        await self.renew(origin, batches)
        return True

    async def close(self) -> None:
        pass

    def _span(self, series: Series[Any]) -> Span:
        keys = self._rows[series]
        sealed = sum((series, key) in self._sealed for key in keys)
        return Span(series, len(keys), min(keys)[0], max(keys)[0], sealed)
