"""Whole ballots from one scene: indices, figures that hang together, and a debate without a model from end to end."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.amm.integers import Q128
from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import Block, LpPosition, PoolKey, PoolState, Range
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.text import NATIVE, Token
from zuno.kernel.units import Address, Amount, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick, Wei
from zuno.lp.model.ballot import (
    Candidate,
    CandidateKind,
    Deposit,
    Fault,
    HedgeTerms,
    Overall,
    PlanVerdict,
    RiskProfile,
    Verdict,
)
from zuno.lp.model.cover import FeeCover
from zuno.lp.model.debate import FeeWindow, Round
from zuno.lp.model.market import GasQuote
from zuno.lp.model.plan import StepKind
from zuno.lp.rules.ballot import critic_decides, judge_all, judge_proposal
from zuno.lp.rules.candidates import PoolInputs, create_ballot, create_grid, rebalance_ballot, rebalance_grid
from zuno.lp.rules.carry import native_token1_in_pool
from zuno.lp.rules.fee_yield import WEEK
from zuno.lp.rules.hedging import follow_range
from zuno.lp.rules.limits import LIMITS
from zuno.lp.rules.ranges import DETERMINISTIC_SHAPES, judged_moves, propose, revise
from zuno.lp.rules.stress import PATHS, StressPaths, barriers, draw_paths, time_in_range
from zuno.lp.rules.worth import path_worths, worth_of_capital, worth_token1

ETH = Token(NATIVE, "ETH", 18, True)
USDC = Token(Address("0x" + "11" * 20), "USDC", 6, True)
WBTC = Token(Address("0x" + "22" * 20), "WBTC", 8, True)
TICK = -201_007
POOL = PoolState(
    id=HexId("0x" + "ab" * 32),
    key=PoolKey(ETH.address, USDC.address, Pips(3000), 60),
    token0=ETH,
    token1=USDC,
    sqrt_price_x96=SqrtPriceX96(sqrt_price_at_tick(TICK)),
    tick=Tick(TICK),
    protocol_fee=0,
    lp_fee=Pips(3000),
    liquidity=Liquidity(10**18),
    fee_growth_global0_x128=0,
    fee_growth_global1_x128=0,
    block=Block(1, HexId("0x" + "cd" * 32), Seconds(1_700_000_000)),
)
KIND = CandidateKind


@lru_cache(maxsize=1)
def paths() -> StressPaths:
    heads = np.random.PCG64(3).random_raw(720) % np.uint64(2)
    return draw_paths([(2 * int(head) - 1) * 0.0463 / math.sqrt(24) for head in heads])


def position(lower: int, upper: int, liquidity: int = 10**16) -> LpPosition:
    edges = (sqrt_price_at_tick(lower), sqrt_price_at_tick(upper))
    amount0, amount1 = amounts_for_liquidity(POOL.sqrt_price_x96, *edges, liquidity, round_up=False)
    return LpPosition(
        7,
        "sim",
        NATIVE,
        POOL,
        Range(Tick(lower), Tick(upper)),
        Liquidity(liquidity),
        Amount(amount0),
        Amount(amount1),
        Amount(10**15),
        Amount(2 * 10**6),
    )


def scene(held: LpPosition | None = None, **known: object) -> PoolInputs:
    full = PoolInputs(
        pool=POOL,
        position=held,
        paths=paths(),
        # 40 bps a day on in-range liquidity: above what the variance of 463 bps a day costs.
        fees=FeeWindow(0, round(0.004 * 7 * Q128 * math.sqrt(POOL.price)), WEEK, "7 d of samples"),
        variance_24h=0.0463**2,
        gas=GasQuote(Wei(10**8), Wei(10**7)),
        native_token1=native_token1_in_pool(POOL, 0),
    )
    return replace(full, **known)  # type: ignore[arg-type]


def deterministic(at: PoolInputs) -> tuple[Candidate, ...]:
    return rebalance_ballot(at, propose([rebalance_grid(at)], DETERMINISTIC_SHAPES, set()))


def test_hold_is_0_close_is_1_and_the_moves_follow() -> None:
    ballot = deterministic(scene(position(-201_600, -200_400)))
    assert [(one.index, one.kind) for one in ballot] == [
        (0, KIND.HOLD),
        (1, KIND.CLOSE),
        (2, KIND.WIDEN),
        (3, KIND.TIGHTEN),
        (4, KIND.SHIFT),
    ]
    hold, close = ballot[:2]
    assert (hold.range, close.range, close.stress) == (Range(Tick(-201_600), Tick(-200_400)), None, None)
    assert (close.deposit.left0, close.deposit.left1) == scene(position(-201_600, -200_400)).have


def test_costs_are_those_of_the_steps() -> None:
    ballot = deterministic(scene(position(-201_600, -200_400)))
    hold, close, *moves = ballot
    assert (hold.carry.cost.steps, hold.carry.cost.total_token1, hold.carry.breakeven_hours) == ((), 0, None)
    assert close.carry.cost.steps == (StepKind.BURN,)
    for move in moves:
        swapped = move.deposit.prep is not None
        assert move.carry.cost.steps[-1] is (StepKind.SWAP_AND_MINT if swapped else StepKind.BURN_AND_MINT)
        approvals = move.carry.cost.steps.count(StepKind.APPROVE_PERMIT2)
        assert approvals == (1 if swapped else 0), "ether needs no approval"
        # 0.11 gwei at 1,867 USDC: half a million gas units are ten cents.
        assert move.carry.cost.gas_token1 == pytest.approx(move.carry.cost.gas_units * 0.11 * 1866e-3, rel=0.01)


def test_a_wider_range_earns_less_and_lasts_longer() -> None:
    _, _, wide, tight, same = deterministic(scene(position(-201_600, -200_400)))
    for one, other in [(wide, same), (same, tight)]:
        assert one.stress is not None
        assert other.stress is not None
        assert one.stress.x1.median_hours > other.stress.x1.median_hours
        assert (one.carry.fees24h_token1 or 0) < (other.carry.fees24h_token1 or 0)
        assert (one.carry.lvr24h_token1 or 0) < (other.carry.lvr24h_token1 or 0)


def test_what_is_held_in_range_is_not_diluted_and_what_is_not_is() -> None:
    inside, outside = scene(position(-201_600, -200_400)), scene(position(-200_940, -199_740))
    hold = rebalance_ballot(inside, [])[0]
    assert hold.stress is not None
    share = hold.stress.x1.in_range_share_24h
    per_unit = Fraction(inside.fees.growth1_x128, 7 * Q128) if inside.fees else Fraction(0)
    assert hold.carry.fees24h_token1 == per_unit * 10**16 * share
    away = rebalance_ballot(outside, [])[0]
    assert away.stress is not None
    assert not away.in_range
    diluted = Fraction(10**18, 10**18 + 10**16)
    assert away.carry.fees24h_token1 == per_unit * 10**16 * diluted * away.stress.x1.in_range_share_24h


def test_breakeven_is_against_holding() -> None:
    ballot = deterministic(scene(position(-201_000, -199_800)))
    for move in ballot[2:]:
        hours, stress = move.carry.breakeven_hours, move.stress
        assert stress is not None
        assert hours is not None
        assert hours < stress.x1.median_hours, "out of range, whatever earns is soon ahead"
    assert rebalance_ballot(scene(position(-201_600, -200_400)), [])[1].carry.breakeven_hours is None, "hold earns"


@pytest.mark.parametrize(
    ("missing", "fees", "lvr", "cost"),
    [
        ({"fees": None}, False, True, True),
        ({"variance_24h": None}, True, False, True),
        ({"gas": None}, True, True, False),
        ({"native_token1": None}, True, True, False),
        ({"paths": None}, False, False, True),
    ],
)
def test_each_unknown_stays_where_it_belongs(missing: dict[str, None], fees: bool, lvr: bool, cost: bool) -> None:
    move = deterministic(scene(position(-201_600, -200_400), **missing))[2]
    assert (move.carry.fees24h_token1 is not None) is fees
    assert (move.carry.lvr24h_token1 is not None) is lvr
    assert (move.carry.cost.total_token1 is not None) is cost
    assert (move.carry.net24h_token1 is not None) is (fees and lvr)
    close = deterministic(scene(position(-201_600, -200_400), **missing))[1]
    assert close.carry.net24h_token1 == 0, "what is taken home earns nothing, that is known"


def test_without_prices_no_move_survives() -> None:
    ballot = deterministic(scene(position(-201_600, -200_400), paths=None))
    judgments = judge_all(ballot, RiskProfile.AGGRESSIVE)
    assert judge_proposal(Round(candidates=ballot, mechanical=judgments, judgments=judgments)) is Overall.VETO_ALL
    assert {judgment.fault for judgment in judgments[2:]} == {Fault.UNKNOWN}


@pytest.mark.parametrize("profile", list(RiskProfile))
def test_one_sided_capital_opens_a_position_that_clears_the_profile(profile: RiskProfile) -> None:
    at = scene(capital0=10**18, cover=FeeCover(1.5, 1.4, 1.6, 14, 0.05))
    grid = create_grid(at, profile)
    assert grid is not None
    assert grid.capital_is_token0
    ballot = create_ballot([at], propose([grid], DETERMINISTIC_SHAPES, set()))
    assert [(one.index, one.kind) for one in ballot] == [(0, KIND.HOLD), *((n, KIND.OPEN) for n in (1, 2, 3))]
    judgments = judge_all(ballot, profile)
    assert [judgment.verdict for judgment in judgments[:2]] == [Verdict.ACCEPT, Verdict.ACCEPT]
    assert judgments[3].verdict is Verdict.ACCEPT, "1.0× has half a floor to spare"
    assert judgments[2].verdict is not Verdict.ACCEPT, "0.65× lasts less than half as long"
    for one in ballot[1:]:
        assert one.deposit.prep is not None
        assert one.deposit.prep.zero_for_one
        assert one.carry.cost.steps == (StepKind.SWAP_AND_MINT,)
    assert ballot[0].carry.cost.total_token1 == 0 == ballot[0].carry.net24h_token1
    assert (ballot[0].deposit.left0, ballot[0].deposit.left1) == (10**18, 0)


def test_to_open_nothing_deposits_nothing_and_earns_nothing() -> None:
    hold = create_ballot([scene(capital0=10**18, capital1=5)], [])[0]
    assert hold.deposit == Deposit(0, 0, 0, 10**18, 5)
    assert (hold.carry.fees24h_token1, hold.carry.lvr24h_token1) == (0, 0)


def test_a_rebalance_needs_a_position() -> None:
    for build in (rebalance_grid, lambda at: rebalance_ballot(at, [])):
        with pytest.raises(ValueError, match="position"):
            build(scene(capital0=10**18))


def test_where_no_range_lasts_nothing_can_be_opened() -> None:
    """Each hour takes the price further than any range reaches."""
    wild = draw_paths([100.0 * (-1) ** hour for hour in range(720)])
    assert create_grid(scene(capital0=10**18, paths=wild), RiskProfile.AGGRESSIVE) is None


def test_two_tokens_are_not_swapped() -> None:
    at = scene(capital0=10**18, capital1=100 * 10**6)
    grid = create_grid(at, RiskProfile.BALANCED)
    assert grid is not None
    opened = create_ballot([at], propose([grid], DETERMINISTIC_SHAPES, set()))[1]
    prep = opened.deposit.prep
    assert prep is not None
    assert prep.amount_in * 5_000 < opened.deposit.amount0, "no more than holds the price"
    assert opened.deposit.left0 > 0
    assert opened.carry.cost.steps == (StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE, StepKind.SWAP_AND_MINT)


def test_capital_in_token1_is_seen_as_such() -> None:
    grid = create_grid(scene(capital0=10**15, capital1=10**10), RiskProfile.BALANCED)
    assert grid is not None
    assert not grid.capital_is_token0
    assert create_grid(scene(capital0=1, paths=None), RiskProfile.BALANCED) is None


def test_pool_index_names_the_scene() -> None:
    other = replace(POOL, token0=WBTC, liquidity=Liquidity(10**15))
    scenes = [scene(capital0=10**18), scene(capital0=10**8, pool=other)]
    grids = [create_grid(one, RiskProfile.BALANCED) for one in scenes]
    known = [grid for grid in grids if grid is not None]
    shapes = [replace(shape, pool_index=1) for shape in DETERMINISTIC_SHAPES]
    ballot = create_ballot(scenes, propose(known, shapes, set()))
    assert {one.pool_index for one in ballot[1:]} == {1}
    assert ballot[1].capital_token1 == scenes[1].capital_token1
    assert StepKind.APPROVE_PERMIT2 in ballot[1].carry.cost.steps, "wrapped bitcoin is let go of by approval"


def test_a_native_price_from_the_pool() -> None:
    assert native_token1_in_pool(POOL, 0) == POOL.price
    assert native_token1_in_pool(POOL, 1) == 1
    assert native_token1_in_pool(POOL, None) is None


def debate(at: PoolInputs, profile: RiskProfile, allowed: int = 2) -> tuple[list[tuple[Candidate, ...]], list[Overall]]:
    """The deterministic argument: propose, judge, revise until accepted or out of rounds."""
    grid = rebalance_grid(at)
    moves, tried = propose([grid], DETERMINISTIC_SHAPES, set()), set[tuple[int, int, int]]()
    ballots, words = list[tuple[Candidate, ...]](), list[Overall]()
    for _ in range(allowed + 1):
        tried |= {move.key for move in moves}
        ballot = rebalance_ballot(at, moves)
        judgments = judge_all(ballot, profile)
        ballots.append(ballot)
        words.append(judge_proposal(Round(candidates=ballot, mechanical=judgments, judgments=judgments)))
        if words[-1] is Overall.ACCEPT:
            break
        moves = revise([grid], judged_moves(ballot, judgments), [at.paths], LIMITS[profile], tried)
    return ballots, words


@pytest.mark.parametrize("profile", list(RiskProfile))
def test_thin_moves_are_revised_into_one_that_is_accepted(profile: RiskProfile) -> None:
    ballots, words = debate(scene(position(-201_120, -200_880)), profile)
    assert words == [Overall.VETO_ALL, Overall.ACCEPT]
    # Thin ranges about centres a spacing apart come back as one range or as two.
    assert {one.kind for one in ballots[1][2:]} == {KIND.WIDEN}


def test_moves_too_dear_come_back_as_hold() -> None:
    dear = scene(position(-202_200, -199_800), gas=GasQuote(Wei(10**13), Wei(0)))
    ballots, words = debate(dear, RiskProfile.BALANCED)
    assert {judgment.fault for judgment in judge_all(ballots[0], RiskProfile.BALANCED)[2:4]} >= {Fault.DEAR}
    assert words[-1] is Overall.ACCEPT
    assert [one.kind for one in ballots[-1]] == [KIND.HOLD, KIND.CLOSE]
    judgments = judge_all(ballots[-1], RiskProfile.BALANCED)
    last = Round(candidates=ballots[-1], mechanical=judgments, judgments=judgments)
    decision = critic_decides(last, RiskProfile.BALANCED)
    assert (decision.index, decision.verdict) == (0, PlanVerdict.APPROVE)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(
    st.integers(-30, 30),
    st.integers(1, 120),
    st.sampled_from(list(RiskProfile)),
    st.integers(10**6, 10**19),
    st.integers(10**6, 10**13),
)
def test_any_position_ends_in_a_valid_ballot(
    offset: int, spacings: int, profile: RiskProfile, liquidity: int, gas: int
) -> None:
    lower = (TICK // 60 + offset - spacings // 2) * 60
    held = position(lower, lower + 60 * spacings, min(liquidity, 10**17))
    ballots, words = debate(scene(held, gas=GasQuote(Wei(gas), Wei(0))), profile)
    assert len(ballots) <= 3
    seen: set[Range] = set()
    for ballot in ballots:
        assert [one.index for one in ballot] == list(range(len(ballot)))
        ranges = {one.range for one in ballot[2:] if one.range}
        assert len(ranges) == len(ballot) - 2
        assert not ranges & seen, "never the same range again"
        assert held.range not in ranges
        seen |= ranges
    if words[-1] is Overall.ACCEPT:
        judgments = judge_all(ballots[-1], profile)
        decision = critic_decides(Round(candidates=ballots[-1], mechanical=judgments, judgments=judgments), profile)
        assert judgments[decision.index].verdict is Verdict.ACCEPT


def test_the_same_scene_gives_the_same_ballot() -> None:
    at = scene(position(-201_600, -200_400))
    assert deterministic(at) == deterministic(at)


TERMS = HedgeTerms("ETHUSDT", 0, Fraction(9, 10_000), Fraction(5, 100) / 8_760, "a test")


def test_a_hedged_move_is_worth_its_funding_less_its_re_sets_and_costs_its_beginning() -> None:
    held = position(TICK - 900, TICK + 900)
    plain, hedged = (deterministic(scene(held, hedge=terms)) for terms in (None, TERMS))
    assert [each.hedge is None for each in hedged] == [True, True, *[False] * len(hedged[2:])]
    for before, after in zip(plain[2:], hedged[2:], strict=True):
        hedge = after.hedge
        assert hedge is not None
        was, now = worth_token1(before), worth_token1(after)
        assert was is not None
        assert now == was + hedge.funding_token1 - hedge.resets_token1 - hedge.begin_token1
        assert after.carry.cost.total_token1 == (before.carry.cost.total_token1 or 0) + hedge.begin_token1
        assert hedge.amount == after.deposit.amount0 <= hedge.most
        assert hedge.funding_token1 > 0 < hedge.resets_token1


def test_funding_that_turns_is_paid() -> None:
    held = position(TICK - 900, TICK + 900)
    turned = replace(TERMS, funding_hour=-TERMS.funding_hour)
    for paid, received in zip(
        deterministic(scene(held, hedge=turned))[2:], deterministic(scene(held, hedge=TERMS))[2:], strict=True
    ):
        assert paid.hedge is not None
        assert received.hedge is not None
        assert paid.hedge.funding_token1 == -received.hedge.funding_token1 < 0
        assert worth_of_capital(paid) < worth_of_capital(received)  # type: ignore[operator]


def test_what_is_hedged_already_is_held_so_and_ends_with_the_position() -> None:
    held = position(TICK - 900, TICK + 900)
    short = replace(TERMS, held=held.amount0)
    hold, close, *moves = deterministic(scene(held, hedge=short))
    assert hold.hedge is not None
    assert hold.hedge.begin_token1 == 0
    assert close.hedge is None
    assert close.carry.cost.hedge_token1 == TERMS.cost * held.amount0 * POOL.price
    fresh = deterministic(scene(held, hedge=TERMS))
    assert all(
        then.hedge.begin_token1 < now.hedge.begin_token1  # type: ignore[union-attr]
        for then, now in zip(moves, fresh[2:], strict=True)
    )


def test_path_by_path_a_hedge_comes_to_its_mean() -> None:
    at = scene(position(TICK - 900, TICK + 900), hedge=TERMS)
    move = deterministic(at)[2]
    assert move.range is not None
    assert at.paths is not None
    edges = barriers(move.range, POOL.sqrt_price_x96, POOL.tick)
    time, followed = time_in_range(at.paths, edges), follow_range(at.paths, edges, 0)
    whole, alone = path_worths(move, time, POOL.sqrt_price_x96, followed), path_worths(move, time, POOL.sqrt_price_x96)
    assert whole is not None
    assert alone is not None
    assert move.hedge is not None
    difference = Fraction(sum(whole[0]), whole[1]) - Fraction(sum(alone[0]), alone[1])
    assert difference / PATHS == move.hedge.net_token1 / move.capital_token1
