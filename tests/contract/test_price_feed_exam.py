"""The exam of `PriceFeed`: every adapter, the seeded one that stands in for a market included, sits it unchanged.

A candidate is put into a small world (the ETH price in USDC at some hours, then silence, nonsense or nothing) and
asked. What a candidate may *not* know, a world does not offer: here every hour up to the world's end has a trade.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from math import isqrt
from typing import Protocol

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.adapters.chain.world import DEVNET, USDC
from zuno.adapters.http import RequestLimits
from zuno.adapters.prices.coingecko import CoinGecko
from zuno.adapters.prices.feeds import DeepestPool, FirstThatAnswers, PoolHistory, SeededFeed
from zuno.amm.model import Block, PoolKey, PoolState
from zuno.kernel.errors import Malformed, NotFound, Unavailable
from zuno.kernel.units import HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick
from zuno.lp.model.chains import ETH
from zuno.lp.model.history import PricedBlock
from zuno.lp.model.market import HOUR, Fact, Pair, PriceSeries
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.market import PriceFeed

ETH_USDC, USDC_ETH = Pair("ETH", "USDC"), Pair("USDC", "ETH")
NINE = 472_222 * HOUR  # some full hour
NOW = Seconds(NINE + 1234)

Prices = Mapping[int, int]
"""Cents for one ETH at full hours."""

PLENTY: Prices = {NINE - hour * HOUR: 300_000 + 777 * hour for hour in range(30)}


class Candidate(Protocol):
    def knowing(self, prices: Prices, now: Seconds) -> PriceFeed: ...

    def silent(self) -> PriceFeed: ...

    def babbling(self) -> PriceFeed: ...


class CoinGeckoCandidate:
    """Over a transport that answers in the service's own form; its true wire has tests of its own."""

    def knowing(self, prices: Prices, now: Seconds) -> PriceFeed:
        def answer(request: httpx2.Request) -> httpx2.Response:
            dollars = request.url.path.split("/")[-2] == "usd-coin"
            rows = [[at * 1000 + 66_845, 1.0 if dollars else cents / 100] for at, cents in sorted(prices.items())]
            return httpx2.Response(200, content=json.dumps({"prices": rows, "market_caps": [], "total_volumes": []}))

        return self._feed(answer)

    def silent(self) -> PriceFeed:
        return self._feed(lambda request: httpx2.Response(503))

    def babbling(self) -> PriceFeed:
        return self._feed(lambda request: httpx2.Response(200, content=b'{"prices":[[1700000000000,-3]]}'))

    def _feed(self, answer: object) -> PriceFeed:
        return CoinGecko(transport=httpx2.MockTransport(answer), patience=RequestLimits(attempts=1))  # type: ignore[arg-type]


class SeededCandidate:
    def knowing(self, prices: Prices, now: Seconds) -> PriceFeed:
        records = [(Seconds(at), Fraction(cents, 100)) for at, cents in sorted(prices.items())]
        return SeededFeed(ETH_USDC, lambda: records)

    def silent(self) -> PriceFeed:
        return SeededFeed(ETH_USDC, list)

    def babbling(self) -> PriceFeed:
        return SeededFeed(ETH_USDC, lambda: [(Seconds(NINE), Fraction(0))])


class PoolChain(Chain):
    """A chain of one ETH/USDC pool, whatever id is asked for; only what the feed reads is there."""

    info = DEVNET

    def __init__(self, path: tuple[PricedBlock, ...], head: Block) -> None:
        self._path = path
        self._head = head

    async def head(self) -> Block:
        return self._head

    async def pool(self, pool_id: HexId) -> PoolState:
        if not self._path:
            raise NotFound("There is no such pool")
        key = PoolKey(ETH.address, USDC.address, Pips(500), 10)
        past = [priced for priced in self._path if priced.block.timestamp <= self._head.timestamp]
        price = (past or [self._path[0]])[-1].sqrt_price_x96
        return PoolState(
            pool_id,
            key,
            ETH,
            USDC,
            price,
            Tick(0),
            0,
            Pips(500),
            Liquidity(1),
            0,
            0,
            past[-1].block if past else self._head,
        )

    async def price_path(self, pool_id: HexId, since: Seconds, step: int = HOUR) -> tuple[PricedBlock, ...]:
        return tuple(priced for priced in self._path if priced.block.timestamp >= since)


class PoolCandidate:
    def knowing(self, prices: Prices, now: Seconds) -> PriceFeed:
        path = tuple(
            # A swap a minute before the hour sets the price the hour closes at. 1e4: cents to base units of USDC.
            PricedBlock(self._block(at - 60), SqrtPriceX96(isqrt((cents * 10**4 << 192) // 10**18)))
            for at, cents in sorted(prices.items())
        )
        return self._feed(PoolChain(path, self._block(now)))

    def silent(self) -> PriceFeed:
        return self._feed(PoolChain((), self._block(NOW)))

    def babbling(self) -> PriceFeed:
        path = (PricedBlock(self._block(NINE - 60), SqrtPriceX96(0)),)
        return self._feed(PoolChain(path, self._block(NOW)))

    def _feed(self, chain: PoolChain) -> PriceFeed:
        return PoolHistory(chain, HexId("0x" + "11" * 32))

    def _block(self, at: int) -> Block:
        return Block(at // 12, HexId("0x" + "22" * 32), Seconds(at))


class DeepestPoolCandidate(PoolCandidate):
    def _feed(self, chain: PoolChain) -> PriceFeed:
        return DeepestPool(chain)


class FallbackCandidate:
    """A dead service first, a seed behind it."""

    def knowing(self, prices: Prices, now: Seconds) -> PriceFeed:
        return FirstThatAnswers([CoinGeckoCandidate().silent(), SeededCandidate().knowing(prices, now)])

    def silent(self) -> PriceFeed:
        return FirstThatAnswers([CoinGeckoCandidate().silent(), SeededCandidate().silent()])

    def babbling(self) -> PriceFeed:
        return FirstThatAnswers([SeededCandidate().babbling()])


CANDIDATES: dict[str, Candidate] = {
    "coingecko": CoinGeckoCandidate(),
    "seeded": SeededCandidate(),
    "pool": PoolCandidate(),
    "deepest pool": DeepestPoolCandidate(),
    "fallback": FallbackCandidate(),
}


@pytest.fixture(params=CANDIDATES.values(), ids=list(CANDIDATES))
def candidate(request: pytest.FixtureRequest) -> Candidate:
    return request.param


async def history(candidate: Candidate, prices: Prices, hours: int, now: Seconds = NOW) -> Fact[PriceSeries]:
    return await candidate.knowing(prices, now).history(ETH_USDC, hours, now)


def near(price: Fraction, cents: int) -> bool:
    """Equal but for the rounding of a Q96 square root, which is all an adapter may lose."""
    return abs(price / Fraction(cents, 100) - 1) < Fraction(1, 10**12)


async def test_gives_the_closes_of_exactly_the_window_oldest_first(candidate: Candidate) -> None:
    fact = await history(candidate, PLENTY, 24)
    assert [point.at for point in fact.value.points] == [NINE - hour * HOUR for hour in reversed(range(24))]
    assert all(near(point.price, PLENTY[point.at]) for point in fact.value.points)
    assert (fact.value.pair, fact.value.gaps) == (ETH_USDC, 0)


async def test_dates_and_signs_the_fact(candidate: Candidate) -> None:
    fact = await history(candidate, PLENTY, 24)
    assert (fact.as_of, fact.read_at, fact.age) == (NINE, NOW, 1234)
    assert not fact.stale
    assert fact.source
    assert fact.source in candidate.knowing(PLENTY, NOW).source


async def test_counts_the_hours_before_its_first_price_as_gaps(candidate: Candidate) -> None:
    fact = await history(candidate, PLENTY, 100)
    assert (len(fact.value.points), fact.value.gaps) == (30, 70)


async def test_hours_that_have_not_ended_have_no_close(candidate: Candidate) -> None:
    to_come = PLENTY | {NINE + HOUR: 1, NINE + 2 * HOUR: 2}  # type: ignore[operator]
    fact = await history(candidate, to_come, 3)
    assert [point.at for point in fact.value.points] == [NINE - 2 * HOUR, NINE - HOUR, NINE]


async def test_is_stale_once_its_last_close_is_old(candidate: Candidate) -> None:
    head = Seconds(NINE + 60)  # a pool's world ends with its chain's head, not with its last swap
    fact = await candidate.knowing(PLENTY, head).history(ETH_USDC, 30, Seconds(NINE + 3 * HOUR))
    assert fact.stale
    assert (fact.as_of, fact.value.gaps) == (NINE, 3)


async def test_the_pair_turned_round_is_the_exact_reciprocal(candidate: Candidate) -> None:
    there = await history(candidate, PLENTY, 24)
    back = await candidate.knowing(PLENTY, NOW).history(USDC_ETH, 24, NOW)
    assert back.value.pair == USDC_ETH
    assert [point.price for point in back.value.points] == [1 / point.price for point in there.value.points]


async def test_spot_is_the_newest_price(candidate: Candidate) -> None:
    now = Seconds(NINE + 70)
    fact = await candidate.knowing(PLENTY, now).spot(ETH_USDC, now)
    assert near(fact.value, PLENTY[NINE])
    assert fact.read_at == now
    assert 0 <= fact.age <= 130
    assert not fact.stale
    back = await candidate.knowing(PLENTY, now).spot(USDC_ETH, now)
    assert back.value == 1 / fact.value


async def test_spot_grows_stale_when_nothing_new_comes(candidate: Candidate) -> None:
    fact = await candidate.knowing(PLENTY, NOW).spot(ETH_USDC, NOW)
    assert fact.stale
    assert 1100 < fact.age < 1300


@pytest.mark.parametrize("pair", [Pair("DOGE", "USDC"), Pair("ETH", "DOGE"), Pair("", "")], ids=str)
async def test_says_that_it_does_not_know_a_pair(candidate: Candidate, pair: Pair) -> None:
    feed = candidate.knowing(PLENTY, NOW)
    with pytest.raises(Unavailable, match=r"\w+ \w+"):
        await feed.history(pair, 24, NOW)
    with pytest.raises(Unavailable, match=r"\w+ \w+"):
        await feed.spot(pair, NOW)


async def test_silence_is_unavailable(candidate: Candidate) -> None:
    with pytest.raises(Unavailable):
        await candidate.silent().history(ETH_USDC, 24, NOW)
    with pytest.raises(Unavailable):
        await candidate.silent().spot(ETH_USDC, NOW)


async def test_knowing_only_other_times_is_unavailable(candidate: Candidate) -> None:
    with pytest.raises(Unavailable):
        await history(candidate, {NINE - 500 * HOUR: 300_000}, 24, Seconds(NINE - 501 * HOUR))


async def test_nonsense_is_malformed(candidate: Candidate) -> None:
    # A feed of feeds has asked everyone it knows by then: for its caller the price is unavailable.
    expected = Unavailable if isinstance(candidate, FallbackCandidate) else Malformed
    with pytest.raises(expected):
        await candidate.babbling().history(ETH_USDC, 24, NOW)
    with pytest.raises(expected):
        await candidate.babbling().spot(ETH_USDC, NOW)


@pytest.mark.parametrize("hours", [0, -1])
async def test_a_window_of_no_hours_is_our_own_mistake(candidate: Candidate, hours: int) -> None:
    with pytest.raises(ValueError, match="hours"):
        await candidate.knowing(PLENTY, NOW).history(ETH_USDC, hours, NOW)


@settings(max_examples=examples(40), deadline=None)
@given(
    known=st.integers(1, 60),
    hours=st.integers(1, 90),
    seconds=st.integers(0, HOUR - 1),
    cents=st.lists(st.integers(1, 10**9), min_size=60, max_size=60),
)
@pytest.mark.parametrize("name", CANDIDATES)
async def test_points_and_gaps_always_make_up_the_window(
    name: str, known: int, hours: int, seconds: int, cents: list[int]
) -> None:
    prices = {NINE - hour * HOUR: cents[hour] for hour in range(known)}
    now = Seconds(NINE + max(seconds, 120))  # a service's row for the hour arrives a minute after it
    series = (await history(CANDIDATES[name], prices, hours, now)).value
    times = [point.at for point in series.points]
    assert len(times) + series.gaps == hours
    assert times == sorted(set(times))
    assert all(at % HOUR == 0 and now - hours * HOUR < at <= now for at in times)
    assert len(times) == min(known, hours)
    assert all(near(point.price, prices[point.at]) for point in series.points)
