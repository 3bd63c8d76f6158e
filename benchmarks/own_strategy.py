"""A day of a Python strategy's shadow: eight years of ten markets to a confined process, and its answer checked."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
from hashlib import sha256
from os import times
from pathlib import Path

from benchmarks.figure import report
from benchmarks.strategies import DAYS, make_histories
from zuno.adapters.strategies.python_file import Confinement, PythonStrategy
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS
from zuno.trading.strategies.own_targets import check_targets, encode_view
from zuno.trading.strategies.port import StrategyView

TURNS = 9
MOST_SECONDS = 0.2
CODE = """
def targets(view):
    means = {name: sum(market.closes[-50:]) / 50 for name, market in view.markets.items()}
    return {name: 0.1 for name, mean in means.items() if view.markets[name].closes[-1] > mean}
"""


async def measure(path: Path) -> list[float]:
    view = StrategyView(DAYS * DAY_MS, make_histories())
    seconds = []
    strategy = PythonStrategy(path, sha256(CODE.encode()).hexdigest(), Confinement(5.0))
    for _ in range(TURNS + 1):  # the first tries the confinement as well
        began = sum(times()[:4])  # of this process and of its children: what else runs here is not counted
        check_targets(await strategy.ask(Millis(view.at), encode_view(view)), dict.fromkeys(view.markets, True))
        seconds.append(sum(times()[:4]) - began)
    return seconds[1:]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mine.py")
        path.write_text(CODE)
        seconds = statistics.mean(asyncio.run(measure(path)))
    ok = report("a day of a strategy's shadow", seconds, f"s of CPU, mean of {TURNS}", MOST_SECONDS, "0.2 s a day", 1.0)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
