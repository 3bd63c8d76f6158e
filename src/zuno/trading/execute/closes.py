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
from zuno.markets.venues import Venue
from zuno.trading.execute.fills import (
    book_orders,
    cancel_order,
    cancel_protection,
    find_given_up,
    find_order,
    plan_and_send,
)
from zuno.trading.execute.intents import EXIT_SERIES, build_close_intent, build_exit, find_close_id, list_close_ids
from zuno.trading.execute.venue_context import AccountContext, VenueContext
from zuno.trading.model.cycle import Ruling
from zuno.trading.model.market import MINUTE_MS, Side
from zuno.trading.model.orders import ZERO, ClientId, OrderStatus, OrderType, client_order_id, opening_side
from zuno.trading.model.trade_events import ExitReason, IntentStored, Protection
from zuno.trading.rules.book_state import OpenTrade, TrackedIntent, TrackedOrder
from zuno.trading.rules.execution_styles import meets_minimum
from zuno.trading.rules.trading_book import TradingBook

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
) -> str | None:
    """Write down that a symbol is to be closed; None where nothing of it is held or ordered."""
    book = account.book
    for tracked in account.open_closes(symbol):
        return tracked.intent.id
    held = [trade for trade in book.positions.values() if trade.symbol == symbol]
    orders = any(order.request.symbol == symbol for order in book.open_orders.values())
    entries = account.open_entries(symbol)
    if not held and not orders and not entries:
        return None
    side = held[0].side if held else Side.LONG
    mark = held[0].entry if held else entries[0].intent.mark if entries else Decimal(1)
    if id is None or id in book.intents:
        id = find_close_id(book, account.name, symbol)
    mandate = book.active_mandate(account.now())
    intent = build_close_intent(id, decision, symbol, side, mark, reason, mandate=mandate)
    await account.write([IntentStored(at=account.event_time(), intent=intent, ruling=ruling)])
    return id


async def work_closes(venue: VenueContext, symbol: Symbol) -> None:
    for tracked in venue.account.open_closes(symbol):
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
    if any(not order.status.final for order in exits) or len(_find_rejected(exits)) >= MAX_EXIT_TRIES:
        return
    if exits and not exits[-1].filled and exits[-1].planned >= venue.now():
        return  # nothing stood against it: the next look tries again
    if position is not None and (why := await why_unsellable(venue, position)) is not None:
        venue.memory.unsellable[symbol] = why
        return
    if venue.binds_balance:
        await cancel_protection(venue, symbol)
        if (position := venue.position(symbol)) is None:
            return
    filters = await venue.find_filters(symbol)
    quantity = unbooked if position is None else position.quantity + unbooked
    side = venue.entry_orders(symbol)[0].request.side if position is None else opening_side(position.side)
    most = quantity if filters is None else min(quantity, filters.max_quantity)
    most, lot = await venue.fit_sale(symbol, most)
    # Counted as a close without the log does, too: sent by both, an exit is one order.
    ids = (client_order_id(tracked.intent.id, venue.exchange, "exit", number) for number in count())
    client_id = next(id for id in ids if id not in venue.book.orders)
    request = build_exit(client_id, venue.exchange, symbol, side.opposite, most, position)
    await plan_and_send(venue, tracked.intent.id, "exit", request, lot)


async def work_cut(venue: VenueContext, symbol: Symbol) -> None:
    """The next exit of a leg of which a part goes. One that the venue refuses again and again is left to the close of
    both legs."""
    for tracked in venue.account.open_cuts(symbol):
        exits = venue.orders_of(tracked, "exit")
        position, left = venue.position(symbol), find_cut_left(venue.book, tracked).get(venue.exchange, ZERO)
        waiting = venue.account.is_closing(symbol) or any(not order.status.final for order in exits)
        if position is None or left <= 0 or waiting or len(_find_rejected(exits)) >= MAX_EXIT_TRIES:
            continue
        id = client_order_id(tracked.intent.id, venue.exchange, "exit", len(exits))
        side = opening_side(position.side).opposite
        request = build_exit(id, venue.exchange, symbol, side, min(left, position.quantity), position)
        await venue.attempt(plan_and_send(venue, tracked.intent.id, "exit", request))


def find_cut_left(book: TradingBook, tracked: TrackedIntent) -> dict[Venue, Decimal]:
    """What is still to go of each leg; empty where nothing is."""
    left = {leg.exchange: leg.quantity for leg in tracked.intent.legs}
    for order in map(book.orders.__getitem__, tracked.orders):
        left[order.request.exchange] -= order.booked
    return {exchange: quantity for exchange, quantity in left.items() if quantity > 0}


async def _book_unlogged_exits(venue: VenueContext, tracked: TrackedIntent) -> None:
    """What was sold at a spot exchange while the log could not be written is booked and not sold again: nothing there
    keeps a second sale from selling what is the owner's. `Unavailable` while that is not sure."""
    symbol, sent_next = tracked.intent.symbol, (tracked.intent.id, "exit")
    exits = await find_unlogged_exits(venue, symbol, sent_next)
    if exits.closed:
        await book_orders(venue, symbol, [])
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
    if venue.failures and entries and not venue.exchange.spot:
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
    if venue.account.is_closing(symbol) or not await _find_unbooked(venue, symbol):
        return
    if venue.now() - venue.memory.unbooked[symbol] > UNPROTECTED_MS:
        decision = venue.book.intents[venue.entry_orders(symbol)[0].intent].intent.decision
        await store_close(venue.account, symbol, ExitReason.UNDONE, decision)
        await work_closes(venue, symbol)


async def undo_given_up(venue: VenueContext, symbol: Symbol) -> None:
    """Book what an order was filled with after it was given up. An entry that nobody wants any more is closed."""
    for tracked, order in await find_given_up(venue, symbol):
        wanted = tracked.purpose != "entry" or tracked.intent in venue.book.open_intents
        if not wanted and order.filled > tracked.booked:  # what is booked already is protected
            venue.memory.unwanted[symbol] = tracked.intent
        await book_orders(venue, symbol, [order])
        venue.memory.unsure.pop(tracked.request.client_id, None)
    if (intent := venue.memory.unwanted.get(symbol)) is not None:
        if venue.position(symbol) is not None:
            killed = (Protection.KILL_SWITCH, None) in venue.book.locks
            reason = ExitReason.KILL_SWITCH if killed else ExitReason.UNDONE
            await store_close(venue.account, symbol, reason, venue.book.intents[intent].intent.decision)
        venue.memory.unwanted.pop(symbol, None)


async def _cancel_entries(venue: VenueContext, symbol: Symbol) -> None:
    """Nothing new is to be opened: what waits is cancelled, and its intent ends with what it has."""
    for order in venue.open_orders(symbol):
        if order.purpose == "entry":
            await venue.attempt(cancel_order(venue, order))
    account = venue.account
    for tracked in account.open_entries(symbol):
        for leg in tracked.intent.legs:
            if leg.exchange == venue.exchange or leg.exchange not in account.venues:
                account.ended_legs.setdefault((tracked.intent.id, leg.exchange), "the symbol is closed")


def is_closed(account: AccountContext, symbol: Symbol) -> bool:
    held = any(position.symbol == symbol for position in account.book.positions.values())
    ordered = any(order.request.symbol == symbol for order in account.book.open_orders.values())
    return not held and not ordered and all(is_worked(account, tracked) for tracked in account.open_entries(symbol))


def is_worked(account: AccountContext, tracked: TrackedIntent) -> bool:
    return all((tracked.intent.id, leg.exchange) in account.ended_legs for leg in tracked.intent.legs)


def why_not_closed(account: AccountContext, tracked: TrackedIntent) -> str | None:
    """Why an exit is given up: the venue refused it again and again, or what is left is too small to be sold. Its stop
    stands, and a later close may try."""
    symbol = tracked.intent.symbol
    left = [exchange for exchange, held in account.book.positions if held == symbol]
    venues = [account.at(exchange) for exchange in account.venues if exchange in left]
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
    for id in list_close_ids(venue.book, venue.account.name, venue.exchange, symbol):
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
    position = venue.position(symbol)
    side, ours = (None, ZERO) if position is None else (opening_side(position.side), position.quantity)
    for order in venue.entry_orders(symbol):
        request = order.request
        try:
            ended = await port.cancel(symbol, request.client_id, request.type)
        except NotFound:
            continue  # it was never sent
        except ZunoError as error:
            report.append(f"the entry {request.client_id} may still wait: {error}")
            # It may be filled. A spot balance may be the owner's, and says nothing.
            filled = order.booked if venue.exchange.spot else request.quantity
        else:
            report.append(f"the entry {request.client_id} is {ended.status}")
            filled = ended.filled
        side, ours = side or request.side, ours + filled - order.booked
    for order in venue.open_orders(symbol) if venue.binds_balance else ():
        if order.purpose in ("stop", "target"):
            try:
                await find_order(venue, order)  # unread, it is left standing: an exit could not be sent either
                ended = await port.cancel(symbol, order.request.client_id, order.request.type)
                ours -= ended.filled - order.booked
            except NotFound:
                continue
            except ZunoError as error:
                report.append(f"the {order.purpose} {order.request.client_id} may still bind the balance: {error}")
    if side is None or ours <= 0:
        return report
    id = find_close_id(venue.book, venue.account.name, symbol)
    # At a spot exchange a desk that works the stored close beside this must find the same order.
    sending = "kill" if unlocked_kill and (not venue.exchange.spot or id not in venue.book.intents) else "exit"
    client_id, before = await _walk_exits(venue, symbol, id, sending)
    others = await find_unlogged_exits(venue, symbol, (id, sending))
    ours -= before.closed + others.closed
    if not venue.exchange.spot:
        with suppress(ZunoError):  # unread: an exit that only reduces may ask for too much
            there = next((held for held in await port.positions() if held.symbol == symbol), None)
            ours = min(ours, there.quantity) if there and opening_side(there.side) is side else ZERO
    elif ours > 0 and (others.waiting or others.unread):
        # Nothing keeps a second sale at a spot exchange from selling what is the owner's.
        unread = f"earlier exits are unread: {others.unread}"
        why = f"the exit {others.waiting} is not over" if others.waiting else unread
        return [*report, f"no exit of {symbol} at {exchange}: {why}"]
    if ours <= 0:
        return report
    with suppress(ZunoError):
        ours = min(ours, (await venue.read_filters(symbol)).max_quantity)
        ours = (await venue.fit_sale(symbol, ours))[0]
    try:
        sent = await port.place(build_exit(client_id, exchange, symbol, side.opposite, ours, position))
        report.append(f"the exit of {ours} {symbol} at {exchange} is {sent.status} {sent.reason}".rstrip())
    except ZunoError as error:
        report.append(f"the exit of {ours} {symbol} at {exchange} may not have arrived: {error}")
    return report


async def _walk_exits(venue: VenueContext, symbol: Symbol, id: str, series: str) -> tuple[ClientId, UnloggedExits]:
    """Looks up the exits of one series in turn, up to the first that has not ended: its id, and what the exits up to it
    closed without being booked."""
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
