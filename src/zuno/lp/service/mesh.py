"""The mesh as people run it: set up, looked at, asked whether it is there, and joined again."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from zuno.kernel.errors import Malformed, Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.signing import NodeKey
from zuno.kernel.view import ForeignText, View, sanitise
from zuno.kernel.wire import derive
from zuno.lp.mesh.running import AGENTS, PingReply
from zuno.lp.model.debate import Role
from zuno.lp.model.plan import PLAN_KIND
from zuno.lp.ports.mesh import MeshFolder, PeerAddress, Table
from zuno.lp.ports.transport import NodeHealth, NodeState
from zuno.lp.service.mesh_debate import MeshDebateRunner, OpenEndpoint, OwnerEndpoint, add_node, other_editions
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.recommend import Listen, ignore_event, record_plan, tell_waiting
from zuno.present.document import Document, Tone, Value, document, lines, table
from zuno.present.values import bad, count, foreign, good, id_, number, quiet, when

TRANSPORTS: Final = ("iroh", "axl")
IN_PROCESS: Final = "inproc"
PING_SECONDS: Final = 1.5
FIRST_CONTACT_SECONDS: Final = MappingProxyType({"axl": 25.0})
"""For whoever may be there and did not answer by then: nodes that never met look for the way, each for up to 7 s."""
NOT_SET_UP: Final = "No mesh is set up in this home; `zuno mesh init` does so."
Answers = Mapping[Role, PingReply]
_COUNTS: Final = {"since", "heard", "said", "dead", "strangers"}
_HOST: Final = re.compile(r"[A-Za-z0-9.-]{1,253}")
_NODE_PORT: Final = re.compile(r"https?://[^/]*:([0-9]{1,5})(/|$)")
_REQUEST: Final = re.compile(r"req_[0-9a-f]{16}")


class RoleLine(View):
    """A role in the table."""

    role: str
    key: str
    here: bool
    """Its private key is in this home."""
    iroh_address: str
    axl_peer_id: str
    axl_api_url: str


class MeshTableView(View):
    folder: str
    roles: tuple[RoleLine, ...]
    said: str

    def to_document(self) -> Document:
        rows = (
            (
                line.role,
                id_(f"{line.key[:16]}…"),
                "here" if line.here else quiet("elsewhere"),
                foreign(line.iroh_address),
                foreign(line.axl_api_url),
            )
            for line in self.roles
        )
        return document(
            self.said,
            table(("role", "key", "kept", "iroh", "AXL"), rows, spare=("AXL",)),
            lines(quiet(f"The table is {self.folder}/mesh.json; nothing in it is secret.")),
        )


class PeerView(View):
    role: str
    here: bool
    pid: int | None
    since: int | None
    restarts: int
    answers: bool | None
    """To a ping of ours; None where it was not asked."""
    round_trip_ms: float | None
    version: ForeignText | None
    edition: int | None
    """Of the rules it argues by; None where it did not answer."""
    heard: int | None
    said: int | None
    rejected: int | None
    dead: int | None
    reasons: dict[ForeignText, int]
    strangers: int | None
    """Messages of senders that are not in the table. Like every number of messages here, since the mesh was set up."""
    node: NodeState | None = None
    """Its AXL node, as it says itself; None over iroh, and of a peer elsewhere."""
    node_why: ForeignText = ""

    @property
    def state(self) -> Value:
        if self.answers is not None:
            return good("answers") if self.answers else bad("silent")
        return good("there") if self.since is not None else bad("not there")


class MeshView(View):
    transport: str
    kept_by: int | None
    """The process of `zuno mesh up`, if one runs."""
    peers: tuple[PeerView, ...]
    node: NodeState | None = None
    """The owner's AXL node; None over iroh, and where it was not asked."""
    node_why: ForeignText = ""

    def to_document(self) -> Document:
        kept = "kept running by nobody here" if self.kept_by is None else f"kept running by process {self.kept_by}"
        over = self.transport if self.node is None else f"{self.transport} (node: {self.node})"
        nodes = [("cli", self.node, self.node_why), *((peer.role, peer.node, peer.node_why) for peer in self.peers)]
        wrong = (foreign(f"{role} node: {node}. {why}", Tone.BAD) for role, node, why in nodes if why)
        rejected = (
            foreign(f"{peer.role} rejected {times}× {why}", Tone.QUIET)
            for peer in self.peers
            for why, times in peer.reasons.items()
        )
        columns = ("peer", "state", "node", "process", "since", "restarts", "round trip", "heard", "said", "rejected")
        return document(
            f"The mesh over {over}, {kept}",
            table(
                (*columns, "strangers", "dead", "version"),
                map(_peer_row, self.peers),
                spare=("version", "since", "restarts"),
            ),
            lines(*wrong),
            lines(*rejected),
        )


def _peer_row(peer: PeerView) -> tuple[str | Value, ...]:
    return (
        peer.role,
        peer.state,
        Value(peer.node or "", Tone.GOOD if peer.node == "ok" else Tone.BAD),
        "elsewhere" if not peer.here else "" if peer.pid is None else str(peer.pid),
        "" if peer.since is None else when(peer.since // 1000),
        count(peer.restarts),
        "" if peer.round_trip_ms is None else number(peer.round_trip_ms, 1, unit="ms"),
        _count(peer.heard),
        _count(peer.said),
        _count(peer.rejected, is_fault=True),
        _count(peer.strangers),
        _count(peer.dead, is_fault=True),
        foreign(peer.version or ""),
    )


def _count(value: int | None, *, is_fault: bool = False) -> str | Value:
    return "" if value is None else count(value).with_tone(Tone.BAD if is_fault and value else Tone.PLAIN)


class PingView(View):
    transport: str
    answered: dict[str, float]
    """Milliseconds, by role."""
    silent: tuple[str, ...]

    def to_document(self) -> Document:
        rows = ((role, number(trip, 1, unit="ms")) for role, trip in self.answered.items())
        return document(f"All four answer over {self.transport}", table(("peer", "round trip"), rows))


class DownView(View):
    said: str

    def to_document(self) -> Document:
        return document(self.said)


@dataclass(frozen=True, slots=True)
class MeshService:
    folder: MeshFolder
    where: str
    key_of: Callable[[Role], NodeKey]
    node_key_of: Callable[[Role], NodeKey]
    axl_of: Callable[[Role], tuple[str | None, str | None]]
    """The peer id and API URL that are set for a role."""
    default_transport: Callable[[], str]
    open_endpoint: OpenEndpoint
    open_room: Callable[[str], Awaitable[MeshDebateRunner]]
    """For a request that began."""
    end_process: Callable[[int], Awaitable[bool]]
    end_orphans: Callable[[], Awaitable[tuple[int, ...]]]

    async def init(self, host: str | None, join: str | None, there: Sequence[str]) -> MeshTableView:
        """Make what is missing and leave the rest: keys are never written again, lines of roles elsewhere stay.

        `join` names another machine's table, `there` the roles that live there.
        """
        if host is not None and not _HOST.fullmatch(host):
            raise UsageError(f"{host[:80]!r} is no host; give a name or an IPv4 address others reach this machine by.")
        taken = self._read_other_table(join, there)
        before = self.folder.table() or {}
        for role in Role:
            self.key_of(role).ensure()
            self.node_key_of(role).ensure()
        table = {role: taken.get(role) or self._line(role, before.get(role), host) for role in Role}
        self.folder.keep_table(table)
        for role in Role:
            if self._here(role, table[role]):
                self.folder.keep_node(role, table)
        shown = (derive(RoleLine, table[role], role=role.value, here=self._here(role, table[role])) for role in Role)
        said = "The mesh is set up; `zuno mesh up` starts it."
        return MeshTableView(folder=self.where, roles=tuple(shown), said=said)

    def _read_other_table(self, path: str | None, there: Sequence[str]) -> Table:
        if path is None:
            if there:
                raise UsageError("--role says which roles live on the machine of --join; name its table.")
            return {}
        if not there:
            raise UsageError("--join needs --role for each role that lives on the other machine, e.g. --role critic.")
        roles = [parse_role(text) for text in there]
        other = self.folder.table_of(path)
        return {role: other[role] for role in roles}

    def _line(self, role: Role, before: PeerAddress | None, host: str | None) -> PeerAddress:
        """A role of this machine, or as it stood."""
        if before is not None and not self._here(role, before):
            return before
        known, url = self.axl_of(role)
        stood, _, port = before.iroh_address.rpartition(":") if before else ("127.0.0.1", "", "")
        at = host or stood
        if url is not None:
            listens = str(int(match[1]) - 1) if (match := _NODE_PORT.match(url)) else "9001"
        elif before is not None:
            url, listens = before.axl_api_url, before.axl_listens.rpartition(":")[2]
        else:
            url, listens = f"http://127.0.0.1:{self.folder.free_port('127.0.0.1')}", str(self.folder.free_port(at))
        return PeerAddress(
            key=self.key_of(role).public,
            iroh_address=f"{at}:{port or self.folder.free_port(at)}",
            axl_peer_id=known or self.node_key_of(role).public,
            axl_api_url=url,
            axl_listens=f"tls://{at}:{listens}",
        )

    def _here(self, role: Role, line: PeerAddress) -> bool:
        key = self.key_of(role)
        return key.exists() and key.public == line.key

    def exists(self) -> bool:
        return self.folder.table() is not None

    async def status(self, transport: str | None, listen: Listen = ignore_event) -> MeshView:
        """What the peers of this machine say of themselves, and who answers a ping."""
        table, way = self.table(), self.way(transport)
        return self.build_view(table, way, *await self._ping(way, listen))

    async def glance(self) -> MeshView | None:
        """The status where there is a mesh; nobody is waited for where nobody can be there."""
        table = self.folder.table()
        if table is None:
            return None
        way = self.way(None)
        seen: tuple[Answers, NodeHealth | None] = {}, None
        with suppress(Unavailable, Refused):
            if self._may_answer():
                seen = await self._ping(way, ignore_event)
        return self.build_view(table, way, *seen)

    async def ping(self, transport: str | None, listen: Listen = ignore_event) -> PingView:
        """`Unavailable`, with who is silent, unless all four answer."""
        self.table()
        way = self.way(transport)
        async with aclosing(await self.open_endpoint(way)) as endpoint:
            answered = await self._ask_all(endpoint, way, listen)
        check_answers(answered, endpoint, way)
        return PingView(
            transport=way, answered={role.value: round(answered[role].milliseconds, 3) for role in AGENTS}, silent=()
        )

    def build_view(
        self, table: Table, transport: str, answered: Answers | None, node: NodeHealth | None = None
    ) -> MeshView:
        peers = tuple(self._peer(role, table[role], answered) for role in AGENTS)
        kept_by = self.folder.lock("up").holder()
        return MeshView(transport=transport, kept_by=kept_by, peers=peers, **_node_fields(node))

    def _peer(self, role: Role, line: PeerAddress, answered: Answers | None) -> PeerView:
        pid, kept = self.folder.lock(role.value).holder(), self.folder.last_mesh()
        report = self.folder.report(role)
        if report is not None and report.pid != pid:
            report = None  # of a life before
        counts = dict.fromkeys(_COUNTS) if report is None else report.model_dump(by_alias=False, include=_COUNTS)
        pong = None if answered is None else answered.get(role)
        return PeerView(
            role=role.value,
            here=self._here(role, line),
            pid=pid,
            restarts=0 if kept is None else kept.restarts.get(role.value, 0),
            answers=None if answered is None else pong is not None,
            round_trip_ms=None if pid is None and pong is None else self._trip(role, pong),
            version=pong.code if pong else None if report is None else report.code,
            edition=None if pong is None else pong.edition,
            rejected=None if report is None else sum(report.rejected.values()),
            reasons={} if report is None else dict(report.rejected),
            **counts,
            **_node_fields(None if report is None else report.node),
        )

    def _trip(self, role: Role, pong: PingReply | None) -> float | None:
        """As we measured it, else as its neighbours did."""
        if pong is not None:
            return round(pong.milliseconds, 3)
        others = [self.folder.report(other) for other in AGENTS if other is not role]
        trips = [
            (other.at, other.round_trips[role]) for other in others if other is not None and role in other.round_trips
        ]
        return round(max(trips)[1], 3) if trips else None

    def table(self) -> Table:
        table = self.folder.table()
        if table is None:
            raise Refused(NOT_SET_UP)
        return table

    def here(self) -> tuple[Role, ...]:
        """The agents whose keys are in this home."""
        table = self.table()
        return tuple(role for role in AGENTS if self._here(role, table[role]))

    async def _ping(self, transport: str, listen: Listen) -> tuple[Answers, NodeHealth | None]:
        answered: dict[Role, PingReply] = {}
        opened = await self.open_endpoint(transport)
        async with aclosing(opened) as endpoint, tell_waiting(listen, *AGENTS, answered=answered):
            return await endpoint.ping(PING_SECONDS, AGENTS, answered), endpoint.node

    async def _ask_all(self, endpoint: OwnerEndpoint, way: str, listen: Listen) -> dict[Role, PingReply]:
        """Who is there. Where first contact is slow, whoever may be there is given more time."""
        answered: dict[Role, PingReply] = {}
        async with tell_waiting(listen, *AGENTS, answered=answered):
            await endpoint.ping(PING_SECONDS, AGENTS, answered)
            silent = tuple(role for role in AGENTS if role not in answered)
            here, longest = self.here(), FIRST_CONTACT_SECONDS.get(way, 0.0) if endpoint.has_node else 0.0
            if longest and all(role not in here or self.folder.lock(role.value).holder() for role in silent):
                await endpoint.ping(longest - PING_SECONDS, silent, answered)
        return answered

    async def warm_routes(self, way: str, roles: Sequence[Role]) -> tuple[Role, ...]:
        """Meet these peers once, so that the first question finds the way known. Who did not answer. `Unavailable`
        where the owner's own node is not there or is not its own."""
        longest = FIRST_CONTACT_SECONDS.get(way)
        if longest is None:
            return ()
        async with aclosing(await self.open_endpoint(way)) as endpoint:
            answered = await endpoint.ping(longest, tuple(roles)) if endpoint.has_node else {}
            if not endpoint.has_node:
                raise Unavailable(add_node(endpoint.node))
        return tuple(role for role in roles if role not in answered)

    def way(self, transport: str | None) -> str:
        kept = self.folder.running_mesh()
        return parse_transport(transport) or (kept.transport if kept else None) or self.default_transport()

    async def endpoint_for(
        self, transport: str | None, code: Callable[[], str], tell: Callable[[str], None], listen: Listen
    ) -> OwnerEndpoint | None:
        """Where a debate is held: on the mesh if it is there; None is in this process. A transport that was named is
        used or is `Unavailable`; otherwise it is told why the mesh was not used, if there is one."""
        if transport == IN_PROCESS or (transport is None and not self.exists()):
            return None
        if transport is not None:
            if transport not in TRANSPORTS:
                raise UsageError(
                    f"{transport[:40]!r} is no transport; there are {IN_PROCESS}, {' and '.join(TRANSPORTS)}."
                )
            self.table()
            return await self._open_answering(self.way(transport), code, tell, listen)
        try:
            if not self._may_answer():
                raise Unavailable("no peer of this home runs; `zuno mesh up` starts them.")
            return await self._open_answering(self.way(None), code, tell, listen)
        except (Unavailable, Refused, Malformed) as error:
            tell(f"This debate runs in this process, not on the mesh: {error}")
            return None

    def _may_answer(self) -> bool:
        """Whether it is worth asking: with every key in this home, a peer that answers has a seat in it."""
        return len(self.here()) < len(AGENTS) or any(self.folder.lock(role.value).holder() for role in AGENTS)

    async def _open_answering(
        self, way: str, code: Callable[[], str], tell: Callable[[str], None], listen: Listen
    ) -> OwnerEndpoint:
        endpoint = await self.open_endpoint(way)
        answered = await self._ask_all(endpoint, way, listen)
        try:
            check_answers(answered, endpoint, way)
        except ZunoError:
            await endpoint.aclose()
            raise
        others = [f"the {role} {sanitise(pong.code)}" for role, pong in answered.items() if pong.code != code()]
        if others:
            tell(f"Not every peer is this version of Zuno ({code()}): {', '.join(others)}; their plans may not pass.")
        return endpoint

    async def down(self) -> DownView:
        pid = self.folder.lock("up").holder()
        if pid is not None and not await self.end_process(pid):
            raise Unavailable(f"The mesh (process {pid}) does not end; its peers' logs are in {self.where}.")
        left = await self._orphans()
        ended = "No mesh of this home is kept running." if pid is None else f"The mesh (process {pid}) has ended."
        also = f" Nodes that a killed mesh had left behind were ended: {format_pids(left)}." if left else ""
        return DownView(said=ended + also)

    async def _orphans(self) -> tuple[int, ...]:
        """Nodes that nobody keeps running any more are ended; those of a mesh that has just begun are its own."""
        if not self.exists():
            return ()
        lock = self.folder.lock("up")
        try:
            lock.take()
        except Refused:
            return ()
        try:
            return await self.end_orphans()
        finally:
            lock.leave()

    async def join(self, request: str, listen: Listen) -> PlanView:
        """Go on with a debate that this home began over the mesh."""
        request_id = request.strip()
        if not _REQUEST.fullmatch(request_id):
            raise UsageError(f"{request[:80]!r} is no request; it is req_ and 16 hex digits.")
        self.table()
        room = await self.open_room(request_id)
        if await room.journal.latest(1, request_id=request_id, kind=PLAN_KIND):
            raise Refused(f"{request_id} has its plan already; `zuno why {request_id}` shows it.")
        async with tell_waiting(listen, Role.SCOUT) as hear:
            return await record_plan(room, await room.rejoin(hear), None)


def format_pids(pids: Sequence[int]) -> str:
    return f"process{'es' if len(pids) > 1 else ''} {', '.join(map(str, pids))}"


def parse_role(text: str) -> Role:
    try:
        return Role(text.strip().lower())
    except ValueError:
        known = ", ".join(role.value for role in Role)
        raise UsageError(f"{text[:40]!r} is no role; there are {known}.") from None


def parse_transport(text: str | None) -> str | None:
    if text is not None and text not in TRANSPORTS:
        raise UsageError(f"{text[:40]!r} is no transport of a mesh; there are {' and '.join(TRANSPORTS)}.")
    return text


def check_answers(answered: Answers, endpoint: OwnerEndpoint, transport: str) -> None:
    """`Unavailable` with who is silent, `Refused` with who argues in another edition."""
    if silent := [role for role in AGENTS if role not in answered]:
        raise Unavailable(endpoint.running.unsent or add_node(endpoint.node, silent_sentence(silent, transport)))
    if others := other_editions(answered):
        raise Refused(add_node(endpoint.node, f"{others}; run the same Zuno for both."))


def _node_fields(node: NodeHealth | None) -> dict[str, Any]:
    return {} if node is None else {"node": node.state, "node_why": node.why}


def silent_sentence(silent: Sequence[Role], transport: str) -> str:
    names = ", ".join(role.value for role in silent)
    return f"No answer over {transport} from: {names}; `zuno mesh status` shows the peers."
