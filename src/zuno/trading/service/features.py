"""The trading desk as a person asks it: what is measured of a symbol at a moment, and its picture."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from zuno.journal.port import Journal
from zuno.kernel import arguments
from zuno.kernel.canonical import Digest
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol, parse_symbol
from zuno.trading.chart.charting import describe
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.data.intake import silent_venues
from zuno.trading.measure.features import measure_features
from zuno.trading.model.bundle import Bundle, BundleEncoder, Slot
from zuno.trading.model.chart import numbers
from zuno.trading.model.known import derive, pick
from zuno.trading.model.market import MINUTE_MS, STALE_BARS, MacroRelease, Mode, Timeframe, parse_mode, timeframe_of
from zuno.trading.model.wanted import bars_of, neighbour_series, own_candles, wanted_series
from zuno.trading.ports.chart import Painter
from zuno.trading.ports.series import SeriesStore
from zuno.trading.run.record import MarketMoment
from zuno.trading.service.features_to_view import chart_view, features_view, market_chart_view
from zuno.trading.service.features_view import CandlesView, CandleView, ChartView, FeaturesView, MarketChartView

DEFAULT_SEED: Final = 1
SAME_VISIT: Final = MINUTE_MS
"""Rows that arrive within this time of each other came in one visit: venues answer one after the other."""
_JUDGED: Final = (Timeframe.H1, Timeframe.H4, Timeframe.D1, Timeframe.W1, Timeframe.M1)
"""Candles that the end of a recording is read from, the first of these that are stored: a cycle needs no minutes."""

MOST_CANDLES: Final = 1_000
USUAL_BARS: Final = 120
FEWEST_BARS: Final = 10
MOST_BARS: Final = 300
"""Of a chart that is drawn from figures."""

Refresh: TypeAlias = Callable[[Symbol], Awaitable[tuple[Millis, Mapping[str, str]]]]
"""Asks every live source and stores the answers. Returns the moment, and the error of each source that failed."""
Invent: TypeAlias = Callable[[int], Awaitable[SeriesStore]]


class FrozenBundle(NamedTuple):
    bundle: Bundle
    name: Digest
    notes: tuple[str, ...]


class DrawnChart(NamedTuple):
    """A picture and its numbers; the caller chooses the file."""

    view: ChartView
    image: bytes


@dataclass(eq=False)
class TradingDesk:
    """Reads one store of market data, and keeps in the journal what a cycle could know.

    `invent`: makes a market from a seed where none is kept yet. `refresh`: asks live sources first. `now`: of a market
    that goes on, which may be asked for as it is known at any moment that has come.
    """

    store: SeriesStore
    journal: Callable[[], Awaitable[Journal]]
    painter: Painter
    invent: Invent | None = None
    refresh: Refresh | None = None
    now: Callable[[], Millis] | None = None
    markets: tuple[Symbol, ...] = DEFAULT_SYMBOLS
    """Those that this desk trades."""
    _encoder: BundleEncoder = field(default_factory=BundleEncoder, init=False)

    def parse_symbol(self, text: str) -> Symbol:
        return parse_symbol(text, self.markets)

    async def features(self, symbol: str, mode: str = "swing", as_of: str | None = None) -> FeaturesView:
        frozen = await self.freeze(self.parse_symbol(symbol), parse_mode(mode), as_of)
        view = features_view(frozen.bundle, frozen.name, measure_features(frozen.bundle), frozen.notes)
        return view.model_copy(update={"live": self.live(as_of)})

    async def chart(self, symbol: str, mode: str = "swing", as_of: str | None = None) -> DrawnChart:
        """The picture of what could be known then, and every number that is drawn in it."""
        frozen = await self.freeze(self.parse_symbol(symbol), parse_mode(mode), as_of)
        picture = describe(frozen.bundle)
        image = await self.painter.paint(picture)
        view = chart_view(frozen.bundle, frozen.name, numbers(picture), frozen.notes)
        return DrawnChart(view.model_copy(update={"live": self.live(as_of)}), image)

    async def candles(
        self, symbol: str, interval: str = "1h", since: str = "7d", until: str | None = None
    ) -> CandlesView:
        """Closed bars of a time, as they are known by its end; the newest `MOST_CANDLES` of them."""
        asked, timeframe = self.parse_symbol(symbol), _parse_interval(interval)
        end = (await self.moment(asked, until)).as_of
        start = arguments.parse_market_moment(since, end, end, Millis(0))
        series = own_candles(asked, timeframe)
        rows = await self.store.read(series, start, end, end, MOST_CANDLES)
        return CandlesView(
            **pick(self, "synthetic", "origin"),
            live=self.live(until),
            symbol=asked,
            interval=timeframe,
            as_of=end,
            source=str(series),
            candles=tuple(derive(CandleView, row) for row in rows),
        )

    async def market_chart(
        self, symbol: str, interval: str = "4h", mode: str = "swing", as_of: str | None = None, bars: int | None = None
    ) -> MarketChartView:
        """Candles with levels, averages, gaps, volume profile and heat map as figures. Nothing is painted or stored."""
        asked, timeframe = parse_mode(mode), _parse_interval(interval)
        if timeframe not in asked.timeframes:
            raise UsageError(f"A {asked} chart has bars of {', '.join(asked.timeframes)}, not {timeframe}.")
        if bars is not None and not FEWEST_BARS <= bars <= MOST_BARS:
            raise UsageError(f"Between {FEWEST_BARS} and {MOST_BARS} bars can be drawn, not {bars}.")
        coin = self.parse_symbol(symbol)
        moment = await self.moment(coin, as_of)
        bundle = await self.read_at(coin, asked, moment)
        view = market_chart_view(bundle, describe(bundle, timeframe, bars or USUAL_BARS), moment.notes)
        return view.model_copy(update={"live": self.live(as_of)})

    async def freeze(self, symbol: Symbol, mode: Mode, as_of: str | None) -> FrozenBundle:
        """Everything that could be known then, stored once under its hash."""
        moment = await self.moment(symbol, as_of)
        bundle = await self.read_at(symbol, mode, moment)
        return FrozenBundle(bundle, await self.keep(bundle), moment.notes)

    async def read_at(self, symbol: Symbol, mode: Mode, moment: MarketMoment, slots: Sequence[Slot] = ()) -> Bundle:
        """Everything that could be known then, not stored yet."""
        return await build_bundle(self.store, symbol, mode, moment.as_of, slots, moment.failures, markets=self.markets)

    async def keep(self, bundle: Bundle) -> Digest:
        return await (await self.journal()).put_bundle(self._encoder.encode(bundle))

    @property
    def origin(self) -> str:
        """The market that the store holds; final once a moment was asked for, which may make a synthetic one."""
        return self.store.origin.label

    @property
    def synthetic(self) -> bool:
        return self.store.origin.synthetic

    def live(self, as_of: str | None) -> bool:
        """Whether `as_of` means the present of a live market."""
        return self.refresh is not None and as_of is None

    async def moment(self, symbol: Symbol, as_of: str | None) -> MarketMoment:
        """The moment somebody asks for; the present of a live market is asked for from every source."""
        if self.refresh is not None and as_of is None:
            at, failures = await self.refresh(symbol)
            silent = silent_venues(wanted_series(symbol), failures)
            return self._moment(at, failures, tuple(f"no answer from {venue}: {why}" for venue, why in silent.items()))
        end, notes = await self._end(symbol), tuple[str, ...]()
        if end is None and self.invent is not None:
            self.store = await self.invent(DEFAULT_SEED)
            end = await self._end(symbol)
            notes = (f"no market was here yet: one was invented, {self.store.origin.label}",)
        if end is None:
            raise Refused(
                f"Nothing is recorded of {symbol}: `zuno data download {symbol} --from 400d` fetches its past, "
                "and ZUNO_RECORDING=synthetic reads an invented one."
            )
        invented = self.store.origin.synthetic
        if as_of is None and not invented:
            return await self._latest(symbol, end)
        latest = await self._invented_end(end) if invented else end
        if as_of is None:
            return self._moment(latest, {}, notes)
        if self.now is not None:
            latest = Millis(max(latest, self.now()))
        counted = end if self.refresh is None else latest
        at = arguments.parse_market_moment(as_of, counted, latest, await self._beginning(symbol))
        return self._moment(at, {}, notes)

    async def newest_moment(self, as_of: str | None) -> MarketMoment:
        """The latest moment that is known of any of its markets; of a live market all marks are asked for once."""
        moments: list[MarketMoment] = []
        refusals: list[Refused | UsageError] = []
        for symbol in self.markets:
            try:
                moments.append(await self.moment(symbol, as_of))
            except (Refused, UsageError) as error:  # nothing is recorded of it, or not then
                refusals.append(error)
            if moments and self.live(as_of):
                break
        if not moments:
            raise refusals[0]
        return max(moments, key=lambda moment: moment.as_of)

    def _moment(self, at: Millis, failures: Mapping[str, str], notes: tuple[str, ...] = ()) -> MarketMoment:
        return MarketMoment(as_of=at, origin=self.origin, failures=failures, notes=notes)

    async def _end(self, symbol: Symbol) -> Millis | None:
        """The newest moment at which a row became known while the symbol's candles were fresh. Macro prints are left
        out: one may be published before the day it is stamped with."""
        wanted = [series for series in wanted_series(symbol) if series.row is not MacroRelease]
        newest = dict(zip(wanted, await self.store.newest_known(wanted), strict=True))
        ends = [known for known in newest.values() if known is not None]
        for timeframe in _JUDGED:
            closed = newest[own_candles(symbol, timeframe)]
            if closed is not None:
                fresh_until = closed + STALE_BARS * timeframe.millis
                return max(known for known in ends if known <= fresh_until)
        return max(ends, default=None)

    async def _beginning(self, symbol: Symbol) -> Millis:
        bars = tuple(bars_of(symbol))
        firsts = zip(bars, await self.store.first_times(bars), strict=True)
        closes = (Millis(at + timeframe_of(series).millis) for series, at in firsts if at is not None)
        return min(closes, default=Millis(0))

    async def _invented_end(self, end: Millis) -> Millis:
        """The end of a synthetic market: when any of its bars last became known, for all symbols alike."""
        bars = [series for symbol in self.markets for series in bars_of(symbol)]
        return max((end, *(known for known in await self.store.all_known(bars) if known is not None)))

    async def _latest(self, symbol: Symbol, end: Millis) -> MarketMoment:
        """The end of the recording. Rows that arrived in the same visit belong to it. Rows that filled or corrected it
        much later do not, because everything else would be stale by then; a note says that there are some."""
        several = (*wanted_series(symbol), *neighbour_series(symbol, self.markets))
        newest = zip(several, await self.store.all_known(several), strict=True)
        whole = {series: known for series, known in newest if known is not None}
        moment = max(known for known in (end, *whole.values()) if known <= end + SAME_VISIT)
        own = [series for series in wanted_series(symbol) if series.row is not MacroRelease]
        later = [known for series, known in whole.items() if series in own and known > moment]
        return self._moment(moment, {}, (_mended_note(len(later), max(later)),) if later else ())


def _parse_interval(text: str) -> Timeframe:
    return arguments.parse_word(Timeframe, text, f"interval; write one of {', '.join(Timeframe)}")


def _mended_note(series: int, since: Millis) -> str:
    many = "1 series was" if series == 1 else f"{series} series were"
    known = f"what came then is known from {iso(since)} on, and `--as-of` that moment sees it"
    return f"{many} filled or mended after this moment: {known}"
