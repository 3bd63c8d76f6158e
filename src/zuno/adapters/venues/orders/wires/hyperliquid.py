"""Orders at Hyperliquid's perpetuals, signed by an agent's key: isolated margin, stops triggered by the mark.

Endpoints: https://hyperliquid.gitbook.io/hyperliquid-docs/for-developers/api (info-endpoint, exchange-endpoint,
signing, nonces-and-api-wallets, tick-and-lot-size, error-responses). Of ccxt only the signing of an action and the two
raw endpoints are used: its order methods sign `approveBuilderFee` for ccxt's own address, at 0 % even where that is
switched off. There are no market orders: an immediate limit beyond the touch is one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from zuno.adapters.venues.exchange import ExchangeVendor, Params
from zuno.adapters.venues.orders import wire as w
from zuno.adapters.venues.orders.core import ORDER_WINDOW, VenueAccount, report_unreadable
from zuno.adapters.venues.orders.wire import Cells, Holding, Listing, Question, Trade, WireTable, codes, fields, spell
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed, Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import (
    OUR_PREFIX,
    ClientId,
    Filters,
    Order,
    OrderRequest,
    OrderStatus,
    OrderType,
    TimeInForce,
)

OURS: Final = re.compile(rf"{OUR_PREFIX}([0-9a-f]{{30}})")
OUR_CLOID: Final = "0xd5"
"""A client id is `0x` and 32 hex digits there: our 30 behind these."""
WITHDRAWING: Final = ("user", "vault", "subAccount")
"""Whose key may withdraw."""
SIGNIFICANT, DECIMALS = 5, 6
"""Digits of a price, and its decimals together with those of the size. Whole prices are always taken."""
TICK_RANGE: Final = 2
"""The tick is that of prices up to so many times the present one: it grows with the price, and a stop or a target above
the market must be on it, too."""
TAKE_BOUND: Final = Decimal("0.05")
"""How far beyond the touch, or the trigger, an order goes that takes at once."""
MOST: Final = Decimal(1_000_000_000)
"""No list says how much an order may be of."""
MANY, K = "1000", "k"
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
        return next((code for start, code in DECLINES.items() if words.startswith(start)), "err"), w.read_reason(words)
    data = response.get("data") if isinstance(response, dict) else None
    statuses = data.get("statuses") if isinstance(data, dict) else None
    first = statuses[0] if isinstance(statuses, list) and statuses else None
    return ("error", w.read_reason(first["error"])) if isinstance(first, dict) and "error" in first else None


class HyperliquidOrders(VenueAccount):
    """The account is an address, and the key that of an agent that its owner approved: an agent cannot withdraw."""

    wire = WireTable(
        exchange=Venue("HYPERLIQUID"),
        vendor=ExchangeVendor(
            "hyperliquid", "Hyperliquid", read_decline=read_decline, declines_with_ok=True, limit_codes=codes("limit")
        ),
        market="{base}",
        market_field="coin",
        time=("publicPostInfo", {"type": "exchangeStatus"}, ("time",)),
        clock_codes=codes("nonce"),
        key_codes=codes("wallet"),
        no_such_order=codes("unknownOid"),
        cannot_cancel=codes("error"),
        not_taken_words=codes("error err"),
        statuses=spell(
            OrderStatus, "OPEN:open|triggered; FILLED:filled; CANCELED:canceled|scheduledCancel; REJECTED:rejected"
        ),
        types=spell(
            OrderType,
            "MARKET:Market; LIMIT:Limit; STOP_MARKET:Stop Market|Stop Limit; "
            "TAKE_PROFIT_MARKET:Take Profit Market|Take Profit Limit",
        ),
        sides={"B": w.BUY, "A": w.SELL},
        in_force={w.GTC: "Gtc", w.IOC: "Ioc", w.POST_ONLY: "Alo"},
        read_in_force=spell(TimeInForce, "IOC:Ioc|FrontendMarket|LiquidationMarket; POST_ONLY:Alo"),
        order=fields(
            "client_id:cloid,oid id:oid side:side kind:orderType quantity:origSz price:limitPx trigger:triggerPx "
            "in_force:tif reduce_only:reduceOnly status:status left:sz updated:statusTimestamp reason:status"
        ),
        trade=fields("id:tid order_id:oid side:side quantity:sz price:px fee:fee asset:feeToken maker:crossed at:time"),
        maker="False",
        page=500,
        trades_window=90 * DAY_MS,
        funding_id="time",
        payment=fields("amount:delta.usdc at:time name:delta.coin"),
        position=fields(
            "name:coin amount:szi entry:entryPx leverage:leverage.value margin:marginUsed liquidation:liquidationPx"
        ),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._assets: dict[str, tuple[int, int]] = {}
        """Number and decimals of the size, by the coin."""
        self._nonce = 0

    def name(self, symbol: Symbol) -> str:
        return K + symbol.base.removeprefix(MANY) if symbol.base.startswith(MANY) else symbol.base

    def spell_id(self, client_id: ClientId) -> str:
        """As the exchange has it."""
        ours = OURS.fullmatch(client_id)
        return client_id if ours is None else OUR_CLOID + ours[1]

    async def info(self, kind: str, what: str, **params: object) -> VendorJson:
        return await self.read("publicPostInfo", what, type=kind, **params)

    def ask_of_user(self, kind: str, what: str, **params: object) -> Question:
        return Question("publicPostInfo", what, {"type": kind, "user": self.account, **params})

    @property
    def account(self) -> str:
        return str(self._client.opened.walletAddress).lower()

    def find_agent(self) -> str:
        """The address of the key. `Refused` for the account's own: it may withdraw."""
        opened = self._client.opened
        agent = str(opened.eth_get_address_from_private_key(opened.privateKey)).lower()
        if agent == self.account:
            raise Refused("The key of Hyperliquid is the account's main key; set that of an agent (API wallet).")
        return agent

    def sign(self, action: Mapping[str, object]) -> Callable[[], Params]:
        """An action with its signature, which ends soon: before its reply is given up."""

        def build() -> Params:
            self.find_agent()
            self._nonce = max(self._nonce + 1, self._client.now())
            expires = self._nonce + ORDER_WINDOW
            signature = self._client.opened.sign_l1_action(dict(action), self._nonce, None, expires)
            return {"action": action, "nonce": self._nonce, "signature": signature, "expiresAfter": expires}

        return build

    def row_of(self, answer: VendorJson) -> VendorJson | None:
        """An order with what became of it, as one row."""
        row = answer.child("order")
        order = row.child("order").value
        ended = {"status": row.text("status"), "statusTimestamp": row.moment("statusTimestamp")}
        return VendorJson(row.what, {**order, **ended} if isinstance(order, dict) else None)

    def row_id(self, row: VendorJson, field: str) -> str:
        """A payment has no id but its hour and its coin."""
        return f"{row[field]}-{row.child('delta').text('coin')}" if "delta" in row else super().row_id(row, field)

    def turn_page(self, params: Mapping[str, object], answer: VendorJson, rows: Sequence[VendorJson]) -> Params | None:
        if "startTime" not in params or len(rows) < self._page:
            return None
        return {**params, "startTime": max(row.moment("time") for row in rows)}

    async def read_rights(self) -> tuple[bool, bool, bool, bool]:
        answer = await self.info("userRole", "permissions", user=self.find_agent())
        role = answer.text("role")
        trades = role == "agent" and answer.child("data").text("user").lower() == self.account
        isolated = all(row.child("leverage").text("type") == "isolated" for row in await self.position_rows())
        return trades, role in WITHDRAWING, True, isolated

    async def prepare(self, order: OrderRequest, name: str) -> None:
        settings = (await self.info("activeAssetData", "leverage", user=self.account, coin=name)).child("leverage")
        if settings.text("type") != "isolated" or settings.whole("value") != order.leverage:
            number, _ = await self.read_asset(name)
            action = {"type": "updateLeverage", "asset": number, "isCross": False, "leverage": order.leverage}
            await self._client.send("privatePostExchange", "leverage", self.sign(action))

    async def balance_rows(self) -> list[VendorJson]:
        return [await self.info("clearinghouseState", "balances", user=self.account)]

    async def balances(self) -> dict[str, Holding]:
        (state,) = await self.balance_rows()
        total = state.child("marginSummary").decimal("accountValue")
        for row in state.children("assetPositions"):
            total -= row.child("position").decimal("unrealizedPnl")
        return {self.wire.asset: Holding(total, min(state.decimal("withdrawable"), total))}

    async def position_rows(self) -> list[VendorJson]:
        (state,) = await self.balance_rows()
        return [row.child("position") for row in state.children("assetPositions")]

    def ask_for_listings(self, name: str | None) -> Question:
        return Question("publicPostInfo", "filters", {"type": "meta"})

    async def read_listings(self, name: str | None = None) -> list[Listing]:
        """Prices have five digits: the tick goes with the price."""
        universe = (await self.ask(self.ask_for_listings(name))).children("universe")
        self._assets = {row.text("name"): (place, row.whole("szDecimals")) for place, row in enumerate(universe)}
        prices = await self.info("allMids", "prices")
        listings = []
        for row in universe:
            coin, decimals = row.text("name"), row.whole("szDecimals")
            if name not in (None, coin) or coin not in prices:
                continue
            base = MANY + coin.removeprefix(K) if coin.startswith(K) and coin[1:].isupper() else coin
            tick, lot = _find_tick(prices.decimal(coin) * TICK_RANGE, decimals), Decimal(1).scaleb(-decimals)
            least, delisted = Decimal(str(self.exchange.least_notional)), "isDelisted" in row and row.flag("isDelisted")
            listings.append(Listing(coin, base, self.wire.asset, tick, lot, lot, MOST, least, not delisted))
        return listings

    def fit(self, filters: Filters, order: OrderRequest) -> Filters:
        """A price is judged by its own digits, wherever the market is by now."""
        price, decimals = order.price or order.trigger, -filters.lot.adjusted()
        return filters if price is None else filters.model_copy(update={"tick": _find_tick(price, decimals)})

    async def read_asset(self, name: str) -> tuple[int, int]:
        if name not in self._assets:
            await self.read_listings(name)
        if name not in self._assets:
            raise Malformed(f"Hyperliquid does not list {name}")
        return self._assets[name]

    async def read_touch(self, name: str) -> tuple[Decimal, Decimal, Decimal, Millis]:
        number, _ = await self.read_asset(name)
        book = await self.info("l2Book", "book", coin=name)
        mark = (await self.info("metaAndAssetCtxs", "mark")).child(1).child(number).decimal("markPx")
        bid, ask = (book.child("levels").child(side).child(0).decimal("px") for side in (0, 1))
        return bid, ask, mark, book.moment("time")

    async def ask_to_place(self, order: OrderRequest, name: str, good_till: Millis | None) -> Question:
        number, decimals = await self.read_asset(name)
        worse, buys = 1 + TAKE_BOUND * order.side.sign, order.side is w.BUY
        kind: dict[str, object] = {"limit": {"tif": self.wire.in_force[order.time_in_force]}}
        if order.trigger is not None:
            tpsl, trigger = "sl" if order.type is w.STOP else "tp", _spell_price(order.trigger, decimals)
            price, kind = order.trigger * worse, {"trigger": {"isMarket": True, "triggerPx": trigger, "tpsl": tpsl}}
        elif order.price is not None:
            price = order.price
        else:
            quote = await self.quote(order.symbol)
            price, kind = (quote.ask if buys else quote.bid) * worse, {"limit": {"tif": "Ioc"}}
        row = {
            "a": number,
            "b": buys,
            "p": _spell_price(price, decimals),
            "s": f"{order.quantity.normalize():f}",
            "r": order.reduce_only,
            "t": kind,
            "c": self.spell_id(order.client_id),
        }
        action = {"type": "order", "orders": [row], "grouping": "na"}
        return Question("privatePostExchange", "order", self.sign(action))

    def ask_for_order(self, name: str, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        oid = int(client_id) if client_id.isdigit() else self.spell_id(client_id)
        return [self.ask_of_user("orderStatus", "order", oid=oid)]

    def ask_to_cancel(self, name: str, client_id: ClientId, kind: OrderType, venue_id: str) -> Question:
        number, _ = self._assets[name]
        action: dict[str, object] = {"type": "cancelByCloid"}
        action["cancels"] = [{"asset": number, "cloid": self.spell_id(client_id)}]
        if client_id.isdigit():
            action = {"type": "cancel", "cancels": [{"a": number, "o": int(client_id)}]}
        return Question("privatePostExchange", "cancel", self.sign(action))

    @report_unreadable
    async def cancel(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None = None) -> Order:
        await self.read_asset(self.name(symbol))
        return await super().cancel(symbol, client_id, kind)

    def ask_for_open(self, name: str) -> list[Question]:
        return [self.ask_of_user("frontendOpenOrders", "open orders")]

    async def parse_order(self, row: VendorJson, *, listed: bool = False) -> Order:
        if listed and isinstance(row.value, dict):
            row = VendorJson(row.what, {**row.value, "status": "open", "statusTimestamp": row.moment("timestamp")})
        cells = Cells(row, self.wire.order)
        client_id = _read_cloid(cells.word("client_id"))
        return await self.build_order(cells, client_id=client_id)

    def status_of(self, cells: Cells) -> OrderStatus:
        """`reduceOnlyCanceled`, `tickRejected` and the like end as they mean."""
        word = cells.word("status").lower()
        meant = next((status for end, status in self.wire.statuses.items() if word.endswith(end)), None)
        return meant or super().status_of(cells)

    def ask_for_trades(self, name: str, low: Millis, high: Millis) -> Question:
        return self.ask_of_user("userFillsByTime", "trades", startTime=low, endTime=high)

    async def read_trades(self, name: str, low: Millis, high: Millis) -> list[VendorJson]:
        return [row for row in await super().read_trades(name, low, high) if row.text("coin") == name]

    def ask_for_order_trades(self, name: str, venue_id: str) -> Question:
        return self.ask_of_user("userFills", "trades")  # the newest of the account

    def parse_trade(self, symbol: Symbol, row: VendorJson) -> Trade:
        forced = row.child("liquidation").maybe_text("liquidatedUser") if "liquidation" in row else None
        cloid = row.maybe_text("cloid") or ""
        liquidated = forced is not None and forced.lower() == self.account
        return super().parse_trade(symbol, row)._replace(client_id=_read_cloid(cloid), liquidation=liquidated)

    async def find_owner(self, name: str, trade: Trade) -> ClientId:
        answer = await self.info("orderStatus", "order", user=self.account, oid=int(trade.order_id))
        order = answer.child("order").child("order")
        return trade.order_id if order["cloid"] is None else _read_cloid(order.text("cloid"))

    def ask_for_funding(self, name: str, low: Millis, high: Millis) -> Question:
        return self.ask_of_user("userFunding", "funding", startTime=low, endTime=high)


def _find_tick(price: Decimal, decimals: int) -> Decimal:
    by_digits = Decimal(1).scaleb(price.adjusted() - SIGNIFICANT + 1)
    return min(max(by_digits, Decimal(1).scaleb(decimals - DECIMALS)), Decimal(1))


def _spell_price(price: Decimal, decimals: int) -> str:
    return f"{price.quantize(_find_tick(price, decimals)).normalize():f}"


def _read_cloid(cloid: str) -> ClientId:
    return OUR_PREFIX + cloid.removeprefix(OUR_CLOID) if cloid.startswith(OUR_CLOID) else cloid
