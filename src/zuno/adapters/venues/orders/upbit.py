"""Orders at Upbit: spot against the won, long only, no stop orders and no test network.

Endpoints: https://docs.upbit.com/kr/reference (new-order, order-test, get-order, list-closed-orders, list-open-orders,
available-order-information, list-orderbook-instruments, get-balance, cancel-withdrawal); errors: …/rest-api-guide.
Our client id is Upbit's `identifier`, which it never takes twice, whatever became of the first order.
"""

from __future__ import annotations

from decimal import ROUND_UP, Decimal
from email.utils import parsedate_to_datetime
from typing import Any, Final

from zuno.adapters.venues.exchange import ApiKeys, ExchangeVendor, VenueDeclined
from zuno.adapters.venues.orders.client import (
    FORBIDDEN,
    UNAUTHORIZED,
    ExchangeAccount,
    TradingClient,
    read_reason,
    report_unreadable,
)
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.backoff import Backoff
from zuno.kernel.errors import Malformed, NotFound, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.feeds import UPBIT, name_at
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.model.orders import (
    ZERO,
    AccountRights,
    Balance,
    ClientId,
    Fill,
    Filters,
    FundingPayment,
    Order,
    OrderRequest,
    OrderSide,
    OrderStatus,
    OrderType,
    TimeInForce,
    VenuePosition,
    VenueQuote,
)

CASH: Final = "KRW"
LOT: Final = Decimal("0.00000001")
BAD_REQUEST, NOT_FOUND = 400, 404
NO_SUCH_ORDER: Final = "order_not_found"
NO_PERMISSION: Final = "out_of_scope"
NO_WITHDRAWAL: Final = "00000000-0000-0000-0000-000000000000"
"""The id of no withdrawal: whether the keys may cancel one tells whether they may withdraw, and nothing happens."""
NO_ORDER: Final = {"market": "KRW-BTC", "side": "bid", "ord_type": "limit", "volume": "0.00000001", "price": "1000"}
"""For the endpoint that checks an order and makes none."""
ORDERS_A_PAGE: Final = 1_000
OPEN_A_PAGE: Final = 100
WINDOW: Final = 7 * DAY_MS
"""The longest time one question for closed orders may span, and how long before a fill its order is looked for."""
ORDERS_KEPT: Final = 90 * DAY_MS
"""How far back closed orders are looked for."""
TAKE_BOUND: Final = Decimal("1.01")
"""A market buy takes an amount of won, not of coins: we buy by a limit so far above the ask that takes at once."""
SETTLE_CHECKS: Final = 5
STALE_QUOTE: Final = 60_000
FEE_DIGITS: Final = Decimal("0.00000001")

STATUSES: Final = {
    "wait": OrderStatus.OPEN,
    "watch": OrderStatus.OPEN,
    "done": OrderStatus.FILLED,
    "cancel": OrderStatus.CANCELED,
}
TYPES: Final = {
    "limit": OrderType.LIMIT,
    "price": OrderType.MARKET,
    "market": OrderType.MARKET,
    "best": OrderType.MARKET,
}
ENDED: Final = frozenset({"done", "cancel"})
SIDES: Final = {"bid": OrderSide.BUY, "ask": OrderSide.SELL}
READ_TIMES_IN_FORCE: Final = {"ioc": TimeInForce.IOC, "fok": TimeInForce.IOC, "post_only": TimeInForce.POST_ONLY}


def read_decline(answer: object) -> tuple[str, str] | None:
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict) and isinstance(error.get("name"), str | int):
        return str(error["name"]), read_reason(error.get("message", ""))
    return None


VENDOR: Final = ExchangeVendor("upbit", "Upbit", read_decline=read_decline)


class UpbitOrders(ExchangeAccount):
    """One account. An order that rests has no end here but the desk's: the exchange knows no such order."""

    exchange = Venue("UPBIT")
    no_such_order = NO_SUCH_ORDER
    paper = simulated = False

    def __init__(self, client: TradingClient) -> None:
        super().__init__(client)
        self._complete: dict[Symbol, dict[str, list[Fill]]] = {}
        """Fills of orders that have ended, by the order's id: there will be no more of them."""

    @report_unreadable
    async def now(self) -> Millis:
        """There is no endpoint for the time: every answer is dated, to the second."""
        market = name_at(UPBIT, Symbol("BTCUSDT"))
        ticker = (await self._client.read("publicGetTicker", "ticker", markets=market)).only()
        if ticker.text("market") != market:
            raise Malformed("Upbit answered with another market than was asked for")
        try:
            return Millis(round(parsedate_to_datetime(self._client.response_header("date") or "").timestamp() * 1_000))
        except ValueError:
            raise Malformed("Upbit's answer has no date") from None

    @report_unreadable
    async def rights(self) -> AccountRights:
        return AccountRights(
            exchange=self.exchange,
            can_trade=await self._may("privatePostOrdersTest", **NO_ORDER),
            can_withdraw=await self._may("privateDeleteWithdrawsCoin", uuid=NO_WITHDRAWAL),
            one_way=True,
            isolated=True,
        )

    async def _read_filters(self, symbol: Symbol) -> Filters:
        market = name_at(UPBIT, symbol)
        try:
            chance = (await self._client.read("privateGetOrdersChance", "order terms", market=market)).child("market")
        except VenueDeclined as declined:
            if declined.status == NOT_FOUND:
                raise NotFound(f"Upbit has no {market}.") from None
            raise
        policy = (await self._client.read("publicGetOrderbookInstruments", "tick sizes", markets=market)).only()
        if chance.text("id") != market or policy.text("market") != market:
            raise Malformed("Upbit answered with the terms of another market")
        return Filters(
            exchange=self.exchange,
            symbol=symbol,
            tick=policy.decimal("tick_size"),
            lot=LOT,
            min_quantity=LOT,
            max_quantity=chance.decimal("max_total"),  # of won; no price of a coin is under one won
            min_notional=max(chance.child("bid").decimal("min_total"), chance.child("ask").decimal("min_total")),
            trading=chance.text("state") == "active",
            holds_stops=False,
        )

    @report_unreadable
    async def quote(self, symbol: Symbol) -> VenueQuote:
        market = name_at(UPBIT, symbol)
        book = (await self._client.read("publicGetOrderbook", "book", markets=market)).only()
        last = (await self._client.read("publicGetTicker", "ticker", markets=market)).only()
        best = book.child("orderbook_units").child(0)
        at = book.moment("timestamp")
        await self._check_age(symbol, at, STALE_QUOTE)
        return VenueQuote(
            exchange=self.exchange,
            symbol=symbol,
            bid=best.decimal("bid_price"),
            ask=best.decimal("ask_price"),
            mark=last.decimal("trade_price"),
            at=at,
        )

    async def _find_breach(self, order: OrderRequest) -> str | None:
        if order.reduce_only and order.side is OrderSide.BUY:
            return "spot holds no position that a purchase could reduce"
        return await super()._find_breach(order)

    async def _make(self, order: OrderRequest, good_till: Millis | None) -> Order:
        try:
            answer = await self._client.send("privatePostOrders", "order", **await self._body(order))
        except VenueDeclined as declined:
            if declined.status not in (BAD_REQUEST, NOT_FOUND):
                raise
            standing = await self.find(order.symbol, order.client_id)
            return standing or self._reject(order, f"{declined.reason} ({declined.code})")
        placed = await self._read_settled_order(answer.text("uuid"))
        return placed.model_copy(update={"request": order})

    @report_unreadable
    async def find(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None = None) -> Order | None:
        row = await self._find_row(client_id)
        return None if row is None else self._order(row)

    @report_unreadable
    async def cancel(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None = None) -> Order:
        row = await self._find_row(client_id)
        if row is None:
            raise NotFound(f"Upbit has no order {client_id} of {name_at(UPBIT, symbol)}.")
        if self._order(row).status.final:
            return self._order(row)
        try:
            await self._client.send("privateDeleteOrder", "cancel", uuid=row.text("uuid"))
        except VenueDeclined as declined:
            if declined.status not in (BAD_REQUEST, NOT_FOUND):
                raise
        return await self._read_settled_order(row.text("uuid"))

    @report_unreadable
    async def open_orders(self) -> tuple[Order, ...]:
        found: list[Order] = []
        for symbol in DEFAULT_SYMBOLS:
            found += [self._order(row, listed=True) for row in await self._open_rows(symbol)]
        unique = {order.venue_id: order for order in found}
        return tuple(sorted(unique.values(), key=lambda order: (order.updated, order.request.client_id)))

    @report_unreadable
    async def fills(self, symbol: Symbol, since: Millis) -> tuple[Fill, ...]:
        """Of the orders that are open, and of those made no longer than a week before. Trades are dated in seconds."""
        now, since = await self.now(), Millis(since - since % 1_000)
        ids = {row.text("uuid") for row in await self._open_rows(symbol)}
        for low in range(max(since - WINDOW, now - ORDERS_KEPT), now + 1, WINDOW):
            rows = await self._closed_rows(symbol, Millis(low), Millis(low + WINDOW - 1))
            ids |= {row.text("uuid") for row in rows if row.decimal("executed_volume") > 0}
        known = self._complete.get(symbol, {})
        complete: dict[str, list[Fill]] = {}
        fills: dict[str, Fill] = {}
        for order_id in sorted(ids):
            found = known.get(order_id)
            if found is None:
                row = await self._client.read("privateGetOrder", "order", uuid=order_id)
                found = self._fills(symbol, row)
                ended = row.choice("state", list(STATUSES)) in ENDED
                if ended and sum((fill.quantity for fill in found), ZERO) == row.decimal("executed_volume"):
                    complete[order_id] = found
            else:
                complete[order_id] = found
            fills |= {fill.id: fill for fill in found if fill.at >= since}
        self._complete[symbol] = complete
        return tuple(sorted(fills.values(), key=lambda fill: (fill.at, fill.id)))

    @report_unreadable
    async def order_fills(self, order: Order) -> tuple[Fill, ...]:
        row = await self._client.read("privateGetOrder", "order", uuid=order.venue_id)
        if row.text("uuid") != order.venue_id:
            raise Malformed("Upbit answered with another order than was asked for")
        return tuple(self._fills(_symbol(row), row))

    @report_unreadable
    async def funding(self, symbol: Symbol, since: Millis) -> tuple[FundingPayment, ...]:
        return ()

    @report_unreadable
    async def positions(self) -> tuple[VenuePosition, ...]:
        held = await self._accounts()
        found = []
        for symbol in sorted(DEFAULT_SYMBOLS):
            row = held.get(symbol.base)
            quantity = ZERO if row is None else row.decimal("balance") + row.decimal("locked")
            if row is None or quantity <= 0:
                continue
            entry = row.decimal("avg_buy_price")
            found.append(
                VenuePosition(
                    exchange=self.exchange,
                    symbol=symbol,
                    side=Side.LONG,
                    quantity=quantity,
                    entry=entry if entry > 0 and row.text("unit_currency") == CASH else None,
                    leverage=1,
                    margin=ZERO,
                )
            )
        return tuple(found)

    @report_unreadable
    async def balance(self) -> Balance:
        row = (await self._accounts()).get(CASH)
        free, locked = (ZERO, ZERO) if row is None else (row.decimal("balance"), row.decimal("locked"))
        return Balance(exchange=self.exchange, total=free + locked, available=free)

    # -- before an order

    async def _check_account(self) -> None:
        rights = await self.rights()
        if rights.can_withdraw:
            raise Refused("The keys of Upbit may withdraw; make keys that may only see accounts and place orders.")
        if not rights.can_trade:
            raise Refused("The keys of Upbit may not trade.")

    async def _may(self, endpoint: str, **params: object) -> bool:
        """Whether the keys are let through to an endpoint, whatever it then answers."""
        try:
            answer = await self._client.read(endpoint, "permissions", **params)
            if not isinstance(answer.value, dict):
                raise Malformed(f"{answer.what} are no answer")
        except VenueDeclined as declined:
            if declined.code == NO_PERMISSION:
                return False
            if declined.status in (UNAUTHORIZED, FORBIDDEN):
                raise
        return True

    async def _body(self, order: OrderRequest) -> dict[str, object]:
        body: dict[str, object] = {
            "market": name_at(UPBIT, order.symbol),
            "side": "bid" if order.side is OrderSide.BUY else "ask",
            "volume": f"{order.quantity:f}",
            "identifier": order.client_id,
        }
        if order.price is not None:
            body |= {"ord_type": "limit", "price": f"{order.price:f}"}
            if order.time_in_force is not TimeInForce.GTC:
                body["time_in_force"] = "ioc" if order.time_in_force is TimeInForce.IOC else "post_only"
        elif order.side is OrderSide.SELL:
            body["ord_type"] = "market"
        else:
            tick = (await self._fresh_filters(order.symbol)).tick
            bound = (await self.quote(order.symbol)).ask * TAKE_BOUND / tick
            price = bound.to_integral_value(ROUND_UP) * tick
            body |= {"ord_type": "limit", "price": f"{price:f}", "time_in_force": "ioc"}
        return body

    # -- reading orders

    async def _find_row(self, client_id: ClientId) -> VendorJson | None:
        row = await self._read_order("privateGetOrder", "order", identifier=client_id)
        if row is not None and row.text("identifier") != client_id:
            raise Malformed("Upbit answered with another order than was asked for")
        return row

    async def _read_settled_order(self, order_id: str) -> Order:
        """An order that takes at once, or that was cancelled, is settled a moment after the answer."""
        for attempt in range(1, SETTLE_CHECKS + 1):
            row = await self._client.read("privateGetOrder", "order", uuid=order_id)
            found = self._order(row)
            if found.status.final or not found.left or attempt == SETTLE_CHECKS:
                return found
            resting = found.request.time_in_force is not TimeInForce.IOC and found.request.type is OrderType.LIMIT
            if resting and attempt > 1:
                return found
            await self._client.pause(Backoff(0.1, 1.0).delay(attempt))
        raise AssertionError

    def _order(self, row: VendorJson, *, listed: bool = False) -> Order:
        """`listed`: of a list of orders, which leaves their trades out."""
        executed, left = row.decimal("executed_volume"), row.maybe_decimal("remaining_volume") or ZERO
        trades = None if listed else _trades(row)
        shown = executed if trades is None else sum((trade.decimal("volume") for trade in trades), ZERO)
        if shown < executed:
            raise Unavailable("Upbit's trades of an order lag behind the order")
        kind = TYPES[row.choice("ord_type", list(TYPES))]
        price = row.maybe_decimal("price")
        funds = ZERO if trades is None else sum((trade.decimal("funds") for trade in trades), ZERO)
        status = STATUSES[row.choice("state", list(STATUSES))]
        in_force = row.maybe_text("time_in_force")
        moments = [row.moment_of_text("created_at"), *(trade.moment_of_text("created_at") for trade in trades or ())]
        return Order(
            request=OrderRequest(
                client_id=_client_id(row),
                exchange=self.exchange,
                symbol=_symbol(row),
                side=SIDES[row.choice("side", list(SIDES))],
                type=kind,
                quantity=row.maybe_decimal("volume") or executed + left or LOT,
                price=price if kind is OrderType.LIMIT else None,
                time_in_force=READ_TIMES_IN_FORCE.get(in_force or "", TimeInForce.GTC),
            ),
            venue_id=row.text("uuid"),
            status=OrderStatus.FILLED if executed and not left else status,
            filled=executed,
            average_price=funds / executed if funds and executed else price if executed else None,
            updated=max(moments),
        )

    async def _open_rows(self, symbol: Symbol) -> list[VendorJson]:
        found: list[VendorJson] = []
        for page in range(1, 100):
            answer = await self._client.read(
                "privateGetOrdersOpen", "open orders", market=name_at(UPBIT, symbol), page=page, limit=OPEN_A_PAGE
            )
            rows = answer.items()
            found += rows
            if len(rows) < OPEN_A_PAGE:
                break
        return found

    async def _closed_rows(self, symbol: Symbol, low: Millis, high: Millis) -> list[VendorJson]:
        """A page holds the oldest orders of the time asked for: what a full one cut off is asked for by itself."""
        found: dict[str, VendorJson] = {}
        while low <= high:
            rows = (
                await self._client.read(
                    "privateGetOrdersClosed",
                    "closed orders",
                    market=name_at(UPBIT, symbol),
                    start_time=low,
                    end_time=high,
                    limit=ORDERS_A_PAGE,
                    order_by="asc",
                )
            ).items()
            fresh = {row.text("uuid"): row for row in rows if row.text("uuid") not in found}
            found |= fresh
            if len(rows) < ORDERS_A_PAGE or not fresh:
                break
            low = max(row.moment_of_text("created_at") for row in rows)
        return list(found.values())

    def _fills(self, symbol: Symbol, row: VendorJson) -> list[Fill]:
        """The fee is of the order: each fill bears its share by funds."""
        trades = _trades(row)
        funds, paid = sum((trade.decimal("funds") for trade in trades), ZERO), row.decimal("paid_fee")
        return [
            Fill(
                id=trade.text("uuid"),
                client_id=_client_id(row),
                exchange=self.exchange,
                symbol=symbol,
                side=SIDES[trade.choice("side", list(SIDES))],
                quantity=trade.decimal("volume"),
                price=trade.decimal("price"),
                fee=(paid * trade.decimal("funds") / funds).quantize(FEE_DIGITS),
                maker=row.maybe_text("time_in_force") == "post_only",
                at=trade.moment_of_text("created_at"),
            )
            for trade in trades
        ]

    async def _accounts(self) -> dict[str, VendorJson]:
        rows = await self._client.read("privateGetAccounts", "accounts")
        return {row.text("currency"): row for row in rows.items()}


def _trades(row: VendorJson) -> list[VendorJson]:
    """Each once, oldest first."""
    unique = {trade.text("uuid"): trade for trade in row.children("trades")}
    return sorted(unique.values(), key=lambda trade: trade.moment_of_text("created_at"))


def _symbol(row: VendorJson) -> Symbol:
    markets = {name_at(UPBIT, symbol): symbol for symbol in DEFAULT_SYMBOLS}
    return markets[row.choice("market", list(markets))]


def _client_id(row: VendorJson) -> ClientId:
    """Orders of before 2024-10-18 and those made by hand have none of their own."""
    return row.maybe_text("identifier") or row.text("uuid")


def build_client(keys: ApiKeys, url: str | None = None, **options: Any) -> TradingClient:
    return TradingClient(VENDOR, keys, url, **options)
