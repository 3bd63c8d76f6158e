"""Analyses run on while nobody waits, and are few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from zuno.doors.mcp import analyses
from zuno.doors.mcp.analyses import Analyses
from zuno.doors.mcp.services import AssistantServices
from zuno.kernel.errors import Refused, Unavailable, UsageError
from zuno.markets.market import DEFAULT_SYMBOLS
from zuno.trading.model.cycle import Node, NodeEvent


class SlowDesk:
    """A trading desk that ends a cycle when it is told to."""

    markets = DEFAULT_SYMBOLS

    def __init__(self) -> None:
        self.end = asyncio.Event()
        self.error: Exception | None = None
        self.asked: list[str] = []

    def cycles(self) -> SlowDesk:
        return self

    async def run(
        self, symbol: str, mode: str, as_of: str | None, listen: Callable[[NodeEvent], None], *, run_id: str
    ) -> None:
        self.asked.append(run_id)
        listen(NodeEvent(Node.TRIAGE, "done", note="quiet"))
        await self.end.wait()
        if self.error is not None:
            raise self.error


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> SlowDesk:
    monkeypatch.setattr(analyses, "ANSWER_SECONDS", 0.0)
    return SlowDesk()


def open_analyses(desk: SlowDesk) -> Analyses:
    numbers = iter(range(100))
    return Analyses(cast(AssistantServices, desk), lambda count: next(numbers).to_bytes(count, "big"))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_id_is_answered_before_the_end(desk: SlowDesk) -> None:
    running = open_analyses(desk)
    first = await running.analyze("BTC", "swing")
    assert (first.state, first.run_id) == ("running", None)
    await settle()
    assert desk.asked == [first.id]
    assert [(step.who, step.text) for step in (await running.look(first.id)).steps] == [("triage", "done quiet")]
    desk.end.set()
    await settle()
    ended = await running.look(first.id)
    assert (ended.state, ended.run_id) == ("done", first.id)


async def test_a_failure_is_kept(desk: SlowDesk) -> None:
    running = open_analyses(desk)
    id_ = (await running.analyze("BTC", "swing")).id
    desk.error = Unavailable("no market answers")
    desk.end.set()
    await settle()
    failed = await running.look(id_)
    assert (failed.state, failed.error) == ("failed", "no market answers")


async def test_what_cannot_be_asked_starts_nothing(desk: SlowDesk) -> None:
    running = open_analyses(desk)
    wrong: tuple[Any, ...] = (
        running.analyze("DOGE", "swing"),
        running.analyze("BTC", "forever"),
        running.recommend_rebalance("x", None, None),
        running.look("plan_000000000000"),
    )
    for question in wrong:
        with pytest.raises(UsageError):
            await question
    assert desk.asked == []


async def test_few_run_at_once_and_a_stop_ends_them(desk: SlowDesk) -> None:
    running = open_analyses(desk)
    ids = [(await running.analyze("BTC", "swing")).id for _ in range(analyses.MOST_RUNNING)]
    assert len(set(ids)) == len(ids)
    with pytest.raises(Refused):
        await running.analyze("BTC", "swing")
    await settle()
    await running.close()
    assert desk.asked == ids
    desk.end.set()
    assert (await running.analyze("BTC", "swing")).id not in ids
    await running.close()
