"""The facts of a finished run, computed again from its bundle: whoever shows its texts prints them from these."""

from __future__ import annotations

from zuno.provenance.facts import FactSheet
from zuno.trading.agents.case import Case
from zuno.trading.agents.judge import judge_facts, own_figures
from zuno.trading.agents.prompt_budget import Section
from zuno.trading.agents.prompt_facts import build_sheet
from zuno.trading.agents.risk_manager import account_section, change_lines, draft_lines
from zuno.trading.model.outcome import Outcome
from zuno.trading.rules.draft import RuleName


def run_facts(case: Case, outcome: Outcome) -> FactSheet:
    decision = outcome.decision
    before_review = []
    for change in outcome.ruling.changes:
        if change.by == RuleName.TIGHTENED.value:
            break
        before_review.append(change)
    sizes = {"allocation_pct": float(decision.allocation_pct), "leverage": float(decision.leverage)}
    sizes |= {
        change.field: float(change.to)
        for change in before_review
        if change.field in sizes and isinstance(change.to, int | float)
    }
    drafted = draft_lines(decision, sizes["allocation_pct"], sizes["leverage"], outcome.expectation)
    draft = Section("draft", 0, (*drafted, *change_lines(before_review)))
    judged = judge_facts(case, outcome.meta, outcome.board)
    return build_sheet((draft, account_section(case)), (*judged.values(), *own_figures(decision, case)))
