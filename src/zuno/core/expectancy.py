"""What a trade is worth: profit and loss net of costs, and an opinion on the odds shrunk towards the market's own."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from zuno.core.first_touch import driftless, first_touch
from zuno.core.known import Known, Missing
from zuno.core.terms import Slippage, Terms, hold_hours
from zuno.domain.cycle import DEFAULT_HOLD, Exchange, Style
from zuno.domain.trading import HOUR_MS, Side
from zuno.messages.cycle import Decision, Expectation

FUNDED_HOURS: Final = 8
"""Rates of funding are told for so long."""
BELIEVED: Final = 10
"""Trades an opinion is granted before it has any, on paper alone."""
PRIOR: Final = 40
"""Resolved trades at which an opinion counts half."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Of a whole trade, in per cent of its notional."""

    fees: float
    slippage: float
    funding: float
    """Below zero where the holder is paid."""

    @property
    def total(self) -> float:
        return self.fees + self.slippage + self.funding


def trust(resolved: int, paper: bool) -> float:
    """λ: how much of the Judge's opinion is kept."""
    return (resolved + (BELIEVED if paper else 0)) / (resolved + PRIOR)


@dataclass(frozen=True, slots=True)
class Reach:
    """The prices of a trade that is one, and what they promise before costs, in per cent of the entry, above zero."""

    entry: float
    stop: float
    take: float
    gain: float
    loss: float


def reach(decision: Decision, side: Side) -> Reach | None:
    """None where a price is missing, the stop not behind the entry or the target not ahead of it."""
    entry, stop, take = decision.entry_price, decision.stop_loss, decision.take_profit
    if entry is None or stop is None or take is None or min(entry, stop, take) <= 0:
        return None
    sign = 1 if side is Side.LONG else -1
    gain, loss = sign * (take - entry) / entry * 100, sign * (entry - stop) / entry * 100
    return Reach(entry, stop, take, gain, loss) if gain > 0 and loss > 0 else None


def costs_at(exchange: Exchange, side: Side, style: Style, hours: int, terms: Terms) -> Known[Costs]:
    """In by its style, out at market. A maker pays the smaller fee and waits for his price; everybody else takes."""
    if isinstance(terms.slippage, Missing):
        return terms.slippage
    if isinstance(terms.funding_week, Missing):
        return terms.funding_week
    rates, patient = terms.fees.at(exchange), style is Style.PASSIVE_MAKER
    rate = terms.funding_week * (1 if side is Side.LONG else -1)
    # Whoever is paid for waiting would name a hold without end: it counts no longer than the mode waits by itself.
    held = hours if rate > 0 else min(hours, hold_hours(DEFAULT_HOLD[terms.mode], terms.mode))
    paid = rate * held / FUNDED_HOURS * 100
    return Costs(
        fees=(rates.maker if patient else rates.taker) + rates.taker,
        slippage=(0.0 if patient else _entering(terms.slippage, side)) + _leaving(terms.slippage, side),
        funding=paid if exchange is Exchange.BINANCE else 0.0,
    )


def expectation(
    decision: Decision,
    side: Side,
    exchanges: tuple[Exchange, ...],
    style: Style,
    terms: Terms,
    cost_usd: float,
    notional_usd: float,
) -> Known[Expectation]:
    """At the dearest of the exchanges it is routed to, whether or not each can carry its leg today."""
    reached = reach(decision, side)
    if reached is None:
        return Missing("its stop is not behind its entry, or its target not ahead of it")
    if isinstance(terms.bars, Missing):
        return terms.bars
    hours = hold_hours(decision.hold_duration, terms.mode)
    found = [costs_at(one, side, style, hours, terms) for one in exchanges]
    missing = next((one for one in found if isinstance(one, Missing)), None)
    known = [one for one in found if not isinstance(one, Missing)]
    if missing is not None or not known:
        return missing or Missing("no exchange carries it")
    bars_held = max(1, round(hours * HOUR_MS / terms.bars.timeframe.millis))
    touch = first_touch(terms.bars, reached.entry, reached.stop, reached.take, side, bars_held, terms.seed)
    if isinstance(touch, Missing):
        return touch
    gain, loss = reached.gain, reached.loss
    opinion, odds = decision.win_probability_pct / 100, driftless(touch, gain, loss)
    costs = max(known, key=lambda one: one.total)
    told = Expectation(
        p_judge=opinion,
        p0=odds,
        p=odds + trust(terms.resolved, terms.paper) * (opinion - odds),
        profit_pct=gain - costs.total,
        loss_pct=loss + costs.total,
        fees_pct=costs.fees,
        slippage_pct=costs.slippage,
        funding_pct=costs.funding,
        llm_cost_usd=cost_usd,
        ev_pct=0.0,
    )
    return charged(told, notional_usd)


def charged(told: Expectation, notional_usd: float) -> Expectation:
    """The same trade at this size: what the minds cost is a smaller share of a larger one."""
    share = told.llm_cost_usd / notional_usd * 100 if notional_usd > 0 else (inf if told.llm_cost_usd else 0.0)
    return told.model_copy(update={"ev_pct": before_minds(told) - min(share, MOST_SHARE)})


def before_minds(told: Expectation) -> float:
    """In per cent of the notional, what the minds cost left out."""
    return told.p * told.profit_pct - (1 - told.p) * told.loss_pct


MOST_SHARE: Final = 1e6
"""Per cent: beyond it a cost is simply too much, and a record holds no infinity."""


def _entering(slippage: Slippage, side: Side) -> float:
    return slippage.buy if side is Side.LONG else slippage.sell


def _leaving(slippage: Slippage, side: Side) -> float:
    return slippage.sell if side is Side.LONG else slippage.buy
