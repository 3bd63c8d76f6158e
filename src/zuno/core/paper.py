"""The paper book's rules: what each change makes of an account, and which changes no exchange would take.

A book is written forward in the market's time. That is why what stood before a moment stays what it was once the book
has gone past it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, assert_never

from zuno.core.account import margin_at, position_in, unrealised
from zuno.domain.account import Account, Holding, Liquidity, Resting
from zuno.domain.cycle import Exchange
from zuno.domain.errors import Refused, Unknown
from zuno.domain.trading import Side
from zuno.domain.units import Millis
from zuno.messages.account import (
    BookChange,
    Cancelled,
    Closed,
    LiquidityStated,
    Opened,
    Rested,
    holding_of,
    resting_of,
)
from zuno.messages.codec import canonical, digest

BEGINNING: Final = Account(usd=2_000.0, krw=2_000_000.0)
"""What every book begins with."""
MOST_LEVERAGE: Final = 3.0
_ROUNDING: Final = 1e-9
"""Of a sum: a margin that was asked for as a whole number comes back with the error of a double."""


def book_of(changes: Iterable[BookChange], before: Millis | None = None) -> Account:
    """What is held after these changes; `before`: after those of strictly earlier. `Refused` for one that cannot be."""
    account, newest = BEGINNING, 0
    for change in changes:
        if change.at < newest:
            raise Refused(f"A change of {change.at} ms stands behind one of {newest} ms; a book is written forward.")
        newest = change.at
        if before is None or change.at < before:
            account = applied(account, change)
    return account


def applied(account: Account, change: BookChange) -> Account:
    """The account after one change. `Refused` where no exchange would have it so, with the bound and the number."""
    match change:
        case Opened():
            return _opened(account, holding_of(change.position), change.fee)
        case Closed():
            return _closed(account, change)
        case Rested():
            return _rested(account, resting_of(change.order))
        case Cancelled():
            order = order_named(account, change.id)
            return replace(account, pending=tuple(one for one in account.pending if one is not order))
        case LiquidityStated():
            others = tuple(one for one in account.liquidity if one.symbol is not change.symbol)
            stated = (Liquidity(change.symbol, change.quantity),) if change.quantity else ()
            return replace(account, liquidity=(*others, *stated))
        case _:
            assert_never(change)


def free_cash(account: Account, exchange: Exchange) -> float:
    """What new margin can be taken from. Cash at Binance still holds the margin of what is open; Upbit's does not."""
    margin = margin_at(account, exchange)
    if exchange is Exchange.BINANCE:
        return account.usd - margin.total
    return account.krw - margin.pending


def position_named(account: Account, id: str) -> Holding:
    for one in account.positions:
        if one.id == id:
            return one
    raise Unknown(f"No position {id} is open; `zuno trade book show` lists those that are.")


def order_named(account: Account, id: str) -> Resting:
    for one in account.pending:
        if one.id == id:
            return one
    raise Unknown(f"No order {id} rests; `zuno trade book show` lists those that do.")


def new_id(kind: str, origin: str, number: int, *content: object) -> str:
    """A short name, the same for the same change in the same place of the same book."""
    return f"{kind}_{digest(canonical([origin, number, *content]))[:8]}"


def money(amount: float, exchange: Exchange) -> str:
    sign = "-" if amount < 0 else ""
    return f"{sign}${abs(amount):,.2f}" if exchange is Exchange.BINANCE else f"{sign}₩{abs(amount):,.0f}"


# -- each change


def _opened(account: Account, position: Holding, fee: float) -> Account:
    _allowed(account, position)
    _affordable(account, position, fee)
    paid = _with_cash(account, position.exchange, -fee)
    if position.exchange is Exchange.UPBIT:
        paid = _with_cash(paid, Exchange.UPBIT, -position.margin)
    return replace(paid, positions=(*account.positions, position))


def _closed(account: Account, change: Closed) -> Account:
    position = position_named(account, change.id)
    if change.at < position.opened:
        raise Refused(
            f"{position.id} was opened at {position.opened} ms; it cannot be closed before, at {change.at} ms."
        )
    back = unrealised(position, change.price)
    if position.exchange is Exchange.UPBIT:
        back += position.margin
    rest = replace(account, positions=tuple(one for one in account.positions if one is not position))
    return _with_cash(rest, position.exchange, back - change.fee)


def _rested(account: Account, order: Resting) -> Account:
    _allowed(account, order)
    _affordable(account, order, 0.0)
    return replace(account, pending=(*account.pending, order))


def _with_cash(account: Account, exchange: Exchange, more: float) -> Account:
    if exchange is Exchange.BINANCE:
        return replace(account, usd=account.usd + more)
    return replace(account, krw=account.krw + more)


def _allowed(account: Account, wish: Holding | Resting) -> None:
    taken: Sequence[Holding | Resting] = (*account.positions, *account.pending)
    if any(one.id == wish.id for one in taken):
        raise Refused(f"{wish.id} is in the book already.")
    if not 1 <= wish.leverage <= MOST_LEVERAGE:
        raise Refused(f"A leverage of {wish.leverage:g} is not between 1 and {MOST_LEVERAGE:g}.")
    if wish.exchange is Exchange.UPBIT:
        if wish.leverage != 1:
            raise Refused(f"UPBIT is a spot exchange: its leverage is 1, not {wish.leverage:g}.")
        if wish.side is not Side.LONG:
            raise Refused("UPBIT is a spot exchange: nothing can be sold short there; choose --exchange binance.")
    held = position_in(account, wish.symbol)
    if held is not None and held.side is not wish.side:
        raise Refused(
            f"The book is {held.side} {held.quantity:g} {wish.symbol.base} and holds one side of a symbol only; "
            f"`zuno trade book close {wish.symbol}` comes first."
        )


def _affordable(account: Account, wish: Holding | Resting, fee: float) -> None:
    free = free_cash(account, wish.exchange)
    needed = wish.margin + fee
    if needed > free * (1 + _ROUNDING) + _ROUNDING:
        raise Refused(
            f"A margin of {money(wish.margin, wish.exchange)} and a fee of {money(fee, wish.exchange)} are more than "
            f"the {money(free, wish.exchange)} that are free at {wish.exchange}."
        )
