"""Orders at Binance's USDⓈ-M futures: isolated margin, one position per symbol, stops triggered by the mark.

Endpoints: https://developers.binance.com/docs/derivatives/usds-margined-futures/trade/rest-api and …/account/rest-api;
the keys' permissions: https://developers.binance.com/docs/wallet/account/api-key-permission. Stops and targets are algo
orders on endpoints of their own since 2025-12; to `POST /fapi/v1/order` they are −4120.
Error codes: https://developers.binance.com/docs/derivatives/usds-margined-futures/error-code.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from zuno.adapters.venues.exchange import ApiKeys, ExchangeVendor, VenueDeclined
from zuno.adapters.venues.orders.client import KEY_CODES, ExchangeAccount, TradingClient, read_reason, report_unreadable
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.backoff import Backoff
from zuno.kernel.errors import Malformed, NotFound, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.model.orders import (
    OUR_PREFIX,
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
from zuno.trading.rules.execution_styles import CONDITIONAL

ASSET: Final = "USDT"
NO_SUCH_ORDER: Final = "-2013"
CANNOT_CANCEL: Final = "-2011"
SAME_MARGIN_TYPE: Final = "-4046"
CLOCK_CODES: Final = frozenset({"-1021", "-5028"})
"""Dated too early or too late: by the gateway, by the matching engine."""
REJECTIONS: Final = ((-1199, -1100), (-1014, -1013), (-2010, -2010), (-2028, -2016), (-5027, -4000), (-5999, -5029))
"""Codes of an order that was read and not taken. After any other code nobody knows what became of it."""
ORDER_WINDOW: Final = 5_000
"""Milliseconds after which the exchange takes an order no more: less than we wait for its reply, so that an order
whose reply did not come is there when it is looked up, or never will be."""
LEAST_GOOD_TILL: Final = 660_000
"""Milliseconds ahead that the end of a resting order must be for the exchange to take it: 600 s, and a minute more for
a clock that differs."""
END_GRACE: Final = 60_000
"""How much later than the desk the exchange ends an order: it does so where no desk is left."""
TRADES_A_PAGE: Final = 1_000
WINDOW: Final = 7 * DAY_MS - 1
"""The longest time one question for trades or algo orders may span."""
TRADES_KEPT: Final = 89 * DAY_MS
"""For as long the exchange says of an order whose trades are listed."""
FUNDING_KEPT: Final = 89 * DAY_MS
LONGEST_STOP: Final = 98 * DAY_MS
"""How old a stop may be that is triggered: how far back one is looked for by the order it became."""
FILL_CHECKS: Final = 4
"""How often the fills of an order are asked for until they add up to what the order says."""
FRESH_ORDER: Final = 600_000
"""For so long after its last change an order's fills may not be listed yet; those of old ones are listed no more."""
STALE_QUOTE: Final = 10_000

STATUSES: Final = {
    "NEW": OrderStatus.OPEN,
    "PARTIALLY_FILLED": OrderStatus.OPEN,
    "FILLED": OrderStatus.FILLED,
    "CANCELED": OrderStatus.CANCELED,
    "REJECTED": OrderStatus.REJECTED,
    "EXPIRED": OrderStatus.EXPIRED,
    "EXPIRED_IN_MATCH": OrderStatus.EXPIRED,
}
ALGO_STATUSES: Final = {
    "NEW": OrderStatus.OPEN,
    "TRIGGERING": OrderStatus.OPEN,
    "TRIGGERED": OrderStatus.OPEN,
    "CANCELED": OrderStatus.CANCELED,
    "EXPIRED": OrderStatus.EXPIRED,
    "REJECTED": OrderStatus.REJECTED,
    "FINISHED": OrderStatus.FILLED,
}
TYPES: Final = {
    "MARKET": OrderType.MARKET,
    "LIMIT": OrderType.LIMIT,
    "STOP": OrderType.STOP_MARKET,
    "STOP_MARKET": OrderType.STOP_MARKET,
    "TRAILING_STOP_MARKET": OrderType.STOP_MARKET,
    "TAKE_PROFIT": OrderType.TAKE_PROFIT_MARKET,
    "TAKE_PROFIT_MARKET": OrderType.TAKE_PROFIT_MARKET,
    "LIQUIDATION": OrderType.MARKET,
}
TIMES_IN_FORCE: Final = {TimeInForce.GTC: "GTC", TimeInForce.IOC: "IOC", TimeInForce.POST_ONLY: "GTX"}
READ_TIMES_IN_FORCE: Final = {"IOC": TimeInForce.IOC, "FOK": TimeInForce.IOC, "GTX": TimeInForce.POST_ONLY}
LIQUIDATIONS: Final = ("autoclose-", "adl_autoclose")
"""How the exchange's own client ids begin when it closes a position."""
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")


def read_decline(answer: object) -> tuple[str, str] | None:
    if isinstance(answer, dict) and isinstance(answer.get("code"), int) and not isinstance(answer["code"], bool):
        return str(answer["code"]), read_reason(answer.get("msg", ""))
    return None


VENDOR: Final = ExchangeVendor("binanceusdm", "Binance", read_decline=read_decline, pace_ms=25)
"""Futures allow a weight of 2,400 a minute."""


class BinanceOrders(ExchangeAccount):
    exchange = Venue("BINANCE")
    no_such_order = NO_SUCH_ORDER
    simulated = False

    def __init__(self, client: TradingClient, *, demo: bool = False, page: int = TRADES_A_PAGE) -> None:
        super().__init__(client)
        self.paper = demo
        """Demo trading is no money, at the exchange's own matching engine."""
        self._page = page
        self._confirmed: dict[str, Decimal] = {}
        """How much of an order the venue's own list of trades has shown, by the order's id."""
        self._client_ids: dict[tuple[Symbol, str], ClientId] = {}

    @report_unreadable
    async def now(self) -> Millis:
        return await self._client.sync_clock()

    @report_unreadable
    async def rights(self) -> AccountRights:
        can_trade, can_withdraw = True, False
        if not self.paper:  # demo trading has no wallet, and nothing to be withdrawn from it
            key = await self._client.read("sapiGetAccountApiRestrictions", "permissions")
            can_trade, can_withdraw = key.flag("enableFutures"), key.flag("enableWithdrawals")
        account = await self._client.read("fapiPrivateGetAccountConfig", "account settings")
        margins = [(await self._symbol_config(symbol)).text("marginType") for symbol in DEFAULT_SYMBOLS]
        return AccountRights(
            exchange=self.exchange,
            can_trade=can_trade and account.flag("canTrade"),
            can_withdraw=can_withdraw,
            one_way=not account.flag("dualSidePosition"),
            isolated=not account.flag("multiAssetsMargin") and all(margin == "ISOLATED" for margin in margins),
            paper=self.paper,
        )

    async def _read_filters(self, symbol: Symbol) -> Filters:
        info = await self._client.read("fapiPublicGetExchangeInfo", "filters")
        found = next((row for row in info.children("symbols") if row.text("symbol") == symbol), None)
        if found is None:
            raise NotFound(f"Binance has no {symbol}.")
        rules = {row.text("filterType"): row for row in found.children("filters")}
        try:
            price, lot, market, notional = (
                rules[name] for name in ("PRICE_FILTER", "LOT_SIZE", "MARKET_LOT_SIZE", "MIN_NOTIONAL")
            )
        except KeyError as missing:
            raise Malformed(f"Binance's filters of {symbol} lack {missing}") from None
        trading = found.text("status") == "TRADING" and found.text("contractType") == "PERPETUAL"
        return Filters(
            exchange=self.exchange,
            symbol=symbol,
            tick=price.decimal("tickSize"),
            lot=max(lot.decimal("stepSize"), market.decimal("stepSize")),
            min_quantity=max(lot.decimal("minQty"), market.decimal("minQty")),
            max_quantity=min(lot.decimal("maxQty"), market.decimal("maxQty")),
            min_notional=notional.decimal("notional"),
            trading=trading,
        )

    @report_unreadable
    async def quote(self, symbol: Symbol) -> VenueQuote:
        touch = await self._client.read("fapiPublicGetTickerBookTicker", "touch", symbol=symbol.value)
        premium = await self._client.read("fapiPublicGetPremiumIndex", "mark", symbol=symbol.value)
        at = min(touch.moment("time"), premium.moment("time"))
        await self._check_age(symbol, at, STALE_QUOTE)
        return VenueQuote(
            exchange=self.exchange,
            symbol=symbol,
            bid=touch.decimal("bidPrice"),
            ask=touch.decimal("askPrice"),
            mark=premium.decimal("markPrice"),
            at=at,
        )

    async def _make(self, order: OrderRequest, good_till: Millis | None) -> Order:
        try:
            if not order.reduce_only:
                await self._prepare(order.symbol, order.leverage)
            answer = await self._send(order, good_till)
        except VenueDeclined as declined:
            if declined.code in KEY_CODES:
                self._admitted = None
            if not any(low <= int(declined.code) <= high for low, high in REJECTIONS):
                raise
            standing = await self.find(order.symbol, order.client_id, order.type)
            return standing or self._reject(order, f"{declined.reason} ({declined.code})")
        placed = self._algo_order(answer) if order.type in CONDITIONAL else await self._plain_order(answer)
        return placed.model_copy(update={"request": order})

    @report_unreadable
    async def find(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None = None) -> Order | None:
        if kind not in CONDITIONAL:
            named = {"symbol": symbol.value, "origClientOrderId": client_id}
            plain = await self._read_order("fapiPrivateGetOrder", "order", **named)
            if plain is not None or kind is not None:
                return None if plain is None else await self._plain_order(plain)
        algo = await self._read_order("fapiPrivateGetAlgoOrder", "algo order", clientAlgoId=client_id)
        return None if algo is None else await self._follow_algo(algo)

    @report_unreadable
    async def cancel(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None = None) -> Order:
        if kind is None:
            standing = await self.find(symbol, client_id)
            if standing is None:
                raise NotFound(f"Binance has no order {client_id} of {symbol}.")
            kind = standing.request.type
        conditional = kind in CONDITIONAL
        endpoint = "fapiPrivateDeleteAlgoOrder" if conditional else "fapiPrivateDeleteOrder"
        named = {"clientAlgoId": client_id} if conditional else {"origClientOrderId": client_id}
        try:
            await self._client.send(endpoint, "cancel", symbol=symbol.value, **named)
        except VenueDeclined as declined:
            if declined.code not in (CANNOT_CANCEL, NO_SUCH_ORDER):
                raise
        ended = await self.find(symbol, client_id, kind)
        if ended is None:
            raise NotFound(f"Binance has no order {client_id} of {symbol}.")
        return ended

    @report_unreadable
    async def open_orders(self) -> tuple[Order, ...]:
        found: list[Order] = []
        for symbol in DEFAULT_SYMBOLS:
            plain = await self._client.read("fapiPrivateGetOpenOrders", "open orders", symbol=symbol.value)
            found += [await self._plain_order(row) for row in plain.items()]
            algo = await self._client.read("fapiPrivateGetOpenAlgoOrders", "open algo orders", symbol=symbol.value)
            found += [await self._follow_algo(row) for row in algo.items()]
        unique = {order.request.client_id: order for order in found}
        return tuple(sorted(unique.values(), key=lambda order: (order.updated, order.request.client_id)))

    @report_unreadable
    async def fills(self, symbol: Symbol, since: Millis) -> tuple[Fill, ...]:
        now = await self._client.read_time()
        rows: dict[int, VendorJson] = {}
        for low in range(max(since, now - TRADES_KEPT), max(since, now) + 1, WINDOW + 1):
            high = low + WINDOW
            page = await self._trades(symbol, startTime=low, endTime=high)
            while page:
                rows.update({row.whole("id"): row for row in page if low <= row.moment("time") <= high})
                if len(page) < self._page or page[-1].moment("time") > high:
                    break
                page = await self._trades(symbol, fromId=page[-1].whole("id") + 1)
        return tuple([await self._fill(symbol, rows[number]) for number in sorted(rows)])

    @report_unreadable
    async def funding(self, symbol: Symbol, since: Millis) -> tuple[FundingPayment, ...]:
        now = await self._client.read_time()
        low, payments = max(since, now - FUNDING_KEPT), dict[str, FundingPayment]()
        while True:
            page = await self._client.read(
                "fapiPrivateGetIncome",
                "funding",
                symbol=symbol.value,
                incomeType="FUNDING_FEE",
                startTime=low,
                endTime=max(since, now),
                limit=self._page,
            )
            rows = [self._payment(symbol, row) for row in page.items()]
            fresh = {row.id: row for row in rows if row.id not in payments}
            payments |= fresh
            if len(rows) < self._page or not fresh:
                break
            low = max(row.at for row in rows)
        return tuple(sorted(payments.values(), key=lambda payment: (payment.at, payment.id)))

    @report_unreadable
    async def positions(self) -> tuple[VenuePosition, ...]:
        rows = (await self._client.read("fapiPrivateV3GetPositionRisk", "positions")).items()
        found = []
        for row in rows:
            quantity = row.decimal("positionAmt")
            if not quantity or row.text("symbol") not in list(DEFAULT_SYMBOLS):
                continue
            if row.text("positionSide") != "BOTH":
                raise Refused("The account at Binance is in hedge mode; switch it to one-way mode.")
            symbol = Symbol(row.text("symbol"))
            liquidation = row.decimal("liquidationPrice")
            found.append(
                VenuePosition(
                    exchange=self.exchange,
                    symbol=symbol,
                    side=Side.LONG if quantity > 0 else Side.SHORT,
                    quantity=abs(quantity),
                    entry=row.decimal("entryPrice"),
                    leverage=(await self._symbol_config(symbol)).whole("leverage"),
                    margin=max(row.decimal("isolatedWallet"), ZERO),
                    liquidation=liquidation if liquidation > 0 else None,
                )
            )
        return tuple(sorted(found, key=lambda position: position.symbol))

    @report_unreadable
    async def balance(self) -> Balance:
        """A wallet that never held the currency is not in the list."""
        rows = (await self._client.read("fapiPrivateV3GetBalance", "balances")).items()
        total, available = ZERO, ZERO
        for row in rows:
            if row.text("asset") == ASSET:
                total, available = row.decimal("balance"), row.decimal("availableBalance")
        return Balance(exchange=self.exchange, total=total, available=available)

    # -- before an order

    async def _check_account(self) -> None:
        """Also `Refused` unless the account holds one position per symbol and pays fees in its own currency."""
        rights = await self.rights()
        if rights.can_withdraw:
            raise Refused("The keys of Binance may withdraw; make keys that may only trade futures.")
        if not rights.can_trade:
            raise Refused("The keys of Binance may not trade futures.")
        if not rights.one_way:
            raise Refused("The account at Binance is in hedge mode; switch it to one-way mode.")
        if not self.paper and (await self._client.read("fapiPrivateGetFeeBurn", "fee settings")).flag("feeBurn"):
            raise Refused("The account at Binance pays fees in BNB; switch that off, the ledger counts in USDT.")

    async def _prepare(self, symbol: Symbol, leverage: int) -> None:
        """Isolated margin and the order's leverage."""
        config = await self._symbol_config(symbol)
        if config.text("marginType") != "ISOLATED":
            try:
                await self._client.send(
                    "fapiPrivatePostMarginType", "margin type", symbol=symbol.value, marginType="ISOLATED"
                )
            except VenueDeclined as declined:
                if declined.code != SAME_MARGIN_TYPE:
                    raise
        if config.whole("leverage") != leverage:
            answer = await self._client.send(
                "fapiPrivatePostLeverage", "leverage", symbol=symbol.value, leverage=leverage
            )
            if answer.whole("leverage") != leverage:
                raise Unavailable(f"Binance set another leverage of {symbol} than {leverage}×")

    async def _symbol_config(self, symbol: Symbol) -> VendorJson:
        rows = await self._client.read("fapiPrivateGetSymbolConfig", "symbol settings", symbol=symbol.value)
        row = rows.only()
        if row.text("symbol") != symbol:
            raise Malformed("Binance answered with the settings of another symbol")
        return row

    async def _send(self, order: OrderRequest, good_till: Millis | None) -> VendorJson:
        common: dict[str, object] = {
            "symbol": order.symbol.value,
            "side": order.side.value,
            "type": order.type.value,
            "quantity": f"{order.quantity:f}",
            "recvWindow": ORDER_WINDOW,
        }
        if order.reduce_only:
            common["reduceOnly"] = "true"
        if order.trigger is not None:
            return await self._client.send(
                "fapiPrivatePostAlgoOrder",
                "algo order",
                **common,
                algoType="CONDITIONAL",
                triggerPrice=f"{order.trigger:f}",
                workingType="MARK_PRICE",
                clientAlgoId=order.client_id,
            )
        if order.price is not None:
            common |= {"price": f"{order.price:f}", "timeInForce": TIMES_IN_FORCE[order.time_in_force]}
            if good_till is not None and order.time_in_force is TimeInForce.GTC:
                end = max(good_till + END_GRACE, self._client.now() + LEAST_GOOD_TILL)
                common |= {"timeInForce": "GTD", "goodTillDate": end - end % 1_000}
        return await self._client.send(
            "fapiPrivatePostOrder", "order", **common, newClientOrderId=order.client_id, newOrderRespType="RESULT"
        )

    # -- reading orders

    async def _plain_order(self, row: VendorJson) -> Order:
        filled = row.decimal("executedQty")
        symbol = Symbol(row.choice("symbol", list(DEFAULT_SYMBOLS)))
        order_id = str(row.whole("orderId"))
        client_id = _client_id(row.text("clientOrderId"))
        self._client_ids.setdefault((symbol, order_id), client_id)
        kind = TYPES[row.choice("type", list(TYPES))]
        price, trigger = row.decimal("price"), row.decimal("stopPrice")
        request = OrderRequest(
            client_id=client_id,
            exchange=self.exchange,
            symbol=symbol,
            side=OrderSide(row.choice("side", list(OrderSide))),
            type=kind,
            quantity=row.decimal("origQty"),
            price=price if kind is OrderType.LIMIT else None,
            trigger=trigger if kind in CONDITIONAL else None,
            time_in_force=READ_TIMES_IN_FORCE.get(row.text("timeInForce"), TimeInForce.GTC),
            reduce_only=row.flag("reduceOnly"),
        )
        updated, average = row.moment("updateTime"), row.decimal("avgPrice")
        if self._client.now() - updated < FRESH_ORDER:
            await self._await_fills(symbol, order_id, filled)
        return Order(
            request=request,
            venue_id=order_id,
            status=STATUSES[row.choice("status", list(STATUSES))],
            filled=filled,
            average_price=average if filled and average > 0 else None,
            updated=updated,
        )

    def _algo_order(self, row: VendorJson, quantity: Decimal | None = None) -> Order:
        """A conditional order before it is triggered."""
        kind = TYPES[row.choice("orderType", list(TYPES))]
        status = row.choice("algoStatus", list(ALGO_STATUSES))
        return Order(
            request=OrderRequest(
                client_id=_client_id(row.text("clientAlgoId")),
                exchange=self.exchange,
                symbol=Symbol(row.choice("symbol", list(DEFAULT_SYMBOLS))),
                side=OrderSide(row.choice("side", list(OrderSide))),
                type=kind,
                quantity=row.decimal("quantity") if quantity is None else quantity,
                trigger=row.decimal("triggerPrice"),
                reduce_only=row.flag("reduceOnly") or row.flag("closePosition"),
            ),
            venue_id=str(row.whole("algoId")),
            status=ALGO_STATUSES[status],
            updated=row.moment("updateTime"),
            reason="" if status != "REJECTED" else "rejected when it was triggered",
        )

    async def _follow_algo(self, row: VendorJson) -> Order:
        """A conditional order with what became of the order it was turned into."""
        quantity = None
        if row.flag("closePosition"):  # placed by a person: everything there is, whatever that is
            held = {position.symbol: position.quantity for position in await self.positions()}
            symbol = Symbol(row.choice("symbol", list(DEFAULT_SYMBOLS)))
            quantity = held.get(symbol) or (await self._fresh_filters(symbol)).min_quantity
        order = self._algo_order(row, quantity)
        child = _actual_order(row)
        if child is None:
            if row.text("algoStatus") == "FINISHED":
                raise Malformed("Binance's finished algo order names no order")
            return order
        symbol = order.request.symbol
        self._client_ids[symbol, child] = order.request.client_id
        sent = await self._client.read("fapiPrivateGetOrder", "order", symbol=symbol.value, orderId=child)
        became = await self._plain_order(sent)
        return order.model_copy(
            update={
                "status": became.status,
                "filled": became.filled,
                "average_price": became.average_price,
                "updated": max(order.updated, became.updated),
            }
        )

    async def _await_fills(self, symbol: Symbol, order_id: str, filled: Decimal) -> None:
        """The list of trades may lag behind the order: no order is said to be filled before its fills are there."""
        for attempt in range(1, FILL_CHECKS + 1):
            if filled <= self._confirmed.get(order_id, ZERO):
                return
            if attempt > 1:
                await self._client.pause(Backoff(0.2, 2.0).delay(attempt - 1))
            rows = await self._trades(symbol, orderId=int(order_id))
            unique = {row.whole("id"): row.decimal("qty") for row in rows}
            self._confirmed[order_id] = sum(unique.values(), ZERO)
        if filled > self._confirmed.get(order_id, ZERO):
            raise Unavailable(f"Binance's trades of order {order_id} lag behind the order")

    # -- reading fills

    async def _trades(self, symbol: Symbol, **where: int) -> list[VendorJson]:
        rows = await self._client.read(
            "fapiPrivateGetUserTrades", "trades", symbol=symbol.value, limit=self._page, **where
        )
        return sorted(rows.items(), key=lambda row: row.whole("id"))

    async def _fill(self, symbol: Symbol, row: VendorJson) -> Fill:
        asset, commission = row.text("commissionAsset"), row.decimal("commission")
        foreign = "" if asset == ASSET else f"{commission:f} {_FOREIGN.sub('_', asset)[:16]}"
        if row.text("symbol") != symbol:
            raise Malformed("Binance answered with the trades of another symbol")
        client_id = await self._client_id_of(symbol, str(row.whole("orderId")), row.moment("time"))
        return Fill(
            id=f"{symbol}-{row.whole('id')}",  # trades are numbered by symbol
            client_id=client_id,
            exchange=self.exchange,
            symbol=symbol,
            side=OrderSide(row.choice("side", list(OrderSide))),
            quantity=row.decimal("qty"),
            price=row.decimal("price"),
            fee=ZERO if foreign else commission,
            maker=row.flag("maker"),
            at=row.moment("time"),
            liquidation=client_id.startswith(LIQUIDATIONS),
            foreign_fee=foreign,
        )

    async def _client_id_of(self, symbol: Symbol, order_id: str, at: Millis) -> ClientId:
        """Trades name orders by the exchange's id, and a stop's trades the order that the stop was turned into."""
        known = self._client_ids.get((symbol, order_id))
        if known is None:
            row = await self._client.read("fapiPrivateGetOrder", "order", symbol=symbol.value, orderId=order_id)
            known = _client_id(row.text("clientOrderId"))
            if not known.startswith(OUR_PREFIX) and TYPES[row.choice("type", list(TYPES))] is not OrderType.LIMIT:
                known = await self._algo_id_of(symbol, order_id, at) or known
            self._client_ids[symbol, order_id] = known
        return known

    async def _algo_id_of(self, symbol: Symbol, order_id: str, at: Millis) -> ClientId | None:
        """The conditional order that became this one, looked for backwards from the trade."""
        for high in range(at, at - LONGEST_STOP, -(WINDOW + 1)):
            rows = await self._client.read(
                "fapiPrivateGetAllAlgoOrders",
                "algo orders",
                symbol=symbol.value,
                startTime=high - WINDOW,
                endTime=high,
                limit=self._page,
            )
            for row in rows.items():
                if _actual_order(row) == order_id:
                    return _client_id(row.text("clientAlgoId"))
        return None

    def _payment(self, symbol: Symbol, row: VendorJson) -> FundingPayment:
        if row.text("incomeType") != "FUNDING_FEE" or row.text("symbol") != symbol or row.text("asset") != ASSET:
            raise Malformed("Binance answered with another income than was asked for")
        return FundingPayment(
            id=str(row.whole("tranId")),
            exchange=self.exchange,
            symbol=symbol,
            amount=row.decimal("income"),
            at=row.moment("time"),
        )


def _client_id(text: str) -> ClientId:
    """The exchange allows a few characters more than we write."""
    return _FOREIGN.sub("_", text)


def _actual_order(row: VendorJson) -> str | None:
    """The order a conditional one was turned into: empty or 0 until it is triggered."""
    waiting = row.text("algoStatus") == "NEW" and isinstance(row.value, dict) and "actualOrderId" not in row.value
    found = None if waiting else row["actualOrderId"]
    if found in ("", None, 0, "0"):
        return None
    if not isinstance(found, int | str) or isinstance(found, bool) or not str(found).isdigit():
        raise Malformed(f"{row.what}: field 'actualOrderId' is no order id")
    return str(found)


def build_client(keys: ApiKeys, url: str | None = None, *, demo: bool = False, **options: Any) -> TradingClient:
    return TradingClient(
        VENDOR, keys, url, demo=demo, clock_codes=CLOCK_CODES, time_endpoint="fapiPublicGetTime", **options
    )
