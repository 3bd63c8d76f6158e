"""What goes wrong in the synthetic market, where and when: the same places for every seed, none in the last two days.

A store is offered these rows as a careless source would offer them; what becomes of them is its own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

from zuno.adapters.venues.synthetic.path import END
from zuno.kernel.units import Millis
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Book,
    Feed,
    OptionChain,
    Series,
    Timeframe,
    alive,
    basis,
    books,
    candles,
    funding,
    funding_next,
    liquidations,
    long_short,
    open_interest,
    options,
    rates,
)
from zuno.trading.model.venues import BINANCE, BYBIT, DERIBIT, OKX, UPBIT, WON
from zuno.trading.ports.series import Batch

Rows: TypeAlias = list[Any]


class Stain(StrEnum):
    """Ways in which a feed is wrong."""

    GAP = "gap"
    REPEATED = "repeated"
    CORRECTED = "corrected"
    SHUFFLED = "shuffled"
    NOT_A_NUMBER = "not a number"
    UPSIDE_DOWN = "high below low"
    NEGATIVE = "negative volume"
    WRONG_SUM = "wrong sum"
    PERCENT = "percent"
    FROZEN = "frozen"
    CROSSED = "crossed"
    NO_EXPIRIES = "no expiries"


@dataclass(frozen=True, slots=True)
class Dirt:
    """One stain on one series: rows from the first moment to the last, both included."""

    stain: Stain
    series: Series[Any]
    first: Millis
    last: Millis


def _before(days: int, hours: int = 0, minutes: int = 0) -> int:
    """A moment so many days before the end, and so much later."""
    return END - days * DAY_MS + hours * HOUR_MS + minutes * MINUTE_MS


def _dirt(stain: Stain, series: Series[Any], first: int, last: int | None = None) -> Dirt:
    return Dirt(stain, series, Millis(first), Millis(first if last is None else last))


_BTC_MINUTES: Final = candles(BINANCE, "BTCUSDT", Timeframe.M1)
_ETH_MINUTES: Final = candles(BINANCE, "ETHUSDT", Timeframe.M1)
_BTC_HOURS: Final = candles(BINANCE, "BTCUSDT", Timeframe.H1)
_OUT: Final = (_before(6, 10, 30), _before(6, 11, 30))
_PERCENT: Final = (_before(11), _before(10) - 1)
_SILENT: Final = (_before(8, 3, 20), _before(8, 3, 44))

DIRT: Final[Sequence[Dirt]] = (
    _dirt(Stain.GAP, _BTC_MINUTES, _before(20, 7, 13), _before(20, 7, 29)),
    _dirt(Stain.GAP, _ETH_MINUTES, _before(15, 22, 58), _before(15, 23, 4)),
    _dirt(Stain.REPEATED, _BTC_MINUTES, _before(19, 5), _before(19, 5, 59)),
    _dirt(Stain.CORRECTED, _ETH_MINUTES, _before(18, 6, 30)),
    _dirt(Stain.SHUFFLED, _ETH_MINUTES, _before(17), _before(17, 2, 59)),
    _dirt(Stain.NOT_A_NUMBER, _BTC_MINUTES, _before(16, 9, 41)),
    _dirt(Stain.UPSIDE_DOWN, _BTC_MINUTES, _before(14, 13, 5)),
    _dirt(Stain.NEGATIVE, _ETH_MINUTES, _before(13, 13, 6)),
    # More than a thousand hours before the end: no indicator at the end looks back so far.
    _dirt(Stain.GAP, _BTC_HOURS, _before(44, 3)),
    _dirt(Stain.WRONG_SUM, _BTC_HOURS, _before(44, 15)),
    *(_dirt(Stain.PERCENT, series(BYBIT, "BTCUSDT"), *_PERCENT) for series in (funding, funding_next)),
    _dirt(Stain.FROZEN, open_interest(OKX, "ETHUSDT"), _before(9, 1), _before(9, 13)),
    *(
        _dirt(Stain.GAP, series(OKX, symbol), *_OUT)
        for series in (funding_next, open_interest, long_short, basis)
        for symbol in ("BTCUSDT", "ETHUSDT")
    ),
    _dirt(Stain.GAP, rates(UPBIT, WON), _before(12, 2), _before(12, 9)),
    _dirt(Stain.CROSSED, books(BINANCE, "BTCUSDT"), _before(7, 16) - 500),
    _dirt(Stain.NO_EXPIRIES, options(DERIBIT, "BTC"), _before(5, 12)),
    _dirt(Stain.GAP, alive(Feed.LIQUIDATIONS, BINANCE, "BTCUSDT"), *_SILENT),
    _dirt(Stain.GAP, liquidations(BINANCE, "BTCUSDT"), _SILENT[0], _SILENT[1] + MINUTE_MS - 1),
)
"""Every stain there is."""


def stained(batches: Iterable[Batch[Any]], dirt: Sequence[Dirt] = DIRT) -> list[Batch[Any]]:
    """The same batches with every stain on them."""
    by_series: dict[Series[Any], list[Dirt]] = {}
    for one in dirt:
        by_series.setdefault(one.series, []).append(one)
    return [_stain(batch, by_series.get(batch.series, [])) for batch in batches]


def _stain(batch: Batch[Any], dirt: Sequence[Dirt]) -> Batch[Any]:
    rows = list(batch.rows)
    for one in dirt:
        inside = [place for place, row in enumerate(rows) if one.first <= row.at <= one.last]
        if not inside:
            continue
        start, end = inside[0], inside[-1] + 1
        rows[start:end] = _HANDS[one.stain](rows[start:end])
    return replace(batch, rows=rows) if dirt else batch


def _shuffled(rows: Rows) -> Rows:
    """Every third row first: out of order, and the same each time."""
    return [row for start in (2, 0, 1) for row in rows[start::3]]


def _corrected(rows: Rows) -> Rows:
    """Said once too high, then rightly."""
    wrong = [row._replace(high=row.high + 100, close=row.high + 50) for row in rows]
    return wrong + rows


def _frozen(rows: Rows) -> Rows:
    return [rows[0]._replace(at=row.at) for row in rows]


def _crossed(rows: Sequence[Book]) -> Rows:
    """Best bid and best ask change places."""
    return [Book(row.at, (row.asks[0], *row.bids[1:]), (row.bids[0], *row.asks[1:])) for row in rows]


def _no_expiries(rows: Sequence[OptionChain]) -> Rows:
    return [OptionChain(row.at, tuple(replace(quote, expiry=None) for quote in row.quotes)) for row in rows]


_HANDS: Final[Mapping[Stain, Callable[[Rows], Rows]]] = {
    Stain.GAP: lambda rows: [],
    Stain.REPEATED: lambda rows: rows + rows,
    Stain.CORRECTED: _corrected,
    Stain.SHUFFLED: _shuffled,
    Stain.NOT_A_NUMBER: lambda rows: [row._replace(close=float("nan")) for row in rows],
    Stain.UPSIDE_DOWN: lambda rows: [row._replace(high=row.low, low=row.high + 1) for row in rows],
    Stain.NEGATIVE: lambda rows: [row._replace(volume=-row.volume) for row in rows],
    Stain.WRONG_SUM: lambda rows: [row._replace(volume=row.volume + 100) for row in rows],
    Stain.PERCENT: lambda rows: [row._replace(rate=row.rate * 100) for row in rows],
    Stain.FROZEN: _frozen,
    Stain.CROSSED: _crossed,
    Stain.NO_EXPIRIES: _no_expiries,
}
