"""Wire the lab's studies: synthetic markets in folders that are removed afterwards, cycles without a model."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from zuno.adapters.account.trade_log import LoggedTradeRecord, MemoryTradeLog
from zuno.adapters.chart.painter import MatplotlibPainter
from zuno.adapters.checkpoints import sqlite_checkpoints
from zuno.adapters.file_lock import symbol_lock
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.jsonl import JsonlMemory
from zuno.adapters.memory.table import InMemoryIndex
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.venues.synthetic import candles as synthetic_candles
from zuno.adapters.venues.synthetic.injected_faults import MARKET_FAULTS
from zuno.adapters.venues.synthetic.path import DAYS_FROM, END, MINUTES_FROM, draw_panics, draw_paths
from zuno.adapters.venues.synthetic.planted import SHOWN_MS, planted_batches, planted_origin, planted_slots
from zuno.adapters.venues.synthetic.world import build_batches, describe_origin
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author
from zuno.kernel.units import Millis
from zuno.lab import memory_study
from zuno.lab.checks import DeskChecks
from zuno.lab.invariance import InvarianceMoment, build_invariance_view, change_moment
from zuno.lab.lookahead import LookaheadMoment, OpenModelContext, build_lookahead_view, study_lookahead
from zuno.lab.lp.debate_checks import DebateChecks
from zuno.lab.market_study import MarketPlan, MarketStudy
from zuno.lab.memory_service import MemoryPlan, MemoryStudy
from zuno.lab.model import MomentResult
from zuno.lab.moments import StudyMarket, choose_moments
from zuno.lab.no_edge_worlds import HourPool, build_pool, make_world
from zuno.lab.noedge import NoEdgeStudy, WorldResult, WorldsPlan, study_world
from zuno.lab.rulings import OpenCycles, study_moment
from zuno.lab.service import StudyDesk, build_view
from zuno.lab.trading.cycles import always
from zuno.markets.feeds import BINANCE, USDT_KRW
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.settings import Settings
from zuno.trading.learn.memory_book import LessonBook, MemoryBook, memory_record
from zuno.trading.learn.recall import CaseRecall
from zuno.trading.model.account import Account, account_slots
from zuno.trading.model.bundle import Slot
from zuno.trading.model.market import DAY_MS, HOUR_MS, Timeframe, candles
from zuno.trading.model.memory import POST_MORTEM, PostMortem
from zuno.trading.ports.recall import MemoryIndex
from zuno.trading.ports.series import Batch, SeriesStore
from zuno.trading.run.record import RunJournal
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.runs import Cycles, RunBackends
from zuno.wiring.cycles import build_run_context, disable_tracing
from zuno.wiring.lab_models import choose_runner, open_reports
from zuno.wiring.lp_lab import argue_in_futures, argue_in_orders, read_minutes
from zuno.wiring.models import Models
from zuno.wiring.recordings import Recordings
from zuno.wiring.trade_lab import build_strategy_lab, build_trade_lab

CODE = "study"
"""The code version in a study's journal, which is thrown away."""
POOL_SEED = 11
"""The synthetic market whose days are shuffled where the home has no history of its own."""


def build_study_desk(settings: Settings, recordings: Recordings, cluster: str | None = None) -> StudyDesk:
    """`cluster`: the address of a Dask cluster that runs the tasks; None: processes of this machine."""
    reports = open_reports(settings.home)
    run = choose_runner(cluster)
    trade = build_trade_lab(settings, recordings, reports, run)
    memory = MemoryStudy(partial(run, study_memory_plan), lambda seed: len(memory_moments(seed)) * len(DEFAULT_SYMBOLS))
    checks = DeskChecks(
        reports,
        NoEdgeStudy(partial(run, study_worlds_plan), lambda: read_pools(recordings.own)),
        MarketStudy(partial(run, study_lookahead_plan), build_lookahead_view),
        MarketStudy(partial(run, study_invariance_plan), build_invariance_view),
        DebateChecks(read_minutes, partial(run, argue_in_futures), partial(run, argue_in_orders)),
    )
    strategies = build_strategy_lab(reports, run)
    return StudyDesk(MarketStudy(partial(run, study_plan), build_view), memory, reports, trade, checks, strategies)


async def study_plan(plan: MarketPlan) -> AsyncIterator[MomentResult]:
    async with open_study_market(plan.seed) as (market, folder):
        open_cycles = cycles_opener(folder)
        for moment in await choose_moments(market, plan.moments):
            yield await study_moment(market, moment, open_cycles)


def cycles_opener(folder: Path) -> OpenCycles:
    """Cycles with a journal in memory each, and checkpoints in the folder."""
    key = KeyFile(folder / "keys")

    def open_cycles(store: SeriesStore, account: Account, at: Millis) -> Cycles:
        journal = ChainedJournal(MemoryStore(), key, code=lambda: CODE, now=lambda: at)

        async def read_slots(origin: str, before: Millis, present: bool, _: Account | None) -> Sequence[Slot]:
            return account_slots(account, before, CODE)

        async def refuse(*_: Any) -> Any:
            raise NotImplementedError("a study is not replayed")

        backends = RunBackends(
            journal=always(journal),
            held=read_slots,
            record=LoggedTradeRecord(MemoryTradeLog()),
            model_context=open_rules(folder),
            checkpoints=lambda: sqlite_checkpoints(folder / "cycles.db"),
            lease=lambda symbol: symbol_lock(folder, symbol),
            rehearse=refuse,
            now=lambda: at,
            random=os.urandom,
            code=lambda: CODE,
        )
        return Cycles(TradingDesk(store, always(journal), MatplotlibPainter()), backends)

    return open_cycles


async def study_memory_plan(plan: MemoryPlan) -> AsyncIterator[memory_study.MemoryMoment]:
    disable_tracing()
    with tempfile.TemporaryDirectory(prefix="zuno-study-") as name:
        folder, seed, consequences = Path(name), plan.seed, plan.world is memory_study.World.PLANTED
        origin = planted_origin(seed, consequences=consequences)
        store = SqliteSeries(folder / "market", origin)
        await store.renew(origin, await asyncio.to_thread(planted_batches, seed, consequences=consequences))
        market = memory_study.MemoryMarket(seed, plan.world, store, memory_moments(seed), Millis(END))
        try:
            desks = [build_arm(arm, seed, folder) for arm in memory_study.Arm]
            async for moment in memory_study.study_memory(market, desks):
                yield moment
        finally:
            await store.close()


def memory_moments(seed: int) -> tuple[tuple[Millis, str], ...]:
    """Moments at which a slot's signs are visible and a trade can still reach its end."""
    return tuple(
        (Millis(start + SHOWN_MS), setup)
        for start, setup in planted_slots(seed)
        if MINUTES_FROM + 5 * DAY_MS <= start <= END - memory_study.LONGEST_MS - DAY_MS
    )


def build_arm(arm: memory_study.Arm, seed: int, folder: Path) -> memory_study.ArmDesk:
    key = KeyFile(folder / "keys")
    key.ensure()
    model_context = open_rules(folder)

    def new_journal() -> ChainedJournal:
        return ChainedJournal(MemoryStore(), key, code=lambda: CODE, now=lambda: Millis(0))

    journal = new_journal()

    index: MemoryIndex = InMemoryIndex(HashedEmbedder())
    if arm is memory_study.Arm.SHUFFLED:
        index = memory_study.ShuffledIndex(index, seed)
    elif arm is memory_study.Arm.RECENT:
        index = JsonlMemory(folder / f"{arm}.jsonl")
    lessons, book = LessonBook(always(journal)), MemoryBook(always(journal))

    async def remember(post_mortem: PostMortem) -> None:
        await journal.append_once(
            kind=POST_MORTEM, author=Author("post_mortem"), payload=post_mortem, request_id=post_mortem.id
        )
        await index.add([memory_record(post_mortem)])
        if arm is memory_study.Arm.LESSONS:
            cases = (await book.read()).values()
            await lessons.correct(cases, post_mortem.origin, Millis(post_mortem.closed + 1), model_context)

    return memory_study.ArmDesk(
        arm=arm,
        recall=None if arm is memory_study.Arm.OFF else CaseRecall(index, book, lessons),
        remember=remember,
        model_context=model_context,
        open_journal=lambda: RunJournal(new_journal(), "run_0000000000000000"),
    )


async def study_worlds_plan(plan: WorldsPlan) -> AsyncIterator[WorldResult]:
    disable_tracing()
    with tempfile.TemporaryDirectory(prefix="zuno-noedge-") as folder:
        rules = open_rules(Path(folder))
        for seed in plan.seeds:
            yield await study_world(make_world(plan.kind, seed, plan.pool), rules)


async def study_lookahead_plan(plan: MarketPlan) -> AsyncIterator[LookaheadMoment]:
    async with open_study_market(plan.seed) as (market, folder):
        async for moment in study_lookahead(market, plan.moments, open_rules(folder)):
            yield moment


async def study_invariance_plan(plan: MarketPlan) -> AsyncIterator[InvarianceMoment]:
    async with open_study_market(plan.seed) as (market, folder):
        rules = open_rules(folder)
        for moment in await choose_moments(market, plan.moments):
            yield await change_moment(market.store, market.seed, moment, rules)


@asynccontextmanager
async def open_study_market(seed: int) -> AsyncIterator[tuple[StudyMarket, Path]]:
    """A synthetic market and the folder it is stored in, which is removed at the end."""
    disable_tracing()
    with tempfile.TemporaryDirectory(prefix="zuno-study-") as name:
        store = SqliteSeries(Path(name) / "market", describe_origin(seed))
        rows: list[Batch[Any]] = await asyncio.to_thread(build_batches, seed)
        await store.renew(describe_origin(seed), rows)
        try:
            yield describe_market(seed, store), Path(name)
        finally:
            await store.close()


def describe_market(seed: int, store: SeriesStore) -> StudyMarket:

    def moments(hours: Sequence[int]) -> tuple[Millis, ...]:
        return tuple(Millis(DAYS_FROM + hour * HOUR_MS) for hour in hours)

    (krw,) = (fault for fault in MARKET_FAULTS if fault.series.name == USDT_KRW)
    return StudyMarket(
        seed=seed,
        store=store,
        first=Millis(MINUTES_FROM + 5 * DAY_MS),
        end=Millis(END),
        jumps=moments(draw_paths(seed)[Symbol("BTCUSDT")].jumps.hour.tolist()),
        panics=moments(draw_panics(seed).tolist()),
        faults=tuple(fault.first for fault in MARKET_FAULTS if fault is not krw),
        krw_lost=krw.first,
    )


def open_rules(folder: Path) -> OpenModelContext:
    """A model context without models: rules answer for every agent."""
    models = Models(Settings(home=folder, deterministic=True))
    return lambda notes: build_run_context(models, notes, models.registry())


async def read_pools(open_own: Callable[[], SeriesStore]) -> list[HourPool]:
    """The hours of the home's own history if there are enough, else of a synthetic market."""
    store = open_own()
    last = Millis(2**62)
    pools = []
    for symbol in DEFAULT_SYMBOLS:
        hours = await store.read(candles(BINANCE, symbol, Timeframe.H1), Millis(0), last, last)
        pools.append(build_pool(symbol, store.origin.label, hours))
    return [pool for pool in pools if pool is not None] or await asyncio.to_thread(make_synthetic_pools)


def make_synthetic_pools() -> list[HourPool]:
    pools = []
    for symbol, path in draw_paths(POOL_SEED).items():
        series = candles(BINANCE, symbol, Timeframe.H1)
        (hours,) = (
            batch.rows
            for batch in synthetic_candles.build_batches(synthetic_candles.build_market(POOL_SEED, path))
            if batch.series == series
        )
        pools.append(build_pool(symbol, describe_origin(POOL_SEED).label, hours))
    return [pool for pool in pools if pool is not None]
