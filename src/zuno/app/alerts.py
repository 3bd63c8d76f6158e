"""Alerts as the owner meets them: listed, acknowledged, snoozed, and told where they asked to be told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Final

from zuno.app import asked
from zuno.app.figures import time_text
from zuno.app.views import View
from zuno.core.alert_book import (
    acknowledged,
    delivered,
    passed_over,
    pending,
    set_aside,
    snoozed,
    written_down,
)
from zuno.domain.alerts import Alert, AlertBook, Condition, Event, Happening
from zuno.domain.errors import Unknown, Usage, ZunoError
from zuno.domain.units import Seconds
from zuno.ports.alerts import AlertStore
from zuno.ports.clock import Clock
from zuno.ports.journal import Author, Journal
from zuno.ports.notifier import Later, Never, Notice, Notifier, Sent

ENTRY: Final = "alert"
"""The kind of the journal's entries about alerts."""
LONGEST_SNOOZE: Final = 30 * 86_400
FIRST_WAIT: Final = 2.0
LONGEST_WAIT: Final = 300.0
_TITLES: Final = {
    (Condition.OUT_OF_RANGE, Happening.REMINDED): "Still out of range",
    (Condition.NEAR_EDGE, Happening.REMINDED): "Still near the edge",
    (Condition.NEAR_EDGE, Happening.EASED): "Back inside, still near the edge",
    (Condition.UNREACHABLE, Happening.REMINDED): "Chain still unreachable",
}
_NAMES: Final = {
    Condition.OUT_OF_RANGE: "Out of range",
    Condition.NEAR_EDGE: "Near the edge",
    Condition.UNREACHABLE: "Chain unreachable",
}
_RECOVERIES: Final = {
    Condition.OUT_OF_RANGE: "Back in range",
    Condition.NEAR_EDGE: "Clear of the edge",
    Condition.UNREACHABLE: "Chain reachable again",
}


class AlertView(View):
    id: str
    severity: str
    condition: str
    chain: str
    wallet: str | None
    position: str | None
    reason: str
    raised_at: int
    told_at: int
    state: str
    """`active`, `acknowledged` (silent until it recovers or worsens) or `snoozed`."""
    snoozed_until: int | None


class AlertEventView(View):
    number: int
    at: int
    alert: str
    happening: str
    title: str
    severity: str
    condition: str
    chain: str
    wallet: str | None
    position: str | None
    reason: str
    said: bool


class AlertsView(View):
    looked_at: int | None
    """When a monitor last looked; None: never."""
    alerts: tuple[AlertView, ...]
    events: tuple[AlertEventView, ...] | None
    """With `--all`: what happened, newest first."""
    waiting: int
    """Events that could not be delivered yet."""
    dropped: int
    trouble: str
    notes: tuple[str, ...]


class AnsweredView(View):
    """What an alert is after the owner's answer."""

    done: str
    alert: AlertView


class AlertDesk:
    """The owner's side of the book; the monitor may write in it at the same time."""

    def __init__(self, store: AlertStore, journal: Callable[[], Awaitable[Journal]], clock: Clock) -> None:
        self._store = store
        self._journal = journal
        self._clock = clock

    async def list(self, *, everything: bool = False) -> AlertsView:
        book, now = await self._store.book(), self._clock.now()
        return AlertsView(
            looked_at=book.looked_at,
            alerts=tuple(alert_view(alert, now) for alert in _by_weight(book)),
            events=tuple(map(event_view, reversed(book.events))) if everything else None,
            waiting=len(pending(book)),
            dropped=book.dropped,
            trouble=book.trouble,
            notes=_notes(book, now),
        )

    async def ack(self, text: str) -> AnsweredView:
        wanted, now = asked.alert_id(text), self._clock.now()
        alert = await self._answer(wanted, lambda book: acknowledged(book, wanted, now))
        done = f"{wanted} is acknowledged: silent until it recovers or gets worse."
        return AnsweredView(done=done, alert=alert_view(alert, now))

    async def snooze(self, text: str, span: str) -> AnsweredView:
        wanted, seconds, now = asked.alert_id(text), asked.span(span), self._clock.now()
        if not 0 < seconds <= LONGEST_SNOOZE:
            raise Usage(f"A snooze lasts from 1m to {LONGEST_SNOOZE // 86_400}d, not {span.strip()[:40]}.")
        until = Seconds(now + seconds)
        alert = await self._answer(wanted, lambda book: snoozed(book, wanted, until, now))
        return AnsweredView(done=f"{wanted} is snoozed until {time_text(until)}.", alert=alert_view(alert, now))

    async def _answer(self, wanted: str, make: Callable[[AlertBook], tuple[AlertBook, Alert | None]]) -> Alert:
        alert = await self._store.change(make)
        if alert is None:
            raise Unknown(f"No alert {wanted} is on; `zuno alerts` lists those that are.")
        await write_down(self._store, await self._journal())
        return alert


async def write_down(store: AlertStore, journal: Journal) -> None:
    """Every event the journal does not have yet; one may stand there twice after a crash, none is missing."""
    book = await store.book()
    for event in book.events:
        if event.number > book.journaled:
            await journal.append(kind=ENTRY, author=Author("monitor"), payload=asdict(event))
    if book.events and book.events[-1].number > book.journaled:
        last = book.events[-1].number
        await store.change(lambda latest: (written_down(latest, last), None))


class Courier:
    """Carries what was said to the owner, in order, one at a time, and never lets a dead service hold up a tick."""

    def __init__(self, store: AlertStore, notifier: Notifier | None, tell: Callable[[str], None]) -> None:
        self._store = store
        self._notifier = notifier
        self._tell = tell
        self._news = asyncio.Event()
        self._failures = 0
        self._told = ""
        self._halted = False

    def wake(self) -> None:
        self._news.set()

    async def deliver(self) -> float | None:
        """Deliver what waits until something stops us; how long to leave it alone, or None when nothing is left."""
        if self._notifier is None:
            await self._store.change(lambda book: (passed_over(book), None))
            return None
        while not self._halted:
            waiting = pending(await self._store.book())
            if not waiting:
                return None
            wait = await self._carry(waiting[0], self._notifier)
            if wait is not None:
                return wait
        return None

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`: what is being sent then is still sent and ticked off."""
        while not stop.is_set():
            self._news.clear()
            try:
                wait = await self.deliver()
            except ZunoError as error:  # the book, not the service
                wait = self._backed_off(str(error).rstrip("."))
            except (
                Exception
            ) as bug:  # one who dies unseen leaves every later alert untold; no trace: it may quote a key
                wait = self._backed_off(f"Zuno has a bug ({type(bug).__name__})")
            if wait is None:
                await _first(stop.wait(), self._news.wait())
            else:
                await _first(stop.wait(), asyncio.sleep(wait))

    async def close(self) -> None:
        if self._notifier is not None:
            await self._notifier.close()

    async def _carry(self, event: Event, notifier: Notifier) -> float | None:
        match await notifier.send(notice_of(event)):
            case Sent():
                self._failures, self._told = 0, ""
                await self._change(lambda book: delivered(book, event.number))
                return None
            case Later(reason, asked_wait):
                await self._change(lambda book: _troubled(book, reason))
                backed_off = self._backed_off(reason)
                return backed_off if asked_wait is None else max(asked_wait, FIRST_WAIT)
            case Never(reason, all=True):
                self._halted = True
                await self._change(lambda book: _troubled(book, reason))
                self._complain(f"{reason}; alerts wait in the book until the monitor is started anew.")
                return None
            case Never(reason):
                await self._change(lambda book: set_aside(book, event.number, reason))
                self._complain(f"{reason}; this one is not tried again.")
                return None

    async def _change(self, make: Callable[[AlertBook], AlertBook]) -> None:
        await self._store.change(lambda book: (make(book), None))

    def _backed_off(self, reason: str) -> float:
        """Doubling up to a cap: it is tried for as long as it takes."""
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self._failures, 20))
        self._failures += 1
        self._complain(f"{reason}; it is tried again.")
        return wait

    def _complain(self, line: str) -> None:
        if line != self._told:
            self._told = line
            self._tell(line)


async def _first(*waits: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _troubled(book: AlertBook, reason: str) -> AlertBook:
    return replace(book, trouble=reason)


def notice_of(event: Event) -> Notice:
    subject = event.subject
    return Notice(
        title=title_of(event),
        severity=event.severity,
        chain=subject.chain,
        wallet=subject.wallet,
        position=None if subject.position is None else str(subject.position),
        condition="recovered" if event.happening is Happening.RECOVERED else event.condition.replace("_", " "),
        reason=event.reason,
        reference=event.alert,
    )


def title_of(event: Event) -> str:
    if event.happening is Happening.RECOVERED:
        return _RECOVERIES[event.condition]
    if event.happening is Happening.ENDED:
        return "Alert ended"
    return _TITLES.get((event.condition, event.happening), _NAMES[event.condition])


def alert_view(alert: Alert, now: Seconds) -> AlertView:
    asleep = alert.snoozed_until is not None and now < alert.snoozed_until
    state = "snoozed" if asleep else "active" if alert.acknowledged_at is None else "acknowledged"
    return AlertView(
        id=alert.id,
        severity=alert.condition.severity,
        condition=alert.condition,
        chain=alert.subject.chain,
        wallet=alert.subject.wallet,
        position=None if alert.subject.position is None else str(alert.subject.position),
        reason=alert.reason,
        raised_at=alert.raised_at,
        told_at=alert.told_at,
        state=state,
        snoozed_until=alert.snoozed_until if asleep else None,
    )


def event_view(event: Event) -> AlertEventView:
    return AlertEventView(
        number=event.number,
        at=event.at,
        alert=event.alert,
        happening=event.happening,
        title=title_of(event),
        severity=event.severity,
        condition=event.condition,
        chain=event.subject.chain,
        wallet=event.subject.wallet,
        position=None if event.subject.position is None else str(event.subject.position),
        reason=event.reason,
        said=event.said,
    )


def _by_weight(book: AlertBook) -> list[Alert]:
    return sorted(
        book.active,
        key=lambda one: (
            one.condition is not Condition.OUT_OF_RANGE,
            one.subject.chain,
            one.subject.wallet or "",
            one.subject.position or 0,
        ),
    )


def _notes(book: AlertBook, now: Seconds) -> tuple[str, ...]:
    if book.looked_at is None:
        return ("no monitor has looked yet; `zuno monitor once` looks now, `zuno monitor run` keeps looking",)
    notes = [
        f"{name} was not read at the last look: {health.reason}"
        for name, health in sorted(book.chains.items())
        if health.failures
    ]
    if (age := now - book.looked_at) > 3_600:
        notes.append(f"the last look is {age // 3_600} h old: `zuno monitor run` keeps looking")
    if book.trouble:
        notes.append(f"the last alert could not be delivered: {book.trouble}")
    if book.dropped:
        notes.append(f"{book.dropped} alerts were let go undelivered; `zuno alerts --all` shows the newest")
    return tuple(notes)
