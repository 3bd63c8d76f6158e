"""A symbol's market as ticks, read from the series store day by day.

Bars are the finest that were kept of each stretch, and coarser ones where those have gaps. Upbit's market is Binance's
at the rate of its KRW-USDT pair, as the desk marks it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from zuno.kernel.units import Millis
from zuno.markets.feeds import RATES, mark_feed
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.measure.bars import select_finest_bars
from zuno.trading.model import market
from zuno.trading.model.wanted import mark_series, own_book, own_candles
from zuno.trading.ports.series import SeriesStore, Slice
from zuno.trading.rules.inputs import ASSUMED_FUNDING

_TIMEFRAMES: Final = (market.Timeframe.M1, market.Timeframe.H1, market.Timeframe.H4, market.Timeframe.D1)
_RATE_MS: Final = market.STALE_AFTER[market.Feed.RATES] * 1_000
_EVER: Final = Millis(2**53 - 1)
_OPENING_MS: Final = 1


MARK_MS: Final = 10_000
"""How long a mark counts before the last price stands in for it."""


class Bar(NamedTuple):
    """A closed bar, in the exchange's currency."""

    start: Millis
    at: Millis
    """When it closed: it is known from then on."""
    open: float
    high: float
    low: float
    close: float


class Mark(NamedTuple):
    at: Millis
    price: float


class FundingRate(NamedTuple):
    at: Millis
    rate: float
    """A fraction of the notional; above zero, longs pay."""
    both_pay: bool = False
    """Where the side that paid is unknown."""


Tick: TypeAlias = Bar | market.Book | Mark | FundingRate


@dataclass(slots=True)
class MarketState:
    price: float | None = None
    """The last price: a close, the middle of a book, or a mark."""
    at: int = 0
    stale_ms: int = 600_000
    """How long that price counts."""
    mark: float | None = None
    marked: int = 0
    """When the venue last said a mark."""
    depth: market.Book | None = None

    def see(self, tick: Tick) -> None:
        match tick:
            case Bar() if tick.at < self.at:
                pass  # it came late: newer prices are known
            case Bar():
                self.price = self.mark = tick.close
                self.at, self.stale_ms = tick.at, max(600_000, 2 * (tick.at - tick.start))
            case market.Book():
                self.depth = tick
                if tick.bids and tick.asks:
                    self.price = (tick.bids[0].price + tick.asks[0].price) / 2
                    self.at, self.stale_ms = tick.at, 600_000
                    if self.mark is None or tick.at - self.marked > MARK_MS:
                        self.mark = self.price
            case Mark():
                self.mark = self.price = tick.price
                self.marked = tick.at
                self.at, self.stale_ms = tick.at, 600_000


class MarketTape(Protocol):
    """The market of each symbol in order of time."""

    @property
    def opening_ms(self) -> int:
        """How long after a bar's start its open is given; 0: with the whole bar alone."""

    async def ticks(self, symbol: Symbol, after: Millis, until: Millis) -> Sequence[Tick]:
        """Ticks in (after, until], oldest first. A bar that came late is given once, with the next."""

    async def before(self, symbol: Symbol, moment: Millis) -> Sequence[Tick]:
        """The last ticks up to a moment: enough to know the state of the market."""


class SeriesTape:
    """The `MarketTape` of a store. `live`: rows are still being written, so each call reads again. `openings`: a bar is
    given twice, its open when it begins and the whole at its close."""

    def __init__(self, store: SeriesStore, exchange: Venue, *, live: bool, openings: bool = False) -> None:
        self._store = store
        self._exchange = exchange
        self._live = live
        self.opening_ms = _OPENING_MS if openings else 0
        self._days: dict[tuple[Symbol, int], tuple[list[Tick], list[int]]] = {}
        self._newest_bar: dict[Symbol, Millis] = {}

    async def ticks(self, symbol: Symbol, after: Millis, until: Millis) -> Sequence[Tick]:
        since = min(after, self._newest_bar.get(symbol, after))
        selected: list[Tick] = []
        for day in range(since // market.DAY_MS, until // market.DAY_MS + 1):
            ticks, times = await self._read_day(symbol, day, until)
            selected += ticks[bisect_right(times, since) : bisect_right(times, until)]
        if since < after:
            selected = [tick for tick in selected if tick.at > after or (type(tick) is Bar and tick.at > since)]
        if self._live and (bars := [tick.at for tick in selected if type(tick) is Bar]):
            self._newest_bar[symbol] = max(bars)
        return selected

    async def before(self, symbol: Symbol, moment: Millis) -> Sequence[Tick]:
        """Of the day, or of the one before where the day has just begun."""
        day = moment // market.DAY_MS
        ticks, times = await self._read_day(symbol, day, moment)
        latest = ticks[: bisect_right(times, moment)]
        if not any(type(tick) is Bar for tick in latest):
            earlier, _ = await self._read_day(symbol, day - 1, moment)
            latest = [*earlier, *latest]
        if self._live and (bars := [tick.at for tick in latest if type(tick) is Bar]):
            self._newest_bar.setdefault(symbol, max(bars))
        return latest

    async def _read_day(self, symbol: Symbol, day: int, now: Millis) -> tuple[list[Tick], list[int]]:
        loaded = self._days.get((symbol, day))
        if loaded is None:
            loaded = await self._load_day(symbol, day, now if self._live else _EVER)
            if not self._live:
                for old in [key for key in self._days if key[0] is symbol and key[1] < day - 1]:
                    del self._days[old]
                self._days[symbol, day] = loaded
        return loaded

    async def _load_day(self, symbol: Symbol, day: int, known_by: Millis) -> tuple[list[Tick], list[int]]:
        start, end = Millis(day * market.DAY_MS), Millis((day + 1) * market.DAY_MS - 1)
        currency = self._exchange.currency
        converted = currency in RATES and symbol.quote != self._exchange.quote
        asked: list[market.Series[Any]] = [own_candles(symbol, timeframe) for timeframe in _TIMEFRAMES]
        asked += [mark_series(symbol)]
        settled_by = market.funding(mark_feed(symbol), symbol)
        asked += [market.rates(*RATES[currency])] if converted else [own_book(symbol), settled_by]
        slices = [
            # The rate of before midnight counts after it, and the one at midnight for the bar that ends then.
            Slice(series, Millis(start - _RATE_MS), Millis(end + 1))
            if series.feed is market.Feed.RATES
            else Slice(series, start, end)
            for series in asked
        ]
        state = await self._store.read_many(slices, known_by)
        *bar_rows, marks, more = state.rows[: len(_TIMEFRAMES) + 2]
        bars = select_finest_bars([*zip(_TIMEFRAMES, bar_rows, strict=True)], live=self._live)
        ticks: list[Tick] = [Bar(*bar) for bar in bars]
        opens: list[Tick] = [_open_of(Bar(*bar)) for bar in bars] if self.opening_ms else []
        ticks += [Mark(row.at, row.mark) for row in marks if row.mark > 0]
        if converted:
            levels = [row if currency == "KRW" else row._replace(value=1 / row.value) for row in more if row.value > 0]
            ticks, opens = _convert_ticks(ticks, levels), _convert_ticks(opens, levels)
        else:
            ticks += more
            settled = state.rows[-1]
            ticks += [FundingRate(row.at, row.rate) for row in settled]
            if state.origin.candles_only and not settled:
                ticks += [
                    FundingRate(Millis(start + hours * market.HOUR_MS), ASSUMED_FUNDING, both_pay=True)
                    for hours in (0, 8, 16)
                ]
        dated = [(tick.at, tick) for tick in ticks] + [(tick.at + self.opening_ms, tick) for tick in opens]
        dated.sort(key=_place)
        return [tick for _, tick in dated], [at for at, _ in dated]


def _open_of(bar: Bar) -> Bar:
    """As a bar of its own that ends there, and counts for as long as the bar would."""
    return Bar(Millis(2 * bar.start - bar.at), bar.start, bar.open, bar.open, bar.open, bar.open)


def _place(dated: tuple[int, Tick]) -> tuple[int, int]:
    """By time; what moves the market before what is settled by it."""
    at, tick = dated
    return at, (Bar, market.Book, Mark, FundingRate).index(type(tick))


def _convert_ticks(ticks: Sequence[Tick], rows: Sequence[market.Level]) -> list[Tick]:
    """At the rate of the moment; times with a stale rate are dropped."""
    times = [row.at for row in rows]
    converted: list[Tick] = []
    for tick in ticks:
        place = bisect_right(times, tick.at) - 1
        if place < 0 or tick.at - times[place] > _RATE_MS or rows[place].value <= 0:
            continue
        rate = rows[place].value
        if isinstance(tick, Bar):
            converted.append(
                Bar(tick.start, tick.at, tick.open * rate, tick.high * rate, tick.low * rate, tick.close * rate)
            )
        elif isinstance(tick, Mark):
            converted.append(Mark(tick.at, tick.price * rate))
    return converted
