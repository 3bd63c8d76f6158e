"""Peers and AXL nodes as child processes with a log each; a peer ends when its parent is gone."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from zuno.adapters.mesh.folder import MeshFiles
from zuno.adapters.part_processes import LoggedChild, end_orphans, note_child, start_logged
from zuno.kernel.errors import UsageError
from zuno.lp.model.debate import Role


class Processes:
    """`axl_node` is the node's binary, if one is set."""

    def __init__(self, home: Path, files: MeshFiles, axl_node: Path | None) -> None:
        self._home = home
        self._files = files
        self._axl_node = axl_node
        self.has_nodes = axl_node is not None

    def peer(self, role: Role, transport: str) -> LoggedChild:
        parent, home = str(os.getpid()), str(self._home)
        words = ["peer", role.value, "--transport", transport, "--child-of", parent, "--home", home]
        return start_logged([sys.executable, "-m", "zuno", *words], self._files.of(role) / "peer.log")

    def node(self, role: Role) -> LoggedChild:
        if self._axl_node is None:
            raise UsageError("No AXL node binary is set; set ZUNO_AXL_NODE to it, or start the nodes yourself.")
        config = self._files.node_config(role)
        # Somebody else's program: it is told where it is, and none of our keys.
        plain = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        child = start_logged([str(self._axl_node), "-config", str(config)], self._files.of(role) / "axl.log", plain)
        with suppress(OSError):  # then it is left to its owner, should we be killed
            note_child(self._pid_file(role), child.pid)
        return child

    async def end_orphans(self) -> tuple[int, ...]:
        return await end_orphans(map(self._pid_file, Role))

    def _pid_file(self, role: Role) -> Path:
        return self._files.of(role) / "axl.pid"
