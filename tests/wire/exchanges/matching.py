"""A small matching engine: a touch with sizes per symbol, resting and conditional orders, one account.

Whoever places an order takes what stands at the touch; what rests is filled when the touch reaches it. The rest of the
market is the test: it moves the touch and the mark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

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


@dataclass
class FakePosition:
    amount: Decimal = ZERO
    entry: Decimal = ZERO


@dataclass
class Engine:
    """One account at one exchange. `spot`: what is bought is held, and nothing can be owed."""

    clock: Callable[[], Millis]
    markets: dict[str, Market]
    cash: Decimal
    maker_fee: Decimal
    taker_fee: Decimal
    spot: bool = False
    orders: dict[int, FakeOrder] = field(default_factory=dict)
    algos: dict[int, FakeAlgo] = field(default_factory=dict)
    trades: list[FakeTrade] = field(default_factory=list)
    funding: list[tuple[int, str, Decimal, Millis]] = field(default_factory=list)
    positions: dict[str, FakePosition] = field(default_factory=dict)
    leverage: dict[str, int] = field(default_factory=dict)
    last_id: int = 1_000

    def next_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def position(self, symbol: str) -> FakePosition:
        return self.positions.setdefault(symbol, FakePosition())

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
        if any(order.client_id == client_id and order.status in OPEN for order in self.orders.values()):
            raise Rejected("duplicate")
        now = self.clock()
        order = FakeOrder(
            self.next_id(), client_id, symbol, side, kind, quantity, price, time_in_force, reduce_only, now, now
        )
        order.good_till = good_till
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
        if any(algo.client_id == client_id and algo.status == "NEW" for algo in self.algos.values()):
            raise Rejected("duplicate")
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
        if self.spot:
            if order.side == SELL and order.quantity > held - self.locked_base(order.symbol):
                raise Rejected("no_base")
            cost = order.quantity * (order.price or market.ask) * (1 + self.taker_fee)
            if order.side == BUY and cost > self.cash - self.locked_cash():
                raise Rejected("no_cash")
        elif not order.reduce_only and held * order.sign >= 0:
            margin = order.quantity * (order.price or market.mark) / self.leverage.get(order.symbol, 20)
            if margin > self.available():
                raise Rejected("no_cash")

    def cancel(self, order: FakeOrder) -> None:
        if order.status not in OPEN:
            raise Rejected("no_order")
        self.end(order, "CANCELED")

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
        quantity = abs(self.position(algo.symbol).amount) if algo.close_position else algo.quantity
        try:
            child = self.place(
                f"x-engine{algo.id}",
                algo.symbol,
                algo.side,
                "MARKET",
                quantity,
                reduce_only=algo.reduce_only or algo.close_position,
            )
        except Rejected:
            algo.status = "EXPIRED"
        else:
            algo.status, algo.child = "FINISHED", child.id

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
        fee = quantity * price * (self.maker_fee if maker else self.taker_fee)
        order.filled += quantity
        order.funds += quantity * price
        order.fee += fee
        self.end(order, "FILLED" if not order.left else "PARTIALLY_FILLED")
        trade = FakeTrade(
            self.next_id(), order.id, order.symbol, order.side, quantity, price, fee, maker, order.updated
        )
        self.trades.append(trade)
        self.cash -= fee
        self.take(order.symbol, quantity * order.sign, price)

    def take(self, symbol: str, amount: Decimal, price: Decimal) -> None:
        """Change a position; what is closed is realised."""
        position = self.position(symbol)
        if self.spot:
            self.cash -= amount * price
        opens = position.amount * amount >= 0
        if opens:
            total = position.amount + amount
            position.entry = (position.entry * abs(position.amount) + price * abs(amount)) / abs(total)
            position.amount = total
            return
        closed = min(abs(amount), abs(position.amount))
        if not self.spot:
            self.cash += (price - position.entry) * closed * (1 if position.amount > 0 else -1)
        left = position.amount + amount
        if position.amount * left < 0:
            position.entry = price
        position.amount = left
        if not left:
            position.entry = ZERO

    def settle_funding(self, symbol: str, rate: Decimal) -> None:
        position = self.position(symbol)
        amount = -position.amount * self.markets[symbol].mark * rate
        self.cash += amount
        self.funding.append((self.next_id(), symbol, amount, self.clock()))

    def liquidate(self, symbol: str) -> None:
        position = self.position(symbol)
        side = SELL if position.amount > 0 else BUY
        now = self.clock()
        order = FakeOrder(
            self.next_id(), f"autoclose-{now}", symbol, side, "LIMIT", abs(position.amount), None, "IOC", True, now, now
        )
        market = self.markets[symbol]
        order.price = market.bid if side == SELL else market.ask
        self.orders[order.id] = order
        self.match(order, market, maker=False)

    # -- balances

    def margin(self, symbol: str) -> Decimal:
        position = self.position(symbol)
        return abs(position.amount) * position.entry / self.leverage.get(symbol, 20)

    def available(self) -> Decimal:
        waiting = sum(
            (
                order.left * (order.price or ZERO) / self.leverage.get(order.symbol, 20)
                for order in self.orders.values()
                if order.status in OPEN and not order.reduce_only
            ),
            ZERO,
        )
        return self.cash - sum((self.margin(symbol) for symbol in self.positions), ZERO) - waiting

    def locked_cash(self) -> Decimal:
        return sum(
            (
                order.left * (order.price or ZERO) * (1 + self.taker_fee)
                for order in self.orders.values()
                if order.status in OPEN and order.side == BUY
            ),
            ZERO,
        )

    def locked_base(self, symbol: str) -> Decimal:
        return sum(
            (
                order.left
                for order in self.orders.values()
                if order.status in OPEN and order.side == SELL and order.symbol == symbol
            ),
            ZERO,
        )


def market_lot(market: Market | None) -> Decimal:
    return Decimal(1) if market is None else market.min_quantity
