"""What a stranger's token answers, and what is made of it."""

from __future__ import annotations

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from zuno.adapters.chain.rpc.tokens import decimals_of, symbol_of
from zuno.domain.tokens import MAX_DECIMALS, MAX_SYMBOL
from zuno.domain.units import Address

ADDRESS = Address("0x" + "ab" * 20)
NAMELESS = "0xabab…abab"


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (encode(["string"], ["USDC"]), "USDC"),
        (b"MKR".ljust(32, b"\0"), "MKR"),
        (b"", NAMELESS),
        (bytes(32), NAMELESS),
        (encode(["string"], [""]), NAMELESS),
        (encode(["string"], ["\u202e\u200b\x1b"]), NAMELESS),
        (encode(["string"], ["A\nB\x1b[31mC"]), "A B[31mC"),
        (encode(["bytes"], [b"\xff\xfeX"]), "��X"),
        (b"\xff" * 64, NAMELESS),
        (b"\xff" * 33, NAMELESS),
    ],
)
def test_symbols(answer: bytes, shown: str) -> None:
    assert symbol_of(answer, ADDRESS) == shown


@given(st.binary(max_size=300))
def test_no_answer_can_make_a_symbol_that_is_long_or_unprintable(answer: bytes) -> None:
    symbol = symbol_of(answer, ADDRESS)
    assert 0 < len(symbol) <= MAX_SYMBOL
    assert symbol.isprintable()
    assert 0 <= decimals_of(answer) <= MAX_DECIMALS


@pytest.mark.parametrize(("value", "told"), [(0, 0), (6, 6), (18, 18), (255, 255), (256, 0), (2**255, 0)])
def test_decimals(value: int, told: int) -> None:
    assert decimals_of(value.to_bytes(32, "big")) == told


def test_decimals_of_the_wrong_length_are_none() -> None:
    assert decimals_of(b"\x06") == 0
    assert decimals_of(b"") == 0
