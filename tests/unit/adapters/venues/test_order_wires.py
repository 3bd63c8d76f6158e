"""Wires of exchanges that take orders: names of markets, their lists, fees in coins, and who is paid for an order."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.wire.exchanges import hyperliquid
from tests.wire.exchanges.harness import WIRES, open_long, open_wire, over_wire, request_order
from tests.wire.exchanges.serving import Answer, Request, serve_exchange
from zuno.adapters.venues.exchange import ApiKeys
from zuno.adapters.venues.orders.wires import ACCOUNTS, build_account
from zuno.kernel.errors import NotFound, Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import VENUES, Venue
from zuno.trading.model.orders import Fill, OrderSide, OrderStatus, OrderType

NAMES = {
    "BINANCE": ("SOLUSDT", "1000PEPEUSDT"),
    "BINANCE-SPOT": ("SOLUSDT", "1000PEPEUSDT"),
    "BYBIT": ("SOLUSDT", "1000PEPEUSDT"),
    "BYBIT-SPOT": ("SOLUSDT", "1000PEPEUSDT"),
    "OKX": ("SOL-USDT-SWAP", "1000PEPE-USDT-SWAP"),
    "OKX-SPOT": ("SOL-USDT", "1000PEPE-USDT"),
    "HYPERLIQUID": ("SOL", "kPEPE"),
    "UPBIT": ("KRW-SOL", "KRW-1000PEPE"),
}
KEYS = ApiKeys("0x" + "11" * 20, "0x" + "22" * 32, "word")
PAID_TO_OTHERS = (b"approveBuilderFee", b"setReferrer", b"builder", b"Referer", b"CCXT")


def test_every_venue_has_a_wire() -> None:
    assert set(ACCOUNTS) == set(VENUES)
    assert {account.wire.vendor.name for account in ACCOUNTS.values()} >= {"Binance", "Bybit", "OKX", "Hyperliquid"}


@pytest.mark.parametrize("venue", NAMES)
def test_a_market_has_one_name_on_the_wire(venue: str) -> None:
    symbols = (Symbol("SOLUSDT"), Symbol("1000PEPEUSDT"))
    account = build_account(Venue(venue), KEYS, symbols)
    assert tuple(account.name(symbol) for symbol in symbols) == NAMES[venue]
    assert account._names == dict(zip(NAMES[venue], symbols, strict=True))


@pytest.mark.parametrize("venue", NAMES)
async def test_a_venue_lists_its_markets_for_the_catalogue(venue: str) -> None:
    async with over_wire(venue) as here:
        listed = {market.base: market for market in await here.venue.list_markets()}  # type: ignore[attr-defined]
        filters = await here.venue.filters(here.symbol)
        bitcoin = listed["BTC"]
        assert (bitcoin.venue, bitcoin.quote, bitcoin.trading) == (Venue(venue), Venue(venue).quote, True)
        assert (bitcoin.tick, bitcoin.lot) == (float(filters.tick), float(filters.lot))
        assert bitcoin.min_notional == float(filters.min_notional)
        assert bitcoin.contract_size == (0.01 if venue == "OKX" else 1.0)
        assert bitcoin.funding_hours == Venue(venue).funding_hours
        here.fake.engine.markets[here.market].lot = Decimal(0)
        if venue not in ("UPBIT", "HYPERLIQUID"):  # whose lots are not in a list
            again = {market.base: market for market in await here.venue.list_markets()}  # type: ignore[attr-defined]
            assert again["BTC"].lot == 0  # left out of the catalogue, and said


async def test_a_market_priced_in_another_currency_is_not_traded() -> None:
    async with over_wire("BINANCE-SPOT") as here:
        market = here.fake.engine.markets.pop("ETHUSDT")
        market.symbol, market.quote = "ETHBTC", "BTC"
        here.fake.engine.markets["ETHBTC"] = market
        with pytest.raises(NotFound, match="BTC"):
            await here.venue.filters(Symbol("binance:ETH/BTC"))


@pytest.mark.parametrize("venue", [venue for venue in NAMES if Venue(venue).fee_in_base])
async def test_a_fill_is_of_what_is_held_after_a_fee_in_coins(venue: str) -> None:
    async with over_wire(venue) as here:
        before = await here.venue.balance()
        placed = await here.venue.place(request_order(here, "in"))
        (fill,) = await here.venue.fills(here.symbol, Millis(0))
        (held,) = await here.venue.positions()
        assert fill.base_fee > 0
        assert (fill.executed, fill.quantity) == (placed.filled, held.quantity)
        assert fill.fee == fill.base_fee * fill.price
        spent = fill.quantity * fill.price + fill.fee
        assert before.total - (await here.venue.balance()).total == spent


def test_a_fill_without_a_fee_in_coins_keeps_its_bytes() -> None:
    numbers: dict[str, Any] = {"quantity": Decimal(1), "price": Decimal(1), "fee": Decimal(0), "maker": False, "at": 1}
    named: dict[str, Any] = {"client_id": "zn", "exchange": "BINANCE", "symbol": "BTCUSDT", "side": OrderSide.BUY}
    assert "baseFee" not in Fill(id="1", **named, **numbers).model_dump()
    assert "baseFee" in Fill(id="1", **named, **numbers, base_fee=Decimal("0.1")).model_dump()


async def test_a_price_is_judged_by_its_own_digits_wherever_the_market_is() -> None:
    """A stop of yesterday's tick is placed anew at the price it was ruled at."""
    async with over_wire("HYPERLIQUID") as here:
        assert (await here.venue.filters(here.symbol)).tick == 1
        await open_long(here)
        levels: dict[str, Any] = {"kind": OrderType.STOP_MARKET, "reduce_only": True}
        kept = request_order(here, "kept", OrderSide.SELL, trigger=Decimal("9999.9"), **levels)
        assert (await here.venue.place(kept)).status is OrderStatus.OPEN
        finer = request_order(here, "finer", OrderSide.SELL, trigger=Decimal("9999.95"), **levels)
        assert (await here.venue.place(finer)).status is OrderStatus.REJECTED


# -- who is paid for an order


@pytest.mark.parametrize("venue", NAMES)
async def test_nobody_is_paid_for_our_orders(venue: str) -> None:
    """Whatever ccxt's options say: over everything that left the process in the life of a position."""
    async with over_wire(venue) as here:
        sent: list[Request] = []
        answer = here.server.answer

        def note(request: Request) -> Answer | None:
            sent.append(request)
            return answer(request)

        here.server.answer = note
        options = here.venue._client.opened.options  # type: ignore[attr-defined]
        options |= {
            "builderFee": True,
            "approvedBuilderFee": False,
            "refSet": False,
            "ref": "X",
            "builder": "0x" + "9" * 40,
        }
        options |= {"brokerId": "CCXT", "broker": {"spot": "x-CCXT", "future": "x-CCXT", "swap": "x-CCXT"}}
        assert (await here.venue.place(request_order(here, "in"))).status is OrderStatus.FILLED
        (held,) = await here.venue.positions()
        quantity = (
            held.quantity // (await here.venue.filters(here.symbol)).lot * (await here.venue.filters(here.symbol)).lot
        )
        if Venue(venue).holds_stops:
            trigger = here.price - 1_000 * here.tick
            stop = request_order(
                here, "stop", OrderSide.SELL, OrderType.STOP_MARKET, quantity, trigger=trigger, reduce_only=True
            )
            assert (await here.venue.place(stop)).status is OrderStatus.OPEN
            await here.venue.cancel(here.symbol, stop.client_id)
        out = request_order(here, "out", OrderSide.SELL, quantity=quantity, reduce_only=True)
        assert (await here.venue.place(out)).status is OrderStatus.FILLED
        assert len(sent) > 10
        assert here.fake.broker_marks == []
        for request in sent:
            whole = request.body + request.raw_query.encode() + repr(request.headers).encode()
            assert not [mark for mark in PAID_TO_OTHERS if mark.lower() in whole.lower()], request.name


async def test_the_main_key_of_an_account_signs_nothing() -> None:
    async with over_wire("HYPERLIQUID") as here:
        keys = ApiKeys(hyperliquid.owner(), hyperliquid.OWNER_KEY)
        main = build_account(Venue("HYPERLIQUID"), keys, here.symbols, here.server.url, throttled=False)
        try:
            for order in (request_order(here, "in"), request_order(here, "out", OrderSide.SELL, reduce_only=True)):
                with pytest.raises(Refused, match="main key"):
                    await main.place(order)
            with pytest.raises(Refused, match="main key"):
                await main.rights()
        finally:
            await main.close()
        assert isinstance(here.fake, hyperliquid.FakeHyperliquid)
        assert here.fake.actions == []


def test_a_client_id_comes_back_as_it_went_to_hyperliquid() -> None:
    account: Any = build_account(Venue("HYPERLIQUID"), KEYS, ())
    from zuno.adapters.venues.orders.wires.hyperliquid import _read_cloid, _spell_price

    ours = "zn" + "0123456789abcdef" * 2
    assert account.spell_id(ours[:32]) == "0xd5" + ours[2:32]
    assert _read_cloid(account.spell_id(ours[:32])) == ours[:32]
    assert _read_cloid("0x" + "ab" * 16) == "0x" + "ab" * 16
    prices = {"12345.678": "12346", "0.0123456": "0.012346", "123456": "123456", "1.23456": "1.2346"}
    assert {price: _spell_price(Decimal(price), 0) for price in prices} == prices
    assert _spell_price(Decimal("1.23456"), 3) == "1.235"


async def test_a_wire_over_its_fake_is_open_to_any_listed_market() -> None:
    """The account is built with the symbols that are traded; others are not in its lists."""
    wire = WIRES["OKX"]
    fake = wire.build()
    async with serve_exchange(fake.server):

        async def sleep(seconds: float) -> None: ...

        venue = open_wire("OKX", fake.server.url, sleep, (Symbol("ETHUSDT"),))
        try:
            fake.hold_foreign("BTC-USDT-SWAP", Decimal(1))
            fake.hold_foreign("ETH-USDT-SWAP", Decimal(2))
            assert [(held.symbol, held.quantity) for held in await venue.positions()] == [("ETHUSDT", Decimal(2))]
        finally:
            await venue.close()
