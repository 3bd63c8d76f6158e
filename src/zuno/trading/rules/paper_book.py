"""Paper book rules: how each change updates the account, and which changes are refused.

Changes are applied in market time, so the account before a past moment never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, assert_never

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import Refused, Unknown
from zuno.kernel.units import Millis
from zuno.trading.model.account import (
    Account,
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
from zuno.trading.rules.account import margin_at, position_in, unrealised_pnl

STARTING_ACCOUNT: Final = Account(usd=2_000.0, krw=2_000_000.0)
"""The account every paper book starts with."""
MAX_LEVERAGE: Final = 3.0
_ROUNDING: Final = 1e-9
"""Of a sum: a margin that was asked for as a whole number comes back with the error of a double."""


def replay_changes(changes: Iterable[BookChange], before: Millis | None = None) -> Account:
    """The account after these changes; `before`: only strictly earlier ones. `Refused` for an impossible change."""
    account, newest = STARTING_ACCOUNT, 0
    for change in changes:
        if change.at < newest:
            raise Refused(f"A change of {change.at} ms stands behind one of {newest} ms; a book is written forward.")
        newest = change.at
        if before is None or change.at < before:
            account = apply_change(account, change)
    return account


def apply_change(account: Account, change: BookChange) -> Account:
    """The account after one change. `Refused` where no exchange would have it so, with the bound and the number."""
    match change:
        case PositionOpened():
            return _open_position(account, change.position, change.fee)
        case PositionClosed():
            return _close_position(account, change)
        case OrderPlaced():
            return _place_order(account, change.order)
        case OrderCancelled():
            order = find_order(account, change.id)
            return replace(account, pending=tuple(resting for resting in account.pending if resting is not order))
        case LiquidityStated():
            others = tuple(pool for pool in account.liquidity if pool.symbol is not change.symbol)
            stated = (Liquidity(symbol=change.symbol, quantity=change.quantity),) if change.quantity else ()
            return replace(account, liquidity=(*others, *stated))
        case _:
            assert_never(change)


def free_cash(account: Account, exchange: Exchange) -> float:
    """Cash available as margin. Binance cash includes the margin of open positions; Upbit cash does not."""
    margin = margin_at(account, exchange)
    if exchange is Exchange.BINANCE:
        return account.usd - margin.total
    return account.krw - margin.pending


def find_position(account: Account, id: str) -> Holding:
    for holding in account.positions:
        if holding.id == id:
            return holding
    raise Unknown(f"No position {id} is open; `zuno trade book show` lists those that are.")


def find_order(account: Account, id: str) -> RestingOrder:
    for resting in account.pending:
        if resting.id == id:
            return resting
    raise Unknown(f"No order {id} rests; `zuno trade book show` lists those that do.")


def new_id(kind: str, origin: str, number: int, *content: object) -> str:
    """A short name, the same for the same change in the same place of the same book."""
    return f"{kind}_{digest(canonical([origin, number, *content]))[:8]}"


def format_money(amount: float, exchange: Exchange) -> str:
    sign = "-" if amount < 0 else ""
    return f"{sign}${abs(amount):,.2f}" if exchange is Exchange.BINANCE else f"{sign}₩{abs(amount):,.0f}"


# -- each change


def _open_position(account: Account, position: Holding, fee: float) -> Account:
    _check_allowed(account, position)
    _check_affordable(account, position, fee)
    paid = _add_cash(account, position.exchange, -fee)
    if position.exchange is Exchange.UPBIT:
        paid = _add_cash(paid, Exchange.UPBIT, -position.margin)
    return replace(paid, positions=(*account.positions, position))


def _close_position(account: Account, change: PositionClosed) -> Account:
    position = find_position(account, change.id)
    if change.at < position.opened:
        raise Refused(
            f"{position.id} was opened at {position.opened} ms; it cannot be closed before, at {change.at} ms."
        )
    back = unrealised_pnl(position, change.price)
    if position.exchange is Exchange.UPBIT:
        back += position.margin
    rest = replace(account, positions=tuple(holding for holding in account.positions if holding is not position))
    return _add_cash(rest, position.exchange, back - change.fee)


def _place_order(account: Account, order: RestingOrder) -> Account:
    _check_allowed(account, order)
    _check_affordable(account, order, 0.0)
    return replace(account, pending=(*account.pending, order))


def _add_cash(account: Account, exchange: Exchange, more: float) -> Account:
    if exchange is Exchange.BINANCE:
        return replace(account, usd=account.usd + more)
    return replace(account, krw=account.krw + more)


def _check_allowed(account: Account, wish: Holding | RestingOrder) -> None:
    taken: Sequence[Holding | RestingOrder] = (*account.positions, *account.pending)
    if any(holding.id == wish.id for holding in taken):
        raise Refused(f"{wish.id} is in the book already.")
    if not 1 <= wish.leverage <= MAX_LEVERAGE:
        raise Refused(f"A leverage of {wish.leverage:g} is not between 1 and {MAX_LEVERAGE:g}.")
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


def _check_affordable(account: Account, wish: Holding | RestingOrder, fee: float) -> None:
    free = free_cash(account, wish.exchange)
    needed = wish.margin + fee
    if needed > free * (1 + _ROUNDING) + _ROUNDING:
        raise Refused(
            f"A margin of {format_money(wish.margin, wish.exchange)} and a fee of {format_money(fee, wish.exchange)} "
            f"are more than the {format_money(free, wish.exchange)} that are free at {wish.exchange}."
        )
