"""Alerts for the owner: list, acknowledge, snooze, and append them to the outbox."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Final

from zuno.amm.model import LpPosition
from zuno.journal.port import Author, Journal
from zuno.kernel import arguments
from zuno.kernel.clock import Clock
from zuno.kernel.errors import NotFound, Refused, UsageError
from zuno.kernel.notify import Button, Fact, Notice, NoticeKind, Outbox
from zuno.kernel.numbers_text import time_text
from zuno.kernel.text import base_and_quote
from zuno.kernel.units import Seconds
from zuno.kernel.view import View
from zuno.kernel.wire import pick
from zuno.lp.model.alerts import Alert, AlertBook, AlertEventKind, AlertRule, Condition, Event, alert_id, rule_id
from zuno.lp.model.chains import chain_label
from zuno.lp.ports.samples import AlertStore
from zuno.lp.watch.rules import (
    MOST_RULES,
    Answer,
    acknowledge,
    add_rule,
    answer_alert,
    judge_rule,
    mark_appended,
    mark_journaled,
    pending_events,
    remove_rule,
    snooze,
)
from zuno.present.document import Act, Block, Document, Kind, Part, Tone, Value, document, facts, lines, section, table
from zuno.present.values import count, foreign, good, id_, quiet

ENTRY: Final = "alert"
RULE_ENTRY: Final = "alert_rule"
ReadPosition = Callable[[str, str | None], Awaitable[LpPosition]]
"""A position by its id on a chain, or on the default chain."""
LONGEST_SNOOZE: Final = 30 * 86_400
_TITLES: Final = {
    (Condition.OUT_OF_RANGE, AlertEventKind.REMINDED): "Still out of range",
    (Condition.NEAR_EDGE, AlertEventKind.REMINDED): "Still near the edge",
    (Condition.NEAR_EDGE, AlertEventKind.EASED): "Back inside, still near the edge",
    (Condition.UNREACHABLE, AlertEventKind.REMINDED): "Chain still unreachable",
}
_NAMES: Final = {
    Condition.OUT_OF_RANGE: "Out of range",
    Condition.NEAR_EDGE: "Near the edge",
    Condition.UNREACHABLE: "Chain unreachable",
    Condition.PRICE_ABOVE: "Price above your level",
    Condition.PRICE_BELOW: "Price below your level",
    Condition.FEES_ABOVE: "Fees above your level",
}
_RECOVERIES: Final = {
    Condition.OUT_OF_RANGE: "Back in range",
    Condition.NEAR_EDGE: "Clear of the edge",
    Condition.UNREACHABLE: "Chain reachable again",
    Condition.PRICE_ABOVE: "Price back below your level",
    Condition.PRICE_BELOW: "Price back above your level",
    Condition.FEES_ABOVE: "Fees back below your level",
}


class AlertRuleView(View):
    """A level the owner set."""

    id: str
    chain: str
    wallet: str
    position: str
    condition: str
    level: str
    unit: str
    state: str
    """`armed`, or `reached`: told once, armed again after it has cleared."""
    made_at: int


class AlertView(View):
    id: str
    severity: str
    condition: str
    chain: str
    wallet: str | None
    position: str | None
    rule: str | None = None
    """The owner's rule behind it; null: the range or the chain."""
    reason: str
    raised_at: int
    told_at: int
    state: str
    """`active`, `acknowledged` (silent until it recovers or worsens) or `snoozed`."""
    snoozed_until: int | None

    @property
    def acts(self) -> tuple[Act, ...]:
        answers = (Act("Ack", f"alerts ack {self.id}"), Act("Snooze 6 h", f"alerts snooze {self.id} 6h"))
        if self.position is None:
            return answers
        return (*answers, Act("Recommend", f"lp recommend rebalance {self.position} --chain {self.chain}"))


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

    @property
    def line(self) -> Value:
        about = self.chain if self.position is None else f"position {self.position} on {self.chain}"
        text = f"{time_text(self.at)} {self.happening}: {self.title}: {about}: {self.reason} ({self.alert})"
        return foreign(text, judge_severity(self.severity))


class AlertsView(View):
    looked_at: int | None
    """When a monitor last looked; None: never."""
    alerts: tuple[AlertView, ...]
    rules: tuple[AlertRuleView, ...] = ()
    events: tuple[AlertEventView, ...] | None
    """With `--all`: what happened, newest first."""
    waiting: int
    """Events that could not be delivered yet."""
    dropped: int
    trouble: str
    notes: tuple[str, ...]

    def to_document(self) -> Document:
        looked = "never" if self.looked_at is None else time_text(self.looked_at)
        events = self.events or ()
        past = lines(*(event.line for event in events)) or lines(quiet("Nothing yet."))
        none = good("No alert is on.") if self.looked_at else quiet("No alert is on.")
        return document(
            f"Alerts that are on: {len(self.alerts)}" if self.alerts else none,
            list_alerts(self.alerts),
            facts(("not delivered yet", count(self.waiting))) if self.waiting else None,
            _list_rules(self.rules),
            None if self.events is None else section("What happened, newest first", past),
            context=f"last look: {looked}",
            notes=map(foreign, self.notes),
            acts=self.alerts[0].acts if self.alerts else (),
            as_of=None if self.looked_at is None else time_text(self.looked_at),
        )


class AnsweredView(View):
    """What an alert is after the owner's answer."""

    done: str
    alert: AlertView

    def to_document(self) -> Document:
        return document(good(self.done), list_alerts((self.alert,)))


class RuleView(View):
    """A rule that was added or removed."""

    done: str
    rule: AlertRuleView
    notes: tuple[str, ...]

    def to_document(self) -> Document:
        return document(good(self.done), _list_rules((self.rule,)), notes=map(foreign, self.notes))


def judge_severity(severity: str) -> Tone:
    return {"critical": Tone.BAD, "info": Tone.GOOD}.get(severity, Tone.WARN)


def list_alerts(alerts: tuple[AlertView, ...]) -> Block | None:
    def cells(alert: AlertView) -> tuple[Value | str, ...]:
        state = alert.state if alert.snoozed_until is None else f"snoozed until {time_text(alert.snoozed_until)}"
        what = f"{alert.condition.replace('_', ' ')} ({alert.severity})"
        return (
            Value(what, judge_severity(alert.severity)),
            "" if alert.position is None else id_(alert.position),
            alert.chain,
            f"{state}, since {time_text(alert.raised_at)}",
            id_(alert.id),
            foreign(alert.reason),
        )

    return table(("", "position", "chain", "state", "alert", "why"), map(cells, alerts)) if alerts else None


def _list_rules(rules: tuple[AlertRuleView, ...]) -> Part:
    def cells(rule: AlertRuleView) -> tuple[Value | str, ...]:
        level = f"{rule.condition.replace('_', ' ')} {rule.level} {rule.unit}"
        kind = Kind.FOREIGN if "?" in rule.unit else Kind.TEXT  # the mark of a token that nobody vouches for
        return id_(rule.id), id_(rule.position), rule.chain, Value(level, kind=kind), rule.state

    columns = ("rule", "position", "chain", "tell when", "state")
    return section("Your levels", table(columns, map(cells, rules))) if rules else None


@dataclass(frozen=True, slots=True)
class AlertDesk:
    """List, acknowledge, snooze, add and remove; the monitor may change alerts at the same time."""

    store: AlertStore
    outbox: Outbox
    journal: Callable[[], Awaitable[Journal]]
    clock: Clock
    read_position: ReadPosition
    is_watched: Callable[[LpPosition], bool]

    async def list(self, *, everything: bool = False) -> AlertsView:
        book, now = await self.store.book(), self.clock.now()
        sending = await self.outbox.status(NoticeKind.ALERT)
        dropped = book.dropped + sending.undeliverable
        return AlertsView(
            looked_at=book.looked_at,
            alerts=tuple(alert_view(alert, now) for alert in _most_severe_first(book)),
            rules=tuple(rule_view(rule, book) for rule in book.rules),
            events=tuple(map(event_view, reversed(book.events))) if everything else None,
            waiting=len(pending_events(book)) + sending.waiting,
            dropped=dropped,
            trouble=sending.trouble,
            notes=(*_notes(book, now), *_sending_notes(dropped, sending.trouble)),
        )

    async def ack(self, text: str) -> AnsweredView:
        wanted, now = alert_id(text), self.clock.now()
        alert = await self._answer(wanted, lambda alert: acknowledge(alert, now))
        done = f"{wanted} is acknowledged: silent until it recovers or gets worse."
        return AnsweredView(done=done, alert=alert_view(alert, now))

    async def snooze(self, text: str, span: str) -> AnsweredView:
        wanted, seconds, now = alert_id(text), arguments.parse_span(span), self.clock.now()
        if not 0 < seconds <= LONGEST_SNOOZE:
            raise UsageError(f"A snooze lasts from 1m to {LONGEST_SNOOZE // 86_400}d, not {span.strip()[:40]}.")
        until = Seconds(now + seconds)
        alert = await self._answer(wanted, lambda alert: snooze(alert, until, now))
        return AnsweredView(done=f"{wanted} is snoozed until {time_text(until)}.", alert=alert_view(alert, now))

    async def add(self, text: str, chain: str | None, levels: Mapping[Condition, str | None]) -> RuleView:
        """Tell the owner when a position's price or uncollected fees reach a level; one level at a time."""
        given = [(condition, level) for condition, level in levels.items() if level is not None]
        if len(given) != 1:
            raise UsageError("Give one of --price-above, --price-below and --fees-above.")
        (condition, typed), now = given[0], self.clock.now()
        level = arguments.parse_amount(typed)
        position = await self.read_position(text, chain)
        base, quote = base_and_quote(position.pool.token0, position.pool.token1)
        fees = condition is Condition.FEES_ABOVE
        unit = quote.display_name if fees else f"{quote.display_name} per {base.display_name}"
        name = f"{position.chain}|{position.owner}|{position.id}|{condition}|{level}|{now}"
        rule_name = f"rule_{sha256(name.encode()).hexdigest()[:12]}"
        wanted = AlertRule(rule_name, position.chain, position.owner, position.id, condition, level, unit, now)
        rule = await self.store.change(lambda book: add_rule(book, wanted))
        if rule is None:
            raise Refused(f"There are {MOST_RULES} alert rules already; `zuno alerts remove RULE` makes room.")
        notes = []
        if judge_rule(None, wanted, position, now)[0] is not None:
            notes.append("it is reached already, so the next look of the monitor tells it")
        if not self.is_watched(position):
            notes.append(f"the monitor does not watch {position.owner}: add it to ZUNO_WATCHED_WALLETS")
        if rule is wanted:
            await self._record(rule, "added")
        done = f"{rule.id} is set." if rule is wanted else f"{rule.id} says that already."
        return RuleView(done=done, rule=rule_view(rule, await self.store.book()), notes=tuple(notes))

    async def remove(self, text: str) -> RuleView:
        wanted, now = rule_id(text), self.clock.now()
        before = await self.store.book()
        rule = await self.store.change(lambda book: remove_rule(book, wanted, now))
        if rule is None:
            raise NotFound(f"No alert rule {wanted}; `zuno alerts` lists them.")
        await self._record(rule, "removed")
        return RuleView(done=f"{wanted} is removed.", rule=rule_view(rule, before), notes=())

    async def _record(self, rule: AlertRule, done: str) -> None:
        journal = await self.journal()
        payload = {**asdict(rule), "level": str(rule.level), "done": done}
        await journal.append(kind=RULE_ENTRY, author=Author("owner"), payload=payload)
        await journal_events(self.store, journal)

    async def _answer(self, wanted: str, answer: Answer) -> Alert:
        alert = await self.store.change(lambda book: answer_alert(book, wanted, answer))
        if alert is None:
            raise NotFound(f"No alert {wanted} is on; `zuno alerts` lists those that are.")
        await journal_events(self.store, await self.journal())
        return alert


async def journal_events(store: AlertStore, journal: Journal) -> None:
    """Every event the journal does not have yet; one may stand there twice after a crash, none is missing."""
    book = await store.book()
    for event in book.events:
        if event.number > book.journaled:
            await journal.append(kind=ENTRY, author=Author("monitor"), payload=asdict(event))
    if book.events and book.events[-1].number > book.journaled:
        last = book.events[-1].number
        await store.change(lambda latest: (mark_journaled(latest, last), None))


async def append_alerts(store: AlertStore, outbox: Outbox | None) -> None:
    """Every event for the owner that the outbox does not have yet; a key keeps one that a crash repeats from standing
    there twice. Without an outbox there is nobody to tell, and nothing waits for one who may come later."""
    book = await store.book()
    if outbox is not None:
        for event in pending_events(book):
            await outbox.append(build_notice(event), f"alert:{event.alert}:{event.number}")
    if book.last_number > book.pushed:
        await store.change(lambda latest: (mark_appended(latest, book.last_number), None))


def build_notice(event: Event) -> Notice:
    subject, over = event.subject, event.happening.over
    facts = [Fact("chain", subject.chain)]
    if subject.wallet is not None:
        facts.append(Fact("wallet", f"{subject.wallet[:6]}…{subject.wallet[-4:]}"))
    if subject.position is not None:
        facts.append(Fact("position", str(subject.position)))
    recovered = event.happening is AlertEventKind.RECOVERED
    facts.append(Fact("condition", "recovered" if recovered else event.condition.replace("_", " ")))
    return Notice(
        kind=NoticeKind.ALERT,
        title=event_title(event),
        severity=event.severity,
        label=chain_label(subject.chain),
        at=event.at,
        facts=tuple(facts),
        reason=event.reason,
        reference=event.alert,
        buttons=() if over else _answers(event),
    )


def _answers(event: Event) -> tuple[Button, ...]:
    answers = [Button("Ack", f"/ack {event.alert}"), Button("Snooze 6 h", f"/snooze {event.alert} 6h")]
    if event.subject.position is not None:
        answers.append(Button("Recommend", f"/recommend {event.subject.position} {event.subject.chain}"))
    return tuple(answers)


def event_title(event: Event) -> str:
    if event.happening is AlertEventKind.RECOVERED:
        return _RECOVERIES[event.condition]
    if event.happening is AlertEventKind.ENDED:
        return "Alert ended"
    return _TITLES.get((event.condition, event.happening), _NAMES[event.condition])


def rule_view(rule: AlertRule, book: AlertBook) -> AlertRuleView:
    reached = any(alert.subject == rule.subject for alert in book.active)
    shown = {"position": str(rule.position), "level": f"{rule.level:f}", "state": "reached" if reached else "armed"}
    return AlertRuleView(**asdict(rule) | shown)


def alert_view(alert: Alert, now: Seconds) -> AlertView:
    asleep = alert.snoozed_until is not None and now < alert.snoozed_until
    state = "snoozed" if asleep else "active" if alert.acknowledged_at is None else "acknowledged"
    return AlertView(
        **pick(alert, "id", "condition", "reason", "raised_at", "told_at"),
        **alert.subject.describe(),
        severity=alert.condition.severity,
        rule=alert.subject.rule,
        state=state,
        snoozed_until=alert.snoozed_until if asleep else None,
    )


def event_view(event: Event) -> AlertEventView:
    shown = event.subject.describe() | {"title": event_title(event), "severity": event.severity}
    return AlertEventView(**{name: value for name, value in asdict(event).items() if name != "subject"} | shown)


def _most_severe_first(book: AlertBook) -> list[Alert]:
    return sorted(
        book.active,
        key=lambda alert: (
            alert.condition is not Condition.OUT_OF_RANGE,
            alert.subject.chain,
            alert.subject.wallet or "",
            alert.subject.position or 0,
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
    return tuple(notes)


def _sending_notes(dropped: int, trouble: str) -> Iterator[str]:
    if trouble:
        yield f"the last push could not be delivered: {trouble}"
    if dropped:
        yield f"{dropped} alerts were let go undelivered; `zuno alerts --all` shows the newest"
