"""Gas dated by the chain's head, and the native currency's price with a limit of its own."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from zuno.adapters.prices.feeds import ChainGas, NativePrice, SeededFeed
from zuno.amm.model import Block
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import HexId, Seconds, Wei
from zuno.lp.model.chains import ETHER, POL, ChainInfo, chain_named
from zuno.lp.model.market import Fact, GasQuote, Pair
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.market import GasFeed, NativeFeed

NOW = Seconds(1_767_600_000)


class Quoting(Chain):
    """A chain that has a head and a gas price, and remembers in which order they were read."""

    def __init__(self, name: str, quote: GasQuote, age: int = 5) -> None:
        info = chain_named(name)
        assert info is not None
        self._info = info
        self._quote = quote
        self._age = age
        self.read: list[str] = []

    @property
    def info(self) -> ChainInfo:
        return self._info

    async def head(self) -> Block:
        self.read.append("head")
        return Block(7, HexId("0x" + "22" * 32), Seconds(NOW - self._age))

    async def gas(self) -> GasQuote:
        self.read.append("gas")
        return self._quote


PLAIN = GasQuote(Wei(20), Wei(2))


async def test_gas_is_the_chains_own_dated_by_a_head_read_before_it() -> None:
    chain = Quoting("mainnet", PLAIN)
    feed: GasFeed = ChainGas(chain)
    fact = await feed.gas(NOW)
    assert (fact.value, fact.source, fact.as_of, fact.age, fact.notes) == (PLAIN, "mainnet head", NOW - 5, 5, ())
    assert fact.value.price == 22
    assert chain.read == ["head", "gas"]


@pytest.mark.parametrize(("age", "stale"), [(60, False), (61, True)])
async def test_gas_is_stale_after_a_minute(age: int, stale: bool) -> None:
    assert (await ChainGas(Quoting("mainnet", PLAIN, age)).gas(NOW)).stale is stale


@pytest.mark.parametrize(
    ("chain", "fee", "noted"),
    [
        ("base", None, True),
        ("base", 16, False),
        ("base", 0, False),
        ("arbitrum", None, False),
        ("unichain", None, True),
        ("polygon", None, False),
    ],
)
async def test_a_missing_data_fee_is_said_where_the_rollup_has_one(chain: str, fee: int | None, noted: bool) -> None:
    quote = GasQuote(Wei(20), Wei(2), None if fee is None else Wei(fee))
    fact = await ChainGas(Quoting(chain, quote)).gas(NOW)
    assert fact.value.l1_fee_per_byte == fee
    assert any("bound" in note for note in fact.notes) is noted


@pytest.mark.parametrize(
    "quote", [GasQuote(Wei(-1), Wei(2)), GasQuote(Wei(1), Wei(-2)), GasQuote(Wei(1), Wei(2), Wei(-3))]
)
async def test_a_negative_price_of_gas_is_malformed(quote: GasQuote) -> None:
    with pytest.raises(Malformed, match="negative"):
        await ChainGas(Quoting("mainnet", quote)).gas(NOW)


def eth_at(price: int, age: int = 0) -> SeededFeed:
    return SeededFeed(Pair("ETH", "USDC"), lambda: [(Seconds(NOW - age), Fraction(price))])


async def test_the_native_price_is_the_feeds_newest_with_its_source_and_date() -> None:
    feed: NativeFeed = NativePrice(eth_at(3000, age=45), ETHER)
    fact = await feed.native("USDC", NOW)
    assert (fact.value, fact.source, fact.age) == (3000, "seed", 45)


@pytest.mark.parametrize(("age", "stale"), [(600, False), (601, True)])
async def test_the_native_price_has_a_limit_of_ten_minutes_whatever_the_feeds_is(age: int, stale: bool) -> None:
    class Lenient(SeededFeed):
        async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
            return replace(await super().spot(pair, now), limit=Seconds(10**6))

    lenient = Lenient(Pair("ETH", "USDC"), lambda: [(Seconds(NOW - age), Fraction(3000))])
    assert (await NativePrice(lenient, ETHER).native("USDC", NOW)).stale is stale


@pytest.mark.parametrize("quote", ["ETH", "WETH"])
async def test_the_native_currency_in_itself_costs_one_and_nobody_is_asked(quote: str) -> None:
    fact = await NativePrice(SeededFeed(Pair("ETH", "USDC"), list), ETHER).native(quote, NOW)
    assert (fact.value, fact.source, fact.age) == (1, "same currency", 0)


async def test_a_token_the_feed_cannot_price_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="ETH/DAI"):
        await NativePrice(eth_at(3000), ETHER).native("DAI", NOW)


async def test_gas_of_another_coin_is_priced_by_that_coin() -> None:
    pol = SeededFeed(Pair("POL", "USDC"), lambda: [(NOW, Fraction(1, 4))])
    assert (await NativePrice(pol, POL).native("USDC", NOW)).value == Fraction(1, 4)
    assert (await NativePrice(pol, POL).native("WPOL", NOW)).source == "same currency"
    with pytest.raises(Unavailable, match="POL/USDC"):
        await NativePrice(eth_at(3000), POL).native("USDC", NOW)
    with pytest.raises(Unavailable, match="POL/WETH"):  # bridged ether is not what gas is paid in there
        await NativePrice(pol, POL).native("WETH", NOW)
