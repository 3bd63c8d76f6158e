"""Closes that a person or the kill switch asks for: stored, carried out, and sent though the log cannot be written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from zuno.kernel.errors import NotFound, Refused, Unavailable, ZunoError
from zuno.trading.execute.gate_state import GateState
from zuno.trading.execute.order_worker import OrderWorker
from zuno.trading.execute.unlogged import close_unlogged
from zuno.trading.model.account import OrderCancelled, PositionClosed
from zuno.trading.model.market import Side, Symbol
from zuno.trading.model.trade_events import ExitReason, ManualChange, Protection


class CloseRequests:
    """Closes by trade, by symbol, or everything; positions that a person wrote down, too."""

    def __init__(self, state: GateState, worker: OrderWorker) -> None:
        self._state = state
        self._worker = worker

    async def close(self, which: Symbol | str | None, reason: ExitReason, request: str) -> tuple[str, ...]:
        book = self._state.book
        if isinstance(which, str) and not isinstance(which, Symbol):
            trade = book.trades.get(which)
            if trade is None:
                if any(summary.trade == which for summary in book.closed):
                    raise Refused(f"{which} is closed already; `zuno trade trades` lists closed trades.")
                raise NotFound(f"No trade {which} is open; `zuno trade positions` lists those that are.")
            if trade.manual:
                return await self.close_manual(trade.symbol, trade.id)
        symbols, done = self._list_symbols(which), list[str]()
        for symbol in symbols:
            stored = await self._worker.store_close(symbol, reason, request)
            done += [] if stored is None else [stored]
        await self._worker.advance()
        # Last, for they need a price: nothing at an exchange waits for it. A trade of the desk by its id ends no other.
        for symbol in symbols if which is None or isinstance(which, Symbol) else ():
            done += await self.close_manual(symbol)
        return tuple(done)

    async def close_though_unlogged(
        self, act: Callable[[], Awaitable[tuple[str, ...]]], reason: ExitReason, which: Symbol | str | None
    ) -> tuple[str, ...]:
        """What the exchanges hold does not wait for room on a disk."""
        self._state.writer.failure = None
        try:
            done = await act()
        except ZunoError:
            if self._state.writer.failure is None:
                raise
            done = ()
        if (failure := self._state.writer.failure) is None:
            return done
        killed = reason is ExitReason.KILL_SWITCH
        locked = self._state.has_written_lock(Protection.KILL_SWITCH)
        said = [
            what
            for venue in self._state.venues.values()
            for symbol in self._list_symbols(which)
            for what in await close_unlogged(
                self._state.book, self._state.account, venue, symbol, unlocked_kill=killed and not locked
            )
        ]
        sent = f"Sent all the same: {'; '.join(said)}." if said else "Nothing was left to send."
        unsaid = "neither recorded nor locked" if killed and not locked else "not recorded"
        raise Unavailable(f"{failure} {sent} It is {unsaid}; repeat this once it can be written.") from failure

    def _list_symbols(self, which: Symbol | str | None) -> list[Symbol]:
        """What the desk traded of a close: of a trade that a person wrote down nothing is at an exchange."""
        if which is None or isinstance(which, Symbol):
            return list(Symbol) if which is None else [which]
        trade = self._state.book.trades.get(which)
        return [] if trade is None or trade.manual else [trade.symbol]

    async def close_manual(self, symbol: Symbol, id: str | None = None) -> tuple[str, ...]:
        """Positions and orders that a person wrote down end at the market's price."""
        book, at = self._state.book, self._state.event_time()
        changes: list[PositionClosed | OrderCancelled] = []
        for trade in book.trades.values():
            if trade.manual and trade.symbol is symbol and id in (None, trade.id):
                quote = await self._state.quote(trade.exchange, symbol)
                price = quote.bid if trade.side is Side.LONG else quote.ask
                fee = trade.quantity * price * self._state.context.manual_fees_pct[trade.exchange] / 100
                changes.append(PositionClosed(at=at, id=trade.id, price=float(price), fee=float(fee)))
        if id is None:
            resting = (order for order in book.resting.values() if order.symbol is symbol)
            changes += [OrderCancelled(at=at, id=order.id) for order in resting]
        await self._state.write([ManualChange(at=at, change=change) for change in changes])
        return tuple(change.id for change in changes)
