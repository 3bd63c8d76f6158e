"""Lessons on record: written once, when resolved cases agree, and reviewed once, when later ones contradict them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from zuno.journal.port import Author, Journal
from zuno.kernel.units import Millis
from zuno.kernel.wire import Wire
from zuno.llm.ask import ModelContext
from zuno.trading.agents.self_correction import REVIEWER, ROLE, word_lesson, word_review
from zuno.trading.learn.memory_book import parse_entry
from zuno.trading.model.memory import (
    LESSON,
    LESSON_REVIEW,
    Lesson,
    LessonReview,
    LessonStanding,
    LessonState,
    PostMortem,
)
from zuno.trading.rules.lessons import choose_advice, derive_lessons, review_lessons
from zuno.trading.run.record import RunJournal

AUTHOR: Final = Author(ROLE)
REVIEW_AUTHOR: Final = Author(REVIEWER)
W = TypeVar("W", bound=Wire)


@dataclass(frozen=True, slots=True)
class Learned:
    """What self-correction wrote."""

    lessons: tuple[Lesson, ...] = ()
    reviews: tuple[LessonReview, ...] = ()


class LessonBook:
    """Lessons as the journal holds them. Reads on from where it has read."""

    def __init__(self, journal: Callable[[], Awaitable[Journal]]) -> None:
        self._journal = journal
        self._read_to = {LESSON: 0, LESSON_REVIEW: 0}
        self._lessons: dict[str, Lesson] = {}
        self._reviews: dict[str, LessonReview] = {}

    async def read(self) -> dict[str, Lesson]:
        """Every lesson, by id, in the order they were written."""
        await self._read_on(LESSON, Lesson, self._lessons)
        return dict(self._lessons)

    async def reviews(self) -> dict[str, LessonReview]:
        """What became of contradicted lessons, by the lesson's id."""
        await self._read_on(LESSON_REVIEW, LessonReview, self._reviews)
        return dict(self._reviews)

    async def list_standings(
        self, post_mortems: Iterable[PostMortem], origin: str, before: Millis
    ) -> tuple[LessonStanding, ...]:
        """The lessons of a market as they stood at a moment, the newest first. `post_mortems`: all that are remembered,
        for outcomes since are held against a lesson."""
        ours = [lesson for lesson in (await self.read()).values() if lesson.origin == origin]
        return review_lessons(ours, post_mortems, before)

    async def advise(
        self, post_mortems: Iterable[PostMortem], origin: str, setup: str, before: Millis
    ) -> tuple[LessonStanding, ...]:
        """The lessons that are valid at a moment and fit a setup."""
        return choose_advice(await self.list_standings(post_mortems, origin, before), setup)

    async def correct(
        self,
        post_mortems: Iterable[PostMortem],
        origin: str,
        before: Millis,
        model_context: Callable[[RunJournal], ModelContext],
    ) -> Learned:
        """Write the lessons that the cases of a market give and have not given yet, and review those that were
        contradicted, strictly before a moment. Doing it again is harmless."""
        journal = await self._journal()
        cases = {case.id: case for case in post_mortems}
        written = await self.read()
        lessons = []
        for lesson in derive_lessons(cases.values(), origin):
            if lesson.id in written or lesson.written >= before:
                continue
            drawn = [cases[id] for id in (*lesson.cases, *lesson.against)]
            worded = await word_lesson(lesson, drawn, model_context(await RunJournal(journal, lesson.id).open()))
            entry = await journal.append_once(kind=LESSON, author=AUTHOR, payload=worded, request_id=lesson.id)
            lessons.append(parse_entry(entry, Lesson, entry.kind))
        reviewed = await self.reviews()
        reviews = []
        for standing in await self.list_standings(cases.values(), origin, before):
            id = standing.lesson.id
            if standing.state is not LessonState.CONTRADICTED or id in reviewed:
                continue
            later = [cases[each] for each in (*standing.confirmed, *standing.contradicted)]
            review = await word_review(standing, later, model_context(await RunJournal(journal, id).open()))
            entry = await journal.append_once(kind=LESSON_REVIEW, author=REVIEW_AUTHOR, payload=review, request_id=id)
            reviews.append(parse_entry(entry, LessonReview, entry.kind))
        return Learned(tuple(lessons), tuple(reviews))

    async def _read_on(self, kind: str, shape: type[W], found: dict[str, W]) -> None:
        journal = await self._journal()
        async for entry in journal.entries(kind=kind, after=self._read_to[kind]):
            found[entry.request_id or ""] = parse_entry(entry, shape, entry.kind)
            self._read_to[kind] = entry.seq
