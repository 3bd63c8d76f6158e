"""Fees from every swap: on the recorded path, and with the position in the pool."""

from __future__ import annotations

import pytest

from tests.paths import REAL_EVENTS
from tests.wire.pool_tape import EARLY, START, TICK, draw_tape
from zuno.adapters.imports.pool_events import read_pool_record
from zuno.amm.model import Range
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Seconds, Tick
from zuno.lab.lp.backtest import HeldSpan
from zuno.lab.lp.tape import OTHERS, earn_on_path, map_ticks, open_pool, replay, to_swap_columns
from zuno.lp.model.tape import PoolTape, TapeChange, TapeSwap

TAPE = draw_tape(1_500)
TICKS = map_ticks(TAPE, 10)
LIQUIDITY = 10**15


def held(lower: int, upper: int, liquidity: int = LIQUIDITY, start: int = START) -> HeldSpan:
    end = TAPE.events[-1].at
    return HeldSpan(Seconds(start), Seconds(end), Range(Tick(TICK + lower), Tick(TICK + upper)), liquidity)


def path_fees(span: HeldSpan) -> tuple[float, float]:
    fees = earn_on_path(to_swap_columns(TAPE).select(span.start, span.end), span.range, span.liquidity, 500)
    return float(fees[0].sum()), float(fees[1].sum())


@pytest.mark.parametrize(("lower", "upper"), [(-1_000, 1_000), (-100, 100), (50, 130), (-300, -20)])
def test_a_small_position_earns_on_the_path_what_it_earns_in_the_pool(lower: int, upper: int) -> None:
    span = held(lower, upper)
    found = replay(TAPE, TICKS, 500, [span])
    assert (found.fees0, found.fees1) == pytest.approx(path_fees(span), rel=1e-3)


def test_two_ranges_side_by_side_earn_what_both_cover_and_none_outside() -> None:
    whole, low, high = (path_fees(held(*ends)) for ends in ((-200, 200), (-200, 30), (30, 200)))
    assert whole == pytest.approx((low[0] + high[0], low[1] + high[1]), rel=1e-12)
    assert path_fees(held(5_000, 6_000)) == (0.0, 0.0)


def test_a_large_position_takes_the_path_with_it() -> None:
    span = held(-1_000, 1_000, 10**18)
    earned, found = path_fees(span), replay(TAPE, TICKS, 500, [span])
    assert 0.5 * earned[0] < found.fees0 < 0.99 * earned[0]


def test_without_us_the_replay_goes_the_recorded_way() -> None:
    pool, began = open_pool(TAPE, TICKS, 500), False
    for event in TAPE.events:
        if isinstance(event, TapeChange):
            pool.modify_liquidity(OTHERS, event.range.lower, event.range.upper, event.delta, 0)
        elif began:
            falling = event.in0 > 0
            limit = MIN_SQRT_PRICE + 1 if falling else MAX_SQRT_PRICE - 1
            pool.swap(falling, -(event.in0 or event.in1), limit)
            assert pool.slot0.sqrt_price_x96 == pytest.approx(event.sqrt_price_x96, rel=1e-12)
            assert pool.liquidity == event.liquidity
        began = began or isinstance(event, TapeSwap)
    assert any(isinstance(event, TapeChange) and event.range == EARLY for event in TAPE.events)


def test_what_is_known_of_ticks_is_what_swaps_ended_beside() -> None:
    known, unknown = TICKS.list_ticks()
    assert known
    assert not set(known) & set(unknown)
    short = map_ticks(PoolTape(TAPE.events[:60]), 10)
    fewer, _ = short.list_ticks()
    assert set(fewer) <= set(known), "a longer tape knows no less"
    assert all(TICKS.liquidity[at] == short.liquidity[at] for at in short.liquidity)
    wrong = [event for event in TAPE.events if not isinstance(event, TapeChange)]
    with pytest.raises(Malformed):
        map_ticks(PoolTape(tuple(wrong)), 10)


def test_minutes_of_a_tape_hold_its_amounts_and_its_extremes() -> None:
    minutes, swaps = TAPE.to_minutes().minutes, TAPE.swaps
    assert sum(row.in0 for row in minutes) == sum(swap.in0 for swap in swaps)
    assert sum(row.in1 for row in minutes) == sum(swap.in1 for swap in swaps)
    assert min(row.lowest_tick for row in minutes) == min(swap.tick for swap in swaps)
    assert [row.close_tick for row in minutes[:-1]] == [row.open_tick for row in minutes[1:]]
    assert (minutes[-1].close_tick, minutes[-1].liquidity) == (swaps[-1].tick, swaps[-1].liquidity)


@pytest.mark.slow
def test_a_real_pool_tells_97_of_its_ticks() -> None:
    if not REAL_EVENTS.exists():
        pytest.skip("the events of a real pool are not on this machine")
    tape = read_pool_record(REAL_EVENTS)
    assert isinstance(tape, PoolTape)
    known, unknown = map_ticks(tape, 10).list_ticks()
    assert (len(tape.swaps), len(known), len(unknown)) == (53_459, 97, 8)
