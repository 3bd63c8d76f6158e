"""A strategy in a CSV file of `time,market,weight`: a row counts from its time on, until the next one of its market."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zuno.adapters.atomic_file import read_foreign_file
from zuno.kernel.arguments import parse_time
from zuno.kernel.errors import Malformed, Unavailable, UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis

COLUMNS: Final = ["time", "market", "weight"]
MOST_BYTES: Final = 16 * 1024 * 1024
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class CsvStrategy:
    path: Path

    async def ask(self, at: Millis, view: bytes) -> Mapping[str, object]:
        content = read_foreign_file(self.path, MOST_BYTES)
        if content is None:
            raise Unavailable(f"there is no file {self.path}")
        return read_weights(content.decode("utf-8-sig", errors="replace"), at)


def read_weights(text: str, at: Millis) -> dict[str, float]:
    """The newest weight of each market at a moment, of rows in any order. `Malformed` names lines that cannot be
    read."""
    rows = [[cell.strip(' "') for cell in line.split(",")] for line in text.splitlines()]
    if not rows or [cell.lower() for cell in rows[0]] != COLUMNS:
        raise Malformed(f"line 1 is not {','.join(COLUMNS)}")
    newest: dict[str, tuple[Millis, float]] = {}
    faults = []
    for line, row in enumerate(rows[1:], start=2):
        try:
            time, market, weight = row
            known = parse_time(time), float(weight)
            if newest.get(market, known)[0] <= known[0] <= at:
                newest[market] = known
        except (ValueError, OverflowError, UsageError):
            if any(row):
                faults.append(f"line {line} ({plain_text(','.join(row), 60)})")
    if faults:
        more = f" and {len(faults) - _MOST_NAMED} more" if len(faults) > _MOST_NAMED else ""
        raise Malformed(f"cannot be read: {', '.join(faults[:_MOST_NAMED])}{more}")
    return {market: weight for market, (_, weight) in newest.items()}
