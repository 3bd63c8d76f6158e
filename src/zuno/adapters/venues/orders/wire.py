"""The table of a venue's wire, the cells of its rows, and what is read from them."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from zuno.adapters.venues.exchange import ExchangeVendor, Params
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import ZERO, ClientId, OrderSide, OrderStatus, OrderType, TimeInForce

LONGEST_REASON: Final = 200
BUY, SELL = OrderSide.BUY, OrderSide.SELL
MARKET, LIMIT = OrderType.MARKET, OrderType.LIMIT
STOP, TARGET = OrderType.STOP_MARKET, OrderType.TAKE_PROFIT_MARKET
GTC, IOC, POST_ONLY = TimeInForce.GTC, TimeInForce.IOC, TimeInForce.POST_ONLY
_DUPLICATE: Final = re.compile(r"duplicate|already been taken|중복", re.IGNORECASE)
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")
Path = tuple[str | int, ...]
Fields = Mapping[str, tuple[str, ...]]
V = TypeVar("V")
E = TypeVar("E", bound=Enum)


def fields(text: str) -> Fields:
    """`ours:theirs` in turn. Several of theirs, by commas: the first that is filled, or their sum; `-`: taken off.
    Dots lead into a row."""
    return {ours: tuple(theirs.split(",")) for ours, theirs in (pair.split(":") for pair in text.split())}


def spell(kind: type[E], text: str) -> dict[str, E]:
    """`ours:theirs|theirs; ours:…`: what each of the venue's words means."""
    pairs = (pair.strip().split(":") for pair in text.split(";"))
    return {word: kind[ours] for ours, theirs in pairs for word in theirs.split("|")}


def codes(text: str) -> frozenset[str]:
    return frozenset(text.split())


def decline_at(*places: tuple[str, str]) -> Callable[[object], tuple[str, str] | None]:
    """Reads code and reason of a declined request, at the first of these paths with a code that is not zero."""

    def read(answer: object) -> tuple[str, str] | None:
        for code_path, reason_path in places:
            code = _follow(answer, code_path)
            if isinstance(code, str | int) and not isinstance(code, bool) and code not in ("", "0", 0):
                return str(code), read_reason(_follow(answer, reason_path) or "")
        return None

    return read


def _follow(value: object, path: str) -> object:
    for part in path.split("."):
        if isinstance(value, list):
            value = value[0] if value else None
        value = value.get(part) if isinstance(value, dict) else None
    return value


@dataclass(frozen=True, slots=True)
class Cells:
    """A row's cells by our names for them. `Malformed` where a field is missing or of another type."""

    row: VendorJson
    names: Fields

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def words(self, name: str) -> list[str]:
        words = []
        for row, cell in self._find(name):
            value = row[cell]
            if value is not None and not isinstance(value, str | int):
                raise Malformed(f"{row.what}: field {cell!r} is not text")
            words.append("" if value is None else str(value))
        return words

    def word(self, name: str) -> str:
        """The first that is filled; empty where none is."""
        return next(filter(None, self.words(name)), "")

    def choose(self, name: str, known: Mapping[str, V]) -> V:
        word = self.word(name)
        if word not in known:
            raise Malformed(f"{self.row.what}: {plain_text(word, 40)!r} is none of {', '.join(known)}")
        return known[word]

    def numbers(self, name: str) -> list[Decimal]:
        numbers = []
        for path, (row, cell) in zip(self.names.get(name, ()), self._find(name), strict=True):
            number = row.decimal_if_any(cell)
            if number is not None:
                numbers.append(-number if path.startswith("-") else number)
        return numbers

    def number(self, name: str) -> Decimal | None:
        return next(iter(self.numbers(name)), None)

    def require(self, name: str) -> Decimal:
        number = self.number(name)
        if number is None:
            raise Malformed(f"{self.row.what} has no {name}")
        return number

    def total(self, name: str) -> Decimal:
        return sum(self.numbers(name), ZERO)

    def moment(self, name: str) -> Millis:
        ((row, cell),) = self._find(name)
        return row.moment(cell)

    def _find(self, name: str) -> Iterator[tuple[VendorJson, str]]:
        for path in self.names.get(name, ()):
            *parts, cell = path.removeprefix("-").split(".")
            row = self.row
            for part in parts:
                row = row.child(part)
            yield row, cell


@dataclass(frozen=True, kw_only=True, slots=True)
class WireTable:
    """What differs from venue to venue and is no more than a name or a number."""

    exchange: Venue
    vendor: ExchangeVendor
    market: str = "{base}{quote}"
    """How a market is called on the wire."""
    market_field: str = "symbol"
    """Where rows name it."""
    time: tuple[str, Mapping[str, object], Path] = ("", {}, ())
    """The endpoint of its clock, what is asked of it, and where the time is in the answer."""
    rows: Path = ()
    """Where the rows of an answer are."""
    clock_codes: frozenset[str] = frozenset()
    """Of a request dated too early or too late."""
    key_codes: frozenset[str] = frozenset()
    """Keys that are wrong or may not do that, whatever the HTTP status."""
    no_such_order: frozenset[str] = frozenset()
    no_such_market: frozenset[str] = frozenset()
    cannot_cancel: frozenset[str] = frozenset()
    """An order that is over, or never was."""
    not_taken: tuple[tuple[int, int], ...] = ()
    """Ranges of codes of an order that was read and not taken. After any other code nobody knows what became of it."""
    duplicate_codes: frozenset[str] = frozenset()
    """An order whose client id is taken: it exists."""
    not_taken_words: frozenset[str] = frozenset()
    not_taken_statuses: frozenset[int] = frozenset()
    """The same where codes are words, and by the HTTP status."""
    statuses: Mapping[str, OrderStatus] = field(default_factory=dict)
    types: Mapping[str, OrderType] = field(default_factory=dict)
    sides: Mapping[str, OrderSide] = field(default_factory=lambda: {side.value: side for side in OrderSide})
    in_force: Mapping[TimeInForce, str] = field(default_factory=dict)
    read_in_force: Mapping[str, TimeInForce] = field(default_factory=dict)
    """By its own word, or by the order's type. What is not named is good till it is cancelled."""
    order: Fields = field(default_factory=dict)
    """client_id, id, side, kind, quantity, price, trigger, in_force, reduce_only, status, filled (or left), average (or
    funds), updated, reason."""
    algo: Fields = field(default_factory=dict)
    """The same of conditional orders, where those are apart; a row is of one that has the field of its id."""
    algo_statuses: Mapping[str, OrderStatus] = field(default_factory=dict)
    listing: Fields = field(default_factory=dict)
    """name, base, quote, tick, lot, least, most, notional, unit, state, minutes."""
    trading: tuple[str, ...] = ()
    """The cells of `state` of a market that trades. A market belongs to this venue if all but the first are equal."""
    trade: Fields = field(default_factory=dict)
    """id, order_id, client_id, side, quantity, price, fee, asset, maker, at, forced."""
    maker: str = "True"
    forced: frozenset[str] = frozenset()
    """Kinds of trades by which the exchange liquidates a position."""
    fee_sign: int = 1
    """-1: the exchange writes paid fees as negative numbers."""
    ids_once: bool = False
    """An id is never taken again, also when its order is over."""
    numbers_by_market: bool = False
    """Trade ids are unique within a market only."""
    payment: Fields = field(default_factory=dict)
    """amount, at, name, asset."""
    position: Fields = field(default_factory=dict)
    """name, amount, side, entry, leverage, margin, liquidation, mode."""
    one_way: str = ""
    """The `mode` cell of a position in one-way mode."""
    balance: Fields = field(default_factory=dict)
    """asset, total, free or used, cost."""
    page: int = 100
    trades_window: int = 7 * DAY_MS
    """The longest time one question for trades may span."""
    trades_kept: int = 89 * DAY_MS
    """How far back the exchange lists trades."""
    funding_id: str = ""
    """The field of a payment's id; empty: the venue has no funding."""
    funding_window: int = 89 * DAY_MS
    stale_quote: int = 10_000
    liquidations: tuple[str, ...] = ()
    """Prefixes of the client ids of liquidation orders."""
    cancels_by_id: bool = False
    """Orders are cancelled by the exchange's id, so each is looked up first."""

    @property
    def spot(self) -> bool:
        return self.exchange.spot

    def is_duplicate(self, code: str, reason: str) -> bool:
        """By its code, or by its words where a code says more than that."""
        return code in self.duplicate_codes or _DUPLICATE.search(reason) is not None

    @property
    def asset(self) -> str:
        """What cash, fees and margin are in."""
        return self.exchange.quote


class Question(NamedTuple):
    endpoint: str
    what: str
    params: Params | Callable[[], Params]
    """A function: signed anew whenever it is sent."""


class Trade(NamedTuple):
    """A row of the exchange's list of trades."""

    id: str
    order_id: str
    client_id: str
    """Empty where the row does not say whose it is."""
    side: OrderSide
    quantity: Decimal
    price: Decimal
    fee: Decimal
    """Above zero: paid."""
    fee_asset: str
    maker: bool
    at: Millis
    liquidation: bool = False


class Holding(NamedTuple):
    """What an account holds of a currency. `cost`: what a coin of it was bought for, where the venue says so."""

    total: Decimal
    free: Decimal
    cost: Decimal | None = None


class Listing(NamedTuple):
    """A market as the venue lists it. Quantities are of the base currency; `contract`: how much of it one unit of the
    venue's own sizes is. None: the list does not say."""

    name: str
    base: str
    quote: str
    tick: Decimal
    lot: Decimal
    min_quantity: Decimal
    max_quantity: Decimal
    min_notional: Decimal
    trading: bool
    contract: Decimal = Decimal(1)
    funding_hours: int | None = None


def read_reason(text: object) -> str:
    return plain_text(str(text), LONGEST_REASON)


def clean_id(text: str) -> ClientId:
    """Exchanges allow a few characters more than we write."""
    return _FOREIGN.sub("_", text)[:36] or "_"
