"""Taxable events of an account's log: fills, fees, funding, realised PnL of futures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from zuno.kernel.taxable import Amount, TaxableEvent, TaxableKind
from zuno.kernel.units import Millis
from zuno.trading.model.account import Holding, PositionClosed, PositionOpened
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.market import Side, Symbol
from zuno.trading.model.orders import SPOT, Fill, to_decimal
from zuno.trading.model.trade_events import Adopted, FillBooked, FundingBooked, ManualChange, TradeClosed, TradeEvent

_BOOKED: Final = "as booked"
_BY_HAND: Final = "written down by hand"


def list_taxable_events(account: str, events: Iterable[TradeEvent]) -> Iterator[TaxableEvent]:
    """In the order of the log. Spot trades have no `pnl`: which purchase a sale belongs to is for the law to say."""
    held: dict[str, Holding] = {}
    for event in events:
        match event:
            case FillBooked(fill=fill):
                yield from _list_of_fill(account, fill)
            case FundingBooked(payment=payment):
                reference = f"{payment.symbol}"
                yield _move_cash(
                    account, payment.exchange, "funding", payment.at, payment.amount, payment.id, reference
                )
            case TradeClosed(summary=trade) if trade.exchange not in SPOT:
                yield _move_cash(
                    account, trade.exchange, "pnl", trade.closed, trade.gross_pnl, trade.trade, trade.intent
                )
            case Adopted(exchange=exchange, cash=cash) if cash:
                yield _move_cash(account, exchange, "adjustment", event.at, cash, "", event.what)
            case ManualChange(change=PositionOpened() as opened):
                held[opened.position.id] = opened.position
                yield from _list_by_hand(
                    account, opened.position, opened.at, opened.position.entry, opened.fee, opening=True
                )
            case ManualChange(change=PositionClosed() as closed) if closed.id in held:
                yield from _list_by_hand(
                    account, held.pop(closed.id), closed.at, closed.price, closed.fee, opening=False
                )
            case _:
                pass


def _list_of_fill(account: str, fill: Fill) -> Iterator[TaxableEvent]:
    yield _exchange_assets(
        account, fill.exchange, fill.symbol, fill.at, fill.quantity, fill.price, fill.side.sign, fill.id, fill.client_id
    )
    if fill.fee:
        yield _move_cash(account, fill.exchange, "fee", fill.at, -fill.fee, fill.id, fill.client_id)
    if fill.foreign_fee:
        quantity, _, asset = fill.foreign_fee.partition(" ")
        paid, value = Amount(Decimal(quantity), asset), Amount(-Decimal(quantity), asset)
        yield TaxableEvent(fill.at, "fee", fill.exchange, account, (), (paid,), value, _BOOKED, fill.id, fill.client_id)


def _list_by_hand(
    account: str, holding: Holding, at: Millis, price: float, fee: float, *, opening: bool
) -> Iterator[TaxableEvent]:
    direction = 1 if holding.side is Side.LONG else -1
    quantity, at_price = to_decimal(holding.quantity), to_decimal(price)
    sign = direction if opening else -direction
    yield _exchange_assets(
        account, holding.exchange, holding.symbol, at, quantity, at_price, sign, "", f"{holding.id}, {_BY_HAND}"
    )
    if not opening and holding.exchange not in SPOT:
        result = (at_price - to_decimal(holding.entry)) * quantity * direction
        yield _move_cash(account, holding.exchange, "pnl", at, result, "", f"{holding.id}, {_BY_HAND}")
    if fee:
        yield _move_cash(account, holding.exchange, "fee", at, -to_decimal(fee), "", f"{holding.id}, {_BY_HAND}")


def _exchange_assets(
    account: str,
    exchange: Exchange,
    symbol: Symbol,
    at: Millis,
    quantity: Decimal,
    price: Decimal,
    sign: int,
    fill_id: str,
    reference: str,
) -> TaxableEvent:
    """At a spot exchange coins against cash; of futures the contract alone moves, its value is the notional."""
    cash = Amount(quantity * price, exchange.currency)
    spot = exchange in SPOT
    bought = (Amount(quantity, symbol.base if spot else f"{symbol} perpetual"),)
    paid = (cash,) if spot else ()
    received, given = (bought, paid) if sign > 0 else (paid, bought)
    return TaxableEvent(at, "trade", exchange, account, received, given, cash, _BOOKED, fill_id, reference)


def _move_cash(
    account: str, exchange: Exchange, kind: TaxableKind, at: Millis, amount: Decimal, event_id: str, reference: str
) -> TaxableEvent:
    cash = (Amount(abs(amount), exchange.currency),)
    received, given = (cash, ()) if amount >= 0 else ((), cash)
    value = Amount(amount, exchange.currency)
    return TaxableEvent(at, kind, exchange, account, received, given, value, _BOOKED, event_id, reference)
