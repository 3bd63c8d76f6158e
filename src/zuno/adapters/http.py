"""HTTP requests with bounds on time, attempts, waiting and size."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

import httpx2

from zuno.kernel.backoff import SPREAD, Backoff
from zuno.kernel.errors import Malformed, Unavailable, Unreachable, UsageError, ZunoError

TOO_MANY_REQUESTS = 429
WORTH_RETRYING = frozenset({408, TOO_MANY_REQUESTS})
SERVER_ERROR = 500
OK = 200
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
CLIENT_LOG = logging.getLogger("httpx2")
"""Its lines quote whole addresses."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How long and how often to try; all spans in seconds."""

    timeout: float = 10.0
    """For one whole attempt, however slowly the bytes come."""
    attempts: int = 3
    first_wait: float = 0.5
    longest_wait: float = 20.0
    """A server that asks for a longer wait is not waited for."""
    max_bytes: int = 2_000_000

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("a request needs at least one attempt")


PATIENCE = RequestLimits()


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status and body; the body is read only for the statuses in `reads`."""

    status: int
    body: bytes = b""


class RateLimited(Unavailable):
    """The server asked for a longer wait than ours."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class _RetryableFailure:
    reason: str
    asked_wait: float | None = None
    kind: type[Unavailable] = Unavailable


def is_loopback(url: str | None) -> bool:
    return url is not None and urlsplit(url).hostname in LOOPBACK


@dataclass(eq=False, repr=False)
class HttpClient:
    """Requests of one client. No error quotes a server or keeps a transport error: our key stays out of logs."""

    name: str
    client: httpx2.AsyncClient
    patience: RequestLimits
    _: KW_ONLY
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    reads: Collection[int] = (OK,)

    async def get(self, path: str, params: Mapping[str, str]) -> HttpAnswer:
        """The answer with its status; rate limits and server errors are retried, then raised."""
        return await self._answer("GET", path, {"params": dict(params)})

    async def post(self, path: str, document: object) -> HttpAnswer:
        """As `get`, for a body that must be harmless to send twice."""
        return await self._answer("POST", path, {"json": document})

    async def _answer(self, method: str, path: str, content: Mapping[str, Any]) -> HttpAnswer:
        patience = self.patience
        attempt = 1
        while True:
            outcome = await self._attempt(method, path, content)
            if isinstance(outcome, HttpAnswer):
                return outcome
            asked, last = outcome.asked_wait, attempt == patience.attempts
            if asked is not None and (last or asked > patience.longest_wait):
                raise RateLimited(f"{self.name} {outcome.reason} and asks to wait {asked:.0f} s", asked)
            if last:
                tries = "once" if attempt == 1 else f"{attempt} times"
                raise outcome.kind(f"{self.name} {outcome.reason}; tried {tries}")
            backoff = Backoff(patience.first_wait, patience.longest_wait, SPREAD)
            await self.sleep(backoff.delay(attempt, self.chance()) if asked is None else asked)
            attempt += 1

    async def _attempt(self, method: str, path: str, content: Mapping[str, Any]) -> HttpAnswer | _RetryableFailure:
        try:
            async with (
                asyncio.timeout(self.patience.timeout),
                self.client.stream(method, path, **content) as response,
            ):
                if response.status_code in WORTH_RETRYING or response.status_code >= SERVER_ERROR:
                    limited = response.status_code == TOO_MANY_REQUESTS
                    reason = "limits our requests (HTTP 429)" if limited else f"failed (HTTP {response.status_code})"
                    return _RetryableFailure(reason, asked_wait(response.headers))
                if response.status_code not in self.reads:
                    return HttpAnswer(response.status_code)
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > self.patience.max_bytes:
                        raise Malformed(f"{self.name} answered with more than {self.patience.max_bytes} bytes")
                return HttpAnswer(response.status_code, bytes(body))
        except (TimeoutError, httpx2.TimeoutException):
            return _RetryableFailure(f"did not answer within {self.patience.timeout:g} s")
        except httpx2.ConnectError:
            return _RetryableFailure("could not be reached", kind=Unreachable)
        except httpx2.TransportError as error:
            return _RetryableFailure(f"broke off ({type(error).__name__})")
        except httpx2.DecodingError as error:
            raise Malformed(f"{self.name} answered in bytes that do not decompress") from error


class SecretFilter(logging.Filter):
    """Drops log lines that hold the secret, plain or URL-encoded."""

    def __init__(self, secret: str) -> None:
        super().__init__()
        self._secret = secret

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        return not any(self._secret in text for text in (message, unquote(message), unquote_plus(message)))


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds: a number, or a date compared with the server's own Date. Header names are lower case."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        until, now = parsedate_to_datetime(text), parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (until - now).total_seconds())
    except (TypeError, ValueError):
        return None


class DeadManPing:
    """A dead man's switch: a URL is asked after every round, so that whoever keeps it sees when none comes any more.

    Never raises. A failure is logged once, until a ping gets through again; the URL, which is a secret, never is."""

    def __init__(self, url: str, part: str, *, timeout: float = 5.0) -> None:
        """`part`: takes the place of `{part}` in the URL. `UsageError` for what is none."""
        try:
            whole = httpx2.URL(url.replace("{part}", part))
        except httpx2.InvalidURL:
            raise UsageError("ZUNO_PING_URL is no URL that can be asked.") from None
        self._url, self._query = str(whole.copy_with(query=None)).rstrip("/"), dict(whole.params)
        self._limits = RequestLimits(timeout=timeout, attempts=1)
        self._failing = False
        CLIENT_LOG.addFilter(SecretFilter(self._url))

    async def __call__(self, ok: bool) -> None:
        url = self._url if ok else f"{self._url}/fail"
        try:
            async with httpx2.AsyncClient(timeout=self._limits.timeout, follow_redirects=False) as client:
                answer = await HttpClient("the ping's server", client, self._limits, reads=()).get(url, self._query)
            if answer.status >= 300:
                raise Unavailable(f"the ping's server answers HTTP {answer.status}")
            self._failing = False
        except (ZunoError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            if not self._failing:
                known = error if isinstance(error, ZunoError) else type(error).__name__
                _LOG.warning("no ping (ZUNO_PING_URL): %s; the desk goes on", known)
            self._failing = True
