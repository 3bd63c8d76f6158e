"""Risk rules: each makes a draft smaller or leaves it alone; one whose input is missing fires. None flips the
direction, raises a figure or changes a price. Calls that open nothing pass unchanged."""

from dataclasses import replace
from math import fsum
from typing import Final

from zuno.trading.model.cycle import LEVERAGE_CAP, Leg, Style, Target
from zuno.trading.model.known import Missing, NotRecorded
from zuno.trading.model.market import Side
from zuno.trading.rules import routing
from zuno.trading.rules.draft import (
    RuleName,
    RulingDraft,
    Tightening,
    change_allocation,
    record_change,
    record_margin,
    record_skipped_rule,
    veto_trade,
)
from zuno.trading.rules.expectancy import list_choices
from zuno.trading.rules.inputs import LIQUIDATION_TRAP_USD, RulingInputs

CURVE_PANIC_POINTS: Final = 0.25
"""Percentage points of 2s10s over five prints, from which on the curve is in panic."""
CROWDED_FUNDING: Final = 0.0003
"""Funding of eight hours, as a fraction, beyond which a side is crowded."""
MAX_PEG_DEVIATION: Final = 0.01
"""How far a USDC may stand from a USDT."""
ROUNDING: Final = 1e-12
"""What doubles lose on the way: a figure at its bound is at its bound."""


def apply_risk_rules(draft: RulingDraft, inputs: RulingInputs, tightening: Tightening | None) -> RulingDraft:
    """The rules in their order, then what the officer asks for beyond them. HOLD and exits pass."""
    for rule in (
        _cap_leverage,
        _check_volatility,
        _check_funding,
        _check_liquidations,
        _check_usdc_peg,
        place_legs,
        _record_style,
    ):
        if not draft.opens:
            return draft
        draft = rule(draft, inputs)
    return _apply_tightening(draft, inputs, tightening) if tightening is not None and draft.opens else draft


def place_legs(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """Size the legs, at least at the minimum order if the expectation is known. Veto the trade without legs."""
    side, routed_to = draft.call.side, draft.routed_to
    if side is None or routed_to is None:
        return draft
    leverage = min(draft.leverage, LEVERAGE_CAP[inputs.mode])
    legs, cuts = routing.size_legs(side, draft.allocation_pct, leverage, routed_to, inputs)
    for cut in cuts:
        if cut.rule is RuleName.VENUE_CAP and cut.meant == cut.left:  # nothing was there to cut: the veto says why
            continue
        unknown = cut.rule is RuleName.RATE and isinstance(inputs.rate(cut.exchange), Missing)
        meant, left = round(cut.meant, 6), round(cut.left, 6)
        draft = record_margin(draft, cut.rule, cut.exchange, meant, left, cut.why, unknown=unknown)
    if not legs and not cuts:
        return veto_trade(draft, RuleName.NO_SIZE, "no money is left to place")
    if not legs:
        gone = cuts[-1]  # the one that left nothing
        return veto_trade(draft, gone.rule, f"no leg is left: at {gone.exchange.value} {gone.why}")
    resized = routing.with_legs(draft, inputs, legs, draft.allocation_pct)
    return resized if draft.expectation is None else routing.raise_to_minimum(resized, inputs, draft.legs)


# -- the rules, by their numbers


def _cap_leverage(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    cap = float(LEVERAGE_CAP[inputs.mode])
    if draft.leverage <= cap:
        return draft
    why = f"{inputs.mode} borrows up to {cap:g}×"
    return replace(record_change(draft, RuleName.LEVERAGE, "leverage", draft.leverage, cap, why), leverage=cap)


def _check_volatility(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    panic, change = inputs.panic, inputs.curve_change
    if panic is True:
        return _halve_allocation(draft, RuleName.VOLATILITY, "options are in panic")
    if not isinstance(change, Missing) and abs(change) >= CURVE_PANIC_POINTS - ROUNDING:
        why = f"2s10s moved {change:+.2f} points over five prints, from {CURVE_PANIC_POINTS}"
        return _halve_allocation(draft, RuleName.VOLATILITY, why)
    missing = [figure for figure in (panic, change) if isinstance(figure, Missing)]
    gone = next((figure for figure in missing if not isinstance(figure, NotRecorded)), None)
    if gone is not None:
        return _halve_allocation(draft, RuleName.VOLATILITY, gone.reason, unknown=True)
    if not missing:
        return draft
    why = "; ".join(figure.reason for figure in missing)
    return record_skipped_rule(draft, RuleName.VOLATILITY, "allocation_pct", why)


def _check_funding(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    rate = inputs.funding_next
    if isinstance(rate, Missing):
        return veto_trade(draft, RuleName.FUNDING, rate.reason, unknown=True)
    if inputs.funding_assumed:
        why = f"no funding was recorded here: {100 * rate:.2f} % for 8 h is charged to either side"
        return record_skipped_rule(draft, RuleName.FUNDING, "decision", why)
    against = rate if draft.call.side is Side.LONG else -rate
    if against <= CROWDED_FUNDING + ROUNDING:
        return draft
    crowded = f"{draft.call.side}s are crowded, beyond {100 * CROWDED_FUNDING:.2f}"
    return veto_trade(draft, RuleName.FUNDING, f"funding of {100 * rate:+.4f} % for 8 h says that {crowded}")


def _check_liquidations(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    long = draft.call.side is Side.LONG
    other, forced = (Side.SHORT, inputs.shorts_liquidated) if long else (Side.LONG, inputs.longs_liquidated)
    if isinstance(forced, NotRecorded):
        return record_skipped_rule(draft, RuleName.LIQUIDATIONS, "allocation_pct", forced.reason)
    if isinstance(forced, Missing):
        return _halve_allocation(draft, RuleName.LIQUIDATIONS, forced.reason, unknown=True)
    if forced <= LIQUIDATION_TRAP_USD:
        return draft
    why = f"${forced / 1e6:,.1f}M of {other}s were liquidated in a day, over ${LIQUIDATION_TRAP_USD / 1e6:,.0f}M"
    return _halve_allocation(draft, RuleName.LIQUIDATIONS, why)


def _check_usdc_peg(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    rate = inputs.dollar
    if isinstance(rate, NotRecorded):
        return record_skipped_rule(draft, RuleName.DOLLAR, "decision", f"what a USDC is worth: {rate.reason}")
    if isinstance(rate, Missing):
        return veto_trade(draft, RuleName.DOLLAR, f"what a USDC is worth is not known: {rate.reason}", unknown=True)
    if abs(rate - 1) <= MAX_PEG_DEVIATION + ROUNDING:
        return draft
    why = f"a USDC stands at {rate:.4f} USDT, further than {MAX_PEG_DEVIATION:.0%} from one"
    return veto_trade(draft, RuleName.DOLLAR, why)


def _record_style(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    style = draft.style
    if style is None or style is Style.PASSIVE_MAKER:
        return draft
    unknown = style is Style.SMART_DCA and inputs.high_volatility is not True
    why = (
        "a true breakout does not wait"
        if style is Style.MOMENTUM_SNIPER
        else "whether the market is calm is not known"
        if unknown
        else "a restless market is entered in parts"
    )
    return record_change(draft, RuleName.STYLE, "execution_style", Style.PASSIVE_MAKER, style, why, unknown=unknown)


def _halve_allocation(draft: RulingDraft, rule: RuleName, why: str, *, unknown: bool = False) -> RulingDraft:
    return change_allocation(draft, rule, draft.allocation_pct / 2, why, unknown=unknown)


# -- what the officer asks for


def _apply_tightening(draft: RulingDraft, inputs: RulingInputs, asked: Tightening) -> RulingDraft:
    why = asked.rationale or "the risk officer asks for it"
    if asked.veto:
        return veto_trade(draft, RuleName.TIGHTENED, why)
    draft = _apply_choice(draft, inputs, asked, why)
    if asked.leverage is not None and max(1.0, asked.leverage) < draft.leverage:
        lower = max(1.0, float(asked.leverage))
        changed = record_change(draft, RuleName.TIGHTENED, "leverage", draft.leverage, lower, why)
        legs = tuple(
            leg.model_copy(update={"leverage": (kept := min(leg.leverage, lower)), "notional": leg.margin * kept})
            for leg in draft.legs
        )
        draft = replace(changed, leverage=lower, legs=legs)
    if asked.allocation_pct is None or asked.allocation_pct >= draft.allocation_pct:
        return draft
    share = max(0.0, asked.allocation_pct) / draft.allocation_pct
    if not (legs := _shrink_legs(draft.legs, share)):
        return veto_trade(draft, RuleName.TIGHTENED, why)
    smaller = routing.with_legs(draft, inputs, legs, draft.allocation_pct * share)
    recorded = change_allocation(draft, RuleName.TIGHTENED, smaller.allocation_pct, why)
    return replace(smaller, changes=recorded.changes)


def _shrink_legs(legs: tuple[Leg, ...], share: float) -> tuple[Leg, ...]:
    return tuple(leg for leg in (routing.with_margin(leg, leg.margin * share) for leg in legs) if leg.margin > 0)


def _apply_choice(draft: RulingDraft, inputs: RulingInputs, asked: Tightening, why: str) -> RulingDraft:
    """A cheaper style is taken. A costlier one, or another route, is taken where the expectation stays above zero with
    its costs, and never with more at risk; the exits' own style is not."""
    if draft.style is None or draft.routed_to is None:
        return draft
    style, route = asked.style or draft.style, asked.route or draft.routed_to
    if (style, route) == (draft.style, draft.routed_to):
        return draft
    order = list(Style).index
    if route is draft.routed_to and order(style) < order(draft.style):
        changed = record_change(draft, RuleName.TIGHTENED, "execution_style", draft.style, style, why)
        return replace(changed, style=style)
    worth = list_choices(draft, inputs).get((style, route))
    for field, given, kept in (("execution_style", style, draft.style), ("target_exchange", route, draft.routed_to)):
        if given is not kept and worth is None:
            refused = f"with the costs of {style.value} by {route.value} no expectation above zero is left"
            draft = record_change(draft, RuleName.STYLE, field, given, kept, refused)
    if worth is None:
        return draft
    moved = draft if route is draft.routed_to else _move_legs(draft, inputs, route)
    if moved is None:
        refused = f"{route.value} cannot carry it with no more at risk"
        return record_change(draft, RuleName.STYLE, "target_exchange", route, draft.routed_to, refused)
    for field, before, after in (("execution_style", draft.style, style), ("target_exchange", draft.routed_to, route)):
        if before is not after:
            moved = record_change(moved, RuleName.TIGHTENED, field, before, after, why)
    return replace(moved, style=style, expectation=worth)


def _move_legs(draft: RulingDraft, inputs: RulingInputs, route: Target) -> RulingDraft | None:
    """The draft by another route, no larger in dollars and no more borrowed; None where the route cannot carry it."""
    moved = place_legs(replace(draft, routed_to=route, legs=()), inputs)
    before = fsum(routing.leg_notional_usd(leg, inputs) for leg in draft.legs)
    after = fsum(routing.leg_notional_usd(leg, inputs) for leg in moved.legs)
    if not moved.opens or after <= 0:
        return None
    legs = _shrink_legs(moved.legs, min(1.0, before / after))
    return routing.with_legs(moved, inputs, legs, draft.allocation_pct) if legs else None
