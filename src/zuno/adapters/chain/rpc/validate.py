"""Check every answer before it is used, while another node can still be asked, and cut it down to the fields we use."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from eth_hash.auto import keccak

from zuno.adapters.chain.rpc.errors import NoSuchState
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Address, HexId

_QUANTITY: Final = re.compile(r"0x[0-9a-fA-F]{1,64}")
_DATA: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*")
_WORD: Final = re.compile(r"0x[0-9a-fA-F]{64}")
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_UINT256: Final = 1 << 256
_LATEST_TIME: Final = 1 << 40
_MOST_BLOCKS: Final = 1 << 53
_MOST_IN_BLOCK: Final = 1 << 32
_MOST_GAS: Final = 1 << 64
_MOST_TOPICS: Final = 4
_ROLLUP_FEES: Final = ("l1Fee", "operatorFeeScalar", "operatorFeeConstant", "daFootprintGasScalar")


@dataclass(frozen=True, slots=True)
class EventShape:
    """How many topics an event of a known contract has, and how many bytes of data."""

    topics: int
    data: int


Events = Mapping[Address, Mapping[HexId, EventShape]]
"""Per contract, by the event's first topic. Other contracts may emit what they like."""


class ResultValidator:
    """Validated results, or `Malformed`; `NoSuchState` where the node says that it has nothing."""

    def __init__(self, events: Events | None = None) -> None:
        self._events = events or {}
        self._readers: dict[str, Callable[[Sequence[Any], Any], Any]] = {
            "eth_chainId": _number_below(_UINT256),
            "eth_blockNumber": _number_below(_MOST_BLOCKS),
            "eth_gasPrice": _number_below(_UINT256),
            "eth_maxPriorityFeePerGas": _number_below(_UINT256),
            "eth_getBalance": _number_below(_UINT256),
            "eth_getTransactionCount": _number_below(_MOST_BLOCKS),
            "eth_estimateGas": _number_below(_MOST_GAS),
            "eth_sendRawTransaction": _transaction_hash,
            "eth_call": _data_alone,
            "eth_getCode": _data_alone,
            "eth_getBlockByNumber": _block,
            "eth_feeHistory": _fee_history,
            "eth_getLogs": self._logs,
            "eth_getTransactionReceipt": self._receipt,
            "eth_getTransactionByHash": _transaction,
            "eth_simulateV1": self._simulation,
        }

    def validate(self, method: str, params: Sequence[Any], result: Any) -> Any:
        reader = self._readers[method]  # one that is not there is ours to write before the method is asked
        try:
            return reader(params, result)
        except Malformed as fault:
            raise Malformed(f"{method}: {fault}") from fault
        except NoSuchState as fault:
            raise NoSuchState(f"{method}: {fault}") from fault

    def _logs(self, params: Sequence[Any], result: Any) -> list[dict[str, Any]]:
        asked = _LogFilter.validate(params[0])
        logs = [self._log(log) for log in _require_list(result) if not _is_removed(_require_object(log))]
        if not all(map(asked.covers, logs)):
            raise Malformed("an event that was not asked for")
        _check_one_chain(logs)
        return logs

    def _receipt(self, params: Sequence[Any], result: Any) -> dict[str, Any]:
        if result is None:
            raise NoSuchState("the node does not have the transaction")
        fields = _require_object(result)
        logs = [self._log(log) for log in _require_list(fields.get("logs"))]
        receipt: dict[str, Any] = {
            "transactionHash": _require_match(_WORD, fields, "transactionHash"),
            "from": _require_match(_ADDRESS, fields, "from"),
            "blockNumber": _quantity(fields, "blockNumber", _MOST_BLOCKS),
            "transactionIndex": _quantity(fields, "transactionIndex", _MOST_IN_BLOCK),
            "gasUsed": _quantity(fields, "gasUsed", _MOST_GAS),
            "effectiveGasPrice": _quantity(fields, "effectiveGasPrice"),
            "logs": logs,
        }
        receipt |= {name: _quantity(fields, name) for name in _ROLLUP_FEES if fields.get(name) is not None}
        if fields.get("status") is not None:
            receipt["status"] = _quantity(fields, "status", 2)
        if fields.get("blockHash") is not None:
            receipt["blockHash"] = _require_match(_WORD, fields, "blockHash")
        if not _equal_hex(receipt["transactionHash"], params[0]):
            raise Malformed("the receipt of another transaction")
        for log in logs:
            if not all(_equal_hex(log[name], receipt[name]) for name in ("transactionHash", "blockNumber")):
                raise Malformed("a receipt with an event of another transaction")
        _check_one_chain(logs)
        return receipt

    def _simulation(self, params: Sequence[Any], result: Any) -> list[dict[str, Any]]:
        return [
            {
                "calls": [
                    self._simulated_call(_require_object(call))
                    for call in _require_list(_require_object(block).get("calls"))
                ]
            }
            for block in _require_list(result)
        ]

    def _simulated_call(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        call: dict[str, Any] = {
            "status": _quantity(fields, "status"),
            "logs": [self._log(log) for log in _require_list(fields.get("logs") or [])],
        }
        if fields.get("gasUsed") is not None:
            call["gasUsed"] = _quantity(fields, "gasUsed", _MOST_GAS)
        if fields.get("returnData") is not None:
            call["returnData"] = _require_match(_DATA, fields, "returnData")
        if fields.get("error") is not None:
            call["error"] = dict(_require_object(fields["error"]))
        return call

    def _log(self, given: Any) -> dict[str, Any]:
        fields = _require_object(given)
        topics = _require_list(fields.get("topics"))
        if len(topics) > _MOST_TOPICS or not all(isinstance(topic, str) and _WORD.fullmatch(topic) for topic in topics):
            raise Malformed("the topics of an event cannot be read")
        log = {
            "address": _require_match(_ADDRESS, fields, "address"),
            "topics": topics,
            "data": _require_match(_DATA, fields, "data"),
            "blockNumber": _quantity(fields, "blockNumber", _MOST_BLOCKS),
            "blockHash": _require_match(_WORD, fields, "blockHash"),
            "transactionHash": _require_match(_WORD, fields, "transactionHash"),
            "transactionIndex": _quantity(fields, "transactionIndex", _MOST_IN_BLOCK),
            "logIndex": _quantity(fields, "logIndex", _MOST_IN_BLOCK),
        }
        if fields.get("blockTimestamp") is not None:
            log["blockTimestamp"] = _quantity(fields, "blockTimestamp", _LATEST_TIME)
        self._check_shape(log)
        return log

    def _check_shape(self, log: Mapping[str, Any]) -> None:
        """A known contract's events have the topics and the data that its source declares."""
        known = self._events.get(Address(log["address"].lower()))
        if known is None:
            return
        shape = known.get(HexId(log["topics"][0].lower())) if log["topics"] else EventShape(1, 0)
        if shape is not None and (len(log["topics"]) < shape.topics or len(log["data"]) // 2 - 1 < shape.data):
            raise Malformed("an event with too few topics or too little data")


def parse_quantity(value: Any, limit: int = _UINT256) -> int:
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value) or (number := int(value, 16)) >= limit:
        raise Malformed("a number cannot be read or is beyond all bounds")
    return number


def _quantity(fields: Mapping[str, Any], name: str, limit: int = _UINT256) -> str:
    """A field's number, always written the same way."""
    return hex(parse_quantity(fields.get(name), limit))


def _require_match(shape: re.Pattern[str], fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not shape.fullmatch(value):
        raise Malformed(f"{name} is missing or cannot be read")
    return value


def _require_object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Malformed("not an object")
    return value


def _require_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Malformed("not a list")
    return value


def _is_removed(log: Mapping[str, Any]) -> bool:
    """Whether a reorganisation removed the event."""
    removed = log.get("removed") or False
    if type(removed) is not bool:
        raise Malformed("an event that is neither removed nor not")
    return removed


def _number_below(limit: int) -> Callable[[Sequence[Any], Any], str]:
    return lambda params, result: hex(parse_quantity(result, limit))


def _transaction_hash(params: Sequence[Any], result: Any) -> str:
    """The hash must be that of the bytes that were sent."""
    hash_ = _require_match(_WORD, {"the hash": result}, "the hash")
    if not _equal_hex(hash_, "0x" + keccak(bytes.fromhex(params[0][2:])).hex()):
        raise Malformed("the hash of another transaction")
    return hash_


def _data_alone(params: Sequence[Any], result: Any) -> str:
    return _require_match(_DATA, {"the returned data": result}, "the returned data")


def _block(params: Sequence[Any], result: Any) -> dict[str, Any]:
    if result is None:
        raise NoSuchState(f"the node does not have block {params[0]}")
    fields = _require_object(result)
    block: dict[str, Any] = {
        "number": _quantity(fields, "number", _MOST_BLOCKS),
        "hash": _require_match(_WORD, fields, "hash"),
        "timestamp": _quantity(fields, "timestamp", _LATEST_TIME),
    }
    if str(params[0]).startswith("0x") and int(block["number"], 16) != int(params[0], 16):
        raise Malformed("another block than the one asked for")
    if len(params) > 1 and params[1]:
        block["transactions"] = [_parties(_require_object(tx)) for tx in _require_list(fields.get("transactions"))]
    return block


def _transaction(params: Sequence[Any], result: Any) -> dict[str, Any]:
    if result is None:
        raise NoSuchState("the node does not have the transaction")
    fields = _require_object(result)
    transaction = {
        **_parties(fields),
        "value": _quantity(fields, "value"),
        "input": _require_match(_DATA, fields, "input"),
    }
    transaction["blockHash"] = None if fields.get("blockHash") is None else _require_match(_WORD, fields, "blockHash")
    if not _equal_hex(transaction["hash"], params[0]):
        raise Malformed("another transaction than the one asked for")
    return transaction


def _parties(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A transaction's hash, sender and receiver; a contract's creation has no receiver."""
    return {
        "hash": _require_match(_WORD, fields, "hash"),
        "from": _require_match(_ADDRESS, fields, "from"),
        "to": None if fields.get("to") is None else _require_match(_ADDRESS, fields, "to"),
    }


def _fee_history(params: Sequence[Any], result: Any) -> dict[str, Any]:
    fields = _require_object(result)
    base_fees = [hex(parse_quantity(fee)) for fee in _require_list(fields.get("baseFeePerGas"))]
    if not base_fees:
        raise Malformed("no base fee")
    used = _require_list(fields.get("gasUsedRatio") or [])
    if not all(isinstance(ratio, int | float) for ratio in used):
        raise Malformed("a share of gas is not a number")
    rewards = [
        [hex(parse_quantity(tip)) for tip in _require_list(tips)] for tips in _require_list(fields.get("reward") or [])
    ]
    return {"baseFeePerGas": base_fees, "gasUsedRatio": used, "reward": rewards}


@dataclass(frozen=True, slots=True)
class _LogFilter:
    first: int
    last: int
    addresses: frozenset[str]
    topics: tuple[frozenset[str] | None, ...]

    @classmethod
    def validate(cls, given: Mapping[str, Any]) -> _LogFilter:
        return cls(
            int(given["fromBlock"], 16),
            int(given["toBlock"], 16),
            _choices(given["address"]),
            tuple(None if topic is None else _choices(topic) for topic in given["topics"]),
        )

    def covers(self, log: Mapping[str, Any]) -> bool:
        return (
            self.first <= int(log["blockNumber"], 16) <= self.last
            and log["address"].lower() in self.addresses
            and len(log["topics"]) >= len(self.topics)
            and all(
                wanted is None or topic.lower() in wanted
                for topic, wanted in zip(log["topics"], self.topics, strict=False)
            )
        )


def _choices(given: str | Sequence[str]) -> frozenset[str]:
    return frozenset(each.lower() for each in ([given] if isinstance(given, str) else given))


def _equal_hex(left: str, right: str) -> bool:
    return left.lower() == right.lower()


def _check_one_chain(logs: Sequence[Mapping[str, Any]]) -> None:
    """No event twice, and no block with two hashes: either would be counted as something that never happened."""
    hashes: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    for log in logs:
        number, place = log["blockNumber"], (log["blockNumber"], log["logIndex"])
        if place in seen:
            raise Malformed("one event twice")
        seen.add(place)
        if hashes.setdefault(number, log["blockHash"].lower()) != log["blockHash"].lower():
            raise NoSuchState(f"block {int(number, 16)} is of two chains")
