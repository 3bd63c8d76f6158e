"""Candidates with all their figures, computed from one frozen context: every peer recomputes the same."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from zuno.amm.model import LpPosition, PoolState, Range
from zuno.lp.model.ballot import Candidate, CandidateKind, Carry, Deposit, Hedge, HedgeTerms, RiskProfile, Stress
from zuno.lp.model.cover import FeeCover
from zuno.lp.model.debate import FeeWindow
from zuno.lp.model.market import GasQuote
from zuno.lp.plan.inventory import SLIPPAGE_BPS, burn_proceeds, others_liquidity, worth_token1
from zuno.lp.plan.minting import plan_deposit
from zuno.lp.rules.carry import cost_of, lvr_hour_token1, steps_for
from zuno.lp.rules.fee_cover import ELASTICITY
from zuno.lp.rules.fee_yield import fees_hour_token1
from zuno.lp.rules.hedging import follow_range, score_hedge
from zuno.lp.rules.limits import LIMITS
from zuno.lp.rules.ranges import Move, PoolGrid, create_base_width, rebalance_base_width
from zuno.lp.rules.stress import HORIZON_HOURS, Barriers, StressPaths, barriers, hours_in_range, stress
from zuno.lp.rules.worth import breakeven_hours


@dataclass(frozen=True, slots=True)
class PoolInputs:
    """What the rules read of `PoolFacts`, and what follows from it."""

    pool: PoolState
    position: LpPosition | None = None
    """The position to rebalance; None when one is to be opened with the capital below."""
    capital0: int = 0
    capital1: int = 0
    wraps: bool = False
    """The capital comes as ether, and the pool trades its wrapper."""
    use_all: bool = False
    """Two tokens are swapped so that all of both goes in."""
    paths: StressPaths | None = None
    fees: FeeWindow | None = None
    variance_24h: float | None = None
    """σ² per day of log price over the same window as `fees`; the paths are scaled to it."""
    cover: FeeCover | None = None
    elasticity: float = ELASTICITY
    gas: GasQuote | None = None
    native_token1: Fraction | None = None
    hedge: HedgeTerms | None = None
    """Moves are hedged by these; what is held, and its close, where it is hedged already. None: nothing is."""

    @property
    def have(self) -> tuple[int, int]:
        """What there is to deploy: the position's principal and fees, or the owner's capital."""
        return (self.capital0, self.capital1) if self.position is None else burn_proceeds(self.position)

    @property
    def capital_token1(self) -> Fraction:
        return worth_token1(*self.have, self.pool.sqrt_price_x96)

    def barriers(self, band: Range) -> Barriers:
        return barriers(band, self.pool.sqrt_price_x96, self.pool.tick)


def rebalance_grid(inputs: PoolInputs) -> PoolGrid:
    """Where a rebalance may put its ranges; 1.0× is the width held now."""
    if inputs.position is None:
        raise ValueError("a rebalance needs a position")
    held, pool = inputs.position.range, inputs.pool
    base = rebalance_base_width(held, pool.key.tick_spacing)
    return PoolGrid(pool.tick, pool.sqrt_price_x96, pool.key.tick_spacing, base, held)


def create_grid(inputs: PoolInputs, profile: RiskProfile) -> PoolGrid | None:
    """Where a new position may lie; None without a price history, which alone can say how wide 1.0× is."""
    tick, price, spacing = inputs.pool.tick, inputs.pool.sqrt_price_x96, inputs.pool.key.tick_spacing
    if inputs.paths is None:
        return None
    base = create_base_width(
        inputs.paths, tick=tick, sqrt_price_x96=price, tick_spacing=spacing, limits=LIMITS[profile]
    )
    if base is None:
        return None
    have0, have1 = inputs.have
    return PoolGrid(tick, price, spacing, base, capital_is_token0=worth_token1(have0, 0, price) >= have1)


def rebalance_ballot(inputs: PoolInputs, moves: Sequence[Move]) -> tuple[Candidate, ...]:
    position = inputs.position
    if position is None:
        raise ValueError("a rebalance needs a position")
    kept = Deposit(position.liquidity, position.amount0, position.amount1, position.fees0, position.fees1)
    hold = _build_candidate(inputs, 0, CandidateKind.HOLD, kept, None, position.range)
    close = _build_candidate(inputs, 1, CandidateKind.CLOSE, Deposit(0, 0, 0, *inputs.have), hold)
    rest = (_move_candidate(inputs, move, index, hold) for index, move in enumerate(moves, start=2))
    return (hold, close, *rest)


def create_ballot(pools: Sequence[PoolInputs], moves: Sequence[Move]) -> tuple[Candidate, ...]:
    """Hold (open nothing), then the ranges to open, each in the pool its `pool_index` names."""
    nothing = _build_candidate(pools[0], 0, CandidateKind.HOLD, Deposit(0, 0, 0, *pools[0].have), None)
    opened = (
        _move_candidate(pools[move.pool_index], move, index, nothing) for index, move in enumerate(moves, start=1)
    )
    return (nothing, *opened)


def _build_candidate(
    inputs: PoolInputs,
    index: int,
    kind: CandidateKind,
    put_in: Deposit,
    hold: Candidate | None,
    band: Range | None = None,
    pool_index: int = 0,
) -> Candidate:
    """Without a range nothing is in a pool: all there is stays home."""
    tested = None
    if band is not None and inputs.paths is not None:
        tested = stress(inputs.paths, inputs.barriers(band))
    hedge = None if band is None else _hedge(inputs, kind, put_in, band)
    candidate = Candidate(
        index=index,
        kind=kind,
        range=band,
        in_range=band is not None and band.contains(inputs.pool.tick),
        deposit=put_in,
        stress=tested,
        carry=_carry(inputs, kind, put_in, tested, hedge),
        capital_token1=inputs.capital_token1,
        pool_index=pool_index,
        cover=None if hold is None and band is None else inputs.cover,
        hedge=hedge,
    )
    if hold is None:
        return candidate
    hours, hold_hours = _hours_in_range(inputs, band), _hours_in_range(inputs, hold.range)
    cost, rate, hold_rate = candidate.carry.cost.total_token1, _rate_of_hour(candidate), _rate_of_hour(hold)
    earned_back = breakeven_hours(cost, rate, hours, hold_rate, hold_hours)
    return replace(candidate, carry=replace(candidate.carry, breakeven_hours=earned_back))


def _hedge(inputs: PoolInputs, kind: CandidateKind, put_in: Deposit, band: Range) -> Hedge | None:
    terms, pool = inputs.hedge, inputs.pool
    if terms is None or inputs.paths is None or not (kind.move or terms.held):
        return None
    followed = follow_range(inputs.paths, inputs.barriers(band), terms.side)
    return score_hedge(terms, followed, put_in.liquidity, (put_in.amount0, put_in.amount1)[terms.side], pool)


def _move_candidate(inputs: PoolInputs, move: Move, index: int, hold: Candidate) -> Candidate:
    put_in = plan_deposit(inputs.pool, inputs.position, move.range, inputs.have, SLIPPAGE_BPS, use_all=inputs.use_all)
    return _build_candidate(inputs, index, move.kind, put_in, hold, move.range, move.pool_index)


def _carry(
    inputs: PoolInputs, kind: CandidateKind, put_in: Deposit, tested: Stress | None, hedge: Hedge | None
) -> Carry:
    pool, prep, liquidity = inputs.pool, put_in.prep, put_in.liquidity
    brought = zip((pool.token0, pool.token1), inputs.have, strict=True)
    outflows = sum(not token.native and have > 0 for token, have in brought)
    cost = cost_of(
        steps_for(kind, prep, outflows, wraps=inputs.wraps),
        gas=inputs.gas,
        native_token1=inputs.native_token1,
        prep=prep,
    )
    if hedge is not None:
        cost = replace(cost, hedge_token1=hedge.begin_token1)
    elif inputs.hedge is not None and inputs.hedge.held:  # it ends with the position
        at = pool.price if inputs.hedge.side == 0 else 1
        cost = replace(cost, hedge_token1=inputs.hedge.cost * inputs.hedge.held * at)
    # Without a history nobody knows how long the price stays; what is not deposited earns nothing either way.
    share = Fraction(0) if liquidity == 0 else tested.x1.in_range_share_24h if tested else None
    fees = fees_hour_token1(
        inputs.fees,
        sqrt_price_x96=pool.sqrt_price_x96,
        liquidity=liquidity,
        pool_liquidity=pool.liquidity,
        others_liquidity=others_liquidity(pool, inputs.position),
    )
    lvr = lvr_hour_token1(liquidity, pool.sqrt_price_x96, inputs.variance_24h)
    if liquidity == 0:
        fees = lvr = Fraction(0)
    return Carry(
        _per_day(fees, share),
        _per_day(lvr, share),
        cost,
        notes=(inputs.fees.label,) if inputs.fees else ("fee growth unknown",),
        fees_hour_token1=fees,
        lvr_hour_token1=lvr,
    )


def _rate_of_hour(candidate: Candidate) -> Fraction | None:
    """What an hour in range makes, with its part of what the hedge pays and costs until the horizon."""
    rate, hedge, tested = candidate.carry.net_hour_token1, candidate.hedge, candidate.stress
    if tested is None:
        return rate if candidate.range is None else None
    if rate is None or hedge is None or not tested.expected_hours_in_range:
        return rate
    return rate + hedge.net_token1 / tested.expected_hours_in_range


def _per_day(of_an_hour: Fraction | None, share: Fraction | None) -> Fraction | None:
    if share == 0:
        return Fraction(0)
    return None if of_an_hour is None or share is None else 24 * of_an_hour * share


def _hours_in_range(inputs: PoolInputs, band: Range | None) -> Sequence[int]:
    """Of all paths together by each hour; none where there is no range."""
    if inputs.paths is None or band is None:
        return (0,) * HORIZON_HOURS
    return hours_in_range(inputs.paths, inputs.barriers(band))
