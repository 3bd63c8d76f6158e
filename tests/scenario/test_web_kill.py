"""The page's kill switch while somebody does what they can to keep it waiting: looks that block, floods of connections
without a login, a helper that is killed."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.wire.account_home import write_account_home
from tests.wire.commands import shell
from tests.wire.web_login import API, ServedPage, create_login, serve_page
from zuno.adapters.kill_lock import KillLockFile
from zuno.doors.web import connections
from zuno.settings import Settings
from zuno.wiring.application import Application

SECONDS = 60.0
"""That something may take on a busy machine before it counts as hanging."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    home = tmp_path_factory.mktemp("home")
    asyncio.run(write_account_home(home))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "MOST_STRANGERS", 40)
        with serve_page(Application(Settings(home=home, recording="own"))) as served:
            yield served


def wait_until(done: object) -> None:
    assert callable(done)
    until = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < until
        time.sleep(0.02)


def list_locks(page: ServedPage) -> set[str]:
    with page.client() as client:
        return {lock["protection"] for lock in client.get(f"{API}/trading/protections").json()["protections"]}


def read_reasons(page: ServedPage) -> set[str]:
    """Of the locks; the account's own log has the lock of a kill whose second step was begun."""
    with page.client() as client:
        return {lock["reason"] for lock in client.get(f"{API}/trading/protections").json()["protections"]}


def list_purposes(page: ServedPage) -> set[str]:
    with page.client() as client:
        orders = client.get(f"{API}/trading/orders", params={"everything": True}).json()["items"]
    return {order["purpose"] for order in orders}


def unlock(page: ServedPage) -> None:
    with page.client() as client:
        assert client.post(f"{API}/trading/unlock", json={"protection": "kill_switch"}).status_code == 200
    assert page.zuno.kill_lock.why_locked() is None
    assert "kill_switch" not in list_locks(page)


def test_a_kill_waits_for_no_look_and_closes_everything(page: ServedPage) -> None:
    """The services' loop stands still for as long as it takes; the kill is answered before it goes on."""
    held, blocked = threading.Event(), threading.Event()

    def block() -> None:
        blocked.set()
        held.wait(SECONDS)

    page.loop.call_soon_threadsafe(block)
    assert blocked.wait(SECONDS)
    try:
        with page.client() as client:
            told = client.post(f"{API}/trading/kill", json={"word": "kill"})
            paused = client.post(f"{API}/trading/pause", json={})
        assert not held.is_set()
    finally:
        held.set()
    assert (told.status_code, told.json()["orders"]) == (200, [])
    assert {lock["protection"] for lock in told.json()["protections"]} >= {"kill_switch"}
    assert paused.status_code == 200
    assert page.zuno.kill_lock.why_locked("paper")
    assert list_locks(page) >= {"kill_switch", "paused"}
    assert "exit" in list_purposes(page)
    unlock(page)


def test_the_lock_stands_before_the_second_step_is_asked_for(page: ServedPage) -> None:
    """A helper that does not answer keeps no account unlocked."""
    helper = page.door.on.helper
    os.kill(helper.process.pid, signal.SIGSTOP)
    try:
        with page.client() as client, pytest.raises(httpx2.TimeoutException):
            client.post(f"{API}/trading/kill", json={"word": "kill"}, timeout=1)
        wait_until(lambda: page.zuno.kill_lock.why_locked("paper"))
    finally:
        os.kill(helper.process.pid, signal.SIGCONT)
    wait_until(lambda: not helper._questions)
    unlock(page)


def test_a_helper_that_is_killed_is_started_again_and_asked_again(page: ServedPage) -> None:
    helper = page.door.on.helper
    before = helper.process.pid
    os.kill(before, signal.SIGSTOP)
    answers: list[int] = []

    def kill() -> None:
        with page.client() as client:
            answers.append(client.post(f"{API}/trading/kill", json={"word": "kill"}).status_code)

    asking = threading.Thread(target=kill)
    asking.start()
    wait_until(lambda: helper._questions)
    os.kill(before, signal.SIGKILL)
    asking.join(SECONDS)
    assert (answers, helper.process.pid != before) == ([200], True)
    unlock(page)


def test_what_another_process_locked_is_closed_by_the_page(page: ServedPage) -> None:
    """As by a terminal that died after the first step, or by hand."""
    page.zuno.kill_lock.path.write_text("paper\n")
    wait_until(lambda: "kill switch" in read_reasons(page))
    assert page.zuno.kill_lock.why_locked("paper")
    unlock(page)


def test_the_oldest_stranger_makes_room_and_whoever_logged_in_stays(page: ServedPage) -> None:
    with ExitStack() as stack, page.client() as client:
        assert client.get(f"{API}/session").status_code == 200  # and the connection is kept
        opened = []
        for _ in range(60):
            stranger = stack.enter_context(socket.create_connection((page.host, page.port)))
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: ")
            stranger.settimeout(SECONDS)
            opened.append(stranger)
        for dropped in opened[:20]:
            assert is_closed(dropped)
        assert client.get(f"{API}/session").status_code == 200
        opened[-1].sendall(f"{page.host}\r\n\r\n".encode())
        assert opened[-1].recv(12) == b"HTTP/1.1 200"


def test_a_request_that_does_not_arrive_is_cut_off(page: ServedPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    for sent in (b"", b"GET / HT", b"POST /api/v1/trading/kill HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"):
        with socket.create_connection((page.host, page.port)) as half:
            half.settimeout(SECONDS)
            half.sendall(sent)
            while half.recv(4096):  # an answer may come first; then it is closed
                pass


def test_a_look_of_a_client_that_is_gone_is_cancelled(page: ServedPage, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    class Desk:
        async def status(self) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

    monkeypatch.setattr(page.zuno, "account", lambda name=None: Desk())
    head = f"GET {API}/trading/account HTTP/1.1\r\nHost: {page.host}\r\n"
    login = "".join(f"{name}: {value}\r\n" for name, value in page.headers.items())
    with socket.create_connection((page.host, page.port)) as looking:
        looking.sendall(f"{head}{login}\r\n".encode())
        assert begun.wait(SECONDS)
        assert not cancelled.is_set()
    assert cancelled.wait(SECONDS)


def test_half_sent_requests_take_neither_the_page_nor_its_kill_switch(tmp_path: Path) -> None:
    """1,200 of them against a server that may open 1,024 files."""
    asyncio.run(write_account_home(tmp_path))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    command = [sys.executable, "-m", "zuno", "web", "--port", "0"]
    environment = shell(tmp_path, {"ZUNO_RECORDING": "own"})
    with (
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit
        ) as server,
        ExitStack() as stack,
    ):
        try:
            assert server.stdout is not None
            link = next(word for line in server.stdout for word in line.split() if "#login=" in word)
            parts = urlsplit(link)
            assert parts.hostname is not None
            for _ in range(1_200):
                half = stack.enter_context(socket.create_connection((parts.hostname, parts.port or 0), SECONDS))
                half.sendall(b"POST /api/v1/trading/kill HTTP/1.1\r\nHost: ")
            base = f"{parts.scheme}://{parts.netloc}"
            with httpx2.Client(base_url=base, headers=create_login(tmp_path), timeout=SECONDS) as client:
                assert client.get(f"{API}/trading/account").status_code == 200
                told = client.post(f"{API}/trading/kill", json={"word": "kill"})
            assert told.status_code == 200
            assert KillLockFile(tmp_path).why_locked("paper")
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=SECONDS)
            resource.setrlimit(resource.RLIMIT_NOFILE, before)


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
