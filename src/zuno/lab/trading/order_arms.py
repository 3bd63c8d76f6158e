"""Arms without a desk: market orders by a simple plan, decided on four-hour bars and filled at the next open."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.lab.trading.arm_result import MICRO, ClosedLine, PriceSeries, Span
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUE, Venue
from zuno.trading.model import orders
from zuno.trading.model.market import HOUR_MS, Side
from zuno.trading.watch.desk_loop import MarketClock

STEP_MS: Final = 4 * HOUR_MS
FAST: Final = 50
SLOW: Final = 200
"""Bars of four hours."""
SHARE: Final = Decimal("0.97")
"""Of the cash: the rest pays fees and slippage."""
SEED: Final = 20_250_428


class PaperOrders(Protocol):
    """What these arms ask of the paper venue. An exchange is never handed to them: orders have one door, the gate."""

    exchange: Venue

    async def filters(self, symbol: Symbol) -> orders.Filters: ...
    async def quote(self, symbol: Symbol) -> orders.VenueQuote: ...
    async def place(self, order: orders.OrderRequest) -> orders.Order: ...
    async def find(self, symbol: Symbol, client_id: orders.ClientId) -> orders.Order | None: ...
    async def balance(self) -> orders.Balance: ...
    async def positions(self) -> tuple[orders.VenuePosition, ...]: ...


@dataclass(frozen=True, slots=True)
class TargetPosition:
    """From a moment on so many dollars of a symbol are held, at that moment's price."""

    at: Millis
    symbol: Symbol
    notional: Decimal
    """Below zero is short."""


def slots_of(span: Span) -> range:
    """The closes of four-hour bars in a span."""
    return range(-(-span.begin // STEP_MS) * STEP_MS, span.end + 1, STEP_MS)


def plan_hold(symbols: Sequence[Symbol], span: Span) -> list[TargetPosition]:
    """Everything at the first slot, as much of each symbol."""
    each = DEFAULT_VENUE.paper_cash * SHARE / len(symbols)
    return [TargetPosition(Millis(slots_of(span)[0]), symbol, each) for symbol in symbols]


def plan_sma_cross(prices: Mapping[Symbol, PriceSeries], span: Span) -> list[TargetPosition]:
    """Long while the fast average of closes is above the slow one, else flat. Averages reach back before the span."""
    each = DEFAULT_VENUE.paper_cash * SHARE / len(prices)
    changes: list[TargetPosition] = []
    slots = [Millis(slot) for slot in slots_of(span)]
    for symbol, series in prices.items():
        before = [Millis(slots[0] - STEP_MS * back) for back in range(SLOW, 0, -1)]
        closes = [series.at(slot) for slot in (*before, *slots)]
        known = np.array([np.nan if close is None else close for close in closes])
        wanted = cross_signals(known, FAST, SLOW)[len(before) :]
        was = False
        for slot, long in zip(slots, wanted.tolist(), strict=True):
            if long != was:
                changes.append(TargetPosition(slot, symbol, each if long else Decimal(0)))
                was = long
    return sorted(changes, key=lambda change: (change.at, change.symbol))


@dataclass(frozen=True, slots=True)
class RandomTrade:
    """A trade like one of the debate's, at a moment drawn by chance."""

    like: ClosedLine
    begin: Millis
    end: Millis


def draw_trades(trades: Sequence[ClosedLine], span: Span, seed: int) -> list[RandomTrade]:
    """As many as these, on the same side, as large and held as many hours. Of one symbol no two are open at once."""
    chance = Generator(PCG64(seed))
    first, last = slots_of(span)[0], span.end // HOUR_MS * HOUR_MS
    drawn: list[RandomTrade] = []
    for symbol in sorted({trade.symbol for trade in trades}):
        ours = [trade for trade in trades if trade.symbol is symbol]
        held = [max(1, round((trade.closed - trade.opened) / HOUR_MS)) for trade in ours]
        # An hour after each, in which its exit is filled.
        free = (last - first) // HOUR_MS - sum(held) - len(held)
        # Where a trade begins: chance orders them and deals out the hours that none of them takes.
        gaps = sorted(chance.integers(0, max(1, free), len(ours)).tolist())
        order = chance.permutation(len(ours)).tolist()
        taken = 0
        for gap, place in zip(gaps, order, strict=True):
            begin = first + (gap + taken) * HOUR_MS
            taken += held[place] + 1
            end = begin + held[place] * HOUR_MS
            if end < span.end:
                drawn.append(RandomTrade(ours[place], Millis(begin), Millis(end)))
    return drawn


def plan_random(trades: Sequence[ClosedLine], span: Span, seed: int = SEED) -> list[TargetPosition]:
    """Orders of one draw."""
    changes: list[TargetPosition] = []
    for drawn in draw_trades(trades, span, seed):
        notional = Decimal(drawn.like.notional) / MICRO * (1 if drawn.like.side is Side.LONG else -1)
        changes.append(TargetPosition(drawn.begin, drawn.like.symbol, notional))
        changes.append(TargetPosition(drawn.end, drawn.like.symbol, Decimal(0)))
    return sorted(changes, key=lambda change: (change.at, change.symbol, change.notional != 0))


async def carry_out(
    name: str,
    changes: Sequence[TargetPosition],
    venue: PaperOrders,
    clock: MarketClock,
    span: Span,
    tell: Callable[[], None],
) -> int:
    """Send a market order at each change; the venue is looked at at every slot, for funding and liquidations. An entry
    that the cash does not pay is made smaller; one of the last moment, which is filled after it, is not sent. How many
    orders did not end filled."""
    waiting = [change for change in changes if change.at < span.end]
    number = 0
    sent: list[orders.Order] = []
    slots = frozenset(slots_of(span))
    for moment in sorted(slots | {change.at for change in waiting}):
        clock.move(Millis(moment))
        held = {position.symbol: position for position in await venue.positions()}
        while waiting and waiting[0].at <= moment:
            change = waiting.pop(0)
            position = held.get(change.symbol)
            number += 1
            if position is not None:
                side = orders.OrderSide.SELL if position.side is Side.LONG else orders.OrderSide.BUY
                sent.append(
                    await _send(venue, f"{name} {number} out", change.symbol, side, position.quantity, reduce_only=True)
                )
            if change.notional:
                quote, filters = await venue.quote(change.symbol), await venue.filters(change.symbol)
                lot = filters.lot
                least = (filters.min_notional / quote.mark / lot).to_integral_value(ROUND_CEILING) * lot
                dollars = min(abs(change.notional), (await venue.balance()).available * SHARE)
                wanted = (dollars / quote.mark / lot).to_integral_value(ROUND_FLOOR) * lot
                side = orders.OrderSide.BUY if change.notional > 0 else orders.OrderSide.SELL
                sent.append(await _send(venue, f"{name} {number} in", change.symbol, side, max(wanted, least)))
            held = {position.symbol: position for position in await venue.positions()}
        if moment in slots:
            tell()
    clock.move(span.end)
    await venue.positions()
    ended = [await venue.find(order.request.symbol, order.request.client_id) for order in sent]
    return sum(order is None or order.status is not orders.OrderStatus.FILLED for order in ended)


async def _send(
    venue: PaperOrders, id: str, symbol: Symbol, side: orders.OrderSide, quantity: Decimal, *, reduce_only: bool = False
) -> orders.Order:
    return await venue.place(
        orders.OrderRequest(
            client_id=orders.client_order_id(id, venue.exchange, "entry" if not reduce_only else "exit"),
            exchange=venue.exchange,
            symbol=symbol,
            side=side,
            type=orders.OrderType.MARKET,
            quantity=quantity,
            reduce_only=reduce_only,
        )
    )


Column: TypeAlias = NDArray[np.float64]


def moving_average(closes: Column, length: int) -> Column:
    """Of the last `length` closes; NaN before there are so many. One pass: each sum is the last one moved on."""
    averages = np.full(len(closes), np.nan)
    if len(closes) >= length:
        sums = np.cumsum(closes)
        averages[length - 1] = sums[length - 1]
        np.subtract(sums[length:], sums[:-length], out=averages[length:])
        averages[length - 1 :] /= length
    return averages


def cross_signals(closes: Column, fast: int, slow: int) -> NDArray[np.bool_]:
    """Whether the fast average is above the slow one at each bar; never where one of them is not known."""
    with np.errstate(invalid="ignore"):
        return moving_average(closes, fast) > moving_average(closes, slow)
