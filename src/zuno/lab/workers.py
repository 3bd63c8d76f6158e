"""What every long command of the lab is asked: in how many processes, and who hears how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from zuno.kernel.errors import Usage

MOST_WORKERS: Final = 64
Progress: TypeAlias = Callable[[int, int], None]
"""Told how much is done, and of how much."""


def check_workers(workers: int) -> None:
    if not 1 <= workers <= MOST_WORKERS:
        raise Usage(f"--workers is {workers}; give a whole number from 1 to {MOST_WORKERS}.")
