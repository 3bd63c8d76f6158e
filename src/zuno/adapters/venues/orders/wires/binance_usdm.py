"""Orders at Binance's USDⓈ-M futures: isolated margin, one position per symbol, stops triggered by the mark.

Endpoints: https://developers.binance.com/docs/derivatives/usds-margined-futures/trade/rest-api and …/account/rest-api;
the keys' permissions: https://developers.binance.com/docs/wallet/account/api-key-permission. Stops and targets are algo
orders on endpoints of their own since 2025-12; to `POST /fapi/v1/order` they are −4120.
Error codes: https://developers.binance.com/docs/derivatives/usds-margined-futures/error-code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from zuno.adapters.venues.exchange import ExchangeVendor, Params, VenueDeclined
from zuno.adapters.venues.orders.core import ORDER_WINDOW, VenueAccount, report_unreadable
from zuno.adapters.venues.orders.wire import Holding, Listing, Question, Trade, WireTable, clean_id, read_reason
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import (
    OUR_PREFIX,
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

SAME_MARGIN_TYPE: Final = "-4046"
LEAST_GOOD_TILL: Final = 660_000
"""Milliseconds ahead that the end of a resting order must be for the exchange to take it: 600 s, and a minute more for
a clock that differs."""
END_GRACE: Final = 60_000
"""How much later than the desk the exchange ends an order: it does so where no desk is left."""
WINDOW: Final = 7 * DAY_MS
LONGEST_STOP: Final = 98 * DAY_MS
"""How old a stop may be that is triggered: how far back one is looked for by the order it became."""
ALGO_STATUSES: Final = {
    "NEW": OrderStatus.OPEN,
    "TRIGGERING": OrderStatus.OPEN,
    "TRIGGERED": OrderStatus.OPEN,
    "CANCELED": OrderStatus.CANCELED,
    "EXPIRED": OrderStatus.EXPIRED,
    "REJECTED": OrderStatus.REJECTED,
    "FINISHED": OrderStatus.FILLED,
}


def read_decline(answer: object) -> tuple[str, str] | None:
    if isinstance(answer, dict) and isinstance(answer.get("code"), int) and not isinstance(answer["code"], bool):
        return str(answer["code"]), read_reason(answer.get("msg", ""))
    return None


class BinanceAccount(VenueAccount):
    """What futures and spot have alike: orders and trades have the same fields, on endpoints of other names."""

    public: str
    private: str
    trades_endpoint: str

    @abstractmethod
    def parse_listing(self, row: VendorJson) -> Listing: ...

    async def read_listings(self, name: str | None = None) -> list[Listing]:
        rows = (await self._client.read(f"{self.public}GetExchangeInfo", "filters")).children("symbols")
        if name is None:
            rows = [row for row in rows if row.text("quoteAsset") == self.wire.asset and self.is_traded_here(row)]
        return [self.parse_listing(row) for row in rows if name in (None, row.text("symbol"))]

    def is_traded_here(self, row: VendorJson) -> bool:
        return True

    def read_rules(self, row: VendorJson, *names: str) -> list[VendorJson]:
        rules = {rule.text("filterType"): rule for rule in row.children("filters")}
        try:
            return [rules[name] for name in names]
        except KeyError as missing:
            raise Malformed(f"Binance's filters of {row.text('symbol')} lack {missing}") from None

    def ask_for_order(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        named = {"symbol": self.name(symbol), "origClientOrderId": client_id}
        return [Question(f"{self.private}GetOrder", "order", named)]

    def ask_by_id(self, symbol: Symbol, order_id: str) -> Question:
        return Question(f"{self.private}GetOrder", "order", {"symbol": self.name(symbol), "orderId": order_id})

    def ask_to_cancel(self, symbol: Symbol, client_id: ClientId, kind: OrderType, venue_id: str) -> Question:
        named = {"symbol": self.name(symbol), "origClientOrderId": client_id}
        return Question(f"{self.private}DeleteOrder", "cancel", named)

    def ask_for_open(self, symbol: Symbol) -> list[Question]:
        return [Question(f"{self.private}GetOpenOrders", "open orders", {"symbol": self.name(symbol)})]

    def build_body(self, order: OrderRequest, kind: str) -> dict[str, object]:
        return {
            "symbol": self.name(order.symbol),
            "side": order.side.value,
            "type": kind,
            "quantity": f"{order.quantity:f}",
            "recvWindow": ORDER_WINDOW,
        }

    async def parse_placed(self, order: OrderRequest, answer: VendorJson) -> Order | None:
        return await (self.parse_order if order.type in CONDITIONAL else self._read_order)(answer)

    async def read_trades(self, symbol: Symbol, low: Millis, high: Millis) -> list[VendorJson]:
        """By their time at first, and then, where a page is full, by their number."""
        rows: list[VendorJson] = []
        where: Mapping[str, object] = {"startTime": low, "endTime": high}
        while True:
            page = await self.read_pages(self.ask_for_trades_where(symbol, where))
            rows += page
            newest = max(page, key=lambda row: row.whole("id"), default=None)
            if newest is None or len(page) < self._page or newest.moment("time") > high:
                return rows
            where = {"fromId": newest.whole("id") + 1}

    def ask_for_trades_where(self, symbol: Symbol, where: Mapping[str, object]) -> Question:
        return Question(self.trades_endpoint, "trades", {"symbol": self.name(symbol), "limit": self._page, **where})

    def ask_for_order_trades(self, order: Order) -> Question:
        return self.ask_for_trades_where(order.request.symbol, {"orderId": int(order.venue_id)})

    def parse_trade(self, symbol: Symbol, row: VendorJson) -> Trade:
        if row.text("symbol") != self.name(symbol):
            raise Malformed("Binance answered with the trades of another symbol")
        return Trade(
            f"{symbol}-{row.whole('id')}",  # trades are numbered by symbol
            str(row.whole("orderId")),
            "",
            self.parse_side(row),
            row.decimal("qty"),
            row.decimal("price"),
            row.decimal("commission"),
            row.text("commissionAsset"),
            self.parse_maker(row),
            row.moment("time"),
        )

    def parse_side(self, row: VendorJson) -> OrderSide:
        return OrderSide(row.choice("side", list(OrderSide)))

    def parse_maker(self, row: VendorJson) -> bool:
        return row.flag("maker")

    async def find_owner(self, symbol: Symbol, trade: Trade) -> ClientId:
        endpoint, what, params = self.ask_by_id(symbol, trade.order_id)
        assert isinstance(params, Mapping)
        row = await self._client.read(endpoint, what, **params)
        owner = clean_id(row.text("clientOrderId"))
        limit = self.wire.types[row.choice("type", list(self.wire.types))] is OrderType.LIMIT
        return owner if limit or owner.startswith(OUR_PREFIX) else await self.find_origin(symbol, trade) or owner

    async def find_origin(self, symbol: Symbol, trade: Trade) -> ClientId | None:
        """The conditional order that became a trade's order, where it has an id of its own."""
        return None


class BinanceOrders(BinanceAccount):
    wire = WireTable(
        exchange=Venue("BINANCE"),
        vendor=ExchangeVendor("binanceusdm", "Binance", read_decline=read_decline, pace_ms=25),  # 2,400 a minute
        time=("fapiPublicGetTime", {}, ("serverTime",)),
        clock_codes=frozenset({"-1021", "-5028"}),  # dated too early or too late: by the gateway, by the engine
        key_codes=frozenset({"-1002", "-1022", "-2014", "-2015"}),
        no_such_order=frozenset({"-2013"}),
        cannot_cancel=frozenset({"-2011", "-2013"}),
        not_taken=((-1199, -1100), (-1014, -1013), (-2010, -2010), (-2028, -2016), (-5027, -4000), (-5999, -5029)),
        statuses={
            "NEW": OrderStatus.OPEN,
            "PARTIALLY_FILLED": OrderStatus.OPEN,
            "FILLED": OrderStatus.FILLED,
            "CANCELED": OrderStatus.CANCELED,
            "REJECTED": OrderStatus.REJECTED,
            "EXPIRED": OrderStatus.EXPIRED,
            "EXPIRED_IN_MATCH": OrderStatus.EXPIRED,
        },
        types={
            "MARKET": OrderType.MARKET,
            "LIMIT": OrderType.LIMIT,
            "STOP": OrderType.STOP_MARKET,
            "STOP_MARKET": OrderType.STOP_MARKET,
            "TRAILING_STOP_MARKET": OrderType.STOP_MARKET,
            "TAKE_PROFIT": OrderType.TAKE_PROFIT_MARKET,
            "TAKE_PROFIT_MARKET": OrderType.TAKE_PROFIT_MARKET,
            "LIQUIDATION": OrderType.MARKET,
        },
        in_force={TimeInForce.GTC: "GTC", TimeInForce.IOC: "IOC", TimeInForce.POST_ONLY: "GTX"},
        read_in_force={"IOC": TimeInForce.IOC, "FOK": TimeInForce.IOC, "GTX": TimeInForce.POST_ONLY},
        page=1_000,
        trades_window=WINDOW,
        funding_id="tranId",
        liquidations=("autoclose-", "adl_autoclose"),
    )
    public, private, trades_endpoint = "fapiPublic", "fapiPrivate", "fapiPrivateGetUserTrades"

    @report_unreadable
    async def rights(self) -> AccountRights:
        can_trade, can_withdraw = True, False
        if not self.paper:  # demo trading has no wallet, and nothing to be withdrawn from it
            key = await self._client.read("sapiGetAccountApiRestrictions", "permissions")
            can_trade, can_withdraw = key.flag("enableFutures"), key.flag("enableWithdrawals")
        account = await self._client.read("fapiPrivateGetAccountConfig", "account settings")
        margins = [(await self._symbol_config(symbol)).text("marginType") for symbol in self._symbols]
        return self.build_rights(
            can_trade=can_trade and account.flag("canTrade"),
            can_withdraw=can_withdraw,
            one_way=not account.flag("dualSidePosition"),
            isolated=not account.flag("multiAssetsMargin") and all(margin == "ISOLATED" for margin in margins),
        )

    def is_traded_here(self, row: VendorJson) -> bool:
        return row.text("contractType") == "PERPETUAL"

    def parse_listing(self, row: VendorJson) -> Listing:
        price, lot, market, notional = self.read_rules(
            row, "PRICE_FILTER", "LOT_SIZE", "MARKET_LOT_SIZE", "MIN_NOTIONAL"
        )
        return Listing(
            row.text("symbol"),
            row.text("baseAsset"),
            row.text("quoteAsset"),
            price.decimal("tickSize"),
            max(lot.decimal("stepSize"), market.decimal("stepSize")),
            max(lot.decimal("minQty"), market.decimal("minQty")),
            min(lot.decimal("maxQty"), market.decimal("maxQty")),
            notional.decimal("notional"),
            row.text("status") == "TRADING" and self.is_traded_here(row),
        )

    async def read_quote(self, symbol: Symbol) -> VenueQuote:
        name = self.name(symbol)
        touch = await self._client.read("fapiPublicGetTickerBookTicker", "touch", symbol=name)
        premium = await self._client.read("fapiPublicGetPremiumIndex", "mark", symbol=name)
        at = min(touch.moment("time"), premium.moment("time"))
        mark = premium.decimal("markPrice")
        return self.build_quote(symbol, touch.decimal("bidPrice"), touch.decimal("askPrice"), mark, at)

    async def ask_to_place(self, order: OrderRequest, good_till: Millis | None) -> Question:
        body = self.build_body(order, order.type.value)
        if order.reduce_only:
            body["reduceOnly"] = "true"
        if order.trigger is not None:
            body |= {"algoType": "CONDITIONAL", "triggerPrice": f"{order.trigger:f}", "workingType": "MARK_PRICE"}
            return Question("fapiPrivatePostAlgoOrder", "algo order", {**body, "clientAlgoId": order.client_id})
        if order.price is not None:
            body |= {"price": f"{order.price:f}", "timeInForce": self.wire.in_force[order.time_in_force]}
            if good_till is not None and order.time_in_force is TimeInForce.GTC:
                end = max(good_till + END_GRACE, self._client.now() + LEAST_GOOD_TILL)
                body |= {"timeInForce": "GTD", "goodTillDate": end - end % 1_000}
        body |= {"newClientOrderId": order.client_id, "newOrderRespType": "RESULT"}
        return Question("fapiPrivatePostOrder", "order", body)

    def ask_for_order(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        algo = Question("fapiPrivateGetAlgoOrder", "algo order", {"clientAlgoId": client_id})
        plain = super().ask_for_order(symbol, client_id, kind)
        return [*plain, algo] if kind is None else [algo] if kind in CONDITIONAL else plain

    def ask_to_cancel(self, symbol: Symbol, client_id: ClientId, kind: OrderType, venue_id: str) -> Question:
        if kind not in CONDITIONAL:
            return super().ask_to_cancel(symbol, client_id, kind, venue_id)
        named = {"symbol": self.name(symbol), "clientAlgoId": client_id}
        return Question("fapiPrivateDeleteAlgoOrder", "cancel", named)

    def ask_for_open(self, symbol: Symbol) -> list[Question]:
        algo = Question("fapiPrivateGetOpenAlgoOrders", "open algo orders", {"symbol": self.name(symbol)})
        return [*super().ask_for_open(symbol), algo]

    async def parse_order(self, row: VendorJson, *, listed: bool = False) -> Order:
        if "algoId" in row:
            return await self._parse_algo(row)
        filled = row.decimal("executedQty")
        return self.build_order(
            self.symbol_named(row, "symbol"),
            self.wire.types[row.choice("type", list(self.wire.types))],
            client_id=row.text("clientOrderId"),
            venue_id=str(row.whole("orderId")),
            side=self.parse_side(row),
            quantity=row.decimal("origQty"),
            price=row.decimal("price"),
            trigger=row.decimal("stopPrice"),
            in_force=row.text("timeInForce"),
            reduce_only=row.flag("reduceOnly"),
            status=self.wire.statuses[row.choice("status", list(self.wire.statuses))],
            filled=filled,
            average=row.decimal("avgPrice"),
            updated=row.moment("updateTime"),
        )

    async def _parse_algo(self, row: VendorJson) -> Order:
        """A conditional order before it is triggered."""
        symbol, status = self.symbol_named(row, "symbol"), row.choice("algoStatus", list(ALGO_STATUSES))
        quantity, closes = row.decimal("quantity"), row.flag("closePosition")
        if closes:  # placed by a person: everything there is, whatever that is
            held = {position.symbol: position.quantity for position in await self.positions()}
            quantity = held.get(symbol) or (await self.fresh_filters(symbol)).min_quantity
        return self.build_order(
            symbol,
            self.wire.types[row.choice("orderType", list(self.wire.types))],
            client_id=row.text("clientAlgoId"),
            venue_id=str(row.whole("algoId")),
            side=self.parse_side(row),
            quantity=quantity,
            trigger=row.decimal("triggerPrice"),
            reduce_only=row.flag("reduceOnly") or closes,
            status=ALGO_STATUSES[status],
            updated=row.moment("updateTime"),
            reason="" if status != "REJECTED" else "rejected when it was triggered",
        )

    def child_of(self, row: VendorJson) -> Question | None:
        """The order a conditional one was turned into: its id is empty or 0 until it is triggered."""
        if "algoId" not in row:
            return None
        child = _read_actual_order(row)
        if child is None and row.text("algoStatus") == "FINISHED":
            raise Malformed("Binance's finished algo order names no order")
        return None if child is None else self.ask_by_id(self.symbol_named(row, "symbol"), child)

    async def find_origin(self, symbol: Symbol, trade: Trade) -> ClientId | None:
        """Looked for backwards from the trade."""
        for high in range(trade.at, trade.at - LONGEST_STOP, -WINDOW):
            where = {"symbol": self.name(symbol), "startTime": high - WINDOW + 1, "endTime": high, "limit": self._page}
            rows = await self._client.read("fapiPrivateGetAllAlgoOrders", "algo orders", **where)
            for row in rows.items():
                if _read_actual_order(row) == trade.order_id:
                    return clean_id(row.text("clientAlgoId"))
        return None

    def ask_for_funding(self, symbol: Symbol, low: Millis, high: Millis) -> Question:
        where = {"startTime": low, "endTime": high, "limit": self._page}
        income = {"symbol": self.name(symbol), "incomeType": "FUNDING_FEE"}
        return Question("fapiPrivateGetIncome", "funding", {**income, **where})

    def turn_page(self, params: Mapping[str, object], answer: VendorJson, rows: Sequence[VendorJson]) -> Params | None:
        """Of income; trades are turned by their number."""
        if "incomeType" not in params or len(rows) < self._page:
            return None
        return {**params, "startTime": max(row.moment("time") for row in rows)}

    def parse_payment(self, row: VendorJson) -> tuple[str, Decimal, Millis, str, str]:
        if row.text("incomeType") != "FUNDING_FEE":
            raise Malformed("Binance answered with another income than was asked for")
        id, amount = str(row.whole("tranId")), row.decimal("income")
        return id, amount, row.moment("time"), row.text("symbol"), row.text("asset")

    async def position_rows(self) -> list[VendorJson]:
        return (await self._client.read("fapiPrivateV3GetPositionRisk", "positions")).items()

    async def parse_position(self, row: VendorJson) -> VenuePosition | None:
        amount, symbol = row.decimal("positionAmt"), self._names.get(row.text("symbol"))
        if not amount or symbol is None:
            return None
        if row.text("positionSide") != "BOTH":
            raise self.refuse_hedge_mode()
        leverage = (await self._symbol_config(symbol)).whole("leverage")
        margin, liquidation = row.decimal("isolatedWallet"), row.decimal("liquidationPrice")
        return self.build_position(symbol, amount, row.decimal("entryPrice"), leverage, margin, liquidation)

    async def balances(self) -> dict[str, Holding]:
        rows = (await self._client.read("fapiPrivateV3GetBalance", "balances")).items()
        return {row.text("asset"): Holding(row.decimal("balance"), row.decimal("availableBalance")) for row in rows}

    async def check_settings(self) -> None:
        if not self.paper and (await self._client.read("fapiPrivateGetFeeBurn", "fee settings")).flag("feeBurn"):
            raise Refused("The account at Binance pays fees in BNB; switch that off, the ledger counts in USDT.")

    async def prepare(self, order: OrderRequest) -> None:
        """Isolated margin and the order's leverage."""
        name, leverage = self.name(order.symbol), order.leverage
        config = await self._symbol_config(order.symbol)
        if config.text("marginType") != "ISOLATED":
            try:
                wanted = {"symbol": name, "marginType": "ISOLATED"}
                await self._client.send("fapiPrivatePostMarginType", "margin type", wanted)
            except VenueDeclined as declined:
                if declined.code != SAME_MARGIN_TYPE:
                    raise
        if config.whole("leverage") != leverage:
            asked = {"symbol": name, "leverage": leverage}
            answer = await self._client.send("fapiPrivatePostLeverage", "leverage", asked)
            if answer.whole("leverage") != leverage:
                raise Unavailable(f"Binance set another leverage of {order.symbol} than {leverage}×")

    async def _symbol_config(self, symbol: Symbol) -> VendorJson:
        name = self.name(symbol)
        row = (await self._client.read("fapiPrivateGetSymbolConfig", "symbol settings", symbol=name)).only()
        if row.text("symbol") != name:
            raise Malformed("Binance answered with the settings of another symbol")
        return row


def _read_actual_order(row: VendorJson) -> str | None:
    waiting = row.text("algoStatus") == "NEW" and "actualOrderId" not in row
    order_id = None if waiting else row["actualOrderId"]
    if order_id in ("", None, 0, "0"):
        return None
    if not isinstance(order_id, int | str) or isinstance(order_id, bool) or not str(order_id).isdigit():
        raise Malformed(f"{row.what}: field 'actualOrderId' is no order id")
    return str(order_id)
