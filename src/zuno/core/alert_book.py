"""The monitor's memory as values: what one look at a chain, an answer of the owner or a delivery makes of the book."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from zuno.core.alerts import LIMITS, Limits, acknowledge, ended, judge, judge_chain, snooze
from zuno.domain.alerts import Alert, AlertBook, ChainHealth, Event, Subject
from zuno.domain.pool import LpPosition
from zuno.domain.units import Address, Seconds

KEPT_EVENTS: Final = 500
MOST_EVENTS: Final = 2_000
"""Events that nobody was told of yet are kept beyond the usual number, but not beyond this one."""

Answer = Callable[[Alert], tuple[Alert, Event]]


@dataclass(frozen=True, slots=True)
class WalletLook:
    """A wallet's positions as they were really read."""

    wallet: Address
    positions: tuple[LpPosition, ...]
    gone: frozenset[int] = frozenset()
    """Ids that are known to be burnt."""
    complete: bool = False
    """True: what is neither among the positions nor `unread` is no longer the wallet's."""
    unread: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a chain: wallets that were read, and the reason where one was not."""

    chain: str
    wallets: tuple[WalletLook, ...] = ()
    failure: str = ""
    block_time: Seconds | None = None


def looked(book: AlertBook, look: Look, now: Seconds, limits: Limits = LIMITS) -> tuple[AlertBook, tuple[Event, ...]]:
    """The book after a look. What was not read raises and clears nothing."""
    before = book.chains.get(look.chain, ChainHealth())
    failures = before.failures + 1 if look.failure else 0
    health = ChainHealth(
        failures,
        now if look.wallets and not look.failure else before.read_at,
        before.block_time if look.block_time is None else look.block_time,
        look.failure,
    )
    on = {alert.subject: alert for alert in book.active}
    happened: list[Event] = []

    def settle(subject: Subject, judged: tuple[Alert | None, tuple[Event, ...]]) -> None:
        alert, events = judged
        if alert is not None:
            on[subject] = alert
        else:
            on.pop(subject, None)
        happened.extend(events)

    whole = Subject(look.chain)
    settle(whole, judge_chain(on.get(whole), look.chain, failures, look.failure, now, limits))
    for wallet in look.wallets:
        for position in wallet.positions:
            subject = Subject(look.chain, wallet.wallet, position.id)
            settle(subject, judge(on.get(subject), position, wallet.wallet, now, limits))
        for subject, why in _absent(on, look.chain, wallet):
            settle(subject, ended(on[subject], why, now))
    return _with(replace(book, chains={**book.chains, look.chain: health}, looked_at=now), on.values(), happened)


def _absent(on: Mapping[Subject, Alert], chain: str, look: WalletLook) -> list[tuple[Subject, str]]:
    seen = {position.id for position in look.positions} | look.unread
    found = []
    for subject in on:
        if (subject.chain, subject.wallet) != (chain, look.wallet) or subject.position in seen:
            continue
        if subject.position in look.gone:
            found.append((subject, "it was burnt"))
        elif look.complete:
            found.append((subject, "the wallet no longer holds it: closed or transferred"))
    return found


def unwatched(book: AlertBook, watched: Callable[[Subject], bool], now: Seconds) -> tuple[AlertBook, tuple[Event, ...]]:
    """End what nobody looks at any more."""
    kept, happened = [], list[Event]()
    for alert in book.active:
        if watched(alert.subject):
            kept.append(alert)
        else:
            happened += ended(alert, "it is no longer watched", now)[1]
    healths = {name: health for name, health in book.chains.items() if watched(Subject(name))}
    return _with(replace(book, chains=healths), kept, happened)


def acknowledged(book: AlertBook, alert_id: str, now: Seconds) -> tuple[AlertBook, Alert | None]:
    """None: no alert of this id is on."""
    return _answered(book, alert_id, lambda alert: acknowledge(alert, now))


def snoozed(book: AlertBook, alert_id: str, until: Seconds, now: Seconds) -> tuple[AlertBook, Alert | None]:
    """None: no alert of this id is on."""
    return _answered(book, alert_id, lambda alert: snooze(alert, until, now))


def pending(book: AlertBook) -> Sequence[Event]:
    """Events the owner was not told of yet, oldest first."""
    return [event for event in book.events if event.number > book.pushed and event.said]


def delivered(book: AlertBook, number: int) -> AlertBook:
    return trimmed(replace(book, pushed=max(book.pushed, number), trouble=""))


def set_aside(book: AlertBook, number: int, why: str) -> AlertBook:
    """One event cannot be delivered at all: it makes way for the next, and is counted."""
    lost = any(event.number == number and event.number > book.pushed for event in book.events)
    return trimmed(replace(book, pushed=max(book.pushed, number), dropped=book.dropped + lost, trouble=why))


def passed_over(book: AlertBook) -> AlertBook:
    """There is nobody to deliver to: nothing waits for one who may come later."""
    return trimmed(replace(book, pushed=book.last_number, trouble=""))


def written_down(book: AlertBook, number: int) -> AlertBook:
    return trimmed(replace(book, journaled=max(book.journaled, number)))


def trimmed(book: AlertBook) -> AlertBook:
    """The newest events, and those that still wait; never more than the most there may be."""
    waits = min(book.journaled, book.pushed)
    newest = max(0, len(book.events) - KEPT_EVENTS)
    kept = [event for place, event in enumerate(book.events) if place >= newest or event.number > waits]
    let_go, kept = kept[: max(0, len(kept) - MOST_EVENTS)], kept[-MOST_EVENTS:]
    lost = sum(event.said and event.number > book.pushed for event in let_go)
    return replace(book, events=tuple(kept), dropped=book.dropped + lost)


def _answered(book: AlertBook, alert_id: str, answer: Answer) -> tuple[AlertBook, Alert | None]:
    for place, alert in enumerate(book.active):
        if alert.id == alert_id:
            changed, event = answer(alert)
            active = (*book.active[:place], changed, *book.active[place + 1 :])
            return _with(book, active, [event])[0], changed
    return book, None


def _with(book: AlertBook, active: Iterable[Alert], happened: Sequence[Event]) -> tuple[AlertBook, tuple[Event, ...]]:
    numbered = tuple(replace(event, number=number) for number, event in enumerate(happened, start=book.last_number + 1))
    grown = replace(
        book,
        active=tuple(active),
        events=(*book.events, *numbered),
        last_number=book.last_number + len(numbered),
    )
    return trimmed(grown), numbered
