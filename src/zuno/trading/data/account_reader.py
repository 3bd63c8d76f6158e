"""A trading account as it is, and as it was before a moment of the market."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from zuno.kernel.errors import Broken, Refused
from zuno.kernel.units import Millis
from zuno.trading.ports.trade_log import TradeLog
from zuno.trading.rules.performance import AccountHistory
from zuno.trading.rules.trading_book import TradingBook


class AccountReader:
    """Keeps the book of each account, so that looking again costs what was written since."""

    def __init__(self, log: TradeLog, history: Callable[[str], Awaitable[AccountHistory]] | None = None) -> None:
        """`history`: gives an account from its snapshots, shared by all who ask; None: it is folded here."""
        self._log = log
        self._history = history
        self._books: dict[str, AccountHistory] = {}

    async def read(self, account: str) -> AccountHistory:
        """The book as it is. `Broken` where its events contradict each other."""
        if self._history is not None:
            return await self._history(account)
        book = self._books.pop(account, None) or AccountHistory()
        await self._fold(account, book, None)
        self._books[account] = book
        return book

    async def read_before(self, account: str, moment: Millis) -> TradingBook:
        """What was written of strictly before a moment: a later event never alters it."""
        newest = await self.read(account)
        if newest.newest < moment or not newest.count:
            return newest
        book = TradingBook()
        await self._fold(account, book, moment)
        return book

    def forget(self, account: str) -> None:
        """Read it anew: what was tried on it was not written."""
        self._books.pop(account, None)

    async def _fold(self, account: str, book: TradingBook, before: Millis | None) -> None:
        for event in await self._log.events(account, book.count):
            if before is not None and event.at >= before:
                return
            try:
                book.apply(event)
            except Refused as error:
                raise Broken(f"The events of account {account} contradict each other: {error}") from error
