"""What a close sends where the log cannot be written: a full disk keeps nobody from getting out."""

from __future__ import annotations

from contextlib import suppress

from zuno.kernel.errors import Unknown, ZunoError
from zuno.trading.execute.order_worker import SPOT, find_close_id
from zuno.trading.model.market import Symbol
from zuno.trading.model.orders import ZERO, OrderRequest, OrderType, client_order_id, opening_side
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.trading_book import TradingBook


async def close_unwritten(book: TradingBook, account: str, venue: OrderVenue, symbol: Symbol) -> list[str]:
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
    id, number = find_close_id(book, account, symbol), 0
    while True:  # past the exits that have ended, here or in the book
        name = client_order_id(id, exchange, "exit", number)
        known, found = book.orders.get(name), None
        if known is None or not known.status.final:
            with suppress(ZunoError):
                found = await venue.find(symbol, name, OrderType.MARKET)
            if found is None or not found.status.final:
                break
            ours -= found.filled - (ZERO if known is None else known.booked)
        number += 1
    if exchange not in SPOT:
        with suppress(ZunoError):  # unread: an exit that only reduces may ask for too much
            there = next((held for held in await venue.positions() if held.symbol is symbol), None)
            ours = min(ours, there.quantity) if there and opening_side(there.side) is side else ZERO
    if side is None or ours <= 0:
        return said
    with suppress(ZunoError):
        ours = min(ours, (await venue.filters(symbol)).max_quantity)
    request = OrderRequest(
        client_id=name,
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
