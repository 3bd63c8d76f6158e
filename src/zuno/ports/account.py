"""What the desk holds, as of a moment of the market."""

from __future__ import annotations

from typing import Protocol

from zuno.domain.account import Account
from zuno.domain.units import Millis


class AccountBook(Protocol):
    """Promises, for one market (`origin`, as its past is labelled):

    - what was held strictly before a moment, whenever it is asked: a later change never alters an earlier answer;
    - another market's positions are not in it;
    - a book nobody wrote yet holds the cash it began with and nothing else;
    - `Unavailable` where it cannot be read, `Broken` where its entries contradict each other.
    """

    async def at(self, origin: str, moment: Millis) -> Account: ...
