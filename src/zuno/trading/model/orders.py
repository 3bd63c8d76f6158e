"""Orders as an exchange takes them, and what it answers: orders, fills, funding, positions, balances, filters.

Money and quantities are `Decimal`; prices and amounts are in the exchange's own currency (`Venue.currency`).
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.view import ForeignText, View
from zuno.kernel.wire import Wire
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.account import Timestamp
from zuno.trading.model.market import Side

ClientId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,36}$")]
"""Chosen by us and unique at the venue: placing the same id twice makes one order."""
VenueId = Annotated[str, Field(min_length=1, max_length=64)]
Positive = Annotated[Decimal, Field(gt=0)]
NotNegative = Annotated[Decimal, Field(ge=0)]

ZERO: Final = Decimal(0)


def to_decimal(number: float) -> Decimal:
    """By the digits it is written with."""
    return Decimal(repr(float(number)))


OUR_PREFIX: Final = "zn"
"""How the client ids of our orders begin."""


class OrderSide(StrEnum):
    BUY = "BUY"
    SELL = "SELL"

    @property
    def sign(self) -> int:
        return 1 if self is OrderSide.BUY else -1

    @property
    def opposite(self) -> OrderSide:
        return OrderSide.SELL if self is OrderSide.BUY else OrderSide.BUY


def opening_side(side: Side) -> OrderSide:
    """Which order opens a position of that side; its opposite closes it."""
    return OrderSide.BUY if side is Side.LONG else OrderSide.SELL


class OrderType(StrEnum):
    MARKET = "MARKET"
    LIMIT = "LIMIT"
    STOP_MARKET = "STOP_MARKET"
    """At market once the mark passes the trigger against the position."""
    TAKE_PROFIT_MARKET = "TAKE_PROFIT_MARKET"
    """At market once the mark passes the trigger in the position's favour."""


class TimeInForce(StrEnum):
    GTC = "GTC"
    IOC = "IOC"
    """What is not filled at once is cancelled."""
    POST_ONLY = "POST_ONLY"
    """Rejected where it would take."""


class OrderStatus(StrEnum):
    PLANNED = "PLANNED"
    """Stored by us; whether the venue has it is not known."""
    OPEN = "OPEN"
    """At the venue; part of it may be filled."""
    FILLED = "FILLED"
    CANCELED = "CANCELED"
    EXPIRED = "EXPIRED"
    REJECTED = "REJECTED"

    @property
    def final(self) -> bool:
        return self not in (OrderStatus.PLANNED, OrderStatus.OPEN)


class OrderRequest(Wire):
    """One order, before it is sent."""

    client_id: ClientId
    exchange: Venue
    symbol: Symbol
    side: OrderSide
    type: OrderType
    quantity: Positive
    """Of the base currency, in whole lots."""
    price: Positive | None = None
    """Of a LIMIT order, on the tick."""
    trigger: Positive | None = None
    """Of a STOP_MARKET or TAKE_PROFIT_MARKET order, on the tick."""
    time_in_force: TimeInForce = TimeInForce.GTC
    reduce_only: bool = False
    leverage: Annotated[int, Field(ge=1, le=125)] = 1


class Order(Wire):
    """An order as the venue has it."""

    request: OrderRequest
    venue_id: VenueId
    status: OrderStatus
    filled: NotNegative = ZERO
    average_price: Positive | None = None
    """None before the first fill."""
    updated: Timestamp
    reason: str = ""
    """Why it was rejected, expired or cancelled by the venue."""

    @property
    def left(self) -> Decimal:
        return self.request.quantity - self.filled


class Fill(Wire):
    """One execution of an order, or a liquidation by the venue (`client_id` is then the venue's own)."""

    id: VenueId
    """The venue's trade id: each fill is booked once, however often it is reported."""
    client_id: ClientId
    exchange: Venue
    symbol: Symbol
    side: OrderSide
    quantity: Positive
    """By so much the position changes."""
    price: Positive
    fee: Decimal
    """In the exchange's currency; below zero is a rebate."""
    maker: bool
    at: Timestamp
    liquidation: bool = False
    foreign_fee: Annotated[str, Field(max_length=64, exclude_if=lambda fee: not fee)] = ""
    """What was paid in another currency, amount and name; `fee` is then 0, for the ledger counts in one."""
    base_fee: Annotated[Decimal, Field(exclude_if=lambda fee: not fee)] = ZERO
    """Kept back of what was bought at a spot exchange. `quantity` is without it, as it is held; `fee` is its value."""

    @property
    def executed(self) -> Decimal:
        """How much of the order this filled."""
        return self.quantity + self.base_fee


class FundingPayment(Wire):
    """Funding of one position at one settlement."""

    id: VenueId
    exchange: Venue
    symbol: Symbol
    amount: Decimal
    """Above zero: received."""
    at: Timestamp


class VenuePosition(Wire):
    """A position as the venue has it. At a spot exchange: the base currency that is held."""

    exchange: Venue
    symbol: Symbol
    side: Side
    quantity: Positive
    entry: Positive | None
    """None where the venue does not say."""
    leverage: int
    margin: NotNegative
    """Isolated margin; at a spot exchange 0."""
    liquidation: Positive | None = None


class Balance(Wire):
    """Cash at a venue in its currency."""

    exchange: Venue
    total: Decimal
    """Wallet balance: margin of open positions included, unrealised PnL not."""
    available: Decimal
    """What a new order may use."""


class VenueQuote(Wire):
    """The touch and the mark of a symbol, in the exchange's own currency."""

    exchange: Venue
    symbol: Symbol
    bid: Positive
    ask: Positive
    mark: Positive
    """What stops are triggered by. At a spot exchange the last price."""
    at: Timestamp
    """When the venue said so."""


class Filters(Wire):
    """What the venue takes of a symbol."""

    exchange: Venue
    symbol: Symbol
    tick: Positive
    lot: Positive
    min_quantity: Positive
    max_quantity: Positive
    """Of a market order."""
    min_notional: Positive
    trading: bool = True
    """False: halted or delisted."""
    holds_stops: bool = True
    """False: no stop orders (some spot venues); stops are watched by the desk."""


class AccountRights(Wire):
    """What the keys may do, and how the account is set."""

    exchange: Venue
    can_trade: bool
    can_withdraw: bool
    one_way: bool
    """One position per symbol; a spot account has no other way."""
    isolated: bool
    can_transfer: bool | None = None
    """Between the venue's own wallets; None: it does not say."""
    paper: bool = False


def client_order_id(decision: str, exchange: Venue, purpose: str, number: int = 0) -> ClientId:
    """The id of an order, the same whenever the same decision asks for the same order."""
    return OUR_PREFIX + digest(canonical([decision, exchange, purpose, number]))[:30]


class Unbooked(View):
    """A position or an order that the log has otherwise, or not at all: a stranger's, or a fill of the last seconds."""

    exchange: Venue
    symbol: Symbol
    order: ForeignText | None = None
    """Its id; null: a position."""
    quantity: Decimal
    """At the exchange. Below zero is short, or an order to sell."""
    booked: Decimal = Decimal(0)
    """In the log."""

    def __str__(self) -> str:
        if self.order is None:
            return f"{self.exchange} holds {self.quantity} {self.symbol.base}, the book {self.booked}"
        return (
            f"{self.exchange} has an order of {self.quantity} {self.symbol.base} that is not in the book ({self.order})"
        )


class ExchangeAnswer(View):
    """`askedAt` null: it was not asked. `unknown`: why what it holds is not known; null where it answered."""

    exchange: Venue
    asked_at: str | None = None
    unknown: ForeignText | None = None
    total: float | None = None
    """Balance in the exchange's own currency, margin included."""
    free: float | None = None
    """What a new order may use."""
    unbooked: tuple[Unbooked, ...] = ()

    def describe(self) -> list[str]:
        """What has to be known beside the log; nothing where both agree."""
        if self.unknown is not None:
            how = "was not asked" if self.asked_at is None else "was asked and did not say what it holds"
            return [f"{self.exchange} {how}: {self.unknown}"]
        return [f"{difference}; the desk counts and closes what is in its book alone" for difference in self.unbooked]
