"""Peers behind AXL nodes: a local HTTP API, and an overlay that knows peers by key.

The node keeps 100 messages in memory, drops the oldest and loses all of them in a restart. It stalls two minutes for a
peer that is gone, so every exchange here has a bound of its own. It gives its messages to whoever asks, so nothing is
asked or sent before the node's key was checked against the table.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final

from zuno.adapters.transport.inbox import CLOSED, Inbox
from zuno.kernel.backoff import Backoff
from zuno.kernel.errors import Malformed, Refused, Unavailable, UsageError, ZunoError
from zuno.lp.model.debate import Role
from zuno.lp.ports.transport import NodeHealth, NodeState, ReceivedMessage

if TYPE_CHECKING:
    import httpx2


NODE_LIMIT: Final = 16 * 1024 * 1024
PATIENCE: Final = 5.0
FIRST_PATIENCE: Final = 10.0
"""For a peer that never took a message of ours: our node looks for the way and knocks again after 1, 3 and 7 s."""
OPEN_PATIENCE: Final = 1.5
"""For a node's word about itself, which takes it milliseconds, while somebody waits for the endpoint to open."""
SHORTEST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.25
_MARK: Final = b"\x01"
"""Before every message: no JSON starts with it, and a node keeps some JSON for itself."""
_PEER_ID: Final = re.compile(r"[0-9a-f]{64}")
_LONGEST_ANSWER: Final = 4 * 1024 * 1024
_OK, _EMPTY = 200, 204
_HUNG_UP: Final = "disconnected"
"""How the library reports a connection that ended without an answer: the node was killed."""
_FAULTS: Final[dict[NodeState, str]] = {
    "not ours": "The AXL node at {url} is not the {me}'s ({detail}); give ours another port, or correct its id.",
    "not AXL": "What answers at {url} is no AXL node ({detail}); correct its URL.",
    "late": "No AXL node answers at {url}; start it, or correct its URL ({detail}).",
}
_SEND_ERRORS: Final[dict[int, tuple[type[ZunoError], str]]] = {
    400: (Refused, "does not take the {}'s peer id"),
    500: (Unavailable, "broke off on the way to the {}, and part may have arrived"),
    502: (Unavailable, "does not reach the {}"),
}
KEY_BYTES = 32
_KEY_BITS = 8 * KEY_BYTES
_KEPT_BITS = 112
_ALL = (1 << _KEY_BITS) - 1


class _UncheckedConnectionError(Exception):
    """A request would have opened a new connection, to an unchecked node."""


@dataclass(eq=False)
class AxlTransport:
    """One role's endpoint, at its own node. `peers` are the ids of all, its own among them: without that any node will
    do. `patience` bounds an exchange as a whole, `first_patience` those with a peer until it has taken a message."""

    me: Role
    api_url: str
    peers: Mapping[Role, str]
    _: KW_ONLY
    patience: float = PATIENCE
    first_patience: float = FIRST_PATIENCE

    limit = NODE_LIMIT - len(_MARK)
    strangers = 0
    dropped = 0
    """Messages that were none of a known peer's, or not written by such a transport."""

    def __post_init__(self) -> None:
        self._url = self.api_url.rstrip("/")
        self._ids = {role: _readable(role, peer_id) for role, peer_id in self.peers.items()}
        self._own_id = self._ids.pop(self.me, None)
        self._roles = {_address(peer_id): role for role, peer_id in self._ids.items()}
        if len(self._roles) < len(self._ids):
            raise UsageError("Two roles have the same AXL peer id; every role needs a node of its own.")
        self._met: set[Role] = set()
        self._inbox = Inbox()
        self._client = _build_client(self._url)  # now, and not while somebody waits
        self._fetching: asyncio.Task[None] | None = None
        self._under_way: set[asyncio.Timeout] = set()
        self._traffic = asyncio.Event()
        self.node = NodeHealth(state="late", why=f"The AXL node at {self._url} has not answered yet.")

    async def send(self, to: Role, data: bytes) -> None:
        if len(data) > self.limit:
            raise Refused(self._with_state(f"A message of {len(data)} bytes is over the limit of {self.limit}."))
        if to not in self._ids:
            raise Unavailable(self._with_state(f"No AXL peer id of the {to}; set ZUNO_AXL_{to.upper()}_PEER_ID."))
        patience = self.patience if to in self._met else max(self.patience, self.first_patience)
        status, _, headers = await self._ask_own_node("/send", _LONGEST_ANSWER, patience, to, _MARK + data)
        self._judge(status, headers.get("X-Sent-Bytes"), len(_MARK) + len(data), to)
        self._met.add(to)
        self._traffic.set()

    async def receive(self, role: Role) -> ReceivedMessage:
        if role is not self.me:
            raise Refused(self._with_state(f"This endpoint is the {self.me}'s: nothing arrives here for the {role}."))
        if self._fetching is None and not self._inbox.is_closed:
            # A task of its own: a node forgets what it has handed out, so a receiver that gives up must not lose it.
            self._fetching = asyncio.create_task(self._fetch())
            self._fetching.add_done_callback(self._inbox.end_with)
        return await self._inbox.take()

    async def open(self) -> None:
        """Asks the node for its key. `node` has the answer: a node may also come later, and is asked again then."""
        with suppress(Unavailable, Malformed):
            await self._check_node(min(self.patience, OPEN_PATIENCE))

    async def close(self) -> None:
        self._inbox.close(Unavailable(self._with_state(CLOSED)))
        for bound in self._under_way:
            bound.reschedule(asyncio.get_running_loop().time())
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])
        await self._client.aclose()

    async def _fetch(self) -> None:
        """Fetches until the node has nothing, then less and less often; quickly again after traffic either way."""
        empty = 0
        while True:
            await self._inbox.room()
            try:
                empty = 0 if await self._fetch_one() else empty + 1
                pause = Backoff(SHORTEST_PAUSE, LONGEST_PAUSE).delay(empty)
            except (Unavailable, Malformed):  # `node` says why
                pause = LONGEST_PAUSE
            if pause:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):  # something that is sent ends it
                        await self._traffic.wait()
                        self._traffic.clear()
                        empty = 0

    async def _fetch_one(self) -> bool:
        status, body, headers = await self._ask_own_node("/recv", NODE_LIMIT, self.patience)
        if status == _EMPTY:
            return False
        if status != _OK or "X-From-Peer-Id" not in headers:
            raise self._note_fault("not AXL", f"HTTP {status} for its inbox")
        padded_id = headers["X-From-Peer-Id"].lower()
        sender = self._roles.get(_address(padded_id)) if _PEER_ID.fullmatch(padded_id) else None
        if sender is None or not body.startswith(_MARK):
            self.strangers += sender is None
            self.dropped += 1
        else:
            self._inbox.put(ReceivedMessage(body[len(_MARK) :], sender))
        return True

    async def _ask_own_node(
        self, path: str, most: int, patience: float, to: Role | None = None, body: bytes | None = None
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Over the open connection. Before a new one the node's key is checked: another may be in its place."""
        if self.node.state == "ok":
            with suppress(_UncheckedConnectionError):
                return await self._exchange(path, most, patience, to, body, {"trace": _refuse_to_connect})
        await self._check_node(self.patience)
        return await self._exchange(path, most, patience, to, body)

    async def _check_node(self, patience: float) -> None:
        """Check the node's key against the table; a stranger's node is neither read nor sent to."""
        status, body, _ = await self._exchange("/topology", _LONGEST_ANSWER, patience)
        key = _own_key(body) if status == _OK else None
        if key is None:
            raise self._note_fault("not AXL", f"HTTP {status} for its topology")
        if self._own_id is not None and _address(key) != _address(self._own_id):
            raise self._note_fault("not ours", f"it has the key {key[:16]}…, and the table {self._own_id[:16]}…")
        self.node = NodeHealth(state="ok")

    def _note_fault(self, state: NodeState, detail: str) -> ZunoError:
        self.node = NodeHealth(state=state, why=_FAULTS[state].format(url=self._url, me=self.me, detail=detail))
        return (Malformed if state == "not AXL" else Unavailable)(self._with_state(self.node.why))

    def _with_state(self, sentence: str) -> str:
        return f"{sentence} [node: {self.node.state}]"

    def _judge(self, status: int, sent: str | None, size: int, to: Role) -> None:
        """Returns only where the node says that it has sent every byte."""
        if status == _OK and sent is not None:
            if sent != str(size):
                raise Unavailable(self._with_state(f"The AXL node sent {sent[:20]} of {size} bytes to the {to}."))
        elif status in _SEND_ERRORS:
            error, words = _SEND_ERRORS[status]
            raise error(self._with_state(f"The AXL node {words.format(to)} (HTTP {status})."))
        else:
            raise self._note_fault("not AXL", f"HTTP {status} to a message, and not how many bytes were sent")

    async def _exchange(
        self,
        path: str,
        most: int,
        patience: float,
        to: Role | None = None,
        body: bytes | None = None,
        extensions: dict[str, Any] | None = None,
    ) -> tuple[int, bytes, Mapping[str, str]]:
        import httpx2

        if self._inbox.is_closed:
            raise Unavailable(self._with_state(CLOSED))
        method, headers = ("GET", {}) if to is None else ("POST", {"X-Destination-Peer-Id": self._ids[to]})
        request = self._client.stream(method, self._url + path, headers=headers, content=body, extensions=extensions)
        bound = asyncio.timeout(patience)
        self._under_way.add(bound)
        try:
            async with bound, request as response:
                return response.status_code, await _whole(response, most), response.headers
        except (TimeoutError, httpx2.HTTPError) as error:
            if self._inbox.is_closed:
                raise Unavailable(self._with_state(CLOSED)) from None
            silent = isinstance(error, TimeoutError | httpx2.TimeoutException)
            if silent and to is not None:
                why = f"The AXL node did not reach the {to} within {patience:g} s; what was sent may arrive."
                raise Unavailable(self._with_state(why)) from None
            if isinstance(error, httpx2.RemoteProtocolError) and _HUNG_UP not in str(error):
                raise self._note_fault("not AXL", "its answer cannot be read") from None
            raise self._note_fault("late", f"silent for {patience:g} s" if silent else "no connection") from None
        finally:
            self._under_way.discard(bound)


def _build_client(url: str) -> httpx2.AsyncClient:
    """No proxy, no redirect, and for a plain address no certificates, which take 0.1 s to load."""
    import ssl

    import httpx2

    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx2.AsyncClient(
        timeout=None,
        headers={"Accept-Encoding": "identity"},
        follow_redirects=False,
        trust_env=False,
        verify=plain if url.startswith("http://") else True,
    )


async def _refuse_to_connect(event: str, info: object) -> None:
    if event == "connection.connect_tcp.started":
        raise _UncheckedConnectionError


def _readable(role: Role, peer_id: str) -> str:
    if not _PEER_ID.fullmatch(peer_id.lower()):
        raise UsageError(
            f"The AXL peer id of the {role} is not 64 hex digits; correct ZUNO_AXL_{role.upper()}_PEER_ID."
        )
    return peer_id.lower()


def _own_key(topology: bytes) -> str | None:
    try:
        key = json.loads(topology)["our_public_key"].lower()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return key if _PEER_ID.fullmatch(key) else None


def _address(key: str) -> bytes:
    return overlay_address(bytes.fromhex(key))


async def _whole(response: httpx2.Response, most: int) -> bytes:
    import httpx2

    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > most:
            raise httpx2.RemoteProtocolError(f"more than {most} bytes")
    return bytes(body)


def overlay_address(key: bytes) -> bytes:
    """The 16 bytes, a Yggdrasil address, that a node with this ed25519 public key is reached by: as much of the key as
    fits. AXL hands out a key rebuilt from it; such a key never equals the real one, and both derive the same address.

    0x02; the count of leading zeros of the key; then, every bit turned over, the 112 bits behind the first one.
    """
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes, this one {len(key)}")
    number = int.from_bytes(key, "big")
    zeros = _KEY_BITS - number.bit_length()
    behind = ((number ^ _ALL) << (zeros + 1)) & _ALL
    return bytes((0x02, zeros & 0xFF)) + (behind >> (_KEY_BITS - _KEPT_BITS)).to_bytes(_KEPT_BITS // 8, "big")
