"""Which pool pays: how often a ranking names one where none pays, what a share is, and why a pool is not ranked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.wire.many_pools import LIQUIDITY, QUIET_HOOK, SHARING_HOOK, TICK, key_of
from tests.wire.many_wallets import USDC
from zuno.amm.fees import DYNAMIC_FEE_FLAG
from zuno.amm.model import NO_HOOKS, Block, PoolState
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.units import Address, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick
from zuno.lp.model.chains import ETH
from zuno.lp.model.cover import RankFault, student_t
from zuno.lp.rules.pool_rank import (
    COVER_DAYS,
    FALSE_NAMES,
    WORTH,
    PastDay,
    find_fault,
    measure_cover,
    pays,
    share_out,
)

POOLS, RANKINGS, SEED = 200, 400, 16


def draw_days(cover: float, rankings: int = RANKINGS) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fees and LVR by ranking, pool and day: a pool's fees follow its LVR by 0.75, and both have their own noise."""
    chance = np.random.default_rng(SEED)
    size = (rankings, POOLS, COVER_DAYS)
    calm = np.exp(chance.normal(-0.125, 0.5, size))
    noise = np.exp(chance.normal(-0.08, 0.4, size))
    fees = calm**0.75 * noise
    return cover * fees / fees.mean() * calm.mean(), calm


def measure_all(fees: NDArray[np.float64], lvr: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ratio and error of every pool at once: the rule's own formula in columns."""
    ratio = fees.sum(axis=-1) / lvr.sum(axis=-1)
    rests = fees - ratio[..., None] * lvr
    squares = (rests**2).sum(axis=-1)
    neighbours = (rests[..., 1:] * rests[..., :-1]).sum(axis=-1)
    days = fees.shape[-1]
    return ratio, np.sqrt(days / (days - 1) * np.maximum(squares, squares + neighbours)) / fees.sum(axis=-1)


def share_naming(cover: float, quantile: float) -> float:
    """Of rankings, those that name at least one pool."""
    ratio, error = measure_all(*draw_days(cover))
    low = ratio * np.exp(-student_t(quantile, COVER_DAYS - 1) * error)
    return float((low > 1).any(axis=-1).mean())


def test_the_columns_are_the_desks_rule() -> None:
    fees, lvr = draw_days(1.3, rankings=1)
    ratio, error = measure_all(fees, lvr)
    for pool in range(40):
        days = [PastDay(*both, root=1.0) for both in zip(fees[0, pool].tolist(), lvr[0, pool].tolist(), strict=True)]
        cover = measure_cover(days)
        assert cover is not None
        assert cover.ratio == pytest.approx(ratio[0, pool], rel=1e-8)
        assert cover.error == pytest.approx(error[0, pool], rel=1e-6)
        low = ratio[0, pool] * np.exp(-student_t(1 - FALSE_NAMES / POOLS, COVER_DAYS - 1) * error[0, pool])
        assert pays(cover, POOLS) == (low > 1)


def test_of_200_pools_none_of_which_pays_one_is_seldom_named() -> None:
    assert share_naming(1.0, 1 - FALSE_NAMES / POOLS) <= 0.30
    assert share_naming(1.0, 0.90) >= 0.97


def test_a_pool_that_pays_well_is_still_named() -> None:
    ratio, error = measure_all(*draw_days(3.0))
    low = ratio * np.exp(-student_t(1 - FALSE_NAMES / POOLS, COVER_DAYS - 1) * error)
    assert (low > 1).mean() > 0.8


def test_one_pool_alone_needs_no_more_than_its_interval() -> None:
    fees, lvr = draw_days(1.4, rankings=1)
    days = [PastDay(*both, root=1.0) for both in zip(fees[0, 0].tolist(), lvr[0, 0].tolist(), strict=True)]
    cover = measure_cover(days)
    assert cover is not None
    assert pays(cover, 1) == (cover.low > 1)


def test_shares_are_of_what_is_in_range_and_of_whole_spans() -> None:
    days = [PastDay(fees=0.01, lvr=0.02, root=2.0)] * 7
    fees, lvr = share_out(days, 7)
    assert fees == pytest.approx(7 * 0.005 / WORTH)
    assert lvr == pytest.approx(7 * 0.01 / WORTH)
    assert share_out(days, 30) == (None, None)


def pool(fee: int = 500, hooks: Address = NO_HOOKS, decimals: int = 18, liquidity: int = LIQUIDITY) -> PoolState:
    token = replace(ETH, decimals=decimals)
    price = SqrtPriceX96(sqrt_price_at_tick(TICK))
    block = Block(1, HexId("0x" + "cd" * 32), Seconds(0))
    key = key_of(ETH, USDC, fee, hooks=hooks)
    return PoolState(
        HexId("0x" + "ab" * 32), key, token, USDC, price, Tick(TICK), 0, Pips(500), Liquidity(liquidity), 0, 0, block
    )


DAYS = [PastDay(0.01, 0.01, 1.0)] * COVER_DAYS


@pytest.mark.parametrize(
    ("state", "days", "fault"),
    [
        (pool(), DAYS, None),
        (pool(hooks=QUIET_HOOK), DAYS, None),
        (pool(fee=DYNAMIC_FEE_FLAG), DAYS, RankFault.DYNAMIC_FEE),
        (pool(hooks=SHARING_HOOK), DAYS, RankFault.HOOK),
        (pool(decimals=0), DAYS, RankFault.DECIMALS),
        (pool(decimals=30), DAYS, RankFault.DECIMALS),
        (pool(liquidity=0), DAYS, RankFault.NO_LIQUIDITY),
        (pool(), DAYS[1:], RankFault.FEW_DAYS),
        (pool(), [*DAYS[1:], PastDay(0.0, 0.01, 1.0)], RankFault.NO_SWAPS),
        (pool(), [PastDay(0.0, 0.01, 1.0), *DAYS], None),
    ],
)
def test_a_pool_is_not_ranked_for_one_of_these(state: PoolState, days: list[PastDay], fault: RankFault | None) -> None:
    assert find_fault(state, days) is fault
