"""The exam of `Transport`: inproc, AXL (nodes of ours on loopback) and iroh sit it, and real AXL nodes where there are.

`ZUNO_TEST_AXL_NODE` (or `ZUNO_AXL_NODE`) names the binary of a real AXL node; `make mesh` brings iroh.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.wire.axl_node import FIRST_SENDS, AxlNode, axl_nodes
from zuno.adapters.transport.axl import FIRST_PATIENCE, PATIENCE, AxlTransport
from zuno.adapters.transport.inbox import InProcess
from zuno.adapters.transport.iroh import IrohPeer, IrohTransport
from zuno.kernel.errors import Refused, Unavailable
from zuno.lp.model.debate import Role
from zuno.lp.ports.transport import Transport

CLI, SCOUT, STRATEGIST, CRITIC = Role.CLI, Role.SCOUT, Role.STRATEGIST, Role.CRITIC
AXL_NODE = os.environ.get("ZUNO_TEST_AXL_NODE") or os.environ.get("ZUNO_AXL_NODE")
PACE = 0.1
"""Of the nodes of ours: a first send takes 0.1, 0.3 or 0.7 s, and in `make soak` 1, 3 or 7, as between real nodes."""
SHORT = 0.3
"""For whoever asks somebody who is not there."""
BOUND = 30.0
"""After which a wait counts as endless; nothing is told apart by how fast it is."""


class Bench(Protocol):
    """Where peers sit, and how a third party gets in."""

    knows_senders: bool
    patience: float
    first_patience: float
    """For a peer until it was met, where that takes longer."""

    async def endpoint(self, role: Role) -> Transport: ...

    async def restarted(self, role: Role) -> Transport:
        """The same role after its process ended and another one began."""
        ...

    async def strange(self, data: bytes) -> None:
        """Sends to the Scout as somebody who is in nobody's table; whatever becomes of it."""
        ...

    async def depart(self, role: Role) -> None:
        """The role's side is gone, as if its machine were off."""
        ...


def secret_of(name: str) -> bytes:
    return hashlib.sha256(f"exam {name}".encode()).digest()


def public_of(name: str) -> str:
    return Ed25519PrivateKey.from_private_bytes(secret_of(name)).public_key().public_bytes_raw().hex()


class OneProcess:
    """All share one transport, which knows no strangers: everybody in it was put there."""

    knows_senders = False
    patience = PATIENCE
    first_patience = FIRST_PATIENCE

    def __init__(self) -> None:
        self._shared = InProcess()

    async def endpoint(self, role: Role) -> Transport:
        return self._shared

    async def restarted(self, role: Role) -> Transport:
        raise NotImplementedError("a process cannot lose one half of itself")

    async def strange(self, data: bytes) -> None:
        raise NotImplementedError("nobody is a stranger in one process")

    async def depart(self, role: Role) -> None:
        raise NotImplementedError("nobody is away in one process")


class OverNodes:
    """AXL: everything a node can lose is lost in a restart."""

    knows_senders = True
    patience = PATIENCE
    first_patience = FIRST_PATIENCE

    def __init__(self, nodes: dict[str, AxlNode], endpoints: AsyncExitStack) -> None:
        self._nodes = nodes
        self._endpoints = endpoints
        self._made: dict[Role, AxlTransport] = {}

    def _transport(self, role: Role, node: str) -> AxlTransport:
        peers = {other: public_of(other) for other in (CLI, SCOUT, STRATEGIST, CRITIC)} | {role: public_of(node)}
        transport = AxlTransport(
            role, self._nodes[node].url, peers, patience=self.patience, first_patience=self.first_patience
        )
        self._endpoints.push_async_callback(transport.close)
        return transport

    async def endpoint(self, role: Role) -> Transport:
        self._made[role] = self._transport(role, role)
        return self._made[role]

    async def restarted(self, role: Role) -> Transport:
        await self.depart(role)
        await self._nodes[role].start()
        return await self.endpoint(role)

    async def strange(self, data: bytes) -> None:
        await self._transport(CRITIC, "stranger").send(SCOUT, data)

    async def depart(self, role: Role) -> None:
        if role in self._made:
            await self._made[role].close()
        await self._nodes[role].stop()


class OverQuic:
    """iroh: endpoints of one address book, on ports that were free a moment ago."""

    knows_senders = True
    patience = PATIENCE
    first_patience = FIRST_PATIENCE

    def __init__(self, endpoints: AsyncExitStack) -> None:
        self._endpoints = endpoints
        self._ports = {role: _free_port(socket.SOCK_DGRAM) for role in (CLI, SCOUT, STRATEGIST)}
        self._made: dict[Role, IrohTransport] = {}

    def _transport(self, role: Role, key: str, bind: str) -> IrohTransport:
        book = {other: IrohPeer(public_of(other), f"127.0.0.1:{port}") for other, port in self._ports.items()}
        transport = IrohTransport(role, secret_of(key), book, bind=bind, patience=self.patience)
        self._endpoints.push_async_callback(transport.close)
        return transport

    async def endpoint(self, role: Role) -> Transport:
        self._made[role] = self._transport(role, role, f"127.0.0.1:{self._ports[role]}")
        await self._made[role].open()
        return self._made[role]

    async def restarted(self, role: Role) -> Transport:
        await self.depart(role)
        return await self.endpoint(role)

    async def strange(self, data: bytes) -> None:
        await self._transport(CRITIC, "stranger", "127.0.0.1:0").send(SCOUT, data)

    async def depart(self, role: Role) -> None:
        if role in self._made:
            await self._made[role].close()


def _free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# -- real nodes


class RealNode:
    """The AXL binary with a configuration of our own: it listens on loopback and meets no public node."""

    def __init__(self, folder: Path, name: str, hub: str | None, listen: str | None) -> None:
        key = Ed25519PrivateKey.from_private_bytes(secret_of(name))
        (folder / f"{name}.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self._port = _free_port(socket.SOCK_STREAM)
        self._config = folder / f"{name}.json"
        self._log = folder / f"{name}.log"
        self._process: asyncio.subprocess.Process | None = None
        settings = {
            "PrivateKeyPath": str(folder / f"{name}.pem"),
            "Peers": [hub] if hub else [],
            "Listen": [listen] if listen else [],
            "api_port": self._port,
            "bridge_addr": "127.0.0.1",
        }
        self._config.write_text(json.dumps(settings), encoding="utf-8")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        assert AXL_NODE is not None
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                AXL_NODE, "-config", str(self._config), stdout=log, stderr=log
            )
        deadline = time.monotonic() + 10
        while True:
            with suppress(httpx2.HTTPError):
                async with httpx2.AsyncClient(timeout=1.0, trust_env=False) as client:
                    known = (await client.get(f"{self.url}/topology")).json()
                if known["peers"] or "hub" in self._config.name:
                    break
            assert time.monotonic() < deadline, f"an AXL node did not start: {self._log.read_text()[-500:]}"
            await asyncio.sleep(0.1)

    async def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), 5)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
            self._process = None


@asynccontextmanager
async def real_nodes(folder: Path, names: list[str]) -> AsyncIterator[dict[str, RealNode]]:
    meeting = f"tls://127.0.0.1:{_free_port(socket.SOCK_STREAM)}"
    nodes = {"hub": RealNode(folder, "hub", None, meeting)}
    nodes |= {name: RealNode(folder, name, meeting, None) for name in names}
    try:
        for node in nodes.values():
            await node.start()
        await asyncio.sleep(1)  # the overlay's tree settles
        yield nodes
    finally:
        for node in nodes.values():
            await node.stop()


# -- the candidates


BETWEEN_PROCESSES = ("axl", "iroh", "axl-node", pytest.param("axl-in-real-time", marks=pytest.mark.soak))
between_processes = pytest.mark.parametrize("bench", BETWEEN_PROCESSES, indirect=True)
"""Questions that make no sense inside one process, which has no half to lose and no stranger."""


@pytest.fixture(params=("inproc", *BETWEEN_PROCESSES))
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    names = [CLI, SCOUT, STRATEGIST, "stranger"]
    async with AsyncExitStack() as stack:
        match request.param:
            case "inproc":
                yield OneProcess()
            case "axl" | "axl-in-real-time":
                keys, pace = [public_of(name) for name in names], PACE if request.param == "axl" else 1.0
                nodes = await stack.enter_async_context(
                    axl_nodes(keys, jitter=0.01, first_sends=FIRST_SENDS, pace=pace)
                )
                yield OverNodes(dict(zip(names, nodes, strict=True)), stack)
            case "iroh":
                if find_spec("iroh") is None:
                    pytest.skip("the iroh library is not installed: make mesh")
                yield OverQuic(stack)
            case _:
                if not AXL_NODE:
                    pytest.skip("no real AXL node: ZUNO_TEST_AXL_NODE names no binary")
                real = await stack.enter_async_context(real_nodes(tmp_path, list(names)))
                yield OverNodes(real, stack)  # type: ignore[arg-type]


async def got(transport: Transport, role: Role) -> bytes:
    return (await asyncio.wait_for(transport.receive(role), BOUND)).data


async def nothing_more(transport: Transport, role: Role) -> None:
    """A moment later there is still nothing."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(transport.receive(role), 0.15)


# -- the questions


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 1024 * 1024])
async def test_bytes_arrive_whole_and_unchanged(bench: Bench, size: int) -> None:
    cli, scout = await bench.endpoint(CLI), await bench.endpoint(SCOUT)
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    await cli.send(SCOUT, data)
    assert await got(scout, SCOUT) == data


@pytest.mark.parametrize(
    "data",
    [
        b'{"service": "tools", "n": 1}',
        b' {"a2a": true}',
        b"null",
        b"\x00\r\n\r\n",
        b"\x01",
        b"\xff" * 300,
        b"[" * 5_000,
    ],
)
async def test_no_content_is_special(bench: Bench, data: bytes) -> None:
    cli, scout = await bench.endpoint(CLI), await bench.endpoint(SCOUT)
    await cli.send(SCOUT, data)
    assert await got(scout, SCOUT) == data


async def test_many_messages_go_both_ways_at_once_and_each_arrives_once(bench: Bench) -> None:
    cli, scout = await bench.endpoint(CLI), await bench.endpoint(SCOUT)
    there = [b"there %d " % number + bytes(number * 37) for number in range(60)]
    back = [b"back %d " % number + bytes(number * 53) for number in range(60)]

    async def all_of(transport: Transport, role: Role, count: int) -> list[bytes]:
        return [await got(transport, role) for _ in range(count)]

    arrived, returned, *_ = await asyncio.gather(
        all_of(scout, SCOUT, len(there)),
        all_of(cli, CLI, len(back)),
        *(cli.send(SCOUT, data) for data in there),
        *(scout.send(CLI, data) for data in back),
    )
    assert sorted(arrived) == sorted(there)  # type: ignore[arg-type]
    assert sorted(returned) == sorted(back)  # type: ignore[arg-type]
    await nothing_more(scout, SCOUT)
    await nothing_more(cli, CLI)


async def test_the_sender_is_named_where_it_is_known_and_never_wrong(bench: Bench) -> None:
    cli, scout, strategist = [await bench.endpoint(role) for role in (CLI, SCOUT, STRATEGIST)]
    for _ in range(3):
        await asyncio.gather(cli.send(SCOUT, b"cli"), strategist.send(SCOUT, b"strategist"))
    for _ in range(6):
        received = await asyncio.wait_for(scout.receive(SCOUT), BOUND)
        assert received.sender == (Role(received.data.decode()) if bench.knows_senders else None)


async def test_the_largest_message_passes_and_a_larger_one_is_refused(bench: Bench) -> None:
    cli, scout = await bench.endpoint(CLI), await bench.endpoint(SCOUT)
    largest = b"\xa5" * cli.limit
    with pytest.raises(Refused, match=str(cli.limit)):
        await cli.send(SCOUT, largest + b"!")
    await cli.send(SCOUT, largest)
    assert await got(scout, SCOUT) == largest


@between_processes
async def test_who_is_not_there_is_unavailable_in_time(bench: Bench) -> None:
    bench.patience = bench.first_patience = SHORT
    cli = await bench.endpoint(CLI)
    await bench.depart(STRATEGIST)
    with pytest.raises(Unavailable):
        await asyncio.wait_for(cli.send(STRATEGIST, b"anybody?"), BOUND)


@between_processes
async def test_who_left_is_unavailable_in_time(bench: Bench) -> None:
    bench.patience = SHORT
    cli, scout = await bench.endpoint(CLI), await bench.endpoint(SCOUT)
    await sent_at_last(cli, SCOUT, b"still here")
    assert await got(scout, SCOUT) == b"still here"
    await bench.depart(SCOUT)
    with pytest.raises(Unavailable):
        await asyncio.wait_for(cli.send(SCOUT, b"gone"), BOUND)


@between_processes
async def test_one_who_is_away_keeps_nobody_else_waiting(bench: Bench) -> None:
    cli, scout = await bench.endpoint(CLI), await bench.endpoint(SCOUT)
    await bench.depart(STRATEGIST)
    stuck = asyncio.create_task(cli.send(STRATEGIST, b"anybody?"))
    await asyncio.sleep(0.05)
    await cli.send(SCOUT, b"meanwhile")
    assert await got(scout, SCOUT) == b"meanwhile"
    assert not stuck.done()
    await cli.close()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(stuck, BOUND)


@between_processes
async def test_what_a_stranger_sends_is_never_returned(bench: Bench) -> None:
    cli, scout = await bench.endpoint(CLI), await bench.endpoint(SCOUT)
    waiting = asyncio.create_task(scout.receive(SCOUT))
    with suppress(Unavailable):
        await bench.strange(b"let me in")
    await cli.send(SCOUT, b"from a peer")
    assert (await asyncio.wait_for(waiting, BOUND)).data == b"from a peer"
    await nothing_more(scout, SCOUT)
    assert isinstance(scout, AxlTransport | IrohTransport)
    assert (scout.dropped, scout.strangers) == (1, 1)


async def test_closing_wakes_everyone_who_waits_and_may_be_repeated(bench: Bench) -> None:
    cli, scout = await bench.endpoint(CLI), await bench.endpoint(SCOUT)
    waiting = [asyncio.create_task(scout.receive(SCOUT)) for _ in range(3)]
    await cli.send(SCOUT, b"for one of them")
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=BOUND)
    await scout.close()
    outcomes = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), BOUND)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ReceivedMessage", "Unavailable", "Unavailable"]
    await scout.close()
    with pytest.raises(Unavailable, match="closed"):
        await asyncio.wait_for(scout.receive(SCOUT), BOUND)
    with pytest.raises(Unavailable, match="closed"):
        await asyncio.wait_for(scout.send(CLI, b"too late"), BOUND)


@pytest.mark.parametrize("begun", [0, 0.05])
@between_processes
async def test_closing_ends_a_message_on_its_way(bench: Bench, begun: float) -> None:
    bench.patience = 60.0
    cli = await bench.endpoint(CLI)
    await bench.depart(STRATEGIST)
    stuck = asyncio.create_task(cli.send(STRATEGIST, b"anybody?"))
    await asyncio.sleep(begun)
    async with asyncio.timeout(BOUND):
        await cli.close()
        with pytest.raises(Unavailable, match="closed"):
            await stuck


async def test_a_receiver_who_gives_up_loses_nothing(bench: Bench) -> None:
    cli, scout = await bench.endpoint(CLI), await bench.endpoint(SCOUT)
    sent = [b"%d" % number for number in range(20)]
    arrived: list[bytes] = []

    async def glance(seconds: float) -> None:
        while len(arrived) < len(sent):
            with suppress(TimeoutError):
                arrived.append((await asyncio.wait_for(scout.receive(SCOUT), seconds)).data)

    async with asyncio.timeout(BOUND):
        await asyncio.gather(glance(0.001), glance(0.002), *(cli.send(SCOUT, data) for data in sent))
    assert sorted(arrived) == sorted(sent)


@between_processes
async def test_an_endpoint_answers_for_its_own_role_alone(bench: Bench) -> None:
    scout = await bench.endpoint(SCOUT)
    with pytest.raises(Refused, match="critic"):
        await scout.receive(CRITIC)


@between_processes
async def test_an_unknown_role_is_unavailable(bench: Bench) -> None:
    scout = await bench.endpoint(SCOUT)
    with pytest.raises(Unavailable, match="arbiter"):
        await scout.send(Role.ARBITER, b"who?")
    with pytest.raises(Unavailable, match="scout"):
        await scout.send(SCOUT, b"myself")


@between_processes
async def test_it_works_again_after_the_other_side_restarted(bench: Bench) -> None:
    bench.patience = 1.0
    cli, scout = await bench.endpoint(CLI), await bench.endpoint(SCOUT)
    await sent_at_last(cli, SCOUT, b"one")
    assert await got(scout, SCOUT) == b"one"
    await scout.send(CLI, b"two")
    assert await got(cli, CLI) == b"two"
    await bench.depart(SCOUT)
    with suppress(Unavailable):
        await cli.send(SCOUT, b"given up")
    scout = await bench.restarted(SCOUT)
    sent = Counter({b"given up": 1, b"three": await sent_at_last(cli, SCOUT, b"three")})
    arrived = Counter([await got(scout, SCOUT)])
    while not arrived[b"three"]:
        arrived[await got(scout, SCOUT)] += 1
    await sent_at_last(scout, CLI, b"four")
    assert await got(cli, CLI) == b"four"
    with suppress(TimeoutError):  # whoever carries them goes on with what was given up
        while True:
            arrived[(await asyncio.wait_for(scout.receive(SCOUT), SHORT)).data] += 1
    assert arrived <= sent


async def sent_at_last(transport: Transport, to: Role, data: bytes) -> int:
    """Tries until it is sent; how often. Each of them may arrive."""
    tries = 1
    async with asyncio.timeout(BOUND):
        while True:
            try:
                await transport.send(to, data)
            except Unavailable:
                tries += 1
                await asyncio.sleep(0.1)
            else:
                return tries
