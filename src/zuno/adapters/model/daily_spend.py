"""What models cost today, shared by the processes of a home."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path

from zuno.adapters.atomic_file import replace_file, translate_write_errors
from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.kernel.errors import Unavailable
from zuno.llm.port import Ceiling, Spend

KEPT_DAYS = 31


class DailySpendInMemory:
    """For tests and replays."""

    def __init__(self) -> None:
        self._days: dict[int, Spend] = {}

    async def book(self, day: int, change: Spend, ceiling: Ceiling) -> bool:
        total = self._days.get(day, Spend()) + change
        if ceiling.is_exceeded_by(total):
            return False
        self._days[day] = total
        return True

    async def total(self, day: int) -> Spend:
        return self._days.get(day, Spend())


class DailySpendFile:
    """A small JSON file, replaced whole under a lock; a file that cannot be read is never treated as empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = path.with_name(f"{path.name}.lock")

    async def book(self, day: int, change: Spend, ceiling: Ceiling) -> bool:
        # Under a millisecond, and held for no longer: not worth a thread.
        with self._hold_lock():
            days = self._load()
            total = days.get(day, Spend()) + change
            if ceiling.is_exceeded_by(total):
                return False
            kept = sorted((days | {day: total}).items())[-KEPT_DAYS:]
            rows = {str(day): {"tokens": spend.tokens, "usd": str(spend.usd)} for day, spend in kept}
            replace_file(self._path, json.dumps(rows).encode(), durable=False)
        return True

    async def total(self, day: int) -> Spend:
        with self._hold_lock():
            return self._load().get(day, Spend())

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        with translate_write_errors(self._path), FileLock(self._lock, timeout=WAIT_SECONDS):
            yield

    def _load(self) -> dict[int, Spend]:
        try:
            rows = json.loads(self._path.read_bytes())
            days = {int(day): Spend(int(row["tokens"]), Decimal(row["usd"])) for day, row in rows.items()}
            if not all(spend.usd.is_finite() for spend in days.values()):
                raise ValueError("an infinite sum")
            return days
        except FileNotFoundError:
            return {}
        except (AttributeError, TypeError, KeyError, ValueError, InvalidOperation) as error:
            raise Unavailable(f"{self._path.name} cannot be read; delete it to start counting anew") from error
