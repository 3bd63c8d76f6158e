"""Taxable events of an account's log: fills, fees, funding, realised PnL of futures."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from zuno.kernel.taxable import Amount, TaxableEvent, TaxableKind
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.account import Holding, PositionClosed, PositionOpened
from zuno.trading.model.market import Side
from zuno.trading.model.orders import to_decimal
from zuno.trading.model.trade_events import Adopted, FillBooked, FundingBooked, ManualChange, TradeClosed, TradeEvent


class _Entry(NamedTuple):
    """What the events of one fill, payment or position have in common."""

    account: str
    exchange: Venue
    at: Millis
    id: str
    reference: str

    def trade(self, symbol: Symbol, quantity: Decimal, price: Decimal, sign: int) -> TaxableEvent:
        """At a spot exchange coins against cash; of futures the contract alone moves, its value is the notional."""
        cash = Amount(quantity * price, self.exchange.currency)
        spot = self.exchange.spot
        bought = (Amount(quantity, symbol.base if spot else f"{symbol} perpetual"),)
        paid = (cash,) if spot else ()
        received, given = (bought, paid) if sign > 0 else (paid, bought)
        return self._record("trade", received, given, cash)

    def move(self, kind: TaxableKind, quantity: Decimal, asset: str = "") -> TaxableEvent:
        """Cash of the exchange, or another asset; below zero it was given."""
        value = Amount(quantity, asset or self.exchange.currency)
        moved = (Amount(abs(quantity), value.asset),)
        received, given = (moved, ()) if quantity >= 0 else ((), moved)
        return self._record(kind, received, given, value)

    def _record(
        self, kind: TaxableKind, received: tuple[Amount, ...], given: tuple[Amount, ...], value: Amount
    ) -> TaxableEvent:
        about = self.at, kind, self.exchange, self.account
        return TaxableEvent(*about, received, given, value, "as booked", self.id, self.reference)


def list_taxable_events(account: str, events: Iterable[TradeEvent]) -> Iterator[TaxableEvent]:
    """In the order of the log. Spot trades have no `pnl`: which purchase a sale belongs to is for the law to say."""
    held: dict[str, Holding] = {}
    for event in events:
        match event:
            case FillBooked(fill=fill, left_out=""):
                entry = _Entry(account, fill.exchange, fill.at, fill.id, fill.client_id)
                yield entry.trade(fill.symbol, fill.quantity, fill.price, fill.side.sign)
                if fill.fee:
                    yield entry.move("fee", -fill.fee)
                if fill.foreign_fee:
                    quantity, _, asset = fill.foreign_fee.partition(" ")
                    yield entry.move("fee", -Decimal(quantity), asset)
            case FundingBooked(payment=paid):
                yield _Entry(account, paid.exchange, paid.at, paid.id, str(paid.symbol)).move("funding", paid.amount)
            case TradeClosed(summary=trade) if not trade.exchange.spot:
                entry = _Entry(account, trade.exchange, trade.closed, trade.trade, trade.intent)
                yield entry.move("pnl", trade.gross_pnl)
            case Adopted(exchange=exchange, cash=cash) if cash:
                yield _Entry(account, exchange, event.at, "", event.what).move("adjustment", cash)
            case ManualChange(change=PositionOpened() as opened):
                holding = held[opened.position.id] = opened.position
                yield from _list_by_hand(account, holding, opened.at, holding.entry, opened.fee, opening=True)
            case ManualChange(change=PositionClosed() as closed) if closed.id in held:
                holding = held.pop(closed.id)
                yield from _list_by_hand(account, holding, closed.at, closed.price, closed.fee, opening=False)
            case _:
                pass


def _list_by_hand(
    account: str, holding: Holding, at: Millis, price: float, fee: float, *, opening: bool
) -> Iterator[TaxableEvent]:
    entry = _Entry(account, holding.exchange, at, "", f"{holding.id}, written down by hand")
    direction = 1 if holding.side is Side.LONG else -1
    quantity, at_price = to_decimal(holding.quantity), to_decimal(price)
    yield entry.trade(holding.symbol, quantity, at_price, direction if opening else -direction)
    if not opening and not holding.exchange.spot:
        yield entry.move("pnl", (at_price - to_decimal(holding.entry)) * quantity * direction)
    if fee:
        yield entry.move("fee", -to_decimal(fee))
