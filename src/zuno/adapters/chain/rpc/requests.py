"""The questions of somebody who is about to spend, ready to be asked alone or together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from eth_utils.address import to_checksum_address

from zuno.adapters.chain.rpc.errors import Behind
from zuno.adapters.chain.rpc.transport import Callee, Question
from zuno.amm.model import Block
from zuno.kernel.units import Address, HexId
from zuno.lp.ports.spending import Call

PENDING: Final = "pending"


def whole(value: Any) -> int:
    return int(value, 16)


def view(to: Address, data: bytes, at: Block, read: Callable[[bytes], Any], gas: int | None = None) -> Question:
    """A call of a contract that only tells something."""
    tx = {"to": to_checksum_address(to), "data": "0x" + data.hex()}
    if gas is not None:
        tx["gas"] = hex(gas)
    return Question("eth_call", [tx], lambda result: read(bytes.fromhex(result[2:])), at)


def spending(method: str, wallet: Address, call: Call, at: Block, read: Callable[[Any], Any]) -> Question:
    """A call as the wallet would send it; that it reverts is one of the answers."""
    return Question(method, [sent_by(wallet, call)], read, at, Callee.MAY_REVERT)


def sent_by(wallet: Address, call: Call) -> dict[str, Any]:
    return {
        "from": to_checksum_address(wallet),
        "to": to_checksum_address(call.to),
        "value": hex(call.value),
        "data": "0x" + call.data.hex(),
    }


def balance(account: Address, at: Block) -> Question:
    return Question("eth_getBalance", [to_checksum_address(account)], whole, at)


def sent(account: Address, at: Block) -> Question:
    """Transactions the account had sent by the end of a block."""
    return Question("eth_getTransactionCount", [to_checksum_address(account)], whole, at)


def sent_or_waiting(account: Address) -> Question:
    return Question("eth_getTransactionCount", [to_checksum_address(account), PENDING], whole)


def height(at_least: int) -> Question:
    """How far the machine is, asked beside what it would otherwise leave out without a word."""

    def reached(result: Any) -> int:
        if whole(result) < at_least:
            raise Behind(f"it is at block {whole(result)}, {at_least} was asked for")
        return whole(result)

    return Question("eth_blockNumber", [], reached)


def receipt(tx: HexId) -> Question:
    return Question("eth_getTransactionReceipt", [tx], may_lack=True)


def transaction(tx: HexId) -> Question:
    return Question("eth_getTransactionByHash", [tx], may_lack=True)
