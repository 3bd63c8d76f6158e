"""What one arm of a backtest came to, from the events of its account: daily worth, trades, costs, exposure."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final

from zuno.kernel.errors import Broken
from zuno.kernel.units import Millis
from zuno.kernel.view import View
from zuno.lab.replies import ModelCharge
from zuno.lab.strategies_view import TiltView
from zuno.lab.trading.arms import Arm
from zuno.lab.trading.scored_decisions import ScoredDecisions
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUE, DEFAULT_VENUES, Venue
from zuno.trading.model import trade_events
from zuno.trading.model.known import derive
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.model.orders import ZERO, to_decimal
from zuno.trading.rules.account import DOLLAR
from zuno.trading.rules.book_state import LedgerAccount
from zuno.trading.rules.performance import AccountStep, equity_usd, measure_trades, trace_account

MICRO: Final = 10**6


@dataclass(frozen=True, slots=True)
class PriceSeries:
    """Closes of a symbol: each is known from its moment on."""

    times: tuple[int, ...]
    closes: tuple[float, ...]

    def at(self, moment: int) -> float | None:
        place = bisect_right(self.times, moment)
        return self.closes[place - 1] if place else None


@dataclass(frozen=True, slots=True)
class Span:
    """What is backtested: from a moment to another, marked at every midnight between them and at both ends."""

    begin: Millis
    end: Millis

    def marks(self) -> tuple[Millis, ...]:
        first = (self.begin // DAY_MS + 1) * DAY_MS
        return (self.begin, *map(Millis, range(first, self.end, DAY_MS)), self.end)


class ClosedLine(View):
    """One closed trade. Money in millionths of a dollar."""

    symbol: Symbol
    side: Side
    opened: int
    closed: int
    notional: int
    net: int
    funding: int
    """Below zero: paid. In the net."""
    reason: trade_events.ExitReason
    exploration: bool


class DecisionLine(View):
    """What was ruled at one moment for one symbol, where it was not HOLD."""

    at: int
    symbol: Symbol
    call: str


class ArmResult(View):
    """Money in millionths of a dollar."""

    arm: Arm
    until: int
    worth: tuple[int, ...]
    """At the marks of the span that were reached."""
    trades: tuple[ClosedLine, ...]
    decisions: tuple[DecisionLine, ...] = ()
    cycles: int = 0
    open_trades: int
    hit_rate: float | None
    profit_factor: float | None
    expectancy_r: float | None
    fees: int
    funding: int
    """Below zero: paid."""
    model_cost: int
    """Of every reply that was heard, whatever came of it; taken off the worth."""
    exposure: float
    """Mean notional over the starting capital."""
    debits: str
    credits: str
    lessons: int = 0
    recalled: int = 0
    """Cycles whose memory took something off what was claimed."""
    model_tokens: int = 0
    models: tuple[str, ...] = ()
    unanswered: int = 0
    """Questions to models that nobody answered, so that rules did."""
    scored: ScoredDecisions | None = None
    """Of a desk that has come to the end."""
    tilt: TiltView | None = None
    """Of the debate that has come to the end."""
    refused: int = 0
    """Orders of an arm without a desk that did not end filled."""

    @property
    def net(self) -> int:
        return self.worth[-1] - self.worth[0]

    @property
    def changes(self) -> list[int]:
        return [after - before for before, after in zip(self.worth, self.worth[1:], strict=False)]


def measure_arm(
    arm: Arm,
    events: Sequence[trade_events.TradeEvent],
    prices: Mapping[Symbol, PriceSeries],
    span: Span,
    until: Millis,
    *,
    charges: Sequence[ModelCharge] = (),
    krw_rate: PriceSeries | None = None,
    **counted: Any,
) -> ArmResult:
    """`events`: of the account, or of the venue's own log where no desk traded; `cut_events` says which count.
    `krw_rate`: KRW for one dollar; of the cash in won only what trades made of it counts, at the rate of the day for
    the worth and of the last moment for trades and fees. `counted`: fields of the result that the arm knows itself."""
    book = trace_account(cut_events(events, until))
    ledger = book.ledger
    if ledger.debits != ledger.credits:
        raise Broken(f"Debits and credits of the arm {arm} differ.")
    closed = [*book.closed]
    closed += [book.summarise(trade, trade_events.ExitReason.DECISION) for trade in book.finished.values()]
    rates = _read_rates(krw_rate, until)
    used = {trade.exchange.currency for trade in closed} | {trade.exchange.currency for trade in book.trades.values()}
    if not used <= rates.keys():
        raise Broken(f"The arm {arm} traded for {', '.join(sorted(used - rates.keys()))}, and no rate is recorded.")
    figures = measure_trades(closed, rates)
    charges = sorted((charge for charge in charges if charge.at <= until), key=lambda charge: charge.at)
    spent = [ZERO, *accumulate(charge.usd for charge in charges)]
    charged = [charge.at for charge in charges]
    reached = [mark for mark in span.marks() if mark <= until]
    paid = (ledger.balance(at, LedgerAccount.FEES) / rates[at.currency] for at in book.venues if at.currency in rates)
    return ArmResult(
        arm=arm,
        until=until,
        worth=(
            _micro(DEFAULT_VENUE.paper_cash),
            *(
                _worth_at(mark, book.steps, prices, krw_rate) - _micro(spent[bisect_right(charged, mark)])
                for mark in reached[1:]
            ),
        ),
        trades=tuple(
            derive(
                ClosedLine,
                trade,
                notional=_micro(trade.quantity * trade.entry / rates[trade.exchange.currency]),
                net=_micro(trade.net_pnl / rates[trade.exchange.currency]),
                funding=_micro(trade.funding / rates[trade.exchange.currency]),
            )
            for trade in closed
        ),
        open_trades=len(book.trades),
        hit_rate=_figure(figures.win_rate),
        profit_factor=_figure(figures.profit_factor),
        expectancy_r=_figure(figures.expectancy_r),
        fees=_micro(sum(paid, ZERO)),
        funding=_micro(-ledger.balance(DEFAULT_VENUE, LedgerAccount.FUNDING)),
        model_cost=_micro(spent[-1]),
        exposure=_measure_exposure(book.steps, span.begin, until, rates),
        debits=format(ledger.debits.get(DEFAULT_VENUE, ZERO), "f"),
        credits=format(ledger.credits.get(DEFAULT_VENUE, ZERO), "f"),
        model_tokens=sum(charge.tokens for charge in charges),
        models=tuple(sorted({charge.model for charge in charges if charge.model})),
        **counted,
    )


def cut_events(events: Iterable[trade_events.TradeEvent], until: Millis) -> list[trade_events.TradeEvent]:
    """Those up to a moment. What is ordered at that moment is filled at the open after it, though dated by it, and is
    none of them; what the market did until then is, also where it was noted between the orders."""
    counted: list[trade_events.TradeEvent] = []
    ordered: set[str] = set()
    changed: set[tuple[Venue, Symbol]] = set()
    """Where something was filled that was ordered at that moment."""
    began = False
    for event in events:
        if event.at > until:
            break
        if event.at == until and isinstance(event, trade_events.IntentStored | trade_events.OrderPlanned):
            began = True
            ordered |= {event.order.client_id} if isinstance(event, trade_events.OrderPlanned) else set()
            continue
        match event:
            case trade_events.FillBooked(fill=fill):
                changed |= {(fill.exchange, fill.symbol)} if fill.client_id in ordered else set()
                counts = (fill.exchange, fill.symbol) not in changed
            case trade_events.TradeClosed(summary=trade):
                counts = (trade.exchange, trade.symbol) not in changed
            case trade_events.OrderUpdated():
                counts = event.order.request.client_id not in ordered
            case _:
                counts = not began or isinstance(event, trade_events.FundingBooked)
        counted += [event] if counts else []
    return counted


def _worth_at(
    moment: Millis, steps: Sequence[AccountStep], prices: Mapping[Symbol, PriceSeries], krw_rate: PriceSeries | None
) -> int:
    """Cash and unrealised PnL by the last closes."""
    place = bisect_right(steps, moment, key=lambda step: step.at)
    if not place:
        return _micro(DEFAULT_VENUE.paper_cash)
    step = steps[place - 1]
    marks = {
        part.symbol: to_decimal(price) for part in step.held if (price := prices[part.symbol].at(moment)) is not None
    }
    rates = _read_rates(krw_rate, moment)
    worth = equity_usd(step, marks, rates)
    if worth is None:
        raise Broken(f"Something is held at {moment} ms of which no price is known.")
    apart = (venue for venue in DEFAULT_VENUES if venue is not DEFAULT_VENUE and venue.currency in rates)
    return _micro(worth - sum((venue.paper_cash / rates[venue.currency] for venue in apart), ZERO))


def _measure_exposure(
    steps: Sequence[AccountStep], begin: Millis, until: Millis, rates: Mapping[str, Decimal]
) -> float:
    """Notional at cost over the starting capital, weighed by time."""
    total = Fraction(0)
    ends = [step.at for step in steps[1:]] + [until]
    for step, end in zip(steps, ends, strict=False):
        held = sum((abs(part.quantity) * part.entry / rates[part.exchange.currency] for part in step.held), ZERO)
        total += Fraction(held) * max(0, end - max(step.at, begin))
    whole = Fraction(DEFAULT_VENUE.paper_cash) * max(1, until - begin)
    return round(float(total / whole), 6)


def _read_rates(krw_rate: PriceSeries | None, moment: Millis) -> dict[str, Decimal]:
    """How much of a currency a dollar is."""
    rate = None if krw_rate is None else krw_rate.at(moment)
    return {DOLLAR: Decimal(1)} | ({} if rate is None else {"KRW": to_decimal(rate)})


def _micro(amount: Decimal) -> int:
    return int((amount * MICRO).to_integral_value(ROUND_HALF_EVEN))


def _figure(value: Decimal | None) -> float | None:
    return None if value is None else round(float(value), 6)
