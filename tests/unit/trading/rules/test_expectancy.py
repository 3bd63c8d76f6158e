"""What a trade is worth, by hand: costs, shrinking, and what the minds may cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wire.trades import decision, terms, walk
from zuno.trading.model.cycle import Call, Exchange, Expectation, Style
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Mode, Side, Timeframe
from zuno.trading.rules.expectancy import (
    Costs,
    apply_llm_cost,
    estimate_expectation,
    judge_weight,
    trade_costs,
    trade_prices,
)
from zuno.trading.rules.first_touch import TouchOdds, driftless_odds, first_touch
from zuno.trading.rules.inputs import FeeRates, Fees, RulingInputs, Slippage, hold_hours, hold_text

BINANCE = (Exchange.BINANCE,)
GONE = Missing("nobody said")


def worth(given: RulingInputs, side: Side = Side.LONG, style: Style = Style.SMART_DCA, **changed: Any) -> Expectation:
    call = Call.LONG if side is Side.LONG else Call.SHORT
    cost, size = changed.pop("cost", 0.0), changed.pop("size", 500.0)
    several = changed.pop("exchanges", BINANCE)
    found = estimate_expectation(decision(call, **changed), side, several, style, given, cost, size)
    assert isinstance(found, Expectation)
    return found


def test_a_trade_by_hand() -> None:
    """Entry 100, stop 98, target 104 on a market that stands still: p0 = 2/6. Five days are fifteen intervals of
    0.01 %: funding 0.15 %; twice 0.05 % in fees; 0.01 + 0.02 % of slippage; five cents on $500 are 0.01 %."""
    found = worth(terms(), win_probability_pct=60, cost=0.05)
    assert found.p_judge == 0.6
    assert found.p0 == pytest.approx(1 / 3)
    assert found.p == pytest.approx(0.4)  # a quarter of the way from 1/3 to 0.6
    assert (found.fees_pct, found.slippage_pct, found.funding_pct) == (
        pytest.approx(0.10),
        pytest.approx(0.03),
        pytest.approx(0.15),
    )
    assert found.profit_pct == pytest.approx(3.72)
    assert found.loss_pct == pytest.approx(2.28)
    assert found.ev_pct == pytest.approx(0.4 * 3.72 - 0.6 * 2.28 - 0.01)
    assert found.ev_pct == pytest.approx(0.11)


@pytest.mark.parametrize(("hold", "bars"), [("1h", 1), ("2h", 2), ("1d", 24)])
def test_the_odds_are_those_of_the_bars_it_is_held_for(hold: str, bars: int) -> None:
    given_ = terms(bars=walk())
    found = worth(given_, stop_loss=99.5, take_profit=101.0, hold_duration=hold)
    touch = first_touch(walk(), 100.0, 99.5, 101.0, Side.LONG, bars, given_.seed)
    assert isinstance(touch, TouchOdds)
    assert found.p0 == driftless_odds(touch, 1.0, 0.5)


def test_a_hold_shorter_than_a_bar_is_one_bar() -> None:
    given_ = terms(bars=replace(walk(), timeframe=Timeframe.D1, at=24 * walk().at))
    hour, day, days = (
        worth(given_, stop_loss=99.5, take_profit=101.0, hold_duration=hold).p0 for hold in ("1h", "1d", "2d")
    )
    assert hour == day != days


def test_a_short_by_hand_is_paid_what_longs_pay() -> None:
    found = worth(terms(), Side.SHORT, win_probability_pct=60)
    assert found.funding_pct == pytest.approx(-0.15)
    assert found.profit_pct == pytest.approx(4 - 0.10 - 0.03 + 0.15)
    assert found.loss_pct == pytest.approx(2 + 0.10 + 0.03 - 0.15)


def test_a_hold_without_end_pays_all_of_its_funding_and_is_paid_for_the_usual_one() -> None:
    """Else whoever is paid for waiting could make any trade worth it."""
    assert worth(terms(), Side.SHORT, hold_duration="999w").funding_pct == pytest.approx(-0.15)
    assert worth(terms(), Side.SHORT, hold_duration="1d").funding_pct == pytest.approx(-0.03)
    assert worth(terms(), Side.LONG, hold_duration="10d").funding_pct == pytest.approx(0.30)
    assert worth(terms(mode=Mode.POSITION), Side.SHORT, hold_duration="999w").funding_pct == pytest.approx(-1.26)


@pytest.mark.parametrize(
    ("exchange", "side", "style", "costs"),
    [
        (Exchange.BINANCE, Side.LONG, Style.MOMENTUM_SNIPER, Costs(0.10, 0.03, 0.15)),
        (Exchange.BINANCE, Side.LONG, Style.SMART_DCA, Costs(0.10, 0.03, 0.15)),
        (Exchange.BINANCE, Side.LONG, Style.PASSIVE_MAKER, Costs(0.07, 0.02, 0.15)),
        (Exchange.BINANCE, Side.SHORT, Style.PASSIVE_MAKER, Costs(0.07, 0.01, -0.15)),
        (Exchange.UPBIT, Side.LONG, Style.PASSIVE_MAKER, Costs(0.10, 0.02, 0.0)),
        (Exchange.UPBIT, Side.LONG, Style.SMART_DCA, Costs(0.10, 0.03, 0.0)),
    ],
)
def test_costs_by_hand(exchange: Exchange, side: Side, style: Style, costs: Costs) -> None:
    found = trade_costs(exchange, side, style, 120, terms())
    assert isinstance(found, Costs)
    assert (found.fees, found.slippage, found.funding) == (
        pytest.approx(costs.fees),
        pytest.approx(costs.slippage),
        pytest.approx(costs.funding),
    )


def test_fees_are_the_owners_to_set() -> None:
    given = terms(fees=Fees(binance=FeeRates(0.0, 0.1), upbit=FeeRates(0.2, 0.3)))
    assert worth(given).fees_pct == pytest.approx(0.2)
    assert worth(given, exchanges=(Exchange.UPBIT,), style=Style.PASSIVE_MAKER).fees_pct == pytest.approx(0.5)


def test_two_exchanges_are_judged_by_the_dearer() -> None:
    both = (Exchange.BINANCE, Exchange.UPBIT)
    assert worth(terms(), exchanges=both).funding_pct == pytest.approx(0.15)
    assert worth(terms(funding_week=-0.0001), exchanges=both).funding_pct == 0


@pytest.mark.parametrize(
    ("resolved", "paper", "kept"),
    [(0, True, 0.25), (0, False, 0.0), (20, True, 0.5), (40, False, 0.5), (10**6, True, 1.0)],
)
def test_how_much_of_an_opinion_is_kept(resolved: int, paper: bool, kept: float) -> None:
    assert judge_weight(resolved, paper) == pytest.approx(kept, abs=1e-4)


def test_live_and_unproven_an_opinion_counts_nothing() -> None:
    sure = worth(terms(paper=False), win_probability_pct=100)
    assert sure.p == sure.p0
    assert sure.ev_pct == pytest.approx(-(0.10 + 0.03 + 0.15))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 100),
    st.floats(-10, 10, allow_nan=False),
    st.floats(-10, 10, allow_nan=False),
    st.sampled_from(list(Side)),
)
def test_what_the_judge_expects_to_lose_has_no_say(odds: int, loss: float, profit: float, side: Side) -> None:
    given = terms(bars=walk())
    plus, minus = (
        worth(given, side, win_probability_pct=odds, expected_loss_pct=sign * loss, expected_profit_pct=sign * profit)
        for sign in (1, -1)
    )
    assert plus == minus


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 99), st.floats(0, 5), st.floats(1, 1e4))
def test_more_confidence_is_worth_more_and_more_cost_less(odds: int, cost: float, size: float) -> None:
    given = terms()
    less, more = (worth(given, win_probability_pct=one, cost=cost, size=size).ev_pct for one in (odds, odds + 1))
    assert less < more
    free = worth(given, win_probability_pct=odds, size=size).ev_pct
    assert free - 100 * cost / size == pytest.approx(
        worth(given, win_probability_pct=odds, cost=cost, size=size).ev_pct
    )


def test_the_minds_cost_more_of_less() -> None:
    whole = worth(terms(), cost=1.0, size=1_000.0)
    assert apply_llm_cost(whole, 500.0).ev_pct == pytest.approx(whole.ev_pct - 0.1)
    assert apply_llm_cost(whole, 0.0).ev_pct < -1e5


@pytest.mark.parametrize("gone", ["bars", "slippage", "funding_week"])
def test_without_its_facts_nothing_is_worth_anything(gone: str) -> None:
    given = terms(**{gone: GONE})  # type: ignore[arg-type]
    assert estimate_expectation(decision(), Side.LONG, BINANCE, Style.SMART_DCA, given, 0, 500) == GONE


@pytest.mark.parametrize(
    "changed",
    [{"stop_loss": None}, {"entry_price": None}, {"take_profit": None}, {"stop_loss": 101.0}, {"take_profit": 99.0}],
)
def test_prices_that_make_no_trade(changed: dict[str, Any]) -> None:
    said = decision(**changed)
    assert trade_prices(said, Side.LONG) is None
    assert isinstance(estimate_expectation(said, Side.LONG, BINANCE, Style.SMART_DCA, terms(), 0, 500), Missing)


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
