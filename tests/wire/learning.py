"""Closed trades to learn from: a market of minutes by hand, an account that closed in it, a journal in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.wire.fakes.series import MemorySeries
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.clock.system import SystemClock
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.model.daily_spend import DailySpendInMemory
from zuno.adapters.model.registry import ModelTable
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Journal
from zuno.kernel.units import Millis
from zuno.llm.ask import Breakers, ModelContext
from zuno.llm.budget import Limits, RunBudget
from zuno.llm.port import Model, RoleModels
from zuno.llm.prompts import Prompts
from zuno.markets.feeds import BINANCE
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.learn.evaluator import Evaluator, LearningBackends
from zuno.trading.model.cycle import JudgeKind, RegimeFamily
from zuno.trading.model.market import MINUTE_MS, Candle, Mode, Side, Timeframe, candles
from zuno.trading.model.trade_events import ExitReason, TradeClosed, TradeSummary
from zuno.trading.ports.recall import MemoryIndex
from zuno.trading.ports.series import Batch, Origin, SeriesStore
from zuno.trading.run.record import RunJournal

BEGIN = Millis(1_767_225_600_000)
ORIGIN = "SYNTHETIC by hand"
ACCOUNT = f"paper:{ORIGIN}"
WALL = Millis(BEGIN + 10**9)


def minute(number: int) -> Millis:
    return Millis(BEGIN + number * MINUTE_MS)


def summary(**changed: Any) -> TradeSummary:
    """A long of one coin from 100, stop 98, target 104, that was stopped after ten minutes."""
    given = {
        "trade": "trd_1",
        "intent": "int_1",
        "decision": None,
        "exchange": Venue("BINANCE"),
        "symbol": Symbol("BTCUSDT"),
        "side": Side.LONG,
        "mode": Mode.SWING,
        "opened": minute(0),
        "closed": minute(10),
        "quantity": Decimal(1),
        "entry": Decimal(100),
        "exit": Decimal(98),
        "stop": Decimal(98),
        "target": Decimal(104),
        "fees": Decimal("0.1"),
        "funding": Decimal(0),
        "reason": ExitReason.STOP,
        "exploration": False,
        "judge": JudgeKind.RULES,
        "family": RegimeFamily.RANGE,
        "edge": 0.1,
    } | changed
    way = 1 if given["side"] is Side.LONG else -1
    given.setdefault("gross_pnl", way * given["quantity"] * (given["exit"] - given["entry"]))
    given.setdefault("net_pnl", given["gross_pnl"] - given["fees"] + given["funding"])
    return TradeSummary(**given)


def build_close_event(trade: TradeSummary) -> TradeClosed:
    return TradeClosed(at=trade.closed, summary=trade)


def candle(at: Millis, low: float, high: float, close: float | None = None) -> Candle:
    middle = (low + high) / 2
    return Candle(at, middle, high, low, middle if close is None else close, 1.0, 0.5)


async def market(rows: Iterable[Candle], timeframe: Timeframe = Timeframe.M1) -> MemorySeries:
    store = MemorySeries(Origin(True, ORIGIN))
    await store.write([Batch(candles(BINANCE, Symbol("BTCUSDT"), timeframe), list(rows))])
    return store


def journal(home: Path) -> ChainedJournal:
    key = KeyFile(home / "keys" / "node.key")
    key.ensure()
    return ChainedJournal(MemoryStore(), key, code=lambda: "test", now=lambda: WALL)


def ask_with(notebook: RunJournal, models: Sequence[Model] = ()) -> ModelContext:
    clock = SystemClock()
    return ModelContext(
        registry=ModelTable(RoleModels(tuple(models), "" if models else "nobody sits here")),
        prompts=Prompts("zuno.trading.agents"),
        budget=RunBudget(Limits(), DailySpendInMemory(), clock),
        breakers=Breakers(threshold=None),
        record=notebook.record,
        clock=clock,
        stopwatch=perf_counter,
        recall=notebook.recall,
    )


@dataclass
class Learning:
    """A home's memory in the making."""

    store: SeriesStore
    journal: Journal
    log: MemoryTradeLog = field(default_factory=MemoryTradeLog)
    models: Sequence[Model] = ()
    indexes: Sequence[MemoryIndex] = ()

    async def opened(self) -> Journal:
        return self.journal

    async def close(self, *trades: TradeSummary, account: str = ACCOUNT) -> None:
        for trade in trades:
            await self.log.append(account, [build_close_event(trade)], len(self.log.list_events(account)))

    def evaluator(self) -> Evaluator:
        """A new consumer."""
        return Evaluator(
            LearningBackends(
                journal=self.opened,
                log=self.log,
                store=self.store,
                model_context=lambda notebook: ask_with(notebook, self.models),
                indexes=self.indexes,
            )
        )
