"""The first question over nodes that never met: the way there takes longer than an answer does."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from tests.wire.axl_node import FIRST_SENDS, axl_nodes
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.mesh.folder import MeshFiles
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.transport.axl import AxlTransport
from zuno.journal.journal import ChainedJournal
from zuno.kernel.errors import Unavailable
from zuno.lp.mesh.peer_process import MeshPeer
from zuno.lp.mesh.running import AGENTS, PeerRunner
from zuno.lp.model.debate import Role
from zuno.lp.service import mesh, recommend
from zuno.lp.service.mesh import MeshService
from zuno.lp.service.mesh_debate import OwnerEndpoint, OwnerInbox
from zuno.lp.service.recommend import Waiting


@asynccontextmanager
async def strangers(
    home: Path, absent: Role | None = None, without_node: Role | None = None
) -> AsyncIterator[tuple[MeshService, MeshFiles, Callable[[], None]]]:
    """Four peers and their owner, each at a node that has met no other; and what starts the absent one."""
    files = MeshFiles(home)
    keys = {role: KeyFile(files.of(role) / "peer.key") for role in Role}
    ids = {role: KeyFile(files.of(role) / "axl.key") for role in Role}

    async def nowhere(*ignored: object) -> object:
        raise AssertionError("nobody is to be asked")

    async def open_endpoint(way: str) -> OwnerEndpoint:
        inbox = OwnerInbox()
        endpoint = OwnerEndpoint(runner(Role.CLI), inbox, files, way)
        assert isinstance(endpoint.running.transport, AxlTransport)
        await endpoint.running.transport.open()
        endpoint.start()
        return endpoint

    keeper = MeshService(
        files,
        str(files.root),
        keys.__getitem__,
        ids.__getitem__,
        lambda role: (None, f"http://127.0.0.1:{9002 + 10 * list(Role).index(role)}"),
        lambda: "axl",
        open_endpoint,
        nowhere,  # type: ignore[arg-type]
        nowhere,  # type: ignore[arg-type]
        nowhere,  # type: ignore[arg-type]
    )
    await keeper.init(None, None, ())
    table = {role: key.public for role, key in keys.items()}
    peer_ids = {role: key.public for role, key in ids.items()}

    def runner(role: Role) -> PeerRunner:
        journal = ChainedJournal(MemoryStore(), keys[role], code=lambda: "test", now=unix_millis)
        return PeerRunner(
            role,
            AxlTransport(role, urls[role], peer_ids),
            lambda send: MeshPeer(
                role, None, journal, keys[role], table, send, unix_millis, chance=Random(5), code="test"
            ),
            stopwatch=time.perf_counter,
            nonce=lambda: os.urandom(8).hex(),
        )

    async with AsyncExitStack() as stack:
        fresh = axl_nodes(list(peer_ids.values()), first_sends=FIRST_SENDS, pace=0.1)
        nodes = await stack.enter_async_context(fresh)
        urls = {role: node.url for role, node in zip(peer_ids, nodes, strict=True)}
        for role, node in zip(peer_ids, nodes, strict=True):
            if role is without_node:
                await node.stop()

        def start(role: Role) -> None:
            peer = runner(role)
            peer.start()
            stack.push_async_callback(peer.close)

        for role in AGENTS:
            if role is not absent:
                start(role)
        yield keeper, files, lambda: start(absent or Role.CRITIC)


HANG = 60.0


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh, "PING_SECONDS", 0.1)
    monkeypatch.setattr(mesh, "FIRST_CONTACT_SECONDS", {"axl": HANG})


@pytest.mark.slow
async def test_whoever_runs_is_given_time_to_be_met(tmp_path: Path) -> None:
    async with strangers(tmp_path) as (keeper, files, _):
        with pytest.raises(Unavailable):  # as far as this home knows, none of them runs
            await keeper.ping("axl")
        for role in AGENTS:
            files.lock(role.value).take()
        assert set((await keeper.ping("axl")).answered) == {role.value for role in AGENTS}


@pytest.mark.slow
async def test_routes_that_are_warm_answer_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with strangers(tmp_path) as (keeper, _, _):
        assert await keeper.warm_routes("axl", AGENTS) == ()
        monkeypatch.setattr(mesh, "PING_SECONDS", HANG)  # without a lock no more is given
        assert set((await keeper.ping("axl")).answered) == {role.value for role in AGENTS}
        assert await keeper.warm_routes("iroh", AGENTS) == ()  # where first contact is quick nobody is asked


@pytest.mark.slow
@pytest.mark.parametrize("command", ["plan", "ping"])
async def test_whoever_waits_is_told_who_has_not_answered_and_for_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(recommend, "TICK", 0.05)
    heard: list[tuple[float, Waiting]] = []
    now = asyncio.get_running_loop().time
    async with strangers(tmp_path, absent=Role.CRITIC) as (keeper, files, start_critic):
        for role in AGENTS:
            files.lock(role.value).take()

        started = False

        def hear(event: object) -> None:
            nonlocal started
            assert isinstance(event, Waiting)
            heard.append((now(), event))
            if not started and event.roles == (Role.CRITIC,) and event.seconds >= 1:
                started = True
                start_critic()

        began = now()
        if command == "plan":
            endpoint = await keeper.endpoint_for("axl", lambda: "test", pytest.fail, hear)
            assert endpoint is not None
            await endpoint.aclose()
        else:
            await keeper.ping("axl", hear)
    asked, first = heard[0]
    assert first == Waiting(AGENTS, 0)
    assert started  # the critic alone was waited for, and it was asked at once with the others
    for (before, _), (at, event) in pairwise([(at, event) for at, event in heard if event.roles]):
        assert int(before - asked) <= event.seconds <= at - began
    assert "critic" in str(Waiting((Role.CRITIC,), 12))
    assert "12 s" in str(Waiting((Role.CRITIC,), 12))


async def test_a_status_tells_whom_it_waits_for(tmp_path: Path) -> None:
    heard: list[object] = []
    async with strangers(tmp_path, absent=Role.CRITIC) as (keeper, _, _):
        await keeper.status("axl", heard.append)
    assert heard[0] == Waiting(AGENTS, 0)


async def test_routes_are_not_warmed_through_a_node_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever watches is to hear so now, and not when first contact is given up."""
    monkeypatch.setattr(mesh, "FIRST_CONTACT_SECONDS", {"axl": 600.0})
    async with strangers(tmp_path, without_node=Role.CLI) as (keeper, files, _), asyncio.timeout(HANG):
        with pytest.raises(Unavailable, match=r"\[node: late\]$"):
            await keeper.warm_routes("axl", AGENTS)
        for role in AGENTS:
            files.lock(role.value).take()
        with pytest.raises(Unavailable, match=r"\[node: late\]$"):  # nobody can be asked, however long it takes
            await keeper.ping("axl")
