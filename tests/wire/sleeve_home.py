"""A home with months of a recorded market, and an account of which one part follows a trend and another is debated."""

from __future__ import annotations

from math import sin
from pathlib import Path
from typing import Any

from tests.wire.trading_account import AccountStory
from zuno.adapters.account.trade_log import JournalTradeLog
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, UPBIT, USDT_KRW
from zuno.markets.market import Symbol
from zuno.settings import Settings
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Candle,
    Level,
    MarkAndIndex,
    Side,
    Timeframe,
    basis,
    candles,
    rates,
)
from zuno.trading.model.trade_events import paper_account
from zuno.trading.ports.series import Batch, Origin
from zuno.wiring.application import Application

END = Millis(1_767_225_600_000)
DAYS = 120
BTC, ETH = Symbol("BTCUSDT"), Symbol("ETHUSDT")


def price(symbol: Symbol, at: int) -> float:
    """Whole dollars; BTC rises and falls by thousands within weeks, ETH the other way at times."""
    day = (at - END) / DAY_MS + DAYS
    if symbol is BTC:
        return round(50_000 + 90 * day + 5_000 * sin(day / 9) + 900 * sin(2.3 * day))
    return round(3_000 - 4 * day + 300 * sin(day / 13 + 1) + 60 * sin(1.7 * day))


async def write_sleeve_home(folder: Path) -> None:
    """Open it with `recording="own"`. At the end `trend` is long BTC and the debate short of it."""
    store = SqliteSeries(folder / "market" / "own", Origin(False, "recorded"))
    times = [Millis(at) for at in range(END - DAY_MS, END + 1, 5 * MINUTE_MS)]
    batches: list[Batch[Any]] = [Batch(rates(UPBIT, USDT_KRW), [Level(at, 1_400.0) for at in times])]
    for symbol in (BTC, ETH):
        marks = [MarkAndIndex(at, price(symbol, at), price(symbol, at)) for at in times]
        batches.append(Batch(basis(BINANCE, symbol), marks))
        for timeframe, step in ((Timeframe.H4, 4 * HOUR_MS), (Timeframe.D1, DAY_MS)):
            bars = []
            for at in range(END - (DAYS + 2) * DAY_MS, END, step):
                close = price(symbol, at + step)
                bars.append(Candle(Millis(at), close, close, close, close, 1.0, 0.5))
            batches.append(Batch(candles(BINANCE, symbol, timeframe), bars))
    await store.write(batches)
    await store.close()
    zuno = Application(Settings(home=folder))
    await write_sleeve_story(AccountStory(JournalTradeLog(zuno._open_journal), paper_account("recorded")))
    await zuno.close()


async def write_sleeve_story(story: AccountStory) -> None:
    """Of $2,000: 1,200 for `trend`, which gives 100 back half way."""
    begin = END - DAYS * DAY_MS
    await story.set_sleeves(begin, trend="0.6", debate="0.4")
    for number in range(5):
        at = begin + (20 * number + 3) * DAY_MS
        trend = await open_at(story, at, Side.LONG, "0.015", at + 14 * DAY_MS, "trend")
        debated = await open_at(story, at + 2 * DAY_MS, Side.SHORT, "0.01", at + 5 * DAY_MS)
        await story.exit_trade(at + 5 * DAY_MS, debated, "target")
        await story.exit_trade(at + 14 * DAY_MS, trend, "target")
        if number == 2:
            await story.transfer(at + 15 * DAY_MS, "trend", "debate", "100")
    await open_at(story, END - 6 * DAY_MS, Side.LONG, "0.015", END, "trend")
    await open_at(story, END - 4 * DAY_MS, Side.SHORT, "0.005", END)
    await story.come_to(END)


async def open_at(story: AccountStory, at: int, side: Side, quantity: str, until: int, sleeve: str = "debate") -> str:
    """At the market of a moment; its target is the market of another."""
    entry = price(BTC, at)
    stop = entry * (1 - 0.5 * side.sign)
    levels = (str(int(entry)), str(int(stop)), str(int(price(BTC, until))))
    return await story.open_trade(at, BTC, side, quantity, *levels, sleeve=sleeve, leverage=1)
