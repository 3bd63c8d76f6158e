"""A cycle of a backtest decides what the journaled cycle decides, to the last byte of its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from tests.wire.cycling import Desk, market
from tests.wire.fakes.series import MemorySeries
from tests.wire.resampling import resample_bars
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.venues.synthetic.path import END
from zuno.journal.journal import ChainedJournal
from zuno.kernel.units import Millis
from zuno.lab.trading.cycles import BacktestCycles, BacktestHistory
from zuno.lab.trading.figures import MarketFigures
from zuno.markets.feeds import BINANCE
from zuno.markets.market import Symbol
from zuno.trading.model.account import Account, account_slots
from zuno.trading.model.bundle import BundleEncoder
from zuno.trading.model.cycle import JudgeKind, Outcome, RegimeFamily
from zuno.trading.model.market import HOUR_MS, Candle, Timeframe, candles
from zuno.trading.model.memory import ClosedTrade
from zuno.trading.ports.series import PUBLIC_HISTORY, Batch, SeriesStore
from zuno.trading.rules.trading_book import TradingBook

pytestmark = pytest.mark.slow

BTC = Symbol("BTCUSDT")
ACCOUNT: Account = TradingBook().to_account()
HOURS = 1_300
STEP = 4 * HOUR_MS
S = TypeVar("S", bound=SeriesStore)


def walk(count: int, start: int, seed: int = 1) -> list[Candle]:
    """Hours of a market that trends, with one of them missing and one that stands still."""
    dice = np.random.default_rng(seed)
    drift = 0.004 * np.sin(np.arange(count) / 40)
    close = np.round(30_000 * np.exp(np.cumsum(dice.normal(drift, 0.006))), 2).tolist()
    opened = [30_000.0, *close[:-1]]
    reach = np.abs(dice.normal(0, 0.003, (2, count)))
    rows = []
    for row in range(count):
        high = round(max(opened[row], close[row]) * (1 + reach[0, row]), 2)
        low = round(min(opened[row], close[row]) * (1 - reach[1, row]), 2)
        volume = round(float(dice.lognormal(3, 1)), 3)
        rows.append(Candle(Millis(start + row * HOUR_MS), opened[row], high, low, close[row], volume, None))
    still = opened[count // 2]
    rows[count // 2] = rows[count // 2]._replace(high=still, low=still, close=still, volume=0.0)
    del rows[count - 300]
    return rows


async def hours_alone(store: S) -> S:
    rows = walk(HOURS, END - HOURS * HOUR_MS)
    coarse = (Timeframe.H4, Timeframe.D1, Timeframe.W1)
    batches = [Batch(candles(BINANCE, BTC, size), resample_bars(size, Timeframe.H1, rows)) for size in coarse]
    await store.write([Batch(candles(BINANCE, BTC, Timeframe.H1), rows), *batches])
    return store


async def run_both(
    home: Path, store: MemorySeries, moments: Sequence[Millis], closed: tuple[ClosedTrade, ...] = ()
) -> tuple[list[Outcome], list[Outcome]]:
    key = KeyFile(home / "keys" / "node.key")
    key.ensure()
    journal = ChainedJournal(MemoryStore(), key, code=lambda: "test", now=lambda: Millis(END))
    desk = Desk(home, store, journal=journal, closed={store.origin.label: closed})
    single = desk.cycles
    figures = MarketFigures(store, BTC)
    await figures.load(moments)
    history = BacktestHistory()
    cycles = BacktestCycles(
        figures,
        lambda notes: desk._model_context(notes, desk._registry()),
        history,
        code="test",
        encoder=BundleEncoder(),
    )
    journaled, unwritten = [], []
    for at in moments:
        journaled.append(await single.run(BTC, as_of=str(at), chart=False))
        ended = [trade for trade in closed if trade.closed < at]
        unwritten.append(await cycles.run(at, account_slots(ACCOUNT, at), ended))
    return journaled, unwritten


def without_id(outcome: Outcome) -> Outcome:
    return outcome.model_copy(update={"run_id": ""})


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("every_feed", [True, False])
async def test_a_backtest_decides_what_the_journaled_cycle_decides(tmp_path: Path, every_feed: bool) -> None:
    store = await (market(thin=True) if every_feed else hours_alone(MemorySeries(PUBLIC_HISTORY)))
    backs = range(1, -1, -1) if every_feed else range(58, 54, -1)  # two explorations and what they leave no room for
    moments = [Millis(END - back * STEP) for back in backs]
    trade = ClosedTrade(
        opened=moments[0],
        closed=moments[1],
        judge=JudgeKind.RULES,
        family=RegimeFamily.MOMENTUM,
        edge=0.1,
        profit_pct=4.0,
        loss_pct=2.0,
        exit_pct=1.0,
    )
    journaled, unwritten = await run_both(tmp_path, store, moments, (trade,))
    assert [without_id(outcome) for outcome in unwritten] == [without_id(outcome) for outcome in journaled]
    if not every_feed:
        cards = [outcome.ruling.card for outcome in journaled]
        assert [card is not None and card.exploration for card in cards] == [False, True, True, False]
        assert journaled[-1].decision.decision.side is not None


async def test_a_backtest_goes_forward_in_time(tmp_path: Path) -> None:
    store = await hours_alone(MemorySeries(PUBLIC_HISTORY))
    with pytest.raises(ValueError, match="forward"):
        await run_both(tmp_path, store, [Millis(END), Millis(END - STEP)])
