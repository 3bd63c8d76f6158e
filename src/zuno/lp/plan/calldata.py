"""The words v4's PositionManager and UniversalRouter understand, encoded exactly as they decode them."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from eth_abi.abi import encode
from eth_hash.auto import keccak

from zuno.amm.model import PoolKey, Range
from zuno.lp.model.chains import SwapStruct

KEY = "(address,address,uint24,int24,address)"
OPEN_DELTA = 0
"""As an amount in SETTLE and TAKE: whatever is owed."""
WHOLE_BALANCE = 1 << 255
"""As an amount in SETTLE: everything the contract has."""
SENDER = "0x0000000000000000000000000000000000000001"
"""As a recipient: the caller."""


class ActionId(IntEnum):
    """Action ids of v4-periphery."""

    MINT_POSITION = 0x02
    BURN_POSITION = 0x03
    SWAP_EXACT_IN_SINGLE = 0x06
    SETTLE = 0x0B
    SETTLE_PAIR = 0x0D
    TAKE = 0x0E
    TAKE_PAIR = 0x11
    SWEEP = 0x14


class CommandId(IntEnum):
    """Command ids of the UniversalRouter."""

    V4_SWAP = 0x10


class EncodedAction(NamedTuple):
    """An action with its parameters, each a flat abi.encode."""

    action: int
    params: bytes


def selector(signature: str) -> bytes:
    return keccak(signature.encode())[:4]


def call(signature: str, *values: object) -> bytes:
    """Calldata of an ordinary function, from its signature."""
    arguments = signature[signature.index("(") + 1 : -1]
    return selector(signature) + encode(_split(arguments), values)


def key_tuple(key: PoolKey) -> tuple[str, str, int, int, str]:
    return key.currency0, key.currency1, key.fee, key.tick_spacing, key.hooks


def mint_position(
    key: PoolKey, lower: int, upper: int, liquidity: int, amount0_max: int, amount1_max: int, owner: str
) -> EncodedAction:
    types = (KEY, "int24", "int24", "uint256", "uint128", "uint128", "address", "bytes")
    values = (key_tuple(key), lower, upper, liquidity, amount0_max, amount1_max, owner, b"")
    return EncodedAction(ActionId.MINT_POSITION, encode(types, values))


def burn_position(token: int, amount0_min: int, amount1_min: int) -> EncodedAction:
    types = ("uint256", "uint128", "uint128", "bytes")
    return EncodedAction(ActionId.BURN_POSITION, encode(types, (token, amount0_min, amount1_min, b"")))


def swap_exact_in_single(
    key: PoolKey, zero_for_one: bool, amount_in: int, amount_out_min: int, struct: SwapStruct
) -> EncodedAction:
    """In the shape of the deployment's router; the least price of the hop is left open, `amount_out_min` binds."""
    types, values = ["bool", "uint128", "uint128"], [zero_for_one, amount_in, amount_out_min]
    if struct is SwapStruct.MIN_HOP_PRICE:
        types, values = [*types, "uint256"], [*values, 0]
    shape = f"({','.join((KEY, *types, 'bytes'))})"
    return EncodedAction(ActionId.SWAP_EXACT_IN_SINGLE, encode((shape,), ((key_tuple(key), *values, b""),)))


def settle(currency: str, amount: int, payer_is_user: bool) -> EncodedAction:
    return EncodedAction(ActionId.SETTLE, encode(("address", "uint256", "bool"), (currency, amount, payer_is_user)))


def settle_pair(currency0: str, currency1: str) -> EncodedAction:
    return EncodedAction(ActionId.SETTLE_PAIR, encode(("address", "address"), (currency0, currency1)))


def take(currency: str, recipient: str, amount: int) -> EncodedAction:
    return EncodedAction(ActionId.TAKE, encode(("address", "address", "uint256"), (currency, recipient, amount)))


def take_pair(currency0: str, currency1: str, recipient: str) -> EncodedAction:
    return EncodedAction(
        ActionId.TAKE_PAIR, encode(("address", "address", "address"), (currency0, currency1, recipient))
    )


def sweep(currency: str, recipient: str) -> EncodedAction:
    return EncodedAction(ActionId.SWEEP, encode(("address", "address"), (currency, recipient)))


def unlock_data(steps: Sequence[EncodedAction]) -> bytes:
    """abi.encode(bytes actions, bytes[] params)."""
    return encode(("bytes", "bytes[]"), (bytes(step.action for step in steps), [step.params for step in steps]))


def modify_liquidities(steps: Sequence[EncodedAction], deadline: int) -> bytes:
    """PositionManager.modifyLiquidities."""
    return call("modifyLiquidities(bytes,uint256)", unlock_data(steps), deadline)


def execute(commands: Sequence[tuple[int, bytes]], deadline: int) -> bytes:
    """UniversalRouter.execute."""
    return call(
        "execute(bytes,bytes[],uint256)",
        bytes(command for command, _ in commands),
        [data for _, data in commands],
        deadline,
    )


def v4_swap(steps: Sequence[EncodedAction]) -> tuple[int, bytes]:
    return CommandId.V4_SWAP, unlock_data(steps)


def _split(arguments: str) -> list[str]:
    """Top-level argument types: commas inside a tuple belong to the tuple."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(arguments):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append(arguments[start:at])
            start = at + 1
    return [*parts, arguments[start:]] if arguments else []


INCREASE_LIQUIDITY: Final = 0x00
DECREASE_LIQUIDITY: Final = 0x01
INCREASE_FROM_DELTAS: Final = 0x04
MINT_FROM_DELTAS: Final = 0x05
CLOSE_CURRENCY: Final = 0x12

PERMIT2_TRANSFER_FROM: Final = 0x02
WRAP_ETH: Final = 0x0B
UNWRAP_WETH: Final = 0x0C
V4_POSITION_MANAGER_CALL: Final = 0x14

_CHANGE: Final = ("uint256", "uint256", "uint128", "uint128", "bytes")


def increase(token_id: int, liquidity: int, amount0_max: int, amount1_max: int) -> EncodedAction:
    return EncodedAction(INCREASE_LIQUIDITY, encode(_CHANGE, (token_id, liquidity, amount0_max, amount1_max, b"")))


def decrease(token_id: int, liquidity: int, amount0_min: int, amount1_min: int) -> EncodedAction:
    return EncodedAction(DECREASE_LIQUIDITY, encode(_CHANGE, (token_id, liquidity, amount0_min, amount1_min, b"")))


def increase_from_deltas(token_id: int, amount0_max: int, amount1_max: int) -> EncodedAction:
    """Add what the call's open credit pays for."""
    types = ("uint256", "uint128", "uint128", "bytes")
    return EncodedAction(INCREASE_FROM_DELTAS, encode(types, (token_id, amount0_max, amount1_max, b"")))


def mint_from_deltas(key: PoolKey, band: Range, amount0_max: int, amount1_max: int, owner: str) -> EncodedAction:
    """Open a range with what the call's open credit pays for."""
    types = (KEY, "int24", "int24", "uint128", "uint128", "address", "bytes")
    values = (key_tuple(key), band.lower, band.upper, amount0_max, amount1_max, owner, b"")
    return EncodedAction(MINT_FROM_DELTAS, encode(types, values))


def close_currency(currency: str) -> EncodedAction:
    """Pay or take, by and for the caller, whatever is left of a currency."""
    return EncodedAction(CLOSE_CURRENCY, encode(("address",), (currency,)))


def permit2_transfer_from(token: str, recipient: str, amount: int) -> tuple[int, bytes]:
    return PERMIT2_TRANSFER_FROM, encode(("address", "address", "uint160"), (token, recipient, amount))


def wrap_eth(recipient: str, amount: int) -> tuple[int, bytes]:
    return WRAP_ETH, encode(("address", "uint256"), (recipient, amount))


def unwrap_weth(recipient: str, least: int) -> tuple[int, bytes]:
    return UNWRAP_WETH, encode(("address", "uint256"), (recipient, least))


def position_manager_call(acts: Sequence[EncodedAction], deadline: int) -> tuple[int, bytes]:
    """The router calls PositionManager with all the ether it has; there the caller is the router, not the wallet."""
    return V4_POSITION_MANAGER_CALL, modify_liquidities(acts, deadline)


def wrap() -> bytes:
    return call("deposit()")


def approve(spender: str, amount: int) -> bytes:
    return call("approve(address,uint256)", spender, amount)


def permit2_approve(token: str, spender: str, amount: int, expiration: int) -> bytes:
    return call("approve(address,address,uint160,uint48)", token, spender, amount, expiration)
