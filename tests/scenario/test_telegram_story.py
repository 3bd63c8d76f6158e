"""A day with the desk in a chat: an analysis, a trade that is stopped out and what was learned from it; then a position
that is argued about, approved and applied on the real contracts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.wire.order_gate import open_long
from tests.wire.telegram_api import ALICE, SentMessage, TelegramApi, telegram_api
from tests.wire.telegram_side import RunningBot, running_bot
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS, HOUR_MS
from zuno.trading.model.trade_events import ExitReason, paper_account
from zuno.wiring.application import Application

PNG = b"\x89PNG"


@pytest_asyncio.fixture
async def api() -> AsyncIterator[TelegramApi]:
    async with telegram_api() as served:
        yield served


@pytest.fixture
def story_home(devnet: Any, devnet_home: Path, invented_market: Path) -> Iterator[Path]:
    """The home of the running devnet, whose price has left a position's range, with a synthetic market."""
    assert devnet("devnet", "move", "--percent", "-12").code == 0
    market = devnet_home / "market"
    market.symlink_to(invented_market)
    yield devnet_home
    market.unlink()


async def trade_until_stopped(zuno: Application) -> None:
    """A long of some days before the recording ends, held until its stop, which is near."""
    moment = await zuno.trading().moment(Symbol("BTCUSDT"), None)
    clock = [Millis(moment.as_of - 6 * DAY_MS)]
    gate = await zuno._open_gate(paper_account(moment.origin), lambda: clock[0])
    quote: Any = await gate._protections.known_quote(Venue("BINANCE"), Symbol("BTCUSDT"))
    await open_long(gate, clock[0], float(quote.mark), stop=0.996)
    while gate.book.trades and clock[0] < moment.as_of:
        clock[0] = Millis(clock[0] + HOUR_MS)
        await gate.advance()
    assert [closed.reason for closed in gate.book.closed] == [ExitReason.STOP]


async def press(api: TelegramApi, message: SentMessage, label: str) -> SentMessage:
    api.tap(ALICE, message, label)
    return await api.next()


async def ask(api: TelegramApi, text: str) -> SentMessage:
    api.say(ALICE, text)
    return await api.next()


async def next_with(api: TelegramApi, label: str) -> SentMessage:
    """The next message with this button; others pass."""
    while True:
        message = await api.next()
        if label in message.labels:
            return message


async def test_from_a_greeting_to_an_applied_plan(api: TelegramApi, story_home: Path) -> None:
    async with running_bot(story_home, api, chain_id="devnet") as bot:
        await follow_trading(api, bot)
        await follow_liquidity(api, bot)
        chats = {entry.payload["command"] async for entry in bot.zuno.journal().entries(kind="chat")}
    assert {"start", "analyze", "memory", "positions", "recommend", "approve", "apply", "confirm"} <= chats


async def follow_trading(api: TelegramApi, bot: RunningBot) -> None:
    assert "SYNTHETIC" in (await ask(api, "/start")).text
    api.say(ALICE, "/analyze BTC")
    report = await next_with(api, "Why")
    assert report.photo is not None or any(message.photo for message in api.sent)
    # The last state arrives beside the report.
    await api.until(lambda: any(message.edits and "judge" in message.text for message in api.sent))
    page = await press(api, report, "Full page")
    assert page.document is not None
    assert b"<html" in page.document[1]
    await trade_until_stopped(bot.zuno)
    assert "long BTC" in (await ask(api, "/trades")).text
    await ask(api, "/evaluate")
    assert "BTCUSDT" in (await ask(api, "/memory")).text


async def follow_liquidity(api: TelegramApi, bot: RunningBot) -> None:
    before = await ask(api, "/positions")
    assert "WETH/USDC" in before.text
    api.say(ALICE, "/recommend 1")
    plan = await next_with(api, "Approve…")
    card = await press(api, plan, "Approve…")
    assert card.labels == ["Approve", "Cancel"]
    approved = await press(api, card, "Approve")
    assert "Apply" in approved.labels
    card = await press(api, approved, "Apply")
    assert card.labels == ["Apply", "Cancel"]
    applied = await press(api, card, "Apply")
    assert "confirmed" in applied.text
    state = await ask(api, f"/plan {applied_plan(card)} status")
    assert "confirmed" in state.text


def applied_plan(card: SentMessage) -> str:
    return next(word for word in card.text.replace(":", " ").split() if word.startswith("plan_"))
