"""Notices by the Telegram Bot API: one `sendMessage` each, nothing read but whether it arrived.

The token is part of every address, and both transport errors and the HTTP client's log quote addresses: no error is
kept or told, and lines with the token are taken out of that log.
"""

from __future__ import annotations

import asyncio
import json
import re
from html import escape
from typing import Any, Final

import httpx2

from zuno.adapters.http import CLIENT_LOG, LOOPBACK, SecretFilter
from zuno.kernel.errors import Usage
from zuno.kernel.notify import Notice, RetryLater, SendResult, Sent, Severity, Undeliverable
from zuno.kernel.text import plain_text

TIMEOUT: Final = 10.0
_TOKEN: Final = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,128}")
_CHAT: Final = re.compile(r"-?[0-9]{1,20}|@[A-Za-z0-9_]{1,64}")
_LONGEST_REASON: Final = 1_000
_LONGEST_ANSWER: Final = 65_536
_LONGEST_WAIT: Final = 3_600.0
_OK, _BAD_REQUEST, _TOO_MANY = 200, 400, 429
_SETTINGS_WRONG: Final = {
    401: "Telegram does not know the bot's token (HTTP 401); correct ZUNO_TELEGRAM_BOT_TOKEN",
    403: "the bot may not write to this chat (HTTP 403); start it there, or correct ZUNO_TELEGRAM_CHAT_ID",
    404: "Telegram knows no such bot (HTTP 404); correct ZUNO_TELEGRAM_BOT_TOKEN or ZUNO_TELEGRAM_API_BASE_URL",
}
_MARKS: Final = {Severity.CRITICAL: "\N{LARGE RED CIRCLE}", Severity.WARNING: "\N{LARGE YELLOW CIRCLE}"}
_CALM: Final = "\N{LARGE GREEN CIRCLE}"


class TelegramNotifier:
    """Sends to one chat. `timeout` bounds an attempt as a whole."""

    def __init__(self, token: str, chat_id: str, base_url: str, *, timeout: float = TIMEOUT) -> None:
        if not _TOKEN.fullmatch(token.strip()):
            raise Usage("ZUNO_TELEGRAM_BOT_TOKEN is not a bot's token; BotFather gives digits, a colon and a secret.")
        if not _CHAT.fullmatch(chat_id.strip()):
            raise Usage("ZUNO_TELEGRAM_CHAT_ID is not a chat; give its number or @name.")
        url = httpx2.URL(base_url)
        if url.scheme == "http" and url.host not in LOOPBACK:
            raise Usage("ZUNO_TELEGRAM_API_BASE_URL must be https: the bot's token travels in the address.")
        self._url = f"{base_url.rstrip('/')}/bot{token.strip()}/sendMessage"
        self._hush = SecretFilter(token.strip())
        self._chat = chat_id.strip()
        self._timeout = timeout
        self._client: httpx2.AsyncClient | None = None

    async def send(self, notice: Notice) -> SendResult:
        body = {
            "chat_id": self._chat,
            "text": as_html(notice),
            "parse_mode": "HTML",
            "link_preview_options": {"is_disabled": True},
        }
        try:
            async with asyncio.timeout(self._timeout), self._http().stream("POST", self._url, json=body) as response:
                return _outcome(response.status_code, await _document(response))
        except (TimeoutError, httpx2.TimeoutException):
            return RetryLater(f"Telegram did not answer within {self._timeout:g} s")
        except httpx2.ConnectError:
            return RetryLater("Telegram could not be reached")
        except httpx2.HTTPError as error:
            return RetryLater(f"Telegram broke off ({type(error).__name__})")

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None
            CLIENT_LOG.removeFilter(self._hush)

    def _http(self) -> httpx2.AsyncClient:
        if self._client is None:
            CLIENT_LOG.addFilter(self._hush)
            # Redirects are not followed: the body is for this server alone.
            self._client = httpx2.AsyncClient(timeout=self._timeout, follow_redirects=False)
        return self._client


def as_html(notice: Notice) -> str:
    """The message as Telegram's HTML; every value is escaped, because symbols and reasons come from strangers."""
    lines = [f"{_MARKS.get(notice.severity, _CALM)} <b>{_safe(notice.title)}</b>", f"severity: {notice.severity}"]
    lines.append(f"chain: {_safe(notice.chain)}")
    if notice.wallet is not None:
        lines.append(f"wallet: <code>{_safe(short_wallet(notice.wallet))}</code>")
    if notice.position is not None:
        lines.append(f"position: <code>{_safe(notice.position)}</code>")
    lines.append(f"condition: {_safe(notice.condition)}")
    lines.append(f"reason: {_safe(notice.reason)}")
    lines.append(f"<code>{_safe(notice.reference)}</code>")
    return "\n".join(lines)


def short_wallet(address: str) -> str:
    return f"{address[:6]}…{address[-4:]}" if len(address) > 12 else address


def _safe(text: str) -> str:
    return escape(plain_text(text, _LONGEST_REASON), quote=False)


async def _document(response: httpx2.Response) -> dict[str, Any]:
    """The answer's JSON object, or an empty one: the status decides, the rest is detail."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _LONGEST_ANSWER:
            return {}
    try:
        document = json.loads(bytes(body))
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _outcome(status: int, document: dict[str, Any]) -> SendResult:
    if status == _OK:
        if document.get("ok") is True:
            return Sent()
        return RetryLater("Telegram's answer says nothing of a message")
    if status == _TOO_MANY:
        return RetryLater("Telegram limits our messages (HTTP 429)", _asked_wait(document))
    if status in _SETTINGS_WRONG:
        return Undeliverable(_SETTINGS_WRONG[status], all=True)
    if status == _BAD_REQUEST:
        return Undeliverable(_bad_request(document), all=False)
    return RetryLater(f"Telegram failed (HTTP {status})")


def _bad_request(document: dict[str, Any]) -> str:
    """Only known words of the answer are repeated: a server may quote our address, which holds the token."""
    if "chat not found" in str(document.get("description", "")).lower():
        return "Telegram knows no such chat (HTTP 400); correct ZUNO_TELEGRAM_CHAT_ID"
    return "Telegram refused the message (HTTP 400)"


def _asked_wait(document: dict[str, Any]) -> float | None:
    parameters = document.get("parameters")
    wait = parameters.get("retry_after") if isinstance(parameters, dict) else None
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not wait >= 0:
        return None
    return min(float(wait), _LONGEST_WAIT)
