"""A study counts what it is told, whoever worked on it, and says what it could not have seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import sqrt
from random import Random

import pytest

from zuno.kernel.errors import UsageError
from zuno.kernel.units import Millis
from zuno.lab.market_study import MarketPlan, MarketStudy, parse_seeds, plan_markets
from zuno.lab.model import MomentResult, RulingSummary, TradeScore
from zuno.lab.rulings import score_trade
from zuno.lab.service import (
    binomial_p_value,
    build_view,
    calibrate,
    compare_sides,
    count_rules,
    failed_criteria,
    standard_error,
    state_power,
)
from zuno.trading.model.cycle import EDITION
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Candle, Side
from zuno.trading.rules.price_menu import TradePrices

LONG = TradePrices(Side.LONG, 100.0, 99.0, 102.0)
END = 10 * 24 * HOUR_MS


def minutes(*prices: float) -> tuple[Candle, ...]:
    """Bars that reach from one price to the next."""
    return tuple(
        Candle(Millis(place * MINUTE_MS), a, max(a, b), min(a, b), b, 1.0, None)
        for place, (a, b) in enumerate(pairwise(prices))
    )


def result(
    seed: int, number: int, trade: TradeScore | None = None, ruling: str = "HOLD", mirrored: str = "HOLD"
) -> MomentResult:
    return MomentResult(
        seed=seed,
        number=number,
        kind="ordinary",
        symbol="BTCUSDT",
        mode="swing",
        at=Millis(number * HOUR_MS),
        holding="nothing",
        own=RulingSummary(ruling, ruling, None, 0.1),
        mirrored=RulingSummary(mirrored, mirrored, None, 0.2),
        rules=("expectancy",),
        anomalies=("spike",),
        regime="RANGE_BOUND",
        exploration=False,
        trade=trade,
    )


# -- one trade


@pytest.mark.parametrize(
    ("prices", "y"),
    [
        ((100, 101, 102.5), 1.0),
        ((100, 99.5, 98), 0.0),
        ((100, 101, 100.5), (0.5 + 1) / 3),
        ((100, 99.2, 99.4), (-0.6 + 1) / 3),
    ],
)
def test_a_trade_scores_by_where_it_ends(prices: tuple[float, ...], y: float) -> None:
    assert score_trade(LONG, minutes(*prices), 3 * MINUTE_MS, END) == pytest.approx(y)
    short = TradePrices(Side.SHORT, 100.0, 101.0, 98.0)
    assert score_trade(short, minutes(*(200 - price for price in prices)), 3 * MINUTE_MS, END) == pytest.approx(y)


def test_a_minute_that_touches_both_is_a_stop() -> None:
    both = (Candle(Millis(0), 100.0, 103.0, 98.0, 100.0, 1.0, None),)
    assert score_trade(LONG, both, HOUR_MS, END) == 0.0


def test_a_trade_begins_when_its_entry_is_reached() -> None:
    far = minutes(104, 103, 102, 101, 100, 100, 102.5)
    assert score_trade(LONG, far, HOUR_MS, END) == 1.0
    assert score_trade(LONG, minutes(104, 103, 105), HOUR_MS, END) is None
    assert score_trade(LONG, far, END, END) is None  # the market ends first


@pytest.mark.slow
def test_trades_at_fair_odds_score_the_fair_rate_on_average() -> None:
    """Over driftless walks, time exits included."""
    dice, total, count = Random(7), 0.0, 1_000
    for _ in range(count):
        price, path = 100.0, [100.0]
        for _ in range(120):
            price += dice.choice((-0.1, 0.1))
            path.append(price)
        y = score_trade(LONG, minutes(*path), 100 * MINUTE_MS, END)
        assert y is not None
        total += y
    fair = 1 / 3
    assert total / count == pytest.approx(fair, abs=4 * sqrt(fair * (1 - fair) / count))


# -- all of them


def scored(seed: int, number: int, y: float, fair: float = 0.35) -> MomentResult:
    return result(seed, number, TradeScore("long", fair, y, 4.0))


def test_the_calibration_stands_beside_its_error_bucket_by_bucket() -> None:
    results = [scored(seed, number, float(number % 3 == 0)) for seed in range(4) for number in range(30)]
    results += [scored(9, number, 0.5, 0.55) for number in range(10)]
    found = calibrate(results)
    assert found.trades == 130
    assert [(bucket.low, bucket.trades) for bucket in found.buckets] == [(0.3, 120), (0.5, 10)]
    assert found.buckets[0].realised == pytest.approx(1 / 3, abs=1e-6)
    assert found.buckets[0].se == pytest.approx(sqrt(0.35 * 0.65 / 120), abs=1e-6)
    assert found.inside


def test_markets_that_win_and_lose_together_make_the_error_larger() -> None:
    alone = [scored(number, 0, float(number % 2), 0.5) for number in range(100)]
    together = [scored(number // 25, number, float(number // 25 % 2), 0.5) for number in range(100)]
    assert standard_error(alone) == pytest.approx(0.05)
    assert standard_error(together) == pytest.approx(0.25)
    assert (state_power(together).smallest_edge or 0) > (state_power(alone).smallest_edge or 0)


def test_an_edge_of_the_size_it_states_is_found_in_four_of_five_studies() -> None:
    dice, size, fair = Random(3), 200, 0.4
    edge = state_power([scored(n, n, 0.0, fair) for n in range(size)]).smallest_edge
    assert edge is not None
    found = 0
    for _ in range(300):
        wins = sum(dice.random() < fair + 2.8 * sqrt(fair * (1 - fair) / size) for _ in range(size))
        found += wins / size - fair > 1.96 * sqrt(fair * (1 - fair) / size)
    assert 0.72 <= found / 300 <= 0.88


def test_rulings_that_are_not_mirrored_are_listed() -> None:
    results = [
        result(1, 1, ruling="LONG", mirrored="SHORT"),
        result(1, 2, ruling="SHORT", mirrored="HOLD"),
        result(1, 3),
    ]
    found = compare_sides(results)
    assert (found.compared, found.mirrored, found.long, found.short) == (3, 2, 1, 1)
    assert [(row.ruling, row.mirrored, row.small) for row in found.differences] == [("SHORT", "HOLD", True)]


@pytest.mark.parametrize(
    ("own", "other", "small"),
    [
        ((-0.1, 0.4), (-0.24, -0.4), True),
        ((-0.1, 0.4), (-0.26, -0.4), False),
        ((-0.14, 0.45), (None, -0.1), True),
        ((0.16, 0.45), (None, -0.45), False),
        ((-0.16, 0.45), (None, None), False),
    ],
)
def test_a_difference_is_small_by_ev_and_what_is_not_opened_is_worth_nothing(
    own: tuple[float, float], other: tuple[float | None, float | None], small: bool
) -> None:
    there = RulingSummary("LONG", "LONG", None, *own)
    here = RulingSummary("SHORT" if other[0] else "HOLD", "HOLD", None, *other)
    results = [replace(result(1, 1), own=there, mirrored=here, exploration=True)]
    (row,) = compare_sides(results).differences
    assert row.small is small
    assert any("images" in line for line in failed_criteria(results)) is not small


@pytest.mark.parametrize("exploration", [True, False])
def test_without_closed_trades_nothing_may_open_but_an_exploration(exploration: bool) -> None:
    results = [replace(result(1, 1, ruling="LONG", mirrored="SHORT"), exploration=exploration)]
    assert any("exploration" in line for line in failed_criteria(results)) is not exploration


@pytest.mark.parametrize(("long", "short", "chance"), [(1, 1, 1.0), (2, 0, 0.5), (10, 0, 2 / 1024), (5, 6, 1.0)])
def test_how_likely_a_split_is(long: int, short: int, chance: float) -> None:
    assert binomial_p_value(long, short) == pytest.approx(chance)


def test_every_rule_is_counted_those_that_never_fired_too() -> None:
    counts = {row.name: row.count for rows in count_rules([result(1, 1)]).values() for row in rows}
    assert counts["expectancy"] == 1
    assert counts["leverage_guard"] == 0


# -- the desk


async def answer(
    plans: Sequence[MarketPlan], workers: int, hear: Callable[[MomentResult], None], stop: asyncio.Event
) -> None:
    """Workers finish in another order than they began."""
    found = [result(plan.seed, number) for plan in plans for number in range(plan.moments)]
    for each in found[::-1] if workers > 1 else found:
        hear(each)


async def test_the_number_of_workers_changes_nothing() -> None:
    alone, several = [
        await MarketStudy(answer, build_view).study(12, "3,1-2", workers, lambda done, total: None, asyncio.Event())
        for workers in (1, 4)
    ]
    assert alone == several
    assert alone.seeds == (1, 2, 3)
    assert alone.edition == EDITION
    assert alone.origin == "SYNTHETIC seeds 1-3"
    assert alone.ok
    assert not alone.judged


async def test_what_is_known_when_it_is_stopped_is_the_answer() -> None:
    async def give_up(
        plans: Sequence[MarketPlan], workers: int, hear: Callable[[MomentResult], None], stop: asyncio.Event
    ) -> None:
        hear(result(1, 0))
        stop.set()

    view = await MarketStudy(give_up, build_view).study(300, "1", 1, lambda done, total: None, asyncio.Event())
    assert (view.stopped, view.moments, view.asked, view.judged) == (True, 1, 300, False)


async def test_a_study_of_nothing_but_holds_misses_its_bars() -> None:
    view = await MarketStudy(answer, build_view).study(200, "1-2", 2, lambda done, total: None, asyncio.Event())
    assert view.judged
    assert not view.ok
    assert any("LONG" in line for line in view.missed)


@pytest.mark.parametrize("text", ["", "a", "3-1", "1-", "-4", "1,,2", "1-5000", "٣", f"{2**63}"])
def test_seeds_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError):
        parse_seeds(text)


def test_moments_are_shared_out_evenly() -> None:
    assert [plan.moments for plan in plan_markets(10, (1, 2, 3))] == [4, 3, 3]
    for moments in (0, 2, 20_001):
        with pytest.raises(UsageError):
            plan_markets(moments, (1, 2, 3))


@pytest.mark.parametrize("workers", [0, -1, 65])
async def test_workers_that_cannot_be(workers: int) -> None:
    with pytest.raises(UsageError):
        await MarketStudy(answer, build_view).study(10, "1", workers, lambda done, total: None, asyncio.Event())
