"""An order passes the filters exactly where it is in whole lots, on the tick, and large enough."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.orders import Filters, OrderRequest, OrderSide, OrderType
from zuno.trading.rules.execution_styles import find_filter_breach

FILTERS = Filters(
    exchange=Venue("BINANCE"),
    symbol=Symbol("BTCUSDT"),
    tick=Decimal("0.1"),
    lot=Decimal("0.001"),
    min_quantity=Decimal("0.002"),
    max_quantity=Decimal(120),
    min_notional=Decimal(50),
)


def order(kind: OrderType = OrderType.LIMIT, **more: object) -> OrderRequest:
    document = {
        "client_id": "zn1",
        "exchange": Venue("BINANCE"),
        "symbol": Symbol("BTCUSDT"),
        "side": OrderSide.BUY,
        "type": kind,
        "quantity": Decimal("0.010"),
        "price": Decimal("60000.0") if kind is OrderType.LIMIT else None,
    }
    return OrderRequest.model_validate({**document, **more})


@given(
    thousandths=st.integers(1, 200_000),
    ticks=st.integers(1, 1_000_000),
    reduce_only=st.booleans(),
    crumb=st.sampled_from([Decimal(0), Decimal("0.0004")]),
    off=st.sampled_from([Decimal(0), Decimal("0.03")]),
)
def test_what_passes_is_whole_large_and_on_the_tick(
    thousandths: int, ticks: int, reduce_only: bool, crumb: Decimal, off: Decimal
) -> None:
    quantity, price = FILTERS.lot * thousandths + crumb, FILTERS.tick * ticks + off
    breach = find_filter_breach(order(quantity=quantity, price=price, reduce_only=reduce_only), FILTERS)
    right = (
        not crumb
        and not off
        and Decimal("0.002") <= quantity <= 120
        and (reduce_only or quantity * price >= Decimal(50))
    )
    assert (breach is None) == right


def test_prices_belong_to_their_kinds_of_order() -> None:
    stop = OrderType.STOP_MARKET
    assert find_filter_breach(order(), FILTERS) is None
    assert find_filter_breach(order(OrderType.MARKET), FILTERS) is None
    assert find_filter_breach(order(stop, trigger=Decimal("59000.1")), FILTERS) is None
    for broken in (
        order(price=None),
        order(trigger=Decimal(1)),
        order(OrderType.MARKET, price=Decimal(60_000)),
        order(stop),
        order(stop, trigger=Decimal("59000.15")),
    ):
        assert find_filter_breach(broken, FILTERS)
    unable = FILTERS.model_copy(update={"holds_stops": False})
    assert find_filter_breach(order(stop, trigger=Decimal(59_000)), unable)
    assert find_filter_breach(order(), FILTERS.model_copy(update={"trading": False}))
