"""`zuno home compact`: older bundles into blocks and, past an age, into archive files; nothing is deleted.

Every step is on disk before the next begins, and each may be done again: whatever a kill or a full disk leaves, every
bundle can be read, and the next compaction goes on from there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Final, Protocol

from zuno.journal.journal import ChainedJournal
from zuno.journal.port import DamagedRow, Row
from zuno.kernel.errors import Broken
from zuno.kernel.units import Millis, Seconds
from zuno.kernel.view import View
from zuno.present.document import Document, document, facts
from zuno.present.values import count, quiet

BATCH: Final = 16
"""Bundles of one step; between two steps other processes may write."""
BUDGET_DAYS: Final = (90, 30, 7)
"""Past its disk budget a home archives what is older than these, one after the other, until it fits. What is younger
than the last stays."""
WARN_SHARE: Final = 0.8
DAY: Final = 86_400
_NAME: Final = re.compile(rb"[0-9a-f]{64}")


class CompactingStore(Protocol):
    """What a compaction asks of a `JournalStore`; other processes may write between two calls."""

    def rows(self) -> AsyncIterator[Row | DamagedRow]: ...

    def bundle_names(self) -> AsyncIterator[str]: ...

    async def convert_bundles(self, names: Sequence[str]) -> int:
        """Those stored as their own bytes are stored in blocks; how many were."""
        ...

    async def archive_bundles(self, file: str, names: Sequence[str]) -> int:
        """Those in the journal go to an archive file; how many went. On disk there before they leave here."""
        ...

    async def drop_unused_blocks(self) -> None: ...

    async def shrink(self) -> None:
        """Give the room of what left back to the disk."""
        ...


class CompactionView(View):
    """What a compaction did."""

    LEFT_OUT: ClassVar = frozenset({"older_days"})
    older_days: int | None
    """The age past which bundles were archived; null: none were."""
    converted: int
    """Bundles stored in blocks that were not before."""
    archived: int
    files: tuple[str, ...]
    """The archive files that were written to."""
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
class BudgetState:
    """A home against its disk budget, in bytes; its archive is not counted."""

    used: int
    budget: int
    compacted: CompactionView | None = None

    @property
    def over(self) -> bool:
        return self.used > self.budget

    @property
    def near(self) -> bool:
        return self.used >= WARN_SHARE * self.budget

    def __str__(self) -> str:
        share = f"{self.used / 1e6:,.0f} of {self.budget / 1e6:,.0f} MB ({self.used / self.budget:.0%} of the budget)"
        return share if self.compacted is None else f"{share} after {self.compacted.archived:,} bundles were archived"


@dataclass(frozen=True, slots=True)
class HomeCompaction:
    journal: Callable[[], Awaitable[ChainedJournal]]
    store: Callable[[], CompactingStore]
    lock: Callable[[], AbstractContextManager[None]]
    """One compaction of a home at a time."""
    measure: Callable[[], int]
    """Bytes of the home without its archive."""
    now: Callable[[], Millis]
    keep: Collection[str]
    """Kinds of entries whose bundles stay in the journal, whatever their age: what money was approved for."""

    async def compact(self, older: Seconds | None) -> CompactionView:
        """`Broken`, and nothing is touched, unless the whole journal holds."""
        with self.lock():
            await self._verify()
            return await self._compact(older, self.measure())

    async def keep_within(self, budget: int) -> BudgetState:
        """Archive the oldest bundles while the home is past its budget."""
        before = self.measure()
        state = BudgetState(before, budget)
        if not state.over:
            return state
        with self.lock():
            await self._verify()
            archived = 0
            for days in BUDGET_DAYS:
                view = await self._compact(Seconds(days * DAY), before)
                archived += view.archived
                state = BudgetState(view.after_bytes, budget, view.model_copy(update={"archived": archived}))
                if not state.over:
                    break
        return state

    async def _verify(self) -> None:
        verdict = await (await self.journal()).verify()
        if verdict.fault is not None:
            raise Broken(f"The journal is damaged ({verdict.fault.reason}); nothing was compacted.")

    async def _compact(self, older: Seconds | None, before: int) -> CompactionView:
        store = self.store()
        latest = await self._find_latest_mentions(store)
        converted = 0
        for names in _cut(list(latest)):
            converted += await store.convert_bundles(names)
        files: dict[str, int] = defaultdict(int)
        if older is not None:
            due = self.now() - older * 1_000
            by_file: dict[str, list[str]] = defaultdict(list)
            for name, at in latest.items():
                if at is not None and at < due:
                    by_file[_archive_file(at)].append(name)
            for file, old in sorted(by_file.items()):
                for names in _cut(old):
                    files[file] += await store.archive_bundles(file, names)
        await store.drop_unused_blocks()
        await store.shrink()
        return CompactionView(
            older_days=None if older is None else older // DAY,
            converted=converted,
            archived=sum(files.values()),
            files=tuple(file for file, number in files.items() if number),
            before_bytes=before,
            after_bytes=self.measure(),
        )

    async def _find_latest_mentions(self, store: CompactingStore) -> dict[str, int | None]:
        """When each bundle was last spoken of, oldest first; None for those that stay: money was approved for them, or
        no entry speaks of them yet."""
        waiting = {name async for name in store.bundle_names()}
        latest: dict[str, int | None] = {}
        kept: set[str] = set()
        async for row in store.rows():
            if isinstance(row, Row):
                for name in {found.decode() for found in _NAME.findall(row.body)} & waiting:
                    latest[name] = row.at
                    if row.kind in self.keep:
                        kept.add(name)
        return latest | dict.fromkeys([*kept, *sorted(waiting - latest.keys())])


def _cut(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[start : start + BATCH] for start in range(0, len(names), BATCH)]


def _archive_file(at: int) -> str:
    return f"bundles-{datetime.fromtimestamp(at / 1_000, UTC):%Y-%m}.db"
