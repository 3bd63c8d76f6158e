"""How much faster than the market the collector is: `python benchmarks/collector.py`.

Prints one JSON line per figure and ends with 1 when a bar is missed. A recorded hour of one symbol is played as fast as
it goes: every feed polled at its own pace, every stream message by message, all of it into a store on disk with its
fsyncs. Waiting takes no time here, work does. The recording is of the synthetic market; the storm adds ten forced and
large trades in every second of it.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.figure import report
from tests.wire.collecting import END, OWN, collected, collector, rows, sources
from tests.wire.leaping import leaping
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.adapters.venues.synthetic.world import describe_origin
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, PERPETUALS
from zuno.trading.data.intake import is_streamed
from zuno.trading.model.market import (
    HOUR_MS,
    MINUTE_MS,
    Feed,
    Heartbeat,
    Series,
    Side,
    TapeEvent,
    alive,
    liquidations,
    whales,
)
from zuno.trading.ports.series import Batch

START = END - 2 * HOUR_MS
HOUR = 3_600.0
SPEED = 5.0
STORM = 10
"""Trades a second, all venues together."""
Heard = tuple[Series[Any], Any]


class Tape:
    """A venue's stream in the order it came, each message at its time."""

    def __init__(self, venue: str, heard: Sequence[Heard], now: Callable[[], Millis]) -> None:
        self.venue = venue
        self._heard = heard
        self._now = now

    async def listen(self, symbols: Sequence[str]) -> AsyncGenerator[Any]:
        for series, row in self._heard:
            due = row.at + MINUTE_MS if isinstance(row, Heartbeat) else row.at
            if due > self._now():
                await asyncio.sleep((due - self._now()) / 1_000)
            yield series, row
        await asyncio.Event().wait()


def hour_of(venue: str) -> list[Heard]:
    given = [(series, row) for series, mine in rows() if is_streamed(series) and series.venue == venue for row in mine]
    return [one for one in given if START <= one[1].at < START + HOUR_MS]


def storm_of(venue: str) -> list[Heard]:
    dice = random.Random(venue)
    kinds = (liquidations, whales) if venue == BINANCE else (liquidations,)
    found: list[Heard] = []
    for number in range(round(HOUR * STORM / len(PERPETUALS))):
        at, side = Millis(START + dice.randrange(HOUR_MS)), dice.choice(tuple(Side))
        price, size = dice.uniform(30_000, 40_000), dice.uniform(3, 20)
        series = dice.choice(kinds)(venue, "BTCUSDT")
        found.append((series, TapeEvent(at, side, price, size, price * size, str(number))))
    minutes = [Heartbeat(Millis(at)) for at in range(START, START + HOUR_MS, MINUTE_MS)]
    return [*found, *((alive(Feed.LIQUIDATIONS, venue, "BTCUSDT"), minute) for minute in minutes)]


def in_order(heard: Sequence[Heard]) -> list[Heard]:
    return sorted(heard, key=lambda one: one[1].at + (MINUTE_MS if isinstance(one[1], Heartbeat) else 0))


def hour(folder: Path, heard: dict[str, list[Heard]]) -> tuple[float, int]:
    """Seconds that the hour took, and how many rows of it were kept."""

    async def story(now: Callable[[], Millis]) -> tuple[float, int]:
        truth, store = SqliteSeries(folder / "truth", describe_origin(1)), SqliteSeries(folder / "own", OWN)
        await truth.write([Batch(series, mine) for series, mine in rows()])
        given = replace(sources(truth, now), tapes={venue: Tape(venue, mine, now) for venue, mine in heard.items()})
        await collector(given, store, now).once()  # the days before are no part of the hour
        before = sum(span.count for span in await store.spans())
        gc.collect()
        began = perf_counter()
        await collected(collector(given, store, now), HOUR)
        took = perf_counter() - began
        after = sum(span.count for span in await store.spans())
        await truth.close()
        await store.close()
        return took, after - before

    return leaping(START, story)


def main() -> int:
    good = True
    calm = {venue: in_order(hour_of(venue)) for venue in PERPETUALS}
    stormy = {venue: in_order([*hour_of(venue), *storm_of(venue)]) for venue in PERPETUALS}
    for name, heard in (("a recorded hour", calm), (f"a recorded hour with {STORM} trades a second", stormy)):
        with tempfile.TemporaryDirectory() as folder:
            took, kept = hour(Path(folder), heard)
        good &= report(
            f"{name}, collected",
            took,
            "s",
            HOUR,
            "the hour itself",
            1 / SPEED,
            times_real_time=round(HOUR / took, 1),
            rows=kept,
            messages=sum(map(len, heard.values())),
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
