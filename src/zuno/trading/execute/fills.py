"""An order at its venue: sent once, found again, cancelled; its fills and its funding, each booked once."""

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from zuno.kernel.errors import Broken, Refused, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.execute.intents import build_close_intent, build_exit, find_unlogged_close
from zuno.trading.execute.venue_context import OVERLAP_MS, UNRESPONSIVE_MS, VenueContext
from zuno.trading.model import trade_events
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Side
from zuno.trading.model.orders import (
    OUR_PREFIX,
    ZERO,
    ClientId,
    Fill,
    FundingPayment,
    Order,
    OrderRequest,
    OrderSide,
    OrderStatus,
    opening_side,
)
from zuno.trading.rules.book_state import Purpose, TrackedOrder

SENDING_MS: Final = MINUTE_MS
"""How long an entry that was planned may still be on its way from another process."""
ARRIVING_MS: Final = 6_000
"""How long after a send without a reply an order may still arrive."""
LISTED_MS: Final = 15_000
"""How long after it took an order the exchange may not find it yet."""
RESEND_MS: Final = ARRIVING_MS + LISTED_MS
"""How long after a send without a reply an order is not sent again. What another process planned may have been sent
until this one began."""
FUNDING_EVERY_MS: Final = 3 * MINUTE_MS
"""How often funding is asked for while a position is open; also after each full hour, and when a trade closes."""
FUNDING_AGAIN_MS: Final = MINUTE_MS // 2
"""How soon it is asked for again after it could not be read."""
LATE_FUNDING_MS: Final = 10 * MINUTE_MS
"""For so long after a close a payment may be listed that was settled before it."""
FUNDING_PATIENCE: Final = 3.0
"""Seconds an exchange may take to list funding: nothing else waits longer for it."""


# -- sending


async def plan_and_send(
    venue: VenueContext,
    intent: str,
    purpose: Purpose,
    request: OrderRequest,
    lot: Decimal | None = None,
    expires: Millis | None = None,
) -> None:
    """Write down an order that protects or closes, then send it."""
    planned = trade_events.OrderPlanned(
        at=venue.account.event_time(), intent=intent, purpose=purpose, order=request, expires=expires, lot=lot
    )
    await venue.account.write([planned])
    await _send_exit(venue, venue.book.orders[request.client_id], first=True)


async def send_exit_again(venue: VenueContext, tracked: TrackedOrder) -> None:
    order = await find_planned(venue, tracked)
    if order is not None:
        await book_orders(venue, tracked.request.symbol, [order])
    else:
        await _send_exit(venue, tracked)


async def _send_exit(venue: VenueContext, tracked: TrackedOrder, *, first: bool = False) -> None:
    symbol = tracked.request.symbol
    if venue.position(symbol) is None and symbol not in venue.memory.unbooked:
        await give_up(venue, tracked, "nothing is held any more")
    else:
        await send(venue, tracked, first=first)


async def send(venue: VenueContext, tracked: TrackedOrder, *, first: bool = False) -> None:
    """Place an order that the venue does not have. `place` looks it up once more. `first`: nobody has sent it."""
    request, unsure = tracked.request, venue.memory.unsure
    harmless = closes_all(venue, request)
    asked_again = not first and harmless and tracked.purpose == "exit" and may_arrive(venue, tracked)
    try:
        order = await venue.port.place(request, tracked.expires, unread=first or harmless)
    except Unavailable:
        unsure[request.client_id] = venue.now()
        raise
    if asked_again and order.status is OrderStatus.REJECTED:  # most often because the first has closed everything
        raise Unavailable(f"{venue.exchange} refused {request.client_id}, and may have taken it before")
    unsure[request.client_id] = venue.now()
    await book_orders(venue, request.symbol, [order])
    unsure.pop(request.client_id, None)


async def find_order(venue: VenueContext, tracked: TrackedOrder) -> Order | None:
    request = tracked.request
    return await venue.port.find(request.symbol, request.client_id, request.type)


async def find_planned(venue: VenueContext, tracked: TrackedOrder) -> Order | None:
    """None: the venue does not have it, and will not, or sent twice it does no harm. `Unavailable` while an order
    without a reply may arrive."""
    request, id = tracked.request, tracked.request.client_id
    order = await find_order(venue, tracked)
    if order is None and closes_all(venue, request):
        waiting = id in venue.memory.unsure and may_arrive(venue, tracked, ARRIVING_MS)
    else:
        waiting = order is None and may_arrive(venue, tracked)
    if waiting:
        raise Unavailable(f"whether {venue.exchange} has the order {id} is not sure yet")
    venue.memory.unsure.pop(id, None)
    return order


def closes_all(venue: VenueContext, request: OrderRequest) -> bool:
    """Whether an order only reduces, and by all that the venue holds of a symbol: sent twice it does no harm."""
    position, shared = venue.position(request.symbol), venue.shares(request.symbol)
    whole = not shared and (position is None or position.quantity <= request.quantity)
    return whole and request.reduce_only and venue.exchange.reduce_only


def may_arrive(venue: VenueContext, tracked: TrackedOrder, within: int = RESEND_MS) -> bool:
    """Whether the venue may come to show an order yet: it was sent without a reply, or by another process."""
    account, now = venue.account, venue.now()
    sent = venue.memory.unsure.get(tracked.request.client_id)
    if sent is None and not venue.port.simulated:
        began = now if account.started is None else account.started
        if tracked.purpose != "entry":
            sent = Millis(max(began, min(tracked.planned, now)))
        elif account.gate.entries:
            sent = began
    return sent is not None and abs(now - sent) < within


async def give_up(venue: VenueContext, tracked: TrackedOrder, reason: str) -> None:
    """A process that planned it may be sending it, or have sent it: for a while it is looked for."""
    id = tracked.request.client_id
    await venue.account.write([trade_events.OrderLost(at=venue.account.event_time(), client_id=id, reason=reason)])
    venue.memory.unsure[id] = venue.now()


async def find_given_up(venue: VenueContext, symbol: Symbol) -> list[tuple[TrackedOrder, Order]]:
    """Orders that the book has as over and that came to the venue all the same: another process gave them up while
    this one sent them, or the other way round. What stands of them is cancelled."""
    came: list[tuple[TrackedOrder, Order]] = []
    for tracked in venue.unsure_orders(symbol):
        if not tracked.status.final:
            continue
        order = await find_order(venue, tracked)
        if order is None and may_arrive(venue, tracked):
            continue
        if order is not None and not order.status.final:
            order = await venue.port.cancel(symbol, tracked.request.client_id, tracked.request.type)
        if order is None or order.filled <= min(tracked.filled, tracked.booked):
            venue.memory.unsure.pop(tracked.request.client_id, None)
        else:
            came.append((tracked, order))
    return came


async def cancel_order(venue: VenueContext, tracked: TrackedOrder) -> None:
    request = tracked.request
    if tracked.status is OrderStatus.PLANNED and await find_planned(venue, tracked) is None:
        if venue.account.gate.entries or venue.now() - tracked.planned >= SENDING_MS:
            await give_up(venue, tracked, "cancelled")
        return
    ended = await venue.port.cancel(request.symbol, request.client_id, request.type)
    await book_orders(venue, request.symbol, [ended])


async def cancel_protection(
    venue: VenueContext, symbol: Symbol, purposes: tuple[Purpose, ...] = ("stop", "target")
) -> None:
    """Where a stop, or an exit that waits, binds what is to be sold, it goes first. `Unavailable` while one may stand.
    Where orders cannot be looked up it is left standing: what is to replace it could not be sent."""
    for order in venue.open_orders(symbol):
        if order.purpose in purposes:
            await find_order(venue, order)
            await cancel_order(venue, order)


# -- booking


async def take_news(venue: VenueContext, symbol: Symbol) -> None:
    """What became of every order of a symbol, and its fills. An order that cannot be read keeps back no other."""
    orders: list[Order] = []
    unread: ZunoError | None = None
    for tracked in venue.open_orders(symbol):
        id = tracked.request.client_id
        if tracked.status is OrderStatus.PLANNED:
            continue
        try:
            order = await find_order(venue, tracked)
        except Unavailable as error:
            if venue.now() - venue.begun >= UNRESPONSIVE_MS:
                raise
            unread = error
            continue
        if order is not None:
            orders.append(order)
        elif abs(venue.now() - max(tracked.planned, tracked.updated or tracked.planned)) < LISTED_MS:
            unread = Unavailable(f"{venue.exchange} does not find the new order {id} yet")
        else:
            why = f"{venue.exchange} does not know the order {id} any more"
            await venue.account.lock(symbol, why)
            await venue.account.write([trade_events.OrderLost(at=venue.account.event_time(), client_id=id, reason=why)])
    if orders or venue.position(symbol) is not None:
        await book_orders(venue, symbol, orders)
    if unread is not None:
        raise unread


async def book_orders(venue: VenueContext, symbol: Symbol, orders: Sequence[Order]) -> None:
    """Write what is new of these orders, and every fill that is not booked yet. A fill that closes is written with
    the funding of its trade, as far as that can be read."""
    account, book, now = venue.account, venue.book, venue.account.event_time()
    since = _first_moment(venue, symbol)
    news: list[tuple[int, int, Order | Fill | FundingPayment]] = [
        (order.updated, 2, order) for order in orders if book.is_update(order)
    ]
    unread: ZunoError | None = None
    try:
        fills = await _read_fills(venue, symbol, since, orders)
    except Broken:
        raise
    except ZunoError as error:
        unread = error
        fills = await _read_order_fills(venue, orders)
        if not fills:
            raise
    news += [(fill.at, 0, fill) for fill in fills]
    position = venue.position(symbol)
    reducing = position is not None and any(fill.side is not opening_side(position.side) for fill in fills)
    if reducing and not _is_funding_troubled(venue, symbol):
        news += [(payment.at, 1, payment) for payment in await _try_funding(venue, symbol)]
    news.sort(key=lambda item: item[:2])
    events: list[trade_events.TradeEvent] = []
    strangers, recognised = list[str](), set[ClientId]()
    newest = book.newest
    for at, _, item in news:
        newest = Millis(max(newest, min(at, now)))
        if isinstance(item, Fill):
            known = item.client_id in book.orders or item.client_id in recognised
            if not known and not item.liquidation:
                written = _list_unlogged(venue, item, fills, newest, events)
                events += written
                if written:
                    recognised.add(item.client_id)
                else:
                    strangers.append(item.id)
            events.append(trade_events.FillBooked(at=newest, fill=item))
        elif isinstance(item, FundingPayment):
            events.append(trade_events.FundingBooked(at=newest, payment=item))
        else:
            events.append(trade_events.OrderUpdated(at=newest, order=item))
    try:
        await account.write(events)
    except Refused as error:
        await account.lock(symbol, f"what {venue.exchange} says cannot be booked: {error}")
        raise Unavailable(f"{venue.exchange} and the book disagree about {symbol}: {error}") from error
    for tracked in (book.orders[id] for id in dict.fromkeys(fill.client_id for fill in fills) if id in book.orders):
        if tracked.booked > (ordered := tracked.request.quantity):
            why = f"{tracked.booked} were filled of {tracked.request.client_id}, which was of {ordered}"
            await account.lock(symbol, why)
    if strangers:
        await account.lock(symbol, f"fills at {venue.exchange} are not of this desk's orders: {', '.join(strangers)}")
    if paid := ", ".join(f"{fill.foreign_fee} for {fill.id}" for fill in fills if fill.foreign_fee):
        await account.lock(symbol, f"{venue.exchange} took fees in another currency; they are booked as 0: {paid}")
    if unread is not None:
        venue.memory.fills_from.setdefault(symbol, since)
        raise unread
    venue.memory.fills_from[symbol] = Millis(max(since, now - OVERLAP_MS))


def _list_unlogged(
    venue: VenueContext, fill: Fill, fills: Sequence[Fill], at: Millis, before: Sequence[trade_events.TradeEvent]
) -> list[trade_events.TradeEvent]:
    """What could not be written when an exit of ours was sent; empty for a stranger's. A kill switch that was thrown
    then locks now. `before`: what these news write already."""
    book, ours = venue.book, fill.client_id.startswith(OUR_PREFIX)
    close = find_unlogged_close(book, venue.account.name, fill) if ours else None
    if close is None:
        return []
    events: list[trade_events.TradeEvent] = []
    stored = {event.intent.id for event in before if isinstance(event, trade_events.IntentStored)}
    if close.id not in book.intents and close.id not in stored:
        side = Side.LONG if fill.side is OrderSide.SELL else Side.SHORT
        mandate = venue.account.mandate_hash()
        intent = build_close_intent(
            close.id, "unwritten", fill.symbol, side, fill.price, close.reason, mandate, close.sleeve
        )
        events.append(trade_events.IntentStored(at=at, intent=intent, ruling=None))
    protection = trade_events.Protection.KILL_SWITCH
    kill = (protection, None)
    locked = kill in book.locks or any(isinstance(event, trade_events.LockSet) for event in before)
    if close.killed and not locked and book.lifted.get(kill, Millis(0)) < fill.at:
        why = "kill switch, thrown while the log could not be written"
        events.append(trade_events.LockSet(at=at, protection=protection, symbol=None, until=None, reason=why))
    filled = sum((other.quantity for other in fills if other.client_id == fill.client_id), ZERO)
    request = build_exit(fill.client_id, fill.exchange, fill.symbol, fill.side, filled)
    known = venue.memory.filters.get(fill.symbol)
    lot = known.lot if known is not None and venue.exchange.spot else None
    return [*events, trade_events.OrderPlanned(at=at, intent=close.id, purpose="exit", order=request, lot=lot)]


async def _read_fills(venue: VenueContext, symbol: Symbol, since: Millis, orders: Sequence[Order]) -> list[Fill]:
    """Those that are not booked yet. A fill may be told long after it happened: where they do not add up to what an
    order says, they are asked for from its beginning."""
    fills = _list_new(venue, await venue.port.fills(symbol, since))
    short = _find_short(venue, orders, fills)
    if short:
        start = Millis(max(0, min(order.planned for order in short) - OVERLAP_MS))
        fills = _list_new(venue, await venue.port.fills(symbol, start))
        short = _find_short(venue, orders, fills)
    if short:
        raise Unavailable(f"{venue.exchange} lists fewer fills of {short[0].request.client_id} than it says it has")
    return fills


async def _read_order_fills(venue: VenueContext, orders: Sequence[Order]) -> list[Fill]:
    """Those that are not booked yet, as the orders themselves list them: all of these orders, or none."""
    fills: list[Fill] = []
    for order in orders:
        if _find_short(venue, [order], []):
            fills += _list_new(venue, await venue.port.order_fills(order) or ())
    return [] if _find_short(venue, orders, fills) else fills


def _list_new(venue: VenueContext, fills: Sequence[Fill]) -> list[Fill]:
    return [fill for fill in fills if (venue.exchange, fill.id) not in venue.book.fills_by_id]


def _find_short(venue: VenueContext, orders: Sequence[Order], fills: Sequence[Fill]) -> list[TrackedOrder]:
    """Orders that were filled with more than is booked of them and among these fills."""
    short: list[TrackedOrder] = []
    for order in orders:
        known = venue.book.orders.get(order.request.client_id)
        listed = sum((fill.executed for fill in fills if fill.client_id == order.request.client_id), ZERO)
        if known is not None and order.filled > known.booked + listed:
            short.append(known)
    return short


def _first_moment(venue: VenueContext, symbol: Symbol) -> Millis:
    """From when fills of a symbol may be unbooked."""
    known, now = venue.memory.fills_from.get(symbol), venue.now()
    if known is not None:
        return Millis(min(known, now - OVERLAP_MS))
    times = [now, *(order.planned for order in venue.open_orders(symbol))]
    if (position := venue.position(symbol)) is not None:
        times.append(position.opened)
    return Millis(max(0, min(times) - OVERLAP_MS))


# -- funding


async def settle_funding(venue: VenueContext, symbols: Sequence[Symbol], *, anew: bool) -> None:
    """Book what was paid for positions in these symbols, and for those that ended a moment ago."""
    now, memory = venue.now(), venue.memory
    symbols = [symbol for symbol in symbols if venue.position(symbol) is not None]
    for summary in reversed(venue.book.closed):
        if summary.closed < now - LATE_FUNDING_MS:
            break
        symbols += [summary.symbol] if summary.exchange == venue.exchange else []
    for symbol in dict.fromkeys(symbols):
        asked = memory.funding_asked.get(symbol)
        pause = FUNDING_AGAIN_MS if symbol in memory.funding_troubles else FUNDING_EVERY_MS
        recent = asked is not None and asked // HOUR_MS == now // HOUR_MS and now - asked < pause
        if recent and not anew:
            continue
        payments, at = await _try_funding(venue, symbol), venue.account.event_time()
        try:
            await venue.account.write([trade_events.FundingBooked(at=at, payment=payment) for payment in payments])
        except Refused as error:
            memory.funding_troubles[symbol] = f"funding of {symbol} cannot be booked: {error}"


async def _try_funding(venue: VenueContext, symbol: Symbol) -> list[FundingPayment]:
    """Payments that are not booked yet. Where they cannot be read that is said, and nothing waits for it."""
    now, memory = venue.account.event_time(), venue.memory
    if not venue.exchange.funding_hours:
        return []
    since = memory.funding_from.get(symbol)
    if since is None:
        since = _first_funding(venue, symbol)
    memory.funding_asked[symbol] = now
    try:
        async with asyncio.timeout(None if venue.port.simulated else FUNDING_PATIENCE):
            paid = await venue.port.funding(symbol, since)
    except Broken:
        raise
    except (ZunoError, TimeoutError) as error:
        why = str(error) or f"no answer within {FUNDING_PATIENCE:g} s"
        memory.funding_troubles[symbol] = f"funding of {symbol} cannot be read: {why}"
        return []
    memory.funding_troubles.pop(symbol, None)
    memory.funding_from[symbol] = Millis(max(since, now - LATE_FUNDING_MS))
    return [payment for payment in paid if (venue.exchange, payment.id) not in venue.book.payment_ids]


def _is_funding_troubled(venue: VenueContext, symbol: Symbol) -> bool:
    asked = venue.memory.funding_asked.get(symbol)
    troubled = symbol in venue.memory.funding_troubles
    return asked is not None and troubled and 0 <= venue.now() - asked < FUNDING_AGAIN_MS


def _first_funding(venue: VenueContext, symbol: Symbol) -> Millis:
    """From when funding of a symbol may be unbooked: when its trade was opened."""
    position, closed = venue.position(symbol), reversed(venue.book.closed)
    ended = (trade.opened for trade in closed if (trade.exchange, trade.symbol) == (venue.exchange, symbol))
    opened = next(ended, venue.now()) if position is None else position.opened
    return Millis(max(0, opened - OVERLAP_MS))
