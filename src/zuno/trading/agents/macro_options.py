"""The expert on options and the economy: what is paid for protection, and what dollar, stocks and the curve did."""

from __future__ import annotations

from typing import Final

from zuno.llm.ask import ModelContext
from zuno.provenance.slots import cut
from zuno.trading.agents import prompt_facts
from zuno.trading.agents.ask import Heard, hear, noted, to_expert, voice_of
from zuno.trading.agents.case import Matter
from zuno.trading.agents.evidence import Pull, confidence, pulled, told, total, way
from zuno.trading.agents.prompt_facts import of
from zuno.trading.agents.schemas import LONG_TEXT, MacroOpinion
from zuno.trading.measure.price_context import FigureChange
from zuno.trading.model.cycle import Expert, Lean, MacroAnomaly, MacroEntry
from zuno.trading.model.known import Known, Missing
from zuno.trading.rules.score import entry_stance

ROLE: Final = "macro"
BALANCED: Final = 0.8
"""Puts for each call that the market usually holds."""
USUAL_SKEW: Final = 1.5
"""Vol points that puts are usually dearer by: insurance has a price in quiet times too."""
RESTLESS: Final = 0.25
"""Percentage points of 2s10s over five prints."""
LEANS: Final[dict[int, Lean]] = {1: "BULLISH", 0: "NEUTRAL", -1: "BEARISH"}


async def weigh(matter: Matter, minds: ModelContext) -> Heard[MacroEntry]:
    sections = (
        prompt_facts.market(matter),
        prompt_facts.anomalies(matter),
        prompt_facts.options(matter),
        prompt_facts.economy(matter),
        prompt_facts.day(matter, 50),
    )
    spoken = await hear(to_expert(ROLE, Expert.MACRO, sections, MacroOpinion, lambda: twin(matter)), minds)
    said = spoken.value
    entry = MacroEntry(
        source=spoken.source,
        why=noted(spoken),
        anomaly=said.anomaly,
        options_bias=said.options_bias,
        confidence=said.confidence,
        rationale=said.rationale,
        stance=0,
    )
    return Heard(entry.model_copy(update={"stance": entry_stance(entry)}), voice_of(ROLE, spoken))


def twin(matter: Matter) -> MacroOpinion:
    fear, world = option_pulls(matter), world_pulls(matter)
    pulls = [*fear, *world]
    anomaly: MacroAnomaly = "none"
    if matter.terms.panic is True:
        anomaly = "options_panic"
    elif way(total(fear)) * way(total(world)) < 0:
        anomaly = "macro_divergence"
    return MacroOpinion(
        anomaly=anomaly,
        options_bias=LEANS[way(total(pulls))],
        confidence=confidence(pulls),
        rationale=cut(told(pulls, _nothing(matter)), prompt_facts.market_facts(matter), LONG_TEXT),
    )


def option_pulls(matter: Matter) -> list[Pull]:
    """Dear protection is fear, and so is a near future dearer than the far one; cheap protection is calm."""
    dvol, surface = matter.features.dvol, matter.features.surface
    found: list[Pull] = []
    if not isinstance(dvol, Missing) and abs(dvol.z) >= 1:
        said = "DVOL of {dvol.value} is {dvol.deviations} deviations from its mean of {dvol.mean_30d}"
        found.append(Pull(-pulled(dvol.z, 3, 0.35), said))
    if isinstance(surface, Missing):
        return found
    skew, ratio, term = surface.week.skew25, surface.put_call_open_interest, surface.term
    if not isinstance(skew, Missing) and abs(skew - USUAL_SKEW) >= 1:
        dear = "dear" if skew > USUAL_SKEW else "cheap"
        said = f"puts are {dear}: the weekly 25-delta skew is {{options.skew_7d}}"
        found.append(Pull(-pulled(skew - USUAL_SKEW, 5, 0.3), said))
    if not isinstance(ratio, Missing) and abs(ratio - BALANCED) >= 0.1:
        many = "many" if ratio > BALANCED else "few"
        found.append(
            Pull(-pulled(ratio - BALANCED, 0.4, 0.2), f"{many} puts are held: {{options.put_call}} for each call")
        )
    if not isinstance(term, Missing) and term > 0:
        found.append(Pull(-pulled(term, 4, 0.3), "the term structure is inverted by {options.term}"))
    return found


def world_pulls(matter: Matter) -> list[Pull]:
    """A dear dollar and falling stocks drain what is risky; a curve that moves fast does so either way."""
    signs, slope = matter.signs, matter.features.economy.slope
    found: list[Pull] = []
    found += _change("dollar_change", signs.dollar, 0.015, -0.3)
    found += _change("stocks_change", signs.stocks, 0.03, 0.35)
    change: Known[float] = of(slope, "change")
    if not isinstance(change, Missing) and abs(change) >= RESTLESS:
        found.append(Pull(-0.15, "the curve is restless: its slope changed by {curve.slope_change}"))
    return found


def _change(id_: str, change: Known[FigureChange], full: float, weight: float) -> list[Pull]:
    """Of a figure that moved by at least a quarter of what counts in full."""
    if isinstance(change, Missing) or abs(change.share) < full / 4:
        return []
    sign, said = 1 if weight > 0 else -1, f"{change.of.called} changed by {{{id_}}}"
    return [Pull(sign * pulled(change.share, full, abs(weight)), said)]


def _nothing(matter: Matter) -> str:
    dvol = matter.features.dvol
    if isinstance(dvol, Missing):
        return "Little is known of options ({dvol.value.unknown}), and the economy says nothing."
    usual = "DVOL of {dvol.value} is ordinary beside its mean of {dvol.mean_30d}"
    named = (("the dollar", matter.signs.dollar), ("stocks", matter.signs.stocks))
    unknown = [name for name, change in named if isinstance(change, Missing)]
    calm = f"nothing is known of {' and '.join(unknown)}" if unknown else "dollar and stocks hardly moved"
    return f"{usual}; {calm}."
