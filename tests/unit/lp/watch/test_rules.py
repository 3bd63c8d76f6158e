"""When a word is due: the state machine of alerts, step by step and over any path of prices and answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.watching import NOW, WALLET, position
from zuno.kernel.notify import Severity
from zuno.kernel.units import Seconds
from zuno.lp.model.alerts import Alert, AlertEventKind, Condition, Event, alert_id
from zuno.lp.watch.rules import (
    HOUR,
    LIMITS,
    AlertChange,
    AlertThresholds,
    acknowledge,
    end_alert,
    judge_chain,
    judge_position,
    snooze,
    width_left,
)

H = AlertEventKind
REMIND = LIMITS.remind_after


@dataclass
class Watched:
    """One position of 1,000 ticks, judged at one tick after another."""

    now: int = NOW
    alert: Alert | None = None
    events: list[Event] = field(default_factory=list)

    def see(self, tick: int, after: int = 60, liquidity: int = 1) -> list[AlertEventKind]:
        self.now += after
        return self._take(judge_position(self.alert, position(tick, liquidity=liquidity), WALLET, Seconds(self.now)))

    def ack(self) -> None:
        assert self.alert is not None
        self.alert, event = acknowledge(self.alert, Seconds(self.now))
        self.events.append(event)

    def snooze(self, span: int) -> None:
        assert self.alert is not None
        self.alert, event = snooze(self.alert, Seconds(self.now + span), Seconds(self.now))
        self.events.append(event)

    def _take(self, judged: AlertChange) -> list[AlertEventKind]:
        self.alert, events = judged
        self.events += events
        return [event.happening for event in events if event.said]


INSIDE, NEAR, BETWEEN, OUT = 500, 149, 170, -1


@pytest.mark.parametrize(
    ("tick", "left"),
    [
        (0, Fraction(0)),
        (150, Fraction(15, 100)),
        (999, Fraction(1, 1000)),
        (-10, Fraction(-1, 100)),
        (1000, Fraction(0)),
    ],
)
def test_width_left_is_the_share_to_the_nearer_edge(tick: int, left: Fraction) -> None:
    assert width_left(position(tick)) == left


@pytest.mark.parametrize(
    ("tick", "condition"),
    [
        (500, None),
        (150, None),
        (850, None),
        (149, Condition.NEAR_EDGE),
        (851, Condition.NEAR_EDGE),
        (0, Condition.NEAR_EDGE),
        (999, Condition.NEAR_EDGE),
        (-1, Condition.OUT_OF_RANGE),
        (1000, Condition.OUT_OF_RANGE),
    ],
)
def test_what_a_calm_position_raises(tick: int, condition: Condition | None) -> None:
    alert, events = judge_position(None, position(tick), WALLET, NOW)
    assert (None if alert is None else alert.condition) is condition
    assert [event.happening for event in events] == ([] if condition is None else [H.RAISED])
    if alert is not None:
        assert alert_id(alert.id) == alert.id


@pytest.mark.parametrize(("tick", "on"), [(150, True), (200, True), (800, True), (201, False), (799, False)])
def test_a_warning_clears_only_above_a_fifth_of_the_width(tick: int, on: bool) -> None:
    watched = Watched()
    watched.see(NEAR)
    assert watched.see(tick) == ([] if on else [H.RECOVERED])
    assert (watched.alert is not None) is on


def test_a_warning_that_leaves_the_range_gets_worse_and_keeps_its_id() -> None:
    watched = Watched()
    assert watched.see(NEAR) == [H.RAISED]
    first = watched.alert
    assert watched.see(OUT) == [H.WORSENED]
    assert watched.alert is not None
    assert first is not None
    assert watched.alert.id == first.id
    assert watched.events[-1].severity is Severity.CRITICAL


def test_back_inside_is_told_and_clear_of_the_edge_is_told() -> None:
    watched = Watched()
    watched.see(OUT)
    assert watched.see(BETWEEN) == [H.EASED]
    assert watched.see(INSIDE) == [H.RECOVERED]
    assert watched.alert is None
    assert watched.events[-1].severity is Severity.INFO
    other = Watched()
    other.see(OUT)
    assert other.see(INSIDE) == [H.RECOVERED]


def test_a_price_that_dances_on_the_edge_is_told_once_each_way() -> None:
    """And what was told last is never milder than what is."""
    watched = Watched()
    said = [happening for turn in range(100) for happening in watched.see(OUT if turn % 2 == 0 else NEAR)]
    assert said == [H.RAISED, H.EASED, H.WORSENED]


def test_it_is_said_again_after_six_hours_and_not_before() -> None:
    watched = Watched()
    watched.see(OUT)
    assert watched.see(OUT, REMIND - 1) == []
    assert watched.see(OUT, 1) == [H.REMINDED]
    assert watched.see(OUT, REMIND - 1) == []
    assert watched.see(OUT, 1) == [H.REMINDED]


def test_an_acknowledged_alert_is_silent_until_it_recovers() -> None:
    watched = Watched()
    watched.see(OUT)
    watched.ack()
    assert watched.see(OUT, 10 * REMIND) == []
    assert watched.see(INSIDE) == [H.RECOVERED]
    assert watched.see(OUT) == [H.RAISED]


def test_an_acknowledged_warning_that_gets_worse_is_told_and_reminded_again() -> None:
    watched = Watched()
    watched.see(NEAR)
    watched.ack()
    assert watched.see(NEAR, 2 * REMIND) == []
    assert watched.see(OUT) == [H.WORSENED]
    assert watched.see(OUT, REMIND) == [H.REMINDED]


def test_what_was_acknowledged_near_the_edge_is_told_when_it_leaves_again() -> None:
    watched = Watched()
    for tick in (OUT, NEAR, OUT, NEAR):  # the last easing is not told
        watched.see(tick)
    watched.ack()
    assert watched.see(OUT) == [H.WORSENED]


def test_a_snooze_is_silent_until_its_time_whatever_happens_and_then_tells_at_once() -> None:
    watched = Watched()
    watched.see(NEAR)
    watched.snooze(12 * HOUR)
    assert watched.see(OUT, 6 * HOUR) == []
    assert watched.see(OUT, 6 * HOUR - 1) == []
    assert watched.see(OUT, 1) == [H.WORSENED]
    assert watched.see(OUT, 1) == []
    same = Watched()
    same.see(OUT)
    same.snooze(HOUR)
    assert same.see(OUT, HOUR) == [H.REMINDED]


def test_what_was_snoozed_near_the_edge_and_left_meanwhile_is_told_as_worse() -> None:
    watched = Watched()
    for tick in (OUT, NEAR, OUT, NEAR):  # the last easing is not told
        watched.see(tick)
    watched.snooze(HOUR)
    assert watched.see(OUT, HOUR) == [H.WORSENED]


def test_an_end_during_a_snooze_is_written_down_and_not_told() -> None:
    watched = Watched()
    watched.see(OUT)
    watched.snooze(HOUR)
    assert watched.see(OUT, liquidity=0) == []
    assert watched.events[-1].happening is H.ENDED


def test_a_recovery_during_a_snooze_is_written_down_and_not_told() -> None:
    watched = Watched()
    watched.see(OUT)
    watched.snooze(HOUR)
    assert watched.see(INSIDE) == []
    assert watched.events[-1].happening is H.RECOVERED
    assert watched.alert is None


def test_a_snooze_ends_later_than_it_begins() -> None:
    watched = Watched()
    watched.see(OUT)
    assert watched.alert is not None
    with pytest.raises(ValueError, match="later"):
        snooze(watched.alert, NOW, Seconds(NOW + 60))


def test_an_empty_position_raises_nothing_and_ends_what_is_on() -> None:
    watched = Watched()
    assert watched.see(OUT, liquidity=0) == []
    watched.see(OUT)
    assert watched.see(OUT, liquidity=0) == [H.ENDED]
    assert watched.alert is None
    assert end_alert(None, "gone", NOW) == (None, ())


def test_a_staked_position_is_watched_like_any_other_and_says_so() -> None:
    _, (event,) = judge_position(None, position(OUT, subscribed=True), WALLET, NOW)
    assert event.happening is H.RAISED
    assert "staked" in event.reason


def test_the_reason_names_the_numbers() -> None:
    _, (below,) = judge_position(None, position(-100), WALLET, NOW)
    assert "100 ticks (10.0 %" in below.reason
    _, (above,) = judge_position(None, position(1_250), WALLET, NOW)
    assert "250 ticks (25.0 %" in above.reason
    _, (near,) = judge_position(None, position(31), WALLET, NOW)
    assert "3.1 %" in near.reason


def test_a_chain_is_unreachable_after_three_failed_looks_and_recovers() -> None:
    alert: Alert | None = None
    said: list[AlertEventKind] = []
    for failures in (1, 2, 3, 4, 0, 1, 2, 0):
        alert, events = judge_chain(alert, "base", failures, "no answer", NOW)
        said += [event.happening for event in events]
    assert said == [H.RAISED, H.RECOVERED]
    assert alert is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"warn_below": Fraction(3, 10)},
        {"clear_above": Fraction(1, 2)},
        {"warn_below": Fraction(-1)},
        {"remind_after": 0},
        {"failures": 0},
    ],
)
def test_limits_that_could_never_work_are_refused(wrong: dict[str, Fraction]) -> None:
    with pytest.raises(ValueError, match=r"warning|reminders"):
        AlertThresholds(**wrong)  # type: ignore[arg-type]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("see"), st.integers(-300, 1_300), st.integers(1, 4 * HOUR)),
        st.tuples(st.just("ack"), st.just(0), st.just(0)),
        st.tuples(st.just("snooze"), st.integers(1, 12 * HOUR), st.just(0)),
    ),
    max_size=60,
)


@pytest.mark.slow
@given(STEPS)
def test_laws_of_every_path(steps: list[tuple[str, int, int]]) -> None:
    watched = Watched()
    last_said: dict[tuple[str, AlertEventKind], int] = {}
    for act, value, after in steps:
        before = watched.alert
        if act != "see":
            if before is not None:
                watched.ack() if act == "ack" else watched.snooze(value)
            continue
        said = watched.see(value, after)
        alert, left, inside = watched.alert, width_left(position(value)), 0 <= value < 1_000
        # The condition is what is, with hysteresis.
        if not inside:
            assert alert is not None
            assert alert.condition is Condition.OUT_OF_RANGE
        elif alert is not None:
            assert alert.condition is Condition.NEAR_EDGE
            assert left <= LIMITS.clear_above
            assert before is not None or left < LIMITS.warn_below
        else:
            assert left >= LIMITS.warn_below
            assert before is None or left > LIMITS.clear_above
        # Silence means silence; a word is at most one, and never less than what is.
        asleep = before is not None and before.snoozed_until is not None and watched.now < before.snoozed_until
        assert not (asleep and said)
        assert len(said) <= 1
        if alert is not None and not asleep:
            assert not alert.condition.worse_than(alert.told)
        acked = before is not None and before.acknowledged_at is not None
        assert not (acked and H.REMINDED in said)
        # Nothing that is on goes unsaid for longer than the reminder, unless the owner wished it so.
        if alert is not None and not asleep and alert.acknowledged_at is None:
            assert watched.now - alert.told_at < REMIND
        for happening in said:
            assert alert is not None or happening is H.RECOVERED
            key = (watched.events[-1].alert, happening)
            if happening in {H.REMINDED, H.EASED} and not (before and before.snoozed_until):
                assert watched.now - last_said.get(key, -(10**9)) >= REMIND
            assert not (happening in {H.RAISED, H.RECOVERED} and key in last_said)
            last_said[key] = watched.now
    # An episode opens once and closes at most once.
    for episode in {event.alert for event in watched.events}:
        kinds = [event.happening for event in watched.events if event.alert == episode]
        assert kinds[0] is H.RAISED
        assert kinds.count(H.RAISED) == 1
        assert sum(kind.over for kind in kinds) <= 1
        assert not any(kind.over for kind in kinds[:-1])
