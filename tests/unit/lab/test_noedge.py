"""Worlds without an edge are the same for everybody and go nowhere; an edge that is there would be claimed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zuno.adapters.store.report_files import FolderOfReports
from zuno.kernel.canonical import digest
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.units import Millis
from zuno.lab.checks import DeskChecks
from zuno.lab.no_edge_worlds import (
    HOURS,
    STEPS,
    WARM_HOURS,
    HourPool,
    WorldKind,
    build_pool,
    find_breakouts,
    make_world,
)
from zuno.lab.noedge import (
    MIN_WORLDS,
    NoEdgeStudy,
    NoEdgeView,
    WorldResult,
    WorldsPlan,
    build_no_edge_view,
    is_gain,
    plan_worlds,
)
from zuno.lab.reports import LabReports
from zuno.lab.workers import StoppedEarly
from zuno.markets.feeds import BINANCE
from zuno.markets.market import Symbol
from zuno.trading.measure.portable import price_units
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Candle, Side, Timeframe, candles
from zuno.trading.rules.trade_outcomes import BarColumns, PlannedTrade, simulate_trade


@pytest.fixture(scope="module")
def pool() -> HourPool:
    """Sixty days that rise by a tenth of a per cent an hour, with a day of which an hour is missing."""
    bars, price = [], 100.0
    for hour in range(61 * 24):
        after = price * (1.004 if hour % 2 else 0.998)
        bars.append(Candle(Millis(hour * HOUR_MS), price, max(price, after), min(price, after), after, 5.0, None))
        price = after
    found = build_pool(Symbol("ETHUSDT"), "rising", [bar for bar in bars if bar.at != 700 * HOUR_MS])
    assert found is not None
    return found


def test_a_pool_holds_whole_days_and_no_drift(pool: HourPool) -> None:
    assert len(pool.hours) == 59 * 24  # neither the first hour's day, which has no close before it, nor the broken one
    growth = np.expm1(pool.hours[:, 3] / 1e9).mean()
    assert abs(growth) < 1e-8
    assert (pool.hours[:, 1] >= pool.hours[:, [0, 2, 3]].max(axis=1)).all()
    assert (pool.hours[:, 2] <= pool.hours[:, [0, 1, 3]].min(axis=1)).all()
    assert build_pool(Symbol("ETHUSDT"), "short", []) is None


@pytest.mark.parametrize(("kind", "name"), [(WorldKind.WALK, "5553690a30cc"), (WorldKind.BLOCKS, "c11f077d6384")])
async def test_a_world_is_the_same_on_every_machine(kind: WorldKind, name: str, pool: HourPool) -> None:
    world = make_world(kind, 3, pool if kind is WorldKind.BLOCKS else None)
    assert world.bars.shape == (HOURS, 5)
    assert digest(price_units(world.bars).tobytes())[:12] == name
    assert (world.bars[:, 1] >= world.bars[:, [0, 2, 3]].max(axis=1)).all()
    noon = world.at(WARM_HOURS + 12)
    day = await world.store.read(candles(BINANCE, world.symbol, Timeframe.D1), Millis(0), noon, noon)
    hours = await world.store.read(candles(BINANCE, world.symbol, Timeframe.H1), Millis(0), noon, noon)
    assert (len(day), len(hours)) == (WARM_HOURS // 24, WARM_HOURS + 12)  # nothing that is not over
    assert day[-1].close == hours[-13].close
    with pytest.raises(Refused):
        await world.store.write([])


@pytest.mark.slow
def test_a_walk_leaps_over_a_stop_and_is_filled_where_it_lands(pool: HourPool) -> None:
    world = make_world(WorldKind.WALK, 5)
    assert world.path.shape == (HOURS * STEPS, 6)
    prices = world.path[:, 2].reshape(HOURS, STEPS)
    assert np.array_equal(prices[:, -1], world.bars[:, 3])
    assert np.array_equal(np.maximum(prices.max(axis=1), world.bars[:, 0]), world.bars[:, 1])
    assert np.array_equal(np.minimum(prices.min(axis=1), world.bars[:, 0]), world.bars[:, 2])
    at = world.at(WARM_HOURS)
    entry, *after = prices[WARM_HOURS:].ravel()[:600]
    lowest = int(np.argmin(after))
    before = min(after[:lowest])
    assert after[lowest] < before < entry
    stop = (after[lowest] + before) / 2  # between two minutes
    wanted = PlannedTrade(at, Side.LONG, stop, 10 * entry, Millis(at + 24 * HOUR_MS))
    played = simulate_trade(wanted, BarColumns(world.path), (), 0.0, wanted.hold_until, assumed=False)
    assert played is not None
    assert (played.exit, played.resolved) == ("stop", at + (lowest + 2) * MINUTE_MS)
    assert played.pct == pytest.approx(100 * (after[lowest] / entry - 1), abs=1e-6)
    assert make_world(WorldKind.BLOCKS, 5, pool).path.shape == (HOURS, 6)


def test_a_breakout_is_known_before_the_hour_begins() -> None:
    world = make_world(WorldKind.WALK, 1)
    found = find_breakouts(world.bars)
    middle = found[len(found) // 2]
    cut = world.bars.copy()
    cut[middle:] = cut[:1]
    assert [hour for hour in find_breakouts(cut) if hour <= middle] == [hour for hour in found if hour <= middle]


def result(seed: int, edge: int = 0, *, count: int = 15, kind: WorldKind = WorldKind.WALK) -> WorldResult:
    """Trades of a walk without drift: the target is 1.8 times as far as the stop, and reached in 10 of 28 cases."""
    chance = np.random.Generator(np.random.PCG64(seed))
    sizes = chance.integers(500_000, 1_500_001, count)
    gross = (np.where(chance.integers(0, 28, count) < 10, sizes * 18 // 10, -sizes) + edge).tolist()
    net = [pct - 200_000 for pct in gross]
    return WorldResult(
        kind=kind,
        seed=seed,
        symbol="BTCUSDT",
        cycles=24,
        gross=tuple(gross),
        net=tuple(net),
        believed=0,
        weighed=False,
        gained=is_gain(net),
        gained_before_costs=is_gain(gross),
    )


@pytest.mark.slow
def test_chance_alone_passes_and_an_edge_is_claimed() -> None:
    worlds = [result(seed) for seed in range(250)]
    assert 4 <= sum(world.gained_before_costs for world in worlds) <= 21  # of 250 one in twenty is 12.5 ± 3.4
    assert not any(world.gained and not world.gained_before_costs for world in worlds)
    chance = build_no_edge_view(4 * worlds, MIN_WORLDS, "x", stopped=False)
    assert chance.ok
    assert chance.ci95 is not None
    assert chance.ci95[0] <= 0.05
    found = build_no_edge_view(20 * [result(seed, 700_000) for seed in range(50)], MIN_WORLDS, "x", stopped=False)
    assert not found.ok
    assert found.ci95 is not None
    assert found.ci95[0] > 0.05
    moves = [pct / 1e6 for world in worlds for pct in world.gross]
    (kind,) = build_no_edge_view(worlds, 250, "x", stopped=False).kinds
    assert kind.standard_error_pct == pytest.approx(np.std(moves, ddof=1) / len(moves) ** 0.5, abs=1e-6)


@pytest.mark.slow
def test_too_few_trades_or_worlds_are_not_judged() -> None:
    view = build_no_edge_view([result(seed, count=9) for seed in range(4)], 4, "x", stopped=False)
    assert (view.ok, view.worlds, view.judged, view.false_edge_rate, view.ci95) == (None, 4, 0, None, None)
    idle = build_no_edge_view(250 * [result(seed, count=9) for seed in range(4)], 1_000, "x", stopped=False)
    assert (idle.ok, idle.worlds) == (None, 1_000)
    edges = 20 * [result(seed, 700_000) for seed in range(50)]
    assert [build_no_edge_view(edges, 1_000, "x", stopped=stopped).ok for stopped in (False, True)] == [False, None]
    assert build_no_edge_view(edges[:-1], 999, "x", stopped=False).said.startswith("Not judged")


@pytest.mark.slow
async def test_whoever_works_on_it_in_whatever_order_and_in_how_many_goes(pool: HourPool) -> None:
    async def run(
        plans: Sequence[WorldsPlan], workers: int, hear: Callable[[WorldResult], None], stop: asyncio.Event
    ) -> None:
        for plan in plans if workers == 1 else reversed(plans):
            for seed in plan.seeds:
                hear(result(seed, kind=plan.kind))

    async def read() -> list[HourPool]:
        return [pool]

    study = NoEdgeStudy(run, read)
    kept: list[WorldResult] = []
    told: list[tuple[int, int]] = []

    async def ask(workers: int, done: Sequence[WorldResult] = (), worlds: int = 30) -> NoEdgeView:
        return await study.study(worlds, [pool], workers, lambda *n: told.append(n), asyncio.Event(), done, kept.append)

    whole = await ask(1)
    assert (whole.worlds, told[-1], len(kept)) == (30, (30, 30), 30)
    assert await ask(2) == whole
    assert await ask(1, [WorldResult.model_validate_json(part.model_dump_json()) for part in kept[:11]]) == whole
    assert len(kept) == 30 + 30 + 19
    for worlds, workers in ((1, 1), (10, 0)):
        with pytest.raises(UsageError):
            await ask(workers, worlds=worlds)


async def test_a_stopped_study_leaves_the_older_report_and_reads_no_part_of_another_form(
    pool: HourPool, tmp_path: Path
) -> None:
    async def run(
        plans: Sequence[WorldsPlan], workers: int, hear: Callable[[WorldResult], None], stop: asyncio.Event
    ) -> None:
        for plan in plans:
            for seed in plan.seeds:
                hear(result(seed, kind=plan.kind))

    async def read() -> list[HourPool]:
        return [pool]

    none: Any = None
    reports = LabReports(FolderOfReports(tmp_path / "lab"))
    checks = DeskChecks(reports, NoEdgeStudy(run, read), none, none, none)
    whole = await checks.noedge(4, 1, lambda *n: None, asyncio.Event())
    stop = asyncio.Event()
    stop.set()
    with pytest.raises(StoppedEarly):
        await checks.noedge(4, 1, lambda *n: None, stop)
    assert (await reports.read(whole.report)).body["worlds"] == 4
    (tmp_path / "lab" / f"{whole.report}.part.jsonl").write_text('{"kind":"walk","seed":0}\n')
    assert await checks.noedge(4, 1, lambda *n: None, asyncio.Event(), resume=True) == whole


def test_every_world_is_planned_once(pool: HourPool) -> None:
    for workers in (1, 3):
        plans = plan_worlds(51, [pool, pool], workers)
        seeds = [(plan.kind, seed) for plan in plans for seed in plan.seeds]
        assert len(seeds) == len(set(seeds)) == 51
        assert sum(kind is WorldKind.BLOCKS for kind, _ in seeds) == 25
    assert {plan.kind for plan in plan_worlds(4, [], 1)} == {WorldKind.WALK}
