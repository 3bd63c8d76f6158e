"""A part of `make crash`: the desk dies at a few steps of a trade, and every time it goes on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.paths import CHECKOUT


@pytest.mark.parametrize(
    ("case", "points"),
    [("paper", "--every 34"), ("paper targets", "--every 40"), ("BYBIT legs", "--every 40 --offset 20")],
)
def test_a_desk_that_is_killed_in_the_midst_of_a_trade_goes_on(case: str, points: str) -> None:
    command = [sys.executable, "-m", "tests.crash.orders", "--only", case, *points.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, cwd=CHECKOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 duplicate orders, 0 positions without a stop or legs alone, 0 ledgers that differ" in done.stdout
