"""What the paper venue is matched against: books, bars, marks and funding of one symbol, in the order they happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from zuno.kernel.units import Millis
from zuno.trading.model.market import Quote

MARK_MS: Final = 10_000
"""How long a mark counts before the last price stands in for it."""


class Bar(NamedTuple):
    """A closed bar, in the exchange's currency."""

    start: Millis
    at: Millis
    """When it closed: it is known from then on."""
    open: float
    high: float
    low: float
    close: float


class Depth(NamedTuple):
    """A look at the book; best first. A quote is one level a side."""

    at: Millis
    bids: tuple[Quote, ...]
    asks: tuple[Quote, ...]


class Mark(NamedTuple):
    at: Millis
    price: float


class FundingRate(NamedTuple):
    at: Millis
    rate: float
    """A fraction of the notional; above zero, longs pay."""
    both_pay: bool = False
    """Where the side that paid is unknown."""


Tick: TypeAlias = Bar | Depth | Mark | FundingRate


@dataclass(slots=True)
class MarketState:
    price: float | None = None
    """The last price: a close, the middle of a book, or a mark."""
    at: int = 0
    stale_ms: int = 600_000
    """How long that price counts."""
    mark: float | None = None
    marked: int = 0
    """When the venue last said a mark."""
    depth: Depth | None = None

    def see(self, tick: Tick) -> None:
        match tick:
            case Bar() if tick.at < self.at:
                pass  # it came late: newer prices are known
            case Bar():
                self.price = self.mark = tick.close
                self.at, self.stale_ms = tick.at, max(600_000, 2 * (tick.at - tick.start))
            case Depth():
                self.depth = tick
                if tick.bids and tick.asks:
                    self.price = (tick.bids[0].price + tick.asks[0].price) / 2
                    self.at, self.stale_ms = tick.at, 600_000
                    if self.mark is None or tick.at - self.marked > MARK_MS:
                        self.mark = self.price
            case Mark():
                self.mark = self.price = tick.price
                self.marked = tick.at
                self.at, self.stale_ms = tick.at, 600_000
            case FundingRate():
                pass
