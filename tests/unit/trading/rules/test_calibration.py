"""How far a judge is believed: the slope of what came out on what was claimed, by hand and over invented records."""

from __future__ import annotations

import random
from math import exp, log, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.kernel.units import Millis
from zuno.trading.model.cycle import JudgeKind, RegimeFamily
from zuno.trading.model.memory import Calibration, ClosedTrade, DeskRecord
from zuno.trading.rules.calibration import (
    NO_SLOPE,
    EdgeSlope,
    breakeven_win_rate,
    calibrate,
    clamp_edge,
    find_slope,
    score_exit,
)

RULES, MODEL = JudgeKind.RULES, JudgeKind.MODEL
RANGE, PANIC = RegimeFamily.RANGE, RegimeFamily.PANIC


def closed(exit_pct: float, edge: float = 0.1, **changed: object) -> ClosedTrade:
    plain = ClosedTrade(
        opened=0, closed=1, judge=RULES, family=RANGE, edge=edge, profit_pct=4.0, loss_pct=2.0, exit_pct=exit_pct
    )
    return plain.model_copy(update=changed)


def one_by_one(*trades: ClosedTrade) -> list[ClosedTrade]:
    """The same trades, each opened when the one before had closed."""
    return [trade.model_copy(update={"opened": place, "closed": place + 1}) for place, trade in enumerate(trades)]


def slope_of(*trades: ClosedTrade) -> EdgeSlope:
    return find_slope(DeskRecord(calibrations=calibrate(one_by_one(*trades))), RULES)


@pytest.mark.parametrize(
    ("exit_pct", "score"), [(4.0, 1.0), (-2.0, 0.0), (0.0, 1 / 3), (1.0, 0.5), (5.0, 1.0), (-9.0, 0.0)]
)
def test_every_end_has_a_score(exit_pct: float, score: float) -> None:
    assert score_exit(closed(exit_pct)) == pytest.approx(score)


def test_a_slope_by_hand() -> None:
    """Fair is 1/3. A win at +0.1, then a loss at +0.2: the older trade weighs w = 0.5^(1/150)."""
    w = exp(-log(2) / 150)
    found = slope_of(closed(4.0, 0.1), closed(-2.0, 0.2))
    squared = 0.01 * w + 0.04
    assert (found.n, found.weight) == (2, 0.0)
    assert found.beta == pytest.approx((0.1 * 2 / 3 * w - 0.2 / 3) / squared, abs=1e-9)
    came = (0.1 * 2 / 3 * w) ** 2 + (0.2 / 3) ** 2
    assert found.error == pytest.approx(sqrt(max((0.01 * w * w + 0.04) * 2 / 9, came)) / squared)


@pytest.mark.parametrize(
    ("n", "beta", "error", "weight"),
    [
        (10, 1.0, 0.5, 1 / 1.25 - 1.28 * sqrt(0.25 / 1.25)),
        (9, 1.0, 0.1, 0.0),
        (500, 1.0, 0.0, 1.0),
        (500, 2.0, 0.1, 1.0),
        (40, 1.0, 1.0, 0.0),
        (40, -1.0, 0.1, 0.0),
    ],
)
def test_a_weight_by_hand(n: int, beta: float, error: float, weight: float) -> None:
    """The posterior mean less 1.28 of its deviations, between 0 and 1; nothing before ten trades."""
    assert EdgeSlope(n, beta, error).weight == pytest.approx(weight)


def test_judges_are_kept_apart_and_families_pooled() -> None:
    trades = [closed(4.0), closed(4.0, judge=MODEL), closed(-2.0, family=PANIC), closed(4.0)]
    assert [(sums.judge, sums.family, sums.n) for sums in calibrate(trades)] == [(MODEL, None, 1), (RULES, None, 3)]
    families = calibrate(trades, families=True)
    assert [(sums.judge, sums.family, sums.n) for sums in families] == [
        (MODEL, RANGE, 1),
        (RULES, PANIC, 1),
        (RULES, RANGE, 2),
    ]
    assert find_slope(DeskRecord(calibrations=families), RULES) == NO_SLOPE, "as records of older editions are"
    assert "family" not in calibrate(trades)[0].model_dump()
    older = {"judge": "rules", "family": "range", "n": 3, "edgeGain": 0.1, "edgeSquared": 0.2, "edgeVariance": 0.3}
    assert Calibration.model_validate(older, strict=False).model_dump(mode="json") == older


def test_overlapping_trades_count_as_one() -> None:
    """Four times the same trade at once say no more than one of four times the size: the error is four times that of
    independent ones, where each came out beyond its fair rate."""
    apart = [closed(4.0, 0.1, opened=place, closed=place + 1) for place in range(40)]
    together = [closed(4.0, 0.1, opened=place // 4 * 4, closed=place // 4 * 4 + 4) for place in range(40)]
    alone, crowd = (find_slope(DeskRecord(calibrations=calibrate(trades)), RULES) for trades in (apart, together))
    assert crowd.beta == pytest.approx(alone.beta)
    assert alone.error is not None
    assert crowd.error == pytest.approx(2 * alone.error, rel=0.02)
    assert crowd.weight < alone.weight


def plain_sums(trades: list[ClosedTrade]) -> tuple[float, float, float]:
    """Two trades overlap where each opened before the other closed; one that ended at once lasted a millisecond."""
    weights = [0.5 ** (sum(other.closed > trade.closed for other in trades) / 150) for trade in trades]
    fairs = [trade.loss_pct / (trade.profit_pct + trade.loss_pct) for trade in trades]
    gains = [
        weight * trade.edge * (score_exit(trade) - fair)
        for weight, trade, fair in zip(weights, trades, fairs, strict=True)
    ]
    spans = [(trade.opened, max(trade.closed, trade.opened + 1)) for trade in trades]
    products = (
        one * other
        for one, (opened, end) in zip(gains, spans, strict=True)
        for other, (begun, over) in zip(gains, spans, strict=True)
        if opened < over and begun < end
    )
    alone = sum((w * trade.edge) ** 2 * f * (1 - f) for w, trade, f in zip(weights, trades, fairs, strict=True))
    squared = sum(weight * trade.edge**2 for weight, trade in zip(weights, trades, strict=True))
    return sum(gains), squared, max(alone, sum(products))


TRADES = st.builds(
    lambda opened, hold, edge, ratio, exit_pct: closed(
        exit_pct, edge, opened=Millis(opened), closed=Millis(opened + hold), profit_pct=2 * ratio
    ),
    st.integers(0, 60),
    st.integers(0, 8),
    st.floats(-0.2, 0.2),
    st.floats(1, 5),
    st.floats(-3, 6),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(TRADES, min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_sums_are_those_of_the_plain_formulas_in_any_order(
    trades: list[ClosedTrade], chance: random.Random
) -> None:
    (sums,) = calibrate(trades)
    assert (sums.edge_gain, sums.edge_squared, sums.edge_variance) == pytest.approx(
        plain_sums(trades), rel=1e-9, abs=1e-12
    )
    chance.shuffle(trades)
    assert calibrate(trades) == (sums,)


def test_who_claims_nothing_proves_nothing() -> None:
    found = slope_of(*[closed(4.0, 0.0)] * 100)
    assert (found.n, found.beta, found.weight) == (100, None, 0.0)


def test_losing_trades_do_not_make_a_judge_heavier() -> None:
    assert slope_of(*[closed(-2.0, 0.2)] * 500).weight == 0.0


def test_edges_are_capped_for_everybody() -> None:
    assert clamp_edge(0.9, 0.3) == 0.2
    assert clamp_edge(0.1, 0.5) == -0.2
    assert clamp_edge(0.4, 0.3) == pytest.approx(0.1)


# -- desks of invented trades


def open_share(
    seed: int, claim: float | None, skill: float, cluster: int, desks: int = 8, trades: int = 600, live_until: int = 600
) -> float:
    """How many of a desk's rulings open outside exploration. Claims are `claim`, or around 8 points; `skill` of them is
    real until that trade. Trades of a cluster overlap, with outcomes correlated by 0.7. The record is read every tenth
    ruling."""
    chance, normal, opened = np.random.default_rng(seed), NormalDist(), 0
    for _ in range(desks):
        record, weight = list[ClosedTrade](), 0.0
        for place in range(trades):
            if place % cluster == 0:
                shared = chance.normal()
            if place % 10 == 0:
                weight = find_slope(DeskRecord(calibrations=calibrate(record)), RULES).weight
            ratio, loss = chance.uniform(1, 4), chance.uniform(0.7, 2.2)
            fair = breakeven_win_rate(ratio, 1.0)
            edge = clamp_edge(chance.normal(0.08, 0.05), 0.0) if claim is None else claim
            opened += weight * edge * loss * (1 + ratio) > COSTS_PCT
            rank = sqrt(0.7) * shared + sqrt(0.3) * chance.normal() if cluster > 1 else chance.normal()
            real = skill if place < live_until else 0.0
            won = rank < normal.inv_cdf(min(0.99, max(0.01, fair + real * edge)))
            begun = Millis(place // cluster * 1_000)
            ended = Millis(begun + 100 + place % cluster)
            exit_pct = ratio * loss if won else -loss
            figures = {"profit_pct": ratio * loss, "loss_pct": loss, "opened": begun, "closed": ended}
            record.append(closed(exit_pct, edge, **figures))
    return opened / (desks * trades)


COSTS_PCT = 0.16


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_a_desk_without_an_edge_opens_next_to_nothing(cluster: int) -> None:
    assert open_share(5, None, 0.0, cluster) <= 0.02, "1 % over many desks"


@pytest.mark.soak
@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_many_desks_without_an_edge_open_at_most_one_ruling_in_a_hundred(cluster: int) -> None:
    assert open_share(5, None, 0.0, cluster, desks=120) <= 0.01


@pytest.mark.slow
def test_an_honest_edge_is_used_and_overlapping_trades_prove_less() -> None:
    alone, crowded = (open_share(7, 0.10, 1.0, cluster) for cluster in (1, 4))
    assert alone > 0.4
    assert 0.1 < crowded < alone
    assert open_share(7, 0.15, 1.0, 1) > 0.7


@pytest.mark.slow
def test_an_edge_that_dies_is_forgotten() -> None:
    """Of the 300 rulings after its end fewer are opened than half of those of an edge that lives on."""
    kept, lost = (open_share(11, 0.15, 1.0, 1, desks=4, live_until=until) for until in (600, 300))
    half = open_share(11, 0.15, 1.0, 1, desks=4, trades=300) / 2
    assert lost - half < 0.5 * (kept - half)


@pytest.mark.soak(every=5)
@pytest.mark.parametrize("count", [0, 20, 40, 100, 300])
def test_who_always_says_half_opens_next_to_nothing(count: int) -> None:
    """On markets without drift, whatever its record: at most 1 % of its rulings and what 600 can tell of that."""
    assert open_half(count, 200) <= 0.01 + 0.01


@pytest.mark.soak
@pytest.mark.parametrize("count", [40, 300, 2_000])
def test_who_always_says_half_opens_next_to_nothing_over_many_records(count: int) -> None:
    assert open_half(count, max(60, 60_000 // count)) <= 0.01 + 0.005


def open_half(count: int, rounds: int) -> float:
    """Share of rulings at targets near and far that open, after so many trades at rewards of 1 to 5 of a judge who says
    50 % in a market without drift."""
    chance, opened = np.random.default_rng(count), 0
    for _ in range(rounds):
        trades = []
        for ratio in chance.uniform(1, 5, count):
            fair = breakeven_win_rate(ratio, 1.0)
            won = chance.random() < fair
            trades.append(closed(ratio if won else -1.0, clamp_edge(0.5, fair), profit_pct=ratio, loss_pct=1.0))
        weight = slope_of(*trades).weight
        edges = {ratio: clamp_edge(0.5, breakeven_win_rate(ratio, 1.0)) for ratio in (1.5, 3.0, 5.0)}
        opened += sum(weight * edge * 1.5 * (1 + ratio) > COSTS_PCT for ratio, edge in edges.items())
    return opened / (3 * rounds)


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
