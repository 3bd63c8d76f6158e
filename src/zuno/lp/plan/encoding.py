"""Calldata that only plans need; `calldata` has what the local chains use too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eth_abi.abi import encode

from zuno.amm.model import PoolKey, Range
from zuno.lp.plan.calldata import KEY, call, key_tuple, modify_liquidities
from zuno.lp.plan.calldata import EncodedAction as Act

INCREASE_LIQUIDITY: Final = 0x00
DECREASE_LIQUIDITY: Final = 0x01
INCREASE_FROM_DELTAS: Final = 0x04
MINT_FROM_DELTAS: Final = 0x05
CLOSE_CURRENCY: Final = 0x12

PERMIT2_TRANSFER_FROM: Final = 0x02
V4_POSITION_MANAGER_CALL: Final = 0x14

_CHANGE: Final = ("uint256", "uint256", "uint128", "uint128", "bytes")


def increase(token_id: int, liquidity: int, amount0_max: int, amount1_max: int) -> Act:
    return Act(INCREASE_LIQUIDITY, encode(_CHANGE, (token_id, liquidity, amount0_max, amount1_max, b"")))


def decrease(token_id: int, liquidity: int, amount0_min: int, amount1_min: int) -> Act:
    return Act(DECREASE_LIQUIDITY, encode(_CHANGE, (token_id, liquidity, amount0_min, amount1_min, b"")))


def increase_from_deltas(token_id: int, amount0_max: int, amount1_max: int) -> Act:
    """Add what the call's open credit pays for."""
    types = ("uint256", "uint128", "uint128", "bytes")
    return Act(INCREASE_FROM_DELTAS, encode(types, (token_id, amount0_max, amount1_max, b"")))


def mint_from_deltas(key: PoolKey, band: Range, amount0_max: int, amount1_max: int, owner: str) -> Act:
    """Open a range with what the call's open credit pays for."""
    types = (KEY, "int24", "int24", "uint128", "uint128", "address", "bytes")
    values = (key_tuple(key), band.lower, band.upper, amount0_max, amount1_max, owner, b"")
    return Act(MINT_FROM_DELTAS, encode(types, values))


def close_currency(currency: str) -> Act:
    """Pay or take, by and for the caller, whatever is left of a currency."""
    return Act(CLOSE_CURRENCY, encode(("address",), (currency,)))


def permit2_transfer_from(token: str, recipient: str, amount: int) -> tuple[int, bytes]:
    return PERMIT2_TRANSFER_FROM, encode(("address", "address", "uint160"), (token, recipient, amount))


def position_manager_call(acts: Sequence[Act], deadline: int) -> tuple[int, bytes]:
    """The router calls PositionManager with all the ether it has; there the caller is the router, not the wallet."""
    return V4_POSITION_MANAGER_CALL, modify_liquidities(acts, deadline)


def wrap() -> bytes:
    return call("deposit()")


def approve(spender: str, amount: int) -> bytes:
    return call("approve(address,uint256)", spender, amount)


def permit2_approve(token: str, spender: str, amount: int, expiration: int) -> bytes:
    return call("approve(address,address,uint160,uint48)", token, spender, amount, expiration)
