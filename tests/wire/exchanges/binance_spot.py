"""Binance's spot market, the endpoints of an account, and transfers between its wallets.

Built from https://developers.binance.com/docs/binance-spot-api-docs/rest-api: general-endpoints (time, exchangeInfo),
market-data-endpoints (bookTicker, 24hr, price), trading-endpoints (order, with STOP_LOSS and TAKE_PROFIT that are
triggered by the last price and keep their ids), account-endpoints (account, order, openOrders, allOrders, myTrades: a
day at most), errors, filters; https://developers.binance.com/docs/wallet/asset (user-universal-transfer) and
…/docs/margin_trading (bnbBurn). What a stop would sell is locked. The fee of what is bought is kept back from it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.wire.exchanges.account import FakeExchange, Row, is_open
from tests.wire.exchanges.matching import (
    BUY,
    ZERO,
    Engine,
    FakeAlgo,
    FakeOrder,
    FakeTrade,
    Market,
    Rejected,
    build_market,
)
from tests.wire.exchanges.serving import Answer, Clock, Declined, Handler, Request, json_answer

DAY = 86_400_000
ERRORS: dict[str, tuple[int, str]] = {
    "no_symbol": (-1121, "Invalid symbol."),
    "not_trading": (-1013, "Market is closed."),
    "quantity": (-1013, "Filter failure: LOT_SIZE"),
    "lot": (-1013, "Filter failure: LOT_SIZE"),
    "tick": (-1013, "Filter failure: PRICE_FILTER"),
    "notional": (-1013, "Filter failure: NOTIONAL"),
    "no_cash": (-2010, "Account has insufficient balance for requested action."),
    "no_base": (-2010, "Account has insufficient balance for requested action."),
    "post_only": (-2010, "Order would immediately match and take."),
    "duplicate": (-2010, "Duplicate order sent."),
    "would_trigger": (-2010, "Stop price would trigger immediately."),
    "no_order": (-2011, "Unknown order sent."),
}
KINDS = {"STOP_LOSS": "STOP_MARKET", "TAKE_PROFIT": "TAKE_PROFIT_MARKET"}
TRANSFERS = {"MAIN_UMFUTURE": -1, "UMFUTURE_MAIN": 1}
"""What a transfer does to the spot wallet."""


def error(code: int, message: str, status: int = 400) -> Answer:
    return json_answer({"code": code, "msg": message}, status)


def standard_markets() -> dict[str, Market]:
    rows = [
        build_market("BTCUSDT", "60000", "0.01", "0.00001", "5", "120", spot=True, base="BTC"),
        build_market("ETHUSDT", "3000", "0.01", "0.0001", "5", "2400", spot=True, base="ETH"),
    ]
    return {market.symbol: market for market in rows}


class FakeBinanceSpot(FakeExchange):
    """The spot wallet beside that of futures: the same keys, the same server, other money."""

    place_name = "POST /api/v3/order"
    find_name = "GET /api/v3/order"
    cancel_name = "DELETE /api/v3/order"
    filters_name = "GET /api/v3/exchangeInfo"
    limited = json_answer({"code": -1003, "msg": "Too many requests."}, 429, retry_after="7")
    banned = json_answer({"code": -1003, "msg": "Way too many requests; IP banned."}, 418, retry_after="3600")
    overloaded = error(-1015, "Too many new orders.", 429)
    maintenance = error(-1016, "This service is no longer available.", 503)
    unsure = (
        error(-1006, "An unexpected response was received from the message bus. Execution status unknown."),
        error(-1007, "Timeout waiting for response from backend server. Send status unknown."),
    )
    outdated = error(-1021, "Timestamp for this request is outside of the recvWindow.")
    events = ("openOrders", "allOrders", "myTrades")

    def __init__(self, clock: Clock, sign_in: Any, futures: Engine, cash: Decimal = Decimal(10_000)) -> None:
        rate = Decimal("0.001")
        engine = Engine(clock.now, standard_markets(), cash, rate, rate, fee_in_base=True)
        engine.keeps_ids = engine.stops_lock = True
        self.sign_in = sign_in
        self.futures = futures
        self.fee_burn = False
        """Fees are paid in BNB."""
        self.may_transfer = True
        self.transfers: list[Row] = []
        super().__init__(engine, clock)

    home: FakeExchange
    """The other wallet, which keeps the keys."""

    def change_keys(self) -> None:
        self.home.change_keys()

    def routes(self) -> dict[str, Handler]:
        signed: dict[str, Any] = {
            "GET /api/v3/account": self.account,
            "POST /api/v3/order": self.new_order,
            "GET /api/v3/order": lambda params: self.order_row(self.find_order(params, -2013)),
            "DELETE /api/v3/order": self.cancel_order,
            "GET /api/v3/openOrders": lambda params: self.list_rows(params, only_open=True),
            "GET /api/v3/allOrders": lambda params: self.list_rows(params, only_open=False),
            "GET /api/v3/myTrades": self.my_trades,
            "GET /sapi/v1/bnbBurn": lambda params: {"spotBNBBurn": self.fee_burn, "interestBNBBurn": False},
            "POST /sapi/v1/asset/transfer": self.transfer,
            "GET /sapi/v1/asset/transfer": self.list_transfers,
        }
        public: dict[str, Handler] = {
            "GET /api/v3/time": lambda request: {"serverTime": self.clock.now()},
            "GET /api/v3/exchangeInfo": self.exchange_info,
            "GET /api/v3/ticker/bookTicker": self.book_ticker,
            "GET /api/v3/ticker/price": lambda request: self.price_row(self.asked_market(request)),
            "GET /api/v3/ticker/24hr": self.day_ticker,
        }
        return {**public, **{name: self.sign_in(handler) for name, handler in signed.items()}}

    # -- account and wallets

    def account(self, params: Row) -> Row:
        locked, rate = self.engine.locked_cash(), f"{self.engine.taker_fee}"
        balances = [self.balance_row("USDT", self.engine.cash - locked, locked)]
        for market, _ in self.engine.held(spot=True):
            free = self.engine.free_base(market.symbol)
            balances.append(self.balance_row(market.base, free, self.engine.locked_base(market.symbol)))
        return {
            "makerCommission": 10,
            "takerCommission": 10,
            "buyerCommission": 0,
            "sellerCommission": 0,
            "commissionRates": {"maker": rate, "taker": rate, "buyer": "0.00000000", "seller": "0.00000000"},
            "canTrade": self.trading,
            "canWithdraw": True,
            "canDeposit": True,
            "brokered": False,
            "requireSelfTradePrevention": False,
            "preventSor": False,
            "updateTime": self.clock.now(),
            "accountType": "SPOT",
            "balances": balances,
            "permissions": ["SPOT"],
            "uid": 354937868,
        }

    def balance_row(self, coin: str, free: Decimal, locked: Decimal) -> Row:
        return {"asset": coin, "free": f"{free:f}", "locked": f"{locked:f}"}

    def transfer(self, params: Row) -> Row:
        if not self.may_transfer:
            raise Declined(error(-1002, "You are not authorized to execute this request.", 401))
        amount = Decimal(params["amount"])
        giver = {-1: self.engine.cash - self.engine.locked_cash(), 1: self.futures.available()}
        if params["type"] not in TRANSFERS or params["asset"] != "USDT" or amount <= 0:
            raise Declined(error(-1102, "Mandatory parameter 'type' was not sent, was empty/null, or malformed."))
        if amount > giver[TRANSFERS[params["type"]]]:
            raise Declined(error(-5013, "Asset transfer failed: insufficient balance"))
        self.engine.cash += TRANSFERS[params["type"]] * amount
        self.futures.cash -= TRANSFERS[params["type"]] * amount
        number, now = self.engine.next_id(), self.clock.now()
        row = {"asset": "USDT", "amount": f"{amount:f}", "type": params["type"], "status": "CONFIRMED"}
        self.transfers.append({**row, "tranId": number, "timestamp": now})
        return {"tranId": number}

    def list_transfers(self, params: Row) -> Row:
        low = int(params.get("startTime", 0))
        shown = (row for row in self.transfers if low <= row["timestamp"] <= self.clock.listed())
        rows = [row for row in shown if row["type"] == params["type"]]
        return {"total": len(rows), "rows": rows[::-1]}

    # -- market

    def asked_market(self, request: Request) -> Market:
        market = self.engine.markets.get(request.query.get("symbol", ""))
        if market is None:
            raise Declined(error(*ERRORS["no_symbol"]))
        return market

    def exchange_info(self, request: Request) -> Row:
        rows = [self.asked_market(request)] if "symbol" in request.query else list(self.engine.markets.values())
        symbols = [self.symbol_row(market) for market in rows]
        return {"timezone": "UTC", "serverTime": self.clock.now(), "rateLimits": [], "symbols": symbols}

    def symbol_row(self, market: Market) -> Row:
        least, step = f"{market.min_quantity:f}", f"{market.lot:f}"
        sizes = {"minQty": least, "maxQty": "9000.00000000", "stepSize": step}
        prices = {"minPrice": "0.01000000", "maxPrice": "1000000.00000000", "tickSize": f"{market.tick:f}"}
        notional = {"minNotional": f"{market.min_notional:f}", "applyMinToMarket": True, "maxNotional": "9000000"}
        return {
            "symbol": market.symbol,
            "status": "TRADING" if market.trading else "BREAK",
            "baseAsset": market.base,
            "baseAssetPrecision": 8,
            "quoteAsset": market.quote,
            "quotePrecision": 8,
            "orderTypes": ["LIMIT", "LIMIT_MAKER", "MARKET", "STOP_LOSS", "TAKE_PROFIT"],
            "icebergAllowed": True,
            "ocoAllowed": True,
            "quoteOrderQtyMarketAllowed": True,
            "isSpotTradingAllowed": True,
            "isMarginTradingAllowed": True,
            "filters": [
                {"filterType": "PRICE_FILTER", **prices},
                {"filterType": "LOT_SIZE", **sizes},
                {"filterType": "MARKET_LOT_SIZE", **sizes, "maxQty": f"{market.max_quantity:f}", "stepSize": "0.00"},
                {"filterType": "NOTIONAL", **notional, "applyMaxToMarket": False, "avgPriceMins": 5},
                {"filterType": "MAX_NUM_ORDERS", "maxNumOrders": 200},
                {"filterType": "MAX_NUM_ALGO_ORDERS", "maxNumAlgoOrders": 5},
            ],
            "permissions": [],
            "permissionSets": [["SPOT", "MARGIN"]],
        }

    def price_row(self, market: Market) -> Row:
        return {"symbol": market.symbol, "price": f"{market.mark:f}"}

    def book_ticker(self, request: Request) -> Row:
        """Without a date."""
        market = self.asked_market(request)
        return {
            "symbol": market.symbol,
            "bidPrice": f"{market.bid:f}",
            "bidQty": f"{market.bid_size:f}",
            "askPrice": f"{market.ask:f}",
            "askQty": f"{market.ask_size:f}",
        }

    def day_ticker(self, request: Request) -> Row:
        market, now = self.asked_market(request), self.clock.now()
        prices = ("weightedAvgPrice", "prevClosePrice", "lastPrice", "openPrice", "highPrice", "lowPrice")
        amounts = ("priceChange", "priceChangePercent", "lastQty", "volume", "quoteVolume")
        return {
            **self.book_ticker(request),
            **dict.fromkeys(prices, f"{market.mark:f}"),
            **dict.fromkeys(amounts, "0.00000000"),
            "openTime": now - DAY,
            "closeTime": now,
            "firstId": 1,
            "lastId": self.engine.last_id,
            "count": 1,
        }

    # -- orders

    def new_order(self, params: Row) -> Row:
        if not self.trading:
            raise Declined(error(-2015, "Invalid API-key, IP, or permissions for action.", 401))
        client_id, symbol, side, kind = (
            params.get("newClientOrderId", f"auto{self.engine.last_id}"),
            params["symbol"],
            params["side"],
            params["type"],
        )
        if client_id.startswith("x-"):
            self.broker_marks.append(client_id)
        if len(client_id) > 36:
            raise Declined(error(-1100, "Illegal characters found in parameter 'newClientOrderId'."))
        market = self.engine.markets.get(symbol)
        try:
            if market is None:
                raise Rejected("no_symbol")
            if "quoteOrderQty" in params:
                quantity = Decimal(params["quoteOrderQty"]) / market.ask // market.lot * market.lot
            else:
                quantity = Decimal(params["quantity"])
            if kind in KINDS:
                trigger = Decimal(params["stopPrice"])
                order = self.engine.place_algo(
                    client_id, symbol, side, KINDS[kind], quantity, trigger, False, "CONTRACT_PRICE"
                )
                return self.order_row(order)
            if kind == "LIMIT" and "timeInForce" not in params:
                raise Declined(error(-1102, "Mandatory parameter 'timeInForce' was not sent."))
            price = Decimal(params["price"]) if kind != "MARKET" else None
            in_force = "GTX" if kind == "LIMIT_MAKER" else params.get("timeInForce", "GTC")
            plain = self.engine.place(client_id, symbol, side, kind, quantity, price, in_force)
        except Rejected as rejected:
            raise Declined(error(*ERRORS[rejected.why])) from None
        row = {**self.order_row(plain), "transactTime": self.clock.now()}
        if params.get("newOrderRespType", "FULL") == "FULL":
            row["fills"] = [self.fill_part(trade) for trade in self.engine.trades if trade.order == plain.id]
        return row

    def fill_part(self, trade: FakeTrade) -> Row:
        row = self.trade_row(trade)
        names = ("price", "qty", "commission", "commissionAsset")
        return {**{name: row[name] for name in names}, "tradeId": row["id"]}

    def find_order(self, params: Row, code: int) -> FakeOrder | FakeAlgo:
        def matches(order: FakeOrder | FakeAlgo) -> bool:
            named = str(order.id) == params.get("orderId") or order.client_id == params.get("origClientOrderId")
            return named and order.symbol == params["symbol"]

        order = self.look_up(matches)
        if order is None:
            raise Declined(error(code, "Order does not exist." if code == -2013 else "Unknown order sent."))
        return order

    def cancel_order(self, params: Row) -> Row:
        order = self.find_order(params, -2011)
        try:
            if isinstance(order, FakeAlgo):
                self.engine.cancel_algo(order)
            else:
                self.engine.cancel(order)
        except Rejected:
            raise Declined(error(*ERRORS["no_order"])) from None
        return {**self.order_row(order), "origClientOrderId": order.client_id, "clientOrderId": "cancelMyOrder1"}

    def check_window(self, params: Row) -> tuple[int, int]:
        low, high = int(params.get("startTime", 0)), int(params.get("endTime", 2**62))
        if "startTime" in params and "endTime" in params and high - low > DAY:
            raise Declined(error(-1127, "More than 24 hours between startTime and endTime."))
        return low, high

    def list_rows(self, params: Row, *, only_open: bool) -> list[Row]:
        low, high = self.check_window(params)
        rows = self.list_orders(lambda market: params.get("symbol", market.symbol) == market.symbol)
        if only_open:
            return [self.order_row(row) for row in rows if is_open(row)]
        return [self.order_row(row) for row in rows if low <= row.created <= high]

    def order_row(self, order: FakeOrder | FakeAlgo) -> Row:
        algo = order if isinstance(order, FakeAlgo) else self.engine.algos.get(order.id)
        filled, funds = (order.filled, order.funds) if isinstance(order, FakeOrder) else (ZERO, ZERO)
        kinds = {known: name for name, known in KINDS.items()}
        in_force = "GTC" if isinstance(order, FakeAlgo) or algo else order.time_in_force
        return {
            "symbol": order.symbol,
            "orderId": order.id,
            "orderListId": -1,
            "clientOrderId": order.client_id,
            "price": f"{(order.price if algo is None else None) or ZERO:.8f}",
            "origQty": f"{order.quantity:.8f}",
            "executedQty": f"{filled:.8f}",
            "origQuoteOrderQty": "0.00000000",
            "cummulativeQuoteQty": f"{funds:.8f}",
            "status": order.status,
            "timeInForce": "GTC" if in_force == "GTX" else in_force,
            "type": kinds[algo.type] if algo else order.type,
            "side": order.side,
            "stopPrice": f"{algo.trigger if algo else ZERO:.8f}",
            "icebergQty": "0.00000000",
            "time": order.created,
            "updateTime": order.updated,
            "isWorking": not isinstance(order, FakeAlgo),
            "workingTime": order.created,
            "selfTradePreventionMode": "EXPIRE_MAKER",
        }

    # -- trades

    def my_trades(self, params: Row) -> list[Row]:
        if "fromId" in params and ("startTime" in params or "endTime" in params):
            raise Declined(error(-1128, "Combination of optional parameters invalid."))
        low, high = self.check_window(params)
        if "startTime" in params:
            high = min(high, low + DAY)
        rows = [
            trade
            for trade in self.engine.trades
            if trade.symbol == params["symbol"]
            and low <= trade.at <= high
            and trade.id >= int(params.get("fromId", 0))
            and params.get("orderId", str(trade.order)) == str(trade.order)
        ]
        return [self.trade_row(trade) for trade in rows[: min(self.page, int(params.get("limit", 500)))]]

    def trade_row(self, trade: FakeTrade) -> Row:
        return {
            "symbol": trade.symbol,
            "id": trade.id,
            "orderId": trade.order,
            "orderListId": -1,
            "price": f"{trade.price:.8f}",
            "qty": f"{trade.quantity:.8f}",
            "quoteQty": f"{trade.quantity * trade.price:.8f}",
            "commission": f"{trade.fee:f}",
            "commissionAsset": "BNB" if self.fee_burn else trade.fee_currency,
            "time": trade.at,
            "isBuyer": trade.side == BUY,
            "isMaker": trade.maker,
            "isBestMatch": True,
        }
