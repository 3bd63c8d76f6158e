"""The same answer on every machine: whatever a processor can or cannot do, the same market, hashes and rulings."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.paths import CHECKOUT, GOLDEN
from tests.wire import fingerprints
from tests.wire.cycling import SHARED

NUMBERS = GOLDEN / "numbers.json"
DISPATCHED: list[str] = [
    name
    for name in np._core._multiarray_umath.__cpu_dispatch__  # type: ignore[attr-defined]
    if np._core._multiarray_umath.__cpu_features__.get(name)  # type: ignore[attr-defined]
]
"""What numpy would use here beyond what every processor of this kind has, the plainest first."""
SETTINGS = [(DISPATCHED, 1), pytest.param(DISPATCHED[1:], 2, marks=pytest.mark.soak)]


def computed(home: Path, disabled: list[str], threads: int) -> dict[str, Any]:
    """By a process of its own, for numpy reads its settings once; and from a market that it invents itself."""
    settings = {"NPY_DISABLE_CPU_FEATURES": " ".join(disabled), "OPENBLAS_NUM_THREADS": str(threads), SHARED: ""}
    given = {name: value for name, value in os.environ.items() if name not in settings}
    script = [sys.executable, "-m", "tests.wire.fingerprints", str(home)]
    done = subprocess.run(
        script,
        cwd=CHECKOUT,
        env=given | {name: value for name, value in settings.items() if value},
        capture_output=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """With all this processor can do, and as many threads as it has; the market is the one that the run shares."""
    found: dict[str, Any] = json.loads(json.dumps(asyncio.run(fingerprints.computed(tmp_path_factory.mktemp("here")))))
    return found


@pytest.mark.parametrize(("disabled", "threads"), SETTINGS)
def test_no_processor_and_no_thread_changes_a_number(
    here: dict[str, Any], tmp_path: Path, disabled: list[str], threads: int
) -> None:
    assert computed(tmp_path, disabled, threads) == here


def test_numbers_are_those_of_every_other_machine(here: dict[str, Any]) -> None:
    frozen: dict[str, Any] = json.loads(NUMBERS.read_text(encoding="utf-8"))
    assert {name: here[name] for name in frozen} == frozen
