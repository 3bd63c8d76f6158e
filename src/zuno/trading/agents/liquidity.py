"""The expert on liquidity: who takes, whether the price goes along, and whose stops are being hunted."""

from collections.abc import Mapping
from math import sqrt
from typing import Final

from zuno.llm.ask import ModelContext
from zuno.trading.agents import ask, evidence, prompt_facts
from zuno.trading.agents.case import Case
from zuno.trading.agents.evidence import Reason, direction_of, scale_weight, total_weight
from zuno.trading.measure.events import EventKind
from zuno.trading.measure.features import TakerFlow
from zuno.trading.measure.portable import RATIO_PLACES
from zuno.trading.measure.structure import DivergenceSource, PriceDirection
from zuno.trading.measure.tape import WhaleFlow
from zuno.trading.measure.triage import CLUSTER_USD, is_cluster
from zuno.trading.model import cycle
from zuno.trading.model.known import Known, Missing, figure_in
from zuno.trading.rules.price_menu import PriceMenu
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
EVENT_WEIGHTS: Final[Mapping[EventKind, float]] = {
    EventKind.LIQUIDATION_CASCADE: 0.65,
    EventKind.TRUE_BREAKOUT: 0.65,
    EventKind.SHOCK: 0.5,
}
CROWDED_RATE: Final = 0.0005
"""Funding of eight hours, as a fraction, from which those who pay are a crowd."""
FLAT_DAY: Final = 0.02
"""The share a price may move in a day and still be flat."""
LOW_RANK: Final = 0.05
RANK_WEIGHT: Final = 0.15
ENTRY_REACH: Final = (0.25, 1.0)
"""In ATR: where a better price is waited for."""


async def ask_expert(case: Case, model_context: ModelContext) -> cycle.AgentAnswer[cycle.LiquidityEntry]:
    spoken = await ask.ask_numeric_expert(
        case,
        cycle.Expert.LIQUIDITY,
        lambda: (
            prompt_facts.flow_section(case),
            prompt_facts.liquidation_section(case),
            prompt_facts.price_action_section(case),
            prompt_facts.derivatives_section(case).at_weight(70),
            prompt_facts.structure_section(case).at_weight(50),
            prompt_facts.levels_section(case),
        ),
        cycle.LiquidityOpinion,
        lambda: answer_by_rules(case),
        model_context,
    )
    opinion = spoken.value
    target = case.menu.snap(opinion.target_entry)
    gone = "the entry it named is no level of the menu" if opinion.target_entry is not None and target is None else ""
    stance = entry_stance(opinion, measure_stance(case, opinion.anomaly))
    sure, less = opinion.confidence, ""
    meant = 0 if opinion.anomaly == "none" else flow_direction(case, opinion.anomaly)
    if stance not in (0, meant) and spoken.source in ("model", "repaired"):
        # It spoke of something else: nobody is surer of what was measured than the measure is.
        sure, less = ask.limit_confidence(sure, answer_by_rules(case).confidence, "what was measured")
    sure, few = ask.limit_to_candles(case, sure)
    return ask.to_answer(
        ROLE, cycle.LiquidityEntry, spoken, gone, less or few, target_entry=target, stance=stance, confidence=sure
    )


def measure_stance(case: Case, anomaly: cycle.FlowAnomaly) -> cycle.Stance:
    """The measured direction: by events of the last hour, else by a crowd that pays funding, else by the named anomaly,
    else by price and volume (candles only), else by how crowded a side is."""
    for reasons in (event_reasons(case), funding_reasons(case)):
        if lean := direction_of(reasons):
            return lean
    if anomaly != "none":
        return flow_direction(case, anomaly)
    return direction_of(action_reasons(case)) or direction_of(crowding_reasons(case))


def flow_direction(case: Case, anomaly: cycle.FlowAnomaly) -> cycle.Stance:
    """Which way an anomaly points by what was measured, whoever named it."""
    reasons = flow_reasons(case) if anomaly == "whale_cvd_divergence" else stop_run_reasons(case)
    return direction_of(reasons) or flow_stance(anomaly, case.features)


def answer_by_rules(case: Case) -> cycle.LiquidityOpinion:
    flow, hunt, crowd = flow_reasons(case), stop_run_reasons(case), crowding_reasons(case)
    struck, action = event_reasons(case), action_reasons(case)
    paying = direction_of(funding_reasons(case))
    if struck:
        # Who was forced out is part of what happened: that its side is spent is for the hours after it.
        cascade = any(event.kind is EventKind.LIQUIDATION_CASCADE for event in case.features.events.events)
        anomaly: cycle.FlowAnomaly = "liquidation_hunting" if cascade else "none"
        reasons = [*struck, *flow, *crowd]
    else:
        anomaly, reasons = _name_anomaly(case, flow, hunt)
        if anomaly == "none":
            reasons = action or [*crowd, *([] if direction_of(crowd) else flow)]
        else:
            if paying and direction_of(reasons) != paying:
                anomaly = "none"  # what the flow shows is no reason to join a crowd that pays to stay
            reasons = [*reasons, *crowd]
    stance = measure_stance(case, anomaly)
    sure = evidence.confidence_toward(reasons, stance) if stance else round(evidence.confidence(reasons) * ALONG, 2)
    sure, _ = ask.limit_to_candles(case, sure)
    return cycle.LiquidityOpinion(
        anomaly=anomaly,
        confidence=sure,
        target_entry=_choose_entry(case.menu, stance) if anomaly != "none" and stance else None,
        rationale=ask.explain(case, reasons, _quiet_text(case)),
    )


def _name_anomaly(case: Case, flow: list[Reason], hunt: list[Reason]) -> tuple[cycle.FlowAnomaly, list[Reason]]:
    """What is out of the ordinary in the flow, and the reasons that count."""
    hunted = bool(hunt) and abs(total_weight(hunt)) >= abs(total_weight(flow))
    agreed = direction_of(flow) * direction_of(hunt) >= 0
    reasons = [*flow, *hunt] if agreed else hunt if hunted else flow
    lean = direction_of(reasons)
    if lean and hunted:
        return "liquidation_hunting", reasons
    return "whale_cvd_divergence" if lean and contradicts(case, lean) else "none", reasons


def event_reasons(case: Case) -> list[Reason]:
    """An event of the last hour counts until it is known to have ended."""
    return [
        Reason(
            EVENT_WEIGHTS[event.kind] * event.way.sign,
            f"{event.name.replace('_', ' ')}: {{{prompt_facts.event_id(case, event)}}}",
        )
        for event in case.features.events.events
    ]


def crowding_reasons(case: Case) -> list[Reason]:
    """Who pays funding, and where accounts or the basis are crowded."""
    reasons = funding_reasons(case)
    home = case.features.perpetuals[0]
    for name, rank, called in (
        ("long_accounts", home.long_rank, "accounts that are long"),
        ("basis", home.basis_rank, "the basis"),
    ):
        if not isinstance(rank, Missing) and not LOW_RANK < rank < 1 - LOW_RANK:
            where = "above" if rank > 0.5 else "below"
            text = f"{called}: {{{home.venue}.{name}}}, {where} nearly every hour of the week"
            reasons.append(Reason(-RANK_WEIGHT if rank > 0.5 else RANK_WEIGHT, text))
    return reasons


def funding_reasons(case: Case) -> list[Reason]:
    """Payers of high funding in a flat price have to leave first; in a moving price it is a hint."""
    rate, day = case.inputs.funding_next, case.context.day
    if isinstance(rate, Missing) or round(abs(rate), RATIO_PLACES) < CROWDED_RATE:
        return []
    flat = not isinstance(day, Missing) and abs(day) <= FLAT_DAY
    payers, beside = ("longs" if rate > 0 else "shorts"), "a flat price" if flat else "a price that moves"
    text = f"{payers} pay {{funding_next_8h}} for 8h in {beside}: crowded"
    return [Reason(-scale_weight(rate, 2 * CROWDED_RATE, 0.5 if flat else 0.15), text)]


def action_reasons(case: Case) -> list[Reason]:
    """Price and volume of the last bar, read where neither takers nor liquidations were ever recorded."""
    seen = case.context.action
    if not case.bundle.candles_only or isinstance(seen, Missing) or seen.breakout is None:
        return []
    where, own = "above" if seen.breakout is PriceDirection.UP else "below", seen.timeframe
    text = f"the last bar closed {where} {{{own}.range_edge}} on {{{own}.volume_ratio}} the usual volume"
    return [Reason(evidence.weigh_by_volume(seen.volume_backing, seen.breakout.sign), text)]


def contradicts(case: Case, lean: cycle.Stance) -> bool:
    """Whether takers lean against the price: by a divergence, by their balance, or by large trades."""
    if any(divergence.weight * lean > 0 for divergence in _divergence_reasons(case)):
        return True
    flow, day = case.context.flow, case.context.day
    if not isinstance(flow, Missing) and _balance(flow) == lean and lean * flow.moved < 0:
        return True
    large = total_weight(_whale_reasons("24h", case.features.whales_day, 1.0))
    return not isinstance(day, Missing) and large * lean > 0 > lean * day


def _balance(flow: TakerFlow) -> cycle.Stance:
    if isinstance(flow.rank, Missing):
        return 0
    return 1 if flow.rank >= LEANING_RANK else -1 if flow.rank <= 1 - LEANING_RANK else 0


def flow_reasons(case: Case) -> list[Reason]:
    reasons = _divergence_reasons(case)
    flow = case.context.flow
    if not isinstance(flow, Missing):
        lean = _balance(flow)
        against = lean * flow.moved < 0
        if lean:
            beside, own = "against" if against else "with", prompt_facts.takers_id(flow)
            text = f"takers' balance of {{{own}.balance}} goes {beside} a price change of {{{own}.price_change}}"
            reasons.append(Reason(lean * (0.35 if against else 0.2), text))
    for name, whales, weight in (("24h", case.features.whales_day, 0.35), ("1h", case.features.whales_hour, 0.25)):
        reasons += _whale_reasons(name, whales, weight)
    return reasons


def _divergence_reasons(case: Case) -> list[Reason]:
    """The newest between price and CVD, on the two shorter timeframes, while fresh."""
    reasons: list[Reason] = []
    for (timeframe, frame), weight in zip(case.features.frames[:2], (0.25, 0.4), strict=True):
        if isinstance(frame, Missing):
            continue
        of_cvd = (each for each in frame.structure.divergences if each.gauge is DivergenceSource.CVD)
        newest = max(of_cvd, key=lambda divergence: divergence.known_at, default=None)
        ago = 0 if newest is None else (case.bundle.as_of - newest.known_at) // timeframe.millis
        if newest is not None and ago <= FRESH_BARS:
            hidden = "hidden " if newest.hidden else ""
            age = f"{{{timeframe}.{DivergenceSource.CVD}_divergence_1_age}}"
            text = f"a {hidden}CVD divergence points {newest.way}, known {age} ago"
            reasons.append(Reason(newest.way.sign * weight * (0.6 if newest.hidden else 1.0), text))
    return reasons


def _whale_reasons(name: str, flow: Known[WhaleFlow], weight: float) -> list[Reason]:
    """Large takers, where they lean more than chance would show."""
    bought, sold = figure_in(flow, "bought_usd"), figure_in(flow, "sold_usd")
    if isinstance(flow, Missing) or isinstance(bought, Missing) or isinstance(sold, Missing) or not bought + sold:
        return []
    z = (bought - sold) / (bought + sold) * sqrt(flow.trades)
    if abs(z) < WHALE_Z:
        return []
    own = f"large_trades_{name}"
    text = f"large takers bought {{{own}.bought}} and sold {{{own}.sold}} in {SPANS[name]}"
    return [Reason(scale_weight(z, 2 * WHALE_Z, weight), text)]


def stop_run_reasons(case: Case) -> list[Reason]:
    """Whose stops were run: the hunted side is spent, unless new positions came in behind the move."""
    seen = case.features.forced
    run = [hour for hour in (seen.longs_hour, seen.shorts_hour) if not isinstance(hour, Missing) and is_cluster(hour)]
    if not run:
        return []
    hour = max(run, key=lambda hour: hour.usd)
    # Just over what an hour may bring it is a hint; from twice that on it is a hunt.
    strength = 0.4 if isinstance(hour.high, Missing) else min(0.6, 0.3 * hour.usd / max(hour.high, CLUSTER_USD))
    spent, crowd = hour.side.sign, case.features.open_interest_hour
    text = f"{hour.side}s of {{liquidated_{hour.side}s.last_hour}} were liquidated in an hour"
    if not isinstance(crowd, Missing) and crowd.share > 0.005:
        return [Reason(-strength * spent, f"{text} and open interest rose: the move has fuel")]
    return [Reason(strength * spent, f"{text} and nobody new came in: that side is spent")]


def _choose_entry(menu: PriceMenu, lean: cycle.Stance) -> float | None:
    """A measured level a little better than the market; else the market's own price."""
    if isinstance(menu.now, Missing) or isinstance(menu.atr, Missing):
        return None
    near, far = (step * menu.atr for step in ENTRY_REACH)
    better = [level.price for level in menu.levels if near <= lean * (menu.now - level.price) <= far]
    if better:
        return min(better, key=lambda price: abs(price - menu.now))  # type: ignore[operator]  # known above
    return menu.mark


def _quiet_text(case: Case) -> str:
    flow = case.context.flow
    if isinstance(flow, Missing):
        if case.bundle.candles_only and not isinstance(case.context.action, Missing):
            return "The last bar closed within the range of those before it; who took was not recorded."
        return "Nothing to read: {takers.unknown}."
    balance = f"{{{prompt_facts.takers_id(flow)}.balance}}"
    return f"Takers' balance of {balance} is ordinary; no divergence is fresh and no side was hunted."
