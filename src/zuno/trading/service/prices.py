"""Marks of everything that can be held, and exchange rates, as the store knows them at a moment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.known import Known, Missing, figure_in
from zuno.trading.model.market import DAY_MS, SECOND_MS, STALE_AFTER, STALE_BARS, Feed, Series, Timeframe
from zuno.trading.model.orders import to_decimal
from zuno.trading.model.wanted import RATE_SERIES, mark_series, own_candles
from zuno.trading.ports.series import SeriesStore, Slice
from zuno.trading.rules.account import DOLLAR, Rates, currency_rates, mark_price, rate_of


def list_marks(symbols: Iterable[Symbol]) -> tuple[Series[Any], ...]:
    """Everything that an account with these is marked by."""
    return (*(mark_series(symbol) for symbol in symbols), *RATE_SERIES.values())


@dataclass(frozen=True, slots=True)
class Prices:
    marks: Mapping[Symbol, Known[float]]
    rates: Rates
    ages: Mapping[str, int]
    """Seconds since each was true."""
    closes: Mapping[Symbol, tuple[Series[Any], int]] = field(default_factory=dict)
    """Which bars a mark was the last close of, and the seconds since, where nothing else is stored."""

    def of(self, symbol: Symbol, exchange: Venue) -> Known[float]:
        """In the exchange's own currency."""
        mark, rate = self.marks.get(symbol, NO_PRICE), rate_of(exchange, self.rates)
        return mark if isinstance(mark, Missing) else rate if isinstance(rate, Missing) else mark * rate

    def find_source(self, symbol: Symbol, exchange: Venue) -> tuple[str, int] | None:
        """The series that a price comes from, and the age of the oldest of them."""
        mark, rate = str(mark_series(symbol)), str(RATE_SERIES.get(exchange.currency))
        if symbol in self.closes:
            series, age = self.closes[symbol]
            ages = {str(series): age}
        else:
            ages = {mark: self.ages[mark]} if mark in self.ages else {}
        if rate in self.ages:
            ages[rate] = self.ages[rate]
        return (", ".join(ages), max(ages.values())) if ages else None


NO_PRICE: Final = Missing("the market here is a recording")
NO_PRICES: Final = Prices({}, {DOLLAR: 1.0}, {})


async def read_prices(
    store: SeriesStore, moment: Millis, symbols: Sequence[Symbol], *, recorded: bool = False
) -> Prices:
    """The stored marks of these at a moment; a stale one is missing. `recorded`: for an account in recorded time, which
    may stand between two marks, the last close and the last rates of the day before count instead."""
    wanted = list_marks(symbols)
    slices = [Slice(series, Millis(moment - DAY_MS), moment, newest=1) for series in wanted]
    state = await store.read_many(slices, moment)
    newest: dict[str, Known[Any]] = {}
    ages: dict[str, int] = {}
    for series, rows in zip(wanted, state.rows, strict=True):
        any_age = recorded and series.feed is Feed.RATES
        newest[str(series)] = row = rows[-1] if any_age and rows else _newest_fresh(series, rows, moment)
        if not isinstance(row, Missing):
            ages[str(series)] = (moment - row.at) // SECOND_MS
    marks = {symbol: newest[str(mark_series(symbol))] for symbol in symbols}
    closes = await _last_closes(store, moment, symbols) if recorded or state.origin.candles_only else {}
    unmarked = {symbol: close for symbol, close in closes.items() if isinstance(marks[symbol], Missing)}
    quoted = {currency: figure_in(newest[str(series)], "value") for currency, series in RATE_SERIES.items()}
    known = {symbol: mark if isinstance(mark, Missing) else mark_price(mark) for symbol, mark in marks.items()}
    return Prices(
        {**known, **{symbol: price for symbol, (price, _, _) in unmarked.items()}},
        currency_rates(quoted),
        ages,
        {symbol: (series, age) for symbol, (_, series, age) in unmarked.items()},
    )


async def read_rates(store: SeriesStore, moment: Millis) -> dict[str, Known[Decimal]]:
    """What a dollar is in each currency."""
    rates = (await read_prices(store, moment, ())).rates
    return {currency: rate if isinstance(rate, Missing) else to_decimal(rate) for currency, rate in rates.items()}


async def _last_closes(
    store: SeriesStore, moment: Millis, symbols: Sequence[Symbol]
) -> dict[Symbol, tuple[float, Series[Any], int]]:
    """The last close of the finest bars that are not stale, its series and its age in seconds: marks where only
    candles are stored, as a cycle takes them."""
    bars = [(symbol, timeframe) for timeframe in reversed(Timeframe) for symbol in symbols]
    slices = [
        Slice(own_candles(symbol, timeframe), Millis(moment - 4 * timeframe.millis), moment, newest=1)
        for symbol, timeframe in bars
    ]
    state = await store.read_many(slices, moment)
    closes: dict[Symbol, tuple[float, Series[Any], int]] = {}
    for (symbol, timeframe), rows in zip(bars, state.rows, strict=True):
        age = moment - (rows[-1].at + timeframe.millis) if rows else None
        if age is not None and age <= STALE_BARS * timeframe.millis:
            closes[symbol] = (rows[-1].close, own_candles(symbol, timeframe), max(0, age) // SECOND_MS)
    return closes


def _newest_fresh(series: Series[Any], rows: Sequence[Any], moment: Millis) -> Known[Any]:
    if not rows:
        return Missing(f"nothing is recorded of {series} in the day before")
    age, limit = (moment - rows[-1].at) // SECOND_MS, STALE_AFTER[series.feed]
    return rows[-1] if age <= limit else Missing(f"the newest word of {series} is {age} s old, more than {limit}")
