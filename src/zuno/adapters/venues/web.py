"""Plain web services of the trading desk: one address, bounded answers, and a key that reaches nobody else."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import unquote, unquote_plus

import httpx2

from zuno.adapters.http import OK, PATIENCE, BoundedGet, Patience
from zuno.adapters.http import Answer as Raw
from zuno.adapters.venues.reading import Answer, parsed
from zuno.kernel.errors import Unavailable, Usage

BAD_REQUEST: Final = 400
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_LOG: Final = logging.getLogger("httpx2")


class Declined(Unavailable):
    """The service will not answer that question. What it said of it is for us to read, never to repeat."""

    def __init__(self, message: str, said: bytes) -> None:
        super().__init__(message)
        self.said = said


class Web:
    """GETs and POSTs of one service. The client's log quotes addresses; lines with the key, as it is or as
    addresses write it, are taken out of it."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
        patience: Patience = PATIENCE,
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if secret and httpx2.URL(url).scheme != "https" and httpx2.URL(url).host not in LOOPBACK:
            raise Usage(f"The address of {name} must be https: a key travels with every request.")
        if secret and not (secret.isascii() and secret.isprintable()):
            raise Usage(f"The key of {name} holds characters that no key has; copy it again.")
        self.name = name
        self._secret = secret
        self._client = httpx2.AsyncClient(
            base_url=url,
            headers={"user-agent": "zuno", **(headers or {})},
            timeout=patience.timeout,
            transport=transport,
            follow_redirects=False,
        )
        self._http = BoundedGet(name, self._client, patience, sleep=sleep, chance=chance, reads=(OK, BAD_REQUEST))
        if secret:
            _LOG.addFilter(self._harmless)

    async def json(self, path: str, what: str, params: Mapping[str, str]) -> Answer:
        return parsed(self._taken(await self._http.get(path, params)), f"{self.name}'s {what}")

    async def text(self, path: str, what: str, params: Mapping[str, str]) -> str:
        body = self._taken(await self._http.get(path, params))
        return body.decode("utf-8", errors="replace")

    async def post(self, path: str, what: str, document: object) -> Answer:
        return parsed(self._taken(await self._http.post(path, document)), f"{self.name}'s {what}")

    async def close(self) -> None:
        _LOG.removeFilter(self._harmless)
        await self._client.aclose()

    def _taken(self, answer: Raw) -> bytes:
        if answer.status != OK:
            message = f"{self.name} declined (HTTP {answer.status}); check what was asked for and the key"
            raise Declined(message, answer.body)
        return answer.body

    def _harmless(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        return self._secret is None or not any(
            self._secret in text for text in (said, unquote(said), unquote_plus(said))
        )
