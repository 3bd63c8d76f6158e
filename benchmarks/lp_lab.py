"""How fast a position is backtested over recorded minutes: `python -m benchmarks.lp_lab`.

Prints one JSON line per figure and ends with 1 when a bar is missed. demeter goes through the 22 real days minute by
minute with one position; the fast engine does the same in its convention, fees and worth of every minute, and both must
earn the same; seconds are the processor's. The exact engine is held against the fast one, and the whole command of a
sweep of 1,000 ranges by two workers against one, on the wall: 1.8 times as fast where two processes that share nothing
get two whole cores, and as much less as these get less (threads of one core, neighbours).
"""

from __future__ import annotations

import gzip
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr
from datetime import date
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks.figure import report, report_pairs
from zuno.adapters.chain.recorded.world import USDC_WETH, RecordedWorld
from zuno.adapters.imports.pool_minutes import read_pool_minutes
from zuno.amm.model import Range
from zuno.kernel.units import Seconds, Tick, Wei
from zuno.lab.lp.fast import Convention, MinuteColumns, amounts_by_minute, earn_fees, to_columns
from zuno.lp.model.minutes import PoolMinutes
from zuno.lp.rules.attribution import attribute

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "uniswap-minute"
HELD = Range(Tick(201_000), Tick(204_000))
LEAST_TIMES = 1_000.0
TURNS = 5
RANGES = 1_000
SWEEPS = 5
LEAST_SPEEDUP = 1.8
"""On two whole cores."""
USDC, WETH = 1_000.0, 0.5
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Modules are compiled once, as after an installation, and not anew by every process."""


def run_demeter(folder: Path) -> tuple[float, int, float, float]:
    """Seconds, the liquidity of its position, and what it earned."""
    from demeter import Actuator, MarketInfo, Snapshot, Strategy, TokenInfo
    from demeter.uniswap import UniLpMarket, UniV3Pool

    logging.disable(logging.CRITICAL)
    usdc, eth = TokenInfo("usdc", 6), TokenInfo("eth", 18)
    pool = UniV3Pool(usdc, eth, 0.05, usdc)
    key = MarketInfo("lp")
    market = UniLpMarket(key, pool, data_path=str(folder))
    market.load_data("polygon", "pool", date(2022, 7, 19), date(2022, 8, 9))

    class StaticPosition(Strategy):  # type: ignore[misc]  # without types
        def initialize(self) -> None:
            self.markets[key].add_liquidity_by_tick(int(HELD.lower), int(HELD.upper), Decimal(WETH), Decimal(USDC))

        def on_bar(self, snapshot: Snapshot) -> None:
            """Stay."""

    actuator: Any = Actuator()
    actuator.broker.add_market(market)
    actuator.broker.set_balance(usdc, 10_000)
    actuator.broker.set_balance(eth, 10)
    actuator.strategy = StaticPosition()
    actuator.set_price(market.get_price_from_data())
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        began = process_time()
        actuator.run(print_result=False)
        taken = process_time() - began
    (position,) = market.positions.values()
    return taken, int(position.liquidity), float(position.pending_amount0), float(position.pending_amount1)


def unpack_minutes(folder: Path) -> None:
    """As demeter names its files."""
    for path in sorted(DATA.glob("*.csv.gz")):
        (folder / f"polygon-pool-{path.name[:10]}.minute.csv").write_bytes(gzip.decompress(path.read_bytes()))


def time_best(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(TURNS):
        began = process_time()
        work()
        best = min(best, process_time() - began)
    return best


def backtest_fast(columns: MinuteColumns, liquidity: int) -> None:
    earn_fees(columns, HELD, liquidity, USDC_WETH.fee, Convention.CLOSE_TICK)
    amounts_by_minute(columns, HELD, liquidity)


def play_exact(recorded: PoolMinutes) -> tuple[int, int, int]:
    """Liquidity and fees of a position over all minutes, on the integer pool."""
    world = RecordedWorld(USDC_WETH, recorded, 10_000 * 10**6, 7 * 10**18)
    world.open_position(HELD, Wei(0))
    liquidity = world.position("recorded").liquidity
    world.play_until(Seconds(recorded.minutes[-1].at // 1000 + 60))
    earned = attribute(world.history())
    return liquidity, earned.fees0, earned.fees1


def compare_peer(columns: MinuteColumns) -> bool:
    if find_spec("demeter") is None:
        sys.stderr.write("demeter is not installed: pip install 'zuno[peers]'\n")
        return False
    with tempfile.TemporaryDirectory() as name:
        os.environ["HOME"] = name  # it keeps what it has read there
        unpack_minutes(Path(name))
        theirs, liquidity, fees0, fees1 = run_demeter(Path(name))
    ours = time_best(lambda: backtest_fast(columns, liquidity))
    rows = len(columns)
    fast = report(
        "static LP position, fast",
        ours / rows * 1e6,
        "µs a row",
        theirs / rows * 1e6,
        "demeter on the same 22 days",
        1 / LEAST_TIMES,
        rowsASecond=round(rows / ours),
        demeterRowsASecond=round(rows / theirs),
    )
    earned = earn_fees(columns, HELD, liquidity, USDC_WETH.fee, Convention.CLOSE_TICK)
    intrabar = earn_fees(columns, HELD, liquidity, USDC_WETH.fee)
    gap = max(abs(earned.fees0 / 1e6 / fees0 - 1), abs(earned.fees1 / 1e18 / fees1 - 1))
    same = report(
        "its fees, close-tick",
        gap,
        "relative",
        1.0,
        "demeter's fees of the same position",
        1e-9,
        usdc=earned.fees0 / 1e6,
        weth=earned.fees1 / 1e18,
        intrabarUsdc=intrabar.fees0 / 1e6,
        intrabarWeth=intrabar.fees1 / 1e18,
    )
    return fast and same


def compare_engines(recorded: PoolMinutes, columns: MinuteColumns) -> bool:
    liquidity, fees0, fees1 = play_exact(recorded)
    fast = earn_fees(columns, HELD, liquidity, USDC_WETH.fee)
    gap = max(abs(fast.fees0 / fees0 - 1), abs(fast.fees1 / fees1 - 1))
    return report("fast engine's fees", gap, "relative", 1.0, "the exact engine's on the integer pool", 1e-3)


def time_sweep(workers: int) -> tuple[float, bytes]:
    """Seconds of the whole command on the wall, and what it prints."""
    with tempfile.TemporaryDirectory() as home:
        words = ("lab", "sweep", "--data", str(DATA), "--ranges", str(RANGES), "--workers", str(workers), "--json")
        command = (sys.executable, "-m", "zuno", *words, "--home", home)
        began = perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, env=COMPILED)
        return perf_counter() - began, done.stdout


def measure_cores() -> float:
    """How many cores two processes get that share nothing: how much more they do together than one alone."""
    command = (sys.executable, "-c", "n = 3\nfor _ in range(12_000_000): n = n * n % 1_000_003")

    def time_together(count: int) -> float:
        began = perf_counter()
        for process in [subprocess.Popen(command) for _ in range(count)]:
            process.wait()
        return perf_counter() - began

    return 2 * time_together(1) / time_together(2)


def compare_workers() -> bool:
    pairs, cores = [], []
    time_sweep(1)  # whose modules nobody has compiled yet
    for _ in range(SWEEPS):
        two, found = time_sweep(2)
        alone, same = time_sweep(1)
        assert found == same, "the answer hangs on the number of workers"
        pairs.append((two * 1e3, alone * 1e3))
        cores.append(measure_cores())
    given = min(2.0, median(cores))
    bar = 2 / given / LEAST_SPEEDUP
    return report_pairs("sweep of 1,000 ranges, two workers", pairs, "one worker", bar, cores=round(given, 3))


def main() -> int:
    if not DATA.exists():
        sys.stderr.write("the minute rows of a real pool are not on this machine\n")
        return 0
    recorded = read_pool_minutes(DATA)
    columns = to_columns(recorded)
    kept = [compare_engines(recorded, columns), compare_workers(), compare_peer(columns)]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
