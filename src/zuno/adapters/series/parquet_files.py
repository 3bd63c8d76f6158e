"""History in Parquet: rows of one month, sorted by series and time, written once and never changed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from zuno.adapters.atomic_file import DRAFT_SUFFIX, is_full, open_replacement, translate_write_errors
from zuno.kernel.errors import Broken, DiskFull, Unavailable

if TYPE_CHECKING:
    import duckdb

_KEYS: Final = (("series", "VARCHAR"), ("at", "BIGINT"), ("id", "VARCHAR"), ("known", "BIGINT"))
COLUMNS: Final = {
    "rows": (*_KEYS, *((f"v{place}", "DOUBLE") for place in range(6))),
    "documents": (*_KEYS, ("body", "BLOB")),
}


@dataclass(frozen=True, slots=True)
class SealedFile:
    """A file as it was written: name, size and digest, to notice another one in its place."""

    name: str
    size: int
    digest: str


class ParquetFiles:
    """The folder of sealed files. The manifest, not the folder, says which of them count."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._vendor: duckdb.DuckDBPyConnection | None = None

    def write(self, name: str, table: str, rows: Sequence[tuple[Any, ...]]) -> SealedFile:
        import numpy as np

        columns, chosen = {}, []
        for (column, kind), values in zip(COLUMNS[table], zip(*rows, strict=True), strict=True):
            numpy_type = {"BIGINT": np.int64, "DOUBLE": np.float64}.get(kind, np.object_)
            # A number that is not there is None with us and NULL in the file; numpy only has NaN for it.
            columns[column] = np.array(values, dtype=numpy_type)
            quoted = _quote(column)
            chosen.append(_number(quoted) if kind == "DOUBLE" else f"{quoted}::{kind} AS {quoted}")
        return self._seal(name, columns, chosen)

    def write_columns(self, name: str, series: str, columns: Mapping[str, Any]) -> SealedFile:
        """The same of rows of one series in columns: at, known, and as many numbers as it has."""
        chosen = [f"'{series.replace(chr(39), chr(39) * 2)}' AS series", '"at"', "'' AS id", "known"]
        numbers = [column for column, _ in COLUMNS["rows"][len(_KEYS) :]]
        chosen += [_number(column) if column in columns else f"NULL::DOUBLE AS {column}" for column in numbers]
        return self._seal(name, columns, chosen)

    def _seal(self, name: str, columns: Mapping[str, Any], chosen: Sequence[str]) -> SealedFile:
        with translate_write_errors(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open_replacement(self._folder / name) as draft:
                with self._translate_duckdb(name):
                    duck = self._duck()
                    duck.register("columns_of_rows", columns)
                    try:
                        duck.execute(
                            f"COPY (SELECT {', '.join(chosen)} FROM columns_of_rows) TO "
                            f"'{str(draft).replace(chr(39), chr(39) * 2)}' (FORMAT parquet, COMPRESSION zstd)"
                        )
                    finally:
                        duck.unregister("columns_of_rows")
                return SealedFile(name, draft.stat().st_size, _digest(draft))

    def read_columns(
        self, files: Sequence[SealedFile], columns: Sequence[str], series: str, span: tuple[int, int]
    ) -> dict[str, Any]:
        """These columns of the rows of that time, as numpy has them; NaN where a number is not there."""
        import numpy as np

        with self._select(files, columns, (series, *span), 'ORDER BY "at"') as selected:
            arrays = selected.fetchnumpy()
        return {name: np.ma.filled(values, np.nan) for name, values in arrays.items()}

    def read(
        self,
        files: Sequence[SealedFile],
        columns: Sequence[str],
        series: str,
        span: tuple[int, int],
        known_by: int,
        newest: int | None,
    ) -> list[tuple[Any, ...]]:
        """These columns of the rows of that time, known by then, oldest first; `newest`: only so many of the last."""
        limit, order = ("", "") if newest is None else (f" LIMIT {int(newest)}", " DESC")
        rest = f'AND known <= ? ORDER BY "at"{order}, id{order}{limit}'
        with self._select(files, columns, (series, *span, known_by), rest) as selected:
            rows = selected.fetchall()
        return rows if newest is None else rows[::-1]

    @contextmanager
    def _select(
        self, files: Sequence[SealedFile], columns: Sequence[str], values: Sequence[object], rest: str
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """`values`: the series, the first and the last time, and what `rest` asks for."""
        for file in files:
            self._must_be_whole(file)
        chosen = ", ".join(map(_quote, columns))
        query = f'SELECT {chosen} FROM read_parquet(?) WHERE series = ? AND "at" BETWEEN ? AND ? {rest}'
        with self._translate_duckdb(", ".join(file.name for file in files)):
            yield self._duck().execute(query, [[str(self._folder / file.name) for file in files], *values])

    def all_known(self, file: SealedFile, hidden: Collection[tuple[int, str]], series: str) -> int | None:
        """The latest moment at which a row of that series became known; `hidden`: keys that do not count."""
        self._must_be_whole(file)
        chosen = '"at", id, known' if hidden else "NULL, NULL, max(known)"
        query = f"SELECT {chosen} FROM read_parquet(?) WHERE series = ?"
        with self._translate_duckdb(file.name):
            rows = self._duck().execute(query, [str(self._folder / file.name), series]).fetchall()
        return max((row[2] for row in rows if row[2] is not None and row[:2] not in hidden), default=None)

    def inspect(self, files: Sequence[SealedFile]) -> None:
        """Compare every file with its digest; `Broken` for the first that differs."""
        for file in files:
            self._must_be_whole(file)
            with self._translate_duckdb(file.name):
                if _digest(self._folder / file.name) != file.digest:
                    raise self._damage(file.name)

    def tidy(self, kept: Sequence[str]) -> None:
        """Delete what a crash left or nobody lists any more. Only for the store's single holder."""
        if not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            if path.name not in kept and path.name.removesuffix(DRAFT_SUFFIX).endswith(".parquet"):
                with suppress(OSError):
                    path.unlink()

    def close(self) -> None:
        if self._vendor is not None:
            self._vendor.close()
            self._vendor = None

    def _duck(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        if self._vendor is None:
            quiet = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
            self._vendor = duckdb.connect(config={"threads": 1, **quiet})
        return self._vendor

    def _must_be_whole(self, file: SealedFile) -> None:
        try:
            size = (self._folder / file.name).stat().st_size
        except FileNotFoundError:
            raise FileGone(f"{self._folder / file.name} is gone; put it back from a copy.") from None
        except OSError as error:
            raise Unavailable(f"{self._folder / file.name} cannot be read ({error.strerror}).") from error
        if size != file.size:
            raise self._damage(file.name)

    def _damage(self, name: str) -> Broken:
        return Broken(f"{self._folder / name} is damaged; put it back from a copy.")

    @contextmanager
    def _translate_duckdb(self, name: str) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.IOException as error:
            if is_full(self._folder):
                raise DiskFull(self._folder / name) from error
            raise Unavailable(f"{self._folder} did not answer ({_first_line(error)}).") from error
        except duckdb.OutOfMemoryException as error:
            raise Unavailable(f"{self._folder} needs more memory than there is ({_first_line(error)}).") from error
        except duckdb.Error as error:
            raise self._damage(name) from error


class FileGone(Broken):
    """A file that the manifest lists is not in the folder."""


def _quote(name: str) -> str:
    return f'"{name}"'


def _number(column: str) -> str:
    return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END AS {column}"


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
