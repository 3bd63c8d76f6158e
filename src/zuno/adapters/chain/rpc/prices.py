"""A pool's past prices and fees from its Swap events, and the few block times that takes."""

from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import chain, pairwise
from typing import Final

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.errors import NodeBehind, NoSuchState
from zuno.adapters.chain.rpc.node import Log, RpcNode
from zuno.adapters.chain.rpc.scan import BlockSpan, Query, Scanner
from zuno.amm.fees import PIPS
from zuno.amm.model import Block, PoolState
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Address, HexId, Seconds, SqrtPriceX96
from zuno.lp.model.history import PricedBlock, SwapEvent, SwapFees
from zuno.lp.model.market import HOUR
from zuno.lp.rules.fee_yield import DAY, FORTNIGHT, growth_of_swaps, mark_growth

_MOST_REMEMBERED: Final = 20_000
MOST_SWAPS: Final = 500_000
"""Swaps one path may be read from; over more, a public node is the wrong source."""


class BlockTimes:
    def __init__(self, node: RpcNode) -> None:
        self._node = node
        self._head: Block | None = None
        """The last one for which a known block was held against the chain."""
        self._known: dict[int, Block] = {}
        self._aimed: dict[int, Block] = {}
        """By the time they were wanted for: what was read of a past hour is asked for again by the same block."""

    async def blocks(self, numbers: Iterable[int], head: Block) -> dict[int, Block]:
        """With a new head, a known block is asked for once more: on another chain, or another branch, it is another."""
        last = self._head
        if last is not None and last.number == head.number and last != head:
            self._known, self._aimed = {}, {}
        known, wanted = self._known, set(numbers)
        below = [] if head == last else [number for number in known if number < head.number]
        blocks = {number: known[number] for number in wanted if number in known} | {head.number: head}
        strange = wanted - blocks.keys()
        if strange:
            read = await self._node.blocks({*strange, *sorted(below)[-1:]})
            if any(read[number] != known.get(number, read[number]) for number in read):
                self._known, self._aimed, blocks = {}, {}, {head.number: head}
                read |= await self._node.blocks(wanted - read.keys() - blocks.keys())
            blocks |= read
        if strange or not below:
            self._head = head
        self._known.update(blocks)  # which may be another dictionary by now
        return {number: blocks[number] for number in wanted}

    async def block(self, number: int, head: Block) -> Block:
        return (await self.blocks([number], head))[number]

    def forget_after(self, number: int) -> None:
        """Young blocks may be replaced; and nobody needs more than so many old ones."""
        if len(self._known) > _MOST_REMEMBERED:
            self._known.clear()
        self._known = {at: block for at, block in self._known.items() if at <= number}
        if len(self._aimed) > _MOST_REMEMBERED:
            self._aimed.clear()
        self._aimed = {time: block for time, block in self._aimed.items() if block.number <= number}

    async def last_by(self, time: Seconds, head: Block) -> Block | None:
        """The last block not later than `time`; None if the chain is younger than that."""
        if head.timestamp <= time:
            return head
        low = await self.block(0, head)
        if low.timestamp > time:
            return None
        high, straight = head, True
        while high.number - low.number > 1:
            # Blocks come evenly, mostly: aim, and halve every other time in case they do not.
            aim = (low.number + high.number) // 2
            if straight:
                share = (high.number - low.number) * (time - low.timestamp) // (high.timestamp - low.timestamp)
                aim = min(high.number - 1, max(low.number + 1, low.number + share))
            straight = not straight
            middle = await self.block(aim, head)
            if not low.timestamp <= middle.timestamp <= high.timestamp:
                raise Malformed(f"block {aim} is dated outside the blocks around it")
            if middle.timestamp <= time:
                low = middle
            else:
                high = middle
        return low

    async def list_blocks_near(self, times: Sequence[int], step: int, head: Block) -> list[Block]:
        """Blocks near these times, which are about `step` apart, and the head; oldest first. Two requests where blocks
        come evenly: those at growing distances tell how time and numbers go together; the wanted ones are aimed at
        between them."""
        distances = {1 << power for power in range(head.number.bit_length())}
        known = await self.blocks({head.number - far for far in distances} | {0, head.number}, head)
        born = known[0].timestamp
        wanted = sorted({at for time in times if (at := max(time, born)) < head.timestamp})
        remembered = {time: block.number for time, block in self._aimed.items() if block.number < head.number}
        aimed = list[Block]()
        for _ in range(2):  # once more where they do not come evenly
            marks = sorted(known.values(), key=_number)
            numbers = {time: remembered[time] if time in remembered else _aim(marks, time) for time in wanted}
            blocks = await self.blocks(numbers.values(), head)
            known |= blocks
            aimed = sorted(blocks.values(), key=_number)
            if aimed and abs(aimed[0].timestamp - wanted[0]) <= step:
                self._aimed |= {time: blocks[number] for time, number in numbers.items()}
                return [*aimed, head]
        first = await self.last_by(Seconds(wanted[0]), head) if wanted else None
        later = [block for block in aimed if first is not None and block.number > first.number]
        return [*([] if first is None else [first]), *later, head]


def _aim(marks: Sequence[Block], time: int) -> int:
    """The number a block of that time would have if those between two known ones came evenly."""
    low, high = next(pair for pair in pairwise(marks) if pair[0].timestamp <= time < pair[1].timestamp)
    return low.number + (high.number - low.number) * (time - low.timestamp) // (high.timestamp - low.timestamp)


def _number(block: Block) -> int:
    return block.number


class PriceReader:
    def __init__(self, scanner: Scanner, times: BlockTimes, pool_manager: Address) -> None:
        self._scanner = scanner
        self._times = times
        self._pool_manager = pool_manager

    async def read_path(self, pool_id: HexId, first: int, head: Block, step: int = HOUR) -> list[PricedBlock]:
        """The last swap of every step from block `first` to the head, oldest first."""
        closing = await self._read_closing_swaps(pool_id, first, head.number)
        if closing:
            _check_last(closing[-1], head)
        dated = await self._add_times(closing, head, step)
        times = [at for _, at in dated]
        if times != sorted(times) or (times and times[-1] > head.timestamp):
            raise Malformed("swaps are dated against the order of their blocks")
        hours: dict[int, PricedBlock] = {}
        for log, at in dated:
            hours[at // step] = PricedBlock(Block(log.block_number, log.block_hash, at), parse_swap(log)[1])
        return list(hours.values())

    async def swap_fees(self, pool: PoolState, since: Seconds, head: Block) -> SwapFees:
        """The pool's fees by Swap events, from the first swap since `since`, for nodes without past state."""
        before = await self._times.last_by(Seconds(since - 1), head)
        first = 0 if before is None else before.number + 1
        spans = [span.logs async for span in self._scan_swaps(pool.id, first, head.number)]
        logs = list(chain.from_iterable(reversed(spans)))
        if not logs:
            raise Unavailable(f"pool {pool.id} had no swap since {since}")
        _check_last(logs[-1], head)
        opened = await self._times.block(logs[0].block_number, head)
        if opened.hash != logs[0].block_hash:
            raise NoSuchState(f"block {opened.number} was replaced while its swaps were read")
        first = sum(log.block_number == opened.number for log in logs) - 1  # only how that block ended matters
        swaps, after = parse_swaps(pool, logs[first:], opened.timestamp)
        growth0, growth1, uneven = growth_of_swaps(swaps, pool)
        whole_days = [
            await self._times.last_by(Seconds(head.timestamp - ago), head) for ago in range(FORTNIGHT, -1, -DAY)
        ]
        days = mark_growth(pool, swaps, after, [block for block in whole_days if block is not None])
        return SwapFees(opened, head, growth0, growth1, len(swaps) - 1, uneven, days)

    async def _scan_swaps(self, pool_id: HexId, first: int, last: int) -> AsyncIterator[BlockSpan]:
        seen = 0
        async for span in self._scanner.back(Query(self._pool_manager, (abi.SWAP, pool_id)), first, last):
            seen += len(span.logs)
            if seen > MOST_SWAPS:
                raise Unavailable(f"more than {MOST_SWAPS} swaps since block {first}: ask for a shorter time")
            yield span

    async def _read_closing_swaps(self, pool_id: HexId, first: int, last: int) -> list[Log]:
        """The last swap of every block that has one, oldest first."""
        newest_first = list[Log]()
        async for span in self._scan_swaps(pool_id, first, last):
            newest_first += reversed({log.block_number: log for log in span.logs}.values())
        return newest_first[::-1]

    async def _add_times(self, swaps: Sequence[Log], head: Block, step: int) -> list[tuple[Log, Seconds]]:
        """Swaps with their times, oldest first; at least the last of every step is among them. Time only grows, so a
        run of blocks whose ends share a step needs no more headers than its ends."""
        timed = [(swap, swap.timestamp) for swap in swaps if swap.timestamp is not None]
        if len(timed) == len(swaps):
            return timed
        times: dict[int, Seconds] = {}
        runs = [(0, len(swaps) - 1)]
        while runs:
            ends = {swaps[end].block_number for run in runs for end in run}
            blocks = await self._times.blocks(ends, head)
            for swap in (swaps[end] for run in runs for end in run):
                if blocks[swap.block_number].hash != swap.block_hash:
                    raise NoSuchState(f"block {swap.block_number} was replaced while its swaps were read")
            times |= {number: block.timestamp for number, block in blocks.items()}
            split: list[tuple[int, int]] = []
            for low, high in runs:
                hours = [times[swaps[end].block_number] // step for end in (low, high)]
                if hours[0] != hours[1] and high - low > 1:
                    middle = (low + high) // 2
                    split += [(low, middle), (middle, high)]
            runs = split
        return [(swap, times[swap.block_number]) for swap in swaps if swap.block_number in times]


def _check_last(log: Log, head: Block) -> None:
    if log.block_number == head.number and log.block_hash != head.hash:
        raise NoSuchState(f"block {head.number} was replaced while its swaps were read")


def parse_swap(log: Log) -> tuple[SwapEvent, SqrtPriceX96]:
    """A swap, and the price it left."""
    amount0, amount1, price, liquidity, _, fee = abi.decode_abi(abi.SWAP_FIELDS, log.data, "a Swap event")
    if fee > PIPS or price == 0:
        raise Malformed(f"a Swap event of block {log.block_number} charges {fee} pips at price {price}")
    return SwapEvent(-amount0, -amount1, liquidity, fee), SqrtPriceX96(price)


def parse_swaps(
    pool: PoolState, logs: Sequence[Log], dated: Seconds
) -> tuple[tuple[SwapEvent, ...], tuple[PricedBlock, ...]]:
    """The swaps up to the pool's own price, and after each its block, all dated alike, with the price it left."""
    parsed = [parse_swap(log) for log in logs]
    if parsed and parsed[-1][1] != pool.sqrt_price_x96:
        raise NodeBehind("the last swap among the events is not the one that left the pool's price")
    blocks = (Block(log.block_number, log.block_hash, dated) for log in logs)
    after = (PricedBlock(block, price) for block, (_, price) in zip(blocks, parsed, strict=True))
    return tuple(swap for swap, _ in parsed), tuple(after)
