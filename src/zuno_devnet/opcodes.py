"""Fast versions of the opcodes that contracts use most.

py-evm spends several calls and checks on each opcode, and a swap runs twenty thousand. A fast version does what
py-evm's would where gas and stack suffice; in every other case it changes nothing and calls py-evm's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

from eth.vm import opcode_values as op


class Opcode(Protocol):
    """One of py-evm's own."""

    gas_cost: int

    def __call__(self, computation: Any) -> None: ...


Step = Callable[[Any], None]
Binary = Callable[[int, int], int]

_WORD: Final = 2**256 - 1
_STACK_ROOM: Final = 1023
"""How many values may be there for another to fit."""
_CODES_KEPT: Final = 64

_BINARY: Final[Mapping[int, Binary]] = {
    op.ADD: lambda left, right: (left + right) & _WORD,
    op.SUB: lambda left, right: (left - right) & _WORD,
    op.MUL: lambda left, right: (left * right) & _WORD,
    op.DIV: lambda left, right: left // right if right else 0,
    op.AND: lambda left, right: left & right,
    op.OR: lambda left, right: left | right,
    op.XOR: lambda left, right: left ^ right,
    op.LT: lambda left, right: 1 if left < right else 0,
    op.GT: lambda left, right: 1 if left > right else 0,
    op.EQ: lambda left, right: 1 if left == right else 0,
    op.SHL: lambda shift, value: (value << shift) & _WORD if shift < 256 else 0,
    op.SHR: lambda shift, value: value >> shift if shift < 256 else 0,
}
_UNARY: Final[Mapping[int, Callable[[int], int]]] = {
    op.ISZERO: lambda value: 0 if value else 1,
    op.NOT: lambda value: _WORD - value,
}


@lru_cache(maxsize=_CODES_KEPT)
def find_jump_targets(code: bytes) -> frozenset[int]:
    """The positions of every JUMPDEST that is no part of a pushed value."""
    targets, position, end = set(), 0, len(code)
    while position < end:
        byte = code[position]
        if byte == op.JUMPDEST:
            targets.add(position)
        position += byte - op.PUSH1 + 2 if op.PUSH1 <= byte <= op.PUSH32 else 1
    return frozenset(targets)


def replace_opcodes(opcodes: Mapping[int, Any]) -> dict[int, Any]:
    """The same opcodes, the common ones replaced by fast versions."""
    short: dict[int, Step] = {}
    for code, work in _BINARY.items():
        short[code] = _apply_to_two(opcodes[code], work)
    for code, change in _UNARY.items():
        short[code] = _apply_to_one(opcodes[code], change)
    for size in range(33):
        short[op.PUSH0 + size] = _push(opcodes[op.PUSH0 + size], size)
    for depth in range(1, 17):
        short[op.DUP1 + depth - 1] = _duplicate(opcodes[op.DUP1 + depth - 1], depth)
        short[op.SWAP1 + depth - 1] = _swap(opcodes[op.SWAP1 + depth - 1], depth)
    short[op.POP] = _pop(opcodes[op.POP])
    short[op.JUMP] = _jump(opcodes[op.JUMP])
    short[op.JUMPI] = _jump_if(opcodes[op.JUMPI])
    short[op.JUMPDEST] = _land(opcodes[op.JUMPDEST])
    short[op.MLOAD] = _load(opcodes[op.MLOAD])
    short[op.MSTORE] = _store(opcodes[op.MSTORE])
    return {**opcodes, **short}


def _apply_to_two(long: Opcode, work: Binary) -> Step:
    cost = long.gas_cost

    def step(computation: Any) -> None:
        meter, values = computation._gas_meter, computation._stack.values
        if meter.gas_remaining < cost or len(values) < 2:
            return long(computation)
        meter.gas_remaining -= cost
        left, right = values.pop(), values[-1]
        if type(left) is bytes:
            left = int.from_bytes(left, "big")
        if type(right) is bytes:
            right = int.from_bytes(right, "big")
        values[-1] = work(left, right)
        return None

    return step


def _apply_to_one(long: Opcode, work: Callable[[int], int]) -> Step:
    cost = long.gas_cost

    def step(computation: Any) -> None:
        meter, values = computation._gas_meter, computation._stack.values
        if meter.gas_remaining < cost or not values:
            return long(computation)
        meter.gas_remaining -= cost
        value = values[-1]
        values[-1] = work(int.from_bytes(value, "big") if type(value) is bytes else value)
        return None

    return step


def _push(long: Opcode, size: int) -> Step:
    cost = long.gas_cost

    def step(computation: Any) -> None:
        meter, values, code = computation._gas_meter, computation._stack.values, computation.code
        start = code.program_counter
        raw = code._raw_code_bytes[start : start + size]
        if meter.gas_remaining < cost or len(values) > _STACK_ROOM or len(raw) < size:
            return long(computation)
        meter.gas_remaining -= cost
        code.program_counter = start + size
        values.append(int.from_bytes(raw, "big"))
        return None

    return step


def _duplicate(long: Opcode, depth: int) -> Step:
    cost = long.gas_cost

    def step(computation: Any) -> None:
        meter, values = computation._gas_meter, computation._stack.values
        if meter.gas_remaining < cost or not depth <= len(values) <= _STACK_ROOM:
            return long(computation)
        meter.gas_remaining -= cost
        values.append(values[-depth])
        return None

    return step


def _swap(long: Opcode, depth: int) -> Step:
    cost, other = long.gas_cost, -depth - 1

    def step(computation: Any) -> None:
        meter, values = computation._gas_meter, computation._stack.values
        if meter.gas_remaining < cost or len(values) <= depth:
            return long(computation)
        meter.gas_remaining -= cost
        values[-1], values[other] = values[other], values[-1]
        return None

    return step


def _pop(long: Opcode) -> Step:
    cost = long.gas_cost

    def step(computation: Any) -> None:
        meter, values = computation._gas_meter, computation._stack.values
        if meter.gas_remaining < cost or not values:
            return long(computation)
        meter.gas_remaining -= cost
        values.pop()
        return None

    return step


def _jump(long: Opcode) -> Step:
    cost = long.gas_cost

    def step(computation: Any) -> None:
        meter, values = computation._gas_meter, computation._stack.values
        if meter.gas_remaining < cost or not values or _number(values[-1]) not in computation.jump_targets:
            return long(computation)
        meter.gas_remaining -= cost
        computation.code.program_counter = _number(values.pop())
        return None

    return step


def _jump_if(long: Opcode) -> Step:
    cost = long.gas_cost

    def step(computation: Any) -> None:
        meter, values = computation._gas_meter, computation._stack.values
        if meter.gas_remaining < cost or len(values) < 2:
            return long(computation)
        if _number(values[-2]):
            if _number(values[-1]) not in computation.jump_targets:
                return long(computation)
            computation.code.program_counter = _number(values[-1])
        meter.gas_remaining -= cost
        del values[-2:]
        return None

    return step


def _land(long: Opcode) -> Step:
    cost = long.gas_cost

    def step(computation: Any) -> None:
        meter = computation._gas_meter
        if meter.gas_remaining < cost:
            return long(computation)
        meter.gas_remaining -= cost
        return None

    return step


def _load(long: Opcode) -> Step:
    """From memory that is there already; py-evm's version extends it and charges for it."""
    cost = long.gas_cost

    def step(computation: Any) -> None:
        meter, values, memory = computation._gas_meter, computation._stack.values, computation._memory._bytes
        if meter.gas_remaining < cost or not values:
            return long(computation)
        start = _number(values[-1])
        if start + 32 > len(memory):
            return long(computation)
        meter.gas_remaining -= cost
        values[-1] = int.from_bytes(memory[start : start + 32], "big")
        return None

    return step


def _store(long: Opcode) -> Step:
    """Into memory that is there already."""
    cost = long.gas_cost

    def step(computation: Any) -> None:
        meter, values, memory = computation._gas_meter, computation._stack.values, computation._memory._bytes
        if meter.gas_remaining < cost or len(values) < 2:
            return long(computation)
        start = _number(values[-1])
        if start + 32 > len(memory):
            return long(computation)
        meter.gas_remaining -= cost
        memory[start : start + 32] = _number(values[-2]).to_bytes(32, "big")
        del values[-2:]
        return None

    return step


def _number(value: int | bytes) -> int:
    return int.from_bytes(value, "big") if type(value) is bytes else value  # type: ignore[return-value]
