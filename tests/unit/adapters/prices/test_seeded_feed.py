"""The seeded feed: always labelled, never filled in, and the sim's own records fit it as they are."""

from __future__ import annotations

from fractions import Fraction

import pytest

from zuno.adapters.prices.feeds import SeededFeed
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Seconds
from zuno.lp.model.market import HOUR, Pair

ETH_USDC = Pair("ETH", "USDC")
NINE = 491_000 * HOUR
NOW = Seconds(NINE + 90)


def seeded(*records: tuple[int, int]) -> SeededFeed:
    """A feed of (seconds from nine o'clock, price)."""
    given = [(Seconds(NINE + offset), Fraction(price)) for offset, price in records]
    return SeededFeed(ETH_USDC, lambda: given)


async def test_every_fact_says_seed() -> None:
    feed = seeded((0, 3000))
    assert feed.source == "seed"
    assert (await feed.history(ETH_USDC, 1, NOW)).source == "seed"
    assert (await feed.spot(ETH_USDC, NOW)).source == "seed"


async def test_the_last_record_of_an_hour_is_its_close_its_end_included() -> None:
    series = (await seeded((-3700, 1), (-3600, 2), (-3599, 3), (-20, 4), (0, 5)).history(ETH_USDC, 2, NOW)).value
    assert [(point.at - NINE, point.price) for point in series.points] == [(-HOUR, 2), (0, 5)]


async def test_a_move_within_the_running_hour_is_the_spot_and_in_no_close() -> None:
    feed = seeded((0, 3000), (12, 2700), (24, 2600))
    assert [point.price for point in (await feed.history(ETH_USDC, 24, NOW)).value.points] == [3000]
    spot = await feed.spot(ETH_USDC, NOW)
    assert (spot.value, spot.age) == (2600, 66)
    assert (await feed.spot(ETH_USDC, Seconds(NINE + 12))).value == 2700


async def test_an_hour_without_a_record_is_a_gap() -> None:
    series = (await seeded((-3 * HOUR, 1), (0, 2)).history(ETH_USDC, 4, NOW)).value
    assert ([point.at - NINE for point in series.points], series.gaps) == ([-3 * HOUR, 0], 2)


async def test_a_world_that_moves_is_read_anew() -> None:
    records = [(Seconds(NINE), Fraction(3000))]
    feed = SeededFeed(ETH_USDC, lambda: records)
    before = await feed.spot(ETH_USDC, NOW)
    records.append((Seconds(NINE + 12), Fraction(2700)))
    assert ((await feed.spot(ETH_USDC, NOW)).value, before.value) == (2700, 3000)


async def test_weth_counts_as_eth() -> None:
    feed = seeded((0, 3000))
    assert (await feed.spot(Pair("WETH", "USDC"), NOW)).value == 3000
    assert (await feed.spot(Pair("USDC", "WETH"), NOW)).value == Fraction(1, 3000)


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        (((0, 0),), "not above zero"),
        (((0, -1),), "not above zero"),
        (((0, 1), (-HOUR, 1)), "order of time"),
        (((0, 1), (0, 2)), "order of time"),
    ],
)
async def test_a_series_that_is_none_is_malformed(records: tuple[tuple[int, int], ...], sentence: str) -> None:
    with pytest.raises(Malformed, match=sentence):
        await seeded(*records).history(ETH_USDC, 24, NOW)
