"""Limits on connections, so that a process without a login cannot block the page for others.

A request has to arrive within seconds. Of connections that showed no login so many are kept, and the oldest makes room
for the newest; places for others are kept back, and descriptors for files.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

REQUEST_SECONDS: Final = 10.0
"""From a connection's or a request's first byte to its last: head and body."""
IDLE_SECONDS: Final = 15
"""Between two requests."""
KNOWN_PLACES: Final = 32
"""Kept back for connections that showed a login."""
ACCEPTED_AT_ONCE: Final = 64
"""Connections that the system may hand over before the first of them is looked at."""
WAITING_AT_ONCE: Final = 2_048
"""Connections that the system keeps until they are handed over."""
KEPT_DESCRIPTORS: Final = 256
"""For the journal, the market, the chains and the kill lock."""
MOST_STRANGERS: Final = 512
_WANTED_DESCRIPTORS: Final = 4_096


def count_places() -> int:
    """How many strangers may be connected at once; the limit of open files is raised first, where it can be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _WANTED_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    limit = max(soft, wanted) if soft != resource.RLIM_INFINITY else _WANTED_DESCRIPTORS
    return max(8, min(MOST_STRANGERS, limit - KEPT_DESCRIPTORS - 2 * ACCEPTED_AT_ONCE - KNOWN_PLACES))


class Connections:
    def __init__(self, places: int) -> None:
        self._places = places
        self._strangers: dict[Connection, None] = {}
        """The oldest first."""

    def add(self, connection: Connection) -> None:
        self._strangers[connection] = None
        if len(self._strangers) > self._places:
            next(iter(self._strangers)).drop()

    def remove(self, connection: Connection) -> None:
        """Of those without a login: it showed one, or is closed."""
        self._strangers.pop(connection, None)


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's own; a request finds it in its state as `connection`."""

    def __init__(self, others: Connections, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.app_state: dict[str, Any] = {**self.app_state, "connection": self}
        self._others = others
        self._late: asyncio.TimerHandle | None = None
        self.looking: asyncio.Task[Any] | None = None
        """What a look computes for whoever is at the other end."""
        self.gone = False

    def recognise(self) -> None:
        self._others.remove(self)

    def drop(self) -> None:
        self._others.remove(self)
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._others.add(self)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        self._expect_request()
        super().data_received(data)
        request = self.cycle
        if request and not (request.more_body or request.response_complete) and self._late is not None:
            self._late.cancel()
            self._late = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self._others.remove(self)
        if self._late is not None:
            self._late.cancel()
        if self.looking is not None:
            self.looking.cancel()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(REQUEST_SECONDS, self.drop)
