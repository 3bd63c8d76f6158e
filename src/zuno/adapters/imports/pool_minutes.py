"""Minute rows of a pool from a folder of CSV files, plain or gzipped; and how any such folder of a pool's is read.

Repairs, all counted: rows are sorted, the first row of a minute counts, lowest and highest tick are widened to hold
open and close, a missing minute or day is one without a trade. Anything else that is wrong, and a gap of more than a
month, is refused with its file and row.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from zuno.amm.ticks import MAX_TICK, MIN_TICK
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis, Seconds
from zuno.lp.model.minutes import MINUTE_MS, MinuteRepairs, PoolMinute, PoolMinutes

R = TypeVar("R")
ENDINGS: Final = (".csv", ".csv.gz")
COLUMNS: Final = tuple(
    "timestamp openTick closeTick lowestTick highestTick inAmount0 inAmount1 currentLiquidity".split()
)
_DAY_MS: Final = 86_400_000
_LONGEST_GAP_MS: Final = 31 * _DAY_MS
_DIGITS: Final = 78
"""Of the largest uint256."""
_MOST_AMOUNT: Final = 2**127
"""What a pool adds or swaps at once is an int128."""
_WHOLE: Final = re.compile(rf"([+-]?[0-9]{{1,{_DIGITS}}})(?:\.0*)?")
_SCIENTIFIC: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]+")


def read_pool_minutes(folder: Path) -> PoolMinutes:
    """Every CSV file of a folder, taken together. `Refused` where there is none, `Malformed` for a bad row."""
    files = list_files(folder)
    by_time: dict[Millis, PoolMinute] = {}
    counts: dict[str, Any] = dict.fromkeys(("rows", "sorted_rows", "widened", "repeated", "contradicted"), 0)
    last: Millis | None = None
    for path in files:
        for _, minute in read_rows(path, COLUMNS, _read_minute):
            counts["rows"] += 1
            low = min(minute.lowest_tick, minute.open_tick, minute.close_tick)
            high = max(minute.highest_tick, minute.open_tick, minute.close_tick)
            if (low, high) != (minute.lowest_tick, minute.highest_tick):
                counts["widened"] += 1
                minute = replace(minute, lowest_tick=low, highest_tick=high)
            before = by_time.setdefault(minute.at, minute)
            if before is not minute:
                counts["repeated" if before == minute else "contradicted"] += 1
            elif last is not None and minute.at < last:
                counts["sorted_rows"] += 1
            last = minute.at if last is None else max(last, minute.at)
    if not by_time:
        raise Refused(f"{plain_text(str(folder), 200)} holds no row.")
    minutes = tuple(by_time[at] for at in sorted(by_time))
    _check_gaps(files, minutes)
    days = sorted({minute.at // _DAY_MS for minute in minutes})
    missing_days = [day for day_before, later in pairwise(days) for day in range(day_before + 1, later)]
    return PoolMinutes(
        minutes,
        MinuteRepairs(
            **counts,
            files=len(files),
            missing=(minutes[-1].at - minutes[0].at) // MINUTE_MS + 1 - len(minutes),
            missing_days=tuple(f"{_to_utc(Millis(day * _DAY_MS)):%Y-%m-%d}" for day in missing_days),
            without_liquidity=sum(minute.liquidity == 0 for minute in minutes),
        ),
    )


def list_files(folder: Path) -> list[Path]:
    if not folder.exists():
        raise Refused(f"{plain_text(str(folder), 200)} is not there.")
    files = [folder] if folder.is_file() else sorted(path for path in folder.iterdir() if path.name.endswith(ENDINGS))
    if not files:
        raise Refused(f"{plain_text(str(folder), 200)} holds no file ending in {' or '.join(ENDINGS)}.")
    return files


def read_names(path: Path) -> list[str]:
    """The columns that a file names; none of a damaged one: whoever reads it further says what is wrong."""
    try:
        with _open(path) as text:
            return _names_of(next(csv.reader(text), []))
    except (csv.Error, UnicodeDecodeError, EOFError, zlib.error, OSError):
        return []


def _names_of(header: Sequence[str]) -> list[str]:
    return [name.strip().lstrip("\ufeff") for name in header]


def _check_gaps(files: Sequence[Path], minutes: Sequence[PoolMinute]) -> None:
    """A wrong date would stretch the record over years: a gap of more than a month is refused."""
    for place, (earlier, later) in enumerate(pairwise(minutes), 1):
        if later.at - earlier.at > _LONGEST_GAP_MS:
            lone = earlier if 2 * place <= len(minutes) else later
            name, number = next(
                (path.name, number)
                for path in files
                for number, row in read_rows(path, COLUMNS, _read_minute)
                if row.at == lone.at
            )
            days = (later.at - earlier.at) // _DAY_MS
            raise Malformed(
                f"{name}, row {number}: {_to_utc(lone.at):%Y-%m-%d %H:%M} is {days:,} days away from the other rows; "
                f"a gap of more than {_LONGEST_GAP_MS // _DAY_MS} days is no missing day."
            )


def _to_utc(at: Millis) -> datetime:
    return datetime.fromtimestamp(at // 1000, UTC)


def read_rows(path: Path, columns: Sequence[str], read: Callable[[tuple[str, ...]], R]) -> Iterator[tuple[int, R]]:
    """Each with the number of its row. `read` raises `ValueError`, which says what is wrong with the fields."""
    number = 0
    try:
        with _open(path) as text:
            lines = csv.reader(text, strict=True)
            header, number = next(lines, None), 1
            if header is None:
                raise Refused(f"{path.name} is empty.")
            names = _names_of(header)
            absent = [name for name in columns if name not in names]
            if absent:
                raise Malformed(f"{path.name} is no record of a pool: column {', '.join(absent)} is missing.")
            select_columns = itemgetter(*(names.index(name) for name in columns))
            for number, fields in enumerate(lines, 2):
                try:
                    yield number, read(select_columns(fields))
                except (IndexError, ValueError) as error:
                    if not any(map(str.strip, fields)):  # a blank line
                        continue
                    why = "it has too few fields" if isinstance(error, IndexError) else str(error)
                    raise Malformed(f"{path.name}, row {number}: {plain_text(why, 200)}.") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise Malformed(f"{path.name} is no CSV file after row {number}.") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Malformed(f"{path.name} is cut off or damaged after row {number}.") from error
    except OSError as error:
        raise Unavailable(f"{path.name} cannot be read ({error.strerror}).") from error


def _open(path: Path) -> TextIO:
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rt", encoding="utf-8", newline="") if packed else open(path, encoding="utf-8", newline="")


def _read_minute(fields: tuple[str, ...]) -> PoolMinute:
    """`ValueError` says which field is wrong."""
    at = Millis(1000 * read_time(fields[0]))
    if at % MINUTE_MS:
        raise ValueError(f"timestamp {fields[0][:40]!r} is no whole minute")
    open_tick, close_tick, lowest, highest, in0, in1, liquidity = _read_numbers(fields[1:])
    if lowest > highest:
        raise ValueError(f"the lowest tick {lowest} is above the highest {highest}")
    if not MIN_TICK < min(lowest, open_tick, close_tick) <= max(highest, open_tick, close_tick) < MAX_TICK:
        raise ValueError(f"a tick is not between {MIN_TICK} and {MAX_TICK}")
    if min(in0, in1, liquidity) < 0:
        raise ValueError("an amount or the liquidity is negative")
    if max(in0, in1, liquidity) >= _MOST_AMOUNT:
        raise ValueError("an amount or the liquidity is more than a pool can hold")
    return PoolMinute(at, open_tick, close_tick, lowest, highest, in0, in1, liquidity)


def read_time(text: str) -> Seconds:
    text = text.strip()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"timestamp {text[:40]!r} is no time") from None
    return Seconds(round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()))


def _read_numbers(fields: tuple[str, ...]) -> list[int]:
    digits = "".join(fields)
    if digits.isdecimal() and digits.isascii() and all(fields) and len(digits) < _DIGITS:
        return list(map(int, fields))  # as in nearly every row: digits and nothing else
    return [read_whole(name, field.strip()) for name, field in zip(COLUMNS[1:], fields, strict=True)]


def read_whole(name: str, text: str) -> int:
    """A whole number, also where a table program wrote it as `197030.0`."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        if _SCIENTIFIC.fullmatch(text):
            raise ValueError(f"{name} {text[:40]!r} has lost its digits")
        raise ValueError(f"{name} {text[:40]!r} is no whole number")
    return int(match[1])
