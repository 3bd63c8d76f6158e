"""How long a cycle of the trading desk takes, and what it leaves behind: `python benchmarks/cycle.py`.

Prints one JSON line per figure and ends with 1 when a bar is missed. Timed is `Cycles.run` on a real home with an
invented market: the store is read, the bundle frozen, every figure measured, eight agents heard, every step journaled,
signed and checkpointed to disk.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.debate import NODES, empty_graph, timed
from benchmarks.figure import report, report_pairs, settle_disk
from tests.wire.fakes.model import ScriptedModel
from zuno.adapters import checkpoints
from zuno.adapters.model.registry import ModelTable
from zuno.adapters.venues.synthetic.path import END
from zuno.llm.port import ModelRequest, RoleModels
from zuno.settings import read_settings
from zuno.trading.model.cycle import Outcome
from zuno.trading.model.market import HOUR_MS
from zuno.wiring import Application

SEED = 11
PAIRS = 40
WARM_UPS = 3
STEP = HOUR_MS // 4
CYCLE_BAR = 10
CALL_SECONDS = 2.0
"""The ratio depends on it: our own share is a fixed time on top of five calls one after the other (news summed up
for Meta, Meta, the experts side by side, Judge, risk officer), shown in the line as `overheadMs`."""
CALLS_BAR = 5.6
CHECKPOINT_BYTES = 200_000
_PLAIN = "A plain reason without any figure."
_OURS = {"source", "why", "stance", "dominant_signal", "score"}


async def against_an_empty_graph(folder: str, house: Application) -> bool:
    """Both take turns, so that a busy machine hits both. Each cycle is later than the one before it, as a desk goes on:
    what it has read before it does not read again, and what it has measured of bars it does not measure again until one
    more has closed."""
    cycles, graph = house.cycles(), empty_graph(folder)
    moments = iter(range(END - (PAIRS + WARM_UPS - 1) * STEP, END + 1, STEP))

    async def cycle() -> None:
        await cycles.run("BTCUSDT", as_of=str(next(moments)), chart=False)

    async def empty(turn: int) -> None:
        graph(turn)

    for turn in range(WARM_UPS):
        await cycle()
        await empty(-1 - turn)
    settle_disk()
    pairs = [(await timed(cycle), await timed(lambda turn=turn: empty(turn))) for turn in range(PAIRS)]  # type: ignore[misc]
    against = f"{NODES} empty LangGraph nodes with SQLite checkpoints"
    return report_pairs("deterministic cycle without a chart", pairs, against, CYCLE_BAR)


async def with_a_slow_model(house: Application) -> bool:
    moment, decided = await _trade(house)
    model = ScriptedModel(_as_decided(decided), "slow", seconds=CALL_SECONDS)
    house._models.registry = lambda: ModelTable(RoleModels((model,)))  # type: ignore[method-assign]
    cycles, times = house.cycles(), []
    for turn in range(4):
        start = perf_counter()
        outcome = await cycles.run("BTCUSDT", "swing", moment, chart=False)
        if {voice.source for voice in outcome.voices} != {"model"} or len(outcome.voices) != 8:
            raise ValueError(f"meant to time eight models, heard {[(v.role, v.source, v.why) for v in outcome.voices]}")
        times += [perf_counter() - start] if turn else []
    took = statistics.median(times)
    overhead = round((took - 5 * CALL_SECONDS) * 1000)
    unit, against = "s, p50 of 3", "one call of that model"
    return report("cycle with a slow model", took, unit, CALL_SECONDS, against, CALLS_BAR, overheadMs=overhead)


async def left_behind(house: Application) -> bool:
    """Every byte that is written for one run, before it is forgotten."""
    written: list[int] = []
    opened = checkpoints.sqlite_checkpoints

    @asynccontextmanager
    async def counted(path: Path) -> AsyncIterator[Any]:
        async with opened(path) as saver:
            forget = saver.adelete_thread

            async def first_count(thread: str) -> None:
                with sqlite3.connect(path) as beside:
                    for table, blobs in (("checkpoints", ("checkpoint", "metadata")), ("writes", ("value",))):
                        for blob in blobs:
                            question = f"SELECT coalesce(sum(length({blob})), 0) FROM {table} WHERE thread_id = ?"
                            written.append(beside.execute(question, (thread,)).fetchone()[0])
                await forget(thread)

            saver.adelete_thread = first_count  # type: ignore[method-assign, assignment]
            yield saver

    checkpoints.sqlite_checkpoints = counted
    try:
        await house.cycles().run("BTCUSDT")
    finally:
        checkpoints.sqlite_checkpoints = opened
    if len(written) != 3 or not written[0]:
        raise ValueError("meant to count the checkpoints of one run")
    return report("checkpoints of a run", sum(written), "bytes", CHECKPOINT_BYTES, "200 kB", 1.0)


async def _trade(house: Application) -> tuple[str, Outcome]:
    """A moment at which the rules would open something, so that the risk officer is asked too."""
    cycles = house.cycles()
    for hours in range(0, 40 * 24, 3):
        moment = str(END - hours * HOUR_MS)
        outcome = await cycles.run("BTCUSDT", "swing", moment, chart=False)
        if outcome.ruling.decision.side is not None:
            return moment, outcome
    raise ValueError("no moment of this market opens anything")


def _as_decided(decided: Outcome) -> Any:
    """What the rules said, as a model would say it."""
    board = decided.board
    said: Mapping[str, Any] = {
        "meta": decided.meta,
        "liquidity": board.liquidity,
        "microstructure": board.microstructure,
        "macro": board.macro,
        "vlm_geometric": board.vlm_geometry,
        "synthesis": board.synthesis,
        "judge": decided.decision,
    }

    def speak(request: ModelRequest) -> str:
        if request.role == "rag":
            return json.dumps({"summary": "Earlier news that are alike: {story_1}."})
        fields = json.loads(request.schema)["properties"]
        if request.role == "risk_manager":
            ruling = decided.ruling
            whole = {"allocation_pct": 100, "leverage": 3, "veto": False, "execution_style": ruling.execution_style}
        else:
            whole = said[request.role].model_dump(mode="json", exclude=_OURS)
        return json.dumps(_worded({name: whole.get(name) for name in fields}))

    return speak


def _worded(value: Any, name: str = "") -> Any:
    """The same with every free text replaced by one that holds no figure."""
    if isinstance(value, dict):
        return {key: _worded(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_worded(one, name) for one in value]
    if name == "note":
        return "As measured."  # what Meta says is a stranger's word to whoever reads it next, and may not be repeated
    free = isinstance(value, str) and (" " in value or name == "narrative")
    return _PLAIN if free or (value is None and name == "rationale") else value


async def run() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        house = Application(read_settings({"ZUNO_DETERMINISTIC": "true"}, home))
        await house.data().synth(SEED)
        passed = [await against_an_empty_graph(folder, house), await left_behind(house), await with_a_slow_model(house)]
        await house.close()
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
