"""What a stranger's token answers, and what is made of it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from zuno.adapters.chain.rpc.tokens import parse_decimals, parse_symbol
from zuno.kernel.errors import Malformed
from zuno.kernel.text import MAX_SYMBOL
from zuno.kernel.units import Address

ADDRESS = Address("0x" + "ab" * 20)
NAMELESS = "0xabab…abab"


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (encode(["string"], ["USDC"]), "USDC"),
        (b"MKR".ljust(32, b"\0"), "MKR"),
        (bytes(32), NAMELESS),
        (encode(["string"], [""]), NAMELESS),
        (encode(["string"], ["\u202e\u200b\x1b"]), NAMELESS),
        (encode(["string"], ["A\nB\x1b[31mC"]), "A B[31mC"),
        (encode(["bytes"], [b"\xff\xfeX"]), "��X"),
    ],
)
def test_symbols(answer: bytes, shown: str) -> None:
    assert parse_symbol(answer, ADDRESS) == shown


@pytest.mark.parametrize("answer", [b"", b"\xff" * 64, b"\xff" * 33, b"\xff" * 32])
def test_what_is_no_text_is_no_symbol(answer: bytes) -> None:
    with pytest.raises(Malformed):
        parse_symbol(answer, ADDRESS)


@given(st.binary(max_size=300))
def test_no_answer_can_make_a_symbol_that_is_long_or_unprintable(answer: bytes) -> None:
    with suppress(Malformed):
        symbol = parse_symbol(answer, ADDRESS)
        assert 0 < len(symbol) <= MAX_SYMBOL
        assert symbol.isprintable()


@pytest.mark.parametrize("value", [0, 6, 18, 255])
def test_decimals(value: int) -> None:
    assert parse_decimals(value.to_bytes(32, "big")) == value


@pytest.mark.parametrize("answer", [b"\x06", b"", bytes(64), (256).to_bytes(32, "big"), (2**255).to_bytes(32, "big")])
def test_what_no_token_has_are_no_decimals(answer: bytes) -> None:
    with pytest.raises(Malformed):
        parse_decimals(answer)
