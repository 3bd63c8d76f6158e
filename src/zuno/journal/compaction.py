"""`zuno home compact`: older bundles into blocks and, past an age, into archive files; nothing is deleted.

Every step is on disk before the next begins, and each may be done again: whatever a kill or a full disk leaves, every
bundle can be read, and the next compaction goes on from there.
"""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from zuno.journal.journal import ChainedJournal, VerifyMode
from zuno.journal.port import DamagedRow, Row
from zuno.kernel.errors import Broken
from zuno.kernel.units import Millis, Seconds
from zuno.kernel.view import View
from zuno.present.document import Document, document, facts
from zuno.present.values import count, quiet

BATCH: Final = 16
"""Bundles of one step; between two steps other processes may write."""
BUDGET_DAYS: Final = (90, 30, 7)
"""Past its disk budget a home archives what is older than these, one after the other, until it fits."""
DAY: Final = 86_400
_NAME: Final = re.compile(rb"[0-9a-f]{64}")


class CompactingStore(Protocol):
    """What a compaction asks of a `JournalStore`; other processes may write between two calls."""

    def rows(self) -> AsyncIterator[Row | DamagedRow]: ...
    def bundle_names(self) -> AsyncIterator[str]: ...

    async def convert_bundles(self, names: Sequence[str]) -> int:
        """Store in blocks those that are stored as their own bytes; how many were."""

    async def archive_bundles(self, file: str, names: Sequence[str]) -> int:
        """Move those in the journal to an archive file; how many were. On disk there before they leave here."""

    async def shrink(self) -> None:
        """Remove blocks that no bundle uses, and give the room back to the disk."""


class CompactionView(View):
    converted: int
    """Bundles stored in blocks that were not before."""
    archived: int
    files: tuple[str, ...]
    before_bytes: int
    """Of the home without its archive."""
    after_bytes: int

    def to_document(self) -> Document:
        return document(
            "Compacted",
            facts(
                ("bundles put into blocks", count(self.converted)),
                ("bundles archived", count(self.archived)),
                ("archive files", ", ".join(self.files) if self.files else quiet("none written")),
                ("home before", f"{self.before_bytes / 1e6:,.1f} MB"),
                ("home after", f"{self.after_bytes / 1e6:,.1f} MB"),
            ),
        )


@dataclass(frozen=True, slots=True)
class HomeCompaction:
    journal: ChainedJournal
    store: CompactingStore
    lock: Callable[[], AbstractContextManager[None]]
    """One compaction of a home at a time."""
    measure: Callable[[], int]
    """Bytes of the home without its archive."""
    now: Callable[[], Millis]
    keep: Collection[str]
    """Kinds of entries whose bundles stay in the journal, whatever their age: what money was approved for."""

    async def compact(self, *ages: Seconds | None, budget: int = 0) -> CompactionView:
        """Archive by one age after the other until the home is within `budget`; None archives nothing. `Broken`, and
        nothing is touched, unless the whole journal holds."""
        with self.lock():
            before, converted = self.measure(), 0
            verdict = await self.journal.verify(VerifyMode.ALL)
            if verdict.fault is not None:
                raise Broken(f"The journal is damaged ({verdict.fault.reason}); nothing was compacted.")
            moved: dict[str, int] = defaultdict(int)
            for age in ages:
                latest = await self._find_latest_mentions()
                for names in _cut(list(latest)):
                    converted += await self.store.convert_bundles(names)
                for file, old in sorted(self._group_old(latest, age).items()):
                    for names in _cut(old):
                        moved[file] += await self.store.archive_bundles(file, names)
                await self.store.shrink()
                if self.measure() <= budget:
                    break
            return CompactionView(
                converted=converted,
                archived=sum(moved.values()),
                files=tuple(file for file, number in moved.items() if number),
                before_bytes=before,
                after_bytes=self.measure(),
            )

    def _group_old(self, latest: dict[str, int | None], age: Seconds | None) -> dict[str, list[str]]:
        """Names of bundles by the archive file of the month in which they were last spoken of."""
        by_file: dict[str, list[str]] = defaultdict(list)
        for name, at in latest.items():
            if age is not None and at is not None and at < self.now() - age * 1_000:
                by_file[f"bundles-{datetime.fromtimestamp(at / 1_000, UTC):%Y-%m}.db"].append(name)
        return by_file

    async def _find_latest_mentions(self) -> dict[str, int | None]:
        """When each bundle was last spoken of, oldest first; None for those that stay: money was approved for them, or
        no entry speaks of them yet."""
        names = {name async for name in self.store.bundle_names()}
        latest: dict[str, int | None] = {}
        kept: set[str] = set()
        async for row in self.store.rows():
            if isinstance(row, Row):
                mentioned = {name.decode() for name in _NAME.findall(row.body)} & names
                latest |= dict.fromkeys(mentioned, row.at)
                kept |= mentioned if row.kind in self.keep else set()
        return latest | dict.fromkeys([*kept, *sorted(names - latest.keys())])


def _cut(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[start : start + BATCH] for start in range(0, len(names), BATCH)]
