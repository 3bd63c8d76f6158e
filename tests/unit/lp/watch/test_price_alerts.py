"""Levels an owner sets: told once, armed again after a margin, and never lost without a word."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.watching import NOW, OTHER, WALLET, position
from zuno.amm.model import LpPosition, sqrt_price_for
from zuno.kernel.units import Address, Amount, Seconds, SqrtPriceX96
from zuno.lp.model.alerts import AlertBook, AlertEventKind, AlertRule, Condition, Event
from zuno.lp.watch.rules import (
    LIMITS,
    MOST_RULES,
    ChainReading,
    WalletReading,
    add_rule,
    pending_events,
    record_reading,
    remove_rule,
)

H = AlertEventKind


def rule(condition: Condition = Condition.PRICE_ABOVE, level: str = "3400", number: int = 1) -> AlertRule:
    return AlertRule(f"rule_{number:012x}", "base", WALLET, 1, condition, Decimal(level), "USDC per ETH", NOW)


def at_price(price: int | str, fees: int = 0) -> LpPosition:
    held = position(500)
    root = sqrt_price_for(Fraction(Decimal(price)), held.pool.token0, held.pool.token1)
    return replace(held, pool=replace(held.pool, sqrt_price_x96=SqrtPriceX96(root)), fees1=Amount(fees * 10**6))


def look(*positions: LpPosition, wallet: Address = WALLET, **more: object) -> ChainReading:
    reading = {"complete": True, **more}
    return ChainReading("base", (WalletReading(wallet, positions, **reading),), block_time=NOW)  # type: ignore[arg-type]


class Watched:
    """A book with rules, looked at once a minute."""

    def __init__(self, *rules: AlertRule) -> None:
        self.book = AlertBook(rules=rules)
        self.now = NOW

    def see(self, reading: ChainReading, after: int = 60) -> tuple[Event, ...]:
        self.now = Seconds(self.now + after)
        self.book, events = record_reading(self.book, reading, self.now)
        return events

    def kinds(self, price: int | str, after: int = 60) -> list[AlertEventKind]:
        return [event.happening for event in self.see(look(at_price(price)), after)]


def test_a_level_is_told_once_and_armed_again_after_a_margin() -> None:
    watched = Watched(rule())
    assert watched.kinds("3399.9") == []
    assert watched.kinds("3400.01") == [H.RAISED]
    assert watched.kinds(3500, after=10 * LIMITS.remind_after) == []  # fires once: nobody asked for reminders
    assert watched.kinds(3380) == []
    assert watched.kinds(3400) == []
    assert watched.kinds(3366) == [H.RECOVERED]  # 1 % below
    assert watched.kinds(3399) == []
    assert watched.kinds(3401) == [H.RAISED]
    assert [event.happening for event in pending_events(watched.book)] == [H.RAISED, H.RAISED]


def test_a_fall_is_told_the_other_way_round() -> None:
    watched = Watched(rule(Condition.PRICE_BELOW, "3000"))
    assert [watched.kinds(price) for price in (3001, 3000, 2500, 3029, 3031, 3000)] == [
        [],
        [H.RAISED],
        [],
        [],
        [H.RECOVERED],
        [H.RAISED],
    ]


def test_fees_are_told_until_they_are_collected() -> None:
    watched = Watched(replace(rule(Condition.FEES_ABOVE, "50"), unit="USDC"))
    seen = [[event.happening for event in watched.see(look(at_price(3000, fees)))] for fees in (49, 50, 60, 46, 0, 51)]
    assert seen == [[], [H.RAISED], [], [], [H.RECOVERED], [H.RAISED]]


def test_a_position_has_its_range_alert_beside_every_level() -> None:
    watched = Watched(rule(), rule(Condition.PRICE_BELOW, "3000", 2))
    outside = replace(at_price(3401), pool=replace(at_price(3401).pool, tick=position(-50).pool.tick))
    events = watched.see(look(outside))
    assert sorted(event.condition for event in events) == [Condition.OUT_OF_RANGE, Condition.PRICE_ABOVE]
    assert len({alert.id for alert in watched.book.active}) == 2
    inside = watched.see(look(at_price(3401)))
    assert [(event.happening, event.condition) for event in inside] == [(H.RECOVERED, Condition.OUT_OF_RANGE)]


@pytest.mark.parametrize(
    ("reading", "ends"),
    [
        (look(), True),
        (look(gone=frozenset({1}), complete=False), True),
        (look(complete=False), False),
        (look(unread=frozenset({1})), False),
        (look(wallet=OTHER), False),
        (ChainReading("base", failure="no answer"), False),
        (ChainReading("arbitrum", (WalletReading(WALLET, (), complete=True),)), False),
    ],
    ids=["left", "burnt", "incomplete", "unread", "another wallet", "failed", "another chain"],
)
@pytest.mark.parametrize("price", [3000, 3500], ids=["armed", "reached"])
def test_a_rule_ends_with_its_position_and_says_so(reading: ChainReading, ends: bool, price: int) -> None:
    watched = Watched(rule())
    watched.see(look(at_price(price)))
    events = [event for event in watched.see(reading) if event.subject.rule is not None]
    assert [event.happening for event in events] == ([H.ENDED] if ends else [])
    assert all(event.said for event in events)
    assert watched.book.rules == (() if ends else (rule(),))


@given(st.lists(st.integers(3_300, 3_500), max_size=30))
def test_between_two_alerts_the_price_has_regained_its_margin(prices: list[int]) -> None:
    watched, lowest = Watched(rule()), 0
    raised = False
    for price in prices:
        happened = watched.kinds(price)
        if H.RAISED in happened:
            assert price >= 3400
            assert not raised or lowest <= 3366
            raised, lowest = True, price
        lowest = min(lowest, price)


@pytest.mark.slow
def test_rules_are_added_once_and_bounded() -> None:
    book, first = add_rule(AlertBook(), rule())
    assert first == rule()
    same, known = add_rule(book, rule(number=2))
    assert (same, known) == (book, first)
    for number in range(2, MOST_RULES + 1):
        book, added = add_rule(book, rule(level=str(number), number=number))
        assert added is not None
    assert add_rule(book, rule(level="1.5", number=999)) == (book, None)


def test_a_rule_is_removed_with_its_alert() -> None:
    watched = Watched(rule(), rule(Condition.PRICE_BELOW, "10", 2))
    watched.see(look(at_price(3401)))
    book, gone = remove_rule(watched.book, rule().id, NOW)
    assert gone == rule()
    assert (len(book.rules), book.active) == (1, ())
    assert (book.events[-1].happening, book.events[-1].said) == (H.ENDED, False)
    assert remove_rule(book, rule().id, NOW) == (book, None)


@pytest.mark.parametrize(
    "wrong", [{"id": "rule_../../x"}, {"level": Decimal(0)}, {"condition": Condition.NEAR_EDGE}], ids=str
)
def test_what_is_no_rule_is_none(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="rule_"):
        replace(rule(), **wrong)  # type: ignore[arg-type]
