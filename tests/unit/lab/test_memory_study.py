"""The study of memory: what its arms differ by, when a verdict is given, and the market it is held in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.wire.desk_bundles import World as MarketKind
from tests.wire.desk_bundles import bundle_of
from tests.wire.fakes.series import MemorySeries
from tests.wire.post_mortems import ORIGIN, post_mortem
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.table import InMemoryIndex
from zuno.adapters.venues.synthetic import planted
from zuno.adapters.venues.synthetic.path import MINUTES_FROM, draw_paths
from zuno.kernel.errors import UsageError
from zuno.kernel.units import Millis
from zuno.lab import memory_service, memory_study
from zuno.lab.memory_service import MemoryPlan, MemoryStudy, build_memory_view
from zuno.lab.memory_study import (
    Arm,
    ArmDesk,
    MemoryMoment,
    Opening,
    ShuffledIndex,
    TradeResult,
    World,
    opens_with_memory,
    rule_case,
)
from zuno.markets.feeds import ALTERNATIVE, BINANCE
from zuno.markets.market import Symbol
from zuno.present.text import to_text
from zuno.present.values import share
from zuno.trading.measure.setup import describe_setup
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    Book,
    Funding,
    Level,
    Quote,
    Side,
    TapeEvent,
    books,
    fear_greed,
    funding_next,
    whales,
)
from zuno.trading.model.memory import Channel, MemoryRecord, RecallQuery, Verdict
from zuno.trading.ports.series import Batch, Origin
from zuno.wiring.lab import build_arm, memory_moments, study_memory_plan

WON, LOST = TradeResult("SHORT", 15_000, True), TradeResult("SHORT", -10_500, False)


def moment(world: World, day: int, *, kept: bool, seed: int = 1) -> MemoryMoment:
    """Every other day has the setup that fails; `kept`: whether recall keeps the desk from its trade."""
    failing = day % 2 == 0
    result = LOST if failing else (WON, LOST)[day // 2 % 2]
    trades = {arm.value: result for arm in Arm}
    if failing and kept:
        del trades[Arm.ON.value]
    return MemoryMoment(seed, world.value, day, day, "BTCUSDT", "failing" if failing else "ordinary", trades)


def moments(days: int, kept: Callable[[World, int], bool]) -> list[MemoryMoment]:
    return [moment(world, day, kept=kept(world, day)) for world in World for day in range(days)]


def verdicts(days: int, kept: Callable[[World, int], bool]) -> dict[tuple[str, str, str], str]:
    view = build_memory_view(moments(days, kept), (1,), 2 * days, stopped=False)
    return {(each.world, pair.first, pair.second): pair.verdict for each in view.worlds for pair in each.pairs}


@pytest.mark.slow
def test_under_fifty_outcomes_no_verdict_is_given() -> None:
    found = verdicts(98, lambda world, day: world is World.PLANTED)
    assert found["planted", "on", "off"] == memory_service.TOO_FEW, "49 trades of the first arm"
    view = build_memory_view(moments(98, lambda *_: True), (1,), 196, stopped=False)
    assert (view.judged, view.ok, view.missed) == (False, True, ())


@pytest.mark.slow
def test_recall_that_keeps_from_what_fails_is_better_and_none_where_nothing_is_kept() -> None:
    found = verdicts(200, lambda world, day: world is World.PLANTED)
    assert found["planted", "on", "off"] == found["planted", "on", "recent3"] == "better"
    assert found["no edge", "on", "off"] == found["planted", "recent3", "off"] == "no difference"
    view = build_memory_view(moments(200, lambda world, _: world is World.PLANTED), (1,), 400, stopped=False)
    assert view.judged
    assert view.ok
    (on, off) = (arm for arm in view.worlds[0].arms if arm.arm in ("on", "off"))
    assert (on.trades, off.trades, off.failing_trades, off.hit_rate) == (100, 200, 100, 0.25)
    assert on.mean_r == pytest.approx(0.225)


@pytest.mark.slow
def test_more_outcomes_show_a_smaller_difference() -> None:
    """The difference that is seen four times in five is 2.8 standard errors, and these fall with the root of what is
    counted."""
    few, many = (
        build_memory_view(moments(days, lambda *_: True), (1,), 2 * days, stopped=False).worlds[0].pairs[0].r
        for days in (100, 400)
    )
    assert few is not None
    assert many is not None
    assert few.difference == pytest.approx(many.difference, abs=0.01)
    assert few.detectable == pytest.approx(2 * many.detectable, rel=0.15)
    assert few.detectable == pytest.approx(2.8 / 3.92 * (few.high - few.low), rel=0.1)


@pytest.mark.slow
def test_memory_that_does_not_help_misses_its_bars() -> None:
    view = build_memory_view(moments(120, lambda *_: False), (1,), 240, stopped=False)
    assert view.judged
    assert not view.ok
    assert len(view.missed) == 2
    stopped = build_memory_view(moments(120, lambda *_: False), (1,), 999, stopped=True)
    assert (stopped.judged, stopped.missed) == (False, ())


@pytest.mark.slow
def test_a_screen_shows_arms_differences_and_power() -> None:
    view = build_memory_view(moments(120, lambda world, _: world is World.PLANTED), (1,), 240, stopped=False)
    shown = to_text(view.to_document(), 160)
    planted_world = view.worlds[0]
    for arm in planted_world.arms:
        assert share(arm.hit_rate).text in shown
    r = planted_world.pairs[0].r
    assert r is not None
    assert f"{r.low:+.3f} to {r.high:+.3f}" in shown
    assert f"{r.detectable:.3f}" in shown


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
    with pytest.raises(UsageError):
        await MemoryStudy(answer, lambda seed: 1).study(seeds, workers, lambda done, total: None, asyncio.Event())


async def test_shuffled_recall_knows_no_later_memory_and_is_the_same_each_time() -> None:
    index = ShuffledIndex(InMemoryIndex(HashedEmbedder()), 7)
    await index.add(
        [
            MemoryRecord(
                id=f"pm_{number}",
                channel=Channel.SYSTEM_POST_MORTEM,
                origin="here",
                symbol=Symbol("BTCUSDT"),
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


# -- one arm at one moment


UP = MarketKind(drift=0.01, lean=0.8, whales=0.5, stocks=0.03)


@pytest.fixture(scope="module")
async def opening() -> Opening:
    """What the desk opens in a rising market, with an outcome by hand."""
    store = MemorySeries(Origin(True, ORIGIN))
    bundle = bundle_of(UP)
    await store.write([Batch(block.series, block.rows) for block in bundle.blocks])
    case = await memory_study.read_case(store, Symbol("BTCUSDT"), bundle.as_of)
    setup = describe_setup(case.features, case.context)
    return Opening(case, Side.LONG, post_mortem(0, setup=setup, verdict=Verdict.FAILURE))


async def arm_that_saw(opening: Opening, arm: Arm, folder: Path, *seen: tuple[str, Verdict]) -> ArmDesk:
    """Closed trades of its side in their setups, the oldest first."""
    desk = build_arm(arm, 1, folder)
    for number, (setup, verdict) in enumerate(seen, 1):
        closed = Millis(opening.case.bundle.as_of - (len(seen) - number + 1) * DAY_MS)
        await desk.remember(post_mortem(number, setup=setup, verdict=verdict, closed=closed))
    return desk


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arm", "opens"),
    [(Arm.OFF, True), (Arm.ON, False), (Arm.LESSONS, False), (Arm.RECENT, True), (Arm.SHUFFLED, None)],
)
async def test_similarity_finds_what_recency_has_forgotten(
    opening: Opening, arm: Arm, opens: bool | None, tmp_path: Path
) -> None:
    """Three trades failed in this setup; later ones paid in another."""
    alike, other = opening.post_mortem.setup, "extreme greed; funding high; flat week; DVOL low; puts cheap; squeeze 1h"
    seen = [(alike, Verdict.FAILURE)] * 3 + [(other, Verdict.SUCCESS)] * 3
    desk = await arm_that_saw(opening, arm, tmp_path, *seen)
    found = await opens_with_memory(desk, opening)
    assert opens is None or found is opens
    again = await arm_that_saw(opening, arm, tmp_path / "again", *seen)
    assert await opens_with_memory(again, opening) is found


@pytest.mark.slow
@pytest.mark.parametrize("verdicts", [(), (Verdict.SUCCESS,) * 3, (Verdict.FAILURE, Verdict.SUCCESS, Verdict.FAILURE)])
async def test_where_memory_takes_nothing_off_the_ruling_is_the_one_without(
    opening: Opening, verdicts: tuple[Verdict, ...], tmp_path: Path
) -> None:
    """The study does not rule such a case again."""
    desk = await arm_that_saw(opening, Arm.ON, tmp_path, *((opening.post_mortem.setup, each) for each in verdicts))
    assert desk.recall is not None
    plain = await rule_case(desk, opening.case)
    recalled = await rule_case(desk, opening.case, await desk.recall(opening.case))
    assert plain.ruling.decision.side is opening.side
    assert recalled.ruling == plain.ruling
    assert recalled.expectation == plain.expectation
    assert await opens_with_memory(desk, opening)


@pytest.mark.slow
async def test_what_memory_takes_off_leaves_the_levels(opening: Opening, tmp_path: Path) -> None:
    """So that the trade is the same in every arm that makes it."""
    seen = [(opening.post_mortem.setup, Verdict.FAILURE)] * 2
    desk = await arm_that_saw(opening, Arm.ON, tmp_path, *seen)
    assert desk.recall is not None
    plain = await rule_case(desk, opening.case)
    less = await rule_case(desk, opening.case, await desk.recall(opening.case))
    assert less.decision.win_probability_pct < plain.decision.win_probability_pct
    for name in ("decision", "entry_price", "stop_loss", "take_profit", "hold_duration"):
        assert getattr(less.decision, name) == getattr(plain.decision, name)


# -- the market


def test_every_block_of_slots_has_one_of_each_setup() -> None:
    slots = planted.planted_slots(3)
    assert slots == tuple(sorted(slots))
    assert len(slots) == 3 * 27
    blocks = [slots[at : at + 3] for at in range(0, len(slots), 3)]
    assert all({setup for _, setup in block} == set(planted.SETUPS) for block in blocks)
    assert len({tuple(setup for _, setup in block) for block in blocks}) == 6, "in every order"
    assert {planted.planted_side(seed) for seed in (1, 2)} == set(Side)


@pytest.mark.slow
def test_the_price_goes_against_the_side_after_one_setup_and_with_it_after_the_other() -> None:
    own = draw_paths(3)[Symbol("BTCUSDT")]
    slots = planted.planted_slots(3)
    moved = planted.move_path(own, slots, Side.LONG)
    before, after = (each.steps[2].reshape(-1) for each in (own, moved))
    same = np.ones(after.size, bool)
    for start, setup in slots:
        begin, end = (
            planted.step_at(start + ahead) for ahead in (planted.SHOWN_MS, planted.SHOWN_MS + planted.MOVE_MS)
        )
        if setup != "ordinary":
            same[begin:end] = False
            went = np.cumsum(after[begin:end] - planted.LEFT * before[begin:end])[-1]
            ranges = went / planted.mean_range(after[:begin])
            assert ranges == pytest.approx(planted.MOVE_ATR if setup == "paying" else -planted.MOVE_ATR, rel=1e-6)
    assert np.array_equal(before[same], after[same])


def test_signs_stand_in_the_hour_before_a_setup_is_looked_at() -> None:
    start = Millis(MINUTES_FROM + 3 * planted.SLOT_MS)
    around = [Millis(start + ahead) for ahead in (0, 1, planted.SHOWN_MS, planted.SHOWN_MS + 1)]
    signs = planted._SignalPlanter([(start, "failing")], Side.SHORT)
    rates = [Funding(at, 0.0001, 8.0) for at in around]
    shown = signs.show(Batch(funding_next(BINANCE, Symbol("BTCUSDT")), rates)).rows
    rate = planted.SETUP_SIGNALS["failing"].funding
    assert [row.rate for row in shown] == [0.0001, rate, rate, 0.0001]
    taken = [TapeEvent(at, Side.LONG, 1.0, 1.0, 1.0, "w") for at in around]
    sold = signs.show(Batch(whales(BINANCE, Symbol("BTCUSDT")), taken)).rows
    assert [row.side for row in sold] == [Side.LONG, Side.SHORT, Side.SHORT, Side.LONG]
    seen = [Book(at, (Quote(1.0, 1.0),), (Quote(2.0, 1.0),)) for at in around]
    leaning = signs.show(Batch(books(BINANCE, Symbol("BTCUSDT")), seen)).rows
    assert [(row.at, row.bids[0].size, row.asks[0].size) for row in leaning] == [
        (at, 1.0, planted.LEANING) for at in around[1:3]
    ]
    said = [Level(Millis(start - HOUR_MS), 50.0)]
    moods = signs.show(Batch(fear_greed(ALTERNATIVE), said)).rows
    assert [row.value for row in moods] == [50.0, planted.SETUP_SIGNALS["failing"].mood, 50.0]
    assert moods[-1].at == around[-1]
    ordinary = planted._SignalPlanter([(start, "ordinary")], Side.SHORT)
    assert ordinary.show(Batch(funding_next(BINANCE, Symbol("BTCUSDT")), rates)).rows == rates


@pytest.mark.soak
async def test_recall_beats_none_and_recency_where_setups_come_back() -> None:
    """Two markets, one for each side: the desk learns to leave out what fails and keeps what pays."""
    found = [
        moment
        for seed in (1, 2)
        async for moment in study_memory_plan(MemoryPlan(seed, World.PLANTED, len(memory_moments(seed))))
    ]
    arms = {arm.arm: arm for arm in build_memory_view(found, (1, 2), len(found), stopped=False).worlds[0].arms}
    on, off, recent = arms["on"], arms["off"], arms["recent3"]
    assert on.failing_trades < 0.7 * off.failing_trades
    assert on.paying_trades >= 0.9 * off.paying_trades
    assert on.mean_r is not None
    assert off.mean_r is not None
    assert recent.mean_r is not None
    assert on.mean_r > max(off.mean_r, recent.mean_r) + 0.1
