"""Kill -9 `zuno trade close` at every durable write from the close to the last index, and count what was learned.

For each point one process closes a position, books it, begins to learn from it and dies there by SIGKILL; in one more
it dies with half a line of the JSONL on disk. Another process closes what is still open and evaluates. Then every
closed trade must have exactly one post-mortem and one labelled record, and the journal, the JSONL and the index must
hold the same memories.

The processes are forks of one that has loaded everything and run nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from tests.crash.cycle import DIED, forked
from tests.crash.preload import JOURNAL, preload
from tests.wire.order_gate import open_long
from zuno.adapters.memory.jsonl import JsonlMemory
from zuno.adapters.memory.sqlite import SqliteMemoryIndex
from zuno.doors.cli.main import run
from zuno.journal.journal import ChainedJournal
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.settings import Settings
from zuno.trading.model.memory import CASE_RECORD, POST_MORTEM
from zuno.trading.model.trade_events import paper_account
from zuno.wiring.application import Application
from zuno.wiring.memory import memory_file

LOADED = (
    *JOURNAL,
    "zuno.doors.cli.render",
    "zuno.adapters.chart",
    "zuno.adapters.memory.jsonl",
    "zuno.adapters.memory.hashed",
    "zuno.adapters.series",
    "zuno.trading.chart",
    "zuno.trading.rules",
    "zuno.trading.service",
    "zuno.trading.watch",
)
Act = Callable[..., Awaitable[Any]]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def make_mortal(last: int | None, writes: list[str]) -> None:
    """Ends this process after its n-th durable write; `writes` is told each."""

    def after(act: Act, name: str) -> Act:
        async def acting(*args: Any, **named: Any) -> Any:
            done = await act(*args, **named)
            writes.append(str(named.get("kind", name)))
            if len(writes) == last:
                die()
            return done

        return acting

    for owner, names in (
        (ChainedJournal, ("append", "append_once", "append_all")),
        (JsonlMemory, ("add",)),
        (SqliteMemoryIndex, ("add",)),
    ):
        for name in names:
            if hasattr(owner, name):
                setattr(owner, name, after(getattr(owner, name), f"{owner.__name__}.{name}"))


def tear_line() -> None:
    """Ends this process with half a line of the JSONL on disk."""

    def append(memory: Any, line: bytes) -> None:
        with open(memory._path, "ab") as file:
            file.write(line[: len(line) // 2])
        die()

    setattr(JsonlMemory, "_append", append)  # noqa: B010  # by name: mypy holds a method to its shape


def ask_zuno(home: Path, *words: str) -> Any:
    """The document of a command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run((*words, "--json"), lambda _: Application(Settings(home=home)))
    assert code == 0, err.getvalue() or out.getvalue()
    return json.loads(out.getvalue())


async def in_thread(act: Callable[[], Any]) -> None:
    """A command has an event loop of its own."""
    await asyncio.to_thread(act)


async def open_position(home: Path) -> None:
    application = Application(Settings(home=home))
    desk = application.trading()
    moment = await desk.moment(Symbol("BTCUSDT"), None)
    gate = await application._open_gate(paper_account(moment.origin), lambda: moment.as_of)
    quote: Any = await gate._protections.known_quote(Venue("BINANCE"), Symbol("BTCUSDT"))
    done = await open_long(gate, moment.as_of, float(quote.mark))
    assert gate.book.trades, f"nothing was opened: {done}"
    await application.close()


def close(home: Path, last: int | None) -> None:
    writes: list[str] = []
    make_mortal(last, writes)
    ask_zuno(home, "trade", "close", "all")
    (home / "writes.json").write_text(json.dumps(writes))


def close_with_torn_line(home: Path) -> None:
    tear_line()
    ask_zuno(home, "trade", "close", "all")


async def go_on(home: Path) -> None:
    """What a person does after a crash, and what is there then."""
    await in_thread(lambda: ask_zuno(home, "trade", "close", "all"))
    await in_thread(lambda: ask_zuno(home, "trade", "evaluate"))
    application = Application(Settings(home=home))
    journal: Any = await application._open_journal()
    entries = [entry async for entry in journal.entries()]
    verdict = await journal.verify()
    told = {
        "fault": None if verdict.ok else str(verdict.fault),
        "post_mortems": Counter(entry.request_id for entry in entries if entry.kind == POST_MORTEM),
        "records": Counter(entry.request_id for entry in entries if entry.kind == CASE_RECORD),
        "lines": sorted(await memory_file(home).ids()),
        "index": sorted(await application._memory_index().ids()),
    }
    await application.close()
    (home / "told.json").write_text(json.dumps(told))


def find_problems(home: Path) -> list[str]:
    told = json.loads((home / "told.json").read_text())
    ids = sorted(told["post_mortems"])
    problems = [] if told["fault"] is None else [told["fault"]]
    problems += [] if len(ids) == 1 else [f"{len(ids)} post-mortems of one trade"]
    for name in ("post_mortems", "records"):
        problems += [f"{name}: {id} {count} times" for id, count in told[name].items() if count != 1]
        problems += [f"{name}: not of the same trades"] if sorted(told[name]) != ids else []
    problems += [f"{name} holds {told[name]}" for name in ("lines", "index") if told[name] != ids]
    return problems


class Matrix:
    def __init__(self, folder: Path, market: Path) -> None:
        self._folder = folder
        self._base = folder / "base"
        self._base.mkdir()
        (self._base / "market").symlink_to(market)
        assert forked(lambda: open_position(self._base)) == 0

    def home(self, name: str) -> Path:
        home = self._folder / name
        shutil.copytree(self._base, home, symlinks=True)
        return home

    def list_writes(self) -> list[str]:
        home = self.home("whole")
        assert forked(lambda: in_thread(lambda: close(home, None))) == 0
        writes: list[str] = json.loads((home / "writes.json").read_text())
        return writes

    def kill(self, name: str, act: Callable[[Path], None]) -> list[str]:
        home = self.home(name)
        code = forked(lambda: in_thread(lambda: act(home)))
        if code != DIED:
            return [f"it ended with {code} instead of dying"]
        if forked(lambda: go_on(home)) != 0:
            return ["it could not go on"]
        return find_problems(home)


def choose(writes: Sequence[str], *, sample: bool) -> list[int]:
    """Every write; or the one that more is to follow than any other, the post-mortem."""
    if not sample:
        return list(range(1, len(writes) + 1))
    return [writes.index(POST_MORTEM) + 1]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", action="store_true", help="after half a line and after the post-mortem only")
    parser.add_argument("--market", type=Path, help="a home's folder `market`; otherwise one is invented")
    chosen = parser.parse_args(arguments)
    preload(LOADED)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        market = chosen.market
        if market is None:
            assert forked(lambda: in_thread(lambda: ask_zuno(folder / "first", "data", "synth", "--seed", "7"))) == 0
            market = folder / "first" / "market"
        matrix = Matrix(folder, market.resolve())
        writes = matrix.list_writes()
        found = {"with half a line": matrix.kill("torn", close_with_torn_line)}
        for count in choose(writes, sample=chosen.sample):
            point = f"after write {count}, {writes[count - 1]}"
            found[point] = matrix.kill(str(count), lambda home, count=count: close(home, count))  # type: ignore[misc]
        for point, problems in found.items():
            print(f"{point}: {'; '.join(problems) or 'learned once'}", flush=True)
        bad = sum(map(bool, found.values()))
        print(f"{len(found)} deaths of {len(writes)} writes: {bad} wrong")
        return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
