"""What the exam of order venues needs of a venue: to open it, to move its market, and to break what can break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, Protocol

from tests.wire.exchanges import binance, bybit, hyperliquid, okx, upbit
from tests.wire.exchanges.account import FakeExchange
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.bybit import FakeBybit
from tests.wire.exchanges.hyperliquid import FakeHyperliquid
from tests.wire.exchanges.matching import PLENTY
from tests.wire.exchanges.okx import FakeOkx
from tests.wire.exchanges.serving import FakeServer, serve_exchange
from tests.wire.exchanges.upbit import FakeUpbit
from zuno.adapters.http import RequestLimits
from zuno.adapters.venues.exchange import ApiKeys
from zuno.adapters.venues.orders.wires import build_account
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.orders import (
    Order,
    OrderRequest,
    OrderSide,
    OrderStatus,
    OrderType,
    client_order_id,
)
from zuno.trading.ports.venue import OrderVenue

PAGE = 3
"""Trades a page: few, so that a test turns several."""
ALWAYS = Millis(0)
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


def limit(here: VenueHarness, name: str, price: Decimal, side: OrderSide = OrderSide.BUY, **more: Any) -> OrderRequest:
    return request_order(here, name, side, OrderType.LIMIT, price=price, **more)


async def find(here: VenueHarness, order: OrderRequest) -> Order | None:
    return await here.venue.find(here.symbol, order.client_id)


async def hold(here: VenueHarness) -> Decimal:
    """How much is held of what is traded; a spot exchange that takes its fee of what was bought gives less."""
    return sum((position.quantity for position in await here.venue.positions()), Decimal(0))


async def open_long(here: VenueHarness, name: str = "in") -> Decimal:
    """How much is held then."""
    assert (await here.venue.place(request_order(here, name))).status is OrderStatus.FILLED
    return await hold(here)


@dataclass(frozen=True)
class Wire:
    """A venue's fake, the keys that it knows, and the market that is traded there."""

    build: Callable[[], FakeExchange]
    keys: ApiKeys
    market: str
    """As the fake's engine calls it."""
    quantity: Decimal = Decimal("0.05")
    variables: tuple[str, str] = ("API_KEY", "API_SECRET")
    """How the settings of its keys end."""

    def set_environment(self, venue: Venue, url: str) -> dict[str, str]:
        """What makes `zuno` trade at the fake with money that is none."""
        secrets = filter(None, (self.keys.key, self.keys.secret, self.keys.passphrase))
        named = dict(zip((*self.variables, "PASSPHRASE"), secrets, strict=False))
        house = f"ZUNO_{venue.house.upper()}"
        return {f"{house}_{name}": secret for name, secret in named.items()} | {f"{house}_ORDER_URL": url}


WIRES: dict[str, Wire] = {
    "BINANCE": Wire(FakeBinance, ApiKeys(binance.KEY, binance.SECRET), "BTCUSDT"),
    "BINANCE-SPOT": Wire(lambda: FakeBinance().spot, ApiKeys(binance.KEY, binance.SECRET), "BTCUSDT"),
    "BYBIT": Wire(FakeBybit, ApiKeys(bybit.KEY, bybit.SECRET), "BTCUSDT"),
    "BYBIT-SPOT": Wire(FakeBybit, ApiKeys(bybit.KEY, bybit.SECRET), "spot:BTCUSDT"),
    "OKX": Wire(FakeOkx, ApiKeys(okx.KEY, okx.SECRET, okx.PASSPHRASE), "BTC-USDT-SWAP"),
    "OKX-SPOT": Wire(FakeOkx, ApiKeys(okx.KEY, okx.SECRET, okx.PASSPHRASE), "BTC-USDT"),
    "HYPERLIQUID": Wire(
        FakeHyperliquid, ApiKeys(hyperliquid.owner(), hyperliquid.AGENT_KEY), "BTC", variables=("ACCOUNT", "AGENT_KEY")
    ),
    "UPBIT": Wire(
        FakeUpbit, ApiKeys(upbit.KEY, upbit.SECRET), "KRW-BTC", Decimal("0.02"), ("ACCESS_KEY", "SECRET_KEY")
    ),
}
"""By the venue's name. A fake whose adapter is missing (`ACCOUNTS`) waits for it."""


@dataclass
class WireHarness:
    """An adapter that speaks to a fake exchange over loopback."""

    exchange: Venue
    symbol: Symbol = Symbol("BTCUSDT")
    symbols: Sequence[Symbol] = DEFAULT_SYMBOLS
    waits: list[float] = field(default_factory=list)
    """Seconds the adapter would have slept."""

    def __post_init__(self) -> None:
        wire = WIRES[self.exchange]
        self.fake, self.market, self.quantity = wire.build(), wire.market, wire.quantity
        market = self.fake.engine.markets[self.market]
        self.price, self.tick = market.mark, market.tick
        self.place_name, self.find_name, self.cancel_name = (
            self.fake.place_name,
            self.fake.find_name,
            self.fake.cancel_name,
        )

    venue: OrderVenue = field(init=False)

    @property
    def server(self) -> FakeServer:
        return self.fake.server

    def open_venue(self) -> OrderVenue:
        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)
            if self.fake.clock.lag:
                self.fake.clock.ahead += round(seconds * 1_000)

        return open_wire(self.exchange, self.server.url, sleep, self.symbols)

    async def restart(self) -> None:
        await self.venue.close()
        self.venue = self.open_venue()

    async def move(self, price: Decimal, size: Decimal = PLENTY, mark: Decimal | None = None) -> None:
        self.fake.engine.move(self.market, price - self.tick, price + self.tick, size, mark)

    def count_orders(self, client_id: str) -> int:
        """The venue's spelling of an id may be another than ours."""
        return self.fake.engine.count_orders(client_id) or self.fake.engine.count_orders(self.spell(client_id))

    def spell(self, client_id: str) -> str:
        spelling = getattr(self.venue, "spell_id", None)
        return client_id if spelling is None else str(spelling(client_id))

    async def delist(self) -> None:
        self.fake.delist(self.market)

    async def owe(self, cash: Decimal) -> None:
        self.fake.engine.cash = cash

    async def settle_funding(self, rate: Decimal) -> None:
        self.fake.engine.settle_funding(self.market, rate)
        self.fake.clock.ahead += 8 * 3_600_000
        await self.venue.now()  # a clock that leaps is asked again

    async def liquidate(self) -> None:
        self.fake.engine.liquidate(self.market)


@asynccontextmanager
async def over_wire(name: str) -> AsyncIterator[WireHarness]:
    """A venue's adapter over its fake."""
    here = WireHarness(Venue(name))
    async with serve_exchange(here.server):
        here.venue = here.open_venue()
        try:
            yield here
        finally:
            await here.venue.close()


@asynccontextmanager
async def over_beside(name: str) -> AsyncIterator[tuple[WireHarness, WireHarness]]:
    """A house's perpetuals and its spot market, at one server."""
    async with over_wire(name) as here:
        beside = WireHarness(Venue(f"{name}-SPOT"))
        beside.fake = here.fake.spot if isinstance(here.fake, FakeBinance) else here.fake
        beside.venue = beside.open_venue()
        try:
            yield here, beside
        finally:
            await beside.venue.close()


def open_wire(
    name: str, url: str, sleep: Callable[[float], Awaitable[None]], symbols: Sequence[Symbol] = DEFAULT_SYMBOLS
) -> OrderVenue:
    """A venue's adapter with the keys that its fake knows."""
    options: dict[str, Any] = {"page": PAGE, "patience": QUICK, "throttled": False, "sleep": sleep}
    return build_account(Venue(name), WIRES[name].keys, tuple(symbols), url, **options)


def open_binance(server: FakeServer, sleep: Callable[[float], Awaitable[None]]) -> OrderVenue:
    return open_wire("BINANCE", server.url, sleep)


over_binance = partial(over_wire, "BINANCE")
over_upbit = partial(over_wire, "UPBIT")
