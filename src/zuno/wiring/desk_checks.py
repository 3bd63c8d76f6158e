"""Wire the lab's checks of the desks: markets without an edge, the future cut off, and changes that should not
matter."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zuno.settings import Settings

if TYPE_CHECKING:
    from zuno.adapters.task_runner import TaskRunner
    from zuno.lab.checks import DeskChecks
    from zuno.lab.invariance import InvarianceMoment
    from zuno.lab.lookahead import LookaheadMoment
    from zuno.lab.market_study import MarketPlan
    from zuno.lab.moments import StudyMarket
    from zuno.lab.no_edge_worlds import HourPool
    from zuno.lab.noedge import OpenModelContext, WorldResult, WorldsPlan
    from zuno.lab.reports import LabReports
    from zuno.trading.ports.series import Batch, SeriesStore

POOL_SEED = 11
"""The synthetic market whose days are shuffled where the home has no history of its own."""


def build_desk_checks(reports: LabReports, open_own: Callable[[], SeriesStore], run: TaskRunner) -> DeskChecks:
    """`open_own`: the home's own history."""
    from zuno.lab.checks import DeskChecks
    from zuno.lab.invariance import build_invariance_view
    from zuno.lab.lookahead import build_lookahead_view
    from zuno.lab.market_study import MarketStudy
    from zuno.lab.noedge import NoEdgeStudy
    from zuno.wiring.lp_lab import build_debate_checks

    return DeskChecks(
        reports,
        NoEdgeStudy(partial(run, study_worlds_plan), lambda: read_pools(open_own)),
        MarketStudy(partial(run, study_lookahead_plan), build_lookahead_view),
        MarketStudy(partial(run, study_invariance_plan), build_invariance_view),
        build_debate_checks(run),
    )


async def study_worlds_plan(plan: WorldsPlan) -> AsyncIterator[WorldResult]:
    from zuno.lab.noedge import study_worlds
    from zuno.wiring.cycles import disable_tracing

    disable_tracing()
    with tempfile.TemporaryDirectory(prefix="zuno-noedge-") as folder:
        async for result in study_worlds(plan, open_rules(Path(folder))):
            yield result


async def study_lookahead_plan(plan: MarketPlan) -> AsyncIterator[LookaheadMoment]:
    from zuno.lab.lookahead import study_lookahead

    async with open_study_market(plan.seed) as (market, model_context):
        async for moment in study_lookahead(market, plan.moments, model_context):
            yield moment


async def study_invariance_plan(plan: MarketPlan) -> AsyncIterator[InvarianceMoment]:
    from zuno.lab.invariance import study_invariance

    async with open_study_market(plan.seed) as (market, model_context):
        async for moment in study_invariance(market, plan.moments, model_context):
            yield moment


@asynccontextmanager
async def open_study_market(seed: int) -> AsyncIterator[tuple[StudyMarket, OpenModelContext]]:
    """A synthetic market in a folder that goes with it, and agents by rules."""
    from zuno.wiring.cycles import disable_tracing

    disable_tracing()
    with tempfile.TemporaryDirectory(prefix="zuno-check-") as name:
        market = await open_market(seed, Path(name))
        try:
            yield market, open_rules(Path(name))
        finally:
            await market.store.close()


async def open_market(seed: int, folder: Path) -> StudyMarket:
    from zuno.adapters.series.sqlite import SqliteSeries
    from zuno.adapters.venues.synthetic.world import build_batches, describe_origin

    store = SqliteSeries(folder / "market", describe_origin(seed))
    rows: list[Batch[Any]] = await asyncio.to_thread(build_batches, seed)
    await store.renew(describe_origin(seed), rows)
    return describe_market(seed, store)


def describe_market(seed: int, store: SeriesStore) -> StudyMarket:
    """A synthetic market and when something happened in it."""
    from zuno.adapters.venues.synthetic.injected_faults import MARKET_FAULTS
    from zuno.adapters.venues.synthetic.path import DAYS_FROM, END, MINUTES_FROM, draw_panics, draw_paths
    from zuno.kernel.units import Millis
    from zuno.lab.moments import StudyMarket
    from zuno.trading.model.market import DAY_MS, HOUR_MS, Symbol
    from zuno.trading.model.venues import USDT_KRW

    def moments(hours: Sequence[int]) -> tuple[Millis, ...]:
        return tuple(Millis(DAYS_FROM + hour * HOUR_MS) for hour in hours)

    (krw,) = (fault for fault in MARKET_FAULTS if fault.series.name == USDT_KRW)
    return StudyMarket(
        seed=seed,
        store=store,
        first=Millis(MINUTES_FROM + 5 * DAY_MS),
        end=Millis(END),
        jumps=moments(draw_paths(seed)[Symbol.BTCUSDT].jumps.hour.tolist()),
        panics=moments(draw_panics(seed).tolist()),
        faults=tuple(fault.first for fault in MARKET_FAULTS if fault is not krw),
        krw_lost=krw.first,
    )


def open_rules(folder: Path) -> OpenModelContext:
    """Agents by rules: no model is ever asked."""
    from zuno.wiring.cycles import build_run_context
    from zuno.wiring.models import Models

    models = Models(Settings(home=folder, deterministic=True))
    return lambda notes: build_run_context(models, notes, models.registry())


async def read_pools(open_own: Callable[[], SeriesStore]) -> list[HourPool]:
    """The hours of the home's own history where there are enough, else of a synthetic market."""
    from zuno.kernel.units import Millis
    from zuno.lab.no_edge_worlds import build_pool
    from zuno.trading.model.market import Symbol, Timeframe, candles
    from zuno.trading.model.venues import BINANCE

    store = open_own()
    last = Millis(2**62)
    pools = []
    for symbol in Symbol:
        hours = await store.read(candles(BINANCE, symbol, Timeframe.H1), Millis(0), last, last)
        pool = build_pool(symbol, store.origin.label, hours)
        pools += [] if pool is None else [pool]
    return pools or await asyncio.to_thread(make_synthetic_pools)


def make_synthetic_pools() -> list[HourPool]:
    from zuno.adapters.venues.synthetic.candles import build_batches, build_market
    from zuno.adapters.venues.synthetic.path import draw_paths
    from zuno.adapters.venues.synthetic.world import describe_origin
    from zuno.lab.no_edge_worlds import build_pool
    from zuno.trading.model.market import Timeframe, candles
    from zuno.trading.model.venues import BINANCE

    pools = []
    for symbol, path in draw_paths(POOL_SEED).items():
        series = candles(BINANCE, symbol, Timeframe.H1)
        (hours,) = (batch.rows for batch in build_batches(build_market(POOL_SEED, path)) if batch.series == series)
        pool = build_pool(symbol, describe_origin(POOL_SEED).label, hours)
        pools += [] if pool is None else [pool]
    return pools
