"""`zuno telegram setup` and `run` as a person meets them first: no token, no library, a code to send."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import SecretStr

from tests.wire.commands import Zuno
from tests.wire.telegram_api import ALICE, EVE, GROUP, TOKEN, TelegramApi, telegram_api
from tests.wire.telegram_side import chat_settings, running_bot
from zuno.adapters.keys import passphrases
from zuno.adapters.keys.passphrases import Passphrases
from zuno.adapters.keys.wallets import WalletFolder
from zuno.doors.telegram.command_table import COMMANDS
from zuno.doors.telegram_door import TelegramSetupView
from zuno.kernel.errors import Refused, UsageError
from zuno.wiring.application import Application


@pytest_asyncio.fixture
async def api() -> AsyncIterator[TelegramApi]:
    async with telegram_api() as served:
        yield served


class Setup:
    """A setup that runs, and what it told its person."""

    def __init__(self, home: Path, api: TelegramApi) -> None:
        self.zuno = Application(chat_settings(home, api, telegram_owners=(), telegram_viewers=()))
        self.lines: list[str] = []
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(self.zuno.telegram().setup(self.lines.append, self.stop))

    async def code(self, api: TelegramApi) -> str:
        await api.polling.wait()
        found = re.search(r"[0-9]{6}$", self.lines[-1])
        assert found is not None
        return found[0]

    async def end(self) -> TelegramSetupView:
        try:
            return await self.task
        finally:
            await self.zuno.close()


async def test_the_owner_is_found_by_a_code_and_nothing_is_stored(api: TelegramApi, home: Path) -> None:
    api.webhook = "https://elsewhere.example"
    setup = Setup(home, api)
    code = await setup.code(api)
    api.say(EVE, "/start")
    api.say(ALICE, code, GROUP)
    api.say(ALICE, f" {code} ")
    view = await setup.end()
    assert (view.user, view.chat, view.name, view.bot) == (ALICE.id, ALICE.id, "Alice", "@zuno_exam_bot")
    assert f"export ZUNO_TELEGRAM_OWNERS={ALICE.id}" in view.environment
    assert [command["command"] for command in api.commands] == [command.name for command in COMMANDS]
    assert api.description
    assert api.short_description
    assert [message.chat for message in api.sent] == [ALICE.id]
    assert not (home / "telegram.db").exists()
    await api.until_confirmed()


async def test_a_code_cannot_be_guessed(api: TelegramApi, home: Path) -> None:
    setup = Setup(home, api)
    code = await setup.code(api)
    for guess in range(3):
        api.say(EVE, str((int(code) + guess + 1) % 1_000_000).zfill(6))
    api.say(EVE, code)
    api.say(ALICE, code)
    assert (await setup.end()).user == ALICE.id


async def test_a_setup_can_be_stopped(api: TelegramApi, home: Path) -> None:
    setup = Setup(home, api)
    await setup.code(api)
    setup.stop.set()
    with pytest.raises(Refused):
        await setup.end()


async def test_a_wrong_token_is_said_at_once(api: TelegramApi, home: Path) -> None:
    api.fail("getMe", 401, "Unauthorized")
    with pytest.raises(UsageError):
        await Setup(home, api).end()


@pytest.mark.parametrize("command", ["run", "setup"])
def test_without_a_token_one_sentence_says_how_to_get_one(zuno: Zuno, command: str) -> None:
    ran = zuno("telegram", command)
    assert ran.code == 2
    assert "@BotFather" in ran.err
    assert ran.err.count("\n") == 1


def test_without_the_library_the_install_line_is_printed(zuno: Zuno, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "telegram", None)
    ran = zuno("telegram", "run", ZUNO_TELEGRAM_BOT_TOKEN="1:abc")
    assert ran.code == 4
    assert "`make telegram`" in ran.err


@pytest.mark.parametrize("wrong", ["alice", "1;2", "1.5", "@alice"])
def test_people_are_listed_by_number(zuno: Zuno, wrong: str) -> None:
    ran = zuno("telegram", "run", ZUNO_TELEGRAM_OWNERS=wrong)
    assert ran.code == 2
    assert "ZUNO_TELEGRAM_OWNERS" in ran.err


def test_a_token_goes_over_https_alone(zuno: Zuno) -> None:
    ran = zuno("telegram", "run", ZUNO_TELEGRAM_BOT_TOKEN="1:abc", ZUNO_TELEGRAM_API_BASE_URL="http://192.0.2.1")
    assert ran.code == 2
    assert "1:abc" not in ran.err


async def test_the_process_ends_cleanly_when_it_is_asked_to(api: TelegramApi, home: Path) -> None:
    """The last line is the summary, and the token stands nowhere."""
    given = {"ZUNO_HOME": str(home), "ZUNO_TELEGRAM_BOT_TOKEN": TOKEN, "ZUNO_TELEGRAM_API_BASE_URL": api.url}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "zuno", "telegram", "run", "--json"),
        env={**os.environ, **given, "ZUNO_TELEGRAM_OWNERS": str(ALICE.id)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    await asyncio.wait_for(api.polling.wait(), 60)
    api.say(ALICE, "/version")
    await api.next()
    process.send_signal(signal.SIGTERM)
    out, err = await process.communicate()
    assert process.returncode == 0, err
    assert TOKEN.encode() not in out + err
    last = json.loads(out.splitlines()[-1])
    assert (last["updates"], last["answered"]) == (1, 1)


async def test_a_wallet_that_nobody_unlocks_stays_locked_and_says_how(
    api: TelegramApi, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ["46" * 32, "correct horse", "correct horse"]
    folder = WalletFolder(home / "wallets", Passphrases(None, lambda prompt: SecretStr(answers.pop(0))), rounds=2)
    address = folder.add_key().address
    monkeypatch.setattr(passphrases, "ask_hidden", lambda prompt: None)
    async with running_bot(home, api) as bot:
        told = [event.text for event in bot.events if event.event == "locked"]
    assert len(told) == 1
    assert address in told[0]
    assert "ZUNO_PASSPHRASE_FILE" in told[0]
    file = home / "passphrase"
    file.write_text("correct horse")
    file.chmod(0o600)
    api.polling.clear()
    async with running_bot(home, api, passphrase_file=file) as bot:
        assert "locked" not in {event.event for event in bot.events}
