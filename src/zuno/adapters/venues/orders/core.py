"""An account at an exchange that takes orders: the same steps at every venue, over the table of its wire.

A venue is a subclass of `VenueAccount` in `wires/`: a `WireTable` of names and numbers, and small methods where a name
is not enough. Rows are the exchange's own; what leaves here is in the port's words.
"""

import functools
import time
from collections.abc import Callable, Coroutine, Sequence
from decimal import Decimal
from typing import Any, Final, ParamSpec, TypeVar

from pydantic import ValidationError

from zuno.adapters.http import RateLimited
from zuno.adapters.venues.exchange import VenueDeclined
from zuno.adapters.venues.orders.client import TradingClient
from zuno.adapters.venues.orders.reading import VenueWire
from zuno.adapters.venues.orders.wire import Cells, Holding, Trade, clean_id
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.backoff import Backoff
from zuno.kernel.errors import Malformed, NotFound, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Market, Symbol
from zuno.trading.model.known import pick
from zuno.trading.model.market import Side
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
from zuno.trading.rules.execution_styles import CONDITIONAL, find_filter_breach

UNAUTHORIZED, FORBIDDEN = 401, 403
CLOCK_SECONDS: Final = 10.0
"""For so long an exchange is waited for when it is asked for its time: stops are behind that question."""
FILTERS_AGE: Final = 60.0
"""Seconds for which filters are taken as fresh when an order is checked."""
ADMITTED_FOR: Final = 600.0
"""Seconds for which the keys and the account's modes are taken as they were found."""
NEVER_PLACED: Final = "none"
"""The venue's id of an order that it did not take."""
FILL_CHECKS: Final = 4
"""How often the fills of an order are asked for until they add up to what the order says."""
FRESH_ORDER: Final = 600_000
"""For so long after its last change an order's fills may not be listed yet; those of old ones are listed no more."""
SETTLE_CHECKS: Final = 5
ORDER_WINDOW: Final = 5_000
"""Milliseconds after which the exchange takes an order no more: less than we wait for its reply, so that an order
whose reply did not come is there when it is looked up, or never will be."""
LISTED_WITHIN: Final = 15_000
"""For so long the exchange may not find an order that it took, or list a transfer that it made."""

P = ParamSpec("P")
R = TypeVar("R")


def report_unreadable(method: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """An unreadable answer is `Unavailable`: what happened is unknown. Rejected keys are `Refused`."""

    @functools.wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await method(*args, **kwargs)
        except Malformed as error:
            raise Unavailable(str(error)) from error
        except ValidationError as error:
            wrong = ", ".join(".".join(map(str, part["loc"])) for part in error.errors(include_input=False))
            raise Unavailable(f"The exchange's answer has impossible values: {wrong} of {error.title}") from None
        except VenueDeclined as error:
            account = args[0]
            assert isinstance(account, VenueAccount)
            shut_out = error.status in (UNAUTHORIZED, FORBIDDEN) and error.code not in account.wire.clock_codes
            if shut_out or error.code in account.wire.key_codes:
                raise Refused(f"{account.exchange.label} rejects the keys: {error.reason} ({error.code})") from error
            raise Unavailable(str(error)) from error

    return call


class VenueAccount(VenueWire):
    """One account and the symbols that are traded there. Nothing is opened before the keys and the account's settings
    were checked; orders that reduce a position are sent all the same, and do not wait for filters."""

    simulated = False

    def __init__(self, client: TradingClient, symbols: Sequence[Symbol], page: int = 0) -> None:
        super().__init__(client, symbols, page)
        self.paper = client.demo
        """Demo trading is no money, at the exchange's own matching engine."""
        self._symbols = tuple(symbols)
        self._admitted: float | None = None
        self._filters: dict[Symbol, tuple[float, Filters]] = {}
        self._reducing: set[ClientId] = set()
        """Orders that reduce a position and may have been sent from here."""
        self._confirmed: dict[str, tuple[Decimal, Decimal]] = {}
        """How much of an order the venue's own list of trades has shown, and its value, by the order's id."""
        self._client_ids: dict[tuple[Symbol, str], ClientId] = {}
        self._repeated: dict[ClientId, Millis] = {}
        """Ids that the venue refused as taken and does not show, and since when."""

    # -- the port

    @report_unreadable
    async def now(self) -> Millis:
        return await self._client.sync_clock(CLOCK_SECONDS)

    @report_unreadable
    async def rights(self) -> AccountRights:
        names = ("can_trade", "can_withdraw", "one_way", "isolated", "can_transfer")
        rights = zip(names, await self.read_rights(), strict=False)
        return AccountRights(exchange=self.exchange, paper=self.paper, **dict(rights))

    @report_unreadable
    async def list_markets(self) -> tuple[Market, ...]:
        """What the venue lists in its currency, for the catalogue. No list has fees: those are the venue's usual ones.
        Keys are not needed."""
        usual, markets = pick(self.exchange, "maker", "taker", "funding_hours"), []
        for listing in await self.read_listings():
            sizes = {name: float(size) for name, size in pick(listing, "tick", "lot", "min_notional").items()}
            own = {} if listing.funding_hours is None else {"funding_hours": listing.funding_hours}
            named = pick(listing, "base", "quote", "trading") | {"contract_size": float(listing.contract)}
            markets.append(Market(venue=self.exchange, **{**usual, **sizes, **named, **own}))
        return tuple(markets)

    @report_unreadable
    async def filters(self, symbol: Symbol) -> Filters:
        name = self.name(symbol)
        try:
            listed = next((market for market in await self.read_listings(name) if market.name == name), None)
        except VenueDeclined as declined:
            if declined.code not in self.wire.no_such_market:
                raise
            listed = None
        if listed is None:
            raise NotFound(f"{self._client.name} has no {name}.")
        if listed.quote != self.wire.asset:
            raise NotFound(
                f"{name} is priced in {listed.quote}; orders at {self._client.name} are in {self.wire.asset}."
            )
        rules = pick(listed, "tick", "lot", "min_quantity", "max_quantity", "min_notional", "trading")
        filters = Filters(exchange=self.exchange, symbol=symbol, holds_stops=self.exchange.holds_stops, **rules)
        self._filters[symbol] = time.monotonic(), filters
        return filters

    @report_unreadable
    async def quote(self, symbol: Symbol) -> VenueQuote:
        """The age is by the exchange's clock, which is asked again before a price is called old."""
        bid, ask, mark, at = await self.read_touch(self.name(symbol))
        quote = VenueQuote(exchange=self.exchange, symbol=symbol, bid=bid, ask=ask, mark=mark, at=at)
        most = self.wire.stale_quote
        if self._client.now() - quote.at > most and (age := await self.now() - quote.at) > most:
            raise Unavailable(f"{self._client.name}'s newest price of {symbol} is {age // 1_000} s old")
        return quote

    @report_unreadable
    async def place(self, order: OrderRequest, good_till: Millis | None = None, *, unread: bool = False) -> Order:
        if order.exchange is not self.exchange:
            raise Refused(f"An order of {order.exchange} is no order of {self.exchange}.")
        if not order.reduce_only and (other := self._names.get(self.name(order.symbol))) not in (None, order.symbol):
            return self._reject(order, f"it is traded as {other} here until the desk is started again")
        async with self._client.one_at_a_time(order.client_id):
            known = await self._look_up(order, unread=unread)
            if known is not None:
                return known
            breach = await self._find_breach(order)
            if breach is not None:
                return self._reject(order, breach)
            if order.reduce_only:
                self._reducing.add(order.client_id)
            else:
                await self._admit()
            return await self._make(order, good_till)

    @report_unreadable
    async def find(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None = None) -> Order | None:
        self._names.setdefault(self.name(symbol), symbol)
        for question in self.ask_for_order(self.name(symbol), client_id, kind):
            try:
                answer = await self.ask(question)
            except VenueDeclined as declined:
                if declined.code not in self.wire.no_such_order:
                    raise
                continue
            row = self.row_of(answer)
            if row is not None:
                found = await self._read_order(row)
                if (found.request.symbol, found.request.client_id) != (symbol, client_id):
                    raise Malformed(f"{self._client.name} answered with another order than was asked for")
                return found
        return None

    @report_unreadable
    async def cancel(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None = None) -> Order:
        missing = NotFound(f"{self._client.name} has no order {client_id} of {self.name(symbol)}.")
        venue_id = ""
        if kind is None or self.wire.cancels_by_id:
            standing = await self.find(symbol, client_id, kind)
            if standing is None:
                raise missing
            if standing.status.final:
                return standing
            kind, venue_id = standing.request.type, standing.venue_id
        try:
            await self._client.send(*self.ask_to_cancel(self.name(symbol), client_id, kind, venue_id))
        except VenueDeclined as declined:
            if declined.code not in self.wire.cannot_cancel and declined.status not in self.wire.not_taken_statuses:
                raise
        ended = await self._find_settled(symbol, client_id, kind)
        if ended is None:
            raise missing
        return ended

    @report_unreadable
    async def open_orders(self) -> tuple[Order, ...]:
        orders: dict[str, Order] = {}
        for symbol in self._symbols:
            for question in self.ask_for_open(self.name(symbol)):
                for row in await self.read_pages(question):
                    if row.text(self.wire.market_field) != self.name(symbol):
                        continue
                    order = await self._read_order(row, listed=True)
                    if not order.status.final:
                        orders[order.venue_id] = order
        return tuple(sorted(orders.values(), key=lambda order: (order.updated, order.request.client_id)))

    @report_unreadable
    async def fills(self, symbol: Symbol, since: Millis) -> tuple[Fill, ...]:
        now = await self._client.read_time()
        await self.unit_of(self.name(symbol))
        trades: dict[str, Trade] = {}
        for low in range(max(since, now - self.wire.trades_kept), max(since, now) + 1, self.wire.trades_window):
            high = Millis(low + self.wire.trades_window - 1)
            for row in await self.read_trades(self.name(symbol), Millis(low), high):
                trade = self.parse_trade(symbol, row)
                if low <= trade.at <= high:
                    trades[trade.id] = trade
        oldest_first = sorted(trades.values(), key=lambda trade: (trade.at, len(trade.id), trade.id))
        return tuple([await self._fill(symbol, trade) for trade in oldest_first])

    async def order_fills(self, order: Order) -> tuple[Fill, ...] | None:
        return None

    @report_unreadable
    async def funding(self, symbol: Symbol, since: Millis) -> tuple[FundingPayment, ...]:
        if not self.wire.funding_id:
            return ()
        now = await self._client.read_time()
        payments: dict[str, FundingPayment] = {}
        window = self.wire.funding_window
        for low in range(max(since, now - self.wire.trades_kept), max(since, now) + 1, window):
            high = Millis(min(low + window - 1, max(since, now)))
            question = self.ask_for_funding(self.name(symbol), Millis(low), high)
            for row in await self.read_pages(question, self.wire.funding_id):
                cells = Cells(row, self.wire.payment)
                if "asset" in cells and cells.word("asset") != self.wire.asset:
                    raise Malformed(f"{self._client.name} answered with another income than was asked for")
                id, at = self.row_id(row, self.wire.funding_id), cells.moment("at")
                if cells.word("name") == self.name(symbol) and at >= since:
                    amount = cells.total("amount")
                    payments[id] = FundingPayment(id=id, exchange=self.exchange, symbol=symbol, amount=amount, at=at)
        return tuple(sorted(payments.values(), key=lambda payment: (payment.at, payment.id)))

    @report_unreadable
    async def positions(self) -> tuple[VenuePosition, ...]:
        if self.wire.spot:
            held = await self.balances()
            coins = [(symbol, held[symbol.base]) for symbol in self._symbols if symbol.base in held]
            positions = [
                self._build_position(symbol, coin.total, coin.cost) for symbol, coin in coins if coin.total > 0
            ]
        else:
            rows = [Cells(row, self.wire.position) for row in await self.position_rows()]
            ours = [cells for cells in rows if cells.total("amount") and cells.word("name") in self._names]
            positions = [await self._parse_position(cells.word("name"), cells) for cells in ours]
        return tuple(sorted(positions, key=lambda position: position.symbol))

    async def _parse_position(self, name: str, cells: Cells) -> VenuePosition:
        if "mode" in cells and cells.word("mode") != self.wire.one_way:
            raise self.refuse_hedge_mode()
        amount = cells.total("amount") * await self.unit_of(name)
        amount *= cells.choose("side", self.wire.sides).sign if "side" in cells else 1
        leverage, margin = await self.read_leverage(name, cells), max(cells.total("margin"), ZERO)
        entry, liquidation = cells.require("entry"), cells.number("liquidation")
        return self._build_position(self._names[name], amount, entry, liquidation, leverage, margin)

    @report_unreadable
    async def balance(self) -> Balance:
        """A wallet that never held the currency is not in the list."""
        holding = (await self.balances()).get(self.wire.asset, Holding(ZERO, ZERO))
        return Balance(exchange=self.exchange, total=holding.total, available=holding.free)

    async def close(self) -> None:
        await self._client.close()

    async def fresh_filters(self, symbol: Symbol) -> Filters:
        known = self._filters.get(symbol)
        if known is None or time.monotonic() - known[0] > FILTERS_AGE:
            return await self.filters(symbol)
        return known[1]

    # -- placing

    async def _make(self, order: OrderRequest, good_till: Millis | None) -> Order:
        try:
            if not order.reduce_only and not self.wire.spot:
                await self.prepare(order, self.name(order.symbol))
            question = await self.ask_to_place(order, self.name(order.symbol), good_till)
            answer = await self._client.send(*question)
        except VenueDeclined as declined:
            if declined.code in self.wire.key_codes:
                self._admitted = None
            repeated = self.wire.is_duplicate(declined.code, declined.reason)
            if not repeated and not self._is_not_taken(declined):
                raise
            look_up = self._find_settled if repeated else self.find
            standing = await look_up(order.symbol, order.client_id, order.type)
            if standing is None and repeated and not await self._has_failed(order):
                raise Unavailable(
                    f"{self._client.name} has the order {order.client_id} and does not show it"
                ) from declined
            return standing or self._reject(order, f"{declined.reason} ({declined.code})")
        placed = await self.parse_placed(order, answer)
        if placed is None:
            placed = await self._find_settled(order.symbol, order.client_id, order.type)
        if placed is None:
            raise Unavailable(f"{self._client.name} took the order {order.client_id} and does not show it yet")
        return placed.model_copy(update={"request": order})

    async def _has_failed(self, order: OrderRequest) -> bool:
        """Whether an id is taken by an order that failed, where one is never taken twice: no order of it has shown for
        as long as a new one may not be listed."""
        now = await self.now()
        since = self._repeated.setdefault(order.client_id, now)
        return self.wire.ids_once and now - since >= LISTED_WITHIN

    def _is_not_taken(self, declined: VenueDeclined) -> bool:
        if declined.status in self.wire.not_taken_statuses:
            return True
        code = declined.code
        numbered = code.lstrip("-").isdigit() and any(low <= int(code) <= high for low, high in self.wire.not_taken)
        return numbered or code in self.wire.not_taken_words

    async def _find_settled(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None) -> Order | None:
        """An order that takes at once, or that was cancelled, is settled a moment after the answer."""
        for attempt in range(1, SETTLE_CHECKS + 1):
            order = await self.find(symbol, client_id, kind)
            if order is not None and (order.status.final or not order.left or kind in CONDITIONAL):
                return order
            resting = (
                order is not None
                and order.request.type is OrderType.LIMIT
                and order.request.time_in_force is not TimeInForce.IOC
            )
            if attempt == SETTLE_CHECKS or (resting and attempt > 1):
                return order
            await self._client.sleep(Backoff(0.1, 1.0).delay(attempt))
        raise AssertionError

    async def _look_up(self, order: OrderRequest, *, unread: bool) -> Order | None:
        """A reducing order is sent the first time even if it cannot be looked up, where whoever sends it knows that
        `unread` does no harm. Not so where coins are sold and an id may come again: the second sale would be of other
        coins."""
        try:
            return await self.find(order.symbol, order.client_id, order.type)
        except RateLimited:
            raise
        except Unavailable:
            harmful = self.wire.spot and not self.wire.ids_once
            if not (unread and order.reduce_only) or harmful or order.client_id in self._reducing:
                raise
            return None

    async def _find_breach(self, order: OrderRequest) -> str | None:
        """What the filters have against an order. Reducing orders are checked by the last known filters."""
        if self.wire.spot and order.reduce_only and order.side is OrderSide.BUY:
            return "spot holds no position that a purchase could reduce"
        known = self._filters.get(order.symbol)
        if order.reduce_only and known is not None and find_filter_breach(order, self.fit(known[1], order)) is None:
            return None
        try:
            return find_filter_breach(order, self.fit(await self.fresh_filters(order.symbol), order))
        except NotFound as delisted:
            return str(delisted)
        except Unavailable:
            if not order.reduce_only:
                raise
            return None

    def fit(self, filters: Filters, order: OrderRequest) -> Filters:
        """What holds for an order, where that hangs on its price."""
        return filters

    async def _admit(self) -> None:
        if self._admitted is not None and time.monotonic() - self._admitted < ADMITTED_FOR:
            return
        rights, name = await self.rights(), self._client.name
        if rights.can_withdraw:
            raise Refused(f"The keys of {name} may withdraw; make keys that may only trade.")
        if not rights.can_trade:
            raise Refused(f"The keys of {name} may not trade {'spot' if self.wire.spot else 'futures'}.")
        if not rights.one_way:
            raise self.refuse_hedge_mode()
        await self.check_settings()
        self._admitted = time.monotonic()

    def refuse_hedge_mode(self) -> Refused:
        return Refused(f"The account at {self._client.name} is in hedge mode; switch it to one-way mode.")

    def _reject(self, order: OrderRequest, reason: str) -> Order:
        return Order(
            request=order, venue_id=NEVER_PLACED, status=OrderStatus.REJECTED, updated=self._client.now(), reason=reason
        )

    # -- orders and their fills

    async def _read_order(self, row: VendorJson, *, listed: bool = False) -> Order:
        """A conditional order has the status and the fills of the order that it became when it was triggered. No order
        is shown as filled before its trades are listed."""
        order = await self.parse_order(row, listed=listed)
        child = self.child_of(row)
        if child is None:
            return await self._confirm(order)
        sent = self.row_of(await self.ask(child))
        if sent is None:
            raise Malformed(f"{self._client.name} does not have the order that a stop became")
        became = await self._confirm(await self.parse_order(sent))
        self._client_ids[order.request.symbol, became.venue_id] = order.request.client_id
        outcome = pick(became, "status", "filled", "average_price") | {"updated": max(order.updated, became.updated)}
        return order.model_copy(update=outcome)

    async def _confirm(self, order: Order) -> Order:
        """The list of trades may lag behind the order: no order is said to be filled before its fills are there."""
        id, filled = order.venue_id, order.filled
        self._client_ids.setdefault((order.request.symbol, id), order.request.client_id)
        fresh = self._client.now() - order.updated < FRESH_ORDER
        if fresh or (filled and order.average_price is None):
            for attempt in range(1, FILL_CHECKS + 1 if fresh else 2):
                if filled <= self._confirmed.get(id, (ZERO, ZERO))[0]:
                    break
                if attempt > 1:
                    await self._client.sleep(Backoff(0.2, 2.0).delay(attempt - 1))
                question = self.ask_for_order_trades(self.name(order.request.symbol), id)
                rows = await self.read_pages(question, self.wire.trade["id"][0])
                trades = [self.parse_trade(order.request.symbol, row) for row in rows]
                own = [trade for trade in trades if trade.order_id == id]
                value = sum((trade.quantity * trade.price for trade in own), ZERO)
                self._confirmed[id] = sum((trade.quantity for trade in own), ZERO), value
            if fresh and filled > self._confirmed.get(id, (ZERO, ZERO))[0]:
                raise Unavailable(f"{self._client.name}'s trades of order {id} lag behind the order")
        shown, value = self._confirmed.get(id, (ZERO, ZERO))
        if filled and shown and order.average_price is None:
            return order.model_copy(update={"average_price": value / shown})
        return order

    async def _fill(self, symbol: Symbol, trade: Trade) -> Fill:
        """A fee in the base currency is deducted from what was bought: the quantity is what was received, and the fee
        is counted at the fill's price."""
        known = self._client_ids.get((symbol, trade.order_id))
        if known is None:
            owned = trade.client_id.startswith(OUR_PREFIX)
            known = clean_id(trade.client_id if owned else await self.find_owner(self.name(symbol), trade))
            self._client_ids[symbol, trade.order_id] = known
        in_base = self.wire.spot and trade.fee_asset == symbol.base and trade.side is OrderSide.BUY
        foreign = not in_base and trade.fee_asset != self.wire.asset and trade.fee != 0
        return Fill(
            **pick(trade, "id", "side", "price", "maker", "at"),
            client_id=known,
            exchange=self.exchange,
            symbol=symbol,
            quantity=trade.quantity - trade.fee if in_base else trade.quantity,
            fee=trade.fee * trade.price if in_base else ZERO if foreign else trade.fee,
            liquidation=trade.liquidation or known.startswith(self.wire.liquidations or ("\0",)),
            foreign_fee=f"{trade.fee:f} {clean_id(trade.fee_asset)[:16]}" if foreign else "",
            base_fee=trade.fee if in_base else ZERO,
        )

    def _build_position(
        self,
        symbol: Symbol,
        amount: Decimal,
        entry: Decimal | None,
        liquidation: Decimal | None = None,
        leverage: int = 1,
        margin: Decimal = ZERO,
    ) -> VenuePosition:
        """`amount`: below zero is short. An entry or a liquidation price of zero is none."""
        return VenuePosition(
            exchange=self.exchange,
            symbol=symbol,
            side=Side.LONG if amount > 0 else Side.SHORT,
            quantity=abs(amount),
            entry=entry or None,
            leverage=leverage,
            margin=margin,
            liquidation=liquidation if liquidation and liquidation > 0 else None,
        )
