"""Orders at Binance's spot market: what is bought arrives less the fee, and what a stop would sell is locked.

Endpoints: https://developers.binance.com/docs/binance-spot-api-docs/rest-api (general-endpoints, trading-endpoints,
account-endpoints); errors: …/errors. Stops wait for the last price and keep their ids. Trades are listed by the day, or
by their number.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Final

from zuno.adapters.venues.orders import wire as w
from zuno.adapters.venues.orders.core import LISTED_WITHIN, ORDER_WINDOW
from zuno.adapters.venues.orders.wire import Question, codes, fields, spell
from zuno.adapters.venues.orders.wires.binance_usdm import BinanceAccount, BinanceOrders
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.canonical import digest
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import OrderRequest, OrderStatus, OrderType, TimeInForce

BY_DAYS: Final = 7 * DAY_MS
"""Trades of no longer ago are asked for day by day; of longer ago, from the first one on."""
LISTED_MS: Final = ORDER_WINDOW + 1_000 + LISTED_WITHIN
"""For so long a transfer that was sent may be on its way, and then not be listed."""
MAKER: Final = "LIMIT_MAKER"
KINDS: Final = {w.MARKET: "MARKET", w.LIMIT: "LIMIT", w.STOP: "STOP_LOSS", w.TARGET: "TAKE_PROFIT"}


class BinanceSpotOrders(BinanceAccount):
    wire = replace(
        BinanceOrders.wire,
        exchange=Venue("BINANCE-SPOT"),
        vendor=replace(BinanceOrders.wire.vendor, ccxt_id="binance", name="Binance spot", pace_ms=None),
        time=("publicGetTime", {}, ("serverTime",)),
        clock_codes=codes("-1021"),
        not_taken=((-1199, -1100), (-1014, -1013), (-2010, -2010)),
        statuses={**BinanceOrders.wire.statuses, **spell(OrderStatus, "OPEN:PENDING_NEW|PENDING_CANCEL")},
        types=spell(
            OrderType,
            "MARKET:MARKET; LIMIT:LIMIT|LIMIT_MAKER; STOP_MARKET:STOP_LOSS|STOP_LOSS_LIMIT; "
            "TAKE_PROFIT_MARKET:TAKE_PROFIT|TAKE_PROFIT_LIMIT",
        ),
        sides={**BinanceOrders.wire.sides, "True": w.BUY, "False": w.SELL},
        read_in_force=spell(TimeInForce, "IOC:IOC|FOK; POST_ONLY:LIMIT_MAKER"),
        order=fields(
            "client_id:clientOrderId id:orderId side:side kind:type quantity:origQty price:price trigger:stopPrice "
            "in_force:timeInForce status:status filled:executedQty funds:cummulativeQuoteQty updated:updateTime"
        ),
        algo={},
        listing={
            **BinanceOrders.wire.listing,
            **fields("notional:filters.NOTIONAL.minNotional state:status,isSpotTradingAllowed"),
        },
        trading=("TRADING", "True"),
        trade={**BinanceOrders.wire.trade, **fields("side:isBuyer maker:isMaker")},
        trades_window=90 * DAY_MS,
        funding_id="",
        balance=fields("asset:asset total:free,locked free:free"),
        liquidations=(),
    )
    public, private, trades_endpoint = "public", "private", "privateGetMyTrades"
    fees_in_bnb = ("sapiGetBnbBurn", "spotBNBBurn")

    async def read_rights(self) -> tuple[bool, ...]:
        trades, withdraws, transfers = True, False, True
        if not self.paper:
            key = await self.read("sapiGetAccountApiRestrictions", "permissions")
            trades, withdraws = key.flag("enableSpotAndMarginTrading"), key.flag("enableWithdrawals")
            transfers = key.flag("permitsUniversalTransfer")
        account = await self.read("privateGetAccount", "account")
        return trades and account.flag("canTrade"), withdraws, True, True, transfers

    async def read_touch(self, name: str) -> tuple[Decimal, Decimal, Decimal, Millis]:
        row = await self.read("publicGetTicker24hr", "touch", symbol=name)
        return row.decimal("bidPrice"), row.decimal("askPrice"), row.decimal("lastPrice"), row.moment("closeTime")

    async def ask_to_place(self, order: OrderRequest, name: str, good_till: Millis | None) -> Question:
        post_only = order.time_in_force is w.POST_ONLY and order.price is not None
        body = self.build_body(order, name, MAKER if post_only else KINDS[order.type])
        if order.price is not None:
            body["price"] = f"{order.price:f}"
            body |= {} if post_only else {"timeInForce": self.wire.in_force[order.time_in_force]}
        if order.trigger is not None:
            body["stopPrice"] = f"{order.trigger:f}"
        return Question("privatePostOrder", "order", body | {"newClientOrderId": order.client_id})

    async def read_trades(self, name: str, low: Millis, high: Millis) -> list[VendorJson]:
        now = self._client.now()
        if now - low > BY_DAYS:
            return await self.read_trades_from(name, {"fromId": 0}, high)
        rows = []
        for start in range(low, max(low, min(high, now)) + 1, DAY_MS):
            end = Millis(start + DAY_MS - 1)
            rows += await self.read_trades_from(name, {"startTime": start, "endTime": end}, end)
        return rows

    async def balance_rows(self) -> list[VendorJson]:
        return (await self.read("privateGetAccount", "balances")).children("balances")


class BinanceFunds:
    """Money from the spot wallet into the margin of a futures position (…/wallet/asset/user-universal-transfer,
    …/usds-margined-futures/trade/rest-api/Modify-Isolated-Position-Margin). Neither takes an id: by its last digits an
    amount says what it was moved for, and it is looked for before it is sent."""

    def __init__(self, spot: BinanceSpotOrders, futures: BinanceOrders, listed_ms: int = LISTED_MS) -> None:
        self._spot, self._futures, self._listed_ms = spot, futures, listed_ms
        self._missed: dict[tuple[str, Decimal], Millis] = {}
        """Since when something is not listed, or was sent."""

    async def add_margin(self, key: str, source: Venue, target: Venue, symbol: Symbol, amount: Decimal) -> Decimal:
        if (source, target) != (self._spot.exchange, self._futures.exchange):
            raise Refused(f"No money can be moved from {source} to {target} here.")
        marked = amount - (1 + int(digest(key.encode())[:8], 16) % 999_999) * Decimal("1e-8")
        wallets: dict[str, object] = {"type": "MAIN_UMFUTURE", "asset": target.quote}
        sent = {"amount": f"{marked:f}"}
        listing = Question("sapiGetAssetTransfer", "transfers", {**wallets, "size": 100})
        await self._move_once(
            self._spot, Question("sapiPostAssetTransfer", "transfer", wallets | sent), listing, marked
        )
        if not any(held.symbol == symbol for held in await self._futures.positions()):
            return marked
        margin: dict[str, object] = {"symbol": self._futures.name(symbol), "type": 1}
        listing = Question("fapiPrivateGetPositionMarginHistory", "margin changes", margin)
        try:
            question = Question("fapiPrivatePostPositionMargin", "margin", margin | sent)
            await self._move_once(self._futures, question, listing, marked)
        except Refused as declined:  # the money has left the other wallet
            raise Unavailable(str(declined)) from declined
        return marked

    async def _move_once(self, account: BinanceAccount, question: Question, listing: Question, marked: Decimal) -> None:
        """What another process sent may be listed a little later: it is looked for during that time, and then sent."""
        try:
            listed = await account.ask(listing)
        except Refused as declined:  # nothing is known of what was sent before
            raise Unavailable(str(declined)) from declined
        rows = listed.items() if isinstance(listed.value, list) else listed.children("rows") if "rows" in listed else []
        if any(row.decimal("amount") == marked for row in rows):
            return
        now, place = await account.now(), (question.endpoint, marked)
        if now - self._missed.setdefault(place, now) < self._listed_ms:
            raise Unavailable(f"whether {marked} became margin before is not sure yet")
        self._missed[place] = now
        await account.send(question)
