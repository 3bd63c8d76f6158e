"""A mandate allows what it names, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from zuno.kernel.canonical import canonical, to_json
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.sleeves import DEBATE_ALONE
from zuno.trading.model.trade_events import DayMarked, Mandate, MandatedSleeve
from zuno.trading.rules.protections import (
    LiveEntry,
    SleeveWorth,
    check_grant,
    find_mandate_refusal,
    find_sleeve_fall,
    hash_mandate,
)

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


# -- sleeves


def sleeve(name: str, share: str, fall: str = "0.25") -> MandatedSleeve:
    return MandatedSleeve(name=name, share=Decimal(share), max_drawdown=Decimal(fall))


CORE = mandate(sleeves=(sleeve("trend", "0.6"), sleeve("cash-carry", "0.2", "0.1")))
TREND = replace(ENTRY, sleeve="trend", sleeve_share=Decimal("0.6"), sleeve_fall=Decimal("0.249"))


def test_what_is_left_of_the_shares_is_the_debates() -> None:
    assert CORE.shares.to_record() == {"trend": Decimal("0.6"), "cash-carry": Decimal("0.2"), "debate": Decimal("0.2")}
    assert mandate().shares == DEBATE_ALONE
    assert mandate(sleeves=(sleeve("trend", "1"),)).shares.to_record() == {"trend": Decimal(1)}


@pytest.mark.parametrize(
    "sleeves",
    [
        (sleeve("trend", "0.6"), sleeve("cash-carry", "0.5")),
        (sleeve("trend", "0.6"), sleeve("debate", "0.3")),
        (sleeve("trend", "0.3"), sleeve("trend", "0.3")),
    ],
)
def test_shares_that_do_not_add_up_are_not_granted(sleeves: tuple[MandatedSleeve, ...]) -> None:
    with pytest.raises(Refused):
        check_grant(mandate(sleeves=sleeves), NOW)


def test_a_mandate_may_name_the_hedge_of_liquidity_which_takes_no_share() -> None:
    alone = mandate(sleeves=(sleeve("lp-hedge", "0.3"),))
    check_grant(alone, NOW)
    assert alone.shares == DEBATE_ALONE
    both = mandate(sleeves=(sleeve("trend", "0.6"), sleeve("lp-hedge", "0.3"))).shares
    assert both.to_record() == {"trend": Decimal("0.6"), "debate": Decimal("0.4")}
    hedge = replace(TREND, sleeve="lp-hedge", sleeve_share=Decimal(0))
    assert find_mandate_refusal(alone, hedge, NOW) is None
    assert find_mandate_refusal(CORE, hedge, NOW)


def test_a_sleeve_is_bounded_by_its_share_and_not_by_margin() -> None:
    large = replace(TREND, margin_usd=Decimal(5_000))
    assert find_mandate_refusal(CORE, large, NOW) is None
    assert find_mandate_refusal(CORE, replace(ENTRY, margin_usd=Decimal(5_000)), NOW)


@pytest.mark.parametrize(
    "entry",
    [
        replace(TREND, sleeve="mine"),
        replace(TREND, sleeve_share=Decimal("0.61")),
        replace(TREND, sleeve_fall=Decimal("0.25")),
        replace(TREND, sleeve_fall=Missing("nothing is quoted")),
        replace(TREND, lost_today_usd=Decimal(20)),
        replace(TREND, symbol=Symbol("ETHUSDT")),
        replace(TREND, sleeve="cash-carry", sleeve_share=Decimal("0.2"), sleeve_fall=Decimal("0.1")),
    ],
)
def test_a_sleeve_beyond_its_mandate_adds_nothing(entry: LiveEntry) -> None:
    assert find_mandate_refusal(CORE, TREND, NOW) is None
    assert find_mandate_refusal(CORE, entry, NOW)


def test_a_mandate_without_sleeves_is_for_the_debate_alone() -> None:
    assert find_mandate_refusal(mandate(), TREND, NOW)
    assert b"sleeves" not in canonical(to_json(mandate()))
    assert Mandate.model_validate_json(canonical(to_json(CORE)), strict=True) == CORE


def test_the_fall_is_from_the_highest_marked_day_or_from_what_was_put_in() -> None:
    def fall(equity: int, capital: int, *results: int) -> Known[Decimal]:
        marks = [
            DayMarked(at=NOW, equity_usd=Decimal(1), unrealised_usd=Decimal(0), results_usd={"trend": Decimal(result)})
            for result in results
        ]
        return find_sleeve_fall("trend", SleeveWorth(Decimal(equity), Decimal(capital)), marks)

    assert fall(120, 100, 50, 20) == Decimal(30) / Decimal(150)
    assert fall(220, 200, 50, 20) == Decimal(30) / Decimal(250), "money that came since is no gain"
    assert fall(90, 100) == Decimal("0.1")
    assert fall(130, 100, 20) == 0
    assert isinstance(fall(0, 0), Missing)
