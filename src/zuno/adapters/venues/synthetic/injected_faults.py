"""Faults in the synthetic market: the same places for every seed, none in the last two days.

Stores are given these rows as a careless source would send them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from zuno.adapters.venues.synthetic.path import END
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, BYBIT, DERIBIT, OKX, UPBIT, USDT_KRW
from zuno.trading.model import market
from zuno.trading.ports.series import Batch

Rows: TypeAlias = list[Any]


def _cross(rows: Sequence[market.Book]) -> Rows:
    """Best bid and best ask change places."""
    return [market.Book(row.at, (row.asks[0], *row.bids[1:]), (row.bids[0], *row.asks[1:])) for row in rows]


EDITS: Final[Mapping[str, Callable[[Rows], Rows]]] = {
    "gap": lambda rows: [],
    "repeated": lambda rows: rows + rows,
    # Said once too high, then rightly.
    "corrected": lambda rows: [
        *(row._replace(high=row.high + 100, close=row.high + 50) for row in rows),
        *rows,
    ],
    # Every third row first: out of order, and the same each time.
    "shuffled": lambda rows: [row for start in (2, 0, 1) for row in rows[start::3]],
    "not a number": lambda rows: [row._replace(close=float("nan")) for row in rows],
    "high below low": lambda rows: [row._replace(high=row.low, low=row.high + 1) for row in rows],
    "negative volume": lambda rows: [row._replace(volume=-row.volume) for row in rows],
    "wrong sum": lambda rows: [row._replace(volume=row.volume + 100) for row in rows],
    "percent": lambda rows: [row._replace(rate=row.rate * 100) for row in rows],
    "frozen": lambda rows: [rows[0]._replace(at=row.at) for row in rows],
    "crossed": _cross,
    "no expiries": lambda rows: [
        replace(row, quotes=tuple(replace(quote, expiry=None) for quote in row.quotes)) for row in rows
    ],
}


@dataclass(frozen=True, slots=True)
class MarketFault:
    """One fault in one series: rows from the first moment to the last, both included."""

    kind: str
    series: market.Series[Any]
    first: Millis
    last: Millis


def _before(days: int, hours: int = 0, minutes: int = 0) -> int:
    """A moment so many days before the end, plus hours and minutes."""
    return END - days * market.DAY_MS + hours * market.HOUR_MS + minutes * market.MINUTE_MS


def _fault(kind: str, series: market.Series[Any], first: int, last: int | None = None) -> MarketFault:
    return MarketFault(kind, series, Millis(first), Millis(first if last is None else last))


_BTC_MINUTES: Final = market.candles(BINANCE, "BTCUSDT", market.Timeframe.M1)
_ETH_MINUTES: Final = market.candles(BINANCE, "ETHUSDT", market.Timeframe.M1)
_BTC_HOURS: Final = market.candles(BINANCE, "BTCUSDT", market.Timeframe.H1)
_OUT: Final = (_before(6, 10, 30), _before(6, 11, 30))
_PERCENT: Final = (_before(11), _before(10) - 1)
_SILENT: Final = (_before(8, 3, 20), _before(8, 3, 44))

MARKET_FAULTS: Final[Sequence[MarketFault]] = (
    _fault("gap", _BTC_MINUTES, _before(20, 7, 13), _before(20, 7, 29)),
    _fault("gap", _ETH_MINUTES, _before(15, 22, 58), _before(15, 23, 4)),
    _fault("repeated", _BTC_MINUTES, _before(19, 5), _before(19, 5, 59)),
    _fault("corrected", _ETH_MINUTES, _before(18, 6, 30)),
    _fault("shuffled", _ETH_MINUTES, _before(17), _before(17, 2, 59)),
    _fault("not a number", _BTC_MINUTES, _before(16, 9, 41)),
    _fault("high below low", _BTC_MINUTES, _before(14, 13, 5)),
    _fault("negative volume", _ETH_MINUTES, _before(13, 13, 6)),
    # More than a thousand hours before the end: no indicator at the end looks back so far.
    _fault("gap", _BTC_HOURS, _before(44, 3)),
    _fault("wrong sum", _BTC_HOURS, _before(44, 15)),
    *(_fault("percent", series(BYBIT, "BTCUSDT"), *_PERCENT) for series in (market.funding, market.funding_next)),
    _fault("frozen", market.open_interest(OKX, "ETHUSDT"), _before(9, 1), _before(9, 13)),
    *(
        _fault("gap", series(OKX, symbol), *_OUT)
        for series in (market.funding_next, market.open_interest, market.long_short, market.basis)
        for symbol in ("BTCUSDT", "ETHUSDT")
    ),
    _fault("gap", market.rates(UPBIT, USDT_KRW), _before(12, 2), _before(12, 9)),
    _fault("crossed", market.books(BINANCE, "BTCUSDT"), _before(7, 16) - 500),
    _fault("no expiries", market.options(DERIBIT, "BTC"), _before(5, 12)),
    _fault("gap", market.alive(market.Feed.LIQUIDATIONS, BINANCE, "BTCUSDT"), *_SILENT),
    _fault("gap", market.liquidations(BINANCE, "BTCUSDT"), _SILENT[0], _SILENT[1] + market.MINUTE_MS - 1),
)


def inject_faults(batches: Iterable[Batch[Any]], faults: Sequence[MarketFault] = MARKET_FAULTS) -> list[Batch[Any]]:
    by_series: dict[market.Series[Any], list[MarketFault]] = {}
    for fault in faults:
        by_series.setdefault(fault.series, []).append(fault)
    return [_inject(batch, by_series.get(batch.series, [])) for batch in batches]


def _inject(batch: Batch[Any], faults: Sequence[MarketFault]) -> Batch[Any]:
    rows = list(batch.rows)
    for fault in faults:
        inside = [place for place, row in enumerate(rows) if fault.first <= row.at <= fault.last]
        if not inside:
            continue
        start, end = inside[0], inside[-1] + 1
        rows[start:end] = EDITS[fault.kind](rows[start:end])
    return replace(batch, rows=rows) if faults else batch
