"""The only place where a socket meets its plug."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from errno import EACCES, EPERM, EROFS
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.saved import SimFile
from zuno.adapters.chain.world import DEFAULT_SEED, DEVNET, SIM
from zuno.app.journal import JournalAudit
from zuno.app.lp import LpDesk
from zuno.app.playground import Devnet, Playground, SimPlayground
from zuno.domain.chains import CHAINS, ChainInfo, chain_named
from zuno.domain.errors import Refused, Unavailable, Usage
from zuno.domain.market import Pair
from zuno.domain.units import Address, HexId
from zuno.ports.chain import Chain
from zuno.ports.journal import JournalStore
from zuno.ports.market import Feeds, PriceFeed
from zuno.settings import Settings, read_settings

if TYPE_CHECKING:
    from zuno.adapters.chain.devnet.running import DevnetProcess
    from zuno.adapters.keys.ed25519 import KeyFile
    from zuno.adapters.keys.wallets import WalletFolder
    from zuno.adapters.market.coingecko import CoinGecko
    from zuno.adapters.store.samples import SqliteSamples
    from zuno.agents.ask import Minds
    from zuno.agents.breaker import Breakers
    from zuno.app.alerts import AlertDesk
    from zuno.app.archive import Archive, Recorded, Rehearsal
    from zuno.app.chairs import Chairs
    from zuno.app.debate import Advice, Room
    from zuno.app.execution import Execution
    from zuno.app.interpreting import Interpreter
    from zuno.app.monitor import Monitor, Watch
    from zuno.app.place import Place
    from zuno.app.wallets import WalletKeeper, WalletOnChain
    from zuno.desks.lp.scout import Observe
    from zuno.execution.hands import Hands, Limits, Pace
    from zuno.memory.journal import ChainedJournal
    from zuno.messages.debate import Context, FlowCreateStart, FlowStart
    from zuno.ports.journal import Journal
    from zuno.ports.model import Attempt, Seats
    from zuno.ports.notifier import Notifier
    from zuno.ports.spending import Signer, Writer

_CHECKOUT = Path(__file__).resolve().parents[2]
OBSERVING_SECONDS = 300.0
LOCAL_LOOK = 0.2
"""Seconds between two looks for a receipt on a chain that mines at once."""


def open_zuno(home: str | None) -> House:
    """Zuno for this process, at a home given by hand or by the environment."""
    if home is not None and not home.strip():
        raise Usage("--home needs a folder.")
    settings = read_settings(os.environ, None if home is None else Path(home))
    return House(settings, sealed=_make_home(settings.home))


def _make_home(home: Path) -> str | None:
    """Make the home, or say why nothing can be written there: the simulated world can still be read."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in {EACCES, EPERM, EROFS}:
            raise _unusable(home, str(error.strerror)) from error
        return str(error.strerror)
    return None if os.access(home, os.W_OK | os.X_OK, effective_ids=True) else os.strerror(EACCES)


def _unusable(home: Path, why: str) -> Unavailable:
    return Unavailable(f"{home} cannot be used as Zuno's home ({why}); choose another --home.")


def _complain(line: str) -> None:
    sys.stderr.write(f"zuno: {line}\n")
    sys.stderr.flush()


@cache
def code_version() -> str:
    """The installed version and the first digits of what its files hash to: an edited checkout is another version."""
    from hashlib import sha256
    from importlib.metadata import version

    package = Path(__file__).parent
    whole = sha256()
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            whole.update(f"{path.relative_to(package).as_posix()}\n{path.stat().st_size}\n".encode())
            whole.update(path.read_bytes())
    return f"{version('zuno')}+{whole.hexdigest()[:12]}"


class House:
    """The plugs of one process, opened when first asked for."""

    def __init__(self, settings: Settings, sealed: str | None = None) -> None:
        """`sealed`: why nothing can be written in the home, if so."""
        self._settings = settings
        self._sealed = sealed
        self._chains: dict[str, Chain] = {}
        self._own_signer: Signer | None = None
        self._sim = SimChain(SimFile(settings.home))
        self._service: CoinGecko | None = None
        self._book: ChainedJournal | None = None
        self._started = False
        self._offline = False
        self._breakers: Breakers | None = None
        self._open_seats: Seats | None = None
        self._own_samples: SqliteSamples | None = None
        self._devnet_url = ""

    def lp(self, chain: str | None) -> LpDesk:
        opened = self._chain(self._settings.default_chain() if chain is None else chain)
        return LpDesk(opened, lambda pool_id: self._feeds(opened, pool_id))

    def audit(self) -> JournalAudit:
        return JournalAudit(self.journal())

    def advice(self, *, offline: bool = False) -> Advice:
        from zuno.app.debate import Advice

        self._offline = offline
        return Advice(self._room, self._opened_journal, self._settings.default_chain(), self._settings.risk_profile)

    def archive(self) -> Archive:
        from zuno.app.archive import Archive

        return Archive(self._opened_journal, self._rehearse, code_version)

    def journal(self) -> ChainedJournal:
        """The one journal of this process: SQLite in the home, or Postgres where a URL is set."""
        from zuno.adapters.clock.system import unix_millis
        from zuno.memory.journal import ChainedJournal

        if self._book is None:
            self._must_write()
            key = self._key()
            secrets = self._settings.secrets()
            self._book = ChainedJournal(self._store(key), key, code=code_version, now=unix_millis, secrets=secrets)
        return self._book

    def alerts(self) -> AlertDesk:
        from zuno.adapters.clock.system import SystemClock
        from zuno.adapters.store.alerts_file import AlertsFile
        from zuno.app.alerts import AlertDesk

        return AlertDesk(AlertsFile(self._settings.home), self._opened_journal, SystemClock())

    def monitor(self, *, announce: bool = False) -> Monitor:
        from zuno.adapters.clock.system import SystemClock
        from zuno.adapters.store.alerts_file import AlertsFile, MonitorSeat
        from zuno.app.alerts import Courier
        from zuno.app.monitor import Monitor

        self._must_write()
        store = AlertsFile(self._settings.home)
        return Monitor(
            watches=self._watches,
            chain_of=self._watched_chain,
            store=store,
            samples=self._samples(),
            seat=MonitorSeat(self._settings.home),
            journal=self._opened_journal,
            courier=Courier(store, self._notifier(announce), _complain),
            clock=SystemClock(),
            period=self._settings.monitor_interval_ms / 1000,
            tell=_complain,
        )

    def _notifier(self, announce: bool) -> Notifier | None:
        settings = self._settings
        token, chat = settings.telegram_bot_token, settings.telegram_chat_id
        if (token is None) != (chat is None):
            missing = "ZUNO_TELEGRAM_BOT_TOKEN" if token is None else "ZUNO_TELEGRAM_CHAT_ID"
            raise Usage(f"Telegram needs both a bot and a chat: {missing} is not set.")
        if token is not None and chat is not None:
            from zuno.adapters.notifier.telegram import TelegramNotifier

            return TelegramNotifier(token.get_secret_value(), chat, settings.telegram_api_base_url)
        if not announce:
            return None
        from zuno.adapters.notifier.console import ConsoleNotifier

        return ConsoleNotifier(_complain)

    def _watches(self) -> tuple[Watch, ...]:
        """Every wallet worth watching now: the devnet comes and goes, and wallets may be added while it runs."""
        from zuno.app.monitor import Watch

        settings = self._settings
        default, wallet = settings.default_chain(), settings.agent_wallet_address
        live = [chain.name for chain in CHAINS if settings.rpc_urls(chain.name)]
        kept = [one.address for one in self._wallet_folder().all()]
        owners = dict.fromkeys([*([] if wallet is None else [Address(wallet)]), *kept])
        watches = [Watch(name, owner) for name in live for owner in owners]
        if default == "sim" and (settings.chain_id == "sim" or not watches):
            watches.append(Watch("sim", local=True))
        if default == "devnet" or self._devnet_runs():
            watches.append(Watch("devnet", local=True))
        return tuple(watches)

    def _devnet_runs(self) -> bool:
        try:
            self._devnet_process().url()
        except Unavailable:
            return False
        return True

    def _watched_chain(self, name: str) -> Chain:
        """A chain as it is now: another process may have moved the simulation or started the devnet anew."""
        if name == "sim":
            return SimChain(SimFile(self._settings.home))
        if name == "devnet" and (url := self._devnet_process().url()) != self._devnet_url:
            self._chains.pop(name, None)
            self._devnet_url = url
        return self._chain(name)

    def _samples(self) -> SqliteSamples:
        from zuno.adapters.store.samples import SqliteSamples

        self._own_samples = self._own_samples or SqliteSamples(self._settings.home)
        return self._own_samples

    def execution(self) -> Execution:
        from zuno.app.execution import Execution

        chain = self._settings.default_chain()
        return Execution(self._opened_journal, self.archive(), self._hands, self.lp, chain, os.urandom)

    async def _hands(self, chain: str) -> Hands:
        """All that may spend on a chain, behind the gate."""
        import asyncio
        from time import perf_counter

        from zuno.adapters.clock.system import unix_millis
        from zuno.adapters.store.turns import Turns
        from zuno.execution.hands import Hands

        journal, key, opened = await self._opened_journal(), self._key(), self._chain(chain)
        key.ensure()
        return Hands(
            chain=opened,
            writer=self._writer(chain),
            signer=self._signer(chain),
            feeds_of=lambda pool_id: self._feeds(opened, pool_id),
            journal=journal,
            key=key,
            turn=Turns(self._settings.home).alone,
            sleep=asyncio.sleep,
            stopwatch=perf_counter,
            now=unix_millis,
            limits=self._limits(),
            pace=self._pace(opened.info),
        )

    def _limits(self) -> Limits:
        from zuno.domain.execution import Bounds
        from zuno.execution.hands import Limits

        settings = self._settings
        lasting = settings.approval_seconds
        return Limits(
            bounds=Bounds(settings.slippage_bps, settings.tick_drift, lasting, max(lasting, Bounds().permit2_seconds)),
            usd_per_plan=settings.spend_usd_per_plan,
            usd_per_day=settings.spend_usd_per_day,
            hooks=frozenset(map(Address, settings.allowed_hooks)),
        )

    def _pace(self, info: ChainInfo) -> Pace:
        from zuno.execution.hands import Pace

        usual = Pace(patience=self._settings.receipt_seconds)
        return replace(usual, look=LOCAL_LOOK) if info in (SIM, DEVNET) else usual

    def wallets(self) -> WalletKeeper:
        from zuno.app.wallets import WalletKeeper

        return WalletKeeper(self._wallet_folder(), self._own_wallet)

    def wallet(self, chain: str | None) -> WalletOnChain:
        from zuno.app.wallets import Contents, WalletOnChain

        name = self._settings.default_chain() if chain is None else chain
        opened, writer = self._chain(name), self._writer(name)

        async def look(wallet: Address, currencies: Sequence[Address], spenders: Sequence[Address]) -> Contents:
            purse = await writer.purse(wallet, currencies, spenders)
            return Contents(purse.block, purse.holdings, purse.allowances)

        return WalletOnChain(opened, self._signer(name).address, look)

    def place(self) -> Place:
        from zuno.app.place import Place

        chain = self._settings.default_chain()
        try:
            wallet: str | None = self._signer(chain).address
        except Refused:
            wallet = None
        return Place(self._settings.home, chain, wallet)

    def interpreter(self) -> Interpreter:
        from zuno.agents.prompts import Prompts
        from zuno.app.debate import new_request_id
        from zuno.app.interpreting import ROLE, Interpreter

        async def minds() -> Minds | None:
            if not self._seats().seat(ROLE, 0).models:
                return None
            journal = await self._opened_journal()
            return replace(self._minds(journal, new_request_id(os.urandom(16))), prompts=Prompts("zuno.app"))

        return Interpreter(minds)

    def chairs(self) -> Chairs:
        from zuno.app.chairs import Chairs

        return Chairs(self._seats())

    def sim(self) -> SimPlayground:
        self._must_write()
        return SimPlayground("sim", self._sim, DEFAULT_SEED)

    def devnet(self) -> Devnet:
        process = self._devnet_process()
        return Devnet(process, process.file)

    def devnet_world(self) -> Playground:
        from zuno.adapters.chain.devnet.world import DevnetWorld

        return Playground("devnet", DevnetWorld(self._devnet_process()))

    async def close(self) -> None:
        for chain in self._chains.values():
            await chain.close()
        self._chains.clear()
        if self._service is not None:
            await self._service.close()
            self._service = None
        if self._open_seats is not None:
            await self._open_seats.close()
            self._open_seats = None
        if self._own_samples is not None:
            await self._own_samples.close()
            self._own_samples = None
        if self._book is not None:
            await self._book.close()
            self._book = None

    def _key(self) -> KeyFile:
        from zuno.adapters.keys.ed25519 import KeyFile

        return KeyFile(self._settings.home / "keys" / "node.key")

    async def _opened_journal(self) -> Journal:
        """The journal, with whatever a crash left behind mended and told."""
        if not self._started:
            self._started = True
            for note in await self.journal().start():
                sys.stderr.write(f"zuno: {note}\n")
        return self.journal()

    async def _room(self, max_rounds: int | None) -> Room:
        """A table in this process for a debate of today."""
        from zuno.app.debate import new_request_id

        journal, request_id = await self._opened_journal(), new_request_id(os.urandom(16))
        rounds = self._settings.max_debate_rounds if max_rounds is None else max_rounds
        return self._table(journal, request_id, rounds, self._observe, self._minds(journal, request_id))

    async def _rehearse(self, recorded: Recorded, context: Context) -> Rehearsal:
        """A table where a recorded debate is held again: its context, its replies, and a journal that is forgotten."""
        from zuno.adapters.clock.system import unix_millis
        from zuno.adapters.model.recorded import RecordedSeats
        from zuno.adapters.store.memory import MemoryStore
        from zuno.app.archive import Rehearsal
        from zuno.memory.journal import ChainedJournal

        journal = ChainedJournal(MemoryStore(), self._key(), code=code_version, now=unix_millis, secrets=())
        seats = RecordedSeats(recorded.attempts)

        async def observe(start: FlowStart | FlowCreateStart) -> Context:
            return context

        minds = self._minds_of(journal, recorded.request_id, seats, limited=False)
        room = self._table(journal, recorded.request_id, context.max_rounds, observe, minds)

        def differences() -> tuple[str, ...]:
            unheard = (f"{one.role}, round {one.round}: a recorded reply was not asked for" for one in seats.unheard)
            return (*seats.differences, *unheard)

        return Rehearsal(room, differences)

    def _table(self, journal: Journal, request_id: str, rounds: int, observe: Observe, minds: Minds) -> Room:
        """The four peers at one table, and the journal that hears all of it."""
        from zuno.adapters.clock.system import unix_millis
        from zuno.adapters.transport.inproc import InProcess
        from zuno.agents.station import Station
        from zuno.app.debate import Room, recalled
        from zuno.desks.lp.arbiter import Arbiter
        from zuno.desks.lp.critic import Critic
        from zuno.desks.lp.scout import Scout
        from zuno.desks.lp.strategist import Strategist

        key, transport = self._key(), InProcess()
        key.ensure()

        async def recall(digest: str) -> Context:
            return await recalled(journal, digest)

        peers = (
            Scout(observe, journal.put_bundle, minds),
            Strategist(recall, minds),
            Critic(recall, minds),
            Arbiter(recall, minds),
        )
        stations = [Station(peer, transport, journal, key, unix_millis) for peer in peers]
        return Room(stations, transport, journal, key, unix_millis, request_id, rounds, self._patience(rounds))

    def _patience(self, rounds: int) -> float:
        """What a debate may take when every model asked takes all of its time, and the world is slow to observe."""
        asked_at_most = max(len(chain) for chain in self._settings.model_table().values()) + 1
        chairs = 2 + 2 * (rounds + 1)
        return OBSERVING_SECONDS + chairs * asked_at_most * self._settings.model_timeout_seconds

    async def _observe(self, start: FlowStart | FlowCreateStart) -> Context:
        from zuno.desks.lp.observing import observe

        chain = self._chain(start.chain)
        # A local world keeps its whole past and may be made anew: samples of the world before would lie about it.
        samples = None if chain is self._sim or chain.info is DEVNET else self._samples()
        return await observe(start, chain, self._feeds, samples)

    def _minds(self, journal: Journal, request_id: str) -> Minds:
        return self._minds_of(journal, request_id, self._seats(), limited=True)

    def _minds_of(self, journal: Journal, request_id: str, seats: Seats, *, limited: bool) -> Minds:
        """What asking needs; a replay spends nothing, and its refusals by budget or breaker are recorded ones."""
        from time import perf_counter

        from zuno.adapters.clock.system import SystemClock
        from zuno.adapters.model.daybook import DayBookFile, DayBookInMemory
        from zuno.agents.ask import Minds
        from zuno.agents.breaker import Breakers
        from zuno.agents.budget import Limits, RunBudget
        from zuno.agents.prompts import Prompts
        from zuno.domain.spend import Ceiling
        from zuno.ports.journal import Author

        settings, clock = self._settings, SystemClock()
        limits = Limits(
            Ceiling(settings.budget_tokens_per_run, settings.budget_usd_per_run),
            Ceiling(settings.budget_tokens_per_day, settings.budget_usd_per_day),
        )

        async def record(attempt: Attempt) -> None:
            await journal.append(
                kind="model_attempt", author=Author(attempt.role), payload=attempt, request_id=request_id
            )

        self._breakers = self._breakers or Breakers()  # a model that is down stays so in the next debate
        days = DayBookFile(settings.home / "spend.json") if limited else DayBookInMemory()
        return Minds(
            seats=seats,
            prompts=Prompts("zuno.desks.lp"),
            budget=RunBudget(limits if limited else Limits(), days, clock),
            breakers=self._breakers if limited else Breakers(threshold=None),
            record=record,
            clock=clock,
            stopwatch=perf_counter,
            timeout=settings.model_timeout_seconds,
        )

    def _seats(self) -> Seats:
        if self._offline:
            from zuno.adapters.model.seating import SeatingTable
            from zuno.ports.model import Seating

            return SeatingTable(Seating((), "the tour asks no model"))
        if self._open_seats is None:  # one for all debates of this process: models keep connections
            self._open_seats = self._seated()
        return self._open_seats

    def _seated(self) -> Seats:
        from zuno.adapters.model.opening import Keys, open_seats
        from zuno.adapters.model.vendors import Price

        settings = self._settings
        prices = {name: Price(*usd) for name, usd in settings.model_prices.items()}
        hosts = {host: key.get_secret_value() for host, key in settings.model_keys.items()}
        keys = Keys(settings.vendor_keys(), hosts)
        table = settings.model_table()
        table["reader"] = table["scout"]  # who puts a market into words can read a line
        return open_seats(table, keys, prices, settings.deterministic)

    def _store(self, key: KeyFile) -> JournalStore:
        url = self._settings.database_url
        if url is not None:
            from zuno.adapters.store.postgres import open_postgres

            return open_postgres(url.get_secret_value(), self._settings.home, key)
        from zuno.adapters.store.sqlite import open_sqlite

        return open_sqlite(self._settings.home)

    def _chain(self, name: str) -> Chain:
        wanted = name.strip().lower()
        if wanted not in self._chains:
            self._chains[wanted] = self._open(wanted)
        return self._chains[wanted]

    def _must_write(self) -> None:
        if self._sealed is not None:
            raise _unusable(self._settings.home, self._sealed)

    def _open(self, name: str) -> Chain:
        if name == "sim":
            if self._sealed is not None:
                sys.stderr.write(
                    f"zuno: nothing can be written in {self._settings.home} ({self._sealed}); sim is only read.\n"
                )
            return self._sim
        self._must_write()
        if name == "devnet":
            from zuno.adapters.chain.world import WALLET

            return self._rpc(DEVNET, (self._devnet_process().url(),), WALLET)
        info = chain_named(name)
        if info is None:
            known = ", ".join(("sim", "devnet", *(chain.name for chain in CHAINS)))
            raise Usage(f"No chain is called {name[:40]!r}; Zuno knows {known}.")
        urls = tuple(url.get_secret_value() for url in self._settings.rpc_urls(info.name))
        if not urls:
            raise Unavailable(f"No RPC URL for {info.title}; set {info.rpc_url_variable}.")
        return self._rpc(info, urls, self._own_wallet())

    def _rpc(self, info: ChainInfo, urls: tuple[str, ...], wallet: Address | None) -> Chain:
        from zuno.adapters.chain.rpc.chain import RpcChain
        from zuno.adapters.chain.rpc.transport import Policy

        policy = Policy(timeout=self._settings.rpc_timeout_seconds)
        return RpcChain(info, urls, self._settings.home / "chains" / info.name, wallet, policy)

    def _writer(self, chain: str) -> Writer:
        """A chain as it can be written to, on the connection it is read by."""
        opened = self._chain(chain)
        if opened is self._sim:
            from zuno.adapters.chain.sim.writer import SimWriter

            return SimWriter(self._sim)
        from zuno.adapters.chain.rpc.chain import RpcChain

        if not isinstance(opened, RpcChain):
            raise TypeError(f"{type(opened).__name__} has no writer")
        return opened.writer()

    def _signer(self, chain: str) -> Signer:
        """Who acts on a chain: the built-in wallet of a local world, else the wallet set or the only one kept."""
        local = {one.name: one for one in (SIM, DEVNET)}.get(chain.strip().lower())
        if local is not None:
            from zuno.adapters.chain.dev_signer import DevSigner

            return DevSigner(local.id)
        if self._own_signer is None:  # one for all chains, so that its passphrase is asked for once
            self._own_signer = self._wallet_folder().signer(self._acting_wallet())
        return self._own_signer

    def _acting_wallet(self) -> Address:
        address = self._own_wallet()
        if address is not None:
            return address
        kept = self._wallet_folder().all()
        if not kept:
            raise Refused("There is no wallet yet; `zuno wallet create` or `zuno wallet import` makes one.")
        addresses = ", ".join(one.address for one in kept)
        raise Refused(f"Which of {len(kept)} wallets acts? Set ZUNO_AGENT_WALLET_ADDRESS to one of {addresses}.")

    def _own_wallet(self) -> Address | None:
        """The wallet set, else the only one kept; None where that leaves a choice, or nothing."""
        wanted = self._settings.agent_wallet_address
        if wanted is not None:
            return Address(wanted)
        kept = self._wallet_folder().all()
        return kept[0].address if len(kept) == 1 else None

    def _wallet_folder(self) -> WalletFolder:
        from zuno.adapters.keys.passphrases import Passphrases
        from zuno.adapters.keys.wallets import WalletFolder

        return WalletFolder(self._settings.home / "wallets", Passphrases(self._settings.passphrase_file))

    def _devnet_process(self) -> DevnetProcess:
        from zuno.adapters.chain.devnet.running import DevnetProcess

        self._must_write()
        packages = self._settings.contracts_dir or _CHECKOUT / "contracts" / "node_modules"
        return DevnetProcess(
            self._settings.home, packages, DEFAULT_SEED, tell=lambda line: print(line, file=sys.stderr, flush=True)
        )

    def _feeds(self, chain: Chain, pool_id: HexId) -> Feeds:
        from zuno.adapters.market.gas import ChainGas
        from zuno.adapters.market.native import NativePrice

        prices = self._prices(chain, pool_id)
        return Feeds(prices, ChainGas(chain), NativePrice(prices))

    def _prices(self, chain: Chain, pool_id: HexId) -> PriceFeed:
        """Price service, then the pool's own swaps; local worlds have no service, and the simulation only its seed."""
        from zuno.adapters.market.fallback import FirstThatAnswers
        from zuno.adapters.market.pool_history import PoolHistory
        from zuno.adapters.market.seeded import SeededFeed

        if chain is self._sim:
            return SeededFeed(Pair("ETH", "USDC"), self._sim.reference_closes)
        own = PoolHistory(chain, pool_id)
        if chain.info is DEVNET:
            from zuno.adapters.chain.devnet.world import DevnetWorld
            from zuno.adapters.market.reference import WithReference

            return WithReference(
                own, Pair("ETH", "USDC"), DevnetWorld(self._devnet_process()).reference, "devnet reference"
            )
        return FirstThatAnswers((self._price_service(), own))

    def _price_service(self) -> CoinGecko:
        """One for the whole process: its answers and its rate limit are shared."""
        from zuno.adapters.market.coingecko import CoinGecko

        if self._service is None:
            key = self._settings.coingecko_api_key
            self._service = CoinGecko(self._settings.coingecko_url, api_key=key.get_secret_value() if key else None)
        return self._service
