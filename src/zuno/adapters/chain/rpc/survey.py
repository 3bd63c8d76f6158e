"""Many pools with their last days in a handful of requests: past state in one batch, else their Swap events in one
search."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from zuno.adapters.chain.rpc import abi, requests
from zuno.adapters.chain.rpc.errors import NodeBehind, NoSuchState
from zuno.adapters.chain.rpc.node import Log
from zuno.adapters.chain.rpc.prices import parse_swap
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.scan import Query
from zuno.adapters.chain.rpc.storage import TickReader
from zuno.amm.identity import pool_slots, unpack_slot0
from zuno.amm.model import Block, PoolState
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import HexId, Seconds
from zuno.lp.model.history import GrowthSample, PricedBlock
from zuno.lp.ports.chain import SurveyedPool
from zuno.lp.rules.fee_yield import DAY, mark_growth

NEAR: Final = 200
"""Ticks to each side of the price: 2 %."""
PATH_STEP: Final = 300
MOST_SPANS: Final = 200
"""Log queries that the swaps of some pools may take."""
MOST_SWAPS: Final = 200_000


def pool_words(pool_id: HexId) -> tuple[int, ...]:
    slots = pool_slots(pool_id)
    return slots.slot0, slots.fee_growth_global0_x128, slots.fee_growth_global1_x128, slots.liquidity


@dataclass(eq=False)
class Surveyor:
    read: Readers
    ticks: TickReader
    _archive: bool = field(default=True, init=False)
    """False once no node kept past state."""

    async def survey(
        self, pools: Sequence[PoolState], moments: Sequence[Seconds], priced: Collection[HexId], head: Block
    ) -> tuple[SurveyedPool, ...]:
        """`pools`: as they are at the head."""
        depths = await self.ticks.read_depths(pools, head, NEAR)
        blocks = await self._list_blocks(moments, head)
        marks: Mapping[HexId, Sequence[GrowthSample]] = {}
        paths: dict[HexId, tuple[PricedBlock, ...]] = {}
        if blocks and self._archive:
            try:
                marks = await self._read_states(pools, blocks)
            except NoSuchState:
                self._archive = False
        wanted = [pool for pool in pools if pool.id in priced or not self._archive] if blocks else []
        try:
            swaps = await self._read_swaps(wanted, [*blocks, head]) if wanted else {}
        except Unavailable as error:
            if isinstance(error, NoSuchState) or not self._archive:
                raise
            swaps = {}  # the days of these pools are known, only their own prices are not
        if not self._archive:
            marks = {pool.id: _mark_swaps(pool, swaps[pool.id], blocks) for pool in pools}
        paths = {id_: _list_prices(swaps[id_], [*blocks, head]) for id_ in swaps if id_ in priced}
        return tuple(
            SurveyedPool(depth, tuple(marks.get(pool.id, ())), paths.get(pool.id))
            for pool, depth in zip(pools, depths, strict=True)
        )

    async def _list_blocks(self, moments: Sequence[Seconds], head: Block) -> list[Block]:
        born = (await self.read.times.block(0, head)).timestamp if moments else 0
        since = next((moment for moment in moments if born <= moment < head.timestamp), None)
        return [] if since is None else (await self.read.times.list_blocks_every(since, Seconds(DAY), head))[:-1]

    async def _read_states(
        self, pools: Sequence[PoolState], blocks: Sequence[Block]
    ) -> Mapping[HexId, Sequence[GrowthSample]]:
        slots = [slot for pool in pools for slot in pool_words(pool.id)[:3]]
        manager, asked = self.read.info.deployment.pool_manager, abi.extsload(slots)

        def read(data: bytes) -> list[int]:
            """Before it was deployed the contract answers with nothing."""
            return abi.extsload_results(data, len(slots)) if data else [0] * len(slots)

        answers = await self.read.node.ask_together([requests.view(manager, asked, block, read) for block in blocks])
        return {
            pool.id: [
                GrowthSample(block.timestamp, growth0, growth1, price)
                for block, words in zip(blocks, answers, strict=True)
                for slot0, growth0, growth1 in [words[3 * place : 3 * place + 3]]
                if (price := unpack_slot0(slot0).sqrt_price_x96)
            ]
            for place, pool in enumerate(pools)
        }

    async def _read_swaps(self, pools: Sequence[PoolState], blocks: Sequence[Block]) -> dict[HexId, list[Log]]:
        """Oldest first, from a day before the first block on, so that the state at that block is known."""
        swaps, seen, spans = {pool.id: list[Log]() for pool in pools}, 0, 0
        query = Query(self.read.info.deployment.pool_manager, (abi.SWAP, list(swaps)))
        first = max(0, 2 * blocks[0].number - blocks[1].number)
        async for span in self.read.scanner.back(query, first, blocks[-1].number):
            seen, spans = seen + len(span.logs), spans + 1
            if seen > MOST_SWAPS or (spans >= MOST_SPANS and span.first > first):
                raise Unavailable(f"{len(pools)} pools have too many swaps for this node: use one that keeps the past")
            for log in reversed(span.logs):
                swaps[log.topics[1]].append(log)
        return {pool_id: logs[::-1] for pool_id, logs in swaps.items()}


def _mark_swaps(pool: PoolState, logs: Sequence[Log], blocks: Sequence[Block]) -> tuple[GrowthSample, ...]:
    parsed = [parse_swap(log) for log in logs]
    if parsed and parsed[-1][1] != pool.sqrt_price_x96:
        raise NodeBehind("the last swap among the events is not the one that left the pool's price")
    after = [
        PricedBlock(Block(log.block_number, log.block_hash, blocks[0].timestamp), price)
        for log, (_, price) in zip(logs, parsed, strict=True)
    ]
    return mark_growth(pool, [swap for swap, _ in parsed], after, blocks)[1:] if after else ()


def _list_prices(logs: Sequence[Log], blocks: Sequence[Block]) -> tuple[PricedBlock, ...]:
    """The last price of every step; a log that is not dated lies evenly between the blocks around it."""
    closing: dict[int, PricedBlock] = {}
    for log in logs:
        low, high = next(pair for pair in pairwise(blocks) if log.block_number <= pair[1].number)
        ahead = (log.block_number - low.number) * (high.timestamp - low.timestamp) // (high.number - low.number)
        at = Seconds(low.timestamp + ahead) if log.timestamp is None else log.timestamp
        closing[at // PATH_STEP] = PricedBlock(Block(log.block_number, log.block_hash, at), parse_swap(log)[1])
    return tuple(closing.values())
