"""Three weeks of a real ETH market, from the shared folder beside the checkout: minutes of a USDC/WETH pool."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from tests.paths import REAL_MINUTES
from zuno.kernel.units import Millis
from zuno.trading.model.market import Candle, Timeframe


def minutes() -> list[Candle]:
    """ETH in USDC by the minute, July and August 2022; a few minutes are missing. Skips the test without the data."""
    if not REAL_MINUTES.is_dir():
        pytest.skip("the real minutes are not here: they belong in shared/data/uniswap-minute beside the checkout")
    return list(_minutes())


def grouped(candles: Iterable[Candle], timeframe: Timeframe) -> list[Candle]:
    """Longer bars made of these; the first and the last may be of fewer minutes than others."""
    return [_joined(Millis(at), tuple(rows)) for at, rows in groupby(candles, lambda row: timeframe.floor(row.at))]


@cache
def _minutes() -> tuple[Candle, ...]:
    return tuple(row for path in sorted(REAL_MINUTES.glob("*.csv.gz")) for row in _day(path))


def _day(path: Path) -> Iterator[Candle]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            at = Millis(int(datetime.fromisoformat(row["timestamp"] + "+00:00").timestamp()) * 1_000)
            # The pool prices USDC in ETH, so a low tick is a high price; the first and the last trade may lie outside
            # what the data calls lowest and highest.
            names = ("openTick", "lowestTick", "highestTick", "closeTick")
            prices = [10**12 / 1.0001 ** int(row[name]) for name in names]
            sold = int(row["inAmount1"]) / 10**18
            bought = (int(row["inAmount1"]) - int(row["netAmount1"])) / 10**18
            yield Candle(at, prices[0], max(prices), min(prices), prices[-1], sold + bought, bought)


def _joined(at: Millis, rows: tuple[Candle, ...]) -> Candle:
    return Candle(
        at,
        rows[0].open,
        max(row.high for row in rows),
        min(row.low for row in rows),
        rows[-1].close,
        sum(row.volume for row in rows),
        sum(row.taker_buy or 0.0 for row in rows),
    )
