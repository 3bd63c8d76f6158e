"""What the parts of the order gate share: the account, what it acts with, and its locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from zuno.kernel.units import Millis
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.execute.order_worker import OrderWorker
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.market import Symbol
from zuno.trading.model.trade_events import LockLifted, LockSet, Protection, TradeEvent
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.performance import AccountLog
from zuno.trading.rules.protections import ProtectionLimits
from zuno.trading.rules.trading_book import TradingBook


@dataclass(frozen=True, slots=True)
class GateContext:
    log: AccountLog
    account: str
    venues: Mapping[Exchange, OrderVenue]
    now: Callable[[], Millis]
    limits: ProtectionLimits = field(default_factory=ProtectionLimits)
    live: bool = False
    """Money can be lost: a mandate is needed."""
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
    manual_fees_pct: Mapping[Exchange, Decimal] = field(
        default_factory=lambda: dict.fromkeys(Exchange, Decimal("0.05"))
    )
    """What closing a position that a person wrote down costs."""


class GateState:
    def __init__(self, context: GateContext) -> None:
        self.context = context
        self.writer = AccountWriter(context.log, context.account)
        self.worker = OrderWorker(
            self.writer, context.venues, context.now, live=context.live, entries=context.entries, killed=context.killed
        )

    @property
    def account(self) -> str:
        return self.context.account

    @property
    def venues(self) -> Mapping[Exchange, OrderVenue]:
        return self.context.venues

    @property
    def book(self) -> TradingBook:
        """As it was when it was looked at last."""
        return self.writer.book

    def now(self) -> Millis:
        """By the clock of this account's market."""
        return self.context.now()

    def event_time(self) -> Millis:
        return Millis(max(self.book.newest, self.now()))

    async def write(self, events: Sequence[TradeEvent]) -> None:
        await self.writer.write(events)

    async def set_lock(self, protection: Protection, reason: str) -> LockSet:
        known = self.book.locks.get((protection, None))
        if known is not None:
            return known
        lock = LockSet(at=self.event_time(), protection=protection, symbol=None, until=None, reason=reason)
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
