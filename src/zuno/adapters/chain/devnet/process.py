"""The devnet as a process, one per home. The running node holds `devnet.lock`; that lock, not a pid in a file, says
whether a node runs."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx2

from zuno.adapters.atomic_file import replace_file
from zuno.adapters.chain.world import GENESIS_TIME, START_PRICE, write_script
from zuno.adapters.file_lock import FileLock
from zuno.adapters.part_processes import LoggedChild, end_process, start_logged
from zuno.amm.model import Block
from zuno.kernel.errors import Broken, Malformed, Refused, Unavailable
from zuno.kernel.foreign_json import check_nesting
from zuno.kernel.units import HexId, Seconds
from zuno.lp.ports.world import NodeStatus, PoolMove, PriceMove
from zuno_devnet.artifacts import Artifacts, find_artifacts
from zuno_devnet.rpc_errors import INTERNAL_ERROR

START_SECONDS: Final = 600.0
STOP_SECONDS: Final = 10.0
STALE_SECONDS: Final = 60
_DEEPEST: Final = 32
_NOT_RUNNING: Final = "No devnet is running; `zuno devnet up --background` starts one."


@dataclass(eq=False)
class DevnetProcess:
    """One node per home. `program`: what it runs; `grace`: how long it may take to end; `tell`: its progress."""

    home: Path
    node_modules: Path
    seed: int
    _: KW_ONLY
    program: Sequence[str] = (sys.executable, "-m", "zuno")
    grace: float = STOP_SECONDS
    tell: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        self._lock = FileLock(
            self.home / "devnet.lock", "A devnet of this home is starting already; `zuno devnet status` shows it."
        )
        self._log = self.home / "devnet.log"
        self.file = self.home / "devnet.json"

    async def up(self, port: int, background: bool) -> NodeStatus:
        contracts = find_artifacts(self.node_modules)
        if self._lock.is_held():
            return await self._wait_for_running(port)
        if background:
            return await self._spawn(port)
        return self._serve_here(contracts, port)

    async def status(self) -> NodeStatus:
        if not self._lock.is_held():
            return NodeStatus(False, None, None, None, _NOT_RUNNING)
        record = self._record()
        if record is None:
            return NodeStatus(False, None, None, None, "The devnet is starting; its first start builds the world.")
        head = await ask(str(record["url"]), "eth_getBlockByNumber", "latest", False)
        block = Block(int(head["number"], 16), HexId(head["hash"]), Seconds(int(head["timestamp"], 16)))
        return NodeStatus(True, str(record["url"]), int(record["pid"]), block)

    async def down(self) -> NodeStatus:
        if not self._lock.is_held():
            self.file.unlink(missing_ok=True)
            return NodeStatus(False, None, None, None, _NOT_RUNNING)
        holder = self._lock.process()
        if holder is None:
            raise Unavailable("A devnet is starting just now; try again in a moment.")
        ours = self._record() is not None
        if not await end_process(holder, patience=self.grace):
            raise Unavailable(f"The devnet (pid {holder.pid}) does not end.")
        if ours:
            self.file.unlink(missing_ok=True)
        return NodeStatus(False, None, holder.pid, None, f"The devnet (pid {holder.pid}) is stopped.")

    def url(self) -> str:
        """Where the running node answers, or `Unavailable` with the command that starts one."""
        record = self._record()
        if record is None:
            raise Unavailable(_NOT_RUNNING)
        return str(record["url"])

    def _serve_here(self, contracts: Artifacts, port: int) -> NodeStatus:
        """Serve in this process until a signal; py-evm is imported here."""
        from zuno.adapters.chain.devnet.serve_world import serve_world

        # asyncio would only note an interrupt and wait for a task that never pauses; here it must stop the building.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise asyncio.CancelledError  # it was asked to while this was imported
        with self._lock:
            self.file.unlink(missing_ok=True)
            # The file that others read: addresses, and a test key that protects nothing.
            write = partial(replace_file, self.file, durable=False)
            serve_world(contracts, self.home / "devnet", self.seed, port, write, self.tell)
            self.file.unlink(missing_ok=True)
        return NodeStatus(False, None, os.getpid(), None, "The devnet is stopped.")

    async def _spawn(self, port: int) -> NodeStatus:
        """The same command in the foreground of a process of its own, its output in the log."""
        self._log.write_bytes(b"")
        command = [*self.program, "devnet", "up", "--port", str(port), "--home", str(self.home)]
        child = start_logged(command, self._log)
        try:
            return await self._ready(child, port)
        except BaseException:
            child.signal()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.grace):
                    await child.wait()
            child.signal(hard=True)
            raise

    async def _wait_for_running(self, port: int) -> NodeStatus:
        give_up = time.monotonic() + START_SECONDS
        while self._lock.is_held() and time.monotonic() < give_up:
            if self._record() is not None:
                status = await self.status()
                elsewhere = f", not at port {port}" if port and not str(status.url).endswith(f":{port}") else ""
                note = f"It was running already{elsewhere}."
                return NodeStatus(status.running, status.url, status.pid, status.block, note)
            await asyncio.sleep(0.1)
        raise Unavailable(f"A devnet of this home was starting and did not come up; its log is {self._log}.")

    async def _ready(self, child: LoggedChild, port: int) -> NodeStatus:
        give_up, shown = time.monotonic() + START_SECONDS, 0
        while time.monotonic() < give_up:
            shown = self._pass_on(shown)
            if child.ended:
                if self._lock.is_held():
                    return await self._wait_for_running(port)  # somebody else was a moment quicker
                raise Unavailable(f"The devnet did not start: {child.last_words()}")
            record = self._record()
            if record is not None and record["pid"] == child.pid:
                return await self.status()
            await asyncio.sleep(0.05)
        raise Unavailable(f"The devnet did not answer within {START_SECONDS:.0f} s; its log is {self._log}.")

    def _pass_on(self, shown: int) -> int:
        """Show the child's progress as it comes; returns how much of its log was shown."""
        words = self._log.read_bytes()
        whole = words[: words.rfind(b"\n") + 1]
        for line in whole[shown:].splitlines():
            if line.startswith((b"Building", b"  ")):
                self.tell(line.decode(errors="replace"))
        return len(whole)

    def _record(self) -> dict[str, Any] | None:
        """What the running node has written; None for a file that a dead one left."""
        holder = self._lock.process()
        try:
            record: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
            return record if holder and "url" in record and record["pid"] == holder.pid else None
        except (OSError, ValueError, KeyError, TypeError):
            return None


async def ask(url: str, method: str, *params: object) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    try:
        async with httpx2.AsyncClient(timeout=60.0, trust_env=False) as client:
            reply = json.loads(check_nesting((await client.post(url, json=body)).content, _DEEPEST))
    except httpx2.HTTPError as error:
        raise Unavailable(f"The devnet at {url} does not answer; `zuno devnet down` ends it.") from error
    except ValueError as error:
        raise Malformed(f"The devnet at {url} answered nonsense; `zuno devnet down` ends it.") from error
    match reply:
        case {"error": {"code": code, "message": message}}:
            raise (Broken if code == INTERNAL_ERROR else Refused)(str(message))
        case {"result": result}:
            return result
    raise Malformed(f"The devnet at {url} answered nonsense; `zuno devnet down` ends it.")


@dataclass(eq=False)
class DevnetWorld:
    """The running devnet behind the `World` port: asks the node to push its own price."""

    process: DevnetProcess

    async def move(self, percent: Decimal) -> PriceMove:
        moved = await ask(self.process.url(), "zuno_move", str(percent))
        block = moved["block"]
        return PriceMove(
            Block(block["number"], HexId(block["hash"]), Seconds(block["timestamp"])),
            _usdc(moved["referenceBefore"]),
            _usdc(moved["referenceAfter"]),
            tuple(
                PoolMove(HexId(pool["id"]), pool["label"], _usdc(pool["before"]), _usdc(pool["after"]))
                for pool in moved["pools"]
            ),
        )

    async def wake(self) -> None:
        """Mine a block if the head is old, because deadlines are counted from the head."""
        url = self.process.url()
        latest, pending = [await ask(url, "eth_getBlockByNumber", tag, False) for tag in ("latest", "pending")]
        if int(pending["timestamp"], 16) - int(latest["timestamp"], 16) > STALE_SECONDS:
            await ask(url, "evm_mine")

    async def reference(self) -> Fraction:
        return _usdc(await ask(self.process.url(), "zuno_reference"))

    async def reference_path(self) -> tuple[tuple[Seconds, Fraction], ...]:
        """The seeded prices and every move since, in USDC for one ETH, oldest first."""
        moves = await ask(self.process.url(), "zuno_moves")
        script = [(hour.timestamp, Fraction(hour.reference, 10**6)) for hour in write_script(self.process.seed).hours]
        first = (GENESIS_TIME, Fraction(START_PRICE, 10**6))
        return (first, *script, *((Seconds(at), _usdc(reference)) for at, reference in moves))


def _usdc(micro: str) -> Fraction:
    return Fraction(int(micro), 10**6)
