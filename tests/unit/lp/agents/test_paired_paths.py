"""Worth, break-even and confidence against a Monte Carlo of its own: floats, no code of the rules, the seeds' words
alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.wire.debating import Table
from zuno.lp.agents.conclude import paired_shares
from zuno.lp.model.ballot import Candidate, CandidateKind, Verdict
from zuno.lp.model.debate import Context
from zuno.lp.rules.fee_cover import measure_elasticity
from zuno.lp.rules.worth import worth_token1

Seat = Callable[..., Table]
HOURS, PATHS, DAYS = 336, 1_000, 14
COIN = 0.004
"""Of the paths, what a tie in the last digit may change."""


@dataclass
class Walk:
    """A candidate on every path, in token1."""

    rate: float
    inside: NDArray[np.bool_]
    cost: float
    worth: float
    by_path: NDArray[np.float64]


def walked(context: Context, candidate: Candidate) -> Walk:
    scene = context.scenes[candidate.pool_index]
    pool, held = scene.pool, scene.position
    cost = float(candidate.carry.cost.total_token1 or 0)
    if candidate.range is None:
        still = np.zeros((HOURS, PATHS), dtype=bool)
        return Walk(0.0, still, cost, -cost, np.full(PATHS, -cost))
    past = np.array(scene.returns_nano[-720:])
    assert scene.cover is not None
    assert scene.cover.variance is not None
    past = np.round(past * math.sqrt(scene.cover.variance / 24 / (past / 1e9).var(ddof=1)))
    past = (past - round(past.mean())) / 1e9
    starts = (np.random.PCG64(0).random_raw(DAYS * PATHS) % np.uint64(len(past))).astype(int).reshape(DAYS, PATHS)
    steps = np.concatenate([past[(starts[day] + np.arange(24)[:, None]) % len(past)] for day in range(DAYS)])
    root = pool.sqrt_price_x96 / 2**96
    low, high = (
        tick * math.log(1.0001) - 2 * math.log(root) for tick in (candidate.range.lower, candidate.range.upper)
    )
    at = steps.cumsum(axis=0)
    inside = (at >= low) & (at < high)
    liquidity = candidate.deposit.liquidity
    assert scene.fees is not None
    per_unit = (scene.fees.growth0_x128 * root**2 + scene.fees.growth1_x128) / 2**128
    others = pool.liquidity - (held.liquidity if held and held.range.lower <= pool.tick < held.range.upper else 0)
    fees = per_unit * liquidity * pool.liquidity / (others + liquidity) / (scene.fees.seconds / 3600)
    rate = fees - scene.cover.variance / 24 / 4 * liquidity * root
    paid = (steps**2).reshape(DAYS, 24, PATHS).sum(axis=1) ** measure_elasticity(scene.cover.days)
    by_day = inside.reshape(DAYS, 24, PATHS).sum(axis=1) * paid / paid.mean()
    lost = (steps**2 * inside).sum(axis=0) / 4 * liquidity * root
    return Walk(rate, inside, cost, rate * inside.sum() / PATHS - cost, fees * by_day.sum(axis=0) - lost - cost)


def breakeven(move: Walk, hold: Walk) -> int | None:
    ours, theirs = (walk.rate * np.cumsum(walk.inside.sum(axis=1)) / PATHS for walk in (move, hold))
    ahead = np.flatnonzero(ours - move.cost >= theirs)
    return int(ahead[0]) + 1 if len(ahead) else None


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("world", ["calm", "rough", "wild", "drifted"])
async def test_every_figure_agrees(world: str, worlds: dict[str, Context], seat: Seat) -> None:
    context = worlds[world]
    last = (await seat(context).debate()).debate.rounds[-1]
    walks = [walked(context, candidate) for candidate in last.candidates]
    hold, capital = walks[0], float(last.candidates[0].capital_token1)
    for candidate, walk in zip(last.candidates, walks, strict=True):
        assert float(worth_token1(candidate) or 0) == pytest.approx(walk.worth, rel=1e-6, abs=capital * 1e-9)
        if candidate.kind is not CandidateKind.HOLD:
            assert candidate.carry.breakeven_hours == breakeven(walk, hold)
    for candidate, judgment in zip(last.candidates, last.judgments, strict=True):
        if judgment.verdict is Verdict.VETO:
            continue
        index, walk = candidate.index, walks[candidate.index]
        rivals = [at for at, other in enumerate(last.judgments) if at != index and other.verdict is not Verdict.VETO]
        best = max(rivals, key=lambda at: (walks[at].worth, -at))
        share, over = paired_shares(context, last, index)
        assert over is not None
        assert float(over) == pytest.approx((walk.by_path > walks[best].by_path).mean(), abs=COIN)
        if candidate.kind is CandidateKind.HOLD:
            least = max(walks[best].cost, 0.001 * capital)
            expected = (walks[best].by_path - walk.by_path <= least).mean()
        else:
            expected = (walk.by_path > hold.by_path).mean()
        assert share is not None
        assert float(share) == pytest.approx(expected, abs=COIN)
