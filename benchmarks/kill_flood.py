"""How long a kill takes while the page is flooded: `python -m benchmarks.kill_flood`.

A server with 1,024 descriptors, a flood in a process of its own, and by turns a kill from the page and one from the
terminal, each of an account that holds a position. Locked: from the request, or the start of the process, to the time
in `kill.lock`. Sent: from there to the exit at the paper venue, by the journal. Prints one JSON line per figure and a
table to stderr, and ends with 1 when a bar is missed.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from benchmarks.figure import report
from tests.wire.account_home import END, write_account_home
from tests.wire.trading_account import write_story
from tests.wire.web_login import API, create_login
from zuno.settings import Settings
from zuno.trading.model.trade_events import paper_account
from zuno.wiring import Application

KILLS: Final = int(os.environ.get("KILLS", "20"))
DESCRIPTORS: Final = 1024
BARS: Final = {"page": 1.0, "terminal": 1.5}
SENT_BAR: Final = 3.0
FLOODS: Final = {"looks": "60 looks at once", "strangers": "150 without a login", "halves": "1,000 half-sent"}
FLOOD = """
import asyncio, json, sys
kind, host, port, headers = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
count = {"looks": 60, "strangers": 150, "halves": 1000}[kind]
login = "".join(f"{name}: {value}\\r\\n" for name, value in headers.items()) if kind == "looks" else ""
whole = f"GET /api/v1/trading/account HTTP/1.1\\r\\nHost: {host}\\r\\n{login}\\r\\n".encode()

async def ask(reader, writer):
    writer.write(whole)
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))

async def flood():
    while True:
        try:
            reader, writer = await asyncio.open_connection(host, port)
            if kind == "halves":
                writer.write(whole[:40])
                await reader.read()
            while kind != "halves":
                await ask(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.05)

async def main():
    async with asyncio.TaskGroup() as running:
        for _ in range(count):
            running.create_task(flood())
        await asyncio.sleep(3)
        print("flooding", flush=True)

asyncio.run(main())
"""


def name_account(flood: str, door: str, number: int) -> str:
    return f"{flood}-{door}-{number}"


async def write_home(home: Path) -> None:
    """An account for every kill, each with a position open."""
    await write_account_home(home)
    zuno = Application(Settings(home=home, recording="own"))
    for flood in FLOODS:
        for door in BARS:
            for number in range(KILLS):
                await write_story(zuno._trade_log(), paper_account("recorded", name_account(flood, door, number)), END)
    await zuno.close()


@contextmanager
def run_process(*command: str, environment: dict[str, str] | None = None, most: int | None = None) -> Iterator[str]:
    """A process and the line that says it is ready; `most`: descriptors it may open."""

    def limit() -> None:
        if most is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, preexec_fn=limit) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline()
        finally:
            process.send_signal(signal.SIGTERM)


def kill_from_page(url: str, headers: dict[str, str], account: str) -> None:
    body = json.dumps({"word": "kill", "account": account}).encode()
    asked = Request(f"{url}{API}/trading/kill", body, {**headers, "Content-Type": "application/json"})
    with urlopen(asked, timeout=120) as answer:
        assert answer.status == 200


def kill_from_terminal(environment: dict[str, str], account: str) -> None:
    command = [sys.executable, "-m", "zuno", "trade", "kill", "--yes", "--json", "--account", account]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


def read_lock(home: Path, account: str) -> float:
    from datetime import datetime

    lines = (line.split() for line in (home / "kill.lock").read_text().splitlines())
    return next(datetime.fromisoformat(at).timestamp() for name, at, _ in lines if name == account)


async def read_exits(home: Path) -> dict[str, float]:
    """When the first word of each account's exit came to its paper venue."""
    zuno = Application(Settings(home=home, recording="own"))
    found: dict[str, float] = {}
    async for entry in (await zuno._open_journal()).entries(kind="trade_events"):
        place, _, account = str(entry.payload["account"]).partition(":paper:recorded:")
        if place.startswith("venue:"):
            found.setdefault(account, entry.at / 1000)
    await zuno.close()
    return found


def find_p95(seconds: list[float]) -> float:
    return sorted(seconds)[max(0, -(-len(seconds) * 95 // 100) - 1)]


def run() -> int:
    locked: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        asyncio.run(write_home(home))
        environment = {**os.environ, "ZUNO_HOME": str(home), "ZUNO_RECORDING": "own"}
        server = (sys.executable, "-m", "zuno", "web", "--port", "0")
        with run_process(*server, environment=environment, most=DESCRIPTORS) as line:
            link = next(word for word in line.split() if "#login=" in word)
            parts, headers = urlsplit(link), create_login(home)
            url = f"{parts.scheme}://{parts.netloc}"
            time.sleep(15)  # the helper has the home open
            for flood in FLOODS:
                command = (
                    sys.executable,
                    "-c",
                    FLOOD,
                    flood,
                    str(parts.hostname),
                    str(parts.port),
                    json.dumps(headers),
                )
                with run_process(*command):
                    for number in range(KILLS):
                        for door in BARS:
                            account, begun = name_account(flood, door, number), time.time()
                            if door == "page":
                                kill_from_page(url, headers, account)
                            else:
                                kill_from_terminal(environment, account)
                            times = locked.setdefault((flood, door), {})
                            times[account] = (begun, read_lock(home, account))
        exits = asyncio.run(read_exits(home))
    passed = []
    sys.stderr.write(f"{'flood':<22}{'door':<10}{'locked p50':>12}{'p95':>8}{'sent p50':>12}{'p95':>8}\n")
    for (flood, door), times in locked.items():
        lock = [at - begun for begun, at in times.values()]
        sent = [exits[account] - at for account, (_, at) in times.items()]
        middle = [sorted(figures)[len(figures) // 2] for figures in (lock, sent)]
        row = f"{middle[0]:>11.2f}s{find_p95(lock):>7.2f}s{middle[1]:>11.2f}s{find_p95(sent):>7.2f}s"
        sys.stderr.write(f"{FLOODS[flood]:<22}{door:<10}{row}\n")
        unit, said = f"s, p95 of {KILLS}", f"{door}, {FLOODS[flood]}"
        passed.append(report(f"locked from the {said}", find_p95(lock), unit, BARS[door], "the bar in seconds", 1.0))
        passed.append(report(f"exit sent, {said}", find_p95(sent), unit, SENT_BAR, "the bar in seconds", 1.0))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(run())
