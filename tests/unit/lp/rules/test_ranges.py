"""Ranges: where a shape lands on the grid, what a move is called, and how a revision answers its critique."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.amm.model import Range
from zuno.amm.ticks import max_usable_tick, sqrt_price_at_tick
from zuno.kernel.units import Tick
from zuno.lp.model.ballot import CandidateKind, Exposure, Fault, RiskProfile
from zuno.lp.rules.limits import LIMITS
from zuno.lp.rules.ranges import (
    DETERMINISTIC_SHAPES,
    Move,
    PoolGrid,
    Shape,
    create_base_width,
    find_narrowest_range,
    kind_of,
    place,
    propose,
    rebalance_base_width,
    revise,
)
from zuno.lp.rules.stress import StressPaths, barriers, draw_paths, stress, survives_hours

spacings = st.sampled_from([1, 10, 60, 200])
profiles = st.sampled_from(list(RiskProfile))
BALANCED = LIMITS[RiskProfile.BALANCED]


@lru_cache(maxsize=1)
def paths() -> StressPaths:
    """A coin thrown every hour, 463 bps a day."""
    heads = np.random.PCG64(3).random_raw(720) % np.uint64(2)
    return draw_paths([(2 * int(head) - 1) * 0.0463 / math.sqrt(24) for head in heads])


def grid(
    tick: int = 7, spacing: int = 60, current: Range | None = None, base: int = 1200, zero: bool = True
) -> PoolGrid:
    return PoolGrid(Tick(tick), sqrt_price_at_tick(tick), spacing, base, current, zero)


def band(lower: int, upper: int) -> Range:
    return Range(Tick(lower), Tick(upper))


def clears(found: Range, at: PoolGrid, profile: RiskProfile) -> bool:
    tested = stress(paths(), barriers(found, at.sqrt_price_x96, at.tick))
    limits = LIMITS[profile]
    return tested.x1.median_hours >= limits.floor_1x_hours and tested.x2.median_hours >= limits.floor_2x_hours


def test_base_widths() -> None:
    assert rebalance_base_width(band(0, 1200), 60) == 1200
    assert rebalance_base_width(band(0, 60), 60) == 240
    assert rebalance_base_width(band(0, 240), 60) == 240


@pytest.mark.parametrize("profile", list(RiskProfile))
def test_a_new_position_starts_at_one_and_a_half_floors_and_not_a_spacing_wider(profile: RiskProfile) -> None:
    tick, wanted = 12_345, Fraction(3, 2) * LIMITS[profile].floor_1x_hours
    price = sqrt_price_at_tick(tick)
    width = create_base_width(paths(), tick=tick, sqrt_price_x96=price, tick_spacing=10, limits=LIMITS[profile])
    assert width is not None
    assert width % 10 == 0
    for this, enough in [(width, True), (width - 10, False)]:
        edges = barriers(place(tick, Fraction(this), 10), price, tick)
        assert survives_hours(paths(), edges, 1, wanted) is enough


def test_no_range_lasts_in_a_market_that_leaves_them_all() -> None:
    wild = draw_paths([60.0, -60.0] * 24)
    assert (
        create_base_width(wild, tick=0, sqrt_price_x96=sqrt_price_at_tick(0), tick_spacing=60, limits=BALANCED) is None
    )
    assert find_narrowest_range(wild, grid(0), 0, BALANCED) is None


@given(st.integers(-880_000, 880_000), st.fractions(0, 100_000), spacings)
def test_lower_floors_upper_ceils_and_both_are_usable(center: int, width: Fraction, spacing: int) -> None:
    placed, most = place(center, width, spacing), max_usable_tick(spacing)
    assert placed.lower % spacing == 0 == placed.upper % spacing
    assert -most <= placed.lower < placed.upper <= most
    if -most + spacing <= center - width / 2 and center + width / 2 <= most - spacing and width > 0:
        assert placed.lower <= center - width / 2 < placed.lower + spacing
        assert placed.upper - spacing < center + width / 2 <= placed.upper


@pytest.mark.slow
@given(st.integers(-880_000, 880_000), st.fractions(1, 100_000), st.fractions(1, 100_000), spacings)
def test_a_wider_range_about_the_same_centre_holds_the_narrower(
    center: int, width: Fraction, more: Fraction, spacing: int
) -> None:
    narrow, wide = place(center, width, spacing), place(center, width + more, spacing)
    assert wide.lower <= narrow.lower < narrow.upper <= wide.upper


def test_golden_ranges_of_the_deterministic_strategist() -> None:
    at = grid(tick=-201_007, current=band(-201_600, -200_400), base=1200)
    assert [
        (move.kind.value, move.range.lower, move.range.upper) for move in propose([at], DETERMINISTIC_SHAPES, set())
    ] == [
        ("widen", -201_900, -200_160),
        ("tighten", -201_420, -200_580),
        ("shift", -201_660, -200_400),
    ]
    assert [shape.width_multiplier for shape in DETERMINISTIC_SHAPES] == [Fraction("1.4"), Fraction("0.65"), 1]


def test_the_offset_moves_the_centre() -> None:
    (there,) = propose([grid(0)], [Shape(Fraction(1), 600)], set())
    assert there.range == band(0, 1200)


def test_duplicates_what_is_held_and_what_was_tried_are_dropped() -> None:
    at = grid(tick=0, current=band(-600, 600))
    same = Shape(Fraction(1))
    assert propose([at], [same], set()) == [], "holding is on the ballot already"
    shapes = [Shape(Fraction(2)), Shape(Fraction("2.01")), Shape(Fraction("1.95"))]
    moves = propose([at], shapes, set())
    assert [move.range for move in moves] == [band(-1200, 1200), band(-1260, 1260)]
    assert propose([at], shapes, {moves[0].key}) == moves[1:]
    assert propose([at], shapes, {move.key for move in moves}) == []


def test_the_same_ticks_in_another_pool_are_another_range() -> None:
    shapes = [Shape(Fraction(1), pool_index=0), Shape(Fraction(1), pool_index=1)]
    moves = propose([grid(0), grid(0)], shapes, set())
    assert [(move.pool_index, move.range, move.kind) for move in moves] == [
        (0, band(-600, 600), CandidateKind.OPEN),
        (1, band(-600, 600), CandidateKind.OPEN),
    ]


@pytest.mark.parametrize(
    ("new", "kind"),
    [
        (band(60, 1260), CandidateKind.SHIFT),
        (band(0, 1260), CandidateKind.SHIFT),
        (band(-60, 1260), CandidateKind.WIDEN),
        (band(60, 1200), CandidateKind.SHIFT),
        (band(60, 1140), CandidateKind.TIGHTEN),
    ],
)
def test_snapping_alone_is_a_shift(new: Range, kind: CandidateKind) -> None:
    assert kind_of(band(0, 1200), new, 60) is kind
    assert kind_of(None, new, 60) is CandidateKind.OPEN


@pytest.mark.slow
@given(st.integers(-100_000, 100_000), st.integers(4, 500), spacings)
def test_the_deterministic_shapes_are_called_what_they_are(tick: int, wide: int, spacing: int) -> None:
    base = max(wide, 20) * spacing
    current = place(tick + base, Fraction(base), spacing)
    moves = propose([grid(tick, spacing, current, base)], DETERMINISTIC_SHAPES, set())
    assert [move.kind for move in moves] == [CandidateKind.WIDEN, CandidateKind.TIGHTEN, CandidateKind.SHIFT]


@pytest.mark.parametrize("zero", [True, False])
def test_long_token_keeps_the_capital_token_longer(zero: bool) -> None:
    """Token0 is sold on the way up: more room above keeps it longer. Token1 is the mirror image."""
    at = grid(0, zero=zero)
    shapes = [Shape(Fraction(1)), Shape(Fraction(1), exposure=Exposure.LONG_TOKEN)]
    neutral, long = (move.range for move in propose([at], shapes, set()))
    assert long.contains(at.tick)
    assert long.width == neutral.width + 60, "off the grid both edges snap outward"
    if zero:
        assert (long.lower, long.upper) == (-420, 840)
    else:
        assert (long.lower, long.upper) == (-840, 420)


@given(profiles, st.booleans(), st.integers(-50_000, 50_000))
def test_a_long_range_of_base_width_still_clears_its_floors(profile: RiskProfile, zero: bool, tick: int) -> None:
    price = sqrt_price_at_tick(tick)
    base = create_base_width(paths(), tick=tick, sqrt_price_x96=price, tick_spacing=1, limits=LIMITS[profile])
    assert base is not None
    at = grid(tick, 1, None, base, zero)
    (long,) = propose([at], [Shape(Fraction(1), exposure=Exposure.LONG_TOKEN)], set())
    assert clears(long.range, at, profile)


@pytest.mark.slow
@given(profiles, st.integers(-50_000, 50_000), st.integers(-400, 400), spacings)
def test_the_narrowest_range_that_clears(profile: RiskProfile, tick: int, offset: int, spacing: int) -> None:
    at = grid(tick, spacing)
    found = find_narrowest_range(paths(), at, tick + offset, LIMITS[profile])
    assert found is not None
    assert clears(found, at, profile)
    smaller = place(tick + offset, Fraction(found.width - 3 * spacing), spacing)
    assert smaller.width < found.width
    assert not clears(smaller, at, profile)


@pytest.mark.parametrize("fault", [Fault.THIN_1X, Fault.THIN_2X])
def test_too_thin_comes_back_just_wide_enough(fault: Fault) -> None:
    at = grid(tick=0, current=band(-6000, 6000))
    thin = Move(CandidateKind.TIGHTEN, band(-120, 240))
    (answer,) = revise([at], [(thin, fault)], [paths()], BALANCED, {thin.key})
    assert answer.range == find_narrowest_range(paths(), at, 60, BALANCED)
    assert clears(answer.range, at, RiskProfile.BALANCED)
    assert answer.kind is CandidateKind.TIGHTEN


def test_outside_comes_back_about_the_price() -> None:
    at = grid(tick=0)
    (answer,) = revise([at], [(Move(CandidateKind.OPEN, band(6000, 6600)), Fault.OUTSIDE)], [paths()], BALANCED, set())
    assert answer.range == find_narrowest_range(paths(), at, 0, BALANCED)


@pytest.mark.parametrize("fault", [Fault.DEAR, Fault.UNKNOWN, Fault.EMPTY, Fault.NONE])
def test_what_no_width_can_mend_comes_back_as_hold(fault: Fault) -> None:
    assert revise([grid()], [(Move(CandidateKind.OPEN, band(0, 600)), fault)], [paths()], BALANCED, set()) == []


def test_an_objection_the_rules_do_not_share_is_answered_by_half_as_wide_again() -> None:
    old = Move(CandidateKind.OPEN, band(-600, 600))
    (answer,) = revise([grid(0)], [(old, Fault.OPINION)], [None], BALANCED, {old.key})
    assert answer.range == band(-900, 900)


def test_without_a_history_nothing_can_be_promised() -> None:
    assert revise([grid(0)], [(Move(CandidateKind.OPEN, band(0, 60)), Fault.THIN_2X)], [None], BALANCED, set()) == []


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 40), st.sampled_from(list(Fault))), min_size=1, max_size=5)
)
def test_round_after_round_never_the_same_range_again(drawn: list[tuple[int, int, Fault]]) -> None:
    at, tried = grid(tick=0, current=band(-240, 240)), set[tuple[int, int, int]]()
    judged = [(Move(CandidateKind.SHIFT, band(60 * low, 60 * (low + wide))), fault) for low, wide, fault in drawn]
    rounds = [{move.key for move, _ in judged}]
    for _ in range(4):
        tried |= rounds[-1]
        answers = revise([at], judged, [paths()], BALANCED, tried)
        assert all(move.range != at.current for move in answers)
        rounds.append({move.key for move in answers})
        judged = [(move, fault) for move, (_, _, fault) in zip(answers, drawn, strict=False)]
    for earlier, later in pairwise(rounds):
        assert not earlier & later
    assert sum(map(len, rounds)) == len(set().union(*rounds))


@pytest.mark.parametrize(("multiplier", "offset"), [("0.29", 0), ("3.51", 0), ("1", 2401), ("1", -2401)])
def test_a_shape_out_of_bounds_is_no_shape(multiplier: str, offset: int) -> None:
    with pytest.raises(ValueError, match=r"width|centre"):
        Shape(Fraction(multiplier), offset)
    Shape(Fraction("0.3"), 2400)
    Shape(Fraction("3.5"), -2400)
