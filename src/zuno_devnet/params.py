"""Reads the parameters of JSON-RPC requests; raises error -32602 for what cannot be read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from .execution import CallMessage
from .history import LocalBlock, LogFilter
from .node import BlockView, DevnetNode
from .rpc_errors import bad_params, server_error

_HEX: Final = re.compile(r"0x[0-9a-fA-F]*")
_SAFE_DEPTH: Final = 32
_FINALIZED_DEPTH: Final = 64
_MAX_TOPICS: Final = 4
_GREATEST: Final = (1 << 256) - 1
_LAST_MOMENT: Final = (1 << 63) - 1
"""The latest timestamp: half of what a header holds, so that later blocks are still possible."""


class Params:
    """The positional parameters of one request."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def require(self, position: int) -> Any:
        if position >= len(self._values) or self._values[position] is None:
            raise bad_params(f"missing value for required argument {position}")
        return self._values[position]

    def get(self, position: int, default: Any = None) -> Any:
        value = self._values[position] if position < len(self._values) else None
        return default if value is None else value

    def record(self, position: int) -> Mapping[str, Any]:
        return record(self.require(position))

    def flag(self, position: int) -> bool:
        return flag(self.get(position))

    def view(self, position: int, node: DevnetNode) -> BlockView:
        """The block that is named, `latest` if none is; it must exist."""
        reference = self.get(position, "latest")
        if reference == "pending":
            return node.pending()
        block = find_block(node, reference)
        if block is None:
            raise server_error("header not found")
        return BlockView(node.chain, block)


def record(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise bad_params(f"invalid argument: expected an object, got {_show(value)}")
    return value


def options(value: Any) -> Mapping[str, Any]:
    """An object that may be left out."""
    return {} if value is None else record(value)


def reject_unknown(given: Mapping[str, Any], known: frozenset[str], kind: str) -> None:
    """Raise for a field that is not known: ignoring it would answer another request."""
    unknown = sorted(set(given) - known)
    if unknown:
        raise bad_params(f"unsupported {kind}: {unknown[0]}")


def list_or_empty(value: Any) -> list[Any]:
    """A list; an empty one for null."""
    if value is not None and not isinstance(value, list):
        raise bad_params(f"invalid argument: expected a list, got {_show(value)}")
    return value or []


def flag(value: Any, default: bool = False) -> bool:
    if value is not None and not isinstance(value, bool):
        raise bad_params(f"invalid argument: expected true or false, got {_show(value)}")
    return default if value is None else value


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise bad_params(f"invalid argument: expected text, got {_show(value)}")
    return value


def seconds(value: Any) -> int:
    """A time or a span of time, in seconds."""
    return up_to(_LAST_MOMENT, quantity(value))


def up_to(most: int, number: int) -> int:
    if number > most:
        raise bad_params(f"invalid argument: {number} is more than {most}")
    return number


def quantity(value: Any) -> int:
    """A number: hex as the protocol wants it, or a plain JSON integer as several tools send it."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _GREATEST:
        return value
    if isinstance(value, str) and _HEX.fullmatch(value) and 2 < len(value) <= 66:
        return int(value, 16)
    raise bad_params(f"invalid argument: expected a hex quantity, got {_show(value)}")


def data(value: Any, size: int | None = None) -> bytes:
    if not isinstance(value, str) or not _HEX.fullmatch(value) or len(value) % 2:
        raise bad_params(f"invalid argument: expected hex data, got {_show(value)}")
    content = bytes.fromhex(value[2:])
    if size is not None and len(content) != size:
        raise bad_params(f"invalid argument: expected {size} bytes, got {len(content)}")
    return content


def address(value: Any) -> bytes:
    return data(value, 20)


def find_block(node: DevnetNode, reference: Any) -> LocalBlock | None:
    """A tag, a number, or EIP-1898's object; None if there is no such block."""
    chain = node.chain
    if isinstance(reference, dict):
        if "blockHash" in reference:
            return chain.history.by_hash(data(reference["blockHash"], 32))
        return find_block(node, reference.get("blockNumber", "latest"))
    head = chain.head.number
    match reference:
        case "latest":
            return chain.head
        case "earliest":
            return chain.history.at(0)
        case "pending":
            return node.pending().block
        case "safe":
            return chain.history.at(max(0, head - _SAFE_DEPTH))
        case "finalized":
            return chain.history.at(max(0, head - _FINALIZED_DEPTH))
    return chain.history.at(quantity(reference))


def call(value: Any) -> CallMessage:
    """A call object; `data` and `input` are the old and the new name of the same field."""
    fields = record(value)
    if fields.get("gasPrice") is not None and fields.get("maxFeePerGas") is not None:
        raise bad_params("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
    price = optional_quantity(fields, "gasPrice", optional_quantity(fields, "maxFeePerGas", 0))
    return CallMessage(
        sender=bytes(20) if fields.get("from") is None else address(fields["from"]),
        to=b"" if fields.get("to") is None else address(fields["to"]),
        data=input_data(fields),
        value=optional_quantity(fields, "value", 0),
        gas=optional_quantity(fields, "gas", 0),
        max_fee_per_gas=price,
        max_priority_fee_per_gas=min(price, optional_quantity(fields, "maxPriorityFeePerGas", price)),
        access_list=tuple(map(_access, list_or_empty(fields.get("accessList")))),
    )


def _access(value: Any) -> tuple[bytes, tuple[int, ...]]:
    entry = record(value)
    slots = list_or_empty(entry.get("storageKeys"))
    return address(entry.get("address")), tuple(int.from_bytes(data(slot, 32), "big") for slot in slots)


def input_data(fields: Mapping[str, Any]) -> bytes:
    old, new = fields.get("data"), fields.get("input")
    if old is not None and new is not None and old != new:
        raise bad_params('both "data" and "input" are set and not equal; use "input"')
    content = new if new is not None else old
    return b"" if content is None else data(content)


def optional_quantity(fields: Mapping[str, Any], name: str, default: int) -> int:
    value = fields.get(name)
    return default if value is None else quantity(value)


def log_filter(value: Any, node: DevnetNode) -> LogFilter:
    fields = record(value)
    first, last = _log_range(fields, node)
    named = fields.get("address")
    addresses = named if isinstance(named, list) else [] if named is None else [named]
    topics = list_or_empty(fields.get("topics"))
    if len(topics) > _MAX_TOPICS:
        raise bad_params("exceed max topics")
    return LogFilter(first, last, frozenset(map(address, addresses)), tuple(map(_topic, topics)))


def _log_range(fields: Mapping[str, Any], node: DevnetNode) -> tuple[int, int]:
    named = [fields.get("fromBlock"), fields.get("toBlock")]
    if fields.get("blockHash") is not None:
        if any(name is not None for name in named):
            raise bad_params("cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other")
        block = find_block(node, {"blockHash": fields["blockHash"]})
        if block is None:
            raise server_error("unknown block")
        return block.number, block.number
    first, last = (_height(node, "latest" if name is None else name) for name in named)
    if first > last:
        raise bad_params("invalid block range params")
    return first, last


def _height(node: DevnetNode, reference: Any) -> int:
    """The height that is named, which may be beyond the head."""
    if isinstance(reference, str) and not reference.startswith("0x"):
        block = find_block(node, "latest" if reference == "pending" else reference)
        return block.number if block else 0
    return quantity(reference)


def _topic(value: Any) -> frozenset[bytes] | None:
    """None and an empty list match anything; a list matches any of its members."""
    if value is None or value == []:
        return None
    options = value if isinstance(value, list) else [value]
    if None in options:
        return None
    return frozenset(data(option, 32) for option in options)


def _show(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
