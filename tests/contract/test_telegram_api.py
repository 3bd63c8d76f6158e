"""The fake Bot API is held to the documented shapes, by the library that knows them, and to Telegram's manners."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from telegram import Bot, BotCommand, InlineKeyboardButton, InlineKeyboardMarkup, InputFile, Message, Update
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter

from tests.wire.telegram_api import ALICE, BOT_NAME, EVE, GROUP, TOKEN, TelegramApi, telegram_api
from tests.wire.telegram_html import CantParse, parse_html
from tests.wire.telegram_updates import KINDS, sample_update
from zuno.doors.telegram.api import open_bot


@pytest_asyncio.fixture
async def api() -> AsyncIterator[TelegramApi]:
    async with telegram_api() as served:
        yield served


@pytest_asyncio.fixture
async def bot(api: TelegramApi) -> AsyncIterator[Bot]:
    opened = open_bot(TOKEN, api.url)
    async with opened:
        yield opened


def png(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(header)) + b"IHDR" + header


def whole(document: dict[str, Any], parsed: Any) -> None:
    """The library understood every field: nothing is left over, and it writes the same down again."""
    assert dict(parsed.api_kwargs) == {}
    again = parsed.to_dict()
    assert {name for name, value in document.items() if value not in ({}, [])} <= set(again)


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_update_has_the_documented_shape(api: TelegramApi, bot: Bot, kind: str) -> None:
    document = sample_update(api, kind, ALICE, GROUP)
    parsed = Update.de_json({"update_id": 1, kind: document}, bot)
    assert getattr(parsed, kind) is not None
    assert dict(parsed.api_kwargs) == {}
    whole(document, getattr(parsed, kind))


def test_no_kind_of_update_is_forgotten() -> None:
    assert sorted(KINDS) == sorted(Update.ALL_TYPES)


async def test_the_bot_says_who_it_is(bot: Bot) -> None:
    assert (bot.username, bot.id) == (BOT_NAME, 123_456)
    assert dict(bot.bot.api_kwargs) == {}


async def test_a_wrong_token_is_unauthorised(api: TelegramApi) -> None:
    wrong = open_bot("1:wrong", api.url)
    with pytest.raises(InvalidToken):
        await wrong.initialize()
    await wrong.shutdown()


async def test_updates_stay_until_they_are_confirmed(api: TelegramApi, bot: Bot) -> None:
    first, second = api.say(ALICE, "/a"), api.say(ALICE, "/b")
    assert [each.update_id for each in await bot.get_updates()] == [first, second]
    assert [each.update_id for each in await bot.get_updates()] == [first, second]
    assert [each.update_id for each in await bot.get_updates(offset=second)] == [second]
    assert [each.update_id for each in await bot.get_updates(limit=1)] == [second]
    assert await bot.get_updates(offset=second + 1) == ()
    api.repeat(2)
    assert [each.update_id for each in await bot.get_updates()] == [first, second]
    api.reorder()
    assert [each.update_id for each in await bot.get_updates()] == [second, first]


async def test_a_long_poll_waits_for_news(api: TelegramApi, bot: Bot) -> None:
    waiting = asyncio.create_task(bot.get_updates(timeout=20))
    await api.polling.wait()
    number = api.say(ALICE, "hello")
    assert [each.update_id for each in await waiting] == [number]


async def test_only_kinds_that_were_asked_for_come(api: TelegramApi, bot: Bot) -> None:
    await bot.get_updates(allowed_updates=["callback_query"])
    api.say(ALICE, "unheard")
    assert await bot.get_updates() == ()
    await bot.get_updates(allowed_updates=[])
    api.push("message_reaction", sample_update(api, "message_reaction", ALICE, GROUP))
    api.say(ALICE, "heard")
    assert [each.message.text for each in await bot.get_updates() if each.message] == ["heard"]


async def test_a_second_poller_ends_the_first(api: TelegramApi, bot: Bot) -> None:
    other = open_bot(TOKEN, api.url)
    first = asyncio.create_task(bot.get_updates(timeout=20))
    await api.polling.wait()
    async with other:
        second = asyncio.create_task(other.get_updates(timeout=20))
        with pytest.raises(Conflict):
            await first
        api.say(ALICE, "x")
        assert len(await second) == 1
    api.webhook = "https://example.org"
    with pytest.raises(Conflict):
        await bot.get_updates()


async def test_a_message_is_taken_apart_as_telegram_does(api: TelegramApi, bot: Bot) -> None:
    api.say(ALICE, "/start")
    markup = InlineKeyboardMarkup([[InlineKeyboardButton("Why", callback_data="k1")]])
    sent = await bot.send_message(ALICE.id, "<b>a&lt;b</b>\n<code>😀 x</code> ", parse_mode="HTML", reply_markup=markup)
    assert sent.text == "a<b\n😀 x"
    assert [(each.type, each.offset, each.length) for each in sent.entities] == [("bold", 0, 3), ("code", 4, 4)]
    whole(api.document_of(api.sent[0]), sent)
    assert api.sent[0].labels == ["Why"]
    edited = await bot.edit_message_text("<i>b</i>", chat_id=ALICE.id, message_id=sent.message_id, parse_mode="HTML")
    assert isinstance(edited, Message)
    assert (api.sent[0].text, api.sent[0].edits) == ("b", ["a<b\n😀 x"])
    with pytest.raises(BadRequest, match=r"(?i)not modified"):
        await bot.edit_message_text("<i>b</i>", chat_id=ALICE.id, message_id=sent.message_id, parse_mode="HTML")
    with pytest.raises(BadRequest, match=r"(?i)not found"):
        await bot.edit_message_text("c", chat_id=ALICE.id, message_id=9_999)


@pytest.mark.parametrize(
    ("html", "why"),
    [
        ("<b>x", "can't parse"),
        ("x</b>", "can't parse"),
        ("<b><i>x</b></i>", "can't parse"),
        ("<div>x</div>", "can't parse"),
        ("1 < 2", "can't parse"),
        ("<span>x</span>", "can't parse"),
        ("  <b></b> ", "empty"),
        ("x" * 4_097, "too long"),
        ("😀" * 2_049, "too long"),
    ],
)
async def test_a_text_that_telegram_refuses(api: TelegramApi, bot: Bot, html: str, why: str) -> None:
    api.say(ALICE, "/start")
    with pytest.raises(BadRequest, match=rf"(?i){why}"):
        await bot.send_message(ALICE.id, html, parse_mode="HTML")
    assert api.sent == []


def test_entities_are_counted_in_the_text_that_is_left() -> None:
    parsed = parse_html('  <pre><code class="language-x">a &amp; b</code></pre> &nbsp; <a href="https://x">y</a>')
    assert parsed.text == "a & b &nbsp; y"
    assert [(each["type"], each["offset"], each["length"]) for each in parsed.entities] == [
        ("pre", 0, 5),
        ("code", 0, 5),
        ("text_link", 13, 1),
    ]
    with pytest.raises(CantParse):
        parse_html("<tg-what>x</tg-what>")


async def test_the_limits_of_messages_and_buttons(api: TelegramApi, bot: Bot) -> None:
    api.say(ALICE, "/start")
    await bot.send_message(ALICE.id, f"<b>{'x' * 4_096}</b>", parse_mode="HTML")
    long = InlineKeyboardMarkup([[InlineKeyboardButton("x", callback_data="é" * 33)]])
    with pytest.raises(BadRequest, match=r"(?i)BUTTON_DATA_INVALID"):
        await bot.send_message(ALICE.id, "x", reply_markup=long)
    with pytest.raises(BadRequest, match=r"(?i)caption is too long"):
        await bot.send_photo(ALICE.id, InputFile(png(10, 10)), caption="x" * 1_025)


async def test_pictures_and_files_arrive(api: TelegramApi, bot: Bot) -> None:
    api.say(ALICE, "/start")
    photo = await bot.send_photo(ALICE.id, InputFile(png(40, 30), "c.png"), caption="<b>c</b>", parse_mode="HTML")
    assert (photo.photo[0].width, photo.photo[0].height, photo.caption) == (40, 30, "c")
    whole(api.document_of(api.sent[0]), photo)
    page = await bot.send_document(ALICE.id, InputFile("<p>ü</p>".encode(), "run.html"))
    assert api.sent[1].document == ("run.html", "<p>ü</p>".encode())
    whole(api.document_of(api.sent[1]), page)
    with pytest.raises(BadRequest, match=r"(?i)no text"):
        await bot.edit_message_text("x", chat_id=ALICE.id, message_id=photo.message_id)
    with pytest.raises(BadRequest, match=r"(?i)IMAGE_PROCESS_FAILED"):
        await bot.send_photo(ALICE.id, InputFile(b"no picture", "c.png"))
    with pytest.raises(BadRequest, match=r"(?i)PHOTO_INVALID_DIMENSIONS"):
        await bot.send_photo(ALICE.id, InputFile(png(2_100, 100), "c.png"))


async def test_who_cannot_be_written_to(api: TelegramApi, bot: Bot) -> None:
    with pytest.raises(BadRequest, match=r"(?i)chat not found"):
        await bot.send_message(EVE.id, "x")
    api.say(ALICE, "/start")
    api.blocked.add(ALICE.id)
    with pytest.raises(Forbidden, match=r"(?i)blocked"):
        await bot.send_message(ALICE.id, "x")
    api.say(ALICE, "x", GROUP)
    api.migrated[GROUP.id] = -100_999
    with pytest.raises(ChatMigrated) as moved:
        await bot.send_message(GROUP.id, "x")
    assert (await bot.send_message(moved.value.new_chat_id, "x")).chat_id == -100_999


async def test_faults_come_when_they_are_asked_for(api: TelegramApi, bot: Bot) -> None:
    api.say(ALICE, "/start")
    api.limit("sendMessage", 7)
    with pytest.raises(RetryAfter) as limited:
        await bot.send_message(ALICE.id, "x")
    assert limited.value._retry_after.total_seconds() == 7
    api.hang_up("sendMessage")
    with pytest.raises(NetworkError):
        await bot.send_message(ALICE.id, "x")
    assert api.sent == []
    api.lose("sendMessage")
    with pytest.raises(NetworkError):
        await bot.send_message(ALICE.id, "arrived")
    assert [each.text for each in api.sent] == ["arrived"]
    api.down = True
    with pytest.raises(NetworkError):
        await bot.get_updates()


async def test_a_button_is_pressed_and_answered_once(api: TelegramApi, bot: Bot) -> None:
    api.say(ALICE, "/start")
    markup = InlineKeyboardMarkup([[InlineKeyboardButton("Why", callback_data="k1")]])
    await bot.send_message(ALICE.id, "card", reply_markup=markup)
    number = api.tap(ALICE, api.sent[0], "Why")
    (_, update) = await bot.get_updates()
    query = update.callback_query
    assert query is not None
    assert query.message is not None
    assert (query.id, query.data, query.message.message_id) == (number, "k1", api.sent[0].id)
    await query.answer("done")
    assert api.answered_queries == {number: "done"}
    with pytest.raises(BadRequest, match=r"(?i)too old"):
        await query.answer()


async def test_commands_and_descriptions_are_registered(api: TelegramApi, bot: Bot) -> None:
    await bot.set_my_commands([BotCommand("status", "Show it.")])
    await bot.set_my_description("x" * 512)
    assert api.commands == [{"command": "status", "description": "Show it."}]
    with pytest.raises(BadRequest, match=r"(?i)BOT_COMMAND_INVALID"):
        await bot.set_my_commands([BotCommand("Status", "Show it.")])
    with pytest.raises(BadRequest):
        await bot.set_my_short_description("x" * 121)
