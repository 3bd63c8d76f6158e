"""What the trading desk holds: cash by exchange, positions, orders that rest, and the inventory of its liquidity."""

from __future__ import annotations

from dataclasses import dataclass

from zuno.domain.cycle import Exchange
from zuno.domain.trading import Side, Symbol
from zuno.domain.units import Millis


@dataclass(frozen=True, slots=True)
class Holding:
    """An open position. Prices and margin are in the exchange's own currency."""

    id: str
    symbol: Symbol
    exchange: Exchange
    side: Side
    quantity: float
    """Of the base currency, above zero."""
    entry: float
    leverage: float
    opened: Millis
    stop: float | None = None
    take: float | None = None

    @property
    def margin(self) -> float:
        return self.quantity * self.entry / self.leverage


@dataclass(frozen=True, slots=True)
class Resting:
    """An order that waits for its price. A reduce-only one closes and adds nothing."""

    id: str
    symbol: Symbol
    exchange: Exchange
    side: Side
    quantity: float
    price: float
    leverage: float
    placed: Millis
    reduce_only: bool = False

    @property
    def margin(self) -> float:
        return 0.0 if self.reduce_only else self.quantity * self.price / self.leverage


@dataclass(frozen=True, slots=True)
class Liquidity:
    """How much of a base currency the owner's liquidity positions hold: it moves with the price like any other."""

    symbol: Symbol
    quantity: float


@dataclass(frozen=True, slots=True)
class Account:
    """Everything that was held at a moment, strictly before it."""

    usd: float
    """Cash at BINANCE, margin of open positions included, profits that are not taken excluded."""
    krw: float
    """Cash at UPBIT; what was bought with it is not in it."""
    positions: tuple[Holding, ...] = ()
    pending: tuple[Resting, ...] = ()
    liquidity: tuple[Liquidity, ...] = ()
