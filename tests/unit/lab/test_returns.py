"""Sharpe, Sortino, Calmar, drawdown and deflated Sharpe: the published example, hand-made vectors, and properties."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.lab.returns import (
    compound,
    deflated_sharpe,
    estimate_trial_variance,
    expected_best_sharpe,
    measure_returns,
    probabilistic_sharpe,
    sharpe_probability,
)

RETURNS = (0.01, -0.02, 0.03, 0.0, -0.01, 0.02)
SERIES = st.lists(st.floats(-0.2, 0.2).map(lambda value: round(value, 6)), min_size=2, max_size=60)


def test_figures_of_a_short_series():
    figures = measure_returns(RETURNS, 252)
    assert figures.sharpe == 4.24264069  # 0.005 / √(0.00175 / 5) · √252
    assert figures.sortino == round(0.005 / sqrt(0.0005 / 6) * sqrt(252), 8)
    assert figures.max_drawdown == 0.02
    assert figures.calmar == 119.438347


def test_nothing_to_divide_by():
    empty, flat = measure_returns((), 252), measure_returns((0.01,) * 9, 252)
    assert (empty.sharpe, empty.sortino, empty.calmar, empty.max_drawdown) == (None, None, None, 0.0)
    assert (flat.sharpe, flat.sortino, flat.calmar) == (None, None, None)
    assert probabilistic_sharpe((0.01,) * 9) is None
    assert deflated_sharpe((0.01,), 10) is None
    assert estimate_trial_variance((1.0,), 11) == 0.1


def test_what_is_lost_whole_stays_lost():
    figures = measure_returns((0.1, -1.5, 0.5), 252)
    assert (figures.max_drawdown, figures.calmar) == (1.0, -1.0)


def test_the_published_example_of_a_deflated_sharpe():
    """Bailey and López de Prado, The Deflated Sharpe Ratio: five years of days, 2.5 a year, 100 trials."""
    best = expected_best_sharpe(100, 0.5 / 250)
    assert best == pytest.approx(0.1132, abs=5e-5)
    assert sharpe_probability(2.5 / sqrt(250), best, 1250, -3, 10) == pytest.approx(0.9004, abs=5e-5)
    fewer = expected_best_sharpe(46, 0.5 / 250)
    assert sharpe_probability(2.5 / sqrt(250), fewer, 1250, -3, 10) == pytest.approx(0.9505, abs=5e-5)


def test_arms_that_are_alike_are_deflated_all_the_same():
    returns = [0.02, -0.01, 0.015, -0.005] * 30
    alike = estimate_trial_variance([0.2, 0.2, 0.2], len(returns))
    assert alike == 1 / (len(returns) - 1)
    deflated, plain = deflated_sharpe(returns, 50, alike), probabilistic_sharpe(returns)
    assert deflated is not None
    assert plain is not None
    assert deflated < plain
    assert estimate_trial_variance([0.0, 1.0], len(returns)) == 0.5


@pytest.mark.slow
@given(SERIES, st.integers(1, 5000))
def test_more_trials_never_make_a_sharpe_more_believable(returns, trials):
    alone, among, more = (deflated_sharpe(returns, count) for count in (1, trials, 2 * trials))
    assert alone == probabilistic_sharpe(returns)
    if alone is not None and among is not None and more is not None:
        assert 0 <= more <= among <= alone <= 1


@given(SERIES)
def test_a_scaled_series_has_the_same_ratios(returns):
    figures, scaled = measure_returns(returns, 252), measure_returns([value / 4 for value in returns], 252)
    if figures.sharpe is not None:
        assert scaled.sharpe == pytest.approx(figures.sharpe, rel=1e-8)
    if figures.sortino is not None:
        assert scaled.sortino == pytest.approx(figures.sortino, rel=1e-8)


@given(SERIES)
def test_a_drawdown_is_the_worst_of_all_falls(returns):
    curve = [compound(returns[:place])[0] for place in range(len(returns) + 1)]
    worst = max((1 - late / early for place, early in enumerate(curve) for late in curve[place:]), default=0.0)
    assert compound(returns)[1] == pytest.approx(worst, abs=1e-12)
