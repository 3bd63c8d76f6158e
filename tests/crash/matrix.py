"""Kill -9 at every persisted step of a rebalance on the real contracts, start again, and look what became of it.

A plan is approved once; then, for every point at which something is about to be or has just been written down or sent,
a process applies it and dies there by SIGKILL. Another process applies the same plan. In every case there must be one
new position at most, every token where it would be had nothing died, and a journal that agrees with the chain.

`at once` goes on right away and must end exactly where an undisturbed run ends. `too late` lets the approval run out
first: the plan may then end in several ways, none of which opens two positions or loses anything.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.paths import CHECKOUT
from zuno.adapters.store.table_store import HeadFile
from zuno.doors.cli.main import run
from zuno.journal.port import Entry
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.ports.spending import SendResult
from zuno.wiring import Application, open_zuno

WORLDS = CHECKOUT / ".cache" / "devnet"
EDGE_POSITION = "1"
LATE_SECONDS = 1200
"""Past the approval's fifteen minutes."""
APPROVED_AGAIN_AFTER = 240
"""Seconds: the chain's clock goes on though its blocks are set back, and no approval is to run out by slowness."""
GAS_WEI = 10**12
"""Five hundred units of gas at the devnet's price."""
WORTH_LOST = Decimal("0.005")
"""The share of the position that a swap inside its bounds may cost at most."""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Ledger:
    """Everything the wallet has, as the command line tells it."""

    positions: dict[str, tuple[int, int, str]]
    holds: dict[str, str]
    worth_usdc: Decimal

    def like(self, other: Ledger) -> bool:
        """Every position and token the same; ether but for gas, of which a deadline's digits change a few units."""
        ether = abs(int(self.holds["ETH"]) - int(other.holds["ETH"]))
        return (self.positions, self._tokens()) == (other.positions, other._tokens()) and ether <= GAS_WEI

    def _tokens(self) -> dict[str, str]:
        return {symbol: held for symbol, held in self.holds.items() if symbol != "ETH"}


# -- a process that dies at its n-th chance


class Doom:
    """Counts the points at which a process could die, and dies at one of them."""

    def __init__(self, fatal: int | None) -> None:
        self.fatal = fatal
        self.seen: list[str] = []

    def point(self, name: str) -> None:
        self.seen.append(name)
        if len(self.seen) == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)


class DoomedJournal:
    """The journal, which may be the last thing a process touches: within a write, or right after it. What is there
    before a write is what was there after the one before it."""

    def __init__(self, journal: Any, doom: Doom) -> None:
        self._journal = journal
        self._doom = doom

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, *, kind: str, **entry: Any) -> Entry:
        with self._torn(kind):
            written: Entry = await self._journal.append(kind=kind, **entry)
        self._doom.point(f"after {kind} was written")
        return written

    @contextmanager
    def _torn(self, kind: str) -> Iterator[None]:
        """Between the row and the head that vouches for it."""
        original = HeadFile.replace_head

        def torn(outside: HeadFile, head: bytes) -> None:
            self._doom.point(f"while {kind} is written")
            original(outside, head)

        HeadFile.replace_head = torn  # type: ignore[assignment]
        try:
            yield
        finally:
            HeadFile.replace_head = original


class DoomedWriter:
    def __init__(self, writer: Any, doom: Doom) -> None:
        self._writer = writer
        self._doom = doom

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    async def send(self, raw: bytes) -> SendResult:
        self._doom.point("before bytes are sent")
        said: SendResult = await self._writer.send(raw)
        self._doom.point("after bytes were sent")
        return said


class DoomedHouse(Application):
    doom: Doom

    async def _execution_context(self, chain: str) -> ExecutionContext:
        hands = await super()._execution_context(chain)
        journal: Any = DoomedJournal(hands.journal, self.doom)
        writer: Any = DoomedWriter(hands.writer, self.doom)
        return replace(hands, journal=journal, writer=writer)


# -- processes


def forked(work: Callable[[], Any]) -> tuple[int, Any]:
    """Run something in a process of its own; its exit status, and what it returned where it lived to."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            answer = json.dumps(work()).encode()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(answer)
            status = 0
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return status, json.loads(said) if said else None


def zuno(home: Path, *arguments: str) -> Ran:
    """One command of the command line, in a process of its own."""
    status, said = forked(lambda: _command(home, arguments, open_zuno))
    if status != 0 or said is None:
        raise AssertionError(f"zuno {' '.join(arguments)} died with status {status}")
    return Ran(*said)


def doomed(home: Path, words: tuple[str, ...], fatal: int | None) -> tuple[int, list[str] | None]:
    """A command in a process that dies at the point given; its status, and the points it passed if it lived."""

    def work() -> list[str]:
        doom = Doom(fatal)

        def opener(where: str | None) -> Application:
            house = open_zuno(where)
            house.__class__ = DoomedHouse
            house.doom = doom  # type: ignore[attr-defined]
            return house

        code, _, err = _command(home, words, opener)
        if code != 0:
            raise AssertionError(err)
        return doom.seen

    return forked(work)


def _command(home: Path, arguments: Sequence[str], opener: Any) -> tuple[int, str, str]:
    for name in [name for name in os.environ if name.startswith("ZUNO_")]:
        del os.environ[name]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run((*arguments, "--home", str(home)), opener)
    return code, out.getvalue(), err.getvalue()


def ask(url: str, method: str, *params: object) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())["result"]


# -- the matrix


@dataclass
class Stage:
    """A home with an approved plan, on a chain that can be set back to that moment."""

    name: str
    home: Path
    kept: Path
    """The journal as it was when the plan was approved."""
    url: str
    plan_id: str
    before: Ledger
    approved_at: float = 0.0

    @property
    def words(self) -> tuple[str, ...]:
        """What is killed, and what goes on afterwards."""
        return ("plan", "apply", self.plan_id, "--yes", "--json")

    def fresh(self) -> Path:
        """The home as it was when the plan was approved, which is not long ago."""
        _forget(self.home)
        for path in self.kept.iterdir():
            shutil.copy2(path, self.home / path.name)
        if time.monotonic() - self.approved_at > APPROVED_AGAIN_AFTER:
            self.approve()
        return self.home

    def approve(self) -> None:
        approved = zuno(self.home, "plan", "approve", self.plan_id, "--yes", "--json")
        if approved.code != 0:
            raise AssertionError(f"{self.name}: {approved.err}")
        for path in self.home.glob("journal*"):
            shutil.copy2(path, self.kept / path.name)
        self.approved_at = time.monotonic()


class MandateStage(Stage):
    """A home whose mandate exits at the next look: nothing is approved yet."""

    @property
    def words(self) -> tuple[str, ...]:
        return ("monitor", "once", "--json")

    def approve(self) -> None:
        if self.approved_at == 0.0:
            for path in self.home.glob("journal*"):
                shutil.copy2(path, self.kept / path.name)
        self.approved_at = time.monotonic()


def _forget(home: Path) -> None:
    """Everything but the chain itself and this node's key."""
    for path in (*home.glob("journal*"), *home.glob("turn-*")):
        path.unlink()
    shutil.rmtree(home / "chains", ignore_errors=True)


@dataclass
class Tally:
    kills: int = 0
    recovered: int = 0
    duplicates: int = 0
    lost: int = 0

    def line(self) -> str:
        return f"{self.kills} kills, {self.recovered} recovered, {self.duplicates} duplicates, {self.lost} lost"

    @property
    def clean(self) -> bool:
        return self.kills > 0 and self.recovered == self.kills and not self.duplicates and not self.lost


def ledger(home: Path) -> Ledger:
    listed = zuno(home, "lp", "positions", "--chain", "devnet", "--json").document
    balance = zuno(home, "wallet", "balance", "--chain", "devnet", "--json").document
    positions = {one["id"]: (one["tickLower"], one["tickUpper"], one["liquidity"]) for one in listed["positions"]}
    holds = {one["token"]["symbol"]: one["amount"] for one in balance["balances"]}
    price = Decimal(next(one["price"] for one in listed["positions"]))
    tokens = {"USDC": Decimal(holds["USDC"]) / 10**6, "WETH": Decimal(holds["WETH"]) / 10**18}
    for one in listed["positions"]:
        for side in ("0", "1"):
            symbol = one["pool"][f"currency{side}"]["symbol"]
            human = Decimal(one[f"amount{side}Human"]) + Decimal(one[f"fees{side}Human"])
            tokens[symbol] = tokens.get(symbol, Decimal(0)) + human
    worth = tokens["USDC"] + price * (tokens["WETH"] + tokens.get("ETH", Decimal(0)))
    return Ledger(positions, holds, worth)


def survived(stage: Stage, fatal: int, point: str, yardstick: Ledger, tally: Tally, late: bool) -> None:
    """One kill and its recovery, counted."""
    mark = ask(stage.url, "evm_snapshot")
    home = stage.fresh()
    try:
        status, _ = doomed(home, stage.words, fatal)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            raise AssertionError(f"{stage.name}, {point}: the process was to be killed and ended with {status}")
        tally.kills += 1
        if late:
            ask(stage.url, "evm_increaseTime", hex(LATE_SECONDS))
            ask(stage.url, "evm_mine")
        again = zuno(home, *stage.words)
        judge = _mandate_problems if not stage.plan_id else _late_problems if late else _problems
        problems, after = judge(stage, home, again)
        fresh_ids = set(after.positions) - set(stage.before.positions)
        if len(fresh_ids) > 1:
            tally.duplicates += 1
            problems.append(f"{len(fresh_ids)} new positions")
        if late:
            if after.worth_usdc < stage.before.worth_usdc * (1 - WORTH_LOST):
                tally.lost += 1
                problems.append(f"worth {after.worth_usdc}, before {stage.before.worth_usdc}")
        elif not after.like(yardstick):
            tally.lost += 1
            problems.append(f"ends with {after}, an undisturbed run with {yardstick}")
        when = "too late" if late else "at once"
        if problems:
            print(f"  {stage.name}, {when}, {point}: {'; '.join(problems)}", flush=True)
        else:
            tally.recovered += 1
    finally:
        ask(stage.url, "evm_revert", mark)


def _problems(stage: Stage, home: Path, again: Ran) -> tuple[list[str], Ledger]:
    """Going on at once ends where it would have ended; what was over already is refused, and stays what it was."""
    found = []
    if again.code not in (0, 3):
        found.append(f"apply again ended with {again.code}: {again.err.strip()}")
    known = again if again.code == 0 else zuno(home, "plan", "status", stage.plan_id, "--json")
    status = known.document
    if status["state"] != "confirmed":
        found.append(f"it is {status['state']}: {again.err.strip()}")
    after = ledger(home)
    return found + _books(stage, home, status, after), after


def _late_problems(stage: Stage, home: Path, again: Ran) -> tuple[list[str], Ledger]:
    """After the approval's end nothing new is signed; what is left in flight is called off."""
    found = []
    if again.code not in (0, 3):
        found.append(f"apply again ended with {again.code}: {again.err.strip()}")
    status = zuno(home, "plan", "status", stage.plan_id, "--json").document
    if status["state"] not in ("confirmed", "failed", "cancelled"):
        called_off = zuno(home, "plan", "cancel", stage.plan_id, "--json")
        if called_off.code != 0 and "is partial already" not in called_off.err:
            found.append(f"cancel ended with {called_off.code}: {called_off.err.strip()}")
        status = zuno(home, "plan", "status", stage.plan_id, "--json").document
    if status["state"] not in ("confirmed", "failed", "cancelled", "partial"):
        found.append(f"it is {status['state']} and cannot be ended")
    after = ledger(home)
    return found + _books(stage, home, status, after), after


def _mandate_problems(stage: Stage, home: Path, again: Ran) -> tuple[list[str], Ledger]:
    """However often the monitor dies and comes back, the position is left once and the journal agrees."""
    found = [] if again.code == 0 else [f"the monitor ended with {again.code}: {again.err.strip()}"]
    zuno(home, *stage.words)  # one that was called off first is decided anew
    after = ledger(home)
    if EDGE_POSITION in after.positions:
        found.append("the position is still there")
    exits = [line for line in zuno(home, "plan", "list", "--json").document["plans"] if line["choice"] == "close"]
    done = [line for line in exits if line["state"] in ("confirmed", "partial")]
    if len(done) != 1:  # one that was called off, or came too late to be mined, is followed by another
        found.append(f"{len(done)} exits were done: {[line['state'] for line in exits]}")
    if zuno(home, "journal", "verify", "--json").code != 0:
        found.append("the journal does not hold")
    return found, after


def _books(stage: Stage, home: Path, status: Any, after: Ledger) -> list[str]:
    """The journal holds, agrees with the chain, and a plan that is over stays so."""
    found = []
    verdict = zuno(home, "journal", "verify", "--json")
    if verdict.code != 0:
        found.append(f"the journal: {verdict.out.strip()}")
    for step in status["steps"]:
        if step["state"] == "final":
            receipt = ask(stage.url, "eth_getTransactionReceipt", step["txHash"])
            if receipt is None or int(receipt["status"], 16) != 1:
                found.append(f"step {step['index']} is final in the books and not on the chain")
    if status["state"] == "confirmed" and status["newPositionId"] not in after.positions:
        found.append(f"position {status['newPositionId']} of the books is not on the chain")
    once_more = zuno(home, "plan", "apply", stage.plan_id, "--yes", "--json")
    if once_more.code != 3:
        found.append(f"a plan that is over was applied again: {once_more.code}")
    return found


def stages(scratch: Path, url: str, home: Path, only: str | None) -> Iterator[Stage]:
    """A one-step and a two-step rebalance of the story's edge position, or one of them, each approved."""
    for name, candidate in (("one step", _one_step), ("two steps", _two_steps)):
        if only not in (None, name):
            continue
        _forget(home)
        mark = ask(url, "evm_snapshot")
        plan_id = candidate(home)
        before = ledger(home)
        kept = scratch / name.replace(" ", "-")
        kept.mkdir()
        stage = Stage(name, home, kept, url, plan_id, before)
        stage.approve()
        yield stage
        ask(url, "evm_revert", mark)
    if only in (None, "mandate"):
        _forget(home)
        for words in (
            ("lp", "mandate", "grant", "--position", EDGE_POSITION, "--exit-below", "3000", "--to", "token1",
             "--worth-per-day", "100000", "--gas-per-day", "1", "--chain", "devnet", "--yes"),
            ("devnet", "move", "--percent", "-5"),
            ("monitor", "once"),
            ("devnet", "move", "--percent", "-0.1"),
        ):  # fmt: skip
            if (ran := zuno(home, *words)).code != 0:
                raise AssertionError(f"{' '.join(words)}: {ran.err}")
        kept = scratch / "mandate"
        kept.mkdir()
        granted = MandateStage("mandate", home, kept, url, "", ledger(home))
        granted.approve()
        yield granted


def _two_steps(home: Path) -> str:
    plan = zuno(home, "lp", "recommend", "rebalance", EDGE_POSITION, "--chain", "devnet", "--json").document
    if plan["recommended"]["prepAction"] is None:
        raise AssertionError("the edge position's move needs no swap any more")
    plan_id: str = plan["planId"]
    return plan_id


def _one_step(home: Path) -> str:
    """A range that takes the position's tokens as they are, by an instruction of the owner's own."""
    status, plan_id = forked(lambda: _instruct_one_step(home))
    if status != 0:
        raise AssertionError("no one-step rebalance could be made")
    return str(plan_id)


def _instruct_one_step(home: Path) -> str:
    import asyncio

    from zuno.amm.model import Range
    from zuno.kernel.units import Tick
    from zuno.lp.execute.draft import read_onchain_state
    from zuno.lp.execute.plan_state import PlanProgress, append_event
    from zuno.lp.model.plan_events import Action, Instruction, PlanInstructed
    from zuno.lp.plan import positions

    async def work() -> str:
        house = open_zuno(str(home))
        try:
            hands = await house._execution_context("devnet")
            (position,) = (await hands.chain.positions([int(EDGE_POSITION)])).positions
            sight = await read_onchain_state(hands, position.pool.id, position.id)
            terms, tick = sight.terms(hands, hands.limits.bounds), position.pool.tick
            spacing = position.pool.key.tick_spacing
            for width in range(4, 200):
                lower = position.range.lower - spacing
                band = Range(Tick(lower), Tick((tick // spacing + width) * spacing))
                plan = positions.rebalance(terms, position, band)
                if plan.later is None:
                    break
            else:
                raise AssertionError("no range of one step was found")
            told = Instruction(
                action=Action.REBALANCE,
                chain="devnet",
                pool_id=position.pool.id,
                tick=tick,
                position_id=position.id,
                range=band,
            )
            plan_id = "plan_" + "1" * 12
            await append_event(
                hands.journal,
                PlanProgress(plan_id),
                PlanInstructed(plan_id=plan_id, plan_hash="1" * 64, instruction=told),
            )
            return plan_id
        finally:
            await house.close()

    return asyncio.run(work())


def main(arguments: Sequence[str] = ()) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--every", type=int, default=1, help="try every n-th point only")
    options.add_argument("--only", choices=("one step", "two steps", "mandate"))
    options.add_argument(
        "--cache", type=Path, default=CHECKOUT / ".cache" / "devnet", help="where built worlds are kept"
    )
    chosen = options.parse_args(arguments)
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="zuno-crash-") as folder:
        scratch = Path(folder)
        base = scratch / "base"
        base.mkdir()
        chosen.cache.mkdir(parents=True, exist_ok=True)
        (base / "devnet").symlink_to(chosen.cache)
        command = [sys.executable, "-m", "zuno", "devnet", "up", "--background", "--port", "0", "--json"]
        started = subprocess.run([*command, "--home", str(base)], capture_output=True, text=True, check=False)
        if started.returncode != 0:
            print(started.stderr, file=sys.stderr)
            return 1
        try:
            url = json.loads((base / "devnet.json").read_text())["url"]
            _command(base, ("wallet", "balance", "--chain", "devnet"), open_zuno)  # loads what every fork would load
            for stage in stages(scratch, url, base, chosen.only):
                _try_all(stage, chosen.every, tally)
        finally:
            zuno(base, "devnet", "down")
    print(tally.line())
    return 0 if tally.clean else 1


def _try_all(stage: Stage, every: int, tally: Tally) -> None:
    mark = ask(stage.url, "evm_snapshot")
    home = stage.fresh()
    status, points = doomed(home, stage.words, None)
    if status != 0 or points is None:
        raise AssertionError(f"{stage.name}: an undisturbed run failed")
    yardstick = ledger(home)
    ask(stage.url, "evm_revert", mark)
    print(f"{stage.name}: {len(points)} points at which a process can die", flush=True)
    for fatal in range(1, len(points) + 1, every):
        point = f"killed {points[fatal - 1]} (point {fatal})"
        survived(stage, fatal, point, yardstick, tally, late=False)
        if points[fatal - 1].startswith("after"):
            survived(stage, fatal, point, yardstick, tally, late=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
