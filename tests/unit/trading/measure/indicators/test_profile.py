"""Volume by price: a profile made by hand, another implementation, and markets without height or volume."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wire.markets import MIDNIGHT, flat, small_markets, walk
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, bars
from zuno.trading.measure.indicators import BINS, volume_profile
from zuno.trading.model.market import Candle, Timeframe


def market(*rows: tuple[float, float, float]) -> Bars:
    """Low, high and volume of each bar."""
    return bars(
        Timeframe.H1,
        [
            Candle(Millis(MIDNIGHT + i * Timeframe.H1.millis), low, high, low, high, volume, None)
            for i, (low, high, volume) in enumerate(rows)
        ],
    )


def test_a_bars_volume_lies_evenly_between_its_low_and_its_high() -> None:
    found = volume_profile(market((100, 124, 24), (110, 112, 10), (111.5, 111.5, 4)))
    assert found is not None
    expected = [1.0] * 24
    expected[10] += 5
    expected[11] += 5 + 4
    assert found.volumes == pytest.approx(expected)
    assert found.poc == pytest.approx(111.5)


def test_the_value_area_grows_by_the_busier_neighbour_to_seventy_percent() -> None:
    rows = [(100.0 + i, 101.0 + i, float(volume)) for i, volume in enumerate([1] * 10 + [8, 20, 30, 10, 6] + [1] * 9)]
    found = volume_profile(market(*rows))
    assert found is not None
    # 93 in all, 65.1 wanted: 30, then 20 below, 10 above, 8 below.
    assert (found.value_low, found.value_high) == pytest.approx((110, 114))
    assert found.poc == pytest.approx(112.5)


def test_of_equal_neighbours_the_upper_is_taken_and_of_equal_bins_the_lowest_is_busiest() -> None:
    even = volume_profile(market((100, 124, 24)))
    assert even is not None
    assert (even.poc, even.value_low, even.value_high) == pytest.approx((100.5, 100, 117))
    peak = volume_profile(market((100, 124, 24), (111, 112, 30)))
    assert peak is not None
    # 54 in all, 37.8 wanted: 31, then seven of one each from above.
    assert (peak.value_low, peak.value_high) == pytest.approx((111, 119))


def test_a_price_on_an_edge_belongs_to_the_bin_above() -> None:
    found = volume_profile(market((100, 124, 24), (110, 110, 50)))
    assert found is not None
    assert (found.volumes[9], found.volumes[10]) == pytest.approx((1, 51))


def test_the_highest_price_belongs_to_the_last_bin() -> None:
    found = volume_profile(market((100, 124, 24), (124, 124, 50)))
    assert found is not None
    assert found.volumes[-1] == pytest.approx(51)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(small_markets(), st.sampled_from((1.0, 2.0**40, 2.0**-40)))
def test_nothing_is_lost_and_everything_is_inside(rows: Bars, scale: float) -> None:
    prices = [each * scale for each in (rows.open, rows.high, rows.low, rows.close)]
    found = volume_profile(
        Bars(rows.timeframe, rows.at, prices[0], prices[1], prices[2], prices[3], rows.volume, rows.taker_buy)
    )
    if not rows.volume.sum():
        assert found is None
        return
    assert found is not None
    assert len(found.volumes) == BINS
    assert sum(found.volumes) == pytest.approx(rows.volume.sum())
    assert found.low <= found.value_low <= found.poc <= found.value_high <= found.high
    assert (found.low, found.high) == (rows.low.min() * scale, rows.high.max() * scale)
    width = (found.high - found.low) / BINS
    held = sum(
        volume
        for place, volume in enumerate(found.volumes)
        if not width or found.value_low - width / 2 < found.low + width * place < found.value_high - width / 2
    )
    assert held >= 0.7 * sum(found.volumes) - 1e-6
    assert max(found.volumes) <= held + 1e-9


def test_it_agrees_with_counting_bar_by_bar() -> None:
    rows = walk(300, seed=3)
    found = volume_profile(rows)
    assert found is not None
    step = (found.high - found.low) / BINS
    counted = [0.0] * BINS
    for low, high, volume in zip(rows.low.tolist(), rows.high.tolist(), rows.volume.tolist(), strict=True):
        for place in range(BINS):
            bottom = found.low + place * step
            counted[place] += volume * max(0.0, min(high, bottom + step) - max(low, bottom)) / (high - low)
    assert found.volumes == pytest.approx(counted, rel=1e-6)
    assert found.poc == pytest.approx(found.low + (counted.index(max(counted)) + 0.5) * step)


def test_a_market_at_one_price_has_one_level() -> None:
    found = volume_profile(flat(10, 50.0, 2.0))
    assert found is not None
    assert (found.poc, found.value_low, found.value_high, found.volumes[0]) == (50, 50, 50, 20)


def test_without_volume_there_is_none() -> None:
    assert volume_profile(flat(10, volume=0.0)) is None
    assert volume_profile(bars(Timeframe.H1, [])) is None
