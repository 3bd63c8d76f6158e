"""eth_simulateV1 and state overrides: calls on a state that is discarded afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from eth_hash.auto import keccak
from eth_typing import Address

from . import geth_json, params
from .block_builder import next_header
from .chain import LocalChain
from .execution import ExecutionResult, FreeState, execute
from .history import LocalBlock, numbered_logs
from .node import BlockView
from .rpc_errors import REVERTED, VM_ERROR, RpcError, bad_params, revert_message

_MAX_BLOCKS: Final = 256
_BLOCK_TIME: Final = 12
_KNOWN_OPTIONS: Final = frozenset({"blockStateCalls", "traceTransfers", "validation", "returnFullTransactions"})
_KNOWN_BLOCK_OVERRIDES: Final = frozenset({"time", "number"})
_KNOWN_STATE_OVERRIDES: Final = frozenset({"balance", "nonce", "code", "stateDiff"})


def override_state(state: FreeState, overrides: Mapping[str, Any]) -> None:
    """Set balances, nonces, code and storage of accounts, as `eth_call`'s third argument asks."""
    for name, change in overrides.items():
        account = Address(params.address(name))
        params.reject_unknown(params.record(change), _KNOWN_STATE_OVERRIDES, "state override")
        if "balance" in change:
            state.set_balance(account, params.quantity(change["balance"]))
        if "nonce" in change:
            state.set_nonce(account, params.quantity(change["nonce"]))
        if "code" in change:
            state.set_code(account, params.data(change["code"]))
        for slot, value in params.options(change.get("stateDiff")).items():
            state.set_storage(account, params.quantity(slot), params.quantity(value))


def simulate(view: BlockView, options: Mapping[str, Any]) -> list[geth_json.Json]:
    """Run the blocks one after another on top of a view, each call seeing what the earlier ones did."""
    params.reject_unknown(options, _KNOWN_OPTIONS, "option")
    if params.flag(options.get("validation")):
        raise bad_params("validation is not supported: calls are simulated unpaid")
    steps = options.get("blockStateCalls")
    if not isinstance(steps, list) or not steps:
        raise bad_params("empty input")
    if len(steps) > _MAX_BLOCKS:
        raise RpcError(-38026, "too many blocks")
    results = []
    chain, parent = view.chain.scratch(), view.block
    for step in map(params.record, steps):
        parent, calls = _run_block(chain, parent, step, params.flag(options.get("traceTransfers")))
        results.append({**geth_json.block(parent, full=False), "calls": calls})
    return results


def _run_block(
    chain: LocalChain, parent: LocalBlock, step: Mapping[str, Any], trace: bool
) -> tuple[LocalBlock, list[geth_json.Json]]:
    overrides = params.options(step.get("blockOverrides"))
    params.reject_unknown(overrides, _KNOWN_BLOCK_OVERRIDES, "block override")
    timestamp = parent.timestamp + _BLOCK_TIME if overrides.get("time") is None else params.seconds(overrides["time"])
    if timestamp <= parent.timestamp:
        raise RpcError(-38021, f"block timestamps must be in order: {timestamp} <= {parent.timestamp}")
    header = next_header(parent.header, timestamp=timestamp, base_fee=0)
    if params.optional_quantity(overrides, "number", header.block_number) != header.block_number:
        raise RpcError(-38020, f"block numbers must be consecutive: expected {header.block_number}")
    state = chain.free_state_under(header, parent.header.state_root)
    state.trace_transfers = trace
    override_state(state, params.options(step.get("stateOverrides")))
    gas_left, log_count = header.gas_limit, 0
    outcomes: list[tuple[ExecutionResult, int]] = []
    for value in params.list_or_empty(step.get("calls")):
        call = params.call(value)
        if call.gas > gas_left:
            raise RpcError(-38015, f"block gas limit reached: {call.gas} > {gas_left}")
        outcome = execute(state, replace(call, gas=call.gas or gas_left))
        outcomes.append((outcome, log_count))
        gas_left -= outcome.gas_used
        log_count += len(outcome.logs)
    state.persist()
    block = LocalBlock(header.copy(state_root=state.state_root, gas_used=header.gas_limit - gas_left), (), 0)
    return block, [_result(block, index, *entry) for index, entry in enumerate(outcomes)]


def _result(block: LocalBlock, index: int, outcome: ExecutionResult, first_log: int) -> geth_json.Json:
    # A simulated call has no signature and so no hash; this one is stable and distinct.
    tx_hash = geth_json.data(keccak(block.hash + index.to_bytes(4, "big")))
    result: geth_json.Json = {
        "status": geth_json.quantity(int(outcome.ok)),
        "returnData": geth_json.data(outcome.output),
        "gasUsed": geth_json.quantity(outcome.gas_used),
        "logs": [
            geth_json.log(block, log, tx_hash) for log in numbered_logs(outcome.logs, block.number, index, first_log)
        ],
    }
    if outcome.is_revert:
        message = revert_message(outcome.output)
        result["error"] = {"code": REVERTED, "message": message, "data": geth_json.data(outcome.output)}
    elif not outcome.ok:
        result["error"] = {"code": VM_ERROR, "message": outcome.error}
    return result
