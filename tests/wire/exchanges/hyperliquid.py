"""Hyperliquid's perpetuals: `POST /info` and `POST /exchange`.

Built from https://hyperliquid.gitbook.io/hyperliquid-docs/for-developers/api: info-endpoint (meta, l2Book, orderStatus,
open and historical orders, fills by time, userRole, extraAgents, rate limits), info-endpoint/perpetuals
(clearinghouseState, userFunding, activeAssetData), exchange-endpoint (order, cancelByCloid, updateLeverage,
expiresAfter), signing, nonces-and-api-wallets, tick-and-lot-size, error-responses. An action is packed in the
exchange's own order of fields and its signer recovered, so that one signed otherwise comes from a wallet that nobody
knows. There is no market order: an immediate limit beyond the touch is one. What an agent's own address holds is
nothing. How a second order of a client id is refused is not documented: here it is, while the first one is open, by an
error of the order. Whatever would pay somebody for our orders is refused and written down, like every action.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils.crypto import keccak

from tests.wire.exchanges.account import FakeExchange, Row, is_open
from tests.wire.exchanges.matching import (
    BUY,
    SELL,
    Engine,
    FakeAlgo,
    FakeOrder,
    FakeTrade,
    Market,
    Rejected,
    build_market,
)
from tests.wire.exchanges.serving import Answer, Clock, Declined, Handler, Request, json_answer

OWNER_KEY, AGENT_KEY = "0x" + "3c" * 32, "0x" + "a9" * 32
CLOID = re.compile(r"0x[0-9a-f]{32}")
DAY = 86_400_000
PAID_TO_OTHERS = ("approveBuilderFee", "setReferrer", "registerReferrer")
ORDERED = {
    "order": "type orders grouping builder a b p s r t c limit tif trigger isMarket triggerPx tpsl f",
    "cancel": "type cancels a o",
    "cancelByCloid": "type cancels asset cloid",
    "updateLeverage": "type asset isCross leverage",
    "scheduleCancel": "type time",
}
"""Actions that are taken, and the order in which the exchange packs their fields."""
ERRORS = {
    "not_trading": "Trading is halted.",
    "quantity": "Order has invalid size.",
    "lot": "Order has invalid size.",
    "tick": "Price must be divisible by tick size.",
    "notional": "Order must have minimum value of $10.",
    "no_cash": "Insufficient margin to place order.",
    "reduce_only": "Reduce only order would increase position.",
    "duplicate": "Duplicate cloid.",
    "would_trigger": "Invalid TP/SL price.",
    "far": "Order price cannot be more than 80% away from the reference price",
    "no_order": "Order was never placed, already canceled, or filled.",
    "unmatched": "Order could not immediately match against any resting orders.",
}
REJECTIONS = {
    "tick": "tickRejected",
    "notional": "minTradeNtlRejected",
    "no_cash": "perpMarginRejected",
    "reduce_only": "reduceOnlyRejected",
    "would_trigger": "badTriggerPxRejected",
    "post_only": "badAloPxRejected",
    "unmatched": "iocCancelRejected",
    "far": "oracleRejected",
}
"""Orders of this fate are kept, and found by their ids."""
TIMES_IN_FORCE = {"Gtc": "GTC", "Ioc": "IOC", "Alo": "GTX"}


def refuse(words: str) -> Answer:
    return json_answer({"status": "err", "response": words})


UNREADABLE = Answer(422, b"Failed to deserialize the JSON body into the target type", "text/plain")


@cache
def address_of(key: str) -> str:
    return str(Account.from_key(key).address).lower()


def owner() -> str:
    """The address whose account it is."""
    return address_of(OWNER_KEY)


def plain(number: Decimal) -> str:
    """With a digit behind the point at least."""
    text = f"{round(number, 8).normalize():f}"
    return text if "." in text else f"{text}.0"


def tick_of(price: Decimal, decimals: int) -> Decimal:
    """Five significant digits and six decimals less those of the size; whole prices always."""
    by_digits = Decimal(1).scaleb(price.adjusted() - 4) if price else Decimal(1)
    return min(max(by_digits, Decimal(1).scaleb(decimals - 6)), Decimal(1))


def standard_markets() -> dict[str, Market]:
    rows = [
        build_market("BTC", "60000", "1", "0.00001", "10", "1000000", base="BTC", quote="USDC"),
        build_market("ETH", "3000", "0.1", "0.0001", "10", "1000000", base="ETH", quote="USDC"),
    ]
    return {market.symbol: market for market in rows}


def pack(value: Any) -> bytes:
    """MessagePack of what actions are made of."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        if value < 0x80:
            return bytes([value])
        size = next(size for size in (1, 2, 4, 8) if value < 1 << 8 * size)
        return bytes([{1: 0xCC, 2: 0xCD, 4: 0xCE, 8: 0xCF}[size]]) + value.to_bytes(size, "big")
    if isinstance(value, str):
        text = value.encode()
        return (bytes([0xA0 | len(text)]) if len(text) < 32 else bytes([0xD9, len(text)])) + text
    head = 0x90 if isinstance(value, list) else 0x80
    wide = 0xDC if isinstance(value, list) else 0xDE
    start = bytes([head | len(value)]) if len(value) < 16 else bytes([wide]) + len(value).to_bytes(2, "big")
    parts = value if isinstance(value, list) else [part for pair in value.items() for part in pair]
    return start + b"".join(map(pack, parts))


def arrange(value: Any, order: list[str]) -> Any:
    """An action as the exchange itself writes it: its order of fields, numbers without zeros at the end."""
    if isinstance(value, list):
        return [arrange(part, order) for part in value]
    if not isinstance(value, dict):
        return value
    numbers = {name: f"{Decimal(value[name]).normalize():f}" for name in ("p", "s", "triggerPx") if name in value}
    return {name: arrange({**value, **numbers}[name], order) for name in order if name in value}


def recover_signer(sent: Row) -> str:
    """Whose key signed an action: the phantom agent of its hash, as mainnet wants it."""
    action, nonce, vault, expires = (sent.get(name) for name in ("action", "nonce", "vaultAddress", "expiresAfter"))
    assert isinstance(action, dict)
    arranged = arrange(action, ORDERED.get(action["type"], " ".join(action)).split())
    data = pack(arranged) + int(str(nonce)).to_bytes(8, "big")
    data += b"\x00" if vault is None else b"\x01" + bytes.fromhex(str(vault)[2:])
    if expires is not None:
        data += b"\x00" + int(str(expires)).to_bytes(8, "big")
    domain = {"name": "Exchange", "version": "1", "chainId": 1337, "verifyingContract": "0x" + "00" * 20}
    types = {"Agent": [{"name": "source", "type": "string"}, {"name": "connectionId", "type": "bytes32"}]}
    message = encode_typed_data(domain, types, {"source": "a", "connectionId": keccak(data)})
    signature = sent["signature"]
    vrs = (signature["v"], int(signature["r"], 16), int(signature["s"], 16))
    return str(Account.recover_message(message, vrs=vrs)).lower()


class FakeHyperliquid(FakeExchange):
    """The account is the owner's; requests are signed by an agent. `withdrawals`: the key that signs is the owner's own
    kind, `trading` off: the agent was revoked."""

    place_name = "POST /exchange order"
    find_name = "POST /info orderStatus"
    cancel_name = "POST /exchange cancelByCloid"
    filters_name = "POST /info meta"
    funding_name = "POST /info userFunding"
    limited = Answer(429, b"null")
    banned = Answer(418, b"null", headers=(("retry-after", "3600"),))
    overloaded = refuse("Too many cumulative requests sent (37986 > 10436) for cumulative volume traded $437.92.")
    maintenance = Answer(502, b"<html>Bad Gateway</html>", "text/html")
    outdated = refuse("Invalid nonce: it is outside of the window.")
    events = ("openOrders", "frontendOpenOrders", "historicalOrders", "userFills", "userFunding")
    tells_anybody = True
    secrets = (OWNER_KEY, OWNER_KEY[2:], AGENT_KEY, AGENT_KEY[2:])

    def __init__(self, cash: Decimal = Decimal(10_000)) -> None:
        clock = Clock()
        engine = Engine(clock.now, standard_markets(), cash, Decimal("0.00015"), Decimal("0.00045"), keeps_ids=True)
        self.actions: list[Row] = []
        """Every action that ever came, taken or not."""
        self.nonces: set[int] = set()
        self.agent = address_of(AGENT_KEY)
        """The address that may trade for the owner."""
        super().__init__(engine, clock, name=name_request)
        self.page = 2_000

    def routes(self) -> dict[str, Handler]:
        info: dict[str, Callable[[Row], Any]] = {
            "exchangeStatus": lambda asked: {"time": self.clock.now(), "specialStatuses": None},
            "meta": lambda asked: self.meta(),
            "metaAndAssetCtxs": lambda asked: [self.meta(), [self.context(market) for market in self.listed()]],
            "allMids": lambda asked: {market.symbol: plain((market.bid + market.ask) / 2) for market in self.listed()},
            "l2Book": self.book,
            "userRole": self.user_role,
            "extraAgents": self.extra_agents,
            "userFees": self.user_fees,
            "maxBuilderFee": lambda asked: 0,
            "activeAssetData": self.active_asset,
            "clearinghouseState": self.clearinghouse_state,
            "spotClearinghouseState": lambda asked: {"balances": []},
            "openOrders": lambda asked: [brief(row) for row in self.open_orders(asked)],
            "frontendOpenOrders": self.open_orders,
            "orderStatus": self.order_status,
            "historicalOrders": self.historical_orders,
            "userFills": lambda asked: self.fills(asked)[::-1],
            "userFillsByTime": self.fills,
            "userFunding": self.funding,
        }
        actions: dict[str, Callable[[Row], Any]] = {
            "order": self.order_action,
            "cancel": self.cancel_action,
            "cancelByCloid": self.cancel_action,
            "updateLeverage": self.update_leverage,
            "scheduleCancel": lambda action: {"type": "default"},
        }
        asked = {f"POST /info {name}": self.answer_info(handler) for name, handler in info.items()}
        return {
            **asked,
            **{f"POST /exchange {name}": self.answer_action(handler) for name, handler in actions.items()},
            **{f"POST /exchange {name}": self.answer_action(None) for name in PAID_TO_OTHERS},
        }

    def answer_info(self, handler: Callable[[Row], Any]) -> Handler:
        return lambda request: handler(json.loads(request.body))

    def answer_action(self, handler: Callable[[Row], Any] | None) -> Handler:
        def handle(request: Request) -> Any:
            sent = json.loads(request.body)
            action = sent["action"]
            self.actions.append(action)
            if handler is None or "builder" in action:
                self.broker_marks.append(action["type"] if handler is None else "builder")
                raise Declined(refuse("Nobody is paid for these orders."))
            signer = recover_signer(sent)
            if signer not in (owner(), self.agent) or (signer == self.agent and not self.trading):
                raise Declined(refuse(f"User or API Wallet {signer} does not exist."))
            now, nonce = self.clock.now(), sent["nonce"]
            if not now - 2 * DAY < nonce < now + DAY:
                raise Declined(self.outdated)
            if nonce in self.nonces:
                raise Declined(refuse("Invalid nonce: duplicate nonce"))
            self.nonces.add(nonce)
            if sent.get("expiresAfter") is not None and now > sent["expiresAfter"]:
                raise Declined(refuse("Action expired."))
            return {"status": "ok", "response": handler(action)}

        return handle

    def change_keys(self) -> None:
        self.agent = address_of("0x" + "77" * 32)

    def foreign_id(self) -> str:
        return ""

    # -- account

    def is_owner(self, asked: Row) -> bool:
        if not re.fullmatch(r"0x[0-9a-fA-F]{40}", asked.get("user", "")):
            raise Declined(UNREADABLE)
        return str(asked["user"]).lower() == owner()

    def user_role(self, asked: Row) -> Row:
        if self.is_owner(asked) or (asked["user"].lower() == self.agent and self.withdrawals):
            return {"role": "user"}
        if asked["user"].lower() == self.agent and self.trading:
            return {"role": "agent", "data": {"user": owner()}}
        return {"role": "missing"}

    def extra_agents(self, asked: Row) -> list[Row]:
        if not self.is_owner(asked) or not self.trading or self.withdrawals:
            return []
        return [{"name": "desk", "address": self.agent, "validUntil": self.clock.now() + 90 * DAY}]

    def user_fees(self, asked: Row) -> Row:
        rates = {"userCrossRate": plain(self.engine.taker_fee), "userAddRate": plain(self.engine.maker_fee)}
        return {"dailyUserVlm": [], **rates, "activeReferralDiscount": "0.0", "feeTrialReward": "0.0"}

    def leverage_row(self, symbol: str) -> Row:
        kind = "isolated" if symbol in self.engine.isolated else "cross"
        row = {"type": kind, "value": self.engine.leverage.get(symbol, 20)}
        return {**row, "rawUsd": "0.0"} if kind == "isolated" else row

    def active_asset(self, asked: Row) -> Row:
        market = self.named(asked)
        most = plain(max(self.engine.available(), Decimal(0)))
        return {
            "user": asked["user"],
            "coin": market.symbol,
            "leverage": self.leverage_row(market.symbol),
            "maxTradeSzs": [most, most],
            "availableToTrade": [most, most],
            "markPx": plain(market.mark),
        }

    def clearinghouse_state(self, asked: Row) -> Row:
        mine, engine = self.is_owner(asked), self.engine
        held = engine.held(spot=False) if mine else []
        cash = engine.cash if mine else Decimal(0)
        rows = [
            {
                "type": "oneWay",
                "position": {
                    "coin": market.symbol,
                    "szi": plain(position.amount),
                    "entryPx": plain(position.entry),
                    "positionValue": plain(abs(position.amount) * market.mark),
                    "unrealizedPnl": plain(engine.unrealised(market.symbol)),
                    "returnOnEquity": "0.0",
                    "liquidationPx": plain(engine.liquidation(market.symbol)),
                    "leverage": self.leverage_row(market.symbol),
                    "marginUsed": plain(engine.margin(market.symbol)),
                    "maxLeverage": 40,
                    "cumFunding": {"allTime": "0.0", "sinceOpen": "0.0", "sinceChange": "0.0"},
                },
            }
            for market, position in held
        ]
        value = sum((engine.unrealised(market.symbol) for market, _ in held), cash)
        used = sum((engine.margin(market.symbol) for market, _ in held), Decimal(0))
        worth = sum((position.amount * market.mark for market, position in held), Decimal(0))
        summary = {
            "accountValue": plain(value),
            "totalNtlPos": plain(sum((abs(position.amount) * market.mark for market, position in held), Decimal(0))),
            "totalRawUsd": plain(value - worth),
            "totalMarginUsed": plain(used),
        }
        return {
            "marginSummary": summary,
            "crossMarginSummary": summary,
            "crossMaintenanceMarginUsed": "0.0",
            "withdrawable": plain(max(engine.available(), Decimal(0)) if mine else Decimal(0)),
            "assetPositions": rows,
            "time": self.clock.now(),
        }

    def update_leverage(self, action: Row) -> Row:
        market = self.listed()[action["asset"]]
        if not 1 <= action["leverage"] <= 40:
            raise Declined(refuse("Invalid leverage value"))
        isolated = market.symbol in self.engine.isolated
        if self.engine.position(market.symbol).amount and action["isCross"] is isolated:
            raise Declined(refuse("Cannot switch leverage type with open position."))
        self.engine.leverage[market.symbol] = action["leverage"]
        others = self.engine.isolated - {market.symbol}
        self.engine.isolated = others if action["isCross"] else others | {market.symbol}
        return {"type": "default"}

    # -- market

    def listed(self) -> list[Market]:
        return list(self.engine.markets.values())

    def named(self, asked: Row) -> Market:
        market = self.engine.markets.get(asked["coin"])
        if market is None:
            raise Declined(Answer(500, b"null"))
        return market

    def meta(self) -> Row:
        rows = [
            {
                "szDecimals": size_decimals(market),
                "name": market.symbol,
                "maxLeverage": 40,
                "marginTableId": 56,
                **({} if market.trading else {"isDelisted": True}),
            }
            for market in self.listed()
        ]
        tiers = {"description": "", "marginTiers": [{"lowerBound": "0.0", "maxLeverage": 40}]}
        return {"universe": rows, "marginTables": [[56, tiers]], "collateralToken": 0}

    def context(self, market: Market) -> Row:
        prices = ("prevDayPx", "oraclePx", "markPx")
        return {
            "funding": "0.0000125",
            "openInterest": "10764.48",
            "dayNtlVlm": "9450588.2273",
            "dayBaseVlm": "157.5",
            "premium": "0.0",
            **dict.fromkeys(prices, plain(market.mark)),
            "midPx": plain((market.bid + market.ask) / 2),
            "impactPxs": [plain(market.bid), plain(market.ask)],
        }

    def book(self, asked: Row) -> Row:
        market = self.named(asked)
        sides = ((market.bid, market.bid_size), (market.ask, market.ask_size))
        levels = [[{"px": plain(price), "sz": plain(size), "n": 1}] for price, size in sides]
        return {"coin": market.symbol, "time": self.clock.now(), "levels": levels}

    # -- orders

    def order_action(self, action: Row) -> Row:
        if action["grouping"] != "na":
            raise Declined(refuse("Invalid grouping."))
        return {"type": "order", "data": {"statuses": [self.place(row) for row in action["orders"]]}}

    def place(self, row: Row) -> Row:
        if row["a"] >= len(self.listed()):
            return {"error": f"Invalid asset index {row['a']}"}
        market, client_id = self.listed()[row["a"]], row.get("c") or ""
        if client_id and not CLOID.fullmatch(client_id):
            raise Declined(UNREADABLE)
        side, price, quantity = BUY if row["b"] else SELL, Decimal(row["p"]), Decimal(row["s"])
        trigger = row["t"].get("trigger")
        in_force = "IOC" if trigger else TIMES_IN_FORCE[row["t"]["limit"]["tif"]]
        market.tick = tick_of(price, size_decimals(market))
        kind = "LIMIT" if trigger is None else {"sl": "STOP_MARKET", "tp": "TAKE_PROFIT_MARKET"}[trigger["tpsl"]]
        try:
            if trigger is None:
                if abs(price - market.mark) > market.mark * Decimal("0.8"):
                    raise Rejected("far")
                order = self.engine.place(client_id, market.symbol, side, kind, quantity, price, in_force, row["r"])
            else:
                return self.place_trigger(market, client_id, side, kind, quantity, price, row)
        except Rejected as rejected:
            if rejected.why in REJECTIONS:
                made = self.engine.make_order(client_id, market.symbol, side, kind, quantity, price, in_force, row["r"])
                self.engine.record_rejection(made, rejected.why, "REJECTED")
            return {"error": self.describe(rejected.why, market, row["a"])}
        if in_force == "IOC" and not order.filled:
            order.reason, order.status = "unmatched", "REJECTED"
            return {"error": f"{ERRORS['unmatched']} asset={row['a']}"}
        named = {"oid": order.id, **({"cloid": client_id} if client_id else {})}
        if is_open(order):
            return {"resting": named}
        return {"filled": {"totalSz": plain(order.filled), "avgPx": plain(order.average), **named}}

    def place_trigger(
        self, market: Market, client_id: str, side: str, kind: str, quantity: Decimal, price: Decimal, row: Row
    ) -> Row:
        trigger = row["t"]["trigger"]
        if not trigger["isMarket"]:
            raise Declined(UNREADABLE)
        at = Decimal(trigger["triggerPx"])
        market.tick = tick_of(at, size_decimals(market))
        algo = self.engine.place_algo(client_id, market.symbol, side, kind, quantity, at, row["r"], "MARK")
        algo.price = price
        return {"resting": {"oid": algo.id, **({"cloid": client_id} if client_id else {})}}

    def describe(self, why: str, market: Market, asset: int) -> str:
        if why == "post_only":
            touch = f"{plain(market.bid)}@{plain(market.ask)}"
            return f"Post only order would have immediately matched, bbo was {touch}. asset={asset}"
        return f"{ERRORS[why]} asset={asset}"

    def cancel_action(self, action: Row) -> Row:
        statuses: list[Any] = []
        for asked in action["cancels"]:
            market = self.listed()[asked.get("asset", asked.get("a"))]
            order = self.find(asked.get("cloid", asked.get("o")), market.symbol)
            try:
                if order is None:
                    raise Rejected("no_order")
                if isinstance(order, FakeAlgo):
                    self.engine.cancel_algo(order)
                else:
                    self.engine.cancel(order)
            except Rejected:
                statuses.append({"error": f"{ERRORS['no_order']} asset={self.listed().index(market)}"})
            else:
                statuses.append("success")
        return {"type": "cancel", "data": {"statuses": statuses}}

    def find(self, named: Any, symbol: str | None = None) -> FakeOrder | FakeAlgo | None:
        def matches(order: FakeOrder | FakeAlgo) -> bool:
            mine = order.id == named if isinstance(named, int) else bool(named) and order.client_id == named
            return mine and symbol in (None, order.symbol)

        return self.look_up(matches)

    def order_status(self, asked: Row) -> Row:
        order = self.find(asked["oid"]) if self.is_owner(asked) else None
        return {"status": "unknownOid"} if order is None else {"status": "order", "order": self.status_row(order)}

    def open_orders(self, asked: Row) -> list[Row]:
        """Newest first."""
        rows = self.list_orders(lambda market: True) if self.is_owner(asked) else []
        return [self.order_row(order) for order in reversed(rows) if is_open(order)]

    def historical_orders(self, asked: Row) -> list[Row]:
        rows = self.list_orders(lambda market: True) if self.is_owner(asked) else []
        return [self.status_row(order) for order in reversed(rows)][: self.page]

    def status_row(self, order: FakeOrder | FakeAlgo) -> Row:
        status = {"NEW": "open", "PARTIALLY_FILLED": "open", "FILLED": "filled", "CANCELED": "canceled"}
        word = status.get(order.status) or REJECTIONS.get(order.reason, "canceled")
        if isinstance(order, FakeAlgo) and order.status == "EXPIRED":
            word = "reduceOnlyCanceled" if order.reason == "reduce_only" else "rejected"
        return {"order": self.order_row(order), "status": word, "statusTimestamp": order.updated}

    def order_row(self, order: FakeOrder | FakeAlgo) -> Row:
        algo = order if isinstance(order, FakeAlgo) else self.engine.algos.get(order.id)
        left = order.left if isinstance(order, FakeOrder) else order.quantity
        kinds = {"STOP_MARKET": "Stop Market", "TAKE_PROFIT_MARKET": "Take Profit Market"}
        condition = "N/A"
        if algo is not None:
            falls = (algo.type == "STOP_MARKET") == (algo.side == SELL)
            condition = f"Price {'below' if falls else 'above'} {algo.trigger.normalize():f}"
        in_force = {"GTC": "Gtc", "IOC": "Ioc", "GTX": "Alo"}
        return {
            "coin": order.symbol,
            "side": "B" if order.side == BUY else "A",
            "limitPx": plain(order.price or self.engine.markets[order.symbol].mark),
            "sz": plain(left),
            "oid": order.id,
            "timestamp": order.created,
            "triggerCondition": condition,
            "isTrigger": algo is not None,
            "triggerPx": plain(algo.trigger) if algo else "0.0",
            "children": [],
            "isPositionTpsl": False,
            "reduceOnly": order.reduce_only,
            "orderType": kinds[algo.type] if algo else "Limit",
            "origSz": plain(order.quantity),
            "tif": None if isinstance(order, FakeAlgo) or algo else in_force[order.time_in_force],
            "cloid": order.client_id if CLOID.fullmatch(order.client_id) else None,
        }

    # -- fills and funding

    def fills(self, asked: Row) -> list[Row]:
        """Oldest first, from a moment on."""
        low, high = asked.get("startTime", 0), asked.get("endTime") or 2**62
        trades = self.engine.trades if self.is_owner(asked) else []
        return [self.fill_row(trade) for trade in trades if low <= trade.at <= high][: self.page]

    def fill_row(self, trade: FakeTrade) -> Row:
        order, grows = self.engine.orders[trade.order], trade.before * (1 if trade.side == BUY else -1) >= 0
        long = (trade.side == BUY) == grows
        row: Row = {
            "coin": trade.symbol,
            "px": plain(trade.price),
            "sz": plain(trade.quantity),
            "side": "B" if trade.side == BUY else "A",
            "time": trade.at,
            "startPosition": plain(trade.before),
            "dir": f"{'Open' if grows else 'Close'} {'Long' if long else 'Short'}",
            "closedPnl": plain(trade.pnl),
            "hash": f"0x{trade.id:064x}",
            "oid": trade.order,
            "crossed": not trade.maker,
            "fee": plain(trade.fee),
            "tid": trade.id,
            "feeToken": "USDC",
            "twapId": None,
        }
        if CLOID.fullmatch(order.client_id):
            row["cloid"] = order.client_id
        if trade.liquidation:
            mark = plain(self.engine.markets[trade.symbol].mark)
            row["liquidation"] = {"liquidatedUser": owner(), "markPx": mark, "method": "market"}
        return row

    def funding(self, asked: Row) -> list[Row]:
        """Oldest first; a payment has no id but its hour and its coin."""
        low, high = asked.get("startTime", 0), asked.get("endTime") or 2**62
        paid = [row for row in self.engine.funding if low <= row.at <= high] if self.is_owner(asked) else []
        return [
            {
                "time": row.at,
                "hash": "0x" + "00" * 32,
                "delta": {
                    "type": "funding",
                    "coin": row.symbol,
                    "usdc": plain(row.amount),
                    "szi": plain(row.position),
                    "fundingRate": plain(row.rate),
                    "nSamples": None,
                },
            }
            for row in paid
        ][: min(self.page, 500)]


def name_request(request: Request) -> str:
    """By the question, or by the action."""
    try:
        sent = json.loads(request.body)
        return f"{request.name} {sent['type'] if 'type' in sent else sent['action']['type']}"
    except (ValueError, KeyError, TypeError):
        return request.name


def brief(row: Row) -> Row:
    """An open order as the shorter list has it."""
    names = ["coin", "side", "limitPx", "sz", "oid", "timestamp", "origSz", *(["cloid"] if row["cloid"] else [])]
    return {name: row[name] for name in names}


def size_decimals(market: Market) -> int:
    exponent = market.lot.normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent
