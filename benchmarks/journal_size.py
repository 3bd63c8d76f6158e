"""What a cycle leaves in the journal, and what reading and compacting it cost: `python -m benchmarks.journal_size`.

The desk goes over imported hours and over an invented market; every byte of `journal.db` is counted, entries and
indexes included. Then the same bundles are stored as their own bytes, as before there were blocks: that is what reading
one for a replay is measured against, and what `zuno home compact` converts.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import tempfile
import zlib
from contextlib import closing
from pathlib import Path
from time import process_time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.desk import SEED, run_desk
from benchmarks.figure import report, report_pairs
from benchmarks.imports import START, import_file, write_bars
from zuno.adapters.venues.synthetic.path import END
from zuno.kernel.canonical import Digest
from zuno.settings import read_settings
from zuno.trading.model.bundle import read_bundle
from zuno.trading.model.market import DAY_MS, HOUR_MS
from zuno.wiring import Application

os.environ.pop("ZUNO_RECORDING", None)  # set by the imports' bench, and stronger than a setting
IMPORTED_KB, SYNTHETIC_KB = 50, 100
READ_BAR = 1.6
COMPACT_BAR = 2.0
HOURS = 2 * 365 * 24
DAYS = 12
READS = 40
RULES = {"ZUNO_DETERMINISTIC": "true", "ZUNO_RECORDING": "synthetic"}


async def fill_imported(home: Path) -> tuple[Application, float]:
    files = []
    for symbol, price in (("BTCUSDT", 40_000.0), ("ETHUSDT", 2_500.0)):
        files.append(home.parent / f"{symbol}-1h.csv")
        write_bars(files[-1], HOURS, HOUR_MS, price, taker=False)
    await import_file(home / "market" / "own", *files)
    house = Application(read_settings(RULES | {"ZUNO_RECORDING": "own"}, home))
    end = START + HOURS * HOUR_MS
    return house, await run_desk(house, "", end - DAYS * DAY_MS, end)


async def fill_synthetic(home: Path) -> tuple[Application, float]:
    house = Application(read_settings(RULES, home))
    await house.data().synth(SEED)
    return house, await run_desk(house, "", END - DAYS * DAY_MS, END - 1)


async def measure_reads(house: Application, names: list[str]) -> list[float]:
    times = []
    for name in names:
        began = process_time()
        read_bundle(await house.journal().bundle(Digest(name)))
        times.append((process_time() - began) * 1_000)
    return times


async def store_whole(house: Application, home: Path) -> dict[str, bytes]:
    """As they were stored before there were blocks."""
    contents = {name: content async for name, content in house.compaction().journal._store.read_bundles()}
    with closing(sqlite3.connect(home / "journal.db")) as database, database:
        for name, content in contents.items():
            database.execute("UPDATE bundles SET content = ? WHERE hash = ?", (content, name))
    return {name: content for name, content in contents.items() if isinstance(content, bytes)}


async def measure_home(kind: str, home: Path, bar: int) -> bool:
    house, cycles = await (fill_imported if kind == "imported" else fill_synthetic)(home)
    await house.close()
    house = Application(read_settings(RULES, home))
    kilobytes = (home / "journal.db").stat().st_size / 1_000 / cycles
    passed = [report(f"journal of a cycle, {kind}", kilobytes, "kB", bar, f"{bar} kB", 1.0, cycles=cycles)]
    store = house.compaction().store
    names = [name async for name in store.bundle_names()][:READS]
    blocks = await measure_reads(house, names)
    contents = await store_whole(house, home)
    whole = await measure_reads(house, names)
    pairs = list(zip(blocks, whole, strict=True))
    passed.append(report_pairs(f"reading a bundle, {kind}", pairs, "the same stored as its own bytes", READ_BAR))
    began = process_time()
    for content in contents.values():
        zlib.compress(content)
    packed = process_time() - began
    began = process_time()
    view = await house.compact_home(None)
    took = process_time() - began
    if view.converted != len(contents):
        raise ValueError(f"meant to convert {len(contents)} bundles, converted {view.converted}")
    passed.append(report(f"compaction, {kind}", took, "CPU s", packed, "zlib over the same bundles", COMPACT_BAR))
    await house.close()
    return all(passed)


async def run() -> int:
    with tempfile.TemporaryDirectory() as folder:
        homes = {"imported": IMPORTED_KB, "synthetic": SYNTHETIC_KB}
        for kind in homes:
            os.mkdir(Path(folder) / kind)
        passed = [await measure_home(kind, Path(folder) / kind, bar) for kind, bar in homes.items()]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
