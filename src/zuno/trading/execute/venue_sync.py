"""What the venues say happened, taken into the log: orders, fills and funding, each booked once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from zuno.kernel.errors import Broken, Refused, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.execute.gate_state import UNRESPONSIVE_MS, GateState
from zuno.trading.execute.intents import build_close_intent, build_exit
from zuno.trading.execute.unlogged import find_unlogged_close
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Side
from zuno.trading.model.orders import (
    OUR_PREFIX,
    SPOT,
    ZERO,
    ClientId,
    Fill,
    FundingPayment,
    Order,
    OrderSide,
    OrderStatus,
    opening_side,
)
from zuno.trading.model.trade_events import (
    FillBooked,
    FundingBooked,
    IntentStored,
    LockSet,
    OrderLost,
    OrderPlanned,
    OrderUpdated,
    Protection,
    TradeEvent,
)
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.book_state import Place, TrackedOrder

OVERLAP_MS: Final = MINUTE_MS
"""How far back fills and funding are asked for again: venues' clocks differ, and each is booked once."""
FUNDING_EVERY_MS: Final = 3 * MINUTE_MS
"""How often funding is asked for while a position is open: also when an hour is full, for then it is settled, and when
a trade closes."""
FUNDING_AGAIN_MS: Final = MINUTE_MS // 2
"""How soon it is asked for again after it could not be read."""
LATE_FUNDING_MS: Final = 10 * MINUTE_MS
"""For so long after a close a payment may be listed that was settled before it."""
FUNDING_PATIENCE: Final = 3.0
"""Seconds an exchange may take to list funding: nothing else waits longer for it."""
LISTED_MS: Final = 15_000
"""How long after an order was planned the exchange may not find it yet though it took it."""


class VenueSync:
    def __init__(self, state: GateState) -> None:
        self._state = state
        self._asked_from: dict[Place, Millis] = {}
        self._funding_from: dict[Place, Millis] = {}
        self._funding_asked: dict[Place, Millis] = {}
        self.funding_troubles: dict[Place, str] = {}
        """Places whose funding could not be read the last time, and why. It holds up nothing."""

    async def take(self, venue: OrderVenue, symbol: Symbol) -> None:
        """What became of every order of a symbol at the venue, and what was filled. An order that cannot be read keeps
        the others from nothing."""
        orders: list[Order] = []
        unread: ZunoError | None = None
        for tracked in self._state.orders_at(venue.exchange, symbol):
            request = tracked.request
            if tracked.status is OrderStatus.PLANNED:
                continue
            try:
                found = await venue.find(symbol, request.client_id, request.type)
            except Unavailable as error:
                if self._state.now() - self._state.begun >= UNRESPONSIVE_MS:
                    raise
                unread = error
                continue
            if found is not None:
                orders.append(found)
                continue
            if 0 <= self._state.now() - tracked.planned < LISTED_MS:
                unread = Unavailable(f"{venue.exchange} does not find the new order {request.client_id} yet")
                continue
            why = f"{venue.exchange} does not know the order {request.client_id} any more"
            await self._state.lock(symbol, why)
            await self._state.write([OrderLost(at=self._state.event_time(), client_id=request.client_id, reason=why)])
        if orders or (venue.exchange, symbol) in self._state.book.positions:
            await self.book_orders(venue, symbol, orders)
        if unread is not None:
            raise unread

    async def book_orders(self, venue: OrderVenue, symbol: Symbol, orders: Sequence[Order]) -> None:
        """Write what is new of these orders, and every fill that is not booked yet. A fill that closes is written with
        the funding of its trade, as far as that can be read."""
        book, now, place = self._state.book, self._state.event_time(), (venue.exchange, symbol)
        since = self._first_moment(place)
        news: list[tuple[int, int, Order | Fill | FundingPayment]] = [
            (order.updated, 2, order) for order in orders if book.is_update(order)
        ]
        unread: ZunoError | None = None
        try:
            fills = await self._read_fills(venue, symbol, since, orders)
        except Broken:
            raise
        except ZunoError as error:
            unread = error
            fills = await self._read_order_fills(venue, orders)
            if not fills:
                raise
        news += [(fill.at, 0, fill) for fill in fills]
        if any(self._is_reducing(fill) for fill in fills) and not self._is_funding_troubled(place):
            news += [(payment.at, 1, payment) for payment in await self._try_funding(venue, symbol)]
        news.sort(key=lambda item: item[:2])
        events: list[TradeEvent] = []
        strangers, recognised = list[str](), set[ClientId]()
        foreign = [f"{fill.foreign_fee} for {fill.id}" for fill in fills if fill.foreign_fee]
        newest = book.newest
        for at, _, item in news:
            newest = Millis(max(newest, min(at, now)))
            if isinstance(item, Fill):
                known = item.client_id in book.orders or item.client_id in recognised
                if not known and not item.liquidation:
                    written = self._list_unlogged(item, fills, newest, events)
                    events += written
                    if written:
                        recognised.add(item.client_id)
                    else:
                        strangers.append(item.id)
                events.append(FillBooked(at=newest, fill=item))
            elif isinstance(item, FundingPayment):
                events.append(FundingBooked(at=newest, payment=item))
            else:
                events.append(OrderUpdated(at=newest, order=item))
        try:
            await self._state.write(events)
        except Refused as error:
            await self._state.lock(symbol, f"what {venue.exchange} says cannot be booked: {error}")
            raise Unavailable(f"{venue.exchange} and the book disagree about {symbol}: {error}") from error
        if strangers:
            await self._state.lock(
                symbol, f"fills at {venue.exchange} are not of this desk's orders: {', '.join(strangers)}"
            )
        if foreign:
            paid = ", ".join(foreign)
            await self._state.lock(
                symbol, f"{venue.exchange} took fees in another currency; they are booked as 0: {paid}"
            )
        if unread is not None:
            self._asked_from.setdefault(place, since)
            raise unread
        self._asked_from[place] = Millis(max(since, now - OVERLAP_MS))

    def _list_unlogged(
        self, fill: Fill, fills: Sequence[Fill], at: Millis, before: Sequence[TradeEvent]
    ) -> list[TradeEvent]:
        """What could not be written when an exit of ours was sent; empty for a stranger's. A kill switch that was
        thrown then locks now. `before`: what these news write already."""
        if not fill.client_id.startswith(OUR_PREFIX):
            return []
        book = self._state.book
        close = find_unlogged_close(book, self._state.account, fill)
        if close is None:
            return []
        events: list[TradeEvent] = []
        stored = {event.intent.id for event in before if isinstance(event, IntentStored)}
        if close.id not in book.intents and close.id not in stored:
            side = Side.LONG if fill.side is OrderSide.SELL else Side.SHORT
            mandate = book.active_mandate(self._state.now())
            intent = build_close_intent(
                close.id, "unwritten", fill.symbol, side, fill.price, close.reason, mandate=mandate
            )
            events.append(IntentStored(at=at, intent=intent, ruling=None))
        kill = (Protection.KILL_SWITCH, None)
        locked = kill in book.locks or any(isinstance(event, LockSet) for event in before)
        if close.killed and not locked and book.lifted.get(kill, Millis(0)) < fill.at:
            why = "kill switch, thrown while the log could not be written"
            events.append(LockSet(at=at, protection=Protection.KILL_SWITCH, symbol=None, until=None, reason=why))
        filled = sum((other.quantity for other in fills if other.client_id == fill.client_id), ZERO)
        request = build_exit(fill.client_id, fill.exchange, fill.symbol, fill.side, filled)
        return [*events, OrderPlanned(at=at, intent=close.id, purpose="exit", order=request)]

    def _is_reducing(self, fill: Fill) -> bool:
        position = self._state.book.positions.get((fill.exchange, fill.symbol))
        return position is not None and fill.side is not opening_side(position.side)

    async def settle_funding(self, venue: OrderVenue, told: Sequence[Symbol], *, anew: bool) -> None:
        """Book what was paid for open positions whose news was told, and for those that ended a moment ago."""
        now = self._state.now()
        symbols = [symbol for symbol in told if (venue.exchange, symbol) in self._state.book.positions]
        for summary in reversed(self._state.book.closed):
            if summary.closed < now - LATE_FUNDING_MS:
                break
            symbols += [summary.symbol] if summary.exchange is venue.exchange else []
        for symbol in dict.fromkeys(symbols):
            place = (venue.exchange, symbol)
            asked = self._funding_asked.get(place)
            pause = FUNDING_AGAIN_MS if place in self.funding_troubles else FUNDING_EVERY_MS
            recent = asked is not None and asked // HOUR_MS == now // HOUR_MS and now - asked < pause
            if recent and not anew:
                continue
            payments = await self._try_funding(venue, symbol)
            try:
                await self._state.write(
                    [FundingBooked(at=self._state.event_time(), payment=payment) for payment in payments]
                )
            except Refused as error:
                self.funding_troubles[place] = f"funding of {symbol} cannot be booked: {error}"

    async def _try_funding(self, venue: OrderVenue, symbol: Symbol) -> list[FundingPayment]:
        """Payments that are not booked yet. Where they cannot be read that is said, and nothing waits for it."""
        place, now = (venue.exchange, symbol), self._state.event_time()
        if venue.exchange in SPOT:
            return []
        since = self._funding_from.get(place)
        if since is None:
            since = self._first_funding(place)
        self._funding_asked[place] = now
        try:
            async with asyncio.timeout(None if venue.simulated else FUNDING_PATIENCE):
                paid = await venue.funding(symbol, since)
        except Broken:
            raise
        except (ZunoError, TimeoutError) as error:
            why = str(error) or f"no answer within {FUNDING_PATIENCE:g} s"
            self.funding_troubles[place] = f"funding of {symbol} cannot be read: {why}"
            return []
        self.funding_troubles.pop(place, None)
        self._funding_from[place] = Millis(max(since, now - LATE_FUNDING_MS))
        return [payment for payment in paid if not self._state.book.has_payment(venue.exchange, payment.id)]

    def _is_funding_troubled(self, place: Place) -> bool:
        """Whether it could not be read a moment ago."""
        asked = self._funding_asked.get(place)
        return (
            asked is not None and place in self.funding_troubles and 0 <= self._state.now() - asked < FUNDING_AGAIN_MS
        )

    def _first_funding(self, place: Place) -> Millis:
        """From when funding of a place may be unbooked: when its trade was opened."""
        position = self._state.book.positions.get(place)
        ended = (trade.opened for trade in reversed(self._state.book.closed) if (trade.exchange, trade.symbol) == place)
        opened = next(ended, self._state.now()) if position is None else position.opened
        return Millis(max(0, opened - OVERLAP_MS))

    async def _read_fills(
        self, venue: OrderVenue, symbol: Symbol, since: Millis, orders: Sequence[Order]
    ) -> list[Fill]:
        """Those that are not booked yet. A fill may be told long after it happened: where they do not add up to what
        an order says, they are asked for from its beginning."""
        book = self._state.book

        async def read(start: Millis) -> list[Fill]:
            return [fill for fill in await venue.fills(symbol, start) if not book.has_fill(venue.exchange, fill.id)]

        fills = await read(since)
        short = self._find_short(orders, fills)
        if short:
            fills = await read(Millis(max(0, min(order.planned for order in short) - OVERLAP_MS)))
            short = self._find_short(orders, fills)
        if short:
            raise Unavailable(f"{venue.exchange} lists less fills of {short[0].request.client_id} than it says it has")
        return fills

    async def _read_order_fills(self, venue: OrderVenue, orders: Sequence[Order]) -> list[Fill]:
        """Those that are not booked yet, as the orders themselves list them: all of these orders, or none."""
        fills: list[Fill] = []
        for order in orders:
            if self._find_short([order], []):
                listed = await venue.order_fills(order) or ()
                fills += [fill for fill in listed if not self._state.book.has_fill(venue.exchange, fill.id)]
        return [] if self._find_short(orders, fills) else fills

    def _find_short(self, orders: Sequence[Order], fills: Sequence[Fill]) -> list[TrackedOrder]:
        """Orders that were filled with more than is booked of them and among these fills."""
        found: list[TrackedOrder] = []
        for order in orders:
            known = self._state.book.orders.get(order.request.client_id)
            listed = sum((fill.executed for fill in fills if fill.client_id == order.request.client_id), ZERO)
            if known is not None and order.filled > known.booked + listed:
                found.append(known)
        return found

    def _first_moment(self, place: Place) -> Millis:
        """From when fills and funding of a place may be unbooked."""
        known = self._asked_from.get(place)
        if known is not None:
            return known
        exchange, symbol = place
        times = [order.planned for order in self._state.orders_at(exchange, symbol)]
        if (position := self._state.book.positions.get(place)) is not None:
            times.append(position.opened)
        return Millis(max(0, min(times, default=self._state.now()) - OVERLAP_MS))
