"""Wire the trading desk: market data, cycles, accounts and their venues, what is learned, and the desk that runs."""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cached_property, partial
from typing import TYPE_CHECKING

from zuno.adapters.clock.system import unix_millis
from zuno.adapters.file_lock import desk_lock
from zuno.kernel.accounts import account_mode, short_name
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Market, Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.settings import Settings
from zuno.wiring.markets import Markets
from zuno.wiring.outbox import build_pushes, print_line
from zuno.wiring.recordings import Recordings
from zuno.wiring.shared import SharedWiring, check_editions
from zuno.wiring.version import code_version

if TYPE_CHECKING:
    from zuno.adapters.account.trade_log import JournalTradeLog, LoggedTradeRecord
    from zuno.adapters.store.markets_file import MarketsFile
    from zuno.doors.doctor import Doctor
    from zuno.journal.audit import JournalAudit
    from zuno.trading.execute.order_gate import OrderGate
    from zuno.trading.learn.evaluator import Evaluator
    from zuno.trading.model.orders import ExchangeAnswer
    from zuno.trading.ports.recall import MemoryIndex
    from zuno.trading.ports.venue import OrderVenue
    from zuno.trading.rules.performance import AccountLog
    from zuno.trading.rules.trading_book import TradingBook
    from zuno.trading.service.account import AccountDesk
    from zuno.trading.service.account_page import AccountBackends, Inventory, ReadInventory
    from zuno.trading.service.collector import Collector
    from zuno.trading.service.daily_targets import DailyTargets
    from zuno.trading.service.data import DataDesk
    from zuno.trading.service.download import Downloads
    from zuno.trading.service.features import Refresh, TradingDesk
    from zuno.trading.service.imports import Imports
    from zuno.trading.service.learning import LearningDesk
    from zuno.trading.service.live_start import LiveStart
    from zuno.trading.service.markets import MarketDesk
    from zuno.trading.service.memory import MemoryDesk
    from zuno.trading.service.own_strategies import OwnStrategies
    from zuno.trading.service.runs import Cycles
    from zuno.trading.service.strategies import StrategyDesk
    from zuno.trading.service.trade_desk import TradeDesk


class TradingWiring(SharedWiring):
    """The trading desk's use cases, wired on first use."""

    def __init__(self, settings: Settings, sealed: str | None = None) -> None:
        super().__init__(settings, sealed)
        self._account_log: JournalTradeLog | None = None
        self._evaluator: Evaluator | None = None
        self._memory: MemoryIndex | None = None
        self._news: MemoryIndex | None = None
        self._venues: dict[tuple[str, Venue], OrderVenue] = {}
        """Accounts at exchanges in which this process may open positions."""
        self._recordings = Recordings(settings)
        self._markets = Markets(settings)

    @abstractmethod
    def doctor(self) -> Doctor: ...

    @cached_property
    def markets(self) -> tuple[Symbol, ...]:
        """Those that the desk trades. `UsageError` with the nearest names for one that its venue does not list."""
        if self._settings.markets != DEFAULT_SYMBOLS:
            catalogue = self._catalogue.read()
            for symbol in self._settings.markets:
                catalogue.require_listed(symbol)
        return self._settings.markets

    @cached_property
    def _catalogue(self) -> MarketsFile:
        from zuno.adapters.store.markets_file import MarketsFile

        return MarketsFile(self._settings.home)

    def market_desk(self) -> MarketDesk:
        from zuno.trading.service.markets import MarketDesk
        from zuno.wiring.venues import list_markets

        def renew(venue: Venue, listed: Sequence[Market], at: Millis) -> None:
            self._chains.require_writable()
            self._catalogue.renew(venue, listed, at)

        return MarketDesk(self._catalogue.read, renew, partial(list_markets, self._settings), unix_millis)

    def find_account(self, name: str | None) -> str | None:
        return self._settings.find_account(name)

    @abstractmethod
    def _inventory(self) -> Inventory:
        """The liquidity positions an account counts, or why none are looked for."""

    @abstractmethod
    def _simulated_inventory(self) -> ReadInventory | None:
        """Those of a simulated chain, beside a market that is simulated too; None: there are none."""

    @abstractmethod
    async def _list_hedged(self, account: str) -> tuple[str, ...]:
        """Liquidity that an account's shorts hedge, in words."""

    def data(self) -> DataDesk:
        from zuno.trading.service.data import DataDesk

        fetch = self._markets.fetch() if self._settings.market == "live" else None
        store, choice = self._recordings.selected_store(), self._recordings.describe_choice()
        return DataDesk(
            store, unix_millis, fetch, invent=self._recordings.invent, choice=choice, markets=self._settings.markets
        )

    def collector(self, symbols: Sequence[str]) -> Collector:
        self._chains.require_writable()
        return self._markets.collector(self._recordings.own(), symbols, self.markets, self._list_held)

    def downloads(self) -> Downloads:
        self._chains.require_writable()
        return self._markets.downloads(self._recordings.own(), self.markets, read_here=self._recordings.reads_own)

    def imports(self) -> Imports:
        from zuno.adapters.imports.files import HistoryFiles
        from zuno.trading.service.imports import Imports

        self._chains.require_writable()
        read_here = self._settings.market == "live" or self._settings.recording != "synthetic"
        first = read_here and not self._recordings.reads_own
        return Imports(HistoryFiles(), self._recordings.own(), unix_millis, read_here=read_here, first=first)

    def trading(self) -> TradingDesk:
        live, store, markets = self._settings.market == "live", self._recordings.selected_store(), self.markets
        return self._desk(self._markets.refresh(store, markets, self._list_held) if live else None, markets)

    def _marked_desk(self) -> TradingDesk:
        """A desk that asks a live market for marks alone."""
        live, store = self._settings.market == "live", self._recordings.selected_store()
        markets = self._settings.markets
        return self._desk(self._markets.refresh_marks(store, markets, self._list_held) if live else None, markets)

    async def _list_held(self) -> tuple[Symbol, ...]:
        """What the accounts of this market and those at exchanges hold or wait for."""
        from zuno.trading.model.trade_events import paper_account
        from zuno.trading.service.account_page import list_held

        log, own = self._trade_log(), paper_account(self._recordings.selected_store().origin.label)
        names = [name for name in await log.accounts() if account_mode(name) != "paper" or name.startswith(own)]
        books = [await log.history(name) for name in names]
        return tuple(dict.fromkeys(symbol for book in books for symbol in list_held(book)))

    def _desk(self, refresh: Refresh | None, markets: tuple[Symbol, ...]) -> TradingDesk:
        """`refresh`: asks the live sources before each look. `markets`: read and killed whatever lists say."""
        from zuno.adapters.chart.painter import MatplotlibPainter
        from zuno.trading.service.features import TradingDesk

        store = self._recordings.selected_store()
        return TradingDesk(
            store,
            self._open_journal,
            MatplotlibPainter(),
            invent=self._recordings.invent_first if store.origin.synthetic else None,
            refresh=refresh,
            now=None if store.origin.synthetic else unix_millis,
            markets=markets,
        )

    def cycles(self, gate: OrderGate | None = None) -> Cycles:
        """`gate`: acts on every ruling; None: a run opens its account's own."""
        from zuno.adapters.account.trade_log import LoggedTradeRecord
        from zuno.trading.learn.memory_book import LessonBook
        from zuno.trading.learn.recall import CaseRecall, NewsRecall
        from zuno.trading.service.account_page import AccountPageReader
        from zuno.trading.service.runs import Cycles, RunBackends
        from zuno.wiring import cycles as wiring
        from zuno.wiring.memory import embedder, news_index

        self._chains.require_writable()

        async def open_gate(account: str, as_of: Millis) -> OrderGate:
            from zuno.trading.service.trade_desk import check_real_time

            if gate is not None:
                return gate
            if account_mode(account) != "paper":
                raise Refused(f"A run of the account {account} goes on with `zuno trade start`, which asks first.")
            live = self._settings.market == "live"
            opened = await self._open_gate(account, unix_millis if live else lambda: as_of)
            if live:
                check_real_time(await opened.refresh(), account)
            return opened

        wiring.prepare_cycles()
        models, evaluator = self._models, self.evaluator()
        was_live = self._was_live if self._settings.market == "live" else None
        cases = CaseRecall(evaluator.indexes, evaluator.book, LessonBook(self._open_journal), was_live)
        self._news = self._news or news_index(self._settings, self._settings.home)
        news = NewsRecall(self._recordings.selected_store(), self._news, embedder(self._settings))
        return Cycles(
            self.trading(),
            RunBackends(
                journal=self._open_journal,
                held=lambda *asked: AccountPageReader(self._account_backends()).read_slots(*asked),
                record=LoggedTradeRecord(self._trade_log()),
                model_context=lambda notebook: wiring.build_run_context(models, notebook, models.registry()),
                checkpoints=lambda: wiring.open_checkpoints(self._settings),
                lease=lambda symbol: wiring.symbol_lease(self._settings, symbol, self._fences),
                rehearse=partial(wiring.build_rehearsal, models, self._key()),
                now=unix_millis,
                random=os.urandom,
                code=code_version,
                gate=open_gate,
                real_time_record=self._real_time_record(),
                policy=self._settings.ev,
                recall=wiring.join_recalls(cases, news),
                learn=evaluator.try_to_learn_from if gate is None else None,
                core=evaluator.tilts.read_core,
            ),
        )

    def live_start(self) -> LiveStart:
        from zuno.trading.service.live_start import LiveBackends, LiveStart
        from zuno.wiring.venues import exchanges_with_keys, find_transfer_gap, name_keys

        async def find_failures() -> list[str]:
            view = await self.doctor().examine(live=True)
            unset = {"mandate", "record", "sleeve"} | (set() if exchanges_with_keys(self._settings) else {"venue"})
            return [line.text for line in view.checks if line.state == "fail" and line.topic not in unset]

        return LiveStart(
            LiveBackends(
                enabled=self._settings.live,
                market_live=self._settings.market == "live",
                policy=self._settings.ev,
                demo=self._settings.is_demo,
                keys=partial(name_keys, self._settings),
                keyed=partial(exchanges_with_keys, self._settings),
                routed=self._settings.routes().venues,
                find_stale=self._find_stale,
                log=self._trade_log(),
                record=self._real_time_record(),
                find_failures=find_failures,
                now=unix_millis,
                find_transfer_gap=partial(find_transfer_gap, self._settings),
            )
        )

    async def _find_stale(self, venue: Venue) -> str | None:
        """Why a venue's list does not serve for live orders; an old one is read again first."""
        if self._catalogue.read().find_stale(venue, unix_millis()) is not None:
            with suppress(Unavailable):
                await self.market_desk().list(venue, refresh=True)
        return self._catalogue.read().find_stale(venue, unix_millis())

    def _real_time_record(self) -> LoggedTradeRecord:
        """Paper trades of runs over a live market; recorded data never count for going live."""
        from zuno.adapters.account.trade_log import LoggedTradeRecord

        return LoggedTradeRecord(self._trade_log(), self._was_live)

    async def _was_live(self, run: str) -> bool:
        from zuno.trading.model.cycle import STARTED

        started = await (await self._open_journal()).latest(1, request_id=run, kind=STARTED)
        return bool(started) and started[0].payload.get("live") is True

    async def _open_account(self, name: str | None) -> OrderGate:
        from zuno.trading.model.trade_events import paper_account
        from zuno.trading.service.account_page import require_account

        if name is not None and account_mode(name) != "paper":
            # An exchange says its prices itself: what is held there can be closed whatever market is read here.
            return await self._open_gate(name, unix_millis)
        live, desk = self._settings.market == "live", self._marked_desk()
        moment = None if live else await desk.newest_moment(None)
        if moment is None:
            with suppress(Unavailable):  # to pause, to lock and to look must be possible while no venue answers
                await desk.moment(self._settings.markets[0], None)

        def now() -> Millis:
            """An account in recorded time acts at its own last moment."""
            own = gate.book.recorded_moment(live=live)
            return own if own is not None else unix_millis() if moment is None else moment.as_of

        gate = await self._open_gate(paper_account(desk.origin, name or ""), now)
        with suppress(Unavailable):  # what cannot be read now can be closed all the same
            if not (await gate.refresh()).count:
                await require_account(self._trade_log(), desk.origin, name)
        return gate

    def account(self, name: str | None = None) -> AccountDesk:
        from zuno.trading.service.account import AccountDesk

        return AccountDesk(self._account_backends(), self.find_account(name))

    def _account_backends(self) -> AccountBackends:
        from zuno.trading.execute.reconcile import ask_exchange
        from zuno.trading.model.orders import ExchangeAnswer
        from zuno.trading.rules.protections import ProtectionLimits
        from zuno.trading.service.account_page import AccountBackends
        from zuno.trading.service.trade_desk import desk_name
        from zuno.wiring.orders import plan_new_account, read_fees
        from zuno.wiring.venues import list_venues

        def find_process(account: str) -> str | None:
            lock = desk_lock(self._settings.home, desk_name(account))
            process = lock.process()
            return None if process is None else f"process {process.pid}"

        async def read_marks(account: str) -> Mapping[tuple[Venue, Symbol], Decimal]:
            return await (await self._open_gate(account, unix_millis)).marks()

        async def ask(account: str, book: TradingBook) -> tuple[ExchangeAnswer, ...]:
            venues = await self._open_exchanges(account, named=False)
            expected = await self._find_named_exchanges(account) or list_venues(self._settings, account)
            return (
                *await asyncio.gather(*(ask_exchange(venue, book, unix_millis) for venue in venues.values())),
                *(
                    ExchangeAnswer(exchange=exchange, unknown=f"there are no keys of the {account} account")
                    for exchange in expected
                    if exchange not in venues
                ),
            )

        async def backtest(sleeve: str, symbols: Sequence[Symbol]) -> str:
            from zuno.wiring.trade_lab import describe_backtest

            return await describe_backtest(self._recordings.selected_store(), sleeve, symbols, unix_millis())

        return AccountBackends(
            desk=self._marked_desk(),
            store=self._recordings.selected_store(),
            log=self._trade_log(),
            inventory=self._inventory(),
            simulated=self._simulated_inventory(),
            open_gate=self._open_account,
            limits=ProtectionLimits(),
            running=find_process,
            now=unix_millis,
            fees=read_fees(self._settings),
            marks=read_marks,
            ask=ask,
            learn=lambda gate: self.evaluator().try_to_learn_from(gate),
            kill_lock=self.kill_lock,
            venues=lambda account: list_venues(self._settings, account),
            catalogue=self._catalogue.read,
            routes=self._settings.routes(),
            describe_backtest=backtest,
            opening=plan_new_account(self._settings),
            check_sleeves=lambda shares: self.own_strategies().check_shares(shares),
            list_hedged=self._list_hedged,
        )

    def learning(self, name: str | None = None) -> LearningDesk:
        from zuno.trading.service.learning import LearningDesk

        named = self.find_account(name)
        return LearningDesk(
            self._desk(None, self._settings.markets), self.evaluator(), self._trade_log(), unix_millis, named
        )

    def own_strategies(self) -> OwnStrategies:
        from zuno.wiring.own_strategies import build_own_strategies

        self._chains.require_writable()
        return build_own_strategies(self._settings, self.trading(), self._open_journal)

    async def serve_signals(self) -> None:
        from zuno.wiring.own_strategies import serve_signals

        await serve_signals(self._settings, self._open_journal)

    def strategies(self, account: str | None = None) -> StrategyDesk:
        from zuno.trading.service.strategies import StrategyDesk

        desk = self._desk(None, self._settings.markets)
        return StrategyDesk(desk, self.account(account).read_sleeves, self._catalogue.read)

    def trade_desk(self) -> TradeDesk:
        from zuno.trading.service.trade_desk import DeskBackends, TradeDesk, desk_name
        from zuno.wiring.disk_budget import MEGABYTE, build_disk_watch
        from zuno.wiring.orders import parse_shares

        self._chains.require_writable()
        live = self._settings.market == "live"

        async def collect(symbols: Sequence[Symbol], stop: asyncio.Event) -> None:
            await self.collector([symbol.value for symbol in symbols]).run(lambda view: None, stop)

        push = build_pushes(self._settings, self._push_sources(), tell_gaps=True)
        outbox, budget = None if push is None else self._outbox(), self._settings.disk_budget_mb * MEGABYTE
        keep_room = build_disk_watch(budget, self.compaction, outbox, print_line)
        return TradeDesk(
            DeskBackends(
                journal=self._open_journal,
                log=self._trade_log(),
                desk=self.trading(),
                live=live,
                open_gate=lambda account, now, why: self._open_gate(
                    account, now, owned=not live, entries=True, watch_only=why
                ),
                cycles=self.cycles,
                lock=lambda account: desk_lock(self._settings.home, desk_name(account)),
                now=unix_millis,
                evaluator=self.evaluator(),
                collect=collect if live else None,
                permit=self.live_start().permit,
                shadow=self.own_strategies(),
                find_account=self.find_account,
                venues=self._settings.routes().venues,
                targets=self._daily_targets(),
                shares=parse_shares(self._settings),
                beside=tuple(act for act in (push, keep_room) if act is not None),
                ping=self._build_ping("trade"),
            )
        )

    def _daily_targets(self) -> DailyTargets:
        from zuno.trading.service.daily_targets import DailyTargets, decide
        from zuno.trading.service.strategies import find_spot

        strategies = self.strategies()

        def find_venue(symbol: Symbol) -> Venue:
            spot = find_spot(self._catalogue.read(), symbol)
            return symbol.venue if spot is None else spot.venue

        decided = decide(self.evaluator().tilts, self.own_strategies())
        refresh = self._refresh_market if self._settings.market == "live" else None
        return DailyTargets(strategies.read_view, find_venue, decided, refresh)

    def evaluator(self) -> Evaluator:
        """One per process, because it remembers how far it has read."""
        from zuno.trading.learn.evaluator import Evaluator, LearningBackends
        from zuno.wiring.cycles import build_run_context
        from zuno.wiring.memory import memory_file, print_progress
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
                    tell=print_progress,
                    fees=read_fees(self._settings),
                    refresh=self._refresh_market if self._settings.market == "live" else None,
                )
            )
        return self._evaluator

    async def _refresh_market(self, symbol: Symbol) -> None:
        with suppress(Unavailable):
            await self.trading().moment(symbol, None)

    def _memory_index(self) -> MemoryIndex:
        from zuno.wiring.memory import extract_by_models, memory_index

        if self._memory is None:
            extract = extract_by_models(self._open_journal, self._models)
            self._memory = memory_index(self._settings, self._settings.home, extract)
        return self._memory

    def memory(self) -> MemoryDesk:
        from zuno.trading.learn.memory_book import LessonBook, MemoryBook, MemoryIndexes
        from zuno.trading.service.memory import MemoryDesk
        from zuno.wiring.memory import memory_file, print_progress

        store, book = self._recordings.selected_store(), MemoryBook(self._read_journal)
        return MemoryDesk(
            self._read_journal,
            book,
            LessonBook(self._read_journal),
            MemoryIndexes(book, [memory_file(self._settings.home), self._memory_index()], print_progress),
            lambda: store.origin.label,
            unix_millis if self._settings.market == "live" else None,
            self.markets,
        )

    def audit(self) -> JournalAudit:
        from zuno.journal.audit import JournalAudit

        journal = self._journal_to_read()
        return JournalAudit(journal, lambda: self._trade_log().verify_snapshots(), lambda: check_editions(journal))

    def _trade_log(self) -> JournalTradeLog:
        from zuno.adapters.account.trade_log import JournalTradeLog

        if self._account_log is None:
            self._account_log = JournalTradeLog(self._open_journal, self._read_journal, self.restored)
        return self._account_log

    def _exchange_account(self) -> str:
        from zuno.wiring.venues import environment_account

        return environment_account(self._settings)

    async def _find_named_exchanges(self, account: str) -> tuple[Venue, ...]:
        from zuno.trading.service.live_start import find_traded_exchanges

        return find_traded_exchanges((await self._trade_log().history(account)).mandates)

    async def _open_exchanges(self, account: str, *, named: bool = True) -> Mapping[Venue, OrderVenue]:
        """Exchanges with keys of this account that its mandate names; `named` false: those of the routes, to read."""
        from zuno.trading.service.account_page import list_held
        from zuno.wiring.venues import build_venue, exchanges_with_keys, list_venues

        known = await self._find_named_exchanges(account)
        if not named:
            known = (*known, *DEFAULT_VENUES, *self._settings.routes().venues, *list_venues(self._settings, account))
        usable = [venue for venue in exchanges_with_keys(self._settings, account) if venue in known]
        held = dict.fromkeys(list_held(await self._trade_log().history(account)))
        # What is held keeps its name: another market of the same coin has to wait until it is closed.
        others = [symbol for symbol in self._settings.markets if symbol.base not in {known.base for known in held}]
        for venue in usable:
            if (account, venue) not in self._venues:
                self._venues[account, venue] = build_venue(self._settings, venue, account, (*held, *others))
        return {venue: self._venues[account, venue] for venue in usable}

    async def _open_gate(
        self,
        account: str,
        now: Callable[[], Millis],
        *,
        owned: bool = False,
        entries: bool = False,
        watch_only: str | None = None,
    ) -> OrderGate:
        """`owned`: no other process writes. `entries`: positions may be opened at exchanges. `watch_only`: why not."""
        from zuno.adapters.account.trade_log import OwnedTradeLog
        from zuno.wiring.orders import build_exchange_gate, build_paper_gate, parse_shares

        killed = partial(self.kill_lock.why_locked, short_name(account))
        if account_mode(account) != "paper":
            venues = await self._open_exchanges(account)
            log, live = self._trade_log(), self._settings.market == "live"
            store = self._recordings.selected_store() if live else None
            find_stale = self._find_stale if account_mode(account) == "live" else None
            build = partial(build_exchange_gate, log, account, venues, now, killed, settings=self._settings)
            return build(entries=entries, watch_only=watch_only, store=store, find_stale=find_stale)
        paper_log: AccountLog = OwnedTradeLog(self._trade_log()) if owned else self._trade_log()
        book: TradingBook | None = None
        with suppress(Unavailable):  # a kill waits for no log that can be read
            book = await self._trade_log().history(account)
        if (entries or book is None or not book.count) and (shares := parse_shares(self._settings)) is not None:
            await self.own_strategies().check_shares(shares)
        store, catalogue = self._recordings.selected_store(), self._catalogue.read()
        return build_paper_gate(self._settings, store, paper_log, account, now, killed, catalogue, book)
