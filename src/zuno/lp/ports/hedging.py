"""Short perpetuals kept beside liquidity, by a desk that this one knows nothing of: plain amounts cross."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Protocol

from zuno.kernel.units import Millis
from zuno.lp.model.chains import ChainInfo
from zuno.lp.model.hedges import PerpetualQuote, ShortResult, ShortState


class ShortDesk(Protocol):
    """Promises shorts of coins in dollars, never on paper for a position with real money."""

    async def choose_account(self, chain: ChainInfo) -> str:
        """Where positions of a chain are hedged. `Refused` where they cannot be, with the reason."""

    async def quote(self, coin: str, chain: ChainInfo) -> PerpetualQuote:
        """`Refused` for a coin without a perpetual; `Unavailable` where its cost or funding is not known."""

    async def reserve(self, account: str, most: Mapping[str, Decimal], request: str) -> None:
        """Have the margin of so many coins by market set aside, once for each request. `Refused` where it is not
        free."""

    async def set_shorts(
        self, account: str, wanted: Mapping[str, Decimal], decided: Millis
    ) -> Mapping[str, ShortState]:
        """Bring all shorts of an account to these; what it holds beside is ended. The same of the same moment again
        orders nothing twice. What cannot be done now is said, and not raised."""

    async def read_held(self, account: str, markets: Iterable[str]) -> Mapping[str, Decimal]:
        """What is short of these markets, in whole coins; nothing is ordered."""

    async def release(self, account: str) -> None:
        """Give back what is set aside, once nothing is held."""

    async def read_result(self, account: str, market: str) -> ShortResult: ...
