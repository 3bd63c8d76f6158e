"""What an exchange says of an account, held against the account's log; shown as it is."""

from __future__ import annotations

from decimal import Decimal

from zuno.kernel.view import ForeignText, View
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.market import Symbol


class Unbooked(View):
    """A position or an order that the log has otherwise, or not at all: a stranger's, or a fill of the last seconds."""

    exchange: Exchange
    symbol: Symbol
    order: ForeignText | None = None
    """Its id; null: a position."""
    quantity: Decimal
    """At the exchange. Below zero is short, or an order to sell."""
    booked: Decimal = Decimal(0)
    """In the log."""

    def __str__(self) -> str:
        if self.order is None:
            return f"{self.exchange} holds {self.quantity} {self.symbol.base}, the book {self.booked}"
        return (
            f"{self.exchange} has an order of {self.quantity} {self.symbol.base} that is not in the book ({self.order})"
        )


class ExchangeAnswer(View):
    """`askedAt` null: it was not asked. `unknown`: why what it holds is not known; null where it answered."""

    exchange: Exchange
    asked_at: str | None = None
    unknown: ForeignText | None = None
    total: float | None = None
    """Balance in the exchange's own currency, margin included."""
    free: float | None = None
    """What a new order may use."""
    unbooked: tuple[Unbooked, ...] = ()

    def describe(self) -> list[str]:
        """What has to be known beside the log; nothing where both agree."""
        if self.unknown is not None:
            how = "was not asked" if self.asked_at is None else "was asked and did not say what it holds"
            return [f"{self.exchange} {how}: {self.unknown}"]
        return [f"{found}; the desk counts and closes what is in its book alone" for found in self.unbooked]
