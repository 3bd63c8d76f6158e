"""Wire the LP desk: advice, plans, positions, wallets, the monitor, the mesh and local chains."""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from time import perf_counter
from typing import TYPE_CHECKING

from zuno.adapters.clock.system import SystemClock, unix_millis
from zuno.adapters.file_lock import monitor_lock, wallet_lock
from zuno.amm.model import LpPosition
from zuno.kernel.errors import ZunoError
from zuno.kernel.units import Address, HexId, Wei
from zuno.lp.model.chains import CHAINS
from zuno.lp.model.gas import GasRules
from zuno.lp.model.history import JournaledPlans
from zuno.settings import Settings
from zuno.wiring.chains import LOCAL_CHAINS, Chains
from zuno.wiring.outbox import build_drain, build_feed, find_push_gaps, print_line
from zuno.wiring.shared import SharedWiring
from zuno.wiring.version import code_version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from zuno.adapters.keys.passphrases import Ask, Passphrase
    from zuno.adapters.store.samples import SqliteSamples
    from zuno.journal.port import Journal
    from zuno.llm.ask import ModelContext
    from zuno.lp.agents.observe import Observer
    from zuno.lp.agents.scout import Observe
    from zuno.lp.execute.context import ExecutionContext, SpendingLimits
    from zuno.lp.execute.hedges import HedgeKeeper
    from zuno.lp.model.chains import ChainInfo
    from zuno.lp.model.debate import Context, FlowCreateStart, FlowStart, PoolFacts
    from zuno.lp.model.hedges import ShortResult
    from zuno.lp.ports.chain import Chain
    from zuno.lp.ports.hedging import ShortDesk
    from zuno.lp.ports.market import Feeds
    from zuno.lp.service.archive import Archive
    from zuno.lp.service.desk_state import DeskStateReader
    from zuno.lp.service.execution import Execution
    from zuno.lp.service.local_chains import Devnet, LocalChain, SimPlayground
    from zuno.lp.service.mandate_acts import MandateActor
    from zuno.lp.service.mandates import MandateDesk
    from zuno.lp.service.mesh import MeshService
    from zuno.lp.service.mesh_debate import MeshDebateRunner, OwnerEndpoint
    from zuno.lp.service.mesh_peer import PeerService
    from zuno.lp.service.mesh_supervisor import MeshHost
    from zuno.lp.service.plan_replay import ReplayDebateRunner
    from zuno.lp.service.plan_view import PlanView
    from zuno.lp.service.pool_ranking import PoolRanking
    from zuno.lp.service.portfolio import PortfolioDesk
    from zuno.lp.service.positions import LpDesk
    from zuno.lp.service.range_preview import RangePreviews
    from zuno.lp.service.recommend import DebateRunner, Listen, LocalDebateRunner, RecommendService
    from zuno.lp.service.recorded_request import RecordedRequest
    from zuno.lp.service.wallets import WalletOnChain, WalletService
    from zuno.lp.watch.alerts import AlertDesk
    from zuno.lp.watch.monitor import Monitor, Watch
    from zuno.wiring.config import WatchedWallets
    from zuno.wiring.mesh import Meshes

OBSERVE_SECONDS = 300.0
LOCAL_LOOK = 0.2
"""Seconds between two looks for a receipt on a chain that mines at once."""


class LpWiring(SharedWiring):
    """The LP desk's use cases, wired on first use."""

    def __init__(self, settings: Settings, sealed: str | None = None) -> None:
        super().__init__(settings, sealed)
        self._own_samples: SqliteSamples | None = None
        self._chains.read_plans = self._read_plans

    @cached_property
    def _meshes(self) -> Meshes:
        from zuno.wiring.mesh import Meshes

        return Meshes(self._settings, self._open_journal, self._mesh_room)

    def lp(self, chain: str | None) -> LpDesk:
        from zuno.lp.service.positions import LpDesk

        opened = self._chains.open_chain(self._settings.default_chain() if chain is None else chain)
        now = None if opened.info.name in LOCAL_CHAINS else SystemClock().now
        feeds = partial(self._chains.feeds, opened)
        return LpDesk(opened, feeds, now, self._read_hedge, self._samples(), self._desk_states.read)

    def pool_ranking(self, chain: str | None) -> PoolRanking:
        from zuno.adapters.chain.rpc.cache import JsonCache
        from zuno.lp.service.pool_ranking import PoolRanking

        opened = self._chains.open_chain(self._settings.default_chain() if chain is None else chain)
        name = opened.info.name
        kept = None if name in LOCAL_CHAINS else JsonCache(self._settings.home / "chains" / name / "days")
        return PoolRanking(opened, partial(self._chains.feeds, opened), kept)

    @cached_property
    def range_previews(self) -> RangePreviews:
        from zuno.lp.service.range_preview import RangePreviews

        observe = partial(self._observe_with, chains=self._chains)
        where, profile, hooks = (
            self._settings.default_chain(),
            self._settings.risk_profile,
            self._settings.allowed_hooks,
        )
        return RangePreviews(observe, perf_counter, where, profile, hooks)

    @cached_property
    def _desk_states(self) -> DeskStateReader:
        from zuno.lp.service.desk_state import DeskStateReader

        return DeskStateReader(
            open_journal=self._journal_as_it_is,
            open_archive=self.archive,
            list_unhedged=self._list_unhedged,
            killed=self.kill_lock.why_locked,
            now=unix_millis,
            restored=self.restored,
        )

    async def _read_hedge(self, chain: str, ids: frozenset[int]) -> tuple[ShortResult, str] | None:
        return await self.hedges.read_result(chain, ids) if await self._has_hedged() else None

    async def _list_unhedged(self, chain: str) -> dict[int, str]:
        return await self.hedges.list_unhedged(chain) if await self._has_hedged() else {}

    async def _has_hedged(self) -> bool:
        """The trading desk is loaded where it keeps a hedge, and nowhere else."""
        from zuno.lp.model.hedges import HedgeApproved

        return bool(await self._journal_to_read().latest(1, kind=HedgeApproved.kind))

    async def _journal_as_it_is(self) -> Journal:
        return self._journal_to_read()

    def advice(self, *, offline: bool = False, transport: str | None = None) -> RecommendService:
        from zuno.lp.service.recommend import RecommendService

        self._models.offline = offline
        way = "inproc" if offline else transport

        return RecommendService(
            partial(self._venue, way),
            self._settings.default_chain(),
            self._settings.risk_profile,
            hooks=self._settings.allowed_hooks,
            read_balances=lambda chain: self.wallet(chain).balance(),
            find_short=self._find_short,
        )

    @property
    @abstractmethod
    def _shorts(self) -> ShortDesk:
        """Where shorts against liquidity are kept."""

    @cached_property
    def hedges(self) -> HedgeKeeper:
        from zuno.lp.execute.hedges import HedgeKeeper

        return HedgeKeeper(
            shorts=self._shorts,
            chain_of=self._chains.current_chain,
            journal=self._read_journal,
            lock=lambda name: wallet_lock(self._settings.home, name),
            now=unix_millis,
            outbox=self._outbox(),
        )

    async def _find_short(self, chain: str, position_id: int) -> int | None:
        short = await self.hedges.find_short(chain, position_id)
        return None if short is None else int(short.quantity.scaleb(short.decimals))

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

        return Archive(self._read_journal, self._open_replay, code_version, lambda: self._meshes.journals())

    async def _read_plans(self, chain: str) -> JournaledPlans:
        from zuno.lp.model.plan import MINED_KIND

        try:
            if not await self._journal_to_read().latest(1, kind=MINED_KIND):
                return JournaledPlans()
            return await self.archive().journaled_plans(chain)
        except ZunoError as error:
            return JournaledPlans(note=f"the journal was not read: {str(error).rstrip('.')}")

    def alerts(self) -> AlertDesk:
        from zuno.adapters.store.alerts_file import AlertsFile
        from zuno.lp.service.arguments import position_id
        from zuno.lp.watch.alerts import AlertDesk

        async def read_position(text: str, chain: str | None) -> LpPosition:
            return await self.lp(chain).position(position_id(text))

        def is_watched(position: LpPosition) -> bool:
            watches = self._list_watches()
            return any(watch.chain == position.chain and watch.wallet in {None, position.owner} for watch in watches)

        alerts = AlertsFile(self._settings.home)
        return AlertDesk(alerts, self._outbox(), self._open_journal, SystemClock(), read_position, is_watched)

    def monitor(self, *, announce: bool = False) -> Monitor:
        from zuno.adapters.store.alerts_file import AlertsFile
        from zuno.lp.watch.monitor import Monitor

        self._chains.require_writable()
        settings, pushes = self._settings, self._push_sources()
        drain = build_drain(settings, pushes.outbox, announce=announce)
        for gap in find_push_gaps(settings):
            print_line(gap)
        return Monitor(
            watches=self._list_watches,
            chain_of=self._chains.current_chain,
            store=AlertsFile(settings.home),
            samples=self._samples(),
            lock=monitor_lock(settings.home),
            journal=self._open_journal,
            outbox=None if drain is None else pushes.outbox,
            drain=drain,
            feed=None if drain is None else build_feed(settings, drain, pushes, lp_alone=True),
            clock=SystemClock(),
            period=settings.monitor_interval_ms / 1000,
            tell=print_line,
            ping=self._build_ping("monitor"),
            act=self._build_actor().act,
            hedge=self.hedges.keep,
        )

    def mandates(self) -> MandateDesk:
        from zuno.lp.service.mandates import MandateDesk

        chain, gaps = self._settings.default_chain(), partial(find_push_gaps, self._settings)
        return MandateDesk(self._open_journal, self._execution_context, chain, unix_millis, gaps, self.restored)

    def _build_actor(self) -> MandateActor:
        from zuno.lp.service.mandate_acts import MandateActor

        async def argue(position: str, chain: str) -> PlanView:
            self._chains.refresh()
            return await self.advice().rebalance(position, chain=chain)

        async def open_context(chain: str) -> ExecutionContext:
            self._chains.refresh()
            context = await self._execution_context(chain)
            return replace(context, signer=self._signers.unattended(context.info.name))

        execution = replace(self.execution(), context_of=open_context)
        killed = self.kill_lock.why_locked
        return MandateActor(self._read_journal, execution, argue, unix_millis, killed, print_line)

    def portfolio(self) -> PortfolioDesk:
        from zuno.lp.service.portfolio import PortfolioDesk

        labels = {Address(address): label for address, label in self._watched_wallets.read().items()}
        return PortfolioDesk(watches=self._list_watches, desk_of=self.lp, labels=labels)

    @cached_property
    def _watched_wallets(self) -> WatchedWallets:
        from zuno.wiring.config import WatchedWallets

        return WatchedWallets(self._settings)

    def _list_watches(self) -> tuple[Watch, ...]:
        """Wallets to watch now: the devnet may start or end, and wallets may be added, while the monitor runs."""
        from zuno.lp.watch.monitor import Watch

        settings = self._settings
        default, wallet = settings.default_chain(), settings.agent_wallet_address
        live = [chain.name for chain in CHAINS if settings.rpc_urls(chain.name)]
        kept = [wallet.address for wallet in self._signers.folder().all()]
        named = [Address(address) for address in self._watched_wallets.read()]
        owners = dict.fromkeys([*([] if wallet is None else [Address(wallet)]), *kept, *named])
        watches = [Watch(name, owner) for name in live for owner in owners]
        if default == "sim" and (settings.chain_id == "sim" or not watches):
            watches.append(Watch("sim", local=True))
        if default == "devnet" or self._chains.find_devnet() is not None:
            watches.append(Watch("devnet", local=True))
        return tuple(watches)

    def execution(self) -> Execution:
        from zuno.lp.service.execution import Execution

        chain = self._settings.default_chain()
        execution = Execution(self._open_journal, self.archive(), self._execution_context, self.lp, chain, os.urandom)
        return replace(execution, hedges=self.hedges)

    def wallets(self) -> WalletService:
        from zuno.lp.service.wallets import WalletService

        return WalletService(self._signers.folder(), self._signers.own_wallet)

    def unlock_wallet(self, ask: Ask | None = None) -> str | None:
        return self._signers.unlock(ask)

    @property
    def typed_passphrase(self) -> Passphrase | None:
        return self._signers.typed

    def wallet(self, chain: str | None) -> WalletOnChain:
        from zuno.lp.service.wallets import WalletOnChain

        name = self._settings.default_chain() if chain is None else chain
        opened, writer = self._chains.open_chain(name), self._chains.writer(name)
        return WalletOnChain(opened, self._signers.of(name).address, writer.wallet_state)

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

    def _samples(self) -> SqliteSamples:
        from zuno.adapters.store.samples import SqliteSamples

        self._own_samples = self._own_samples or SqliteSamples(self._settings.home)
        return self._own_samples

    async def _venue(self, transport: str | None, request_id: str | None, listen: Listen) -> DebateRunner:
        """Where a debate is held: on the mesh if its peers are there, else in this process."""
        from zuno.lp.service.recommend import new_request_id

        request_id = request_id or new_request_id(os.urandom(16))
        endpoint = await self._meshes.keeper().endpoint_for(transport, code_version, print_line, listen)
        if endpoint is not None:
            return await self._mesh_room(endpoint, request_id)
        journal, observe = await self._open_journal(), partial(self._observe_with, chains=self._chains)
        model_context = self._models.model_context(journal, request_id, self._models.registry())
        return self._build_local_debate(journal, request_id, self._settings.max_debate_rounds, observe, model_context)

    async def _mesh_room(self, endpoint: OwnerEndpoint, request_id: str) -> MeshDebateRunner:
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
            tell=print_line,
        )

    async def _open_replay(self, recorded: RecordedRequest, context: Context) -> ReplayDebateRunner:
        """Repeat a recorded debate from its context and replies, with a journal in memory."""
        from zuno.adapters.model.recorded import RecordedModels
        from zuno.adapters.store.memory import MemoryStore
        from zuno.journal.journal import ChainedJournal
        from zuno.lp.service.plan_replay import ReplayDebateRunner

        journal = ChainedJournal(MemoryStore(), self._key(), code=code_version, now=unix_millis, secrets=())
        registry = RecordedModels(recorded.attempts)

        async def observe(start: FlowStart | FlowCreateStart) -> Context:
            return context

        model_context = self._models.model_context(journal, recorded.request_id, registry, limited=False)
        room = self._build_local_debate(journal, recorded.request_id, context.max_rounds, observe, model_context)

        return ReplayDebateRunner(room, registry.list_differences)

    def _build_local_debate(
        self, journal: Journal, request_id: str, rounds: int, observe: Observe, model_context: ModelContext
    ) -> LocalDebateRunner:
        from zuno.wiring.mesh import build_local_debate

        return build_local_debate(
            journal, self._key(), request_id, rounds, observe, model_context, self._debate_timeout(rounds)
        )

    def _debate_timeout(self, rounds: int) -> float:
        """The longest a debate may take: every model uses all of its time."""
        asked_at_most = len(self._settings.model_table()["scout"]) + 1
        questions = 2 + 2 * (rounds + 1)
        return OBSERVE_SECONDS + questions * asked_at_most * self._settings.model_timeout_seconds

    async def _observe_anew(self, start: FlowStart | FlowCreateStart) -> Context:
        """For long-lived processes: the simulation may have been moved, or the devnet restarted, since."""
        chains = Chains(self._settings, None, self._signers.own_wallet)
        try:
            return await self._observe_with(start, chains)
        finally:
            await chains.close()

    async def _observe_with(self, start: FlowStart | FlowCreateStart, chains: Chains) -> Context:
        return await self._open_observer(start.chain, chains).observe(start)

    async def _observe_again(self, context: Context) -> tuple[PoolFacts, ...]:
        return await self._open_observer(context.chain, self._chains).observe_again(context)

    def _open_observer(self, name: str, chains: Chains) -> Observer:
        from zuno.lp.agents.observe import Observer

        chain = chains.open_chain(name)
        rewards = {HexId(pool): Fraction(amount) for pool, amount in self._settings.incentives_per_day.items()}
        return Observer(chain, partial(self._feeds, chains), self._samples_of(chain), rewards)

    def _feeds(self, chains: Chains, chain: Chain, pool_id: HexId) -> Feeds:
        return replace(chains.feeds(chain, pool_id), perpetual=self._shorts)

    def _samples_of(self, chain: Chain) -> SqliteSamples | None:
        """None for local chains: they may be built anew, and samples of the old one would be wrong."""
        return None if chain.info.name in LOCAL_CHAINS else self._samples()

    async def _execution_context(self, chain: str) -> ExecutionContext:
        from zuno.lp.execute.context import ExecutionContext, Timeouts

        timeouts = Timeouts(patience=self._settings.receipt_seconds)
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
            limits=replace(self._limits(), gas=self._gas_rules(opened.info)),
            timeouts=replace(timeouts, poll_interval=LOCAL_LOOK) if opened.info.name in LOCAL_CHAINS else timeouts,
            killed=self.kill_lock.why_locked,
            restored=self.restored,
        )

    def _gas_rules(self, info: ChainInfo) -> GasRules:
        """The chain's row, with what the owner's settings say instead."""
        settings, row = self._settings, info.gas

        def choose(caps: Mapping[str, Decimal], digits: int, default: Wei) -> Wei:
            return Wei(int(caps[info.name].scaleb(digits))) if info.name in caps else default

        return GasRules(
            rise=row.rise,
            tip=choose(settings.max_tip_gwei, 9, row.tip),
            whole=choose(settings.max_gas, 18, row.whole),
            exit_tip=choose(settings.max_exit_tip_gwei, 9, row.exit_tip),
            exit_whole=choose(settings.max_exit_gas, 18, row.exit_whole),
        )

    def _limits(self) -> SpendingLimits:
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
