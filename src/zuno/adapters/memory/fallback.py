"""An index with a fallback behind it: a store that is down is named, and the most recent memories answer instead."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, TypeVar

from zuno.kernel.errors import Broken, Unavailable
from zuno.trading.model.memory import MemoryRecord, RecallQuery, RecallResult
from zuno.trading.ports.recall import MemoryIndex

T = TypeVar("T")
PAUSE: Final = 10
"""A store that did not answer is left alone for so many times as long as that took, so that it costs a cycle little."""
LONGEST_PAUSE: Final = 60.0
"""Seconds."""
_LOG = logging.getLogger(__name__)


class FallbackIndex:
    """A store that is down is left alone for a while, and stops no recall where there is a fallback. That is filled by
    its owner; what is forgotten leaves both."""

    def __init__(
        self, index: MemoryIndex, fallback: MemoryIndex | None, stopwatch: Callable[[], float] = time.monotonic
    ) -> None:
        self._index = index
        self._fallback = fallback
        self._stopwatch = stopwatch
        self._down: tuple[float, str] | None = None
        """Until when the index is left alone, and why."""

    @property
    def name(self) -> str:
        return self._index.name

    async def add(self, records: Sequence[MemoryRecord]) -> None:
        await self._ask(lambda: self._index.add(records))

    async def recall(self, query: RecallQuery) -> RecallResult:
        try:
            return await self._ask(lambda: self._index.recall(query))
        except (Unavailable, Broken) as error:
            if self._fallback is None:
                raise
            self._tell("recall by age alone", error)
            recent = await self._fallback.recall(query.model_copy(update={"symbol": query.symbol or query.recent_of}))
            return recent.model_copy(update={"note": f"{self.name}: {error}"})

    async def remove(self, id: str) -> None:
        if self._fallback is not None:
            await self._fallback.remove(id)
        try:
            await self._ask(lambda: self._index.remove(id))
        except (Unavailable, Broken) as error:
            self._tell("not removed", error)

    async def ids(self) -> frozenset[str]:
        return await self._ask(self._index.ids)

    async def rebuild(self, records: Sequence[MemoryRecord], removed: Collection[str] = ()) -> None:
        await self._ask(lambda: self._index.rebuild(records, removed))

    async def _ask(self, act: Callable[[], Awaitable[T]]) -> T:
        started = self._stopwatch()
        if self._down is not None and started < self._down[0]:
            raise Unavailable(self._down[1])
        try:
            answer = await act()
        except Unavailable as error:
            ended = self._stopwatch()
            self._down = (ended + min(LONGEST_PAUSE, PAUSE * (ended - started)), str(error))
            raise
        self._down = None
        return answer

    def _tell(self, what: str, error: Exception) -> None:
        _LOG.warning("%s: %s: %s", self.name, what, error)
