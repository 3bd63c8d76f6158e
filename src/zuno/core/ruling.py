"""A decision → a ruling: arithmetic, risk office and guard in their order, each of which can only say less.

Everything here is a function of the decision and the terms, so that anybody can compute a ruling again. Exits pass.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum
from typing import Final, Literal

from zuno.core import expectancy
from zuno.core.draft import Draft as Draft
from zuno.core.draft import Office as Office
from zuno.core.draft import RuleName as RuleName
from zuno.core.draft import Tightening as Tightening
from zuno.core.draft import begun, noted, vetoed
from zuno.core.guard import guarded as guarded
from zuno.core.guard import worthwhile
from zuno.core.known import Missing
from zuno.core.moments import iso
from zuno.core.risk_office import carried
from zuno.core.risk_office import reviewed as reviewed
from zuno.core.routing import exchanges, route, style_of, target_of, usd_of
from zuno.core.terms import Terms, lacking
from zuno.domain.account import Holding, Resting
from zuno.domain.cycle import LEVERAGE_CAP, VALID_MINUTES, Call, Style, Target
from zuno.domain.trading import MINUTE_MS, Mode, Side
from zuno.domain.units import Millis
from zuno.messages.cycle import Change, Decision, Ending, Meta, Ruling

PANIC_BUDGET: Final = 20
"""The most that is risked of what could be, in per cent, unless the market is known to be calm."""
PANIC_RANK: Final = 0.95
"""Where a day's volatility stands among its like when it is panic."""
MOST_RISK: Final = 1.0
"""Per cent of the equity that a stop may cost."""


def drafted(decision: Decision, meta: Meta | None, terms: Terms, spent_usd: float, ahead_usd: float) -> Draft:
    """A validated decision after budget, stop and expectancy. `meta`: None where nobody set a budget, which is none."""
    draft = begun(decision, spent_usd + ahead_usd)
    if draft.call is Call.CANCEL_AND_CLOSE:
        return _leaving(draft, terms)
    for rule in (_close_first, _believed, _informed):
        if draft.opens:
            draft = rule(draft, terms)
    if draft.opens:
        draft = _budgeted(draft, meta, terms)
    for rule in (_within_stop, _sent, _valued):
        if draft.opens:
            draft = rule(draft, terms)
    return draft


def ruled(draft: Draft, terms: Terms, now: Millis) -> Ruling:
    """The end of it. `now`: the clock that counts, of the wall when live and of the market when recorded."""
    until = good_until(terms.mode, terms.as_of)
    ruling = Ruling(
        decision=draft.call,
        allocation_pct=draft.allocation_pct,
        leverage=draft.leverage,
        target_exchange=draft.target,
        execution_style=draft.style,
        legs=draft.legs,
        closes=draft.closes,
        veto=draft.veto,
        valid_until=iso(until),
        changes=draft.changes,
    )
    return expired(ruling) if now > until else ruling


def good_until(mode: Mode, as_of: Millis) -> Millis:
    return Millis(as_of + VALID_MINUTES[mode] * MINUTE_MS)


def expired(ruling: Ruling) -> Ruling:
    """The same, too late: what would open something opens nothing any more. Exits stay."""
    if ruling.decision.side is None:
        return ruling
    why = f"it was good until {ruling.valid_until}"
    told = Change(by=RuleName.EXPIRED.value, field="decision", from_=ruling.decision.value, to=Call.HOLD.value, why=why)
    return Ruling(
        decision=Call.HOLD,
        allocation_pct=0.0,
        leverage=1.0,
        target_exchange=None,
        execution_style=None,
        legs=(),
        veto=RuleName.EXPIRED.value,
        valid_until=ruling.valid_until,
        changes=(*ruling.changes, told),
    )


def held_sides(terms: Terms) -> tuple[Side, ...]:
    """Which ways the desk stands in the symbol, orders that would open something included; none where nobody knows."""
    if isinstance(terms.account, Missing):
        return ()
    sides = [one.side for one in terms.account.positions if one.symbol is terms.symbol]
    sides += [one.side for one in terms.account.pending if one.symbol is terms.symbol and not one.reduce_only]
    return tuple(sides)


# -- the rules of the desk, in their order


def _close_first(draft: Draft, terms: Terms) -> Draft:
    """One position per symbol: the other way begins with the end of this one."""
    against = [side for side in held_sides(terms) if side is not draft.call.side]
    if not against:
        return draft
    why = f"a {against[0]} is open: it ends now, the other side may begin next cycle"
    told = noted(draft, RuleName.CLOSE_FIRST, "decision", draft.call, Call.CANCEL_AND_CLOSE, why)
    return _leaving(replace(told, call=Call.CANCEL_AND_CLOSE, allocation_pct=0.0, leverage=1.0), terms)


def _leaving(draft: Draft, terms: Terms) -> Draft:
    """Everything out now, wherever it is; nobody has to know anything for it."""
    closes = _ended(terms)
    return replace(draft, style=Style.CASINO_EXIT, target=target_of(tuple(one.venue for one in closes)), closes=closes)


def _ended(terms: Terms) -> tuple[Ending, ...]:
    """Positions first, then the orders that would open or close more; none where nobody knows."""
    account = terms.account
    if isinstance(account, Missing):
        return ()
    several: tuple[tuple[Literal["position", "order"], tuple[Holding | Resting, ...]], ...] = (
        ("position", account.positions),
        ("order", account.pending),
    )
    return tuple(
        Ending(venue=one.exchange, what=what, id=one.id, side=one.side, quantity=one.quantity)
        for what, found in several
        for one in found
        if one.symbol is terms.symbol
    )


def _believed(draft: Draft, terms: Terms) -> Draft:
    if draft.decision.source != "fallback":
        return draft
    return vetoed(draft, RuleName.JUDGE_FALLBACK, "the Judge's model failed: the rules in its place open nothing")


def _informed(draft: Draft, terms: Terms) -> Draft:
    gone = lacking(terms)
    return vetoed(draft, RuleName.MISSING_FACTS, "; ".join(gone), unknown=True) if gone else draft


def _budgeted(draft: Draft, meta: Meta | None, terms: Terms) -> Draft:
    budget = 0 if meta is None else meta.risk_budget_pct
    if budget > PANIC_BUDGET and (why := _not_calm(terms)):
        draft = noted(draft, RuleName.PANIC_BUDGET, "risk_budget_pct", budget, PANIC_BUDGET, why)
        budget = PANIC_BUDGET
    if budget >= 100:
        return draft
    told = "nobody set a budget" if meta is None else f"{budget} % of what could be risked may be"
    if budget <= 0:
        return vetoed(draft, RuleName.RISK_BUDGET, told, unknown=meta is None)
    return _cut(draft, RuleName.RISK_BUDGET, draft.allocation_pct * budget / 100, told)


def _not_calm(terms: Terms) -> str | None:
    if terms.panic is not False:
        return "options are in panic" if terms.panic is True else f"panic is not ruled out: {terms.panic.reason}"
    if isinstance(terms.day_rank, Missing):
        return f"panic is not ruled out: {terms.day_rank.reason}"
    if terms.day_rank >= PANIC_RANK:
        return f"the day moved more than {100 * terms.day_rank:.0f} % of its like"
    return None


def _within_stop(draft: Draft, terms: Terms) -> Draft:
    """No exchange owns more than the account: a part of its equity is at most that part of all."""
    reached = _reach(draft)
    if reached is None:
        return vetoed(draft, RuleName.MISSING_FACTS, "its prices make no trade", unknown=True)
    leverage = min(draft.leverage, LEVERAGE_CAP[terms.mode])
    most = 100 * MOST_RISK / (leverage * reached.loss)
    if draft.allocation_pct <= most:
        return draft
    why = f"a stop {reached.loss:.2f} % away at {leverage:g}× may cost {MOST_RISK:g} % of the equity"
    return _cut(draft, RuleName.STOP_RISK, most, why)


def _sent(draft: Draft, terms: Terms) -> Draft:
    """Where it goes is settled by what was decided: a smaller leverage later sends nothing elsewhere."""
    leverage = min(draft.leverage, LEVERAGE_CAP[terms.mode])
    target: Target = route(draft.call, leverage, terms.mode)
    return replace(draft, target=target, routed=target, style=style_of(terms))


def _valued(draft: Draft, terms: Terms) -> Draft:
    trial = carried(draft, terms)
    if not trial.opens or draft.call.side is None or draft.routed is None or draft.style is None:
        return trial
    size = fsum(usd_of(leg, terms.won) for leg in trial.legs)
    several = exchanges(draft.routed)
    worth = expectancy.expectation(draft.decision, draft.call.side, several, draft.style, terms, draft.cost_usd, size)
    if isinstance(worth, Missing):
        return vetoed(draft, RuleName.MISSING_FACTS, worth.reason, unknown=True)
    return worthwhile(replace(draft, legs=trial.legs, expectation=worth), terms)


def _cut(draft: Draft, rule: RuleName, allocation: float, why: str) -> Draft:
    if allocation >= draft.allocation_pct:
        return draft
    before, after = round(draft.allocation_pct, 6), round(allocation, 6)
    return replace(noted(draft, rule, "allocation_pct", before, after, why), allocation_pct=allocation)


def _reach(draft: Draft) -> expectancy.Reach | None:
    side = draft.call.side
    return None if side is None else expectancy.reach(draft.decision, side)
