"""The mesh as people run it: real processes on loopback, killed, stopped, left alone and joined again."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from tests.wire.axl_node import FIRST_SENDS, axl_nodes
from tests.wire.commands import Ran, run_zuno, shell
from tests.wire.forked import ZunoProcess
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.mesh.folder import MeshFiles
from zuno.adapters.transport.iroh import IrohPeer, IrohTransport
from zuno.kernel.errors import Unavailable
from zuno.lp.mesh.delivery import Delivery
from zuno.lp.mesh.message_handler import EnvelopeSigner
from zuno.lp.mesh.peer import OutgoingMessage
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.debate import FlowStart, Role
from zuno.lp.service import mesh as mesh_service
from zuno.wiring import open_zuno

ROLES = ("scout", "strategist", "critic", "arbiter")
HANG = 120.0
ASK = ("lp", "recommend", "rebalance", "1", "--chain", "sim", "--json")
needs_iroh = pytest.mark.skipif(
    importlib.util.find_spec("iroh") is None, reason="the iroh library is not installed: make mesh"
)


def until(happens: Callable[[], Any], what: str, seconds: float = HANG) -> Any:
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        if found := happens():
            return found
        time.sleep(0.01)
    raise AssertionError(f"{what} did not happen within {seconds:g} s")


def kinds(folder: Path, request_id: str | None = None) -> list[str]:
    """What a journal holds, without opening it as Zuno does."""
    path = folder / "journal.db"
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=30)) as connection:
        try:
            rows = connection.execute("SELECT kind, request_id FROM entries ORDER BY seq").fetchall()
        except sqlite3.OperationalError:  # its tables are just being made
            return []
    return [kind for kind, request in rows if request_id in (None, request)]


def newest_request(folder: Path) -> str | None:
    path = folder / "journal.db"
    if not path.exists():
        return None
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=30)) as connection:
        try:
            row = connection.execute(
                "SELECT request_id FROM entries WHERE kind = 'flow_start' ORDER BY seq DESC LIMIT 1"
            ).fetchone()
        except sqlite3.OperationalError:
            return None
    return None if row is None else str(row[0])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


class Mesh:
    """A home whose mesh `zuno mesh up` keeps running."""

    def __init__(self, home: Path, transport: str, **environment: str) -> None:
        self.home = home
        self.transport = transport
        self.environment = environment
        self.lines: list[dict[str, Any]] = []
        self.process = ZunoProcess(
            ["mesh", "up", "--transport", transport, "--json"],
            env=shell(home, environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        until(lambda: any(line.get("event") == "up" for line in self.lines), "the mesh's coming up")
        until(lambda: self.zuno("mesh", "ping").code == 0, "all four answering")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def zuno(self, *arguments: str) -> Ran:
        return run_zuno(self.home, *arguments, **self.environment)

    def ask(self) -> Ran:
        return self.zuno(*ASK, "--transport", self.transport)

    def start_debate(self) -> tuple[subprocess.Popen[str], str]:
        """A process that asks, and its request, once that is on record. Where peers of a busy machine do not answer
        its ping in time, it ends and is started again."""
        before = newest_request(self.home)
        while True:
            asking = ZunoProcess(
                [*ASK, "--transport", self.transport],
                env=shell(self.home, self.environment),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            poll = asking.poll
            until(lambda: newest_request(self.home) != before or poll() is not None, "the debate's start")  # noqa: B023
            request = newest_request(self.home)
            if request is not None and request != before:
                return asking, request
            _, err = asking.communicate()
            assert "No answer over" in err, err

    def pid(self, role: str) -> int:
        return int(until(MeshFiles(self.home).lock(role).holder, f"the {role}'s start"))

    def folder(self, role: str) -> Path:
        return self.home / "mesh" / role

    def end(self) -> None:
        pids = [int(line["pid"]) for line in self.lines if line.get("event") == "starting"]
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(HANG) == 0
        assert [pid for pid in pids if alive(pid)] == []

    def close(self) -> None:
        self._reader.join(HANG)
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def running(home: Path, transport: str, **environment: str) -> Iterator[Mesh]:
    mesh = Mesh(home, transport, **environment)
    try:
        yield mesh
    finally:
        end_mesh(mesh)


def end_mesh(mesh: Mesh) -> None:
    if mesh.process.poll() is None:
        mesh.end()
    mesh.close()


@pytest.fixture(autouse=True)
def wait_for_busy_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ping of a command in this process ends when all have answered, and not sooner."""
    monkeypatch.setattr(mesh_service, "PING_SECONDS", HANG)


@pytest.fixture(scope="module")
def mesh_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("mesh") / "home"
    assert run_zuno(home, "mesh", "init").code == 0
    return home


@pytest.fixture(scope="module")
def meshes() -> Iterator[list[Mesh]]:
    """Of which the last may run."""
    found: list[Mesh] = []
    yield found
    for mesh in found:
        end_mesh(mesh)


@pytest.fixture
def mesh(meshes: list[Mesh], mesh_home: Path) -> Mesh:
    """The one all tests of this file share, or another where a test has ended it."""
    if not meshes or meshes[-1].process.poll() is not None:
        meshes.append(Mesh(mesh_home, "iroh"))
    return meshes[-1]


@pytest.fixture(scope="module")
def here(mesh_home: Path) -> dict[str, Any]:
    """The plan of the same question in one process."""
    ran = run_zuno(mesh_home, *ASK, "--transport", "inproc")
    assert (ran.code, ran.err) == (0, "")
    document: dict[str, Any] = ran.document
    return document


def same(plan: dict[str, Any], other: dict[str, Any]) -> bool:
    apart = ("planId", "requestId")
    return {name: plan[name] for name in plan if name not in apart} == {
        name: other[name] for name in other if name not in apart
    }


@needs_iroh
def test_the_same_plan_and_transcript_as_in_one_process(mesh: Mesh, here: dict[str, Any]) -> None:
    ran = mesh.ask()
    assert ran.code == 0
    assert ran.document["hash"] == here["hash"]
    assert ran.document["transcript"] == here["transcript"]
    assert same(ran.document, here)
    request = ran.document["requestId"]
    assert ran.err.endswith(f"zuno: {request} is argued over iroh; `zuno mesh join {request}` rejoins.\n")
    assert kinds(mesh.home, request) == [
        "flow_start",
        "plan_ready",
        "plan",
        "decision_view",
    ]  # what the owner said and heard
    assert kinds(mesh.folder("scout"), request) == ["flow_start", "context_observed"]
    for command in (("why", request), ("replay", request), ("plan", "show", ran.document["planId"])):
        assert mesh.zuno(*command, "--json").code == 0, command
    for role in ("scout", "strategist", "critic"):
        seen = run_zuno(mesh.folder(role), "why", request, "--json", **mesh.environment)
        assert (seen.code, seen.document["seenBy"]) == (0, [role])
        assert seen.document["transcript"] == here["transcript"][: len(seen.document["transcript"])] != []
    assert mesh.zuno("journal", "verify").code == 0
    assert mesh.zuno("mesh", "join", request).code == 3  # it has its plan


@needs_iroh
def test_without_a_word_the_mesh_is_used_because_it_answers(mesh: Mesh, here: dict[str, Any]) -> None:
    ran = mesh.zuno(*ASK)
    assert ran.document["hash"] == here["hash"]
    assert "over iroh" in ran.err


@needs_iroh
def test_status_and_agents_show_the_peers(mesh: Mesh) -> None:
    seen = mesh.zuno("mesh", "status", "--json").document
    assert (seen["transport"], seen["keptBy"]) == ("iroh", mesh.process.pid)
    for role, peer in zip(ROLES, seen["peers"], strict=True):
        assert (peer["role"], peer["answers"], peer["here"]) == (role, True, True)
        assert peer["pid"] == mesh.pid(role)
        assert peer["roundTripMs"] > 0
        assert (peer["rejected"], peer["dead"]) == (0, 0)
    assert seen["peers"][0]["heard"] >= 1
    agents = mesh.zuno("agents", "--json").document
    assert agents["where"] == "on the mesh over iroh"
    assert [peer["answers"] for peer in agents["mesh"]["peers"]] == [True] * 4
    assert "process" in mesh.zuno("mesh", "status").out


@needs_iroh
def test_a_second_one_says_who_runs(mesh: Mesh) -> None:
    ran = mesh.zuno("mesh", "up")
    assert ran.code == 3
    assert f"process {mesh.process.pid}" in ran.err
    ran = mesh.zuno("peer", "critic")
    assert ran.code in (3, 4)  # its seat and its port are taken


@needs_iroh
def test_two_debates_at_once_do_not_mix(mesh: Mesh, here: dict[str, Any]) -> None:
    bold = mesh.zuno(*ASK, "--transport", "inproc", "--profile", "aggressive").document

    async def both() -> list[Any]:
        first, second = open_zuno(str(mesh.home)), open_zuno(str(mesh.home))
        try:
            return await asyncio.gather(  # type: ignore[return-value]
                first.advice(transport="iroh").rebalance("1", chain="sim"),
                second.advice(transport="iroh").rebalance("1", chain="sim", profile="aggressive"),
            )
        finally:
            await first.close()
            await second.close()

    one, other = asyncio.run(both())
    assert (one.hash, other.hash) == (here["hash"], bold["hash"])
    assert one.request_id != other.request_id
    assert mesh.zuno("journal", "verify").code == 0


@needs_iroh
def test_a_critic_killed_in_mid_debate_resumes_and_the_plan_comes(mesh: Mesh, here: dict[str, Any]) -> None:
    critic = mesh.pid("critic")
    asking, request = mesh.start_debate()
    try:
        os.kill(critic, signal.SIGSTOP)  # it hears nothing more and answers nobody
        until(lambda: "proposal" in kinds(mesh.folder("strategist"), request), "the proposal")
    finally:
        os.kill(critic, signal.SIGKILL)
    out, err = asking.communicate(timeout=HANG)
    assert asking.returncode == 0, err
    assert json.loads(out)["hash"] == here["hash"]
    assert kinds(mesh.folder("critic"), request).count("plan_ready") == 1
    status = mesh.zuno("mesh", "status", "--json").document
    assert status["peers"][2]["restarts"] >= 1
    assert any(line["event"] == "died" and line["role"] == "critic" for line in mesh.lines)


@needs_iroh
def test_a_debate_goes_on_without_its_owner_and_is_joined_by_its_request(mesh: Mesh, here: dict[str, Any]) -> None:
    critic = mesh.pid("critic")
    asking, request = mesh.start_debate()
    os.kill(critic, signal.SIGSTOP)
    try:
        until(lambda: "proposal" in kinds(mesh.folder("strategist"), request), "the proposal")
        asking.kill()
        asking.communicate(timeout=HANG)
    finally:
        os.kill(critic, signal.SIGCONT)
    assert "plan_ready" not in kinds(mesh.home, request)
    ran = mesh.zuno("mesh", "join", request, "--json")
    assert ran.code == 0, ran.err
    assert (ran.document["hash"], ran.document["requestId"]) == (here["hash"], request)
    assert kinds(mesh.home, request) == ["flow_start", "plan_ready", "plan", "decision_view"]
    assert kinds(mesh.folder("critic"), request).count("plan_ready") == 1  # nobody spoke twice
    assert mesh.zuno("replay", request).code == 0


def named_alone(ran: Ran) -> Ran | None:
    return ran if "from: arbiter;" in ran.err else None


@pytest.mark.soak
@needs_iroh
def test_one_that_is_silent_is_named(mesh: Mesh, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh_service, "PING_SECONDS", 1.5)
    arbiter = mesh.pid("arbiter")
    os.kill(arbiter, signal.SIGSTOP)
    try:
        alone = until(lambda: named_alone(mesh.zuno("mesh", "ping", "--json")), "the arbiter alone being missed")
        assert alone.code == 4
        forced = mesh.zuno(*ASK, "--transport", "iroh")
        assert (forced.code, "arbiter;" in forced.err) == (4, True)
        left_to_us = mesh.zuno(*ASK)
        assert (left_to_us.code, left_to_us.document["hash"]) == (0, here["hash"])
        assert left_to_us.err.startswith("zuno: This debate runs in this process, not on the mesh: No answer over iroh")
        assert left_to_us.err.count("\n") == 1
    finally:
        os.kill(arbiter, signal.SIGCONT)
    until(lambda: mesh.zuno("mesh", "ping").code == 0, "the arbiter's answer")


@needs_iroh
def test_a_stranger_and_a_peer_in_a_wrong_role_are_refused_and_recorded(mesh: Mesh) -> None:
    """Whoever holds the arbiter's key is let in as the arbiter, and as nobody else."""
    table = json.loads((mesh.home / "mesh" / "mesh.json").read_text())["roles"]
    arbiter = KeyFile(mesh.folder("arbiter") / "peer.key")
    stranger = KeyFile(mesh.home / "stranger.key")
    stranger.ensure()
    scout = IrohPeer(table["scout"]["key"], table["scout"]["irohAddress"])
    keys = {role: table[role.value]["key"] for role in Role}

    async def send(secret: bytes, data: bytes) -> None:
        transport = IrohTransport(Role.CLI, secret, {Role.SCOUT: scout})
        try:
            await transport.send(Role.SCOUT, data)
        finally:
            await transport.close()

    start = FlowStart(chain="sim", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2)
    said = EnvelopeSigner(Role.CLI, arbiter, unix_millis).envelope(
        "req_00000000000000aa", OutgoingMessage(Role.SCOUT, start), None
    )
    post = Delivery(Role.CLI, arbiter, keys, lambda name: None, chance=Random(1), code="x")
    (letter,) = post.prepare_envelope(said, unix_millis())
    with pytest.raises(Unavailable):
        asyncio.run(send(stranger.secret(), letter.data))
    asyncio.run(send(arbiter.secret(), letter.data))

    def noted() -> bool:
        peers = mesh.zuno("mesh", "status", "--json").document["peers"]
        return any("is not the key of cli" in why for why in peers[0]["reasons"])

    until(noted, "the rejection")
    assert "mesh_rejected" in kinds(mesh.folder("scout"))
    assert kinds(mesh.folder("scout"), "req_00000000000000aa") == []


@needs_iroh
def test_keys_are_the_owners_alone_and_never_written_again(mesh: Mesh) -> None:
    folder = mesh.home / "mesh"
    private = sorted(folder.glob("*/*.key"))
    assert len(private) == 10
    for path in [*private, folder / "mesh.json"]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = {path: path.read_bytes() for path in [*private, folder / "mesh.json"]}
    assert mesh.zuno("mesh", "init").code == 0
    assert {path: path.read_bytes() for path in before} == before
    public = (folder / "mesh.json").read_text()
    assert not any(line in public for path in private for line in path.read_text().splitlines()[1:-1])
    config = json.loads((folder / "critic" / "axl.json").read_text())
    assert set(config) == {"PrivateKeyPath", "Peers", "Listen", "api_port", "tcp_port", "bridge_addr"}
    assert all("127.0.0.1" in peer for peer in config["Peers"])


@needs_iroh
def test_down_ends_it_and_leaves_none(mesh: Mesh) -> None:
    pids = [mesh.pid(role) for role in ROLES]
    ran = mesh.zuno("mesh", "down")
    assert ran.code == 0, ran.err
    assert mesh.process.wait(HANG) == 0
    until(lambda: not any(map(alive, pids)), "the end of the peers")
    ran = mesh.zuno(*ASK)
    assert ran.code == 0
    assert ran.err == (
        "zuno: This debate runs in this process, not on the mesh: no peer of this home runs; `zuno mesh up` starts "
        "them.\n"
    )
    assert mesh.zuno("mesh", "down").out == "No mesh of this home is kept running.\n"


@pytest.mark.soak
@needs_iroh
def test_a_critic_of_another_home_under_its_own_key(tmp_path: Path) -> None:
    """Two machines as far as anybody can tell: each has its keys, and the other's table copied by hand."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for home in (ours, theirs):
        assert run_zuno(home, "mesh", "init").code == 0
    elsewhere = [word for role in ("cli", "scout", "strategist", "arbiter") for word in ("--role", role)]
    here, there = str(ours / "mesh" / "mesh.json"), str(theirs / "mesh" / "mesh.json")
    assert run_zuno(ours, "mesh", "init", "--join", there, "--role", "critic").code == 0
    assert run_zuno(theirs, "mesh", "init", "--join", here, *elsewhere).code == 0
    assert run_zuno(ours, "peer", "critic").code == 3  # its key is not here
    assert run_zuno(ours, "peer", "cli").code == 2
    critic = ZunoProcess(
        ["peer", "critic", "--transport", "iroh"],
        env=shell(theirs, {}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with running(ours, "iroh") as mesh:
            assert any("elsewhere: critic" in line["text"] for line in mesh.lines if line["event"] == "note")
            ran = mesh.ask()
            assert ran.code == 0, ran.err
            assert kinds(theirs / "mesh" / "critic", ran.document["requestId"]) == ["proposal", "plan_ready"]
            assert not (mesh.folder("critic") / "journal.db").exists()
            status = mesh.zuno("mesh", "status", "--json").document["peers"][2]
            assert (status["here"], status["answers"], status["pid"]) == (False, True, None)
    finally:
        critic.send_signal(signal.SIGTERM)
        _, said = critic.communicate(timeout=HANG)
    assert critic.returncode == 0
    assert "plan_ready" in said


class Overlay:
    """AXL nodes in a thread of this process: one for each role, and a stranger's."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = [*keys, "ab" * 32]
        self._loop = asyncio.new_event_loop()
        self._ready, self._done = threading.Event(), asyncio.Event()
        self.urls: list[str] = []
        self.stranger = ""
        self.paths: list[str] = []
        """What was asked for until the end."""
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._thread.start()
        assert self._ready.wait(HANG)

    async def _serve(self) -> None:
        async with axl_nodes(self._keys, stall=5.0, first_sends=FIRST_SENDS, pace=0.3) as nodes:
            *self.urls, self.stranger = [node.url for node in nodes]
            self._ready.set()
            await self._done.wait()
            self.paths = [request.path for node in nodes for request in node.heard]

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(HANG)
        self._loop.close()


def test_over_axl_nodes_too_and_replayed_from_what_the_peers_models_did(home: Path) -> None:
    """The model is one nobody reaches, so every attempt fails and is on record, in the journal of whoever asked."""
    assert run_zuno(home, "mesh", "init").code == 0
    table = json.loads((home / "mesh" / "mesh.json").read_text())["roles"]
    overlay = Overlay([line["axlPeerId"] for line in table.values()])
    urls = {f"ZUNO_AXL_{role.upper()}_API_URL": url for role, url in zip(table, overlay.urls, strict=True)}
    urls["ZUNO_AGENT_MODEL"] = "http://127.0.0.1:9/v1#nobody"
    try:
        with running(home, "axl", **urls) as mesh:
            assert any(line["event"] == "note" and "ZUNO_AXL_NODE" in line["text"] for line in mesh.lines)
            scout = {"X-Destination-Peer-Id": table["scout"]["axlPeerId"]}
            for _ in range(30):
                sent = httpx2.post(f"{overlay.stranger}/send", headers=scout, content=b"\x01hello", trust_env=False)
                assert sent.headers["X-Sent-Bytes"] == "6"

            ran = mesh.ask()
            seen = mesh.zuno("mesh", "status", "--json").document
            assert (seen["node"], seen["nodeWhy"]) == ("ok", "")
            assert [(peer["strangers"], peer["node"]) for peer in seen["peers"]] == [(30, "ok"), *[(0, "ok")] * 3]
            assert ran.code == 0, ran.err
            here = mesh.zuno(*ASK, "--transport", "inproc").document
            assert (ran.document["hash"], ran.document["transcript"]) == (here["hash"], here["transcript"])
            request = ran.document["requestId"]
            assert "model_attempt" in kinds(mesh.folder("critic"), request)
            assert run_zuno(mesh.folder("critic"), "journal", "tail").code == 0  # a peer's own journal
            assert run_zuno(mesh.folder("critic"), "journal", "verify").code == 0
            assert kinds(home, request) == ["flow_start", "plan_ready", "plan", "decision_view"]
            replayed = mesh.zuno("replay", request, "--json")
            assert (replayed.code, replayed.document["differences"]) == (0, [])
            os.kill(mesh.process.pid, signal.SIGKILL)  # its peers notice that they are orphans
            mesh.process.wait(HANG)
            pids = [int(line["pid"]) for line in mesh.lines if line.get("event") == "starting"]
            until(lambda: not any(map(alive, pids)), "the end of the orphans")
            for path in mesh.folder("critic").glob("journal.*"):
                path.unlink()
            refused = mesh.zuno("replay", request)
            assert refused.code == 3
            assert "journals" in refused.err
    finally:
        overlay.end()


@pytest.mark.soak
@pytest.mark.slow
def test_a_home_that_reaches_another_homes_nodes_is_never_up_and_takes_none_of_their_mail(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for home in (ours, theirs):
        assert run_zuno(home, "mesh", "init").code == 0
    table = json.loads((theirs / "mesh" / "mesh.json").read_text())["roles"]
    overlay = Overlay([line["axlPeerId"] for line in table.values()])
    urls = {f"ZUNO_AXL_{role.upper()}_API_URL": url for role, url in zip(table, overlay.urls, strict=True)}
    up = ZunoProcess(
        ["mesh", "up", "--transport", "axl", "--json"],
        env=shell(ours, urls),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        told: list[dict[str, Any]] = []
        assert up.stdout is not None
        for line in up.stdout:
            told.append(json.loads(line))
            if told[-1]["event"] == "note" and "scout: not ours" in told[-1]["text"]:
                break
        status = run_zuno(ours, "mesh", "status", "--json", **urls).document
        assert [status["node"], *(peer["node"] for peer in status["peers"])] == ["not ours"] * 5
        ping = run_zuno(ours, "mesh", "ping", **urls)
        assert (ping.code, "[node: not ours]" in ping.err) == (4, True)
    finally:
        up.send_signal(signal.SIGTERM)
        rest, _ = up.communicate(timeout=HANG)
        overlay.end()
    assert "up" not in {line["event"] for line in [*told, *map(json.loads, rest.splitlines()[:-1])]}
    assert set(overlay.paths) == {"/topology"}


NODE = """#!{python}
import sys, time
print("a node", sys.argv[1:], flush=True)
time.sleep(300)
"""


@pytest.mark.soak
def test_nodes_that_outlive_a_killed_mesh_are_ended_by_its_owner(home: Path, tmp_path: Path) -> None:
    """kill -9 leaves their keeper no time for it; the next `mesh down` or `mesh up` ends them, and only them."""
    program = tmp_path / "node"
    program.write_text(NODE.format(python=sys.executable))
    program.chmod(0o700)
    assert run_zuno(home, "mesh", "init").code == 0
    environment = {"ZUNO_AXL_NODE": str(program)}
    mine = subprocess.Popen(
        [str(program), "-config", str(home / "mesh" / "critic" / "axl.json")], stdout=subprocess.PIPE
    )
    pids: list[int] = []

    def killed() -> list[int]:
        up = ZunoProcess(
            ["mesh", "up", "--transport", "axl", "--json"],
            env=shell(home, environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        nodes: list[int] = []
        with up:
            assert up.stdout is not None
            for line in up.stdout:
                event = json.loads(line)
                if event["event"] == "note":
                    told.append(event["text"])
                if event["event"] == "starting":
                    pids.append(event["pid"])
                    if event["role"].startswith("node of"):
                        nodes.append(event["pid"])
                if len(nodes) == 5:
                    up.kill()
        return nodes

    told: list[str] = []
    try:
        first = killed()
        assert len(first) == 5
        assert all(map(alive, first))
        second = killed()
        assert len(told) == 1, told
        assert all(str(pid) in told[0] for pid in first)
        assert not any(map(alive, first))
        ran = run_zuno(home, "mesh", "down", **environment)
        assert ran.code == 0, ran.err
        assert "killed" in ran.out
        assert not any(map(alive, second))
        assert mine.poll() is None, "the same program with the same words, started by somebody else"
        assert run_zuno(home, "mesh", "down", **environment).out == "No mesh of this home is kept running.\n"
        until(lambda: not any(map(alive, pids)), "the end of the orphans")
    finally:
        mine.kill()
        mine.communicate()
        for pid in filter(alive, pids):
            os.kill(pid, signal.SIGKILL)
