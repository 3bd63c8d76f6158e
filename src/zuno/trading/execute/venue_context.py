"""What everything in this room is handed: the account it acts for, and the venue it acts at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from zuno.kernel.accounts import HomeLock
from zuno.kernel.errors import Broken, Refused, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.model.known import Known
from zuno.trading.model.market import MINUTE_MS
from zuno.trading.model.orders import ZERO, ClientId, Filters, VenueQuote
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.model.trade_events import IntentKind, LockLifted, LockSet, Protection, TradeIntent
from zuno.trading.ports.venue import MarginFunds, OrderVenue
from zuno.trading.rules.book_state import OpenTrade, Purpose, SleevePlace, TrackedIntent, TrackedOrder
from zuno.trading.rules.execution_styles import round_to_step
from zuno.trading.rules.performance import AccountLog
from zuno.trading.rules.protections import ProtectionLimits, hash_mandate
from zuno.trading.rules.sleeve_funds import Opening
from zuno.trading.rules.trading_book import TradingBook

UNRESPONSIVE_MS: Final = 15_000
"""An exchange that took so long and failed is asked for no news and no entries until the next look: what is held
elsewhere waits for it no longer."""
OVERLAP_MS: Final = MINUTE_MS
"""How far back fills and funding are asked for again: venues' clocks differ, and each is booked once. By a clock that
is further off nothing new is opened."""
SAME_CLOCK_MS: Final = 2_000
"""By how much clocks may differ and be the same: some venues give the time in whole seconds."""
DOLLAR: Final = "USD"
"""What marks, ATR and margins of a ruling are in."""


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
    """How often the book is held against the exchanges after the start; None: never, for nobody else trades there."""
    killed: Callable[[], HomeLock | None] = lambda: None
    """Why nothing new may be sent, by the locks of the home; asked before every entry that is."""
    manual_fees_pct: Mapping[Venue, Decimal] = field(default_factory=dict)
    """What closing a position that a person wrote down costs, where it is not the venue's usual fee."""
    find_stale: Callable[[Venue], Awaitable[str | None]] | None = None
    """Why a venue's list of markets does not serve for entries, if so; asked before each. None: any serves."""
    rates: Callable[[], Awaitable[Mapping[str, Known[Decimal]]]] | None = None
    """What a dollar is in each currency by the market that is read, for an account with no venue in dollars."""
    opening: Opening | None = None
    """What the account begins with if it is new; None: with the usual cash."""
    sleeve_places: Callable[[str], Mapping[Venue, Decimal]] = lambda sleeve: {}
    """Where a sleeve's money is to lie, in parts of it."""
    move_cash: Callable[[str, Venue, Venue, Decimal], Awaitable[Decimal]] | None = None
    """Between the wallets of two venues, once for each key; None: a person does it."""
    take_after: int = 30 * MINUTE_MS
    """How long orders toward a target wait at the touch before the rest is taken."""
    funds: MarginFunds | None = None
    """None: no money can be moved between venues, and no position is opened whose margin may need it."""
    let_run_pct: int = 0
    """Of a new trade: the share that runs on past its target behind a trailing stop."""


class AccountContext(AccountWriter):
    """One account and what it acts with. What is kept here beside the book may be lost with the process."""

    def __init__(self, gate: GateContext) -> None:
        super().__init__(gate.log, gate.account, tuple(gate.venues), gate.opening)
        self.gate, self.venues = gate, gate.venues
        self.ahead: int | None = None
        """Milliseconds by which this machine's clock is ahead of an exchange's; None: not known, or there is none."""
        self._clock_read: Millis | None = None
        """By this machine's clock."""
        self.started: Millis | None = None
        """When this process looked first."""
        self.troubles: dict[Venue, str] = {}
        """Exchanges that did not answer the last time, and what they said."""
        self.ended_legs: dict[tuple[str, Venue], str] = {}
        """Legs of entries that are worked to their end, and why."""
        self.refused: dict[tuple[str, Symbol], Millis] = {}
        """When a venue last refused to close a sleeve's position in a symbol."""
        self.refusals: dict[tuple[SleevePlace, Purpose], str] = {}
        """Levels that a venue refused and the desk watches, in words."""
        self.moved: set[str] = set()
        """Moves of cash between wallets that are known to be made."""
        self.memories: dict[tuple[Venue, str], VenueMemory] = {}

    def now(self) -> Millis:
        """The clock of this account's market: of its exchange, as far as that is known."""
        return Millis(self.gate.now() - (self.ahead or 0))

    async def read_clock(self) -> None:
        """Ask an exchange for its time: every minute, and when this machine's clock has leapt."""
        machine, read = self.gate.now(), self._clock_read
        ports = [port for port in self.venues.values() if not port.simulated]
        if not ports or (self.ahead is not None and read is not None and 0 <= machine - read < MINUTE_MS):
            return
        self._clock_read = machine
        for port in ports:
            with suppress(Unavailable, Refused):
                self.ahead = await self._measure_ahead(port)
                return

    async def _measure_ahead(self, port: OrderVenue) -> int:
        """Return by how many milliseconds this machine's clock is ahead of a venue's. A slow answer says little, as the
        first of a vendor whose library is loaded for it: it is asked for once more."""
        asked = self.gate.now()
        there = await port.now()
        if self.gate.now() - asked > SAME_CLOCK_MS:
            asked = self.gate.now()
            there = await port.now()

        ahead = (asked + self.gate.now()) // 2 - there
        return ahead if abs(ahead) > SAME_CLOCK_MS else 0

    def why_clock_unfit(self) -> str | None:
        """Why nothing new is opened by this machine's clock, if so."""
        if self.ahead is None:
            exchanges = [exchange for exchange, port in self.venues.items() if not port.simulated]
            return f"the clock of {', '.join(exchanges)} is not known" if exchanges else None
        if abs(self.ahead) <= OVERLAP_MS:
            return None
        side = "ahead of" if self.ahead > 0 else "behind"
        return f"this machine's clock is {abs(self.ahead) // 1_000} s {side} the exchange's; set it (NTP)"

    def at(self, exchange: Venue, sleeve: str = DEBATE) -> VenueContext:
        """A look at a venue that begins now, for one sleeve."""
        port = self.venues.get(exchange)
        if port is None:
            raise Unavailable(f"No orders can be placed at {exchange} here.")
        memory = self.memories.setdefault((exchange, sleeve), VenueMemory())
        return VenueContext(self, port, memory, self.now(), sleeve)

    def list_sleeves(self, exchange: Venue) -> list[str]:
        """Those that hold, ordered or want something, or may have sent an order, at an exchange; the debate always."""
        held = (sleeve for place, _, sleeve in self.book.positions if place == exchange)
        wanted = (tracked.intent.sleeve for tracked in self.book.open_intents.values())
        ordered = (self.book.sleeve_of(order) for order in self.book.open_orders.values())
        unsure = (sleeve for (place, sleeve), memory in self.memories.items() if place == exchange and memory.unsure)
        return sorted({DEBATE, *held, *wanted, *ordered, *unsure}, key=lambda sleeve: (sleeve != DEBATE, sleeve))

    def list_sharing(self, exchange: Venue) -> list[Venue]:
        """Venues of the account with the same wallet, itself among them; on paper each has one of its own."""
        alone = self.venues[exchange].simulated
        return [exchange] if alone else [other for other in self.venues if other.wallet == exchange.wallet]

    def free_cash(self, exchange: Venue) -> Decimal:
        """By the book, in the wallet of an exchange."""
        book = self.book
        return sum((book.cash(venue) - book.pending_margin(venue) for venue in self.list_sharing(exchange)), ZERO)

    def event_time(self) -> Millis:
        return Millis(max(self.book.newest, self.now()))

    def mandate_hash(self) -> str | None:
        """Of the mandate that stands; None without one."""
        mandate = self.book.active_mandate(self.now())
        return None if mandate is None else hash_mandate(mandate)

    async def read_dollar_mark(self, symbol: Symbol) -> Decimal | None:
        """None where nothing is quoted in dollars here."""
        for exchange, port in self.venues.items():
            if exchange.currency == DOLLAR:
                return (await port.quote(symbol)).mark
        return None

    def hedges(self) -> list[TradeIntent]:
        """Whose legs are held, or being entered or cut."""
        opened = (tracked.intent for tracked in self.book.open_intents.values())
        return [*self.book.list_hedges(), *(intent for intent in opened if intent.hedge_lot is not None)]

    def is_closing(self, symbol: Symbol, sleeve: str) -> bool:
        return bool(self.book.list_intents(IntentKind.CLOSE, symbol, sleeve))

    # -- locks

    async def lock(self, symbol: Symbol | None, reason: str) -> None:
        """Stop taking risk until somebody has looked."""
        known = self.book.locks.get((Protection.RECONCILIATION, symbol))
        if known is None or known.reason != reason[:600]:
            await self.write_lock(Protection.RECONCILIATION, reason, symbol)

    async def write_lock(
        self, protection: Protection, reason: str, symbol: Symbol | None = None, until: Millis | None = None
    ) -> LockSet:
        lock = LockSet(at=self.event_time(), protection=protection, symbol=symbol, until=until, reason=reason[:600])
        await self.write([lock])
        return lock

    async def set_lock(self, protection: Protection, reason: str) -> LockSet:
        return self.book.locks.get((protection, None)) or await self.write_lock(protection, reason)

    def has_written_lock(self, protection: Protection) -> bool:
        """Whether it stands in the log, as far as that is known."""
        lock = self.book.locks.get((protection, None))
        return lock is not None and lock not in self.unwritten

    async def lift(self, protection: Protection, symbol: Symbol | None, reason: str) -> bool:
        stood = (protection, symbol) in self.book.locks
        if stood or protection not in (Protection.PAUSED, Protection.KILL_SWITCH):
            # The exchange's clock may be a little ahead: what was closed by now counts no more.
            closed = [summary.closed + 1 for summary in self.book.closed[-1:]]
            booked = [result.at + 1 for result in self.book.results[-1:]]
            at = Millis(max([self.event_time(), *closed, *booked]))
            await self.write([LockLifted(at=at, protection=protection, symbol=symbol, reason=reason)])
        return stood


@dataclass(slots=True, eq=False)
class VenueMemory:
    """What this process knows of a venue and no log has, symbol by symbol."""

    filters: dict[Symbol, Filters] = field(default_factory=dict)
    unsure: dict[ClientId, Millis] = field(default_factory=dict)
    """Orders without a booked reply, or given up while another process may have sent them, and since when."""
    unbooked: dict[Symbol, Millis] = field(default_factory=dict)
    """Where the venue holds more of our entries than their fills say, and since when that is known."""
    unwanted: dict[Symbol, str] = field(default_factory=dict)
    """Where an entry was filled after its intent was over, and that intent."""
    unsellable: dict[Symbol, str] = field(default_factory=dict)
    """What a close found too small to be sold."""
    fills_from: dict[Symbol, Millis] = field(default_factory=dict)
    funding_from: dict[Symbol, Millis] = field(default_factory=dict)
    funding_asked: dict[Symbol, Millis] = field(default_factory=dict)
    funding_troubles: dict[Symbol, str] = field(default_factory=dict)
    """Symbols whose funding could not be read the last time, and why. It holds up nothing."""


@dataclass(frozen=True, slots=True)
class ExchangeState:
    quote: VenueQuote
    filters: Filters


@dataclass(frozen=True, slots=True, eq=False)
class VenueContext:
    """One look at one venue for one sleeve: its port, what it holds of the sleeve, and what failed so far."""

    account: AccountContext
    port: OrderVenue
    memory: VenueMemory
    begun: Millis
    sleeve: str = DEBATE
    failures: list[str] = field(default_factory=list)

    @property
    def exchange(self) -> Venue:
        return self.port.exchange

    @property
    def binds_balance(self) -> bool:
        """An order to sell binds what it would sell: no second one can stand beside it."""
        return not self.exchange.reduce_only

    @property
    def book(self) -> TradingBook:
        return self.account.book

    def now(self) -> Millis:
        return self.account.now()

    def is_unresponsive(self) -> bool:
        return bool(self.failures) and self.now() - self.begun >= UNRESPONSIVE_MS

    async def attempt(self, act: Awaitable[None]) -> bool:
        """Whether it was done. What the venue cannot or will not do is said, and keeps nothing else from being done."""
        try:
            await act
        except Broken:
            raise
        except ZunoError as error:
            self.failures.append(str(error))
            return False
        return True

    # -- what it is asked for

    async def read_filters(self, symbol: Symbol, *, anew: bool = False) -> Filters:
        """As the venue had them when this process first asked, or asked anew for an entry."""
        if anew or symbol not in self.memory.filters:
            self.memory.filters[symbol] = await self.port.filters(symbol)
        return self.memory.filters[symbol]

    async def read_state(self, symbol: Symbol) -> ExchangeState:
        return ExchangeState(await self.port.quote(symbol), await self.read_filters(symbol, anew=True))

    async def fit_sale(self, symbol: Symbol, quantity: Decimal) -> tuple[Decimal, Decimal | None]:
        """Whole lots of a quantity, and the lot where a rest is left: at a spot exchange alone, of a fee in coins."""
        filters = await self.find_filters(symbol) if self.exchange.spot else None
        if filters is None or not quantity % filters.lot:
            return quantity, None
        return round_to_step(quantity, filters.lot), filters.lot

    async def find_filters(self, symbol: Symbol) -> Filters | None:
        """None where they cannot be read, which is noted as a failure: exits and stops are sent without them."""
        try:
            return await self.read_filters(symbol)
        except Broken:
            raise
        except ZunoError as error:
            self.failures.append(str(error))
            return None

    def nets(self, symbol: Symbol) -> bool:
        """Whether another sleeve holds the other side of a perpetual. The venue has their difference: an order that
        only reduces would be refused, or would end what is the other's."""
        held = [] if self.exchange.spot else self.book.positions_at(self.exchange, symbol)
        return len({trade.side for trade in held}) > 1

    def shares(self, symbol: Symbol) -> bool:
        """Return whether another sleeve holds the same perpetual, or has ordered it. An order to reduce that is left
        over there would take what is the other's."""
        if self.exchange.spot:
            return False
        held = (trade.sleeve for trade in self.book.positions_at(self.exchange, symbol))
        orders = (order for order in self.book.open_orders.values() if order.purpose == "entry")
        there = (order for order in orders if order.request.exchange is self.exchange)
        ordered = (self.book.sleeve_of(order) for order in there if order.request.symbol is symbol)
        return bool({*held, *ordered} - {self.sleeve})

    def list_sharing(self, symbol: Symbol) -> list[VenueContext]:
        """Return looks at the same perpetual for the other sleeves that hold something there."""
        held = [] if self.exchange.spot else self.book.positions_at(self.exchange, symbol)
        return [self.account.at(self.exchange, trade.sleeve) for trade in held if trade.sleeve != self.sleeve]

    async def holds_stops(self, symbol: Symbol) -> bool:
        """By the venue's filters of the symbol, else by its row."""
        filters = await self.find_filters(symbol)
        return self.exchange.holds_stops if filters is None else filters.holds_stops

    # -- what the book has there

    def position(self, symbol: Symbol) -> OpenTrade | None:
        return self.book.position(self.exchange, symbol, self.sleeve)

    def is_closing(self, symbol: Symbol) -> bool:
        return self.account.is_closing(symbol, self.sleeve)

    def open_orders(self, symbol: Symbol | None = None) -> list[TrackedOrder]:
        return self._select(self.book.open_orders.values(), symbol)

    def entry_orders(self, symbol: Symbol) -> list[TrackedOrder]:
        """Of the desk, that wait or whose end is not known."""
        return [order for order in self.open_orders(symbol) if is_entry(order)]

    def unsure_orders(self, symbol: Symbol | None = None) -> list[TrackedOrder]:
        return self._select(filter(None, map(self.book.orders.get, self.memory.unsure)), symbol)

    def orders_of(self, tracked: TrackedIntent, purpose: Purpose) -> list[TrackedOrder]:
        orders = self._select((self.book.orders[id] for id in tracked.orders), None)
        return [order for order in orders if order.purpose == purpose]

    def _select(self, orders: Iterable[TrackedOrder], symbol: Symbol | None) -> list[TrackedOrder]:
        return [
            order
            for order in orders
            if order.request.exchange == self.exchange
            and symbol in (None, order.request.symbol)
            and self.book.sleeve_of(order) == self.sleeve
        ]

    def symbols(self) -> list[Symbol]:
        """Those that something is held, ordered or wanted of."""
        places = ((symbol, sleeve) for exchange, symbol, sleeve in self.book.positions if exchange == self.exchange)
        held = (symbol for symbol, sleeve in places if sleeve == self.sleeve)
        ordered = (order.request.symbol for order in self.open_orders())
        intents = (tracked.intent for tracked in self.book.open_intents.values())
        wanted = (intent.symbol for intent in intents if intent.sleeve == self.sleeve)
        unsure = (order.request.symbol for order in self.unsure_orders())
        return list(dict.fromkeys([*held, *ordered, *wanted, *unsure]))


def is_entry(order: TrackedOrder) -> bool:
    """Of the desk, not of a stranger."""
    return order.purpose == "entry" and bool(order.intent)
