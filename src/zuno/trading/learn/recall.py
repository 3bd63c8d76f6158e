"""Recall for a cycle: trades whose setup was like this moment's, and lessons about it, as slots of its bundle.

Nothing later than the moment is looked at, and everything that is recalled goes into the bundle: a replay finds the
same bytes, whatever was learned or forgotten since.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.text import plain_text
from zuno.trading.agents.case import Case, cache_by_market
from zuno.trading.learn.memory_book import LessonBook, MemoryBook, MemoryIndexes
from zuno.trading.measure.setup import describe_setup, share_phrases
from zuno.trading.model.bundle import Bundle, Slot
from zuno.trading.model.memory import Lesson, PostMortem, RecallQuery
from zuno.trading.model.slots import (
    MOST_LESSONS,
    MOST_MEMORIES,
    NOBODY,
    FeedbackSlot,
    LessonNote,
    MemoryNote,
    MemorySlot,
    feedback_slot,
    memory_slot,
)
from zuno.trading.ports.recall import MemoryIndex

MIN_SHARED: Final = 0.3
"""Of the phrases of two setups: what shares less is not recalled. Similarities of embedders have scales of their own,
and unlike setups can be near each other in all of them. In a synthetic market trades share 0.37 with the three most
alike of their past, by the median: half would leave one memory in six."""
LOOKED_AT: Final = 24
"""Memories that the index is asked for."""
_NOTE: Final = 200


class CaseRecall:
    """Recalls for one case at a time. Contents are the journal's: an index only says which ones are alike."""

    def __init__(
        self,
        index: MemoryIndex | MemoryIndexes,
        book: MemoryBook,
        lessons: LessonBook,
        counts: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        """`counts`: whether the trades of a run may be recalled, as on a live market those of a recorded past may not;
        None: every trade of the market may."""
        self._index = index
        self._book = book
        self._lessons = lessons
        self._counts = counts
        self._known: dict[str, bool] = {}

    async def __call__(self, case: Case) -> Sequence[Slot]:
        setup = _describe_case(case)
        bundle = case.bundle
        return (
            memory_slot(await self._recall(setup, bundle), bundle.as_of),
            feedback_slot(await self._read_lessons(setup, bundle), bundle.as_of),
        )

    async def _recall(self, setup: str, bundle: Bundle) -> MemorySlot:
        query = RecallQuery(
            text=setup, origin=bundle.origin, before=bundle.as_of, recent_of=bundle.symbol, limit=LOOKED_AT
        )
        try:
            answer = await self._index.recall(query)
        except (Unavailable, Broken) as error:
            return MemorySlot(setup=setup, source=NOBODY, note=plain_text(str(error), _NOTE))
        notes: list[MemoryNote] = []
        for found in answer.found:
            told = await self._book.find(found.id) if len(notes) < MOST_MEMORIES else None
            if told is None or told.origin != bundle.origin or told.closed >= bundle.as_of:
                continue
            if not await self._may_recall(told):
                continue
            if found.similarity is None or share_phrases(setup, told.setup) >= MIN_SHARED:
                notes.append(note_memory(told, found.similarity))
        return MemorySlot(setup=setup, source=answer.source, note=answer.note, memories=tuple(notes))

    async def _read_lessons(self, setup: str, bundle: Bundle) -> FeedbackSlot:
        if not await self._lessons.read():
            return FeedbackSlot()  # outcomes are not read for nothing
        known = [told for told in (await self._book.read()).values() if await self._may_recall(told)]
        standings = await self._lessons.advise(known, bundle.origin, setup, bundle.as_of)
        return FeedbackSlot(lessons=tuple(_note_lesson(each.lesson) for each in standings[:MOST_LESSONS]))

    async def _may_recall(self, told: PostMortem) -> bool:
        run = told.summary.decision
        if self._counts is None or run is None:
            return self._counts is None
        if run not in self._known:
            self._known[run] = await self._counts(run)
        return self._known[run]


@cache_by_market
def _describe_case(case: Case) -> str:
    return describe_setup(case.features, case.context)


def note_memory(post_mortem: PostMortem, similarity: float | None = None) -> MemoryNote:
    shared = {name: getattr(post_mortem, name) for name in MemoryNote.model_fields if name not in ("r", "similarity")}
    return MemoryNote(**shared, r=post_mortem.path.r, similarity=similarity)


def _note_lesson(lesson: Lesson) -> LessonNote:
    return LessonNote(**{name: getattr(lesson, name) for name in LessonNote.model_fields})
