"""Triage: each rule on both sides of its bound, what is not known, and how often it rings on a real market."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wire.real_minutes import grouped, minutes
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import LOOKBACK, Bars, bars
from zuno.trading.measure.derivatives import OpenInterestChange
from zuno.trading.measure.portable import RATIO_PLACES
from zuno.trading.measure.tape import LOWER_BOUND, SideHour
from zuno.trading.measure.triage import (
    LEAST_BARS,
    Evidence,
    Rule,
    Spike,
    Triage,
    VolatilityIndex,
    measure_dvol,
    measure_spike,
    triage,
)
from zuno.trading.model.known import Known, Missing, or_none
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Candle, Level, Side, Timeframe

NOW = 1_767_225_600_000
NUMBERS = ("open", "high", "low", "close", "volume", "taker_buy")
NOTHING = Missing("not looked at")
CALM = Evidence(
    Spike(Millis(NOW - HOUR_MS), 1.0, 1.0, NOTHING),
    (
        SideHour(Side.LONG, 0.0, LOWER_BOUND, True, 0.0, 200),
        SideHour(Side.SHORT, 0.0, LOWER_BOUND, True, 0.0, 200),
    ),
    0.0,
    VolatilityIndex(50.0, 50.0, 2.0, 400),
    -3.0,
)


def names(found: Triage) -> list[str]:
    return [one.name for one in found.anomalies]


def why(figure: object) -> str:
    assert isinstance(figure, Missing)
    return figure.reason


def hours(ranges: list[float], volumes: list[float], missing: tuple[int, ...] = ()) -> Bars:
    """Hours around 100, as wide and as busy as asked, the last of them just closed; places count from the end."""
    start = NOW - len(ranges) * HOUR_MS
    rows = [
        Candle(Millis(start + n * HOUR_MS), 100.0, 100 + wide / 2, 100 - wide / 2, 100.0, volume, None)
        for n, (wide, volume) in enumerate(zip(ranges, volumes, strict=True))
        if n - len(ranges) not in missing
    ]
    return bars(Timeframe.H1, rows)


def usual(last: float = 1.0, volume: float = 10.0, count: int = 200) -> Bars:
    """Hours of range 1 and volume 10, but for the last three's range and the last one's volume."""
    return hours([1.0] * (count - 3) + [last] * 3, [10.0] * (count - 1) + [volume])


def spike(found: Bars, open_interest: dict[str, list[Level]] | None = None, at: int = NOW) -> Spike:
    measured = measure_spike(found, open_interest or {}, Millis(at))
    assert not isinstance(measured, Missing)
    return measured


def crowd(share: float) -> dict[str, list[Level]]:
    return {"binance": [Level(Millis(NOW - HOUR_MS), 1_000_000.0), Level(Millis(NOW), 1_000_000.0 * (1 + share))]}


# -- spike


def test_a_calm_market_has_no_anomaly_and_nothing_unknown() -> None:
    assert triage(CALM) == Triage((), ())


@pytest.mark.parametrize(
    ("wide", "volume", "fires"), [(1.5, 20.0, True), (1.4999, 20.0, False), (1.5, 19.999, False), (9.0, 10.0, False)]
)
def test_a_spike_is_half_again_the_range_and_twice_the_volume(wide: float, volume: float, fires: bool) -> None:
    found = spike(usual(wide, volume))
    assert found.range_ratio == pytest.approx(wide)
    assert found.volume_ratio == pytest.approx(volume / 10)
    assert found.is_spike is fires
    assert names(triage(replace(CALM, spike=found))) == (["spike"] if fires else [])


def test_one_hour_of_two_and_a_half_times_is_enough_where_a_wilder_average_would_need_eight() -> None:
    assert spike(hours([1.0] * 199 + [2.5], [10.0] * 199 + [20.0])).is_spike
    assert not spike(hours([1.0] * 199 + [2.49], [10.0] * 199 + [20.0])).is_spike


def test_the_range_is_the_true_one_from_the_close_before() -> None:
    rows = usual(1.0, 30.0)
    rows.high[-1], rows.low[-1], rows.close[-1] = 105.5, 104.5, 105.0
    # The last hour stands 5.5 over the close before it: (1 + 1 + 5.5) / 3.
    assert spike(rows).range_ratio == pytest.approx(2.5)


def test_the_usual_is_the_mean_atr_of_the_168_hours_before_the_three() -> None:
    """Against Wilder's average written out by hand."""
    dice = np.random.default_rng(5)
    rows = hours(dice.uniform(0.5, 3.0, 300).tolist(), dice.uniform(1, 9, 300).tolist())
    wide = (rows.high - rows.low).tolist()  # closes stand still: the range is the true one
    atr = [sum(wide[1:15]) / 14]
    for one in wide[15:]:
        atr.append((atr[-1] * 13 + one) / 14)
    expected = statistics.fmean(wide[-3:]) / statistics.fmean(atr[-171:-3])
    found = spike(rows)
    assert found.range_ratio == round(expected, RATIO_PLACES)
    assert found.volume_ratio == pytest.approx(rows.volume[-1] / statistics.fmean(rows.volume[-25:-1].tolist()))


@pytest.mark.parametrize(
    ("share", "label"),
    [
        (0.0051, "true_breakout"),
        (0.005, "spike"),
        (0.0, "spike"),
        (-0.005, "spike"),
        (-0.0051, "liquidation_cascade"),
    ],
)
def test_open_interest_of_the_same_hour_says_what_a_spike_is(share: float, label: str) -> None:
    found = triage(replace(CALM, spike=spike(usual(1.5, 20.0), crowd(share))))
    assert names(found) == [label]
    assert found.anomalies[0].rule is Rule.SPIKE
    assert f"{100 * share:+.2f} % (binance)" in found.anomalies[0].said


def test_without_open_interest_a_spike_has_no_label_and_is_kept() -> None:
    found = triage(replace(CALM, spike=spike(usual(1.5, 20.0))))
    assert names(found) == ["spike"]
    assert found.anomalies[0].label is None
    assert "venue" in found.anomalies[0].said


def test_open_interest_labels_nothing_where_there_is_no_spike() -> None:
    found = spike(usual(1.0, 20.0), crowd(0.05))
    assert found.label is None
    assert triage(replace(CALM, spike=found)).anomalies == ()


def test_a_venue_that_drops_out_during_the_hour_makes_no_cascade() -> None:
    by_venue = crowd(0.0) | {"okx": [Level(Millis(NOW - HOUR_MS), 5_000_000.0)]}
    found = spike(usual(1.5, 20.0), by_venue)
    assert found.label is None
    assert isinstance(found.open_interest, OpenInterestChange)
    assert [venue for venue, _ in found.open_interest.dropped] == ["okx"]


def test_a_spike_does_not_depend_on_what_a_coin_costs() -> None:
    rows = usual(1.7, 23.0)
    small = Bars(rows.timeframe, rows.at, *(0.001 * getattr(rows, name) for name in NUMBERS))
    assert spike(small).range_ratio == pytest.approx(spike(rows).range_ratio)
    assert spike(small).volume_ratio == pytest.approx(spike(rows).volume_ratio)


def test_a_spike_needs_its_history() -> None:
    assert LEAST_BARS == 185
    assert or_none(measure_spike(usual(count=185), {}, Millis(NOW))) is not None
    assert "184 " in why(measure_spike(usual(count=184), {}, Millis(NOW)))


def test_hours_that_have_not_closed_or_ended_long_ago_are_not_the_last() -> None:
    rows = usual(1.5, 20.0)
    assert spike(rows, at=NOW - 1).at == NOW - 2 * HOUR_MS
    assert spike(rows, at=NOW + 2 * HOUR_MS).is_spike
    assert "two " in why(measure_spike(rows, {}, Millis(NOW + 2 * HOUR_MS + 1)))


@pytest.mark.parametrize(("place", "counts"), [(-LOOKBACK - 1, False), (-LOOKBACK, True)])
def test_a_spike_looks_back_a_thousand_hours_and_no_further(place: int, counts: bool) -> None:
    ranges = [1.0] * 1_200
    ranges[place] = math.nan  # an hour that cannot be, where it is looked at
    found = measure_spike(hours(ranges, [10.0] * 1_200), {}, Millis(NOW))
    assert isinstance(found, Missing) is counts


def test_a_range_over_a_gap_is_not_an_hours() -> None:
    ranges, volumes = [1.0] * 200, [10.0] * 200
    for place in (-2, -3, -4):
        assert " 4" in why(measure_spike(hours(ranges, volumes, (place,)), {}, Millis(NOW)))
    assert or_none(measure_spike(hours(ranges, volumes, (-5,)), {}, Millis(NOW))) is not None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("column", ["high", "low", "close", "volume"])
def test_hours_that_cannot_be_are_said(column: str, bad: float) -> None:
    rows = usual(1.5, 20.0)
    getattr(rows, column)[120] = bad
    assert "hour" in why(measure_spike(rows, {}, Millis(NOW)))
    assert [one.rule for one in triage(replace(CALM, spike=measure_spike(rows, {}, Millis(NOW)))).unknown] == ["spike"]


@pytest.mark.parametrize("column", ["high", "low", "close"])
def test_a_price_of_zero_is_none(column: str) -> None:
    rows = usual(1.5, 20.0)
    rows.low[120] = 0.5
    getattr(rows, column)[120] = 0.0
    assert "hour" in why(measure_spike(rows, {}, Millis(NOW)))


def test_an_hour_whose_high_is_below_its_low_is_said() -> None:
    rows = usual(1.5, 20.0)
    rows.high[120], rows.low[120] = 99.0, 101.0
    assert "volume" in why(measure_spike(rows, {}, Millis(NOW)))


def test_a_market_in_which_nothing_moves_or_trades_has_no_usual() -> None:
    still, silent = hours([0.0] * 200, [10.0] * 200), hours([1.0] * 200, [0.0] * 200)
    for rows in (still, silent):
        assert "usual" in why(measure_spike(rows, {}, Millis(NOW)))


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_dropping_the_future_changes_no_spike(seed: int, later: int) -> None:
    dice = np.random.default_rng(seed)
    rows = hours(dice.uniform(0.5, 3.0, 280).tolist(), dice.lognormal(1, 1, 280).tolist())
    at = Millis(NOW - later * HOUR_MS)
    assert measure_spike(rows, crowd(0.01), at) == measure_spike(rows.upto(at), crowd(0.01), at)


@pytest.mark.slow
def test_on_a_real_market_half_to_five_per_cent_of_the_hours_are_spikes() -> None:
    rows = grouped(minutes(), Timeframe.H1)
    market = bars(Timeframe.H1, rows)
    judged = [measure_spike(market, {}, Millis(row.at + HOUR_MS)) for row in rows]
    found = [one for one in judged if not isinstance(one, Missing)]
    assert len(found) == len(rows) - LEAST_BARS + 1
    rate = sum(one.is_spike for one in found) / len(found)
    assert 0.005 <= rate <= 0.05
    assert rate == pytest.approx(6 / 344)


# -- liquidations


def forced(usd: float, high: Known[float], complete: bool = True, side: Side = Side.LONG) -> Evidence:
    return replace(CALM, liquidations=(SideHour(side, usd, LOWER_BOUND, complete, high, 200),))


def test_a_cluster_is_more_than_a_hundred_thousand_dollars_of_one_side() -> None:
    assert names(triage(forced(100_000.01, 0.0))) == ["liquidation_cluster"]
    assert names(triage(forced(100_000.0, 0.0))) == []


def test_a_cluster_is_at_least_the_95th_percentile_of_its_own_hours() -> None:
    assert names(triage(forced(500_000.0, 500_000.0))) == ["liquidation_cluster"]
    assert names(triage(forced(499_999.0, 500_000.0))) == []


def test_without_a_past_the_plain_threshold_holds_and_is_called_uncalibrated() -> None:
    (found,) = triage(forced(100_001.0, Missing("20 hours of its own were heard, 168 are needed"))).anomalies
    assert "20 hours" in found.said
    assert "bound" in found.said
    (held,) = triage(forced(600_000.0, 500_000.0, side=Side.SHORT)).anomalies
    assert "uncalibrated" not in held.said
    assert "$600,000" in held.said
    assert "shorts" in held.said


def test_sides_are_not_added_up_and_each_may_cluster() -> None:
    each = [SideHour(side, 60_000.0, LOWER_BOUND, True, 0.0, 200) for side in Side]
    assert names(triage(replace(CALM, liquidations=each))) == []
    both = [replace(one, usd=200_000.0) for one in each]
    assert names(triage(replace(CALM, liquidations=both))) == ["liquidation_cluster"] * 2


def test_an_hour_half_heard_can_prove_a_cluster_but_never_its_absence() -> None:
    assert names(triage(forced(200_000.0, 0.0, complete=False))) == ["liquidation_cluster"]
    found = triage(forced(5_000.0, 0.0, complete=False))
    assert found.anomalies == ()
    assert [one.rule for one in found.unknown] == ["liquidation_cluster"]
    assert "heard" in found.unknown[0].reason


# -- the book


@pytest.mark.parametrize(("lean", "fires"), [(0.70, False), (0.7001, True), (-0.70, False), (-0.7001, True)])
def test_a_book_that_leans_beyond_seventy_per_cent_either_way(lean: float, fires: bool) -> None:
    assert names(triage(replace(CALM, imbalance=lean))) == (["microstructure_imbalance"] if fires else [])


# -- options


def test_a_panic_is_two_deviations_over_the_mean() -> None:
    at, below = (replace(CALM, dvol=VolatilityIndex(value, 50.0, 3.0, 400)) for value in (56.0, 55.99))
    assert names(triage(at)) == ["options_panic"]
    assert names(triage(below)) == []


def test_a_term_structure_inverted_by_more_than_two_points_is_a_panic() -> None:
    assert names(triage(replace(CALM, term=2.0))) == []
    assert names(triage(replace(CALM, term=2.01))) == ["options_panic"]


def test_both_reasons_make_one_panic_that_names_both() -> None:
    (found,) = triage(replace(CALM, term=3.0, dvol=VolatilityIndex(70.0, 50.0, 3.0, 400))).anomalies
    assert "DVOL" in found.said
    assert "month" in found.said


def points(values: list[float], end: int = NOW) -> list[Level]:
    return [Level(Millis(end - (len(values) - 1 - n) * HOUR_MS), value) for n, value in enumerate(values)]


def index(values: list[float], at: int = NOW) -> VolatilityIndex:
    found = measure_dvol(points(values), Millis(at))
    assert not isinstance(found, Missing)
    return found


def test_dvol_is_held_against_the_hours_before_it() -> None:
    past = [50.0 + (n * 7 % 11) for n in range(300)]
    found = index([*past, 90.0])
    assert (found.value, found.points) == (90.0, 300)
    assert found.mean == pytest.approx(statistics.mean(past))
    assert found.deviation == pytest.approx(statistics.stdev(past))
    assert found.z == pytest.approx((90 - statistics.mean(past)) / statistics.stdev(past))


def test_a_sleepy_index_must_still_rise_three_points() -> None:
    """A deviation is never taken for less than 1.5 points, and twice that is three."""
    asleep = [50.0] * 250
    up, less = (triage(replace(CALM, dvol=index([*asleep, value]))) for value in (53.0, 52.99))
    assert names(up) == ["options_panic"]
    assert names(less) == []


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.floats(20, 200), min_size=201, max_size=260))
def test_no_panic_is_less_than_three_points_over_the_mean(values: list[float]) -> None:
    found = index(values)
    if names(triage(replace(CALM, dvol=found))):
        assert found.value - found.mean >= 3 - 1e-9


def test_two_hundred_hours_are_needed_and_suffice() -> None:
    assert index([50.0] * 201).points == 200
    assert "199 hours" in why(measure_dvol(points([50.0] * 200), Millis(NOW)))


def test_a_month_of_hours_is_looked_back_on() -> None:
    found = index([500.0] * 100 + [50.0] * 721)
    assert (found.points, found.mean) == (720, 50.0)


def test_an_index_that_is_old_absent_or_none_is_missing() -> None:
    rows = points([50.0] * 300)
    assert or_none(measure_dvol(rows, Millis(NOW + 3 * HOUR_MS // 2))) is not None
    assert "5401" in why(measure_dvol(rows, Millis(NOW + 3 * HOUR_MS // 2 + 1_000)))
    assert "DVOL" in why(measure_dvol([], Millis(NOW)))
    assert "DVOL" in why(measure_dvol(points([math.nan, -3.0, 0.0, math.inf]), Millis(NOW)))


@pytest.mark.parametrize(
    ("value", "read"), [(5.0, True), (4.99, False), (1_000.0, True), (1_000.1, False), (0.5, False)]
)
def test_an_index_in_another_unit_is_missing(value: float, read: bool) -> None:
    assert (or_none(measure_dvol(points([value] * 300), Millis(NOW))) is not None) is read


def test_readings_of_the_future_and_of_one_hour_twice_change_nothing() -> None:
    rows = points([50.0 + n % 5 for n in range(300)])
    twice = [Level(Millis(row.at - 10 * MINUTE_MS), 99.0) for row in rows if row.at % (2 * HOUR_MS) == 0]
    future = [Level(Millis(NOW + 1), 400.0)]
    shifted = [Level(Millis(row.at + 30 * MINUTE_MS), row.value) for row in rows[:-1]]
    assert measure_dvol([*rows, *future], Millis(NOW)) == measure_dvol(rows, Millis(NOW))
    assert measure_dvol(rows[::-1], Millis(NOW)) == measure_dvol(rows, Millis(NOW))
    clash = [*shifted, *(Level(Millis(row.at + 20 * MINUTE_MS), 99.0) for row in rows[:-1]), rows[-1]]
    assert or_none(measure_dvol(clash, Millis(NOW))) == or_none(measure_dvol([*shifted, rows[-1]], Millis(NOW)))
    assert len(twice) == 150


# -- what is not known


def test_every_rule_whose_input_is_missing_is_named_with_its_reason() -> None:
    found = triage(Evidence(Missing("a"), (Missing("b"), Missing("c")), Missing("d"), Missing("e"), Missing("f")))
    assert found.anomalies == ()
    assert [(one.rule.value, one.reason) for one in found.unknown] == [
        ("spike", "a"),
        ("liquidation_cluster", "b"),
        ("liquidation_cluster", "c"),
        ("microstructure_imbalance", "d"),
        ("options_panic", "e"),
        ("options_panic", "f"),
    ]


def test_one_leg_of_a_panic_is_enough_and_one_calm_leg_does_not_speak_for_the_other() -> None:
    assert names(triage(replace(CALM, term=Missing("missing: the chain is empty"), dvol=panicking()))) == [
        "options_panic"
    ]
    found = triage(replace(CALM, term=Missing("missing: the chain is empty")))
    assert [(one.rule.value, one.reason) for one in found.unknown] == [("options_panic", "missing: the chain is empty")]


def panicking() -> VolatilityIndex:
    return VolatilityIndex(90.0, 50.0, 3.0, 400)


def test_what_was_found_before_never_hides_what_is_there_now() -> None:
    """Anomalies have no cooldown: the same market an hour later is told again, in full."""
    first = triage(forced(500_000.0, 0.0))
    assert triage(forced(500_000.0, 0.0)) == first
    assert names(first) == ["liquidation_cluster"]


def test_every_rule_can_fire_at_once_and_in_one_order() -> None:
    everything = Evidence(
        spike(usual(1.5, 20.0), crowd(-0.02)), forced(500_000.0, 0.0).liquidations, 0.9, panicking(), 5.0
    )
    assert names(triage(everything)) == [
        "liquidation_cascade",
        "liquidation_cluster",
        "microstructure_imbalance",
        "options_panic",
    ]
