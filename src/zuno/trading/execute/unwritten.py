"""What a close sends where the log cannot be written: a full disk keeps nobody from getting out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from zuno.kernel.errors import Unknown, ZunoError
from zuno.trading.execute.intents import close_id, find_close_id
from zuno.trading.model.market import Symbol
from zuno.trading.model.orders import SPOT, ZERO, ClientId, Fill, OrderRequest, OrderType, client_order_id, opening_side
from zuno.trading.model.trade_events import ExitReason
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.trading_book import TradingBook

MOST_EXITS: Final = 16
"""Of one close: more are not looked for."""
_SERIES: Final = {"exit": ExitReason.OWNER, "kill": ExitReason.KILL_SWITCH}
"""What an exit's client id is made with, and why it was sent: nothing else can be left for the next start to read."""


@dataclass(frozen=True, slots=True)
class UnwrittenClose:
    id: str
    reason: ExitReason


def find_unwritten_close(book: TradingBook, account: str, fill: Fill) -> UnwrittenClose | None:
    """The close whose exit was sent while it could not be written, by the client id of the exit alone."""
    ids = [find_close_id(book, account, fill.symbol)]
    position = book.positions.get((fill.exchange, fill.symbol))
    if position is not None and position.intent in book.intents:  # its entry was not booked yet when it was closed
        entries = (book.orders[id] for id in book.intents[position.intent].orders)
        names = tuple(order.request.client_id for order in entries if order.purpose == "entry")
        ids.append(close_id(account, fill.symbol, names, 0))
    for id in ids:
        stored = book.intents.get(id)
        for series, reason in _SERIES.items():
            if fill.client_id in (client_order_id(id, fill.exchange, series, number) for number in range(MOST_EXITS)):
                return UnwrittenClose(id, reason if stored is None else stored.intent.reason or reason)
    return None


async def close_unwritten(
    book: TradingBook, account: str, venue: OrderVenue, symbol: Symbol, reason: ExitReason
) -> list[str]:
    """Cancel our entries and close what is ours, under the ids of the close that could not be written: sent again, they
    are the same orders. What became of them is said."""
    exchange, said = venue.exchange, list[str]()
    position = book.positions.get((exchange, symbol))
    side, ours = (None, ZERO) if position is None else (opening_side(position.side), position.quantity)
    for order in book.open_orders.values():
        request = order.request
        if (request.exchange, request.symbol) != (exchange, symbol) or order.purpose != "entry" or not order.intent:
            continue
        try:
            ended = await venue.cancel(symbol, request.client_id, request.type)
        except Unknown:
            continue  # it was never sent
        except ZunoError as error:
            said.append(f"the entry {request.client_id} may still wait: {error}")
            # It may be filled. A spot balance may be the owner's, and says nothing.
            filled = order.booked if exchange in SPOT else request.quantity
        else:
            said.append(f"the entry {request.client_id} is {ended.status}")
            filled = ended.filled
        side, ours = side or request.side, ours + filled - order.booked
    id = find_close_id(book, account, symbol)
    names: dict[str, ClientId] = {}
    for series in _SERIES:
        names[series], closed = await _find_next_exit(book, venue, symbol, id, series)
        ours -= closed
    sending = "kill" if reason is ExitReason.KILL_SWITCH and id not in book.intents else "exit"
    if exchange not in SPOT:
        with suppress(ZunoError):  # unread: an exit that only reduces may ask for too much
            there = next((held for held in await venue.positions() if held.symbol is symbol), None)
            ours = min(ours, there.quantity) if there and opening_side(there.side) is side else ZERO
    if side is None or ours <= 0:
        return said
    with suppress(ZunoError):
        ours = min(ours, (await venue.filters(symbol)).max_quantity)
    request = OrderRequest(
        client_id=names[sending],
        exchange=exchange,
        symbol=symbol,
        side=side.opposite,
        type=OrderType.MARKET,
        quantity=ours,
        reduce_only=True,
        leverage=1 if position is None else max(1, int(position.leverage)),
    )
    try:
        sent = await venue.place(request)
        said.append(f"the exit of {ours} {symbol} at {exchange} is {sent.status} {sent.reason}".rstrip())
    except ZunoError as error:
        said.append(f"the exit of {ours} {symbol} at {exchange} may not have arrived: {error}")
    return said


async def _find_next_exit(
    book: TradingBook, venue: OrderVenue, symbol: Symbol, id: str, series: str
) -> tuple[ClientId, Decimal]:
    """Past the exits that have ended, here or in the book; and what those closed that is not booked."""
    exchange, closed, number = venue.exchange, ZERO, 0
    while True:
        name = client_order_id(id, exchange, series, number)
        known, found = book.orders.get(name), None
        if known is None or not known.status.final:
            with suppress(ZunoError):
                found = await venue.find(symbol, name, OrderType.MARKET)
            if found is None or not found.status.final:
                return name, closed
            closed += found.filled - (ZERO if known is None else known.booked)
        number += 1
