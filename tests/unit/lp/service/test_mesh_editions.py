"""Peers of different editions on one mesh: each refuses the other by name, and an owner of edition 1 is answered."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.wire.mesh_side import REQUEST, START, Side, a_mesh, deaf, kinds
from zuno.kernel.errors import Refused, Unavailable
from zuno.lp.mesh.peer import OutgoingMessage
from zuno.lp.mesh.running import AGENTS, PingReply
from zuno.lp.model.ballot import EDITION
from zuno.lp.model.debate import Role
from zuno.lp.service import mesh_debate
from zuno.lp.service.mesh import check_answers


def speak_in(edition: int, side: Side, role: Role) -> None:
    """From now on this peer's letters are of that edition."""
    peer: Any = side.peers[role].peer
    peer.send_message = partial(peer.send_message, edition=edition)


async def test_an_owner_of_edition_1_is_refused_in_its_own_words(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        await side.room.endpoint.running.peer.send_message(REQUEST, OutgoingMessage(Role.SCOUT, START), None, edition=1)
        await side.room.endpoint.inbox.wait(20)
        failed: Any = (await side.entries())[1].payload
        assert "edition" not in failed  # spelled as edition 1 spells it
        assert (failed["from"], failed["payload"]["error"]) == ("scout", "refused")
        for name in ("cli", "edition 1", "scout", f"edition {EDITION}"):
            assert name in failed["payload"]["reason"]
        assert len([entry async for entry in side.journals[Role.SCOUT].entries()]) == 2  # heard, and refused


@pytest.mark.slow
@pytest.mark.parametrize(("old", "refusing"), [(Role.SCOUT, "strategist"), (Role.STRATEGIST, "critic")])
async def test_a_peer_of_an_older_edition_is_refused_by_the_next(tmp_path: Path, old: Role, refusing: str) -> None:
    async with a_mesh(tmp_path) as side:
        speak_in(1, side, old)
        with pytest.raises(Refused, match=f"{old}.*edition 1.*{refusing}.*edition {EDITION}"):
            await side.room.debate(START, deaf)


@pytest.mark.slow
async def test_a_plan_of_another_edition_is_refused_by_the_owner(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        speak_in(1, side, Role.CRITIC)
        with pytest.raises(Refused, match="edition 1"):
            await side.room.debate(START, deaf)
        assert await kinds(side) == ["flow_start", "plan_ready", "flow_failed"]


@pytest.mark.slow
async def test_a_peer_of_a_newer_edition_is_rejected_by_name(tmp_path: Path) -> None:
    async with a_mesh(tmp_path, patience=1.0) as side:
        speak_in(EDITION + 1, side, Role.SCOUT)
        with pytest.raises(Unavailable):
            await side.room.debate(START, deaf)
        (why,) = side.peers[Role.STRATEGIST].peer.stats.rejected
        assert re.search(rf"\bscout\b.*\b{EDITION + 1}\b.*\bstrategist\b.*\b{EDITION}\b", why)


@pytest.mark.slow
async def test_an_owner_stops_waiting_for_a_peer_that_came_back_in_another_edition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mesh_debate, "BEAT", 0.01)
    async with a_mesh(tmp_path, silent=[Role.SCOUT]) as side:

        async def ping(
            patience: float, roles: tuple[Role, ...] = (), answered: dict[Role, PingReply] | None = None
        ) -> dict[Role, PingReply]:
            return {Role.SCOUT: PingReply("0.1.0", 1, 0.5)}

        side.room.endpoint.ping = ping
        with pytest.raises(Unavailable, match=r"scout \(edition 1\)"):
            await side.room.debate(START, deaf)


async def test_a_debate_of_an_older_edition_is_not_joined_again(tmp_path: Path) -> None:
    async with a_mesh(tmp_path, silent=[Role.SCOUT]) as side:
        await side.room.endpoint.running.peer.send_message(REQUEST, OutgoingMessage(Role.SCOUT, START), None, edition=1)
        with pytest.raises(Refused, match="edition 1"):
            await side.room.rejoin(deaf)


async def test_a_mesh_with_another_edition_in_it_is_not_argued_on(tmp_path: Path) -> None:
    async with a_mesh(tmp_path) as side:
        answered = await side.room.endpoint.ping(5.0)
        assert {pong.edition for pong in answered.values()} == {EDITION}
        check_answers(answered, side.room.endpoint, "iroh")
        answered[Role.CRITIC] = PingReply("0.1.0", 1, 0.5)
        with pytest.raises(Refused, match=r"critic \(edition 1\)"):
            check_answers(answered, side.room.endpoint, "iroh")
        assert set(answered) == set(AGENTS)
