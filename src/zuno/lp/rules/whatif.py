"""A position at another price: what it would hold and be worth, against holding the tokens."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import LpPosition, quote_worth
from zuno.amm.ticks import tick_at_sqrt_price
from zuno.lp.model.history import PositionEvent, PositionHistory
from zuno.lp.plan.inventory import range_edges


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
    """The position if the pool's price were this one and nobody touched it until then."""
    pool, held = position.pool, position.range
    tokens = (pool.token0, pool.token1)
    here = sqrt_price_x96 == pool.sqrt_price_x96  # the stored tick may be one below its own price
    amounts = amounts_for_liquidity(sqrt_price_x96, *range_edges(held), position.liquidity, round_up=False)
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
            edges = range_edges(touch.range)
            added = amounts_for_liquidity(touch.sqrt_price_x96, *edges, touch.liquidity_delta, round_up=True)
            put_in = (put_in[0] + added[0], put_in[1] + added[1])
        elif liquidity > 0:
            left = Fraction(touch.liquidity_after, liquidity)
            put_in = (put_in[0] * left, put_in[1] * left)
        liquidity += touch.liquidity_delta
        if liquidity != touch.liquidity_after:
            return None
    return put_in if liquidity > 0 else None
