"""Marks of everything that can be held, and the won, as the store knows them at a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, UPBIT, USDT_KRW
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.known import Known, Missing, or_none
from zuno.trading.model.market import (
    DAY_MS,
    SECOND_MS,
    STALE_AFTER,
    STALE_BARS,
    Feed,
    Series,
    Timeframe,
    basis,
    candles,
    rates,
)
from zuno.trading.ports.series import SeriesStore, Slice
from zuno.trading.rules.account import mark_price

MARKED_BY: Final[tuple[Series[Any], ...]] = (
    *(basis(BINANCE, symbol) for symbol in DEFAULT_SYMBOLS),
    rates(UPBIT, USDT_KRW),
)
"""Everything an account is marked by."""


@dataclass(frozen=True, slots=True)
class Prices:
    marks: Mapping[Symbol, Known[float]]
    krw_rate: Known[float]
    ages: Mapping[str, int]
    """Seconds since each was true."""
    closes: Mapping[Symbol, tuple[Series[Any], int]] = field(default_factory=dict)
    """Which bars a mark was the last close of, and the seconds since, where nothing else is stored."""

    def of(self, symbol: Symbol, exchange: Venue) -> Known[float]:
        """In the exchange's own currency."""
        mark = self.marks[symbol]
        if isinstance(mark, Missing) or exchange is Venue("BINANCE"):
            return mark
        return self.krw_rate if isinstance(self.krw_rate, Missing) else mark * self.krw_rate

    def find_source(self, symbol: Symbol, exchange: Venue) -> tuple[str, int] | None:
        """The series that a price comes from, and the age of the oldest of them."""
        mark, krw_rate = str(basis(BINANCE, symbol)), str(rates(UPBIT, USDT_KRW))
        if symbol in self.closes:
            series, age = self.closes[symbol]
            found = {str(series): age}
        else:
            found = {mark: self.ages[mark]} if mark in self.ages else {}
        if exchange is not Venue("BINANCE") and krw_rate in self.ages:
            found[krw_rate] = self.ages[krw_rate]
        return (", ".join(found), max(found.values())) if found else None

    def source_text(self, symbol: Symbol, exchange: Venue) -> str:
        age = self.ages.get(str(basis(BINANCE, symbol)))
        mark = f"the last close at {BINANCE}" if age is None else f"the mark of {BINANCE}, {age} s old"
        if exchange is Venue("BINANCE"):
            return mark
        return f"{mark}, at {or_none(self.krw_rate):,.2f} won, {self.ages[str(rates(UPBIT, USDT_KRW))]} s old"


NO_PRICES: Final = Prices(
    dict.fromkeys(DEFAULT_SYMBOLS, Missing("the market here is a recording")),
    Missing("the market here is a recording"),
    {},
)


async def read_prices(store: SeriesStore, moment: Millis, *, recorded: bool = False) -> Prices:
    """The stored marks at a moment; a stale one is missing. `recorded`: for an account in recorded time, which may
    stand between two marks, the last close and the last won rate of the day before count instead."""
    slices = [Slice(series, Millis(moment - DAY_MS), moment, newest=1) for series in MARKED_BY]
    state = await store.read_many(slices, moment)
    newest: dict[str, Known[Any]] = {}
    ages: dict[str, int] = {}
    for series, rows in zip(MARKED_BY, state.rows, strict=True):
        any_age = recorded and series.feed is Feed.RATES
        newest[str(series)] = found = rows[-1] if any_age and rows else _newest_fresh(series, rows, moment)
        if not isinstance(found, Missing):
            ages[str(series)] = (moment - found.at) // SECOND_MS
    marks = {symbol: newest[str(basis(BINANCE, symbol))] for symbol in DEFAULT_SYMBOLS}
    closes = await _last_closes(store, moment) if recorded or state.origin.candles_only else {}
    unmarked = {symbol: close for symbol, close in closes.items() if isinstance(marks[symbol], Missing)}
    krw_rate = newest[str(rates(UPBIT, USDT_KRW))]
    if not isinstance(krw_rate, Missing):
        krw_rate = krw_rate.value if krw_rate.value > 0 else Missing(f"{krw_rate.value} is no rate")
    known = {symbol: mark if isinstance(mark, Missing) else mark_price(mark) for symbol, mark in marks.items()}
    return Prices(
        {**known, **{symbol: price for symbol, (price, _, _) in unmarked.items()}},
        krw_rate,
        ages,
        {symbol: (series, age) for symbol, (_, series, age) in unmarked.items()},
    )


async def _last_closes(store: SeriesStore, moment: Millis) -> dict[Symbol, tuple[float, Series[Any], int]]:
    """The last close of the finest bars that are not stale, its series and its age in seconds: marks where only
    candles are stored, as a cycle takes them."""
    several = [(symbol, timeframe) for timeframe in reversed(Timeframe) for symbol in DEFAULT_SYMBOLS]
    slices = [
        Slice(candles(BINANCE, symbol, timeframe), Millis(moment - 4 * timeframe.millis), moment, newest=1)
        for symbol, timeframe in several
    ]
    state = await store.read_many(slices, moment)
    closes: dict[Symbol, tuple[float, Series[Any], int]] = {}
    for (symbol, timeframe), rows in zip(several, state.rows, strict=True):
        age = moment - (rows[-1].at + timeframe.millis) if rows else None
        if age is not None and age <= STALE_BARS * timeframe.millis:
            closes[symbol] = (rows[-1].close, candles(BINANCE, symbol, timeframe), max(0, age) // SECOND_MS)
    return closes


def _newest_fresh(series: Series[Any], rows: Sequence[Any], moment: Millis) -> Known[Any]:
    if not rows:
        return Missing(f"nothing is recorded of {series} in the day before")
    age, limit = (moment - rows[-1].at) // SECOND_MS, STALE_AFTER[series.feed]
    return rows[-1] if age <= limit else Missing(f"the newest word of {series} is {age} s old, more than {limit}")
