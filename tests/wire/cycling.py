"""A trading desk to run cycles at: a small invented market in memory, a home of its own, minds by script or by rule."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pickle
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.wire.fakes.series import MemorySeries
from tests.wire.trading_account import MemoryTradeRecord
from zuno.adapters.account.trade_log import JournalTradeLog
from zuno.adapters.checkpoints import sqlite_checkpoints
from zuno.adapters.clock.system import SystemClock
from zuno.adapters.file_lock import symbol_lock
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.model.daily_spend import DailySpendInMemory
from zuno.adapters.model.recorded import RecordedModels
from zuno.adapters.model.registry import ModelTable
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.store.sqlite import open_sqlite
from zuno.adapters.venues.synthetic.path import END
from zuno.adapters.venues.synthetic.world import build_batches, describe_origin
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Journal
from zuno.kernel.units import Millis
from zuno.llm.ask import Breakers, ModelContext
from zuno.llm.budget import Limits, RunBudget
from zuno.llm.port import Attempt, Model, ModelRegistry, ModelRequest, RoleModels
from zuno.llm.prompts import Prompts
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.data.bundle_builder import reach_of
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.learn.evaluator import Evaluator, LearningBackends
from zuno.trading.model.account import Account, account_slots
from zuno.trading.model.bundle import Slot
from zuno.trading.model.chart import EquityChart, Picture, ReliabilityChart
from zuno.trading.model.cycle import Outcome
from zuno.trading.model.known import Missing
from zuno.trading.model.market import HOUR_MS
from zuno.trading.model.memory import ClosedTrade
from zuno.trading.model.trade_events import paper_account
from zuno.trading.model.wanted import wanted_series
from zuno.trading.ports.chart import Painter
from zuno.trading.ports.recall import MemoryIndex
from zuno.trading.ports.series import Batch
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.price_menu import PriceMenu
from zuno.trading.run.record import RunJournal
from zuno.trading.service.account_page import read_before
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.run_replay import ReplayContext
from zuno.trading.service.runs import Cycles, Recall, RunBackends
from zuno.wiring.orders import build_paper_venues

SEED = 3
HOURS_BACK = 30 * 24
"""How far before the end the market can be looked at; before that rows are missing."""
THIN_MS = 26 * HOUR_MS
THIN_ROWS = 260
WALL = Millis(END + 40 * HOUR_MS)
SHARED = "ZUNO_TEST_MARKETS"
"""Names the folder of markets that processes of one run of the tests share."""
PNG = b"\x89PNG\r\n\x1a\n the picture"


def rows(seed: int = SEED, *, thin: bool = False) -> tuple[Batch[Any], ...]:
    """Of BTCUSDT and whatever a bundle of it holds, as far back as is looked; the same for every test of a process.
    `thin`: as little as a desk can rule on, for tests that run many cycles."""
    return _share_thin(seed) if thin else _keep_whole(seed)


@cache
def _share_thin(seed: int) -> tuple[Batch[Any], ...]:
    """Invented once in a run of the tests, by whichever process comes first."""
    folder = os.environ.get(SHARED)
    if folder is None:
        return tuple(map(thin_out, _invent(seed)))
    with open(Path(folder) / f"{seed}.pickle", "ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if file.tell() == 0:
            pickle.dump(tuple(map(thin_out, _invent(seed))), file)
        file.seek(0)
        found: tuple[Batch[Any], ...] = pickle.load(file)
    return found


@cache
def _keep_whole(seed: int) -> tuple[Batch[Any], ...]:
    return tuple(map(_cut, _invent(seed)))


def _invent(seed: int) -> list[Batch[Any]]:
    known = {str(series) for symbol in DEFAULT_SYMBOLS for series in wanted_series(symbol)}
    return [batch for batch in build_batches(seed) if str(batch.series) in known]


def _cut(batch: Batch[Any]) -> Batch[Any]:
    since = END - (reach_of(batch.series).span + HOURS_BACK * HOUR_MS)
    return Batch(batch.series, [row for row in batch.rows if row.at >= since], batch.known)


def thin_out(batch: Batch[Any]) -> Batch[Any]:
    some = [row for row in batch.rows if row.at >= END - THIN_MS]
    return Batch(batch.series, some if len(some) >= THIN_ROWS else batch.rows[-THIN_ROWS:], batch.known)


async def market(seed: int = SEED, *, thin: bool = False) -> MemorySeries:
    store = MemorySeries(describe_origin(seed))
    await store.write(list(rows(seed, thin=thin)))
    return store


class Brush:
    """A painter of one picture."""

    media_type = "image/png"

    def __init__(self, fails: Exception | None = None) -> None:
        self._fails = fails
        self.painted = 0

    async def paint(self, picture: Picture) -> bytes:
        self.painted += 1
        if self._fails is not None:
            raise self._fails
        return PNG

    async def paint_equity(self, chart: EquityChart) -> bytes:
        return PNG

    async def paint_reliability(self, chart: ReliabilityChart) -> bytes:
        return PNG


@dataclass
class Desk:
    """Everything a run needs, in one home."""

    home: Path
    store: MemorySeries
    models: Mapping[str, Sequence[Model]] | None = None
    """By role; None: nobody sits."""
    painter: Painter = field(default_factory=Brush)
    journal: Journal | None = None
    live: bool = False
    now: Callable[[], Millis] = lambda: WALL
    refresh: Callable[[Symbol], Awaitable[tuple[Millis, Mapping[str, str]]]] | None = None
    checkpoints: Callable[[], AbstractAsyncContextManager[Any]] | None = None
    number: int = 0
    closed: Mapping[str, Sequence[ClosedTrade]] = field(default_factory=dict)
    """Trades that were closed before, by market."""
    recall: Recall | None = None
    learn: Callable[[OrderGate], Awaitable[object]] | None = None

    @property
    def key(self) -> KeyFile:
        key = KeyFile(self.home / "keys" / "node.key")
        key.ensure()
        return key

    async def opened(self) -> Journal:
        if self.journal is None:
            self.journal = ChainedJournal(open_sqlite(self.home), self.key, code=lambda: "test", now=lambda: WALL)
        return self.journal

    async def close(self) -> None:
        if isinstance(self.journal, ChainedJournal):
            await self.journal.close()

    @property
    def cycles(self) -> Cycles:
        desk = TradingDesk(self.store, self.opened, self.painter, refresh=self.refresh if self.live else None)
        return Cycles(
            desk,
            RunBackends(
                journal=self.opened,
                held=self._held,
                record=MemoryTradeRecord(self.closed),
                model_context=lambda notebook: self._model_context(notebook, self._registry()),
                checkpoints=self.checkpoints or (lambda: sqlite_checkpoints(self.home / "cycles.db")),
                lease=lambda symbol: symbol_lock(self.home, symbol),
                rehearse=self._rehearse,
                now=self.now,
                random=self._random,
                code=lambda: "test",
                recall=self.recall,
                gate=self.open_gate,
                learn=self.learn,
            ),
        )

    async def open_gate(self, account: str, as_of: Millis) -> OrderGate:
        """A paper account over this market, at that moment."""
        return self.build_gate(account, lambda: as_of)

    def build_gate(self, account: str, now: Callable[[], Millis]) -> OrderGate:
        log = JournalTradeLog(self.opened)
        venues = build_paper_venues(self.store, log, account, now, Fees())
        return OrderGate(GateContext(log=log, account=account, venues=venues, now=now))

    def evaluator(self, indexes: Sequence[MemoryIndex] = ()) -> Evaluator:
        return Evaluator(
            LearningBackends(
                journal=self.opened,
                log=JournalTradeLog(self.opened),
                store=self.store,
                model_context=lambda notebook: self._model_context(notebook, self._registry()),
                indexes=indexes,
            )
        )

    async def _held(self, of: str, moment: Millis, present: bool, account: Account | None) -> list[Slot]:
        log = JournalTradeLog(self.opened)
        own = account or (await read_before(log, paper_account(of), moment)).to_account()
        return account_slots(own, moment)

    def _registry(self) -> ModelRegistry:
        nobody = RoleModels((), "nobody sits here")
        given = {role: RoleModels(tuple(models)) for role, models in (self.models or {}).items()}
        return ModelTable(nobody, given)

    def _model_context(self, notebook: RunJournal, registry: ModelRegistry) -> ModelContext:
        clock = SystemClock()
        return ModelContext(
            registry=registry,
            prompts=Prompts("zuno.trading.agents"),
            budget=RunBudget(Limits(), DailySpendInMemory(), clock),
            breakers=Breakers(threshold=None),
            record=notebook.record,
            clock=clock,
            stopwatch=perf_counter,
            recall=notebook.recall,
        )

    async def _rehearse(self, attempts: Sequence[Attempt], whys: Mapping[str, str]) -> ReplayContext:
        journal = ChainedJournal(MemoryStore(), self.key, code=lambda: "test", now=lambda: WALL)
        registry = RecordedModels(attempts, whys=whys)
        return ReplayContext(
            journal, lambda notebook: self._model_context(notebook, registry), registry.list_differences
        )

    def _random(self, count: int) -> bytes:
        self.number += 1
        return self.number.to_bytes(count, "big")


# -- what a model may say

ROLES = ("meta", "liquidity", "microstructure", "macro", "vlm_geometric", "synthesis", "judge", "risk_manager")
_LEVELS = (
    "immediate_support immediate_resistance major_support major_resistance liquidation_pool_above "
    "liquidation_pool_below volume_poc"
).split()
_ARGUED = "meta_agent_context technical derivatives experts narrative final_logic".split()
_WORDS = "once again anew afresh likewise besides moreover still furthermore also".split()


def opinion(role: str, menu: PriceMenu, turn: int = 0) -> str:
    """A usable answer for a role; at every turn another one. The Judge buys at the market, as long as there is one."""
    word = _WORDS[turn % len(_WORDS)] + " and" * (turn // len(_WORDS))
    sure = 0.6 + 0.01 * (turn % 30)
    text = f"It is said {word}."
    said: dict[str, Any] = {
        "meta": {
            "regime": "RANGE_BOUND",
            "rationale": text,
            "trust_directive": {"expert": "microstructure", "note": text},
            "risk_budget_pct": 60 - turn % 50,
            "risk_bias": "NEUTRAL",
        },
        "liquidity": {"anomaly": "none", "confidence": sure, "target_entry": None, "rationale": text},
        "microstructure": {
            "anomaly": "microstructure_imbalance",
            "confidence": sure,
            "directional_bias": "UP",
            "rationale": text,
        },
        "macro": {"anomaly": "none", "options_bias": "BULLISH", "confidence": sure, "rationale": text},
        "vlm_geometric": {
            "anomaly": "none",
            "directional_bias": "BULLISH",
            "confidence": sure,
            "key_levels": dict.fromkeys(_LEVELS),
            "fibonacci_context": text,
            "pattern": "none",
            "cvd_signal": None,
            "funding_visual": None,
            "rationale": text,
        },
        "synthesis": {
            "consensus_signals": [text],
            "conflicts": [],
            "highest_confidence_expert": "microstructure",
            "key_uncertainty": text,
            "regime_note": text,
        },
        "judge": _bought(menu, text, turn),
        "risk_manager": {
            "allocation_pct": 100 - turn % 90,
            "leverage": 3,
            "veto": False,
            "execution_style": "PASSIVE_MAKER",
            "rationale": text,
        },
    }
    return json.dumps(said[role])


def _bought(menu: PriceMenu, text: str, turn: int) -> dict[str, Any]:
    assert not isinstance(menu.now, Missing)
    assert not isinstance(menu.atr, Missing)
    price, step = menu.now, menu.atr
    return {
        "decision": "LONG",
        "allocation_pct": 40 - turn % 30,
        "leverage": 2,
        "entry_price": menu.snap(price),
        "stop_loss": menu.snap(price - 1.5 * step),
        "take_profit": menu.snap(price + 3 * step),
        "hold_duration": "5d",
        "reasoning": {"counter_scenario": text, **dict.fromkeys(_ARGUED, text)},
        "win_probability_pct": 80,
        "expected_profit_pct": 4.0,
        "expected_loss_pct": 2.0,
        "ev_rationale": text,
        "key_factors": [text],
    }


class Talkative:
    """A model that never says the same twice: what it says follows from how often a role was asked."""

    def __init__(self, menu: PriceMenu, asked: Callable[[ModelRequest], int], name: str = "talkative") -> None:
        self._menu = menu
        self._asked = asked
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def price(self, tokens_in: int, tokens_out: int) -> Decimal:
        return Decimal(0)

    async def ready(self) -> None:
        return None

    async def reply(self, request: ModelRequest) -> Any:
        from zuno.llm.port import Answered, Usage

        turn = self._asked(request)
        return Answered(opinion(request.role, self._menu, turn), Usage(100, 50, Decimal(0)))

    async def close(self) -> None:
        return None


def run_once(home: Path, as_of: str | None, store: MemorySeries | None = None) -> Outcome:
    """One run in a home of its own, by the rules; without a store in a market made for it."""

    async def story() -> Outcome:
        desk = Desk(home, store or await market(thin=True))
        try:
            return await desk.cycles.run(Symbol("BTCUSDT"), as_of=as_of)
        finally:
            await desk.close()

    return asyncio.run(story())
