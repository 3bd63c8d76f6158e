"""The Judge held to the rules: each bound at, just inside and just beyond, and what a demoted decision looks like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wire.trades import PRICE, board, decision, menu, terms
from zuno.markets.market import Symbol, assume_market
from zuno.trading.model.cycle import Call, Decision, Expert, GeometryEntry, KeyLevelsOpinion, Reasoning
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Mode, Side
from zuno.trading.rules.margin import MAINTENANCE_MARGIN, liquidation_distance
from zuno.trading.rules.price_menu import round_to_tick
from zuno.trading.rules.validate_decision import (
    find_objection,
    validate_decision,
)

GONE = Missing("nobody said")
LEVELS = menu(90.0, 95.0, 96.0, 97.0, 97.5, 98.0, 99.0, 99.2, 99.3, PRICE, 101.0, 102.0, 104.0, 110.0, 110.1)


def why(said: Decision, **changed: Any) -> str | None:
    offered, given_ = changed.pop("menu", LEVELS), changed.pop("terms", terms())
    return find_objection(said, offered, given_, changed.pop("board", board(1 if said.decision is Call.LONG else -1)))


def test_a_sound_decision_stands_as_it_is() -> None:
    for call in (Call.LONG, Call.SHORT):
        said = decision(call)
        stance = 1 if call is Call.LONG else -1
        assert why(said) is None
        assert validate_decision(said, LEVELS, terms(), board(stance)) == said


def test_prices_near_a_level_are_that_level() -> None:
    said = decision(entry_price=100.04, stop_loss=98.05, take_profit=103.93)
    done = validate_decision(said, LEVELS, terms(), board())
    assert (done.entry_price, done.stop_loss, done.take_profit) == (100.0, 98.0, 104.0)


@pytest.mark.parametrize("field", ["entry_price", "stop_loss", "take_profit"])
@pytest.mark.parametrize("price", [None, 98.45, 1e9])
def test_a_price_off_the_menu_is_none(field: str, price: float | None) -> None:
    said = decision(**{field: price})  # type: ignore[arg-type]
    assert field in (why(said) or "")
    _held(said)


@pytest.mark.parametrize(
    ("off", "found"), [(0.0, True), (0.1, True), (0.101, False), (-0.1, True), (-0.101, False), (0.2, False)]
)
def test_a_tenth_of_an_atr_is_near(off: float, found: bool) -> None:
    for atr in (1.0, 8.0):
        assert (menu(128.0, atr=atr).snap(128.0 + off * atr * (1 - 1e-12)) is not None) == found
    assert menu(PRICE, atr=0.0001).snap(PRICE + 0.00002) is None


def test_of_two_levels_the_nearer_and_then_the_lower() -> None:
    assert LEVELS.snap(110.04) == 110.0
    assert LEVELS.snap(110.06) == 110.1
    assert menu(99.5, 100.5, atr=10.0).snap(PRICE) == 99.5
    assert menu(PRICE, atr=GONE).snap(PRICE) is None
    assert LEVELS.snap(float("nan")) is None
    assert menu().snap(PRICE) is None


@pytest.mark.parametrize(
    ("price", "symbol", "tick"),
    [
        (33_123.4567, Symbol("BTCUSDT"), 33_123.5),
        (1_244.2449, Symbol("ETHUSDT"), 1_244.24),
        (0.04, Symbol("BTCUSDT"), 0.0),
    ],
)
def test_ticks(price: float, symbol: Symbol, tick: float) -> None:
    assert round_to_tick(price, assume_market(symbol.venue, symbol.base).tick) == tick


@pytest.mark.parametrize(
    ("stop", "allowed"), [(99.3, False), (99.25, True), (99.2, True), (97.0, True), (96.9, False), (98.0, True)]
)
def test_a_stop_is_neither_too_near_nor_too_far(stop: float, allowed: bool) -> None:
    offered = menu(stop, PRICE, 103.3)
    said = decision(stop_loss=stop, take_profit=103.3)
    found = why(said, menu=offered)
    assert (found is None) == allowed
    assert allowed or "ATR" in (found or "")


@pytest.mark.parametrize(
    ("take", "allowed"), [(101.9, False), (102.0, True), (102.1, True), (110.0, True), (110.1, False)]
)
def test_a_reward_is_one_to_five_times_the_risk(take: float, allowed: bool) -> None:
    found = why(decision(take_profit=take), menu=menu(98.0, PRICE, take))
    assert (found is None) == allowed
    assert allowed or "risked" in (found or "")


@pytest.mark.parametrize(
    ("changed", "word"),
    [({"stop_loss": 101.0}, "behind"), ({"take_profit": 99.0}, "ahead"), ({"stop_loss": PRICE}, "behind")],
)
def test_stop_behind_and_target_ahead(changed: dict[str, float], word: str) -> None:
    assert word in (why(decision(**changed)) or "")  # type: ignore[arg-type]


@pytest.mark.parametrize(("leverage", "allowed"), [(1, True), (2, True), (3, False)])
def test_a_stop_lies_before_the_liquidation(leverage: int, allowed: bool) -> None:
    # At 67.00 a third of 100 has gone but for 0.5 % of what is left: a stop 35 % away is behind it at 3×.
    offered = menu(65.0, PRICE, 140.0, atr=20.0)
    found = why(decision(stop_loss=65.0, take_profit=140.0, leverage=leverage), menu=offered, terms=terms(atr=20.0))
    assert (found is None) == allowed
    assert liquidation_distance(3, Side.LONG) == pytest.approx(0.32998, abs=1e-5)


@pytest.mark.parametrize("leverage", [1.5, 2, 3])
@pytest.mark.parametrize(("side", "sign"), [(Side.LONG, 1), (Side.SHORT, -1)])
def test_at_the_liquidation_the_maintenance_margin_is_left(leverage: float, side: Side, sign: int) -> None:
    price = 1 - sign * liquidation_distance(leverage, side)
    left = 1 / leverage + sign * (price - 1)
    assert left == pytest.approx(MAINTENANCE_MARGIN * price)


@pytest.mark.parametrize(("call", "stop", "allowed"), [(Call.LONG, 67.05, True), (Call.SHORT, 132.8, False)])
def test_a_short_is_liquidated_sooner(call: Call, stop: float, allowed: bool) -> None:
    # Of 100 at 3× lost when 0.5 % of what it is worth by then is left: at 132.67, where a LONG has until 67.00.
    assert liquidation_distance(3, Side.SHORT) == pytest.approx(0.3267, abs=1e-5)
    take = 2 * PRICE - stop
    offered = menu(stop, PRICE, take, atr=20.0)
    found = why(decision(call, stop_loss=stop, take_profit=take, leverage=3), menu=offered, terms=terms(atr=20.0))
    assert (found is None) == allowed
    assert allowed or "liquidation" in (found or "")


@pytest.mark.parametrize("call", [Call.LONG, Call.SHORT])
@pytest.mark.parametrize(
    ("off", "stop", "take", "word"),
    # How far entry, stop and target lie from the market, as a LONG sees it, in ATR.
    [
        (0.0, -2.0, 4.0, None),
        (1.0, -1.0, 4.0, None),
        (-1.0, -2.0, 1.0, None),
        (1.1, -1.0, 4.0, "entry_price"),
        (-1.1, -3.0, 4.0, "entry_price"),
        (0.9, -0.1, 4.0, None),
        (0.9, 0.0, 4.0, "stop_loss"),
        (0.9, 0.1, 4.0, "stop_loss"),
        (-0.9, -1.9, 0.1, None),
        (-0.9, -1.7, 0.0, "take_profit"),
        (-0.9, -1.7, -0.1, "take_profit"),
    ],
)
def test_a_trade_is_opened_at_the_market(call: Call, off: float, stop: float, take: float, word: str | None) -> None:
    sign = 1 if call is Call.LONG else -1
    entry_price, stop_loss, take_profit = (round(PRICE + sign * one, 1) for one in (off, stop, take))
    offered = menu(entry_price, stop_loss, take_profit)
    said = decision(call, entry_price=entry_price, stop_loss=stop_loss, take_profit=take_profit, leverage=1)
    found, done = why(said, menu=offered), validate_decision(said, offered, terms(), board(sign))
    assert (found or "").partition(" ")[0] == (word or "")
    assert (done.decision, done.why) == ((call, "") if word is None else (Call.HOLD, found))


def test_without_a_market_nothing_stands() -> None:
    lost = replace(LEVELS, now=GONE)
    assert "nobody said" in (why(decision(), menu=lost) or "")
    assert validate_decision(decision(), lost, terms(), board()).decision is Call.HOLD


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_the_counter_scenario_is_not_optional(text: str) -> None:
    said = decision(reasoning=_reasoning(text))
    assert "counter_scenario" in (why(said) or "")
    _held(said)
    for call in (Call.HOLD, Call.CANCEL_AND_CLOSE):
        assert why(decision(call, reasoning=_reasoning(text))) is None


@pytest.mark.parametrize(
    ("stance", "confidence", "seconded"), [(1, 0.5, True), (1, 0.49, False), (0, 0.9, False), (-1, 0.9, False)]
)
def test_one_who_reads_numbers_must_look_the_same_way(stance: int, confidence: float, seconded: bool) -> None:
    assert (why(decision(), board=board(stance, confidence)) is None) == seconded
    assert (why(decision(Call.SHORT), board=board(-stance, confidence)) is None) == seconded


def test_a_picture_alone_seconds_nothing() -> None:
    nothing: Any = dict.fromkeys(KeyLevelsOpinion.model_fields)
    seen = GeometryEntry(
        source="model",
        why="",
        anomaly="clean_breakout",
        directional_bias="BULLISH",
        confidence=1.0,
        key_levels=KeyLevelsOpinion(**nothing),
        fibonacci_context="none",
        pattern="none",
        cvd_signal=None,
        funding_visual=None,
        rationale="r",
        stance=1,
    )
    said = board(0).model_copy(update={"vlm_geometry": seen})
    assert why(decision(), board=said) is not None
    assert not Expert.GEOMETRY.numeric
    nobody = said.model_copy(update={"liquidity": None, "microstructure": None, "macro": None})
    assert why(decision(), board=nobody) is not None


def test_without_an_atr_nothing_stands() -> None:
    assert "ATR" in (why(decision(), terms=terms(atr=GONE)) or "")


def test_what_opens_nothing_has_no_prices() -> None:
    for call in (Call.HOLD, Call.CANCEL_AND_CLOSE):
        said = decision(call, entry_price=PRICE, stop_loss=98.0, take_profit=104.0, allocation_pct=50, leverage=3)
        done = validate_decision(said, menu(), terms(atr=GONE), board(0))
        assert done.decision is call
        assert (done.entry_price, done.stop_loss, done.take_profit, done.allocation_pct) == (None, None, None, 0)


@pytest.mark.parametrize(("mode", "default"), [(Mode.SWING, "5d"), (Mode.POSITION, "6w")])
def test_a_duration_that_is_none_is_the_modes(mode: Mode, default: str) -> None:
    for text, kept in (("3d", "3d"), ("a week or so", default), ("0h", default)):
        assert validate_decision(decision(hold_duration=text), LEVELS, terms(mode=mode), board()).hold_duration == kept


def test_signs_are_normalised() -> None:
    done = validate_decision(decision(expected_loss_pct=-3.0, expected_profit_pct=-4.0), LEVELS, terms(), board())
    assert (done.expected_loss_pct, done.expected_profit_pct) == (3.0, 4.0)


def test_a_reason_is_added_to_what_was_said() -> None:
    done = validate_decision(decision(stop_loss=None, why="the model was late"), LEVELS, terms(), board())
    assert "stop_loss" in done.why


prices = st.one_of(st.none(), st.floats(80, 120), st.sampled_from([one.price for one in LEVELS.levels]))


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(list(Call)), prices, prices, prices, st.integers(1, 3), st.integers(-1, 1), st.floats(0, 1))
def test_whatever_is_said_what_stands_is_within_the_rules(
    call: Call, entry: Any, stop: Any, take: Any, leverage: int, stance: int, confidence: float
) -> None:
    said = decision(call, entry_price=entry, stop_loss=stop, take_profit=take, leverage=leverage)
    done = validate_decision(said, LEVELS, terms(), board(stance, confidence))
    assert validate_decision(done, LEVELS, terms(), board(stance, confidence)) == done
    assert done.decision in (call, Call.HOLD)
    assert done.allocation_pct <= said.allocation_pct
    offered = {level.price for level in LEVELS.levels}
    if done.decision.side is None:
        assert (done.entry_price, done.stop_loss, done.take_profit) == (None, None, None)
        return
    assert done.entry_price is not None
    assert done.stop_loss is not None
    assert done.take_profit is not None
    assert {done.entry_price, done.stop_loss, done.take_profit} <= offered
    risk, reward = abs(done.entry_price - done.stop_loss), abs(done.take_profit - done.entry_price)
    assert 0.75 - 1e-6 <= risk <= 3 + 1e-6
    assert 1 - 1e-6 <= reward / risk <= 5 + 1e-6
    assert (done.take_profit > done.entry_price) == (call is Call.LONG)
    assert min(done.stop_loss, done.take_profit) < PRICE < max(done.stop_loss, done.take_profit)
    assert abs(done.entry_price - PRICE) <= 1 + 1e-6
    assert stance == (1 if call is Call.LONG else -1)
    assert confidence >= 0.5


def _held(said: Decision) -> None:
    done = validate_decision(said, LEVELS, terms(), board())
    assert (done.decision, done.entry_price, done.stop_loss, done.take_profit) == (Call.HOLD, None, None, None)
    assert done.why


def _reasoning(counter: str) -> Reasoning:
    return decision().reasoning.model_copy(update={"counter_scenario": counter})
