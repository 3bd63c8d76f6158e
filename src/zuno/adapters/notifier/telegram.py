"""Notices by the Telegram Bot API, one `sendMessage` or `sendPhoto` each. The token is part of every address, so no
transport error is kept, and the HTTP client's log is filtered."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Any, Final

import httpx2

from zuno.adapters.http import CLIENT_LOG, SecretFilter, is_loopback
from zuno.kernel.chat_text import break_links, format_text
from zuno.kernel.errors import UsageError
from zuno.kernel.notify import Button, Fact, Notice, OutboxEntry, RetryLater, SendResult, Sent, Severity, Undeliverable
from zuno.kernel.numbers_text import time_text
from zuno.kernel.text import plain_text

TIMEOUT: Final = 10.0
_TOKEN: Final = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,128}")
_CHAT: Final = re.compile(r"-?[0-9]{1,20}|@[A-Za-z0-9_]{1,64}")
LONGEST_TEXT: Final = 4_096
LONGEST_CAPTION: Final = 1_024
"""Of UTF-16 units, after entities are read."""
_LONGEST_LINE: Final = 1_000
_LONGEST_LABEL: Final = 40
_MOST_BUTTONS: Final = 8
_BUTTONS_A_ROW: Final = 3
_LONGEST_ANSWER: Final = 65_536
_LONGEST_WAIT: Final = 3_600.0
_BLOCKED_WAIT: Final = 900.0
"""A person may unblock the bot, of which we are not told."""
_OK, _BAD_REQUEST, _FORBIDDEN, _TOO_LARGE, _TOO_MANY = 200, 400, 403, 413, 429
_SETTINGS_WRONG: Final = {
    401: "Telegram does not know the bot's token (HTTP 401); correct ZUNO_TELEGRAM_BOT_TOKEN",
    404: "Telegram knows no such bot (HTTP 404); correct ZUNO_TELEGRAM_BOT_TOKEN or ZUNO_TELEGRAM_API_BASE_URL",
}
_BLOCKED: Final = "the bot may not write to this chat (HTTP 403); unblock it there, or correct ZUNO_TELEGRAM_CHAT_ID"
_MARKS: Final = {Severity.CRITICAL: "\N{LARGE RED CIRCLE}", Severity.WARNING: "\N{LARGE YELLOW CIRCLE}"}
_CALM: Final = "\N{LARGE GREEN CIRCLE}"


class TelegramNotifier:
    """Sends to one chat. `timeout` bounds an attempt as a whole; `translate` puts a sentence into the chat's words."""

    def __init__(
        self,
        token: str,
        chat_id: str,
        base_url: str,
        *,
        timeout: float = TIMEOUT,
        translate: Callable[[str], str] = lambda sentence: sentence,
    ) -> None:
        token = check_bot(token, base_url)
        if not _CHAT.fullmatch(chat_id.strip()):
            raise UsageError("ZUNO_TELEGRAM_CHAT_ID is not a chat; give its number or @name.")
        self._url = f"{base_url.rstrip('/')}/bot{token}"
        self._hush = SecretFilter(token)
        self._chat = chat_id.strip()
        self._timeout = timeout
        self._translate = translate
        self._client: httpx2.AsyncClient | None = None

    async def send(self, entry: OutboxEntry, *, silent: bool = False) -> SendResult:
        picture = entry.notice.picture
        if picture is None:
            return _outcome(*await self._ask("sendMessage", self._message(entry, silent)))
        form = self._message(entry, silent, caption=True)
        fields = {name: value if isinstance(value, str) else json.dumps(value) for name, value in form.items()}
        status, document = await self._ask("sendPhoto", fields, picture)
        if status in {_BAD_REQUEST, _TOO_LARGE} and isinstance(_bad_request(document), str):
            return _outcome(*await self._ask("sendMessage", self._message(entry, silent)))  # its words are worth more
        return _outcome(status, document)

    async def _ask(
        self, method: str, form: dict[str, Any], picture: bytes | None = None
    ) -> tuple[int | RetryLater, dict[str, Any]]:
        body: dict[str, Any] = {"json": form}
        if picture is not None:
            body = {"data": form, "files": {"photo": ("picture.png", picture, "image/png")}}
        request = self._http().stream("POST", f"{self._url}/{method}", **body)
        try:
            async with asyncio.timeout(self._timeout), request as response:
                return response.status_code, await _document(response)
        except (TimeoutError, httpx2.TimeoutException):
            return RetryLater(f"Telegram did not answer within {self._timeout:g} s"), {}
        except httpx2.ConnectError:
            return RetryLater("Telegram could not be reached"), {}
        except httpx2.HTTPError as error:
            return RetryLater(f"Telegram broke off ({type(error).__name__})"), {}

    def _message(self, entry: OutboxEntry, silent: bool, *, caption: bool = False) -> dict[str, Any]:
        text = as_html(_translate(entry.notice, self._translate), LONGEST_CAPTION if caption else LONGEST_TEXT)
        form: dict[str, Any] = {"chat_id": self._chat, "caption" if caption else "text": text, "parse_mode": "HTML"}
        if not caption:
            form["link_preview_options"] = {"is_disabled": True}
        if silent:
            form["disable_notification"] = True
        if entry.notice.buttons and not self._chat.startswith("@"):  # a press names its chat by number
            form["reply_markup"] = {"inline_keyboard": _keyboard(entry.number, entry.notice.buttons)}
        return form

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


def check_bot(token: str, base_url: str) -> str:
    """The token without spaces around it. `UsageError` for one that is none, or that would travel in the open."""
    if not _TOKEN.fullmatch(token.strip()):
        raise UsageError("ZUNO_TELEGRAM_BOT_TOKEN is not a bot's token; @BotFather gives digits, a colon and a secret.")
    if base_url.startswith("http://") and not is_loopback(base_url):
        raise UsageError("ZUNO_TELEGRAM_API_BASE_URL must be https: the bot's token travels in the address.")
    return token.strip()


def _keyboard(number: int, buttons: Sequence[Button]) -> list[list[dict[str, str]]]:
    keys = [
        {"text": plain_text(button.label, _LONGEST_LABEL), "callback_data": f"n{number}.{index}"}
        for index, button in enumerate(buttons[:_MOST_BUTTONS])
    ]
    return [keys[start : start + _BUTTONS_A_ROW] for start in range(0, len(keys), _BUTTONS_A_ROW)]


def _translate(notice: Notice, translate: Callable[[str], str]) -> Notice:
    facts = tuple(Fact(name, translate(value)) for name, value in notice.facts)
    return replace(notice, facts=facts, reason=translate(notice.reason))


def as_html(notice: Notice, limit: int = LONGEST_TEXT) -> str:
    """The message as Telegram's HTML; every value is escaped and nothing in it becomes a link, because symbols and
    reasons come from strangers. Label and id always fit; facts and the reason are shortened to the room that is
    left."""
    mark, title = _MARKS.get(notice.severity, _CALM), plain_text(notice.title, 200)
    when, reference = time_text(notice.at), plain_text(notice.reference, 100) if notice.reference else ""
    lines = list[str]()
    room = limit - _units(f"{mark} {break_links(title)} · {notice.label}\n{when} · {reference}")
    facts = [f"{plain_text(name, 40)}: {plain_text(value, _LONGEST_LINE)}" for name, value in notice.facts]
    if notice.reason:
        facts.append(f"reason: {plain_text(notice.reason, _LONGEST_LINE)}")
    for line in facts:
        kept = _shorten(line, room - 1)
        if not kept:
            break
        lines.append(format_text(kept))
        room -= _units(break_links(kept)) + 1
    head = f"{mark} {format_text(title, 'b')} · {notice.label}"
    end = f"{when} · <code>{escape(reference, quote=False)}</code>" if reference else when
    return "\n".join([head, *lines, end])


def _shorten(line: str, room: int) -> str:
    """Shorten to what fits once its links are broken."""
    kept = line
    while kept and (over := _units(break_links(kept)) - room) > 0:
        kept = kept.removesuffix("…").encode("utf-16-le")[: -2 * (over + 1)].decode("utf-16-le", "ignore")
        kept = f"{kept}…" if kept else ""
    return kept


def _units(text: str) -> int:
    """Length in UTF-16 units, as Telegram counts."""
    return len(text.encode("utf-16-le")) // 2


async def _document(response: httpx2.Response) -> dict[str, Any]:
    """The answer's JSON object, or an empty one."""
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


def _outcome(status: int | RetryLater, document: dict[str, Any]) -> SendResult:
    if isinstance(status, RetryLater):
        return status
    if status == _OK:
        if document.get("ok") is True:
            return Sent()
        return RetryLater("Telegram's answer says nothing of a message")
    if status == _TOO_MANY:
        return RetryLater("Telegram limits our messages (HTTP 429)", _asked_wait(document))
    if "error_code" not in document and status in {_BAD_REQUEST, _FORBIDDEN, *_SETTINGS_WRONG}:
        return RetryLater(f"something else than Telegram answers (HTTP {status})")
    if status == _FORBIDDEN:
        return RetryLater(_BLOCKED, _BLOCKED_WAIT)
    if status in _SETTINGS_WRONG:
        return Undeliverable(_SETTINGS_WRONG[status], all=True)
    if status == _BAD_REQUEST and _may_not_write(document):
        return RetryLater("the bot may not write in this chat (HTTP 400); give it the right to", _BLOCKED_WAIT)
    if status in {_BAD_REQUEST, _TOO_LARGE}:
        wrong = _bad_request(document)
        return wrong if isinstance(wrong, Undeliverable) else Undeliverable(wrong, all=False)
    return RetryLater(f"Telegram failed (HTTP {status})")


def _bad_request(document: dict[str, Any]) -> str | Undeliverable:
    """Why the message or chat is refused, in known words alone: a server may quote our token."""
    parameters = document.get("parameters")
    moved = parameters.get("migrate_to_chat_id") if isinstance(parameters, dict) else None
    if isinstance(moved, int) and not isinstance(moved, bool) and _CHAT.fullmatch(str(moved)):
        return Undeliverable(
            f"the group has become a supergroup (HTTP 400); set ZUNO_TELEGRAM_CHAT_ID to {moved}", all=True
        )
    if "chat not found" in str(document.get("description", "")).lower():
        return Undeliverable("Telegram knows no such chat (HTTP 400); correct ZUNO_TELEGRAM_CHAT_ID", all=True)
    return "Telegram refused the message (HTTP 400)"


def _may_not_write(document: dict[str, Any]) -> bool:
    description = str(document.get("description", "")).lower()
    return any(word in description for word in ("rights", "chat_write_forbidden", "chat_restricted", "topic_closed"))


def _asked_wait(document: dict[str, Any]) -> float | None:
    parameters = document.get("parameters")
    wait = parameters.get("retry_after") if isinstance(parameters, dict) else None
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not wait >= 0:
        return None
    return min(float(wait), _LONGEST_WAIT)
