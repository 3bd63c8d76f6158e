"""One account's book, kept in step with its log: whatever is done is written before it counts."""

from collections.abc import Sequence
from decimal import Decimal

from zuno.kernel.errors import Refused, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.model import trade_events
from zuno.trading.model.orders import ZERO, ClientId
from zuno.trading.rules.performance import AccountLog
from zuno.trading.rules.sleeve_funds import Opening
from zuno.trading.rules.trading_book import TradingBook


class ConcurrentWrite(Exception):
    """Somebody else wrote to the account since it was read: look again and decide anew."""


class AccountWriter:
    """The book of one account and the only way to write to it."""

    def __init__(
        self, log: AccountLog, account: str, venues: Sequence[Venue] = DEFAULT_VENUES, opening: Opening | None = None
    ) -> None:
        self.name, self._opening = account, opening
        self._acts_at = tuple(venues)
        self.book = TradingBook()
        self.failure: ZunoError | None = None
        """Why the log could not be written the last time it could not."""
        self.has_failed = False
        """Whether it ever could not be: exits may have been sent then that are in no log."""
        self.unwritten: tuple[trade_events.TradeEvent, ...] = ()
        """What the book has though it may be in no log: neither written nor read since."""
        self.unread = False
        """Whether the book holds what may be in no log, for the log could not be read since."""
        self._log = log

    async def refresh(self) -> TradingBook:
        if self.unread:
            await self._reload()
        elif not self.book.count:
            self.book = await self._log.open_book(self.name)
        else:
            self.book.apply_all(await self._log.events(self.name, self.book.count))
        return self.book

    async def open(self, at: Millis) -> None:
        """Write what a new account begins with, where that is not the usual cash of its venues."""
        if self._opening is not None and not self.book.count:
            await self.write(self._opening.list_events(at))

    def usual_cash(self, venue: Venue) -> Decimal:
        """What a paper account will begin with at a venue that it has not opened."""
        planned = None if self._opening is None or self.book.count else self._opening.cash.get(venue)
        return venue.paper_cash if planned is None else planned

    def _find_opening(self) -> dict[Venue, Decimal] | None:
        """What is put into the book with the next event: paper money at venues it has none of yet; of an account with
        money what it has is found by reconciliation."""
        if trade_events.account_mode(self.name) == "paper":
            return self.book.find_opening(self._acts_at)
        return None if self.book.count else dict.fromkeys(self._acts_at or DEFAULT_VENUES, ZERO)

    async def write(self, events: Sequence[trade_events.TradeEvent]) -> None:
        """Write all of them or none. A trade that a fill ends closes in the same entry, and what a fill took of another
        sleeve locks in it. A fill that cannot be booked is left out and locks: it keeps back no other.
        `ConcurrentWrite`: others wrote."""
        if not events:
            return
        if self.unread:  # what would be written is decided on a book that may be another by now
            await self._reload()
            raise ConcurrentWrite
        before = self.book.count
        if isinstance(events[0], trade_events.AccountOpened):
            pass
        elif self._opening is not None and not before:
            events = [*self._opening.list_events(events[0].at), *events]
        elif (opening := self._find_opening()) is not None:
            events = [trade_events.AccountOpened(at=events[0].at, cash=opening), *events]
        written: list[trade_events.TradeEvent] = []
        try:
            for event in events:
                written.append(event)
                try:
                    self.book.apply(event)
                except Refused as error:
                    if not isinstance(event, trade_events.FillBooked):
                        raise
                    event = written[-1] = event.model_copy(update={"left_out": str(error)[:600]})
                    self.book.apply(event)  # refused again where it is booked already
                if isinstance(event, trade_events.FillBooked | trade_events.SleevesCrossed):
                    written += self._close_finished(event)
                if isinstance(event, trade_events.FillBooked):
                    written += self._lock_overfill(event)
            await self._log.append(self.name, written, before)
        except Refused as error:
            await self._reload(written)
            if self.book.count != before:
                raise ConcurrentWrite from error
            raise
        except ZunoError as error:
            self.failure, self.has_failed = error, True
            await self._reload(written)
            raise
        except (
            BaseException
        ):  # none of ours, or the task was cancelled: whether they are in the log is read before more
            self.unread, self.unwritten = True, (*self.unwritten, *written)
            raise

    def _lock_overfill(self, event: trade_events.FillBooked) -> list[trade_events.LockSet]:
        fill = event.fill
        left_out = f"the fill {fill.id} of {fill.exchange} is in no position: {event.left_out}"
        if not (why := left_out if event.left_out else self.book.overfill):
            return []
        protection = trade_events.Protection.RECONCILIATION
        lock = trade_events.LockSet(
            at=event.at, protection=protection, symbol=fill.symbol, until=None, reason=why[:600]
        )
        self.book.apply(lock)
        return [lock]

    def _close_finished(
        self, booked: trade_events.FillBooked | trade_events.SleevesCrossed
    ) -> list[trade_events.TradeEvent]:
        closed: list[trade_events.TradeEvent] = []
        for trade in list(self.book.finished.values()):
            reason = trade_events.ExitReason.DECISION
            if isinstance(booked, trade_events.FillBooked):
                reason = exit_reason(self.book, booked.fill.client_id, trade.sleeve)
            event = trade_events.TradeClosed(at=booked.at, summary=self.book.summarise(trade, reason))
            self.book.apply(event)
            closed.append(event)
        return closed

    async def _reload(self, unwritten: Sequence[trade_events.TradeEvent] = ()) -> None:
        """What was not written did not happen. Where the log cannot be read either, the book stays as far as it is
        known, for a close must know what is held, and is read anew at the next look."""
        self.unread = True
        self.unwritten += tuple(unwritten)
        try:
            self.book = await self._log.open_book(self.name)
        except ZunoError as error:
            self.failure, self.has_failed = error, True
            raise
        self.unread, self.unwritten = False, ()


def exit_reason(book: TradingBook, client_id: ClientId, sleeve: str) -> trade_events.ExitReason:
    """Return why an order ended a sleeve's trade: by the order's purpose, where it is that sleeve's."""
    order = book.orders.get(client_id)
    if order is None or not order.intent or book.sleeve_of(order) != sleeve:
        return trade_events.ExitReason.MANUAL
    if order.purpose in ("stop", "target"):
        return trade_events.ExitReason(order.purpose)
    intent = book.intents[order.intent].intent
    if intent.kind is trade_events.IntentKind.CLOSE or intent.take_at is not None:
        return intent.reason or trade_events.ExitReason.DECISION
    return trade_events.ExitReason.UNDONE
