"""An account's state as bytes, so that the next process folds only what was written since.

A snapshot is the live part (small, whole each time) and what was added to the past since the snapshot before. All of
them together give the same book as all events do, byte for byte (`dump_whole`). A changed fold raises `FOLD_EDITION`:
older snapshots are ignored then.
"""

from __future__ import annotations

from _collections_abc import dict_items, dict_values
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from zuno.kernel.errors import Broken
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import VENUES, Venue
from zuno.trading.model.account import Liquidity, RestingOrder
from zuno.trading.model.orders import ClientId, Fill, OrderStatus
from zuno.trading.model.sleeves import SleeveShares
from zuno.trading.model.trade_events import (
    Adopted,
    CashMoved,
    DayMarked,
    LockSet,
    Mandate,
    MandateGranted,
    Protection,
    TradeSummary,
)
from zuno.trading.rules.book_state import (
    Ledger,
    LedgerAccount,
    NetPosition,
    OpenTrade,
    RealisedResult,
    SleeveCash,
    TrackedIntent,
    TrackedOrder,
)
from zuno.trading.rules.performance import AccountHistory, AccountStep, Posting, SealedParts

FOLD_EDITION: Final = 4
"""Of `TradingBook` and `AccountHistory`: raised whenever the same events add up to another state."""


@dataclass(slots=True)
class LivePart:
    """What grows little with an account's age; the first thirteen fields as the book has them, but for `mandate`, which
    is its `granted`."""

    count: int
    newest: Millis
    recorded: bool | None
    opened: bool
    trades: dict[str, OpenTrade]
    finished: dict[str, OpenTrade]
    mandate: MandateGranted | None
    mandates: list[Mandate]
    resting: dict[str, RestingOrder]
    liquidity: dict[Symbol, Liquidity]
    ledger: Ledger[Venue]
    shares: SleeveShares
    day_marks: list[DayMarked]
    locks: list[LockSet]
    lifted: list[tuple[Protection, Symbol | None, Millis]]
    sleeves: list[tuple[SleeveCash, dict[LedgerAccount, Decimal], Decimal, Decimal]]
    """Each one's balances, debits and credits."""
    nets: list[tuple[Venue, Symbol, NetPosition]]
    keys: list[str]
    dust: dict[Venue, dict[Symbol, Decimal]] = field(default_factory=dict)
    moves: list[CashMoved] = field(default_factory=list)
    drifts: list[Adopted] = field(default_factory=list)


@dataclass(slots=True)
class PastPart:
    """What was added since the snapshot before. Orders and intents that changed again are given anew."""

    orders: list[TrackedOrder]
    intents: list[TrackedIntent]
    fills: list[Fill]
    payments: list[tuple[Venue, str]]
    closed: list[TradeSummary]
    results: list[RealisedResult]
    postings: list[Posting]
    steps: list[AccountStep]


_LIVE: Final = TypeAdapter(LivePart)
_PAST: Final = TypeAdapter(PastPart)
_AS_THEY_ARE: Final = tuple(name for name in [*LivePart.__dataclass_fields__][:13] if name != "mandate")
_LISTS: Final = {"closed": TradeSummary, "results": RealisedResult, "postings": Posting, "steps": AccountStep}
_EXCHANGES: Final = {str(exchange.value): exchange for exchange in VENUES}


class _PackedList(list[Any]):
    """Items as JSON until somebody looks at them: most of a long past is never looked at."""

    def __init__(self, items: Iterable[Any], shape: TypeAdapter[Any]) -> None:
        super().__init__(items)
        self._shape = shape
        self._opened = False

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[index] for index in range(*place.indices(len(self)))]
        item = super().__getitem__(place)
        if type(item) is dict:
            item = self[place] = _open(self._shape, item)
        return item

    def __iter__(self) -> Iterator[Any]:
        for place in range(0 if self._opened else len(self)):
            self[place]
        self._opened = True
        return super().__iter__()

    def copy(self) -> _PackedList:
        return _PackedList(super().copy(), self._shape)

    def __reversed__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self) - 1, -1, -1))


class _PackedDict(dict[Any, Any]):
    """The same by key."""

    def __init__(self, items: Mapping[Any, Any], shape: TypeAdapter[Any]) -> None:
        super().__init__(items)
        self._shape = shape

    def __getitem__(self, key: Any) -> Any:
        item = super().__getitem__(key)
        if type(item) is dict:
            item = self[key] = _open(self._shape, item)
        return item

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if super().__contains__(key) else default

    def copy(self) -> _PackedDict:
        return _PackedDict(super().copy(), self._shape)

    def values(self) -> dict_values[Any, Any]:
        for key in self:
            self[key]
        return super().values()

    def items(self) -> dict_items[Any, Any]:
        self.values()
        return super().items()


def _open(shape: TypeAdapter[Any], item: object) -> Any:
    try:
        return shape.validate_python(item)
    except ValidationError as error:
        raise Broken("A snapshot of an account holds what is none of its parts.") from error


def dump_live(book: AccountHistory) -> bytes:
    own = {name: getattr(book, name) for name in _AS_THEY_ARE}
    lifted = [(*place, at) for place, at in book.lifted.items()]
    ledger = book.sleeve_ledger
    sleeves = [(place, held, ledger.debits[place], ledger.credits[place]) for place, held in ledger.balances.items()]
    nets = [(*place, net) for place, net in book.nets.items()]
    own.update(
        mandate=book.granted,
        locks=[*book.locks.values()],
        lifted=lifted,
        dust=book.dust,
        moves=book.moves,
        drifts=book.drifts,
        sleeves=sleeves,
        nets=nets,
    )
    return _LIVE.dump_json(LivePart(keys=[*book.keys], **own))


def dump_past(book: AccountHistory, sealed: SealedParts) -> bytes:
    """What came to the past since `sealed`."""
    grown: dict[str, Any] = {
        name: getattr(book, name)[sealed.lengths.get(name, 0) :] for name in (*_LISTS, "fills", "payments")
    }
    orders = [order for id, order in book.orders.items() if id in sealed.orders]
    intents = [intent for id, intent in book.intents.items() if id in sealed.intents]
    return _PAST.dump_json(PastPart(orders=orders, intents=intents, **grown))


def dump_whole(book: AccountHistory) -> tuple[bytes, bytes]:
    """Live part and the whole past: equal bytes, equal books."""
    return dump_live(book), dump_past(book, SealedParts(orders={*book.orders}, intents={*book.intents}))


def mark_sealed(book: AccountHistory) -> None:
    """All of the book is in a snapshot now."""
    lengths = {name: len(getattr(book, name)) for name in (*_LISTS, "fills", "payments")}
    book.sealed = SealedParts(count=book.count, lengths=lengths)


def restore_book(live: bytes, pasts: Iterable[bytes]) -> AccountHistory:
    """The book of a snapshot. `Broken` where it cannot be one."""
    book = AccountHistory()
    try:
        now = _LIVE.validate_json(live)
        parts = [orjson.loads(past) for past in pasts]
        orders = {raw["request"]["clientId"]: raw for part in parts for raw in part["orders"]}
        intents = {raw["intent"]["id"]: raw for part in parts for raw in part["intents"]}
        fills = {(_EXCHANGES[raw["exchange"]], raw["id"]): raw for part in parts for raw in part["fills"]}
        payments = [(_EXCHANGES[exchange], id) for part in parts for exchange, id in part["payments"]]
        lists = {name: [raw for part in parts for raw in part[name]] for name in _LISTS}
        open_orders = [id for id, raw in orders.items() if not OrderStatus(raw["status"]).final]
        open_intents = [id for id, raw in intents.items() if raw["state"] == "open"]
    except (ValueError, KeyError, TypeError) as error:
        raise Broken("A snapshot of an account does not hold one.") from error
    book.orders = _PackedDict(orders, TypeAdapter(TrackedOrder))
    book.intents = _PackedDict(intents, TypeAdapter(TrackedIntent))
    book.fills_by_id, book.payment_ids = _PackedDict(fills, TypeAdapter(Fill)), dict.fromkeys(payments)
    for name, shape in _LISTS.items():
        setattr(book, name, _PackedList(lists[name], TypeAdapter(shape)))
    for name in _AS_THEY_ARE:
        setattr(book, name, getattr(now, name))
    traded = (trade for trade in now.trades.values() if not trade.manual)
    book.positions = {(trade.exchange, trade.symbol, trade.sleeve): trade for trade in traded}
    book.open_orders = {ClientId(id): book.orders[id] for id in open_orders}
    book.open_intents = {id: book.intents[id] for id in open_intents}
    book.locks = {(lock.protection, lock.symbol): lock for lock in now.locks}
    book.lifted = {(protection, symbol): at for protection, symbol, at in now.lifted}
    book.granted, book.dust, book.moves, book.drifts = now.mandate, now.dust, now.moves, now.drifts
    ledger = book.sleeve_ledger
    for place, balances, debits, credits in now.sleeves:
        ledger.balances[place], ledger.debits[place], ledger.credits[place] = balances, debits, credits
    book.nets = {(venue, symbol): net for venue, symbol, net in now.nets}
    book.keys = dict.fromkeys(now.keys)
    for exchange in book.venues:
        book.check_ledger(exchange)
    mark_sealed(book)
    return book
