"""How far a judge is believed: the slope of what came out on what was claimed, by hand and over invented records."""

from __future__ import annotations

import numpy as np
import pytest

from zuno.trading.model.cycle import JudgeKind, RegimeFamily
from zuno.trading.model.memory import ClosedTrade, DeskRecord
from zuno.trading.rules.calibration import EdgeSlope, breakeven_win_rate, calibrate, clamp_edge, find_slope, score_exit

RULES, MODEL = JudgeKind.RULES, JudgeKind.MODEL
RANGE, PANIC = RegimeFamily.RANGE, RegimeFamily.PANIC


def closed(exit_pct: float, edge: float = 0.1, **changed: object) -> ClosedTrade:
    plain = ClosedTrade(closed=1, judge=RULES, family=RANGE, edge=edge, profit_pct=4.0, loss_pct=2.0, exit_pct=exit_pct)
    return plain.model_copy(update=changed)


def slope_of(*trades: ClosedTrade) -> EdgeSlope:
    return find_slope(DeskRecord(calibrations=calibrate(trades)), RULES, RANGE)


@pytest.mark.parametrize(
    ("exit_pct", "score"), [(4.0, 1.0), (-2.0, 0.0), (0.0, 1 / 3), (1.0, 0.5), (5.0, 1.0), (-9.0, 0.0)]
)
def test_every_end_has_a_score(exit_pct: float, score: float) -> None:
    assert score_exit(closed(exit_pct)) == pytest.approx(score)


def test_a_slope_by_hand() -> None:
    """Fair is 1/3. A win at +0.1 and a loss at +0.2: Σe(y−f) = 0.1·2/3 − 0.2/3 = 0, Σe² = 0.05."""
    found = slope_of(closed(4.0, 0.1), closed(-2.0, 0.2))
    assert (found.n, found.beta, found.weight) == (2, pytest.approx(0.0, abs=1e-12), 0.0)
    assert found.error == pytest.approx((0.05 * 2 / 9) ** 0.5 / 0.05)
    many = slope_of(*[closed(4.0, 0.2)] * 400)
    assert many.beta == pytest.approx((2 / 3) / 0.2)
    assert many.weight == pytest.approx(400 / 440)


def test_groups_are_kept_apart() -> None:
    sums = calibrate([closed(4.0), closed(4.0, judge=MODEL), closed(-2.0, family=PANIC), closed(4.0)])
    assert [(one.judge, one.family, one.n) for one in sums] == [(MODEL, RANGE, 1), (RULES, PANIC, 1), (RULES, RANGE, 2)]
    record = DeskRecord(calibrations=sums)
    assert find_slope(record, MODEL, PANIC) == EdgeSlope(0, None, None)


def test_who_claims_nothing_proves_nothing() -> None:
    found = slope_of(*[closed(4.0, 0.0)] * 100)
    assert (found.n, found.beta, found.weight) == (100, None, 0.0)


def test_losing_trades_do_not_make_a_judge_heavier() -> None:
    assert slope_of(*[closed(-2.0, 0.2)] * 500).weight == 0.0


def test_edges_are_capped_for_everybody() -> None:
    assert clamp_edge(0.9, 0.3) == 0.2
    assert clamp_edge(0.1, 0.5) == -0.2
    assert clamp_edge(0.4, 0.3) == pytest.approx(0.1)


def record_of(chance: np.random.Generator, count: int, edge: float | None, skill: float) -> EdgeSlope:
    """So many trades at rewards of 1 to 5, by a judge who says 50 % (`edge` None) or claims that edge, of which `skill`
    is real; without skill the market has no drift and the mean score is the fair rate."""
    trades = []
    for ratio in chance.uniform(1, 5, count):
        fair = breakeven_win_rate(ratio, 1.0)
        claimed = clamp_edge(0.5, fair) if edge is None else edge
        won = chance.random() < fair + skill * claimed
        trades.append(closed(ratio if won else -1.0, claimed, profit_pct=ratio, loss_pct=1.0))
    return slope_of(*trades)


def opens(slope: EdgeSlope, edge: float, ratio: float, costs: float = 0.1, risk: float = 1.5) -> bool:
    return slope.weight * edge * risk * (1 + ratio) * 0.95 > costs


@pytest.mark.soak(every=5)
@pytest.mark.parametrize("count", [0, 20, 40, 100, 300])
def test_who_always_says_half_opens_next_to_nothing(count: int) -> None:
    """On markets without drift, whatever its record: at most 3 % of its rulings, at targets near and far."""
    chance = np.random.default_rng(count)
    opened = 0
    for _ in range(200):
        slope = record_of(chance, count, None, 0.0)
        opened += sum(opens(slope, clamp_edge(0.5, breakeven_win_rate(ratio, 1.0)), ratio) for ratio in (1.5, 3.0, 5.0))
    assert opened <= 0.03 * 600


@pytest.mark.soak
@pytest.mark.parametrize("count", [40, 300, 2_000])
def test_who_always_says_half_opens_next_to_nothing_over_many_records(count: int) -> None:
    chance = np.random.default_rng(count)
    opened, rounds = 0, max(60, 60_000 // count)
    for _ in range(rounds):
        slope = record_of(chance, count, None, 0.0)
        opened += sum(opens(slope, clamp_edge(0.5, breakeven_win_rate(ratio, 1.0)), ratio) for ratio in (1.5, 3.0, 5.0))
    assert opened <= 0.03 * 3 * rounds


@pytest.mark.soak
@pytest.mark.parametrize(("count", "edge"), [(100, 0.12), (300, 0.10)])
def test_a_calibrated_judge_opens_most_of_its_trades(count: int, edge: float) -> None:
    """Of a Judge whose ten or twelve points are real: 64 to 89 % of its rulings, within what 300 records can tell."""
    chance = np.random.default_rng(count)
    opened = sum(opens(record_of(chance, count, edge, 1.0), edge, 2.0) for _ in range(300))
    assert 0.64 - 0.08 <= opened / 300 <= 0.89 + 0.08


# -- the score of a trade at its fair rate, over paths without drift


def realised(chance: np.random.Generator, paths: int, profit: float, loss: float, hold: int) -> tuple[float, float]:
    """Mean exit in per cent, and mean score, of trades over price paths without drift: at the target, at the stop, or
    where the price stands when the hold is over. Steps land on the bounds, so that nothing is jumped over."""
    step = 0.25
    up, down = round(profit / step), -round(loss / step)
    at = np.zeros(paths, dtype=np.int64)
    going = np.arange(paths)
    for _ in range(hold):
        at[going] += chance.integers(0, 2, len(going)) * 2 - 1
        going = going[(at[going] < up) & (at[going] > down)]
        if not len(going):
            break
    exits = at * step
    scores = np.clip((exits + loss) / (profit + loss), 0, 1)
    return float(exits.mean()), float(scores.mean())


@pytest.mark.parametrize(("profit", "loss", "hold"), [(4.0, 2.0, 60), (9.0, 2.0, 150), (2.0, 2.0, 20)])
def test_the_mean_score_without_drift_is_the_fair_rate(profit: float, loss: float, hold: int) -> None:
    """Time exits included; of the resolved ones alone it would not be."""
    exit_pct, score = realised(np.random.default_rng(7), 20_000, profit, loss, hold)
    assert score == pytest.approx(breakeven_win_rate(profit, loss), abs=0.01)
    assert exit_pct == pytest.approx(0.0, abs=0.06)


@pytest.mark.soak
@pytest.mark.parametrize(("profit", "loss", "hold"), [(4.0, 2.0, 60), (9.0, 2.0, 150), (2.0, 2.0, 20), (5.0, 1.0, 400)])
def test_what_trades_at_the_fair_rate_realise_is_nothing(profit: float, loss: float, hold: int) -> None:
    exit_pct, score = realised(np.random.default_rng(11), 400_000, profit, loss, hold)
    assert exit_pct == pytest.approx(0.0, abs=0.02)
    assert score == pytest.approx(breakeven_win_rate(profit, loss), abs=0.003)
