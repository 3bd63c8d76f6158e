"""A part of `make crash`: the process dies at a few points of a one-step rebalance, and every time it recovers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import CHECKOUT


@pytest.mark.usefixtures("world_cache")
def test_killed_at_a_few_points_a_rebalance_is_done_once(world_cache: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "tests.crash.matrix",
        "--only",
        "one step",
        "--every",
        "24",
        "--cache",
        str(world_cache),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, check=False, cwd=CHECKOUT)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    kills = int(done.stdout.splitlines()[-1].split()[0])
    assert kills >= 1
    assert done.stdout.splitlines()[-1] == f"{kills} kills, {kills} recovered, 0 duplicates, 0 lost"
