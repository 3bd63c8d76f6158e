"""Kill -9 `zuno telegram run` at every durable write between /approve and the end of /apply, and look what was done.

For each point an owner asks the bot to approve a plan and to apply it, confirms both cards, and the process dies by
SIGKILL on the way. Another process polls the same Bot API; the owner goes on until the plan has ended. Then it must
have been applied exactly once, with the positions that an undisturbed run ends with.

The processes are forks of one that has loaded everything and played the simulated chain's story; the Bot API is a
local one.
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
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tests.crash.cycle import forked
from tests.crash.learning import in_thread
from tests.crash.preload import KEYS, REQUESTS, play_story, preload
from tests.wire.telegram_api import ALICE, TOKEN, SentMessage, TelegramApi, telegram_api
from zuno.adapters.chain.sim.writer import SimWriter
from zuno.adapters.store.chat_store import SqliteChatStore
from zuno.doors.cli.main import run
from zuno.journal.journal import ChainedJournal
from zuno.settings import Settings
from zuno.wiring.application import Application

LOADED = (
    *KEYS,
    *REQUESTS,
    "zuno.doors.cli.render",
    "zuno.doors.telegram",
    "zuno.doors.chat",
    "zuno.lp.agents",
    "zuno.adapters.chain.sim",
    "zuno_devnet.keys",
    "zuno.adapters.keys",
    "zuno.adapters.prices",
    "zuno.adapters.transport.inbox",
    "zuno.adapters.mesh.folder",
    "zuno.adapters.store.outbox",
    "zuno.wiring.telegram",
)
POSITION = "1"
SILENCE = 3.0
"""Seconds without a message after which a restarted bot has nothing to say of what was asked before."""
MOST_TURNS = 12
PATIENCE = 120.0

Act = Callable[..., Awaitable[Any]]


def make_mortal(home: Path, last: int | None) -> None:
    """Ends this process after its n-th durable write; what they were is left in a file."""
    writes: list[str] = []

    def after(act: Act, name: str) -> Act:
        async def acting(*args: Any, **named: Any) -> Any:
            done = await act(*args, **named)
            writes.append(str(named.get("kind", name)))
            (home / "writes.json").write_text(json.dumps(writes))
            if len(writes) == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return acting

    for owner, names in (
        (ChainedJournal, ("append", "append_once", "append_all")),
        (SqliteChatStore, ("claim_update", "put_buttons", "put_confirmation", "take_confirmation")),
        (SimWriter, ("send",)),
    ):
        for name in names:
            if hasattr(owner, name):
                setattr(owner, name, after(getattr(owner, name), name))


def ask_zuno(home: Path, *words: str) -> Any:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run((*words, "--json"), lambda _: Application(Settings(home=home, chain_id="sim")))
    assert code == 0, err.getvalue() or out.getvalue()
    return json.loads(out.getvalue())


async def make_plan(home: Path) -> None:
    def ask() -> None:
        ask_zuno(home, "sim", "move", "--percent", "12")
        plan = ask_zuno(home, "lp", "recommend", "rebalance", POSITION)
        (home / "plan.txt").write_text(plan["planId"])

    await in_thread(ask)


async def look(home: Path) -> None:
    """What the owner has in the end, left in a file."""

    def ask() -> None:
        plan = (home / "plan.txt").read_text()
        status = ask_zuno(home, "plan", "status", plan)
        positions = ask_zuno(home, "lp", "positions")["positions"]
        told = {
            "state": status["state"],
            "sent": [step["txHash"] for step in status["steps"] if step["txHash"]],
            "positions": sorted((held["id"], held["tickLower"], held["tickUpper"]) for held in positions),
            "journal": ask_zuno(home, "journal", "verify")["ok"],
        }
        (home / "told.json").write_text(json.dumps(told))

    await in_thread(ask)


class BotProcess:
    """One bot after the other on the same home; only the first is to die."""

    def __init__(self, home: Path, url: str, last: int | None) -> None:
        self._home = home
        self._url = url
        self.deaths = 0
        self._pid = self._start(last)

    def _start(self, last: int | None) -> int:
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        code = 9
        try:
            make_mortal(self._home, last)
            asyncio.run(self._run())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    async def _run(self) -> None:
        settings = Settings(
            home=self._home,
            chain_id="sim",
            telegram_bot_token=SecretStr(TOKEN),
            telegram_api_base_url=self._url,
            telegram_owners=(ALICE.id,),
        )
        await Application(settings).telegram().run(lambda event: None, asyncio.Event())

    def revive(self) -> bool:
        """Whether it had died; then another one runs."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid:
            return False
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "it ended by itself"
        self.deaths += 1
        self._pid = self._start(None)
        return True

    def end(self) -> None:
        with suppress(ProcessLookupError, ChildProcessError):  # it ended by itself
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


class Owner:
    """Asks, confirms, and asks again where nothing came of it."""

    def __init__(self, api: TelegramApi, bots: BotProcess, plan: str) -> None:
        self._api = api
        self._bots = bots
        self._plan = plan
        self._read = 0
        self.silences = 0
        """Requests that died with a bot, and had to be made again."""

    async def finish_plan(self) -> None:
        for _ in range(MOST_TURNS):
            told = await self._ask(f"/apply {self._plan}")
            if told is not None and "Apply" in told.labels:
                told = await self._tap(told, "Apply")
                if told is not None and "confirmed" in told.text.lower():
                    return
            elif told is not None and "not approved" in told.text:
                told = await self._ask(f"/approve {self._plan}")
                if told is not None and "Approve" in told.labels:
                    await self._tap(told, "Approve")
            elif told is not None and "confirmed" in told.text:
                return
        raise AssertionError("the plan did not end: " + " | ".join(message.text[:80] for message in self._api.sent))

    async def _ask(self, text: str) -> SentMessage | None:
        self._read = len(self._api.sent)  # what came late is of no use any more
        self._api.say(ALICE, text)
        return await self._hear()

    async def _tap(self, message: SentMessage, button: str) -> SentMessage | None:
        self._api.tap(ALICE, message, button)
        return await self._hear()

    async def _hear(self) -> SentMessage | None:
        """The next message; None where the bot died and the next one keeps silent about it."""
        loop = asyncio.get_running_loop()
        start, died, ready = loop.time(), False, 0.0
        while loop.time() - start < PATIENCE:
            if len(self._api.sent) > self._read:
                self._read += 1
                return self._api.sent[self._read - 1]
            if self._bots.revive():
                self._api.polling.clear()
                died = True
            if died and self._api.polling.is_set() and not self._api._updates:
                ready = ready or loop.time()
                if loop.time() - ready > SILENCE:
                    self.silences += 1
                    return None
            await asyncio.sleep(0.02)
        raise AssertionError("the bot says nothing")


@dataclass
class Tally:
    kills: int = 0
    recovered: int = 0
    doubled: int = 0
    """Plans with more transactions than an undisturbed one has."""
    lost: int = 0
    """Plans that did not end as an undisturbed one does."""
    repeated: int = 0
    """Requests that the owner had to make again."""

    def __str__(self) -> str:
        return (
            f"{self.kills} kills, {self.recovered} recovered, {self.doubled} doubled, {self.lost} lost; "
            f"{self.repeated} requests made again"
        )


class Matrix:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._base = folder / "base"
        self._base.mkdir()
        assert forked(lambda: make_plan(self._base)) == 0
        self._whole: dict[str, Any] = {}
        self.tally = Tally()

    async def play(self, name: str, last: int | None) -> tuple[dict[str, Any], int]:
        home = self._folder / name
        shutil.copytree(self._base, home)
        async with telegram_api() as api:
            bots = BotProcess(home, api.url, last)
            owner = Owner(api, bots, (home / "plan.txt").read_text())
            try:
                await owner.finish_plan()
            finally:
                bots.end()
            self.tally.repeated += owner.silences
        return await asyncio.to_thread(self._look, home), bots.deaths

    def _look(self, home: Path) -> dict[str, Any]:
        assert forked(lambda: look(home)) == 0
        told: dict[str, Any] = json.loads((home / "told.json").read_text())
        return told

    async def list_writes(self) -> list[str]:
        self._whole, _ = await self.play("whole", None)
        assert self._whole["state"] == "confirmed", self._whole
        writes: list[str] = json.loads((self._folder / "whole" / "writes.json").read_text())
        return writes

    async def kill(self, count: int) -> list[str]:
        told, deaths = await self.play(str(count), count)
        problems = [] if deaths else ["it did not die"]
        more = len(told["sent"]) - len(self._whole["sent"])
        same = told["state"] == self._whole["state"] and told["positions"] == self._whole["positions"]
        self.tally.kills += deaths
        self.tally.doubled += more > 0
        self.tally.lost += more < 0 or not same
        problems += [
            f"{name}: {told[name]}, undisturbed {self._whole[name]}"
            for name in ("state", "positions", "journal")
            if told[name] != self._whole[name]
        ]
        if more:
            problems.append(f"{len(told['sent'])} transactions, undisturbed {len(self._whole['sent'])}")
        self.tally.recovered += not problems
        return problems


async def kill_everywhere(folder: Path, *, sample: bool) -> int:
    matrix = Matrix(folder)
    writes = await matrix.list_writes()
    points = list(range(1, len(writes) + 1))
    if sample:
        points = [writes.index("step_signed") + 1]
    bad = 0
    for count in points:
        problems = await matrix.kill(count)
        bad += bool(problems)
        print(f"after write {count}, {writes[count - 1]}: {'; '.join(problems) or 'applied once'}", flush=True)
    print(f"{len(writes)} writes; {matrix.tally}")
    return 1 if bad else 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", action="store_true", help="after a signature only")
    chosen = parser.parse_args(arguments)
    preload(LOADED)
    play_story()
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(kill_everywhere(Path(name), sample=chosen.sample))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
