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
    exchange, asked = venue.exchange, iso(now())
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            balance = await venue.balance()
            unbooked = list((await find_differing_positions(venue, book)).values())
            orders = find_unbooked_orders(await venue.open_orders(), book)
    except (ZunoError, TimeoutError) as error:
        why = str(error) or f"no answer within {ANSWER_SECONDS:g} s"
        return ExchangeAnswer(exchange=exchange, asked_at=asked, unknown=why)
    for request, left in ((order.request, order.left * order.request.side.sign) for order in orders):
        unbooked.append(Unbooked(exchange=exchange, symbol=request.symbol, order=request.client_id, quantity=left))
    total, free = float(balance.total), float(balance.available)
    return ExchangeAnswer(exchange=exchange, asked_at=asked, total=total, free=free, unbooked=tuple(unbooked))
