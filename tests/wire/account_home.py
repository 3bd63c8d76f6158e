"""A home with a recorded market of two days and a paper account with a past."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.wire.trading_account import AccountStory, write_story
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
    Timeframe,
    basis,
    candles,
    rates,
)
from zuno.trading.model.trade_events import paper_account
from zuno.trading.ports.series import Batch, Origin
from zuno.wiring.application import Application

END = Millis(1_767_225_600_000)


async def write_account_home(folder: Path) -> None:
    """Open it with `recording="own"`."""
    store = SqliteSeries(folder / "market" / "own", Origin(False, "recorded"))
    times = [Millis(at) for at in range(END - DAY_MS, END + 1, 5 * MINUTE_MS)]
    prices = {Symbol("BTCUSDT"): 60_000.0, Symbol("ETHUSDT"): 3_000.0}
    batches: list[Batch[Any]] = [Batch(rates(UPBIT, USDT_KRW), [Level(at, 1_400.0) for at in times])]
    for symbol, price in prices.items():
        bars = [
            Candle(Millis(at), price, price, price, price, 1.0, 0.5) for at in range(END - 2 * DAY_MS, END, HOUR_MS)
        ]
        batches.append(Batch(basis(BINANCE, symbol), [MarkAndIndex(at, price, price) for at in times]))
        batches.append(Batch(candles(BINANCE, symbol, Timeframe.H1), bars))
    await store.write(batches)
    await store.close()
    zuno = Application(Settings(home=folder))
    log = JournalTradeLog(zuno._open_journal)
    await write_story(log, paper_account("recorded"), END)
    await AccountStory(log, paper_account("recorded", "second")).come_to(END)
    await zuno.close()
