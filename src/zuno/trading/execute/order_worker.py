"""Carries intents out at the venues: orders are planned in the log, looked up, placed, followed and booked.

`advance` is the whole of it, whatever happened before: a start, a tick of the watch and a new ruling are the same path.
What it does follows from the book and the venues' word alone, so that a process may end anywhere and another go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, Literal

from zuno.kernel.errors import Broken, Refused, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.execute.intents import build_close_intent, find_close_id
from zuno.trading.execute.unwritten import find_unwritten_close
from zuno.trading.model.cycle import Exchange, Ruling, Style
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Side, Symbol
from zuno.trading.model.orders import (
    OUR_PREFIX,
    SPOT,
    ZERO,
    ClientId,
    Fill,
    Filters,
    FundingPayment,
    Order,
    OrderRequest,
    OrderSide,
    OrderStatus,
    OrderType,
    VenueQuote,
    client_order_id,
    opening_side,
)
from zuno.trading.model.trade_events import (
    ExitReason,
    FillBooked,
    FundingBooked,
    IntentEnded,
    IntentKind,
    IntentLeg,
    IntentStored,
    LockSet,
    OrderLost,
    OrderPlanned,
    OrderUpdated,
    Protection,
    TradeEvent,
    TradeIntent,
)
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.execution_styles import EntryOrder, EntryPlan, EntryTask, fits, has_drifted, next_entry_step
from zuno.trading.rules.protections import BY_HAND, STORED
from zuno.trading.rules.trading_book import OpenTrade, TrackedIntent, TrackedOrder, TradingBook

MAX_PASSES: Final = 24
"""Rounds at one exchange in one go; each goes on from what the one before booked."""
MAX_EXIT_TRIES: Final = 3
UNPROTECTED_MS: Final = MINUTE_MS
"""How long a position may wait for its stop before the entry is undone."""
CLOSE_AGAIN_MS: Final = MINUTE_MS
"""How long a rule waits after the venue refused its close before it closes again."""
SENDING_MS: Final = MINUTE_MS
"""How long an entry that was planned may still be on its way from another process."""
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
SILENT_MS: Final = 15_000
"""An exchange that took so long and failed is asked for no news and no entries until the next look: what is held
elsewhere waits for it no longer."""
RESEND_MS: Final = 6_000
"""How long after a send without a reply the order is not sent again: for a few seconds it may still arrive. An entry
that another process planned may have been sent until this one began."""
LISTED_MS: Final = 15_000
"""How long after an order was planned the exchange may not find it yet though it took it."""
Purpose = Literal["entry", "stop", "target", "exit"]
Place = tuple[Exchange, Symbol]
_TYPES: Final = {"stop": OrderType.STOP_MARKET, "target": OrderType.TAKE_PROFIT_MARKET}


class OrderWorker:
    """Works the open intents and guards the open positions of one account."""

    def __init__(
        self,
        writer: AccountWriter,
        venues: Mapping[Exchange, OrderVenue],
        now: Callable[[], Millis],
        *,
        live: bool = False,
        entries: bool = True,
    ) -> None:
        """`live`: an entry is worked under its mandate alone. `entries`: whether entries are placed at all, or only
        cancelled, protected and closed."""
        self._writer = writer
        self._venues = venues
        self._now = now
        self._live = live
        self._entries = self._placing = entries
        self._asked_from: dict[Place, Millis] = {}
        self._funding_from: dict[Place, Millis] = {}
        self._funding_asked: dict[Place, Millis] = {}
        self._funding_troubles: dict[Place, str] = {}
        """Places whose funding could not be read the last time, and why. It holds up nothing."""
        self._filters: dict[Place, Filters] = {}
        self._ended_legs: dict[tuple[str, Exchange], str] = {}
        self._unsure: dict[ClientId, Millis] = {}
        """Orders whose reply did not come or is not booked, and when they were sent."""
        self._started: Millis | None = None
        """When this worker looked first."""
        self._said: list[str] = []
        """What failed at the exchange that is being worked."""
        self._begun = Millis(0)
        """When it began to be worked."""
        self._refused: dict[Symbol, Millis] = {}
        """When the venue last refused to close a symbol."""
        self._unbooked: dict[Place, Millis] = {}
        """Where the exchange holds more of our entries than their fills say, and since when that is known."""
        self._unsellable: dict[Place, str] = {}
        """What a close found too small to be sold."""
        self.troubles: dict[Exchange, str] = {}
        """Exchanges that did not answer the last time, and what they said."""

    @property
    def book(self) -> TradingBook:
        return self._writer.book

    async def advance(self, *, settle: bool = False, entries: bool = True) -> None:
        """Take the venues' news into the log and go on with everything that is open. What one exchange cannot or will
        not do keeps no other from its stops. `settle`: ask for funding whenever it was asked for last. Without
        `entries` none is placed this time."""
        self._placing = self._entries and entries
        if self._started is None:
            self._started = self._now()
        for exchange, venue in self._venues.items():
            self._said, self._begun = [], self._now()
            await self._advance_at(venue, settle)
            unpaid = [why for place, why in self._funding_troubles.items() if place[0] is exchange]
            self.troubles.pop(exchange, None)
            if said := dict.fromkeys([*self._said, *unpaid]):
                self.troubles[exchange] = "; ".join(said)
        self._note_missing()
        await self._end_intents()

    async def quote(self, exchange: Exchange, symbol: Symbol) -> VenueQuote:
        return await self._venue(exchange).quote(symbol)

    async def dollar_mark(self, symbol: Symbol) -> Decimal | None:
        """None where nothing is quoted in dollars here."""
        return (await self.quote(Exchange.BINANCE, symbol)).mark if Exchange.BINANCE in self._venues else None

    async def filters(self, exchange: Exchange, symbol: Symbol) -> Filters:
        """As the venue had them when this process first asked, or asked anew for an entry."""
        found = self._filters.get((exchange, symbol))
        return found or await self.fresh_filters(exchange, symbol)

    async def fresh_filters(self, exchange: Exchange, symbol: Symbol) -> Filters:
        found = self._filters[exchange, symbol] = await self._venue(exchange).filters(symbol)
        return found

    async def _known_filters(self, venue: OrderVenue, symbol: Symbol) -> Filters | None:
        """None where they cannot be read: what protects or closes does not wait for them."""
        try:
            return await self.filters(venue.exchange, symbol)
        except Broken:
            raise
        except ZunoError as error:
            self._said.append(str(error))
            return None

    async def _holds_stops(self, venue: OrderVenue, symbol: Symbol) -> bool:
        filters = await self._known_filters(venue, symbol)
        return venue.exchange not in SPOT if filters is None else filters.holds_stops

    async def store_close(
        self, symbol: Symbol, reason: ExitReason, decision: str, id: str | None = None, ruling: Ruling | None = None
    ) -> str | None:
        """Write down that a symbol is to be closed; None where nothing of it is held or ordered."""
        book = self.book
        for tracked in book.open_intents.values():
            if tracked.intent.kind is IntentKind.CLOSE and tracked.intent.symbol is symbol:
                return tracked.intent.id
        held = [trade for trade in book.positions.values() if trade.symbol is symbol]
        orders = [order for order in book.open_orders.values() if order.request.symbol is symbol]
        entries = self._open_entries(symbol)
        if not held and not orders and not entries:
            return None
        side = held[0].side if held else Side.LONG
        mark = held[0].entry if held else entries[0].intent.mark if entries else Decimal(1)
        if id is None or id in book.intents:
            id = find_close_id(book, self._writer.account, symbol)
        mandate = book.active_mandate(self._now())
        intent = build_close_intent(id, decision, symbol, side, mark, reason, mandate=mandate)
        await self._write([IntentStored(at=self._at(), intent=intent, ruling=ruling)])
        return id

    async def cancel_order(self, order: TrackedOrder) -> None:
        await self._cancel(self._venue(order.request.exchange), order)

    async def book_order(self, venue: OrderVenue, order: Order) -> None:
        """Write what a venue says of an order, with its fills."""
        await self._book_news(venue, order.request.symbol, [order])

    async def end_entries(self, reason: str, intent: str | None = None) -> None:
        """Write down that nothing more is entered: of one intent, or of all. `advance` cancels what waits of them."""
        ended = [
            self._end_entry(tracked, reason)
            for tracked in self.book.open_intents.values()
            if tracked.intent.kind is IntentKind.OPEN and intent in (None, tracked.intent.id)
        ]
        await self._write(ended)

    def _note_missing(self) -> None:
        """Exchanges where something is held or ordered, and that nothing can be done at here."""
        book = self.book
        held = {exchange for exchange, _ in book.positions}
        used = held | {order.request.exchange for order in book.open_orders.values()}
        for exchange in Exchange:
            if exchange in self._venues:
                continue
            self.troubles.pop(exchange, None)
            if exchange in used:
                what = "positions are open" if exchange in held else "orders are open"
                self.troubles[exchange] = f"{what} there, and this desk has no access to it: nobody looks after them"

    # -- one exchange

    async def _advance_at(self, venue: OrderVenue, settle: bool) -> None:
        """Symbol by symbol, and in each what is held comes first. What fails for one keeps no other from being closed
        or protected."""
        told: list[Symbol] = []
        for _ in range(MAX_PASSES):
            symbols = self._symbols_at(venue.exchange)
            before = self.book.count
            told = [symbol for symbol in symbols if await self._secure_symbol(venue, symbol)]
            for symbol in told:
                if not self._is_silent():
                    await self._work_entries(venue, symbol)
            if self.book.count == before:
                break
        for symbol in self._symbols_at(venue.exchange):
            await self._try(self._undo_unbooked(venue, symbol))
        if not self._is_silent():
            await self._settle_funding(venue, told, anew=settle)

    def _is_silent(self) -> bool:
        return bool(self._said) and self._now() - self._begun >= SILENT_MS

    def _symbols_at(self, exchange: Exchange) -> list[Symbol]:
        """Those that something is held, ordered or wanted of."""
        book = self.book
        held = (symbol for place, symbol in book.positions if place is exchange)
        ordered = (order.request.symbol for order in self._orders_at(exchange))
        return list(dict.fromkeys([*held, *ordered, *(open.intent.symbol for open in book.open_intents.values())]))

    async def _secure_symbol(self, venue: OrderVenue, symbol: Symbol) -> bool:
        """Take the news of a symbol, close what is to be closed, and protect what is held. Whether the news was taken:
        without it nothing new is opened; closing and protecting go on by what the book knows."""
        place = (venue.exchange, symbol)
        watched = self.book.positions.get(place)
        if watched is not None and not await self._holds_stops(venue, symbol):
            # Nobody but the desk watches these levels: they do not wait for the news.
            await self._guard_position(venue, symbol)
            await self._work_closes(venue, symbol)
        else:
            watched = None
        told = not self._is_silent() and await self._try(self._take_news(venue, symbol))
        await self._resolve_planned(venue, symbol, "exit")
        await self._work_closes(venue, symbol)
        if not self._is_closing(symbol):
            await self._resolve_planned(venue, symbol, "stop", "target")
            if watched is None or self.book.positions.get(place) is not watched:
                await self._guard_position(venue, symbol)
        if not self._is_silent():
            await self._cancel_leftovers(venue, symbol)
        return told

    async def _work_entries(self, venue: OrderVenue, symbol: Symbol) -> None:
        """What an entry has filled is protected before anything else is asked."""
        await self._resolve_planned(venue, symbol, "entry")
        for tracked in self._open_entries(symbol):
            if not self._is_closing(symbol):
                await self._try(self._work_entry(venue, tracked))
                await self._guard_position(venue, symbol)

    async def _try(self, act: Awaitable[None]) -> bool:
        """Whether it was done. What the venue cannot or will not do is said, and keeps nothing else from being done."""
        try:
            await act
        except Broken:
            raise
        except ZunoError as error:
            self._said.append(str(error))
            return False
        return True

    async def _take_news(self, venue: OrderVenue, symbol: Symbol) -> None:
        """What became of every order of a symbol at the venue, and what was filled. An order that cannot be read keeps
        the others from nothing."""
        orders: list[Order] = []
        unread: ZunoError | None = None
        for tracked in self._orders_at(venue.exchange, symbol):
            request = tracked.request
            if tracked.status is OrderStatus.PLANNED:
                continue
            try:
                found = await venue.find(symbol, request.client_id, request.type)
            except Unavailable as error:
                if self._now() - self._begun >= SILENT_MS:
                    raise
                unread = error
                continue
            if found is not None:
                orders.append(found)
                continue
            if 0 <= self._now() - tracked.planned < LISTED_MS:
                unread = Unavailable(f"{venue.exchange} does not find the new order {request.client_id} yet")
                continue
            why = f"{venue.exchange} does not know the order {request.client_id} any more"
            await self.lock(symbol, why)
            await self._write([OrderLost(at=self._at(), client_id=request.client_id, reason=why)])
        if orders or (venue.exchange, symbol) in self.book.positions:
            await self._book_news(venue, symbol, orders)
        if unread is not None:
            raise unread

    async def _book_news(self, venue: OrderVenue, symbol: Symbol, orders: Sequence[Order]) -> None:
        """Write what is new of these orders, and every fill that is not booked yet. A fill that closes is written with
        the funding of its trade, as far as that can be read."""
        book, now, place = self.book, self._at(), (venue.exchange, symbol)
        since = self._first_moment(place)
        news: list[tuple[int, int, Order | Fill | FundingPayment]] = [
            (order.updated, 2, order) for order in orders if book.is_news(order)
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
                    written = self._write_late(item, fills, newest)
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
            await self._write(events)
        except Refused as error:
            await self.lock(symbol, f"what {venue.exchange} says cannot be booked: {error}")
            raise Unavailable(f"{venue.exchange} and the book disagree about {symbol}: {error}") from error
        if strangers:
            await self.lock(symbol, f"fills at {venue.exchange} are not of this desk's orders: {', '.join(strangers)}")
        if foreign:
            paid = ", ".join(foreign)
            await self.lock(symbol, f"{venue.exchange} took fees in another currency; they are booked as 0: {paid}")
        if unread is not None:
            self._asked_from.setdefault(place, since)
            raise unread
        self._asked_from[place] = Millis(max(since, now - OVERLAP_MS))

    def _write_late(self, fill: Fill, fills: Sequence[Fill], at: Millis) -> list[TradeEvent]:
        """What could not be written when an exit of ours was sent; empty for a stranger's. A kill switch that was
        thrown then locks now."""
        if not fill.client_id.startswith(OUR_PREFIX):
            return []
        close = find_unwritten_close(self.book, self._writer.account, fill)
        if close is None:
            return []
        events: list[TradeEvent] = []
        side = Side.LONG if fill.side is OrderSide.SELL else Side.SHORT
        if close.id not in self.book.intents:
            mandate = self.book.active_mandate(self._now())
            intent = build_close_intent(
                close.id, "unwritten", fill.symbol, side, fill.price, close.reason, mandate=mandate
            )
            events.append(IntentStored(at=at, intent=intent, ruling=None))
            if close.reason is ExitReason.KILL_SWITCH and (Protection.KILL_SWITCH, None) not in self.book.locks:
                why = "kill switch, thrown while the log could not be written"
                events.append(LockSet(at=at, protection=Protection.KILL_SWITCH, symbol=None, until=None, reason=why))
        request = OrderRequest(
            client_id=fill.client_id,
            exchange=fill.exchange,
            symbol=fill.symbol,
            side=fill.side,
            type=OrderType.MARKET,
            quantity=sum((other.quantity for other in fills if other.client_id == fill.client_id), ZERO),
            reduce_only=True,
        )
        return [*events, OrderPlanned(at=at, intent=close.id, purpose="exit", order=request)]

    def _is_reducing(self, fill: Fill) -> bool:
        position = self.book.positions.get((fill.exchange, fill.symbol))
        return position is not None and fill.side is not opening_side(position.side)

    async def _settle_funding(self, venue: OrderVenue, told: Sequence[Symbol], *, anew: bool) -> None:
        """Book what was paid for open positions whose news was told, and for those that ended a moment ago."""
        now = self._now()
        symbols = [symbol for symbol in told if (venue.exchange, symbol) in self.book.positions]
        for summary in reversed(self.book.closed):
            if summary.closed < now - LATE_FUNDING_MS:
                break
            symbols += [summary.symbol] if summary.exchange is venue.exchange else []
        for symbol in dict.fromkeys(symbols):
            place = (venue.exchange, symbol)
            asked = self._funding_asked.get(place)
            pause = FUNDING_AGAIN_MS if place in self._funding_troubles else FUNDING_EVERY_MS
            recent = asked is not None and asked // HOUR_MS == now // HOUR_MS and now - asked < pause
            if recent and not anew:
                continue
            payments = await self._try_funding(venue, symbol)
            try:
                await self._write([FundingBooked(at=self._at(), payment=payment) for payment in payments])
            except Refused as error:
                self._funding_troubles[place] = f"funding of {symbol} cannot be booked: {error}"

    async def _try_funding(self, venue: OrderVenue, symbol: Symbol) -> list[FundingPayment]:
        """Payments that are not booked yet. Where they cannot be read that is said, and nothing waits for it."""
        place, now = (venue.exchange, symbol), self._at()
        if venue.exchange in SPOT:
            return []
        since = self._funding_from.get(place)
        if since is None:
            since = self._first_funding(place)
        self._funding_asked[place] = now
        try:
            async with asyncio.timeout(None if venue.paper else FUNDING_PATIENCE):
                paid = await venue.funding(symbol, since)
        except Broken:
            raise
        except (ZunoError, TimeoutError) as error:
            why = str(error) or f"no answer within {FUNDING_PATIENCE:g} s"
            self._funding_troubles[place] = f"funding of {symbol} cannot be read: {why}"
            return []
        self._funding_troubles.pop(place, None)
        self._funding_from[place] = Millis(max(since, now - LATE_FUNDING_MS))
        return [payment for payment in paid if not self.book.has_payment(venue.exchange, payment.id)]

    def _is_funding_troubled(self, place: Place) -> bool:
        """Whether it could not be read a moment ago."""
        asked = self._funding_asked.get(place)
        return asked is not None and place in self._funding_troubles and 0 <= self._now() - asked < FUNDING_AGAIN_MS

    def _first_funding(self, place: Place) -> Millis:
        """From when funding of a place may be unbooked: when its trade was opened."""
        position = self.book.positions.get(place)
        ended = (trade.opened for trade in reversed(self.book.closed) if (trade.exchange, trade.symbol) == place)
        opened = next(ended, self._now()) if position is None else position.opened
        return Millis(max(0, opened - OVERLAP_MS))

    async def _read_fills(
        self, venue: OrderVenue, symbol: Symbol, since: Millis, orders: Sequence[Order]
    ) -> list[Fill]:
        """Those that are not booked yet. A fill may be told long after it happened: where they do not add up to what
        an order says, they are asked for from its beginning."""
        book = self.book

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
                fills += [fill for fill in listed if not self.book.has_fill(venue.exchange, fill.id)]
        return [] if self._find_short(orders, fills) else fills

    def _find_short(self, orders: Sequence[Order], fills: Sequence[Fill]) -> list[TrackedOrder]:
        """Orders that were filled with more than is booked of them and among these fills."""
        found: list[TrackedOrder] = []
        for order in orders:
            known = self.book.orders.get(order.request.client_id)
            listed = sum((fill.quantity for fill in fills if fill.client_id == order.request.client_id), ZERO)
            if known is not None and order.filled > known.booked + listed:
                found.append(known)
        return found

    async def _resolve_planned(self, venue: OrderVenue, symbol: Symbol, *purposes: Purpose) -> None:
        """Orders that a process planned and nobody knows to be sent: the venue says; what it has not is placed if it
        is still wanted."""
        for tracked in self._orders_at(venue.exchange, symbol):
            if tracked.status is OrderStatus.PLANNED and tracked.purpose in purposes:
                await self._try(self._send_again(venue, tracked))
                if tracked.purpose == "entry":
                    await self._guard_position(venue, symbol)

    async def _send_again(self, venue: OrderVenue, tracked: TrackedOrder) -> None:
        request, waits = tracked.request, tracked.purpose == "entry" and not self._placing
        if waits and self._may_arrive(venue, tracked):
            order = await venue.find(request.symbol, request.client_id, request.type)
            if order is None:
                return
        else:
            order = await self._find_planned(venue, tracked)
        if order is not None:
            await self._book_news(venue, tracked.request.symbol, [order])
            return
        why = self._why_unwanted(tracked)
        if tracked.purpose == "entry":
            sending = not self._entries and self._now() - tracked.planned < SENDING_MS
            if not self._placing and (why is None or sending):
                return
            why = why or await self._why_drifted(venue, tracked)
        await self._send(venue, tracked, why)

    async def _send(self, venue: OrderVenue, tracked: TrackedOrder, why: str | None = None) -> None:
        """Place an order that the venue does not have. `why`: what speaks against it. `place` looks it up once more."""
        request = tracked.request
        why = why or self._why_unwanted(tracked)
        if why is not None:
            await self._write([OrderLost(at=self._at(), client_id=request.client_id, reason=why)])
            return
        try:
            order = await venue.place(request, tracked.expires)
        except Unavailable:
            self._unsure[request.client_id] = self._now()
            raise
        self._unsure[request.client_id] = self._now()
        await self._book_news(venue, request.symbol, [order])
        self._unsure.pop(request.client_id, None)

    async def _find_planned(self, venue: OrderVenue, tracked: TrackedOrder) -> Order | None:
        """None: the venue does not have it, and will not. `Unavailable` while an order without a reply may arrive."""
        request = tracked.request
        order = await venue.find(request.symbol, request.client_id, request.type)
        if order is None and self._may_arrive(venue, tracked):
            raise Unavailable(f"whether {venue.exchange} has the order {request.client_id} is not sure yet")
        self._unsure.pop(request.client_id, None)
        return order

    def _may_arrive(self, venue: OrderVenue, tracked: TrackedOrder) -> bool:
        sent = self._unsure.get(tracked.request.client_id)
        if sent is None and tracked.purpose == "entry" and self._entries and not venue.paper:
            sent = self._started
        return sent is not None and 0 <= self._now() - sent < RESEND_MS

    def _why_unwanted(self, tracked: TrackedOrder) -> str | None:
        """Why an order that the venue does not have is not to be placed any more."""
        request, book = tracked.request, self.book
        place = (request.exchange, request.symbol)
        if tracked.purpose != "entry":
            return None if place in book.positions or place in self._unbooked else "nothing is held any more"
        intent = book.open_intents.get(tracked.intent)
        if intent is None or self._is_closing(request.symbol):
            return "its intent is over"
        if self._now() > intent.intent.valid_until:
            return "the ruling is no longer valid"
        return self._why_stopped(intent.intent)

    async def _why_drifted(self, venue: OrderVenue, tracked: TrackedOrder) -> str | None:
        """Whether the market went away from an entry while it could not be sent."""
        intent = self.book.intents[tracked.intent]
        leg = next(leg for leg in intent.intent.legs if leg.exchange is venue.exchange)
        quote = await venue.quote(intent.intent.symbol)
        filters = await self.filters(venue.exchange, intent.intent.symbol)
        task = await self._entry_task(intent, leg, quote, filters, self._now())
        return f"the mark moved from {task.mark} to {quote.mark}" if has_drifted(task) else None

    def _why_stopped(self, intent: TradeIntent) -> str | None:
        """What a person or the desk stopped: nothing more is ordered of entries that are being worked. With money a
        day's loss stops them too."""
        granted = self.book.mandate
        if self._live and (granted is None or granted.hash != intent.mandate or self._now() >= granted.mandate.expires):
            return "its mandate is revoked, replaced or has expired"
        for lock in self.book.active_locks(self._now(), intent.symbol):
            if lock.protection in BY_HAND or (self._live and lock.protection in STORED):
                return f"{lock.protection.value}: {lock.reason}"[:600]
        return None

    async def _cancel(self, venue: OrderVenue, tracked: TrackedOrder) -> None:
        request = tracked.request
        if tracked.status is OrderStatus.PLANNED and await self._find_planned(venue, tracked) is None:
            if self._entries or self._now() - tracked.planned >= SENDING_MS:
                await self._write([OrderLost(at=self._at(), client_id=request.client_id, reason="cancelled")])
            return
        ended = await venue.cancel(request.symbol, request.client_id, request.type)
        await self._book_news(venue, request.symbol, [ended])

    # -- entries

    async def _work_entry(self, venue: OrderVenue, tracked: TrackedIntent) -> None:
        intent, exchange = tracked.intent, venue.exchange
        leg = next((leg for leg in intent.legs if leg.exchange is exchange), None)
        if leg is None or (intent.id, exchange) in self._ended_legs:
            return
        orders = [order for order in self._orders_of(tracked, exchange) if order.purpose == "entry"]
        now = self._now()
        waiting = [order for order in orders if not order.status.final]
        if self._placing and any(order.status is OrderStatus.PLANNED for order in waiting):
            return
        if self._closed_since(intent.symbol, tracked.stored):
            # What is left of the entry would open a trade that nobody ruled.
            for order in waiting:
                await self._cancel(venue, order)
            self._ended_legs[intent.id, exchange] = "the trade has ended"
            return
        if (why := self._why_stopped(intent)) is not None:
            for order in waiting:
                await self._cancel(venue, order)
            self._ended_legs[intent.id, exchange] = why
            return
        if not self._placing:
            return
        if waiting and all(order.expires is None or order.expires > now for order in waiting):
            return
        if orders and not waiting and intent.style is Style.SMART_DCA:
            self._ended_legs[intent.id, exchange] = ""
            return
        quote = await venue.quote(intent.symbol)
        filters = await (self.filters if orders else self.fresh_filters)(exchange, intent.symbol)
        task = await self._entry_task(tracked, leg, quote, filters, now)
        step = next_entry_step(task, [_entry_order(order) for order in orders])
        for number in step.cancel:
            await self._cancel(venue, orders[number])
        if step.done:
            self._ended_legs[intent.id, exchange] = step.why
        if step.place:
            await self._place_entries(venue, tracked, leg, step.place, len(orders))

    async def _entry_task(
        self, tracked: TrackedIntent, leg: IntentLeg, quote: VenueQuote, filters: Filters, now: Millis
    ) -> EntryTask:
        """Mark and ATR in the exchange's currency: by what one entry is in the other, or by what both cost now."""
        intent = tracked.intent
        dollars = next((other for other in intent.legs if other.exchange is Exchange.BINANCE), None)
        rate = Decimal(1)
        if leg.exchange is not Exchange.BINANCE and dollars is not None:
            rate = leg.entry / dollars.entry
        elif leg.exchange is not Exchange.BINANCE:
            rate = quote.mark / (await self.dollar_mark(intent.symbol) or intent.mark)
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
                OrderPlanned(at=self._at(), intent=intent.id, purpose="entry", order=request, expires=plan.expires)
            )
        await self._write(events)
        for event in events:
            assert isinstance(event, OrderPlanned)
            # What is held is protected before more is ordered.
            await self._guard_position(venue, intent.symbol)
            tracked_order = self.book.open_orders.get(event.order.client_id)
            if tracked_order is not None and tracked_order.status is OrderStatus.PLANNED:
                await self._send(venue, tracked_order)

    async def _end_intents(self) -> None:
        """Entries whose every leg is worked to its end, and closes of what is held no more."""
        events: list[TradeEvent] = []
        # Closes first: whether one is over hangs on the legs of the entries it ended.
        for tracked in sorted(self.book.open_intents.values(), key=lambda tracked: tracked.intent.kind):
            intent = tracked.intent
            if intent.kind is IntentKind.CLOSE:
                if self._is_closed(intent.symbol):
                    events.append(IntentEnded(at=self._at(), intent=intent.id, state="done"))
                elif (why := self._why_not_closed(tracked)) is not None:
                    self._refused[intent.symbol] = self._at()
                    events.append(IntentEnded(at=self._at(), intent=intent.id, state="refused", reason=why))
            elif self._is_worked(tracked):
                events.append(self._end_entry(tracked))
        await self._write(events)

    def _end_entry(self, tracked: TrackedIntent, why: str = "") -> IntentEnded:
        intent = tracked.intent
        whys = [why, *(self._ended_legs.pop((intent.id, leg.exchange), "") for leg in intent.legs)]
        entries = [self.book.orders[id] for id in tracked.orders if self.book.orders[id].purpose == "entry"]
        reasons = [*filter(None, whys), *(order.reason for order in entries if order.reason)]
        filled = sum((order.filled for order in entries), ZERO)
        state: Literal["done", "partial", "refused", "expired"]
        if filled >= sum((leg.quantity for leg in intent.legs), ZERO):
            state, reasons = "done", []
        elif filled:
            state = "partial"
        else:
            state = "refused" if any(order.status is OrderStatus.REJECTED for order in entries) else "expired"
        return IntentEnded(at=self._at(), intent=intent.id, state=state, reason="; ".join(dict.fromkeys(reasons))[:600])

    # -- closing

    async def _work_closes(self, venue: OrderVenue, symbol: Symbol) -> None:
        for tracked in list(self.book.open_intents.values()):
            if tracked.intent.kind is IntentKind.CLOSE and tracked.intent.symbol is symbol:
                await self._try(self._work_close(venue, tracked))

    async def _work_close(self, venue: OrderVenue, tracked: TrackedIntent) -> None:
        symbol, place = tracked.intent.symbol, (venue.exchange, tracked.intent.symbol)
        await self._cancel_entries(venue, symbol)
        position = self.book.positions.get(place)
        self._unsellable.pop(place, None)
        unbooked = await self._find_unbooked(venue, symbol)
        if position is None and not unbooked:
            return
        exits = [order for order in self._orders_of(tracked, venue.exchange) if order.purpose == "exit"]
        if any(not order.status.final for order in exits) or len(_find_rejected(exits)) >= MAX_EXIT_TRIES:
            return
        if exits and not exits[-1].filled and exits[-1].planned >= self._now():
            return  # nothing stood against it: the next look tries again
        if position is not None and (why := await self._why_unsellable(position)) is not None:
            self._unsellable[place] = why
            return
        filters = await self._known_filters(venue, symbol)
        quantity = unbooked if position is None else position.quantity + unbooked
        side = self._entry_orders(place)[0].request.side if position is None else opening_side(position.side)
        request = OrderRequest(
            client_id=client_order_id(tracked.intent.id, venue.exchange, "exit", len(exits)),
            exchange=venue.exchange,
            symbol=symbol,
            side=side.opposite,
            type=OrderType.MARKET,
            quantity=quantity if filters is None else min(quantity, filters.max_quantity),
            reduce_only=True,
            leverage=1 if position is None else max(1, int(position.leverage)),
        )
        await self._plan_and_send(venue, tracked.intent.id, "exit", request)

    async def _find_unbooked(self, venue: OrderVenue, symbol: Symbol) -> Decimal:
        """How much the exchange holds beyond the book though something could not be read: no more than what our own
        entries may have been filled with. A spot balance may be the owner's, and says nothing."""
        place = (venue.exchange, symbol)
        entries = self._entry_orders(place)
        if not self._said or not entries or venue.exchange in SPOT:
            self._unbooked.pop(place, None)
            return ZERO
        position = self.book.positions.get(place)
        most = sum((order.request.quantity - order.booked for order in entries), ZERO)
        held = next((found for found in await venue.positions() if found.symbol is symbol), None)
        if held is None or opening_side(held.side) is not entries[0].request.side:
            unbooked = ZERO
        else:
            unbooked = min(most, held.quantity - (ZERO if position is None else position.quantity))
        if unbooked <= 0:
            self._unbooked.pop(place, None)
            return ZERO
        self._unbooked.setdefault(place, self._now())
        return unbooked

    async def _undo_unbooked(self, venue: OrderVenue, symbol: Symbol) -> None:
        """An entry whose fills cannot be read has no stop: after a minute it is undone."""
        if self._is_closing(symbol) or not await self._find_unbooked(venue, symbol):
            return
        place = (venue.exchange, symbol)
        if self._now() - self._unbooked[place] > UNPROTECTED_MS:
            decision = self.book.intents[self._entry_orders(place)[0].intent].intent.decision
            await self.store_close(symbol, ExitReason.UNDONE, decision)
            await self._work_closes(venue, symbol)

    async def _cancel_entries(self, venue: OrderVenue, symbol: Symbol) -> None:
        """Nothing new is to be opened: what waits is cancelled, and its intent ends with what it has."""
        for order in self._orders_at(venue.exchange, symbol):
            if order.purpose == "entry":
                await self._try(self._cancel(venue, order))
        for tracked in self._open_entries(symbol):
            for leg in tracked.intent.legs:
                if leg.exchange is venue.exchange or leg.exchange not in self._venues:
                    self._ended_legs.setdefault((tracked.intent.id, leg.exchange), "the symbol is closed")

    def _is_closed(self, symbol: Symbol) -> bool:
        book = self.book
        entries = (order.request.symbol is symbol for order in book.open_orders.values())
        return (
            not any(place[1] is symbol for place in book.positions)
            and not any(entries)
            and all(self._is_worked(tracked) for tracked in self._open_entries(symbol))
        )

    def _is_worked(self, tracked: TrackedIntent) -> bool:
        return all((tracked.intent.id, leg.exchange) in self._ended_legs for leg in tracked.intent.legs)

    def _why_not_closed(self, tracked: TrackedIntent) -> str | None:
        """Why an exit is given up: the venue refused it again and again, or what is left is too small to be sold. Its
        stop stands, and a later close may try."""
        left = [place for place in self.book.positions if place[1] is tracked.intent.symbol]
        if left and all(place in self._unsellable for place in left):
            return "; ".join(self._unsellable[place] for place in left)[:600]
        for exchange in self._venues:
            rejected = _find_rejected(o for o in self._orders_of(tracked, exchange) if o.purpose == "exit")
            if len(rejected) >= MAX_EXIT_TRIES and (exchange, tracked.intent.symbol) in self.book.positions:
                return f"{exchange} refused the exit: {rejected[-1].reason}"[:600]
        return None

    # -- open positions

    async def _guard_position(self, venue: OrderVenue, symbol: Symbol) -> None:
        """Stop and target at the venue for what is held; where it holds none, the desk watches them."""
        place = (venue.exchange, symbol)
        position = self.book.positions.get(place)
        if position is None or self._is_closing(symbol):
            return
        await self._try(self._close_if_due(position))
        if self._is_closing(symbol):
            return
        if not await self._holds_stops(venue, symbol):
            await self._try(self._watch_levels(venue, position))
        elif position.intent in self.book.intents:
            await self._try(self._place_level(venue, position, "stop", position.stop))
            if self.book.positions.get(place) is position and not self._is_closing(symbol):
                await self._try(self._place_level(venue, position, "target", position.target))

    async def _close_if_due(self, position: OpenTrade) -> None:
        if (Protection.KILL_SWITCH, None) in self.book.locks:
            await self._close_by_rule(position, ExitReason.KILL_SWITCH)
        elif position.hold_until is not None and self._now() >= position.hold_until:
            await self._close_by_rule(position, ExitReason.HOLD_OVER)

    async def _place_level(
        self, venue: OrderVenue, position: OpenTrade, purpose: Literal["stop", "target"], trigger: Decimal | None
    ) -> None:
        """The new order stands before the old one goes: there is no moment without a stop."""
        standing = [order for order in self._orders_at(venue.exchange, position.symbol) if order.purpose == purpose]
        wanted = next((o for o in standing if o.request.trigger == trigger and o.left == position.quantity), None)
        if wanted is None and trigger is not None:
            number = sum(
                order.purpose == purpose
                for order in self._orders_of(self.book.intents[position.intent], venue.exchange)
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
            await self._try(self._plan_and_send(venue, position.intent, purpose, request))
            wanted = self.book.orders.get(request.client_id)
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
            if self._now() - min(waiting, default=wanted.planned) > UNPROTECTED_MS:
                await self._close_by_rule(position, ExitReason.UNDONE)
            return
        for order in standing:
            if order is not wanted and not order.status.final:
                await self._cancel(venue, order)

    async def _watch_levels(self, venue: OrderVenue, position: OpenTrade) -> None:
        passed = _passed_level(position, (await venue.quote(position.symbol)).mark)
        if passed is not None:
            await self._close_by_rule(position, passed)

    async def _close_by_rule(self, position: OpenTrade, reason: ExitReason) -> None:
        """Again and again until nothing is held, and no faster than a venue that refuses can bear. What is too small
        to be sold waits until it is worth enough."""
        refused = self._refused.get(position.symbol)
        if refused is not None and self._now() - refused < CLOSE_AGAIN_MS:
            return
        if await self._why_unsellable(position) is None:
            await self.store_close(position.symbol, reason, position.id)

    async def _why_unsellable(self, position: OpenTrade) -> str | None:
        """Why no exit of a position can be sent: at a spot exchange it has the minimum of every order. None where it
        can, and where nobody can say."""
        if position.exchange not in SPOT:
            return None
        try:
            filters = await self.filters(position.exchange, position.symbol)
            mark = (await self.quote(position.exchange, position.symbol)).mark
        except Unavailable:
            return None
        if fits(position.quantity, mark, filters):
            return None
        return f"{position.quantity} {position.symbol} at {mark} is less than {position.exchange} takes"

    async def _cancel_leftovers(self, venue: OrderVenue, symbol: Symbol) -> None:
        """Orders that would close what is not held, for when the stop is filled the target goes and the other way, and
        when somebody turned the position both; and entries whose intent is over."""
        place = (venue.exchange, symbol)
        for order in self._orders_at(venue.exchange, symbol):
            position = self.book.positions.get(place)
            if order.purpose == "entry":
                over = bool(order.intent) and order.intent not in self.book.open_intents
            elif position is None:
                over = order.request.reduce_only and place not in self._unbooked
            else:
                over = bool(order.intent) and order.request.side is opening_side(position.side)
            if over:
                await self._try(self._cancel(venue, order))

    # -- parts

    async def _plan_and_send(self, venue: OrderVenue, intent: str, purpose: Purpose, request: OrderRequest) -> None:
        await self._write([OrderPlanned(at=self._at(), intent=intent, purpose=purpose, order=request)])
        await self._send(venue, self.book.orders[request.client_id])

    async def lock(self, symbol: Symbol | None, reason: str) -> None:
        """Stop taking risk until somebody has looked."""
        known = self.book.locks.get((Protection.RECONCILIATION, symbol))
        if known is None or known.reason != reason[:600]:
            event = LockSet(
                at=self._at(), protection=Protection.RECONCILIATION, symbol=symbol, until=None, reason=reason[:600]
            )
            await self._write([event])

    async def _write(self, events: Sequence[TradeEvent]) -> None:
        await self._writer.write(events)

    def _venue(self, exchange: Exchange) -> OrderVenue:
        venue = self._venues.get(exchange)
        if venue is None:
            raise Unavailable(f"No orders can be placed at {exchange} here.")
        return venue

    def _at(self) -> Millis:
        return Millis(max(self.book.newest, self._now()))

    def _orders_at(self, exchange: Exchange, symbol: Symbol | None = None) -> list[TrackedOrder]:
        return [
            order
            for order in self.book.open_orders.values()
            if order.request.exchange is exchange and symbol in (None, order.request.symbol)
        ]

    def _entry_orders(self, place: Place) -> list[TrackedOrder]:
        """Of the desk, that wait or whose end is not known."""
        return [order for order in self._orders_at(*place) if order.purpose == "entry" and order.intent]

    def _orders_of(self, tracked: TrackedIntent, exchange: Exchange) -> list[TrackedOrder]:
        found = (self.book.orders[id] for id in tracked.orders)
        return [order for order in found if order.request.exchange is exchange]

    def _open_entries(self, symbol: Symbol) -> list[TrackedIntent]:
        return [
            tracked
            for tracked in self.book.open_intents.values()
            if tracked.intent.kind is IntentKind.OPEN and tracked.intent.symbol is symbol
        ]

    def _is_closing(self, symbol: Symbol) -> bool:
        return any(
            tracked.intent.kind is IntentKind.CLOSE and tracked.intent.symbol is symbol
            for tracked in self.book.open_intents.values()
        )

    def _closed_since(self, symbol: Symbol, moment: Millis) -> bool:
        for summary in reversed(self.book.closed):
            if summary.closed < moment:
                return False
            if summary.symbol is symbol:
                return True
        return False

    def _first_moment(self, place: Place) -> Millis:
        """From when fills and funding of a place may be unbooked."""
        known = self._asked_from.get(place)
        if known is not None:
            return known
        exchange, symbol = place
        times = [order.planned for order in self._orders_at(exchange, symbol)]
        if (position := self.book.positions.get(place)) is not None:
            times.append(position.opened)
        return Millis(max(0, min(times, default=self._now()) - OVERLAP_MS))


def _passed_level(position: OpenTrade, mark: Decimal) -> ExitReason | None:
    """The level of a position that the mark is at or beyond; of both the stop."""
    sign = 1 if position.side is Side.LONG else -1
    if position.stop is not None and sign * (mark - position.stop) <= 0:
        return ExitReason.STOP
    if position.target is not None and sign * (mark - position.target) >= 0:
        return ExitReason.TARGET
    return None


def _entry_order(order: TrackedOrder) -> EntryOrder:
    return EntryOrder(order.status, order.filled, order.expires, order.request.type, order.request.time_in_force)


def _find_rejected(orders: Iterable[TrackedOrder]) -> list[TrackedOrder]:
    return [order for order in orders if order.status is OrderStatus.REJECTED]
