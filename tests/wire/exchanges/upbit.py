"""Upbit's exchange interface: JWT, orders by identifier, accounts, order terms and the won's tick sizes.

Built from https://docs.upbit.com/kr/reference: auth (JWT, HS256 or HS512, SHA512 of the query), new-order, order-test,
get-order (identifier), cancel-order, list-open-orders, list-closed-orders (seven days at most),
available-order-information, list-orderbook-instruments, list-orderbooks, list-tickers, get-balance, cancel-withdrawal
(its own permission, out_of_scope without it), rest-api-guide (errors); tick sizes of 2025-07-31 and the least order
from https://docs.upbit.com/kr/docs/krw-market-info. An identifier is never taken twice, failed orders included.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import uuid
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from tests.wire.exchanges.account import FakeExchange
from tests.wire.exchanges.matching import OPEN, Engine, FakeOrder, FakeTrade, Market, Rejected, build_market
from tests.wire.exchanges.serving import Answer, Clock, Declined, Request, json_answer

KEY, SECRET = "upbit-access-3Rk", "upbit-secret-5Wd-long-enough-for-hmac"
KST = timezone(timedelta(hours=9))
TICKS = (
    (1_000_000, "1000"),
    (500_000, "500"),
    (100_000, "100"),
    (50_000, "50"),
    (10_000, "10"),
    (5_000, "5"),
    (100, "1"),
    (10, "0.1"),
    (1, "0.01"),
    (Decimal("0.1"), "0.001"),
    (Decimal("0.01"), "0.0001"),
    (Decimal("0.001"), "0.00001"),
    (Decimal("0.0001"), "0.000001"),
)
ERRORS: dict[str, tuple[str, str]] = {
    "no_symbol": ("invalid_parameter", "유효하지 않은 마켓입니다."),
    "not_trading": ("market_offline", "거래가 지원되지 않는 마켓입니다."),
    "quantity": ("create_{side}_error", "주문 수량이 올바르지 않습니다."),
    "lot": ("validation_error", "volume does not have a valid value"),
    "tick": ("invalid_price_{side}", "주문가격 단위를 잘못 입력하셨습니다. 확인 후 시도해주세요."),
    "notional": ("under_min_total_{side}", "최소주문금액 이상으로 주문해주세요"),
    "no_cash": ("insufficient_funds_bid", "주문가능한 금액(KRW)이 부족합니다."),
    "no_base": ("insufficient_funds_ask", "주문가능한 수량이 부족합니다."),
    "duplicate": ("validation_error", "identifier has already been taken"),
    "no_order": ("order_not_found", "주문을 찾지 못했습니다."),
}


def error(name: str, message: str, status: int = 400) -> Answer:
    return json_answer({"error": {"name": name, "message": message}}, status)


def won_tick(price: Decimal) -> Decimal:
    return next((Decimal(tick) for least, tick in TICKS if price >= least), Decimal("0.00000001"))


def standard_markets() -> dict[str, Market]:
    def market(symbol: str, price: int) -> Market:
        tick, coin = won_tick(Decimal(price)), symbol.removeprefix("KRW-")
        lot, most = "0.00000001", str(10**9)
        return build_market(symbol, str(price), str(tick), lot, "5000", most, spot=True, base=coin, quote="KRW")

    return {"KRW-BTC": market("KRW-BTC", 90_000_000), "KRW-ETH": market("KRW-ETH", 4_500_000)}


class FakeUpbit(FakeExchange):
    """One account over the wire. `late`: how often an order that has ended is still shown as it was before."""

    place_name = "POST /v1/orders"
    find_name = "GET /v1/order"
    cancel_name = "DELETE /v1/order"
    filters_name = "GET /v1/orders/chance"
    limited = error("too_many_requests", "Too many API requests.", 429)
    banned = json_answer({"error": {"name": "too_many_requests", "message": "Blocked."}}, 418, retry_after="3600")
    overloaded = limited
    maintenance = error("server_error", "점검 중입니다.", 503)
    limit_word = "limit"
    events = ("orders/open", "orders/closed", "GET /v1/order")
    sizes_are_fixed = True
    secrets = (KEY, SECRET, "Bearer ")

    def __init__(self, cash: Decimal = Decimal(10_000_000)) -> None:
        clock, fee = Clock(), Decimal("0.0005")
        self.secret = SECRET
        super().__init__(Engine(clock.now, standard_markets(), cash, fee, fee), clock)
        self.nonces: set[str] = set()
        self.identifiers: set[str] = set()
        self.ids: dict[int, str] = {}

    def place_meanwhile(
        self, client_id: str, symbol: str, side: str, quantity: Decimal, price: Decimal | None
    ) -> FakeOrder:
        self.identifiers.add(client_id)
        return super().place_meanwhile(client_id, symbol, side, quantity, price)

    def routes(self) -> dict[str, Any]:
        signed = {
            "GET /v1/accounts": self.accounts,
            "GET /v1/orders/chance": self.chance,
            "GET /v1/order": self.get_order,
            "DELETE /v1/order": self.cancel_order,
            "GET /v1/orders/open": self.open_orders,
            "GET /v1/orders/closed": self.closed_orders,
            "POST /v1/orders": self.new_order,
            "POST /v1/orders/test": self.test_order,
            "DELETE /v1/withdraws/coin": self.cancel_withdrawal,
        }
        public = {
            "GET /v1/orderbook/instruments": self.instruments,
            "GET /v1/market/all": self.market_list,
            "GET /v1/orderbook": self.orderbook,
            "GET /v1/ticker": self.ticker,
        }
        return {**public, **{name: self.sign_in(handler) for name, handler in signed.items()}}

    def sign_in(self, handler: Any) -> Any:
        def handle(request: Request) -> Any:
            params = json.loads(request.body) if request.body else request.query
            query = "&".join(f"{name}={value}" for name, value in params.items())
            if not request.body:
                query = unquote(request.raw_query)
            claims = self.verify(request.headers.get("authorization", ""))
            if query and claims.get("query_hash") != hashlib.sha512(query.encode()).hexdigest():
                raise Declined(error("invalid_query_payload", "Jwt의 query를 검증하는데 실패하였습니다.", 401))
            return handler(params)

        return handle

    def verify(self, header: str) -> dict[str, str]:
        try:
            head, body, signature = header.removeprefix("Bearer ").split(".")
            expected = hmac.new(self.secret.encode(), f"{head}.{body}".encode(), hashlib.sha256).digest()
            claims: dict[str, str] = json.loads(_unbase64(body))
            assert hmac.compare_digest(_unbase64(signature), expected)
        except (ValueError, AssertionError):
            raise Declined(error("jwt_verification", "Jwt 토큰 검증에 실패했습니다.", 401)) from None
        if claims["access_key"] != KEY:
            raise Declined(error("invalid_access_key", "잘못된 엑세스 키입니다.", 401))
        if claims["nonce"] in self.nonces:
            raise Declined(error("nonce_used", "이미 사용된 nonce입니다.", 401))
        self.nonces.add(claims["nonce"])
        return claims

    # -- account

    def accounts(self, params: dict[str, str]) -> Any:
        def row(currency: str, free: Decimal, locked: Decimal, entry: Decimal) -> Any:
            return {
                "currency": currency,
                "balance": f"{free:f}",
                "locked": f"{locked:f}",
                "avg_buy_price": f"{entry:f}",
                "avg_buy_price_modified": False,
                "unit_currency": "KRW",
            }

        locked = self.engine.locked_cash()
        rows = [row("KRW", self.engine.cash - locked, locked, Decimal(0))]
        for symbol, position in self.engine.positions.items():
            if position.amount:
                waiting = self.engine.locked_base(symbol)
                rows.append(row(symbol.removeprefix("KRW-"), position.amount - waiting, waiting, position.entry))
        return rows

    def chance(self, params: dict[str, str]) -> Any:
        market = self.engine.markets.get(params["market"])
        if market is None:
            raise Declined(error("market_not_found", "마켓을 찾지 못했습니다.", 404))
        side = {"currency": "KRW", "price_unit": None, "min_total": f"{market.min_notional}"}
        return {
            "bid_fee": "0.0005",
            "ask_fee": "0.0005",
            "maker_bid_fee": "0.0005",
            "maker_ask_fee": "0.0005",
            "market": {
                "id": market.symbol,
                "name": market.symbol,
                "order_types": ["limit"],
                "ask_types": ["limit", "market", "best"],
                "bid_types": ["limit", "price", "best"],
                "order_sides": ["ask", "bid"],
                "bid": side,
                "ask": side,
                "max_total": "1000000000",
                "state": "active" if market.trading else "delisted",
            },
            "bid_account": {"currency": "KRW"},
            "ask_account": {"currency": market.symbol.removeprefix("KRW-")},
        }

    def cancel_withdrawal(self, params: dict[str, str]) -> Any:
        if not self.withdrawals:
            raise Declined(error("out_of_scope", "권한이 부족합니다.", 401))
        raise Declined(error("withdraw_not_found", "출금 정보를 찾지 못했습니다.", 404))

    # -- market

    def asked_market(self, request: Request) -> Market:
        found = self.engine.markets.get(request.query["markets"])
        if found is None:
            raise Declined(error("404", "Code not found", 404))
        return found

    def market_list(self, request: Request) -> Any:
        names = [*self.engine.markets, "BTC-ETH"]
        return [{"market": name, "korean_name": name, "english_name": name} for name in names]

    def instruments(self, request: Request) -> Any:
        """Of as many markets as are asked for."""
        asked = request.query["markets"].split(",")
        markets = [self.engine.markets[name] for name in asked if name in self.engine.markets]
        return [
            {
                "market": market.symbol,
                "quote_currency": "KRW",
                "tick_size": f"{won_tick(market.mark)}",
                "supported_levels": ["0", "10000"],
            }
            for market in markets or [self.asked_market(request)]
        ]

    def orderbook(self, request: Request) -> Any:
        market = self.asked_market(request)
        return [
            {
                "market": market.symbol,
                "timestamp": self.clock.now(),
                "total_ask_size": float(market.ask_size),
                "total_bid_size": float(market.bid_size),
                "orderbook_units": [
                    {
                        "ask_price": float(market.ask),
                        "bid_price": float(market.bid),
                        "ask_size": float(market.ask_size),
                        "bid_size": float(market.bid_size),
                    }
                ],
                "level": 0,
            }
        ]

    def ticker(self, request: Request) -> Any:
        market = self.asked_market(request)
        return [{"market": market.symbol, "trade_price": float(market.mark), "timestamp": self.clock.now()}]

    # -- orders

    def check_scope(self) -> None:
        if not self.trading:
            raise Declined(error("out_of_scope", "권한이 부족합니다.", 401))

    def test_order(self, params: dict[str, str]) -> Any:
        self.check_scope()
        name = ERRORS["notional"][0].format(side=params["side"])
        raise Declined(error(name, ERRORS["notional"][1]))

    def new_order(self, params: dict[str, str]) -> Any:
        self.check_scope()
        side = {"bid": "BUY", "ask": "SELL"}[params["side"]]
        kind, in_force = params["ord_type"], params.get("time_in_force")
        if kind not in ("limit", "market") or (kind == "market" and side == "BUY"):
            raise Declined(error(f"create_{params['side']}_error", "주문 요청 정보가 올바르지 않습니다."))
        try:
            if params["identifier"] in self.identifiers:
                raise Rejected("duplicate")
            self.identifiers.add(params["identifier"])
            price = Decimal(params["price"]) if "price" in params else None
            market = self.engine.markets.get(params["market"])
            if market is not None:
                market.tick = won_tick(price or market.mark)
            order = self.engine.place(
                params["identifier"],
                params["market"],
                side,
                kind,
                Decimal(params["volume"]),
                price,
                {"ioc": "IOC", "post_only": "GTX"}.get(in_force or "", "GTC"),
            )
        except Rejected as rejected:
            if rejected.why == "post_only":
                return self.cancelled_at_once(params)
            name, message = ERRORS[rejected.why]
            raise Declined(error(name.format(side=params["side"]), message)) from None
        return {**self.order_row(order), "state": "wait"}

    def cancelled_at_once(self, params: dict[str, str]) -> Any:
        """A post-only order that would take is made and cancelled."""
        order = self.engine.make_order(
            params["identifier"],
            params["market"],
            {"bid": "BUY", "ask": "SELL"}[params["side"]],
            "limit",
            Decimal(params["volume"]),
            Decimal(params["price"]),
            "GTX",
        )
        self.engine.record_rejection(order, "post_only")
        return self.order_row(order)

    def find_order(self, params: dict[str, str]) -> FakeOrder:
        for order in self.engine.orders.values():
            if self.uuid(order.id) == params.get("uuid") or order.client_id == params.get("identifier"):
                return order
        raise Declined(error(*ERRORS["no_order"], 404))

    def get_order(self, params: dict[str, str]) -> Any:
        order = self.find_order(params)
        trades = [trade for trade in self.engine.trades if trade.order == order.id]
        row = {**self.order_row(order), "trades": [self.trade_row(trade) for trade in trades]}
        if self.late and order.status not in OPEN:
            self.late -= 1
            row |= {"state": "wait", "executed_volume": "0", "remaining_volume": row["volume"], "trades": []}
        return row

    def cancel_order(self, params: dict[str, str]) -> Any:
        """The answer is of the order before it was cancelled."""
        order = self.find_order(params)
        before = self.order_row(order)
        try:
            self.engine.cancel(order)
        except Rejected as rejected:
            raise Declined(error(*ERRORS[rejected.why], 404)) from None
        return before

    def open_orders(self, params: dict[str, str]) -> Any:
        rows = [
            order for order in self.engine.orders.values() if order.symbol == params["market"] and order.status in OPEN
        ]
        limit, page = int(params.get("limit", 100)), int(params.get("page", 1))
        return [self.order_row(order) for order in rows[(page - 1) * limit : page * limit]]

    def closed_orders(self, params: dict[str, str]) -> Any:
        low, high = int(params["start_time"]), int(params["end_time"])
        if high - low > 7 * 86_400_000:
            raise Declined(error("invalid_parameter", "조회 기간은 최대 7일입니다."))
        rows = [
            order
            for order in self.engine.orders.values()
            if order.symbol == params["market"] and order.status not in OPEN and low <= order.created <= high
        ]
        return [self.order_row(order) for order in rows[: int(params.get("limit", 100))]]

    def uuid(self, number: int) -> str:
        return self.ids.setdefault(number, str(uuid.UUID(int=number)))

    def order_row(self, order: FakeOrder) -> Any:
        state = {"NEW": "wait", "PARTIALLY_FILLED": "wait", "FILLED": "done"}.get(order.status, "cancel")
        row = {
            "uuid": self.uuid(order.id),
            "side": "bid" if order.side == "BUY" else "ask",
            "ord_type": order.type,
            "price": None if order.price is None else f"{order.price:f}",
            "state": state,
            "market": order.symbol,
            "created_at": _moment(order.created),
            "volume": f"{order.quantity:f}",
            "remaining_volume": f"{order.left:f}",
            "executed_volume": f"{order.filled:f}",
            "executed_funds": f"{order.funds:f}",
            "reserved_fee": "0",
            "remaining_fee": "0",
            "paid_fee": f"{order.fee:f}",
            "locked": "0",
            "prevented_volume": "0",
            "prevented_locked": "0",
            "trades_count": sum(trade.order == order.id for trade in self.engine.trades),
            "identifier": order.client_id,
        }
        if order.time_in_force != "GTC":
            row["time_in_force"] = {"IOC": "ioc", "GTX": "post_only"}[order.time_in_force]
        return row

    def trade_row(self, trade: FakeTrade) -> Any:
        return {
            "market": trade.symbol,
            "uuid": self.uuid(trade.id),
            "price": f"{trade.price:f}",
            "volume": f"{trade.quantity:f}",
            "funds": f"{trade.quantity * trade.price:f}",
            "trend": "up",
            "created_at": _moment(trade.at),
            "side": "bid" if trade.side == "BUY" else "ask",
        }


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).astimezone(KST).isoformat(timespec="seconds")


def _unbase64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
