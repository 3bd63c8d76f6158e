"""The liquidation heat map: pools that stand, what was observed to be forced out, and never one for the other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, bars
from zuno.trading.measure.heat import MAINTENANCE, ROWS, TIERS, VOLUME_SHARE, HeatMap, HeatOrigin, build_heat_map
from zuno.trading.measure.tape import Stream
from zuno.trading.model.known import Missing
from zuno.trading.model.market import DAY_MS, MINUTE_MS, Candle, Heartbeat, Level, Side, TapeEvent, Timeframe

KEPT_A_DAY = 0.5 ** (1 / 3)
START = 1_767_225_600_000 // DAY_MS * DAY_MS


def days(*bounds: tuple[float, float], volume: float = 1_000.0) -> Bars:
    """Days by their low and high, closing in the middle."""
    rows = [
        Candle(Millis(START + n * DAY_MS), low, high, low, (low + high) / 2, volume, None)
        for n, (low, high) in enumerate(bounds)
    ]
    return bars(Timeframe.D1, rows)


def heard(*days_heard: int) -> list[Heartbeat]:
    return [Heartbeat(Millis(START + day * DAY_MS + n * MINUTE_MS)) for day in days_heard for n in range(1440)]


def strike(day: float, price: float, usd: float) -> TapeEvent:
    return TapeEvent(Millis(int(START + day * DAY_MS)), Side.LONG, price, usd / price, usd, f"{day}-{price}-{usd}")


def drawn(found: object) -> HeatMap:
    assert isinstance(found, HeatMap)
    return found


def test_observed_dollars_lie_where_and_when_they_were_forced_out() -> None:
    rows = [strike(0.2, 101.0, 50.0), strike(0.9, 101.5, 25.0), strike(1.0, 119.0, 10.0), strike(2.5, 101.0, 99.0)]
    stream = Stream("binance", rows, heard(0, 1))
    found = drawn(build_heat_map(days((100, 110), (100, 120)), [stream], edges=np.array([100.0, 102.0, 118.0, 120.0])))
    assert found.origin is HeatOrigin.BOTH
    assert found.forced.tolist() == [[75.0, pytest.approx(75 * KEPT_A_DAY, abs=0.01)], [0.0, 0.0], [0.0, 10.0]]
    assert found.heard.tolist() == found.observed.tolist() == [True, True]


def test_what_happened_outside_of_the_map_is_not_moved_into_it() -> None:
    outside = [(-0.5, 101.0), (2.0, 101.0), (0.5, 99.9), (0.5, 120.0), (1.5, 500.0)]
    stream = Stream("binance", [strike(day, price, 7.0) for day, price in outside], heard(0, 1))
    found = drawn(build_heat_map(days((100, 110), (100, 120)), [stream], edges=np.array([100.0, 110.0, 120.0])))
    assert found.forced.sum() == 0
    edges = Stream("binance", [strike(0.0, 100.0, 1.0), strike(1.999999, 119.999, 2.0)], heard(0, 1))
    kept = drawn(build_heat_map(days((100, 110), (100, 120)), [edges], edges=np.array([100.0, 110.0, 120.0])))
    assert kept.forced.tolist() == [[1.0, pytest.approx(KEPT_A_DAY, abs=0.01)], [0.0, 2.0]]


def test_the_model_assumes_what_it_says() -> None:
    assert TIERS == ((5.0, 0.30), (10.0, 0.30), (25.0, 0.20), (50.0, 0.15), (100.0, 0.05))
    assert (MAINTENANCE, VOLUME_SHARE, ROWS) == (0.005, 0.10, 48)
    assert drawn(build_heat_map(days((99, 101)))).source == "volume"


def test_pools_are_the_same_whoever_listened() -> None:
    market = days(*[(100, 110)] * 4)
    forced = [strike(0.5, 105.0, 3.0), strike(1.5, 101.0, 5.0), strike(3.5, 109.0, 7.0)]
    found = drawn(build_heat_map(market, [Stream("binance", forced, heard(1, 3))]))
    model = drawn(build_heat_map(market))
    assert found.observed.tolist() == [False, True, False, True]
    assert found.heard.all()
    assert (found.origin, model.origin) == (HeatOrigin.BOTH, HeatOrigin.MODELLED)
    assert np.array_equal(found.usd, model.usd)
    assert model.forced.sum() == 0


def test_what_was_forced_out_fades_as_pools_do() -> None:
    flat = [Candle(Millis(START), 99.99, 100.01, 99.99, 100.0, 1_000.0, None)]
    flat += [Candle(Millis(START + n * DAY_MS), 100.0, 100.0, 100.0, 100.0, 0.0, None) for n in range(1, 7)]
    market, edges = bars(Timeframe.D1, flat), np.array([80.0, 81.0])
    found = drawn(build_heat_map(market, [Stream("binance", [strike(0.5, 80.5, 1e6)], heard(0))], edges=edges))
    assert (found.forced[0] / 1e6).tolist() == pytest.approx((found.usd[0] / found.usd[0, 0]).tolist(), abs=1e-5)
    assert found.forced[0, 3] == pytest.approx(5e5)
    assert found.observed.tolist() == [True] + [False] * 6


def test_a_few_days_heard_at_the_end_of_half_a_year_are_shown() -> None:
    found = drawn(build_heat_map(days(*[(100, 110)] * 180), [Stream("binance", [], heard(*range(166, 180)))]))
    assert found.observed.tolist() == [False] * 166 + [True] * 14


@pytest.mark.parametrize(("minutes", "observed", "whole"), [(719, False, True), (720, True, False), (1440, True, True)])
def test_half_of_a_bar_must_have_been_heard_and_what_is_not_whole_says_so(
    minutes: int, observed: bool, whole: bool
) -> None:
    found = drawn(build_heat_map(days((100, 110)), [Stream("binance", [strike(0.1, 105.0, 5.0)], heard(0)[:minutes])]))
    assert (bool(found.observed[0]), bool(found.heard[0])) == (observed, whole)
    assert (float(found.forced.sum()) == 5.0) is observed


def test_a_bar_is_heard_only_where_every_venue_was() -> None:
    streams = [Stream("binance", [], heard(0, 1)), Stream("bybit", [], heard(1))]
    assert drawn(build_heat_map(days((100, 110), (100, 110)), streams)).observed.tolist() == [False, True]


def test_observed_events_that_cannot_be_or_were_told_twice_do_not_count_twice() -> None:
    row = strike(0.5, 105.0, 5.0)
    stream = Stream("binance", [row, row, row._replace(usd=math.nan, id="x")], heard(0))
    assert drawn(build_heat_map(days((100, 110)), [stream])).forced.sum() == 5.0


def test_modelled_positions_stand_where_their_leverage_would_end_them() -> None:
    found = drawn(build_heat_map(days((99.99, 100.01)), edges=np.linspace(70, 130, 6001)))
    total = 1_000 * VOLUME_SHARE * 100
    assert found.usd.sum() == pytest.approx(2 * total, rel=1e-6)
    for leverage, weight in TIERS:
        for sign in (-1, 1):
            price = 100 * (1 + sign * (1 / leverage - MAINTENANCE))
            place = np.abs(found.edges[:-1] + 0.005 - price) < 0.02
            assert found.usd[place, 0].sum() == pytest.approx(total * weight, rel=1e-6)
    assert math.fsum(weight for _, weight in TIERS) == pytest.approx(1.0)


def test_a_price_that_touches_a_level_clears_it_and_one_that_does_not_leaves_it() -> None:
    # Opened at 100: ten-fold longs end at 90.5, five-fold ones at 80.5, shorts at 109.5 and 119.5.
    edges = np.array([80.0, 81.0, 90.0, 91.0, 109.0, 110.0, 119.0, 120.0])
    stays, falls, rises = (
        drawn(build_heat_map(days((99.99, 100.01), second), edges=edges)).usd[:, 1]
        for second in ((90.6, 109.4), (90.5, 100.0), (100.0, 109.5))
    )
    longs5, longs10, shorts10, shorts5 = 0, 2, 4, 6
    assert all(stays[row] > 0 for row in (longs5, longs10, shorts10, shorts5))
    assert falls[longs10] == 0
    assert falls[longs5] > 0
    assert rises[shorts10] == 0
    assert rises[shorts5] > 0


def test_what_stands_fades_by_half_in_three_days_where_only_volume_is_known() -> None:
    edges = np.array([80.0, 81.0])
    flat = [Candle(Millis(START), 99.99, 100.01, 99.99, 100.0, 1_000.0, None)]
    flat += [Candle(Millis(START + n * DAY_MS), 100.0, 100.0, 100.0, 100.0, 0.0, None) for n in range(1, 4)]
    usd = drawn(build_heat_map(bars(Timeframe.D1, flat), edges=edges)).usd[0]
    assert usd[3] == pytest.approx(usd[0] / 2)


def test_open_interest_is_used_where_every_bar_has_it() -> None:
    market = days(*[(99.99, 100.01)] * 3)
    levels = [Level(Millis(START + n * DAY_MS + DAY_MS // 2), value) for n, value in enumerate([100.0, 150.0, 75.0])]
    edges = np.array([80.0, 81.0])
    found = drawn(build_heat_map(market, open_interest=levels, edges=edges))
    assert found.source == "open interest"
    share = TIERS[0][1] * 100
    # Part of what is open is closed and opened anew each day; then half of all there is is closed, and nothing opened.
    first, second = 100 * (1 - KEPT_A_DAY), 150 - 100 * KEPT_A_DAY
    total = [first, first * KEPT_A_DAY + second, (first * KEPT_A_DAY + second) / 2]
    assert found.usd[0].tolist() == pytest.approx([dollars * share for dollars in total], abs=0.01)
    cannot_be = [[*levels[:2], levels[2]._replace(value=value)] for value in (math.nan, math.inf, 0.0, -1.0)]
    for worse in (levels[:2], levels[1:], [levels[0], levels[2]], [], *cannot_be):
        assert drawn(build_heat_map(market, open_interest=worse, edges=edges)).source == "volume"
    assert drawn(build_heat_map(days((99, 101)), open_interest=levels[:1])).source == "volume", "one bar has no change"


def test_no_bars_and_bars_that_cannot_be_have_no_map() -> None:
    assert build_heat_map(days()) == Missing("no bar is known to draw a map over")
    for column, bad in (("high", math.nan), ("low", -1.0), ("close", math.inf), ("volume", -1.0), ("volume", math.nan)):
        market = days((100, 110), (100, 110))
        getattr(market, column)[1] = bad
        assert build_heat_map(market) == Missing("a bar has a price or a volume that is none")


def test_rows_reach_beyond_the_market_and_a_flat_one_has_rows_too() -> None:
    found, flat = drawn(build_heat_map(days((100, 110)))), drawn(build_heat_map(days((100, 100))))
    assert found.usd.shape == (ROWS, 1)
    assert (found.edges[0], found.edges[-1]) == (pytest.approx(99.0), pytest.approx(111.0))
    assert (flat.edges[0], flat.edges[-1]) == (pytest.approx(99.0), pytest.approx(101.0))


bounds = st.lists(st.tuples(st.floats(80, 100), st.floats(100, 120)), min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(bounds, st.integers(1, 12), st.sets(st.integers(0, 11), max_size=3), st.booleans())
def test_dropping_the_future_changes_no_column(
    market: list[tuple[float, float]], count: int, listened: set[int], opened: bool
) -> None:
    edges = np.linspace(60, 140, 41)
    streams = [Stream("binance", [strike(day + 0.5, 100.0, 5.0) for day in listened], heard(*listened))]
    levels = [Level(Millis(START + (n + 1) * DAY_MS), 100.0 + n % 3) for n in range(12 if opened else 0)]
    count = max(2, count)  # of one bar alone, open interest says nothing
    whole, part = (drawn(build_heat_map(days(*rows), streams, levels, edges)) for rows in (market, market[:count]))
    assert np.array_equal(whole.usd[:, : len(part.at)], part.usd)
    assert np.array_equal(whole.forced[:, : len(part.at)], part.forced)
    assert np.array_equal(whole.observed[: len(part.at)], part.observed)
    assert np.all(whole.usd >= 0)
    assert np.all(np.isfinite(whole.usd))
