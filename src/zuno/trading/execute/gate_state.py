"""What the parts of the order gate share: one account at its venues, what it acts with, its locks, and what is known of
them by this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import takewhile
from typing import Final

from zuno.kernel.errors import Broken, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.model.orders import SPOT, ClientId, Filters, VenueQuote
from zuno.trading.model.trade_events import IntentKind, LockLifted, LockSet, Protection
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.book_state import Place, TrackedIntent, TrackedOrder
from zuno.trading.rules.performance import AccountLog
from zuno.trading.rules.protections import ProtectionLimits
from zuno.trading.rules.trading_book import TradingBook

UNRESPONSIVE_MS: Final = 15_000
"""An exchange that took so long and failed is asked for no news and no entries until the next look: what is held
elsewhere waits for it no longer."""


@dataclass(frozen=True, slots=True)
class GateContext:
    log: AccountLog
    account: str
    venues: Mapping[Venue, OrderVenue]
    now: Callable[[], Millis]
    limits: ProtectionLimits = field(default_factory=ProtectionLimits)
    live: bool = False
    """Money can be lost: an entry is made and worked under its mandate alone."""
    entries: bool = True
    """Whether entries are placed and worked on. At an exchange only by the one process that holds the desk's lock and
    was permitted to; whoever else acts for the account cancels, protects and closes."""
    why_no_entries: str = "this process was not permitted to open trades in the account"
    """What is said of an entry where none is placed."""
    compare_every: Millis | None = None
    """How often the book is held against the exchanges again after the start; None: never, for nobody else trades
    there."""
    killed: Callable[[], str | None] = lambda: None
    """Why nothing new may be sent, by the kill lock of the home; asked before every entry that is."""
    manual_fees_pct: Mapping[Venue, Decimal] = field(
        default_factory=lambda: dict.fromkeys(DEFAULT_VENUES, Decimal("0.05"))
    )
    """What closing a position that a person wrote down costs."""


class GateState:
    """What is in no log is kept here, and may be lost with the process."""

    def __init__(self, context: GateContext) -> None:
        self.context = context
        self.account = context.account
        self.venues = context.venues
        self.now = context.now
        """The clock of this account's market."""
        self.writer = AccountWriter(context.log, context.account)
        self.write = self.writer.write
        self.placing = context.entries
        self.started: Millis | None = None
        """When this process looked first."""
        self.said: list[str] = []
        """What failed at the exchange that is being worked."""
        self.begun = Millis(0)
        """When it began to be worked."""
        self.ended_legs: dict[tuple[str, Venue], str] = {}
        """Legs of entries that are worked to their end, and why."""
        self.refused: dict[Symbol, Millis] = {}
        """When the venue last refused to close a symbol."""
        self.unbooked: dict[Place, Millis] = {}
        """Where the exchange holds more of our entries than their fills say, and since when that is known."""
        self.unsure: dict[ClientId, Millis] = {}
        """Orders whose reply did not come or is not booked, or that were given up while another process may have sent
        them, and since when."""
        self._filters: dict[Place, Filters] = {}

    @property
    def book(self) -> TradingBook:
        """As it was when it was looked at last."""
        return self.writer.book

    async def quote(self, exchange: Venue, symbol: Symbol) -> VenueQuote:
        return await self.find_venue(exchange).quote(symbol)

    async def dollar_mark(self, symbol: Symbol) -> Decimal | None:
        """None where nothing is quoted in dollars here."""
        return (await self.quote(Venue("BINANCE"), symbol)).mark if Venue("BINANCE") in self.venues else None

    async def filters(self, exchange: Venue, symbol: Symbol) -> Filters:
        """As the venue had them when this process first asked, or asked anew for an entry."""
        found = self._filters.get((exchange, symbol))
        return found or await self.fresh_filters(exchange, symbol)

    async def fresh_filters(self, exchange: Venue, symbol: Symbol) -> Filters:
        found = self._filters[exchange, symbol] = await self.find_venue(exchange).filters(symbol)
        return found

    async def known_filters(self, venue: OrderVenue, symbol: Symbol) -> Filters | None:
        """None where they cannot be read: what protects or closes does not wait for them."""
        try:
            return await self.filters(venue.exchange, symbol)
        except Broken:
            raise
        except ZunoError as error:
            self.said.append(str(error))
            return None

    async def holds_stops(self, venue: OrderVenue, symbol: Symbol) -> bool:
        filters = await self.known_filters(venue, symbol)
        return venue.exchange not in SPOT if filters is None else filters.holds_stops

    def is_unresponsive(self) -> bool:
        return bool(self.said) and self.now() - self.begun >= UNRESPONSIVE_MS

    async def attempt(self, act: Awaitable[None]) -> bool:
        """Whether it was done. What the venue cannot or will not do is said, and keeps nothing else from being done."""
        try:
            await act
        except Broken:
            raise
        except ZunoError as error:
            self.said.append(str(error))
            return False
        return True

    async def lock(self, symbol: Symbol | None, reason: str) -> None:
        """Stop taking risk until somebody has looked."""
        known = self.book.locks.get((Protection.RECONCILIATION, symbol))
        if known is None or known.reason != reason[:600]:
            await self._write_lock(Protection.RECONCILIATION, symbol, reason[:600])

    async def set_lock(self, protection: Protection, reason: str) -> LockSet:
        known = self.book.locks.get((protection, None))
        if known is not None:
            return known
        return await self._write_lock(protection, None, reason)

    async def _write_lock(self, protection: Protection, symbol: Symbol | None, reason: str) -> LockSet:
        lock = LockSet(at=self.event_time(), protection=protection, symbol=symbol, until=None, reason=reason)
        await self.write([lock])
        return lock

    def has_written_lock(self, protection: Protection) -> bool:
        """Whether it stands in the log, as far as that is known."""
        lock = self.book.locks.get((protection, None))
        return lock is not None and lock not in self.writer.unwritten

    async def lift(self, protection: Protection, symbol: Symbol | None, reason: str) -> bool:
        stood = (protection, symbol) in self.book.locks
        if stood or protection not in (Protection.PAUSED, Protection.KILL_SWITCH):
            # The exchange's clock may be a little ahead: what was closed by now counts no more.
            closed = [summary.closed + 1 for summary in self.book.closed[-1:]]
            booked = [result.at + 1 for result in self.book.results[-1:]]
            at = Millis(max([self.event_time(), *closed, *booked]))
            await self.write([LockLifted(at=at, protection=protection, symbol=symbol, reason=reason)])
        return stood

    def find_venue(self, exchange: Venue) -> OrderVenue:
        venue = self.venues.get(exchange)
        if venue is None:
            raise Unavailable(f"No orders can be placed at {exchange} here.")
        return venue

    def event_time(self) -> Millis:
        return Millis(max(self.book.newest, self.now()))

    def symbols_at(self, exchange: Venue) -> list[Symbol]:
        """Those that something is held, ordered or wanted of."""
        book = self.book
        held = (symbol for place, symbol in book.positions if place is exchange)
        ordered = (order.request.symbol for order in self.orders_at(exchange))
        wanted = (open.intent.symbol for open in book.open_intents.values())
        unsure = (order.request.symbol for order in self.list_unsure(exchange))
        return list(dict.fromkeys([*held, *ordered, *wanted, *unsure]))

    def list_unsure(self, exchange: Venue, symbol: Symbol | None = None) -> list[TrackedOrder]:
        known = (self.book.orders.get(id) for id in self.unsure)
        return [
            order
            for order in known
            if order is not None and order.request.exchange is exchange and symbol in (None, order.request.symbol)
        ]

    def orders_at(self, exchange: Venue, symbol: Symbol | None = None) -> list[TrackedOrder]:
        return [
            order
            for order in self.book.open_orders.values()
            if order.request.exchange is exchange and symbol in (None, order.request.symbol)
        ]

    def entry_orders(self, place: Place) -> list[TrackedOrder]:
        """Of the desk, that wait or whose end is not known."""
        return [order for order in self.orders_at(*place) if order.purpose == "entry" and order.intent]

    def orders_of(self, tracked: TrackedIntent, exchange: Venue) -> list[TrackedOrder]:
        found = (self.book.orders[id] for id in tracked.orders)
        return [order for order in found if order.request.exchange is exchange]

    def open_entries(self, symbol: Symbol | None = None) -> list[TrackedIntent]:
        return [
            tracked
            for tracked in self.book.open_intents.values()
            if tracked.intent.kind is IntentKind.OPEN and symbol in (None, tracked.intent.symbol)
        ]

    def is_closing(self, symbol: Symbol) -> bool:
        return any(
            tracked.intent.kind is IntentKind.CLOSE and tracked.intent.symbol is symbol
            for tracked in self.book.open_intents.values()
        )

    def is_closed_since(self, symbol: Symbol, moment: Millis) -> bool:
        since = takewhile(lambda summary: summary.closed >= moment, reversed(self.book.closed))
        return any(summary.symbol is symbol for summary in since)
