"""What real days found: silent seats, rallies called panics, levels left behind, a running day, one book."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.unit.trading.agents.test_candles_only import BREAK_UP, candles_only, last_bar
from tests.unit.trading.rules.test_score import full
from tests.wire.desk_bundles import AS_OF, BTC, World, bundle_of, minds_of, saying, without
from tests.wire.desk_roles import argued
from tests.wire.real_hours import real_bundle
from zuno.markets.feeds import BINANCE
from zuno.trading.agents import geometry, judge, known_data, meta, microstructure, prompt_facts
from zuno.trading.agents.case import Case, build_case
from zuno.trading.measure.structure import Break, BreakKind, Extreme, PriceDirection
from zuno.trading.model import market
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import Blackboard, Call, Expert, Regime
from zuno.trading.model.known import Missing
from zuno.trading.model.market import DAY_MS, HOUR_MS, Mode, Timeframe
from zuno.trading.rules.price_menu import LEVEL_REACH_ATR, MARK, RANGE
from zuno.trading.rules.score import DEAD_BAND, score_entries

QUIET = {"high": 1.001, "low": 0.999}


@cache
def rally() -> Bundle:
    return real_bundle("2024-02-28T15:00")


# -- a. who has no data holds no weight


@pytest.mark.parametrize("side", [1, -1])
def test_geometry_alone_passes_the_dead_band(side: int) -> None:
    """Three silent seats made a clean breakout 0.09."""
    case = build_case(last_bar(candles_only(), **QUIET))
    ruled = asyncio.run(meta.ask_meta(case, minds_of())).value
    board = full((0, 0, 0, side), (0.0, 0.0, 0.0, 0.9))
    score = known_data.weigh_board(case, ruled, board)
    assert abs(score.all) <= 0.135
    assert score.signal == ("BULLISH" if side > 0 else "BEARISH")


def test_who_sees_its_feed_and_is_neutral_keeps_its_weight() -> None:
    case = build_case(bundle_of())
    ruled = asyncio.run(meta.ask_meta(case, minds_of())).value
    score = known_data.weigh_board(case, ruled, full((0, 0, 0, 1), (0.0, 0.0, 0.0, 0.9)))
    assert score.heard == score.all
    assert score.signal == "NEUTRAL"


def test_candles_in_the_place_of_a_feed_are_data_where_they_show_something() -> None:
    case = build_case(last_bar(candles_only(), **BREAK_UP))
    ruled = asyncio.run(meta.ask_meta(case, minds_of())).value
    told = full((1, 0, 0, -1), (0.6, 0.0, 0.0, 0.9))
    score = known_data.weigh_board(case, ruled, told)
    assert score.heard == pytest.approx(score.all / (0.3 + 0.1))


def test_nobody_with_data_is_no_signal() -> None:
    empty = score_entries({}, Mode.SWING, None, silent=set(Expert))
    assert (empty.all, empty.heard, empty.signal) == (0.0, 0.0, "NEUTRAL")


def test_the_numeric_second_stays_required_and_the_exit_keeps_all_weights() -> None:
    found = asyncio.run(argued(last_bar(candles_only(), **QUIET), None))
    shape = found.board.vlm_geometry
    assert shape is not None
    board = found.board.model_copy(
        update={"vlm_geometry": shape.model_copy(update={"stance": 1, "confidence": 0.9}), "synthesis": None}
    )
    score = known_data.weigh_board(found.case, found.meta, board)
    assert score.signal == "BULLISH"
    assert abs(score.all) <= DEAD_BAND
    assert judge.answer_by_rules(found.case, found.meta, board).decision is Call.HOLD
    assert judge.exit_reason(found.case, found.meta, market.Side.SHORT, score.all) == ""


# -- b. a panic has a direction


@pytest.mark.parametrize(("day", "panic"), [(-0.06, True), (0.06, False), (0.0, False), (Missing("no hours"), True)])
def test_a_wild_day_is_a_panic_where_it_fell(day: Any, panic: bool) -> None:
    case = build_case(bundle_of())
    wild = replace(case, inputs=replace(case.inputs, day_volatility_rank=0.97), context=replace(case.context, day=day))
    assert (meta.regime_of(wild).regime is Regime.VOLATILITY_PANIC) == panic


@pytest.mark.slow
def test_the_rally_of_february_2024_is_no_panic_and_nobody_without_data_is_trusted() -> None:
    found = asyncio.run(argued(rally(), None))
    rank = found.case.inputs.day_volatility_rank
    assert isinstance(rank, float)
    assert rank >= 0.95
    assert found.meta.regime is Regime.BULL_MOMENTUM
    assert found.meta.trust_directive.expert is not Expert.MACRO
    assert "panic_budget" not in [change.by for change in found.draft.changes]


def test_a_model_that_trusts_an_expert_without_data_is_corrected() -> None:
    case = build_case(last_bar(candles_only(), **BREAK_UP))
    said: dict[str, Any] = meta.answer_by_rules(case).model_dump()
    said["trust_directive"] = {"expert": "macro", "note": "trust the economy"}
    heard = asyncio.run(meta.ask_meta(case, minds_of(saying(said)))).value
    assert heard.source == "model"
    assert heard.trust_directive.expert is not Expert.MACRO
    assert "macro" in heard.why


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("bar", [QUIET, BREAK_UP])
def test_meta_trusts_whom_the_data_allow(mode: Mode, bar: dict[str, float]) -> None:
    case = build_case(last_bar(candles_only(mode), **bar))
    trusted = meta.answer_by_rules(case).trust_directive.expert
    assert trusted is not Expert.MACRO
    if bar is QUIET:
        assert trusted is Expert.GEOMETRY


# -- c. levels that the price has left behind; e. sides


def numbers_told(case: Case) -> dict[str, float]:
    """Every price of the structure that any prompt may cite."""
    figures = prompt_facts.market_facts(case).values()
    names = ("break_", "retracement_", "zone_", "shape_line")
    return {f.id: float(f.value) for f in figures if any(name in f.id for name in names) and "levels" not in f.id}


@pytest.mark.slow
def test_a_swing_far_under_the_price_is_quoted_nowhere() -> None:
    found = asyncio.run(argued(rally(), None))
    case = found.case
    assert isinstance(case.menu.now, float)
    gone = [
        level for level in case.menu.levels if level.kind not in (MARK, RANGE) and not case.menu.is_near(level.price)
    ]
    assert gone == []
    told = numbers_told(case)
    assert told
    edges = {id: price for id, price in told.items() if not id.startswith("1d.zone")}
    assert [id for id, price in edges.items() if not case.menu.is_near(price)] == []
    shape = found.board.vlm_geometry
    assert shape is not None
    words = " ".join((shape.rationale, shape.fibonacci_context, found.decision.reasoning.final_logic))
    for far in ("53,090", "38,545", "43,477"):
        assert far not in words
    assert shape.key_levels.volume_poc is None


@pytest.mark.parametrize("times", [1 / 1.4, 1.4])
def test_the_reach_is_the_same_either_way(times: float) -> None:
    menu = build_case(bundle_of()).menu
    assert isinstance(menu.now, float)
    assert not menu.is_near(menu.now * times)
    assert menu.is_near(menu.now * times, menu.now / times), "the market lies between them"
    assert menu.reach == pytest.approx(LEVEL_REACH_ATR * menu.atr / menu.now, rel=0.3)  # type: ignore[operator]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("drift", [-0.02, 0.0, 0.02])
def test_support_is_below_the_price_and_resistance_above(mode: Mode, drift: float) -> None:
    case = build_case(bundle_of(World(drift=drift), mode))
    now = case.menu.now
    assert isinstance(now, float)
    levels = geometry.key_levels(case.menu).model_dump()
    for name, price in levels.items():
        if price is not None and name != "volume_poc":
            above = name.endswith(("resistance", "above"))
            assert (price > now) == above, name
    for level in case.menu.levels:
        if level.id.endswith("line_support"):
            assert level.price <= now
        if level.id.endswith("line_resistance"):
            assert level.price >= now


def test_a_models_support_above_the_price_is_dropped() -> None:
    case = build_case(bundle_of())
    now = case.menu.now
    assert isinstance(now, float)
    over = min(level.price for level in case.menu.levels if level.price > now)
    under = max(level.price for level in case.menu.levels if level.price < now)
    said: dict[str, Any] = geometry.answer_by_rules(case, geometry.panels_of(case, None)).model_dump()
    said["key_levels"] |= {"immediate_support": over, "immediate_resistance": under}
    entry = asyncio.run(geometry.ask_expert(case, None, minds_of(saying(said)))).value
    assert entry.source in ("model", "repaired")
    assert (entry.key_levels.immediate_support, entry.key_levels.immediate_resistance) == (None, None)


# -- d. the running day


def test_the_running_day_is_known_as_running() -> None:
    bundle = bundle_of()
    case = build_case(bundle)
    opened = Timeframe.D1.floor(AS_OF)
    hours = [row for row in bundle.rows(market.candles(BINANCE, BTC, Timeframe.H1)) if row.at >= opened]
    today = case.context.today
    if not hours:
        assert isinstance(today, Missing)
        return
    assert not isinstance(today, Missing)
    assert (today.open, today.high, today.low) == pytest.approx(
        (hours[0].open, max(row.high for row in hours), min(row.low for row in hours))
    )
    lines = [line.text for line in prompt_facts.market_section(case).lines]
    assert any("running_1d.open" in line and "not closed" in line for line in lines)


@pytest.mark.slow
def test_no_day_that_runs_is_among_the_closed_ones() -> None:
    case = build_case(rally())
    today, days = case.context.today, case.bundle.rows(market.candles(BINANCE, BTC, Timeframe.D1))
    assert not isinstance(today, Missing)
    assert today.hours == 15
    assert days[-1].at + DAY_MS <= case.bundle.as_of - today.hours * HOUR_MS
    frame = dict(case.features.frames)[Timeframe.D1]
    assert not isinstance(frame, Missing)
    assert frame.readings.close == pytest.approx(days[-1].close)


@pytest.mark.parametrize("side", [1, -1])
def test_a_break_that_the_running_bar_took_back_neither_holds_nor_failed(side: int) -> None:
    case = build_case(bundle_of())
    frame = dict(case.features.frames)[case.bundle.mode.chart[0]]
    now = case.menu.now
    assert not isinstance(frame, Missing)
    assert isinstance(now, float)
    way = PriceDirection.UP if side > 0 else PriceDirection.DOWN
    level = now * (1 + side * 0.01)
    pivot = replace(frame.structure.pivots[-1], extreme=Extreme.HIGH if side > 0 else Extreme.LOW, price=level)
    broken = Break(BreakKind.BOS, way, pivot, AS_OF, AS_OF)
    beyond = replace(
        frame,
        readings=replace(frame.readings, close=now * (1 + side * 0.02)),
        structure=replace(frame.structure, breaks=(broken,)),
    )
    assert geometry._find_break(case, beyond) is None
    held = replace(case, menu=replace(case.menu, now=now * (1 + side * 0.015)))
    found = geometry._find_break(held, beyond)
    assert found is not None
    assert found[0] == "clean_breakout"


# -- f. a glance at the book


def with_books(bundle: Bundle, count: int) -> Bundle:
    series = market.books(BINANCE, BTC)
    return replace(
        bundle,
        blocks=tuple(
            replace(block, rows=tuple(block.rows[-count:])) if block.series == series else block
            for block in bundle.blocks
        ),
    )


def leaning(lean: float, count: int) -> Bundle:
    return with_books(bundle_of(World(lean=lean)), count)


@pytest.mark.parametrize("lean", [0.9, -0.9])
def test_one_snapshot_seconds_and_does_not_lead(lean: float) -> None:
    case = build_case(leaning(lean, 1))
    entry = asyncio.run(microstructure.ask_expert(case, minds_of())).value
    assert entry.stance == (1 if lean > 0 else -1)
    assert entry.confidence <= 0.5
    ruled = asyncio.run(meta.ask_meta(case, minds_of())).value
    assert ruled.trust_directive.expert is not Expert.MICROSTRUCTURE
    alone: Any = full((0, entry.stance, 0, 0), (0.4, 0.5, 0.4, 0.4))
    assert known_data.weigh_board(case, ruled, alone).signal == "NEUTRAL"
    beside: Blackboard = full((entry.stance, entry.stance, 0, 0), (0.3, 0.5, 0.4, 0.4))
    assert abs(known_data.weigh_board(case, ruled, beside).all) <= 2 * 0.45 * 0.3


def test_five_snapshots_of_a_minute_lead() -> None:
    case = build_case(leaning(0.9, 5))
    assert not known_data.has_few_books(case)
    ruled = asyncio.run(meta.ask_meta(case, minds_of())).value
    alone: Any = full((0, 1, 0, 0), (0.4, 0.5, 0.4, 0.4))
    assert known_data.weigh_board(case, ruled, alone).signal == "BULLISH"


def test_no_model_is_surer_of_one_snapshot() -> None:
    case = build_case(leaning(0.9, 1))
    said: dict[str, Any] = microstructure.answer_by_rules(case).model_dump() | {"confidence": 0.95}
    heard = asyncio.run(microstructure.ask_expert(case, minds_of(saying(said)))).value
    assert (heard.confidence, "cut" in heard.why) == (0.5, True)


def test_without_a_book_microstructure_has_no_data() -> None:
    case = build_case(without(bundle_of(), str(market.books(BINANCE, BTC))))
    assert known_data.find_gap(case, Expert.MICROSTRUCTURE)
    assert not known_data.has_few_books(case)
