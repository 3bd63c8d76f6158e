"""Where everything that happened to an account is kept, event by event, and how its trades came out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from zuno.kernel.units import Millis
from zuno.trading.model.trade_events import TradeEvent

if TYPE_CHECKING:
    from zuno.trading.model.memory import ClosedTrade


class TradeLog(Protocol):
    """Promises, for each account by itself:

    - events come back in the order they were written, numbered from 1 without a gap;
    - `append` puts events behind so many others, all of them or none, on disk when it returns. Where others stand there
      already it is `Refused` and nothing is written; where the very same do, nothing happens. Among all processes
      looking and writing are one step;
    - `Unavailable` where it cannot be read or written, `Broken` where what is there is no log.
    """

    async def events(self, account: str, after: int = 0) -> tuple[TradeEvent, ...]:
        """Those numbered above `after`."""

    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None: ...

    async def accounts(self) -> tuple[str, ...]:
        """Every account that has events."""


class TradeRecord(Protocol):
    """Promises, for one market (`origin`, as its past is labelled):

    - trades that were closed strictly before a moment, in the order they were closed, whenever it is asked: a trade
      that closes later never alters an earlier answer;
    - each trade once, whoever closed it;
    - another market's trades are not in it, so that paper on a recorded past never counts for live;
    - a record nobody wrote yet holds none;
    - `Unavailable` where it cannot be read, `Broken` where its entries contradict each other.
    """

    async def closed_trades(self, origin: str, before: Millis) -> tuple[ClosedTrade, ...]: ...
