"""iroh's own: keys proved in a handshake, streams that break off, a peer that is killed, bytes that cross at once."""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import os
import socket
import sys
import types
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("iroh", reason="the iroh library is not installed: make mesh")

import iroh
import iroh.iroh_ffi as generated

from zuno.adapters.transport.inbox import Inbox
from zuno.adapters.transport.iroh import HANDSHAKE, LIMIT, MOST_UNREAD, IrohPeer, IrohTransport, patch_buffer_writer
from zuno.kernel.errors import Refused, Unavailable, UsageError
from zuno.lp.model.debate import Role

CLI, SCOUT, CRITIC = Role.CLI, Role.SCOUT, Role.CRITIC
ALPN = b"zuno/mesh/1"
BOUND = 8.0


def secret_of(name: str) -> bytes:
    return hashlib.sha256(f"quic {name}".encode()).digest()


def id_of(name: str) -> str:
    return bytes(iroh.SecretKey.from_bytes(secret_of(name)).public().to_bytes()).hex()


Making = Callable[..., IrohTransport]


@pytest.fixture
async def making() -> AsyncIterator[Making]:
    made: list[IrohTransport] = []

    def make(me: Role, peers: dict[Role, IrohPeer], key: str | None = None, **options: Any) -> IrohTransport:
        made.append(IrohTransport(me, secret_of(key or me), peers, **options))
        return made[-1]

    yield make
    for transport in made:
        await transport.close()


@pytest.fixture
async def scout(making: Making) -> IrohTransport:
    """Knows the CLI, and not where it is."""
    transport = making(SCOUT, {CLI: IrohPeer(id_of(CLI))})
    await transport.open()
    return transport


@pytest.fixture
async def cli(making: Making, scout: IrohTransport) -> IrohTransport:
    return making(CLI, {SCOUT: IrohPeer(id_of(SCOUT), scout.address)})


@pytest.fixture
async def stray() -> AsyncIterator[Any]:
    """The library itself with the CLI's key, for what no transport of ours would send."""
    endpoint = await raw_endpoint(CLI)
    yield endpoint
    await endpoint.close()


async def raw_endpoint(key: str) -> Any:
    options = iroh.EndpointOptions(
        preset=iroh.preset_minimal(),
        bind_addr="127.0.0.1:0",
        secret_key=secret_of(key),
        alpns=[ALPN],
        relay_mode=iroh.RelayMode.disabled(),
    )
    return await iroh.Endpoint.bind(options)


async def connected(endpoint: Any, to: IrohTransport, alpn: bytes = ALPN) -> Any:
    there = iroh.EndpointAddr(iroh.EndpointId.from_string(id_of(SCOUT)), None, [to.address or ""])
    return await asyncio.wait_for(endpoint.connect(there, alpn), BOUND)


async def got(transport: IrohTransport, role: Role) -> bytes:
    return (await asyncio.wait_for(transport.receive(role), BOUND)).data


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.01)


# -- connections


async def test_a_peer_without_an_address_is_answered_where_it_called_from(
    cli: IrohTransport, scout: IrohTransport
) -> None:
    with pytest.raises(Unavailable, match="called"):
        await scout.send(CLI, b"where are you?")
    await cli.send(SCOUT, b"here")
    assert await got(scout, SCOUT) == b"here"
    await scout.send(CLI, b"I see")
    assert await got(cli, CLI) == b"I see"


@pytest.mark.slow
async def test_whoever_has_another_key_is_not_the_peer(making: Making, scout: IrohTransport) -> None:
    """At the Scout's address, somebody else: the handshake fails before a byte of the message leaves."""
    impostor = making(SCOUT, {CLI: IrohPeer(id_of(CLI))}, key="impostor")
    await impostor.open()
    cli = making(CLI, {SCOUT: IrohPeer(id_of(SCOUT), impostor.address)}, patience=1.0)
    with pytest.raises(Unavailable):
        await asyncio.wait_for(cli.send(SCOUT, b"secret"), BOUND)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(impostor.receive(SCOUT), 0.1)


async def test_a_stranger_is_shown_out_and_counted(making: Making, cli: IrohTransport, scout: IrohTransport) -> None:
    stranger = making(CRITIC, {SCOUT: IrohPeer(id_of(SCOUT), scout.address)})
    for count in (1, 2):
        with pytest.raises(Unavailable):
            await asyncio.wait_for(stranger.send(SCOUT, b"let me in"), BOUND)
        await until(lambda count=count: scout.dropped == count)  # type: ignore[misc]
    await cli.send(SCOUT, b"known")
    assert await got(scout, SCOUT) == b"known"


async def test_another_protocol_is_not_spoken(stray: Any, scout: IrohTransport) -> None:
    with pytest.raises(iroh.IrohError):
        await connected(stray, scout, b"zuno/mesh/2")


@pytest.mark.slow
async def test_a_peer_may_not_hold_ever_more_connections(stray: Any, scout: IrohTransport) -> None:
    several = [await connected(stray, scout) for _ in range(6)]
    await until(lambda: sum(one.close_reason() is not None for one in several) == 2)
    assert [one.close_reason() is None for one in several] == [False, False, True, True, True, True]


async def test_two_messages_at_once_make_one_connection(making: Making, cli: IrohTransport) -> None:
    await asyncio.gather(*(cli.send(SCOUT, b"%d" % number) for number in range(5)))
    assert [len(several) for several in cli._connections.values()] == [1]


RETRY = 0xF0
"""How QUIC's packet begins that asks to call again (RFC 9000, 17.2.5)."""


class Openings(asyncio.DatagramProtocol):
    """Collects the first datagram of every call that is made to it, and answers none."""

    def __init__(self) -> None:
        self.found: dict[bytes, bytes] = {}

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.found.setdefault(data[6 : 6 + data[5]], data)  # by the connection id the caller made up


async def opened_and_left(count: int, to: IrohTransport) -> list[socket.socket]:
    """So many sockets that each began a handshake with this endpoint and say nothing more."""
    loop = asyncio.get_running_loop()
    listening, openings = await loop.create_datagram_endpoint(Openings, local_addr=("127.0.0.1", 0))
    caller = await raw_endpoint("silent")
    where = listening.get_extra_info("sockname")
    there = iroh.EndpointAddr(iroh.EndpointId.from_string(id_of(SCOUT)), None, [f"{where[0]}:{where[1]}"])
    calls = [asyncio.ensure_future(caller.connect(there, ALPN)) for _ in range(count)]
    await until(lambda: len(openings.found) >= count)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    listening.close()
    host, _, port = (to.address or "").rpartition(":")
    sockets = []
    for datagram in openings.found.values():
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setblocking(False)
        one.sendto(datagram, (host, int(port)))
        sockets.append(one)
    await caller.close()
    return sockets


@pytest.mark.slow
async def test_whoever_opens_and_says_nothing_stands_in_nobody_s_way(cli: IrohTransport, scout: IrohTransport) -> None:
    """Twice as many half-open calls as fit at the door. They are asked to call again, and nothing is kept of them."""
    sockets = await opened_and_left(64, scout)
    try:
        answers: dict[socket.socket, bytes] = {}
        async with asyncio.timeout(BOUND):
            while len(answers) < len(sockets):
                await asyncio.sleep(0.01)
                answers |= {one: data for one in sockets if (data := heard(one))}
        assert {data[0] & 0xF0 for data in answers.values()} == {RETRY}
        assert scout._handshakes == {}
        await asyncio.wait_for(cli.send(SCOUT, b"and yet"), BOUND)
        assert await got(scout, SCOUT) == b"and yet"
    finally:
        for one in sockets:
            one.close()


def heard(one: socket.socket) -> bytes:
    try:
        return one.recv(2_048)
    except BlockingIOError:
        return b""


class Gone(iroh.IrohError):
    """The library's own error, which only the library can make."""

    def __init__(self) -> None:
        Exception.__init__(self, "it has gone")


class Lingering:
    """A call from an address that is known to hear us, whose handshake never ends."""

    def __init__(self, *, fails: bool = False) -> None:
        self._fails = fails
        self.left = asyncio.Event()

    async def remote_addr_validated(self) -> bool:
        if self._fails:
            raise Gone
        return True

    async def accept(self) -> Lingering:
        return self

    async def connect(self) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()


class Doorstep:
    """An endpoint at which these call, one after the other, and then nobody."""

    def __init__(self, calls: list[Lingering]) -> None:
        self._calls = calls

    async def accept_next(self) -> Lingering | None:
        await asyncio.sleep(0)
        return self._calls.pop(0) if self._calls else None


@pytest.mark.slow
async def test_at_a_full_door_the_one_who_stood_there_longest_makes_room(making: Making) -> None:
    transport = making(SCOUT, {}, patience=60.0)
    calls = [Lingering() for _ in range(40)]
    door: Any = Doorstep([*calls])
    await transport._accept(door)
    await until(lambda: sum(one.left.is_set() for one in calls) == 8)
    assert [one.left.is_set() for one in calls] == [True] * 8 + [False] * 32
    assert len(transport._handshakes) == 32
    async with asyncio.timeout(HANDSHAKE + BOUND):  # and nobody stands there for as long as it likes
        await asyncio.gather(*(one.left.wait() for one in calls))
    await until(lambda: not transport._handshakes)


async def test_a_call_that_is_gone_when_it_is_looked_at_ends_nothing(making: Making) -> None:
    transport = making(SCOUT, {})
    calls = [Lingering(fails=True), Lingering()]
    door: Any = Doorstep([*calls])
    await transport._accept(door)
    assert len(transport._handshakes) == 1
    assert not transport._inbox.is_closed


async def test_a_name_is_looked_up(making: Making, scout: IrohTransport) -> None:
    port = (scout.address or "").rpartition(":")[2]
    cli = making(CLI, {SCOUT: IrohPeer(id_of(SCOUT), f"localhost:{port}")})
    await cli.send(SCOUT, b"by name")
    assert await got(scout, SCOUT) == b"by name"
    lost = making(CLI, {SCOUT: IrohPeer(id_of(SCOUT), "nowhere.invalid:4000")})
    with pytest.raises(Unavailable, match=rf"nowhere\.invalid:4000 .*\b{SCOUT}\b"):
        await asyncio.wait_for(lost.send(SCOUT, b"x"), BOUND)


async def test_a_port_that_is_taken_is_unavailable(making: Making, scout: IrohTransport) -> None:
    second = making(SCOUT, {}, bind=scout.address)
    with pytest.raises(Unavailable, match=f"listen.*{scout.address}"):
        await second.receive(SCOUT)


# -- messages


@pytest.mark.parametrize("frame", [b"", b"\x00", b"\x00\x00\x00\x05four", b"\x00\x00\x00\x03four", b"\xff" * 8])
async def test_a_message_that_is_not_as_long_as_it_says_never_arrives(
    stray: Any, scout: IrohTransport, frame: bytes
) -> None:
    connection = await connected(stray, scout)
    assert await answer_to(connection, frame) == b""
    assert scout.dropped == 1
    assert await answer_to(connection, b"\x00\x00\x00\x04four") == b"\x06"
    assert await got(scout, SCOUT) == b"four"


@pytest.mark.slow
async def test_a_message_over_the_limit_never_arrives(stray: Any, scout: IrohTransport) -> None:
    connection = await connected(stray, scout)
    with suppress(iroh.IrohError):
        assert await answer_to(connection, (LIMIT + 1).to_bytes(4, "big") + bytes(LIMIT + 1)) == b""
    await until(lambda: scout.dropped == 1)
    assert await answer_to(connection, b"\x00\x00\x00\x00") == b"\x06"
    assert await got(scout, SCOUT) == b""


async def test_a_message_that_breaks_off_never_arrives(stray: Any, scout: IrohTransport) -> None:
    connection = await connected(stray, scout)
    for how in ("dropped", "reset"):
        stream = await connection.open_bi()
        there = stream.send()
        await there.write_all(b"\x00\x00\x00\x10half of it")
        if how == "reset":
            await there.reset(1)
        del stream, there
    await until(lambda: scout.dropped == 2)
    assert await answer_to(connection, b"\x00\x00\x00\x05whole") == b"\x06"
    assert await got(scout, SCOUT) == b"whole"


def udp_sockets() -> dict[str, IPv4Address | IPv6Address]:
    """The addresses this process's UDP sockets are bound to, as the kernel has them, by inode."""
    own = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            own.add(os.readlink(descriptor).removeprefix("socket:[").removesuffix("]"))
    bound = {}
    for table in ("udp", "udp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            words = bytes.fromhex(columns[1].partition(":")[0])  # 32-bit words, each the other way round
            packed = b"".join(words[start : start + 4][::-1] for start in range(0, len(words), 4))
            if columns[9] in own:
                bound[columns[9]] = ip_address(packed)
    return bound


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux which sockets are bound")
async def test_on_loopback_no_other_machine_is_listened_to(making: Making) -> None:
    before = udp_sockets().keys()
    scout = making(SCOUT, {CLI: IrohPeer(id_of(CLI))})
    await scout.open()

    def opened() -> set[IPv4Address | IPv6Address]:
        return {address for inode, address in udp_sockets().items() if inode not in before}

    assert ip_address("127.0.0.1") in opened()
    assert ip_address("::") not in opened()
    async with asyncio.timeout(BOUND):  # the library looks for a router to map a port, for a second, from 0.0.0.0
        while not all(address.is_loopback for address in opened()):  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.05)
    cli = making(CLI, {SCOUT: IrohPeer(id_of(SCOUT), scout.address)})
    await cli.send(SCOUT, b"heard")
    assert (await asyncio.wait_for(scout.receive(SCOUT), BOUND)).data == b"heard"


async def answer_to(connection: Any, frame: bytes) -> bytes:
    stream = await connection.open_bi()
    await stream.send().write_all(frame)
    await stream.send().finish()
    return bytes(await asyncio.wait_for(stream.recv().read_to_end(16), BOUND))


async def test_a_message_that_was_heard_and_not_taken_is_unavailable(making: Making) -> None:
    """A stream that ends without a word is what a peer leaves behind that closes in the middle."""
    other = await raw_endpoint(SCOUT)

    async def hears() -> None:
        connection = await (await (await other.accept_next()).accept()).connect()
        stream = await connection.accept_bi()
        assert await stream.recv().read_to_end(64) == b"\x00\x00\x00\x04four"
        await stream.send().finish()
        await connection.closed()

    hearing = asyncio.create_task(hears())
    address = next(one for one in other.bound_sockets() if one.startswith("127."))
    cli = making(CLI, {SCOUT: IrohPeer(id_of(SCOUT), address)})
    with pytest.raises(Unavailable, match="message"):
        await cli.send(SCOUT, b"four")
    await cli.close()
    await asyncio.wait_for(hearing, BOUND)
    await other.close()


@pytest.mark.slow
async def test_a_full_inbox_takes_nothing_more_and_the_sender_is_told(
    making: Making, cli: IrohTransport, scout: IrohTransport
) -> None:
    scout._inbox = Inbox(most=1)
    cli.patience = 0.5
    await cli.send(SCOUT, b"one")
    with pytest.raises(Unavailable, match="arrived"):
        await cli.send(SCOUT, b"two")
    assert await got(scout, SCOUT) == b"one"
    cli.patience = BOUND
    three = asyncio.create_task(cli.send(SCOUT, b"three"))
    assert [await got(scout, SCOUT) for _ in range(2)] == [b"two", b"three"]  # late, and once
    await three


# -- a neighbour with a right key that means no good


@pytest.mark.soak
async def test_what_piles_up_unread_ends_its_connection(making: Making, stray: Any) -> None:
    """A hundred messages of sixteen megabytes are begun at once, and none is ended."""
    scout = making(SCOUT, {CLI: IrohPeer(id_of(CLI))})
    await scout.open()
    connection = await connected(stray, scout)
    piece, written = bytes(256 * 1024), 0

    async def begin() -> None:
        nonlocal written
        with suppress(iroh.IrohError):
            there = (await connection.open_bi()).send()
            await there.write_all(LIMIT.to_bytes(4, "big"))
            while True:
                await there.write_all(piece)
                written += len(piece)

    writing = [asyncio.create_task(begin()) for _ in range(100)]
    await until(lambda: connection.close_reason() is not None)
    await asyncio.gather(*writing)
    assert scout.dropped == 1
    assert scout._alive(CLI) == []
    assert written < 4 * MOST_UNREAD  # what the sender's own library had taken is in it too
    again = await connected(stray, scout)
    assert await answer_to(again, b"\x00\x00\x00\x04four") == b"\x06"


@pytest.mark.soak
async def test_many_messages_that_are_read_are_never_too_much(cli: IrohTransport, scout: IrohTransport) -> None:
    data, count = bytes(4 * 1024 * 1024), 3 * MOST_UNREAD // (4 * 1024 * 1024)
    sending = asyncio.gather(*(cli.send(SCOUT, data) for _ in range(2)))
    for number in range(count):
        assert len(await got(scout, SCOUT)) == len(data)
        if number < count - 2:
            sending = asyncio.gather(sending, cli.send(SCOUT, data))  # type: ignore[assignment]
    await sending
    assert (scout.dropped, len(scout._alive(CLI))) == (0, 1)


@pytest.mark.slow
async def test_a_stream_that_goes_one_way_is_stopped(stray: Any, scout: IrohTransport) -> None:
    connection = await connected(stray, scout)
    stopped = 0
    for _ in range(20):  # each lets more through on a slow machine; together they stay under what is too much
        stream = await asyncio.wait_for(connection.open_uni(), BOUND)
        try:
            async with asyncio.timeout(BOUND):
                while True:
                    await stream.write_all(bytes(64 * 1024))
        except iroh.IrohError:
            stopped += 1
    assert stopped == 20
    await until(lambda: scout.dropped == 20)
    assert connection.close_reason() is None
    assert await answer_to(connection, b"\x00\x00\x00\x04four") == b"\x06"


@pytest.mark.slow
@pytest.mark.parametrize(("role", "most"), [(CRITIC, 2), (CLI, 4)])
async def test_a_neighbour_has_few_connections_and_the_newest_stay(making: Making, role: Role, most: int) -> None:
    scout = making(SCOUT, {role: IrohPeer(id_of(role))})
    await scout.open()
    endpoint = await raw_endpoint(role)
    connections = []
    for _ in range(most + 3):
        connections.append(await connected(endpoint, scout))
        assert await answer_to(connections[-1], b"\x00\x00\x00\x04four") == b"\x06"
    await until(lambda: [one.close_reason() is None for one in connections] == [False] * 3 + [True] * most)
    await endpoint.close()


# -- a peer that is killed says nothing

CHILD = """
import asyncio, sys
from zuno.adapters.transport.iroh import IrohPeer, IrohTransport
from zuno.lp.model.debate import Role

async def main():
    secret, cli, bind = bytes.fromhex(sys.stdin.readline().strip()), *sys.argv[1:]
    transport = IrohTransport(Role.SCOUT, secret, {Role.CLI: IrohPeer(cli)}, bind=bind)
    await transport.open()
    print("listening", flush=True)
    while True:
        parcel = await transport.receive(Role.SCOUT)
        await transport.send(Role.CLI, b"heard " + parcel.data)

asyncio.run(main())
"""


async def child(bind: str) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, id_of(CLI), bind, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(secret_of(SCOUT).hex().encode() + b"\n")
    await process.stdin.drain()
    assert await asyncio.wait_for(process.stdout.readline(), 30) == b"listening\n"
    return process


@pytest.mark.soak
async def test_a_peer_that_was_killed_is_noticed_and_found_again(making: Making) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        bind = f"127.0.0.1:{probe.getsockname()[1]}"
    cli = making(CLI, {SCOUT: IrohPeer(id_of(SCOUT), bind)}, patience=BOUND, silence=0.5)
    first = await child(bind)
    try:
        await cli.send(SCOUT, b"one")
        assert await got(cli, CLI) == b"heard one"
    finally:
        first.kill()
        await first.wait()
    with pytest.raises(Unavailable, match="silent"):
        await cli.send(SCOUT, b"two")
    second = await child(bind)
    try:
        await cli.send(SCOUT, b"three")
        assert await got(cli, CLI) == b"heard three"
    finally:
        second.kill()
        await second.wait()


@pytest.mark.slow
async def test_a_peer_that_is_only_slow_is_not_given_up(cli: IrohTransport, scout: IrohTransport) -> None:
    """It takes nothing for longer than a silence, and its library answers for it."""
    scout._inbox = Inbox(most=1)
    cli.silence = 0.2
    await cli.send(SCOUT, b"one")
    (connection,) = cli._connections[SCOUT]
    late = asyncio.create_task(cli.send(SCOUT, b"two"))
    await asyncio.sleep(0.7)
    assert await got(scout, SCOUT) == b"one"
    await asyncio.wait_for(late, BOUND)
    assert connection.close_reason() is None


# -- tables and keys that cannot work


@pytest.mark.parametrize("endpoint_id", ["", "0a", "zz" * 32])
def test_an_endpoint_id_that_is_none(endpoint_id: str) -> None:
    with pytest.raises(UsageError, match="endpoint"):
        IrohTransport(CLI, bytes(32), {SCOUT: IrohPeer(endpoint_id)})


@pytest.mark.parametrize("address", ["", "host", "host:", ":4000", "host:0", "host:65536", "host:x", "h:-1", "h:٣"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(UsageError, match="address"):
        IrohTransport(CLI, bytes(32), {SCOUT: IrohPeer("0a" * 32, address)})


def test_two_roles_need_two_keys() -> None:
    with pytest.raises(UsageError, match="endpoint"):
        IrohTransport(CLI, bytes(32), {SCOUT: IrohPeer("0a" * 32), CRITIC: IrohPeer("0A" * 32)})


@pytest.mark.parametrize("size", [0, 31, 64])
def test_a_key_has_32_bytes(size: int) -> None:
    with pytest.raises(UsageError, match=f"{size} bytes.*32"):
        IrohTransport(CLI, bytes(size), {})


async def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "iroh", None)
    transport = IrohTransport(CLI, bytes(32), {SCOUT: IrohPeer("0a" * 32, "127.0.0.1:1")})
    for doing in (transport.send(SCOUT, b"x"), transport.receive(CLI), transport.open()):
        with pytest.raises(Unavailable, match="`make mesh`"):
            await doing
    with pytest.raises(Refused):
        await transport.send(SCOUT, bytes(LIMIT + 1))
    await transport.close()


def test_the_transport_does_not_show_its_key() -> None:
    transport = IrohTransport(CLI, secret_of(CLI), {})
    assert secret_of(CLI).hex() not in repr(transport)
    assert repr(secret_of(CLI)) not in repr(transport)


# -- bytes that cross at once


def test_the_library_is_the_one_that_can_be_hastened() -> None:
    builder = generated._UniffiRustBufferBuilder
    assert patch_buffer_writer(builder)
    assert patch_buffer_writer(builder)  # done already
    one = builder()
    for piece in (b"", b"ab", bytearray(b"cd"), memoryview(b"ef"), bytes(100_000)):
        one.write(piece)
    assert one.rbuf.data[: one.rbuf.len] == b"abcdef" + bytes(100_000)
    one.discard()


class Slow:
    """The library's class as it is generated, in memory of our own."""

    def __init__(self) -> None:
        self.memory = ctypes.create_string_buffer(8_192)
        data = ctypes.cast(self.memory, ctypes.POINTER(ctypes.c_char))
        self.rbuf = types.SimpleNamespace(data=data, len=0, capacity=8_192)

    @contextmanager
    def _reserve(self, size: int) -> Any:
        yield
        self.rbuf.len += size

    def write(self, value: bytes) -> None:
        with self._reserve(len(value)):
            for at, byte in enumerate(value):
                self.rbuf.data[self.rbuf.len + at] = byte

    def discard(self) -> None:
        pass


def test_a_class_that_behaves_the_same_is_hastened() -> None:
    class Same(Slow):
        pass

    before = Same.write
    assert patch_buffer_writer(Same)
    assert Same.write is not before


class Backwards(Slow):
    def write(self, value: bytes) -> None:
        super().write(bytes(value)[::-1])


class Cramped(Slow):
    def __init__(self) -> None:
        super().__init__()
        self.rbuf.capacity = 16


class Renamed(Slow):
    _reserve = None  # type: ignore[assignment]


class Needy(Slow):
    def __init__(self, size: int) -> None:
        super().__init__()


@pytest.mark.parametrize("other", [Backwards, Cramped, Renamed, Needy, object])
def test_any_other_class_is_left_as_it_is(other: type) -> None:
    before = getattr(other, "write", None)
    assert not patch_buffer_writer(other)
    assert getattr(other, "write", None) is before


def test_no_class_at_all() -> None:
    assert not patch_buffer_writer(None)


async def test_it_works_without_being_hastened(
    cli: IrohTransport, scout: IrohTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(self: Any, value: bytes) -> None:
        with self._reserve(len(value)):
            for at, byte in enumerate(value):
                self.rbuf.data[self.rbuf.len + at] = byte

    monkeypatch.setattr("zuno.adapters.transport.iroh.patch_buffer_writer", lambda builder: False)
    monkeypatch.setattr(generated._UniffiRustBufferBuilder, "write", write)
    await cli.send(SCOUT, bytes(range(256)) * 64)
    assert await got(scout, SCOUT) == bytes(range(256)) * 64
