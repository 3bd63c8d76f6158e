"""What the exam of order venues needs of a venue: to open it, to move its market, and to break what can break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from tests.wire.exchanges import binance as binance_wire
from tests.wire.exchanges import upbit as upbit_wire
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.matching import PLENTY
from tests.wire.exchanges.serving import FakeServer, serve_exchange
from tests.wire.exchanges.upbit import FakeUpbit
from zuno.adapters.http import RequestLimits
from zuno.adapters.venues.exchange import ApiKeys
from zuno.adapters.venues.orders.wires import build_account
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.orders import OrderRequest, OrderSide, OrderType, client_order_id
from zuno.trading.ports.venue import OrderVenue

PAGE = 3
"""Trades a page: few, so that a test turns several."""
QUICK = RequestLimits(timeout=5.0, attempts=2, first_wait=0.01, max_bytes=8_000_000)


class VenueHarness(Protocol):
    """A venue in a test's hands: one symbol, one account with enough money, a market that moves when it is told to."""

    venue: OrderVenue
    symbol: Symbol
    quantity: Decimal
    """Of a usual order: ten lots or more, far above the least."""
    price: Decimal
    """In the middle of the touch at the start, on the tick."""
    tick: Decimal

    async def restart(self) -> None:
        """A new adapter over what the venue remembers."""
        ...

    async def move(self, price: Decimal, size: Decimal = PLENTY, mark: Decimal | None = None) -> None:
        """The touch one tick around a price, with so much on either side. `mark`: where the two differ."""
        ...

    def count_orders(self, client_id: str) -> int:
        """How many orders of that id were ever made."""
        ...

    async def delist(self) -> None:
        """The symbol stops trading."""
        ...

    async def owe(self, cash: Decimal) -> None:
        """Make the balance so much."""
        ...

    async def settle_funding(self, rate: Decimal) -> None:
        """Eight hours pass, and funding is settled at their beginning."""
        ...

    async def liquidate(self) -> None:
        """The venue closes a borrowed position."""
        ...


def request_order(
    here: VenueHarness,
    name: str,
    side: OrderSide = OrderSide.BUY,
    kind: OrderType = OrderType.MARKET,
    quantity: Decimal | None = None,
    **more: Any,
) -> OrderRequest:
    return OrderRequest(
        client_id=client_order_id(name, here.venue.exchange, "test"),
        exchange=here.venue.exchange,
        symbol=here.symbol,
        side=side,
        type=kind,
        quantity=here.quantity if quantity is None else quantity,
        **more,
    )


@dataclass
class WireHarness:
    """An adapter that speaks to a fake exchange over loopback."""

    fake: FakeBinance | FakeUpbit
    opening: Callable[[FakeServer, Callable[[float], Awaitable[None]]], OrderVenue]
    market: str
    quantity: Decimal
    symbol: Symbol = Symbol("BTCUSDT")
    waits: list[float] = field(default_factory=list)
    """Seconds the adapter would have slept."""

    def __post_init__(self) -> None:
        self.venue = self._open()
        market = self.fake.engine.markets[self.market]
        self.price, self.tick = market.mark, market.tick

        self.place_name, self.find_name, self.cancel_name = (
            self.fake.place_name,
            self.fake.find_name,
            self.fake.cancel_name,
        )
        self.limited, self.banned = self.fake.limited, self.fake.banned

    @property
    def server(self) -> FakeServer:
        return self.fake.server

    def _open(self) -> OrderVenue:
        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        return self.opening(self.fake.server, sleep)

    async def restart(self) -> None:
        await self.venue.close()
        self.venue = self._open()

    async def move(self, price: Decimal, size: Decimal = PLENTY, mark: Decimal | None = None) -> None:
        self.fake.engine.move(self.market, price - self.tick, price + self.tick, size, mark)

    def count_orders(self, client_id: str) -> int:
        return self.fake.engine.count_orders(client_id)

    async def delist(self) -> None:
        self.fake.engine.markets[self.market].trading = False

    async def owe(self, cash: Decimal) -> None:
        self.fake.engine.cash = cash

    async def settle_funding(self, rate: Decimal) -> None:
        self.fake.engine.settle_funding(self.market, rate)
        self.fake.clock.ahead += 8 * 3_600_000

    async def liquidate(self) -> None:
        self.fake.engine.liquidate(self.market)


Sleep = Callable[[float], Awaitable[None]]


def open_account(exchange: Venue, keys: ApiKeys) -> Callable[[FakeServer, Sleep], OrderVenue]:
    def open_here(server: FakeServer, sleep: Sleep) -> OrderVenue:
        options: dict[str, Any] = {"page": PAGE, "patience": QUICK, "throttled": False, "sleep": sleep}
        return build_account(exchange, keys, tuple(DEFAULT_SYMBOLS), server.url, **options)

    return open_here


open_binance = open_account(Venue("BINANCE"), ApiKeys(binance_wire.KEY, binance_wire.SECRET))
open_upbit = open_account(Venue("UPBIT"), ApiKeys(upbit_wire.KEY, upbit_wire.SECRET))


@asynccontextmanager
async def over_binance() -> AsyncIterator[WireHarness]:
    fake = FakeBinance()
    async with serve_exchange(fake.server):
        here = WireHarness(
            fake,
            open_binance,
            "BTCUSDT",
            Decimal("0.050"),
        )
        try:
            yield here
        finally:
            await here.venue.close()


@asynccontextmanager
async def over_upbit() -> AsyncIterator[WireHarness]:
    fake = FakeUpbit()
    async with serve_exchange(fake.server):
        here = WireHarness(
            fake,
            open_upbit,
            "KRW-BTC",
            Decimal("0.02"),
        )
        try:
            yield here
        finally:
            await here.venue.close()
