"""The devnet as a process: started once per home, found again by the file it leaves, stopped only if it is ours.

The running node holds a lock on `devnet.lock` for as long as it lives. That lock, not a pid in a file, says whether
a node runs: a pid can be somebody else's by now.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2

from zuno.adapters.chain.devnet import artifacts
from zuno.adapters.chain.devnet.refusals import INTERNAL_ERROR
from zuno.adapters.foreign_json import shallow
from zuno.domain.errors import Broken, Malformed, Refused, Unavailable
from zuno.domain.pool import Block
from zuno.domain.units import HexId, Seconds
from zuno.ports.world import NodeStatus

START_SECONDS: Final = 600.0
STOP_SECONDS: Final = 10.0
_DEEPEST: Final = 32
_NOT_RUNNING: Final = "No devnet is running; `zuno devnet up --background` starts one."


class DevnetProcess:
    """One node per home."""

    def __init__(self, home: Path, node_modules: Path, seed: int) -> None:
        self._home = home
        self._node_modules = node_modules
        self._seed = seed
        self._lock = home / "devnet.lock"
        self._log = home / "devnet.log"
        self.file = home / "devnet.json"

    async def up(self, port: int, background: bool) -> NodeStatus:
        found = artifacts.locate(self._node_modules)
        _need_evm()
        if self._held():
            return await self._found(port)
        if background:
            return await self._spawn(port)
        return self._serve_here(found, port)

    async def status(self) -> NodeStatus:
        if not self._held():
            return NodeStatus(False, None, None, None, _NOT_RUNNING)
        record = self._record()
        if record is None:
            return NodeStatus(False, None, None, None, "The devnet is starting; its first start builds the world.")
        block = await ask_head(str(record["url"]))
        return NodeStatus(True, str(record["url"]), int(record["pid"]), block)

    async def down(self) -> NodeStatus:
        if not self._held():
            self.file.unlink(missing_ok=True)
            return NodeStatus(False, None, None, None, _NOT_RUNNING)
        pid = self._holder()
        if pid is None:
            raise Unavailable("A devnet is starting just now; try again in a moment.")
        os.kill(pid, signal.SIGTERM)
        if not await self._released(STOP_SECONDS):
            os.kill(pid, signal.SIGKILL)
            await self._released(STOP_SECONDS)
        self.file.unlink(missing_ok=True)
        return NodeStatus(False, None, pid, None, f"The devnet (pid {pid}) is stopped.")

    def url(self) -> str:
        """Where the running node answers, or `Unavailable` with the command that starts one."""
        record = self._record() if self._held() else None
        if record is None:
            raise Unavailable(_NOT_RUNNING)
        return str(record["url"])

    def _serve_here(self, found: artifacts.Artifacts, port: int) -> NodeStatus:
        """Serve in this process until a signal; the heavy half is imported only now."""
        from zuno.adapters.chain.devnet.serving import serve_world

        # asyncio would only note an interrupt and wait for a task that never pauses; here it must stop the building.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with self._alone():
            serve_world(found, self._home / "devnet", self._seed, port, self._write)
            self.file.unlink(missing_ok=True)
        return NodeStatus(False, None, os.getpid(), None, "The devnet is stopped.")

    async def _spawn(self, port: int) -> NodeStatus:
        child = self._child(port)
        try:
            return await self._ready(child, port)
        except BaseException:
            if child.poll() is None:
                child.terminate()
            raise

    async def _found(self, port: int) -> NodeStatus:
        """Somebody started it before us: wait until it answers, as if we had."""
        give_up = time.monotonic() + START_SECONDS
        while self._held() and time.monotonic() < give_up:
            if self._record() is not None:
                status = await self.status()
                elsewhere = f", not at port {port}" if port and not str(status.url).endswith(f":{port}") else ""
                note = f"It was running already{elsewhere}."
                return NodeStatus(status.running, status.url, status.pid, status.block, note)
            await asyncio.sleep(0.1)
        raise Unavailable(f"A devnet of this home was starting and did not come up; its log is {self._log}.")

    def _child(self, port: int) -> subprocess.Popen[bytes]:
        """The same command in the foreground of a process of its own, its words in the log."""
        command = [sys.executable, "-m", "zuno", "devnet", "up", "--port", str(port), "--home", str(self._home)]
        with open(self._log, "wb") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    async def _ready(self, child: subprocess.Popen[bytes], port: int) -> NodeStatus:
        give_up, told = time.monotonic() + START_SECONDS, 0
        while time.monotonic() < give_up:
            told = self._pass_on(told)
            if child.poll() is not None:
                if self._held():
                    return await self._found(port)  # somebody else was a moment quicker
                raise Unavailable(f"The devnet did not start: {self._last_words()}")
            record = self._record()
            if record is not None and record["pid"] == child.pid:
                return await self.status()
            await asyncio.sleep(0.05)
        raise Unavailable(f"The devnet did not answer within {START_SECONDS:.0f} s; its log is {self._log}.")

    def _pass_on(self, told: int) -> int:
        """Show the child's progress as it comes; returns how much of its log was shown."""
        words = self._log.read_bytes()
        for line in words[told:].splitlines(keepends=True):
            if line.startswith((b"Building", b"  ")):
                sys.stderr.write(line.decode(errors="replace"))
        return len(words)

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1].removeprefix("zuno: ") if lines else f"its log {self._log} is empty."

    def _write(self, record: Mapping[str, Any]) -> None:
        """The file others read: addresses, and a test key that protects nothing."""
        partial = self.file.with_suffix(".json.partial")
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
        os.replace(partial, self.file)

    def _record(self) -> dict[str, Any] | None:
        try:
            record: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
            return record if {"url", "pid"} <= record.keys() else None
        except (OSError, ValueError, AttributeError):
            return None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with open(self._lock, "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Refused("A devnet of this home is starting already; `zuno devnet status` shows it.") from None
            self.file.unlink(missing_ok=True)
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def _held(self) -> bool:
        """Whether a live process holds the lock."""
        try:
            with open(self._lock, encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True

    def _holder(self) -> int | None:
        text = self._lock.read_text(encoding="utf-8").strip()
        return int(text) if text.isdigit() else None

    async def _released(self, seconds: float) -> bool:
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            if not self._held():
                return True
            await asyncio.sleep(0.05)
        return False


async def ask(url: str, method: str, *params: object) -> Any:
    """One JSON-RPC question to our own node."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    try:
        async with httpx2.AsyncClient(timeout=60.0, trust_env=False) as client:
            reply = json.loads(shallow((await client.post(url, json=body)).content, _DEEPEST))
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


async def ask_head(url: str) -> Block:
    head = await ask(url, "eth_getBlockByNumber", "latest", False)
    return Block(int(head["number"], 16), HexId(head["hash"]), Seconds(int(head["timestamp"], 16)))


def _need_evm() -> None:
    from importlib.util import find_spec

    if find_spec("eth") is None:
        raise Unavailable("The devnet's EVM (py-evm) is not installed; run `make devnet`.")
