"""How fast a position is backtested over recorded minutes: `python -m benchmarks.lp_lab`.

Prints one JSON line per figure and ends with 1 when a bar is missed. demeter goes through the 22 real days minute by
minute with one position; the fast engine does the same in its convention, fees and worth of every minute, and both must
earn the same; seconds are the processor's. The exact engine is held against the fast one. The ranges of a sweep are
held against their form before, which asked for every square root again for every range; and the whole command of a
sweep by two workers against one, on the wall: 1.4 times as fast where two processes that share nothing get two whole
cores, and as much less as these get less (threads of one core, neighbours). Of a tape of every swap, fees on the
recorded path and the replay on the integer pool are counted by the second.
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

import numpy as np
from numpy.typing import NDArray

from benchmarks.figure import report, report_pairs
from tests.wire.earned_fees import earn_fees
from zuno.adapters.chain.recorded.world import USDC_WETH, RecordedWorld
from zuno.adapters.imports.pool_events import read_pool_record
from zuno.adapters.imports.pool_minutes import read_pool_minutes
from zuno.amm.integers import Q96
from zuno.amm.model import Range
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.units import Seconds, Tick, Wei
from zuno.lab.lp.backtest import HeldSpan
from zuno.lab.lp.fast import PIPS, USD, Convention, MinuteColumns, amounts_at, to_columns
from zuno.lab.lp.question import plan_schedule
from zuno.lab.lp.ranges import plan_ranges, play_range
from zuno.lab.lp.tape import earn_on_path, map_ticks, replay, to_swap_columns
from zuno.lp.model.minutes import PoolMinutes
from zuno.lp.model.tape import PoolTape
from zuno.lp.rules.attribution import attribute

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "uniswap-minute"
HELD = Range(Tick(201_000), Tick(204_000))
LEAST_TIMES = 1_000.0
TURNS = 5
EVENTS = DATA.parent / "pool-events"
HELD_ON_TAPE = Range(Tick(199_700), Tick(201_700))
LEAST_ON_PATH, LEAST_REPLAYED = 200_000, 5_000
RANGES, SAMPLED = 1_000, 40
LEAST_SWEEP_TIMES = 4.0
MANY = 10_000
"""Ranges for two workers: of a thousand, reading the minutes and starting Python take longer than the ranges."""
SWEEPS = 3
LEAST_SPEEDUP = 1.4
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
    amounts_at(columns.roots, HELD, liquidity)


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
        sys.stderr.write("demeter is not installed: make .venv/.peers\n")
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


def play_range_before(columns: MinuteColumns, held: Range, capital: int, fee_pips: int) -> tuple[float, float]:
    """The yardstick: a range as it was played before, every root asked for anew. Its fees and what it made."""

    def root_of(ticks: NDArray[np.float64]) -> NDArray[np.float64]:
        kinds, places = np.unique(ticks, return_inverse=True)
        asked = np.array([sqrt_price_at_tick(int(tick)) / Q96 for tick in kinds])[places]
        return np.asarray(asked, dtype=np.float64)

    def inside(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
        below, above = np.minimum(one, other), np.maximum(one, other)
        return np.asarray(np.maximum(np.minimum(above, held.upper) - np.maximum(below, held.lower), 0.0))

    def share_of(part: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(total > 0, part / np.where(total > 0, total, 1.0), standing)

    first, last, lowest, highest = columns.before, columns.close, columns.lowest, columns.highest
    standing = ((last >= held.lower) & (last < held.upper)).astype(np.float64)
    low_first = (first - lowest) + (highest - last) <= (highest - first) + (last - lowest)
    span, span_inside = highest - lowest, inside(lowest, highest)
    down = np.where(low_first, (first - lowest) + (highest - last), span)
    up = np.where(low_first, span, (highest - first) + (last - lowest))
    down_inside = np.where(low_first, inside(lowest, first) + inside(last, highest), span_inside)
    up_inside = np.where(low_first, span_inside, inside(first, highest) + inside(lowest, last))
    low, high = (sqrt_price_at_tick(edge) / Q96 for edge in (held.lower, held.upper))
    start = sqrt_price_at_tick(int(first[0])) / Q96
    root = min(max(start, low), high)
    each0, each1 = (high - root) / (root * high), root - low
    whole = capital * USD
    needed0 = whole * each0 / (each0 + each1 / (start * start))
    kept = whole - abs(needed0 - whole / 2) * fee_pips / PIPS
    liquidity = int(kept / (each0 + each1 / (start * start)))
    roots = root_of(np.clip(last, held.lower, held.upper))
    held0, held1 = liquidity * (high - roots) / (roots * high), liquidity * (roots - low)
    diluted = np.where(columns.liquidity > 0, liquidity / (columns.liquidity + liquidity), 0.0) * (fee_pips / PIPS)
    earned0 = np.cumsum(columns.in0 * diluted * share_of(down_inside, down))
    earned1 = np.cumsum(columns.in1 * diluted * share_of(up_inside, up))
    prices = root_of(last) ** 2
    worth = held0 + earned0 + (held1 + earned1) / prices
    np.max(1 - worth / np.maximum(np.maximum.accumulate(worth), whole))
    return float(earned0[-1] + earned1[-1] / prices[-1]), float(worth[-1]) - whole


def compare_sweep(recorded: PoolMinutes) -> bool:
    schedule = plan_schedule(recorded, 1)
    columns = to_columns(recorded).select_minutes(schedule.start, schedule.end)
    ranges = tuple(dict.fromkeys(plan_ranges(int(columns.before[0]), RANGES)))[:: RANGES // SAMPLED]
    for held in ranges:
        now = play_range(columns, held, 10_000, USDC_WETH.fee)
        before = play_range_before(columns, held, 10_000, USDC_WETH.fee)
        assert (now.fees, now.net_pnl_usd) == tuple(round(value / USD, 4) for value in before), held

    def time_all(play: Callable[[MinuteColumns, Range, int, int], object]) -> float:
        return 1e3 * time_once(lambda: [play(columns, held, 10_000, USDC_WETH.fee) for held in ranges])

    pairs = [(time_all(play_range), time_all(play_range_before)) for _ in range(TURNS)]
    return report_pairs(f"sweep, {len(ranges)} of its ranges", pairs, "its form before", 1 / LEAST_SWEEP_TIMES)


def compare_tape() -> bool:
    tape = read_pool_record(EVENTS)
    assert isinstance(tape, PoolTape)
    columns, swaps = to_swap_columns(tape), len(tape.swaps)
    path = time_best(lambda: earn_on_path(columns, HELD_ON_TAPE, 10**15, USDC_WETH.fee))
    ticks = map_ticks(tape, USDC_WETH.tick_spacing)
    span = HeldSpan(Seconds(tape.events[0].at), Seconds(tape.events[-1].at), HELD_ON_TAPE, 10**15)
    exact = time_once(lambda: replay(tape, ticks, USDC_WETH.fee, [span]))
    rates = (("fees on its path", swaps / path, LEAST_ON_PATH), ("replay, integer pool", swaps / exact, LEAST_REPLAYED))
    kept = [
        report(f"tape, {name}", 1e6 / rate, "µs a swap", 1e6 / least, "the bar", 1.0, swapsASecond=round(rate))
        for name, rate, least in rates
    ]
    return all(kept)


def time_once(work: Callable[[], object]) -> float:
    began = process_time()
    work()
    return process_time() - began


def time_sweep(workers: int) -> tuple[float, bytes]:
    """Seconds of the whole command on the wall, and what it prints."""
    with tempfile.TemporaryDirectory() as home:
        words = ("lab", "sweep", "--data", str(DATA), "--ranges", str(MANY), "--workers", str(workers), "--json")
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
    return report_pairs(f"sweep of {MANY:,} ranges, two workers", pairs, "one worker", bar, cores=round(given, 3))


def main() -> int:
    if not DATA.exists():
        sys.stderr.write("the minute rows of a real pool are not on this machine\n")
        return 0
    recorded = read_pool_minutes(DATA)
    columns = to_columns(recorded)
    kept = [compare_engines(recorded, columns), compare_sweep(recorded), compare_workers(), compare_peer(columns)]
    if EVENTS.exists():
        kept.append(compare_tape())
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
