"""One tokeniser for lines and wishes: what stands in a line, and in which form a command takes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.lp.service.phrase import Form, plain_number, split_phrase

SLOTS = {
    "1.5k USDC": ("amount", "1500 USDC"),
    "0,5 ETH": ("amount", "0.5 ETH"),
    "2 thousand usdc": ("amount", "2000 USDC"),
    "one eth": ("amount", "1 ETH"),
    ".05ETH": ("amount", ".05 ETH"),
    "1,500": ("ambiguous", ""),
    "1.2.3": ("ambiguous", ""),
    "a third": ("ambiguous", ""),
    "plan_12": ("ambiguous", ""),
    "plan_0123456789ab": ("plan", "plan_0123456789ab"),
    "run_0123456789abcdef": ("run", "run_0123456789abcdef"),
    "-20 %": ("percent", "-20"),
    "20 percent": ("percent", "20"),
    "5bps": ("fee", "5bps"),
    "500 pips": ("fee", "500pips"),
    "6 hours": ("span", "6h"),
    "two weeks": ("span", "2w"),
    "last week": ("span", "1w"),
    "monday": ("day", "monday"),
    "2026-01-25": ("day", "2026-01-25"),
    "ETH/usdc": ("pair", "ETH/USDC"),
    "eth-usdc": ("pair", "ETH/USDC"),
    "bitcoin": ("token", "BTC"),
    "BTCUSDT": ("token", "BTC"),
    "base sepolia": ("chain", "base-sepolia"),
    "low risk": ("profile", "conservative"),
    "degen": ("profile", "aggressive"),
    "the second": ("ordinal", "second"),
    "half": ("share", "50"),
    "everything": ("share", "100"),
    "#12": ("number", "12"),
    "$3500": ("money", "3500"),
    "3x": ("times", "3"),
    "it": ("pointer", "last"),
    "0x" + "aB" * 20: ("address", "0x" + "ab" * 20),
}


@pytest.mark.parametrize("text", SLOTS)
def test_a_slot_is_found_in_the_form_a_command_takes(text: str) -> None:
    term = split_phrase(text)[-1]
    assert (term.kind, term.value) == SLOTS[text]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("on 8453", "word number"),
        ("switch to eth", "word word chain"),
        ("my eth position", "word token word"),
        ("position two", "word number"),
        ("the last 5 entries", "word word number word"),
        ("2800-3400", "number number"),
        ("earning a day", "word word word"),
        ("for a day", "word span"),
    ],
)
def test_what_a_word_is_hangs_on_its_neighbours(text: str, kinds: str) -> None:
    assert " ".join(term.kind for term in split_phrase(text)) == kinds


@pytest.mark.parametrize(
    ("text", "number"), [("1,5", "1.5"), ("0,050", "0.050"), ("12,345,678", "12345678"), ("1,250.5", "1250.5")]
)
def test_a_comma_means_one_thing_or_nothing(text: str, number: str) -> None:
    assert plain_number(text) == number


@pytest.mark.slow
@given(st.text(max_size=300))
def test_any_text_is_split(text: str) -> None:
    terms = split_phrase(text)
    assert terms == split_phrase(text)
    assert all(isinstance(term.kind, Form) for term in terms)
