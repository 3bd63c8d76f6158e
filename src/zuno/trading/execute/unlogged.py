"""What a close sends where the log cannot be written: a full disk keeps nobody from getting out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from zuno.kernel.errors import NotFound, ZunoError
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.intents import build_exit, close_id, find_close_id, find_close_id_of, find_next_close_id
from zuno.trading.model.orders import SPOT, ZERO, ClientId, Fill, OrderType, client_order_id, opening_side
from zuno.trading.model.trade_events import ExitReason
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.trading_book import TradingBook

MOST_EXITS: Final = 16
"""Of one close: more are not looked for."""
_SERIES: Final = {"exit": ExitReason.OWNER, "kill": ExitReason.KILL_SWITCH}
"""What an exit's client id is made with, and why it was sent: nothing else can be left for the next start to read."""


@dataclass(frozen=True, slots=True)
class UnloggedClose:
    id: str
    reason: ExitReason
    killed: bool
    """Whether the kill switch sent it, whatever a close that was stored since gives as its reason."""


@dataclass(frozen=True, slots=True)
class UnloggedExits:
    closed: Decimal = ZERO
    """And is not booked."""
    waiting: ClientId | None = None
    """One that stands at the exchange and has not ended."""
    unread: ZunoError | None = None
    """Why one could not be looked up."""


def find_unlogged_close(book: TradingBook, account: str, fill: Fill) -> UnloggedClose | None:
    """The close whose exit was sent while it could not be written, by the client id of the exit alone."""
    for id in _list_close_ids(book, account, fill.exchange, fill.symbol):
        stored = book.intents.get(id)
        for series, reason in _SERIES.items():
            if fill.client_id in (client_order_id(id, fill.exchange, series, number) for number in range(MOST_EXITS)):
                stored_reason = None if stored is None else stored.intent.reason
                return UnloggedClose(id, stored_reason or reason, reason is ExitReason.KILL_SWITCH)
    return None


async def find_unlogged_exits(
    book: TradingBook, account: str, venue: OrderVenue, symbol: Symbol, besides: tuple[str, str]
) -> UnloggedExits:
    """What was closed at an exchange without being written, up to the first that cannot be read. `besides`: the close
    and the series that are sent next, for sent again those are the same orders."""
    closed, waiting = ZERO, None
    for id in _list_close_ids(book, account, venue.exchange, symbol):
        for series in _SERIES:
            if (id, series) == besides:
                continue
            _, found = await _walk_exits(book, venue, symbol, id, series)
            closed, waiting = closed + found.closed, waiting or found.waiting
            if found.unread is not None:
                return UnloggedExits(closed, waiting, found.unread)
    return UnloggedExits(closed, waiting)


async def close_unlogged(
    book: TradingBook, account: str, venue: OrderVenue, symbol: Symbol, *, unlocked_kill: bool
) -> list[str]:
    """Cancel our entries and close what is ours, under the ids of the close that could not be written: sent again, they
    are the same orders. `unlocked_kill`: the kill switch closes and its lock is not written, which the ids tell. What
    became of them is said."""
    exchange, said = venue.exchange, list[str]()
    position = book.positions.get((exchange, symbol))
    side, ours = (None, ZERO) if position is None else (opening_side(position.side), position.quantity)
    for order in book.open_orders.values():
        request = order.request
        if (request.exchange, request.symbol) != (exchange, symbol) or order.purpose != "entry" or not order.intent:
            continue
        try:
            ended = await venue.cancel(symbol, request.client_id, request.type)
        except NotFound:
            continue  # it was never sent
        except ZunoError as error:
            said.append(f"the entry {request.client_id} may still wait: {error}")
            # It may be filled. A spot balance may be the owner's, and says nothing.
            filled = order.booked if exchange in SPOT else request.quantity
        else:
            said.append(f"the entry {request.client_id} is {ended.status}")
            filled = ended.filled
        side, ours = side or request.side, ours + filled - order.booked
    if side is None or ours <= 0:
        return said
    id = find_close_id(book, account, symbol)
    # At a spot exchange a desk that works the stored close beside this must find the same order.
    sending = "kill" if unlocked_kill and (exchange not in SPOT or id not in book.intents) else "exit"
    client_id, before = await _walk_exits(book, venue, symbol, id, sending)
    others = await find_unlogged_exits(book, account, venue, symbol, (id, sending))
    ours -= before.closed + others.closed
    if exchange not in SPOT:
        with suppress(ZunoError):  # unread: an exit that only reduces may ask for too much
            there = next((held for held in await venue.positions() if held.symbol is symbol), None)
            ours = min(ours, there.quantity) if there and opening_side(there.side) is side else ZERO
    elif ours > 0 and (others.waiting or others.unread):
        # Nothing keeps a second sale at a spot exchange from selling what is the owner's.
        why = (
            f"the exit {others.waiting} is not over" if others.waiting else f"earlier exits are unread: {others.unread}"
        )
        return [*said, f"no exit of {symbol} at {exchange}: {why}"]
    if ours <= 0:
        return said
    with suppress(ZunoError):
        ours = min(ours, (await venue.filters(symbol)).max_quantity)
    try:
        sent = await venue.place(build_exit(client_id, exchange, symbol, side.opposite, ours, position))
        said.append(f"the exit of {ours} {symbol} at {exchange} is {sent.status} {sent.reason}".rstrip())
    except ZunoError as error:
        said.append(f"the exit of {ours} {symbol} at {exchange} may not have arrived: {error}")
    return said


def _list_close_ids(book: TradingBook, account: str, exchange: Venue, symbol: Symbol) -> list[str]:
    """Every close that an exit of what is held may have been sent for without being written: the one that is open, the
    one that would be next without it, the one that would have been before the entry was booked, and the one of a trade
    at another exchange, too, that has ended since."""
    ids = [find_close_id(book, account, symbol), find_next_close_id(book, account, symbol)]
    position = book.positions.get((exchange, symbol))
    if position is not None and position.intent in book.intents:
        entries = (book.orders[id] for id in book.intents[position.intent].orders)
        names = tuple(order.request.client_id for order in entries if order.purpose == "entry")
        ids.append(close_id(account, symbol, names, 0))
    if position is not None:
        ended = {
            summary.exchange: summary.trade
            for summary in book.closed
            if summary.symbol is symbol and summary.exchange is not exchange and summary.closed >= position.opened
        }
        for other in ended.values():
            pairs = ((other, position.id), (position.id, other))
            ids += [find_close_id_of(book, account, symbol, pair) for pair in pairs]
    return list(dict.fromkeys(ids))


async def _walk_exits(
    book: TradingBook, venue: OrderVenue, symbol: Symbol, id: str, series: str
) -> tuple[ClientId, UnloggedExits]:
    """Past the exits that have ended, here or in the book: the id of the next, and what is known of those before it and
    of itself."""
    closed, number = ZERO, 0
    while True:
        client_id = client_order_id(id, venue.exchange, series, number)
        known = book.orders.get(client_id)
        if known is None or not known.status.final:
            try:
                found = await venue.find(symbol, client_id, OrderType.MARKET)
            except ZunoError as error:
                return client_id, UnloggedExits(closed, unread=error)
            if found is None or not found.status.final:
                return client_id, UnloggedExits(closed, waiting=None if found is None else client_id)
            closed += found.filled - (ZERO if known is None else known.booked)
        number += 1
