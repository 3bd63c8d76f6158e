"""A bundle → what its chart shows: the price with what was measured on it, and the panels under it; nothing is drawn.

Levels are those of the features, by the same ids, of the same bars. The volume profile alone is of the bars that are
shown (`view.…`), for it is drawn beside them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, isfinite
from typing import Any, Final

from zuno.kernel.numbers_text import format_signed, format_span, quantity_text
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.markets.feeds import perpetual_feeds, tape_feeds
from zuno.markets.market import Symbol
from zuno.trading.chart.scales import day_text, moment_text, price_axis, time_ticks, value_axis
from zuno.trading.measure.bars import Bars, Floats, bars
from zuno.trading.measure.derivatives import FundingFigures, funding_figures
from zuno.trading.measure.features import streams_heard
from zuno.trading.measure.frames import measure_structure_of_window
from zuno.trading.measure.heat import TIERS, HeatMap, HeatOrigin, build_heat_map
from zuno.trading.measure.indicators import (
    IndicatorSeries,
    anchored_vwap,
    compute_indicators,
    cvd,
    drop_invalid_bars,
    take_newest_valid_bars,
    volume_profile,
    vwap,
)
from zuno.trading.measure.levels import LevelKind, PriceLevel, Structure
from zuno.trading.measure.structure import Extreme
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.chart import (
    Axis,
    Candles,
    Curve,
    CurveKind,
    GapZone,
    Heat,
    Mark,
    MarkKind,
    MissingPanel,
    Panel,
    PanelShape,
    Picture,
    PricePanel,
    TradePlan,
    TrendSegment,
    Values,
    VolumeProfile,
    short_text,
)
from zuno.trading.model.cycle import Outcome, TradeCard
from zuno.trading.model.known import Missing, pick
from zuno.trading.model.market import Feed, Funding, Level, Mode, Series, Timeframe, funding, open_interest
from zuno.trading.model.wanted import own_candles

TRADE_CHART: Final[Mapping[Mode, tuple[Timeframe, int]]] = {
    Mode.SWING: (Timeframe.H4, 60),
    Mode.POSITION: (Timeframe.D1, 90),
}
"""Bars that a trade is drawn on: near enough for its stop to be seen."""
FEWEST_TRADE_BARS: Final = 20
LEAST_STOP_SHARE: Final = 0.08
"""Of the panel's height: how far the stop should be from the entry."""
PLACES_AHEAD: Final = 14
"""Right of the last bar, for the trade."""
MOST_PIVOTS: Final = 8
MOST_TRADE_PIVOTS: Final = 4
MOST_GAPS: Final = 2
"""Nearest to the price; what is further has no room for a label that can be read."""
MOST_POOLS: Final = 2
"""On either side of the market."""
EMA_BARS: Final = 200
_WHY: Final = 240


def describe(bundle: Bundle, timeframe: Timeframe | None = None, count: int | None = None) -> Picture:
    """What the chart of this bundle's mode shows as of its moment, or the same of other bars that the bundle has."""
    usual, bars_shown = bundle.mode.chart
    return _describe(bundle, timeframe or usual, count or bars_shown)


def describe_trade(bundle: Bundle, trade: TradePlan) -> Picture:
    """The last bars of the timeframe that stops are measured in, with the trade's levels; fewer bars where the stop
    would not be seen otherwise."""
    timeframe, count = TRADE_CHART[bundle.mode]
    window = _window(bundle, timeframe)
    while count > FEWEST_TRADE_BARS and len(window) and not _shows_stop(window.last(count), trade):
        count -= 1
    return _describe(bundle, timeframe, count, trade)


def trade_plan(outcome: Outcome) -> TradePlan | None:
    """The trade of a ruling, or the one a rule held back; None where nothing was to be opened."""
    card, decided = outcome.ruling.card, outcome.decision
    if card is not None:
        levels = card.entry, card.stop, card.target, card.liquidation
        return TradePlan(card.side, *levels, True, _card_text(card, outcome))
    side, prices = decided.decision.side, (decided.entry_price, decided.stop_loss, decided.take_profit)
    entry, stop, target = prices
    if side is None or entry is None or stop is None or target is None:
        return None
    held = f"held by {outcome.ruling.veto}" if outcome.ruling.veto else "not opened"
    ratio = abs(target - entry) / abs(entry - stop) if entry != stop else 0.0
    worth = "" if outcome.expectation is None else f" · EV {format_signed(outcome.expectation.ev_pct)} %"
    return TradePlan(side, entry, stop, target, None, False, f"{held} · R:R {ratio:.2f}{worth}")


def _card_text(card: TradeCard, outcome: Outcome) -> str:
    parts = (
        *(("EXPLORATION, paper",) if card.exploration else ()),
        f"{quantity_text(card.quantity, 8)} {outcome.symbol.base}",
        f"notional ${card.notional_usd:,.2f}",
        f"loss at stop ${card.loss_at_stop_usd:,.2f} ({card.loss_at_stop_pct:.2f} % of equity)",
        f"R:R {card.reward_risk:.2f}",
        f"E[T] {card.duration_hours:.0f} h of {card.hold}",
        f"fair {100 * card.fair:.1f} %",
        f"edge {format_signed(100 * card.edge, 1)} pts",
        f"EV {format_signed(card.ev_pct)} %",
    )
    return " · ".join(parts)


def _shows_stop(shown: Bars, trade: TradePlan) -> bool:
    low = min(float(shown.low.min()), trade.stop, trade.target)
    high = max(float(shown.high.max()), trade.stop, trade.target)
    return abs(trade.entry - trade.stop) >= LEAST_STOP_SHARE * (high - low)


def _describe(bundle: Bundle, timeframe: Timeframe, count: int, trade: TradePlan | None = None) -> Picture:
    window = _window(bundle, timeframe)
    last = Millis(timeframe.floor(bundle.as_of) - timeframe.millis)
    since = last - (count - 1) * timeframe.millis
    shown = window.last(int((window.at >= since).sum()))
    first = Millis(int(shown.at[0])) if len(shown) else None
    width = count if first is None else (last - first) // timeframe.millis + 1
    ahead = 0 if trade is None else PLACES_AHEAD
    price: PricePanel | MissingPanel
    below: tuple[Panel | MissingPanel, ...]
    if first is None:
        price = MissingPanel("price", _no_bars(bundle, timeframe, window))
        why = f"no {timeframe} bar is known to draw it under"
        below = tuple(MissingPanel(title, why) for title in ("volume", "CVD", "open interest", "funding"))
    else:
        opened = opened_by_bar(bundle, shown)
        price = _price(bundle, window, shown, opened, trade)
        below = (
            _draw_volume(shown, bundle.symbol),
            _draw_cvd(shown, bundle.symbol),
            opened if isinstance(opened, MissingPanel) else _draw_open_interest(bundle, shown, opened),
            _draw_funding(bundle, shown),
        )
    side = "" if trade is None else f" · {trade.side.upper()}{'' if trade.opened else ' not opened'}"
    notes = _notes(bundle, timeframe, len(shown), width)
    if first is not None and bundle.candles_only:  # a panel of what this home never recorded says nothing
        left_out = [panel.title for panel in below if isinstance(panel, MissingPanel)]
        below = tuple(panel for panel in below if isinstance(panel, Panel))
        notes += (f"candles only: without {', '.join(left_out)}",) if left_out else ()
    return Picture(
        **pick(bundle, "symbol", "mode", "as_of", "origin", "synthetic"),
        timeframe=timeframe,
        first=first,
        places=() if first is None else tuple(((shown.at - first) // timeframe.millis).tolist()),
        width=width + ahead,
        times=() if first is None else time_ticks(first, width + ahead, timeframe),
        title=f"{bundle.symbol} · {bundle.mode} · {timeframe} × {width}{side} · as of {moment_text(bundle.as_of)} UTC",
        notes=notes,
        price=price,
        panels=below,
    )


def _window(bundle: Bundle, timeframe: Timeframe) -> Bars:
    """What the features are computed from: the last sound bars that had closed."""
    rows = bundle.rows(own_candles(bundle.symbol, timeframe))
    return take_newest_valid_bars(timeframe, rows, bundle.as_of)


def _no_bars(bundle: Bundle, timeframe: Timeframe, window: Bars) -> str:
    series = own_candles(bundle.symbol, timeframe)
    if len(window):
        return f"the newest {timeframe} bar closed on {day_text(ends_at(window))}, before the time that would be shown"
    if bundle.block(series) is not None:
        return f"no {timeframe} bar of {series} is one a market can have made"
    return plain_text(bundle.why_absent(series) or f"{series} is not in the bundle", _WHY)


def _notes(bundle: Bundle, timeframe: Timeframe, count: int, width: int) -> tuple[str, ...]:
    block = bundle.block(own_candles(bundle.symbol, timeframe))
    if block is None or not count:
        return ()
    stale = (f"STALE: the newest bar closed {format_span(block.age)} ago",) if block.stale else ()
    missing = (f"{width - count} of {width} bars are missing",) if width > count else ()
    frozen = tuple(plain_text(note, _WHY) for note in block.notes if "stands still" in note)
    return (*stale, *missing, *frozen)


# -- the price


def _price(
    bundle: Bundle, window: Bars, shown: Bars, opened: OpenInterest | MissingPanel, trade: TradePlan | None = None
) -> PricePanel:
    indicators = compute_indicators(window)
    shape = measure_structure_of_window(window, indicators, bundle.mode.shoulder)
    now = _now(bundle)
    profile = volume_profile(shown) or MissingPanel("volume profile", "the bars shown have no volume")
    ends = [float(shown.low.min()), float(shown.high.max()), now.price]
    ends += [] if trade is None else [trade.entry, trade.stop, trade.target]
    axis = price_axis(min(ends), max(ends))
    curves = tuple(_curves(bundle, window, shown, indicators, shape))
    menu = [level for level in shape.levels if axis.low <= level.price <= axis.high]
    pivots = _nearest((level for level in menu if level.kind is LevelKind.PIVOT), now.price)[:MOST_PIVOTS]
    gaps = _nearest_gaps(menu, now.price)
    ratios = [level for level in menu if level.kind is LevelKind.FIBONACCI]
    if trade is not None:  # its own levels are to be read first
        pivots, gaps, ratios = pivots[:MOST_TRADE_PIVOTS], [], []
    begun = _beginnings(shape)
    marks = []
    for level in (*pivots, *gaps, *ratios):
        since = _since(begun.get((level.since, level.price), level.since), shown)
        marks.append(Mark(level.id, MarkKind(level.kind), _label(level), level.price, since))
    heat = _heat(bundle, shown, opened)
    inside = [mark for mark in (now, *_profile_marks(profile)) if axis.low <= mark.price <= axis.high]
    inside += _pool_marks(heat, now.price, axis, shown)
    inside += [] if trade is None else _trade_marks(trade, shown)
    left = [level for level in menu if level.kind in (LevelKind.PIVOT, LevelKind.GAP)]
    return PricePanel(
        axis=axis,
        candles=Candles(*(tuple(column.tolist()) for column in (shown.open, shown.high, shown.low, shown.close))),
        curves=tuple(curve for curve in curves if isinstance(curve, Curve)),
        marks=tuple(sorted((*inside, *marks), key=lambda mark: (mark.price, mark.id))),
        zones=tuple(_zones(marks)),
        slants=tuple(_slants(shape, shown, axis)),
        swing=_swing(shape, shown) if trade is None else None,
        profile=profile,
        heat=heat,
        left_out=len(left) - len(pivots) - len(gaps),
        absent=tuple(curve for curve in curves if isinstance(curve, MissingPanel)),
        trade=trade,
    )


def _trade_marks(trade: TradePlan, shown: Bars) -> Iterator[Mark]:
    since = _since(int(shown.at[-1]), shown)
    levels = ((MarkKind.ENTRY, trade.entry), (MarkKind.STOP, trade.stop), (MarkKind.TARGET, trade.target))
    for kind, price in (*levels, *(() if trade.liquidation is None else ((MarkKind.LIQUIDATION, trade.liquidation),))):
        near = kind in (MarkKind.STOP, MarkKind.TARGET)
        away = f" {format_signed(100 * (price / trade.entry - 1))} %" if near else ""
        yield Mark(f"trade.{kind}", kind, f"{kind}{away}", price, since)


def _now(bundle: Bundle) -> Mark:
    """The newest close of any bars: finer ones have closed since."""
    known: list[tuple[int, int, float, Timeframe]] = []
    for timeframe in Timeframe:
        rows = reversed(bundle.rows(own_candles(bundle.symbol, timeframe)))
        closed = (row for row in rows if row.at + timeframe.millis <= bundle.as_of)
        last = next((row for row in closed if isfinite(row.close) and row.close > 0), None)
        if last is not None:
            known.append((last.at + timeframe.millis, -timeframe.millis, last.close, timeframe))
    _, _, price, finest = max(known)
    return Mark(f"{finest}.close", MarkKind.NOW, "now", price, 0.0)


def _curves(
    bundle: Bundle, window: Bars, shown: Bars, indicators: IndicatorSeries, shape: Structure
) -> Iterator[Curve | MissingPanel]:
    name = f"EMA{EMA_BARS}"
    short = f"it needs {EMA_BARS} {window.timeframe} bars, {len(window)} are known"
    yield _curve(f"{window.timeframe}.ema200", CurveKind.EMA200, name, _last_values(indicators.ema200, shown), short)
    yield _day_vwap(bundle, shown)
    anchored = {vwap.pivot.extreme: vwap.pivot for vwap in shape.anchored}
    for extreme, kind in ((Extreme.HIGH, CurveKind.VWAP_SINCE_HIGH), (Extreme.LOW, CurveKind.VWAP_SINCE_LOW)):
        label, pivot = f"VWAP since {extreme}", anchored.get(extreme)
        values = () if pivot is None else _last_values(anchored_vwap(window, pivot.at), shown)
        why = f"no {extreme} is confirmed yet that volume followed"
        yield _curve(f"{window.timeframe}.{kind}", kind, label, values, why)


def _day_vwap(bundle: Bundle, shown: Bars) -> Curve | MissingPanel:
    """Of hours, as it stood when each bar closed; a bar of a day or more has no day inside."""
    series = own_candles(bundle.symbol, Timeframe.H1)
    hours = drop_invalid_bars(bars(Timeframe.H1, bundle.rows(series)).upto(bundle.as_of))
    if not len(hours) or ends_at(hours) < ends_at(shown):
        why = bundle.why_absent(series) or f"no hour is known of the end of the last {shown.timeframe} bar"
        return MissingPanel("day VWAP", plain_text(why, _WHY))
    prices = _finite_values(vwap(hours))
    ends = dict(zip((hours.at + hours.timeframe.millis).tolist(), prices, strict=True))
    values = tuple(ends.get(at) for at in (shown.at + shown.timeframe.millis).tolist())
    if prices[-1] is None:
        return MissingPanel("day VWAP", "the day is not known from its first hour on, or nothing was traded in it")
    return Curve(f"{Timeframe.H1}.vwap", CurveKind.DAY_VWAP, "day VWAP", values, prices[-1])


def _curve(name: str, kind: CurveKind, label: str, values: Values, why: str) -> Curve | MissingPanel:
    last = newest(values)
    return MissingPanel(label, why) if last is None else Curve(name, kind, label, values, last)


def _last_values(column: Floats, shown: Bars) -> Values:
    return _finite_values(column[len(column) - len(shown) :])


def _finite_values(column: Floats) -> Values:
    return tuple(value if isfinite(value) else None for value in column.tolist())


# -- levels


def _nearest_gaps(menu: Sequence[PriceLevel], price: float) -> list[PriceLevel]:
    """Both edges of each."""
    edges = {level.id: level for level in menu if level.kind is LevelKind.GAP}
    names = dict.fromkeys(level.id.rpartition("_")[0] for level in _nearest(edges.values(), price))
    whole = [name for name in names if f"{name}_low" in edges and f"{name}_high" in edges][:MOST_GAPS]
    return [edges[f"{name}_{side}"] for name in whole for side in ("low", "high")]


def _nearest(levels: Iterable[PriceLevel], price: float) -> list[PriceLevel]:
    return sorted(levels, key=lambda level: (abs(level.price - price), level.id))


def _beginnings(shape: Structure) -> dict[tuple[Millis, float], Millis]:
    """When the bar opened that made a level, by when it was known and its price: a line is drawn from there."""
    turns = {(pivot.known_at, pivot.price): pivot.at for pivot in shape.pivots}
    edges = {(gap.known_at, edge): gap.at for gap in shape.gaps for edge in (gap.low, gap.high)}
    swing = shape.fibonacci
    ratios = () if swing is None else (*swing.retracements, *swing.extensions)
    return turns | edges | {(swing.known_at, ratio.price): swing.start.at for ratio in ratios if swing is not None}


def _label(level: PriceLevel) -> str:
    """`1d.fib_618` → `fib 0.618`, `1d.pivot_high_1` → `pivot high 1`."""
    name = level.id.partition(".")[2]
    if level.kind is not LevelKind.FIBONACCI:
        return name.replace("_", " ")
    head, _, ratio = name.rpartition("_")
    return f"{head.replace('_', ' ')} {int(ratio) / 1_000:g}"


def _zones(marks: Sequence[Mark]) -> Iterator[GapZone]:
    gaps = [mark for mark in marks if mark.kind is MarkKind.GAP]
    for low, high in zip(gaps[::2], gaps[1::2], strict=True):
        yield GapZone(low.price, high.price, low.since)


def _slants(shape: Structure, shown: Bars, axis: Axis) -> Iterator[TrendSegment]:
    """The newest trend line of each kind that still stands, from its first pivot, or from where the picture begins."""
    now = int(shown.at[-1])
    for extreme, name in ((Extreme.HIGH, "resistance"), (Extreme.LOW, "support")):
        standing = [line for line in shape.lines if line.extreme is extreme and line.broken_at is None]
        for line in standing[-1:]:
            begin = max(int(line.first.at), int(shown.at[0]))
            start, end = (_point(at, line.price_at(at), shown) for at in (begin, now))
            slant = TrendSegment(f"{shown.timeframe}.line_{name}", f"{name} line", start, end)
            if axis.low <= slant.price <= axis.high and start[1] > 0:
                yield slant


def _swing(shape: Structure, shown: Bars) -> TrendSegment | None:
    swing = shape.fibonacci
    if swing is None or swing.start.at < shown.at[0]:
        return None
    start, end = swing.start, swing.end
    return TrendSegment("swing", "swing", _point(start.at, start.price, shown), _point(end.at, end.price, shown))


def _point(at: int, price: float, shown: Bars) -> tuple[float, float]:
    return (at - int(shown.at[0])) / shown.timeframe.millis, price


def _since(at: int, shown: Bars) -> float:
    """The place of a moment, no further left than the first bar."""
    return max(0.0, (at - int(shown.at[0])) / shown.timeframe.millis)


# -- volume by price, and liquidations


def _profile_marks(profile: VolumeProfile | MissingPanel) -> Iterator[Mark]:
    if isinstance(profile, VolumeProfile):
        for name, label in (("poc", "POC"), ("value_low", "value area low"), ("value_high", "value area high")):
            yield Mark(f"view.{name}", MarkKind.PROFILE, label, getattr(profile, name), 0.0)


def _heat(bundle: Bundle, shown: Bars, opened: OpenInterest | MissingPanel) -> Heat | MissingPanel:
    ends = (shown.at + shown.timeframe.millis).tolist()
    values = () if isinstance(opened, MissingPanel) else zip(ends, opened.values, strict=True)
    readings = tuple(Level(Millis(at), value) for at, value in values if value is not None)
    streams = streams_heard(bundle, Feed.LIQUIDATIONS, *tape_feeds(bundle.symbol))
    heat_map = build_heat_map(shown, streams, readings)
    if isinstance(heat_map, Missing):
        return MissingPanel("liquidation heat map", heat_map.reason)
    return Heat(
        heat_map.origin,
        _heat_note(heat_map, [stream.venue for stream in streams], set(tape_feeds(bundle.symbol))),
        tuple(heat_map.edges.tolist()),
        tuple(map(tuple, heat_map.usd.T.tolist())),
        tuple(map(tuple, heat_map.forced.T.tolist())),
        tuple(heat_map.observed.tolist()),
        tuple(heat_map.heard.tolist()),
    )


def _pool_marks(heat: Heat | MissingPanel, now: float, axis: Axis, shown: Bars) -> Iterator[Mark]:
    """The largest pools that stand now, above the market and below it."""
    if isinstance(heat, MissingPanel):
        return
    since = _since(int(shown.at[-1]), shown)
    middles = [(low + high) / 2 for low, high in pairwise(heat.edges)]
    pools = [(usd, price) for usd, price in zip(heat.standing, middles, strict=True) if usd > 0]
    for name, beyond in (("above", 1), ("below", -1)):
        inside = [pool for pool in pools if beyond * (pool[1] - now) > 0 and axis.low <= pool[1] <= axis.high]
        for rank, (usd, price) in enumerate(sorted(inside, key=lambda pool: (-pool[0], pool[1]))[:MOST_POOLS], 1):
            yield Mark(f"view.pool_{name}_{rank}", MarkKind.POOL, f"pool ${short_text(usd)}", price, since)


def _heat_note(heat_map: HeatMap, venues: Sequence[str], asked: Set[str]) -> str:
    """What the heat map shows, since when liquidations were observed, and at which venues if not at all."""
    bound = "a lower bound" if set(venues) == asked else f"a lower bound, {', '.join(venues)} alone"
    pools = f"pools from {heat_map.source} at {TIERS[0][0]:g}×–{TIERS[-1][0]:g}×"
    if heat_map.origin is HeatOrigin.MODELLED:
        return pools
    first = int(heat_map.observed.argmax())
    since, rest = day_text(int(heat_map.at[first])), heat_map.observed[first:]
    places = "" if rest.all() else f"in {int(rest.sum())} bars "
    return f"forced out {places}from {since}, {bound}; {pools}"


LEAST_SHARE: Final = 0.5
"""Of the bars that the best known venue speaks of: one that speaks of fewer would only shorten the sum."""
_PANEL_WHY: Final = 160


@dataclass(frozen=True, slots=True)
class OpenInterest:
    """Base units at the end of each bar, over the same venues in all of them."""

    values: Values
    venues: tuple[str, ...]
    dropped: tuple[str, ...]


def opened_by_bar(bundle: Bundle, bars: Bars) -> OpenInterest | MissingPanel:
    """The sum over the venues that are known at the end and at no less than half as many bars as the best known."""
    series = {venue: open_interest(venue, bundle.symbol) for venue in perpetual_feeds(bundle.symbol)}
    known = {venue: _last_within(bars, bundle.rows(rows)) for venue, rows in series.items()}
    counts = {venue: sum(value is not None for value in values) for venue, values in known.items()}
    most = max(counts.values())
    if not most:
        return MissingPanel("open interest", _why_absent(bundle, series, "no reading is of a bar that is shown"))
    newest = max(place for values in known.values() for place, value in enumerate(values) if value is not None)
    kept = [venue for venue in series if counts[venue] >= LEAST_SHARE * most and known[venue][newest] is not None]
    sums = zip(*(known[venue] for venue in kept), strict=True)
    values = tuple(None if None in row else fsum(value for value in row if value is not None) for row in sums)
    return OpenInterest(values, tuple(kept), tuple(venue for venue in series if venue not in kept))


def newest(values: Values) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _draw_volume(bars: Bars, symbol: Symbol) -> Panel:
    values: tuple[float, ...] = tuple(bars.volume.tolist())
    rising = tuple((bars.close >= bars.open).tolist())
    axis = value_axis(values, from_zero=True)
    return Panel("volume", f"volume, {symbol.base}", PanelShape.BARS, axis, values, rising, values[-1], symbol.base, "")


def _draw_cvd(bars: Bars, symbol: Symbol) -> Panel | MissingPanel:
    values = _finite_values(cvd(bars))
    known = [value for value in values if value is not None]
    if not known:
        return MissingPanel("CVD", "the venue does not say in any bar shown who took its volume")
    gone = len(values) - len(known)
    note = f"unknown in {gone} bars, from zero again after each" if gone else ""
    title = f"CVD since the first bar shown, {symbol.base}"
    axis = value_axis(known, from_zero=True)
    return Panel("cvd", title, PanelShape.LINE, axis, values, (), known[-1], symbol.base, note)


def _draw_open_interest(bundle: Bundle, bars: Bars, opened: OpenInterest) -> Panel:
    known = [value for value in opened.values if value is not None]
    title = f"open interest, {bundle.symbol.base}, {' + '.join(opened.venues)}"
    series = [open_interest(venue, bundle.symbol) for venue in opened.venues]
    notes = [*_absent_before(bars, opened.values), *_stale(bundle, series)]
    notes += [f"without {', '.join(opened.dropped)}"] if opened.dropped else []
    axis, unit = value_axis(known, from_zero=False), bundle.symbol.base
    return Panel("open_interest", title, PanelShape.LINE, axis, opened.values, (), known[-1], unit, "; ".join(notes))


def _draw_funding(bundle: Bundle, bars: Bars) -> Panel | MissingPanel:
    """Of the first venue with a rate to believe: the mean of each bar's settled rates, as if paid every eight hours."""
    series = {venue: funding(venue, bundle.symbol) for venue in perpetual_feeds(bundle.symbol)}
    for venue, rates in series.items():
        values, dropped = _mean_within(bars, bundle.rows(rates))
        known = [value for value in values if value is not None]
        if known:
            notes = [*_absent_before(bars, values), *_stale(bundle, [rates])]
            notes += [f"{dropped} rates could not be believed"] if dropped else []
            rising = tuple(value is not None and value >= 0 for value in values)
            title, unit = f"funding, % per 8 h, {venue}, mean of each bar", "% per 8 h"
            axis, note = value_axis(known, from_zero=True), "; ".join(notes)
            return Panel("funding", title, PanelShape.BARS, axis, values, rising, known[-1], unit, note)
    none = "no rate that can be believed was settled in a bar that is shown"
    return MissingPanel("funding", _why_absent(bundle, series, none))


def _last_within(bars: Bars, rows: Sequence[Level]) -> Values:
    """The last reading of each bar, its end included."""
    sound = [row for row in rows if isfinite(row.value) and row.value > 0]
    at = [row.at for row in sound]
    values: list[float | None] = []
    for opened in bars.at.tolist():
        place = bisect_right(at, opened + bars.timeframe.millis) - 1
        values.append(sound[place].value if place >= 0 and at[place] > opened else None)
    return tuple(values)


def _mean_within(bars: Bars, rows: Sequence[Funding]) -> tuple[Values, int]:
    """Per cent for eight hours, and how many rates of the time shown were dropped."""
    at = [row.at for row in rows]
    means: list[float | None] = []
    dropped = 0
    for opened in bars.at.tolist():
        within = rows[bisect_right(at, opened) : bisect_right(at, opened + bars.timeframe.millis)]
        figures = [figure for figure in map(funding_figures, within) if isinstance(figure, FundingFigures)]
        dropped += len(within) - len(figures)
        means.append(100 * fsum(figure.per_8h for figure in figures) / len(figures) if figures else None)
    return tuple(means), dropped


def _absent_before(bars: Bars, values: Values) -> list[str]:
    first = next(place for place, value in enumerate(values) if value is not None)
    return [f"absent before {day_text(int(bars.at[first]))}"] if first else []


def _stale(bundle: Bundle, series: Sequence[Series[Any]]) -> list[str]:
    blocks = [block for each in series if (block := bundle.block(each)) is not None and block.stale]
    return [f"STALE: {block.series.venue} of {format_span(block.age)} ago" for block in blocks]


def _why_absent(bundle: Bundle, series: Mapping[str, Series[Any]], otherwise: str) -> str:
    venues_by_reason: dict[str, list[str]] = {}
    for venue, each in series.items():
        why = bundle.why_absent(each)
        venues_by_reason.setdefault(plain_text(why, _PANEL_WHY) if why else otherwise, []).append(venue)
    return "; ".join(f"{', '.join(venues)}: {why}" for why, venues in venues_by_reason.items())


def ends_at(bars: Bars) -> Millis:
    return Millis(int(bars.at[-1]) + bars.timeframe.millis)
