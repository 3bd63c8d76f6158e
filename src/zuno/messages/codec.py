"""Canonical bytes: one value, one spelling, on every machine, so that a hash or a signature means the value.

The spelling is JSON in UTF-8 without spaces:

- object keys are text, sorted by code point, each once;
- integers in full digits up to 256 bits (the widest word of the chain), never in a string and never rounded; a reader
  whose numbers are doubles must ask for big integers;
- floats as the shortest digits that give the same double back, always with a point or an exponent, so that 1.0 and 1
  stay two values; minus zero is written 0.0; NaN and infinities are refused;
- text as it is (no Unicode normalisation), escaping only quote, backslash and control characters; a lone surrogate is
  refused.

Richer values are lowered first: a Decimal to its plain digits without trailing zeros ("0.5"), a Fraction to "3/2",
bytes to 0x-hex, an enum to its value, a tuple to a list, a model to its fields by alias. Text and a lowered Decimal
look alike: which one a field holds is its model's knowledge. Anything else is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from hashlib import sha256
from typing import Any, NewType, TypeAlias

import orjson
from pydantic import BaseModel

from zuno.domain.errors import Malformed

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

Digest = NewType("Digest", str)
"""sha256 as 64 lower-case hex digits."""

MAX_DEPTH = 64
_INT_LIMIT = 2**256
_DECIMAL_REACH = 1_000  # digits a Decimal may need before or after its point
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def canonical(value: object) -> bytes:
    """The bytes of a value. `TypeError` or `ValueError` for one that has none: that is a bug of the caller."""
    return _ENCODER.encode(plain(value)).encode("utf-8")


def spelled(model: BaseModel) -> bytes:
    """`canonical` of a model whose fields hold no mapping with keys of its own: the same bytes in a third of the time.

    Such a model has text for keys and a depth of its own, so what is left to look for is a number without a spelling.
    """
    data = _LOWERING.encode(model.model_dump(by_alias=True)).encode("utf-8")
    return canonical(model) if _doubtful(data) else data


def spelled_plain(value: Json) -> bytes:
    """`canonical` of a value whose mappings have text for keys and which is no deeper than it may be: the same bytes
    without going through every number first."""
    data = _LOWERING.encode(value).encode("utf-8")
    return canonical(value) if _doubtful(data) else data


def spelled_numbers(rows: Iterable[tuple[float | None, ...]]) -> bytes:
    """`canonical` of rows of numbers, by a library that is ten times as quick at floats and spells most of them alike.
    Where one may be spelled otherwise (very small or large, or none at all) all are spelled the long way."""
    numbers = [tuple(row) for row in rows]
    try:
        data = orjson.dumps(numbers)
    except TypeError:  # an integer of more than 64 bits, or no number
        return spelled_plain(numbers)  # type: ignore[arg-type]
    # An exponent or a truth value; a NaN or a null; below a ten-thousandth.
    odd = b"e" in data or b"n" in data or b"0.0000" in data or _doubtful(data)
    return spelled_plain(numbers) if odd else data  # type: ignore[arg-type]


def decoded(data: bytes) -> Json:
    """The plain value of canonical bytes. `Malformed` for anything `canonical` would not have written."""
    try:
        value: Json = json.loads(data.decode("utf-8"))
        same = canonical(value) == data
    except (ValueError, RecursionError) as error:
        raise Malformed(f"These are not canonical bytes ({type(error).__name__}).") from error
    if not same:
        raise Malformed("These bytes spell their value in another way than the canonical one.")
    return value


_MINUS_ZERO = re.compile(rb"-0\.0(?![0-9])")
_LONG = b"0" * 77
_DIGITS = bytes(ord("0") if ord("0") <= sign <= ord("9") else ord(" ") for sign in range(256))


def _doubtful(data: bytes) -> bool:
    """Whether something looks like an integer beyond 256 bits, or a minus zero: then it is spelled the long way."""
    return _MINUS_ZERO.search(data) is not None or _LONG in data.translate(_DIGITS)


def digest(data: bytes) -> Digest:
    """The name of these bytes."""
    return Digest(sha256(data).hexdigest())


def plain(value: object, depth: int = 0) -> Json:
    """The value in JSON's own types; what is plain already stays equal."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value  # type: ignore[return-value]
    if kind is int:
        return _whole(value)  # type: ignore[arg-type]
    if kind is float:
        return _double(value)  # type: ignore[arg-type]
    if kind is Fraction:
        return str(value)
    if depth >= MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if kind is dict:
        return _fields(value, depth)  # type: ignore[arg-type]
    if kind is list or kind is tuple:
        return _items(value, depth)  # type: ignore[arg-type]
    return _lowered(value, depth)


def _lowered(value: object, depth: int) -> Json:
    match value:
        case Enum():
            return plain(value._value_, depth + 1)  # `value` itself, without the way around it
        case BaseModel():
            return _fields(value.model_dump(by_alias=True), depth)
        case Decimal():
            return _decimal(value)
        case Fraction():
            return str(value)
        case bytes():
            return "0x" + value.hex()
        case int():
            return _whole(int(value))
        case float():
            return _double(float(value))
        case str():
            return str.__str__(value)
        case Mapping():
            return _fields(value, depth)
        case tuple():
            return _items(value, depth)
        case _:
            raise TypeError(f"{type(value).__name__} has no canonical bytes")


# Both go through their own kind without a detour: a message is some thousand values, and is spelled several times.


def _items(value: Sequence[Any], depth: int) -> list[Json]:
    items: list[Json] = []
    below = depth + 1
    for one in value:
        kind = type(one)
        if kind is dict and below < MAX_DEPTH:
            items.append(_fields(one, below))
        elif kind is str or (kind is int and -_INT_LIMIT < one < _INT_LIMIT):
            items.append(one)
        else:
            items.append(plain(one, below))
    return items


def _fields(value: Mapping[Any, Any], depth: int) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    below = depth + 1
    for key, one in value.items():
        kind = type(one)
        name = key if type(key) is str else _key(key)
        if kind is str or one is None or (kind is int and -_INT_LIMIT < one < _INT_LIMIT):
            fields[name] = one
        elif kind is dict and below < MAX_DEPTH:
            fields[name] = _fields(one, below)
        elif (kind is list or kind is tuple) and below < MAX_DEPTH:
            fields[name] = _items(one, below)
        else:
            fields[name] = plain(one, below)
    if len(fields) != len(value):
        raise ValueError("two keys have one spelling")
    return fields


def _key(key: object) -> str:
    name = key.value if isinstance(key, Enum) else key
    if not isinstance(name, str):
        raise TypeError(f"a key must be text, not {type(name).__name__}")
    return str.__str__(name)


def _leaf(value: object) -> Json:
    """What the encoder does not know, of the values that hold no others."""
    if type(value) is Fraction:
        return str(value)
    return plain(value)


_LOWERING = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), default=_leaf)


def _whole(value: int) -> int:
    if not -_INT_LIMIT < value < _INT_LIMIT:
        raise ValueError("an integer beyond 256 bits")
    return value


def _double(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("NaN and infinities have no canonical bytes")
    return value or 0.0  # minus zero equals zero


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise ValueError("NaN and infinities have no canonical bytes")
    if not value:
        return "0"
    exponent = value.as_tuple().exponent
    if abs(value.adjusted()) > _DECIMAL_REACH or not isinstance(exponent, int) or abs(exponent) > _DECIMAL_REACH:
        raise ValueError("a Decimal that would fill a page")
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
