"""What of an order a venue's filters take: whole lots, prices on the tick, enough notional."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from zuno.trading.model.orders import Filters, OrderRequest, OrderType

CONDITIONAL: Final = frozenset({OrderType.STOP_MARKET, OrderType.TAKE_PROFIT_MARKET})


def find_filter_breach(order: OrderRequest, filters: Filters) -> str | None:
    """Why the venue would reject it; None where the filters take it.

    The notional of an order without a price is for the venue to judge: it knows its own mark.
    """
    if not filters.trading:
        return f"{order.symbol} is not trading"
    if (order.price is None) != (order.type is not OrderType.LIMIT):
        return f"a price belongs to a LIMIT order and to no other, and this is {order.type}"
    if (order.trigger is None) != (order.type not in CONDITIONAL):
        return f"a trigger belongs to a conditional order and to no other, and this is {order.type}"
    if order.type in CONDITIONAL and not filters.holds_stops:
        return f"{filters.exchange} holds no stop orders"
    if order.quantity % filters.lot:
        return f"quantity {order.quantity} is not in whole lots of {filters.lot}"
    if order.quantity < filters.min_quantity:
        return f"quantity {order.quantity} is under the minimum of {filters.min_quantity}"
    if order.quantity > filters.max_quantity:
        return f"quantity {order.quantity} is over the maximum of {filters.max_quantity}"
    for name, price in (("price", order.price), ("trigger", order.trigger)):
        if price is not None and price % filters.tick:
            return f"{name} {price} is not on the tick of {filters.tick}"
    if order.price is not None and not order.reduce_only and order.price * order.quantity < filters.min_notional:
        return f"notional {_plain(order.price * order.quantity)} is under the minimum of {filters.min_notional}"
    return None


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"
