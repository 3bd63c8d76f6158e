"""Recall for a cycle: trades whose setup was like this moment's, and lessons about it, as slots of its bundle.

Nothing later than the moment is looked at, and everything that is recalled goes into the bundle: a replay finds the
same bytes, whatever was learned or forgotten since.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from zuno.journal.port import Journal
from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.trading.agents.case import Case
from zuno.trading.measure.setup import describe_setup
from zuno.trading.model.bundle import Bundle, Slot
from zuno.trading.model.memory import MEMORY_FORGOTTEN, POST_MORTEM, PostMortem, Recalled, RecallQuery
from zuno.trading.model.memory_slots import (
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

MIN_SIMILARITY: Final = 0.75
"""Of two setups; what is less alike is not recalled."""
LOOKED_AT: Final = 12
"""Memories that are asked for: some may be less alike than is wanted."""
_NOTE: Final = 200

Advise = Callable[[str, str, Millis], Awaitable[Sequence[LessonNote]]]
"""Lessons of a market that fit a setup and are valid at a moment, the most particular first."""


async def no_advice(origin: str, setup: str, before: Millis) -> Sequence[LessonNote]:
    return ()


class CaseRecall:
    """Recalls for one case at a time. Contents are the journal's: an index only says which ones are alike."""

    def __init__(
        self,
        index: MemoryIndex,
        journal: Callable[[], Awaitable[Journal]],
        advise: Advise = no_advice,
        least: float = MIN_SIMILARITY,
    ) -> None:
        self._index = index
        self._journal = journal
        self._advise = advise
        self._least = least

    async def __call__(self, case: Case) -> Sequence[Slot]:
        setup = describe_setup(case.features, case.context)
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
        journal = await self._journal()
        notes: list[MemoryNote] = []
        for found in answer.found:
            if len(notes) == MOST_MEMORIES:
                break
            if found.similarity is not None and found.similarity < self._least:
                continue
            told = await read_post_mortem(journal, found.id)
            if told is not None and told.origin == bundle.origin and told.closed < bundle.as_of:
                notes.append(_note(told, found))
        return MemorySlot(setup=setup, source=answer.source, note=answer.note, memories=tuple(notes))

    async def _read_lessons(self, setup: str, bundle: Bundle) -> FeedbackSlot:
        try:
            found = await self._advise(bundle.origin, setup, bundle.as_of)
        except Unavailable as error:
            return FeedbackSlot(note=plain_text(str(error), _NOTE))
        return FeedbackSlot(lessons=tuple(found[:MOST_LESSONS]))


async def read_post_mortem(journal: Journal, id_: str) -> PostMortem | None:
    """The one of that id; None where the journal has none, or its owner had it forgotten."""
    entries = await journal.latest(1, request_id=id_, kind=POST_MORTEM)
    if not entries or await journal.latest(1, request_id=id_, kind=MEMORY_FORGOTTEN):
        return None
    return PostMortem.model_validate(dict(entries[0].payload), strict=False)


def _note(told: PostMortem, found: Recalled) -> MemoryNote:
    return MemoryNote(
        id=told.id,
        symbol=told.symbol,
        side=told.side,
        closed=told.closed,
        setup=told.setup,
        outcome=told.outcome,
        constraint=told.constraint,
        verdict=told.verdict,
        r=told.path.r,
        similarity=found.similarity,
        source=told.source,
    )
