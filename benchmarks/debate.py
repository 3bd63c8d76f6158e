"""How long the desk takes to make up its mind: `python benchmarks/debate.py [--debates N]`.

Prints one JSON line per figure and ends with 1 when a bar is missed. Timed is `Advice.rebalance` on a real home:
observation of the simulated chain (position, price history, gas, fee growth), four peers over the in-process transport,
every message signed and checked, 1,000 stress paths, the SQLite journal on disk with all its fsyncs, and the plan. The
simulator's own past (it replays a week of swaps to answer what a node looks up) is prepared beforehand.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.figure import report, report_pairs
from tests.wire.fakes.model import ScriptedModel
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.model.registry import ModelTable
from zuno.amm.model import PoolState
from zuno.kernel.units import HexId, Seconds
from zuno.llm.port import ModelRequest, RoleModels
from zuno.lp.agents import pool_inputs, prompt_facts
from zuno.lp.rules import stress
from zuno.lp.service import recorded_request
from zuno.settings import Settings, read_settings
from zuno.wiring import Application

PAIRS = 40
NODES = 12
DEBATE_BAR = 5.0
HEDGED_BAR = 1.3
CALL_SECONDS = 2.0
"""The ratio depends on it: our own share is a fixed time on top of three calls, shown in the line as `overheadMs`."""
CALLS_BAR = 3.3
FULL_RUN = 5_000
EARLY = 50
WINDOW = 25
AGE_BAR = 1.2
MEMORY_BAR = 1.05


class PreparedChain(SimChain):
    """The simulated chain with a memory for its past, as a node has one."""

    def __init__(self, file: SimFile) -> None:
        super().__init__(file)
        self._past: dict[tuple[HexId, Seconds], PoolState] = {}

    async def pool_at(self, pool_id: HexId, moment: Seconds) -> PoolState:
        if (pool_id, moment) not in self._past:
            self._past[pool_id, moment] = await super().pool_at(pool_id, moment)
        return self._past[pool_id, moment]


class BenchHouse(Application):
    """The house as it is, with that chain and, where wanted, a model that takes its time."""

    def __init__(self, settings: Settings, model: ScriptedModel | None = None) -> None:
        super().__init__(settings)
        self._chains._sim = PreparedChain(SimFile(settings.home))
        if model is not None:
            self._models._registry = ModelTable(RoleModels((model,)))


def open_house(folder: str, model: ScriptedModel | None = None) -> BenchHouse:
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    return BenchHouse(read_settings({"ZUNO_DETERMINISTIC": "false" if model else "true"}, home), model)


def slow_and_sound(request: ModelRequest) -> str:
    """Answers that lead to an accepted first proposal."""
    text = "A plain reason without any figure."
    if request.role == "scout":
        return json.dumps({"summary": text})
    if request.role == "strategist":
        shapes = [{"widthPercent": width, "centerOffsetTicks": 0, "rationale": text} for width in (140, 65, 100)]
        return json.dumps({"shapes": shapes})
    verdicts = ("revise", "accept", "accept", "veto", "veto")  # as the rules judge the seeded world
    judgments = [
        {"index": at, "verdict": verdict, "reason": text, "suggestion": None} for at, verdict in enumerate(verdicts)
    ]
    return json.dumps({"judgments": judgments})


def forget_last_debate() -> None:
    """In a living market no two debates see the same returns: nothing worked out for the last one helps the next."""
    for known in (
        stress._draw,
        stress._scale,
        stress._inside,
        prompt_facts._pool_facts,
        prompt_facts._facts_of_candidate,
        pool_inputs.build_pool_inputs,
        recorded_request._decode_context,
    ):
        known.cache_clear()


def empty_graph(folder: str) -> Callable[[int], object]:
    """The yardstick: twelve nodes that do nothing, checkpointed to SQLite on disk as the library does it."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph
    from typing_extensions import TypedDict

    class State(TypedDict):
        step: int

    def node(state: State) -> dict[str, int]:
        return {"step": state["step"] + 1}

    graph: Any = StateGraph(State)
    names = [f"node{number}" for number in range(NODES)]
    for name in names:
        graph.add_node(name, node)
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    saver = SqliteSaver(sqlite3.connect(Path(folder) / "checkpoints.db", check_same_thread=False))
    compiled = graph.compile(checkpointer=saver)
    return lambda turn: compiled.invoke({"step": 0}, {"configurable": {"thread_id": str(turn)}})


async def timed(job: Callable[[], Awaitable[object]]) -> float:
    start = perf_counter()
    await job()
    return (perf_counter() - start) * 1000


def resident_kilobytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # no /proc: the highest it ever was
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


async def against_an_empty_graph(folder: str) -> bool:
    """Both take turns, so that a busy machine hits both."""
    house, graph = open_house(f"{folder}/home"), empty_graph(folder)
    advice = house.advice()

    async def debate() -> None:
        forget_last_debate()
        await advice.rebalance("1", chain="sim")

    async def empty(turn: int) -> None:
        graph(turn)

    for turn in range(3):
        await debate()
        await empty(-1 - turn)
    pairs = [(await timed(debate), await timed(lambda turn=turn: empty(turn))) for turn in range(PAIRS)]  # type: ignore[misc]
    await house.close()
    ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    against = f"{NODES} empty LangGraph nodes with SQLite checkpoints"
    return report("deterministic rebalance debate", ours, f"ms, p50 of {PAIRS}", theirs, against, DEBATE_BAR)


async def with_hedged_candidates(folder: str) -> bool:
    """A debate whose moves are hedged, by turns with the same one without."""
    house = open_house(f"{folder}/hedged")
    advice = house.advice()

    async def debate(hedged: bool) -> None:
        forget_last_debate()
        await advice.rebalance("1", chain="sim", hedged=hedged)

    for hedged in (True, False, True, False):
        await debate(hedged)
    pairs = [(await timed(lambda: debate(True)), await timed(lambda: debate(False))) for _ in range(PAIRS)]
    await house.close()
    return report_pairs("rebalance debate with hedged candidates", pairs, "the same without", HEDGED_BAR)


async def with_a_slow_model(folder: str) -> bool:
    model = ScriptedModel(slow_and_sound, "slow", seconds=CALL_SECONDS)
    house = open_house(f"{folder}/slow", model)
    advice = house.advice()
    await advice.rebalance("1", chain="sim")
    times = []
    for _ in range(5):
        start = perf_counter()
        plan = await advice.rebalance("1", chain="sim")
        times.append(perf_counter() - start)
        if plan.rounds or plan.decided_by != "critic" or {one.speaker for one in plan.voices} != {"model"}:
            raise ValueError("meant to time a first proposal that is accepted, argued by models")
    await house.close()
    took = statistics.median(times)
    return report(
        "debate with a slow model, a first proposal accepted",
        took,
        "s, p50 of 5",
        CALL_SECONDS,
        "one call of that model",
        CALLS_BAR,
        overheadMs=round((took - 3 * CALL_SECONDS) * 1000),
    )


async def in_the_long_run(folder: str, debates: int) -> list[bool]:
    """The last debates of an old house take turns with the 50th and later ones of a new one: the machine's mood of
    ten minutes ago is no part of the comparison. What the process itself gathers with age shows in its memory."""
    old = open_house(f"{folder}/old")

    async def in_old() -> None:
        await old.advice().rebalance("1", chain="sim")

    early_memory = 0
    for number in range(1, debates - 2 * WINDOW + 1):
        await in_old()
        if number == EARLY + WINDOW:
            gc.collect()
            early_memory = resident_kilobytes()
    gc.collect()
    memory = resident_kilobytes()
    new = open_house(f"{folder}/new")

    async def in_new() -> None:
        await new.advice().rebalance("1", chain="sim")

    for _ in range(EARLY - 1):
        await in_new()
    pairs = [(await timed(in_old), await timed(in_new)) for _ in range(2 * WINDOW)]
    await old.close()
    await new.close()
    late, early = (statistics.median(times) for times in zip(*pairs, strict=True))
    ran = {"debates": debates}
    return [
        report(
            "the last of many debates", late, "ms", early, "the 50th of a new house, taking turns", AGE_BAR, **ran,
        ),
        report(
            "memory after many debates", memory / 1024, "MB resident", early_memory / 1024, "after the 75th",
            MEMORY_BAR, **ran,
        ),
    ]  # fmt: skip


async def run(debates: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        passed = [await against_an_empty_graph(folder), await with_hedged_candidates(folder)]
        passed.append(await with_a_slow_model(folder))
        passed += await in_the_long_run(folder, debates)
    return 0 if all(passed) else 1


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--debates", type=int, default=FULL_RUN)
    return asyncio.run(run(max(arguments.parse_args().debates, 4 * WINDOW)))


if __name__ == "__main__":
    sys.exit(main())
