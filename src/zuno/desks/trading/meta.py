"""Meta: names the regime, whom to trust in it, and how much of the risk budget it allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from zuno.agents.ask import Minds
from zuno.core.indicators.columns import Readings
from zuno.core.known import Missing
from zuno.core.menu import frame_of
from zuno.core.triage import Rule
from zuno.desks.trading import knowledge
from zuno.desks.trading.matter import Matter
from zuno.desks.trading.opinions import DirectiveOpinion, MetaOpinion
from zuno.desks.trading.speaking import Asking, Heard, hear, noted, voice_of
from zuno.domain.cycle import Expert, Regime, RiskBias
from zuno.domain.trading import Mode, Timeframe
from zuno.messages.cycle import Directive, Meta

ROLE: Final = "meta"
PANIC_RANK: Final = 0.95
TREND: Final = 25.0
NARROW: Final = 0.30
BUDGETS: Final[Mapping[Regime, int]] = {
    Regime.VOLATILITY_PANIC: 20,
    Regime.BULL_MOMENTUM: 80,
    Regime.BEAR_MOMENTUM: 80,
    Regime.SIDEWAYS_ACCUMULATION: 60,
    Regime.RANGE_BOUND: 50,
}
UNKNOWN_PANIC: Final = 20
"""The most where nobody can say whether there is a panic."""


@dataclass(frozen=True, slots=True)
class RuledRegime:
    """The first regime whose rule fits, and the most it may risk."""

    regime: Regime
    budget: int
    why: str


async def classify(matter: Matter, minds: Minds) -> Heard[Meta]:
    ruled = regime_of(matter)
    spoken = await hear(
        Asking(
            role=ROLE,
            sections=(
                knowledge.market(matter),
                knowledge.anomalies(matter),
                knowledge.day(matter, 95),
                knowledge.gauges(matter, Timeframe.D1, weight=90),
                knowledge.flow(matter, 60),
                knowledge.options(matter, 80),
                knowledge.derivatives(matter, 70),
                knowledge.economy(matter, 65),
                knowledge.narrative(matter),
                knowledge.news(matter),
            ),
            output=MetaOpinion,
            twin=lambda: twin(matter),
            texts=lambda said: (said.rationale, said.trust_directive.note),
        ),
        minds,
    )
    said = spoken.value
    budget = min(said.risk_budget_pct, ruled.budget, BUDGETS[said.regime])
    cut = f"the budget of {said.risk_budget_pct} was cut to {budget} by rule" if budget < said.risk_budget_pct else ""
    value = Meta(
        source=spoken.source,
        why=noted(spoken, cut),
        regime=said.regime,
        rationale=said.rationale,
        trust_directive=Directive(expert=said.trust_directive.expert, note=said.trust_directive.note),
        risk_budget_pct=budget,
        risk_bias=said.risk_bias,
    )
    return Heard(value, voice_of(ROLE, spoken))


def regime_of(matter: Matter) -> RuledRegime:
    """By rule, the first that fits. A budget is never more for a feed that is missing."""
    terms, days = matter.terms, frame_of(matter.features, Timeframe.D1)
    panic = _panic(matter)
    if isinstance(days, Missing) or isinstance(terms.bars, Missing):
        gone = [one.reason for one in (terms.bars, days) if isinstance(one, Missing)]
        lost = f"candles are missing ({gone[0]}), so nothing may be risked"
        if panic is not None:  # what is held may have to go
            return RuledRegime(Regime.VOLATILITY_PANIC, 0, f"{panic}; {lost}")
        return RuledRegime(Regime.RANGE_BOUND, 0, lost)
    regime, why = (Regime.VOLATILITY_PANIC, panic) if panic is not None else _named(matter, days.readings)
    budget = BUDGETS[regime]
    unknown = [one.reason for one in (terms.panic, terms.day_rank) if isinstance(one, Missing)]
    if unknown and budget > UNKNOWN_PANIC:
        return RuledRegime(regime, UNKNOWN_PANIC, f"{why}; whether there is a panic is not known ({unknown[0]})")
    return RuledRegime(regime, budget, why)


def _panic(matter: Matter) -> str | None:
    """Why there is one, if it is known that there is."""
    terms = matter.terms
    if terms.panic is True:
        said = next(one.said for one in matter.features.triage.anomalies if one.rule is Rule.OPTIONS_PANIC)
        return f"options are in panic: {said}"
    if not isinstance(terms.day_rank, Missing) and terms.day_rank >= PANIC_RANK:
        return f"the day moved more than {100 * terms.day_rank:.1f} % of the days of 180"
    return None


def _named(matter: Matter, seen: Readings) -> tuple[Regime, str]:
    """Where there is no panic."""
    signs = matter.signs
    if seen.adx is None or seen.ema21 is None or seen.ema50 is None:
        return Regime.RANGE_BOUND, "too few days are known for a trend"
    for regime, sign, word in ((Regime.BULL_MOMENTUM, 1, "above"), (Regime.BEAR_MOMENTUM, -1, "below")):
        if seen.adx >= TREND and sign * (seen.ema21 - seen.ema50) > 0 and sign * (seen.close - seen.ema50) > 0:
            return regime, f"1d ADX14 is {seen.adx:.1f}, EMA21 and the close stand {word} EMA50"
    width, flow = signs.width_rank, signs.days
    if not isinstance(width, Missing) and not isinstance(flow, Missing) and width < NARROW and flow.slope > 0:
        why = f"Bollinger bands of 1d are wider than {100 * width:.0f} % of earlier days, and CVD rises"
        return Regime.SIDEWAYS_ACCUMULATION, why
    return Regime.RANGE_BOUND, f"1d ADX14 is {seen.adx:.1f}: no trend, no squeeze with buying under it"


def twin(matter: Matter) -> MetaOpinion:
    ruled = regime_of(matter)
    expert, note = _trusted(ruled.regime, matter.bundle.mode)
    return MetaOpinion(
        regime=ruled.regime,
        rationale=ruled.why[:600],
        trust_directive=DirectiveOpinion(expert=expert, note=note),
        risk_budget_pct=ruled.budget,
        risk_bias=_bias(ruled),
    )


def _trusted(regime: Regime, mode: Mode) -> tuple[Expert, str]:
    match regime:
        case Regime.VOLATILITY_PANIC:
            return Expert.MACRO, "In a panic options and the economy lead; books are thin and shapes break."
        case Regime.BULL_MOMENTUM | Regime.BEAR_MOMENTUM:
            return Expert.LIQUIDITY, "In a trend whoever takes decides: trust orderflow over shapes that call a turn."
        case Regime.SIDEWAYS_ACCUMULATION:
            return Expert.LIQUIDITY, "While a range fills, orderflow shows first who gathers."
    if mode is Mode.SWING:
        return Expert.MICROSTRUCTURE, "In a range the book decides at its edges."
    return Expert.GEOMETRY, "In a range its edges are the trade: trust measured levels."


def _bias(ruled: RuledRegime) -> RiskBias:
    if ruled.budget <= UNKNOWN_PANIC:
        return RiskBias.CONSERVATIVE
    return RiskBias.AGGRESSIVE if ruled.regime in (Regime.BULL_MOMENTUM, Regime.BEAR_MOMENTUM) else RiskBias.NEUTRAL
