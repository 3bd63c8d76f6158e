"""The ballot's lines with all their figures, from one frozen scene: whoever recomputes them gets the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from zuno.amm.model import LpPosition, PoolState, Range
from zuno.lp.model.ballot import Candidate, CandidateKind, Carry, Deposit, RiskProfile, Stress
from zuno.lp.model.debate import FeeWindow
from zuno.lp.model.market import GasQuote
from zuno.lp.model.plan import StepKind
from zuno.lp.plan.inventory import (
    SLIPPAGE_BPS,
    QuoteSwap,
    available,
    others_liquidity,
    worth_token1,
)
from zuno.lp.plan.minting import plan_deposit
from zuno.lp.rules.carry import MEASURED_GAS, MEASURED_LABEL, cost_of, lvr_hour_token1, steps_for
from zuno.lp.rules.fee_yield import fees_hour_token1
from zuno.lp.rules.limits import LIMITS
from zuno.lp.rules.ranges import Move, PoolGrid, create_base_width, rebalance_base_width
from zuno.lp.rules.stress import HORIZON_HOURS, StressPaths, barriers, hours_in_range, stress
from zuno.lp.rules.worth import breakeven_hours


@dataclass(frozen=True, slots=True)
class PoolInputs:
    """One pool and everything its candidates are weighed by. What is not known is None, and stays unknown."""

    pool: PoolState
    position: LpPosition | None = None
    """The position to rebalance; None when one is to be opened with the capital below."""
    capital0: int = 0
    capital1: int = 0
    wraps: bool = False
    """The capital comes as ether, and the pool trades its wrapper."""
    paths: StressPaths | None = None
    fees: FeeWindow | None = None
    variance_24h: float | None = None
    """σ² per day of log price over the same window as `fees`."""
    gas: GasQuote | None = None
    native_token1: Fraction | None = None
    """Base units of token1 for one wei of the chain's own currency."""
    slippage_bps: int = SLIPPAGE_BPS
    exact_quotes: QuoteSwap | None = None
    """Swap quotes of the pool without our liquidity, where it is known whole."""
    gas_units: Mapping[StepKind, int] = field(default_factory=lambda: MEASURED_GAS)
    gas_label: str = MEASURED_LABEL

    @property
    def have(self) -> tuple[int, int]:
        """What there is to deploy: the position's principal and fees, or the owner's capital."""
        return (self.capital0, self.capital1) if self.position is None else available(self.position)

    @property
    def capital_token1(self) -> Fraction:
        return worth_token1(*self.have, self.pool.sqrt_price_x96)


def rebalance_grid(scene: PoolInputs) -> PoolGrid:
    """Where a rebalance may put its ranges; 1.0× is the width held now."""
    if scene.position is None:
        raise ValueError("a rebalance needs a position")
    held, pool = scene.position.range, scene.pool
    base = rebalance_base_width(held, pool.key.tick_spacing)
    return PoolGrid(pool.tick, pool.sqrt_price_x96, pool.key.tick_spacing, base, held)


def create_grid(scene: PoolInputs, profile: RiskProfile) -> PoolGrid | None:
    """Where a new position may lie; None without a price history, which alone can say how wide 1.0× is."""
    pool = scene.pool
    if scene.paths is None:
        return None
    base = create_base_width(
        scene.paths,
        tick=pool.tick,
        sqrt_price_x96=pool.sqrt_price_x96,
        tick_spacing=pool.key.tick_spacing,
        limits=LIMITS[profile],
    )
    if base is None:
        return None
    have0, have1 = scene.have
    mostly0 = worth_token1(have0, 0, pool.sqrt_price_x96) >= have1
    return PoolGrid(pool.tick, pool.sqrt_price_x96, pool.key.tick_spacing, base, capital_is_token0=mostly0)


def rebalance_ballot(scene: PoolInputs, moves: Sequence[Move]) -> tuple[Candidate, ...]:
    """Hold, close, then the moves."""
    position = scene.position
    if position is None:
        raise ValueError("a rebalance needs a position")
    hold = _hold_candidate(scene, position)
    close = Candidate(
        index=1,
        kind=CandidateKind.CLOSE,
        range=None,
        in_range=False,
        deposit=Deposit(0, 0, 0, *scene.have),
        stress=None,
        carry=_carry(scene, CandidateKind.CLOSE, None, None, 0, hold),
        capital_token1=scene.capital_token1,
    )
    rest = (_move_candidate(scene, move, index, hold) for index, move in enumerate(moves, start=2))
    return (hold, close, *rest)


def create_ballot(scenes: Sequence[PoolInputs], moves: Sequence[Move]) -> tuple[Candidate, ...]:
    """Hold (open nothing), then the ranges to open, each in the scene its `pool_index` names."""
    home = scenes[0]
    nothing = Candidate(
        index=0,
        kind=CandidateKind.HOLD,
        range=None,
        in_range=False,
        deposit=Deposit(0, 0, 0, *home.have),
        stress=None,
        carry=_carry(home, CandidateKind.HOLD, None, None, 0, None),
        capital_token1=home.capital_token1,
    )
    opened = (
        _move_candidate(scenes[move.pool_index], move, index, nothing) for index, move in enumerate(moves, start=1)
    )
    return (nothing, *opened)


def _hold_candidate(scene: PoolInputs, position: LpPosition) -> Candidate:
    kept = Deposit(position.liquidity, position.amount0, position.amount1, position.fees0, position.fees1)
    tested = _stress(scene, position.range)
    return Candidate(
        index=0,
        kind=CandidateKind.HOLD,
        range=position.range,
        in_range=position.in_range,
        deposit=kept,
        stress=tested,
        carry=_carry(scene, CandidateKind.HOLD, kept, tested, position.liquidity, None),
        capital_token1=scene.capital_token1,
    )


def _move_candidate(scene: PoolInputs, move: Move, index: int, hold: Candidate) -> Candidate:
    put_in = plan_deposit(scene.pool, scene.position, move.range, scene.have, scene.slippage_bps, scene.exact_quotes)
    tested = _stress(scene, move.range)
    return Candidate(
        index=index,
        kind=move.kind,
        range=move.range,
        in_range=move.range.contains(scene.pool.tick),
        deposit=put_in,
        stress=tested,
        carry=_carry(scene, move.kind, put_in, tested, put_in.liquidity, hold, move.range),
        capital_token1=scene.capital_token1,
        pool_index=move.pool_index,
    )


def _stress(scene: PoolInputs, band: Range) -> Stress | None:
    if scene.paths is None:
        return None
    return stress(scene.paths, barriers(band, scene.pool.sqrt_price_x96, scene.pool.tick))


def _carry(
    scene: PoolInputs,
    kind: CandidateKind,
    put_in: Deposit | None,
    tested: Stress | None,
    liquidity: int,
    hold: Candidate | None,
    band: Range | None = None,
) -> Carry:
    """`hold` is what it is held against; None for hold itself."""
    pool, prep = scene.pool, put_in.prep if put_in else None
    cost = cost_of(
        steps_for(kind, prep, _erc20_outflows(scene), wraps=scene.wraps),
        gas=scene.gas,
        native_token1=scene.native_token1,
        prep=prep,
        units=scene.gas_units,
        label=scene.gas_label,
    )
    # Without a history nobody knows how long the price stays; what is not deposited earns nothing either way.
    share = Fraction(0) if liquidity == 0 else tested.x1.in_range_share_24h if tested else None
    fees = fees_hour_token1(
        scene.fees,
        sqrt_price_x96=pool.sqrt_price_x96,
        liquidity=liquidity,
        pool_liquidity=pool.liquidity,
        others_liquidity=others_liquidity(pool, scene.position),
    )
    lvr = lvr_hour_token1(liquidity, pool.sqrt_price_x96, scene.variance_24h)
    if liquidity == 0:
        fees = lvr = Fraction(0)
    carry = Carry(
        _per_day(fees, share),
        _per_day(lvr, share),
        cost,
        notes=(scene.fees.label,) if scene.fees else ("fee growth unknown",),
        fees_hour_token1=fees,
        lvr_hour_token1=lvr,
    )
    if hold is None:
        return carry
    hours, hold_hours = _hours_in_range(scene, band), _hours_in_range(scene, hold.range)
    rate = carry.net_hour_token1 if band is None or tested else None
    hold_rate = hold.carry.net_hour_token1 if hold.range is None or hold.stress else None
    return replace(carry, breakeven_hours=breakeven_hours(cost.total_token1, rate, hours, hold_rate, hold_hours))


def _per_day(of_an_hour: Fraction | None, share: Fraction | None) -> Fraction | None:
    if share == 0:
        return Fraction(0)
    return None if of_an_hour is None or share is None else 24 * of_an_hour * share


def _hours_in_range(scene: PoolInputs, band: Range | None) -> Sequence[int]:
    """Of all paths together by each hour; none where there is no range."""
    if scene.paths is None or band is None:
        return (0,) * HORIZON_HOURS
    return hours_in_range(scene.paths, barriers(band, scene.pool.sqrt_price_x96, scene.pool.tick))


def _erc20_outflows(scene: PoolInputs) -> int:
    tokens = (scene.pool.token0, scene.pool.token1)
    return sum(not token.native and have > 0 for token, have in zip(tokens, scene.have, strict=True))
