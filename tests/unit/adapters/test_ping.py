"""The dead man's switch: asked after each round, never in the way, its URL in no log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from zuno.adapters.http import DeadManPing
from zuno.kernel.errors import UsageError


class PingServer(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.status = 200
        self.hangs = Event()
        self.hangs.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, PingServer)
        self.server.asked.append(self.path)
        self.server.hangs.wait(5)
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def server() -> Iterator[PingServer]:
    server = PingServer()
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.hangs.set()
    server.shutdown()
    server.server_close()


def test_what_is_no_url_is_an_error_that_does_not_repeat_it() -> None:
    with pytest.raises(UsageError) as refused:
        DeadManPing("https://[::1/secret-key/{part}", "monitor")
    assert "secret-key" not in str(refused.value)


async def test_a_round_that_ended_well_and_one_that_failed(server: PingServer) -> None:
    ping = DeadManPing(f"{server.url}/KEY/zuno-{{part}}?create=1", "monitor")
    await ping(True)
    await ping(False)
    assert server.asked == ["/KEY/zuno-monitor?create=1", "/KEY/zuno-monitor/fail?create=1"]


@pytest.mark.parametrize("status", [302, 404, 429, 503])
async def test_a_server_that_refuses_is_logged_once_and_without_its_url(
    server: PingServer, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level(logging.DEBUG)
    server.status = status
    ping = DeadManPing(f"{server.url}/s3cr3t-key", "trade")
    await ping(True)
    await ping(True)
    assert len(server.asked) == 2, "each ping is tried once"
    server.status = 200
    await ping(True)
    server.status = status
    await ping(True)
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 2, "once until one gets through"
    assert "s3cr3t-key" not in caplog.text


async def test_nobody_there_or_nobody_who_answers(server: PingServer, caplog: pytest.LogCaptureFixture) -> None:
    server.hangs.clear()
    await DeadManPing(server.url, "trade", timeout=0.2)(True)
    await DeadManPing("http://127.0.0.1:9/x", "trade")(True)
    assert len(caplog.records) == 2
