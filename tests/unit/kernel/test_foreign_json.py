"""JSON from strangers: exact numbers, and a depth that ends before the interpreter does."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.kernel.foreign_json import DEEPEST, parse


@pytest.fixture
def careless_recursion_limit() -> Iterator[None]:
    """What importing an EVM does to the whole process."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.soak(every=2)
@pytest.mark.usefixtures("careless_recursion_limit")
@pytest.mark.parametrize(
    "body",
    [b"[" * 10**6, b'{"a":' * 10**6, b'["]",' * 10**5, b'["\\"]",' * 10**5, b"[1,{}," * 10**5, b"[" * 10**5 + b'"'],
    ids=["lists", "objects", "brackets in text", "escaped quotes", "mixed", "open text"],
)
def test_nesting_ends_the_parse_not_the_process(body: bytes) -> None:
    with pytest.raises(ValueError, match=rf"\b{DEEPEST}\b"):
        parse(body)


def test_the_deepest_allowed_nesting_is_allowed() -> None:
    assert parse(b"[" * DEEPEST + b"]" * DEEPEST) is not None
    with pytest.raises(ValueError, match=rf"\b{DEEPEST}\b"):
        parse(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1))


def test_brackets_in_text_are_text() -> None:
    assert parse(json.dumps(["[" * 100, "\\", '"' + "[" * 100]).encode()) == ["[" * 100, "\\", '"' + "[" * 100]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(values)
def test_reads_what_was_written(value: object) -> None:
    assert parse(json.dumps(value).encode()) == value


def test_numbers_keep_their_digits() -> None:
    assert parse(b"[0.1, 2976.4413869871934000, 1e-7]") == [
        Decimal("0.1"),
        Decimal("2976.4413869871934000"),
        Decimal("1E-7"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"NaN",
        b"-Infinity",
        b"1e99999999999999999999",
        b"9" * 5000,
        b"\xff",
        "[1]".encode("utf-16"),
        b"[1",
        b"[1]]",
    ],
)
def test_whatever_is_not_json_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(body)
