"""What the page draws of a position and a plan: liquidity by price, fees by day, stress paths as a fan."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import isclose, log

import pytest

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.world import pool_specs
from zuno.amm.model import Block, Depth, PoolKey, PoolState, Range
from zuno.kernel.errors import Unavailable
from zuno.kernel.text import Token
from zuno.kernel.units import Address, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick
from zuno.lp.ports.market import Feeds
from zuno.lp.rules.stress import PATHS, draw_paths, path_quantiles
from zuno.lp.service.positions import DAY, FEE_DAYS, LpDesk
from zuno.lp.service.stress_fan import fan_prices
from zuno.lp.service.to_views import REACH, list_bands

WETH_005, _, ETH_030 = (spec.id for spec in pool_specs())


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> SimChain:
    return SimChain(SimFile(tmp_path_factory.mktemp("sim")))


class NoPrices:
    """A market that does not answer."""

    async def history(self, *asked: object) -> None:
        raise Unavailable("the price service did not answer")


def no_prices(pool_id: HexId) -> Feeds:
    return Feeds(NoPrices(), None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("pool_id", [WETH_005, ETH_030])
async def test_bands_join_and_the_one_at_the_price_has_the_active_liquidity(chain: SimChain, pool_id: HexId) -> None:
    depth = await chain.depth(pool_id)
    bands = list(list_bands(depth))
    assert all(first[1] == second[0] for first, second in pairwise(bands))
    assert bands[0][0] == depth.pool.tick - REACH
    assert bands[-1][1] == depth.pool.tick + REACH
    (here,) = (liquidity for lower, upper, liquidity in bands if lower <= depth.pool.tick < upper)
    assert here == depth.pool.liquidity
    view = await LpDesk(chain, no_prices).liquidity(pool_id)
    assert [int(band.liquidity) for band in view.bands] == [liquidity for _, _, liquidity in bands]
    assert all(float(band.price_lower) < float(band.price_upper) for band in view.bands)


def test_only_ticks_that_were_read_make_bands() -> None:
    token = Token(Address("0x" + "11" * 20), "AAA", 18, verified=True)
    other = Token(Address("0x" + "22" * 20), "BBB", 18, verified=True)
    key = PoolKey(token.address, other.address, Pips(500), 10)
    block = Block(1, HexId("0x" + "00" * 32), Seconds(1))
    pool = PoolState(
        HexId("0x" + "33" * 32),
        key,
        token,
        other,
        SqrtPriceX96(1 << 96),
        Tick(0),
        0,
        Pips(500),
        Liquidity(5),
        0,
        0,
        block,
    )
    depth = Depth(pool, Range(Tick(-100), Tick(100)), {-100: 2, -50: 3, 50: -4})
    assert list(list_bands(depth)) == [(-100, -50, 2), (-50, 50, 5), (50, 100, 1)]


@pytest.mark.slow
async def test_fees_by_day_add_up_to_those_of_the_week(chain: SimChain) -> None:
    view = await LpDesk(chain, no_prices).history("1")
    assert len(view.fees) == FEE_DAYS
    assert view.prices == ()
    assert "did not answer" in view.notes[0]
    position = (await chain.positions([1])).positions[0]
    week = (await chain.window([position], Seconds(position.block.timestamp - FEE_DAYS * DAY))).fees[1]
    assert sum(Fraction(day.fees0_human) for day in view.fees) == Fraction(week[0], 10**18)
    assert sum(Fraction(day.fees1_human) for day in view.fees) == Fraction(week[1], 10**6)
    assert all(first.to_timestamp == second.from_timestamp for first, second in pairwise(view.fees))


def test_quantiles_of_paths_are_counted_path_by_path() -> None:
    paths = draw_paths([0.01, -0.02, 0.015] * 40)
    ranks = (50, 500, 950)
    rows = path_quantiles(paths, ranks, 8)
    assert len(rows) == 42
    for place, row in enumerate(rows):
        sums = sorted(paths.sums[place * 8 + 7].tolist())
        assert len(sums) == PATHS
        assert row == tuple(sums[rank] for rank in ranks)


async def test_a_fan_at_twice_the_volatility_is_twice_as_wide(chain: SimChain) -> None:
    pool = await chain.pool(WETH_005)
    sums = (-50_000_000, 0, 80_000_000)
    once, twice = fan_prices(pool, sums, 1), fan_prices(pool, sums, 2)
    assert list(once) == sorted(once)
    assert isclose(2 * log(once[2] / once[1]), log(twice[2] / twice[1]), rel_tol=1e-5)
