"""Entries: worked in their style, part by part, each protected before the next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from zuno.trading.execute.gate_state import GateState
from zuno.trading.execute.order_sender import OrderSender
from zuno.trading.execute.position_guard import PositionGuard
from zuno.trading.model.cycle import Style
from zuno.trading.model.orders import ZERO, OrderRequest, OrderStatus, client_order_id, opening_side
from zuno.trading.model.trade_events import IntentEnded, IntentLeg, OrderPlanned, TradeEvent
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.book_state import TrackedIntent, TrackedOrder
from zuno.trading.rules.execution_styles import EntryOrder, EntryPlan, next_entry_step


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
        if self._state.is_closed_since(intent.symbol, tracked.stored):
            # What is left of the entry would open a trade that nobody ruled.
            for order in waiting:
                await self._sender.cancel(venue, order)
            self._state.ended_legs[intent.id, exchange] = "the trade has ended"
            return
        if (why := self._sender.why_stopped(intent)) is not None:
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
        step = next_entry_step(task, [_entry_order(order) for order in orders])
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


def _entry_order(order: TrackedOrder) -> EntryOrder:
    return EntryOrder(order.status, order.filled, order.expires, order.request.type, order.request.time_in_force)
