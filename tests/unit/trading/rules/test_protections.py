"""Protections: each is hit by what it guards against, says until when, and fails closed."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.known import Missing, or_none
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Side
from zuno.trading.model.trade_events import DayMarked, ExitReason, LockSet, Protection, TradeSummary
from zuno.trading.rules.book_state import RealisedResult
from zuno.trading.rules.protections import (
    ProtectionLimits,
    RiskState,
    active_locks,
    describe_lock,
    find_drawdown,
    find_refusal,
    triggered_protections,
)

NOON = Millis(20_000 * DAY_MS + 12 * HOUR_MS)
LIMITS = ProtectionLimits()


def summary(net: str, *, ago: int = 2 * HOUR_MS, reason: ExitReason = ExitReason.TARGET, **named: Any) -> TradeSummary:
    fields: dict[str, Any] = {
        "trade": "trade_1",
        "intent": "int_1",
        "decision": "run_1",
        "exchange": Venue("BINANCE"),
        "symbol": Symbol("BTCUSDT"),
        "side": Side.LONG,
        "mode": None,
        "opened": NOON - ago - HOUR_MS,
        "closed": NOON - ago,
        "quantity": Decimal(1),
        "entry": Decimal(100),
        "exit": Decimal(100),
        "stop": Decimal(99),
        "target": Decimal(102),
        "gross_pnl": Decimal(net),
        "fees": Decimal(0),
        "funding": Decimal(0),
        "net_pnl": Decimal(net),
        "reason": reason,
        "exploration": False,
        "judge": None,
        "family": None,
        "edge": None,
    }
    return TradeSummary(**{**fields, **named})


def state(*closed: TradeSummary, **named: Any) -> RiskState:
    calm = RiskState(
        now=NOON,
        open_symbols=frozenset(),
        closed=closed,
        results=[RealisedResult(Millis(trade.closed), trade.exchange, trade.net_pnl) for trade in closed],
        equity_usd=Decimal(2_000),
        unrealised_usd=Decimal(0),
        capital_usd=Decimal(2_000),
        rates={"USD": Decimal(1), "KRW": Decimal(1_400)},
        price_times={Symbol("BTCUSDT"): NOON},
    )
    return replace(calm, **named)


def hit(of: RiskState) -> dict[Protection, LockSet]:
    return {lock.protection: lock for lock in triggered_protections(of, LIMITS)}


def test_cash_that_went_missing_is_seen_by_daily_loss_and_drawdown() -> None:
    """No trade was closed, and the owner paid nothing out."""
    missing = [
        RealisedResult(Millis(NOON - hours * HOUR_MS), Venue("BINANCE"), Decimal(-20), True) for hours in (3, 2, 1)
    ]
    assert set(hit(state(results=missing, equity_usd=Decimal(1_940)))) == {Protection.DAILY_LOSS}
    older = [replace(result, at=Millis(result.at - DAY_MS), amount=Decimal(-70)) for result in missing]
    found = hit(state(results=older, equity_usd=Decimal(1_790)))
    assert set(found) == {Protection.MAX_DRAWDOWN}
    assert found[Protection.MAX_DRAWDOWN].until == older[-1].at + 48 * HOUR_MS
    assert find_drawdown(state(results=older, equity_usd=Decimal(1_790)), LIMITS) == Decimal(210) / 2_000
    assert hit(state(results=[replace(result, drift=False) for result in older], equity_usd=Decimal(1_790))) == {}


def test_a_calm_desk_is_not_locked() -> None:
    assert hit(state()) == {}
    assert hit(state(summary("5"), summary("-20"))) == {}


@pytest.mark.parametrize(
    ("of", "protection", "until"),
    [
        (state(open_symbols=frozenset(DEFAULT_SYMBOLS)), Protection.MAX_OPEN_TRADES, None),
        (state(summary("-70")), Protection.DAILY_LOSS, NOON + 12 * HOUR_MS),
        (state(unrealised_usd=Decimal(-70)), Protection.DAILY_LOSS, NOON + 12 * HOUR_MS),
        (state(summary("-240", ago=DAY_MS)), Protection.MAX_DRAWDOWN, NOON + DAY_MS),
        (
            state(*[summary("-1", reason=ExitReason.STOP)] * 3),
            Protection.STOPLOSS_GUARD,
            NOON - 2 * HOUR_MS + DAY_MS,
        ),
        (state(summary("1", ago=10 * MINUTE_MS)), Protection.COOLDOWN, NOON + 50 * MINUTE_MS),
        (state(price_times={Symbol("BTCUSDT"): Millis(NOON - 601_000)}), Protection.STALE_DATA, None),
    ],
)
def test_each_protection_is_hit_and_says_until_when(
    of: RiskState, protection: Protection, until: Millis | None
) -> None:
    found = hit(of)
    assert set(found) == {protection}
    assert found[protection].until == until
    assert found[protection].reason
    assert protection.value in describe_lock(found[protection])


@pytest.mark.parametrize(
    ("of", "protection"),
    [
        (state(equity_usd=Missing("no mark")), Protection.DAILY_LOSS),
        (state(unrealised_usd=Missing("no mark")), Protection.DAILY_LOSS),
        (state(summary("1", exchange=Venue("UPBIT")), rates={"KRW": Missing("no won")}), Protection.DAILY_LOSS),
        (state(summary("1", ago=DAY_MS), equity_usd=Missing("no mark")), Protection.MAX_DRAWDOWN),
        (state(price_times={Symbol("BTCUSDT"): Missing("no feed")}), Protection.STALE_DATA),
    ],
)
def test_what_cannot_be_judged_is_hit(of: RiskState, protection: Protection) -> None:
    assert protection in hit(of)


def test_a_negative_equity_counts_as_everything_lost() -> None:
    found = hit(state(summary("-2100"), equity_usd=Decimal(-100)))
    assert {Protection.DAILY_LOSS, Protection.MAX_DRAWDOWN} <= set(found)


@pytest.mark.parametrize(
    ("of", "share"),
    [
        (state(), Decimal(0)),
        (state(summary("-250", ago=DAY_MS), summary("100")), Decimal(150) / Decimal(2_150)),
        (state(summary("-500", ago=31 * DAY_MS)), Decimal(0)),
        (state(summary("-500"), equity_usd=Missing("no mark")), None),
        (state(equity_usd=Decimal(-5)), None),
    ],
)
def test_the_drawdown_is_the_share_below_the_peak_of_thirty_days(of: RiskState, share: Decimal | None) -> None:
    assert or_none(find_drawdown(of, LIMITS)) == share


@pytest.mark.parametrize(
    ("of", "protection"),
    [
        (state(summary("-70")), Protection.DAILY_LOSS),
        (state(summary("-240", ago=DAY_MS)), Protection.MAX_DRAWDOWN),
        (state(*[summary("-1", reason=ExitReason.STOP)] * 3), Protection.STOPLOSS_GUARD),
    ],
)
def test_a_lifted_protection_counts_only_what_came_after(of: RiskState, protection: Protection) -> None:
    assert protection in hit(of)
    assert protection not in hit(replace(of, lifted={(protection, None): NOON}))


def test_a_stored_lock_stands_until_its_time() -> None:
    lock = LockSet(
        at=NOON, protection=Protection.DAILY_LOSS, symbol=None, until=Millis(NOON + 1), reason="lost too much"
    )
    assert active_locks(state(locks=(lock,)), LIMITS) == (lock,)
    assert active_locks(state(locks=(lock,), now=Millis(NOON + 1)), LIMITS) == ()


def test_the_lock_that_lasts_longest_is_named() -> None:
    short = LockSet(
        at=NOON, protection=Protection.COOLDOWN, symbol=Symbol("BTCUSDT"), until=Millis(NOON + 1), reason="c"
    )
    ever = LockSet(at=NOON, protection=Protection.KILL_SWITCH, symbol=None, until=None, reason="k")
    assert find_refusal(Symbol("BTCUSDT"), (short, ever)) is ever
    assert find_refusal(Symbol("ETHUSDT"), (short,)) is None


def mark(equity: int, unrealised: int, ago: int = 6 * HOUR_MS) -> DayMarked:
    results = {"debate": Decimal(equity - 2_000)}
    worth = {"equity_usd": Decimal(equity), "unrealised_usd": Decimal(unrealised)}
    return DayMarked(at=Millis(NOON - ago), results_usd=results, **worth)


@pytest.mark.parametrize(
    ("unrealised", "equity", "booked", "locked"),
    [
        (-100, 2_000, 0, False),  # lost before this day
        (-170, 1_930, 0, True),  # 70 of it today
        (0, 2_000, -100, False),  # an old loss was taken today: nothing was lost by it
        (0, 1_930, -170, True),
        (-30, 2_070, 0, False),  # a loss that shrank
    ],
)
def test_a_days_loss_is_counted_from_its_beginning_where_a_core_is_held(
    unrealised: int, equity: int, booked: int, locked: bool
) -> None:
    results = [RealisedResult(NOON, Venue("BINANCE"), Decimal(booked))] if booked else []
    of = state(equity_usd=Decimal(equity), unrealised_usd=Decimal(unrealised), results=results)
    assert (Protection.DAILY_LOSS in hit(replace(of, day_marks=[mark(2_000, -100)]))) is locked
    yesterday = replace(of, day_marks=[mark(2_000, -100, 13 * HOUR_MS)])
    assert hit(yesterday).keys() - {Protection.MAX_DRAWDOWN} == hit(of).keys()


def test_a_fall_of_what_is_still_held_is_a_drawdown() -> None:
    high = mark(2_300, 200, 10 * DAY_MS)
    assert Protection.MAX_DRAWDOWN in hit(state(day_marks=[high, mark(2_000, -100)]))
    assert or_none(find_drawdown(state(day_marks=[high]), LIMITS)) == Decimal(300) / 2_300
    assert Protection.MAX_DRAWDOWN not in hit(state(day_marks=[mark(2_300, 200, 40 * DAY_MS), mark(2_000, -100)]))
    assert Protection.MAX_DRAWDOWN not in hit(
        state(day_marks=[high, mark(2_000, -100)], lifted={(Protection.MAX_DRAWDOWN, None): Millis(NOON - DAY_MS)})
    )


@pytest.mark.parametrize(
    ("paid_in", "fallen"), [(-500, False), (0, False), (3_000, False), (-500, True), (3_000, True)]
)
def test_money_paid_in_or_out_is_no_drawdown_and_hides_none(paid_in: int, fallen: bool) -> None:
    capital = Decimal(2_000 + paid_in)
    of = state(day_marks=[mark(2_000, 0, DAY_MS)], capital_usd=capital, equity_usd=capital - (600 if fallen else 0))
    assert (Protection.MAX_DRAWDOWN in hit(of)) is fallen


def test_stops_and_cooldowns_are_the_debates_alone() -> None:
    stops = [summary("-1", reason=ExitReason.STOP, trade=f"t{number}", sleeve="trend") for number in range(3)]
    fresh = summary("1", ago=MINUTE_MS, sleeve="trend")
    assert hit(state(*stops, fresh)) == {}
