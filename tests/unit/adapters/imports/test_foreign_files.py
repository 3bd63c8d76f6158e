"""Files as other programs write them: imported to the last row, or refused with the word that helps."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.fakes.series import MemorySeries
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
    Timeframe,
    candles,
    funding,
    open_interest,
)
from zuno.trading.ports.series import Origin
from zuno.trading.service.imports import Imports, ImportView

AT = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) * 1_000
NOW = Millis(AT + 900 * DAY_MS)
EVER = Millis(2**62)
BTC = Symbol("BTCUSDT")
H1 = candles("binance", BTC, Timeframe.H1)
COLUMNS = ("open", "high", "low", "close", "volume")


def bar(number: int, length: int = HOUR_MS) -> Candle:
    opened, close = (round(40_000.0 + 100 * ((number + step) % 17), 2) for step in (0, 1))
    high, low = max(opened, close) + 1.5, min(opened, close) - 1.5
    return Candle(Millis(AT + number * length), opened, high, low, close, round(0.1 * (number % 9 + 1), 8), None)


BARS = tuple(map(bar, range(24 * 14)))
"""Two weeks: days above twelve, which no month is."""
FIVES = tuple(bar(number, 5 * MINUTE_MS) for number in range(12 * 30))


def moment(row: Any, form: str) -> str:
    return datetime.fromtimestamp(row.at / 1_000, UTC).strftime(form)


def lines(rows: Iterable[Any], form: str, delimiter: str = ",") -> str:
    return "".join(delimiter.join([moment(row, form), *map(str, row[1:6])]) + "\n" for row in rows)


def headed(rows: Iterable[Any], form: str = "%Y-%m-%d %H:%M:%S", delimiter: str = ",") -> str:
    return delimiter.join(["date", *COLUMNS]) + "\n" + lines(rows, form, delimiter)


def frame(rows: Sequence[Candle], unit: str, zone: bool) -> Any:
    import pandas

    times = pandas.to_datetime([row.at for row in rows], unit="ms", utc=True)
    times = (times if zone else times.tz_localize(None)).as_unit(unit)
    return pandas.DataFrame({"date": times, **{name: [getattr(row, name) for row in rows] for name in COLUMNS}})


def pandas_parquet(unit: str, zone: bool) -> Callable[[], bytes]:
    return lambda: frame(BARS, unit, zone).to_parquet(None, index=False)


def unnamed_index(kind: str) -> bytes:
    """The times are the index, which has no name."""
    table = frame(BARS, "ns", True).set_index("date").rename_axis(None)
    return table.to_parquet(None) if kind == "parquet" else table.to_csv().encode()


def feather() -> bytes:
    out = BytesIO()
    frame(BARS, "ns", True).to_feather(out)
    return out.getvalue()


def freqtrade_rows(rows: Iterable[Candle], indent: int | None = None) -> str:
    return json.dumps([[row.at, *row[1:6]] for row in rows], indent=indent)


def crypto_data_download(form: str = "%Y-%m-%d %H:%M:%S", unix: bool = True) -> str:
    """An address above the header, the newest bar first."""
    names = "Date,Symbol,Open,High,Low,Close,Volume BTC,Volume USDT"
    rows = [",".join([moment(row, form), "BTC/USDT", *map(str, row[1:6]), "7.5"]) for row in BARS[::-1]]
    rows = [f"{row.at},{text},31" for row, text in zip(BARS[::-1], rows, strict=True)] if unix else rows
    return (
        "\n".join(["https://www.CryptoDataDownload.com", f"Unix,{names},tradecount" if unix else names, *rows]) + "\n"
    )


def klines(unit: int, rows: Sequence[Candle] = BARS) -> str:
    """As the public dumps have them: without a header, in microseconds since 2025."""
    return "".join(f"{row.at * unit},{','.join(map(str, row[1:6]))},{row.at * unit},9.5,7,,3.5,0\n" for row in rows)


def zipped(name: str, text: str) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, text)
    return out.getvalue()


def excel() -> bytes:
    """As Excel saves a table where a comma is a point."""
    rows = [
        ";".join([moment(row, "%d.%m.%Y %H:%M"), *(str(row[i]).replace(".", ",") for i in range(1, 6))]) for row in BARS
    ]
    return b"\xef\xbb\xbf" + "\r\n".join(["sep=;", ";".join(["Date", *COLUMNS]), *rows, ""]).encode()


def long_field(column: int) -> str:
    """300 kB in one field of the sixth row."""
    text = headed(BARS).replace("volume\n", "volume,remark\n").replace("\n2024", ",\n2024").replace("remark,", "remark")
    rows = text.rstrip("\n").split("\n")
    rows[-1] += ","
    fields = rows[5].split(",")
    fields[column] = "x" * 300_000
    rows[5] = ",".join(fields)
    return "\n".join(rows) + "\n"


READ: dict[str, tuple[str, Callable[[], str | bytes], str]] = {
    **{
        f"pandas Parquet, {unit}{' UTC' if zone else ''}": ("btc-1h.parquet", pandas_parquet(unit, zone), "iso")
        for unit in ("ns", "us", "ms")
        for zone in (True, False)
    },
    "pandas Parquet, unnamed index": ("btc-1h.parquet", lambda: unnamed_index("parquet"), "iso"),
    "pandas CSV, unnamed index": ("btc-1h.csv", lambda: unnamed_index("csv"), "iso"),
    "freqtrade JSON": ("BTC_USDT-1h.json", lambda: freqtrade_rows(BARS), "iso"),
    "freqtrade JSON, indented": ("BTC_USDT-1h.json", lambda: freqtrade_rows(BARS, 2), "iso"),
    "freqtrade JSON, gzip": ("BTC_USDT-1h.json.gz", lambda: gzip.compress(freqtrade_rows(BARS).encode()), "iso"),
    "freqtrade JSON, futures": ("BTC_USDT_USDT-1h-futures.json", lambda: freqtrade_rows(BARS), "day-first"),
    "freqtrade feather": ("BTC_USDT-1h.feather", feather, "iso"),
    "CryptoDataDownload": ("Binance_BTCUSDT_1h.csv", crypto_data_download, "iso"),
    "CryptoDataDownload, hours of the clock": (
        "Coinbase_BTCUSD_1h.csv", lambda: crypto_data_download("%Y-%m-%d %I-%p", False), "iso"
    ),
    "Binance klines, ms": ("BTCUSDT-1h-2024-01.zip", lambda: zipped("BTCUSDT-1h-2024-01.csv", klines(1)), "iso"),
    "Binance klines, µs": ("BTCUSDT-1h-2025-01.zip", lambda: zipped("BTCUSDT-1h-2025-01.csv", klines(1_000)), "iso"),
    "Excel, German": ("btc-1h.csv", excel, "day-first"),
    "day first": ("btc-1h.csv", lambda: headed(BARS, "%d/%m/%Y %H:%M"), "day-first"),
    "day first, no header": ("btc-1h.csv", lambda: lines(BARS, "%d-%m-%Y %H:%M:%S"), "day-first"),
    "American": ("btc-1h.csv", lambda: headed(BARS, "%m/%d/%Y %I:%M %p"), "month-first"),
    "American, Excel": ("btc-1h.csv", lambda: headed(BARS, "%-m/%-d/%Y %-H:%M"), "month-first"),
    "a long remark": ("btc-1h.csv", lambda: long_field(6), "iso"),
    "a star": ("btc-1h *.csv", lambda: headed(BARS), "iso"),
    "Parquet, a star": ("btc-1h*.parquet", pandas_parquet("ns", True), "iso"),
    "Parquet, brackets and a space": ("btc [1] 1h?.parquet", pandas_parquet("us", True), "iso"),
}  # fmt: skip


async def run(path: Path, dates: str = "iso", series: str | None = None) -> tuple[ImportView, MemorySeries]:
    store = MemorySeries(Origin(False, "recorded"))
    imports = Imports(HistoryFiles(), store, lambda: NOW, read_here=True)
    return await imports.run(
        [str(path)], series, "auto", lambda progress: None, lambda question: True, dates=dates
    ), store


async def stored(store: MemorySeries, series: Any = H1) -> tuple[Any, ...]:
    return await store.read(series, Millis(0), EVER, EVER)


def put(folder: Path, name: str, text: str | bytes) -> Path:
    folder.joinpath(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return folder / name


@pytest.mark.parametrize("form", READ)
async def test_a_foreign_file_is_imported_whole(form: str, tmp_path: Path) -> None:
    name, write, dates = READ[form]
    path = put(tmp_path, name, write())
    if "*" in name:
        put(tmp_path, name.replace("*", " 2"), b"PAR1 of another file")
    view, store = await run(path, dates)
    assert view.files[0].failure == ""
    assert (view.new, view.set_aside) == (len(BARS), 0), view.files[0].lines[:3]
    assert await stored(store) == BARS


def wrong_line(text: str, line: int, other: str) -> str:
    rows = text.split("\n")
    rows[line - 1] = other + rows[line - 1][rows[line - 1].index(",") :]
    return "\n".join(rows)


DAY_FIRST = headed(BARS, "%d/%m/%Y %H:%M")
REFUSED: dict[str, tuple[str, Callable[[], str | bytes], str, Sequence[str]]] = {
    "no order named": ("btc-1h.csv", lambda: DAY_FIRST, "iso", ("Line 2", "--dates day-first", "--dates month-first")),
    "no order named, though only one can be": (
        "btc-1h.csv", lambda: headed(BARS[-24:], "%d.%m.%Y"), "iso", ("Line 2", "--dates day-first")
    ),
    "Excel without the order": ("btc-1h.csv", excel, "iso", ("Line 3", "--dates day-first")),
    "the other order named": ("btc-1h.csv", lambda: DAY_FIRST, "month-first", ("Line 290", "13", "month-first")),
    "ISO though an order was named": ("btc-1h.csv", lambda: headed(BARS), "day-first", ("Line 2", "day-first")),
    "both orders": (
        "btc-1h.csv", lambda: wrong_line(DAY_FIRST, 320, "01/14/2024 06:00"), "day-first", ("Line 320", "14")
    ),
    "one local date among ISO's": (
        "btc-1h.csv", lambda: wrong_line(headed(BARS), 320, "01/14/2024 06:00"), "iso", ("Line 320", "--dates")
    ),
    "Parquet of local dates": (
        "btc-1h.parquet",
        lambda: frame(BARS, "ns", True).assign(date=[moment(row, "%d/%m/%Y %H:%M") for row in BARS]).to_parquet(None),
        "month-first",
        ("Line 289", "13"),
    ),
    "feather of local dates": ("btc-1h.feather", lambda: _feather_of_texts(), "iso", ("Line 1", "--dates")),
    "JSON objects": ("BTC_USDT-1h.json", lambda: json.dumps([{"open": 1.0}]), "iso", ("[[time, open",)),
    "a JSON object": ("BTC_USDT-1h.json", lambda: json.dumps({"rows": [[1]]}), "iso", ("[[time, open",)),
    "freqtrade's trades": ("BTC_USDT-trades.json", lambda: "[[1,2,3,4,5,6,7]]", "iso", ("7 columns",)),
    "bars of 45 s": (
        "btc.csv", lambda: headed([bar(number, 45_000) for number in range(99)]), "iso", ("0.75 min",)
    ),
    "hours that are five minutes": ("btc-1h.csv", lambda: headed(FIVES), "iso", ("5 min",)),
    "a zip that lost a piece": (
        "btc-1h.zip", lambda: zipped("btc-1h.csv", headed(BARS))[:4] + zipped("btc-1h.csv", headed(BARS))[104:], "iso",
        ("archive",),
    ),
    "a first line of 300 kB": ("btc-1h.csv", lambda: "x" * 300_000 + "\n" + "1,2\n" * 9, "iso", ("2 columns",)),
}  # fmt: skip


def _feather_of_texts() -> bytes:
    out = BytesIO()
    frame(BARS, "ns", True).assign(date=[moment(row, "%d/%m/%Y %H:%M") for row in BARS]).to_feather(out)
    return out.getvalue()


@pytest.mark.parametrize("form", REFUSED)
async def test_a_foreign_file_is_refused_with_what_helps(form: str, tmp_path: Path) -> None:
    name, write, dates, words = REFUSED[form]
    view, store = await run(put(tmp_path, name, write()), dates)
    assert not view.ok
    assert [word for word in words if word not in view.files[0].failure] == [], view.files[0].failure
    assert await store.spans() == ()


async def test_an_order_of_dates_nobody_knows_is_no_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        await run(put(tmp_path, "btc-1h.csv", DAY_FIRST), "european")


def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "btc-1h.csv")
    for path in (str(tmp_path / "btc-1h.csv"), str(tmp_path / ("a" * 300)), "/dev/zero", "~nobody-here/btc-1h.csv"):
        with pytest.raises(Refused):
            HistoryFiles().find([path])


async def test_a_field_of_300_kb_where_a_number_stands_costs_its_line(tmp_path: Path) -> None:
    for quoted in (False, True):
        text = long_field(4).replace("x" * 300_000, '"' + "x" * 300_000 + '"') if quoted else long_field(4)
        view, store = await run(put(tmp_path, "btc-1h.csv", text))
        assert (view.ok, view.files[0].failure) == (False, "")
        assert [line.line for line in view.files[0].lines] == [6]
        assert len(view.files[0].lines[0].reason) < 200
        assert await stored(store) == (*BARS[:4], *BARS[5:])


async def test_an_order_is_held_against_the_last_line_before_anything_is_kept(tmp_path: Path) -> None:
    """Of fourteen lines of a megabyte each: more than is held at once."""
    rows = [f"{moment(bar(24 * day), '%d/%m/%Y')},5.5,{'x' * 2**20}\n" for day in range(14)]
    path = put(tmp_path, "btc-interest.csv", "date,open_interest,remark\n" + "".join(rows))
    view, store = await run(path, "day-first")
    assert (view.ok, view.new) == (True, 14)
    view, store = await run(path, "month-first")
    assert "Line 14" in view.files[0].failure
    assert await store.spans() == ()


async def test_a_truncated_archive_of_local_dates_gives_what_it_has(tmp_path: Path) -> None:
    whole = gzip.compress(headed(map(bar, range(3_000)), "%d/%m/%Y %H:%M").encode())
    view, store = await run(put(tmp_path, "btc-1h.csv.gz", whole[: len(whole) // 2]), "day-first")
    assert not view.ok
    assert 500 < view.new < 2_500
    assert await stored(store) == tuple(map(bar, range(view.new)))


async def test_a_json_file_that_ends_too_soon_gives_its_whole_rows(tmp_path: Path) -> None:
    view, store = await run(put(tmp_path, "BTC_USDT-1h.json", freqtrade_rows(BARS)[:-30]))
    assert not view.ok
    assert await stored(store) == BARS[:-1]


async def test_json_of_a_folder_is_freqtrades_alone(tmp_path: Path) -> None:
    put(tmp_path, "BTC_USDT-1h.json", freqtrade_rows(BARS))
    put(tmp_path, "BTC_USDT_USDT-8h-funding_rate.json", freqtrade_rows(row._replace(open=0.0001) for row in BARS[::8]))
    put(tmp_path, "config.json", '{"max_open_trades": 3}')
    view, store = await run(tmp_path)
    assert view.ok, view
    assert [file.layout for file in view.files] == ["freqtrade", "freqtrade"]
    assert await stored(store) == BARS
    assert await stored(store, funding("binance", BTC)) == tuple(Funding(row.at, 0.0001, 8.0) for row in BARS[::8])


async def test_the_order_of_dates_counts_for_every_series(tmp_path: Path) -> None:
    days = [row for row in BARS if not row.at % DAY_MS]
    rates = "funding_time,funding_rate\n" + "".join(f"{moment(row, '%d/%m/%Y')},0.0001\n" for row in days)
    interest = "timestamp,symbol,open_interest\n" + "".join(f"{moment(row, '%m/%d/%Y')},BTCUSDT,5.5\n" for row in days)
    view, store = await run(put(tmp_path, "btc-funding.csv", rates), "day-first")
    assert view.ok
    assert await stored(store, funding("binance", BTC)) == tuple(Funding(row.at, 0.0001, 24.0) for row in days)
    view, store = await run(put(tmp_path, "btc-oi.csv", interest), "month-first")
    assert view.ok
    assert await stored(store, open_interest("binance", BTC)) == tuple(Level(row.at, 5.5) for row in days)
    for dates in ("iso", "day-first"):
        view, store = await run(tmp_path / "btc-oi.csv", dates)
        assert (view.ok, await store.spans()) == (False, ())


# -- hours of shorter bars


def build_hours(rows: Iterable[Candle], parts: int) -> tuple[Candle, ...]:
    """The slow way: each hour by itself, the first row of a time, volumes in decimals."""
    by_hour: dict[int, dict[int, Candle]] = {}
    for row in rows:
        by_hour.setdefault(row.at - row.at % HOUR_MS, {}).setdefault(row.at, row)
    made = []
    for at, inside in sorted(by_hour.items()):
        if len(inside) == parts:
            fine = [inside[moment] for moment in sorted(inside)]
            high, low = max(row.high for row in fine), min(row.low for row in fine)
            volume, taken = (add([row[place] for row in fine]) for place in (5, 6))
            assert volume is not None
            made.append(Candle(Millis(at), fine[0].open, high, low, fine[-1].close, volume, taken))
    return tuple(made)


def add(volumes: Sequence[float | None]) -> float | None:
    known = [Decimal(repr(volume)) for volume in volumes if volume is not None]
    return float(sum(known, Decimal(0))) if len(known) == len(volumes) else None


@pytest.mark.parametrize(("name", "minutes"), [("BTC_USDT-5m.json", 5), ("btc-15m.csv", 15), ("btc.csv", 30)])
async def test_shorter_bars_make_hours(name: str, minutes: int, tmp_path: Path) -> None:
    """Two days and a half hour, one bar missing in the morning: that hour and the last are not made, and counted."""
    rows = [bar(number, minutes * MINUTE_MS) for number in range(48 * 60 // minutes + 30 // minutes)]
    del rows[5 * 60 // minutes + 1]
    text = freqtrade_rows(rows) if name.endswith("json") else headed(rows)
    path = put(tmp_path, name, text)
    view, store = await run(path)
    assert (view.ok, view.files[0].failure) == (False, "")
    assert await stored(store) == build_hours(rows, 60 // minutes)
    (part,) = view.files[0].series
    assert (part.series, part.new, part.unmade) == (str(H1), 47, 2)
    assert view.set_aside == 60 // minutes - 1 + 30 // minutes
    imports = Imports(HistoryFiles(), store, lambda: NOW, read_here=True)
    again = await imports.run([str(path)], None, "auto", lambda progress: None, lambda question: True)
    assert (again.new, again.changed, again.made) == (0, 0, {})


async def test_an_hour_with_a_bad_part_is_not_made(tmp_path: Path) -> None:
    rows = list(FIVES)
    rows[15] = rows[15]._replace(high=rows[15].low - 1)
    rows[40] = rows[40]._replace(at=Millis(rows[40].at + 60_000))
    view, store = await run(put(tmp_path, "btc-5m.csv", headed(rows)))
    assert await stored(store) == build_hours([*FIVES[:12], *FIVES[24:36], *FIVES[48:]], 12)
    assert view.files[0].series[0].unmade == 2
    assert {17, 42} <= {line.line for line in view.files[0].lines}
    assert view.set_aside == 24


async def test_an_hour_another_file_contradicts_is_named_by_its_first_line(tmp_path: Path) -> None:
    put(tmp_path, "a-btc-5m.csv", headed(FIVES))
    other = [row._replace(volume=9.0) if row is FIVES[30] else row for row in FIVES]
    put(tmp_path, "b-btc-5m.csv", headed(other[7:]))
    view, store = await run(tmp_path)
    assert await stored(store) == build_hours(FIVES, 12)
    assert {line.line for line in view.files[1].lines} == {*range(2, 7), 24 - 7 + 2}


_PRICE = st.integers(1, 10**6).map(lambda cents: cents / 100 + 30_000)


@st.composite
def _fine_bars(draw: st.DrawFn) -> tuple[int, list[Candle]]:
    """Some are missing, some are there twice or contradicted, in any order."""
    minutes = draw(st.sampled_from([5, 15]))
    rows = []
    for number in range(draw(st.integers(3, 6)) * 60 // minutes):
        low, opened, close, high = sorted(draw(st.tuples(_PRICE, _PRICE, _PRICE, _PRICE)))
        opened, close = (opened, close) if draw(st.booleans()) else (close, opened)
        volume = draw(st.integers(0, 10**9)) / 10 ** draw(st.integers(0, 8))
        taken = draw(st.sampled_from([0.0, volume, None] if number == 7 else [0.0, volume]))
        rows.append(Candle(Millis(AT + number * minutes * MINUTE_MS), opened, high, low, close, volume, taken))
    gone = draw(st.sets(st.integers(0, len(rows) - 1), max_size=2))
    rows = [row for place, row in enumerate(rows) if place not in gone]
    again = draw(st.lists(st.sampled_from(rows), max_size=3))
    rows += [row._replace(volume=row.volume + 1) if draw(st.booleans()) else row for row in again]
    return minutes, draw(st.permutations(rows)) if draw(st.booleans()) else rows


@given(_fine_bars())
def test_hours_are_those_of_the_slow_way(tmp_path_factory: pytest.TempPathFactory, drawn: tuple[int, Any]) -> None:
    minutes, rows = drawn
    text = "".join(
        f"{row.at},{','.join(map(str, row[1:6]))},0,9.5,7,{'' if row.taker_buy is None else row.taker_buy},3.5,0\n"
        for row in rows
    )
    path = put(tmp_path_factory.mktemp("bars"), f"BTCUSDT-{minutes}m-2024-01.csv", text)

    async def read() -> tuple[ImportView, tuple[Any, ...]]:
        view, store = await run(path)
        return view, await stored(store)

    view, made = asyncio.run(read())
    assert view.files[0].failure == ""
    assert made == build_hours(rows, 60 // minutes)
    assert view.files[0].series[0].unmade == len({row.at // HOUR_MS for row in rows}) - len(made)


async def test_an_hour_that_is_not_over_at_the_end_is_missed_by_nobody(tmp_path: Path) -> None:
    view, _ = await run(put(tmp_path, "btc-5m.csv", headed(FIVES[: 36 + 7])))
    assert (view.ok, view.files[0].series[0].unmade, view.set_aside) == (True, 1, 7)
    view, _ = await run(put(tmp_path, "btc-5m.csv", headed(FIVES[5:36])))
    assert (view.ok, view.files[0].series[0].unmade, view.set_aside) == (False, 1, 7)
