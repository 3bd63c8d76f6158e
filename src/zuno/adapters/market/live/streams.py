"""Listening to a venue's stream, and knowing through which minutes it was there.

A minute is proven when the stream served us before it began and gave a sign of life, data or the answer to a ping,
after it ended: messages keep their order on a connection, so whatever was sent in between has come. Silence is asked
about every few seconds, and a stream that does not answer is lost. Minutes are the venue's: its own times, where data
carry them, correct our clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from zuno.adapters.market.live.exchange import INSTALL
from zuno.adapters.market.live.reading import Answer, parsed
from zuno.domain.errors import Unavailable
from zuno.domain.trading import MINUTE_MS, Alive, Series, Strike
from zuno.domain.units import Millis

WHALE_USD: Final = 100_000.0
MARGIN_MS: Final = 1_000
"""How far after its end a minute is taken for over: venues stamp a trade before they send it."""
LARGEST_MESSAGE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Manners:
    """Seconds: until the stream is open, between pings, and for the answer to one."""

    open_within: float = 10.0
    ping_every: float = 15.0
    pong_within: float = 10.0


STEADY: Final = Manners()


@dataclass(frozen=True, slots=True)
class Stream:
    """Where a venue's stream is, what is sent to it first, and how it is pinged where it has a way of its own."""

    name: str
    url: str
    hello: str | None = None
    ping: str | None = None


@dataclass(frozen=True, slots=True)
class News:
    """Trades of one message, and when the venue sent it."""

    at: Millis
    symbol: str
    rows: tuple[tuple[Series[Strike], Strike], ...]


class Begun:
    """The venue took our wish: from here on silence means that nothing happened."""


class Sign:
    """Something that is no news, such as the answer to a ping."""


Told: TypeAlias = News | Begun | Sign
Item: TypeAlias = tuple[Series[Strike], Strike] | tuple[Series[Alive], Alive]


@dataclass(slots=True)
class Watch:
    """Which minutes are proven, by signs of life."""

    _begun: int | None = None
    _ahead: int | None = None
    """How far the venue's clock is ahead of ours, at least: what it stamped, less when it came."""
    _next: int | None = field(default=None)

    def begin(self, now: Millis) -> None:
        if self._begun is None:
            self._begun = now

    def sign(self, now: Millis, stamped: Millis | None = None) -> Iterator[Alive]:
        """The minutes that this sign proves."""
        if stamped is not None:
            self._ahead = stamped - now if self._ahead is None else max(self._ahead, stamped - now)
        if self._begun is None:
            return
        ahead = self._ahead or 0
        if self._next is None or stamped is not None:
            first = -(-(self._begun + ahead) // MINUTE_MS) * MINUTE_MS
            self._next = first if self._next is None else max(self._next, first)
        while self._next + MINUTE_MS + MARGIN_MS <= now + ahead:
            yield Alive(Millis(self._next))
            self._next += MINUTE_MS


async def listening(
    stream: Stream,
    told: Callable[[Answer], Told],
    proven: Mapping[str, Sequence[Series[Alive]]],
    now: Callable[[], Millis],
    manners: Manners,
) -> AsyncIterator[Item]:
    """Everything a stream says until it is lost, which is `Unavailable`. `proven`: for each symbol the series whose
    minutes are."""
    errors, connect = _websockets(stream.name)
    watches = {symbol: Watch() for symbol in proven}
    try:
        async with (
            connect(
                stream.url,
                open_timeout=manners.open_within,
                close_timeout=1,
                ping_interval=None,  # we ask ourselves, because the answer is a proof
                max_size=LARGEST_MESSAGE,
            ) as socket,
            aclosing(_messages(socket, stream, manners)) as messages,
        ):
            if stream.hello is not None:
                await socket.send(stream.hello)
            async for message in messages:
                news = Sign() if message is None else told(_parsed(message, stream))
                seen = now()
                for symbol in _begins(news, stream, watches):
                    watches[symbol].begin(seen)
                stamped = news.at if isinstance(news, News) else None
                for row in news.rows if isinstance(news, News) else ():
                    yield row
                for symbol, watch in watches.items():
                    for minute in watch.sign(seen, stamped):
                        for series in proven[symbol]:
                            yield series, minute
    except errors as error:
        raise Unavailable(f"{stream.name}'s stream was lost ({type(error).__name__})") from None


def _begins(news: Told, stream: Stream, symbols: Collection[str]) -> Collection[str]:
    """Whose silence means something from here on. A venue that does not say that it took our wish has shown it for a
    symbol with the first news of it: until then it may be answering pings and serving nobody."""
    match news:
        case Begun():
            return symbols
        case News() if stream.hello is None and news.symbol in symbols:
            return (news.symbol,)
    return ()


def _parsed(message: str | bytes, stream: Stream) -> Answer:
    return parsed(message.encode() if isinstance(message, str) else message, f"{stream.name}'s stream")


async def _messages(socket: Any, stream: Stream, manners: Manners) -> AsyncGenerator[str | bytes | None, None]:
    """What comes; None when a ping was answered. `TimeoutError` when one was not.

    A venue with a ping of its own answers by a message; any message will do, for it came after we asked.
    """
    clock = asyncio.get_running_loop().time
    receiving: asyncio.Future[Any] | None = None
    answer: asyncio.Future[Any] | None = None
    due = clock() + manners.ping_every
    try:
        while True:
            receiving = receiving or asyncio.ensure_future(socket.recv())
            waiting = {receiving} if answer is None else {receiving, answer}
            done, _ = await asyncio.wait(waiting, timeout=max(0.0, due - clock()), return_when=asyncio.FIRST_COMPLETED)
            if receiving in done:
                message, receiving = receiving.result(), None
                if answer is not None and stream.ping is not None and not answer.done():
                    answer.set_result(None)
                yield message
            if answer is not None and answer.done():
                answer.result()
                answer, due = None, clock() + manners.ping_every
                yield None
            elif not done:
                if answer is not None:
                    raise TimeoutError
                answer = await _asked(socket, stream)
                due = clock() + manners.pong_within
    finally:
        if receiving is not None:
            receiving.cancel()


async def _asked(socket: Any, stream: Stream) -> asyncio.Future[Any]:
    if stream.ping is None:
        pong: asyncio.Future[Any] = asyncio.ensure_future(await socket.ping())
        return pong
    await socket.send(stream.ping)
    return asyncio.get_running_loop().create_future()


def _websockets(name: str) -> tuple[tuple[type[Exception], ...], Callable[..., Any]]:
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import WebSocketException
    except ImportError:
        raise Unavailable(f"{name}'s stream is read with websockets, which is not installed: {INSTALL}") from None
    return (WebSocketException, OSError, EOFError), connect
