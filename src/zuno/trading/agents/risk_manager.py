"""The risk officer: reads a draft that the rules have cut already, and can only ask for less."""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, isfinite
from typing import Final

from zuno.llm.ask import ModelContext
from zuno.markets.venues import VENUES
from zuno.provenance.facts import Unit
from zuno.trading.agents import prompt_facts
from zuno.trading.agents.ask import ask_agent, keep_fields, voice_of
from zuno.trading.agents.case import Case
from zuno.trading.agents.prompt_budget import Line, Section
from zuno.trading.model import cycle
from zuno.trading.model.known import Missing
from zuno.trading.rules.draft import RulingDraft, Tightening
from zuno.trading.rules.expectancy import list_choices
from zuno.trading.rules.routing import choose_style

ROLE: Final = "risk_manager"
_CURRENCIES: Final = frozenset(venue.currency for venue in VENUES)
PASSED: Final = "nothing new is risked: the risk officer concurs without being asked"


async def ask_risk_manager(
    case: Case, draft: RulingDraft, model_context: ModelContext, shown: Sequence[Section] | None = None
) -> cycle.AgentAnswer[Tightening]:
    """`shown`: sections that are told instead of the case."""
    if not draft.opens:
        voice = cycle.AnswerSource(role=ROLE, source="deterministic", why=PASSED, model=None, tokens=0, usd=0.0)
        return cycle.AgentAnswer(value=Tightening(rationale=PASSED), voice=voice)
    spoken = await ask_agent(
        model_context,
        role=ROLE,
        sections=lambda: (
            (
                prompt_facts.market_section(case),
                prompt_facts.anomalies_section(case),
                _draft_section(case, draft),
                account_section(case),
                prompt_facts.derivatives_section(case),
                prompt_facts.liquidation_section(case).at_weight(75),
                prompt_facts.options_section(case).at_weight(70),
                prompt_facts.day_section(case).at_weight(60),
                prompt_facts.economy_section(case).at_weight(50),
            )
            if shown is None
            else shown
        ),
        output=cycle.RiskOpinion,
        fallback=lambda: answer_by_rules(case, draft),
        prose=lambda opinion, keep: keep_fields(opinion, answer_by_rules(case, draft), keep, rationale=cycle.LONG_TEXT),
    )
    opinion = spoken.value
    tightening = Tightening(
        allocation_pct=float(opinion.allocation_pct),
        leverage=float(opinion.leverage),
        veto=opinion.veto,
        style=opinion.execution_style,
        route=opinion.target_exchange,
        rationale=opinion.rationale,
    )
    return cycle.AgentAnswer(value=tightening, voice=voice_of(ROLE, spoken))


def answer_by_rules(case: Case, draft: RulingDraft) -> cycle.RiskOpinion:
    """The rules were applied already: figures rounded up from the draft change nothing."""
    return cycle.RiskOpinion(
        allocation_pct=min(100, ceil(draft.allocation_pct)),
        leverage=max(1, min(3, ceil(draft.leverage))),
        veto=False,
        execution_style=draft.style or choose_style(case.inputs),
        rationale="The rules have been applied; nothing is added to them.",
    )


@prompt_facts.section("draft", 97)
def _draft_section(case: Case, draft: RulingDraft) -> Iterator[Line]:
    """What would be done: sizes as percentages, prices, and the expectation; no dollars of the account."""
    yield Line(f"{draft.call}, held for {draft.decision.hold_duration}")
    yield from draft_lines(draft.decision, draft.allocation_pct, draft.leverage, draft.expectation)
    yield Line(f"execution style by rule: {draft.style or 'not chosen yet'}")
    for (style, route), worth in list_choices(draft, case.inputs).items():
        name, note = f"draft.{style}_{route}".lower(), f"EV if {style} by {route}"
        yield prompt_facts.fact(name, worth.ev_pct, Unit.PERCENT, 3, signed=True, note=note)
    yield from change_lines(draft.changes)


def change_lines(changes: Iterable[cycle.RuleChange]) -> Iterator[Line]:
    for place, change in enumerate(changes, 1):
        head = f"already changed, {change.by}: {change.field}: "
        # Without amounts of the account's money, which are written with their currency.
        parts = [part for part in change.why.split("; ") if not any(f" {word}" in part for word in _CURRENCIES)]
        yield prompt_facts.remark(f"draft.change_{place}", "; ".join(parts) or "a cap", head)


def draft_lines(
    decision: cycle.Decision,
    allocation: float,
    leverage: float,
    worth: cycle.Expectation | cycle.FirstExpectation | None,
) -> Iterator[Line]:
    yield prompt_facts.fact("draft.allocation", allocation, Unit.PERCENT)
    yield prompt_facts.fact("draft.leverage", leverage, Unit.RATIO, 1)
    for name in ("entry_price", "stop_loss", "take_profit"):
        if (value := getattr(decision, name)) is not None:
            yield prompt_facts.fact(f"draft.{name}", value, Unit.PRICE)
    if worth is None:
        return
    if isinstance(worth, cycle.FirstExpectation):
        first = "probability that the target comes first"
        yield prompt_facts.fact("draft.probability", 100 * worth.p, Unit.PERCENT, 1, note=first)
    else:
        fair = "how often the target comes first by the distances alone"
        yield prompt_facts.fact("draft.fair_rate", 100 * worth.fair, Unit.PERCENT, 1, note=fair)
        yield prompt_facts.fact("draft.edge", 100 * worth.edge, Unit.POINTS, 1, signed=True, note="claimed, capped")
        yield prompt_facts.fact("draft.duration", worth.duration_hours, Unit.HOURS, 1, note="expected")
        if worth.exploration:
            yield Line("an exploration: no edge is proven, a small trade on paper for the record")
    yield prompt_facts.fact("draft.profit", worth.profit_pct, Unit.PERCENT)
    yield prompt_facts.fact("draft.loss", worth.loss_pct, Unit.PERCENT)
    yield prompt_facts.fact("draft.expected_value", worth.ev_pct, Unit.PERCENT, 3, signed=True)


@prompt_facts.section("account", 80)
def account_section(case: Case) -> Iterator[Line]:
    standing = case.inputs.marked_account
    if isinstance(standing, Missing):
        yield prompt_facts.remark("account.unknown", standing.reason, "unknown: ")
        return
    held = "none" if standing.position is None else f"a {standing.position.side}"
    whole = standing.leverage if isfinite(standing.leverage) else Missing("no equity carries what is open")
    yield prompt_facts.fact("account.leverage", whole, Unit.RATIO, note="of the whole account before this trade")
    yield Line(f"open in this symbol: {held}")
