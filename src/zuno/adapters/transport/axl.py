"""Peers behind AXL nodes: one HTTP API on this side, an overlay that knows keys in between.

The node keeps 100 messages in memory, drops the oldest and forgets all of them in a restart. It stalls two minutes for
a peer that is gone, so every exchange here has a bound of its own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from zuno.adapters.transport.inbox import CLOSED, Inbox
from zuno.kernel.backoff import Backoff
from zuno.kernel.errors import Malformed, Refused, Unavailable, UsageError
from zuno.lp.model.debate import Role
from zuno.lp.ports.transport import ReceivedMessage

if TYPE_CHECKING:
    import httpx2


NODE_LIMIT: Final = 16 * 1024 * 1024
PATIENCE: Final = 5.0
FIRST_PATIENCE: Final = 8.0
"""For a peer that never took a message of ours: its node looks for the way, which took three seconds when measured."""
SHORTEST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.25
_MARK: Final = b"\x01"
"""Before every message: no JSON starts with it, and a node keeps some JSON for itself."""
_PEER_ID: Final = re.compile(r"[0-9a-f]{64}")
_LONGEST_ANSWER: Final = 4 * 1024 * 1024
_OK, _EMPTY = 200, 204
KEY_BYTES = 32
_KEY_BITS = 8 * KEY_BYTES
_KEPT_BITS = 112
_ALL = (1 << _KEY_BITS) - 1


class AxlTransport:
    """One role's endpoint, at its own node. `peers` are the others' ids; `patience` bounds an exchange as a whole,
    `first_patience` those with a peer until it has taken a message."""

    def __init__(
        self,
        me: Role,
        api_url: str,
        peers: Mapping[Role, str],
        *,
        patience: float = PATIENCE,
        first_patience: float = FIRST_PATIENCE,
    ) -> None:
        self._me = me
        self._url = api_url.rstrip("/")
        self._ids = {role: _readable(role, peer_id) for role, peer_id in peers.items() if role is not me}
        self._roles = {overlay_address(bytes.fromhex(peer_id)): role for role, peer_id in self._ids.items()}
        if len(self._roles) < len(self._ids):
            raise UsageError("Two roles have the same AXL peer id; every role needs a node of its own.")
        self._patience = patience
        self._first_patience = max(patience, first_patience)
        self._met: set[Role] = set()
        self._inbox = Inbox()
        self._client: httpx2.AsyncClient | None = _build_client(self._url)  # now, and not while somebody waits
        self._fetching: asyncio.Task[None] | None = None
        self._under_way: set[asyncio.Timeout] = set()
        self._traffic = asyncio.Event()
        self.dropped = 0
        """Messages that were none of a known peer's, or not written by such a transport."""

    @property
    def limit(self) -> int:
        return NODE_LIMIT - len(_MARK)

    async def send(self, to: Role, data: bytes) -> None:
        if len(data) > self.limit:
            raise Refused(f"A message of {len(data)} bytes is over the limit of {self.limit}.")
        if self._inbox.is_closed:
            raise Unavailable(CLOSED)
        peer_id = self._ids.get(to)
        if peer_id is None:
            raise Unavailable(f"No AXL peer id is known of the {to}; set ZUNO_AXL_{to.upper()}_PEER_ID.")
        patience = self._patience if to in self._met else self._first_patience
        status, _, headers = await self._exchange(
            "POST", "/send", {"X-Destination-Peer-Id": peer_id}, _MARK + data, most=_LONGEST_ANSWER, patience=patience
        )
        _judge(status, to)
        self._met.add(to)
        self._traffic.set()
        sent = headers.get("X-Sent-Bytes")
        if sent is not None and sent != str(len(data) + len(_MARK)):
            raise Unavailable(f"The AXL node sent {sent} of {len(data) + len(_MARK)} bytes to the {to}.")

    async def receive(self, role: Role) -> ReceivedMessage:
        if role is not self._me:
            raise Refused(f"This endpoint is the {self._me}'s: nothing arrives here for the {role}.")
        if self._fetching is None and not self._inbox.is_closed:
            # A task of its own: a node forgets what it has handed out, so a receiver that gives up must not lose it.
            self._fetching = asyncio.create_task(self._fetch())
            self._fetching.add_done_callback(self._inbox.end_with)
        return await self._inbox.take()

    async def close(self) -> None:
        self._inbox.close()
        for bound in self._under_way:
            bound.reschedule(asyncio.get_running_loop().time())
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def _fetch(self) -> None:
        """Drains the node until it has nothing, then asks less and less often; quick again after traffic either way."""
        empty = 0
        while True:
            await self._inbox.room()
            try:
                empty = 0 if await self._fetch_one() else empty + 1
                pause = Backoff(SHORTEST_PAUSE, LONGEST_PAUSE).delay(empty)
            except (Unavailable, Malformed):
                pause = LONGEST_PAUSE
            if pause and await self._wait_for_traffic(pause):
                empty = 0

    async def _wait_for_traffic(self, pause: float) -> bool:
        """Whether something was sent in this pause, which is then over: an answer is not far."""
        try:
            async with asyncio.timeout(pause):
                await self._traffic.wait()
        except TimeoutError:
            return False
        self._traffic.clear()
        return True

    async def _fetch_one(self) -> bool:
        status, body, headers = await self._exchange("GET", "/recv", {}, b"", most=NODE_LIMIT)
        if status == _EMPTY:
            return False
        if status != _OK:
            raise Malformed(f"What answers at {self._url} is no AXL node (HTTP {status} for its inbox).")
        sender = self._sender(headers.get("X-From-Peer-Id", ""))
        if sender is None or not body.startswith(_MARK):
            self.dropped += 1
        else:
            self._inbox.put(ReceivedMessage(body[len(_MARK) :], sender))
        return True

    def _sender(self, padded_id: str) -> Role | None:
        if not _PEER_ID.fullmatch(padded_id.lower()):
            return None
        return self._roles.get(overlay_address(bytes.fromhex(padded_id)))

    async def _exchange(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        most: int,
        patience: float | None = None,
    ) -> tuple[int, bytes, Mapping[str, str]]:
        import httpx2

        seconds = self._patience if patience is None else patience
        bound = asyncio.timeout(seconds)
        self._under_way.add(bound)
        try:
            async with bound, self._http().stream(method, self._url + path, headers=headers, content=body) as response:
                return response.status_code, await _whole(response, most), response.headers
        except (TimeoutError, httpx2.HTTPError) as error:
            why = f"No AXL node answers at {self._url}; start it, or correct its URL."
            if isinstance(error, TimeoutError | httpx2.TimeoutException):
                why = f"The AXL node at {self._url} did not answer within {seconds:g} s; what was sent may arrive."
            raise Unavailable(CLOSED if self._inbox.is_closed else why) from None
        finally:
            self._under_way.discard(bound)

    def _http(self) -> httpx2.AsyncClient:
        if self._inbox.is_closed or self._client is None:
            raise Unavailable(CLOSED)
        return self._client


def _build_client(url: str) -> httpx2.AsyncClient:
    """No proxy and no redirect: a node is a neighbour, and the message is for it alone. Every exchange has its own
    bound; and a plain address needs no certificates, which take a tenth of a second to load."""
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


def _readable(role: Role, peer_id: str) -> str:
    if not _PEER_ID.fullmatch(peer_id.lower()):
        raise UsageError(
            f"The AXL peer id of the {role} is not 64 hex digits; correct ZUNO_AXL_{role.upper()}_PEER_ID."
        )
    return peer_id.lower()


def _judge(status: int, to: Role) -> None:
    match status:
        case 200:
            return
        case 400:
            raise Refused(f"The AXL node does not take the {to}'s peer id (HTTP 400); correct it.")
        case 502:
            raise Unavailable(f"The AXL node does not reach the {to} (HTTP 502).")
        case 500:
            raise Unavailable(f"The AXL node broke off on the way to the {to} (HTTP 500); part may have arrived.")
        case _:
            raise Malformed(f"What answers in place of an AXL node says HTTP {status} to a message; correct its URL.")


async def _whole(response: httpx2.Response, most: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > most:
            raise Malformed(f"An AXL node answered with more than {most} bytes.")
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
