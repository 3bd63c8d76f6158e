"""The past of a trading account, event by event: what was posted to the ledger, and what was held from when on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from zuno.kernel.units import Millis
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.market import Side
from zuno.trading.model.trade_events import AccountOpened, Adopted, FillBooked, FundingBooked, ManualChange, TradeEvent
from zuno.trading.rules.book_state import STARTING_CASH
from zuno.trading.rules.ledger import ZERO, LedgerAccount
from zuno.trading.rules.performance import AccountStep, OpenQuantity
from zuno.trading.rules.trading_book import TradingBook


@dataclass(frozen=True, slots=True)
class Posting:
    """Lines that were booked together; they add up to zero. Money in the exchange's own currency."""

    number: int
    """Of the event, counted from 1."""
    at: Millis
    exchange: Exchange
    what: str
    lines: tuple[tuple[LedgerAccount, Decimal], ...]
    """A debit is above zero."""


@dataclass(frozen=True, slots=True)
class AccountHistory:
    book: TradingBook
    postings: tuple[Posting, ...]
    steps: tuple[AccountStep, ...]


def trace_account(events: Iterable[TradeEvent]) -> AccountHistory:
    """Fold an account's events and keep what each of them changed."""
    book = TradingBook()
    postings: list[Posting] = []
    steps: list[AccountStep] = []
    before = _balances(book)
    for number, event in enumerate(events, 1):
        if number == 1 and not isinstance(event, AccountOpened):
            # A paper account that nobody opened starts just before its first event.
            before = _opening_balances()
            postings += _find_postings(0, AccountOpened(at=event.at, usd=ZERO, krw=ZERO), _balances(book), before)
            steps.append(current_step(book, Millis(event.at - 1)))
        book.apply(event)
        after = _balances(book)
        if after != before:
            postings += _find_postings(number, event, before, after)
            steps.append(current_step(book, event.at))
            before = after
    return AccountHistory(book, tuple(postings), tuple(steps))


def _opening_balances() -> _Balances:
    cash = {(exchange, LedgerAccount.CASH): amount for exchange, amount in STARTING_CASH.items()}
    capital = {(exchange, LedgerAccount.CAPITAL): -amount for exchange, amount in STARTING_CASH.items()}
    return {**_balances(TradingBook()), **cash, **capital}


_Balances = dict[tuple[Exchange, LedgerAccount], Decimal]


def _balances(book: TradingBook) -> _Balances:
    return {
        (exchange, account): book.ledger.balance(exchange, account)
        for exchange in Exchange
        for account in LedgerAccount
    }


def _find_postings(number: int, event: TradeEvent, before: _Balances, after: _Balances) -> list[Posting]:
    found = []
    for exchange in Exchange:
        lines = tuple(
            (account, change)
            for account in LedgerAccount
            if (change := after[exchange, account] - before[exchange, account])
        )
        if lines:
            found.append(Posting(number, event.at, exchange, _describe_event(event), lines))
    return found


def _describe_event(event: TradeEvent) -> str:
    match event:
        case FillBooked(fill=fill):
            kind = "liquidation" if fill.liquidation else f"{fill.side.lower()} fill"
            return f"{kind} of {fill.quantity.normalize():f} {fill.symbol.base} at {fill.price.normalize():f}"
        case FundingBooked(payment=payment):
            return f"funding of {payment.symbol}"
        case ManualChange(change=change):
            return f"written by hand: {change.kind}"
        case AccountOpened():
            return "account opened"
        case Adopted(what=what):
            return what
        case _:
            return event.kind.replace("_", " ")


def current_step(book: TradingBook, at: Millis) -> AccountStep:
    """What an account holds at a moment, as its equity is counted."""
    held = tuple(
        OpenQuantity(
            trade.exchange, trade.symbol, trade.quantity if trade.side is Side.LONG else -trade.quantity, trade.entry
        )
        for trade in book.trades.values()
    )
    usd = book.cash(Exchange.BINANCE) + book.margin(Exchange.BINANCE)
    return AccountStep(at, usd, book.cash(Exchange.UPBIT), held)
