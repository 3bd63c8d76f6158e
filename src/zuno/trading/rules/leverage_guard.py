"""The last rule: account leverage after the trade is at most 2×."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from zuno.trading.model.cycle import Leg
from zuno.trading.model.known import Missing
from zuno.trading.rules.draft import RuleName, RulingDraft, record_change, veto_trade
from zuno.trading.rules.exploration import require_expectancy
from zuno.trading.rules.inputs import RulingInputs
from zuno.trading.rules.routing import allocation_pct_of, exchanges_of, leg_notional_usd, target_of, with_margin

MAX_ACCOUNT_LEVERAGE: Final = 2.0


def apply_leverage_guard(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """Scale the legs into the remaining room, then check the EV at that size. Calls that open nothing pass."""
    if not draft.opens:
        return draft
    return require_expectancy(_scale_into_room(draft, inputs), inputs)


def _scale_into_room(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    account = inputs.marked_account
    if isinstance(account, Missing):
        return veto_trade(draft, RuleName.LEVERAGE_GUARD, account.reason, unknown=True)
    if draft.routed_to is None:
        return veto_trade(draft, RuleName.LEVERAGE_GUARD, "it was sent nowhere", unknown=True)
    room = MAX_ACCOUNT_LEVERAGE * account.equity_usd - account.exposure_usd
    # Each leg has its own part of the room, so that losing one never lets the other grow.
    share = max(0.0, room) / len(exchanges_of(draft.routed_to))
    why = (
        f"the account carries ${account.exposure_usd:,.2f} on ${account.equity_usd:,.2f} and may carry "
        f"{MAX_ACCOUNT_LEVERAGE:.1f}×: ${max(0.0, room):,.2f} are left"
    )
    kept: list[Leg] = []
    for leg in draft.legs:
        size = leg_notional_usd(leg, inputs.krw_rate)
        smaller = leg if 0 < size <= share else with_margin(leg, leg.margin * share / size if size > 0 else 0.0)
        if smaller is not leg:
            name = f"legs.{leg.venue.value}.margin"
            draft = record_change(draft, RuleName.LEVERAGE_GUARD, name, leg.margin, smaller.margin, why)
        kept += [smaller] if smaller.margin > 0 else []
    legs = tuple(kept)
    if not legs:
        return veto_trade(draft, RuleName.LEVERAGE_GUARD, why)
    percent = min(draft.allocation_pct, allocation_pct_of(legs, account))
    return replace(draft, legs=legs, allocation_pct=percent, target=target_of(tuple(leg.venue for leg in legs)))
