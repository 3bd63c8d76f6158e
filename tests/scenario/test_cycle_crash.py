"""A cycle of the trading desk that is killed with -9 and resumed; `make crash-cycle` kills it everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "crash" / "cycle.py"
EVERY = 13
"""Of some 75 points: six or so deaths, at other points from day to day of the project's life."""


def test_a_cycle_killed_at_some_of_its_points_ends_as_if_it_had_not_been() -> None:
    first = int(os.environ.get("ZUNO_TEST_CRASH_FIRST", "5")) % EVERY
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--every", str(EVERY), "--first", str(first)],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 wrong" in done.stdout
    assert done.stdout.count("the same") >= 5
    assert "Blocked" not in done.stderr
