"""Markets that are read and never written: rows kept in memory, and another store seen through a change of its rows."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.trading.measure.data_quality import complete_at
from zuno.trading.model.market import Row, Series
from zuno.trading.ports.series import Origin, SeriesSnapshot, SeriesStore, Slice, Span

R = TypeVar("R", bound=Row)


class ReadOnlySeries:
    """A store whose rows come from `read`."""

    @property
    def origin(self) -> Origin:
        raise NotImplementedError

    async def read(
        self, series: Series[R], since: Millis, until: Millis, known_by: Millis, newest: int | None = None
    ) -> tuple[R, ...]:
        raise NotImplementedError

    async def read_many(self, slices: Sequence[Slice[Any]], known_by: Millis) -> SeriesSnapshot:
        rows = [await self.read(each.series, each.since, each.until, known_by, each.newest) for each in slices]
        return SeriesSnapshot(self.origin, tuple(rows), ((),) * len(rows))

    async def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Refused("This market is read only.")

    spans = newest_known = all_known = first_times = sources = flaws = _refuse
    write = mend = seal = renew = begin = _refuse

    async def close(self) -> None:
        """Whoever opened what lies behind closes it."""


class MarketRows(ReadOnlySeries):
    """Bars and other rows in memory, each known from when it was complete, in the order of their times."""

    def __init__(self, origin: Origin, rows: Mapping[Series[Any], Sequence[Any]]) -> None:
        """`rows`: oldest first."""
        self._origin = origin
        self._rows = rows
        self._times = {series: [row.at for row in several] for series, several in rows.items()}
        self._known = {series: [complete_at(series, row) for row in several] for series, several in rows.items()}

    @property
    def origin(self) -> Origin:
        return self._origin

    async def read(
        self, series: Series[R], since: Millis, until: Millis, known_by: Millis, newest: int | None = None
    ) -> tuple[R, ...]:
        times = self._times.get(series)
        if times is None:
            return ()
        first = bisect_left(times, since)
        last = min(bisect_right(times, until), bisect_right(self._known[series], known_by))
        return tuple(self._rows[series][first if newest is None else max(first, last - newest) : max(first, last)])


class ChangedSeries(ReadOnlySeries):
    """A store whose rows are changed as they are read."""

    def __init__(self, store: SeriesStore, name: str = "") -> None:
        """`name`: what the origin is called beside its own; a candles-only store stays one."""
        self._store = store
        self._name = name

    def find_source(self, series: Series[R]) -> Series[R]:
        """Which of the store's own is read for a series."""
        return series

    def change_rows(self, series: Series[R], rows: Sequence[R]) -> Sequence[R]:
        return rows

    @property
    def origin(self) -> Origin:
        origin = self._store.origin
        return Origin(origin.synthetic, f"{origin.label} {self._name}") if self._name else origin

    async def read(
        self, series: Series[R], since: Millis, until: Millis, known_by: Millis, newest: int | None = None
    ) -> tuple[R, ...]:
        rows = await self._store.read(self.find_source(series), since, until, known_by, newest)
        return tuple(self.change_rows(series, rows))

    async def read_many(self, slices: Sequence[Slice[Any]], known_by: Millis) -> SeriesSnapshot:
        sources = [replace(each, series=self.find_source(each.series)) for each in slices]
        snapshot = await self._store.read_many(sources, known_by)
        rows = (self.change_rows(each.series, rows) for each, rows in zip(slices, snapshot.rows, strict=True))
        return SeriesSnapshot(self.origin, tuple(rows), snapshot.asides)

    async def spans(self) -> tuple[Span, ...]:
        return await self._store.spans()

    async def newest_known(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        return await self._store.newest_known(several)

    async def all_known(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        return await self._store.all_known(several)

    async def first_times(self, several: Sequence[Series[Any]]) -> tuple[Millis | None, ...]:
        return await self._store.first_times(several)
