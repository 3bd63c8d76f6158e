"""The bot of a home, whole, on a Bot API that behaves like Telegram's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.wire.telegram_api import ALICE, BOB, BOT_NAME, EVE, GROUP, TelegramApi, telegram_api
from tests.wire.telegram_side import RunningBot, running_bot


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
    assert "no command" in (await api.next()).text
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
    assert [event.event for event in bot.events] == ["polling", "unreachable", "polling"]
