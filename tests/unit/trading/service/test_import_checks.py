"""What a file is held against before it is taken: one clock, one row an interval, prices its symbol was near."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from tests.paths import SHARED_DATA
from tests.wire.fakes.series import MemorySeries
from zuno.adapters.imports.files import HistoryFiles
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    Funding,
    Timeframe,
    candles,
    fear_greed,
    funding,
    macro,
    open_interest,
)
from zuno.trading.ports.series import RECORDED, Batch, Source
from zuno.trading.service.data import DataDesk
from zuno.trading.service.imports import Imports, ImportView

BEGIN = datetime(2024, 1, 1)
AT = int(BEGIN.replace(tzinfo=UTC).timestamp()) * 1_000
NOW = Millis(AT + 900 * DAY_MS)
EVER = Millis(2**62)
BTC = Symbol("BTCUSDT")
RATES, INTEREST = funding("binance", BTC), open_interest("binance", BTC)
HOURS = SHARED_DATA / "crypto-hours"
Clock = Callable[[datetime], datetime]


def hours_away(hours: float) -> Clock:
    return lambda at: at + timedelta(hours=hours)


def zone(name: str) -> Clock:
    return lambda at: at.replace(tzinfo=UTC).astimezone(ZoneInfo(name)).replace(tzinfo=None)


CLOCKS: dict[str, tuple[Clock, set[float]]] = {
    "UTC+1": (hours_away(1), {1}),
    "UTC+8": (hours_away(8), {8}),
    "UTC-4": (hours_away(-4), {-4}),
    "UTC+5:30": (hours_away(5.5), {5.5}),
    "Berlin": (zone("Europe/Berlin"), {1, 2}),
    "London": (zone("Europe/London"), {1}),
    "New York": (zone("America/New_York"), {-5, -4}),
}


def write_rows(path: Path, head: str, step: int, values: list[Any], clock: Clock | None = None) -> Path:
    """One value every so many hours."""
    times = [BEGIN + timedelta(hours=step * place) for place in range(len(values))]
    times = times if clock is None else list(map(clock, times))
    lines = [f"{time:%Y-%m-%d %H:%M:%S},{value}" for time, value in zip(times, values, strict=True)]
    path.write_text("\n".join([f"date,{head}", *lines]) + "\n")
    return path


def draw(count: int, low: float, high: float) -> list[float]:
    return np.random.default_rng(7).uniform(low, high, count).round(8).tolist()


def refuse(question: str) -> bool:
    return False


def note_in(asked: list[str], answer: bool) -> Callable[[str], bool]:
    def note(question: str) -> bool:
        asked.append(question)
        return answer

    return note


async def run(
    store: Any, *paths: Path, series: str | None = None, confirm: Callable[[str], bool] = refuse
) -> ImportView:
    imports = Imports(HistoryFiles(), store, lambda: NOW, read_here=True)
    return await imports.run([str(path) for path in paths], series, "auto", lambda progress: None, confirm)


async def stored(store: Any, series: Any) -> tuple[Any, ...]:
    return await store.read(series, Millis(-EVER), EVER, EVER)


def named_shifts(failure: str) -> set[float]:
    """The hours a refusal names."""
    words = failure.replace(",", " ").split()
    return {float(word) for word, unit in pairwise(words) if unit.startswith("h") and word[0] in "+-"}


# -- one clock


@pytest.mark.parametrize("clock", CLOCKS)
async def test_funding_on_a_local_clock_is_refused_with_its_shift(tmp_path: Path, clock: str) -> None:
    rates, store = draw(1_100, -0.001, 0.001), MemorySeries(RECORDED)
    assert (await run(store, write_rows(tmp_path / "btc-funding-8h.csv", "funding_rate", 8, rates))).ok
    away, shifts = CLOCKS[clock]
    view = await run(store, write_rows(tmp_path / "btc-funding-8h.csv", "funding_rate", 8, rates, away))
    assert (view.ok, view.new, view.changed) == (False, 0, 0)
    assert named_shifts(view.files[0].failure) == shifts
    rows = await stored(store, RATES)
    assert [row.rate for row in rows] == rates
    for week in range(0, len(rows) - 21, 21):
        assert sum(row.interval_hours for row in rows[week : week + 21]) <= 7 * 24


@pytest.mark.parametrize("clock", CLOCKS)
async def test_open_interest_on_a_local_clock_is_refused_with_its_shift(tmp_path: Path, clock: str) -> None:
    levels, store = draw(8_760, 50_000, 90_000), MemorySeries(RECORDED)
    assert (await run(store, write_rows(tmp_path / "btc-oi-1h.csv", "open_interest", 1, levels))).ok
    away, shifts = CLOCKS[clock]
    view = await run(store, write_rows(tmp_path / "btc-oi-1h.csv", "open_interest", 1, levels, away))
    assert (view.ok, view.new, view.changed) == (False, 0, 0)
    assert named_shifts(view.files[0].failure) == shifts
    assert len(await stored(store, INTEREST)) == len(levels)


@pytest.mark.parametrize("clock", ["UTC+1", "UTC-4", "UTC+5:30", "London"])
async def test_funding_that_no_venue_pays_then_is_refused_in_an_empty_home(tmp_path: Path, clock: str) -> None:
    """Prints are due at fixed hours of UTC, so that nothing has to be here to see a clock beside it."""
    store, rates = MemorySeries(RECORDED), draw(1_100, -0.001, 0.001)
    away, shifts = CLOCKS[clock]
    view = await run(store, write_rows(tmp_path / "btc-funding-8h.csv", "funding_rate", 8, rates, away))
    assert not view.ok
    assert {shift % 8 for shift in named_shifts(view.files[0].failure)} == {shift % 8 for shift in shifts}
    assert await store.spans() == ()


async def test_bars_that_open_at_half_hours_are_refused(tmp_path: Path) -> None:
    rows = [f"{price},{price + 1},{price - 1},{price},1" for price in draw(60, 40_000, 42_000)]
    file = write_rows(tmp_path / "btc-1h.csv", "open,high,low,close,volume", 1, rows, hours_away(5.5))
    view = await run(MemorySeries(RECORDED), file)
    assert (view.ok, view.set_aside, {abs(shift) for shift in named_shifts(view.files[0].failure)}) == (False, 0, {0.5})


# -- one row an interval


async def test_the_same_print_stamped_a_moment_later_is_the_same(tmp_path: Path) -> None:
    rates, store = draw(60, -0.001, 0.001), MemorySeries(RECORDED)
    await run(store, write_rows(tmp_path / "btc-funding-8h.csv", "funding_rate", 8, rates))
    late = "".join(f"{AT + place * 8 * HOUR_MS + place % 9},8,{rate}\n" for place, rate in enumerate(rates))
    file = tmp_path / "BTCUSDT-fundingRate-2024-01.csv"
    file.write_text("calc_time,funding_interval_hours,last_funding_rate\n" + late)
    view = await run(store, file)
    assert (view.ok, view.rows, view.new, view.changed) == (True, 60, 0, 0)
    assert len(await stored(store, RATES)) == 60


async def test_means_of_days_do_not_pay_the_hours_of_prints_again(tmp_path: Path) -> None:
    store = MemorySeries(RECORDED)
    await run(store, write_rows(tmp_path / "btc-funding-8h.csv", "funding_rate", 8, draw(90, -0.001, 0.001)))
    means = write_rows(tmp_path / "funding-daily.csv", "funding_mean", 24, draw(28, -0.001, 0.001))
    view = await run(store, means, series=str(RATES))
    assert (view.ok, view.new, view.changed) == (False, 0, 0)
    assert {row.interval_hours for row in await stored(store, RATES)} == {8.0}


async def test_a_stray_print_is_set_aside_and_the_rest_is_kept(tmp_path: Path) -> None:
    rates, store = draw(60, -0.001, 0.001), MemorySeries(RECORDED)
    file = write_rows(tmp_path / "btc-funding-8h.csv", "funding_rate", 8, rates)
    file.write_text(file.read_text() + "2024-01-05 03:00:00,0.0005\n")
    view = await run(store, file)
    assert (view.ok, view.rows, view.set_aside, view.files[0].lines[0].line) == (False, 60, 1, 62)
    assert len(await stored(store, RATES)) == 60


@pytest.mark.parametrize(
    ("column", "series"), [("fng", fear_greed("alternative.me")), ("dxy", macro("yahoo", "DXY"))], ids=["mood", "DXY"]
)
async def test_a_day_has_one_row(tmp_path: Path, column: str, series: Any) -> None:
    values, store = draw(60, 20, 90), MemorySeries(RECORDED)
    assert (await run(store, write_rows(tmp_path / "daily.csv", column, 24, values))).ok
    view = await run(store, write_rows(tmp_path / "daily.csv", column, 24, values, hours_away(9)))
    assert (view.ok, view.new) == (False, 0)
    assert named_shifts(view.files[0].failure) == {9}
    assert len(await stored(store, series)) == 60


async def test_a_home_that_counts_hours_twice_is_told_and_opens() -> None:
    """As an earlier import left it: 21 prints of a week, and the same on another clock."""
    store = MemorySeries(RECORDED)
    prints = [Funding(Millis(AT + place * 8 * HOUR_MS), 0.0001 * place, 8.0) for place in range(21)]
    again = [row._replace(at=Millis(row.at + HOUR_MS)) for row in prints]
    await store.write([Batch(RATES, [*prints, *again], None, Source.IMPORTED, "btc-funding-8h.csv")])
    desk = DataDesk(store, lambda: NOW)
    (span,) = (await desk.status()).series
    assert (span.count, span.doubled, span.used, span.used_from) == (42, 21, True, "imported btc-funding-8h.csv")
    for repair in (False, True):
        view = await desk.check(repair=repair)
        assert [(flaw.kind, flaw.count, flaw.mended) for flaw in view.flaws] == [("doubled", 21, None)]
        assert not view.ok
    predicted = funding("binance", f"{BTC}/next")
    await store.write([Batch(predicted, again)])  # read as often as somebody asks
    assert [view.doubled for view in (await desk.status()).series] == [21, 0]


# -- whose prices they are


def bars(start: float, count: int = 48) -> list[str]:
    return [f"{price},{price * 1.01},{price * 0.99},{price},1" for price in draw(count, start * 0.98, start * 1.02)]


OHLC = "open,high,low,close,volume"


@pytest.mark.parametrize(
    ("name", "price"),
    [("btc", 42_000.0 * 100), ("btc", 420.0), ("btc", 2_300.0), ("eth", 42_000.0), ("eth", 230_000.0), ("eth", 23.0)],
)
async def test_prices_a_symbol_was_never_near_are_asked_about(tmp_path: Path, name: str, price: float) -> None:
    file = write_rows(tmp_path / f"{name}-1h.csv", OHLC, 1, bars(price))
    store, asked = MemorySeries(RECORDED), list[str]()
    view = await run(store, file, confirm=note_in(asked, False))
    assert (view.ok, view.rows, len(asked)) == (False, 0, 1)
    assert await store.spans() == ()
    view = await run(store, file, confirm=note_in(asked, True))
    assert (view.ok, view.rows, len(asked)) == (True, 48, 2)


@pytest.mark.parametrize(
    ("at", "price", "asked"),
    [
        ("2016-01-01", 400.0, 0),
        ("2018-01-01", 14_000.0, 0),
        ("2018-01-01", 140.0, 1),
        ("2025-10-06", 125_000.0, 0),
        ("2026-05-01", 60_000.0, 0),
        ("2026-05-01", 300_000.0, 0),
        ("2026-05-01", 600.0, 1),
    ],
)
async def test_bounds_are_those_of_the_year(tmp_path: Path, at: str, price: float, asked: int) -> None:
    begin, questions = datetime.fromisoformat(at), list[str]()
    file = write_rows(tmp_path / "btc-1h.csv", OHLC, 1, bars(price), lambda time: time - BEGIN + begin)
    view = await run(MemorySeries(RECORDED), file, confirm=note_in(questions, False))
    assert (len(questions), view.ok) == (asked, not asked)
    assert bool(view.notes) is (at < "2017" or bool(asked))  # of what was before, nothing is noted


async def test_a_coin_without_bounds_is_taken_and_told(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "history.csv", OHLC, 1, bars(150.0))
    view = await run(MemorySeries(RECORDED), file, series="candles/binance/PEPEUSDT/1h")
    assert (view.ok, view.rows) == (True, 48)
    assert "PEPEUSDT" in view.notes[0]


@pytest.mark.parametrize(
    ("name", "series"),
    [
        ("sol-1h.csv", "SOLUSDT"),
        ("Binance_1000PEPEUSDT_1h.csv", "1000PEPEUSDT"),
        ("WIF_USDT_USDT-1h-futures.csv", "WIFUSDT"),
        ("xrpusd-1h.csv", "XRPUSDT"),
        ("nope-1h.csv", None),
        ("sol-and-xrp-1h.csv", None),
    ],
)
async def test_a_coin_is_known_by_the_name_of_its_file(tmp_path: Path, name: str, series: str | None) -> None:
    view = await run(
        MemorySeries(RECORDED), write_rows(tmp_path / name, OHLC, 1, bars(1.5)), confirm=lambda question: True
    )
    assert [part.series for part in view.files[0].series] == ([f"candles/binance/{series}/1h"] if series else [])
    assert bool(view.files[0].failure) is (series is None)


async def test_a_volume_in_the_coin_is_its_volume(tmp_path: Path) -> None:
    columns = OHLC.replace("volume", "Volume SOL")
    view = await run(MemorySeries(RECORDED), write_rows(tmp_path / "sol-1h.csv", columns, 1, bars(100.0)))
    assert (view.ok, view.rows) == (True, 48)


async def test_prices_of_another_coin_of_the_same_import_are_refused(tmp_path: Path) -> None:
    for name in ("ADAUSDT-1h.csv", "ZZZUSDT-1h.csv"):
        write_rows(tmp_path / name, OHLC, 1, bars(0.6))
    view = await run(MemorySeries(RECORDED), tmp_path, confirm=lambda question: True)
    assert [bool(file.failure) for file in view.files] == [False, True]
    assert "ADAUSDT" in view.files[1].failure


def walk(seed: int, count: int = 400, begin: float = 0.25) -> list[float]:
    """Closes of hours whose level stays near `begin`."""
    place, closes = 0.0, []
    for move in np.random.default_rng(seed).normal(0, 0.004, count):
        place = 0.9 * place + move
        closes.append(begin * float(np.exp(place)))
    return closes


def as_bars(closes: list[float]) -> list[str]:
    return [f"{close},{close * 1.001},{close * 0.999},{close},1" for close in closes]


async def test_two_coins_of_one_level_are_two_coins(tmp_path: Path) -> None:
    for seed, name in ((1, "ADAUSDT-1h.csv"), (2, "TRXUSDT-1h.csv")):
        write_rows(tmp_path / name, OHLC, 1, as_bars(walk(seed)))
    view = await run(MemorySeries(RECORDED), tmp_path, confirm=lambda question: True)
    assert [file.failure for file in view.files] == ["", ""]


@pytest.mark.parametrize(("factor", "asked"), [(1.0004, 0), (1_350.0, 1)])
async def test_one_coin_under_two_names_is_refused_or_asked_about(tmp_path: Path, factor: float, asked: int) -> None:
    """Of another venue: the same moves but for a few hundredths of a percent. At another level it is another unit."""
    closes, noise = walk(1), np.random.default_rng(3).normal(0, 0.0001, 400)
    write_rows(tmp_path / "ADAUSDT-1h.csv", OHLC, 1, as_bars(closes))
    write_rows(tmp_path / "ZZZUSDT-1h.csv", OHLC, 1, as_bars(list(np.array(closes) * np.exp(noise) * factor)))
    questions: list[str] = []

    def confirm(question: str) -> bool:
        questions.append(question)
        return "ZZZ" not in question

    view = await run(MemorySeries(RECORDED), tmp_path, confirm=confirm)
    assert [bool(file.failure) for file in view.files] == [False, True]
    assert sum("ZZZ" in question for question in questions) == asked


@pytest.mark.parametrize(("seed", "ok"), [(1, True), (2, False)])
async def test_closes_that_move_otherwise_than_those_here_are_asked_about(tmp_path: Path, seed: int, ok: bool) -> None:
    """At the level of the symbol, which has been imported from elsewhere before."""
    store, noise = MemorySeries(RECORDED), np.random.default_rng(3).normal(0, 0.0002, 400)
    await run(store, write_rows(tmp_path / "TRXUSDT-1h.csv", OHLC, 1, as_bars(walk(1))))
    other = as_bars(list(np.array(walk(seed)) * np.exp(noise)))
    view = await run(store, write_rows(tmp_path / "TRXUSDT-1h.csv", OHLC, 1, other), confirm=lambda _: False)
    assert (view.ok, view.changed > 0) == (ok, ok)


async def test_funding_that_was_paid_more_often_for_a_while_keeps_its_interval(tmp_path: Path) -> None:
    """Evenly closer rows are a shorter interval; a row beside another is one too many."""
    hours = [*range(0, 80, 8), *range(74, 90, 2), *range(96, 176, 8), 171]
    begin = datetime(2024, 1, 1)
    lines = [f"{begin + timedelta(hours=hour)},0.0001" for hour in hours]
    (tmp_path / "sol-funding-8h.csv").write_text("\n".join(["date,funding_rate", *lines]))
    store = MemorySeries(RECORDED)
    view = await run(store, tmp_path / "sol-funding-8h.csv")
    rows = await store.read(funding("binance", "SOLUSDT"), Millis(0), NOW, NOW)
    assert view.set_aside == 1
    assert [row.interval_hours for row in rows] == [8.0] * 10 + [2.0] * 8 + [8.0] * 10


async def test_minutes_of_another_symbol_are_held_against_its_hours(tmp_path: Path) -> None:
    """In 2018 one was as dear as the other had been: no bounds tell them apart."""
    store = MemorySeries(RECORDED)
    flat = [f"{price},{price + 1},{price - 1},{price},1" for price in (1_500.0,) * 240]
    await run(store, write_rows(tmp_path / "eth-1h.csv", OHLC, 1, flat[:48]))
    begin = datetime(2024, 1, 1)
    lines = [f"{begin + timedelta(minutes=place)},{row}" for place, row in enumerate(flat)]
    (tmp_path / "btc-1m.csv").write_text("\n".join([f"date,{OHLC}", *lines]))
    view = await run(store, tmp_path / "btc-1m.csv", confirm=lambda question: True)
    assert not view.ok
    assert "ETHUSDT" in view.files[0].failure


@pytest.mark.parametrize(
    ("factor", "shift", "ok"), [(1.0, 0, True), (5.0, 0, False), (0.01, 0, False), (1.0, 9, False)]
)
async def test_minutes_are_held_against_the_hours_of_their_symbol(
    tmp_path: Path, factor: float, shift: int, ok: bool
) -> None:
    """Nothing of the minutes is here, but the hours are."""
    store, closes = MemorySeries(RECORDED), draw(72, 41_000.0, 43_000.0)
    rows = [f"{price},{price},{price},{price},1" for price in closes]
    assert (await run(store, write_rows(tmp_path / "btc-1h.csv", OHLC, 1, rows))).ok
    lines = [f"date,{OHLC}"]
    for hour, price in enumerate(closes[:60]):
        begin, at = BEGIN + timedelta(hours=hour + shift), price * factor
        lines += [f"{begin + timedelta(minutes=minute)},{at},{at},{at},{at},1" for minute in range(60)]
    (tmp_path / "btc-1m.csv").write_text("\n".join(lines))
    view = await run(store, tmp_path / "btc-1m.csv", confirm=lambda question: True)
    assert (view.ok, bool(view.rows)) == (ok, ok)


# -- what nobody needs


async def test_what_nobody_needs_is_no_failure(tmp_path: Path) -> None:
    good = write_rows(tmp_path / "btc-1h.csv", OHLC, 1, bars(42_000.0))
    lines = good.read_text().split("\n")
    good.write_text("\n".join([*lines[:20], lines[0], *lines[20:]]))  # two files joined
    (tmp_path / "eth-1h-mark.csv").write_text(
        write_rows(tmp_path / "mark.csv", OHLC, 1, bars(2_300.0)).read_text().replace(",1\n", ",0\n")
    )
    (tmp_path / "mark.csv").rename(tmp_path / "eth-1h-premium.csv")
    mark = (tmp_path / "eth-1h-mark.csv").read_text()
    (tmp_path / "eth-1h-premium.csv").write_text(mark)
    view = await run(MemorySeries(RECORDED), tmp_path)
    assert [(Path(file.file).name, bool(file.failure), file.incomplete) for file in view.files] == [
        ("btc-1h.csv", False, False),
        ("eth-1h-mark.csv", True, False),
        ("eth-1h-premium.csv", True, False),
    ]
    assert (view.ok, view.rows, view.set_aside) == (True, 48, 1)
    assert not (await run(MemorySeries(RECORDED), tmp_path / "eth-1h-mark.csv")).ok  # asked for that alone


async def test_a_bar_that_is_not_over_is_needed_by_nobody(tmp_path: Path) -> None:
    rows = bars(42_000.0)
    begin = datetime.fromtimestamp(NOW / 1_000, UTC).replace(tzinfo=None) - timedelta(hours=47)
    file = write_rows(tmp_path / "btc-1h.csv", OHLC, 1, rows, lambda time: time - BEGIN + begin)
    view = await run(MemorySeries(RECORDED), file, confirm=lambda question: True)
    assert (view.ok, view.rows, view.set_aside) == (True, 47, 1)


async def test_rows_set_aside_of_a_series_nobody_reads_are_no_failure(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "history.csv", OHLC, 1, [*bars(150.0), "1,2,3,4,5"])
    for series, ok in (("candles/kraken/SOLUSDT/1h", True), ("candles/binance/ETHUSDT/1h", False)):
        view = await run(MemorySeries(RECORDED), file, series=series, confirm=lambda question: True)
        assert (view.ok, view.set_aside) == (ok, 1)


# -- real rows


def real_rows(name: str, clock: Clock, factor: float = 1.0) -> str:
    if not HOURS.is_dir():
        pytest.skip("no eight years of hours beside the checkout")
    with gzip.open(HOURS / f"{name}.csv.gz", "rt") as file:
        head, *rows = csv.reader(file)
    lines = [head]
    for row in rows:
        prices = [repr(float(price) * factor) for price in row[1:5]] if factor != 1.0 else row[1:5]
        lines.append([f"{clock(datetime.fromisoformat(row[0])):%Y-%m-%d %H:%M:%S}", *prices, *row[5:]])
    return "\n".join(map(",".join, lines)) + "\n"


@pytest.mark.slow
async def test_real_funding_on_a_local_clock(tmp_path: Path) -> None:
    store, file = MemorySeries(RECORDED), tmp_path / "btc-funding-8h.csv"
    file.write_text(real_rows("btc-funding-8h", hours_away(0)))
    assert (await run(store, file)).new == 6_024
    assert (await run(store, file)).new == 0
    for away, shifts in CLOCKS.values():
        file.write_text(real_rows("btc-funding-8h", away))
        view = await run(store, file)
        assert (view.ok, view.new, view.changed) == (False, 0, 0)
        assert named_shifts(view.files[0].failure) == shifts
    assert len(await stored(store, RATES)) == 6_024


@pytest.mark.soak(every=3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "source", "factor", "ok"),
    [("btc", "btc", 1.0, True), ("btc", "btc", 100.0, False), ("eth", "btc", 1.0, False), ("btc", "eth", 1.0, False)],
)
async def test_eight_real_years_against_bounds(tmp_path: Path, name: str, source: str, factor: float, ok: bool) -> None:
    file, store = tmp_path / f"{name}-1h.csv", MemorySeries(RECORDED)
    file.write_text(real_rows(f"{source}-1h", hours_away(0), factor))
    view = await run(store, file)
    assert (view.ok, view.rows) == (ok, 68_992 if ok else 0)
    assert bool(await stored(store, candles("binance", BTC, Timeframe.H1))) is ok


TEN = ("ada", "bnb", "btc", "doge", "eth", "link", "ltc", "sol", "xrp", "trx")


@pytest.mark.slow
async def test_ten_real_coins_lie_in_one_home_and_none_passes_for_another(tmp_path: Path) -> None:
    """TRX at the level of ADA is TRX; the hours of ADA are not, whether TRX has none here or its own."""
    store = MemorySeries(RECORDED)
    latest = {name: real_rows(f"{name}-1h", hours_away(0)).splitlines()[-4_000:] for name in TEN}
    closes = {name: np.array([float(row.split(",")[4]) for row in latest[name]]) for name in ("ada", "trx")}
    level = float(np.median(closes["ada"] / closes["trx"]))
    latest["trx"] = real_rows("trx-1h", hours_away(0), level).splitlines()[-4_000:]
    for name in TEN[:-1]:
        (tmp_path / f"{name}-1h.csv").write_text("\n".join([f"date,{OHLC}", *latest[name]]))
    first = await run(store, tmp_path)
    assert [file.failure for file in first.files] == [""] * 9

    file = tmp_path / "trx-1h.csv"
    file.write_text((tmp_path / "ada-1h.csv").read_text())
    assert "ADAUSDT" in (await run(store, file, confirm=lambda _: True)).files[0].failure
    file.write_text("\n".join([f"date,{OHLC}", *latest["trx"]]))
    assert (await run(store, file, confirm=lambda _: True)).new == 4_000
    file.write_text((tmp_path / "ada-1h.csv").read_text())
    view = await run(store, file)
    assert (view.ok, view.changed) == (False, 0)
