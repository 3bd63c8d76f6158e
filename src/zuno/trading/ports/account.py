"""What the desk holds, as of a moment of the market."""

from __future__ import annotations

from typing import Protocol

from zuno.kernel.units import Millis
from zuno.trading.model.account import Account, BookChange


class AccountBook(Protocol):
    """Promises, for one market (`origin`, as its past is labelled):

    - what was held strictly before a moment, whenever it is asked: a later change never alters an earlier answer;
    - another market's positions are not in it;
    - a book nobody wrote yet holds the cash it began with and nothing else;
    - `Unavailable` where it cannot be read, `Broken` where its entries contradict each other.
    """

    async def at(self, origin: str, moment: Millis) -> Account: ...


class PaperBook(AccountBook, Protocol):
    """An account that is only written down. Promises, beside those above:

    - changes come back in the order they were written, each market's own;
    - `write` puts one change behind so many others, on disk when it returns; where another change stands there already,
      or fewer are before it, it is `Refused` and nothing is written; where the same does nothing happens. Among all
      processes looking and writing are one step.
    - whether a change can be is the rules' affair (`core.paper`): a writer asks them first, a reader finds a book that
      contradicts them `Broken`.
    """

    async def changes(self, origin: str) -> tuple[BookChange, ...]: ...

    async def write(self, origin: str, change: BookChange, after: int) -> None: ...
