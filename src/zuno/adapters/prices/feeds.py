"""Price feeds that need no service: a pool's own swaps, a seeded series, the chain's gas; and feeds made of others."""

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

from zuno.amm.identity import pool_id
from zuno.amm.model import PoolKey, PoolState, whole_token1_price
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.units import HexId, Seconds, SqrtPriceX96
from zuno.lp.model.chains import DataFee, NativeCoin, curated_keys, market_name, unwrap_symbol
from zuno.lp.model.history import PricedBlock
from zuno.lp.model.market import HOUR, Fact, GasQuote, Pair, PricePath, PricePoint, PriceSeries
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.market import PriceFeed


def is_inverse(asked: Pair, known: Pair, source: str) -> bool:
    """Whether `asked` is `known` upside down; `Unavailable` when it is another pair. Exact names win; failing that,
    a wrapper counts as its coin. (In an ETH/WETH pool only exact names tell the legs apart.)"""
    for name in (str, unwrap_symbol):
        base, quote = name(asked.base), name(asked.quote)
        if (base, quote) == (name(known.base), name(known.quote)):
            return False
        if (base, quote) == (name(known.quote), name(known.base)):
            return True
    raise Unavailable(f"{source} prices {known}, not {asked}")


HISTORY_LIMIT = Seconds(2 * HOUR)
"""The last close is at most an hour old when it comes; one missed hour more and the history is stale."""
SPOT_LIMIT = Seconds(600)


def window(hours: int, now: Seconds) -> range:
    """The times of the last `hours` closes by `now`, oldest first. The running hour has no close."""
    if hours < 1:
        raise ValueError(f"a price history of {hours} hours")
    last = now // HOUR * HOUR
    return range(last - (hours - 1) * HOUR, last + 1, HOUR)


def history_fact(
    closes: Mapping[int, Fraction], pair: Pair, hours: int, now: Seconds, source: str, notes: tuple[str, ...] = ()
) -> Fact[PriceSeries]:
    """The `closes` of the window, its missing hours counted; `Unavailable` when none is left."""
    wanted = window(hours, now)
    points = tuple(PricePoint(Seconds(at), closes[at]) for at in wanted if at in closes)
    if not points:
        known = f"; its last close is dated {max(closes)}" if closes else ""
        raise Unavailable(f"{source} has no hourly close of {pair} from {wanted[0]} to {wanted[-1]}{known}")
    series = PriceSeries(pair, points, gaps=hours - len(points))
    return Fact(series, source, points[-1].at, now, HISTORY_LIMIT, notes)


Record = tuple[Seconds, Fraction]
"""When, and what one whole base token cost in whole quote tokens."""


class SeededFeed:
    """`records` is called each time, because a simulated world adds records as it moves. The close of an hour is the
    last record in it, its end included. An hour without a record is a gap."""

    source = "seed"

    def __init__(self, pair: Pair, records: Callable[[], Sequence[Record]]) -> None:
        self._pair = pair
        self._records = records

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        # Ends round up; the last stays.
        closes = {-(-at // HOUR) * HOUR: price for at, price in self._records_by(pair, now)}
        return history_fact(closes, pair, hours, now, self.source)

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        known = self._records_by(pair, now)
        if not known:
            raise Unavailable(f"{self.source} has no price of {pair} by {now}")
        as_of, price = known[-1]
        return Fact(price, self.source, as_of, now, SPOT_LIMIT)

    def _records_by(self, pair: Pair, now: Seconds) -> list[Record]:
        """The records by `now`, priced the way round that was asked."""
        inverse = is_inverse(pair, self._pair, self.source)
        records = self._records()
        if any(price.numerator <= 0 for _, price in records):
            raise Malformed(f"The seeded {self._pair} series holds a price that is not above zero")
        if any(later <= earlier for (earlier, _), (later, _) in pairwise(records)):
            raise Malformed(f"The seeded {self._pair} series is not in order of time")
        return [(at, 1 / price if inverse else price) for at, price in records if at <= now]


class SeededPath:
    """The seeded price with every move since: all of it is known, so no change is too short to count."""

    source = "seed"

    def __init__(self, pair: Pair, records: Callable[[], Awaitable[Sequence[Record]]]) -> None:
        self._pair, self._records = pair, records

    async def path(self, pair: Pair, since: Seconds, now: Seconds) -> Fact[PricePath]:
        inverse = is_inverse(pair, self._pair, self.source)
        known = [PricePoint(at, 1 / price if inverse else price) for at, price in await self._records() if at <= now]
        if not known or known[-1].at < since:
            raise Unavailable(f"{self.source} has no price of {pair} from {since} to {now}")
        before = [point for point in known if point.at <= since][-1:]
        points = (*before, *(point for point in known if point.at > since))
        return Fact(PricePath(pair, points), self.source, points[-1].at, now, HISTORY_LIMIT)


class PoolHistory:
    """Hourly closes of one pool: the price after the last swap before the hour's end. An hour without a swap repeats
    the last close and is counted in a note; hours before the first swap and after the head are gaps."""

    source = "pool swaps"

    def __init__(self, chain: Chain, pool_id: HexId) -> None:
        self._chain = chain
        self._pool_id = pool_id

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        wanted = window(hours, now)
        try:
            pool = await self._chain.pool(self._pool_id)
            inverse = is_inverse(pair, _pair_of(pool), self.source)
            head = await self._chain.head()
            path = await self._chain.price_path(self._pool_id, Seconds(wanted[0] - HOUR))
        except Refused as refusal:  # a pool that is unknown or has no price cannot know the pair's
            raise Unavailable(f"{self.source}: {refusal}") from refusal
        if any(priced.sqrt_price_x96 <= 0 for priced in path):
            raise Malformed(f"The pool's {pair} history holds a price that is not above zero")
        if any(b.block.timestamp < a.block.timestamp for a, b in pairwise(path)):
            raise Malformed(f"The pool's {pair} history is not in order of time")
        ended = [close for close in wanted if close <= head.timestamp]
        closes, quiet = _closes(path, ended)
        notes = (f"{quiet} of {len(closes)} hours had no swap: the price stood still",) if quiet else ()
        priced = {close: _whole_price(sqrt_price, pool, inverse) for close, sqrt_price in closes.items()}
        return history_fact(priced, pair, hours, now, self.source, notes)

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        try:
            pool = await self._chain.pool(self._pool_id)
        except Refused as refusal:
            raise Unavailable(f"{self.source}: {refusal}") from refusal
        inverse = is_inverse(pair, _pair_of(pool), self.source)
        if pool.sqrt_price_x96 <= 0:
            raise Malformed(f"The pool has no {pair} price")
        price = _whole_price(pool.sqrt_price_x96, pool, inverse)
        return Fact(price, "pool price", pool.block.timestamp, now, SPOT_LIMIT)


class DeepestPool:
    """A pair's price in the chain's own pool of it that holds the most liquidity, among the usual tiers of curated
    tokens. For what gas costs where no price service answers: anybody can move a pool, so no limit rests on it."""

    source = "deepest pool"

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        return replace(await (await self._choose(pair)).history(pair, hours, now), source=self.source)

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        return replace(await (await self._choose(pair)).spot(pair, now), source=self.source)

    async def _choose(self, pair: Pair) -> PoolHistory:
        info = self._chain.info
        names = {token.address: market_name(token) for token in info.tokens}
        legs = {unwrap_symbol(pair.base), unwrap_symbol(pair.quote)}
        keys = [key for key in curated_keys(info) if {names[key.currency0], names[key.currency1]} == legs]
        pools = [pool for pool in await asyncio.gather(*map(self._read, keys)) if pool is not None and pool.liquidity]
        if not pools:
            raise Unavailable(f"{info.title} has no usual pool of {pair} with liquidity")
        return PoolHistory(self._chain, max(pools, key=lambda pool: pool.liquidity).id)

    async def _read(self, key: PoolKey) -> PoolState | None:
        own_id = pool_id(key.currency0, key.currency1, key.fee, key.tick_spacing, key.hooks)
        try:
            return await self._chain.pool(HexId(own_id))
        except Refused:
            return None


def _pair_of(pool: PoolState) -> Pair:
    """By symbol where we named the token ourselves, else by address; a wrapper keeps its own name beside its coin's."""
    base, quote = (token.symbol if token.verified else token.address for token in (pool.token0, pool.token1))
    return Pair(base, quote)


def _closes(path: tuple[PricedBlock, ...], ended: list[int]) -> tuple[dict[int, SqrtPriceX96], int]:
    """The price at each of the `ended` hours once one is known, and how many of those hours had no swap. An hour is
    [start, end): a swap in the very second it ends belongs to the next one."""
    places = {close: bisect_left(path, close, key=lambda swap: swap.block.timestamp) for close in ended}
    latest = {close: path[place - 1] for close, place in places.items() if place}
    quiet = sum(swap.block.timestamp < close - HOUR for close, swap in latest.items())
    return {close: swap.sqrt_price_x96 for close, swap in latest.items()}, quiet


def _whole_price(sqrt_price: SqrtPriceX96, pool: PoolState, inverse: bool) -> Fraction:
    """Whole token1 for one whole token0, or the other way round."""
    price = whole_token1_price(sqrt_price, pool.token0, pool.token1)
    return 1 / price if inverse else price


T = TypeVar("T")


class FirstThatAnswers:
    """Asks the feeds in order. A fresh fact ends the search; a stale one is kept in case nobody has better. The fact
    keeps the source of the feed that gave it; its notes open with the reasons of those before."""

    def __init__(self, feeds: Sequence[PriceFeed]) -> None:
        if not feeds:
            raise ValueError("no price feed to ask")
        self._feeds = tuple(feeds)
        self.source = ", else ".join(feed.source for feed in feeds)

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        return await self._first(pair, lambda feed: feed.history(pair, hours, now))

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        return await self._first(pair, lambda feed: feed.spot(pair, now))

    async def _first(self, pair: Pair, ask: Callable[[PriceFeed], Awaitable[Fact[T]]]) -> Fact[T]:
        notes: list[str] = []
        failures: list[Exception] = []
        second_best: Fact[T] | None = None
        for feed in self._feeds:
            try:
                fact = await ask(feed)
            except (Unavailable, Malformed) as failure:
                notes.append(f"{feed.source}: {failure}")
                failures.append(failure)
                continue
            if not fact.stale:
                return replace(fact, notes=(*notes, *fact.notes))
            notes.append(f"{feed.source}: its last price is {fact.age} s old, more than {fact.limit} s")
            second_best = second_best or fact
        if second_best is not None:
            return replace(second_best, notes=(*notes, *second_best.notes))
        reasons = "; ".join(notes)
        raise Unavailable(f"No source priced {pair}: {reasons}") from ExceptionGroup("every feed failed", failures)


class WithReference:
    """`reference` gives whole quote tokens for one whole base token of `pair`, and is never the pool itself."""

    def __init__(self, feed: PriceFeed, pair: Pair, reference: Callable[[], Awaitable[Fraction]], label: str) -> None:
        self._pair = pair
        self._reference = reference
        self._label = label
        self.source, self.history = f"{feed.source}, {label}", feed.history

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        inverse = is_inverse(pair, self._pair, self._label)
        price = await self._reference()
        return Fact(1 / price if inverse else price, self._label, now, now, SPOT_LIMIT)


GAS_LIMIT = Seconds(60)


class ChainGas:
    def __init__(self, chain: Chain) -> None:
        self._chain = chain

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
        return Fact(quote, f"{self._chain.info.name} head", head.timestamp, now, GAS_LIMIT, notes)


NATIVE_LIMIT = Seconds(600)


class NativePrice:
    """The newest price of the native currency that `feed` knows: a price service's, a pool's, or a seed."""

    def __init__(self, feed: PriceFeed, coin: NativeCoin) -> None:
        self._feed = feed
        self._coin = coin.symbol

    async def native(self, quote: str, now: Seconds) -> Fact[Fraction]:
        if unwrap_symbol(quote) == self._coin:
            return Fact(Fraction(1), "same currency", now, now, NATIVE_LIMIT)
        return replace(await self._feed.spot(Pair(self._coin, quote), now), limit=NATIVE_LIMIT)
