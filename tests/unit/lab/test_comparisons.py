"""Paired block bootstrap, Holm's correction and Wilson's interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.lab.comparisons import compare_pairs, correct_p_values, gain_chance, interval_of_sum, rate_interval

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
