"""What a pool did minute by minute, as it was recorded."""

from dataclasses import dataclass
from typing import Final

from zuno.kernel.units import Millis
from zuno.kernel.view import View

MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class PoolMinute:
    """One minute in which the pool traded. Amounts are gross input in the tokens' smallest unit, fee included."""

    at: Millis
    open_tick: int
    close_tick: int
    lowest_tick: int
    highest_tick: int
    in0: int
    in1: int
    liquidity: int
    """Active liquidity at the minute's end; it may be zero."""


class MinuteRepairs(View):
    """What was wrong with the rows as they were read, and what was done about it."""

    files: int
    rows: int
    """As read, before any repair."""
    sorted_rows: int = 0
    """Rows that stood after a later one; they were put in order."""
    widened: int = 0
    """Rows whose open or close tick lay outside their lowest and highest; those were widened to hold it."""
    repeated: int = 0
    """Rows equal to another of the same minute; one of them stands."""
    contradicted: int = 0
    """Rows of a minute that another row described otherwise before; the first stands."""
    missing: int
    """Minutes between the first and the last row without a row: nothing traded in them."""
    missing_days: tuple[str, ...] = ()
    """UTC days between the first and the last row without any row."""
    without_liquidity: int
    """Rows with active liquidity zero: they earn no fees."""


@dataclass(frozen=True, slots=True)
class PoolMinutes:
    """A pool's minutes in ascending order, each once."""

    minutes: tuple[PoolMinute, ...]
    repairs: MinuteRepairs
