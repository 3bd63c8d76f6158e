"""Orders at Binance's spot market: what is bought arrives less the fee, and what a stop would sell is locked.

Endpoints: https://developers.binance.com/docs/binance-spot-api-docs/rest-api (general-endpoints, trading-endpoints,
account-endpoints); errors: …/errors. Stops wait for the last price and keep their ids. Trades are listed by the day, or
by their number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from zuno.adapters.venues.exchange import ExchangeVendor
from zuno.adapters.venues.orders.core import report_unreadable
from zuno.adapters.venues.orders.wire import Holding, Listing, Question
from zuno.adapters.venues.orders.wires.binance_usdm import BinanceAccount, BinanceOrders, read_decline
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import (
    AccountRights,
    Order,
    OrderRequest,
    OrderSide,
    OrderStatus,
    OrderType,
    TimeInForce,
    VenueQuote,
)

BY_DAYS: Final = 7 * DAY_MS
"""Trades of no longer ago are asked for day by day; of longer ago, from the first one on."""
POST_ONLY: Final = "LIMIT_MAKER"
KINDS: Final = {
    OrderType.MARKET: "MARKET",
    OrderType.LIMIT: "LIMIT",
    OrderType.STOP_MARKET: "STOP_LOSS",
    OrderType.TAKE_PROFIT_MARKET: "TAKE_PROFIT",
}


class BinanceSpotOrders(BinanceAccount):
    wire = replace(
        BinanceOrders.wire,
        exchange=Venue("BINANCE-SPOT"),
        vendor=ExchangeVendor("binance", "Binance spot", read_decline=read_decline),
        time=("publicGetTime", {}, ("serverTime",)),
        clock_codes=frozenset({"-1021"}),
        not_taken=((-1199, -1100), (-1014, -1013), (-2010, -2010)),
        statuses={**BinanceOrders.wire.statuses, "PENDING_NEW": OrderStatus.OPEN, "PENDING_CANCEL": OrderStatus.OPEN},
        types={
            **{name: kind for kind, name in KINDS.items()},
            POST_ONLY: OrderType.LIMIT,
            "STOP_LOSS_LIMIT": OrderType.STOP_MARKET,
            "TAKE_PROFIT_LIMIT": OrderType.TAKE_PROFIT_MARKET,
        },
        trades_window=90 * DAY_MS,
        funding_id="",
        liquidations=(),
    )
    public, private, trades_endpoint = "public", "private", "privateGetMyTrades"

    @report_unreadable
    async def rights(self) -> AccountRights:
        can_trade, can_withdraw = True, False
        if not self.paper:
            key = await self._client.read("sapiGetAccountApiRestrictions", "permissions")
            can_trade, can_withdraw = key.flag("enableSpotAndMarginTrading"), key.flag("enableWithdrawals")
        account = await self._client.read("privateGetAccount", "account")
        return self.build_rights(can_trade=can_trade and account.flag("canTrade"), can_withdraw=can_withdraw)

    async def check_settings(self) -> None:
        if not self.paper and (await self._client.read("sapiGetBnbBurn", "fee settings")).flag("spotBNBBurn"):
            raise Refused("The account at Binance pays fees in BNB; switch that off, the ledger counts in USDT.")

    def parse_listing(self, row: VendorJson) -> Listing:
        """A step of 0 in the filter of market orders: they are in the steps of the other."""
        price, lot, market, notional = self.read_rules(row, "PRICE_FILTER", "LOT_SIZE", "MARKET_LOT_SIZE", "NOTIONAL")
        return Listing(
            row.text("symbol"),
            row.text("baseAsset"),
            row.text("quoteAsset"),
            price.decimal("tickSize"),
            max(lot.decimal("stepSize"), market.decimal("stepSize")),
            max(lot.decimal("minQty"), market.decimal("minQty")),
            min(lot.decimal("maxQty"), market.decimal("maxQty")),
            notional.decimal("minNotional"),
            row.text("status") == "TRADING" and row.flag("isSpotTradingAllowed"),
        )

    async def read_quote(self, symbol: Symbol) -> VenueQuote:
        row = await self._client.read("publicGetTicker24hr", "touch", symbol=self.name(symbol))
        bid, ask, last = (row.decimal(name) for name in ("bidPrice", "askPrice", "lastPrice"))
        return self.build_quote(symbol, bid, ask, last, row.moment("closeTime"))

    async def ask_to_place(self, order: OrderRequest, good_till: Millis | None) -> Question:
        post_only = order.time_in_force is TimeInForce.POST_ONLY
        body = self.build_body(order, POST_ONLY if post_only and order.price is not None else KINDS[order.type])
        if order.price is not None:
            body["price"] = f"{order.price:f}"
            body |= {} if post_only else {"timeInForce": self.wire.in_force[order.time_in_force]}
        if order.trigger is not None:
            body["stopPrice"] = f"{order.trigger:f}"
        return Question("privatePostOrder", "order", body | {"newClientOrderId": order.client_id})

    async def parse_placed(self, order: OrderRequest, answer: VendorJson) -> Order | None:
        return None  # what a stop is answered with lacks half of an order

    async def parse_order(self, row: VendorJson, *, listed: bool = False) -> Order:
        kind, filled = row.choice("type", list(self.wire.types)), row.decimal("executedQty")
        return self.build_order(
            self.symbol_of(row),
            self.wire.types[kind],
            client_id=row.text("clientOrderId"),
            venue_id=str(row.whole("orderId")),
            side=self.parse_side(row),
            quantity=row.decimal("origQty"),
            price=row.decimal("price"),
            trigger=row.decimal("stopPrice"),
            in_force="GTX" if kind == POST_ONLY else row.text("timeInForce"),
            status=self.wire.statuses[row.choice("status", list(self.wire.statuses))],
            filled=filled,
            average=row.decimal("cummulativeQuoteQty") / filled if filled else None,
            updated=row.moment("updateTime"),
        )

    async def read_trades(self, symbol: Symbol, low: Millis, high: Millis) -> list[VendorJson]:
        now = self._client.now()
        if now - low > BY_DAYS:
            return await self.read_trades_from(symbol, {"fromId": 0}, high)
        rows = []
        for start in range(low, max(low, min(high, now)) + 1, DAY_MS):
            where: Mapping[str, object] = {"startTime": start, "endTime": start + DAY_MS - 1}
            rows += await self.read_trades_from(symbol, where, Millis(start + DAY_MS - 1))
        return rows

    def parse_side(self, row: VendorJson) -> OrderSide:
        if "isBuyer" in row:
            return OrderSide.BUY if row.flag("isBuyer") else OrderSide.SELL
        return super().parse_side(row)

    def parse_maker(self, row: VendorJson) -> bool:
        return row.flag("isMaker")

    async def balances(self) -> dict[str, Holding]:
        rows = (await self._client.read("privateGetAccount", "balances")).children("balances")
        held = {row.text("asset"): (row.decimal("free"), row.decimal("locked")) for row in rows}
        return {asset: Holding(free + locked, free) for asset, (free, locked) in held.items()}
