"""Orders at Upbit: spot against the won, long only, no stop orders and no test network.

Endpoints: https://docs.upbit.com/kr/reference (new-order, order-test, get-order, list-closed-orders, list-open-orders,
available-order-information, list-orderbook-instruments, get-balance, cancel-withdrawal); errors: …/rest-api-guide.
Our client id is Upbit's `identifier`, which it never takes twice, whatever became of the first order. An order that
rests has no end here but the desk's: the exchange knows no such order.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_UP, Decimal
from email.utils import parsedate_to_datetime
from typing import Any, Final

from zuno.adapters.venues.exchange import ExchangeVendor, Params, VenueDeclined
from zuno.adapters.venues.orders import wire as w
from zuno.adapters.venues.orders.core import FORBIDDEN, UNAUTHORIZED, VenueAccount, report_unreadable
from zuno.adapters.venues.orders.wire import Cells, Listing, Question, WireTable, clean_id, codes, fields, spell
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import ZERO, ClientId, Fill, Order, OrderRequest, OrderStatus, OrderType, TimeInForce

LOT: Final = Decimal("0.00000001")
MOST: Final = Decimal(1_000_000_000)
"""Won: the most of an order."""
# Won: the smallest price unit. The most of an order in won is at most so many coins.
LEAST_PRICE: Final = Decimal("0.00000001")
NO_PERMISSION: Final = "out_of_scope"
NO_WITHDRAWAL: Final = "00000000-0000-0000-0000-000000000000"
"""The id of no withdrawal: whether the keys may cancel one tells whether they may withdraw, and nothing happens."""
NO_ORDER: Final = {"market": "KRW-BTC", "side": "bid", "ord_type": "limit", "volume": "0.00000001", "price": "1000"}
"""For the endpoint that checks an order and makes none."""
NO_MARKET: Final = 404
ORDERS_A_PAGE: Final = 1_000
OPEN_A_PAGE: Final = 100
WINDOW: Final = 7 * DAY_MS
"""The longest time one question for closed orders may span, and how long before a fill its order is looked for."""
ORDERS_KEPT: Final = 90 * DAY_MS
"""How far back closed orders are looked for."""
TAKE_BOUND: Final = Decimal("1.01")
"""A market buy takes an amount of won, not of coins: we buy by a limit so far above the ask that takes at once."""
FEE_DIGITS: Final = Decimal("0.00000001")


class UpbitOrders(VenueAccount):
    """Fills are listed with their order, not by time."""

    wire = WireTable(
        ids_once=True,
        exchange=Venue("UPBIT"),
        vendor=ExchangeVendor("upbit", "Upbit", read_decline=w.decline_at(("error.name", "error.message"))),
        market="KRW-{base}",
        market_field="market",
        no_such_order=codes("order_not_found"),
        not_taken_statuses=frozenset({400, 404}),
        statuses=spell(OrderStatus, "OPEN:wait|watch; FILLED:done; CANCELED:cancel"),
        types=spell(OrderType, "LIMIT:limit; MARKET:price|market|best"),
        sides={"bid": w.BUY, "ask": w.SELL},
        in_force={w.IOC: "ioc", w.POST_ONLY: "post_only"},
        read_in_force=spell(TimeInForce, "IOC:ioc|fok; POST_ONLY:post_only"),
        order=fields(
            "client_id:client_id id:uuid side:side kind:ord_type quantity:volume price:price in_force:in_force "
            "status:state filled:executed_volume average:average updated:updated"
        ),
        balance=fields("asset:currency total:balance,locked free:balance cost:cost"),
        stale_quote=60_000,
        cancels_by_id=True,
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._complete: dict[Symbol, dict[str, list[Fill]]] = {}
        """Fills of orders that have ended, by the order's id: there will be no more of them."""

    @report_unreadable
    async def now(self) -> Millis:
        """There is no endpoint for the time: every answer is dated, to the second."""
        ticker = (await self.read("publicGetTicker", "ticker", markets="KRW-BTC")).only()
        if ticker.text("market") != "KRW-BTC":
            raise Malformed("Upbit answered with another market than was asked for")
        try:
            return Millis(round(parsedate_to_datetime(self._client.response_header("date") or "").timestamp() * 1_000))
        except ValueError:
            raise Malformed("Upbit's answer has no date") from None

    async def read_rights(self) -> tuple[bool, bool, bool, bool]:
        trades = await self._may("privatePostOrdersTest", **NO_ORDER)
        return trades, await self._may("privateDeleteWithdrawsCoin", uuid=NO_WITHDRAWAL), True, True

    async def _may(self, endpoint: str, **params: object) -> bool:
        """Whether the keys are let through to an endpoint, whatever it then answers."""
        try:
            answer = await self.read(endpoint, "permissions", **params)
            if not isinstance(answer.value, dict):
                raise Malformed(f"{answer.what} are no answer")
        except VenueDeclined as declined:
            if declined.code == NO_PERMISSION:
                return False
            if declined.status in (UNAUTHORIZED, FORBIDDEN):
                raise
        return True

    def ask_for_listings(self, name: str | None) -> Question:
        return Question("publicGetMarketAll", "markets", {})

    async def read_listings(self, name: str | None = None) -> list[Listing]:
        """The order terms of a market are asked for with keys; the whole list goes without."""
        if name is not None:
            return [listing] if (listing := await self._read_listing(name)) else []
        rows = (await self.ask(self.ask_for_listings(None))).items()
        names = [row.text("market") for row in rows if row.text("market").startswith("KRW-")]
        policies = await self.read("publicGetOrderbookInstruments", "tick sizes", markets=",".join(names))
        least, ticks = Decimal(str(self.exchange.least_notional)), {}
        for row in policies.items():
            ticks[row.text("market")] = row.decimal("tick_size")
        return [
            Listing(name, name[4:], "KRW", tick, LOT, LOT, MOST / LEAST_PRICE, least, True)
            for name, tick in ticks.items()
        ]

    async def _read_listing(self, market: str) -> Listing | None:
        try:
            terms = await self.read("privateGetOrdersChance", "order terms", market=market)
        except VenueDeclined as declined:
            if declined.status == NO_MARKET:
                return None
            raise
        chance = terms.child("market")
        policy = (await self.read("publicGetOrderbookInstruments", "tick sizes", markets=market)).only()
        if chance.text("id") != market or policy.text("market") != market:
            raise Malformed("Upbit answered with the terms of another market")
        least = max(chance.child(side).decimal("min_total") for side in ("bid", "ask"))
        base, tick, active = market.removeprefix("KRW-"), policy.decimal("tick_size"), chance.text("state") == "active"
        most = chance.decimal("max_total") / LEAST_PRICE
        return Listing(market, base, self.wire.asset, tick, LOT, LOT, most, least, active)

    async def read_touch(self, name: str) -> tuple[Decimal, Decimal, Decimal, Millis]:
        book = (await self.read("publicGetOrderbook", "book", markets=name)).only()
        last = (await self.read("publicGetTicker", "ticker", markets=name)).only()
        best = book.child("orderbook_units").child(0)
        bid, ask = best.decimal("bid_price"), best.decimal("ask_price")
        return bid, ask, last.decimal("trade_price"), book.moment("timestamp")

    async def ask_to_place(self, order: OrderRequest, name: str, good_till: Millis | None) -> Question:
        side = "bid" if order.side is w.BUY else "ask"
        body: dict[str, object] = {"market": name, "side": side, "volume": f"{order.quantity:f}"}
        body["identifier"] = order.client_id
        if order.price is not None:
            body |= {"ord_type": "limit", "price": f"{order.price:f}"}
            if order.time_in_force in self.wire.in_force:
                body["time_in_force"] = self.wire.in_force[order.time_in_force]
        elif order.side is w.SELL:
            body["ord_type"] = "market"
        else:
            tick = (await self.fresh_filters(order.symbol)).tick
            bound = (await self.quote(order.symbol)).ask * TAKE_BOUND / tick
            price = bound.to_integral_value(ROUND_UP) * tick
            body |= {"ord_type": "limit", "price": f"{price:f}", "time_in_force": "ioc"}
        return Question("privatePostOrders", "order", body)

    def ask_for_order(self, name: str, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        return [Question("privateGetOrder", "order", {"identifier": client_id})]

    def ask_to_cancel(self, name: str, client_id: ClientId, kind: OrderType, venue_id: str) -> Question:
        return Question("privateDeleteOrder", "cancel", {"uuid": venue_id})

    def ask_for_open(self, name: str) -> list[Question]:
        where = {"market": name, "page": 1, "limit": OPEN_A_PAGE}
        return [Question("privateGetOrdersOpen", "open orders", where)]

    def turn_page(self, params: Mapping[str, object], answer: VendorJson, rows: Sequence[VendorJson]) -> Params | None:
        """A page of closed orders holds the oldest of the time asked for: what a full one cut off is asked for by
        itself."""
        if len(rows) < int(str(params["limit"])):
            return None
        if "page" in params:
            return {**params, "page": int(str(params["page"])) + 1}
        return {**params, "start_time": max(row.moment_of_text("created_at") for row in rows)}

    async def parse_order(self, row: VendorJson, *, listed: bool = False) -> Order:
        """Lists of orders leave their trades out."""
        executed, left = row.decimal("executed_volume"), row.maybe_decimal("remaining_volume") or ZERO
        trades = None if listed else _trades(row)
        shown = executed if trades is None else sum((trade.decimal("volume") for trade in trades), ZERO)
        if shown < executed:
            raise Unavailable("Upbit's trades of an order lag behind the order")
        funds = sum((trade.decimal("funds") for trade in trades or ()), ZERO)
        moments = [row.moment_of_text("created_at"), *(trade.moment_of_text("created_at") for trade in trades or ())]
        flat: dict[str, object] = {"client_id": _client_id(row), "updated": max(moments)}
        flat["in_force"] = row.maybe_text("time_in_force") or ""
        flat["volume"] = row.maybe_decimal("volume") or executed + left or LOT
        flat["average"] = funds / executed if funds and executed else row["price"]
        state = row.choice("state", list(self.wire.statuses))
        flat["state"] = "done" if executed and not left else state
        return await self.build_order(Cells(VendorJson(row.what, {**_fields(row), **flat}), self.wire.order))

    async def _confirm(self, order: Order) -> Order:
        return order  # an order lists its own trades

    @report_unreadable
    async def fills(self, symbol: Symbol, since: Millis) -> tuple[Fill, ...]:
        """Of the orders that are open, and of those made no longer than a week before. Trades are dated in seconds."""
        now, since = await self.now(), Millis(since - since % 1_000)
        (open_orders,) = self.ask_for_open(self.name(symbol))
        ids = {row.text("uuid") for row in await self.read_pages(open_orders, "uuid")}
        for low in range(max(since - WINDOW, now - ORDERS_KEPT), now + 1, WINDOW):
            where = {"market": self.name(symbol), "limit": ORDERS_A_PAGE, "order_by": "asc"}
            span = {"start_time": low, "end_time": low + WINDOW - 1}
            rows = await self.read_pages(Question("privateGetOrdersClosed", "closed orders", where | span), "uuid")
            ids |= {row.text("uuid") for row in rows if row.decimal("executed_volume") > 0}
        complete = {id: fills for id, fills in self._complete.get(symbol, {}).items() if id in ids}
        fills: dict[str, Fill] = {}
        for order_id in sorted(ids):
            listed = complete.get(order_id)
            if listed is None:
                row = await self.read("privateGetOrder", "order", uuid=order_id)
                listed = self._parse_fills(symbol, row)
                ended = self.wire.statuses[row.choice("state", list(self.wire.statuses))].final
                if ended and sum((fill.quantity for fill in listed), ZERO) == row.decimal("executed_volume"):
                    complete[order_id] = listed
            fills |= {fill.id: fill for fill in listed if fill.at >= since}
        self._complete[symbol] = complete
        return tuple(sorted(fills.values(), key=lambda fill: (fill.at, fill.id)))

    @report_unreadable
    async def order_fills(self, order: Order) -> tuple[Fill, ...]:
        row = await self.read("privateGetOrder", "order", uuid=order.venue_id)
        if row.text("uuid") != order.venue_id:
            raise Malformed("Upbit answered with another order than was asked for")
        return tuple(self._parse_fills(self.symbol_of(row), row))

    def _parse_fills(self, symbol: Symbol, row: VendorJson) -> list[Fill]:
        """The fee is of the order: each fill bears its share by funds."""
        trades = _trades(row)
        funds, paid = sum((trade.decimal("funds") for trade in trades), ZERO), row.decimal("paid_fee")
        return [
            Fill(
                id=trade.text("uuid"),
                client_id=clean_id(_client_id(row)),
                exchange=self.exchange,
                symbol=symbol,
                side=self.wire.sides[trade.choice("side", list(self.wire.sides))],
                quantity=trade.decimal("volume"),
                price=trade.decimal("price"),
                fee=(paid * trade.decimal("funds") / funds).quantize(FEE_DIGITS),
                maker=row.maybe_text("time_in_force") == "post_only",
                at=trade.moment_of_text("created_at"),
            )
            for trade in trades
        ]

    async def balance_rows(self) -> list[VendorJson]:
        """The average buy price is a cost only where it is in won."""
        rows = []
        for row in (await self.read("privateGetAccounts", "accounts")).items():
            cost = row["avg_buy_price"] if row.text("unit_currency") == self.wire.asset else None
            rows.append(VendorJson(row.what, {**_fields(row), "cost": cost}))
        return rows


def _trades(row: VendorJson) -> list[VendorJson]:
    """Each once, oldest first."""
    unique = {trade.text("uuid"): trade for trade in row.children("trades")}
    return sorted(unique.values(), key=lambda trade: trade.moment_of_text("created_at"))


def _fields(row: VendorJson) -> dict[str, object]:
    return row.value if isinstance(row.value, dict) else {}


def _client_id(row: VendorJson) -> ClientId:
    """Orders of before 2024-10-18 and those made by hand have none of their own."""
    return row.maybe_text("identifier") or row.text("uuid")
