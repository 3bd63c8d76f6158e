"""The book held against a venue at start: orders, positions and cash. Nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.execute.order_worker import OrderWorker
from zuno.trading.model.market import Side, Symbol
from zuno.trading.model.orders import OUR_PREFIX, ZERO, VenuePosition
from zuno.trading.model.trade_events import Adopted, TradeEvent, account_mode
from zuno.trading.ports.venue import OrderVenue

CASH_TOLERANCE: Final = Decimal("0.0005")
"""Share of the balance by which the venue's cash may differ and be adopted: roundings and rebates. More stops the
desk."""


async def reconcile_venue(
    venue: OrderVenue, writer: AccountWriter, worker: OrderWorker, at: Callable[[], Millis]
) -> list[str]:
    """What was found different, and what was done about it. The news must have been taken before."""
    try:
        return [
            *await _reconcile_orders(venue, writer, worker, at),
            *await _reconcile_positions(venue, writer, worker),
            *await _reconcile_cash(venue, writer, worker, at),
        ]
    except Unavailable as error:
        await worker.lock(None, f"{venue.exchange} cannot be compared with the book: {error}")
        return [f"{venue.exchange} did not answer: {error}"]


async def _reconcile_orders(
    venue: OrderVenue, writer: AccountWriter, worker: OrderWorker, at: Callable[[], Millis]
) -> list[str]:
    """Orders at the venue that the book does not know: our own are cancelled, a stranger's stops the symbol."""
    said: list[str] = []
    for order in await venue.open_orders():
        request = order.request
        if request.client_id in writer.book.orders:
            continue
        if request.client_id.startswith(OUR_PREFIX):
            await venue.cancel(request.symbol, request.client_id)
            what = f"cancelled the order {request.client_id}, which the book does not know"
            await writer.write([Adopted(at=at(), exchange=venue.exchange, what=what)])
            said.append(what)
        else:
            why = f"an order at {venue.exchange} is not of this desk: {request.client_id}"
            await worker.lock(request.symbol, why)
            said.append(why)
    return said


async def _reconcile_positions(venue: OrderVenue, writer: AccountWriter, worker: OrderWorker) -> list[str]:
    """Fills are booked by now, so that what is held must be the same; if not, the symbol is stopped."""
    said: list[str] = []
    there = {position.symbol: position for position in await venue.positions()}
    for symbol in Symbol:
        held = writer.book.positions.get((venue.exchange, symbol))
        ours = ZERO if held is None else held.quantity * _sign(held.side)
        theirs = _signed(there.get(symbol))
        if ours != theirs:
            why = f"{venue.exchange} holds {theirs} {symbol.base}, the book {ours}"
            await worker.lock(symbol, why)
            said.append(why)
    return said


async def _reconcile_cash(
    venue: OrderVenue, writer: AccountWriter, worker: OrderWorker, at: Callable[[], Millis]
) -> list[str]:
    balance = await venue.balance()
    ours = writer.book.venue_balance(venue.exchange)
    difference = balance.total - ours
    if not difference:
        return []
    currency = venue.exchange.currency
    if account_mode(writer.account) != "paper" and not writer.book.ledger.debits(venue.exchange):
        what = f"the account begins with the {balance.total} {currency} at {venue.exchange}"
        await writer.write([Adopted(at=at(), exchange=venue.exchange, what=what, cash=difference)])
        return [what]
    if abs(difference) > CASH_TOLERANCE * max(abs(ours), Decimal(1)):
        why = f"{venue.exchange} has {balance.total} {currency}, the book {ours}"
        await worker.lock(None, why)
        return [why]
    what = f"adopted {difference} {currency} that the balance of {venue.exchange} differs by"
    events: list[TradeEvent] = [Adopted(at=at(), exchange=venue.exchange, what=what, cash=difference)]
    await writer.write(events)
    return [what]


def _signed(position: VenuePosition | None) -> Decimal:
    return ZERO if position is None else position.quantity * _sign(position.side)


def _sign(side: Side) -> int:
    return 1 if side is Side.LONG else -1
