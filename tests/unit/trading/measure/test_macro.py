"""The economy as of a moment: releases, revisions, staleness by cadence, and the slope of the curve."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.kernel.units import Millis
from zuno.trading.measure.features import last_print, slope
from zuno.trading.model.known import Missing, or_none
from zuno.trading.model.market import DAY_MS, HOUR_MS, MacroRelease

START = 1_767_225_600_000 // DAY_MS * DAY_MS


def printed(day: int, value: float, lag_hours: float = 22) -> MacroRelease:
    at = START + day * DAY_MS
    return MacroRelease(Millis(at), value, Millis(int(at + lag_hours * HOUR_MS)))


def moment(day: float) -> Millis:
    return Millis(int(START + day * DAY_MS))


def why(figure: object) -> str:
    assert isinstance(figure, Missing)
    return figure.reason


def test_the_last_print_is_the_last_that_was_released() -> None:
    rows = [printed(1, 4.1), printed(2, 4.2), printed(3, 4.3)]
    seen, to_come = (last_print("DGS10", rows, moment(day)) for day in (3 + 22 / 24, 3.5))
    assert not isinstance(seen, Missing)
    assert not isinstance(to_come, Missing)
    assert (seen.last.value, to_come.last.value) == (4.3, 4.2)


def test_a_revision_counts_from_its_own_release() -> None:
    rows = [printed(3, 4.3), printed(3, 4.4, lag_hours=100), printed(2, 9.9, lag_hours=200)]
    early, late = (last_print("DGS10", rows, moment(day)) for day in (5, 12))
    assert not isinstance(early, Missing)
    assert not isinstance(late, Missing)
    assert (early.last.value, late.last.value) == (4.3, 4.4)


def test_nothing_released_is_missing() -> None:
    assert "DGS2" in why(last_print("DGS2", [], moment(1)))
    assert "print" in why(last_print("DGS2", [printed(5, 4.0)], moment(5)))
    assert "print" in why(last_print("DGS2", [printed(1, math.nan), printed(2, math.inf)], moment(5)))


@pytest.mark.parametrize(
    ("figure", "days"),
    [("DGS2", 5), ("DXY", 5), ("CPIAUCSL", 36), ("FEDFUNDS", 36), ("DTWEXBGS", 12), ("DCOILWTICO", 12)],
)
def test_a_figure_is_stale_after_five_days_or_so_long_after_the_next_was_due(figure: str, days: int) -> None:
    row = printed(0, 4.0, lag_hours=0)
    fresh, stale = (last_print(figure, [row], Millis(row.released + days * DAY_MS + late)) for late in (0, 1))
    assert not isinstance(fresh, Missing)
    assert f"than {days}" in why(stale)


def test_an_old_slope_is_none() -> None:
    rows = [printed(day, 4.0, lag_hours=0) for day in range(7)]
    last = rows[-1].released + 5 * DAY_MS
    assert not isinstance(slope(rows, rows, Millis(last)), Missing)
    assert "than 5" in why(slope(rows, rows, Millis(last + 1)))


@pytest.mark.parametrize("old", ["DGS2", "DGS10"])
def test_neither_leg_of_a_slope_may_be_old(old: str) -> None:
    rows = [printed(day, 4.0, lag_hours=0) for day in range(7)]
    revised = [*rows[:-1], printed(6, 4.1, lag_hours=24)]  # the same day, told again
    legs = (rows, revised) if old == "DGS2" else (revised, rows)
    last = rows[-1].released + 5 * DAY_MS
    assert not isinstance(slope(*legs, Millis(last)), Missing)
    assert re.search(rf"\b{old} .*\b5 days\b", why(slope(*legs, Millis(last + 1))))


def test_the_slope_is_the_ten_less_the_two_and_its_change_is_over_five_prints() -> None:
    twos = [printed(day, 4.0) for day in range(7)]
    tens = [printed(day, 4.0 + day / 10) for day in range(7)]
    found = slope(twos, tens, moment(8))
    assert not isinstance(found, Missing)
    assert (found.at, found.value) == (START + 6 * DAY_MS, pytest.approx(0.6))
    assert or_none(found.change) == pytest.approx(0.5)


def test_six_prints_make_a_change_and_five_do_not() -> None:
    for count, known in ((6, True), (5, False)):
        rows = [printed(day, 4.0 + day) for day in range(count)]
        found = slope([printed(day, 4.0) for day in range(count)], rows, moment(9))
        assert not isinstance(found, Missing)
        assert (or_none(found.change) is not None) is known
        if not known:
            assert "5 days" in why(found.change)


def test_only_days_with_both_yields_make_a_slope() -> None:
    twos = [printed(day, 4.0) for day in (0, 1, 2, 4)]
    tens = [printed(day, 4.5 if day != 3 else 9.0) for day in (0, 1, 3)]
    found = slope(twos, tens, moment(6))
    assert not isinstance(found, Missing)
    assert (found.at, found.value) == (START + DAY_MS, 0.5)
    assert "both" in why(slope(twos, [printed(3, 4.0)], moment(8)))
    assert "both" in why(slope([], [], moment(8)))


prints = st.lists(
    st.builds(printed, st.integers(0, 12), st.floats(-1, 9) | st.just(math.nan), st.integers(0, 200)), max_size=20
)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(prints, prints, st.integers(0, 20))
def test_what_is_released_later_changes_nothing(twos: list[MacroRelease], tens: list[MacroRelease], day: int) -> None:
    now = moment(day)
    known = [[row for row in rows if row.released <= now] for rows in (twos, tens)]
    assert slope(twos, tens, now) == slope(known[0], known[1], now)
    assert last_print("DGS2", twos, now) == last_print("DGS2", known[0], now)
