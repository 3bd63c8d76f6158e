"""An account's sleeves as they are shown: what share each is to have, what it holds, and what it made."""

from collections.abc import Sequence

from zuno.kernel.numbers_text import quantity_text
from zuno.kernel.view import View
from zuno.markets.market import Symbol
from zuno.present.document import Section, Table, Value, section, table
from zuno.present.values import bad, gain, good, money, quiet, share


class SleeveHoldingView(View):
    """What a sleeve has of a market, below zero if it is short; legs that hedge each other are netted."""

    symbol: str
    quantity: float


class SleeveView(View):
    """A sleeve in dollars. Capital, realised and open result add up to its equity."""

    name: str
    share: float
    """Of the account's capital, as it was set; 0: none was."""
    weight: float | None
    """Its equity as a share of the account's."""
    capital_usd: float
    """Given to it, less what it gave back."""
    realised_usd: float
    """Fees and funding included."""
    open_usd: float | None
    equity_usd: float | None
    balanced: bool
    """Whether its debits equal its credits."""
    holds: tuple[SleeveHoldingView, ...]

    def write_row(self) -> tuple[str | Value, ...]:
        held = [f"{quantity_text(part.quantity, 6)} {Symbol(part.symbol).base}" for part in self.holds]
        return (
            self.name,
            share(self.share),
            share(self.weight),
            money(self.equity_usd),
            money(self.capital_usd),
            gain(self.realised_usd),
            gain(self.open_usd),
            "\n".join(held) or quiet("cash"),
            good("equal") if self.balanced else bad("NOT equal"),
        )


def write_sleeves(sleeves: Sequence[SleeveView]) -> Table:
    columns = ("sleeve", "share", "weight", "equity", "capital", "realised", "open", "holds", "debits = credits")
    spare = ("debits = credits", "capital", "weight", "share", "realised", "open")
    return table(columns, (sleeve.write_row() for sleeve in sleeves), spare=spare, joiners={"holds": ", "})


def sleeves_section(sleeves: Sequence[SleeveView]) -> Section | None:
    """Nothing where the debate is all there is."""
    return section("Sleeves", write_sleeves(sleeves)) if len(sleeves) > 1 else None
