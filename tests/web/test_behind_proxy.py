"""The page behind a proxy as a person opens it: under a base path, with a second factor for what raises risk."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE
from threading import Thread

import pytest
from playwright.sync_api import Browser, expect

from tests.wire.browser import SLOWLY, wait_until_drawn
from tests.wire.commands import shell
from tests.wire.forked import ZunoProcess
from zuno.doors.web_logins import STEP_MS, write_code
from zuno.wiring.web import build_logins

CLIENT = "203.0.113.7"


class Forwarder(BaseHTTPRequestHandler):
    """A reverse proxy that says who the client is, after whatever the client said of itself."""

    protocol_version = "HTTP/1.1"
    behind = 0

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        headers["X-Forwarded-For"] = ", ".join(filter(None, [self.headers.get("X-Forwarded-For"), CLIENT]))
        headers |= {"X-Forwarded-Proto": "http", "X-Forwarded-Host": self.headers["Host"]}
        self.close_connection = True
        with closing(HTTPConnection("127.0.0.1", self.behind, timeout=120)) as connection, suppress(OSError):
            connection.request(self.command, self.path, body, headers)
            with connection.getresponse() as answer:
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                        self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                while part := answer.read1(65_536):
                    self.wfile.write(part)
                    self.wfile.flush()

    do_GET = do_POST = do_DELETE = forward

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def run_proxy() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Forwarder,), {}))
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.soak
@pytest.mark.slow
def test_a_person_logs_in_behind_a_base_path_and_acts_with_a_code(
    invented_market: Path, browser: Browser, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "market").symlink_to(invented_market)
    secret = build_logins(home).factors.add("totp", "phone").secret
    with run_proxy() as proxy:
        public = f"http://127.0.0.1:{proxy.server_port}/desk"
        environment = shell(home, {"ZUNO_WEB_PUBLIC_URL": public})
        process = ZunoProcess(["web", "--port", "0", "--json"], env=environment, stdout=PIPE, stderr=PIPE, text=True)
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            link = next(word for line in lines for word in line.split('"') if word.startswith(f"{public}/#login="))
            proxy.RequestHandlerClass.behind = find_port(process.pid)  # type: ignore[attr-defined]
            context = browser.new_context()
            page, asked = context.new_page(), list[str]()
            context.on("request", lambda request: asked.append(request.url))
            page.goto(link)
            wait_until_drawn(page)
            expect(page.locator("#wire")).to_have_text("connected", timeout=SLOWLY)
            assert [url for url in asked if not url.startswith(f"{public}/") and "favicon" not in url] == []
            assert [session.client for session in build_logins(home).list("session").logins] == [CLIENT]
            page.goto(f"{public}/#/trading")
            page.get_by_role("button", name="Pause").click(timeout=SLOWLY)
            page.get_by_role("button", name="Resume").click(timeout=SLOWLY)  # the pause needed no code
            dialog = page.get_by_role("dialog")
            expect(dialog).to_contain_text("authenticator", timeout=SLOWLY)
            submit, field = dialog.locator("button[type=submit]"), dialog.get_by_role("textbox")
            field.fill("12345")
            expect(submit).to_be_disabled()
            field.fill(write_code(secret, time.time_ns() // 1_000_000 // STEP_MS))
            submit.click()
            expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=SLOWLY)
            context.close()
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def find_port(pid: int) -> int:
    """Where a process listens, as the kernel knows it."""
    sockets = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if "socket" in str(link.readlink())}
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
            return int(fields[1].partition(":")[2], 16)
    raise AssertionError("it listens nowhere")
