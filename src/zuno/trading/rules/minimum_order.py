"""Orders below the least an exchange takes: raised to it where the stop may cost so much, else refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from zuno.trading.model.cycle import Expectation, Leg
from zuno.trading.model.known import Missing
from zuno.trading.rules.draft import RuleName, RulingDraft, record_change, veto_trade
from zuno.trading.rules.inputs import RulingInputs
from zuno.trading.rules.routing import exchanges_of, held_usd, leg_notional_usd, margin_room, minimum_margin, target_of

MAX_STOP_RISK_PCT: Final = 1.0
"""Per cent of the equity that a stop may cost."""
MAX_EXPLORATION_RISK_PCT: Final = 0.25
"""The same of an exploration, fees and slippage included."""


def raise_to_minimum(draft: RulingDraft, inputs: RulingInputs, before: tuple[Leg, ...] = ()) -> RulingDraft:
    """Each leg at least as large as the least its exchange takes, or dropped; a trade without a leg is vetoed.
    `before`: the legs as they were told last; what stays as it was is not told again."""
    fitted = [(leg, _fit_leg(leg, draft, inputs)) for leg in draft.legs]
    kept = tuple(found for _, found in fitted if isinstance(found, Leg))
    if not kept:
        why = next((found for _, found in fitted if isinstance(found, str)), "no money is left to place")
        return veto_trade(draft, RuleName.MINIMUM_ORDER, why)
    told = {leg.venue: 0.0 for leg in draft.legs if before} | {leg.venue: leg.margin for leg in before}
    for leg, found in fitted:
        margin, why = (0.0, found) if isinstance(found, str) else (found.margin, f"{leg.venue} takes no smaller order")
        if margin not in (leg.margin, told.get(leg.venue)):
            name = f"legs.{leg.venue.value}.margin"
            draft = record_change(draft, RuleName.MINIMUM_ORDER, name, round(leg.margin, 6), margin, why)
    return replace(draft, legs=kept, target=target_of(tuple(leg.venue for leg in kept)))


def stop_loss_pct(expectation: Expectation) -> float:
    """What the stop costs, in per cent of the notional, fees and slippage included."""
    return expectation.loss_pct + expectation.fees_pct + expectation.slippage_pct


def _fit_leg(leg: Leg, draft: RulingDraft, inputs: RulingInputs) -> Leg | str:
    """The leg as it may stand, or why it may not. The Judge's allocation is a ceiling, and what is held already is not
    raised once more. Each leg has its own part of what the stop may cost, so that losing one lets none grow."""
    account, worth, routed_to = inputs.marked_account, draft.expectation, draft.routed_to
    least = minimum_margin(leg, draft.decision.entry_price or 0.0, draft.decision.stop_loss, inputs)
    if isinstance(least, Missing) or leg.margin >= least:
        return leg
    if isinstance(account, Missing) or worth is None or routed_to is None:
        return leg
    count, unit = len(exchanges_of(routed_to)), leg.currency
    said = f"{leg.venue} takes {least:,.2f} {unit} of margin at least"
    if held_usd(account, inputs.symbol, leg.side) > 0:
        return f"{said}, and what is held already is topped up by less"
    asked = draft.decision.allocation_pct / 100 / count * max(0.0, account.equity[leg.venue])
    room = min(asked, margin_room(account, leg, inputs.fees))
    if least > room:
        return f"{said}: more than the {max(0.0, room):,.2f} that are {'asked for' if room == asked else 'left'}"
    raised = leg.model_copy(update={"margin": least, "notional": least * leg.leverage})
    loss = leg_notional_usd(raised, inputs.krw_rate) * stop_loss_pct(worth) / 100
    share = MAX_EXPLORATION_RISK_PCT if draft.exploration else MAX_STOP_RISK_PCT
    most = max(0.0, account.equity_usd) * share / 100 / count
    if loss > most:
        return f"{said}, and the stop would cost ${loss:,.2f} of at most ${most:,.2f}"
    return raised
