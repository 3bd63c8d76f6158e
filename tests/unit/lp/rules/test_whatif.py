"""A position at another price holds what a real pool pays there, and its loss against holding is never a gain."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import Block, LpPosition, PoolKey, PoolState, Range, quote_worth, sqrt_price_for, whole_price
from zuno.amm.pool import Pool
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.text import Token
from zuno.kernel.units import Address, Amount, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick
from zuno.lp.model.history import PositionEvent, PositionHistory
from zuno.lp.rules.worth import deposited_amounts, position_at_price

OWNER, STRANGER = "0x" + "aa" * 20, "0x" + "bb" * 20
ETH = Token(Address("0x" + "01" * 20), "WETH", 18, verified=True)
USD = Token(Address("0x" + "02" * 20), "USDC", 6, verified=True)
BLOCK = Block(7, HexId("0x" + "07" * 32), Seconds(1_000))
LIQUIDITY = 10**18
RANGE = Range(Tick(-1_200), Tick(1_800))


def position_of(pool: Pool, tokens: tuple[Token, Token], liquidity: int = LIQUIDITY) -> LpPosition:
    price = pool.slot0.sqrt_price_x96
    edges = sqrt_price_at_tick(RANGE.lower), sqrt_price_at_tick(RANGE.upper)
    amount0, amount1 = amounts_for_liquidity(price, *edges, liquidity, round_up=False)
    state = PoolState(
        HexId("0x0"),
        PoolKey(tokens[0].address, tokens[1].address, Pips(500), 60),
        *tokens,
        SqrtPriceX96(price),
        Tick(pool.slot0.tick),
        0,
        Pips(500),
        Liquidity(pool.liquidity),
        0,
        0,
        BLOCK,
    )
    held = Amount(amount0), Amount(amount1)
    return LpPosition(1, "sim", Address(OWNER), state, RANGE, Liquidity(liquidity), *held, Amount(5), Amount(7))


def pool_at(tick: int) -> Pool:
    pool = Pool.initialize(500, 60, sqrt_price_at_tick(tick))
    pool.modify_liquidity(STRANGER, -12_000, 12_000, 10**19, 0)
    pool.modify_liquidity(OWNER, RANGE.lower, RANGE.upper, LIQUIDITY, 0)
    return pool


@given(tick=st.integers(-3_000, 3_000), change=st.integers(-80, 300), flipped=st.booleans())
def test_it_holds_what_the_pool_pays_at_that_price(tick: int, change: int, flipped: bool) -> None:
    pool = pool_at(tick)
    tokens = (USD, ETH) if flipped else (ETH, USD)
    today = whole_price(pool.slot0.sqrt_price_x96, *tokens)
    wanted = sqrt_price_for(today * (100 + change) / 100, *tokens)
    case = position_at_price(position_of(pool, tokens), wanted)
    if wanted != pool.slot0.sqrt_price_x96:
        down = wanted < pool.slot0.sqrt_price_x96
        pool.swap(down, -(10**30), wanted)
    assert pool.slot0.sqrt_price_x96 == wanted
    assert case.in_range == RANGE.contains(pool.slot0.tick)
    burn = pool.modify_liquidity(OWNER, RANGE.lower, RANGE.upper, -LIQUIDITY, 0)
    assert (case.amount0, case.amount1) == (burn.amount0 - burn.fees0, burn.amount1 - burn.fees1)
    assert case.worth == quote_worth(case.amount0, case.amount1, wanted, *tokens)
    assert case.divergence_loss >= -quote_worth(1, 1, wanted, *tokens)  # both worths are rounded to base units


def test_at_todays_price_nothing_is_lost() -> None:
    position = position_of(pool_at(300), (ETH, USD))
    case = position_at_price(position, position.pool.sqrt_price_x96)
    assert (case.amount0, case.amount1) == (position.amount0, position.amount1)
    assert case.divergence_loss == 0


def test_the_loss_of_a_wide_range_is_the_textbook_one() -> None:
    """Full range, price × 4: 2·√4 / (1 + 4) − 1 = −20 % of holding."""
    pool = Pool.initialize(500, 60, sqrt_price_at_tick(0))
    position = position_of(pool, (ETH, USD))
    whole = Range(Tick(-887_220), Tick(887_220))
    edges = sqrt_price_at_tick(whole.lower), sqrt_price_at_tick(whole.upper)
    held = amounts_for_liquidity(pool.slot0.sqrt_price_x96, *edges, LIQUIDITY, round_up=False)
    position = replace(position, range=whole, amount0=Amount(held[0]), amount1=Amount(held[1]))
    case = position_at_price(position, 2 * pool.slot0.sqrt_price_x96)
    assert float(case.divergence_loss / case.hodl_worth) == pytest.approx(0.2, abs=1e-9)


def event(position: int, delta: int, after: int, tick: int = 0) -> PositionEvent:
    moment = (BLOCK, HexId("0x0"), SqrtPriceX96(sqrt_price_at_tick(tick)))
    return PositionEvent(position, RANGE, *moment, delta, Liquidity(after), 0, 0, 0, 0)


def history(*events: PositionEvent) -> PositionHistory:
    key = PoolKey(ETH.address, USD.address, Pips(500), 60)
    return PositionHistory(key, ETH, USD, BLOCK, BLOCK, None, None, events, ())


def minted(liquidity: int, tick: int = 0) -> tuple[int, int]:
    edges = sqrt_price_at_tick(RANGE.lower), sqrt_price_at_tick(RANGE.upper)
    return amounts_for_liquidity(sqrt_price_at_tick(tick), *edges, liquidity, round_up=True)


def test_what_was_put_in_counts_additions_and_the_share_left_of_it() -> None:
    first, more = minted(LIQUIDITY), minted(3 * LIQUIDITY, 600)
    life = history(
        event(3, 5 * LIQUIDITY, 5 * LIQUIDITY),  # what it was rebalanced from
        event(3, -5 * LIQUIDITY, 0),
        event(4, LIQUIDITY, LIQUIDITY),
        event(4, 0, LIQUIDITY, 900),
        event(4, 3 * LIQUIDITY, 4 * LIQUIDITY, 600),
        event(4, -LIQUIDITY, 3 * LIQUIDITY, -600),
    )
    left = Fraction(3, 4)
    assert deposited_amounts(life, 4) == ((first[0] + more[0]) * left, (first[1] + more[1]) * left)


@pytest.mark.parametrize(
    "events",
    [(), (event(3, 1, 1),), (event(4, LIQUIDITY, 2 * LIQUIDITY),), (event(4, 5, 5), event(4, -5, 0))],
    ids=["nothing", "another position", "the mint is missing", "all taken out"],
)
def test_without_a_whole_record_nobody_knows_what_was_put_in(events: tuple[PositionEvent, ...]) -> None:
    assert deposited_amounts(history(*events), 4) is None
