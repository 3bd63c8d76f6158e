"""An exchange that takes orders. Held by `execute`, its adapters and wiring alone: it can lose money."""

from decimal import Decimal
from typing import Protocol

from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model import orders


class OrderVenue(Protocol):
    """Promises, whatever venue it is:

    - `place` makes at most one order of a client id. Placed again, the order that stands is returned, whatever became
      of it since. An order the venue does not take comes back REJECTED with the venue's reason; it raises nothing. An
      id that is taken is no rejection: its order is returned, or it is `Unavailable` until the venue shows it.
    - `unread`: an order that only reduces is sent though it cannot be looked up, for nobody has sent it before, or sent
      twice it does no harm.
    - `good_till`: the venue ends an order that rests then or a little later, if it can. It is for when no
      desk is left to cancel it.
    - `Unavailable` (timeout, lost reply, 5xx, HTML, rate limit after the waits the venue asked for): nobody knows
      whether it was placed. `find` then says.
    - `find` is None only where the venue has said that there is no such order, open or past. `kind`, where the caller
      knows it: a venue that keeps kinds of orders apart is asked for that one alone.
    - `cancel` of an order that is over returns it as it ended; what was filled before stays filled. `NotFound` for an
      order the venue never had.
    - `open_orders` lists both kinds, plain and conditional. Orders that we did not place are in it.
    - `fills` and `funding` come oldest first, each with its id; asking again from the same moment gives them again, and
      never fewer. A fill is there no later than the order that it belongs to says that it was filled.
    - A reduce-only order never opens or turns a position; what is more than the position is not filled.
    - `Refused` where the keys may not trade, or may withdraw; what reduces a position is sent all the same.
    """

    @property
    def exchange(self) -> Venue: ...

    @property
    def paper(self) -> bool:
        """No money can be lost: a demo account at an exchange, too."""

    @property
    def simulated(self) -> bool:
        """Orders are filled by our own code: it answers at once, and lists what happened as it happens."""

    async def now(self) -> Millis:
        """Return the venue's time. `Unavailable` where it takes longer than ten seconds to say it."""

    async def rights(self) -> orders.AccountRights: ...

    async def filters(self, symbol: Symbol) -> orders.Filters:
        """As they are now. `NotFound` for a symbol the venue does not have."""

    async def quote(self, symbol: Symbol) -> orders.VenueQuote:
        """Best bid and ask, and the mark, as they are now. `Unavailable` where the newest is stale."""

    async def place(
        self, order: orders.OrderRequest, good_till: Millis | None = None, *, unread: bool = False
    ) -> orders.Order: ...
    async def find(
        self, symbol: Symbol, client_id: orders.ClientId, kind: orders.OrderType | None = None
    ) -> orders.Order | None: ...
    async def cancel(
        self, symbol: Symbol, client_id: orders.ClientId, kind: orders.OrderType | None = None
    ) -> orders.Order: ...
    async def open_orders(self) -> tuple[orders.Order, ...]: ...

    async def fills(self, symbol: Symbol, since: Millis) -> tuple[orders.Fill, ...]:
        """At or after a moment."""

    async def order_fills(self, order: orders.Order) -> tuple[orders.Fill, ...] | None:
        """Those that the order's own record lists. None where the venue lists fills by time alone."""

    async def funding(self, symbol: Symbol, since: Millis) -> tuple[orders.FundingPayment, ...]: ...
    async def positions(self) -> tuple[orders.VenuePosition, ...]: ...
    async def balance(self) -> orders.Balance: ...
    async def close(self) -> None: ...


class MarginFunds(Protocol):
    """Moves money between the wallets of one account."""

    async def add_margin(self, key: str, source: Venue, target: Venue, symbol: Symbol, amount: Decimal) -> Decimal:
        """Take money from a venue's cash and add it to the margin of what another holds of a symbol. At most once of a
        key: asked again, what is missing of it is done. Venues with one wallet need no transfer. What was moved: it may
        differ by less than a cent. `Refused` where it cannot be, and nothing was moved then; `Unavailable`: nobody
        knows, ask again."""
