"""The last look: whatever was decided, the whole account carries no more than twice what it owns."""

from __future__ import annotations

from dataclasses import replace
from math import fsum
from typing import Final

from zuno.core.draft import Draft, RuleName, noted, vetoed
from zuno.core.expectancy import before_minds, charged
from zuno.core.known import Missing
from zuno.core.routing import exchanges, percent_of, sized, target_of, usd_of
from zuno.core.terms import Terms
from zuno.messages.cycle import Leg

MOST_LEVERAGE: Final = 2.0


def guarded(draft: Draft, terms: Terms) -> Draft:
    """Legs scaled into the room that is left, to nothing if need be; then its worth again, at the size that remains.
    What opens nothing reduces, and passes."""
    if not draft.opens:
        return draft
    return worthwhile(_within(draft, terms), terms)


def worthwhile(draft: Draft, terms: Terms) -> Draft:
    """A trade that is not expected to bring anything at its size is none."""
    if not draft.opens:
        return draft
    told = draft.expectation
    size = fsum(usd_of(leg, terms.won) for leg in draft.legs)
    if told is None or not size > 0:
        return vetoed(draft, RuleName.NO_SIZE, "no money is left to place")
    told = charged(told, size)
    draft = replace(draft, expectation=told)
    if told.ev_pct > 0:
        return draft
    why = f"{before_minds(told):+.4f} % of the notional before what the minds cost: not above zero after it"
    return vetoed(draft, RuleName.EXPECTANCY, why)


def _within(draft: Draft, terms: Terms) -> Draft:
    account = terms.standing
    if isinstance(account, Missing):
        return vetoed(draft, RuleName.LEVERAGE_GUARD, account.reason, unknown=True)
    if draft.routed is None:
        return vetoed(draft, RuleName.LEVERAGE_GUARD, "it was sent nowhere", unknown=True)
    room = MOST_LEVERAGE * account.equity_usd - account.exposure_usd
    # Each leg has its own part of the room, so that losing one never lets the other grow.
    share = max(0.0, room) / len(exchanges(draft.routed))
    why = (
        f"the account carries ${account.exposure_usd:,.2f} on ${account.equity_usd:,.2f} and may carry "
        f"{MOST_LEVERAGE:.1f}×: ${max(0.0, room):,.2f} are left"
    )
    kept: list[Leg] = []
    for leg in draft.legs:
        size = usd_of(leg, terms.won)
        smaller = leg if 0 < size <= share else sized(leg, leg.margin * share / size if size > 0 else 0.0)
        if smaller is not leg:
            name = f"legs.{leg.venue.value}.margin"
            draft = noted(draft, RuleName.LEVERAGE_GUARD, name, leg.margin, smaller.margin, why)
        kept += [smaller] if smaller.margin > 0 else []
    legs = tuple(kept)
    if not legs:
        return vetoed(draft, RuleName.LEVERAGE_GUARD, why)
    percent = min(draft.allocation_pct, percent_of(legs, account))
    return replace(draft, legs=legs, allocation_pct=percent, target=target_of(tuple(leg.venue for leg in legs)))
