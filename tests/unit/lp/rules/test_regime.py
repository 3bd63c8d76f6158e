"""Regime: one test per rule, the order of the rules, and what is said when history is missing."""

from __future__ import annotations

import math
import re
import statistics
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.amm.model import Range
from zuno.kernel.statistics import percentile
from zuno.kernel.units import Tick
from zuno.lp.model.ballot import Regime
from zuno.lp.rules.regime import classify
from zuno.lp.rules.volatility import rolling_vol_bps, variance_24h

CALM = [0.001, -0.001] * 12
ONE_WAY = [0.001] * 24
HISTORY = [float(bps) for bps in range(1, 201)]
"""Its 95th percentile is 190, its 75th 150."""
BAND = Range(Tick(0), Tick(1000))


def read(**changes: Any) -> tuple[Regime, str, tuple[str, ...]]:
    quiet: dict[str, Any] = {
        "vol_bps": 100.0,
        "vol_history_bps": HISTORY,
        "gas_price_wei": 10,
        "gas_history_wei": [9, 10, 11],
        "returns_24h": CALM,
        "tick": 500,
        "position": BAND,
    }
    reading = classify(**quiet | changes)
    return reading.regime, reading.why, reading.notes


def named(reading: tuple[Regime, str, tuple[str, ...]]) -> list[str]:
    """The figures that its reason names."""
    return re.findall(r"\{(\w+)\}", reading[1])


@pytest.mark.parametrize(
    ("changes", "regime"),
    [
        ({}, Regime.RANGING),
        ({"vol_bps": 190.0}, Regime.VOLATILE),
        ({"vol_bps": 190.1}, Regime.STRESSED),
        ({"vol_bps": 150.0}, Regime.RANGING),
        ({"vol_bps": 150.1}, Regime.VOLATILE),
        ({"gas_price_wei": 50}, Regime.RANGING),
        ({"gas_price_wei": 51}, Regime.STRESSED),
        ({"tick": 1500}, Regime.RANGING),
        ({"tick": 1501}, Regime.STRESSED),
        ({"tick": -500}, Regime.RANGING),
        ({"tick": -501}, Regime.STRESSED),
        ({"returns_24h": ONE_WAY}, Regime.TRENDING),
        ({"returns_24h": [-value for value in ONE_WAY]}, Regime.TRENDING),
        # 17 hours up and 7 down: 10/24 = 0.42; 18 and 6: 0.5.
        ({"returns_24h": [0.001] * 17 + [-0.001] * 7}, Regime.RANGING),
        ({"returns_24h": [0.001] * 18 + [-0.001] * 6}, Regime.TRENDING),
        ({"returns_24h": [0.0] * 24}, Regime.RANGING),
        ({"returns_24h": [*ONE_WAY, *CALM]}, Regime.RANGING),  # only the last day counts
    ],
)
def test_each_rule_at_its_threshold(changes: dict[str, Any], regime: Regime) -> None:
    assert read(**changes)[0] is regime


def test_the_first_rule_that_matches_wins() -> None:
    assert read(vol_bps=160.0, returns_24h=ONE_WAY)[0] is Regime.VOLATILE
    assert read(vol_bps=160.0, gas_price_wei=99)[0] is Regime.STRESSED
    assert named(read(vol_bps=195.0, gas_price_wei=99)) == ["volatility", "volatility_high"]


def test_the_reason_names_the_figure_and_the_mark() -> None:
    assert named(read(vol_bps=160.0)) == ["volatility", "volatility_raised"]
    assert "75th" in read(vol_bps=160.0)[1]
    assert named(read(gas_price_wei=60)) == ["gas_price_over_median", "gas_spike"]
    assert named(read(tick=2000)) == ["outside_by", "width_held"]
    assert named(read(returns_24h=ONE_WAY)) == ["trend", "trend_threshold"]
    assert read()[2] == ()


@pytest.mark.parametrize(
    ("vol", "regime"),
    [(500.0, Regime.RANGING), (500.1, Regime.VOLATILE), (650.0, Regime.VOLATILE), (650.1, Regime.STRESSED)],
)
def test_without_a_week_of_history_two_figures_stand_in_and_are_named(vol: float, regime: Regime) -> None:
    found, _, notes = read(vol_bps=vol, vol_history_bps=HISTORY[:167])
    assert found is regime
    assert [re.findall(r"\d+", note) for note in notes] == [["30", "650", "500"]]
    assert read(vol_bps=vol, vol_history_bps=HISTORY[:168])[2] == ()


def test_what_is_unknown_matches_nothing_and_is_said() -> None:
    found, _, notes = read(vol_bps=None, gas_price_wei=None, returns_24h=CALM[:23], tick=None, position=None)
    assert found is Regime.RANGING
    assert notes == (
        "volatility unknown",
        "no gas samples of our own to compare with",
        "23 of the last 24 hourly returns known: no trend is read",
    )
    assert read(gas_history_wei=[], gas_price_wei=10**12)[0] is Regime.RANGING


@given(st.floats(0, 2000), st.floats(0, 2000))
def test_more_volatility_is_never_a_calmer_regime(one: float, other: float) -> None:
    order = [Regime.RANGING, Regime.VOLATILE, Regime.STRESSED]
    low, high = sorted((one, other))
    assert order.index(read(vol_bps=low)[0]) <= order.index(read(vol_bps=high)[0])


@settings(max_examples=examples(20))
@given(st.lists(st.floats(-0.1, 0.1), min_size=24, max_size=30))
def test_rolling_volatility_is_the_deviation_of_every_day(returns: list[float]) -> None:
    vols = rolling_vol_bps(returns)
    assert len(vols) == len(returns) - 23
    for start, vol in enumerate(vols):
        expected = 1e4 * statistics.stdev(returns[start : start + 24]) * math.sqrt(24)
        assert vol == pytest.approx(expected, rel=1e-5, abs=1e-3)
    assert rolling_vol_bps(returns[:23]) == ()


@settings(max_examples=examples(20))
@given(st.lists(st.floats(-0.1, 0.1), min_size=24, max_size=30))
def test_variance_uses_the_window_asked_for_or_none(returns: list[float]) -> None:
    expected = 24 * statistics.variance(returns[-24:])
    assert variance_24h(returns, 24) == pytest.approx(expected, rel=1e-5, abs=1e-12)
    assert variance_24h(returns, len(returns) + 1) is None


@pytest.mark.parametrize(
    ("count", "percent", "rank"), [(100, 95, 95), (100, 75, 75), (20, 95, 19), (21, 95, 20), (4, 75, 3), (1, 5, 1)]
)
def test_a_percentile_is_the_value_of_the_nearest_rank(count: int, percent: int, rank: int) -> None:
    assert percentile([float(value) for value in range(count, 0, -1)], percent) == rank
