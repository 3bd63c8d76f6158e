"""What stood at a moment, in short phrases that cycles recall by and post-mortems are found by. Figures are rounded
before they are put into buckets; a feed that is missing has no phrase."""

from collections.abc import Iterator
from typing import Final

from zuno.trading.measure.features import Features, LiquidationTotals, PriceContext, TakerFlow
from zuno.trading.measure.frames import Frame
from zuno.trading.measure.levels import PatternKind, find_pattern
from zuno.trading.measure.portable import RATIO_PLACES
from zuno.trading.measure.structure import PriceDirection
from zuno.trading.measure.tape import WhaleFlow
from zuno.trading.measure.triage import CLUSTER_USD
from zuno.trading.model.known import Known, Missing, figure_in
from zuno.trading.model.market import Side
from zuno.trading.model.memory import SETUP_MAX

NOTHING_MEASURED: Final = "nothing measured"
"""The setup of a moment of which no feed is known."""
FRESH_BREAK: Final = 3
FAILED_BREAK: Final = 6
FRESH_DIVERGENCE: Final = 15
"""Bars within which each still counts."""
_AT_AVERAGE: Final = 0.25
"""In ATR: a price no further from an average stands at it."""
_WHALES_LEAN: Final = 0.3
"""Of what large trades took: a balance within this says nothing."""

Steps = tuple[tuple[float, str], ...]
"""Lower bounds, highest first, and what a figure at or above one is called; below the last: nothing."""

_FUNDING: Final[Steps] = (
    (0.0005, "funding extremely high"), (0.0002, "funding high"), (0.0, "funding neutral"),
    (-0.0002, "funding negative"), (-1.0, "funding extremely negative"),
)  # fmt: skip
_RSI: Final[Steps] = ((70, "overbought"), (55, "strong"), (45, "neutral"), (30, "weak"), (0, "oversold"))
_ADX: Final[Steps] = ((25, "trending"), (0, "without a trend"))
_RANK_OF_DAY: Final[Steps] = (
    (0.95, "volatility extreme"), (0.7, "volatility high"), (0.3, "volatility normal"), (0, "volatility low"),
)  # fmt: skip
_BANDS: Final[Steps] = ((0.7, "Bollinger bands wide"), (0.3, "Bollinger bands normal"), (0, "Bollinger bands narrow"))
_DAY: Final[Steps] = (
    (0.05, "strong rise in a day"), (0.015, "rise in a day"), (-0.015, "flat day"), (-0.05, "fall in a day"),
    (-1, "strong fall in a day"),
)  # fmt: skip
_WEEK: Final[Steps] = (
    (0.1, "strong rise in a week"), (0.03, "rise in a week"), (-0.03, "flat week"), (-0.1, "fall in a week"),
    (-1, "strong fall in a week"),
)  # fmt: skip
_INTEREST: Final[Steps] = (
    (0.03, "open interest rising"), (-0.03, "open interest steady"), (-1, "open interest falling"),
)  # fmt: skip
_LONGS: Final[Steps] = ((0.95, "longs crowded"), (0.05, ""), (0, "shorts crowded"))
_BASIS: Final[Steps] = ((0.95, "basis high"), (0.05, ""), (0, "basis low"))
_BOOK: Final[Steps] = (
    (0.7, "book far heavier in bids"), (0.3, "book heavier in bids"), (-0.3, "book balanced"),
    (-0.7, "book heavier in asks"), (-1, "book far heavier in asks"),
)  # fmt: skip
_TAKERS: Final[Steps] = ((0.7, "takers buying"), (0.3, "takers balanced"), (0, "takers selling"))
_DVOL: Final[Steps] = ((2, "DVOL in panic"), (1, "DVOL high"), (-1, "DVOL normal"), (-99, "DVOL low"))
_SKEW: Final[Steps] = ((4, "puts very dear"), (2.5, "puts dear"), (0.5, "skew normal"), (-99, "puts cheap"))
_MOOD: Final[Steps] = ((75, "extreme greed"), (55, "greed"), (45, "mood neutral"), (25, "fear"), (0, "extreme fear"))
_DOLLAR: Final[Steps] = ((0.005, "dollar rising"), (-0.005, ""), (-1, "dollar falling"))
_STOCKS: Final[Steps] = ((0.01, "stocks rising"), (-0.01, ""), (-1, "stocks falling"))


def describe_setup(features: Features, context: PriceContext) -> str:
    """The phrases of a moment in a fixed order, `; ` between them; where they are too many, the last are left out."""
    text = ""
    for phrase in dict.fromkeys(_phrases(features, context)):
        longer = f"{text}; {phrase}" if text else phrase
        if phrase and len(longer) <= SETUP_MAX:
            text = longer
    return text or NOTHING_MEASURED


def share_phrases(first: str, second: str) -> float:
    """Of all phrases of two setups the share that both have, in four decimals."""
    here, there = set(first.split("; ")), set(second.split("; "))
    return round(len(here & there) / len(here | there), 4)


def _phrases(features: Features, context: PriceContext) -> Iterator[str]:
    for event in features.events.events:
        yield event.name.replace("_", " ")
    for anomaly in features.triage.anomalies:
        yield anomaly.name.replace("_", " ")
    for _, frame in features.frames:
        if not isinstance(frame, Missing):
            yield from _describe_frame(frame)
    yield _bucket(_DAY, context.day)
    yield _bucket(_WEEK, context.week)
    yield _bucket(_RANK_OF_DAY, figure_in(features.volatility, "rank"))
    yield _bucket(_BANDS, context.width_rank)
    rates = [figure_in(each.predicted, "per_8h") for each in features.perpetuals]
    longs, bases = [each.long_rank for each in features.perpetuals], [each.basis_rank for each in features.perpetuals]
    for steps, figures in ((_FUNDING, rates), (_LONGS, longs), (_BASIS, bases)):  # of the first venue that knows each
        yield _bucket(steps, next((figure for figure in figures if not isinstance(figure, Missing)), Missing("")))
    yield _bucket(_INTEREST, figure_in(features.open_interest_day, "share"))
    yield from _describe_liquidations(features.forced)
    yield from _describe_flow(context.flow)
    yield _describe_whales(features.whales_hour)
    yield _bucket(_BOOK, figure_in(features.book, "imbalance"))
    for wall in () if isinstance(features.walls, Missing) else features.walls.fake:
        yield f"fake wall of {'bids' if wall.side is Side.LONG else 'asks'}"
    yield _bucket(_DVOL, figure_in(features.dvol, "z"))
    if not isinstance(surface := features.surface, Missing):
        yield _bucket(_SKEW, surface.week.skew25)
        if not isinstance(surface.term, Missing) and round(surface.term, RATIO_PLACES) > 0:
            yield "term structure inverted"
    yield _bucket(_MOOD, figure_in(features.mood, "value"))
    yield _bucket(_DOLLAR, figure_in(context.dollar, "share"))
    yield _bucket(_STOCKS, figure_in(context.stocks, "share"))


def _bucket(steps: Steps, figure: Known[float]) -> str:
    if isinstance(figure, Missing):
        return ""
    value = round(figure, RATIO_PLACES)
    return next((name for least, name in steps if value >= least), "")


def _describe_frame(frame: Frame) -> Iterator[str]:
    seen, shape, timeframe = frame.readings, frame.structure, frame.timeframe
    end = seen.at + timeframe.millis
    for last in shape.breaks[-1:]:
        ago, stands = (end - last.known_at) // timeframe.millis, last.way.sign * (seen.close - last.pivot.price) > 0
        if ago <= (FRESH_BREAK if stands else FAILED_BREAK):
            yield f"{'breakout' if stands else 'failed breakout'} {last.way} {timeframe}"
    for divergence in shape.divergences:
        if not divergence.hidden and (end - divergence.known_at) // timeframe.millis <= FRESH_DIVERGENCE:
            way = "bullish" if divergence.way is PriceDirection.UP else "bearish"
            yield f"{way} {divergence.gauge.upper()} divergence {timeframe}"
    pattern = find_pattern(shape.pivots, seen.close, shape.log_atr)
    if pattern is not None and pattern.shape is not PatternKind.OTHER:
        yield f"{pattern.shape.replace('_', ' ')} {'confirmed' if pattern.confirmed else 'forming'} {timeframe}"
    if shape.trend is not None:
        yield f"structure {shape.trend} {timeframe}"
    if seen.rsi is not None:
        yield f"RSI {timeframe} {_bucket(_RSI, seen.rsi)}"
    if seen.adx is not None:
        yield f"{timeframe} {_bucket(_ADX, seen.adx)}"
    if seen.squeeze:
        yield f"squeeze {timeframe}"
    for name, average in (("EMA50", seen.ema50), ("VWAP", seen.vwap)):
        if average is not None and seen.atr:
            gap = round((seen.close - average) / seen.atr, RATIO_PLACES)
            yield f"price {'at' if abs(gap) <= _AT_AVERAGE else 'above' if gap > 0 else 'under'} {name} {timeframe}"


def _describe_liquidations(forced: LiquidationTotals) -> Iterator[str]:
    """A side's hour that is out of its own ordinary; where that is not known, a cluster."""
    for name, hour in (("longs", forced.longs_hour), ("shorts", forced.shorts_hour)):
        if isinstance(hour, Missing):
            continue
        usual = CLUSTER_USD if isinstance(hour.high, Missing) else max(hour.high, CLUSTER_USD)
        if round(hour.usd) > round(usual):
            yield f"liquidations of {name} high"


def _describe_flow(flow: Known[TakerFlow]) -> Iterator[str]:
    if isinstance(flow, Missing):
        return
    leaning, moved = _bucket(_TAKERS, flow.rank), round(flow.moved, RATIO_PLACES)
    yield leaning
    if leaning == "takers selling" and moved > 0:
        yield "price rising against takers"
    if leaning == "takers buying" and moved < 0:
        yield "price falling against takers"


def _describe_whales(hour: Known[WhaleFlow]) -> str:
    if isinstance(hour, Missing) or isinstance(hour.bought_usd, Missing) or isinstance(hour.sold_usd, Missing):
        return ""
    bought, sold = round(hour.bought_usd), round(hour.sold_usd)
    if not bought + sold or abs(bought - sold) < round(_WHALES_LEAN * (bought + sold), RATIO_PLACES):
        return ""
    return "whales buying" if bought > sold else "whales selling"
