"""Many pools with their last days in a handful of requests: past state in one batch, else their Swap events in one
search."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Final

from zuno.adapters.chain.rpc import abi, requests
from zuno.adapters.chain.rpc.errors import NoSuchState
from zuno.adapters.chain.rpc.node import Log
from zuno.adapters.chain.rpc.prices import parse_swap, parse_swaps
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.scan import Query
from zuno.adapters.chain.rpc.storage import TickReader
from zuno.adapters.chain.rpc.transport import RpcRequest
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
        self,
        pools: Sequence[PoolState],
        moments: Sequence[Seconds],
        since: Mapping[HexId, Seconds],
        priced: Collection[HexId],
        head: Block,
    ) -> tuple[SurveyedPool, ...]:
        """`pools`: as they are at the head."""
        depths = await self.ticks.read_depths(pools, head, NEAR)
        first = min(since.values(), default=head.timestamp)
        blocks = await self._list_blocks([moment for moment in moments if moment >= first], head)
        asked = {
            pool.id: [block for block in blocks if block.timestamp > since[pool.id] - DAY // 2]
            for pool in pools
            if pool.id in since
        }
        marks: Mapping[HexId, Sequence[GrowthSample]] = {}
        if blocks and self._archive:
            try:
                marks = await self._read_states(blocks, asked)
            except NoSuchState:
                self._archive = False
        swaps: dict[HexId, list[Log]] = {}
        for begin in sorted(set(since.values())) if blocks else ():
            wanted = [id_ for id_ in asked if since[id_] == begin and (id_ in priced or not self._archive)]
            try:
                swaps |= await self._read_swaps(wanted, [*asked[wanted[0]], head]) if wanted else {}
            except Unavailable as error:  # where past state is kept, only these pools' own prices are not known then
                if isinstance(error, NoSuchState) or not self._archive:
                    raise
        if not self._archive:
            marks = {pool.id: _mark_swaps(pool, swaps[pool.id], asked[pool.id]) for pool in pools if pool.id in swaps}
        paths = {id_: _list_prices(swaps[id_], [*asked[id_], head]) for id_ in swaps if id_ in priced}
        return tuple(
            SurveyedPool(depth, tuple(marks.get(pool.id, ())), paths.get(pool.id))
            for pool, depth in zip(pools, depths, strict=True)
        )

    async def _list_blocks(self, moments: Sequence[Seconds], head: Block) -> list[Block]:
        born = (await self.read.times.block(0, head)).timestamp if moments else 0
        since = next((moment for moment in moments if born <= moment < head.timestamp), None)
        if since is None:
            return []
        blocks = await self.read.times.list_blocks_near(range(since, head.timestamp, DAY), DAY, head)
        return blocks if moments[-1] == head.timestamp else blocks[:-1]

    async def _read_states(
        self, blocks: Sequence[Block], asked: Mapping[HexId, Sequence[Block]]
    ) -> dict[HexId, list[GrowthSample]]:
        manager, marks = self.read.info.deployment.pool_manager, {id_: list[GrowthSample]() for id_ in asked}

        def put(block: Block) -> tuple[list[HexId], RpcRequest]:
            ids = [id_ for id_, several in asked.items() if block in several]
            slots = [slot for id_ in ids for slot in pool_words(id_)[:3]]
            # Before it was deployed the contract answers with nothing.
            read = partial(abi.extsload_results, expected=len(slots))
            return ids, requests.view(manager, abi.extsload(slots), block, lambda data: read(data) if data else [])

        wanted = [put(block) for block in blocks]
        answers = await self.read.node.ask_together([request for _, request in wanted])
        for block, (ids, _), words in zip(blocks, wanted, answers, strict=True):
            for id_, slot0, growth0, growth1 in zip(ids, words[::3], words[1::3], words[2::3], strict=False):
                if price := unpack_slot0(slot0).sqrt_price_x96:
                    marks[id_].append(GrowthSample(block.timestamp, growth0, growth1, price))
        return marks

    async def _read_swaps(self, pool_ids: Sequence[HexId], blocks: Sequence[Block]) -> dict[HexId, list[Log]]:
        """Oldest first, from a day before the first block on, so that the state at that block is known."""
        swaps, seen, spans = {id_: list[Log]() for id_ in pool_ids}, 0, 0
        query = Query(self.read.info.deployment.pool_manager, (abi.SWAP, list(swaps)))
        first = max(0, 2 * blocks[0].number - blocks[1].number)
        async for span in self.read.scanner.back(query, first, blocks[-1].number):
            seen, spans = seen + len(span.logs), spans + 1
            if seen > MOST_SWAPS or (spans >= MOST_SPANS and span.first > first):
                raise Unavailable(
                    f"{len(pool_ids)} pools have too many swaps for this node: use one that keeps the past"
                )
            for log in reversed(span.logs):
                swaps[log.topics[1]].append(log)
        return {pool_id: logs[::-1] for pool_id, logs in swaps.items()}


def _mark_swaps(pool: PoolState, logs: Sequence[Log], blocks: Sequence[Block]) -> tuple[GrowthSample, ...]:
    swaps, after = parse_swaps(pool, logs, blocks[0].timestamp)
    return mark_growth(pool, swaps, after, blocks)[1:] if after else ()


def _list_prices(logs: Sequence[Log], blocks: Sequence[Block]) -> tuple[PricedBlock, ...]:
    """The last price of every step; a log that is not dated lies evenly between the blocks around it."""
    closing: dict[int, PricedBlock] = {}
    for log in logs:
        low, high = next(pair for pair in pairwise(blocks) if log.block_number <= pair[1].number)
        ahead = (log.block_number - low.number) * (high.timestamp - low.timestamp) // (high.number - low.number)
        at = Seconds(low.timestamp + ahead) if log.timestamp is None else log.timestamp
        closing[at // PATH_STEP] = PricedBlock(Block(log.block_number, log.block_hash, at), parse_swap(log)[1])
    return tuple(closing.values())
