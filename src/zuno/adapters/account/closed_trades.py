"""Closed trades in memory: what a home without any reads, and what tests write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from zuno.kernel.units import Millis
from zuno.trading.model.record import ClosedTrade


class MemoryTradeRecord:
    """The `TradeRecord` of these trades, by market."""

    def __init__(self, trades: Mapping[str, Iterable[ClosedTrade]] | None = None) -> None:
        self._trades = {
            origin: tuple(sorted(found, key=lambda trade: trade.closed)) for origin, found in (trades or {}).items()
        }

    async def closed_trades(self, origin: str, before: Millis) -> tuple[ClosedTrade, ...]:
        return tuple(trade for trade in self._trades.get(origin, ()) if trade.closed < before)
