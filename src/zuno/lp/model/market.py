"""Facts about markets: a value never travels without its source and its time."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from zuno.kernel.units import Seconds, Wei

T = TypeVar("T")
HOUR: Seconds = Seconds(3600)


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value, who said it, when it was true, and when we read it."""

    value: T
    source: str
    as_of: Seconds
    read_at: Seconds
    limit: Seconds
    """Older than this, the fact is stale."""
    notes: tuple[str, ...] = ()
    """What a reader must know beside the value: which sources failed before this one, what is missing from it."""

    @property
    def age(self) -> Seconds:
        return Seconds(max(0, self.read_at - self.as_of))

    @property
    def stale(self) -> bool:
        return self.age > self.limit


@dataclass(frozen=True, slots=True)
class Pair:
    """Base and quote, as in ETH in USDC. Each is a `market_name`: the symbol of a curated token, else its address."""

    base: str
    quote: str

    def __str__(self) -> str:
        return f"{self.base}/{self.quote}"


@dataclass(frozen=True, slots=True)
class PricePoint:
    """Price of one whole base token in whole quote tokens at the end of an hour, or of another step."""

    at: Seconds
    price: Fraction


@dataclass(frozen=True, slots=True)
class PriceSeries:
    """Hourly closes, oldest first, strictly increasing in time; a missing hour is a gap, not a guess."""

    pair: Pair
    points: tuple[PricePoint, ...]
    gaps: int = 0
    """Hours of the window that was asked for which have no close."""


@dataclass(frozen=True, slots=True)
class PricePath:
    """A reference price, oldest first: each point stands until the next."""

    pair: Pair
    points: tuple[PricePoint, ...]
    minutes: int | None = None
    """Between two points, where it was asked at even times. None: every change is a point."""


@dataclass(frozen=True, slots=True)
class GasQuote:
    """What one unit of gas costs now, and what a byte of a transaction adds on a rollup."""

    base_fee: Wei
    priority_fee: Wei
    l1_fee_per_byte: Wei | None = None
    """None where the chain charges no separate data fee. Not to be added up by hand: `cost` knows when it counts."""
    estimates_hold_data_fee: bool = False
    """True where the chain's own estimates of gas units include the data already, as on Arbitrum."""

    @property
    def price(self) -> Wei:
        return Wei(self.base_fee + self.priority_fee)

    def cost(self, units: int, size: int, *, estimated_here: bool) -> Wei:
        """What `units` of gas and `size` bytes cost; `estimated_here` if this very chain's node named the units. Units
        measured elsewhere never hold a data fee; this chain's own estimate may, and then it is paid once."""
        included = estimated_here and self.estimates_hold_data_fee
        return Wei(units * self.price + (0 if included else size * (self.l1_fee_per_byte or 0)))
