"""What gas costs, as the chain itself says, dated by its head, and what the currency it is paid in is worth."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from zuno.adapters.prices.hourly import unwrap_symbol
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Seconds
from zuno.lp.model.chains import DataFee
from zuno.lp.model.market import Fact, GasQuote, Pair
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.market import PriceFeed

GAS_LIMIT = Seconds(60)


class ChainGas:
    """Gas from the chain that will be paid."""

    def __init__(self, chain: Chain, *, limit: Seconds = GAS_LIMIT) -> None:
        self._chain = chain
        self._limit = limit

    async def gas(self, now: Seconds) -> Fact[GasQuote]:
        # The head is read first: should a block arrive in between, the quote is younger than it says, never older.
        head = await self._chain.head()
        quote = await self._chain.gas()
        parts = (quote.base_fee, quote.priority_fee, quote.l1_fee_per_byte or 0)
        if min(parts) < 0:
            raise Malformed(f"{self._chain.info.title} quotes a negative gas price")
        # Arbitrum folds its data fee into the gas units of an estimate, so only the OP stack must name a price for it.
        lacks_data_fee = self._chain.info.data_fee is DataFee.OP_STACK and quote.l1_fee_per_byte is None
        notes = ("the L1 data fee is unknown: a cost from this quote is a lower bound",) if lacks_data_fee else ()
        return Fact(quote, f"{self._chain.info.name} head", head.timestamp, now, self._limit, notes)


NATIVE = "ETH"
NATIVE_LIMIT = Seconds(600)


class NativePrice:
    """The newest price of the native currency that `feed` knows: a price service's, a pool's, or a seed."""

    def __init__(self, feed: PriceFeed) -> None:
        self._feed = feed

    async def native(self, quote: str, now: Seconds) -> Fact[Fraction]:
        if unwrap_symbol(quote) == NATIVE:
            return Fact(Fraction(1), "same currency", now, now, NATIVE_LIMIT)
        return replace(await self._feed.spot(Pair(NATIVE, quote), now), limit=NATIVE_LIMIT)
