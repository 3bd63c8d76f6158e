"""The exam every keeper of checkpoints sits: a run goes on where it was cut off, and takes each node once."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.checkpoints import postgres_checkpoints, sqlite_checkpoints, strict_serializer
from zuno.kernel.canonical import Digest, digest
from zuno.kernel.errors import Broken, Unavailable
from zuno.trading.model.cycle import Node
from zuno.trading.run.graph import Step, run_graph

MOST_BYTES = 200_000
FIVE = {Node.META_AGENT, Node.LIQUIDITY_EXPERT, Node.MICROSTRUCTURE_EXPERT, Node.MACRO_EXPERT, Node.VLM_EXPERT}
Open = Callable[[], AbstractAsyncContextManager[Any]]


@pytest.fixture(params=["sqlite", "postgres"])
def checkpoints(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "sqlite":
        return lambda: sqlite_checkpoints(tmp_path / "cycles.db")
    url = request.getfixturevalue("postgres")
    return lambda: postgres_checkpoints(url)


class Steps:
    """Steps that do nothing but note that they were taken; one of them may fail, once."""

    def __init__(self, fails: Node | None = None) -> None:
        self.taken: list[Node] = []
        self.fails = fails

    def of(self) -> dict[Node, Step]:
        return {node: self._step(node) for node in Node}

    def _step(self, node: Node) -> Step:
        async def step() -> Digest:
            self.taken.append(node)
            if node is self.fails:
                self.fails = None
                raise ZeroDivisionError("our own bug")
            return named(node)

        return step


def named(node: Node) -> Digest:
    return digest(node.encode())


async def test_each_node_is_taken_once_and_named(checkpoints: Open) -> None:
    steps = Steps()
    async with checkpoints() as saver:
        said = await run_graph("run_1", steps.of(), saver)
    assert said == {node: named(node) for node in Node}
    assert Counter(steps.taken) == dict.fromkeys(Node, 1)


@pytest.mark.soak(every=6)
@pytest.mark.parametrize("fails", list(Node))
async def test_a_run_goes_on_where_it_was_cut_off(
    checkpoints: Open, fails: Node, caplog: pytest.LogCaptureFixture
) -> None:
    steps, run = Steps(fails), f"run_{fails}"
    async with checkpoints() as saver:
        with pytest.raises(ZeroDivisionError, match="our own bug"):
            await run_graph(run, steps.of(), saver)
    before = Counter(steps.taken)
    with caplog.at_level(logging.WARNING):
        async with checkpoints() as saver:
            said = await run_graph(run, steps.of(), saver)
    assert said == {node: named(node) for node in Node}
    assert Counter(steps.taken)[fails] == 2
    beside = FIVE if fails in FIVE else {Node.TRIAGE, Node.GENERATE_CHART}
    again = {node for node in before if steps.taken.count(node) > 1} - {fails}
    assert again <= beside, "only who stood beside it may be taken again"
    assert "Blocked" not in caplog.text, "a checkpoint holds what cannot be read again"


async def test_a_step_is_kept_before_the_next_is_taken(checkpoints: Open) -> None:
    kept: list[int] = []
    steps = Steps()
    async with checkpoints() as saver:
        put = saver.aput

        async def noting(*given: Any) -> Any:
            done = await put(*given)
            kept.append(len(steps.taken))
            return done

        saver.aput = noting
        await run_graph("run_kept", steps.of(), saver)
    assert sorted(set(kept)) == [0, 1, 2, 4, 9, 10, 11, 12, 13, 14, 15, 16], "after each barrier, before the next"


async def test_nothing_in_a_checkpoint_is_made_into_a_type(checkpoints: Open) -> None:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    written = JsonPlusSerializer().dumps_typed({"node": Node.TRIAGE})
    async with checkpoints() as saver:
        assert not isinstance(saver.serde.loads_typed(written)["node"], Node)


async def test_a_finished_run_is_forgotten_and_others_are_not(checkpoints: Open) -> None:
    steps = Steps()
    async with checkpoints() as saver:
        await run_graph("run_a", steps.of(), saver)
        await run_graph("run_b", steps.of(), saver)
        await saver.adelete_thread("run_a")
        await run_graph("run_b", steps.of(), saver)
        assert len(steps.taken) == 2 * len(Node), "it had ended"
        await run_graph("run_a", steps.of(), saver)
        assert len(steps.taken) == 3 * len(Node), "it is a new one"


async def test_two_stand_side_by_side_and_five_and_nobody_else() -> None:
    """Whoever stands alone would wait for ever."""
    at_once = dict.fromkeys((Node.TRIAGE, Node.GENERATE_CHART), 2) | dict.fromkeys(FIVE, 5)
    barriers = {2: asyncio.Barrier(2), 5: asyncio.Barrier(5)}
    taken: list[Node] = []
    running = 0

    def step(node: Node) -> Step:
        async def act() -> Digest:
            nonlocal running
            running += 1
            if node in at_once:
                await barriers[at_once[node]].wait()
            assert running <= at_once.get(node, 1)
            taken.append(node)
            await asyncio.sleep(0)
            running -= 1
            return named(node)

        return act

    await asyncio.wait_for(run_graph("run_1", {node: step(node) for node in Node}, None), 20)
    assert set(taken[2:4]) == {Node.TRIAGE, Node.GENERATE_CHART}
    assert set(taken[4:9]) == FIVE
    in_turn = [*list(Node)[:2], Node.BLACKBOARD_SYNTHESIS, *list(Node)[list(Node).index(Node.JUDGE_AGENT) :]]
    assert [*taken[:2], *taken[9:]] == in_turn


async def test_a_run_leaves_little_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cycles.db"
    async with sqlite_checkpoints(path) as saver:
        for number in range(10):
            await run_graph(f"run_{number}", Steps().of(), saver)
    with closing(sqlite3.connect(path)) as beside:
        (found,) = beside.execute(
            "SELECT (SELECT SUM(LENGTH(checkpoint) + LENGTH(metadata)) FROM checkpoints)"
            " + (SELECT SUM(LENGTH(value)) FROM writes)"
        ).fetchone()
    assert found / 10 < MOST_BYTES / 2
    assert path.stat().st_size / 10 < MOST_BYTES


def test_a_checkpoint_makes_no_type_of_anybodys() -> None:
    """What the library's own default would import and call comes back as something else."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    written = JsonPlusSerializer().dumps_typed({"node": Node.TRIAGE})
    assert JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(written) == {"node": Node.TRIAGE}
    assert not isinstance(strict_serializer().loads_typed(written)["node"], Node)
    assert strict_serializer().loads_typed(strict_serializer().dumps_typed({"said": {"triage": "ab"}})) == {
        "said": {"triage": "ab"}
    }


async def test_a_write_that_was_cut_off_is_whole_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    path = tmp_path / "cycles.db"
    place: Any = {"configurable": {"thread_id": "run_1", "checkpoint_ns": "", "checkpoint_id": "1"}}
    async with sqlite_checkpoints(path) as saver:
        writing = asyncio.create_task(saver.aput_writes(place, [("said", str(place)) for place in range(500)], "task"))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
    with closing(sqlite3.connect(path, timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert other.execute("SELECT COUNT(*) FROM writes").fetchone()[0] in (0, 500)


async def test_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "cycles.db").write_bytes(b"no database at all, but long enough to be taken for one" * 40)
    with pytest.raises(Broken, match=r"cycles\.db"):
        async with sqlite_checkpoints(tmp_path / "cycles.db") as saver:
            await run_graph("run_1", Steps().of(), saver)


async def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "cycles.db").mkdir()
    with pytest.raises(Unavailable, match=r"cycles\.db"):
        async with sqlite_checkpoints(tmp_path / "cycles.db"):
            pass


async def test_a_server_that_is_not_there_is_said_without_its_password() -> None:
    pytest.importorskip("psycopg", reason="no Postgres driver: make postgres")
    with pytest.raises(Unavailable, match="did not answer") as told:
        async with postgres_checkpoints("postgresql://zuno:a-password@127.0.0.1:1/zuno"):
            pass
    assert "a-password" not in str(told.value)


async def test_a_servers_checkpoints_have_a_schema_of_their_own(postgres: str) -> None:
    import psycopg

    async with postgres_checkpoints(postgres) as saver:
        await run_graph("run_1", Steps().of(), saver)
    async with await psycopg.AsyncConnection.connect(postgres) as beside:
        found = await beside.execute(
            "SELECT table_schema FROM information_schema.tables WHERE table_name = 'checkpoints'"
        )
        assert await found.fetchall() == [("zuno_cycles",)]
