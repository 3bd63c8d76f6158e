"""The shock detector: each horizon at its edge, one event for one shock, and what a gap leaves open."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wire.real_minutes import grouped, minutes
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, bars
from zuno.trading.measure.events import FLOORS, Shock, ShockScan, scan_shocks
from zuno.trading.model.known import Missing
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Candle, Timeframe

START = 1_767_225_600_000
"""A full hour."""


def hourly(atr: float, count: int = 40, price: float = 100.0, until: int = START) -> Bars:
    """Hours of one and the same range, up to the start."""
    rows = [
        Candle(Millis(until - (count - n) * HOUR_MS), price, price + atr / 2, price - atr / 2, price, 1.0, None)
        for n in range(count)
    ]
    return bars(Timeframe.H1, rows)


def by_minute(closes: Sequence[float], missing: Sequence[int] = ()) -> Bars:
    rows = [
        Candle(Millis(START + n * MINUTE_MS), close, close, close, close, 1.0, None)
        for n, close in enumerate(closes)
        if n not in missing
    ]
    return bars(Timeframe.M1, rows)


def lasting(closes: Sequence[float], atr: float, missing: Sequence[int] = ()) -> ShockScan:
    """Minutes judged by one ATR throughout: hours of the same range go on beside them."""
    hours = len(closes) // 60 + 1
    found = scan_shocks(
        by_minute(closes, missing), hourly(atr, 40 + hours, until=START + hours * HOUR_MS), after(len(closes))
    )
    assert not isinstance(found, Missing)
    return found


def after(minutes: int) -> Millis:
    return Millis(START + minutes * MINUTE_MS)


def told(closes: Sequence[float], atr: float = 0.1, missing: Sequence[int] = ()) -> tuple[Shock, ...]:
    return lasting(closes, atr, missing).shocks


def step(span: int, share: float, before: int = 70, then: int = 0) -> list[float]:
    """Flat, then one straight move over a number of minutes, then flat again."""
    moved = [100 * (1 + share * n / span) for n in range(1, span + 1)]
    return [100.0] * before + moved + [100 * (1 + share)] * then


def why(figure: object) -> str:
    assert isinstance(figure, Missing)
    return figure.reason


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("span", "floor"), FLOORS)
def test_a_move_of_the_floor_is_a_shock_and_less_is_not(span: int, floor: float, sign: int) -> None:
    (shock,) = told(step(span, sign * floor * 1.0001))
    assert [move.minutes for move in shock.moves] == [span]
    assert shock.moves[0].share == pytest.approx(sign * floor, rel=1e-3)
    assert shock.moves[0].threshold == pytest.approx(floor)
    assert (shock.up, shock.further) == (sign > 0, False)
    assert shock.at == START + (70 + span) * MINUTE_MS
    assert told(step(span, sign * floor * 0.9999)) == ()


def test_the_floors_are_those_that_were_agreed() -> None:
    assert FLOORS == ((1, 0.01), (5, 0.015), (15, 0.02), (60, 0.03))


def test_exactly_the_floor_is_enough() -> None:
    assert len(told([100.0] * 70 + [101.0])) == 1
    assert len(told([100.0] * 70 + [99.0])) == 1


@pytest.mark.parametrize(("span", "_floor"), FLOORS)
def test_in_a_wild_market_three_atr_scaled_by_time_is_the_bound(span: int, _floor: float) -> None:
    atr = 4.0  # of 100: 3·4·√(h/60) is 1.55, 3.46, 6 and 12 per cent
    bound = 3 * atr / 100 * math.sqrt(span / 60)
    (shock,) = told(step(span, -bound * 1.0001), atr)
    assert [move.minutes for move in shock.moves] == [span]
    assert shock.moves[0].threshold == pytest.approx(bound)
    assert told(step(span, -bound * 0.9999), atr) == ()


def test_the_atr_is_that_of_hours_not_of_shares() -> None:
    # At 200 the same range in dollars is half as wide in shares: 3·4·√(1/60)/200 is under the floor of 1 %.
    flat = [Candle(Millis(START + n * MINUTE_MS), 200, 200, 200, 200, 1.0, None) for n in range(70)]
    moved = Candle(Millis(START + 70 * MINUTE_MS), 202, 202, 202, 202, 1.0, None)
    found = scan_shocks(bars(Timeframe.M1, [*flat, moved]), hourly(4.0, 42, 200.0, START + 2 * HOUR_MS), after(71))
    assert not isinstance(found, Missing)
    assert len(found.shocks) == 1


def test_an_hour_counts_from_the_minute_it_closes_with() -> None:
    """The wild hour closes with its last minute: that one is judged by it, the one before is not."""
    calm = hourly(0.1)
    past = [Candle(Millis(int(at)), 100, 100.05, 99.95, 100, 1.0, None) for at in calm.at]
    wild = Candle(Millis(START), 100, 150, 50, 100, 1.0, None)
    hours = bars(Timeframe.H1, [*past, wild])
    for last, known in ((58, 1), (59, 0)):
        found = scan_shocks(by_minute([100.0] * last + [101.2]), hours, after(last + 1))
        assert not isinstance(found, Missing)
        assert len(found.shocks) == known


def test_a_minute_is_not_judged_by_an_hour_that_closed_after_it() -> None:
    calm = hourly(0.1)
    past = [Candle(Millis(int(at)), 100, 100.05, 99.95, 100, 1.0, None) for at in calm.at]
    wild = Candle(Millis(START), 100, 150, 50, 100, 1.0, None)
    found = scan_shocks(by_minute([100.0] * 58 + [101.2] * 5), bars(Timeframe.H1, [*past, wild]), after(63))
    assert not isinstance(found, Missing)
    assert [shock.at for shock in found.shocks] == [after(59)]


def test_hours_in_which_nothing_moved_are_hours() -> None:
    assert [shock.full for shock in told([100.0] * 70 + [101.0], atr=0.0)] == [0.03]


def test_hours_older_than_two_judge_no_minute() -> None:
    for count, judged in ((120, True), (121, False)):
        found = scan_shocks(by_minute([100.0] * count), hourly(0.1), after(count))
        assert isinstance(found, ShockScan) is judged


@pytest.mark.parametrize("span", [12, 20, 30, 40, 50, 60, 70, 79])
def test_behaviour_16_a_slow_four_per_cent_fall_fires_once(span: int) -> None:
    """No minute of it is remarkable, and it is told once: while it falls, when it has fallen, and hours later."""
    (shock,) = told(step(span, -0.04, before=120, then=300))
    assert not shock.up
    assert (shock.moves[-1].minutes == 60) == (span >= 40)
    assert shock.at <= START + (120 + span) * MINUTE_MS


def test_behaviour_16_holds_with_noise_and_in_hours_that_grow_wilder() -> None:
    dice = np.random.default_rng(16)
    fall = np.concatenate((np.zeros(120), np.full(50, math.log(0.96) / 50), np.zeros(300)))
    closes = (100 * np.exp(np.cumsum(fall + dice.normal(0, 0.0002, len(fall))))).tolist()
    rows = by_minute(closes)
    candles = [
        Candle(Millis(START + n * MINUTE_MS), close, close * 1.0003, close * 0.9997, close, 1.0, None)
        for n, close in enumerate(closes)
    ]
    before = hourly(0.5)
    past = [Candle(Millis(int(at)), 100, 100.25, 99.75, 100, 1.0, None) for at in before.at]
    found = scan_shocks(rows, bars(Timeframe.H1, [*past, *grouped(candles, Timeframe.H1)]), after(len(closes)))
    assert not isinstance(found, Missing)
    assert len(found.shocks) == 1


def test_a_further_full_threshold_is_a_further_event_and_less_is_not() -> None:
    # After a minute of −1.1 % a further three per cent is one, the hour's; it may come in small steps.
    first = [100.0] * 70 + [98.9]
    less, full = (told([*first, *(98.9 * (1 - share * n / 20) for n in range(1, 21))]) for share in (0.0299, 0.03001))
    assert [shock.further for shock in less] == [False]
    assert [shock.further for shock in full] == [False, True]
    assert full[0].full == 0.03


def test_in_a_wild_market_the_full_threshold_is_three_hourly_atr() -> None:
    first, atr = [100.0] * 70 + [95.0], 4.0
    less, full = (told([*first, *[95.0] * 5, 95.0 - lower], atr) for lower in (11.99, 12.001))
    assert ([shock.further for shock in less], [shock.further for shock in full]) == ([False], [False, True])
    assert full[0].full == pytest.approx(12 / 95)


def test_a_further_threshold_counts_from_the_last_event_and_whichever_way() -> None:
    back = told([100.0] * 70 + [96.0] * 10 + [100.0] * 10 + [96.5])
    assert [(shock.up, shock.further) for shock in back] == [(False, False), (True, True), (False, True)]


def test_a_fall_that_goes_on_for_hours_is_told_at_every_full_threshold() -> None:
    closes = [100.0] * 70 + [100 * 0.9993**n for n in range(1, 301)]  # 19 % in five hours
    shocks = told(closes)
    assert len(shocks) == 6
    assert [shock.further for shock in shocks] == [False] + [True] * 5


def returning(quiet: int) -> list[float]:
    """A jump, so many quiet minutes of sliding back, and another to about where the first one ended."""
    slide = [101 - 0.9 * n / quiet for n in range(1, quiet + 1)]
    return [100.0] * 70 + [101.0] + slide + [101.2]


def test_sixty_quiet_minutes_end_an_event_and_fifty_nine_do_not() -> None:
    assert [shock.further for shock in told(returning(60))] == [False, False]
    assert [shock.further for shock in told(returning(59))] == [False]


def test_a_slow_drift_is_no_shock() -> None:
    assert told(step(90, -0.04)) == ()


def test_a_minute_that_is_missing_is_neither_quiet_nor_loud() -> None:
    # One of the sixty was not seen: the event is still on.
    assert len(told(returning(60), missing=[100])) == 1
    # The minute before the move was not seen: there is no move over one minute.
    assert told([100.0] * 70 + [101.0], missing=[69]) == ()


def test_the_first_hour_and_what_a_gap_touches_is_counted_as_not_judged() -> None:
    whole = lasting([100.0] * 200, 0.1)
    assert (whole.minutes, whole.unjudged) == (200, 60)
    gapped = lasting([100.0] * 200, 0.1, missing=[100])
    assert (gapped.minutes, gapped.unjudged) == (199, 64)


def test_what_cannot_be_judged_is_said() -> None:
    flat = by_minute([100.0] * 70)
    hours = hourly(1.0, 42, until=START + 2 * HOUR_MS)
    nothing = bars(Timeframe.M1, [])
    assert "minute" in why(scan_shocks(nothing, hours, after(70)))
    assert "two " in why(scan_shocks(flat, hours, Millis(after(72) + 1)))
    assert isinstance(scan_shocks(flat, hours, after(72)), ShockScan)
    assert "14 " in why(scan_shocks(flat, hourly(1.0, 14), after(70)))
    assert isinstance(scan_shocks(flat, hourly(1.0, 15), after(70)), ShockScan)
    assert "ATR" in why(scan_shocks(flat, hourly(1.0, 42, until=START - HOUR_MS), after(70)))


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_prices_that_are_none_are_said_and_never_judged(bad: float) -> None:
    flat, hours = [100.0] * 70, hourly(1.0, 42, until=START + 2 * HOUR_MS)
    assert "price" in why(scan_shocks(by_minute([*flat, bad]), hours, after(71)))
    for column in ("high", "low", "close"):
        wrong = hourly(1.0, 40)
        getattr(wrong, column)[3] = bad
        assert "price" in why(scan_shocks(by_minute(flat), wrong, after(70)))


def test_hours_whose_high_is_below_their_low_are_said() -> None:
    wrong = hourly(1.0, 40)
    wrong.high[3], wrong.low[3] = 90.0, 91.0
    assert "price" in why(scan_shocks(by_minute([100.0] * 70), wrong, after(70)))


walks = st.lists(st.sampled_from([-0.012, -0.004, -0.001, 0.0, 0.0, 0.001, 0.004, 0.012]), min_size=70, max_size=260)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(walks, st.integers(0, 200), st.sets(st.integers(0, 259), max_size=10))
def test_dropping_the_future_changes_no_shock_of_the_past(steps: list[float], cut: int, gaps: set[int]) -> None:
    closes = (100 * np.cumprod(1 + np.array(steps))).tolist()
    upto = max(70, len(closes) - cut)
    gaps = {gap for gap in gaps if gap not in (upto - 1, len(closes) - 1)}
    whole, part = told(closes, 0.5, list(gaps)), told(closes[:upto], 0.5, list(gaps))
    assert part == tuple(shock for shock in whole if shock.at <= after(upto))


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(walks)
def test_every_shock_is_one_by_a_rule_written_out_in_full(steps: list[float]) -> None:
    closes = (100 * np.cumprod(1 + np.array(steps))).tolist()
    expected: list[tuple[int, tuple[int, ...], bool]] = []
    anchor, wide, loud = 0.0, 0.0, -1
    for n, close in enumerate(closes):
        passing = {}
        for span, floor in FLOORS:
            if n >= span:
                bound = max(floor, 3 * 0.5 * math.sqrt(span / 60) / closes[n - span])
                if abs(close - closes[n - span]) / closes[n - span] >= bound:
                    passing[span] = bound
        if passing:
            fresh = loud < 0 or n - loud - 1 >= 60
            if fresh or abs(close - anchor) / anchor >= wide:
                expected.append((n, tuple(passing), not fresh))
                anchor, wide = close, max(0.03, 3 * 0.5 / close)
            loud = n
    found = [
        ((shock.at - START) // MINUTE_MS - 1, tuple(move.minutes for move in shock.moves), shock.further)
        for shock in told(closes, 0.5)
    ]
    assert found == expected


@pytest.mark.slow
def test_three_weeks_of_a_real_market_have_a_shock_or_two_a_day() -> None:
    rows = minutes()
    found = scan_shocks(
        bars(Timeframe.M1, rows), bars(Timeframe.H1, grouped(rows, Timeframe.H1)), Millis(rows[-1].at + MINUTE_MS)
    )
    assert not isinstance(found, Missing)
    assert 0.5 <= len(found.shocks) / 22 <= 4
    assert len(rows) == found.minutes


def test_since_tells_the_later_ones_and_knows_what_had_begun() -> None:
    closes = step(1, -0.04, before=70, then=30)
    minutes, hours = by_minute(closes), hourly(0.1, until=START)
    end = Millis(int(minutes.at[-1]) + MINUTE_MS)
    whole = scan_shocks(minutes, hours, end)
    assert not isinstance(whole, Missing)
    (event,) = whole.shocks
    later, before = scan_shocks(minutes, hours, end, event.at), scan_shocks(minutes, hours, end, Millis(event.at - 1))
    assert not isinstance(later, Missing)
    assert not isinstance(before, Missing)
    assert later.shocks == ()  # the hour after it is loud still, and it is the same event
    assert before.shocks == (event,)


def test_since_counts_every_minute_that_was_not_judged_absent_ones_too() -> None:
    minutes, hours = by_minute([100.0] * 130), hourly(0.1, until=START + 2 * HOUR_MS)
    end = Millis(int(minutes.at[-1]) + MINUTE_MS)
    found = scan_shocks(minutes, hours, end, Millis(end - 60 * MINUTE_MS))
    assert not isinstance(found, Missing)
    assert (found.minutes, found.unjudged) == (60, 0)
    short = scan_shocks(minutes.last(1), hours, end, Millis(end - 24 * HOUR_MS))
    assert not isinstance(short, Missing)
    assert (short.minutes, short.unjudged) == (1_440, 1_440)
