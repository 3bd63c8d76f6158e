"""The application of one process: every use case with its adapters, opened on first use."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from errno import EACCES, EPERM, EROFS
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from zuno.adapters.atomic_file import keep_files_private, read_foreign_file, replace_file
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.log_file import log_path, read_log, start_log, stop_log
from zuno.kernel.accounts import DEMO_ACCOUNT, LIVE_ACCOUNT, account_mode
from zuno.kernel.errors import NotFound, Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.installation import name_install, read_version
from zuno.kernel.units import Millis, Seconds
from zuno.settings import Settings, agent_roles, examine_settings, read_settings
from zuno.wiring.chains import LOCAL_CHAINS, unusable_home
from zuno.wiring.lp_desk import LpWiring
from zuno.wiring.models import missing_models
from zuno.wiring.outbox import PushSources
from zuno.wiring.trading_desk import TradingWiring
from zuno.wiring.version import code_version

if TYPE_CHECKING:
    from zuno.adapters.helper_process import Handle
    from zuno.adapters.keys.passphrases import Passphrase
    from zuno.doors.agents import Agents
    from zuno.doors.chat.desk import ChatDesk, Speaker
    from zuno.doors.config import ConfigCheckView, ConfigView
    from zuno.doors.costs import ModelCosts
    from zuno.doors.doctor import Doctor
    from zuno.doors.home import HomeDesk
    from zuno.doors.logs import Logs
    from zuno.doors.metrics import DeskMetrics
    from zuno.doors.reading.model_help import Interpreter
    from zuno.doors.serve import Supervisor
    from zuno.doors.status import StatusView
    from zuno.doors.telegram_door import TelegramDoor
    from zuno.doors.web_door import WebDoor
    from zuno.doors.web_logins import Logins
    from zuno.doors.zuno import AssistantDoor, ShellStart
    from zuno.journal.compaction import CompactionView
    from zuno.journal.decision_view import JournalUpgradeView, ReplayView
    from zuno.journal.port import Journal
    from zuno.kernel.taxable import FiatRates
    from zuno.lab.lp.service import LpLab
    from zuno.lab.service import StudyDesk
    from zuno.llm.ask import ModelContext
    from zuno.llm.port import Attempt
    from zuno.lp.ports.hedging import ShortDesk
    from zuno.markets.market import Symbol
    from zuno.trading.execute.order_gate import OrderGate
    from zuno.trading.rules.trading_book import TradingBook
    from zuno.trading.service.account import AccountDesk
    from zuno.trading.service.account_page import Inventory, ReadInventory
    from zuno.trading.strategies.port import StrategyView


_LOG: Final = logging.getLogger(__name__)
_CHAT: Final = "zuno.doors.chat"


def open_zuno(home: str | None, *, mending: bool = False) -> Application:
    """`home`: as given on the command line. `mending`: by the environment alone where the file cannot be used."""
    if home is not None and not home.strip():
        raise UsageError("--home needs a folder.")
    place = None if home is None else Path(home)
    settings = examine_settings(os.environ, place).settings if mending else read_settings(os.environ, place)
    return Application(settings, sealed=_make_home(settings.home))


def _make_home(home: Path) -> str | None:
    """Create the home, or return why nothing can be written there: the simulated world can still be read."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in {EACCES, EPERM, EROFS}:
            raise unusable_home(home, str(error.strerror)) from error
        return str(error.strerror)
    return None if os.access(home, os.W_OK | os.X_OK, effective_ids=True) else os.strerror(EACCES)


class Application(LpWiring, TradingWiring):
    """All use cases of one process: both desks, and what is asked of them together."""

    def __init__(self, settings: Settings, sealed: str | None = None) -> None:
        super().__init__(settings, sealed)
        as_json = settings.log_format == "json"
        self._log = start_log(settings.home, settings.secrets(), json_lines=as_json) if sealed is None else None
        self._metrics: DeskMetrics | None = None

    def place(self) -> ShellStart:
        from zuno.doors.zuno import ShellStart

        chain = self._settings.default_chain()
        try:
            wallet: str | None = self._signers.of(chain).address
        except Refused:
            wallet = None
        return ShellStart(self._settings.home, chain, wallet)

    def write_file(self, path: Path, content: bytes) -> None:
        made = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content, durable=False)
        if not path.resolve().is_relative_to(self._settings.home.resolve()):  # a page may be meant for a web server
            for place in (path, *made):
                place.chmod((0o666 if place is path else 0o777) & ~keep_files_private())

    def read_file(self, path: Path, most: int) -> bytes:
        content = read_foreign_file(path, most)
        if content is None:
            raise NotFound(f"{path} is not there.")
        return content

    def interpreter(self) -> Interpreter:
        from zuno.doors.reading.model_help import ROLE, Interpreter
        from zuno.lp.service.recommend import new_request_id

        async def model_context() -> ModelContext | None:
            registry = self._models.registry()
            if not registry.models_for(ROLE, 0).models:
                return None
            journal, request_id = await self._open_journal(), new_request_id(os.urandom(16))
            return self._models.model_context(journal, request_id, registry, desk="zuno.doors.reading")

        return Interpreter(model_context)

    def chat_desk(self) -> ChatDesk:
        """The desk that answers free text, for a door that keeps it as long as its process lives."""
        from zuno.doors.chat.desk import ROLE, ChatDesk
        from zuno.lp.service.recommend import new_request_id

        viewers_ask = self._settings.budget_tokens_per_day_viewers > 0

        async def model_context(request_id: str, who: Speaker) -> ModelContext | None:
            registry = self._models.registry()
            if (who.viewer and not viewers_ask) or not registry.models_for(ROLE, 0).models:
                return None
            journal = await self._open_journal()
            return self._models.model_context(journal, request_id, registry, desk=_CHAT, viewer=who.viewer)

        return ChatDesk(self, self._open_journal, model_context, lambda: new_request_id(os.urandom(16)))

    async def replay_chat(self, request_id: str) -> ReplayView | None:
        from zuno.adapters.model.recorded import RecordedModels
        from zuno.doors.chat.replay import ChatReplay

        async def forget(attempt: Attempt) -> None:
            return None

        def rehearse(journal: Journal, attempts: Sequence[Attempt]) -> tuple[ModelContext, Callable[[], Sequence[str]]]:
            registry = RecordedModels(attempts)
            model_context = self._models.model_context(journal, "", registry, limited=False, desk=_CHAT)
            return replace(model_context, record=forget), registry.list_differences

        return await ChatReplay(self._read_journal, rehearse, code_version).replay(request_id)

    async def upgrade_journal(self) -> JournalUpgradeView:
        from zuno.journal.decision_view import JournalUpgradeView

        await self._open_journal()  # `Refused` where the home cannot be written
        runs, plans = await self.cycles().store_missing_views(), await self.archive().store_missing_views()
        return JournalUpgradeView(stored=runs.stored + plans.stored, not_stored=runs.not_stored + plans.not_stored)

    async def compact_home(self, older: Seconds | None) -> CompactionView:
        await self._open_journal()
        return await self.compaction().compact(older)

    def agents(self) -> Agents:
        from zuno.doors.agents import Agents

        return Agents(self._models.registry(), self._meshes.keeper().glance, agent_roles(), missing_models())

    def costs(self) -> ModelCosts:
        from zuno.doors.costs import ModelCosts

        return ModelCosts(self._journal_to_read())

    def doctor(self) -> Doctor:
        from zuno.trading.learn.memory_book import MemoryBook
        from zuno.trading.model.sleeves import NEW_PAPER
        from zuno.wiring import doctor
        from zuno.wiring.memory import memory_index
        from zuno.wiring.orders import parse_shares
        from zuno.wiring.venues import build_venue_check

        account = self._exchange_account()
        return doctor.build_doctor(
            self._settings,
            key=self._key(),
            journal=self._read_journal,
            data=lambda: self.data().status(),
            agents=lambda: self.agents().status(),
            chains=self._chains,
            now=unix_millis,
            more=[
                doctor.build_config_check(lambda: self.check_config(None)),
                doctor.build_memory_check(
                    lambda: memory_index(self._settings, self._settings.home), lambda: MemoryBook(self._read_journal)
                ),
                doctor.build_push_check(self._settings, self._outbox, unix_millis),
                build_venue_check(self._settings, unix_millis, lambda name: self._trade_log().history(name)),
                doctor.build_kill_check(self.kill_lock),
                *doctor.build_live_checks(
                    account,
                    self._trade_log,
                    self.live_start,
                    lambda: self._recordings.selected_store().origin.label,
                    lambda: parse_shares(self._settings) or NEW_PAPER,
                    unix_millis,
                ),
            ],
        )

    def list_chains(self) -> tuple[str, ...]:
        return self._settings.list_chains()

    def reporting(self) -> tuple[str, str]:
        return self._settings.time_zone, self._settings.reporting_currency

    async def read_rates(self, currencies: Sequence[str], first: date, last: date, file: Path | None) -> FiatRates:
        from zuno.adapters.venues.macro import fetch_rates, read_rates_file

        if file is not None:
            return read_rates_file(file)
        return await fetch_rates(self._markets.open_fred(), currencies, first, last)

    def home_desk(self) -> HomeDesk:
        from zuno.wiring.home import HomeKeeper

        return HomeKeeper(self._settings, self._key(), self.kill_lock, self._journal_to_read, self._trade_log)

    def metrics(self) -> DeskMetrics:
        if find_spec("prometheus_client") is None:
            raise Unavailable(f"Figures for Prometheus need its library: {name_install('web')}.")
        from time import monotonic

        from zuno.adapters.store.alerts_file import AlertsFile
        from zuno.doors.metrics import DeskMetrics, MetricSources
        from zuno.trading.model.wanted import wanted_series
        from zuno.wiring.venues import exchanges_with_keys

        settings, home = self._settings, self._settings.home

        async def read_feeds() -> Mapping[str, Millis]:
            if settings.market != "live":
                return {}
            several = list(dict.fromkeys(series for symbol in self.markets for series in wanted_series(symbol)))
            known = await self._recordings.selected_store().newest_known(several)
            return {str(series): at for series, at in zip(several, known, strict=True) if at is not None}

        def open_accounts() -> list[AccountDesk]:
            keyed = (name for name in (LIVE_ACCOUNT, DEMO_ACCOUNT) if exchanges_with_keys(settings, name))
            return [self.account(name) for name in (None, *keyed)]

        if self._metrics is None:
            sources = MetricSources(
                journal=self._read_journal,
                accounts=open_accounts,
                feeds=read_feeds,
                alerts=AlertsFile(home).book,
                outbox=self._outbox,
                journal_bytes=lambda: sum(file.stat().st_size for file in home.glob("journal.db*")),
                roles=frozenset(role for roles in agent_roles().values() for role in roles),
            )
            self._metrics = DeskMetrics(sources, unix_millis, monotonic)
        return self._metrics

    async def serve_metrics(self) -> None:
        port = self._settings.metrics_port
        if port is None:
            return
        try:
            metrics = self.metrics()
        except Unavailable as error:  # the desk goes on without
            _LOG.warning("%s", error)
            return
        from zuno.doors.metrics import serve_metrics

        await serve_metrics(metrics, self._settings.metrics_host, port)

    def logs(self) -> Logs:
        from zuno.doors.logs import Logs

        home = self._settings.home
        return Logs(str(log_path(home)), lambda: read_log(home))

    def config(self, *, private: bool = False) -> ConfigView:
        from zuno.doors.config import ConfigView
        from zuno.wiring.config import list_settings

        settings = self._settings
        reading = replace(examine_settings(os.environ, settings.home), settings=settings)
        return ConfigView(
            home=str(settings.home),
            file=str(reading.file.path) if reading.file.found else None,
            chain=settings.default_chain(),
            chains=settings.list_chains(),
            market=settings.market,
            recording="own" if self._recordings.reads_own else "synthetic",
            live=settings.live,
            settings=list_settings(reading, private=private),
        )

    def check_config(self, file: Path | None) -> ConfigCheckView:
        from zuno.wiring.config import check_config

        return check_config(self._settings.home, file)

    def write_config(self) -> ConfigCheckView:
        from zuno.wiring.config import write_config

        self._chains.require_writable()
        return write_config(self._settings.home)

    def lab(self, cluster: str | None = None) -> StudyDesk:
        from zuno.wiring.lab import build_study_desk

        return build_study_desk(self._settings, self._recordings, cluster)

    def lp_lab(self, cluster: str | None = None) -> LpLab:
        from zuno.wiring.lab_models import choose_runner, open_reports
        from zuno.wiring.lp_lab import build_lp_lab

        self._chains.require_writable()  # hours of work end in a report
        home = self._settings.home
        return build_lp_lab(home, open_reports(home), choose_runner(cluster))

    def telegram(self) -> TelegramDoor:
        from zuno.wiring.telegram import build_telegram

        self._chains.require_writable()
        return build_telegram(self._settings, self, self._open_journal, self._push_sources(), self.chat_desk)

    def web(self, host: str, port: int, public_url: str | None = None) -> WebDoor:
        from zuno.adapters.helper_process import HelperProcess
        from zuno.wiring.web import build_web

        self._chains.require_writable()
        helper = HelperProcess(open_stops, lambda: (self._settings, self.typed_passphrase))
        probes = (self._probe_journal, self.find_troubles)
        return build_web(self._settings, self, self.kill_lock, helper, host, port, public_url, *probes)

    def supervisor(self, without: Sequence[str], options: Mapping[str, str]) -> Supervisor:
        from zuno.wiring.serve import build_supervisor

        self._chains.require_writable()
        return build_supervisor(self._settings, without, options, self._outbox(), self._open_journal)

    async def status(self) -> StatusView:
        from zuno.adapters.store.alerts_file import AlertsFile
        from zuno.trading.model.trade_events import account_name
        from zuno.wiring.serve import read_status

        async def read_book() -> tuple[str, TradingBook, Millis]:
            name = self._exchange_account() if self._settings.live else None
            account = account_name(self._recordings.selected_store().origin.label, name)
            book = await self._trade_log().history(account)
            return account, book, book.recorded_moment(live=self._settings.market == "live") or unix_millis()

        home = self._settings.home
        return await read_status(home, self._read_journal, AlertsFile(home).book, read_book, self.kill_lock)

    def find_troubles(self) -> tuple[str, ...]:
        from zuno.wiring.serve import read_report

        report = read_report(self._settings.home, running=True)
        return () if report is None else report.list_troubles(unix_millis())

    def web_logins(self) -> Logins:
        from zuno.wiring.web import build_logins

        return build_logins(self._settings.home)

    def assistant(self) -> AssistantDoor:
        if find_spec("mcp") is None:
            raise Unavailable(f"The server for an assistant needs the library mcp: {name_install('mcp')}.")
        from zuno.doors.mcp.server import AssistantServer

        return AssistantServer(self, os.urandom, read_version())

    def _push_sources(self) -> PushSources:
        async def paint(account: str) -> bytes | None:
            market, _, name = account.partition(":")[2].partition(":")
            view, picture = await self.account(name or None if market else account).performance()
            return picture if view.account == account else None

        return PushSources(self._outbox(), self._open_journal, self._trade_log, paint)

    def _inventory(self) -> Inventory:
        chain = self._settings.default_chain()
        if self._settings.market != "live":
            return "liquidity positions are read where the market is live; `zuno trade book lp` states them by hand"
        if chain in LOCAL_CHAINS:
            return f"the default chain, {chain}, is invented: its liquidity positions are not counted"
        return self._read_token_amounts

    def _simulated_inventory(self) -> ReadInventory | None:
        local = self._settings.default_chain() in LOCAL_CHAINS
        return self._read_token_amounts if local and self._settings.market != "live" else None

    async def _read_token_amounts(self) -> Mapping[str, Decimal]:
        from zuno.lp.service.positions import token_amounts

        return token_amounts(await self.lp(None).positions())

    async def _list_hedged(self, account: str) -> tuple[str, ...]:
        shorts = await self.hedges.list_shorts(account)
        return tuple(
            f"{short.quantity.normalize():f} {short.symbol} of position {short.position_id} on {short.chain}"
            for short in shorts
        )

    @cached_property
    def _shorts(self) -> ShortDesk:
        from zuno.trading.model.trade_events import paper_account
        from zuno.wiring.hedges import SleeveShorts, keep_days

        live = self._settings.market == "live"

        async def read_now(symbol: Symbol) -> Millis:
            return unix_millis() if live else (await self._desk(None, (symbol,)).newest_moment(None)).as_of

        account: list[str] = []  # read once

        async def find_play_account() -> str:
            if account:
                return account[0]
            desk = self._marked_desk()
            await desk.moment(self._settings.markets[0], None)
            account.append(paper_account(desk.origin, "" if live else "lp-hedge"))
            return account[0]

        async def open_gate(account: str) -> OrderGate:
            if account_mode(account) != "paper" or live:
                gate = await self._open_gate(account, unix_millis, entries=True)
            else:
                at = (await self._marked_desk().newest_moment(None)).as_of
                gate = await self._open_gate(account, lambda: Millis(max(at, gate.book.newest)), entries=True)
            if account_mode(account) == "paper":
                await gate.set_clock(recorded=not live)
            return gate

        async def read_view(symbol: Symbol, at: Millis) -> StrategyView:
            from zuno.trading.data.daily_histories import read_days
            from zuno.trading.strategies.port import StrategyView

            days = await read_days(self._recordings.selected_store(), (symbol,), at)
            return StrategyView(at, {history.name: history for history in days})

        exchange = self._exchange_account() if self._settings.live else None
        days = keep_days(read_now, read_view)
        return SleeveShorts(open_gate, find_play_account, exchange, self._catalogue.read, days, live)

    def refresh(self) -> None:
        self._chains.refresh()

    async def close(self) -> None:
        if self._log is not None:
            stop_log(self._log)
            self._log = None
        if "_meshes" in vars(self):
            await self._meshes.close()
        sources: list[Any] = [self._chains, self._models, self._markets, *self._venues.values(), self._recordings]
        stores: list[Any] = [self._own_samples, self._own_outbox, self._journal]
        self._venues.clear()
        self._own_samples = self._own_outbox = self._journal = None
        for opened in (*sources, *stores):
            if opened is not None:
                await opened.close()


async def open_stops(settings: Settings, passphrase: Passphrase | None) -> Handle:
    """Opens what carries stops out, in its own process; the account is read so that the first stop finds it loaded."""
    from zuno.doors.web.stops import StopDesk

    zuno = Application(settings)
    desk = StopDesk(zuno)
    with suppress(ZunoError):
        await zuno.account().open_risk()
        zuno.unlock_wallet(lambda prompt: passphrase)
    desk.watch_kills(zuno.kill_lock.list_kills)
    return desk.handle
