"""Storage and processes of a mesh: the peer table, a lock for each role, and the peers this machine runs."""

from collections.abc import Mapping
from typing import Annotated, Protocol

from pydantic import Field

from zuno.kernel.children import Child
from zuno.kernel.lock import ProcessLock
from zuno.kernel.units import Millis
from zuno.kernel.wire import Hex64, Wire
from zuno.lp.model.debate import Role
from zuno.lp.ports.transport import NodeHealth


class PeerAddress(Wire):
    """One role in the table everybody shares: whose key it has, and where it is reached. Nothing of it is secret."""

    key: Hex64
    """What it signs with, and its iroh endpoint id."""
    iroh_address: Annotated[str, Field(pattern=r"^\S+:[0-9]{1,5}$", max_length=300)]
    axl_peer_id: Hex64
    """Of the node it stands behind, which has a key of its own."""
    axl_api_url: Annotated[str, Field(pattern=r"^https?://\S+$", max_length=300)]
    axl_listens: Annotated[str, Field(pattern=r"^(tls|tcp|quic)://\S+$", max_length=300)]
    """Where its node takes links from the other nodes, e.g. `tls://127.0.0.1:9001`."""


Table = Mapping[Role, PeerAddress]


class PeerReport(Wire):
    """How a peer of this machine says it is. What it counts goes on where its last life ended."""

    pid: int
    since: Millis
    at: Millis
    code: str
    transport: str
    heard: int
    said: int
    again: int
    dead: int
    rejected: Mapping[str, int]
    """Reasons, and how often."""
    round_trips: Mapping[str, float]
    """Milliseconds to each role that answered its last ping."""
    strangers: int = 0
    node: NodeHealth | None = None


class RunningMesh(Wire):
    """A mesh that is kept running: over what, and how often each peer ever had to be started again."""

    transport: str
    restarts: Mapping[str, int]


class PeerLock(ProcessLock, Protocol):
    """A lock that also tells who holds it."""

    def holder(self) -> int | None:
        """The process that has it now."""


class MeshFolder(Protocol):
    """Promises one table for a home, kept whole or not at all, and beside it what peers of this machine leave there.
    What cannot be read is `Broken` and stays as it is; what cannot be written is `Unavailable`."""

    def table(self) -> Table | None:
        """None: no mesh was ever set up here."""

    def keep_table(self, table: Table) -> None: ...

    def table_of(self, path: str) -> Table:
        """The table of another machine, from a copied file. `UsageError` where the file is not a table."""

    def keep_node(self, role: Role, table: Table) -> None:
        """What the role's AXL node is started with: its own key, its own links, no public peer."""

    def free_port(self, host: str) -> int:
        """A port that is free for UDP and TCP, another one each time."""

    def lock(self, name: str) -> PeerLock:
        """The lock of a role, or of the process that keeps the peers running."""

    def report(self, role: Role) -> PeerReport | None:
        """What the peer said last, if it said anything."""

    def keep_report(self, role: Role, report: PeerReport) -> None: ...

    def pin(self, role: Role, nonce: str, code: str) -> None:
        """An answer to another process's ping: several command lines share one endpoint."""

    def pinned_reply(self, role: Role, nonce: str) -> str | None: ...
    def keep_running_mesh(self, mesh: RunningMesh) -> None: ...

    def running_mesh(self) -> RunningMesh | None:
        """The mesh that a process of this home keeps running; None where none does."""

    def last_mesh(self) -> RunningMesh | None:
        """The mesh that was kept running last, be it still or not."""


class PeerProcesses(Protocol):
    """Promises peers that end when their parent is gone, and nodes that do not and are found again."""

    def peer(self, role: Role, transport: str) -> Child: ...

    @property
    def has_nodes(self) -> bool:
        """Whether it can start AXL nodes too."""

    def node(self, role: Role) -> Child: ...

    async def end_orphans(self) -> tuple[int, ...]:
        """Ends the nodes that an earlier life started here and could not end, for it was killed; which processes those
        were. Whoever asks has the lock of the keeper, so that no other life needs them. Nothing else is touched."""
