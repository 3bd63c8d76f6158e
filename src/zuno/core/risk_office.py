"""The risk officer's rules: each makes a draft smaller or leaves it alone. A rule that cannot see, fires.

None flips a direction, raises a figure or touches a price. What does not open anything passes untouched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from zuno.core.draft import Draft, RuleName, Tightening, noted, vetoed
from zuno.core.known import Missing
from zuno.core.routing import Cut, Placed, cheaper, percent_of, place, sized, target_of
from zuno.core.terms import TRAP_USD, Terms
from zuno.domain.cycle import LEVERAGE_CAP, Style
from zuno.domain.trading import Side
from zuno.messages.cycle import Leg

CURVE_MOVES: Final = 0.25
"""Percentage points of 2s10s over five prints, from which on the curve is in panic."""
CROWDED: Final = 0.0003
"""Funding of eight hours, as a fraction, beyond which a side is crowded."""
PEG: Final = 0.01
"""How far a USDC may stand from a USDT."""
ROUNDING: Final = 1e-12
"""What doubles lose on the way: a figure at its bound is at its bound."""


def reviewed(draft: Draft, terms: Terms, tightening: Tightening | None) -> Draft:
    """The rules in their order, then what the officer asks for beyond them. HOLD and exits pass."""
    for rule in (_leverage, _volatility, _funding, _liquidations, _dollar, carried, _style):
        if not draft.opens:
            return draft
        draft = rule(draft, terms)
    return _tightened(draft, terms, tightening) if tightening is not None and draft.opens else draft


def carried(draft: Draft, terms: Terms) -> Draft:
    """The draft with the legs that can be carried, or a HOLD where none can."""
    side, routed = draft.call.side, draft.routed
    if side is None or routed is None:
        return draft
    placed = place(side, draft.allocation_pct, draft.leverage, routed, terms)
    for rule, cuts in _cuts(placed):
        for cut in cuts:
            unknown = rule is RuleName.WON and isinstance(terms.won, Missing)
            name = f"legs.{cut.exchange.value}.margin"
            draft = noted(draft, rule, name, _money(cut.meant), _money(cut.left), cut.why, unknown=unknown)
    if not placed.legs:
        return _unplaced(draft, placed)
    return replace(
        draft,
        legs=placed.legs,
        allocation_pct=min(draft.allocation_pct, percent_of(placed.legs, terms.standing)),
        target=target_of(tuple(leg.venue for leg in placed.legs)),
    )


def _cuts(placed: Placed) -> tuple[tuple[RuleName, tuple[Cut, ...]], ...]:
    return ((RuleName.TOP_UP, placed.topped), (RuleName.VENUE_CAP, placed.capped), (RuleName.WON, placed.lost))


def _unplaced(draft: Draft, placed: Placed) -> Draft:
    """The last reason is the one that left nothing."""
    reasons = [(rule, cuts[-1]) for rule, cuts in _cuts(placed) if cuts]
    if not reasons:
        return vetoed(draft, RuleName.NO_SIZE, "no money is left to place")
    rule, cut = reasons[-1]
    return vetoed(draft, rule, f"no leg is left: at {cut.exchange.value} {cut.why}")


# -- the rules, by their numbers


def _leverage(draft: Draft, terms: Terms) -> Draft:
    cap = float(LEVERAGE_CAP[terms.mode])
    if draft.leverage <= cap:
        return draft
    told = noted(draft, RuleName.LEVERAGE, "leverage", draft.leverage, cap, f"{terms.mode} borrows up to {cap:g}×")
    return replace(told, leverage=cap)


def _volatility(draft: Draft, terms: Terms) -> Draft:
    panic, change = terms.panic, terms.curve_change
    if panic is True:
        return _halved(draft, RuleName.VOLATILITY, "options are in panic")
    if not isinstance(change, Missing) and abs(change) >= CURVE_MOVES - ROUNDING:
        why = f"2s10s moved {change:+.2f} points over five prints, from {CURVE_MOVES}"
        return _halved(draft, RuleName.VOLATILITY, why)
    gone = next((one for one in (panic, change) if isinstance(one, Missing)), None)
    return draft if gone is None else _halved(draft, RuleName.VOLATILITY, gone.reason, unknown=True)


def _funding(draft: Draft, terms: Terms) -> Draft:
    rate = terms.funding_next
    if isinstance(rate, Missing):
        return vetoed(draft, RuleName.FUNDING, rate.reason, unknown=True)
    against = rate if draft.call.side is Side.LONG else -rate
    if against <= CROWDED + ROUNDING:
        return draft
    why = f"funding of {100 * rate:+.4f} % for 8 h says that {draft.call.side}s are crowded, beyond {100 * CROWDED:.2f}"
    return vetoed(draft, RuleName.FUNDING, why)


def _liquidations(draft: Draft, terms: Terms) -> Draft:
    other = Side.SHORT if draft.call.side is Side.LONG else Side.LONG
    forced = terms.forced(other)
    if isinstance(forced, Missing):
        return _halved(draft, RuleName.LIQUIDATIONS, forced.reason, unknown=True)
    if forced <= TRAP_USD:
        return draft
    why = f"${forced / 1e6:,.1f}M of {other}s were liquidated in a day, over ${TRAP_USD / 1e6:,.0f}M"
    return _halved(draft, RuleName.LIQUIDATIONS, why)


def _dollar(draft: Draft, terms: Terms) -> Draft:
    rate = terms.dollar
    if isinstance(rate, Missing):
        return vetoed(draft, RuleName.DOLLAR, f"what a USDC is worth is not known: {rate.reason}", unknown=True)
    if abs(rate - 1) <= PEG + ROUNDING:
        return draft
    return vetoed(draft, RuleName.DOLLAR, f"a USDC stands at {rate:.4f} USDT, further than {PEG:.0%} from one")


def _style(draft: Draft, terms: Terms) -> Draft:
    style = draft.style
    if style is None or style is Style.PASSIVE_MAKER:
        return draft
    unknown = style is Style.SMART_DCA and terms.restless is not True
    why = (
        "a true breakout does not wait"
        if style is Style.MOMENTUM_SNIPER
        else "whether the market is calm is not known"
        if unknown
        else "a restless market is entered in parts"
    )
    return noted(draft, RuleName.STYLE, "execution_style", Style.PASSIVE_MAKER, style, why, unknown=unknown)


def _halved(draft: Draft, rule: RuleName, why: str, *, unknown: bool = False) -> Draft:
    half = draft.allocation_pct / 2
    told = noted(draft, rule, "allocation_pct", _money(draft.allocation_pct), _money(half), why, unknown=unknown)
    return replace(told, allocation_pct=half)


# -- what the officer asks for


def _tightened(draft: Draft, terms: Terms, asked: Tightening) -> Draft:
    why = asked.rationale or "the risk officer asks for it"
    if asked.veto:
        return vetoed(draft, RuleName.TIGHTENED, why)
    draft = _restyled(draft, asked.style, why)
    if asked.leverage is not None and max(1.0, asked.leverage) < draft.leverage:
        lower = max(1.0, float(asked.leverage))
        told = noted(draft, RuleName.TIGHTENED, "leverage", draft.leverage, lower, why)
        legs = tuple(_borrowing(leg.margin, leg.leverage, lower, leg) for leg in draft.legs)
        draft = replace(told, leverage=lower, legs=legs)
    if asked.allocation_pct is None or asked.allocation_pct >= draft.allocation_pct:
        return draft
    share = max(0.0, asked.allocation_pct) / draft.allocation_pct
    legs = tuple(leg for leg in (sized(leg, leg.margin * share) for leg in draft.legs) if leg.margin > 0)
    if not legs:
        return vetoed(draft, RuleName.TIGHTENED, why)
    left = percent_of(legs, terms.standing)
    told = noted(draft, RuleName.TIGHTENED, "allocation_pct", _money(draft.allocation_pct), _money(left), why)
    return replace(told, legs=legs, allocation_pct=left, target=target_of(tuple(leg.venue for leg in legs)))


def _restyled(draft: Draft, asked: Style | None, why: str) -> Draft:
    """A cheaper style is taken; a costlier one, or the exits' own, is not."""
    if asked is None or draft.style is None or asked is draft.style:
        return draft
    kept = cheaper(asked, draft.style)
    if kept is draft.style:
        refused = f"{asked.value} costs more than {kept.value}, which the rules allow"
        return noted(draft, RuleName.STYLE, "execution_style", asked, kept, refused)
    return replace(noted(draft, RuleName.TIGHTENED, "execution_style", draft.style, kept, why), style=kept)


def _borrowing(margin: float, leverage: float, lower: float, leg: Leg) -> Leg:
    kept = min(leverage, lower)
    return leg.model_copy(update={"leverage": kept, "notional": margin * kept})


def _money(value: float) -> float:
    """As much of a double as a person reads."""
    return round(value, 6)
