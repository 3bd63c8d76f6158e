"""What the trading desk's agents are told, fact by fact: the line a model reads and the figures in it come together.

Prices, percentages and dollars of the market; never a dollar of the account. What is missing is told as missing, with
its reason. Anomalies are part of everybody's reading, and where there are any, more is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from zuno.agents.prompts import Untrusted, unfenced
from zuno.core.board import Entry, entries
from zuno.core.features import Frame, Perpetual, fresh
from zuno.core.known import Known, Missing
from zuno.core.macro import Reading
from zuno.core.menu import MARK, POOL, RANGE, MenuLevel
from zuno.core.provenance.check import NO_FACT, Facts, check
from zuno.core.provenance.figures import Figure, Unit
from zuno.core.signs import DOLLAR, FLOW_BARS, PRINTS, STOCKS, Change, Flow, Quoted
from zuno.core.structure.levels import Zone
from zuno.core.structure.patterns import formation
from zuno.core.structure.swings import Fibonacci
from zuno.desks.trading.briefing import Line, Section
from zuno.desks.trading.matter import Matter
from zuno.domain.cycle import CONVICTION, Expert
from zuno.domain.trading import HOUR_MS, Feed, Side, Text, Timeframe, texts
from zuno.domain.units import Millis
from zuno.domain.venues import CHANNELS, FRED, SEARCH
from zuno.messages.cycle import Blackboard, GeometryEntry, Meta, Synthesis

QUIET_LEVELS: Final = 24
DEEP_LEVELS: Final = 48
"""Measured levels of the menu that are told, the nearest."""
NEWS_CHARS: Final = 2_400
NARRATIVE_CHARS: Final = 1_600
REMARK_CHARS: Final = 280
YIELD: Final = f"{FRED}/DGS10"
"""Of ten years."""
_NUMBER: Final = re.compile(
    r"(?P<sign>[-+−])?(?P<dollar>\$)?(?P<digits>\d[\d,]*(?:\.\d+)?)\s?"
    r"(?P<unit>%|×|bps\b|vol points\b|points\b|s\b|h\b)?"
)
_UNITS: Final = {
    "%": Unit.PERCENT,
    "×": Unit.RATIO,
    "bps": Unit.BPS,
    "vol points": Unit.PERCENT,
    "points": Unit.PERCENT,
    "s": Unit.SECONDS,
    "h": Unit.HOURS,
}


def deep(matter: Matter) -> bool:
    """Whether something is out of the ordinary, so that experts look closer."""
    return bool(matter.features.triage.anomalies)


class Backing:
    """Finds the figures of a text that nothing told backs. The facts are indexed when the first text comes."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self._figures = figures

    @cached_property
    def _facts(self) -> Facts:
        return Facts(self._figures)

    def __call__(self, *said: str) -> list[str]:
        claims = [claim for text in said for claim in check(text, self._facts).unsupported]
        return [one.text if one.problem == NO_FACT else f"{one.text} ({one.problem})" for one in claims]


# -- lines


def fact(name: str, value: Known[float] | None, unit: Unit, digits: int = 2, *, signed: bool = False) -> Line:
    """`name: value unit`, or that it is not known and why."""
    if value is None:
        return Line(f"{name}: unknown (too few bars)")
    if isinstance(value, Missing):
        return Line(f"{name}: unknown ({value.reason})", figures_in(value.reason))
    # A name has parameters in it, which may be repeated with it: "30 bars", "25-delta".
    return Line(
        f"{name}: {written(value, unit, digits, signed=signed)}", (*figures(name, value, unit), *figures_in(name))
    )


def figures(name: str, value: float, unit: Unit) -> tuple[Figure, ...]:
    own = Figure(name, value, unit, "measured", symbol="USD" if unit in (Unit.PRICE, Unit.AMOUNT) else "")
    # A level is a price as well, whatever else it is called.
    return (own, Figure("price", value, unit, "measured", symbol="USD")) if unit is Unit.PRICE else (own,)


def written(value: float, unit: Unit, digits: int = 2, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    if unit is Unit.PRICE:
        return price(value)
    if unit is Unit.AMOUNT:
        return f"${value:{sign},.0f}" if value >= 0 else f"-${-value:,.0f}"
    words = {Unit.PERCENT: " %", Unit.BPS: " bps", Unit.RATIO: "×", Unit.HOURS: " h"}
    return f"{value:{sign}.{digits}f}{words.get(unit, '')}"


def price(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def figures_in(text: str) -> tuple[Figure, ...]:
    """The figures of a sentence that our own code wrote: whoever was told it may repeat it."""
    found: list[Figure] = []
    for each in _NUMBER.finditer(text):
        value = float(each["digits"].replace(",", ""))
        negative = each["sign"] in ("-", "−") and not text[: each.start()].endswith(tuple("0123456789"))
        unit = Unit.AMOUNT if each["dollar"] else _UNITS.get(each["unit"] or "", Unit.COUNT)
        found.append(Figure("told", -value if negative else value, unit, "told"))
    return tuple(found)


def remark(text: str) -> Line:
    return Line(text, figures_in(text))


def scaled(value: Known[float], factor: float) -> Known[float]:
    return value if isinstance(value, Missing) else value * factor


def of(known: Known[Any], name: str) -> Known[float]:
    """One figure of a group that may be missing as a whole."""
    return known if isinstance(known, Missing) else getattr(known, name)


# -- sections everybody reads


def market(matter: Matter) -> Section:
    bundle, signs = matter.bundle, matter.signs
    atr, now = matter.menu.atr, matter.menu.now
    share: Known[float] = atr if isinstance(atr, Missing) else now if isinstance(now, Missing) else 100 * atr / now
    frames = ", ".join(bundle.mode.timeframes)
    return Section(
        "market",
        100,
        (
            Line(f"{bundle.symbol}, {bundle.mode} mode, timeframes {frames}; {_kind(matter)}"),
            fact("price now", now, Unit.PRICE),
            fact(f"ATR14 ({_atr_frame(matter)})", atr, Unit.PRICE),
            fact("the same of the price", share, Unit.PERCENT),
            fact("price change 24h", scaled(signs.day, 100), Unit.PERCENT, signed=True),
            fact("price change 7d", scaled(signs.week, 100), Unit.PERCENT, signed=True),
        ),
    )


def _kind(matter: Matter) -> str:
    """A bundle is frozen alike from the venues and from what was kept of them: either way it is their market."""
    return "an invented market" if matter.bundle.synthetic else "the venues' own market"


def _atr_frame(matter: Matter) -> Timeframe:
    return matter.bundle.mode.timeframes[1]


def anomalies(matter: Matter) -> Section:
    """What fired, and what could not be judged."""
    found = matter.features.triage
    fired = [remark(f"{one.name}: {one.said}") for one in found.anomalies]
    unknown = [remark(f"not judged, {one.rule}: {one.reason}") for one in found.unknown]
    return Section("anomalies", 99, (*(fired or [Line("none fired")]), *unknown))


# -- what each expert reads


def gauges(matter: Matter, *frames: Timeframe, weight: int = 60) -> Section:
    lines: list[Line] = []
    for timeframe, frame in matter.features.frames:
        if frames and timeframe not in frames:
            continue
        if isinstance(frame, Missing):
            lines.append(remark(f"{timeframe}: unknown ({frame.reason})"))
        else:
            lines += _gauges(timeframe, frame, deep(matter))
    return Section("gauges", weight, tuple(lines))


def _gauges(timeframe: Timeframe, frame: Frame, closely: bool) -> Iterator[Line]:
    seen = frame.readings
    yield fact(f"{timeframe} close", seen.close, Unit.PRICE)
    yield fact(f"{timeframe} RSI14", seen.rsi, Unit.COUNT, 1)
    yield fact(f"{timeframe} ADX14", seen.adx, Unit.COUNT, 1)
    for name in ("ema21", "ema50", "ema200") if closely else ("ema21", "ema50"):
        yield fact(f"{timeframe} {name.upper()}", getattr(seen, name), Unit.PRICE)
    yield fact(f"{timeframe} MACD histogram", seen.macd_histogram, Unit.COUNT, 1, signed=True)
    width = None if seen.bb_width is None else 100 * seen.bb_width
    yield fact(f"{timeframe} Bollinger width", width, Unit.PERCENT)
    if seen.supertrend_side is not None:
        yield Line(f"{timeframe} supertrend: {'up' if seen.supertrend_side > 0 else 'down'}")
    if seen.squeeze is not None:
        yield Line(f"{timeframe} squeeze: {'on' if seen.squeeze else 'off'}")
    if closely:
        yield fact(f"{timeframe} MFI14", seen.mfi, Unit.COUNT, 1)
        yield fact(f"{timeframe} CMF20", seen.cmf, Unit.COUNT, 2, signed=True)


def structure(matter: Matter, weight: int = 70) -> Section:
    lines: list[Line] = []
    for timeframe, frame in matter.features.frames:
        if isinstance(frame, Missing):
            lines.append(remark(f"{timeframe}: unknown ({frame.reason})"))
            continue
        shape, kept = frame.structure, 4 if deep(matter) else 2
        lines.append(Line(f"{timeframe} trend of structure: {shape.trend or 'none yet'}"))
        for each in shape.breaks[-kept:]:
            since = _bars_ago(matter, each.known_at, timeframe)
            lines.append(_priced(f"{timeframe} {each.kind} {each.way} through", each.pivot.price, f", {since}"))
        for one in shape.divergences[-kept:]:
            since, hidden = _bars_ago(matter, one.known_at, timeframe), "hidden " if one.hidden else ""
            lines.append(remark(f"{timeframe} {hidden}{one.gauge} divergence points {one.way}, {since}"))
        lines += _fibonacci(timeframe, shape.fibonacci, frame.readings.close)
        lines += _zones(timeframe, frame, kept)
        found = formation(shape.pivots, frame.readings.close, frame.readings.atr)
        if found is not None and timeframe is matter.bundle.mode.chart[0]:
            lines.append(_priced(f"{timeframe} shape: {found.shape}, its line at", found.line))
    return Section("structure", weight, tuple(lines))


def _priced(head: str, value: float, tail: str = "") -> Line:
    return Line(f"{head} {price(value)}{tail}", (*figures(head, value, Unit.PRICE), *figures_in(tail)))


def _bars_ago(matter: Matter, at: int, timeframe: Timeframe) -> str:
    return ago((matter.bundle.as_of - at) // timeframe.millis)


def ago(bars: int) -> str:
    return "just now" if not bars else "1 bar ago" if bars == 1 else f"{bars} bars ago"


def _fibonacci(timeframe: Timeframe, swing: Fibonacci | None, close: float) -> Iterator[Line]:
    if swing is None:
        return
    ends = (swing.start.price, swing.end.price)
    told = [figure for value in ends for figure in figures("swing", value, Unit.PRICE)]
    yield Line(f"{timeframe} last swing: {price(ends[0])} to {price(ends[1])}", tuple(told))
    if (back := retraced(swing, close)) is not None:
        yield fact(f"{timeframe} swing retraced by", 100 * back, Unit.PERCENT, 0)
    for one in swing.retracements:
        yield _priced(f"{timeframe} retracement {one.ratio:g}:", one.price)


def retraced(swing: Fibonacci, close: float) -> float | None:
    """How much of the swing was given back; None where the close lies outside of it."""
    span = swing.end.price - swing.start.price
    back = (swing.end.price - close) / span if span else -1.0
    return back if 0 <= back <= 1 else None


def nearest_zones(frame: Frame, count: int) -> list[Zone]:
    close = frame.readings.close
    return sorted(frame.structure.zones, key=lambda zone: (max(zone.low - close, close - zone.high), zone.low))[:count]


def _zones(timeframe: Timeframe, frame: Frame, count: int) -> Iterator[Line]:
    """The nearest places where levels of several kinds meet."""
    for zone in nearest_zones(frame, count):
        told = [figure for edge in (zone.low, zone.high) for figure in figures("zone", edge, Unit.PRICE)]
        count_ = figures("levels", float(len(zone.levels)), Unit.COUNT)
        said = f"{timeframe}: {len(zone.levels)} levels meet between {price(zone.low)} and {price(zone.high)}"
        yield Line(said, (*told, *count_))


def flow(matter: Matter, weight: int = 90) -> Section:
    signs, features = matter.signs, matter.features
    lines = [*_taken(signs.flow), *(_taken(signs.days) if deep(matter) else ())]
    for name, whales in (("last hour", features.whales_hour), ("24h", features.whales_day)):
        lines += _whales(name, whales)
    change = features.open_interest_hour, features.open_interest_day
    for name, one in zip(("1h", "24h"), change, strict=True):
        lines.append(fact(f"open interest change {name}", scaled(of(one, "share"), 100), Unit.PERCENT, signed=True))
    return Section("orderflow", weight, tuple(lines))


def _taken(flow: Known[Flow]) -> Iterator[Line]:
    if isinstance(flow, Missing):
        yield remark(f"takers: unknown ({flow.reason})")
        return
    head = f"{FLOW_BARS} bars of {flow.timeframe}"
    yield fact(f"price change over {head}", 100 * flow.moved, Unit.PERCENT, signed=True)
    yield fact(f"taker balance (CVD over volume) over {head}", 100 * flow.balance, Unit.PERCENT, signed=True)
    yield fact("earlier stretches that leaned less to buying", scaled(flow.rank, 100), Unit.PERCENT, 0)


def _whales(name: str, whales: Known[Any]) -> Iterator[Line]:
    if isinstance(whales, Missing):
        yield remark(f"large trades {name}: unknown ({whales.reason})")
        return
    yield fact(f"large trades {name}, bought", whales.bought_usd, Unit.AMOUNT)
    yield fact(f"large trades {name}, sold", whales.sold_usd, Unit.AMOUNT)
    yield fact(f"large trades {name}, count", float(whales.trades), Unit.COUNT, 0)


def forced(matter: Matter, weight: int = 85) -> Section:
    """Liquidations: lower bounds, and labelled so."""
    seen = matter.features.forced
    lines = []
    for side, hour in ((Side.LONG, seen.longs_hour), (Side.SHORT, seen.shorts_hour)):
        lines.append(fact(f"{side}s liquidated in the last hour (lower bound)", of(hour, "usd"), Unit.AMOUNT))
        if not isinstance(hour, Missing) and deep(matter):
            lines.append(fact(f"95th percentile of such hours of {side}s", hour.high, Unit.AMOUNT))
        lines.append(fact(f"{side}s liquidated in 24h (lower bound)", seen.day.usd(side), Unit.AMOUNT))
    return Section("liquidations", weight, tuple(lines))


def book(matter: Matter, weight: int = 95) -> Section:
    seen, walls = matter.features.book, matter.features.walls
    lines = [
        fact("spread", of(seen, "spread_bps"), Unit.BPS, 3),
        fact("imbalance within 10 bps (+1: bids only)", of(seen, "imbalance"), Unit.RATIO, 2, signed=True),
        fact("slippage cost of buying $100,000", of(seen, "buy_slippage_bps"), Unit.BPS, 3),
        fact("slippage cost of selling $100,000", of(seen, "sell_slippage_bps"), Unit.BPS, 3),
    ]
    lines = [Line(one.text.replace("×", ""), one.figures) for one in lines]
    if isinstance(walls, Missing):
        lines.append(remark(f"walls: unknown ({walls.reason})"))
    else:
        lines.append(Line(f"walls that vanished untraded: {len(walls.fake)}; not judged: {walls.unjudged}"))
        for one in walls.fake[: 6 if deep(matter) else 2]:
            side = "bids" if one.side is Side.LONG else "asks"
            lines.append(_priced(f"fake wall of {side} at", one.price, f", {one.times_median:.1f}× the median"))
    return Section("order book", weight, tuple(lines))


def derivatives(matter: Matter, weight: int = 80) -> Section:
    venues = matter.features.perpetuals if deep(matter) else matter.features.perpetuals[:1]
    return Section("derivatives", weight, tuple(line for one in venues for line in _perpetual(one)))


def _perpetual(one: Perpetual) -> Iterator[Line]:
    eight = "funding, as if for 8h"
    yield fact(f"{one.venue} predicted {eight}", scaled(of(one.predicted, "per_8h"), 100), Unit.PERCENT, 4, signed=True)
    yield fact(f"{one.venue} mean {eight}, last 7d", scaled(of(one.week, "per_8h"), 100), Unit.PERCENT, 4, signed=True)
    yield fact(f"{one.venue} accounts that are long", scaled(one.long_share, 100), Unit.PERCENT, 1)
    yield fact(f"{one.venue} basis", one.basis_bps, Unit.BPS, 2, signed=True)


def options(matter: Matter, weight: int = 90) -> Section:
    surface, dvol = matter.features.surface, matter.features.dvol
    lines = [fact("DVOL volatility", of(dvol, "value"), Unit.PERCENT, 1)]
    if not isinstance(dvol, Missing):
        lines.append(fact("mean of DVOL volatility, last 30d", dvol.mean, Unit.PERCENT, 1))
        lines.append(fact("DVOL deviations over its mean", dvol.z, Unit.COUNT, 2, signed=True))
    lines.append(fact("put/call by open interest", of(surface, "put_call_open_interest"), Unit.COUNT))
    lines.append(fact("term: 7d less 30d volatility", of(surface, "term"), Unit.PERCENT, 1, signed=True))
    if not isinstance(surface, Missing):
        lines.append(fact("25-delta skew 7d (puts dear if above 0)", surface.week.skew25, Unit.PERCENT, 1, signed=True))
        if deep(matter):
            lines.append(fact("put/call by volume", surface.put_call_volume, Unit.COUNT))
            lines.append(fact("25-delta skew 30d", surface.month.skew25, Unit.PERCENT, 1, signed=True))
            lines.append(fact("volatility at the money 7d", surface.week.atm, Unit.PERCENT, 1))
            lines.append(fact("volatility at the money 30d", surface.month.atm, Unit.PERCENT, 1))
    return Section("options", weight, tuple(lines))


def economy(matter: Matter, weight: int = 70) -> Section:
    signs, seen = matter.signs, matter.features.economy
    lines = [
        fact("slope of the curve (ten years less two)", of(seen.slope, "value"), Unit.PERCENT, 2, signed=True),
        fact(f"its change over {PRINTS} prints", of(seen.slope, "change"), Unit.PERCENT, 2, signed=True),
        _changed(DOLLAR[0], signs.dollar),
        _changed(STOCKS[0], signs.stocks),
    ]
    shown = dict(seen.figures) if deep(matter) else _always(dict(seen.figures))
    lines += [_printed(name, reading, matter.bundle.as_of) for name, reading in shown.items()]
    mood = matter.features.mood
    lines.append(fact("fear and greed index", mood if isinstance(mood, Missing) else mood.value, Unit.COUNT, 0))
    return Section("economy", weight, tuple(lines))


def _changed(first: Quoted, change: Known[Change]) -> Line:
    """Under the name of the figure it is of; what nobody knows, under the name of the one that was asked first."""
    called = first.called if isinstance(change, Missing) else change.of.called
    share = scaled(of(change, "share"), 100)
    return fact(f"{called} change over {PRINTS} prints", share, Unit.PERCENT, signed=True)


def _always(readings: Mapping[str, Known[Reading]]) -> dict[str, Known[Reading]]:
    """The ten-year yield, the dollar and stocks; beside one that is missing, what stands in for it."""
    shown = {YIELD: readings[YIELD]}
    for several in (DOLLAR, STOCKS):
        for one in several:
            shown[one.name] = readings[one.name]
            if not isinstance(readings[one.name], Missing):
                break
    return shown


def _printed(name: str, reading: Known[Reading], as_of: Millis) -> Line:
    if isinstance(reading, Missing):
        return fact(name, reading, Unit.COUNT)
    line, age = fact(name, reading.last.value, Unit.COUNT), (as_of - reading.last.released) / HOUR_MS
    since = f", released {age:.0f} h ago"
    return Line(f"{line.text}{since}", (*line.figures, *figures_in(since)))


def day(matter: Matter, weight: int = 75) -> Section:
    """What the regime is told by."""
    seen, signs = matter.features.volatility, matter.signs
    slope = "unknown" if isinstance(signs.days, Missing) else "rising" if signs.days.slope > 0 else "falling"
    return Section(
        "day",
        weight,
        (
            fact("volatility 24h", scaled(of(seen, "value"), 100), Unit.PERCENT),
            fact("days of the last 180 that moved less", scaled(of(seen, "rank"), 100), Unit.PERCENT, 1),
            fact("days whose Bollinger bands were narrower", scaled(signs.width_rank, 100), Unit.PERCENT, 0),
            Line(f"CVD over {FLOW_BARS} days: {slope}"),
        ),
    )


def levels(matter: Matter, weight: int = 96) -> Section:
    """The menu: whatever price is answered must be one of these."""
    shown = nearest(matter)
    now = matter.menu.now
    lines = [Line(f"{one.id} ({one.kind}): {price(one.price)}", _level_figures(one)) for one in shown]
    head = "by price, the nearest of them" if isinstance(now, float) else "by price"
    left = len(matter.menu.levels) - len(shown)
    return Section("levels", weight, (Line(f"{head}; {left} further ones are not shown"), *lines))


def nearest(matter: Matter) -> list[MenuLevel]:
    """Every distance and pool, for a stop and a target lie far apart, and of what was measured the nearest."""
    count = DEEP_LEVELS if deep(matter) else QUIET_LEVELS
    now = matter.menu.now
    always = [one for one in matter.menu.levels if one.kind in (MARK, RANGE, POOL)]
    found = [one for one in matter.menu.levels if one.kind not in (MARK, RANGE, POOL)]
    if not isinstance(now, Missing):
        found.sort(key=lambda one: (abs(one.price - now), one.id))
    return sorted((*always, *found[:count]), key=lambda one: (one.price, one.id))


def _level_figures(one: MenuLevel) -> tuple[Figure, ...]:
    return figures(one.id.replace(".", " ").replace("_", " "), one.price, Unit.PRICE)


# -- the blackboard, for those who weigh it


def said(matter: Matter, board: Blackboard, weight: int = 97) -> Section:
    mode = matter.bundle.mode
    lines = [Line(f"order of conviction in {mode} mode, who weighs most first: {' > '.join(CONVICTION[mode])}")]
    there = entries(board)
    for expert in Expert:
        lines += _entry(expert, there[expert]) if expert in there else (Line(f"{expert}: absent"),)
    return Section("blackboard", weight, tuple(lines))


def _entry(name: str, entry: Entry) -> Iterator[Line]:
    bias = getattr(entry, "directional_bias", None) or getattr(entry, "options_bias", None)
    leaning = f", bias {bias}" if bias else ""
    lean = {1: "bullish", 0: "neutral", -1: "bearish"}[entry.stance]
    told = (
        *figures(f"confidence {name}", entry.confidence, Unit.RATIO),
        *figures(f"confidence {name}", 100 * entry.confidence, Unit.PERCENT),
    )
    speaker = "" if entry.source in ("model", "repaired") else f" ({entry.source})"
    yield Line(
        f"{name}{speaker}: stance {lean}, confidence {entry.confidence:.2f}, anomaly {entry.anomaly}{leaning}", told
    )
    if (target := getattr(entry, "target_entry", None)) is not None:
        yield _priced(f"{name} target entry", target)
    if isinstance(entry, GeometryEntry):
        yield from _seen(name, entry)
    yield remark(f"{name} says: {unfenced(entry.rationale)}")


def _seen(name: str, entry: GeometryEntry) -> Iterator[Line]:
    """What the one who looks at the chart says beyond which way it looks."""
    yield Line(f"{name}: pattern {entry.pattern}")
    for each, value in entry.key_levels.model_dump().items():
        if value is not None:
            yield _priced(f"{name} {each.replace('_', ' ')}", value)
    yield Line(
        f"{name}: cvd signal {entry.cvd_signal or 'not seen'}, funding visual {entry.funding_visual or 'not seen'}"
    )
    yield remark(f"{name} on Fibonacci: {unfenced(entry.fibonacci_context)}")


def regime(meta: Meta, weight: int = 98) -> Section:
    """What Meta decided. Its own words, which strangers may have coloured, are told behind a fence."""
    return Section(
        "regime",
        weight,
        (
            Line(f"regime {meta.regime}, risk bias {meta.risk_bias}, trust {meta.trust_directive.expert} more"),
            fact("risk budget", float(meta.risk_budget_pct), Unit.PERCENT, 0),
        ),
    )


def directive(meta: Meta, *, quotable: bool = True) -> Untrusted:
    """Rules read no strangers: what they say may be repeated by anybody."""
    by_rule = meta.source in ("deterministic", "fallback")
    return Untrusted(meta.trust_directive.note, limit=REMARK_CHARS, quotable=quotable or by_rule)


def conflicts(synthesis: Synthesis | None, weight: int = 94) -> Section:
    if synthesis is None:
        return Section("synthesis", weight, (Line("none was made"),))
    lines = [fact("weighted score", synthesis.score, Unit.RATIO, 2, signed=True)]
    lines = [Line(f"{lines[0].text.replace('×', '')}, dominant signal {synthesis.dominant_signal}", lines[0].figures)]
    lines += [remark(f"agreed: {unfenced(text)}") for text in synthesis.consensus_signals]
    for one in synthesis.conflicts:
        first, second = one.between
        claims = unfenced(one.expert_a_claim), unfenced(one.expert_b_claim)
        lines.append(remark(f"conflict: {first} says {claims[0]} — {second} says {claims[1]}"))
        lines.append(remark(f"what would settle it: {unfenced(one.tiebreaker)}"))
    lines.append(Line(f"surest expert: {synthesis.highest_confidence_expert}"))
    lines.append(remark(f"open question: {unfenced(synthesis.key_uncertainty)}"))
    lines.append(remark(f"whom to weigh in this regime: {unfenced(synthesis.regime_note)}"))
    return Section("synthesis", weight, tuple(lines))


# -- words of strangers


def news(matter: Matter, title: str = "news", weight: int = 20) -> Section:
    return _strangers(matter, title, Feed.NEWS, CHANNELS, NEWS_CHARS, weight)


def narrative(matter: Matter, title: str = "narrative", weight: int = 25) -> Section:
    return _strangers(matter, title, Feed.NARRATIVE, SEARCH, NARRATIVE_CHARS, weight)


def _strangers(matter: Matter, title: str, feed: Feed, venue: str, limit: int, weight: int) -> Section:
    rows: Known[Sequence[Text]] = fresh(matter.bundle, texts(feed, venue, matter.bundle.symbol.base))
    if isinstance(rows, Missing):
        return Section(title, weight, strangers=Untrusted(f"none is known: {rows.reason}", limit=limit, quotable=True))
    return Section(title, weight, strangers=Untrusted(_joined(rows, limit), limit=limit))


def _joined(rows: Iterable[Text], limit: int) -> str:
    """The newest first, each cut short, so that a long one cannot push out the others."""
    newest = sorted(rows, key=lambda row: (row.at, row.id), reverse=True)
    return " · ".join(row.body[: max(limit // 4, 200)] for row in newest[:12])
