"""Our opcodes against py-evm's own, on programs nobody would write."""

from __future__ import annotations

import random
from typing import Any

import pytest
from eth.vm.forks.prague.opcodes import PRAGUE_OPCODES

from zuno.adapters.chain.devnet.execution import Call, Computation, Outcome
from zuno.adapters.chain.devnet.opcodes import OPCODES, jump_targets

OURS = sorted(code for code in OPCODES if OPCODES[code] is not PRAGUE_OPCODES[code])
EDGES = [0, 1, 2, 31, 32, 33, 255, 256, 2**128, 2**255 - 1, 2**255, 2**256 - 1]
RETURN_TOP = bytes.fromhex("60005260206000f3")


def literal(value: int) -> bytes:
    return b"\x7f" + value.to_bytes(32, "big")


def run(chain: Any, code: bytes, gas: int = 200_000) -> Outcome:
    return chain.execute_call(Call(sender=bytes(20), to=b"", data=code, gas=gas))


def both(chain: Any, code: bytes, monkeypatch: pytest.MonkeyPatch, gas: int = 200_000) -> list[Outcome]:
    outcomes = []
    for table in (OPCODES, PRAGUE_OPCODES):
        monkeypatch.setattr(Computation, "opcodes", table)
        outcomes.append(run(chain, code, gas))
    return outcomes


def test_every_pair_of_edges_gives_the_same_result(make_chain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = make_chain()
    arithmetic = [code for code in OURS if code <= 0x1D]
    assert len(arithmetic) >= 13
    for opcode in arithmetic:
        for left in EDGES:
            program = b"".join(
                literal(right) + literal(left) + bytes([opcode]) + b"\x61" + (32 * slot).to_bytes(2, "big") + b"\x52"
                for slot, right in enumerate(EDGES)
            )
            ours, theirs = both(chain, program + bytes.fromhex("6101806000f3"), monkeypatch)
            assert ours == theirs, f"opcode {opcode:#x}, left operand {left:#x}"


def test_random_programs_end_the_same_way(make_chain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many die of an empty stack or a wild jump: dying alike is half the point."""
    rng = random.Random(2024)
    chain = make_chain()
    endings: dict[str | None, int] = {}
    # Opcodes of both tables, so that values cross between them (hashes and call data arrive as bytes).
    mixed = [*OURS, 0x0B, 0x12, 0x1A, 0x1D, 0x20, 0x30, 0x33, 0x35, 0x36, 0x38, 0x53, 0x58, 0x59, 0x5A, 0x5F]
    for _ in range(400):
        program = b"".join(literal(rng.choice(EDGES[:8])) for _ in range(rng.randrange(40)))
        for _ in range(rng.randrange(1, 25)):
            opcode = rng.choice(mixed)
            program += bytes([opcode])
            if 0x60 <= opcode <= 0x7F:
                program += rng.randbytes(opcode - 0x5F)
        program += RETURN_TOP
        intrinsic = Call(sender=bytes(20), to=b"", data=program).intrinsic_gas
        ours, theirs = both(chain, program, monkeypatch, intrinsic + rng.choice([300, 100_000, 100_000]))
        same = (ours.gas_used, ours.output, ours.ok) == (theirs.gas_used, theirs.output, theirs.ok)
        assert same, f"{program.hex()}: {ours} against {theirs}"
        endings[ours.error] = endings.get(ours.error, 0) + 1
    assert endings.get(None, 0) > 20, endings
    assert len(endings) >= 4, endings


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("600456005b00", None),
        ("600356005b00", "invalid jump destination"),
        ("6003565b5b00", None),
        ("60015660", "invalid jump destination"),
        # The only JUMPDEST byte is inside a literal.
        ("6004567f5b00", "invalid jump destination"),
        ("60016008576000fd5b00", None),
        ("60006008576000fd5b00", "stack underflow"),
        ("01", "stack underflow"),
        ("6001", None),
        ("5b600056", "out of gas"),
    ],
)
def test_jumps_land_only_where_they_may(
    make_chain: Any, monkeypatch: pytest.MonkeyPatch, program: str, error: str | None
) -> None:
    ours, theirs = both(make_chain(), bytes.fromhex(program), monkeypatch)
    assert ours.error == error
    assert (ours.gas_used, ours.ok) == (theirs.gas_used, theirs.ok)


def test_the_stack_holds_1024_items(make_chain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for count, ok in ((1024, True), (1025, False)):
        for filler in (b"\x60\x01", b"\x80"):
            program = b"\x60\x01" + filler * (count - 1) + b"\x00"
            ours, theirs = both(make_chain(), program, monkeypatch)
            assert ours.ok == theirs.ok == ok


def test_jump_targets_skip_literals() -> None:
    assert jump_targets(bytes.fromhex("5b605b5b615b5b5b62")) == {0, 3, 7}
