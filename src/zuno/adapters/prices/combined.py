"""Price feeds made of other feeds: the first that answers, and one whose price right now is another's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from zuno.adapters.prices.hourly import SPOT_LIMIT, is_inverse
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Seconds
from zuno.lp.model.market import Fact, Pair, PriceSeries
from zuno.lp.ports.market import PriceFeed

T = TypeVar("T")


class FirstThatAnswers:
    """Asks the feeds in order. A fresh fact ends the search; a stale one is kept in case nobody has better.

    The fact keeps the source of the feed that gave it; its notes open with the reasons of those before.
    """

    def __init__(self, feeds: Sequence[PriceFeed]) -> None:
        if not feeds:
            raise ValueError("no price feed to ask")
        self._feeds = tuple(feeds)

    @property
    def source(self) -> str:
        return ", else ".join(feed.source for feed in self._feeds)

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        return await self._first(pair, lambda feed: feed.history(pair, hours, now))

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        return await self._first(pair, lambda feed: feed.spot(pair, now))

    async def _first(self, pair: Pair, ask: Callable[[PriceFeed], Awaitable[Fact[T]]]) -> Fact[T]:
        notes: list[str] = []
        failures: list[Exception] = []
        second_best: Fact[T] | None = None
        for feed in self._feeds:
            try:
                fact = await ask(feed)
            except (Unavailable, Malformed) as failure:
                notes.append(f"{feed.source}: {failure}")
                failures.append(failure)
                continue
            if not fact.stale:
                return replace(fact, notes=(*notes, *fact.notes))
            notes.append(f"{feed.source}: its last price is {fact.age} s old, more than {fact.limit} s")
            second_best = second_best or fact
        if second_best is not None:
            return replace(second_best, notes=(*notes, *second_best.notes))
        reasons = "; ".join(notes)
        raise Unavailable(f"No source priced {pair}: {reasons}") from ExceptionGroup("every feed failed", failures)


class WithReference:
    """`reference` gives whole quote tokens for one whole base token of `pair`, and is never the pool itself."""

    def __init__(self, feed: PriceFeed, pair: Pair, reference: Callable[[], Awaitable[Fraction]], label: str) -> None:
        self._feed = feed
        self._pair = pair
        self._reference = reference
        self._label = label

    @property
    def source(self) -> str:
        return f"{self._feed.source}, {self._label}"

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        return await self._feed.history(pair, hours, now)

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        inverse = is_inverse(pair, self._pair, self._label)
        price = await self._reference()
        return Fact(1 / price if inverse else price, self._label, now, now, SPOT_LIMIT)
