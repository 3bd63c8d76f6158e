"""The past of a symbol fetched from recorded venues: whole, once, and what cannot be had by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.wire.collecting import END, EVER, OWN, market, rows, sources
from tests.wire.fakes.series import MemorySeries
from zuno.kernel.errors import Unavailable, UsageError
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, OKX, UPBIT
from zuno.markets.market import Symbol
from zuno.trading.data.intake import LISTED_SINCE, SETTLING, Sources, find_missing, find_missing_spans, split_into_pages
from zuno.trading.measure.data_quality import complete_at
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Feed,
    Series,
    Timeframe,
    candles,
    funding,
    macro,
    open_interest,
    texts,
)
from zuno.trading.model.wanted import wanted_series
from zuno.trading.ports.series import Batch
from zuno.trading.service import download
from zuno.trading.service.download import Downloads

M1 = candles(BINANCE, "BTCUSDT", Timeframe.M1)
W1 = candles(BINANCE, "BTCUSDT", Timeframe.W1)
NOW = Millis(END)


def now() -> Millis:
    return NOW


class Counting:
    """A venue that says what was asked of it, and can stop answering."""

    def __init__(self, feed: Any) -> None:
        self._feed = feed
        self.asked: list[tuple[str, int, int]] = []
        self.answers = 10**9

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self._feed, name)

        async def ask(*given: Any) -> Any:
            self.answers -= 1
            if self.answers < 0:
                raise Unavailable("The venue is away")
            self.asked.append((f"{name}/{given[0]}", *given[-2:]))
            return await plain(*given)

        return ask if callable(plain) else plain


async def counted(**more: Any) -> tuple[Sources, Counting]:
    given = sources(await market(), now)
    binance = Counting(given.candles[BINANCE])
    each = {**given.candles, BINANCE: binance}
    return replace(given, candles=each, derivatives=each, levels=each, **more), binance  # type: ignore[arg-type]


def silent(line: str) -> None:
    pass


def truth(series: Series[Any], since: int, until: int) -> tuple[Any, ...]:
    return tuple(row for one, mine in rows() if one == series for row in mine if since <= row.at < until)


@pytest.mark.slow
async def test_everything_that_has_a_past_is_here_afterwards() -> None:
    given, _ = await counted()
    store, lines = MemorySeries(OWN), list[str]()
    view = await Downloads(given, store, now, read_here=True).download("btc", "10h", "4h", lines.append)
    since, until = NOW - 10 * HOUR_MS, NOW - 4 * HOUR_MS
    assert (view.ok, view.symbol, view.since, view.until, view.notes) == (True, "BTCUSDT", since, until - 1, ())
    assert {one.series for one in view.series} | set(view.not_downloadable) == set(
        map(str, wanted_series(Symbol("BTCUSDT")))
    )
    for series in wanted_series(Symbol("BTCUSDT")):
        if str(series) not in view.not_downloadable:
            assert await store.read(series, Millis(0), EVER, EVER) == truth(series, since, until), str(series)
    assert view.new == sum(one.here for one in view.series) == sum(span.count for span in await store.spans())
    assert any("candles/binance/BTCUSDT/1m: 360 rows" in line for line in lines)


@pytest.mark.slow
async def test_what_has_no_past_is_named_with_the_reason() -> None:
    given, _ = await counted(closed={"fred": "FRED needs a key"})
    view = await Downloads(given, MemorySeries(OWN), now, read_here=False).download("BTCUSDT", "40d", "38d", silent)
    reasons = view.not_downloadable
    for name in ("liquidations/binance/BTCUSDT", "whales/binance/BTCUSDT/alive"):
        assert "stream" in reasons[name]
        assert "`zuno data collect`" in reasons[name]
    for name in ("book/binance/BTCUSDT", "options/deribit/BTC", "basis/okx/BTCUSDT", "news/channels/BTC"):
        assert "stream" not in reasons[name]
        assert "`zuno data collect`" in reasons[name]
    assert "now" in reasons["funding/bybit/BTCUSDT/next"]
    assert reasons["macro/fred/DGS2"] == "FRED needs a key"
    assert "2025-12-03 00:00" in reasons["open_interest/binance/BTCUSDT"]
    assert "funding/okx/BTCUSDT" not in reasons
    assert "open_interest/bybit/BTCUSDT" not in reasons
    assert "ZUNO_RECORDING=own" in view.notes[0]


@pytest.mark.slow
async def test_a_venue_is_not_asked_for_what_it_no_longer_keeps() -> None:
    given, binance = await counted()
    downloads, lines = Downloads(given, MemorySeries(OWN), now, read_here=True), list[str]()
    view = await downloads.download("BTCUSDT", "45d", None, lines.append)
    for what, oldest in (("open_interest", 29), ("long_short", 29), ("funding", 45)):
        assert min(low for asked, low, _ in binance.asked if asked == f"{what}/BTCUSDT") == NOW - oldest * DAY_MS
    told = {one.series: one.beyond for one in view.series if one.beyond}
    assert set(told) == {
        f"{feed}/{venue}/BTCUSDT" for feed in ("open_interest", "long_short") for venue in (BINANCE, OKX)
    }
    assert "2025-12-03 00:00" in told["open_interest/binance/BTCUSDT"]
    (line,) = (line for line in lines if line.startswith("long_short/okx/BTCUSDT"))
    assert "2025-12-03 00:00" in line


@pytest.mark.slow
async def test_history_is_known_from_when_it_was_complete() -> None:
    given, _ = await counted()
    store = MemorySeries(OWN)
    await Downloads(given, store, now, read_here=True).download("BTCUSDT", "5h", "4h", silent)
    bar = (await store.read(M1, Millis(0), EVER, EVER))[0]
    known = complete_at(M1, bar)
    assert await store.read(M1, bar.at, bar.at, known) == (bar,)
    assert await store.read(M1, bar.at, bar.at, Millis(known - 1)) == ()


async def test_what_fills_a_hole_is_known_from_now_and_what_lies_around_as_history() -> None:
    given, _ = await counted()
    store = MemorySeries(OWN)
    past = truth(M1, NOW - 6 * HOUR_MS, NOW - 2 * HOUR_MS)
    await store.write([Batch(M1, [*past[60:90], *past[100:180]])])
    await Downloads(given, store, now, read_here=True).download("BTCUSDT", "6h", "2h", silent)
    assert await store.read(M1, Millis(0), EVER, NOW) == past
    assert await store.read(M1, Millis(0), EVER, Millis(NOW - 1)) == past[:90] + past[100:]
    bar = past[-1]
    assert await store.read(M1, bar.at, bar.at, complete_at(M1, bar)) == (bar,)


@pytest.mark.slow
@pytest.mark.parametrize(("since", "until"), [("5h", "3h"), ("6h", "2h"), ("4h", "3h")])
async def test_a_hole_is_filled_from_now_on_however_little_around_it_is_asked_for(since: str, until: str) -> None:
    """A collector was away for two hours; at a moment in them nobody knew more, and nobody does afterwards."""
    given, _ = await counted()
    store, past = MemorySeries(OWN), truth(M1, NOW - 6 * HOUR_MS, NOW - 2 * HOUR_MS)
    await store.write([Batch(M1, [bar], Millis(complete_at(M1, bar) + 2_000)) for bar in (*past[:60], *past[180:])])
    before = {at: await store.read(M1, Millis(0), EVER, at) for at in (past[150].at, Millis(NOW - 1))}
    assert (await Downloads(given, store, now, read_here=True).download("BTCUSDT", since, until, silent)).new > 0
    for at, known in before.items():
        assert await store.read(M1, Millis(0), EVER, at) == known
    assert len(await store.read(M1, Millis(0), EVER, NOW)) > 120


@pytest.mark.slow
async def test_a_print_that_is_told_otherwise_later_changes_no_past() -> None:
    """Prints are asked for again whatever is here."""
    given, _ = await counted()
    store, prints = MemorySeries(OWN), macro("fred", "DGS10")
    past = truth(prints, NOW - 40 * DAY_MS, NOW - 2 * DAY_MS)
    other = [row._replace(value=row.value + 1.0) for row in past]
    await store.write([Batch(prints, other)])
    before = await store.read(prints, Millis(0), EVER, Millis(NOW - 1))
    assert len(before) > 5
    await Downloads(given, store, now, read_here=True).download("BTCUSDT", "40d", "2d", silent)
    assert await store.read(prints, Millis(0), EVER, Millis(NOW - 1)) == before
    after = await store.read(prints, Millis(0), EVER, NOW)
    assert {row.at: row.value + 1.0 for row in after} == {row.at: row.value for row in before}


@pytest.mark.slow
async def test_what_is_here_is_not_fetched_again() -> None:
    given, binance = await counted()
    store = MemorySeries(OWN)
    downloads = Downloads(given, store, now, read_here=True)
    await downloads.download("BTCUSDT", "6h", "2h", silent)
    binance.asked.clear()
    again = await downloads.download("BTCUSDT", "6h", "2h", silent)
    assert (again.ok, again.new) == (True, 0)
    assert {what for what, _, _ in binance.asked} <= {"funding/BTCUSDT", "candles/BTCUSDT"}  # of which nothing was
    assert all(high - low >= 3 * HOUR_MS for _, low, high in binance.asked)
    wider = await downloads.download("BTCUSDT", "7h", "1h", silent)
    stretches = [(low, high) for what, low, high in binance.asked if what == "candles/BTCUSDT"]
    assert (NOW - 7 * HOUR_MS, NOW - 6 * HOUR_MS - 1) in stretches
    assert (NOW - 2 * HOUR_MS - MINUTE_MS + 1, NOW - HOUR_MS - 1) in stretches
    assert {one.series: one.new for one in wider.series}[str(M1)] == 120


@pytest.mark.slow
async def test_what_was_broken_off_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "BARS_A_PAGE", 60)
    given, binance = await counted()
    store, lines = MemorySeries(OWN), list[str]()
    downloads = Downloads(given, store, now, read_here=True)
    binance.answers = 2
    first = await downloads.download("BTCUSDT", "5h", None, lines.append)
    assert not first.ok
    (minutes,) = (one for one in first.series if one.series == str(M1))
    assert (minutes.new, minutes.here, minutes.failure) == (120, 120, "The venue is away")
    assert any(re.match(rf"{M1}: 60 .*\b2025-12-31 20:00 UTC$", line) for line in lines)
    assert any("missing" in note for note in first.notes)
    others = [one for one in first.series if "/binance/" not in one.series]
    assert all(one.failure == "" for one in others)
    binance.answers, binance.asked = 10**9, []
    second = await downloads.download("BTCUSDT", "5h", None, silent)
    assert (second.ok, {one.series: one.new for one in second.series}[str(M1)]) == (True, 180)
    assert min(low for what, low, _ in binance.asked if what == "candles/BTCUSDT") >= NOW - 5 * HOUR_MS
    assert await store.read(M1, Millis(0), EVER, EVER) == truth(M1, NOW - 5 * HOUR_MS, NOW)


@pytest.mark.slow
async def test_a_venue_that_hangs_is_told() -> None:
    given, binance = await counted()

    async def hang(*asked: Any) -> Sequence[Any]:
        import asyncio

        await asyncio.sleep(60)
        return ()

    binance.candles = hang  # type: ignore[attr-defined]
    downloads = Downloads(given, MemorySeries(OWN), now, read_here=True, patience=0.05)
    view = await downloads.download("BTCUSDT", "3h", "2h", silent)
    (one,) = (one for one in view.series if one.series == str(M1))
    assert "0.05 s" in one.failure


class Forgetful(Counting):
    """Leaves stretches of minutes out without a word."""

    def __init__(self, feed: Any, *stretches: tuple[int, int]) -> None:
        super().__init__(feed)
        self.stretches = stretches

    async def candles(self, symbol: str, timeframe: Timeframe, since: Millis, until: Millis) -> Any:
        bars = await self._feed.candles(symbol, timeframe, since, until)
        if timeframe is not Timeframe.M1:
            return bars
        return [bar for bar in bars if not any(low <= bar.at < high for low, high in self.stretches)]


@pytest.mark.slow
async def test_what_a_venue_leaves_out_without_a_word_is_not_complete() -> None:
    given, _ = await counted()
    at = NOW - 5 * HOUR_MS
    venue = Forgetful(given.candles[BINANCE], (at, at + 20 * MINUTE_MS))
    given = replace(given, candles={**given.candles, BINANCE: venue})
    downloads, lines = Downloads(given, MemorySeries(OWN), now, read_here=True), list[str]()
    view = await downloads.download("BTCUSDT", "6h", "2h", lines.append)
    (failed,) = (one for one in view.series if one.failure)
    told = "binance told nothing from 2025-12-31 19:00 to 2025-12-31 19:20 UTC"
    assert (view.ok, failed.series, failed.here, failed.failure) == (False, str(M1), 220, told)
    assert f"{M1}: {told}" in lines
    assert any("1 series" in note for note in view.notes)
    venue.stretches = ()
    assert (await downloads.download("BTCUSDT", "6h", "2h", silent)).ok
    venue.stretches = ((at, at + MINUTE_MS), (at + 5 * MINUTE_MS, at + 9 * MINUTE_MS), (NOW - 3 * HOUR_MS, NOW))
    again = Downloads(given, MemorySeries(OWN), now, read_here=True)
    (failed,) = (one for one in (await again.download("BTCUSDT", "6h", "2h", silent)).series if one.failure)
    assert "19:00 to 2025-12-31 19:01" in failed.failure


@pytest.mark.slow
async def test_a_venue_that_leaves_out_the_beginning_is_not_complete() -> None:
    given, _ = await counted()
    venue = Forgetful(given.candles[BINANCE], (0, NOW - 3 * HOUR_MS))
    given = replace(given, candles={**given.candles, BINANCE: venue})
    view = await Downloads(given, MemorySeries(OWN), now, read_here=True).download("BTCUSDT", "10h", "2h", silent)
    assert not view.ok
    failed = {one.series: one.failure for one in view.series if one.failure}
    assert list(failed) == [str(M1)]
    assert re.search(r"\bbinance\b.* 2025-12-31 14:00 .* 2025-12-31 21:00 UTC$", failed[str(M1)])


@pytest.mark.slow
async def test_a_venue_that_tells_nothing_at_all_is_not_complete() -> None:
    given, _ = await counted()
    venue = Forgetful(given.candles[BINANCE], (0, NOW))
    given = replace(given, candles={**given.candles, BINANCE: venue})
    view = await Downloads(given, MemorySeries(OWN), now, read_here=True).download("BTCUSDT", "6h", "2h", silent)
    failed = {one.series: one.failure for one in view.series if one.failure}
    assert list(failed) == [str(M1)]
    assert re.search(r"\bbinance\b.* 2025-12-31 18:00 .* 2025-12-31 22:00 UTC$", failed[str(M1)])


@pytest.mark.parametrize(
    ("symbol", "since", "until", "why"),
    [
        ("DOGEUSDT", "2d", None, "is not traded here"),
        ("BTCUSDT", "someday", None, "is not a time"),
        ("BTCUSDT", "2d", "soon", "is not a time"),
        ("BTCUSDT", "2025-02-01", "2025-01-01", "write the earlier date first"),
        ("BTCUSDT", "2025-02-01", "2025-02-01", "empty period"),
        ("BTCUSDT", "2026-01-02", None, "in the future"),
        ("BTCUSDT", "2025-12-01", "2026-01-02", "in the future"),
        ("BTCUSDT", "1999-01-01", None, "2009-01-03"),
    ],
)
async def test_a_wish_that_cannot_be_read_is_told(symbol: str, since: str, until: str | None, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        await Downloads(Sources(), MemorySeries(OWN), now, read_here=True).download(symbol, since, until, silent)


# -- what is missing, and in which parts it is asked for


def test_bars_that_are_missing_are_found_to_the_bar() -> None:
    at = Millis(NOW - HOUR_MS)
    minutes = [at + n * MINUTE_MS for n in range(10)]
    last = minutes[-1]
    assert find_missing(M1, minutes, at, last) == []
    assert find_missing(M1, minutes, at - 30_000, last + MINUTE_MS - 1) == []  # no bar opens in between
    assert find_missing(M1, minutes, at - MINUTE_MS, last) == [(at - MINUTE_MS, at - 1)]
    assert find_missing(M1, minutes, at, last + MINUTE_MS) == [(last + 1, last + MINUTE_MS)]
    assert find_missing(M1, [*minutes[:3], *minutes[5:]], at, last) == [(minutes[2] + 1, minutes[5] - 1)]
    assert find_missing(M1, [], at, last) == [(at, last)]
    monday = Timeframe.W1.floor(NOW)
    weeks = [monday - 2 * 7 * DAY_MS, monday - 7 * DAY_MS]
    assert find_missing(W1, weeks, weeks[0], weeks[1] + 6 * DAY_MS) == []
    assert find_missing(W1, weeks, weeks[0], monday) == [(weeks[1] + 1, monday)]


def test_points_that_come_too_late_after_each_other_have_lost_some() -> None:
    rates = funding(BINANCE, "BTCUSDT")
    at = NOW - 10 * DAY_MS
    paid = [at + n * 8 * HOUR_MS + n for n in range(6)]  # venues are some milliseconds late
    assert find_missing(rates, paid, at, paid[-1] + 3 * HOUR_MS) == []
    assert find_missing(rates, [*paid[:2], *paid[3:]], at, paid[-1]) == [(paid[1] + 1, paid[3] - 1)]
    assert find_missing(rates, paid, at - 9 * HOUR_MS, paid[-1]) == [(at - 9 * HOUR_MS, at - 1)]
    for series in (macro("fred", "DGS2"), texts(Feed.NEWS, "channels", "BTC")):
        assert find_missing(series, paid, at, NOW) == [(at, NOW)]


def test_a_bar_is_owed_when_it_is_closed_and_settled() -> None:
    at = Millis(NOW - HOUR_MS)
    minutes = [at + n * MINUTE_MS for n in range(10)]
    closed = minutes[-1] + MINUTE_MS
    assert find_missing_spans(M1, minutes, at, NOW, Millis(closed + MINUTE_MS + SETTLING - 1)) == []
    assert find_missing_spans(M1, minutes, at, NOW, Millis(closed + MINUTE_MS + SETTLING)) == [
        (closed, closed + MINUTE_MS)
    ]
    assert find_missing_spans(M1, minutes, at, closed - 1, NOW) == []
    assert find_missing_spans(M1, minutes, at - DAY_MS, closed - 1, NOW) == [(at - DAY_MS, at)]
    assert find_missing_spans(M1, minutes, at - MINUTE_MS + 1, closed - 1, NOW) == []  # none opened in between
    assert find_missing_spans(M1, minutes, at - MINUTE_MS, closed - 1, NOW) == [(at - MINUTE_MS, at)]
    early = [LISTED_SINCE + n * MINUTE_MS for n in range(-5, 5)]
    assert (
        find_missing_spans(M1, early, LISTED_SINCE - DAY_MS, early[-1], NOW) == []
    )  # there may have been no market yet
    assert find_missing_spans(M1, early[6:], LISTED_SINCE - DAY_MS, early[-1], NOW) == [(LISTED_SINCE, early[6])]
    assert find_missing_spans(M1, minutes[:2] + minutes[4:], at, closed - 1, NOW) == [(minutes[2], minutes[4])]
    monday = Timeframe.W1.floor(NOW - 7 * DAY_MS)
    assert find_missing_spans(W1, [], monday, NOW, NOW) == [(monday, Timeframe.W1.floor(NOW))]
    assert find_missing_spans(W1, [], monday + 1, NOW, NOW) == []  # no week opened in it and is over


def test_a_point_is_owed_when_the_next_is_due() -> None:
    rates, late = funding(BINANCE, "BTCUSDT"), 8 * HOUR_MS + MINUTE_MS
    at = NOW - 10 * DAY_MS
    paid = [at + n * 8 * HOUR_MS for n in range(6)]
    assert find_missing_spans(rates, paid, at, NOW, Millis(paid[-1] + 2 * late)) == []
    assert find_missing_spans(rates, paid, at, NOW, NOW) == [(paid[-1], NOW - late)]
    assert find_missing_spans(rates, [*paid[:2], *paid[3:]], at, paid[-1], NOW) == [(paid[1], paid[3])]
    assert find_missing_spans(rates, paid, at - late + 1, paid[-1], NOW) == []
    assert find_missing_spans(rates, paid, at - late, paid[-1], NOW) == [(at - late, at)]
    assert find_missing_spans(rates, [], at, at + late, NOW) == []
    assert find_missing_spans(rates, [], at, at + late + 1, NOW) == [(at, at + late + 2)]
    quiet = candles(UPBIT, "KRW-BTC", Timeframe.H1)
    for series in (quiet, macro("fred", "DGS2"), texts(Feed.NEWS, "channels", "BTC")):
        assert find_missing_spans(series, [], at, NOW, NOW) == find_missing_spans(series, paid, at, NOW, NOW) == []


def test_open_interest_is_asked_for_in_hours_and_then_in_minutes() -> None:
    near = NOW - 2 * DAY_MS
    for venue in (BINANCE, OKX):
        series = open_interest(venue, "BTCUSDT")
        assert list(split_into_pages(series, Millis(NOW - 9 * DAY_MS), NOW)) == [
            (NOW - 9 * DAY_MS, near - 1),
            (near, NOW),
        ]
        assert list(split_into_pages(series, Millis(NOW - DAY_MS), NOW)) == [(NOW - DAY_MS, NOW)]
        assert list(split_into_pages(series, Millis(near), NOW)) == [(near, NOW)]


def test_many_bars_are_asked_for_in_parts_that_touch() -> None:
    parts = list(split_into_pages(M1, Millis(NOW - 25_000 * MINUTE_MS), NOW))
    assert [high - low + 1 for low, high in parts] == [10_000 * MINUTE_MS, 10_000 * MINUTE_MS, 5_000 * MINUTE_MS + 1]
    assert all(high + 1 == low for (_, high), (low, _) in pairwise(parts))
    assert list(split_into_pages(M1, NOW, NOW)) == [(NOW, NOW)]
