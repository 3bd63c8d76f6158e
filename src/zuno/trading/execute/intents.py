"""From a ruling to an intent: what is to be done about it, in whole lots and on the tick, and whether it may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.cycle import JudgeKind, RegimeFamily, Ruling, Style
from zuno.trading.model.market import Mode, Side
from zuno.trading.model.orders import ClientId, Filters, OrderRequest, OrderSide, OrderType, VenueQuote, to_decimal
from zuno.trading.model.trade_events import ExitReason, IntentKind, IntentLeg, Mandate, TradeIntent
from zuno.trading.rules.book_state import OpenTrade
from zuno.trading.rules.execution_styles import meets_minimum, round_to_step
from zuno.trading.rules.protections import hash_mandate
from zuno.trading.rules.trading_book import TradingBook

CLOSE_LIFE: Final = 2**52
"""A close has no end of its own: it is worked until nothing is held."""


@dataclass(frozen=True, slots=True)
class RulingToExecute:
    """A ruling, and what its cycle knew of the market and of who decided."""

    run_id: str
    symbol: Symbol
    mode: Mode
    as_of: Millis
    ruling: Ruling
    valid_until: Millis
    mark: Decimal | None
    """In dollars; None where it was missing."""
    atr: Decimal | None
    """ATR14 of 1h bars in dollars."""
    judge: JudgeKind | None = None
    family: RegimeFamily | None = None
    edge: float | None = None
    llm_cost_usd: Decimal = Decimal(0)
    judge_failed: bool = False


@dataclass(frozen=True, slots=True)
class ExchangeState:
    quote: VenueQuote
    filters: Filters


def intent_id(account: str, order: RulingToExecute) -> str:
    """The same for every run that rules the same about a symbol at a moment: two identical decisions make one
    intent."""
    return _id(account, order.symbol, order.mode, order.as_of, order.ruling.decision)


def close_id(account: str, symbol: Symbol, trades: tuple[str, ...], number: int) -> str:
    """The same for everybody who closes the same trades; `number`: closes of them that failed before."""
    return _id(account, symbol, "close", list(trades), number)


def find_close_id(book: TradingBook, account: str, symbol: Symbol) -> str:
    """Of the close of a symbol that is being worked, or else of the next one."""
    for tracked in book.open_intents.values():
        if tracked.intent.symbol is symbol and tracked.intent.kind is IntentKind.CLOSE:
            return tracked.intent.id
    return find_next_close_id(book, account, symbol)


def find_next_close_id(book: TradingBook, account: str, symbol: Symbol) -> str:
    """Of the next close of what is held or ordered, as if none were being worked."""
    opened = [tracked.intent for tracked in book.open_intents.values() if tracked.intent.symbol is symbol]
    names = (
        tuple(trade.id for trade in book.positions.values() if trade.symbol is symbol)
        or tuple(order.request.client_id for order in book.open_orders.values() if order.request.symbol is symbol)
        or tuple(intent.id for intent in opened if intent.kind is IntentKind.OPEN)
    )
    return find_close_id_of(book, account, symbol, names)


def find_close_id_of(book: TradingBook, account: str, symbol: Symbol, names: tuple[str, ...]) -> str:
    """Of the next close of exactly these trades or orders."""

    def is_over(number: int) -> bool:
        id = close_id(account, symbol, names, number)
        return id in book.intents and id not in book.open_intents

    number, step = -1, 1  # the last that is known to be over: numbers are given one after the other
    while is_over(number + step):
        number, step = number + step, 2 * step
    while step > 1:
        step //= 2
        if is_over(number + step):
            number += step
    return close_id(account, symbol, names, number + 1)


def build_open_intent(
    account: str,
    order: RulingToExecute,
    places: Mapping[Venue, ExchangeState],
    mandate: Mandate | None,
    dollars: Decimal | None = None,
) -> TradeIntent | str:
    """The intent of a ruling that opens something, or why there is none. Prices at an exchange in another currency are
    turned into it by what the coin costs in both; `dollars`: its mark now, the ruling's where it is not known."""
    ruling, card = order.ruling, order.ruling.card
    side = ruling.decision.side
    if side is None or card is None or ruling.execution_style is None:
        return "the ruling opens nothing"
    if order.mark is None or order.atr is None:
        return "the ruling's mark or ATR is not known"
    legs: list[IntentLeg] = []
    left_out: list[str] = []
    for leg in ruling.legs:
        state = places.get(leg.venue)
        if state is None or leg.quantity is None:
            left_out.append(f"{leg.venue} is not there")
            continue
        rate = Decimal(1) if leg.venue is Venue("BINANCE") else state.quote.mark / (dollars or order.mark)
        entry, stop, target = (
            round_to_step(to_decimal(price) * rate, state.filters.tick)
            for price in (card.entry, card.stop, card.target)
        )
        quantity = round_to_step(to_decimal(leg.quantity), state.filters.lot)
        refusal = _find_leg_refusal(side, quantity, entry, stop, target, state)
        if refusal is not None:
            left_out.append(f"{leg.venue}: {refusal}")
            continue
        legs.append(
            IntentLeg(
                exchange=leg.venue,
                quantity=quantity,
                entry=entry,
                stop=stop,
                target=target,
                leverage=max(1, int(leg.leverage)),
            )
        )
    if not legs:
        return "; ".join(left_out) or "the ruling opens nothing"
    return TradeIntent(
        id=intent_id(account, order),
        decision=order.run_id,
        kind=IntentKind.OPEN,
        symbol=order.symbol,
        mode=order.mode,
        side=side,
        style=ruling.execution_style,
        legs=tuple(legs),
        hold=card.hold,
        valid_until=order.valid_until,
        mark=order.mark,
        atr=order.atr,
        exploration=card.exploration,
        judge=order.judge,
        family=order.family,
        edge=order.edge,
        llm_cost_usd=order.llm_cost_usd,
        mandate=None if mandate is None else hash_mandate(mandate),
        left_out="; ".join(left_out)[:600],
    )


def build_close_intent(
    id: str,
    decision: str,
    symbol: Symbol,
    side: Side,
    mark: Decimal,
    reason: ExitReason,
    mandate: Mandate | None = None,
) -> TradeIntent:
    return TradeIntent(
        id=id,
        decision=decision,
        kind=IntentKind.CLOSE,
        symbol=symbol,
        mode=Mode.SWING,
        side=side,
        style=Style.CASINO_EXIT,
        legs=(),
        valid_until=Millis(CLOSE_LIFE),
        mark=mark,
        atr=Decimal(0),
        reason=reason,
        mandate=None if mandate is None else hash_mandate(mandate),
    )


def build_exit(
    client_id: ClientId,
    exchange: Venue,
    symbol: Symbol,
    side: OrderSide,
    quantity: Decimal,
    position: OpenTrade | None = None,
) -> OrderRequest:
    """An order that takes at once and only reduces."""
    return OrderRequest(
        client_id=client_id,
        exchange=exchange,
        symbol=symbol,
        side=side,
        type=OrderType.MARKET,
        quantity=quantity,
        reduce_only=True,
        leverage=1 if position is None else max(1, int(position.leverage)),
    )


def _find_leg_refusal(
    side: Side, quantity: Decimal, entry: Decimal, stop: Decimal, target: Decimal, state: ExchangeState
) -> str | None:
    filters = state.filters
    if not filters.trading:
        return f"{filters.symbol} is not traded there"
    if not meets_minimum(quantity, entry, filters):
        return f"{quantity} at {entry} is less than it takes"
    if not filters.holds_stops and not meets_minimum(quantity, stop, filters):
        return f"{quantity} could not be sold at the stop {stop}: it is less than it takes"
    low, high = (stop, target) if side is Side.LONG else (target, stop)
    if not 0 < low < state.quote.mark < high:
        return f"the market is at {state.quote.mark}, not between the stop {stop} and the target {target}"
    return None


def _id(account: str, *content: object) -> str:
    return f"int_{digest(canonical([account, *content]))[:24]}"
