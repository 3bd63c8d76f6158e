"""How the desk's trades came out, as of a moment of the market."""

from __future__ import annotations

from typing import Protocol

from zuno.kernel.units import Millis
from zuno.trading.model.record import ClosedTrade


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
