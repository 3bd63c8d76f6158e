"""Funding, open interest, basis and lean: units, venues that come and go, and numbers no venue has."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.kernel.units import Millis
from zuno.trading.measure.derivatives import basis_bps, funding_figures, long_share, mean_funding, open_interest_change
from zuno.trading.model.known import Missing, or_none
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Funding, Level, MarkAndIndex

NOW = Millis(1_767_225_600_000)
AGO = Millis(NOW - HOUR_MS)


def paid(hours_ago: float, rate: float, interval: float = 8.0) -> Funding:
    return Funding(Millis(int(NOW - hours_ago * HOUR_MS)), rate, interval)


def why(figure: object) -> str:
    assert isinstance(figure, Missing)
    return figure.reason


def test_a_rate_is_stretched_to_eight_hours_with_the_venues_own_interval() -> None:
    eight, four = funding_figures(paid(0, 0.0001)), funding_figures(paid(0, 0.0001, 4.0))
    assert not isinstance(eight, Missing)
    assert not isinstance(four, Missing)
    assert (eight.per_8h, four.per_8h) == (pytest.approx(0.0001), pytest.approx(0.0002))
    assert (eight.rate, eight.interval_hours, eight.at) == (0.0001, 8.0, NOW)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_rate_at_the_bound_is_believed_and_one_beyond_is_missing(sign: int) -> None:
    assert or_none(funding_figures(paid(0, sign * 0.003))) is not None
    assert "0.003" in why(funding_figures(paid(0, sign * 0.00300001)))


def test_funding_as_a_percentage_is_missing_not_a_hundred_times_too_much() -> None:
    assert "percentage" in why(funding_figures(paid(0, 0.01)))


@pytest.mark.parametrize("rate", [math.nan, math.inf, -math.inf])
def test_a_rate_that_is_no_number_is_said(rate: float) -> None:
    assert "number" in why(funding_figures(paid(0, rate)))


@pytest.mark.parametrize("interval", [0.0, -8.0, math.nan, math.inf, 25.0])
def test_an_interval_no_venue_has_is_said(interval: float) -> None:
    assert "interval" in why(funding_figures(paid(0, 0.0001, interval)))


@pytest.mark.parametrize("interval", [0.5, 1.0, 24.0])
def test_intervals_from_minutes_to_a_day_are_believed(interval: float) -> None:
    found = funding_figures(paid(0, 0.0001, interval))
    assert not isinstance(found, Missing)
    assert found.per_8h == pytest.approx(0.0008 / interval)


def test_the_mean_of_seven_days_weighs_hours_alike_whatever_the_interval() -> None:
    # Six days of 0.01 % every 8 h, one day of 0.02 % every 4 h: (18·1 + 6·2) bps over 168 h, times 8.
    rows = [paid(24 + 8 * n, 0.0001) for n in range(18)] + [paid(4 * n, 0.0002, 4.0) for n in range(6)]
    mean = mean_funding(rows, NOW)
    assert not isinstance(mean, Missing)
    assert mean.per_8h == pytest.approx(0.0030 / 168 * 8, rel=1e-12)
    assert (mean.used, mean.dropped, mean.hours) == (24, 0, 168.0)


def test_the_mean_leaves_out_what_is_implausible_what_is_older_and_what_is_yet_to_come() -> None:
    rows = [paid(8 * n, 0.0001) for n in range(21)]
    dirty = [*rows, paid(1, 0.01), paid(2, math.nan), paid(7 * 24, 0.002), paid(-1, 0.002)]
    clean, mean = mean_funding(rows, NOW), mean_funding(dirty, NOW)
    assert not isinstance(clean, Missing)
    assert not isinstance(mean, Missing)
    assert mean.per_8h == clean.per_8h == pytest.approx(0.0001)
    assert (mean.used, mean.dropped) == (21, 2)


def test_a_rate_told_twice_was_paid_once() -> None:
    rows = [paid(8 * n, 0.0001 * (n % 3)) for n in range(21)]
    assert mean_funding([*rows[::-1], *rows[:9]], NOW) == mean_funding(rows, NOW)
    assert isinstance(mean_funding(rows[:10] * 2, NOW), Missing)


def test_a_week_on_two_clocks_has_the_hours_of_a_week() -> None:
    rows = [paid(8 * n, 0.0001 * (n % 3)) for n in range(21)]
    for shift in (1, 2, 5, 7):
        mean = mean_funding([*rows, *(paid(8 * n + shift, 0.0001 * (n % 3)) for n in range(20))], NOW)
        assert not isinstance(mean, Missing)
        assert mean.hours <= 168.0
    jitter = [row._replace(at=Millis(row.at - n % 2 * 900)) for n, row in enumerate(rows)]
    assert or_none(mean_funding(jitter, NOW)) == or_none(mean_funding(rows, NOW))


def test_a_mean_of_too_few_days_is_not_given() -> None:
    assert or_none(mean_funding([paid(8 * n, 0.0001) for n in range(15)], NOW)) is not None
    assert "112 hours" in why(mean_funding([paid(8 * n, 0.0001) for n in range(14)], NOW))
    mixed = [paid(8 * n, 0.01 if n < 10 else 0.0001) for n in range(21)]
    assert "(10 " in why(mean_funding(mixed, NOW))


def test_open_interest_changes_over_the_venues_present_at_both_ends() -> None:
    change = open_interest_change(
        {
            "binance": [Level(AGO, 100.0), Level(NOW, 103.0)],
            "okx": [Level(AGO, 50.0), Level(NOW, 48.5)],
            "bybit": [Level(AGO, 70.0)],
        },
        AGO,
        NOW,
    )
    assert not isinstance(change, Missing)
    assert (change.start, change.end, change.share) == (150.0, 151.5, pytest.approx(0.01))
    assert change.venues == ("binance", "okx")
    ((venue, reason),) = change.dropped
    assert venue == "bybit"
    assert "3600 s" in reason


def test_a_venue_that_drops_out_in_between_does_not_look_like_a_crowd_leaving() -> None:
    whole = {"a": [Level(AGO, 100.0), Level(NOW, 101.0)], "b": [Level(AGO, 900.0), Level(NOW, 900.0)]}
    without = whole | {"b": [Level(AGO, 900.0)]}
    appeared = whole | {"b": [Level(NOW, 900.0)]}
    for by_venue in (without, appeared):
        change = open_interest_change(by_venue, AGO, NOW)
        assert not isinstance(change, Missing)
        assert change.share == pytest.approx(0.01)
        assert change.venues == ("a",)


def test_a_reading_counts_for_ten_minutes_and_not_before_it_was_made() -> None:
    def changed(at: int) -> object:
        return or_none(open_interest_change({"a": [Level(AGO, 100.0), Level(Millis(at), 102.0)]}, AGO, NOW))

    assert changed(NOW - 10 * MINUTE_MS) is not None
    assert changed(NOW - 10 * MINUTE_MS - 1) is None
    assert changed(NOW + 1) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -5.0])
def test_open_interest_that_cannot_be_drops_its_venue(value: float) -> None:
    change = open_interest_change({"a": [Level(AGO, 100.0), Level(NOW, value)]}, AGO, NOW)
    assert f"{value} " in why(change)


def test_a_small_price_and_a_small_crowd_are_numbers_like_others() -> None:
    assert or_none(basis_bps(MarkAndIndex(NOW, 0.505, 0.5))) == pytest.approx(100.0)
    change = open_interest_change({"a": [Level(AGO, 0.5), Level(NOW, 0.75)]}, AGO, NOW)
    assert not isinstance(change, Missing)
    assert change.share == 0.5


def test_no_venue_at_all_is_said() -> None:
    assert "venue" in why(open_interest_change({}, AGO, NOW))


readings = st.lists(
    st.tuples(st.integers(-90, 30), st.floats(1, 1e6)).map(lambda p: Level(Millis(NOW + p[0] * MINUTE_MS), p[1])),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(st.dictionaries(st.sampled_from("abc"), readings))
def test_the_future_changes_no_change_and_order_does_not_matter(by_venue: dict[str, list[Level]]) -> None:
    found = open_interest_change(by_venue, AGO, NOW)
    known = {venue: [row for row in rows if row.at <= NOW] for venue, rows in by_venue.items()}
    assert open_interest_change(known, AGO, NOW) == found
    if isinstance(found, Missing):
        return
    last = {venue: {row.at: row.value for row in reversed(rows)} for venue, rows in known.items()}
    start, end = (
        sum(Fraction(last[venue][max(at for at in last[venue] if at <= moment)]) for venue in found.venues)
        for moment in (AGO, NOW)
    )
    assert found.share == pytest.approx(float(end / start - 1), rel=1e-9, abs=1e-12)


def test_the_basis_is_the_mark_over_its_index() -> None:
    assert or_none(basis_bps(MarkAndIndex(NOW, 101.0, 100.0))) == pytest.approx(100.0)
    assert or_none(basis_bps(MarkAndIndex(NOW, 99.5, 100.0))) == pytest.approx(-50.0)


@pytest.mark.parametrize(
    ("mark", "spot"),
    [
        (math.nan, 1.0),
        (math.inf, 1.0),
        (0.0, 1.0),
        (-1.0, 1.0),
        (1.0, math.nan),
        (1.0, math.inf),
        (1.0, 0.0),
        (1.0, -1.0),
    ],
)
def test_a_basis_of_prices_that_are_none_is_missing(mark: float, spot: float) -> None:
    assert "pair" in why(basis_bps(MarkAndIndex(NOW, mark, spot)))


def test_longs_for_each_short_become_a_share() -> None:
    assert or_none(long_share(Level(NOW, 1.5))) == pytest.approx(0.6)
    assert or_none(long_share(Level(NOW, 0.0))) == 0.0
    for value in (math.nan, math.inf, -0.1):
        assert str(value) in why(long_share(Level(NOW, value)))


def test_a_day_of_percentages_on_one_venue_leaves_six_to_speak_for_the_week() -> None:
    rows = [paid(8 * n, 0.01 if n < 3 else 0.0001) for n in range(21)]
    mean = mean_funding(rows, NOW)
    assert not isinstance(mean, Missing)
    assert (mean.per_8h, mean.dropped, mean.hours) == (pytest.approx(0.0001), 3, 144.0)
    assert mean.hours * HOUR_MS == 6 * DAY_MS
