"""A mandate allows what it names, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.trade_events import Mandate
from zuno.trading.rules.protections import LiveEntry, check_grant, find_mandate_refusal, hash_mandate

NOW = Millis(20_000 * DAY_MS)


def mandate(**named: Any) -> Mandate:
    fields: dict[str, Any] = {
        "symbols": (Symbol("BTCUSDT"),),
        "venues": (Venue("BINANCE"),),
        "max_margin_per_trade_usd": Decimal(100),
        "max_margin_per_day_usd": Decimal(250),
        "max_daily_loss_usd": Decimal(20),
        "granted": NOW,
        "expires": Millis(NOW + 7 * DAY_MS),
    }
    return Mandate(**{**fields, **named})


ENTRY = LiveEntry(Symbol("BTCUSDT"), (Venue("BINANCE"),), Decimal(100), Decimal(150), Decimal("19.99"))


def test_an_entry_within_every_bound_is_covered() -> None:
    assert find_mandate_refusal(mandate(), ENTRY, NOW) is None


@pytest.mark.parametrize(
    "entry",
    [
        replace(ENTRY, symbol=Symbol("ETHUSDT")),
        replace(ENTRY, exchanges=(Venue("BINANCE"), Venue("UPBIT"))),
        replace(ENTRY, margin_usd=Decimal("100.01")),
        replace(ENTRY, margin_today_usd=Decimal("150.01")),
        replace(ENTRY, lost_today_usd=Decimal(20)),
        replace(ENTRY, without_stops=(Venue("BINANCE"),)),
        replace(ENTRY, judge_failed=True),
    ],
)
def test_what_the_mandate_does_not_say_is_refused(entry: LiveEntry) -> None:
    assert find_mandate_refusal(mandate(), entry, NOW)


@pytest.mark.parametrize("now", [NOW - 1, NOW + 7 * DAY_MS])
def test_a_mandate_is_good_between_its_two_moments(now: int) -> None:
    assert find_mandate_refusal(mandate(), ENTRY, Millis(now))


def test_no_mandate_means_paper() -> None:
    assert find_mandate_refusal(None, ENTRY, NOW)


def test_what_it_allows_it_allows() -> None:
    wide = mandate(stops="watched", judge_fallback=True)
    entry = replace(ENTRY, without_stops=(Venue("BINANCE"),), judge_failed=True)
    assert find_mandate_refusal(wide, entry, NOW) is None


@pytest.mark.parametrize(
    "named",
    [
        {"symbols": ()},
        {"venues": ()},
        {"expires": NOW},
        {"expires": NOW + 30 * DAY_MS + 1},
        {"max_margin_per_day_usd": Decimal(99)},
    ],
)
def test_a_mandate_that_cannot_be_is_not_granted(named: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        check_grant(mandate(**named), NOW)


def test_the_hash_is_bound_to_every_field() -> None:
    check_grant(mandate(expires=Millis(NOW + 30 * DAY_MS)), NOW)
    assert hash_mandate(mandate()) == hash_mandate(mandate())
    assert hash_mandate(mandate()) != hash_mandate(mandate(max_daily_loss_usd=Decimal(21)))
