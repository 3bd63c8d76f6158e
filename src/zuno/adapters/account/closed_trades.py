"""Closed trades as a judge's record reads them: those of a market's paper account; or in memory, for studies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from zuno.kernel.errors import Broken, Refused
from zuno.kernel.units import Millis
from zuno.trading.model.memory import ClosedTrade
from zuno.trading.model.trade_events import paper_account
from zuno.trading.ports.trade_log import TradeLog
from zuno.trading.rules.calibration import list_closed_trades
from zuno.trading.rules.trading_book import TradingBook


class MemoryTradeRecord:
    """The `TradeRecord` of these trades, by market."""

    def __init__(self, trades: Mapping[str, Iterable[ClosedTrade]] | None = None) -> None:
        self._trades = {
            origin: tuple(sorted(found, key=lambda trade: trade.closed)) for origin, found in (trades or {}).items()
        }

    async def closed_trades(self, origin: str, before: Millis) -> tuple[ClosedTrade, ...]:
        return tuple(trade for trade in self._trades.get(origin, ()) if trade.closed < before)


class LoggedTradeRecord:
    """The `TradeRecord` of a market's paper account. It goes on from where it has read."""

    def __init__(self, log: TradeLog, counts: Callable[[str], Awaitable[bool]] | None = None) -> None:
        """`counts`: whether the trades of a run count, as for live those of a recorded past do not."""
        self._log = log
        self._counts = counts
        self._books: dict[str, TradingBook] = {}
        self._known: dict[str | None, bool] = {None: False}

    async def closed_trades(self, origin: str, before: Millis) -> tuple[ClosedTrade, ...]:
        account = paper_account(origin)
        book = self._books.setdefault(account, TradingBook())
        try:
            book.apply_all(await self._log.events(account, book.count))
        except Refused as error:
            del self._books[account]
            raise Broken(f"The account {account} contradicts itself: {error}") from error
        if self._counts is None:
            return list_closed_trades(book.closed, before)
        for run in {summary.decision for summary in book.closed}:
            if run is not None and run not in self._known:
                self._known[run] = await self._counts(run)
        return list_closed_trades([summary for summary in book.closed if self._known[summary.decision]], before)
