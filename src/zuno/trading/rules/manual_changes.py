"""What a person writes down in a trading account: positions and orders of their own, and liquidity elsewhere."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, assert_never

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import NotFound, Refused
from zuno.trading.model.account import (
    BookChange,
    Holding,
    Liquidity,
    LiquidityStated,
    OrderCancelled,
    OrderPlaced,
    PositionClosed,
    PositionOpened,
    RestingOrder,
)
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.market import Side
from zuno.trading.model.orders import to_decimal
from zuno.trading.model.trade_events import ExitReason
from zuno.trading.rules.book_state import BookState, OpenTrade, hold_until
from zuno.trading.rules.ledger import ZERO, LedgerAccount, round_money

MAX_MANUAL_LEVERAGE: Final = 3.0
_ROUNDING: Final = Decimal("1e-9")
"""Of a margin that was asked for as a whole number and came back through a double."""


def apply_manual_change(book: BookState, change: BookChange) -> Exchange | None:
    """The exchange whose money moved. `Refused` or `NotFound` for a change that cannot be."""
    match change:
        case PositionOpened():
            return _open_by_hand(book, change.position, to_decimal(change.fee))
        case PositionClosed():
            return _close_by_hand(book, change)
        case OrderPlaced():
            _check_by_hand(book, change.order)
            _check_affordable(book, change.order, ZERO)
            book.resting[change.order.id] = change.order
        case OrderCancelled():
            del book.resting[find_resting(book, change.id).id]
        case LiquidityStated():
            book.liquidity.pop(change.symbol, None)
            if change.quantity:
                book.liquidity[change.symbol] = Liquidity(symbol=change.symbol, quantity=change.quantity)
        case _:
            assert_never(change)
    return None


def _open_by_hand(book: BookState, holding: Holding, fee: Decimal) -> Exchange:
    _check_by_hand(book, holding)
    _check_affordable(book, holding, fee)
    book.require_account()
    spot = holding.exchange is Exchange.UPBIT
    quantity, leverage = to_decimal(holding.quantity), to_decimal(holding.leverage)
    cost, fee = round_money(quantity * to_decimal(holding.entry)), round_money(fee)
    margin = ZERO if spot else round_money(cost / leverage)
    stop, target = _decimal_or_none(holding.stop), _decimal_or_none(holding.take)
    trade = OpenTrade(
        id=holding.id,
        exchange=holding.exchange,
        symbol=holding.symbol,
        side=holding.side,
        leverage=leverage,
        opened=holding.opened,
        quantity=quantity,
        cost=cost,
        margin=margin,
        stop=stop,
        target=target,
        first_stop=stop,
        first_target=target,
        hold=holding.hold,
        hold_until=hold_until(holding.opened, holding.hold),
        fees=fee,
        most=quantity,
        entered=quantity,
        entered_value=cost,
        holding=holding,
    )
    book.trades[trade.id] = trade
    asset, put = (LedgerAccount.INVENTORY, cost) if spot else (LedgerAccount.MARGIN, margin)
    book.ledger.post(holding.exchange, (asset, put), (LedgerAccount.CASH, -put - fee), (LedgerAccount.MANUAL, fee))
    book.realise(holding.exchange, -fee)
    return holding.exchange


def _close_by_hand(book: BookState, change: PositionClosed) -> Exchange:
    trade = book.trades.get(change.id)
    if trade is None:
        raise NotFound(f"No position {change.id} is open; `zuno trade book show` lists those that are.")
    if not trade.manual:
        raise Refused(f"{trade.id} is a trade of the desk; `zuno trade close {trade.id}` ends it at its exchange.")
    if change.at < trade.opened:
        raise Refused(f"{trade.id} was opened at {trade.opened} ms; it cannot be closed before, at {change.at} ms.")
    value, fee = round_money(trade.quantity * to_decimal(change.price)), round_money(to_decimal(change.fee))
    gross = value - trade.cost if trade.side is Side.LONG else trade.cost - value
    spot = trade.exchange is Exchange.UPBIT
    asset, back = (LedgerAccount.INVENTORY, trade.cost) if spot else (LedgerAccount.MARGIN, trade.margin)
    book.ledger.post(
        trade.exchange,
        (asset, -back),
        (LedgerAccount.CASH, back + gross - fee),
        (LedgerAccount.MANUAL, fee - gross),
    )
    book.realise(trade.exchange, gross - fee)
    trade.exited, trade.exited_value = trade.quantity, value
    trade.gross, trade.fees, trade.closed = gross, trade.fees + fee, change.at
    del book.trades[trade.id]
    book.closed.append(book.summarise(trade, ExitReason.MANUAL))
    return trade.exchange


def _check_by_hand(book: BookState, wish: Holding | RestingOrder) -> None:
    if wish.id in book.trades or wish.id in book.resting:
        raise Refused(f"{wish.id} is in the book already.")
    if not 1 <= wish.leverage <= MAX_MANUAL_LEVERAGE:
        raise Refused(f"A leverage of {wish.leverage:g} is not between 1 and {MAX_MANUAL_LEVERAGE:g}.")
    if wish.exchange is Exchange.UPBIT:
        if wish.leverage != 1:
            raise Refused(f"UPBIT is a spot exchange: its leverage is 1, not {wish.leverage:g}.")
        if wish.side is not Side.LONG:
            raise Refused("UPBIT is a spot exchange: nothing can be sold short there; choose --exchange binance.")
    held = book.side_of(wish.symbol)
    if held is not None and held is not wish.side:
        raise Refused(
            f"The book is {held} {wish.symbol.base} and holds one side of a symbol only; "
            f"`zuno trade book close {wish.symbol}` comes first."
        )


def _check_affordable(book: BookState, wish: Holding | RestingOrder, fee: Decimal) -> None:
    """Of the cash: what open positions have lost since is the writer's to look at, who knows the market."""
    free = book.cash(wish.exchange) - book.pending_margin(wish.exchange)
    needed = to_decimal(wish.margin) + fee
    if needed > free * (1 + _ROUNDING) + _ROUNDING:
        raise Refused(
            f"A margin of {format_money(wish.margin, wish.exchange)} and a fee of "
            f"{format_money(float(fee), wish.exchange)} are more than the "
            f"{format_money(float(free), wish.exchange)} that are free at {wish.exchange}."
        )


def find_resting(book: BookState, id: str) -> RestingOrder:
    resting = book.resting.get(id)
    if resting is None:
        raise NotFound(f"No order {id} rests; `zuno trade book show` lists those that do.")
    return resting


def new_id(kind: str, origin: str, number: int, *content: object) -> str:
    """A short name, the same for the same change in the same place of the same book."""
    return f"{kind}_{digest(canonical([origin, number, *content]))[:8]}"


def format_money(amount: float, exchange: Exchange) -> str:
    sign = "-" if amount < 0 else ""
    return f"{sign}${abs(amount):,.2f}" if exchange is Exchange.BINANCE else f"{sign}₩{abs(amount):,.0f}"


def _decimal_or_none(number: float | None) -> Decimal | None:
    return None if number is None else to_decimal(number)
