"""The book of alerts: what one look changes, what nobody read, and how much it may ever hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wire.watching import NOW, OTHER, WALLET, position
from zuno.amm.model import LpPosition
from zuno.kernel.units import Address, Seconds
from zuno.lp.model.alerts import Alert, AlertBook, AlertEventKind, Condition, Event, Subject
from zuno.lp.watch.rules import (
    KEPT_EVENTS,
    MOST_EVENTS,
    ChainReading,
    WalletReading,
    acknowledge,
    answer_alert,
    end_unwatched,
    mark_appended,
    mark_journaled,
    pending_events,
    record_reading,
    snooze,
    trim_events,
)

H = AlertEventKind
OUT = -50


def look(
    *positions: LpPosition, wallet: Address = WALLET, complete: bool = True, **more: frozenset[int]
) -> ChainReading:
    return ChainReading("base", (WalletReading(wallet, positions, complete=complete, **more),), block_time=NOW)


def after(*looks: ChainReading) -> AlertBook:
    book = AlertBook()
    for step, one in enumerate(looks):
        book, _ = record_reading(book, one, Seconds(NOW + 60 * step))
    return book


def kinds(book: AlertBook) -> list[AlertEventKind]:
    return [event.happening for event in book.events]


def test_events_are_numbered_in_the_order_they_happened() -> None:
    book = after(look(position(OUT, id=7), position(OUT, id=9)), look(position(500, id=7), position(500, id=9)))
    assert [event.number for event in book.events] == [1, 2, 3, 4]
    assert book.last_number == 4
    assert kinds(book) == [H.RAISED, H.RAISED, H.RECOVERED, H.RECOVERED]
    assert book.active == ()


def test_two_wallets_that_hold_one_id_after_another_do_not_share_an_alert() -> None:
    book = after(look(position(OUT)), look(position(OUT), wallet=OTHER))
    assert {alert.subject.wallet for alert in book.active} == {WALLET, OTHER}


@pytest.mark.parametrize(
    "failed", [ChainReading("base", failure="no answer"), ChainReading("base", (), "no answer", NOW)]
)
def test_a_failed_look_raises_and_clears_nothing(failed: ChainReading) -> None:
    book = after(look(position(OUT)), failed, failed)
    assert kinds(book) == [H.RAISED]
    assert len(book.active) == 1
    assert book.chains["base"].failures == 2
    assert (book.chains["base"].read_at, book.chains["base"].block_time) == (NOW, NOW)


def test_the_third_failure_in_a_row_is_an_alert_of_its_own_and_recovers() -> None:
    failed = ChainReading("base", failure="no answer")
    book = after(failed, failed, failed, failed)
    assert kinds(book) == [H.RAISED]
    assert book.active[0].condition is Condition.UNREACHABLE
    assert book.active[0].subject == Subject("base")
    book, _ = record_reading(book, look(position(500)), NOW)
    assert kinds(book) == [H.RAISED, H.RECOVERED]
    assert book.chains["base"].failures == 0
    broken = after(failed, failed, look(position(500)), failed, failed)
    assert kinds(broken) == []


def test_what_one_wallet_shows_counts_though_another_failed() -> None:
    half = ChainReading(
        "base", (WalletReading(WALLET, (position(OUT),), complete=True),), "the other wallet did not answer", NOW
    )
    book = after(half, half, half)
    assert [alert.condition for alert in book.active] == [Condition.OUT_OF_RANGE, Condition.UNREACHABLE]


def test_a_position_that_is_unread_keeps_its_alert_and_a_burnt_one_ends_it() -> None:
    unread = look(unread=frozenset({1}))
    burnt = look(gone=frozenset({1}), complete=False)
    assert len(after(look(position(OUT)), unread).active) == 1
    assert kinds(after(look(position(OUT)), burnt)) == [H.RAISED, H.ENDED]


def test_what_is_no_longer_held_ends_only_where_the_list_is_whole() -> None:
    assert kinds(after(look(position(OUT)), look(complete=False))) == [H.RAISED]
    book = after(look(position(OUT)), look(complete=True))
    assert kinds(book) == [H.RAISED, H.ENDED]
    assert "transferred" in book.events[-1].reason
    assert kinds(after(look(position(OUT)), look(wallet=OTHER))) == [H.RAISED]


def test_what_is_no_longer_watched_ends() -> None:
    failed = ChainReading("arbitrum", failure="no answer")
    book = after(look(position(OUT)), failed, failed, failed)
    book, events = end_unwatched(book, lambda subject: subject.chain == "base", NOW)
    assert [event.subject for event in events] == [Subject("arbitrum")]
    assert list(book.chains) == ["base"]
    book, events = end_unwatched(book, lambda subject: subject.wallet != WALLET, NOW)
    assert [event.happening for event in events] == [H.ENDED]
    assert book.active == ()


def test_answers_reach_their_alert_and_no_other() -> None:
    book = after(look(position(OUT, id=7), position(OUT, id=9)))
    first, second = book.active
    book, alert = answer_alert(book, second.id, lambda alert: acknowledge(alert, NOW))
    assert alert is not None
    assert alert.acknowledged_at == NOW
    assert [one.acknowledged_at for one in book.active] == [None, NOW]
    book, alert = answer_alert(book, first.id, lambda alert: snooze(alert, Seconds(NOW + 60), NOW))
    assert alert is not None
    assert [one.snoozed_until for one in book.active] == [NOW + 60, None]
    assert kinds(book)[-2:] == [H.ACKNOWLEDGED, H.SNOOZED]
    same, nobody = answer_alert(book, "alert_000000000000", lambda alert: acknowledge(alert, NOW))
    assert (same, nobody) == (book, None)


def test_answers_are_not_delivered_back_to_the_owner() -> None:
    book = after(look(position(OUT)))
    book, _ = answer_alert(book, book.active[0].id, lambda alert: acknowledge(alert, NOW))
    assert [event.happening for event in pending_events(book)] == [H.RAISED]
    assert pending_events(mark_appended(book, 1)) == []


def event(number: int, said: bool = True) -> Event:
    return Event("alert_000000000000", NOW, H.RAISED, Subject("base"), Condition.NEAR_EDGE, "", said, number)


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(
    st.integers(0, 3_000),
    st.integers(0, 3_000),
    st.integers(0, 3_000),
    st.sets(st.integers(1, 3_000), max_size=5),
)
def test_the_book_is_bounded_and_counts_what_it_lets_go(
    count: int, pushed: int, journaled: int, quiet: set[int]
) -> None:
    whole = tuple(event(number, number not in quiet) for number in range(1, count + 1))
    book = AlertBook(events=whole, last_number=count, pushed=min(pushed, count), journaled=min(journaled, count))
    kept = trim_events(book)
    assert len(kept.events) <= MOST_EVENTS
    assert kept.events == whole[len(whole) - len(kept.events) :]
    assert len(kept.events) >= min(count, KEPT_EVENTS)
    assert kept.dropped == len(pending_events(book)) - len(pending_events(kept))
    assert trim_events(kept) == kept
    waiting = [one for one in whole if one.number > min(book.pushed, book.journaled)]
    assert set(waiting[-MOST_EVENTS:]) <= set(kept.events)


def test_only_what_was_meant_for_the_owner_counts_as_let_go() -> None:
    whole = tuple(event(number, said=number > 100) for number in range(1, MOST_EVENTS + 151))
    assert trim_events(AlertBook(events=whole, last_number=len(whole))).dropped == 50


@pytest.mark.slow
def test_every_active_alert_stays_however_many_there_are() -> None:
    crowd = look(*(position(OUT, id=number) for number in range(1, 2_501)))
    book = after(crowd)
    assert len(book.active) == 2_500
    assert len(book.events) == MOST_EVENTS
    assert book.dropped == 2_500 - MOST_EVENTS
    settled = mark_journaled(mark_appended(book, book.last_number), book.last_number)
    assert len(settled.events) == KEPT_EVENTS
    assert len(settled.active) == 2_500


def test_marks_never_go_back() -> None:
    book = replace(AlertBook(), pushed=9, journaled=9)
    assert mark_appended(book, 3).pushed == 9
    assert mark_journaled(book, 3).journaled == 9


def test_an_alert_with_an_id_that_is_none_cannot_be() -> None:
    with pytest.raises(ValueError, match="12 hex"):
        Alert("alert_../../etc", Subject("base"), Condition.NEAR_EDGE, "", NOW, Condition.NEAR_EDGE, NOW)
