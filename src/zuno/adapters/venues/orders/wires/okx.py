"""Orders at OKX, perpetual swaps and spot of one trading account: net positions on isolated margin, stops of swaps
triggered by the mark.

Endpoints: https://www.okx.com/docs-v5/en (order-book-trading-trade, order-book-trading-algo-trading, trading-account,
public-data); errors: …/#error-code. Swaps are counted in contracts there and in the base currency here. Stops and
targets are algo orders with ids of their own, and become an order of another id. A refused order is HTTP 200, code 1
and a code of its own. A client id may come again once its order is over; an order that was cancelled unfilled is
forgotten after two hours. Fees are below zero where they are paid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from zuno.adapters.venues.exchange import ExchangeVendor, Params
from zuno.adapters.venues.orders.core import VenueAccount, report_unreadable
from zuno.adapters.venues.orders.wire import Holding, Listing, Question, Trade, WireTable, read_reason
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed, Refused
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

SPOT_MODE: Final = "1"
"""The account level that holds no positions."""
RECENT_FILLS: Final = 3 * DAY_MS
RECENT_BILLS: Final = 7 * DAY_MS
"""What is older is in an archive, which is behind by a moment."""
FUNDING: Final = "8"
FORCED: Final = frozenset(map(str, (*range(100, 108), *range(125, 129))))
"""Kinds of trades that the exchange made to close a position."""
ALGO_TYPES: Final = ("conditional,oco", "trigger")
ALGO_STATUSES: Final = {
    "live": OrderStatus.OPEN,
    "pause": OrderStatus.OPEN,
    "partially_effective": OrderStatus.OPEN,
    "effective": OrderStatus.FILLED,
    "canceled": OrderStatus.CANCELED,
    "order_failed": OrderStatus.REJECTED,
    "partially_failed": OrderStatus.REJECTED,
}


def read_decline(answer: object) -> tuple[str, str] | None:
    """Code and reason of the order, where there are such, else of the request."""
    if not isinstance(answer, dict) or not isinstance(answer.get("code"), str):
        return None
    rows = answer.get("data")
    row = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    if row.get("sCode") not in (None, "", "0"):
        return str(row["sCode"]), read_reason(row.get("sMsg", ""))
    return None if answer["code"] == "0" else (answer["code"], read_reason(answer.get("msg", "")))


class OkxOrders(VenueAccount):
    wire = WireTable(
        exchange=Venue("OKX"),
        vendor=ExchangeVendor(
            "okx",
            "OKX",
            envelope="code",
            read_decline=read_decline,
            declines_with_ok=True,
            limit_codes=frozenset({"50011", "50061"}),
        ),
        market="{base}-{quote}-SWAP",
        time=("publicGetPublicTime", {}, ("data", 0, "ts")),
        rows=("data",),
        clock_codes=frozenset({"50102"}),
        key_codes=frozenset({"50030", "50100", "50101", "50105", "50110", "50111", "50113", "50114", "50119", "50120"}),
        no_such_order=frozenset({"51603"}),
        no_such_market=frozenset({"51001"}),
        cannot_cancel=frozenset({"51400", "51401", "51402", "51410", "51603"}),
        not_taken=((50014, 50016), (51000, 51148), (51150, 51399), (54000, 54999), (59000, 59999)),
        statuses={
            "live": OrderStatus.OPEN,
            "partially_filled": OrderStatus.OPEN,
            "filled": OrderStatus.FILLED,
            "canceled": OrderStatus.CANCELED,
            "mmp_canceled": OrderStatus.CANCELED,
        },
        types={
            "market": OrderType.MARKET,
            "optimal_limit_ioc": OrderType.MARKET,
            **dict.fromkeys(("limit", "post_only", "ioc", "fok"), OrderType.LIMIT),
        },
        sides={"buy": OrderSide.BUY, "sell": OrderSide.SELL},
        in_force={TimeInForce.GTC: "limit", TimeInForce.IOC: "ioc", TimeInForce.POST_ONLY: "post_only"},
        read_in_force={"ioc": TimeInForce.IOC, "fok": TimeInForce.IOC, "post_only": TimeInForce.POST_ONLY},
        trade_id="billId",
        trades_window=89 * DAY_MS,
        funding_id="billId",
        cancels_by_id=True,
    )
    instrument, margin_mode, trigger_by = "SWAP", "isolated", "mark"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._contracts: dict[str, Decimal] = {}
        """How much of the base currency a unit of size is, by the instrument."""

    async def read_contract(self, name: str) -> Decimal:
        if name not in self._contracts and not any(listing.name == name for listing in await self.read_listings(name)):
            raise Malformed(f"OKX does not list {name}")
        return self._contracts[name]

    def turn_page(self, params: Mapping[str, object], answer: VendorJson, rows: Sequence[VendorJson]) -> Params | None:
        """Newest first: the next page is older than the oldest row."""
        if len(rows) < int(str(params.get("limit", 0) or len(rows) + 1)):
            return None
        name = "billId" if "billId" in rows[0] else "algoId" if "ordType" in params else "ordId"
        return {**params, "after": min((row.text(name) for row in rows), key=int)}

    # -- account

    @report_unreadable
    async def rights(self) -> AccountRights:
        settings = await self._read_settings()
        granted = settings.text("perm").split(",")
        rows = [] if self.wire.spot else await self.position_rows()
        ours = [row for row in rows if row.text("instId") in self._names]
        return self.build_rights(
            can_trade="trade" in granted,
            can_withdraw="withdraw" in granted,
            one_way=self.wire.spot or settings.text("posMode") == "net_mode",
            isolated=all(row.text("mgnMode") == "isolated" for row in ours),
        )

    async def check_settings(self) -> None:
        if not self.wire.spot and (await self._read_settings()).text("acctLv") == SPOT_MODE:
            raise Refused("The account at OKX is in spot mode; switch it to futures mode.")

    async def _read_settings(self) -> VendorJson:
        return (await self._client.read("privateGetAccountConfig", "account settings")).child("data").only()

    async def prepare(self, order: OrderRequest) -> None:
        """The margin mode goes with each order; beside a position on cross margin there would be two."""
        if self.wire.spot:
            return
        name, leverage = self.name(order.symbol), order.leverage
        for row in await self.position_rows():
            if row.text("instId") == name and row.text("mgnMode") != self.margin_mode and row.decimal("pos"):
                raise Refused(f"The position of {name} at OKX is on cross margin; close it.")
        where = {"instId": name, "mgnMode": self.margin_mode}
        rows = self.rows_of(await self._client.read("privateGetAccountLeverageInfo", "leverage", **where))
        if any(row.decimal("lever") != leverage for row in rows):
            await self._client.send("privatePostAccountSetLeverage", "leverage", where | {"lever": str(leverage)})

    async def balances(self) -> dict[str, Holding]:
        """The margin of isolated positions has left the cash."""
        account = (await self._client.read("privateGetAccountBalance", "balances")).child("data").only()
        held = {}
        for row in account.children("details"):
            isolated = (row.decimal_if_any("isoEq") or ZERO) - (row.decimal_if_any("isoUpl") or ZERO)
            free = row.decimal_if_any("availBal")
            free = row.decimal("availEq") if free is None else free
            held[row.text("ccy")] = Holding(row.decimal("cashBal") + isolated, free)
        return held

    async def position_rows(self) -> list[VendorJson]:
        return self.rows_of(await self._client.read("privateGetAccountPositions", "positions", instType="SWAP"))

    async def parse_position(self, row: VendorJson) -> VenuePosition | None:
        contracts, symbol = row.decimal_if_any("pos"), self._names.get(row.text("instId"))
        if not contracts or symbol is None:
            return None
        if row.text("posSide") != "net":
            raise self.refuse_hedge_mode()
        amount = contracts * await self.read_contract(row.text("instId"))
        margin, leverage = row.decimal_if_any("margin") or ZERO, int(row.decimal("lever"))
        return self.build_position(symbol, amount, row.decimal("avgPx"), leverage, margin, row.decimal_if_any("liqPx"))

    # -- markets

    async def read_listings(self, name: str | None = None) -> list[Listing]:
        where = {"instType": self.instrument, **({} if name is None else {"instId": name})}
        rows = self.rows_of(await self._client.read("publicGetPublicInstruments", "filters", **where))
        return [self.parse_listing(row) for row in rows if name or self.is_listed(row)]

    def is_listed(self, row: VendorJson) -> bool:
        return row.text("ctType") == "linear" and row.text("settleCcy") == self.wire.asset

    def parse_listing(self, row: VendorJson) -> Listing:
        name = row.text("instId")
        if self.wire.spot:
            base, quote, contract, most = row.text("baseCcy"), row.text("quoteCcy"), Decimal(1), row.decimal("maxLmtSz")
        else:
            base, quote = row.text("ctValCcy"), row.text("settleCcy")
            contract = row.decimal("ctVal") * row.decimal("ctMult")
            most = min(row.decimal("maxMktSz"), row.decimal("maxLmtSz"))
        self._contracts[name] = contract
        return Listing(
            name,
            base,
            quote,
            row.decimal("tickSz"),
            row.decimal("lotSz") * contract,
            row.decimal("minSz") * contract,
            most * contract,
            Decimal(str(self.exchange.least_notional)),  # the list has none
            row.text("state") == "live",
            contract,
        )

    async def read_quote(self, symbol: Symbol) -> VenueQuote:
        name = self.name(symbol)
        touch = (await self._client.read("publicGetMarketTicker", "touch", instId=name)).child("data").only()
        bid, ask, last, at = touch.decimal("bidPx"), touch.decimal("askPx"), touch.decimal("last"), touch.moment("ts")
        if self.wire.spot:
            return self.build_quote(symbol, bid, ask, last, at)
        marks = await self._client.read("publicGetPublicMarkPrice", "mark", instType="SWAP", instId=name)
        mark = marks.child("data").only()
        return self.build_quote(symbol, bid, ask, mark.decimal("markPx"), min(at, mark.moment("ts")))

    # -- orders

    async def ask_to_place(self, order: OrderRequest, good_till: Millis | None) -> Question:
        name = self.name(order.symbol)
        body: dict[str, object] = {
            "instId": name,
            "tdMode": self.margin_mode,
            "side": order.side.lower(),
            "sz": f"{(order.quantity / await self.read_contract(name)).normalize():f}",
            "clOrdId": order.client_id,  # of an algo order, too: without one ccxt writes a broker's into it
        }
        if self.wire.spot:
            body["tgtCcy"] = "base_ccy"
        elif order.reduce_only:
            body["reduceOnly"] = True
        if order.trigger is not None:
            leg = "sl" if order.type is OrderType.STOP_MARKET else "tp"
            body |= {"ordType": "conditional", "algoClOrdId": order.client_id, f"{leg}OrdPx": "-1"}
            body |= {f"{leg}TriggerPx": f"{order.trigger:f}", f"{leg}TriggerPxType": self.trigger_by}
            return Question("privatePostTradeOrderAlgo", "algo order", body)
        if order.price is None:
            body["ordType"] = "market"
        else:
            body |= {"ordType": self.wire.in_force[order.time_in_force], "px": f"{order.price:f}"}
        return Question("privatePostTradeOrder", "order", body)

    def ask_for_order(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        plain = Question("privateGetTradeOrder", "order", {"instId": self.name(symbol), "clOrdId": client_id})
        algo = Question("privateGetTradeOrderAlgo", "algo order", {"algoClOrdId": client_id})
        return [plain, algo] if kind is None else [algo] if kind in CONDITIONAL else [plain]

    def ask_to_cancel(self, symbol: Symbol, client_id: ClientId, kind: OrderType, venue_id: str) -> Question:
        if kind in CONDITIONAL:
            algo = {"instId": self.name(symbol), "algoId": venue_id}
            return Question("privatePostTradeCancelAlgos", "cancel", [algo])
        return Question("privatePostTradeCancelOrder", "cancel", {"instId": self.name(symbol), "ordId": venue_id})

    def ask_for_open(self, symbol: Symbol) -> list[Question]:
        where = {"instType": self.instrument, "instId": self.name(symbol), "limit": self._page}
        plain = Question("privateGetTradeOrdersPending", "open orders", where)
        endpoint = "privateGetTradeOrdersAlgoPending"
        return [plain, *(Question(endpoint, "open algo orders", where | {"ordType": kind}) for kind in ALGO_TYPES)]

    async def parse_order(self, row: VendorJson, *, listed: bool = False) -> Order:
        name, symbol = row.text("instId"), self.symbol_named(row, "instId")
        contract = await self.read_contract(name)
        side, updated = self.wire.sides[row.choice("side", list(self.wire.sides))], row.moment("uTime")
        quantity, reduces = row.decimal("sz") * contract, row.text("reduceOnly") == "true"
        if _is_algo(row):
            stop, target = row.decimal_if_any("slTriggerPx"), row.decimal_if_any("tpTriggerPx")
            return self.build_order(
                symbol,
                OrderType.TAKE_PROFIT_MARKET if target and not stop else OrderType.STOP_MARKET,
                client_id=row.text("algoClOrdId") or row.text("algoId"),
                venue_id=row.text("algoId"),
                side=side,
                quantity=quantity,
                trigger=stop or target or row.decimal("triggerPx"),
                reduce_only=reduces,
                status=ALGO_STATUSES[row.choice("state", list(ALGO_STATUSES))],
                updated=updated,
                reason=read_reason(row.text("failCode")),
            )
        return self.build_order(
            symbol,
            self.wire.types[row.choice("ordType", list(self.wire.types))],
            client_id=row.text("clOrdId") or row.text("algoClOrdId") or row.text("ordId"),
            venue_id=row.text("ordId"),
            side=side,
            quantity=quantity,
            price=row.decimal_if_any("px"),
            in_force=row.text("ordType"),
            reduce_only=reduces,
            status=self.wire.statuses[row.choice("state", list(self.wire.statuses))],
            filled=row.decimal("accFillSz") * contract,
            average=row.decimal_if_any("avgPx"),
            updated=updated,
        )

    def child_of(self, row: VendorJson) -> Question | None:
        if not _is_algo(row):
            return None
        child = row.text("ordId")
        if not child and row.text("state") == "effective":
            raise Malformed("OKX's triggered algo order names no order")
        where = {"instId": row.text("instId"), "ordId": child}
        return Question("privateGetTradeOrder", "order", where) if child else None

    # -- fills and funding

    def ask_for_trades(self, symbol: Symbol, low: Millis, high: Millis) -> Question:
        recent = self._client.now() - low < RECENT_FILLS
        endpoint = "privateGetTradeFills" if recent else "privateGetTradeFillsHistory"
        where = {"instType": self.instrument, "instId": self.name(symbol), "begin": low, "end": high}
        return Question(endpoint, "trades", where | {"limit": self._page})

    async def read_trades(self, symbol: Symbol, low: Millis, high: Millis) -> list[VendorJson]:
        await self.read_contract(self.name(symbol))
        return await super().read_trades(symbol, low, high)

    def ask_for_order_trades(self, order: Order) -> Question:
        where = {"instType": self.instrument, "instId": self.name(order.request.symbol), "ordId": order.venue_id}
        return Question("privateGetTradeFills", "trades", where | {"limit": self._page})

    def parse_trade(self, symbol: Symbol, row: VendorJson) -> Trade:
        name = row.text("instId")
        if name != self.name(symbol):
            raise Malformed("OKX answered with the trades of another instrument")
        return Trade(
            row.text("billId"),
            row.text("ordId"),
            row.text("clOrdId"),
            self.wire.sides[row.choice("side", list(self.wire.sides))],
            row.decimal("fillSz") * self._contracts[name],
            row.decimal("fillPx"),
            -row.decimal("fee"),
            row.text("feeCcy"),
            row.choice("execType", ("M", "T")) == "M",
            row.moment("ts"),
            row.text("subType") in FORCED,
        )

    async def find_owner(self, symbol: Symbol, trade: Trade) -> ClientId:
        """The fills of the order that an algo order became do not name it; the order does."""
        where = {"instId": self.name(symbol), "ordId": trade.order_id}
        row = (await self._client.read("privateGetTradeOrder", "order", **where)).child("data").only()
        return row.text("algoClOrdId") or row.text("clOrdId") or trade.order_id

    def ask_for_funding(self, symbol: Symbol, low: Millis, high: Millis) -> Question:
        recent = self._client.now() - low < RECENT_BILLS
        endpoint = "privateGetAccountBills" if recent else "privateGetAccountBillsArchive"
        where = {"instType": self.instrument, "type": FUNDING, "begin": low, "end": high, "limit": self._page}
        return Question(endpoint, "funding", where)

    def parse_payment(self, row: VendorJson) -> tuple[str, Decimal, Millis, str, str]:
        """Isolated margin pays it out of the position."""
        amount = row.decimal("balChg") + row.decimal("posBalChg")
        return row.text("billId"), amount, row.moment("ts"), row.text("instId"), row.text("ccy")


class OkxSpotOrders(OkxOrders):
    """Coins in the same account; a conditional order waits for the last price."""

    wire = replace(OkxOrders.wire, exchange=Venue("OKX-SPOT"), market="{base}-{quote}", funding_id="")
    instrument, margin_mode, trigger_by = "SPOT", "cash", "last"

    def is_listed(self, row: VendorJson) -> bool:
        return row.text("quoteCcy") == self.wire.asset


def _is_algo(row: VendorJson) -> bool:
    """An order has the id of the algo order that became it, but no price that ended it."""
    return "triggerPx" in row
