"""Asking everybody once for somebody who looks now: what came is known from then, who failed is named, nobody waits."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from typing import Any

import pytest

from tests.wire.collecting import END, EVER, OWN, Weather, market, sources
from tests.wire.fakes.series import MemorySeries
from tests.wire.leaping import leaping
from zuno.kernel.errors import Broken, Unavailable, Unreachable
from zuno.kernel.units import Millis
from zuno.markets.feeds import ALTERNATIVE, BINANCE, BYBIT, CHANNELS, DERIBIT, SEARCH
from zuno.markets.market import Symbol
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.data.intake import LAST_SECONDS, Intake, Sources, is_streamed
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Book,
    Feed,
    Heartbeat,
    MacroRelease,
    Mode,
    Quote,
    Text,
    Timeframe,
    alive,
    basis,
    books,
    candles,
    fear_greed,
    macro,
    open_interest,
    texts,
)
from zuno.trading.model.wanted import mark_series, neighbour_series, wanted_series
from zuno.trading.ports.series import Batch, SeriesStore

START = Millis(END - 4 * HOUR_MS)
M1 = candles(BINANCE, "BTCUSDT", Timeframe.M1)
ASKED = {
    str(one)
    for one in (*wanted_series(Symbol("BTCUSDT")), *neighbour_series(Symbol("BTCUSDT")))
    if not is_streamed(one)
}
TAPE = {str(one) for one in wanted_series(Symbol("BTCUSDT")) if is_streamed(one)}


def intake(given: Sources, store: SeriesStore, now: Any, **more: Any) -> Intake:
    async def keep(batch: Batch[Any]) -> None:
        await store.write([batch])

    return Intake(given, store, keep, now, **more)


@pytest.mark.slow
def test_what_everybody_says_is_known_from_the_moment_it_is_looked_at() -> None:
    async def story(now: Any) -> None:
        store = MemorySeries(OWN)
        moment, failures = await intake(sources(await market(), now), store, now).refresh_market(Symbol("BTCUSDT"))
        assert moment == START
        assert failures == dict.fromkeys(TAPE, "a stream is heard only while `zuno data collect` runs")
        bundle = await build_bundle(store, Symbol("BTCUSDT"), Mode.SWING, moment, failures=failures)
        here = {str(block.series) for block in bundle.blocks}
        assert here == ASKED - {
            f"narrative/{SEARCH}/BTC"
        }  # the recording's last is of an hour nobody asks for any more
        assert {gone.what: gone.why for gone in bundle.absent if gone.what in TAPE} == failures
        assert await store.read(M1, Millis(0), EVER, Millis(moment - 1)) == ()

    leaping(START, story)


@pytest.mark.slow
def test_who_fails_is_named_and_who_hangs_keeps_nobody_longer_than_said() -> None:
    async def story(now: Any) -> None:
        truth = await market()
        calm = sources(truth, now)
        hanging = Weather(1, END, bad=1.0)
        hanging.dice.choice = lambda _: "hangs"  # type: ignore[assignment, return-value]
        failing = Weather(1, END, bad=1.0)
        failing.dice.choice = lambda _: "fails"  # type: ignore[assignment, return-value]
        given = replace(
            calm,
            options=sources(truth, now, hanging).options,
            macro=sources(truth, now, failing).macro,
            closed={SEARCH: "the search needs a key"},
        )
        store = MemorySeries(OWN)
        moment, failures = await intake(given, store, now).refresh_market(Symbol("BTCUSDT"))
        assert moment == START + 30_000
        told = {name: why for name, why in failures.items() if name not in TAPE}
        assert {why for name, why in told.items() if name.startswith("macro/")} == {"the venue is away"}
        assert "30 s" in told.pop("options/deribit/BTC") == told.pop("dvol/deribit/BTC")
        assert told.pop(f"narrative/{SEARCH}/BTC") == "the search needs a key"
        assert len(told) == 11
        assert len(await store.read(M1, Millis(0), EVER, moment)) > 100
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    leaping(START, story)


class Slow:
    """A venue that takes its time for every answer."""

    def __init__(self, venue: Any, seconds: float) -> None:
        self._venue = venue
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        async def late(*asked: Any) -> Any:
            await asyncio.sleep(self._seconds)
            return await getattr(self._venue, name)(*asked)

        return late


class Depth:
    """A book of the moment it is asked for, told some seconds later."""

    venue = BINANCE

    def __init__(self, now: Any, seconds: float = 0.5) -> None:
        self._now = now
        self._seconds = seconds
        self.asked: list[int] = []

    async def book(self, symbol: str, depth: int) -> Book:
        self.asked.append(self._now())
        told = Book(self._now(), (Quote(99.0, 1.0),), (Quote(101.0, 1.0),))
        await asyncio.sleep(self._seconds)
        return told


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "waited"), [(0.0, 0), (12.0, 12_000), (25.0, 25_000), (1e6, 30_000)])
def test_no_slow_venue_makes_the_book_old(seconds: float, waited: int) -> None:
    """It is asked for when the others have answered or failed, and looked at when it has come."""

    async def story(now: Any) -> None:
        calm, store, depth = sources(await market(), now), MemorySeries(OWN), Depth(now)
        slow = Slow(calm.options[DERIBIT], seconds)
        given = replace(calm, books={BINANCE: depth}, options={DERIBIT: slow})
        moment, failures = await intake(given, store, now).refresh_market(Symbol("BTCUSDT"))
        assert depth.asked == [START + waited]
        assert moment == START + waited + 500
        bundle = await build_bundle(store, Symbol("BTCUSDT"), Mode.SWING, moment, failures=failures)
        block = bundle.block(books(BINANCE, "BTCUSDT"))
        assert block is not None
        assert (block.age, block.stale) == (1, False)
        assert ("dvol/deribit/BTC" in failures) is (waited == 30_000)

    leaping(START, story)


@pytest.mark.slow
def test_a_book_that_does_not_come_is_waited_for_no_longer_than_said() -> None:
    async def story(now: Any) -> None:
        store = MemorySeries(OWN)
        given = replace(sources(await market(), now), books={BINANCE: Depth(now, 1e6)})
        moment, failures = await intake(given, store, now).refresh_market(Symbol("BTCUSDT"))
        assert moment == START + round(LAST_SECONDS * 1_000)
        assert "10 s" in failures[str(books(BINANCE, "BTCUSDT"))]

    leaping(START, story)


@pytest.mark.slow
def test_a_bug_in_one_feed_costs_its_series_and_is_said(caplog: pytest.LogCaptureFixture) -> None:
    class Odd:
        async def levels(self, name: str, since: Millis, until: Millis) -> Any:
            raise TypeError("'<' not supported between instances of 'str' and 'int'")

    async def story(now: Any) -> None:
        given, store = sources(await market(), now), MemorySeries(OWN)
        given = replace(given, levels={**given.levels, ALTERNATIVE: Odd()})  # type: ignore[dict-item]
        _, failures = await intake(given, store, now).refresh_market(Symbol("BTCUSDT"))
        told = {name: why for name, why in failures.items() if name not in TAPE}
        assert list(told) == [str(fear_greed(ALTERNATIVE))]
        assert "(TypeError)" in told[str(fear_greed(ALTERNATIVE))]
        assert len(await store.read(M1, Millis(0), EVER, EVER)) > 100

    leaping(START, story)
    assert [record.exc_info is not None for record in caplog.records if "fear" in record.getMessage()] == [True]


@pytest.mark.slow
def test_rows_that_cannot_be_are_said_where_the_series_is_absent() -> None:
    interest = open_interest(BINANCE, "BTCUSDT")

    async def story(now: Any) -> None:
        calm, store, sound = sources(await market(), now), MemorySeries(OWN), list[bool]()

        class Odd:
            def __getattr__(self, name: str) -> Any:
                return getattr(calm.derivatives[BINANCE], name)

            async def open_interest(self, symbol: str, since: Millis, until: Millis) -> Any:
                found = await calm.derivatives[BINANCE].open_interest(symbol, since, until)
                return found if sound else [row._replace(value=-5.0) for row in found]

        given = replace(calm, derivatives={**calm.derivatives, BINANCE: Odd()})
        one = intake(given, store, now)
        moment, failures = await one.refresh_market(Symbol("BTCUSDT"))
        assert "rows" in failures[str(interest)]
        assert "-5" in failures[str(interest)]
        bundle = await build_bundle(store, Symbol("BTCUSDT"), Mode.SWING, moment, failures=failures)
        said, kept = (bundle.why_absent(interest) or "").split("; ", 1)
        assert said == failures[str(interest)]
        assert "97 rows" in kept
        sound.append(True)
        _, failures = await one.refresh_market(Symbol("BTCUSDT"))
        assert str(interest) not in failures

    leaping(START, story)


@pytest.mark.slow
@pytest.mark.parametrize("answering", [False, True])
def test_without_a_network_nobody_is_waited_for(answering: bool) -> None:
    """Of each venue but one a question cannot be sent, and the others hang; that one answers or cannot be asked."""

    async def story(now: Any) -> None:
        store, refused = MemorySeries(OWN), set[str]()
        given = sources(await market(), now)

        class Dead(Sources):
            async def ask(self, series: Any, since: Millis, until: Millis) -> Any:
                if answering and series.venue == ALTERNATIVE:
                    return await super().ask(series, since, until)
                if series.venue in refused:
                    await asyncio.sleep(3_600)
                refused.add(series.venue)
                await asyncio.sleep(2)
                raise Unreachable(f"{series.venue} could not be reached")

        dead = Dead(**{field.name: getattr(given, field.name) for field in fields(given)})
        if answering:
            moment, failures = await intake(dead, store, now).refresh_market(Symbol("BTCUSDT"))
            assert (str(M1) in failures, moment >= START + 30_000) == (True, True)
            return
        with pytest.raises(Unavailable, match=rf"{DERIBIT}.*reached"):
            await intake(dead, store, now).refresh_market(Symbol("BTCUSDT"))
        assert now() <= START + 3_000

    leaping(START, story)


@pytest.mark.slow
def test_a_damaged_store_is_nobodys_failure() -> None:
    class Damaged(MemorySeries):
        async def write(self, batches: Any) -> Any:
            raise Broken("the store is damaged.")

    async def story(now: Any) -> None:
        store = Damaged(OWN)
        with pytest.raises(Broken):
            await intake(sources(await market(), now), store, now).refresh_market(Symbol("BTCUSDT"))

    leaping(START, story)


@pytest.mark.slow
def test_streams_that_a_collector_hears_are_no_failure() -> None:
    async def story(now: Any) -> None:
        store = MemorySeries(OWN)
        heard, quiet = alive(Feed.LIQUIDATIONS, BINANCE, "BTCUSDT"), alive(Feed.LIQUIDATIONS, BYBIT, "BTCUSDT")
        await store.write(
            [
                Batch(heard, [Heartbeat(Millis(START - 2 * MINUTE_MS))], START),
                Batch(quiet, [Heartbeat(Millis(START - 9 * MINUTE_MS))], START),
            ]
        )
        _, failures = await intake(sources(await market(), now), store, now).refresh_market(Symbol("BTCUSDT"))
        assert TAPE - set(failures) == {str(heard), "liquidations/binance/BTCUSDT"}

    leaping(START, story)


def test_a_channel_that_is_behind_another_loses_no_post() -> None:
    news = texts(Feed.NEWS, CHANNELS, "BTC")

    async def story(now: Any) -> None:
        quick, late = (
            Text(Millis(START - n * MINUTE_MS), name, "1", "words") for n, name in ((1, "quick"), (59, "late"))
        )
        shown, store = [quick], MemorySeries(OWN)

        class Pages:
            venue, feed = CHANNELS, Feed.NEWS

            async def texts(self, about: str, since: Millis, until: Millis) -> list[Text]:
                return [text for text in shown if since <= text.at <= until]

        one = intake(Sources(texts={CHANNELS: Pages()}), store, now)
        await one.visit(news)
        shown.append(late)
        await one.visit(news)
        assert await store.read(news, Millis(0), EVER, EVER) == (late, quick)

    leaping(START, story)


@pytest.mark.slow
def test_a_search_is_not_paid_for_again_while_its_answer_is_young() -> None:
    class Paid:
        venue, feed, asked = SEARCH, Feed.NARRATIVE, 0

        async def texts(self, about: str, since: Millis, until: Millis) -> list[Text]:
            self.asked += 1
            return [Text(until, SEARCH, str(self.asked), "words")]

    async def story(now: Any) -> None:
        paid, store = Paid(), MemorySeries(OWN)
        given = replace(sources(await market(), now), texts={SEARCH: paid})
        for pause, asked in ((0, 1), (5 * 3_600, 1), (3_601, 2)):
            await asyncio.sleep(pause)
            await intake(given, store, now).refresh_market(Symbol("BTCUSDT"))
            assert paid.asked == asked
        assert len(await store.read(texts(Feed.NARRATIVE, SEARCH, "BTC"), Millis(0), EVER, EVER)) == 2

    leaping(START - 8 * HOUR_MS, story)


@pytest.mark.slow
def test_a_hole_that_no_venue_fills_is_let_be_after_some_tries() -> None:
    async def story(now: Any) -> None:
        store, truth = MemorySeries(OWN), await market()
        bars = await truth.read(M1, Millis(START - 3 * HOUR_MS), START, START)
        await store.write([Batch(M1, [*bars[:50], *bars[60:-5]])])
        calm, asked = sources(truth, now), list[int]()

        class Gone:
            venue = BINANCE

            async def candles(self, symbol: str, timeframe: Timeframe, since: Millis, until: Millis) -> Any:
                if since < bars[60].at:
                    asked.append(since)
                    raise Unavailable("that time is gone")
                return await calm.candles[BINANCE].candles(symbol, timeframe, since, until)

        one = intake(replace(calm, candles={BINANCE: Gone()}), store, now)
        for _ in range(6):  # what lies before the first row is a hole too
            with pytest.raises(Unavailable):
                await one.visit(M1)
        for _ in range(3):
            await one.visit(M1)
        assert len(asked) == 6
        assert (await store.read(M1, bars[60].at, EVER, EVER)) == bars[60:]  # the news came all the while
        assert one.given_up == {M1: [(START - 7 * DAY_MS, bars[0].at), (bars[50].at, bars[60].at)]}

    leaping(START, story)


@pytest.mark.slow
def test_a_beginning_that_a_venue_leaves_out_without_a_word_is_told() -> None:
    async def story(now: Any) -> None:
        store, truth = MemorySeries(OWN), await market()
        bars = await truth.read(M1, Millis(START - 3 * HOUR_MS), START, START)
        await store.write([Batch(M1, bars)])
        calm = sources(truth, now)

        class Short:
            venue = BINANCE

            async def candles(self, symbol: str, timeframe: Timeframe, since: Millis, until: Millis) -> Any:
                found = await calm.candles[BINANCE].candles(symbol, timeframe, since, until)
                return [bar for bar in found if bar.at >= bars[0].at - HOUR_MS]

        one = intake(replace(calm, candles={BINANCE: Short()}), store, now)
        await one.visit(M1)
        assert one.given_up == {M1: [(START - 7 * DAY_MS, bars[0].at - HOUR_MS)]}

    leaping(START, story)


@pytest.mark.slow
def test_each_hole_has_its_own_tries_and_what_no_venue_has_is_told() -> None:
    async def story(now: Any) -> None:
        store, truth = MemorySeries(OWN), await market()
        bars = await truth.read(M1, Millis(START - 3 * HOUR_MS), START, START)
        await store.write([Batch(M1, [*bars[:50], *bars[60:80], *bars[90:110], *bars[120:]])])
        calm = sources(truth, now)

        class Gone:
            venue = BINANCE

            async def candles(self, symbol: str, timeframe: Timeframe, since: Millis, until: Millis) -> Any:
                if bars[49].at < since < bars[60].at:
                    raise Unavailable("that time is gone")
                if bars[79].at < since < bars[90].at:
                    return ()
                return await calm.candles[BINANCE].candles(symbol, timeframe, since, until)

        one = intake(replace(calm, candles={BINANCE: Gone()}), store, now)
        for _ in range(3):
            with pytest.raises(Unavailable):
                await one.visit(M1)
        await one.visit(M1)
        first = (await truth.read(M1, Millis(0), EVER, EVER))[0].at  # the recording is shorter than what is asked for
        before = (START - 7 * DAY_MS, first)
        assert one.given_up == {M1: [before, (bars[50].at, bars[60].at), (bars[80].at, bars[90].at)]}
        assert await store.read(M1, bars[90].at, bars[-1].at, EVER) == bars[90:]

    leaping(START, story)


def test_a_day_that_is_revised_months_later_is_heard_of() -> None:
    class Revising:
        venue, figures = "fred", ("CPIAUCSL",)

        def __init__(self) -> None:
            self.told = [
                MacroRelease(Millis(START - days * DAY_MS), 3.0, Millis(START - days * DAY_MS)) for days in (90, 60)
            ]

        async def prints(self, figure: str, since: Millis, until: Millis) -> list[MacroRelease]:
            return [one for one in self.told if since <= one.at <= until]

    async def story(now: Any) -> None:
        venue, store, series = Revising(), MemorySeries(OWN), macro("fred", "CPIAUCSL")
        one = intake(Sources(macro={"fred": venue}), store, now)
        await one.visit(series)
        venue.told.append(MacroRelease(venue.told[0].at, 3.25, START))
        await one.visit(series)
        assert [row.value for row in await store.read(series, Millis(0), EVER, EVER)] == [3.25, 3.0]

    leaping(START, story)


@pytest.mark.slow
def test_where_a_venue_is_ahead_it_is_looked_at_from_its_own_moment() -> None:
    async def story(now: Any) -> None:
        store, mark = MemorySeries(OWN), basis(BINANCE, "BTCUSDT")
        venue = sources(await market(), lambda: Millis(now() + 30_000))
        moment, _ = await intake(venue, store, now).refresh_market(Symbol("BTCUSDT"))
        assert moment == START
        assert (await store.read(mark, Millis(0), moment, moment, newest=1))[0].at == START

    leaping(START - 10_000, story)


def test_nobody_is_known_for_a_series_of_another_venue() -> None:
    async def story(now: Any) -> None:
        for series in wanted_series(Symbol("BTCUSDT")):
            with pytest.raises(Unavailable, match=r"Nobody|stream"):
                await Sources().ask(series, START, START)

    leaping(START, story)


def test_marks_of_everything_the_desk_trades_or_holds_are_asked_for() -> None:
    async def story(now: Any) -> None:
        store, asked = MemorySeries(OWN), list[str]()
        given = sources(await market(), now)

        class Noting(Intake):
            async def visit(self, series: Any, *args: Any, **more: Any) -> Any:
                asked.append(str(series))
                return await super().visit(series, *args, **more)

        async def keep(batch: Batch[Any]) -> None:
            await store.write([batch])

        several = [Symbol("BTCUSDT"), Symbol("SOLUSDT")]
        await Noting(given, store, keep, now).refresh_market(Symbol("BTCUSDT"), several)
        assert str(mark_series(Symbol("SOLUSDT"))) in asked
        assert str(mark_series(Symbol("ETHUSDT"))) not in asked

    leaping(START, story)
