"""The mesh's folder: written whole, read strictly, and locks that end with their process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from zuno.adapters.mesh.folder import MeshFiles, listen_host
from zuno.kernel.errors import Broken, Refused
from zuno.kernel.units import Millis
from zuno.lp.model.debate import Role
from zuno.lp.ports.mesh import PeerAddress, PeerReport, RunningMesh

TABLE = {
    role: PeerAddress(
        key=f"{number:064x}",
        iroh_address=f"127.0.0.1:{4000 + number}",
        axl_peer_id=f"{100 + number:064x}",
        axl_api_url=f"http://127.0.0.1:{9002 + 10 * number}",
        axl_listens=f"tls://127.0.0.1:{9001 + 10 * number}",
    )
    for number, role in enumerate(Role)
}


def test_a_table_is_read_as_it_was_kept(tmp_path: Path) -> None:
    files = MeshFiles(tmp_path)
    assert files.table() is None
    files.keep_table(TABLE)
    assert files.table() == TABLE
    assert list(files.table() or ()) == list(Role)
    assert MeshFiles(tmp_path / "other").table_of(str(files.root / "mesh.json")) == TABLE


@pytest.mark.parametrize("damage", ["", "{", '{"version": 2, "roles": {}}', '{"version": 1, "roles": {}}'])
def test_a_damaged_table_stays_as_it_is(tmp_path: Path, damage: str) -> None:
    files = MeshFiles(tmp_path)
    files.keep_table(TABLE)
    (files.root / "mesh.json").write_text(damage)
    with pytest.raises(Broken, match=r"mesh\.json"):
        files.table()
    assert (files.root / "mesh.json").read_text() == damage


def test_nodes_have_one_link_for_each_pair_and_no_public_peer(tmp_path: Path) -> None:
    files = MeshFiles(tmp_path)
    links: list[str] = []
    for role in Role:
        files.keep_node(role, TABLE)
        config = json.loads(files.node_config(role).read_text())  # no comments: they would disable half of it
        assert config["Listen"] == [TABLE[role].axl_listens]
        assert config["PrivateKeyPath"] == str(files.of(role) / "axl.key")
        assert (config["api_port"], config["tcp_port"]) == (int(TABLE[role].axl_api_url[-4:]), 7000)
        links += config["Peers"]
    assert len(links) == 10
    assert set(links) < {line.axl_listens for line in TABLE.values()}


@pytest.mark.parametrize(
    ("host", "listens"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.7", "127.0.0.7"),
        ("localhost", "127.0.0.1"),
        ("Localhost.", "127.0.0.1"),
        ("LocalHost", "127.0.0.1"),
        ("10.0.0.2", "0.0.0.0"),
        ("desk.example", "0.0.0.0"),
    ],
)
def test_whoever_is_reached_on_loopback_alone_listens_there_alone(tmp_path: Path, host: str, listens: str) -> None:
    files = MeshFiles(tmp_path)
    line = TABLE[Role.CRITIC].model_copy(update={"axl_listens": f"tls://{host}:9031"})
    files.keep_node(Role.CRITIC, TABLE | {Role.CRITIC: line})
    assert json.loads(files.node_config(Role.CRITIC).read_text())["Listen"] == [f"tls://{listens}:9031"]
    assert listen_host(host) == listens


def test_a_free_port_is_free_and_handed_out_once(tmp_path: Path) -> None:
    files = MeshFiles(tmp_path)
    ports = [files.free_port("127.0.0.1") for _ in range(300)]
    assert len(set(ports)) == 300
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            probe.bind(("127.0.0.1", ports[0]))


def test_a_report_is_the_peers_own_word(tmp_path: Path) -> None:
    files = MeshFiles(tmp_path)
    report = PeerReport(
        pid=7,
        since=Millis(1),
        at=Millis(2),
        code="v",
        transport="iroh",
        heard=3,
        said=4,
        again=5,
        dead=6,
        rejected={"forged": 2},
        round_trips={"scout": 1.5},
    )
    assert files.report(Role.CRITIC) is None
    files.keep_report(Role.CRITIC, report)
    assert files.report(Role.CRITIC) == report
    (files.of(Role.CRITIC) / "report.json").write_text("{")
    assert files.report(Role.CRITIC) is None


def test_what_is_pinned_is_found_by_whom_it_is_for(tmp_path: Path) -> None:
    files = MeshFiles(tmp_path)
    files.pin(Role.SCOUT, "aa", "1.0")
    assert (
        files.pinned_reply(Role.SCOUT, "aa"),
        files.pinned_reply(Role.SCOUT, "bb"),
        files.pinned_reply(Role.CRITIC, "aa"),
    ) == (
        "1.0",
        None,
        None,
    )
    os.utime(files.root / "pongs" / "scout-aa", (1, 1))
    files.pin(Role.SCOUT, "bb", "1.0")
    assert files.pinned_reply(Role.SCOUT, "aa") is None


def test_what_nobody_keeps_running_is_not_kept(tmp_path: Path) -> None:
    files = MeshFiles(tmp_path)
    files.keep_running_mesh(RunningMesh(transport="axl", restarts={"scout": 1}))
    assert files.running_mesh() is None
    lock = files.lock("up")
    lock.take()
    assert files.running_mesh() == RunningMesh(transport="axl", restarts={"scout": 1})
    lock.leave()
    assert files.running_mesh() is None


@pytest.mark.slow
def test_a_lock_is_released_when_its_process_dies(tmp_path: Path) -> None:
    files = MeshFiles(tmp_path)
    assert files.lock("scout").holder() is None
    code = (
        "import sys, pathlib; from zuno.adapters.mesh.folder import MeshFiles\n"
        "MeshFiles(pathlib.Path(sys.argv[1])).lock('scout').take(); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert files.lock("scout").holder() == other.pid
        with pytest.raises(Refused, match=rf"\b{other.pid}\b"):
            files.lock("scout").take()
        other.kill()
        other.wait(10)
    assert files.lock("scout").holder() is None
    files.lock("scout").take()


@pytest.mark.slow
def test_answers_to_pings_that_nobody_sent_do_not_fill_the_board(tmp_path: Path) -> None:
    files = MeshFiles(tmp_path)
    for number in range(300):
        files.pin(Role.SCOUT, f"{number:016x}", "1.0")
    files.pin(Role.CRITIC, "aa", "1.0")
    assert len(list((files.root / "pongs").iterdir())) == 129
    assert files.pinned_reply(Role.CRITIC, "aa") == "1.0", "another role's answers have their own room"


def test_a_lock_is_taken_once(tmp_path: Path) -> None:
    files = MeshFiles(tmp_path)
    lock = files.lock("scout")
    lock.take()
    with pytest.raises(Refused, match=rf"\b{os.getpid()}\b"):
        files.lock("scout").take()
    lock.leave()
    assert files.lock("scout").holder() is None
