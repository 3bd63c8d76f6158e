"""Which answers of an owner's strategy count, and what its shadow earns, by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.kernel.errors import Malformed
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.own_strategies import OwnAnswer
from zuno.trading.strategies.own_targets import COST, ShadowRecord, check_targets, measure_shadow

SIDES = {"BTCUSDT": True, "binance-spot:BTC/USDT": False}
WEIGHTS = st.one_of(st.floats(), st.integers(), st.booleans(), st.none(), st.text(max_size=3), st.lists(st.integers()))


@given(st.dictionaries(st.sampled_from([*SIDES, "DOGEUSDT", "", "x" * 99]), WEIGHTS))
def test_what_counts_is_finite_known_and_within_the_cap(answer: dict[str, object]) -> None:
    try:
        weights = check_targets(answer, SIDES)
    except Malformed:
        return
    assert weights.keys() <= SIDES.keys() & answer.keys()
    assert all(math.isfinite(weight) and weight for weight in weights.values())
    assert sum(map(abs, weights.values())) <= 1 + 1e-9
    assert weights.get("binance-spot:BTC/USDT", 0) >= 0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"BTCUSDT": 0.7, "binance-spot:BTC/USDT": 0.4}, r"add up to 1\.1"),
        ({"BTCUSDT": -0.7, "binance-spot:BTC/USDT": 0.4}, r"add up to 1\.1"),
        ({"binance-spot:BTC/USDT": -0.1}, "not sold short"),
        ({"BTCUSDT": math.inf}, "beyond"),
        ({"BTCUSDT": True}, "not a number"),
        ({"btcusdt": 0.1}, "no market"),
    ],
)
def test_what_is_wrong_is_said(answer: dict[str, object], words: str) -> None:
    with pytest.raises(Malformed, match=words):
        check_targets(answer, SIDES)


def test_a_short_perpetual_and_an_empty_answer_count() -> None:
    assert check_targets({"BTCUSDT": -1, "binance-spot:BTC/USDT": 0}, SIDES) == {"BTCUSDT": -1.0}
    assert check_targets({}, SIDES) == {}


def answer(day: int, targets: dict[str, float], **closes: float) -> OwnAnswer:
    return OwnAnswer(name="mine", at=day * DAY_MS, targets=targets, closes=closes)


def test_a_shadow_by_hand() -> None:
    record = measure_shadow(
        [
            answer(1, {"A": 0.5}, A=100.0, B=10.0),
            answer(2, {"A": 0.5}, A=110.0, B=10.0),
            answer(3, {"B": -1.0}, A=99.0, B=10.0),
            answer(4, {}, A=99.0, B=11.0),
        ]
    )
    first = 0.05 - COST * 0.5
    second = -0.05 - COST * abs(0.5 - 0.55 / 1.05)
    third = -0.1 - COST * (1.0 + 0.45 / 0.95)
    assert list(record.returns.values()) == pytest.approx([first, second, third])
    assert [day // DAY_MS for day in record.returns] == [2, 3, 4]
    assert record.gain == pytest.approx((1 + first) * (1 + second) * (1 + third) - 1)
    assert record.fall == pytest.approx(1 - (1 + second) * (1 + third))
    assert record.costs == pytest.approx(COST * (0.5 + abs(0.5 - 0.55 / 1.05) + 1 + 0.45 / 0.95))
    assert record.days == 3
    mean = (first + second + third) / 3
    deviation = math.sqrt(sum((gain - mean) ** 2 for gain in (first, second, third)) / 2)
    assert record.sharpe == pytest.approx(mean / deviation * math.sqrt(365))


def test_a_shadow_without_a_day_says_nothing() -> None:
    assert measure_shadow([]) == measure_shadow([answer(1, {"A": 1.0}, A=1.0)]) == ShadowRecord()


def test_missed_days_and_markets_that_left() -> None:
    record = measure_shadow([answer(1, {"A": 1.0}, A=100.0), answer(5, {"A": 1.0}, B=1.0), answer(6, {}, B=1.0)])
    assert record.days == 5
    assert list(record.returns.values()) == pytest.approx([-COST, 0.0])


def test_more_than_everything_is_never_lost() -> None:
    record = measure_shadow([answer(1, {"A": -1.0}, A=1.0), answer(2, {"A": -1.0}, A=9.0), answer(3, {}, A=9.0)])
    assert min(record.returns.values()) == -1
    assert record.gain == -1
    assert record.fall == 1
