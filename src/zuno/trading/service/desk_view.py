"""What the desk that runs by itself tells: its events as they happen, and what a run of it came to."""

from typing import Literal

from zuno.kernel.view import ForeignText, IsoTime, View
from zuno.present.document import Document, Tone, Value, document, facts, lines
from zuno.present.values import bad, count, foreign, number
from zuno.trading.model.known import derive
from zuno.trading.model.memory import PostMortem
from zuno.trading.model.trade_events import LockSet
from zuno.trading.rules.protections import describe_end
from zuno.trading.service.origin_view import OriginView


class LedgerTotals(View):
    """By currency. Debits equal credits, and cash and positions add up to the equity."""

    debits: dict[str, float]
    credits: dict[str, float]
    cash: dict[str, float]
    """Margin of open positions included."""
    equity: dict[str, float | None]
    """At the market's prices; null where one is not known."""


class ProtectionView(View):
    protection: str
    symbol: str | None
    until: IsoTime | None
    """When it ends by itself."""
    ends: str
    reason: ForeignText

    def write(self, tone: Tone) -> Value:
        symbol = "" if self.symbol is None else f" {self.symbol}"
        return foreign(f"LOCKED{symbol} by {self.protection} {self.ends}: {self.reason}", tone)


DeskEventKind = Literal["cycle", "targets", "opened", "closed", "learned", "lock", "note"]


class DeskEvent(View):
    at: str
    what: DeskEventKind
    symbol: str | None = None
    said: ForeignText

    def write_line(self) -> str:
        return f"{self.at} {self.what:<7} {'' if self.symbol is None else f'{self.symbol} '}{self.said}"


class DeskStopView(View):
    account: ForeignText
    said: ForeignText

    def to_document(self) -> Document:
        return document(foreign(self.said))


class DeskRunView(OriginView):
    account: str
    trading: Literal["paper", "demo", "live"]
    """Whose money it is: nobody's on paper and demo."""
    mode: str
    symbols: tuple[str, ...]
    since: str
    until: str
    cycles: int
    trades: int
    """Closed in this run."""
    open_trades: int
    exploration: int
    """Of the trades that were opened in this run."""
    ledger: LedgerTotals
    invariants: str
    """`ok`: debits = credits and cash + positions = equity after every event, and no position without a stop."""
    protections: tuple[ProtectionView, ...]
    said: ForeignText
    notes: tuple[ForeignText, ...] = ()

    def to_document(self) -> Document:
        ledger = self.ledger
        account = f"{self.account}, {self.trading.upper()}"
        return document(
            foreign(f"Desk on {self.market}"),
            facts(
                ("account", bad(account) if self.trading == "live" else account),
                ("time", f"{self.since} – {self.until}, {self.mode}, {', '.join(self.symbols)}"),
                ("cycles", count(self.cycles)),
                ("trades closed", count(self.trades)),
                ("positions open", count(self.open_trades)),
                ("explorations opened", count(self.exploration)),
                *((f"equity {currency}", number(equity)) for currency, equity in ledger.equity.items()),
                *((f"cash {currency}", number(cash)) for currency, cash in ledger.cash.items()),
                *((f"debits {currency}", number(debits)) for currency, debits in ledger.debits.items()),
                *((f"credits {currency}", number(credits)) for currency, credits in ledger.credits.items()),
                ("invariants", Value(self.invariants, Tone.GOOD if self.invariants == "ok" else Tone.BAD)),
            ),
            lines(foreign(self.said, Tone.QUIET)),
            urgent=[lock.write(Tone.BAD) for lock in self.protections],
            notes=map(foreign, self.notes),
        )


def describe_post_mortem(written: PostMortem) -> str:
    r = "" if written.path.r is None else f" {written.path.r:+.2f} R"
    return f"{written.id} {written.verdict}{r}"


def protection_view(lock: LockSet, account: str) -> ProtectionView:
    return derive(ProtectionView, lock, ends=describe_end(lock, account))
