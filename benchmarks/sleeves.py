"""What a simulated month of all sleeves costs beside the debate's alone: `python -m benchmarks.sleeves [DAYS]`.

Prints one JSON line and ends with 1 when the bar is missed: the CPU time of `trade start --speed max` by rules over two
coins of candles, once with `trend` and `cash-carry` beside the debate.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from time import process_time

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "ZUNO_RECORDING": "own", "ZUNO_DETERMINISTIC": "true"}

from benchmarks.figure import report
from benchmarks.imports import START, import_file, write_bars
from zuno.kernel.clock import iso
from zuno.kernel.units import Millis
from zuno.settings import Settings
from zuno.trading.model.market import DAY_MS, HOUR_MS
from zuno.wiring import Application

BAR = 1.5
BEFORE = 140
"""Days that the core looks back on."""


async def run_desk(home: Path, account: str, sleeves: str, days: int) -> float:
    zuno = Application(Settings(home=home, sleeves=sleeves))
    since, until = (iso(Millis(START + day * DAY_MS)) for day in (BEFORE, BEFORE + days))
    try:
        began = process_time()
        view = await zuno.trade_desk().start(
            lambda event: None, asyncio.Event(), account=account, speed="max", since=since, until=until
        )
        if view.invariants != "ok":
            raise ValueError(view.invariants)
        return process_time() - began
    finally:
        await zuno.close()


async def run(days: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        home, files = Path(folder) / "home", [Path(folder) / f"{coin}USDT-1h.csv" for coin in ("BTC", "ETH")]
        for file, price in zip(files, (60_000.0, 3_000.0), strict=True):
            write_bars(file, 24 * (BEFORE + days + 1), HOUR_MS, price, taker=True)
        (home / "market").mkdir(parents=True)
        await import_file(home / "market" / "own", *files)
        await run_desk(home, "warm", "debate:1", 1)
        theirs = await run_desk(home, "alone", "debate:1", days)
        ours = await run_desk(home, "all", "trend:0.5,cash-carry:0.2,debate:0.3", days)
    return report("month of all sleeves", ours, f"s of CPU for {days} days", theirs, "the debate's alone", BAR)


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else 30)) else 1)
