"""What a pool's Swap events say it earned, for nodes that keep no past state."""

from __future__ import annotations

from itertools import chain
from typing import Final

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.errors import Behind, NoSuchState
from zuno.adapters.chain.rpc.node import Log
from zuno.adapters.chain.rpc.prices import MOST_SWAPS
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.scan import Query
from zuno.amm.fees import PIPS
from zuno.amm.model import Block, PoolState
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Seconds
from zuno.lp.model.history import SwapFees
from zuno.lp.rules.fee_yield import SwapEvent, growth_of_swaps

_FIELDS: Final = ["int128", "int128", "uint160", "uint128", "int24", "uint24"]
"""amount0, amount1 (the trader's: paid in is negative), √price, liquidity, tick, fee."""


async def swap_fees(read: Readers, pool: PoolState, since: Seconds, head: Block) -> SwapFees:
    """The growth between the block of the first swap from `since` on and the head."""
    before = await read.times.last_by(Seconds(since - 1), head)
    logs = await _logs(read, pool, 0 if before is None else before.number + 1, head)
    if not logs:
        raise Unavailable(f"pool {pool.id} had no swap since {since}")
    opened = await read.times.block(logs[0].block_number, head)
    if opened.hash != logs[0].block_hash:
        raise NoSuchState(f"block {opened.number} was replaced while its swaps were read")
    swaps, price = list[SwapEvent](), 0
    for log in logs:
        amount0, amount1, price, liquidity, _, fee = abi.decoded(_FIELDS, log.data, "a Swap event")
        if fee > PIPS or price == 0:
            raise Malformed(f"a Swap event of block {log.block_number} charges {fee} pips at price {price}")
        if log.block_number == opened.number:
            swaps.clear()  # only how that block ended matters
        swaps.append(SwapEvent(-amount0, -amount1, liquidity, fee))
    if price != pool.sqrt_price_x96:
        raise Behind("the last swap among the events is not the one that left the pool's price")
    growth0, growth1, uneven = growth_of_swaps(swaps, pool)
    return SwapFees(opened, head, growth0, growth1, len(swaps) - 1, uneven)


async def _logs(read: Readers, pool: PoolState, first: int, head: Block) -> list[Log]:
    """Every swap from block `first` to the head, oldest first."""
    stretches, seen = list[tuple[Log, ...]](), 0
    query = Query(read.info.deployment.pool_manager, (abi.SWAP, pool.id))
    async for stretch in read.scanner.back(query, first, head.number):
        seen += len(stretch.logs)
        if seen > MOST_SWAPS:
            raise Unavailable(f"more than {MOST_SWAPS} swaps since block {first}: ask for a shorter time")
        stretches.append(tuple(stretch.logs))
    logs = list(chain.from_iterable(reversed(stretches)))
    if logs and logs[-1].block_number == head.number and logs[-1].block_hash != head.hash:
        raise NoSuchState(f"block {head.number} was replaced while its swaps were read")
    return logs
