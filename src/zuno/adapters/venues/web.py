"""HTTP services of the trading desk: one address, bounded answers, and the key kept out of logs."""

import asyncio
import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import httpx2

from zuno.adapters.http import CLIENT_LOG, LOOPBACK, OK, PATIENCE, HttpAnswer, HttpClient, RequestLimits, SecretFilter
from zuno.adapters.venues.vendor_json import VendorJson, parse_json
from zuno.kernel.errors import Unavailable, UsageError

BAD_REQUEST: Final = 400


class RequestDeclined(Unavailable):
    """The service declined the request. `body` is for us to read, never to repeat."""

    def __init__(self, message: str, body: bytes) -> None:
        super().__init__(message)
        self.body = body


class WebService:
    """GETs and POSTs of one service. Lines with the key, plain or URL-encoded, are kept out of the client's log."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
        patience: RequestLimits = PATIENCE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if secret and httpx2.URL(url).scheme != "https" and httpx2.URL(url).host not in LOOPBACK:
            raise UsageError(f"The address of {name} must be https: a key travels with every request.")
        if secret and not (secret.isascii() and secret.isprintable()):
            raise UsageError(f"The key of {name} holds characters that no key has; copy it again.")
        self.name = name
        self._hide_key = SecretFilter(secret) if secret else None
        self._client = httpx2.AsyncClient(
            base_url=url,
            headers={"user-agent": "zuno", **(headers or {})},
            timeout=patience.timeout,
            follow_redirects=False,
        )
        self._http = HttpClient(name, self._client, patience, sleep=sleep, reads=(OK, BAD_REQUEST))
        if self._hide_key is not None:
            CLIENT_LOG.addFilter(self._hide_key)

    async def json(self, path: str, what: str, params: Mapping[str, str]) -> VendorJson:
        return parse_json(self._require_ok(await self._http.get(path, params)), f"{self.name}'s {what}")

    async def text(self, path: str, what: str, params: Mapping[str, str]) -> str:
        body = self._require_ok(await self._http.get(path, params))
        return body.decode("utf-8", errors="replace")

    async def post(self, path: str, what: str, document: object) -> VendorJson:
        return parse_json(self._require_ok(await self._http.post(path, document)), f"{self.name}'s {what}")

    async def close(self) -> None:
        if self._hide_key is not None:
            CLIENT_LOG.removeFilter(self._hide_key)
        await self._client.aclose()

    def _require_ok(self, answer: HttpAnswer) -> bytes:
        if answer.status != OK:
            message = f"{self.name} declined (HTTP {answer.status}); check what was asked for and the key"
            raise RequestDeclined(message, answer.body)
        return answer.body


class WebFeed:
    def __init__(self, web: WebService) -> None:
        self._web = web
        self.close = web.close


def clean(raw: str, limit: int) -> str:
    """Lines are kept; control, format and private characters go, runs of space become one, what is too long is cut."""
    lines: list[str] = []
    for line in raw[: limit * 16].splitlines():
        kept = ("" if unicodedata.category(char)[0] == "C" and char != "\t" else char for char in line)
        words = " ".join("".join(kept).split())
        if words:
            lines.append(words)
    text = "\n".join(lines)
    return text if len(text) <= limit else text[: limit - 1] + "…"
