"""What this door may ask of Zuno: a part of every service. Whatever spends or changes anything is out of reach."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from zuno.journal.audit import JournalVerdictView
from zuno.journal.decision_view import ReplayView
from zuno.lab.trading.question import TradeQuestion
from zuno.lab.trading.views import TradeLabView
from zuno.lab.workers import Progress
from zuno.lp.service.archive import PlanListView, WhyView
from zuno.lp.service.execution_view import SimulationView
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.pool_ranking import PoolRankingView
from zuno.lp.service.portfolio import PortfolioView
from zuno.lp.service.recommend import Listen
from zuno.lp.service.result_views import PnlView, WhatIfView
from zuno.lp.service.views import InspectView, PositionsView
from zuno.lp.watch.alerts import AlertsView
from zuno.markets.market import Symbol
from zuno.trading.model.cycle import NodeEvent, Outcome
from zuno.trading.service.account_view import TradeStatusView, TradesView
from zuno.trading.service.markets import MarketsView
from zuno.trading.service.memory_view import LessonsView, SearchView
from zuno.trading.service.profit_view import ProfitView
from zuno.trading.service.runs_view import CycleWhyView, RunRecord, RunsView
from zuno.trading.service.strategies import StrategyTargetsView


class LpReader(Protocol):
    async def list_positions(
        self, ids: Sequence[str] = (), wallet: str | None = None, only: str | None = None
    ) -> PositionsView: ...
    async def inspect(self, text: str) -> InspectView: ...
    async def pnl(self, text: str, since: str | None) -> PnlView: ...
    async def whatif(self, text: str, price: str | None = None) -> WhatIfView: ...


class PoolRanker(Protocol):
    async def rank(self, wanted: str | None, amount: str, tell: Callable[[int, int], None]) -> PoolRankingView: ...


class PortfolioReader(Protocol):
    async def portfolio(
        self, wallets: Sequence[str] = (), window: str = "7d", chain: str | None = None
    ) -> PortfolioView: ...


class AlertReader(Protocol):
    async def list(self, *, everything: bool = False) -> AlertsView: ...


class PlanReader(Protocol):
    async def plans(self, count: int = ..., before: str | None = None) -> PlanListView: ...
    async def plan(self, plan_id: str) -> PlanView: ...
    async def why(self, reference: str) -> WhyView: ...
    async def replay(self, reference: str) -> ReplayView: ...


class Adviser(Protocol):
    async def rebalance(
        self,
        position: str,
        *,
        chain: str | None = None,
        profile: str | None = None,
        listen: Listen = ...,
        request_id: str | None = None,
    ) -> PlanView: ...


class PlanPreparer(Protocol):
    """Nothing here signs, sends, approves or cancels."""

    async def simulate(self, plan_id: str, *, looks: bool = False) -> SimulationView: ...


class StrategyReader(Protocol):
    async def targets(self, as_of: str | None = None) -> StrategyTargetsView: ...


class Backtester(Protocol):
    async def compare(
        self, question: TradeQuestion, workers: int, tell: Progress, stop: asyncio.Event
    ) -> TradeLabView: ...


class BacktestLab(Protocol):
    @property
    def trade(self) -> Backtester: ...


class AccountReader(Protocol):
    async def status(self) -> TradeStatusView: ...
    async def trades(self, lines: int = 50) -> TradesView: ...
    async def profit(self, by: str | None = None) -> ProfitView: ...


class Analyst(Protocol):
    """Cycles without execution: no account can be named here."""

    async def run(
        self,
        symbol: str,
        mode: str = "swing",
        as_of: str | None = None,
        listen: Callable[[NodeEvent], None] = ...,
        *,
        run_id: str | None = None,
    ) -> Outcome: ...
    async def record(self, run_id: str) -> RunRecord: ...
    async def why(self, run_id: str) -> CycleWhyView: ...
    async def runs(self, count: int | None = None, before: str | None = None) -> RunsView: ...
    async def replay(self, run_id: str) -> ReplayView: ...


class MarketReader(Protocol):
    async def list(self, venue: str | None = None, kind: str | None = None, search: str = "") -> MarketsView: ...


class MemoryReader(Protocol):
    async def search(self, query: str, lines: int = 5) -> SearchView: ...
    async def lessons(self) -> LessonsView: ...


class JournalReader(Protocol):
    async def verify(self) -> JournalVerdictView: ...


class AssistantServices(Protocol):
    @property
    def markets(self) -> tuple[Symbol, ...]: ...
    def market_desk(self) -> MarketReader: ...
    def lp(self, chain: str | None) -> LpReader: ...
    def pool_ranking(self, chain: str | None) -> PoolRanker: ...
    def portfolio(self) -> PortfolioReader: ...
    def alerts(self) -> AlertReader: ...
    def archive(self) -> PlanReader: ...
    def execution(self) -> PlanPreparer: ...
    def advice(self) -> Adviser: ...
    def account(self) -> AccountReader: ...
    def cycles(self) -> Analyst: ...
    def strategies(self) -> StrategyReader: ...
    def lab(self) -> BacktestLab: ...
    def memory(self) -> MemoryReader: ...
    def audit(self) -> JournalReader: ...
    def refresh(self) -> None: ...
