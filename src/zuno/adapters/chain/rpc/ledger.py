"""What one transaction moved in and out of a wallet, measured from its events, and from balances for native coin."""

from __future__ import annotations

from dataclasses import dataclass

from zuno.adapters.chain.rpc import wire
from zuno.adapters.chain.rpc.node import Node, Receipt
from zuno.adapters.chain.rpc.prices import Times
from zuno.domain.pool import Block
from zuno.domain.tokens import NATIVE
from zuno.domain.units import Address


@dataclass(frozen=True, slots=True)
class Paid:
    """What a wallet gave up of one currency (negative: received)."""

    amount: int
    alone: bool = True
    """False: the amount is that of several transactions of one block together, which no balance can tell apart."""


async def paid(node: Node, times: Times, receipt: Receipt, currency: Address, wallet: Address, head: Block) -> Paid:
    if currency != NATIVE:
        return Paid(sum(_moved(receipt, currency, wallet)))
    return await _paid_native(node, times, receipt, wallet, head)


def _moved(receipt: Receipt, currency: Address, wallet: Address) -> list[int]:
    moves = []
    for log in receipt.logs:
        # An ERC-721 Transfer has a fourth topic and no amount.
        if log.address == currency and log.topics[:1] == (wire.TRANSFER,) and len(log.topics) == 3:
            amount = wire.number(log.data, "a Transfer event")
            if wire.address_in(log.topics[1]) == wallet:
                moves.append(amount)
            if wire.address_in(log.topics[2]) == wallet:
                moves.append(-amount)
    return moves


async def _paid_native(node: Node, times: Times, receipt: Receipt, wallet: Address, head: Block) -> Paid:
    """The wallet's balance before and after the block, without the gas it paid there."""
    blocks = await times.blocks([receipt.block_number - 1, receipt.block_number], head)
    before, after = blocks[receipt.block_number - 1], blocks[receipt.block_number]
    spent = await node.balance(wallet, before) - await node.balance(wallet, after)
    costs, alone = (receipt.cost if receipt.sender == wallet else 0), True
    for tx, sender, receiver in await node.senders_and_receivers(after):
        if tx != receipt.tx and wallet in (sender, receiver):
            alone = False
            costs += (await node.receipt(tx)).cost if sender == wallet else 0
    return Paid(spent - costs, alone)
