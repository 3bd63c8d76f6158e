"""From the journal to the chat through the whole wiring: killed at every step, and the buttons below a push."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.wire.telegram_api import ALICE, EVE, TOKEN, TelegramApi, telegram_api
from tests.wire.telegram_side import chat_settings, running_bot
from tests.wire.trading_account import AccountStory
from zuno.adapters.account.trade_log import JournalTradeLog
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.notifier.telegram import TelegramNotifier
from zuno.adapters.store.outbox import SqliteOutbox
from zuno.adapters.store.sqlite import open_sqlite
from zuno.journal.journal import ChainedJournal
from zuno.kernel.chat import ChatButton
from zuno.markets.market import Symbol
from zuno.settings import Settings
from zuno.trading.model.market import Side
from zuno.trading.model.trade_events import LockSet, Protection
from zuno.wiring.application import Application
from zuno.wiring.outbox import PushSources, build_button_search, build_pushes

STEPS = 15
"""Writes and sends of one story; the last number kills nobody."""


def home_settings(home: Path, url: str) -> Settings:
    return Settings(
        home=home,
        telegram_bot_token=SecretStr(TOKEN),
        telegram_chat_id=str(ALICE.id),
        telegram_api_base_url=url,
        telegram_push="fill=off",
    )


def sources(home: Path) -> PushSources:
    key = KeyFile(home / "keys" / "node.key")
    key.ensure()
    journal = ChainedJournal(open_sqlite(home), key, code=lambda: "test", now=unix_millis)

    async def opened() -> ChainedJournal:
        return journal

    async def paint(account: str) -> bytes | None:
        return None

    return PushSources(SqliteOutbox(home), opened, lambda: JournalTradeLog(opened), paint)


async def push_once(home: Path, url: str) -> None:
    """As long as a process takes to look once and send what it found."""
    stop = asyncio.Event()
    run = build_pushes(home_settings(home, url), sources(home))
    assert run is not None
    stop.set()
    await run(stop)


async def write_trades(home: Path) -> None:
    log = sources(home).log()
    at = unix_millis()
    story = AccountStory(log, "live")
    intent = await story.open_trade(at, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000")
    await story.exit_trade(at, intent, "stop")
    lock = LockSet(at=at, protection=Protection.KILL_SWITCH, symbol=None, until=None, reason="by the owner")
    await log.append("live", [lock], len(await log.events("live")))


def _push_and_die(home: str, url: str, doom: int) -> None:
    left = [doom]

    def count(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return await method(*arguments, **named)

        return counted

    for owner, names in (
        (SqliteOutbox, ("append", "move_cursor", "mark_delivered", "mark_skipped")),
        (TelegramNotifier, ("send",)),
    ):
        for name in names:
            setattr(owner, name, count(getattr(owner, name)))
    asyncio.run(push_once(Path(home), url))


async def run_child(home: Path, url: str, doom: int) -> int | None:
    child = multiprocessing.get_context("fork").Process(target=_push_and_die, args=(str(home), url, doom))
    child.start()
    await asyncio.to_thread(child.join, 60)
    return child.exitcode


def first_lines(api: TelegramApi) -> list[str]:
    return [message.text.splitlines()[0].partition(" ")[2] for message in api.sent]


@pytest.mark.soak
async def test_a_kill_at_every_step_from_the_journal_to_the_chat(tmp_path: Path) -> None:
    expected = ["BTCUSDT long: entry ordered · LIVE", "BTCUSDT long stopped out · LIVE", "Locked: kill switch · LIVE"]
    async with telegram_api() as api:
        api.say(ALICE, "/start")  # a bot writes to those who wrote first
        for doom in range(1, STEPS + 1):
            home = tmp_path / str(doom)
            home.mkdir()
            await push_once(home, api.url)
            await write_trades(home)
            code = await run_child(home, api.url, doom)
            assert code == (-signal.SIGKILL if doom < STEPS else 0), doom
            while await run_child(home, api.url, 10_000) != 0:
                pass
            assert list(dict.fromkeys(first_lines(api))) == expected, doom
            assert len(api.sent) <= len(expected) + 1, doom
            api.sent.clear()


async def test_the_buttons_below_a_push_are_found_by_their_data(tmp_path: Path) -> None:
    async with telegram_api() as api:
        api.say(ALICE, "/start")
        await push_once(tmp_path, api.url)
        await write_trades(tmp_path)
        await push_once(tmp_path, api.url)
        stopped, locked = api.sent[1:]
        find = build_button_search(home_settings(tmp_path, api.url), SqliteOutbox(tmp_path))
        assert await find(stopped.data_of("Why")) == ChatButton(f"/why run_{1:016x}", ALICE.id)
        assert await find(locked.data_of("Unlock")) == ChatButton("/unlock kill_switch live", ALICE.id)
        for data in ("", "n1", "n1.99", "n999.0", "n-1.0", "n1.0 ", "n" + "9" * 60 + ".0", "c1.0"):
            assert await find(data) is None


@pytest.mark.parametrize("missing", ["telegram_bot_token", "telegram_chat_id"])
def test_without_a_chat_nothing_is_pushed(tmp_path: Path, missing: str) -> None:
    settings = home_settings(tmp_path, "http://127.0.0.1:9").model_copy(update={missing: None})
    assert build_pushes(settings, sources(tmp_path)) is None


@pytest.fixture
def market_home(home: Path, invented_market: Path) -> Path:
    """With a market: the greeting would invent one."""
    home.mkdir()
    (home / "market").symlink_to(invented_market)
    return home


async def test_an_alert_is_pushed_by_the_bot_and_acknowledged_by_its_button(market_home: Path) -> None:
    """The monitor raises it in one process, the bot sends it in another, and the owner's tap answers it."""
    home = market_home
    async with telegram_api() as api:
        api.say(ALICE, "/start")
        async with running_bot(home, api, telegram_chat_id=str(ALICE.id)) as bot:
            zuno = Application(chat_settings(home, api, telegram_chat_id=str(ALICE.id)))
            await zuno.sim().move("-12")
            await zuno.monitor().tick()
            await api.until(lambda: any("Ack" in message.labels for message in api.sent))
            pushed = next(message for message in api.sent if "Ack" in message.labels)
            assert "SYNTHETIC" in pushed.text
            assert pushed.labels == ["Ack", "Snooze 6 h", "Recommend"]
            for person in (EVE, ALICE):
                api.tap(person, pushed, "Ack")
            await bot.chats(3)
            (alert,) = [alert for alert in (await zuno.alerts().list()).alerts if alert.id in pushed.text]
            assert alert.state == "acknowledged"
            await zuno.close()
