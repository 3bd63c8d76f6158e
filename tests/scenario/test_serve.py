"""`zuno serve` whole: parts and the service itself killed with a page, a bot and a cycle open, and nothing doubled."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import pytest

from tests.wire.commands import Zuno, run_zuno, shell
from tests.wire.forked import ZunoProcess
from tests.wire.telegram_api import ALICE, TOKEN, TelegramApi, telegram_api
from zuno.adapters import part_processes
from zuno.doors.serve import PartView, ServeEventView, ServeReport
from zuno.trading.service.runs import DECIDED
from zuno.wiring import open_zuno
from zuno.wiring.application import Application
from zuno.wiring.serve import read_report

WAIT_SECONDS = 240.0
DESK = "--speed max --account past --symbols BTCUSDT --from"


def chat(api: TelegramApi) -> dict[str, str]:
    return {
        "ZUNO_TELEGRAM_BOT_TOKEN": TOKEN,
        "ZUNO_TELEGRAM_CHAT_ID": str(ALICE.id),
        "ZUNO_TELEGRAM_OWNERS": str(ALICE.id),
        "ZUNO_TELEGRAM_API_BASE_URL": api.url,
        "ZUNO_MONITOR_INTERVAL_MS": "5000",
    }


async def until(holds: Callable[[], Any], seconds: float = WAIT_SECONDS) -> Any:
    async with asyncio.timeout(seconds):
        while True:
            if found := holds():
                return found
            await asyncio.sleep(0.05)


def parts(report: ServeReport | None) -> dict[str, PartView]:
    return {} if report is None else {part.name: part for part in report.parts}


def is_gone(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def are_gone(pids: list[int]) -> bool:
    return all(map(is_gone, pids))


async def check_record(zuno: Application, *, cycles: int) -> None:
    """The chain holds, every cycle was decided once and every order was placed once."""
    assert (await zuno.audit().verify()).ok
    decided = Counter[tuple[str, int]]()
    async for entry in zuno.journal().entries(kind=DECIDED):
        decided[str(entry.payload["symbol"]), int(str(entry.payload["as_of"]))] += 1
    assert len(decided) >= cycles
    assert set(decided.values()) <= {1}
    account = zuno.account("past")
    orders = [order.id for order in (await account.orders(everything=True)).orders]
    fills = [fill.id for fill in (await account.fills(10_000)).fills]
    assert len(set(orders)) == len(orders)
    assert len(set(fills)) == len(fills)


@pytest.fixture
def market(home: Path, invented_market: Path) -> Path:
    shutil.copytree(invented_market, home / "market")
    return home


@pytest.mark.slow
async def test_each_part_that_is_killed_comes_back_and_is_pushed(market: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fork(command: list[str], **named: Any) -> ZunoProcess:
        return ZunoProcess(command[3:], **named)

    forked = SimpleNamespace(Popen=fork, PIPE=subprocess.PIPE, STDOUT=subprocess.STDOUT)
    monkeypatch.setattr(part_processes, "subprocess", forked)
    events: list[ServeEventView] = []
    stop = asyncio.Event()
    async with telegram_api() as api:
        for name, value in chat(api).items():
            monkeypatch.setenv(name, value)
        api.say(ALICE, "/version")  # a bot may not write first
        zuno = open_zuno(str(market))
        options = {"page": "--port 0", "desk": f"{DESK} 12h"}
        running = asyncio.create_task(zuno.supervisor(("mesh",), options).run(events.append, stop))

        async def kill(name: str) -> None:
            """Once it has said something; the desk is in the middle of its cycles then."""
            await until(lambda: running.done() or any(event.part == name and event.event == "line" for event in events))
            killed = parts(read_report(market))[name].pid
            assert killed is not None
            os.kill(killed, signal.SIGKILL)

            def is_back() -> bool:
                part = parts(read_report(market))[name]
                return part.restarts == 1 and part.state in ("ready", "ended") and part.pid != killed

            await until(is_back)

        try:
            for name in ("desk", "page", "telegram"):
                await kill(name)
            await until(lambda: sum("died" in message.text for message in api.sent) == 3)
            assert parts(read_report(market))["monitor"].restarts == 0
            assert zuno.find_troubles() == ()
            await until(lambda: parts(read_report(market))["desk"].state == "ended")
        finally:
            stop.set()
            await running
        await check_record(zuno, cycles=2)
        await zuno.close()
    assert {event.part for event in events if event.event == "died"} == {"desk", "page", "telegram"}
    assert [event.part for event in events if event.event == "ending"] == ["telegram", "page", "monitor"]


@contextmanager
def serving(home: Path, *words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "zuno", "serve", "--json", *words],
        env=shell(home, environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def read_until(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    assert process.stdout is not None
    for line in process.stdout:
        if (found := json.loads(line))["event"] == event:
            return dict(found)
    raise AssertionError(f"it ended before {event}")


def fetch_figures(port: int) -> str:
    """Empty while nobody serves them, or the monitor has not looked yet."""
    with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        figures: str = answer.read().decode()
        return figures if "zuno_monitor_age_seconds " in figures else ""
    return ""


@pytest.mark.slow
async def test_a_service_that_is_killed_leaves_nothing_and_the_next_one_starts_cleanly(
    home: Path, tmp_path: Path, zuno: Zuno, unused_tcp_port: int
) -> None:
    words = [part for name in ("desk", "page", "telegram", "mesh") for part in ("--without", name)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        told = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "20000000"}
        with serving(home, *words, **told) as first:
            read_until(first, "serving")
            seen = b""
            while b"WATCHDOG=1" not in seen or b"READY=1" not in seen:
                seen += manager.recv(1_000)
            monitor = parts(read_report(home))["monitor"].pid
            assert monitor is not None
            status = zuno("status", "--json").document
            assert (status["ready"], status["pid"]) == (True, first.pid)
            again = zuno("serve", "--json")
            assert (again.code, f"process {first.pid}" in again.err) == (3, True)
            first.kill()
            first.wait(60)
            await until(lambda: is_gone(monitor))
        assert zuno("status", "--json").document["pid"] is None
        with serving(home, *words, **told, ZUNO_METRICS_PORT=str(unused_tcp_port)) as second:
            assert "killed" in read_until(second, "note")["text"]
            read_until(second, "serving")
            figures = await until(lambda: fetch_figures(unused_tcp_port))
            assert "zuno_monitor_age_seconds " in figures
            manager.setblocking(False)
            with suppress(BlockingIOError):  # a queue that is full takes nothing more
                while manager.recv(1_000):
                    pass
            second.send_signal(signal.SIGTERM)
            assert second.wait(60) == 0
            while b"STOPPING=1" not in seen:
                seen = manager.recv(1_000)
    assert zuno("journal", "verify").code == 0


@pytest.mark.soak
async def test_fifty_kills_double_nothing(market: Path) -> None:
    """Each part in turn, and every sixth time the service itself."""
    victims = ("desk", "page", "telegram", "monitor", "mesh", "service")
    assert run_zuno(market, "mesh", "init").code == 0
    words = ("--page", "--port 0", "--desk", f"{DESK} 360d")
    async with telegram_api() as api:
        deaths = 0
        killed = 0
        process: subprocess.Popen[bytes] | None = None

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [sys.executable, "-m", "zuno", "serve", *words],
                env=shell(market, chat(api)),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

        def is_up(pid: int) -> bool:
            report = read_report(market)
            states = [part.state for part in parts(report).values()]
            return report is not None and report.pid == pid and report.started and set(states) <= {"ready", "ended"}

        async def wait_until_up(pid: int) -> None:
            try:
                await until(partial(is_up, pid), 600)
            except TimeoutError:
                raise AssertionError(read_report(market)) from None

        def is_replaced(name: str, pid: int) -> bool:
            return parts(read_report(market))[name].pid not in (None, pid)

        api.say(ALICE, "/version")
        try:
            process = start()
            while killed < 50:
                await wait_until_up(process.pid)
                api.say(ALICE, "/version")
                await api.until(lambda: any("zuno " in message.text for message in api.sent))
                victim = victims[killed % len(victims)]
                killed += 1
                if victim == "service":
                    children = [part.pid for part in parts(read_report(market)).values() if part.pid]
                    process.kill()
                    process.wait(60)
                    await until(partial(are_gone, children))
                    process = start()
                    continue
                part = parts(read_report(market))[victim]
                if part.pid is None:  # the desk has come to the recording's end
                    continue
                os.kill(part.pid, signal.SIGKILL)
                deaths += 1
                await until(partial(is_replaced, victim, part.pid))
                await asyncio.sleep(2)
            await wait_until_up(process.pid)
            process.terminate()
            assert process.wait(120) == 0
        finally:
            if process is not None:
                process.kill()
                process.wait(60)
        assert any("died" in message.text for message in api.sent)
        assert any("was killed" in message.text for message in api.sent)
        titles = Counter(message.text.splitlines()[0] for message in api.sent if "died" in message.text)
        assert sum(titles.values()) <= deaths
    zuno = open_zuno(str(market))
    await check_record(zuno, cycles=10)
    await zuno.close()
