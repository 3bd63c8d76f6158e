"""What the desk costs beside its cycles: `python -m benchmarks.desk`.

A day of the whole desk over recorded time (schedule, protective watch, orders, ledger) against the same cycles by
themselves, and later days of an account against the same days of a new one. CPU seconds, so that a busy machine hits
both alike.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import process_time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.figure import report
from zuno.adapters.venues.synthetic.path import END
from zuno.markets.market import DEFAULT_SYMBOLS
from zuno.settings import read_settings
from zuno.trading.model.market import DAY_MS, HOUR_MS
from zuno.wiring import Application

SEED = 11
DAY_BAR = 1.3
AGE_BAR = 1.15
SPAN_MS = 20 * DAY_MS
"""The invented market has minutes of 45 days."""


async def spend(act: Callable[[], Awaitable[Any]]) -> float:
    start = process_time()
    await act()
    return process_time() - start


async def run_desk(house: Application, account: str, since: int, until: int) -> int:
    view = await house.trade_desk().start(
        lambda event: None, asyncio.Event(), account=account, speed="max", since=str(since), until=str(until)
    )
    if view.invariants != "ok":
        raise ValueError(view.invariants)
    return view.cycles


async def against_its_cycles(house: Application) -> bool:
    since, ran = END - DAY_MS, 0

    async def desk() -> None:
        nonlocal ran
        ran = await run_desk(house, "bench", since, END)

    async def cycles() -> None:
        for at in range(since, END + 1, 4 * HOUR_MS):
            for symbol in DEFAULT_SYMBOLS:
                await house.cycles().run(symbol.value, "swing", str(at), chart=False)

    await house.cycles().run("BTCUSDT", chart=False)
    ours, theirs = await spend(desk), await spend(cycles)
    return report("a day of the desk", ours, "CPU s", theirs, f"its {ran} cycles by themselves", DAY_BAR)


async def later_days(house: Application, new: Application) -> bool:
    """The same days twice, for what a day costs is the market's doing first: how long something is held or waits."""
    first = await spend(lambda: run_desk(house, "", END - 2 * SPAN_MS, END - SPAN_MS - 1))
    later = await spend(lambda: run_desk(house, "", END - SPAN_MS, END - 1))
    alone = await spend(lambda: run_desk(new, "", END - SPAN_MS, END - 1))
    against = "the same days of a new account in a new home"
    return report(
        "days 21 to 40 of an account", later, "CPU s", alone, against, AGE_BAR, first20DaysCpuSeconds=round(first, 2)
    )


async def run() -> int:
    with tempfile.TemporaryDirectory() as folder:
        homes = [Path(folder) / name for name in ("home", "new")]
        homes[0].mkdir()
        house = Application(read_settings({"ZUNO_DETERMINISTIC": "true"}, homes[0]))
        await house.data().synth(SEED)
        shutil.copytree(homes[0] / "market", homes[1] / "market")
        new = Application(read_settings({"ZUNO_DETERMINISTIC": "true"}, homes[1]))
        passed = [await against_its_cycles(house), await later_days(house, new)]
        await house.close()
        await new.close()
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
