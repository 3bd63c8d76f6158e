"""The desk's memory as people ask for it: list, search, show, forget."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.wire.learning import journal as open_journal
from tests.wire.post_mortems import CALM, CROWDED, ORIGIN, post_mortem
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.jsonl import FallbackIndex, JsonlMemory
from zuno.adapters.memory.sqlite import SqliteMemoryIndex
from zuno.journal.port import Author, Journal
from zuno.kernel.errors import NotFound, Unavailable, UsageError
from zuno.kernel.units import Millis
from zuno.kernel.view import write_document
from zuno.markets.market import Symbol
from zuno.trading.learn.memory_book import LessonBook, MemoryBook, MemoryIndexes, update_index
from zuno.trading.measure.similarity import split_words
from zuno.trading.model.market import Side
from zuno.trading.model.memory import LESSON, MEMORY_FORGOTTEN, POST_MORTEM, PostMortem, Verdict
from zuno.trading.model.trade_events import ExitReason
from zuno.trading.ports.recall import Embedder, MemoryIndex
from zuno.trading.rules.lessons import derive_lessons
from zuno.trading.service.memory import MemoryDesk

AUTHOR = Author("post_mortem")


class SilentEmbedder(HashedEmbedder):
    """One that cannot be reached."""

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        raise Unavailable("the embedder does not answer")


def open_index(home: Path, embedder: Embedder | None = None) -> MemoryIndex:
    folder = home / "memory"
    index = SqliteMemoryIndex(folder / "index.db", embedder or HashedEmbedder())
    return FallbackIndex(index, JsonlMemory(folder / "post_mortems.jsonl"))


class Memories:
    """A home with post-mortems in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.journal = open_journal(home)
        self.index = open_index(home)

    async def opened(self) -> Journal:
        return self.journal

    @property
    def desk(self) -> MemoryDesk:
        book = MemoryBook(self.opened)
        indexes = MemoryIndexes(book, [JsonlMemory(self.home / "memory" / "post_mortems.jsonl"), self.index])
        return MemoryDesk(self.opened, book, LessonBook(self.opened), indexes, lambda: "another market")

    async def keep(self, *written: PostMortem) -> None:
        for each in written:
            await self.journal.append_once(kind=POST_MORTEM, author=AUTHOR, payload=each, request_id=each.id)
        await update_index(MemoryBook(self.opened), self.index)


@pytest.fixture
def memories(tmp_path: Path) -> Memories:
    return Memories(tmp_path)


async def test_search_finds_the_setup_that_was_asked_for(memories: Memories) -> None:
    await memories.keep(*(post_mortem(n, CALM if n % 2 else CROWDED) for n in range(1, 5)))
    view = await memories.desk.search("failed breakout with high funding", 2)
    assert [found.setup for found in view.memories] == [CROWDED, CROWDED]
    shown = view.model_dump(by_alias=True)
    assert list(shown) == ["query", "source", "note", "memories"]
    wanted = {"id", "symbol", "closed", "setup", "outcome", "constraint", "r", "similarity"}
    assert wanted <= set(shown["memories"][0])
    assert (view.query, view.source) == ("failed breakout with high funding", "sqlite")
    assert view.memories[0].similarity is not None
    strange = await memories.desk.search("purple elephants dancing in the rain")
    assert (strange.memories, bool(strange.note)) == ((), True)
    other = await memories.desk.search("calm market without a trend and low volatility", 1)
    assert [found.setup for found in other.memories] == [CALM]


KINDS: tuple[dict[str, Any], ...] = (
    *({"reason": ExitReason.STOP} for _ in range(4)),
    {"reason": ExitReason.STOP, "symbol": Symbol("ETHUSDT"), "side": Side.SHORT},
    {"reason": ExitReason.TARGET, "verdict": Verdict.SUCCESS, "outcome": "The target was touched first."},
)


def list_thirty() -> list[PostMortem]:
    """Five of six were stopped out, one of six is of ETH, one was won; two were liquidated, the newest of all."""
    told = [post_mortem(n, CALM if n % 2 else CROWDED, **KINDS[n % 6]) for n in range(28)]
    gone: dict[str, Any] = {"reason": ExitReason.LIQUIDATION, "outcome": "Neither level was touched."}
    return [*told, *(post_mortem(n, "no setup on record", **gone) for n in (28, 29))]


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("stopped out", lambda told: told.summary.reason is ExitReason.STOP),
        ("stop", lambda told: told.summary.reason is ExitReason.STOP),
        ("btc", lambda told: told.symbol is Symbol("BTCUSDT")),
        ("BTC long stopped", lambda told: told.side is Side.LONG and told.summary.reason is ExitReason.STOP),
        ("eth shorts, stopped", lambda told: told.symbol is Symbol("ETHUSDT")),
        ("ＥＴＨＵＳＤＴ", lambda told: told.symbol is Symbol("ETHUSDT")),
        ("LIQUIDATED!", lambda told: told.summary.reason is ExitReason.LIQUIDATION),
        ("won at the target", lambda told: told.verdict is Verdict.SUCCESS),
        ("long stopped out after a failed breakout", lambda told: told.setup == CROWDED and told.side is Side.LONG),
    ],
)
async def test_words_of_exit_side_symbol_outcome_and_setup_are_found_the_best_first(
    memories: Memories, query: str, fits: Callable[[PostMortem], bool]
) -> None:
    told = {each.id: each for each in list_thirty()}
    await memories.keep(*told.values())
    view = await memories.desk.search(query, 20)
    wanted = {id for id, each in told.items() if fits(each)}
    best = [found.id for found in view.memories][: len(wanted)]
    assert best
    assert set(best) <= wanted
    assert len(best) == min(20, len(wanted))
    assert view.note == ""
    figures = [found.similarity or 0.0 for found in view.memories]
    assert figures == sorted(figures, reverse=True)


async def test_no_word_of_a_memory_is_called_unlike_it(memories: Memories) -> None:
    told = post_mortem(1, outcome="The stop was touched first, behind by 2.00 % at most.")
    await memories.keep(told)
    texts = (told.symbol, told.symbol.base, told.side, told.summary.reason, told.verdict, told.outcome, told.setup)
    for word in split_words(" ".join(texts)):
        for query in (word, f"{word} purple elephants dancing rain umbrella sky trumpet"):
            assert [found.id for found in (await memories.desk.search(query)).memories] == [told.id], query


async def test_words_are_found_in_other_markets_where_this_one_holds_none(memories: Memories) -> None:
    here = post_mortem(1, CALM, origin="another market")
    there = post_mortem(2, CROWDED, reason=ExitReason.LIQUIDATION)
    await memories.keep(here, there)
    view = await memories.desk.search("liquidated")
    assert [memory.id for memory in view.memories] == [there.id]
    assert "another market" in view.note
    view = await memories.desk.search("btc liquidated")
    assert ([memory.id for memory in view.memories], view.note) == ([here.id], "")


async def test_words_are_found_while_the_store_is_down(memories: Memories) -> None:
    await memories.keep(*list_thirty())
    memories.index = open_index(memories.home, SilentEmbedder())
    view = await memories.desk.search("liquidated", 2)
    assert {found.id for found in view.memories} == {"pm_0028", "pm_0029"}
    assert (view.source, bool(view.note)) == ("recent3", True)
    recent = await memories.desk.search("purple elephants")
    assert [found.similarity for found in recent.memories] == [None] * 3


@pytest.mark.parametrize("query", ["?!… — ", "🙂🙂", "\x00\x1b", "the and of", "\ud800"])
async def test_a_query_without_a_word_is_refused(memories: Memories, query: str) -> None:
    await memories.keep(post_mortem(1))
    with pytest.raises(UsageError):
        await memories.desk.search(query)


@pytest.mark.parametrize(
    "query",
    [
        'stopped" OR 1=1; --',
        "stopped \x00 “失敗” \ud800",
        "stopped " + "x" * 20_000,
        "stopped " + " ".join(map(str, range(5_000))),
        " ".join(f"w{n}" for n in range(200)) + " stopped",
    ],
)
async def test_an_odd_query_finds_what_its_words_name(memories: Memories, query: str) -> None:
    await memories.keep(post_mortem(1))
    view = await memories.desk.search(query)
    assert [found.id for found in view.memories] == ["pm_0001"]
    assert json.loads(write_document(view))["memories"][0]["id"] == "pm_0001"


async def test_queries_that_are_empty_or_endless(memories: Memories) -> None:
    await memories.keep(post_mortem(1))
    for query in ("", "  \n"):
        with pytest.raises(UsageError):
            await memories.desk.search(query)
    for lines in (0, 21):
        with pytest.raises(UsageError):
            await memories.desk.search("breakout", lines)
    long = await memories.desk.search("failed breakout " * 700)
    assert [found.id for found in long.memories] == ["pm_0001"]
    odd = await memories.desk.search('") OR 1=1; --\x00 “失敗”')
    assert odd.source == "sqlite"


async def test_an_empty_memory_answers_and_knows_no_id(memories: Memories) -> None:
    desk = memories.desk
    assert (await desk.search("anything")).memories == ()
    assert (await desk.list()).memories == ()
    assert (await desk.lessons()).lessons == ()
    for ask in (desk.show, desk.forget):
        for id_ in ("pm_1", "", "run_0000000000000000", "x" * 5_000):
            with pytest.raises(NotFound):
                await ask(id_)
    assert not (memories.home / "memory").exists()


async def test_what_is_forgotten_stays_forgotten(memories: Memories) -> None:
    await memories.keep(*(post_mortem(n) for n in range(1, 4)))
    desk = memories.desk
    assert (await desk.forget(" pm_0002 ")).id == "pm_0002"
    entries = await memories.journal.latest(5, kind=MEMORY_FORGOTTEN)
    assert [entry.request_id for entry in entries] == ["pm_0002"]
    for index in (memories.index, open_index(memories.home)):
        await update_index(MemoryBook(memories.opened), index)
        assert await index.ids() == {"pm_0001", "pm_0003"}
    await memories.index.rebuild([], ())
    await update_index(MemoryBook(memories.opened), memories.index)
    assert {found.id for found in (await desk.search("failed breakout")).memories} == {"pm_0001", "pm_0003"}
    assert [found.id for found in (await desk.list()).memories] == ["pm_0003", "pm_0001"]
    with pytest.raises(NotFound):
        await desk.forget("pm_0002")
    with pytest.raises(NotFound):
        await desk.show("pm_0002")


@pytest.mark.parametrize("id_", ["\ud800", "pm_0001\udfff ", "pm_0001 x", "x" * 5_000, "?", "", "%"])
async def test_an_id_that_cannot_be_is_not_known(memories: Memories, id_: str) -> None:
    await memories.keep(post_mortem(2))
    for ask in (memories.desk.show, memories.desk.forget):
        with pytest.raises(NotFound):
            await ask(id_)


async def test_list_and_show(memories: Memories) -> None:
    eth = post_mortem(2, CALM, Verdict.SUCCESS, symbol=Symbol("ETHUSDT"), side=Side.SHORT)
    await memories.keep(post_mortem(1), eth, post_mortem(3))
    desk = memories.desk
    assert [found.id for found in (await desk.list(2)).memories] == ["pm_0003", "pm_0002"]
    assert [found.id for found in (await desk.list(50, "eth")).memories] == ["pm_0002"]
    with pytest.raises(UsageError):
        await desk.list(50, "DOGE")
    shown = await desk.show("pm_0002")
    assert (shown.verdict, shown.setup, shown.path.r) == (Verdict.SUCCESS, CALM, eth.path.r)
    assert (shown.market, shown.net_pnl) == (ORIGIN, str(eth.summary.net_pnl))


async def test_on_a_market_that_goes_on_a_lesson_expires_by_the_clock(memories: Memories) -> None:
    cases = [post_mortem(number, CROWDED, day=number) for number in range(1, 9)]
    await memories.keep(*cases)
    (lesson,) = derive_lessons(cases, ORIGIN)
    await memories.journal.append_once(kind=LESSON, author=AUTHOR, payload=lesson, request_id=lesson.id)

    def desk(now: int) -> MemoryDesk:
        book, lessons = MemoryBook(memories.opened), LessonBook(memories.opened)
        return MemoryDesk(memories.opened, book, lessons, memories.index, lambda: ORIGIN, lambda: Millis(now))

    states = [(await desk(now).lessons()).lessons[0].state for now in (lesson.expires - 1, lesson.expires + 1)]
    assert states == ["active", "expired"]


async def test_lessons_are_shown_as_they_stand(memories: Memories) -> None:
    cases = [post_mortem(n) for n in range(1, 8)]
    (lesson,) = derive_lessons(cases, ORIGIN)
    await memories.journal.append_once(kind=LESSON, author=AUTHOR, payload=lesson, request_id=lesson.id)
    await memories.keep(*cases)
    (shown,) = (await memories.desk.lessons()).lessons
    assert (shown.id, shown.state, shown.cases) == (lesson.id, "active", lesson.cases)
    await memories.keep(*(post_mortem(n, verdict=Verdict.SUCCESS) for n in range(10, 16)))
    (shown,) = (await memories.desk.lessons()).lessons
    assert shown.state == "contradicted"
    assert len(shown.contradicted) == 6
    document: Any = shown.model_dump(by_alias=True)
    assert document["confirmed"] == tuple(each.id for each in cases if each.id not in lesson.cases)


async def test_a_lesson_whose_cases_are_all_forgotten_is_shown_as_withdrawn(memories: Memories) -> None:
    cases = [post_mortem(n) for n in range(1, 6)]
    (lesson,) = derive_lessons(cases, ORIGIN)
    await memories.journal.append_once(kind=LESSON, author=AUTHOR, payload=lesson, request_id=lesson.id)
    await memories.keep(*cases)
    for each in cases:
        await memories.desk.forget(each.id)
    (shown,) = (await memories.desk.lessons()).lessons
    assert (shown.id, shown.state) == (lesson.id, "withdrawn")
