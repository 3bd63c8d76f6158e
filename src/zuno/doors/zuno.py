"""All services of Zuno: every front end holds one `Zuno` and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from zuno.doors.agents import Agents
from zuno.doors.config import ConfigCheckView, ConfigView
from zuno.doors.costs import ModelCosts
from zuno.doors.doctor import Doctor
from zuno.doors.home import HomeDesk
from zuno.doors.logs import Logs
from zuno.doors.reading.model_help import Interpreter
from zuno.doors.serve import Supervisor
from zuno.doors.status import StatusView
from zuno.doors.telegram_door import TelegramDoor
from zuno.doors.web_door import WebDoor
from zuno.doors.web_logins import Logins
from zuno.journal.audit import JournalAudit
from zuno.journal.compaction import CompactionView
from zuno.journal.decision_view import JournalUpgradeView, ReplayView
from zuno.kernel.taxable import FiatRates
from zuno.kernel.units import Seconds
from zuno.lab.lp.service import LpLab
from zuno.lab.service import StudyDesk
from zuno.lp.service.archive import Archive
from zuno.lp.service.execution import Execution
from zuno.lp.service.local_chains import Devnet, LocalChain, SimPlayground
from zuno.lp.service.mandates import MandateDesk
from zuno.lp.service.mesh import MeshService
from zuno.lp.service.mesh_peer import PeerService
from zuno.lp.service.mesh_supervisor import MeshHost
from zuno.lp.service.pool_ranking import PoolRanking
from zuno.lp.service.portfolio import PortfolioDesk
from zuno.lp.service.positions import LpDesk
from zuno.lp.service.range_preview import RangePreviews
from zuno.lp.service.recommend import RecommendService
from zuno.lp.service.wallets import WalletOnChain, WalletService
from zuno.lp.watch.alerts import AlertDesk
from zuno.lp.watch.monitor import Monitor
from zuno.markets.market import Symbol
from zuno.trading.service.account import AccountDesk
from zuno.trading.service.collector import Collector
from zuno.trading.service.data import DataDesk
from zuno.trading.service.download import Downloads
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.imports import Imports
from zuno.trading.service.learning import LearningDesk
from zuno.trading.service.markets import MarketDesk
from zuno.trading.service.memory import MemoryDesk
from zuno.trading.service.own_strategies import OwnStrategies
from zuno.trading.service.runs import Cycles
from zuno.trading.service.strategies import StrategyDesk
from zuno.trading.service.trade_desk import TradeDesk

if TYPE_CHECKING:
    from zuno.doors.metrics import DeskMetrics


@dataclass(frozen=True, slots=True)
class ShellStart:
    home: Path
    chain: str
    """The default chain."""
    wallet: str | None
    """Who acts there; None: nobody yet, or it is not settled who."""


class AssistantDoor(Protocol):
    """The Model Context Protocol server of `zuno mcp`."""

    async def serve(self) -> None:
        """Answer on stdin and stdout until stdin ends."""


class Zuno(Protocol):
    """Promises a desk for any chain it knows. Chains are opened when first asked for and closed together."""

    def lp(self, chain: str | None) -> LpDesk:
        """The LP desk of a chain by name, or of the default chain. `UsageError` for an unknown name."""

    def pool_ranking(self, chain: str | None) -> PoolRanking: ...

    @property
    def range_previews(self) -> RangePreviews:
        """What a range of the owner's own would earn and cost, before anybody argues."""

    def audit(self) -> JournalAudit: ...

    async def upgrade_journal(self) -> JournalUpgradeView:
        """Store the view of every finished run and plan that has none."""

    async def compact_home(self, older: Seconds | None) -> CompactionView:
        """Put bundles into blocks; those last used longer ago than `older` go to the archive."""

    def advice(self, *, offline: bool = False, transport: str | None = None) -> RecommendService:
        """`offline`: no model is asked. `transport`: inproc, iroh or axl; None: the mesh if it answers, else inproc."""

    def mesh(self) -> MeshService: ...
    def mesh_host(self) -> MeshHost: ...

    async def peer(self, role: str, transport: str | None, *, parent: int | None = None) -> PeerService:
        """One agent in this process; `parent`: it ends when that process, which started it, is gone."""

    def archive(self) -> Archive: ...

    async def replay_chat(self, request_id: str) -> ReplayView | None:
        """The answer of a model in a chat, given again from the record; None where the request is none."""

    def execution(self) -> Execution: ...

    def alerts(self) -> AlertDesk: ...

    def monitor(self, *, announce: bool = False) -> Monitor:
        """The monitor of all configured wallets; `announce`: alerts that no service delivers go to stderr."""

    def mandates(self) -> MandateDesk:
        """What the monitor may do with positions by itself."""

    def portfolio(self) -> PortfolioDesk: ...
    def wallets(self) -> WalletService: ...

    def unlock_wallet(self) -> str | None:
        """Unlock the owner's wallet, by its passphrase file or at the terminal, and return its address; None where it
        stays locked. Nobody is asked for its passphrase afterwards."""

    def wallet(self, chain: str | None) -> WalletOnChain:
        """The wallet that acts on a chain, or on the default chain. `Refused` where none does."""

    def place(self) -> ShellStart:
        """Where this is: the home, the default chain, and the wallet that acts there."""

    def write_file(self, path: Path, content: bytes) -> None:
        """A file that the owner asked for, whole or not at all; missing folders are made. `OSError` where it cannot."""

    def read_file(self, path: Path, most: int) -> bytes:
        """A file that the owner named. `NotFound` where there is none, `Refused` for one of more bytes."""

    def interpreter(self) -> Interpreter: ...
    def agents(self) -> Agents: ...
    def costs(self) -> ModelCosts: ...

    def doctor(self) -> Doctor: ...

    @property
    def markets(self) -> tuple[Symbol, ...]:
        """Those that the trading desk trades."""

    def market_desk(self) -> MarketDesk: ...

    def find_account(self, name: str | None) -> str | None:
        """The whole name of an account of the settings, `live:NAME` or `demo:NAME`; any other name as it is."""

    def list_chains(self) -> tuple[str, ...]:
        """The chains that are configured, the default one first."""

    def reporting(self) -> tuple[str, str]:
        """The time zone and the currency of exports, as they are set."""

    async def read_rates(self, currencies: Sequence[str], first: date, last: date, file: Path | None) -> FiatRates:
        """Daily rates from a file, else from FRED. `Unavailable` where FRED has no key or does not answer."""

    def home_desk(self) -> HomeDesk: ...
    def logs(self) -> Logs: ...

    def metrics(self) -> DeskMetrics:
        """The figures of this home for Prometheus, one reader per process. `Unavailable` without its library."""

    async def serve_metrics(self) -> None:
        """Serve them where ZUNO_METRICS_PORT is set, until this is cancelled."""

    async def serve_signals(self) -> None:
        """Take signals of the owner's own strategies where ZUNO_WEBHOOK_PORT is set, until this is cancelled."""

    def own_strategies(self) -> OwnStrategies: ...
    def data(self) -> DataDesk: ...

    def collector(self, symbols: Sequence[str]) -> Collector:
        """The recorder of live market data; no symbol means all. `UsageError` for a symbol that is not traded here."""

    def downloads(self) -> Downloads: ...
    def imports(self) -> Imports: ...

    def trading(self) -> TradingDesk: ...

    def account(self, name: str | None = None) -> AccountDesk:
        """The trading account of the market this home reads, or another of its paper accounts."""

    def learning(self, name: str | None = None) -> LearningDesk: ...

    def strategies(self, account: str | None = None) -> StrategyDesk:
        """The core strategies, and what the sleeves of an account would hold."""

    def cycles(self) -> Cycles: ...
    def trade_desk(self) -> TradeDesk: ...
    def memory(self) -> MemoryDesk: ...

    def lab(self, cluster: str | None = None) -> StudyDesk: ...
    def lp_lab(self, cluster: str | None = None) -> LpLab: ...

    def config(self, *, private: bool = False) -> ConfigView:
        """The settings in use, without secrets; `private`: with addresses and lists of people."""

    def check_config(self, file: Path | None) -> ConfigCheckView:
        """Everything that is wrong with the settings file of this home, or with another."""

    def write_config(self) -> ConfigCheckView:
        """Write a settings file with comments, defaults and what the environment sets; `Refused` where there is one."""

    def telegram(self) -> TelegramDoor:
        """The bot in a chat. `UsageError` without a token, `Unavailable` without its library."""

    def web(self, host: str, port: int, public_url: str | None = None) -> WebDoor:
        """The page; `public_url`: of the proxy in front of it. `Unavailable` without its libraries."""

    def supervisor(self, without: Sequence[str], options: Mapping[str, str]) -> Supervisor:
        """All that runs by itself, as one service. `options`: further words of a part's command."""

    async def status(self) -> StatusView: ...

    def find_troubles(self) -> tuple[str, ...]:
        """Why the service is not ready, by what `zuno serve` wrote last. Empty: it is, or no `zuno serve` runs."""

    def web_logins(self) -> Logins: ...

    def assistant(self) -> AssistantDoor:
        """The server for one's own assistant. `Unavailable` without its library."""

    def sim(self) -> SimPlayground: ...
    def devnet(self) -> Devnet: ...
    def devnet_world(self) -> LocalChain: ...

    def refresh(self) -> None:
        """See what other processes did since: for a process that lives long and is asked again and again."""

    async def close(self) -> None: ...
