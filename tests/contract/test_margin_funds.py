"""Money becomes margin once, whatever becomes of replies: at Binance, whose endpoints take no id. What a desk does with
it on paper is in `tests/unit/trading/execute/test_hedges.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

import pytest

from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.harness import WireHarness, over_wire, request_order
from tests.wire.order_gate import BTC
from zuno.adapters.venues.orders.wires import build_funds
from zuno.adapters.venues.orders.wires.binance_spot import LISTED_MS, BinanceFunds, BinanceSpotOrders
from zuno.adapters.venues.orders.wires.binance_usdm import BinanceOrders
from zuno.kernel.errors import Refused, Unavailable
from zuno.markets.venues import Venue
from zuno.trading.model.orders import OrderSide

SPOT, FUTURES = Venue("BINANCE-SPOT"), Venue("BINANCE")
AMOUNT = Decimal("422.07")
TRANSFER, MARGIN = "POST /sapi/v1/asset/transfer", "POST /fapi/v1/positionMargin"


@dataclass
class Wallets:
    here: WireHarness
    spot: BinanceSpotOrders

    @property
    def fake(self) -> FakeBinance:
        return cast(FakeBinance, self.here.fake)

    def open_funds(self) -> BinanceFunds:
        """As a process that starts has it."""
        return BinanceFunds(self.spot, cast(BinanceOrders, self.here.venue))

    async def add(self, funds: BinanceFunds, key: str = "int_1") -> Decimal:
        return await funds.add_margin(key, SPOT, FUTURES, BTC, AMOUNT)

    async def add_in_time(self, funds: BinanceFunds, key: str = "int_1") -> Decimal:
        """Until it is done: a look and a wait before each of the two."""
        for _ in range(4):
            try:
                return await self.add(funds, key)
            except Unavailable:
                self.fake.clock.ahead += LISTED_MS
        return await self.add(funds, key)

    def check_moved_once(self, moved: Decimal) -> None:
        assert 0 < AMOUNT - moved < Decimal("0.01")
        assert self.fake.spot.engine.cash == 10_000 - moved
        assert len(self.fake.spot.transfers) == len(self.fake.margin_changes) == 1
        own = Decimal("0.05") * self.fake.engine.position("BTCUSDT").entry / 20
        assert round(self.fake.engine.margin("BTCUSDT") - own, 8) == moved


@pytest.fixture
async def wallets() -> AsyncIterator[Wallets]:
    async with over_wire("BINANCE") as here:
        side = WireHarness(SPOT)
        side.fake = cast(FakeBinance, here.fake).spot
        spot = cast(BinanceSpotOrders, side.open_venue())
        await here.venue.place(request_order(here, "short", OrderSide.SELL, leverage=20))
        yield Wallets(here, spot)
        await spot.close()


async def test_money_goes_from_the_spot_wallet_into_the_margin_of_the_position_once(wallets: Wallets) -> None:
    funds = wallets.open_funds()
    with pytest.raises(Unavailable):  # another process may have sent it a moment ago
        await wallets.add(funds)
    moved = await wallets.add_in_time(funds)
    wallets.check_moved_once(moved)
    assert await wallets.add(funds) == await wallets.add(wallets.open_funds()) == moved
    wallets.check_moved_once(moved)
    assert await wallets.add_in_time(funds, "int_2") != moved


@pytest.mark.parametrize("lost", [TRANSFER, MARGIN])
@pytest.mark.parametrize("restarted", [True, False])
async def test_a_lost_reply_moves_nothing_twice(wallets: Wallets, lost: str, restarted: bool) -> None:
    funds = wallets.open_funds()
    wallets.fake.server.lose_reply(lost)
    for _ in range(6):
        try:
            await wallets.add(funds)
        except Unavailable:
            wallets.fake.clock.ahead += LISTED_MS
        funds = wallets.open_funds() if restarted and wallets.fake.spot.transfers else funds
    wallets.check_moved_once(await wallets.add_in_time(funds))


async def test_what_may_not_be_moved_is_refused_and_nothing_was(wallets: Wallets) -> None:
    wallets.fake.spot.may_transfer = False
    with pytest.raises(Refused):
        await wallets.add_in_time(wallets.open_funds())
    assert wallets.fake.spot.engine.cash == 10_000


async def test_a_list_that_cannot_be_read_says_nothing_of_what_was_moved(wallets: Wallets) -> None:
    wallets.fake.server.fail("GET /sapi/v1/asset/transfer", wallets.fake.outdated, times=9)
    with pytest.raises(Unavailable):
        await wallets.add(wallets.open_funds())


async def test_without_a_position_the_money_is_cash_of_the_futures_wallet(wallets: Wallets) -> None:
    await wallets.here.venue.place(request_order(wallets.here, "out", OrderSide.BUY, reduce_only=True))
    before = wallets.fake.engine.cash
    moved = await wallets.add_in_time(wallets.open_funds())
    assert (wallets.fake.engine.cash - before, wallets.fake.margin_changes) == (moved, [])


async def test_margin_that_is_declined_after_the_transfer_is_not_refused(wallets: Wallets) -> None:
    funds = wallets.open_funds()
    wallets.fake.engine.cash = Decimal(200)  # less than the position's own margin: nothing is free
    wallets.fake.engine.leverage["BTCUSDT"] = 1
    with pytest.raises(Unavailable):
        await wallets.add_in_time(funds)
    assert len(wallets.fake.spot.transfers) == 1


async def test_only_wallets_that_are_apart_and_open_here_have_funds(wallets: Wallets) -> None:
    assert build_funds({FUTURES: wallets.here.venue}) is None
    assert build_funds({FUTURES: wallets.here.venue, SPOT: wallets.spot}) is not None


async def test_legs_of_another_house_get_none_of_it(wallets: Wallets) -> None:
    with pytest.raises(Refused):
        await wallets.open_funds().add_margin("int_1", Venue("BYBIT-SPOT"), Venue("BYBIT"), BTC, AMOUNT)
    assert not wallets.fake.spot.transfers
