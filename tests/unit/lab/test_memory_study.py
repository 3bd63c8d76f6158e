"""The study of memory: what its arms differ by, when a verdict is given, and the market it is held in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.in_memory import InMemoryIndex
from zuno.adapters.venues.synthetic import planted
from zuno.adapters.venues.synthetic.path import MINUTES_FROM, paths
from zuno.kernel.errors import Usage
from zuno.kernel.units import Millis
from zuno.lab import memory_service
from zuno.lab.memory_service import MemoryPlan, MemoryStudy, build_memory_view
from zuno.lab.memory_study import Arm, MemoryMoment, ShuffledIndex, TradeResult, World
from zuno.trading.model.market import DAY_MS, Feed, Funding, Side, Symbol, TapeEvent, fear_greed, funding_next, whales
from zuno.trading.model.memory import Channel, MemoryRecord, RecallQuery
from zuno.trading.model.venues import ALTERNATIVE, BINANCE
from zuno.trading.ports.series import Batch

WON, LOST = TradeResult("SHORT", 15_000, True), TradeResult("SHORT", -10_500, False)


def moment(world: World, day: int, *, kept: bool, seed: int = 1) -> MemoryMoment:
    """Every other day is drawn, and its trade fails; `kept`: whether recall keeps it from being made."""
    drawn = day % 2 == 0
    result = LOST if drawn else (WON, LOST)[day // 2 % 2]
    trades = {arm.value: result for arm in Arm}
    if drawn and kept:
        del trades[Arm.ON.value]
    return MemoryMoment(seed, world.value, day, day, "BTCUSDT", drawn, trades)


def moments(days: int, kept: Callable[[World, int], bool]) -> list[MemoryMoment]:
    return [moment(world, day, kept=kept(world, day)) for world in World for day in range(days)]


def verdicts(days: int, kept: Callable[[World, int], bool]) -> dict[tuple[str, str, str], str]:
    view = build_memory_view(moments(days, kept), (1,), 2 * days, stopped=False)
    return {(each.world, pair.first, pair.second): pair.verdict for each in view.worlds for pair in each.pairs}


def test_under_fifty_outcomes_no_verdict_is_given() -> None:
    found = verdicts(98, lambda world, day: world is World.PLANTED)
    assert found["planted", "on", "off"] == memory_service.TOO_FEW, "49 trades of the first arm"
    view = build_memory_view(moments(98, lambda *_: True), (1,), 196, stopped=False)
    assert (view.judged, view.ok, view.missed) == (False, True, ())


def test_recall_that_keeps_from_what_fails_is_better_and_none_where_nothing_is_kept() -> None:
    found = verdicts(200, lambda world, day: world is World.PLANTED)
    assert found["planted", "on", "off"] == found["planted", "on", "recent3"] == "better"
    assert found["no edge", "on", "off"] == found["planted", "recent3", "off"] == "no difference"
    view = build_memory_view(moments(200, lambda world, _: world is World.PLANTED), (1,), 400, stopped=False)
    assert view.judged
    assert view.ok
    (on, off) = (arm for arm in view.worlds[0].arms if arm.arm in ("on", "off"))
    assert (on.trades, off.trades, off.planted_trades, off.hit_rate) == (100, 200, 100, 0.25)
    assert on.mean_r == pytest.approx(0.225)


def test_memory_that_does_not_help_misses_its_bars() -> None:
    view = build_memory_view(moments(120, lambda *_: False), (1,), 240, stopped=False)
    assert view.judged
    assert not view.ok
    assert len(view.missed) == 2
    stopped = build_memory_view(moments(120, lambda *_: False), (1,), 999, stopped=True)
    assert (stopped.judged, stopped.missed) == (False, ())


async def answer(
    plans: Sequence[MemoryPlan], workers: int, hear: Callable[[MemoryMoment], None], stop: asyncio.Event
) -> None:
    found = [moment(plan.world, day, kept=day % 3 == 0, seed=plan.seed) for plan in plans for day in range(40)]
    for each in found[::-1] if workers > 1 else found:
        hear(each)


async def test_the_number_of_workers_changes_nothing() -> None:
    study = MemoryStudy(answer, lambda seed: 40)
    alone, several = [
        await study.study("2,1", workers, lambda done, total: None, asyncio.Event()) for workers in (1, 3)
    ]
    assert alone == several
    assert (alone.seeds, alone.moments, alone.asked) == ((1, 2), 160, 160)


@pytest.mark.parametrize(("seeds", "workers"), [("", 1), ("x", 1), ("1-101", 1), ("1", 0), ("1", 65)])
async def test_what_cannot_be_read_is_refused(seeds: str, workers: int) -> None:
    with pytest.raises(Usage):
        await MemoryStudy(answer, lambda seed: 1).study(seeds, workers, lambda done, total: None, asyncio.Event())


async def test_shuffled_recall_knows_no_later_memory_and_is_the_same_each_time() -> None:
    index = ShuffledIndex(InMemoryIndex(HashedEmbedder()), 7)
    await index.add(
        [
            MemoryRecord(
                id=f"pm_{number}",
                channel=Channel.SYSTEM_POST_MORTEM,
                origin="here",
                symbol=Symbol.BTCUSDT,
                at=Millis(number),
                text="funding high; fear",
            )
            for number in range(20)
        ]
    )
    query = RecallQuery(text="funding high; fear", origin="here", before=Millis(8), limit=3)
    found = await index.recall(query)
    assert len(found.found) == 3
    assert all(int(each.id[3:]) < 8 for each in found.found)
    assert await index.recall(query) == found
    others = [await index.recall(query.model_copy(update={"before": Millis(at)})) for at in range(8, 20)]
    assert len({tuple(each.id for each in other.found) for other in others}) > 6


# -- the market


def test_a_drawn_day_swings_through_both_sides_and_comes_back() -> None:
    drawn = [start for start, is_drawn in planted.planted_days(3) if is_drawn]
    assert 8 <= len(drawn) <= 28
    own = paths(3)[Symbol.BTCUSDT]
    swung = planted._swing(3, own, drawn)
    for start in drawn[2:]:
        begin, end = (
            planted._step_of(start + ahead) for ahead in (planted.SHOWN_MS, planted.SHOWN_MS + planted.SWING_MS)
        )
        usual = planted._mean_range(own.steps[2].reshape(-1)[:begin])
        walked = np.cumsum(swung.steps[2].reshape(-1)[begin:end] - planted.LEFT * own.steps[2].reshape(-1)[begin:end])
        assert walked.max() == pytest.approx(planted.SWING_ATR * usual, rel=1e-6)
        assert walked.min() == pytest.approx(-planted.SWING_ATR * usual, rel=1e-6)
        assert walked[-1] == pytest.approx(0, abs=1e-9)
    same = np.ones(swung.steps[2].size, bool)
    for start in drawn:
        same[
            planted._step_of(start + planted.SHOWN_MS) : planted._step_of(start + planted.SHOWN_MS + planted.SWING_MS)
        ] = 0
    assert np.array_equal(swung.steps[2].reshape(-1)[same], own.steps[2].reshape(-1)[same])


def test_signs_stand_on_drawn_days_alone() -> None:
    day = MINUTES_FROM + 3 * DAY_MS
    series = funding_next(BINANCE, Symbol.BTCUSDT)
    rows = [Funding(Millis(day + ahead), 0.0001, 8.0) for ahead in (-1, 1, DAY_MS - 1, DAY_MS + 1)]
    shown = planted._show(Batch(series, rows), [day]).rows
    assert [row.rate for row in shown] == [0.0001, planted.FUNDING, planted.FUNDING, 0.0001]
    taken = [TapeEvent(Millis(day + ahead), Side.LONG, 1.0, 1.0, 1.0, "w") for ahead in (1, planted.SHOWN_MS + 1)]
    sold = planted._show(Batch(whales(BINANCE, Symbol.BTCUSDT), taken), [day]).rows
    assert [row.side for row in sold] == [Side.SHORT, Side.LONG]
    mood = fear_greed(ALTERNATIVE)
    assert mood.feed is Feed.FEAR_GREED
