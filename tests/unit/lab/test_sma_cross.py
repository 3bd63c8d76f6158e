"""The crossing of two averages, all bars at once, against a loop that anybody can follow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sma_cross import CrossResult, Fill, run_sma_cross
from zuno.lab.trading.order_arms import cross_signals


def walk(seed: int, bars: int) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.Generator(np.random.PCG64(seed))
    closes = 100 * np.exp(np.cumsum(chance.normal(0, 0.01, bars)))
    return np.concatenate(([100.0], closes[:-1])) * (1 + chance.normal(0, 0.001, bars)), closes


def loop_over_bars(opens: np.ndarray, closes: np.ndarray, fast: int, slow: int, fee: float, fill: Fill) -> CrossResult:
    cash, held, fees, trades, pending = 1_000.0, 0.0, 0.0, 0, None
    for bar in range(len(closes)):

        def trade(price: float, long: bool) -> None:
            nonlocal cash, held, fees, trades
            cash += (-1 if long else 1) * 2.0 * price - fee * 2.0 * price
            fees += fee * 2.0 * price
            held, trades = (2.0, trades) if long else (0.0, trades + 1)

        if pending is not None:
            trade(opens[bar], pending)
            pending = None
        known = bar + 1 >= slow
        long = bool(known and closes[bar + 1 - fast : bar + 1].mean() > closes[bar + 1 - slow : bar + 1].mean())
        if long != (held > 0):
            if fill == "close":
                trade(closes[bar], long)
            else:
                pending = long
    return CrossResult(cash + held * closes[-1], trades, fees)


@pytest.mark.slow
@pytest.mark.parametrize("fill", ["close", "next_open"])
@given(seed=st.integers(0, 200), bars=st.integers(30, 120))
def test_all_bars_at_once_is_bar_after_bar(fill: Fill, seed: int, bars: int) -> None:
    opens, closes = walk(seed, bars)
    ours = run_sma_cross(opens, closes, fast=3, slow=10, quantity=2.0, cash=1_000.0, fee=0.001, fill=fill)
    theirs = loop_over_bars(opens, closes, 3, 10, 0.001, fill)
    assert ours.trades == theirs.trades
    assert ours.final_equity == pytest.approx(theirs.final_equity, rel=1e-12)
    assert ours.fees == pytest.approx(theirs.fees, rel=1e-12)


def test_a_signal_reads_nothing_later() -> None:
    _, closes = walk(7, 400)
    whole = cross_signals(closes, 5, 20)
    assert all((cross_signals(closes[:bars], 5, 20) == whole[:bars]).all() for bars in (19, 20, 100, 399))
