"""What an exchange says of an account, held against the account's log; shown as it is."""

from __future__ import annotations

from zuno.kernel.view import ForeignText, View


class Unbooked(View):
    """A position or an order that the log has otherwise, or not at all: a stranger's, or a fill of the last seconds."""

    symbol: str
    order: ForeignText | None = None
    """Its id; null: a position."""
    quantity: float
    """At the exchange. Below zero is short, or an order to sell."""
    booked: float = 0.0
    """In the log."""


class ExchangeAnswer(View):
    """`askedAt` null: it was not asked. `unknown`: why what it holds is not known; null where it answered."""

    exchange: str
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
        return [
            f"{self.exchange} {'holds' if found.order is None else f'has an order ({found.order}) of'} "
            f"{found.quantity:+.8g} {found.symbol}, the log {found.booked:+.8g}; the desk closes what its log has"
            for found in self.unbooked
        ]
