"""Parse JSON of other parties: exact numbers, no NaN, bounded nesting."""

import json
import re
from decimal import Decimal
from typing import NoReturn

DEEPEST = 16

_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def parse(body: bytes) -> object:
    """The value in `body`, which is UTF-8; floats are `Decimal`. `ValueError` for whatever is not JSON."""
    text = check_nesting(body)
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=reject_non_number)
    except ArithmeticError as error:
        raise ValueError("a number beyond all bounds") from error


def check_nesting(body: bytes, deepest: int = DEEPEST) -> str:
    """The text of `body`; `ValueError` when it is no UTF-8 or nests too deep.

    The recursion limit is no guard: py-evm and web3 raise it beyond what the C parser's stack holds, and a few
    kilobytes of "[" would end the process.
    """
    text = body.decode("utf-8")
    depth = 0
    for bracket in _BRACKET.finditer(_TEXT.sub("", text)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > deepest:
            raise ValueError(f"nested deeper than {deepest}")
    return text


def reject_non_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
