"""Orders at OKX, perpetual swaps and spot of one trading account: net positions on isolated margin, stops of swaps
triggered by the mark.

Endpoints: https://www.okx.com/docs-v5/en (order-book-trading-trade, order-book-trading-algo-trading, trading-account,
public-data); errors: …/#error-code. Swaps are counted in contracts there and in the base currency here. Stops and
targets are algo orders with ids of their own, and become an order of another id. A refused order is HTTP 200, code 1
and a code of its own. A client id may come again once its order is over; an order that was cancelled unfilled is
forgotten after two hours. Fees are below zero where they are paid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from zuno.adapters.venues.exchange import ExchangeVendor, Params
from zuno.adapters.venues.orders import wire as w
from zuno.adapters.venues.orders.core import ORDER_WINDOW, VenueAccount
from zuno.adapters.venues.orders.wire import Cells, Question, Trade, WireTable, codes, decline_at, fields, spell
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed, Refused
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import ClientId, OrderRequest, OrderStatus, OrderType, TimeInForce
from zuno.trading.rules.execution_styles import CONDITIONAL

SPOT_MODE: Final = "1"
"""The account level that holds no positions."""
RECENT_FILLS: Final = 3 * DAY_MS
RECENT_BILLS: Final = 7 * DAY_MS
"""What is older is in an archive, which is behind by a moment."""
FUNDING: Final = "8"
ALGO_TYPES: Final = ("conditional,oco", "trigger")


class OkxOrders(VenueAccount):
    wire = WireTable(
        exchange=Venue("OKX"),
        vendor=ExchangeVendor(
            "okx",
            "OKX",
            envelope="code",
            read_decline=decline_at(("data.sCode", "data.sMsg"), ("code", "msg")),
            declines_with_ok=True,
            limit_codes=codes("50011 50061"),
            deadline=("expTime", ORDER_WINDOW),
        ),
        market="{base}-{quote}-SWAP",
        market_field="instId",
        time=("publicGetPublicTime", {}, ("data", 0, "ts")),
        rows=("data",),
        clock_codes=codes("50102"),
        key_codes=codes("50030 50100 50101 50105 50110 50111 50113 50114 50119 50120"),
        no_such_order=codes("51001 51603"),
        duplicate_codes=codes("51011 51016 51065 51068"),
        no_such_market=codes("51001"),
        cannot_cancel=codes("51400 51401 51402 51410 51603"),
        # 51054 and 51149 are time-outs: nobody knows what became of the order.
        not_taken=(
            *((50014, 50016), (51000, 51053), (51055, 51148), (51150, 51399)),
            *((54000, 54999), (59000, 59999)),
        ),
        statuses=spell(OrderStatus, "OPEN:live|partially_filled; FILLED:filled; CANCELED:canceled|mmp_canceled"),
        types=spell(OrderType, "MARKET:market|optimal_limit_ioc; LIMIT:limit|post_only|ioc|fok"),
        sides={"buy": w.BUY, "sell": w.SELL},
        in_force={w.GTC: "limit", w.IOC: "ioc", w.POST_ONLY: "post_only"},
        read_in_force=spell(TimeInForce, "IOC:ioc|fok; POST_ONLY:post_only"),
        order=fields(
            "client_id:clOrdId,algoClOrdId,ordId id:ordId side:side kind:ordType quantity:sz price:px status:state "
            "reduce_only:reduceOnly filled:accFillSz average:avgPx updated:uTime"
        ),
        algo=fields(
            "client_id:algoClOrdId,algoId id:algoId side:side quantity:sz reduce_only:reduceOnly status:state "
            "trigger:slTriggerPx,tpTriggerPx,triggerPx stop:slTriggerPx target:tpTriggerPx updated:uTime "
            "reason:failCode"
        ),
        algo_statuses=spell(
            OrderStatus,
            "OPEN:live|pause|partially_effective; FILLED:effective; CANCELED:canceled; "
            "REJECTED:order_failed|partially_failed",
        ),
        listing=fields(
            "name:instId base:ctValCcy quote:settleCcy tick:tickSz lot:lotSz least:minSz most:maxMktSz,maxLmtSz "
            "unit:ctVal state:state,ctType,ctMult"
        ),
        trading=("live", "linear", "1"),
        trade=fields(
            "id:billId order_id:ordId client_id:clOrdId side:side quantity:fillSz price:fillPx fee:fee asset:feeCcy "
            "maker:execType at:ts forced:subType"
        ),
        maker="M",
        forced=frozenset(map(str, (*range(100, 108), *range(125, 129)))),
        fee_sign=-1,
        trades_window=89 * DAY_MS,
        funding_id="billId",
        payment=fields("amount:balChg,posBalChg at:ts name:instId asset:ccy"),  # isolated margin pays by itself
        position=fields(
            "name:instId amount:pos entry:avgPx leverage:lever margin:margin liquidation:liqPx mode:posSide"
        ),
        one_way="net",
        balance=fields("asset:ccy total:cashBal,isoEq,-isoUpl free:availBal"),  # isolated margin has left the cash
        cancels_by_id=True,
    )
    instrument, margin_mode, trigger_by = "SWAP", "isolated", "mark"

    def turn_page(self, params: Mapping[str, object], answer: VendorJson, rows: Sequence[VendorJson]) -> Params | None:
        """Newest first: the next page is older than the oldest row."""
        if "limit" not in params or len(rows) < self._page:
            return None
        name = "billId" if "billId" in rows[0] else "algoId" if "ordType" in params else "ordId"
        return {**params, "after": min((row.text(name) for row in rows), key=int)}

    async def read_rights(self) -> tuple[bool, bool, bool, bool]:
        settings = await self._read_settings()
        granted = settings.text("perm").split(",")
        one_way = self.wire.spot or settings.text("posMode") == "net_mode"
        rows = [] if self.wire.spot else await self.position_rows()
        isolated = all(row.text("mgnMode") == "isolated" for row in rows if row.text("instId") in self._names)
        return "trade" in granted, "withdraw" in granted, one_way, isolated

    async def check_settings(self) -> None:
        if not self.wire.spot and (await self._read_settings()).text("acctLv") == SPOT_MODE:
            raise Refused("The account at OKX is in spot mode; switch it to futures mode.")

    async def _read_settings(self) -> VendorJson:
        return (await self.read("privateGetAccountConfig", "account settings")).child("data").only()

    async def prepare(self, order: OrderRequest, name: str) -> None:
        """The margin mode goes with each order; beside a position on cross margin there would be two."""
        for row in await self.position_rows():
            if row.text("instId") == name and row.text("mgnMode") != self.margin_mode and row.decimal_if_any("pos"):
                raise Refused(f"The position of {name} at OKX is on cross margin; close it.")
        where = {"instId": name, "mgnMode": self.margin_mode}
        rows = self.rows_of(await self.read("privateGetAccountLeverageInfo", "leverage", **where))
        if any(row.decimal("lever") != order.leverage for row in rows):
            wanted = {**where, "lever": str(order.leverage)}
            await self._client.send("privatePostAccountSetLeverage", "leverage", wanted)

    async def balance_rows(self) -> list[VendorJson]:
        account = (await self.read("privateGetAccountBalance", "balances")).child("data").only()
        return account.children("details")

    async def position_rows(self) -> list[VendorJson]:
        return self.rows_of(await self.read("privateGetAccountPositions", "positions", instType="SWAP"))

    def ask_for_listings(self, name: str | None) -> Question:
        where = {"instType": self.instrument, **({} if name is None else {"instId": name})}
        return Question("publicGetPublicInstruments", "filters", where)

    async def read_touch(self, name: str) -> tuple[Decimal, Decimal, Decimal, Millis]:
        touch = (await self.read("publicGetMarketTicker", "touch", instId=name)).child("data").only()
        bid, ask, mark, at = touch.decimal("bidPx"), touch.decimal("askPx"), touch.decimal("last"), touch.moment("ts")
        if not self.wire.spot:
            marks = await self.read("publicGetPublicMarkPrice", "mark", instType="SWAP", instId=name)
            row = marks.child("data").only()
            mark, at = row.decimal("markPx"), min(at, row.moment("ts"))
        return bid, ask, mark, at

    async def ask_to_place(self, order: OrderRequest, name: str, good_till: Millis | None) -> Question:
        size = f"{(order.quantity / await self.unit_of(name)).normalize():f}"
        body: dict[str, object] = {"instId": name, "tdMode": self.margin_mode, "side": order.side.lower(), "sz": size}
        body["clOrdId"] = order.client_id  # of an algo order, too: without one ccxt writes a broker's into it
        if self.wire.spot:
            body["tgtCcy"] = "base_ccy"
        elif order.reduce_only:
            body["reduceOnly"] = True
        if order.trigger is not None:
            leg = "sl" if order.type is w.STOP else "tp"
            body |= {"ordType": "conditional", "algoClOrdId": order.client_id, f"{leg}OrdPx": "-1"}
            body |= {f"{leg}TriggerPx": f"{order.trigger:f}", f"{leg}TriggerPxType": self.trigger_by}
            return Question("privatePostTradeOrderAlgo", "algo order", body)
        if order.price is None:
            body["ordType"] = "market"
        else:
            body |= {"ordType": self.wire.in_force[order.time_in_force], "px": f"{order.price:f}"}
        return Question("privatePostTradeOrder", "order", body)

    def ask_for_order(self, name: str, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        plain = Question("privateGetTradeOrder", "order", {"instId": name, "clOrdId": client_id})
        algo = Question("privateGetTradeOrderAlgo", "algo order", {"algoClOrdId": client_id})
        return [plain, algo] if kind is None else [algo] if kind in CONDITIONAL else [plain]

    def ask_to_cancel(self, name: str, client_id: ClientId, kind: OrderType, venue_id: str) -> Question:
        if kind in CONDITIONAL:
            return Question("privatePostTradeCancelAlgos", "cancel", [{"instId": name, "algoId": venue_id}])
        return Question("privatePostTradeCancelOrder", "cancel", {"instId": name, "ordId": venue_id})

    def ask_for_open(self, name: str) -> list[Question]:
        where = {"instType": self.instrument, "instId": name, "limit": self._page}
        plain = Question("privateGetTradeOrdersPending", "open orders", where)
        endpoint = "privateGetTradeOrdersAlgoPending"
        return [plain, *(Question(endpoint, "open algo orders", {**where, "ordType": kind}) for kind in ALGO_TYPES)]

    def is_algo(self, row: VendorJson) -> bool:
        return "triggerPx" in row  # an order has the id of the algo order that became it

    def kind_of(self, cells: Cells) -> OrderType:
        if "stop" not in cells:
            return super().kind_of(cells)
        return w.TARGET if cells.number("target") and not cells.number("stop") else w.STOP

    def child_of(self, row: VendorJson) -> Question | None:
        child = row.text("ordId") if self.is_algo(row) else ""
        if self.is_algo(row) and not child and row.text("state") == "effective":
            raise Malformed("OKX's triggered algo order names no order")
        where = {"instId": row.text("instId"), "ordId": child}
        return Question("privateGetTradeOrder", "order", where) if child else None

    def ask_for_trades(self, name: str, low: Millis, high: Millis) -> Question:
        recent = self._client.now() - low < RECENT_FILLS
        endpoint = "privateGetTradeFills" if recent else "privateGetTradeFillsHistory"
        where = {"instType": self.instrument, "instId": name, "begin": low, "end": high, "limit": self._page}
        return Question(endpoint, "trades", where)

    def ask_for_order_trades(self, name: str, venue_id: str) -> Question:
        where = {"instType": self.instrument, "instId": name, "ordId": venue_id, "limit": self._page}
        return Question("privateGetTradeFills", "trades", where)

    async def find_owner(self, name: str, trade: Trade) -> ClientId:
        """The fills of the order that an algo order became do not name it; the order does."""
        answer = await self.read("privateGetTradeOrder", "order", instId=name, ordId=trade.order_id)
        row = answer.child("data").only()
        return row.text("algoClOrdId") or row.text("clOrdId") or trade.order_id

    def ask_for_funding(self, name: str, low: Millis, high: Millis) -> Question:
        recent = self._client.now() - low < RECENT_BILLS
        endpoint = "privateGetAccountBills" if recent else "privateGetAccountBillsArchive"
        where = {"instType": self.instrument, "type": FUNDING, "begin": low, "end": high, "limit": self._page}
        return Question(endpoint, "funding", where)


class OkxSpotOrders(OkxOrders):
    """Coins in the same account; a conditional order waits for the last price."""

    wire = replace(
        OkxOrders.wire,
        exchange=Venue("OKX-SPOT"),
        market="{base}-{quote}",
        listing=fields(
            "name:instId base:baseCcy quote:quoteCcy tick:tickSz lot:lotSz least:minSz most:maxLmtSz state:state"
        ),
        trading=("live",),
        funding_id="",
    )
    instrument, margin_mode, trigger_by = "SPOT", "cash", "last"
