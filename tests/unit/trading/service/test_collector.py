"""The collector on an invented market under a clock that leaps: calm, in bad weather, ended, killed and begun again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.examples import mark_all_but
from tests.wire.collecting import END, EVER, OWN, Weather, collected, collector, market, radio, rows, sources
from tests.wire.fakes.alerts import SeatInMemory
from tests.wire.fakes.series import MemorySeries
from tests.wire.leaping import leaping
from tests.wire.vendors import binance, living
from tests.wire.vendors.serving import Query, vendor
from tests.wire.vendors.world import World
from zuno.adapters.venues.binance import VENDOR, Binance
from zuno.adapters.venues.exchange import ExchangeClient
from zuno.kernel.errors import Broken, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, BYBIT, DERIBIT, SEARCH
from zuno.markets.market import Symbol
from zuno.trading.data.intake import Sources, is_snapshot_only, is_streamed, kept_since, poll_schedule_of
from zuno.trading.measure.data_quality import complete_at
from zuno.trading.model.market import (
    HOUR_MS,
    MINUTE_MS,
    STALE_AFTER,
    Candle,
    Feed,
    Heartbeat,
    Level,
    Series,
    Text,
    Timeframe,
    alive,
    basis,
    candles,
    open_interest,
    texts,
)
from zuno.trading.model.wanted import wanted_series
from zuno.trading.ports.series import Batch, WriteCounts
from zuno.trading.service.collector import LONGEST_BACKOFF, SETTLED, BatchWriter, Collector, CollectView

START = Millis(END - 4 * HOUR_MS)
M1 = candles(BINANCE, "BTCUSDT", Timeframe.M1)
OI = open_interest(BINANCE, "BTCUSDT")
RANGED = [one for one in wanted_series(Symbol("BTCUSDT")) if not is_snapshot_only(one)]
NARRATED = {one for one in RANGED if one.feed is Feed.NARRATIVE}
"""A search tells of now alone: who asked at another time has another answer."""


def truth(series: Series[Any], since: int, until: int) -> list[Any]:
    given = next((mine for one, mine in rows() if one == series), ())
    return [row for row in given if since <= row.at and complete_at(series, row) <= until]


async def kept(store: MemorySeries, series: Series[Any], since: int, until: int) -> list[Any]:
    found = await store.read(series, Millis(since), EVER, EVER)
    return [row for row in found if complete_at(series, row) <= until]


async def assert_whole(store: MemorySeries, since: int, end: int) -> None:
    """Of everything that can be asked for later: all that was true a period before the end, each once, and no more."""
    for series in RANGED:
        if series in NARRATED:
            continue
        until = end - round(poll_schedule_of(series).period * 1_000) - 20_000
        assert await kept(store, series, since, until) == truth(series, since, until), str(series)
    assert [flaw for flaw in await store.flaws() if flaw.kind != "duplicate"] == []


def test_what_is_held_is_collected_beside_the_desk_s_markets() -> None:
    async def story(now: Any) -> None:
        async def held() -> Sequence[Symbol]:
            return [Symbol("ETHUSDT"), Symbol("BTCUSDT")]

        def asked(work: Collector) -> set[Series[Any]]:
            return {poll.series for poll in work._polls}

        given = sources(await market(), now)
        alone, both = collector(given, MemorySeries(OWN), now), collector(given, MemorySeries(OWN), now, held=held)
        for work in (alone, both):
            await collected(work, 0.1)
        eth = candles(BINANCE, "ETHUSDT", Timeframe.M1)
        assert (eth in asked(alone), eth in asked(both)) == (False, True)
        assert asked(alone) < asked(both)

    leaping(START, story)


# -- calm


@pytest.mark.slow
def test_a_calm_hour_is_kept_whole_and_its_past_as_far_as_the_desk_reads() -> None:
    async def story(now: Any) -> None:
        store, views = MemorySeries(OWN), list[CollectView]()
        end = await collected(collector(sources(await market(), now), store, now), 3_600, views.append)
        await assert_whole(store, START - HOUR_MS, now())
        for series in RANGED:
            if series not in NARRATED:
                first = max(START - poll_schedule_of(series).reach, kept_since(series, START))
                assert len(await kept(store, series, 0, START)) == len(truth(series, first, START)), str(series)
        assert len(views) == 61
        assert all((view.fresh, view.failing, view.waiting_for) == (view.series, (), ()) for view in views)
        assert end.rows == sum(span.count for span in await store.spans())

    leaping(START, story)


@pytest.mark.slow
def test_a_bar_is_here_seconds_after_it_closed() -> None:
    async def story(now: Any) -> None:
        store = MemorySeries(OWN)
        await collected(collector(sources(await market(), now), store, now), 1_000)
        for minute in range(START, now() - 2 * MINUTE_MS, MINUTE_MS):
            by = Millis(minute + MINUTE_MS + round((SETTLED + 1) * 1_000))
            assert await store.read(M1, Millis(minute), Millis(minute), by), minute
            assert not await store.read(M1, Millis(minute), Millis(minute), Millis(minute + MINUTE_MS - 1))

    leaping(START, story)


@pytest.mark.slow
async def test_behaviour_01_five_ticks_at_half_past_the_minute_yield_five_complete_minute_bars() -> None:
    """Binance is asked at second :30 of five minutes in a row, first in the second minute of its market."""

    def told_by(now: int) -> list[Candle]:
        """All its minutes; the last has gone only half its way and will end as another bar."""
        *over, forming = (living.bar(at, Timeframe.M1) for at in range(START, now, MINUTE_MS))
        return [*over, forming._replace(high=forming.open, close=forming.open, volume=1.5, taker_buy=0.25)]

    world, store = World(now=START, timeframe=Timeframe.M1), MemorySeries(OWN)
    paths = binance.routes(world)

    def minutes_alone(query: Query) -> Any:
        return paths["/fapi/v1/klines"](query) if query["interval"] == Timeframe.M1 else []

    async with vendor({**paths, "/fapi/v1/klines": minutes_alone}) as here:
        venue = Binance(ExchangeClient(VENDOR, here.url, throttled=False))
        for minute in range(1, 6):
            world.now = START + minute * MINUTE_MS + 30_000
            world.candles = told_by(world.now)
            await collector(Sources(candles={BINANCE: venue}), store, lambda: Millis(world.now)).once()
            assert await store.read(M1, Millis(0), EVER, EVER) == tuple(world.candles[:-1])
        await venue.close()
    bars = await store.read(M1, Millis(0), EVER, Millis(world.now))
    assert bars == tuple(living.bar(START + minute * MINUTE_MS, Timeframe.M1) for minute in range(5))
    assert await store.flaws() == ()


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("behind", [4_000, 20_000])
def test_a_venue_whose_clock_is_behind_is_asked_again_until_it_has_the_bar(behind: int) -> None:
    async def story(now: Any) -> None:
        store = MemorySeries(OWN)
        venue = sources(await market(), lambda: Millis(now() - behind))
        await collected(collector(venue, store, now), 900)
        for minute in range(START, now() - 3 * MINUTE_MS, MINUTE_MS):
            by = Millis(minute + MINUTE_MS + 2 * behind + 3_000)
            assert await store.read(M1, Millis(minute), Millis(minute), by), minute

    leaping(START, story)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "taken"), [(59_000, True), (61_000, False)])
def test_a_venue_whose_clock_is_ahead_is_believed_for_a_minute(before: int, taken: bool) -> None:
    """So long before the full hour, by our clock, it tells of the mark of that hour."""

    async def story(now: Any) -> None:
        store, mark = MemorySeries(OWN), basis(BINANCE, "BTCUSDT")
        venue = sources(await market(), lambda: Millis(now() + 90_000))
        view = await collector(venue, store, now).once()
        late = [one.why for one in view.failing if one.series == str(mark)]
        why = "binance is 61 s ahead of this machine's clock and at most 60 s are taken; set the clock"
        assert late == ([] if taken else [why])
        assert len(await store.read(mark, START, EVER, START)) == taken
        assert await store.read(mark, START, EVER, Millis(START - 1)) == ()
        assert await store.read(M1, Millis(START - 3 * MINUTE_MS), EVER, START) != ()
        assert await store.flaws() == ()  # a bar the venue has closed is none that is not over

    leaping(START - before, story)


def test_everything_is_asked_for_before_its_word_is_old() -> None:
    for series in RANGED + [
        one for one in wanted_series(Symbol("BTCUSDT")) if is_snapshot_only(one) and not is_streamed(one)
    ]:
        limit = STALE_AFTER.get(series.feed, 10**9)
        assert poll_schedule_of(series).period < limit, str(series)
    assert (
        60 / poll_schedule_of(next(one for one in wanted_series(Symbol("BTCUSDT")) if one.feed is Feed.BOOK)).period
        >= 5
    )


# -- bad weather


@pytest.mark.soak
@pytest.mark.parametrize("seed", mark_all_but(2, range(4), pytest.mark.soak))
def test_once_all_answer_again_nothing_is_missing_and_nothing_doubled(seed: int) -> None:
    """Answers that fail, hang, come late, twice or in any order, and lives that end in the middle of it."""

    async def story(now: Any) -> None:
        weather = Weather(seed, START + 4_000_000)
        given, store = sources(await market(), now, weather), MemorySeries(OWN)
        while now() < weather.until:
            life = collector(given, store, now, seed)
            running = asyncio.ensure_future(life.run(lambda view: None, asyncio.Event()))
            await asyncio.sleep(weather.dice.uniform(60, 1_500))
            assert not running.done()  # whatever the weather
            running.cancel()  # killed: nothing that waits is written any more
            await asyncio.gather(running, *dying(), return_exceptions=True)
            await asyncio.sleep(weather.dice.uniform(0, 600))
        await collected(collector(given, store, now, seed), 2 * LONGEST_BACKOFF + 120)
        await assert_whole(store, START - HOUR_MS, now())
        assert weather.overlaps == []

    leaping(START, story)


def dying() -> list[asyncio.Task[Any]]:
    found = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in found:
        task.cancel()
    return found


@pytest.mark.slow
def test_one_venue_that_hangs_keeps_nobody_waiting() -> None:
    async def story(now: Any) -> None:
        weather = Weather(1, END, bad=1.0)
        weather.dice.choice = lambda _: "hangs"  # type: ignore[assignment, return-value]
        truth_ = await market()
        calm, rough = sources(truth_, now), sources(truth_, now, weather)
        given = replaced(calm, options=rough.options)
        store, views = MemorySeries(OWN), list[CollectView]()
        await collected(collector(given, store, now), 600, views.append)
        assert [bar.at for bar in await store.read(M1, START, EVER, EVER)] == list(
            range(START, now() - MINUTE_MS, MINUTE_MS)
        )
        failing = views[-1].failing
        assert {one.series for one in failing} == {f"options/{DERIBIT}/BTC", f"dvol/{DERIBIT}/BTC"}
        assert all("120 s" in one.why for one in failing)
        assert all(one.since == START + 120_000 for one in failing)
        assert views[-1].fresh == views[-1].series - 2

    leaping(START, story)


def replaced(given: Sources, **more: Any) -> Sources:
    from dataclasses import replace

    return replace(given, **more)


def test_what_fails_is_left_alone_for_longer_and_never_for_more_than_five_minutes() -> None:
    work = collector(Sources(), MemorySeries(OWN), lambda: START)
    for failures in range(1, 40):
        pauses = [work._backoff(failures) for _ in range(50)]
        most = min(LONGEST_BACKOFF, 2.0 ** (failures - 1))
        assert most / 2 <= min(pauses) < max(pauses) <= most


# -- streams


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("seed", mark_all_but(2, range(4), pytest.mark.soak))
def test_only_minutes_that_were_heard_whole_are_proven_and_nothing_heard_is_lost(seed: int) -> None:
    async def story(now: Any) -> None:
        weather = Weather(seed, START + 5_000_000)
        radios = [radio(venue, now, weather) for venue in (BINANCE, BYBIT)]
        store = MemorySeries(OWN)
        given = Sources(tapes={one.venue: one for one in radios})
        await collected(collector(given, store, now), 2 * 3_600)
        for one in radios:
            assert len(one.intervals) > 3
            for series, row in one._items:
                if START <= row.at < now():
                    found = row in await store.read(series, row.at, row.at, EVER)
                    length = MINUTE_MS if isinstance(row, Heartbeat) else 0
                    assert found is any(low <= row.at and row.at + length < high for low, high in one.intervals), row
        assert await store.flaws() == ()

    leaping(START, story)


def test_a_stream_that_says_nothing_for_long_is_taken_for_lost_and_told() -> None:
    async def story(now: Any) -> None:
        class Mute:
            venue = BINANCE
            opened = 0

            async def listen(self, symbols: Sequence[str]) -> Any:
                self.opened += 1
                await asyncio.sleep(1e9)
                yield

        mute, views = Mute(), list[CollectView]()
        await collected(collector(Sources(tapes={BINANCE: mute}), MemorySeries(OWN), now), 700, views.append)
        assert 4 <= mute.opened <= 5
        (stream,) = views[-1].streams
        assert (stream.heard, stream.proven, "150 s" in stream.why) == (False, None, True)
        assert stream.since == START + 150_000

    leaping(START, story)


@pytest.mark.slow
def test_a_stream_that_was_proven_is_connected_again_at_once() -> None:
    """One that never proves a minute is left alone for longer and longer."""

    async def story(now: Any) -> None:
        class Brief:
            venue = BINANCE

            def __init__(self, *, proves: bool) -> None:
                self.proves = proves
                self.lost: list[int] = []
                self.opened: list[int] = []

            async def listen(self, symbols: Sequence[str]) -> Any:
                self.opened.append(now())
                await asyncio.sleep(70)
                if self.proves:
                    yield alive(Feed.WHALES, BINANCE, "BTCUSDT"), Heartbeat(Timeframe.M1.floor(now() - MINUTE_MS))
                self.lost.append(now())
                raise Unavailable("the stream was lost")

        steady, idle = Brief(proves=True), Brief(proves=False)
        given = Sources(tapes={BINANCE: steady, BYBIT: idle})
        await collected(collector(given, MemorySeries(OWN), now), 3_600)
        again = [opened - lost for lost, opened in zip(steady.lost, steady.opened[1:], strict=False)]
        assert len(again) > 45
        assert max(again) <= 1_000
        longer = [opened - lost for lost, opened in zip(idle.lost, idle.opened[1:], strict=False)]
        assert longer[:8] == sorted(longer[:8])  # up to five minutes, half of it by chance
        assert 100_000 < max(longer) <= 300_000

    leaping(START, story)


@pytest.mark.slow
def test_a_recorded_tape_is_kept_as_it_was_and_its_end_is_told() -> None:
    async def story(now: Any) -> None:
        from tests.wire.fakes.venues import RecordedVenue

        store, views = MemorySeries(OWN), list[CollectView]()
        tape = RecordedVenue(await market(), BINANCE, now)
        await collected(collector(Sources(tapes={BINANCE: tape}), store, now), 1, views.append)
        for series, _ in rows():
            if series.venue == BINANCE and is_streamed(series):
                assert await kept(store, series, 0, EVER) == truth(series, 0, START)
        assert sum(span.count for span in await store.spans()) > 1_000

    leaping(START, story)


# -- lives


@pytest.mark.slow
def test_holes_of_an_earlier_life_are_filled() -> None:
    async def story(now: Any) -> None:
        store = MemorySeries(OWN)
        bars = truth(M1, START - 5 * HOUR_MS, START)
        await store.write([Batch(M1, [*bars[:20], *bars[50:60], *bars[61:100]])])
        await collector(sources(await market(), now), store, now).once()
        await assert_whole(store, START - 5 * HOUR_MS, START)

    leaping(START, story)


def test_holes_nobody_has_are_told() -> None:
    async def story(now: Any) -> None:
        store, truth = MemorySeries(OWN), await market()
        bars = await truth.read(M1, Millis(START - 3 * HOUR_MS), START, START)
        await store.write([Batch(M1, [*bars[:50], *bars[60:80], *bars[81:]])])
        poor = MemorySeries(OWN)
        await poor.write([Batch(M1, [*bars[:50], *bars[60:80], *bars[81:]])])
        work = collector(Sources(candles=sources(poor, now).candles), store, now)
        told = (await work.once()).given_up
        assert told == {str(M1): "from 2025-12-24 20:00 to 2025-12-31 17:00 UTC (and 2 more)"}
        assert work.status().given_up == told

    leaping(START, story)


def test_a_search_somebody_paid_for_is_asked_for_when_it_is_old_and_then_at_its_pace() -> None:
    series = texts(Feed.NARRATIVE, SEARCH, "BTC")
    asked: list[int] = []

    class Paid:
        venue, feed = SEARCH, Feed.NARRATIVE

        async def texts(self, about: str, since: Millis, until: Millis) -> list[Text]:
            asked.append(until)
            await asyncio.sleep(5)
            return [Text(until, SEARCH, str(until), "words")]

    async def story(now: Any) -> None:
        store = MemorySeries(OWN)
        before = Millis(START - 2 * HOUR_MS)
        await store.write([Batch(series, [Text(before, SEARCH, "before", "words")], before)])
        others = {one.venue: "not asked here" for one in wanted_series(Symbol("BTCUSDT")) if one.venue != SEARCH}
        await collected(collector(Sources(texts={SEARCH: Paid()}, closed=others), store, now), 17 * 3_600)
        assert [round((at - before) / HOUR_MS, 3) for at in asked] == [6, 12, 18]

    leaping(START, story)


@pytest.mark.slow
def test_a_round_names_who_failed_and_who_cannot_be_asked() -> None:
    async def story(now: Any) -> None:
        truth_ = await market()
        given = sources(truth_, now)
        good = await collector(replaced(given, closed={"fred": "no key"}), MemorySeries(OWN), now).once()
        assert (good.ok, good.answered, good.failing, good.unasked) == (True, good.series, (), {"fred": "no key"})
        assert good.series == 33
        less = {venue: feed for venue, feed in given.candles.items() if venue != "upbit"}
        bad = await collector(replaced(given, candles=less), MemorySeries(OWN), now).once()
        assert (bad.ok, bad.answered) == (False, bad.series - 1)
        assert [(one.series, one.since) for one in bad.failing] == [("candles/upbit/KRW-BTC/1h", START)]

    leaping(START, story)


def test_only_one_collects() -> None:
    async def story(now: Any) -> None:
        seat = SeatInMemory()

        def one() -> Collector:
            work = collector(Sources(), MemorySeries(OWN), now)
            work._seat = seat
            return work

        seat.take()
        with pytest.raises(Refused):
            await one().once()
        with pytest.raises(Refused):
            await one().run(lambda view: None, asyncio.Event())
        seat.leave()
        await one().once()
        await collected(one(), 5)
        seat.take()  # it was left

    leaping(START, story)


# -- the store


class Moody(MemorySeries):
    """Away for its first so many writes; `broken`: damaged for good."""

    def __init__(self, away: int = 0, *, broken: bool = False) -> None:
        super().__init__(OWN)
        self.away = away
        self.broken = broken
        self.writes: list[int] = []

    async def write(self, batches: Sequence[Batch[Any]]) -> WriteCounts:
        await asyncio.sleep(0.5)
        if self.broken:
            raise Broken("the store is damaged.")
        if self.away > 0:
            self.away -= 1
            raise Unavailable("The disk is full.")
        self.writes.append(sum(len(batch.rows) for batch in batches))
        return await super().write(batches)


@pytest.mark.slow
def test_a_store_that_is_away_costs_nothing_but_time_and_is_told() -> None:
    async def story(now: Any) -> None:
        store, views = Moody(away=30), list[CollectView]()
        await collected(collector(sources(await market(), now), store, now), 900, views.append)
        assert views[0].store == "The disk is full"
        assert views[0].waiting_for
        assert views[-1].store == ""
        await assert_whole(store, START - HOUR_MS, now())

    leaping(START, story)


@pytest.mark.slow
def test_a_store_that_stays_away_is_told_in_the_end() -> None:
    async def story(now: Any) -> None:
        work = collector(sources(await market(), now), Moody(away=10**9), now)
        with pytest.raises(Unavailable, match=r"^\d+ rows.*The disk is full\.$"):
            await collected(work, 60)

    leaping(START, story)


@pytest.mark.slow
def test_a_damaged_store_ends_the_worker() -> None:
    async def story(now: Any) -> None:
        with pytest.raises(Broken):
            await collected(collector(sources(await market(), now), Moody(broken=True), now), 60)
        with pytest.raises(Broken):
            await collector(sources(await market(), now), Moody(broken=True), now).once()
        assert dying() == []

    leaping(START, story)


@pytest.mark.slow
def test_a_bug_in_a_line_of_status_is_not_swallowed() -> None:
    def hear(view: CollectView) -> None:
        raise ZeroDivisionError

    async def story(now: Any) -> None:
        with pytest.raises(ZeroDivisionError):
            await collected(collector(sources(await market(), now), MemorySeries(OWN), now), 600, hear)

    leaping(START, story)


def test_a_queue_has_an_end_and_whoever_brings_more_waits() -> None:
    async def story(now: Any) -> None:
        store = Moody()
        scribe = BatchWriter(store, now, asyncio.sleep, most=10)
        writing = asyncio.ensure_future(scribe.run())
        longest = 0
        for n in range(200):
            await scribe.take(OI, Level(Millis(START + n), 1.0 + n))
            longest = max(longest, scribe.waiting)
        scribe.end()
        await writing
        assert longest == 10
        assert scribe.rows == 200 == len(await store.read(OI, Millis(0), EVER, EVER))
        assert len(store.writes) < 40  # many in one go

    leaping(START, story)


def test_a_row_of_a_stream_is_known_from_when_it_came_and_not_before_it_happened() -> None:
    async def story(now: Any) -> None:
        store = MemorySeries(OWN)
        scribe = BatchWriter(store, now, asyncio.sleep)
        late, early = Level(Millis(START - 9_000), 1.0), Level(Millis(START + 700), 2.0)
        await scribe.take(OI, late)
        scribe.end()
        await scribe.run()
        assert await store.read(OI, Millis(0), EVER, Millis(START - 1)) == ()
        assert await store.read(OI, Millis(0), EVER, START) == (late,)
        again = BatchWriter(store, now, asyncio.sleep)
        await again.take(OI, early)
        again.end()
        await again.run()
        assert await store.read(OI, early.at, EVER, Millis(START + 699)) == ()
        assert await store.read(OI, early.at, EVER, Millis(START + 700)) == (early,)

    leaping(START, story)


def test_the_market_of_these_tests_has_what_they_speak_of() -> None:
    """Else all of the above would hold for nothing."""
    assert len(truth(M1, START, END)) == 240
    assert isinstance(truth(M1, START, END)[0], Candle)
    assert sum(len(truth(series, START, START + HOUR_MS)) for series in RANGED) > 100
