"""Wire the care of a home's disk: compaction, and the budget that the desk looks at once a day."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from zuno.kernel.errors import ZunoError
from zuno.kernel.notify import Fact, Notice, NoticeKind, NoticeLabel, Severity
from zuno.kernel.units import Seconds

if TYPE_CHECKING:
    from zuno.journal.compaction import HomeCompaction
    from zuno.kernel.notify import Outbox

MEGABYTE: Final = 1_000_000
_WARN_SHARE: Final = 0.8
_DAY, _HOUR = 86_400.0, 3_600.0


def describe_budget(used: int, budget: int) -> str | None:
    """What a home uses of its disk budget, from 80 % on."""
    text = f"{used / MEGABYTE:,.0f} of {budget / MEGABYTE:,.0f} MB, {used / budget:.0%} of the disk budget"
    return text if used >= _WARN_SHARE * budget else None


async def keep_within_budget(budget: int, compaction: HomeCompaction) -> Notice | None:
    """Archive the oldest bundles of a home past its budget; what the owner should know, from 80 % on."""
    from zuno.journal.compaction import BUDGET_DAYS, DAY

    used = compaction.measure()
    text = describe_budget(used, budget)
    title, reason, severity = "Disk budget nearly used", "", Severity.WARNING
    if used > budget:
        view = await compaction.compact(*(Seconds(days * DAY) for days in BUDGET_DAYS), budget=budget)
        text = f"{text}; {view.archived:,} bundles archived: {view.after_bytes / MEGABYTE:,.0f} MB"
        title = "Home compacted"
        if view.after_bytes > budget:
            title, severity = "Disk budget exceeded", Severity.CRITICAL
            reason = "No bundle older than a week is left to archive: free room, or raise ZUNO_DISK_BUDGET_MB."
    if text is None:
        return None
    at, facts = Seconds(compaction.now() // 1_000), (Fact("home", text),)
    return Notice(NoticeKind.ALERT, title, severity, NoticeLabel.LIVE, at, facts, reason, "disk-budget")


def build_disk_watch(
    budget: int, compaction: Callable[[], HomeCompaction], outbox: Outbox | None, report: Callable[[str], None]
) -> Callable[[asyncio.Event], Coroutine[None, None, None]] | None:
    """Looks at the disk budget once a day until an event is set, and pushes a notice; None without a budget."""

    async def run(stop: asyncio.Event) -> None:
        while not stop.is_set():
            pause = _DAY
            try:
                if (notice := await keep_within_budget(budget, compaction())) is not None:
                    report(f"{notice.title}: {notice.facts[0].value}. {notice.reason}".rstrip())
                    if outbox is not None:
                        await outbox.append(notice, f"disk-budget:{notice.at // int(_DAY)}")
            except ZunoError as error:  # a disk that is full, another compaction
                report(f"Disk budget: {error}")
                pause = _HOUR
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pause)

    return run if budget else None
