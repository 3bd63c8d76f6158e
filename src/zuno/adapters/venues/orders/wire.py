"""The table of a venue's wire, and the rows that are read from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple

from zuno.adapters.venues.exchange import ExchangeVendor, Params
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import ClientId, OrderSide, OrderStatus, OrderType, TimeInForce

LONGEST_REASON: Final = 200
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")
Path = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class WireTable:
    """What differs from venue to venue and is no more than a name or a number."""

    exchange: Venue
    vendor: ExchangeVendor
    market: str = "{base}{quote}"
    """How a market is called on the wire."""
    time: tuple[str, Mapping[str, object], Path] = ("", {}, ())
    rows: Path = ()
    """Where the rows of an answer are."""
    clock_codes: frozenset[str] = frozenset()
    key_codes: frozenset[str] = frozenset()
    """Keys that are wrong or may not do that, whatever the HTTP status."""
    no_such_order: frozenset[str] = frozenset()
    no_such_market: frozenset[str] = frozenset()
    cannot_cancel: frozenset[str] = frozenset()
    """An order that is over, or never was."""
    not_taken: tuple[tuple[int, int], ...] = ()
    """Ranges of codes of an order that was read and not taken. After any other code nobody knows what became of it."""
    not_taken_statuses: frozenset[int] = frozenset()
    """The same, by the HTTP status, where codes are words."""
    statuses: Mapping[str, OrderStatus] = field(default_factory=dict)
    types: Mapping[str, OrderType] = field(default_factory=dict)
    sides: Mapping[str, OrderSide] = field(default_factory=lambda: {side.value: side for side in OrderSide})
    in_force: Mapping[TimeInForce, str] = field(default_factory=dict)
    read_in_force: Mapping[str, TimeInForce] = field(default_factory=dict)
    """What is not named is good till it is cancelled."""
    page: int = 100
    trade_id: str = "id"
    trades_window: int = 7 * DAY_MS
    """The longest time one question for trades may span."""
    trades_kept: int = 89 * DAY_MS
    """For as long the exchange lists trades."""
    funding_id: str = ""
    """Empty: there is no funding."""
    funding_window: int = 89 * DAY_MS
    stale_quote: int = 10_000
    liquidations: tuple[str, ...] = ()
    """How the exchange's own client ids begin when it closes a position."""
    cancels_by_id: bool = False
    """An order is cancelled by the exchange's id, so it is looked up first."""

    @property
    def spot(self) -> bool:
        return self.exchange.spot

    @property
    def asset(self) -> str:
        """What cash, fees and margin are in."""
        return self.exchange.quote


class Question(NamedTuple):
    endpoint: str
    what: str
    params: Params


class Trade(NamedTuple):
    """A row of the exchange's list of trades."""

    id: str
    order_id: str
    client_id: str
    """Empty where the row does not say whose it is."""
    side: OrderSide
    quantity: Decimal
    price: Decimal
    fee: Decimal
    """Above zero: paid."""
    fee_asset: str
    maker: bool
    at: Millis
    liquidation: bool = False


class Holding(NamedTuple):
    """What an account holds of a currency. `cost`: what a coin of it was bought for, where the venue says so."""

    total: Decimal
    free: Decimal
    cost: Decimal | None = None


class Listing(NamedTuple):
    """A market as the venue lists it. Quantities are of the base currency; `contract`: how much of it one unit of the
    venue's own sizes is. None: the list does not say."""

    name: str
    base: str
    quote: str
    tick: Decimal
    lot: Decimal
    min_quantity: Decimal
    max_quantity: Decimal
    min_notional: Decimal
    trading: bool
    contract: Decimal = Decimal(1)
    funding_hours: int | None = None
    maker_pct: Decimal | None = None
    taker_pct: Decimal | None = None


def read_reason(text: object) -> str:
    return plain_text(str(text), LONGEST_REASON)


def clean_id(text: str) -> ClientId:
    """Exchanges allow a few characters more than we write."""
    return _FOREIGN.sub("_", text)[:36] or "_"
