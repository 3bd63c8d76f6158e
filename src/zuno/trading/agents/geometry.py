"""The chart expert: a vision model sees the image; without one, rules find the same patterns in the bars."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from zuno.llm.ask import ModelContext
from zuno.llm.port import Image
from zuno.markets.feeds import perpetual_feeds
from zuno.provenance.facts import Unit
from zuno.trading.agents import evidence, prompt_facts
from zuno.trading.agents.ask import ask_agent, explain, keep_fields, require_data, to_answer
from zuno.trading.agents.case import Case
from zuno.trading.agents.evidence import Reason, direction_of, scale_weight, total_weight
from zuno.trading.agents.known_data import find_gap
from zuno.trading.agents.prompt_budget import Line, Section
from zuno.trading.measure.derivatives import funding_figures
from zuno.trading.measure.events import EventKind
from zuno.trading.measure.frames import Frame
from zuno.trading.measure.levels import Formation, find_pattern
from zuno.trading.measure.portable import RATIO_PLACES, log_of
from zuno.trading.measure.setup import FAILED_BREAK, FRESH_BREAK, FRESH_DIVERGENCE
from zuno.trading.measure.structure import Divergence, DivergenceSource, PriceDirection
from zuno.trading.model import cycle
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Timeframe, funding
from zuno.trading.model.wanted import own_candles
from zuno.trading.rules.price_menu import LIQ_CLUSTER, MenuLevel, PriceMenu, frame_of
from zuno.trading.rules.score import entry_stance

ROLE: Final = "vlm_geometric"
CONFIDENCE: Final = f"{cycle.Expert.GEOMETRY}.confidence"
HOT: Final = 70.0
COLD: Final = 30.0
"""Of the RSI."""
QUIET: Final = 20.0
"""Of the ADX."""
EXTREME_FUNDING: Final = 0.0005
HIGH_FUNDING: Final = 0.0002
"""Fractions for eight hours."""
MAJOR: Final = 3.0
"""In ATR: support and resistance further away are major."""
STRUCTURAL: Final = ("pivot", "line", "gap", "profile", "fibonacci")


@dataclass(frozen=True, slots=True)
class Panels:
    cvd: bool
    funding: bool


async def ask_expert(
    case: Case, image: Image | None, model_context: ModelContext
) -> cycle.AgentAnswer[cycle.GeometryEntry]:
    shown = panels_of(case, image)
    spoken = await ask_agent(
        model_context,
        role=ROLE,
        sections=lambda: (
            prompt_facts.market_section(case),
            prompt_facts.anomalies_section(case),
            _picture(case, image, shown),
            prompt_facts.levels_section(case),
            prompt_facts.structure_section(case),
            prompt_facts.indicator_section(case, *case.bundle.mode.timeframes[1:]),
        ),
        output=cycle.GeometryOpinion,
        fallback=lambda: answer_by_rules(case, shown),
        prose=lambda opinion, keep: keep_fields(
            opinion,
            answer_by_rules(case, shown),
            keep,
            rationale=cycle.LONG_TEXT,
            fibonacci_context=cycle.LONG_TEXT,
        ),
        own=lambda opinion: (prompt_facts.figure_of(CONFIDENCE, opinion.confidence, Unit.NUMBER),),
        own_ids=(CONFIDENCE,),
        images=() if image is None else (image,),
    )
    spoken = require_data(spoken, find_gap(case, cycle.Expert.GEOMETRY), lambda: answer_by_rules(case, shown))
    opinion = spoken.value
    named = opinion.key_levels.model_dump()
    kept = {name: _check_level(case.menu, name, case.menu.snap(value)) for name, value in named.items()}
    gone = [name for name, value in named.items() if value is not None and kept[name] is None]
    absent = [name for name, there in (("cvd_signal", shown.cvd), ("funding_visual", shown.funding)) if not there]
    unseen = [name for name in absent if getattr(opinion, name) is not None]
    return to_answer(
        ROLE,
        cycle.GeometryEntry,
        spoken,
        f"no levels of the menu, or on the wrong side of the price: {', '.join(gone)}" if gone else "",
        f"read from panels that are absent: {', '.join(unseen)}" if unseen else "",
        key_levels=kept,
        stance=entry_stance(opinion),
        **dict.fromkeys(absent),
    )


def _check_level(menu: PriceMenu, name: str, price: float | None) -> float | None:
    """None for a support above the market or a resistance below it."""
    if price is None or isinstance(menu.now, Missing):
        return price
    side = 1 if name.endswith(("resistance", "above")) else -1 if name.endswith(("support", "below")) else 0
    return price if side * (price - menu.now) >= 0 else None


def panels_of(case: Case, image: Image | None) -> Panels:
    """The panels that are drawn under the price: none without a picture, none without what would be in it."""
    bundle = case.bundle
    timeframe, count = bundle.mode.chart
    since = timeframe.floor(bundle.as_of) - count * timeframe.millis
    shown = [row for row in bundle.rows(own_candles(bundle.symbol, timeframe)) if row.at >= since]
    if image is None or not shown:
        return Panels(cvd=False, funding=False)
    rates = (
        row
        for venue in perpetual_feeds(bundle.symbol)
        for row in bundle.rows(funding(venue, bundle.symbol))
        if row.at > shown[0].at
    )
    return Panels(
        cvd=any(row.taker_buy is not None for row in shown),
        funding=any(not isinstance(funding_figures(row), Missing) for row in rates),
    )


def _picture(case: Case, image: Image | None, shown: Panels) -> Section:
    timeframe, count = case.bundle.mode.chart
    drawn = f"the chart shows {count} bars of {timeframe}" if image else "there is no picture: read the structure below"
    absent = [name for name, there in (("CVD", shown.cvd), ("funding", shown.funding)) if not there]
    lines = [Line(drawn)]
    if absent:
        lines.append(Line(f"panels that are absent: {', '.join(absent)}; answer null for what they would show"))
    return Section("picture", 98, tuple(lines))


# -- the same without eyes


def answer_by_rules(case: Case, shown: Panels) -> cycle.GeometryOpinion:
    frame = frame_of(case.features, case.bundle.mode.chart[0])
    if isinstance(frame, Missing):
        why = f"Nothing can be seen: {{{case.bundle.mode.chart[0]}.unknown}}."
        return cycle.GeometryOpinion(
            anomaly="none",
            directional_bias="NEUTRAL",
            confidence=0.0,
            key_levels=key_levels(case.menu),
            fibonacci_context="No swing is known.",
            pattern="none",
            cvd_signal=None,
            funding_visual=None,
            rationale=explain(case, (), why),
        )
    shape = find_pattern(frame.structure.pivots, frame.readings.close, frame.structure.log_atr)
    anomaly, struck = _anomaly(case, frame)
    reasons = [*struck, *_trend_reasons(case), *_pattern_reasons(case.menu, shape, frame.timeframe)]
    lean = direction_of(reasons)
    broken = [  # of the last hour: the shape that broke is behind it
        Reason(0.6 * event.way.sign, f"a true breakout {event.way}: {{{prompt_facts.event_id(case, event)}}}")
        for event in case.features.events.events
        if event.kind is EventKind.TRUE_BREAKOUT
    ]
    if broken:
        anomaly, reasons, lean = "clean_breakout", [*broken, *reasons], direction_of(broken)
    elif lean * total_weight(struck) < 0:
        anomaly = "none"  # the rest of the picture overrules it
    return cycle.GeometryOpinion(
        anomaly=anomaly,
        directional_bias=evidence.SIGNALS[lean],
        confidence=evidence.confidence_toward(reasons, lean) if lean else evidence.confidence(reasons),
        key_levels=key_levels(case.menu),
        fibonacci_context=explain(case, (), _fibonacci(case.menu, frame)),
        pattern="none" if shape is None else shape.shape.value,
        cvd_signal=_cvd(case, frame) if shown.cvd else None,
        funding_visual=_funding_look(case) if shown.funding else None,
        rationale=explain(case, reasons, "The bars show neither a trend nor a shape."),
    )


def _anomaly(case: Case, frame: Frame) -> tuple[cycle.ShapeAnomaly, list[Reason]]:
    for find in (_find_break, _find_exhaustion, _find_trap):
        if (anomaly := find(case, frame)) is not None:
            return anomaly
    adx = frame.readings.adx
    if frame.readings.squeeze and adx is not None and adx < QUIET:
        return "accumulation_range", []
    return "none", []


def _find_break(case: Case, frame: Frame) -> tuple[cycle.ShapeAnomaly, list[Reason]] | None:
    if not frame.structure.breaks:
        return None
    last, close = frame.structure.breaks[-1], frame.readings.close
    sign = last.way.sign
    ago = prompt_facts.bars_ago(case, last.known_at, frame.timeframe)
    through = f"the {last.kind} {last.way} through {{{frame.timeframe}.break_1}}"
    if not case.menu.is_near(last.pivot.price):
        through = f"the {last.kind} {last.way} of {ago} bars ago"
    stands = sign * (close - last.pivot.price) > 0
    if stands and sign * (prompt_facts.market_price(case.menu, frame) - last.pivot.price) <= 0:
        return None  # the running bar is back: until it closes the break neither holds nor has failed
    if stands and ago <= FRESH_BREAK:
        return "clean_breakout", [Reason(0.3 * sign, f"{through} holds")]
    if not stands and ago <= FAILED_BREAK:
        text = f"{through} failed: the close is back at {{{frame.timeframe}.close}}"
        return "fake_breakout", [Reason(-0.35 * sign, text)]
    return None


def _find_exhaustion(case: Case, frame: Frame) -> tuple[cycle.ShapeAnomaly, list[Reason]] | None:
    """An extreme that momentum no longer follows."""
    rsi, fresh = frame.readings.rsi, _fresh_divergences(case, frame, DivergenceSource.RSI)
    turns = [divergence for divergence in fresh if not divergence.hidden]
    if rsi is None:
        return None
    downs, ups = (any(turn.way is side for turn in turns) for side in (PriceDirection.DOWN, PriceDirection.UP))
    text = f"{frame.timeframe} RSI14 is {{{frame.timeframe}.rsi14}}"
    if rsi >= HOT or (downs and rsi >= 60):
        return "exhaustion_top", [Reason(-0.3, f"{text}: a top that tires")]
    if rsi <= COLD or (ups and rsi <= 40):
        return "capitulation_bottom", [Reason(0.3, f"{text}: sellers are spent")]
    return None


def _fresh_divergences(case: Case, frame: Frame, gauge: DivergenceSource) -> list[Divergence]:
    of_gauge = (each for each in frame.structure.divergences if each.gauge is gauge)
    return [
        each for each in of_gauge if prompt_facts.bars_ago(case, each.known_at, frame.timeframe) <= FRESH_DIVERGENCE
    ]


def _find_trap(case: Case, frame: Frame) -> tuple[cycle.ShapeAnomaly, list[Reason]] | None:
    """A zone where many levels meet, straight ahead of the trend."""
    reach, now, trend = frame.structure.log_atr, prompt_facts.market_price(case.menu, frame), frame.structure.trend
    if not reach or trend is None:
        return None
    sign = trend.sign
    for place, zone in enumerate(prompt_facts.nearest_zones(case.menu, frame, 2), 1):
        edge = zone.low if sign > 0 else zone.high
        if len(zone.kinds) >= 3 and 0 < sign * _log_ratio(edge, now) <= 0.5 * reach:
            own = f"{frame.timeframe}.zone_{place}"
            text = f"{{{own}_levels}} levels meet between {{{own}_low}} and {{{own}_high}}, right ahead"
            return "geometric_trap", [Reason(-0.2 * sign, text)]
    return None


def _trend_reasons(case: Case) -> list[Reason]:
    """Structure and averages of the mode's two longer timeframes."""
    reasons: list[Reason] = []
    for (timeframe, frame), weight in zip(case.features.frames[1:], (0.2, 0.25), strict=True):
        if isinstance(frame, Missing):
            continue
        seen, trend, reach = frame.readings, frame.structure.trend, frame.structure.log_atr
        if trend is not None:
            reasons.append(Reason(weight * trend.sign, f"{timeframe} structure points {trend}"))
        if seen.ema50 is not None and seen.ema50 > 0 and reach:
            gap = _log_ratio(seen.close, seen.ema50) / reach
            side = "above" if gap > 0 else "below"
            text = f"{timeframe} close of {{{timeframe}.close}} is {side} EMA50 at {{{timeframe}.ema50}}"
            reasons.append(Reason(scale_weight(gap, 3, weight / 2), text))
    return reasons


def _log_ratio(price: float, other: float) -> float:
    """How far one price lies above another, in logarithms: as far as the other above it in the mirrored market."""
    return round(log_of(price / other), RATIO_PLACES)


def _pattern_reasons(menu: PriceMenu, shape: Formation | None, timeframe: Timeframe) -> list[Reason]:
    if shape is None or shape.way is None or not menu.is_near(shape.line):
        return []
    sign = shape.way.sign
    done = "is confirmed beyond" if shape.confirmed else "forms over" if sign < 0 else "forms under"
    name = "triangle" if shape.shape == "other" else shape.shape.replace("_", " ")
    article = "an" if name[0] in "aeiH" else "a"
    return [Reason(sign * (0.3 if shape.confirmed else 0.15), f"{article} {name} {done} {{{timeframe}.shape_line}}")]


def _fibonacci(menu: PriceMenu, frame: Frame) -> str:
    swing = frame.structure.fibonacci
    if swing is None:
        return "No swing is confirmed yet."
    if not menu.is_near(swing.start.price, swing.end.price):
        return f"The price has left the last {frame.timeframe} swing far behind."
    close = frame.readings.close
    near = [level for level in swing.retracements if menu.is_near(level.price)]
    back = prompt_facts.retraced_share(swing, close)
    own = frame.timeframe
    reached = "the close lies outside of it" if back is None else f"{{{own}.swing_retraced}} of it is retraced"
    swung = f"{own} swing from {{{own}.swing_from}} to {{{own}.swing_to}}: {reached}"
    if not near:
        return f"{swung}; no retracement is near."
    nearest = min(near, key=lambda level: abs(level.price - close))
    return f"{swung}; the nearest retracement is at {{{prompt_facts.retracement_id(own, nearest.ratio)}}}."


def key_levels(menu: PriceMenu) -> cycle.KeyLevelsOpinion:
    """Support and resistance among what was measured, the nearest and the next beyond three ATR."""
    if isinstance(menu.now, Missing) or isinstance(menu.atr, Missing):
        nothing = dict.fromkeys(cycle.KeyLevelsOpinion.model_fields)
        return cycle.KeyLevelsOpinion(**nothing)
    now, far = menu.now, MAJOR * menu.atr
    structural = [level for level in menu.levels if level.kind in STRUCTURAL]
    below = [level.price for level in structural if level.price < now]
    above = [level.price for level in structural if level.price > now]
    return cycle.KeyLevelsOpinion(
        immediate_support=max(below, default=None),
        immediate_resistance=min(above, default=None),
        major_support=max((price for price in below if now - price >= far), default=None),
        major_resistance=min((price for price in above if price - now >= far), default=None),
        liquidation_pool_above=_nearest(menu, now, lambda level: level.kind == LIQ_CLUSTER and level.price > now),
        liquidation_pool_below=_nearest(menu, now, lambda level: level.kind == LIQ_CLUSTER and level.price < now),
        volume_poc=_nearest(menu, now, lambda level: level.id.endswith(".poc")),
    )


def _nearest(menu: PriceMenu, now: float, wanted: Callable[[MenuLevel], bool]) -> float | None:
    prices: Iterable[float] = (level.price for level in menu.levels if wanted(level))
    return min(prices, key=lambda value: abs(value - now), default=None)


def _cvd(case: Case, frame: Frame) -> cycle.CvdSignal:
    if fresh := _fresh_divergences(case, frame, DivergenceSource.CVD):
        return "divergence_bullish" if fresh[-1].way is PriceDirection.UP else "divergence_bearish"
    flow = case.context.days
    if isinstance(flow, Missing):
        return "neutral"
    return "confirming" if flow.moved * flow.balance > 0 else "neutral"


def _funding_look(case: Case) -> cycle.FundingLook | None:
    weeks = (perpetual.week for perpetual in case.features.perpetuals)
    rate = next((week.per_8h for week in weeks if not isinstance(week, Missing)), None)
    if rate is None:
        return None
    if abs(rate) >= EXTREME_FUNDING:
        return "extreme_positive" if rate > 0 else "extreme_negative"
    if rate >= HIGH_FUNDING:
        return "high_positive"
    return "negative" if rate < 0 else "neutral"
