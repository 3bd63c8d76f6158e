"""What is wrong with the market's past, where, and what is done about it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.wire.fakes.series import MemorySeries
from tests.wire.resampling import resample_bars
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.trading.data import check
from zuno.trading.data.check import Fetch
from zuno.trading.measure.bars import aggregate
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Candle,
    Level,
    MacroRelease,
    Series,
    Timeframe,
    candles,
    fear_greed,
    macro,
    open_interest,
)
from zuno.trading.ports.series import Batch, Flaw, Origin
from zuno.trading.service.data import DataCheckView, DataDesk, format_minute

M1, H1, H4, D1, W1 = Timeframe
AT = Millis(1_766_966_400_000)
"""2025-12-29, a Monday."""
EVER = Millis(2**62)
SYNTHETIC = Origin(True, "SYNTHETIC seed 11")


def series(timeframe: Timeframe, venue: str = "binance") -> Series[Candle]:
    return candles(venue, "BTCUSDT", timeframe)


def bars(timeframe: Timeframe, count: int, at: int = AT) -> list[Candle]:
    return [
        Candle(
            Millis(at + n * timeframe.millis), 100.0 + n % 7, 120.0 + n % 5, 80.0 - n % 3, 101.0 + n % 4, 1.1 + n, 0.3
        )
        for n in range(count)
    ]


MINUTES = bars(M1, 8 * 60)
HOURS = list(resample_bars(H1, M1, MINUTES))
FOURS = list(resample_bars(H4, H1, HOURS))


def now() -> Millis:
    return Millis(AT + 99 * DAY_MS)


def over(store: MemorySeries, fetch: Fetch | None = None) -> DataDesk:
    return DataDesk(store, now, fetch)


async def filled(*given: tuple[Timeframe, Sequence[Candle]], venue: str = "binance") -> MemorySeries:
    store = MemorySeries(SYNTHETIC)
    await store.write([Batch(series(timeframe, venue), rows) for timeframe, rows in given])
    return store


async def held(store: MemorySeries, timeframe: Timeframe, venue: str = "binance") -> list[Candle]:
    return list(await store.read(series(timeframe, venue), Millis(0), EVER, EVER))


def told(view: DataCheckView) -> list[tuple[str, str, int, int, str | None]]:
    """Series, kind, how many minutes after the first bar, how many rows, what was done."""
    return [
        (flaw.series.rpartition("/")[2], flaw.kind, (flaw.first - AT) // MINUTE_MS, flaw.count, _done(flaw.mended))
        for flaw in view.flaws
    ]


def _done(mended: str | None) -> str | None:
    """What was done in one word, and by how many bars of which timeframe."""
    if mended is None:
        return None
    word = next(word for word in ("rebuilt", "fetched", "newer", "earlier", "kept") if word in mended)
    return " ".join((word, *re.findall(r"\b\d+ \d[mhdw]\b", mended)))


async def test_nothing_is_wrong_with_a_whole_past() -> None:
    view = await over(await filled((M1, MINUTES), (H1, HOURS), (H4, FOURS))).check()
    assert (view.ok, view.flaws, view.checked, view.origin) == (True, (), 3, "SYNTHETIC seed 11")


async def test_gaps_are_told_as_stretches_with_their_place() -> None:
    store = await filled((M1, MINUTES[:10] + MINUTES[13:60] + MINUTES[61:]))
    view = await over(store).check()
    assert told(view) == [("1m", "gap", 10, 3, None), ("1m", "gap", 60, 1, None)]
    assert view.flaws[0].place == "2025-12-29 00:10 – 2025-12-29 00:12 UTC"
    assert (view.ok, view.remaining, view.mended) == (False, 2, 0)


async def test_a_missing_fine_bar_stays_a_gap_and_is_never_made_up() -> None:
    store = await filled((M1, MINUTES[:10] + MINUTES[13:]))
    before = await held(store, M1)
    view = await over(store).check(repair=True)
    assert (told(view), view.ok) == ([("1m", "gap", 10, 3, None)], False)
    assert await held(store, M1) == before


async def test_a_missing_coarse_bar_is_rebuilt_from_its_finer_bars() -> None:
    store = await filled((M1, MINUTES), (H1, HOURS[:2] + HOURS[4:]), (H4, FOURS))
    desk = over(store)
    assert told(await desk.check()) == [("1h", "gap", 120, 2, None)]
    view = await desk.check(repair=True)
    assert told(view) == [("1h", "gap", 120, 2, "rebuilt 60 1m")]
    assert view.ok
    assert await held(store, H1) == HOURS
    assert (await desk.check()).flaws == (await desk.check(repair=True)).flaws == ()


async def test_a_coarse_bar_with_a_hole_in_its_minutes_is_not_rebuilt_from_the_rest() -> None:
    store = await filled((M1, MINUTES[:70] + MINUTES[71:]), (H1, HOURS[:1] + HOURS[2:]))
    view = await over(store).check(repair=True)
    assert told(view) == [("1h", "gap", 60, 1, None), ("1m", "gap", 70, 1, None)]
    assert await held(store, H1) == HOURS[:1] + HOURS[2:]


async def test_the_nearest_complete_finer_bars_are_asked() -> None:
    store = await filled((M1, MINUTES), (H1, HOURS[:4]), (H4, [*FOURS[:1], FOURS[1]._replace(close=99.0)]))
    view = await over(store).check(repair=True)
    assert told(view) == [("4h", "disagreement", 240, 1, "rebuilt 240 1m")]
    assert await held(store, H4) == FOURS


async def test_what_is_rebuilt_counts_for_the_next_in_the_same_run() -> None:
    store = await filled((M1, MINUTES), (H1, [*HOURS[:1], HOURS[1]._replace(high=500.0), *HOURS[2:]]), (H4, FOURS))
    desk = over(store)
    assert told(await desk.check()) == [
        ("1h", "disagreement", 60, 1, None),
        ("4h", "disagreement", 0, 1, None),  # by the hour that is wrong itself
    ]
    view = await desk.check(repair=True)
    assert told(view) == [("1h", "disagreement", 60, 1, "rebuilt 60 1m")]
    assert (await held(store, H1), await held(store, H4)) == (HOURS, FOURS)
    again = await desk.check(repair=True)
    assert (again.ok, again.flaws) == (True, ())
    assert again.settled_before == 1  # the conflict that mending made is noted as settled


async def test_a_disagreement_says_what_and_by_how_much() -> None:
    store = await filled((M1, MINUTES[:60]), (H1, [HOURS[0]._replace(volume=3.0, taker_buy=None)]))
    (flaw,) = (await over(store).check()).flaws
    assert re.fullmatch(rf"volume\b.* 3\.0\b.* {re.escape(repr(HOURS[0].volume))}", flaw.detail)
    assert "finer" in flaw.rule


async def test_weeks_are_held_against_days_and_windows_do_not_cut_them() -> None:
    days = bars(D1, 7 * 9)  # over three windows
    weeks = list(resample_bars(W1, D1, days))
    store = await filled((D1, days), (W1, [*weeks[:4], weeks[4]._replace(low=1.0), *weeks[5:8], *weeks[8:]]))
    view = await over(store).check(repair=True)
    assert told(view) == [("1w", "disagreement", 4 * 7 * 1440, 1, "rebuilt 7 1d")]
    assert await held(store, W1) == weeks


@pytest.mark.parametrize(("off", "flaws"), [(2.0**-53 * 10_000, 0), (1e-9, 1)])
async def test_a_volume_may_differ_by_what_adding_up_its_minutes_can(off: float, flaws: int) -> None:
    """A week that was summed from ten thousand minutes beside one that is summed from seven days."""
    days = bars(D1, 7)
    (week,) = resample_bars(W1, D1, days)
    store = await filled((D1, days), (W1, [week._replace(volume=week.volume * (1 + off), taker_buy=None)]))
    assert len((await over(store).check()).flaws) == flaws


async def test_a_gap_over_the_edge_of_a_window_is_one_and_is_mended_at_once() -> None:
    days = bars(D1, 7 * 9)
    quarters = [
        Candle(Millis(day.at + n * 4 * HOUR_MS), day.open, day.high, day.low, day.open, 1.0 + n, None)
        for day in days
        for n in range(6)
    ]
    made = list(resample_bars(D1, H4, quarters))
    store = await filled((H4, quarters), (D1, made[:27] + made[30:]))
    desk = over(store)
    assert told(await desk.check()) == [("1d", "gap", 27 * 1440, 3, None)]
    assert told(await desk.check(repair=True)) == [("1d", "gap", 27 * 1440, 3, "rebuilt 6 4h")]
    assert (await desk.check(repair=True)).flaws == ()
    assert await held(store, D1) == made


# -- conflicts and rows that were set aside


async def test_of_two_bars_the_one_that_agrees_with_its_finer_bars() -> None:
    store = await filled((M1, MINUTES[:120]), (H1, HOURS[:2]))
    await store.write([Batch(series(H1), [HOURS[0]._replace(close=90.0), HOURS[1]])])  # newer, and wrong
    desk = over(store)
    assert told(await desk.check()) == [("1h", "conflict", 0, 1, None), ("1h", "disagreement", 0, 1, None)]
    done = "earlier 60 1m"
    view = await desk.check(repair=True)
    assert told(view) == [("1h", "conflict", 0, 1, done), ("1h", "disagreement", 0, 1, done)]
    assert await held(store, H1) == HOURS[:2]
    assert (await desk.check(repair=True)).flaws == ()


async def test_the_earlier_bar_is_put_back_as_it_was() -> None:
    """Its last bit, too: the finer bars judge it, they do not replace it."""
    own = HOURS[0]._replace(volume=math.nextafter(HOURS[0].volume, 0.0))
    store = await filled((M1, MINUTES[:60]), (H1, [own]))
    await store.write([Batch(series(H1), [HOURS[0]._replace(low=1.0)])])
    await over(store).check(repair=True)
    assert await held(store, H1) == [own] != [HOURS[0]]


async def test_of_two_bars_the_newer_where_it_agrees_or_nobody_can_say() -> None:
    store = await filled((M1, MINUTES[:60]), (H1, [HOURS[0]._replace(close=90.0), HOURS[1]]))
    await store.write([Batch(series(H1), [HOURS[0], HOURS[1]._replace(close=91.0)])])
    await store.write([Batch(series(M1), [MINUTES[0]._replace(volume=1.2)])])
    await store.write([Batch(series(M1), [MINUTES[0]])])
    desk = over(store)
    view = await desk.check(repair=True)
    assert told(view) == [
        ("1h", "conflict", 0, 1, "kept 60 1m"),
        ("1h", "conflict", 60, 1, "newer"),
        ("1m", "conflict", 0, 1, "newer"),
        ("1m", "conflict", 0, 1, "newer"),
    ]
    assert await held(store, H1) == [HOURS[0], HOURS[1]._replace(close=91.0)]
    again = await desk.check(repair=True)
    assert (again.ok, again.flaws, again.settled_before) == (True, (), 4)


async def test_a_bad_coarse_bar_is_rebuilt_and_a_bad_fine_one_is_a_gap() -> None:
    hours = [HOURS[0], HOURS[1]._replace(high=1.0), HOURS[2]]
    store = await filled((M1, [*MINUTES[:179], MINUTES[179]._replace(close=math.nan), *MINUTES[180:200]]), (H1, hours))
    desk = over(store)
    view = await desk.check(repair=True)
    assert told(view) == [
        ("1h", "bad", 60, 1, "rebuilt 60 1m"),
        ("1h", "gap", 60, 1, "rebuilt 60 1m"),
        ("1m", "bad", 179, 1, None),
        ("1m", "gap", 179, 1, None),
    ]
    assert await held(store, H1) == HOURS[:3]
    again = await desk.check(repair=True)
    assert told(again) == told(view)[2:]


async def test_a_bad_row_whose_place_was_taken_by_a_good_one_is_settled() -> None:
    interest = open_interest("okx", "BTCUSDT")
    store = MemorySeries(SYNTHETIC)
    await store.write([Batch(interest, [Level(AT, -1.0), Level(Millis(AT + 1), -1.0)])])
    await store.write([Batch(interest, [Level(AT, 1.0)])])
    view = await over(store).check(repair=True)
    assert [(flaw.first, flaw.mended is None) for flaw in view.flaws] == [(AT, False), (AT + 1, True)]


async def test_one_answer_that_repeats_itself_is_no_flaw_that_remains() -> None:
    store = await filled((M1, [*MINUTES[:5], MINUTES[0]]))
    view = await over(store).check()
    assert (view.ok, view.flaws, view.settled_before) == (True, (), 1)


# -- venues that make no bar without a trade


async def test_no_trade_is_no_gap_at_upbit() -> None:
    quiet = MINUTES[:10] + MINUTES[13:120]
    hours = [aggregate(HOURS[0].at, quiet[:57]), HOURS[1]]
    assert (await over(await filled((M1, quiet), (H1, hours), venue="upbit")).check()).flaws == ()
    assert (await over(await filled((M1, quiet), venue="binance")).check()).flaws != ()


async def test_an_hour_at_upbit_that_its_minutes_do_not_make_is_told_and_left() -> None:
    store = await filled((M1, MINUTES[:10] + MINUTES[13:120]), (H1, HOURS[:2]), venue="upbit")
    view = await over(store).check(repair=True)
    assert told(view) == [("1h", "disagreement", 0, 1, None)]
    assert await held(store, H1, "upbit") == HOURS[:2]


async def test_an_hour_in_which_minutes_were_traded_is_a_gap_even_at_upbit() -> None:
    store = await filled(
        (M1, [*MINUTES[:60], MINUTES[70], *MINUTES[180:240]]), (H1, [HOURS[0], HOURS[3]]), venue="upbit"
    )
    view = await over(store).check(repair=True)
    assert told(view) == [("1h", "gap", 60, 1, None)]  # the hour after it had no trade at all


# -- frozen


async def test_frozen_stretches_are_told_and_left() -> None:
    stuck = [MINUTES[5]._replace(at=one.at) for one in MINUTES[5:15]]
    interest = open_interest("okx", "BTCUSDT")
    index = fear_greed("alternative.me")
    store = await filled((M1, MINUTES[:5] + stuck + MINUTES[15:20]))
    await store.write([Batch(interest, [Level(Millis(AT + n * HOUR_MS), 5.0) for n in range(900)])])  # over windows
    await store.write([Batch(index, [Level(Millis(AT + n * DAY_MS), 50.0) for n in range(30)])])
    view = await over(store).check(repair=True)
    assert told(view) == [("1m", "frozen", 5, 10, None), ("BTCUSDT", "frozen", 0, 900, None)]
    assert "rebuilt" not in view.flaws[0].rule


# -- a source to ask again


async def test_a_missing_bar_is_fetched_again_where_a_source_is_configured() -> None:
    asked: list[tuple[str, int, int]] = []

    async def fetch(wanted: Series[Candle], since: Millis, until: Millis) -> Sequence[Candle]:
        asked.append((str(wanted), since, until))
        return [bar for bar in MINUTES if since <= bar.at <= until and bar is not MINUTES[70]]

    store = await filled((M1, MINUTES[:10] + MINUTES[13:70] + MINUTES[71:120]), (H1, [HOURS[1]]))
    await store.write([Batch(series(H1), [HOURS[0]._replace(close=90.0)])])
    view = await over(store, fetch).check(repair=True)
    assert asked == [
        (str(series(M1)), MINUTES[10].at, MINUTES[12].at),
        (str(series(M1)), MINUTES[70].at, MINUTES[70].at),
    ]
    assert told(view) == [
        ("1h", "disagreement", 0, 1, "rebuilt 60 1m"),  # which only now were complete
        ("1m", "gap", 10, 3, "fetched"),
        ("1m", "gap", 70, 1, None),
    ]
    assert "venue" in view.flaws[2].detail
    assert await held(store, M1) == MINUTES[:70] + MINUTES[71:120]


async def test_of_what_is_fetched_again_only_what_was_missing_is_taken() -> None:
    """A venue may answer with more than it was asked for; what is here stays as it is."""

    async def fetch(wanted: Series[Candle], since: Millis, until: Millis) -> Sequence[Candle]:
        return [bar._replace(volume=bar.volume + 1.0) for bar in MINUTES[:120]]

    gone = (10, 11, 12, 70)
    store = await filled((M1, [bar for place, bar in enumerate(MINUTES[:120]) if place not in gone]))
    view = await over(store, fetch).check(repair=True)
    assert told(view) == [("1m", "gap", 10, 3, "fetched"), ("1m", "gap", 70, 1, "fetched")]
    assert await held(store, M1) == [
        bar._replace(volume=bar.volume + 1.0) if place in gone else bar for place, bar in enumerate(MINUTES[:120])
    ]
    assert await store.flaws() == ()


async def test_what_a_venue_has_of_a_hole_divides_what_it_has_not() -> None:
    async def fetch(wanted: Series[Candle], since: Millis, until: Millis) -> Sequence[Candle]:
        return [MINUTES[13]]

    view = await over(await filled((M1, MINUTES[:10] + MINUTES[20:])), fetch).check(repair=True)
    assert told(view) == [
        ("1m", "gap", 10, 3, None),
        ("1m", "gap", 13, 1, "fetched"),
        ("1m", "gap", 14, 6, None),
    ]


async def test_years_without_a_bar_are_a_few_notes_and_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(*given: Any) -> Flaw:
        made.append(given[4])
        return Flaw(*given)

    monkeypatch.setattr(check, "Flaw", counted)
    years = 3 * 365 * DAY_MS
    later = [bar._replace(at=Millis(bar.at + years)) for bar in MINUTES[:10]]
    store = await filled((M1, MINUTES[:10] + later))
    missing = years // MINUTE_MS - 10
    assert told(await over(store).check()) == [("1m", "gap", 10, missing, None)]
    assert sum(made) == missing
    assert len(made) < 50  # one of each window


async def test_nobody_is_asked_without_repair() -> None:
    async def fetch(*_: Any) -> Sequence[Candle]:
        raise AssertionError("asked")

    view = await over(await filled((M1, MINUTES[:10] + MINUTES[13:])), fetch).check()
    assert told(view) == [("1m", "gap", 10, 3, None)]


async def test_a_source_that_does_not_answer_leaves_the_gap_with_the_reason() -> None:
    async def fetch(*_: Any) -> Sequence[Candle]:
        raise Unavailable("Binance did not answer.")

    view = await over(await filled((M1, MINUTES[:10] + MINUTES[13:])), fetch).check(repair=True)
    (flaw,) = view.flaws
    assert (flaw.detail.endswith(": Binance did not answer."), flaw.mended) == (True, None)


# -- what was known when


async def test_what_is_mended_is_known_from_its_mending_and_who_looks_earlier_sees_what_was_known() -> None:
    async def fetch(wanted: Series[Candle], since: Millis, until: Millis) -> Sequence[Candle]:
        return [bar for bar in MINUTES if since <= bar.at <= until]

    store = MemorySeries(Origin(False, "recorded"))
    wrong = HOURS[1]._replace(high=500.0)
    given = ((M1, MINUTES[:10] + MINUTES[13:]), (H1, [HOURS[0], wrong, HOURS[2], *HOURS[4:]]))
    await store.write([Batch(series(timeframe), rows) for timeframe, rows in given])
    view = await over(store, fetch).check(repair=True)
    assert told(view) == [
        ("1h", "disagreement", 60, 1, "rebuilt 60 1m"),
        ("1h", "gap", 180, 1, "rebuilt 60 1m"),
        ("1m", "gap", 10, 3, "fetched"),
    ]
    for timeframe, rows, mended in ((*given[0], MINUTES), (*given[1], HOURS)):
        assert list(await store.read(series(timeframe), Millis(0), EVER, Millis(now() - 1))) == rows
        assert list(await store.read(series(timeframe), Millis(0), EVER, now())) == mended


async def test_an_invented_market_is_mended_a_moment_after_its_own_end() -> None:
    wrong = HOURS[1]._replace(high=500.0)
    store = await filled((M1, MINUTES), (H1, [HOURS[0], wrong, *HOURS[2:]]))
    assert (await over(store).check(repair=True)).ok
    end = AT + 8 * HOUR_MS
    assert (await store.read(series(H1), Millis(0), EVER, Millis(end)))[1] == wrong
    assert await store.read(series(H1), Millis(0), EVER, Millis(end + 1)) == tuple(HOURS)


async def test_all_of_an_invented_market_has_one_end_whatever_each_series_reaches_to() -> None:
    mood = fear_greed("alternative.me")
    store = await filled((M1, MINUTES), (H1, [HOURS[0], *HOURS[2:]]))
    await store.write([Batch(mood, [Level(Millis(AT + 9 * HOUR_MS), 50.0)])])
    coming = MacroRelease(Millis(AT + DAY_MS), 3.0, Millis(AT + DAY_MS))
    await store.write([Batch(macro("fred", "DGS2"), [coming])])  # is told before its day
    assert (await over(store).check(repair=True)).ok
    assert (await store.all_known([series(H1)])) == (AT + 9 * HOUR_MS + 1,)


async def test_a_clock_that_is_behind_does_not_throw_away_what_is_mended() -> None:
    store = MemorySeries(Origin(False, "recorded"))
    await store.write([Batch(series(M1), MINUTES), Batch(series(H1), [HOURS[0], *HOURS[2:]])])
    assert (await DataDesk(store, lambda: AT).check(repair=True)).ok
    assert await held(store, H1) == HOURS


# -- status and sealing


async def test_what_is_here() -> None:
    store = await filled((M1, MINUTES[:5]), (H1, [HOURS[0]._replace(high=1.0), HOURS[1]]))
    desk = over(store)
    assert await store.seal(MINUTES[2].at) == 2
    view = await desk.status()
    assert (view.synthetic, view.origin, view.rows, view.unsettled) == (True, "SYNTHETIC seed 11", 6, {"bad": 1})
    assert [(one.series, one.count, one.sealed) for one in view.series] == [
        ("candles/binance/BTCUSDT/1h", 1, 0),
        ("candles/binance/BTCUSDT/1m", 5, 2),
    ]
    assert view.series[1].place == "2025-12-29 00:00 – 2025-12-29 00:04 UTC"
    assert (await over(MemorySeries(SYNTHETIC)).status()).notes != ()


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (AT, "2025-12-29 00:00"),
        (AT + 1_000, "2025-12-29 00:00:01"),
        (AT + 59_007, "2025-12-29 00:00:59.007"),
        (-1, "1969-12-31 23:59:59.999"),
        (2**62, f"{2**62} ms (unix)"),
    ],
)
def test_moments_as_people_read_them(at: int, said: str) -> None:
    assert format_minute(at) == said
