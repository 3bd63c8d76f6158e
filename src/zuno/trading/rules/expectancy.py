"""Expected value of a trade: profit and loss net of costs, with the Judge's win probability shrunk to the market's."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from zuno.trading.model.cycle import DEFAULT_HOLD, Decision, Exchange, Expectation, Style
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import HOUR_MS, Side
from zuno.trading.rules.first_touch import driftless_odds, first_touch
from zuno.trading.rules.inputs import RulingInputs, Slippage, hold_hours
from zuno.trading.rules.price_menu import TradePrices

FUNDING_INTERVAL_HOURS: Final = 8
"""Funding rates are quoted for this interval."""
PAPER_PRIOR_TRADES: Final = 10
"""Resolved trades credited to the Judge in advance, in paper trading only."""
PRIOR_TRADES: Final = 40
"""Resolved trades at which the Judge's probability counts half."""


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


def judge_weight(resolved: int, paper: bool) -> float:
    """λ: how much of the Judge's opinion is kept."""
    return (resolved + (PAPER_PRIOR_TRADES if paper else 0)) / (resolved + PRIOR_TRADES)


def trade_prices(decision: Decision, side: Side) -> TradePrices | None:
    """None where a price is missing, the stop not behind the entry or the target not ahead of it."""
    entry, stop, take = decision.entry_price, decision.stop_loss, decision.take_profit
    if entry is None or stop is None or take is None or min(entry, stop, take) <= 0:
        return None
    prices = TradePrices(side, entry, stop, take)
    return prices if prices.is_ordered else None


def trade_costs(exchange: Exchange, side: Side, style: Style, hours: int, inputs: RulingInputs) -> Known[Costs]:
    """In by its style, out at market. A maker pays the smaller fee and waits for his price; everybody else takes."""
    if isinstance(inputs.slippage, Missing):
        return inputs.slippage
    if isinstance(inputs.funding_week, Missing):
        return inputs.funding_week
    rates, patient = inputs.fees.at(exchange), style is Style.PASSIVE_MAKER
    rate = inputs.funding_of(inputs.funding_week, side)
    # Whoever is paid for waiting would name a hold without end: it counts no longer than the mode waits by itself.
    held = hours if rate > 0 else min(hours, hold_hours(DEFAULT_HOLD[inputs.mode], inputs.mode))
    paid = rate * held / FUNDING_INTERVAL_HOURS * 100
    return Costs(
        fees=(rates.maker if patient else rates.taker) + rates.taker,
        slippage=(0.0 if patient else _entry_slippage(inputs.slippage, side)) + _exit_slippage(inputs.slippage, side),
        funding=paid if exchange is Exchange.BINANCE else 0.0,
    )


def estimate_expectation(
    decision: Decision,
    side: Side,
    exchanges: tuple[Exchange, ...],
    style: Style,
    inputs: RulingInputs,
    cost_usd: float,
    notional_usd: float,
) -> Known[Expectation]:
    """At the dearest of the exchanges it is routed to, whether or not each can carry its leg today."""
    prices = trade_prices(decision, side)
    if prices is None:
        return Missing("its stop is not behind its entry, or its target not ahead of it")
    if isinstance(inputs.bars, Missing):
        return inputs.bars
    hours = hold_hours(decision.hold_duration, inputs.mode)
    found = [trade_costs(exchange, side, style, hours, inputs) for exchange in exchanges]
    missing = next((costs for costs in found if isinstance(costs, Missing)), None)
    known = [costs for costs in found if not isinstance(costs, Missing)]
    if missing is not None or not known:
        return missing or Missing("no exchange carries it")
    bars_held = max(1, round(hours * HOUR_MS / inputs.bars.timeframe.millis))
    touch = first_touch(inputs.bars, prices.entry, prices.stop, prices.take, side, bars_held, inputs.seed)
    if isinstance(touch, Missing):
        return touch
    gain, loss = prices.reward * 100, prices.risk * 100
    opinion, odds = decision.win_probability_pct / 100, driftless_odds(touch, gain, loss)
    costs = max(known, key=lambda each: each.total)
    expectation = Expectation(
        p_judge=opinion,
        p0=odds,
        p=odds + judge_weight(inputs.resolved, inputs.paper) * (opinion - odds),
        profit_pct=gain - costs.total,
        loss_pct=loss + costs.total,
        fees_pct=costs.fees,
        slippage_pct=costs.slippage,
        funding_pct=costs.funding,
        llm_cost_usd=cost_usd,
        ev_pct=0.0,
    )
    return apply_llm_cost(expectation, notional_usd)


def apply_llm_cost(expectation: Expectation, notional_usd: float) -> Expectation:
    """EV after the model cost, which is a smaller share of a larger trade."""
    share = (
        expectation.llm_cost_usd / notional_usd * 100
        if notional_usd > 0
        else (inf if expectation.llm_cost_usd else 0.0)
    )
    return expectation.model_copy(update={"ev_pct": ev_before_llm_cost(expectation) - min(share, MAX_LLM_COST_PCT)})


def ev_before_llm_cost(expectation: Expectation) -> float:
    """EV in per cent of the notional, before the model cost."""
    return expectation.p * expectation.profit_pct - (1 - expectation.p) * expectation.loss_pct


MAX_LLM_COST_PCT: Final = 1e6
"""Per cent. A finite bound, because a record cannot hold infinity."""


def _entry_slippage(slippage: Slippage, side: Side) -> float:
    return slippage.buy if side is Side.LONG else slippage.sell


def _exit_slippage(slippage: Slippage, side: Side) -> float:
    return slippage.sell if side is Side.LONG else slippage.buy
