"""RPC requests that several modules ask, alone or in a batch."""

from collections.abc import Callable
from typing import Any

from eth_utils.address import to_checksum_address

from zuno.adapters.chain.rpc.errors import NodeBehind
from zuno.adapters.chain.rpc.transport import Callee, RpcRequest
from zuno.amm.model import Block
from zuno.kernel.units import Address, HexId
from zuno.lp.ports.spending import Call


def parse_int(value: Any) -> int:
    return int(value, 16)


def view(to: Address, data: bytes, at: Block, read: Callable[[bytes], Any], gas: int | None = None) -> RpcRequest:
    tx = {"to": to_checksum_address(to), "data": "0x" + data.hex()}
    if gas is not None:
        tx["gas"] = hex(gas)
    return RpcRequest("eth_call", [tx], lambda result: read(bytes.fromhex(result[2:])), at)


def spending(method: str, wallet: Address, call: Call, at: Block, read: Callable[[Any], Any]) -> RpcRequest:
    """A call as the wallet would send it; a revert is one of the answers."""
    return RpcRequest(method, [call_fields(wallet, call)], read, at, Callee.MAY_REVERT)


def call_fields(wallet: Address, call: Call) -> dict[str, Any]:
    return {
        "from": to_checksum_address(wallet),
        "to": to_checksum_address(call.to),
        "value": hex(call.value),
        "data": "0x" + call.data.hex(),
    }


def balance(account: Address, at: Block) -> RpcRequest:
    return RpcRequest("eth_getBalance", [to_checksum_address(account)], parse_int, at)


def transaction_count(account: Address, at: Block | None) -> RpcRequest:
    """Transactions the account had sent by the end of a block; None: with those that wait."""
    waiting = ["pending"] if at is None else []
    return RpcRequest("eth_getTransactionCount", [to_checksum_address(account), *waiting], parse_int, at)


def height(at_least: int) -> RpcRequest:
    """The node's height, `NodeBehind` if it is below `at_least`."""

    def check_height(result: Any) -> int:
        if parse_int(result) < at_least:
            raise NodeBehind(f"it is at block {parse_int(result)}, {at_least} was asked for")
        return parse_int(result)

    return RpcRequest("eth_blockNumber", [], check_height)


def code(account: Address, at: str = "latest") -> RpcRequest:
    return RpcRequest("eth_getCode", [to_checksum_address(account), at], lambda result: bytes.fromhex(result[2:]))


def block(at: str, *, whole: bool = False) -> RpcRequest:
    """`at`: a number in hex, or `latest`. `whole`: with its transactions."""
    return RpcRequest("eth_getBlockByNumber", [at, whole])


def receipt(tx: HexId) -> RpcRequest:
    return RpcRequest("eth_getTransactionReceipt", [tx], may_lack=True)


def transaction(tx: HexId) -> RpcRequest:
    return RpcRequest("eth_getTransactionByHash", [tx], may_lack=True)
