"""A bot that is killed with -9 between a signature and its sending; `make crash` kills it everywhere."""

from __future__ import annotations

import subprocess
import sys

from tests.paths import CHECKOUT


def test_a_bot_that_is_killed_applies_a_plan_once() -> None:
    command = [sys.executable, "-m", "tests.crash.chat", "--sample"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, cwd=CHECKOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("applied once") == 1
    assert "1 kills, 1 recovered, 0 doubled, 0 lost" in done.stdout
