"""The ledger of an account as it is shown: exact balances and postings."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from zuno.kernel.view import ForeignText, IsoTime, View
from zuno.present.document import Document, Tone, Value, lines, row, section, table
from zuno.present.values import bad, foreign, good
from zuno.trading.service.account_view import AccountView, note_rest


class LedgerLineView(View):
    account: str
    amount: str
    """A debit is above zero."""


class PostingView(View):
    number: int
    at: IsoTime
    exchange: str
    currency: str
    what: ForeignText
    lines: tuple[LedgerLineView, ...]


class LedgerBalancesView(View):
    """Exact, as decimal strings."""

    exchange: str
    currency: str
    balances: dict[str, str]
    debits: str
    credits: str
    assets: str
    """Equity with positions at cost."""
    balanced: bool
    LEFT_OUT: ClassVar = frozenset({"assets"})


class LedgerView(AccountView):
    """Postings newest first."""

    ledgers: tuple[LedgerBalancesView, ...]
    postings: tuple[PostingView, ...]
    total: int

    def to_document(self) -> Document:
        names = dict.fromkeys(name for ledger in self.ledgers for name in ledger.balances)
        amounts = {name: [ledger.balances.get(name, "0") for ledger in self.ledgers] for name in names}
        rows = [
            *(row(name, *map(_exact, held)) for name, held in amounts.items() if any(text != "0" for text in held)),
            row("debits", *(_exact(ledger.debits) for ledger in self.ledgers), tone=Tone.STRONG),
            row("credits", *(_exact(ledger.credits) for ledger in self.ledgers), tone=Tone.STRONG),
        ]
        columns = ("account", *(f"{ledger.currency} at {ledger.exchange}" for ledger in self.ledgers))
        whole = all(ledger.balanced for ledger in self.ledgers)
        verdict = lines(good("debits = credits") if whole else bad("the ledger is out of balance"))
        if not self.postings:
            return self.write("Ledger", table(columns, rows), verdict, note_rest(0, self.total))
        titles = ("no.", "time", "what", "exchange", "debit", "credit")
        postings = table(titles, map(_posting_row, self.postings), spare=("exchange",))
        rest = note_rest(len(self.postings), self.total)
        return self.write("Ledger", table(columns, rows), verdict, section("Postings", postings, rest))


def _posting_row(posting: PostingView) -> tuple[str | Value, ...]:
    debits = (line for line in posting.lines if not line.amount.startswith("-"))
    credits = (line for line in posting.lines if line.amount.startswith("-"))
    return (
        str(posting.number),
        posting.at,
        foreign(posting.what),
        f"{posting.exchange} {posting.currency}",
        "\n".join(f"{line.account} {_exact(line.amount).text}" for line in debits),
        "\n".join(f"{line.account} {_exact(line.amount[1:]).text}" for line in credits),
    )


def _exact(amount: str) -> Value:
    """To the cent or finer, as it was booked."""
    exact = Decimal(amount)
    text = f"{exact:,.2f}" if exact == round(exact, 2) else f"{exact:,.6f}".rstrip("0")
    return Value(text, number=exact)
