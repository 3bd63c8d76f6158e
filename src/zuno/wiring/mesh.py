"""Wire the mesh: keys, folders and transports of the owner's endpoint and of each agent's process."""

import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from random import Random
from time import perf_counter

from zuno.adapters.clock.system import unix_millis
from zuno.adapters.file_lock import ProcessIdentity, start_time
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.mesh.folder import MeshFiles, Processes, listen_host
from zuno.adapters.part_processes import end_process
from zuno.adapters.store.sqlite import open_sqlite
from zuno.adapters.transport.inbox import InProcess
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Journal
from zuno.kernel.errors import Refused, Unavailable, UsageError
from zuno.llm.ask import ModelContext
from zuno.lp.agents.arbiter import Arbiter
from zuno.lp.agents.critic import Critic
from zuno.lp.agents.scout import Observe, Scout
from zuno.lp.agents.strategist import Recall, Strategist
from zuno.lp.mesh.delivery import Outgoing
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.peer import Peer
from zuno.lp.mesh.peer_process import MeshPeer
from zuno.lp.mesh.running import AGENTS, PeerRunner
from zuno.lp.model.debate import Role
from zuno.lp.ports.mesh import Table
from zuno.lp.ports.transport import Transport
from zuno.lp.service.mesh import MeshService
from zuno.lp.service.mesh_debate import MeshDebateRunner, OwnerEndpoint, OwnerInbox
from zuno.lp.service.mesh_peer import PeerPerDebate, PeerService
from zuno.lp.service.mesh_supervisor import MeshHost
from zuno.lp.service.recommend import LocalDebateRunner
from zuno.lp.service.recorded_request import load_context
from zuno.settings import Settings
from zuno.wiring.models import Models
from zuno.wiring.outbox import print_line
from zuno.wiring.shared import check_editions
from zuno.wiring.version import code_version

OpenJournal = Callable[[], Awaitable["Journal"]]
OpenRoom = Callable[["OwnerEndpoint", str], Awaitable["MeshDebateRunner"]]
Seat = Callable[["Recall", "ModelContext"], "Peer"]
_END_SECONDS = 15.0


class Meshes:
    def __init__(self, settings: Settings, journal: OpenJournal, room: OpenRoom) -> None:
        self._settings = settings
        self._journal = journal
        self._room = room
        self._endpoints: list[OwnerEndpoint] = []
        self._books: list[ChainedJournal] = []

    def keeper(self) -> MeshService:
        files = self._files()
        return MeshService(
            files,
            str(files.root),
            self.key,
            lambda role: self._key_file(role, "axl.key"),
            self._axl,
            default_transport,
            self._open_endpoint,
            self._rejoin,
            lambda pid: end_process(ProcessIdentity(pid, start_time(pid) or ""), (signal.SIGTERM,), _END_SECONDS),
            lambda: self._peer_processes().end_orphans(),
        )

    def host(self) -> MeshHost:
        return MeshHost(self.keeper(), self._files(), self._peer_processes(), unix_millis, perf_counter)

    def _peer_processes(self) -> Processes:
        return Processes(self._settings.home, self._files(), self._settings.axl_node)

    async def peer(self, role: Role, way: str, models: Models, observe: Observe, *, parent: int | None) -> PeerService:
        """One agent in this process, with its own journal."""
        if role is Role.CLI:
            raise UsageError("The owner speaks by commands; scout, strategist, critic and arbiter run as peers.")
        self._own_key(role)
        files = self._files()
        lock = files.lock(role.value)
        lock.take()  # first: whoever comes second is told so, and not that a port is taken
        try:
            journal = self._open_peer_journal(role)
            await check_editions(journal)
            for note in await journal.start():
                print_line(note)

            def build_agent(request_id: str) -> Peer:
                model_context = models.model_context(journal, request_id, models.registry())
                return build_agents(journal, observe, model_context)[role]

            peer = PeerPerDebate(role, build_agent, print_line, perf_counter)
            running = await self._running(role, way, peer, journal, None)
        except BaseException:
            lock.leave()
            raise
        return PeerService(
            role=role,
            transport=way,
            running=running,
            folder=files,
            lock=lock,
            code=code_version(),
            now=unix_millis,
            orphaned=lambda: parent is not None and os.getppid() != parent,
            tell=print_line,
        )

    def journals(self) -> Sequence[Journal]:
        """The journals of this home's peers, to read."""
        there = [role for role in AGENTS if (self._files().of(role) / "journal.db").exists()]
        return [self._open_peer_journal(role) for role in there]

    def key(self, role: Role) -> KeyFile:
        return self._key_file(role, "peer.key")

    async def close(self) -> None:
        for endpoint in self._endpoints:
            await endpoint.aclose()
        for book in self._books:
            await book.close()

    def _open_peer_journal(self, role: Role) -> ChainedJournal:
        store, secrets = open_sqlite(self._files().of(role)), self._settings.secrets()
        book = ChainedJournal(store, self.key(role), code=code_version, now=unix_millis, secrets=secrets)
        self._books.append(book)
        return book

    async def _rejoin(self, request_id: str) -> MeshDebateRunner:
        return await self._room(await self._open_endpoint(self.keeper().way(None)), request_id)

    async def _open_endpoint(self, way: str) -> OwnerEndpoint:
        inbox = OwnerInbox()
        running = await self._running(Role.CLI, way, None, await self._journal(), inbox.hear)
        endpoint = OwnerEndpoint(running, inbox, self._files(), way)
        self._endpoints = [*(other for other in self._endpoints if not other.closed), endpoint]
        endpoint.start()
        return endpoint

    async def _running(
        self,
        role: Role,
        way: str,
        peer: Peer | None,
        journal: Journal,
        listen: Callable[[Envelope], Awaitable[None]] | None,
    ) -> PeerRunner:
        table, key = self.keeper().table(), self._own_key(role)
        keys = {peer: line.key for peer, line in table.items()}

        def open_peer(send: Callable[[Outgoing], Awaitable[None]]) -> MeshPeer:
            return MeshPeer(
                role, peer, journal, key, keys, send, unix_millis, chance=Random(), code=code_version(), listen=listen
            )

        transport = await self._transport(role, way, table)
        return PeerRunner(role, transport, open_peer, stopwatch=perf_counter, nonce=lambda: os.urandom(8).hex())

    async def _transport(self, role: Role, way: str, table: Table) -> Transport:
        if way == "axl":
            from zuno.adapters.transport.axl import AxlTransport

            ids = {peer: self._axl(peer)[0] or line.axl_peer_id for peer, line in table.items()}
            axl = AxlTransport(role, self._axl(role)[1] or table[role].axl_api_url, ids)
            await axl.open()
            return axl
        from zuno.adapters.transport.iroh import IrohPeer, IrohTransport

        book = {peer: IrohPeer(line.key, line.iroh_address) for peer, line in table.items()}
        host, _, port = table[role].iroh_address.rpartition(":")
        bind = listen_host(host)
        secret = self.key(role).secret()
        transport = IrohTransport(role, secret, book, bind=f"{bind}:{port}")
        try:
            await transport.open()
        except Unavailable:
            if role is not Role.CLI:
                raise
            await transport.close()
            transport = IrohTransport(role, secret, book, bind=f"{bind}:0")  # another command line sits there
            await transport.open()
        return transport

    def _own_key(self, role: Role) -> KeyFile:
        key, line = self.key(role), self.keeper().table()[role]
        if not key.exists() or key.public != line.key:
            raise Refused(f"The {role} of this mesh lives elsewhere: the table has another key than this home.")
        return key

    def _axl(self, role: Role) -> tuple[str | None, str | None]:
        """Peer id and API URL that are set for a role's AXL node."""
        name = f"axl_{role.value}"
        return getattr(self._settings, f"{name}_peer_id"), getattr(self._settings, f"{name}_api_url")

    def _files(self) -> MeshFiles:
        return MeshFiles(self._settings.home)

    def _key_file(self, role: Role, name: str) -> KeyFile:
        return KeyFile(self._files().of(role) / name)


def build_agents(
    journal: Journal, observe: Observe, model_context: ModelContext, seats: Mapping[Role, Seat] | None = None
) -> dict[Role, Peer]:
    """The four agents of one debate. `seats`: replacements, for a lab."""
    recall = partial(load_context, journal)
    usual: dict[Role, Seat] = {Role.STRATEGIST: Strategist, Role.CRITIC: Critic, Role.ARBITER: Arbiter}
    others = {role: seat(recall, model_context) for role, seat in {**usual, **(seats or {})}.items()}
    return {Role.SCOUT: Scout(observe, journal.put_bundle, model_context), **others}


def build_local_debate(
    journal: Journal,
    key: KeyFile,
    request_id: str,
    rounds: int,
    observe: Observe,
    model_context: ModelContext,
    patience: float,
    seats: Mapping[Role, Seat] | None = None,
) -> LocalDebateRunner:
    """A debate in this process. `patience`: seconds after which a debate without an end has failed."""
    key.ensure()
    peers = tuple(build_agents(journal, observe, model_context, seats).values())
    return LocalDebateRunner(peers, InProcess(), journal, key, unix_millis, request_id, rounds, patience)


def default_transport() -> str:
    return "axl" if find_spec("iroh") is None else "iroh"
