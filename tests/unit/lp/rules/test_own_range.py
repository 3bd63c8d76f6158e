"""The owner's own range on a pool's grid, and what is refused as another unit or as no range at all."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.lp.rules.test_whatif import ETH, USD, position_of
from zuno.amm.model import PoolState, Range, sqrt_price_for, whole_price
from zuno.amm.pool import Pool
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.errors import Refused, UsageError
from zuno.lp.model.debate import OwnRange
from zuno.lp.rules.own_range import place_own_range
from zuno.lp.service import arguments

SPACING = 60


def pool_of(price: str, *, flipped: bool = False) -> PoolState:
    tokens = (USD, ETH) if flipped else (ETH, USD)
    root = sqrt_price_for(Fraction(Decimal(price)), *tokens)
    return position_of(Pool.initialize(500, SPACING, root), tokens, 1).pool


def own(lower: str, upper: str, unit: Literal["price", "ticks"] = "price") -> OwnRange:
    return OwnRange(unit=unit, lower=Decimal(lower), upper=Decimal(upper))


@given(st.integers(2_000, 2_900), st.integers(1, 2_000), st.booleans())
def test_the_range_on_the_grid_holds_the_one_named_and_little_more(low: int, width: int, flipped: bool) -> None:
    pool = pool_of("3000", flipped=flipped)
    placed = place_own_range(own(str(low), str(low + width)), pool)
    assert placed.lower % SPACING == placed.upper % SPACING == 0
    ends = sorted(
        whole_price(sqrt_price_at_tick(tick), pool.token0, pool.token1) for tick in (placed.lower, placed.upper)
    )
    slack = Fraction(10_001, 10_000) ** (SPACING + 2)
    assert ends[0] <= low * Fraction(1_000_001, 1_000_000)
    assert ends[1] >= (low + width) * Fraction(999_999, 1_000_000)
    assert ends[0] * slack >= low
    assert ends[1] <= (low + width) * slack


def test_ticks_of_another_pair_are_refused() -> None:
    with pytest.raises(Refused, match=r"-130 .*\btick -?\d"):
        place_own_range(own("-130", "59", "ticks"), pool_of("3000"))


def test_ticks_are_rounded_outwards() -> None:
    assert place_own_range(own("-196130", "-195941", "ticks"), pool_of("3000")) == Range(-196_140, -195_900)  # type: ignore[arg-type]
    assert place_own_range(own("-196140", "-195900", "ticks"), pool_of("3000")) == Range(-196_140, -195_900)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lower", "upper", "hint"),
    [
        ("2.8", "3.4", "2800 3400"),
        ("2800000", "3400000", "2800 3400"),
        ("0.0028", "0.0034", "2800 3400"),
        ("0.0003", "0.0004", "2500 3333.33"),
    ],
)
@pytest.mark.parametrize("flipped", [False, True])
def test_another_unit_is_refused_with_what_may_be_meant(lower: str, upper: str, hint: str, flipped: bool) -> None:
    with pytest.raises(Refused) as refused:
        place_own_range(own(lower, upper), pool_of("3000", flipped=flipped))
    assert f"--range {hint}" in str(refused.value)


def test_a_range_beside_the_price_is_the_owners_to_name() -> None:
    pool = pool_of("3000")
    assert not place_own_range(own("3600", "4000"), pool).contains(pool.tick)


@pytest.mark.parametrize("edges", [("-887272", "0"), ("0", "887272")])
def test_what_lies_beyond_the_usable_ticks_is_refused(edges: tuple[str, str]) -> None:
    with pytest.raises(Refused):
        place_own_range(own(*edges, "ticks"), pool_of("3000"))


@pytest.mark.parametrize(
    ("prices", "ticks"),
    [
        (("3400", "2800"), None),
        (("2800", "2800"), None),
        (("0", "10"), None),
        (("-1", "10"), None),
        (("2800", "1e9"), None),
        (("2800", "٣٤٠٠"), None),
        (None, ("1.5", "3")),
        (None, ("-900000", "3")),
        (None, ("60", "-60")),
        (("1", "2"), ("1", "2")),
    ],
)
def test_what_is_no_range_is_asked_back(prices: tuple[str, str] | None, ticks: tuple[str, str] | None) -> None:
    with pytest.raises(UsageError):
        arguments.own_range(prices, ticks)


def test_prices_may_have_commas() -> None:
    assert arguments.own_range(("2,800", "3,400.5"), None) == own("2800", "3400.5")
    assert arguments.own_range(None, ("-60", "+60")) == own("-60", "60", "ticks")
    assert arguments.own_range(None, None) is None
