"""Shapes with a name, drawn by hand: each is found, points where it points, and is gone when it is over."""

from __future__ import annotations

import pytest

from zuno.kernel.units import Millis
from zuno.trading.measure.levels import PatternKind, find_pattern
from zuno.trading.measure.structure import Extreme, Pivot, PriceDirection


def turns(*prices: float, first: Extreme = Extreme.HIGH) -> list[Pivot]:
    """A zigzag through these prices."""
    kinds = [first, Extreme.LOW if first is Extreme.HIGH else Extreme.HIGH]
    return [Pivot(kinds[at % 2], Millis(10 * at), price, Millis(10 * at + 5)) for at, price in enumerate(prices)]


def mirror(price: float) -> float:
    """As far below 100 as the price is above it, in logs."""
    return 10_000 / price


def mirrored(prices: tuple[float, ...]) -> list[Pivot]:
    return turns(*map(mirror, prices), first=Extreme.LOW)


@pytest.mark.parametrize(
    ("prices", "close", "shape", "twin"),
    [
        ((110, 100, 115, 100, 110.5), 104.0, PatternKind.HEAD_AND_SHOULDERS, PatternKind.INVERSE_HEAD_AND_SHOULDERS),
        ((112, 104, 112.3), 107.0, PatternKind.DOUBLE_TOP, PatternKind.DOUBLE_BOTTOM),
        ((110, 104, 112, 107), 109.0, PatternKind.WEDGE, PatternKind.WEDGE),
    ],
)
def test_tops_point_down_and_bottoms_up(
    prices: tuple[float, ...], close: float, shape: PatternKind, twin: PatternKind
) -> None:
    top = find_pattern(turns(*prices), close, 0.01)
    bottom = find_pattern(mirrored(prices), mirror(close), 0.01)
    assert top is not None
    assert bottom is not None
    assert (top.shape, top.way) == (shape, PriceDirection.DOWN)
    assert (bottom.shape, bottom.way) == (twin, PriceDirection.UP)
    assert top.confirmed == bottom.confirmed


def test_a_neckline_confirms() -> None:
    prices = (110, 100, 115, 100, 110.5)
    forming, done = (find_pattern(turns(*prices), close, 0.01) for close in (100.5, 99.5))
    assert forming is not None
    assert done is not None
    assert (forming.line, forming.confirmed) == (100, False)
    assert done.confirmed


def test_a_triangle_that_ascends_and_one_that_does_not() -> None:
    up = find_pattern(turns(112, 104, 112.2, 108), 110.0, 0.01)
    down = find_pattern(turns(112, 104, 108, 104.1), 106.0, 0.01)
    both = find_pattern(turns(112, 104, 110, 106), 108.0, 0.01)
    assert up is not None
    assert (up.shape, up.way, up.line) == (PatternKind.ASCENDING_TRIANGLE, PriceDirection.UP, 112.2)
    assert down is not None
    assert (down.shape, down.way) == (PatternKind.OTHER, PriceDirection.DOWN)
    assert both is not None
    assert (both.shape, both.way) == (PatternKind.OTHER, None)


@pytest.mark.parametrize(
    ("close", "found"), [(109.0, None), (108.9, PatternKind.BULL_FLAG), (104.9, PatternKind.BULL_FLAG), (104.8, None)]
)
def test_a_flag_gives_little_back(close: float, found: PatternKind | None) -> None:
    shape = find_pattern(turns(100, 110, first=Extreme.LOW), close, 0.02)
    assert (shape and shape.shape) == found
    fallen = find_pattern(turns(100, mirror(110)), mirror(close), 0.02)
    assert (fallen and fallen.shape) == (None if found is None else PatternKind.BEAR_FLAG)


def test_what_has_played_out_is_none() -> None:
    prices = (112, 104, 112.3)
    assert find_pattern(turns(*prices), 100.0, 0.01) is not None
    assert find_pattern(turns(*prices), 99.9, 0.01) is None


@pytest.mark.parametrize("log_atr", [None, 0.0])
def test_nothing_is_found_without_a_measure_or_turns(log_atr: float | None) -> None:
    assert find_pattern(turns(110, 100, 110), 105.0, log_atr) is None
    assert find_pattern([], 105.0, 0.01) is None
    assert find_pattern(turns(110), 109.0, 0.01) is None
