"""A debate over a recorded pool knows no later minute and no order of its candidates; a planted leak is found."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.wire.pool_minutes import draw_minutes, write_minutes
from zuno.adapters.chain.recorded.world import RecordedChain
from zuno.adapters.store.report_files import FolderOfReports
from zuno.amm.model import Block
from zuno.amm.ticks import cached_sqrt_price_at_tick
from zuno.kernel.units import HexId, Millis, Seconds, SqrtPriceX96
from zuno.lab.checks import DeskChecks
from zuno.lab.invariance import build_invariance_view
from zuno.lab.lookahead import LookaheadMoment, build_lookahead_view
from zuno.lab.lp.backtest import Schedule
from zuno.lab.lp.debate_checks import (
    DebateChecks,
    DebateMoment,
    PoolTask,
    ReversedStrategist,
    build_pool_invariance,
    change_minutes,
    choose_hours,
    cut_minutes,
    scramble_minutes,
)
from zuno.lab.lp.question import plan_schedule, read_question
from zuno.lab.market_study import MarketPlan, MarketStudy
from zuno.lab.reports import LabReports
from zuno.lab.workers import StoppedEarly
from zuno.lp.model.ballot import Verdict
from zuno.lp.model.debate import Role, Round
from zuno.lp.model.history import PricedBlock
from zuno.lp.model.market import HOUR
from zuno.lp.rules import ballot
from zuno.present.document import Table
from zuno.wiring.lp_lab import LabDesk, argue_in_futures, argue_in_orders, gas_of, open_world, read_minutes

HOURS = 168 + 24


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> PoolTask:
    folder = write_minutes(tmp_path_factory.mktemp("minutes"), draw_minutes(60 * HOURS, step=18))
    question = read_question(str(folder), "debate", 10_000, 1, "5", "balanced", "0.1")
    schedule = plan_schedule(read_minutes(str(folder)), 1)
    return PoolTask(question, schedule, choose_hours(schedule, 2))


@pytest.mark.soak
@pytest.mark.slow
async def test_a_debate_is_the_same_without_later_minutes_and_with_others(task: PoolTask) -> None:
    found = [moment async for moment in argue_in_futures(task)]
    assert [moment.at for moment in found] == list(task.moments)
    assert [moment.leaks for moment in found] == [(), ()]


@pytest.mark.slow
async def test_a_minute_of_the_future_is_found(task: PoolTask, monkeypatch: pytest.MonkeyPatch) -> None:
    read = RecordedChain.price_path

    async def leak(self: RecordedChain, pool_id: HexId, since: Seconds, step: int = HOUR) -> tuple[PricedBlock, ...]:
        path, world = await read(self, pool_id, since, step), self.world
        if world.at_end:
            return path
        price = cached_sqrt_price_at_tick(world.minutes[len(world.marks)].close_tick)
        last = path[-1].block
        return (*path[:-1], PricedBlock(Block(last.number, last.hash, last.timestamp), SqrtPriceX96(price)))

    monkeypatch.setattr(RecordedChain, "price_path", leak)
    for moment in [moment async for moment in argue_in_futures(task)]:
        assert {"cut inputs", "cut debate", "scrambled inputs", "scrambled debate"} <= set(moment.leaks)


@pytest.mark.soak
@pytest.mark.slow
async def test_candidates_change_places_and_the_choice_stays(task: PoolTask, tmp_path: Path) -> None:
    found = [moment async for moment in argue_in_orders(task)]
    assert [moment.reordered for moment in found] == [moment.choice for moment in found]
    world = open_world(task.question, task.schedule.start)
    desk = LabDesk(RecordedChain(world, gas_of(task.question)), task.question, "", tmp_path)
    own, other = await desk.argue(world), await desk.argue(world, seats={Role.STRATEGIST: ReversedStrategist})
    ranges = [
        [candidate.range for candidate in ready.debate.rounds[0].candidates if candidate.kind.move]
        for ready in (own, other)
    ]
    assert len(ranges[0]) > 1
    assert ranges[1] == ranges[0][::-1]


@pytest.mark.slow
async def test_a_choice_that_hangs_on_the_order_is_a_flip(task: PoolTask, monkeypatch: pytest.MonkeyPatch) -> None:
    def first_move(round_: Round, *_: object) -> int:
        vetoed = {judgment.index for judgment in round_.judgments if judgment.verdict is Verdict.VETO}
        moves = [candidate.index for candidate in round_.candidates if candidate.kind.move]
        return next((index for index in moves if index not in vetoed), 0)

    monkeypatch.setattr(ballot, "choose_winner", first_move)
    monkeypatch.setattr(ballot, "arbitrate", first_move)
    found = [moment async for moment in argue_in_orders(task)]
    assert all(moment.reordered != moment.choice for moment in found), found


def test_flips_are_counted() -> None:
    moments = [
        DebateMoment(0, "stay, approve", reordered="stay, approve"),
        DebateMoment(3600, "-10…10, approve", reordered="stay, approve"),
        DebateMoment(7200, "-10…10, approve", reordered="-10…10, approve"),
        DebateMoment(10800, "close, approve", reordered="close, approve"),
    ]
    view = build_pool_invariance(moments, "pool", 4)
    assert (view.choices.count, view.choices.total, view.ranges.count, view.ranges.total) == (1, 4, 1, 2)
    assert [(flip.at, flip.changed) for flip in view.flips] == [("1970-01-01T01:00:00Z", "stay, approve")]
    checked = build_invariance_view([], [MarketPlan(1, 0)], stopped=False).model_copy(update={"pool": view})
    shown = next(part for part in checked.to_document().sections if part.title == "Choices of the LP desk that flip")
    rates = shown.blocks[0]
    assert isinstance(rates, Table)
    assert [cell.text for cell in rates.rows[0].cells][:3] == ["candidates reordered", "4", "25.0 %"]
    assert [column.name for column in rates.columns][4:] == ["new range: flip", "95 % of it", "with a new range"]


@pytest.mark.slow
def test_minutes_that_were_over_stay(task: PoolTask) -> None:
    minutes = read_minutes(task.question.folder).minutes
    at, other = Seconds(minutes[100].at // 1000), change_minutes(minutes)
    assert cut_minutes(minutes, at) == minutes[:100]
    assert scramble_minutes(minutes, other, at) == minutes[:100] + other[100:]
    assert not set(minutes) & set(other)


def test_hours_lie_far_apart() -> None:
    schedule = Schedule(Seconds(0), Seconds(11 * HOUR), Seconds(HOUR))
    assert [at // HOUR for at in choose_hours(schedule, 3)] == [2, 6, 9]
    assert len(choose_hours(schedule, 60)) == 10


@pytest.mark.soak
async def test_leaks_of_both_desks_count(task: PoolTask, tmp_path: Path) -> None:
    async def rule(
        plans: Sequence[MarketPlan], workers: int, hear: Callable[[LookaheadMoment], None], stop: asyncio.Event
    ) -> None:
        hear(LookaheadMoment(1, 0, Millis(0), "BTCUSDT", "swing", "HOLD", "HOLD", ("cut inputs",), ()))

    async def argue(
        tasks: Sequence[PoolTask], workers: int, hear: Callable[[DebateMoment], None], stop: asyncio.Event
    ) -> None:
        for at in (at for task in reversed(tasks) for at in task.moments):
            hear(DebateMoment(at, "stay, approve", ("cut debate",)))

    none: Any = None
    reports = LabReports(FolderOfReports(tmp_path / "lab"))
    checks = DeskChecks(
        reports,
        none,
        MarketStudy(rule, build_lookahead_view),
        MarketStudy(none, build_invariance_view),
        DebateChecks(read_minutes, argue, argue),
    )
    folder, told = task.question.folder, []
    view = await checks.lookahead(1, "1", folder, 2, lambda *n: told.append(n), asyncio.Event())
    assert view.pool is not None
    assert (view.ok, view.leaks, len(view.differences), view.pool.leaks, told[-1]) == (False, 2, 1, 1, (1, 1))
    alone = await checks.lookahead(1, "1", None, 1, lambda *n: None, asyncio.Event())
    assert (alone.leaks, alone.pool) == (1, None)
    assert alone.report != view.report
    (named,) = (row for row in (await reports.list()).reports if row.id == view.report)
    assert f"--data {folder}" in named.command
    before, stop = (await reports.read(alone.report), await reports.read(view.report)), asyncio.Event()

    async def rule_and_stop(
        plans: Sequence[MarketPlan], workers: int, hear: Callable[[LookaheadMoment], None], stop: asyncio.Event
    ) -> None:
        await rule(plans, workers, hear, stop)
        stop.set()

    stopped_checks = DeskChecks(
        reports,
        none,
        MarketStudy(rule_and_stop, build_lookahead_view),
        none,
        DebateChecks(read_minutes, argue, argue),
    )
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    cut = await stopped_checks.lookahead(1, "1", str(moved), 1, lambda *n: None, stop)
    assert (cut.report, cut.stopped) == (view.report, True), "an id is made of the data, not of its folder"
    assert cut.pool is not None
    assert (cut.pool.moments, cut.pool.asked) == (0, 1)
    assert await reports.read(alone.report) == before[0], "the report without --data is another one"
    with pytest.raises(StoppedEarly):
        await stopped_checks.lookahead(1, "1", folder, 1, lambda *n: None, stop)
    assert (await reports.read(view.report)).body["moments"] == 1
