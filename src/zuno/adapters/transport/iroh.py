"""Peers over QUIC (iroh) without server, relay or discovery.

An endpoint's id is its ed25519 key, proved in the handshake, so the sender of a message is certain. An address book
says where peers are. The library also opens `[::]` beside an IPv4 address, unless given an IPv6 one, and looks for a
UPnP router for a second when it starts; version 1.2 has no switch for that.
"""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import re
import socket
import time
from collections import OrderedDict, defaultdict
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from zuno.adapters.transport.inbox import CLOSED, Inbox
from zuno.kernel.errors import Refused, Unavailable, UsageError
from zuno.kernel.installation import name_install
from zuno.lp.model.debate import Role
from zuno.lp.ports.transport import ReceivedMessage

if TYPE_CHECKING:
    from iroh import BiStream, Connection, Endpoint, Incoming
import ctypes

LIMIT: Final = 16 * 1024 * 1024
PATIENCE: Final = 5.0
SILENCE: Final = 1.0
"""Seconds after a message without a single datagram from the other side, which acknowledges at once: it is gone."""
LOOPBACK: Final = "127.0.0.1:0"
_ALPN: Final = b"zuno/mesh/1"
_SECRET_BYTES: Final = 32
_PREFIX_BYTES: Final = 4
_TAKEN: Final = b"\x06"
_READ_PATIENCE: Final = 30.0
_CLOSE_PATIENCE: Final = 0.5
_MOST_CONNECTIONS: Final = 2
"""With one neighbour: both may have called at the same time."""
_MOST_COMMAND_LINES: Final = 4
"""The owner may have several command lines with one key."""
_MOST_STREAMS: Final = 32
"""Messages of one neighbour under way at a time; a peer of ours sends sixteen. The library lets a new connection open a
hundred before it hears of this, each with a window of its own: so what piles up is looked at as well."""
MOST_UNREAD: Final = 32 * 1024 * 1024
"""Bytes that came over one connection and were not read: two messages of the largest size there is."""
_LOOK: Final = 0.05
_IDLE: Final = 0.02
"""Seconds without a new message after which none waits to be read."""
_IDLE_LOOK: Final = 1.0
_MOST_HANDSHAKES: Final = 32
HANDSHAKE: Final = 2.0
"""Seconds a handshake may take: a few round trips around the world."""
_STRANGER, _REPLACED, _TOO_MUCH, _LEAVING = 1, 2, 3, 0
_ENDPOINT_ID: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class IrohPeer:
    endpoint_id: str
    """64 hex digits: the peer's ed25519 public key."""
    address: str | None = None
    """`host:port`; without it the peer is answered over the connection it makes itself."""


@dataclass(eq=False)
class IrohTransport:
    """One role's endpoint. `secret`: its 32-byte ed25519 key; `bind`: the address it listens at. A message is a stream:
    its length in four bytes, the message, and one byte back once it is taken."""

    me: Role
    secret: bytes = field(repr=False)
    peers: Mapping[Role, IrohPeer]
    _: KW_ONLY
    bind: str = LOOPBACK
    patience: float = PATIENCE
    silence: float = SILENCE

    limit = LIMIT
    node = None
    strangers = 0
    dropped = 0
    """Rejected strangers, and messages that broke off or were invalid."""

    def __post_init__(self) -> None:
        if len(self.secret) != _SECRET_BYTES:
            raise UsageError(f"The key of the {self.me} has {len(self.secret)} bytes where {_SECRET_BYTES} are needed.")
        self._book = {role: _readable(role, peer) for role, peer in self.peers.items() if role is not self.me}
        self._roles = {bytes.fromhex(peer.endpoint_id): role for role, peer in self._book.items()}
        if len(self._roles) < len(self._book):
            raise UsageError("Two roles have the same endpoint id; every role needs a key of its own.")
        self._inbox = Inbox()
        self._endpoint: Endpoint | None = None
        self._opening = asyncio.Lock()
        self._dialling: defaultdict[Role, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._connections: defaultdict[Role, list[Connection]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()
        self._handshakes: OrderedDict[int, asyncio.Task[None]] = OrderedDict()
        self._callers = itertools.count()

    @property
    def address(self) -> str | None:
        """Where it listens, once it does."""
        if self._endpoint is None:
            return None
        host = self.bind.rpartition(":")[0]
        return next(bound for bound in self._endpoint.bound_sockets() if bound.rpartition(":")[0] == host)

    async def open(self) -> None:
        iroh = _library()
        async with self._opening:
            self._unless_closed()
            if self._endpoint is not None:
                return
            builder = iroh.EndpointBuilder()
            builder.apply_minimal()
            builder.secret_key(self.secret)
            builder.alpns([_ALPN])
            builder.relay_mode(iroh.RelayMode.disabled())
            try:
                for address in _bind_addresses(self.bind):
                    builder.bind_addr(address)
                self._endpoint = await builder.bind()
            except iroh.IrohError:
                raise Unavailable(
                    f"The {self.me} cannot listen at {self.bind}; free that port, or give an address of this machine."
                ) from None
            self._spawn(self._accept(self._endpoint))

    async def send(self, to: Role, data: bytes) -> None:
        if len(data) > LIMIT:
            raise Refused(f"A message of {len(data)} bytes is over the limit of {LIMIT}.")
        self._unless_closed()
        if to not in self._book:
            raise Unavailable(f"No endpoint is known of the {to}; add it to the address book.")
        await self.open()
        iroh = _library()
        try:
            async with asyncio.timeout(self.patience):
                connection = await self._connection(to)
                await self._hand_over(to, connection, data)
        except TimeoutError:
            raise Unavailable(
                f"The {to} did not answer within {self.patience:g} s; the message may have arrived."
            ) from None
        except iroh.IrohError:
            raise Unavailable(CLOSED if self._inbox.is_closed else f"The connection to the {to} broke off.") from None

    async def receive(self, role: Role) -> ReceivedMessage:
        if role is not self.me:
            raise Refused(f"This endpoint is the {self.me}'s: nothing arrives here for the {role}.")
        await self.open()
        return await self._inbox.take()

    async def close(self) -> None:
        self._inbox.close()
        async with self._opening:  # one that is just being bound has to be closed as well
            endpoint, self._endpoint = self._endpoint, None
        if endpoint is None:
            return
        for connection in (kept for several in self._connections.values() for kept in several):
            connection.close(_LEAVING, b"leaving")
        self._connections.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(_CLOSE_PATIENCE):  # the library waits 3 s for peers that never answered
                await endpoint.close()
        except TimeoutError:
            pass

    # -- connections: either side makes them, both use them

    async def _connection(self, to: Role) -> Connection:
        """The newest living connection, or a new one. A connection that the peer makes meanwhile is used at once."""
        if alive := self._alive(to):
            return alive[-1]
        async with self._dialling[to]:
            alive = self._alive(to)
            return alive[-1] if alive else await self._dial(to)

    def _alive(self, to: Role) -> list[Connection]:
        alive = self._connections[to] = [
            connection for connection in self._connections[to] if connection.close_reason() is None
        ]
        return alive

    async def _dial(self, to: Role) -> Connection:
        peer, endpoint = self._book[to], self._endpoint
        if endpoint is None:
            raise Unavailable(CLOSED)
        if peer.address is None:
            raise Unavailable(f"The {to} has not called yet, and the address book does not say where it is.")
        iroh = _library()
        there = iroh.EndpointAddr(
            iroh.EndpointId.from_bytes(bytes.fromhex(peer.endpoint_id)), None, await _resolve(to, peer.address)
        )
        connection = await endpoint.connect(there, _ALPN)
        self._keep(to, connection)
        return connection

    async def _accept(self, endpoint: Endpoint) -> None:
        """Accept connections. Unverified callers must call again; of too many handshakes the oldest are dropped."""
        iroh = _library()
        while (incoming := await endpoint.accept_next()) is not None:
            try:
                if not await incoming.remote_addr_validated():
                    await incoming.retry()
                    continue
            except iroh.IrohError:  # it has gone meanwhile
                continue
            while len(self._handshakes) >= _MOST_HANDSHAKES:
                self._handshakes.popitem(last=False)[1].cancel()
            caller = next(self._callers)
            self._handshakes[caller] = self._spawn(self._admit(incoming, caller))

    async def _admit(self, incoming: Incoming, caller: int) -> None:
        """The handshake proves the key; a peer that is not in the book is rejected before a byte is read."""
        iroh = _library()
        try:
            async with asyncio.timeout(min(HANDSHAKE, self.patience)):
                connection = await (await incoming.accept()).connect()
        except (iroh.IrohError, TimeoutError):
            return
        finally:
            self._handshakes.pop(caller, None)
        role = self._roles.get(connection.remote_id().to_bytes())
        if role is None:
            self.strangers += 1
            self.dropped += 1
            connection.close(_STRANGER, b"not in the address book")
        else:
            self._keep(role, connection)

    def _keep(self, role: Role, connection: Connection) -> None:
        kept = self._connections[role]
        kept.append(connection)
        if len(kept) > (_MOST_COMMAND_LINES if role is Role.CLI else _MOST_CONNECTIONS):
            kept.pop(0).close(_REPLACED, b"replaced")
        connection.set_max_concurrent_uni_streams(0)
        connection.set_max_concurrent_bi_streams(_MOST_STREAMS)
        self._spawn(self._listen(role, connection))
        self._spawn(self._turn_away(connection))

    def _forget(self, role: Role, connection: Connection, code: int = _REPLACED, why: bytes = b"silent") -> None:
        if connection in self._connections[role]:
            self._connections[role].remove(connection)
        connection.close(code, why)

    # -- messages

    async def _hand_over(self, to: Role, connection: Connection, data: bytes) -> None:
        """Send the data. Ends early when nothing at all comes back, as from a killed peer; waits for a busy one."""
        heard = connection.stats().udp_rx_datagrams
        task = asyncio.ensure_future(_write_message(connection, data))
        try:
            await asyncio.wait([task], timeout=self.silence)
            if not task.done() and connection.stats().udp_rx_datagrams == heard:
                self._forget(to, connection)
                raise Unavailable(f"The {to} has fallen silent; the message may have arrived.")
            if await task != _TAKEN:
                raise Unavailable(f"The {to} did not take the message.")
        finally:
            task.cancel()

    async def _listen(self, role: Role, connection: Connection) -> None:
        """One message at a time. The library keeps what piles up, within a bound."""
        iroh = _library()
        unread = _Unread(connection)
        try:
            while True:
                # No name for the stream: it ends when nobody holds it.
                taking = asyncio.ensure_future(self._take(role, await _next_stream(connection, unread), unread))
                try:
                    while not taking.done():
                        await asyncio.wait([taking], timeout=_LOOK)
                        if unread.too_much():
                            self.dropped += 1
                            self._forget(role, connection, _TOO_MUCH, b"too much at once")
                            return
                    await taking
                finally:
                    taking.cancel()
        except (iroh.IrohError, Unavailable):  # the connection is over, or this transport is
            return

    async def _turn_away(self, connection: Connection) -> None:
        """Unidirectional streams carry no message: they are stopped."""
        iroh = _library()
        try:
            while True:
                stream = await connection.accept_uni()
                self.dropped += 1
                await stream.stop(_STRANGER)
        except iroh.IrohError:
            return

    async def _take(self, role: Role, stream: BiStream, unread: _Unread) -> None:
        iroh = _library()
        await self._inbox.room()
        try:
            async with asyncio.timeout(_READ_PATIENCE):
                frame = await stream.recv().read_to_end(_PREFIX_BYTES + LIMIT)
        except (iroh.IrohError, TimeoutError):
            self.dropped += 1
            with suppress(iroh.IrohError):
                await stream.recv().stop(_STRANGER)
            return
        unread.read(len(frame))
        if len(frame) != _PREFIX_BYTES + int.from_bytes(frame[:_PREFIX_BYTES], "big"):
            self.dropped += 1
            return
        self._inbox.put(ReceivedMessage(frame[_PREFIX_BYTES:], role))
        back = stream.send()
        try:
            await back.write_all(_TAKEN)
            await back.finish()
        except iroh.IrohError:  # the sender has given up waiting; it has arrived all the same
            pass

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._inbox.end_with)
        return task

    def _unless_closed(self) -> None:
        if self._inbox.is_closed:
            raise Unavailable(CLOSED)


class _Unread:
    """Bytes received since nothing waited, less those read: an upper bound of what waits."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.nothing()

    def nothing(self) -> None:
        self._since = self._connection.stats().udp_rx_bytes
        self._read = 0
        self._looked = time.monotonic()

    def read(self, count: int) -> None:
        self._read += count

    def too_much(self) -> bool:
        """Checks now and then only, because a check is not free."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return False
        self._looked = now
        return self._connection.stats().udp_rx_bytes - self._since - self._read > MOST_UNREAD


async def _next_stream(connection: Connection, unread: _Unread) -> BiStream:
    """Streams come in order: while there is no next one, every one before it was read or stopped."""
    accepting = asyncio.ensure_future(connection.accept_bi())
    patience = _IDLE
    try:
        while not (await asyncio.wait([accepting], timeout=patience))[0]:
            unread.nothing()
            patience = _IDLE_LOOK
        return await accepting
    finally:
        accepting.cancel()


async def _write_message(connection: Connection, data: bytes) -> bytes:
    stream = await connection.open_bi()
    there = stream.send()
    await there.write_all(len(data).to_bytes(_PREFIX_BYTES, "big") + data)
    await there.finish()
    return await stream.recv().read_to_end(len(_TAKEN))


def _bind_addresses(bind: str) -> list[str]:
    """An address given for IPv6 has to exist, so `[::1]` is tried first."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return [bind]
    return [bind, "[::1]:0"] if bind.startswith("127.") else [bind]


async def _resolve(role: Role, address: str) -> list[str]:
    """The library takes numeric addresses alone."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)
    except OSError:
        raise Unavailable(f"The address {address} of the {role} cannot be resolved; correct it.") from None
    hosts = dict.fromkeys(ipaddress.ip_address(where[0]) for *_, where in addresses)
    return [f"[{host}]:{port}" if host.version == 6 else f"{host}:{port}" for host in hosts]


def _readable(role: Role, peer: IrohPeer) -> IrohPeer:
    if not _ENDPOINT_ID.fullmatch(peer.endpoint_id.lower()):
        raise UsageError(f"The endpoint id of the {role} is not 64 hex digits; correct the address book.")
    if peer.address is not None:
        host, _, port = peer.address.rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
            raise UsageError(f"The address of the {role}, {peer.address}, is not host:port; correct the address book.")
    return IrohPeer(peer.endpoint_id.lower(), peer.address)


def _library() -> Any:
    try:
        import iroh
        import iroh.iroh_ffi as crossing
    except ImportError:
        raise Unavailable(f"This transport needs the iroh library: {name_install('mesh')}.") from None
    patch_buffer_writer(getattr(crossing, "_UniffiRustBufferBuilder", None))
    return iroh


_PROBE: Final = bytes(range(256)) * 3


def patch_buffer_writer(builder: Any) -> bool:
    """Give the library's buffer builder a `write` that copies at once; returns whether that was possible."""
    if builder is None or getattr(builder, "write", None) is _write:
        return builder is not None
    if not _fits(builder):
        return False
    builder.write = _write
    return True


def _write(self: Any, value: bytes) -> None:
    size = len(value)
    with self._reserve(size):
        if self.rbuf.len + size > self.rbuf.capacity:
            raise BufferError("the iroh library reserved less than it was asked for")
        ctypes.memmove(ctypes.addressof(self.rbuf.data.contents) + self.rbuf.len, bytes(value), size)


def _fits(builder: Any) -> bool:
    """Whether both ways of writing leave the same bytes behind."""
    try:
        theirs, ours = builder(), builder()
        try:
            for piece in (b"\x07", _PROBE, b"", _PROBE):
                theirs.write(piece)
                _write(ours, piece)
            return _buffer_bytes(theirs) == _buffer_bytes(ours) == b"\x07" + 2 * _PROBE
        finally:
            theirs.discard()
            ours.discard()
    except (AttributeError, TypeError, ValueError, BufferError):
        return False


def _buffer_bytes(builder: Any) -> bytes:
    return bytes(builder.rbuf.data[: builder.rbuf.len])
