"""`zuno trade close` that is killed with -9 between the close and the last index; `make crash` kills it everywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.paths import CHECKOUT


def test_a_close_that_is_killed_is_learned_from_once(invented_market: Path) -> None:
    command = [sys.executable, "-m", "tests.crash.learning", "--sample", "--market", str(invented_market)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, cwd=CHECKOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 wrong" in done.stdout
    assert done.stdout.count("learned once") == 2
