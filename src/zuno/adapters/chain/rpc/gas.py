"""The gas price now, and what a rollup adds for posting calldata to its parent chain."""

from __future__ import annotations

import asyncio
from statistics import median_low
from typing import Final

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.errors import BadRequest, CallReverted, NoSuchMethod
from zuno.adapters.chain.rpc.node import RpcNode
from zuno.adapters.chain.rpc.transport import Callee
from zuno.amm.integers import ceil_div
from zuno.amm.model import Block
from zuno.kernel.units import Address, Wei
from zuno.lp.model.chains import DataFee
from zuno.lp.model.market import GasQuote

RECENT_BLOCKS: Final = 20
_MEDIAN: Final = 50

GAS_PRICE_ORACLE: Final = Address("0x420000000000000000000000000000000000000f")
ARB_GAS_INFO: Final = Address("0x000000000000000000000000000000000000006c")
_UPPER_BOUND: Final = abi.selector("getL1FeeUpperBound(uint256)")
_L1_BASE_FEE: Final = abi.selector("l1BaseFee()")
_BLOB_BASE_FEE: Final = abi.selector("blobBaseFee()")
_BASE_FEE_SCALAR: Final = abi.selector("baseFeeScalar()")
_BLOB_BASE_FEE_SCALAR: Final = abi.selector("blobBaseFeeScalar()")
_PRICES_IN_WEI: Final = abi.selector("getPricesInWei()")
_SMALLEST: Final = 500
"""Bytes of the smallest liquidity transaction: a collect."""
_L1_GAS_PER_BYTE: Final = 16


async def quote(node: RpcNode, data_fee: DataFee, at: Block) -> GasQuote:
    (base_fee, tip), per_byte = await asyncio.gather(_execution(node), _data(node, data_fee, at))
    data = None if per_byte is None else Wei(per_byte)
    return GasQuote(Wei(base_fee), Wei(tip), data, estimates_hold_data_fee=data_fee is DataFee.ARBITRUM)


async def _execution(node: RpcNode) -> tuple[int, int]:
    """Base fee of the next block and the median of recent blocks' median tips."""
    try:
        history = await node.fee_history(RECENT_BLOCKS, _MEDIAN)
    except (NoSuchMethod, BadRequest):
        return await _whole_price(node)
    if history.tips:
        return history.base_fees[-1], median_low(history.tips)
    # Empty blocks, or a node that reports no tips.
    try:
        return history.base_fees[-1], await node.suggested_tip()
    except NoSuchMethod:
        return history.base_fees[-1], max(0, await node.gas_price() - history.base_fees[-1])


async def _whole_price(node: RpcNode) -> tuple[int, int]:
    """A node that knows one price only: split off the tip it suggests, if it suggests one."""
    price = await node.gas_price()
    try:
        tip = min(price, await node.suggested_tip())
    except NoSuchMethod:
        tip = 0
    return price - tip, tip


async def _data(node: RpcNode, data_fee: DataFee, at: Block) -> int | None:
    match data_fee:
        case DataFee.NONE:
            return None
        case DataFee.OP_STACK:
            return await _op_stack(node, at)
        case DataFee.ARBITRUM:
            return await _arbitrum(node, at)


async def _op_stack(node: RpcNode, at: Block) -> int:
    """Wei per byte of transaction, from above.

    Since Fjord the oracle's upper bound is affine in the size with a positive intercept, so its price per byte falls
    with the size: asked for the smallest transaction we send, it holds for all of them (7 % too much at worst). Older
    chains charge 16 L1 gas a byte at (16·baseFeeScalar·l1BaseFee + blobBaseFeeScalar·blobBaseFee) / 16e6 wei.
    """
    try:
        bound = await _oracle(node, _UPPER_BOUND + abi.word(_SMALLEST), at, Callee.MAY_REVERT)
        return ceil_div(bound, _SMALLEST)
    except CallReverted:
        words = (_L1_BASE_FEE, _BASE_FEE_SCALAR, _BLOB_BASE_FEE, _BLOB_BASE_FEE_SCALAR)
        base, base_scalar, blob, blob_scalar = await asyncio.gather(*(_oracle(node, word, at) for word in words))
        return ceil_div(_L1_GAS_PER_BYTE * base_scalar * base + blob_scalar * blob, 10**6)


async def _oracle(node: RpcNode, question: bytes, at: Block, callee: Callee = Callee.CERTAIN) -> int:
    return await node.call(GAS_PRICE_ORACLE, question, at, abi.uint_reader("the gas oracle"), callee=callee)


async def _arbitrum(node: RpcNode, at: Block) -> int:
    """Nitro's second price: its L1 price of a calldata unit times the 16 units of a byte."""
    prices = await node.call(
        ARB_GAS_INFO, _PRICES_IN_WEI, at, lambda data: abi.decode_abi(["uint256"] * 6, data, "getPricesInWei")
    )
    return int(prices[1])
