"""Figures of the economy and of mood: when they could be known, what no print is, and the key that nobody sees."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.wire.vendors import figures
from tests.wire.vendors.questions import DAYS, QUICK, asking, no_sleep
from tests.wire.vendors.questions import QUESTIONS as ALL
from tests.wire.vendors.serving import vendor
from tests.wire.vendors.world import World
from zuno.adapters.venues.macro import SPAN, FearGreed, Fred, Yahoo
from zuno.adapters.venues.web import WebService
from zuno.kernel.errors import Malformed, Refused, Unavailable, UsageError
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, HOUR_MS, Level, MacroRelease

FIRST, LAST = Millis(DAYS[0]), Millis(DAYS[-1])


def question(name: str) -> Any:
    return next(question for question in ALL if question.name == name)


def prints(*values: float) -> list[MacroRelease]:
    return [
        MacroRelease(Millis(day), value, Millis(day + 30 * HOUR_MS)) for day, value in zip(DAYS, values, strict=False)
    ]


# -- FRED


async def test_a_point_is_no_print() -> None:
    """2025-10-01 is in every answer of the server, with a point for its value."""
    async with asking(question("fred prints")) as (_, feed):
        found = await feed.prints("DGS10", Millis(DAYS[0] - 30 * DAY_MS), LAST)
        assert len(found) == len(DAYS)


async def test_a_revision_is_a_print_of_the_same_day_released_later() -> None:
    first = prints(3.0, 3.1)
    revised = first[0]._replace(value=2.9, released=Millis(first[0].released + 28 * DAY_MS))
    async with asking(question("fred prints"), world=World(prints=[*first, revised])) as (_, feed):
        assert await feed.prints("CPIAUCSL", FIRST, LAST) == [first[0], revised, first[1]]


async def test_a_print_is_known_when_its_day_was_over_in_st_louis() -> None:
    async with asking(question("fred prints"), world=World(prints=prints(3.0))) as (here, feed):
        (found,) = await feed.prints("DGS10", FIRST, LAST)
        assert found.released - found.at == DAY_MS + 6 * HOUR_MS
        (_, query) = here.asked[-1]
        assert query["realtime_start"] == query["observation_start"] == figures.day(FIRST)
        assert query["realtime_end"] > query["observation_end"]


@pytest.mark.parametrize("hours", [0, 4.9, 5.1, 6.1, 23.9])
async def test_nothing_is_asked_of_a_day_after_today_in_st_louis(hours: float) -> None:
    """In October it is five hours behind UTC; until then FRED declines the day that has begun elsewhere."""
    midnight = LAST + DAY_MS
    world = World(now=round(midnight + hours * HOUR_MS), prints=prints(3.0, 3.1))
    async with vendor(figures.fred(world)) as here:
        feed = Fred(WebService("FRED", here.url + "/fred", patience=QUICK), figures.KEY, lambda: Millis(world.now))
        assert await feed.prints("DGS10", FIRST, Millis(midnight + 40 * DAY_MS)) == world.prints
        await feed.prints("DGS10", Millis(midnight + 2 * DAY_MS), Millis(midnight + 40 * DAY_MS))
        for _, query in here.asked:
            assert query["realtime_start"] <= query["realtime_end"]
        assert here.asked[0][1]["realtime_end"] == figures.day(midnight if hours >= 6 else LAST)
        await feed.close()


async def test_only_a_figure_that_is_out_on_its_day_is_known_then_without_revisions() -> None:
    world = World(prints=prints(3.0, 3.1))
    async with vendor(figures.fred(world, without_vintages=True)) as here:
        feed = Fred(WebService("FRED", here.url + "/fred", patience=QUICK), figures.KEY, lambda: Millis(world.now))
        assert await feed.prints("NASDAQCOM", FIRST, LAST) == world.prints
        assert ["realtime_end" in query for _, query in here.asked] == [True, False]
        late = [figure for figure in feed.figures if figure != "NASDAQCOM"]
        for figure in late:
            with pytest.raises(Unavailable, match="HTTP 400"):
                await feed.prints(figure, FIRST, LAST)
        assert len(here.asked) == 2 + len(late)
        await feed.close()


async def test_another_bad_request_is_not_asked_in_another_way() -> None:
    async with asking(question("fred prints")) as (here, feed):
        here.mood = figures.bad_request("Variable realtime_end can not be after today's date.")
        with pytest.raises(Unavailable, match="HTTP 400"):
            await feed.prints("DGS10", FIRST, LAST)
        assert len(here.asked) == 1


async def test_a_long_time_is_asked_for_in_parts_that_have_few_vintages() -> None:
    async with asking(question("fred prints")) as (here, feed):
        found = await feed.prints("DGS10", Millis(LAST - 5 * SPAN // 2), LAST)
        assert [row.at for row in found] == list(DAYS)
        starts = [query["observation_start"] for _, query in here.asked]
        ends = [query["observation_end"] for _, query in here.asked]
        assert len(starts) == 3
        assert all(start > end for start, end in zip(starts[1:], ends, strict=False))
        with pytest.raises(Refused, match="40 years"):
            await feed.prints("DGS10", Millis(0), Millis(60 * 365 * DAY_MS))


async def test_an_answer_that_stops_before_its_own_count_is_malformed() -> None:
    async with asking(question("fred prints")) as (here, feed):
        here.change = lambda path, document: {**document, "observations": document["observations"][:-2]}
        with pytest.raises(Malformed, match=r"\b7 observations.*\b5\b"):
            await feed.prints("DGS10", FIRST, LAST)


async def test_the_key_is_in_no_error_and_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with asking(question("fred prints")) as (here, feed):
        await feed.prints("DGS10", FIRST, LAST)
        assert here.asked[-1][1]["api_key"] == figures.KEY
        here.mood = figures.NO_KEY
        with pytest.raises(Unavailable) as told:
            await feed.prints("DGS10", FIRST, LAST)
    assert figures.KEY not in str(told.value)
    assert told.value.__cause__ is None
    assert figures.KEY not in caplog.text


@pytest.mark.parametrize("shown", ["k&y/+ 1", "k%26y%2F%2B%201", "k%26y/%2B+1", "k%26y%2f%2b+1"])
async def test_a_key_is_in_no_log_as_addresses_write_it(shown: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    web = WebService("FRED", "https://mirror.example/fred", secret="k&y/+ 1")
    logging.getLogger("httpx2").info("GET https://mirror.example/fred?api_key=%s", shown)
    logging.getLogger("httpx2").info("GET https://mirror.example/fred?api_key=%s", "another")
    await web.close()
    assert [record.args for record in caplog.records] == [("another",)]


async def test_a_key_does_not_travel_in_the_open() -> None:
    with pytest.raises(UsageError, match="https"):
        WebService("FRED", "http://mirror.example/fred", secret="key")
    with pytest.raises(UsageError, match="key"):
        WebService("FRED", "https://mirror.example/fred", secret="k\ney")
    await WebService("FRED", "http://localhost:1", secret="key").close()


# -- Yahoo


async def test_a_day_that_still_trades_has_no_close() -> None:
    world = World(prints=prints(1.0, 2.0, 3.0))
    for over, count in ((True, 3), (False, 2)):
        async with vendor(figures.yahoo(world, session_over=over)) as here:
            feed = Yahoo(WebService("Yahoo", here.url, patience=QUICK))
            assert len(await feed.prints("DXY", FIRST, LAST)) == count
            await feed.close()


async def test_a_session_that_has_rolled_on_is_over() -> None:
    """On a Saturday the endpoint tells Monday's period beside Friday's last trade: Friday has its close."""
    world = World(prints=prints(1.0, 2.0, 3.0))
    async with vendor(figures.yahoo(world, rolled=True)) as here:
        feed = Yahoo(WebService("Yahoo", here.url, patience=QUICK))
        assert [row.value for row in await feed.prints("DXY", FIRST, LAST)] == [1.0, 2.0, 3.0]
        await feed.close()


@pytest.mark.parametrize(("second", "left"), [(2.5, 2.5), (None, 2.0)])
async def test_of_two_rows_of_one_day_the_later_counts(second: float | None, left: float) -> None:
    async with asking(question("yahoo prints")) as (here, feed):
        plain = await feed.prints("NASDAQ", FIRST, LAST)

        def spoil(path: str, document: Any) -> Any:
            (result,) = document["chart"]["result"]
            (quote,) = result["indicators"]["quote"]
            quote["close"] = [*quote["close"][:2], second, *quote["close"][2:]]
            quote["close"][1] = 2.0
            result["timestamp"].insert(2, result["timestamp"][1] + 3 * 3_600)
            return document

        here.change = spoil
        found = await feed.prints("NASDAQ", FIRST, LAST)
        assert [row.at for row in found] == [row.at for row in plain]
        assert found[1].value == left


async def test_a_null_is_a_day_without_a_close() -> None:
    async with asking(question("yahoo prints")) as (here, feed):

        def spoil(path: str, document: Any) -> Any:
            document["chart"]["result"][0]["indicators"]["quote"][0]["close"][2] = None
            return document

        here.change = spoil
        found = await feed.prints("NASDAQ", FIRST, LAST)
        assert [row.at for row in found] == [day for day in DAYS if day != DAYS[2]]


async def test_times_without_as_many_closes_are_malformed() -> None:
    async with asking(question("yahoo prints")) as (here, feed):

        def spoil(path: str, document: Any) -> Any:
            document["chart"]["result"][0]["timestamp"].pop()
            return document

        here.change = spoil
        with pytest.raises(Malformed, match=r"5 times.*6 closes"):
            await feed.prints("NASDAQ", FIRST, LAST)


async def test_a_days_close_is_released_when_the_day_is_over_at_the_exchange() -> None:
    async with asking(question("yahoo prints")) as (_, feed):
        for row in await feed.prints("GOLD", FIRST, LAST):
            assert row.at % DAY_MS == 0
            assert row.released == row.at + DAY_MS + 4 * HOUR_MS


NEW_YORK_MIDNIGHTS = [(2025, 10, 30, 4), (2025, 10, 31, 4), (2025, 11, 3, 5), (2025, 11, 4, 5)]
"""Gold's days as Yahoo stamps them, in UTC: the clocks of New York went back on the second of November."""


@pytest.mark.parametrize(("asked_on", "offset"), [((2025, 11, 1, 15), -14_400), ((2026, 1, 20, 15), -18_000)])
async def test_a_day_is_the_exchanges_on_both_sides_of_a_change_of_its_clock(
    asked_on: tuple[int, ...], offset: int
) -> None:
    def seconds(*when: int) -> int:
        return round(datetime(*when, tzinfo=UTC).timestamp())  # type: ignore[arg-type, misc]

    last = seconds(*asked_on)
    stamps = [stamp for when in NEW_YORK_MIDNIGHTS if (stamp := seconds(*when)) < last]

    def spoil(path: str, document: Any) -> Any:
        (result,) = document["chart"]["result"]
        result["meta"] |= {"gmtoffset": offset, "regularMarketTime": last}
        result["meta"]["currentTradingPeriod"]["regular"]["end"] = last + 3_600
        result["timestamp"] = stamps
        result["indicators"]["quote"] = [{"close": [float(place) for place in range(len(stamps))]}]
        return document

    async with asking(question("yahoo prints")) as (here, feed):
        here.change = spoil
        found = await feed.prints("GOLD", Millis(seconds(2025, 10, 1) * 1_000), Millis(last * 1_000))
    assert [(row.at, row.released) for row in found] == [
        (seconds(2025, 10, 30) * 1_000, seconds(2025, 10, 31, 4) * 1_000),
        (seconds(2025, 10, 31) * 1_000, seconds(2025, 11, 1, 4) * 1_000),
        (seconds(2025, 11, 3) * 1_000, seconds(2025, 11, 4, 5) * 1_000),
        (seconds(2025, 11, 4) * 1_000, seconds(2025, 11, 5, 5) * 1_000),
    ][: len(stamps)]


@pytest.mark.parametrize("name", ["", "Nowhere", "America", "../../etc/passwd", "/etc/passwd", "a\0b", "x" * 5_000])
async def test_a_time_zone_that_is_none_is_malformed(name: str) -> None:
    async with asking(question("yahoo prints")) as (here, feed):

        def spoil(path: str, document: Any) -> Any:
            document["chart"]["result"][0]["meta"]["exchangeTimezoneName"] = name
            return document

        here.change = spoil
        with pytest.raises(Malformed, match="exchangeTimezoneName"):
            await feed.prints("GOLD", FIRST, LAST)


# -- mood


async def test_the_index_is_asked_for_as_far_back_as_it_is_wanted() -> None:
    world = World(levels=[Level(Millis(day), 50.0) for day in DAYS])
    async with vendor(figures.fear_greed(world)) as here:
        feed = FearGreed(
            WebService("alternative.me", here.url, patience=QUICK, sleep=no_sleep), lambda: Millis(LAST + HOUR_MS)
        )
        assert len(await feed.levels("index", Millis(DAYS[2]), LAST)) == 4
        assert here.asked[-1] == ("/fng/", {"limit": "5", "format": "json"})
        with pytest.raises(Unavailable, match=r"\bindex\b.*\bgreed\b"):
            await feed.levels("greed", FIRST, LAST)
        await feed.close()


async def test_a_figure_is_not_asked_for_elsewhere() -> None:
    async with asking(question("fred prints")) as (here, feed):
        with pytest.raises(Unavailable, match=r"FRED.*DXY"):
            await feed.prints("DXY", FIRST, LAST)
        assert here.asked == []
    assert isinstance(feed, Fred)
