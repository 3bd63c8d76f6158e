"""`$ZUNO_HOME/mesh`: the table of roles, a folder for each with its keys, its journal and its last report; and peers
and AXL nodes as child processes with a log each. A peer ends when its parent is gone."""

import json
import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from zuno.adapters.atomic_file import read_file, replace_file, translate_write_errors
from zuno.adapters.file_lock import FileLock, mesh_lock
from zuno.adapters.part_processes import LoggedChild, end_orphans, note_child, start_logged
from zuno.kernel.errors import Broken, UsageError
from zuno.kernel.wire import Wire
from zuno.lp.model.debate import Role
from zuno.lp.ports.mesh import PeerAddress, PeerReport, RunningMesh, Table

UP: Final = "up"
AXL_TCP_PORT: Final = 7000
"""Equal on all nodes; a port inside the overlay, so it conflicts with nothing."""
_LONGEST_TABLE: Final = 64 * 1024
_PIN_SECONDS: Final = 60.0
_MOST_PINS: Final = 128
"""Per role; more pings in a minute get no answer."""


class _TableFile(Wire):
    version: Literal[1] = 1
    roles: dict[Role, PeerAddress]


class MeshFiles:
    def __init__(self, home: Path) -> None:
        self.root = home / "mesh"
        self._table = self.root / "mesh.json"
        self._ports: set[int] = set()

    def of(self, role: Role) -> Path:
        return self.root / role.value

    def table(self) -> Table | None:
        text = read_file(self._table)
        try:
            return None if text is None else _parse_table(text)
        except ValueError:
            raise Broken(f"{self._table} is damaged; put it back from a copy, or from another machine's.") from None

    def keep_table(self, table: Table) -> None:
        file = _TableFile(roles=dict(table))
        self._write(self._table, file.model_dump_json(by_alias=True, indent=1).encode() + b"\n")

    def table_of(self, path: str) -> Table:
        try:
            with open(path, "rb") as file:
                return _parse_table(file.read(_LONGEST_TABLE))
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error.strerror}).") from error
        except ValueError:
            raise UsageError(
                f"{path} is no table of a mesh; copy the mesh/mesh.json of the other machine's home."
            ) from None

    def node_config(self, role: Role) -> Path:
        return self.of(role) / "axl.json"

    def keep_node(self, role: Role, table: Table) -> None:
        """Each node links to the roles before it in the table, so that every pair has one link and none is doubled."""
        own, before = table[role], list(table)[: list(table).index(role)]
        listens = urlsplit(own.axl_listens)
        config = {
            "PrivateKeyPath": str((self.of(role) / "axl.key").absolute()),
            "Peers": [table[other].axl_listens for other in before],
            "Listen": [f"{listens.scheme}://{listen_host(listens.hostname or '')}:{listens.port}"],
            "api_port": urlsplit(own.axl_api_url).port or 9002,
            "tcp_port": AXL_TCP_PORT,
            "bridge_addr": "127.0.0.1",
        }
        self._write(self.node_config(role), json.dumps(config, indent=1).encode() + b"\n")

    def free_port(self, host: str) -> int:
        at = listen_host(host)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket() as tcp, suppress(OSError):
            udp.bind((at, 0))
            port = int(udp.getsockname()[1])
            tcp.bind((at, port))
            if port not in self._ports:
                self._ports.add(port)
                return port
        return self.free_port(host)

    def lock(self, name: str) -> FileLock:
        if name == UP:
            return mesh_lock(self.root.parent)
        held = f"The {name} of this home runs already, as {{}}; end it first."
        return FileLock(self.root / name / "peer.lock", held)

    def report(self, role: Role) -> PeerReport | None:
        with suppress(OSError, ValueError):
            return PeerReport.model_validate_json((self.of(role) / "report.json").read_bytes())
        return None

    def keep_report(self, role: Role, report: PeerReport) -> None:
        self._write(self.of(role) / "report.json", report.model_dump_json(by_alias=True).encode())

    def pin(self, role: Role, nonce: str, code: str) -> None:
        board, fresh = self.root / "pongs", 0
        for old in board.glob(f"{role.value}-*"):
            with suppress(OSError):
                if old.stat().st_mtime < time.time() - _PIN_SECONDS:
                    old.unlink()
                else:
                    fresh += 1
        if fresh < _MOST_PINS:
            self._write(board / f"{role.value}-{nonce}", code.encode())

    def pinned_reply(self, role: Role, nonce: str) -> str | None:
        with suppress(OSError, ValueError):
            return (self.root / "pongs" / f"{role.value}-{nonce}").read_text(encoding="utf-8")
        return None

    def keep_running_mesh(self, mesh: RunningMesh) -> None:
        self._write(self.root / "kept.json", mesh.model_dump_json(by_alias=True).encode())

    def running_mesh(self) -> RunningMesh | None:
        return None if self.lock(UP).holder() is None else self.last_mesh()

    def last_mesh(self) -> RunningMesh | None:
        with suppress(OSError, ValueError):
            return RunningMesh.model_validate_json((self.root / "kept.json").read_bytes())
        return None

    def _write(self, path: Path, content: bytes) -> None:
        with translate_write_errors(path):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            replace_file(path, content, durable=False)


def _parse_table(text: bytes) -> Table:
    """`ValueError` for anything but a table of all roles."""
    table = _TableFile.model_validate_json(text)
    if set(table.roles) != set(Role):
        raise ValueError
    return {role: table.roles[role] for role in Role}


def listen_host(host: str) -> str:
    """The address to listen at to be reached under that name: loopback, or every address of this machine."""
    return "127.0.0.1" if host.lower().rstrip(".") == "localhost" else host if host.startswith("127.") else "0.0.0.0"


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
