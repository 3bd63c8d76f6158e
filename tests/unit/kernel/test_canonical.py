"""Canonical bytes: one value, one spelling."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, SecretStr
from pydantic.alias_generators import to_camel

from tests.examples import examples
from zuno.kernel.canonical import (
    MAX_DEPTH,
    canonical,
    decode_canonical,
    digest,
    encode_json,
    encode_rows,
    to_json,
)
from zuno.kernel.errors import Malformed

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**256) + 1, 2**256 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)


def typed(value: Any) -> Any:
    """The value with its types written down, so that 1, 1.0 and True are three."""
    if isinstance(value, dict):
        return {key: typed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [typed(one) for one in value]
    return type(value).__name__, value


def shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        pairs = [(key, shuffled(one, chance)) for key, one in value.items()]
        chance.shuffle(pairs)
        return dict(pairs)
    return [shuffled(one, chance) for one in value] if isinstance(value, list) else value


@pytest.mark.slow
@given(VALUES)
def test_what_is_written_is_read_back_type_for_type(value: Any) -> None:
    assert typed(decode_canonical(canonical(value))) == typed(value)


@pytest.mark.slow
@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_keys_is_no_part_of_a_value(value: Any, chance: random.Random) -> None:
    assert canonical(shuffled(value, chance)) == canonical(value)


@pytest.mark.slow
@given(VALUES, VALUES)
def test_equal_values_and_only_they_have_equal_bytes(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) == (typed(one) == typed(other))


@given(
    st.sampled_from([0, 1, 10**20]), st.sampled_from([int, float, bool, str]), st.sampled_from([int, float, bool, str])
)
def test_look_alikes_of_different_types_stay_different(number: int, one: Any, other: Any) -> None:
    assert (canonical([one(number)]) == canonical([other(number)])) == (one is other)


@given(VALUES)
@settings(max_examples=examples(50))
def test_the_bytes_are_ordinary_json(value: Any) -> None:
    assert json.loads(canonical(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_comes_back_to_the_last_bit_and_never_looks_like_an_integer(value: float) -> None:
    text = canonical(value).decode()
    assert float(text) == value
    assert "." in text or "e" in text


@pytest.mark.parametrize(
    ("value", "spelling"),
    [
        ({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}'),
        ({"é": "\u00e9", "z": '\n"\\\x00\x7f'}, '{"z":"\\n\\"\\\\\\u0000\x7f","é":"é"}'),
        ({"\U0001f600": 1, "\uffff": 2}, '{"\uffff":2,"\U0001f600":1}'),
        ([0.1 + 0.2, 1e22, 1.0, -0.0, 5e-324], "[0.30000000000000004,1e+22,1.0,0.0,5e-324]"),
        (2**255, str(2**255)),
        (Decimal("1.500"), '"1.5"'),
        (Decimal("1E+3"), '"1000"'),
        (Decimal("-0.00"), '"0"'),
        (Decimal("0E+5000"), '"0"'),
        (Decimal("1." + "3" * 60), '"1.' + "3" * 60 + '"'),
        (Fraction(6, 4), '"3/2"'),
        (b"\x00\xff", '"0x00ff"'),
        ((1, (2,)), "[1,[2]]"),
    ],
)
def test_the_spelling(value: Any, spelling: str) -> None:
    """Fixed for good: a change here changes every hash ever written."""
    assert canonical(value).decode() == spelling


def test_models_and_enums_are_lowered_to_what_they_say() -> None:
    class Word(StrEnum):
        HOLD = "hold"

    class Number(IntEnum):
        TWO = 2

    class Said(BaseModel):
        model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)
        tick_lower: int
        word: Word
        price: Decimal

    said = Said(tick_lower=-3, word=Word.HOLD, price=Decimal("2.50"))
    assert canonical({Word.HOLD: said, "n": Number.TWO}) == (
        b'{"hold":{"price":"2.5","tickLower":-3,"word":"hold"},"n":2}'
    )


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        Decimal("NaN"),
        Decimal("Infinity"),
        Decimal("1E+100000"),
        Decimal("1E-100000"),
        2**256,
        -(2**256),
        "\ud800",
        {"\ud800": 1},
        {1: "a"},
        {None: 1},
        {1, 2},
        object(),
        SecretStr("hush"),
        bytearray(b"x"),
        nested(MAX_DEPTH + 1),
    ],
    ids=lambda value: "object" if type(value) is object else repr(value)[:24],
)
def test_what_has_no_bytes_is_refused(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        canonical({"here": [value]} if not isinstance(value, list) else value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b' {"a":1}',
        b'{"a":1}\n',
        b'{"a": 1}',
        b'{"b":1,"a":2}',
        b'{"a":1,"a":1}',
        b"NaN",
        b"[Infinity]",
        b"1e999",
        b"1.10",
        b"01",
        b"-0",
        b"-0.0",
        b"1E5",
        b'"\\u00e9"',
        b'"\\/"',
        b'"\xff"',
        b'"\\ud800"',
        b"9" * 5_000,
        b"[" * 100_000,
        b"[" * (MAX_DEPTH + 1) + b"1" + b"]" * (MAX_DEPTH + 1),
        str(2**256).encode(),
    ],
    ids=lambda data: repr(data[:16]),
)
def test_another_spelling_is_not_read(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_canonical(data)


@pytest.mark.slow
@given(VALUES, st.data())
def test_no_single_byte_can_be_changed_without_changing_the_value(value: Any, data: st.DataObject) -> None:
    spelled = bytearray(canonical(value))
    place = data.draw(st.integers(0, len(spelled) - 1))
    spelled[place] ^= data.draw(st.integers(1, 255))
    try:
        read = decode_canonical(bytes(spelled))
    except Malformed:
        return
    assert typed(read) != typed(value)


def test_plain_is_where_it_stays() -> None:
    value = {"a": [1, 2.5, "x", None, True], "b": {"c": []}}
    assert to_json(value) == value
    assert digest(canonical(value)) == digest(canonical(to_json(value)))


@pytest.mark.slow
@given(VALUES)
def test_the_short_way_spells_the_same_bytes(value: Any) -> None:
    assert encode_json(value) == canonical(value)


@pytest.mark.parametrize(
    "value",
    [
        {"a": -0.0},
        [-0.0, 1],
        [[-0.0]],
        [-0.05, -0.001],
        {"a": "-0.0"},
        [2**255, -(2**256) + 1, f"{10**90}/{10**80}", str(10**99), "9" * 5000 + " "],
        {"b": 1, "a": [1.0, 1e300, 1e-9]},
    ],
)
def test_the_short_way_spells_what_is_doubtful_the_long_way(value: Any) -> None:
    assert encode_json(value) == canonical(value)


@pytest.mark.parametrize(
    "value", [float("nan"), [float("inf")], {"a": 2**256}, 2**256, [f"{10**90}/7", -(2**256)], ["\ud800"]]
)
def test_the_short_way_refuses_what_has_no_bytes(value: Any) -> None:
    with pytest.raises(ValueError, match=r"JSON compliant|256 bits|surrogates"):
        encode_json(value)


PRICES = st.decimals("0", "1e9", places=8).map(float) | st.integers(0, 10**7).map(lambda cents: cents / 100)
NUMBERS = st.one_of(
    PRICES,
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**70), 2**70),
    st.none(),
    st.sampled_from([-0.0, 0.0, 1e-4, 9.9e-5, 1e15, 1e16, 9999999999999998.0, 5e-324, 10.00001, -0.05]),
)


@pytest.mark.slow
@given(st.lists(st.lists(NUMBERS, max_size=7).map(tuple), max_size=8))
def test_rows_of_numbers_are_spelled_the_same(rows: list[tuple[Any, ...]]) -> None:
    assert encode_rows(rows) == canonical(rows)


class Named(NamedTuple):
    at: int
    name: str
    price: float | None


@given(st.lists(st.builds(Named, st.integers(0, 2**40), st.text(), PRICES | st.none()), max_size=8), SCALARS)
def test_rows_with_text_are_spelled_the_same(rows: list[Named], value: Any) -> None:
    assert encode_rows(rows) == canonical(rows)
    assert encode_rows(tuple(rows)) == canonical(rows)
    assert encode_rows([[value, [value]], [value]]) == canonical([[value, [value]], [value]])


@pytest.mark.slow
@given(st.lists(st.lists(PRICES, max_size=7).map(tuple), max_size=40))
def test_rows_of_prices_are_spelled_the_same(rows: list[tuple[Any, ...]]) -> None:
    assert encode_rows(rows) == canonical(rows)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 2**256])
def test_rows_with_what_is_no_number_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"JSON compliant|256 bits"):
        encode_rows([(1.5, 2.0), (value, 1.0)])
