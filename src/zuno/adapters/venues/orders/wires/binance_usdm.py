"""Orders at Binance's USDⓈ-M futures: isolated margin, one position per symbol, stops triggered by the mark.

Endpoints: https://developers.binance.com/docs/derivatives/usds-margined-futures/trade/rest-api and …/account/rest-api;
the keys' permissions: https://developers.binance.com/docs/wallet/account/api-key-permission. Stops and targets are algo
orders on endpoints of their own since 2025-12; to `POST /fapi/v1/order` they are −4120.
Error codes: https://developers.binance.com/docs/derivatives/usds-margined-futures/error-code.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from zuno.adapters.venues.exchange import ExchangeVendor, Params, VenueDeclined
from zuno.adapters.venues.orders import wire as w
from zuno.adapters.venues.orders.core import ORDER_WINDOW, VenueAccount
from zuno.adapters.venues.orders.wire import Cells, Question, Trade, WireTable, clean_id, codes, fields, spell
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import OUR_PREFIX, ClientId, Order, OrderRequest, OrderStatus, OrderType, TimeInForce
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


class BinanceAccount(VenueAccount):
    """What futures and spot have alike: orders and trades have the same fields, on endpoints of other names."""

    public: str
    private: str
    trades_endpoint: str
    fees_in_bnb: tuple[str, str]
    """The endpoint that says so, and its field."""

    async def check_settings(self) -> None:
        endpoint, field = self.fees_in_bnb
        if not self.paper and (await self.read(endpoint, "fee settings")).flag(field):
            raise Refused("The account at Binance pays fees in BNB; switch that off, the ledger counts in USDT.")

    async def send(self, question: Question) -> None:
        await self._client.send(*question)

    def ask_for_listings(self, name: str | None) -> Question:
        return Question(f"{self.public}GetExchangeInfo", "filters", {})

    def rows_of(self, answer: VendorJson) -> list[VendorJson]:
        return answer.children("symbols") if "symbols" in answer else answer.items()

    def flatten_listing(self, row: VendorJson) -> VendorJson:
        rules = {rule.text("filterType"): rule.value for rule in row.children("filters")}
        return VendorJson(row.what, {**row.value, "filters": rules} if isinstance(row.value, dict) else None)

    def ask_for_order(self, name: str, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        return [Question(f"{self.private}GetOrder", "order", {"symbol": name, "origClientOrderId": client_id})]

    def ask_by_id(self, name: str, order_id: str) -> Question:
        return Question(f"{self.private}GetOrder", "order", {"symbol": name, "orderId": order_id})

    def ask_to_cancel(self, name: str, client_id: ClientId, kind: OrderType, venue_id: str) -> Question:
        return Question(f"{self.private}DeleteOrder", "cancel", {"symbol": name, "origClientOrderId": client_id})

    def ask_for_open(self, name: str) -> list[Question]:
        return [Question(f"{self.private}GetOpenOrders", "open orders", {"symbol": name})]

    def build_body(self, order: OrderRequest, name: str, kind: str) -> dict[str, object]:
        sized = {"symbol": name, "side": order.side.value, "type": kind, "quantity": f"{order.quantity:f}"}
        return {**sized, "recvWindow": ORDER_WINDOW}

    async def read_trades(self, name: str, low: Millis, high: Millis) -> list[VendorJson]:
        return await self.read_trades_from(name, {"startTime": low, "endTime": high}, high)

    async def read_trades_from(self, name: str, where: Mapping[str, object], high: Millis) -> list[VendorJson]:
        """From `where` on; after a full page on from its last trade's number."""
        rows: list[VendorJson] = []
        while True:
            page = (await self.ask(self.ask_for_trades_where(name, where))).items()
            rows += page
            newest = max(page, key=lambda row: row.whole("id"), default=None)
            if newest is None or len(page) < self._page or newest.moment("time") > high:
                return rows
            where = {"fromId": newest.whole("id") + 1}

    def ask_for_trades_where(self, name: str, where: Mapping[str, object]) -> Question:
        return Question(self.trades_endpoint, "trades", {"symbol": name, "limit": self._page, **where})

    def ask_for_order_trades(self, name: str, venue_id: str) -> Question:
        return self.ask_for_trades_where(name, {"orderId": int(venue_id)})

    async def find_owner(self, name: str, trade: Trade) -> ClientId:
        row = await self.ask(self.ask_by_id(name, trade.order_id))
        owner = clean_id(row.text("clientOrderId"))
        limit = self.kind_of(Cells(row, self.wire.order)) is w.LIMIT
        return owner if limit or owner.startswith(OUR_PREFIX) else await self.find_origin(name, trade) or owner

    async def find_origin(self, name: str, trade: Trade) -> ClientId | None:
        """The conditional order that became a trade's order, where it has an id of its own."""
        return None


class BinanceOrders(BinanceAccount):
    wire = WireTable(
        exchange=Venue("BINANCE"),
        vendor=ExchangeVendor(
            "binanceusdm", "Binance", read_decline=w.decline_at(("code", "msg")), pace_ms=25
        ),  # 2,400 a minute
        time=("fapiPublicGetTime", {}, ("serverTime",)),
        clock_codes=codes("-1021 -5028"),  # dated too early or too late: by the gateway, by the matching engine
        key_codes=codes("-1002 -1022 -2014 -2015"),
        no_such_order=codes("-2013"),
        duplicate_codes=codes("-4116 -20132"),
        cannot_cancel=codes("-2011 -2013"),
        not_taken=((-1199, -1100), (-1014, -1013), (-2010, -2010), (-2028, -2016), (-5027, -4000), (-5999, -5029)),
        statuses=spell(
            OrderStatus,
            "OPEN:NEW|PARTIALLY_FILLED; FILLED:FILLED; CANCELED:CANCELED; REJECTED:REJECTED; "
            "EXPIRED:EXPIRED|EXPIRED_IN_MATCH",
        ),
        types=spell(
            OrderType,
            "MARKET:MARKET|LIQUIDATION; LIMIT:LIMIT; "
            "STOP_MARKET:STOP|STOP_MARKET|TRAILING_STOP_MARKET; "
            "TAKE_PROFIT_MARKET:TAKE_PROFIT|TAKE_PROFIT_MARKET",
        ),
        in_force={w.GTC: "GTC", w.IOC: "IOC", w.POST_ONLY: "GTX"},
        read_in_force=spell(TimeInForce, "IOC:IOC|FOK; POST_ONLY:GTX"),
        order=fields(
            "client_id:clientOrderId id:orderId side:side kind:type quantity:origQty price:price trigger:stopPrice "
            "in_force:timeInForce reduce_only:reduceOnly status:status filled:executedQty average:avgPrice "
            "updated:updateTime"
        ),
        algo=fields(
            "client_id:clientAlgoId id:algoId side:side kind:orderType quantity:quantity trigger:triggerPrice "
            "reduce_only:reduceOnly status:algoStatus updated:updateTime reason:algoStatus"
        ),
        algo_statuses=spell(
            OrderStatus,
            "OPEN:NEW|TRIGGERING|TRIGGERED; CANCELED:CANCELED; EXPIRED:EXPIRED; REJECTED:REJECTED; FILLED:FINISHED",
        ),
        listing=fields(
            "name:symbol base:baseAsset quote:quoteAsset tick:filters.PRICE_FILTER.tickSize "
            "lot:filters.LOT_SIZE.stepSize,filters.MARKET_LOT_SIZE.stepSize "
            "least:filters.LOT_SIZE.minQty,filters.MARKET_LOT_SIZE.minQty "
            "most:filters.LOT_SIZE.maxQty,filters.MARKET_LOT_SIZE.maxQty notional:filters.MIN_NOTIONAL.notional "
            "state:status,contractType"
        ),
        trading=("TRADING", "PERPETUAL"),
        trade=fields(
            "id:id order_id:orderId side:side quantity:qty price:price fee:commission asset:commissionAsset "
            "maker:maker at:time"
        ),
        numbers_by_market=True,
        page=1_000,
        trades_window=WINDOW,
        funding_id="tranId",
        payment=fields("amount:income at:time name:symbol asset:asset"),
        position=fields(
            "name:symbol amount:positionAmt entry:entryPrice margin:isolatedWallet liquidation:liquidationPrice "
            "mode:positionSide"
        ),
        one_way="BOTH",
        balance=fields("asset:asset total:balance free:availableBalance"),
        liquidations=("autoclose-", "adl_autoclose"),
    )
    public, private, trades_endpoint = "fapiPublic", "fapiPrivate", "fapiPrivateGetUserTrades"
    fees_in_bnb = ("fapiPrivateGetFeeBurn", "feeBurn")

    async def read_rights(self) -> tuple[bool, bool, bool, bool]:
        trades, withdraws = True, False
        if not self.paper:  # demo trading has no wallet, and nothing to be withdrawn from it
            key = await self.read("sapiGetAccountApiRestrictions", "permissions")
            trades, withdraws = key.flag("enableFutures"), key.flag("enableWithdrawals")
        account = await self.read("fapiPrivateGetAccountConfig", "account settings")
        margins = {(await self._read_config(name)).text("marginType") for name in self._names}
        isolated = not account.flag("multiAssetsMargin") and margins <= {"ISOLATED"}
        return trades and account.flag("canTrade"), withdraws, not account.flag("dualSidePosition"), isolated

    async def read_touch(self, name: str) -> tuple[Decimal, Decimal, Decimal, Millis]:
        touch = await self.read("fapiPublicGetTickerBookTicker", "touch", symbol=name)
        premium = await self.read("fapiPublicGetPremiumIndex", "mark", symbol=name)
        at = min(touch.moment("time"), premium.moment("time"))
        return touch.decimal("bidPrice"), touch.decimal("askPrice"), premium.decimal("markPrice"), at

    async def ask_to_place(self, order: OrderRequest, name: str, good_till: Millis | None) -> Question:
        body = self.build_body(order, name, order.type.value)
        if order.reduce_only:
            body["reduceOnly"] = "true"
        if order.trigger is not None:
            body |= {"algoType": "CONDITIONAL", "triggerPrice": f"{order.trigger:f}", "workingType": "MARK_PRICE"}
            return Question("fapiPrivatePostAlgoOrder", "algo order", {**body, "clientAlgoId": order.client_id})
        if order.price is not None:
            body |= {"price": f"{order.price:f}", "timeInForce": self.wire.in_force[order.time_in_force]}
            if good_till is not None and order.time_in_force is w.GTC:
                end = max(good_till + END_GRACE, self._client.now() + LEAST_GOOD_TILL)
                body |= {"timeInForce": "GTD", "goodTillDate": end - end % 1_000}
        body |= {"newClientOrderId": order.client_id, "newOrderRespType": "RESULT"}
        return Question("fapiPrivatePostOrder", "order", body)

    async def parse_placed(self, order: OrderRequest, answer: VendorJson) -> Order | None:
        return await (self.parse_order if order.type in CONDITIONAL else self._read_order)(answer)

    def ask_for_order(self, name: str, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        algo = Question("fapiPrivateGetAlgoOrder", "algo order", {"clientAlgoId": client_id})
        plain = super().ask_for_order(name, client_id, kind)
        return [*plain, algo] if kind is None else [algo] if kind in CONDITIONAL else plain

    def ask_to_cancel(self, name: str, client_id: ClientId, kind: OrderType, venue_id: str) -> Question:
        if kind not in CONDITIONAL:
            return super().ask_to_cancel(name, client_id, kind, venue_id)
        return Question("fapiPrivateDeleteAlgoOrder", "cancel", {"symbol": name, "clientAlgoId": client_id})

    def ask_for_open(self, name: str) -> list[Question]:
        algo = Question("fapiPrivateGetOpenAlgoOrders", "open algo orders", {"symbol": name})
        return [*super().ask_for_open(name), algo]

    async def parse_order(self, row: VendorJson, *, listed: bool = False) -> Order:
        if not self.is_algo(row) or not row.flag("closePosition"):
            return await super().parse_order(row)
        symbol = self.symbol_of(row)  # placed by a person: everything there is, whatever that is
        held = {position.symbol: position.quantity for position in await self.positions()}
        quantity = held.get(symbol) or (await self.fresh_filters(symbol)).min_quantity
        return await self.build_order(Cells(row, self.wire.algo), closes=quantity)

    def child_of(self, row: VendorJson) -> Question | None:
        """The id of the order that a conditional one was turned into is empty or 0 until it is triggered."""
        if not self.is_algo(row):
            return None
        child = _read_actual_order(row)
        if child is None and row.text("algoStatus") == "FINISHED":
            raise Malformed("Binance's finished algo order names no order")
        return None if child is None else self.ask_by_id(row.text("symbol"), child)

    async def find_origin(self, name: str, trade: Trade) -> ClientId | None:
        """The conditional order that became the trade's order, searched week by week back from the trade."""
        for high in range(trade.at, trade.at - LONGEST_STOP, -WINDOW):
            span = {"startTime": high - WINDOW + 1, "endTime": high, "limit": self._page}
            rows = await self.read("fapiPrivateGetAllAlgoOrders", "algo orders", symbol=name, **span)
            for row in rows.items():
                if _read_actual_order(row) == trade.order_id:
                    return clean_id(row.text("clientAlgoId"))
        return None

    def ask_for_funding(self, name: str, low: Millis, high: Millis) -> Question:
        income: dict[str, object] = {"symbol": name, "incomeType": "FUNDING_FEE", "limit": self._page}
        return Question("fapiPrivateGetIncome", "funding", income | {"startTime": low, "endTime": high})

    def turn_page(self, params: Mapping[str, object], answer: VendorJson, rows: Sequence[VendorJson]) -> Params | None:
        """Income is paged by time; the pages of trades follow by number in `read_trades_from`."""
        if "incomeType" not in params or len(rows) < self._page:
            return None
        return {**params, "startTime": max(row.moment("time") for row in rows)}

    async def position_rows(self) -> list[VendorJson]:
        return (await self.read("fapiPrivateV3GetPositionRisk", "positions")).items()

    async def read_leverage(self, name: str, cells: Cells) -> int:
        return (await self._read_config(name)).whole("leverage")

    async def balance_rows(self) -> list[VendorJson]:
        return (await self.read("fapiPrivateV3GetBalance", "balances")).items()

    async def prepare(self, order: OrderRequest, name: str) -> None:
        """Isolated margin and the order's leverage."""
        config = await self._read_config(name)
        if config.text("marginType") != "ISOLATED":
            try:
                wanted: dict[str, object] = {"symbol": name, "marginType": "ISOLATED"}
                await self._client.send("fapiPrivatePostMarginType", "margin type", wanted)
            except VenueDeclined as declined:
                if declined.code != SAME_MARGIN_TYPE:
                    raise
        if config.whole("leverage") != order.leverage:
            wanted = {"symbol": name, "leverage": order.leverage}
            answer = await self._client.send("fapiPrivatePostLeverage", "leverage", wanted)
            if answer.whole("leverage") != order.leverage:
                raise Unavailable(f"Binance set another leverage of {name} than {order.leverage}×")

    async def _read_config(self, name: str) -> VendorJson:
        row = (await self.read("fapiPrivateGetSymbolConfig", "symbol settings", symbol=name)).only()
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
