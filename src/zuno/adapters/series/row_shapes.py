"""How a row becomes columns or a document, and how it comes back equal."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson

from zuno.kernel.canonical import encode_rows
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Millis
from zuno.trading.model.bundle import decode_row, encode_row
from zuno.trading.model.market import (
    Book,
    Candle,
    Funding,
    Heartbeat,
    Level,
    MacroRelease,
    MarkAndIndex,
    OptionChain,
    Side,
    TapeEvent,
    Text,
)

NUMBERS: Final = 6
_FAST: Final = 1
"""How hard documents are pressed together: more would cost a bulk write its time and save a tenth."""


@dataclass(frozen=True, slots=True)
class RowShape:
    """How rows of one kind are stored. Both tables have the columns series, at, id and known."""

    table: str
    """rows: up to six numbers; documents: canonical JSON, compressed."""
    columns: tuple[str, ...]
    """What must be read to make a row again."""
    to_columns: Callable[[Any], tuple[Any, ...]]
    """A row's own columns: six numbers, or the document."""
    from_columns: Callable[[Sequence[Any]], Any]


def shape_of(row: type[Any]) -> RowShape:
    return _SHAPES[row]


def _numeric(count: int, kind: type[Any]) -> RowShape:
    rest = (None,) * (NUMBERS - count)
    from_columns = partial(
        tuple.__new__, kind
    )  # its `_make` counts the columns each time, and rows come by ten thousands
    columns = ("at", *(f"v{place}" for place in range(count)))
    return RowShape("rows", columns, lambda row: (*row[1:], *rest), from_columns)


_new_event = partial(tuple.__new__, TapeEvent)


def _strike(columns: Sequence[Any]) -> TapeEvent:
    at, long, price, quantity, usd, name = columns
    return _new_event((at, Side.LONG if long else Side.SHORT, price, quantity, usd, name))


def _print(columns: Sequence[Any]) -> MacroRelease:
    at, value, released = columns
    return MacroRelease(at, value, Millis(int(released)))


def _document(kind: type[Any]) -> RowShape:
    def from_columns(columns: Sequence[Any]) -> Any:
        at, body = columns
        plain = orjson.loads(zlib.decompress(body))
        if not isinstance(plain, list):
            raise Malformed(f"A {kind.__name__} is kept as a list.")
        return decode_row(kind, [at, *plain])

    def to_columns(row: Any) -> tuple[bytes]:
        return (zlib.compress(encode_rows(encode_row(row)[1:]), _FAST),)  # type: ignore[arg-type]  # lists and text

    return RowShape("documents", ("at", "body"), to_columns, from_columns)


_SHAPES: Final[Mapping[type[Any], RowShape]] = {
    Candle: _numeric(6, Candle),
    Funding: _numeric(2, Funding),
    Level: _numeric(1, Level),
    MarkAndIndex: _numeric(2, MarkAndIndex),
    Heartbeat: _numeric(0, Heartbeat),
    MacroRelease: RowShape("rows", ("at", "v0", "id"), lambda row: (row.value, None, None, None, None, None), _print),
    TapeEvent: RowShape(
        "rows",
        ("at", "v0", "v1", "v2", "v3", "id"),
        lambda row: (row.side is Side.LONG, row.price, row.quantity, row.usd, None, None),
        _strike,
    ),
    Book: _document(Book),
    OptionChain: _document(OptionChain),
    Text: _document(Text),
}
