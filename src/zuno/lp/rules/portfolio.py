"""What a position did over a window of its past, and what it made since it was opened. Statistics, not balances."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

from zuno.amm.fees import earned_rounding_down
from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import LpPosition, Range, quote_worth
from zuno.amm.ticks import tick_at_sqrt_price
from zuno.kernel.text import Token, base_and_quote
from zuno.kernel.units import Seconds
from zuno.lp.model.history import PositionEvent, PositionHistory, PricedBlock
from zuno.lp.ports.samples import PoolSample
from zuno.lp.rules.attribution import Attribution, attribute
from zuno.lp.rules.lvr import rebalancing_gain_token1

YEAR: Final = 365 * 86_400
Legs = tuple[tuple[Range, int], ...]
"""Ranges held at a moment, with their liquidity."""
Mark = tuple[PricedBlock, Legs]
"""A price, and what was held from then on."""


@dataclass(frozen=True, slots=True)
class WindowFigures:
    """A position over a window; money in base units of the pool's quote token."""

    seconds: int
    """Time with liquidity in the pool."""
    fees: Fraction
    """At today's price."""
    mean_worth: Fraction
    """Of the principal, over that time."""
    lvr: Fraction
    in_range: Fraction
    """Share of that time."""
    lineage: tuple[int, ...]
    """The position and those it was rebalanced from in the window, oldest first."""
    how: str
    """What the figures were read from."""
    earned: tuple[int, int]
    """The fees in both tokens."""
    worths: tuple[tuple[Seconds, int], ...]
    """Of the principal, at each price on record."""


@dataclass(frozen=True, slots=True)
class LifeFigures:
    """A position and those it was rebalanced from since the first was opened; money in base units of the quote token,
    fees at today's price."""

    opened_at: Seconds
    result: Fraction
    put_in: Fraction
    """The most that was in it at a time."""
    against_holding: Fraction
    fees: Fraction
    earned: tuple[int, int]
    lvr: Fraction
    lineage: tuple[int, ...]
    guessed: bool
    """Which positions it was rebalanced from is an estimate by the chain."""
    out_since: Seconds | None
    """None: in range."""


def figures_of_window(
    position: LpPosition, fees: tuple[int, int], path: Sequence[PricedBlock], how: str
) -> WindowFigures | None:
    """Of a position whose liquidity stayed the same. None where there is no time to speak of."""
    legs, pool = ((position.range, position.liquidity),), position.pool
    marks = [(point, legs) for point in path]
    return _figures(marks, fees, pool.sqrt_price_x96, (pool.token0, pool.token1), (position.id,), how)


def figures_of_history(history: PositionHistory, how: str) -> WindowFigures | None:
    """Of a position that was minted, changed or rebalanced in the window: it and those before it are one lineage."""
    result = attribute(history)
    tokens = (history.token0, history.token1)
    price = history.path[-1].sqrt_price_x96
    return _figures(list(_marks(history)), (result.fees0, result.fees1), price, tokens, list_lineage(history), how)


def figures_of_life(history: PositionHistory, position: LpPosition, result: Attribution) -> LifeFigures:
    """`history`: from the first mint."""
    pool, earned = position.pool, (result.fees0, result.fees1)
    in_token1 = base_and_quote(pool.token0, pool.token1)[1] is pool.token1
    terms, lvr = (result.in_token1, result.lvr_token1) if in_token1 else (result.in_token0, result.lvr_token0)
    return LifeFigures(
        opened_at=history.opened.timestamp,
        result=terms.result,
        put_in=terms.most_put_in,
        against_holding=terms.against_holding,
        fees=quote_worth(*earned, pool.sqrt_price_x96, pool.token0, pool.token1),
        earned=earned,
        lvr=Fraction(lvr),
        lineage=list_lineage(history),
        guessed=history.lineage == "chain guess",
        out_since=find_out_since(position, history),
    )


def find_out_since(position: LpPosition, history: PositionHistory) -> Seconds | None:
    """Since when the price is outside the range, by the prices on record; None: it is inside, or there is no range."""
    if position.in_range or not position.liquidity:
        return None
    own = (event for event in history.events if isinstance(event, PositionEvent) and event.position_id == position.id)
    opened = next((event.block for event in own), history.opened)
    since = opened.timestamp
    for before, point in pairwise(history.path):
        if point.block.number > opened.number and position.range.contains(tick_at_sqrt_price(before.sqrt_price_x96)):
            since = point.block.timestamp
    return since


def list_lineage(history: PositionHistory) -> tuple[int, ...]:
    """The position and those it was rebalanced from in the window, oldest first."""
    ids = dict.fromkeys(event.position_id for event in history.events if isinstance(event, PositionEvent))
    return tuple(ids if history.start is None else {history.start.position_id: None, **ids})


def fees_from_samples(samples: Sequence[PoolSample], position: LpPosition) -> tuple[int, int]:
    """Fees estimated from our samples of fee growth: whole between two in range, half where only one is."""
    earned = [0, 0]
    for before, after in pairwise(samples):
        halves = position.range.contains(before.tick) + position.range.contains(after.tick)
        growths = (
            (after.fee_growth_global0_x128, before.fee_growth_global0_x128),
            (after.fee_growth_global1_x128, before.fee_growth_global1_x128),
        )
        for side, (now, then) in enumerate(growths):
            earned[side] += earned_rounding_down(now, then, position.liquidity) * halves // 2
    return earned[0], earned[1]


def annual_rate(gain: Fraction, mean_worth: Fraction, seconds: int) -> Fraction | None:
    """A gain over a window as a yearly share of the mean worth: gain ÷ worth × 365 d ÷ window."""
    if mean_worth <= 0 or seconds <= 0:
        return None
    return gain / mean_worth * Fraction(YEAR, seconds)


def _marks(history: PositionHistory) -> Iterator[Mark]:
    """The path with what was held along it; a touch counts from the next price on record."""
    upcoming = iter([event for event in history.events if isinstance(event, PositionEvent)])
    touch = next(upcoming, None)
    held: dict[int, tuple[Range, int]] = {}
    if history.start is not None:
        held[history.start.position_id] = (history.start.range, history.start.liquidity)
    for point in history.path:
        while touch is not None and touch.block.number <= point.block.number:
            held[touch.position_id] = (touch.range, touch.liquidity_after)
            touch = next(upcoming, None)
        legs = tuple((span, liquidity) for span, liquidity in held.values() if liquidity)
        yield point, legs


def _figures(
    marks: Sequence[Mark],
    fees: tuple[int, int],
    sqrt_price_x96: int,
    tokens: tuple[Token, Token],
    lineage: tuple[int, ...],
    how: str,
) -> WindowFigures | None:
    seconds, worth_time, lvr, inside_time = 0, 0, 0.0, 0
    in_token1 = base_and_quote(*tokens)[1] is tokens[1]
    worths, held, now = list[tuple[Seconds, int]](), list[tuple[int, int, int]](), (0, False)
    for place, (before, legs) in enumerate(marks):
        price = before.sqrt_price_x96
        if not place or legs != marks[place - 1][1]:
            held = _find_edges(legs)
            now = _value(held, price, in_token1=in_token1)
        worths.append((before.block.timestamp, now[0]))
        after = marks[place + 1][0] if place + 1 < len(marks) else before
        price_then, span = after.sqrt_price_x96, after.block.timestamp - before.block.timestamp
        then = now if price_then == price else _value(held, price_then, in_token1=in_token1)
        if legs and span > 0:
            seconds += span
            worth_time += span * (now[0] + then[0])
            inside_time += span * (now[1] + then[1])
            if price_then != price:
                gained = sum(
                    rebalancing_gain_token1(liquidity, (lower, upper), price, price_then)
                    for lower, upper, liquidity in held
                )
                lvr += gained if in_token1 else gained / (price_then / 2**96) ** 2
        now = then
    if seconds == 0:
        return None
    return WindowFigures(
        seconds=seconds,
        fees=quote_worth(*fees, sqrt_price_x96, *tokens),
        mean_worth=Fraction(worth_time, 2 * seconds),
        lvr=Fraction(lvr),
        in_range=Fraction(inside_time, 2 * seconds),
        lineage=lineage,
        how=how,
        earned=fees,
        worths=tuple(worths),
    )


def _find_edges(legs: Legs) -> list[tuple[int, int, int]]:
    return [(*span.edges_x96, liquidity) for span, liquidity in legs]


def _value(held: Sequence[tuple[int, int, int]], price_x96: int, *, in_token1: bool) -> tuple[int, bool]:
    """What is between these edges with this liquidity, in whole base units of the quote token, rounded down; and
    whether a range holds the price."""
    amount0 = amount1 = 0
    for lower, upper, liquidity in held:
        amounts = amounts_for_liquidity(price_x96, lower, upper, liquidity, round_up=False)
        amount0, amount1 = amount0 + amounts[0], amount1 + amounts[1]
    square, inside = price_x96 * price_x96, any(lower <= price_x96 < upper for lower, upper, _ in held)
    return (amount0 * square >> 192) + amount1 if in_token1 else amount0 + (amount1 << 192) // square, inside
