"""Intents: what is to be done about a ruling, in whole lots and on the tick, or that a symbol is to be closed; and the
ids by which the same intent is found again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.venue_context import DOLLAR, AccountContext, ExchangeState
from zuno.trading.model import orders
from zuno.trading.model.cycle import JudgeKind, RegimeFamily, Ruling, Style
from zuno.trading.model.known import pick
from zuno.trading.model.market import MINUTE_MS, Mode, Side
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.model.trade_events import ExitReason, IntentKind, IntentLeg, TradeIntent
from zuno.trading.rules.book_state import OpenTrade
from zuno.trading.rules.execution_styles import meets_minimum, round_to_step
from zuno.trading.rules.trading_book import TradingBook

CLOSE_LIFE: Final = 2**52
"""A close has no end of its own: it is worked until nothing is held."""
LEGS_SETTLE_MS: Final = MINUTE_MS
"""For so long the legs of a hedged position may differ while they are filled or cut; then both are undone."""
MOST_EXITS: Final = 16
"""Of one close: more are not looked for."""
EXIT_SERIES: Final = {"exit": ExitReason.OWNER, "kill": ExitReason.KILL_SWITCH}
"""Words in the client ids of exits, and the reason each stands for: an exit that no log has is told by its id."""


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
class UnloggedClose:
    id: str
    reason: ExitReason
    killed: bool
    """Whether the kill switch sent it, whatever a close that was stored since gives as its reason."""
    sleeve: str = DEBATE


def intent_id(account: str, order: RulingToExecute) -> str:
    """The same for every run that rules the same at a moment: two identical decisions make one intent."""
    return build_id(account, order.symbol, order.mode, order.as_of, order.ruling.decision)


def close_id(account: str, symbol: Symbol, trades: tuple[str, ...], number: int) -> str:
    """The same for everybody who closes the same trades; `number`: closes of them that failed before."""
    return build_id(account, symbol, "close", list(trades), number)


def find_close_id(book: TradingBook, account: str, symbol: Symbol, sleeve: str = DEBATE) -> str:
    """Of the close of a symbol that is being worked, or else of the next one."""
    closing = (tracked.intent.id for tracked in book.list_intents(IntentKind.CLOSE, symbol, sleeve))
    return next(closing, None) or find_next_close_id(book, account, symbol, sleeve)


def find_next_close_id(book: TradingBook, account: str, symbol: Symbol, sleeve: str = DEBATE) -> str:
    """Of the next close of what is held or ordered, as if none were being worked."""
    names = (
        tuple(trade.id for trade in book.list_held(sleeve, symbol))
        or tuple(order.request.client_id for order in book.list_ordered(sleeve, symbol))
        or tuple(tracked.intent.id for tracked in book.list_intents(IntentKind.OPEN, symbol, sleeve))
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


def list_close_ids(book: TradingBook, account: str, exchange: Venue, symbol: Symbol, sleeve: str = DEBATE) -> list[str]:
    """Every close that an exit of what is held may have been sent for without being written: the one that is open, the
    one that would be next without it, the one that would have been before the entry was booked, and the one of a trade
    at another exchange, too, that has ended since."""
    ids = [find_close_id(book, account, symbol, sleeve), find_next_close_id(book, account, symbol, sleeve)]
    position = book.position(exchange, symbol, sleeve)
    if position is not None and position.intent in book.intents:
        entries = (book.orders[id] for id in book.intents[position.intent].orders)
        names = tuple(order.request.client_id for order in entries if order.purpose == "entry")
        ids.append(close_id(account, symbol, names, 0))
    if position is not None:
        ended = {
            summary.exchange: summary.trade
            for summary in book.closed
            if (summary.symbol, summary.sleeve) == (symbol, sleeve)
            and summary.exchange != exchange
            and summary.closed >= position.opened
        }
        for other in ended.values():
            pairs = ((other, position.id), (position.id, other))
            ids += [find_close_id_of(book, account, symbol, pair) for pair in pairs]
    return list(dict.fromkeys(ids))


def find_unlogged_close(book: TradingBook, account: str, fill: orders.Fill) -> UnloggedClose | None:
    """The close whose exit was sent while it could not be written, by the client id of the exit alone."""
    sleeves = dict.fromkeys((DEBATE, *(trade.sleeve for trade in book.positions_at(fill.exchange, fill.symbol))))
    ids = ((id, name) for name in sleeves for id in list_close_ids(book, account, fill.exchange, fill.symbol, name))
    for id, sleeve in ids:
        stored = book.intents.get(id)
        for series, reason in EXIT_SERIES.items():
            if fill.client_id in (
                orders.client_order_id(id, fill.exchange, series, number) for number in range(MOST_EXITS)
            ):
                stored_reason = None if stored is None else stored.intent.reason
                return UnloggedClose(id, stored_reason or reason, reason is ExitReason.KILL_SWITCH, sleeve)
    return None


def build_open_intent(
    account: AccountContext, order: RulingToExecute, places: Mapping[Venue, ExchangeState], dollars: Decimal | None
) -> TradeIntent | str:
    """The intent of a ruling that opens something, or why there is none. `dollars`: the coin's mark now; the ruling's
    where it is not known. A leg takes the leverage of what is held, and binds no more margin than was ruled."""
    ruling, card = order.ruling, order.ruling.card
    side = ruling.decision.side
    if side is None or card is None or ruling.execution_style is None:
        return "the ruling opens nothing"
    if order.mark is None or order.atr is None:
        return "the ruling's mark or ATR is not known"
    rates = find_rates((state.quote for state in places.values()), dollars or order.mark)
    run_pct = account.gate.let_run_pct if order.atr else 0
    legs: list[IntentLeg] = []
    left_out: list[str] = []
    for leg in ruling.legs:
        state = places.get(leg.venue)
        if state is None or leg.quantity is None:
            left_out.append(f"{leg.venue} is not there")
            continue
        entry, stop, target = (
            round_to_step(orders.to_decimal(price) * rates[leg.venue.currency], state.filters.tick)
            for price in (card.entry, card.stop, card.target)
        )
        ruled = max(1, int(leg.leverage))
        times = account.book.find_leverage(leg.venue, order.symbol) or ruled
        quantity = round_to_step(orders.to_decimal(leg.quantity) * min(times, ruled) / ruled, state.filters.lot)
        refusal = _find_leg_refusal(leg.side, quantity, entry, stop, target, state)
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
                leverage=times,
                side=None if leg.side is side else leg.side,
                leaves=_find_leaving(quantity, run_pct, min(stop, target), state.filters),
            )
        )
    if not legs:
        return "; ".join(left_out) or "the ruling opens nothing"
    return TradeIntent(
        **pick(order, "symbol", "mode", "valid_until", "mark", "atr", "judge", "family", "edge", "llm_cost_usd"),
        **pick(card, "hold", "exploration"),
        id=intent_id(account.name, order),
        decision=order.run_id,
        kind=IntentKind.OPEN,
        side=side,
        style=ruling.execution_style,
        legs=tuple(legs),
        mandate=account.mandate_hash() if account.gate.live else None,
        left_out="; ".join(left_out)[:600],
    )


def _find_leaving(quantity: Decimal, let_run_pct: int, price: Decimal, filters: orders.Filters) -> Decimal | None:
    """What leaves at the target, in whole lots; None where all of it does, for a part would be too small an order."""
    runs = round_to_step(quantity * let_run_pct / 100, filters.lot)
    least = min(runs, quantity - runs)
    taken = least > 0 and (filters.exchange.reduce_only or meets_minimum(least, price, filters))
    return quantity - runs if taken else None


def find_rates(quotes: Iterable[orders.VenueQuote], dollars: Decimal) -> dict[str, Decimal]:
    """What one dollar is in each currency: by what the coin costs in both."""
    return {quote.exchange.currency: quote.mark / dollars for quote in quotes} | {DOLLAR: Decimal(1)}


def build_close_intent(
    id: str,
    decision: str,
    symbol: Symbol,
    side: Side,
    mark: Decimal,
    reason: ExitReason,
    mandate: str | None = None,
    sleeve: str = DEBATE,
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
        mandate=mandate,
        sleeve=sleeve,
    )


def build_cut_intent(
    hedge: TradeIntent, id: str, quantity: Decimal, mark: Decimal, reason: ExitReason | None = None
) -> TradeIntent:
    """So much of both legs goes; without a reason what it brings in becomes margin."""
    return hedge.model_copy(
        update={
            "id": id,
            "reason": reason,
            "kind": IntentKind.CUT,
            "legs": tuple(leg.model_copy(update={"quantity": quantity}) for leg in hedge.legs),
            "valid_until": Millis(CLOSE_LIFE),
            "style": Style.CASINO_EXIT,
            "mark": mark,
        }
    )


def build_exit(
    client_id: orders.ClientId,
    exchange: Venue,
    symbol: Symbol,
    side: orders.OrderSide,
    quantity: Decimal,
    position: OpenTrade | None = None,
    *,
    netted: bool = False,
) -> orders.OrderRequest:
    """An order that takes at once and only reduces; `netted`: what the sleeve holds, not what the venue does."""
    return orders.OrderRequest(
        client_id=client_id,
        exchange=exchange,
        symbol=symbol,
        side=side,
        type=orders.OrderType.MARKET,
        quantity=quantity,
        reduce_only=not netted,
        leverage=1 if position is None else max(1, int(position.leverage)),
    )


def _find_leg_refusal(
    side: Side, quantity: Decimal, entry: Decimal, stop: Decimal, target: Decimal, state: ExchangeState
) -> str | None:
    filters = state.filters
    if (refusal := find_size_refusal(quantity, entry, filters)) is not None:
        return refusal
    venue = filters.exchange
    fee = Decimal(str(venue.taker)) / 100 if venue.fee_in_base else 0
    if venue.spot and not meets_minimum(round_to_step(quantity * (1 - fee), filters.lot), stop, filters):
        return f"{quantity} could not be sold at the stop {stop}: it is less than it takes"
    low, high = (stop, target) if side is Side.LONG else (target, stop)
    if not 0 < low < state.quote.mark < high:
        return f"the market is at {state.quote.mark}, not between the stop {stop} and the target {target}"
    return None


def find_size_refusal(quantity: Decimal, entry: Decimal, filters: orders.Filters) -> str | None:
    if not filters.trading:
        return f"{filters.symbol} is not traded there"
    if not meets_minimum(quantity, entry, filters):
        return f"{quantity} at {entry} is less than it takes"
    return None


def build_id(account: str, *content: object) -> str:
    return f"int_{digest(canonical([account, *content]))[:24]}"
