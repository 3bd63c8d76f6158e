"""Closes: everything of a symbol out, entries that wait cancelled, and what could not be booked undone. A full disk
keeps nobody from getting out: what a close sends while the log cannot be written is found again by its ids."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Final

from zuno.kernel.errors import NotFound, Unavailable, ZunoError
from zuno.markets.market import Symbol
from zuno.trading.execute import fills
from zuno.trading.execute.intents import EXIT_SERIES, build_close_intent, build_exit, find_close_id, list_close_ids
from zuno.trading.execute.venue_context import AccountContext, VenueContext
from zuno.trading.model.cycle import Ruling
from zuno.trading.model.known import pick
from zuno.trading.model.market import MINUTE_MS, Side
from zuno.trading.model.orders import ZERO, ClientId, OrderStatus, OrderType, TimeInForce, client_order_id, opening_side
from zuno.trading.model.sleeves import DEBATE, TWO_LEGGED
from zuno.trading.model.trade_events import ExitReason, IntentKind, IntentStored, Protection, SleevesCrossed
from zuno.trading.rules.book_state import OpenTrade, TrackedIntent, TrackedOrder
from zuno.trading.rules.execution_styles import EntryStep, EntryTask, meets_minimum, next_entry_step

MAX_EXIT_TRIES: Final = 3
UNPROTECTED_MS: Final = MINUTE_MS
"""How long a position may wait for its stop before the entry is undone."""


async def store_close(
    account: AccountContext,
    symbol: Symbol,
    reason: ExitReason,
    decision: str,
    id: str | None = None,
    ruling: Ruling | None = None,
    sleeve: str = DEBATE,
) -> str | None:
    """Write down that what a sleeve has of a symbol is to be closed; None where nothing of it is held or ordered."""
    book = account.book
    if closing := book.list_intents(IntentKind.CLOSE, symbol, sleeve):
        return closing[0].intent.id
    held, entries = book.list_held(sleeve, symbol), book.list_intents(IntentKind.OPEN, symbol, sleeve)
    if not held and not entries and not book.list_ordered(sleeve, symbol):
        return None
    side = held[0].side if held else Side.LONG
    mark = held[0].entry if held else entries[0].intent.mark if entries else Decimal(1)
    if id is None or id in book.intents:
        id = find_close_id(book, account.name, symbol, sleeve)
    intent = build_close_intent(id, decision, symbol, side, mark, reason, account.mandate_hash(), sleeve)
    await account.write([IntentStored(at=account.event_time(), intent=intent, ruling=ruling)])
    return id


async def work_closes(venue: VenueContext, symbol: Symbol) -> None:
    for tracked in venue.book.list_intents(IntentKind.CLOSE, symbol, venue.sleeve):
        await venue.attempt(_work_close(venue, tracked))


async def _work_close(venue: VenueContext, tracked: TrackedIntent) -> None:
    symbol = tracked.intent.symbol
    await _cancel_entries(venue, symbol)
    position = venue.position(symbol)
    venue.memory.unsellable.pop(symbol, None)
    unbooked = await _find_unbooked(venue, symbol)
    if position is None and not unbooked:
        return
    exits = venue.orders_of(tracked, "exit")
    if not exits and venue.exchange.spot:
        await _book_unlogged_exits(venue, tracked)
        exits, position = venue.orders_of(tracked, "exit"), venue.position(symbol)
        if position is None:
            return
    if any(not order.status.final for order in exits):
        return
    if len(_find_rejected(exits)) >= MAX_EXIT_TRIES:
        if position is not None:
            await _cross_rest(venue, tracked, position)
        return
    if exits and not exits[-1].filled and exits[-1].planned >= venue.now():
        return  # nothing stood against it: the next look tries again
    if position is not None and (why := await why_unsellable(venue, position)) is not None:
        venue.memory.unsellable[symbol] = why
        return
    if venue.binds_balance:
        await fills.cancel_protection(venue, symbol, ("stop", "target", "exit"))
    elif venue.shares(symbol):  # left standing they would take what is another's; an exit waits for no cancel
        await venue.attempt(fills.cancel_protection(venue, symbol, ("stop", "target", "exit")))
    held, position = position, venue.position(symbol)
    if position is None and held is not None:
        return
    filters = await venue.find_filters(symbol)
    quantity = unbooked if position is None else position.quantity + unbooked
    side = venue.entry_orders(symbol)[0].request.side if position is None else opening_side(position.side)
    most = quantity if filters is None else min(quantity, filters.max_quantity)
    most, lot = await venue.fit_sale(symbol, most)
    if position is not None and await _cross_rest(venue, tracked, position):
        return
    # Counted as a close without the log does, too: sent by both, an exit is one order.
    ids = (client_order_id(tracked.intent.id, venue.exchange, "exit", number) for number in count())
    client_id = next(id for id in ids if id not in venue.book.orders)
    request = build_exit(client_id, venue.exchange, symbol, side.opposite, most, position, netted=venue.nets(symbol))
    await fills.plan_and_send(venue, tracked.intent.id, "exit", request, lot)


async def _cross_rest(venue: VenueContext, tracked: TrackedIntent, position: OpenTrade) -> bool:
    """Give what is too small for an order that does not only reduce, or what the exchange refused again and again, to a
    sleeve that holds the other side, at the mark: at the exchange the two are none. What hedges is not taken for it:
    whether nothing is to be sent now."""
    held = [] if venue.exchange.spot else venue.book.positions_at(venue.exchange, position.symbol)
    others = [trade for trade in held if trade.side is not position.side and trade.quantity >= position.quantity]
    if not others or (filters := await venue.find_filters(position.symbol)) is None:
        return False
    mark = (await venue.port.quote(position.symbol)).mark
    refused = len(_find_rejected(venue.orders_of(tracked, "exit"))) >= MAX_EXIT_TRIES
    if meets_minimum(position.quantity, mark, filters) and not refused:
        return False
    hedging = [] if position.sleeve in TWO_LEGGED else [trade for trade in others if trade.sleeve in TWO_LEGGED]
    kept = [trade for trade in hedging if not venue.account.is_closing(position.symbol, trade.sleeve)]
    other = next((trade for trade in others if trade not in kept), None)
    if other is None:
        why = f"{position.quantity} {position.symbol} is less than {venue.exchange} takes beside what hedges there"
        venue.memory.unsellable[position.symbol] = why
        return True
    seller, buyer = sorted((position, other), key=lambda trade: -trade.side.sign)
    names = {"key": f"{tracked.intent.id}-{venue.exchange}", "seller": seller.sleeve, "buyer": buyer.sleeve}
    place = pick(position, "exchange", "symbol", "quantity")
    await venue.account.write([SleevesCrossed(at=venue.account.event_time(), price=mark, **place, **names)])
    return True


async def work_cut(venue: VenueContext, symbol: Symbol) -> None:
    """The next exit of a leg of which a part goes; one that is refused again and again is left to a close of both."""
    for tracked in venue.book.list_intents(IntentKind.CUT, symbol, venue.sleeve):
        if tracked.intent.take_at is not None:
            await venue.attempt(_work_target_cut(venue, tracked))
            continue
        exits = venue.orders_of(tracked, "exit")
        position, left = venue.position(symbol), venue.book.find_left(tracked).get(venue.exchange, ZERO)
        waiting = venue.is_closing(symbol) or any(not order.status.final for order in exits)
        if position is None or left <= 0 or waiting or len(_find_rejected(exits)) >= MAX_EXIT_TRIES:
            continue
        id = client_order_id(tracked.intent.id, venue.exchange, "exit", len(exits))
        side = opening_side(position.side).opposite
        quantity = min(left, position.quantity)
        request = build_exit(id, venue.exchange, symbol, side, quantity, position, netted=venue.nets(symbol))
        await venue.attempt(fills.plan_and_send(venue, tracked.intent.id, "exit", request))


async def _work_target_cut(venue: VenueContext, tracked: TrackedIntent) -> None:
    """The next exit toward a smaller target: at the touch, then at the market. Where orders bind, the stop goes."""
    intent, symbol, position = tracked.intent, tracked.intent.symbol, venue.position(tracked.intent.symbol)
    leg = next((leg for leg in intent.legs if leg.exchange == venue.exchange), None)
    if leg is None or position is None or venue.is_closing(symbol):
        return
    side, step = opening_side(position.side).opposite, EntryStep()
    for _ in range(2):  # what has waited long enough is cancelled, and the next is placed at once
        exits = venue.orders_of(tracked, "exit")
        if any(order.status is OrderStatus.PLANNED for order in exits):
            return
        quote, filters = await venue.port.quote(symbol), await venue.read_filters(symbol)
        task = EntryTask(
            **pick(intent, "style", "valid_until", "take_at"),
            side=side,
            quantity=leg.quantity,
            stop=ZERO,
            mark=quote.mark,
            atr=ZERO,
            quote=quote,
            filters=filters,
            now=venue.now(),
        )
        step = next_entry_step(task, exits)
        for number in step.cancel:
            await fills.cancel_order(venue, exits[number])
        if not step.cancel:
            break
    if step.done:
        venue.account.ended_legs[intent.id, venue.exchange] = step.why
    for plan in step.place:
        taking = plan.time_in_force is TimeInForce.IOC
        quantity, _ = await venue.fit_sale(symbol, min(plan.quantity, position.quantity))
        bound = sum((order.left for order in venue.open_orders(symbol) if order.request.side is side), ZERO)
        if venue.binds_balance and bound + quantity > position.quantity:
            await fills.cancel_protection(venue, symbol)
            if venue.position(symbol) is not position:
                return
        id = client_order_id(intent.id, venue.exchange, "exit", len(exits))
        exit = build_exit(id, venue.exchange, symbol, side, quantity, position, netted=venue.nets(symbol))
        if not taking:
            exit = exit.model_copy(update=pick(plan, "type", "price", "time_in_force"))
        await fills.plan_and_send(venue, intent.id, "exit", exit, expires=plan.expires)


async def _book_unlogged_exits(venue: VenueContext, tracked: TrackedIntent) -> None:
    """What was sold at a spot exchange while the log could not be written is booked and not sold again: nothing there
    keeps a second sale from selling what is the owner's. `Unavailable` while that is not sure."""
    symbol, sent_next = tracked.intent.symbol, (tracked.intent.id, "exit")
    exits = await find_unlogged_exits(venue, symbol, sent_next)
    if exits.closed:
        await fills.book_orders(venue, symbol, [])
        exits = await find_unlogged_exits(venue, symbol, sent_next)
    if exits.waiting or exits.closed:
        raise Unavailable(f"{venue.exchange} has an exit of {symbol} that is not booked yet")
    if exits.unread is not None:
        if venue.account.has_failed:
            raise Unavailable(f"whether {venue.exchange} sold {symbol} already is unread: {exits.unread}")
        venue.failures.append(str(exits.unread))  # nobody is known to have sold it: an exit waits for no read


async def _find_unbooked(venue: VenueContext, symbol: Symbol) -> Decimal:
    """How much the exchange holds beyond the book though something could not be read: no more than what our own entries
    may have been filled with. A spot balance may be the owner's, and says nothing."""
    entries = venue.entry_orders(symbol)
    unbooked = ZERO
    if venue.failures and entries and not venue.exchange.spot and not venue.list_sharing(symbol):
        position = venue.position(symbol)
        most = sum((order.request.quantity - order.booked for order in entries), ZERO)
        held = next((held for held in await venue.port.positions() if held.symbol == symbol), None)
        if held is not None and opening_side(held.side) is entries[0].request.side:
            unbooked = min(most, held.quantity - (ZERO if position is None else position.quantity))
    if unbooked <= 0:
        venue.memory.unbooked.pop(symbol, None)
        return ZERO
    venue.memory.unbooked.setdefault(symbol, venue.now())
    return unbooked


async def undo_unbooked(venue: VenueContext, symbol: Symbol) -> None:
    """An entry whose fills cannot be read has no stop: after a minute it is undone."""
    if venue.is_closing(symbol) or not await _find_unbooked(venue, symbol):
        return
    if venue.now() - venue.memory.unbooked[symbol] > UNPROTECTED_MS:
        decision = venue.book.intents[venue.entry_orders(symbol)[0].intent].intent.decision
        await store_close(venue.account, symbol, ExitReason.UNDONE, decision, sleeve=venue.sleeve)
        await work_closes(venue, symbol)


async def undo_given_up(venue: VenueContext, symbol: Symbol) -> None:
    """Book what an order was filled with after it was given up. An entry that nobody wants any more is closed."""
    for tracked, order in await fills.find_given_up(venue, symbol):
        wanted = tracked.purpose != "entry" or tracked.intent in venue.book.open_intents
        if not wanted and order.filled > tracked.booked:  # what is booked already is protected
            venue.memory.unwanted[symbol] = tracked.intent
        await fills.book_orders(venue, symbol, [order])
        venue.memory.unsure.pop(tracked.request.client_id, None)
    if (intent := venue.memory.unwanted.get(symbol)) is not None:
        if venue.position(symbol) is not None:
            killed = (Protection.KILL_SWITCH, None) in venue.book.locks
            reason = ExitReason.KILL_SWITCH if killed else ExitReason.UNDONE
            decision = venue.book.intents[intent].intent.decision
            await store_close(venue.account, symbol, reason, decision, sleeve=venue.sleeve)
        venue.memory.unwanted.pop(symbol, None)


async def _cancel_entries(venue: VenueContext, symbol: Symbol) -> None:
    """Nothing new is to be opened: what waits is cancelled, and its intent ends with what it has."""
    for order in venue.open_orders(symbol):
        if order.purpose == "entry":
            await venue.attempt(fills.cancel_order(venue, order))
    account = venue.account
    for tracked in account.book.list_intents(IntentKind.OPEN, symbol, venue.sleeve):
        for leg in tracked.intent.legs:
            if leg.exchange == venue.exchange or leg.exchange not in account.venues:
                account.ended_legs.setdefault((tracked.intent.id, leg.exchange), "the symbol is closed")


def is_closed(account: AccountContext, symbol: Symbol, sleeve: str) -> bool:
    book = account.book
    if book.list_held(sleeve, symbol) or book.list_ordered(sleeve, symbol):
        return False
    return all(is_worked(account, tracked) for tracked in book.list_intents(IntentKind.OPEN, symbol, sleeve))


def is_closed_leg(account: AccountContext, cut: TrackedIntent) -> bool:
    """Whether nothing is left that could be cut, or all of it goes."""
    intent = cut.intent
    held = (account.book.position(leg.exchange, intent.symbol, intent.sleeve) for leg in intent.legs)
    return account.is_closing(intent.symbol, intent.sleeve) or not any(held)


def is_worked(account: AccountContext, tracked: TrackedIntent) -> bool:
    return all((tracked.intent.id, leg.exchange) in account.ended_legs for leg in tracked.intent.legs)


def why_not_closed(account: AccountContext, tracked: TrackedIntent) -> str | None:
    """Why an exit is given up: the venue refused it again and again, or what is left is too small to be sold. Its stop
    stands, and a later close may try."""
    symbol, sleeve = tracked.intent.symbol, tracked.intent.sleeve
    left = [trade.exchange for trade in account.book.list_held(sleeve, symbol)]
    venues = [account.at(exchange, sleeve) for exchange in account.venues if exchange in left]
    small = [venue.memory.unsellable[symbol] for venue in venues if symbol in venue.memory.unsellable]
    if left and len(small) == len(left):
        return "; ".join(small)[:600]
    for venue in venues:
        rejected = _find_rejected(venue.orders_of(tracked, "exit"))
        if len(rejected) >= MAX_EXIT_TRIES:
            return f"{venue.exchange} refused the exit: {rejected[-1].reason}"[:600]
    return None


async def why_unsellable(venue: VenueContext, position: OpenTrade) -> str | None:
    """Why no exit of a position can be sent: a spot exchange takes no order under its minimum, exits included. None
    where one can be, and where filters or price cannot be read."""
    if not venue.exchange.spot:
        return None
    try:
        filters = await venue.read_filters(position.symbol)
        mark = (await venue.port.quote(position.symbol)).mark
    except Unavailable:
        return None
    quantity, _ = await venue.fit_sale(position.symbol, position.quantity)
    if meets_minimum(quantity, mark, filters):
        return None
    return f"{position.quantity} {position.symbol} at {mark} is less than {position.exchange} takes"


def _find_rejected(orders: Iterable[TrackedOrder]) -> list[TrackedOrder]:
    return [order for order in orders if order.status is OrderStatus.REJECTED]


# -- without the log


@dataclass(frozen=True, slots=True)
class UnloggedExits:
    closed: Decimal = ZERO
    """And is not booked."""
    waiting: ClientId | None = None
    """One that stands at the exchange and has not ended."""
    unread: ZunoError | None = None
    """Why one could not be looked up."""


async def find_unlogged_exits(venue: VenueContext, symbol: Symbol, besides: tuple[str, str]) -> UnloggedExits:
    """What was closed at an exchange without being written, up to the first that cannot be read. `besides`: the close
    and the series that are sent next, for sent again those are the same orders."""
    closed, waiting = ZERO, None
    for id in list_close_ids(venue.book, venue.account.name, venue.exchange, symbol, venue.sleeve):
        for series in EXIT_SERIES:
            if (id, series) == besides:
                continue
            _, exits = await _walk_exits(venue, symbol, id, series)
            closed, waiting = closed + exits.closed, waiting or exits.waiting
            if exits.unread is not None:
                return UnloggedExits(closed, waiting, exits.unread)
    return UnloggedExits(closed, waiting)


async def close_unlogged(venue: VenueContext, symbol: Symbol, *, unlocked_kill: bool) -> list[str]:
    """Cancel our entries and close what is ours, under the ids of the close that could not be written: sent again, they
    are the same orders. `unlocked_kill`: the kill switch closes and its lock is not written, which shows in the ids.
    Returns what became of each order, in words."""
    exchange, port, report = venue.exchange, venue.port, list[str]()
    position, shared = venue.position(symbol), venue.shares(symbol)
    side, ours = (None, ZERO) if position is None else (opening_side(position.side), position.quantity)
    for order in venue.entry_orders(symbol):
        request = order.request
        try:
            ended = await port.cancel(symbol, request.client_id, request.type)
        except NotFound:
            continue  # it was never sent
        except ZunoError as error:
            report.append(f"the entry {request.client_id} may still wait: {error}")
            # It may be filled. A balance of the owner's, or of other sleeves, says nothing.
            filled = order.booked if venue.exchange.spot or shared else request.quantity
        else:
            report.append(f"the entry {request.client_id} is {ended.status}")
            filled = ended.filled
        side, ours = side or request.side, ours + filled - order.booked
    for order in venue.open_orders(symbol) if venue.binds_balance or shared else ():
        if order.purpose in ("stop", "target"):
            try:
                await fills.find_order(venue, order)  # unread, it is left standing: an exit could not be sent either
                ended = await port.cancel(symbol, order.request.client_id, order.request.type)
                ours -= ended.filled - order.booked
            except NotFound:
                continue
            except ZunoError as error:
                report.append(f"the {order.purpose} {order.request.client_id} may still bind the balance: {error}")
    if side is None or ours <= 0:
        return report
    id = find_close_id(venue.book, venue.account.name, symbol, venue.sleeve)
    # At a spot exchange a desk that works the stored close beside this must find the same order.
    sending = "kill" if unlocked_kill and (not venue.exchange.spot or id not in venue.book.intents) else "exit"
    client_id, before = await _walk_exits(venue, symbol, id, sending)
    others = await find_unlogged_exits(venue, symbol, (id, sending))
    ours -= before.closed + others.closed
    if not venue.exchange.spot and not shared:
        with suppress(ZunoError):  # unread: an exit that only reduces may ask for too much
            there = next((held for held in await port.positions() if held.symbol == symbol), None)
            ours = min(ours, there.quantity) if there and opening_side(there.side) is side else ZERO
    elif ours > 0 and (venue.exchange.spot or venue.nets(symbol)) and (others.waiting or others.unread):
        # Nothing keeps a second sale there from selling what is the owner's, or from turning the position.
        unread = f"earlier exits are unread: {others.unread}"
        why = f"the exit {others.waiting} is not over" if others.waiting else unread
        return [*report, f"no exit of {symbol} at {exchange}: {why}"]
    if ours <= 0:
        return report
    with suppress(ZunoError):
        ours = min(ours, (await venue.read_filters(symbol)).max_quantity)
        ours = (await venue.fit_sale(symbol, ours))[0]
    exit = build_exit(client_id, exchange, symbol, side.opposite, ours, position, netted=venue.nets(symbol))
    try:
        sent = await port.place(exit, unread=fills.closes_all(venue, exit))
        report.append(f"the exit of {ours} {symbol} at {exchange} is {sent.status} {sent.reason}".rstrip())
    except ZunoError as error:
        report.append(f"the exit of {ours} {symbol} at {exchange} may not have arrived: {error}")
    return report


async def _walk_exits(venue: VenueContext, symbol: Symbol, id: str, series: str) -> tuple[ClientId, UnloggedExits]:
    """The first exit of a series that has not ended, and what the exits up to it closed without being booked."""
    closed, numbers = ZERO, count()
    while True:
        client_id = client_order_id(id, venue.exchange, series, next(numbers))
        known = venue.book.orders.get(client_id)
        if known is None or not known.status.final:
            try:
                exit = await venue.port.find(symbol, client_id, OrderType.MARKET)
            except ZunoError as error:
                return client_id, UnloggedExits(closed, unread=error)
            if exit is None or not exit.status.final:
                return client_id, UnloggedExits(closed, waiting=None if exit is None else client_id)
            closed += exit.filled - (ZERO if known is None else known.booked)
