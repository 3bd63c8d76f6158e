"""The small market as of this very moment, at every venue at once, for whole processes on the machine's own clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from tests.wire.vendors import binance, bybit, deribit, figures, okx, upbit, words
from tests.wire.vendors.serving import Query, Route, Vendor, vendor
from tests.wire.vendors.stream import streaming
from tests.wire.vendors.world import World
from zuno.kernel.units import Millis
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Book,
    Candle,
    Funding,
    Level,
    MacroRelease,
    MarkAndIndex,
    OptionChain,
    Text,
    Timeframe,
)

KEPT = {Timeframe.M1: 7 * DAY_MS, Timeframe.H1: 200 * DAY_MS}


def wave(at: int, step: int) -> int:
    """The same moment has the same numbers, whoever asks and whenever."""
    return at // step * 7 % 13


def bar(at: int, timeframe: Timeframe) -> Candle:
    height = wave(at, timeframe.millis)
    price = 60_000.0 + 25.5 * height
    return Candle(Millis(at), price, price + 40.25, price - 31.5, price + 8.75, 12.5 + height, 6.25 + height / 4)


class Living:
    """What `World` is, as of now."""

    hours = 8.0

    def __init__(self, timeframe: Timeframe = Timeframe.H1) -> None:
        self.timeframe = timeframe
        self._still = World()

    @property
    def now(self) -> int:
        return time.time_ns() // 1_000_000

    @property
    def candles(self) -> list[Candle]:
        now, step = self.now, self.timeframe.millis
        first = self.timeframe.floor(now - KEPT.get(self.timeframe, 1_200 * step))
        return [bar(at, self.timeframe) for at in range(first, now + 1, step)]

    @property
    def funding(self) -> list[Funding]:
        return [Funding(at.at, round(1e-5 * (1 + at.value), 8), 8.0) for at in self._points(8 * HOUR_MS, 200 * DAY_MS)]

    @property
    def funding_next(self) -> Funding:
        return Funding(Millis(self.now), 0.00012, 8.0)

    @property
    def open_interest(self) -> list[Level]:
        """Every five minutes of the last two days, as it would be asked for, and every hour before."""
        fine = self._points(5 * MINUTE_MS, 2 * DAY_MS)
        return [*(one for one in self._points(HOUR_MS, 31 * DAY_MS) if one.at < fine[0].at), *fine]

    long_short = open_interest

    @property
    def basis(self) -> MarkAndIndex:
        return MarkAndIndex(Millis(self.now), 60_012.5, 60_001.25)

    @property
    def book(self) -> Book:
        return Book(Millis(self.now), self._still.book.bids, self._still.book.asks)

    @property
    def chain(self) -> OptionChain:
        return OptionChain(Millis(self.now), self._still.chain.quotes)

    @property
    def dvol(self) -> list[Level]:
        return self._points(HOUR_MS, 32 * DAY_MS)

    @property
    def prints(self) -> list[MacroRelease]:
        return [
            MacroRelease(one.at, one.value, Millis(one.at + 30 * HOUR_MS))
            for one in self._points(DAY_MS, 100 * DAY_MS)[:-3]
        ]

    @property
    def levels(self) -> list[Level]:
        return self._points(DAY_MS, 32 * DAY_MS)

    @property
    def texts(self) -> list[Text]:
        return [Text(Millis(self.now), words.CHANNEL, "7", "Bitcoin was calm")]

    def _points(self, step: int, reach: int) -> list[Level]:
        now = self.now
        return [
            Level(Millis(at), 40.0 + wave(at, MINUTE_MS)) for at in range((now - reach) // step * step, now + 1, step)
        ]


@dataclass
class Venues:
    """All of them, and the settings that lead to them."""

    environment: dict[str, str] = field(default_factory=dict)
    rest: dict[str, Vendor] = field(default_factory=dict)


def by_interval() -> dict[str, Route]:
    """Binance's paths; bars of every length."""
    worlds: dict[str, Any] = {timeframe: binance.routes(Living(timeframe)) for timeframe in Timeframe}  # type: ignore[arg-type]

    def of(path: str) -> Callable[[Query], Any]:
        return lambda query: worlds[query["interval"]][path](query)

    return {**worlds[Timeframe.H1], **{path: of(path) for path in ("/fapi/v1/klines", "/api/v3/klines")}}


def upbit_paths() -> dict[str, Route]:
    minutes, hours = (upbit.routes(Living(one)) for one in (Timeframe.M1, Timeframe.H1))  # type: ignore[arg-type]
    return {**hours, "/v1/candles/minutes/1": minutes["/v1/candles/minutes/1"]}


async def chatting(socket: ServerConnection, name: str) -> None:
    """A forced trade every now and then, for as long as somebody listens; some answer pings in words of their own."""
    forced: Callable[[int], str] = {"BINANCE": binance.forced, "BYBIT": bybit.forced, "OKX": okx.forced}[name]  # type: ignore[assignment]
    with suppress(ConnectionClosed):
        if name != "BINANCE":
            await socket.recv()
            await socket.send(bybit.taken() if name == "BYBIT" else okx.taken())
        due = 0.0
        while True:
            if time.monotonic() >= due:
                due = time.monotonic() + 0.2
                at = time.time_ns() // 1_000_000
                await socket.send(forced(at))
                if name == "OKX":
                    await socket.send(okx.mark(at))
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await socket.recv()
                await socket.send("pong" if name == "OKX" else bybit.taken(op="ping"))


@asynccontextmanager
async def venues() -> AsyncIterator[Venues]:
    world: Any = Living()
    paths = {
        "BINANCE": by_interval(),
        "BYBIT": bybit.routes(world),
        "OKX": okx.routes(world),
        "UPBIT": upbit_paths(),
        "DERIBIT": deribit.routes(world),
        "FRED": figures.fred(world),
        "YAHOO": figures.yahoo(world),
        "FEAR_GREED": figures.fear_greed(world),
        "PERPLEXITY": words.search(world),
    }
    here = Venues({"ZUNO_FRED_API_KEY": figures.KEY, "ZUNO_PERPLEXITY_API_KEY": words.KEY})
    async with AsyncExitStack() as stack:
        for name, routes in paths.items():
            here.rest[name] = await stack.enter_async_context(vendor(routes))
            here.environment[f"ZUNO_{name}_URL"] = here.rest[name].url + ("/fred" if name == "FRED" else "")
        for name in ("BINANCE", "BYBIT", "OKX"):
            stream = await stack.enter_async_context(streaming(lambda socket, name=name: chatting(socket, name)))  # type: ignore[misc]
            here.environment[f"ZUNO_{name}_STREAM_URL"] = stream.url
        yield here
