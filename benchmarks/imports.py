"""How fast history comes in from a file, and what a long history costs a cycle: `python -m benchmarks.imports`.

Prints one JSON line per figure and ends with 1 when a bar is missed. Timed is `Imports.run` on a CSV of minutes in
Binance's form, into a store on disk with its fsyncs, hours and longer bars made and all; beside it DuckDB's own copy of
the same file to Parquet, and then a cycle over three imported years beside one over the last 1,000 bars of each length.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "ZUNO_RECORDING": "own", "ZUNO_DETERMINISTIC": "true"}

import numpy as np

from benchmarks.debate import timed
from benchmarks.figure import report
from zuno.adapters.imports.files import HistoryFiles
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS
from zuno.settings import read_settings
from zuno.trading.measure.columns import take_rows
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Timeframe, candles
from zuno.trading.ports.series import Origin, Source
from zuno.trading.service.imports import Imports, ImportView
from zuno.wiring import Application

ROWS = 1_000_000
TURNS = 3
PAIRS = 15
LEAST_ROWS_A_SECOND = 200_000
SHARE_OF_DUCKDB = 0.2
LONG_BAR = 1.1
YEARS = 3 * 365 * 24
LAST = 1_000
START = 1_640_995_200_000
NOW = Millis(START + 10 * 365 * 24 * HOUR_MS)
EVER = Millis(2**62)


def write_bars(path: Path, rows: int, step: int, start: float, *, taker: bool) -> None:
    """A walk in Binance's columns, or in plain ones."""
    dice = np.random.default_rng(7)
    close = start * np.exp(np.cumsum(dice.normal(0, 1e-3 * (step / MINUTE_MS) ** 0.5, rows)))
    opened = np.concatenate(([start], close[:-1]))
    high, low = np.maximum(opened, close) * 1.0005, np.minimum(opened, close) * 0.9995
    volume = dice.exponential(10, rows)
    at = START + step * np.arange(rows)
    columns: list[Any] = [at, opened, high, low, close, volume]
    spelled = ["%d", *["%.2f"] * 4, "%.3f"]
    if taker:
        columns += [at + step - 1, volume * close, volume * 10, volume / 2, volume * close / 2, 0 * at]
        spelled += ["%d", "%.4f", "%d", "%.3f", "%.4f", "%d"]
    header = "" if taker else "date,open,high,low,close,volume"
    np.savetxt(path, np.column_stack(columns), fmt=spelled, delimiter=",", header=header, comments="")


async def import_file(folder: Path, *files: Path) -> ImportView:
    store = SqliteSeries(folder, Origin(False, "recorded"))
    try:
        imports = Imports(HistoryFiles(), store, lambda: NOW, read_here=True)
        return await imports.run(
            [str(file) for file in files], None, "auto", lambda progress: None, lambda question: True
        )
    finally:
        await store.close()


def copy_by_duckdb(source: Path, target: Path) -> None:
    import duckdb

    with duckdb.connect(config={"threads": 1}) as duck:
        duck.execute(f"COPY (SELECT * FROM read_csv('{source}')) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


async def against_duckdb(folder: Path) -> bool:
    """Both take turns, so that a busy machine hits both."""
    file = folder / "BTCUSDT-1m-2022.csv"
    write_bars(file, ROWS, MINUTE_MS, 40_000.0, taker=True)
    ours, theirs = [], []
    for turn in range(TURNS):
        began = perf_counter()
        copy_by_duckdb(file, folder / "copy.parquet")
        theirs.append(perf_counter() - began)
        began = perf_counter()
        view = await import_file(folder / f"store{turn}", file)
        ours.append(perf_counter() - began)
        if view.new != ROWS:
            raise ValueError(f"meant to import {ROWS} rows, {view.new} are new")
    took, copied = min(ours), min(theirs)
    speed = round(ROWS / took)
    unit = f"s, best of {TURNS}, {ROWS:,} rows of CSV"
    name = "import of a CSV of minutes"
    least = ROWS / LEAST_ROWS_A_SECOND
    good = report(name, took, unit, least, f"{LEAST_ROWS_A_SECOND:,} rows a second", 1.0, rowsPerSecond=speed)
    return report(name, took, unit, copied, "DuckDB's own copy of it to Parquet", 1 / SHARE_OF_DUCKDB) and good


async def cut_short(whole: Path, short: Path) -> None:
    """The last bars of each length alone."""
    source, target = (SqliteSeries(folder, Origin(False, "recorded")) for folder in (whole, short))
    for symbol in DEFAULT_SYMBOLS:
        for timeframe in Timeframe:
            bars = await source.read_columns(candles("binance", symbol, timeframe), Millis(0), EVER)
            await target.write_columns(take_rows(bars, slice(-LAST, None)), Source.IMPORTED, "cut", NOW)
    await source.close()
    await target.close()


async def of_a_long_history(folder: Path) -> bool:
    files = []
    for symbol, start in (("BTCUSDT", 40_000.0), ("ETHUSDT", 2_500.0)):
        files.append(folder / f"{symbol}-1h.csv")
        write_bars(files[-1], YEARS, HOUR_MS, start, taker=False)
    homes = [folder / "whole", folder / "short"]
    await import_file(homes[0] / "market" / "own", *files)
    await cut_short(*(home / "market" / "own" for home in homes))
    houses = [Application(read_settings(os.environ, home)) for home in homes]
    try:
        runs = [house.cycles() for house in houses]
        for cycles in runs:
            await cycles.run("BTCUSDT", chart=False)
            await cycles.run("BTCUSDT", chart=False)
        times: list[list[float]] = [[], []]
        for turn in range(PAIRS):
            for place in (0, 1) if turn % 2 else (1, 0):  # each goes first as often as the other
                times[place].append(await timed(lambda cycles=runs[place]: cycles.run("BTCUSDT", chart=False)))  # type: ignore[misc]
    finally:
        for house in houses:
            await house.close()
    whole, short = map(statistics.median, times)
    against = f"the last {LAST:,} bars of each length"
    return report("cycle over three imported years", whole, f"ms, p50 of {PAIRS}", short, against, LONG_BAR)


async def run() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        good = await against_duckdb(Path(folder))
        return await of_a_long_history(Path(folder)) and good


def main() -> int:
    return 0 if asyncio.run(run()) else 1


if __name__ == "__main__":
    sys.exit(main())
