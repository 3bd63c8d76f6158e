"""Find files of market history and open each by its first bytes."""

import gzip
import re
from collections.abc import Sequence
from os.path import expanduser
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.text import plain_text
from zuno.trading.model.market import Series
from zuno.trading.ports.imports import FoundFile, ImportFile

_TABLES: Final = re.compile(r".*\.(csv|tsv|gz|zip|parquet|feather|arrow)|.+-\d+[mhdwM](-\w+)?\.json", re.DOTALL)
"""What files of a folder are called; of JSON those that are named as freqtrade's."""
_TEXTS: Final = (".csv", ".tsv", ".txt", ".json")


class HistoryFiles:
    formats: tuple[str, ...] = ("auto", "binance", "csv", "freqtrade")

    def find(self, paths: Sequence[str]) -> list[FoundFile]:
        files: dict[Path, None] = {}
        for written in paths:
            try:
                files.update(dict.fromkeys(_find_tables(Path(expanduser(written)))))
            except OSError as error:
                raise Refused(f"{plain_text(written, 80)} cannot be read ({error.strerror}).") from error
        return [FoundFile(str(path), path.name, path.stat().st_size) for path in files]

    def open(self, file: FoundFile, series: Series[Any] | None, layout: str, dates: str) -> ImportFile:
        path = Path(file.path)
        try:
            with open(path, "rb") as opened:
                start = opened.read(8)
        except OSError as error:
            raise Unavailable(f"It cannot be read ({error.strerror}).") from error
        if not start:
            raise Refused("It is empty.")
        if start.startswith((b"PAR1", b"ARROW1")):
            from zuno.adapters.imports.tables import ColumnTable

            return ColumnTable(path, start.startswith(b"ARROW1"), series, layout, dates)
        if start.startswith((b"FEA1", b"\x89HDF")):
            raise Refused("Its form is not read here: convert it to CSV, Parquet or feather of today.")
        return _open_text(file, start, series, layout, dates)


def _find_tables(path: Path) -> list[Path]:
    if path.is_dir():
        inside = [file for file in sorted(path.rglob("*")) if file.is_file() and _TABLES.fullmatch(file.name)]
        if not inside:
            raise Refused(f"{path} has no CSV, gzip, zip, Parquet or feather, and no JSON named as BTC_USDT-1h.json.")
        return inside
    if not path.is_file():
        raise Refused(f"{path} is {'no file' if path.exists() else 'not there'}.")
    return [path]


def _open_text(file: FoundFile, start: bytes, series: Series[Any] | None, layout: str, dates: str) -> ImportFile:
    from zuno.adapters.imports.text_tables import TextTable

    raw: Any = open(file.path, "rb")  # noqa: SIM115 (closed with the table)
    size = max(1, file.size)

    def done() -> float:
        return 1.0 if raw.closed else min(1.0, raw.tell() / size)

    try:
        name, source = file.name, raw
        if start.startswith(b"\x1f\x8b"):
            name, source = name.removesuffix(".gz"), gzip.GzipFile(fileobj=raw)
        elif start.startswith(b"PK"):
            name, source = _open_member(raw)
        return TextTable(name, source, raw.close, done, series, layout, dates)
    except BaseException:
        raw.close()
        raise


def _open_member(raw: Any) -> tuple[str, Any]:
    try:
        archive = ZipFile(raw)
        members = [member for member in archive.namelist() if member.lower().endswith(_TEXTS)]
        if len(members) != 1:
            raise Refused(f"The archive holds {len(members)} tables of text: unpack it and import the folder.")
        return Path(members[0]).name, archive.open(members[0])
    except (BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise Malformed(f"The archive cannot be read ({type(error).__name__}).") from error
