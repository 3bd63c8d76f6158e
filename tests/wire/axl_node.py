"""AXL nodes on loopback with the manners of the real ones, as they were measured.

At most once and no more: an inbox of 100 that forgets its oldest, senders known by a key rebuilt from an address, sends
that overtake each other, two minutes of silence for a peer that is gone, JSON the node keeps for itself, and on demand
a slow first contact. A send whose caller has gone goes on, and arrives if its peer is there in time. A node can also be
broken, or be something else altogether (`Manner`).
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from typing import Any, Literal

INBOX = 100
LARGEST = 16 * 1024 * 1024
STALL = 127.0
Manner = Literal["node", "garbage", "html", "half-open", "late"]
"""What answers at the address: an AXL node, or bytes that are no HTTP, somebody's page, nobody at all though it takes
connections, or a node that answers after `LATE` seconds."""
LATE = 1.0
_PAGE = b"<!doctype html><title>nginx</title>"
SYN_TIMES = (0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0)
"""Seconds after which a send knocks at its peer: TCP waits twice as long each time."""
FIRST_SENDS = SYN_TIMES[1:4]
"""Seconds that the first send to a peer was measured to take: the way is looked up, and the next SYN finds it."""
_REASONS = {200: "OK", 204: "No Content", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}
_REASONS |= {500: "Internal Server Error", 502: "Bad Gateway"}


def address_of(key_hex: str) -> str:
    """Written as a row of bits, so that it shares nothing with the code under test."""
    bits = "".join("10"[int(bit)] for bit in f"{int(key_hex, 16):0256b}")
    ones = len(bits) - len(bits.lstrip("1"))
    kept = (bits[ones + 1 :] + "0" * 112)[:112]
    return f"02{ones:02x}" + f"{int(kept, 2):028x}"


def rebuilt(address: str) -> str:
    """The key a node makes of an address: what is known of it, then `f`."""
    ones, kept = int(address[2:4], 16), f"{int(address[4:], 16):0112b}"
    bits = ("1" * ones + "0" + kept).ljust(256, "0")[:256]
    return f"{int(''.join('10'[int(bit)] for bit in bits), 2):064x}"


@dataclass
class Overlay:
    """The nodes that can reach each other."""

    stall: float = STALL
    jitter: float = 0.0
    """Up to so many seconds on the way, drawn for each message: what is sent at once arrives in any order."""
    first_sends: tuple[float, ...] = ()
    """Of `SYN_TIMES`: how long the first message from a node to another takes, drawn for each pair; none, and every way
    is known. Whatever is sent meanwhile waits for its own next SYN."""
    pace: float = 1.0
    """What `SYN_TIMES` are multiplied with."""
    chance: random.Random = field(default_factory=lambda: random.Random(20))
    nodes: dict[str, AxlNode] = field(default_factory=dict)


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Answer = tuple[int, dict[str, str], bytes]


@dataclass
class AxlNode:
    """One node: its key, and an HTTP API without any authentication."""

    overlay: Overlay
    key: str
    """64 hex digits; only the address it derives matters to the overlay."""
    tcp_port: int = 7000
    routing: bool = True
    """Whether JSON for MCP and A2A is kept from the inbox."""
    fault: Callable[[Request], Answer | None] = lambda request: None
    """Answers in the node's place where it has one."""
    manner: Manner = "node"
    inbox: deque[tuple[str, bytes]] = field(default_factory=lambda: deque(maxlen=INBOX))
    heard: list[Request] = field(default_factory=list)
    connections: int = 0
    _ways: dict[str, float] = field(default_factory=dict)
    """When the way to a node is found."""
    _port: int = 0
    _server: asyncio.Server | None = None
    _serving: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def address(self) -> str:
        return address_of(self.key)

    async def start(self) -> None:
        """With nothing in the inbox: a node remembers nothing."""
        self.inbox.clear()
        self._ways.clear()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=1 << 20)
        self._port = self._server.sockets[0].getsockname()[1]
        self.overlay.nodes[self.address] = self

    async def stop(self) -> None:
        self.overlay.nodes.pop(self.address, None)
        for node in self.overlay.nodes.values():
            node._ways.pop(self.address, None)
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._server is None or not self._server.is_serving():  # taken while the node was being stopped
            writer.close()
            return
        self._serving.add(task)
        self.connections += 1
        try:
            while True:
                request = await _read(reader)
                self.heard.append(request)
                match self.manner:
                    case "garbage":
                        writer.write(b"\x00\xffSSH-2.0-garbage\r\n\r\n")
                        break
                    case "half-open":
                        await asyncio.sleep(STALL)
                    case "late":
                        await asyncio.sleep(LATE)
                status, headers, body = self.fault(request) or await self._answer(request)
                lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'X')}"]
                lines += [f"{name}: {value}" for name, value in headers.items()]
                lines += [] if status == 204 else [f"Content-Length: {len(body)}"]
                writer.write("\r\n".join([*lines, "", ""]).encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._serving.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, request: Request) -> Answer:
        if self.manner == "html":
            return 200, {"Content-Type": "text/html"}, _PAGE
        match request.path:
            case "/send":
                return await self._send(request)
            case "/recv":
                if not self.inbox:
                    return 204, {}, b""
                sender, data = self.inbox.popleft()
                return 200, {"Content-Type": "application/octet-stream", "X-From-Peer-Id": sender}, data
            case "/topology":
                ipv6 = str(IPv6Address(bytes.fromhex(self.address)))
                told = {"our_ipv6": ipv6, "our_public_key": self.key, "peers": None, "tree": None}
                return 200, {"Content-Type": "application/json"}, json.dumps(told).encode()
        return 404, {}, b"404 page not found\n"

    async def _send(self, request: Request) -> Answer:
        if request.method != "POST":
            return 405, {}, b"Method not allowed\n"
        to = request.headers.get("x-destination-peer-id", "")
        if not re.fullmatch(r"[0-9a-fA-F]{64}", to):
            return 400, {}, b"Invalid destination peer ID\n"
        if self.overlay.jitter:
            await asyncio.sleep(self.overlay.chance.uniform(0, self.overlay.jitter))
        peer = await self._dial(address_of(to))
        if peer is None:
            return 502, {}, b"Failed to reach peer: operation timed out\n"
        if peer.tcp_port != self.tcp_port:
            return 502, {}, b"Failed to reach peer: connection was refused\n"
        peer._arrived(rebuilt(self.address), request.body)
        return 200, {"Content-Type": "application/octet-stream", "X-Sent-Bytes": str(len(request.body))}, b""

    async def _dial(self, address: str) -> AxlNode | None:
        """The peer, at the first SYN that finds it there and the way known; nobody who goes ends it."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for seconds in SYN_TIMES:
            after = seconds * self.overlay.pace
            if after > self.overlay.stall:
                break
            await asyncio.sleep(began + after - loop.time())
            peer = self.overlay.nodes.get(address)
            if peer is not None and self._knows_way(address, loop.time()):
                return peer
        await asyncio.sleep(began + self.overlay.stall - loop.time())
        return None

    def _knows_way(self, address: str, now: float) -> bool:
        if not self.overlay.first_sends:
            return True
        if address not in self._ways:  # found shortly before the SYN that is to get through
            self._ways[address] = now + 0.9 * self.overlay.pace * self.overlay.chance.choice(self.overlay.first_sends)
        return now >= self._ways[address]

    def _arrived(self, sender: str, data: bytes) -> None:
        """What is too large or routed elsewhere is gone, and the sender has been told that all is well."""
        if len(data) <= LARGEST and not (self.routing and _routed(data)):
            self.inbox.append((sender, data))


def _routed(data: bytes) -> bool:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and bool({"service", "a2a"} & document.keys())


async def _read(reader: asyncio.StreamReader) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


@asynccontextmanager
async def axl_nodes(
    keys: list[str],
    stall: float = STALL,
    jitter: float = 0.0,
    first_sends: tuple[float, ...] = (),
    pace: float = 1.0,
) -> AsyncIterator[list[AxlNode]]:
    """Nodes that reach each other, one for each key."""
    overlay = Overlay(stall, jitter, first_sends, pace)
    nodes = [AxlNode(overlay, key) for key in keys]
    try:
        for node in nodes:
            await node.start()
        yield nodes
    finally:
        for node in nodes:
            await node.stop()
