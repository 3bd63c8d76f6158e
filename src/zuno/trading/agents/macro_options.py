"""The expert on options and the economy: what is paid for protection, and what dollar, stocks and the curve did."""

from typing import Final

from zuno.llm.ask import ModelContext
from zuno.trading.agents import prompt_facts
from zuno.trading.agents.ask import ask_numeric_expert, explain, to_answer
from zuno.trading.agents.case import Case
from zuno.trading.agents.evidence import SIGNALS, Reason, confidence, direction_of, scale_weight
from zuno.trading.measure.features import FigureChange
from zuno.trading.model.cycle import AgentAnswer, Expert, MacroAnomaly, MacroEntry, MacroOpinion, Stance
from zuno.trading.model.known import Known, Missing, figure_in
from zuno.trading.rules.score import entry_stance

ROLE: Final = "macro"
BALANCED: Final = 0.8
"""Puts for each call that the market usually holds."""
USUAL_SKEW: Final = 1.5
"""Vol points that puts are usually dearer by: insurance has a price in quiet times too."""
RESTLESS: Final = 0.25
"""Percentage points of 2s10s over five prints."""


async def ask_expert(case: Case, model_context: ModelContext) -> AgentAnswer[MacroEntry]:
    spoken = await ask_numeric_expert(
        case,
        Expert.MACRO,
        lambda: (
            prompt_facts.options_section(case),
            prompt_facts.economy_section(case),
            prompt_facts.day_section(case).at_weight(50),
        ),
        MacroOpinion,
        lambda: answer_by_rules(case),
        model_context,
    )
    return to_answer(ROLE, MacroEntry, spoken, stance=entry_stance(spoken.value))


def answer_by_rules(case: Case) -> MacroOpinion:
    fear, world = option_reasons(case), macro_reasons(case)
    reasons = [*fear, *world]
    anomaly: MacroAnomaly = "none"
    if case.inputs.panic is True:
        anomaly = "options_panic"
    elif direction_of(fear) * direction_of(world) < 0:
        anomaly = "macro_divergence"
    return MacroOpinion(
        anomaly=anomaly,
        options_bias=SIGNALS[direction_of(reasons)],
        confidence=confidence(reasons),
        rationale=explain(case, reasons, _quiet_text(case)),
    )


def option_reasons(case: Case) -> list[Reason]:
    """Dear puts show fear of a fall, cheap ones of a rise. Volatility has no side: it counts on the feared one."""
    dvol, surface, feared = case.features.dvol, case.features.surface, feared_side(case)
    reasons: list[Reason] = []
    if not isinstance(dvol, Missing) and dvol.z >= 1 and feared:
        text = "DVOL of {dvol.value} is {dvol.deviations} deviations from its mean of {dvol.mean_30d}"
        reasons.append(Reason(feared * scale_weight(dvol.z, 3, 0.35), text))
    if isinstance(surface, Missing):
        return reasons
    skew, ratio, term = surface.week.skew25, surface.put_call_open_interest, surface.term
    if not isinstance(skew, Missing) and abs(skew - USUAL_SKEW) >= 1:
        dear = "dear" if skew > USUAL_SKEW else "cheap"
        text = f"puts are {dear}: the weekly 25-delta skew is {{options.skew_7d}}"
        reasons.append(Reason(-scale_weight(skew - USUAL_SKEW, 5, 0.3), text))
    if not isinstance(ratio, Missing) and abs(ratio - BALANCED) >= 0.1:
        many = "many" if ratio > BALANCED else "few"
        text = f"{many} puts are held: {{options.put_call}} for each call"
        reasons.append(Reason(-scale_weight(ratio - BALANCED, 0.4, 0.2), text))
    if not isinstance(term, Missing) and term > 0 and feared:
        reasons.append(Reason(feared * scale_weight(term, 4, 0.3), "the term structure is inverted by {options.term}"))
    return reasons


def feared_side(case: Case) -> Stance:
    """Which way the market fears to go: as the weekly skew leans, else as the price went in a day."""
    surface, day = case.features.surface, case.context.day
    skew = surface if isinstance(surface, Missing) else surface.week.skew25
    if not isinstance(skew, Missing) and abs(skew - USUAL_SKEW) >= 1:
        return -1 if skew > USUAL_SKEW else 1
    return 0 if isinstance(day, Missing) or not day else -1 if day < 0 else 1


def macro_reasons(case: Case) -> list[Reason]:
    """A rising dollar and falling stocks are bearish. A fast-moving curve has no side: it counts on the feared one."""
    context, slope, feared = case.context, case.features.economy.slope, feared_side(case)
    reasons: list[Reason] = []
    reasons += _change_reasons("dollar_change", context.dollar, 0.015, -0.3)
    reasons += _change_reasons("stocks_change", context.stocks, 0.03, 0.35)
    change: Known[float] = figure_in(slope, "change")
    if not isinstance(change, Missing) and abs(change) >= RESTLESS and feared:
        reasons.append(Reason(0.15 * feared, "the curve is restless: its slope changed by {curve.slope_change}"))
    return reasons


def _change_reasons(id_: str, change: Known[FigureChange], full: float, weight: float) -> list[Reason]:
    """Of a figure that moved by at least a quarter of what counts in full."""
    if isinstance(change, Missing) or abs(change.share) < full / 4:
        return []
    sign, text = 1 if weight > 0 else -1, f"{change.of.called} changed by {{{id_}}}"
    return [Reason(sign * scale_weight(change.share, full, abs(weight)), text)]


def _quiet_text(case: Case) -> str:
    dvol = case.features.dvol
    if isinstance(dvol, Missing):
        return "Little is known of options ({dvol.value.unknown}), and the economy says nothing."
    usual = "DVOL of {dvol.value} is ordinary beside its mean of {dvol.mean_30d}"
    named = (("the dollar", case.context.dollar), ("stocks", case.context.stocks))
    unknown = [name for name, change in named if isinstance(change, Missing)]
    calm = f"nothing is known of {' and '.join(unknown)}" if unknown else "dollar and stocks hardly moved"
    return f"{usual}; {calm}."
