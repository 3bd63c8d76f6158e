"""How a market's rows and documents are written down: plain lists that give the same row back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from zuno.domain.errors import Malformed
from zuno.domain.trading import (
    Alive,
    Book,
    Candle,
    Funding,
    Level,
    Marks,
    OptionChain,
    OptionQuote,
    Print,
    Quote,
    Row,
    Side,
    Strike,
    Text,
)
from zuno.domain.units import Millis
from zuno.messages.codec import Json

R = TypeVar("R", bound=Row)


def lowered(row: Row) -> list[Json]:
    """A row as a list of plain values, its moment first."""
    match row:
        case Book(at, bids, asks):
            return [at, [list(quote) for quote in bids], [list(quote) for quote in asks]]
        case OptionChain(at, quotes):
            return [at, [_option(quote) for quote in quotes]]
        case Text(at, channel, id, body):
            return [at, channel, id, body]
        case tuple():
            return [value.value if isinstance(value, Side) else value for value in row]
    raise TypeError(f"{type(row).__name__} is no row of a series")


def spellable(kind: type[Any]) -> bool:
    """Whether rows of this kind are spelled as they are: tuples of numbers and text, a side being its own word."""
    return issubclass(kind, tuple)


def numeric(kind: type[Any]) -> bool:
    """Whether rows of this kind are numbers alone."""
    return kind in _NUMERIC


def raised(kind: type[R], plain: Json) -> R:
    """The row that was written so. `Malformed` for anything else."""
    build: Callable[..., R] = _BUILD[kind]
    if not isinstance(plain, list):
        raise Malformed(f"A {kind.__name__} is written as a list.")
    try:
        return build(*plain)
    except (TypeError, ValueError) as error:
        raise Malformed(f"This is not how a {kind.__name__} is written ({type(error).__name__}).") from error


def _option(quote: OptionQuote) -> list[Json]:
    return [
        quote.name,
        quote.expiry,
        quote.strike,
        quote.call,
        quote.mark_iv,
        quote.open_interest,
        quote.volume,
        quote.underlying,
    ]


def _book(at: Millis, bids: list[list[float]], asks: list[list[float]]) -> Book:
    return Book(at, tuple(Quote(*quote) for quote in bids), tuple(Quote(*quote) for quote in asks))


def _chain(at: Millis, quotes: list[list[Any]]) -> OptionChain:
    return OptionChain(at, tuple(OptionQuote(*quote) for quote in quotes))


def _strike(at: Millis, side: str, *rest: Any) -> Strike:
    return Strike(at, Side(side), *rest)


_NUMERIC: Final = frozenset({Candle, Funding, Level, Marks, Print})
_BUILD: Final[Mapping[type[Any], Callable[..., Any]]] = {
    Alive: Alive,
    Book: _book,
    Candle: Candle,
    Funding: Funding,
    Level: Level,
    Marks: Marks,
    OptionChain: _chain,
    Print: Print,
    Strike: _strike,
    Text: Text,
}
