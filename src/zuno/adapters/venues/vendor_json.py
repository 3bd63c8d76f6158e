"""Read a vendor's answer field by field: a missing field or one of another type is `Malformed` and named."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final, TypeVar

from zuno.kernel import foreign_json
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, Book, Candle, Quote, Row

EARLIEST, LATEST = Millis(10**11), Millis(10**14)
"""1973 and 5138: what lies outside is no moment in milliseconds but one in another unit."""
LONGEST_NUMBER: Final = 40
MOST_DIGITS: Final = 30
"""Before or behind the point."""

R = TypeVar("R", bound=Row)


def parse_json(body: bytes, what: str) -> VendorJson:
    try:
        return VendorJson(what, foreign_json.parse(body))
    except (ValueError, RecursionError):
        raise Malformed(f"{what} is not JSON") from None


@dataclass(frozen=True, slots=True)
class VendorJson:
    """An object or an array of an answer. Fields of arrays are read by their place."""

    what: str
    """Whose it is and what: `Binance's klines`."""
    value: object

    def __getitem__(self, field: str | int) -> object:
        match self.value, field:
            case dict() as found, str() if field in found:
                return found[field]
            case list() as found, int() if -len(found) <= field < len(found):
                return found[field]
        raise Malformed(f"{self.what} has no field {field!r}")

    def __contains__(self, field: str) -> bool:
        return isinstance(self.value, dict) and field in self.value

    def number(self, field: str | int) -> float:
        """JSON's number or one in quotes, as exchanges send them."""
        try:
            number = float(self._written_number(field))
        except (ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise self._is_not(field, "a number")
        return number

    def maybe_number(self, field: str | int) -> float | None:
        """None for null or an empty text; the field itself has to be there."""
        return None if self[field] in (None, "") else self.number(field)

    def decimal(self, field: str | int) -> Decimal:
        """A number with all its digits: money and quantities."""
        try:
            number = Decimal(self._written_number(field))
        except ArithmeticError:
            number = Decimal("nan")
        if not number.is_finite() or abs(number.adjusted()) > MOST_DIGITS:
            raise self._is_not(field, "a number")
        return number

    def _written_number(self, field: str | int) -> int | Decimal | str:
        match self[field]:
            case bool():
                pass
            case int() | Decimal() | str() as value if len(str(value)) <= LONGEST_NUMBER and "_" not in str(value):
                return value
        raise self._is_not(field, "a number")

    def maybe_decimal(self, field: str | int) -> Decimal | None:
        """None for null."""
        return None if self[field] is None else self.decimal(field)

    def decimal_if_any(self, field: str | int) -> Decimal | None:
        """None for null or an empty text; the field itself has to be there."""
        return None if self[field] in (None, "") else self.decimal(field)

    def moment(self, field: str | int, per_second: int = 1_000) -> Millis:
        """`per_second`: in which parts of a second it is written."""
        value = self[field]
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= LONGEST_NUMBER:
            value = int(value)
        millis = value * 1_000 // per_second if isinstance(value, int) and not isinstance(value, bool) else 0
        if not EARLIEST < millis < LATEST:
            raise self._is_not(field, "a moment in the unit it is documented in")
        return Millis(millis)

    def moment_of_text(self, field: str | int) -> Millis:
        """ISO 8601; without a zone it is UTC."""
        at = parse_instant(self.text(field))
        if at is None:
            raise self._is_not(field, "a date and time")
        return at

    def day(self, field: str | int) -> Millis:
        """Midnight, UTC, of an ISO date."""
        try:
            return Millis((date.fromisoformat(self.text(field)) - date(1970, 1, 1)).days * DAY_MS)
        except ValueError:
            raise self._is_not(field, "a date") from None

    def text(self, field: str | int) -> str:
        value = self[field]
        if not isinstance(value, str):
            raise self._is_not(field, "text")
        return value

    def maybe_text(self, field: str) -> str | None:
        """None for null or a missing field."""
        value = self.value.get(field) if isinstance(self.value, dict) else None
        return None if value is None else self.text(field)

    def choice(self, field: str | int, known: Sequence[str]) -> str:
        value = self.text(field)
        if value not in known:
            raise self._is_not(field, f"one of {', '.join(known)}")
        return value

    def whole(self, field: str | int) -> int:
        value = self[field]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._is_not(field, "a whole number")
        return value

    def flag(self, field: str | int) -> bool:
        value = self[field]
        if not isinstance(value, bool):
            raise self._is_not(field, "true or false")
        return value

    def child(self, field: str | int) -> VendorJson:
        return VendorJson(self.what, self[field])

    def children(self, field: str | int) -> list[VendorJson]:
        return self.child(field).items()

    def items(self) -> list[VendorJson]:
        if not isinstance(self.value, list):
            raise Malformed(f"{self.what} is not a list")
        return [VendorJson(self.what, value) for value in self.value]

    def only(self) -> VendorJson:
        """The single item of a list."""
        items = self.items()
        if len(items) != 1:
            raise Malformed(f"{self.what} has {len(items)} items where one was asked for")
        return items[0]

    def _is_not(self, field: str | int, kind: str) -> Malformed:
        return Malformed(f"{self.what}: field {field!r} is not {kind}")


def parse_instant(text: str) -> Millis | None:
    """The moment of an ISO date and time; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text)
        millis = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000)
    except (ValueError, OverflowError):
        return None
    return Millis(millis) if EARLIEST < millis < LATEST else None


def order_rows(what: str, rows: Sequence[R], since: int, until: int) -> tuple[R, ...]:
    """Oldest first, each moment once, inside the time asked for; `Malformed` where two rows contradict."""
    kept: dict[int, R] = {}
    for row in rows:
        if since <= row.at <= until and kept.setdefault(row.at, row) != row:
            raise Malformed(f"{what} say two things of one moment ({row.at})")
    return tuple(kept[at] for at in sorted(kept))


def parse_bar(row: VendorJson, at: Millis, fields: Iterable[str | int], taker: float | None = None) -> Candle:
    """A bar by its fields of open, high, low, close and volume. `taker`: the part of the volume that buyers took."""
    start, high, low, close, volume = map(row.number, fields)
    return Candle(at, start, high, low, close, volume, taker)


def parse_book(answer: VendorJson, at: Millis, bids: str, asks: str, depth: int) -> Book:
    """A book, best first. `Malformed` if it is crossed, empty on a side or has a negative amount."""
    bought = sorted(_quotes(answer, bids), reverse=True)
    sold = sorted(_quotes(answer, asks))
    if not bought or not sold:
        raise Malformed(f"{answer.what} is empty on one side")
    return check_uncrossed(Book(at, tuple(bought[:depth]), tuple(sold[:depth])), answer.what)


def check_uncrossed(book: Book, what: str) -> Book:
    if book.bids and book.asks and book.bids[0].price >= book.asks[0].price:
        raise Malformed(f"{what} is crossed: {book.bids[0].price:g} is bid and {book.asks[0].price:g} asked")
    return book


def _quotes(answer: VendorJson, side: str) -> list[Quote]:
    quotes = [Quote(level.number(0), level.number(1)) for level in answer.children(side)]
    if any(quote.price <= 0 or quote.size < 0 for quote in quotes):
        raise Malformed(f"{answer.what} has a price or a size below zero")
    if len({quote.price for quote in quotes}) != len(quotes):
        raise Malformed(f"{answer.what} says one price twice")
    return quotes
