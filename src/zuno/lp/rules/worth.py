"""What a candidate is worth until the horizon, whether that is worth moving for, and on how many paths it is so.

    worth        (fees − LVR of an hour in range) × expected hours in range − cost
    edge         worth less hold's; a move wants at least max(its cost, 0.10 % of the capital)
    breakeven    the first hour t with rate × H(t) − cost ≥ hold's rate × H_hold(t), H(t) the mean hours in range by t

Path by path the fees are those of the path's own hours in range, more of them on days that move more, and the LVR is
that of its own squared returns there, at today's price: what the tokens themselves gain or lose is not counted. A hedge
adds its funding and its re-sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Final

from zuno.amm.integers import Q96
from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import LpPosition, quote_worth
from zuno.amm.ticks import tick_at_sqrt_price
from zuno.lp.model.ballot import Candidate, CandidateKind, Verdict
from zuno.lp.model.debate import Round
from zuno.lp.model.history import PositionEvent, PositionHistory
from zuno.lp.rules.hedging import HedgePaths
from zuno.lp.rules.stress import PATHS, PPM, SQUARE, TimeInRange

LEAST_EDGE: Final = Fraction(1, 1_000)
"""Of the capital, below which no move is worth it."""

PathWorths = tuple[Sequence[int], int]
"""Of each path a numerator, and the denominator of all."""


def worth_token1(candidate: Candidate) -> Fraction | None:
    """Until the horizon, in base units of token1; None when something is unknown."""
    cost = candidate.carry.cost.total_token1
    if candidate.range is None or cost is None:
        return None if cost is None else -cost
    rate, stress = candidate.carry.net_hour_token1, candidate.stress
    if stress is None or (rate is None and stress.expected_hours_in_range):
        return None
    hedged = 0 if candidate.hedge is None else candidate.hedge.net_token1
    return (rate or 0) * stress.expected_hours_in_range + hedged - cost


def worth_of_capital(candidate: Candidate) -> Fraction | None:
    """The same per unit of capital, so that candidates of different pools compare."""
    worth = worth_token1(candidate)
    return worth if worth is None or candidate.capital_token1 == 0 else worth / candidate.capital_token1


def edge_over_hold(candidate: Candidate, hold: Candidate) -> Fraction | None:
    """What it is worth more than holding, in its own token1: holding earns in the same pool, or nothing at all."""
    worth, held = worth_token1(candidate), worth_token1(hold)
    return None if worth is None or held is None else worth - held


def least_edge(candidate: Candidate) -> Fraction | None:
    cost = candidate.carry.cost.total_token1
    return None if cost is None else max(cost, candidate.capital_token1 * LEAST_EDGE)


def is_worth_moving(candidate: Candidate, hold: Candidate) -> bool:
    """The edge is large enough and the cost earned back within half of the 1× buffer; close has no buffer."""
    edge, least = edge_over_hold(candidate, hold), least_edge(candidate)
    if edge is None or least is None or edge < least:
        return False
    if candidate.kind is CandidateKind.CLOSE:
        return True
    hours, stress = candidate.carry.breakeven_hours, candidate.stress
    return hours is not None and stress is not None and 2 * hours < stress.x1.median_hours


OPEN_DAYS: Final = 14
CLOSE_DAYS: Final = 7
"""Of fees and LVR that must be known before a position is opened, or closed because its pool does not pay."""


def pays_to_open(candidate: Candidate) -> bool:
    """At the lower end of its pool's fee cover it is still worth its cost once more, and 0.10 % of the capital."""
    cover, fees, stress = candidate.cover, candidate.carry.fees_hour_token1, candidate.stress
    worth, least = worth_token1(candidate), least_edge(candidate)
    if cover is None or fees is None or stress is None or worth is None or least is None:
        return False
    in_doubt = fees * (1 - Fraction(cover.low) / Fraction(cover.ratio)) * stress.expected_hours_in_range
    return cover.days >= OPEN_DAYS and worth - in_doubt >= least


def does_not_pay(candidate: Candidate) -> bool:
    """Its pool's fees are less than what arbitrage takes, the error of that answer counted."""
    cover = candidate.cover
    return cover is not None and cover.days >= CLOSE_DAYS and cover.high < 1


def may_close(close: Candidate, hold: Candidate) -> bool:
    return does_not_pay(close) and is_worth_moving(close, hold)


def best_rival(round_: Round, index: int) -> Candidate | None:
    """Of the others that were not vetoed, the one worth most; None where the worth of none is known."""
    ranked = [
        (worth, -candidate.index, candidate)
        for candidate, judgment in zip(round_.candidates, round_.judgments, strict=True)
        if candidate.index != index and judgment.verdict is not Verdict.VETO
        if (worth := worth_of_capital(candidate)) is not None
    ]
    return max(ranked)[2] if ranked else None


def breakeven_hours(
    cost: Fraction | None,
    rate: Fraction | None,
    hours: Sequence[int],
    hold_rate: Fraction | None,
    hold_hours: Sequence[int],
) -> Fraction | None:
    """The first hour by which a move has earned more than hold in spite of its cost; None when the horizon comes first
    or something is unknown. `hours` are those of all paths together by each hour."""
    if cost is None or rate is None or hold_rate is None:
        return None
    scale = lcm(cost.denominator, rate.denominator, hold_rate.denominator)
    new, held, owed = int(rate * scale), int(hold_rate * scale), int(cost * scale) * PATHS
    for hour, (ours, theirs) in enumerate(zip(hours, hold_hours, strict=True), start=1):
        if new * ours - owed >= held * theirs:
            return Fraction(hour)
    return None


def path_worths(
    candidate: Candidate, time: TimeInRange | None, sqrt_price_x96: int, followed: HedgePaths | None = None
) -> PathWorths | None:
    """What it is worth on each path per unit of capital, as integers over a common denominator. None: unknown.
    `followed`: the hedge of a candidate that has one."""
    cost, fees = candidate.carry.cost.total_token1, candidate.carry.fees_hour_token1
    capital = candidate.capital_token1 or Fraction(1)
    if cost is None:
        return None
    if candidate.range is None:
        worth = -cost / capital
        return (worth.numerator,) * PATHS, worth.denominator
    if fees is None or time is None:
        return None
    lost = SQUARE * candidate.deposit.liquidity * sqrt_price_x96 / (4 * Q96 * capital)
    earned, paid = fees / capital / PPM, cost / capital
    rates, paths = [-paid, earned, -lost], [time.hours, time.squares]
    if candidate.hedge is not None and followed is not None:
        rates += [candidate.hedge.funding_hour_token1 / capital, -candidate.hedge.reset_token1 / capital]
        paths += [followed.short_hours, followed.turnover]
    scale = lcm(*(rate.denominator for rate in rates))
    begin, *factors = (int(rate * scale) for rate in rates)
    worths = [begin] * PATHS
    for factor, path in zip(factors, paths, strict=True):
        worths = [worth + factor * spent for worth, spent in zip(worths, path, strict=True)]
    return worths, scale


def share_above(ours: PathWorths | None, theirs: PathWorths | None, by: Fraction = Fraction(0)) -> Fraction | None:
    """The share of paths on which ours is worth more than theirs, by more than `by` of the capital. None: unknown."""
    if ours is None or theirs is None:
        return None
    (our, our_scale), (their, their_scale) = ours, theirs
    a, b = their_scale * by.denominator, our_scale * by.denominator
    least = by.numerator * our_scale * their_scale
    above = [mine * a - other * b > least for mine, other in zip(our, their, strict=True)]
    return Fraction(above.count(True), PATHS)


@dataclass(frozen=True, slots=True)
class PositionAtPrice:
    """Amounts in base units, worth in base units of the quote token; uncollected fees are not in it."""

    sqrt_price_x96: int
    amount0: int
    amount1: int
    in_range: bool
    worth: Fraction
    hodl_worth: Fraction
    """What today's tokens would be worth at that price."""
    fees_worth: Fraction

    @property
    def divergence_loss(self) -> Fraction:
        """Positive: the position would be worth less than its tokens held."""
        return self.hodl_worth - self.worth


def position_at_price(position: LpPosition, sqrt_price_x96: int) -> PositionAtPrice:
    """The position at another price of the pool, its liquidity unchanged until then."""
    pool, held = position.pool, position.range
    tokens = (pool.token0, pool.token1)
    here = sqrt_price_x96 == pool.sqrt_price_x96  # the stored tick may be one below its own price
    amounts = amounts_for_liquidity(sqrt_price_x96, *held.edges_x96, position.liquidity, round_up=False)
    return PositionAtPrice(
        sqrt_price_x96=sqrt_price_x96,
        amount0=amounts[0],
        amount1=amounts[1],
        in_range=position.in_range if here else held.contains(tick_at_sqrt_price(sqrt_price_x96)),
        worth=quote_worth(*amounts, sqrt_price_x96, *tokens),
        hodl_worth=quote_worth(position.amount0, position.amount1, sqrt_price_x96, *tokens),
        fees_worth=quote_worth(position.fees0, position.fees1, sqrt_price_x96, *tokens),
    )


def deposited_amounts(history: PositionHistory, position_id: int) -> tuple[Fraction, Fraction] | None:
    """The tokens put into the liquidity that a position still has: its mint and what was added since, less the share
    taken out. None where the record does not begin with its mint."""
    put_in, liquidity = (Fraction(0), Fraction(0)), 0
    touches = [touch for touch in history.events if isinstance(touch, PositionEvent)]
    own = [touch for touch in touches if touch.position_id == position_id]
    for touch in own:
        if touch.liquidity_delta > 0:
            edges = touch.range.edges_x96
            added = amounts_for_liquidity(touch.sqrt_price_x96, *edges, touch.liquidity_delta, round_up=True)
            put_in = (put_in[0] + added[0], put_in[1] + added[1])
        elif liquidity > 0:
            left = Fraction(touch.liquidity_after, liquidity)
            put_in = (put_in[0] * left, put_in[1] * left)
        liquidity += touch.liquidity_delta
        if liquidity != touch.liquidity_after:
            return None
    return put_in if liquidity > 0 else None
