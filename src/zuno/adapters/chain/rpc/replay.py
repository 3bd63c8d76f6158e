"""One block of one pool, worked through event by event: what each liquidity change cost by the contracts' arithmetic.

State is readable before and after a block, not between its events. Prices in between are told by Swap events; fee
growth at a change is what the position remembers of it, so only an earlier change of the same position in the same
block can be uncertain, and only if someone traded between the two. What each of the two was paid then tells them apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.node import Log
from zuno.adapters.chain.rpc.prices import parse_swap
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.storage import PositionPlace, Words, locate_position
from zuno.adapters.chain.states import amounts_held
from zuno.amm.fees import earned_rounding_down
from zuno.amm.identity import pool_slots, unpack_position, unpack_slot0
from zuno.amm.integers import MAX_UINT256
from zuno.amm.model import Block, Range
from zuno.amm.pool import PositionInfo
from zuno.kernel.errors import Malformed
from zuno.kernel.units import HexId, SqrtPriceX96, Tick

_ANYTHING: Final = 1 << 255


@dataclass(frozen=True, slots=True)
class LiquidityEvent:
    log: Log
    pool_id: HexId
    token: int
    range: Range
    delta: int


@dataclass(frozen=True, slots=True)
class ReplayedChange:
    """A change as the contracts computed it: what its owner owed (negative: was owed), fees included."""

    change: LiquidityEvent
    sqrt_price_x96: SqrtPriceX96
    before: PositionInfo
    after: PositionInfo
    principal0: int
    principal1: int
    owed0: int
    owed1: int
    certain: bool
    """False: fee growth at this change is not known, and that of a later one stands for it."""


@dataclass(frozen=True, slots=True)
class PoolBlock:
    opening: SqrtPriceX96
    logs: tuple[Log, ...]
    replayed: dict[int, ReplayedChange] = field(default_factory=dict)
    """By log index."""

    def price_before(self, index: int) -> SqrtPriceX96:
        price = self.opening
        for log in self.logs:
            if log.index >= index:
                break
            price = _price_after(log) or price
        return price


class BlockReplay:
    def __init__(self, readers: Readers) -> None:
        self._node, self._storage, self._times = readers.node, readers.storage, readers.times
        self._pool_manager = readers.info.deployment.pool_manager
        self._manager = readers.info.deployment.position_manager

    def changes(self, logs: Iterable[Log]) -> list[LiquidityEvent]:
        sender = abi.address_word(self._manager)
        return [
            _parse_change(log)
            for log in logs
            if log.address == self._pool_manager
            and log.topics[:1] == (abi.MODIFY_LIQUIDITY,)
            and log.topics[2] == sender
        ]

    async def block(self, pool_id: HexId, number: int, head: Block) -> PoolBlock:
        topics = ([abi.INITIALIZE, abi.SWAP, abi.MODIFY_LIQUIDITY, abi.DONATE], pool_id)
        logs = tuple(await self._node.logs(self._pool_manager, topics, number, number))
        changes = self.changes(logs)
        slot0 = pool_slots(pool_id).slot0
        slots = [slot for change in changes for slot in self.place(change).position]
        edges = await self._times.blocks([number - 1, number], head)
        before = await self._storage.words([slot0, *slots], edges[number - 1])
        after = await self._storage.words(slots, edges[number]) if slots else Words()
        pool_block = PoolBlock(SqrtPriceX96(unpack_slot0(before[slot0]).sqrt_price_x96), logs)
        self._replay_changes(pool_block, changes, before, after)
        return pool_block

    def place(self, change: LiquidityEvent) -> PositionPlace:
        return locate_position(self._manager, change.pool_id, change.range, change.token)

    def _replay_changes(
        self, pool_block: PoolBlock, changes: Sequence[LiquidityEvent], before: Words, after: Words
    ) -> None:
        infos = {change.token: unpack_info(self.place(change), before) for change in changes}
        last = {change.token: change.log.index for change in changes}
        for change in changes:
            index, final = change.log.index, unpack_info(self.place(change), after)
            traded = any(
                index < log.index < last[change.token] and log.topics[0] in (abi.SWAP, abi.DONATE)
                for log in pool_block.logs
            )
            replayed = _replay_change(
                change, pool_block.price_before(index), infos[change.token], final, certain=not traded
            )
            infos[change.token] = replayed.after
            pool_block.replayed[index] = replayed


def split_fees(pool_block: PoolBlock, token: int, fees: Mapping[int, tuple[int | None, int | None]]) -> None:
    """Tell apart the changes of one position around a trade by the fees each paid out, by log index. Fees that no
    growth within the block can explain leave the split unknown."""
    items = [item for _, item in sorted(pool_block.replayed.items()) if item.change.token == token]
    growths = list[list[int]]()
    known = True
    for side in (0, 1):
        seen = [fees.get(item.change.log.index, (None, None))[side] for item in items]
        split = _growth_between(items, side, seen)
        growths.append(split or [_growth(item.after, side) for item in items])
        known = known and split is not None
    before = items[0].before
    for at, item in enumerate(items):
        again = _replay_change(
            item.change,
            item.sqrt_price_x96,
            before,
            PositionInfo(item.after.liquidity, growths[0][at], growths[1][at]),
            certain=item.certain or known,
        )
        pool_block.replayed[item.change.log.index] = again
        before = again.after


def unpack_info(at: PositionPlace, words: Words) -> PositionInfo:
    return unpack_position(*(words[slot] for slot in at.position))


def _replay_change(
    change: LiquidityEvent, price: SqrtPriceX96, before: PositionInfo, final: PositionInfo, *, certain: bool
) -> ReplayedChange:
    inside0, inside1 = final.fee_growth_inside0_last_x128, final.fee_growth_inside1_last_x128
    principal0, principal1 = amounts_held(price, change.range, abs(change.delta), round_up=change.delta > 0)
    sign = 1 if change.delta > 0 else -1
    return ReplayedChange(
        change,
        price,
        before,
        PositionInfo(before.liquidity + change.delta, inside0, inside1),
        sign * principal0,
        sign * principal1,
        sign * principal0 - earned_rounding_down(inside0, before.fee_growth_inside0_last_x128, before.liquidity),
        sign * principal1 - earned_rounding_down(inside1, before.fee_growth_inside1_last_x128, before.liquidity),
        certain,
    )


def _growth(info: PositionInfo, side: int) -> int:
    return info.fee_growth_inside1_last_x128 if side else info.fee_growth_inside0_last_x128


def _growth_between(items: Sequence[ReplayedChange], side: int, seen: Sequence[int | None]) -> list[int] | None:
    """Fee growth at each change that explains the fees it paid out, or None. Computed backwards from what was still to
    grow, because the growth a fresh position starts from means nothing."""
    steps = list[tuple[int, int]]()
    for item, fee in zip(items, seen, strict=True):
        liquidity = item.before.liquidity
        if not liquidity:
            steps.append((0, _ANYTHING))
        elif fee is None or fee < 0:
            return None
        else:  # the least and the most growth that pays out this fee, rounded down
            steps.append((-(-(fee << 128) // liquidity), -(-((fee + 1) << 128) // liquidity) - 1))
    final = _growth(items[-1].after, side)
    left = [(0, 0)]
    for least, most in reversed(steps):
        left.insert(0, (left[0][0] + least, left[0][1] + most))
    point = (final - _growth(items[0].before, side)) & MAX_UINT256 if items[0].before.liquidity else left[0][0]
    if not left[0][0] <= point <= left[0][1]:
        return None
    growths = list[int]()
    for (least, most), (low, high) in zip(steps, left[1:], strict=True):
        point, top = max(low, point - most), min(high, point - least)
        if point > top:
            return None
        growths.append((final - point) & MAX_UINT256)
    return growths


def _parse_change(log: Log) -> LiquidityEvent:
    lower, upper, delta, salt = abi.decode_abi(
        ["int24", "int24", "int256", "bytes32"], log.data, "a ModifyLiquidity event"
    )
    return LiquidityEvent(log, log.topics[1], int.from_bytes(salt, "big"), Range(Tick(lower), Tick(upper)), int(delta))


def _price_after(log: Log) -> SqrtPriceX96 | None:
    if log.topics[0] == abi.SWAP:
        return parse_swap(log)[1]
    if log.topics[0] == abi.INITIALIZE:
        fields = abi.decode_abi(abi.INITIALIZE_FIELDS, log.data, "an Initialize event")
        if not fields[3]:
            raise Malformed("an Initialize event without a price")
        return SqrtPriceX96(int(fields[3]))
    return None
