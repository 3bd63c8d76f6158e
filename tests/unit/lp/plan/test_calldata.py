"""A swap in the shape its router decodes: the same words, with the hop's least price where the router has one."""

from __future__ import annotations

from typing import Any

import pytest
from eth_abi.abi import decode

from zuno.amm.model import PoolKey
from zuno.kernel.units import Address, Pips
from zuno.lp.model.chains import CHAINS, SwapStruct
from zuno.lp.plan import calldata

KEY = PoolKey(Address("0x" + "00" * 20), Address("0x" + "11" * 20), Pips(500), 10)
COMMON = (calldata.key_tuple(KEY), True, 10**18, 5)


@pytest.mark.parametrize(
    ("struct", "shape", "values"),
    [
        (SwapStruct.FIVE_FIELDS, "bool,uint128,uint128,bytes", (*COMMON, b"")),
        (SwapStruct.MIN_HOP_PRICE, "bool,uint128,uint128,uint256,bytes", (*COMMON, 0, b"")),
    ],
)
def test_a_swap_has_the_shape_its_router_expects(struct: SwapStruct, shape: str, values: tuple[Any, ...]) -> None:
    step = calldata.swap_exact_in_single(KEY, True, 10**18, 5, struct)
    assert step.action == 0x06
    assert decode([f"({calldata.KEY},{shape})"], step.params) == (values,)


def test_every_deployment_names_its_shape() -> None:
    assert all(isinstance(chain.deployment.swap_struct, SwapStruct) for chain in CHAINS)


def test_a_mint_says_each_figure_in_its_own_place() -> None:
    step = calldata.mint_position(KEY, -120, 180, 777, 11, 22, "0x" + "ab" * 20)
    types = (calldata.KEY, "int24", "int24", "uint256", "uint128", "uint128", "address", "bytes")
    _, lower, upper, liquidity, most0, most1, owner, hook_data = decode(types, step.params)
    assert (lower, upper, liquidity, most0, most1) == (-120, 180, 777, 11, 22)
    assert (owner, hook_data) == ("0x" + "ab" * 20, b"")


def test_a_burn_says_each_figure_in_its_own_place() -> None:
    step = calldata.burn_position(7, 11, 22)
    assert decode(("uint256", "uint128", "uint128", "bytes"), step.params) == (7, 11, 22, b"")
