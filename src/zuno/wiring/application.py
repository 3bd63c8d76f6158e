"""The application of one process: every use case with its adapters, opened on first use."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from errno import EACCES, EPERM, EROFS
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zuno.adapters.log_file import start_log, stop_log
from zuno.kernel.errors import Refused, Unavailable, UsageError, ZunoError
from zuno.settings import Settings, agent_roles, read_settings
from zuno.wiring.chains import LOCAL_CHAINS, unusable_home
from zuno.wiring.lp_desk import LpWiring
from zuno.wiring.outbox import PushSources
from zuno.wiring.trading_desk import TradingWiring
from zuno.wiring.version import code_version

if TYPE_CHECKING:
    from zuno.adapters.helper_process import Handle
    from zuno.adapters.keys.passphrases import Passphrase
    from zuno.doors.agents import Agents
    from zuno.doors.chat.desk import ChatDesk, Speaker
    from zuno.doors.config import ConfigView
    from zuno.doors.costs import ModelCosts
    from zuno.doors.doctor import Doctor
    from zuno.doors.logs import Logs
    from zuno.doors.reading.model_help import Interpreter
    from zuno.doors.telegram_door import TelegramDoor
    from zuno.doors.web_door import WebDoor
    from zuno.doors.web_logins import Logins
    from zuno.doors.zuno import AssistantDoor, ShellStart
    from zuno.journal.decision_view import JournalUpgradeView, ReplayView
    from zuno.journal.port import Journal
    from zuno.lab.lp.service import LpLab
    from zuno.lab.service import StudyDesk
    from zuno.llm.ask import ModelContext
    from zuno.llm.port import Attempt
    from zuno.trading.service.paper_book import Inventory


_CHAT: Final = "zuno.doors.chat"
_INSTALL_MCP: Final = "`make mcp` in a checkout, or pip install 'zuno[mcp]'"


def open_zuno(home: str | None) -> Application:
    """Zuno at a home given on the command line or by the environment."""
    if home is not None and not home.strip():
        raise UsageError("--home needs a folder.")
    settings = read_settings(os.environ, None if home is None else Path(home))
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
        self._log = start_log(settings.home, settings.secrets()) if sealed is None else None

    def place(self) -> ShellStart:
        from zuno.doors.zuno import ShellStart

        chain = self._settings.default_chain()
        try:
            wallet: str | None = self._signers.of(chain).address
        except Refused:
            wallet = None
        return ShellStart(self._settings.home, chain, wallet)

    def write_file(self, path: Path, content: bytes) -> None:
        from zuno.adapters.atomic_file import keep_files_private, replace_file

        made = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content, durable=False)
        if not path.resolve().is_relative_to(self._settings.home.resolve()):  # a page may be meant for a web server
            for place in (path, *made):
                place.chmod((0o666 if place is path else 0o777) & ~keep_files_private())

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
        """The desk that answers free text, for a door that keeps it as long as its process lives."""
        from zuno.doors.chat.desk import ROLE, ChatDesk
        from zuno.lp.service.recommend import new_request_id

        viewers_ask = self._settings.budget_tokens_per_day_viewers > 0

        async def model_context(request_id: str, who: Speaker) -> ModelContext | None:
            registry = self._registry()
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

    def agents(self) -> Agents:
        from zuno.doors.agents import Agents
        from zuno.wiring.models import missing_models

        return Agents(self._registry(), self._meshes.keeper().glance, agent_roles(), missing_models())

    def costs(self) -> ModelCosts:
        from zuno.doors.costs import ModelCosts

        return ModelCosts(self._journal_to_read())

    def doctor(self) -> Doctor:
        from zuno.adapters.clock.system import unix_millis
        from zuno.trading.data.account_reader import AccountReader
        from zuno.trading.learn.memory_book import MemoryBook
        from zuno.wiring import doctor
        from zuno.wiring.memory import memory_index
        from zuno.wiring.venues import build_venue_check

        account, store = self._exchange_account(), self._recordings.selected_store
        record = doctor.build_record_check(lambda: self.live_start().read_record(store().origin.label))
        return doctor.build_doctor(
            self._settings,
            key=self._key(),
            journal=self._read_journal,
            data=lambda: self.data().status(),
            agents=lambda: self.agents().status(),
            chains=self._chains,
            now=unix_millis,
            more=[
                doctor.build_memory_check(
                    lambda: memory_index(self._settings, self._settings.home), lambda: MemoryBook(self._read_journal)
                ),
                doctor.build_push_check(self._settings, self._outbox, unix_millis),
                build_venue_check(self._settings, unix_millis, lambda: AccountReader(self._trade_log()).read(account)),
                doctor.build_kill_check(self.kill_lock),
                doctor.build_mandate_check(self._trade_log, unix_millis, account),
                *([] if self._settings.binance_demo else [record]),
            ],
        )

    def logs(self) -> Logs:
        from zuno.adapters.log_file import log_path, read_log
        from zuno.doors.logs import Logs

        home = self._settings.home
        return Logs(str(log_path(home)), lambda: read_log(home))

    def config(self) -> ConfigView:
        from zuno.doors.config import ConfigView, SettingView

        settings = self._settings
        return ConfigView(
            home=str(settings.home),
            chain=settings.default_chain(),
            chains=settings.list_chains(),
            market=settings.market,
            recording="own" if self._recordings.reads_own else "synthetic",
            live=settings.live,
            settings=tuple(SettingView(name=name, value=value) for name, value in settings.describe_changed().items()),
        )

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
        return build_web(self._settings, self, self.kill_lock, helper, host, port, public_url, self._probe_journal)

    def web_logins(self) -> Logins:
        from zuno.wiring.web import build_logins

        return build_logins(self._settings.home)

    def assistant(self) -> AssistantDoor:
        if find_spec("mcp") is None:
            raise Unavailable(f"The server for an assistant needs the library mcp: {_INSTALL_MCP}.")
        from zuno.doors.mcp.server import AssistantServer

        return AssistantServer(self, os.urandom, version("zuno"))

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

        async def read_amounts() -> Mapping[str, Decimal]:
            from zuno.lp.service.positions import token_amounts

            return token_amounts(await self.lp(chain).positions())

        return read_amounts

    def refresh(self) -> None:
        self._chains.refresh()

    async def close(self) -> None:
        if self._log is not None:
            stop_log(self._log)
            self._log = None
        if "_meshes" in vars(self):
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


async def open_stops(settings: Settings, passphrase: Passphrase | None) -> Handle:
    """Opens what carries stops out in a process of its own; the account is read once so that the first stop finds
    everything loaded."""
    from zuno.doors.web.stops import StopDesk

    zuno = Application(settings)
    desk = StopDesk(zuno)
    with suppress(ZunoError):
        await zuno.account().open_risk()
        zuno.unlock_wallet(lambda prompt: passphrase)
    desk.watch_kills(zuno.kill_lock.list_kills)
    return desk.handle
