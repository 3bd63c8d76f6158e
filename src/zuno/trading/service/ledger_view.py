"""The double-entry ledger of an account as it is shown: balances by exchange and by sleeve, and postings."""

from collections.abc import Mapping
from decimal import Decimal

from zuno.kernel.view import ForeignText, IsoTime, View
from zuno.present.document import Document, Table, Tone, Value, lines, row, section, table
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


class BalancesView(View):
    """Exact, as decimal strings."""

    currency: str
    balances: dict[str, str]
    debits: str
    credits: str
    assets: str
    """Equity with positions at cost."""
    balanced: bool


class LedgerBalancesView(BalancesView):
    exchange: str


class SleeveLedgerView(BalancesView):
    """Debits and credits are of the balances: the debate has what the exchanges' ledgers leave to it."""

    sleeve: str


class LedgerView(AccountView):
    ledgers: tuple[LedgerBalancesView, ...]
    sleeves: tuple[SleeveLedgerView, ...]
    postings: tuple[PostingView, ...]
    total: int

    def to_document(self) -> Document:
        whole = _write_balances({f"{ledger.currency} at {ledger.exchange}": ledger for ledger in self.ledgers})
        balanced = all(ledger.balanced for ledger in (*self.ledgers, *self.sleeves))
        verdict = lines(good("debits = credits") if balanced else bad("the ledger is out of balance"))
        by_sleeve = {f"{ledger.sleeve} {ledger.currency}": ledger for ledger in self.sleeves}
        several = len({ledger.sleeve for ledger in self.sleeves}) > 1
        sleeves = section("Sleeves", _write_balances(by_sleeve)) if several else None
        if not self.postings:
            return self.write("Ledger", whole, verdict, sleeves, note_rest(0, self.total))
        titles = ("no.", "time", "what", "exchange", "debit", "credit")
        postings = table(titles, map(_posting_row, self.postings), spare=("exchange",))
        rest = note_rest(len(self.postings), self.total)
        return self.write("Ledger", whole, verdict, sleeves, section("Postings", postings, rest))


def _write_balances(ledgers: Mapping[str, BalancesView]) -> Table:
    """Those that are not zero, one ledger to a column."""
    names = dict.fromkeys(name for ledger in ledgers.values() for name in ledger.balances)
    amounts = {name: [ledger.balances.get(name, "0") for ledger in ledgers.values()] for name in names}
    rows = [
        *(row(name, *map(_exact, held)) for name, held in amounts.items() if any(text != "0" for text in held)),
        row("debits", *(_exact(ledger.debits) for ledger in ledgers.values()), tone=Tone.STRONG),
        row("credits", *(_exact(ledger.credits) for ledger in ledgers.values()), tone=Tone.STRONG),
    ]
    return table(("account", *ledgers), rows)


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
