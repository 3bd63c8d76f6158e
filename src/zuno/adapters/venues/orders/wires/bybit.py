"""Orders at Bybit, linear perpetuals and spot of a unified account: one position per symbol, isolated margin, stops of
perpetuals triggered by the mark.

Endpoints: https://bybit-exchange.github.io/docs/v5 (order/create-order, order/open-order, order/order-list,
order/execution, position, account/wallet-balance, account/transaction-log, user/apikey-info); errors: …/v5/error. Every
answer comes with HTTP 200 and a code. An order is acknowledged before it is matched: what became of it is looked up,
among the recent ones and then in the history, which is behind by a moment. A conditional order keeps its ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from zuno.adapters.venues.exchange import ExchangeVendor, Params, VenueDeclined
from zuno.adapters.venues.orders.core import VenueAccount, report_unreadable
from zuno.adapters.venues.orders.wire import Holding, Listing, Question, Trade, WireTable, read_reason
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import (
    ZERO,
    AccountRights,
    ClientId,
    Order,
    OrderRequest,
    OrderSide,
    OrderStatus,
    OrderType,
    TimeInForce,
    VenuePosition,
    VenueQuote,
)
from zuno.trading.rules.execution_styles import CONDITIONAL

OPEN_A_PAGE: Final = 50
SAME_LEVERAGE: Final = "110043"
CLASSIC: Final = 1
"""The account type that orders are not placed for."""
IN_USE: Final = ("locked", "totalPositionIM", "totalOrderIM")
"""Of a coin: by spot orders, positions and orders of perpetuals."""
RISES, FALLS = 1, 2
NO_REASON: Final = ("EC_NoError", "EC_PerCancelRequest", "")
FORCED: Final = {"BustTrade": True, "AdlTrade": True, "Trade": False, "Delivery": False}
"""Executions that are trades, and whether the exchange made them to close a position."""


def read_decline(answer: object) -> tuple[str, str] | None:
    code = answer.get("retCode") if isinstance(answer, dict) else None
    if isinstance(answer, dict) and isinstance(code, int) and code != 0:
        return str(code), read_reason(answer.get("retMsg", ""))
    return None


class BybitOrders(VenueAccount):
    wire = WireTable(
        exchange=Venue("BYBIT"),
        vendor=ExchangeVendor(
            "bybit",
            "Bybit",
            envelope="retCode",
            read_decline=read_decline,
            declines_with_ok=True,
            limit_codes=frozenset({"10006", "10018", "10429"}),
            ban_statuses=frozenset({403}),
        ),
        time=("publicGetV5MarketTime", {}, ("time",)),
        rows=("result", "list"),
        clock_codes=frozenset({"10002"}),
        key_codes=frozenset({"10003", "10004", "10005", "10007", "10010", "33004"}),
        no_such_market=frozenset({"10001", "170121"}),
        cannot_cancel=frozenset({"110001", "110008", "110010", "170213", "170139", "170142"}),
        not_taken=((10001, 10001), (110003, 110999), (170033, 170037), (170105, 170999), (3400000, 3400999)),
        statuses={
            "New": OrderStatus.OPEN,
            "PartiallyFilled": OrderStatus.OPEN,
            "Untriggered": OrderStatus.OPEN,
            "Triggered": OrderStatus.OPEN,
            "Filled": OrderStatus.FILLED,
            "Cancelled": OrderStatus.CANCELED,
            "PartiallyFilledCanceled": OrderStatus.CANCELED,
            "Deactivated": OrderStatus.CANCELED,
            "Rejected": OrderStatus.REJECTED,
        },
        types={"Market": OrderType.MARKET, "Limit": OrderType.LIMIT},
        sides={"Buy": OrderSide.BUY, "Sell": OrderSide.SELL},
        in_force={TimeInForce.GTC: "GTC", TimeInForce.IOC: "IOC", TimeInForce.POST_ONLY: "PostOnly"},
        read_in_force={"IOC": TimeInForce.IOC, "FOK": TimeInForce.IOC, "PostOnly": TimeInForce.POST_ONLY},
        trade_id="execId",
        funding_id="id",
        funding_window=7 * DAY_MS,
    )
    category = "linear"
    tradable = ("ContractTrade", "Order")
    """The permission that keys need, and its part."""

    def market_of(self, symbol: Symbol) -> dict[str, object]:
        return {"category": self.category, "symbol": self.name(symbol)}

    def turn_page(self, params: Mapping[str, object], answer: VendorJson, rows: Sequence[VendorJson]) -> Params | None:
        cursor = answer.child("result").maybe_text("nextPageCursor")
        return {**params, "cursor": cursor} if cursor else None

    # -- account

    @report_unreadable
    async def rights(self) -> AccountRights:
        key = (await self._client.read("privateGetV5UserQueryApi", "permissions")).child("result")
        granted = {name: key.child("permissions")[name] for name in (self.tradable[0], "Wallet")}
        trades = key.whole("readOnly") == 0 and self.tradable[1] in _texts(granted[self.tradable[0]])
        one_way = isolated = True
        if not self.wire.spot:
            settings = (await self._client.read("privateGetV5AccountInfo", "account settings")).child("result")
            isolated = settings.text("marginMode") == "ISOLATED_MARGIN"
            rows = [row for symbol in self._symbols for row in await self._position_settings(symbol)]
            one_way = all(row.whole("positionIdx") == 0 for row in rows)
        withdraws = "Withdraw" in _texts(granted["Wallet"])
        return self.build_rights(can_trade=trades, can_withdraw=withdraws, one_way=one_way, isolated=isolated)

    async def check_settings(self) -> None:
        account = (await self._client.read("privateGetV5AccountInfo", "account settings")).child("result")
        if account.whole("unifiedMarginStatus") == CLASSIC:
            raise Refused("The account at Bybit is no unified trading account; upgrade it.")

    async def prepare(self, order: OrderRequest) -> None:
        """Isolated margin, which Bybit sets for the whole account, and the order's leverage."""
        if self.wire.spot:
            return
        account = (await self._client.read("privateGetV5AccountInfo", "account settings")).child("result")
        if account.text("marginMode") != "ISOLATED_MARGIN":
            wanted: dict[str, object] = {"setMarginMode": "ISOLATED_MARGIN"}
            await self._client.send("privatePostV5AccountSetMarginMode", "margin mode", wanted)
        rows = await self._position_settings(order.symbol)
        if any(row.decimal("leverage") != order.leverage for row in rows):
            wanted = dict.fromkeys(("buyLeverage", "sellLeverage"), str(order.leverage))
            try:
                wanted |= self.market_of(order.symbol)
                await self._client.send("privatePostV5PositionSetLeverage", "leverage", wanted)
            except VenueDeclined as declined:
                if declined.code != SAME_LEVERAGE:
                    raise

    async def _position_settings(self, symbol: Symbol) -> list[VendorJson]:
        return self.rows_of(await self._client.read("privateGetV5PositionList", "positions", **self.market_of(symbol)))

    async def balances(self) -> dict[str, Holding]:
        answer = await self._client.read("privateGetV5AccountWalletBalance", "balances", accountType="UNIFIED")
        held = {}
        for row in [coin for account in self.rows_of(answer) for coin in account.children("coin")]:
            total = row.decimal("walletBalance")
            used = sum(
                (row.maybe_decimal(name) or ZERO for name in ("locked", "totalPositionIM", "totalOrderIM")), ZERO
            )
            held[row.text("coin")] = Holding(total, total - used)
        return held

    async def position_rows(self) -> list[VendorJson]:
        settled = {"category": self.category, "settleCoin": self.wire.asset, "limit": 200}
        return await self.read_pages(Question("privateGetV5PositionList", "positions", settled))

    async def parse_position(self, row: VendorJson) -> VenuePosition | None:
        size, symbol = row.decimal("size"), self._names.get(row.text("symbol"))
        if not size or symbol is None:
            return None
        if row.whole("positionIdx") != 0:
            raise self.refuse_hedge_mode()
        amount = size * self.wire.sides[row.choice("side", list(self.wire.sides))].sign
        liquidation = row.decimal_if_any("liqPrice")
        leverage, margin = int(row.decimal("leverage")), row.decimal("positionBalance")
        return self.build_position(symbol, amount, row.decimal("avgPrice"), leverage, margin, liquidation)

    # -- markets

    async def read_listings(self, name: str | None = None) -> list[Listing]:
        where = (
            {"category": self.category, "limit": 1_000} if name is None else {"category": self.category, "symbol": name}
        )
        rows = await self.read_pages(Question("publicGetV5MarketInstrumentsInfo", "filters", where), "symbol")
        return [self.parse_listing(row) for row in rows if name or self.is_listed(row)]

    def is_listed(self, row: VendorJson) -> bool:
        return row.text("quoteCoin") == self.wire.asset and row.text("contractType") == "LinearPerpetual"

    def parse_listing(self, row: VendorJson) -> Listing:
        sizes = row.child("lotSizeFilter")
        return Listing(
            row.text("symbol"),
            row.text("baseCoin"),
            row.text("quoteCoin"),
            row.child("priceFilter").decimal("tickSize"),
            sizes.decimal("qtyStep"),
            sizes.decimal("minOrderQty"),
            min(sizes.decimal("maxOrderQty"), sizes.decimal("maxMktOrderQty")),
            sizes.decimal("minNotionalValue"),
            row.text("status") == "Trading" and row.text("contractType") == "LinearPerpetual",
            funding_hours=row.whole("fundingInterval") // 60,
        )

    async def read_quote(self, symbol: Symbol) -> VenueQuote:
        answer = await self._client.read("publicGetV5MarketTickers", "touch", **self.market_of(symbol))
        row = answer.child("result").child("list").only()
        bid, ask = row.decimal("bid1Price"), row.decimal("ask1Price")
        mark = row.decimal("lastPrice" if self.wire.spot else "markPrice")
        return self.build_quote(symbol, bid, ask, mark, answer.moment("time"))

    # -- orders

    async def ask_to_place(self, order: OrderRequest, good_till: Millis | None) -> Question:
        body = self.market_of(order.symbol) | {
            "side": order.side.title(),
            "orderType": "Market" if order.price is None else "Limit",
            "qty": f"{order.quantity:f}",
            "orderLinkId": order.client_id,
        }
        if order.price is not None:
            body |= {"price": f"{order.price:f}", "timeInForce": self.wire.in_force[order.time_in_force]}
        falls = (order.type is OrderType.STOP_MARKET) == (order.side is OrderSide.SELL)
        if self.wire.spot:
            body["marketUnit"] = "baseCoin"
        else:
            body |= {"positionIdx": 0, "reduceOnly": order.reduce_only}
        if order.trigger is not None:
            body["triggerPrice"] = f"{order.trigger:f}"
            if self.wire.spot:
                body["orderFilter"] = "StopOrder"
            else:
                body |= {"triggerDirection": FALLS if falls else RISES, "triggerBy": "MarkPrice"}
        return Question("privatePostV5OrderCreate", "order", body)

    def ask_for_order(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        named = self.market_of(symbol) | {"orderLinkId": client_id}
        endpoints = ("privateGetV5OrderRealtime", "privateGetV5OrderHistory")
        return [Question(endpoint, "order", named) for endpoint in endpoints]

    def ask_to_cancel(self, symbol: Symbol, client_id: ClientId, kind: OrderType, venue_id: str) -> Question:
        named = self.market_of(symbol) | {"orderLinkId": client_id}
        if self.wire.spot and kind in CONDITIONAL:
            named["orderFilter"] = "StopOrder"
        return Question("privatePostV5OrderCancel", "cancel", named)

    def ask_for_open(self, symbol: Symbol) -> list[Question]:
        return [Question("privateGetV5OrderRealtime", "open orders", self.market_of(symbol) | {"limit": OPEN_A_PAGE})]

    async def parse_order(self, row: VendorJson, *, listed: bool = False) -> Order:
        side = self.wire.sides[row.choice("side", list(self.wire.sides))]
        kind = self.wire.types[row.choice("orderType", list(self.wire.types))]
        trigger, reason = row.decimal_if_any("triggerPrice"), row.text("rejectReason")
        if trigger:
            falls = row.whole("triggerDirection") == FALLS or (
                row.whole("triggerDirection") == 0 and side is OrderSide.SELL
            )
            kind = OrderType.STOP_MARKET if falls == (side is OrderSide.SELL) else OrderType.TAKE_PROFIT_MARKET
        return self.build_order(
            self.symbol_named(row, "symbol"),
            kind,
            client_id=row.text("orderLinkId") or row.text("orderId"),
            venue_id=row.text("orderId"),
            side=side,
            quantity=row.decimal("qty"),
            price=row.decimal("price"),
            trigger=trigger,
            in_force=row.text("timeInForce") if kind is OrderType.LIMIT else None,
            reduce_only=row.flag("reduceOnly"),
            status=self.wire.statuses[row.choice("orderStatus", list(self.wire.statuses))],
            filled=row.decimal("cumExecQty"),
            average=row.decimal_if_any("avgPrice"),
            updated=row.moment("updatedTime"),
            reason="" if reason in NO_REASON else read_reason(reason),
        )

    # -- fills and funding

    def ask_for_trades(self, symbol: Symbol, low: Millis, high: Millis) -> Question:
        where = {"startTime": low, "endTime": high, "limit": self._page}
        return Question("privateGetV5ExecutionList", "trades", self.market_of(symbol) | where)

    async def read_trades(self, symbol: Symbol, low: Millis, high: Millis) -> list[VendorJson]:
        """Without funding, which is an execution too."""
        return [row for row in await super().read_trades(symbol, low, high) if row.text("execType") in FORCED]

    def ask_for_order_trades(self, order: Order) -> Question:
        named = self.market_of(order.request.symbol) | {"orderId": order.venue_id, "limit": self._page}
        return Question("privateGetV5ExecutionList", "trades", named)

    def parse_trade(self, symbol: Symbol, row: VendorJson) -> Trade:
        return Trade(
            row.text("execId"),
            row.text("orderId"),
            row.text("orderLinkId"),
            self.wire.sides[row.choice("side", list(self.wire.sides))],
            row.decimal("execQty"),
            row.decimal("execPrice"),
            row.decimal("execFee"),
            row.text("feeCurrency") or self.wire.asset,
            row.flag("isMaker"),
            row.moment("execTime"),
            FORCED[row.choice("execType", list(FORCED))],
        )

    def ask_for_funding(self, symbol: Symbol, low: Millis, high: Millis) -> Question:
        where = {"startTime": low, "endTime": high, "limit": min(self._page, OPEN_A_PAGE)}
        kind = {"accountType": "UNIFIED", "category": "linear", "currency": self.wire.asset, "type": "SETTLEMENT"}
        return Question("privateGetV5AccountTransactionLog", "funding", {**kind, **where})

    def parse_payment(self, row: VendorJson) -> tuple[str, Decimal, Millis, str, str]:
        id, amount = row.text("id"), row.decimal("change")
        return id, amount, row.moment("transactionTime"), row.text("symbol"), row.text("currency")


class BybitSpotOrders(BybitOrders):
    """Coins in the same wallet; a conditional order waits for the last price and its coins are not locked."""

    wire = replace(BybitOrders.wire, exchange=Venue("BYBIT-SPOT"), funding_id="")
    category = "spot"
    tradable = ("Spot", "SpotTrade")

    def is_listed(self, row: VendorJson) -> bool:
        return row.text("quoteCoin") == self.wire.asset

    def parse_listing(self, row: VendorJson) -> Listing:
        sizes = row.child("lotSizeFilter")
        return Listing(
            row.text("symbol"),
            row.text("baseCoin"),
            row.text("quoteCoin"),
            row.child("priceFilter").decimal("tickSize"),
            sizes.decimal("basePrecision"),
            sizes.decimal("minOrderQty"),
            sizes.decimal("maxMarketOrderQty" if "maxMarketOrderQty" in sizes else "maxOrderQty"),
            sizes.decimal("minOrderAmt"),
            row.text("status") == "Trading",
        )


def _texts(names: object) -> list[object]:
    return names if isinstance(names, list) else []
