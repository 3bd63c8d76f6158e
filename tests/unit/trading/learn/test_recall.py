"""Recall for a cycle: nothing of the future, nothing of another market, only what is alike; all of it in the bundle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.wire.desk_bundles import bundle_of
from tests.wire.learning import journal as open_journal
from tests.wire.post_mortems import post_mortem
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.jsonl import FallbackIndex, JsonlMemory
from zuno.adapters.memory.table import InMemoryIndex
from zuno.journal.port import Author, Journal
from zuno.kernel.errors import Unavailable
from zuno.markets.market import Symbol
from zuno.trading.agents.case import Case, build_case, replace_bundle
from zuno.trading.agents.learned import read_feedback, read_memories
from zuno.trading.learn.memory_book import LessonBook, MemoryBook, memory_record
from zuno.trading.learn.recall import CaseRecall
from zuno.trading.measure.setup import describe_setup
from zuno.trading.model.bundle import add_slots, content, read_bundle
from zuno.trading.model.known import Missing
from zuno.trading.model.memory import (
    LESSON,
    MEMORY_FORGOTTEN,
    MOST_MEMORIES,
    NOBODY,
    POST_MORTEM,
    FeedbackSlot,
    Lesson,
    MemoryForgotten,
    MemorySlot,
    PostMortem,
)
from zuno.trading.ports.recall import MemoryIndex
from zuno.trading.rules.lessons import derive_lessons

AUTHOR = Author("post_mortem")
ORIGIN = "SYNTHETIC by hand"


class BrokenIndex(InMemoryIndex):
    """A store that is down."""

    async def recall(self, query: Any) -> Any:
        raise Unavailable("nobody answers at the store")


@pytest.fixture(scope="module")
def case() -> Case:
    return build_case(bundle_of())


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return open_journal(tmp_path)


@pytest.fixture
def index() -> InMemoryIndex:
    return InMemoryIndex(HashedEmbedder())


def setup_of(case: Case) -> str:
    return describe_setup(case.features, case.context)


def worn(setup: str, changed: int) -> str:
    """The same setup with so many of its phrases replaced."""
    phrases = setup.split("; ")
    return "; ".join([*(f"another thing {at}" for at in range(changed)), *phrases[changed:]])


async def keep(journal: Journal, *written: PostMortem, indexes: Sequence[MemoryIndex] = ()) -> None:
    for each in written:
        await journal.append_once(kind=POST_MORTEM, author=AUTHOR, payload=each, request_id=each.id)
    for index in indexes:
        await index.add([memory_record(each) for each in written])


def told(case: Case, number: int, *, day: float, changed: int = 0, **changes: Any) -> PostMortem:
    """`day`: of its close, counted from the moment of the case."""
    given = {"origin": ORIGIN, **changes}
    return post_mortem(number, worn(setup_of(case), changed), day=day, **given)


async def recall(
    case: Case,
    journal: Journal,
    index: MemoryIndex,
    counts: Callable[[str], Awaitable[bool]] | None = None,
) -> tuple[MemorySlot, FeedbackSlot]:
    async def opened() -> Journal:
        return journal

    slots = await CaseRecall(index, MemoryBook(opened), LessonBook(opened), counts)(case)
    bundle = add_slots(case.bundle, slots)
    found = read_memories(bundle)
    assert found is not None
    assert found.setup == setup_of(case)
    return found, read_feedback(bundle)


def ids(found: MemorySlot) -> list[str]:
    return [memory.id for memory in found.memories]


@pytest.mark.slow
async def test_alike_setups_are_recalled_the_most_alike_first_and_three_at_most(
    case: Case, journal: Journal, index: InMemoryIndex
) -> None:
    written = [told(case, number, day=-1, changed=number, symbol=Symbol("ETHUSDT")) for number in range(1, 6)]
    unlike = told(case, 9, day=-1, changed=25)
    await keep(journal, *written, unlike, indexes=[index])
    found, _ = await recall(case, journal, index)
    assert ids(found) == [each.id for each in written[:MOST_MEMORIES]]
    assert found.source == index.name
    likeness = [memory.similarity or 0 for memory in found.memories]
    assert likeness == sorted(likeness, reverse=True)


async def test_what_is_less_alike_than_half_is_not_recalled(case: Case, journal: Journal, index: InMemoryIndex) -> None:
    await keep(journal, told(case, 1, day=-1, changed=25), indexes=[index])
    assert ids((await recall(case, journal, index))[0]) == []


async def test_nothing_of_the_moment_itself_or_later_is_known(
    case: Case, journal: Journal, index: InMemoryIndex
) -> None:
    """Cutting the future changes no recall."""
    before = told(case, 1, day=-0.5)
    await keep(journal, before, indexes=[index])
    cut, _ = await recall(case, journal, index)
    later = [told(case, 2, day=0), told(case, 3, day=0.01), told(case, 4, day=30)]
    await keep(journal, *later, indexes=[index])
    assert (await recall(case, journal, index))[0] == cut
    assert ids(cut) == [before.id]


async def test_other_markets_and_what_was_forgotten_are_not_recalled(
    case: Case, journal: Journal, index: InMemoryIndex
) -> None:
    """Whatever an index out of step says."""
    gone, elsewhere = told(case, 1, day=-1), told(case, 2, day=-1, origin="SYNTHETIC seed 2")
    await keep(journal, gone, elsewhere, told(case, 3, day=-2), indexes=[index])
    await journal.append_once(
        kind=MEMORY_FORGOTTEN, author=AUTHOR, payload=MemoryForgotten(id=gone.id), request_id=gone.id
    )
    await index.add([memory_record(told(case, 4, day=-1))])
    assert ids((await recall(case, journal, index))[0]) == ["pm_0003"]


async def test_a_store_that_is_down_gives_way_to_the_three_most_recent_of_the_symbol(
    case: Case, journal: Journal, tmp_path: Path
) -> None:
    down, recent = BrokenIndex(HashedEmbedder()), JsonlMemory(tmp_path / "post_mortems.jsonl")
    written = [told(case, number, day=-number, changed=25) for number in range(1, 6)]
    other = told(case, 7, day=-0.5, symbol=Symbol("ETHUSDT"))
    await keep(journal, *written, other, indexes=[recent])
    found, _ = await recall(case, journal, FallbackIndex(down, recent))
    assert ids(found) == [each.id for each in written[:3]]
    assert found.source == "recent3"
    assert "nobody answers" in found.note
    assert all(memory.similarity is None for memory in found.memories)
    with (tmp_path / "post_mortems.jsonl").open("ab") as file:
        file.write(b'{"id": "pm_torn", "chan')
    again = FallbackIndex(down, JsonlMemory(tmp_path / "post_mortems.jsonl"))
    assert (await recall(case, journal, again))[0] == found


async def test_where_nobody_answers_the_slot_says_so(case: Case, journal: Journal) -> None:
    found, _ = await recall(case, journal, BrokenIndex(HashedEmbedder()))
    assert (found.source, found.memories) == (NOBODY, ())
    assert found.note


async def test_lessons_that_fit_and_are_valid_are_told(case: Case, journal: Journal, index: InMemoryIndex) -> None:
    cases = [told(case, number, day=-30 + number) for number in range(8)]
    await keep(journal, *cases, indexes=[index])
    (lesson,) = derive_lessons(cases, ORIGIN)
    for each in (lesson, _renamed(lesson, "les_other", condition="a phrase that does not hold")):
        await journal.append_once(kind=LESSON, author=AUTHOR, payload=each, request_id=each.id)
    found, feedback = await recall(case, journal, index)
    assert [each.id for each in feedback.lessons] == [lesson.id]
    assert feedback.lessons[0].cases == lesson.cases
    assert len(found.memories) == MOST_MEMORIES


async def test_trades_that_do_not_count_are_neither_recalled_nor_taught_by(
    case: Case, journal: Journal, index: InMemoryIndex
) -> None:
    """As on a live market those that were ruled on a recorded past."""
    cases = [told(case, number, day=-30 + number) for number in range(8)]
    await keep(journal, *cases, indexes=[index])
    (lesson,) = derive_lessons(cases, ORIGIN)
    await journal.append_once(kind=LESSON, author=AUTHOR, payload=lesson, request_id=lesson.id)
    asked: list[str] = []

    async def was_live(run: str) -> bool:
        asked.append(run)
        return run == cases[7].summary.decision

    found, feedback = await recall(case, journal, index, was_live)
    assert ids(found) == [cases[7].id]
    assert feedback.lessons == ()
    assert len(asked) == len(set(asked))


def _renamed(lesson: Lesson, name: str, **changes: Any) -> Lesson:
    return lesson.model_copy(update={"id": name, **changes})


@pytest.mark.slow
async def test_a_replay_finds_the_same_case_whatever_was_learned_since(
    case: Case, journal: Journal, index: InMemoryIndex
) -> None:
    """What is worked out before recall is what the whole bundle gives: memory changes no figure."""
    await keep(journal, told(case, 1, day=-1), indexes=[index])

    async def opened() -> Journal:
        return journal

    bundle = add_slots(bundle_of(), await CaseRecall(index, MemoryBook(opened), LessonBook(opened))(case))
    assert {slot.name for slot in bundle.slots} >= {"memory", "feedback"}
    now, later = replace_bundle(case, bundle), build_case(read_bundle(content(bundle)))
    for part in ("bundle", "features", "menu", "context"):
        assert getattr(now, part) == getattr(later, part), part
    nothing = Missing("arrays are compared by their seed")
    assert replace(now.inputs, bars=nothing) == replace(later.inputs, bars=nothing)
