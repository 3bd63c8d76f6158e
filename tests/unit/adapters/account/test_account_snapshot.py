"""An account from its snapshots and what was written since is the account from all its events, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.trading.long_account import list_entries
from zuno.adapters.account.account_snapshot import dump_live, dump_past, dump_whole, mark_sealed, restore_book
from zuno.kernel.errors import Broken, Refused
from zuno.markets.venues import Venue
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


def test_a_frozen_book_stays_as_it_is() -> None:
    entries = list(list_entries(120, 4))
    book = fold_with_snapshots(entries[:20], {10}, restart=True)
    frozen, before = book.freeze(), dump_live(book)
    debits = book.ledger.debits[Venue("BINANCE")]
    held = [*frozen.closed], [*frozen.trades], [*frozen.open_orders]
    for events in entries[20:]:
        book.apply_all(events)
    assert ([*frozen.closed], [*frozen.trades], [*frozen.open_orders]) == held
    assert frozen.count < book.count
    assert (frozen.ledger.debits[Venue("BINANCE")], before) != (book.ledger.debits[Venue("BINANCE")], dump_live(book))
    assert frozen.ledger.debits[Venue("BINANCE")] == debits


def test_whoever_looks_at_a_frozen_book_sees_no_fill_that_came_later() -> None:
    book, looks = AccountHistory(), []
    for events in list_entries(120, 4):
        for event in events:
            book.apply(event)
            frozen = book.freeze()
            assert all(frozen.trades[trade.id] is trade for trade in frozen.positions.values())
            looks.append((frozen, current_step(book, book.newest)))
    assert [current_step(frozen, step.at) for frozen, step in looks] == [step for _, step in looks]
    assert any(step.held for _, step in looks)


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
