"""How fast a crossing of two averages runs over a million bars: `python -m benchmarks.sma_cross`.

Prints one JSON line per figure and ends with 1 when a bar is missed, or when equity at the end is not the peer's to
nine digits. Beside it backtrader goes through the same bars (orders filled at the next open; a tenth of the bars, for
it takes minutes) and vectorbt (filled at the close of the signal's bar), both with one fixed quantity and the same fee.
vectorbt runs in `.venv/vectorbt`, which `make bench` installs. A peer that is not installed is named, and its lines are
left out. All work on one core: seconds are the processor's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.figure import report
from benchmarks.peers.vectorbt_cross import BARS, CASH, FAST, FEE, QUANTITY, SLOW, TURNS, draw_bars
from zuno.lab.trading.order_arms import cross_signals

TENTH: Final = BARS // 10
SAME: Final = 1e-9
TIMES: Final = {"backtrader": 300.0, "vectorbt warm": 1.0, "vectorbt first": 10.0}
VECTORBT: Final = Path(sys.prefix) / "vectorbt" / "bin" / "python"
Column = NDArray[np.float64]
Fill = Literal["close", "next_open"]
"""Where an order of a bar is filled: at its close (as by vectorbt), or at the open of the next (as by backtrader)."""


@dataclass(frozen=True, slots=True)
class CrossResult:
    final_equity: float
    trades: int
    """Closed ones."""
    fees: float


def run_sma_cross(
    opens: Column,
    closes: Column,
    *,
    fast: int,
    slow: int,
    quantity: float,
    cash: float,
    fee: float,
    fill: Fill,
) -> CrossResult:
    """Long one fixed quantity while the fast average is above the slow one, else flat, over all bars at once.

    `fee`: a fraction of each order's value. An order on the last bar that would be filled on the next
    never is."""
    wanted = cross_signals(closes, fast, slow)
    changed = np.flatnonzero(wanted[1:] != wanted[:-1]) + 1
    if len(wanted) and wanted[0]:
        changed = np.concatenate(([0], changed))
    if fill == "close":
        prices = closes[changed]
    else:
        changed = changed[changed + 1 < len(closes)]
        prices = opens[changed + 1]
    signs = np.where(np.arange(len(prices)) % 2 == 0, -1.0, 1.0)
    flows = signs * prices
    fees = fee * quantity * float(prices.sum())
    held = quantity if len(prices) % 2 else 0.0
    equity = cash + quantity * float(flows.sum()) - fees + held * float(closes[-1]) if len(closes) else cash
    return CrossResult(equity, len(prices) // 2, fees)


def run_ours(opens: Column, closes: Column, fill: Fill) -> tuple[float, float]:
    """Seconds and the equity at the end."""
    taken = []
    for _ in range(TURNS):
        began = process_time()
        found = run_sma_cross(opens, closes, fast=FAST, slow=SLOW, quantity=QUANTITY, cash=CASH, fee=FEE, fill=fill)
        taken.append(process_time() - began)
    return min(taken), found.final_equity


def run_backtrader(opens: Column, closes: Column) -> tuple[float, float]:
    import backtrader as bt
    import pandas as pd

    class Cross(bt.Strategy):  # type: ignore[misc]  # without types
        def __init__(self) -> None:
            self.fast = bt.indicators.SimpleMovingAverage(self.data.close, period=FAST)
            self.slow = bt.indicators.SimpleMovingAverage(self.data.close, period=SLOW)

        def next(self) -> None:
            long = self.fast[0] > self.slow[0]
            if long and not self.position:
                self.buy(size=QUANTITY)
            elif not long and self.position:
                self.close()

    index = pd.date_range("2020-01-01", periods=len(closes), freq="min")
    prices = {"open": opens, "high": np.maximum(opens, closes), "low": np.minimum(opens, closes), "close": closes}
    frame = pd.DataFrame(prices | {"volume": np.ones(len(closes))}, index=index)
    cerebro = bt.Cerebro(stdstats=False)
    cerebro.broker.setcash(CASH)
    cerebro.broker.setcommission(commission=FEE)
    cerebro.adddata(bt.feeds.PandasData(dataname=frame))
    cerebro.addstrategy(Cross)
    began = process_time()
    cerebro.run()
    return process_time() - began, float(cerebro.broker.getvalue())


def compare(name: str, ours: tuple[float, float], theirs: tuple[float, float], against: str) -> bool:
    kept = report(
        f"SMA cross, {name}",
        ours[0] * 1e3,
        f"ms for {BARS:,} bars",
        theirs[0] * 1e3,
        against,
        1 / TIMES[name],
        times=round(theirs[0] / ours[0], 1),
        equity=ours[1],
        peerEquity=theirs[1],
    )
    same = abs(ours[1] - theirs[1]) <= SAME * abs(theirs[1])
    if not same:
        sys.stderr.write(f"{name} ends with {theirs[1]!r}, we with {ours[1]!r}\n")
    return kept and same


def main() -> int:
    opens, closes = draw_bars(BARS)
    kept = []
    if find_spec("backtrader") is None:
        sys.stderr.write("backtrader is not installed: make .venv/.peers\n")
    else:
        short = opens[:TENTH], closes[:TENTH]
        seconds, equity = run_backtrader(*short)
        ours = run_ours(opens, closes, "next_open")[0], run_ours(*short, "next_open")[1]
        against = "backtrader, ten times what it took for the first tenth, where both equities are"
        kept.append(compare("backtrader", ours, (seconds * BARS / TENTH, equity), against))
    if not VECTORBT.exists():
        sys.stderr.write("vectorbt is not installed: `make bench` makes an environment for it\n")
    else:
        script = Path(__file__).parent / "peers" / "vectorbt_cross.py"
        env = {**os.environ, "NUMBA_NUM_THREADS": "1"}
        said = subprocess.run([VECTORBT, script], check=True, capture_output=True, text=True, env=env).stdout
        theirs = json.loads(said)
        ours = run_ours(opens, closes, "close")
        warm, first = (theirs["warm"], theirs["equity"]), (theirs["first"], theirs["equity"])
        kept.append(compare("vectorbt warm", ours, warm, "vectorbt, compiled before, the same bars"))
        kept.append(compare("vectorbt first", ours, first, "vectorbt, its first run in a process"))
    return 0 if kept and all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
