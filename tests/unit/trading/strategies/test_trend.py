"""`trend` against the rule as one would write it down, by hand on the first days, and without a look ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.peers.plain_trend import weigh_row_by_row
from zuno.trading.measure.portable import round_digits
from zuno.trading.model.market import DAY_MS
from zuno.trading.strategies.port import MarketHistory, StrategyView, TargetWeight, align_days, build_history
from zuno.trading.strategies.trend import TREND, VOL_HOLD

DAYS = 400


def draw_closes(seed: int, days: int = DAYS) -> list[float]:
    dice = np.random.Generator(np.random.PCG64(seed))
    closes = 100 * np.exp(np.cumsum(dice.normal(0.001, 0.03, days)))
    return [round_digits(close) for close in closes.tolist()]


def make_history(name: str, closes: Sequence[float], *, last: int = DAYS, without: Sequence[int] = ()) -> MarketHistory:
    """Closes of the days up to `last`, but for some."""
    bars = [(DAY_MS * (last - len(closes) + place), close) for place, close in enumerate(closes)]
    return build_history(name, [bar for bar in bars if bar[0] // DAY_MS not in without])


def view_of(*histories: MarketHistory, days: int = DAYS) -> StrategyView:
    return StrategyView(DAY_MS * days, {history.name: history for history in histories})


def weigh(*histories: MarketHistory, days: int = DAYS) -> dict[str, TargetWeight]:
    return dict(TREND.targets(view_of(*histories, days=days)))


def test_all_days_at_once_equal_the_rule_row_by_row() -> None:
    closes = {f"C{seed}": draw_closes(seed, DAYS - 40 * seed) for seed in range(6)}
    view = view_of(*(make_history(name, series) for name, series in closes.items()))
    weights, plain = TREND.weigh_days(align_days(view)), weigh_row_by_row(closes)
    for place, name in enumerate(closes):
        assert np.abs(weights[place] - plain[name]).max() <= 1e-12


def test_targets_are_the_last_of_all_days() -> None:
    histories = [make_history(f"C{seed}", draw_closes(seed)) for seed in range(3)]
    weights = TREND.weigh_days(align_days(view_of(*histories)))
    for days in (121, 122, 200, 399, 400):
        targets = weigh(*histories, days=days)
        assert [targets[history.name].weight for history in histories] == weights[:, days - 1].tolist()


def test_golden_vector() -> None:
    """Prices of whole numbers, the same on every machine."""
    rising = [300.0 + place + 37 * place % 23 for place in range(DAYS)]
    turning = [900.0 + 41 * place % 67 + abs(250 - place) for place in range(DAYS)]
    targets = weigh(make_history("RISING", rising), make_history("TURNING", turning))
    assert {name: round_digits(target.weight, 9) for name, target in targets.items()} == GOLDEN


GOLDEN: Mapping[str, float] = {"RISING": 0.474315005, "TURNING": 0.170112757}


def test_five_trends_of_six_by_hand() -> None:
    """Every other day at 103, the last at 101: above the even days, which all six lookbacks reach. Then one of the days
    they reach is higher."""
    closes = [100.0 + 3 * (place % 2) for place in range(120)] + [101.0]
    moves = np.diff(np.log(closes))[-30:]
    full = 0.30 / (moves.std(ddof=1) * 365**0.5)
    assert weigh(make_history("A", closes, last=121), days=121)["A"].weight == pytest.approx(full, abs=1e-12)
    closes[0] = 102.0
    target = weigh(make_history("A", closes, last=121), days=121)["A"]
    assert target.weight == pytest.approx(5 / 6 * full, abs=1e-12)
    assert target.why.startswith("5 of 6 trends up, volatility 57 %")


@given(seed=st.integers(0, 2**32 - 1), cut=st.integers(130, DAYS - 1))
@settings(max_examples=25, deadline=None)
def test_what_comes_later_changes_nothing(seed: int, cut: int) -> None:
    histories = [make_history(f"C{place}", draw_closes(seed + place)) for place in range(2)]
    short = [MarketHistory(history.name, history.days[:cut], history.closes[:cut]) for history in histories]
    assert weigh(*histories, days=cut) == weigh(*short, days=cut)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_the_last_bit_of_a_close_changes_no_weight(seed: int) -> None:
    closes = draw_closes(seed)
    nudged = [float(np.nextafter(close, 1e9)) for close in closes]
    assert weigh(make_history("A", closes)) == weigh(make_history("A", nudged))


def test_a_weight_moves_by_more_than_the_band_or_to_zero() -> None:
    histories = [make_history(f"C{seed}", draw_closes(seed)) for seed in range(4)]
    weights = TREND.weigh_days(align_days(view_of(*histories)))[:, 121:]
    moves = np.abs(np.diff(weights, axis=1))
    assert ((moves == 0) | (moves > 0.10 / 4) | (weights[:, 1:] == 0)).all()
    assert weights.sum(axis=0).max() <= 1


def test_a_market_with_too_few_days_is_named_and_shares_no_capital() -> None:
    old, young = make_history("OLD", draw_closes(3)), make_history("YOUNG", draw_closes(4, 120))
    targets = weigh(old, young)
    assert targets["YOUNG"].weight == 0
    assert "120 closed days, 121" in targets["YOUNG"].why
    assert targets["OLD"] == weigh(old)["OLD"]


def test_a_market_without_bars_for_more_than_a_week_is_left_out() -> None:
    closes = draw_closes(5)
    quiet = weigh(make_history("GONE", closes[:-7], last=DAYS - 7))["GONE"]
    gone = weigh(make_history("GONE", closes[:-8], last=DAYS - 8))["GONE"]
    assert "trends up" in quiet.why
    assert gone == TargetWeight(0.0, "no bar for more than 7 days: delisted, or not recorded")


def test_a_day_without_a_bar_keeps_the_close_before_it() -> None:
    closes = draw_closes(6)
    held = [*closes[:300], closes[299], *closes[301:]]
    assert weigh(make_history("A", closes, without=[300]))["A"].weight == weigh(make_history("A", held))["A"].weight


def test_days_are_counted_anew_after_a_long_gap() -> None:
    target = weigh(make_history("A", draw_closes(7), without=range(290, 300)))["A"]
    assert target.weight == 0
    assert target.why.startswith("100 closed days")


def test_a_market_nobody_knows_has_a_reason() -> None:
    assert weigh(make_history("A", []))["A"].why == "no closed day is known"
    targets = weigh(make_history("A", []), make_history("B", draw_closes(8)))
    assert targets["A"] == TargetWeight(0.0, "no closed day is known")
    assert targets["B"].weight > 0


def test_flat_prices_hold_nothing_and_a_steady_rise_everything() -> None:
    flat, rise = [100.0] * 130, [round_digits(100 * 1.01**place) for place in range(130)]
    targets = weigh(make_history("FLAT", flat, last=130), make_history("RISE", rise, last=130), days=130)
    assert targets["FLAT"].weight == 0
    assert targets["RISE"].weight == 0.5


def test_holding_by_volatility_does_not_look_at_the_trend() -> None:
    fall = [round_digits(100 * 0.99**place * (1 + 0.02 * (place % 2))) for place in range(130)]
    history = make_history("A", fall, last=130)
    assert weigh(history, days=130)["A"].weight == 0
    assert VOL_HOLD.targets(view_of(history, days=130))["A"].weight > 0
