"""Arms without a desk: what they plan, and what of the market they read for it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.lab.trading.test_trade_lab import FIRST, HOURS, write_hours
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.kernel.units import Millis
from zuno.lab.trading.arm_result import ClosedLine, DecisionLine, PriceSeries, Span
from zuno.lab.trading.arms import Arm
from zuno.lab.trading.order_arms import STEP_MS, TargetPosition, carry_out, draw_trades, plan_random, plan_sma_cross
from zuno.lab.trading.views import classify_days, count_flips
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.model.market import DAY_MS, HOUR_MS, Side
from zuno.trading.model.trade_events import ExitReason
from zuno.trading.watch.desk_loop import MarketClock
from zuno.wiring.trade_lab import import_history, open_order_venue

END_OF_HOURS = (FIRST + 3_600 * HOURS) * 1_000
SPAN = Span(Millis(400 * DAY_MS), Millis(460 * DAY_MS))
TRADES = st.lists(
    st.builds(
        ClosedLine,
        symbol=st.sampled_from(DEFAULT_SYMBOLS),
        side=st.sampled_from(Side),
        opened=st.just(0),
        closed=st.integers(1, 2 * DAY_MS),
        notional=st.integers(10**6, 10**9),
        net=st.just(0),
        funding=st.just(0),
        reason=st.just(ExitReason.STOP),
        exploration=st.just(True),
    ),
    max_size=20,
)


def prices(hours: int = 460 * 24) -> PriceSeries:
    closes = [100 + ((hour * 7919) % 1_009) / 100 + hour % 977 / 10 for hour in range(hours)]
    return PriceSeries(tuple((hour + 1) * HOUR_MS for hour in range(hours)), tuple(closes))


@pytest.mark.slow
@given(TRADES, st.integers(0, 99))
def test_chance_enters_as_often_on_the_same_side_for_as_long(trades: list[ClosedLine], seed: int) -> None:
    changes = plan_random(trades, SPAN, seed)
    for symbol in DEFAULT_SYMBOLS:
        ours = [change for change in changes if change.symbol is symbol]
        opened = ours[::2]
        assert all(change.notional for change in opened), "one after the other"
        assert not any(change.notional for change in ours[1::2])
        hours = [(end.at - start.at) / HOUR_MS for start, end in zip(opened, ours[1::2], strict=True)]
        wanted = [trade for trade in trades if trade.symbol is symbol]
        assert sorted(hours) == sorted(max(1, round(trade.closed / HOUR_MS)) for trade in wanted)
        signed = [Decimal(trade.notional) / 10**6 * (1 if trade.side is Side.LONG else -1) for trade in wanted]
        assert sorted(change.notional for change in opened) == sorted(signed)
        assert all(SPAN.begin <= change.at < SPAN.end for change in ours)


def test_a_crossing_reads_nothing_later() -> None:
    whole = plan_sma_cross({Symbol("BTCUSDT"): prices()}, SPAN)
    assert whole
    cut = Span(SPAN.begin, Millis(SPAN.begin + 30 * DAY_MS))
    early = plan_sma_cross({Symbol("BTCUSDT"): prices(430 * 24)}, cut)
    assert early == [change for change in whole if change.at <= cut.end]


def test_a_day_is_told_by_the_month_before_it() -> None:
    rising = PriceSeries(tuple(day * DAY_MS for day in range(100)), tuple(100.0 * 1.005**day for day in range(100)))
    flat = PriceSeries(rising.times, (100.0,) * 100)
    marks = [day * DAY_MS for day in (40, 41, 42)]
    assert classify_days({Symbol("BTCUSDT"): rising}, marks) == ("bull", "bull")
    assert classify_days({Symbol("BTCUSDT"): rising, Symbol("ETHUSDT"): flat}, marks) == ("sideways", "sideways")


def test_a_flip_is_judged_by_the_day_after() -> None:
    series = PriceSeries((0, DAY_MS, 2 * DAY_MS), (100.0, 110.0, 90.0))
    debate = [DecisionLine(at=0, symbol=Symbol("BTCUSDT"), call="LONG")]
    other = [DecisionLine(at=DAY_MS, symbol=Symbol("BTCUSDT"), call="SHORT")]
    prices = {Symbol("BTCUSDT"): series}
    assert count_flips(debate, other, prices, 2 * DAY_MS) == (1, 1)
    assert count_flips(debate, other, prices, DAY_MS) == (0, 1), "the second day is not over"
    assert count_flips(debate, debate, prices, 2 * DAY_MS) == (0, 0)


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("dollars", [900, 1_200])
async def test_an_entry_that_the_cash_does_not_pay_is_made_smaller_and_filled(tmp_path: Path, dollars: int) -> None:
    store, _ = await import_history(str(write_hours(tmp_path / "market")), tmp_path / "store")
    span = Span(Millis(END_OF_HOURS - 4 * DAY_MS), Millis(END_OF_HOURS))
    log, clock = MemoryTradeLog(), MarketClock(span.begin)
    venue = open_order_venue(store, log, Arm.SMA, clock)
    wanted = [
        TargetPosition(Millis(span.begin), Symbol("BTCUSDT"), Decimal(dollars)),
        TargetPosition(Millis(span.begin + STEP_MS), Symbol("ETHUSDT"), Decimal(dollars)),
    ]
    assert await carry_out("sma", wanted, venue, clock, span, lambda: None) == 0, "every order was filled"
    assert [position.symbol for position in await venue.positions()] == [Symbol("BTCUSDT"), Symbol("ETHUSDT")]
    await store.close()


@pytest.mark.soak
async def test_an_order_of_the_last_moment_is_not_sent(tmp_path: Path) -> None:
    store, _ = await import_history(str(write_hours(tmp_path / "market")), tmp_path / "store")
    span = Span(Millis(END_OF_HOURS - 8 * DAY_MS), Millis(END_OF_HOURS - 4 * DAY_MS))
    log, clock = MemoryTradeLog(), MarketClock(span.begin)
    venue = open_order_venue(store, log, Arm.SMA, clock)
    late = [TargetPosition(span.end, Symbol("BTCUSDT"), Decimal(900))]
    assert await carry_out("sma", late, venue, clock, span, lambda: None) == 0
    assert await venue.positions() == ()
    await store.close()


@pytest.mark.soak
async def test_an_order_that_was_not_filled_is_counted(tmp_path: Path) -> None:
    store, _ = await import_history(str(write_hours(tmp_path / "market")), tmp_path / "store")
    span = Span(Millis(END_OF_HOURS - 4 * DAY_MS), Millis(END_OF_HOURS))
    log, clock = MemoryTradeLog(), MarketClock(span.begin)
    venue = open_order_venue(store, log, Arm.SMA, clock)
    # What the first leaves is less than the smallest order of the second.
    everything = [
        TargetPosition(Millis(span.begin), Symbol("ETHUSDT"), Decimal(1_940)),
        TargetPosition(Millis(span.begin + STEP_MS), Symbol("BTCUSDT"), Decimal(1_940)),
    ]
    assert await carry_out("sma", everything, venue, clock, span, lambda: None) == 1
    await store.close()


def test_draws_of_chance_differ_and_repeat() -> None:
    like = ClosedLine(
        symbol=Symbol("BTCUSDT"),
        side=Side.LONG,
        opened=0,
        closed=9 * HOUR_MS,
        notional=10**8,
        net=0,
        funding=0,
        reason=ExitReason.STOP,
        exploration=True,
    )
    begins = [tuple(trade.begin for trade in draw_trades([like] * 5, SPAN, seed)) for seed in range(20)]
    assert len(set(begins)) == 20
    assert begins == [tuple(trade.begin for trade in draw_trades([like] * 5, SPAN, seed)) for seed in range(20)]
