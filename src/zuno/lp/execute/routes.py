"""Reads the pools that a plan may swap through, and chooses the one that pays most after gas."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from zuno.amm.identity import pool_id
from zuno.amm.model import LpPosition, PoolKey, PoolState
from zuno.kernel.errors import Malformed, PoolRefusal, Unavailable
from zuno.kernel.units import HexId
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.model.chains import market_name
from zuno.lp.model.plan import Step, StepKind, StepPlan
from zuno.lp.plan.calldata import key_tuple
from zuno.lp.plan.calls import Execute, RouterSwap, SwapIn
from zuno.lp.plan.decoding import decode
from zuno.lp.plan.inventory import QuoteSwap, estimate, market_without_us, quotes
from zuno.lp.plan.routing import SwapRoute, build_route, choose_route, may_route
from zuno.lp.rules.carry import native_token1_in_pool

ROUTE_GAS: Final[Mapping[StepKind, int]] = {StepKind.SWAP_AND_MINT: 28_000, StepKind.SWAP: 0}
"""What a swap through another pool takes beyond one through the plan's own."""
CONVERSION_GAS: Final = 26_000
"""What turning the native coin into its wrapper, or back, adds to that."""
MOST_ROUTES: Final = 3
"""Of the pools that promise most by their liquidity at the price, as many are read whole."""


async def load_swap_quotes(context: ExecutionContext, pool: PoolState, position: LpPosition | None) -> QuoteSwap | None:
    """Exact quotes of the pool without our liquidity; None where its ticks cannot be read at that block."""
    try:
        depth = await context.writer.depth(pool.id)
    except (Unavailable, PoolRefusal):
        return None
    return None if depth.pool.sqrt_price_x96 != pool.sqrt_price_x96 else quotes(depth, position)


async def find_route(
    context: ExecutionContext, pool: PoolState, position: LpPosition | None, own: QuoteSwap | None, plan: StepPlan
) -> SwapRoute | None:
    """Where the main swap of a plan should go instead of its own pool; None where that is the best there is."""
    last = (plan.later.preview if plan.later else plan.steps)[-1]
    swap = _main_swap(context, last)
    if swap is None:
        return None
    way = (swap.zero_for_one, swap.amount_in)
    price, wrapper = await native_token1(context, pool), context.info.wrapper
    if price is None:
        return None  # nobody can say whether the gas is worth it
    address = None if wrapper is None else wrapper.address
    try:
        found = (await context.chain.pools()).pools
    except Unavailable:
        return None
    usable = [
        each for each in found if each.key != pool.key and may_route(pool.key, each.key, address) and each.liquidity > 0
    ]
    usable.sort(key=lambda each: -build_route(pool, each).quote(*way).amount_out)
    unit = price if swap.zero_for_one else price / pool.price
    gas = (await context.chain.gas()).price * unit
    routes = []
    for through in usable[:MOST_ROUTES]:
        converts = CONVERSION_GAS * (key_tuple(through.key)[:2] != key_tuple(pool.key)[:2])
        exact = await load_swap_quotes(context, through, None)
        if exact is not None:
            routes.append((build_route(pool, through, exact), (ROUTE_GAS[last.kind] + converts) * gas))
    try:
        return choose_route(own or estimate(market_without_us(pool, position)), routes, *way)
    except Unavailable:  # the swap leaves the ticks that were read
        return None


async def load_route(context: ExecutionContext, pool: PoolState, key: PoolKey | None) -> SwapRoute | None:
    """The approved route as it is now."""
    if key is None:
        return None
    through = await context.chain.pool(HexId(pool_id(*key_tuple(key))))
    return build_route(pool, through, await load_swap_quotes(context, through, None))


def _main_swap(context: ExecutionContext, step: Step) -> SwapIn | None:
    """The first swap of a plan's last step; None where it swaps nothing."""
    if step.kind not in ROUTE_GAS:
        return None
    call = decode(step.to, step.value, step.data, context.info.deployment.swap_struct).call
    commands = call.commands if isinstance(call, Execute) else ()
    actions = (action for command in commands if isinstance(command, RouterSwap) for action in command.actions)
    return next((action for action in actions if isinstance(action, SwapIn)), None)


async def native_token1(context: ExecutionContext, pool: PoolState) -> Fraction | None:
    """Base units of token1 for one wei."""
    own = native_token1_in_pool(pool, context.info.native_side(pool.key))
    if own is not None:
        return own
    try:
        feeds = context.feeds_of(pool.id)
        native = await feeds.native.native(market_name(pool.token1), pool.block.timestamp)
    except (Unavailable, Malformed):
        return None
    return native.value * Fraction(10**pool.token1.decimals, 10**context.info.native.token.decimals)
