"""Asks an exchange what it holds beside an account's log, for whoever looks: nothing is written or placed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from zuno.kernel.clock import iso
from zuno.kernel.errors import ZunoError
from zuno.kernel.units import Millis
from zuno.trading.execute.reconcile import find_differing_positions, find_unbooked_orders
from zuno.trading.model.exchange_answer import ExchangeAnswer, Unbooked
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.trading_book import TradingBook

ANSWER_SECONDS: Final = 3.0
"""For so long a look waits: a kill may be behind it."""


async def ask_exchange(venue: OrderVenue, book: TradingBook, now: Callable[[], Millis]) -> ExchangeAnswer:
    answer = ExchangeAnswer(exchange=venue.exchange, asked_at=iso(now()))
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            balance = await venue.balance()
            positions = (await find_differing_positions(venue, book)).values()
            orders = find_unbooked_orders(await venue.open_orders(), book)
    except (ZunoError, TimeoutError) as error:
        why = str(error) or f"no answer within {ANSWER_SECONDS:g} s"
        return answer.model_copy(update={"unknown": why})
    held = [
        Unbooked(symbol=difference.symbol, quantity=float(difference.held), booked=float(difference.booked))
        for difference in positions
    ]
    for order in orders:
        quantity = float(order.left * order.request.side.sign)
        held.append(Unbooked(symbol=order.request.symbol, order=order.request.client_id, quantity=quantity))
    total, free = float(balance.total), float(balance.available)
    return answer.model_copy(update={"total": total, "free": free, "unbooked": tuple(held)})
