"""The bot of a home, whole, on a Bot API that behaves like Telegram's."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.wire.telegram_api import ALICE, BOB, BOT_NAME, EVE, GROUP, TOKEN, Person, TelegramApi, telegram_api
from tests.wire.telegram_html import find_tappable
from tests.wire.telegram_side import RunningBot, running_bot
from zuno.doors.telegram import bot as bot_module
from zuno.doors.telegram import command_table
from zuno.doors.telegram.commands import ChatRequest, Command, Level
from zuno.doors.telegram.reply import Button, Reply
from zuno.doors.zuno import Zuno
from zuno.kernel.backoff import Backoff
from zuno.kernel.errors import Refused, UsageError


@pytest_asyncio.fixture
async def api() -> AsyncIterator[TelegramApi]:
    async with telegram_api() as served:
        yield served


@pytest_asyncio.fixture
async def bot(api: TelegramApi, home: Path) -> AsyncIterator[RunningBot]:
    async with running_bot(home, api) as running:
        yield running


async def test_an_owner_and_a_viewer_are_answered_and_recorded(api: TelegramApi, bot: RunningBot) -> None:
    api.say(ALICE, "/version")
    assert (await api.next()).text.startswith("zuno ")
    api.say(BOB, f"/VERSION@{BOT_NAME.upper()}", GROUP)
    assert (await api.next()).chat == GROUP.id
    first, second = [entry.payload for entry in await bot.chats(2)]
    assert (first["user"], first["role"], first["command"]) == (ALICE.id, "owner", "version")
    assert (second["user"], second["role"], second["chat"]) == (BOB.id, "viewer", GROUP.id)


async def test_a_stranger_gets_silence_and_a_record(api: TelegramApi, bot: RunningBot) -> None:
    for _ in range(3):
        api.say(EVE, "/version")
    api.say(EVE, "/version", GROUP)
    api.say(ALICE, "/version")
    assert (await api.next()).chat == ALICE.id
    refused = [entry.payload for entry in await bot.chats(3) if entry.payload["role"] is None]
    assert [(each["user"], each["chat"]) for each in refused] == [(EVE.id, EVE.id), (EVE.id, GROUP.id)]
    assert {each.method for each in api.requests} == {"getMe", "getUpdates", "sendMessage"}
    assert len(api.sent) == 1


async def test_an_update_that_comes_again_acts_once_also_after_a_restart(api: TelegramApi, home: Path) -> None:
    async with running_bot(home, api):
        api.say(ALICE, "/version")
        await api.next()
        await api.until_confirmed()
        api.repeat()
        await api.until_confirmed()
    api.repeat(2)
    async with running_bot(home, api) as bot:
        api.say(ALICE, "/help")
        assert "/version" in (await api.next()).text
    assert len(api.sent) == 2
    assert bot.end is not None
    assert bot.end.updates == 1


async def test_what_is_no_command_for_us_is_not_acted_on(api: TelegramApi, bot: RunningBot) -> None:
    api.say(ALICE, "/version@otherbot")
    api.say(ALICE, "/version", forward_origin={"type": "hidden_user", "date": 1, "sender_user_name": "x"})
    assert "forwarded" in (await api.next()).text
    api.push("edited_message", api.message(ALICE, "/version", edit_date=5))
    api.say(ALICE, "/nonsense")
    assert "/nonsense" in (await api.next()).text
    api.say(ALICE, None, voice={"file_id": "v", "file_unique_id": "w", "duration": 1})
    assert "Only text" in (await api.next()).text


async def test_it_ends_when_it_is_asked_to(api: TelegramApi, home: Path) -> None:
    async with running_bot(home, api) as bot:
        api.say(ALICE, "/version")
        await api.next()
    assert bot.end is not None
    assert (bot.end.updates, bot.end.answered, bot.end.refused) == (1, 1, 0)


async def test_an_outage_is_told_once_and_survived(api: TelegramApi, bot: RunningBot) -> None:
    api.hang_up("getUpdates")
    api.say(ALICE, "/version")
    await api.next()
    api.say(ALICE, "/version")
    await api.next()
    await asyncio.sleep(0)
    assert [event.event for event in bot.events] == ["setting", "polling", "unreachable", "polling"]


NEVER = Backoff(10_000.0, 10_000.0)


@pytest.mark.parametrize("status", [401, 404])
async def test_a_proxy_that_answers_in_telegrams_place_is_an_outage(
    api: TelegramApi, home: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """At the start too."""
    monkeypatch.setattr("zuno.doors.telegram.bot.BACKOFF", Backoff(0.01, 0.01))
    monkeypatch.setattr("zuno.doors.telegram.bot.REFUSED_BACKOFF", NEVER)
    api.intercept("getMe", status, 2)
    api.intercept("getUpdates", status, 3)
    async with running_bot(home, api) as bot:
        api.intercept("sendMessage", status)
        api.say(ALICE, "/version")
        await api.next()
    assert [event.event for event in bot.events] == ["setting", "unreachable", "polling", "unreachable", "polling"]


async def test_a_token_that_is_refused_later_is_told_once_and_tried_slowly(
    api: TelegramApi, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = bot_module.REFUSED_BACKOFF
    monkeypatch.setattr("zuno.doors.telegram.bot.BACKOFF", NEVER)
    monkeypatch.setattr("zuno.doors.telegram.bot.REFUSED_BACKOFF", Backoff(0.01, 0.01))
    async with running_bot(home, api) as bot:
        api.fail("getUpdates", 401, "Unauthorized", 2)
        api.fail("getUpdates", 404, "Not Found", 2)
        api.say(ALICE, "/version")
        await api.next()
        api.say(ALICE, "/version")
        await api.next()
    assert [event.event for event in bot.events] == ["setting", "polling", "refused", "polling"]
    assert (slow.delay(1), slow.delay(20)) >= (30.0, 1_800.0)


BAD_LINES = [
    "🚀🚀🚀",
    "x" * 4_096,
    "/trades " + "9" * 4_000,
    "/trades 1,000",
    "/profit ‮yad‬",
    "/status <b>&amp;</script>",
    "/st\u0430tus",
    "/",
    "//status",
    "/status\x00\u200b\u202e",
    "/logs -5",
    "/logs ٣",
    "/whatif 1 2,400.50.3",
    "/positions 999999999999999999999999999999",
    "/why plan_000000000000",
    "/approve " + "a" * 3_000,
    "\u202e/pause",
]


async def test_bad_input_is_answered_with_a_sentence(api: TelegramApi, bot: RunningBot) -> None:
    """Nothing that can be typed is a bug, breaks the HTML or goes unanswered."""
    for line in BAD_LINES:
        api.say(ALICE, line)
        message = await api.next()
        assert "bug (" not in message.text, line
        assert message.html != message.text or "<" not in message.html
    await bot.chats(len(BAD_LINES))
    assert not any("malformed" in line.text for line in (await bot.zuno.logs().show(1_000, "error")).lines)


async def test_an_update_that_cannot_be_read_hides_none_behind_it(api: TelegramApi, bot: RunningBot) -> None:
    number = api.say(ALICE, "/version")
    api.push_raw({"update_id": number + 1, "message": {"chat": "nonsense"}})
    api.push_raw({"update_id": number + 2, "something_new": {"from": ALICE.document()}})
    api.push_raw({"nothing": 1})
    api._next_update += 5
    api.say(ALICE, "/version")
    await api.next(2)


async def test_answers_survive_what_telegram_does_to_them(api: TelegramApi, bot: RunningBot) -> None:
    """A limit is waited out, a lost answer may come twice, a blocked chat is given up, a moved group is followed."""
    api.limit("sendMessage", 1)
    api.say(ALICE, "/version")
    await api.next()
    api.lose("sendMessage")
    api.say(ALICE, "/version")
    await api.next(2)
    api.say(ALICE, "/version", GROUP)
    await api.next()
    api.migrated[GROUP.id] = -1_009_876
    api.say(ALICE, "/version", GROUP)
    assert (await api.next()).chat == -1_009_876
    api.blocked.add(ALICE.id)
    api.say(ALICE, "/version")
    await bot.chats(5)
    api.blocked.clear()
    api.say(ALICE, "/version")
    await api.next()


async def test_a_button_asks_what_it_says_in_its_own_chat(api: TelegramApi, bot: RunningBot) -> None:
    api.say(ALICE, "/positions", GROUP)
    message = await api.next()
    assert len(message.data_of(0).encode()) <= 64
    query = api.tap(BOB, message, 0)
    await api.next()
    await api.until(lambda: query in api.answered_queries)
    assert api.answered_queries[query] == ""
    api.say(ALICE, "/version")
    elsewhere = await api.next()
    for data in (message.data_of(0), "n1.0", "x" * 64, "💥"):
        query = api.press(ALICE, elsewhere, data)
        await api.until(lambda number=query: number in api.answered_queries)  # type: ignore[misc]
        assert api.answered_queries[query] == "This button is no longer valid."
    api.tap(EVE, message, 0)
    api.press(BOB, elsewhere, message.data_of(0))
    await bot.chats(9)
    assert len(api.answered_queries) == 5


async def test_two_processes_say_so_in_one_sentence(api: TelegramApi, home: Path, tmp_path: Path) -> None:
    async with running_bot(home, api) as first, running_bot(tmp_path / "other", api) as second:
        await api.until(lambda: api.polls > 4)
    told = [event.event for event in (*first.events, *second.events)]
    assert told.count("conflict") >= 1
    assert all(each.text.count("Another process") <= 1 for each in (*first.events, *second.events))


async def test_one_bot_for_a_home(api: TelegramApi, bot: RunningBot, home: Path) -> None:
    with pytest.raises(Refused):
        async with running_bot(home, api):
            pass


async def test_a_wrong_token_ends_it_and_is_not_told(api: TelegramApi, home: Path) -> None:
    with pytest.raises(UsageError) as wrong:
        async with running_bot(home, api, telegram_bot_token="999:wrong-token"):
            pass
    assert "wrong-token" not in str(wrong.value)
    assert wrong.value.__cause__ is None
    assert wrong.value.__suppress_context__


async def test_the_token_is_in_no_log(
    api: TelegramApi, home: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore", "telegram"):
        caplog.set_level(logging.DEBUG, name)
    async with running_bot(home, api) as bot:
        api.fail("sendMessage", 400, f"Bad Request: /bot{TOKEN}/sendMessage")
        api.hang_up("getUpdates")
        api.say(ALICE, f"/version {TOKEN}")
        api.say(ALICE, "/version")
        await api.next()
        await bot.chats(2)
        written = [str(entry.payload) async for entry in bot.zuno.journal().entries()]
    said = "\n".join([*map(str, (record.getMessage() for record in caplog.records)), *written, *capfd.readouterr()])
    assert "owners" in said
    assert TOKEN not in said
    assert TOKEN not in await asyncio.to_thread((home / "logs" / "zuno.log").read_text)


async def test_the_dates_of_messages_decide_nothing(api: TelegramApi, bot: RunningBot) -> None:
    """A phone or a server whose clock is wrong, and commands that waited out an outage; 0 is the date of a message
    that is too old to be shown to the bot."""
    for date in (0, 1, 2**31 - 1, 2**32, 2**36):
        api.say(ALICE, "/version", date=date)
        assert (await api.next()).text.startswith("zuno "), date
    api.say(ALICE, "/positions", GROUP)
    positions = await api.next()
    shown = {"chat": api.document_of(positions)["chat"], "message_id": positions.id, "date": 0}
    query = {"id": "77", "from": BOB.document(), "message": shown, "chat_instance": "1", "data": positions.data_of(0)}
    api._queries.add("77")
    api.push("callback_query", query)
    await api.until(lambda: "77" in api.answered_queries)
    assert api.answered_queries["77"] == ""


async def test_what_the_settings_leave_out_is_told_at_the_start(api: TelegramApi, home: Path) -> None:
    async with running_bot(home, api) as bot:
        pass
    assert [event.event for event in bot.events] == ["setting", "polling"]
    assert "ZUNO_TELEGRAM_CHAT_ID" in bot.events[0].text


async def test_a_slow_command_keeps_nobody_waiting(
    api: TelegramApi, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of them run: what lowers risk is answered at once."""
    gate = asyncio.Event()

    async def wait(asked: ChatRequest, zuno: Zuno) -> Reply:
        await gate.wait()
        return Reply("slow")

    slow = (Command("slow", "", "x", Level.LOOK, wait), Command("long", "", "x", Level.LOOK, wait, takes_long=True))
    monkeypatch.setattr(command_table, "COMMANDS", (*command_table.COMMANDS, *slow))
    async with running_bot(home, api) as bot:
        for _ in range(20):
            api.say(ALICE, "/slow")
            api.say(BOB, "/long")
        api.say(ALICE, "/stop")
        assert "seconds" in (await api.next()).text
        gate.set()
        await api.next(40)
        await bot.chats(41)


async def test_what_looks_never_keeps_a_button_money_or_risk_waiting_and_is_told_when_it_is_not_read(
    api: TelegramApi, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def wait(asked: ChatRequest, zuno: Zuno) -> Reply:
        await gate.wait()
        return Reply("slow")

    async def offer(asked: ChatRequest, zuno: Zuno) -> Reply:
        return Reply("menu", buttons=(Button("Version", "/version"),))

    async def spend(asked: ChatRequest, zuno: Zuno) -> Reply:
        return Reply("spent")

    added = [
        Command("slow", "", "x", Level.LOOK, wait),
        Command("menu", "", "x", Level.LOOK, offer),
        Command("spend", "", "x", Level.MONEY, spend),
    ]
    monkeypatch.setattr(command_table, "COMMANDS", (*command_table.COMMANDS, *added))
    monkeypatch.setattr("zuno.doors.telegram.bot.WAITING_AT_MOST", 12)
    async with running_bot(home, api) as bot:
        api.say(ALICE, "/menu")
        menu = await api.next()
        await bot.chats(1)
        for _ in range(12):
            api.say(ALICE, "/slow")
        for told, line in enumerate(("/version", "a question", "/slow"), 1):
            api.say(ALICE, line)
            assert (await api.next()).text.startswith("Busy")
            await bot.chats(1 + told)  # what comes while it is being said is not told once more
        api.tap(ALICE, menu, "Version")
        assert (await api.next()).text.startswith("zuno ")
        api.say(ALICE, "/spend")
        assert (await api.next()).text == "spent"
        api.say(ALICE, "/dismiss")
        assert "No card" in (await api.next()).text
        gate.set()
        await api.next(12)
        assert [entry.payload["command"] for entry in await bot.chats(19)].count("busy") == 3


async def test_an_error_of_strangers_words_has_nothing_to_tap(
    api: TelegramApi, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(asked: ChatRequest, zuno: Zuno) -> Reply:
        raise Refused("<b>x https://evil.com /kill @eve #tag $BTC; `zuno plan approve plan_1` shows it.")

    refusing = Command("refuse", "", "x", Level.LOOK, fail)
    monkeypatch.setattr(command_table, "COMMANDS", (*command_table.COMMANDS, refusing))
    async with running_bot(home, api):
        api.say(ALICE, "/refuse")
        message = await api.next()
    assert find_tappable(message.html) == []
    assert message.text.startswith("<b>x ")
    assert "<code>/approve plan_1</code>" in message.html


@pytest.mark.soak
async def test_a_thousand_updates_are_answered_once_each(api: TelegramApi, bot: RunningBot) -> None:
    """Strangers, repetitions and disorder among them."""
    for number in range(200):
        api.say(ALICE if number % 2 else BOB, "/version")
        api.say(Person(50_000 + number), "/version")
    api.reorder()
    await api.next(100)
    api.repeat(150)
    await api.next(100)
    api.say(ALICE, "/help")
    assert "Commands" in (await api.next()).text
    assert len(api.sent) == 201


async def test_updates_that_are_numbered_anew_are_taken_once(api: TelegramApi, bot: RunningBot) -> None:
    api.say(ALICE, "/version")
    await api.next()
    await api.until_confirmed()
    api.renumber(1_000)
    api.say(ALICE, "/version")
    await api.next()
    await api.until_confirmed()
    assert len(api.sent) == 2
    assert api.polls < 20


async def test_without_a_store_money_is_refused_aloud_and_risk_is_lowered(api: TelegramApi, bot: RunningBot) -> None:
    api.say(ALICE, "/version")
    await api.next()
    damage_store(bot.zuno.place().home / "telegram.db")
    api.say(ALICE, "/kill")
    assert "zuno trade kill" in (await api.next()).text
    api.say(ALICE, "/version")
    assert (await api.next()).text.startswith("zuno ")


async def test_a_line_with_the_looks_of_a_key_is_not_written_down(api: TelegramApi, bot: RunningBot) -> None:
    api.say(ALICE, f"/import 0x{'4f' * 32}")
    await api.next()
    (entry,) = await bot.chats(1)
    assert "4f4f" not in str(entry.payload)


def damage_store(path: Path) -> None:
    """No table of it can be read any more."""
    with sqlite3.connect(path) as opened:
        for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if not name.startswith("sqlite_"):
                opened.execute(f'DROP TABLE "{name}"')
