"""An invented market, told by its recording as venues would, in some weather: they fail, hang, stammer, get lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.wire.fakes.alerts import SeatInMemory
from tests.wire.fakes.series import MemorySeries
from tests.wire.fakes.venues import RecordedFigures, RecordedTexts, RecordedVenue
from zuno.adapters.venues.synthetic.path import draw_paths
from zuno.adapters.venues.synthetic.world import describe_origin, draw_batches
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.feeds import ALTERNATIVE, BINANCE, BYBIT, CHANNELS, DERIBIT, FRED, OKX, SEARCH, UPBIT, YAHOO
from zuno.markets.market import Symbol
from zuno.trading.data.intake import Sources
from zuno.trading.model.market import DAY_MS, MINUTE_MS, Feed, Heartbeat, Series, TapeEvent, Timeframe, basis
from zuno.trading.model.wanted import neighbour_series
from zuno.trading.ports.series import Batch, Origin, SeriesStore
from zuno.trading.service.collector import Collector, CollectView

END = Millis(1_767_225_600_000)
"""2026-01-01: the invented market's last moment."""
NOW = Callable[[], Millis]
OWN = Origin(False, "recorded")
EVER = Millis(2**62)
SEED = 11


@cache
def rows() -> tuple[tuple[Series[Any], tuple[Any, ...]], ...]:
    """Of one symbol, clean, and not more of it than a test reads: what is finer than hours for half a day, hours for
    ten."""
    given = draw_batches(SEED, {Symbol("BTCUSDT"): draw_paths(SEED)[Symbol("BTCUSDT")]})
    return tuple(
        (batch.series, tuple(row for row in batch.rows if row.at >= END - _reach(batch.series))) for batch in given
    )


def _reach(series: Series[Any]) -> int:
    if series.feed is Feed.CANDLES and not series.name.endswith(Timeframe.M1):
        return 500 * DAY_MS if series.name.endswith(("d", "w")) else 10 * DAY_MS
    return 120 * DAY_MS if series.feed in (Feed.MACRO, Feed.FEAR_GREED, Feed.FUNDING, Feed.DVOL) else DAY_MS // 2


async def market() -> MemorySeries:
    store = MemorySeries(describe_origin(SEED))
    marks = dict(rows())[basis(BINANCE, Symbol("BTCUSDT"))]
    beside = [
        Batch(series, marks) for series in neighbour_series(Symbol("BTCUSDT"))
    ]  # one symbol's past is enough to draw
    await store.write([*(Batch(series, given) for series, given in rows()), *beside])
    return store


def sources(store: SeriesStore, now: NOW, weather: Weather | None = None) -> Sources:
    def told(feed: Any) -> Any:
        return feed if weather is None else _Rough(feed, weather, now)

    venues = {
        name: told(RecordedVenue(store, name, now)) for name in (BINANCE, BYBIT, OKX, UPBIT, DERIBIT, ALTERNATIVE)
    }
    return Sources(
        candles=venues,
        derivatives=venues,
        books=venues,
        options=venues,
        macro={name: told(RecordedFigures(store, name, now)) for name in (FRED, YAHOO)},
        levels=venues,
        texts={
            SEARCH: told(RecordedTexts(store, Feed.NARRATIVE, SEARCH, now)),
            CHANNELS: told(RecordedTexts(store, Feed.NEWS, CHANNELS, now)),
        },
    )


@dataclass
class Weather:
    """How bad it is, and until when."""

    seed: int
    until: int
    bad: float = 0.4
    """How many answers of all are spoilt."""
    dice: random.Random = field(init=False)
    overlaps: list[str] = field(default_factory=list)
    """Questions that were asked while the same one was still open."""

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    def spoils(self, now: int) -> bool:
        return now < self.until and self.dice.random() < self.bad


class _Rough:
    """A feed in that weather."""

    def __init__(self, feed: Any, weather: Weather, now: NOW) -> None:
        self._feed = feed
        self._weather = weather
        self._now = now
        self._asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self._feed, name)
        if not callable(plain):
            return plain

        async def ask(*asked: Any) -> Any:
            question = f"{name}{[one for one in asked if not isinstance(one, int)]}"
            if question in self._asked:
                self._weather.overlaps.append(question)
            self._asked.add(question)
            try:
                return await self._spoilt(plain(*asked))
            finally:
                self._asked.discard(question)

        return ask

    async def _spoilt(self, answer: Any) -> Any:
        given = await answer
        if not self._weather.spoils(self._now()):
            return given
        dice = self._weather.dice
        match dice.choice(("fails", "talks nonsense", "has a bug of ours", "hangs", "is late", "stammers")):
            case "fails":
                raise Unavailable("the venue is away")
            case "talks nonsense":
                raise Malformed("the venue answered something else")
            case "has a bug of ours":
                raise LookupError
            case "hangs":
                await asyncio.sleep(1e6)
            case "is late":
                await asyncio.sleep(dice.uniform(1, 90))  # with what was true when it was asked
            case _ if isinstance(given, Sequence) and not isinstance(given, str):
                return dice.sample([*given, *given], 2 * len(given))
        return given


class Radio:
    """A venue's stream as it happens, lost now and then. Knows when somebody heard it."""

    def __init__(self, venue: str, heard: Sequence[tuple[Series[Any], Any]], now: NOW, weather: Weather) -> None:
        self.venue = venue
        self._items = sorted(heard, key=lambda item: item[1].at)
        self._now = now
        self._weather = weather
        self.intervals: list[tuple[int, int]] = []

    async def listen(self, symbols: Sequence[str]) -> AsyncGenerator[Any]:
        began, dice = self._now(), self._weather.dice
        if self._weather.spoils(began):
            raise Unavailable("the stream does not open")
        stays = dice.uniform(5_000, 400_000) if began < self._weather.until else 1e12
        silent = dice.random() < 0.2 and began < self._weather.until
        last = began
        try:
            while True:
                await asyncio.sleep(7)
                now = self._now()
                if now - began > stays:
                    if silent:
                        await asyncio.sleep(1e6)
                    raise Unavailable("the stream was lost")
                for series, row in self._items:
                    if isinstance(row, TapeEvent) and last <= row.at < now:
                        yield series, row
                for series, row in self._items:
                    if isinstance(row, Heartbeat) and began <= row.at and last <= row.at + MINUTE_MS < now:
                        yield series, row
                last = now
        finally:
            self.intervals.append((began, last))


def radio(venue: str, now: NOW, weather: Weather) -> Radio:
    heard = [
        (series, row)
        for series, given in rows()
        if series.venue == venue and series.feed in (Feed.LIQUIDATIONS, Feed.WHALES)
        for row in given
    ]
    return Radio(venue, heard, now, weather)


def collector(given: Sources, store: SeriesStore, now: NOW, seed: int = 1, **more: Any) -> Collector:
    return Collector(
        sources=given,
        store=store,
        seat=SeatInMemory(),
        symbols=[Symbol("BTCUSDT")],
        now=now,
        sleep=asyncio.sleep,
        chance=random.Random(seed).random,
        **more,
    )


async def collected(work: Collector, seconds: float, hear: Callable[[CollectView], None] = lambda view: None) -> Any:
    """Runs it for so long and ends it as it should be ended."""
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, stop.set)
    return await work.run(hear, stop)
