"""An account that was driven through recorded time, in a recording that goes on for months after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.wire.account_home import END, write_account_home
from tests.wire.commands import run_zuno
from tests.wire.order_gate import open_long
from zuno.adapters.account.trade_log import JournalTradeLog
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.kernel.errors import NotFound, Refused
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, UPBIT, USDT_KRW
from zuno.markets.market import Symbol
from zuno.settings import Settings
from zuno.trading.learn.memory_book import post_mortem_id
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Candle,
    Level,
    MarkAndIndex,
    Mode,
    Timeframe,
    basis,
    candles,
    rates,
)
from zuno.trading.model.trade_events import ClockSet, paper_account
from zuno.trading.ports.series import Batch, Origin
from zuno.trading.service.manual_entries import OpeningEntry
from zuno.trading.watch.desk_loop import DeskPlan
from zuno.wiring.application import Application

LATER = Millis(END + 240 * DAY_MS)
MOMENT = "2025-12-31T23:37:00Z"


async def extend_market(home: Path) -> None:
    """Eight months later everything costs twice as much."""
    store = SqliteSeries(home / "market" / "own", Origin(False, "recorded"))
    batches: list[Batch[Any]] = [Batch(rates(UPBIT, USDT_KRW), [Level(LATER, 2_800.0)])]
    for symbol, price in ((Symbol("BTCUSDT"), 120_000.0), (Symbol("ETHUSDT"), 6_000.0)):
        bars = [Candle(Millis(LATER - n * HOUR_MS), price, price, price, price, 1.0, 0.5) for n in (3, 2, 1)]
        batches.append(Batch(candles(BINANCE, symbol, Timeframe.H1), bars))
        batches.append(Batch(basis(BINANCE, symbol), [MarkAndIndex(LATER, price, price)]))
    await store.write(batches)
    await store.close()


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """The account `past` was driven to 23 minutes before the market's price was written last, between two marks."""
    await write_account_home(tmp_path)
    await extend_market(tmp_path)
    zuno = Application(Settings(home=tmp_path, recording="own"))
    since, until = str(END - HOUR_MS), str(END - 23 * MINUTE_MS)
    run = await zuno.trade_desk().start(
        lambda event: None, asyncio.Event(), account="past", speed="max", since=since, until=until
    )
    await zuno.close()
    assert run.until == MOMENT
    return tmp_path


async def test_everything_of_it_stands_at_its_own_last_moment(home: Path) -> None:
    zuno = Application(Settings(home=home, recording="own"))
    account = zuno.account("past")
    views = [
        await account.status(),
        await account.positions(),
        await account.orders(),
        await account.fills(),
        await account.trades(),
        await account.ledger(),
        await account.balance(),
        await account.profit("day"),
        await account.equity(),
        await account.locks(),
        await account.pause(),
        await account.resume(),
    ]
    for view in views:
        assert (view.as_of, view.recorded, view.live) == (MOMENT, True, False)
        assert [mark.price for mark in view.marks] == [60_000.0, 3_000.0]
    assert (await account.status()).equity_usd == pytest.approx(2_000 + 2_000_000 / 1_400)
    await zuno.close()


async def test_what_is_opened_and_closed_by_hand_in_it_has_the_prices_of_that_moment(home: Path) -> None:
    zuno = Application(Settings(home=home, recording="own"))
    shown = await zuno.account().enter(OpeningEntry.parse(zuno.markets, "ETHUSDT", "long", "100"))
    assert (shown.as_of, [position.entry for position in shown.positions if position.symbol == "ETHUSDT"]) == (
        "2026-01-01T00:00:00Z",
        [3_000.0],
    )
    assert shown.recorded
    assert (await zuno.account().positions()).as_of == "2026-01-01T00:00:00Z"
    await zuno.account().close("ETHUSDT")
    (trade, *_) = (await zuno.account().trades()).trades
    assert (trade.symbol, trade.exit) == ("ETHUSDT", pytest.approx(3_000, rel=1e-4))
    assert (await zuno.account().status()).recorded
    await zuno.close()


@pytest.mark.parametrize(
    "ask",
    [
        lambda zuno: zuno.account("pats").status(),
        lambda zuno: zuno.account("pats").performance(),
        lambda zuno: zuno.account("pats").pause(),
        lambda zuno: zuno.account("pats").cancel("z-1"),
        lambda zuno: zuno.account("pats").kill(lambda word, what: True),
        lambda zuno: zuno.account("pats").unlock(),
        lambda zuno: zuno.learning("pats").vetoes(),
        lambda zuno: zuno.learning("pats").evaluate(),
        lambda zuno: zuno.trade_desk().stop("pats"),
    ],
)
async def test_an_account_that_never_was_is_not_found_and_not_made(
    home: Path, ask: Callable[[Application], Any]
) -> None:
    zuno = Application(Settings(home=home, recording="own"))
    with pytest.raises(NotFound, match="past"):
        await ask(zuno)
    assert not [name for name in await zuno._trade_log().accounts() if "pats" in name]
    await zuno.close()


async def test_recorded_and_real_time_are_never_mixed_in_one_account(home: Path) -> None:
    zuno = Application(Settings(home=home, recording="own"))
    log = JournalTradeLog(zuno._open_journal)
    real = paper_account("recorded", "real")
    await log.append(real, [ClockSet(at=END, recorded=False)], 0)
    with pytest.raises(Refused, match="real time"):
        await zuno.trade_desk().start(lambda event: None, asyncio.Event(), account="real", speed="max", since="48h")
    await zuno.close()
    live = Application(Settings(home=home, recording="own", market="live"))
    stop = asyncio.Event()
    stop.set()
    plan, past = DeskPlan((Symbol("BTCUSDT"),), Mode.SWING), paper_account("recorded", "past")
    with pytest.raises(Refused, match="recorded time"):
        await live.trade_desk()._run_live(plan, past, lambda event: None, stop, ())
    await live.close()


async def test_a_run_that_acts_remembers_what_its_market_closed(tmp_path: Path) -> None:
    """The price doubled since the account bought: its target is met when the run looks."""
    await write_account_home(tmp_path)
    zuno = Application(Settings(home=tmp_path, recording="own"))
    await open_long(await zuno._open_account("second"), END, 60_000.0)
    await zuno.close()
    await extend_market(tmp_path)
    asked = ("--execute", "--account", "second", "--no-chart", "--json")
    ran = run_zuno(tmp_path, "trade", "run", "BTCUSDT", *asked, ZUNO_RECORDING="own")
    assert ran.code == 0, ran.err
    (closed,) = run_zuno(tmp_path, "trade", "trades", "--account", "second", "--json", ZUNO_RECORDING="own").document[
        "trades"
    ]
    assert closed["exitReason"] == "target"
    (memory,) = run_zuno(tmp_path, "memory", "list", "--json", ZUNO_RECORDING="own").document["memories"]
    assert memory["id"] == post_mortem_id(paper_account("recorded", "second"), closed["id"])
    assert (memory["verdict"], memory["side"], memory["symbol"]) == ("SUCCESS", "long", "BTCUSDT")
