"""An outbox that lives as long as its process."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from zuno.kernel.notify import (
    KEPT_SECONDS,
    MOST_WAITING,
    PICTURE_SECONDS,
    Notice,
    NoticeKind,
    OutboxEntry,
    OutboxState,
    OutboxStatus,
)
from zuno.kernel.units import Seconds


class OutboxInMemory:
    """Nothing here awaits, so nobody can come between reading and writing."""

    def __init__(self, *, most_waiting: int = MOST_WAITING) -> None:
        self._posts: dict[int, OutboxEntry] = {}
        self._settled: dict[int, Seconds] = {}
        self._last = 0
        self._lost: Counter[NoticeKind] = Counter()
        self._trouble = ""
        self._cursors: dict[str, str] = {}
        self._most_waiting = most_waiting

    async def append(self, notice: Notice, key: str) -> int:
        for post in self._posts.values():
            if post.key == key:
                return post.number
        self._last += 1
        self._posts[self._last] = OutboxEntry(self._last, key, notice)
        if len(waiting := self._waiting()) > self._most_waiting:
            self._settle(waiting[0].number, OutboxState.UNDELIVERABLE, notice.at)
        return self._last

    async def next(self) -> OutboxEntry | None:
        return next(iter(self._waiting()), None)

    async def mark_delivered(self, number: int, at: Seconds) -> None:
        self._settle(number, OutboxState.DELIVERED, at)
        self._trouble = ""

    async def mark_undeliverable(self, number: int, reason: str, at: Seconds) -> None:
        self._settle(number, OutboxState.UNDELIVERABLE, at)
        self._trouble = reason

    async def mark_skipped(self, number: int, at: Seconds) -> None:
        self._settle(number, OutboxState.SKIPPED, at)

    async def record_trouble(self, reason: str) -> None:
        self._trouble = reason

    async def find(self, number: int) -> OutboxEntry | None:
        return self._posts.get(number)

    async def status(self, kind: NoticeKind | None = None) -> OutboxStatus:
        waiting = [post for post in self._waiting() if kind in {None, post.notice.kind}]
        lost = sum(count for name, count in self._lost.items() if kind in {None, name})
        return OutboxStatus(len(waiting), lost, self._trouble)

    async def cursor(self, feed: str) -> str | None:
        return self._cursors.get(feed)

    async def move_cursor(self, feed: str, position: str) -> None:
        self._cursors[feed] = position

    async def close(self) -> None:
        return None

    def _waiting(self) -> list[OutboxEntry]:
        return [post for post in self._posts.values() if post.state is OutboxState.WAITING]

    def _settle(self, number: int, state: OutboxState, at: Seconds) -> None:
        post = self._posts.get(number)
        if post is not None and post.state is OutboxState.WAITING:
            self._posts[number] = replace(post, state=state)
            self._settled[number] = at
            self._lost[post.notice.kind] += state is OutboxState.UNDELIVERABLE
        for old, settled_at in tuple(self._settled.items()):
            if settled_at < at - KEPT_SECONDS:
                del self._posts[old], self._settled[old]
            elif settled_at < at - PICTURE_SECONDS:
                self._posts[old] = replace(self._posts[old], notice=replace(self._posts[old].notice, picture=None))
