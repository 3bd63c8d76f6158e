"""When fees are worth putting back: the closed form against counting it out."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.lp.rules.fee_yield import weigh_compounding
from zuno.lp.rules.stress import HORIZON_HOURS

money = st.integers(1, 10**6).map(Fraction)


def hourly_cost(interval: float, gas: float, worth: float, rate: float, net: float) -> float:
    """Gas and what waiting fees do not earn after LVR, for an hour, at this interval."""
    return gas / interval + rate * worth * net * interval / 2


@pytest.mark.slow
@given(st.integers(1, 10**4).map(Fraction), money, st.integers(1, 1_000), st.fractions(0, Fraction(99, 100)))
def test_no_other_interval_costs_less(gas: Fraction, worth: Fraction, pips: int, lost: Fraction) -> None:
    rate = Fraction(pips, 10**6)
    best = weigh_compounding(Fraction(0), Fraction(0), gas, worth, rate, rate * lost).best_in_hours
    assert best is not None
    figures = (float(gas), float(worth), float(rate), float(rate * (1 - lost)))
    least = hourly_cost(best, *figures)
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
        assert hourly_cost(best * factor, *figures) >= least * (1 - 1e-9)


@given(money, money, st.integers(1, 10**4).map(Fraction), money, st.integers(1, 1_000), st.integers(0, 1_000))
def test_it_pays_where_what_goes_in_earns_its_gas_within_the_horizon(
    goes_in: Fraction, owed: Fraction, gas: Fraction, worth: Fraction, pips: int, lost: int
) -> None:
    rate, net = Fraction(pips, 10**6), Fraction(pips - lost, 10**6)
    weighed = weigh_compounding(goes_in, owed, gas, worth, rate, rate - net)
    assert weighed.pays == (goes_in * net * HORIZON_HOURS >= gas)
    if weighed.break_even_hours is None:
        assert net <= 0
    else:
        assert weighed.break_even_hours * goes_in * net == gas
    assert weighed.net_per_hour == worth * net
    assert weighed.fees_per_hour == worth * rate


def test_what_earns_nothing_never_pays() -> None:
    idle = weigh_compounding(Fraction(5), Fraction(9), Fraction(1), Fraction(1000), Fraction(0), Fraction(0))
    assert (idle.pays, idle.break_even_hours, idle.best_in_hours) == (False, None, None)
    nothing = weigh_compounding(Fraction(0), Fraction(9), Fraction(1), Fraction(1000), Fraction(1, 10**4), Fraction(0))
    assert (nothing.pays, nothing.break_even_hours) == (False, None)


def test_what_has_waited_long_enough_is_best_now() -> None:
    rate = Fraction(1, 10**4)
    fresh, ripe = (
        weigh_compounding(owed, owed, Fraction(1), Fraction(10_000), rate, Fraction(0))
        for owed in map(Fraction, (1, 500))
    )
    assert fresh.best_in_hours == pytest.approx(141.42 - 1, abs=0.01)
    assert ripe.best_in_hours == 0
