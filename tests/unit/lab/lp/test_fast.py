"""Fees of a position over recorded minutes, in both conventions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.paths import REAL_MINUTES
from tests.wire.earned_fees import earn_fees
from tests.wire.pool_minutes import no_repairs
from zuno.adapters.imports.pool_minutes import read_pool_minutes
from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import Range
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.errors import UsageError
from zuno.kernel.units import Millis, Tick
from zuno.lab.lp.fast import Convention, amounts_at, share_inside, to_columns
from zuno.lab.lp.ranges import plan_ranges, play_range
from zuno.lp.model.minutes import PoolMinute, PoolMinutes

NONE = no_repairs(1)


def recorded(*rows: tuple[int, int, int, int], in0: int = 10**6, in1: int = 10**6, others: int = 10**9) -> PoolMinutes:
    """Minutes by open, lowest, highest and close."""
    minutes = (
        PoolMinute(Millis(60_000 * number), opened, close, low, high, in0, in1, others)
        for number, (opened, low, high, close) in enumerate(rows)
    )
    return PoolMinutes(tuple(minutes), NONE)


def ticks(lower: int, upper: int) -> Range:
    return Range(Tick(lower), Tick(upper))


@pytest.mark.soak
def test_demeters_figures_of_the_real_minutes() -> None:
    if not REAL_MINUTES.exists():
        pytest.skip("the minute rows of a real pool are not on this machine")
    columns = to_columns(read_pool_minutes(REAL_MINUTES))
    fees = earn_fees(columns, ticks(201000, 204000), 1734699983194382, 500, Convention.CLOSE_TICK)
    assert fees.fees0 / 1e6 == pytest.approx(363.32790988439175, rel=1e-12)
    assert fees.fees1 / 1e18 == pytest.approx(0.22526977322076276, rel=1e-12)
    ours = earn_fees(columns, ticks(201000, 204000), 1734699983194382, 500)
    assert ours.fees0 / 1e6 == pytest.approx(363.2920868007564, rel=1e-12)
    assert ours.fees1 / 1e18 == pytest.approx(0.22523462387805712, rel=1e-12)


@pytest.mark.parametrize(
    ("row", "close_tick", "falling", "rising"),
    [
        ((0, 0, 0, 0), 1.0, 1.0, 1.0),
        ((200, 200, 200, 200), 0.0, 0.0, 0.0),
        ((0, 0, 200, 200), 0.5, 0.0, 0.5),  # nothing fell: where it ended counts
        ((200, 0, 200, 0), 0.5, 0.5, 1.0),
        ((0, -300, 100, 0), 1.0, 0.5, 0.5),  # down 300 of which 100 inside, up 400, down 100: 200 of 400
        ((100, 100, 100, 100), 0.0, 0.0, 0.0),  # the upper tick is outside
        ((-100, -100, -100, -100), 1.0, 1.0, 1.0),
    ],
)
def test_the_share_of_a_minute_inside(
    row: tuple[int, int, int, int], close_tick: float, falling: float, rising: float
) -> None:
    columns = to_columns(recorded(row))
    assert share_inside(columns, ticks(-100, 100), Convention.CLOSE_TICK)[0].tolist() == [close_tick]
    shares = share_inside(columns, ticks(-100, 100), Convention.INTRABAR)
    assert [share.tolist() for share in shares] == [[falling], [rising]]


def test_a_minute_without_liquidity_pays_nothing() -> None:
    rows = recorded((0, 0, 0, 0), (0, 0, 0, 0))
    empty = PoolMinutes((replace(rows.minutes[0], liquidity=0), rows.minutes[1]), NONE)
    assert earn_fees(to_columns(empty), ticks(-10, 10), 10**9, 3000).fees0 == 10**6 * 0.003 / 2


WALKS: Any = st.lists(
    st.tuples(*[st.integers(-300, 300)] * 4).map(lambda four: (four[0], min(four), max(four), four[3])),
    min_size=1,
    max_size=6,
)


@given(WALKS, st.integers(-250, 249), st.integers(1, 200), st.sampled_from(Convention))
def test_two_ranges_side_by_side_earn_what_both_cover(
    walk: list[tuple[int, int, int, int]], lower: int, width: int, convention: Convention
) -> None:
    columns = to_columns(recorded(*walk))
    middle = lower + width // 2
    whole, low, high = (
        earn_fees(columns, ticks(*ends), 10**3, 500, convention)
        for ends in ((lower, lower + width), (lower, middle), (middle, lower + width))
    )
    assert whole.fees0 == pytest.approx(low.fees0 + high.fees0, abs=1e-9)
    assert whole.fees1 == pytest.approx(low.fees1 + high.fees1, abs=1e-9)


@given(WALKS, st.sampled_from(Convention))
def test_a_range_around_everything_earns_its_share_of_every_fee(
    walk: list[tuple[int, int, int, int]], convention: Convention
) -> None:
    fees = earn_fees(to_columns(recorded(*walk)), ticks(-400, 400), 10**9, 500, convention)
    assert fees.fees0 == pytest.approx(len(walk) * 10**6 * 0.0005 / 2)
    assert fees.fees1 == fees.fees0


def test_what_a_position_holds_at_the_end_of_every_minute() -> None:
    columns = to_columns(recorded((0, 0, 90, 90), (90, 90, 300, 300), (300, -500, 300, -500), (-500, -500, 5, 5)))
    held, liquidity = ticks(-100, 200), 10**15
    amounts = amounts_at(columns.roots, held, liquidity)
    edges = sqrt_price_at_tick(held.lower), sqrt_price_at_tick(held.upper)
    for number, tick in enumerate((90, 300, -500, 5)):
        exact = amounts_for_liquidity(sqrt_price_at_tick(tick), *edges, liquidity, round_up=False)
        assert (amounts[0][number], amounts[1][number]) == pytest.approx(exact, rel=1e-9, abs=2)


def test_minutes_between_two_moments() -> None:
    columns = to_columns(recorded(*[(0, 0, 0, 0)] * 10))
    assert columns.select_minutes(120, 300).at.tolist() == [120_000, 180_000, 240_000]


# -- many ranges


def test_a_range_is_worth_what_it_holds_and_earned_less_the_swap() -> None:
    columns = to_columns(recorded(*[(0, -5, 5, 0)] * 50, in0=10**9, in1=10**9, others=10**12))
    found = play_range(columns, ticks(-1000, 1000), 10_000, 500)
    assert (found.time_in_range, found.max_drawdown) == (1.0, 0.0)
    assert found.net_pnl_usd == found.vs_hold_usd == pytest.approx(found.fees, abs=0.01)
    above = play_range(columns, ticks(1000, 2000), 10_000, 500)  # all of it in token0, half of it swapped
    assert above.fees == 0
    assert above.net_pnl_usd == pytest.approx(-2.5, abs=0.01)


def test_ranges_of_a_sweep_are_on_the_grid_around_the_price() -> None:
    found = plan_ranges(202_707, 50)
    assert len(found) == 50
    assert all(held.lower % 10 == held.upper % 10 == 0 for held in found)
    assert all(held.contains(Tick(202_707)) for held in found)
    for wrong in (0, 30, 10_025):
        with pytest.raises(UsageError):
            plan_ranges(0, wrong)
