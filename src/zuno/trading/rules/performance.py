"""How trades came out: win rate, profit factor, expectancy in money and R, costs; and the equity curve of an account.

Money is in dollars; other currencies are turned into dollars at one rate, that of the moment which is asked about.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Final, Protocol

from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue, sort_venues
from zuno.trading.model import trade_events
from zuno.trading.model.orders import ZERO, Fill
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.ports.trade_log import TradeLog
from zuno.trading.rules.book_state import Ledger, LedgerAccount
from zuno.trading.rules.trading_book import TradingBook

MOST_STEPS: Final = 100
"""Steps of an account that are drawn beside the closes."""


class GroupBy(StrEnum):
    """What trades are grouped by; days, weeks (from Monday) and months are those of the close, in UTC."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    SYMBOL = "symbol"
    EXIT = "exit"
    SIDE = "side"
    SLEEVE = "sleeve"


@dataclass(frozen=True, slots=True)
class Performance:
    """Figures over closed trades. What needs trades of a kind that there are none of is None."""

    trades: int
    wins: int
    losses: int
    net_pnl: Decimal
    gross_pnl: Decimal
    fees: Decimal
    funding: Decimal
    model_cost: Decimal
    """Not part of `net_pnl`."""
    profit_factor: Decimal | None
    """Net profit of winners over net loss of losers; None without a loser."""
    expectancy_r: Decimal | None
    """Mean net PnL in R over the `r_trades` that had a stop. Each counts alike, so its sign may differ from
    `expectancy`'s."""
    r_trades: int
    mean_duration_ms: int | None
    best: Decimal | None
    worst: Decimal | None
    unconverted: int
    """Trades in a currency without a known rate: counted nowhere else."""

    @property
    def win_rate(self) -> Decimal | None:
        return Decimal(self.wins) / self.trades if self.trades else None

    @property
    def expectancy(self) -> Decimal | None:
        return self.net_pnl / self.trades if self.trades else None


@dataclass(frozen=True, slots=True)
class OpenQuantity:
    """Part of an account that moves with the market. `quantity` below zero is short."""

    exchange: Venue
    symbol: Symbol
    quantity: Decimal
    entry: Decimal
    sleeve: str = DEBATE


@dataclass(frozen=True, slots=True)
class SleeveMoney:
    """Of a sleeve beside the debate, in one currency."""

    sleeve: str
    currency: str
    cash: Decimal
    """Margin included."""
    capital: Decimal
    """What it was given, less what it gave back."""


@dataclass(frozen=True, slots=True)
class AccountStep:
    at: Millis
    cash: Mapping[Venue, Decimal]
    """In each venue's currency, margin included."""
    held: tuple[OpenQuantity, ...] = ()
    sleeves: tuple[SleeveMoney, ...] = ()
    """The debate has what these leave of the cash."""


@dataclass(frozen=True, slots=True)
class Close:
    """The price of a symbol in dollars from a moment on."""

    at: Millis
    price: Decimal


@dataclass(frozen=True, slots=True)
class EquityPoint:
    at: Millis
    equity: Decimal


@dataclass(frozen=True, slots=True)
class Drawdown:
    amount: Decimal
    percent: Decimal | None
    """Of the peak; None where the peak is not above zero."""
    peak_at: Millis
    trough_at: Millis


def measure_trades(trades: Iterable[trade_events.TradeSummary], rates: Mapping[str, Decimal]) -> Performance:
    """Figures over these trades. `rates`: how much of a currency a dollar is; trades in another are not counted."""
    ordered = sorted(trades, key=lambda trade: (trade.closed, trade.trade))
    counted = [(trade, rate) for trade in ordered if (rate := rates.get(trade.exchange.currency)) is not None]
    nets = [trade.net_pnl / rate for trade, rate in counted]
    multiples = [multiple for trade, _ in counted if (multiple := risk_multiple(trade)) is not None]
    lost = -sum((net for net in nets if net < 0), ZERO)
    gained = sum((net for net in nets if net > 0), ZERO)
    durations = [trade.closed - trade.opened for trade, _ in counted]
    return Performance(
        trades=len(counted),
        wins=sum(net > 0 for net in nets),
        losses=sum(net < 0 for net in nets),
        net_pnl=sum(nets, ZERO),
        gross_pnl=sum((trade.gross_pnl / rate for trade, rate in counted), ZERO),
        fees=sum((trade.fees / rate for trade, rate in counted), ZERO),
        funding=sum((trade.funding / rate for trade, rate in counted), ZERO),
        model_cost=sum((trade.llm_cost_usd for trade, _ in counted), ZERO),
        profit_factor=gained / lost if lost else None,
        expectancy_r=sum(multiples, ZERO) / len(multiples) if multiples else None,
        r_trades=len(multiples),
        mean_duration_ms=sum(durations) // len(durations) if durations else None,
        best=max(nets, default=None),
        worst=min(nets, default=None),
        unconverted=len(ordered) - len(counted),
    )


def group_trades(
    trades: Iterable[trade_events.TradeSummary], by: GroupBy
) -> dict[str, tuple[trade_events.TradeSummary, ...]]:
    """Trades by the name of their group, in the order of the names."""
    named = sorted(((_group_name(trade, by), trade) for trade in trades), key=itemgetter(0))
    return {name: tuple(trade for _, trade in group) for name, group in groupby(named, itemgetter(0))}


def risk_multiple(trade: trade_events.TradeSummary) -> Decimal | None:
    """Net PnL in R, the loss at the stop as it was first set; None without one, and beside the debate: the disaster
    stop of other sleeves is no measure of what they risk."""
    if trade.sleeve != DEBATE or trade.stop is None or trade.stop == trade.entry:
        return None
    return trade.net_pnl / (trade.quantity * abs(trade.entry - trade.stop))


@dataclass(frozen=True, slots=True)
class MarkedStep:
    """What an account held at a moment, and the prices of then in dollars."""

    at: Millis
    step: AccountStep
    marks: Mapping[Symbol, Decimal]
    equity: Decimal


def mark_steps(
    steps: Sequence[AccountStep], closes: Mapping[Symbol, Sequence[Close]], rates: Mapping[str, Decimal], until: Millis
) -> tuple[MarkedStep, ...]:
    """An account at every step and close up to a moment, both given oldest first; of many steps only the first and the
    last `MOST_STEPS` have moments of their own, the others count at the next close. Moments without a price for
    something held are left out. What has no rate counts nothing."""
    if not steps:
        return ()
    moments = {until, *(step.at for step in (steps[0], *steps[-MOST_STEPS:]) if step.at <= until)}
    moments |= {close.at for several in closes.values() for close in several if steps[0].at <= close.at <= until}
    times = {symbol: [close.at for close in several] for symbol, several in closes.items()}
    marked = []
    for moment in sorted(moments):
        step = steps[bisect_right(steps, moment, key=lambda step: step.at) - 1]
        marks = {
            symbol: closes[symbol][place - 1].price
            for symbol in times
            if (place := bisect_right(times[symbol], moment)) > 0
        }
        if (equity := equity_usd(step, marks, rates)) is not None:
            marked.append(MarkedStep(moment, step, marks, equity))
    return tuple(marked)


def equity_usd(
    step: AccountStep,
    marks: Mapping[Symbol, Decimal],
    rates: Mapping[str, Decimal],
    sleeves: Collection[str] | None = None,
) -> Decimal | None:
    """Cash and what is held at its mark, perpetuals by their unrealised PnL; None where a mark is missing. `marks` are
    in dollars, and so is the entry of a perpetual. `sleeves`: which ones; None: all."""
    held = [part for part in step.held if sleeves is None or part.sleeve in sleeves]
    if any(part.symbol not in marks for part in held):
        return None
    rest = sleeves is None or DEBATE in sleeves
    cash = step.cash.items() if rest else ()
    total = sum((amount / rates[venue.currency] for venue, amount in cash if venue.currency in rates), ZERO)
    for money in step.sleeves:
        if money.currency in rates:
            signs = (sleeves is None or money.sleeve in sleeves) - rest
            total += signs * money.cash / rates[money.currency]
    for part in held:
        if (rate := rates.get(part.exchange.currency)) is not None:
            total += part.quantity * (marks[part.symbol] - (ZERO if part.exchange.spot else part.entry / rate))
    return total


def find_max_drawdown(curve: Sequence[EquityPoint]) -> Drawdown | None:
    """The deepest fall below an earlier peak, by its share of it, or in money while no peak was above zero."""
    if not curve:
        return None
    peak, deepest = curve[0], Drawdown(ZERO, ZERO if curve[0].equity > 0 else None, curve[0].at, curve[0].at)
    for point in curve:
        if point.equity > peak.equity:
            peak = point
        fall = peak.equity - point.equity
        percent = fall / peak.equity * 100 if peak.equity > 0 else None
        if (percent or ZERO, fall) > (deepest.percent or ZERO, deepest.amount):
            deepest = Drawdown(fall, percent, peak.at, point.at)
    return deepest


def drawdown_percents(curve: Sequence[EquityPoint]) -> tuple[Decimal | None, ...]:
    """For each point how far it is below the highest so far, in per cent of that: 0 or less."""
    worth = [point.equity for point in curve]
    peaks = accumulate(worth, max)
    return tuple((equity - peak) / peak * 100 if peak > 0 else None for equity, peak in zip(worth, peaks, strict=True))


# -- parts


def _group_name(trade: trade_events.TradeSummary, by: GroupBy) -> str:
    day = datetime.fromtimestamp(trade.closed // 1_000, UTC)
    return {
        GroupBy.DAY: f"{day:%Y-%m-%d}",
        GroupBy.WEEK: f"{day - timedelta(days=day.weekday()):%Y-%m-%d}",
        GroupBy.MONTH: f"{day:%Y-%m}",
        GroupBy.SYMBOL: trade.symbol.value,
        GroupBy.EXIT: trade.reason.value,
        GroupBy.SIDE: trade.side.value,
        GroupBy.SLEEVE: trade.sleeve,
    }[by]


@dataclass(frozen=True, slots=True)
class Posting:
    """Lines that were booked together; they add up to zero. Money in the exchange's own currency."""

    number: int
    """Of the event, counted from 1."""
    at: Millis
    exchange: Venue
    what: str
    lines: tuple[tuple[LedgerAccount, Decimal], ...]
    """A debit is above zero."""


class AccountHistory(TradingBook):
    """An account with the past of its ledger: what each event posted, and what was held after it."""

    def __init__(self) -> None:
        super().__init__()
        self.postings: list[Posting] = []
        self.steps: list[AccountStep] = []
        self.sealed = SealedParts()
        self._figures: dict[tuple[object, ...], Performance] = {}
        self._balances: _Balances | None = None
        """After the last event, where it was applied here."""

    def fork(self) -> AccountHistory:
        """A book that goes on from here, and leaves this one as it is."""
        twin = AccountHistory()
        for name, value in vars(self).items():
            setattr(twin, name, value.copy() if isinstance(value, dict | list | Ledger) else value)
        held = {id: replace(trade) for id, trade in (self.trades | self.finished).items()}
        twin.trades, twin.finished = ({id: held[id] for id in trades} for trades in (self.trades, self.finished))
        twin.positions = {place: held[trade.id] for place, trade in self.positions.items()}
        twin.open_orders = {id: replace(order) for id, order in self.open_orders.items()}
        twin.open_intents = {
            id: replace(tracked, orders=[*tracked.orders]) for id, tracked in self.open_intents.items()
        }
        twin.orders.update(twin.open_orders)
        twin.intents.update(twin.open_intents)
        twin.nets = {place: replace(net) for place, net in self.nets.items()}
        twin.dust = {exchange: {**left} for exchange, left in self.dust.items()}
        sealed = self.sealed
        twin.sealed = SealedParts(sealed.count, {**sealed.lengths}, {*sealed.orders}, {*sealed.intents})
        return twin

    @property
    def fills(self) -> list[Fill]:
        return [*self.fills_by_id.values()]

    @property
    def payments(self) -> list[tuple[Venue, str]]:
        return [*self.payment_ids]

    def apply(self, event: trade_events.TradeEvent) -> None:
        # A paper account that nobody opened starts just before its first event.
        opening = not self.count and not isinstance(event, trade_events.AccountOpened)
        start = current_step(self, Millis(event.at - 1)) if opening else None
        if opening:
            usual = TradingBook()
            usual.require_account()
        before = _balances(usual) if opening else self._balances or _balances(self)
        super().apply(event)
        if start is not None:
            opened = trade_events.AccountOpened(at=event.at, cash={})
            self.postings += _find_postings(0, opened, _balances(TradingBook()), before)
            self.steps.append(start)
        self._balances = after = _balances(self)
        if after != before:
            self.postings += _find_postings(self.count, event, before, after)
            self.steps.append(current_step(self, event.at))
        self.sealed.note(event)

    def measure(self, rates: Mapping[str, Decimal]) -> Performance:
        """`measure_trades` of all closed trades, computed again when one closed or the rate moved."""
        key = len(self.closed), *sorted(rates.items())
        if key not in self._figures:
            self._figures.clear()
            self._figures[key] = measure_trades(self.closed, rates)
        return self._figures[key]


class AccountLog(TradeLog, Protocol):
    """A log that has its accounts folded. `Broken` where their events contradict each other."""

    async def history(self, account: str) -> AccountHistory:
        """The account as it is, shared by all who ask: nobody may write to it."""

    async def open_book(self, account: str, upto: int | None = None) -> AccountHistory:
        """A book of one's own, as the account is or was after the entry that holds event `upto`."""


@dataclass(slots=True)
class SealedParts:
    """How much of an account is in its last snapshot, and which older parts changed since."""

    count: int = 0
    lengths: dict[str, int] = field(default_factory=dict)
    orders: set[str] = field(default_factory=set)
    intents: set[str] = field(default_factory=set)

    def note(self, event: trade_events.TradeEvent) -> None:
        match event:
            case trade_events.OrderPlanned(intent=intent, order=request):
                self.orders.add(request.client_id)
                self.intents.add(intent)
            case trade_events.OrderUpdated(order=order):
                self.orders.add(order.request.client_id)
            case trade_events.OrderLost(client_id=client_id) | trade_events.FillBooked(fill=Fill(client_id=client_id)):
                self.orders.add(client_id)
            case (
                trade_events.IntentStored(intent=trade_events.TradeIntent(id=id)) | trade_events.IntentEnded(intent=id)
            ):
                self.intents.add(id)
            case _:
                pass


def trace_account(events: Iterable[trade_events.TradeEvent]) -> AccountHistory:
    history = AccountHistory()
    history.apply_all(events)
    return history


_Balances = dict[tuple[Venue, LedgerAccount], Decimal]


def _balances(book: TradingBook) -> _Balances:
    places = book.ledger.balances.items()
    return {(venue, account): amount for venue, accounts in places for account, amount in accounts.items()}


def _find_postings(number: int, event: trade_events.TradeEvent, before: _Balances, after: _Balances) -> list[Posting]:
    postings = []
    for venue in sort_venues(venue for venue, _ in after):
        lines = tuple(
            (account, change)
            for account in LedgerAccount
            if (change := after.get((venue, account), ZERO) - before.get((venue, account), ZERO))
        )
        if lines:
            postings.append(Posting(number, event.at, venue, _describe_event(event), lines))
    return postings


def _describe_event(event: trade_events.TradeEvent) -> str:
    match event:
        case trade_events.FillBooked(fill=fill):
            kind = "liquidation" if fill.liquidation else f"{fill.side.lower()} fill"
            return f"{kind} of {fill.quantity.normalize():f} {fill.symbol.base} at {fill.price.normalize():f}"
        case trade_events.FundingBooked(payment=payment):
            return f"funding of {payment.symbol}"
        case trade_events.ManualChange(change=change):
            return f"written by hand: {change.kind}"
        case trade_events.AccountOpened():
            return "account opened"
        case trade_events.Adopted(what=what):
            return what
        case trade_events.MarginMoved(source=source, target=target, symbol=symbol):
            return f"moved from {source} to the margin of {symbol} at {target}"
        case trade_events.SleevesCrossed(seller=seller, buyer=buyer, quantity=quantity, symbol=symbol, price=price):
            return f"{seller} sold {quantity.normalize():f} {symbol.base} at {price.normalize():f} to {buyer}"
        case _:
            return event.kind.replace("_", " ")


def current_step(book: TradingBook, at: Millis) -> AccountStep:
    """What an account holds at a moment, as its equity is counted."""
    held = tuple(
        OpenQuantity(trade.exchange, trade.symbol, trade.signed, trade.entry, trade.sleeve)
        for trade in book.trades.values()
    )
    cash = {venue: book.cash(venue) + book.margin(venue) for venue in book.venues}
    sleeves = tuple(
        SleeveMoney(*of, parts[LedgerAccount.CASH] + parts[LedgerAccount.MARGIN], -parts[LedgerAccount.CAPITAL])
        for of, parts in book.sleeve_ledger.balances.items()
    )
    return AccountStep(at, cash, held, sleeves)
