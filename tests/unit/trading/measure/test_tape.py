"""Streams of events: by event time, silence that is proven and silence that is not, and an hour against its past."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.kernel.units import Millis
from zuno.trading.measure.tape import (
    LOWER_BOUND,
    SideHour,
    Stream,
    TapeMinutes,
    TapeTotals,
    whale_flow,
)
from zuno.trading.model.known import Known, Missing, or_none
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Heartbeat, Side, TapeEvent

NOW = Millis(1_767_225_600_000)
AGO = Millis(NOW - HOUR_MS)


def strike(at: float, usd: float, side: Side = Side.LONG, id: str | None = None) -> TapeEvent:
    return TapeEvent(Millis(int(at)), side, 100.0, usd / 100, usd, id or f"{at}-{usd}-{side}")


def alive(since: int, until: int) -> list[Heartbeat]:
    return [Heartbeat(Millis(at)) for at in range(since, until, MINUTE_MS)]


def stream(*strikes: TapeEvent, since: int = AGO, until: int = NOW, venue: str = "binance") -> Stream:
    return Stream(venue, strikes, alive(since, until))


def total_by_minute(streams: Sequence[Stream], since: Millis, until: Millis) -> tuple[TapeTotals, ...]:
    return tally_by_step(streams, since, until, MINUTE_MS)


def total_by_hour(streams: Sequence[Stream], since: Millis, until: Millis) -> tuple[TapeTotals, ...]:
    """Clock hours, from the one that holds `since`."""
    return tally_by_step(streams, Millis(since // HOUR_MS * HOUR_MS), until, HOUR_MS)


def tally(streams: Sequence[Stream], since: Millis, until: Millis) -> TapeTotals:
    return TapeMinutes(streams).tally(since, until)


def tally_by_step(streams: Sequence[Stream], since: Millis, until: Millis, step: int) -> tuple[TapeTotals, ...]:
    heard = TapeMinutes(streams)
    starts = range(since // MINUTE_MS * MINUTE_MS, until, step)
    return tuple(heard.tally(Millis(start), Millis(start + step)) for start in starts if start + step <= until)


def last_hours(streams: Sequence[Stream], as_of: Millis) -> tuple[Known[SideHour], Known[SideHour]]:
    heard = TapeMinutes(streams)
    return heard.last_hour(Side.LONG, as_of), heard.last_hour(Side.SHORT, as_of)


def why(figure: object) -> str:
    assert isinstance(figure, Missing)
    return figure.reason


def test_events_fall_into_the_minute_they_happened_in_whatever_order_they_come() -> None:
    rows = [strike(AGO + 60_000, 5), strike(AGO, 1), strike(AGO + 59_999, 2), strike(AGO + 61_000, 7, Side.SHORT)]
    minutes = total_by_minute([stream(*rows)], AGO, Millis(AGO + 3 * MINUTE_MS))
    assert [(or_none(one.long_usd), or_none(one.short_usd), one.events) for one in minutes] == [
        (3.0, 0.0, 2),
        (5.0, 7.0, 2),
        (0.0, 0.0, 0),
    ]


def test_hours_are_clock_hours_and_only_whole_ones() -> None:
    rows = [strike(AGO - 1, 1), strike(AGO, 2), strike(NOW - 1, 4, Side.SHORT), strike(NOW, 8)]
    hours = total_by_hour([stream(*rows, since=AGO - HOUR_MS)], Millis(AGO - 1), Millis(NOW + MINUTE_MS))
    assert [(one.since, or_none(one.long_usd), or_none(one.short_usd)) for one in hours] == [
        (AGO - HOUR_MS, 1.0, 0.0),
        (AGO, 2.0, 4.0),
    ]


def test_silence_is_zero_only_where_the_stream_is_proven_alive() -> None:
    heard = tally([stream()], AGO, NOW)
    deaf = tally([Stream("binance", (), alive(AGO, NOW)[1:])], AGO, NOW)
    assert (or_none(heard.long_usd), heard.complete, heard.heard) == (0.0, True, 60)
    assert "59 of 60" in why(deaf.long_usd)
    assert not deaf.complete
    assert "stream" in why(tally([], AGO, NOW).short_usd)


def test_what_was_heard_through_a_gap_is_kept_as_a_lower_bound_side_by_side() -> None:
    found = tally([Stream("binance", [strike(AGO + 5, 300)], ())], AGO, NOW)
    assert (or_none(found.long_usd), found.complete, found.events) == (300.0, False, 1)
    assert "zero" in why(found.short_usd)


def test_a_minute_is_heard_when_every_venue_was() -> None:
    quiet = Stream("bybit", (), alive(AGO, NOW)[:30])
    found = tally([stream(strike(AGO, 10)), quiet], AGO, NOW)
    assert (found.heard, or_none(found.long_usd)) == (30, 10.0)
    both = tally([stream(strike(AGO, 10)), stream(strike(AGO, 5, id="other"), venue="bybit")], AGO, NOW)
    assert (both.complete, or_none(both.long_usd)) == (True, 15.0)


def test_an_event_told_twice_by_one_venue_happened_once_and_by_two_venues_twice() -> None:
    row = strike(AGO, 10, id="1")
    assert or_none(tally([stream(row, row)], AGO, NOW).long_usd) == 10.0
    assert or_none(tally([stream(row), stream(row, venue="bybit")], AGO, NOW).long_usd) == 20.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -5.0, 0.0])
@pytest.mark.parametrize("field", ["usd", "price", "quantity"])
def test_an_event_that_cannot_be_is_not_one(field: str, bad: float) -> None:
    found = tally([stream(strike(AGO, 10)._replace(**{field: bad}), strike(AGO + 1, 3))], AGO, NOW)  # type: ignore[arg-type]
    assert (or_none(found.long_usd), found.events) == (3.0, 1)


def test_small_numbers_are_numbers() -> None:
    rows = [strike(AGO, 0.5)._replace(price=0.5, quantity=0.5)]
    assert or_none(tally([stream(*rows)], AGO, NOW).long_usd) == 0.5


# -- an hour against its own past


def hours_of(usd: list[float], side: Side = Side.LONG) -> Stream:
    """One event an hour, the newest last, ending now; heard all the time."""
    since = NOW - len(usd) * HOUR_MS
    rows = [strike(since + n * HOUR_MS + 30_000, value, side) for n, value in enumerate(usd) if value]
    return stream(*rows, since=since)


def hour(*streams: Stream, side: Side = Side.LONG, at: int = NOW) -> SideHour:
    found = last_hours(streams, Millis(at))[side is Side.SHORT]
    assert not isinstance(found, Missing)
    return found


def test_an_hour_is_held_against_the_95th_percentile_of_its_own_past() -> None:
    past = [float(1 + n * 37 % 200) for n in range(200)]
    found = hour(hours_of([*past, 500.0]))
    assert (found.usd, found.hours, found.complete, found.label) == (500.0, 200, True, LOWER_BOUND)
    assert or_none(found.high) == sorted(past)[189]


def test_seven_days_of_its_own_are_needed_and_suffice() -> None:
    assert or_none(hour(hours_of([1.0] * 168 + [9.0])).high) == 1.0
    assert "167 hours" in why(hour(hours_of([1.0] * 167 + [9.0])).high)


def test_hours_that_were_not_heard_whole_are_no_past() -> None:
    full = hours_of([1.0] * 168 + [9.0])
    torn = Stream(full.venue, full.strikes, [row for row in full.alive if row.at != NOW - 3 * HOUR_MS])
    assert "167 hours" in why(hour(torn).high)


def test_the_sides_have_pasts_of_their_own() -> None:
    longs, shorts = hours_of([100.0] * 170), hours_of([7.0] * 170, Side.SHORT)
    both = Stream("binance", [*longs.strikes, *shorts.strikes], longs.alive)
    assert (hour(both).usd, or_none(hour(both).high)) == (100.0, 100.0)
    assert (hour(both, side=Side.SHORT).usd, or_none(hour(both, side=Side.SHORT).high)) == (7.0, 7.0)


def test_the_hour_is_the_last_sixty_whole_minutes_and_overlaps_no_past() -> None:
    at = NOW + 10 * MINUTE_MS + 999
    rows = [strike(NOW + 5 * MINUTE_MS, 3), strike(NOW - 55 * MINUTE_MS, 4), strike(NOW + 10 * MINUTE_MS, 100)]
    found = hour(stream(*rows, since=NOW - DAY_MS, until=NOW + 11 * MINUTE_MS), at=at)
    assert (found.usd, found.complete) == (3.0, True)
    assert found.hours == 23


def test_a_silent_hour_that_was_not_heard_is_not_known() -> None:
    assert "zero" in why(last_hours([stream(until=NOW - MINUTE_MS)], Millis(NOW))[0])
    part = hour(stream(strike(AGO, 5), until=NOW - MINUTE_MS))
    assert (part.usd, part.complete) == (5.0, False)


@pytest.mark.slow
def test_ninety_days_of_its_own_are_looked_back_on() -> None:
    found = hour(hours_of([1_000.0] * 200 + [1.0] * 90 * 24 + [9.0]))
    assert (found.hours, or_none(found.high)) == (90 * 24, 1.0)


def test_events_of_a_stream_never_proven_alive_have_no_past() -> None:
    found = hour(Stream("binance", [strike(AGO, 5)], ()))
    assert (found.usd, found.complete, found.hours) == (5.0, False, 0)


events = st.lists(
    st.builds(
        strike,
        st.integers(NOW - 5 * HOUR_MS, NOW + HOUR_MS),
        st.integers(1, 10**6).map(float),
        st.sampled_from(Side),
        st.integers(0, 10**9).map(str),
    ),
    max_size=30,
)
minutes_heard = st.sets(st.integers(-300, 60)).map(
    lambda found: [Heartbeat(Millis(NOW + minute * MINUTE_MS)) for minute in sorted(found)]
)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(events, minutes_heard)
def test_minutes_add_up_to_hours_and_to_a_sum_by_hand(rows: list[TapeEvent], heard: list[Heartbeat]) -> None:
    since = Millis(NOW - 3 * HOUR_MS)
    source = [Stream("binance", rows, heard)]
    by_hand: dict[tuple[int, Side], float] = defaultdict(float)
    for row in {(row.at, row.id): row for row in reversed(rows)}.values():
        by_hand[row.at // HOUR_MS, row.side] += row.usd
    proven = {row.at // MINUTE_MS for row in heard}
    for hour in total_by_hour(source, since, Millis(NOW)):
        parts = total_by_minute(source, hour.since, hour.until)
        assert hour.heard == sum(part.heard for part in parts)
        assert hour.heard == sum(hour.since // MINUTE_MS + n in proven for n in range(60))
        for side in Side:
            expected = by_hand.get((hour.since // HOUR_MS, side))
            if expected is None and not hour.complete:
                assert isinstance(hour.usd(side), Missing)
            else:
                assert or_none(hour.usd(side)) == pytest.approx(expected or 0.0)
            assert sum(or_none(part.usd(side)) or 0.0 for part in parts) == pytest.approx(
                or_none(hour.usd(side)) or 0.0
            )


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(events, minutes_heard)
def test_the_future_changes_no_hour(rows: list[TapeEvent], heard: list[Heartbeat]) -> None:
    known = Stream("binance", [row for row in rows if row.at < NOW], [row for row in heard if row.at < NOW])
    whole = Stream("binance", rows, heard)
    assert last_hours([whole], Millis(NOW)) == last_hours([known], Millis(NOW))
    assert total_by_minute([whole], AGO, Millis(NOW)) == total_by_minute([known], AGO, Millis(NOW))


# -- whales


def test_large_trades_are_netted_and_small_ones_are_not_counted() -> None:
    rows = [strike(AGO, 100_000), strike(AGO + 1, 250_000), strike(AGO + 2, 120_000, Side.SHORT), strike(AGO, 99_999)]
    flow = whale_flow([stream(*rows)], Millis(NOW), NOW - AGO)[0]
    assert not isinstance(flow, Missing)
    assert (flow.bought_usd, flow.sold_usd, flow.net_usd, flow.trades) == (350_000.0, 120_000.0, 230_000.0, 3)
    assert flow.complete


def test_no_whale_is_a_zero_only_when_heard() -> None:
    flow = whale_flow([stream()], Millis(NOW), NOW - AGO)[0]
    assert not isinstance(flow, Missing)
    assert (flow.net_usd, flow.trades) == (0.0, 0)
    assert "zero" in why(whale_flow([Stream("binance", (), ())], Millis(NOW), NOW - AGO)[0])
    one = whale_flow([Stream("binance", [strike(AGO, 200_000, Side.SHORT)], ())], Millis(NOW), NOW - AGO)[0]
    assert not isinstance(one, Missing)
    assert (one.sold_usd, one.complete) == (200_000.0, False)
    assert isinstance(one.bought_usd, Missing)
    assert isinstance(one.net_usd, Missing)
