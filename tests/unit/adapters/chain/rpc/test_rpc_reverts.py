"""Why a call reverted: by the contract's own word, however deep it is wrapped and whoever passes it on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st

from zuno.adapters.chain.rpc import reverts
from zuno.adapters.chain.rpc.errors import CallReverted, InsufficientFunds, parse_error
from zuno.adapters.chain.rpc.reverts import decode_reason, revert_reason


def error(signature: str, *values: object) -> bytes:
    inside = signature[signature.index("(") + 1 : -1]
    return keccak(signature.encode())[:4] + encode(inside.split(",") if inside else [], values)


TOO_MUCH = error("MaximumAmountExceeded(uint128,uint128)", 10, 12)

GOLDEN = [
    # 4 bytes written out where a reference book has them
    (bytes.fromhex("08c379a0") + encode(["string"], ["NOT_MINTED"]), "NOT_MINTED"),
    (bytes.fromhex("4e487b71") + encode(["uint256"], [0x11]), "panic 0x11 (arithmetic overflow)"),
    (bytes.fromhex("4e487b71") + encode(["uint256"], [0x77]), "panic 0x77 (the contract failed)"),
    (error("CurrencyNotSettled()"), "CurrencyNotSettled"),
    (TOO_MUCH, "MaximumAmountExceeded(10, 12)"),
    (error("AllowanceExpired(uint256)", 0), "AllowanceExpired(0)"),
    (error("NotApproved(address)", "0x" + "ab" * 20), f"NotApproved(0x{'ab' * 20})"),
    (error("ExecutionFailed(uint256,bytes)", 0, TOO_MUCH), "MaximumAmountExceeded(10, 12)"),
    (error("ExecutionFailed(uint256,bytes)", 3, b""), "ExecutionFailed(3, 0x)"),
    (
        error("WrappedError(address,bytes4,bytes,bytes)", "0x" + "cd" * 20, b"\1\2\3\4", TOO_MUCH, b""),
        "MaximumAmountExceeded(10, 12)",
    ),
    (bytes.fromhex("deadbeef") + b"\0" * 64, "0xdeadbeef"),
    (b"", "reverted without a reason"),
    (b"\1\2\3", "reverted without a reason"),
    (TOO_MUCH[:-1], "MaximumAmountExceeded"),  # its name at least
    (bytes.fromhex("08c379a0") + b"\xff" * 64, "0x08c379a0"),
]


@pytest.mark.parametrize(("output", "expected"), GOLDEN, ids=[expected[:40] for _, expected in GOLDEN])
def test_the_reason_is_the_contract_s(output: bytes, expected: str) -> None:
    assert decode_reason(output) == expected


def test_a_matryoshka_comes_to_an_end() -> None:
    output = TOO_MUCH
    for _ in range(30):
        output = error("ExecutionFailed(uint256,bytes)", 0, output)
    assert decode_reason(output).startswith("ExecutionFailed(0, 0x")
    assert len(decode_reason(output)) <= 200


def test_a_stranger_s_words_are_made_harmless() -> None:
    said = decode_reason(error("Error(string)", "\x1b[2Jpay\u202e 0xdead\n" + "x" * 10_000))
    assert said.isprintable()
    assert len(said) <= 200


@pytest.mark.slow
@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(output: bytes) -> None:
    assert decode_reason(output).isprintable()
    for selector in reverts._BY_SELECTOR:
        assert decode_reason(selector + output)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"code": 3, "message": "execution reverted", "data": "0x" + TOO_MUCH.hex()}, "MaximumAmountExceeded(10, 12)"),
        ({"code": -32015, "message": "VM execution error.", "data": "Reverted 0x" + TOO_MUCH.hex()}, None),
        ({"code": -32000, "message": "execution reverted", "data": {"data": "0x" + TOO_MUCH.hex()}}, None),
        ({"code": -32000, "message": "execution reverted: NOT_MINTED"}, "NOT_MINTED"),
        ({"code": 3, "message": "execution reverted"}, "reverted without a reason"),
        ({"code": 3, "message": "execution reverted", "data": "0x"}, "reverted without a reason"),
        ({"code": -32000, "message": "gas required exceeds allowance (60000000)"}, None),
    ],
)
@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas", "eth_simulateV1"])
def test_every_way_a_node_passes_it_on(answer: dict[str, Any], expected: str | None, method: str) -> None:
    fault = parse_error(method, answer)
    assert isinstance(fault, CallReverted)
    assert not isinstance(fault, InsufficientFunds)
    if "gas required" in answer["message"]:
        expected = answer["message"]
    assert revert_reason(fault) == (expected or "MaximumAmountExceeded(10, 12)")


@pytest.mark.parametrize(
    "answer",
    [
        {"code": -32000, "message": "insufficient funds for transfer"},
        {"code": -32000, "message": "err: insufficient funds for gas * price + value: address 0xAb have 1 want 2"},
        {"code": -38014, "message": "too poor"},
    ],
)
def test_a_caller_without_the_coin_is_told_from_a_revert(answer: dict[str, Any]) -> None:
    assert isinstance(parse_error("eth_simulateV1", answer), InsufficientFunds)
    assert not isinstance(parse_error("eth_getLogs", answer), CallReverted)


@pytest.mark.slow
def test_every_error_we_name_is_one_of_the_contracts(node_modules: Path) -> None:
    declared = set[str]()
    for path in node_modules.rglob("*.json"):
        if "@uniswap" not in str(path) or path.stat().st_size > 5_000_000:
            continue
        document = json.loads(path.read_text())
        for entry in (document.get("abi") or []) if isinstance(document, dict) else []:
            if entry.get("type") == "error":
                declared.add(f"{entry['name']}({','.join(one['type'] for one in entry['inputs'])})")
    assert len(declared) > 100
    assert set(reverts._BY_SELECTOR.values()) <= declared
