"""What whoever listens to a debate is told while it waits: who was asked, and since when."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from tests.wire.debating import Table, observed
from zuno.lp.mesh.envelope import from_bytes
from zuno.lp.model.debate import Kind, Role, Thought
from zuno.lp.service import recommend
from zuno.lp.service.recommend import DebateRunner, Listen, RecommendService, Waiting

BOUND = 30.0


@pytest.mark.slow
async def test_the_critic_is_waited_for_by_name_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proposal is held back until somebody was told that the critic has been asked for a second."""
    monkeypatch.setattr(recommend, "TICK", 0.05)
    table = Table(tmp_path, await observed(tmp_path / "sim"))
    heard: list[Thought | Waiting] = []
    patient = asyncio.Event()
    send = table.transport.send

    async def slow_to_the_critic(to: Role, data: bytes) -> None:
        if to is Role.CRITIC and from_bytes(data).kind is Kind.PROPOSAL:
            await asyncio.wait_for(patient.wait(), BOUND)
        await send(to, data)

    def hear(event: Thought | Waiting) -> None:
        heard.append(event)
        if isinstance(event, Waiting) and event.roles == (Role.CRITIC,) and event.seconds >= 1:
            patient.set()

    async def open_room(request_id: str | None, listen: Listen) -> DebateRunner:
        return table.room(2)

    monkeypatch.setattr(table.transport, "send", slow_to_the_critic)
    await asyncio.wait_for(RecommendService(open_room, "sim", "balanced").rebalance("1", listen=hear), BOUND)
    assert heard[0] == Waiting((Role.SCOUT,), 0)
    assert Waiting((Role.CRITIC,), 1) in heard
    for event, after in pairwise(heard):
        if isinstance(event, Thought):
            assert isinstance(after, Waiting)
            assert event.role not in after.roles
    silent = len(heard)
    await asyncio.sleep(0.2)
    assert len(heard) == silent  # nobody waits any more
