"""The exam of `TradeLog`: the journal's and the one in memory sit it unchanged."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from tests.unit.trading.long_account import list_entries
from tests.wire.accounts import FUTURES, SPOT, open_account
from zuno.adapters.account import account_snapshot, trade_log
from zuno.adapters.account.account_snapshot import dump_whole
from zuno.adapters.account.trade_log import ACCOUNT_SNAPSHOT, JournalTradeLog, MemoryTradeLog
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.sqlite import open_sqlite
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author, Entry, Journal
from zuno.kernel.canonical import to_json
from zuno.kernel.errors import Broken, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.model.account import BOOK_CHANGE, BookEntry, LiquidityStated
from zuno.trading.model.orders import Fill, OrderSide
from zuno.trading.model.trade_events import (
    TRADE_EVENTS,
    FillBooked,
    LockSet,
    ManualChange,
    Protection,
    TradeEvent,
    paper_account,
)
from zuno.trading.rules.performance import AccountHistory, AccountLog, trace_account
from zuno.trading.service.paper_book import read_before

HERE, THERE = "paper:SYNTHETIC seed 1", "paper:SYNTHETIC seed 1:second"
Open = Callable[[], AccountLog]


class CountingJournal(ChainedJournal):
    """Counts the entries that were read."""

    read = 0

    async def _read_row(self, row: object) -> Entry:
        CountingJournal.read += 1
        return await super()._read_row(row)  # type: ignore[arg-type]


def journal_in(folder: Path) -> CountingJournal:
    key = KeyFile(folder / "node.key")
    return CountingJournal(open_sqlite(folder), key, code=lambda: "test", now=lambda: Millis(1_700_000_000_000))


def log_of(journal: Journal) -> JournalTradeLog:
    async def own() -> Journal:
        return journal

    return JournalTradeLog(own)


@pytest.fixture(params=["journal", "memory"])
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Another handle on the same log, as another process would hold."""
    if request.param == "memory":
        only = MemoryTradeLog()
        return lambda: only
    return lambda: log_of(journal_in(tmp_path))


def lock(at: int) -> LockSet:
    return LockSet(at=Millis(at), protection=Protection.COOLDOWN, symbol=None, until=None, reason=str(at))


def fill(at: int) -> FillBooked:
    return FillBooked(
        at=Millis(at),
        fill=Fill(
            id=f"f{at}",
            client_id="c1",
            exchange=Venue("BINANCE"),
            symbol=Symbol("BTCUSDT"),
            side=OrderSide.BUY,
            quantity=Decimal("0.010"),
            price=Decimal("60000.10"),
            fee=Decimal("0.3"),
            maker=False,
            at=Millis(at),
        ),
    )


STORY: tuple[TradeEvent, ...] = (
    open_account(at=Millis(1), usd=Decimal(2_000), krw=Decimal(2_000_000)),
    lock(2),
    fill(3),
    lock(4),
)


async def test_an_account_nobody_wrote_has_no_events(another: Open) -> None:
    assert await another().events(HERE) == ()
    assert await another().accounts() == ()


async def test_events_come_back_in_order_whoever_reads_and_however_far(another: Open) -> None:
    follower = another()
    await another().append(HERE, STORY[:1], 0)
    assert await follower.events(HERE) == STORY[:1]
    await another().append(HERE, STORY[1:], 1)
    assert await follower.events(HERE, 1) == STORY[1:]
    for log in (follower, another()):
        for after in range(5):
            assert await log.events(HERE, after) == STORY[after:]
        assert await log.accounts() == (HERE,)


async def test_accounts_are_strangers(another: Open) -> None:
    await another().append(HERE, STORY[:2], 0)
    await another().append(THERE, STORY[2:3], 0)
    await another().append(HERE, STORY[3:], 2)
    log = another()
    assert await log.events(THERE) == STORY[2:3]
    assert await log.events(HERE) == (*STORY[:2], STORY[3])
    assert await log.events(HERE, 1) == (STORY[1], STORY[3])
    assert await log.accounts() == (HERE, THERE)


async def test_whoever_writes_second_to_a_place_is_refused_and_writes_nothing(another: Open) -> None:
    await another().append(HERE, STORY[:3], 0)
    for after, events in ((0, STORY[3:]), (1, STORY[3:]), (2, STORY[1:3]), (4, STORY[3:])):
        with pytest.raises(Refused):
            await another().append(HERE, events, after)
    await another().append(HERE, STORY[:3], 0)  # the very same again
    await another().append(HERE, STORY[1:3], 1)
    assert await another().events(HERE) == STORY[:3]


async def test_of_many_at_once_one_is_written_whole(another: Open) -> None:
    wishes = [(lock(10 + number), fill(20 + number)) for number in range(4)]
    ends = await asyncio.gather(*(another().append(HERE, wish, 0) for wish in wishes), return_exceptions=True)
    assert [type(end) for end in ends if end is not None] == [Refused] * 3
    assert await another().events(HERE) in wishes


# -- what only the journal can do


async def test_looking_again_reads_what_is_new_alone(tmp_path: Path) -> None:
    writer, reader = log_of(journal_in(tmp_path)), log_of(journal_in(tmp_path))
    for number in range(30):
        await writer.append(HERE, [lock(number)], number)
    assert len(await reader.events(HERE)) == 30
    CountingJournal.read = 0
    await writer.append(HERE, [lock(30)], 30)
    assert len(await reader.events(HERE, 30)) == 1
    assert CountingJournal.read <= 3
    CountingJournal.read = 0
    assert len(await reader.events(HERE, 20)) == 11
    assert CountingJournal.read == 11


async def test_a_home_that_is_gone_is_not_an_empty_account(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    log = log_of(journal_in(home))
    await log.append("live", [lock(1), lock(2)], 0)
    assert len(await log.events("live")) == 2
    home.rename(tmp_path / "elsewhere")
    with pytest.raises(Unavailable):
        await log.events("live")
    (tmp_path / "elsewhere").rename(home)
    assert len(await log.events("live")) == 2


async def test_an_old_paper_book_is_the_beginning_of_its_account(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    changes = [LiquidityStated(at=Millis(at), symbol=Symbol("ETHUSDT"), quantity=at / 2) for at in (1, 2)]
    for number, change in enumerate(changes, 1):
        entry = BookEntry(origin="recorded", number=number, change=change)
        await journal.append_once(kind=BOOK_CHANGE, author=Author("owner"), payload=entry, request_id=f"b{number}")
    account = paper_account("recorded")
    old = tuple(ManualChange(at=change.at, change=change) for change in changes)
    assert await log_of(journal).accounts() == (account,)
    assert await log_of(journal).events(account) == old
    with pytest.raises(Refused):
        await log_of(journal).append(account, [lock(3)], 0)
    await log_of(journal).append(account, [lock(3)], 2)
    follower = log_of(journal)
    for after in range(4):
        assert await follower.events(account, after) == (*old, lock(3))[after:]


OLD_BOOK = """
{"kind":"opened","at":10,"position":{"id":"pos_1","symbol":"BTCUSDT","exchange":"BINANCE","side":"long",\
"quantity":0.01,"entry":60000.0,"leverage":2.0,"opened":10,"stop":null,"take":64000.0},"fee":0.3}
{"kind":"rested","at":20,"order":{"id":"ord_1","symbol":"ETHUSDT","exchange":"UPBIT","side":"long","quantity":0.1,\
"price":4000000.0,"leverage":1.0,"placed":20,"reduceOnly":false}}
{"kind":"liquidity","at":20,"symbol":"ETHUSDT","quantity":1.5}
{"kind":"opened","at":25,"position":{"id":"pos_2","symbol":"ETHUSDT","exchange":"UPBIT","side":"long",\
"quantity":0.2,"entry":4100000.0,"leverage":1.0,"opened":25,"stop":null,"take":null,"hold":"5d"},"fee":410.0}
{"kind":"closed","at":30,"id":"pos_1","price":61000.0,"fee":0.305}
{"kind":"cancelled","at":40,"id":"ord_1"}
"""
"""Changes as the first edition wrote them."""


async def test_an_old_home_holds_what_its_paper_book_held(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    changes = [json.loads(line) for line in OLD_BOOK.replace("\\\n", "").split("\n") if line]
    for number, change in enumerate(changes, 1):
        payload = {"origin": "recorded", "number": number, "change": change}
        await journal.append(kind=BOOK_CHANGE, author=Author("owner"), payload=payload)
    log, account = log_of(journal), paper_account("recorded")
    before = (await read_before(log, account, Millis(30))).to_account()
    assert (before.cash[FUTURES], before.cash[SPOT]) == (1_999.7, 2_000_000 - 820_000 - 410)
    assert [to_json(held) for held in before.positions] == [changes[0]["position"], changes[3]["position"]]
    assert [to_json(order) for order in before.pending] == [changes[1]["order"]]
    assert [(pool.symbol, pool.quantity) for pool in before.liquidity] == [(Symbol("ETHUSDT"), 1.5)]
    book = await log.history(account)
    assert (book.to_account().cash[FUTURES], book.to_account().pending) == (2_009.395, ())
    assert [(trade.trade, trade.net_pnl) for trade in book.closed] == [("pos_1", Decimal("9.395"))]
    assert book.venue_balance(Venue("BINANCE")) == 2_000


@pytest.mark.parametrize(
    "payload",
    [
        {"account": HERE, "first": 2, "events": [{"kind": "mandate_revoked", "at": 1, "hash": "0" * 64}]},
        {"account": HERE, "first": 1, "events": [{"kind": "mandate_revoked", "at": "1", "hash": "0" * 64}]},
        {"account": HERE, "first": 1, "events": [{"kind": "doubled", "at": 1}]},
        {"account": HERE, "first": 1, "events": []},
    ],
    ids=["a gap", "another type", "an event nobody knows", "nothing"],
)
async def test_an_entry_no_log_writes_is_broken(tmp_path: Path, payload: dict[str, object]) -> None:
    journal = journal_in(tmp_path)
    place = trade_log._place(HERE, 1)
    await journal.append(kind=TRADE_EVENTS, author=Author("desk"), payload=payload, request_id=place)
    with pytest.raises(Broken):
        await log_of(journal).events(HERE)


@pytest.fixture(scope="module")
def two_accounts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal with ten entries of one account, and behind them more of another than a process looks at first."""

    async def write(log: JournalTradeLog) -> None:
        for account, count in ((HERE, 10), (THERE, 33)):
            for number in range(count):
                await log.append(account, [lock(number)], number)

    folder = tmp_path_factory.mktemp("journal")
    asyncio.run(write(log_of(journal_in(folder))))
    return folder


def remove_entries(folder: Path, which: str) -> None:
    with closing(sqlite3.connect(folder / "journal.db", isolation_level=None)) as database:
        database.execute(f"DELETE FROM entries WHERE {which}")


LOOKS: dict[str, Callable[[JournalTradeLog], Awaitable[object]]] = {
    "events": lambda log: log.events(HERE),
    "events from": lambda log: log.events(HERE, 4),
    "accounts": lambda log: log.accounts(),
    "history": lambda log: log.history(HERE),
    "book": lambda log: log.open_book(HERE),
    "writer": lambda log: AccountWriter(log, HERE).refresh(),
    "append": lambda log: log.append(HERE, [lock(90)], 4),
}


@pytest.mark.parametrize(
    ("look", "missing"), [*((look, 5) for look in LOOKS), ("events", 1), ("history", 1), ("writer", 1)]
)
async def test_an_account_with_a_hole_is_broken_for_whoever_looks(
    two_accounts: Path, tmp_path: Path, look: str, missing: int
) -> None:
    folder = shutil.copytree(two_accounts, tmp_path / "copy")
    remove_entries(folder, f"seq = {missing}")
    with pytest.raises(Broken):
        await LOOKS[look](log_of(journal_in(folder)))
    log = log_of(journal_in(folder))
    assert len(await log.events(THERE)) == (await log.history(THERE)).count == 33
    assert await log.events("live") == ()


@pytest.mark.parametrize("look", ["history", "book", "events"])
async def test_events_that_were_there_are_missed(tmp_path: Path, look: str) -> None:
    log = log_of(journal_in(tmp_path))
    for number in range(10):
        await log.append(HERE, [lock(number)], number)
    remove_entries(tmp_path, "seq > 5")
    with pytest.raises(Unavailable):
        await LOOKS[look](log)


@pytest.mark.usefixtures("often")
async def test_a_hole_behind_a_snapshot_is_broken_and_one_before_it_costs_no_figure(tmp_path: Path) -> None:
    events = await write_long(log_of(journal_in(tmp_path)), 90)
    snapshot = (await journal_in(tmp_path).latest(1, kind=ACCOUNT_SNAPSHOT))[0]
    remove_entries(tmp_path, "seq = 3")
    assert dump_whole((await read_cold(tmp_path))[0]) == dump_whole(trace_account(events))
    with pytest.raises(Broken):
        await log_of(journal_in(tmp_path)).events(HERE)
    remove_entries(tmp_path, f"seq = {snapshot.seq + 1}")
    with pytest.raises(Broken):
        await read_cold(tmp_path)


# -- snapshots


async def write_long(log: JournalTradeLog, count: int, account: str = HERE, start: int = 0) -> list[TradeEvent]:
    written: list[TradeEvent] = []
    for events in list_entries(count):
        if len(written) >= start:
            await log.append(account, events, len(written))
        written += events
    return list(await log.events(account))  # as the journal has them: 0.50 is 0.5 there


async def read_cold(folder: Path, account: str = HERE) -> tuple[AccountHistory, int]:
    """The account as a new process reads it, and the entries that it read for it."""
    CountingJournal.read = 0
    history = await log_of(journal_in(folder)).history(account)
    return history, CountingJournal.read


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trade_log, "SNAPSHOT_EVERY", 50)


@pytest.mark.usefixtures("often")
async def test_a_new_process_reads_snapshots_and_what_is_new(tmp_path: Path) -> None:
    log = log_of(journal_in(tmp_path))
    events = await write_long(log, 220)
    await write_long(log, 60, THERE)
    snapshots = [entry async for entry in journal_in(tmp_path).entries(kind=ACCOUNT_SNAPSHOT)]
    assert [entry.payload["account"] for entry in snapshots].count(HERE) == 4
    history, read = await read_cold(tmp_path)
    assert dump_whole(history) == dump_whole(trace_account(events))
    assert history.count - history.sealed.count < 50
    assert read < 40  # four snapshots, the entry they end with, and what was written since
    assert await log.history(HERE) is await log.history(HERE)
    assert dump_whole(await log.history(HERE)) == dump_whole(history)
    assert await log.verify_snapshots() == ()
    assert (await log.history("paper:nobody")).count == 0


@pytest.mark.usefixtures("often")
async def test_a_snapshot_that_does_not_fit_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    events = await write_long(log_of(journal_in(tmp_path)), 120)
    journal = journal_in(tmp_path)
    newest = (await journal.latest(1, kind=ACCOUNT_SNAPSHOT))[0]
    for change in ({"last": "0" * 64}, {"live": "AAAA"}, {"first": 3}):
        payload = {**newest.payload, "after": 0, **change}
        await journal.append(
            kind=ACCOUNT_SNAPSHOT, author=Author("desk"), payload=payload, request_id=newest.request_id
        )
        caplog.clear()
        history = await JournalTradeLog(opened(journal), opened(journal))._restore(journal, HERE)
        assert history.count == 0
        assert "is ignored" in caplog.text
        assert dump_whole((await read_cold(tmp_path))[0]) == dump_whole(trace_account(events))


@pytest.mark.usefixtures("often")
async def test_a_snapshot_of_another_edition_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = await write_long(log_of(journal_in(tmp_path)), 120)
    monkeypatch.setattr(trade_log, "FOLD_EDITION", account_snapshot.FOLD_EDITION + 1)
    history, read = await read_cold(tmp_path)
    assert read > 50
    assert dump_whole(history) == dump_whole(trace_account(events))
    assert (await read_cold(tmp_path))[1] < 30  # sealed anew by whoever looked


@pytest.mark.usefixtures("often")
async def test_a_snapshot_that_is_not_the_fold_of_its_events_is_found_and_replaced(tmp_path: Path) -> None:
    events = await write_long(log_of(journal_in(tmp_path)), 120)
    journal = journal_in(tmp_path)
    newest = (await journal.latest(1, kind=ACCOUNT_SNAPSHOT))[0]
    wrong = trace_account(events[: int(str(newest.payload["count"]))])
    wrong.closed.pop()
    live, past = map(trade_log._pack, dump_whole(wrong))
    payload = {**newest.payload, "after": 0, "live": live, "past": past}
    await journal.append(kind=ACCOUNT_SNAPSHOT, author=Author("desk"), payload=payload, request_id=newest.request_id)
    log = log_of(journal_in(tmp_path))
    assert len(await log.verify_snapshots()) == 1
    assert await log.verify_snapshots() == ()
    assert dump_whole((await read_cold(tmp_path))[0]) == dump_whole(trace_account(events))


@pytest.mark.usefixtures("often")
async def test_a_snapshot_is_not_believed_for_its_word(tmp_path: Path) -> None:
    events = await write_long(log_of(journal_in(tmp_path)), 120)
    journal = journal_in(tmp_path)
    older, newest = [entry.payload async for entry in journal.entries(kind=ACCOUNT_SNAPSHOT)]
    count = int(str(newest["count"]))
    whole = trace_account(events[:count])
    live, past = dump_whole(whole)
    richer = live.replace(f'"cash":"{whole.cash(Venue("BINANCE"))}"'.encode(), b'"cash":"9999"')
    assert richer != live
    lies = (
        {**newest, "account": THERE, "after": count, "count": count + 9},
        {**newest, "after": count + 50, "count": count + 100},  # what it continues is missing
        {**newest, "after": 0, "live": trade_log._pack(richer), "past": trade_log._pack(past)},
        {**newest, "after": 0, "count": count - 1, "live": trade_log._pack(live), "past": trade_log._pack(past)},
        older,
    )
    for lie in lies:
        name = trade_log._snapshot_name(HERE)
        await journal.append(kind=ACCOUNT_SNAPSHOT, author=Author("desk"), payload=lie, request_id=name)
        assert dump_whole((await read_cold(tmp_path))[0]) == dump_whole(trace_account(events))


@pytest.mark.usefixtures("often")
async def test_a_writer_begins_at_the_snapshot(tmp_path: Path) -> None:
    events = await write_long(log_of(journal_in(tmp_path)), 220)
    log = log_of(journal_in(tmp_path))
    CountingJournal.read = 0
    writer = AccountWriter(log, HERE)
    book = await writer.refresh()
    assert isinstance(book, AccountHistory)
    assert dump_whole(book) == dump_whole(trace_account(events))
    await writer.write([lock(events[-1].at)])
    assert CountingJournal.read < 45
    assert (await log.history(HERE)).count == len(events) + 1
    assert (await log.history(HERE)) is not book
    ends = [int(str(entry.payload["first"])) - 1 async for entry in journal_in(tmp_path).entries(kind=TRADE_EVENTS)]
    for upto in (ends[3], ends[len(ends) // 2], ends[-1]):
        before = await log.open_book(HERE, upto)
        assert isinstance(before, AccountHistory)
        assert dump_whole(before) == dump_whole(trace_account(events[:upto]))


async def test_whoever_writes_to_a_long_past_folds_none_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trade_log, "SNAPSHOT_EVERY", 10**6)
    log = log_of(journal_in(tmp_path))
    events = await write_long(log, 150)
    monkeypatch.setattr(trade_log, "SNAPSHOT_EVERY", 50)
    monkeypatch.setattr(trade_log, "_MOST_BEHIND", 100)
    await write_long(log_of(journal_in(tmp_path)), 205, start=len(events))
    assert not [entry async for entry in journal_in(tmp_path).entries(kind=ACCOUNT_SNAPSHOT)]
    assert (await read_cold(tmp_path))[0].sealed.count >= 205  # whoever looks seals it


def opened(journal: Journal) -> Callable[[], Awaitable[Journal]]:
    async def own() -> Journal:
        return journal

    return own
