"""A Bot API on loopback that behaves like Telegram's: queues updates, checks what is sent, and fails as it does.

    async with telegram_api() as api:
        api.say(ALICE, "/status")                 # somebody writes to the bot
        message = await api.next()                # what the bot sent
        api.tap(ALICE, message, "Why")            # somebody presses a button under it

Faults: `fail(method, …)`, `limit(method, seconds)`, `lose(method)` (acted on, but the answer never arrives),
`intercept(method, status)` (a proxy answers in Telegram's place), `down`, `blocked`, `migrated`, `repeat()`,
`reorder()`. Everything sent stands in `sent`, every request in `requests`.
"""

from __future__ import annotations

import asyncio
import copy
import json
import struct
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from itertools import count
from typing import Any
from urllib.parse import parse_qsl

from tests.wire.telegram_html import CantParse, Parsed, parse_html, units

TOKEN = "123456:AAexam-token_of-a-bot"
BOT_ID = 123_456
BOT_NAME = "zuno_exam_bot"
NOW = 1_790_000_000
WAIT_SECONDS = 120.0
"""Until a test that waits for a message gives up."""
TEXT_LIMIT, CAPTION_LIMIT, DATA_LIMIT = 4_096, 1_024, 64
LEFT_OUT = {"chat_member", "message_reaction", "message_reaction_count"}
"""Update kinds that are sent only to those who ask for them by name."""


@dataclass(frozen=True)
class Person:
    id: int
    name: str = "Alice"
    is_bot: bool = False

    def document(self) -> dict[str, Any]:
        return {"id": self.id, "is_bot": self.is_bot, "first_name": self.name, "username": f"user{self.id}"}


@dataclass(frozen=True)
class Room:
    """A group, supergroup or channel."""

    id: int
    type: str = "supergroup"
    title: str = "The desk"

    def document(self) -> dict[str, Any]:
        return {"id": self.id, "type": self.type, "title": self.title}


ALICE, BOB, EVE = Person(1_001, "Alice"), Person(1_002, "Bob"), Person(6_666, "Eve")
GROUP = Room(-1_001_234_567_890)


@dataclass
class SentMessage:
    """A message of the bot as it stands in the chat."""

    id: int
    chat: int
    text: str
    entities: list[dict[str, Any]]
    buttons: list[list[dict[str, Any]]]
    html: str
    """As it was sent."""
    photo: bytes | None = None
    document: tuple[str, bytes] | None = None
    silent: bool = False
    edits: list[str] = field(default_factory=list)
    """The texts that stood there before."""
    deleted: bool = False

    @property
    def labels(self) -> list[str]:
        return [button["text"] for row in self.buttons for button in row]

    def data_of(self, button: str | int) -> str:
        """The callback data of a button by its label or its place."""
        flat = [each for row in self.buttons for each in row]
        found = flat[button] if isinstance(button, int) else next(each for each in flat if each["text"] == button)
        return str(found["callback_data"])


@dataclass(frozen=True)
class Request:
    method: str
    values: dict[str, Any]
    files: dict[str, tuple[str, bytes]]


class Refusal(Exception):
    """An answer that is no."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def body(self) -> dict[str, Any]:
        told = {"parameters": self.parameters} if self.parameters else {}
        return {"ok": False, "error_code": self.code, "description": self.description, **told}


class Intercepted(Exception):
    """Something between the bot and Telegram answers with a page of its own."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class HangUp(Exception):
    """The connection ends without an answer."""


def bad_request(description: str, **parameters: Any) -> Refusal:
    return Refusal(400, f"Bad Request: {description}", **parameters)


class TelegramApi:
    def __init__(self) -> None:
        self.url = ""
        self.sent: list[SentMessage] = []
        self.requests: list[Request] = []
        self.answered_queries: dict[str, str] = {}
        """Callback queries the bot answered, with the text that was shown."""
        self.commands: list[dict[str, str]] = []
        self.description = self.short_description = ""
        self.down = False
        """502 to everything."""
        self.blocked: set[int] = set()
        self.migrated: dict[int, int] = {}
        self.webhook = ""
        self.polls = 0
        self.polling = asyncio.Event()
        """Set once somebody polls."""
        self._chats: dict[int, dict[str, Any]] = {}
        self._updates: list[dict[str, Any]] = []
        self._confirmed: deque[dict[str, Any]] = deque(maxlen=1_000)
        self._allowed: list[str] = []
        self._next_update = next(_FIRST_UPDATES)
        self._next_message = 1
        self._queries: set[str] = set()
        self._faults: dict[str, deque[Exception | str]] = defaultdict(deque)
        self._poller: asyncio.Event | None = None
        self._disorder = False
        self._news = asyncio.Condition()
        self._read = 0

    # -- people

    def say(self, user: Person, text: str | None, chat: Room | None = None, **fields: Any) -> int:
        """A message to the bot; `fields` are further ones of the message: photo, voice, forward_origin …"""
        return self.push("message", self.message(user, text, chat, **fields))

    def message(self, user: Person, text: str | None, chat: Room | None = None, **fields: Any) -> dict[str, Any]:
        where = chat.document() if chat is not None else private_chat(user)
        self._chats[where["id"]] = where
        document: dict[str, Any] = {
            "message_id": self._take_message_id(),
            "date": NOW,
            "chat": where,
            "from": user.document(),
        }
        if text is not None:
            document["text"] = text
            if text.startswith("/"):
                length = units(text.split()[0])
                document["entities"] = [{"type": "bot_command", "offset": 0, "length": length}]
        return document | fields

    def tap(self, user: Person, message: SentMessage, button: str | int, **fields: Any) -> str:
        """Press a button under a message; the query's id."""
        return self.press(user, message, message.data_of(button), **fields)

    def press(self, user: Person, message: SentMessage, data: str, **fields: Any) -> str:
        """The same with any data, as a made-up client may send."""
        number = str(4_000_000_000 + self._next_update)
        self._queries.add(number)
        query = {
            "id": number,
            "from": user.document(),
            "message": self.document_of(message),
            "chat_instance": "-77",
            "data": data,
        }
        self.push("callback_query", query | fields)
        return number

    def push(self, kind: str, document: dict[str, Any]) -> int:
        """Any update. Kinds that the bot did not ask for never reach it."""
        number = self._next_update
        self._next_update += 1
        wanted = kind in self._allowed if self._allowed else kind not in LEFT_OUT
        if wanted:
            self._updates.append({"update_id": number, kind: document})
            self._wake()
        return number

    def push_raw(self, update: dict[str, Any]) -> None:
        self._updates.append(update)
        self._wake()

    # -- faults

    def fail(self, method: str, code: int, description: str, times: int = 1, **parameters: Any) -> None:
        self._faults[method].extend([Refusal(code, description, **parameters)] * times)

    def limit(self, method: str, seconds: int, times: int = 1) -> None:
        self.fail(method, 429, f"Too Many Requests: retry after {seconds}", times, retry_after=seconds)

    def hang_up(self, method: str, times: int = 1) -> None:
        self._faults[method].extend([HangUp()] * times)

    def intercept(self, method: str, status: int, times: int = 1) -> None:
        """A proxy or a captive portal answers."""
        self._faults[method].extend([Intercepted(status)] * times)

    def lose(self, method: str, times: int = 1) -> None:
        """What is asked is done, and the answer is lost on its way."""
        self._faults[method].extend(["lose"] * times)

    def repeat(self, count: int = 1) -> None:
        """The newest updates that were confirmed come again, as after an outage on Telegram's side."""
        self._updates = [*list(self._confirmed)[-count:], *self._updates]
        self._wake()

    def renumber(self, first: int) -> None:
        """Updates are numbered anew from here, as after a week without any."""
        self._next_update = first

    def reorder(self) -> None:
        """The next updates come newest first."""
        self._disorder = True

    # -- what a test waits for

    async def next(self, count: int = 1) -> SentMessage:
        """The next message that the bot sent and no test has taken; with a count, the last of so many."""
        self._read += count
        await self.until(lambda: len(self.sent) >= self._read)
        return self.sent[self._read - 1]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS), self._news:
            await self._news.wait_for(holds)

    async def until_confirmed(self) -> None:
        """Until the bot has taken every update."""
        await self.until(lambda: not self._updates)

    def document_of(self, message: SentMessage) -> dict[str, Any]:
        document: dict[str, Any] = {
            "message_id": message.id,
            "date": NOW,
            "chat": self._chats[message.chat],
            "from": bot_user(),
        }
        name = "text" if message.photo is None and message.document is None else "caption"
        if message.text:
            document[name] = message.text
        if message.entities:
            document["entities" if name == "text" else "caption_entities"] = message.entities
        if message.buttons:
            document["reply_markup"] = {"inline_keyboard": message.buttons}
        if message.photo is not None:
            document["photo"] = [photo_size(message.photo)]
        if message.document is not None:
            name, content = message.document
            document["document"] = {
                "file_id": "d1",
                "file_unique_id": "u1",
                "file_name": name,
                "file_size": len(content),
            }
        if message.edits:
            document["edit_date"] = NOW
        return document

    # -- the server

    async def answer(self, token: str, request: Request) -> dict[str, Any]:
        self.requests.append(request)
        fault = self._faults[request.method].popleft() if self._faults[request.method] else None
        if self.down:
            raise Refusal(502, "Bad Gateway")
        if isinstance(fault, Exception):
            raise fault
        if token != TOKEN:
            raise Refusal(401, "Unauthorized")
        act = getattr(self, f"_do_{_snake(request.method)}", None)
        if act is None:
            raise Refusal(404, "Not Found")
        result = await act(request)
        if fault == "lose":
            raise HangUp
        return {"ok": True, "result": result}

    async def _do_get_me(self, request: Request) -> dict[str, Any]:
        return bot_user() | {
            "can_join_groups": True,
            "can_read_all_group_messages": False,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
        }

    async def _do_get_updates(self, request: Request) -> list[dict[str, Any]]:
        values = request.values
        if self.webhook:
            raise Refusal(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook"
                " first",
            )
        if "allowed_updates" in values:
            self._allowed = list(values["allowed_updates"])
        if self._poller is not None:
            self._poller.set()
            await self._tell()
        self._poller = mine = asyncio.Event()
        self.polls += 1
        self.polling.set()
        offset, limit = int(values.get("offset", 0)), int(values.get("limit", 100))
        await self._confirm(offset)
        try:
            async with asyncio.timeout(int(values.get("timeout", 0))), self._news:
                await self._news.wait_for(lambda: bool(self._updates) or mine.is_set())
        except TimeoutError:
            pass
        if mine.is_set():
            raise Refusal(
                409,
                "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
            )
        self._poller = None
        found = copy.deepcopy(self._updates[:limit])
        if self._disorder and found:
            found.reverse()
            self._disorder = False
        return found

    async def _confirm(self, offset: int) -> None:
        if (
            offset > self._next_update
        ):  # of a numbering that is over: everything there is comes, and nothing is confirmed
            return
        if offset < 0:
            done, kept = self._updates[:offset], self._updates[offset:]
        else:
            done = [update for update in self._updates if update["update_id"] < offset]
            kept = [update for update in self._updates if update["update_id"] >= offset]
        self._confirmed.extend(done)
        self._updates = kept
        if done:
            await self._tell()

    async def _do_send_message(self, request: Request) -> dict[str, Any]:
        chat = self._writable(request)
        parsed = _read_text(request.values, "text", TEXT_LIMIT)
        return await self._add(request, chat, parsed, request.values["text"])

    async def _do_send_photo(self, request: Request) -> dict[str, Any]:
        chat = self._writable(request)
        content = _upload(request, "photo")
        photo_size(content)
        parsed = _read_text(request.values, "caption", CAPTION_LIMIT)
        return await self._add(request, chat, parsed, request.values.get("caption", ""), photo=content)

    async def _do_send_document(self, request: Request) -> dict[str, Any]:
        chat = self._writable(request)
        name = request.files["document"][0] if "document" in request.files else _attached(request, "document")[0]
        content = _upload(request, "document")
        parsed = _read_text(request.values, "caption", CAPTION_LIMIT)
        return await self._add(request, chat, parsed, request.values.get("caption", ""), document=(name, content))

    async def _do_edit_message_text(self, request: Request) -> dict[str, Any]:
        message = self._own(request, "edit")
        if message.photo is not None or message.document is not None:
            raise bad_request("there is no text in the message to edit")
        parsed = _read_text(request.values, "text", TEXT_LIMIT)
        return await self._change(message, parsed, request)

    async def _do_edit_message_caption(self, request: Request) -> dict[str, Any]:
        return await self._change(
            self._own(request, "edit"), _read_text(request.values, "caption", CAPTION_LIMIT), request
        )

    async def _do_edit_message_reply_markup(self, request: Request) -> dict[str, Any]:
        message = self._own(request, "edit")
        return await self._change(message, Parsed(message.text, message.entities), request)

    async def _change(self, message: SentMessage, parsed: Parsed, request: Request) -> dict[str, Any]:
        buttons = _read_buttons(request.values)
        if (message.text, message.entities, message.buttons) == (parsed.text, parsed.entities, buttons):
            raise bad_request(
                "message is not modified: specified new message content and reply markup are exactly the same as a"
                " current content and reply markup of the message"
            )
        message.edits.append(message.text)
        message.text, message.entities, message.buttons = parsed.text, parsed.entities, buttons
        message.html = request.values.get("text", request.values.get("caption", message.html))
        await self._tell()
        return self.document_of(message)

    async def _do_delete_message(self, request: Request) -> bool:
        self._own(request, "delete").deleted = True
        return True

    async def _do_answer_callback_query(self, request: Request) -> bool:
        number = str(request.values["callback_query_id"])
        if number not in self._queries:
            raise bad_request("query is too old and response timeout expired or query ID is invalid")
        if units(request.values.get("text", "")) > 200:
            raise bad_request("MESSAGE_TOO_LONG")
        self._queries.discard(number)
        self.answered_queries[number] = request.values.get("text", "")
        await self._tell()
        return True

    async def _do_set_my_commands(self, request: Request) -> bool:
        commands = request.values["commands"]
        for each in commands:
            name, description = each["command"], each["description"]
            plain = name.replace("_", "a").isalnum() and name.isascii() and name == name.lower()
            if not (plain and 1 <= len(name) <= 32):
                raise bad_request("BOT_COMMAND_INVALID")
            if not 1 <= len(description) <= 256:
                raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        if len(commands) > 100:
            raise bad_request("BOT_COMMANDS_TOO_MUCH")
        self.commands = commands
        return True

    async def _do_set_my_description(self, request: Request) -> bool:
        self.description = _short(request.values.get("description", ""), 512)
        return True

    async def _do_set_my_short_description(self, request: Request) -> bool:
        self.short_description = _short(request.values.get("short_description", ""), 120)
        return True

    async def _do_delete_webhook(self, request: Request) -> bool:
        self.webhook = ""
        if request.values.get("drop_pending_updates"):
            self._updates.clear()
        return True

    async def _do_get_webhook_info(self, request: Request) -> dict[str, Any]:
        return {
            "url": self.webhook,
            "has_custom_certificate": False,
            "pending_update_count": len(self._updates),
        }

    async def _do_send_chat_action(self, request: Request) -> bool:
        self._writable(request)
        return True

    async def _do_get_chat(self, request: Request) -> dict[str, Any]:
        chat = self._chats[self._writable(request)]
        return chat | {"accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": GIFTS}

    async def _do_leave_chat(self, request: Request) -> bool:
        self._writable(request)
        return True

    # -- parts

    def _writable(self, request: Request) -> int:
        chat = int(request.values["chat_id"])
        if chat in self.migrated:
            raise bad_request("group chat was upgraded to a supergroup chat", migrate_to_chat_id=self.migrated[chat])
        if chat in self.migrated.values():
            self._chats.setdefault(chat, GROUP.document() | {"id": chat})
        if chat not in self._chats:
            raise bad_request("chat not found")
        if chat in self.blocked:
            private = self._chats[chat]["type"] == "private"
            why = "bot was blocked by the user" if private else "bot was kicked from the supergroup chat"
            raise Refusal(403, f"Forbidden: {why}")
        return chat

    def _own(self, request: Request, verb: str) -> SentMessage:
        chat, number = self._writable(request), int(request.values["message_id"])
        for message in self.sent:
            if (message.chat, message.id) == (chat, number) and not message.deleted:
                return message
        raise bad_request(f"message to {verb} not found")

    async def _add(self, request: Request, chat: int, parsed: Parsed, html: str, **media: Any) -> dict[str, Any]:
        message = SentMessage(
            self._take_message_id(),
            chat,
            parsed.text,
            parsed.entities,
            _read_buttons(request.values),
            html,
            silent=bool(request.values.get("disable_notification")),
            **media,
        )
        self.sent.append(message)
        await self._tell()
        return self.document_of(message)

    def _take_message_id(self) -> int:
        number = self._next_message
        self._next_message += 1
        return number

    def _wake(self) -> None:
        with suppress(RuntimeError):  # before the server runs nobody waits
            self._waking = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode().strip().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                _, token, method = first.split(" ")[1].split("/", 2)
                values, files = _read_body(headers.get("content-type", ""), body)
                await self._respond(writer, token.removeprefix("bot"), Request(method, values, files))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError, HangUp):
            pass
        finally:
            writer.close()

    async def _respond(self, writer: asyncio.StreamWriter, token: str, request: Request) -> None:
        extra, body = "", None
        try:
            code, body = 200, await self.answer(token, request)
        except Refusal as refusal:
            code, body = refusal.code, refusal.body()
            if "retry_after" in refusal.parameters:
                extra = f"retry-after: {refusal.parameters['retry_after']}\r\n"
        except Intercepted as page:
            code, body = page.status, None
        content = b"<html>Please log in</html>" if body is None else json.dumps(body).encode()
        head = f"HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n{extra}\r\n"
        writer.write(head.encode() + content)
        await writer.drain()


_FIRST_UPDATES = count(700_000_001, 1_000_000)
"""Each server has its own: a home remembers the updates it has seen."""
GIFTS = dict.fromkeys(
    ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels"), False
)


@asynccontextmanager
async def telegram_api() -> AsyncIterator[TelegramApi]:
    api = TelegramApi()
    open_connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_connections.add(task)
        try:
            await api.serve(reader, writer)
        finally:
            open_connections.discard(task)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    api.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield api
    finally:
        listening.close()
        for task in list(open_connections):
            task.cancel()
        if open_connections:
            await asyncio.wait(open_connections)


def bot_user() -> dict[str, Any]:
    return {"id": BOT_ID, "is_bot": True, "first_name": "Zuno", "username": BOT_NAME}


def private_chat(user: Person) -> dict[str, Any]:
    return {"id": user.id, "type": "private", "first_name": user.name, "username": f"user{user.id}"}


def photo_size(content: bytes) -> dict[str, Any]:
    """Of a PNG or JPEG; the sizes Telegram takes."""
    if content[:8] == b"\x89PNG\r\n\x1a\n":
        width, height = struct.unpack(">II", content[16:24])
    elif content[:3] == b"\xff\xd8\xff":
        width, height = 800, 600
    else:
        raise bad_request("IMAGE_PROCESS_FAILED")
    if width + height > 10_000 or max(width, height) > 20 * min(width, height):
        raise bad_request("PHOTO_INVALID_DIMENSIONS")
    return {"file_id": "p1", "file_unique_id": "q1", "width": width, "height": height, "file_size": len(content)}


def _read_text(values: dict[str, Any], name: str, limit: int) -> Parsed:
    raw = values.get(name, "")
    mode = values.get("parse_mode")
    if mode not in (None, "HTML"):
        raise bad_request("unsupported parse_mode")
    try:
        parsed = parse_html(raw) if mode == "HTML" else Parsed(raw.strip(), [])
    except CantParse as error:
        raise bad_request(f"can't parse entities: {error}") from None
    if not parsed.text and name == "text":
        raise bad_request("message text is empty")
    if units(parsed.text) > limit:
        raise bad_request("message is too long" if name == "text" else "message caption is too long")
    return parsed


def _read_buttons(values: dict[str, Any]) -> list[list[dict[str, Any]]]:
    markup = values.get("reply_markup") or {}
    rows: list[list[dict[str, Any]]] = markup.get("inline_keyboard", [])
    for button in (each for row in rows for each in row):
        if not str(button.get("text", "")).strip():
            raise bad_request("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
        if "callback_data" in button and not 1 <= len(button["callback_data"].encode()) <= DATA_LIMIT:
            raise bad_request("BUTTON_DATA_INVALID")
    if sum(map(len, rows)) > 100 or any(len(row) > 8 for row in rows):
        raise bad_request("REPLY_MARKUP_TOO_LONG")
    return rows


def _attached(request: Request, name: str) -> tuple[str, bytes]:
    return request.files[str(request.values[name]).removeprefix("attach://")]


def _upload(request: Request, name: str) -> bytes:
    content = request.files[name][1] if name in request.files else _attached(request, name)[1]
    if not content:
        raise bad_request("file must be non-empty")
    return content


def _short(text: str, limit: int) -> str:
    if len(text) > limit:
        raise bad_request("DESCRIPTION_TOO_LONG")
    return text


def _read_body(kind: str, body: bytes) -> tuple[dict[str, Any], dict[str, tuple[str, bytes]]]:
    if kind.startswith("application/json"):
        return json.loads(body or b"{}"), {}
    if kind.startswith("multipart/form-data"):
        return _read_multipart(kind, body)
    return _decode_fields(parse_qsl(body.decode(), keep_blank_values=True)), {}


def _read_multipart(kind: str, body: bytes) -> tuple[dict[str, Any], dict[str, tuple[str, bytes]]]:
    parsed = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    fields: list[tuple[str, str]] = []
    files: dict[str, tuple[str, bytes]] = {}
    for part in parsed.iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        if (filename := part.get_filename()) is not None:
            files[name] = (filename, content)
        else:
            fields.append((name, content.decode()))
    return _decode_fields(fields), files


_STRUCTURED = {"reply_markup", "allowed_updates", "commands", "link_preview_options", "entities", "reply_parameters"}


def _decode_fields(fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """A form's values: structures are JSON, flags are words."""
    flags = {"true": True, "True": True, "false": False, "False": False}
    return {name: json.loads(raw) if name in _STRUCTURED else flags.get(raw, raw) for name, raw in fields}


def _snake(method: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in method)
