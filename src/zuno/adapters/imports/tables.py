"""Tables in columns: Parquet by DuckDB, Arrow (freqtrade's feather) by pyarrow, which is an extra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from glob import escape
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zuno.adapters.imports.layouts import (
    FileHead,
    RecognisedFile,
    clean_name,
    find_layout,
    name_symbol,
    symbol_column,
    time_column,
)
from zuno.adapters.imports.text_tables import build_columns, common_step, moments_of_numbers, read_time
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.trading.model.market import Series
from zuno.trading.ports.imports import ISO, ImportBlock, UnreadLine

ROWS_A_BLOCK: Final = 2**18
LOOKED_AT: Final = 200


class ParquetTable(RecognisedFile):
    """A Parquet file."""

    def __init__(self, path: Path, series: Series[Any] | None, asked: str, dates: str) -> None:
        import duckdb

        self._path, self._dates = escape(str(path)), dates  # the name is no pattern
        quiet = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        self._duck = duckdb.connect(config={"threads": 1, **quiet})
        try:
            found = self._duck.execute("DESCRIBE SELECT * FROM read_parquet(?)", [self._path]).fetchall()
            self._columns = [(str(row[0]), str(row[1])) for row in found]
            ((self._count,),) = self._duck.execute("SELECT count(*) FROM read_parquet(?)", [self._path]).fetchall()
        except duckdb.Error as error:
            raise Malformed("It is damaged, or no Parquet.") from error
        self._names = tuple(clean_name(name) for name, _ in self._columns)
        self._time = time_column(self._names)
        times, symbols = self._read(0, LOOKED_AT if dates == ISO else self._count, ())
        symbol = None if symbols is None or not len(symbols) else str(symbols[0])
        head = FileHead(path.name, self._names, len(self._names), symbol, common_step(times[:LOOKED_AT].tolist()))
        self._layout = find_layout(head, series, asked)

    def close(self) -> None:
        self._duck.close()

    def _read_blocks(self) -> Iterator[ImportBlock]:
        places = sorted({place for target in self._layout.targets for place in target.places if place is not None})
        own = self._layout.targets[0].series.name.partition("/")[0]
        for low in range(0, self._count, ROWS_A_BLOCK):
            times, symbols, *numbers = self._read(low, ROWS_A_BLOCK, places)
            by_place = dict(zip(places, numbers, strict=True))
            yield build_block(
                self._layout.targets, times, symbols, by_place, own, low, (low + len(times)) / self._count
            )

    def _read(self, low: int, count: int, places: Sequence[int]) -> list[Any]:
        """Times in milliseconds, symbols, and these columns as numbers."""
        import duckdb

        name, kind = self._columns[self._time]
        text = _quote(name)
        symbol = symbol_column(self._names)
        moment = text
        if kind.startswith(("TIMESTAMP", "DATE")):
            # A time with a zone is kept as UTC; one in nanoseconds, pandas' own, has no cast.
            moment = f"epoch_ns({text}) // 1000000" if kind.endswith("_NS") else f"epoch_ms(CAST({text} AS TIMESTAMP))"
        chosen = [
            f"{moment} AS moment",
            "NULL AS symbol" if symbol is None else f"{_quote(self._columns[symbol][0])} AS symbol",
        ]
        chosen += [f"TRY_CAST({_quote(self._columns[place][0])} AS DOUBLE) AS c{place}" for place in places]
        query = f"SELECT {', '.join(chosen)} FROM read_parquet(?) LIMIT {count} OFFSET {low}"
        self._duck.execute("SET TimeZone = 'UTC'")
        try:
            found = self._duck.execute(query, [self._path]).fetchnumpy()
        except duckdb.Error as error:
            raise Malformed("It is damaged.") from error
        times = _moments(found["moment"], kind, self._dates, low)
        symbols = None if symbol is None else np.ma.filled(found["symbol"], "")
        return [times, symbols, *(np.ma.filled(found[f"c{place}"], np.nan) for place in places)]


class ArrowTable(RecognisedFile):
    """A file in Arrow's own form, as feather is."""

    def __init__(self, path: Path, series: Series[Any] | None, asked: str, dates: str) -> None:
        self._dates = dates
        try:
            import pyarrow as arrow
            from pyarrow import ipc
        except ImportError as error:
            raise Unavailable("A feather file needs pyarrow: pip install 'zuno[feather]'.") from error
        try:
            self._file = ipc.open_file(arrow.memory_map(str(path)))
            self._names = tuple(map(clean_name, self._file.schema.names))
            self._time = time_column(self._names)
            first = self._file.get_batch(0) if self._file.num_record_batches else None
        except (arrow.ArrowInvalid, OSError) as error:
            raise Malformed("It is damaged, or no feather file.") from error
        if first is None or not first.num_rows:
            raise Refused("It is empty.")
        low = 0
        for index in range(0 if dates == ISO else self._file.num_record_batches):
            low += len(self._times(self._file.get_batch(index), low))
        start = first.slice(0, LOOKED_AT)
        symbol = symbol_column(self._names)
        said = None if symbol is None else str(start.column(symbol)[0].as_py())
        head = FileHead(path.name, self._names, len(self._names), said, common_step(self._times(start, 0).tolist()))
        self._layout = find_layout(head, series, asked)

    def close(self) -> None:
        self._file.close() if hasattr(self._file, "close") else None

    def _read_blocks(self) -> Iterator[ImportBlock]:
        places = sorted({place for target in self._layout.targets for place in target.places if place is not None})
        own = self._layout.targets[0].series.name.partition("/")[0]
        low, many = 0, self._file.num_record_batches
        for index in range(many):
            whole = self._file.get_batch(index)
            for start in range(0, whole.num_rows, ROWS_A_BLOCK):
                part = whole.slice(start, ROWS_A_BLOCK)
                numbers = {
                    place: np.asarray(part.column(place).to_numpy(zero_copy_only=False), dtype=np.float64)
                    for place in places
                }
                symbol = symbol_column(self._names)
                symbols = None if symbol is None else np.array(part.column(symbol).to_pylist(), dtype=object)
                done = (index + (start + part.num_rows) / whole.num_rows) / many
                yield build_block(self._layout.targets, self._times(part, low), symbols, numbers, own, low, done)
                low += part.num_rows

    def _times(self, batch: Any, low: int) -> NDArray[np.int64]:
        column = batch.column(self._time)
        kind = str(column.type)
        if kind.startswith(("timestamp", "date")):
            moments = column.to_numpy(zero_copy_only=False).astype("datetime64[ms]").astype(np.int64)
            return np.asarray(moments, dtype=np.int64)
        return _moments(column.to_numpy(zero_copy_only=False), kind, self._dates, low)


def build_block(
    targets: Sequence[Any],
    times: NDArray[np.int64],
    symbols: NDArray[Any] | None,
    numbers: dict[int, NDArray[np.float64]],
    own: str,
    low: int,
    done: float,
) -> ImportBlock:
    """Rows of a table; those of another symbol are named."""
    lines = np.arange(low + 1, low + 1 + len(times), dtype=np.int64)
    unread: list[UnreadLine] = []
    if symbols is not None:
        whose = {symbol: _own_name(symbol) for symbol in set(symbols.tolist())}
        mine = np.array([whose[symbol] == own for symbol in symbols.tolist()], dtype=bool)
        unread = [UnreadLine(int(line), f"it is about {symbols[line - low - 1]}") for line in lines[~mine]]
        times, lines = times[mine], lines[mine]
        numbers = {place: column[mine] for place, column in numbers.items()}
    columns = tuple(build_columns(target, times, numbers) for target in targets)
    return ImportBlock(columns, lines, tuple(unread), len(times) + len(unread), done)


def _own_name(symbol: object) -> str:
    try:
        return name_symbol(str(symbol)).value
    except Refused:
        return ""


def _moments(values: Any, kind: str, dates: str, low: int) -> NDArray[np.int64]:
    if isinstance(values, np.ma.MaskedArray):
        raise Malformed("A row of it has no time.")
    if values.dtype == object:
        read = [read_time(str(value), dates, line) for line, value in enumerate(values.tolist(), low + 1)]
        if None in read:
            raise Malformed("A time of it cannot be read.")
        return np.array(read, dtype=np.int64)
    if kind.startswith(("TIMESTAMP", "DATE")):
        return np.asarray(values, dtype=np.int64)
    return moments_of_numbers(values)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
