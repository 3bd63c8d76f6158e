"""How trades end without drift: gambler's ruin on walks, exact ends where nothing moves, the same for a seed."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wire.trades import PRICE, fine, still, walk
from zuno.trading.model.known import Missing
from zuno.trading.model.market import HOUR_MS, Side
from zuno.trading.rules.expectancy import BLOCK, MIN_RETURNS, PATHS, TouchOdds, fill_share, first_touch

NOISE = 4 * 0.5 / sqrt(PATHS)
LONG_HOLD = 4_000


def touched(*args: object) -> TouchOdds:
    found = first_touch(*args)  # type: ignore[arg-type]
    assert isinstance(found, TouchOdds)
    return found


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_as_far_to_win_as_to_lose_is_even(side: Side, seed: int) -> None:
    sign = 1 if side is Side.LONG else -1
    found = touched(walk(), PRICE, PRICE - sign * 2, PRICE + sign * 2, side, LONG_HOLD, seed)
    # The market's own steps are not small beside the stop: within the noise and half a step.
    assert found.target == pytest.approx(0.5, abs=NOISE + 0.02)
    assert found.time == 0


@pytest.mark.parametrize(("gain", "loss"), [(1.0, 2.0), (2.0, 2.0), (4.0, 2.0), (6.0, 2.0)])
@pytest.mark.parametrize("side", list(Side))
def test_a_gamblers_ruin(side: Side, gain: float, loss: float) -> None:
    sign = 1 if side is Side.LONG else -1
    found = touched(walk(spread=0.001), PRICE, PRICE - sign * loss, PRICE + sign * gain, side, 6_000, 7)
    assert found.target + found.time * loss / (gain + loss) == pytest.approx(loss / (gain + loss), abs=NOISE + 0.01)


def test_a_market_that_stands_still_ends_by_the_clock() -> None:
    found = touched(still(), PRICE, 98.0, 104.0, Side.LONG, 120, 1)
    assert found == TouchOdds(0.0, 0.0, 1.0, 120.0, 0.0)


def test_of_a_bar_that_touches_both_the_stop_was_first() -> None:
    wild = replace(still(), high=np.full(1_000, PRICE * 1.1), low=np.full(1_000, PRICE * 0.9))
    for side, stop, take in ((Side.LONG, 98.0, 104.0), (Side.SHORT, 102.0, 96.0)):
        assert touched(wild, PRICE, stop, take, side, 120, 1) == TouchOdds(0.0, 1.0, 0.0, 1.0, 0.0)


def test_highs_and_lows_count_and_not_closes_alone() -> None:
    spikes = replace(still(), high=np.full(1_000, PRICE * 1.05))
    upright = touched(spikes, PRICE, 90.0, 104.0, Side.LONG, BLOCK, 1)
    # A bar upside down has its spike below: half of the blocks are drawn so.
    assert upright.target == pytest.approx(0.5, abs=NOISE)
    assert upright.time == pytest.approx(0.5, abs=NOISE)


def test_a_drift_is_taken_out() -> None:
    climbing = walk()
    slope = np.exp(0.002 * np.arange(1_000))
    up = replace(climbing, **{name: getattr(climbing, name) * slope for name in ("open", "high", "low", "close")})
    found = touched(up, PRICE, 98.0, 102.0, Side.LONG, LONG_HOLD, 3)
    assert found.target == pytest.approx(0.5, abs=NOISE + 0.03)
    # And with it the haste it made, upside down or not.
    assert found.bars == pytest.approx(touched(climbing, PRICE, 98.0, 102.0, Side.LONG, LONG_HOLD, 3).bars, rel=0.05)


def test_a_hold_that_ends_inside_a_block_ends_there() -> None:
    assert touched(still(), PRICE, 98.0, 104.0, Side.LONG, BLOCK + 5, 1).bars == BLOCK + 5
    shorter, longer = (touched(walk(), PRICE, 98.0, 104.0, Side.LONG, hold, 1) for hold in (10, 40))
    assert shorter.time > longer.time
    assert shorter.target <= longer.target
    assert shorter.stop <= longer.stop


def test_the_same_seed_draws_the_same_and_another_another() -> None:
    one, two, other = (touched(walk(), PRICE, 98.0, 104.0, Side.LONG, 120, seed) for seed in (1, 1, 2))
    assert one == two
    assert one != other
    assert abs(one.target - other.target) < NOISE


def test_bars_after_a_gap_are_no_step() -> None:
    whole = walk()
    jump = whole.close.copy()
    jump[500:] *= 3
    at = whole.at.copy()
    at[500:] += 5 * HOUR_MS
    ratio = jump / whole.close
    torn = replace(whole, at=at, close=jump, high=whole.high * ratio, low=whole.low * ratio, open=whole.open * ratio)
    found = touched(torn, PRICE, 98.0, 102.0, Side.LONG, LONG_HOLD, 1)
    assert found.target == pytest.approx(0.5, abs=NOISE + 0.02)


def test_too_short_a_past_is_none() -> None:
    assert isinstance(first_touch(walk().last(MIN_RETURNS), PRICE, 98.0, 104.0, Side.LONG, 120, 1), Missing)
    assert isinstance(first_touch(walk().last(MIN_RETURNS + 1), PRICE, 98.0, 104.0, Side.LONG, 120, 1), TouchOdds)


@pytest.mark.parametrize(
    ("side", "stop", "take"), [(Side.LONG, 101.0, 104.0), (Side.LONG, 98.0, 99.0), (Side.SHORT, 98.0, 96.0)]
)
def test_what_is_no_trade_is_refused(side: Side, stop: float, take: float) -> None:
    with pytest.raises(ValueError, match=rf"\b{stop}\b"):
        first_touch(walk(), PRICE, stop, take, side, 120, 1)


@pytest.mark.slow
@settings(max_examples=examples(15), deadline=None)
@given(st.floats(0.5, 5), st.floats(1, 5), st.sampled_from(list(Side)), st.integers(1, 500), st.integers(0, 2**63))
def test_shares_add_up_within_a_stated_error(loss: float, ratio: float, side: Side, hold: int, seed: int) -> None:
    gain, sign = loss * ratio, 1 if side is Side.LONG else -1
    found = touched(fine(), PRICE, PRICE - sign * loss, PRICE + sign * gain, side, hold, seed)
    assert found.target + found.stop + found.time == pytest.approx(1)
    assert 1 <= found.bars <= hold
    assert 0 <= found.error <= 0.005


@pytest.mark.slow
def test_the_stated_error_is_the_spread_of_other_draws() -> None:
    draws = [touched(walk(), PRICE, 98.0, 104.0, Side.LONG, 120, seed) for seed in range(30)]
    spread = float(np.std([found.target for found in draws], ddof=1))
    assert spread == pytest.approx(draws[0].error, rel=0.5)


@pytest.mark.parametrize("side", list(Side))
def test_as_odds_the_shares_are_biased_by_time_exits(side: Side) -> None:
    """Why they are no probability of winning: a far target is not reached in time, and its stop is."""
    sign = 1 if side is Side.LONG else -1
    found = touched(fine(), PRICE, PRICE - sign * 2, PRICE + sign * 5, side, 48, 3)
    assert found.target < 2 / 7 - 0.05


@pytest.mark.parametrize("side", list(Side))
def test_a_price_at_the_market_is_traded_through_and_a_far_one_is_not(side: Side) -> None:
    shares = [fill_share(walk(), away, side) for away in (0, 4_000_000, 20_000_000)]
    assert all(isinstance(share, float) for share in shares)
    at, near, far = shares
    assert 0.9 < at < 1  # type: ignore[operator]
    assert 0.1 < near < 0.5  # type: ignore[operator]
    assert 0 < far < 0.01  # type: ignore[operator]
    assert isinstance(fill_share(walk().last(MIN_RETURNS), 0, side), Missing)


def test_a_longer_past_than_the_lookback_is_cut() -> None:
    long = walk(1_500)
    assert touched(long, PRICE, 98.0, 104.0, Side.LONG, 120, 1) == touched(
        long.last(1_000), PRICE, 98.0, 104.0, Side.LONG, 120, 1
    )
