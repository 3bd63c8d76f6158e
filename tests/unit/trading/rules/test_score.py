"""The board: stances, whose word counts how much, and what it comes to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.desk_bundles import AS_OF, bundle_of
from tests.wire.trades import board
from zuno.kernel.units import Millis
from zuno.trading.measure.features import Features, measure_features
from zuno.trading.measure.structure import Divergence, DivergenceSource, PriceDirection
from zuno.trading.measure.tape import SideHour, WhaleFlow
from zuno.trading.model.cycle import (
    Blackboard,
    Expert,
    GeometryEntry,
    KeyLevelsOpinion,
    LiquidityEntry,
    MacroEntry,
    MicrostructureEntry,
)
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import Mode, Side
from zuno.trading.rules.score import (
    DEAD_BAND,
    STANCES,
    board_entries,
    entry_stance,
    expert_weights,
    flow_stance,
    score_entries,
    signal_of_score,
)

SAID: dict[str, Any] = {"source": "model", "why": "", "rationale": "r"}
NOTHING: Any = dict.fromkeys(KeyLevelsOpinion.model_fields)


def full(stances: tuple[Any, Any, Any, Any], sure: tuple[float, float, float, float] = (1.0,) * 4) -> Blackboard:
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
        key_levels=KeyLevelsOpinion(**NOTHING),
        fibonacci_context="none",
        pattern="none",
        cvd_signal=None,
        funding_visual=None,
        stance=stance,
    )


def test_weights_follow_the_order_of_conviction() -> None:
    swing, position = expert_weights(Mode.SWING, None), expert_weights(Mode.POSITION, None)
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
    assert expert_weights(Mode.SWING, Expert.MACRO)[Expert.MACRO] == pytest.approx(0.3)
    assert expert_weights(Mode.SWING, Expert.MACRO)[Expert.LIQUIDITY] == 0.3


def score_board(board: Blackboard, mode: Mode, trusted: Expert | None) -> float:
    return score_entries(board_entries(board), mode, trusted).all


def test_a_score_by_hand() -> None:
    told = full((1, -1, 1, 0), (0.5, 0.25, 1.0, 1.0))
    assert score_board(told, Mode.SWING, None) == pytest.approx(0.3 * 0.5 - 0.4 * 0.25 + 0.2)
    assert score_board(told, Mode.SWING, Expert.MICROSTRUCTURE) == pytest.approx(0.15 - 0.15 + 0.2)
    assert score_board(told, Mode.POSITION, None) == pytest.approx(0.15 - 0.025 + 0.4)


def test_who_is_absent_weighs_nothing_and_lends_nothing() -> None:
    told = full((1, 1, 1, 1))
    without = told.model_copy(update={"microstructure": None})
    assert score_board(told, Mode.SWING, None) == pytest.approx(1.0)
    assert score_board(without, Mode.SWING, None) == pytest.approx(0.6)
    assert set(board_entries(without)) == set(Expert) - {Expert.MICROSTRUCTURE}
    assert (
        score_board(Blackboard(liquidity=None, microstructure=None, macro=None, vlm_geometry=None), Mode.SWING, None)
        == 0
    )


@pytest.mark.parametrize(
    ("given_", "named"),
    [
        (0.1501, "BULLISH"),
        (DEAD_BAND, "NEUTRAL"),
        (0.0, "NEUTRAL"),
        (-DEAD_BAND, "NEUTRAL"),
        (-0.1501, "BEARISH"),
    ],
)
def test_the_dead_band(given_: float, named: str) -> None:
    assert signal_of_score(given_) is named


@pytest.mark.parametrize(("word", "stance"), [("BULLISH", 1), ("UP", 1), ("NEUTRAL", 0), ("DOWN", -1), ("BEARISH", -1)])
def test_a_lean_is_a_stance(word: str, stance: int) -> None:
    assert STANCES[word] == stance


def test_stances_are_computed_and_not_believed() -> None:
    """Whatever stance an entry came with."""
    macro = MacroEntry(**SAID, anomaly="none", options_bias="BEARISH", confidence=1.0, stance=1)
    micro = MicrostructureEntry(**SAID, anomaly="none", directional_bias="DOWN", confidence=1.0, stance=1)
    flow = LiquidityEntry(**SAID, anomaly="liquidation_hunting", confidence=1.0, target_entry=None, stance=1)
    assert [entry_stance(one) for one in (macro, micro, geometry(1, 1.0, "BEARISH"))] == [-1, -1, -1]
    assert [entry_stance(flow, measured) for measured in (-1, 0, 1)] == [-1, 0, 1]


@given(
    st.tuples(*(st.integers(-1, 1),) * 4),
    st.tuples(*(st.floats(0, 1),) * 4),
    st.sampled_from(list(Mode)),
    st.sampled_from([None, *Expert]),
)
def test_a_score_is_bounded_and_odd(stances: Any, sure: Any, mode: Mode, trusted: Expert | None) -> None:
    told = score_board(full(stances, sure), mode, trusted)
    assert abs(told) <= sum(expert_weights(mode, trusted).values()) + 1e-12
    mirrored: Any = tuple(-one for one in stances)
    assert score_board(full(mirrored, sure), mode, trusted) == pytest.approx(-told)


def test_what_doubles_leave_over_decides_nothing() -> None:
    # 0.2 · 0.75 is a little more than 0.15 in doubles, and 0.4 · 0.7 + 0.2 · 0.6 a little less than 0.4.
    at_the_band = full((0, 0, 1, 0), (0.0, 0.0, 0.75, 0.0))
    assert signal_of_score(score_board(at_the_band, Mode.SWING, None)) == "NEUTRAL"
    assert score_board(full((0, -1, -1, 0), (0.0, 0.7, 0.6, 0.0)), Mode.SWING, None) == -0.4


def test_a_board_of_one() -> None:
    assert score_board(board(1, 0.5), Mode.SWING, None) == pytest.approx(0.2)


# -- which way an anomaly of the flow points

GONE = Missing("nobody heard")
CVD, RSI = DivergenceSource.CVD, DivergenceSource.RSI
Turn = tuple[DivergenceSource, PriceDirection, int]


@pytest.fixture(scope="module")
def measured() -> Features:
    found = measure_features(bundle_of())
    assert len(found.frames) == 3
    return found


def with_turns(measured: Features, *turns: tuple[Turn, ...] | None) -> Features:
    """The divergences of each timeframe, shortest first: gauge, way, and when it was known. None: no bars of it."""
    frames: list[Any] = []
    for (timeframe, frame), several in zip(measured.frames, turns, strict=True):
        assert not isinstance(frame, Missing)
        pivot = frame.structure.pivots[-1]
        found = tuple(
            Divergence(gauge, way, False, pivot, pivot, Millis(AS_OF + known)) for gauge, way, known in several or ()
        )
        structure = replace(frame.structure, divergences=found)
        frames.append((timeframe, GONE if several is None else replace(frame, structure=structure)))
    return replace(measured, frames=tuple(frames))


@pytest.mark.parametrize(
    ("turns", "stance"),
    [
        ((((CVD, PriceDirection.UP, -5),), (), ()), 1),
        ((((CVD, PriceDirection.DOWN, -5),), (), ()), -1),
        ((((CVD, PriceDirection.UP, -5), (CVD, PriceDirection.DOWN, -4)), (), ()), -1),
        ((((CVD, PriceDirection.UP, -4), (CVD, PriceDirection.DOWN, -5)), (), ()), 1),
        ((((CVD, PriceDirection.UP, -9),), ((CVD, PriceDirection.DOWN, -1),), ()), 1),
        (((), ((CVD, PriceDirection.DOWN, -1),), ((CVD, PriceDirection.UP, -1),)), -1),
        ((None, ((CVD, PriceDirection.UP, -1),), ()), 1),
        ((((RSI, PriceDirection.UP, -1),), (), ((CVD, PriceDirection.DOWN, -9),)), -1),
        ((((RSI, PriceDirection.UP, -1),), (), ()), 0),
        ((None, None, None), 0),
    ],
)
def test_a_divergence_points_where_the_newest_of_the_shortest_timeframe_does(
    measured: Features, turns: tuple[Any, ...], stance: int
) -> None:
    quiet = replace(with_turns(measured, *turns), whales_day=GONE)
    assert flow_stance("whale_cvd_divergence", quiet) == stance


def whales(bought: Known[float], sold: Known[float]) -> WhaleFlow:
    return WhaleFlow(bought, sold, 3, True)


@pytest.mark.parametrize(
    ("flow", "stance"),
    [
        (whales(2.0, 1.0), 1),
        (whales(1.0, 2.0), -1),
        (whales(1.0, 1.0), 0),
        (whales(GONE, 1.0), 0),
        (GONE, 0),
    ],
)
def test_without_a_divergence_it_points_where_large_takers_lean(
    measured: Features, flow: Known[WhaleFlow], stance: int
) -> None:
    plain = replace(with_turns(measured, (), (), ()), whales_day=flow)
    assert flow_stance("whale_cvd_divergence", plain) == stance
    up = replace(with_turns(measured, ((CVD, PriceDirection.UP, -1),), (), ()), whales_day=flow)
    assert flow_stance("whale_cvd_divergence", up) == 1, "a divergence comes first"


@pytest.mark.parametrize(
    ("longs", "shorts", "stance"),
    [(2.0, 1.0, 1), (1.0, 2.0, -1), (1.0, 1.0, 0), (1.0, None, 1), (None, 1.0, -1), (None, None, 0), (0.0, 0.0, 0)],
)
def test_a_hunt_points_against_the_side_that_was_hunted(
    measured: Features, longs: float | None, shorts: float | None, stance: int
) -> None:
    def hour(side: Side, usd: float | None) -> Known[SideHour]:
        return GONE if usd is None else SideHour(side, usd, "", True, GONE, 1)

    forced = replace(measured.forced, longs_hour=hour(Side.LONG, longs), shorts_hour=hour(Side.SHORT, shorts))
    assert flow_stance("liquidation_hunting", replace(measured, forced=forced)) == stance
    assert flow_stance("none", replace(measured, forced=forced, whales_day=whales(9.0, 1.0))) == 0
