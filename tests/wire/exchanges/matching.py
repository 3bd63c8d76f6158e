"""A small matching engine: a touch with sizes per symbol, resting and conditional orders, one account with one wallet.

Whoever places an order takes what stands at the touch; what rests is filled when the touch reaches it. The rest of the
market is the test: it moves the touch and the mark. Spot markets and perpetuals may share the wallet; quantities are in
the base currency whatever the wire counts in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from zuno.kernel.units import Millis

ZERO = Decimal(0)
BUY, SELL = "BUY", "SELL"
OPEN = ("NEW", "PARTIALLY_FILLED")
PLENTY = Decimal(1_000_000)


class Rejected(Exception):
    """Why the engine does not take an order, in a word the wire layers translate."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass
class Market:
    """A symbol: its rules and its touch."""

    symbol: str
    """By which the engine knows it: unique in the wallet."""
    tick: Decimal
    lot: Decimal
    min_quantity: Decimal
    max_quantity: Decimal
    min_notional: Decimal
    bid: Decimal
    ask: Decimal
    mark: Decimal
    bid_size: Decimal = PLENTY
    ask_size: Decimal = PLENTY
    trading: bool = True
    spot: bool = False
    """What is bought is held, and nothing can be owed."""
    base: str = ""
    quote: str = "USDT"
    contract: Decimal = Decimal(1)
    """Base currency in one of what the wire counts in."""
    wire_name: str = ""
    fees: tuple[Decimal, Decimal] | None = None
    """Maker's and taker's, where they are not the account's."""

    @property
    def name(self) -> str:
        """As the wire calls it."""
        return self.wire_name or self.symbol


def build_market(symbol: str, price: str, tick: str, lot: str, least: str, most: str = "120", **more: Any) -> Market:
    """A market whose touch is one tick around a price; the least quantity is one lot."""
    at, step, size = Decimal(price), Decimal(tick), Decimal(lot)
    return Market(symbol, step, size, size, Decimal(most), Decimal(least), at - step, at + step, at, **more)


@dataclass
class FakeOrder:
    id: int
    client_id: str
    symbol: str
    side: str
    type: str
    quantity: Decimal
    price: Decimal | None
    time_in_force: str
    reduce_only: bool
    created: Millis
    updated: Millis
    status: str = "NEW"
    filled: Decimal = ZERO
    funds: Decimal = ZERO
    fee: Decimal = ZERO
    good_till: int = 0
    reason: str = ""
    """Why it ended without being filled, in the engine's words."""
    algo: int | None = None
    """The conditional order that became this one."""

    @property
    def average(self) -> Decimal:
        return self.funds / self.filled if self.filled else ZERO

    @property
    def left(self) -> Decimal:
        return self.quantity - self.filled

    @property
    def sign(self) -> int:
        return 1 if self.side == BUY else -1


@dataclass
class FakeAlgo:
    """A conditional order that waits for the mark."""

    id: int
    client_id: str
    symbol: str
    side: str
    type: str
    quantity: Decimal
    trigger: Decimal
    reduce_only: bool
    working_type: str
    created: Millis
    updated: Millis
    close_position: bool = False
    status: str = "NEW"
    child: int | None = None
    reason: str = ""
    price: Decimal | None = None
    """The worst it may be filled at, where the wire asks for one."""

    def triggered_by(self, mark: Decimal) -> bool:
        falling = (self.type == "STOP_MARKET") == (self.side == SELL)
        return mark <= self.trigger if falling else mark >= self.trigger


@dataclass(frozen=True)
class FakeTrade:
    id: int
    order: int
    symbol: str
    side: str
    quantity: Decimal
    price: Decimal
    fee: Decimal
    maker: bool
    at: Millis
    fee_currency: str = ""
    pnl: Decimal = ZERO
    """What it realised."""
    before: Decimal = ZERO
    """Position before it."""
    liquidation: bool = False


@dataclass(frozen=True)
class FakeFunding:
    id: int
    symbol: str
    amount: Decimal
    """Above zero: received."""
    at: Millis
    rate: Decimal
    position: Decimal
    mark: Decimal


@dataclass
class FakePosition:
    amount: Decimal = ZERO
    entry: Decimal = ZERO
    added: Decimal = ZERO
    """Margin beyond what the leverage asks, of each unit."""


@dataclass
class Engine:
    """One account at one exchange."""

    clock: Callable[[], Millis]
    markets: dict[str, Market]
    cash: Decimal
    maker_fee: Decimal
    taker_fee: Decimal
    fee_in_base: bool = False
    """Spot: the fee of what is bought is kept back from it."""
    keeps_ids: bool = False
    """A conditional order that is triggered keeps its id and its client id."""
    unique_ids: bool = False
    """A client id is never taken twice; else not while an order of it is open."""
    stops_lock: bool = False
    """Spot: a conditional order to sell locks what it would sell."""
    orders: dict[int, FakeOrder] = field(default_factory=dict)
    algos: dict[int, FakeAlgo] = field(default_factory=dict)
    trades: list[FakeTrade] = field(default_factory=list)
    funding: list[FakeFunding] = field(default_factory=list)
    positions: dict[str, FakePosition] = field(default_factory=dict)
    leverage: dict[str, int] = field(default_factory=dict)
    isolated: set[str] = field(default_factory=set)
    """Symbols whose margin is."""
    last_id: int = 1_000

    def next_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def position(self, symbol: str) -> FakePosition:
        return self.positions.setdefault(symbol, FakePosition())

    def fee_rate(self, market: Market, maker: bool) -> Decimal:
        return (market.fees or (self.maker_fee, self.taker_fee))[0 if maker else 1]

    def held(self, spot: bool) -> list[tuple[Market, FakePosition]]:
        """What is held: coins, or positions on margin."""
        return [
            (self.markets[symbol], position)
            for symbol, position in self.positions.items()
            if position.amount and self.markets[symbol].spot is spot
        ]

    def count_orders(self, client_id: str) -> int:
        """How many orders of that id were ever made; one that a conditional order became is none of its own."""
        plain = sum(order.client_id == client_id and order.algo is None for order in self.orders.values())
        return plain + sum(algo.client_id == client_id for algo in self.algos.values())

    # -- orders

    def place(
        self,
        client_id: str,
        symbol: str,
        side: str,
        kind: str,
        quantity: Decimal,
        price: Decimal | None = None,
        time_in_force: str = "GTC",
        reduce_only: bool = False,
        good_till: int = 0,
    ) -> FakeOrder:
        market = self.check(symbol, quantity, price, reduce_only)
        self.check_id(client_id)
        order = self.make_order(client_id, symbol, side, kind, quantity, price, time_in_force, reduce_only)
        order.good_till = good_till
        return self.execute(order, market)

    def make_order(
        self,
        client_id: str,
        symbol: str,
        side: str,
        kind: str,
        quantity: Decimal,
        price: Decimal | None,
        time_in_force: str = "GTC",
        reduce_only: bool = False,
    ) -> FakeOrder:
        now = self.clock()
        return FakeOrder(
            self.next_id(), client_id, symbol, side, kind, quantity, price, time_in_force, reduce_only, now, now
        )

    def record_rejection(self, order: FakeOrder, why: str, status: str = "CANCELED") -> FakeOrder:
        """An order that the exchange made and ended at once."""
        order.reason = why
        self.end(order, status)
        self.orders[order.id] = order
        return order

    def check_id(self, client_id: str) -> None:
        if not client_id:
            return
        taken = any(
            order.client_id == client_id and (self.unique_ids or order.status in OPEN) for order in self.orders.values()
        )
        if taken or (self.unique_ids and any(algo.client_id == client_id for algo in self.algos.values())):
            raise Rejected("duplicate")

    def execute(self, order: FakeOrder, market: Market) -> FakeOrder:
        """An order that was read: matched, and what of it may rest does."""
        side, price, time_in_force = order.side, order.price, order.time_in_force
        self.check_funds(order, market)
        takes = price is None or (market.ask <= price if side == BUY else market.bid >= price)
        if time_in_force == "GTX" and takes:
            raise Rejected("post_only")
        self.orders[order.id] = order
        if takes:
            self.match(order, market, maker=False)
        if order.status in OPEN and (price is None or time_in_force == "IOC"):
            self.end(order, "EXPIRED")
        return order

    def place_algo(
        self,
        client_id: str,
        symbol: str,
        side: str,
        kind: str,
        quantity: Decimal,
        trigger: Decimal,
        reduce_only: bool,
        working_type: str,
        close_position: bool = False,
    ) -> FakeAlgo:
        market = self.check(symbol, quantity or market_lot(self.markets.get(symbol)), trigger, True)
        if self.keeps_ids:
            self.check_id(client_id)
        if client_id and any(algo.client_id == client_id and algo.status == "NEW" for algo in self.algos.values()):
            raise Rejected("duplicate")
        if market.spot and self.stops_lock and side == SELL and quantity > self.free_base(symbol):
            raise Rejected("no_base")
        now = self.clock()
        algo = FakeAlgo(
            self.next_id(), client_id, symbol, side, kind, quantity, trigger, reduce_only, working_type, now, now
        )
        algo.close_position = close_position
        if algo.triggered_by(market.mark):
            raise Rejected("would_trigger")
        self.algos[algo.id] = algo
        return algo

    def check(self, symbol: str, quantity: Decimal, price: Decimal | None, reduce_only: bool) -> Market:
        market = self.markets.get(symbol)
        if market is None:
            raise Rejected("no_symbol")
        if not market.trading:
            raise Rejected("not_trading")
        if quantity < market.min_quantity or quantity > market.max_quantity:
            raise Rejected("quantity")
        if quantity % market.lot:
            raise Rejected("lot")
        if price is not None and price % market.tick:
            raise Rejected("tick")
        if not reduce_only and quantity * (price or market.mark) < market.min_notional:
            raise Rejected("notional")
        return market

    def check_funds(self, order: FakeOrder, market: Market) -> None:
        held = self.position(order.symbol).amount
        if order.reduce_only and held * order.sign >= 0:
            raise Rejected("reduce_only")
        if market.spot:
            if order.side == SELL and order.quantity > self.free_base(order.symbol):
                raise Rejected("no_base")
            cost = order.quantity * (order.price or market.ask) * (1 if self.fee_in_base else 1 + self.taker_fee)
            if order.side == BUY and cost > self.available():
                raise Rejected("no_cash")
        elif not order.reduce_only and held * order.sign >= 0:
            margin = order.quantity * (order.price or market.mark) / self.leverage.get(order.symbol, 20)
            if margin > self.available():
                raise Rejected("no_cash")

    def cancel(self, order: FakeOrder) -> None:
        if order.status not in OPEN:
            raise Rejected("no_order")
        self.end(order, "CANCELED")

    def cancel_algo(self, algo: FakeAlgo) -> None:
        if algo.status != "NEW":
            raise Rejected("no_order")
        algo.status, algo.updated = "CANCELED", self.clock()

    def end_due(self) -> None:
        """Orders whose date has come."""
        for order in self.orders.values():
            if order.status in OPEN and order.good_till and order.good_till <= self.clock():
                self.end(order, "EXPIRED")

    def end(self, order: FakeOrder, status: str) -> None:
        order.status, order.updated = status, self.clock()

    # -- the market moves

    def move(
        self,
        symbol: str,
        bid: Decimal,
        ask: Decimal,
        size: Decimal = PLENTY,
        mark: Decimal | None = None,
    ) -> None:
        self.end_due()
        market = self.markets[symbol]
        market.bid, market.ask, market.bid_size, market.ask_size = bid, ask, size, size
        market.mark = (bid + ask) / 2 if mark is None else mark
        for order in [order for order in self.orders.values() if order.symbol == symbol and order.status in OPEN]:
            assert order.price is not None
            if order.price >= ask if order.side == BUY else order.price <= bid:
                self.match(order, market, maker=True)
        for algo in [algo for algo in self.algos.values() if algo.symbol == symbol and algo.status == "NEW"]:
            if algo.triggered_by(market.mark):
                self.trigger(algo)

    def trigger(self, algo: FakeAlgo) -> None:
        algo.updated = self.clock()
        algo.status = "FINISHED"
        quantity = abs(self.position(algo.symbol).amount) if algo.close_position else algo.quantity
        reduces = algo.reduce_only or algo.close_position
        client_id = algo.client_id if self.keeps_ids else f"x-engine{algo.id}"
        child = self.make_order(client_id, algo.symbol, algo.side, "MARKET", quantity, algo.price, "IOC", reduces)
        child.algo = algo.id
        if self.keeps_ids:
            child.id, child.created = algo.id, algo.created
        try:
            self.execute(child, self.check(algo.symbol, quantity, None, True))
        except Rejected as rejected:
            algo.status, algo.reason = "EXPIRED", rejected.why
        else:
            algo.child = child.id

    def match(self, order: FakeOrder, market: Market, maker: bool) -> None:
        size = market.ask_size if order.side == BUY else market.bid_size
        quantity = min(order.left, size)
        if order.reduce_only:
            quantity = min(quantity, abs(self.position(order.symbol).amount))
        if quantity > 0:
            touch = market.ask if order.side == BUY else market.bid
            price = order.price if maker and order.price is not None else touch
            if order.side == BUY:
                market.ask_size -= quantity
            else:
                market.bid_size -= quantity
            self.fill(order, quantity, price, maker)
        if order.reduce_only and order.left and not self.position(order.symbol).amount:
            self.end(order, "EXPIRED")

    def fill(self, order: FakeOrder, quantity: Decimal, price: Decimal, maker: bool) -> None:
        market = self.markets[order.symbol]
        rate = self.fee_rate(market, maker)
        kept_back = market.spot and self.fee_in_base and order.side == BUY
        fee = quantity * rate if kept_back else quantity * price * rate
        order.filled += quantity
        order.funds += quantity * price
        order.fee += fee
        self.end(order, "FILLED" if not order.left else "PARTIALLY_FILLED")
        before = self.position(order.symbol).amount
        pnl = self.take(order.symbol, quantity * order.sign, price)
        self.trades.append(
            FakeTrade(
                self.next_id(),
                order.id,
                order.symbol,
                order.side,
                quantity,
                price,
                fee,
                maker,
                order.updated,
                market.base if kept_back else market.quote,
                pnl,
                before,
                order.client_id.startswith("autoclose-"),
            )
        )
        if kept_back:
            self.position(order.symbol).amount -= fee
        else:
            self.cash -= fee

    def take(self, symbol: str, amount: Decimal, price: Decimal) -> Decimal:
        """Change a position; what is closed is realised, and is returned."""
        position, spot, pnl = self.position(symbol), self.markets[symbol].spot, ZERO
        if spot:
            self.cash -= amount * price
        opens = position.amount * amount >= 0
        if opens:
            total = position.amount + amount
            position.entry = (position.entry * abs(position.amount) + price * abs(amount)) / abs(total)
            position.amount = total
            return pnl
        closed = min(abs(amount), abs(position.amount))
        if not spot:
            pnl = (price - position.entry) * closed * (1 if position.amount > 0 else -1)
            self.cash += pnl
        left = position.amount + amount
        if position.amount * left < 0:
            position.entry = price
        position.amount = left
        if not left:
            position.entry = position.added = ZERO
        return pnl

    def settle_funding(self, symbol: str, rate: Decimal) -> None:
        held, mark = self.position(symbol).amount, self.markets[symbol].mark
        amount = -held * mark * rate
        self.cash += amount
        self.funding.append(FakeFunding(self.next_id(), symbol, amount, self.clock(), rate, held, mark))

    def liquidate(self, symbol: str) -> None:
        position = self.position(symbol)
        side, market = SELL if position.amount > 0 else BUY, self.markets[symbol]
        price = market.bid if side == SELL else market.ask
        name = f"autoclose-{self.clock()}"
        order = self.make_order(name, symbol, side, "LIMIT", abs(position.amount), price, "IOC", True)
        self.orders[order.id] = order
        self.match(order, market, maker=False)

    # -- balances

    def margin(self, symbol: str) -> Decimal:
        position = self.position(symbol)
        return abs(position.amount) * (position.entry / self.leverage.get(symbol, 20) + position.added)

    def liquidation(self, symbol: str) -> Decimal:
        """The mark at which nothing of a position's margin is left."""
        position = self.position(symbol)
        away = self.margin(symbol) / position.amount
        return max(position.entry - away, ZERO)

    def unrealised(self, symbol: str) -> Decimal:
        position = self.position(symbol)
        return position.amount * (self.markets[symbol].mark - position.entry)

    def available(self) -> Decimal:
        waiting = sum(
            (
                order.left * (order.price or ZERO) / self.leverage.get(order.symbol, 20)
                for order in self.orders.values()
                if order.status in OPEN and not order.reduce_only and not self.markets[order.symbol].spot
            ),
            ZERO,
        )
        margins = sum((self.margin(market.symbol) for market, _ in self.held(spot=False)), ZERO)
        return self.cash - margins - waiting - self.locked_cash()

    def locked_cash(self) -> Decimal:
        """By orders to buy coins."""
        return sum(
            (
                order.left * (order.price or ZERO) * (1 if self.fee_in_base else 1 + self.taker_fee)
                for order in self.orders.values()
                if order.status in OPEN and order.side == BUY and self.markets[order.symbol].spot
            ),
            ZERO,
        )

    def locked_base(self, symbol: str) -> Decimal:
        plain = [
            order.left
            for order in self.orders.values()
            if order.status in OPEN and order.side == SELL and order.symbol == symbol
        ]
        stops = [
            algo.quantity
            for algo in self.algos.values()
            if self.stops_lock and algo.status == "NEW" and algo.side == SELL and algo.symbol == symbol
        ]
        return sum([*plain, *stops], ZERO)

    def free_base(self, symbol: str) -> Decimal:
        return self.position(symbol).amount - self.locked_base(symbol)


def market_lot(market: Market | None) -> Decimal:
    return Decimal(1) if market is None else market.min_quantity
