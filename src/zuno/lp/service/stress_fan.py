"""The stress paths of a plan as a fan of prices: what its ranges were judged against."""

from math import exp
from typing import Final

from zuno.amm.model import PoolState, whole_price
from zuno.kernel.text import base_and_quote
from zuno.kernel.view import View
from zuno.lp.agents.pool_inputs import build_pool_inputs
from zuno.lp.model.debate import Context, PoolFacts
from zuno.lp.rules.stress import HORIZON_HOURS, PATHS, path_quantiles
from zuno.lp.rules.volatility import NANO
from zuno.lp.service.to_views import key_view, place, price_text, price_unit
from zuno.lp.service.views import PoolKeyView

STEP_HOURS: Final = 8
SHARES: Final = (5, 25, 50, 75, 95)
"""Percent of the paths that are below."""


class FanPointView(View):
    """Prices after so many hours, below which 5, 25, 50, 75 and 95 % of the paths are."""

    hour: int
    x1: tuple[float, ...]
    x2: tuple[float, ...]
    x3: tuple[float, ...]


class PoolFanView(View):
    pool: PoolKeyView
    price: str
    price_unit: str
    points: tuple[FanPointView, ...]
    """Empty without a price history to draw from."""


class StressFanView(View):
    plan_id: str
    chain: str
    block: int
    timestamp: int
    paths: int
    horizon_hours: int
    shares: tuple[int, ...]
    pools: tuple[PoolFanView, ...]


def build_stress_fan(plan_id: str, context: Context) -> StressFanView:
    return StressFanView(
        plan_id=plan_id,
        **place(context.chain, context.block),
        paths=PATHS,
        horizon_hours=HORIZON_HOURS,
        shares=SHARES,
        pools=tuple(_fan_of(facts) for facts in context.scenes),
    )


def _fan_of(facts: PoolFacts) -> PoolFanView:
    pool, paths = facts.pool, build_pool_inputs(facts).paths
    ranks = [share * PATHS // 100 for share in SHARES]
    rows = [] if paths is None else path_quantiles(paths, ranks, STEP_HOURS)
    points = [
        FanPointView(
            hour=(place + 1) * STEP_HOURS, **{f"x{times}": fan_prices(pool, row, times) for times in (1, 2, 3)}
        )
        for place, row in enumerate(rows)
    ]
    return PoolFanView(
        pool=key_view(pool.key, pool.token0, pool.token1),
        price=price_text(pool.sqrt_price_x96, pool.token0, pool.token1),
        price_unit=price_unit(pool.token0, pool.token1),
        points=tuple(points),
    )


def fan_prices(pool: PoolState, sums: tuple[int, ...], times: int) -> tuple[float, ...]:
    """For a picture: as people quote the pair, the lowest first."""
    here = float(whole_price(pool.sqrt_price_x96, pool.token0, pool.token1))
    sign = 1 if base_and_quote(pool.token0, pool.token1)[0] is pool.token0 else -1
    return tuple(sorted(float(f"{here * exp(sign * times * total / NANO):.8g}") for total in sums))
