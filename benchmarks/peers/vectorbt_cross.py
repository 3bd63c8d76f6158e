"""The crossing of two averages by vectorbt, in an environment of its own: it needs a pandas that other peers refuse.

Prints one JSON line: seconds of the first run in this process, of the best of those after it, and equity at the end.
"""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import numpy as np

BARS = 1_000_000
FAST, SLOW = 50, 200
QUANTITY, CASH, FEE = 2.0, 10_000_000.0, 0.0005
TURNS = 5


def draw_bars(count: int) -> tuple[Any, Any]:
    """Opens and closes that are on no grid: averages are never equal."""
    dice = np.random.default_rng(11)
    closes = 20_000 * np.exp(np.cumsum(dice.normal(0, 4e-4, count)))
    opens = np.concatenate(([20_000.0], closes[:-1])) * np.exp(dice.normal(0, 1e-5, count))
    return opens, closes


def run_vectorbt(series: Any, vbt: Any) -> tuple[float, float]:
    began = process_time()
    long = vbt.MA.run(series, FAST).ma.to_numpy() > vbt.MA.run(series, SLOW).ma.to_numpy()
    entries, exits = np.zeros(len(long), bool), np.zeros(len(long), bool)
    entries[1:], exits[1:] = long[1:] & ~long[:-1], ~long[1:] & long[:-1]
    held = vbt.Portfolio.from_signals(series, entries, exits, size=QUANTITY, fees=FEE, init_cash=CASH, freq="1min")
    value = float(held.final_value())
    return process_time() - began, value


def main() -> None:
    import pandas as pd
    import vectorbt as vbt

    _, closes = draw_bars(BARS)
    series = pd.Series(closes, index=pd.date_range("2020-01-01", periods=len(closes), freq="min"))
    first, value = run_vectorbt(series, vbt)
    warm = min(run_vectorbt(series, vbt)[0] for _ in range(TURNS))
    print(json.dumps({"first": first, "warm": warm, "equity": value}))


if __name__ == "__main__":
    main()
