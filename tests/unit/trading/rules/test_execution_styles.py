"""Styles of execution: what is ordered next, from what was ordered so far."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.cycle import Style
from zuno.trading.model.known import pick
from zuno.trading.model.market import HOUR_MS, MINUTE_MS
from zuno.trading.model.orders import Filters, OrderRequest, OrderSide, OrderStatus, OrderType, TimeInForce, VenueQuote
from zuno.trading.rules.book_state import TrackedOrder
from zuno.trading.rules.execution_styles import (
    REPRICE_MS,
    REPRICES,
    EntryPlan,
    EntryTask,
    next_entry_step,
    round_to_step,
)

NOW = Millis(1_000_000_000)
FILTERS = Filters(
    exchange=Venue("BINANCE"),
    symbol=Symbol("BTCUSDT"),
    tick=Decimal("0.1"),
    lot=Decimal("0.001"),
    min_quantity=Decimal("0.001"),
    max_quantity=Decimal(100),
    min_notional=Decimal(100),
)
QUOTE = VenueQuote(
    exchange=Venue("BINANCE"),
    symbol=Symbol("BTCUSDT"),
    bid=Decimal("60000.1"),
    ask=Decimal("60000.4"),
    mark=Decimal("60000.25"),
    at=NOW,
)


def task(style: Style, **named: Any) -> EntryTask:
    fields: dict[str, Any] = {
        "style": style,
        "side": OrderSide.BUY,
        "quantity": Decimal("0.050"),
        "stop": Decimal(58_000),
        "mark": Decimal(60_000),
        "atr": Decimal(400),
        "valid_until": Millis(NOW + 15 * MINUTE_MS),
        "quote": QUOTE,
        "filters": FILTERS,
        "now": NOW,
    }
    return EntryTask(**{**fields, **named})


def ended(plan: EntryPlan, filled: str = "0", status: OrderStatus = OrderStatus.CANCELED) -> TrackedOrder:
    request = OrderRequest(
        client_id="order",
        exchange=QUOTE.exchange,
        symbol=QUOTE.symbol,
        side=OrderSide.BUY,
        **pick(plan, "type", "quantity", "price", "time_in_force"),
    )
    tracked = TrackedOrder(request, "intent", "entry", NOW, plan.expires)
    tracked.status, tracked.filled = status, Decimal(filled)
    return tracked


def resting(plan: EntryPlan) -> TrackedOrder:
    return ended(plan, status=OrderStatus.OPEN)


def test_passive_maker_waits_at_the_touch_reprices_and_takes_the_rest_in_the_end() -> None:
    orders: list[TrackedOrder] = []
    passive = task(Style.PASSIVE_MAKER)
    for _ in range(1 + REPRICES):
        (plan,) = next_entry_step(passive, orders).place
        assert (plan.type, plan.time_in_force) == (OrderType.LIMIT, TimeInForce.POST_ONLY)
        assert plan.price == QUOTE.bid
        assert next_entry_step(passive, [*orders, resting(plan)]).place == ()
        late = replace(passive, now=Millis(NOW + REPRICE_MS))
        assert next_entry_step(late, [*orders, resting(plan)]).cancel == (len(orders),)
        orders.append(ended(plan))
    (fallback,) = next_entry_step(passive, orders).place
    assert fallback.time_in_force is TimeInForce.IOC
    assert fallback.price == Decimal("60090.4")
    assert next_entry_step(passive, [*orders, ended(fallback)]).done


def test_passive_maker_leaves_the_rest_when_the_market_ran() -> None:
    (plan,) = next_entry_step(task(Style.PASSIVE_MAKER), []).place
    ran = QUOTE.model_copy(update={"mark": Decimal(60_150)})
    step = next_entry_step(task(Style.PASSIVE_MAKER, quote=ran), [ended(plan)] * (1 + REPRICES))
    assert step.done
    assert step.place == ()


def test_smart_dca_buys_in_three_parts_that_live_four_hours() -> None:
    first, second, third = next_entry_step(task(Style.SMART_DCA), []).place
    assert (first.type, first.quantity, first.price) == (OrderType.MARKET, Decimal("0.021"), None)
    assert (second.quantity, second.price) == (Decimal("0.017"), Decimal("59800.2"))
    assert (third.quantity, third.price) == (Decimal("0.012"), Decimal("59600.2"))
    assert second.expires == third.expires == NOW + 4 * HOUR_MS
    late = task(Style.SMART_DCA, now=Millis(NOW + 4 * HOUR_MS))
    assert next_entry_step(late, [ended(first), resting(second), resting(third)]).cancel == (1, 2)
    assert next_entry_step(late, [ended(first), ended(second), ended(third)]).done


def test_smart_dca_sells_higher() -> None:
    short = task(Style.SMART_DCA, side=OrderSide.SELL, stop=Decimal(62_000))
    _, second, third = next_entry_step(short, []).place
    assert (second.price, third.price) == (Decimal("60200.2"), Decimal("60400.2"))


def test_smart_dca_puts_no_order_beyond_the_stop_or_below_the_minimum() -> None:
    near = next_entry_step(task(Style.SMART_DCA, stop=Decimal(59_700)), []).place
    assert [plan.quantity for plan in near] == [Decimal("0.033"), Decimal("0.017")]
    small = next_entry_step(task(Style.SMART_DCA, quantity=Decimal("0.002")), []).place
    assert [plan.quantity for plan in small] == [Decimal("0.002")]


def test_momentum_sniper_takes_within_a_cap() -> None:
    (plan,) = next_entry_step(task(Style.MOMENTUM_SNIPER), []).place
    assert (plan.price, plan.time_in_force) == (Decimal("60090.4"), TimeInForce.IOC)
    (sell,) = next_entry_step(task(Style.MOMENTUM_SNIPER, side=OrderSide.SELL), []).place
    assert sell.price == Decimal("59910.0")
    (rest,) = next_entry_step(task(Style.MOMENTUM_SNIPER), [ended(plan, "0.020")]).place
    assert rest.quantity == Decimal("0.030")
    assert next_entry_step(task(Style.MOMENTUM_SNIPER), [ended(plan, "0.050")]).done


@pytest.mark.parametrize("style", [Style.PASSIVE_MAKER, Style.SMART_DCA, Style.MOMENTUM_SNIPER])
def test_nothing_new_is_ordered_when_the_ruling_expired_or_the_mark_moved(style: Style) -> None:
    assert next_entry_step(task(style, now=Millis(NOW + 15 * MINUTE_MS + 1)), []).done
    moved = QUOTE.model_copy(update={"mark": Decimal("60200.1")})
    step = next_entry_step(task(style, quote=moved), [])
    assert step.done
    assert step.why


@given(
    quantity=st.decimals("0.0001", "3", places=6),
    style=st.sampled_from([Style.PASSIVE_MAKER, Style.SMART_DCA, Style.MOMENTUM_SNIPER]),
    side=st.sampled_from(list(OrderSide)),
)
def test_orders_are_whole_lots_on_the_tick_and_never_more_than_asked(
    quantity: Decimal, style: Style, side: OrderSide
) -> None:
    stop = Decimal(58_000 if side is OrderSide.BUY else 62_000)
    placed = next_entry_step(task(style, quantity=quantity, side=side, stop=stop), []).place
    assert sum(plan.quantity for plan in placed) <= quantity
    for plan in placed:
        assert plan.quantity == round_to_step(plan.quantity, FILTERS.lot)
        assert plan.price is None or plan.price % FILTERS.tick == 0
        assert plan.quantity * (plan.price or QUOTE.mark) >= FILTERS.min_notional * Decimal("0.98")
