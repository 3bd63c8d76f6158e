"""The application of one process: every use case with its adapters, opened on first use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from errno import EACCES, EPERM, EROFS
from pathlib import Path
from typing import TYPE_CHECKING

from zuno.adapters.log_file import start_log, stop_log
from zuno.adapters.store.lease import Fences
from zuno.kernel.errors import Refused, Unavailable, UsageError
from zuno.settings import Settings, agent_roles, read_settings
from zuno.wiring.chains import LOCAL_CHAINS, Chains, unusable_home
from zuno.wiring.editions import check_editions
from zuno.wiring.markets import Markets
from zuno.wiring.mesh import Meshes, tell
from zuno.wiring.models import Models
from zuno.wiring.outbox import PushSources, build_pushes
from zuno.wiring.recordings import Recordings
from zuno.wiring.signers import Signers
from zuno.wiring.version import code_version

if TYPE_CHECKING:
    import asyncio

    from zuno.adapters.account.closed_trades import LoggedTradeRecord
    from zuno.adapters.account.trade_log import JournalTradeLog
    from zuno.adapters.keys.ed25519 import KeyFile
    from zuno.adapters.store.outbox import SqliteOutbox
    from zuno.adapters.store.samples import SqliteSamples
    from zuno.amm.model import LpPosition
    from zuno.doors.agents import Agents
    from zuno.doors.chat.desk import ChatDesk
    from zuno.doors.config import ConfigView
    from zuno.doors.costs import ModelCosts
    from zuno.doors.doctor import Doctor
    from zuno.doors.logs import Logs
    from zuno.doors.reading.model_help import Interpreter
    from zuno.doors.reading.place import ShellStart
    from zuno.doors.telegram_door import TelegramDoor
    from zuno.doors.web_door import WebDoor
    from zuno.doors.zuno import AssistantDoor
    from zuno.journal.audit import JournalAudit
    from zuno.journal.journal import ChainedJournal
    from zuno.journal.port import Journal, JournalStore
    from zuno.kernel.units import Millis
    from zuno.kernel.view import ReplayView
    from zuno.lab.lp.service import LpLab
    from zuno.lab.service import StudyDesk
    from zuno.llm.ask import ModelContext
    from zuno.llm.port import ModelRegistry
    from zuno.lp.agents.scout import Observe
    from zuno.lp.execute.context import ExecutionContext, SpendingLimits, Timeouts
    from zuno.lp.model.chains import ChainInfo
    from zuno.lp.model.debate import Context, FlowCreateStart, FlowStart, PoolFacts
    from zuno.lp.ports.chain import Chain
    from zuno.lp.service.archive import Archive, RecordedRequest, ReplayDebateRunner
    from zuno.lp.service.execution import Execution
    from zuno.lp.service.local_chains import Devnet, LocalChain, SimPlayground
    from zuno.lp.service.mesh import MeshService
    from zuno.lp.service.mesh_debate import MeshDebateRunner, OwnerEndpoint
    from zuno.lp.service.mesh_peer import PeerService
    from zuno.lp.service.mesh_supervisor import MeshHost
    from zuno.lp.service.portfolio import PortfolioDesk
    from zuno.lp.service.positions import LpDesk
    from zuno.lp.service.recommend import DebateRunner, LocalDebateRunner, RecommendService
    from zuno.lp.service.wallets import BalancesView, WalletOnChain, WalletService
    from zuno.lp.watch.alerts import AlertDesk
    from zuno.lp.watch.monitor import Monitor
    from zuno.trading.execute.order_gate import OrderGate
    from zuno.trading.learn.evaluator import Evaluation, Evaluator
    from zuno.trading.model.account import Account
    from zuno.trading.model.bundle import Slot
    from zuno.trading.model.cycle import Exchange
    from zuno.trading.model.market import Symbol
    from zuno.trading.ports.recall import MemoryIndex
    from zuno.trading.ports.trade_log import TradeLog
    from zuno.trading.ports.venue import OrderVenue
    from zuno.trading.service.account import AccountDesk
    from zuno.trading.service.collector import Collector
    from zuno.trading.service.data import DataDesk
    from zuno.trading.service.download import Downloads
    from zuno.trading.service.features import Refresh, TradingDesk
    from zuno.trading.service.imports import Imports
    from zuno.trading.service.learning import LearningDesk
    from zuno.trading.service.live_start import LiveStart
    from zuno.trading.service.memory import MemoryDesk
    from zuno.trading.service.orders import TradingOrders
    from zuno.trading.service.paper_book import Inventory, PaperBookDesk
    from zuno.trading.service.runs import Cycles
    from zuno.trading.service.trade_desk import TradeDesk

OBSERVE_SECONDS = 300.0
LOCAL_LOOK = 0.2
"""Seconds between two looks for a receipt on a chain that mines at once."""


def open_zuno(home: str | None) -> Application:
    """Zuno for this process, at a home given by hand or by the environment."""
    if home is not None and not home.strip():
        raise UsageError("--home needs a folder.")
    settings = read_settings(os.environ, None if home is None else Path(home))
    return Application(settings, sealed=_make_home(settings.home))


def _make_home(home: Path) -> str | None:
    """Make the home, or say why nothing can be written there: the simulated world can still be read."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in {EACCES, EPERM, EROFS}:
            raise unusable_home(home, str(error.strerror)) from error
        return str(error.strerror)
    return None if os.access(home, os.W_OK | os.X_OK, effective_ids=True) else os.strerror(EACCES)


class Application:
    """All use cases of one process, wired on first use."""

    def __init__(self, settings: Settings, sealed: str | None = None) -> None:
        """`sealed`: why nothing can be written in the home, if so."""
        self._settings = settings
        self._signers = Signers(settings)
        self._chains = Chains(settings, sealed, self._signers.own_wallet)
        self._models = Models(settings)
        self._journal: ChainedJournal | None = None
        self._started = False
        self._account_log: JournalTradeLog | None = None
        self._evaluator: Evaluator | None = None
        self._memory: MemoryIndex | None = None
        self._news: MemoryIndex | None = None
        self._book: PaperBookDesk | None = None
        self._fences = Fences()
        self._venues: dict[Exchange, OrderVenue] = {}
        """Accounts at exchanges that this process may take new risk in."""
        self._own_samples: SqliteSamples | None = None
        self._own_outbox: SqliteOutbox | None = None
        self._recordings = Recordings(settings)
        self._markets = Markets(settings)
        self._meshes = Meshes(settings, self._open_journal, self._mesh_room)
        self._log = start_log(settings.home, settings.secrets()) if sealed is None else None

    def lp(self, chain: str | None) -> LpDesk:
        from zuno.adapters.clock.system import SystemClock
        from zuno.lp.service.positions import LpDesk

        opened = self._chains.open_chain(self._settings.default_chain() if chain is None else chain)
        now = None if opened.info.name in LOCAL_CHAINS else SystemClock().now
        return LpDesk(opened, lambda pool_id: self._chains.feeds(opened, pool_id), now)

    def audit(self) -> JournalAudit:
        from zuno.journal.audit import JournalAudit

        return JournalAudit(self._journal_to_read())

    def advice(self, *, offline: bool = False, transport: str | None = None) -> RecommendService:
        from zuno.lp.service.recommend import RecommendService

        self._models.offline = offline
        way = "inproc" if offline else transport

        async def venue(request_id: str | None) -> DebateRunner:
            return await self._venue(way, request_id)

        async def read_balances(chain: str) -> BalancesView:
            return await self.wallet(chain).balance()

        return RecommendService(
            venue,
            self._settings.default_chain(),
            self._settings.risk_profile,
            hooks=self._settings.allowed_hooks,
            read_balances=read_balances,
        )

    def mesh(self) -> MeshService:
        self._chains.require_writable()
        return self._meshes.keeper()

    def mesh_host(self) -> MeshHost:
        self._chains.require_writable()
        return self._meshes.host()

    async def peer(self, role: str, transport: str | None, *, parent: int | None = None) -> PeerService:
        from zuno.lp.service.mesh import parse_role

        way = self.mesh().way(transport)
        return await self._meshes.peer(parse_role(role), way, self._models, self._observe_anew, parent=parent)

    def archive(self) -> Archive:
        from zuno.lp.service.archive import Archive

        return Archive(self._read_journal, self._open_replay, code_version, self._meshes.attempts)

    def journal(self) -> ChainedJournal:
        """The one journal of this process: SQLite in the home, or Postgres where a URL is set."""
        self._chains.require_writable()
        return self._journal_to_read()

    def _journal_to_read(self) -> ChainedJournal:
        """The same, also where the home cannot be written."""
        from zuno.adapters.clock.system import unix_millis
        from zuno.journal.journal import ChainedJournal

        if self._journal is None:
            key = self._key()
            secrets = self._settings.secrets()
            self._journal = ChainedJournal(self._store(key), key, code=code_version, now=unix_millis, secrets=secrets)
        return self._journal

    def alerts(self) -> AlertDesk:
        from zuno.lp.service.arguments import position_id
        from zuno.wiring.watching import build_alert_desk

        async def read_position(text: str, chain: str | None) -> LpPosition:
            return await self.lp(chain).position(position_id(text))

        outbox = self._outbox()
        return build_alert_desk(self._settings, self._chains, self._signers, outbox, self._open_journal, read_position)

    def monitor(self, *, announce: bool = False) -> Monitor:
        from zuno.wiring.watching import build_monitor

        self._chains.require_writable()
        return build_monitor(
            self._settings,
            self._chains,
            self._signers,
            self._samples(),
            self._open_journal,
            announce=announce,
            pushes=self._push_sources(),
        )

    def _push_sources(self) -> PushSources:
        async def paint(account: str) -> bytes | None:
            market, _, name = account.partition(":")[2].partition(":")
            view, picture = await self.account(name or None if market else account).performance()
            return picture if view.account == account else None

        return PushSources(self._outbox(), self._open_journal, self._trade_log, paint)

    def portfolio(self) -> PortfolioDesk:
        from zuno.wiring.watching import build_portfolio

        return build_portfolio(self._settings, self._chains, self._signers, self._samples())

    def execution(self) -> Execution:
        from zuno.lp.service.execution import Execution

        chain = self._settings.default_chain()
        return Execution(self._open_journal, self.archive(), self._execution_context, self.lp, chain, os.urandom)

    def wallets(self) -> WalletService:
        from zuno.lp.service.wallets import WalletService

        return WalletService(self._signers.folder(), self._signers.own_wallet)

    def unlock_wallet(self) -> str | None:
        return self._signers.unlock()

    def wallet(self, chain: str | None) -> WalletOnChain:
        from zuno.lp.service.wallets import WalletOnChain

        name = self._settings.default_chain() if chain is None else chain
        opened, writer = self._chains.open_chain(name), self._chains.writer(name)
        return WalletOnChain(opened, self._signers.of(name).address, writer.wallet_state)

    def place(self) -> ShellStart:
        from zuno.doors.reading.place import ShellStart

        chain = self._settings.default_chain()
        try:
            wallet: str | None = self._signers.of(chain).address
        except Refused:
            wallet = None
        return ShellStart(self._settings.home, chain, wallet)

    def write_file(self, path: Path, content: bytes) -> None:
        from zuno.adapters.atomic_file import replace_file

        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content, mode=0o666, durable=False)  # a page may be meant for a web server

    def interpreter(self) -> Interpreter:
        from zuno.doors.reading.model_help import ROLE, Interpreter
        from zuno.llm.prompts import Prompts
        from zuno.lp.service.recommend import new_request_id

        async def model_context() -> ModelContext | None:
            if not self._registry().models_for(ROLE, 0).models:
                return None
            journal = await self._open_journal()
            return replace(
                self._model_context(journal, new_request_id(os.urandom(16))), prompts=Prompts("zuno.doors.reading")
            )

        return Interpreter(model_context)

    def chat_desk(self) -> ChatDesk:
        """Free text, for a door that holds one for the life of its process."""
        from zuno.wiring.chat import build_chat_desk

        viewers_ask = self._settings.budget_tokens_per_day_viewers > 0
        return build_chat_desk(self, self._open_journal, self._models, viewers_ask=viewers_ask)

    async def replay_chat(self, request_id: str) -> ReplayView | None:
        from zuno.wiring.chat import build_chat_replay

        return await build_chat_replay(self._read_journal, self._models).replay(request_id)

    def agents(self) -> Agents:
        from zuno.doors.agents import Agents
        from zuno.wiring.models import missing_models

        return Agents(self._registry(), self._meshes.keeper().glance, agent_roles(), missing_models())

    def costs(self) -> ModelCosts:
        from zuno.doors.costs import ModelCosts

        return ModelCosts(self._journal_to_read())

    def doctor(self) -> Doctor:
        from zuno.adapters.clock.system import unix_millis
        from zuno.trading.learn.memory_book import MemoryBook
        from zuno.wiring.doctor import build_doctor, build_mandate_check, build_memory_check, build_push_check
        from zuno.wiring.memory import memory_index
        from zuno.wiring.venues import build_venue_check

        return build_doctor(
            self._settings,
            key=self._key(),
            journal=self._read_journal,
            data=lambda: self.data().status(),
            agents=lambda: self.agents().status(),
            chains=self._chains,
            now=unix_millis,
            more=[
                build_memory_check(
                    lambda: memory_index(self._settings, self._settings.home), lambda: MemoryBook(self._read_journal)
                ),
                build_push_check(self._settings, self._outbox, unix_millis),
                build_venue_check(self._settings, unix_millis),
                build_mandate_check(self._trade_log, unix_millis, self._exchange_account()),
            ],
        )

    def logs(self) -> Logs:
        from zuno.adapters.log_file import log_path, read_log
        from zuno.doors.logs import Logs

        home = self._settings.home
        return Logs(str(log_path(home)), lambda: read_log(home))

    def data(self) -> DataDesk:
        from zuno.adapters.clock.system import unix_millis
        from zuno.trading.service.data import DataDesk

        fetch = self._markets.fetch() if self._settings.market == "live" else None
        return DataDesk(self._recordings.selected_store(), unix_millis, fetch, invent=self._recordings.invent)

    def collector(self, symbols: Sequence[str]) -> Collector:
        self._chains.require_writable()
        return self._markets.collector(self._recordings.own(), symbols)

    def downloads(self) -> Downloads:
        self._chains.require_writable()
        return self._markets.downloads(self._recordings.own())

    def imports(self) -> Imports:
        from zuno.adapters.clock.system import unix_millis
        from zuno.adapters.imports.files import HistoryFiles
        from zuno.trading.service.imports import Imports

        self._chains.require_writable()
        reads_own = self._settings.market == "live" or self._settings.recording == "own"
        return Imports(HistoryFiles(), self._recordings.own(), unix_millis, read_here=reads_own)

    def book(self) -> PaperBookDesk:
        """One for the process: it keeps how far it has read the account."""
        self._book = self._book or self._open_book()
        return self._book

    def _open_book(self) -> PaperBookDesk:
        from zuno.trading.rules.inputs import FeeRates, Fees
        from zuno.trading.service.paper_book import PaperBookDesk

        settings = self._settings
        fees = Fees(
            FeeRates(settings.fee_binance_maker_pct, settings.fee_binance_taker_pct),
            FeeRates(settings.fee_upbit_pct, settings.fee_upbit_pct),
        )
        store = self._recordings.selected_store()
        desk = self._desk(self._markets.refresh_marks(store) if self._settings.market == "live" else None)
        return PaperBookDesk(desk, store, self._trade_log(), self._inventory(), fees)

    def _inventory(self) -> Inventory:
        """The liquidity positions an account counts, or why none are looked for."""
        chain = self._settings.default_chain()
        if self._settings.market != "live":
            return "liquidity positions are read where the market is live; `zuno trade book lp` states them by hand"
        if chain in LOCAL_CHAINS:
            return f"the default chain, {chain}, is invented: its liquidity positions are not counted"

        async def read_amounts() -> Mapping[str, Decimal]:
            from zuno.lp.service.positions import token_amounts

            return token_amounts(await self.lp(chain).positions())

        return read_amounts

    def trading(self) -> TradingDesk:
        live = self._settings.market == "live"
        return self._desk(self._markets.refresh(self._recordings.selected_store()) if live else None)

    def _desk(self, refresh: Refresh | None) -> TradingDesk:
        """The trading desk, which asks so much of the live sources before it looks."""
        from zuno.adapters.chart.painter import MatplotlibPainter
        from zuno.adapters.clock.system import unix_millis
        from zuno.trading.service.features import TradingDesk

        store = self._recordings.selected_store()
        return TradingDesk(
            store,
            self._open_journal,
            MatplotlibPainter(),
            invent=self._recordings.invent_first if store.origin.synthetic else None,
            refresh=refresh,
            now=None if store.origin.synthetic else unix_millis,
        )

    def cycles(self, gate: OrderGate | None = None) -> Cycles:
        """`gate`: the one that acts on every ruling; None: a run that is to act opens that of its account."""
        from zuno.adapters.account.closed_trades import LoggedTradeRecord
        from zuno.trading.learn.lessons import LessonBook
        from zuno.trading.learn.news import NewsRecall
        from zuno.trading.learn.recall import CaseRecall
        from zuno.trading.model.trade_events import account_mode
        from zuno.wiring.cycles import build_cycles, join_recalls
        from zuno.wiring.memory import embedder

        self._chains.require_writable()

        async def open_gate(account: str, as_of: Millis) -> OrderGate:
            from zuno.adapters.clock.system import unix_millis

            if gate is not None:
                return gate
            if account_mode(account) != "paper":
                raise Refused(f"A run of the account {account} goes on with `zuno trade start`, which asks first.")
            return await self._open_gate(account, unix_millis if self._settings.market == "live" else lambda: as_of)

        async def read_slots(origin: str, moment: Millis, present: bool, account: Account | None) -> Sequence[Slot]:
            return await self.book().slots(origin, moment, present, account)

        return build_cycles(
            self._settings,
            self.trading(),
            self._open_journal,
            self._key(),
            self._models,
            read_slots,
            self._fences,
            LoggedTradeRecord(self._trade_log()),
            open_gate,
            self._real_time_record(),
            join_recalls(
                CaseRecall(
                    self._memory_index(),
                    self.evaluator().book,
                    LessonBook(self._open_journal),
                    self._was_live if self._settings.market == "live" else None,
                ),
                NewsRecall(self._recordings.selected_store(), self._news_index(), embedder(self._settings)),
            ),
        )

    def live_start(self) -> LiveStart:
        from zuno.adapters.clock.system import unix_millis
        from zuno.trading.service.live_start import LiveBackends, LiveStart
        from zuno.wiring.venues import KEY_VARIABLES, exchanges_with_keys

        async def find_failures() -> list[str]:
            view = await self.doctor().examine(live=True)
            unset = {"mandate"} if exchanges_with_keys(self._settings) else {"mandate", "venue"}
            return [line.text for line in view.checks if line.state == "fail" and line.topic not in unset]

        return LiveStart(
            LiveBackends(
                enabled=self._settings.live,
                market_live=self._settings.market == "live",
                demo=self._settings.binance_demo,
                keys={exchange: " and ".join(names) for exchange, names in KEY_VARIABLES.items()},
                keyed=lambda: exchanges_with_keys(self._settings),
                log=self._trade_log(),
                record=self._real_time_record(),
                find_failures=find_failures,
                now=unix_millis,
            )
        )

    def _real_time_record(self) -> LoggedTradeRecord:
        """Paper trades whose runs were of a live market: what a recorded past says never counts for live."""
        from zuno.adapters.account.closed_trades import LoggedTradeRecord

        return LoggedTradeRecord(self._trade_log(), self._was_live)

    async def _was_live(self, run: str) -> bool:
        from zuno.trading.model.cycle import STARTED

        started = await (await self._open_journal()).latest(1, request_id=run, kind=STARTED)
        return bool(started) and started[0].payload.get("live") is True

    def orders(self) -> TradingOrders:
        from zuno.adapters.clock.system import unix_millis
        from zuno.trading.model.trade_events import DEMO_ACCOUNT, LIVE_ACCOUNT, paper_account
        from zuno.trading.service.orders import OpenedAccount, TradingOrders

        live = self._settings.market == "live"
        store = self._recordings.selected_store()
        desk = self._desk(self._markets.refresh_marks(store) if live else None)

        async def open_account(name: str | None, as_of: str | None) -> OpenedAccount:
            if name in (LIVE_ACCOUNT, DEMO_ACCOUNT):
                # An exchange says its prices itself: what is held there can be closed whatever market is read here.
                return OpenedAccount(await self._open_gate(name, unix_millis), unix_millis(), name)
            if live and as_of is None:
                notes = await self._refresh_notes(desk)
                gate = await self._open_gate(paper_account(desk.origin, name or ""), unix_millis)
                return OpenedAccount(gate, unix_millis(), desk.origin, notes)
            moment = await desk.latest_moment(as_of)
            now = unix_millis if live else lambda: moment.as_of
            gate = await self._open_gate(paper_account(moment.origin, name or ""), now)
            return OpenedAccount(gate, now(), moment.origin, moment.notes)

        return TradingOrders(open_account)

    async def _refresh_notes(self, desk: TradingDesk) -> tuple[str, ...]:
        """Ask for fresh prices. To pause, to lock and to look must be possible while no venue answers."""
        from zuno.trading.model.market import Symbol

        try:
            return (await desk.moment(Symbol.BTCUSDT, None)).notes
        except Unavailable as error:
            return (f"prices are as they were stored last: {error}",)

    def account(self, name: str | None = None) -> AccountDesk:
        from zuno.adapters.clock.system import unix_millis
        from zuno.adapters.file_lock import desk_lock
        from zuno.trading.rules.protections import ProtectionLimits
        from zuno.trading.service.account import AccountDesk
        from zuno.trading.service.account_page import AccountBackends
        from zuno.trading.service.trade_desk import desk_name

        store = self._recordings.selected_store()
        desk = self._desk(self._markets.refresh_marks(store) if self._settings.market == "live" else None)

        def find_process(account: str) -> str | None:
            lock = desk_lock(self._settings.home, desk_name(account))
            process = lock.process()
            return None if process is None else f"process {process.pid}"

        async def read_marks(account: str) -> Mapping[tuple[Exchange, Symbol], Decimal]:
            return await (await self._open_gate(account, unix_millis)).marks()

        return AccountDesk(
            AccountBackends(
                desk=desk,
                store=store,
                log=self._trade_log(),
                inventory=self._inventory(),
                orders=self.orders(),
                limits=ProtectionLimits(),
                running=find_process,
                now=unix_millis,
                marks=read_marks,
                learn=self._learn_from_close,
            ),
            name,
        )

    async def _learn_from_close(self, account: str, at: Millis, symbols: Sequence[Symbol]) -> Evaluation:
        """A post-mortem is written once: what happened since the last look is read from the live market before it."""
        desk = self.trading()
        if self._settings.market == "live":
            for symbol in symbols:
                with suppress(Unavailable):
                    await desk.moment(symbol, None)
        return await self.evaluator().learn(account, desk.origin, at)

    def learning(self, name: str | None = None) -> LearningDesk:
        from zuno.adapters.clock.system import unix_millis
        from zuno.trading.service.learning import LearningDesk, LearningDeskBackends

        return LearningDesk(
            LearningDeskBackends(
                desk=self._desk(None), evaluator=self.evaluator(), log=self._trade_log(), now=unix_millis
            ),
            name,
        )

    def trade_desk(self) -> TradeDesk:
        from zuno.adapters.clock.system import unix_millis
        from zuno.adapters.file_lock import desk_lock
        from zuno.trading.service.trade_desk import DeskBackends, TradeDesk, desk_name

        self._chains.require_writable()
        live = self._settings.market == "live"

        async def open_gate(account: str, now: Callable[[], Millis], watch_only: str | None) -> OrderGate:
            return await self._open_gate(account, now, owned=not live, entries=True, watch_only=watch_only)

        async def collect(symbols: Sequence[Symbol], stop: asyncio.Event) -> None:
            await self.collector([symbol.value for symbol in symbols]).run(lambda view: None, stop)

        return TradeDesk(
            DeskBackends(
                journal=self._open_journal,
                desk=self.trading(),
                live=live,
                open_gate=open_gate,
                cycles=self.cycles,
                lock=lambda account: desk_lock(self._settings.home, desk_name(account)),
                now=unix_millis,
                evaluator=self.evaluator(),
                collect=collect if live else None,
                permit=self.live_start().permit,
                push=build_pushes(self._settings, self._push_sources(), tell_gaps=True),
            )
        )

    def evaluator(self) -> Evaluator:
        """One for the process: it keeps how far it has read the accounts."""
        from zuno.trading.learn.evaluator import Evaluator, LearningBackends
        from zuno.wiring.cycles import build_run_context
        from zuno.wiring.memory import memory_file
        from zuno.wiring.orders import read_fees

        self._chains.require_writable()
        if self._evaluator is None:
            self._evaluator = Evaluator(
                LearningBackends(
                    journal=self._open_journal,
                    log=self._trade_log(),
                    store=self._recordings.selected_store(),
                    model_context=lambda notebook: build_run_context(self._models, notebook, self._models.registry()),
                    indexes=(memory_file(self._settings.home), self._memory_index()),
                    fees=read_fees(self._settings),
                )
            )
        return self._evaluator

    def _memory_index(self) -> MemoryIndex:
        from zuno.wiring.memory import extract_by_models, memory_index

        if self._memory is None:
            extract = extract_by_models(self._open_journal, self._models)
            self._memory = memory_index(self._settings, self._settings.home, extract)
        return self._memory

    def _news_index(self) -> MemoryIndex:
        from zuno.wiring.memory import news_index

        self._news = self._news or news_index(self._settings, self._settings.home)
        return self._news

    def memory(self) -> MemoryDesk:
        from zuno.adapters.clock.system import unix_millis
        from zuno.trading.learn.lessons import LessonBook
        from zuno.trading.learn.memory_book import MemoryBook
        from zuno.trading.service.memory import MemoryDesk

        store = self._recordings.selected_store()
        return MemoryDesk(
            self._read_journal,
            MemoryBook(self._read_journal),
            LessonBook(self._read_journal),
            self._memory_index(),
            lambda: store.origin.label,
            unix_millis if self._settings.market == "live" else None,
        )

    def _trade_log(self) -> JournalTradeLog:
        from zuno.adapters.account.trade_log import JournalTradeLog

        self._account_log = self._account_log or JournalTradeLog(self._open_journal, self._read_journal)
        return self._account_log

    def _exchange_account(self) -> str:
        """The account that the exchange's keys are of."""
        from zuno.trading.model.trade_events import DEMO_ACCOUNT, LIVE_ACCOUNT

        return DEMO_ACCOUNT if self._settings.binance_demo else LIVE_ACCOUNT

    async def _open_exchanges(self, account: str) -> Mapping[Exchange, OrderVenue]:
        """Those with keys of this account that a mandate of it named. Upbit has no demo trading."""
        from zuno.trading.model.cycle import Exchange
        from zuno.trading.model.trade_events import LIVE_ACCOUNT
        from zuno.trading.service.live_start import find_traded_exchanges
        from zuno.wiring.venues import build_venue, exchanges_with_keys

        named = find_traded_exchanges(await self._trade_log().events(account))
        own = {Exchange.BINANCE: account == self._exchange_account(), Exchange.UPBIT: account == LIVE_ACCOUNT}
        usable = [exchange for exchange in exchanges_with_keys(self._settings) if own[exchange] and exchange in named]
        for exchange in usable:
            if exchange not in self._venues:
                self._venues[exchange] = build_venue(self._settings, exchange)
        return {exchange: self._venues[exchange] for exchange in usable}

    async def _open_gate(
        self,
        account: str,
        now: Callable[[], Millis],
        *,
        owned: bool = False,
        entries: bool = False,
        watch_only: str | None = None,
    ) -> OrderGate:
        """`owned`: nobody else is expected to write, as through recorded time. `entries`: at an exchange they are
        placed, too, which is the desk's alone; `watch_only`: why they are not."""
        from zuno.adapters.account.trade_log import OwnedTradeLog
        from zuno.trading.model.trade_events import account_mode
        from zuno.wiring.orders import build_exchange_gate, build_paper_gate

        if account_mode(account) != "paper":
            venues = await self._open_exchanges(account)
            log = self._trade_log()
            return build_exchange_gate(log, account, venues, now, entries=entries, watch_only=watch_only)
        paper_log: TradeLog = OwnedTradeLog(self._trade_log()) if owned else self._trade_log()
        return build_paper_gate(self._settings, self._recordings.selected_store(), paper_log, account, now)

    def lp_lab(self, cluster: str | None = None) -> LpLab:
        from zuno.wiring.lab import open_lp_lab

        self._chains.require_writable()  # hours of work end in a report
        return open_lp_lab(self._settings.home, cluster)

    def lab(self, cluster: str | None = None) -> StudyDesk:
        from zuno.wiring.lab import build_study_desk

        return build_study_desk(self._settings, self._recordings, cluster)

    def config(self) -> ConfigView:
        from zuno.doors.config import ConfigView, SettingView

        settings = self._settings
        return ConfigView(
            home=str(settings.home),
            chain=settings.default_chain(),
            chains=settings.list_chains(),
            market=settings.market,
            recording=settings.recording,
            live=settings.live,
            settings=tuple(SettingView(name=name, value=said) for name, said in settings.describe_changed().items()),
        )

    def telegram(self) -> TelegramDoor:
        from zuno.wiring.telegram import build_telegram

        self._chains.require_writable()
        return build_telegram(self._settings, self, self._open_journal, self._push_sources(), self.chat_desk)

    def web(self, host: str, port: int) -> WebDoor:
        from zuno.wiring.web import build_web

        self._chains.require_writable()
        return build_web(self._settings, self, host, port)

    def assistant(self) -> AssistantDoor:
        from zuno.wiring.mcp import build_assistant

        return build_assistant(self)

    def sim(self) -> SimPlayground:
        self._chains.require_writable()
        from zuno.adapters.chain.world import DEFAULT_SEED
        from zuno.lp.service.local_chains import SimPlayground

        return SimPlayground("sim", self._chains.sim, DEFAULT_SEED)

    def devnet(self) -> Devnet:
        from zuno.lp.service.local_chains import Devnet

        process = self._chains.devnet()
        return Devnet(process, process.file)

    def devnet_world(self) -> LocalChain:
        from zuno.adapters.chain.devnet.process import DevnetWorld
        from zuno.lp.service.local_chains import LocalChain

        return LocalChain("devnet", DevnetWorld(self._chains.devnet()))

    def refresh(self) -> None:
        self._chains.refresh()

    async def close(self) -> None:
        if self._log is not None:
            stop_log(self._log)
            self._log = None
        await self._meshes.close()
        await self._chains.close()
        await self._models.close()
        await self._markets.close()
        for venue in self._venues.values():
            await venue.close()
        self._venues.clear()
        await self._recordings.close()
        if self._own_samples is not None:
            await self._own_samples.close()
            self._own_samples = None
        if self._own_outbox is not None:
            await self._own_outbox.close()
            self._own_outbox = None
        if self._journal is not None:
            await self._journal.close()
            self._journal = None

    def _key(self) -> KeyFile:
        from zuno.adapters.keys.ed25519 import KeyFile

        home = self._settings.home
        own, peer = home / "keys" / "node.key", home / "peer.key"
        return KeyFile(peer if peer.exists() and not own.exists() else own)  # a peer's folder is a home to look at

    def _store(self, key: KeyFile) -> JournalStore:
        url = self._settings.database_url
        if url is not None:
            from zuno.adapters.store.postgres import open_postgres

            return open_postgres(url.get_secret_value(), self._settings.home, key, self._fences)
        from zuno.adapters.store.sqlite import open_sqlite

        return open_sqlite(self._settings.home)

    async def _open_journal(self) -> Journal:
        """The journal, with whatever a crash left behind mended and told."""
        if not self._started:
            await check_editions(self.journal())
            for note in await self.journal().start():
                sys.stderr.write(f"zuno: {note}\n")
            self._started = True
        return self.journal()

    async def _read_journal(self) -> Journal:
        """The journal for whoever only reads: nothing is mended in a home that cannot be written, or has no room."""
        if self._chains.writable:
            try:
                return await self._open_journal()
            except Unavailable:
                if self._settings.database_url is not None:
                    raise
        await check_editions(self._journal_to_read())
        return self._journal_to_read()

    def _samples(self) -> SqliteSamples:
        from zuno.adapters.store.samples import SqliteSamples

        self._own_samples = self._own_samples or SqliteSamples(self._settings.home)
        return self._own_samples

    def _outbox(self) -> SqliteOutbox:
        from zuno.adapters.store.outbox import SqliteOutbox

        self._own_outbox = self._own_outbox or SqliteOutbox(self._settings.home)
        return self._own_outbox

    async def _venue(self, transport: str | None, request_id: str | None) -> DebateRunner:
        """Where a debate of today is held: on the mesh if it is there, else at a table in this process."""
        from zuno.lp.service.recommend import new_request_id

        request_id = request_id or new_request_id(os.urandom(16))
        endpoint = await self._meshes.keeper().endpoint_for(transport, code_version, tell)
        if endpoint is not None:
            return await self._mesh_room(endpoint, request_id)
        journal = await self._open_journal()
        rounds = self._settings.max_debate_rounds
        return self._build_local_debate(
            journal, request_id, rounds, self._observe, self._model_context(journal, request_id)
        )

    async def _mesh_room(self, endpoint: OwnerEndpoint, request_id: str) -> MeshDebateRunner:
        from time import perf_counter

        from zuno.adapters.clock.system import unix_millis
        from zuno.lp.model.debate import Role
        from zuno.lp.service.mesh_debate import MeshDebateRunner

        rounds = self._settings.max_debate_rounds
        return MeshDebateRunner(
            endpoint=endpoint,
            journal=await self._open_journal(),
            key=self._meshes.key(Role.CLI),
            now=unix_millis,
            stopwatch=perf_counter,
            chain_of=self._chains.open_chain,
            observe_again=self._observe_again,
            request_id=request_id,
            max_rounds=rounds,
            patience=self._debate_timeout(rounds),
            tell=tell,
        )

    async def _open_replay(self, recorded: RecordedRequest, context: Context) -> ReplayDebateRunner:
        """A table where a recorded debate is held again: its context, its replies, and a journal that is forgotten."""
        from zuno.adapters.clock.system import unix_millis
        from zuno.adapters.model.recorded import RecordedModels
        from zuno.adapters.store.memory import MemoryStore
        from zuno.journal.journal import ChainedJournal
        from zuno.lp.service.archive import ReplayDebateRunner

        journal = ChainedJournal(MemoryStore(), self._key(), code=code_version, now=unix_millis, secrets=())
        registry = RecordedModels(recorded.attempts)

        async def observe(start: FlowStart | FlowCreateStart) -> Context:
            return context

        model_context = self._models.model_context(journal, recorded.request_id, registry, limited=False)
        room = self._build_local_debate(journal, recorded.request_id, context.max_rounds, observe, model_context)

        def differences() -> tuple[str, ...]:
            unheard = (
                f"{attempt.role}, round {attempt.round}: a recorded reply was not asked for"
                for attempt in registry.unheard
            )
            return (*registry.differences, *unheard)

        return ReplayDebateRunner(room, differences)

    def _build_local_debate(
        self, journal: Journal, request_id: str, rounds: int, observe: Observe, model_context: ModelContext
    ) -> LocalDebateRunner:
        from zuno.wiring.local_debate import build_local_debate

        return build_local_debate(
            journal, self._key(), request_id, rounds, observe, model_context, self._debate_timeout(rounds)
        )

    def _debate_timeout(self, rounds: int) -> float:
        """What a debate may take when every model asked takes all of its time, and the world is slow to observe."""
        asked_at_most = len(self._settings.model_table()["scout"]) + 1
        questions = 2 + 2 * (rounds + 1)
        return OBSERVE_SECONDS + questions * asked_at_most * self._settings.model_timeout_seconds

    async def _observe(self, start: FlowStart | FlowCreateStart) -> Context:
        return await self._observe_with(start, self._chains)

    async def _observe_anew(self, start: FlowStart | FlowCreateStart) -> Context:
        """For a process that lives on: the simulation may have been moved, or the devnet started again, since."""
        chains = Chains(self._settings, None, self._signers.own_wallet)
        try:
            return await self._observe_with(start, chains)
        finally:
            await chains.close()

    async def _observe_with(self, start: FlowStart | FlowCreateStart, chains: Chains) -> Context:
        from zuno.lp.agents.observe import observe

        chain = chains.open_chain(start.chain)
        return await observe(start, chain, chains.feeds, self._samples_of(chain))

    async def _observe_again(self, context: Context) -> tuple[PoolFacts, ...]:
        from zuno.lp.agents.observe import observe_again

        chain = self._chains.open_chain(context.chain)
        return await observe_again(context, chain, self._chains.feeds, self._samples_of(chain))

    def _samples_of(self, chain: Chain) -> SqliteSamples | None:
        """A local world keeps its whole past and may be made anew: samples of the world before would lie about it."""
        return None if chain.info.name in LOCAL_CHAINS else self._samples()

    def _model_context(self, journal: Journal, request_id: str) -> ModelContext:
        return self._models.model_context(journal, request_id, self._registry())

    def _registry(self) -> ModelRegistry:
        return self._models.registry()

    async def _execution_context(self, chain: str) -> ExecutionContext:
        """All that may spend on a chain, behind the gate."""
        import asyncio
        from time import perf_counter

        from zuno.adapters.clock.system import unix_millis
        from zuno.adapters.file_lock import wallet_lock
        from zuno.lp.execute.context import ExecutionContext

        journal, key, opened = await self._open_journal(), self._key(), self._chains.open_chain(chain)
        key.ensure()
        if opened.info.name == "devnet":
            from zuno.adapters.chain.devnet.process import DevnetWorld

            await DevnetWorld(self._chains.devnet()).wake()
        return ExecutionContext(
            chain=opened,
            writer=self._chains.writer(chain),
            signer=self._signers.of(chain),
            feeds_of=lambda pool_id: self._chains.feeds(opened, pool_id),
            journal=journal,
            key=key,
            lock=lambda name: wallet_lock(self._settings.home, name),
            sleep=asyncio.sleep,
            stopwatch=perf_counter,
            now=unix_millis,
            limits=self._limits(),
            timeouts=self._timeouts(opened.info),
        )

    def _limits(self) -> SpendingLimits:
        from zuno.kernel.units import Address
        from zuno.lp.execute.context import SpendingLimits
        from zuno.lp.model.plan import Bounds

        settings = self._settings
        lasting = settings.approval_seconds
        return SpendingLimits(
            bounds=Bounds(settings.slippage_bps, settings.tick_drift, lasting, max(lasting, Bounds().permit2_seconds)),
            usd_per_plan=settings.spend_usd_per_plan,
            usd_per_day=settings.spend_usd_per_day,
            hooks=frozenset(map(Address, settings.allowed_hooks)),
        )

    def _timeouts(self, info: ChainInfo) -> Timeouts:
        from zuno.lp.execute.context import Timeouts

        usual = Timeouts(patience=self._settings.receipt_seconds)
        return replace(usual, poll_interval=LOCAL_LOOK) if info.name in LOCAL_CHAINS else usual
