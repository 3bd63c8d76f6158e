"""Tables in columns, by DuckDB: Parquet, and Arrow (freqtrade's feather) with pyarrow, which is an extra."""

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
    is_about,
    symbol_column,
    time_column,
)
from zuno.adapters.imports.text_tables import build_columns, common_step, moments_of_numbers, open_duck, read_time
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.installation import name_install
from zuno.trading.model.market import Series
from zuno.trading.ports.imports import ISO, ImportBlock, UnreadLine

ROWS_A_BLOCK: Final = 2**18
LOOKED_AT: Final = 200


class ColumnTable(RecognisedFile):
    """A Parquet file, or one in Arrow's own form, as feather is."""

    def __init__(self, path: Path, arrow: bool, series: Series[Any] | None, asked: str, dates: str) -> None:
        import duckdb

        self._dates, self._duck = dates, open_duck()
        try:
            if arrow:
                self._duck.register("rows", _open_arrow(path))
            else:  # the name is no pattern
                self._duck.read_parquet(escape(str(path))).create_view("rows")
            columns = self._duck.execute("DESCRIBE rows").fetchall()
            self._columns = [(str(row[0]), str(row[1])) for row in columns]
            ((self._count,),) = self._duck.execute("SELECT count(*) FROM rows").fetchall()
        except duckdb.Error as error:
            raise Malformed(f"It is damaged, or no {'feather file' if arrow else 'Parquet'}.") from error
        if not self._count:
            raise Refused("It is empty.")
        self._names = tuple(clean_name(name) for name, _ in self._columns)
        self._time = time_column(self._names)
        times, symbols = self._read(0, LOOKED_AT if dates == ISO else self._count, ())
        symbol = None if symbols is None else str(symbols[0])
        head = FileHead(path.name, self._names, len(self._names), symbol, common_step(times[:LOOKED_AT].tolist()))
        self._layout = find_layout(head, series, asked)

    def close(self) -> None:
        self._duck.close()

    def blocks(self) -> Iterator[ImportBlock]:
        targets, places = self._layout.targets, self._layout.places
        size = ROWS_A_BLOCK if targets[0].parts == 1 else self._count
        for low in range(0, self._count, size):
            times, symbols, *numbers = self._read(low, size, places)
            by_place, count = dict(zip(places, numbers, strict=True)), len(times)
            lines = np.arange(low + 1, low + 1 + count, dtype=np.int64)
            unread: list[UnreadLine] = []
            if symbols is not None:  # rows of another symbol are named
                own = {symbol: is_about(str(symbol), targets[0].series) for symbol in set(symbols.tolist())}
                mine = np.array([own[symbol] for symbol in symbols.tolist()], dtype=bool)
                unread = [UnreadLine(int(line), f"it is about {symbols[line - low - 1]}") for line in lines[~mine]]
                times, lines = times[mine], lines[mine]
                by_place = {place: column[mine] for place, column in by_place.items()}
            columns = tuple(build_columns(target, times, by_place) for target in targets)
            yield ImportBlock(columns, lines, tuple(unread), count, (low + count) / self._count, targets[0].parts)

    def _read(self, low: int, count: int, places: Sequence[int]) -> list[Any]:
        """Times in milliseconds, symbols, and these columns as numbers."""
        import duckdb

        name, kind = self._columns[self._time]
        moment = _quote(name)
        symbol = symbol_column(self._names)
        if kind.startswith(("TIMESTAMP", "DATE")):  # with a zone it is kept as UTC; pandas' nanoseconds have no cast
            nanos = kind.endswith("_NS")
            moment = f"epoch_ns({moment}) // 1000000" if nanos else f"epoch_ms(CAST({moment} AS TIMESTAMP))"
        chosen = [
            f"{moment} AS moment",
            "NULL AS symbol" if symbol is None else f"{_quote(self._columns[symbol][0])} AS symbol",
        ]
        chosen += [f"TRY_CAST({_quote(self._columns[place][0])} AS DOUBLE) AS c{place}" for place in places]
        self._duck.execute("SET TimeZone = 'UTC'")
        try:
            arrays = self._duck.execute(f"SELECT {', '.join(chosen)} FROM rows LIMIT {count} OFFSET {low}").fetchnumpy()
        except duckdb.Error as error:
            raise Malformed("It is damaged.") from error
        times = _moments(arrays["moment"], kind, self._dates, low)
        symbols = None if symbol is None else np.ma.filled(arrays["symbol"], "")
        return [times, symbols, *(np.ma.filled(arrays[f"c{place}"], np.nan) for place in places)]


def _open_arrow(path: Path) -> Any:
    try:
        from pyarrow import ArrowInvalid, dataset
    except ImportError as error:
        raise Unavailable(f"A feather file needs pyarrow: {name_install('feather')}.") from error
    try:
        return dataset.dataset(str(path), format="feather")
    except (ArrowInvalid, OSError) as error:
        raise Malformed("It is damaged, or no feather file.") from error


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
