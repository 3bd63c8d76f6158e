"""Orders at Hyperliquid's perpetuals, signed by an agent's key: isolated margin, stops triggered by the mark.

Endpoints: https://hyperliquid.gitbook.io/hyperliquid-docs/for-developers/api (info-endpoint, exchange-endpoint,
signing, nonces-and-api-wallets, tick-and-lot-size, error-responses). Of ccxt only the signing of an action and the two
raw endpoints are used: its order methods sign `approveBuilderFee` for ccxt's own address, at 0 % even where that is
switched off. There are no market orders: an immediate limit beyond the touch is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final

from zuno.adapters.venues.exchange import ExchangeVendor, Params
from zuno.adapters.venues.orders.core import ORDER_WINDOW, VenueAccount, report_unreadable
from zuno.adapters.venues.orders.wire import Holding, Listing, Question, Trade, WireTable, clean_id, read_reason
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed, Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import (
    OUR_PREFIX,
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

OURS: Final = re.compile(rf"{OUR_PREFIX}([0-9a-f]{{30}})")
OUR_CLOID: Final = "0xd5"
"""A client id is `0x` and 32 hex digits there: our 30 behind these."""
WITHDRAWING: Final = ("user", "vault", "subAccount")
"""Whose key may withdraw."""
SIGNIFICANT: Final = 5
DECIMALS: Final = 6
"""Digits of a price, and its decimals together with those of the size. Whole prices are always taken."""
TAKE_BOUND: Final = Decimal("0.05")
"""How far beyond the touch, or the trigger, an order goes that takes at once."""
MOST: Final = Decimal(1_000_000_000)
"""No list says how much an order may be of."""
THOUSANDS: Final = "1000", "k"
"""How a coin begins whose unit is a thousand, elsewhere and here."""
DECLINES: Final = {
    "User or API Wallet": "wallet",
    "Must deposit": "wallet",
    "Too many": "limit",
    "Invalid nonce: duplicate": "repeated",
    "Invalid nonce": "nonce",
    "Action expired": "nonce",
}
"""Answers to an action by how they begin; there are no codes."""


def read_decline(answer: object) -> tuple[str, str] | None:
    if not isinstance(answer, dict):
        return None
    response = answer.get("response")
    if answer.get("status") == "unknownOid":
        return "unknownOid", ""
    if answer.get("status") == "err":
        words = str(response)
        return next((code for start, code in DECLINES.items() if words.startswith(start)), "err"), read_reason(words)
    data = response.get("data") if isinstance(response, dict) else None
    statuses = data.get("statuses") if isinstance(data, dict) else None
    first = statuses[0] if isinstance(statuses, list) and statuses else None
    return ("error", read_reason(first["error"])) if isinstance(first, dict) and "error" in first else None


class HyperliquidOrders(VenueAccount):
    """The account is an address, and the key that of an agent that its owner approved: an agent cannot withdraw."""

    wire = WireTable(
        exchange=Venue("HYPERLIQUID"),
        vendor=ExchangeVendor(
            "hyperliquid",
            "Hyperliquid",
            read_decline=read_decline,
            declines_with_ok=True,
            limit_codes=frozenset({"limit"}),
        ),
        market="{base}",
        market_field="coin",
        time=("publicPostInfo", {"type": "exchangeStatus"}, ("time",)),
        clock_codes=frozenset({"nonce"}),
        key_codes=frozenset({"wallet"}),
        no_such_order=frozenset({"unknownOid"}),
        cannot_cancel=frozenset({"error"}),
        not_taken_words=frozenset({"error", "err"}),
        statuses={
            "open": OrderStatus.OPEN,
            "triggered": OrderStatus.OPEN,
            "filled": OrderStatus.FILLED,
            "canceled": OrderStatus.CANCELED,
            "rejected": OrderStatus.REJECTED,
        },
        types={
            "Limit": OrderType.LIMIT,
            "Market": OrderType.MARKET,
            **dict.fromkeys(("Stop Market", "Stop Limit"), OrderType.STOP_MARKET),
            **dict.fromkeys(("Take Profit Market", "Take Profit Limit"), OrderType.TAKE_PROFIT_MARKET),
        },
        sides={"B": OrderSide.BUY, "A": OrderSide.SELL},
        in_force={TimeInForce.GTC: "Gtc", TimeInForce.IOC: "Ioc", TimeInForce.POST_ONLY: "Alo"},
        read_in_force={
            **dict.fromkeys(("Ioc", "FrontendMarket", "LiquidationMarket"), TimeInForce.IOC),
            "Alo": TimeInForce.POST_ONLY,
        },
        page=500,
        trade_id="tid",
        trades_window=90 * DAY_MS,
        funding_id="time",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._assets: dict[str, tuple[int, int]] = {}
        """Number and decimals of the size, by the coin."""
        self._nonce = 0

    def name(self, symbol: Symbol) -> str:
        base, (many, here) = symbol.base, THOUSANDS
        return here + base.removeprefix(many) if base.startswith(many) else base

    async def ask_info(self, kind: str, what: str, **params: object) -> VendorJson:
        return await self._client.read("publicPostInfo", what, type=kind, **params)

    def ask_of_user(self, kind: str, what: str, **params: object) -> Question:
        return Question("publicPostInfo", what, {"type": kind, "user": self.account, **params})

    @property
    def account(self) -> str:
        return str(self._client.opened.walletAddress).lower()

    def row_of(self, answer: VendorJson) -> VendorJson | None:
        return answer.child("order")

    def row_id(self, row: VendorJson, field: str) -> str:
        """A payment has no id but its hour and its coin."""
        return f"{row[field]}-{row.child('delta').text('coin')}" if "delta" in row else str(row[field])

    def turn_page(self, params: Mapping[str, object], answer: VendorJson, rows: Sequence[VendorJson]) -> Params | None:
        if "startTime" not in params or len(rows) < self._page:
            return None
        return {**params, "startTime": max(row.moment("time") for row in rows)}

    # -- account

    def sign(self, action: Mapping[str, object]) -> Callable[[], Params]:
        """An action with its signature, which ends soon: less long than its reply is waited for."""

        def build() -> Params:
            opened = self._client.opened
            if self.agent == self.account:
                raise Refused("The key of Hyperliquid is the account's main key; set that of an agent (API wallet).")
            self._nonce = max(self._nonce + 1, self._client.now())
            expires = self._nonce + ORDER_WINDOW
            signature = opened.sign_l1_action(dict(action), self._nonce, None, expires)
            return {"action": action, "nonce": self._nonce, "signature": signature, "expiresAfter": expires}

        return build

    @property
    def agent(self) -> str:
        opened = self._client.opened
        return str(opened.eth_get_address_from_private_key(opened.privateKey)).lower()

    @report_unreadable
    async def rights(self) -> AccountRights:
        """`Refused` for the account's main key."""
        if self.agent == self.account:
            raise Refused("The key of Hyperliquid is the account's main key; set that of an agent (API wallet).")
        answer = await self.ask_info("userRole", "permissions", user=self.agent)
        role = answer.text("role")
        trades = role == "agent" and answer.child("data").text("user").lower() == self.account
        state = await self._read_state()
        kinds = [row.child("position").child("leverage").text("type") for row in state.children("assetPositions")]
        isolated = all(kind == "isolated" for kind in kinds)
        return self.build_rights(
            can_trade=trades, can_withdraw=role in ("user", "vault", "subAccount"), isolated=isolated
        )

    async def prepare(self, order: OrderRequest) -> None:
        name, leverage = self.name(order.symbol), order.leverage
        settings = (await self.ask_info("activeAssetData", "leverage", user=self.account, coin=name)).child("leverage")
        if settings.text("type") != "isolated" or settings.whole("value") != leverage:
            number, _ = await self.read_asset(name)
            action = {"type": "updateLeverage", "asset": number, "isCross": False, "leverage": leverage}
            await self._client.send("privatePostExchange", "leverage", self.sign(action))

    async def _read_state(self) -> VendorJson:
        return await self.ask_info("clearinghouseState", "positions", user=self.account)

    async def balances(self) -> dict[str, Holding]:
        state = await self._read_state()
        total = state.child("marginSummary").decimal("accountValue")
        for row in state.children("assetPositions"):
            total -= row.child("position").decimal("unrealizedPnl")
        return {self.wire.asset: Holding(total, min(state.decimal("withdrawable"), total))}

    async def position_rows(self) -> list[VendorJson]:
        return [row.child("position") for row in (await self._read_state()).children("assetPositions")]

    async def parse_position(self, row: VendorJson) -> VenuePosition | None:
        amount, symbol = row.decimal("szi"), self._names.get(row.text("coin"))
        if not amount or symbol is None:
            return None
        leverage, margin = row.child("leverage").whole("value"), row.decimal("marginUsed")
        liquidation = row.maybe_decimal("liquidationPx")
        return self.build_position(symbol, amount, row.decimal("entryPx"), leverage, margin, liquidation)

    # -- markets

    async def read_listings(self, name: str | None = None) -> list[Listing]:
        """The tick is that of the price as it is: prices have five digits."""
        universe = (await self.ask_info("meta", "filters")).children("universe")
        self._assets = {row.text("name"): (place, row.whole("szDecimals")) for place, row in enumerate(universe)}
        prices = await self.ask_info("allMids", "prices")
        listed = [row for row in universe if name in (None, row.text("name")) and row.text("name") in prices]
        return [self.parse_listing(row, prices.decimal(row.text("name"))) for row in listed]

    def parse_listing(self, row: VendorJson, price: Decimal) -> Listing:
        name, decimals = row.text("name"), row.whole("szDecimals")
        many, here = THOUSANDS
        thousands = name.startswith(here) and name[1:].isupper()
        lot = Decimal(1).scaleb(-decimals)
        delisted = "isDelisted" in row and row.flag("isDelisted")
        return Listing(
            name,
            many + name.removeprefix(here) if thousands else name,
            self.wire.asset,
            _tick(price, decimals),
            lot,
            lot,
            MOST,
            Decimal(str(self.exchange.least_notional)),
            not delisted,
        )

    async def read_asset(self, name: str) -> tuple[int, int]:
        if name not in self._assets:
            await self.read_listings(name)
        if name not in self._assets:
            raise Malformed(f"Hyperliquid does not list {name}")
        return self._assets[name]

    async def read_quote(self, symbol: Symbol) -> VenueQuote:
        name = self.name(symbol)
        number, _ = await self.read_asset(name)
        book = await self.ask_info("l2Book", "book", coin=name)
        contexts = (await self.ask_info("metaAndAssetCtxs", "mark")).children(1)
        if number >= len(contexts):
            raise Malformed(f"Hyperliquid has no mark of {name}")
        bid, ask = (book.child("levels").child(side).child(0).decimal("px") for side in (0, 1))
        return self.build_quote(symbol, bid, ask, contexts[number].decimal("markPx"), book.moment("time"))

    # -- orders

    async def ask_to_place(self, order: OrderRequest, good_till: Millis | None) -> Question:
        number, decimals = await self.read_asset(self.name(order.symbol))
        worse, buys = 1 + TAKE_BOUND * order.side.sign, order.side is OrderSide.BUY
        if order.trigger is not None:
            price, tpsl = order.trigger * worse, "sl" if order.type is OrderType.STOP_MARKET else "tp"
            kind: dict[str, object] = {"isMarket": True, "triggerPx": _plain(order.trigger, decimals), "tpsl": tpsl}
            kind = {"trigger": kind}
        elif order.price is not None:
            price, kind = order.price, {"limit": {"tif": self.wire.in_force[order.time_in_force]}}
        else:
            quote = await self.quote(order.symbol)
            price, kind = (quote.ask if buys else quote.bid) * worse, {"limit": {"tif": "Ioc"}}
        row = {
            "a": number,
            "b": buys,
            "p": _plain(price, decimals),
            "s": f"{order.quantity.normalize():f}",
            "r": order.reduce_only,
            "t": kind,
            "c": _to_cloid(order.client_id),
        }
        action = {"type": "order", "orders": [row], "grouping": "na"}
        return Question("privatePostExchange", "order", self.sign(action))

    def spell_id(self, client_id: ClientId) -> str:
        """As the exchange has it."""
        return _to_cloid(client_id)

    def ask_for_order(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        oid = int(client_id) if client_id.isdigit() else self.spell_id(client_id)
        return [self.ask_of_user("orderStatus", "order", oid=oid)]

    def ask_to_cancel(self, symbol: Symbol, client_id: ClientId, kind: OrderType, venue_id: str) -> Question:
        number, _ = self._assets[self.name(symbol)]
        if client_id.isdigit():
            action = {"type": "cancel", "cancels": [{"a": number, "o": int(client_id)}]}
        else:
            action = {"type": "cancelByCloid", "cancels": [{"asset": number, "cloid": _to_cloid(client_id)}]}
        return Question("privatePostExchange", "cancel", self.sign(action))

    @report_unreadable
    async def cancel(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None = None) -> Order:
        await self.read_asset(self.name(symbol))
        return await super().cancel(symbol, client_id, kind)

    def ask_for_open(self, symbol: Symbol) -> list[Question]:
        return [self.ask_of_user("frontendOpenOrders", "open orders")]

    async def parse_order(self, row: VendorJson, *, listed: bool = False) -> Order:
        word, updated = ("open", None) if listed else (row.text("status"), row.moment("statusTimestamp"))
        row = row if listed else row.child("order")
        status = next((status for name, status in self.wire.statuses.items() if word.lower().endswith(name)), None)
        if status is None:
            raise Malformed(f"{row.what}: {read_reason(word)!r} is no status of an order")
        quantity, oid = row.decimal("origSz"), str(row.whole("oid"))
        return self.build_order(
            self.symbol_of(row),
            self.wire.types[row.choice("orderType", list(self.wire.types))],
            client_id=oid if row["cloid"] is None else _from_cloid(row.text("cloid")),
            venue_id=oid,
            side=self.wire.sides[row.choice("side", list(self.wire.sides))],
            quantity=quantity,
            price=row.decimal("limitPx"),
            trigger=row.decimal("triggerPx"),
            in_force=None if row["tif"] is None else row.text("tif"),
            reduce_only=row.flag("reduceOnly"),
            status=status,
            filled=ZERO if status is OrderStatus.REJECTED else quantity - row.decimal("sz"),
            updated=row.moment("timestamp") if updated is None else updated,
            reason=word if status is OrderStatus.REJECTED else "",
        )

    # -- fills and funding

    def ask_for_trades(self, symbol: Symbol, low: Millis, high: Millis) -> Question:
        return self.ask_of_user("userFillsByTime", "trades", startTime=low, endTime=high)

    async def read_trades(self, symbol: Symbol, low: Millis, high: Millis) -> list[VendorJson]:
        rows = await super().read_trades(symbol, low, high)
        return [row for row in rows if row.text("coin") == self.name(symbol)]

    def ask_for_order_trades(self, order: Order) -> Question:
        """The newest of the account."""
        return self.ask_of_user("userFills", "trades")

    def parse_trade(self, symbol: Symbol, row: VendorJson) -> Trade:
        cloid = row.maybe_text("cloid")
        forced = row.child("liquidation").maybe_text("liquidatedUser") if "liquidation" in row else None
        return Trade(
            str(row.whole("tid")),
            str(row.whole("oid")),
            "" if cloid is None else _from_cloid(cloid),
            self.wire.sides[row.choice("side", list(self.wire.sides))],
            row.decimal("sz"),
            row.decimal("px"),
            row.decimal("fee"),
            row.text("feeToken"),
            not row.flag("crossed"),
            row.moment("time"),
            forced is not None and forced.lower() == self.account,
        )

    async def find_owner(self, symbol: Symbol, trade: Trade) -> ClientId:
        answer = await self.ask_info("orderStatus", "order", user=self.account, oid=int(trade.order_id))
        cloid = answer.child("order").child("order").maybe_text("cloid")
        return trade.order_id if cloid is None else _from_cloid(cloid)

    def ask_for_funding(self, symbol: Symbol, low: Millis, high: Millis) -> Question:
        return self.ask_of_user("userFunding", "funding", startTime=low, endTime=high)

    def parse_payment(self, row: VendorJson) -> tuple[str, Decimal, Millis, str, str]:
        paid = row.child("delta")
        amount, coin = paid.decimal("usdc"), paid.text("coin")
        return self.row_id(row, "time"), amount, row.moment("time"), coin, self.wire.asset


def _tick(price: Decimal, decimals: int) -> Decimal:
    by_digits = Decimal(1).scaleb(price.adjusted() - SIGNIFICANT + 1)
    return min(max(by_digits, Decimal(1).scaleb(decimals - DECIMALS)), Decimal(1))


def _plain(price: Decimal, decimals: int) -> str:
    return f"{price.quantize(_tick(price, decimals), ROUND_HALF_EVEN).normalize():f}"


def _to_cloid(client_id: ClientId) -> str:
    ours = OURS.fullmatch(client_id)
    return client_id if ours is None else OUR_CLOID + ours[1]


def _from_cloid(cloid: str) -> ClientId:
    return OUR_PREFIX + cloid.removeprefix(OUR_CLOID) if cloid.startswith(OUR_CLOID) else clean_id(cloid)
