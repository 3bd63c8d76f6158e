"""What is told where a mesh cannot begin: that the seat is taken, or that the node is not there."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.clock.system import unix_millis
from zuno.adapters.mesh.folder import MeshFiles
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.journal import ChainedJournal
from zuno.kernel.errors import Refused, Unavailable
from zuno.lp.model.debate import Role
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
    with pytest.raises(Refused, match=f"critic of this home runs already, as process {os.getpid()}; end it first"):
        await meshes.peer(Role.CRITIC, "axl", unused, unused, parent=None)  # type: ignore[arg-type]
    assert not (files.of(Role.CRITIC) / "journal.db").exists()
    first.leave()
    await meshes.close()


async def test_whoever_cannot_begin_leaves_the_seat(tmp_path: Path) -> None:
    pytest.importorskip("iroh", reason="the iroh library is not installed: pip install 'zuno[mesh]'")
    meshes, files, unused = await set_up(tmp_path), MeshFiles(tmp_path), Any
    table = files.table()
    assert table is not None
    host, _, port = table[Role.CRITIC].iroh_address.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as somebody:
        somebody.bind((host, int(port)))
        with pytest.raises(Unavailable, match="cannot listen at"):
            await meshes.peer(Role.CRITIC, "iroh", unused, unused, parent=None)  # type: ignore[arg-type]
    assert files.lock("critic").holder() is None
    await meshes.close()


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
    with pytest.raises(Unavailable, match=f"^No AXL node answers at {url}; start it"):
        await meshes.keeper().ping("axl")
    assert [peer.answers for peer in (await meshes.keeper().status("axl")).peers] == [False] * 4
    await meshes.close()
