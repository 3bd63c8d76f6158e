"""A bundle → every figure the desk argues about; the same on every machine. What would rest on a stale fact is missing
and says so; gauges of old bars are true of their own time and carry it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isfinite
from operator import mul
from statistics import fmean
from typing import Final, TypeVar

import numpy as np

from zuno.kernel.units import Millis
from zuno.markets.feeds import ALTERNATIVE, FIGURES, FRED, YAHOO, large_trades_feed, perpetual_feeds, tape_feeds
from zuno.trading.measure import derivatives, indicators, options, order_book, tape, triage
from zuno.trading.measure.bars import LOOKBACK, Bars, Floats
from zuno.trading.measure.events import RecentEvents, ShockScan, find_recent_events, scan_shocks
from zuno.trading.measure.frames import Frame, FrameCache
from zuno.trading.measure.indicators import drop_invalid_bars, rolling_sum, taker_delta
from zuno.trading.measure.portable import PRICE_PLACES, RATIO_PLACES, log
from zuno.trading.measure.structure import PriceDirection
from zuno.trading.measure.triage import SPIKE_VOLUME
from zuno.trading.model import market
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.known import Known, Missing, NotRecorded, figure_in
from zuno.trading.model.wanted import RATE_SERIES, options_of, own_book, own_candles

CADENCE_DAYS: Final[Mapping[str, int]] = {"CPIAUCSL": 31, "FEDFUNDS": 31, "DTWEXBGS": 7, "DCOILWTICO": 7}
"""How often a figure is released that is not released every working day: it may be so much older."""
PRINTS: Final = 5
"""Prints over which a change of the slope, the dollar or stocks is taken."""


@dataclass(frozen=True, slots=True)
class Reading:
    last: market.MacroRelease


@dataclass(frozen=True, slots=True)
class Slope:
    """The ten-year yield less the two-year yield, in percentage points, on the last day that has both."""

    at: Millis
    value: float
    change: Known[float]
    """Against five prints earlier."""


def last_print(figure: str, prints: Sequence[market.MacroRelease], as_of: Millis) -> Known[Reading]:
    known = _known_by(prints, as_of)
    if not known:
        return Missing(f"no print of {figure} was known")
    latest = known[max(known)]
    late = _late(figure, latest, as_of)
    return Reading(latest) if late is None else Missing(late)


def slope(
    two_years: Sequence[market.MacroRelease], ten_years: Sequence[market.MacroRelease], as_of: Millis
) -> Known[Slope]:
    """2s10s from the days on which both were printed: one day's two against another day's ten is no slope."""
    short, long = _known_by(two_years, as_of), _known_by(ten_years, as_of)
    days = sorted(short.keys() & long.keys())
    if not days:
        return Missing("no day is known on which both the two-year and the ten-year yield were printed")
    for figure, print_ in (("DGS2", short[days[-1]]), ("DGS10", long[days[-1]])):
        if late := _late(figure, print_, as_of):
            return Missing(late)
    values = [long[day].value - short[day].value for day in days]
    change: Known[float] = Missing(f"{len(days)} days with both yields are known, {PRINTS + 1} are needed")
    if len(days) > PRINTS:
        change = values[-1] - values[-1 - PRINTS]
    return Slope(days[-1], values[-1], change)


def _late(figure: str, last: market.MacroRelease, as_of: Millis) -> str | None:
    """Whether nothing was released for five days, or for so long after the next was due."""
    limit = CADENCE_DAYS.get(figure, 0) * market.DAY_MS + market.STALE_AFTER[market.Feed.MACRO] * 1_000
    age = as_of - last.released
    if age <= limit:
        return None
    return f"the last {figure} was released {age // market.DAY_MS} days ago, more than {limit // market.DAY_MS}"


def _known_by(prints: Sequence[market.MacroRelease], as_of: Millis) -> dict[Millis, market.MacroRelease]:
    """By day, the newest release the world knew. One that is no number was never a print."""
    known: dict[Millis, market.MacroRelease] = {}
    for row in sorted(prints, key=lambda row: row.released):
        if row.released <= as_of and isfinite(row.value):
            known[row.at] = row
    return known


VOLATILITY_HOURS: Final = 24
VOLATILITY_HISTORY_HOURS: Final = 180 * 24
LEAST_VOLATILITY_HISTORY: Final = 30 * 24
"""Days that end at so many different hours make a rank; fewer make an anecdote."""


@dataclass(frozen=True, slots=True)
class DayVolatility:
    """The root of the summed squares of the last 24 hourly log returns, and where that stands."""

    value: float
    """A fraction: 0.03 is a day whose hours add up to three per cent."""
    rank: Known[float]
    """The share of the days of the last 180, one ending with each hour, that moved less: 0.95 is panic's edge."""
    days: int
    """How many such days it was held against."""


def day_volatility(hours: Bars) -> Known[DayVolatility]:
    """Of the newest 1h bar. A day with a missing hour is no day: it is left out, and the newest must be whole."""
    bars = drop_invalid_bars(hours).last(VOLATILITY_HISTORY_HOURS + VOLATILITY_HOURS + 1)
    if len(bars) <= VOLATILITY_HOURS:
        return Missing(f"{len(bars)} closed hours are known, {VOLATILITY_HOURS + 1} are needed")
    squares = np.square(np.diff(log(bars.close)))
    squares[np.diff(bars.at) != market.HOUR_MS] = np.nan
    days = np.sqrt(rolling_sum(squares, VOLATILITY_HOURS)[VOLATILITY_HOURS - 1 :])
    if np.isnan(days[-1]):
        return Missing(f"an hour is missing among the last {VOLATILITY_HOURS + 1}")
    rank, count = _rank_last(days, LEAST_VOLATILITY_HISTORY, "whole days are known, {} are needed for a rank")
    return DayVolatility(float(days[-1]), rank, count)


def _rank_last(values: Floats, least: int, short: str) -> tuple[Known[float], int]:
    """The share of known values before the last that are below it, and their count. `short`: of fewer than `least`."""
    past = values[:-1][np.isfinite(values[:-1])]
    if len(past) < least:
        return Missing(f"{len(past)} {short.format(least)}"), len(past)
    return float(np.mean(past < values[-1])), len(past)


R = TypeVar("R", bound=market.Row)


@dataclass(frozen=True, slots=True)
class Perpetual:
    venue: str
    predicted: Known[derivatives.FundingFigures]
    week: Known[derivatives.MeanFunding]
    open_interest: Known[market.Level]
    long_share: Known[float]
    basis_bps: Known[float]
    long_rank: Known[float]
    basis_rank: Known[float]
    """Where each stands among the hours of its own week."""


@dataclass(frozen=True, slots=True)
class LiquidationTotals:
    longs_hour: Known[tape.SideHour]
    shorts_hour: Known[tape.SideHour]
    day: tape.TapeTotals


@dataclass(frozen=True, slots=True)
class Economy:
    figures: tuple[tuple[str, Known[Reading]], ...]
    """By `venue/figure`."""
    slope: Known[Slope]


@dataclass(frozen=True, slots=True)
class Features:
    """Everything measured of one symbol at one moment; what is missing says why."""

    frames: tuple[tuple[market.Timeframe, Known[Frame]], ...]
    """The mode's own timeframes, shortest first."""
    volatility: Known[DayVolatility]
    perpetuals: tuple[Perpetual, ...]
    open_interest_hour: Known[derivatives.OpenInterestChange]
    open_interest_day: Known[derivatives.OpenInterestChange]
    book: Known[order_book.BookFigures]
    walls: Known[order_book.Walls]
    forced: LiquidationTotals
    whales_hour: Known[tape.WhaleFlow]
    whales_day: Known[tape.WhaleFlow]
    surface: Known[options.Surface]
    dvol: Known[triage.VolatilityIndex]
    economy: Economy
    mood: Known[market.Level]
    rates: Mapping[str, Known[market.Level]]
    """By currency, as their sources quote them."""
    triage: triage.Triage
    watch: Known[ShockScan]
    """Shocks of the last day."""
    events: RecentEvents


def measure_features(bundle: Bundle, cache: FrameCache | None = None) -> Features:
    symbol, as_of, cache = bundle.symbol, bundle.as_of, cache or FrameCache()
    timeframes = (market.Timeframe.H1, market.Timeframe.M1)
    hours, minutes = (cache.read_bars(symbol, each, bundle.rows(own_candles(symbol, each))) for each in timeframes)
    recent = fresh_rows(bundle, own_candles(symbol, market.Timeframe.H1))
    interest = {feed: bundle.rows(market.open_interest(feed, symbol)) for feed in perpetual_feeds(symbol)}
    book, walls = _book(bundle)
    heard = tape.TapeMinutes(streams_heard(bundle, market.Feed.LIQUIDATIONS, *tape_feeds(symbol)))
    longs, shorts = (heard.last_hour(side, as_of) for side in (market.Side.LONG, market.Side.SHORT))
    forced = LiquidationTotals(longs, shorts, heard.tally(Millis(as_of - market.DAY_MS), as_of))
    chains, index = options_of(symbol)
    chain = _newest(bundle, chains)
    surface = chain if isinstance(chain, Missing) else options.measure_surface(chain)
    dvol = bundle.find_unoffered(index) or triage.measure_dvol(bundle.rows(index), as_of)
    whales = streams_heard(bundle, market.Feed.WHALES, large_trades_feed(symbol))
    whales_hour, whales_day = tape.whale_flow(whales, as_of, market.HOUR_MS, market.DAY_MS)
    spike = triage.measure_spike(hours, interest, as_of)
    if not isinstance(spike, Missing) and bundle.candles_only and not any(interest.values()):
        spike = replace(spike, open_interest=NotRecorded("no open interest was recorded here"))
    watched = hours.last(LOOKBACK) if bundle.candles_only and not len(minutes) else minutes
    watch = scan_shocks(watched, hours.last(LOOKBACK), as_of, Millis(as_of - market.DAY_MS))
    figures = (market.macro(feed, name) for feed, named in FIGURES.items() for name in named)
    prints = [row for series in figures for row in bundle.rows(series)]
    return Features(
        frames=tuple((timeframe, _frame(bundle, timeframe, cache)) for timeframe in bundle.mode.timeframes),
        volatility=recent if isinstance(recent, Missing) else day_volatility(hours),
        perpetuals=tuple(_perpetual(bundle, feed) for feed in perpetual_feeds(symbol)),
        open_interest_hour=derivatives.open_interest_change(interest, Millis(as_of - market.HOUR_MS), as_of),
        open_interest_day=derivatives.open_interest_change(interest, Millis(as_of - market.DAY_MS), as_of),
        book=book,
        walls=walls,
        forced=forced,
        whales_hour=whales_hour,
        whales_day=whales_day,
        surface=surface,
        dvol=dvol,
        economy=cache.read_shared("economy", prints, as_of, lambda: _economy(bundle)),
        mood=_within(_newest(bundle, market.fear_greed(ALTERNATIVE)), 0, 100),
        rates={currency: _above_zero(_newest(bundle, series)) for currency, series in RATE_SERIES.items()},
        triage=triage.triage(
            triage.Evidence(
                spike=spike,
                liquidations=(forced.longs_hour, forced.shorts_hour),
                imbalance=figure_in(book, "imbalance"),
                dvol=dvol,
                term=figure_in(surface, "term"),
            )
        ),
        watch=watch,
        events=find_recent_events(spike, watch, as_of),
    )


# -- facts, if they can be believed


def fresh_rows(bundle: Bundle, series: market.Series[R]) -> Known[Sequence[R]]:
    """The rows of a series that is here and not stale."""
    block = bundle.block(series)
    if block is None:
        return bundle.find_unoffered(series) or Missing(bundle.why_absent(series) or "it was not asked for")
    if block.stale:
        return Missing(f"the newest word of {series} is {block.age} s old, more than {block.limit}")
    return block.rows


def _newest(bundle: Bundle, series: market.Series[R]) -> Known[R]:
    rows = fresh_rows(bundle, series)
    if isinstance(rows, Missing):
        return rows
    return rows[-1] if rows else Missing(f"{series} has no row")


def _within(level: Known[market.Level], low: float, high: float) -> Known[market.Level]:
    """A value outside the range is in another unit."""
    if isinstance(level, Missing) or low <= level.value <= high:
        return level
    return Missing(f"{level.value:g} is not between {low:g} and {high:g}")


def _above_zero(level: Known[market.Level]) -> Known[market.Level]:
    return level if isinstance(level, Missing) or level.value > 0 else Missing(f"{level.value:g} is no rate or amount")


# -- each part


def _frame(bundle: Bundle, timeframe: market.Timeframe, cache: FrameCache) -> Known[Frame]:
    series = own_candles(bundle.symbol, timeframe)
    frame = cache.read_frame(bundle.symbol, timeframe, bundle.rows(series), bundle.mode.shoulder)
    return frame or Missing(bundle.why_absent(series) or "no bar of it can be believed")


def _perpetual(bundle: Bundle, venue: str) -> Perpetual:
    symbol = bundle.symbol
    predicted = _newest(bundle, market.funding_next(venue, symbol))
    settled = fresh_rows(bundle, market.funding(venue, symbol))
    longs, long_rank = _rank_newest(fresh_rows(bundle, market.long_short(venue, symbol)), derivatives.long_share)
    premium, basis_rank = _rank_newest(fresh_rows(bundle, market.basis(venue, symbol)), derivatives.basis_bps)
    return Perpetual(
        venue,
        predicted if isinstance(predicted, Missing) else derivatives.funding_figures(predicted),
        settled if isinstance(settled, Missing) else derivatives.mean_funding(settled, bundle.as_of),
        _above_zero(_newest(bundle, market.open_interest(venue, symbol))),
        longs,
        premium,
        long_rank,
        basis_rank,
    )


def _rank_newest(rows: Known[Sequence[R]], measure: Callable[[R], Known[float]]) -> tuple[Known[float], Known[float]]:
    """The newest figure, and where it stands among the hours of its week."""
    if isinstance(rows, Missing):
        return rows, rows
    if not rows:
        return (gone := Missing("it has no row")), gone
    measured = [(row.at, figure) for row in rows if not isinstance(figure := measure(row), Missing)]
    now = measure(rows[-1])
    return now, now if isinstance(now, Missing) else derivatives.rank_among_hours(measured)


def _book(bundle: Bundle) -> tuple[Known[order_book.BookFigures], Known[order_book.Walls]]:
    snapshots: Known[Sequence[market.Book]] = fresh_rows(bundle, own_book(bundle.symbol))
    if isinstance(snapshots, Missing):
        return snapshots, snapshots
    traded = order_book.traded_in_minutes(bundle.rows(own_candles(bundle.symbol, market.Timeframe.M1)))
    return order_book.book_figures(snapshots[-1]), order_book.find_fake_walls(snapshots, traded)


def streams_heard(bundle: Bundle, feed: market.Feed, *venues: str) -> list[tape.Stream]:
    """Streams with any event or sign of life: a venue nobody listened to does not make the others' silence unknown."""
    symbol, strikes = bundle.symbol, market.liquidations if feed is market.Feed.LIQUIDATIONS else market.whales
    several = ((venue, strikes(venue, symbol), market.alive(feed, venue, symbol)) for venue in venues)
    heard = [tape.Stream(venue, bundle.rows(struck), bundle.rows(alive)) for venue, struck, alive in several]
    return [stream for stream in heard if stream.alive or stream.strikes]


def _economy(bundle: Bundle) -> Economy:
    as_of = bundle.as_of

    def prints(venue: str, figure: str) -> Sequence[market.MacroRelease]:
        return bundle.rows(market.macro(venue, figure))

    named = [(venue, figure) for venue, figures in FIGURES.items() for figure in figures]
    figures = ((f"{venue}/{figure}", last_print(figure, prints(venue, figure), as_of)) for venue, figure in named)
    return Economy(tuple(figures), slope(prints(FRED, "DGS2"), prints(FRED, "DGS10"), as_of))


FLOW_BARS: Final = 30
ACTION_BARS: Final = 20
REJECTION_WICK: Final = 0.6
"""The share of a bar's range, which is no less than usual, from which a wick is a rejection."""
WIDTH_BARS: Final = 180
"""Days a band's width is held against."""
LEAST_PAST: Final = 60


@dataclass(frozen=True, slots=True)
class MacroQuote:
    """A figure of the economy as one venue prints it."""

    venue: str
    figure: str
    called: str
    """By its own name, so that nobody takes it for what it stands in for."""

    @property
    def name(self) -> str:
        return f"{self.venue}/{self.figure}"


DOLLAR: Final = (
    MacroQuote(YAHOO, "DXY", "DXY"),
    MacroQuote(FRED, "DTWEXBGS", "broad dollar index of FRED (DTWEXBGS, not DXY)"),
)
STOCKS: Final = (MacroQuote(YAHOO, "NASDAQ", "Nasdaq"), MacroQuote(FRED, "NASDAQCOM", "Nasdaq by FRED (NASDAQCOM)"))
"""Who is asked first, and who stands in for it."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure against five prints earlier. All of them are of one venue's one figure."""

    of: MacroQuote
    share: float


@dataclass(frozen=True, slots=True)
class TakerFlow:
    """Takers and the price over the last bars of one timeframe."""

    timeframe: market.Timeframe
    moved: float
    """The price's change, as a share."""
    balance: float
    """What takers bought less what they sold, as a share of what was traded."""
    rank: Known[float]
    """The share of earlier stretches as long in which they leaned less to buying."""
    slope: float
    """Of the line through the running balance: base units a bar."""


@dataclass(frozen=True, slots=True)
class PriceAction:
    """The last bar of the mode's shortest timeframe against the twenty before it: price and volume alone."""

    timeframe: market.Timeframe
    breakout: PriceDirection | None
    """Whether it closed above their highest high or below their lowest low."""
    level: float
    """That high or low; of no breakout, the nearer of the two."""
    volume_ratio: float
    """Its volume over their mean."""
    rejection: PriceDirection | None
    """A wick of most of its range says where the price was sent back to."""
    wick_share: float
    """The longer wick as a share of the range."""

    @property
    def volume_backing(self) -> float:
        """How much of a volume spike it had: none at the usual volume or less, all from twice as much on."""
        return min(1.0, max(0.0, (self.volume_ratio - 1) / (SPIKE_VOLUME - 1)))


@dataclass(frozen=True, slots=True)
class RunningBar:
    """The day that has not closed, as far as its closed hours go: no gauge, level or break is taken from it."""

    hours: int
    open: float
    high: float
    low: float
    last: float


@dataclass(frozen=True, slots=True)
class PriceContext:
    day: Known[float]
    """The price's change over 24 hours, as a share."""
    week: Known[float]
    flow: Known[TakerFlow]
    """Of the mode's middle timeframe."""
    days: Known[TakerFlow]
    """Of 1d bars."""
    width_rank: Known[float]
    """The share of earlier days whose Bollinger bands were narrower than the last."""
    dollar: Known[FigureChange]
    stocks: Known[FigureChange]
    action: Known[PriceAction]
    today: Known[RunningBar]


def read_price_context(bundle: Bundle, cache: FrameCache | None = None) -> PriceContext:
    def window(timeframe: market.Timeframe) -> Known[Bars]:
        return read_window(bundle, timeframe, cache or FrameCache())

    hours, days = window(market.Timeframe.H1), window(market.Timeframe.D1)
    return PriceContext(
        day=measure_change(hours, 24),
        week=measure_change(hours, 7 * 24),
        flow=_flow(window(bundle.mode.timeframes[1])),
        days=_flow(days),
        width_rank=_width_rank(days),
        dollar=_first_known(bundle, DOLLAR),
        stocks=_first_known(bundle, STOCKS),
        action=measure_price_action(window(bundle.mode.timeframes[0])),
        today=_running_day(hours, market.Timeframe.D1.floor(bundle.as_of)),
    )


def _running_day(hours: Known[Bars], opened: Millis) -> Known[RunningBar]:
    if isinstance(hours, Missing):
        return hours
    since = hours.cut(hours.at >= opened)
    if not len(since):
        return Missing("no hour of the running day has closed")
    high, low = float(since.high.max()), float(since.low.min())
    return RunningBar(len(since), float(since.open[0]), high, low, float(since.close[-1]))


def read_window(bundle: Bundle, timeframe: market.Timeframe, cache: FrameCache) -> Known[Bars]:
    """The last sound bars of a timeframe, where they are not stale."""
    rows = fresh_rows(bundle, own_candles(bundle.symbol, timeframe))
    if isinstance(rows, Missing):
        return rows
    window = cache.read_newest(bundle.symbol, timeframe, rows, bundle.as_of)
    return window if len(window) else Missing(f"no {timeframe} bar can be believed")


def measure_change(hours: Known[Bars], count: int) -> Known[float]:
    """The price's change over so many hours, as a share."""
    if isinstance(hours, Missing):
        return hours
    end = int(hours.at[-1])
    place = int(np.searchsorted(hours.at, end - count * market.HOUR_MS))
    if hours.at[place] != end - count * market.HOUR_MS:
        return Missing(f"the hour {count} hours before the last is not known")
    return float(hours.close[-1] / hours.close[place]) - 1


def measure_price_action(window: Known[Bars]) -> Known[PriceAction]:
    if isinstance(window, Missing):
        return window
    if len(window) <= ACTION_BARS:
        return Missing(f"{len(window)} {window.timeframe} bars are known, {ACTION_BARS + 1} are needed")
    before, usual = slice(-1 - ACTION_BARS, -1), fmean(window.volume[-1 - ACTION_BARS : -1].tolist())
    if not usual:
        return Missing(f"nothing traded in the {ACTION_BARS} {window.timeframe} bars before the last")
    opened, high, low, close = (float(c[-1]) for c in (window.open, window.high, window.low, window.close))
    top, bottom = float(window.high[before].max()), float(window.low[before].min())
    breakout = PriceDirection.UP if close > top else PriceDirection.DOWN if close < bottom else None
    upper, lower = high - max(opened, close), min(opened, close) - low
    wick = round(max(upper, lower) / (high - low), RATIO_PLACES) if high > low else 0.0
    reach = round(high - low, PRICE_PLACES) >= round(fmean((window.high - window.low)[before].tolist()), PRICE_PLACES)
    rejected = wick >= REJECTION_WICK and reach
    return PriceAction(
        window.timeframe,
        breakout,
        top if breakout is PriceDirection.UP or (breakout is None and top - close <= close - bottom) else bottom,
        round(float(window.volume[-1]) / usual, RATIO_PLACES),
        None if not rejected else PriceDirection.UP if lower > upper else PriceDirection.DOWN,
        wick,
    )


def _flow(window: Known[Bars]) -> Known[TakerFlow]:
    if isinstance(window, Missing):
        return window
    if len(window) <= FLOW_BARS:
        return Missing(f"{len(window)} {window.timeframe} bars are known, {FLOW_BARS + 1} are needed")
    delta, volume = taker_delta(window), window.volume
    if np.isnan(delta[-FLOW_BARS:]).any() or not volume[-FLOW_BARS:].sum():
        return Missing(f"who took is not known of all the last {FLOW_BARS} {window.timeframe} bars")
    sums, traded = (rolling_sum(column, FLOW_BARS)[FLOW_BARS - 1 :] for column in (delta, volume))
    # Of every stretch, the balance over the volume; NaN where a bar does not say, or nothing traded.
    shares: Floats = np.divide(sums, traded, out=np.full(len(sums), np.nan), where=traded > 0)
    rank, _ = _rank_last(shares, LEAST_PAST, "earlier stretches are known, {} are needed")
    # The line with the least squares through the running balance, a step to the next value being one.
    running: list[float] = np.cumsum(delta[-FLOW_BARS:]).tolist()
    steps = [place - (FLOW_BARS - 1) / 2 for place in range(FLOW_BARS)]
    return TakerFlow(
        window.timeframe,
        float(window.close[-1] / window.close[-1 - FLOW_BARS]) - 1,
        float(shares[-1]),
        rank,
        fsum(map(mul, steps, running)) / fsum(step**2 for step in steps),
    )


def _width_rank(days: Known[Bars]) -> Known[float]:
    if isinstance(days, Missing):
        return days
    bands = indicators.bollinger(days.close)
    width = ((bands.upper - bands.lower) / bands.middle)[-WIDTH_BARS - 1 :]
    rank, count = _rank_last(width, LEAST_PAST, "days have a band, {} are needed")
    return rank if np.isfinite(width[-1]) else Missing(f"{count} days have a band, {LEAST_PAST} are needed")


def _first_known(bundle: Bundle, several: Sequence[MacroQuote]) -> Known[FigureChange]:
    """Of the first whose change is known; where none is, why none."""
    reasons = []
    for quoted in several:
        share = _figure_change(bundle, quoted)
        if not isinstance(share, Missing):
            return FigureChange(quoted, share)
        reasons.append(f"{quoted.name}: {share.reason}")
    return Missing("; ".join(reasons))


def _figure_change(bundle: Bundle, quoted: MacroQuote) -> Known[float]:
    prints: Known[Sequence[market.MacroRelease]] = fresh_rows(bundle, market.macro(quoted.venue, quoted.figure))
    if isinstance(prints, Missing):
        return prints
    known = _known_by([row for row in prints if row.value > 0], bundle.as_of)
    if len(known) <= PRINTS:
        return Missing(f"{len(known)} prints are known, {PRINTS + 1} are needed")
    values = [known[day].value for day in sorted(known)]
    return values[-1] / values[-1 - PRINTS] - 1
