"""Kill -9 a cycle of the trading desk at every durable write and at every node, resume it, and hold it against itself.

The model says something else every time it is asked. For each point a process runs a cycle and dies there by SIGKILL;
another resumes it. A third runs an uninterrupted cycle in a home of its own with a model that says what is on record of
the first two: its outcome must have the same hash and the same ruling. Nothing that was on record when the first died
may have been asked for again, every node and the view of the run are on record once, and the journal holds.

The processes are forks of one that has loaded everything and run nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.crash.preload import JOURNAL, preload
from tests.wire.cycling import ROLES, Desk, Talkative, market
from tests.wire.fakes.series import MemorySeries
from zuno.adapters.checkpoints import sqlite_checkpoints
from zuno.journal.decision_view import DECISION_VIEW
from zuno.llm.port import Answered, ModelRequest, Usage
from zuno.markets.market import Symbol
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.measure.features import measure_features
from zuno.trading.model.cycle import Node, NodeEvent
from zuno.trading.model.market import Mode
from zuno.trading.rules.price_menu import PriceMenu, build_price_menu
from zuno.trading.run.record import ATTEMPT, ENDED, kind_of
from zuno.trading.service.features import TradingDesk

LOADED = (
    *JOURNAL,
    "langchain_core.tracers.run_collector",
    "langchain_core.tracers.stdout",
    "langgraph.checkpoint.sqlite",
    "zuno.trading.run",
)
DIED = -signal.SIGKILL


@dataclass(frozen=True)
class Point:
    """Where a process dies: after so many durable writes, or when it hears that of a node."""

    write: int | None = None
    node: Node | None = None
    state: str = ""

    def __str__(self) -> str:
        return f"after write {self.write}" if self.node is None else f"when {self.node} {self.state}"


class Mortal:
    """A journal and checkpoints whose process dies after its n-th write."""

    def __init__(self, last: int | None) -> None:
        self.last = last
        self.writes: list[str] = []

    def after(self, act: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def acting(*args: Any, **named: Any) -> Any:
            done = await act(*args, **named)
            self.writes.append(str(named.get("kind", act.__name__)))
            if len(self.writes) == self.last:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return acting


async def mortal_desk(home: Path, store: MemorySeries, models: Any, fate: Mortal) -> Desk:
    desk = Desk(home, store, models=models)
    journal: Any = await desk.opened()
    for name in ("append", "append_once", "put_bundle"):
        setattr(journal, name, fate.after(getattr(journal, name)))

    @asynccontextmanager
    async def checkpoints() -> AsyncIterator[Any]:
        async with sqlite_checkpoints(home / "cycles.db") as saver:
            some: Any = saver
            for name in ("aput", "aput_writes", "adelete_thread"):
                setattr(some, name, fate.after(getattr(some, name)))
            yield saver

    desk.checkpoints = checkpoints
    return desk


def counted(home: Path) -> Callable[[ModelRequest], int]:
    """How often a role was asked before, over all processes; and now once more."""
    log = home / "asked.log"

    def asked(request: ModelRequest) -> int:
        before = log.read_text().split("\n") if log.exists() else []
        with log.open("a") as file:
            file.write(f"{request.role} {request.attempt} {request.fingerprint}\n")
        return sum(line.startswith(f"{request.role} ") for line in before)

    return asked


class Repeating(Talkative):
    """Says what is on record."""

    def __init__(self, said: dict[str, str], menu: PriceMenu) -> None:
        super().__init__(menu, lambda request: 0)
        self._said = said

    async def reply(self, request: ModelRequest) -> Any:
        return Answered(self._said[f"{request.role} {request.attempt}"], Usage(100, 50, Decimal(0)))


def forked(work: Callable[[], Awaitable[None]]) -> int:
    """Runs it in a process of its own; how that ended."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            asyncio.run(work())  # type: ignore[arg-type]
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


async def run_once(home: Path, store: MemorySeries, menu: PriceMenu, point: Point, run_id: str | None) -> None:
    """One process: a new run, or the rest of one; the end of it is left in a file."""
    fate = Mortal(point.write)
    models = {role: (Talkative(menu, counted(home)),) for role in ROLES}
    desk = await mortal_desk(home, store, models, fate)

    def listen(event: NodeEvent) -> None:
        if (event.node, event.state) == (point.node, point.state):
            os.kill(os.getpid(), signal.SIGKILL)

    cycles = desk.cycles
    outcome = await (cycles.run("BTCUSDT", listen=listen) if run_id is None else cycles.resume(run_id, listen))
    await cycles.store_missing_views()  # as every start of the desk does
    leave(home, outcome, fate.writes)
    await desk.close()


def leave(home: Path, outcome: Any, writes: Sequence[str]) -> None:
    told = {"hash": outcome.hash, "ruling": outcome.ruling.model_dump_json(), "writes": list(writes)}
    _put(home / "end.json", told)


def _put(into: Path, told: dict[str, Any]) -> None:
    into.write_text(json.dumps(told))


async def recorded(home: Path, store: MemorySeries, into: Path) -> None:
    """What is in the journal of a home, put where the parent can read it."""
    desk = Desk(home, store)
    journal: Any = await desk.opened()
    await journal.start()
    verdict = await journal.verify()
    entries = [entry async for entry in journal.entries()]
    attempts = [entry.payload for entry in entries if entry.kind == ATTEMPT]
    told = {
        "fault": None if verdict.ok else str(verdict.fault),
        "run": next((entry.request_id for entry in entries if entry.request_id), None),
        "kinds": Counter(entry.kind for entry in entries),
        "said": {f"{one['role']} {one['attempt']}": one["raw"] for one in attempts},
        "asked": [f"{one['role']} {one['attempt']} {one['request']}" for one in attempts],
    }
    await desk.close()
    _put(into, told)


async def told_again(home: Path, store: MemorySeries, menu: PriceMenu, said: dict[str, str]) -> None:
    desk = Desk(home, store, models={role: (Repeating(said, menu),) for role in ROLES})
    leave(home, await desk.cycles.run("BTCUSDT"), ())
    await desk.close()


class Matrix:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store = asyncio.run(market(thin=True))
        self._menu = asyncio.run(_menu(self._store))
        self._references: dict[str, dict[str, str]] = {}
        self._number = 0

    def home(self) -> Path:
        self._number += 1
        home = self._folder / str(self._number)
        home.mkdir()
        return home

    def read(self, home: Path) -> dict[str, Any]:
        into = home / "told.json"
        assert forked(lambda: recorded(home, self._store, into)) == 0
        told: dict[str, Any] = json.loads(into.read_text())
        return told

    def uninterrupted(self) -> list[str]:
        """What a run writes down, in its order."""
        home = self.home()
        assert forked(lambda: run_once(home, self._store, self._menu, Point(), None)) == 0
        told = json.loads((home / "end.json").read_text())
        self._keep_reference(self.read(home)["said"], told)
        assert json.loads(told["ruling"])["decision"] == "LONG", "a cycle that opens nothing proves little"
        writes: list[str] = told["writes"]
        return writes

    def held(self, point: Point) -> list[str]:
        """What is wrong after a death at this point."""
        home = self.home()
        code = forked(lambda: run_once(home, self._store, self._menu, point, None))
        if code != DIED:
            return [f"it ended with {code} instead of dying"]
        at_death = self.read(home)
        if at_death["run"] is None:
            return []  # nothing was begun
        asked_before = (home / "asked.log").read_text().splitlines() if (home / "asked.log").exists() else []
        code = forked(lambda: run_once(home, self._store, self._menu, Point(), at_death["run"]))
        if code != 0:
            return [f"it could not be resumed (exit {code})"]
        end, after = json.loads((home / "end.json").read_text()), self.read(home)
        log = (home / "asked.log").read_text().splitlines()
        problems = [f"asked again: {one}" for one in set(log[len(asked_before) :]) & set(at_death["asked"])]
        problems += [f"{kind} stands {count} times" for kind, count in after["kinds"].items() if _twice(kind, count)]
        problems += [f"no {node}" for node in Node if kind_of(node) not in after["kinds"]]
        problems += [] if DECISION_VIEW in after["kinds"] else ["no stored view"]
        problems += [f"said twice: {one}" for one, count in Counter(after["asked"]).items() if count > 1]
        problems += [] if after["fault"] is None else [after["fault"]]
        reference = self._reference(after["said"])
        problems += [f"another {name}" for name in ("hash", "ruling") if end[name] != reference[name]]
        shutil.rmtree(home)
        return problems

    def _reference(self, said: dict[str, str]) -> dict[str, str]:
        """What an uninterrupted run comes to if models say this."""
        key = json.dumps(said, sort_keys=True)
        if key not in self._references:
            home = self.home()
            assert forked(lambda: told_again(home, self._store, self._menu, said)) == 0
            self._keep_reference(said, json.loads((home / "end.json").read_text()))
        return self._references[key]

    def _keep_reference(self, said: dict[str, str], told: dict[str, str]) -> None:
        self._references[json.dumps(said, sort_keys=True)] = told

    @property
    def references(self) -> int:
        return len(self._references)


def _twice(kind: str, count: int) -> bool:
    return count > 1 and (kind.startswith("cycle_") or kind == DECISION_VIEW)


async def _menu(store: MemorySeries) -> PriceMenu:
    desk = TradingDesk(store, None, None)  # type: ignore[arg-type]  # nothing is kept or painted
    moment = await desk.moment(Symbol("BTCUSDT"), None)
    bundle = await build_bundle(store, Symbol("BTCUSDT"), Mode.SWING, moment.as_of)
    return build_price_menu(bundle, measure_features(bundle))


def points(writes: Sequence[str]) -> list[Point]:
    nodes = [Point(node=node, state="waits") for node in Node]
    return [*nodes, *(Point(write=count) for count in range(1, len(writes) + 1))]


def sample(writes: Sequence[str]) -> list[Point]:
    """A reply that is on record while others are on their way, and an end without its view."""
    replies = [count for count, kind in enumerate(writes, 1) if kind == ATTEMPT]
    ended = writes.index(ENDED) + 1
    return [Point(write=replies[1]), Point(write=ended)]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", action="store_true", help="two points only")
    chosen = parser.parse_args(arguments)
    preload(LOADED)
    with tempfile.TemporaryDirectory() as folder:
        matrix = Matrix(Path(folder))
        writes = matrix.uninterrupted()
        every = sample(writes) if chosen.sample else points(writes)
        bad = 0
        for point in every:
            problems = matrix.held(point)
            bad += bool(problems)
            print(f"{point}: {'; '.join(problems) or 'the same'}", flush=True)
        print(f"{len(every)} deaths of {len(writes)} writes and {len(Node)} nodes: {bad} wrong")
        print(f"{matrix.references} sets of replies were told again without an interruption")
        return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
