"""What a trade is worth, by hand: fair rate, capped edge, the record's weight, and what it costs while it lasts."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nextafter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wire.accounts import build_fees
from tests.wire.trades import change_inputs, decision, ruled_on, still, terms, walk
from zuno.markets.venues import Venue
from zuno.trading.model.cycle import Call, Expectation, Style
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Mode, Side, Timeframe
from zuno.trading.rules.calibration import EdgeSlope
from zuno.trading.rules.exits import hold_hours, hold_text
from zuno.trading.rules.expectancy import (
    Costs,
    TouchOdds,
    apply_llm_cost,
    estimate_expectation,
    fill_probability,
    first_touch,
    judged_ev,
    trade_costs,
    trade_prices,
    trading_costs,
)
from zuno.trading.rules.inputs import FeeRates, RulingInputs, Slippage
from zuno.trading.rules.price_menu import TradePrices

BINANCE = (Venue("BINANCE"),)
GONE = Missing("nobody said")
PROVEN_SLOPE = EdgeSlope(120, 1.0, 0.1)
"""λ = (1 − 1.28 · √(0.01 · 1.01)) / 1.01."""


def worth(given: RulingInputs, side: Side = Side.LONG, style: Style = Style.SMART_DCA, **changed: Any) -> Expectation:
    call = Call.LONG if side is Side.LONG else Call.SHORT
    cost, size = changed.pop("cost", 0.0), changed.pop("size", 500.0)
    several, slope = changed.pop("exchanges", BINANCE), changed.pop("slope", PROVEN_SLOPE)
    found = estimate_expectation(decision(call, **changed), side, several, style, given, slope, cost, size)
    assert isinstance(found, Expectation)
    return found


def test_a_trade_by_hand() -> None:
    """Entry 100, stop 98, target 104: f = 2/6. A Judge who says 45 % claims 11.67 points. Twice 0.05 % in fees, 0.01
    and 0.02 % of slippage, funding of 0.01 % for each eight hours it lasts; five cents on $500 are 0.01 %."""
    given_ = terms()
    found = worth(given_, win_probability_pct=45, cost=0.05)
    touch = first_touch(walk(), 100.0, 98.0, 104.0, Side.LONG, 120, given_.seed)
    assert isinstance(touch, TouchOdds)
    assert (found.p_judge, found.fair) == (0.45, pytest.approx(1 / 3))
    assert found.edge == pytest.approx(0.45 - 1 / 3)
    assert (found.lambda_, found.beta, found.beta_se, found.n) == (pytest.approx(0.862734, abs=1e-6), 1.0, 0.1, 120)
    assert found.duration_hours == pytest.approx(touch.bars)
    assert found.resolved == pytest.approx(touch.target + touch.stop)
    assert found.timed_out == touch.time
    assert found.standard_error <= 0.005
    assert (found.profit_pct, found.loss_pct, found.fill) == (4.0, 2.0, 1.0)
    assert (found.fees_pct, found.slippage_pct) == (pytest.approx(0.10), pytest.approx(0.03))
    assert found.funding_pct == pytest.approx(0.01 * touch.bars / 8)
    costs = 0.13 + found.funding_pct + 0.01
    assert found.ev_pct == pytest.approx(found.lambda_ * (0.45 - 1 / 3) * 6 - costs)
    assert judged_ev(found, 500.0) == pytest.approx(0.45 * (4 - costs) - 0.55 * (2 + costs))


def test_what_is_not_known_is_worth_nothing_at_a_far_target() -> None:
    """A habitual 50 % where the distances give 18 %: the claim is capped, and counts nothing without a record."""
    far = worth(terms(), win_probability_pct=50, take_profit=109.0, slope=EdgeSlope(0, None, None))
    assert (far.fair, far.edge, far.lambda_) == (pytest.approx(2 / 11), 0.2, 0.0)
    assert far.ev_pct < 0
    assert worth(terms(), win_probability_pct=0).edge == -0.2


@pytest.mark.parametrize(("hold", "bars"), [("1h", 1), ("2h", 2), ("1d", 24)])
def test_it_lasts_no_longer_than_it_is_held(hold: str, bars: int) -> None:
    given_ = terms()
    found = worth(given_, stop_loss=99.5, take_profit=101.0, hold_duration=hold)
    touch = first_touch(walk(), 100.0, 99.5, 101.0, Side.LONG, bars, given_.seed)
    assert isinstance(touch, TouchOdds)
    assert found.duration_hours == pytest.approx(touch.bars)
    assert found.duration_hours <= bars


def test_a_hold_shorter_than_a_bar_is_one_bar_of_paths_and_its_own_hours_of_funding() -> None:
    given_ = terms(bars=replace(walk(), timeframe=Timeframe.D1, at=24 * walk().at))
    hour, day, days = (
        worth(given_, stop_loss=99.5, take_profit=101.0, hold_duration=hold) for hold in ("1h", "1d", "2d")
    )
    assert hour.resolved == day.resolved != days.resolved
    assert (hour.duration_hours, day.duration_hours) == (1.0, 24.0)


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(1, 999), st.sampled_from("hdw"), st.floats(0.5, 5), st.floats(1, 5), st.sampled_from(list(Side)))
def test_funding_is_never_charged_for_longer_than_it_lasts(
    count: int, unit: str, loss: float, ratio: float, side: Side
) -> None:
    sign = 1 if side is Side.LONG else -1
    prices: dict[str, Any] = {"stop_loss": 100 - sign * loss, "take_profit": 100 + sign * loss * ratio}
    found = worth(terms(), side, hold_duration=f"{count}{unit}", **prices)
    received = -(found.fees_pct + found.slippage_pct)
    assert found.funding_pct == pytest.approx(max(sign * 0.01 * found.duration_hours / 8, received))
    assert found.duration_hours <= count * {"h": 1, "d": 24, "w": 168}[unit]


def test_a_rate_nobody_recorded_is_charged_to_either_side() -> None:
    for side in Side:
        assert worth(terms(funding_assumed=True), side).funding_pct > 0
    assert worth(terms(), Side.SHORT).funding_pct < 0


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(
    st.floats(-0.003, 0.003),
    st.sampled_from(list(Side)),
    st.sampled_from(list(Style)),
    st.floats(0, 0.1),
    st.integers(0, 100),
)
def test_funding_received_makes_no_trade_worth_anything(
    rate: float, side: Side, style: Style, slippage: float, odds: int
) -> None:
    """Costs are never below zero: without a record, and with a claim below the fair rate, EV is not above it."""
    given_ = terms(funding_next=rate, slippage=Slippage(slippage, slippage / 3))
    for found in (
        worth(given_, side, style, slope=EdgeSlope(0, None, None), win_probability_pct=odds),
        worth(given_, side, style, win_probability_pct=min(odds, 33)),
    ):
        assert trading_costs(found) >= 0
        assert found.ev_pct <= 0


@pytest.mark.parametrize(
    ("exchange", "side", "style", "costs"),
    [
        (Venue("BINANCE"), Side.LONG, Style.MOMENTUM_SNIPER, Costs(0.10, 0.03, 0.15)),
        (Venue("BINANCE"), Side.LONG, Style.SMART_DCA, Costs(0.10, 0.03, 0.15)),
        (Venue("BINANCE"), Side.LONG, Style.PASSIVE_MAKER, Costs(0.07, 0.023, 0.15)),
        (Venue("BINANCE"), Side.SHORT, Style.PASSIVE_MAKER, Costs(0.07, 0.013, -0.083)),  # 0.15 are received
        (Venue("UPBIT"), Side.LONG, Style.PASSIVE_MAKER, Costs(0.10, 0.023, 0.0)),
        (Venue("UPBIT"), Side.LONG, Style.SMART_DCA, Costs(0.10, 0.03, 0.0)),
    ],
)
def test_costs_by_hand(exchange: Venue, side: Side, style: Style, costs: Costs) -> None:
    found = trade_costs(exchange, side, style, 120, terms(slippage=Slippage(0.01, 0.02, spread=0.006)))
    assert isinstance(found, Costs)
    assert (found.fees, found.slippage, found.funding) == (
        pytest.approx(costs.fees),
        pytest.approx(costs.slippage),
        pytest.approx(costs.funding),
    )


def test_a_spread_nobody_saw_is_as_wide_as_a_large_order_pays() -> None:
    assert Slippage(0.01, 0.02).half_spread == 0.01
    assert Slippage(0.03, 0.02, spread=0.01).half_spread == 0.005


def test_an_order_that_waits_is_worth_its_fill_probability() -> None:
    given_ = terms(slippage=Slippage(0.0, 0.0), fees=build_fees(FeeRates(0.0, 0.0), FeeRates(0.0, 0.0)))
    near, far = (
        worth(given_, style=Style.PASSIVE_MAKER, entry_price=entry, stop_loss=entry - 2, take_profit=entry + 4)
        for entry in (100.0, 99.4)
    )
    taken = worth(given_, stop_loss=98.0, take_profit=104.0)
    assert 0.9 < near.fill < 1.0
    assert far.fill < 0.5
    assert near.ev_pct == pytest.approx(near.fill * taken.ev_pct)
    assert far.ev_pct < near.ev_pct


@pytest.mark.parametrize("side", list(Side))
def test_an_order_beyond_the_market_is_filled(side: Side) -> None:
    sign = 1 if side is Side.LONG else -1
    prices = TradePrices(side, 100.0 + sign * 0.5, 100.0 - sign * 2, 100.0 + sign * 4)
    assert fill_probability(prices, Style.PASSIVE_MAKER, terms()) == 1.0
    assert fill_probability(prices, Style.PASSIVE_MAKER, terms(mark=GONE)) == GONE
    assert fill_probability(prices, Style.SMART_DCA, terms(mark=GONE)) == 1.0


def test_fees_are_the_owners_to_set() -> None:
    given = terms(fees=build_fees(futures=FeeRates(0.0, 0.1), spot=FeeRates(0.2, 0.3)))
    assert worth(given).fees_pct == pytest.approx(0.2)
    assert worth(given, exchanges=(Venue("UPBIT"),), style=Style.PASSIVE_MAKER).fees_pct == pytest.approx(0.5)


def test_two_exchanges_are_judged_by_the_dearer() -> None:
    both = (Venue("BINANCE"), Venue("UPBIT"))
    assert worth(terms(), exchanges=both).funding_pct > 0
    assert worth(terms(funding_next=-0.0001), exchanges=both).funding_pct == 0


@pytest.mark.slow
@settings(max_examples=examples(20), deadline=None)
@given(
    st.integers(0, 100),
    st.floats(-10, 10, allow_nan=False),
    st.floats(-10, 10, allow_nan=False),
    st.sampled_from(list(Side)),
)
def test_what_the_judge_expects_to_lose_has_no_say(odds: int, loss: float, profit: float, side: Side) -> None:
    plus, minus = (
        worth(terms(), side, win_probability_pct=odds, expected_loss_pct=sign * loss, expected_profit_pct=sign * profit)
        for sign in (1, -1)
    )
    assert plus == minus


@pytest.mark.slow
@settings(max_examples=examples(20), deadline=None)
@given(st.integers(14, 52), st.floats(0, 5), st.floats(1, 1e4))
def test_more_confidence_is_worth_more_and_more_cost_less(odds: int, cost: float, size: float) -> None:
    """Between the bounds of an edge."""
    given = terms()
    less, more = (worth(given, win_probability_pct=pct, cost=cost, size=size).ev_pct for pct in (odds, odds + 1))
    assert less < more
    free = worth(given, win_probability_pct=odds, size=size).ev_pct
    assert free - 100 * cost / size == pytest.approx(
        worth(given, win_probability_pct=odds, cost=cost, size=size).ev_pct
    )


def test_the_minds_cost_more_of_less() -> None:
    whole = worth(terms(), cost=1.0, size=1_000.0)
    assert apply_llm_cost(whole, 500.0).ev_pct == pytest.approx(whole.ev_pct - 0.1)
    assert apply_llm_cost(whole, 0.0).ev_pct < -1e5


def test_a_market_that_stands_still_ends_every_trade_by_time() -> None:
    found = worth(terms(bars=still()), win_probability_pct=90)
    assert (found.resolved, found.timed_out, found.duration_hours) == (0.0, 1.0, 120.0)
    assert found.ev_pct == pytest.approx(found.lambda_ * 0.2 * 6 - (0.13 + 0.15)), "what it scores is in the record"


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None)
@given(
    st.sampled_from(
        ["mark", "atr", "funding_next", "dollar", "krw_rate", "day_volatility_rank", "curve_change", "slippage"]
    ),
    st.sampled_from(["entry_price", "stop_loss", "take_profit"]),
    st.sampled_from([-inf, inf]),
    st.floats(0.5, 5),
    st.sampled_from([Call.LONG, Call.SHORT]),
)
def test_one_ulp_changes_no_ruling_and_no_printed_digit(
    figure: str, price: str, towards: float, loss: float, call: Call
) -> None:
    sign = 1 if call is Call.LONG else -1
    given_ = terms(funding_next=0.000123, slippage=Slippage(0.0113, 0.0217))
    said = decision(call, stop_loss=round(100 - sign * loss, 1), take_profit=round(100 + sign * 2 * loss, 1))
    value: Any = given_.quoted_rates["KRW"] if figure == "krw_rate" else getattr(given_, figure)
    moved: Any = (
        Slippage(*(nextafter(part, towards) for part in (value.buy, value.sell)))
        if isinstance(value, Slippage)
        else nextafter(value, towards)
    )
    other = said.model_copy(update={price: nextafter(getattr(said, price), towards)})
    plain, shaken = ruled_on(said, given_), ruled_on(other, change_inputs(given_, **{figure: moved}))
    assert replace(shaken, decision=said) == plain


@pytest.mark.parametrize("gone", ["bars", "slippage", "funding_next"])
def test_without_its_facts_nothing_is_worth_anything(gone: str) -> None:
    given = terms(**{gone: GONE})  # type: ignore[arg-type]
    found = estimate_expectation(decision(), Side.LONG, BINANCE, Style.SMART_DCA, given, PROVEN_SLOPE, 0, 500)
    assert found == GONE


@pytest.mark.parametrize(
    "changed",
    [{"stop_loss": None}, {"entry_price": None}, {"take_profit": None}, {"stop_loss": 101.0}, {"take_profit": 99.0}],
)
def test_prices_that_make_no_trade(changed: dict[str, Any]) -> None:
    said = decision(**changed)
    assert trade_prices(said, Side.LONG) is None
    found = estimate_expectation(said, Side.LONG, BINANCE, Style.SMART_DCA, terms(), PROVEN_SLOPE, 0, 500)
    assert isinstance(found, Missing)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("1h", 1),
        ("999h", 999),
        ("5d", 120),
        ("2w", 336),
        ("0d", None),
        ("1000h", None),
        ("5 d", None),
        ("d", None),
        ("-5d", None),
        ("5D", None),
        ("5d\n", None),
        ("٥d", None),
        ("", None),
        ("a while", None),
    ],
)
def test_how_long_is_how_long(text: str, hours: int | None) -> None:
    for mode, default, long in ((Mode.SWING, "5d", 120), (Mode.POSITION, "6w", 1_008)):
        assert hold_text(text, mode) == (default if hours is None else text)
        assert hold_hours(text, mode) == (hours or long)


def test_a_thin_book_has_no_price_for_size() -> None:
    assert isinstance(terms(slippage=Slippage(0.1, 0.1)).slippage, Slippage)
    dear = worth(terms(slippage=Slippage(0.5, 0.7)))
    assert dear.slippage_pct == pytest.approx(1.2)
