"""`zuno web` as a process: a debate watched across a kill and a restart, and one plan applied from two tabs at once."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from email.message import Message
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.wire.commands import run_zuno, shell
from tests.wire.forked import ZunoProcess
from zuno.wiring.web import OLD_TOKEN_FILE, build_logins

SECONDS = 200
OLD = "cd" * 32
Event = tuple[str | None, str, Any]


class Server:
    """A served home, asked as a script and as a browser asks it."""

    def __init__(self, process: ZunoProcess, link: str, token: str) -> None:
        parts = urlsplit(link)
        assert parts.hostname is not None
        self.process = process
        self._at = (parts.hostname, parts.port)
        self.code = parts.fragment.removeprefix("login=")
        self.token = token
        self.streams: list[HTTPConnection] = []

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Message]:
        whole = headers or {"Authorization": f"Bearer {self.token}"}
        with closing(HTTPConnection(*self._at, timeout=SECONDS)) as connection:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {**whole, "Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
            return answer.status, json.loads(said) if said else None, answer.headers

    def get(self, path: str) -> Any:
        status, document, _ = self.ask("GET", f"/api/v1{path}")
        assert status == 200, document
        return document

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        status, document, _ = self.ask("POST", f"/api/v1{path}", body)
        return status, document

    def watch(self, last_id: str | None = None) -> Iterator[Event]:
        """The stream, open when this returns."""
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        connection = HTTPConnection(*self._at, timeout=SECONDS)
        self.streams.append(connection)
        connection.request("GET", "/api/v1/events", headers={"Authorization": f"Bearer {self.token}", **headers})
        answer = connection.getresponse()
        assert answer.status == 200
        return read_events(answer)


def read_events(answer: HTTPResponse) -> Iterator[Event]:
    fields: dict[str, str] = {}
    with answer:
        while line := answer.readline().decode():
            if line.strip():
                name, _, value = line.rstrip("\n").partition(": ")
                fields[name] = value
                continue
            if "event" in fields:
                yield fields.get("id"), fields["event"], json.loads(fields["data"])
            fields = {}


@contextmanager
def serve(home: Path, **environment: str) -> Iterator[Server]:
    logins = build_logins(home)
    if logins.list("token").logins:
        logins.list("token", "story")
    token = logins.create_token("story", "act").token or ""
    with ZunoProcess(
        ["web", "--port", "0"], env=shell(home, environment), stdout=PIPE, stderr=PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            link = next(word for line in lines for word in line.split() if "#login=" in word)
            server = Server(process, link, token)
            yield server
            for connection in server.streams:
                connection.close()
        finally:
            process.kill()
            process.communicate(timeout=60)


def log_in(server: Server, code: str) -> tuple[int, dict[str, str]]:
    """The headers of a browser that opened a link."""
    status, given, headers = server.ask("POST", "/login", {"code": code}, Host="127.0.0.1")
    if status != 200:
        return status, {}
    return status, {"Cookie": headers["set-cookie"].partition(";")[0], "X-Zuno-Session": given["secret"]}


def read_until(events: Iterator[Event], kind: str) -> list[Event]:
    found: list[Event] = []
    for event in events:
        found.append(event)
        if event[1] == kind:
            return found
    raise AssertionError(f"the stream ended without {kind}")


def pick(events: list[Event], kind: str, name: str) -> list[Any]:
    return [data[name] for _, event, data in events if event == kind]


@pytest.mark.slow
def test_a_debate_is_watched_across_a_kill_and_its_plan_is_applied_once_from_two_tabs(home: Path) -> None:
    with serve(home) as server:
        _, login = log_in(server, server.code)
        stream = server.watch()
        status, job = server.post("/lp/recommend", {"position": "1"})
        assert status == 202
        begun = read_until(stream, "entry")
        live = begun + read_until(stream, "debate") + read_until(stream, "entry")
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    last_id = begun[-1][0]
    (plan,) = pick(live, "debate", "planId")
    assert pick(live, "waiting", "roles")[0] == ["scout"]
    assert ["critic"] in pick(live, "waiting", "roles")
    with serve(home) as server:
        assert server.ask("GET", "/api/v1/session", **login)[0] == 200  # the login outlives the restart
        resumed = server.watch(last_id)
        again = read_until(resumed, "debate")
        assert pick(again, "thought", "key") == pick(live, "thought", "key")
        assert pick(again, "thought", "text") == pick(live, "thought", "text")
        assert pick(again, "debate", "id") == [job["id"]]
        foreign = f"{str(last_id).partition('-')[0]}-{'0' * 16}"
        bearer = {"Authorization": f"Bearer {server.token}"}
        assert server.ask("GET", "/api/v1/events", **bearer, **{"Last-Event-ID": foreign})[0] == 409
        at = f"/lp/plans/{plan}"
        status, offer = server.post(f"{at}/approve", {})
        assert status == 200
        assert server.post(f"{at}/approve", {"approvalHash": offer["approvalHash"], "word": "no"})[0] == 409
        approval = {"approvalHash": offer["approvalHash"], "word": "approve"}
        assert server.post(f"{at}/approve", approval)[0] == 200
        assert server.post(f"{at}/approve", approval)[0] == 409
        status, shown = server.post(f"{at}/apply", {})
        assert (status, shown["planId"]) == (200, plan)
        word = {"word": "apply", "approvalHash": shown["approvalHash"]}
        with ThreadPoolExecutor(2) as tabs:
            answers = list(tabs.map(lambda _: server.post(f"{at}/apply", word), range(2)))
        assert sorted(status for status, _ in answers) == [200, 409]
        assert server.get(f"{at}/status")["state"] == "confirmed"
    with sqlite3.connect(home / "journal.db") as journal:
        (applied,) = journal.execute("SELECT COUNT(*) FROM entries WHERE kind = 'plan_applying'").fetchone()
    assert applied == 1


def test_with_real_money_the_terminal_rules_a_page_that_runs_beside_it(home: Path) -> None:
    """Links, sessions, tokens and the leave to act, told to a running service by commands; and its restart."""
    home.mkdir(mode=0o700)
    (home / OLD_TOKEN_FILE).write_text(OLD + "\n")
    node = {"ZUNO_BASE_RPC_URL": "http://127.0.0.1:9"}

    def run(*command: str) -> Any:
        return run_zuno(home, "web", *command, "--json").document

    def act(login: dict[str, str], path: str) -> tuple[int, str]:
        status, told, _ = server.ask("POST", f"/api/v1/trading/{path}", {"account": "<"}, **login)
        return status, told["detail"]

    with serve(home, **node) as server:
        assert not (home / OLD_TOKEN_FILE).exists()
        assert server.ask("GET", "/api/v1/jobs", Authorization=f"Bearer {OLD}")[0] == 401
        status, login = log_in(server, server.code)
        assert (status, log_in(server, server.code)[0]) == (200, 401)
        status, told = act(login, "unlock")
        assert status == 403
        assert "zuno web allow --for 30m" in told
        assert [act(login, path)[0] for path in ("kill", "pause")] == [400, 400], "they get as far as the account"
        assert run("allow", "--for", "30m")["until"] is not None
        assert act(login, "unlock")[0] == 400
        run("allow", "--end")
        assert act(login, "unlock")[0] == 403
        code = run("link", "--scope", "look")["url"].partition("#login=")[2]
        _, looking = log_in(server, code)
        assert [act(looking, path)[0] for path in ("kill", "unlock")] == [403, 403]
        token = run("token", "create", "grafana", "--scope", "look")["token"]
        bearer = {"Authorization": f"Bearer {token}"}
        assert server.ask("GET", "/api/v1/jobs", **bearer)[0] == 200
        connection = HTTPConnection(*server._at, timeout=SECONDS)
        server.streams.append(connection)
        connection.request("GET", "/api/v1/events", headers=looking)
        stream = connection.getresponse()
        stream.readline()
        (ended,) = (session["name"] for session in run("sessions")["logins"] if session["scope"] == "look")
        assert len(run("sessions", "--end", ended)["logins"]) == 1
        stream.read()  # to its end
        assert server.ask("GET", "/api/v1/jobs", **looking)[0] == 401
        run("token", "revoke", "grafana")
        assert server.ask("GET", "/api/v1/jobs", **bearer)[0] == 401
        assert server.ask("GET", "/api/v1/jobs", **login)[0] == 200
    with serve(home, **node) as server:
        assert server.ask("GET", "/api/v1/jobs", **login)[0] == 401, "a restart ends it"
    assert run_zuno(home, "web", "link").code == 3
