"""What is told where a mesh cannot begin: that the seat is taken, or that the node is not there."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.wire.axl_node import AxlNode, Manner, axl_nodes
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.mesh.folder import MeshFiles
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.transport import axl
from zuno.journal.journal import ChainedJournal
from zuno.kernel.errors import Refused, Unavailable
from zuno.lp.mesh.running import AGENTS
from zuno.lp.model.debate import Role
from zuno.lp.service import mesh
from zuno.settings import read_settings
from zuno.wiring.mesh import Meshes


async def nowhere(*ignored: Any) -> Any:
    raise AssertionError("the owner is not asked")


async def set_up(home: Path, journal: Callable[[], Awaitable[Any]] = nowhere) -> Meshes:
    meshes = Meshes(read_settings(os.environ, home), journal, nowhere)
    await meshes.keeper().init(None, None, ())
    return meshes


async def test_whoever_comes_second_is_told_who_runs_and_opens_nothing(tmp_path: Path) -> None:
    meshes, files, unused = await set_up(tmp_path), MeshFiles(tmp_path), Any
    first = files.lock("critic")
    first.take()
    with pytest.raises(Refused, match=f"critic.*process {os.getpid()}"):
        await meshes.peer(Role.CRITIC, "axl", unused, unused, parent=None)  # type: ignore[arg-type]
    assert not (files.of(Role.CRITIC) / "journal.db").exists()
    first.leave()
    await meshes.close()


async def test_whoever_cannot_begin_leaves_the_seat(tmp_path: Path) -> None:
    pytest.importorskip("iroh", reason="the iroh library is not installed: make mesh")
    meshes, files, unused = await set_up(tmp_path), MeshFiles(tmp_path), Any
    table = files.table()
    assert table is not None
    host, _, port = table[Role.CRITIC].iroh_address.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as somebody:
        somebody.bind((host, int(port)))
        with pytest.raises(Unavailable, match="listen"):
            await meshes.peer(Role.CRITIC, "iroh", unused, unused, parent=None)  # type: ignore[arg-type]
    assert files.lock("critic").holder() is None
    await meshes.close()


@pytest.mark.slow
async def test_a_node_that_is_not_there_is_named_and_not_the_peers_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    monkeypatch.setenv("ZUNO_AXL_CLI_API_URL", url)

    async def journal() -> Any:
        return ChainedJournal(MemoryStore(), meshes.key(Role.CLI), code=lambda: "test", now=unix_millis)

    meshes = await set_up(tmp_path, journal)
    with pytest.raises(Unavailable, match=f"AXL.*{url}"):
        await meshes.keeper().ping("axl")
    assert [peer.answers for peer in (await meshes.keeper().status("axl")).peers] == [False] * 4
    for _ in range(3):  # whoever keeps a mesh running opens one every moment until its node is there
        with pytest.raises(Unavailable):
            await meshes.keeper().warm_routes("axl", AGENTS)
    assert len(meshes._endpoints) == 1
    await meshes.close()


# -- whose node answers


@asynccontextmanager
async def homes_at(nodes_of: Path, asking: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Any, AxlNode]]:
    """`asking` reads its mail at the URL of the owner's node of `nodes_of`."""
    theirs = (await set_up(nodes_of)).keeper().table()
    async with axl_nodes([theirs[Role.CLI].axl_peer_id]) as (node,):
        monkeypatch.setenv("ZUNO_AXL_CLI_API_URL", node.url)

        async def journal() -> Any:
            return ChainedJournal(MemoryStore(), meshes.key(Role.CLI), code=lambda: "test", now=unix_millis)

        meshes = await set_up(asking, journal)
        yield meshes, node
        await meshes.close()


async def test_two_homes_share_no_port(tmp_path: Path) -> None:
    ports: list[str] = []
    for name in ("one", "other"):
        meshes = await set_up(tmp_path / name)
        table = meshes.keeper().table()
        ports += [url.rpartition(":")[2] for line in table.values() for url in (line.axl_api_url, line.axl_listens)]
        ports += [line.iroh_address.rpartition(":")[2] for line in table.values()]
        await meshes.keeper().init(None, None, ())
        assert meshes.keeper().table() == table  # what was chosen stays
    assert len({*ports[:15]}) == len({*ports[15:]}) == 15
    assert not {*ports} & {"9002", "9012", "9022", "9032", "9042"}


async def test_another_homes_node_is_named_asked_nothing_and_no_mesh_is_up_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with homes_at(tmp_path / "theirs", tmp_path / "ours", monkeypatch) as (meshes, node):
        node.inbox.append(("f" * 64, b"\x01for its owner"))
        view = await meshes.keeper().status("axl")
        assert view.node == "not ours"
        assert node.url in view.node_why
        assert [peer.answers for peer in view.peers] == [False] * 4
        with pytest.raises(Unavailable, match=r"\[node: not ours\]$"):
            await meshes.keeper().ping("axl")
        with pytest.raises(Unavailable, match=r"\[node: not ours\]$"):
            await meshes.keeper().warm_routes("axl", AGENTS)  # what `mesh up` does before it says that it is up
        assert len(node.inbox) == 1
        assert {request.path for request in node.heard} == {"/topology"}


@pytest.mark.parametrize(("manner", "state"), [("garbage", "not AXL"), ("html", "not AXL"), ("half-open", "late")])
async def test_a_broken_node_is_in_the_status_and_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manner: Manner, state: str
) -> None:
    monkeypatch.setattr(axl, "OPEN_PATIENCE", 0.3)
    monkeypatch.setattr(mesh, "PING_SECONDS", 0.3)
    async with homes_at(tmp_path, tmp_path, monkeypatch) as (meshes, node):
        assert (await meshes.keeper().status("axl")).node == "ok"
        node.manner = manner
        view = await meshes.keeper().status("axl")
        assert (view.node, node.url in view.node_why) == (state, True)
        with pytest.raises(Unavailable, match=rf"\[node: {state}\]$"):
            await meshes.keeper().ping("axl")


async def test_peers_that_are_silent_behind_a_sound_node_are_told_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mesh, "PING_SECONDS", 0.3)
    async with homes_at(tmp_path, tmp_path, monkeypatch) as (meshes, _):
        with pytest.raises(Unavailable, match=rf"{', '.join(AGENTS)}.*\[node: ok\]$"):
            await meshes.keeper().ping("axl")
