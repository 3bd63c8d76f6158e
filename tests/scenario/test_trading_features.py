"""From a store to figures: what could be known at a moment is frozen, measured, and said to be missing where it is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.wire.commands import Ran, run_zuno
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.kernel.clock import iso
from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import BINANCE, BYBIT, DERIBIT, FRED, OKX, PERPETUALS
from zuno.markets.market import Symbol
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.measure.features import Features, measure_features
from zuno.trading.measure.frames import Frame
from zuno.trading.model import market
from zuno.trading.model.bundle import SLOTS, Absent, Block, Bundle, Slot, bundle_hash, content, read_bundle
from zuno.trading.model.known import Missing
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Feed,
    Funding,
    Mode,
    OptionChain,
    Series,
    Timeframe,
    candles,
)
from zuno.trading.model.wanted import wanted_series
from zuno.trading.ports.series import Batch, Origin, Slice
from zuno.trading.service.features_to_view import features_view

END = Millis(1_767_225_600_000)
SEED = "7"


def store_of(home: Path) -> SqliteSeries:
    return SqliteSeries(home / "market" / "synthetic", Origin(True, "SYNTHETIC"))


@pytest.fixture(scope="module")
def bundle(invented: Path) -> Bundle:
    async def frozen() -> Bundle:
        store = store_of(invented)
        try:
            return await build_bundle(store, Symbol("BTCUSDT"), Mode.SWING, END)
        finally:
            await store.close()

    return asyncio.run(frozen())


def asked(home: Path, *arguments: str, **surroundings: str) -> Ran:
    return run_zuno(home, "trade", "features", *arguments, **surroundings)


# -- as a person asks


def test_every_figure_has_its_source_its_moment_and_its_age(invented: Path) -> None:
    said = asked(invented, "BTCUSDT", "--json")
    assert said.code == 0, said.err
    found = said.document
    assert {"symbol", "mode", "asOf", "bundleHash", "features", "anomalies", "shocks", "sources", "absent"} <= set(
        found
    )
    assert (found["symbol"], found["mode"], found["asOf"]) == ("BTCUSDT", "swing", "2026-01-01T00:00:00Z")
    assert found["synthetic"] is True
    assert found["origin"] == f"SYNTHETIC seed {SEED}"
    for timeframe in ("1h", "4h", "1d"):
        frame = found["features"]["indicators"][timeframe]
        assert frame["source"] == "binance"
        assert frame["asOf"] == "2026-01-01T00:00:00Z"
        assert frame["ageSeconds"] == 0
        assert all(frame["value"][name] is not None for name in ("rsi", "atr", "adx", "bbUpper", "ema200"))
    assert all(level["source"] and level["asOf"] for level in found["features"]["levels"])
    assert {source["feed"] for source in found["sources"]} == set(Feed)
    assert all(set(source) >= {"feed", "source", "asOf", "ageSeconds", "stale"} for source in found["sources"])
    assert {gone["what"] for gone in found["absent"]} == set(SLOTS)


@pytest.mark.soak
def test_the_same_question_gives_the_same_bundle(invented: Path) -> None:
    first, second = (asked(invented, "ETHUSDT", "--json").out for _ in range(2))
    assert first == second
    other = asked(invented, "BTCUSDT", "--json").document
    assert other["bundleHash"] != json.loads(first)["bundleHash"]


def test_the_bundle_is_kept_once_under_its_hash(invented: Path) -> None:
    name = asked(invented, "BTCUSDT", "--json").document["bundleHash"]
    asked(invented, "BTCUSDT", "--json")
    assert run_zuno(invented, "journal", "verify").code == 0
    import sqlite3

    with sqlite3.connect(invented / "journal.db") as connection:
        kept = connection.execute("SELECT COUNT(*) FROM bundles WHERE hash = ?", (name,)).fetchone()
    assert kept == (1,)


def test_an_earlier_moment_knows_nothing_later(invented: Path) -> None:
    found = asked(invented, "BTCUSDT", "--as-of", "2025-12-20T12:00", "--json").document
    assert found["asOf"] == "2025-12-20T12:00:00Z"
    assert all(source["asOf"] <= "2025-12-20T12:00:00Z" for source in found["sources"])
    assert all(level["since"] <= "2025-12-20T12:00:00Z" for level in found["features"]["levels"])


def test_between_full_hours_the_book_is_stale_and_not_used(invented: Path) -> None:
    found = asked(invented, "BTCUSDT", "--as-of", "2025-12-20T12:31", "--json").document
    assert "missing" in found["features"]["book"]["value"]["figures"]
    assert "microstructure_imbalance" in {one["rule"] for one in found["unjudged"]}


def test_the_position_desk_reads_weeks(invented: Path) -> None:
    found = asked(invented, "BTC", "--mode", "position", "--json").document
    assert list(found["features"]["indicators"]) == ["4h", "1d", "1w"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("DOGEUSDT",), 2, "not traded here"),
        (("BTCUSDT", "--mode", "casino"), 2, "no mode"),
        (("BTCUSDT", "--as-of", "someday"), 2, "not a time"),
        (("BTCUSDT", "--as-of", "2031-01-01"), 2, "lies after"),
        (("BTCUSDT", "--as-of", "999999w"), 2, "2009-01-03"),
        (("BTCUSDT", "--as-of", "0001-01-01"), 2, "2009-01-03"),
    ],
)
def test_nonsense_is_told(invented: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = asked(invented, *arguments)
    assert ran.code == code
    assert said in ran.err


def test_the_screen_says_synthetic_and_shows_the_figures(invented: Path) -> None:
    said = asked(invented, "BTCUSDT")
    assert said.code == 0, said.err
    assert f"SYNTHETIC seed {SEED}" in said.out.splitlines()[1]
    for word in ("RSI 14", "MACD histogram", "tenkan", "POC", "skew 25Δ", "fred/DGS10", "bundle "):
        assert word in said.out


def test_an_empty_recording_of_ones_own_is_told(tmp_path: Path) -> None:
    ran = run_zuno(tmp_path / "home", "trade", "features", "BTCUSDT", ZUNO_RECORDING="own")
    assert ran.code == 3
    assert "zuno data download BTCUSDT" in ran.err


# -- its picture


@pytest.mark.soak
def test_a_picture_is_put_where_it_was_asked_for_with_its_numbers(invented: Path, tmp_path: Path) -> None:
    place = tmp_path / "new" / "btc.png"
    ran = run_zuno(invented, "trade", "chart", "BTCUSDT", "--out", str(place), "--json")
    assert ran.code == 0, ran.err
    image, found = place.read_bytes(), ran.document
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    size = (int.from_bytes(image[16:20]), int.from_bytes(image[20:24]))
    assert size == (found["numbers"]["widthPx"], found["numbers"]["heightPx"])
    assert found["file"] == str(place)
    assert found["synthetic"] is True
    assert found["numbers"]["bars"] == 180
    assert found["numbers"]["price"]["heat"]["origin"] == "observed and modelled"
    assert {panel["name"] for panel in found["numbers"]["panels"]} >= {"volume", "cvd", "open_interest", "funding"}
    assert found["bundleHash"] == asked(invented, "BTCUSDT", "--json").document["bundleHash"]
    assert list(place.parent.iterdir()) == [place]


@pytest.mark.soak
def test_without_a_place_it_goes_to_the_home_and_the_same_again_is_the_same_bytes(invented: Path) -> None:
    images = []
    for _ in range(2):
        ran = run_zuno(invented, "trade", "chart", "ETH", "--mode", "position", "--as-of", "3d")
        assert ran.code == 0, ran.err
        assert "\x1b_G" not in ran.out  # no terminal, no picture in it
        (place,) = (invented / "charts").glob("ETHUSDT-position-*.png")
        assert place.name in ran.out.replace("\n", "")
        images.append(place.read_bytes())
    assert images[0] == images[1]


@pytest.mark.soak
def test_a_place_that_cannot_be_written_is_told(invented: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for place in (tmp_path, tmp_path / "file" / "btc.png"):
        ran = run_zuno(invented, "trade", "chart", "BTCUSDT", "--out", str(place))
        assert ran.code == 3
        assert "--out" in ran.err


# -- what is frozen


async def test_nothing_in_a_bundle_is_later_than_its_moment(invented: Path) -> None:
    as_of = Millis(END - 11 * DAY_MS - 17 * MINUTE_MS)
    store = store_of(invented)
    found = await build_bundle(store, Symbol("ETHUSDT"), Mode.POSITION, as_of)
    await store.close()
    for block in found.blocks:
        assert block.as_of <= as_of
        assert all(row.at <= as_of for row in block.rows)
    bars = found.rows(candles(BINANCE, Symbol("ETHUSDT"), Timeframe.H1))
    assert bars[-1].at + HOUR_MS <= as_of


def test_a_bundle_gives_the_same_figures_after_it_was_stored(bundle: Bundle) -> None:
    again = read_bundle(content(bundle))
    assert again == bundle
    assert features_view(again, "x", measure_features(again)) == features_view(bundle, "x", measure_features(bundle))


async def test_a_source_that_failed_just_now_is_named(invented: Path) -> None:
    store = store_of(invented)
    gone, old = str(market.macro(FRED, "NEVER")), str(market.books(BINANCE, Symbol("BTCUSDT")))
    found = await build_bundle(
        store, Symbol("BTCUSDT"), Mode.SWING, END, failures={gone: "no key", old: "did not answer"}
    )
    later = await build_bundle(
        store, Symbol("BTCUSDT"), Mode.SWING, Millis(END + DAY_MS), failures={old: "did not answer"}
    )
    await store.close()
    block = found.block(market.books(BINANCE, Symbol("BTCUSDT")))
    assert block is not None
    assert "asked" in block.notes[0]
    assert later.why_absent(old) == "did not answer"


async def test_what_the_desk_brings_takes_its_slot(invented: Path) -> None:
    store = store_of(invented)
    slot = Slot("equity", {"usd": 2_000}, END, "account")
    found = await build_bundle(store, Symbol("BTCUSDT"), Mode.SWING, END, slots=[slot])
    await store.close()
    assert found.slots == (slot,)
    assert {gone.what for gone in found.absent} == set(SLOTS) - {"equity"}


# -- what is missing, stale, or cannot be


def without(bundle: Bundle, *gone: Series[Any]) -> Bundle:
    kept = tuple(block for block in bundle.blocks if block.series not in gone)
    return replace(
        bundle, blocks=kept, absent=(*bundle.absent, *(Absent(str(one), "it was taken away") for one in gone))
    )


def with_rows(bundle: Bundle, series: Series[Any], change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Bundle:
    def changed(block: Block) -> Block:
        return replace(block, rows=change(tuple(block.rows))) if block.series == series else block

    return replace(bundle, blocks=tuple(map(changed, bundle.blocks)))


def aged(bundle: Bundle, series: Series[Any], seconds: int) -> Bundle:
    def older(block: Block) -> Block:
        return replace(block, age=Seconds(seconds)) if block.series == series else block

    return replace(bundle, blocks=tuple(map(older, bundle.blocks)))


SYMBOL = Symbol("BTCUSDT")
EVERY = wanted_series(SYMBOL)
FIRST_OF_FEEDS = {series.feed: series for series in reversed(EVERY)}.values()


@pytest.mark.soak(every=5)
@pytest.mark.parametrize(
    "series",
    [pytest.param(series, marks=() if series in FIRST_OF_FEEDS else pytest.mark.soak) for series in EVERY],
    ids=str,
)
def test_without_any_one_series_the_rest_is_measured(bundle: Bundle, series: Series[Any]) -> None:
    view = features_view(bundle, "x", measure_features(without(bundle, series)))
    assert view.features
    json.dumps(view.model_dump(by_alias=True), allow_nan=False)


def test_without_anything_all_is_missing_and_nothing_is_made_up(bundle: Bundle) -> None:
    found = measure_features(without(bundle, *EVERY))
    assert all(isinstance(frame, Missing) for _, frame in found.frames)
    for part in (
        "volatility",
        "open_interest_hour",
        "book",
        "walls",
        "whales_hour",
        "surface",
        "dvol",
        "mood",
    ):
        assert isinstance(getattr(found, part), Missing), part
    assert isinstance(found.rates["KRW"], Missing)
    assert found.triage.anomalies == ()
    assert {one.rule.value for one in found.triage.unknown} == {
        "spike", "liquidation_cluster", "microstructure_imbalance", "options_panic",
    }  # fmt: skip
    assert isinstance(found.watch, Missing)


LIVE: list[tuple[Series[Any], Callable[[Features], object]]] = [
    (market.books(BINANCE, SYMBOL), lambda found: found.book),
    (market.options(DERIBIT, "BTC"), lambda found: found.surface),
    (market.funding_next(OKX, SYMBOL), lambda found: found.perpetuals[2].predicted),
    (market.long_short(BYBIT, SYMBOL), lambda found: found.perpetuals[1].long_share),
    (market.basis(BINANCE, SYMBOL), lambda found: found.perpetuals[0].basis_bps),
    (market.fear_greed("alternative.me"), lambda found: found.mood),
    (market.rates("upbit", "KRW-USDT"), lambda found: found.rates["KRW"]),
    (market.rates("binance", "USDC-USDT"), lambda found: found.rates["USDC"]),
]


@pytest.mark.soak(every=4)
@pytest.mark.parametrize(("series", "part"), LIVE, ids=[str(series) for series, _ in LIVE])
def test_a_stale_fact_is_no_fact(bundle: Bundle, series: Series[Any], part: Callable[[Features], object]) -> None:
    block = bundle.block(series)
    assert block is not None
    assert not isinstance(part(measure_features(aged(bundle, series, block.limit))), Missing)
    gone = part(measure_features(aged(bundle, series, block.limit + 1)))
    assert isinstance(gone, Missing)
    assert str(block.limit) in gone.reason


def test_a_rate_in_percent_is_missing_not_huge(bundle: Bundle) -> None:
    series = market.funding_next(BINANCE, SYMBOL)
    spoilt = with_rows(bundle, series, lambda rows: (*rows[:-1], Funding(rows[-1].at, 0.01, 8.0)))
    predicted = measure_features(spoilt).perpetuals[0].predicted
    assert isinstance(predicted, Missing)
    assert "percentage" in predicted.reason


def test_a_crossed_book_is_refused(bundle: Bundle) -> None:
    series = market.books(BINANCE, SYMBOL)
    spoilt = with_rows(bundle, series, lambda rows: (*rows[:-1], replace(rows[-1], bids=rows[-1].asks[::-1])))
    book = measure_features(spoilt).book
    assert isinstance(book, Missing)


def test_a_chain_without_expiries_is_missing_and_not_calm(bundle: Bundle) -> None:
    series = market.options(DERIBIT, "BTC")

    def bare(rows: tuple[OptionChain, ...]) -> tuple[OptionChain, ...]:
        return tuple(replace(row, quotes=tuple(replace(quote, expiry=None) for quote in row.quotes)) for row in rows)

    surface = measure_features(with_rows(bundle, series, bare)).surface
    assert not isinstance(surface, Missing)
    assert isinstance(surface.term, Missing)
    assert isinstance(surface.term, Missing)


def test_a_venue_that_drops_out_between_two_ends_is_left_out_of_the_change(bundle: Bundle) -> None:
    series = market.open_interest(OKX, SYMBOL)
    before = measure_features(bundle).open_interest_hour
    cut = with_rows(bundle, series, lambda rows: tuple(row for row in rows if row.at < END - HOUR_MS // 2))
    after = measure_features(cut).open_interest_hour
    assert not isinstance(before, Missing)
    assert not isinstance(after, Missing)
    assert before.venues == tuple(sorted(PERPETUALS))
    assert after.venues == (BINANCE, BYBIT)
    assert abs(after.share) < 0.05  # not the third of the market that OKX is


def test_bars_that_cannot_be_are_left_out_and_counted(bundle: Bundle) -> None:
    series = candles(BINANCE, SYMBOL, Timeframe.H4)
    spoilt = with_rows(
        bundle,
        series,
        lambda rows: (
            *rows[:-3],
            rows[-3]._replace(high=rows[-3].low / 2),
            rows[-2]._replace(close=float("nan")),
            rows[-1],
        ),
    )
    frame = dict(measure_features(spoilt).frames)[Timeframe.H4]
    assert isinstance(frame, Frame)
    assert frame.readings.unsound == 2
    assert frame.readings.rsi is not None


async def test_a_feed_that_stands_still_is_said_to(invented: Path) -> None:
    store = store_of(invented)
    series = market.open_interest(BYBIT, SYMBOL)
    rows = await store.read(series, Millis(END - DAY_MS), END, END)
    await store.close()
    from tests.wire.fakes.series import MemorySeries
    from zuno.trading.ports.series import Batch

    frozen = MemorySeries(Origin(False, "recorded"))
    await frozen.write([Batch(series, [row._replace(value=rows[-1].value) for row in rows])])
    found = await build_bundle(frozen, SYMBOL, Mode.SWING, END)
    block = found.block(series)
    assert block is not None
    assert any("stands still" in note for note in block.notes)


SPOILT: list[tuple[Series[Any], Callable[[Any], Any], str]] = [
    (market.open_interest(BINANCE, SYMBOL), lambda row: row._replace(value=float("nan")), "value is nan"),
    (market.basis(BINANCE, SYMBOL), lambda row: row._replace(mark=-row.mark), "mark is -"),
    (candles(BINANCE, SYMBOL, Timeframe.H1), lambda row: row._replace(high=row.low, low=row.high), "is below low"),
]
"""Series, how their newest row becomes one no market can have made, and what is said of it."""


async def recorded(invented: Path, home: Path, *, spoil: bool) -> tuple[Any, ...]:
    """A recording of one's own of two days of three series, the newest rows spoilt or not there; those rows."""
    source, own = store_of(invented), SqliteSeries(home / "market" / "own", Origin(False, "recorded"))
    slices = [Slice(series, Millis(END - 2 * DAY_MS), END) for series, _, _ in SPOILT]
    state = await source.read_many(slices, END)
    for (series, spoilt, _), rows in zip(SPOILT, state.rows, strict=True):
        await own.write([Batch(series, [*rows[:-1], *((spoilt(rows[-1]),) if spoil else ())])])
    await source.close()
    await own.close()
    return tuple(rows[-1] for rows in state.rows)


async def test_a_newest_row_no_market_can_have_made_is_said_where_the_one_before_stands(
    invented: Path, tmp_path: Path
) -> None:
    newest = await recorded(invented, tmp_path, spoil=True)
    said = asked(tmp_path, "BTCUSDT", "--as-of", "2026-01-01T00:00", "--json", ZUNO_RECORDING="own")
    assert said.code == 0, said.err
    sources = {source["series"]: source for source in said.document["sources"]}
    assert set(sources) == {str(series) for series, _, _ in SPOILT}
    screen = asked(tmp_path, "BTCUSDT", "--as-of", "2026-01-01T00:00", ZUNO_RECORDING="own").out
    shown = " ".join(screen.split())
    for (series, _, fault), row in zip(SPOILT, newest, strict=True):
        (note,) = [note for note in sources[str(series)]["notes"] if "set aside" in note]
        assert note.startswith(f"1 row at {iso(row.at)} ")
        assert fault in note
        assert f"note: {series}: {note}" in shown


async def test_before_it_was_known_nothing_is_said_of_what_was_set_aside(invented: Path, tmp_path: Path) -> None:
    """The spoilt bar's own time has come by then, and its end has not."""
    bundles = []
    for home, spoil in ((tmp_path / "spoilt", True), (tmp_path / "short", False)):
        first = min(row.at for row in await recorded(invented, home, spoil=spoil))
        moment = iso(Millis(END - 1))
        assert first < END - 1
        said = asked(home, "BTCUSDT", "--as-of", moment, "--json", ZUNO_RECORDING="own")
        bundles.append(said.document)
    assert bundles[0] == bundles[1]


async def test_while_nobody_tells_the_won_there_is_none(invented: Path) -> None:
    store = store_of(invented)
    night = END - 12 * DAY_MS
    hours = [
        measure_features(await build_bundle(store, SYMBOL, Mode.SWING, Millis(night + n * HOUR_MS)))
        for n in (1, 3, 9, 10)
    ]
    await store.close()
    assert [isinstance(one.rates["KRW"], Missing) for one in hours] == [False, True, True, False]
    assert not any(isinstance(one.rates["USDC"], Missing) for one in hours)


async def test_a_silent_stream_that_is_alive_is_a_zero_and_a_dead_one_is_not(invented: Path) -> None:
    from tests.wire.fakes.series import MemorySeries
    from zuno.trading.model.market import Heartbeat
    from zuno.trading.ports.series import Batch

    heard = MemorySeries(Origin(False, "recorded"))
    minutes = [Heartbeat(Millis(at)) for at in range(END - 2 * HOUR_MS, END, MINUTE_MS)]
    await heard.write([Batch(market.alive(Feed.LIQUIDATIONS, BINANCE, SYMBOL), minutes)])
    listened = measure_features(await build_bundle(heard, SYMBOL, Mode.SWING, END)).forced
    deaf = measure_features(await build_bundle(MemorySeries(Origin(False, "recorded")), SYMBOL, Mode.SWING, END)).forced
    assert not isinstance(listened.longs_hour, Missing)
    assert listened.longs_hour.usd == 0
    assert isinstance(deaf.longs_hour, Missing)


def test_a_day_of_shocks_that_was_not_seen_whole_is_not_called_quiet(bundle: Bundle) -> None:
    series = candles(BINANCE, SYMBOL, Timeframe.M1)
    cut = with_rows(bundle, series, lambda rows: rows[-90:])
    view = features_view(cut, "x", measure_features(cut))
    (why,) = (one.why for one in view.unjudged if one.rule == "shock")
    assert re.findall(r"\d+", why) == ["1410", "1440"]
    whole = features_view(bundle, "x", measure_features(bundle))
    assert [one for one in whole.unjudged if one.rule == "shock"] == []


def test_a_curve_of_long_ago_is_no_curve(bundle: Bundle) -> None:
    later = replace(bundle, as_of=Millis(END + 30 * DAY_MS))
    assert isinstance(measure_features(later).economy.slope, Missing)
    assert all(isinstance(one, Missing) for name, one in measure_features(later).economy.figures if "DGS" in name)


@pytest.mark.parametrize(
    ("series", "value", "part"),
    [
        (market.fear_greed("alternative.me"), 5_000.0, lambda found: found.mood),
        (market.rates("upbit", "KRW-USDT"), 0.0, lambda found: found.rates["KRW"]),
        (market.rates("binance", "USDC-USDT"), 0.0, lambda found: found.rates["USDC"]),
    ],
    ids=["mood", "won", "dollar"],
)
def test_a_number_that_is_none_of_its_kind_is_missing(
    bundle: Bundle, series: Series[Any], value: float, part: Callable[[Features], object]
) -> None:
    spoilt = with_rows(bundle, series, lambda rows: (*rows[:-1], rows[-1]._replace(value=value)))
    assert isinstance(part(measure_features(spoilt)), Missing)


def test_another_row_is_another_hash(bundle: Bundle) -> None:
    series = market.dvol(DERIBIT, "BTC")
    other = with_rows(bundle, series, lambda rows: (*rows[:-1], rows[-1]._replace(value=rows[-1].value + 0.01)))
    assert bundle_hash(other) != bundle_hash(bundle)
