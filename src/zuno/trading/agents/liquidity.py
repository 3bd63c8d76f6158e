"""The expert on liquidity: who takes, whether the price goes along, and whose stops are being hunted."""

from __future__ import annotations

from math import sqrt
from typing import Final

from zuno.llm.ask import ModelContext
from zuno.provenance.slots import cut
from zuno.trading.agents import prompt_facts
from zuno.trading.agents.ask import ask_agent, expert_question, snap_price, to_record, voice_of
from zuno.trading.agents.case import Case
from zuno.trading.agents.evidence import (
    Reason,
    confidence,
    direction_of,
    scale_weight,
    summarise_reasons,
    total_weight,
)
from zuno.trading.measure.price_context import TakerFlow
from zuno.trading.measure.structure.lines import Divergence, Gauge
from zuno.trading.measure.structure.pivots import Way
from zuno.trading.measure.tape import SideHour, WhaleFlow
from zuno.trading.measure.triage import CLUSTER_USD
from zuno.trading.model.cycle import (
    LONG_TEXT,
    AgentAnswer,
    Expert,
    FlowAnomaly,
    LiquidityEntry,
    LiquidityOpinion,
    Stance,
)
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import Side
from zuno.trading.rules.price_menu import MARK, PriceMenu
from zuno.trading.rules.score import entry_stance, flow_stance

ROLE: Final = "liquidity"
FRESH_BARS: Final = 12
"""A divergence that was known longer ago has played out."""
LEANING_RANK: Final = 0.70
"""Takers lean where they lean more than in so many of earlier stretches."""
WHALE_Z: Final = 1.5
SPANS: Final = {"1h": "the last hour", "24h": "a day"}
ALONG: Final = 0.5
"""What is left of a flow's confidence that only goes along with the price: there is nothing in it to act on."""
ENTRY_REACH: Final = (0.25, 1.0)
"""In ATR: where a better price is waited for."""


async def ask_expert(case: Case, minds: ModelContext) -> AgentAnswer[LiquidityEntry]:
    sections = (
        prompt_facts.market_section(case),
        prompt_facts.anomalies_section(case),
        prompt_facts.flow_section(case),
        prompt_facts.liquidation_section(case),
        prompt_facts.derivatives_section(case, 70),
        prompt_facts.structure_section(case, 50),
        prompt_facts.levels_section(case),
    )
    spoken = await ask_agent(
        expert_question(ROLE, Expert.LIQUIDITY, sections, LiquidityOpinion, lambda: answer_by_rules(case)), minds
    )
    said = spoken.value
    target = snap_price(case.menu, said.target_entry)
    gone = "the entry it named is no level of the menu" if said.target_entry is not None and target is None else ""
    stance = entry_stance(said, flow_direction(case, said.anomaly))
    entry = to_record(LiquidityEntry, spoken, gone, target_entry=target, stance=stance)
    return AgentAnswer(value=entry, voice=voice_of(ROLE, spoken))


def flow_direction(case: Case, anomaly: FlowAnomaly) -> Stance:
    """Which way an anomaly points by what was measured, whoever named it."""
    if anomaly == "whale_cvd_divergence":
        return direction_of(total_weight(flow_reasons(case))) or flow_stance(anomaly, case.features)
    return direction_of(total_weight(hunt_reasons(case))) or flow_stance(anomaly, case.features)


def answer_by_rules(case: Case) -> LiquidityOpinion:
    flow, hunt = flow_reasons(case), hunt_reasons(case)
    hunted = bool(hunt) and abs(total_weight(hunt)) >= abs(total_weight(flow))
    reasons = (
        [*flow, *hunt]
        if direction_of(total_weight(flow)) * direction_of(total_weight(hunt)) >= 0
        else hunt
        if hunted
        else flow
    )
    lean = direction_of(total_weight(reasons))
    anomaly: FlowAnomaly = "none"
    if lean and hunted:
        anomaly = "liquidation_hunting"
    elif lean and contradicts(case, lean):
        anomaly = "whale_cvd_divergence"
    sure = confidence(reasons)
    return LiquidityOpinion(
        anomaly=anomaly,
        confidence=round(sure * ALONG, 2) if anomaly == "none" else sure,
        target_entry=_choose_entry(case.menu, lean) if anomaly != "none" else None,
        rationale=cut(summarise_reasons(reasons, _quiet_text(case)), prompt_facts.market_facts(case), LONG_TEXT),
    )


def contradicts(case: Case, lean: Stance) -> bool:
    """Whether those who take lean so against the price: by a divergence, by their balance, or by large trades."""
    if any(divergence.weight * lean > 0 for divergence in _divergence_reasons(case)):
        return True
    flow, day = case.context.flow, case.context.day
    if not isinstance(flow, Missing) and _balance(flow) == lean and lean * flow.moved < 0:
        return True
    large = total_weight(_whale_reasons("24h", case.features.whales_day, 1.0))
    return not isinstance(day, Missing) and large * lean > 0 > lean * day


def _balance(flow: TakerFlow) -> Stance:
    """Which way takers lean, where they do more than they mostly did."""
    if isinstance(flow.rank, Missing):
        return 0
    return 1 if flow.rank >= LEANING_RANK else -1 if flow.rank <= 1 - LEANING_RANK else 0


def flow_reasons(case: Case) -> list[Reason]:
    """What those who take say, beside what the price does."""
    found = _divergence_reasons(case)
    flow = case.context.flow
    if not isinstance(flow, Missing):
        lean = _balance(flow)
        against = lean * flow.moved < 0
        if lean:
            beside, own = "against" if against else "with", prompt_facts.takers_id(flow)
            said = f"takers' balance of {{{own}.balance}} goes {beside} a price change of {{{own}.price_change}}"
            found.append(Reason(lean * (0.35 if against else 0.2), said))
    for name, whales, weight in (("24h", case.features.whales_day, 0.35), ("1h", _hour(case), 0.25)):
        found += _whale_reasons(name, whales, weight)
    return found


def _hour(case: Case) -> Known[WhaleFlow]:
    return case.features.whales_hour


def _divergence_reasons(case: Case) -> list[Reason]:
    """The newest between price and CVD, on the two shorter timeframes, while fresh."""
    found: list[Reason] = []
    for (timeframe, frame), weight in zip(case.features.frames[:2], (0.25, 0.4), strict=True):
        if isinstance(frame, Missing):
            continue
        newest = _newest(frame.structure.divergences)
        ago = 0 if newest is None else (case.bundle.as_of - newest.known_at) // timeframe.millis
        if newest is not None and ago <= FRESH_BARS:
            hidden = "hidden " if newest.hidden else ""
            sign = 1 if newest.way is Way.UP else -1
            age = f"{{{timeframe}.{Gauge.CVD}_divergence_1_age}}"
            said = f"a {hidden}CVD divergence points {newest.way}, known {age} ago"
            found.append(Reason(sign * weight * (0.6 if newest.hidden else 1.0), said))
    return found


def _newest(divergences: tuple[Divergence, ...]) -> Divergence | None:
    found = [divergence for divergence in divergences if divergence.gauge is Gauge.CVD]
    return max(found, key=lambda divergence: divergence.known_at, default=None)


def _whale_reasons(name: str, flow: Known[WhaleFlow], weight: float) -> list[Reason]:
    """Large takers, where their leaning is more than so many coins would show."""
    if isinstance(flow, Missing) or isinstance(net := flow.net_usd, Missing):
        return []
    bought, sold = flow.bought_usd, flow.sold_usd
    if isinstance(bought, Missing) or isinstance(sold, Missing) or not bought + sold:
        return []
    z = net / (bought + sold) * sqrt(flow.trades)
    if abs(z) < WHALE_Z:
        return []
    own = f"large_trades_{name}"
    said = f"large takers bought {{{own}.bought}} and sold {{{own}.sold}} in {SPANS[name]}"
    return [Reason(scale_weight(z, 2 * WHALE_Z, weight), said)]


def hunt_reasons(case: Case) -> list[Reason]:
    """Whose stops were run: the hunted side is spent, unless new positions came in behind the move."""
    seen = case.features.forced
    run = [hour for hour in (seen.longs_hour, seen.shorts_hour) if not isinstance(hour, Missing) and _is_cluster(hour)]
    if not run:
        return []
    hour = max(run, key=lambda hour: hour.usd)
    side, usd = hour.side, hour.usd
    # Just over what an hour may bring it is a hint; from twice that on it is a hunt.
    strength = 0.4 if isinstance(hour.high, Missing) else min(0.6, 0.3 * usd / max(hour.high, CLUSTER_USD))
    spent = 1 if side is Side.LONG else -1
    crowd = case.features.open_interest_hour
    fuelled = not isinstance(crowd, Missing) and crowd.share > 0.005
    said = f"{side}s of {{liquidated_{side}s.last_hour}} were liquidated in an hour"
    if fuelled:
        return [Reason(-strength * spent, f"{said} and open interest rose: the move has fuel")]
    return [Reason(strength * spent, f"{said} and nobody new came in: that side is spent")]


def _is_cluster(hour: SideHour) -> bool:
    """By triage's own rule."""
    return hour.usd > CLUSTER_USD and (isinstance(hour.high, Missing) or hour.usd >= hour.high)


def _choose_entry(menu: PriceMenu, lean: Stance) -> float | None:
    """A measured level a little better than the market; else the market's own price."""
    if isinstance(menu.now, Missing) or isinstance(menu.atr, Missing):
        return None
    near, far = (step * menu.atr for step in ENTRY_REACH)
    better = [level.price for level in menu.levels if near <= lean * (menu.now - level.price) <= far]
    if better:
        return min(better, key=lambda price: abs(price - menu.now))  # type: ignore[operator]  # known above
    return next((level.price for level in menu.levels if level.kind == MARK), None)


def _quiet_text(case: Case) -> str:
    flow = case.context.flow
    if isinstance(flow, Missing):
        return "Nothing to read: {takers.unknown}."
    balance = f"{{{prompt_facts.takers_id(flow)}.balance}}"
    return f"Takers' balance of {balance} is ordinary; no divergence is fresh and no side was hunted."
