"""Every command of the chat on a home with a synthetic market, through the whole bot."""

from __future__ import annotations

import logging
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.wire.commands import run_zuno
from tests.wire.telegram_api import ALICE, BOB, TelegramApi, telegram_api
from tests.wire.telegram_side import RunningBot, running_bot
from zuno.doors.telegram.command_table import COMMANDS
from zuno.doors.telegram.commands import Level

SECTION_14 = (
    "start stop pause stopentry resume status trades profit performance balance daily weekly monthly stats count"
    " forceexit fx kill locks unlock logs help version show_config analyze mode report why positions alerts ack plan"
    " approve apply evaluate memory recommend portfolio whatif pnl close"
).split()
ALONE = {
    command.name: ""
    for command in COMMANDS
    if command.level is Level.LOOK and command.name not in ("whatif", "pnl", "report", "why", "dismiss", "plan")
}
MORE = "status table,trades 3,profit day,logs 5,positions 1,whatif 1,pnl 1,plan,memory lessons".split(",")


@pytest.fixture(scope="module")
def market(invented_market: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose paper account holds something."""
    home = tmp_path_factory.mktemp("chatting")
    shutil.copytree(invented_market, home / "market")
    return home


@pytest_asyncio.fixture
async def api() -> AsyncIterator[TelegramApi]:
    async with telegram_api() as served:
        yield served


@pytest_asyncio.fixture
async def bot(api: TelegramApi, market: Path) -> AsyncIterator[RunningBot]:
    async with running_bot(market, api) as running:
        yield running


def test_every_command_people_expect_is_there() -> None:
    known = [name for command in COMMANDS for name in (command.name, *command.aliases)]
    assert len(known) == len(set(known))
    assert [name for name in SECTION_14 if name not in known] == []


async def test_help_lists_every_command_with_what_it_takes(api: TelegramApi, bot: RunningBot) -> None:
    api.say(BOB, "/help")
    lines = {line.split()[0].rstrip(":"): line for line in (await api.next()).text.splitlines() if line[0] == "/"}
    assert set(lines) == {f"/{command.name}" for command in COMMANDS}
    marks = {"confirm": Level.MONEY, "at once": Level.LOWERS_RISK, "owners": Level.OWNER}
    for command in COMMANDS:
        found = [level for mark, level in marks.items() if mark in lines[f"/{command.name}"].rpartition("·")[2]]
        assert found == ([] if command.level is Level.LOOK else [command.level])


async def test_whatever_only_looks_answers_a_viewer(api: TelegramApi, bot: RunningBot) -> None:
    for asked in [*ALONE, *MORE]:
        api.say(BOB, f"/{asked}")
        message = await api.next()
        api._read = len(api.sent)
        assert "bug (" not in message.text, asked
    recorded = await bot.chats(len(ALONE) + len(MORE))
    assert {entry.payload["command"] for entry in recorded} >= set(ALONE)


async def test_opening_a_chat_starts_nothing(api: TelegramApi, bot: RunningBot) -> None:
    before = len(await bot.chats(0))
    api.say(ALICE, "/start")
    assert "Zuno" in (await api.next()).text
    await bot.chats(before + 1)
    entries = [entry.kind async for entry in bot.zuno.journal().entries()]
    assert set(entries) == {"chat"}


async def test_settings_are_shown_without_secrets(
    api: TelegramApi, market: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-alice")
    monkeypatch.setenv("ZUNO_RISK_PROFILE", "aggressive")
    async with running_bot(market, api, openai_api_key="sk-secret-of-alice", risk_profile="aggressive"):
        api.say(ALICE, "/show_config")
        shown = (await api.next()).text
    assert "aggressive" in shown
    assert "OPENAI_API_KEY=set" in shown
    assert "sk-secret" not in shown
    assert str(ALICE.id) not in shown


async def test_only_an_owner_lowers_risk_and_it_acts_at_once(api: TelegramApi, bot: RunningBot, market: Path) -> None:
    api.say(BOB, "/pause")
    assert "owner" in (await api.next()).text
    api.say(ALICE, "/stopentry")
    await api.next()
    api.say(BOB, "/locks")
    assert "pause" in (await api.next()).text
    elsewhere = run_zuno(market, "trade", "locks", "--json").document
    assert [lock["protection"] for lock in elsewhere["protections"]] == ["paused"]
    api.say(ALICE, "/stop")
    assert "seconds" in (await api.next()).text


async def test_what_another_process_did_is_seen_at_once(api: TelegramApi, bot: RunningBot, market: Path) -> None:
    """One Zuno serves the whole process: its views are not of the moment it was opened."""
    api.say(ALICE, "/locks")
    first = (await api.next()).text
    run_zuno(market, "trade", "pause" if "nothing is locked" in first else "unlock")
    api.say(ALICE, "/locks")
    assert (await api.next()).text != first
    api.say(ALICE, "/positions")
    before = (await api.next()).text
    assert run_zuno(market, "sim", "move", "--percent", "-20").code == 0
    api.say(ALICE, "/positions")
    assert (await api.next()).text != before


async def test_a_viewer_sees_neither_ids_nor_paths_in_logs_and_settings(api: TelegramApi, market: Path) -> None:
    hidden = (
        "the user 5551234 asks faster than answers come",
        "refused a text of the user 4711 in the chat -1009998887776",
        f"The record {market}/cache/pool 7.json cannot be read",
        "Nothing can be kept in /var/lib/other/place (full)",
        "postgresql://zuno@db.example/zuno did not answer; ~/keys/x.pem",
        "wallet 0x00000000000000000000000000000000000000ab has no gas",
        'first line\n  File "/opt/secret/place.py", line 3, in act',
    )
    private = "5551234 4711 1009998887776 chatting cache /var /opt db.example x.pem 0x0000 secret axl-node".split()
    async with running_bot(market, api, axl_node=Path("/opt/secret/axl-node")) as bot:
        for line in hidden:
            logging.getLogger("zuno.test").warning(line)
        logging.getLogger("zuno.test").warning("BTC at 60123.5, 3 of 12 trades in 45 s")
        for command in ("/logs 100", "/show_config"):
            api.say(ALICE, command)
            whole = (await api.next()).text
            api.say(BOB, command)
            seen = (await api.next()).text
            assert [word for word in private if word in seen] == [], seen
            assert any(word in whole for word in private)
            assert "first line" in seen or command != "/logs 100"
            assert "60123.5, 3 of 12 trades in 45 s" in seen or command != "/logs 100"
        assert bot.zuno.config().home
