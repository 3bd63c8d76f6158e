"""Every event of a pool in their order, and a pool at the end of each day."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from zuno.amm.model import Range
from zuno.kernel.units import Millis, Seconds
from zuno.lp.model.minutes import MINUTE_MS, MinuteRepairs, PoolMinute, PoolMinutes


@dataclass(frozen=True, slots=True)
class TapeSwap:
    """What came in, fee included, and the pool after it."""

    at: Seconds
    in0: int
    in1: int
    sqrt_price_x96: int
    liquidity: int
    tick: int


@dataclass(frozen=True, slots=True)
class TapeChange:
    """Liquidity that was added, or removed where it is negative."""

    at: Seconds
    range: Range
    delta: int


@dataclass(frozen=True, slots=True)
class PoolTape:
    events: tuple[TapeSwap | TapeChange, ...]

    @property
    def swaps(self) -> tuple[TapeSwap, ...]:
        return tuple(event for event in self.events if isinstance(event, TapeSwap))

    def to_minutes(self) -> PoolMinutes:
        """The minutes in which it traded, for whoever plays minutes."""
        minutes = tuple(self._minutes())
        missing = (minutes[-1].at - minutes[0].at) // MINUTE_MS + 1 - len(minutes)
        repairs = MinuteRepairs(
            files=1,
            rows=len(self.events),
            missing=missing,
            without_liquidity=sum(minute.liquidity == 0 for minute in minutes),
        )
        return PoolMinutes(minutes, repairs)

    def _minutes(self) -> Iterator[PoolMinute]:
        swaps = self.swaps
        before = swaps[0].tick
        for minute, traded in groupby(swaps, lambda swap: swap.at // 60):
            within = list(traded)
            ticks = [before, *(swap.tick for swap in within)]
            yield PoolMinute(
                Millis(minute * MINUTE_MS),
                *(before, ticks[-1], min(ticks), max(ticks)),
                *(sum(swap.in0 for swap in within), sum(swap.in1 for swap in within)),
                within[-1].liquidity,
            )
            before = ticks[-1]


@dataclass(frozen=True, slots=True)
class PoolAtDayEnd:
    day: int
    """Since 1970, in UTC."""
    sqrt_price_x96: int
    growth0_x128: int
    growth1_x128: int


@dataclass(frozen=True, slots=True)
class PoolDays:
    days: tuple[PoolAtDayEnd, ...]


PoolRecord: TypeAlias = PoolMinutes | PoolTape | PoolDays
