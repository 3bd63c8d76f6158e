"""Three real years of hours in a store of public history; skipped where they are not beside the checkout."""

from __future__ import annotations

import asyncio
import csv
import gzip
from datetime import UTC, datetime
from functools import cache

import pytest

from tests.paths import SHARED_DATA
from tests.wire.accounts import build_account
from tests.wire.fakes.series import MemorySeries
from tests.wire.resampling import resample_bars
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE
from zuno.markets.market import Symbol
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.model.account import Account, account_slots
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.market import SECOND_MS, Candle, Mode, Timeframe, candles
from zuno.trading.model.memory import DeskRecord, make_slot
from zuno.trading.ports.series import PUBLIC_HISTORY, Batch

FOLDER = SHARED_DATA / "btc-eth-history"
CASH = build_account(usd=2_000.0, krw=2_000_000.0)


def instant(text: str) -> Millis:
    return Millis(round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND_MS)


def _read_hour(row: dict[str, str]) -> Candle:
    opened, high, low, close, volume = (float(row[name]) for name in ("open", "high", "low", "close", "volume"))
    return Candle(instant(row["date"]), opened, high, low, close, volume, None)


@cache
def real_store(symbol: Symbol = Symbol("BTCUSDT")) -> MemorySeries:
    path = FOLDER / f"{symbol.base.lower()}-1h.csv.gz"
    if not path.exists():
        pytest.skip("no real hours: ../shared/data/btc-eth-history is not beside the checkout")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        hours = [_read_hour(row) for row in csv.DictReader(file)]
    store = MemorySeries(PUBLIC_HISTORY)
    coarse = [
        Batch(candles(BINANCE, symbol, timeframe), resample_bars(timeframe, Timeframe.H1, hours))
        for timeframe in (Timeframe.H4, Timeframe.D1, Timeframe.W1)
    ]
    asyncio.run(store.write([Batch(candles(BINANCE, symbol, Timeframe.H1), hours), *coarse]))
    return store


def real_bundle(at: str, mode: Mode = Mode.SWING, account: Account = CASH) -> Bundle:
    moment = instant(at)
    slots = (*account_slots(account, moment), make_slot(DeskRecord(), moment))
    return asyncio.run(build_bundle(real_store(), Symbol("BTCUSDT"), mode, moment, slots))
