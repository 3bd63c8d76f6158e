"""How fast the paper venue goes through bars: `python -m benchmarks.paper_venue`.

Prints one JSON line per figure and ends with 1 when a bar is missed. The venue is the one the desk trades at, with its
log and its double-entry ledger in memory; every 25 bars it is sent a market order. Beside it backtrader goes through
the same bars with the same orders, its observers off. Then the second half of such trading is held against the first.
Both work on one core: seconds are the processor's.
"""

from __future__ import annotations

import asyncio
import sys
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np

from benchmarks.figure import report
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.venues.paper.tape import Bar, Tick
from zuno.adapters.venues.paper.venue import PaperVenue, venue_account
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import MINUTE_MS
from zuno.trading.model.orders import OrderRequest, OrderSide, OrderStatus, OrderType
from zuno.trading.model.trade_events import AccountOpened
from zuno.trading.rules.inputs import Fees

BARS = 50_000
EVERY = 25
TURNS = 3
START = 1_700_000_040_000
LEAST_TIMES = 10.0
HALVES_BAR = 1.15
QUANTITY = Decimal("0.01")


def draw_bars(count: int) -> list[Bar]:
    dice = np.random.default_rng(7)
    close = np.round(20_000 * np.exp(np.cumsum(dice.normal(0, 4e-4, count))), 1)
    opened = np.concatenate(([20_000.0], close[:-1]))
    high, low = np.maximum(opened, close) + 3.0, np.minimum(opened, close) - 3.0
    return [
        Bar(Millis(START + place * MINUTE_MS), Millis(START + (place + 1) * MINUTE_MS), *prices)
        for place, prices in enumerate(zip(opened.tolist(), high.tolist(), low.tolist(), close.tolist(), strict=True))
    ]


class BarTape:
    opening_ms = 0

    def __init__(self, bars: Sequence[Bar]) -> None:
        self._bars, self._times = bars, [bar.at for bar in bars]

    async def ticks(self, symbol: Symbol, after: Millis, until: Millis) -> Sequence[Tick]:
        if symbol is not Symbol("BTCUSDT"):
            return ()
        return self._bars[bisect_right(self._times, after) : bisect_right(self._times, until)]

    async def before(self, symbol: Symbol, moment: Millis) -> Sequence[Tick]:
        return self._bars[: bisect_right(self._times, moment)][-1:]


async def trade_on_paper(bars: Sequence[Bar]) -> tuple[float, list[float]]:
    """Seconds, and the seconds of each half."""
    now = Millis(START)

    async def read_clock() -> Millis:
        return now

    log = MemoryTradeLog()
    opened = AccountOpened(at=Millis(0), cash={Venue("BINANCE"): Decimal(1_000_000)})
    await log.append(venue_account("bench", Venue("BINANCE")), [opened], 0)
    venue = PaperVenue(
        Venue("BINANCE"), "bench", log, BarTape(bars), read_clock, Fees().at(Venue("BINANCE")), latency_ms=0
    )
    halves: list[float] = []
    began = process_time()
    for place in range(EVERY - 1, len(bars), EVERY):
        now = bars[place].at
        number = place // EVERY
        order = await venue.place(
            OrderRequest(
                client_id=f"b{number}",
                exchange=Venue("BINANCE"),
                symbol=Symbol("BTCUSDT"),
                side=OrderSide.SELL if number % 2 else OrderSide.BUY,
                type=OrderType.MARKET,
                quantity=QUANTITY,
                reduce_only=bool(number % 2),
            )
        )
        assert order.status is OrderStatus.FILLED, order.reason
        if place >= len(bars) // 2 and not halves:
            halves.append(process_time() - began)
    taken = process_time() - began
    return taken, [halves[0], taken - halves[0]]


def trade_at_backtrader(bars: Sequence[Bar]) -> float:
    import backtrader as bt
    import pandas as pd

    class EveryFew(bt.Strategy):  # type: ignore[misc]  # without types
        def next(self) -> None:
            if len(self) % EVERY == 0:
                if self.position:
                    self.close()
                else:
                    self.buy(size=float(QUANTITY))

    index = [datetime.fromtimestamp(bar.start / 1_000, UTC).replace(tzinfo=None) for bar in bars]
    columns: dict[str, Any] = {name: [getattr(bar, name) for bar in bars] for name in ("open", "high", "low", "close")}
    frame = pd.DataFrame(columns | {"volume": [1.0] * len(bars)}, index=pd.DatetimeIndex(index))
    cerebro = bt.Cerebro(stdstats=False)
    cerebro.broker.setcash(1_000_000.0)
    cerebro.broker.setcommission(commission=0.0005)
    cerebro.adddata(bt.feeds.PandasData(dataname=frame))
    cerebro.addstrategy(EveryFew)
    began = process_time()
    cerebro.run()
    return process_time() - began


async def main() -> int:
    if find_spec("backtrader") is None:
        sys.stderr.write("backtrader is not installed: make .venv/.peers\n")
        return 1
    bars = draw_bars(BARS)
    ours, theirs = [], []
    for _ in range(TURNS):  # both take turns, so that a busy machine hits both
        theirs.append(trade_at_backtrader(bars))
        ours.append((await trade_on_paper(bars))[0])
    speed = {
        name: round(BARS / min(taken)) for name, taken in (("barsASecond", ours), ("backtraderBarsASecond", theirs))
    }
    kept = report(
        "paper venue",
        min(ours) / BARS * 1e6,
        "µs a bar",
        min(theirs) / BARS * 1e6,
        "backtrader on the same bars, an order each 25 bars",
        1 / LEAST_TIMES,
        **speed,
    )
    halves = [(await trade_on_paper(draw_bars(4 * BARS)))[1] for _ in range(TURNS)]
    first, second = (min(half[place] for half in halves) for place in (0, 1))
    same = report(
        "paper venue, second half",
        second * 1e3,
        "ms",
        first * 1e3,
        "the first half of the same 200,000 bars and 8,000 orders",
        HALVES_BAR,
    )
    return 0 if kept and same else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
