"""The methods of a geth node, by name."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import accumulate, islice
from typing import Any, Final

from . import geth_json, params
from .chain import GWEI, return_data
from .execution import execute
from .history import LocalBlock
from .node import DevnetNode
from .params import Params
from .rpc_errors import LIMIT_EXCEEDED, RpcError, bad_params, server_error
from .simulate import override_state, simulate

Method = Callable[[DevnetNode, Params], Any]

CLIENT_VERSION: Final = "Zuno/devnet/py-evm"
_FEE_HISTORY_LIMIT: Final = 1024


def get_block_by_number(node: DevnetNode, given: Params) -> Any:
    reference = given.require(0)
    block = params.find_block(node, reference)
    return None if block is None else geth_json.block(block, full=given.flag(1), pending=reference == "pending")


def get_block_by_hash(node: DevnetNode, given: Params) -> Any:
    block = node.chain.history.by_hash(params.data(given.require(0), 32))
    return None if block is None else geth_json.block(block, full=given.flag(1))


def get_block_receipts(node: DevnetNode, given: Params) -> Any:
    block = params.find_block(node, given.require(0))
    return None if block is None else [geth_json.receipt(block, receipt) for receipt in block.receipts]


def get_balance(node: DevnetNode, given: Params) -> str:
    view = given.view(1, node)
    return geth_json.quantity(view.chain.balance(params.address(given.require(0)), view.block))


def get_code(node: DevnetNode, given: Params) -> str:
    view = given.view(1, node)
    return geth_json.data(view.chain.code(params.address(given.require(0)), view.block))


def get_storage_at(node: DevnetNode, given: Params) -> str:
    view = given.view(2, node)
    slot = params.quantity(given.require(1))
    return geth_json.word(view.chain.storage(params.address(given.require(0)), slot, view.block))


def get_transaction_count(node: DevnetNode, given: Params) -> str:
    account = params.address(given.require(0))
    if given.get(1) == "pending":
        return geth_json.quantity(node.pending_nonce(account))
    view = given.view(1, node)
    return geth_json.quantity(view.chain.nonce(account, view.block))


def call(node: DevnetNode, given: Params) -> str:
    wanted = params.call(given.require(0))
    view = given.view(1, node)
    state = view.chain.free_state(view.block)
    override_state(state, params.options(given.get(2)))
    return geth_json.data(return_data(execute(state, view.chain.with_gas(wanted))))


def estimate_gas(node: DevnetNode, given: Params) -> str:
    view = given.view(1, node)
    if len(given) > 2:
        raise bad_params("state overrides are not supported by eth_estimateGas")
    return geth_json.quantity(view.chain.estimate_gas(params.call(given.require(0)), view.block))


def fee_history(node: DevnetNode, given: Params) -> geth_json.Json:
    newest = given.view(1, node).block
    count = min(params.quantity(given.require(0)), _FEE_HISTORY_LIMIT, newest.number + 1)
    percentiles = params.list_or_empty(given.get(2))
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in percentiles)
    if not numbers or percentiles != sorted(percentiles) or not all(0 <= value <= 100 for value in percentiles):
        raise bad_params("invalid reward percentile")
    history = node.chain.history
    heights = range(newest.number + 1 - count, newest.number)
    known = [block for height in heights if (block := history.at(height))] + [newest] * bool(count)
    following = history.at(newest.number + 1)
    next_fee = following.base_fee if following else node.chain.base_fee_after(newest)
    answer: geth_json.Json = {
        "oldestBlock": geth_json.quantity(newest.number + 1 - count),
        "baseFeePerGas": [geth_json.quantity(block.base_fee) for block in known] + [geth_json.quantity(next_fee)],
        "gasUsedRatio": [block.header.gas_used / block.header.gas_limit for block in known],
        "baseFeePerBlobGas": ["0x1"] * (len(known) + 1),
        "blobGasUsedRatio": [0.0] * len(known),
    }
    if percentiles:
        answer["reward"] = [[geth_json.quantity(tip) for tip in _tips(block, percentiles)] for block in known]
    return answer


def _tips(block: LocalBlock, percentiles: list[float]) -> list[int]:
    """The tips paid in a block at given shares of its gas; zeros for an empty one."""
    paid = sorted((receipt.gas_price - block.base_fee, receipt.gas_used) for receipt in block.receipts)
    if not paid:
        return [0] * len(percentiles)
    passed = list(accumulate(gas for _, gas in paid))
    thresholds = [block.header.gas_used * percentile / 100 for percentile in percentiles]
    return [paid[bisect_left(passed, threshold)][0] for threshold in thresholds]


def get_logs(node: DevnetNode, given: Params) -> list[geth_json.Json]:
    wanted = params.log_filter(given.require(0), node)
    limits, history = node.log_limits, node.chain.history
    if limits.max_range is not None and wanted.last - wanted.first >= limits.max_range:
        raise server_error(f"exceed maximum block range: {limits.max_range}")
    cap = limits.max_results
    logs = list(islice(history.logs(wanted), None if cap is None else cap + 1))
    if cap is not None and len(logs) > cap:
        raise RpcError(LIMIT_EXCEEDED, f"query returned more than {cap} results")
    blocks = {log.block_number: history.at(log.block_number) for log in logs}
    return [geth_json.log(block, log) for log in logs if (block := blocks[log.block_number])]


def send_transaction(node: DevnetNode, given: Params) -> str:
    fields = given.record(0)
    wanted = params.call(fields)
    if wanted.access_list:
        raise bad_params("access lists are not supported by eth_sendTransaction")
    price = wanted.max_fee_per_gas or None
    tip_named = fields.get("maxPriorityFeePerGas") is not None or fields.get("gasPrice") is not None
    tx = node.send(
        wanted.sender,
        to=wanted.to or None,
        data=wanted.data,
        value=wanted.value,
        gas=wanted.gas or None,
        nonce=None if fields.get("nonce") is None else params.quantity(fields["nonce"]),
        max_fee=price,
        tip=params.optional_quantity(fields, "maxPriorityFeePerGas", price or GWEI) if tip_named else None,
    )
    return geth_json.data(tx.hash)


def get_transaction_by_hash(node: DevnetNode, given: Params) -> Any:
    tx_hash = params.data(given.require(0), 32)
    mined = node.chain.history.receipt(tx_hash)
    if mined is not None:
        block, receipt = mined
        return geth_json.transaction(receipt.tx, block, receipt)
    waiting = node.pool.get(tx_hash)
    return None if waiting is None else geth_json.transaction(waiting, None)


def get_transaction_receipt(node: DevnetNode, given: Params) -> Any:
    mined = node.chain.history.receipt(params.data(given.require(0), 32))
    return None if mined is None else geth_json.receipt(*mined)


METHODS: Final[Mapping[str, Method]] = {
    "web3_clientVersion": lambda node, given: CLIENT_VERSION,
    "net_version": lambda node, given: str(node.chain.chain_id),
    "net_listening": lambda node, given: True,
    "eth_chainId": lambda node, given: geth_json.quantity(node.chain.chain_id),
    "eth_syncing": lambda node, given: False,
    "eth_accounts": lambda node, given: [geth_json.data(address) for address in node.unlocked],
    "eth_blockNumber": lambda node, given: geth_json.quantity(node.chain.head.number),
    "eth_getBlockByNumber": get_block_by_number,
    "eth_getBlockByHash": get_block_by_hash,
    "eth_getBlockReceipts": get_block_receipts,
    "eth_getBalance": get_balance,
    "eth_getCode": get_code,
    "eth_getStorageAt": get_storage_at,
    "eth_getTransactionCount": get_transaction_count,
    "eth_call": call,
    "eth_estimateGas": estimate_gas,
    "eth_simulateV1": lambda node, given: simulate(given.view(1, node), given.record(0)),
    "eth_gasPrice": lambda node, given: geth_json.quantity(node.chain.next_base_fee + GWEI),
    "eth_maxPriorityFeePerGas": lambda node, given: geth_json.quantity(GWEI),
    "eth_feeHistory": fee_history,
    "eth_getLogs": get_logs,
    "eth_sendRawTransaction": lambda node, given: geth_json.data(node.submit(params.data(given.require(0))).hash),
    "eth_sendTransaction": send_transaction,
    "eth_getTransactionByHash": get_transaction_by_hash,
    "eth_getTransactionReceipt": get_transaction_receipt,
}
