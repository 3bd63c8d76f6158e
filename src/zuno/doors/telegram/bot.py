"""The bot: polls Telegram, admits who is listed, acts on each update once, and answers."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from telegram import Bot, CallbackQuery, Message, Update
from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError

from zuno.doors.reading.secrecy import looks_secret
from zuno.doors.telegram import layout
from zuno.doors.telegram.access import PRIVATE, Access, Role, Sender, StrangerRecords, find_sender
from zuno.doors.telegram.api import ChatSender, check_token, explain, fetch_updates, retry_seconds, until_stopped
from zuno.doors.telegram.commands import LONGEST_LINE, ChatRequest, Command, Level, Replies, TypedCommand, read_command
from zuno.doors.telegram.confirm import BuildCard, Confirmations
from zuno.doors.telegram.reply import Reply
from zuno.doors.telegram_door import TelegramEndView
from zuno.doors.zuno import Zuno
from zuno.journal.port import Author, Journal
from zuno.kernel.backoff import SPREAD, Backoff
from zuno.kernel.chat import ChatButton, ChatStore, RunningRequest
from zuno.kernel.chat_text import format_text
from zuno.kernel.errors import Refused, Unavailable, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.kernel.view import EventView

KIND: Final = "chat"
"""Of the journal's entries about what was asked and answered here."""
WANTED: Final = (
    "message edited_message channel_post edited_channel_post callback_query inline_query chosen_inline_result"
    " my_chat_member chat_join_request".split()
)
"""Updates that Telegram is asked for: what can be answered, and how strangers reach for a bot."""
LOOKS_AT_ONCE: Final = 8
PRESSED_LOOKS_AT_ONCE: Final = 8
"""Asked for by a button: they wait for no typed ones."""
WAITING_AT_MOST: Final = 2_000
"""Requests of one person that only look; of further ones it is said that they were not read."""
LOOK_SECONDS: Final = 120.0
ENDING_SECONDS: Final = 10.0
"""What is being answered when the process is asked to end."""
SHORT: Final = 300
"""Characters of a request and of its answer that the journal keeps."""
BACKOFF: Final = Backoff(1.0, 30.0, SPREAD)
REFUSED_BACKOFF: Final = Backoff(60.0, 3_600.0, SPREAD)
"""Of a token that Telegram refuses, though it took it at the start."""
UNCLAIMED: Final = (
    "Nothing was done: the chat's store in the home cannot be written. At the machine `zuno trade kill` reaches the "
    "exchange all the same."
)
BUSY: Final = Reply("Busy: too many of your requests wait, and this one was not read. Ask again in a minute.")
OWNERS_ONLY: Final = Reply("Only an owner may do this.")
_log = logging.getLogger("zuno.telegram")

Tell = Callable[[EventView], None]
FreeText = Callable[[ChatRequest, Zuno], Replies]


@dataclass(frozen=True, slots=True)
class BotBackends:
    store: ChatStore
    journal: Callable[[], Awaitable[Journal]]
    now: Callable[[], Millis]
    chance: Callable[[int], bytes]
    """Unguessable bytes."""
    commands: Sequence[Command]
    cards: Mapping[str, BuildCard]
    """Of the commands that have to be confirmed, by name."""
    free_text: FreeText | None = None
    beside: Callable[[asyncio.Event], Awaitable[None]] | None = None
    """What runs in this process beside the polling, until it is asked to end."""
    find_push_button: Callable[[str], Awaitable[ChatButton | None]] | None = None
    """A button below a push, by its callback data."""
    gaps: Sequence[str] = ()
    """What the settings leave out, told at the start."""
    draw: Callable[[], float] = lambda: 1.0


class TelegramBot:
    def __init__(self, bot: Bot, zuno: Zuno, access: Access, backends: BotBackends) -> None:
        self._bot = bot
        self._zuno = zuno
        self._access = access
        self._on = backends
        self._by_name = {name: each for each in backends.commands for name in (each.name, *each.aliases)}
        self._cards = Confirmations(backends.store, backends.now, backends.chance, backends.cards)
        self._strangers = StrangerRecords()
        self._looks = asyncio.Semaphore(LOOKS_AT_ONCE)
        self._pressed_looks = asyncio.Semaphore(PRESSED_LOOKS_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: Counter[int] = Counter()
        """Requests by person."""
        self._told_busy: set[int] = set()
        """Chats that are being told."""
        self._updates = self._answered = self._refused = 0

    async def run(self, hear: Tell, stop: asyncio.Event) -> TelegramEndView:
        beside = None
        if self._on.beside is not None:
            running = self._guard(self._on.beside(stop), "what runs beside the polling ended")
            beside = asyncio.create_task(running)
        name = "the bot"
        for gap in self._on.gaps:
            self._hear(hear, "setting", gap)
        try:
            if await self._connect(hear, stop):
                name = f"@{self._bot.username}"
                self._hear(hear, "polling", self._greeting(name))
                self._spawn(self._bot.id, self._tell_cut_off())
                await self._poll(hear, stop)
        finally:
            stop.set()
            await self._end_tasks()
            if beside is not None:
                await beside
            await self._bot.shutdown()
        return TelegramEndView(bot=name, updates=self._updates, answered=self._answered, refused=self._refused)

    async def handle_update(self, update: Update) -> None:
        """Admit, claim, act: claimed first, no update acts twice. A stranger's costs no write but a limited record."""
        sender = find_sender(update)
        role = self._access.find_role(sender)
        if role is None:
            await self._refuse_stranger(sender, update)
            return
        assert sender.user is not None
        assert sender.chat is not None
        asked = self._read_request(update, sender, role)
        fresh = await self._claim(update.update_id, asked[1].level if asked is not None and asked[1] else None)
        if fresh is None:
            self._spawn(sender.user, self._say_unclaimed(update, sender, role))
        if not fresh:
            return
        self._updates += 1
        if update.callback_query is not None:
            self._spawn(sender.user, self._press(update.callback_query, sender, role))
        elif asked is not None and asked[1].level is not Level.LOOK:
            self._spawn(sender.user, self._answer(*asked))
        elif update.message is not None and self._waiting[sender.user] >= WAITING_AT_MOST:
            self._say_busy(update.message, sender, role)
        elif asked is not None:
            self._spawn(sender.user, self._answer(*asked))
        elif update.message is not None:
            self._spawn(sender.user, self._answer_message(update.message, sender, role))

    async def _connect(self, hear: Tell, stop: asyncio.Event) -> bool:
        """Ask Telegram who the bot is, through an outage if need be; False if we were asked to end before."""
        failures = 0
        while not stop.is_set():
            try:
                await check_token(self._bot)
                return True
            except Unavailable as error:
                failures += 1
                if failures == 1:
                    self._hear(hear, "unreachable", f"{error} Trying again.")
                await until_stopped(stop, asyncio.sleep(BACKOFF.delay(failures, self._on.draw())))
        return False

    async def _poll(self, hear: Tell, stop: asyncio.Event) -> None:
        offset: int | None = None
        failures, told = 0, ""
        while not stop.is_set():
            try:
                raw = await until_stopped(stop, fetch_updates(self._bot, offset, WANTED))
            except TelegramError as error:
                failures += 1
                event, text = _describe_failure(error)
                if event != told:
                    self._hear(hear, event, text)
                    told = event
                backoff = REFUSED_BACKOFF if isinstance(error, InvalidToken) else BACKOFF
                wait = backoff.delay(failures, self._on.draw())
                if isinstance(error, RetryAfter):
                    wait = max(wait, retry_seconds(error))
                await until_stopped(stop, asyncio.sleep(wait))
                continue
            if told and raw is not None:
                self._hear(hear, "polling", "Telegram answers again.")
                failures, told = 0, ""
            if raw:  # of these alone: after a quiet week Telegram numbers updates anew, and lower
                offset = max(map(_update_id, raw)) + 1
            for document in raw or ():
                update = self._parse(document)
                if update is not None:
                    await self._guard(self.handle_update(update), "an update could not be handled")

    def _parse(self, document: object) -> Update | None:
        try:
            return Update.de_json(document, self._bot) if isinstance(document, dict) else None
        except Exception as error:
            _log.warning("an update that cannot be read was passed over (%s)", type(error).__name__)
            return None

    async def _end_tasks(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=ENDING_SECONDS)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _hear(self, hear: Tell, event: str, text: str) -> None:
        _log.info(text)
        hear(EventView(at=self._on.now(), event=event, text=text))

    def _greeting(self, name: str) -> str:
        owners, viewers, groups = len(self._access.owners), len(self._access.viewers), len(self._access.groups)
        if not owners and not viewers:
            return f"{name} polls, and answers nobody: set ZUNO_TELEGRAM_OWNERS (`zuno telegram setup` finds your id)."
        return f"{name} polls; owners: {owners}, viewers: {viewers}, groups: {groups}."

    def _read_request(self, update: Update, sender: Sender, role: Role) -> tuple[ChatRequest, Command] | None:
        """The command that a message gives. A forwarded one, one by an inline bot and an edited one give none."""
        message = update.message
        if message is None or not message.text or message.forward_origin is not None or message.via_bot is not None:
            return None
        typed = read_command(message.text)
        if typed is None or not self._is_for_us(typed) or typed.name not in self._by_name:
            return None
        return self._asked(sender, role, message.message_id, message.text, typed.words), self._by_name[typed.name]

    def _is_for_us(self, typed: TypedCommand) -> bool:
        return typed.bot is None or typed.bot == (self._bot.username or "").lower()

    def _asked(
        self, sender: Sender, role: Role, message: int, text: str, words: tuple[str, ...], *, pressed: bool = False
    ) -> ChatRequest:
        assert sender.user is not None
        assert sender.chat is not None
        line = plain_text(text, LONGEST_LINE)
        writer = ChatSender(self._bot, self._on.store, sender.chat, self._on.chance)
        return ChatRequest(sender.user, sender.chat, message, line, words, role, writer, self._cards, pressed)

    async def _claim(self, update: int, level: Level | None) -> bool | None:
        """Whether to act on it; None where the store cannot say, and it does more than look or lower risk."""
        try:
            return await self._on.store.claim_update(self._bot.id, update)
        except ZunoError as error:
            _log.error("updates cannot be claimed: %s", error)
            return True if level in (Level.LOOK, Level.LOWERS_RISK) else None

    async def _say_unclaimed(self, update: Update, sender: Sender, role: Role) -> None:
        """What could not be claimed is not done, and said so: a kill must not be waited for."""
        if update.callback_query is not None:
            await self._acknowledge(update.callback_query, UNCLAIMED)
        elif update.message is not None:
            asked = self._asked(sender, role, update.message.message_id, update.message.text or "", ())
            await self._reply(asked, "unclaimed", Reply(format_text(UNCLAIMED)))

    async def _answer_message(self, message: Message, sender: Sender, role: Role) -> None:
        asked = self._asked(sender, role, message.message_id, message.text or "", ())
        if message.forward_origin is not None or message.via_bot is not None:
            await self._reply(asked, "forwarded", Reply("A forwarded message is not read; type the command yourself."))
            return
        typed = read_command(message.text) if message.text else None
        if typed is not None:
            if self._is_for_us(typed):
                unknown = f"There is no command /{escape(typed.name)}; /help lists them all."
                await self._reply(asked, "unknown", Reply(unknown))
            return
        answered = message.reply_to_message and message.reply_to_message.from_user
        if sender.chat_type != PRIVATE and (answered is None or answered.id != self._bot.id):  # not to us, in a group
            return
        if not message.text:
            if not _is_service(message):
                await self._reply(asked, "unread", Reply("Only text is read here: no pictures, voice or files."))
            return
        if self._on.free_text is None:
            await self._reply(asked, "unread", Reply("/help lists the commands."))
            return
        await self._carry_out(asked, "text", self._on.free_text, record=False)

    async def _press(self, query: CallbackQuery, sender: Sender, role: Role) -> None:
        key, find_pushed = query.data or "", self._on.find_push_button
        pushed = None if find_pushed is None else await find_pushed(key)
        button = pushed or await self._on.store.find_button(key)
        typed = None if button is None else read_command(button.words)
        if query.message is None or button is None or typed is None or button.chat != sender.chat:
            await self._acknowledge(query, "This button is no longer valid.")
            await self._record(sender, role, "button", query.data or "", "refused: unknown button")
            return
        asked = self._asked(sender, role, query.message.message_id, button.words, typed.words, pressed=True)
        command = self._by_name.get(typed.name)
        if command is None:
            await self._acknowledge(query, "This button is no longer valid.")
            return
        acknowledging = asyncio.create_task(self._acknowledge(query, None))  # a label does not keep the act waiting
        await self._answer(asked, command)
        await acknowledging

    async def _acknowledge(self, query: CallbackQuery, text: str | None) -> None:
        """Ends the button's waiting; a query that is too old to answer is no loss."""
        with suppress(TelegramError):
            await self._bot.answer_callback_query(query.id, text=text, show_alert=text is not None)

    async def _answer(self, asked: ChatRequest, command: Command) -> None:
        if command.level is not Level.LOOK and asked.role is not Role.OWNER:
            await self._reply(asked, command.name, OWNERS_ONLY)
            return
        if command.takes_long:
            await self._carry_out_long(asked, command)
            return
        if command.level is not Level.LOOK:
            await self._carry_out(asked, command.name, command.handle)
            return
        async with self._pressed_looks if asked.pressed else self._looks:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._carry_out(asked, command.name, command.handle)
            except TimeoutError:
                await self._reply(asked, command.name, Reply(f"No answer came within {LOOK_SECONDS:g} s."))

    async def _carry_out_long(self, asked: ChatRequest, command: Command) -> None:
        """Stored while it runs: where it ends with this process, the next one says so."""
        text = f"/{command.name}" if looks_secret(asked.text) else plain_text(asked.text, SHORT)
        request = RunningRequest(self._on.chance(8).hex(), asked.user, asked.chat, text)
        with suppress(ZunoError):  # a store that cannot be written stops no answer
            await self._on.store.begin_request(request)
        await self._carry_out(asked, command.name, command.handle)
        with suppress(ZunoError):
            await self._on.store.end_request(request.key)

    async def _tell_cut_off(self) -> None:
        """Once, in the chats that still may ask."""
        try:
            left = await self._on.store.take_unended_requests()
        except ZunoError as error:
            _log.error("what an earlier process left unanswered cannot be read: %s", error)
            return
        for request in left:
            kind = PRIVATE if request.chat == request.user else None
            role = self._access.find_role(Sender("message", request.user, request.chat, kind, masked=False))
            if role is not None:
                sender = ChatSender(self._bot, self._on.store, request.chat, self._on.chance)
                await sender.send(Reply(f"{layout.code(request.text)} was cut off when the bot ended; ask again."))

    async def _carry_out(
        self, asked: ChatRequest, name: str, handle: Callable[[ChatRequest, Zuno], Replies], *, record: bool = True
    ) -> None:
        """Send what a handler answers, or our error as a sentence. `record` false: the line may hold a secret."""
        said: list[str] = []
        try:
            self._zuno.refresh()
            replies = handle(asked, self._zuno)
            if isinstance(replies, AsyncIterator):
                async for reply in replies:
                    await self._send(asked, reply, said)
            else:
                await self._send(asked, await replies, said)
        except ZunoError as error:
            await self._send(asked, Reply(layout.text(str(error))), said)
        except Exception as error:
            _log.exception("/%s failed", name)
            await self._send(asked, Reply(f"Zuno has a bug ({type(error).__name__}); /logs says more."), said)
        self._answered += 1
        if record:
            await self._record_answer(asked, name, said)

    async def _send(self, asked: ChatRequest, reply: Reply, said: list[str]) -> None:
        said.append(reply.html)
        await asked.live.send(reply)

    async def _reply(self, asked: ChatRequest, name: str, reply: Reply) -> None:
        await asked.live.send(reply)
        self._answered += 1
        await self._record_answer(asked, name, [reply.html])

    def _say_busy(self, message: Message, sender: Sender, role: Role) -> None:
        """Once for what comes while it is being said: a flood is not answered by another."""
        _log.warning("the user %s asks faster than answers come; a request was not read", sender.user)
        asked = self._asked(sender, role, message.message_id, message.text or "", ())
        if asked.chat in self._told_busy:
            return
        self._told_busy.add(asked.chat)

        async def tell() -> None:
            try:
                await self._reply(asked, "busy", BUSY)
            finally:
                self._told_busy.discard(asked.chat)

        self._spawn(asked.user, tell())

    def _spawn(self, user: int, work: Coroutine[Any, Any, None]) -> None:
        self._waiting[user] += 1
        task = asyncio.create_task(self._guard(work, "an answer failed"))
        self._tasks.add(task)

        def forget(done: asyncio.Task[None]) -> None:
            self._tasks.discard(done)
            self._waiting[user] -= 1

        task.add_done_callback(forget)

    async def _guard(self, work: Awaitable[None], failure: str) -> None:
        try:
            await work
        except Exception:
            _log.exception(failure)

    async def _refuse_stranger(self, sender: Sender, update: Update) -> None:
        """No answer at all; a record, unless there are too many."""
        self._refused += 1
        if not self._strangers.take_turn(sender, self._on.now()):
            return
        skipped, self._strangers.skipped = self._strangers.skipped, 0
        text = _text_of(update)
        await self._record(sender, None, sender.kind, text, "refused: not on the list", skipped=skipped)
        _log.info("refused %s of the user %s in the chat %s", sender.kind, sender.user, sender.chat)

    async def _record_answer(self, asked: ChatRequest, name: str, said: Sequence[str]) -> None:
        sender = Sender("button" if asked.pressed else "message", asked.user, asked.chat, None, masked=False)
        await self._record(sender, asked.role, name, asked.text, "\n".join(said))

    async def _record(
        self, sender: Sender, role: Role | None, name: str, text: str, answer: str, *, skipped: int = 0
    ) -> None:
        """One entry for what was asked and answered, in short; a journal that cannot be written stops no answer."""
        payload: dict[str, object] = {
            "update": sender.kind,
            "user": sender.user,
            "chat": sender.chat,
            "role": None if role is None else role.value,
            "command": name,
            "asked": "(withheld)" if looks_secret(text) else plain_text(text, SHORT) if text else "",
            "answered": plain_text(answer, SHORT) if answer else "",
        }
        if skipped:
            payload["unrecorded"] = skipped
        try:
            journal = await self._on.journal()
            try:
                await journal.append(kind=KIND, author=Author("telegram"), payload=payload)
            except Refused:  # it holds one of our secrets
                withheld = payload | {"asked": "(withheld)", "answered": "(withheld)"}
                await journal.append(kind=KIND, author=Author("telegram"), payload=withheld)
        except ZunoError as error:
            _log.error("the chat was not recorded: %s", error)


def _describe_failure(error: TelegramError) -> tuple[str, str]:
    if isinstance(error, Conflict):
        return (
            "conflict",
            "Another process polls this bot, or a webhook is set: one bot can be polled by one process; trying again.",
        )
    text = explain(error).rstrip(".")
    event = "refused" if isinstance(error, InvalidToken) else "unreachable"
    return event, f"{text[0].upper()}{text[1:]}; trying again."


def _update_id(document: object) -> int:
    number = document.get("update_id") if isinstance(document, dict) else None
    return number if isinstance(number, int) else 0


def _text_of(update: Update) -> str:
    if update.callback_query is not None:
        return str(update.callback_query.data or "")
    if update.inline_query is not None:
        return str(update.inline_query.query)
    message = update.effective_message
    return "" if message is None else getattr(message, "text", None) or getattr(message, "caption", None) or ""


def _is_service(message: Message) -> bool:
    """Joins, pins, migrations: nothing that a person said."""
    said = (
        message.photo or message.voice or message.audio or message.video or message.video_note or message.document
        or message.sticker or message.animation or message.location or message.contact or message.poll or message.dice
        or message.venue or message.story
    )  # fmt: skip
    return not said
