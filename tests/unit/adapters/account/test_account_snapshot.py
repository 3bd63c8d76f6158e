"""An account from its snapshots and what was written since is the account from all its events, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.trading.long_account import list_entries
from zuno.adapters.account.account_snapshot import dump_live, dump_past, dump_whole, mark_sealed, restore_book
from zuno.kernel.errors import Broken, Refused
from zuno.trading.model.trade_events import FillBooked, FundingBooked, TradeEvent
from zuno.trading.rules.performance import AccountHistory, current_step, trace_account


def fold_with_snapshots(entries: list[list[TradeEvent]], cuts: set[int], *, restart: bool) -> AccountHistory:
    """Sealed after the entries of these places; `restart`: another process goes on from there."""
    book, live, pasts = AccountHistory(), b"", list[bytes]()
    for place, events in enumerate(entries):
        book.apply_all(events)
        if place in cuts:
            live = dump_live(book)
            pasts.append(dump_past(book, book.sealed))
            mark_sealed(book)
            if restart:
                book = restore_book(live, pasts)
    return book


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), cuts=st.sets(st.integers(0, 60), max_size=6), restart=st.booleans())
def test_snapshots_and_the_rest_give_the_same_bytes(seed: int, cuts: set[int], restart: bool) -> None:
    entries = list(list_entries(100, seed))
    whole = trace_account([event for events in entries for event in events])
    book = fold_with_snapshots(entries, cuts, restart=restart)
    assert dump_whole(book) == dump_whole(whole)
    assert book.open_orders == {id: order for id, order in book.orders.items() if not order.status.final}
    assert [*book.positions.values()] == [trade for trade in book.trades.values() if not trade.manual]
    assert [posting.number for posting in book.postings] == [posting.number for posting in whole.postings]
    assert book.measure({}) == whole.measure({})
    assert book.to_account() == whole.to_account()


def test_a_restored_book_refuses_what_the_whole_one_refuses() -> None:
    entries = list(list_entries(120, 3))
    book = fold_with_snapshots(entries, {5, len(entries) - 1}, restart=True)
    for event in [event for events in entries for event in events]:
        if isinstance(event, FillBooked | FundingBooked):
            again = event.model_copy(update={"at": book.newest})
            with pytest.raises(Refused):
                book.apply(again)


def look_at(book: AccountHistory) -> tuple[object, ...]:
    """What a page says of an account."""
    marks = {trade.symbol: trade.entry for trade in book.trades.values()}
    free = [book.free(venue, marks) for venue in book.venues]
    past = [len(part) for part in (book.results, book.postings, book.steps, book.fills, book.payments, book.closed)]
    orders = [(order.status, order.booked, order.left) for order in book.open_orders.values()]
    intents = [(tracked.state, [*tracked.orders]) for tracked in book.open_intents.values()]
    step, pending = current_step(book, book.newest), book.to_pending()
    return book.count, dump_live(book), step, free, pending, past, orders, intents


@pytest.mark.parametrize("restart", [False, True])
def test_a_book_that_was_forked_stays_as_it_is(restart: bool) -> None:
    entries = list(list_entries(120, 4))
    book, looks = fold_with_snapshots(entries[:20], {10}, restart=restart), []
    for event in [event for events in entries[20:] for event in events]:
        looks.append((book, look_at(book)))
        book = book.fork()
        book.apply(event)
    assert [look_at(forked) for forked, _ in looks] == [seen for _, seen in looks]
    assert any(forked.trades for forked, _ in looks)
    assert any(forked.open_orders for forked, _ in looks)
    whole = trace_account([event for events in entries for event in events])
    assert look_at(book) == look_at(whole)
    assert dump_whole(book) == dump_whole(whole)


@pytest.mark.parametrize("live", [b"", b"{}", b"[]"])
def test_what_is_no_snapshot_is_broken(live: bytes) -> None:
    whole = trace_account([event for events in list_entries(60, 5) for event in events])
    good, past = dump_whole(whole)
    with pytest.raises(Broken):
        restore_book(live, [past])
    with pytest.raises(Broken):
        restore_book(good, [b'{"orders":[]}'])
    unbalanced = good.replace(b'"debits":{"BINANCE":"', b'"debits":{"BINANCE":"1')
    assert unbalanced != good
    with pytest.raises(Broken):
        restore_book(unbalanced, [past])
