"""Meta: names the regime, whom to trust in it, and how much of the risk budget it allows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from zuno.llm.ask import ModelContext
from zuno.trading.agents import learned, liquidity, microstructure, prompt_facts
from zuno.trading.agents.ask import Keep, ask_agent, explain, keep_fields, to_answer
from zuno.trading.agents.case import Case
from zuno.trading.agents.known_data import find_own_gap, has_few_books
from zuno.trading.agents.learned import NewsReading, summarise_news
from zuno.trading.agents.prompt_budget import Line, Section
from zuno.trading.measure.indicators import IndicatorValues
from zuno.trading.measure.triage import Rule
from zuno.trading.model import cycle
from zuno.trading.model.known import Missing, NotRecorded
from zuno.trading.model.market import Mode, Timeframe
from zuno.trading.rules.inputs import PANIC_RANK, has_fallen
from zuno.trading.rules.price_menu import frame_of

ROLE: Final = "meta"
TREND: Final = 25.0
NARROW: Final = 0.30
BUDGETS: Final[Mapping[cycle.Regime, int]] = {
    cycle.Regime.VOLATILITY_PANIC: 20,
    cycle.Regime.BULL_MOMENTUM: 80,
    cycle.Regime.BEAR_MOMENTUM: 80,
    cycle.Regime.SIDEWAYS_ACCUMULATION: 60,
    cycle.Regime.RANGE_BOUND: 50,
}
UNKNOWN_PANIC: Final = 20
"""The most where nobody can say whether there is a panic."""


class RegimeRuling(NamedTuple):
    """The first regime whose rule fits, and the most it may risk."""

    regime: cycle.Regime
    budget: int
    why: str


async def ask_meta(case: Case, model_context: ModelContext) -> cycle.AgentAnswer[cycle.Meta]:
    ruled, known = regime_of(case), _list_trustworthy(case)
    names = ", ".join(known) or "nobody"
    # Rules do not read news: a Meta without a model needs nobody who does.
    has_model = bool(model_context.registry.models_for(ROLE, 0).models)
    news = await summarise_news(case.bundle, model_context) if has_model else NewsReading()
    spoken = await ask_agent(
        model_context,
        role=ROLE,
        sections=lambda: (
            prompt_facts.market_section(case),
            prompt_facts.anomalies_section(case),
            Section("experts", 97, (Line(f"experts who have data, of whom one may be trusted: {names}"),)),
            prompt_facts.day_section(case).at_weight(95),
            prompt_facts.indicator_section(case, Timeframe.D1).at_weight(90),
            prompt_facts.flow_section(case).at_weight(60),
            prompt_facts.options_section(case).at_weight(80),
            prompt_facts.derivatives_section(case).at_weight(70),
            prompt_facts.economy_section(case).at_weight(65),
            prompt_facts.narrative_section(case),
            prompt_facts.news_section(case),
            learned.news_section(case.bundle, news.summary),
        ),
        output=cycle.MetaOpinion,
        fallback=lambda: answer_by_rules(case),
        prose=lambda opinion, keep: _keep_texts(opinion, answer_by_rules(case), keep),
    )
    opinion = spoken.value
    budget = min(opinion.risk_budget_pct, ruled.budget, BUDGETS[opinion.regime])
    trust, gone = opinion.trust_directive, ""
    if trust.expert not in known and known:
        trust = answer_by_rules(case).trust_directive
        gone = f"{opinion.trust_directive.expert} is not trusted: it has too little data"
    unread = f"recalled news were not summed up: {news.why}" if news.why else ""
    paid = replace(spoken, attempts=(*news.attempts, *spoken.attempts))
    cut_by = _describe_cut(opinion, ruled, budget)
    return to_answer(ROLE, cycle.Meta, paid, unread, gone, cut_by, risk_budget_pct=budget, trust_directive=trust)


def _keep_texts(opinion: cycle.MetaOpinion, rules: cycle.MetaOpinion, keep: Keep) -> cycle.MetaOpinion:
    trust = keep_fields(opinion.trust_directive, rules.trust_directive, keep, note=cycle.SHORT_TEXT)
    return keep_fields(opinion, rules, keep, rationale=cycle.LONG_TEXT).model_copy(update={"trust_directive": trust})


def _describe_cut(opinion: cycle.MetaOpinion, ruled: RegimeRuling, budget: int) -> str:
    """Which rule took how much of the budget that was asked for; empty where none did."""
    if budget == opinion.risk_budget_pct:
        return ""
    by = f"{opinion.regime} allows {BUDGETS[opinion.regime]}"
    if budget == ruled.budget:
        by = f"the rules find {ruled.regime} and allow {ruled.budget}"
    return f"the budget of {opinion.risk_budget_pct} % was cut to {budget} %: {by}"


def regime_of(case: Case) -> RegimeRuling:
    """The first regime whose rule fits. A missing feed never raises the budget."""
    inputs, days = case.inputs, frame_of(case.features, Timeframe.D1)
    panic = _panic_reason(case)
    if isinstance(days, Missing) or isinstance(inputs.bars, Missing):
        gone = "{bars.unknown}" if isinstance(inputs.bars, Missing) else "{1d.unknown}"
        lost = f"candles are missing ({gone}), so nothing may be risked"
        if panic is not None:  # what is held may have to go
            return RegimeRuling(cycle.Regime.VOLATILITY_PANIC, 0, f"{panic}; {lost}")
        return RegimeRuling(cycle.Regime.RANGE_BOUND, 0, lost)
    regime, why = (cycle.Regime.VOLATILITY_PANIC, panic) if panic is not None else _name_regime(case, days.readings)
    budget = BUDGETS[regime]
    doubts = (inputs.panic, inputs.day_volatility_rank)
    unknown = any(isinstance(figure, Missing) and not isinstance(figure, NotRecorded) for figure in doubts)
    if unknown and budget > UNKNOWN_PANIC:
        return RegimeRuling(regime, UNKNOWN_PANIC, f"{why}; whether there is a panic is not known ({{panic.unknown}})")
    return RegimeRuling(regime, budget, why)


def _panic_reason(case: Case) -> str | None:
    inputs = case.inputs
    if inputs.panic is True:
        return f"options are in panic: {{anomaly.{Rule.OPTIONS_PANIC}}}"
    rank = inputs.day_volatility_rank
    if not isinstance(rank, Missing) and rank >= PANIC_RANK and has_fallen(case.context.day):
        return "the day moved more than {volatility_rank} of earlier days, and down"
    return None


def _name_regime(case: Case, seen: IndicatorValues) -> tuple[cycle.Regime, str]:
    """Where there is no panic."""
    if seen.adx is None or seen.ema21 is None or seen.ema50 is None:
        return cycle.Regime.RANGE_BOUND, "too few days are known for a trend"
    for regime, sign, word in ((cycle.Regime.BULL_MOMENTUM, 1, "above"), (cycle.Regime.BEAR_MOMENTUM, -1, "below")):
        if seen.adx >= TREND and sign * (seen.ema21 - seen.ema50) > 0 and sign * (seen.close - seen.ema50) > 0:
            return regime, f"1d ADX14 is {{1d.adx14}}, EMA21 and the close stand {word} EMA50"
    flow = case.context.days
    if is_narrow(case) and not isinstance(flow, Missing) and flow.slope > 0:
        why = "1d Bollinger bands are wider than on {bollinger_rank} of earlier days, and CVD rises"
        return cycle.Regime.SIDEWAYS_ACCUMULATION, why
    return cycle.Regime.RANGE_BOUND, "1d ADX14 is {1d.adx14}: no trend, no squeeze with buying under it"


def is_narrow(case: Case) -> bool:
    width = case.context.width_rank
    return not isinstance(width, Missing) and width < NARROW


def answer_by_rules(case: Case) -> cycle.MetaOpinion:
    ruled = regime_of(case)
    expert, note = _choose_trusted(ruled.regime, case.bundle.mode, is_narrow(case))
    trustworthy = _list_trustworthy(case)
    if expert not in trustworthy and trustworthy:
        note = f"{expert} would be first in {ruled.regime}, and has too little data; {trustworthy[0]} is next that has."
        expert = trustworthy[0]
    struck = [
        f"{event.name} in the last hour ({{{prompt_facts.event_id(case, event)}}})"
        for event in case.features.events.events
    ]
    usual = (
        cycle.RiskBias.AGGRESSIVE
        if ruled.regime in (cycle.Regime.BULL_MOMENTUM, cycle.Regime.BEAR_MOMENTUM)
        else cycle.RiskBias.NEUTRAL
    )
    return cycle.MetaOpinion(
        regime=ruled.regime,
        rationale=explain(case, (), "; ".join((ruled.why, *struck))),
        trust_directive=cycle.DirectiveOpinion(expert=expert, note=note),
        risk_budget_pct=ruled.budget,
        risk_bias=cycle.RiskBias.CONSERVATIVE if struck or ruled.budget <= UNKNOWN_PANIC else usual,
    )


def _list_trustworthy(case: Case) -> list[cycle.Expert]:
    """Who has data, in the order of conviction. Candles that stand in for a feed count where they lean; a book that was
    only glanced at leads nobody."""
    silent = {expert for expert in cycle.Expert if find_own_gap(case, expert)}
    if cycle.Expert.LIQUIDITY in silent and liquidity.measure_stance(case, liquidity.answer_by_rules(case).anomaly):
        silent.remove(cycle.Expert.LIQUIDITY)
    if cycle.Expert.MICROSTRUCTURE in silent and microstructure.answer_by_rules(case).directional_bias != "NEUTRAL":
        silent.remove(cycle.Expert.MICROSTRUCTURE)
    if has_few_books(case):
        silent.add(cycle.Expert.MICROSTRUCTURE)
    return [expert for expert in cycle.CONVICTION[case.bundle.mode] if expert not in silent]


def _choose_trusted(regime: cycle.Regime, mode: Mode, narrow: bool) -> tuple[cycle.Expert, str]:
    """A narrow range is read by liquidity, whether it is bought or sold."""
    match regime:
        case cycle.Regime.VOLATILITY_PANIC:
            return cycle.Expert.MACRO, "In a panic options and the economy lead; books are thin and shapes break."
        case cycle.Regime.BULL_MOMENTUM | cycle.Regime.BEAR_MOMENTUM:
            return (
                cycle.Expert.LIQUIDITY,
                "In a trend whoever takes decides: orderflow outweighs shapes that call a turn.",
            )
        case cycle.Regime.SIDEWAYS_ACCUMULATION:
            return cycle.Expert.LIQUIDITY, "While a range fills, orderflow shows first who gathers."
    if narrow:
        return cycle.Expert.LIQUIDITY, "While a range is narrow, orderflow shows first who leaves it."
    if mode is Mode.SWING:
        return cycle.Expert.MICROSTRUCTURE, "In a range the book decides at its edges."
    return cycle.Expert.GEOMETRY, "In a range its edges are the trade, and measured levels show them."
