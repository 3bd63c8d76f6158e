"""What the rules say where no model sits: they read the market as a trader would."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.wire.accounts import build_account, build_fees
from tests.wire.desk_bundles import AS_OF, BTC, PRICE, World, bundle_of, decided, holding, without
from tests.wire.desk_roles import PICTURE, argued
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Millis
from zuno.markets.feeds import PERPETUALS
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.provenance.slots import render
from zuno.trading.agents import evidence, geometry, judge, liquidity, macro_options, meta, microstructure, prompt_facts
from zuno.trading.agents.case import Case, build_case
from zuno.trading.chart.charting import describe
from zuno.trading.measure.features import DOLLAR, FigureChange
from zuno.trading.measure.structure import Divergence, DivergenceSource, PriceDirection
from zuno.trading.model import market
from zuno.trading.model.account import FeesSlot, RestingOrder, fees_slot
from zuno.trading.model.bundle import Block, Bundle, bundle_hash
from zuno.trading.model.chart import Panel
from zuno.trading.model.cycle import (
    Blackboard,
    Call,
    DirectiveOpinion,
    Expert,
    GeometryEntry,
    KeyLevelsOpinion,
    LiquidityEntry,
    MacroEntry,
    Meta,
    MicrostructureEntry,
    Regime,
    RiskBias,
)
from zuno.trading.model.known import Missing
from zuno.trading.model.market import HOUR_MS, Book, Feed, Mode, Quote, Side, TapeEvent
from zuno.trading.rules.inputs import FeeRates, Fees
from zuno.trading.rules.price_menu import MARK, RANGE, RANGE_STEPS_ATR, MenuLevel, PriceMenu
from zuno.trading.rules.validate_decision import find_objection

BEAR = World(drift=-0.01, lean=-0.8, whales=-0.5, stocks=-0.03)


# -- Meta


def with_days(case: Case, **changes: Any) -> Case:
    """The same market with other gauges of its days."""
    frames = tuple(
        (timeframe, frame)
        if isinstance(frame, Missing) or timeframe is not market.Timeframe.D1
        else (timeframe, replace(frame, readings=replace(frame.readings, **changes)))
        for timeframe, frame in case.features.frames
    )
    return replace(case, features=replace(case.features, frames=frames))


@pytest.fixture(scope="module")
def plain() -> Case:
    found = build_case(bundle_of())
    return with_days(found, adx=20.0, ema21=90.0, ema50=100.0, close=95.0)


BULL = {"ema21": 110.0, "ema50": 100.0, "close": 105.0}
BEARISH = {"ema21": 90.0, "ema50": 100.0, "close": 95.0}


@pytest.mark.parametrize(
    ("gauges", "regime", "budget"),
    [
        (BULL | {"adx": 25.0}, Regime.BULL_MOMENTUM, 80),
        (BULL | {"adx": 24.9}, Regime.RANGE_BOUND, 50),
        (BULL | {"adx": 40.0, "close": 99.0}, Regime.RANGE_BOUND, 50),
        (BEARISH | {"adx": 25.0}, Regime.BEAR_MOMENTUM, 80),
        (BEARISH | {"adx": 40.0, "close": 101.0}, Regime.RANGE_BOUND, 50),
        (BEARISH | {"adx": None}, Regime.RANGE_BOUND, 50),
    ],
)
def test_a_trend_needs_strength_and_both_averages(
    plain: Case, gauges: dict[str, Any], regime: Regime, budget: int
) -> None:
    found = meta.regime_of(with_days(plain, **gauges))
    assert (found.regime, found.budget) == (regime, budget)


@pytest.mark.parametrize(
    ("rank", "panic", "regime", "budget"),
    [
        (0.95, False, Regime.VOLATILITY_PANIC, 20),
        (0.949, False, Regime.RANGE_BOUND, 50),
        (0.5, True, Regime.VOLATILITY_PANIC, 20),
        (Missing("no hours"), False, Regime.RANGE_BOUND, 20),
        (0.5, Missing("no options"), Regime.RANGE_BOUND, 20),
    ],
)
def test_a_panic_comes_first_and_not_knowing_is_no_better(
    plain: Case, rank: Any, panic: Any, regime: Regime, budget: int
) -> None:
    loud = build_case(bundle_of(World(dvol=60.0))).features.triage
    quiet = plain.features.triage
    features = replace(plain.features, triage=loud if panic is True else quiet)
    inputs = replace(plain.inputs, day_volatility_rank=rank, panic=panic)
    fell = replace(plain.context, day=-0.05)
    found = meta.regime_of(replace(plain, inputs=inputs, features=features, context=fell))
    assert (found.regime, found.budget) == (regime, budget)


@pytest.mark.parametrize(
    ("rank", "panic", "regime"),
    [
        (0.99, False, Regime.VOLATILITY_PANIC),
        (0.5, True, Regime.VOLATILITY_PANIC),
        (0.5, False, Regime.RANGE_BOUND),
        (Missing("no hours"), Missing("no options"), Regime.RANGE_BOUND),
    ],
)
@pytest.mark.parametrize("gone", ["bars", "days"])
def test_without_candles_nothing_is_risked_and_a_panic_that_is_known_stays_one(
    plain: Case, gone: str, rank: Any, panic: Any, regime: Regime
) -> None:
    """Whatever else the days show: what is held must be able to go."""
    bullish = with_days(plain, **BULL | {"adx": 40.0})
    inputs = replace(bullish.inputs, day_volatility_rank=rank, panic=panic)
    loud = build_case(bundle_of(World(dvol=60.0))).features.triage
    features = replace(bullish.features, triage=loud if panic is True else bullish.features.triage)
    if gone == "bars":
        inputs = replace(inputs, bars=Missing("no hours"))
    else:
        days = market.Timeframe.D1
        frames = tuple((one, Missing("no days") if one is days else seen) for one, seen in features.frames)
        features = replace(features, frames=frames)
    fell = replace(plain.context, day=-0.05)
    found = meta.regime_of(replace(plain, inputs=inputs, features=features, context=fell))
    assert (found.regime, found.budget) == (regime, 0)
    assert "candles" in found.why


@pytest.mark.parametrize(
    ("rank", "slope", "regime"),
    [
        (0.29, 1.0, Regime.SIDEWAYS_ACCUMULATION),
        (0.30, 1.0, Regime.RANGE_BOUND),
        (0.29, -1.0, Regime.RANGE_BOUND),
        (Missing("few days"), 1.0, Regime.RANGE_BOUND),
    ],
)
def test_accumulation_is_narrow_and_bought(plain: Case, rank: Any, slope: float, regime: Regime) -> None:
    assert not isinstance(plain.context.days, Missing)
    context = replace(plain.context, width_rank=rank, days=replace(plain.context.days, slope=slope))
    assert meta.regime_of(replace(plain, context=context)).regime is regime


@pytest.mark.parametrize("slope", [1.0, -1.0])
def test_orderflow_is_trusted_in_a_narrow_range_whoever_gathers(plain: Case, slope: float) -> None:
    assert not isinstance(plain.context.days, Missing)
    for rank, trusted in ((0.29, True), (0.30, False)):
        context = replace(plain.context, width_rank=rank, days=replace(plain.context.days, slope=slope))
        said = meta.answer_by_rules(replace(plain, context=context))
        assert (said.trust_directive.expert is Expert.LIQUIDITY) is trusted


# -- what all of them start from


@pytest.mark.slow
def test_fees_are_those_the_bundle_was_frozen_with(plain: Case) -> None:
    assert plain.inputs.fees == Fees()
    slot = fees_slot(FeesSlot.model_validate({"binanceMaker": 0.01, "binanceTaker": 0.04, "upbit": 0.1}), AS_OF)
    bundle = bundle_of(slots=[slot])
    assert build_case(bundle).inputs.fees == build_fees(FeeRates(0.01, 0.04), FeeRates(0.1, 0.1))
    assert bundle_hash(bundle) != bundle_hash(bundle_of())
    for wrong in ({"upbit": 0.1}, {"upbit": -1.0}):
        with pytest.raises(Malformed, match="fees"):
            build_case(bundle_of(slots=[replace(slot, content=wrong)]))  # type: ignore[arg-type]


# -- experts


@pytest.mark.parametrize(("lean", "bias"), [(0.8, "UP"), (-0.8, "DOWN"), (0.1, "NEUTRAL")])
def test_the_book_leans_where_it_is_heavy(lean: float, bias: str) -> None:
    said = microstructure.answer_by_rules(build_case(bundle_of(World(lean=lean))))
    assert said.directional_bias == bias
    assert (said.anomaly == "microstructure_imbalance") == (abs(lean) > 0.7)
    assert (said.confidence >= 0.5) == (abs(lean) > 0.7)


def swapped(bundle: Bundle, series: Any, rows: list[Any]) -> Bundle:
    blocks = tuple(
        Block(one.series, tuple(rows), one.as_of, one.age, one.limit) if one.series == series else one
        for one in bundle.blocks
    )
    return replace(bundle, blocks=blocks)


@pytest.mark.parametrize(("side", "bias"), [(Side.LONG, "DOWN"), (Side.SHORT, "UP")])
def test_a_fake_wall_of_bids_is_bearish(side: Side, bias: str) -> None:
    bundle = bundle_of()
    books: list[Book] = list(bundle.rows(market.books("binance", BTC)))
    first = books[0]
    walled = Quote((first.bids if side is Side.LONG else first.asks)[20].price, 60.0)
    bids = tuple(walled if place == 20 and side is Side.LONG else one for place, one in enumerate(first.bids))
    asks = tuple(walled if place == 20 and side is Side.SHORT else one for place, one in enumerate(first.asks))
    case = build_case(swapped(bundle, market.books("binance", BTC), [replace(first, bids=bids, asks=asks), *books[1:]]))
    said = microstructure.answer_by_rules(case)
    assert (said.anomaly, said.directional_bias) == ("fake_wall", bias)
    assert "20×" in render(said.rationale, prompt_facts.market_facts(case))


@pytest.mark.parametrize(
    ("buy", "sell", "weights"),
    [(3.0, 1.0, [0.25]), (1.0, 3.0, [-0.25]), (1.5, 1.0, [0.25]), (1.49, 1.0, []), (0.49, 0.1, []), (0.5, 0.1, [0.25])],
)
def test_the_price_goes_more_easily_where_size_is_dear(
    plain: Case, buy: float, sell: float, weights: list[float]
) -> None:
    book = plain.features.book
    assert not isinstance(book, Missing)
    reasons = microstructure._thin_side_reasons(replace(book, buy_slippage_bps=buy, sell_slippage_bps=sell))
    assert [one.weight for one in reasons] == weights
    assert all(one.said.startswith("asks" if buy > sell else "bids") for one in reasons)


@pytest.mark.parametrize(("whales", "sign"), [(0.6, 1), (-0.6, -1)])
def test_large_takers_pull_the_flow(whales: float, sign: int) -> None:
    case = build_case(bundle_of(World(whales=whales)))
    reasons = [one.weight for one in liquidity.flow_reasons(case) if "large takers" in one.said]
    assert len(reasons) == 2
    assert all(one * sign > 0 for one in reasons)


def flowing(
    rank: float,
    moved: float,
    day: float,
    whales: float = 0.0,
    way: PriceDirection | None = None,
    *,
    hidden: bool = False,
) -> Case:
    """A market whose takers lean so, beside what the price did; no divergence is fresh but the one given."""
    case = build_case(bundle_of(World(whales=whales)))
    assert not isinstance(case.context.flow, Missing)
    context = replace(case.context, flow=replace(case.context.flow, rank=rank, moved=moved), day=day)
    frames = []
    for timeframe, frame in case.features.frames:
        assert not isinstance(frame, Missing)
        turn = frame.structure.pivots[-1]
        fresh = () if way is None else (Divergence(DivergenceSource.CVD, way, hidden, turn, turn, AS_OF),)
        frames.append((timeframe, replace(frame, structure=replace(frame.structure, divergences=fresh))))
    return replace(case, context=context, features=replace(case.features, frames=tuple(frames)))


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
def test_a_divergence_is_one_only_where_the_price_does_not_go_along(sign: int) -> None:
    rank, way = (0.95, PriceDirection.UP) if sign > 0 else (0.05, PriceDirection.DOWN)
    against = liquidity.answer_by_rules(flowing(rank, -sign * 0.02, -sign * 0.02))
    assert (against.anomaly, against.confidence) == ("whale_cvd_divergence", 0.35)
    assert against.target_entry is not None
    along = liquidity.answer_by_rules(flowing(rank, sign * 0.02, sign * 0.02, sign * 0.6))
    assert (along.anomaly, along.target_entry) == ("none", None)
    large = liquidity.answer_by_rules(flowing(rank, sign * 0.02, -sign * 0.02, sign * 0.6))
    assert large.anomaly == "whale_cvd_divergence"
    assert large.confidence == pytest.approx(2 * along.confidence, abs=0.02)
    fresh = liquidity.answer_by_rules(flowing(0.5, sign * 0.02, sign * 0.02, way=way))
    assert fresh.anomaly == "whale_cvd_divergence"
    elsewhere = flowing(1 - rank, -sign * 0.02, -sign * 0.02, -sign * 0.9, way, hidden=True)
    assert evidence.direction_of(liquidity.flow_reasons(elsewhere)) == -sign
    assert liquidity.answer_by_rules(elsewhere).anomaly == "none", (
        "large trades go along, and the divergence points elsewhere"
    )


@pytest.mark.parametrize(("side", "stance"), [(Side.LONG, 1), (Side.SHORT, -1)])
def test_the_hunted_side_is_spent(side: Side, stance: int) -> None:
    bundle, series = bundle_of(), market.liquidations("binance", BTC)
    hunt = TapeEvent(Millis(AS_OF - HOUR_MS // 2), side, PRICE, 20.0, 3e6, "hunt")
    rows = sorted([*bundle.rows(series), hunt], key=lambda row: row.at)
    case = build_case(swapped(bundle, series, rows))
    assert liquidity.flow_direction(case, "liquidation_hunting") == stance
    said = liquidity.answer_by_rules(case)
    assert said.anomaly == "liquidation_hunting"
    assert "$3,080,000" in render(said.rationale, prompt_facts.market_facts(case))


@pytest.mark.parametrize(("side", "spent"), [(Side.LONG, 1), (Side.SHORT, -1)])
@pytest.mark.parametrize(("share", "turned"), [(0.0051, -1), (0.005, 1), (-0.02, 1), (None, 1)])
def test_a_hunt_with_new_positions_behind_it_goes_on(
    plain: Case, side: Side, spent: int, share: float | None, turned: int
) -> None:
    seen, crowd = plain.features.forced, plain.features.open_interest_hour
    hour = seen.longs_hour if side is Side.LONG else seen.shorts_hour
    assert not isinstance(hour, Missing)
    assert not isinstance(crowd, Missing)
    ran = replace(hour, usd=5e6, high=1e6)
    forced = replace(seen, **{"longs_hour" if side is Side.LONG else "shorts_hour": ran})  # type: ignore[arg-type]
    rose = Missing("not heard") if share is None else replace(crowd, share=share)
    features = replace(plain.features, forced=forced, open_interest_hour=rose)
    (reason,) = liquidity.stop_run_reasons(replace(plain, features=features))
    assert reason.weight == pytest.approx(0.6 * spent * turned)
    assert ("fuel" in reason.said) == (turned < 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "bias", "anomaly"),
    [
        (World(dvol=60.0, skew=10.0, stocks=-0.05), "BEARISH", "options_panic"),
        (World(dvol=60.0, skew=-4.0, stocks=0.05), "BULLISH", "options_panic"),
        (World(stocks=0.05), "BULLISH", "none"),
        (World(stocks=-0.05), "BEARISH", "none"),
        (World(skew=-5.0, stocks=-0.04), "NEUTRAL", "macro_divergence"),
    ],
    ids=str,
)
def test_options_and_the_economy(world: World, bias: str, anomaly: str) -> None:
    said = macro_options.answer_by_rules(build_case(bundle_of(world)))
    assert (said.options_bias, said.anomaly) == (bias, anomaly)


@pytest.mark.parametrize(
    ("skew", "weight"), [(6.5, -0.3), (4.0, -0.15), (2.5, -0.06), (2.4, None), (0.6, None), (0.5, 0.06), (-3.5, 0.3)]
)
def test_dear_puts_are_fear_and_cheap_ones_calm(plain: Case, skew: float, weight: float | None) -> None:
    surface = plain.features.surface
    assert not isinstance(surface, Missing)
    smiled = replace(surface, week=replace(surface.week, skew25=skew))
    reasons = macro_options.option_reasons(replace(plain, features=replace(plain.features, surface=smiled)))
    found = [one for one in reasons if "skew" in one.said]
    assert [one.weight for one in found] == ([] if weight is None else [pytest.approx(weight)])
    assert all(("dear" in one.said) == (skew > 1.5) for one in found)


@pytest.mark.parametrize(
    ("dollar", "weight"), [(0.015, -0.3), (0.0075, -0.15), (0.003, None), (-0.003, None), (-0.0075, 0.15), (-0.03, 0.3)]
)
def test_a_dear_dollar_drains_what_is_risky(plain: Case, dollar: float, weight: float | None) -> None:
    moved = replace(plain, context=replace(plain.context, dollar=FigureChange(DOLLAR[0], dollar)))
    found = [one.weight for one in macro_options.macro_reasons(moved) if "DXY" in one.said]
    assert found == ([] if weight is None else [pytest.approx(weight)])


@pytest.mark.parametrize("change", [0.3, -0.3])
@pytest.mark.parametrize(("skew", "weight"), [(4.0, -0.15), (-1.0, 0.15)])
def test_a_restless_curve_counts_on_the_side_that_is_feared(
    plain: Case, change: float, skew: float, weight: float
) -> None:
    surface, economy = plain.features.surface, plain.features.economy
    assert not isinstance(surface, Missing)
    assert not isinstance(economy.slope, Missing)
    features = replace(
        plain.features,
        surface=replace(surface, week=replace(surface.week, skew25=skew)),
        economy=replace(economy, slope=replace(economy.slope, change=change)),
    )
    found = [
        reason.weight
        for reason in macro_options.macro_reasons(replace(plain, features=features))
        if "curve" in reason.said
    ]
    assert found == [weight]


@pytest.mark.parametrize(
    ("rate", "look"),
    [
        (0.0005, "extreme_positive"),
        (0.00049, "high_positive"),
        (0.0002, "high_positive"),
        (0.00019, "neutral"),
        (0.0, "neutral"),
        (-0.0001, "negative"),
        (-0.00049, "negative"),
        (-0.0005, "extreme_negative"),
    ],
)
def test_how_funding_looks(plain: Case, rate: float, look: str) -> None:
    first, *others = plain.features.perpetuals
    assert not isinstance(first.week, Missing)
    paid = replace(first, week=replace(first.week, per_8h=rate))
    funded = replace(plain, features=replace(plain.features, perpetuals=(paid, *others)))
    assert geometry.answer_by_rules(funded, geometry.Panels(cvd=True, funding=True)).funding_visual == look
    assert geometry.answer_by_rules(funded, geometry.Panels(cvd=True, funding=False)).funding_visual is None


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("gone", ["nothing", "funding", "who took", "bars"])
def test_a_panel_is_there_when_the_chart_draws_it(gone: str, mode: Mode) -> None:
    bundle = bundle_of(mode=mode)
    bars = market.candles("binance", BTC, mode.chart[0])
    if gone == "funding":
        bundle = without(bundle, *(str(market.funding(venue, BTC)) for venue in PERPETUALS))
    elif gone == "who took":
        bundle = swapped(bundle, bars, [row._replace(taker_buy=None) for row in bundle.rows(bars)])
    elif gone == "bars":
        bundle = without(bundle, str(bars))
    drawn = {one.name for one in describe(bundle).panels if isinstance(one, Panel)}
    shown = geometry.panels_of(build_case(bundle), PICTURE)
    assert (shown.cvd, shown.funding) == ("cvd" in drawn, "funding" in drawn)
    assert (shown.cvd, shown.funding) == (gone not in ("who took", "bars"), gone not in ("funding", "bars"))


# -- the Judge


def entry(stance: int, confidence: float = 0.6) -> dict[str, Any]:
    return {"source": "model", "why": "", "confidence": confidence, "rationale": "because.", "stance": stance}


def board_of(liquid: int, micro: int, macro: int, shape: int, confidence: float = 0.6) -> Blackboard:
    leans: Any = {1: "BULLISH", 0: "NEUTRAL", -1: "BEARISH"}
    ups: Any = {1: "UP", 0: "NEUTRAL", -1: "DOWN"}
    return Blackboard(
        liquidity=LiquidityEntry(
            **entry(liquid, confidence), anomaly="whale_cvd_divergence" if liquid else "none", target_entry=None
        ),
        microstructure=MicrostructureEntry(**entry(micro, confidence), anomaly="none", directional_bias=ups[micro]),
        macro=MacroEntry(**entry(macro, confidence), anomaly="none", options_bias=leans[macro]),
        vlm_geometry=GeometryEntry(
            **entry(shape, confidence),
            anomaly="none",
            directional_bias=leans[shape],
            key_levels=KeyLevelsOpinion(**dict.fromkeys(KeyLevelsOpinion.model_fields)),
            fibonacci_context="none",
            pattern="none",
            cvd_signal=None,
            funding_visual=None,
        ),
    )


def meta_of(regime: Regime = Regime.RANGE_BOUND) -> Meta:
    said: Any = {"source": "deterministic", "why": ""}
    directive = DirectiveOpinion(expert=Expert.GEOMETRY, note="none")
    return Meta(
        **said, regime=regime, rationale="r", trust_directive=directive, risk_budget_pct=50, risk_bias=RiskBias.NEUTRAL
    )


@cache
def usual() -> Case:
    return build_case(bundle_of())


def judged(board: Blackboard, bundle: Bundle | None = None, regime: Regime = Regime.RANGE_BOUND) -> Any:
    case = build_case(bundle) if bundle else usual()
    said = judge.answer_by_rules(case, meta_of(regime), board)
    assert find_objection(said, case.menu, case.inputs, board) is None
    return said


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("stance", "call"), [(1, Call.LONG), (-1, Call.SHORT), (0, Call.HOLD)])
def test_the_judge_goes_where_the_score_goes(stance: int, call: Call, mode: Mode) -> None:
    said = judged(board_of(stance, stance, stance, stance), bundle_of(mode=mode))
    assert said.decision is call
    if stance:
        risk, reward = abs(said.entry_price - said.stop_loss), abs(said.take_profit - said.entry_price)
        assert said.entry_price == PRICE
        assert stance * (said.take_profit - PRICE) > 0
        fair = risk / (risk + reward)
        assert 100 * fair < said.win_probability_pct <= 100 * fair + 100 * judge.MOST_EDGE + 1
        assert said.reasoning.counter_scenario
        assert 1 <= said.leverage <= 3  # what a mode may borrow is for the risk officer to say


def test_an_expert_on_the_other_side_is_the_counter_argument() -> None:
    said = judged(board_of(1, 1, 1, -1))
    assert said.decision is Call.LONG
    assert said.reasoning.counter_scenario.startswith("vlm_geometry ")
    assert "{vlm_geometry.confidence}" in said.reasoning.counter_scenario


@pytest.mark.slow
def test_a_rationale_is_told_once() -> None:
    """On the blackboard: who weighs it names its author and not its words."""
    debate = asyncio.run(argued(bundle_of(BEAR)))
    board = debate.board
    assert board.synthesis is not None
    later = board.synthesis.model_dump_json() + debate.decision.model_dump_json()
    for entry in (board.liquidity, board.microstructure, board.macro, board.vlm_geometry):
        assert entry is not None
        clauses = [clause.strip() for clause in entry.rationale.split(";") if len(clause) > 20]
        assert sum(later.count(clause) for clause in clauses) <= 1, entry.rationale  # the argument against it


def test_who_is_surer_risks_more() -> None:
    sizes = [judged(board_of(-1, -1, -1, -1, sure)).allocation_pct for sure in (0.5, 0.9)]
    assert sizes == sorted(sizes)
    assert judge.conviction(0.2) < judge.conviction(0.35) < judge.conviction(-0.5)


def test_nobody_is_followed_who_is_not_seconded() -> None:
    said = judged(board_of(-1, -1, -1, -1, 0.45))
    assert said.decision is Call.HOLD
    assert "second" in said.reasoning.final_logic


@pytest.mark.slow
@pytest.mark.parametrize("side", Side)
def test_an_exit_when_the_score_turns_hard_and_a_hold_when_it_leans(side: Side) -> None:
    sign = -1 if side is Side.LONG else 1
    bundle = bundle_of(account=holding(side))
    hard = judged(board_of(sign, sign, sign, 0), bundle)
    assert hard.decision is Call.CANCEL_AND_CLOSE
    assert (hard.entry_price, hard.stop_loss, hard.take_profit, hard.allocation_pct) == (None, None, None, 0)
    soft = judged(board_of(0, sign, 0, 0), bundle)
    assert soft.decision is Call.HOLD
    along = judged(board_of(-sign, -sign, -sign, 0), bundle)
    assert along.decision is (Call.LONG if side is Side.LONG else Call.SHORT)


def test_the_bound_of_an_exit_is_its_own() -> None:
    case = build_case(bundle_of(account=holding(Side.LONG)))
    for side, sign in ((Side.LONG, 1), (Side.SHORT, -1)):
        assert judge.exit_reason(case, meta_of(), side, sign * -0.4)
        assert not judge.exit_reason(case, meta_of(), side, sign * -0.399)
        assert not judge.exit_reason(case, meta_of(), side, sign * 0.9)


@pytest.mark.soak(every=3)
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(
    ("day", "worth", "out"),
    [
        (-0.03, -0.1, True),
        (-0.03, 0.0, True),
        (-0.03, 0.1, True),
        (-0.03, 0.9, True),
        (0.03, -0.1, False),
        (0.03, 0.0, False),
        (None, -0.1, True),
        (None, 0.0, False),
        (None, 0.1, False),
    ],
)
def test_a_panic_against_a_position_closes_it(day: float | None, worth: float, out: bool, side: Side) -> None:
    """As somebody sees it who is long; mirrored for who is short."""
    sign = 1 if side is Side.LONG else -1
    case = build_case(bundle_of(account=holding(Side.LONG)))
    moved = Missing("no hours") if day is None else sign * day
    falling = replace(case, context=replace(case.context, day=moved))
    assert bool(judge.exit_reason(falling, meta_of(Regime.VOLATILITY_PANIC), side, sign * worth)) == out
    assert not judge.exit_reason(falling, meta_of(), side, sign * worth)


def test_a_panic_closes_though_the_candles_of_one_timeframe_are_gone() -> None:
    bundle = without(bundle_of(account=holding(Side.LONG)), "candles/binance/BTCUSDT/4h")
    case = build_case(bundle)
    panic = replace(
        case, inputs=replace(case.inputs, day_volatility_rank=0.99), context=replace(case.context, day=-0.12)
    )
    ruled = meta.regime_of(panic)
    assert (ruled.regime, ruled.budget) == (Regime.VOLATILITY_PANIC, 0)
    assert judge.exit_reason(panic, meta_of(ruled.regime), Side.LONG, 0.3)


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("side", Side)
def test_an_order_that_waits_is_looked_at_like_a_position(side: Side) -> None:
    sign = -1 if side is Side.LONG else 1
    for reduce_only in (False, True):
        placed = Millis(AS_OF - HOUR_MS)
        order = RestingOrder(
            id="ord_1",
            symbol=BTC,
            exchange=Venue("BINANCE"),
            side=side,
            quantity=0.01,
            price=PRICE,
            leverage=2.0,
            placed=placed,
            reduce_only=reduce_only,
        )
        changes = {"id": "ord_2", "symbol": Symbol("ETHUSDT"), "side": Side.LONG, "reduce_only": False}
        other = order.model_copy(update=changes)
        bundle = bundle_of(account=build_account(usd=2_000.0, krw=2_000_000.0, pending=(other, order)))
        turned = Call.SHORT if sign < 0 else Call.LONG
        hard, soft = judged(board_of(sign, sign, sign, 0), bundle), judged(board_of(0, sign, 0, 0), bundle)
        assert hard.decision is (turned if reduce_only else Call.CANCEL_AND_CLOSE)
        assert soft.decision is (turned if reduce_only else Call.HOLD)
        told = " ".join(line.text for line in judge.position_section(build_case(bundle)).lines)
        assert (re.search(rf"\border\b[^.]* {side}\b", told) is not None) != reduce_only


@pytest.mark.parametrize(
    ("before", "hours", "confidence", "call"),
    [
        ("SHORT", 4, 0.6, Call.HOLD),
        ("SHORT", 13, 0.6, Call.LONG),
        ("LONG", 4, 0.6, Call.LONG),
        ("HOLD", 4, 0.6, Call.LONG),
        ("SHORT", 4, 0.9, Call.LONG),
    ],
)
def test_no_turning_round_soon_without_a_changed_signal(before: str, hours: int, confidence: float, call: Call) -> None:
    bundle = bundle_of(slots=[decided(before, hours)])
    assert judged(board_of(0, 1, 0, 0, confidence), bundle).decision is call


def test_another_modes_decision_is_not_looked_at() -> None:
    bundle = bundle_of(slots=[decided("SHORT", mode=Mode.POSITION)])
    assert judged(board_of(0, 1, 0, 0), bundle).decision is Call.LONG


@pytest.mark.parametrize(
    ("regime", "stance", "confidence", "call"),
    [
        (Regime.BULL_MOMENTUM, -1, 0.65, Call.HOLD),
        (Regime.BULL_MOMENTUM, -1, 0.9, Call.SHORT),
        (Regime.BULL_MOMENTUM, 1, 0.65, Call.LONG),
        (Regime.BEAR_MOMENTUM, 1, 0.65, Call.HOLD),
        (Regime.RANGE_BOUND, 1, 0.65, Call.LONG),
    ],
)
def test_against_a_trend_only_with_conviction(regime: Regime, stance: int, confidence: float, call: Call) -> None:
    said = judged(board_of(0, stance, stance, 0, confidence), regime=regime)
    assert said.decision is call


def test_a_trade_the_rules_would_refuse_is_a_hold() -> None:
    """A stop as wide as this market asks for lies behind the liquidation."""
    case, atr = build_case(bundle_of()), 0.24 * PRICE
    steps = sorted({step * sign for step in RANGE_STEPS_ATR for sign in (-1, 1)})
    distances = [MenuLevel(f"range_{step:g}", RANGE, PRICE + step * atr) for step in steps]
    levels = sorted((MenuLevel("mark", MARK, PRICE), *distances), key=lambda level: level.price)
    menu = PriceMenu(tuple(levels), atr, 0.1, PRICE)
    wild = replace(case, menu=menu, inputs=replace(case.inputs, atr=atr))
    said = judge.answer_by_rules(wild, meta_of(), board_of(-1, -1, -1, -1, 0.9))
    assert said.decision is Call.HOLD
    assert "refuse" in said.reasoning.final_logic


def test_without_a_price_or_a_measure_there_is_no_trade() -> None:
    bundle = bundle_of()
    names = [str(block.series) for block in bundle.blocks]
    gone = [name for name in names if name.startswith(("candles", "book"))]
    assert judged(board_of(1, 1, 1, 1), without(bundle, *gone)).decision is Call.HOLD


def test_whoever_pays_funding_borrows_nothing_and_waits_less() -> None:
    long, short = judged(board_of(1, 1, 1, 1)), judged(board_of(-1, -1, -1, -1))
    assert (long.leverage, long.hold_duration) == (1, "3d")
    assert (short.leverage, short.hold_duration) == (3, "5d")


@pytest.mark.slow
def test_feeds_of_strangers_have_no_part_in_the_rules() -> None:
    loud = bundle_of(replace(BEAR, news="BUY " * 200))
    first, second = (asyncio.run(argued(bundle)) for bundle in (loud, bundle_of(BEAR)))
    assert first.decision == second.decision
    assert Feed.NEWS in {block.series.feed for block in loud.blocks}
