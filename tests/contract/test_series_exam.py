"""The exam of `SeriesStore`: the file and the memory sit it unchanged; what only a file can do is below."""

from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
import os
import re
import resource
import signal
import sqlite3
import stat
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples, mark_all_but
from tests.wire.fakes.series import MemorySeries
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.kernel.errors import Broken, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.measure.columns import to_rows
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Book,
    Candle,
    Feed,
    Funding,
    Heartbeat,
    Heartbeats,
    Level,
    MacroRelease,
    MarkAndIndex,
    OptionChain,
    OptionQuote,
    Quote,
    Series,
    Side,
    TapeEvent,
    Text,
    Timeframe,
    alive,
    basis,
    books,
    candles,
    funding,
    liquidations,
    macro,
    open_interest,
    options,
    texts,
)
from zuno.trading.ports.series import (
    PUBLIC_HISTORY,
    Batch,
    Columns,
    Flaw,
    Origin,
    RejectedRow,
    RenewedStore,
    RowSource,
    SeriesSnapshot,
    SeriesStore,
    Slice,
    Source,
    Span,
    WriteCounts,
)

AT = Millis(1_767_225_600_000)
"""2026-01-01."""
EVER = Millis(2**62)
INVENTED, RECORDED = Origin(True, "SYNTHETIC seed 11"), Origin(False, "recorded")
HOURS = candles("binance", "BTCUSDT", Timeframe.H1)
OI = open_interest("binance", "BTCUSDT")
CPI = macro("fred", "CPIAUCSL")


@pytest.fixture(params=["sqlite", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SeriesStore]:
    made: SeriesStore = (
        SqliteSeries(tmp_path / "own", RECORDED) if request.param == "sqlite" else MemorySeries(RECORDED)
    )
    yield made
    await made.close()


def bar(hour: int, close: float = 100.0, volume: float = 1.5) -> Candle:
    return Candle(Millis(AT + hour * HOUR_MS), 100.0, 200.0, 50.0, close, volume, None)


def level(at: int, value: float = 1.0) -> Level:
    return Level(Millis(AT + at), value)


async def everything(store: SeriesStore, series: Series[Any], known_by: int = EVER) -> tuple[Any, ...]:
    return await store.read(series, Millis(-EVER), EVER, Millis(known_by))


EVERY_KIND: list[tuple[Series[Any], list[Any]]] = [
    (HOURS, [bar(0), Candle(Millis(AT + HOUR_MS), 0.1 + 0.2, 1e18, 1e-9, 1 / 3, 0.0, 0.0)]),
    (funding("okx", "ETHUSDT"), [Funding(AT, -0.0001, 4.0)]),
    (OI, [level(0, math.pi), level(1, 0.0)]),
    (basis("bybit", "BTCUSDT"), [MarkAndIndex(AT, 100.1, 100.2)]),
    (CPI, [MacroRelease(Millis(-(10**12)), -0.4, Millis(-(10**11)))]),
    (
        liquidations("binance", "BTCUSDT"),
        [TapeEvent(AT, Side.LONG, 1.0, 2.0, 2.0, "1"), TapeEvent(AT, Side.SHORT, 3.0, 4.0, 12.0, "2é")],
    ),
    (alive(Feed.LIQUIDATIONS, "binance", "BTCUSDT"), [Heartbeat(AT), Heartbeat(Millis(AT + MINUTE_MS))]),
    (books("binance", "BTCUSDT"), [Book(AT, (Quote(99.5, 1 / 3),), ()), Book(Millis(AT + 1), (), (Quote(1.0, 0.0),))]),
    (
        options("deribit", "BTC"),
        [
            OptionChain(
                AT,
                (
                    OptionQuote("BTC-1-C", Millis(AT + DAY_MS), 1e5, True, 45.5, 1.0, 2.0, 1e5 + 0.1),
                    OptionQuote("BTC-1-P", None, 1e5, False, None, 0.0, 0.0, None),
                ),
            )
        ],
    ),
    (
        texts(Feed.NEWS, "telegram", "BTC"),
        [Text(AT, "a", "1", 'words "in" quotes\n🙂'), Text(AT, "b", "1", "")],
    ),
]


@pytest.mark.parametrize(("series", "rows"), EVERY_KIND, ids=[str(series) for series, _ in EVERY_KIND])
@pytest.mark.parametrize("sealed", [False, True])
async def test_rows_of_every_kind_come_back_equal(
    store: SeriesStore, series: Series[Any], rows: list[Any], sealed: bool
) -> None:
    assert await store.write([Batch(series, rows)]) == WriteCounts(len(rows), 0, 0, 0)
    if sealed:
        assert await store.seal(Millis(AT + DAY_MS)) == len(rows)
    back = await everything(store, series)
    assert back == tuple(rows)
    assert [type(row) for row in back] == [type(row) for row in rows]
    assert await store.write([Batch(series, rows)]) == WriteCounts(0, len(rows), 0, 0)
    assert await store.flaws() == ()


@pytest.mark.parametrize("sealed", [False, True])
async def test_heartbeats_read_with_others_are_those_that_were_known(store: SeriesStore, sealed: bool) -> None:
    stream = alive(Feed.LIQUIDATIONS, "binance", "BTCUSDT")
    beats = [Heartbeat(Millis(AT + minute * MINUTE_MS)) for minute in (0, 1, 2, 4, 5, 9)]
    asked = [Slice(stream, AT, EVER), Slice(stream, Millis(AT + 1), EVER), Slice(stream, AT, EVER, 3)]
    assert (await store.read_many(asked, EVER)).rows == ((), (), ())
    await store.write([Batch(stream, beats), Batch(HOURS, [bar(0)])])
    if sealed:
        await store.seal(Millis(AT + 3 * MINUTE_MS))
    for known, count in ((AT, 0), (AT + 3 * MINUTE_MS, 3), (AT + 5 * MINUTE_MS, 4), (EVER, 6)):
        found = tuple(beats[:count])
        assert (await store.read_many(asked, Millis(known))).rows == (found, found[1:], found[-3:])


@pytest.mark.parametrize("extra", [0, 1, MINUTE_MS // 2])
async def test_days_of_heartbeats_are_the_runs_of_their_minutes(tmp_path: Path, extra: int) -> None:
    store, stream = SqliteSeries(tmp_path, RECORDED), alive(Feed.LIQUIDATIONS, "binance", "BTCUSDT")
    minutes = [minute for minute in range(700, 4_000) if minute not in (1_440, 2_000, 2_879)]
    beats = [Heartbeat(Millis(AT + minute * MINUTE_MS + (extra if minute == 3_100 else 0))) for minute in minutes]
    missing = [Heartbeat(Millis(AT + minute * MINUTE_MS)) for minute in (2_000, 1_440, 2_879)]
    late = Millis(beats[-1].at + DAY_MS)
    for came in (Batch(stream, beats), *(Batch(stream, [beat], late) for beat in missing)):
        await store.write([came])
        for since, until, known_by in (
            (AT, EVER, EVER),
            (beats[5].at + 1, EVER, beats[-9].at),
            (AT, beats[2_000].at, EVER),
            (beats[999].at, EVER, late),
            (AT, EVER, EVER),
        ):
            rows = await store.read(stream, Millis(since), Millis(until), Millis(known_by))
            (found,) = (await store.read_many([Slice(stream, Millis(since), Millis(until))], Millis(known_by))).rows
            assert isinstance(found, Heartbeats)
            assert found.runs == Heartbeats.of(rows).runs
    await store.close()


@pytest.mark.parametrize("seed", range(2))
async def test_what_is_read_again_and_again_is_what_stands_there(tmp_path: Path, seed: int) -> None:
    """A desk that goes on from moment to moment, a collector beside it, and somebody who fills holes and mends rows."""
    random, now = Random(seed), 0
    desk, other = SqliteSeries(tmp_path, RECORDED), SqliteSeries(tmp_path, RECORDED)
    tape = liquidations("binance", "BTCUSDT")
    for _ in range(150):
        now += random.choice((0, 1, 1, 2))
        moment = Millis(AT + now * HOUR_MS + random.choice((0, HOUR_MS // 2)))
        hours = [now - back for back in random.sample(range(1, 9), random.choice((0, 1, 1, 3))) if back <= now]
        late = random.random() < 0.3  # it comes when its time is over, and is known from then
        batches: list[Batch[Any]] = [
            Batch(HOURS, [bar(hour, random.choice((100.0, 101.0))) for hour in hours], moment if late else None),
            Batch(OI, [level(hour * HOUR_MS) for hour in hours]),
            Batch(CPI, [MacroRelease(Millis(AT + hour * HOUR_MS), float(now), moment) for hour in hours[:1]]),
            Batch(tape, [TapeEvent(moment, Side.LONG, 1.0, 2.0, 2.0, str(n)) for n in range(random.choice((0, 1, 2)))]),
        ]
        await random.choice((desk, desk, other)).write(batches)
        if random.random() < 0.02:
            await random.choice((desk, other)).seal(Millis(moment - 12 * HOUR_MS))
        known_by = Millis(moment - random.choice((0, 0, 0, 1, 5)) * HOUR_MS)
        span = random.choice((6, 12, 12, 12)) * HOUR_MS
        slices: list[Slice[Any]] = [
            Slice(series, Millis(known_by - span), Millis(known_by + random.choice((0, 0, -1, 3)) * HOUR_MS), newest)
            for series, newest in ((HOURS, random.choice((None, 4, 4))), (OI, None), (CPI, None), (tape, None))
        ]
        expected = [await desk.read(each.series, each.since, each.until, known_by, each.newest) for each in slices]
        for _ in range(2):
            assert list((await desk.read_many(slices, known_by)).rows) == expected
    await desk.close()
    await other.close()


@pytest.mark.parametrize("seed", range(3))
async def test_a_past_that_nobody_writes_to_is_read_forward_with_what_was_known_late(tmp_path: Path, seed: int) -> None:
    """Several markets ask for the same series at each moment; some rows were filled in days later."""
    random = Random(seed)
    store = SqliteSeries(tmp_path, RECORDED)
    late = set(random.sample(range(120), 12))
    await store.write([Batch(HOURS, [bar(hour) for hour in range(120) if hour not in late])])
    for hour in sorted(late):
        await store.write([Batch(HOURS, [bar(hour)], Millis(AT + (hour + random.randrange(2, 30)) * HOUR_MS))])
    now = 20
    while now < 130:
        now += random.choice((0, 1, 1, 3))
        at = Millis(AT + now * HOUR_MS + random.choice((0, HOUR_MS // 4)))
        slices = [Slice(HOURS, Millis(at - span * HOUR_MS), at, newest) for span, newest in ((40, None), (9, 1))]
        expected = [await store.read(each.series, each.since, each.until, at, each.newest) for each in slices]
        several = [(await store.read_many(slices, at)).rows for _ in range(2)]
        assert [list(rows) for rows in several] == [expected, expected]
        assert several[0][0] is several[1][0]
    await store.close()


async def test_what_was_read_before_is_not_read_from_the_table_again(tmp_path: Path) -> None:
    store = SqliteSeries(tmp_path, RECORDED)
    hours = [Millis(AT + hour * HOUR_MS) for hour in range(100)]
    await store.write([Batch(HOURS, [bar(hour) for hour in range(90)])])
    before: Sequence[Any] = ()
    for now in hours[80:]:
        await store.write([Batch(HOURS, [bar((now - AT) // HOUR_MS + 5)])])
        (rows,) = (await store.read_many([Slice(HOURS, Millis(now - 50 * HOUR_MS), now, 49)], now)).rows
        assert [row.at for row in rows] == [now - back * HOUR_MS for back in range(49, 0, -1)]
        assert not before or all(mine is theirs for mine, theirs in zip(rows, before[1:], strict=False))
        before = rows
    await store.close()


async def test_a_store_nobody_wrote_is_empty(store: SeriesStore) -> None:
    assert await everything(store, HOURS) == ()
    assert await store.spans() == ()
    assert await store.flaws() == ()
    assert await store.seal(EVER) == 0
    assert store.origin == RECORDED
    assert await store.write([]) == await store.write([Batch(HOURS, [])]) == WriteCounts(0, 0, 0, 0)


async def test_rows_come_oldest_first_each_once_and_both_ends_included(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(hour) for hour in (3, 1, 2, 0, 4)])])
    found = await store.read(HOURS, Millis(AT + HOUR_MS), Millis(AT + 3 * HOUR_MS), EVER)
    assert [row.at for row in found] == [AT + hour * HOUR_MS for hour in (1, 2, 3)]
    assert await store.read(HOURS, AT, Millis(AT + HOUR_MS - 1), EVER) == (bar(0),)


async def test_the_newest_are_the_last_of_those_asked_for(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(hour) for hour in range(5)])])
    assert await store.read(HOURS, Millis(0), EVER, EVER, 2) == (bar(3), bar(4))
    assert await store.read(HOURS, Millis(0), Millis(AT + 2 * HOUR_MS), EVER, 2) == (bar(1), bar(2))
    assert await store.read(HOURS, Millis(0), EVER, EVER, 9) == tuple(map(bar, range(5)))
    assert await store.read(HOURS, Millis(0), EVER, EVER, 0) == ()
    # Those that were not known yet do not count against the number.
    assert await store.read(HOURS, Millis(0), EVER, Millis(AT + 3 * HOUR_MS), 2) == (bar(1), bar(2))


async def test_history_is_known_from_when_it_was_complete(store: SeriesStore) -> None:
    stream = alive(Feed.WHALES, "binance", "BTCUSDT")
    await store.write(
        [
            Batch(HOURS, [bar(0)]),
            Batch(OI, [level(5)]),
            Batch(CPI, [MacroRelease(AT, 3.0, Millis(AT + DAY_MS))]),
            Batch(stream, [Heartbeat(AT)]),
        ]
    )
    for series, known in ((HOURS, AT + HOUR_MS), (OI, AT + 5), (CPI, AT + DAY_MS), (stream, AT + MINUTE_MS)):
        assert await everything(store, series, known - 1) == ()
        assert len(await everything(store, series, known)) == 1


async def test_what_reached_us_is_known_from_then_and_never_before_it_happened(store: SeriesStore) -> None:
    await store.write([Batch(OI, [level(5), level(90)], known=Millis(AT + 60))])
    assert await everything(store, OI, AT + 59) == ()
    assert await everything(store, OI, AT + 60) == (level(5),)
    assert await everything(store, OI, AT + 90) == (level(5), level(90))  # a venue whose clock is ahead of ours


async def test_a_row_given_twice_is_known_from_the_earlier_time(store: SeriesStore) -> None:
    late, early = Batch(OI, [level(5)], known=Millis(AT + 99)), Batch(OI, [level(5)], known=Millis(AT + 50))
    await store.write([late])
    assert await store.write([early]) == WriteCounts(0, 1, 0, 0)
    assert await everything(store, OI, AT + 50) == (level(5),)
    await store.write([late])
    assert await everything(store, OI, AT + 50) == (level(5),)


async def test_of_one_day_the_newest_print_released_by_then(store: SeriesStore) -> None:
    first, revised = MacroRelease(AT, 3.0, Millis(AT + 10)), MacroRelease(AT, 3.1, Millis(AT + 200))
    other = MacroRelease(Millis(AT + DAY_MS), 9.0, Millis(AT + DAY_MS + 10))
    await store.write([Batch(CPI, [revised, first, other])])
    assert await everything(store, CPI, AT + 9) == ()
    assert await everything(store, CPI, AT + 10) == (first,)
    assert await everything(store, CPI, AT + 199) == (first,)
    assert await everything(store, CPI) == (revised, other)
    assert await store.read(CPI, Millis(0), EVER, EVER, 1) == (other,)
    assert await store.read(CPI, Millis(0), EVER, EVER, 2) == (revised, other)
    await store.seal(Millis(AT + 1))
    assert await everything(store, CPI, AT + 199) == (first,)
    assert await everything(store, CPI) == (revised, other)


async def test_other_numbers_under_the_same_key_replace_and_are_noted(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(0, 100.0), bar(1)])])
    assert await store.write([Batch(HOURS, [bar(0, 101.0), bar(1)], known=Millis(AT + 9 * HOUR_MS))]) == WriteCounts(
        0, 1, 1, 0
    )
    assert await everything(store, HOURS) == (bar(0, 101.0), bar(1))
    assert await everything(store, HOURS, AT + 9 * HOUR_MS) == (bar(0, 101.0), bar(1))
    assert await everything(store, HOURS, AT + 9 * HOUR_MS - 1) == (bar(0), bar(1))  # nobody knew the new ones before
    (flaw,) = await store.flaws()
    assert (flaw.kind, flaw.first, flaw.last, flaw.count) == ("conflict", AT, AT, 1)
    assert flaw.detail == "close 100.0 → 101.0"
    assert flaw.replaced == bar(0, 100.0)
    assert flaw.mended is None


async def test_a_store_of_public_history_says_so_until_something_is_collected(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(0), bar(1)], source=Source.IMPORTED, file="a.csv")])
    await store.write([Batch(OI, [level(0)], source=Source.DOWNLOADED), Batch(HOURS, [bar(2)], source=Source.REPAIRED)])
    assert store.origin == PUBLIC_HISTORY
    assert store.origin.candles_only
    assert (await store.read_many([], EVER)).origin == PUBLIC_HISTORY
    nothing_sound = Batch(HOURS, [bar(3, close=math.nan)], known=Millis(AT + 9 * HOUR_MS))
    await store.write([Batch(OI, []), nothing_sound])
    assert store.origin == PUBLIC_HISTORY
    await store.write([Batch(HOURS, [bar(2)], known=Millis(AT + 9 * HOUR_MS), source=Source.COLLECTED)])
    assert store.origin == RECORDED
    await store.write([Batch(HOURS, [bar(4)], source=Source.IMPORTED, file="b.csv")])
    assert store.origin == (await store.read_many([], EVER)).origin == RECORDED


async def test_what_was_collected_first_is_recorded_whatever_is_imported_into_it(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(4)], known=Millis(AT + 9 * HOUR_MS))])
    await store.write([Batch(HOURS, [bar(0)], source=Source.IMPORTED, file="a.csv")])
    assert store.origin == RECORDED


async def test_every_row_is_told_where_it_came_from(store: SeriesStore) -> None:
    a = Batch(HOURS, [bar(0), bar(1)], source=Source.IMPORTED, file="a.csv")
    await store.write([a])
    await store.write([a, Batch(HOURS, [bar(3), bar(2)], source=Source.IMPORTED, file="b.csv")])
    await store.write([Batch(HOURS, [bar(7)], source=Source.IMPORTED, file="b.csv"), Batch(OI, [level(5)])])
    assert await store.sources() == (
        RowSource(HOURS, Source.IMPORTED, "a.csv", 2, bar(0).at, bar(1).at),
        RowSource(HOURS, Source.IMPORTED, "b.csv", 3, bar(2).at, bar(7).at),
        RowSource(OI, Source.COLLECTED, "", 1, level(5).at, level(5).at),
    )
    await store.renew(RECORDED)
    assert await store.sources() == ()


@pytest.mark.parametrize("sealed", [False, True])
async def test_the_first_time_of_a_series(store: SeriesStore, sealed: bool) -> None:
    assert await store.first_times([HOURS, OI]) == (None, None)
    await store.write([Batch(HOURS, [bar(2), bar(3)]), Batch(CPI, [MacroRelease(AT, 1.0, Millis(AT + 5))])])
    if sealed:
        await store.seal(Millis(AT + 3 * HOUR_MS))
    assert await store.first_times([OI, HOURS, CPI]) == (None, bar(2).at, AT)


OTHER: dict[type[Any], Callable[[Any], Any]] = {
    Candle: lambda row: row._replace(volume=7.0),
    Funding: lambda row: row._replace(rate=0.5),
    Level: lambda row: row._replace(value=7.0),
    MarkAndIndex: lambda row: row._replace(mark=7.0),
    MacroRelease: lambda row: row._replace(value=7.0),
    TapeEvent: lambda row: row._replace(price=7.0),
    Book: lambda row: Book(row.at, (), ()),
    OptionChain: lambda row: OptionChain(row.at, ()),
    Text: lambda row: Text(row.at, row.channel, row.id, "other"),
}
"""Other numbers under the same key."""


@pytest.mark.parametrize(("series", "rows"), EVERY_KIND, ids=[str(series) for series, _ in EVERY_KIND])
async def test_what_was_replaced_is_kept_whatever_its_kind(
    store: SeriesStore, series: Series[Any], rows: list[Any]
) -> None:
    if (other := OTHER.get(series.row)) is None:
        return  # a sign of life has no numbers to change
    await store.write([Batch(series, rows[:1])])
    await store.write([Batch(series, [other(rows[0])])])
    (flaw,) = await store.flaws()
    assert flaw.replaced == rows[0]
    assert await everything(store, series) == (other(rows[0]),)


async def test_one_answer_that_repeats_itself(store: SeriesStore) -> None:
    written = await store.write([Batch(HOURS, [bar(0), bar(1), bar(0), bar(1, 150.0)])])
    assert written == WriteCounts(2, 1, 1, 0)
    assert await everything(store, HOURS) == (bar(0), bar(1, 150.0))
    assert [(flaw.kind, flaw.mended) for flaw in await store.flaws()] == [
        ("duplicate", "kept once"),
        ("conflict", None),
    ]


async def test_neighbours_that_repeat_each_other_are_noticed_in_an_empty_store(store: SeriesStore) -> None:
    assert await store.write([Batch(HOURS, [bar(0), bar(0), bar(1)])]) == WriteCounts(2, 1, 0, 0)
    assert [flaw.kind for flaw in await store.flaws()] == ["duplicate"]


async def test_rows_that_cannot_be_are_set_aside_with_reason_and_place(store: SeriesStore) -> None:
    upside_down = bar(1)._replace(high=10.0)
    off = bar(0)._replace(at=Millis(AT + 1))
    rows = [bar(0)._replace(close=math.nan), upside_down, off, bar(2), bar(5)]
    written = await store.write([Batch(HOURS, rows, known=Millis(AT + 5 * HOUR_MS))])
    assert written == WriteCounts(1, 0, 0, 4)
    assert await everything(store, HOURS) == (bar(2),)
    flaws = await store.flaws()
    assert [(flaw.kind, flaw.first - AT) for flaw in flaws] == [
        ("bad", 0),
        ("bad", 1),
        ("bad", HOUR_MS),
        ("bad", 5 * HOUR_MS),
    ]
    for flaw, said in zip(flaws, ("close is nan", "no 1h bar", "high 10.0 is below low", "ms to go"), strict=True):
        assert said in flaw.detail
        assert "Candle(" in flaw.detail
    assert await store.write([Batch(HOURS, rows, known=Millis(AT + 5 * HOUR_MS))]) == WriteCounts(0, 1, 0, 4)
    assert await store.flaws() == flaws  # once each, however often they come


async def test_a_row_with_a_time_no_file_holds_is_set_aside_too(store: SeriesStore) -> None:
    assert await store.write([Batch(OI, [Level(Millis(2**70), 1.0), Level("now", 1.0)])]) == WriteCounts(0, 0, 0, 2)  # type: ignore[arg-type]
    assert len(await store.flaws()) == 2


async def asides(store: SeriesStore, series: Series[Any], known_by: int = EVER) -> list[int]:
    """The places of what was set aside, as far as it was known."""
    (found,) = (await store.read_many([Slice(series, Millis(-EVER), EVER)], Millis(known_by))).asides
    return [aside.at - AT for aside in found]


async def test_what_was_set_aside_is_told_of_each_slice_and_its_time(store: SeriesStore) -> None:
    spoilt = [level(at, math.nan) for at in (40, 20, 30)]
    upside_down = bar(0)._replace(high=10.0)
    await store.write([Batch(OI, [*spoilt, level(10), level(50)]), Batch(HOURS, [upside_down, bar(1), bar(1)])])
    await store.write([Batch(HOURS, [bar(1, 60.0)])])  # a duplicate and a conflict are no rows that cannot be
    await store.seal(EVER)
    state = await store.read_many(
        [
            Slice(OI, Millis(AT + 20), Millis(AT + 30)),
            Slice(CPI, Millis(0), EVER),
            Slice(HOURS, Millis(0), EVER, 1),
            Slice(OI, Millis(0), EVER, 1),
            Slice(OI, Millis(AT + 31), Millis(AT + 39)),
        ],
        EVER,
    )
    assert state.rows == ((), (), (bar(1, 60.0),), (level(50),), ())
    assert [[aside.at - AT for aside in one] for one in state.asides] == [[20, 30], [], [0], [20, 30, 40], []]
    ((aside,), (first, *_)) = state.asides[2:4]
    assert aside == RejectedRow(AT, f"high 10.0 is below low 50.0: {upside_down!r}")
    assert "nan" in first.detail


async def test_what_was_set_aside_is_known_from_when_it_came_or_would_have_been_complete(store: SeriesStore) -> None:
    stream = alive(Feed.WHALES, "binance", "BTCUSDT")
    no_sign: Any = Level(AT, 1.0)
    await store.write(
        [
            Batch(HOURS, [bar(0)._replace(close=math.nan)]),
            Batch(OI, [level(5, math.nan)]),
            Batch(CPI, [MacroRelease(AT, math.nan, Millis(AT + DAY_MS))]),
            Batch(stream, [no_sign]),
            Batch(basis("bybit", "BTCUSDT"), [MarkAndIndex(AT, -1.0, 1.0)], known=Millis(AT + 99)),
        ]
    )
    for series, place, known in (
        (HOURS, 0, AT + HOUR_MS),
        (OI, 5, AT + 5),
        (CPI, 0, AT + DAY_MS),
        (stream, 0, AT + MINUTE_MS),
        (basis("bybit", "BTCUSDT"), 0, AT + 99),
    ):
        assert await asides(store, series, known - 1) == []
        assert await asides(store, series, known) == [place]


async def test_the_same_set_aside_again_is_known_from_the_earlier_time(store: SeriesStore) -> None:
    spoilt = [level(5, math.nan)]
    for known, earliest in ((60, 60), (90, 60), (50, 50), (None, 5), (70, 5)):
        await store.write([Batch(OI, spoilt, None if known is None else Millis(AT + known))])
        assert await asides(store, OI, AT + earliest - 1) == []
        assert await asides(store, OI, AT + earliest) == await asides(store, OI) == [5]
    (flaw,) = await store.flaws()
    await store.mend([Flaw(OI, "bad", flaw.first, flaw.last, 1, flaw.detail, "another stands there")])
    await store.write([Batch(OI, [level(5)], known=Millis(AT + 200))])
    assert await asides(store, OI, AT + 5) == [5]  # what is done about it later does not change what was known
    await store.renew(RECORDED)
    assert await asides(store, OI) == []


@pytest.mark.parametrize(
    ("series", "row", "place"),
    [
        (HOURS, bar(0)._replace(at=Millis(2**62 - 1)), 2**62 - 1),
        (HOURS, bar(0)._replace(at="now"), 0),  # type: ignore[arg-type]
        (CPI, MacroRelease(AT, 1.0, Millis(2**70)), AT),
        (CPI, MacroRelease(AT, 1.0, "soon"), AT),  # type: ignore[arg-type]
        (CPI, level(0), AT),
        (OI, None, 0),
    ],
    ids=["an end nobody lives to see", "no time", "no release", "a word for one", "another kind", "nothing"],
)
async def test_a_row_that_never_would_have_been_complete_is_known_from_its_place(
    store: SeriesStore, series: Series[Any], row: Any, place: int
) -> None:
    assert await store.write([Batch(series, [row])]) == WriteCounts(0, 0, 0, 1)
    assert await asides(store, series, place - 1) == []
    assert await asides(store, series, place) == [place - AT]


async def test_a_bar_whose_end_no_file_can_hold_is_set_aside(store: SeriesStore) -> None:
    last = bar(0)._replace(at=Millis(2**63 - 1))
    assert await store.write([Batch(HOURS, [last])]) == WriteCounts(0, 0, 0, 1)
    assert [flaw.first for flaw in await store.flaws()] == [last.at]


async def test_spans_say_how_much_is_here(store: SeriesStore) -> None:
    await store.write([Batch(OI, [level(5), level(1), level(9)]), Batch(HOURS, [bar(0)])])
    assert await store.spans() == (Span(HOURS, 1, AT, AT, 0), Span(OI, 3, Millis(AT + 1), Millis(AT + 9), 0))
    assert await store.seal(Millis(AT + 5)) == 2
    assert await store.spans() == (Span(HOURS, 1, AT, AT, 1), Span(OI, 3, Millis(AT + 1), Millis(AT + 9), 1))


@pytest.mark.parametrize("seals", [0, 2, 9])
async def test_from_when_the_newest_and_from_when_all_is_known(store: SeriesStore, seals: int) -> None:
    trades = liquidations("binance", "BTCUSDT")

    async def known() -> list[tuple[int | None, int | None]]:
        await store.seal(Millis(AT + seals * HOUR_MS))
        several = (OI, HOURS, trades)
        return list(zip(await store.newest_known(several), await store.all_known(several), strict=True))

    assert await known() == [(None, None)] * 3
    await store.write([Batch(HOURS, [bar(0), bar(1), bar(3)])])
    assert await known() == [(None, None), (bar(4).at, bar(4).at), (None, None)]
    await store.write([Batch(HOURS, [bar(2)], Millis(AT + DAY_MS))])  # fills a hole
    assert (await known())[1] == (bar(4).at, AT + DAY_MS)
    await store.write([Batch(HOURS, [bar(2)], Millis(AT + DAY_MS // 2))])  # was known earlier, as it turns out
    assert (await known())[1] == (bar(4).at, AT + DAY_MS // 2)
    await store.write([Batch(HOURS, [bar(3, close=99.0)], Millis(AT + 2 * DAY_MS))])  # mends the newest
    assert (await known())[1] == (bar(4).at, AT + 2 * DAY_MS)
    strikes = [TapeEvent(AT, Side.LONG, 1.0, 2.0, 2.0, name) for name in "ab"]
    await store.write([Batch(trades, strikes[:1], Millis(AT + 2)), Batch(trades, strikes[1:], Millis(AT + 1))])
    assert (await known())[2] == (AT + 1, AT + 2)


async def test_mending_is_noted_and_what_happens_again_is_news_again(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(0), bar(1)])])
    await store.write([Batch(HOURS, [bar(0, 101.0), bar(1, 101.0)])])
    first, _ = await store.flaws()
    unknown = Flaw(OI, "conflict", AT, AT, 1, "never noted", "x")
    await store.mend([Flaw(HOURS, "conflict", AT, AT, 1, first.detail, "kept"), unknown])
    assert [flaw.mended for flaw in await store.flaws()] == ["kept", None]
    await store.write([Batch(HOURS, [bar(0)])])
    await store.write([Batch(HOURS, [bar(0, 101.0)])])
    again = {(flaw.first, flaw.detail): flaw.mended for flaw in await store.flaws()}
    assert again[AT, first.detail] is None
    assert len(again) == 3  # there, back, and the other bar's


async def test_a_write_is_all_or_nothing(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(0)])])
    nonsense = Series(Feed.CANDLES, "binance", "BTCUSDT/7h", Candle)
    with pytest.raises(ValueError, match="7h"):
        await store.write([Batch(HOURS, [bar(1)]), Batch(nonsense, [bar(0)])])
    assert await everything(store, HOURS) == (bar(0),)
    assert len(await store.spans()) == 1


async def test_many_series_are_read_as_each_by_itself_and_say_whose_they_are(store: SeriesStore) -> None:
    asked = [
        Slice(HOURS, AT, Millis(AT + 3 * HOUR_MS)),
        Slice(OI, Millis(0), EVER, 1),
        Slice(CPI, Millis(0), EVER),
        Slice(HOURS, Millis(0), EVER, 2),
    ]
    nothing = ((), (), (), ())
    assert await store.read_many(asked, EVER) == SeriesSnapshot(RECORDED, nothing, nothing)  # type: ignore[arg-type]
    assert await store.read_many([], EVER) == SeriesSnapshot(RECORDED, (), ())
    prints = [MacroRelease(AT, 3.0, Millis(AT + 10)), MacroRelease(AT, 3.1, Millis(AT + 200))]
    rows = [bar(hour) for hour in range(9)]
    await store.renew(Origin(False, "anew"), [Batch(HOURS, rows), Batch(OI, [level(1), level(2)]), Batch(CPI, prints)])
    for known_by in (Millis(AT + 100), Millis(AT + 5 * HOUR_MS), EVER):
        each = [await store.read(one.series, one.since, one.until, known_by, one.newest) for one in asked]  # type: ignore[attr-defined]
        assert await store.read_many(asked, known_by) == SeriesSnapshot(Origin(False, "anew"), tuple(each), nothing)  # type: ignore[arg-type]
    assert [len(one) for one in each] == [4, 1, 1, 2]


# -- sealing


async def test_sealed_rows_are_read_like_the_others(store: SeriesStore) -> None:
    rows = [bar(hour) for hour in range(0, 24 * 70, 7)]  # over three months
    await store.write([Batch(HOURS, rows), Batch(OI, [level(n * DAY_MS) for n in range(70)])])
    assert await store.seal(Millis(AT + 40 * DAY_MS)) == sum(row.at < AT + 40 * DAY_MS for row in rows) + 40
    assert await store.seal(Millis(AT + 40 * DAY_MS)) == 0
    assert await everything(store, HOURS) == tuple(rows)
    assert await store.read(HOURS, Millis(AT + 39 * DAY_MS), Millis(AT + 41 * DAY_MS), EVER) == tuple(
        row for row in rows if AT + 39 * DAY_MS <= row.at <= AT + 41 * DAY_MS
    )
    assert await store.read(HOURS, Millis(0), EVER, EVER, 200) == tuple(rows[-200:])
    assert await store.read(HOURS, Millis(0), Millis(AT + 20 * DAY_MS), EVER, 3) == tuple(
        [row for row in rows if row.at <= AT + 20 * DAY_MS][-3:]
    )
    assert await everything(store, HOURS, AT + DAY_MS) == tuple(row for row in rows if row.at + HOUR_MS <= AT + DAY_MS)
    assert len(await everything(store, OI)) == 70
    assert await store.seal(EVER) == len(rows) + 70 - sum(row.at < AT + 40 * DAY_MS for row in rows) - 40
    assert await everything(store, HOURS) == tuple(rows)


async def test_a_sealed_row_can_be_replaced_and_sealed_again(store: SeriesStore) -> None:
    rows = [bar(0), bar(1), bar(2)]
    await store.write([Batch(HOURS, rows)])
    await store.seal(EVER)
    assert await store.write([Batch(HOURS, [bar(1, 150.0), bar(2)])]) == WriteCounts(0, 1, 1, 0)
    now = (bar(0), bar(1, 150.0), bar(2))
    for _ in range(2):
        assert await everything(store, HOURS) == now
        assert await store.read(HOURS, Millis(0), EVER, EVER, 2) == now[-2:]
        assert [span.count for span in await store.spans()] == [3]
        await store.seal(EVER)
    assert [span.sealed for span in await store.spans()] == [3]
    await store.write([Batch(HOURS, [bar(1, 160.0)])])
    assert await everything(store, HOURS) == (bar(0), bar(1, 160.0), bar(2))
    assert [flaw.replaced for flaw in await store.flaws()] == [bar(1), bar(1, 150.0)]


async def test_a_sealed_row_that_was_replaced_is_counted_once_among_the_newest(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(0), bar(1), bar(2)])])
    await store.seal(EVER)
    await store.write([Batch(HOURS, [bar(2, 150.0)], known=Millis(AT + 50 * HOUR_MS))])
    for _ in range(2):
        assert await store.read(HOURS, Millis(0), EVER, Millis(AT + 49 * HOUR_MS), 2) == (bar(1), bar(2))
        assert await store.read(HOURS, Millis(0), EVER, Millis(AT + 50 * HOUR_MS), 2) == (bar(1), bar(2, 150.0))
        assert await store.read(HOURS, Millis(0), EVER, Millis(AT + 2 * HOUR_MS), 2) == (bar(0), bar(1))
        await store.seal(EVER)


# -- what was known when


def known_at(hour: int, *rows: Any, series: Series[Any] = HOURS) -> list[Batch[Any]]:
    return [Batch(series, rows, Millis(AT + hour * HOUR_MS))]


@pytest.mark.parametrize("seals", mark_all_but(3, range(16), pytest.mark.soak))
async def test_at_each_moment_the_numbers_that_were_known_then(store: SeriesStore, seals: int) -> None:
    """Sealed or not between any two of the writes."""
    for n, batches in enumerate(
        (
            [Batch(HOURS, [bar(0), bar(1)])],
            known_at(10, bar(0, 60.0)),
            known_at(20, bar(0, 70.0)),
            known_at(30, bar(0, 60.0), bar(2)),
        )
    ):
        await store.write(batches)
        if seals >> n & 1:
            await store.seal(EVER)
    for hour, closes in ((0, []), (1, [100.0]), (9, [100.0]), (10, [60.0]), (19, [60.0]), (20, [70.0]), (30, [60.0])):
        found = await everything(store, HOURS, AT + hour * HOUR_MS)
        assert [row.close for row in found if row.at == AT] == closes
        assert found == await store.read(HOURS, Millis(0), EVER, Millis(AT + hour * HOUR_MS), 9)
        assert found[-1:] == await store.read(HOURS, Millis(0), EVER, Millis(AT + hour * HOUR_MS), 1)
    assert await store.read(HOURS, Millis(AT + 1), EVER, Millis(AT + 9 * HOUR_MS)) == (bar(1),)
    assert [span.count for span in await store.spans()] == [3]  # what stood there before is no row of its own


@pytest.mark.parametrize(("series", "rows"), EVERY_KIND, ids=[str(series) for series, _ in EVERY_KIND])
async def test_what_was_replaced_is_read_at_its_time_whatever_its_kind(
    store: SeriesStore, series: Series[Any], rows: list[Any]
) -> None:
    if (other := OTHER.get(series.row)) is None:
        return  # a sign of life has no numbers to change
    await store.write([Batch(series, rows)])
    before = await everything(store, series)
    await store.write([Batch(series, list(map(other, rows)), known=Millis(AT + 9 * DAY_MS))])
    assert await everything(store, series, AT + 9 * DAY_MS - 1) == before == tuple(rows)
    assert await everything(store, series, AT + 9 * DAY_MS) == tuple(map(other, rows))


async def test_what_took_a_place_is_not_known_before_it_did_whatever_is_said_later(store: SeriesStore) -> None:
    await store.write(known_at(10, bar(0, 60.0)))
    await store.write(known_at(20, bar(0, 70.0)))
    assert await store.write([Batch(HOURS, [bar(0, 70.0)])]) == WriteCounts(0, 1, 0, 0)  # the venue's past has it so
    assert await everything(store, HOURS, AT + 19 * HOUR_MS) == (bar(0, 60.0),)
    await store.write([Batch(HOURS, [bar(0, 80.0)])])  # other numbers without a moment: not before those they replace
    assert await everything(store, HOURS, AT + 19 * HOUR_MS) == (bar(0, 60.0),)
    assert await everything(store, HOURS, AT + 20 * HOUR_MS) == (bar(0, 80.0),)


async def test_a_store_begun_again_knows_nothing_of_what_was_replaced(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(0)])])
    await store.write(known_at(10, bar(0, 60.0)))
    await store.renew(RECORDED, known_at(10, bar(0, 60.0)))
    assert await everything(store, HOURS, AT + 9 * HOUR_MS) == ()


# -- whose past


async def test_a_store_begins_again_with_nothing(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(0), bar(1)._replace(close=math.nan)])])
    await store.seal(EVER)
    await store.renew(Origin(False, "recorded anew"))
    assert store.origin == Origin(False, "recorded anew")
    assert (await store.spans(), await store.flaws(), await everything(store, HOURS)) == ((), (), ())
    assert await store.write([Batch(HOURS, [bar(0)])]) == WriteCounts(1, 0, 0, 0)


async def test_a_store_begins_again_with_other_rows_at_one_stroke(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(0), bar(7)]), Batch(OI, [level(1)])])
    await store.seal(Millis(AT + HOUR_MS))
    anew = Origin(False, "recorded anew")
    rows = [bar(0, 60.0), bar(1), bar(1), bar(2)._replace(close=math.nan)]
    begun = await store.renew(anew, [Batch(HOURS, rows), Batch(CPI, [])])
    assert begun == RenewedStore(anew, WriteCounts(2, 1, 0, 1), (Span(HOURS, 2, AT, Millis(AT + HOUR_MS), 0),))
    assert (store.origin, await store.spans()) == (anew, begun.spans)
    assert await everything(store, HOURS) == (bar(0, 60.0), bar(1))
    assert [flaw.kind for flaw in await store.flaws()] == ["duplicate", "bad"]


async def test_a_store_that_cannot_begin_again_stays_what_it_was(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(0)])])
    nonsense = Series(Feed.CANDLES, "binance", "BTCUSDT/7h", Candle)
    with pytest.raises(ValueError, match="7h"):
        await store.renew(Origin(False, "recorded anew"), [Batch(HOURS, [bar(1)]), Batch(nonsense, [bar(0)])])
    assert (store.origin, await everything(store, HOURS)) == (RECORDED, (bar(0),))


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize(("series", "rows"), [EVERY_KIND[0], EVERY_KIND[7]], ids=["numbers", "documents"])
async def test_only_an_empty_store_is_begun(
    store: SeriesStore, series: Series[Any], rows: list[Any], sealed: bool
) -> None:
    first, second = Origin(False, "first"), Origin(False, "second")
    assert await store.begin(first, [Batch(series, rows)])
    if sealed:
        await store.seal(EVER)
    assert not await store.begin(second, [Batch(OI, [level(1)])])
    assert (store.origin, await everything(store, series)) == (first, tuple(rows))
    assert await everything(store, OI) == ()
    await store.renew(second)
    assert await store.begin(first, [Batch(OI, [level(1)])])
    assert (store.origin, len(await store.spans())) == (first, 1)


async def test_invented_and_recorded_never_mix(store: SeriesStore) -> None:
    await store.write([Batch(HOURS, [bar(0)])])
    with pytest.raises(Refused, match="SYNTHETIC seed 11"):
        await store.renew(INVENTED)
    with pytest.raises(Refused, match="SYNTHETIC seed 11"):
        await store.begin(INVENTED, [Batch(HOURS, [bar(1)])])
    assert await everything(store, HOURS) == (bar(0),)


# -- whatever comes in whatever order


rows_of_hours = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([60.0, 70.0, math.nan]), st.none() | st.integers(0, 6)), max_size=5
)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(rows_of_hours, st.integers(0, 4)), max_size=6))
def test_the_file_and_the_memory_never_differ(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    async def lived(store: SeriesStore) -> list[object]:
        seen: list[object] = []
        for step in steps:
            if isinstance(step, int):
                seen.append(await store.seal(Millis(AT + step * HOUR_MS)))
            else:
                batches = [
                    Batch(HOURS, [bar(hour, close)], None if known is None else Millis(AT + known * HOUR_MS))
                    for hour, close, known in step
                ]
                seen.append(await store.write(batches))
            for hour in range(8):
                whole = await everything(store, HOURS, AT + hour * HOUR_MS)
                last = [await store.read(HOURS, Millis(0), EVER, Millis(AT + hour * HOUR_MS), few) for few in (1, 2, 3)]
                assert last == [whole[-few:] for few in (1, 2, 3)]
                seen.append(whole)
                seen.append(await asides(store, HOURS, AT + hour * HOUR_MS))
            seen += [await store.spans(), await store.flaws()]
            seen += [await store.newest_known([HOURS]), await store.all_known([HOURS])]
        await store.close()
        return seen

    folder = tmp_path_factory.mktemp("either")
    with asyncio.Runner() as runner:
        assert runner.run(lived(SqliteSeries(folder, RECORDED))) == runner.run(lived(MemorySeries(RECORDED)))


# -- the file alone


def test_reading_makes_nothing(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteSeries(tmp_path / "own", RECORDED)
        assert await everything(store, HOURS) == ()
        assert (await store.spans(), await store.flaws(), await store.seal(EVER)) == ((), (), 0)
        await store.mend([Flaw(HOURS, "bad", AT, AT, 1, "x", "y")])
        await store.write([Batch(HOURS, [])])
        assert store.origin == RECORDED
        await store.close()

    asyncio.run(ask())
    assert not (tmp_path / "own").exists()


async def test_another_process_finds_what_was_written_private_and_whole(tmp_path: Path) -> None:
    first = SqliteSeries(tmp_path / "own", INVENTED)
    await first.renew(Origin(True, "SYNTHETIC seed 12"))
    await first.write([Batch(HOURS, [bar(0)])])
    await first.seal(EVER)
    second = SqliteSeries(tmp_path / "own", INVENTED)
    assert second.origin == Origin(True, "SYNTHETIC seed 12")
    assert await everything(second, HOURS) == (bar(0),)
    assert stat.S_IMODE((tmp_path / "own" / "series.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o700
    assert os.listdir(tmp_path / "own" / "history") == ["rows-2026-01-0001.parquet"]
    await first.renew(INVENTED)
    assert os.listdir(tmp_path / "own" / "history") == []
    assert await everything(second, HOURS) == ()
    await second.close()
    await first.close()


async def test_a_folder_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    store = SqliteSeries(tmp_path / "own", INVENTED)
    await store.write([Batch(HOURS, [bar(0)])])
    await store.close()
    other = SqliteSeries(tmp_path / "own", RECORDED)
    with pytest.raises(Refused, match="SYNTHETIC seed 11"):
        await everything(other, HOURS)
    with pytest.raises(Refused, match="SYNTHETIC seed 11"):
        await other.write([Batch(HOURS, [bar(1)])])


def _write_many(folder: str, mine: int) -> None:
    async def main() -> None:
        store = SqliteSeries(Path(folder), RECORDED)
        for n in range(20):
            await store.write([Batch(HOURS, [bar(1000 * mine + n), bar(n)]), Batch(OI, [level(n)])])
        await store.close()

    asyncio.run(main())


async def test_several_processes_write_at_once_and_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write_many, args=(str(tmp_path / "own"), n)) for n in (1, 2, 3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    store = SqliteSeries(tmp_path / "own", RECORDED)
    assert [span.count for span in await store.spans()] == [80, 20]
    assert await store.flaws() == ()
    await store.close()


def _invent_many(folder: str, mine: int, both: Any) -> None:
    async def main() -> None:
        store = SqliteSeries(Path(folder), INVENTED)
        both.wait(60)
        for n in range(10):
            rows = [bar(hour, 60.0 + mine) for hour in range(500 * mine)]
            begun = await store.renew(
                Origin(True, f"SYNTHETIC seed {mine}"), [Batch(HOURS, rows), Batch(OI, [level(n)])]
            )
            assert begun.written == WriteCounts(500 * mine + 1, 0, 0, 0)
            assert [span.count for span in begun.spans] == [500 * mine, 1]
        await store.close()

    asyncio.run(main())


def _begin_one(folder: str, mine: int, both: Any) -> None:
    async def main() -> bool:
        store = SqliteSeries(Path(folder), INVENTED)
        rows = [bar(hour, 60.0 + mine) for hour in range(500 * mine)]
        both.wait(60)
        begun = await store.begin(Origin(True, f"SYNTHETIC seed {mine}"), [Batch(HOURS, rows), Batch(OI, [level(1)])])
        await store.close()
        return begun

    os._exit(10 if asyncio.run(main()) else 20)


async def _at_once(folder: Path, act: Callable[[str, int, Any], None]) -> list[int | None]:
    """Two processes with a market each; one of the two stands there whole afterwards."""
    context = multiprocessing.get_context("fork")
    both = context.Barrier(2)
    workers = [context.Process(target=act, args=(str(folder), mine, both)) for mine in (1, 2)]
    for worker in workers:
        worker.start()
    store = SqliteSeries(folder, INVENTED)
    while any(worker.is_alive() for worker in workers):  # whoever looks meanwhile sees one of them whole, or none yet
        state = await store.read_many([Slice(HOURS, Millis(0), EVER), Slice(OI, Millis(0), EVER)], EVER)
        if state.origin != INVENTED:
            seed = int(state.origin.label[-1])
            assert {row.close for row in state.rows[0]} == {60.0 + seed}
            assert [len(rows) for rows in state.rows] == [500 * seed, 1]
    for worker in workers:
        worker.join(60)
    mine = int(store.origin.label[-1])
    assert {row.close for row in await everything(store, HOURS)} == {60.0 + mine}
    assert [span.count for span in await store.spans()] == [500 * mine, 1]
    assert await store.flaws() == ()
    await store.close()
    return [worker.exitcode for worker in workers]


@pytest.mark.soak
async def test_of_two_markets_invented_at_once_one_is_there_whole(tmp_path: Path) -> None:
    assert await _at_once(tmp_path / "own", _invent_many) == [0, 0]


@pytest.mark.soak
async def test_of_two_who_begin_at_once_one_is_first_and_the_other_leaves_it_alone(tmp_path: Path) -> None:
    for n in range(5):
        assert sorted(await _at_once(tmp_path / str(n), _begin_one), key=str) == [10, 20]


async def test_no_write_lies_between_two_series_that_are_read_together(tmp_path: Path) -> None:
    reader, writer, seeds = SqliteSeries(tmp_path, INVENTED), SqliteSeries(tmp_path, INVENTED), iter(range(1, 100))

    def another(statement: str = "SELECT") -> None:
        if statement.startswith("SELECT"):
            seed = next(seeds)
            rows = [Batch(HOURS, [bar(0, 60.0 + seed)]), Batch(OI, [level(0, 60.0 + seed)])]
            writer._renew(Origin(True, f"SYNTHETIC seed {seed}"), rows, lambda _: True)  # type: ignore[arg-type]

    another()
    assert len(await everything(reader, HOURS)) == 1  # opens the file
    assert reader._file._connection is not None
    reader._file._connection.set_trace_callback(another)  # a whole market before every question
    state = await reader.read_many([Slice(HOURS, Millis(0), EVER), Slice(OI, Millis(0), EVER)], EVER)
    ((hour,), (interest,)) = state.rows
    assert state.origin.label == f"SYNTHETIC seed {hour.close - 60.0:.0f}"
    assert hour.close == interest.value
    assert next(seeds) > 5
    await reader.close()
    await writer.close()


async def test_a_store_that_somebody_holds_is_unavailable(tmp_path: Path) -> None:
    store = SqliteSeries(tmp_path / "own", RECORDED)
    await store.write([Batch(HOURS, [bar(0)])])
    connection = store._file._connection
    assert connection is not None
    connection.execute("PRAGMA busy_timeout = 20")
    other = sqlite3.connect(tmp_path / "own" / "series.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="did not answer"):
        await store.write([Batch(HOURS, [bar(1)])])
    assert await everything(store, HOURS) == (bar(0),)  # readers do not wait
    other.close()
    await store.write([Batch(HOURS, [bar(1)])])
    await store.close()


def _write_in_little_room(folder: str, seal: bool, answer: Any) -> None:
    async def main() -> str:
        store = SqliteSeries(Path(folder), RECORDED)
        await store.write([Batch(HOURS, [bar(n, 60.0 + n % 7) for n in range(2_000)])])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        room = (Path(folder) / "series.db-wal").stat().st_size if not seal else 4_096
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        try:
            if seal:
                await store.seal(EVER)
            else:
                await store.write([Batch(HOURS, [bar(n, 60.0 + n % 7) for n in range(2_000, 60_000)])])
        except Unavailable as error:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            left = sorted(os.listdir(Path(folder) / "history")) if seal else []
            return f"{len(await everything(store, HOURS))} rows, {left}: {error}"
        return "it fitted"

    answer.put(asyncio.run(main()))


@pytest.mark.parametrize("seal", [False, True])
def test_a_disk_without_room_is_said_and_nothing_is_lost(tmp_path: Path, seal: bool) -> None:
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    worker = context.Process(target=_write_in_little_room, args=(str(tmp_path / "own"), seal, answer))
    worker.start()
    said = answer.get(timeout=60)
    worker.join(60)
    assert said.startswith("2000 rows, []: ")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"no database at all" * 100,
        lambda data: data[:4096] + bytes(len(data) - 4096),
        lambda data: data[: len(data) // 2],
    ],
)
async def test_a_damaged_file_is_broken_with_a_sentence(tmp_path: Path, damage: Any) -> None:
    store = SqliteSeries(tmp_path / "own", RECORDED)
    await store.write([Batch(HOURS, [bar(n) for n in range(3_000)])])
    await store.close()
    path = tmp_path / "own" / "series.db"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(Broken, match=r"series\.db"):
        await store.flaws()
    await store.close()


async def test_a_file_from_before_pasts_were_kept_is_read_and_keeps_them_from_now_on(tmp_path: Path) -> None:
    store = SqliteSeries(tmp_path / "own", RECORDED)
    await store.write([Batch(HOURS, [bar(0)])])
    await store.close()
    with sqlite3.connect(tmp_path / "own" / "series.db") as connection:
        connection.execute("DROP TABLE earlier")
    connection.close()
    assert await everything(store, HOURS) == (bar(0),)
    await store.write(known_at(10, bar(0, 60.0)))
    assert await everything(store, HOURS, AT + 9 * HOUR_MS) == (bar(0),)
    await store.close()


async def test_a_file_from_before_notes_knew_when_is_read_and_learns_it_at_the_next_write(tmp_path: Path) -> None:
    store, spoilt = SqliteSeries(tmp_path / "own", RECORDED), level(5, math.nan)
    await store.write([Batch(OI, [level(1), spoilt], known=Millis(AT + 60))])
    await store.close()
    path = tmp_path / "own" / "series.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """CREATE TABLE old (series INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL,
                detail TEXT NOT NULL, replaced BLOB, mended TEXT, UNIQUE (series, at, kind, id, detail));
            INSERT INTO old SELECT series, at, kind, id, detail, replaced, mended FROM notes;
            DROP TABLE notes; ALTER TABLE old RENAME TO notes"""
        )
    connection.close()
    before = path.read_bytes()
    assert await asides(store, OI) == []  # since when, nobody can say
    (flaw,) = await store.flaws()
    await store.close()
    assert path.read_bytes() == before  # reading changes nothing
    await store.write([Batch(OI, [level(6, -1.0)], known=Millis(AT + 70))])
    assert [await asides(store, OI, AT + known) for known in (69, 70)] == [[], [6]]
    await store.write([Batch(OI, [spoilt], known=Millis(AT + 80))])
    assert [await asides(store, OI, AT + known) for known in (79, 80)] == [[6], [5, 6]]
    assert (await store.flaws())[0] == flaw
    await store.close()


async def test_a_file_of_another_version_is_left_alone(tmp_path: Path) -> None:
    store = SqliteSeries(tmp_path / "own", RECORDED)
    await store.write([Batch(HOURS, [bar(0)])])
    await store.close()
    with sqlite3.connect(tmp_path / "own" / "series.db") as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    connection.close()
    with pytest.raises(Broken, match=r"\bversion\b"):
        await everything(store, HOURS)


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "garbage", "another's"])
async def test_a_damaged_file_of_history_is_broken_with_its_name(tmp_path: Path, damage: str) -> None:
    store = SqliteSeries(tmp_path / "own", RECORDED)
    await store.write([Batch(HOURS, [bar(n) for n in range(100)])])
    await store.seal(EVER)
    path = tmp_path / "own" / "history" / "rows-2026-01-0001.parquet"
    data = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(data[:-20])
        case "changed":
            path.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
        case "gone":
            path.unlink()
        case "another's":
            other = SqliteSeries(tmp_path / "other", RECORDED)
            await other.write([Batch(HOURS, [bar(n, 60.0 + n) for n in range(50)])])
            await other.seal(EVER)
            await other.close()
            path.write_bytes((tmp_path / "other" / "history" / path.name).read_bytes())
        case _:
            path.write_bytes(b"x" * len(data))
    with pytest.raises(Broken, match=r"rows-2026-01-0001\.parquet"):
        await store.flaws()
    if damage != "changed":  # which only its hash tells
        with pytest.raises(Broken, match=r"rows-2026-01-0001\.parquet"):
            await everything(store, HOURS)
    await store.close()


def _pressed(document: object) -> bytes:
    return zlib.compress(json.dumps(document).encode())


@pytest.mark.parametrize(
    "body",
    [
        b"\x00",
        zlib.compress(b"{"),
        _pressed([[[1.0, 2.0, 3.0]], []]),
        _pressed([[[1.0, 2.0]], [], "more"]),
        _pressed({"bids": [], "asks": []}),
        _pressed(5),
    ],
    ids=["garbage", "cut", "an older quote", "an older book", "names", "a number"],
)
@pytest.mark.parametrize(
    ("origin", "remedy"),
    [(INVENTED, "`zuno data synth` makes it anew"), (RECORDED, "put it back from a copy, or move it away")],
    ids=["invented", "recorded"],
)
async def test_a_document_in_another_form_is_broken_with_its_series_and_what_to_do(
    tmp_path: Path, body: bytes, origin: Origin, remedy: str
) -> None:
    store, book = SqliteSeries(tmp_path / "own", origin), books("binance", "BTCUSDT")
    await store.write([Batch(book, [Book(AT, (), ())]), Batch(HOURS, [bar(0)])])
    await store.close()
    with sqlite3.connect(tmp_path / "own" / "series.db") as connection:
        connection.execute("UPDATE documents SET body = ?", (body,))
    connection.close()
    said = re.escape(f"keeps book/binance/BTCUSDT in a form this Zuno does not read; {remedy}.")
    with pytest.raises(Broken, match=said):
        await everything(store, book)
    with pytest.raises(Broken, match=said):
        await store.read_many([Slice(HOURS, AT, AT), Slice(book, AT, AT)], EVER)
    with pytest.raises(Broken, match=said):
        await store.write([Batch(book, [Book(AT, (), (Quote(1.0, 1.0),))])])
    assert await everything(store, HOURS) == (bar(0),)
    await store.renew(origin, [Batch(book, [Book(AT, (), ())])])  # which looks at nothing that was here
    assert await everything(store, book) == (Book(AT, (), ()),)
    await store.close()


async def test_names_that_no_series_has_and_notes_in_another_form_are_broken_too(tmp_path: Path) -> None:
    store, book = SqliteSeries(tmp_path / "own", INVENTED), books("binance", "BTCUSDT")
    await store.write([Batch(book, [Book(AT, (), ())])])
    await store.write([Batch(book, [Book(AT, (), (Quote(1.0, 1.0),))])])
    await store.close()
    with sqlite3.connect(tmp_path / "own" / "series.db") as connection:
        connection.execute("UPDATE notes SET replaced = ?", (_pressed([[], [], []]),))
    connection.close()
    with pytest.raises(Broken, match=r"\bbook/binance/BTCUSDT\b.* `zuno data synth`"):
        await store.flaws()
    await store.close()
    with sqlite3.connect(tmp_path / "own" / "series.db") as connection:
        connection.execute("UPDATE series SET name = 'moods/binance/BTCUSDT'")
    connection.close()
    for ask in (store.spans, store.flaws):
        with pytest.raises(Broken, match=r"moods/binance/BTCUSDT.*`zuno data synth`"):
            await ask()
    await store.close()


async def test_a_text_written_by_names_is_not_taken_for_its_names(tmp_path: Path) -> None:
    store, news = SqliteSeries(tmp_path / "own", RECORDED), texts(Feed.NEWS, "telegram", "BTC")
    await store.write([Batch(news, [Text(AT, "a", "1", "words")])])
    await store.close()
    with sqlite3.connect(tmp_path / "own" / "series.db") as connection:
        connection.execute("UPDATE documents SET body = ?", (_pressed({"channel": "a", "id": "1", "text": "words"}),))
    connection.close()
    with pytest.raises(Broken, match="news/telegram/BTC"):
        await everything(store, news)
    await store.close()


# -- columns


def columns_of(*bars: Candle, series: Series[Any] = HOURS) -> Columns:
    table = np.array([row[1:] for row in bars], dtype=np.float64)
    return Columns(series, np.array([row.at for row in bars], dtype=np.int64), tuple(table.T))


def long_history(count: int, close: float = 100.0) -> tuple[Candle, ...]:
    """Enough of a month to become a file of history at once."""
    minutes = (Millis(AT + minute * MINUTE_MS) for minute in range(count))
    return tuple(Candle(at, 100.0, 200.0, 50.0, close, 1.5, None if at % 7 else 1.0) for at in minutes)


@pytest.mark.parametrize("count", [3, 6_000])
async def test_columns_become_rows_once(store: Any, count: int) -> None:
    series, bars = candles("binance", "BTCUSDT", Timeframe.M1), long_history(count)
    now = Millis(AT + 999 * DAY_MS)
    first = await store.write_columns(columns_of(*bars, series=series), Source.IMPORTED, "a.csv", now)
    assert (first.new.sum(), first.changed.sum(), first.left.sum()) == (count, 0, 0)
    assert await everything(store, series) == bars
    assert await everything(store, series, bars[-1].at) == bars[:-1]  # known when it had closed
    again = await store.write_columns(columns_of(*bars, series=series), Source.IMPORTED, "a.csv", now)
    assert (again.new.sum(), again.changed.sum(), again.left.sum()) == (0, 0, 0)
    assert await store.sources() == (RowSource(series, Source.IMPORTED, "a.csv", count, AT, bars[-1].at),)
    assert await store.flaws() == ()
    assert store.origin == PUBLIC_HISTORY
    back = await store.read_columns(series, bars[1].at, bars[2].at)
    assert to_rows(back) == list(bars[1:3])
    assert (await store.all_known([series])) == (bars[-1].at + MINUTE_MS,)


@pytest.mark.parametrize("count", [3, 6_000])
async def test_columns_take_the_place_of_other_numbers_where_they_may(store: Any, count: int) -> None:
    series, bars, others = candles("binance", "BTCUSDT", Timeframe.M1), long_history(count), long_history(3, 120.0)
    now = Millis(AT + 999 * DAY_MS)
    await store.write_columns(columns_of(*bars, series=series), Source.IMPORTED, "a.csv", now)
    may = np.array([True, False, True])
    done = await store.write_columns(columns_of(*others, series=series), Source.IMPORTED, "b.csv", now, may)
    assert (done.new.tolist(), done.changed.tolist(), done.left.tolist()) == (
        [False] * 3,
        may.tolist(),
        (~may).tolist(),
    )
    assert await everything(store, series) == (others[0], bars[1], others[2], *bars[3:])
    assert [flaw.first for flaw in await store.flaws()] == [others[0].at, others[2].at]


async def test_columns_among_what_was_collected_are_known_from_now(store: Any) -> None:
    now = Millis(AT + 99 * HOUR_MS)
    await store.write([Batch(HOURS, [bar(1), bar(5)], known=Millis(AT + 9 * HOUR_MS))])
    await store.write_columns(columns_of(bar(0), bar(1, 120.0), bar(3), bar(7)), Source.IMPORTED, "a.csv", now)
    assert await everything(store, HOURS, AT + 9 * HOUR_MS) == (bar(0), bar(1), bar(5), bar(7))
    assert await everything(store, HOURS, now) == (bar(0), bar(1, 120.0), bar(3), bar(5), bar(7))
    assert store.origin == RECORDED


async def test_no_columns_are_nothing(store: Any) -> None:
    assert len(await store.read_columns(HOURS, Millis(0), EVER)) == 0
    done = await store.write_columns(await store.read_columns(HOURS, Millis(0), EVER), Source.IMPORTED, "", EVER)
    assert done.new.tolist() == []
    assert await store.spans() == ()
