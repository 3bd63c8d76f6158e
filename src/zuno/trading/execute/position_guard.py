"""Stops and targets of what is held: at the venue, or watched where it holds none."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, Literal

from zuno.kernel.errors import Unavailable
from zuno.trading.execute.close_worker import UNPROTECTED_MS, CloseWorker
from zuno.trading.execute.gate_state import GateState
from zuno.trading.execute.order_sender import OrderSender
from zuno.trading.model.market import MINUTE_MS, Symbol
from zuno.trading.model.orders import OrderRequest, OrderStatus, OrderType, client_order_id, opening_side
from zuno.trading.model.trade_events import ExitReason, Protection
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.book_state import OpenTrade

CLOSE_AGAIN_MS: Final = MINUTE_MS
"""How long a rule waits after the venue refused its close before it closes again."""
_TYPES: Final = {"stop": OrderType.STOP_MARKET, "target": OrderType.TAKE_PROFIT_MARKET}


class PositionGuard:
    """Protects open positions, and closes them when a rule says so."""

    def __init__(self, state: GateState, sender: OrderSender, closer: CloseWorker) -> None:
        self._state = state
        self._sender = sender
        self._closer = closer

    async def protect(self, venue: OrderVenue, symbol: Symbol) -> None:
        """Stop and target at the venue for what is held; where it holds none, the desk watches them."""
        place = (venue.exchange, symbol)
        position = self._state.book.positions.get(place)
        if position is None or self._state.is_closing(symbol):
            return
        await self._state.attempt(self._close_if_due(position))
        if self._state.is_closing(symbol):
            return
        if not await self._state.holds_stops(venue, symbol):
            await self._state.attempt(self._watch_levels(venue, position))
        elif position.intent in self._state.book.intents:
            await self._state.attempt(self._place_level(venue, position, "stop", position.stop))
            if self._state.book.positions.get(place) is position and not self._state.is_closing(symbol):
                await self._state.attempt(self._place_level(venue, position, "target", position.target))

    async def _close_if_due(self, position: OpenTrade) -> None:
        if (Protection.KILL_SWITCH, None) in self._state.book.locks:
            await self._close_by_rule(position, ExitReason.KILL_SWITCH)
        elif position.hold_until is not None and self._state.now() >= position.hold_until:
            await self._close_by_rule(position, ExitReason.HOLD_OVER)

    async def _place_level(
        self, venue: OrderVenue, position: OpenTrade, purpose: Literal["stop", "target"], trigger: Decimal | None
    ) -> None:
        """The new order stands before the old one goes: there is no moment without a stop."""
        standing = [
            order for order in self._state.orders_at(venue.exchange, position.symbol) if order.purpose == purpose
        ]
        wanted = next((o for o in standing if o.request.trigger == trigger and o.left == position.quantity), None)
        if wanted is None and trigger is not None:
            number = sum(
                order.purpose == purpose
                for order in self._state.orders_of(self._state.book.intents[position.intent], venue.exchange)
            )
            request = OrderRequest(
                client_id=client_order_id(position.intent, venue.exchange, purpose, number),
                exchange=venue.exchange,
                symbol=position.symbol,
                side=opening_side(position.side).opposite,
                type=_TYPES[purpose],
                quantity=position.quantity,
                trigger=trigger,
                reduce_only=True,
                leverage=max(1, int(position.leverage)),
            )
            await self._state.attempt(self._sender.plan_and_send(venue, position.intent, purpose, request))
            wanted = self._state.book.orders.get(request.client_id)
            if wanted is None:
                return  # it could not be written down
            if wanted.status is OrderStatus.REJECTED:
                # Most often because the market has passed the level while the order was on its way.
                try:
                    passed = _passed_level(position, (await venue.quote(position.symbol)).mark)
                except Unavailable:
                    passed = None
                await self._close_by_rule(position, passed or ExitReason.UNDONE)
                return
        if wanted is not None and wanted.status is OrderStatus.PLANNED:
            waiting = (order.planned for order in standing if order.status is OrderStatus.PLANNED)
            if self._state.now() - min(waiting, default=wanted.planned) > UNPROTECTED_MS:
                await self._close_by_rule(position, ExitReason.UNDONE)
            return
        for order in standing:
            if order is not wanted and not order.status.final:
                await self._sender.cancel(venue, order)

    async def _watch_levels(self, venue: OrderVenue, position: OpenTrade) -> None:
        passed = _passed_level(position, (await venue.quote(position.symbol)).mark)
        if passed is not None:
            await self._close_by_rule(position, passed)

    async def _close_by_rule(self, position: OpenTrade, reason: ExitReason) -> None:
        """Again and again until nothing is held, and no faster than a venue that refuses can bear. What is too small
        to be sold waits until it is worth enough."""
        refused = self._state.refused.get(position.symbol)
        if refused is not None and self._state.now() - refused < CLOSE_AGAIN_MS:
            return
        if await self._closer.why_unsellable(position) is None:
            await self._closer.store(position.symbol, reason, position.id)

    async def cancel_leftovers(self, venue: OrderVenue, symbol: Symbol) -> None:
        """Orders that would close what is not held, for when the stop is filled the target goes and the other way, and
        when somebody turned the position both; and entries whose intent is over."""
        place = (venue.exchange, symbol)
        for order in self._state.orders_at(venue.exchange, symbol):
            position = self._state.book.positions.get(place)
            if order.purpose == "entry":
                over = bool(order.intent) and order.intent not in self._state.book.open_intents
            elif position is None:
                over = order.request.reduce_only and place not in self._state.unbooked
            else:
                over = bool(order.intent) and order.request.side is opening_side(position.side)
            if over:
                await self._state.attempt(self._sender.cancel(venue, order))


def _passed_level(position: OpenTrade, mark: Decimal) -> ExitReason | None:
    """The level of a position that the mark is at or beyond; of both the stop."""
    sign = position.side.sign
    if position.stop is not None and sign * (mark - position.stop) <= 0:
        return ExitReason.STOP
    if position.target is not None and sign * (mark - position.target) >= 0:
        return ExitReason.TARGET
    return None
