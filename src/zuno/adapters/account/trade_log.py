"""The events of trading accounts, in the journal or in memory. What an old home wrote by hand before there was a ledger
(entries of kind `book_change`) are the first events of its paper account; they are read in place and never copied."""

from __future__ import annotations

import asyncio
import logging
import zlib
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from zuno.adapters.account.account_snapshot import (
    FOLD_EDITION,
    dump_live,
    dump_past,
    dump_whole,
    mark_sealed,
    restore_book,
)
from zuno.journal.port import Author, Entry, Journal
from zuno.kernel.canonical import canonical, digest, to_json
from zuno.kernel.errors import Broken, Refused, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.kernel.wire import Hex64, Wire
from zuno.trading.model.account import BookChange
from zuno.trading.model.trade_events import (
    TRADE_EVENTS,
    MandateGranted,
    ManualChange,
    TradeEntry,
    TradeEvent,
    paper_account,
)
from zuno.trading.rules.performance import AccountHistory, AccountLog, trace_account
from zuno.trading.rules.trading_book import TradingBook

if TYPE_CHECKING:
    from zuno.trading.model.memory import ClosedTrade

_DESK: Final = Author("desk")
_ENTRY: Final = TypeAdapter(TradeEntry)
_log: Final = logging.getLogger(__name__)
ACCOUNT_SNAPSHOT: Final = "account_snapshot"
"""The kind of the journal's entries that hold an account as its events add up to it."""
SNAPSHOT_EVERY: Final = 250
_MOST_BEHIND: Final = 2_000
"""Events that whoever writes one more folds for a snapshot; a longer past waits for somebody who only looks."""
_MOST_CHARS: Final = 3 * 1024 * 1024
_EVER: Final = 2**62
_VENUE_WORD: Final = "venue:"
"""A paper exchange's own books: nobody looks at them."""


class SnapshotRecord(Wire):
    """One account after `count` events, as the fold of `edition` has it. It is signed and chained like every entry, and
    believed only where it continues the snapshot before it and entry `last` is the one that holds event `count`;
    `journal verify --all` folds all events again and compares."""

    account: str
    edition: int
    after: Annotated[int, Field(ge=0)]
    """Events of the snapshot that it continues; 0: it begins anew."""
    count: Annotated[int, Field(ge=1)]
    first: Annotated[int, Field(ge=1)]
    """Number of the first event in the last entry it folds."""
    last: Hex64
    """Hash of that entry."""
    live: str
    past: str
    """Compressed, base64."""


class OldEntry(Wire):
    """An entry of kind `book_change`: one by hand in the paper account of a market, numbered from 1 without a gap."""

    origin: str
    number: Annotated[int, Field(ge=1)]
    change: Annotated[BookChange, Field(discriminator="kind")]


class MemoryTradeLog:
    """The `AccountLog` that lives as long as its process. Nothing awaits, so reading and writing are one step."""

    def __init__(self) -> None:
        self._logs: dict[str, list[TradeEvent]] = {}
        self._histories: dict[str, AccountHistory] = {}

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

    async def history(self, account: str) -> AccountHistory:
        book = self._histories.get(account) or AccountHistory()
        if events := await self.events(account, book.count):
            book = book.fork()
            _fold(account, book, events)
        self._histories[account] = book
        return book

    async def open_book(self, account: str, upto: int | None = None) -> AccountHistory:
        book = AccountHistory()
        _fold(account, book, (await self.events(account))[:upto])
        return book

    def list_events(self, account: str) -> Sequence[TradeEvent]:
        return self._logs.get(account, [])


class OwnedTradeLog:
    """For accounts with one usual writer: events of others are read only after an append conflicts."""

    def __init__(self, log: AccountLog) -> None:
        self._log = log
        self._counts: dict[str, int] = {}
        self.accounts, self.history = log.accounts, log.history

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

    async def open_book(self, account: str, upto: int | None = None) -> AccountHistory:
        book = await self._log.open_book(account, upto)
        if upto is None:
            self._counts[account] = book.count
        return book


class JournalTradeLog:
    """The `AccountLog` over the journal. Entries are found by the account and the number of their first event, so that
    looking again costs what is new, and other accounts cost nothing."""

    def __init__(
        self,
        journal: Callable[[], Awaitable[Journal]],
        read: Callable[[], Awaitable[Journal]] | None = None,
        restored: int = 0,
    ) -> None:
        """`read`: the journal for reading alone, for homes that cannot be written. `restored`: the newest entry when
        this home was restored from a backup; mandates up to it do not count."""
        self._journal = journal
        self._read = read or journal
        self._restored_at = self._searched_to = restored
        self._granted_since: set[str] = set()  # hashes of mandates after it, as far as was searched
        self._counts: dict[str, int] = {}
        """Events up to the end of the last entry that was read or written."""
        self._seen_to: dict[str, int] = {}
        """The number of that entry in the journal."""
        self._ends_by_name: dict[str, int] = {}
        self._named_to = 0
        self._old_entries: dict[str, list[TradeEvent]] | None = None
        self._looking = asyncio.Lock()
        self._folding = asyncio.Lock()
        self._histories: dict[str, AccountHistory] = {}
        self._ends: dict[str, Entry] = {}
        """The last entry that was folded."""

    async def events(self, account: str, after: int = 0) -> tuple[TradeEvent, ...]:
        async with self._looking:
            return await self._events(account, after)

    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        if events:
            async with self._looking:
                await self._append(account, events, after)
            count = after + len(events)
            if count // SNAPSHOT_EVERY > after // SNAPSHOT_EVERY and not account.startswith(_VENUE_WORD):
                await self._keep_sealed(account, count)

    async def accounts(self) -> tuple[str, ...]:
        async with self._looking:
            journal = await self._read()
            ends = self._ends_by_name = self._ends_by_name or {
                account: len(events) for account, events in (await self._read_old_entries(journal)).items()
            }
            async for entry in journal.entries(kind=TRADE_EVENTS, after=self._named_to):
                written = _read_entry(entry)
                end = ends.get(written.account, 0)
                if written.first != end + 1:
                    raise Broken(
                        f"Account {written.account} has an event {written.first} behind {end} others (entry "
                        f"{entry.seq}); run `zuno journal verify`."
                    )
                ends[written.account], self._named_to = end + len(written.events), entry.seq
            return tuple(sorted(ends))

    async def _find_outdated(self, journal: Journal, book: AccountHistory) -> str:
        """The hash of the mandate that stands in the book, where it is older than the backup of the home."""
        if not self._restored_at or book.granted is None:
            return ""
        async for entry in journal.entries(kind=TRADE_EVENTS, after=self._searched_to):
            events = _read_entry(entry).events
            self._granted_since |= {event.hash for event in events if isinstance(event, MandateGranted)}
            self._searched_to = entry.seq
        return "" if book.granted.hash in self._granted_since else book.granted.hash

    async def history(self, account: str) -> AccountHistory:
        """A cold start folds what was written since the last snapshot, a later look what is new. Where `SNAPSHOT_EVERY`
        events have come together another snapshot is written, if the home can be."""
        async with self._folding:
            journal = await self._read()
            known = self._histories.pop(account, None)
            book = await self._restore(journal, account) if known is None else known
            book, last = await self._fold_new(journal, account, book, shared=known is not None)
            book.outdated = await self._find_outdated(journal, book)
            if last is not None:
                self._ends[account] = last
            if book.count // SNAPSHOT_EVERY > book.sealed.count // SNAPSHOT_EVERY:
                try:
                    await self._seal(account, book)
                except ZunoError as error:  # whatever was asked is answered without one
                    _log.info("no snapshot of account %s was written: %s", account, error)
            self._histories[account] = book
            return book

    async def open_book(self, account: str, upto: int | None = None) -> AccountHistory:
        journal, last = await self._read(), _EVER if upto is None else upto
        book = await self._restore(journal, account, last)
        book, _ = await self._fold_new(journal, account, book, last)
        book.outdated = await self._find_outdated(journal, book)
        return book

    async def verify_snapshots(self) -> tuple[str, ...]:
        """Fold all events of each account again and compare: what is wrong. A snapshot that does not fit is replaced by
        one that does, if the home can be written."""
        journal, wrong = await self._read(), []
        for account in await self.accounts():
            restored, events = await self._restore(journal, account), await self.events(account)
            if not restored.count or dump_whole(trace_account(events[: restored.count])) == dump_whole(restored):
                continue
            wrong.append(f"the snapshot of account {account} after {restored.count} events is not what they add up to")
            self._histories[account] = AccountHistory()  # folded from the first event on, it is sealed anew
            await self.history(account)
        return tuple(wrong)

    async def _keep_sealed(self, account: str, count: int) -> None:
        """After an append, which stands whatever comes of this."""
        try:
            if account not in self._histories:
                self._histories[account] = await self._restore(await self._read(), account)
            if count - self._histories[account].count <= _MOST_BEHIND:
                await self.history(account)
        except ZunoError as error:
            _log.info("account %s was not folded: %s", account, error)

    async def _fold_new(
        self, journal: Journal, account: str, book: AccountHistory, upto: int = _EVER, *, shared: bool = False
    ) -> tuple[AccountHistory, Entry | None]:
        """The book up to date, or up to so many events, and the last entry that was read for it. `shared`: others look
        at this book, which stays as it is."""
        last = None
        if not book.count and (old := (await self._read_old_entries(journal)).get(account, [])[:upto]):
            book, shared = book.fork() if shared else book, False
            _fold(account, book, old)
        while book.count < upto and (entry := await self._find_entry(journal, account, book.count + 1)):
            book, shared = book.fork() if shared else book, False
            _fold(account, book, _read_entry(entry).events)
            last = entry
        if book.count < upto:
            await self._check_end(journal, account, book.count)
        self._counts[account] = max(book.count, self._counts.get(account, 0))
        return book, last

    async def _restore(self, journal: Journal, account: str, upto: int = _EVER) -> AccountHistory:
        """By its snapshots, of the first `upto` events; from nothing where they do not fit."""
        records: list[SnapshotRecord] = []
        async for entry in journal.entries(request_id=_snapshot_name(account), kind=ACCOUNT_SNAPSHOT):
            record = SnapshotRecord.model_validate(dict(entry.payload))
            records = records if record.after else []
            if record.account == account and record.after == (records[-1].count if records else 0):
                records.append(record)  # another process may have written the same one
        records = [record for record in records if record.count <= upto]
        if not records:
            return AccountHistory()
        newest = records[-1]
        last = await self._find_entry(journal, account, newest.first)
        try:
            if last is None or last.hash != newest.last:
                raise Broken("its last entry is not the account's")
            if newest.first - 1 + len(_read_entry(last).events) != newest.count:
                raise Broken("its last entry does not end there")
            return restore_book(_unpack(newest.live), [_unpack(record.past) for record in records])
        except (Broken, ValueError, zlib.error) as error:
            _log.warning("the snapshot of account %s after %d events is ignored: %s", account, newest.count, error)
            return AccountHistory()

    async def _seal(self, account: str, book: AccountHistory) -> None:
        journal, last = await self._journal(), self._ends.get(account)
        if last is None:
            return  # entries of an old home alone
        record = SnapshotRecord(
            account=account,
            edition=FOLD_EDITION,
            after=book.sealed.count,
            count=book.count,
            first=_read_entry(last).first,
            last=last.hash,
            live=_pack(dump_live(book)),
            past=_pack(dump_past(book, book.sealed)),
        )
        if len(record.past) + len(record.live) > _MOST_CHARS:
            raise Refused("the account is too large for one entry")
        await journal.append(kind=ACCOUNT_SNAPSHOT, author=_DESK, payload=record, request_id=_snapshot_name(account))
        mark_sealed(book)

    async def _find_entry(self, journal: Journal, account: str, first: int) -> Entry | None:
        """The entry that begins with this event of an account."""
        entries = await journal.latest(1, request_id=_place(account, first), kind=TRADE_EVENTS)
        if not entries:
            return None
        written = _read_entry(entries[0])
        if (written.account, written.first) != (account, first):
            raise Broken(f"Entry {entries[0].seq} is not event {first} of account {account}.")
        self._seen_to[account] = max(entries[0].seq, self._seen_to.get(account, 0))
        return entries[0]

    async def _check_end(self, journal: Journal, account: str, count: int) -> None:
        """`Broken` where an account goes on behind events that are missing, `Unavailable` where this process has read
        more of it: whoever took it for whole would order by half a book."""
        known, seen_to = self._counts.get(account, 0), self._seen_to.get(account, 0)
        later = journal.entries(request_id=_place(account, "*"), kind=TRADE_EVENTS, after=seen_to)
        goes_on = count < known or await anext(later, None) is not None
        if not goes_on or await self._find_entry(journal, account, count + 1):  # written just now
            return
        if count < known:
            raise Unavailable(f"Account {account} had {known} events; the journal does not hold them any more.")
        raise Broken(f"Event {count + 1} of account {account} is missing; run `zuno journal verify`.")

    async def _events(self, account: str, after: int) -> tuple[TradeEvent, ...]:
        journal, known = await self._read(), self._counts.get(account, 0)
        events = (await self._read_old_entries(journal)).get(account, [])[after:]
        while entry := await self._find_entry(journal, account, after + len(events) + 1):
            events += _read_entry(entry).events
        if after and not events and after != known:  # amid an entry, or beyond the last one
            return (await self._events(account, 0))[after:]
        await self._check_end(journal, account, after + len(events))
        self._counts[account] = after + len(events)
        return tuple(events)

    async def _append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        here = await self._events(account, after)
        if self._counts[account] < after:
            raise _gap(account, self._counts[account], after)
        if here:
            if here[: len(events)] == tuple(events):
                return
            raise _conflict(account, after)
        entry = TradeEntry(account=account, first=after + 1, events=tuple(events))
        # The number is part of the request's name, and a request has one entry of a kind: whoever is second finds the
        # first one's events in their place.
        journal, place = await self._journal(), _place(account, entry.first)
        stands = await journal.append_once(kind=TRADE_EVENTS, author=_DESK, payload=entry, request_id=place)
        if stands.payload != to_json(entry):
            raise _conflict(account, after)
        self._counts[account], self._seen_to[account] = after + len(events), stands.seq

    async def _read_old_entries(self, journal: Journal) -> Mapping[str, list[TradeEvent]]:
        """By account: the first events there."""
        if self._old_entries is None:
            books: dict[str, list[TradeEvent]] = {}
            async for entry in journal.entries(kind="book_change"):
                try:
                    written = OldEntry.model_validate_json(canonical(entry.payload), strict=True)
                except ValidationError as error:
                    raise Broken(f"Entry {entry.seq} of the journal is no entry by hand.") from error
                book = books.setdefault(paper_account(written.origin), [])
                book.append(ManualChange(at=written.change.at, change=written.change))
                if written.number != len(book):
                    raise Broken(
                        f"The account of {written.origin} has an entry {written.number} behind {len(book) - 1} "
                        f"others (entry {entry.seq}); run `zuno journal verify`."
                    )
            self._old_entries = books
        return self._old_entries


def _fold(account: str, book: TradingBook, events: Iterable[TradeEvent]) -> None:
    try:
        book.apply_all(events)
    except Refused as error:
        raise Broken(f"The events of account {account} contradict each other: {error}") from error


def _place(account: str, first: int | str) -> str:
    return f"trade_{digest(account.encode())[:16]}_{first}"


def _snapshot_name(account: str) -> str:
    """Another edition of the fold has snapshots of its own."""
    return f"fold{FOLD_EDITION}_{digest(account.encode())[:16]}"


def _pack(data: bytes) -> str:
    return b64encode(zlib.compress(data)).decode()


def _unpack(text: str) -> bytes:
    return zlib.decompress(b64decode(text, validate=True))


def _read_entry(entry: Entry) -> TradeEntry:
    try:
        return _ENTRY.validate_json(canonical(entry.payload), strict=True)
    except ValidationError as error:
        raise Broken(f"Entry {entry.seq} of the journal holds no events of a trading account.") from error


def _gap(account: str, here: int, after: int) -> Refused:
    return Refused(f"Account {account} has {here} events, not {after}; look again.")


def _conflict(account: str, after: int) -> Refused:
    return Refused(f"Account {account} has more than {after} events by now: somebody else wrote; look again.")


class LoggedTradeRecord:
    """The `TradeRecord` of a market's paper account; each call reads only what is new."""

    def __init__(self, log: AccountLog, counts: Callable[[str], Awaitable[bool]] | None = None) -> None:
        """`counts`: whether the trades of a run count; for live trading those over recorded data do not."""
        self._log = log
        self._counts = counts
        self._known: dict[str | None, bool] = {None: False}

    async def closed_trades(self, origin: str, before: Millis) -> tuple[ClosedTrade, ...]:
        from zuno.trading.rules.calibration import list_closed_trades  # loads pandas, which reading an account need not

        book = await self._log.history(paper_account(origin))
        if self._counts is None:
            return list_closed_trades(book.closed, before)
        for run in {summary.decision for summary in book.closed}:
            if run is not None and run not in self._known:
                self._known[run] = await self._counts(run)
        return list_closed_trades([summary for summary in book.closed if self._known[summary.decision]], before)
