"""How an entry is worked, style by style: from what was ordered so far to the next orders; and which orders a venue's
filters take. Quantities and prices are rounded down to the lot and the tick."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Final

from zuno.kernel.units import Millis
from zuno.trading.model.cycle import Style
from zuno.trading.model.market import HOUR_MS, MINUTE_MS
from zuno.trading.model.orders import (
    ZERO,
    Filters,
    OrderRequest,
    OrderSide,
    OrderStatus,
    OrderType,
    TimeInForce,
    VenueQuote,
)
from zuno.trading.rules.book_state import TrackedOrder

MAX_DRIFT_ATR: Final = Decimal("0.5")
"""How far the mark may be from the ruling's, in ATR(1h), for a new entry order."""
REPRICES: Final = 3
REPRICE_MS: Final = 3 * MINUTE_MS
"""How long a passive order waits before it is placed anew at the touch."""
FALLBACK_DRIFT_ATR: Final = Decimal("0.25")
"""How far the mark may be from the ruling's for the rest of a passive entry to be taken."""
SLIPPAGE_CAP: Final = Decimal("0.0015")
"""Beyond the touch, of a marketable limit."""
SNIPER_TRIES: Final = 2
DCA_PARTS: Final = ((Decimal("0.40"), ZERO), (Decimal("0.35"), Decimal("0.5")), (Decimal("0.25"), Decimal("1.0")))
"""Share of the quantity, and how many ATR(1h) better than the market it waits for."""
DCA_LIFE_MS: Final = 4 * HOUR_MS


@dataclass(frozen=True, slots=True)
class EntryTask:
    """What is to be bought or sold at one exchange, and what the market looks like there."""

    style: Style
    side: OrderSide
    quantity: Decimal
    stop: Decimal
    mark: Decimal
    """As the ruling saw it, in the exchange's currency."""
    atr: Decimal
    """ATR14 of 1h bars in the exchange's currency."""
    valid_until: Millis
    quote: VenueQuote
    filters: Filters
    now: Millis
    take_at: Millis | None = None
    """Of a change to a target: what is not filled at the touch by then is taken, wherever the market went."""


@dataclass(frozen=True, slots=True)
class EntryPlan:
    type: OrderType
    quantity: Decimal
    price: Decimal | None
    time_in_force: TimeInForce
    expires: Millis | None = None


@dataclass(frozen=True, slots=True)
class EntryStep:
    """What comes next: orders to place, orders to cancel by their number, or the end."""

    place: tuple[EntryPlan, ...] = ()
    cancel: tuple[int, ...] = ()
    done: bool = False
    why: str = ""


def round_to_step(value: Decimal, step: Decimal) -> Decimal:
    return (value / step).to_integral_value(rounding=ROUND_DOWN) * step


def meets_minimum(quantity: Decimal, price: Decimal, filters: Filters) -> bool:
    return quantity >= filters.min_quantity and quantity * price >= filters.min_notional


def has_drifted(task: EntryTask, most_atr: Decimal = MAX_DRIFT_ATR) -> bool:
    return abs(task.quote.mark - task.mark) > most_atr * task.atr


def next_entry_step(task: EntryTask, orders: Sequence[TrackedOrder]) -> EntryStep:
    """`orders`: every entry order of this exchange so far, by number."""
    overdue = tuple(
        number
        for number, order in enumerate(orders)
        if not order.status.final and order.expires is not None and order.expires <= task.now
    )
    if overdue:
        return EntryStep(cancel=overdue)
    if task.style is Style.SMART_DCA:
        return _step_dca(task, orders)
    if any(not order.status.final for order in orders):
        return EntryStep()
    left = round_to_step(task.quantity - sum((order.filled for order in orders), ZERO), task.filters.lot)
    if not meets_minimum(left, task.quote.mark, task.filters):
        return EntryStep(done=True)
    if (why := _why_no_more(task)) is not None:
        return EntryStep(done=True, why=why)
    refused = sum(order.status is OrderStatus.REJECTED for order in orders)
    if task.take_at is not None and task.now < task.take_at and refused <= REPRICES:
        return EntryStep(place=(_passive(task, left, task.take_at),))
    if task.style is Style.PASSIVE_MAKER and task.take_at is None:
        return _step_passive(task, orders, left)
    if sum(order.request.time_in_force is not TimeInForce.POST_ONLY for order in orders) >= SNIPER_TRIES:
        return EntryStep(done=True, why="the rest was not filled within the slippage cap")
    return EntryStep(place=(_marketable(task, left),))


def _why_no_more(task: EntryTask) -> str | None:
    if task.now > task.valid_until:
        return "the ruling is no longer valid"
    if task.take_at is None and has_drifted(task):
        return f"the mark moved from {task.mark} to {task.quote.mark}, more than {MAX_DRIFT_ATR} ATR"
    return None


def _step_passive(task: EntryTask, orders: Sequence[TrackedOrder], left: Decimal) -> EntryStep:
    passive = sum(order.request.time_in_force is TimeInForce.POST_ONLY for order in orders)
    if passive <= REPRICES and passive == len(orders):
        return EntryStep(place=(_passive(task, left, task.valid_until),))
    if len(orders) > passive:
        return EntryStep(done=True, why="the rest was not filled within the slippage cap")
    if has_drifted(task, FALLBACK_DRIFT_ATR):
        why = f"not filled at the touch, and the mark moved more than {FALLBACK_DRIFT_ATR} ATR"
        return EntryStep(done=True, why=why)
    return EntryStep(place=(_marketable(task, left),))


def _passive(task: EntryTask, quantity: Decimal, until: Millis) -> EntryPlan:
    price = round_to_step(task.quote.bid if task.side is OrderSide.BUY else task.quote.ask, task.filters.tick)
    expires = Millis(min(task.now + REPRICE_MS, until))
    return EntryPlan(OrderType.LIMIT, quantity, price, TimeInForce.POST_ONLY, expires)


def _marketable(task: EntryTask, quantity: Decimal) -> EntryPlan:
    touch = task.quote.ask if task.side is OrderSide.BUY else task.quote.bid
    price = touch * (1 + task.side.sign * SLIPPAGE_CAP)
    return EntryPlan(OrderType.LIMIT, quantity, round_to_step(price, task.filters.tick), TimeInForce.IOC)


def to_market(plan: EntryPlan) -> EntryPlan:
    return EntryPlan(OrderType.MARKET, plan.quantity, None, TimeInForce.GTC)


def _step_dca(task: EntryTask, orders: Sequence[TrackedOrder]) -> EntryStep:
    if orders:
        return EntryStep(done=all(order.status.final for order in orders))
    if (why := _why_no_more(task)) is not None:
        return EntryStep(done=True, why=why)
    expires = Millis(task.now + DCA_LIFE_MS)
    rest: list[EntryPlan] = []
    for share, atrs in DCA_PARTS[1:]:
        quantity = round_to_step(task.quantity * share, task.filters.lot)
        price = round_to_step(task.quote.mark - task.side.sign * atrs * task.atr, task.filters.tick)
        before_stop = price > task.stop if task.side is OrderSide.BUY else price < task.stop
        # A part that is too small, or would wait beyond the stop, is bought with the first.
        if price > 0 and before_stop and meets_minimum(quantity, price, task.filters):
            rest.append(EntryPlan(OrderType.LIMIT, quantity, price, TimeInForce.GTC, expires))
    first = round_to_step(task.quantity - sum((plan.quantity for plan in rest), ZERO), task.filters.lot)
    if not meets_minimum(first, task.quote.mark, task.filters):
        first, rest = round_to_step(task.quantity, task.filters.lot), []
    if not meets_minimum(first, task.quote.mark, task.filters):
        return EntryStep(done=True, why="it is less than the exchange takes")
    return EntryStep(place=(EntryPlan(OrderType.MARKET, first, None, TimeInForce.GTC), *rest))


CONDITIONAL: Final = frozenset({OrderType.STOP_MARKET, OrderType.TAKE_PROFIT_MARKET})


def find_filter_breach(order: OrderRequest, filters: Filters) -> str | None:
    """Why the venue would reject an order, or None. It judges a market order's notional and a market that ends."""
    if not filters.trading and not order.reduce_only:
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
        return f"notional {(order.price * order.quantity).normalize():f} is under the minimum of {filters.min_notional}"
    return None
