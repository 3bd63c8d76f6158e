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
from zuno.trading.model.trade_events import ExitReason, LockSet, Protection, TradeSummary
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
        rates={"USD": Decimal(1), "KRW": Decimal(1_400)},
        price_times={Symbol("BTCUSDT"): NOON},
    )
    return replace(calm, **named)


def hit(of: RiskState) -> dict[Protection, LockSet]:
    return {lock.protection: lock for lock in triggered_protections(of, LIMITS)}


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
