"""Function selectors, event topics and the ABI layouts we read."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_hash.auto import keccak

from zuno.adapters.chain.rpc.validate import Events, EventShape
from zuno.amm.model import PoolKey
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Address, HexId, Pips
from zuno.lp.model.chains import Deployment
from zuno.lp.plan.calldata import selector as selector

_WORD: Final = 32


def topic(signature: str) -> HexId:
    return HexId("0x" + keccak(signature.encode()).hex())


# PositionManager
MULTICALL: Final = selector("multicall(bytes[])")
POSITION_INFO: Final = selector("positionInfo(uint256)")
OWNER_OF: Final = selector("ownerOf(uint256)")
BALANCE_OF: Final = selector("balanceOf(address)")
NEXT_TOKEN_ID: Final = selector("nextTokenId()")
POOL_KEYS: Final = selector("poolKeys(bytes25)")
# PoolManager
EXTSLOAD: Final = selector("extsload(bytes32[])")
# ERC-20
SYMBOL: Final = selector("symbol()")
DECIMALS: Final = selector("decimals()")

TRANSFER: Final = topic("Transfer(address,address,uint256)")
"""ERC-20 and ERC-721 share it; in ERC-721 the id is the third indexed word."""
SUBSCRIPTION: Final = topic("Subscription(uint256,address)")
UNSUBSCRIPTION: Final = topic("Unsubscription(uint256,address)")
INITIALIZE: Final = topic("Initialize(bytes32,address,address,uint24,int24,address,uint160,int24)")
SWAP: Final = topic("Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)")
MODIFY_LIQUIDITY: Final = topic("ModifyLiquidity(bytes32,address,int24,int24,int256,bytes32)")
DONATE: Final = topic("Donate(bytes32,address,uint256,uint256)")


def events_of(deployment: Deployment) -> Events:
    """The events we read of v4's own contracts, as their sources declare them."""
    return {
        deployment.pool_manager: {
            INITIALIZE: EventShape(topics=4, data=5 * _WORD),
            SWAP: EventShape(topics=3, data=6 * _WORD),
            MODIFY_LIQUIDITY: EventShape(topics=3, data=4 * _WORD),
            DONATE: EventShape(topics=3, data=2 * _WORD),
        },
        deployment.position_manager: {
            TRANSFER: EventShape(topics=4, data=0),
            SUBSCRIPTION: EventShape(topics=3, data=0),
            UNSUBSCRIPTION: EventShape(topics=3, data=0),
        },
    }


SWAP_FIELDS: Final = ("int128", "int128", "uint160", "uint128", "int24", "uint24")
"""amount0, amount1 (the trader's: paid in is negative), √price, liquidity, tick, fee."""
INITIALIZE_FIELDS: Final = ("uint24", "int24", "address", "uint160", "int24")
"""fee, spacing, hooks, √price, tick."""
POOL_KEY: Final = ("address", "address", "uint24", "int24", "address")


def decode_abi(types: Sequence[str], data: bytes, what: str) -> tuple[Any, ...]:
    """Decode ABI data; `Malformed` for anything that does not fit the types."""
    try:
        return decode(types, data)
    # eth_abi lets absurd offsets and invalid UTF-8 escape as these.
    except (DecodingError, OverflowError, ValueError, TypeError) as error:
        raise Malformed(f"{what}: the returned data cannot be decoded") from error


def decode_uint(data: bytes, what: str) -> int:
    if len(data) != _WORD:
        raise Malformed(f"{what}: {len(data)} bytes instead of one word")
    return int.from_bytes(data, "big")


def uint_reader(what: str) -> Callable[[bytes], int]:
    return lambda data: decode_uint(data, what)


def word(value: int) -> bytes:
    return value.to_bytes(_WORD, "big")


def address_word(address: Address) -> HexId:
    return HexId("0x" + "00" * 12 + address[2:])


def id_word(value: int) -> HexId:
    return HexId("0x" + word(value).hex())


def topic_address(topic_word: HexId) -> Address:
    return Address("0x" + topic_word[-40:].lower())


def balance_of(owner: Address) -> bytes:
    return BALANCE_OF + bytes.fromhex(address_word(owner)[2:])


def multicall(calls: Sequence[bytes]) -> bytes:
    return MULTICALL + encode(["bytes[]"], [calls])


def multicall_results(data: bytes, expected: int) -> tuple[bytes, ...]:
    (results,) = decode_abi(["bytes[]"], data, "multicall")
    if len(results) != expected:
        raise Malformed(f"multicall: {len(results)} results for {expected} calls")
    return tuple(results)


def extsload(slots: Sequence[int]) -> bytes:
    """Encoded by hand: a snapshot asks for thousands of words, and the layout is only words."""
    return EXTSLOAD + word(_WORD) + word(len(slots)) + b"".join(map(word, slots))


def extsload_results(data: bytes, expected: int) -> list[int]:
    head = 2 * _WORD
    if len(data) != head + expected * _WORD or data[:head] != word(_WORD) + word(expected):
        raise Malformed(f"extsload: {len(data)} bytes for {expected} words")
    return [int.from_bytes(data[at : at + _WORD], "big") for at in range(head, len(data), _WORD)]


def pool_keys(prefix: bytes) -> bytes:
    """PositionManager stores pool keys under the first 25 bytes of the pool's id."""
    return POOL_KEYS + prefix.ljust(_WORD, b"\0")


def pool_key(data: bytes) -> PoolKey:
    """What `poolKeys` returns; all zeros, spacing included, where nothing is stored."""
    currency0, currency1, fee, tick_spacing, hooks = decode_abi(POOL_KEY, data, "poolKeys")
    return PoolKey(
        Address(currency0.lower()), Address(currency1.lower()), Pips(fee), tick_spacing, Address(hooks.lower())
    )
