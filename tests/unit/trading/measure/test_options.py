"""The option surface: Black-76 against an integral, figures against closed forms, and chains with holes."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.kernel.units import Millis
from zuno.trading.measure.options import Surface, delta, measure_surface, normal_cdf
from zuno.trading.model.known import Missing, or_none
from zuno.trading.model.market import DAY_MS, OptionChain, OptionQuote

NOW = 1_767_225_600_000
FORWARD = 100_000.0
STRIKES = [50_000.0 + 2_500 * n for n in range(41)]


def why(figure: object) -> str:
    assert isinstance(figure, Missing)
    return figure.reason


def quote(
    days: float | None, strike: float, *, call: bool, iv: float | None = 60.0, forward: float | None = FORWARD
) -> OptionQuote:
    expiry = None if days is None else Millis(int(NOW + days * DAY_MS))
    return OptionQuote(f"{days}-{strike}-{call}", expiry, strike, call, iv, 1.0, 1.0, forward)


def smile(days: float | None, level: float = 60.0, slope: float = 0.0, forward: float = FORWARD) -> list[OptionQuote]:
    """A smile that is straight in log-moneyness."""
    return [
        quote(days, strike, call=call, iv=level + slope * math.log(strike / forward), forward=forward)
        for strike in STRIKES
        for call in (True, False)
    ]


def chain(*smiles: list[OptionQuote]) -> OptionChain:
    return OptionChain(Millis(NOW), tuple(one for quotes in smiles for one in quotes))


def seen(*smiles: list[OptionQuote]) -> Surface:
    return measure_surface(chain(*smiles))


# -- Black-76


def by_integral(forward: float, strike: float, sigma: float, years: float, *, call: bool) -> float:
    """The payoff over the lognormal density, by Simpson's rule on either side of the kink."""
    spread = sigma * math.sqrt(years)

    def weighed(z: float) -> float:
        end = forward * math.exp(spread * z - spread * spread / 2)
        paid = max(end - strike if call else strike - end, 0.0)
        return paid * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    kink = (math.log(strike / forward) + spread * spread / 2) / spread
    edges = sorted({-12.0, max(-12.0, min(12.0, kink)), 12.0})
    total = 0.0
    for left, right in pairwise(edges):
        n = 600
        h = (right - left) / n
        odd = math.fsum(weighed(left + h * i) for i in range(1, n, 2))
        even = math.fsum(weighed(left + h * i) for i in range(2, n, 2))
        total += h / 3 * (weighed(left) + weighed(right) + 4 * odd + 2 * even)
    return total


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(st.floats(0.6, 1.6), st.floats(0.2, 1.5), st.floats(0.02, 1.0), st.booleans())
def test_delta_is_what_the_integral_gains_when_the_forward_moves(
    moneyness: float, sigma: float, years: float, call: bool
) -> None:
    strike, step = 100.0 * moneyness, 0.05
    up, down = (by_integral(100.0 + sign * step, strike, sigma, years, call=call) for sign in (1, -1))
    assert delta(100.0, strike, sigma, years, call=call) == pytest.approx((up - down) / (2 * step), abs=2e-4)


def test_textbook_numbers() -> None:
    # F = K = 100, σ = 20 %, one year: Φ(0.1), and that less one.
    assert delta(100.0, 100.0, 0.2, 1.0, call=True) == pytest.approx(0.539827837277029, rel=1e-12)
    assert delta(100.0, 100.0, 0.2, 1.0, call=False) == pytest.approx(-0.460172162722971, rel=1e-12)
    assert normal_cdf(1.96) == pytest.approx(0.9750021048517795, rel=1e-12)


# -- one expiry


def test_a_flat_smile_is_its_own_volatility_everywhere() -> None:
    (expiry,) = seen(smile(20)).expiries
    assert (or_none(expiry.atm), or_none(expiry.put25), or_none(expiry.call25)) == (pytest.approx(60.0),) * 3
    assert or_none(expiry.forward) == FORWARD
    assert expiry.years == pytest.approx(20 / 365)


def test_at_the_money_is_read_at_the_forward_between_strikes() -> None:
    forward = 101_000.0
    rows = [quote(20, 100_000.0, call=False, iv=50.0), quote(20, 102_000.0, call=True, iv=70.0)]
    (expiry,) = seen([replace(row, underlying=forward) for row in rows]).expiries
    weight = math.log(1.01) / math.log(1.02)
    assert or_none(expiry.atm) == pytest.approx(math.sqrt(2500 * (1 - weight) + 4900 * weight))


def test_a_strike_at_the_forward_speaks_for_itself() -> None:
    rows = [quote(20, 100_000.0, call=call, iv=iv) for call, iv in ((True, 58.0), (False, 62.0))]
    (expiry,) = seen(rows).expiries
    assert or_none(expiry.atm) == pytest.approx(60.0)


def test_of_a_strikes_put_and_call_the_one_out_of_the_money_speaks() -> None:
    rows = [
        quote(20, strike, call=call, iv=60.0 if call == (strike > FORWARD) else 90.0)
        for strike in (99_000.0, 101_000.0)
        for call in (True, False)
    ]
    assert or_none(seen(rows).expiries[0].atm) == pytest.approx(60.0)


@pytest.mark.parametrize(("above", "side"), [(True, "below"), (False, "above")])
def test_at_the_money_needs_strikes_on_both_sides(above: bool, side: str) -> None:
    rows = [one for one in smile(20) if (one.strike > FORWARD) == above and one.strike != FORWARD]
    assert side in why(seen(rows).expiries[0].atm)


def test_a_wing_needs_strikes_on_both_sides_of_a_quarter() -> None:
    near = [one for one in smile(20) if 97_500 <= one.strike <= 102_500]
    (expiry,) = seen(near).expiries
    assert or_none(expiry.atm) == pytest.approx(60.0)
    assert "3 puts" in why(expiry.put25)
    assert "call" in why(expiry.call25)


@settings(max_examples=examples(30), deadline=None)
@given(st.floats(-40, 40), st.floats(3, 60), st.floats(40, 100))
def test_the_wings_lie_where_delta_is_a_quarter(slope: float, days: float, level: float) -> None:
    """Against the strike found by bisection on the true smile: strikes are dense enough for a third of a point."""
    years = days / 365

    def true_iv(call: bool) -> float:
        low, high = math.log(0.3), math.log(3.0)
        for _ in range(80):
            middle = (low + high) / 2
            sigma = (level + slope * middle) / 100
            size = abs(delta(1.0, math.exp(middle), sigma, years, call=call))
            if (size > 0.25) == call:
                low = middle
            else:
                high = middle
        return level + slope * low

    (expiry,) = seen(smile(days, level, slope)).expiries
    put, call = or_none(expiry.put25), or_none(expiry.call25)
    if put is not None and call is not None:
        assert put == pytest.approx(true_iv(False), abs=0.35)
        assert call == pytest.approx(true_iv(True), abs=0.35)


def test_the_forward_is_the_median_of_what_the_quotes_name() -> None:
    rows = smile(20)
    rows[0] = replace(rows[0], underlying=1.0)
    rows[1] = replace(rows[1], underlying=math.nan)
    rows[2] = replace(rows[2], underlying=None)
    assert or_none(seen(rows).expiries[0].forward) == FORWARD


@pytest.mark.parametrize("forward", [None, 0.0, -1.0, math.nan, math.inf])
def test_an_expiry_without_a_forward_has_no_smile(forward: float | None) -> None:
    (expiry,) = seen([replace(one, underlying=forward) for one in smile(20)]).expiries
    for figure in (expiry.forward, expiry.atm, expiry.put25, expiry.call25):
        assert "forward" in why(figure)


@pytest.mark.parametrize("iv", [None, math.nan, math.inf, 0.0, -60.0, 0.6, 4_000.0])
def test_a_volatility_that_is_none_or_of_another_unit_is_not_read(iv: float | None) -> None:
    assert "volatility" in why(seen([replace(one, mark_iv=iv) for one in smile(20)]).expiries[0].atm)


@pytest.mark.parametrize(("iv", "read"), [(5.0, True), (4.999, False), (1_000.0, True), (1_000.1, False)])
def test_volatilities_from_five_points_to_a_thousand_are_read(iv: float, read: bool) -> None:
    atm = seen([replace(one, mark_iv=iv) for one in smile(20)]).expiries[0].atm
    assert (or_none(atm) is not None) is read


# -- the term structure


def test_tenors_are_read_by_total_variance() -> None:
    found = seen(smile(5, 80.0), smile(10, 70.0), smile(40, 50.0))
    week = math.sqrt((80**2 * 5 * 0.6 + 70**2 * 10 * 0.4) / 7)
    month = math.sqrt((70**2 * 10 * (1 / 3) + 50**2 * 40 * (2 / 3)) / 30)
    assert or_none(found.week.atm) == pytest.approx(week, rel=1e-9)
    assert or_none(found.month.atm) == pytest.approx(month, rel=1e-9)
    assert or_none(found.term) == pytest.approx(week - month, rel=1e-9)


def test_a_term_structure_that_rises_is_not_inverted() -> None:
    assert (or_none(seen(smile(5, 50.0), smile(10, 52.0), smile(40, 60.0)).term) or 1.0) < 0


def test_an_expiry_on_the_day_speaks_alone() -> None:
    found = seen(smile(7, 61.0), smile(30, 55.0))
    assert (or_none(found.week.atm), or_none(found.month.atm)) == (pytest.approx(61.0), pytest.approx(55.0))


def test_skew_is_the_put_less_the_call_and_positive_when_puts_are_dear() -> None:
    found = seen(smile(5, slope=-30.0), smile(10, slope=-30.0), smile(40, slope=-30.0))
    for tenor in (found.week, found.month):
        skew = or_none(tenor.skew25)
        assert skew is not None
        assert skew > 1
    flat, turned = seen(smile(7), smile(30)), seen(smile(7, slope=30.0), smile(30, slope=30.0))
    assert or_none(flat.week.skew25) == pytest.approx(0.0, abs=1e-9)
    assert (or_none(turned.week.skew25) or 0.0) < -1


def test_expiries_of_less_than_two_days_take_no_part() -> None:
    inside = seen(smile(47.99 / 24, 300.0), smile(10, 60.0), smile(40, 60.0))
    assert "before 7 days" in why(inside.week.atm)
    assert or_none(inside.month.atm) == pytest.approx(60.0)
    assert len(inside.expiries) == 3
    at_two_days = seen(smile(2, 300.0), smile(10, 60.0), smile(40, 60.0))
    assert (or_none(at_two_days.week.atm) or 0.0) > 100


def test_nothing_is_extrapolated() -> None:
    found = seen(smile(8), smile(29))
    assert "before 7 days" in why(found.week.atm)
    assert "after 30 days" in why(found.month.atm)
    assert "7 days" in why(found.term)
    assert "7 days" in why(found.term)
    assert "30 days" in why(seen(smile(5), smile(29)).term)


def test_an_expiry_whose_figure_is_missing_is_stepped_over_and_named_where_it_was_needed() -> None:
    one_sided = [one for one in smile(7) if one.strike > FORWARD]
    bridged = seen(smile(5, 60.0), one_sided, smile(10, 60.0), smile(40, 60.0))
    assert or_none(bridged.week.atm) == pytest.approx(60.0)
    assert "below" in why(seen(one_sided, smile(10), smile(40)).week.atm)


def test_only_the_side_that_is_needed_is_blamed() -> None:
    far = [one for one in smile(60) if one.strike > FORWARD]
    assert "listed" in why(seen(smile(10), smile(40), far).week.atm)
    near = [one for one in smile(3) if one.strike > FORWARD]
    assert "listed" in why(seen(near, smile(5), smile(20)).month.atm)


def test_behaviour_12_a_missing_option_expiry_is_missing_not_not_inverted() -> None:
    nameless = seen(smile(None))
    for figure in (nameless.term, nameless.week.atm, nameless.month.atm, nameless.week.skew25):
        assert re.match(r"missing: .*\bexpiry\b", why(figure))
    assert nameless.unplaced == len(STRIKES) * 2
    assert nameless.expiries == ()
    # Part of a chain is missing the same way: what is left is not taken for the whole.
    for left in ([smile(None), smile(30)], [smile(7), smile(None)]):
        assert re.match(r"missing: .*\bexpiry\b", why(seen(*left).term))


def test_an_empty_chain_says_so() -> None:
    found = seen()
    assert "empty" in why(found.term)
    assert "interest" in why(found.put_call_open_interest)


def test_expired_options_are_not_counted() -> None:
    found = seen(smile(-1), smile(0))
    assert "expiry" in why(found.term)
    assert "volume" in why(found.put_call_volume)


# -- puts against calls


def test_puts_against_calls_by_interest_and_by_volume() -> None:
    def row(call: bool, interest: float, volume: float) -> OptionQuote:
        return replace(quote(20, 100_000.0, call=call), open_interest=interest, volume=volume)

    found = seen([row(True, 200.0, 10.0), row(True, 50.0, 0.0), row(False, 100.0, 25.0)])
    assert (or_none(found.put_call_open_interest), or_none(found.put_call_volume)) == (0.4, 2.5)


def test_options_without_an_expiry_still_count_as_puts_and_calls() -> None:
    assert or_none(seen(smile(None)).put_call_open_interest) == 1.0


@pytest.mark.parametrize("field", ["open_interest", "volume", "strike"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_quotes_that_cannot_be_are_dropped_and_counted(field: str, value: float) -> None:
    bad = [replace(quote(20, 100_000.0, call=True), **{field: value})]  # type: ignore[arg-type]
    found = seen(bad, smile(20))
    assert found.dropped == 1
    assert found.expiries == seen(smile(20)).expiries
    assert or_none(found.put_call_open_interest) == 1.0


def test_a_strike_of_zero_is_none_and_a_small_one_is_one() -> None:
    zero, small = (replace(quote(20, 1.0, call=True), strike=strike) for strike in (0.0, 0.5))
    assert (seen([zero]).dropped, seen([small]).dropped) == (1, 0)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.builds(
            OptionQuote,
            st.just("any"),
            st.none() | st.integers(NOW - DAY_MS, NOW + 60 * DAY_MS).map(Millis),
            st.floats(allow_nan=True),
            st.booleans(),
            st.none() | st.floats(allow_nan=True),
            st.floats(-1, 1e9) | st.just(math.nan),
            st.floats(-1, 1e9) | st.just(math.inf),
            st.none() | st.floats(allow_nan=True),
        ),
        max_size=12,
    )
)
def test_no_chain_crashes_it_and_no_figure_is_not_a_number(quotes: list[OptionQuote]) -> None:
    found = measure_surface(OptionChain(Millis(NOW), tuple(quotes)))
    figures = [found.put_call_open_interest, found.put_call_volume, found.term]
    figures += [figure for tenor in (found.week, found.month) for figure in (tenor.atm, tenor.skew25)]
    figures += [figure for one in found.expiries for figure in (one.forward, one.atm, one.put25, one.call25)]
    assert all(isinstance(figure, Missing) or math.isfinite(figure) for figure in figures)


def test_golden_surface() -> None:
    """Frozen: a chain with skew and three expiries."""
    found = seen(smile(3, 66.0, -20.0), smile(12, 62.0, -18.0), smile(40, 58.0, -15.0))
    values = [found.week.atm, found.week.skew25, found.month.atm, found.month.skew25, found.term]
    assert [round(or_none(value) or 0.0, 6) for value in values] == GOLDEN


GOLDEN = [62.97543, 2.457444, 58.588151, 3.671171, 4.387279]
