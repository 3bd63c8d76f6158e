"""Listen to a venue's stream, and record which minutes are proven complete.

A minute is proven when the stream served us before it began and sent something after it ended: messages keep their
order on a connection. When a message was read proves nothing: data prove up to the venue's own time stamp, and the
answer to a ping up to the moment the ping was sent. A silent stream is pinged every few seconds, and one that does not
answer is lost. Minutes are the venue's: before its first stamp nothing is proven. A venue may answer pings and have
forgotten a symbol: of one that was not heard for a minute nothing more is proven until it is heard again.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto
from itertools import product
from typing import Any, Final, TypeAlias

from zuno.adapters.venues.vendor_json import VendorJson, parse_json
from zuno.kernel.errors import Unavailable
from zuno.kernel.installation import name_install
from zuno.kernel.units import Millis
from zuno.trading.model.market import MINUTE_MS, Heartbeat, Series, TapeEvent

MARGIN_MS: Final = 1_000
"""How far after its end a minute is taken for over: venues stamp a trade before they send it."""
LONGEST_SILENCE: Final = MINUTE_MS
"""How far beyond a symbol's own last stamp anything else proves."""
LARGEST_MESSAGE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """Seconds: until the stream is open, between pings, and for the answer to one."""

    open_within: float = 10.0
    ping_every: float = 15.0
    pong_within: float = 10.0


USUAL_TIMING: Final = StreamTiming()


@dataclass(frozen=True, slots=True)
class StreamAddress:
    """Where a venue's stream is, what is sent to it first, and how it is pinged where it has a way of its own."""

    name: str
    url: str
    hello: str | None = None
    ping: str | None = None
    pong: str | None = None
    """Its answer to a ping, where that is a bare word and no JSON."""


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """Trades of one message, and when the venue sent it; None where it does not say, which proves nothing."""

    at: Millis | None
    symbol: str
    rows: tuple[tuple[Series[TapeEvent], TapeEvent], ...]


class StreamSign(Enum):
    SUBSCRIBED = auto()
    """The venue confirmed the subscription: from here on silence means that nothing happened."""
    PONG = auto()
    """The answer to a ping in the venue's own words."""
    ASIDE = auto()
    """A message that proves nothing."""


@dataclass(frozen=True, slots=True)
class PingAnswered:
    asked: Millis
    """When the ping was sent."""


StreamEvent: TypeAlias = StreamMessage | StreamSign
ParseMessage: TypeAlias = Callable[[VendorJson], StreamEvent]
Item: TypeAlias = tuple[Series[TapeEvent], TapeEvent] | tuple[Series[Heartbeat], Heartbeat]


@dataclass(slots=True)
class ProvenMinutes:
    """Which minutes of a symbol are proven, by what the venue stamped and by pings it answered."""

    _begun: bool = False
    _ahead: int | None = None
    """How far the venue's clock was ahead of ours at its newest stamp, at least: the stamp, less when it was read."""
    _heard: int | None = None
    """The symbol's own newest stamp."""
    _next: int | None = None

    def begin(self) -> None:
        self._begun = True

    def prove_by_stamp(self, at: Millis, read: Millis, *, own: bool = True) -> Iterator[Heartbeat]:
        """The minutes proven by a message of venue time `at`, read at `read`. `own`: it is about this symbol."""
        self._ahead = at - read
        if own:
            self._heard = at if self._heard is None else max(at, self._heard)
            if self._begun and self._next is None:
                self._next = -(-at // MINUTE_MS) * MINUTE_MS
        return self._until(at)

    def prove_by_pong(self, asked: Millis) -> Iterator[Heartbeat]:
        return iter(()) if self._ahead is None else self._until(asked + self._ahead)

    def _until(self, end: int) -> Iterator[Heartbeat]:
        if self._heard is not None:
            end = min(end, self._heard + LONGEST_SILENCE)
        while self._next is not None and self._next + MINUTE_MS + MARGIN_MS <= end:
            yield Heartbeat(Millis(self._next))
            self._next += MINUTE_MS


@dataclass(eq=False)
class VenueTape:
    """A venue's stream and its timing. `steady`: a monotonic clock; one that is set meanwhile would prove wrong
    minutes."""

    steady: Callable[[], Millis]
    url: str
    _: KW_ONLY
    timing: StreamTiming = USUAL_TIMING

    async def listen_to(
        self, stream: StreamAddress, parse: ParseMessage, proven: Mapping[str, Sequence[Series[Heartbeat]]]
    ) -> AsyncGenerator[Item]:
        """Everything a stream sends until it is lost, which is `Unavailable`. `proven`: for each symbol the series of
        its proven minutes. Silence means something from the confirmation on; where none comes, from a symbol's first
        message on."""
        errors, connect = _websockets(stream.name)
        minutes = {symbol: ProvenMinutes() for symbol in proven}
        try:
            async with (
                connect(
                    stream.url,
                    open_timeout=self.timing.open_within,
                    close_timeout=1,
                    ping_interval=None,  # we ask ourselves, because the answer is a proof
                    max_size=LARGEST_MESSAGE,
                ) as socket,
                aclosing(self._messages(socket, stream, parse)) as messages,
            ):
                if stream.hello is not None:
                    await socket.send(stream.hello)
                async for message in messages:
                    fresh: dict[str, Iterator[Heartbeat]] = {}
                    match message:
                        case StreamSign.SUBSCRIBED:
                            for proof in minutes.values():
                                proof.begin()
                        case StreamMessage(at, own, rows):
                            read = None if at is None else self.steady()
                            if stream.hello is None and own in minutes:
                                minutes[own].begin()
                            for row in rows:
                                yield row
                            if at is not None and read is not None:
                                fresh = {
                                    symbol: proof.prove_by_stamp(at, read, own=symbol == own)
                                    for symbol, proof in minutes.items()
                                }
                        case PingAnswered(asked):
                            fresh = {symbol: proof.prove_by_pong(asked) for symbol, proof in minutes.items()}
                    for symbol, beats in fresh.items():
                        for minute, series in product(beats, proven[symbol]):
                            yield series, minute
        except errors as error:
            raise Unavailable(f"{stream.name}'s stream was lost ({type(error).__name__})") from None

    async def _messages(
        self, socket: Any, stream: StreamAddress, parse: ParseMessage
    ) -> AsyncGenerator[StreamEvent | PingAnswered, None]:
        """Messages and answered pings. `TimeoutError` for an unanswered ping, whatever else arrived."""
        loop = asyncio.get_running_loop()
        receiving: asyncio.Future[Any] | None = None
        answer: asyncio.Future[Any] | None = None
        asked = Millis(0)
        due = loop.time() + self.timing.ping_every
        try:
            while True:
                receiving = receiving or asyncio.ensure_future(socket.recv())
                waiting = {receiving} if answer is None else {receiving, answer}
                patience = max(0.0, due - loop.time())
                done, _ = await asyncio.wait(waiting, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                if receiving in done:
                    message, receiving = _read_event(receiving.result(), stream, parse), None
                    if message is StreamSign.PONG and answer is not None and not answer.done():
                        answer.set_result(None)
                    yield message
                if answer is not None and answer.done():
                    answer.result()
                    answer, due = None, loop.time() + self.timing.ping_every
                    yield PingAnswered(asked)
                elif not done:
                    if answer is not None:
                        raise TimeoutError
                    asked = self.steady()
                    if stream.ping is None:
                        answer = asyncio.ensure_future(await socket.ping())
                    else:
                        await socket.send(stream.ping)
                        answer = loop.create_future()
                    due = loop.time() + self.timing.pong_within
        finally:
            if receiving is not None:
                receiving.cancel()


def _read_event(message: str | bytes, stream: StreamAddress, parse: ParseMessage) -> StreamEvent:
    if stream.pong is not None and message == stream.pong:
        return StreamSign.PONG
    return parse(parse_json(message.encode() if isinstance(message, str) else message, f"{stream.name}'s stream"))


def _websockets(name: str) -> tuple[tuple[type[Exception], ...], Callable[..., Any]]:
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import WebSocketException
    except ImportError:
        raise Unavailable(
            f"{name}'s stream is read with websockets, which is not installed: {name_install('exchanges')}"
        ) from None
    return (WebSocketException, OSError, EOFError), connect
