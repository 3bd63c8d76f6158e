"""What ten markets cost beside one: `python -m benchmarks.ten_markets`.

Prints one JSON line per figure and ends with 1 when a bar is missed. Measured in one run, by turns: the CPU time of the
features of ten invented coins at one moment beside those of the first, as a desk goes on from quarter to quarter of an
hour; how long whole cycles of ten markets of candles take side by side, as a live desk runs them, beside a cycle of one
(`cpuRatio`: the same in CPU time); and the CPU time of an import of ten coins beside that of two, by the row.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

os.environ |= {
    "OPENBLAS_NUM_THREADS": "1",
    "ZUNO_RECORDING": "own",
    "ZUNO_DETERMINISTIC": "true",
    "ZUNO_MARKETS": "BTC,ETH,SOL,XRP,BNB,DOGE,ADA,LINK,LTC,TRX",
}

from benchmarks.figure import report, report_pairs
from benchmarks.imports import YEARS, import_file, write_bars
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.adapters.venues.synthetic.path import END
from zuno.adapters.venues.synthetic.world import build_batches, describe_origin
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.settings import read_settings
from zuno.trading.data.bundle_builder import build_bundle, reach_of
from zuno.trading.measure.features import measure_features
from zuno.trading.measure.frames import FrameCache
from zuno.trading.model.market import HOUR_MS, Mode
from zuno.trading.model.wanted import wanted_series
from zuno.trading.ports.series import Batch
from zuno.wiring import Application

TEN = tuple(Symbol(f"{coin}USDT") for coin in os.environ["ZUNO_MARKETS"].split(","))
SEED = 11
TURNS = 12
STEP = HOUR_MS // 4
BAR = 8.0
IMPORT_BAR = 1.1
IMPORTED_HOURS = 20_000


def make_rows() -> list[Batch[Any]]:
    """Ten coins, cut to what a bundle reaches back to: storing all of it would take minutes."""
    known = {series for symbol in TEN for series in wanted_series(symbol)}
    since = {series: END - reach_of(series).span - TURNS * STEP for series in known}
    return [
        Batch(batch.series, [row for row in batch.rows if row.at >= since[batch.series]], batch.known)
        for batch in build_batches(SEED, TEN)
        if batch.series in known
    ]


async def of_features(folder: Path) -> bool:
    store = SqliteSeries(folder, describe_origin(SEED))
    cache = FrameCache()

    async def measure(symbols: Sequence[Symbol], at: int) -> float:
        began = process_time()
        for symbol in symbols:
            measure_features(await build_bundle(store, symbol, Mode.SWING, Millis(at), markets=TEN), cache)
        return process_time() - began

    try:
        await store.begin(describe_origin(SEED), make_rows())
        await measure(TEN, END - TURNS * STEP)
        one, ten = [], []
        for turn in range(TURNS - 1, -1, -1):
            at = END - turn * STEP
            first = await measure(TEN[:1], at)
            one.append(first)
            ten.append(first + await measure(TEN[1:], at))
    finally:
        await store.close()
    value, yardstick = 1e3 * statistics.fmean(ten), 1e3 * statistics.fmean(one)
    return report("features of ten markets", value, f"ms of CPU, mean of {TURNS}", yardstick, "those of one", BAR)


async def of_cycles(folder: Path) -> bool:
    files = [folder / f"{symbol}-1h.csv" for symbol in TEN]
    for place, file in enumerate(files):
        write_bars(file, YEARS, HOUR_MS, 40_000.0 / 3**place, taker=False)
    await import_file(folder / "home" / "market" / "own", *files)
    house = Application(read_settings(os.environ, folder / "home"))
    try:
        cycles = house.cycles()
        for symbol in TEN:
            await cycles.run(symbol, chart=False)
        pairs, used = [], [0.0, 0.0]
        for _ in range(TURNS):
            spans = []
            for place, symbols in enumerate((TEN, TEN[:1])):
                began, spent = perf_counter(), process_time()
                await asyncio.gather(*(cycles.run(symbol, chart=False) for symbol in symbols))
                spans.append(1e3 * (perf_counter() - began))
                used[place] += process_time() - spent
            pairs.append((spans[0], spans[1]))
    finally:
        await house.close()
    return report_pairs("cycles of ten markets", pairs, "a cycle of one", BAR, cpuRatio=round(used[0] / used[1], 2))


async def of_imports(folder: Path) -> bool:
    files = [folder / f"{symbol}-1h.csv" for symbol in TEN]
    for place, file in enumerate(files):
        write_bars(file, IMPORTED_HOURS, HOUR_MS, 40_000.0 / 3**place, taker=False)
    spans: dict[int, list[float]] = {2: [], len(TEN): []}
    for turn in range(3):
        for count, times in spans.items():
            began = process_time()
            view = await import_file(folder / f"store{count}-{turn}", *files[:count])
            times.append((process_time() - began) / count)
            if view.new != count * IMPORTED_HOURS:
                raise ValueError(f"meant to import {count * IMPORTED_HOURS} rows, {view.new} are new")
    ours, theirs = (min(times) for times in (spans[len(TEN)], spans[2]))
    unit, speed = f"s of CPU a coin of {IMPORTED_HOURS:,} hours", round(IMPORTED_HOURS / ours)
    return report("import of ten coins", ours, unit, theirs, "import of two", IMPORT_BAR, rowsPerSecond=speed)


async def run() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        good = [await measure(Path(tempfile.mkdtemp(dir=folder))) for measure in (of_imports, of_cycles, of_features)]
    return all(good)


def main() -> int:
    return 0 if asyncio.run(run()) else 1


if __name__ == "__main__":
    sys.exit(main())
