"""Messages to one chat through the Bot API: split, retried, and never lost for a fault of their HTML.

A telegram error may quote the token, so none is shown, logged or kept as a cause: each becomes a sentence of ours.
"""

import asyncio
import json
import logging
import re
import warnings
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from typing import Any, Final, TypeVar

from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, InputFile, LinkPreviewOptions
from telegram import error as errors
from telegram.request import HTTPXRequest
from telegram.warnings import PTBUserWarning

from zuno.doors.telegram.follow import LiveMessage
from zuno.doors.telegram.reply import Button, Reply, split_reply
from zuno.kernel.backoff import Backoff
from zuno.kernel.chat import ChatButton, ChatStore
from zuno.kernel.errors import Unavailable, UsageError, ZunoError
from zuno.kernel.notify import RetryLater, SendResult, Sent, Undeliverable

T = TypeVar("T")
POLL_SECONDS: Final = 50
"""Telegram holds a request this long while there is nothing to tell."""
READ_SECONDS: Final = 10.0
UPLOAD_SECONDS: Final = 60.0
ATTEMPTS: Final = 4
LONGEST_WAIT: Final = 60.0
"""A longer pause than this that Telegram asks for is not waited out by an answer."""
BACKOFF: Final = Backoff(0.5, 8.0)
NOT_MODIFIED: Final = "message is not modified"
CANT_PARSE: Final = "can't parse entities"
WRONG_TOKEN: Final = "Telegram does not know this bot's token; correct ZUNO_TELEGRAM_BOT_TOKEN (@BotFather shows it)."
_FAILURES: Final[Sequence[tuple[type[errors.TelegramError], str]]] = (
    (errors.InvalidToken, WRONG_TOKEN),
    (errors.Forbidden, "the bot may not write there: it was blocked or removed from the chat"),
    (errors.RetryAfter, "Telegram limits our messages"),
    (errors.BadRequest, "Telegram refused the request as malformed"),
    (errors.NetworkError, "Telegram could not be reached"),
)
_TAG: Final = re.compile(r"</?[a-z-]+[^<>]*>")
_KEY_BYTES: Final = 9
NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)
_log = logging.getLogger("zuno.telegram")


class ApiRequest(HTTPXRequest):
    """Tells Telegram's own refusals from the 401, 403 or 404 of a proxy or a portal that answers in its place."""

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        status, body = await super().do_request(*args, **kwargs)
        if 400 <= status < 500 and not _is_of_telegram(body):
            raise errors.NetworkError(f"Something else than Telegram answers (HTTP {status})")
        return status, body


def _is_of_telegram(body: bytes) -> bool:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("ok") is False and "error_code" in document


def open_bot(token: str, base_url: str) -> Bot:
    """A bot that is not connected yet: two pools, so that a long poll never keeps an answer waiting."""
    # The library reads updates all or none; `fetch_updates` asks for them as they came, and it warns of that.
    warnings.filterwarnings("ignore", r"Please use 'Bot\.getUpdates'", PTBUserWarning)
    asking = ApiRequest(connection_pool_size=2, read_timeout=READ_SECONDS, http_version="1.1")
    sending = ApiRequest(
        connection_pool_size=32,
        read_timeout=READ_SECONDS,
        write_timeout=READ_SECONDS,
        pool_timeout=READ_SECONDS,
        media_write_timeout=UPLOAD_SECONDS,
        http_version="1.1",
    )
    return Bot(token, base_url=f"{base_url}/bot", request=sending, get_updates_request=asking)


async def fetch_updates(bot: Bot, offset: int | None, wanted: Sequence[str]) -> list[Any]:
    """Updates as they came: one that the library cannot read must not hide those behind it."""
    asked: dict[str, object] = {"timeout": POLL_SECONDS, "allowed_updates": wanted}
    if offset is not None:
        asked["offset"] = offset
    try:
        found = await bot.do_api_request("getUpdates", asked, read_timeout=POLL_SECONDS + READ_SECONDS)
    except errors.EndPointNotFound:  # a bot that was known once
        raise errors.InvalidToken(WRONG_TOKEN) from None
    return found if isinstance(found, list) else []


def explain(error: errors.TelegramError) -> str:
    """A telegram error in our words; nothing the server wrote is repeated."""
    if isinstance(error, errors.ChatMigrated):
        return f"the group became a supergroup with the id {error.new_chat_id}"
    named = (text for kind, text in _FAILURES if isinstance(error, kind))
    return next(named, f"Telegram failed ({type(error).__name__})")


async def check_token(bot: Bot) -> None:
    """Ask Telegram who this bot is. `UsageError` for a wrong token, `Unavailable` for no answer."""
    try:
        await bot.initialize()
    except errors.InvalidToken:
        await bot.shutdown()
        raise UsageError(WRONG_TOKEN) from None
    except errors.TelegramError as error:
        await bot.shutdown()
        raise Unavailable(f"{_sentence(explain(error))} Check ZUNO_TELEGRAM_API_BASE_URL and the network.") from None


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


@dataclass(slots=True, eq=False, repr=False)  # the bot's repr holds its token
class ChatSender:
    """The `ChatWriter` of one chat."""

    bot: Bot
    store: ChatStore
    chat: int
    chance: Callable[[int], bytes]
    """Unguessable bytes, for the keys of buttons."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    async def send(self, reply: Reply) -> int | None:
        sent: int | None = None
        for part in split_reply(reply):
            keyboard = await self._keyboard(part.buttons)
            try:
                sent = await self._send_part(part, keyboard)
            except errors.TelegramError as error:
                _log.warning("a message to the chat %s was given up: %s", self.chat, explain(error))
                return None
        return sent

    async def edit(self, message: int, reply: Reply) -> SendResult:
        keyboard = await self._keyboard(reply.buttons)
        try:
            shown: dict[str, Any] = {"parse_mode": "HTML", "reply_markup": keyboard, "link_preview_options": NO_PREVIEW}
            await self.bot.edit_message_text(reply.html, chat_id=self.chat, message_id=message, **shown)
        except errors.BadRequest as error:
            if NOT_MODIFIED in str(error).lower():
                return Sent()
            _log.warning("a message of the chat %s was not edited: %s", self.chat, explain(error))
            return Undeliverable(explain(error), all=False)
        except errors.TelegramError as error:
            return _judge_failure(error)
        return Sent()

    def follow(self) -> LiveMessage:
        sent: list[int] = []

        async def write(html: str) -> SendResult:
            if sent:
                return await self.edit(sent[0], Reply(html))
            try:
                sent.append(await self._post(Reply(html), None, "HTML"))
            except errors.TelegramError as error:
                return _judge_failure(error)
            return Sent()

        return LiveMessage(write)

    async def _send_part(self, part: Reply, keyboard: InlineKeyboardMarkup | None) -> int:
        try:
            return await self._try(lambda: self._post(part, keyboard, "HTML"))
        except errors.BadRequest as error:
            if CANT_PARSE not in str(error).lower():
                raise
        _log.error("the HTML of an answer is malformed; it was sent as plain text")
        plain = Reply(unescape(_TAG.sub("", part.html)), photo=part.photo, document=part.document)
        return await self._try(lambda: self._post(plain, keyboard, None))

    async def _post(self, part: Reply, keyboard: InlineKeyboardMarkup | None, mode: str | None) -> int:
        common: dict[str, Any] = {"chat_id": self.chat, "parse_mode": mode, "reply_markup": keyboard}
        caption = part.html or None
        if part.photo is not None:
            sent = await self.bot.send_photo(photo=InputFile(part.photo, "chart.png"), caption=caption, **common)
        elif part.document is not None:
            file = InputFile(part.document.content, part.document.name)
            sent = await self.bot.send_document(document=file, caption=caption, **common)
        else:
            sent = await self.bot.send_message(text=part.html, link_preview_options=NO_PREVIEW, **common)
        return int(sent.message_id)

    async def _try(self, act: Callable[[], Awaitable[T]]) -> T:
        """Again after a pause where that may help: an answer that comes twice is better than one that is lost."""
        for attempt in range(1, ATTEMPTS):
            try:
                return await act()
            except errors.RetryAfter as error:
                if (wait := retry_seconds(error)) > LONGEST_WAIT:
                    raise
                await self.sleep(wait)
            except errors.ChatMigrated as error:
                _log.warning("%s; set ZUNO_TELEGRAM_GROUPS to it", _sentence(explain(error)).rstrip("."))
                self.chat = error.new_chat_id
            except errors.BadRequest:
                raise
            except errors.NetworkError:
                await self.sleep(BACKOFF.delay(attempt))
        return await act()

    async def _keyboard(self, buttons: tuple[Button, ...]) -> InlineKeyboardMarkup | None:
        """Each button by a key that stands for its words; a store that cannot be written leaves them out."""
        if not buttons:
            return None
        keys = {self.chance(_KEY_BYTES).hex(): button for button in buttons}
        try:
            await self.store.put_buttons({key: ChatButton(each.words, self.chat) for key, each in keys.items()})
        except ZunoError as error:
            _log.warning("an answer has no buttons: %s", error)
            return None
        row = [InlineKeyboardButton(button.label, callback_data=key) for key, button in keys.items()]
        return InlineKeyboardMarkup([row[start : start + 3] for start in range(0, len(row), 3)])


def _judge_failure(error: errors.TelegramError) -> SendResult:
    """Whether to try again. A request that timed out may have been carried out all the same."""
    if isinstance(error, errors.RetryAfter):
        return RetryLater(explain(error), retry_seconds(error))
    if isinstance(error, errors.NetworkError) and not isinstance(error, errors.BadRequest):
        return RetryLater(explain(error))
    return Undeliverable(explain(error), all=not isinstance(error, errors.BadRequest))


def retry_seconds(error: errors.RetryAfter) -> float:
    wait = error.retry_after
    return float(wait) if isinstance(wait, int | float) else wait.total_seconds()


async def until_stopped(stop: asyncio.Event, work: Awaitable[T]) -> T | None:
    """What the work gives; None if we are asked to end before, and the work is cancelled."""
    ended, working = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(work)
    try:
        await asyncio.wait({ended, working}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (ended, working):
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError, errors.TelegramError):
                    await task
