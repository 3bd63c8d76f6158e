"""PoolManager's storage, read in bulk at one block: hundreds of positions are a handful of calls."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from eth_hash.auto import keccak

from zuno.adapters.chain.rpc import abi, requests
from zuno.adapters.chain.rpc.errors import CallReverted, NoSuchState, ResponseTooLarge
from zuno.adapters.chain.rpc.node import RpcNode
from zuno.adapters.chain.rpc.transport import RpcRequest
from zuno.adapters.chain.states import amounts_held, build_pool_state
from zuno.amm import identity
from zuno.amm.fees import earned_rounding_down, growth_inside
from zuno.amm.integers import ceil_div
from zuno.amm.model import Block, Depth, PoolKey, PoolState, Range
from zuno.amm.pool import PositionInfo, Slot0
from zuno.amm.ticks import MAX_TICK, MIN_TICK
from zuno.kernel.errors import Malformed, Unavailable, ZunoError
from zuno.kernel.text import Token
from zuno.kernel.units import Address, HexId, Tick

WORDS_PER_CALL: Final = 2_500
"""About 6 million gas and 160 kB of request: well inside what public nodes allow one call."""

BLOCKS_PER_BATCH: Final = 50
WORDS_REMEMBERED: Final = 200_000

Words = dict[int, int]


@dataclass(frozen=True, slots=True)
class PositionPlace:
    pool_id: HexId
    range: Range
    pool: identity.PoolSlots
    position: tuple[int, int, int]
    lower: tuple[int, int, int]
    upper: tuple[int, int, int]

    def slots(self) -> tuple[int, ...]:
        """Every word that its worth depends on. A tick's first word, its liquidity, does not count."""
        pool = self.pool
        return (
            *(pool.slot0, pool.fee_growth_global0_x128, pool.fee_growth_global1_x128, pool.liquidity),
            *self.position,
            *(*self.lower[1:], *self.upper[1:]),
        )


@dataclass(frozen=True, slots=True)
class PositionWorth:
    """A position at one block, in the contracts' integers: what a full burn would pay, principal and fees apart."""

    slot0: Slot0
    info: PositionInfo
    inside0: int
    inside1: int
    amount0: int
    amount1: int
    fees0: int
    fees1: int


@lru_cache(maxsize=1 << 15)
def locate_position(position_manager: Address, pool_id: HexId, band: Range, token_id: int) -> PositionPlace:
    key = identity.position_key(position_manager, band.lower, band.upper, token_id)
    return PositionPlace(
        pool_id,
        band,
        identity.pool_slots(pool_id),
        identity.position_slots(pool_id, key),
        identity.tick_slots(pool_id, band.lower),
        identity.tick_slots(pool_id, band.upper),
    )


class Storage:
    def __init__(self, node: RpcNode, pool_manager: Address) -> None:
        self._node = node
        self._pool_manager = pool_manager
        self._newest_of: HexId | None = None
        self._newest = Words()
        self._past: dict[HexId, Words] = {}
        """By the hash of the block: what was written there stays written."""

    async def words(self, slots: Iterable[int], at: Block) -> Words:
        words, fault = await self.some_words(slots, at)
        if fault is not None:
            raise fault
        return words

    async def some_words(self, slots: Iterable[int], at: Block) -> tuple[Words, ZunoError | None]:
        """The words that could be read, and why the rest could not. Raises if none could, or the block vanished."""
        wanted = list(dict.fromkeys(slots))
        parts = [wanted[start : start + WORDS_PER_CALL] for start in range(0, len(wanted), WORDS_PER_CALL)]
        answers = await asyncio.gather(*(self._read_words(part, at) for part in parts), return_exceptions=True)
        words, faults = Words(), list[ZunoError]()
        for answer in answers:
            if isinstance(answer, Unavailable | Malformed) and not isinstance(answer, NoSuchState):
                faults.append(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                words.update(answer)
        if faults and not words:
            raise faults[0]
        self._newest_of, self._newest = at.hash, words
        return words, faults[0] if faults else None

    async def words_again(self, slots: Sequence[int], at: Block) -> Words:
        """Words of a block that were probably just read."""
        known = self._newest if self._newest_of == at.hash else Words()
        return known if all(slot in known for slot in slots) else await self.words(slots, at)

    async def words_of_past(self, wanted: Sequence[tuple[Block, Sequence[int]]]) -> list[Words]:
        """Words of several past blocks, oldest first; those read before are not asked for again."""
        if sum(map(len, self._past.values())) > WORDS_REMEMBERED:
            self._past.clear()
        unknown = [
            (at, slots) for at, slots in wanted if not all(slot in self._past.get(at.hash, ()) for slot in slots)
        ]
        large = [(at, slots) for at, slots in unknown if len(slots) > WORDS_PER_CALL]
        small = [(at, slots) for at, slots in unknown if len(slots) <= WORDS_PER_CALL]
        past = {at.hash: dict(self._past.get(at.hash, ())) for at, _ in wanted}
        by_number = self._node.provider.by_number
        for at, slots in large:
            past[at.hash] |= await self.words(slots, at)
        for start in range(0, len(small), BLOCKS_PER_BATCH):
            part = small[start : start + BLOCKS_PER_BATCH]
            answers = await self._node.ask_together([self._question(at, slots) for at, slots in part])
            for (at, slots), words in zip(part, answers, strict=True):
                past[at.hash] |= zip(slots, words, strict=True)
        if self._node.provider.by_number == by_number:  # else nobody knows of which block they are
            self._past |= past
        return [past[at.hash] for at, _ in wanted]

    def _question(self, at: Block, slots: Sequence[int]) -> RpcRequest:
        count = len(slots)
        return requests.view(
            self._pool_manager, abi.extsload(slots), at, lambda data: abi.extsload_results(data, count)
        )

    async def _read_words(self, slots: Sequence[int], at: Block) -> Words:
        try:
            words = await self._node.ask_reading(self._question(at, slots))
        except (CallReverted, ResponseTooLarge):
            # extsload cannot refuse: a node with a lower gas or body limit gets half as much.
            if len(slots) == 1:
                raise
            half = len(slots) // 2
            return await self._read_words(slots[:half], at) | await self._read_words(slots[half:], at)
        return dict(zip(slots, words, strict=True))


def pool_state(key: PoolKey, pool_id: HexId, tokens: tuple[Token, Token], words: Words, at: Block) -> PoolState | None:
    """A pool out of its words; None if it has no price."""
    slots = identity.pool_slots(pool_id)
    slot0 = identity.unpack_slot0(words[slots.slot0])
    if slot0.sqrt_price_x96 == 0:
        return None
    growth = words[slots.fee_growth_global0_x128], words[slots.fee_growth_global1_x128]
    return build_pool_state(pool_id, key, tokens, slot0, words[slots.liquidity], growth, at)


def read_worth(at: PositionPlace, words: Words) -> PositionWorth:
    slot0 = identity.unpack_slot0(words[at.pool.slot0])
    info = identity.unpack_position(*(words[slot] for slot in at.position))
    lower, upper = at.range.lower, at.range.upper
    inside0, inside1 = (
        growth_inside(slot0.tick, lower, upper, words[growth], words[at.lower[side]], words[at.upper[side]])
        for side, growth in ((1, at.pool.fee_growth_global0_x128), (2, at.pool.fee_growth_global1_x128))
    )
    amount0, amount1 = amounts_held(slot0.sqrt_price_x96, at.range, info.liquidity)
    return PositionWorth(
        slot0,
        info,
        inside0,
        inside1,
        amount0,
        amount1,
        earned_rounding_down(inside0, info.fee_growth_inside0_last_x128, info.liquidity),
        earned_rounding_down(inside1, info.fee_growth_inside1_last_x128, info.liquidity),
    )


REACH: Final = 6_932
"""Ticks to each side of the price, at least: from half of it to twice. A swap that goes further than that pays a price
that no bound of ours allows. One word of the bitmap is 256 spacings: 28 to a side at a spacing of 1, 3 at 10, 1 at 60,
so that it is one call for the words and, for all but crowded pools, one more for the ticks."""
_WORD_BITS: Final = 256
_BITMAP: Final = 5
"""Where a pool's state keeps the bitmap, counted from slot0; checked against the contract."""


class TickReader:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def read_depth(self, pool: PoolState, at: Block) -> Depth:
        return (await self.read_depths([pool], at))[0]

    async def read_depths(self, pools: Sequence[PoolState], at: Block, reach: int = REACH) -> tuple[Depth, ...]:
        windows = [_window(pool.tick, pool.key.tick_spacing, reach) for pool in pools]
        bitmaps = [
            {word: _bitmap_slot(pool.id, word) for word in range(first, last + 1)}
            for pool, (first, last) in zip(pools, windows, strict=True)
        ]
        words = await self._storage.words((slot for bitmap in bitmaps for slot in bitmap.values()), at)
        places = [
            {
                tick: identity.tick_slots(pool.id, tick)[0]
                for word, slot in bitmap.items()
                for bit in range(_WORD_BITS)
                if words[slot] >> bit & 1
                for tick in [(word * _WORD_BITS + bit) * pool.key.tick_spacing]
            }
            for pool, bitmap in zip(pools, bitmaps, strict=True)
        ]
        slots = [slot for place in places for slot in place.values()]
        infos = await self._storage.words(slots, at) if slots else {}
        return tuple(
            Depth(pool, known, {tick: _net(tick, infos[slot]) for tick, slot in place.items()})
            for pool, (first, last), place in zip(pools, windows, places, strict=True)
            for size in [_WORD_BITS * pool.key.tick_spacing]
            for known in [Range(Tick(first * size), Tick((last + 1) * size))]
        )


def _window(tick: int, spacing: int, reach: int) -> tuple[int, int]:
    """The first and the last word to read; beyond the lowest and the highest tick there are none."""
    here = tick // spacing // _WORD_BITS
    beside = ceil_div(reach, _WORD_BITS * spacing)
    lowest, highest = MIN_TICK // spacing // _WORD_BITS, MAX_TICK // spacing // _WORD_BITS
    return max(here - beside, lowest), min(here + beside, highest)


def _bitmap_slot(pool_id: HexId, word: int) -> int:
    key = word.to_bytes(32, "big", signed=True) + (identity.pool_slots(pool_id).slot0 + _BITMAP).to_bytes(32, "big")
    return int.from_bytes(keccak(key), "big")


def _net(tick: int, packed: int) -> int:
    """A tick's first word holds its gross liquidity below its net one, 128 bits each."""
    gross, net = packed & ((1 << 128) - 1), packed >> 128
    if not gross:
        raise Malformed(f"tick {tick} is initialised and carries nothing")
    return net - (1 << 128) if net >> 127 else net
