"""Orders at Bybit, linear perpetuals and spot of a unified account: one position per symbol, isolated margin, stops of
perpetuals triggered by the mark.

Endpoints: https://bybit-exchange.github.io/docs/v5 (order/create-order, order/open-order, order/order-list,
order/execution, position, account/wallet-balance, account/transaction-log, user/apikey-info); errors: …/v5/error. Every
answer comes with HTTP 200 and a code. An order is acknowledged before it is matched: what became of it is looked up,
among the recent ones and then in the history, which is behind by a moment. A conditional order keeps its ids.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from zuno.adapters.venues.exchange import ExchangeVendor, Params, VenueDeclined
from zuno.adapters.venues.orders import wire as w
from zuno.adapters.venues.orders.core import VenueAccount
from zuno.adapters.venues.orders.wire import Cells, Question, WireTable, codes, decline_at, fields, spell
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import ClientId, OrderRequest, OrderStatus, OrderType, TimeInForce
from zuno.trading.rules.execution_styles import CONDITIONAL

ROWS_A_PAGE: Final = 50
SAME_LEVERAGE: Final = "110043"
CLASSIC: Final = 1
"""The account type that orders are not placed for."""
RISES, FALLS = 1, 2
WRONG_SIDE: Final = "trigger"
TRADES: Final = frozenset({"Trade", "BustTrade", "AdlTrade", "Delivery"})
"""Executions that are trades; funding is one, too."""


class BybitOrders(VenueAccount):
    wire = WireTable(
        exchange=Venue("BYBIT"),
        vendor=ExchangeVendor(
            "bybit",
            "Bybit",
            envelope="retCode",
            read_decline=decline_at(("retCode", "retMsg")),
            declines_with_ok=True,
            limit_codes=codes("10006 10018 10429"),
            ban_statuses=frozenset({403}),
        ),
        time=("publicGetV5MarketTime", {}, ("time",)),
        rows=("result", "list"),
        clock_codes=codes("10002"),
        key_codes=codes("10003 10004 10005 10007 10010 33004"),
        no_such_market=codes("10001 170121"),
        cannot_cancel=codes("110001 110008 110010 170213 170139 170142"),
        duplicate_codes=codes("110030 110072 170141"),
        # 170035 is being processed, 170146 and 170147 are time-outs, 3400214 is a fault there: nobody knows what became
        # of the order.
        not_taken=(
            *((10001, 10001), (110003, 110999), (170033, 170034), (170036, 170037)),
            *((170105, 170145), (170148, 170999), (3400000, 3400213), (3400215, 3400999)),
        ),
        not_taken_words=codes(WRONG_SIDE),
        statuses=spell(
            OrderStatus,
            "OPEN:New|PartiallyFilled|Untriggered|Triggered; FILLED:Filled; "
            "CANCELED:Cancelled|PartiallyFilledCanceled|Deactivated; REJECTED:Rejected",
        ),
        types={"Market": w.MARKET, "Limit": w.LIMIT},
        sides={"Buy": w.BUY, "Sell": w.SELL},
        in_force={w.GTC: "GTC", w.IOC: "IOC", w.POST_ONLY: "PostOnly"},
        read_in_force=spell(TimeInForce, "IOC:IOC|FOK; POST_ONLY:PostOnly"),
        order=fields(
            "client_id:orderLinkId,orderId id:orderId side:side kind:orderType quantity:qty price:price "
            "trigger:triggerPrice in_force:timeInForce reduce_only:reduceOnly status:orderStatus filled:cumExecQty "
            "average:avgPrice updated:updatedTime reason:rejectReason direction:triggerDirection"
        ),
        listing=fields(
            "name:symbol base:baseCoin quote:quoteCoin tick:priceFilter.tickSize lot:lotSizeFilter.qtyStep "
            "least:lotSizeFilter.minOrderQty most:lotSizeFilter.maxOrderQty,lotSizeFilter.maxMktOrderQty "
            "notional:lotSizeFilter.minNotionalValue state:status,contractType minutes:fundingInterval"
        ),
        trading=("Trading", "LinearPerpetual"),
        trade=fields(
            "id:execId order_id:orderId client_id:orderLinkId side:side quantity:execQty price:execPrice fee:execFee "
            "asset:feeCurrency maker:isMaker at:execTime forced:execType"
        ),
        forced=codes("BustTrade AdlTrade"),
        funding_id="id",
        funding_window=7 * DAY_MS,
        payment=fields("amount:change at:transactionTime name:symbol asset:currency"),
        position=fields(
            "name:symbol amount:size side:side entry:avgPrice leverage:leverage margin:positionBalance "
            "liquidation:liqPrice mode:positionIdx"
        ),
        one_way="0",
        balance=fields("asset:coin total:walletBalance used:locked,totalPositionIM,totalOrderIM"),
    )
    category, permission, part = "linear", "ContractTrade", "Order"

    def market(self, name: str) -> dict[str, object]:
        return {"category": self.category, "symbol": name}

    def turn_page(self, params: Mapping[str, object], answer: VendorJson, rows: Sequence[VendorJson]) -> Params | None:
        cursor = answer.child("result").maybe_text("nextPageCursor")
        return {**params, "cursor": cursor} if cursor else None

    async def read_rights(self) -> tuple[bool, bool, bool, bool]:
        key = (await self.read("privateGetV5UserQueryApi", "permissions")).child("result")
        granted = key.child("permissions")
        trades = key.whole("readOnly") == 0 and self.part in _texts(granted[self.permission])
        withdraws = "Withdraw" in _texts(granted["Wallet"])
        if self.wire.spot:
            return trades, withdraws, True, True
        rows = [row for name in self._names for row in await self._read_positions(name)]
        one_way = all(row.whole("positionIdx") == 0 for row in rows)
        return trades, withdraws, one_way, (await self._read_account()).text("marginMode") == "ISOLATED_MARGIN"

    async def check_settings(self) -> None:
        if (await self._read_account()).whole("unifiedMarginStatus") == CLASSIC:
            raise Refused("The account at Bybit is no unified trading account; upgrade it.")

    async def prepare(self, order: OrderRequest, name: str) -> None:
        """Isolated margin, which Bybit sets for the whole account, and the order's leverage."""
        if (await self._read_account()).text("marginMode") != "ISOLATED_MARGIN":
            wanted: dict[str, object] = {"setMarginMode": "ISOLATED_MARGIN"}
            await self._client.send("privatePostV5AccountSetMarginMode", "margin mode", wanted)
        if any(row.decimal("leverage") != order.leverage for row in await self._read_positions(name)):
            wanted = dict.fromkeys(("buyLeverage", "sellLeverage"), str(order.leverage))
            try:
                await self._client.send("privatePostV5PositionSetLeverage", "leverage", self.market(name) | wanted)
            except VenueDeclined as declined:
                if declined.code != SAME_LEVERAGE:
                    raise

    async def _read_account(self) -> VendorJson:
        return (await self.read("privateGetV5AccountInfo", "account settings")).child("result")

    async def _read_positions(self, name: str) -> list[VendorJson]:
        return self.rows_of(await self.read("privateGetV5PositionList", "positions", **self.market(name)))

    async def position_rows(self) -> list[VendorJson]:
        settled = {"category": self.category, "settleCoin": self.wire.asset, "limit": 200}
        return await self.read_pages(Question("privateGetV5PositionList", "positions", settled))

    async def balance_rows(self) -> list[VendorJson]:
        answer = await self.read("privateGetV5AccountWalletBalance", "balances", accountType="UNIFIED")
        return [coin for account in self.rows_of(answer) for coin in account.children("coin")]

    def ask_for_listings(self, name: str | None) -> Question:
        where = {"category": self.category, **({"limit": 1_000} if name is None else {"symbol": name})}
        return Question("publicGetV5MarketInstrumentsInfo", "filters", where)

    async def read_touch(self, name: str) -> tuple[Decimal, Decimal, Decimal, Millis]:
        answer = await self.read("publicGetV5MarketTickers", "touch", **self.market(name))
        row = answer.child("result").child("list").only()
        mark = row.decimal("lastPrice" if self.wire.spot else "markPrice")
        return row.decimal("bid1Price"), row.decimal("ask1Price"), mark, answer.moment("time")

    async def ask_to_place(self, order: OrderRequest, name: str, good_till: Millis | None) -> Question:
        kind = "Market" if order.price is None else "Limit"
        body = self.market(name) | {"side": order.side.title(), "orderType": kind, "orderLinkId": order.client_id}
        body["qty"] = f"{order.quantity:f}"
        if order.price is not None:
            body |= {"price": f"{order.price:f}", "timeInForce": self.wire.in_force[order.time_in_force]}
        falls = (order.type is w.STOP) == (order.side is w.SELL)
        body |= {"marketUnit": "baseCoin"} if self.wire.spot else {"positionIdx": 0, "reduceOnly": order.reduce_only}
        if order.trigger is not None:
            body["triggerPrice"] = f"{order.trigger:f}"
            if self.wire.spot:
                last = (await self.quote(order.symbol)).mark
                if order.trigger >= last if falls else order.trigger <= last:  # nothing else says which way it waits
                    raise VenueDeclined("Bybit", 400, WRONG_SIDE, f"the price is beyond {order.trigger:f} already")
                body["orderFilter"] = "StopOrder"
            else:
                body |= {"triggerDirection": FALLS if falls else RISES, "triggerBy": "MarkPrice"}
        return Question("privatePostV5OrderCreate", "order", body)

    def ask_for_order(self, name: str, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        named = self.market(name) | {"orderLinkId": client_id}
        endpoints = ("privateGetV5OrderRealtime", "privateGetV5OrderHistory")
        return [Question(endpoint, "order", named) for endpoint in endpoints]

    def ask_to_cancel(self, name: str, client_id: ClientId, kind: OrderType, venue_id: str) -> Question:
        named = self.market(name) | {"orderLinkId": client_id}
        if self.wire.spot and kind in CONDITIONAL:
            named["orderFilter"] = "StopOrder"
        return Question("privatePostV5OrderCancel", "cancel", named)

    def ask_for_open(self, name: str) -> list[Question]:
        return [Question("privateGetV5OrderRealtime", "open orders", self.market(name) | {"limit": ROWS_A_PAGE})]

    def kind_of(self, cells: Cells) -> OrderType:
        if not cells.number("trigger"):
            return super().kind_of(cells)
        stops = (RISES, FALLS)[cells.choose("side", self.wire.sides) is w.SELL]
        return w.STOP if cells.require("direction") in (0, stops) else w.TARGET  # 0: spot, where targets are watched

    def ask_for_trades(self, name: str, low: Millis, high: Millis) -> Question:
        span = {"startTime": low, "endTime": high, "limit": self._page}
        return Question("privateGetV5ExecutionList", "trades", self.market(name) | span)

    async def read_trades(self, name: str, low: Millis, high: Millis) -> list[VendorJson]:
        return [row for row in await super().read_trades(name, low, high) if row.text("execType") in TRADES]

    def ask_for_order_trades(self, name: str, venue_id: str) -> Question:
        named = self.market(name) | {"orderId": venue_id, "limit": self._page}
        return Question("privateGetV5ExecutionList", "trades", named)

    def ask_for_funding(self, name: str, low: Millis, high: Millis) -> Question:
        kind = {"accountType": "UNIFIED", "category": "linear", "currency": self.wire.asset, "type": "SETTLEMENT"}
        span = {"startTime": low, "endTime": high, "limit": min(self._page, ROWS_A_PAGE)}
        return Question("privateGetV5AccountTransactionLog", "funding", {**kind, **span})


class BybitSpotOrders(BybitOrders):
    """Coins in the same wallet; a conditional order waits for the last price and its coins are not locked."""

    wire = replace(
        BybitOrders.wire,
        exchange=Venue("BYBIT-SPOT"),
        listing=fields(
            "name:symbol base:baseCoin quote:quoteCoin tick:priceFilter.tickSize lot:lotSizeFilter.basePrecision "
            "least:lotSizeFilter.minOrderQty most:lotSizeFilter.maxMarketOrderQty notional:lotSizeFilter.minOrderAmt "
            "state:status"
        ),
        trading=("Trading",),
        funding_id="",
    )
    category, permission, part = "spot", "Spot", "SpotTrade"


def _texts(names: object) -> list[object]:
    return names if isinstance(names, list) else []
