"""Notices from the journal's entries: each once, from where the last process left off."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, NamedTuple, Protocol

from zuno.journal.port import Entry, Journal
from zuno.kernel.backoff import Backoff
from zuno.kernel.errors import Unavailable, ZunoError
from zuno.kernel.notify import Notice, Outbox
from zuno.kernel.units import Millis

LOOK_EVERY: Final = 2.0
OLDEST_MS: Final = 7 * 86_400_000
"""Older entries are not pushed any more."""
PAGE: Final = 1_000
"""Entries of one kind that are held at a time."""
_RETRIES: Final = Backoff(LOOK_EVERY, 300.0)


class KeyedNotice(NamedTuple):
    key: str
    """The same whenever the same event is described."""
    notice: Notice


class NoticeSource(Protocol):
    """A desk's part: which entries are pushed, and in which words. `ZunoError` where that cannot be found out."""

    @property
    def kinds(self) -> Sequence[str]:
        """Of the journal's entries."""

    async def describe(self, entry: Entry, journal: Journal) -> Sequence[KeyedNotice]: ...

    async def find_due(self, now: Millis, journal: Journal) -> Sequence[KeyedNotice]:
        """What became due by the clock alone."""


@dataclass(eq=False)
class JournalFeed:
    """Any process may run one, several at a time: the outbox takes each key once. The first ever starts at the
    journal's end; the cursor moves after its notices are appended, so a kill loses nothing."""

    outbox: Outbox
    journal: Callable[[], Awaitable[Journal]]
    sources: Sequence[NoticeSource]
    now: Callable[[], Millis]
    tell: Callable[[str], None]
    _: KW_ONLY
    wake: Callable[[], None] = lambda: None
    name: str = "journal"
    _last_complaint: str = field(default="", init=False)

    async def step(self) -> int:
        """Append what is new; returns how many notices."""
        journal, now = await self.journal(), self.now()
        newest = await journal.latest(1)
        head = newest[0].seq if newest else 0
        cursor = await self.outbox.cursor(self.name)
        if cursor is None:
            await self.outbox.move_cursor(self.name, str(head))
            cursor = str(head)
        count, reached = 0, int(cursor)
        while reached < head:
            entries, reached = await self._read(journal, reached, head)
            for entry, source in entries:
                if now - entry.at <= OLDEST_MS:
                    count += await self._append(await self._describe(source, entry, journal))
            await self.outbox.move_cursor(self.name, str(reached))
        for source in self.sources:
            count += await self._append(await source.find_due(now, journal))
        if count:
            self.wake()
        return count

    async def run(self, stop: asyncio.Event) -> None:
        failures = 0
        while not stop.is_set():
            try:
                await self.step()
                failures, self._last_complaint = 0, ""
            except ZunoError as error:
                failures += 1
                self._complain(f"pushes are not written yet: {str(error).rstrip('.')}; it is tried again.")
            except Exception as bug:  # ending here would silence every later push
                failures += 1
                self._complain(f"pushes are not written: Zuno has a bug ({type(bug).__name__}); it is tried again.")
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _RETRIES.delay(failures) or LOOK_EVERY)
        with suppress(ZunoError):
            await self.step()  # what happened while the process was ending

    async def _read(self, journal: Journal, after: int, upto: int) -> tuple[list[tuple[Entry, NoticeSource]], int]:
        """A page of entries behind `after`, and the place up to which they are complete."""
        entries: list[tuple[Entry, NoticeSource]] = []
        for source in self.sources:
            for kind in source.kinds:
                page = 0
                async for entry in journal.entries(kind=kind, after=after):
                    if entry.seq > upto:  # written since; read when everything before it is
                        break
                    entries.append((entry, source))
                    page += 1
                    if page == PAGE:
                        upto = entry.seq
                        break
        return sorted((pair for pair in entries if pair[0].seq <= upto), key=lambda pair: pair[0].seq), upto

    async def _describe(self, source: NoticeSource, entry: Entry, journal: Journal) -> Sequence[KeyedNotice]:
        try:
            return await source.describe(entry, journal)
        except Unavailable:  # the store, for a moment: the entry is told at the next look
            raise
        except ZunoError as error:  # one entry that cannot be told silences no other
            self._complain(f"entry {entry.seq} ({entry.kind}) is not pushed: {str(error).rstrip('.')}.")
            return ()

    async def _append(self, notices: Sequence[KeyedNotice]) -> int:
        for key, notice in notices:
            await self.outbox.append(notice, key)
        return len(notices)

    def _complain(self, line: str) -> None:
        if line != self._last_complaint:
            self._last_complaint = line
            self.tell(line)
