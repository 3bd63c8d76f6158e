"""Brier score, skill, calibration error and bins; and what an agent is held to have claimed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import told
from tests.wire.learning import minute, summary
from tests.wire.trades import board, decision
from zuno.trading.model.cycle import JudgeKind, Outcome, Regime
from zuno.trading.model.market import Side
from zuno.trading.model.memory import AgentClaim, CaseRecord, Verdict
from zuno.trading.model.trade_events import ExitReason
from zuno.trading.rules.calibration import (
    LEAST_OUTCOMES,
    Reliability,
    breakeven_win_rate,
    list_claims,
    measure_reliability,
    score_exit,
    to_closed_trade,
)
from zuno.trading.rules.score import board_entries


def case(claimed: float, came: float, fair: float = 0.5, regime: Regime = Regime.RANGE_BOUND) -> CaseRecord:
    claim = AgentClaim(role="judge", source=JudgeKind.MODEL, claimed=claimed, outcome=came, fair=fair)
    given: dict[str, Any] = {
        "id": "pm_1",
        "account": "here",
        "origin": "here",
        "symbol": "BTCUSDT",
        "side": "long",
        "mode": "swing",
        "judge": "model",
        "family": "range",
        "regime": regime,
        "opened": 1,
        "closed": 2,
        "reason": "stop",
        "decision": None,
        "bundle": None,
        "r": 0.0,
        "verdict": Verdict.FLAT,
        "fees": 0.0,
        "funding": 0.0,
        "claims": (claim,),
    }
    return CaseRecord.model_validate(given)


def measured(*cases: CaseRecord) -> Reliability:
    found = measure_reliability((each.claims, each.regime) for each in cases)[0]
    assert found.regime == "all"
    return found


def test_the_textbook_scores() -> None:
    """Four claims of 0.8 of which three came: Brier 0.19, against 0.25 by the fair rate; 0.05 too sure."""
    found = measured(*(case(0.8, came) for came in (1, 1, 1, 0)))
    assert (found.n, found.brier) == (4, pytest.approx(0.19))
    assert found.skill == pytest.approx(1 - 0.19 / 0.25)
    assert found.ece == pytest.approx(0.05)
    (only,) = found.bins
    assert (only.low, only.high, only.n, only.claimed, only.came) == (0.8, 0.9, 4, pytest.approx(0.8), 0.75)
    assert not found.enough


def test_a_trade_that_ended_between_its_levels_counts_in_part() -> None:
    assert measured(case(0.5, 0.25)).brier == pytest.approx(0.0625)


def test_regimes_are_told_apart_and_together() -> None:
    cases = [case(0.6, 1), case(0.6, 0, regime=Regime.BULL_MOMENTUM)]
    rows = measure_reliability((each.claims, each.regime) for each in cases)
    assert [(row.regime, row.n) for row in rows] == [("all", 2), ("BULL_MOMENTUM", 1), ("RANGE_BOUND", 1)]


@given(
    st.lists(st.tuples(st.integers(0, 100), st.sampled_from([0.0, 0.4, 1.0])), min_size=1, max_size=60), st.randoms()
)
def test_scores_are_bounded_and_do_not_hang_on_the_order(rows: list[tuple[int, float]], chance: Any) -> None:
    cases = [case(claimed / 100, came) for claimed, came in rows]
    found = measured(*cases)
    shuffled = [*cases]
    chance.shuffle(shuffled)
    assert measured(*shuffled) == found
    assert 0 <= found.brier <= 1
    assert 0 <= found.ece <= 1
    assert sum(each.n for each in found.bins) == found.n == len(rows)
    assert all(each.low <= each.claimed <= each.high for each in found.bins)


def test_who_is_calibrated_has_no_error_and_who_says_the_fair_rate_has_no_skill() -> None:
    chance = np.random.default_rng(5)
    claims = chance.choice([0.3, 0.5, 0.7], 3_000)
    cases = [case(float(p), float(chance.random() < p), fair=0.5) for p in claims]
    found = measured(*cases)
    assert found.ece < 0.03
    assert found.skill is not None
    assert found.skill > 0.05
    assert measured(*(case(0.5, came) for came in (0, 1, 1))).skill == pytest.approx(0)
    assert found.enough
    assert LEAST_OUTCOMES == 50


@pytest.fixture(params=[1, -1])
def outcome(request: pytest.FixtureRequest) -> Outcome:
    return told.outcome(board=board(request.param), decision=decision())


def test_the_judge_is_scored_as_the_record_of_closed_trades_scores_it(outcome: Outcome) -> None:
    """One definition: y and f of a closed trade are those of `calibrate`."""
    late = summary(exit=Decimal(101), closed=minute(30), reason=ExitReason.HOLD_OVER)
    trade = to_closed_trade(late)
    assert trade is not None
    judged = list_claims(outcome, late)[0]
    assert judged.role == "judge"
    assert judged.source is JudgeKind.RULES
    assert judged.outcome == pytest.approx(score_exit(trade)) == pytest.approx(0.5)
    assert judged.fair == pytest.approx(breakeven_win_rate(trade.profit_pct, trade.loss_pct)) == pytest.approx(1 / 3)
    assert judged.claimed == outcome.decision.win_probability_pct / 100
    assert not list_claims(outcome, summary(reason=ExitReason.UNDONE))
    assert not list_claims(outcome, summary(edge=None))


def test_an_expert_claims_that_the_price_goes_its_way(outcome: Outcome) -> None:
    leaning = {expert.value: entry for expert, entry in board_entries(outcome.board).items() if entry.stance}
    won = {claim.role: claim for claim in list_claims(outcome, summary(exit=Decimal(102)))[1:]}
    assert set(won) == set(leaning) == {"microstructure"}
    for role, claim in won.items():
        same = leaning[role].stance > 0
        assert claim.claimed == pytest.approx((1 + leaning[role].confidence) / 2)
        assert claim.outcome == (1 if same else 0)
        assert claim.fair == pytest.approx(1 / 3 if same else 2 / 3)
    short = summary(side=Side.SHORT, stop=Decimal(102), target=Decimal(96), exit=Decimal(98))
    for claim in list_claims(outcome, short)[1:]:
        assert claim.outcome == (0 if leaning[claim.role].stance > 0 else 1)
