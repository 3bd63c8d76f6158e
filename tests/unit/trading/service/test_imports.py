"""Files of every form into a store: what is recognised, what is set aside and why, and a second time is nothing."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.wire.fakes.series import MemorySeries
from tests.wire.resampling import resample_bars
from zuno.adapters.imports.files import HistoryFiles
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Candle,
    Funding,
    Level,
    MacroRelease,
    Timeframe,
    candles,
    fear_greed,
    funding,
    long_short,
    macro,
    open_interest,
)
from zuno.trading.ports.series import PUBLIC_HISTORY, Batch, Origin, Source
from zuno.trading.service.imports import Imports, ImportView

AT = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) * 1_000
"""A Monday."""
NOW = Millis(AT + 900 * DAY_MS)
EVER = Millis(2**62)
BTC = Symbol("BTCUSDT")
H1 = candles("binance", BTC, Timeframe.H1)
RECORDED = Origin(False, "recorded")
HEADER = "date,open,high,low,close,volume"


def price(hour: int, start: float = 40_000.0) -> float:
    return round(start * (1.0 + 0.001 * (hour % 17)), 2)


def hour_bar(hour: int, start: float = 40_000.0) -> Candle:
    opened, close = price(hour, start), price(hour + 1, start)
    return Candle(Millis(AT + hour * HOUR_MS), opened, max(opened, close) + 1, min(opened, close) - 1, close, 1.5, None)


BARS = tuple(map(hour_bar, range(48)))


def written(bar: Candle, time: Callable[[int], str] | None = None, delimiter: str = ",") -> str:
    at = datetime.fromtimestamp(bar.at / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S") if time is None else time(bar.at)
    return delimiter.join([at, *map(str, bar[1:6])])


def table(bars: Sequence[Candle] = BARS, **form: Any) -> str:
    return "\n".join([HEADER, *(written(bar, **form) for bar in bars)]) + "\n"


def store_of() -> MemorySeries:
    return MemorySeries(RECORDED)


async def run(store: Any, *paths: Path, series: str | None = None, layout: str = "auto") -> ImportView:
    return await Imports(HistoryFiles(), store, lambda: NOW, read_here=True).run(
        [str(path) for path in paths], series, layout, lambda progress: None, lambda question: True
    )


async def stored(store: Any, series: Any = H1) -> tuple[Any, ...]:
    return await store.read(series, Millis(0), EVER, EVER)


def put(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# -- forms


FORMS: dict[str, Callable[[Path], Path]] = {
    "csv": lambda folder: put(folder, "btc-1h.csv", table()),
    "gzip": lambda folder: put(folder, "btc-1h.csv.gz", gzip.compress(table().encode())),
    "byte order mark": lambda folder: put(folder, "btc-1h.csv", b"\xef\xbb\xbf" + table().encode()),
    "semicolons": lambda folder: put(folder, "btc-1h.csv", table(delimiter=";").replace(",", ";")),
    "tabs": lambda folder: put(folder, "BTCUSDT_1h.tsv", table(delimiter="\t").replace(",", "\t")),
    "decimal commas": lambda folder: put(
        folder, "btc-1h.csv", table(delimiter=";").replace(",", ";").replace(".", ",").replace("0;,", "0;")
    ),
    "line ends of Windows": lambda folder: put(folder, "btc-1h.csv", table().replace("\n", "\r\n")),
    "no last line end": lambda folder: put(folder, "btc-1h.csv", table().rstrip("\n")),
    "no header": lambda folder: put(folder, "btc-1h.csv", table().partition("\n")[2]),
    "seconds": lambda folder: put(folder, "btc-1h.csv", table(time=lambda at: str(at // 1_000))),
    "milliseconds": lambda folder: put(folder, "btc-1h.csv", table(time=str)),
    "microseconds": lambda folder: put(folder, "btc-1h.csv", table(time=lambda at: str(at * 1_000))),
    "nanoseconds": lambda folder: put(folder, "btc-1h.csv", table(time=lambda at: str(at * 1_000_000))),
    "Seoul": lambda folder: put(folder, "btc-1h.csv", table(time=lambda at: local(at, 9))),
    "New York, told apart": lambda folder: put(
        folder, "btc-1h.csv", table(time=lambda at: local(at, -5 if at < AT + DAY_MS else -4))
    ),
    "newest first": lambda folder: put(folder, "btc-1h.csv", table(BARS[::-1])),
    "other order of columns": lambda folder: put(
        folder,
        "btc-1h.csv",
        "Volume,Close,Low,High,Open,Timestamp\n"
        + "".join(f"{b.volume},{b.close},{b.low},{b.high},{b.open},{b.at}\n" for b in BARS),
    ),
    "length from its rows": lambda folder: put(folder, "bitcoin.btc.csv", table()),
    "a column of symbols": lambda folder: put(
        folder,
        "history-1h.csv",
        f"symbol,{HEADER}\n" + "".join(f"BTC/USDT,{written(bar)}\n" for bar in BARS),
    ),
}


def local(at: int, hours: int) -> str:
    time = datetime.fromtimestamp(at / 1_000 + hours * 3_600, UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}{hours:+03}:00"


@pytest.mark.soak(every=3)
@pytest.mark.parametrize("form", FORMS)
async def test_a_form_is_read_by_itself_and_once(form: str, tmp_path: Path) -> None:
    path, store = FORMS[form](tmp_path), store_of()
    view = await run(store, path)
    assert view.ok, view.files[0].failure
    assert await stored(store) == BARS
    assert (view.new, view.changed, view.set_aside) == (len(BARS), 0, 0)
    assert store.origin == PUBLIC_HISTORY
    before = await store.sources()
    again = await run(store, path)
    assert again.ok
    assert (again.rows, again.new, again.changed, again.set_aside, again.made) == (len(BARS), 0, 0, 0, {})
    assert await store.sources() == before


async def test_tables_in_columns_are_read(tmp_path: Path) -> None:
    import duckdb

    csv = put(tmp_path, "btc-1h.csv", table())
    for name, time in (("a-btc-1h", "date"), ("b-btc-1h", "epoch_ms(date::TIMESTAMP) AS timestamp")):
        duckdb.sql(
            f"COPY (SELECT {time}, open, high, low, close, volume FROM read_csv('{csv}')) TO "
            f"'{tmp_path}/{name}.parquet' (FORMAT parquet)"
        )
        store = store_of()
        assert (await run(store, tmp_path / f"{name}.parquet")).ok
        assert await stored(store) == BARS


async def test_freqtrades_files_are_read(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    feather = pytest.importorskip("pyarrow.feather")
    times = arrow.array([bar.at for bar in BARS], arrow.timestamp("ms", "UTC"))
    numbers = {name: [getattr(bar, name) for bar in BARS] for name in ("open", "high", "low", "close", "volume")}
    feather.write_feather(arrow.table({"date": times, **numbers}), str(tmp_path / "BTC_USDT_USDT-1h-futures.feather"))
    rates = arrow.table({"date": times[::8], **{name: [0.0001] * 6 for name in numbers}})
    feather.write_feather(rates, str(tmp_path / "BTC_USDT_USDT-8h-funding_rate.feather"))
    feather.write_feather(rates, str(tmp_path / "BTC_USDT_USDT-8h-mark.feather"))
    store = store_of()
    view = await run(store, tmp_path, layout="freqtrade")
    assert await stored(store) == BARS
    assert await stored(store, funding("binance", BTC)) == tuple(Funding(bar.at, 0.0001, 8.0) for bar in BARS[::8])
    assert [bool(file.failure) for file in view.files] == [False, False, True]
    assert view.ok  # nobody reads marks


KLINES = (
    "open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore"
)


def kline(bar: Candle, unit: int = 1) -> str:
    end = (bar.at + HOUR_MS - 1) * unit
    return f"{bar.at * unit},{bar.open},{bar.high},{bar.low},{bar.close},{bar.volume},{end},9.5,7,{bar.taker_buy},3.5,0"


def archive(folder: Path, name: str, text: str) -> Path:
    with zipfile.ZipFile(folder / f"{name}.zip", "w") as file:
        file.writestr(f"{name}.csv", text)
    return folder / f"{name}.zip"


@pytest.mark.parametrize(("header", "unit"), [(True, 1), (False, 1), (False, 1_000)])
async def test_binances_klines_are_recognised(tmp_path: Path, header: bool, unit: int) -> None:
    bars = [bar._replace(taker_buy=0.25) for bar in BARS]
    lines = [*([KLINES] if header else []), *(kline(bar, unit) for bar in bars)]
    store = store_of()
    view = await run(store, archive(tmp_path, "BTCUSDT-1h-2024-01", "\n".join(lines) + "\n"))
    assert view.files[0].layout == "Binance klines"
    assert await stored(store) == tuple(bars)


async def test_binances_funding_and_metrics_are_recognised(tmp_path: Path) -> None:
    rates = f"calc_time,funding_interval_hours,last_funding_rate\n{AT},8,0.0001\n{AT + 8 * HOUR_MS},4,-0.0002\n"
    metrics = (
        "create_time,symbol,sum_open_interest,sum_open_interest_value,count_toptrader_long_short_ratio,"
        "sum_toptrader_long_short_ratio,count_long_short_ratio,sum_taker_long_short_vol_ratio\n"
        "2024-01-01 00:05:00,BTCUSDT,80000.5,3.2e9,1.1,1.2,1.3,0.9\n"
        "2024-01-01 00:10:00,BTCUSDT,80001.5,3.2e9,,,,\n"
    )
    store = store_of()
    view = await run(
        store,
        archive(tmp_path, "BTCUSDT-fundingRate-2024-01", rates),
        archive(tmp_path, "BTCUSDT-metrics-2024-01-01", metrics),
    )
    assert view.ok, view
    first = Millis(AT + 5 * MINUTE_MS)
    second = Millis(AT + 10 * MINUTE_MS)
    assert await stored(store, funding("binance", BTC)) == (
        Funding(Millis(AT), 0.0001, 8.0),
        Funding(Millis(AT + 8 * HOUR_MS), -0.0002, 4.0),
    )
    assert await stored(store, open_interest("binance", BTC)) == (Level(first, 80000.5), Level(second, 80001.5))
    assert await stored(store, long_short("binance", BTC)) == (Level(first, 1.3),)  # what is blank is no zero
    assert view.files[1].blank == 1


async def test_daily_files_keep_their_meaning(tmp_path: Path) -> None:
    put(tmp_path, "fear-greed-daily.csv", "date,fng\n2024-01-01,30\n2024-01-02,31\n")
    put(tmp_path, "dxy-daily.csv", "date,dxy\n2024-01-01,\n2024-01-02,102.5\n")
    means = put(tmp_path, "funding-daily.csv", "date,funding_mean,funding_abs\n2024-01-01,0.0001,0.0001\n")
    store = store_of()
    view = await run(store, tmp_path)
    assert [bool(file.failure) for file in view.files] == [False, False, True]  # whose mean it is, nobody said
    assert await stored(store, fear_greed("alternative.me")) == (
        Level(Millis(AT), 30.0),
        Level(Millis(AT + DAY_MS), 31.0),
    )
    day = Millis(AT + DAY_MS)
    assert await stored(store, macro("yahoo", "DXY")) == (MacroRelease(day, 102.5, Millis(day + DAY_MS)),)
    view = await run(store, means, series="funding/binance/BTCUSDT")
    assert view.ok
    assert view.files[0].notes
    assert await stored(store, funding("binance", BTC)) == (Funding(day, 0.0001 * 3.0, 24.0),)


# -- bad data: what is wrong is named by its line, the rest is kept


async def test_figures_that_cannot_be_are_listed(tmp_path: Path) -> None:
    """One too large, a day that is not over, and a day told twice: each with its line, and a second time is nothing."""
    days = "2024-01-02,102.5\n2024-01-03,1e40\n2190-01-01,99\n2024-01-02,103\n2024-01-02,102.5\n"
    file = put(tmp_path, "dxy-daily.csv", f"date,dxy\n{days}")
    store = store_of()
    first, again = await run(store, file), await run(store, file)
    assert [(view.rows, view.new, view.changed, view.set_aside) for view in (first, again)] == [
        (1, 1, 0, 3),
        (1, 0, 0, 3),
    ]
    assert sorted(line.line for line in first.files[0].lines) == [3, 4, 5]
    assert first.files[0].repeated == 1
    assert [row.value for row in await stored(store, macro("yahoo", "DXY"))] == [102.5]


async def test_an_import_that_was_stopped_makes_its_coarser_bars_the_next_time(tmp_path: Path) -> None:
    file, store, day = put(tmp_path, "btc-1h.csv", table()), store_of(), candles("binance", BTC, Timeframe.D1)
    await store.write([Batch(H1, BARS, None, Source.IMPORTED, file.name)])
    assert await stored(store, day) == ()
    first, again = await run(store, file), await run(store, file)
    assert (first.new, first.made[str(day)], again.made) == (0, 2, {})
    assert len(await stored(store, day)) == 2


async def test_bars_from_before_bitcoin_are_set_aside(tmp_path: Path) -> None:
    file = put(tmp_path, "btc-1h.csv", table() + "1970-01-01 00:00:00,1,2,0.5,1,10\n")
    store = store_of()
    view = await run(store, file)
    assert (view.rows, view.set_aside, view.files[0].lines[0].line) == (len(BARS), 1, len(BARS) + 2)
    assert await stored(store, H1) == BARS


@pytest.mark.soak(every=3)
@pytest.mark.parametrize(
    ("line", "text", "word"),
    [
        (10, HEADER, "header"),
        (10, "2024-01-01 08:00:00,1,2,3", "fields"),
        (10, "2024-01-01 08:00:00,1,2,3,4,5,6", "fields"),
        (10, "yesterday,40000,40001,39999,40000,1", "no time"),
        (10, "2024-01-01 08:00:00,40000,40001,39999,4o000,1", "no number"),
        (10, "2024-01-01 08:00:00,40000,40001,39999,,1", "close"),
        (10, "2024-01-01 08:00:00,40000,nan,39999,40000,1", "high"),
        (10, "2024-01-01 08:00:00,40000,39000,41000,40000,1", "below"),
        (10, "2024-01-01 08:00:00,40000,40001,39999,40000,-1", "volume"),
        (10, "2024-01-01 08:30:00,40000,40001,39999,40000,1", "opens"),
        (10, "2029-01-01 08:00:00,40000,40001,39999,40000,1", "to go"),
        (10, "2024-01-01 08:00:00,1800,1801,1799,1800,1", "another market"),
        (49, "2024-01-02 23:00:00,1800,1801,1799,1800,1", "another market"),
    ],
)
async def test_a_bad_line_is_set_aside_with_its_reason(tmp_path: Path, line: int, text: str, word: str) -> None:
    lines = table().split("\n")
    lines[line - 1] = text
    store = store_of()
    view = await run(store, put(tmp_path, "btc-1h.csv", "\n".join(lines)))
    assert view.ok is (word == "header")  # nobody needs that one
    assert [aside.line for aside in view.files[0].lines] == [line]
    assert word in view.files[0].lines[0].reason
    assert sum(view.files[0].reasons.values()) == view.set_aside == 1
    assert await stored(store) == (*BARS[: line - 2], *BARS[line - 1 :])
    again = await run(store, tmp_path / "btc-1h.csv")
    assert (again.new, again.changed, again.set_aside) == (0, 0, 1)


async def test_an_hour_that_stands_twice_is_kept_once(tmp_path: Path) -> None:
    other = BARS[5]._replace(volume=9.0)
    path = put(tmp_path, "btc-1h.csv", table([*BARS[:7], BARS[3], *BARS[7:], other]))
    store = store_of()
    for new in (48, 0):
        view = await run(store, path)
        assert (view.new, view.changed) == (new, 0)
        assert view.files[0].repeated == 1
        assert [aside.line for aside in view.files[0].lines] == [51]  # the first of two that differ stays
        assert await stored(store) == BARS


async def test_files_of_one_import_that_differ_do_not_take_turns(tmp_path: Path) -> None:
    put(tmp_path, "a-btc-1h.csv", table())
    put(tmp_path, "b-btc-1h.csv", table([bar._replace(volume=9.0) for bar in BARS[:3]]))
    store = store_of()
    for new in (48, 0):
        view = await run(store, tmp_path)
        assert (view.new, view.changed, view.set_aside) == (new, 0, 3)
    later = await run(store, tmp_path / "b-btc-1h.csv")  # asked for alone, it corrects what is here
    assert (later.new, later.changed, later.set_aside) == (0, 3, 0)


async def test_missing_hours_stay_missing_and_make_no_longer_bars(tmp_path: Path) -> None:
    week = [hour_bar(hour) for hour in range(24 * 14)]
    path = put(tmp_path, "btc-1h.csv", table([*week[:30], *week[31:]]))
    store = store_of()
    view = await run(store, path)
    kept = await stored(store)
    for timeframe in (Timeframe.H4, Timeframe.D1, Timeframe.W1):
        made = await stored(store, candles("binance", BTC, timeframe))
        assert made == resample_bars(timeframe, Timeframe.H1, kept)
        assert len(made) == view.made[f"candles/binance/BTCUSDT/{timeframe}"]
    assert len(made) == 1
    put(tmp_path, "btc-1h.csv", table(week[28:32]))  # the hour turns up: the bars it was missing from are made
    view = await run(store, path)
    assert view.new == 1
    assert list(view.made.values()) == [1, 1, 1]


async def test_minutes_make_hours_and_hours_the_rest(tmp_path: Path) -> None:
    minutes = [
        Candle(Millis(AT + n * MINUTE_MS), 100.0 + n % 5, 110.0, 90.0, 100.0 + (n + 1) % 5, 0.1 * (n % 9), None)
        for n in range(24 * 60)
    ]
    store = store_of()
    await run(store, put(tmp_path, "eth-1m.csv", table(minutes)))
    eth = [candles("binance", Symbol("ETHUSDT"), length) for length in (Timeframe.H1, Timeframe.D1)]
    hours = await stored(store, eth[0])
    assert hours == resample_bars(Timeframe.H1, Timeframe.M1, minutes)
    assert await stored(store, eth[1]) == resample_bars(Timeframe.D1, Timeframe.H1, hours)


async def test_prices_of_another_symbol_are_noticed(tmp_path: Path) -> None:
    ether = [hour_bar(hour, 2_300.0) for hour in range(48)]
    right, wrong = put(tmp_path, "eth-1h.csv", table(ether)), put(tmp_path, "btc-1h.csv", table(ether))
    store = store_of()
    assert (await run(store, right)).ok
    view = await run(store, wrong)  # nothing of BTC is here, but these are ETH's
    assert not view.ok
    assert "ETHUSDT" in view.files[0].failure
    assert await stored(store) == ()
    other = store_of()
    await other.write([Batch(H1, BARS)])
    assert not (await run(other, wrong)).ok
    assert await stored(other) == BARS
    mixed = put(tmp_path, "mix-btc-1h.csv", table([*BARS[:20], *ether[20:30], *BARS[30:]]))
    third = store_of()
    view = await run(third, mixed)
    assert [aside.line for aside in view.files[0].lines] == list(range(22, 32))
    assert await stored(third) == (*BARS[:20], *BARS[30:])


async def test_rows_of_another_symbol_are_named(tmp_path: Path) -> None:
    lines = [f"symbol,{HEADER}", *(f"BTCUSDT,{written(bar)}" for bar in BARS), f"ETHUSDT,{written(hour_bar(50))}"]
    store = store_of()
    view = await run(store, put(tmp_path, "both-1h.csv", "\n".join(lines)))
    assert [aside.line for aside in view.files[0].lines] == [50]
    assert await stored(store) == BARS
    assert not (await run(store, tmp_path / "both-1h.csv", series="candles/binance/ETHUSDT/4h")).ok


async def test_a_local_clock_without_its_offset_is_noticed_where_the_bars_are_here(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    bars = [hour_bar(hour, 40_000.0 + float(rng.integers(1, 9_000))) for hour in range(96)]
    store = store_of()
    await run(store, put(tmp_path, "btc-1h.csv", table(bars)))
    seoul = [bar._replace(at=Millis(bar.at + 9 * HOUR_MS)) for bar in bars]
    view = await run(store, put(tmp_path, "seoul-btc-1h.csv", table(seoul)))
    assert "+9 h" in view.files[0].failure
    assert len(await stored(store)) == len(bars)


async def test_a_truncated_archive_gives_what_it_has_and_says_so(tmp_path: Path) -> None:
    whole = gzip.compress(table([hour_bar(hour) for hour in range(3_000)]).encode())
    store = store_of()
    view = await run(store, put(tmp_path, "btc-1h.csv.gz", whole[: len(whole) // 2]))
    assert not view.ok
    assert view.files[0].failure
    assert 500 < view.new < 2_500
    assert await stored(store) == tuple(hour_bar(hour) for hour in range(view.new))
    put(tmp_path, "btc-1h.csv.gz", whole)
    assert (await run(store, tmp_path / "btc-1h.csv.gz")).new == 3_000 - view.new


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("empty-btc-1h.csv", ""),
        ("blank-btc-1h.csv", "\n\n\n"),
        ("header-btc-1h.csv", HEADER + "\n"),
        ("words-btc-1h.csv", "this is\nno table\n"),
        ("btc-1h.csv", "a,b,c\n1,2,3\n"),
        ("btc-5m.csv", table()),
        ("btc-4h.csv", table()),
        ("history.csv", table()),
        ("nope-1h.csv", table()),
        ("btc-1h-mark.csv", "\n".join([HEADER, *(written(bar._replace(volume=0.0)) for bar in BARS)])),
        ("btc-1h.parquet", b"PAR1 and nothing else"),
        ("btc-1h.zip", b"PK\x03\x04 and nothing else"),
        ("btc-1h.csv.gz", b"\x1f\x8b and nothing else"),
        ("btc-1h.h5", b"\x89HDF\r\n\x1a\n and more"),
        ("btc-1h.bin", bytes(range(256)) * 4),
        ("btc-1h.txt", table().encode("utf-16")),
    ],
)
async def test_a_file_nobody_can_read_is_named_and_leaves_nothing(tmp_path: Path, name: str, text: str | bytes) -> None:
    store = store_of()
    view = await run(store, put(tmp_path, name, text))
    assert not view.ok
    assert view.files[0].failure
    assert await store.spans() == ()


async def test_what_is_not_there_or_holds_nothing_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "README.md", "words")
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(Refused):
            await run(store_of(), path)
    path = put(tmp_path, "btc-1h.csv", table())
    for series in ("candles/binance/BTCUSDT/5m", "book/binance/BTCUSDT", "nonsense", "candles"):
        with pytest.raises(UsageError):
            await run(store_of(), path, series=series)
    with pytest.raises(UsageError):
        await run(store_of(), path, layout="xml")


async def test_a_series_that_is_named_is_the_files(tmp_path: Path) -> None:
    store = store_of()
    view = await run(store, put(tmp_path, "history.csv", table()), series="candles/binance/ETHUSDT/1h")
    assert view.ok
    assert await stored(store, candles("binance", Symbol("ETHUSDT"), Timeframe.H1)) == BARS
    assert json.loads(view.model_dump_json(by_alias=True))["setAside"] == 0


async def test_progress_goes_up_to_the_end(tmp_path: Path) -> None:
    put(tmp_path, "btc-1h.csv", table())
    put(tmp_path, "eth-1h.csv", table([hour_bar(hour, 2_300.0) for hour in range(48)]))
    seen: list[float] = []
    imports = Imports(HistoryFiles(), store_of(), lambda: NOW, read_here=True)
    await imports.run([str(tmp_path)], None, "auto", lambda progress: seen.append(progress.done), lambda question: True)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.0, 1.0)
