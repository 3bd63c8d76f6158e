"""A paper book that lives as long as its process: for tests and studies that leave nothing behind."""

from __future__ import annotations

from zuno.kernel.errors import Broken, Refused
from zuno.kernel.units import Millis
from zuno.trading.model.account import Account, BookChange
from zuno.trading.rules.paper_book import replay_changes


class BookInMemory:
    """Nothing here awaits, so nobody can come between looking and writing."""

    def __init__(self) -> None:
        self._books: dict[str, tuple[BookChange, ...]] = {}

    async def at(self, origin: str, moment: Millis) -> Account:
        try:
            return replay_changes(await self.changes(origin), moment)
        except Refused as error:
            raise Broken(f"The paper book of {origin} contradicts itself: {error}") from error

    async def changes(self, origin: str) -> tuple[BookChange, ...]:
        return self._books.get(origin, ())

    async def write(self, origin: str, change: BookChange, after: int) -> None:
        written = await self.changes(origin)
        if (here := len(written)) < after:
            raise Refused(f"The book has {here} changes, not {after}; look again.")
        if written[after : after + 1] == (change,):
            return
        if here > after:
            raise Refused(f"The book has more than {after} changes by now: somebody else wrote; look again.")
        self._books[origin] = (*written, change)
