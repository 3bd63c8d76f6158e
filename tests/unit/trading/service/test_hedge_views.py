"""A position of two legs as it is shown: one row, its exposure netted."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.wire.hedges import PERPETUAL, SPOT, HedgeHarness
from tests.wire.order_gate import BTC
from tests.wire.paper_venue import ACCOUNT
from zuno.kernel.units import Millis
from zuno.trading.model.account import Account, Holding
from zuno.trading.model.market import Side
from zuno.trading.rules.account import mark_to_market, position_in
from zuno.trading.service.account_page import AccountPage
from zuno.trading.service.account_to_views import position_views, risk_view
from zuno.trading.service.prices import NO_PRICES


async def read_page(desk: HedgeHarness, spot: int, perpetual: int) -> AccountPage:
    marks = {(SPOT, BTC): Decimal(spot), (PERPETUAL, BTC): Decimal(perpetual)}
    book = await desk.log.history(ACCOUNT)
    return AccountPage(ACCOUNT, book, Millis(desk.at), NO_PRICES, (), (), marks=marks)


async def test_both_legs_are_one_row_with_what_is_net_earned_and_near() -> None:
    desk = HedgeHarness()
    await desk.open_hedge()
    desk.fund(0.0001)
    desk.show(20_000)
    await desk.gate.reconcile()
    page = await read_page(desk, 21_000, 21_010)
    [row] = position_views(page)
    hedge = row.hedge
    assert hedge is not None
    assert (row.side, row.exchange, row.stop) == ("hedged", "BINANCE-SPOT / BINANCE", None)
    assert [(leg.exchange, leg.side, leg.quantity) for leg in hedge.legs] == [
        ("BINANCE-SPOT", "long", 0.05),
        ("BINANCE", "short", 0.05),
    ]
    assert hedge.net == 0
    # Bought at 20,000.1 and sold at 19,999.9; the basis widened by ten dollars.
    assert hedge.basis_pnl == pytest.approx(0.05 * (21_000 - 20_000.1) - 0.05 * (21_010 - 19_999.9))
    assert row.funding == pytest.approx(0.1)
    assert hedge.distance_pct == pytest.approx((2 * 19_999.9 / 1.005 / 21_010 - 1) * 100)
    assert risk_view(page).rows == ()
    assert row.id in desk.gate.book.trades


async def test_what_was_cut_counts_to_the_basis() -> None:
    desk = HedgeHarness()
    await desk.open_hedge()
    desk.show(32_500)
    await desk.gate.advance()
    [row] = position_views(await read_page(desk, 32_500, 32_500))
    assert row.hedge is not None
    # Twice the spread of 0.2 at the opening, and once more for the quarter that went.
    assert row.hedge.basis_pnl == pytest.approx(-0.05 * 0.2 - 0.013 * 0.2)


def test_the_leverage_guard_nets_legs() -> None:
    def hold(id: str, exchange: object, side: Side, quantity: float) -> Holding:
        return Holding.model_validate(
            {"id": id, "symbol": BTC, "exchange": exchange, "side": side, "quantity": quantity, "entry": 20_000.0,
             "leverage": 1.0, "opened": 1}
        )  # fmt: skip

    legs = (hold("pos_1", SPOT, Side.LONG, 0.0125), hold("pos_2", PERPETUAL, Side.SHORT, 0.012))
    account = Account({SPOT: 2_000.0, PERPETUAL: 2_000.0}, legs, (), ())
    marked = mark_to_market(account, BTC, {BTC: 20_000.0}, {"USD": 1.0})
    assert marked.exposure_usd == pytest.approx(10.0)  # type: ignore[union-attr]
    assert position_in(account, BTC) is None
