"""The paper venue's matching: orders against books, bars and marks, fees, funding, margin and liquidation.

- A taker walks the book where one of the last ten seconds is there, moved by what the price did since; what the book
  does not hold is not filled. Without a book it pays five basis points on the last price.
- An order that rests is filled at its price once the market traded through it, never at the touch alone.
- A bar that began before an order arrived counts for it by its close alone, one that was over by then not at all. Of
  the others the order within the bar is: open, then the extreme that hurts the position (flat: the one away from the
  close), then the other, then the close.
- Stops and targets are triggered by the mark, between marks by the last price. Where the market gaps through a trigger,
  the fill is at the gap.
- A position whose margin falls to the maintenance margin is closed at its bankruptcy price: the isolated margin is lost
  and nothing beyond it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import pairwise
from math import inf
from typing import Final, NamedTuple

from zuno.adapters.venues.paper.tape import Bar, FundingRate, Mark, MarketState, Tick
from zuno.kernel.errors import NotFound
from zuno.kernel.units import Millis
from zuno.markets.market import Catalogue, Market, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.known import pick
from zuno.trading.model.market import DAY_MS, STALE_AFTER, Book, Feed, Quote, Side
from zuno.trading.model.orders import (
    ZERO,
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
    VenueQuote,
    opening_side,
    to_decimal,
)
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.model.trade_events import (
    AccountOpened,
    FillBooked,
    FundingBooked,
    MarginMoved,
    OrderUpdated,
    TradeEvent,
)
from zuno.trading.rules.book_state import USUAL_CASH, TrackedOrder
from zuno.trading.rules.inputs import ASSUMED_SLIPPAGE, FeeRates
from zuno.trading.rules.margin import bankruptcy_price, liquidation_price
from zuno.trading.rules.trading_book import TradingBook

SLIPPAGE: Final = to_decimal(ASSUMED_SLIPPAGE.buy) / 100
_BOOK_MS: Final = STALE_AFTER[Feed.BOOK] * 1_000
_MOST_LOTS: Final = 2_000_000
"""Of a market order."""
_MOST_SPOT: Final = Decimal(10**9)
_TRIGGERED: Final = (OrderType.STOP_MARKET, OrderType.TAKE_PROFIT_MARKET)
_WON_TICKS: Final = (
    (1_000_000, "1000"), (500_000, "500"), (100_000, "100"), (50_000, "50"), (10_000, "10"), (5_000, "5"), (100, "1"),
    (10, "0.1"), (1, "0.01"), (0.1, "0.001"), (0.01, "0.0001"), (0.001, "0.00001"), (0.0001, "0.000001"),
    (0.00001, "0.0000001"), (0.0, "0.00000001"),
)  # fmt: skip
"""Prices from which a tick counts, and the tick: https://docs.upbit.com/kr/docs/krw-market-info."""


class _Rejection(Exception):
    """Why the venue does not take an order."""


class _Level(NamedTuple):
    """A price at which something happens, and whether it does from above (a falling price) or from below."""

    price: float
    falling: bool
    through: bool
    """Only beyond it: an order that rests."""
    order: TrackedOrder | None
    """None: the position is liquidated."""


class PaperExchange:
    """One exchange on paper. Its events are applied to its book and kept in `events` until they are stored."""

    def __init__(
        self, exchange: Venue, fees: FeeRates, catalogue: Catalogue | None = None, cash: Decimal | None = None
    ) -> None:
        """`cash`: what it begins with, where that is not the usual."""
        self.exchange = exchange
        self._catalogue = catalogue or Catalogue()
        self.spot = exchange.spot
        self._cash = cash
        usual = USUAL_CASH if exchange in USUAL_CASH else {exchange: exchange.paper_cash}
        self.book = TradingBook(usual if cash is None else {exchange: cash})
        self.events: list[TradeEvent] = []
        self.fills: dict[Symbol, list[Fill]] = defaultdict(list)
        self.payments: dict[Symbol, list[FundingPayment]] = defaultdict(list)
        self.market_state: dict[Symbol, MarketState] = defaultdict(MarketState)
        self.not_before: dict[Symbol, Millis] = defaultdict(lambda: Millis(0))
        """Nothing that happens in a symbol from now on is dated before."""
        self._maker, self._taker = to_decimal(fees.maker) / 100, to_decimal(fees.taker) / 100
        self._levels: dict[Symbol, list[_Level]] = {}

    # -- state

    def restore(self, events: Iterable[TradeEvent]) -> None:
        for event in events:
            self._take(event)

    def open(self, at: Millis) -> None:
        """Written before anything else: it begins with what its account does."""
        if self._cash is not None and not self.book.count:
            self._emit(AccountOpened(at=at, cash={self.exchange: self._cash}))

    def is_idle(self, symbol: Symbol) -> bool:
        return self.book.position(self.exchange, symbol) is None and not any(
            order.request.symbol is symbol for order in self.book.open_orders.values()
        )

    def list_active(self) -> list[Symbol]:
        """Symbols in which something is held or ordered."""
        held = [symbol for _, symbol, _ in self.book.positions]
        return sorted({*held, *(order.request.symbol for order in self.book.open_orders.values())})

    def to_order(self, client_id: ClientId) -> Order | None:
        known = self.book.orders.get(client_id)
        if known is None or known.venue_id is None or known.updated is None:
            return None
        return Order(**pick(known, *Order.model_fields))

    def filters(self, symbol: Symbol, now: Millis) -> Filters:
        market_state, listed, lot = self.market_state[symbol], self._find_market(symbol), self.lot(symbol)
        return Filters(
            exchange=self.exchange,
            symbol=symbol,
            tick=self.tick(symbol),
            lot=lot,
            min_quantity=lot,
            max_quantity=lot * _MOST_LOTS if not self.spot else _MOST_SPOT,
            min_notional=to_decimal(listed.min_notional),
            trading=listed.trading and market_state.price is not None and now - market_state.at <= DAY_MS,
            holds_stops=self.exchange.holds_stops,
        )

    def lot(self, symbol: Symbol) -> Decimal:
        return to_decimal(self._find_market(symbol).lot)

    def tick(self, symbol: Symbol) -> Decimal:
        if self.exchange.currency != "KRW":
            return to_decimal(self._find_market(symbol).tick)
        price = self.market_state[symbol].price or inf
        return Decimal(next(step for least, step in _WON_TICKS if price >= least))

    def _find_market(self, symbol: Symbol) -> Market:
        """What is held of a coin that the venue does not list can be sold by built-in rules; nothing is opened."""
        listed = self._catalogue.find_listed(self.exchange, symbol)
        return listed or replace(Catalogue().find(self.exchange, symbol), trading=False)

    def quote(self, symbol: Symbol, now: Millis) -> VenueQuote | None:
        """None where the newest price is stale."""
        market_state = self.market_state[symbol]
        if market_state.price is None or market_state.mark is None or now - market_state.at > market_state.stale_ms:
            return None
        depth, tick = self._fresh_depth(symbol, now), self.tick(symbol)
        if depth is not None:
            bid = self._level_price(depth, depth.bids[0], OrderSide.SELL, symbol)
            ask = self._level_price(depth, depth.asks[0], OrderSide.BUY, symbol)
        else:
            last = to_decimal(market_state.price)
            bid, ask = _to_grid(last, tick, ROUND_CEILING) - tick, _to_grid(last, tick, ROUND_FLOOR) + tick
        return VenueQuote(
            exchange=self.exchange,
            symbol=symbol,
            bid=bid,
            ask=ask,
            mark=to_decimal(market_state.mark),
            at=Millis(depth.at if depth is not None else market_state.at),
        )

    def is_stale(self, symbol: Symbol, now: Millis) -> bool:
        return self.filters(symbol, now).trading and self.quote(symbol, now) is None

    def available(self) -> Decimal:
        """Cash that no position or order has taken, less open losses and the taker's fees of open orders."""
        free = self.book.cash(self.exchange)
        if not self.spot:
            marks = ((trade, self.market_state[trade.symbol].mark) for trade in self.book.positions.values())
            pnls = (trade.unrealised_pnl(to_decimal(mark)) for trade, mark in marks if mark is not None)
            free += min(ZERO, sum(pnls, ZERO))
        return free - sum(map(self._reserved_margin, self.book.open_orders.values()), ZERO)

    # -- orders

    def place(self, request: OrderRequest, at: Millis) -> Order:
        """The order as it stands after it arrived; the same again where its id is known."""
        known = self.to_order(request.client_id)
        if known is not None:
            return known
        at = max(at, self.book.newest)
        self.open(at)
        venue_id = f"{self.exchange[:1]}{len(self.book.orders) + 1}"
        order = Order(request=request, venue_id=venue_id, status=OrderStatus.OPEN, updated=at)
        try:
            self._check_request(request, at)
        except _Rejection as error:
            rejected = order.model_copy(update={"status": OrderStatus.REJECTED, "reason": str(error)})
            self._emit(OrderUpdated(at=at, order=rejected))
            return rejected
        self._emit(OrderUpdated(at=at, order=order))
        tracked = self.book.orders[request.client_id]
        if request.type is OrderType.MARKET:
            self._take_liquidity(tracked, at, None)
            if not tracked.status.final:
                self._end_order(tracked, OrderStatus.EXPIRED, at, "the book holds no more")
        elif request.type is OrderType.LIMIT:
            self._take_liquidity(tracked, at, request.price)
            if not tracked.status.final and request.time_in_force is TimeInForce.IOC:
                self._end_order(tracked, OrderStatus.EXPIRED, at, "what is not filled at once is cancelled")
        placed = self.to_order(request.client_id)
        assert placed is not None
        return placed

    def cancel(self, client_id: ClientId, at: Millis) -> Order:
        tracked = self.book.orders.get(client_id)
        if tracked is None:
            raise NotFound(f"{self.exchange} has no order {client_id}.")
        if not tracked.status.final:
            self._end_order(tracked, OrderStatus.CANCELED, max(at, self.book.newest), "cancelled")
        order = self.to_order(client_id)
        assert order is not None
        return order

    def _check_request(self, request: OrderRequest, at: Millis) -> None:
        filters, quote = self.filters(request.symbol, at), self.quote(request.symbol, at)
        if not filters.trading and not request.reduce_only:
            raise _Rejection(f"{request.symbol} is not trading")
        if quote is None:
            raise _Rejection(f"the newest price of {request.symbol} is stale")
        if request.quantity < filters.min_quantity or request.quantity % filters.lot:
            raise _Rejection(f"a quantity of {request.quantity} is not in lots of {filters.lot}")
        price = request.trigger if request.type in _TRIGGERED else request.price
        if request.type is not OrderType.LIMIT and request.quantity > filters.max_quantity:
            raise _Rejection(f"a quantity of {request.quantity} is above {filters.max_quantity}")
        if (price is None) != (request.type is OrderType.MARKET):
            raise _Rejection(f"a {request.type} order {'has no' if price else 'needs a'} price")
        if price is not None and price % filters.tick:
            raise _Rejection(f"a price of {price} is not on the tick of {filters.tick}")
        self._check_kind(request, quote)
        if not request.reduce_only or self.spot:
            notional = request.quantity * (price or quote.mark)
            if notional < filters.min_notional:
                raise _Rejection(f"a notional of {notional} is below {filters.min_notional}")
        worst = price or self._slip(quote.mark, request.side, filters.tick)
        self._check_funds(request, max(worst, quote.bid) if request.side is OrderSide.SELL else worst)

    def _check_kind(self, request: OrderRequest, quote: VenueQuote) -> None:
        if request.type in _TRIGGERED:
            if not self.exchange.holds_stops:
                raise _Rejection(f"{self.exchange} holds no stop orders")
            if _is_passed(request, float(quote.mark)):
                raise _Rejection(f"a trigger of {request.trigger} would fire at once: the mark is {quote.mark}")
        if request.time_in_force is TimeInForce.POST_ONLY:
            assert request.price is not None or request.type is not OrderType.LIMIT
            touch = quote.ask if request.side is OrderSide.BUY else quote.bid
            if request.price is not None and request.side.sign * (request.price - touch) >= 0:
                raise _Rejection(f"post-only at {request.price} would take: the touch is {touch}")

    def _check_funds(self, request: OrderRequest, price: Decimal) -> None:
        closable = self._closable(request)
        if request.reduce_only and (self.spot or request.type not in _TRIGGERED) and not closable:
            raise _Rejection("there is no position to reduce")
        opening = ZERO if request.reduce_only else request.quantity - min(closable, request.quantity)
        if not opening:
            return
        if self.spot and request.side is OrderSide.SELL:
            raise _Rejection(f"{request.quantity} are more than the {closable} that are held")
        needed = self._margin_needed(request, opening, price)
        if needed > self.available():
            raise _Rejection(f"margin is insufficient: {needed:.2f} needed, {self.available():.2f} available")

    def _margin_needed(self, request: OrderRequest, quantity: Decimal, price: Decimal) -> Decimal:
        """Of an order that adds to a position, at the position's leverage; of one that turns it, at its own."""
        held = self.book.position(self.exchange, request.symbol)
        leverage = Decimal(1 if self.spot else request.leverage)
        if held is not None and not self.spot and request.side is opening_side(held.side):
            leverage = held.leverage
        return quantity * price * (1 / leverage + self._taker)

    def _reserved_margin(self, order: TrackedOrder) -> Decimal:
        request = order.request
        if request.reduce_only or (self.spot and request.side is OrderSide.SELL):
            return ZERO
        price = request.price or request.trigger
        return ZERO if price is None else self._margin_needed(request, order.left, price)

    def _closable(self, request: OrderRequest) -> Decimal:
        """How much of a position the order would close; at a spot exchange less what other sales will."""
        held = self.book.position(self.exchange, request.symbol)
        if held is None or request.side is opening_side(held.side):
            return ZERO
        if not self.spot:
            return held.quantity
        sales = (
            order.left
            for order in self.book.open_orders.values()
            if order.request.symbol is request.symbol
            and order.request.side is OrderSide.SELL
            and order.request.client_id != request.client_id
        )
        return max(ZERO, held.quantity - sum(sales, ZERO))

    # -- the market goes on

    def advance(self, symbol: Symbol, ticks: Iterable[Tick]) -> None:
        """Match open orders against these ticks, oldest first."""
        market_state = self.market_state[symbol]
        low, high = self._band(symbol)
        quiet: Bar | None = None
        for tick in ticks:
            if type(tick) is Bar and low < tick.low and tick.high < high:
                quiet = tick
                continue
            if quiet is not None:
                market_state.see(quiet)
                quiet = None
            market_state.see(tick)
            match tick:
                case Bar():
                    self._match_bar(symbol, tick)
                case FundingRate():
                    self._settle_funding(symbol, tick)
                case Book():
                    self._match_point(symbol, tick.at, tick)
                case Mark():
                    self._match_point(symbol, tick.at, None)
            low, high = self._band(symbol)
        if quiet is not None:
            market_state.see(quiet)

    def _band(self, symbol: Symbol) -> tuple[float, float]:
        """Prices between which nothing happens."""
        levels = self._levels_of(symbol)
        low = max((level.price for level in levels if level.falling), default=-inf)
        high = min((level.price for level in levels if not level.falling), default=inf)
        return low, high

    def _levels_of(self, symbol: Symbol) -> list[_Level]:
        levels = self._levels.get(symbol)
        if levels is None:
            levels = self._levels[symbol] = self._find_levels(symbol)
        return levels

    def _find_levels(self, symbol: Symbol) -> list[_Level]:
        """What happens at which price; of two at one price what hurts comes first."""
        levels: list[_Level] = []
        held = self.book.position(self.exchange, symbol)
        if held is not None and not self.spot:
            price = liquidation_price(held.side, held.quantity, held.cost, held.margin)
            if price is not None:
                levels.append(_Level(float(price), held.side is Side.LONG, False, None))
        conditional, resting = [], []
        for order in self.book.open_orders.values():
            request = order.request
            if request.symbol is not symbol:
                continue
            if request.type in _TRIGGERED:
                assert request.trigger is not None
                falling = (request.side is OrderSide.SELL) == (request.type is OrderType.STOP_MARKET)
                trigger = float(request.trigger) if not order.filled else inf if falling else -inf  # fired already
                conditional.append(_Level(trigger, falling, False, order))
            elif request.price is not None:
                resting.append(_Level(float(request.price), request.side is OrderSide.BUY, True, order))
        conditional.sort(
            key=lambda level: level.order is not None and level.order.request.type is OrderType.TAKE_PROFIT_MARKET
        )
        return levels + conditional + resting

    def _match_bar(self, symbol: Symbol, bar: Bar) -> None:
        held = self.book.position(self.exchange, symbol)
        down_first = bar.close >= bar.open if held is None else held.side is Side.LONG
        extremes = (bar.low, bar.high) if down_first else (bar.high, bar.low)
        self._match_at(symbol, bar.open, bar.at, bar.start)
        for start, end in pairwise((bar.open, *extremes, bar.close)):
            self._match_segment(symbol, start, end, bar)
        self._match_at(symbol, bar.close, bar.at, bar.at)

    def _match_segment(self, symbol: Symbol, start: float, end: float, bar: Bar) -> None:
        """What lies between two prices, nearest first."""
        falling = end < start
        while True:
            passed = [
                level
                for level in self._levels_of(symbol)
                if level.falling is falling
                and self._was_there(level, symbol, bar.start)
                and (level.price <= start if falling else level.price >= start)
                and _is_beyond(level, end)
            ]
            if not passed:
                return
            nearest = (max if falling else min)(passed, key=lambda level: level.price)
            self._reach(symbol, nearest, nearest.price, bar.at)

    def _match_at(self, symbol: Symbol, price: float, at: Millis, since: Millis) -> None:
        """What a price that stands there has passed, of what was there by `since`."""
        while True:
            passed = (level for level in self._levels_of(symbol) if _is_beyond(level, price))
            first = next((level for level in passed if self._was_there(level, symbol, since)), None)
            if first is None:
                return
            self._reach(symbol, first, price, at)

    def _match_point(self, symbol: Symbol, at: Millis, depth: Book | None) -> None:
        """At a mark; at a look at the book also what rests, with what stands against it. A mark is no trade."""
        mark = self.market_state[symbol].mark
        for level in list(self._levels_of(symbol)):
            order = level.order
            if order is not None and order.status.final:
                continue
            if level.through:
                assert order is not None
                if depth is not None:
                    self._fill_resting(order, depth)
            elif mark is not None and _is_beyond(level, mark):
                if order is None:
                    self._liquidate(symbol, at)
                else:
                    self._trigger(order, at, None)

    def _was_there(self, level: _Level, symbol: Symbol, moment: Millis) -> bool:
        if level.order is not None:
            return level.order.planned <= moment
        held = self.book.position(self.exchange, symbol)
        return held is not None and held.opened <= moment

    def _reach(self, symbol: Symbol, level: _Level, price: float, at: Millis) -> None:
        order = level.order
        if order is None:
            self._liquidate(symbol, at)
        elif level.through:
            self._fill(order, order.left, to_decimal(level.price), at, maker=True)
        else:
            self._trigger(order, at, price)
        if order is not None and not order.status.final:  # a trigger that nothing can fill is over
            self._end_order(order, OrderStatus.EXPIRED, at, "nothing stands against it")

    def _trigger(self, order: TrackedOrder, at: Millis, price: float | None) -> None:
        """At market: within a bar at that price and the assumed slippage."""
        if order.request.reduce_only and not self._closable(order.request):
            self._end_order(order, OrderStatus.EXPIRED, at, "there is no position to reduce")
            return
        if price is None:
            self._take_liquidity(order, at, None)
            return
        tick = self.tick(order.request.symbol)
        self._fill(order, order.left, self._slip(to_decimal(price), order.request.side, tick), at, maker=False)

    # -- fills

    def _take_liquidity(self, order: TrackedOrder, at: Millis, limit: Decimal | None) -> None:
        """Against what stands in the market, up to a limit."""
        request = order.request
        sign, symbol = request.side.sign, request.symbol
        depth = self._fresh_depth(symbol, at)
        if depth is not None:
            taken = self._taken_quantity(symbol, request.side, depth)
            for level in depth.asks if request.side is OrderSide.BUY else depth.bids:
                price = self._level_price(depth, level, request.side, symbol)
                if order.status.final or (limit is not None and sign * (price - limit) > 0):
                    return
                shown = self._whole_lots(symbol, level)
                used = min(taken, shown)
                taken -= used
                self._fill(order, min(order.left, shown - used), price, at, maker=False)
            return
        quote = self.quote(symbol, at)
        if quote is None:
            return
        touch = quote.ask if request.side is OrderSide.BUY else quote.bid
        if limit is not None and sign * (limit - touch) < 0:
            return
        last = self.market_state[symbol].price
        assert last is not None
        price = self._slip(to_decimal(last), request.side, self.tick(symbol))
        if limit is not None:
            price = min(price, limit) if request.side is OrderSide.BUY else max(price, limit)
        self._fill(order, order.left, price, at, maker=False)

    def _fill_resting(self, order: TrackedOrder, depth: Book) -> None:
        """What rests is filled at its own price by what was traded through it, as far as that goes."""
        request = order.request
        assert request.price is not None
        limit = request.price
        for level in depth.asks if request.side is OrderSide.BUY else depth.bids:
            if order.status.final or request.side.sign * (limit - to_decimal(level.price)) <= 0:
                return
            self._fill(order, min(order.left, self._whole_lots(request.symbol, level)), limit, depth.at, maker=True)

    def _fill(self, order: TrackedOrder, quantity: Decimal, price: Decimal, at: Millis, *, maker: bool) -> None:
        """Book a fill, or end the order where nothing can be filled."""
        if quantity <= 0:
            return
        request = order.request
        at = self._forward(request.symbol, at)
        closable = self._closable(request)
        if request.reduce_only:
            quantity = min(quantity, closable)
            if not quantity:
                self._end_order(order, OrderStatus.EXPIRED, at, "there is no position to reduce")
                return
        elif quantity > closable and request.type is not OrderType.LIMIT:
            needed = self._margin_needed(request, quantity - closable, price)
            if needed > self.available() + self._reserved_margin(order):
                self._end_order(order, OrderStatus.EXPIRED, at, "margin is insufficient")
                return
        if closable and not self.spot:
            held = self.book.positions[self.exchange, request.symbol, DEBATE]
            end = bankruptcy_price(held.side, held.quantity, held.cost, held.margin)
            if price < end if held.side is Side.LONG else price > end:  # it would cost more than the margin
                self._liquidate(request.symbol, at)
                return
        number = len(self.fills[request.symbol]) + 1
        fill = Fill(
            **pick(request, "client_id", "exchange", "symbol", "side"),
            id=f"{order.venue_id}-{number}",
            quantity=quantity,
            price=price,
            fee=quantity * price * (self._maker if maker else self._taker),
            maker=maker,
            at=at,
        )
        value = quantity * price + (order.average_price or ZERO) * order.filled
        filled = order.filled + quantity
        self._emit(FillBooked(at=at, fill=fill))
        status, reason = OrderStatus.OPEN, ""
        if filled == request.quantity:
            status = OrderStatus.FILLED
        elif request.reduce_only and quantity == closable:
            status, reason = OrderStatus.EXPIRED, "the position is closed"
        self._update_order(order, status, at, reason, filled, value / filled)

    def _end_order(self, order: TrackedOrder, status: OrderStatus, at: Millis, reason: str) -> None:
        at = self._forward(order.request.symbol, at)
        self._update_order(order, status, at, reason, order.filled, order.average_price)

    def _update_order(
        self, order: TrackedOrder, status: OrderStatus, at: Millis, reason: str, filled: Decimal, price: Decimal | None
    ) -> None:
        known = pick(order, "request", "venue_id")
        updated = Order(**known, status=status, filled=filled, average_price=price, updated=at, reason=reason)
        self._emit(OrderUpdated(at=at, order=updated))

    def _liquidate(self, symbol: Symbol, at: Millis) -> None:
        """Everything of the symbol is cancelled; the position goes at the price that uses up its margin."""
        held, at = self.book.positions[self.exchange, symbol, DEBATE], self._forward(symbol, at)
        for order in list(self.book.open_orders.values()):
            if order.request.symbol is symbol:
                self._end_order(order, OrderStatus.EXPIRED, at, "the position is liquidated")
        price = bankruptcy_price(held.side, held.quantity, held.cost, held.margin)
        rounding = ROUND_CEILING if held.side is Side.LONG else ROUND_FLOOR
        number = len(self.fills[symbol]) + 1
        fill = Fill(
            id=f"L{number}-{symbol}",
            client_id=f"liquidation-{number}",
            exchange=self.exchange,
            symbol=symbol,
            side=opening_side(held.side).opposite,
            quantity=held.quantity,
            price=_to_grid(price, self.tick(symbol), rounding),
            fee=ZERO,
            maker=False,
            at=at,
            liquidation=True,
        )
        self._emit(FillBooked(at=at, fill=fill))

    def _settle_funding(self, symbol: Symbol, settled: FundingRate) -> None:
        held = self.book.position(self.exchange, symbol)
        mark = self.market_state[symbol].mark
        id = f"{symbol}-{settled.at}"
        if held is None or mark is None or self.spot or held.opened >= settled.at:
            return
        if (self.exchange, id) in self.book.payment_ids:
            return
        paid = held.quantity * to_decimal(mark) * to_decimal(settled.rate)
        amount = -abs(paid) if settled.both_pay else -paid if held.side is Side.LONG else paid
        amount = max(amount, -self.book.cash(self.exchange))  # what is not there cannot be taken
        payment = FundingPayment(id=id, exchange=self.exchange, symbol=symbol, amount=amount, at=settled.at)
        self._emit(FundingBooked(at=max(settled.at, self.book.newest), payment=payment))

    # -- parts

    def _forward(self, symbol: Symbol, at: Millis) -> Millis:
        """When something is told that happened then: forward in time."""
        return max(at, self.book.newest, self.not_before[symbol])

    def _emit(self, event: TradeEvent) -> None:
        self._take(event)
        self.events.append(event)

    def _take(self, event: TradeEvent) -> None:
        self.book.apply(event)
        self.book.finished.clear()  # trades are the desk's to count
        match event:
            case FillBooked():
                self.fills[event.fill.symbol].append(event.fill)
                self._levels.pop(event.fill.symbol, None)
            case FundingBooked():
                self.payments[event.payment.symbol].append(event.payment)
            case MarginMoved():
                self._levels.pop(event.symbol, None)
            case OrderUpdated():
                self._levels.pop(event.order.request.symbol, None)

    def _fresh_depth(self, symbol: Symbol, now: Millis) -> Book | None:
        depth = self.market_state[symbol].depth
        if depth is None or not depth.bids or not depth.asks or not 0 <= now - depth.at <= _BOOK_MS:
            return None
        return depth

    def _taken_quantity(self, symbol: Symbol, side: OrderSide, depth: Book) -> Decimal:
        """What we took of a look at the book already."""
        taken = ZERO
        for fill in reversed(self.fills[symbol]):
            if fill.at < depth.at:
                break
            if fill.side is side and not fill.maker and not fill.liquidation:
                taken += fill.quantity
        return taken

    def _level_price(self, depth: Book, level: Quote, side: OrderSide, symbol: Symbol) -> Decimal:
        """What a taker pays at a level: as it was shown, or moved with the price since, on the tick against it."""
        market_state, price = self.market_state[symbol], to_decimal(level.price)
        if market_state.at <= depth.at or market_state.price is None:
            return price
        moved = to_decimal(market_state.price) - (to_decimal(depth.bids[0].price) + to_decimal(depth.asks[0].price)) / 2
        return _to_grid(price + moved, self.tick(symbol), ROUND_CEILING if side is OrderSide.BUY else ROUND_FLOOR)

    def _slip(self, price: Decimal, side: OrderSide, tick: Decimal) -> Decimal:
        """What a taker pays without a book, on the tick against it."""
        slipped = price * (1 + side.sign * SLIPPAGE)
        return _to_grid(slipped, tick, ROUND_CEILING if side is OrderSide.BUY else ROUND_FLOOR)

    def _whole_lots(self, symbol: Symbol, level: Quote) -> Decimal:
        return _to_grid(to_decimal(level.size), self.lot(symbol), ROUND_FLOOR)


def _to_grid(number: Decimal, step: Decimal, rounding: str) -> Decimal:
    return (number / step).to_integral_value(rounding) * step


def _is_passed(request: OrderRequest, mark: float) -> bool:
    assert request.trigger is not None
    falling = (request.side is OrderSide.SELL) == (request.type is OrderType.STOP_MARKET)
    return mark <= float(request.trigger) if falling else mark >= float(request.trigger)


def _is_beyond(level: _Level, price: float) -> bool:
    if level.through:
        return price < level.price if level.falling else price > level.price
    return price <= level.price if level.falling else price >= level.price
