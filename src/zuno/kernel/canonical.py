"""Canonical bytes: the same value gives the same bytes on every machine, so it can be hashed and signed.

The encoding is JSON in UTF-8 without spaces:

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

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from hashlib import sha256
from operator import itemgetter
from typing import Any, NewType, TypeAlias

import orjson
from pydantic import BaseModel

from zuno.kernel.errors import Malformed

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

Digest = NewType("Digest", str)
"""sha256 as 64 lower-case hex digits."""

MAX_DEPTH = 64
_INT_LIMIT = 2**256
_MAX_DECIMAL_DIGITS = 1_000  # digits a Decimal may need before or after its point
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def canonical(value: object) -> bytes:
    """The canonical bytes of a value. `TypeError` or `ValueError` for one that has none."""
    return _ENCODER.encode(to_json(value)).encode("utf-8")


def encode_model(model: BaseModel) -> bytes:
    """`canonical` of a model without free-form mappings: the same bytes in a third of the time.

    Keys and depth are fixed by the model, so only numbers have to be checked.
    """
    data = _LOWERING_ENCODER.encode(model.model_dump(by_alias=True)).encode("utf-8")
    return canonical(model) if _needs_full_encoding(data) else data


def encode_json(value: Json) -> bytes:
    """`canonical` of a value with text keys and bounded depth: the same bytes without checking every number first."""
    data = _LOWERING_ENCODER.encode(value).encode("utf-8")
    return canonical(value) if _needs_full_encoding(data) else data


def encode_rows(rows: Iterable[Sequence[object]]) -> bytes:
    """`canonical` of rows of numbers, text and lists of them, through orjson, which is ten times faster.

    Falls back to the full encoder where orjson may write a number differently (very small or large, a NaN)."""
    given = rows if type(rows) is tuple or type(rows) is list else list(rows)
    try:
        data = orjson.dumps(given, default=tuple)  # a named tuple
    except TypeError:  # an integer of more than 64 bits, or no number
        return encode_json(given)  # type: ignore[arg-type]
    odd = (
        (b"e" in data and any(exponent in data for exponent in _EXPONENTS))
        or b".0000" in data  # below a ten-thousandth
        or (b"n" in data and b"null" in data and _holds_nan(given, data.count(b"null")))
        or (b"-0.0" in data and _MINUS_ZERO.search(data) is not None)
    )
    return encode_json(given) if odd else data  # type: ignore[arg-type]


def decode_canonical(data: bytes) -> Json:
    """The value of canonical bytes. `Malformed` for anything `canonical` would not have written."""
    try:  # orjson is ten times faster; what the two encoders may write differently goes the long way
        quick: Json = orjson.loads(data)
        if (
            orjson.dumps(quick, option=orjson.OPT_SORT_KEYS) == data
            and not _may_be_odd(data)
            and not (data.count(b"{") + data.count(b"[") > MAX_DEPTH and _is_deeper(quick, MAX_DEPTH))
        ):
            return quick
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    try:
        value: Json = json.loads(data.decode("utf-8"))
        same = canonical(value) == data
    except (ValueError, RecursionError) as error:
        raise Malformed(f"These are not canonical bytes ({type(error).__name__}).") from error
    if not same:
        raise Malformed("These bytes are JSON, but not in canonical form.")
    return value


def _may_be_odd(data: bytes) -> bool:
    """Whether there may be a number that orjson spells in another way: a minus zero, one below a ten-thousandth, one
    with an exponent. Text in quotes is left out; where a quote is escaped nobody looks further."""
    bare = b"".join(data.split(b'"')[::2])
    return (
        b"-0.0" in bare
        or b"0.0000" in bare
        or b"e" in bare.replace(b"true", b"").replace(b"false", b"")
        or b'\\"' in data
    )


def _is_deeper(value: Json, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels <= 0 or any(_is_deeper(item, levels - 1) for item in items)


def _holds_nan(rows: Sequence[Sequence[object]], nulls: int) -> bool:
    """Whether some of these nulls are no None. Most often the last value of each row is one: that is said at once."""
    if all(rows) and nulls == list(map(itemgetter(-1), rows)).count(None):
        return False
    return nulls != sum(map(_count_none, rows))


def _count_none(value: object) -> int:
    if isinstance(value, list | tuple):
        return value.count(None) + sum(_count_none(item) for item in value if isinstance(item, list | tuple))
    return value is None


_EXPONENTS = tuple(b"%de" % digit for digit in range(10))  # ten plain searches are quicker than a pattern
_MINUS_ZERO = re.compile(rb"-0\.0(?![0-9])")
_LONG_DIGITS = b"0" * 77
_DIGITS = bytes(ord("0") if ord("0") <= sign <= ord("9") else ord(" ") for sign in range(256))


def _needs_full_encoding(data: bytes) -> bool:
    """Whether the bytes may hold an integer beyond 256 bits or a minus zero: then the full encoder is used."""
    if _MINUS_ZERO.search(data) is not None:
        return True
    runs = data.translate(_DIGITS) + b" "
    at = runs.find(_LONG_DIGITS)
    while at >= 0:
        end = runs.index(b" ", at)
        fraction_or_text = data[end : end + 1] in (b"/", b'"')
        if not fraction_or_text and (end - at > 78 or int(data[at:end]) >= _INT_LIMIT):
            return True
        at = runs.find(_LONG_DIGITS, end)
    return False


def digest(data: bytes) -> Digest:
    """SHA-256 of these bytes."""
    return Digest(sha256(data).hexdigest())


def to_json(value: object, depth: int = 0) -> Json:
    """The value in JSON types; JSON values stay equal."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value  # type: ignore[return-value]
    if kind is int:
        return _check_int(value)  # type: ignore[arg-type]
    if kind is float:
        return _check_float(value)  # type: ignore[arg-type]
    if kind is Fraction:
        return str(value)
    if depth >= MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if kind is dict:
        return _lower_fields(value, depth)  # type: ignore[arg-type]
    if kind is list or kind is tuple:
        return _lower_items(value, depth)  # type: ignore[arg-type]
    return _lower_value(value, depth)


def _lower_value(value: object, depth: int) -> Json:
    match value:
        case Enum():
            return to_json(value._value_, depth + 1)  # `value` itself, without the way around it
        case BaseModel():
            return _lower_fields(value.model_dump(by_alias=True), depth)
        case Decimal():
            return _decimal_text(value)
        case Fraction():
            return str(value)
        case bytes():
            return "0x" + value.hex()
        case int():
            return _check_int(int(value))
        case float():
            return _check_float(float(value))
        case str():
            return str.__str__(value)
        case Mapping():
            return _lower_fields(value, depth)
        case tuple():
            return _lower_items(value, depth)
        case _:
            raise TypeError(f"{type(value).__name__} has no canonical bytes")


# Both handle common types inline: a message has thousands of values and is encoded several times.


def _lower_items(value: Sequence[Any], depth: int) -> list[Json]:
    items: list[Json] = []
    below = depth + 1
    for item in value:
        kind = type(item)
        if kind is dict and below < MAX_DEPTH:
            items.append(_lower_fields(item, below))
        elif kind is str or (kind is int and -_INT_LIMIT < item < _INT_LIMIT):
            items.append(item)
        else:
            items.append(to_json(item, below))
    return items


def _lower_fields(value: Mapping[Any, Any], depth: int) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    below = depth + 1
    for key, item in value.items():
        kind = type(item)
        name = key if type(key) is str else _key_text(key)
        if kind is str or item is None or (kind is int and -_INT_LIMIT < item < _INT_LIMIT):
            fields[name] = item
        elif kind is dict and below < MAX_DEPTH:
            fields[name] = _lower_fields(item, below)
        elif (kind is list or kind is tuple) and below < MAX_DEPTH:
            fields[name] = _lower_items(item, below)
        else:
            fields[name] = to_json(item, below)
    if len(fields) != len(value):
        raise ValueError("two keys have one spelling")
    return fields


def _key_text(key: object) -> str:
    name = key.value if isinstance(key, Enum) else key
    if not isinstance(name, str):
        raise TypeError(f"a key must be text, not {type(name).__name__}")
    return str.__str__(name)


_LOWERING_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), default=to_json
)


def _check_int(value: int) -> int:
    if not -_INT_LIMIT < value < _INT_LIMIT:
        raise ValueError("an integer beyond 256 bits")
    return value


def _check_float(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("NaN and infinities have no canonical bytes")
    return value or 0.0  # minus zero equals zero


def _decimal_text(value: Decimal) -> str:
    if not value.is_finite():
        raise ValueError("NaN and infinities have no canonical bytes")
    if not value:
        return "0"
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or max(abs(value.adjusted()), abs(exponent)) > _MAX_DECIMAL_DIGITS:
        raise ValueError("a Decimal that would fill a page")
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
