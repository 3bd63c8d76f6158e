"""Paired block bootstrap, Holm's correction and Wilson's interval."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.lab.comparisons import (
    compare_pairs,
    correct_p_values,
    estimate_mean,
    estimate_total,
    gain_chance,
    interval_of_sum,
    rate_interval,
)

WAVE = [((7 * place) % 23 - 11) * 1000 for place in range(230)]
CHANCES = st.lists(st.integers(0, 1000).map(lambda value: value / 1000), max_size=12)


def test_a_paired_comparison_is_fixed_by_its_seed():
    gain = [value + 900 for value in WAVE]
    found = compare_pairs(gain, [0] * 230, 5)
    assert found is not None
    assert (found.difference, found.low, found.high, found.p) == (207000, 74000, 343000, 0.002499)
    assert (found.low, found.high) == interval_of_sum(gain, 5)


def test_what_both_arms_have_in_common_cancels():
    found = compare_pairs([value + 1 for value in WAVE], WAVE, 10)
    assert found is not None
    assert (found.difference, found.low, found.high) == (230, 230, 230)
    same = compare_pairs(WAVE, WAVE, 10)
    assert same is not None
    assert (same.difference, same.p) == (0, 1.0)


def test_a_gain_without_a_mean_is_no_gain():
    none, gain, loss = (gain_chance([value + shift for value in WAVE], 5) or 0.0 for shift in (0, 1500, -1500))
    assert none == pytest.approx(0.5, abs=0.05)
    assert 0 < gain < 0.01
    assert loss > 0.99


def test_too_few_blocks_give_no_interval():
    assert compare_pairs([1] * 9, [0] * 9, 2) is None
    assert gain_chance([1] * 9, 2) is None


@given(CHANCES)
def test_a_correction_keeps_the_order_and_never_helps(values):
    corrected = correct_p_values(values)
    assert all(old <= new <= 1 for old, new in zip(values, corrected, strict=True))
    by_value = [new for _, new in sorted(zip(values, corrected, strict=True))]
    assert by_value == sorted(by_value)
    if values:
        assert min(corrected) == min(1.0, len(values) * min(values))


def test_holm():
    assert correct_p_values((0.01, 0.04, 0.03, 0.005)) == (0.03, 0.06, 0.06, 0.02)


def test_wilson():
    assert rate_interval(50, 1000) == (0.03813, 0.065314)
    assert rate_interval(0, 1000) == (0.0, 0.003827)
    assert rate_interval(10, 10) == (0.722467, 1.0)
    assert rate_interval(0, 0) is None


@given(st.integers(0, 300), st.integers(1, 300))
def test_a_rate_lies_in_its_interval_and_its_mirror_image_in_the_mirrored_one(count, total):
    count = min(count, total)
    low, high = rate_interval(count, total) or (1.0, 0.0)
    assert low <= count / total <= high
    assert rate_interval(total - count, total) == pytest.approx((1 - high, 1 - low), abs=2e-6)


def test_the_interval_of_overlapping_episodes_covers_what_it_says_and_that_of_blocks_does_not() -> None:
    """84 episodes of 24 hours, four hours apart: 14 that do not overlap."""
    dice, studies, rows, blocks, found = random.Random(4), 1_000, 0, 0, 0
    for _ in range(studies):
        hours = [dice.gauss(0, 1) for _ in range(89)]
        episodes = [round(1e6 * sum(hours[place : place + 6])) for place in range(84)]
        estimate, drawn = estimate_mean(episodes, 6), interval_of_sum(episodes, 6)
        assert estimate is not None
        assert drawn is not None
        rows += estimate.low <= 0 <= estimate.high
        found += estimate.p < 0.05
        blocks += drawn[0] <= 0 <= drawn[1]
        assert (estimate.p < 0.05) == (not estimate.low <= 0 <= estimate.high)
    assert 0.945 < rows / studies < 0.98
    assert 0.81 < blocks / studies < 0.87
    assert found == studies - rows


def test_days_that_hang_together_have_a_wider_interval() -> None:
    dice = random.Random(6)
    alone = [round(1e6 * dice.gauss(0, 1)) for _ in range(15)]
    pairs = [value for value in alone[:8] for _ in range(2)][:15]
    shuffled = [pairs[place] for place in dice.sample(range(15), 15)]
    estimates = [estimate_total(days) for days in (alone, pairs, sorted(pairs), shuffled)]
    assert all(each is not None and each.low < each.value < each.high for each in estimates)
    together, mixed = estimates[2], estimates[3]
    assert together is not None
    assert mixed is not None
    assert together.high - together.low > mixed.high - mixed.low
    assert together.smallest == pytest.approx(
        (2.144787 + 0.868055) / 2.144787 * (together.high - together.value), rel=1e-4
    )
    assert estimate_total([1, 2, 3, 4]) is None
    assert estimate_mean(list(range(29)), 6) is None
    sure = estimate_mean([5] * 30, 6)
    assert sure is not None
    assert (sure.low, sure.high, sure.p) == (5, 5, 0.0)
