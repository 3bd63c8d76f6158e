"""The debate's tilt of the core on record: what a day's cycles said of each market, what that was worth so far, and
what a cycle is told of it."""

from typing import Annotated, Final

from pydantic import Field

from zuno.kernel.wire import Wire
from zuno.markets.market import Symbol
from zuno.trading.model.account import Timestamp
from zuno.trading.model.sleeves import SleeveName

TILT_DAY: Final = "tilt_day"
CORE: Final = "core"
"""The slot of a bundle that holds what the core has and what tilts did; absent where the account has no core."""
KEEP: Final = 0.10
"""A tilt nearer to nothing says keep."""
OUT: Final = 0.60
"""One further down says out."""

Tilt = Annotated[float, Field(ge=-1, le=1)]


class MarketTilt(Wire):
    market: Symbol
    tilt: Tilt
    """τ: the mean over the day's cycles."""
    cycles: Annotated[int, Field(ge=1)]
    """Whose Judge answered."""
    trend: Annotated[float | None, Field(ge=0, le=1)]
    """The core's own m at the end of the day; None: it has too few closed days."""
    residual: float | None
    """τ̃: what was said beyond the core's own trend."""
    multiplier: Annotated[float, Field(ge=0.5, le=1.5)]
    """Of the core's weight on the day that follows."""


class TiltScored(Wire):
    """What tilts were worth on the day after theirs, all markets together."""

    beta: float | None
    """Standard deviations of a day that a full tilt earned; None: nothing was said that the core did not hold."""
    se: float | None
    """Clustered by day: coins move together."""
    weight: Annotated[float, Field(ge=0, le=1)]
    """λ_τ: how much of a tilt counts."""
    days: Annotated[int, Field(ge=0)]


class TiltDay(TiltScored):
    """One day of an account. It counts on the day that follows."""

    account: Annotated[str, Field(min_length=1, max_length=200)]
    day: Timestamp
    markets: tuple[MarketTilt, ...]

    def find(self, market: Symbol) -> MarketTilt | None:
        return next((tilt for tilt in self.markets if tilt.market is market), None)


class CoreHolding(Wire):
    sleeve: SleeveName
    weight_pct: float
    """Of the sleeve's equity, at the mark; below zero is short."""


class PastTilt(Wire):
    day: Timestamp
    tilt: Tilt
    multiplier: float


class CoreSlot(Wire):
    """What the sleeves beside the debate have of a market, and what the debate's tilts of it did."""

    holdings: tuple[CoreHolding, ...]
    score: TiltScored | None
    """None: no day was scored yet."""
    tilts: tuple[PastTilt, ...]
    """Of this market, the newest first."""


def describe_tilt(tilt: float) -> str:
    """What a tilt says of what the core holds, in a word."""
    if abs(tilt) < KEEP:
        return "keep"
    return "more" if tilt > 0 else "out" if tilt <= -OUT else "less"
