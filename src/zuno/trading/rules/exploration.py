"""Whether a trade is worth its costs, and what may be opened on paper when no edge is proven yet.

A desk that has proven nothing would hold for ever: on paper a small trade without a proven edge may be opened for the
record's sake. It is marked as what it is, and never opened live.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum
from typing import Final

from zuno.trading.model.cycle import LEVERAGE_CAP, Expectation
from zuno.trading.model.known import Missing
from zuno.trading.model.market import DAY_MS
from zuno.trading.rules.calibration import PRIOR_TRADES, judge_kind
from zuno.trading.rules.draft import RuleName, RulingDraft, record_change, veto_trade
from zuno.trading.rules.expectancy import apply_llm_cost, gross_ev, judged_ev, trading_costs
from zuno.trading.rules.inputs import RulingInputs
from zuno.trading.rules.minimum_order import MAX_EXPLORATION_RISK_PCT, raise_to_minimum, stop_loss_pct
from zuno.trading.rules.routing import leg_notional_usd, with_lots, with_margin

SIZE_FRACTION: Final = 0.25
"""Of the size that was decided."""
MAX_PER_DAY: Final = 2
"""Explorations of the whole desk in 24 hours."""
MAX_PER_30_DAYS: Final = 2
"""Explorations in 30 days of a judge and regime family whose record has spoken against it."""
MONTH_MS: Final = 30 * DAY_MS


def require_expectancy(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """Veto a trade whose EV at its size is not above zero, or that loses by the Judge's own probability; what only
    lacks a proven edge may be explored."""
    if not draft.opens:
        return draft
    expectation = draft.expectation
    entry, stop = draft.decision.entry_price or 0.0, draft.decision.stop_loss
    size = fsum(leg_notional_usd(with_lots(leg, entry, stop, inputs) or leg, inputs.krw_rate) for leg in draft.legs)
    if expectation is None or not size > 0:
        return veto_trade(draft, RuleName.NO_SIZE, "no money is left to place")
    expectation = apply_llm_cost(expectation, size)
    draft = replace(draft, expectation=expectation)
    if (judged := judged_ev(expectation, size)) <= 0:
        why = f"{judged:+.4f} % of the notional by the Judge's own {100 * expectation.p_judge:.0f} %"
        return veto_trade(draft, RuleName.JUDGE_EV, why)
    if not inputs.paper and expectation.n < PRIOR_TRADES:
        why = f"{expectation.n} of the {PRIOR_TRADES} closed trades in real time that live needs: it stays on paper"
        return veto_trade(draft, RuleName.EXPECTANCY, why)
    if expectation.ev_pct > 0 or draft.exploration:
        return draft
    refusal = explain_refusal(draft, expectation, inputs)
    if refusal is not None:
        return veto_trade(draft, RuleName.EXPECTANCY, f"{_describe_ev(expectation)}; {refusal}")
    return _explore(draft, expectation, inputs)


def explain_refusal(draft: RulingDraft, expectation: Expectation, inputs: RulingInputs) -> str | None:
    """Why a trade may not be explored; None if it may."""
    record = inputs.record
    if not inputs.paper:
        return "nothing is explored live"
    if isinstance(record, Missing):
        return f"the record is not known: {record.reason}"
    if draft.family is None:
        return "its regime is not known"
    day = sum(exploration.at > inputs.as_of - DAY_MS for exploration in record.explorations)
    if day >= MAX_PER_DAY:
        return f"{day} explorations in 24 h are all there may be"
    if expectation.n < PRIOR_TRADES:
        return None
    own = (judge_kind(draft.decision), draft.family)
    month = sum(
        exploration.at > inputs.as_of - MONTH_MS and (exploration.judge, exploration.family) == own
        for exploration in record.explorations
    )
    if month < MAX_PER_30_DAYS:
        return None
    return f"after {expectation.n} closed trades {month} explorations in 30 days are all there may be"


def _explore(draft: RulingDraft, expectation: Expectation, inputs: RulingInputs) -> RulingDraft:
    leverage = min(draft.leverage, LEVERAGE_CAP[inputs.mode])
    loss = stop_loss_pct(expectation)
    allocation = min(SIZE_FRACTION * draft.allocation_pct, 100 * MAX_EXPLORATION_RISK_PCT / (leverage * loss))
    why = (
        f"{_describe_ev(expectation)} with {expectation.n} closed trades: a quarter of its size on paper, "
        f"for the record"
    )
    before, after = round(draft.allocation_pct, 6), round(allocation, 6)
    changed = record_change(draft, RuleName.EXPLORATION, "allocation_pct", before, after, why)
    smaller = replace(
        changed,
        allocation_pct=allocation,
        exploration=True,
        expectation=expectation.model_copy(update={"exploration": True}),
    )
    share = allocation / draft.allocation_pct if draft.allocation_pct > 0 else 0.0
    legs = tuple(with_margin(leg, leg.margin * share) for leg in draft.legs)
    return raise_to_minimum(replace(smaller, legs=legs), inputs)


def _describe_ev(expectation: Expectation) -> str:
    return (
        f"{gross_ev(expectation):+.4f} % of the notional less {trading_costs(expectation):.4f} % of costs is not "
        "above zero"
    )
