"""A pool's initialised ticks around its price, from the bitmap in PoolManager's storage."""

from __future__ import annotations

from typing import Final

from eth_hash.auto import keccak

from zuno.adapters.chain.rpc.storage import Storage
from zuno.amm.identity import pool_slots, tick_slots
from zuno.amm.integers import ceil_div
from zuno.amm.model import Block, Depth, PoolState, Range
from zuno.amm.ticks import MAX_TICK, MIN_TICK
from zuno.kernel.errors import Malformed
from zuno.kernel.units import HexId, Tick

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
        spacing = pool.key.tick_spacing
        first, last = _window(pool.tick, spacing)
        slots = {word: _bitmap_slot(pool.id, word) for word in range(first, last + 1)}
        words = await self._storage.words(slots.values(), at)
        ticks = [tick for word, slot in slots.items() for tick in _set_ticks(word, words[slot], spacing)]
        places = {tick: tick_slots(pool.id, tick)[0] for tick in ticks}
        infos = await self._storage.words(places.values(), at) if places else {}
        known = Range(Tick(first * _WORD_BITS * spacing), Tick((last + 1) * _WORD_BITS * spacing))
        return Depth(pool, known, {tick: _net(tick, infos[slot]) for tick, slot in places.items()})


def _window(tick: int, spacing: int) -> tuple[int, int]:
    """The first and the last word to read; beyond the lowest and the highest tick there are none."""
    here = tick // spacing // _WORD_BITS
    beside = ceil_div(REACH, _WORD_BITS * spacing)
    lowest, highest = MIN_TICK // spacing // _WORD_BITS, MAX_TICK // spacing // _WORD_BITS
    return max(here - beside, lowest), min(here + beside, highest)


def _bitmap_slot(pool_id: HexId, word: int) -> int:
    key = word.to_bytes(32, "big", signed=True) + (pool_slots(pool_id).slot0 + _BITMAP).to_bytes(32, "big")
    return int.from_bytes(keccak(key), "big")


def _set_ticks(word: int, bits: int, spacing: int) -> list[int]:
    return [(word * _WORD_BITS + bit) * spacing for bit in range(_WORD_BITS) if bits >> bit & 1]


def _net(tick: int, packed: int) -> int:
    """A tick's first word holds its gross liquidity below its net one, 128 bits each."""
    gross, net = packed & ((1 << 128) - 1), packed >> 128
    if not gross:
        raise Malformed(f"tick {tick} is initialised and carries nothing")
    return net - (1 << 128) if net >> 127 else net
