"""The LP desk's views as facts."""

from __future__ import annotations

from zuno.doors.chat.facts import MAX_ROWS, FactWriter, ToolFacts
from zuno.kernel.clock import iso
from zuno.kernel.text import Token, base_and_quote
from zuno.kernel.units import Millis
from zuno.lp.service.archive import PlanListView, WhyView
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.views import PoolKeyView


def write_plans(view: PlanListView, facts: FactWriter) -> ToolFacts:
    facts.line(facts.rows(view.plans, "plans, newest first"))
    for plan in view.plans[:MAX_ROWS]:
        facts.id(plan.plan_id, plan.position_id)
        of = facts.name(f"position {plan.position_id}") if plan.position_id else "a new position"
        facts.line(
            f"{facts.name(plan.plan_id)}: {plan.choice} for {of} on {plan.chain}",
            f"{plan.verdict or 'without a debate'}, {plan.state}",
            facts.words(f"{plan.plan_id}.made", _moment(plan.at // 1_000)),
        )
    return facts.build()


def write_plan(view: PlanView, facts: FactWriter) -> ToolFacts:
    chosen = view.recommended
    token = _safe_symbol(chosen.pool.currency1)
    quote = _safe_symbol(base_and_quote(chosen.pool.currency0, chosen.pool.currency1)[1])
    facts.id(view.plan_id, view.position_id)
    of = facts.name(f"position {view.position_id}") if view.position_id else "a new position"
    facts.line(
        f"{facts.name(view.plan_id)}: {chosen.kind} for {of} on {view.chain}, {_pool(chosen.pool, facts)}",
        f"{view.verdict}, decided by {view.decided_by}, regime {view.regime}",
        facts.share("confidence", view.confidence),
        facts.price("price_lower", chosen.price_lower, quote),
        facts.price("price_upper", chosen.price_upper, quote),
        facts.amount("fees_24h", chosen.carry.fees24h, token),
        facts.amount("lvr_24h", chosen.carry.lvr24h, token),
        facts.amount("cost", chosen.carry.cost, token),
        facts.hours("breakeven", chosen.carry.breakeven_hours),
    )
    facts.line(f"why: {facts.stranger(view.because)}", f"the critic: {facts.stranger(chosen.reason)}")
    for caution in view.cautions[:MAX_ROWS]:
        facts.line(f"caution: {facts.stranger(caution)}")
    for computed in view.computed_notes:
        facts.line(facts.words("shown", computed))
    return facts.build()


def write_why(view: WhyView, facts: FactWriter) -> ToolFacts:
    if view.plan is None:
        facts.line(f"the debate {facts.name(view.request_id)} has no plan", facts.stranger(view.failed or ""))
        return facts.build()
    return write_plan(view.plan, facts)


def _pool(pool: PoolKeyView, facts: FactWriter) -> str:
    return facts.name(pool.label, own=pool.currency0.verified and pool.currency1.verified)


def _safe_symbol(token: Token) -> str:
    """Of a token that we named; a stranger's symbol is not printed in an answer."""
    return token.symbol if token.verified else ""


def _moment(seconds: int) -> str:
    return iso(Millis(seconds * 1_000))
