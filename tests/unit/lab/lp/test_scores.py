"""Fees less LVR of positions by day, and positions beside a short."""

from __future__ import annotations

import pytest

from tests.wire.pool_minutes import START, TICK, draw_minutes
from tests.wire.pool_tape import START as TAPE_START
from tests.wire.pool_tape import TICK as TAPE_TICK
from tests.wire.pool_tape import draw_tape
from zuno.amm.integers import Q96
from zuno.amm.model import Range
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.units import Millis, Seconds, Tick
from zuno.lab.lp.backtest import HeldSpan
from zuno.lab.lp.cover import DAY, path_of_minutes
from zuno.lab.lp.fast import to_columns
from zuno.lab.lp.scores import HEDGE_COST, Days, ScoredRecord, score_hedges, score_positions
from zuno.lab.lp.tape import to_swap_columns
from zuno.lp.model.minutes import PoolMinute, PoolMinutes

MINUTES = draw_minutes(60 * 48, step=18)
BEGIN, END = START // 1000, START // 1000 + 2 * DAY
WIDE = Range(Tick(TICK // 10 * 10 - 20_000), Tick(TICK // 10 * 10 + 20_000))
DAYS = Days.between(BEGIN, END)


def span(held: Range = WIDE, start: int = BEGIN, end: int = END, liquidity: int = 10**15) -> HeldSpan:
    return HeldSpan(Seconds(start), Seconds(end), held, liquidity)


@pytest.mark.parametrize("minutes", [5, 15, 60])
def test_a_position_that_is_never_left_loses_what_fee_cover_counts(minutes: int) -> None:
    """Two computations that share nothing: by the variance, and by what was held."""
    record = ScoredRecord(to_columns(MINUTES), minutes, 500)
    (day,) = path_of_minutes(MINUTES, 500).measure_days((BEGIN + 60, END), minutes)
    price = (sqrt_price_at_tick(MINUTES.minutes[-1].close_tick) / Q96) ** 2
    score = score_positions(record, [span()], DAYS)
    assert sum(score.lvr) == pytest.approx(10**15 * day.lvr / price, rel=0.05)
    assert sum(score.fees) == pytest.approx(10**15 * day.fees / price, rel=0.05)
    assert score.carry == tuple(fee - lost for fee, lost in zip(score.fees, score.lvr, strict=True))


def test_one_jump_loses_what_the_arbitrageur_gains() -> None:
    rows = tuple(
        PoolMinute(Millis(START + 60_000 * n), TICK, TICK + move, TICK, TICK + move, 0, 0, 10**18)
        for n, move in enumerate([0] * 600 + [400] * 600)
    )
    record = ScoredRecord(to_columns(PoolMinutes(rows, MINUTES.repairs)), 5, 500)
    low, high = (sqrt_price_at_tick(tick) / Q96 for tick in (TICK, TICK + 400))
    held = span(end=BEGIN + 1_200 * 60)
    found = score_positions(record, [held], Days.between(BEGIN, held.end))
    assert sum(found.lvr) == pytest.approx(10**15 * (high - low) ** 2 / low / high**2, rel=1e-6)
    outside = span(Range(Tick(WIDE.upper), Tick(WIDE.upper + 100)), end=held.end)
    assert score_positions(record, [outside], Days.between(BEGIN, held.end)).lvr == (0,)


def test_spans_add_up_and_fall_into_their_days() -> None:
    record = ScoredRecord(to_columns(MINUTES), 5, 500)
    middle = BEGIN + DAY
    whole = score_positions(record, [span()], DAYS)
    parts = score_positions(record, [span(end=middle), span(start=middle)], DAYS)
    assert parts.fees == pytest.approx(whole.fees, abs=2)
    assert parts.lvr == pytest.approx(whole.lvr, rel=0.02)
    first = score_positions(record, [span(end=middle)], DAYS)
    assert (first.fees[1], first.lvr[1]) == (0, 0)


def test_swaps_and_minutes_of_one_tape_pay_alike() -> None:
    tape = draw_tape(3_000)
    recorded, end = tape.to_minutes(), tape.events[-1].at // 60 * 60
    held = HeldSpan(Seconds(TAPE_START), Seconds(end), Range(Tick(TAPE_TICK - 800), Tick(TAPE_TICK + 800)), 10**13)
    by_swap, by_minute = (
        score_positions(ScoredRecord(to_columns(recorded), 60, 500, swaps), [held], Days.between(TAPE_START, end))
        for swaps in (to_swap_columns(tape), None)
    )
    assert sum(by_swap.fees) == pytest.approx(sum(by_minute.fees), rel=0.05)
    assert by_swap.lvr == by_minute.lvr


def test_a_short_takes_the_price_out_and_costs_what_it_trades() -> None:
    record = ScoredRecord(to_columns(MINUTES), 5, 500)
    held = span(Range(Tick(TICK // 10 * 10 - 1_000), Tick(TICK // 10 * 10 + 1_000)))
    found, score = score_hedges(record, [held], DAYS, 0.0), score_positions(record, [held], DAYS)
    assert found.cost == pytest.approx(HEDGE_COST * found.turnover, abs=1)
    assert found.resets > 0 == found.funding
    by_price, left = sum(found.alone) - sum(score.fees), sum(found.hedged) - sum(score.carry) + found.cost
    assert abs(left) < 0.25 * abs(by_price)
    paid = score_hedges(record, [held], DAYS, 0.0001)
    assert paid.funding > 0
    assert sum(paid.hedged) - sum(found.hedged) == pytest.approx(paid.funding, rel=0.01)
