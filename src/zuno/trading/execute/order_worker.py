"""Carries intents out at the venues: orders are planned in the log, looked up, placed, followed and booked.

`advance` is the whole of it, whatever happened before: a start, a tick of the watch and a new ruling are the same path.
What it does follows from the book and the venues' word alone, so that a process may end anywhere and another go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.execute.close_worker import CloseWorker, PositionGuard
from zuno.trading.execute.gate_state import GateState
from zuno.trading.execute.order_sender import OrderSender
from zuno.trading.execute.venue_sync import VenueSync
from zuno.trading.model.cycle import Style
from zuno.trading.model.orders import ZERO, Order, OrderRequest, OrderStatus, client_order_id, opening_side
from zuno.trading.model.trade_events import IntentEnded, IntentKind, IntentLeg, OrderPlanned, TradeEvent
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.book_state import Purpose, TrackedIntent, TrackedOrder
from zuno.trading.rules.execution_styles import EntryOrder, EntryPlan, next_entry_step

MAX_PASSES: Final = 24
"""Rounds at one exchange in one go; each goes on from what the one before booked."""


class EntryWorker:
    def __init__(self, state: GateState, sender: OrderSender, guard: PositionGuard) -> None:
        self._state = state
        self._sender = sender
        self._guard = guard

    async def work(self, venue: OrderVenue, tracked: TrackedIntent) -> None:
        intent, exchange = tracked.intent, venue.exchange
        leg = next((leg for leg in intent.legs if leg.exchange is exchange), None)
        if leg is None or (intent.id, exchange) in self._state.ended_legs:
            return
        orders = [order for order in self._state.orders_of(tracked, exchange) if order.purpose == "entry"]
        now = self._state.now()
        waiting = [order for order in orders if not order.status.final]
        if self._state.placing and any(order.status is OrderStatus.PLANNED for order in waiting):
            return
        # What is left of an entry whose trade has ended would open one that nobody ruled.
        ended = "the trade has ended" if self._state.is_closed_since(intent.symbol, tracked.stored) else None
        if (why := ended or self._sender.why_stopped(intent)) is not None:
            for order in waiting:
                await self._sender.cancel(venue, order)
            self._state.ended_legs[intent.id, exchange] = why
            return
        if not self._state.placing:
            return
        if waiting and all(order.expires is None or order.expires > now for order in waiting):
            return
        if orders and not waiting and intent.style is Style.SMART_DCA:
            self._state.ended_legs[intent.id, exchange] = ""
            return
        quote = await venue.quote(intent.symbol)
        filters = await (self._state.filters if orders else self._state.fresh_filters)(exchange, intent.symbol)
        task = await self._sender.build_entry_task(tracked, leg, quote, filters, now)
        step = next_entry_step(
            task, [EntryOrder(o.status, o.filled, o.expires, o.request.type, o.request.time_in_force) for o in orders]
        )
        for number in step.cancel:
            await self._sender.cancel(venue, orders[number])
        if step.done:
            self._state.ended_legs[intent.id, exchange] = step.why
        if step.place:
            await self._place_entries(venue, tracked, leg, step.place, len(orders))

    async def _place_entries(
        self, venue: OrderVenue, tracked: TrackedIntent, leg: IntentLeg, plans: Iterable[EntryPlan], number: int
    ) -> None:
        intent = tracked.intent
        events: list[TradeEvent] = []
        for plan in plans:
            request = OrderRequest(
                client_id=client_order_id(intent.id, leg.exchange, "entry", number + len(events)),
                exchange=leg.exchange,
                symbol=intent.symbol,
                side=opening_side(intent.side),
                type=plan.type,
                quantity=plan.quantity,
                price=plan.price,
                time_in_force=plan.time_in_force,
                leverage=leg.leverage,
            )
            events.append(
                OrderPlanned(
                    at=self._state.event_time(), intent=intent.id, purpose="entry", order=request, expires=plan.expires
                )
            )
        await self._state.write(events)
        for event in events:
            assert isinstance(event, OrderPlanned)
            # What is held is protected before more is ordered.
            await self._guard.protect(venue, intent.symbol)
            tracked_order = self._state.book.open_orders.get(event.order.client_id)
            if tracked_order is not None and tracked_order.status is OrderStatus.PLANNED:
                await self._sender.send(venue, tracked_order)

    def end(self, tracked: TrackedIntent, why: str = "") -> IntentEnded:
        intent = tracked.intent
        whys = [why, *(self._state.ended_legs.pop((intent.id, leg.exchange), "") for leg in intent.legs)]
        entries = [
            self._state.book.orders[id] for id in tracked.orders if self._state.book.orders[id].purpose == "entry"
        ]
        reasons = [*filter(None, whys), *(order.reason for order in entries if order.reason)]
        filled = sum((order.filled for order in entries), ZERO)
        state: Literal["done", "partial", "refused", "expired"]
        if filled >= sum((leg.quantity for leg in intent.legs), ZERO):
            state, reasons = "done", []
        elif filled:
            state = "partial"
        else:
            state = "refused" if any(order.status is OrderStatus.REJECTED for order in entries) else "expired"
        return IntentEnded(
            at=self._state.event_time(), intent=intent.id, state=state, reason="; ".join(dict.fromkeys(reasons))[:600]
        )


class OrderWorker:
    """Works the open intents and guards the open positions of one account."""

    def __init__(self, state: GateState) -> None:
        self._state = state
        self._sync = VenueSync(self._state)
        self._sender = OrderSender(self._state, self._sync)
        self._closer = CloseWorker(self._state, self._sender, self._sync)
        self._guard = PositionGuard(self._state, self._sender, self._closer)
        self._entering = EntryWorker(self._state, self._sender, self._guard)
        self.store_close = self._closer.store
        self.troubles: dict[Venue, str] = {}
        """Exchanges that did not answer the last time, and what they said."""

    async def advance(self, *, settle: bool = False, entries: bool = True) -> None:
        """Take the venues' news into the log and go on with everything that is open. What one exchange cannot or will
        not do keeps no other from its stops. `settle`: ask for funding whenever it was asked for last. Without
        `entries` none is placed this time."""
        self._state.placing = self._state.context.entries and entries
        if self._state.started is None:
            self._state.started = self._state.now()
        for exchange, venue in self._state.venues.items():
            self._state.said, self._state.begun = [], self._state.now()
            await self._advance_at(venue, settle)
            unpaid = [why for place, why in self._sync.funding_troubles.items() if place[0] is exchange]
            self.troubles.pop(exchange, None)
            if said := dict.fromkeys([*self._state.said, *unpaid]):
                self.troubles[exchange] = "; ".join(said)
        self._note_missing()
        await self._end_intents()

    async def cancel_order(self, order: TrackedOrder) -> None:
        await self._sender.cancel(self._state.find_venue(order.request.exchange), order)

    async def book_order(self, venue: OrderVenue, order: Order) -> None:
        await self._sync.book_orders(venue, order.request.symbol, [order])

    async def end_entries(self, reason: str, intent: str | None = None) -> None:
        """Write down that nothing more is entered: of one intent, or of all. `advance` cancels what waits of them."""
        ended = [
            self._entering.end(tracked, reason)
            for tracked in self._state.open_entries()
            if intent in (None, tracked.intent.id)
        ]
        await self._state.write(ended)

    def _note_missing(self) -> None:
        """Exchanges where something is held or ordered, and that nothing can be done at here."""
        book = self._state.book
        held = {exchange for exchange, _ in book.positions}
        used = held | {order.request.exchange for order in book.open_orders.values()}
        for exchange in DEFAULT_VENUES:
            if exchange in self._state.venues:
                continue
            self.troubles.pop(exchange, None)
            if exchange in used:
                what = "positions are open" if exchange in held else "orders are open"
                self.troubles[exchange] = f"{what} there, and this desk has no access to it: nobody looks after them"

    async def _advance_at(self, venue: OrderVenue, settle: bool) -> None:
        """Symbol by symbol, and in each what is held comes first. What fails for one keeps no other from being closed
        or protected."""
        told: list[Symbol] = []
        for _ in range(MAX_PASSES):
            symbols = self._state.symbols_at(venue.exchange)
            before = self._state.book.count
            told = [symbol for symbol in symbols if await self._secure_symbol(venue, symbol)]
            for symbol in told:
                if not self._state.is_unresponsive():
                    await self._work_entries(venue, symbol)
            if self._state.book.count == before:
                break
        for symbol in self._state.symbols_at(venue.exchange):
            await self._state.attempt(self._closer.undo_unbooked(venue, symbol))
        if not self._state.is_unresponsive():
            await self._sync.settle_funding(venue, told, anew=settle)

    async def _secure_symbol(self, venue: OrderVenue, symbol: Symbol) -> bool:
        """Take the news of a symbol, close what is to be closed, and protect what is held. Whether the news was taken:
        without it nothing new is opened; closing and protecting go on by what the book knows."""
        place = (venue.exchange, symbol)
        watched = self._state.book.positions.get(place)
        if watched is not None and not await self._state.holds_stops(venue, symbol):
            # Nobody but the desk watches these levels: they do not wait for the news.
            await self._guard.protect(venue, symbol)
            await self._closer.work(venue, symbol)
        else:
            watched = None
        told = not self._state.is_unresponsive() and await self._state.attempt(self._sync.take(venue, symbol))
        await self._state.attempt(self._closer.undo_given_up(venue, symbol))
        await self._resolve_planned(venue, symbol, "exit")
        await self._closer.work(venue, symbol)
        if not self._state.is_closing(symbol):
            await self._resolve_planned(venue, symbol, "stop", "target")
            if watched is None or self._state.book.positions.get(place) is not watched:
                await self._guard.protect(venue, symbol)
        if not self._state.is_unresponsive():
            await self._guard.cancel_leftovers(venue, symbol)
        return told

    async def _work_entries(self, venue: OrderVenue, symbol: Symbol) -> None:
        """What an entry has filled is protected before anything else is asked."""
        await self._resolve_planned(venue, symbol, "entry")
        for tracked in self._state.open_entries(symbol):
            if not self._state.is_closing(symbol):
                await self._state.attempt(self._entering.work(venue, tracked))
                await self._guard.protect(venue, symbol)

    async def _resolve_planned(self, venue: OrderVenue, symbol: Symbol, *purposes: Purpose) -> None:
        """Orders that a process planned and nobody knows to be sent: the venue says; what it has not is placed if it
        is still wanted."""
        for tracked in self._state.orders_at(venue.exchange, symbol):
            if tracked.status is OrderStatus.PLANNED and tracked.purpose in purposes:
                await self._state.attempt(self._sender.send_again(venue, tracked))
                if tracked.purpose == "entry":
                    await self._guard.protect(venue, symbol)

    async def _end_intents(self) -> None:
        """Entries whose every leg is worked to its end, and closes of what is held no more."""
        events: list[TradeEvent] = []
        # Closes first: whether one is over hangs on the legs of the entries it ended.
        for tracked in sorted(self._state.book.open_intents.values(), key=lambda tracked: tracked.intent.kind):
            intent = tracked.intent
            if intent.kind is IntentKind.CLOSE:
                if self._closer.is_closed(intent.symbol):
                    events.append(IntentEnded(at=self._state.event_time(), intent=intent.id, state="done"))
                elif (why := self._closer.why_not_closed(tracked)) is not None:
                    self._state.refused[intent.symbol] = self._state.event_time()
                    events.append(
                        IntentEnded(at=self._state.event_time(), intent=intent.id, state="refused", reason=why)
                    )
            elif self._closer.is_worked(tracked):
                events.append(self._entering.end(tracked))
        await self._state.write(events)
