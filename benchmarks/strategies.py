"""What the targets of every day cost at once: `python -m benchmarks.strategies`.

Prints one JSON line and ends with 1 when the bar is missed: the CPU time of `trend` over ten invented coins and eight
years beside that of the rule written row by row, whose weights must be the same to 1e-12.
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np

from benchmarks.figure import report_pairs
from benchmarks.peers.plain_trend import weigh_row_by_row
from zuno.trading.model.market import DAY_MS
from zuno.trading.strategies.port import MarketHistory, StrategyView, align_days, build_history
from zuno.trading.strategies.trend import TREND

MARKETS, DAYS, TURNS = 10, 8 * 365, 9
SAME = 1e-12
BAR = 1 / 30


def make_histories() -> dict[str, MarketHistory]:
    """Random walks; the later ones are listed later."""
    dice = np.random.Generator(np.random.PCG64(11))
    histories = {}
    for place in range(MARKETS):
        first = 120 * place
        closes = 100 * np.exp(np.cumsum(dice.normal(0.0005, 0.035, DAYS - first)))
        days = range(first * DAY_MS, DAYS * DAY_MS, DAY_MS)
        name = f"COIN{place}USDT"
        histories[name] = build_history(name, zip(days, closes.tolist(), strict=True))
    return histories


def main() -> int:
    histories = make_histories()
    closes = {name: history.closes for name, history in histories.items()}
    columns = align_days(StrategyView(DAYS * DAY_MS, histories))
    pairs = []
    for _ in range(TURNS):
        began = process_time()
        weights = TREND.weigh_days(columns)
        between = process_time()
        plain = weigh_row_by_row(closes)
        pairs.append((1e3 * (between - began), 1e3 * (process_time() - between)))
    apart = max(float(np.abs(weights[place] - plain[name]).max()) for place, name in enumerate(columns.names))
    if apart > SAME:
        sys.stderr.write(f"the weights differ by {apart}\n")
        return 1
    return 0 if report_pairs("targets of ten markets over eight years", pairs, "row by row", BAR, apart=apart) else 1


if __name__ == "__main__":
    sys.exit(main())
