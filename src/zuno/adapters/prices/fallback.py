"""Several price feeds as one: the first that answers, and why the ones before it did not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

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
