"""Marks of everything that can be held, and the won, as the store knows them at a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zuno.kernel.units import Millis
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.known import Known, Missing, or_none
from zuno.trading.model.market import (
    DAY_MS,
    SECOND_MS,
    STALE_AFTER,
    STALE_BARS,
    Series,
    Symbol,
    Timeframe,
    basis,
    candles,
    rates,
)
from zuno.trading.model.venues import BINANCE, UPBIT, USDT_KRW
from zuno.trading.ports.series import SeriesStore, Slice
from zuno.trading.rules.account import mark_price

MARKED_BY: Final[tuple[Series[Any], ...]] = (*(basis(BINANCE, symbol) for symbol in Symbol), rates(UPBIT, USDT_KRW))
"""Everything an account is marked by."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What the account is marked by, at a moment."""

    marks: Mapping[Symbol, Known[float]]
    won: Known[float]
    ages: Mapping[str, int]
    """Seconds since each was true."""

    def of(self, symbol: Symbol, exchange: Exchange) -> Known[float]:
        """In the exchange's own currency."""
        mark = self.marks[symbol]
        if isinstance(mark, Missing) or exchange is Exchange.BINANCE:
            return mark
        return self.won if isinstance(self.won, Missing) else mark * self.won

    def source_text(self, symbol: Symbol, exchange: Exchange) -> str:
        """Where a price comes from."""
        age = self.ages.get(str(basis(BINANCE, symbol)))
        mark = f"the last close at {BINANCE}" if age is None else f"the mark of {BINANCE}, {age} s old"
        if exchange is Exchange.BINANCE:
            return mark
        return f"{mark}, at {or_none(self.won):,.2f} won, {self.ages[str(rates(UPBIT, USDT_KRW))]} s old"


NO_PRICES: Final = Prices(
    dict.fromkeys(Symbol, Missing("the market here is a recording")), Missing("the market here is a recording"), {}
)


async def read_prices(store: SeriesStore, moment: Millis) -> Prices:
    """What the store says of every price at a moment; what is stale is missing."""
    slices = [Slice(series, Millis(moment - DAY_MS), moment, newest=1) for series in MARKED_BY]
    state = await store.read_many(slices, moment)
    newest: dict[str, Known[Any]] = {}
    ages: dict[str, int] = {}
    for series, rows in zip(MARKED_BY, state.rows, strict=True):
        newest[str(series)] = found = _newest_fresh(series, rows, moment)
        if not isinstance(found, Missing):
            ages[str(series)] = (moment - found.at) // SECOND_MS
    marks = {symbol: newest[str(basis(BINANCE, symbol))] for symbol in Symbol}
    closes = await _last_closes(store, moment) if state.origin.candles_only else {}
    won = newest[str(rates(UPBIT, USDT_KRW))]
    return Prices(
        {
            symbol: closes.get(symbol, mark) if isinstance(mark, Missing) else mark_price(mark)
            for symbol, mark in marks.items()
        },
        won if isinstance(won, Missing) else won.value if won.value > 0 else Missing(f"{won.value} is no rate"),
        ages,
    )


async def _last_closes(store: SeriesStore, moment: Millis) -> dict[Symbol, float]:
    """Of the finest bars that are not stale: the marks of a home of candles alone, as a cycle takes them."""
    several = [(symbol, timeframe) for timeframe in reversed(Timeframe) for symbol in Symbol]
    slices = [
        Slice(candles(BINANCE, symbol, timeframe), Millis(moment - 4 * timeframe.millis), moment, newest=1)
        for symbol, timeframe in several
    ]
    state = await store.read_many(slices, moment)
    found: dict[Symbol, float] = {}
    for (symbol, timeframe), rows in zip(several, state.rows, strict=True):
        if rows and moment - (rows[-1].at + timeframe.millis) <= STALE_BARS * timeframe.millis:
            found[symbol] = rows[-1].close
    return found


def _newest_fresh(series: Series[Any], rows: Sequence[Any], moment: Millis) -> Known[Any]:
    if not rows:
        return Missing(f"nothing is recorded of {series} in the day before")
    age, limit = (moment - rows[-1].at) // SECOND_MS, STALE_AFTER[series.feed]
    return rows[-1] if age <= limit else Missing(f"the newest word of {series} is {age} s old, more than {limit}")
