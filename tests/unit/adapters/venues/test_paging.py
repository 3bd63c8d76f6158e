"""A long answer has no silent hole: short pages, pages cut at either end, rows out of order, and a venue that stops."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.adapters.venues import paging
from zuno.adapters.venues.paging import MOST_PAGES, fetch_irregular, fetch_regular, time_limit
from zuno.adapters.venues.vendor_json import order_rows
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.market import Level

STEP = 60_000
START = 1_760_000_040_000


def level(place: int) -> Level:
    return Level(Millis(START + place * STEP), float(place))


class Venue:
    """Rows at places; a page has at most `most` of them, from either end, in any order."""

    def __init__(
        self, places: Sequence[int], most: int = 1_000, *, newest: bool = False, backwards: bool = False
    ) -> None:
        self.rows = [level(place) for place in sorted(places)]
        self.most = most
        self.newest = newest
        self.backwards = backwards
        self.asked = 0

    async def page(self, low: Millis, high: Millis) -> Sequence[Level]:
        self.asked += 1
        found = [row for row in self.rows if low <= row.at <= high]
        found = found[-self.most :] if self.newest else found[: self.most]
        return found[::-1] if self.backwards else found


async def read(venue: Venue, last: int, limit: int = 5) -> list[int]:
    rows = await fetch_regular("its rows", venue.page, level(0).at, level(last).at, STEP, limit)
    return [round(row.value) for row in rows]


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(
    st.integers(0, 30),
    st.sets(st.integers(1, 39), max_size=6),
    st.integers(1, 9),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
)
def test_whatever_a_venue_has_is_found_however_it_cuts_its_pages(
    listed: int, holes: set[int], most: int, limit: int, newest: bool, backwards: bool
) -> None:
    """From the day it was listed. A hole is a hole, but a page without any row is a venue that stopped."""
    places = [place for place in range(listed, 41) if place not in holes]
    venue = Venue(places, most, newest=newest, backwards=backwards)
    windows = [range(low, min(41, low + limit)) for low in range(0, 41, limit)]
    first = places[0]
    gap = any(not set(window) & set(places) for window in windows if window.stop > first)
    if gap:
        with pytest.raises(Unavailable, match=r"\bstop\b"):
            asyncio.run(read(venue, 40, limit))
    else:
        assert asyncio.run(read(venue, 40, limit)) == places


async def test_a_venue_that_stops_half_way_is_unavailable() -> None:
    for stopped in (range(3), range(5), range(9), range(2, 19)):
        with pytest.raises(Unavailable, match=r"2025-10-09 .*2025-10-09 "):
            await read(Venue(stopped), 19)


@pytest.mark.parametrize("limit", [5, 19, 20])
async def test_the_newest_row_alone_may_not_be_served_yet(limit: int) -> None:
    """Whether it lies on a page of its own or not; a row of the past has no such excuse, nor have two rows."""

    async def asked(upto: int, newest: int | None) -> list[int]:
        new = None if newest is None else level(newest).at
        rows = await fetch_regular("its rows", Venue(range(upto)).page, level(0).at, level(19).at, STEP, limit, new)
        return [round(row.value) for row in rows]

    assert await asked(19, newest=19) == list(range(19))
    assert await asked(20, newest=19) == list(range(20))
    for upto, newest in ((19, 20), (19, None), (18, 19), (1, 19)):
        with pytest.raises(Unavailable, match=r"\bstop\b"):
            await asked(upto, newest)


async def test_a_page_in_the_middle_that_is_gone_is_unavailable() -> None:
    with pytest.raises(Unavailable, match=r"\bstop\b"):
        await read(Venue([*range(5), *range(10, 20)]), 19)


async def test_a_page_that_loses_rows_once_is_asked_again() -> None:
    venue = Venue(range(20))
    answered = venue.page

    async def forgetful(low: Millis, high: Millis) -> Sequence[Level]:
        rows = await answered(low, high)
        return [row for row in rows if len(rows) == 1 or round(row.value) % 3]

    rows = await fetch_regular("its rows", forgetful, level(0).at, level(19).at, STEP, 5)
    assert [round(row.value) for row in rows] == list(range(20))


async def test_a_window_without_a_bar_is_not_asked_for() -> None:
    venue = Venue(range(20))
    assert not await fetch_regular("its rows", venue.page, level(5).at, level(4).at, STEP, 5)
    assert venue.asked == 0


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(
    st.sets(st.integers(0, 60), max_size=40),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 7, 25]),
)
def test_rows_that_come_when_they_come_are_all_found(
    places: set[int], most: int, newest_first: bool, backwards: bool, span: int | None
) -> None:
    venue = Venue(sorted(places), most, newest=newest_first, backwards=backwards)
    rows = asyncio.run(
        fetch_irregular(
            "its rows",
            venue.page,
            level(5).at,
            level(50).at,
            newest_first=newest_first,
            apart=STEP,
            span=None if span is None else span * STEP,
        )
    )
    assert [round(row.value) for row in rows] == sorted(place for place in places if 5 <= place <= 50)


async def test_more_pages_than_are_fetched_at_once_are_refused() -> None:
    venue = Venue(range(10))
    with pytest.raises(Refused, match=rf"\b{MOST_PAGES}\b"):
        await fetch_regular("its rows", venue.page, level(0).at, level(10 * MOST_PAGES).at, STEP, 10)
    assert venue.asked == 0
    endless = Venue(range(MOST_PAGES + 5), most=1)
    with pytest.raises(Refused, match=rf"{MOST_PAGES + 1} pages"):
        await fetch_irregular("its rows", endless.page, level(0).at, level(10**6).at, newest_first=False)
    assert endless.asked == MOST_PAGES
    whole = Venue(range(MOST_PAGES * 10))
    assert len(await read(whole, MOST_PAGES * 10 - 1, 10)) == MOST_PAGES * 10


async def test_an_answer_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> None:
        async with time_limit("its rows", 0.01):
            await asyncio.Event().wait()

    with pytest.raises(Unavailable, match=r"0\.01"):
        await never()
    assert paging.LONGEST <= 600


def test_rows_are_sorted_and_repeated_ones_are_one() -> None:
    rows = [level(3), level(1), level(3), level(9), level(2)]
    assert order_rows("rows", rows, level(1).at, level(3).at) == (level(1), level(2), level(3))


def test_rows_that_contradict_each_other_are_malformed() -> None:
    with pytest.raises(Malformed, match="moment"):
        order_rows("rows", [level(1), level(2), level(1)._replace(value=9.0)], level(0).at, level(5).at)
