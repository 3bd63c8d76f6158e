"""Alert rules: raised once, silent while acknowledged, cleared with hysteresis. A worsening is always notified, an
improvement within an episode at most once in six hours."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from typing import Final

from zuno.amm.model import LpPosition, quote_worth, whole_price
from zuno.kernel.numbers_text import decimal_text
from zuno.kernel.text import base_and_quote
from zuno.kernel.units import Address, Seconds
from zuno.lp.model.alerts import Alert, AlertBook, AlertEventKind, AlertRule, ChainHealth, Condition, Event, Subject

HOUR: Final = 3_600
PRICE_MARGIN: Final = Fraction(1, 100)
FEES_MARGIN: Final = Fraction(1, 10)
MOST_RULES: Final = 200


@dataclass(frozen=True, slots=True)
class AlertThresholds:
    """Shares of a range's width in ticks; `warn` below `clear`, or an alert would flap between them."""

    warn_below: Fraction = Fraction(15, 100)
    clear_above: Fraction = Fraction(20, 100)
    remind_after: int = 6 * HOUR
    failures: int = 3
    """Looks in a row that must fail before a chain is called unreachable."""

    def __post_init__(self) -> None:
        if not 0 <= self.warn_below <= self.clear_above < Fraction(1, 2):
            raise ValueError("a warning starts at or below the share where it clears, and that below half the width")
        if self.remind_after <= 0 or self.failures < 1:
            raise ValueError("reminders need a span and failures a count")


LIMITS: Final = AlertThresholds()
AlertChange = tuple[Alert | None, tuple[Event, ...]]
"""The alert that is on afterwards, if any, and what happened."""


def width_left(position: LpPosition) -> Fraction:
    """From the price to the nearer edge as a share of the width; negative outside."""
    tick, span = position.pool.tick, position.range
    return Fraction(min(tick - span.lower, span.upper - tick), span.width)


def judge_position(
    previous: Alert | None, position: LpPosition, wallet: Address, now: Seconds, limits: AlertThresholds = LIMITS
) -> AlertChange:
    """A position that was really read, held against the alert that is on for it."""
    if not position.liquidity:
        return end_alert(previous, "it holds no liquidity any more", now)
    subject = Subject(position.chain, wallet, position.id)
    left, condition = width_left(position), None
    if not position.in_range:
        condition = Condition.OUT_OF_RANGE
    elif left < limits.warn_below if previous is None else left <= limits.clear_above:
        condition = Condition.NEAR_EDGE
    return _advance_alert(previous, subject, condition, _describe_range(position), now, limits)


def judge_rule(
    previous: Alert | None, rule: AlertRule, position: LpPosition, now: Seconds, limits: AlertThresholds = LIMITS
) -> AlertChange:
    """A position held against a level its owner set: told once when it is reached, ready again once it has cleared."""
    seen, margin = _measure(rule, position)
    level = Fraction(rule.level)
    if rule.condition is Condition.PRICE_BELOW:
        reached = seen <= level if previous is None else seen < level * (1 + margin)
    else:
        reached = seen >= level if previous is None else seen > level * (1 - margin)
    what = "uncollected fees are" if rule.condition is Condition.FEES_ABOVE else "the price is"
    reason = f"{what} {decimal_text(seen, 8)} {rule.unit}, the level is {rule.level}"
    return _advance_alert(previous, rule.subject, rule.condition if reached else None, reason, now, limits)


def _measure(rule: AlertRule, position: LpPosition) -> tuple[Fraction, Fraction]:
    """What the level is held against, and the share of it that must be regained before it is told again."""
    pool = position.pool
    if rule.condition is not Condition.FEES_ABOVE:
        return whole_price(pool.sqrt_price_x96, pool.token0, pool.token1), PRICE_MARGIN
    _, quote = base_and_quote(pool.token0, pool.token1)
    worth = quote_worth(position.fees0, position.fees1, pool.sqrt_price_x96, pool.token0, pool.token1)
    return worth / 10**quote.decimals, FEES_MARGIN


def judge_chain(
    previous: Alert | None, chain: str, failures: int, reason: str, now: Seconds, limits: AlertThresholds = LIMITS
) -> AlertChange:
    """A chain after a look at it: `failures` in a row, none if it was read."""
    condition = Condition.UNREACHABLE if failures >= limits.failures else None
    why = f"{failures} looks in a row failed: {reason}" if failures else "the chain answers again"
    return _advance_alert(previous, Subject(chain), condition, why, now, limits)


def end_alert(previous: Alert | None, why: str, now: Seconds) -> AlertChange:
    """Its subject is no longer there to worry about."""
    if previous is None:
        return None, ()
    return None, (_event(previous, AlertEventKind.ENDED, now, why, said=not _is_snoozed(previous, now)),)


def acknowledge(alert: Alert, now: Seconds) -> tuple[Alert, Event]:
    """The owner knows: silence until it recovers or gets worse than it is now."""
    seen = replace(alert, told=alert.condition, told_at=now, acknowledged_at=now, snoozed_until=None)
    return seen, _event(seen, AlertEventKind.ACKNOWLEDGED, now, alert.reason, said=False)


def snooze(alert: Alert, until: Seconds, now: Seconds) -> tuple[Alert, Event]:
    """Silence until then, whatever happens; what still is wrong then is notified at once."""
    if until <= now:
        raise ValueError("a snooze ends later than it begins")
    seen = replace(alert, told=alert.condition, told_at=now, acknowledged_at=None, snoozed_until=until)
    return seen, _event(seen, AlertEventKind.SNOOZED, now, alert.reason, said=False)


def _advance_alert(
    previous: Alert | None,
    subject: Subject,
    condition: Condition | None,
    reason: str,
    now: Seconds,
    limits: AlertThresholds,
) -> AlertChange:
    if previous is None:
        if condition is None:
            return None, ()
        alert = Alert(_id_of(subject, now), subject, condition, reason, now, condition, now)
        return alert, (_event(alert, AlertEventKind.RAISED, now, reason),)
    if condition is None:
        said = not _is_snoozed(previous, now) and not previous.condition.asked_for  # nobody asked to hear that
        return None, (_event(previous, AlertEventKind.RECOVERED, now, reason, said=said),)
    current = replace(previous, condition=condition, reason=reason)
    happening = _worth_saying(current, now, limits)
    if happening is None:
        return current, ()
    current = replace(
        current,
        told=condition,
        told_at=now,
        eased_at=now if happening is AlertEventKind.EASED else current.eased_at,
        acknowledged_at=None if happening is AlertEventKind.WORSENED else current.acknowledged_at,
        snoozed_until=None,
    )
    return current, (_event(current, happening, now, reason),)


def _worth_saying(alert: Alert, now: Seconds, limits: AlertThresholds) -> AlertEventKind | None:
    if _is_snoozed(alert, now):
        return None
    if alert.condition.worse_than(alert.told):
        return AlertEventKind.WORSENED
    eased_lately = alert.eased_at is not None and now - alert.eased_at < limits.remind_after
    if alert.told.worse_than(alert.condition) and not eased_lately:
        return AlertEventKind.EASED
    if alert.snoozed_until is not None:
        return AlertEventKind.REMINDED  # it ran out, and nothing is better
    due = now - alert.told_at >= limits.remind_after and alert.acknowledged_at is None and not alert.condition.asked_for
    return AlertEventKind.REMINDED if due else None


def _id_of(subject: Subject, now: Seconds) -> str:
    """A subject has one alert at a time, so its name and its moment tell alerts apart."""
    about = (subject.chain, subject.wallet, subject.position, *((subject.rule,) if subject.rule else ()))
    name = "|".join(map(str, (*about, now)))
    return f"alert_{sha256(name.encode()).hexdigest()[:12]}"


def _is_snoozed(alert: Alert, now: Seconds) -> bool:
    return alert.snoozed_until is not None and now < alert.snoozed_until


def _event(alert: Alert, happening: AlertEventKind, now: Seconds, reason: str, *, said: bool = True) -> Event:
    return Event(alert.id, now, happening, alert.subject, alert.condition, reason, said)


def _describe_range(position: LpPosition) -> str:
    tick, span = position.pool.tick, position.range
    staked = ", staked with a subscriber" if position.subscribed else ""
    if position.in_range:
        share = f"{float(100 * width_left(position)):.1f} % of its width left to the nearer edge"
        return f"{share} (tick {tick} in {span.lower} to {span.upper}){staked}"
    beyond, edge = (span.lower - tick, "lower") if tick < span.lower else (tick - span.upper, "upper")
    share = f"{float(Fraction(100 * beyond, span.width)):.1f} % of its width"
    return f"tick {tick} lies {beyond} ticks ({share}) beyond its {edge} edge, {span.lower} to {span.upper}{staked}"


KEPT_EVENTS: Final = 500
MOST_EVENTS: Final = 2_000
"""Events that were not delivered yet are kept beyond the usual number, but not beyond this one."""
Answer = Callable[[Alert], tuple[Alert, Event]]


@dataclass(frozen=True, slots=True)
class WalletReading:
    wallet: Address
    positions: tuple[LpPosition, ...]
    gone: frozenset[int] = frozenset()
    """Ids that are known to be burnt."""
    complete: bool = False
    """True: what is neither among the positions nor `unread` is no longer the wallet's."""
    unread: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ChainReading:
    chain: str
    wallets: tuple[WalletReading, ...] = ()
    failure: str = ""
    block_time: Seconds | None = None


def record_reading(
    book: AlertBook, look: ChainReading, now: Seconds, limits: AlertThresholds = LIMITS
) -> tuple[AlertBook, tuple[Event, ...]]:
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

    whole, by_wallet = Subject(look.chain), dict[Address | None, list[Subject]]()
    for subject in on:
        if subject.chain == look.chain and subject.rule is None:  # a rule ends with its position, whether on or not
            by_wallet.setdefault(subject.wallet, []).append(subject)
    settle(whole, judge_chain(on.get(whole), look.chain, failures, look.failure, now, limits))
    for wallet in look.wallets:
        for position in wallet.positions:
            subject = Subject(look.chain, wallet.wallet, position.id)
            settle(subject, judge_position(on.get(subject), position, wallet.wallet, now, limits))
        for subject, why in _closed_positions(by_wallet.get(wallet.wallet, ()), wallet):
            settle(subject, end_alert(on[subject], why, now))
    rules = []
    for rule in book.rules:
        held, why = _find_position(rule, look)
        if held is not None:
            settle(rule.subject, judge_rule(on.get(rule.subject), rule, held, now, limits))
        if why:
            alert = previous.id if (previous := on.get(rule.subject)) else _id_of(rule.subject, now)
            ended = Event(alert, now, AlertEventKind.ENDED, rule.subject, rule.condition, why)
            settle(rule.subject, (None, (ended,)))  # the owner is told that the level is no longer watched
        else:
            rules.append(rule)
    return _append_events(
        replace(book, chains={**book.chains, look.chain: health}, looked_at=now, rules=tuple(rules)),
        on.values(),
        happened,
    )


def _find_position(rule: AlertRule, look: ChainReading) -> tuple[LpPosition | None, str]:
    """The position of a rule as it was read, or why there is none any more; neither where it was not read."""
    if rule.chain != look.chain:
        return None, ""
    for wallet in look.wallets:
        if wallet.wallet != rule.wallet or rule.position in wallet.unread:
            continue
        for position in wallet.positions:
            if position.id == rule.position:
                return position, ""
        if rule.position in wallet.gone:
            return None, "it was burnt, and its price and fee alerts with it"
        if wallet.complete:
            return None, "the wallet no longer holds it, and its price and fee alerts ended"
    return None, ""


def add_rule(book: AlertBook, rule: AlertRule) -> tuple[AlertBook, AlertRule | None]:
    """The rule that stands: an equal one if there is one already. None: there are too many."""
    for known in book.rules:
        if replace(known, id=rule.id, made_at=rule.made_at) == rule:
            return book, known
    if len(book.rules) >= MOST_RULES:
        return book, None
    return replace(book, rules=(*book.rules, rule)), rule


def remove_rule(book: AlertBook, rule_id: str, now: Seconds) -> tuple[AlertBook, AlertRule | None]:
    """None: there is no such rule. Its alert ends with it, without a word."""
    gone = next((rule for rule in book.rules if rule.id == rule_id), None)
    if gone is None:
        return book, None
    kept = tuple(alert for alert in book.active if alert.subject != gone.subject)
    ended = [
        _event(alert, AlertEventKind.ENDED, now, "its rule was removed", said=False)
        for alert in book.active
        if alert.subject == gone.subject
    ]
    without = replace(book, rules=tuple(rule for rule in book.rules if rule is not gone))
    return _append_events(without, kept, ended)[0], gone


def _closed_positions(mine: Iterable[Subject], look: WalletReading) -> list[tuple[Subject, str]]:
    seen = {position.id for position in look.positions} | look.unread
    closed = []
    for subject in mine:
        if subject.position in seen:
            continue
        if subject.position in look.gone:
            closed.append((subject, "it was burnt"))
        elif look.complete:
            closed.append((subject, "the wallet no longer holds it: closed or transferred"))
    return closed


def end_unwatched(
    book: AlertBook, watched: Callable[[Subject], bool], now: Seconds
) -> tuple[AlertBook, tuple[Event, ...]]:
    kept, happened = [], list[Event]()
    for alert in book.active:
        if watched(alert.subject):
            kept.append(alert)
        else:
            happened += end_alert(alert, "it is no longer watched", now)[1]
    healths = {name: health for name, health in book.chains.items() if watched(Subject(name))}
    return _append_events(replace(book, chains=healths), kept, happened)


def pending_events(book: AlertBook) -> Sequence[Event]:
    """Events for the owner that are not in the outbox yet, oldest first."""
    return [event for event in book.events if event.number > book.pushed and event.said]


def mark_appended(book: AlertBook, number: int) -> AlertBook:
    return trim_events(replace(book, pushed=max(book.pushed, number)))


def mark_journaled(book: AlertBook, number: int) -> AlertBook:
    return trim_events(replace(book, journaled=max(book.journaled, number)))


def trim_events(book: AlertBook) -> AlertBook:
    """The newest events, and those that still wait; never more than the most there may be."""
    waits = min(book.journaled, book.pushed)
    newest = max(0, len(book.events) - KEPT_EVENTS)
    kept = [event for place, event in enumerate(book.events) if place >= newest or event.number > waits]
    let_go, kept = kept[: max(0, len(kept) - MOST_EVENTS)], kept[-MOST_EVENTS:]
    lost = sum(event.said and event.number > book.pushed for event in let_go)
    return replace(book, events=tuple(kept), dropped=book.dropped + lost)


def answer_alert(book: AlertBook, alert_id: str, answer: Answer) -> tuple[AlertBook, Alert | None]:
    """None: no alert of this id is on."""
    for place, alert in enumerate(book.active):
        if alert.id == alert_id:
            changed, event = answer(alert)
            active = (*book.active[:place], changed, *book.active[place + 1 :])
            return _append_events(book, active, [event])[0], changed
    return book, None


def _append_events(
    book: AlertBook, active: Iterable[Alert], happened: Sequence[Event]
) -> tuple[AlertBook, tuple[Event, ...]]:
    numbered = tuple(replace(event, number=number) for number, event in enumerate(happened, start=book.last_number + 1))
    grown = replace(
        book, active=tuple(active), events=(*book.events, *numbered), last_number=book.last_number + len(numbered)
    )
    return trim_events(grown), numbered
