"""OKX's v5 interface, instruments SWAP and SPOT of one trading account.

Built from https://www.okx.com/docs-v5/en: overview-rest-authentication (base64 HMAC over time, method, path and body;
passphrase; 30 s), public-data (get-system-time, get-instruments, get-mark-price), order-book-trading-market-data
(get-ticker, get-order-book), order-book-trading-trade (place, cancel, order details, pending, history, fills),
order-book-trading-algo-trading (place, cancel, details, pending, history), trading-account (config, balance, positions,
leverage, position mode, bills, fee rates), error-code. Swaps are counted in contracts. A refused order is HTTP 200,
code 1 and a code of its own; fees are below zero where they are paid. A client id may come again once its order is
over, and what was cancelled unfilled is forgotten after two hours. Conditional orders have ids of their own, and the
order that one becomes has another. The account keeps one position of an instrument here, of the last margin mode asked
for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.wire.exchanges.account import FakeExchange, Row, empty, is_open
from tests.wire.exchanges.matching import (
    BUY,
    SELL,
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

KEY, SECRET, PASSPHRASE = "okx-key-8Vb", "okx-secret-6Jc", "okx-phrase-1Td"
CLIENT_ID = re.compile(r"[A-Za-z0-9]{1,32}")
KEPT_UNFILLED = 2 * 3_600_000
DAY = 86_400_000
ERRORS: dict[str, tuple[str, str]] = {
    "no_symbol": ("51001", "Instrument ID does not exist"),
    "not_trading": ("51022", "Contract suspended"),
    "quantity": ("51020", "Order amount should be greater than the min available amount"),
    "too_much": ("51202", "Market order amount exceeds the max amount"),
    "lot": ("51121", "Order quantity must be a multiple of the lot size"),
    "tick": ("51000", "Parameter px error"),
    "no_cash": ("51008", "Order failed. Insufficient account balance"),
    "no_base": ("51008", "Order failed. Insufficient account balance"),
    "reduce_only": ("51169", "Order failed because you don't have any positions to reduce or close"),
    "duplicate": ("51016", "Client order ID already exists"),
    "no_order": ("51400", "Cancellation failed as the order has been filled, canceled or does not exist"),
}
WOULD_TRIGGER = {
    ("STOP_MARKET", SELL): ("51280", "SL trigger price must be less than the last price"),
    ("STOP_MARKET", BUY): ("51278", "SL trigger price must be higher than the last price"),
    ("TAKE_PROFIT_MARKET", SELL): ("51279", "TP trigger price must be higher than the last price"),
    ("TAKE_PROFIT_MARKET", BUY): ("51277", "TP trigger price must be less than the last price"),
}
STATES = {"NEW": "live", "PARTIALLY_FILLED": "partially_filled", "FILLED": "filled"}
ALGO_STATES = {"NEW": "live", "CANCELED": "canceled", "EXPIRED": "order_failed", "FINISHED": "effective"}
ORDER_TYPES = {"market": "GTC", "limit": "GTC", "post_only": "GTX", "ioc": "IOC", "fok": "IOC"}


def error(code: str, message: str, status: int = 200) -> Answer:
    return json_answer({"code": code, "msg": message, "data": []}, status)


def plain(number: Decimal) -> str:
    """Without zeros at the end."""
    return f"{round(number, 10).normalize():f}" if number else "0"


def standard_markets() -> dict[str, Market]:
    """A contract of BTC is a hundredth, one of ETH a tenth; the lot is a hundredth of a contract."""
    btc, eth, fees = Decimal("0.01"), Decimal("0.1"), (Decimal("0.0008"), Decimal("0.001"))
    rows = [
        build_market("BTC-USDT-SWAP", "60000", "0.1", "0.0001", "0", base="BTC", contract=btc),
        build_market("ETH-USDT-SWAP", "3000", "0.01", "0.001", "0", base="ETH", contract=eth),
        build_market("BTC-USDT", "60000", "0.1", "0.00001", "0", "100", base="BTC", spot=True, fees=fees),
        build_market("ETH-USDT", "3000", "0.01", "0.0001", "0", "1000", base="ETH", spot=True, fees=fees),
    ]
    return {market.symbol: market for market in rows}


class FakeOkx(FakeExchange):
    """A trading account in futures mode: coins and USDT in one wallet."""

    place_name = "POST /api/v5/trade/order"
    find_name = "GET /api/v5/trade/order"
    cancel_name = "POST /api/v5/trade/cancel-order"
    filters_name = "GET /api/v5/public/instruments"
    funding_name = "GET /api/v5/account/bills"
    limited = error("50011", "Too Many Requests", 429)
    banned = json_answer({"code": "50011", "msg": "Too Many Requests", "data": []}, 418, retry_after="3600")
    overloaded = error("50061", "You've reached the maximum order rate limit for this account.")
    maintenance = error("50001", "Service temporarily unavailable. Try again later", 503)
    unsure = (error("51054", "Request timed out. Please try again."), error("51149", "Order timed out."))
    outdated = error("50102", "Timestamp request expired", 401)
    expired = error("51149", "Order timed out. Please try again.")
    limit_word = "limit"
    events = ("orders-pending", "orders-history", "orders-algo", "fills", "bills")
    secrets = (KEY, SECRET, PASSPHRASE)

    def __init__(self, cash: Decimal = Decimal(10_000)) -> None:
        clock = Clock()
        self.deadlines: list[int] = []
        """How long the requests of a person's clock were still to be carried out, in milliseconds."""
        self.secret = SECRET
        engine = Engine(clock.now, standard_markets(), cash, Decimal("0.0002"), Decimal("0.0005"), fee_in_base=True)
        super().__init__(engine, clock)
        self.page = 100
        self.quote_amounts: dict[int, Decimal] = {}

    @property
    def stop_name(self) -> str:
        return "POST /api/v5/trade/order-algo"

    def routes(self) -> dict[str, Handler]:
        signed: dict[str, Any] = {
            "GET account/config": self.account_config,
            "GET account/balance": self.account_balance,
            "GET account/positions": self.account_positions,
            "GET account/leverage-info": self.leverage_info,
            "GET account/trade-fee": self.trade_fee,
            "GET account/bills": self.bills,
            "GET account/bills-archive": self.bills,
            "POST account/set-leverage": self.set_leverage,
            "POST account/set-position-mode": self.set_position_mode,
            "POST trade/order": self.new_order,
            "GET trade/order": self.get_order,
            "POST trade/cancel-order": self.cancel_order,
            "GET trade/orders-pending": lambda params: self.list_plain(params, is_open),
            "GET trade/orders-history": lambda params: self.list_plain(params, self.is_kept),
            "GET trade/orders-history-archive": lambda params: self.list_plain(params, self.is_kept),
            "POST trade/order-algo": self.new_algo,
            "GET trade/order-algo": self.get_algo,
            "POST trade/cancel-algos": self.cancel_algos,
            "GET trade/orders-algo-pending": lambda params: self.list_algos(params, is_open),
            "GET trade/orders-algo-history": self.algo_history,
            "GET trade/fills": lambda params: self.fills(params, 3 * DAY),
            "GET trade/fills-history": lambda params: self.fills(params, 90 * DAY),
        }
        public: dict[str, Any] = {
            "GET public/time": lambda params: [{"ts": str(self.clock.now())}],
            "GET public/instruments": self.instruments,
            "GET public/mark-price": self.mark_price,
            "GET public/funding-rate": self.funding_rate,
            "GET market/ticker": self.ticker,
            "GET market/books": self.books,
        }
        wrapped = {name: self.wrap(handler, lambda request: request.query) for name, handler in public.items()}
        wrapped |= {name: self.wrap(handler, self.sign_in) for name, handler in signed.items()}
        return {name.replace(" ", " /api/v5/"): handler for name, handler in wrapped.items()}

    def wrap(self, handler: Any, read: Any) -> Handler:
        def handle(request: Request) -> Any:
            data = handler(read(request))
            return data if isinstance(data, Answer) else {"code": "0", "msg": "", "data": data}

        return handle

    def sign_in(self, request: Request) -> Any:
        """Key, passphrase, a date of the last half minute, and a signature over what was sent."""
        headers = request.headers
        if headers.get("ok-access-key") != KEY:
            raise Declined(error("50111", "Invalid OK-ACCESS-KEY", 401))
        if headers.get("ok-access-passphrase") != PASSPHRASE:
            raise Declined(error("50105", "Request header OK-ACCESS-PASSPHRASE incorrect.", 401))
        stamp = headers.get("ok-access-timestamp", "")
        sent = f"?{request.raw_query}" if request.raw_query else request.body.decode()
        signed = f"{stamp}{request.method}{request.path}{sent}".encode()
        expected = base64.b64encode(hmac.new(self.secret.encode(), signed, hashlib.sha256).digest()).decode()
        if not hmac.compare_digest(expected, headers.get("ok-access-sign", "")):
            raise Declined(error("50113", "Invalid Sign", 401))
        if abs(datetime.fromisoformat(stamp).timestamp() * 1_000 - self.clock.now()) > 30_000:
            raise Declined(self.outdated)
        if "exptime" in headers:
            self.deadlines.append(int(headers["exptime"]) - self.clock.now())
            if self.deadlines[-1] < 0 and request.name == self.place_name:  # algo orders have no deadline
                raise Declined(self.expired)
        params = json.loads(request.body) if request.body else request.query
        rows = params if isinstance(params, list) else [params]
        self.broker_marks += [row["tag"] for row in rows if row.get("tag")]
        return params

    # -- account

    def account_config(self, params: Row) -> list[Row]:
        rights = ["read_only", *(["trade"] if self.trading else []), *(["withdraw"] if self.withdrawals else [])]
        return [
            {
                "acctLv": "2",
                "acctStpMode": "cancel_maker",
                "autoLoan": False,
                "ctIsoMode": "automatic",
                "enableSpotBorrow": False,
                "greeksType": "PA",
                "ip": "127.0.0.1",
                "kycLv": "3",
                "label": "desk",
                "level": "Lv1",
                "mainUid": "44705892343619584",
                "mgnIsoMode": "automatic",
                "perm": ",".join(rights),
                "posMode": "long_short_mode" if self.hedge else "net_mode",
                "roleType": "0",
                "spotOffsetType": "",
                "type": "0",
                "uid": "44705892343619584",
                **empty("levelTmp opAuth traderInsts spotRoleType spotTraderInsts"),
            }
        ]

    def account_balance(self, params: Row) -> list[Row]:
        """The margin of an isolated position has left the cash."""
        engine = self.engine
        held = [market.symbol for market, _ in engine.held(spot=False)]
        isolated = [symbol for symbol in held if symbol in engine.isolated]
        margins = sum(map(engine.margin, isolated), ZERO)
        iso_profit = sum(map(engine.unrealised, isolated), ZERO)
        iso_equity = margins + iso_profit
        profit = sum((engine.unrealised(symbol) for symbol in held if symbol not in engine.isolated), ZERO)
        cash, available = engine.cash - margins, engine.available()
        details = [self.coin_row("USDT", cash, available, cash + iso_equity + profit, iso_equity, profit, iso_profit)]
        for market, position in engine.held(spot=True):
            details.append(
                self.coin_row(market.base, position.amount, engine.free_base(market.symbol), position.amount)
            )
        total = sum(
            (position.amount * market.mark for market, position in engine.held(spot=True)), cash + iso_equity + profit
        )
        wanted = params.get("ccy")
        return [
            {
                "adjEq": "",
                "details": [row for row in details if wanted is None or row["ccy"] in wanted.split(",")],
                "isoEq": plain(iso_equity),
                "totalEq": plain(total),
                "uTime": str(self.clock.now()),
                **empty("availEq borrowFroz imr mgnRatio mmr notionalUsd ordFroz upl"),
            }
        ]

    def coin_row(
        self,
        coin: str,
        cash: Decimal,
        free: Decimal,
        equity: Decimal,
        isolated: Decimal = ZERO,
        profit: Decimal = ZERO,
        iso_profit: Decimal = ZERO,
    ) -> Row:
        return {
            "ccy": coin,
            "cashBal": plain(cash),
            "availBal": plain(free),
            "availEq": plain(free),
            "eq": plain(equity),
            "eqUsd": plain(equity),
            "disEq": plain(equity),
            "isoEq": plain(isolated),
            "isoUpl": plain(iso_profit),
            "frozenBal": plain(cash - free),
            "ordFrozen": plain(cash - free),
            "upl": plain(profit),
            "uTime": str(self.clock.now()),
            **empty("borrowFroz crossLiab imr interest isoLiab liab maxLoan mgnRatio mmr spotInUseAmt twap uplLiab"),
        }

    def account_positions(self, params: Row) -> list[Row]:
        rows = []
        for market, position in self.engine.held(spot=False):
            symbol = market.symbol
            if params.get("instId", symbol) != symbol or params.get("instType", "SWAP") != "SWAP":
                continue
            isolated, margin = symbol in self.engine.isolated, self.engine.margin(symbol)
            contracts = position.amount / market.contract
            side = "long" if contracts > 0 else "short"
            rows.append(
                {
                    "instType": "SWAP",
                    "instId": symbol,
                    "mgnMode": "isolated" if isolated else "cross",
                    "posId": str(sum(symbol.encode())),
                    "posSide": side if self.hedge else "net",
                    "pos": plain(abs(contracts) if self.hedge else contracts),
                    "availPos": plain(abs(contracts)),
                    "avgPx": plain(position.entry),
                    "upl": plain(self.engine.unrealised(symbol)),
                    "uplRatio": "0",
                    "lever": str(self.engine.leverage.get(symbol, 20)),
                    "liqPx": plain(self.engine.liquidation(symbol)),
                    "markPx": plain(market.mark),
                    "last": plain(market.mark),
                    "imr": "" if isolated else plain(margin),
                    "margin": plain(margin) if isolated else "",
                    "mmr": "0",
                    "mgnRatio": "20",
                    "notionalUsd": plain(abs(position.amount) * market.mark),
                    "adl": "1",
                    "ccy": "USDT",
                    "interest": "0",
                    "tradeId": str(self.engine.last_id),
                    "bePx": plain(position.entry),
                    "realizedPnl": "0",
                    "fee": "0",
                    "fundingFee": "0",
                    "closeOrderAlgo": [],
                    "cTime": str(self.clock.now()),
                    "uTime": str(self.clock.now()),
                    **empty("liab liabCcy optVal posCcy usdPx deltaBS deltaPA gammaBS gammaPA thetaBS thetaPA"),
                }
            )
        return rows

    def leverage_info(self, params: Row) -> list[Row]:
        market = self.asked_market(params)
        lever = str(self.engine.leverage.get(market.symbol, 20))
        sides = ("long", "short") if self.hedge else ("net",)
        common = {"ccy": "", "instId": market.symbol, "lever": lever, "mgnMode": params["mgnMode"]}
        return [{**common, "posSide": side} for side in sides]

    def set_leverage(self, params: Row) -> list[Row]:
        market = self.asked_market(params)
        if not 1 <= Decimal(params["lever"]) <= 100:
            raise Declined(error("59102", "Leverage exceeds the maximum limit."))
        self.engine.leverage[market.symbol] = int(params["lever"])
        return [{"instId": market.symbol, "lever": params["lever"], "mgnMode": params["mgnMode"], "posSide": "net"}]

    def set_position_mode(self, params: Row) -> list[Row]:
        if self.engine.held(spot=False) or any(map(is_open, self.engine.orders.values())):
            raise Declined(error("59000", "Setting failed. Cancel any open orders, close positions first."))
        self.hedge = {"net_mode": False, "long_short_mode": True}[params["posMode"]]
        return [{"posMode": params["posMode"]}]

    def trade_fee(self, params: Row) -> list[Row]:
        swap = params["instType"] == "SWAP"
        market = next(market for market in self.engine.markets.values() if market.spot is not swap)
        maker, taker = (plain(-self.engine.fee_rate(market, by_maker)) for by_maker in (True, False))
        rates = {"maker": "" if swap else maker, "taker": "" if swap else taker}
        rates |= {"makerU": maker if swap else "", "takerU": taker if swap else ""}
        return [{"instType": params["instType"], "level": "Lv1", **rates, "ts": str(self.clock.now())}]

    # -- market

    def asked_market(self, params: Row) -> Market:
        market = self.engine.markets.get(params.get("instId", ""))
        if market is None:
            raise Declined(error(*ERRORS["no_symbol"]))
        return market

    def instruments(self, params: Row) -> list[Row]:
        spot = {"SPOT": True, "SWAP": False}[params["instType"]]
        rows = [market for market in self.engine.markets.values() if market.spot is spot]
        if "instId" in params:
            rows = [market for market in rows if market is self.asked_market(params)]
        return [self.instrument_row(market) for market in rows]

    def instrument_row(self, market: Market) -> Row:
        unit, spot = market.contract, market.spot
        most = plain(market.max_quantity / unit)
        return {
            "instType": "SPOT" if spot else "SWAP",
            "instId": market.symbol,
            "instFamily": "" if spot else f"{market.base}-USDT",
            "uly": "" if spot else f"{market.base}-USDT",
            "baseCcy": market.base if spot else "",
            "quoteCcy": market.quote if spot else "",
            "settleCcy": "" if spot else "USDT",
            "ctVal": "" if spot else plain(unit),
            "ctMult": "" if spot else "1",
            "ctValCcy": "" if spot else market.base,
            "ctType": "" if spot else "linear",
            "category": "1",
            "lever": "10" if spot else "100",
            "tickSz": plain(market.tick),
            "lotSz": plain(market.lot / unit),
            "minSz": plain(market.min_quantity / unit),
            "state": "live" if market.trading else "suspend",
            "ruleType": "normal",
            "listTime": "1573557408000",
            **dict.fromkeys(("maxLmtSz", "maxTwapSz", "maxIcebergSz", "maxTriggerSz"), "100000000"),
            "maxMktSz": most,
            "maxStopSz": most,
            **empty("alias auctionEndTime contTdSwTime expTime maxLmtAmt maxMktAmt optType stk openType"),
        }

    def mark_price(self, params: Row) -> list[Row]:
        market = self.asked_market(params)
        row = {"instType": params["instType"], "instId": market.symbol, "markPx": plain(market.mark)}
        return [{**row, "ts": str(self.clock.now())}]

    def funding_rate(self, params: Row) -> list[Row]:
        due = self.clock.now() // (DAY // 3) * (DAY // 3) + DAY // 3
        row = {"instType": "SWAP", "instId": self.asked_market(params).symbol, "method": "current_period"}
        times = {"fundingTime": str(due), "nextFundingTime": str(due + DAY // 3), "ts": str(self.clock.now())}
        return [{**row, "fundingRate": "0.0001", "nextFundingRate": "", **times}]

    def ticker(self, params: Row) -> list[Row]:
        market = self.asked_market(params)
        return [
            {
                "instType": "SPOT" if market.spot else "SWAP",
                "instId": market.symbol,
                **dict.fromkeys(("last", "open24h", "high24h", "low24h", "sodUtc0", "sodUtc8"), plain(market.mark)),
                **dict.fromkeys(("lastSz", "volCcy24h", "vol24h"), "0"),
                "askPx": plain(market.ask),
                "askSz": plain(market.ask_size / market.contract),
                "bidPx": plain(market.bid),
                "bidSz": plain(market.bid_size / market.contract),
                "ts": str(self.clock.now()),
            }
        ]

    def books(self, params: Row) -> list[Row]:
        row = self.ticker(params)[0]
        sides = {"asks": [[row["askPx"], row["askSz"], "0", "1"]], "bids": [[row["bidPx"], row["bidSz"], "0", "1"]]}
        return [{**sides, "ts": row["ts"], "seqId": 1}]

    # -- orders

    def take(self, place: Callable[[], Any], row: Row) -> Any:
        """What was refused has a code of its own in an answer that says that nothing was done."""
        try:
            if not self.trading:
                raise Declined(error("50120", "This API key doesn't have permission to use this function", 401))
            return place()
        except Rejected as rejected:
            code, message = ERRORS.get(rejected.why, ("51000", rejected.why))
            raise Declined(self.refuse(row, code, message)) from None

    def refuse(self, row: Row, code: str, message: str) -> Answer:
        data = {**row, "sCode": code, "sMsg": message}
        return json_answer({"code": "1", "msg": "All operations failed", "data": [data]})

    def read_order(self, params: Row, row: Row, client_id: str) -> tuple[Market, str, Decimal, bool]:
        """Market, side, quantity of the base currency and whether it only reduces."""
        market = self.engine.markets.get(params["instId"])
        if market is None:
            raise Declined(self.refuse(row, *ERRORS["no_symbol"]))
        if client_id and not CLIENT_ID.fullmatch(client_id):
            raise Declined(self.refuse(row, "51000", "Parameter clOrdId error"))
        if params["tdMode"] not in (("cash",) if market.spot else ("isolated", "cross")):
            raise Declined(self.refuse(row, "51000", "Parameter tdMode error"))
        if not market.spot and self.hedge and params.get("posSide") not in ("long", "short"):
            raise Declined(self.refuse(row, "51000", "Parameter posSide error"))
        if not market.spot and not self.engine.position(market.symbol).amount:
            (self.engine.isolated.add if params["tdMode"] == "isolated" else self.engine.isolated.discard)(
                market.symbol
            )
        reduces = params.get("reduceOnly") in (True, "true") and not market.spot
        return market, params["side"].upper(), Decimal(params["sz"]) * market.contract, reduces

    def new_order(self, params: Row) -> Any:
        client_id = params.get("clOrdId", "")
        row = {"clOrdId": client_id, "ordId": "", "tag": params.get("tag", ""), "ts": str(self.clock.now())}
        market, side, quantity, reduces = self.read_order(params, row, client_id)
        kind = params["ordType"]
        if kind not in ORDER_TYPES:
            raise Declined(self.refuse(row, "51000", "Parameter ordType error"))
        price, amount = None if kind == "market" else Decimal(params["px"]), None
        if market.spot and kind == "market" and side == BUY and params.get("tgtCcy", "quote_ccy") != "base_ccy":
            amount, quantity = quantity, quantity / market.ask // market.lot * market.lot
        if price is None and quantity > market.max_quantity:
            raise Declined(self.refuse(row, *ERRORS["too_much"]))

        def place() -> FakeOrder:
            try:
                return self.engine.place(
                    client_id, market.symbol, side, kind, quantity, price, ORDER_TYPES[kind], reduces
                )
            except Rejected as rejected:
                if rejected.why != "post_only":
                    raise
                made = self.engine.make_order(client_id, market.symbol, side, kind, quantity, price, "GTX", reduces)
                return self.engine.record_rejection(made, "31")

        order = self.take(place, row)
        if amount is not None:
            self.quote_amounts[order.id] = amount
        return [{**row, "ordId": str(order.id), "sCode": "0", "sMsg": "Order placed"}]

    def is_kept(self, order: FakeOrder | FakeAlgo) -> bool:
        """Over, and not forgotten."""
        unfilled = isinstance(order, FakeOrder) and not order.filled and order.status != "NEW"
        return not is_open(order) and not (unfilled and order.updated < self.clock.now() - KEPT_UNFILLED)

    def find_order(self, params: Row) -> FakeOrder | None:
        for order in reversed(self.engine.orders.values()):
            named = str(order.id) == params["ordId"] if "ordId" in params else order.client_id == params.get("clOrdId")
            if named and order.symbol == params["instId"] and (is_open(order) or self.is_kept(order)):
                return order
        return None

    def get_order(self, params: Row) -> Any:
        self.asked_market(params)
        order = self.find_order(params)
        if order is None:
            raise Declined(error("51603", "Order does not exist"))
        return [self.order_row(order)]

    def cancel_order(self, params: Row) -> Any:
        order = self.find_order(params)
        row = {"clOrdId": params.get("clOrdId", ""), "ordId": params.get("ordId", ""), "ts": str(self.clock.now())}

        def cancel() -> None:
            if order is None:
                raise Rejected("no_order")
            self.engine.cancel(order)

        self.take(cancel, row)
        assert order is not None
        return [{**row, "ordId": str(order.id), "clOrdId": order.client_id, "sCode": "0", "sMsg": ""}]

    def list_plain(self, params: Row, wanted: Callable[[FakeOrder | FakeAlgo], bool]) -> list[Row]:
        rows = [order for order in self.engine.orders.values() if wanted(order) and self.is_asked(params, order.symbol)]
        return self.turn_page(params, [self.order_row(order) for order in rows], "ordId", "cTime")

    def is_asked(self, params: Row, symbol: str) -> bool:
        kind = "SPOT" if self.engine.markets[symbol].spot else "SWAP"
        return params.get("instId", symbol) == symbol and params.get("instType", kind) == kind

    def turn_page(self, params: Row, rows: list[Row], name: str, time_name: str) -> list[Row]:
        """Newest first. `after`: older than an id, `before`: newer than one; `begin` and `end` are moments."""
        after, before = int(params.get("after") or 2**70), int(params.get("before") or 0)
        low, high = int(params.get("begin") or 0), int(params.get("end") or 2**62)
        rows = [row for row in rows if before < int(row[name]) < after and low <= int(row[time_name]) <= high]
        rows.sort(key=lambda row: int(row[name]), reverse=True)
        return rows[: min(int(params.get("limit") or 100), self.page)]

    def order_row(self, order: FakeOrder) -> Row:
        market, algo = self.engine.markets[order.symbol], self.engine.algos.get(order.algo or 0)
        amount, liquidation = self.quote_amounts.get(order.id), order.client_id.startswith("autoclose-")
        ended = order.status not in ("NEW", "PARTIALLY_FILLED", "FILLED")
        source = order.reason or ("1" if order.status == "CANCELED" else "14") if ended else ""
        trades = [trade for trade in self.engine.trades if trade.order == order.id]
        last = trades[-1] if trades else None
        market_buy = market.spot and order.type == "market" and order.side == BUY
        return {
            "instType": "SPOT" if market.spot else "SWAP",
            "instId": market.symbol,
            "ordId": str(order.id),
            "clOrdId": "" if liquidation or order.algo else order.client_id,
            "tag": "",
            "px": "" if order.price is None or order.type == "market" else plain(order.price),
            "sz": plain(order.quantity / market.contract if amount is None else amount),
            "ordType": {"MARKET": "market", "LIMIT": "limit"}.get(order.type, order.type),
            "side": order.side.lower(),
            "posSide": "" if market.spot else "net",
            "tdMode": "cash" if market.spot else "isolated" if market.symbol in self.engine.isolated else "cross",
            "accFillSz": plain(order.filled / market.contract),
            "avgPx": plain(order.average) if order.filled else "",
            "state": STATES.get(order.status, "canceled"),
            "lever": "" if market.spot else str(self.engine.leverage.get(market.symbol, 20)),
            "fee": plain(-order.fee),
            "feeCcy": (last.fee_currency if last else market.base if order.side == BUY and market.spot else "USDT"),
            "fillPx": plain(last.price) if last else "",
            "fillSz": plain(last.quantity / market.contract) if last else "0",
            "fillTime": str(last.at) if last else "",
            "tradeId": str(last.id) if last else "",
            "tgtCcy": "" if not market_buy else "base_ccy" if amount is None else "quote_ccy",
            "category": "full_liquidation" if liquidation else "normal",
            "reduceOnly": str(order.reduce_only).lower(),
            "cancelSource": source,
            "algoId": str(algo.id) if algo else "",
            "algoClOrdId": algo.client_id if algo else "",
            "pnl": plain(sum((trade.pnl for trade in trades), ZERO)),
            "rebate": "0",
            "rebateCcy": "USDT",
            "source": "7" if algo else "",
            "stpMode": "cancel_maker",
            "attachAlgoOrds": [],
            "linkedAlgoOrd": {"algoId": ""},
            "isTpLimit": "false",
            "cTime": str(order.created),
            "uTime": str(order.updated),
            **empty("attachAlgoClOrdId cancelSourceReason ccy pxType pxUsd pxVol quickMgnType stpId"),
            **empty("slOrdPx slTriggerPx slTriggerPxType tpOrdPx tpTriggerPx tpTriggerPxType"),
        }

    # -- conditional orders

    def new_algo(self, params: Row) -> Any:
        client_id = params.get("algoClOrdId", "")
        row = {"algoId": "", "algoClOrdId": client_id, "clOrdId": "", "tag": params.get("tag", "")}
        market, side, quantity, reduces = self.read_order(params, row, client_id)
        legs = [leg for leg in ("sl", "tp") if params.get(f"{leg}TriggerPx")]
        if params["ordType"] != "conditional" or len(legs) != 1 or params.get(f"{legs[0]}OrdPx") != "-1":
            raise Declined(self.refuse(row, "51000", "Parameter ordType error"))
        kind = {"sl": "STOP_MARKET", "tp": "TAKE_PROFIT_MARKET"}[legs[0]]
        trigger, by = Decimal(params[f"{legs[0]}TriggerPx"]), params.get(f"{legs[0]}TriggerPxType", "last")

        def place() -> FakeAlgo:
            try:
                return self.engine.place_algo(client_id, market.symbol, side, kind, quantity, trigger, reduces, by)
            except Rejected as rejected:
                if rejected.why != "would_trigger":
                    raise
                raise Declined(self.refuse(row, *WOULD_TRIGGER[kind, side])) from None

        algo = self.take(place, row)
        return [{**row, "algoId": str(algo.id), "sCode": "0", "sMsg": ""}]

    def find_algo(self, params: Row) -> FakeAlgo | None:
        for algo in reversed(self.engine.algos.values()):
            if str(algo.id) == params.get("algoId") or (algo.client_id and algo.client_id == params.get("algoClOrdId")):
                return algo
        return None

    def get_algo(self, params: Row) -> Any:
        algo = self.find_algo(params)
        if algo is None:
            raise Declined(error("51603", "Order does not exist"))
        return [self.algo_row(algo)]

    def cancel_algos(self, params: list[Row]) -> Any:
        """By the exchange's ids."""
        rows = []
        for asked in params:
            algo = self.find_algo({"algoId": asked.get("algoId", "")})
            row = {"algoId": asked.get("algoId", ""), "algoClOrdId": "", "clOrdId": "", "tag": ""}

            def cancel(algo: FakeAlgo | None = algo) -> None:
                if algo is None:
                    raise Rejected("no_order")
                self.engine.cancel_algo(algo)

            self.take(cancel, row)
            rows.append({**row, "sCode": "0", "sMsg": ""})
        return rows

    def list_algos(self, params: Row, wanted: Callable[[FakeOrder | FakeAlgo], bool]) -> list[Row]:
        kinds = params.get("ordType", "").split(",")
        rows = [algo for algo in self.engine.algos.values() if wanted(algo) and self.is_asked(params, algo.symbol)]
        rows = [algo for algo in rows if "conditional" in kinds]
        return self.turn_page(params, [self.algo_row(algo) for algo in rows], "algoId", "cTime")

    def algo_history(self, params: Row) -> list[Row]:
        if "state" not in params and "algoId" not in params:
            raise Declined(error("50014", "Parameter state cannot be empty"))

        def wanted(algo: FakeOrder | FakeAlgo) -> bool:
            state = ALGO_STATES.get(algo.status) == params.get("state", ALGO_STATES.get(algo.status))
            return state and not is_open(algo) and str(algo.id) == params.get("algoId", str(algo.id))

        return self.list_algos(params, wanted)

    def algo_row(self, algo: FakeAlgo) -> Row:
        market, child = self.engine.markets[algo.symbol], self.engine.orders.get(algo.child or 0)
        leg, other = ("sl", "tp") if algo.type == "STOP_MARKET" else ("tp", "sl")
        return {
            "instType": "SPOT" if market.spot else "SWAP",
            "instId": market.symbol,
            "algoId": str(algo.id),
            "algoClOrdId": algo.client_id,
            "ordId": str(child.id) if child else "",
            "ordIdList": [str(child.id)] if child else [],
            "ordType": "conditional",
            "side": algo.side.lower(),
            "posSide": "" if market.spot else "net",
            "tdMode": "cash" if market.spot else "isolated" if market.symbol in self.engine.isolated else "cross",
            "sz": plain(algo.quantity / market.contract),
            "state": ALGO_STATES[algo.status],
            f"{leg}TriggerPx": plain(algo.trigger),
            f"{leg}TriggerPxType": algo.working_type,
            f"{leg}OrdPx": "-1",
            **empty(f"{other}TriggerPx {other}TriggerPxType {other}OrdPx"),
            "lever": "" if market.spot else str(self.engine.leverage.get(market.symbol, 20)),
            "reduceOnly": str(algo.reduce_only).lower(),
            "actualSz": plain(child.filled / market.contract) if child else "0",
            "actualPx": plain(child.average) if child and child.filled else "",
            "actualSide": leg if child else "",
            "triggerTime": str(algo.updated) if child else "",
            "failCode": ERRORS.get(algo.reason, ("", ""))[0],
            "last": plain(market.mark),
            "cTime": str(algo.created),
            "uTime": str(algo.updated),
            "attachAlgoOrds": [],
            "linkedOrd": {"ordId": ""},
            **empty("activePx amendPxOnTriggerType callbackRatio callbackSpread ccy clOrdId closeFraction"),
            **empty("moveTriggerPx ordPx pxLimit pxSpread pxVar quickMgnType szLimit tag tgtCcy timeInterval"),
            **empty("triggerPx triggerPxType tradeQuoteCcy uly"),
        }

    # -- fills and bills

    def fills(self, params: Row, kept: int) -> list[Row]:
        rows = [
            self.fill_row(trade)
            for trade in self.engine.trades
            if self.is_asked(params, trade.symbol)
            and trade.at >= self.clock.now() - kept
            and params.get("ordId", str(trade.order)) == str(trade.order)
        ]
        return self.turn_page(params, rows, "billId", "ts")

    def fill_row(self, trade: FakeTrade) -> Row:
        market, order = self.engine.markets[trade.symbol], self.engine.orders[trade.order]
        ended = {BUY: "105", SELL: "104"}[trade.side]
        return {
            "instType": "SPOT" if market.spot else "SWAP",
            "instId": market.symbol,
            "tradeId": str(trade.id),
            "ordId": str(trade.order),
            "clOrdId": "" if trade.liquidation or order.algo else order.client_id,
            "billId": str(7_000_000_000_000_000_000 + trade.id),
            "subType": ended if trade.liquidation else {BUY: "1", SELL: "2"}[trade.side],
            "tag": "",
            "fillPx": plain(trade.price),
            "fillSz": plain(trade.quantity / market.contract),
            "fillIdxPx": plain(market.mark),
            "fillPnl": plain(trade.pnl),
            "fillMarkPx": plain(market.mark),
            "side": trade.side.lower(),
            "posSide": "net",
            "execType": "M" if trade.maker else "T",
            "feeCcy": trade.fee_currency,
            "fee": plain(-trade.fee),
            "feeRate": plain(-self.engine.fee_rate(market, trade.maker)),
            "fillTime": str(trade.at),
            "ts": str(trade.at),
            **empty("fillPxVol fillPxUsd fillMarkVol fillFwdPx tradeQuoteCcy"),
        }

    def bills(self, params: Row) -> list[Row]:
        """Of funding alone: what a desk asks them for. Isolated margin pays it out of the position."""
        rows = []
        for paid in self.engine.funding:
            isolated = paid.symbol in self.engine.isolated
            change = {"posBalChg" if isolated else "balChg": plain(paid.amount)}
            rows.append(
                {
                    "instType": "SWAP",
                    "instId": paid.symbol,
                    "billId": str(7_000_000_000_000_000_000 + paid.id),
                    "type": "8",
                    "subType": "174" if paid.amount > 0 else "173",
                    "ts": str(paid.at),
                    "fillTime": str(paid.at),
                    "balChg": "0",
                    "posBalChg": "0",
                    **change,
                    "bal": plain(self.engine.cash),
                    "posBal": "0",
                    "sz": plain(abs(paid.position) / self.engine.markets[paid.symbol].contract),
                    "px": plain(paid.mark),
                    "ccy": "USDT",
                    "pnl": plain(paid.amount),
                    "fee": "0",
                    "mgnMode": "isolated" if isolated else "cross",
                    **empty("clOrdId execType from interest notes ordId tag to tradeId fillFwdPx fillIdxPx"),
                }
            )
        rows = [row for row in rows if self.is_asked(params, row["instId"]) and params.get("type", "8") == "8"]
        return self.turn_page(params, rows, "billId", "ts")
