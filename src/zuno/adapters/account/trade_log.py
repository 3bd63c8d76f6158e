"""The events of trading accounts, in the journal or in memory. Changes of an old home's paper book (entries of kind
`book_change`) are read as manual events of its paper account."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import TypeAdapter, ValidationError

from zuno.journal.port import Author, Entry, Journal
from zuno.kernel.canonical import canonical, digest, to_json
from zuno.kernel.errors import Broken, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.account import BOOK_CHANGE, BookEntry
from zuno.trading.model.memory import ClosedTrade
from zuno.trading.model.trade_events import TRADE_EVENTS, ManualChange, TradeEntry, TradeEvent, paper_account
from zuno.trading.ports.trade_log import TradeLog
from zuno.trading.rules.trading_book import TradingBook

_DESK: Final = Author("desk")
_ENTRY: Final = TypeAdapter(TradeEntry)
_BOOK_ENTRY: Final = TypeAdapter(BookEntry)


class MemoryTradeLog:
    """The `TradeLog` that lives as long as its process. Nothing awaits, so reading and writing are one step."""

    def __init__(self) -> None:
        self._logs: dict[str, list[TradeEvent]] = {}

    async def events(self, account: str, after: int = 0) -> tuple[TradeEvent, ...]:
        return tuple(self._logs.get(account, [])[after:])

    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        log = self._logs.setdefault(account, [])
        if len(log) < after:
            raise _gap(account, len(log), after)
        if len(log) > after:
            if log[after : after + len(events)] == list(events):
                return
            raise _conflict(account, after)
        log.extend(events)

    async def accounts(self) -> tuple[str, ...]:
        return tuple(sorted(account for account, log in self._logs.items() if log))

    def list_events(self, account: str) -> Sequence[TradeEvent]:
        return self._logs.get(account, [])


class OwnedTradeLog:
    """For accounts with one usual writer: events of others are read only after an append conflicts."""

    def __init__(self, log: TradeLog) -> None:
        self._log = log
        self._counts: dict[str, int] = {}

    async def events(self, account: str, after: int = 0) -> tuple[TradeEvent, ...]:
        if self._counts.get(account) == after:
            return ()
        events_read = await self._log.events(account, after)
        self._counts[account] = after + len(events_read)
        return events_read

    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        self._counts.pop(account, None)
        await self._log.append(account, events, after)
        self._counts[account] = after + len(events)

    async def accounts(self) -> tuple[str, ...]:
        return await self._log.accounts()


@dataclass(slots=True)
class _AccountIndex:
    """Where the events of one account stand in the journal."""

    count: int = 0
    firsts: list[int] = field(default_factory=list)
    """Number of each entry's first event."""
    places: list[int] = field(default_factory=list)
    """Its place in the journal; of a change of an old paper book 0: these are kept below."""
    taken_over: list[TradeEvent] = field(default_factory=list)


class JournalTradeLog:
    """The `TradeLog` over the journal. It remembers how far it has read, so a second look reads only what is new."""

    def __init__(
        self, journal: Callable[[], Awaitable[Journal]], read: Callable[[], Awaitable[Journal]] | None = None
    ) -> None:
        """`read`: the journal for reading alone, for homes that cannot be written."""
        self._journal = journal
        self._read = read or journal
        self._read_to = 0
        self._indexes: dict[str, _AccountIndex] = {}
        self._took_over = False
        self._looking = asyncio.Lock()

    async def events(self, account: str, after: int = 0) -> tuple[TradeEvent, ...]:
        async with self._looking:
            return await self._events(account, after)

    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        if events:
            async with self._looking:
                await self._append(account, events, after)

    async def accounts(self) -> tuple[str, ...]:
        async with self._looking:
            await self._read_new("")
        return tuple(sorted(account for account, index in self._indexes.items() if index.count))

    async def _events(self, account: str, after: int) -> tuple[TradeEvent, ...]:
        fresh = await self._read_new(account)
        index = self._indexes.get(account)
        if index is None or after >= index.count:
            return ()
        if index.count - len(fresh) <= after:  # all that is asked for has just been read
            return tuple(fresh[len(fresh) - (index.count - after) :])
        return await self._read_again(account, index, after)

    async def _append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        await self._read_new(account)
        index = self._indexes.get(account)
        here = 0 if index is None else index.count
        if here < after:
            raise _gap(account, here, after)
        if here > after:
            if (await self._events(account, after))[: len(events)] == tuple(events):
                return
            raise _conflict(account, after)
        entry = TradeEntry(account=account, first=after + 1, events=tuple(events))
        # The number is part of the request's name, and a request has one entry of a kind: whoever is second finds the
        # first one's events in their place.
        place = f"trade_{digest(account.encode())[:16]}_{entry.first}"
        journal = await self._journal()
        stands = await journal.append_once(kind=TRADE_EVENTS, author=_DESK, payload=entry, request_id=place)
        if stands.payload != to_json(entry):
            raise _conflict(account, after)

    async def _read_new(self, account: str) -> list[TradeEvent]:
        """Index everything written since the last look; returns the new events of this account."""
        journal = await self._read()
        fresh: list[TradeEvent] = []
        if not self._took_over:
            await self._take_over_books(journal)
            self._took_over = True
            fresh += self._indexes[account].taken_over if account in self._indexes else []
        async for entry in journal.entries(kind=TRADE_EVENTS, after=self._read_to):
            written = _read_entry(entry)
            index = self._indexes.setdefault(written.account, _AccountIndex())
            if written.first != index.count + 1:
                raise Broken(
                    f"Account {written.account} has an event {written.first} behind {index.count} others (entry "
                    f"{entry.seq}); run `zuno journal verify`."
                )
            index.firsts.append(written.first)
            index.places.append(entry.seq)
            index.count += len(written.events)
            self._read_to = entry.seq
            if written.account == account:
                fresh += written.events
        return fresh

    async def _read_again(self, account: str, index: _AccountIndex, after: int) -> tuple[TradeEvent, ...]:
        """Read the journal again from the entry that holds event `after` + 1."""
        events = list(index.taken_over[after:])
        entry_of = max(0, bisect_right(index.firsts, after + 1) - 1)
        if entry_of < len(index.places):
            journal = await self._read()
            async for entry in journal.entries(kind=TRADE_EVENTS, after=index.places[entry_of] - 1):
                if entry.seq > self._read_to:
                    break
                if entry.payload.get("account") == account:
                    written = _read_entry(entry)
                    events += written.events[max(0, after + 1 - written.first) :]
        if len(events) != index.count - after:
            raise Unavailable(f"Account {account} had {index.count} events; the journal does not hold them any more.")
        return tuple(events)

    async def _take_over_books(self, journal: Journal) -> None:
        async for entry in journal.entries(kind=BOOK_CHANGE):
            try:
                written = _BOOK_ENTRY.validate_json(canonical(entry.payload), strict=True)
            except ValidationError as error:
                raise Broken(f"Entry {entry.seq} of the journal is no change of a paper book.") from error
            index = self._indexes.setdefault(paper_account(written.origin), _AccountIndex())
            if written.number != index.count + 1:
                raise Broken(
                    f"The paper book of {written.origin} has a change {written.number} behind {index.count} others "
                    f"(entry {entry.seq}); run `zuno journal verify`."
                )
            index.count += 1
            index.taken_over.append(ManualChange(at=written.change.at, change=written.change))


def _read_entry(entry: Entry) -> TradeEntry:
    try:
        return _ENTRY.validate_json(canonical(entry.payload), strict=True)
    except ValidationError as error:
        raise Broken(f"Entry {entry.seq} of the journal holds no events of a trading account.") from error


def _gap(account: str, here: int, after: int) -> Refused:
    return Refused(f"Account {account} has {here} events, not {after}; look again.")


def _conflict(account: str, after: int) -> Refused:
    return Refused(f"Account {account} has more than {after} events by now: somebody else wrote; look again.")


class MemoryTradeRecord:
    """The `TradeRecord` of these trades, by market."""

    def __init__(self, trades: Mapping[str, Iterable[ClosedTrade]] | None = None) -> None:
        self._trades = {
            origin: tuple(sorted(closed, key=lambda trade: trade.closed)) for origin, closed in (trades or {}).items()
        }

    async def closed_trades(self, origin: str, before: Millis) -> tuple[ClosedTrade, ...]:
        return tuple(trade for trade in self._trades.get(origin, ()) if trade.closed < before)


class LoggedTradeRecord:
    """The `TradeRecord` of a market's paper account; each call reads only what is new."""

    def __init__(self, log: TradeLog, counts: Callable[[str], Awaitable[bool]] | None = None) -> None:
        """`counts`: whether the trades of a run count; for live trading those over recorded data do not."""
        self._log = log
        self._counts = counts
        self._books: dict[str, TradingBook] = {}
        self._known: dict[str | None, bool] = {None: False}

    async def closed_trades(self, origin: str, before: Millis) -> tuple[ClosedTrade, ...]:
        from zuno.trading.rules.calibration import list_closed_trades  # loads pandas, which reading an account need not

        account = paper_account(origin)
        book = self._books.setdefault(account, TradingBook())
        try:
            book.apply_all(await self._log.events(account, book.count))
        except Refused as error:
            del self._books[account]
            raise Broken(f"The account {account} contradicts itself: {error}") from error
        if self._counts is None:
            return list_closed_trades(book.closed, before)
        for run in {summary.decision for summary in book.closed}:
            if run is not None and run not in self._known:
                self._known[run] = await self._counts(run)
        return list_closed_trades([summary for summary in book.closed if self._known[summary.decision]], before)
