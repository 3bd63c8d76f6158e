"""One process's Zuno: every use case with its plugs, opened when first asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from errno import EACCES, EPERM, EROFS
from pathlib import Path
from typing import TYPE_CHECKING

from zuno.adapters.chain.world import DEFAULT_SEED, DEVNET
from zuno.app.journal import JournalAudit
from zuno.app.lp import LpDesk
from zuno.app.playground import Devnet, Playground, SimPlayground
from zuno.domain.chains import ChainInfo
from zuno.domain.errors import Refused, Usage
from zuno.domain.units import Address, Millis
from zuno.ports.journal import JournalStore
from zuno.settings import Settings, read_settings
from zuno.wiring.chains import LOCAL, Chains, unusable
from zuno.wiring.markets import Markets
from zuno.wiring.mesh import Meshes, tell
from zuno.wiring.minds import Models
from zuno.wiring.recordings import Recordings
from zuno.wiring.signers import Signers
from zuno.wiring.version import code_version

if TYPE_CHECKING:
    from zuno.adapters.keys.ed25519 import KeyFile
    from zuno.adapters.store.samples import SqliteSamples
    from zuno.agents.ask import Minds
    from zuno.app.alerts import AlertDesk
    from zuno.app.archive import Archive, Recorded, Rehearsal
    from zuno.app.book import Bookkeeper, Inventory
    from zuno.app.chairs import Chairs
    from zuno.app.collecting import Collector
    from zuno.app.cycle import Cycles
    from zuno.app.data import DataDesk
    from zuno.app.debate import Advice, Room, Venue
    from zuno.app.downloading import Downloads
    from zuno.app.execution import Execution
    from zuno.app.interpreting import Interpreter
    from zuno.app.keeping import MeshHost
    from zuno.app.mesh import MeshKeeper
    from zuno.app.mesh_room import MeshRoom, OwnerPlace
    from zuno.app.monitor import Monitor
    from zuno.app.peering import PeerLife
    from zuno.app.place import Place
    from zuno.app.trading import Refresh, TradingDesk
    from zuno.app.wallets import WalletKeeper, WalletOnChain
    from zuno.desks.lp.scout import Observe
    from zuno.execution.hands import Hands, Limits, Pace
    from zuno.memory.journal import ChainedJournal
    from zuno.messages.bundle import Slot
    from zuno.messages.debate import Context, FlowCreateStart, FlowStart
    from zuno.ports.journal import Journal
    from zuno.ports.model import Seats

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
            raise unusable(home, str(error.strerror)) from error
        return str(error.strerror)
    return None if os.access(home, os.W_OK | os.X_OK, effective_ids=True) else os.strerror(EACCES)


class House:
    """The plugs of one process, opened when first asked for."""

    def __init__(self, settings: Settings, sealed: str | None = None) -> None:
        """`sealed`: why nothing can be written in the home, if so."""
        self._settings = settings
        self._signers = Signers(settings)
        self._chains = Chains(settings, sealed, self._signers.own_wallet)
        self._models = Models(settings)
        self._book: ChainedJournal | None = None
        self._started = False
        self._own_samples: SqliteSamples | None = None
        self._recordings = Recordings(settings)
        self._markets = Markets(settings)
        self._meshes = Meshes(settings, self._opened_journal, self._mesh_room)

    def lp(self, chain: str | None) -> LpDesk:
        opened = self._chains.named(self._settings.default_chain() if chain is None else chain)
        return LpDesk(opened, lambda pool_id: self._chains.feeds(opened, pool_id))

    def audit(self) -> JournalAudit:
        return JournalAudit(self.journal())

    def advice(self, *, offline: bool = False, transport: str | None = None) -> Advice:
        from zuno.app.debate import Advice

        self._models.offline = offline
        way = "inproc" if offline else transport

        async def venue() -> Venue:
            return await self._venue(way)

        return Advice(venue, self._opened_journal, self._settings.default_chain(), self._settings.risk_profile)

    def mesh(self) -> MeshKeeper:
        self._chains.must_write()
        return self._meshes.keeper()

    def mesh_host(self) -> MeshHost:
        self._chains.must_write()
        return self._meshes.host()

    async def peer(self, role: str, transport: str | None, *, parent: int | None = None) -> PeerLife:
        from zuno.app.mesh import role_named

        way = self.mesh().way(transport)
        return await self._meshes.peer(role_named(role), way, self._models, self._observe_anew, parent=parent)

    def archive(self) -> Archive:
        from zuno.app.archive import Archive

        return Archive(self._opened_journal, self._rehearse, code_version, self._meshes.attempts)

    def journal(self) -> ChainedJournal:
        """The one journal of this process: SQLite in the home, or Postgres where a URL is set."""
        from zuno.adapters.clock.system import unix_millis
        from zuno.memory.journal import ChainedJournal

        if self._book is None:
            self._chains.must_write()
            key = self._key()
            secrets = self._settings.secrets()
            self._book = ChainedJournal(self._store(key), key, code=code_version, now=unix_millis, secrets=secrets)
        return self._book

    def alerts(self) -> AlertDesk:
        from zuno.wiring.watching import alert_desk

        return alert_desk(self._settings, self._opened_journal)

    def monitor(self, *, announce: bool = False) -> Monitor:
        from zuno.wiring.watching import monitor_of

        self._chains.must_write()
        return monitor_of(
            self._settings, self._chains, self._signers, self._samples(), self._opened_journal, announce=announce
        )

    def execution(self) -> Execution:
        from zuno.app.execution import Execution

        chain = self._settings.default_chain()
        return Execution(self._opened_journal, self.archive(), self._hands, self.lp, chain, os.urandom)

    def wallets(self) -> WalletKeeper:
        from zuno.app.wallets import WalletKeeper

        return WalletKeeper(self._signers.folder(), self._signers.own_wallet)

    def wallet(self, chain: str | None) -> WalletOnChain:
        from zuno.app.wallets import Contents, WalletOnChain

        name = self._settings.default_chain() if chain is None else chain
        opened, writer = self._chains.named(name), self._chains.writer(name)

        async def look(wallet: Address, currencies: Sequence[Address], spenders: Sequence[Address]) -> Contents:
            purse = await writer.purse(wallet, currencies, spenders)
            return Contents(purse.block, purse.holdings, purse.allowances)

        return WalletOnChain(opened, self._signers.of(name).address, look)

    def place(self) -> Place:
        from zuno.app.place import Place

        chain = self._settings.default_chain()
        try:
            wallet: str | None = self._signers.of(chain).address
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

        return Chairs(self._seats(), self._meshes.keeper().glance)

    def data(self) -> DataDesk:
        from zuno.adapters.clock.system import unix_millis
        from zuno.app.data import DataDesk

        fetch = self._markets.fetch() if self._settings.market == "live" else None
        return DataDesk(self._recordings.chosen(), unix_millis, fetch, invent=self._recordings.invent)

    def collector(self, symbols: Sequence[str]) -> Collector:
        self._chains.must_write()
        return self._markets.collector(self._recordings.own(), symbols)

    def downloads(self) -> Downloads:
        self._chains.must_write()
        return self._markets.downloads(self._recordings.own())

    def book(self) -> Bookkeeper:
        from zuno.adapters.account.paper import JournalBook
        from zuno.app.book import Bookkeeper
        from zuno.core.terms import Fees, Rates

        settings = self._settings
        fees = Fees(
            Rates(settings.fee_binance_maker_pct, settings.fee_binance_taker_pct),
            Rates(settings.fee_upbit_pct, settings.fee_upbit_pct),
        )
        store = self._recordings.chosen()
        desk = self._desk(self._markets.look_at_marks(store) if self._settings.market == "live" else None)
        return Bookkeeper(desk, store, JournalBook(self._opened_journal), self._inventory(), fees)

    def _inventory(self) -> Inventory:
        """The liquidity positions an account counts, or why none are looked for."""
        chain = self._settings.default_chain()
        if self._settings.market != "live":
            return "liquidity positions are read where the market is live; `zuno trade book lp` states them by hand"
        if chain in {one.name for one in LOCAL}:
            return f"the default chain, {chain}, is invented: its liquidity positions are not counted"
        return lambda: self.lp(chain).positions()

    def trading(self) -> TradingDesk:
        live = self._settings.market == "live"
        return self._desk(self._markets.refresh(self._recordings.chosen()) if live else None)

    def _desk(self, refresh: Refresh | None) -> TradingDesk:
        """The trading desk, which asks so much of the live sources before it looks."""
        from zuno.adapters.chart.painter import MatplotlibPainter
        from zuno.adapters.clock.system import unix_millis
        from zuno.app.trading import TradingDesk

        store = self._recordings.chosen()
        return TradingDesk(
            store,
            self._opened_journal,
            MatplotlibPainter(),
            invent=self._recordings.invent_first if store.origin.synthetic else None,
            refresh=refresh,
            now=None if store.origin.synthetic else unix_millis,
        )

    def cycles(self) -> Cycles:
        from zuno.wiring.cycles import cycles_of

        self._chains.must_write()

        async def held(origin: str, moment: Millis, present: bool) -> Sequence[Slot]:
            return await self.book().slots(origin, moment, present=present)

        return cycles_of(self._settings, self.trading(), self._opened_journal, self._key(), self._models, held)

    def sim(self) -> SimPlayground:
        self._chains.must_write()
        return SimPlayground("sim", self._chains.sim, DEFAULT_SEED)

    def devnet(self) -> Devnet:
        process = self._chains.devnet()
        return Devnet(process, process.file)

    def devnet_world(self) -> Playground:
        from zuno.adapters.chain.devnet.world import DevnetWorld

        return Playground("devnet", DevnetWorld(self._chains.devnet()))

    async def close(self) -> None:
        await self._meshes.close()
        await self._chains.close()
        await self._models.close()
        await self._markets.close()
        await self._recordings.close()
        if self._own_samples is not None:
            await self._own_samples.close()
            self._own_samples = None
        if self._book is not None:
            await self._book.close()
            self._book = None

    def _key(self) -> KeyFile:
        from zuno.adapters.keys.ed25519 import KeyFile

        return KeyFile(self._settings.home / "keys" / "node.key")

    def _store(self, key: KeyFile) -> JournalStore:
        url = self._settings.database_url
        if url is not None:
            from zuno.adapters.store.postgres import open_postgres

            return open_postgres(url.get_secret_value(), self._settings.home, key)
        from zuno.adapters.store.sqlite import open_sqlite

        return open_sqlite(self._settings.home)

    async def _opened_journal(self) -> Journal:
        """The journal, with whatever a crash left behind mended and told."""
        if not self._started:
            for note in await self.journal().start():
                sys.stderr.write(f"zuno: {note}\n")
            self._started = True
        return self.journal()

    def _samples(self) -> SqliteSamples:
        from zuno.adapters.store.samples import SqliteSamples

        self._own_samples = self._own_samples or SqliteSamples(self._settings.home)
        return self._own_samples

    async def _venue(self, transport: str | None) -> Venue:
        """Where a debate of today is held: on the mesh if it is there, else at a table in this process."""
        from zuno.app.debate import new_request_id

        request_id = new_request_id(os.urandom(16))
        place = await self._meshes.keeper().place_for(transport, code_version, tell)
        if place is not None:
            return await self._mesh_room(place, request_id)
        journal = await self._opened_journal()
        rounds = self._settings.max_debate_rounds
        return self._table(journal, request_id, rounds, self._observe, self._minds(journal, request_id))

    async def _mesh_room(self, place: OwnerPlace, request_id: str) -> MeshRoom:
        from time import perf_counter

        from zuno.adapters.clock.system import unix_millis
        from zuno.app.mesh_room import MeshRoom
        from zuno.messages.debate import Role

        rounds = self._settings.max_debate_rounds
        return MeshRoom(
            place=place,
            journal=await self._opened_journal(),
            key=self._meshes.key(Role.CLI),
            now=unix_millis,
            stopwatch=perf_counter,
            chain_of=self._chains.named,
            request_id=request_id,
            max_rounds=rounds,
            patience=self._patience(rounds),
            tell=tell,
        )

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

        minds = self._models.minds(journal, recorded.request_id, seats, limited=False)
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
        asked_at_most = len(self._settings.model_table()["scout"]) + 1
        chairs = 2 + 2 * (rounds + 1)
        return OBSERVING_SECONDS + chairs * asked_at_most * self._settings.model_timeout_seconds

    async def _observe(self, start: FlowStart | FlowCreateStart) -> Context:
        return await self._observed(start, self._chains)

    async def _observe_anew(self, start: FlowStart | FlowCreateStart) -> Context:
        """For a process that lives on: the simulation may have been moved, or the devnet started again, since."""
        chains = Chains(self._settings, None, self._signers.own_wallet)
        try:
            return await self._observed(start, chains)
        finally:
            await chains.close()

    async def _observed(self, start: FlowStart | FlowCreateStart, chains: Chains) -> Context:
        from zuno.desks.lp.observing import observe

        chain = chains.named(start.chain)
        # A local world keeps its whole past and may be made anew: samples of the world before would lie about it.
        samples = None if chain is chains.sim or chain.info is DEVNET else self._samples()
        return await observe(start, chain, chains.feeds, samples)

    def _minds(self, journal: Journal, request_id: str) -> Minds:
        return self._models.minds(journal, request_id, self._seats())

    def _seats(self) -> Seats:
        return self._models.seats()

    async def _hands(self, chain: str) -> Hands:
        """All that may spend on a chain, behind the gate."""
        import asyncio
        from time import perf_counter

        from zuno.adapters.clock.system import unix_millis
        from zuno.adapters.store.turns import Turns
        from zuno.execution.hands import Hands

        journal, key, opened = await self._opened_journal(), self._key(), self._chains.named(chain)
        key.ensure()
        if opened.info is DEVNET:
            from zuno.adapters.chain.devnet.world import DevnetWorld

            await DevnetWorld(self._chains.devnet()).wake()
        return Hands(
            chain=opened,
            writer=self._chains.writer(chain),
            signer=self._signers.of(chain),
            feeds_of=lambda pool_id: self._chains.feeds(opened, pool_id),
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
        return replace(usual, look=LOCAL_LOOK) if info in LOCAL else usual
