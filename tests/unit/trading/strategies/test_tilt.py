"""The tilt's arithmetic: what an echo, a copy, a coin and a skill earn, and by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from zuno.trading.model.market import DAY_MS
from zuno.trading.strategies.port import MarketHistory, StrategyView, align_days, build_history
from zuno.trading.strategies.tilt import DayTilt, TiltScore, measure_tilt, score_tilts
from zuno.trading.strategies.trend import measure_trend

DAYS = 1_000
Moves = NDArray[np.float64]


def draw_moves(seed: int, markets: int, days: int = DAYS) -> Moves:
    """Of coins that move together, as a fraction of a day's deviation."""
    dice = np.random.Generator(np.random.PCG64(seed))
    return np.asarray(0.84 * dice.normal(size=days) + 0.54 * dice.normal(size=(markets, days)))


def make_view(moves: Moves, days: int | None = None) -> StrategyView:
    histories: dict[str, MarketHistory] = {}
    for place, row in enumerate(moves):
        closes = (100 * np.exp(np.cumsum(0.03 * row))).tolist()
        histories[f"C{place}"] = build_history(f"C{place}", [(DAY_MS * day, close) for day, close in enumerate(closes)])
    return StrategyView(DAY_MS * (days or moves.shape[1]), histories)


def score(moves: Moves, tilt: Callable[[int, int], float], *, first: int = 150) -> TiltScore:
    """`tilt` says τ by market and day."""
    tilts = [
        DayTilt(DAY_MS * day, f"C{row}", tilt(row, day))
        for row in range(len(moves))
        for day in range(first, moves.shape[1])
    ]
    return score_tilts(tilts, make_view(moves))


def test_a_days_tilt_is_the_mean_of_its_cycles() -> None:
    assert measure_tilt([(1, 0.55, 0.45), (0, 0.9, 0.3), (-1, 0.75, 0.35)]) == pytest.approx(
        (0.5 + 0 - 1) / 3, abs=1e-9
    )
    assert measure_tilt([(1, 0.35, 0.45)]) == pytest.approx(-0.5)
    assert measure_tilt([]) is None


def test_an_echo_of_the_core_earns_nothing() -> None:
    moves = draw_moves(1, 3)
    up = measure_trend(align_days(make_view(moves))).up
    echo = score(moves, lambda row, day: 0.2 + 0.1 * float(up[row, day]))
    assert (echo.beta, echo.weight) == (None, 0.0)
    assert echo.multiplier("C0") == 1.0


def test_a_copy_of_the_days_own_move_earns_nothing() -> None:
    weights = [score(moves, copy_of(moves)).weight for moves in (draw_moves(seed, 2) for seed in range(20))]
    assert sum(weight > 0 for weight in weights) <= 3
    assert float(np.mean(weights)) < 0.03


def copy_of(moves: Moves, ahead: int = 0) -> Callable[[int, int], float]:
    def say(row: int, day: int) -> float:
        return float(np.sign(moves[row, min(day + ahead, moves.shape[1] - 1)]))

    return say


def view_of(views: Moves) -> Callable[[int, int], float]:
    return lambda row, day: float(views[row, day])


def test_who_knows_tomorrow_earns_all_there_is() -> None:
    moves = draw_moves(2, 2)
    sage = score(moves, copy_of(moves, ahead=1))
    assert sage.days == DAYS - 151
    assert sage.beta == pytest.approx(0.8, abs=0.1)
    assert sage.weight == pytest.approx(sage.days / (sage.days + 120), abs=1e-9)
    assert sage.multiplier("C0") == pytest.approx(1 + 0.5 * sage.weight * sage.residuals["C0"])
    assert sage.multiplier("C9") == 1.0


def test_no_weight_before_sixty_days() -> None:
    moves = draw_moves(3, 2)
    assert score(moves, copy_of(moves, ahead=1), first=DAYS - 60).weight == 0.0
    assert score(moves, copy_of(moves, ahead=1), first=DAYS - 61).weight > 0.0


def test_ten_coins_that_move_together_rarely_earn_a_weight_by_chance() -> None:
    earned = 0
    for seed in range(60):
        moves, dice = draw_moves(100 + seed, 10, 500), np.random.Generator(np.random.PCG64(seed))
        views = 0.7 * dice.normal(size=500) + 0.5 * dice.normal(size=(10, 500))
        earned += score(moves, view_of(np.clip(views, -1, 1))).weight > 0
    assert earned <= 9  # 6 to 8 % are expected of 60; one by one the coins would give 26 %


def test_what_comes_later_changes_nothing() -> None:
    moves = draw_moves(4, 2)
    changed = moves.copy()
    changed[:, 700:] *= -1
    tilts = [DayTilt(DAY_MS * day, f"C{row}", 0.1 * (day * (row + 3) % 17 - 8)) for row in (0, 1) for day in range(700)]
    later = [DayTilt(DAY_MS * day, "C0", 1.0) for day in range(700, DAYS)]
    short = score_tilts(tilts, make_view(moves[:, :700]))
    assert score_tilts([*tilts, *later], make_view(changed, 700)) == short


def test_by_hand() -> None:
    """Plain sums over days and markets, as the rule is written."""
    moves, dice = draw_moves(5, 2, 600), np.random.Generator(np.random.PCG64(9))
    view = make_view(moves)
    columns = align_days(view)
    trend = measure_trend(columns)
    said = np.round(np.clip(dice.normal(size=moves.shape), -1, 1), 9)
    returns = columns.closes[:, 1:] / columns.closes[:, :-1] - 1
    by_day: dict[int, float] = {}
    squares = 0.0
    for row in range(2):
        surprises = [float(returns[row, day] / trend.volatility[row, day] * 365**0.5) for day in range(120, 599)]
        for day in range(150, 599):
            window = range(max(150, day - 179), day + 1)
            ups, views = [float(trend.up[row, each]) for each in window], [float(said[row, each]) for each in window]
            slope, constant = np.polyfit(ups, views, 1) if len(set(ups)) > 1 else (0.0, float(np.mean(views)))
            rest = views[-1] - slope * ups[-1] - constant
            past = surprises[max(0, day - 120 - 365) : day - 120]
            z = surprises[day - 120] - float(np.mean(past))
            by_day[day] = by_day.get(day, 0.0) + rest * z
            squares += rest * rest
    beta = sum(by_day.values()) / squares
    error = sum(each * each for each in by_day.values()) ** 0.5 / squares
    result = score(moves, lambda row, day: float(said[row, day]))
    assert (result.beta, result.se, result.days) == pytest.approx((beta, error, len(by_day)), abs=1e-6)


def test_a_market_that_is_not_known_and_an_empty_view_say_nothing() -> None:
    empty: Mapping[str, MarketHistory] = {}
    assert score_tilts([DayTilt(0, "C0", 1.0)], StrategyView(DAY_MS, empty)).days == 0
    moves = draw_moves(6, 1)
    assert score_tilts([DayTilt(DAY_MS * 500, "OTHER", 1.0)], make_view(moves)).days == 0
