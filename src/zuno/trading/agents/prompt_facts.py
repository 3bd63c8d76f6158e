"""What the trading desk's agents are told, each fact under the id it is cited by: prices, percentages and dollars of
the market, never a dollar of the account. What is missing is told as missing, with its reason."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Final, ParamSpec

from zuno.kernel.units import Millis
from zuno.llm.prompts import Untrusted, strip_fences
from zuno.markets.feeds import CHANNELS, FRED, SEARCH
from zuno.provenance.facts import FactSheet, Figure, Unit
from zuno.provenance.slots import annotate, cited_ids
from zuno.trading.agents.case import Case, cache_by_market
from zuno.trading.agents.prompt_budget import Line, Section
from zuno.trading.measure import features
from zuno.trading.measure.events import EventKind, MarketEvent
from zuno.trading.measure.frames import Frame
from zuno.trading.measure.levels import LevelZone, find_pattern
from zuno.trading.measure.order_book import FakeWall
from zuno.trading.measure.structure import DivergenceSource, Fibonacci, PriceDirection
from zuno.trading.measure.triage import Rule
from zuno.trading.model.cycle import CONVICTION, Blackboard, Expert, GeometryEntry, Meta
from zuno.trading.model.known import Known, Missing, figure_in
from zuno.trading.model.market import HOUR_MS, Feed, Side, Text, Timeframe, texts
from zuno.trading.rules.price_menu import LIQ_CLUSTER, MARK, RANGE, MenuLevel, PriceMenu
from zuno.trading.rules.score import Entry, board_entries

P = ParamSpec("P")
LEANINGS: Final[Mapping[int, str]] = {1: "bullish", 0: "neutral", -1: "bearish"}
QUIET_LEVELS: Final = 24
DEEP_LEVELS: Final = 48
"""Measured levels of the menu that are told, the nearest."""
NEWS_CHARS: Final = 2_400
NARRATIVE_CHARS: Final = 1_600
REMARK_CHARS: Final = 280
LEFT_BEHIND: Final = "the price has left it far behind"
YIELD: Final = f"{FRED}/DGS10"


def has_anomalies(case: Case) -> bool:
    """Whether something is out of the ordinary, so that experts look closer."""
    return bool(case.features.triage.anomalies or case.features.events.events)


# -- lines


def fact(
    id_: str, value: Known[float] | None, unit: Unit, digits: int = 2, *, signed: bool = False, note: str = ""
) -> Line:
    """`{id} value unit`, or that it is not known and why, which can be cited as well."""
    if value is None:
        return Line(f"{id_}: unknown (too few bars)")
    if isinstance(value, Missing):
        return remark(f"{id_}.unknown", value.reason, f"{id_} is unknown: ")
    figure = figure_of(id_, value, unit, digits, signed=signed)
    return Line(lambda: f"{{{id_}}} {figure.print()}" + (f" ({note})" if note else ""), (figure,))


def figure_of(id_: str, value: float, unit: Unit, digits: int = 2, *, signed: bool = False) -> Figure:
    if unit in (Unit.PRICE, Unit.AMOUNT):
        return Figure(id_, value, unit, symbol="USD", digits=0 if unit is Unit.AMOUNT else digits)
    return Figure(id_, value, unit, digits=digits, signed=signed)


def remark(id_: str, text: str, head: str = "") -> Line:
    """A sentence of the rules, which may be cited as a whole."""
    return Line(f"{{{id_}}} {head}{text}", (Figure(id_, text, Unit.WORDS),))


def quote(head: str, text: str, facts: FactSheet) -> Line:
    """Another agent's words: their slots stay, and may be cited again."""
    line = strip_fences(text)
    return Line(f"{head}{annotate(line, facts)}", tuple(facts[id_] for id_ in cited_ids([line]) if id_ in facts))


def build_sheet(sections: Iterable[Section], figures: Iterable[Figure] = ()) -> FactSheet:
    cited = [figure for section in sections for line in section.lines for figure in line.figures]
    return FactSheet([*cited, *figures])


def in_percent(share: Known[float]) -> Known[float]:
    return share if isinstance(share, Missing) else share * 100


def section(title: str, weight: int) -> Callable[[Callable[P, Iterable[Line]]], Callable[P, Section]]:
    def name_lines(list_lines: Callable[P, Iterable[Line]]) -> Callable[P, Section]:
        @wraps(list_lines)
        def build(*args: P.args, **kwargs: P.kwargs) -> Section:
            return Section(title, weight, tuple(list_lines(*args, **kwargs)))

        return build

    return name_lines


# -- sections everybody reads


@section("market", 100)
def market_section(case: Case) -> Iterator[Line]:
    bundle, context = case.bundle, case.context
    atr, now = case.menu.atr, case.menu.now
    share: Known[float] = atr if isinstance(atr, Missing) else now if isinstance(now, Missing) else 100 * atr / now
    frames = ", ".join(bundle.mode.timeframes)
    yield Line(f"{bundle.symbol}, {bundle.mode} mode, timeframes {frames}; {_kind(case)}")
    yield fact("price_now", now, Unit.PRICE)
    yield fact("atr14", atr, Unit.PRICE, note=f"of {bundle.mode.timeframes[1]}")
    yield fact("atr14_pct", share, Unit.PERCENT, note="of the price")
    yield fact("price_change_24h", in_percent(context.day), Unit.PERCENT, signed=True)
    yield fact("price_change_7d", in_percent(context.week), Unit.PERCENT, signed=True)
    if isinstance(today := context.today, Missing):
        yield remark("running_1d.unknown", today.reason, "running 1d bar: ")
        return
    running = f"of the 1d bar that is running, {today.hours} of 24 hours: not closed"
    yield fact("running_1d.open", today.open, Unit.PRICE, note=running)
    yield fact("running_1d.high", today.high, Unit.PRICE, note="running, so far")
    yield fact("running_1d.low", today.low, Unit.PRICE, note="running, so far")


def _kind(case: Case) -> str:
    """A live bundle and a recorded one are both the venues' market."""
    if case.bundle.candles_only:
        return "imported candles alone: what was never recorded is absent, not zero"
    return "an invented market" if case.bundle.synthetic else "the venues' own market"


@section("anomalies", 99)
def anomalies_section(case: Case) -> Iterator[Line]:
    """What fired, which shocks the last hour had, and what could not be judged."""
    triage, watch = case.features.triage, case.features.watch
    shocks = [event for event in case.features.events.events if event.kind is EventKind.SHOCK]
    for id_, anomaly in zip(anomaly_ids(case), triage.anomalies, strict=True):
        yield remark(id_, anomaly.said, f"{anomaly.name}: ")
    for event in shocks:
        yield remark(event_id(case, event), event.said, f"{event.name} in the last hour: ")
    if not triage.anomalies and not shocks:
        yield Line("none fired")
    for at, skipped in enumerate(triage.unknown, 1):
        yield remark(f"unjudged_{at}", skipped.reason, f"not judged, {skipped.rule}: ")
    if isinstance(watch, Missing):
        yield remark("unjudged_shock", watch.reason, "not judged, shock: ")


def event_id(case: Case, event: MarketEvent) -> str:
    """Under which id an event of the last hour is told: a spike among the anomalies, each shock by its place."""
    if event.kind is not EventKind.SHOCK:
        return f"anomaly.{Rule.SPIKE}"
    shocks = [other for other in case.features.events.events if other.kind is EventKind.SHOCK]
    return f"shock_{shocks.index(event) + 1}"


def anomaly_ids(case: Case) -> list[str]:
    """Of the anomalies in their order; a rule that fired twice is counted."""
    rules = [str(anomaly.rule) for anomaly in case.features.triage.anomalies]
    counts = [rules[: at + 1].count(rule) for at, rule in enumerate(rules)]
    return [f"anomaly.{rule}" + (f"_{count}" if count > 1 else "") for rule, count in zip(rules, counts, strict=True)]


# -- what each expert reads


@section("gauges", 60)
def indicator_section(case: Case, *frames: Timeframe) -> Iterator[Line]:
    for timeframe, frame in case.features.frames:
        if frames and timeframe not in frames:
            continue
        if isinstance(frame, Missing):
            yield remark(f"{timeframe}.unknown", frame.reason, "unknown: ")
        else:
            yield from _indicator_lines(timeframe, frame, has_anomalies(case))


def _indicator_lines(timeframe: Timeframe, frame: Frame, closely: bool) -> Iterator[Line]:
    seen = frame.readings
    yield fact(f"{timeframe}.close", seen.close, Unit.PRICE, note="of the last closed bar")
    yield fact(f"{timeframe}.rsi14", seen.rsi, Unit.NUMBER, 1)
    yield fact(f"{timeframe}.adx14", seen.adx, Unit.NUMBER, 1)
    for name in ("ema21", "ema50", "ema200") if closely else ("ema21", "ema50"):
        yield fact(f"{timeframe}.{name}", getattr(seen, name), Unit.PRICE)
    yield fact(f"{timeframe}.macd_histogram", seen.macd_histogram, Unit.NUMBER, 1, signed=True)
    width = None if seen.bb_width is None else 100 * seen.bb_width
    yield fact(f"{timeframe}.bollinger_width", width, Unit.PERCENT)
    if seen.supertrend_side is not None:
        yield Line(f"{timeframe} supertrend: {'up' if seen.supertrend_side > 0 else 'down'}")
    if seen.squeeze is not None:
        yield Line(f"{timeframe} squeeze: {'on' if seen.squeeze else 'off'}")
    if closely:
        yield fact(f"{timeframe}.mfi14", seen.mfi, Unit.NUMBER, 1)
        yield fact(f"{timeframe}.cmf20", seen.cmf, Unit.NUMBER, 2, signed=True)


@section("structure", 70)
def structure_section(case: Case) -> Iterator[Line]:
    for timeframe, frame in case.features.frames:
        if isinstance(frame, Missing):
            yield remark(f"{timeframe}.unknown", frame.reason, "unknown: ")
            continue
        shape, kept = frame.structure, 4 if has_anomalies(case) else 2
        yield Line(f"{timeframe} trend of structure: {shape.trend or 'none yet'}")
        for place, each in enumerate(reversed(shape.breaks[-kept:]), 1):
            text = f"{each.kind} {each.way}, {bars_ago(case, each.known_at, timeframe)} bars ago"
            if case.menu.is_near(each.pivot.price):
                yield fact(f"{timeframe}.break_{place}", each.pivot.price, Unit.PRICE, note=text)
            else:
                yield Line(f"{timeframe} {text}: {LEFT_BEHIND}")
        yield from _divergence_lines(case, timeframe, frame, kept)
        yield from _fibonacci_lines(case.menu, timeframe, shape.fibonacci, frame.readings.close)
        yield from _zone_lines(case.menu, timeframe, frame, kept)
        charted = timeframe is case.bundle.mode.chart[0]
        pattern = find_pattern(shape.pivots, frame.readings.close, shape.log_atr) if charted else None
        if pattern is not None and case.menu.is_near(pattern.line):
            yield fact(f"{timeframe}.shape_line", pattern.line, Unit.PRICE, note=f"of a {pattern.shape}")


def _divergence_lines(case: Case, timeframe: Timeframe, frame: Frame, kept: int) -> Iterator[Line]:
    """The newest of each gauge, and what else is new."""
    divergences = frame.structure.divergences
    for gauge in DivergenceSource:
        of_gauge = [divergence for divergence in divergences if divergence.gauge is gauge]
        newest = sorted(of_gauge, key=lambda divergence: divergence.known_at, reverse=True)
        for place, divergence in enumerate(newest[: max(kept // 2, 1)], 1):
            hidden = "hidden " if divergence.hidden else ""
            text = f"{hidden}{gauge} divergence that points {divergence.way}, so long ago"
            ago = float(bars_ago(case, divergence.known_at, timeframe))
            yield fact(f"{timeframe}.{gauge}_divergence_{place}_age", ago, Unit.BARS, 0, note=text)


def bars_ago(case: Case, at: int, timeframe: Timeframe) -> int:
    return (case.bundle.as_of - at) // timeframe.millis


def _fibonacci_lines(menu: PriceMenu, timeframe: Timeframe, swing: Fibonacci | None, close: float) -> Iterator[Line]:
    if swing is None:
        return
    if not menu.is_near(swing.start.price, swing.end.price):
        yield Line(f"{timeframe} swing: {LEFT_BEHIND}")
        return
    yield fact(f"{timeframe}.swing_from", swing.start.price, Unit.PRICE)
    yield fact(f"{timeframe}.swing_to", swing.end.price, Unit.PRICE)
    if (back := retraced_share(swing, close)) is not None:
        yield fact(f"{timeframe}.swing_retraced", 100 * back, Unit.PERCENT, 0)
    for retracement in filter(lambda level: menu.is_near(level.price), swing.retracements):
        yield fact(retracement_id(timeframe, retracement.ratio), retracement.price, Unit.PRICE)


def retracement_id(timeframe: Timeframe, ratio: float) -> str:
    return f"{timeframe}.retracement_{round(1000 * ratio):03d}"


def retraced_share(swing: Fibonacci, close: float) -> float | None:
    """How much of the swing was given back; None where the close lies outside of it."""
    span = swing.end.price - swing.start.price
    back = (swing.end.price - close) / span if span else -1.0
    return back if 0 <= back <= 1 else None


def market_price(menu: PriceMenu, frame: Frame) -> float:
    """Which is not the last close of the frame while a bar runs."""
    return frame.readings.close if isinstance(menu.now, Missing) else menu.now


def nearest_zones(menu: PriceMenu, frame: Frame, count: int) -> list[LevelZone]:
    now = market_price(menu, frame)
    near = [zone for zone in frame.structure.zones if menu.is_near(zone.low, zone.high)]
    return sorted(near, key=lambda zone: (max(zone.low - now, now - zone.high), zone.low))[:count]


def _zone_lines(menu: PriceMenu, timeframe: Timeframe, frame: Frame, count: int) -> Iterator[Line]:
    for place, zone in enumerate(nearest_zones(menu, frame, count), 1):
        own = f"{timeframe}.zone_{place}"
        parts = (
            fact(f"{own}_low", zone.low, Unit.PRICE),
            fact(f"{own}_high", zone.high, Unit.PRICE),
            fact(f"{own}_levels", float(len(zone.levels)), Unit.NUMBER, 0, note="levels that meet there"),
        )
        yield Line(", ".join(part.text for part in parts), tuple(figure for part in parts for figure in part.figures))


@section("orderflow", 90)
def flow_section(case: Case) -> Iterator[Line]:
    context, features = case.context, case.features
    yield from _taker_lines("takers", context.flow)
    if has_anomalies(case):
        yield from _taker_lines("takers_1d", context.days)
    for name, whales in (("1h", features.whales_hour), ("24h", features.whales_day)):
        yield from _whale_lines(f"large_trades_{name}", whales)
    for name, interest in (("1h", features.open_interest_hour), ("24h", features.open_interest_day)):
        share = in_percent(figure_in(interest, "share"))
        yield fact(f"open_interest_change_{name}", share, Unit.PERCENT, signed=True)


def _taker_lines(name: str, takers: Known[features.TakerFlow]) -> Iterator[Line]:
    if isinstance(takers, Missing):
        yield remark(f"{name}.unknown", takers.reason, "unknown: ")
        return
    head, own = f"over {features.FLOW_BARS} bars of {takers.timeframe}", takers_id(takers)
    yield fact(f"{own}.price_change", 100 * takers.moved, Unit.PERCENT, signed=True, note=head)
    yield fact(f"{own}.balance", 100 * takers.balance, Unit.PERCENT, signed=True, note=f"CVD over volume, {head}")
    less = "of earlier stretches leaned less to buying"
    yield fact(f"{own}.rank", in_percent(takers.rank), Unit.PERCENT, 0, note=less)


def takers_id(takers: features.TakerFlow) -> str:
    return f"takers_{takers.timeframe}"


def _whale_lines(own: str, whales: Known[Any]) -> Iterator[Line]:
    if isinstance(whales, Missing):
        yield remark(f"{own}.unknown", whales.reason, "unknown: ")
        return
    yield fact(f"{own}.bought", whales.bought_usd, Unit.AMOUNT)
    yield fact(f"{own}.sold", whales.sold_usd, Unit.AMOUNT)
    yield fact(f"{own}.count", float(whales.trades), Unit.NUMBER, 0)


@section("liquidations", 85)
def liquidation_section(case: Case) -> Iterator[Line]:
    seen = case.features.forced
    for side, hour in ((Side.LONG, seen.longs_hour), (Side.SHORT, seen.shorts_hour)):
        own = f"liquidated_{side}s"
        yield fact(f"{own}.last_hour", figure_in(hour, "usd"), Unit.AMOUNT, note="lower bound")
        if not isinstance(hour, Missing) and has_anomalies(case):
            yield fact(f"{own}.last_hour_p95", hour.high, Unit.AMOUNT, note="95th percentile of such hours")
        yield fact(f"{own}.last_24h", seen.day.usd(side), Unit.AMOUNT, note="lower bound")


@section("order book", 95)
def book_section(case: Case) -> Iterator[Line]:
    seen, walls = case.features.book, case.features.walls
    size, near = "slippage of an order of $100,000", "within 10 bps, +1: bids only"
    yield fact("book.spread", figure_in(seen, "spread_bps"), Unit.BPS, 3)
    yield fact("book.imbalance", figure_in(seen, "imbalance"), Unit.NUMBER, 2, signed=True, note=near)
    yield fact("book.buy_slippage", figure_in(seen, "buy_slippage_bps"), Unit.BPS, 3, note=size)
    yield fact("book.sell_slippage", figure_in(seen, "sell_slippage_bps"), Unit.BPS, 3, note=size)
    if isinstance(walls, Missing):
        yield remark("walls.unknown", walls.reason, "unknown: ")
        return
    yield fact("walls.fake", float(len(walls.fake)), Unit.NUMBER, 0, note="that vanished untraded")
    yield fact("walls.unjudged", float(walls.unjudged), Unit.NUMBER, 0)
    for place, wall in largest_walls(walls.fake, 6 if has_anomalies(case) else 2):
        text = f"{'bids' if wall.side is Side.LONG else 'asks'}, fake"
        yield fact(f"walls.fake_{place}_price", wall.price, Unit.PRICE, note=text)
        yield fact(f"walls.fake_{place}_size", wall.times_median, Unit.RATIO, 1, note="of the median")


def largest_walls(fake: Sequence[FakeWall], most: int) -> list[tuple[int, FakeWall]]:
    """The largest of each side, then what else came first, each with its place."""
    placed = list(enumerate(fake, 1))
    sides = [[each for each in placed if each[1].side is side] for side in Side]
    first = [max(walls, key=lambda each: each[1].times_median) for walls in sides if walls]
    return [*first, *(each for each in placed if each not in first)][: max(most, len(first))]


@section("derivatives", 80)
def derivatives_section(case: Case) -> Iterator[Line]:
    rate = in_percent(case.inputs.funding_next)
    how = "assumed, none was recorded" if case.inputs.funding_assumed else "predicted, as if for 8h"
    yield fact("funding_next_8h", rate, Unit.PERCENT, 4, signed=True, note=how)
    for venue in case.features.perpetuals if has_anomalies(case) else case.features.perpetuals[:1]:
        yield from _perpetual_lines(venue)


def _perpetual_lines(perpetual: features.Perpetual) -> Iterator[Line]:
    predicted, week = (in_percent(figure_in(each, "per_8h")) for each in (perpetual.predicted, perpetual.week))
    yield fact(f"{perpetual.venue}.funding_8h", predicted, Unit.PERCENT, 4, signed=True, note="predicted, as if for 8h")
    yield fact(f"{perpetual.venue}.funding_8h_mean_7d", week, Unit.PERCENT, 4, signed=True)
    lower = "of the hours of its week stood lower"
    longs, basis = f"{perpetual.venue}.long_accounts", f"{perpetual.venue}.basis"
    yield fact(longs, in_percent(perpetual.long_share), Unit.PERCENT, 1)
    if not isinstance(perpetual.long_rank, Missing):
        yield fact(f"{longs}_rank", 100 * perpetual.long_rank, Unit.PERCENT, 0, note=lower)
    yield fact(basis, perpetual.basis_bps, Unit.BPS, 2, signed=True)
    if not isinstance(perpetual.basis_rank, Missing):
        yield fact(f"{basis}_rank", 100 * perpetual.basis_rank, Unit.PERCENT, 0, note=lower)


@section("price and volume", 88)
def price_action_section(case: Case) -> Iterator[Line]:
    """The last bar against the twenty before it."""
    seen = case.context.action
    if isinstance(seen, Missing):
        yield remark("price_action.unknown", seen.reason, "unknown: ")
        return
    own, side = seen.timeframe, "above" if seen.breakout is PriceDirection.UP else "below"
    broken = f"closed {side} it" if seen.breakout else "not broken"
    sent = f"sent back {seen.rejection}" if seen.rejection else "no rejection"
    yield fact(f"{own}.range_edge", seen.level, Unit.PRICE, note=f"of {features.ACTION_BARS} bars, {broken}")
    yield fact(f"{own}.volume_ratio", seen.volume_ratio, Unit.RATIO, 1, note="of the mean of the bars before")
    yield fact(f"{own}.wick", 100 * seen.wick_share, Unit.PERCENT, 0, note=f"of the bar's range, {sent}")


@section("options", 90)
def options_section(case: Case) -> Iterator[Line]:
    surface, dvol = case.features.surface, case.features.dvol
    yield fact("dvol.value", figure_in(dvol, "value"), Unit.POINTS, 1)
    if not isinstance(dvol, Missing):
        yield fact("dvol.mean_30d", dvol.mean, Unit.POINTS, 1)
        yield fact("dvol.deviations", dvol.z, Unit.NUMBER, 2, signed=True, note="from its mean")
    held, term = figure_in(surface, "put_call_open_interest"), "7d less 30d volatility"
    yield fact("options.put_call", held, Unit.NUMBER, note="by open interest")
    yield fact("options.term", figure_in(surface, "term"), Unit.POINTS, 1, signed=True, note=term)
    if isinstance(surface, Missing):
        return
    dear = "25-delta, puts are dear if above 0"
    yield fact("options.skew_7d", surface.week.skew25, Unit.POINTS, 1, signed=True, note=dear)
    if has_anomalies(case):
        yield fact("options.put_call_volume", surface.put_call_volume, Unit.NUMBER)
        yield fact("options.skew_30d", surface.month.skew25, Unit.POINTS, 1, signed=True)
        yield fact("options.at_the_money_7d", surface.week.atm, Unit.POINTS, 1)
        yield fact("options.at_the_money_30d", surface.month.atm, Unit.POINTS, 1)


@section("economy", 70)
def economy_section(case: Case) -> Iterator[Line]:
    context, seen = case.context, case.features.economy
    prints = f"over {features.PRINTS} prints"
    yield fact("curve.slope", figure_in(seen.slope, "value"), Unit.POINTS, signed=True, note="ten years less two")
    yield fact("curve.slope_change", figure_in(seen.slope, "change"), Unit.POINTS, signed=True, note=prints)
    yield _change_line("dollar_change", features.DOLLAR[0], context.dollar)
    yield _change_line("stocks_change", features.STOCKS[0], context.stocks)
    shown = dict(seen.figures) if has_anomalies(case) else _always(dict(seen.figures))
    for name, reading in shown.items():
        yield from _reading_lines(name, reading, case.bundle.as_of)
    yield fact("fear_and_greed", figure_in(case.features.mood, "value"), Unit.NUMBER, 0)


def _change_line(id_: str, first: features.MacroQuote, change: Known[features.FigureChange]) -> Line:
    """Under the name of the figure it is of; what nobody knows, under the name of the one that was asked first."""
    called = first.called if isinstance(change, Missing) else change.of.called
    share = in_percent(figure_in(change, "share"))
    return fact(id_, share, Unit.PERCENT, signed=True, note=f"{called} over {features.PRINTS} prints")


def _always(readings: Mapping[str, Known[features.Reading]]) -> dict[str, Known[features.Reading]]:
    """The ten-year yield, the dollar and stocks; beside one that is missing, what stands in for it."""
    shown = {YIELD: readings[YIELD]}
    for several in (features.DOLLAR, features.STOCKS):
        for quoted in several:
            shown[quoted.name] = readings[quoted.name]
            if not isinstance(readings[quoted.name], Missing):
                break
    return shown


def _reading_lines(name: str, reading: Known[features.Reading], as_of: Millis) -> Iterator[Line]:
    id_ = re.sub(r"[^a-z0-9]+", "_", name.lower())
    if isinstance(reading, Missing):
        yield fact(id_, reading, Unit.NUMBER)
        return
    age = (as_of - reading.last.released) / HOUR_MS
    value, since = fact(id_, reading.last.value, Unit.NUMBER), fact(f"{id_}_age", age, Unit.HOURS, 0)
    yield Line(f"{value.text}, released {since.text} ago", (*value.figures, *since.figures))


@section("day", 75)
def day_section(case: Case) -> Iterator[Line]:
    """What the regime is derived from, and why a rule of it cannot be applied."""
    seen, context, inputs = case.features.volatility, case.context, case.inputs
    slope = "unknown" if isinstance(context.days, Missing) else "rising" if context.days.slope > 0 else "falling"
    moved, narrow = "of the last 180 days moved less", "of days had narrower Bollinger bands"
    yield fact("volatility_24h", in_percent(figure_in(seen, "value")), Unit.PERCENT)
    yield fact("volatility_rank", in_percent(figure_in(seen, "rank")), Unit.PERCENT, 1, note=moved)
    yield fact("bollinger_rank", in_percent(context.width_rank), Unit.PERCENT, 0, note=narrow)
    yield Line(f"CVD over {features.FLOW_BARS} days: {slope}")
    if isinstance(inputs.bars, Missing):
        yield remark("bars.unknown", inputs.bars.reason, "candles are unknown: ")
    for known in (inputs.panic, inputs.day_volatility_rank):
        if isinstance(known, Missing):
            yield remark("panic.unknown", known.reason, "whether there is a panic is unknown: ")
            return


@section("levels", 96)
def levels_section(case: Case) -> Iterator[Line]:
    """The menu: whatever price is answered must be one of these."""
    shown = nearest(case)
    head = "by price, the nearest of them" if isinstance(case.menu.now, float) else "by price"
    yield Line(f"{head}; {len(case.menu.levels) - len(shown)} further ones are not shown")
    for level in shown:
        id_ = "level." + re.sub(r"[^a-z0-9_.]+", "_", level.id.lower()).strip("._")
        yield fact(id_, level.price, Unit.PRICE, note=level.kind)


def nearest(case: Case) -> list[MenuLevel]:
    """Every distance and pool, for a stop and a target lie far apart, and of what was measured the nearest."""
    count = DEEP_LEVELS if has_anomalies(case) else QUIET_LEVELS
    now = case.menu.now
    always = [level for level in case.menu.levels if level.kind in (MARK, RANGE, LIQ_CLUSTER)]
    measured = [level for level in case.menu.levels if level.kind not in (MARK, RANGE, LIQ_CLUSTER)]
    if not isinstance(now, Missing):
        measured.sort(key=lambda level: (abs(level.price - now), level.id))
    return sorted((*always, *measured[:count]), key=lambda level: (level.price, level.id))


# -- the blackboard, for those who weigh it


@section("blackboard", 97)
def experts_section(case: Case, board: Blackboard) -> Iterator[Line]:
    mode, facts = case.bundle.mode, market_facts(case)
    yield Line(f"order of conviction in {mode} mode, who weighs most first: {' > '.join(CONVICTION[mode])}")
    there = board_entries(board)
    for expert in Expert:
        yield from _entry_lines(expert, there[expert], facts) if expert in there else (Line(f"{expert}: absent"),)


def _entry_lines(name: str, entry: Entry, facts: FactSheet) -> Iterator[Line]:
    own = tuple(entry_figures(name, entry))
    facts = FactSheet([*facts.values(), *own])
    bias = getattr(entry, "directional_bias", None) or getattr(entry, "options_bias", None)
    leaning = f", bias {bias}" if bias else ""
    lean = LEANINGS[entry.stance]
    speaker = "" if entry.source in ("model", "repaired") else f" ({entry.source})"
    yield Line(f"{name}{speaker}: stance {lean}, anomaly {entry.anomaly}{leaning}")
    for figure in own:
        yield Line(f"{{{figure.id}}} {figure.print()}", (figure,))
    if isinstance(entry, GeometryEntry):
        yield Line(
            f"{name}: pattern {entry.pattern}, cvd signal {entry.cvd_signal or 'not seen'}, "
            f"funding visual {entry.funding_visual or 'not seen'}"
        )
        yield quote(f"{name} on Fibonacci: ", entry.fibonacci_context, facts)
    yield quote(f"{name} says: ", entry.rationale, facts)


def entry_figures(name: str, entry: Entry) -> Iterator[Figure]:
    yield figure_of(f"{name}.confidence", entry.confidence, Unit.NUMBER)
    if (target := getattr(entry, "target_entry", None)) is not None:
        yield figure_of(f"{name}.target_entry", target, Unit.PRICE)
    if isinstance(entry, GeometryEntry):
        for level, value in entry.key_levels.model_dump().items():
            if value is not None:
                yield figure_of(f"{name}.{level}", value, Unit.PRICE)


@section("regime", 98)
def regime_section(meta: Meta) -> Iterator[Line]:
    """Meta's decision by name. Its words may be coloured by strangers and are told as untrusted text."""
    yield Line(f"regime {meta.regime}, risk bias {meta.risk_bias}, trust {meta.trust_directive.expert} more")
    yield fact("risk_budget", float(meta.risk_budget_pct), Unit.PERCENT, 0)


def directive(meta: Meta, *, quotable: bool = True) -> Untrusted:
    """Rules read no strangers' texts, so their words are quotable."""
    by_rule = meta.source in ("deterministic", "fallback")
    note = meta.trust_directive.note
    return Untrusted(note, limit=REMARK_CHARS, quotable=quotable or by_rule, fence="colleague")


@section("synthesis", 94)
def conflicts_section(case: Case, board: Blackboard) -> Iterator[Line]:
    synthesis = board.synthesis
    if synthesis is None:
        yield Line("none was made")
        return
    facts = board_facts(case, board)
    yield Line(f"dominant signal {synthesis.dominant_signal}")
    yield from (quote("agreed: ", text, facts) for text in synthesis.consensus_signals)
    for conflict in synthesis.conflicts:
        first, second = conflict.between
        yield quote(f"conflict: {first} says ", conflict.expert_a_claim, facts)
        yield quote(f"conflict: {second} says ", conflict.expert_b_claim, facts)
        yield quote("what would settle it: ", conflict.tiebreaker, facts)
    yield Line(f"surest expert: {synthesis.highest_confidence_expert}")
    yield quote("open question: ", synthesis.key_uncertainty, facts)
    yield quote("whom to weigh in this regime: ", synthesis.regime_note, facts)


# -- everything that may be cited in a run


@cache_by_market
def market_facts(case: Case) -> FactSheet:
    """Everything that is told of the market, to whomever. Every agent of a run asks for it: worked out once."""
    return build_sheet(
        (
            market_section(case),
            anomalies_section(case),
            indicator_section(case),
            structure_section(case),
            flow_section(case),
            liquidation_section(case),
            book_section(case),
            derivatives_section(case),
            options_section(case),
            economy_section(case),
            day_section(case),
            price_action_section(case),
            levels_section(case),
        )
    )


def board_facts(case: Case, board: Blackboard) -> FactSheet:
    own = [figure for expert, entry in board_entries(board).items() for figure in entry_figures(expert, entry)]
    return FactSheet([*market_facts(case).values(), *own])


# -- words of strangers


def news_section(case: Case) -> Section:
    return _foreign_section(case, "news", Feed.NEWS, CHANNELS, NEWS_CHARS, 20)


def narrative_section(case: Case) -> Section:
    return _foreign_section(case, "narrative", Feed.NARRATIVE, SEARCH, NARRATIVE_CHARS, 25)


def _foreign_section(case: Case, title: str, feed: Feed, venue: str, limit: int, weight: int) -> Section:
    rows: Known[Sequence[Text]] = features.fresh_rows(case.bundle, texts(feed, venue, case.bundle.symbol.base))
    if isinstance(rows, Missing):
        return Section(title, weight, strangers=Untrusted(f"none is known: {rows.reason}", limit=limit, quotable=True))
    newest = sorted(rows, key=lambda row: (row.at, row.id), reverse=True)
    # Each cut short, so that a long one cannot push out the others.
    joined = " · ".join(row.body[: max(limit // 4, 200)] for row in newest[:12])
    return Section(title, weight, strangers=Untrusted(joined, limit=limit))
