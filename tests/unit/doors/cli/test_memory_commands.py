"""`zuno memory` in one process: documents, screens, and the exit codes of bad wishes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wire.post_mortems import CALM, CROWDED, post_mortem
from zuno.doors.cli.main import run
from zuno.journal.port import Author
from zuno.settings import Settings
from zuno.trading.learn.memory_book import MemoryBook, update_index
from zuno.trading.model.memory import LESSON, POST_MORTEM, Verdict
from zuno.trading.rules.lessons import derive_lessons
from zuno.wiring.application import Application

Say = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")

    async def learn() -> None:
        zuno = Application(Settings(home=folder))
        journal = await zuno._open_journal()
        told = [post_mortem(n) for n in range(1, 8)] + [post_mortem(9, CALM, Verdict.SUCCESS)]
        for each in told:
            await journal.append_once(kind=POST_MORTEM, author=Author("rules"), payload=each, request_id=each.id)
        for lesson in derive_lessons(told, told[0].origin):
            await journal.append_once(kind=LESSON, author=Author("rules"), payload=lesson, request_id=lesson.id)
        await update_index(MemoryBook(zuno._open_journal), zuno._memory_index())
        await zuno.close()

    asyncio.run(learn())
    return folder


@pytest.fixture
def say(home: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    def ask(*words: str) -> tuple[int, str]:
        code = run(("memory", *words), lambda given: Application(Settings(home=home)))
        return code, capsys.readouterr().out

    return ask


@pytest.mark.slow
def test_search_as_a_document(say: Say) -> None:
    code, out = say("search", "failed breakout with high funding", "--lines", "2", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["query"], found["source"], len(found["memories"])) == (
        "failed breakout with high funding",
        "sqlite",
        2,
    )
    wanted = {"id", "symbol", "closed", "setup", "outcome", "constraint", "r", "similarity"}
    assert all(wanted <= set(memory) for memory in found["memories"])
    assert {memory["setup"] for memory in found["memories"]} == {CROWDED}


@pytest.mark.slow
def test_screens(say: Say) -> None:
    for words, sign in (
        (("list",), "pm_0009"),
        (("search", "calm without a trend, volatility low"), "pm_0009"),
        (("show", "pm_0003"), "FUTURE CONSTRAINT"),
        (("lessons",), "active"),
    ):
        code, out = say(*words)
        assert code == 0, words
        assert sign in out, words


@pytest.mark.slow
def test_forgetting_is_for_good(say: Say) -> None:
    assert say("forget", "pm_0001", "--json") == (0, '{"id":"pm_0001","symbol":"BTCUSDT"}\n')
    _, out = say("list", "--json")
    assert "pm_0001" not in {memory["id"] for memory in json.loads(out)["memories"]}
    assert say("forget", "pm_0001")[0] == say("show", "pm_0001")[0] == 3


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("search", ""), 2),
        (("search", "   "), 2),
        (("search",), 2),
        (("search", "failed breakout " * 700), 0),
        (("search", "breakout", "--lines", "0"), 2),
        (("show", "pm_nothing"), 3),
        (("forget", "../../etc"), 3),
        (("list", "--symbol", "DOGE"), 2),
    ],
)
def test_bad_wishes_are_refused_by_their_code(say: Say, words: tuple[str, ...], code: int) -> None:
    assert say(*words)[0] == code


async def test_trades_closed_while_the_store_is_down_are_found_by_age(tmp_path: Path) -> None:
    (tmp_path / "memory" / "index.db").mkdir(parents=True)  # nothing that SQLite can open
    zuno = Application(Settings(home=tmp_path))
    told = post_mortem(1)
    journal = await zuno._open_journal()
    await journal.append_once(kind=POST_MORTEM, author=Author("rules"), payload=told, request_id=told.id)
    learned = await zuno.evaluator().learn(told.account, told.origin, told.closed)
    assert [note.split()[0] for note in learned.notes] == ["sqlite"]
    found = await zuno.memory().search("funding high")
    assert (found.source, [each.id for each in found.memories]) == ("recent3", [told.id])
    await zuno.close()
