"""The draft of a ruling: the decision after each rule, and the changes each rule made."""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from zuno.markets.venues import Venue
from zuno.trading.model.cycle import Call, Closing, Decision, Expectation, Leg, RegimeFamily, RuleChange, Style, Target


class RuleOwner(StrEnum):
    DESK = "desk"
    CRO = "cro"
    GUARD = "guard"


class RuleName(StrEnum):
    """Every rule between a decision and a ruling. A change it made is signed with its name first."""

    STOP_PASSED = "stop_passed"
    TARGET_PASSED = "target_passed"
    HOLD_OVER = "hold_over"
    CLOSE_FIRST = "close_first"
    JUDGE_FALLBACK = "judge_fallback"
    SHOCK_EXIT = "shock_exit"
    MISSING_FACTS = "missing_facts"
    SHOCK_COOLDOWN = "shock_cooldown"
    PAPER_ONLY = "paper_only"
    PANIC_BUDGET = "panic_budget"
    RISK_BUDGET = "risk_budget"
    STOP_RISK = "stop_risk"
    NO_SIZE = "no_size"
    JUDGE_EV = "judge_ev"
    EXPECTANCY = "expectancy"
    EXPLORATION = "exploration"
    KELLY = "kelly"
    MINIMUM_ORDER = "minimum_order"
    ALREADY_HELD = "top_up"
    EXPIRED = "expired"
    LEVERAGE = "cro_1_leverage"
    VOLATILITY = "cro_2_volatility"
    FUNDING = "cro_3_funding"
    LIQUIDATIONS = "cro_4_liquidations"
    VENUE_CAP = "cro_5_venue_cap"
    RATE = "cro_5_won"
    STYLE = "cro_6_style"
    DOLLAR = "cro_7_dollar"
    TIGHTENED = "cro_model"
    LEVERAGE_GUARD = "leverage_guard"

    @property
    def owner(self) -> RuleOwner:
        if self is RuleName.LEVERAGE_GUARD:
            return RuleOwner.GUARD
        return RuleOwner.CRO if self.value.startswith("cro_") else RuleOwner.DESK


@dataclass(frozen=True, slots=True)
class Tightening:
    """What a risk officer asks for beyond the rules. None leaves a figure as it is; asking for more changes nothing."""

    allocation_pct: float | None = None
    leverage: float | None = None
    veto: bool = False
    style: Style | None = None
    route: Target | None = None
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class RulingDraft:
    decision: Decision
    """The Judge's. No rule changes its prices."""
    call: Call
    allocation_pct: float
    """Margin as a percentage of the equity that carries it."""
    leverage: float
    target: Target | None = None
    style: Style | None = None
    legs: tuple[Leg, ...] = ()
    expectation: Expectation | None = None
    veto: str | None = None
    changes: tuple[RuleChange, ...] = ()
    cost_usd: float = 0.0
    """Model cost so far plus the expected rest."""
    closes: tuple[Closing, ...] = ()
    routed_to: Target | None = None
    """The first routing. A dropped leg leaves no extra room for the other."""
    family: RegimeFamily | None = None
    """Whose record it is judged by; None where nobody named a regime."""
    exploration: bool = False
    """Opened on paper for the record's sake."""
    kelly_cap_usd: float = inf
    """The largest notional that its edge bears."""

    @property
    def opens(self) -> bool:
        return self.call.side is not None


def record_change(
    draft: RulingDraft,
    rule: RuleName,
    field: str,
    before: float | str | None,
    after: float | str | None,
    why: str,
    *,
    unknown: bool = False,
) -> RulingDraft:
    """Record a change. `unknown`: the rule fired because its input is missing."""
    by = f"{rule.value} (unknown)" if unknown else rule.value
    change = RuleChange(by=by, field=field, from_=_plain_value(before), to=_plain_value(after), why=why)
    return replace(draft, changes=(*draft.changes, change))


def change_allocation(
    draft: RulingDraft, rule: RuleName, allocation: float, why: str, *, unknown: bool = False
) -> RulingDraft:
    before, after = round(draft.allocation_pct, 6), round(allocation, 6)
    changed = record_change(draft, rule, "allocation_pct", before, after, why, unknown=unknown)
    return replace(changed, allocation_pct=allocation)


def record_margin(
    draft: RulingDraft, rule: RuleName, venue: Venue, before: float, after: float, why: str, *, unknown: bool = False
) -> RulingDraft:
    """Record what a rule left of a leg's margin."""
    return record_change(draft, rule, f"legs.{venue.value}.margin", before, after, why, unknown=unknown)


def record_skipped_rule(draft: RulingDraft, rule: RuleName, field: str, why: str) -> RulingDraft:
    """Record that a rule was not judged because its feed was never recorded."""
    change = RuleChange(by=f"{rule.value} (not judged)", field=field, from_=None, to=None, why=why)
    return replace(draft, changes=(*draft.changes, change))


def veto_trade(draft: RulingDraft, rule: RuleName, why: str, *, unknown: bool = False) -> RulingDraft:
    """Turn the trade into a HOLD. An exit is never vetoed."""
    if not draft.opens:
        return draft
    changed = record_change(draft, rule, "decision", draft.call, Call.HOLD, why, unknown=unknown)
    return replace(
        changed, call=Call.HOLD, allocation_pct=0.0, leverage=1.0, target=None, style=None, legs=(), veto=rule.value
    )


def _plain_value(value: float | str | None) -> float | str | None:
    return value.value if isinstance(value, StrEnum) else value
