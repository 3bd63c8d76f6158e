"""The drawdown scaler, the order in which a weight becomes a target, and what no order can trade."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.trading.strategies.test_trend import draw_closes, make_history, view_of, weigh
from zuno.trading.strategies.catalogue import STRATEGIES
from zuno.trading.strategies.scaler import adjust_weight, explain_least_trade, scale_by_drawdown, size_targets
from zuno.trading.strategies.trend import TREND


def test_golden_path() -> None:
    """Full until 15 %, nothing at 30 %, in steps of more than 0.10 between."""
    equity = [1.0, 0.86, 0.85, 0.84, 0.83, 0.80, 0.79, 0.70, 0.71, 0.72, 0.75, 0.86]
    assert scale_by_drawdown(equity) == pytest.approx(
        [1, 1, 1, 1, 1 - 2 / 15, 1 - 5 / 15, 1 - 5 / 15, 0, 0, 2 / 15, 5 / 15, 1]
    )


def test_the_high_is_of_a_year() -> None:
    assert scale_by_drawdown([1.0, *[0.6] * 364])[-1] == 0.0
    assert scale_by_drawdown([1.0, *[0.6] * 365])[-1] == 1.0


def test_a_sleeve_that_lost_everything_holds_nothing() -> None:
    assert scale_by_drawdown([1.0, 0.0, *[0.0] * 400])[-1] == 0.0


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=60))
def test_steps_are_large_or_end_at_a_bound(equity: list[float]) -> None:
    scales = scale_by_drawdown(equity)
    assert all(0 <= scale <= 1 for scale in scales)
    assert all(after in (before, 0.0, 1.0) or abs(after - before) > 0.10 for before, after in pairwise([1.0, *scales]))
    assert scales[: len(equity) // 2] == scale_by_drawdown(equity[: len(equity) // 2])


def test_the_tilt_acts_behind_the_scaler_and_the_cap_last() -> None:
    assert adjust_weight(0.4, 0.5, 1.5) == 0.3
    assert adjust_weight(0.4, 1.0, 1.5, cap=0.5) == 0.5
    assert adjust_weight(0.4, 1.0, 1.5) == pytest.approx(0.6)


def test_targets_are_sized_in_order() -> None:
    view = view_of(*(make_history(f"C{seed}", draw_closes(seed)) for seed in (1, 2)))
    wished = weigh(*view.markets.values())
    sized = size_targets(TREND, view, {"C1": 1.5, "C2": 0.5})
    for name, tilt in (("C1", 1.5), ("C2", 0.5)):
        target = sized[name]
        assert target.why == wished[name].why
        assert target.weight == pytest.approx(min(0.5, wished[name].weight * target.scale * tilt))


def test_the_tilt_leaves_carry_alone() -> None:
    funding = {day * 86_400_000: 0.0003 for day in range(400)}
    history = make_history("A", draw_closes(1))
    view = view_of(type(history)(history.name, history.days, history.closes, funding))
    sized = size_targets(STRATEGIES["cash-carry"], view, {"A": 1.5})
    assert sized["A"].weight == 0.75


@pytest.mark.parametrize(
    ("difference", "prevented"), [(0.0, False), (-99.0, True), (4.0, True), (100.0, False), (-250.0, False)]
)
def test_what_a_minimum_order_prevents(difference: float, prevented: bool) -> None:
    assert (explain_least_trade(difference, least=100.0, lot=5.0) is not None) is prevented
