"""The first feed that answers: order, reasons, staleness, and errors that are nobody's silence."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from zuno.adapters.prices.feeds import FirstThatAnswers
from zuno.kernel.errors import Broken, Malformed, Unavailable
from zuno.kernel.units import Seconds
from zuno.lp.model.market import HOUR, Fact, Pair, PricePoint, PriceSeries

ETH_USDC = Pair("ETH", "USDC")
NINE = 491_000 * HOUR
NOW = Seconds(NINE + 90)
LIMIT = Seconds(600)


class Scripted:
    """A feed that says what it was told to say."""

    def __init__(self, source: str, answer: int | Exception, age: int = 0, notes: tuple[str, ...] = ()) -> None:
        self.source = source
        self._answer = answer
        self._age = age
        self._notes = notes
        self.asked = 0

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        spot = await self.spot(pair, now)
        return replace(spot, value=PriceSeries(pair, (PricePoint(spot.as_of, spot.value),)))  # type: ignore[arg-type,return-value]

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        self.asked += 1
        if isinstance(self._answer, Exception):
            raise self._answer
        return Fact(Fraction(self._answer), self.source, Seconds(now - self._age), now, LIMIT, self._notes)


async def test_the_first_that_answers_ends_the_search() -> None:
    first, second = Scripted("service", 3000), Scripted("pool", 2999)
    fact = await FirstThatAnswers([first, second]).spot(ETH_USDC, NOW)
    assert (fact.value, fact.source, fact.notes) == (3000, "service", ())
    assert second.asked == 0


async def test_says_why_the_earlier_ones_did_not_answer() -> None:
    feeds = [
        Scripted("service", Unavailable("it is away")),
        Scripted("mirror", Malformed("row 3 is odd")),
        Scripted("pool", 2999, notes=("2 of 9 hours had no swap",)),
        Scripted("seed", 1),
    ]
    for fact in (
        await FirstThatAnswers(feeds).spot(ETH_USDC, NOW),
        await FirstThatAnswers(feeds).history(ETH_USDC, 1, NOW),
    ):
        assert fact.source == "pool"
        assert [note.partition(":")[0] for note in fact.notes[:2]] == ["service", "mirror"]
        assert len(fact.notes) == 3


async def test_when_all_fail_each_reason_is_named_and_kept() -> None:
    failures = [Unavailable("it is away"), Malformed("row 3 is odd")]
    feeds = [Scripted("service", failures[0]), Scripted("pool", failures[1])]
    with pytest.raises(Unavailable, match=r"ETH/USDC: service: .*; pool: ") as raised:
        await FirstThatAnswers(feeds).history(ETH_USDC, 24, NOW)
    assert isinstance(raised.value.__cause__, ExceptionGroup)
    assert list(raised.value.__cause__.exceptions) == failures


async def test_a_fresh_fact_is_preferred_to_a_stale_one() -> None:
    fact = await FirstThatAnswers([Scripted("service", 3000, age=601), Scripted("pool", 2999)]).spot(ETH_USDC, NOW)
    assert fact.source == "pool"
    assert "601 s" in fact.notes[0]


async def test_the_first_stale_fact_is_better_than_none_and_stays_stale() -> None:
    feeds = [Scripted("service", 3000, age=700), Scripted("pool", 2999, age=900), Scripted("seed", Unavailable("none"))]
    fact = await FirstThatAnswers(feeds).spot(ETH_USDC, NOW)
    assert (fact.source, fact.value, fact.stale, len(fact.notes)) == ("service", 3000, True, 3)


@pytest.mark.parametrize("error", [Broken("books disagree"), ZeroDivisionError("our own bug")])
async def test_what_is_not_silence_is_not_passed_over(error: Exception) -> None:
    with pytest.raises(type(error)):
        await FirstThatAnswers([Scripted("service", error), Scripted("pool", 2999)]).spot(ETH_USDC, NOW)


def test_names_everyone_it_would_ask() -> None:
    assert (
        FirstThatAnswers([Scripted("coingecko", 1), Scripted("pool swaps", 1)]).source == "coingecko, else pool swaps"
    )


def test_nobody_to_ask_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="feed"):
        FirstThatAnswers([])
