"""What a cycle of a backtest costs beside the same cycle run by itself: `python -m benchmarks.backtest`.

Prints one JSON line and ends with 1 when the bar is missed. Both go over the same imported hours of one symbol, every
four hours, by the rules: `Cycles.run` with its graph, checkpoints and signed journal, and `BacktestCycles` over figures
that are measured for all moments at once, the preparation counted. Each must decide the same. CPU seconds of the whole
process, so that a busy machine hits both alike; a year of 4-hour cycles is 2,190 of them.
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
from zuno.kernel.units import Millis
from zuno.lab.trading.cycles import BacktestCycles, BacktestHistory
from zuno.lab.trading.figures import AT_ONCE, MarketFigures
from zuno.markets.market import Symbol
from zuno.settings import read_settings
from zuno.trading.model.account import account_slots
from zuno.trading.model.cycle import Outcome
from zuno.trading.model.market import HOUR_MS
from zuno.trading.rules.trading_book import TradingBook
from zuno.wiring import Application
from zuno.wiring.cycles import build_run_context

BTC = Symbol("BTCUSDT")
HOURS = 2 * 365 * 24
STEP = 4 * HOUR_MS
CYCLES = AT_ONCE
"""Whole blocks of prepared moments, as a year is but for its last."""
TURN = CYCLES // 8
"""Cycles of one way before the other has its turn."""
YEAR = 365 * 6
BAR = 0.25


async def run(folder: Path) -> bool:
    file = folder / f"{BTC}-1h.csv"
    write_bars(file, HOURS, HOUR_MS, 40_000.0, taker=False)
    await import_file(folder / "market" / "own", file)
    house = Application(read_settings(os.environ, folder))
    try:
        return await compare(house)
    finally:
        await house.close()


async def compare(house: Application) -> bool:
    single, models, store = house.cycles(), house._models, house._recordings.selected_store()
    last = START + HOURS * HOUR_MS
    moments = [Millis(last - back * STEP) for back in reversed(range(CYCLES))]
    figures, account = MarketFigures(store, BTC), TradingBook().to_account()
    await figures.load(moments)
    backtest = BacktestCycles(
        figures, lambda notes: build_run_context(models, notes, models.registry()), BacktestHistory(), code=""
    )

    async def run_single(at: Millis) -> Outcome:
        return await single.run(BTC, as_of=str(at), chart=False)

    async def run_backtest(at: Millis) -> Outcome:
        return await backtest.run(at, account_slots(account, at), recall=single._with.recall)

    for back in (2, 1):  # imports and caches
        await run_single(Millis(moments[0] - back * STEP))
    ours, theirs = 0.0, 0.0
    for start in range(0, CYCLES, TURN):
        turn = moments[start : start + TURN]
        began = process_time()
        alone = [await run_single(at) for at in turn]
        middle = process_time()
        together = [await run_backtest(at) for at in turn]
        ours, theirs = ours + process_time() - middle, theirs + middle - began
        for lone, prepared in zip(alone, together, strict=True):
            if (lone.decision, lone.ruling, lone.board) != (prepared.decision, prepared.ruling, prepared.board):
                raise ValueError(f"the two ways decide differently at {lone.as_of}")
    return report(
        "4-hour cycles of a backtest",
        ours,
        f"CPU s, {CYCLES} cycles",
        theirs,
        "the same cycles one by one",
        BAR,
        msPerCycle=round(1e3 * ours / CYCLES, 2),
        yearCpuSeconds=round(ours * YEAR / CYCLES, 1),
    )


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        return 0 if asyncio.run(run(Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
