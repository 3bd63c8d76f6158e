"""What a person reads of a sleeve's past before its mandate is granted."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.trading.learn.test_tilts import DAYS, World, day
from zuno.markets.market import DEFAULT_SYMBOLS
from zuno.wiring.trade_lab import describe_backtest


async def test_a_backtest_has_its_interval_its_worst_fall_and_no_alpha(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.open()
    told = await describe_backtest(world.store, "trend", DEFAULT_SYMBOLS, day(DAYS))
    assert re.search(r"Sharpe ratio -?\d\.\d\d \(95 %: -?\d\.\d\d to -?\d\.\d\d\), worst fall \d+\.\d%", told)
    assert "short history" in told
    assert "SYNTHETIC" in told
    for sleeve, until in (("trend", day(100)), ("cash-carry", day(DAYS)), ("mine", day(DAYS))):
        bare = await describe_backtest(world.store, sleeve, DEFAULT_SYMBOLS, until)
        assert "Sharpe" not in bare
        assert "Not shown to be alpha" in bare
