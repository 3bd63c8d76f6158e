"""A cycle of the trading desk that is killed with -9 and resumed; `make crash-cycle` kills it everywhere."""

from __future__ import annotations

import subprocess
import sys

from tests.paths import CHECKOUT


def test_a_cycle_that_is_killed_ends_as_if_it_had_not_been() -> None:
    command = [sys.executable, "-m", "tests.crash.cycle", "--sample"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, cwd=CHECKOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 wrong" in done.stdout
    assert done.stdout.count("the same") == 2
    assert "Blocked" not in done.stderr
