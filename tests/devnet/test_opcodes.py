"""The short ways end where py-evm's own opcodes end: same gas, output, error and state, whatever the program."""

from __future__ import annotations

from typing import Any

import pytest
from eth.vm import opcode_values as op
from eth.vm.forks.prague.computation import PragueComputation
from eth.vm.forks.prague.opcodes import PRAGUE_OPCODES
from hypothesis import example, given
from hypothesis import strategies as st

from zuno_devnet.chain import Genesis, LocalChain
from zuno_devnet.execution import CallMessage, Computation, EvmState, ExecutionResult, FreeState, execute
from zuno_devnet.opcodes import find_jump_targets, replace_opcodes

CONTRACT, CALLER = b"\xcc" * 20, b"\xaa" * 20
SHORT = sorted(code for code, step in replace_opcodes(PRAGUE_OPCODES).items() if step is not PRAGUE_OPCODES[code])
RETURN_MEMORY = bytes([op.MSIZE, op.PUSH0, op.RETURN])


class LongComputation(Computation):
    opcodes = PragueComputation.opcodes


class LongState(FreeState):
    computation_class = LongComputation


def run(kind: type[FreeState], code: bytes, gas: int) -> tuple[ExecutionResult, bytes]:
    chain = LocalChain.create(Genesis(balances={}, code={CONTRACT: code}, timestamp=1))
    state: Any = chain._open(kind, chain.head.header, root=chain.head.header.state_root, base_fee=0)
    assert isinstance(state, EvmState)
    result = execute(state, CallMessage(sender=CALLER, to=CONTRACT, data=b"\x07" * 40, gas=gas))
    state.persist()
    return result, state.state_root


def check_both(code: bytes, gas: int) -> ExecutionResult:
    short, long = run(FreeState, code, gas), run(LongState, code, gas)
    assert short == long
    return short[0]


def push(value: int) -> bytes:
    raw = value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
    return bytes([op.PUSH1 + len(raw) - 1]) + raw


numbers = st.one_of(st.integers(0, 300), st.sampled_from([2**255, 2**256 - 1, 2**128]), st.integers(0, 2**256 - 1))
opcodes = st.sampled_from([*SHORT, op.CALLDATALOAD, op.SHA3, op.SSTORE, op.PC, op.GAS])
words = st.one_of(numbers.map(push), opcodes.map(lambda code: bytes([code])))


@pytest.mark.soak(every=6)
@pytest.mark.parametrize("code", [code for code in SHORT if not op.PUSH0 <= code <= op.PUSH32])
def test_every_short_way_ends_where_the_long_one_does(code: int) -> None:
    values = b"".join(push(value) for value in (3, 2**256 - 1, 77, 2**200 + 5, 0, 1, 2, 9, 11, 13, 17, 19, 23, 29, 31))
    for last in ((4, 2), (255, 2**255 + 1), (256, 2**255), (0, 0), (1, 2**256 - 1)):
        keep = bytes([op.PUSH1, 64, op.MSTORE]) + RETURN_MEMORY
        check_both(values + push(last[1]) + push(last[0]) + bytes([code]) + keep, 100_000)


@pytest.mark.slow
@given(st.lists(words, max_size=40), st.integers(21_640, 24_000))
@example([bytes([op.DUP1])], 30_000)
@example([push(1)] * 1025, 30_000)
@example([push(1), *[bytes([op.DUP1])] * 1024], 30_000)
def test_any_program_ends_where_the_long_way_ends(program: list[bytes], gas: int) -> None:
    check_both(b"".join(program) + RETURN_MEMORY, gas + 3 * len(program))


@pytest.mark.slow
def test_a_loop_runs_out_of_gas_at_the_same_step() -> None:
    loop = bytes([op.JUMPDEST, op.PUSH0, op.POP, op.PUSH0, op.JUMP])
    for gas in range(21_640, 21_660):
        assert check_both(loop, gas).error == "out of gas"


def test_a_jump_goes_to_no_pushed_byte() -> None:
    code = bytes([op.PUSH1, 3, op.JUMP, op.JUMPDEST, op.PUSH1, op.JUMPDEST, op.PUSH1, 5, op.JUMP])
    assert find_jump_targets(code) == {3}
    assert check_both(code, 50_000).error is not None
    assert check_both(code[:4], 50_000).ok
    assert find_jump_targets(bytes([op.PUSH32, op.JUMPDEST])) == frozenset()
