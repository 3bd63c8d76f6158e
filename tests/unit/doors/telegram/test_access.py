"""Who is admitted: by user id, in a private chat of their own or a listed group, on every kind of update."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram import Bot, Update, User

from tests.wire.fakes.chat_store import ChatStoreInMemory
from tests.wire.seals import SealKey
from tests.wire.telegram_api import ALICE, BOB, BOT_NAME, EVE, GROUP, TOKEN, Person, Room, TelegramApi
from tests.wire.telegram_updates import KINDS, sample_update
from zuno.adapters.store.memory import MemoryStore
from zuno.doors.telegram.access import HOUR, RECORDS_AN_HOUR, Access, Role, Sender, StrangerRecords, find_sender
from zuno.doors.telegram.bot import BotBackends, TelegramBot
from zuno.doors.telegram.command_table import COMMANDS
from zuno.doors.zuno import Zuno
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Entry, Journal
from zuno.kernel.units import Millis

ACCESS = Access([ALICE.id], [BOB.id], [GROUP.id])
OTHER_GROUP = Room(-1_005_555)


def update_of(kind: str, user: Person, room: Room | None, text: str = "/status", **fields: Any) -> Update:
    document = sample_update(TelegramApi(), kind, user, room, text) | fields
    return Update.de_json({"update_id": next(NUMBERS), kind: document}, None)


NUMBERS = count(1)


def role_of(kind: str, user: Person, room: Room | None = None, **fields: Any) -> Role | None:
    return ACCESS.find_role(find_sender(update_of(kind, user, room, **fields)))


async def test_people_are_known_by_their_id_in_their_own_chat_or_a_listed_group() -> None:
    assert role_of("message", ALICE) is Role.OWNER
    assert role_of("message", BOB, GROUP) is Role.VIEWER
    assert role_of("callback_query", ALICE, GROUP) is Role.OWNER
    assert role_of("message", ALICE, OTHER_GROUP) is None
    assert role_of("message", EVE) is None
    assert role_of("message", EVE, GROUP) is None


async def test_a_mask_is_nobody() -> None:
    """A bot, an anonymous administrator, a channel's voice, a private chat that is not one's own."""
    assert role_of("message", Person(ALICE.id, is_bot=True)) is None
    assert role_of("message", ALICE, GROUP, sender_chat=GROUP.document()) is None
    assert role_of("message", ALICE, chat={"id": EVE.id, "type": "private", "first_name": "x"}) is None
    assert role_of("callback_query", ALICE, message=None) is None


async def test_empty_lists_admit_nobody() -> None:
    nobody = Access([], [], [GROUP.id])
    assert nobody.find_role(find_sender(update_of("message", ALICE, GROUP))) is None
    assert nobody.find_role(Sender("message", 0, 0, "private", masked=False)) is None


OFFLINE = Bot(TOKEN)
OFFLINE._bot_user = User(int(TOKEN.split(":")[0]), "Zuno", is_bot=True, username=BOT_NAME)


class Desk:
    """A bot that has nothing behind it: whoever reaches further than the door fails."""

    def __init__(self) -> None:
        self.now = Millis(1_800_000_000_000)
        self.journal = ChainedJournal(
            MemoryStore(), SealKey("node", {}), code=lambda: "test", now=lambda: self.now, secrets=(TOKEN,)
        )
        backends = BotBackends(
            store=ChatStoreInMemory(),
            journal=self.open_journal,
            now=lambda: self.now,
            chance=lambda size: bytes(size),
            commands=COMMANDS,
            cards={},
        )
        self.bot = TelegramBot(OFFLINE, cast(Zuno, None), ACCESS, backends)

    async def open_journal(self) -> Journal:
        return self.journal

    async def records(self) -> list[Entry]:
        return [entry async for entry in self.journal.entries()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_stranger_is_refused_and_recorded_whatever_is_sent(kind: str) -> None:
    """Every command in every kind of update: nothing behind the door is touched, and no answer is sent."""
    names = [name for command in COMMANDS for name in (command.name, *command.aliases)]

    async def knock() -> list[Entry]:
        desk = Desk()
        for name in names:
            for chat in (None, GROUP, OTHER_GROUP):
                desk.now = Millis(desk.now + HOUR)
                await desk.bot.handle_update(update_of(kind, EVE, chat, f"/{name} 1"))
        assert not desk.bot._tasks
        return await desk.records()

    records = asyncio.run(knock())
    assert len(records) == 3 * len(names)
    assert {record.kind for record in records} == {"chat"}
    assert {record.payload["role"] for record in records} == {None}
    assert {record.payload["update"] for record in records} == {kind}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {"message", "callback_query"}])
def test_other_kinds_of_a_listed_person_do_nothing(kind: str) -> None:
    async def knock() -> None:
        desk = Desk()
        await desk.bot.handle_update(update_of(kind, ALICE, GROUP, "/stop"))
        assert not desk.bot._tasks

    asyncio.run(knock())


@pytest.mark.slow
def test_strangers_cannot_fill_the_journal() -> None:
    async def flood() -> list[Entry]:
        desk = Desk()
        for number in range(RECORDS_AN_HOUR + 20):
            await desk.bot.handle_update(update_of("message", Person(10_000 + number), None, "x" * 4_000))
        desk.now = Millis(desk.now + HOUR)
        await desk.bot.handle_update(update_of("message", EVE, None, TOKEN))
        return await desk.records()

    records = asyncio.run(flood())
    assert len(records) == RECORDS_AN_HOUR + 1
    assert records[-1].payload["unrecorded"] == 20
    assert records[-1].payload["asked"] == "(withheld)"


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(-5_000_000, 5_000_000)), max_size=80))
def test_records_of_strangers_are_bounded_by_any_clock(knocks: list[tuple[int, int]]) -> None:
    """However the clock jumps: no more than the limit within an hour, and every one that was left out is counted."""
    records, now, taken = StrangerRecords(), 10_000_000_000, []
    for user, step in knocks:
        now += step
        if records.take_turn(Sender("message", user, user, "private", masked=False), Millis(now)):
            taken.append(now)
    assert len(taken) + records.skipped == len(knocks)
    assert len(records._recorded) <= RECORDS_AN_HOUR
