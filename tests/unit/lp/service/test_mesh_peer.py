"""One role at several debates: each has a peer of its own, and a bug in one ends that one alone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.wire.mesh_side import a_mesh
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.mesh.folder import MeshFiles
from zuno.kernel.errors import Broken, Refused
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.message_handler import EnvelopeSigner
from zuno.lp.mesh.peer import OutgoingMessage, Think
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.debate import FlowFailed, FlowStart, Role, Thought
from zuno.lp.ports.transport import NodeHealth
from zuno.lp.service.mesh_peer import PeerPerDebate, PeerService

START = FlowStart(chain="sim", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2)


class Answering:
    role = Role.SCOUT

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.heard = 0

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        assert envelope.request_id == self.request_id
        self.heard += 1
        match self.request_id[-1]:
            case "b":
                raise ZeroDivisionError("a bug")
            case "c":
                raise Refused("The position is burnt.")
        return [OutgoingMessage(Role.CLI, FlowFailed(at=Role.SCOUT, error="refused", reason="enough"))]


async def deaf(thought: Thought) -> None:
    return None


async def test_each_debate_has_a_peer_of_its_own_and_its_own_end(tmp_path: Path) -> None:
    key = KeyFile(tmp_path / "cli.key")
    key.ensure()
    mouth = EnvelopeSigner(Role.CLI, key, lambda: 1_700_000_000_000)
    made: list[Answering] = []
    told: list[str] = []

    def peer_for(request_id: str) -> Answering:
        made.append(Answering(request_id))
        return made[-1]

    peer = PeerPerDebate(Role.SCOUT, peer_for, told.append, lambda: 1.0)

    def start(last: str) -> Envelope:
        return mouth.envelope(f"req_000000000000000{last}", OutgoingMessage(Role.SCOUT, START), None)

    for last in "aaf":
        await peer.handle(start(last), deaf)
    assert [(one.request_id[-1], one.heard) for one in made] == [("a", 2), ("f", 1)]
    assert re.match(r"req_000000000000000a: flow_start .*cli\b.*\bflow_failed .*cli\b", told[0])
    with pytest.raises(Broken, match="ZeroDivisionError"):
        await peer.handle(start("b"), deaf)
    assert "in handle" in told[-1]
    with pytest.raises(Refused, match="burnt"):
        await peer.handle(start("c"), deaf)
    assert re.match(r"req_000000000000000c: flow_start .*burnt\.$", told[-1])


async def test_everything_is_counted_on_after_a_restart(tmp_path: Path) -> None:
    """One kind of counter: since the mesh was set up."""
    files, told = MeshFiles(tmp_path), list[str]()
    for life in (1, 2):
        async with a_mesh(tmp_path, silent=[Role.CRITIC]) as side:
            running, stop = side.peers[Role.CRITIC], asyncio.Event()
            running.peer.stats.rejected["the scout: too old"] += 1
            for name in ("heard", "said", "again", "dead"):
                setattr(running.peer.stats, name, getattr(running.peer.stats, name) + 3)
            side.wire.strangers = 6_610  # of this life, as a transport counts them
            side.wire.node = NodeHealth(state="not ours", why="It is somebody else's.")
            service = PeerService(
                role=Role.CRITIC,
                transport="inproc",
                running=running,
                folder=files,
                lock=files.lock("critic"),
                code="test",
                now=unix_millis,
                orphaned=lambda stop=stop: stop.set() or False,  # type: ignore[misc]
                tell=told.append,
            )
            await service.run(stop)
            report = files.report(Role.CRITIC)
            assert report is not None
            assert report.rejected == {"the scout: too old": life}
            assert (report.heard, report.said, report.again, report.dead) == (3 * life,) * 4
            assert (report.strangers, report.node) == (6_610 * life, side.wire.node)
            assert sum(line.startswith("node: not ours. ") for line in told) == life
    assert sum("acknowledged" in line for line in told) == 2  # three of each life
