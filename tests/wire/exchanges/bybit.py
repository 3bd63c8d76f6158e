"""Bybit's v5 interface, categories linear and spot of a unified account.

Built from https://bybit-exchange.github.io/docs/v5: guide (X-BAPI headers, HMAC over timestamp, key, window and what is
sent), rate-limit, error; market/time, market/instrument, market/tickers, market/orderbook; order/create-order,
order/cancel-order, order/open-order (recent closed orders too, lost when the service restarts), order/order-list,
order/execution; position, position/leverage, position/position-mode; account/wallet-balance, account/account-info,
account/set-margin-mode, account/transaction-log, account/fee-rate; user/apikey-info; enum. Every answer is HTTP 200
with a code. An order is confirmed before it is matched: what became of it, a list says. A conditional order keeps its
ids when it is triggered; a market order to buy coins is counted in the quote unless it says otherwise.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from tests.wire.exchanges.account import FakeExchange, Row, empty, is_open
from tests.wire.exchanges.matching import (
    SELL,
    ZERO,
    Engine,
    FakeAlgo,
    FakeFunding,
    FakeOrder,
    FakeTrade,
    Market,
    Rejected,
    build_market,
)
from tests.wire.exchanges.serving import Answer, Clock, Declined, Handler, Request, json_answer

KEY, SECRET = "bybit-key-4Hn", "bybit-secret-2Lp"
DAY = 86_400_000
ERRORS: dict[str, tuple[int, str]] = {
    "no_symbol": (10001, "params error: symbol invalid"),
    "not_trading": (110074, "This contract is not live"),
    "quantity": (10001, "The number of contracts is outside of the limits"),
    "lot": (10001, "Qty invalid"),
    "tick": (10001, "Price invalid"),
    "notional": (110094, "Order does not meet minimum order value"),
    "no_cash": (110007, "ab not enough for new order"),
    "reduce_only": (110017, "current position is zero, cannot fix reduce-only order qty"),
    "duplicate": (110072, "OrderLinkedID is duplicate"),
    "would_trigger": (110093, "expect Falling, but trigger_price >= current"),
    "no_order": (110001, "order not exists or too late to cancel"),
}
SPOT_ERRORS: dict[str, tuple[int, str]] = {
    "no_symbol": (170121, "Invalid symbol."),
    "not_trading": (170151, "The trading pair is not open yet."),
    "quantity": (170136, "Order quantity lower than the minimum."),
    "lot": (170137, "Order volume decimal too long."),
    "tick": (170134, "Order price decimal too long."),
    "notional": (170140, "Order value exceeded lower limit."),
    "no_cash": (170131, "Insufficient balance."),
    "no_base": (170131, "Insufficient balance."),
    "duplicate": (170141, "Duplicate clientOrderId."),
    "no_order": (170213, "Order does not exist."),
}
STATUSES = {"NEW": "New", "PARTIALLY_FILLED": "PartiallyFilled", "FILLED": "Filled"}
MARGIN_MODES = ("REGULAR_MARGIN", "ISOLATED_MARGIN", "PORTFOLIO_MARGIN")


def error(code: int, message: str, status: int = 200) -> Answer:
    return json_answer({"retCode": code, "retMsg": message, "result": {}, "retExtInfo": {}, "time": 0}, status)


def standard_markets() -> dict[str, Market]:
    perpetuals = [
        build_market("BTCUSDT", "60000", "0.1", "0.001", "5", base="BTC"),
        build_market("ETHUSDT", "3000", "0.01", "0.01", "5", "724", base="ETH"),
    ]
    coins = [
        build_market(f"spot:{base}USDT", price, tick, lot, "5", base=base, spot=True, wire_name=f"{base}USDT")
        for base, price, tick, lot in (("BTC", "60000", "0.1", "0.000001"), ("ETH", "3000", "0.01", "0.00001"))
    ]
    for coin in coins:
        coin.fees = Decimal("0.001"), Decimal("0.001")
    return {market.symbol: market for market in (*perpetuals, *coins)}


class FakeBybit(FakeExchange):
    """A unified account: coins and USDT in one wallet. A spot market's symbol in the engine is `spot:BTCUSDT`."""

    place_name = "POST /v5/order/create"
    find_name = "GET /v5/order/realtime"
    cancel_name = "POST /v5/order/cancel"
    filters_name = "GET /v5/market/instruments-info"
    funding_name = "GET /v5/account/transaction-log"
    limited = Answer(429, b'{"retCode": 10429, "retMsg": "System level frequency protection"}')
    banned = Answer(403, b"403, access too frequent", "text/plain")
    overloaded = error(10006, "Too many visits. Exceeded the API Rate Limit.")
    maintenance = error(10016, "System error. Please try again later.")
    unsure = (
        error(170035, "Submitted to the system for processing!"),
        error(170146, "Order creation timeout."),
        error(3400214, "Server error, please try again later"),
    )
    outdated = error(10002, "invalid request, please check your server timestamp or recv_window param.")
    limit_word = "Limit"
    events = ("order/realtime", "order/history", "execution/list", "transaction-log")
    secrets = (KEY, SECRET)

    def __init__(self, cash: Decimal = Decimal(10_000)) -> None:
        clock = Clock()
        self.secret = SECRET
        engine = Engine(clock.now, standard_markets(), cash, Decimal("0.0002"), Decimal("0.00055"))
        engine.fee_in_base = engine.keeps_ids = engine.unique_ids = True
        super().__init__(engine, clock)
        self.page = 100
        self.margin_mode = "REGULAR_MARGIN"
        self.restarted = False
        """The service was restarted: orders that have ended are in the history alone."""
        self.quote_amounts: dict[int, Decimal] = {}

    def routes(self) -> dict[str, Handler]:
        signed = {
            "GET /v5/user/query-api": self.query_api,
            "GET /v5/account/info": self.account_info,
            "GET /v5/account/wallet-balance": self.wallet_balance,
            "GET /v5/account/transaction-log": self.transaction_log,
            "GET /v5/account/fee-rate": self.fee_rate,
            "POST /v5/account/set-margin-mode": self.set_margin_mode,
            "POST /v5/position/set-leverage": self.set_leverage,
            "POST /v5/position/switch-mode": self.switch_mode,
            "GET /v5/position/list": self.position_list,
            "POST /v5/order/create": self.create_order,
            "POST /v5/order/cancel": self.cancel_order,
            "GET /v5/order/realtime": self.realtime_orders,
            "GET /v5/order/history": self.order_history,
            "GET /v5/execution/list": self.executions,
        }
        public = {
            "GET /v5/market/time": self.server_time,
            "GET /v5/market/instruments-info": self.instruments,
            "GET /v5/market/tickers": self.tickers,
            "GET /v5/market/orderbook": self.orderbook,
        }
        return {
            **{name: self.wrap(handler, lambda request: request.query) for name, handler in public.items()},
            **{name: self.wrap(handler, self.sign_in) for name, handler in signed.items()},
        }

    def wrap(self, handler: Any, read: Any) -> Handler:
        """Every answer in the same envelope."""

        def handle(request: Request) -> Any:
            result = handler(read(request))
            return {"retCode": 0, "retMsg": "OK", "result": result, "retExtInfo": {}, "time": self.clock.now()}

        return handle

    def sign_in(self, request: Request) -> dict[str, Any]:
        """Key, signature over what was sent, and a date inside the window."""
        headers = request.headers
        self.broker_marks += filter(None, [headers.get("referer"), headers.get("x-referer")])
        stamp, window = headers.get("x-bapi-timestamp", ""), headers.get("x-bapi-recv-window", "5000")
        if headers.get("x-bapi-api-key") != KEY:
            raise Declined(error(10003, "API key is invalid."))
        payload = request.body.decode() if request.method == "POST" else unquote(request.raw_query)
        expected = hmac.new(self.secret.encode(), f"{stamp}{KEY}{window}{payload}".encode(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected, headers.get("x-bapi-sign", "")):
            raise Declined(error(10004, "error sign! please check your signature generation algorithm."))
        if not self.clock.now() - int(window) <= int(stamp) < self.clock.now() + 1_000:
            raise Declined(self.outdated)
        params = json.loads(request.body) if request.method == "POST" else request.query
        assert isinstance(params, dict)
        return params

    # -- account

    def query_api(self, params: Row) -> Row:
        trade = ["Order", "Position"] if self.trading else []
        return {
            "id": "13770661",
            "note": "desk",
            "apiKey": KEY,
            "readOnly": 0 if self.trading else 1,
            "secret": "",
            "permissions": {
                "ContractTrade": trade,
                "Spot": ["SpotTrade"] if self.trading else [],
                "Wallet": ["AccountTransfer", "Withdraw"] if self.withdrawals else ["AccountTransfer"],
                "Derivatives": ["DerivativesTrade"] if self.trading else [],
                **{name: [] for name in ("Options", "CopyTrading", "BlockTrade", "Exchange", "NFT", "Affiliate")},
            },
            "ips": ["127.0.0.1"],
            "type": 1,
            "deadlineDay": 83,
            "expiredAt": "2027-02-16T03:12:37Z",
            "createdAt": "2026-11-16T03:12:37Z",
            "unified": 0,
            "uta": 1,
            "userID": 24600000,
            "inviterID": 0,
            "vipLevel": "No VIP",
            "mktMakerLevel": "0",
            "affiliateID": 0,
            "rsaPublicKey": "",
            "isMaster": True,
            "parentUid": "0",
            "kycLevel": "LEVEL_DEFAULT",
            "kycRegion": "",
        }

    def account_info(self, params: Row) -> Row:
        return {
            "marginMode": self.margin_mode,
            "updatedTime": str(self.clock.now()),
            "unifiedMarginStatus": 6,
            "dcpStatus": "OFF",
            "timeWindow": 10,
            "smpGroup": 0,
            "isMasterTrader": False,
            "spotHedgingStatus": "OFF",
        }

    def set_margin_mode(self, params: Row) -> Row:
        mode = params["setMarginMode"]
        if mode not in MARGIN_MODES:
            raise Declined(error(10001, "Request parameter error."))
        if mode != self.margin_mode and self.engine.held(spot=False):
            raise Declined(error(3400045, "Set margin mode failed"))
        self.margin_mode = mode
        symbols = {market.symbol for market in self.engine.markets.values() if not market.spot}
        self.engine.isolated = symbols if mode == "ISOLATED_MARGIN" else set()
        return {"reasons": []}

    def set_leverage(self, params: Row) -> Row:
        market = self.asked_market(params)
        if params["buyLeverage"] != params["sellLeverage"]:
            raise Declined(error(10001, "buy leverage invalid"))
        leverage = int(Decimal(params["buyLeverage"]))
        if self.engine.leverage.get(market.symbol, 20) == leverage:
            raise Declined(error(110043, "leverage not modified"))
        if not 1 <= leverage <= 100:
            raise Declined(error(10001, "buy leverage invalid"))
        self.engine.leverage[market.symbol] = leverage
        return {}

    def switch_mode(self, params: Row) -> Row:
        hedge = {0: False, 3: True}[int(params["mode"])]
        if hedge is self.hedge:
            raise Declined(error(110025, "Position mode is not modified"))
        if self.engine.held(spot=False):
            raise Declined(error(110024, "You have an existing position, so position mode cannot be switched"))
        self.hedge = hedge
        return {}

    def fee_rate(self, params: Row) -> Row:
        names = (("takerFeeRate", False), ("makerFeeRate", True))
        rows = [
            {"symbol": market.name, **{name: f"{self.engine.fee_rate(market, maker)}" for name, maker in names}}
            for market in self.asked_markets(params)
        ]
        return {"list": rows}

    def wallet_balance(self, params: Row) -> Row:
        if params["accountType"] != "UNIFIED":
            raise Declined(error(10001, "accountType only support UNIFIED."))
        isolated = self.margin_mode == "ISOLATED_MARGIN"
        positions = [market.symbol for market, _ in self.engine.held(spot=False)]
        margins = sum(map(self.engine.margin, positions), ZERO)
        profit = sum(map(self.engine.unrealised, positions), ZERO)
        locked, available = self.engine.locked_cash(), self.engine.available()
        waiting = self.engine.cash - available - margins - locked
        coins = [self.coin_row("USDT", self.engine.cash, locked, profit, margins, waiting)]
        worth = self.engine.cash
        for market, position in self.engine.held(spot=True):
            coins.append(self.coin_row(market.base, position.amount, self.engine.locked_base(market.symbol)))
            worth += position.amount * market.mark
        account = {
            "totalEquity": worth + profit,
            "totalWalletBalance": worth,
            "totalPerpUPL": profit,
        }
        by_margin = {
            "totalMarginBalance": worth + profit,
            "totalInitialMargin": margins,
            "totalMaintenanceMargin": ZERO,
            "totalAvailableBalance": available + worth - self.engine.cash,
            "accountIMRate": ZERO,
            "accountMMRate": ZERO,
        }
        asked = params.get("coin")
        row = {
            **{name: f"{value:f}" for name, value in account.items()},
            **{name: "" if isolated else f"{value:f}" for name, value in by_margin.items()},
            "accountType": "UNIFIED",
            "accountLTV": "0",
            "coin": [coin for coin in coins if not asked or coin["coin"] in asked.split(",")],
        }
        return {"list": [row]}

    def coin_row(
        self,
        coin: str,
        total: Decimal,
        locked: Decimal,
        profit: Decimal = ZERO,
        margin: Decimal = ZERO,
        order_margin: Decimal = ZERO,
    ) -> Row:
        return {
            "coin": coin,
            "equity": f"{total + profit:f}",
            "usdValue": f"{total:f}",
            "walletBalance": f"{total:f}",
            "locked": f"{locked:f}",
            **empty("availableToWithdraw availableToBorrow"),
            **dict.fromkeys("spotHedgingQty borrowAmount accruedInterest cumRealisedPnl bonus".split(), "0"),
            "totalOrderIM": f"{order_margin:f}",
            "totalPositionIM": f"{margin:f}",
            "totalPositionMM": "0",
            "unrealisedPnl": f"{profit:f}",
            "marginCollateral": True,
            "collateralSwitch": True,
        }

    def position_list(self, params: Row) -> Row:
        """A symbol that is asked for is listed even where nothing of it is held."""
        if params["category"] != "linear":
            raise Declined(error(10001, "Illegal category"))
        if "symbol" not in params and "settleCoin" not in params:
            raise Declined(error(10001, "Missing some parameters that must be filled in, symbol or settleCoin"))
        rows = []
        for market in self.asked_markets(params):
            position, symbol = self.engine.position(market.symbol), market.symbol
            if not position.amount and "symbol" not in params:
                continue
            held = position.amount
            side = "Buy" if held > 0 else "Sell" if held < 0 else ""
            margin = self.engine.margin(symbol)
            rows.append(
                {
                    "positionIdx": (1 if held >= 0 else 2) if self.hedge else 0,
                    "riskId": 1,
                    "riskLimitValue": "2000000",
                    "symbol": market.name,
                    "side": side,
                    "size": f"{abs(held):f}",
                    "avgPrice": f"{position.entry:f}",
                    "positionValue": f"{abs(held) * position.entry:f}",
                    "tradeMode": 1 if symbol in self.engine.isolated else 0,
                    "autoAddMargin": 0,
                    "positionStatus": "Normal",
                    "leverage": f"{self.engine.leverage.get(symbol, 20)}",
                    "markPrice": f"{market.mark:f}",
                    "liqPrice": f"{self.engine.liquidation(symbol):.2f}" if held else "",
                    "positionIM": f"{margin:f}",
                    "positionMM": "0",
                    "positionBalance": f"{margin:f}",
                    **empty("bustPrice takeProfit stopLoss mmrSysUpdatedTime leverageSysUpdatedTime sessionAvgPrice"),
                    "trailingStop": "0",
                    "tpslMode": "Full",
                    "unrealisedPnl": f"{self.engine.unrealised(symbol):f}",
                    "curRealisedPnl": "0",
                    "cumRealisedPnl": "0",
                    "adlRankIndicator": 2,
                    "isReduceOnly": False,
                    "createdTime": f"{self.clock.now()}",
                    "updatedTime": f"{self.clock.now()}",
                    "seq": 4688002127,
                }
            )
        return {"category": "linear", "list": rows, "nextPageCursor": ""}

    # -- market

    def server_time(self, params: Row) -> Row:
        now = self.clock.now()
        return {"timeSecond": str(now // 1_000), "timeNano": str(now * 1_000_000)}

    def asked_market(self, params: Row) -> Market:
        spot = params["category"] == "spot"
        market = self.market(params.get("symbol", ""), spot)
        if market is None:
            raise Declined(error(*(SPOT_ERRORS if spot else ERRORS)["no_symbol"]))
        return market

    def asked_markets(self, params: Row) -> list[Market]:
        if params["category"] not in ("linear", "spot"):
            raise Declined(error(10001, "Illegal category"))
        if "symbol" in params:
            return [self.asked_market(params)]
        return [market for market in self.engine.markets.values() if market.spot is (params["category"] == "spot")]

    def instruments(self, params: Row) -> Row:
        """Without a symbol those that trade alone are listed."""
        rows = [market for market in self.asked_markets(params) if market.trading or "symbol" in params]
        listed = [self.spot_row(market) if market.spot else self.perpetual_row(market) for market in rows]
        return {"category": params["category"], "list": listed, "nextPageCursor": ""}

    def perpetual_row(self, market: Market) -> Row:
        return {
            "symbol": market.name,
            "contractType": "LinearPerpetual",
            "status": "Trading" if market.trading else "Closed",
            "baseCoin": market.base,
            "quoteCoin": market.quote,
            "launchTime": "1585526400000",
            "deliveryTime": "0",
            "deliveryFeeRate": "",
            "priceScale": "2",
            "leverageFilter": {"minLeverage": "1", "maxLeverage": "100.00", "leverageStep": "0.01"},
            "priceFilter": {"minPrice": "0.10", "maxPrice": "1999999.80", "tickSize": f"{market.tick}"},
            "lotSizeFilter": {
                "maxOrderQty": "1190.000",
                "minOrderQty": f"{market.min_quantity}",
                "qtyStep": f"{market.lot}",
                "postOnlyMaxOrderQty": "1190.000",
                "maxMktOrderQty": f"{market.max_quantity}",
                "minNotionalValue": f"{market.min_notional}",
            },
            "unifiedMarginTrade": True,
            "fundingInterval": 480,
            "settleCoin": "USDT",
            "copyTrading": "none",
            "upperFundingRate": "0.00375",
            "lowerFundingRate": "-0.00375",
            "isPreListing": False,
            "preListingInfo": None,
        }

    def spot_row(self, market: Market) -> Row:
        return {
            "symbol": market.name,
            "baseCoin": market.base,
            "quoteCoin": market.quote,
            "innovation": "0",
            "status": "Trading" if market.trading else "Closed",
            "marginTrading": "utaOnly",
            "stTag": "0",
            "lotSizeFilter": {
                "basePrecision": f"{market.lot:f}",
                "quotePrecision": "0.0000001",
                "minOrderQty": f"{market.min_quantity:f}",
                "maxOrderQty": f"{market.max_quantity}",
                "minOrderAmt": f"{market.min_notional}",
                "maxOrderAmt": "4000000",
                "maxLimitOrderQty": f"{market.max_quantity}",
                "maxMarketOrderQty": f"{market.max_quantity}",
            },
            "priceFilter": {"tickSize": f"{market.tick}"},
            "riskParameters": {"priceLimitRatioX": "0.01", "priceLimitRatioY": "0.02"},
        }

    def tickers(self, params: Row) -> Row:
        rows = []
        for market in self.asked_markets(params):
            row = {
                "symbol": market.name,
                "bid1Price": f"{market.bid:f}",
                "bid1Size": f"{market.bid_size:f}",
                "ask1Price": f"{market.ask:f}",
                "ask1Size": f"{market.ask_size:f}",
                **dict.fromkeys("lastPrice prevPrice24h highPrice24h lowPrice24h".split(), f"{market.mark:f}"),
                **dict.fromkeys("price24hPcnt turnover24h volume24h".split(), "0"),
            }
            if market.spot:
                row["usdIndexPrice"] = f"{market.mark:f}"
            else:
                row |= {
                    "markPrice": f"{market.mark:f}",
                    "indexPrice": f"{market.mark:f}",
                    "openInterest": "53000",
                    "openInterestValue": "1",
                    "fundingRate": "0.0001",
                    "nextFundingTime": f"{self.clock.now() + 3_600_000}",
                    "fundingIntervalHour": "8",
                    "deliveryTime": "0",
                }
            rows.append(row)
        return {"category": params["category"], "list": rows}

    def orderbook(self, params: Row) -> Row:
        market, now = self.asked_market(params), self.clock.now()
        return {
            "s": market.name,
            "b": [[f"{market.bid:f}", f"{market.bid_size:f}"]],
            "a": [[f"{market.ask:f}", f"{market.ask_size:f}"]],
            "ts": now,
            "u": 230704,
            "seq": 1432604333,
            "cts": now,
        }

    # -- orders

    def order_id(self, order: FakeOrder | FakeAlgo) -> str:
        spot = self.engine.markets[order.symbol].spot
        return str(2_000_000_000_000_000_000 + order.id) if spot else str(uuid.UUID(int=order.id))

    def create_order(self, params: Row) -> Row:
        if not self.trading:
            raise Declined(error(10005, "Permission denied, please check your API key permissions."))
        market = self.asked_market(params)
        codes, client_id = SPOT_ERRORS if market.spot else ERRORS, params.get("orderLinkId", "")
        if len(client_id) > 36:
            raise Declined(error(10001, "OrderLinkId is too long"))
        if not market.spot and int(params.get("positionIdx", 0)) == 0 and self.hedge:
            raise Declined(error(10001, "position idx not match position mode"))
        side, quantity = params["side"].upper(), Decimal(params["qty"])
        price = Decimal(params["price"]) if params["orderType"] == "Limit" else None
        amount = None
        if market.spot and price is None and side == "BUY" and params.get("marketUnit") != "baseCoin":
            amount, quantity = quantity, quantity / market.ask // market.lot * market.lot
        reduces = bool(params.get("reduceOnly")) and not market.spot
        in_force = {"IOC": "IOC", "PostOnly": "GTX"}.get(params.get("timeInForce", "GTC"), "GTC")
        try:
            if "triggerPrice" in params:
                order = self.create_conditional(params, market, side, quantity, reduces)
            else:
                if price is None and quantity > market.max_quantity:
                    raise Rejected("quantity")
                order = self.engine.place(
                    client_id, market.symbol, side, params["orderType"], quantity, price, in_force, reduces
                )
        except Rejected as rejected:
            if rejected.why != "post_only":
                raise Declined(error(*codes[rejected.why])) from None
            made = self.engine.make_order(client_id, market.symbol, side, "Limit", quantity, price, "GTX", reduces)
            order = self.engine.record_rejection(made, "EC_PostOnlyWillTakeLiquidity")
        if amount is not None:
            self.quote_amounts[order.id] = amount
        return {"orderId": self.order_id(order), "orderLinkId": client_id}

    def create_conditional(
        self, params: Row, market: Market, side: str, quantity: Decimal, reduces: bool
    ) -> FakeOrder | FakeAlgo:
        trigger = Decimal(params["triggerPrice"])
        if market.spot:
            falls = trigger < market.mark
            if params.get("orderFilter", "Order") not in ("StopOrder", "tpslOrder"):
                raise Declined(error(170202, "Invalid orderFilter parameter."))
        elif "triggerDirection" not in params:
            raise Declined(error(10001, "triggerDirection invalid"))
        else:
            falls = int(params["triggerDirection"]) == 2
        kind = "STOP_MARKET" if falls == (side == SELL) else "TAKE_PROFIT_MARKET"
        by = params.get("triggerBy", "LastPrice")
        client_id = params.get("orderLinkId", "")
        return self.engine.place_algo(client_id, market.symbol, side, kind, quantity, trigger, reduces, by)

    def find_order(self, params: Row) -> FakeOrder | FakeAlgo | None:
        spot, name = params["category"] == "spot", params.get("symbol")

        def matches(order: FakeOrder | FakeAlgo) -> bool:
            market = self.engine.markets[order.symbol]
            named = "orderId" in params and self.order_id(order) == params["orderId"]
            linked = bool(order.client_id) and order.client_id == params.get("orderLinkId")
            return market.spot is spot and name in (None, market.name) and (named or linked)

        return self.look_up(matches)

    def cancel_order(self, params: Row) -> Row:
        order = self.find_order(params)
        spot = params["category"] == "spot"
        try:
            if order is None:
                raise Rejected("no_order")
            if isinstance(order, FakeAlgo):
                self.engine.cancel_algo(order)
            else:
                self.engine.cancel(order)
        except Rejected:
            raise Declined(error(*(SPOT_ERRORS if spot else ERRORS)["no_order"])) from None
        return {"orderId": self.order_id(order), "orderLinkId": order.client_id}

    def realtime_orders(self, params: Row) -> Row:
        if params["category"] == "linear" and not {"symbol", "settleCoin", "baseCoin"} & set(params):
            raise Declined(error(10001, "Missing some parameters that must be filled in"))
        named = "orderId" in params or "orderLinkId" in params
        closed = named or params.get("openOnly", "0") != "0"
        rows = [row for row in self.asked_orders(params) if is_open(row) or (closed and not self.restarted)]
        if not named and closed:
            rows = [row for row in rows if not is_open(row)]
        return self.turn_page(params, [self.order_row(row) for row in rows], 50)

    def order_history(self, params: Row) -> Row:
        self.check_window(params)
        rows = [row for row in self.asked_orders(params) if not is_open(row)]
        if "orderId" not in params and "orderLinkId" not in params:
            low, high = self.read_window(params)
            rows = [row for row in rows if low <= row.created <= high]
        return self.turn_page(params, [self.order_row(row) for row in rows], 50)

    def asked_orders(self, params: Row) -> list[FakeOrder | FakeAlgo]:
        """Newest first."""
        if self.late:
            self.late -= 1
            return []
        if "orderId" in params or "orderLinkId" in params:
            order = self.find_order(params)
            return [] if order is None else [order]
        wanted = {market.symbol for market in self.asked_markets(params)}
        kind = params.get("orderFilter")
        rows = self.list_orders(lambda market: market.symbol in wanted)
        rows = [row for row in rows if kind is None or isinstance(row, FakeAlgo) is (kind != "Order")]
        return rows[::-1]

    def check_window(self, params: Row) -> None:
        low, high = (int(params.get(name, 0)) for name in ("startTime", "endTime"))
        if low and high and high - low > 7 * DAY:
            raise Declined(error(10001, "The time range between startTime and endTime cannot exceed 7 days"))

    def read_window(self, params: Row) -> tuple[int, int]:
        """Seven days before now, after the start, or before the end."""
        now = self.clock.now()
        if "startTime" in params:
            low = int(params["startTime"])
            return low, int(params.get("endTime", low + 7 * DAY))
        high = int(params.get("endTime", now))
        return high - 7 * DAY, high

    def turn_page(self, params: Row, rows: list[Row], most: int) -> Row:
        size, start = min(int(params.get("limit", 20)), most, self.page), int(params.get("cursor") or 0)
        cursor = str(start + size) if start + size < len(rows) else ""
        return {"category": params["category"], "nextPageCursor": cursor, "list": rows[start : start + size]}

    def order_row(self, order: FakeOrder | FakeAlgo) -> Row:
        market = self.engine.markets[order.symbol]
        filled, funds, fee = (
            (order.filled, order.funds, order.fee) if isinstance(order, FakeOrder) else (ZERO, ZERO, ZERO)
        )
        algo = order if isinstance(order, FakeAlgo) else self.engine.algos.get(order.id)
        ended = not is_open(order)
        status = STATUSES.get(order.status)
        if isinstance(order, FakeAlgo):
            status = {"NEW": "Untriggered", "CANCELED": "Deactivated", "EXPIRED": "Rejected"}[order.status]
        elif status is None:
            status = "PartiallyFilledCanceled" if market.spot and filled else "Cancelled"
        reason = order.reason if order.reason.startswith("EC_") else "EC_Others" if order.reason else "EC_NoError"
        if ended and status == "Cancelled" and not order.reason:
            reason = "EC_PerCancelRequest" if order.status == "CANCELED" else "EC_NoImmediateQtyToFill"
        plain_market = order.type == "Market" or algo is not None
        in_force = "IOC" if plain_market else {"GTX": "PostOnly"}.get(order.time_in_force, order.time_in_force)  # type: ignore[union-attr]
        amount, currency = self.quote_amounts.get(order.id), self.fee_currency(market, order.side)
        return {
            "orderId": self.order_id(order),
            "orderLinkId": order.client_id if not order.client_id.startswith("autoclose-") else "",
            "symbol": market.name,
            **empty("blockTradeId orderIv"),
            "price": f"{(None if plain_market else order.price) or ZERO:f}",
            "qty": f"{order.quantity if amount is None else amount:f}",
            "side": order.side.title(),
            "isLeverage": "0" if market.spot else "",
            "positionIdx": 0,
            "orderStatus": status,
            "createType": "CreateByUser",
            "cancelType": "CancelByUser" if order.status == "CANCELED" and not order.reason else "UNKNOWN",
            "rejectReason": reason,
            "avgPrice": f"{funds / filled:.8f}" if filled else "",
            "leavesQty": f"{ZERO if ended else order.quantity - filled:f}",
            "leavesValue": "0",
            "cumExecQty": f"{filled:f}",
            "cumExecValue": f"{funds:f}",
            "cumExecFee": f"{fee:f}",
            "cumFeeDetail": {currency: f"{fee:f}"} if filled else {},
            "timeInForce": in_force,
            "orderType": "Market" if plain_market else "Limit",
            "stopOrderType": "" if algo is None else "Stop",
            "marketUnit": "" if not market.spot else "baseCoin" if amount is None else "quoteCoin",
            "triggerPrice": "" if algo is None else f"{algo.trigger:f}",
            **empty("takeProfit stopLoss tpslMode tpTriggerBy slTriggerBy lastPriceOnCreated placeType smpOrderId"),
            "triggerDirection": 0 if algo is None or market.spot else 2 if falls_to(algo) else 1,
            "triggerBy": "" if algo is None else algo.working_type,
            "reduceOnly": order.reduce_only,
            "closeOnTrigger": False,
            "smpType": "None",
            "smpGroup": 0,
            "createdTime": str(order.created),
            "updatedTime": str(order.updated),
        }

    # -- fills and funding

    def fee_currency(self, market: Market, side: str) -> str:
        return market.base if market.spot and side == "BUY" else market.quote

    def executions(self, params: Row) -> Row:
        """Newest first; payments of funding are among them."""
        self.check_window(params)
        low, high = self.read_window(params)
        wanted = {market.symbol for market in self.asked_markets(params)}
        events: list[FakeTrade | FakeFunding] = [*self.engine.trades, *self.engine.funding]
        events = [event for event in events if event.symbol in wanted and low <= event.at <= high]
        rows = [
            self.execution_row(event) if isinstance(event, FakeTrade) else self.funding_row(event) for event in events
        ]
        for name in ("orderId", "orderLinkId", "execType"):
            rows = [row for row in rows if params.get(name) in (None, "", row[name])]
        rows.sort(key=lambda row: (int(row["execTime"]), row["execId"]), reverse=True)
        return self.turn_page({"limit": "50", **params}, rows, 100)

    def execution_row(self, trade: FakeTrade) -> Row:
        market, order = self.engine.markets[trade.symbol], self.engine.orders[trade.order]
        return {
            "symbol": market.name,
            "orderId": self.order_id(order),
            "orderLinkId": "" if trade.liquidation else order.client_id,
            "side": trade.side.title(),
            "orderPrice": f"{order.price or trade.price:f}",
            "orderQty": f"{order.quantity:f}",
            "leavesQty": f"{order.left:f}",
            "createType": "CreateByUser",
            "orderType": "Limit" if order.type == "Limit" else "Market",
            "stopOrderType": "UNKNOWN" if order.algo is None else "Stop",
            "execFee": f"{trade.fee:f}",
            "feeCurrency": trade.fee_currency,
            "execId": str(trade.id) if market.spot else str(uuid.UUID(int=trade.id)),
            "execPrice": f"{trade.price:f}",
            "execQty": f"{trade.quantity:f}",
            "execType": "BustTrade" if trade.liquidation else "Trade",
            "execValue": f"{trade.quantity * trade.price:f}",
            "execTime": str(trade.at),
            "isMaker": trade.maker,
            "feeRate": f"{self.engine.fee_rate(market, trade.maker)}",
            "markPrice": f"{market.mark:f}",
            **empty("tradeIv markIv indexPrice underlyingPrice blockTradeId"),
            "closedSize": "0",
            "seq": trade.id,
        }

    def funding_row(self, paid: FakeFunding) -> Row:
        market = self.engine.markets[paid.symbol]
        return {
            "symbol": market.name,
            "orderId": str(uuid.UUID(int=paid.id)),
            "orderLinkId": "",
            "side": "Sell" if paid.position > 0 else "Buy",
            **dict.fromkeys(("orderPrice", "orderQty", "leavesQty"), "0"),
            **empty("createType feeCurrency"),
            "orderType": "UNKNOWN",
            "stopOrderType": "UNKNOWN",
            "execFee": f"{-paid.amount:f}",
            "execId": str(uuid.UUID(int=paid.id)),
            "execPrice": f"{paid.mark:f}",
            "execQty": f"{abs(paid.position):f}",
            "execType": "Funding",
            "execValue": f"{abs(paid.position) * paid.mark:f}",
            "execTime": str(paid.at),
            "isMaker": False,
            "feeRate": f"{paid.rate}",
            "markPrice": f"{paid.mark:f}",
            **empty("tradeIv markIv indexPrice underlyingPrice blockTradeId"),
            "closedSize": "0",
            "seq": paid.id,
        }

    def transaction_log(self, params: Row) -> Row:
        """Of funding alone: what a desk asks this log for. Above zero is received."""
        self.check_window(params)
        low, high = self.read_window(params)
        kind, name = params.get("type", "SETTLEMENT"), params.get("symbol")
        rows = [
            {
                "id": f"{paid.id}_{self.engine.markets[paid.symbol].name}",
                "symbol": self.engine.markets[paid.symbol].name,
                "category": "linear",
                "side": "Buy" if paid.position > 0 else "Sell",
                "transactionTime": str(paid.at),
                "type": "SETTLEMENT",
                "transSubType": "",
                "qty": f"{abs(paid.position):f}",
                "size": f"{paid.position:f}",
                "currency": "USDT",
                "tradePrice": f"{paid.mark:f}",
                "funding": f"{paid.amount:f}",
                "fee": "0",
                "cashFlow": "0",
                "change": f"{paid.amount:f}",
                "cashBalance": f"{self.engine.cash:f}",
                "feeRate": f"{paid.rate}",
                "bonusChange": "",
                "tradeId": str(uuid.UUID(int=paid.id)),
                "orderId": "",
                "orderLinkId": "",
                "extraFees": "",
            }
            for paid in reversed(self.engine.funding)
            if kind == "SETTLEMENT" and low <= paid.at <= high
        ]
        rows = [row for row in rows if name in (None, row["symbol"])]
        page = self.turn_page({"category": "linear", **params}, rows, 50)
        return {"list": page["list"], "nextPageCursor": page["nextPageCursor"]}


def falls_to(algo: FakeAlgo) -> bool:
    """Whether the price has to fall for it to be triggered."""
    return (algo.type == "STOP_MARKET") == (algo.side == SELL)
