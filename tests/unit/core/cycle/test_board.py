"""What the blackboard comes to: weights in the order of conviction, absent voices, the dead band, stances by code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trades import board

from zuno.core.board import DEAD_BAND, entries, lean, score, signal, stance_of, weights
from zuno.domain.cycle import Expert, Signal
from zuno.domain.trading import Mode
from zuno.messages.cycle import Blackboard, GeometryEntry, KeyLevels, LiquidityEntry, MacroEntry, MicrostructureEntry

SAID: dict[str, Any] = {"source": "model", "why": "", "rationale": ""}
NOTHING: Any = dict.fromkeys(KeyLevels.model_fields)


def full(stances: tuple[int, int, int, int], sure: tuple[float, float, float, float] = (1.0,) * 4) -> Blackboard:
    """Liquidity, microstructure, macro, geometry."""
    one, two, three, four = zip(stances, sure, strict=True)
    return Blackboard(
        liquidity=LiquidityEntry(**SAID, anomaly="none", target_entry=None, stance=one[0], confidence=one[1]),
        microstructure=MicrostructureEntry(
            **SAID, anomaly="none", directional_bias="UP", stance=two[0], confidence=two[1]
        ),
        macro=MacroEntry(**SAID, anomaly="none", options_bias="NEUTRAL", stance=three[0], confidence=three[1]),
        vlm_geometry=geometry(four[0], four[1]),
    )


def geometry(stance: Any = 0, confidence: float = 0.0, bias: Any = "NEUTRAL") -> GeometryEntry:
    return GeometryEntry(
        **SAID,
        anomaly="none",
        directional_bias=bias,
        confidence=confidence,
        key_levels=KeyLevels(**NOTHING),
        fibonacci_context="",
        pattern="none",
        cvd_signal=None,
        funding_visual=None,
        stance=stance,
    )


def test_weights_follow_the_order_of_conviction() -> None:
    swing, position = weights(Mode.SWING, None), weights(Mode.POSITION, None)
    assert swing == {
        Expert.MICROSTRUCTURE: 0.4,
        Expert.LIQUIDITY: 0.3,
        Expert.MACRO: 0.2,
        Expert.GEOMETRY: 0.1,
    }
    assert position == {
        Expert.MACRO: 0.4,
        Expert.LIQUIDITY: 0.3,
        Expert.GEOMETRY: 0.2,
        Expert.MICROSTRUCTURE: 0.1,
    }
    assert weights(Mode.SWING, Expert.MACRO)[Expert.MACRO] == pytest.approx(0.3)
    assert weights(Mode.SWING, Expert.MACRO)[Expert.LIQUIDITY] == 0.3


def test_a_score_by_hand() -> None:
    told = full((1, -1, 1, 0), (0.5, 0.25, 1.0, 1.0))
    assert score(told, Mode.SWING, None) == pytest.approx(0.3 * 0.5 - 0.4 * 0.25 + 0.2)
    assert score(told, Mode.SWING, Expert.MICROSTRUCTURE) == pytest.approx(0.15 - 0.15 + 0.2)
    assert score(told, Mode.POSITION, None) == pytest.approx(0.15 - 0.025 + 0.4)


def test_who_is_absent_weighs_nothing_and_lends_nothing() -> None:
    told = full((1, 1, 1, 1))
    without = told.model_copy(update={"microstructure": None})
    assert score(told, Mode.SWING, None) == pytest.approx(1.0)
    assert score(without, Mode.SWING, None) == pytest.approx(0.6)
    assert set(entries(without)) == set(Expert) - {Expert.MICROSTRUCTURE}
    assert score(Blackboard(liquidity=None, microstructure=None, macro=None, vlm_geometry=None), Mode.SWING, None) == 0


@pytest.mark.parametrize(
    ("given_", "named"),
    [
        (0.1501, Signal.BULLISH),
        (DEAD_BAND, Signal.NEUTRAL),
        (0.0, Signal.NEUTRAL),
        (-DEAD_BAND, Signal.NEUTRAL),
        (-0.1501, Signal.BEARISH),
    ],
)
def test_the_dead_band(given_: float, named: Signal) -> None:
    assert signal(given_) is named


@pytest.mark.parametrize(("word", "stance"), [("BULLISH", 1), ("UP", 1), ("NEUTRAL", 0), ("DOWN", -1), ("BEARISH", -1)])
def test_a_lean_is_a_stance(word: str, stance: int) -> None:
    assert lean(word) == stance


def test_stances_are_computed_and_not_believed() -> None:
    """Whatever stance an entry came with."""
    macro = MacroEntry(**SAID, anomaly="none", options_bias="BEARISH", confidence=1.0, stance=1)
    micro = MicrostructureEntry(**SAID, anomaly="none", directional_bias="DOWN", confidence=1.0, stance=1)
    flow = LiquidityEntry(**SAID, anomaly="liquidation_hunting", confidence=1.0, target_entry=None, stance=1)
    assert [stance_of(one) for one in (macro, micro, geometry(1, 1.0, "BEARISH"))] == [-1, -1, -1]
    assert [stance_of(flow, measured) for measured in (-1, 0, 1)] == [-1, 0, 1]
    assert stance_of(flow.model_copy(update={"anomaly": "none"}), 1) == 0


@given(
    st.tuples(*(st.integers(-1, 1),) * 4),
    st.tuples(*(st.floats(0, 1),) * 4),
    st.sampled_from(list(Mode)),
    st.sampled_from([None, *Expert]),
)
def test_a_score_is_bounded_and_odd(stances: Any, sure: Any, mode: Mode, trusted: Expert | None) -> None:
    told = score(full(stances, sure), mode, trusted)
    assert abs(told) <= sum(weights(mode, trusted).values()) + 1e-12
    mirrored: Any = tuple(-one for one in stances)
    assert score(full(mirrored, sure), mode, trusted) == pytest.approx(-told)


def test_what_doubles_leave_over_decides_nothing() -> None:
    # 0.2 · 0.75 is a little more than 0.15 in doubles, and 0.4 · 0.7 + 0.2 · 0.6 a little less than 0.4.
    at_the_band = full((0, 0, 1, 0), (0.0, 0.0, 0.75, 0.0))
    assert signal(score(at_the_band, Mode.SWING, None)) is Signal.NEUTRAL
    assert score(full((0, -1, -1, 0), (0.0, 0.7, 0.6, 0.0)), Mode.SWING, None) == -0.4


def test_a_board_of_one() -> None:
    assert score(board(1, 0.5), Mode.SWING, None) == pytest.approx(0.2)
