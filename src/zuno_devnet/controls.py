"""Methods of a development node: time, mining, snapshots, reorganisations, the mempool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from . import geth_json, params
from .methods import Method
from .node import DevnetNode, LogLimits
from .params import Params
from .rpc_errors import bad_params
from .transactions import LocalTransaction

_MAX_BLOCKS_AT_ONCE: Final = 10_000
_REORG_OPTIONS: Final = frozenset({"drop", "keep"})
_LIMITS: Final = ("maxRange", "maxResults")


def mine(node: DevnetNode, given: Params) -> str:
    timestamp = given.get(0)
    node.mine(None if timestamp is None else params.seconds(timestamp))
    return "0x0"


def mine_many(node: DevnetNode, given: Params) -> bool:
    count, interval = params.quantity(given.get(0, 1)), params.seconds(given.get(1, 1))
    if count > _MAX_BLOCKS_AT_ONCE or interval < 1:
        raise bad_params(f"at most {_MAX_BLOCKS_AT_ONCE} blocks, at least a second apart")
    first = node.now()
    params.seconds(first + max(0, count - 1) * interval)
    for step in range(count):
        node.mine(first + step * interval)
    return True


def set_automine(node: DevnetNode, given: Params) -> bool:
    node.set_automine(params.flag(given.require(0)))
    return True


def increase_time(node: DevnetNode, given: Params) -> int:
    seconds = params.seconds(given.require(0))
    params.seconds(node.now() + seconds)
    return node.increase_time(seconds)


def reorg(node: DevnetNode, given: Params) -> list[str]:
    options = params.options(given.get(1))
    params.reject_unknown(options, _REORG_OPTIONS, "reorg option")
    dropped = frozenset(params.data(tx_hash, 32) for tx_hash in params.list_or_empty(options.get("drop")))
    blocks = node.reorg(params.quantity(given.require(0)), drop=dropped, keep=params.flag(options.get("keep")))
    return [geth_json.data(block.hash) for block in blocks]


def pool_status(node: DevnetNode, given: Params) -> geth_json.Json:
    pending, queued = _pending_and_queued(node)
    return {"pending": geth_json.quantity(len(pending)), "queued": geth_json.quantity(len(queued))}


def pool_content(node: DevnetNode, given: Params) -> geth_json.Json:
    pending, queued = _pending_and_queued(node)
    return {"pending": _by_sender(pending), "queued": _by_sender(queued)}


def set_log_limits(node: DevnetNode, given: Params) -> bool:
    """Limit eth_getLogs as public nodes do: `{"maxRange": …, "maxResults": …}`; null or absent is no limit."""
    limits = given.record(0)
    params.reject_unknown(limits, frozenset(_LIMITS), "limit")
    node.log_limits = LogLimits(
        *(None if limits.get(name) is None else params.quantity(limits[name]) for name in _LIMITS)
    )
    return True


def _pending_and_queued(node: DevnetNode) -> tuple[list[LocalTransaction], list[LocalTransaction]]:
    """The transactions that could be mined now, and those behind a gap, as geth divides them."""
    pending = [tx for lane in node.pool.lanes(node.chain.nonce) for tx in lane]
    ready = {tx.hash for tx in pending}
    return pending, [tx for tx in node.pool if tx.hash not in ready]


def _by_sender(txs: list[LocalTransaction]) -> dict[str, dict[str, Any]]:
    content: dict[str, dict[str, Any]] = {}
    for tx in txs:
        content.setdefault(geth_json.data(tx.sender), {})[str(tx.nonce)] = geth_json.transaction(tx, None)
    return content


CONTROLS: Final[Mapping[str, Method]] = {
    # Named as Hardhat and anvil name them.
    "evm_mine": mine,
    "hardhat_mine": mine_many,
    "evm_setAutomine": set_automine,
    "evm_increaseTime": increase_time,
    "evm_setNextBlockTimestamp": lambda node, given: node.set_next_timestamp(params.seconds(given.require(0))),
    "evm_snapshot": lambda node, given: geth_json.quantity(node.snapshot()),
    "evm_revert": lambda node, given: node.revert(params.quantity(given.require(0))),
    # Named as geth names them.
    "txpool_status": pool_status,
    "txpool_content": pool_content,
    # Ours.
    "zuno_reorg": reorg,
    "zuno_dropTransaction": lambda node, given: node.pool.drop(params.data(given.require(0), 32)),
    "zuno_mempool": lambda node, given: [geth_json.transaction(tx, None) for tx in node.pool],
    "zuno_setLogLimits": set_log_limits,
}
