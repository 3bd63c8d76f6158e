"""The paper venue: an `OrderVenue` without money, its state in a log of its own.

Every call reads what others stored, matches the market up to now, and stores the result before it answers. A process
that dies loses nothing that was answered.
"""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Final

from zuno.adapters.venues.paper.matching import PaperExchange
from zuno.adapters.venues.paper.tape import MarketTape, Tick
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Catalogue, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.known import pick
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import (
    AccountRights,
    Balance,
    ClientId,
    Fill,
    Filters,
    FundingPayment,
    Order,
    OrderRequest,
    OrderType,
    VenuePosition,
    VenueQuote,
)
from zuno.trading.model.trade_events import CashMoved, MarginMoved
from zuno.trading.ports.trade_log import TradeLog
from zuno.trading.rules.inputs import FeeRates
from zuno.trading.rules.margin import liquidation_price

LATENCY_MS: Final = 250
"""From sending an order to its arrival, where books and marks are recorded."""
_TRIES: Final = 5


@dataclass(eq=False)
class PaperVenue:
    exchange: Venue
    account: str
    log: TradeLog
    tape: MarketTape
    clock: Callable[[], Awaitable[Millis]]
    fees: FeeRates
    _: KW_ONLY
    catalogue: Catalogue | None = None
    cash: Decimal | None = None
    """What it begins with, where that is not the usual."""
    latency_ms: int = LATENCY_MS
    sleep: Callable[[float], Awaitable[None]] | None = None
    """Waits for an order's arrival where the clock is a real one."""

    paper = simulated = True

    def __post_init__(self) -> None:
        self._account = venue_account(self.account, self.exchange)
        self._engine: PaperExchange | None = None
        self._matched: dict[Symbol, Millis] = {}
        self._busy = asyncio.Lock()

    async def now(self) -> Millis:
        return await self.clock()

    async def rights(self) -> AccountRights:
        return AccountRights(
            exchange=self.exchange, can_trade=True, can_withdraw=False, one_way=True, isolated=True, paper=True
        )

    async def filters(self, symbol: Symbol) -> Filters:
        async with self._market(symbol) as (engine, now):
            return engine.filters(symbol, now)

    async def quote(self, symbol: Symbol) -> VenueQuote:
        async with self._market(symbol) as (engine, now):
            quote = engine.quote(symbol, now)
        if quote is None:
            raise Unavailable(f"The newest price of {symbol} at {self.exchange} is stale.")
        return quote

    async def place(self, order: OrderRequest, good_till: Millis | None = None, *, unread: bool = False) -> Order:
        """`good_till` is ignored: the desk sees to it."""
        if order.exchange is not self.exchange:
            raise Refused(f"An order of {order.exchange} is no order of {self.exchange}.")
        if self.sleep is not None and self.latency_ms:
            await self.sleep(self.latency_ms / 1_000)
        for attempt in range(_TRIES):
            try:
                latency = 0 if self.sleep is not None else self.latency_ms
                async with self._market(order.symbol, latency, self.tape.opening_ms) as (engine, now):
                    if engine.to_order(order.client_id) is None and engine.is_stale(order.symbol, now):
                        # Nobody can say what would become of it: that is no rejection.
                        raise Unavailable(f"The newest price of {order.symbol} at {self.exchange} is stale.")
                    return engine.place(order, now)
            except _Overtaken:
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError

    async def find(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None = None) -> Order | None:
        async with self._market(symbol) as (engine, _):
            return engine.to_order(client_id)

    async def cancel(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None = None) -> Order:
        async with self._market(symbol) as (engine, now):
            return engine.cancel(client_id, now)

    async def open_orders(self) -> tuple[Order, ...]:
        async with self._market() as (engine, _):
            orders = (engine.to_order(client_id) for client_id in engine.book.open_orders)
            return tuple(order for order in orders if order is not None)

    async def fills(self, symbol: Symbol, since: Millis) -> tuple[Fill, ...]:
        async with self._market(symbol) as (engine, _):
            fills = engine.fills[symbol]
            return tuple(fills[bisect_left(fills, since, key=lambda fill: fill.at) :])

    async def order_fills(self, order: Order) -> tuple[Fill, ...] | None:
        return None

    async def funding(self, symbol: Symbol, since: Millis) -> tuple[FundingPayment, ...]:
        async with self._market(symbol) as (engine, _):
            payments = engine.payments[symbol]
            return tuple(payments[bisect_left(payments, since, key=lambda payment: payment.at) :])

    async def positions(self) -> tuple[VenuePosition, ...]:
        async with self._market() as (engine, _):
            return tuple(
                VenuePosition(
                    exchange=self.exchange,
                    leverage=int(trade.leverage),
                    **pick(trade, "symbol", "side", "quantity", "entry", "margin"),
                    liquidation=None
                    if engine.spot
                    else liquidation_price(trade.side, trade.quantity, trade.cost, trade.margin),
                )
                for trade in engine.book.positions.values()
            )

    async def balance(self) -> Balance:
        async with self._market() as (engine, _):
            total = engine.book.cash(self.exchange) + engine.book.margin(self.exchange)
            return Balance(exchange=self.exchange, total=total, available=engine.available())

    async def close(self) -> None:
        pass

    # -- parts

    @asynccontextmanager
    async def _market(
        self, symbol: Symbol | None = None, later_ms: int = 0, opening_ms: int = 0
    ) -> AsyncIterator[tuple[PaperExchange, Millis]]:
        """The exchange, matched up to now; what happens inside is stored at the end. A named symbol is always brought
        to now; `opening_ms` also shows the open of the bar that begins now."""
        async with self._busy:
            try:
                engine = await self._read_log()
                now = Millis(max(await self.clock() + later_ms, engine.book.newest))
                traded = dict.fromkeys([*([] if symbol is None else [symbol]), *engine.list_active()])
                until = {each: Millis(now + opening_ms if each is symbol else now) for each in traded}
                _advance(engine, {each: await self._read_market(engine, each, until[each]) for each in traded})
                self._matched |= {each: max(end, self._matched.get(each, end)) for each, end in until.items()}
                yield engine, now
                await self._store(engine)
            except BaseException:
                if self._engine is not None and self._engine.events:
                    self._engine = None  # what was not stored did not happen
                raise

    async def _read_log(self) -> PaperExchange:
        engine = self._engine
        if engine is None:
            engine = PaperExchange(self.exchange, self.fees, self.catalogue, self.cash)
            self._matched = {}
        others = await self.log.events(self._account, engine.book.count)
        engine.restore(others)
        if others:
            # Another process matched up to there.
            self._matched = {symbol: max(at, engine.book.newest) for symbol, at in self._matched.items()}
        self._engine = engine
        return engine

    async def _read_market(self, engine: PaperExchange, symbol: Symbol, until: Millis) -> Sequence[Tick]:
        """What happened in a symbol since it was matched last."""
        after, idle = self._matched.get(symbol), engine.is_idle(symbol)
        if after is None or (idle and until - after > DAY_MS):
            # Where nothing is open only how the market stands matters; else everything since the last stored event.
            after = until if idle else min(engine.book.newest, until)
            for tick in await self.tape.before(symbol, after):
                engine.market_state[symbol].see(tick)
        if after >= until:
            return ()
        # What a bar does that came late is told as news, after everything that was told before.
        engine.not_before[symbol] = Millis(after + 1 - self.tape.opening_ms)
        return await self.tape.ticks(symbol, after, until)

    async def _store(self, engine: PaperExchange) -> None:
        if not engine.events:
            return
        try:
            await self.log.append(self._account, engine.events, engine.book.count - len(engine.events))
        except Refused as error:
            raise _Overtaken(str(error)) from error
        engine.events.clear()


class PaperFunds:
    """Moves money between the paper venues of one account; each has a wallet of its own. What is moved stands in the
    logs of both, so that a process may end in between and another go on. `cash`: what venues begin with, where that is
    not the usual."""

    def __init__(
        self, account: str, log: TradeLog, now: Callable[[], Millis], cash: Mapping[Venue, Decimal] | None = None
    ) -> None:
        self._account, self._log, self._now, self._cash = account, log, now, cash or {}

    async def add_margin(self, key: str, source: Venue, target: Venue, symbol: Symbol, amount: Decimal) -> Decimal:
        moved = MarginMoved(at=self._now(), key=key, source=source, target=target, symbol=symbol, amount=amount)
        return await self._move(moved)

    async def move_cash(self, key: str, source: Venue, target: Venue, amount: Decimal) -> Decimal:
        return await self._move(CashMoved(at=self._now(), key=key, source=source, target=target, amount=amount))

    async def _move(self, move: MarginMoved | CashMoved) -> Decimal:
        for exchange in (move.source, move.target):
            account = venue_account(self._account, exchange)
            for _ in range(_TRIES):
                events = await self._log.events(account)
                if any(isinstance(event, type(move)) and event.key == move.key for event in events):
                    break
                engine = PaperExchange(exchange, FeeRates(0.0, 0.0), cash=self._cash.get(exchange))
                engine.restore(events)
                if exchange is move.source and (free := engine.book.cash(exchange)) < move.amount:
                    raise Refused(f"{move.amount} are more than the {free} at {exchange}.")
                at = Millis(max(move.at, engine.book.newest))
                engine.open(at)
                try:
                    await self._log.append(account, [*engine.events, move.model_copy(update={"at": at})], len(events))
                except Refused:
                    continue  # the venue wrote meanwhile
                break
            else:
                raise Unavailable(f"The log of {exchange} is written to by others again and again.")
        return move.amount


def _advance(engine: PaperExchange, market: Mapping[Symbol, Sequence[Tick]]) -> None:
    """In the order it happened, whatever the symbol: margin and time are the account's."""
    moving = {symbol: ticks for symbol, ticks in market.items() if ticks}
    if len(moving) < 2:
        for symbol, ticks in moving.items():
            engine.advance(symbol, ticks)
        return
    named = merge(
        *([(tick.at, symbol, tick) for tick in ticks] for symbol, ticks in moving.items()), key=itemgetter(0, 1)
    )
    for symbol, run in groupby(named, key=itemgetter(1)):
        engine.advance(symbol, [tick for _, _, tick in run])


class _Overtaken(Unavailable):
    """Another process wrote to the venue's log first; nothing of ours was stored."""


def venue_account(account: str, exchange: Venue) -> str:
    """Where the venue keeps its own side of an account."""
    return f"venue:{exchange}:{account}"
