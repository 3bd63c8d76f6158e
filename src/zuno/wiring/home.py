"""Wire the care of a home's disk: compaction, and the budget that the desk looks at once a day."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zuno.kernel.errors import ZunoError
from zuno.kernel.units import Seconds

if TYPE_CHECKING:
    from zuno.journal.compaction import BudgetState, CompactingStore, HomeCompaction
    from zuno.journal.journal import ChainedJournal
    from zuno.kernel.notify import Notice, Outbox

ARCHIVE: Final = "archive"
MEGABYTE: Final = 1_000_000
_LOOK_SECONDS: Final = 3_600.0
"""Between two looks at the day: the budget itself is looked at once in each."""


def measure_home(home: Path) -> int:
    """Bytes of all files in a home but its archive, which may lie on another disk."""
    total = 0
    for folder, folders, files in os.walk(home):
        if Path(folder) == home and ARCHIVE in folders:
            folders.remove(ARCHIVE)
        for file in files:
            with suppress(OSError):  # a file that was replaced meanwhile
                total += os.lstat(os.path.join(folder, file)).st_size
    return total


def build_compaction(
    home: Path, journal: Callable[[], Awaitable[ChainedJournal]], store: Callable[[], CompactingStore]
) -> HomeCompaction:
    from zuno.adapters.clock.system import unix_millis
    from zuno.adapters.file_lock import compaction_lock
    from zuno.journal.compaction import HomeCompaction
    from zuno.lp.model.plan_events import PlanApproved

    return HomeCompaction(
        journal=journal,
        store=store,
        lock=lambda: compaction_lock(home),
        measure=lambda: measure_home(home),
        now=unix_millis,
        keep=(PlanApproved.kind,),
    )


def build_disk_watch(
    budget: int, compaction: Callable[[], HomeCompaction], outbox: Outbox | None, report: Callable[[str], None]
) -> Callable[[asyncio.Event], Coroutine[None, None, None]] | None:
    """Looks at the disk budget once a day until an event is set, and pushes a notice where there is an outbox; None
    without a budget."""
    if not budget:
        return None

    async def run(stop: asyncio.Event) -> None:
        done = -1
        while not stop.is_set():
            care = compaction()
            today = care.now() // 86_400_000
            if today != done:
                try:
                    if (notice := await keep_within_budget(budget, care)) is not None:
                        report(f"{notice.title}: {notice.facts[0].value}. {notice.reason}".rstrip())
                        if outbox is not None:
                            await outbox.append(notice, f"disk-budget:{today}")
                    done = today
                except ZunoError as error:  # a disk that is full, another compaction: tried again within the hour
                    report(f"disk budget: {error}")
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _LOOK_SECONDS)

    return run


async def keep_within_budget(budget: int, compaction: HomeCompaction) -> Notice | None:
    """Compact a home past its budget; what the owner should know, from 80 % on."""
    state = await compaction.keep_within(budget)
    at = Seconds(compaction.now() // 1_000)
    return _build_notice(state, at) if state.near or state.compacted is not None else None


def _build_notice(state: BudgetState, at: Seconds) -> Notice:
    from zuno.kernel.notify import Fact, Notice, NoticeKind, NoticeLabel, Severity

    title = "Disk budget exceeded" if state.over else "Home compacted" if state.compacted else "Disk budget nearly used"
    advice = (
        "Raise ZUNO_DISK_BUDGET_MB or free room: nothing older than a week is left to archive." if state.over else ""
    )
    return Notice(
        kind=NoticeKind.ALERT,
        title=title,
        severity=Severity.CRITICAL if state.over else Severity.WARNING,
        label=NoticeLabel.LIVE,
        at=at,
        facts=(Fact("home", str(state)),),
        reason=advice,
        reference="disk-budget",
    )
