"""A Scout's figures beside the owner's own reading of the same pools: what is far off is refused, the rest is doubted.

What the chain keeps was compared already, to the unit. Here are fee growth, gas, prices and how much they move: two
honest readers may differ a little, so each has a bound for doubt, which caps the verdict, and one for refusal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from zuno.amm.model import price_of
from zuno.kernel.errors import Malformed
from zuno.lp.agents.pool_choice import pool_label
from zuno.lp.agents.pool_inputs import cover_of
from zuno.lp.model.ballot import Candidate, HedgeTerms
from zuno.lp.model.debate import Context, FeeWindow, PlanReady, PoolFacts
from zuno.lp.model.market import GasQuote
from zuno.lp.rules.fee_yield import DAY, LEAST_COVERED

HIGHEST_APR: Final = 10
"""A year's fees over the capital. A higher yield is taken for a mistake or a lure."""
LEAST_WINDOW: Final = LEAST_COVERED * DAY
"""Seconds of the shortest fee window that an honest Scout takes."""
GAP_DOUBT: Final = Fraction(3, 1000)
GAP_REFUSAL: Final = Fraction(1, 100)
LEAST_HOURS: Final = Fraction(9, 10)
"""Of the hours that the owner knows, the share that the Scout's past must hold."""
_TYPICAL_GAS, _TYPICAL_BYTES = 400_000, 1_000
_DAY_HOURS, _WEEK_HOURS = 24, 168


@dataclass(frozen=True, slots=True)
class Tolerance:
    """By what factor, up or down, a figure may be another than the owner's: before it is doubted, and refused."""

    doubt: Fraction
    refusal: Fraction
    power: int = 1
    """Of the figures: 2 where they are squares of what the factors are about."""


FEES: Final = Tolerance(Fraction("1.05"), Fraction("1.5"))
COVER: Final = Tolerance(Fraction("1.15"), Fraction(2))
MOVES: Final = Tolerance(Fraction("1.1"), Fraction(2), power=2)
GAS: Final = Tolerance(Fraction(2), Fraction(10))
"""Gas is read at two moments: a base fee can double in a minute and a half."""
NATIVE: Final = Tolerance(Fraction("1.02"), Fraction("1.1"))


def find_doubts(context: Context, own: Sequence[PoolFacts]) -> tuple[str, ...]:
    """Why the verdict deserves caution by the owner's own reading. `Malformed` for no honest reading."""
    doubts: list[str] = []
    for pool_facts, ours in zip(context.scenes, own, strict=True):
        where = f" of {pool_label(pool_facts.pool)}" if len(context.scenes) > 1 else ""
        doubts += (f"{what}{where} {why}" for what, why in _compare_pool_facts(pool_facts, ours))
    return tuple(dict.fromkeys(doubts))


def check_yield(ready: PlanReady) -> None:
    """`Malformed` for a choice that would earn more than anything does."""
    chosen = ready.debate.rounds[-1].candidates[ready.decision.index]
    if (rate := fee_apr(chosen)) is not None and rate > HIGHEST_APR:
        raise Malformed(
            f"candidate {chosen.index} would earn {float(100 * rate):,.0f} % of its capital in a year, and more than "
            f"{100 * HIGHEST_APR:,} % is believed of nobody"
        )


def fee_apr(candidate: Candidate) -> Fraction | None:
    """Expected fees of a year over the capital."""
    fees, capital = candidate.carry.fees24h_token1, candidate.capital_token1
    return None if fees is None or not capital else 365 * fees / Fraction(capital)


def _compare_pool_facts(pool_facts: PoolFacts, own: PoolFacts) -> Iterator[tuple[str, str]]:
    if pool_facts.fees is not None and pool_facts.fees.seconds < LEAST_WINDOW:
        raise Malformed(f"fee growth was measured over {pool_facts.fees.seconds} s, {LEAST_WINDOW} s are the least")
    yield from _doubt("the fee growth", _fee_rate(pool_facts, pool_facts.fees), _fee_rate(pool_facts, own.fees), FEES)
    yield from _doubt("the price of gas", _gas_cost(pool_facts.gas), _gas_cost(own.gas), GAS)
    yield from _doubt("the native coin's price", pool_facts.native_token1, own.native_token1, NATIVE)
    yield from _compare_hedge(pool_facts.hedge, own.hedge)
    yield from _compare_returns(pool_facts.returns_nano, own.returns_nano)
    yield from _compare_covers(pool_facts, own)
    yield from _compare_reference(pool_facts.reference_gap, own.reference_gap)
    if own.returns_nano and pool_facts.regime is not own.regime:
        yield "the regime", f"is {own.regime} by this home's own reading, not {pool_facts.regime}"


def _compare_covers(pool_facts: PoolFacts, own: PoolFacts) -> Iterator[tuple[str, str]]:
    claimed, ours = cover_of(pool_facts), cover_of(own)
    for what in ("ratio", "low", "high"):
        said, read = (None if cover is None else Fraction(getattr(cover, what)) for cover in (claimed, ours))
        yield from _doubt("the fee cover", said, read, COVER)
    said, read = (
        None if facts.cover is None or facts.cover.variance is None else Fraction(facts.cover.variance)
        for facts in (pool_facts, own)
    )
    yield from _doubt("the variance", said, read, MOVES)


def _doubt(
    what: str, claimed: Fraction | None, own: Fraction | None, tolerance: Tolerance
) -> Iterator[tuple[str, str]]:
    """What the Scout does not know, the rules count as unknown already."""
    if claimed is None or claimed == own:
        return
    if own is None:
        yield what, "is unchecked: this home has no reading of its own"
        return
    low, high = sorted((claimed, own))
    times = "more than" if not own else f"{float(claimed / own) ** (1 / tolerance.power):.3g} times"
    if low <= 0 or high / low > tolerance.refusal**tolerance.power:
        raise Malformed(f"{what} is {times} what this home reads")
    if high / low > tolerance.doubt**tolerance.power:
        yield what, f"is {times} what this home reads"


def _compare_hedge(claimed: HedgeTerms | None, own: HedgeTerms | None) -> Iterator[tuple[str, str]]:
    """Market, side and cost are what this home's own exchange says; funding may have been paid since."""
    if claimed is None or own is None:
        return
    if (claimed.market, claimed.side, claimed.cost) != (own.market, own.side, own.cost):
        raise Malformed(f"the hedge is by {claimed.market} at other terms than this home knows")
    if claimed.funding_hour != own.funding_hour:
        yield "the funding", f"is {float(8_760 * own.funding_hour):.2%} a year by this home's own reading"


def _fee_rate(pool_facts: PoolFacts, window: FeeWindow | None) -> Fraction | None:
    """Base units of token1 a second for one unit of liquidity in range, at today's price."""
    if window is None:
        return None
    return (window.growth0_x128 * price_of(pool_facts.pool.sqrt_price_x96) + window.growth1_x128) / window.seconds


def _gas_cost(quote: GasQuote | None) -> Fraction | None:
    """Of a transaction of usual size, with the rollup's data fee."""
    return None if quote is None else Fraction(quote.cost(_TYPICAL_GAS, _TYPICAL_BYTES, estimated_here=False))


def _compare_returns(claimed: Sequence[int], own: Sequence[int]) -> Iterator[tuple[str, str]]:
    """By how much the hours moved over month, week and day, and how far whole days went."""
    if not claimed:
        return
    if len(own) < _DAY_HOURS:
        yield "the volatility", "is unchecked: this home has no price history of its own"
        return
    if len(claimed) < LEAST_HOURS * len(own):
        yield "the price history", f"has {len(claimed)} hours, this home's own {len(own)}"
    for what, hours in (("volatility", len(own)), ("week's volatility", _WEEK_HOURS), ("day's volatility", _DAY_HOURS)):
        yield from _doubt(f"the {what}", _square(claimed[-hours:]), _square(own[-hours:]), MOVES)
    yield from _doubt("the size of daily moves", _square(_day_moves(claimed)), _square(_day_moves(own)), MOVES)


def _square(moves: Sequence[int]) -> Fraction | None:
    """The mean square, which needs no root."""
    return Fraction(sum(move * move for move in moves), len(moves)) if moves else None


def _day_moves(returns: Sequence[int]) -> tuple[int, ...]:
    """Of every day that begins at an hour of the series."""
    return tuple(sum(returns[end - _DAY_HOURS : end]) for end in range(_DAY_HOURS, len(returns) + 1))


def _compare_reference(claimed: Fraction | None, own: Fraction | None) -> Iterator[tuple[str, str]]:
    """A Scout that hides the reference is held against the owner's own all the same."""
    if own is None:
        if claimed is not None:
            yield "the reference price", "is unchecked: this home has none of its own"
        return
    apart = abs(own - (claimed or 0))
    here = f"is {float(100 * own):.2f} % from the pool's by this home's own source"
    if apart > GAP_REFUSAL:
        raise Malformed(f"the reference price {here}, not {float(100 * (claimed or 0)):.2f} %")
    if apart > GAP_DOUBT:
        yield "the reference price", here
