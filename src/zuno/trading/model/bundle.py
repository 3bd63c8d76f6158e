"""The frozen input of one cycle: every fact with its source and its age, what is absent and why, under one hash."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter, is_
from typing import Any, Final, TypeVar

from zuno.kernel.canonical import Digest, Json, decode_canonical, digest, encode_json, encode_rows
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Millis, Seconds
from zuno.markets.market import Symbol
from zuno.trading.model import market
from zuno.trading.model.known import NotRecorded

SLOTS: Final = ("previous_decision", "feedback", "memory", "positions", "equity")
"""What the desk itself brings to a cycle."""
_OURS: Final = re.compile(
    r"nothing is recorded of the \d+ (days|minutes|seconds) before|(not offered for) [A-Z0-9]{1,16}"
)


def has_own_reason(gone: Absent) -> bool:
    """Whether the reason is one that no source had a word in."""
    return gone.what in SLOTS or _OURS.fullmatch(gone.why) is not None


R = TypeVar("R", bound=market.Row)
CANDLES_ONLY: Final = "CANDLES ONLY"
"""How the origin of a store begins that holds imported or downloaded series and none that was collected."""


def encode_row(row: market.Row) -> list[Json]:
    """A row as a list of plain values, its moment first."""
    match row:
        case market.Book(at, bids, asks):
            return [at, [list(quote) for quote in bids], [list(quote) for quote in asks]]
        case market.OptionChain(at, quotes):
            return [at, [list(_option_fields(quote)) for quote in quotes]]
        case market.Text(at, channel, id, body):
            return [at, channel, id, body]
        case tuple():
            return [value.value if isinstance(value, market.Side) else value for value in row]
    raise TypeError(f"{type(row).__name__} is no row of a series")


def decode_row(kind: type[R], plain: Json) -> R:
    """The row that was written so. `Malformed` for anything else."""
    build: Callable[..., R] = _BUILD.get(kind, kind)
    if not isinstance(plain, list):
        raise Malformed(f"A {kind.__name__} is written as a list.")
    try:
        return build(*plain)
    except (TypeError, ValueError) as error:
        raise Malformed(f"This is not how a {kind.__name__} is written ({type(error).__name__}).") from error


_option_fields: Final = attrgetter(*(each.name for each in fields(market.OptionQuote)))
_BUILD: Final[Mapping[type[Any], Callable[..., Any]]] = {
    market.Book: lambda at, bids, asks: market.Book(
        at, tuple(market.Quote(*quote) for quote in bids), tuple(market.Quote(*quote) for quote in asks)
    ),
    market.OptionChain: lambda at, quotes: market.OptionChain(
        at, tuple(market.OptionQuote(*quote) for quote in quotes)
    ),
    market.TapeEvent: lambda at, side, *rest: market.TapeEvent(at, market.Side(side), *rest),
}
"""How rows are built that are more than their plain values."""
VERSION: Final = 1
PIECE: Final = 64
"""Rows that an encoder writes and keeps together."""
_time_of: Final = attrgetter("at")


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one series as they could be known, oldest first."""

    series: market.Series[Any]
    rows: Sequence[Any]
    as_of: Millis
    """When the newest of them was true."""
    age: Seconds
    limit: Seconds
    notes: tuple[str, ...] = ()
    """What a reader must know beside the numbers: a lower bound, a feed that stands still, gaps."""

    @property
    def stale(self) -> bool:
        return self.age > self.limit


@dataclass(frozen=True, slots=True)
class Absent:
    """Something the desk would like to know and does not."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Slot:
    """What the desk itself brings: its last decision, its book, its memory. None of it is later than the as-of."""

    name: str
    content: Json
    as_of: Millis
    source: str


@dataclass(frozen=True, slots=True)
class Bundle:
    symbol: Symbol
    mode: market.Mode
    as_of: Millis
    origin: str
    """Whose past it is taken from; synthetic worlds say SYNTHETIC."""
    blocks: tuple[Block, ...]
    absent: tuple[Absent, ...]
    slots: tuple[Slot, ...] = ()
    _by_series: Mapping[market.Series[Any], Block] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_series", {block.series: block for block in reversed(self.blocks)})

    @property
    def synthetic(self) -> bool:
        return self.origin.startswith("SYNTHETIC")

    @property
    def candles_only(self) -> bool:
        """Declared so by its store: feeds that were never recorded are absent, not missing."""
        return self.origin.startswith(CANDLES_ONLY)

    def never_recorded(self, *series: market.Series[Any]) -> bool:
        """Whether one of these was never recorded here, or nobody offers it: what would rest on it is not judged."""
        return any(self.block(each) is None and (self.candles_only or self.find_unoffered(each)) for each in series)

    def find_unoffered(self, series: market.Series[Any]) -> NotRecorded | None:
        """That nobody offers it for this coin."""
        why = self.why_absent(series)
        known = None if why is None else _OURS.fullmatch(why)
        return NotRecorded(known[0]) if known and known[2] else None

    def block(self, series: market.Series[Any]) -> Block | None:
        return self._by_series.get(series)

    def rows(self, series: market.Series[R]) -> Sequence[R]:
        block = self.block(series)
        return () if block is None else block.rows

    def slot(self, name: str) -> Slot | None:
        return next((slot for slot in self.slots if slot.name == name), None)

    def why_absent(self, what: object) -> str | None:
        name = str(what)
        return next((gone.why for gone in self.absent if gone.what == name), None)


def add_slots(bundle: Bundle, slots: Sequence[Slot]) -> Bundle:
    """The bundle with slots it did not have; what they bring is absent no more."""
    named = {slot.name for slot in slots}
    return replace(
        bundle,
        absent=tuple(gone for gone in bundle.absent if gone.what not in named),
        slots=tuple(sorted((*bundle.slots, *slots), key=lambda slot: slot.name)),
    )


def content(bundle: Bundle, encode: Callable[[Block], bytes] | None = None) -> bytes:
    """The canonical bytes that are stored and hashed. `encode`: the rows of a block without their brackets."""
    whole = encode_json(
        {
            "version": VERSION,
            "symbol": bundle.symbol,
            "mode": bundle.mode,
            "asOf": bundle.as_of,
            "origin": bundle.origin,
            "blocks": [],
            "absent": [{"what": gone.what, "why": gone.why} for gone in bundle.absent],
            "slots": [
                {"name": slot.name, "content": slot.content, "asOf": slot.as_of, "source": slot.source}
                for slot in bundle.slots
            ],
        }
    )
    blocks = (_block_content(block, (encode or _encode_rows)(block)) for block in bundle.blocks)
    return _fill_list(whole, "blocks", b",".join(blocks))


class BundleEncoder:
    """`content` of one bundle after another: rows that stood in an earlier one are not written again."""

    def __init__(self) -> None:
        self._written: dict[market.Series[Any], list[tuple[Sequence[Any], bytes]]] = {}
        """The newest pieces of each series, whole ones alone."""

    def encode(self, bundle: Bundle) -> bytes:
        return content(bundle, self._encode_rows)

    def _encode_rows(self, block: Block) -> bytes:
        rows = block.rows
        kind = block.series.row
        if kind is market.Heartbeat or not issubclass(kind, tuple) or len(rows) < 2 * PIECE:
            return _encode_rows(block)
        kept: list[tuple[Sequence[Any], bytes]] = []
        place = 0
        for piece, data in self._written.get(block.series, ()):
            start = place if kept else bisect_left(rows, piece[0].at, key=_time_of)
            if same_rows(rows[start : start + PIECE], piece):
                place = start + PIECE
                kept.append((piece, data))
            elif kept:
                break
        before = place - PIECE * len(kept)
        parts = [encode_rows(rows[:before])[1:-1]] if before else []
        while place + PIECE <= len(rows):
            kept.append((piece := rows[place : place + PIECE], encode_rows(piece)[1:-1]))
            place += PIECE
        parts += [data for _, data in kept]
        parts += [encode_rows(rows[place:])[1:-1]] if place < len(rows) else []
        self._written[block.series] = kept
        return b",".join(parts)


def same_rows(rows: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether they are the very same, which are written alike; equal ones may not be, as 1 and 1.0."""
    return len(rows) == len(others) and all(map(is_, rows, others))


def _block_content(block: Block, rows: bytes) -> bytes:
    whole = encode_json(
        {
            "series": str(block.series),
            "asOf": block.as_of,
            "ageSeconds": block.age,
            "staleAfter": block.limit,
            "notes": list(block.notes),
            "rows": [],
        }
    )
    return _fill_list(whole, "rows", rows)


def _encode_rows(block: Block) -> bytes:
    """The rows as lists; minutes in which a stream lived, which are many, as first minutes and how many followed."""
    if block.series.row is market.Heartbeat:
        return encode_rows(market.Heartbeats.of(block.rows).runs)[1:-1]
    # Tuples and lists are spelled alike, and there are thousands of them.
    plain = issubclass(block.series.row, tuple)
    return encode_rows(block.rows if plain else [encode_row(row) for row in block.rows])[1:-1]


def _fill_list(whole: bytes, name: str, items: bytes) -> bytes:
    """Put items into the empty list of that name; only texts and numbers come before it."""
    before, empty, after = whole.partition(f',"{name}":[],'.encode())
    if not empty:
        raise ValueError(f"{name} is no empty list")
    return b"".join((before, empty[:-2], items, b"],", after))


def bundle_hash(bundle: Bundle) -> Digest:
    return digest(content(bundle))


def read_bundle(data: bytes) -> Bundle:
    """The bundle of these bytes. `Malformed` for anything `content` does not write."""
    try:
        plain: Any = json.loads(data)
        if plain["version"] != VERSION:
            raise Malformed(f"This bundle has version {plain['version']}; this Zuno reads version {VERSION}.")
        bundle = Bundle(
            symbol=Symbol(plain["symbol"]),
            mode=market.Mode(plain["mode"]),
            as_of=plain["asOf"],
            origin=plain["origin"],
            blocks=tuple(map(_decode_block, plain["blocks"])),
            absent=tuple(Absent(gone["what"], gone["why"]) for gone in plain["absent"]),
            slots=tuple(Slot(slot["name"], slot["content"], slot["asOf"], slot["source"]) for slot in plain["slots"]),
        )
        if content(bundle) != data:  # most often at once, and ten times faster than to encode value by value
            decode_canonical(data)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Malformed(f"These bytes are no bundle of the trading desk ({type(error).__name__}).") from error
    return bundle


def _decode_block(plain: Any) -> Block:
    series = market.parse_series(plain["series"])
    if series.row is market.Heartbeat:
        rows: Sequence[Any] = market.Heartbeats((Millis(first), count) for first, count in plain["rows"])
    else:
        rows = tuple(decode_row(series.row, row) for row in plain["rows"])
    return Block(series, rows, plain["asOf"], plain["ageSeconds"], plain["staleAfter"], tuple(plain["notes"]))
