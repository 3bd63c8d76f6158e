"""Names of pools, positions and storage words, so that what is read from a chain is what was meant."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from eth_hash.auto import keccak

from zuno.amm.pool import PositionInfo, Slot0

POOLS_SLOT: Final = 6
"""Where PoolManager keeps its pools; found in its storage layout and checked against the contract."""

_TICKS: Final = 4
_POSITIONS: Final = 6

_UINT24: Final = (1 << 24) - 1
_UINT128: Final = (1 << 128) - 1
_UINT160: Final = (1 << 160) - 1


@dataclass(frozen=True, slots=True)
class PositionManagerInfo:
    """What PositionManager packs about a token: the pool id is cut to its first 25 bytes."""

    pool_id_prefix: str
    tick_lower: int
    tick_upper: int
    has_subscriber: bool


@dataclass(frozen=True, slots=True)
class PoolSlots:
    slot0: int
    fee_growth_global0_x128: int
    fee_growth_global1_x128: int
    liquidity: int


def pool_id(currency0: str, currency1: str, fee: int, tick_spacing: int, hooks: str) -> str:
    """The id of the pool with this key, as 0x-hex; all five parts count."""
    # Five static words: the ABI is nothing but their concatenation, and eth_abi would cost 0.2 s at start.
    first, second, last = (_address(each).rjust(32, b"\0") for each in (currency0, currency1, hooks))
    key = first + second + fee.to_bytes(3, "big").rjust(32, b"\0") + _signed_word(tick_spacing) + last
    return _hex(keccak(key))


def position_key(owner: str, tick_lower: int, tick_upper: int, salt: int) -> str:
    """The key of a position inside its pool; positions of PositionManager have its address and their token id."""
    ticks = b"".join(tick.to_bytes(3, "big", signed=True) for tick in (tick_lower, tick_upper))
    return _hex(keccak(_address(owner) + ticks + salt.to_bytes(32, "big")))


def decode_position_info(packed: int) -> PositionManagerInfo:
    """Unpack PositionManager's `positionInfo` word."""
    return PositionManagerInfo(
        pool_id_prefix=_hex((packed >> 56).to_bytes(25, "big")),
        tick_lower=_int24(packed >> 8),
        tick_upper=_int24(packed >> 32),
        has_subscriber=packed & 0xFF != 0,
    )


def pool_slots(pool: str) -> PoolSlots:
    first = _pool_state_slot(pool)
    return PoolSlots(first, first + 1, first + 2, first + 3)


@lru_cache(maxsize=1 << 14)
def tick_slots(pool: str, tick: int) -> tuple[int, int, int]:
    """The three words of a tick: liquidity, then fee growth outside of both tokens."""
    return _three_words(_mapping_slot(_signed_word(tick), _pool_state_slot(pool) + _TICKS))


def position_slots(pool: str, position: str) -> tuple[int, int, int]:
    """The three words of a position, by its key: liquidity, then fee growth inside at its last touch."""
    return _three_words(_mapping_slot(bytes.fromhex(position[2:]), _pool_state_slot(pool) + _POSITIONS))


def unpack_slot0(word: int) -> Slot0:
    """Price, tick and fees out of slot0; a price of zero means that the pool does not exist."""
    return Slot0(
        sqrt_price_x96=word & _UINT160,
        tick=_int24(word >> 160),
        protocol_fee=word >> 184 & _UINT24,
        lp_fee=word >> 208 & _UINT24,
    )


def unpack_position(liquidity_word: int, inside0_last: int, inside1_last: int) -> PositionInfo:
    return PositionInfo(liquidity_word & _UINT128, inside0_last, inside1_last)


@lru_cache(maxsize=1 << 12)
def _pool_state_slot(pool: str) -> int:
    return _mapping_slot(bytes.fromhex(pool[2:]), POOLS_SLOT)


def _mapping_slot(key: bytes, slot: int) -> int:
    return int.from_bytes(keccak(key + slot.to_bytes(32, "big")), "big")


def _three_words(slot: int) -> tuple[int, int, int]:
    return slot, slot + 1, slot + 2


def _signed_word(value: int) -> bytes:
    return value.to_bytes(32, "big", signed=True)


def _address(text: str) -> bytes:
    address = bytes.fromhex(text.removeprefix("0x"))
    if len(address) != 20:
        raise ValueError(f"{text!r} is not an address of 20 bytes")
    return address


def _int24(value: int) -> int:
    value &= _UINT24
    return value - (1 << 24) if value >> 23 else value


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
