"""Hedged liquidity: what the short beside a range costs and pays, and what it cannot do."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import Range
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE, Token
from zuno.kernel.units import Address, Tick
from zuno.lp.model.ballot import HedgeTerms
from zuno.lp.rules.hedging import WHOLE, follow_range, is_off
from zuno.lp.rules.limits import find_volatile_side
from zuno.lp.rules.stress import PPM, Barriers, StressPaths, barriers, draw_paths, time_in_range

WETH = Token(Address("0x" + "22" * 20), "WETH", 18, verified=True)
USDC = Token(Address("0x" + "11" * 20), "USDC", 6, verified=True)
DAILY = 0.0463
"""Of the sample: 463 bps a day."""
COST = Fraction(9, 10_000)


def draw(daily: float = DAILY, seed: int = 1) -> StressPaths:
    chance = random.Random(seed)
    return draw_paths([chance.gauss(0, daily / math.sqrt(24)) for _ in range(720)])


def band(share: float) -> Barriers:
    return Barriers(round(math.log(1 - share) * 1e9), round(math.log(1 + share) * 1e9), True)


def worth_of_capital(share: float) -> float:
    """A position at today's price of 1, per unit of its liquidity."""
    return (1 - 1 / math.sqrt(1 + share)) + (1 - math.sqrt(1 - share))


@pytest.mark.parametrize("side", [0, 1])
def test_re_sets_of_five_per_cent_on_ten_thousand_dollars_cost_about_twenty_a_day_in_range(side: int) -> None:
    paths, edges = draw(), band(0.05)
    followed = follow_range(paths, edges, side)
    days = fmean(time_in_range(paths, edges).hours) / PPM / 24
    traded = fmean(followed.turnover) / WHOLE * float(followed.most) / worth_of_capital(0.05) * 10_000
    assert 15 < float(COST) * traded / days < 25


def test_hedging_rescues_no_pool_whose_fees_pay_less_than_arbitrage_takes() -> None:
    """Fees less LVR a day at a fee cover of 0.8: the hedge adds costs that 5 % of funding a year do not pay."""
    paths, edges = draw(), band(0.05)
    followed = follow_range(paths, edges, 0)
    worth, most = worth_of_capital(0.05), float(followed.most)
    hours = fmean(time_in_range(paths, edges).hours) / PPM
    lvr = DAILY**2 / 4 / 24 * hours / worth * 10_000
    carry = 0.8 * lvr - lvr
    funding = 0.05 / 8_760 * fmean(followed.short_hours) / WHOLE * most / worth * 10_000
    resets = float(COST) * fmean(followed.turnover) / WHOLE * most / worth * 10_000
    assert carry < 0
    assert funding < resets / 5
    assert carry + funding - resets < 5 * carry / 4


def test_a_hedge_makes_the_spread_of_the_result_an_order_smaller() -> None:
    """Marked along finely sampled paths: liquidity alone, and with its short set again at a tenth of the most."""
    chance, share = random.Random(7), 0.10
    low, high = math.sqrt(1 - share), math.sqrt(1 + share)
    most, alone, hedged = 1 / low - 1 / high, [], []
    for _ in range(300):
        log_price, held, gained, before = 0.0, 1 - 1 / high, 0.0, 1.0
        for _ in range(7 * 96):
            log_price += chance.gauss(0, 0.02 / math.sqrt(96))
            price = math.exp(log_price)
            root = min(max(math.sqrt(price), low), high)
            gained -= held * (price - before)
            wanted, before = 1 / root - 1 / high, price
            if abs(wanted - held) >= most / 10:
                held = wanted
        worth = (1 / root - 1 / high) * price + (root - low)
        start = (1 - 1 / high) + (1 - low)
        alone.append((worth - start) / start)
        hedged.append((worth - start + gained) / start)
    assert pstdev(hedged) < pstdev(alone) / 8


def test_the_turnover_is_that_of_a_walk_that_is_watched_every_minute() -> None:
    chance, share = random.Random(3), 0.10
    low, high = math.log(1 - share), math.log(1 + share)
    full = math.exp(-low / 2) - math.exp(-high / 2)

    def amount(place: float) -> float:
        return (math.exp(-min(max(place, low), high) / 2) - math.exp(-high / 2)) / full

    watched, squared = list[float](), list[float]()
    for _ in range(20):
        place, held, traded, steps, at_hour = 0.0, amount(0.0), 0.0, 0.0, amount(0.0)
        for minute in range(1, 7 * 1_440 + 1):
            place += chance.gauss(0, 0.03 / math.sqrt(1_440))
            if abs((now := amount(place)) - held) >= 0.1:
                traded, held = traded + abs(now - held), now
            if minute % 60 == 0:
                steps, at_hour = steps + (now - at_hour) ** 2 / 0.1, now
        watched.append(traded)
        squared.append(steps)
    assert fmean(watched) == pytest.approx(fmean(squared), rel=0.2)


@given(share=st.floats(0.01, 0.5), daily=st.floats(0.005, 0.1))
def test_a_wider_range_is_set_again_less_often(share: float, daily: float) -> None:
    paths = draw(daily)
    narrow, wide = (follow_range(paths, band(each), 0) for each in (share, share * 1.5))
    assert sum(wide.turnover) * wide.most / Fraction(worth_of_capital(share * 1.5)) < sum(
        narrow.turnover
    ) * narrow.most / Fraction(worth_of_capital(share))
    assert all(0 <= hours <= 336 * 2 * WHOLE for hours in narrow.short_hours)


def test_the_short_is_what_the_range_holds() -> None:
    span, tick, liquidity = Range(Tick(-600), Tick(600)), 0, 10**18
    price = sqrt_price_at_tick(tick)
    edges, paths = barriers(span, price, tick), draw()
    sides = [sqrt_price_at_tick(span.lower), sqrt_price_at_tick(span.upper)]
    amounts = amounts_for_liquidity(price, sides[0], sides[1], liquidity, round_up=False)
    ends = (
        amounts_for_liquidity(sides[0], sides[0], sides[1], liquidity, round_up=False)[0],
        amounts_for_liquidity(sides[1], sides[0], sides[1], liquidity, round_up=False)[1],
    )
    for side in (0, 1):
        followed = follow_range(paths, edges, side)
        most = followed.most * liquidity
        assert float(most * followed.start / WHOLE) == pytest.approx(amounts[side], rel=0.01)
        assert float(most) == pytest.approx(min(ends[side], sum(amounts)), rel=1e-6)


def test_a_full_range_is_counted_by_what_it_is_worth_and_not_by_what_it_could_hold() -> None:
    full = Barriers(-88_700_000_000, 88_700_000_000, True)
    followed = follow_range(draw(), full, 0)
    assert followed.start == pytest.approx(WHOLE / 2, rel=0.01)
    assert float(followed.most) == pytest.approx(2, rel=1e-6)


def test_outside_its_range_nothing_or_everything_is_short_and_rarely_changes() -> None:
    above, below = Barriers(-300_000_000, -200_000_000, False), Barriers(200_000_000, 300_000_000, False)
    assert follow_range(draw(0.001), above, 0).start == 0
    assert follow_range(draw(0.001), below, 0).start == pytest.approx(WHOLE, rel=0.001)


def test_the_figures_are_the_same_on_every_machine() -> None:
    paths = draw_paths([(step * 7_919 % 2_001 - 1_000) / 100_000 for step in range(720)])
    followed = follow_range(paths, Barriers(-51_293_294, 48_790_164, True), 0)
    assert (followed.start, sum(followed.turnover), sum(followed.short_hours)) == (15_993, 295_239_877, 5_513_029_832)


@pytest.mark.parametrize(
    ("held", "wanted", "most", "off"),
    [("1", "1.09", "1", False), ("1", "1.1", "1", True), ("0.05", "0", "1", True), ("0", "0", "1", False)],
)
def test_a_short_is_set_again_at_a_tenth_of_the_most_and_always_ended(
    held: str, wanted: str, most: str, off: bool
) -> None:
    assert is_off(Decimal(held), Decimal(wanted), Decimal(most)) is off


def test_which_token_is_sold_short_and_which_pairs_cannot_be() -> None:
    assert (find_volatile_side(WETH, USDC), find_volatile_side(USDC, WETH)) == (0, 1)
    false = replace(USDC, verified=False)
    for pair in ((WETH, Token(NATIVE, "ETH", 18, verified=True)), (USDC, USDC), (WETH, false)):
        with pytest.raises(Refused):
            find_volatile_side(*pair)


def test_terms_that_nobody_offers_are_no_terms() -> None:
    for fields in ({"cost": Fraction(1)}, {"cost": Fraction(-1, 100)}, {"funding_hour": Fraction(2)}, {"held": -1}):
        with pytest.raises(ValueError, match="perpetual"):
            replace(HedgeTerms("ETHUSDT", 0, COST, Fraction(0), ""), **fields)
