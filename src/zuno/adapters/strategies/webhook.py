"""Signals by webhook: `POST /NAME` on a port that serves nothing else, and the strategy made of them.

A signal says when it was sent and proves who sent it: by `X-Zuno-Time` and `X-Zuno-Signature`, the HMAC-SHA256 of
`TIME.BODY` in hex; or, of services that can send only a body, by `secret`, `time` and `id` in it. Each counts once; an
id with other targets is another signal, for such services tell the time by the second.
"""

import asyncio
import hmac
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address, ip_network
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from zuno.journal.port import Author, Journal
from zuno.kernel.arguments import parse_time
from zuno.kernel.canonical import canonical
from zuno.kernel.errors import Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, MINUTE_MS
from zuno.trading.model.own_strategies import OWN_SIGNAL, Signal

LATEST_MS: Final = 5 * MINUTE_MS
"""How far a signal's own time may be from ours."""
MOST_BODY: Final = 16 * 1024
MOST_CALLERS: Final = 32
"""At once: slow ones take no file handles from the desk."""
SHORTEST_SECRET: Final = 16
_REQUEST: Final = re.compile(rb"POST /([a-z][a-z0-9-]{0,31}) HTTP/1\.[01]\r\n")
_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 15.0
_STATUS: Final = {
    "taken": 200, "unsigned": 401, "source": 403, "unknown": 404, "replayed": 409, "too_large": 413, "unavailable": 503,
}  # fmt: skip
"""Of every other code 400."""
_LOG: Final = logging.getLogger(__name__)


class SignalRefused(Refused):
    """A signal that does not count; its text is the code that is answered and logged."""


class SignalBody(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, coerce_numbers_to_str=True)

    targets: dict[str, float]
    secret: str = ""
    time: str = ""
    id: str = ""


def check_signal(
    headers: Mapping[str, str], body: bytes, secret: str, now: Millis
) -> tuple[str, Millis, dict[str, float]]:
    """A mark that is the same whenever it is sent again, when that was, and its targets. `SignalRefused` unless its
    owner sent it just now."""
    try:
        content = SignalBody.model_validate_json(body)
    except ValidationError:
        raise SignalRefused("malformed") from None
    proof, due, sent = content.secret, secret, content.time
    mark = content.id and content.id + canonical(dict(content.targets)).decode()
    if (signature := headers.get("x-zuno-signature")) is not None:
        proof, sent = signature, headers.get("x-zuno-time", "")
        mark = due = hmac.new(secret.encode(), b"%s.%s" % (sent.encode(), body), sha256).hexdigest()
    if not hmac.compare_digest(proof.encode(), due.encode()):
        raise SignalRefused("unsigned")
    try:
        moment = parse_time(sent)
    except (UsageError, OverflowError):
        raise SignalRefused("malformed") from None
    if moment // DAY_MS != now // DAY_MS:
        raise SignalRefused("another_day")
    if abs(moment - now) > LATEST_MS:
        raise SignalRefused("late")
    if not mark:
        raise SignalRefused("malformed")
    return mark, moment, content.targets


@dataclass(frozen=True, slots=True)
class SignalListener:
    secrets: Mapping[str, str]
    """By strategy; short ones do not count, nor one of two strategies: each could speak for the other."""
    journal: Callable[[], Awaitable[Journal]]
    now: Callable[[], Millis]
    sources: Sequence[str] = ()
    """Addresses or networks that may call; empty: all."""
    _callers: set[asyncio.StreamWriter] = field(default_factory=set, init=False)

    async def take(self, name: str, source: str, headers: Mapping[str, str], body: bytes) -> None:
        """Store a signal that counts. `SignalRefused` for any other."""
        if self.sources and not any(ip_address(source) in ip_network(network) for network in self.sources):
            raise SignalRefused("source")
        secret = self.secrets.get(name, "")
        if len(secret) < SHORTEST_SECRET or [*self.secrets.values()].count(secret) > 1:
            raise SignalRefused("unsigned")
        mark, sent, targets = check_signal(headers, body, secret, self.now())
        request_id, journal = f"signal_{name}_{sha256(mark.encode()).hexdigest()[:32]}", await self.journal()
        if await journal.latest(1, request_id=request_id, kind=OWN_SIGNAL):
            raise SignalRefused("replayed")
        signal = Signal(name=name, targets=targets, sent=sent)
        await journal.append_once(kind=OWN_SIGNAL, author=Author("webhook"), payload=signal, request_id=request_id)

    async def serve(self, host: str, port: int) -> None:
        """Until it is cancelled. A port that is taken is tried again: one process of a home listens at a time."""
        while True:
            try:
                async with await asyncio.start_server(self._answer, host, port) as server:
                    await server.serve_forever()
            except OSError as error:
                _LOG.info("signals are not taken at %s port %d yet: %s", host, port, error.strerror)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._callers) >= MOST_CALLERS:
            writer.close()
            return
        self._callers.add(writer)
        try:
            async with asyncio.timeout(_SECONDS):
                code = await self._hear(reader, str(writer.get_extra_info("peername")[0]))
                lines = (f"HTTP/1.1 {_STATUS.get(code, 400)} {code}", "Content-Length: 0", "Connection: close", "", "")
                writer.write("\r\n".join(lines).encode())
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever calls so has no answer
        finally:
            self._callers.discard(writer)
            writer.close()

    async def _hear(self, reader: asyncio.StreamReader, source: str) -> str:
        head, name, code = await reader.readuntil(b"\r\n\r\n"), "?", "taken"
        try:
            if (asked := _REQUEST.match(head)) is None:
                raise SignalRefused("unknown")
            name, lines = asked[1].decode(), (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
            headers = {title.strip().lower(): value.strip() for title, _, value in lines}
            length = headers.get("content-length", "")
            if not re.fullmatch("[0-9]{1,9}", length):
                raise SignalRefused("malformed")
            if int(length) > MOST_BODY:
                raise SignalRefused("too_large")
            await self.take(name, source, headers, await reader.readexactly(int(length)))
        except ZunoError as error:
            code = str(error) if isinstance(error, SignalRefused) else "unavailable"
        _LOG.log(logging.INFO if code == "taken" else logging.WARNING, "signal of %s from %s: %s", name, source, code)
        return code


@dataclass(frozen=True, slots=True)
class WebhookStrategy:
    """Of the signals that came by a moment the one sent last; of several sent then, the one that came last."""

    name: str
    journal: Callable[[], Awaitable[Journal]]

    async def ask(self, at: Millis, view: bytes) -> Mapping[str, object]:
        entries = (await self.journal()).entries(kind=OWN_SIGNAL, request_id=f"signal_{self.name}_*")
        known = [(entry.at, Signal.model_validate(dict(entry.payload))) async for entry in entries if entry.at <= at]
        if not known:
            raise Unavailable("no signal has come yet")
        return sorted(known, key=lambda came: came[1].sent or came[0])[-1][1].targets
