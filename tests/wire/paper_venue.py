"""A paper venue in a test's hands: a market that moves when it is told to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal

from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.venues.paper.tape import FundingRate, Mark, Tick
from zuno.adapters.venues.paper.venue import PaperVenue, venue_account
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS, HOUR_MS, Book, Quote
from zuno.trading.model.orders import OrderStatus
from zuno.trading.model.trade_events import Adopted, OrderUpdated
from zuno.trading.rules.inputs import FeeRates, Fees
from zuno.trading.rules.performance import AccountLog

START = Millis(1_750_000_000_000 // DAY_MS * DAY_MS + 12 * HOUR_MS)
ACCOUNT = "paper:test"
PLENTY = Decimal(1_000)


@dataclass
class ListTape:
    """The market as a test writes it."""

    market: dict[Symbol, list[Tick]] = field(default_factory=lambda: {symbol: [] for symbol in DEFAULT_SYMBOLS})
    opening_ms: int = 0

    async def ticks(self, symbol: Symbol, after: Millis, until: Millis) -> Sequence[Tick]:
        return [tick for tick in self.market[symbol] if after < tick.at <= until]

    async def before(self, symbol: Symbol, moment: Millis) -> Sequence[Tick]:
        return [tick for tick in self.market[symbol] if tick.at <= moment]


def depth(at: int, bid: object, ask: object, size: object = 1_000, ask_size: object = None) -> Book:
    """A quote."""
    return Book(
        Millis(at),
        (Quote(float(str(bid)), float(str(size))),),
        (Quote(float(str(ask)), float(str(size if ask_size is None else ask_size))),),
    )


@dataclass
class PaperHarness:
    """The paper venue as the exam of order venues wants it (`VenueHarness`)."""

    exchange: Venue
    price: Decimal
    tick: Decimal
    quantity: Decimal
    symbol: Symbol = Symbol("BTCUSDT")
    fees: FeeRates | None = None
    log: AccountLog = field(default_factory=MemoryTradeLog)
    tape: ListTape = field(default_factory=ListTape)
    at: int = START

    def __post_init__(self) -> None:
        self.venue = self.open_venue()
        self.show(self.price)

    def open_venue(self) -> PaperVenue:
        async def now() -> Millis:
            return Millis(self.at)

        fees = self.fees or Fees().at(self.exchange)
        return PaperVenue(self.exchange, ACCOUNT, self.log, self.tape, now, fees, latency_ms=0)

    def show(self, price: Decimal, size: Decimal = PLENTY, mark: Decimal | None = None) -> None:
        self.at += 1_000
        self.tape.market[self.symbol] += [
            depth(self.at, price - self.tick, price + self.tick, size),
            Mark(Millis(self.at), float(price if mark is None else mark)),
        ]

    async def restart(self) -> None:
        self.venue = self.open_venue()

    async def move(self, price: Decimal, size: Decimal = PLENTY, mark: Decimal | None = None) -> None:
        self.show(price, size, mark)

    def count_orders(self, client_id: str) -> int:
        """Rejected ones were never made."""
        assert isinstance(self.log, MemoryTradeLog)
        written = self.log.list_events(venue_account(ACCOUNT, self.exchange))
        made = {
            event.order.venue_id
            for event in written
            if isinstance(event, OrderUpdated)
            and event.order.request.client_id == client_id
            and event.order.status is not OrderStatus.REJECTED
        }
        return len(made)

    async def delist(self) -> None:
        self.at += 2 * DAY_MS

    async def owe(self, cash: Decimal) -> None:
        account = venue_account(ACCOUNT, self.exchange)
        before = (await self.venue.balance()).total
        count = len(await self.log.events(account))
        lost = Adopted(at=Millis(self.at), exchange=self.exchange, what="a loss", cash=cash - before)
        await self.log.append(account, [lost], count)

    async def settle_funding(self, rate: Decimal) -> None:
        self.tape.market[self.symbol].append(FundingRate(Millis(self.at + 1), float(rate)))
        self.at += 8 * HOUR_MS

    async def liquidate(self) -> None:
        await self.move(self.price / 2)


@asynccontextmanager
async def binance_on_paper() -> AsyncIterator[PaperHarness]:
    yield open_binance()


@asynccontextmanager
async def upbit_on_paper() -> AsyncIterator[PaperHarness]:
    yield open_upbit()


def open_binance() -> PaperHarness:
    return PaperHarness(Venue("BINANCE"), Decimal(20_000), Decimal("0.1"), Decimal("0.050"))


def open_upbit() -> PaperHarness:
    return PaperHarness(Venue("UPBIT"), Decimal(50_000_000), Decimal(1_000), Decimal("0.02"))
