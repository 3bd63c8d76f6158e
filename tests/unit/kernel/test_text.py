"""Text from strangers is made harmless, and amounts survive the way to a human and back."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.amm.model import PoolKey
from zuno.kernel.numbers_text import price_text
from zuno.kernel.text import MAX_SYMBOL, Token, base_and_quote, format_units, parse_units, plain_text
from zuno.kernel.units import Address, Pips
from zuno.lp.model.chains import CHAINS, chain_named


@pytest.mark.slow
@given(st.text(max_size=3_000))
def test_plain_text_is_one_short_printable_line(raw: str) -> None:
    text = plain_text(raw, MAX_SYMBOL)
    assert 1 <= len(text) <= MAX_SYMBOL
    assert not any(unicodedata.category(char)[0] == "C" for char in text)
    assert text == " ".join(text.split())


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("WETH", "WETH"),
        ("\x1b[31mUSDC\x00\x07", "[31mUSDC"),
        ("\x00" * 10_000, "?"),
        ("", "?"),
        ("US\u202eCD\u200b", "USCD"),
        ("two\nlines\tof text", "two lines of te…"),
    ],
)
def test_plain_text_examples(raw: str, shown: str) -> None:
    assert plain_text(raw, MAX_SYMBOL) == shown


@given(st.integers(-(2**255), 2**256), st.integers(0, 40))
def test_amounts_survive_the_way_to_a_human_and_back(amount: int, decimals: int) -> None:
    assert parse_units(format_units(amount, decimals), decimals) == amount


@pytest.mark.parametrize(
    ("amount", "decimals", "text"),
    [
        (1_500_000, 6, "1.5"),
        (0, 18, "0"),
        (1, 18, "0.000000000000000001"),
        (-25, 1, "-2.5"),
        (7, 0, "7"),
        (100, 0, "100"),
    ],
)
def test_human_examples(amount: int, decimals: int, text: str) -> None:
    assert format_units(amount, decimals) == text


@pytest.mark.parametrize("text", ["0.1234567", "1e-9", "abc", "", "NaN", "Infinity"])
def test_what_is_no_exact_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"amount|decimals"):
        parse_units(text, 6)


def test_only_tokens_we_named_count_as_stable() -> None:
    ours = Token(Address("0x" + "01" * 20), "USDC", 6, verified=True)
    fake = Token(Address("0x" + "02" * 20), "USDC", 6)
    other = Token(Address("0x" + "03" * 20), "WETH", 18, verified=True)
    assert base_and_quote(ours, other) == (other, ours)
    assert base_and_quote(other, ours) == (other, ours)
    assert base_and_quote(fake, other) == (fake, other)


def test_chains_are_found_by_name_alias_and_id() -> None:
    for chain in CHAINS:
        assert chain_named(chain.name) is chain
        assert chain_named(str(chain.id)) is chain
    assert chain_named("Ethereum") is chain_named("1")
    assert chain_named("mars") is None


def test_the_native_side_of_a_pool() -> None:
    arbitrum = chain_named("arbitrum")
    assert arbitrum is not None
    weth = next(token.address for token in arbitrum.tokens if token.symbol == "WETH")
    usdc = next(token.address for token in arbitrum.tokens if token.symbol == "USDC")
    dai = next(token.address for token in arbitrum.tokens if token.symbol == "DAI")
    assert arbitrum.native_side(PoolKey(weth, usdc, Pips(500), 10)) == 0
    assert arbitrum.native_side(PoolKey(usdc, weth, Pips(500), 10)) == 1
    assert arbitrum.native_side(PoolKey(usdc, dai, Pips(500), 10)) is None
    assert arbitrum.native_side(PoolKey(Address("0x" + "00" * 20), usdc, Pips(500), 10)) == 0


def test_levels_of_a_cheap_coin_can_be_told_apart() -> None:
    prices = (60_000.5, 10.0, 9.87654, 1.5, 0.16509, 0.0000123456, 0.0)
    assert [price_text(price) for price in prices] == [
        *("60,000.50", "10.00", "9.8765", "1.50", "0.16509", "0.000012346", "0.00")
    ]
