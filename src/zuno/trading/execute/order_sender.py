"""Orders on their way: planned in the log, looked up, placed if they are still wanted, and cancelled."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.gate_state import GateState
from zuno.trading.execute.venue_sync import VenueSync
from zuno.trading.model.market import MINUTE_MS
from zuno.trading.model.orders import Filters, Order, OrderRequest, OrderStatus, VenueQuote, opening_side
from zuno.trading.model.trade_events import IntentLeg, OrderLost, OrderPlanned, Protection, TradeIntent
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.book_state import Purpose, TrackedIntent, TrackedOrder
from zuno.trading.rules.execution_styles import EntryTask, has_drifted
from zuno.trading.rules.protections import MANUAL_UNLOCK, STORED

SENDING_MS: Final = MINUTE_MS
"""How long an entry that was planned may still be on its way from another process."""
RESEND_MS: Final = 6_000
"""How long after a send without a reply the order is not sent again: for a few seconds it may still arrive. An entry
that another process planned may have been sent until this one began."""


class OrderSender:
    """Sends an order once, whatever became of its reply."""

    def __init__(self, state: GateState, sync: VenueSync) -> None:
        self._state = state
        self._sync = sync

    async def plan_and_send(self, venue: OrderVenue, intent: str, purpose: Purpose, request: OrderRequest) -> None:
        await self._state.write(
            [OrderPlanned(at=self._state.event_time(), intent=intent, purpose=purpose, order=request)]
        )
        await self.send(venue, self._state.book.orders[request.client_id])

    async def send(self, venue: OrderVenue, tracked: TrackedOrder, why: str | None = None) -> None:
        """Place an order that the venue does not have. `why`: what speaks against it. `place` looks it up once more."""
        request = tracked.request
        why = why or self._why_unwanted(tracked)
        if why is not None:
            await self._give_up(tracked, why)
            return
        if tracked.purpose == "entry" and self._state.writer.unread:
            raise Unavailable(f"the entry {request.client_id} may be in no log: it is not sent")
        try:
            order = await venue.place(request, tracked.expires)
        except Unavailable:
            self._state.unsure[request.client_id] = self._state.now()
            raise
        self._state.unsure[request.client_id] = self._state.now()
        await self._sync.book_orders(venue, request.symbol, [order])
        self._state.unsure.pop(request.client_id, None)

    async def send_again(self, venue: OrderVenue, tracked: TrackedOrder) -> None:
        request, waits = tracked.request, tracked.purpose == "entry" and not self._state.placing
        if waits and self._may_arrive(venue, tracked):
            order = await venue.find(request.symbol, request.client_id, request.type)
            if order is None:
                return
        else:
            order = await self._find_planned(venue, tracked)
        if order is not None:
            await self._sync.book_orders(venue, tracked.request.symbol, [order])
            return
        why = self._why_unwanted(tracked)
        if tracked.purpose == "entry":
            sending = not self._state.context.entries and self._state.now() - tracked.planned < SENDING_MS
            if not self._state.placing and (why is None or sending):
                return
            why = why or await self._why_drifted(venue, tracked)
        await self.send(venue, tracked, why)

    async def _find_planned(self, venue: OrderVenue, tracked: TrackedOrder) -> Order | None:
        """None: the venue does not have it, and will not. `Unavailable` while an order without a reply may arrive."""
        request = tracked.request
        order = await venue.find(request.symbol, request.client_id, request.type)
        if order is None and self._may_arrive(venue, tracked):
            raise Unavailable(f"whether {venue.exchange} has the order {request.client_id} is not sure yet")
        self._state.unsure.pop(request.client_id, None)
        return order

    def _may_arrive(self, venue: OrderVenue, tracked: TrackedOrder) -> bool:
        sent = self._state.unsure.get(tracked.request.client_id)
        if sent is None and tracked.purpose == "entry" and self._state.context.entries and not venue.simulated:
            sent = self._state.started
        return sent is not None and 0 <= self._state.now() - sent < RESEND_MS

    async def find_given_up(self, venue: OrderVenue, symbol: Symbol) -> list[tuple[TrackedOrder, Order]]:
        """Orders that the book has as over and that came to the venue all the same: another process gave them up while
        this one sent them, or the other way round. What stands of them is cancelled."""
        found: list[tuple[TrackedOrder, Order]] = []
        for tracked in self._state.list_unsure(venue.exchange, symbol):
            request = tracked.request
            if not tracked.status.final:
                continue
            order = await venue.find(symbol, request.client_id, request.type)
            if order is None and self._may_arrive(venue, tracked):
                continue
            if order is not None and not order.status.final:
                order = await venue.cancel(symbol, request.client_id, request.type)
            if order is None or order.filled <= min(tracked.filled, tracked.booked):
                self._state.unsure.pop(request.client_id, None)
            else:
                found.append((tracked, order))
        return found

    async def _give_up(self, tracked: TrackedOrder, reason: str) -> None:
        """The process that planned an entry may be sending it: for a few seconds it is looked for."""
        id = tracked.request.client_id
        await self._state.write([OrderLost(at=self._state.event_time(), client_id=id, reason=reason)])
        if tracked.purpose == "entry":
            self._state.unsure[id] = self._state.now()

    def _why_unwanted(self, tracked: TrackedOrder) -> str | None:
        """Why an order that the venue does not have is not to be placed any more."""
        request, book = tracked.request, self._state.book
        place = (request.exchange, request.symbol)
        if tracked.purpose != "entry":
            return None if place in book.positions or place in self._state.unbooked else "nothing is held any more"
        intent = book.open_intents.get(tracked.intent)
        if intent is None or self._state.is_closing(request.symbol):
            return "its intent is over"
        if self._state.now() > intent.intent.valid_until:
            return "the ruling is no longer valid"
        return self.why_stopped(intent.intent)

    async def _why_drifted(self, venue: OrderVenue, tracked: TrackedOrder) -> str | None:
        """Whether the market went away from an entry while it could not be sent."""
        intent = self._state.book.intents[tracked.intent]
        leg = next(leg for leg in intent.intent.legs if leg.exchange is venue.exchange)
        quote = await venue.quote(intent.intent.symbol)
        filters = await self._state.filters(venue.exchange, intent.intent.symbol)
        task = await self.build_entry_task(intent, leg, quote, filters, self._state.now())
        return f"the mark moved from {task.mark} to {quote.mark}" if has_drifted(task) else None

    async def build_entry_task(
        self, tracked: TrackedIntent, leg: IntentLeg, quote: VenueQuote, filters: Filters, now: Millis
    ) -> EntryTask:
        """Mark and ATR in the exchange's currency: by what one entry is in the other, or by what both cost now."""
        intent = tracked.intent
        dollars = next((other for other in intent.legs if other.exchange is Venue("BINANCE")), None)
        rate = Decimal(1)
        if leg.exchange is not Venue("BINANCE") and dollars is not None:
            rate = leg.entry / dollars.entry
        elif leg.exchange is not Venue("BINANCE"):
            rate = quote.mark / (await self._state.dollar_mark(intent.symbol) or intent.mark)
        return EntryTask(
            style=intent.style,
            side=opening_side(intent.side),
            quantity=leg.quantity,
            stop=leg.stop,
            mark=intent.mark * rate,
            atr=intent.atr * rate,
            valid_until=intent.valid_until,
            quote=quote,
            filters=filters,
            now=now,
        )

    def why_stopped(self, intent: TradeIntent) -> str | None:
        """What a person or the desk stopped: nothing more is ordered of entries that are being worked. With money a
        day's loss stops them too. The last thing that is asked before an entry is sent."""
        if (killed := self._state.context.killed()) is not None:
            return f"{Protection.KILL_SWITCH.value}: {killed}"[:600]
        granted = self._state.book.mandate
        if self._state.context.live and (
            granted is None or granted.hash != intent.mandate or self._state.now() >= granted.mandate.expires
        ):
            return "its mandate is revoked, replaced or has expired"
        for lock in self._state.book.active_locks(self._state.now(), intent.symbol):
            if lock.protection in MANUAL_UNLOCK or (self._state.context.live and lock.protection in STORED):
                return f"{lock.protection.value}: {lock.reason}"[:600]
        return None

    async def cancel(self, venue: OrderVenue, tracked: TrackedOrder) -> None:
        request = tracked.request
        if tracked.status is OrderStatus.PLANNED and await self._find_planned(venue, tracked) is None:
            if self._state.context.entries or self._state.now() - tracked.planned >= SENDING_MS:
                await self._give_up(tracked, "cancelled")
            return
        ended = await venue.cancel(request.symbol, request.client_id, request.type)
        await self._sync.book_orders(venue, request.symbol, [ended])
