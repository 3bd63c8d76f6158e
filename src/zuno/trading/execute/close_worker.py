"""Closes: everything of a symbol out, entries that wait cancelled, and what could not be booked undone; and stops and
targets of what is held, at the venue or watched where it holds none."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import count
from typing import Final, Literal

from zuno.kernel.errors import Unavailable
from zuno.markets.market import Symbol
from zuno.trading.execute.gate_state import GateState
from zuno.trading.execute.intents import build_close_intent, build_exit, find_close_id
from zuno.trading.execute.order_sender import OrderSender
from zuno.trading.execute.unlogged import find_unlogged_exits
from zuno.trading.execute.venue_sync import VenueSync
from zuno.trading.model.cycle import Ruling
from zuno.trading.model.market import MINUTE_MS, Side
from zuno.trading.model.orders import (
    SPOT,
    ZERO,
    ClientId,
    OrderRequest,
    OrderStatus,
    OrderType,
    client_order_id,
    opening_side,
)
from zuno.trading.model.trade_events import ExitReason, IntentKind, IntentStored, Protection
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.book_state import OpenTrade, Place, TrackedIntent, TrackedOrder
from zuno.trading.rules.execution_styles import meets_minimum

MAX_EXIT_TRIES: Final = 3
UNPROTECTED_MS: Final = MINUTE_MS
"""How long a position may wait for its stop before the entry is undone."""

CLOSE_AGAIN_MS: Final = MINUTE_MS
"""How long a rule waits after the venue refused its close before it closes again."""
_TYPES: Final = {"stop": OrderType.STOP_MARKET, "target": OrderType.TAKE_PROFIT_MARKET}


class CloseWorker:
    def __init__(self, state: GateState, sender: OrderSender, sync: VenueSync) -> None:
        self._state = state
        self._sender = sender
        self._sync = sync
        self._unsellable: dict[Place, str] = {}
        """What a close found too small to be sold."""
        self._unwanted: dict[Place, str] = {}
        """Where an entry was filled after its intent was over, and that intent."""

    async def store(
        self, symbol: Symbol, reason: ExitReason, decision: str, id: str | None = None, ruling: Ruling | None = None
    ) -> str | None:
        """Write down that a symbol is to be closed; None where nothing of it is held or ordered."""
        book = self._state.book
        for tracked in book.open_intents.values():
            if tracked.intent.kind is IntentKind.CLOSE and tracked.intent.symbol is symbol:
                return tracked.intent.id
        held = [trade for trade in book.positions.values() if trade.symbol is symbol]
        orders = [order for order in book.open_orders.values() if order.request.symbol is symbol]
        entries = self._state.open_entries(symbol)
        if not held and not orders and not entries:
            return None
        side = held[0].side if held else Side.LONG
        mark = held[0].entry if held else entries[0].intent.mark if entries else Decimal(1)
        if id is None or id in book.intents:
            id = find_close_id(book, self._state.account, symbol)
        mandate = book.active_mandate(self._state.now())
        intent = build_close_intent(id, decision, symbol, side, mark, reason, mandate=mandate)
        await self._state.write([IntentStored(at=self._state.event_time(), intent=intent, ruling=ruling)])
        return id

    async def work(self, venue: OrderVenue, symbol: Symbol) -> None:
        for tracked in list(self._state.book.open_intents.values()):
            if tracked.intent.kind is IntentKind.CLOSE and tracked.intent.symbol is symbol:
                await self._state.attempt(self._work_close(venue, tracked))

    async def _work_close(self, venue: OrderVenue, tracked: TrackedIntent) -> None:
        symbol, place = tracked.intent.symbol, (venue.exchange, tracked.intent.symbol)
        await self._cancel_entries(venue, symbol)
        position = self._state.book.positions.get(place)
        self._unsellable.pop(place, None)
        unbooked = await self._find_unbooked(venue, symbol)
        if position is None and not unbooked:
            return
        exits = self._list_exits(tracked, venue)
        if not exits and venue.exchange in SPOT:
            await self._book_unlogged_exits(venue, tracked)
            exits, position = self._list_exits(tracked, venue), self._state.book.positions.get(place)
            if position is None:
                return
        if any(not order.status.final for order in exits) or len(_find_rejected(exits)) >= MAX_EXIT_TRIES:
            return
        if exits and not exits[-1].filled and exits[-1].planned >= self._state.now():
            return  # nothing stood against it: the next look tries again
        if position is not None and (why := await self.why_unsellable(position)) is not None:
            self._unsellable[place] = why
            return
        filters = await self._state.known_filters(venue, symbol)
        quantity = unbooked if position is None else position.quantity + unbooked
        side = self._state.entry_orders(place)[0].request.side if position is None else opening_side(position.side)
        most = quantity if filters is None else min(quantity, filters.max_quantity)
        client_id = self._find_next_id(tracked, venue)
        request = build_exit(client_id, venue.exchange, symbol, side.opposite, most, position)
        await self._sender.plan_and_send(venue, tracked.intent.id, "exit", request)

    def _list_exits(self, tracked: TrackedIntent, venue: OrderVenue) -> list[TrackedOrder]:
        return [order for order in self._state.orders_of(tracked, venue.exchange) if order.purpose == "exit"]

    def _find_next_id(self, tracked: TrackedIntent, venue: OrderVenue) -> ClientId:
        """As a close without the log counts them, too: sent by both, an exit is one order."""
        ids = (client_order_id(tracked.intent.id, venue.exchange, "exit", number) for number in count())
        return next(id for id in ids if id not in self._state.book.orders)

    async def _book_unlogged_exits(self, venue: OrderVenue, tracked: TrackedIntent) -> None:
        """What was sold at a spot exchange while the log could not be written is booked and not sold again: nothing
        there keeps a second sale from selling what is the owner's. `Unavailable` while that is not sure."""
        intent, book, account = tracked.intent, self._state.book, self._state.account
        sent_next = (intent.id, "exit")
        found = await find_unlogged_exits(book, account, venue, intent.symbol, sent_next)
        if found.closed:
            await self._sync.book_orders(venue, intent.symbol, [])
            found = await find_unlogged_exits(self._state.book, account, venue, intent.symbol, sent_next)
        if found.waiting or found.closed:
            raise Unavailable(f"{venue.exchange} has an exit of {intent.symbol} that is not booked yet")
        if found.unread is not None:
            if self._state.writer.has_failed:
                raise Unavailable(f"whether {venue.exchange} sold {intent.symbol} already is unread: {found.unread}")
            self._state.said.append(str(found.unread))  # nobody is known to have sold it: an exit waits for no read

    async def _find_unbooked(self, venue: OrderVenue, symbol: Symbol) -> Decimal:
        """How much the exchange holds beyond the book though something could not be read: no more than what our own
        entries may have been filled with. A spot balance may be the owner's, and says nothing."""
        place = (venue.exchange, symbol)
        entries = self._state.entry_orders(place)
        if not self._state.said or not entries or venue.exchange in SPOT:
            self._state.unbooked.pop(place, None)
            return ZERO
        position = self._state.book.positions.get(place)
        most = sum((order.request.quantity - order.booked for order in entries), ZERO)
        held = next((found for found in await venue.positions() if found.symbol is symbol), None)
        if held is None or opening_side(held.side) is not entries[0].request.side:
            unbooked = ZERO
        else:
            unbooked = min(most, held.quantity - (ZERO if position is None else position.quantity))
        if unbooked <= 0:
            self._state.unbooked.pop(place, None)
            return ZERO
        self._state.unbooked.setdefault(place, self._state.now())
        return unbooked

    async def undo_unbooked(self, venue: OrderVenue, symbol: Symbol) -> None:
        """An entry whose fills cannot be read has no stop: after a minute it is undone."""
        if self._state.is_closing(symbol) or not await self._find_unbooked(venue, symbol):
            return
        place = (venue.exchange, symbol)
        if self._state.now() - self._state.unbooked[place] > UNPROTECTED_MS:
            decision = self._state.book.intents[self._state.entry_orders(place)[0].intent].intent.decision
            await self.store(symbol, ExitReason.UNDONE, decision)
            await self.work(venue, symbol)

    async def undo_given_up(self, venue: OrderVenue, symbol: Symbol) -> None:
        """Book what an order was filled with after it was given up. An entry that nobody wants any more is closed."""
        for tracked, order in await self._sender.find_given_up(venue, symbol):
            wanted = tracked.purpose != "entry" or tracked.intent in self._state.book.open_intents
            if not wanted and order.filled > tracked.booked:  # what is booked already is protected
                self._unwanted[venue.exchange, symbol] = tracked.intent
            await self._sync.book_orders(venue, symbol, [order])
            self._state.unsure.pop(tracked.request.client_id, None)
        place, book = (venue.exchange, symbol), self._state.book
        if (intent := self._unwanted.get(place)) is not None:
            if place in book.positions:
                killed = (Protection.KILL_SWITCH, None) in book.locks
                reason = ExitReason.KILL_SWITCH if killed else ExitReason.UNDONE
                await self.store(symbol, reason, book.intents[intent].intent.decision)
            self._unwanted.pop(place, None)

    async def _cancel_entries(self, venue: OrderVenue, symbol: Symbol) -> None:
        """Nothing new is to be opened: what waits is cancelled, and its intent ends with what it has."""
        for order in self._state.orders_at(venue.exchange, symbol):
            if order.purpose == "entry":
                await self._state.attempt(self._sender.cancel(venue, order))
        for tracked in self._state.open_entries(symbol):
            for leg in tracked.intent.legs:
                if leg.exchange is venue.exchange or leg.exchange not in self._state.venues:
                    self._state.ended_legs.setdefault((tracked.intent.id, leg.exchange), "the symbol is closed")

    def is_closed(self, symbol: Symbol) -> bool:
        book = self._state.book
        entries = (order.request.symbol is symbol for order in book.open_orders.values())
        return (
            not any(place[1] is symbol for place in book.positions)
            and not any(entries)
            and all(self.is_worked(tracked) for tracked in self._state.open_entries(symbol))
        )

    def is_worked(self, tracked: TrackedIntent) -> bool:
        return all((tracked.intent.id, leg.exchange) in self._state.ended_legs for leg in tracked.intent.legs)

    def why_not_closed(self, tracked: TrackedIntent) -> str | None:
        """Why an exit is given up: the venue refused it again and again, or what is left is too small to be sold. Its
        stop stands, and a later close may try."""
        left = [place for place in self._state.book.positions if place[1] is tracked.intent.symbol]
        if left and all(place in self._unsellable for place in left):
            return "; ".join(self._unsellable[place] for place in left)[:600]
        for exchange, venue in self._state.venues.items():
            rejected = _find_rejected(self._list_exits(tracked, venue))
            if len(rejected) >= MAX_EXIT_TRIES and (exchange, tracked.intent.symbol) in self._state.book.positions:
                return f"{exchange} refused the exit: {rejected[-1].reason}"[:600]
        return None

    async def why_unsellable(self, position: OpenTrade) -> str | None:
        """Why no exit of a position can be sent: at a spot exchange it has the minimum of every order. None where it
        can, and where nobody can say."""
        if position.exchange not in SPOT:
            return None
        try:
            filters = await self._state.filters(position.exchange, position.symbol)
            mark = (await self._state.quote(position.exchange, position.symbol)).mark
        except Unavailable:
            return None
        if meets_minimum(position.quantity, mark, filters):
            return None
        return f"{position.quantity} {position.symbol} at {mark} is less than {position.exchange} takes"


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


def _find_rejected(orders: Iterable[TrackedOrder]) -> list[TrackedOrder]:
    return [order for order in orders if order.status is OrderStatus.REJECTED]
