"""How long it takes to measure a symbol beside reading the rows that are measured: `python benchmarks/features.py`.

Prints one JSON line per figure and ends with 1 when a bar is missed. Measured is what `zuno trade features` does from
the store to the figures: everything gathered (and read) and every figure computed. The yardstick reads the same rows of
the same series from the same store and does nothing with them.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.figure import report
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.adapters.venues.synthetic.path import END
from zuno.adapters.venues.synthetic.world import build_batches, describe_origin
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.data.bundle_builder import build_bundle, reach_of
from zuno.trading.measure.features import measure_features
from zuno.trading.model.bundle import bundle_hash
from zuno.trading.model.market import Mode
from zuno.trading.model.wanted import wanted_series

REPEATS = 15
SEED = 11
NOW = Millis(END)


async def measured(store: SqliteSeries) -> tuple[float, float, float, int]:
    """Milliseconds of reading, of measuring and of naming, the best of many turns, and how many rows were read."""
    best = [float("inf")] * 3
    count = 0
    for _ in range(REPEATS):
        start = perf_counter()
        count = 0
        for series in wanted_series(Symbol("BTCUSDT")):
            reach = reach_of(series)
            count += len(await store.read(series, Millis(END - reach.span), NOW, NOW, reach.newest))
        read = perf_counter()
        bundle = await build_bundle(store, Symbol("BTCUSDT"), Mode.SWING, NOW)
        measure_features(bundle)
        done = perf_counter()
        bundle_hash(bundle)
        spans = (read - start, done - read, perf_counter() - done)
        best = [min(pair) for pair in zip(best, spans, strict=True)]
        gc.collect()
    return (*(1e3 * one for one in best), count)  # type: ignore[return-value]


async def run(folder: Path) -> tuple[float, float, float, int]:
    store = SqliteSeries(folder, describe_origin(SEED))
    try:
        await store.begin(describe_origin(SEED), build_batches(SEED))
        return await measured(store)
    finally:
        await store.close()


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        read, measure, name, count = asyncio.run(run(Path(folder)))
    passed = report(
        "features of one symbol",
        measure,
        "ms",
        read,
        "reading its rows",
        3.0,
        rows=count,
        hashing_the_bundle_ms=round(name, 1),
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
