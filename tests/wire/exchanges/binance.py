"""Binance's USDⓈ-M futures, the endpoints of an account.

Built from https://developers.binance.com/docs/derivatives/usds-margined-futures: …/general-info (HMAC signature,
timestamp and recvWindow, 429 and 418 with Retry-After); …/market-data/rest-api (Check-Server-Time,
Exchange-Information, Symbol-Order-Book-Ticker, Mark-Price); …/trade/rest-api (New-Order, Query-Order, Cancel-Order,
All-Orders, Current-All-Open-Orders, Account-Trade-List, New-Algo-Order, Query-Algo-Order, Query-All-Algo-Orders,
Current-All-Algo-Open-Orders, Cancel-Algo-Order, Change-Initial-Leverage, Change-Margin-Type, Position-Information-V3);
…/account/rest-api (Futures-Account-Balance-V3, Account-Config, Symbol-Config, Get-Income-History,
Get-BNB-Burn-Status, Get-Current-Position-Mode); …/error-code; and the keys' permissions from
https://developers.binance.com/docs/wallet/account/api-key-permission. The client id of the order that a conditional
one becomes is not documented: here it is the exchange's own, the harder case.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from tests.wire.exchanges.account import FakeExchange
from tests.wire.exchanges.binance_spot import FakeBinanceSpot, error
from tests.wire.exchanges.matching import OPEN, Engine, FakeAlgo, FakeOrder, FakeTrade, Market, Rejected, build_market
from tests.wire.exchanges.serving import Clock, Declined, Request

KEY, SECRET = "binance-key-7Qm", "binance-secret-9Zt"
ERRORS: dict[str, tuple[int, str]] = {
    "no_symbol": (-1121, "Invalid symbol."),
    "not_trading": (-4140, "Invalid symbol status for opening position."),
    "quantity": (-4003, "Quantity less than or equal to zero."),
    "lot": (-1111, "Precision is over the maximum defined for this asset."),
    "tick": (-4014, "Price not increased by tick size."),
    "notional": (-4164, "Order's notional must be no smaller than 50 (unless you choose reduce only)."),
    "no_cash": (-2019, "Margin is insufficient."),
    "reduce_only": (-2022, "ReduceOnly Order is rejected."),
    "post_only": (-5022, "Due to the order could not be executed as maker, the Post Only order will be rejected."),
    "duplicate": (-4116, "ClientOrderId is duplicated."),
    "would_trigger": (-2021, "Order would immediately trigger."),
    "no_order": (-2011, "Unknown order sent."),
}


def standard_markets() -> dict[str, Market]:
    rows = (("BTCUSDT", "60000", "0.10", "50"), ("ETHUSDT", "3000", "0.01", "20"))
    return {
        symbol: build_market(symbol, price, tick, "0.001", least, base=symbol.removesuffix("USDT"))
        for symbol, price, tick, least in rows
    }


class FakeBinance(FakeExchange):
    """The futures wallet of an account; `spot` is the other one, behind the same server."""

    place_name = "POST /fapi/v1/order"
    find_name = "GET /fapi/v1/order"
    cancel_name = "DELETE /fapi/v1/order"
    filters_name = "GET /fapi/v1/exchangeInfo"
    funding_name = "GET /fapi/v1/income"
    limited = FakeBinanceSpot.limited
    banned = FakeBinanceSpot.banned
    overloaded = error(-1015, "Too many new orders.", 429)
    maintenance = error(-1016, "This service is no longer available.", 503)
    unsure = (
        error(-1006, "An unexpected response was received from the message bus. Execution status unknown."),
        error(-1007, "Timeout waiting for response from backend server. Send status unknown."),
    )
    outdated = error(-1021, "Timestamp for this request is outside of the recvWindow.")
    events = ("userTrades", "income", "openOrders", "AlgoOrders")
    secrets = (KEY, SECRET, "signature=")

    def __init__(self, cash: Decimal = Decimal(10_000), spot_cash: Decimal = Decimal(10_000)) -> None:
        clock = Clock()
        engine = Engine(clock.now, standard_markets(), cash, Decimal("0.0002"), Decimal("0.0005"))
        self.secret = SECRET
        self.spot = FakeBinanceSpot(clock, self.sign_in, engine, spot_cash)
        super().__init__(engine, clock)
        self.spot.home, self.spot.server, self.spot.secrets = self, self.server, self.secrets
        self.server.reading = self.hide_everywhere
        self.multi_assets = False
        self.fee_burn = False
        self.margin_types = dict.fromkeys(self.engine.markets, "CROSSED")
        self.margin_changes: list[dict[str, Any]] = []
        self.order_windows: list[int] = []
        """For how long each order was good after its date, in milliseconds."""
        self.hidden_trades = 0
        """How many of the newest trades the list of trades does not show yet; one fewer after every look."""

    @property
    def stop_name(self) -> str:
        return "POST /fapi/v1/algoOrder"

    @contextmanager
    def hide_everywhere(self, name: str) -> Iterator[None]:
        with self.hide_new(name), self.spot.hide_new(name):
            yield

    def routes(self) -> dict[str, Any]:
        signed = {
            "GET /sapi/v1/account/apiRestrictions": self.permissions,
            "GET /fapi/v1/accountConfig": self.account_config,
            "GET /fapi/v1/symbolConfig": self.symbol_config,
            "GET /fapi/v1/feeBurn": lambda params: {"feeBurn": self.fee_burn},
            "GET /fapi/v1/positionSide/dual": lambda params: {"dualSidePosition": self.hedge},
            "POST /fapi/v1/marginType": self.set_margin_type,
            "POST /fapi/v1/leverage": self.set_leverage,
            "POST /fapi/v1/positionMargin": self.add_margin,
            "GET /fapi/v1/positionMargin/history": lambda params: [
                row for row in self.margin_changes if row["time"] <= self.clock.listed()
            ],
            "POST /fapi/v1/order": self.new_order,
            "GET /fapi/v1/order": lambda params: self.order_row(self.find_order(params, -2013)),
            "DELETE /fapi/v1/order": self.cancel_order,
            "GET /fapi/v1/openOrders": self.open_orders,
            "GET /fapi/v1/allOrders": self.all_orders,
            "POST /fapi/v1/algoOrder": self.new_algo,
            "GET /fapi/v1/algoOrder": lambda params: self.algo_row(self.find_algo(params, -2013), asked=True),
            "DELETE /fapi/v1/algoOrder": self.cancel_algo,
            "GET /fapi/v1/openAlgoOrders": self.open_algos,
            "GET /fapi/v1/allAlgoOrders": self.all_algos,
            "GET /fapi/v1/userTrades": self.user_trades,
            "GET /fapi/v1/income": self.income,
            "GET /fapi/v3/positionRisk": self.position_risk,
            "GET /fapi/v3/balance": self.balance,
        }
        public = {
            "GET /fapi/v1/time": lambda request: {"serverTime": self.clock.now()},
            "GET /fapi/v1/exchangeInfo": self.exchange_info,
            "GET /fapi/v1/ticker/bookTicker": self.book_ticker,
            "GET /fapi/v1/premiumIndex": self.premium_index,
        }
        wrapped = {name: self.sign_in(handler) for name, handler in signed.items()}
        return {**public, **wrapped, **self.spot.routes()}

    def sign_in(self, handler: Any) -> Any:
        """Key, signature over the bytes as sent, and a date inside the window."""

        def handle(request: Request) -> Any:
            raw = request.raw_query or request.body.decode()
            if request.headers.get("x-mbx-apikey") != KEY:
                raise Declined(error(-2015, "Invalid API-key, IP, or permissions for action.", 401))
            total, _, signature = raw.rpartition("&signature=")
            if not hmac.compare_digest(
                signature, hmac.new(self.secret.encode(), total.encode(), hashlib.sha256).hexdigest()
            ):
                raise Declined(error(-1022, "Signature for this request is not valid."))
            params = dict(parse_qsl(total))
            stamp, window, now = int(params["timestamp"]), int(params.get("recvWindow", 5_000)), self.clock.now()
            if not now - window <= stamp < now + 1_000:
                raise Declined(self.outdated)
            self.engine.end_due()
            return handler(params)

        return handle

    # -- account

    def permissions(self, params: dict[str, str]) -> Any:
        return {
            "ipRestrict": True,
            "createTime": 1_698_645_219_000,
            "enableReading": True,
            "enableWithdrawals": self.withdrawals or self.spot.withdrawals,
            "enableInternalTransfer": False,
            "enableMargin": False,
            "enableFutures": self.trading,
            "permitsUniversalTransfer": self.spot.may_transfer,
            "enableVanillaOptions": False,
            "enableFixApiTrade": False,
            "enableFixReadOnly": True,
            "enableSpotAndMarginTrading": self.spot.trading,
            "enablePortfolioMarginTrading": False,
        }

    def account_config(self, params: dict[str, str]) -> Any:
        return {
            "feeTier": 0,
            "canTrade": True,
            "canDeposit": True,
            "canWithdraw": True,
            "dualSidePosition": self.hedge,
            "updateTime": 0,
            "multiAssetsMargin": self.multi_assets,
            "tradeGroupId": -1,
        }

    def symbol_config(self, params: dict[str, str]) -> Any:
        symbol = params["symbol"]
        if symbol not in self.margin_types:
            raise Declined(error(*ERRORS["no_symbol"]))
        return [
            {
                "symbol": symbol,
                "marginType": self.margin_types[symbol],
                "isAutoAddMargin": False,
                "leverage": self.engine.leverage.get(symbol, 20),
                "maxNotionalValue": "1000000",
            }
        ]

    def set_margin_type(self, params: dict[str, str]) -> Any:
        if self.margin_types[params["symbol"]] == params["marginType"]:
            raise Declined(error(-4046, "No need to change margin type."))
        if self.engine.position(params["symbol"]).amount:
            raise Declined(error(-4048, "Margin type cannot be changed if there exists position."))
        self.margin_types[params["symbol"]] = params["marginType"]
        return {"code": 200, "msg": "success"}

    def add_margin(self, params: dict[str, str]) -> Any:
        position, amount = self.engine.position(params["symbol"]), Decimal(params["amount"])
        if not position.amount or params["type"] != "1":
            raise Declined(error(-4054, "Cannot add position margin: position is 0."))
        if amount > self.engine.available():
            raise Declined(error(-4051, "Isolated balance insufficient."))
        position.added += amount / abs(position.amount)
        named = {"symbol": params["symbol"], "type": 1, "deltaType": "USER_ADJUST", "positionSide": "BOTH"}
        change = {**named, "amount": f"{amount:f}", "asset": "USDT", "time": self.clock.now()}
        self.margin_changes.append(change)
        return {"amount": float(amount), "code": 200, "msg": "Successfully modify position margin.", "type": 1}

    def set_leverage(self, params: dict[str, str]) -> Any:
        self.engine.leverage[params["symbol"]] = int(params["leverage"])
        return {"leverage": int(params["leverage"]), "maxNotionalValue": "1000000", "symbol": params["symbol"]}

    def position_risk(self, params: dict[str, str]) -> Any:
        rows = []
        for symbol, position in self.engine.positions.items():
            if not position.amount or params.get("symbol", symbol) != symbol:
                continue
            mark, margin = self.engine.markets[symbol].mark, self.engine.margin(symbol)
            profit, liquidation = self.engine.unrealised(symbol), self.engine.liquidation(symbol)
            rows.append(
                {
                    "symbol": symbol,
                    "positionSide": ("LONG" if position.amount > 0 else "SHORT") if self.hedge else "BOTH",
                    "positionAmt": f"{position.amount:f}",
                    "entryPrice": f"{position.entry:f}",
                    "breakEvenPrice": f"{position.entry:f}",
                    "markPrice": f"{mark:f}",
                    "unRealizedProfit": f"{profit:f}",
                    "liquidationPrice": f"{liquidation:.2f}",
                    "isolatedMargin": f"{margin + profit:f}",
                    "notional": f"{position.amount * mark:f}",
                    "marginAsset": "USDT",
                    "isolatedWallet": f"{margin:f}",
                    "initialMargin": f"{margin:f}",
                    "maintMargin": "0",
                    "positionInitialMargin": f"{margin:f}",
                    "openOrderInitialMargin": "0",
                    "adl": 2,
                    "bidNotional": "0",
                    "askNotional": "0",
                    "updateTime": self.clock.now(),
                }
            )
        return rows

    def balance(self, params: dict[str, str]) -> Any:
        return [
            {
                "accountAlias": "SgsR",
                "asset": asset,
                "balance": f"{total:f}",
                "crossWalletBalance": f"{total:f}",
                "crossUnPnl": "0.00000000",
                "availableBalance": f"{free:f}",
                "maxWithdrawAmount": f"{free:f}",
                "marginAvailable": True,
                "updateTime": self.clock.now(),
            }
            for asset, total, free in (
                ("BNB", Decimal(1), Decimal(1)),
                ("USDT", self.engine.cash, self.engine.available()),
            )
        ]

    # -- market

    def exchange_info(self, request: Request) -> Any:
        return {
            "exchangeFilters": [],
            "rateLimits": [],
            "serverTime": self.clock.now(),
            "assets": [],
            "symbols": [
                {
                    "symbol": market.symbol,
                    "pair": market.symbol,
                    "contractType": "PERPETUAL",
                    "deliveryDate": 4_133_404_800_000,
                    "onboardDate": 1_598_252_400_000,
                    "status": "TRADING" if market.trading else "SETTLING",
                    "baseAsset": market.symbol.removesuffix("USDT"),
                    "quoteAsset": "USDT",
                    "marginAsset": "USDT",
                    "filters": [
                        {
                            "filterType": "PRICE_FILTER",
                            "maxPrice": "4529764",
                            "minPrice": "0.1",
                            "tickSize": f"{market.tick}",
                        },
                        {
                            "filterType": "LOT_SIZE",
                            "maxQty": "1000",
                            "minQty": f"{market.min_quantity}",
                            "stepSize": f"{market.lot}",
                        },
                        {
                            "filterType": "MARKET_LOT_SIZE",
                            "maxQty": f"{market.max_quantity}",
                            "minQty": f"{market.min_quantity}",
                            "stepSize": f"{market.lot}",
                        },
                        {"filterType": "MAX_NUM_ORDERS", "limit": 200},
                        {"filterType": "MIN_NOTIONAL", "notional": f"{market.min_notional}"},
                    ],
                    "orderTypes": ["LIMIT", "MARKET", "STOP_MARKET", "TAKE_PROFIT_MARKET"],
                    "timeInForce": ["GTC", "IOC", "FOK", "GTX", "GTD"],
                }
                for market in self.engine.markets.values()
            ],
        }

    def asked_market(self, request: Request) -> Market:
        found = self.engine.markets.get(request.query["symbol"])
        if found is None:
            raise Declined(error(*ERRORS["no_symbol"]))
        return found

    def book_ticker(self, request: Request) -> Any:
        market = self.asked_market(request)
        return {
            "symbol": market.symbol,
            "bidPrice": f"{market.bid:f}",
            "bidQty": f"{market.bid_size:f}",
            "askPrice": f"{market.ask:f}",
            "askQty": f"{market.ask_size:f}",
            "time": self.clock.now(),
        }

    def premium_index(self, request: Request) -> Any:
        market = self.asked_market(request)
        return {
            "symbol": market.symbol,
            "markPrice": f"{market.mark:f}",
            "indexPrice": f"{market.mark:f}",
            "estimatedSettlePrice": f"{market.mark:f}",
            "lastFundingRate": "0.00010000",
            "interestRate": "0.00010000",
            "nextFundingTime": self.clock.now() + 3_600_000,
            "time": self.clock.now(),
        }

    # -- orders

    def take(self, place: Any) -> Any:
        if not self.trading:
            raise Declined(error(-2015, "Invalid API-key, IP, or permissions for action.", 401))
        try:
            return place()
        except Rejected as rejected:
            raise Declined(error(*ERRORS[rejected.why])) from None

    def new_order(self, params: dict[str, str]) -> Any:
        self.broker_marks += [name for name in [params.get("newClientOrderId", "")] if name.startswith("x-")]
        if self.hedge:
            raise Declined(error(-4061, "Order's position side does not match user's setting."))
        self.order_windows.append(int(params.get("recvWindow", 5_000)))
        if params["type"] not in ("LIMIT", "MARKET"):
            message = "Order type not supported for this endpoint. Please use the Algo Order API endpoints instead."
            raise Declined(error(-4120, message))
        if params["type"] == "LIMIT" and "timeInForce" not in params:
            raise Declined(error(-1102, "Mandatory parameter 'timeInForce' was not sent."))
        if (params.get("timeInForce") == "GTD") != ("goodTillDate" in params):
            raise Declined(error(-1102, "Mandatory parameter 'goodTillDate' was not sent."))
        if "goodTillDate" in params and int(params["goodTillDate"]) <= self.clock.now() + 600_000:
            message = "The goodTillDate timestamp must be greater than the current time plus 600 seconds."
            raise Declined(error(-5040, message))
        order = self.take(
            lambda: self.engine.place(
                params.get("newClientOrderId", f"auto{self.engine.last_id}"),
                params["symbol"],
                params["side"],
                params["type"],
                Decimal(params["quantity"]),
                Decimal(params["price"]) if "price" in params else None,
                params.get("timeInForce", "GTC"),
                params.get("reduceOnly") == "true",
                int(params.get("goodTillDate", 0)) // 1_000 * 1_000,
            )
        )
        return self.order_row(order)

    def find_order(self, params: dict[str, str], code: int) -> FakeOrder:
        """The newest of that client id, as the exchange looks it up."""
        for order in reversed(self.engine.orders.values()):
            if order.symbol == params["symbol"] and (
                str(order.id) == params.get("orderId") or order.client_id == params.get("origClientOrderId")
            ):
                return order
        raise Declined(error(code, "Order does not exist." if code == -2013 else "Unknown order sent."))

    def cancel_order(self, params: dict[str, str]) -> Any:
        order = self.find_order(params, -2011)
        self.take(lambda: self.engine.cancel(order))
        return self.order_row(order)

    def open_orders(self, params: dict[str, str]) -> Any:
        return [
            self.order_row(order)
            for order in self.engine.orders.values()
            if order.status in OPEN and params.get("symbol", order.symbol) == order.symbol
        ]

    def all_orders(self, params: dict[str, str]) -> Any:
        rows = [order for order in self.engine.orders.values() if order.symbol == params["symbol"]]
        return [self.order_row(order) for order in rows][-self.page :]

    def order_row(self, order: FakeOrder) -> Any:
        return {
            "avgPrice": f"{order.average:.5f}",
            "clientOrderId": order.client_id,
            "cumQuote": f"{order.funds:f}",
            "executedQty": f"{order.filled:f}",
            "orderId": order.id,
            "origQty": f"{order.quantity:f}",
            "origType": order.type,
            "price": f"{order.price or 0:f}",
            "reduceOnly": order.reduce_only,
            "side": order.side,
            "positionSide": "BOTH",
            "status": order.status,
            "stopPrice": "0",
            "closePosition": False,
            "symbol": order.symbol,
            "time": order.created,
            "timeInForce": order.time_in_force,
            "type": order.type,
            "updateTime": order.updated,
            "workingType": "CONTRACT_PRICE",
            "priceProtect": False,
            "priceMatch": "NONE",
            "selfTradePreventionMode": "NONE",
            "goodTillDate": order.good_till,
        }

    # -- conditional orders

    def new_algo(self, params: dict[str, str]) -> Any:
        self.order_windows.append(int(params.get("recvWindow", 5_000)))
        if params["algoType"] != "CONDITIONAL" or params["type"] not in ("STOP_MARKET", "TAKE_PROFIT_MARKET"):
            raise Declined(error(-1116, "Invalid orderType."))
        algo = self.take(
            lambda: self.engine.place_algo(
                params.get("clientAlgoId", f"auto{self.engine.last_id}"),
                params["symbol"],
                params["side"],
                params["type"],
                Decimal(params.get("quantity", 0)),
                Decimal(params["triggerPrice"]),
                params.get("reduceOnly") == "true",
                params.get("workingType", "CONTRACT_PRICE"),
                params.get("closePosition") == "true",
            )
        )
        return self.algo_row(algo, asked=False)

    def find_algo(self, params: dict[str, str], code: int) -> FakeAlgo:
        for algo in reversed(self.engine.algos.values()):
            if str(algo.id) == params.get("algoId") or algo.client_id == params.get("clientAlgoId"):
                return algo
        raise Declined(error(code, "Order does not exist." if code == -2013 else "Unknown order sent."))

    def cancel_algo(self, params: dict[str, str]) -> Any:
        algo = self.find_algo(params, -2011)
        self.take(lambda: self.engine.cancel_algo(algo))
        return {"algoId": algo.id, "clientAlgoId": algo.client_id, "code": "200", "msg": "success"}

    def open_algos(self, params: dict[str, str]) -> Any:
        return [
            self.algo_row(algo, asked=True)
            for algo in self.engine.algos.values()
            if algo.status == "NEW" and params.get("symbol", algo.symbol) == algo.symbol
        ]

    def all_algos(self, params: dict[str, str]) -> Any:
        low, high = int(params["startTime"]), int(params["endTime"])
        if high - low >= 7 * 86_400_000:
            raise Declined(error(-4161, "Search window is restricted to recent 7 days only."))
        return [
            self.algo_row(algo, asked=True)
            for algo in self.engine.algos.values()
            if algo.symbol == params["symbol"] and low <= algo.created <= high
        ]

    def algo_row(self, algo: FakeAlgo, *, asked: bool) -> Any:
        child = self.engine.orders.get(algo.child or 0)
        row = {
            "algoId": algo.id,
            "clientAlgoId": algo.client_id,
            "algoType": "CONDITIONAL",
            "orderType": algo.type,
            "symbol": algo.symbol,
            "side": algo.side,
            "positionSide": "BOTH",
            "timeInForce": "GTC",
            "quantity": f"{algo.quantity:f}",
            "algoStatus": algo.status,
            "triggerPrice": f"{algo.trigger:f}",
            "price": "0.00",
            "icebergQuantity": None,
            "selfTradePreventionMode": "EXPIRE_MAKER",
            "workingType": algo.working_type,
            "priceMatch": "NONE",
            "closePosition": algo.close_position,
            "priceProtect": False,
            "reduceOnly": algo.reduce_only,
            "createTime": algo.created,
            "updateTime": algo.updated,
            "triggerTime": algo.updated if child else 0,
            "goodTillDate": 0,
        }
        if asked:
            row |= {
                "actualOrderId": str(child.id) if child else "",
                "actualPrice": f"{child.funds / child.filled:f}" if child and child.filled else "0.00000",
                "actualQty": f"{child.filled:f}" if child else "0",
            }
        return row

    # -- trades and income

    def user_trades(self, params: dict[str, str]) -> Any:
        if "fromId" in params and ("startTime" in params or "endTime" in params):
            raise Declined(error(-1128, "Combination of optional parameters invalid."))
        low, high = int(params.get("startTime", 0)), int(params.get("endTime", 2**62))
        if "startTime" in params and high - low >= 7 * 86_400_000:
            raise Declined(error(-4161, "Search window is restricted to recent 7 days only."))
        shown = self.engine.trades[: len(self.engine.trades) - self.hidden_trades]
        self.hidden_trades = max(0, self.hidden_trades - 1)
        rows = [
            trade
            for trade in shown
            if trade.symbol == params["symbol"]
            and low <= trade.at <= high
            and trade.id >= int(params.get("fromId", 0))
            and params.get("orderId", str(trade.order)) == str(trade.order)
        ]
        return [self.trade_row(trade) for trade in rows[: min(self.page, int(params.get("limit", 500)))]]

    def trade_row(self, trade: FakeTrade) -> Any:
        return {
            "buyer": trade.side == "BUY",
            "commission": f"{trade.fee:f}",
            "commissionAsset": "BNB" if self.fee_burn else "USDT",
            "id": trade.id,
            "maker": trade.maker,
            "orderId": trade.order,
            "price": f"{trade.price:f}",
            "qty": f"{trade.quantity:f}",
            "quoteQty": f"{trade.quantity * trade.price:f}",
            "realizedPnl": "0",
            "side": trade.side,
            "positionSide": "BOTH",
            "symbol": trade.symbol,
            "time": trade.at,
        }

    def income(self, params: dict[str, str]) -> Any:
        low, high = int(params.get("startTime", 0)), int(params.get("endTime", 2**62))
        rows = [row for row in self.engine.funding if row.symbol == params["symbol"] and low <= row.at <= high]
        return [
            {
                "symbol": row.symbol,
                "incomeType": "FUNDING_FEE",
                "income": f"{row.amount:f}",
                "asset": "USDT",
                "info": "FUNDING_FEE",
                "time": row.at,
                "tranId": row.id,
                "tradeId": "",
            }
            for row in rows[: min(self.page, int(params.get("limit", 100)))]
        ]
