"""An exchange's REST interface through ccxt's transport, raw endpoints only. No error quotes an exchange but for its
reason to decline; nothing is logged, because ccxt would log headers and signed addresses."""

import asyncio
import logging
import math
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from zuno.adapters.http import RateLimited, RequestLimits, asked_wait
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel import foreign_json
from zuno.kernel.backoff import Backoff
from zuno.kernel.errors import Malformed, Refused, Unavailable, Unreachable, ZunoError
from zuno.kernel.installation import name_install

PATIENCE: Final = RequestLimits(max_bytes=8_000_000)
"""A list of every option is a megabyte or two."""
LIMITED: Final = frozenset({418, 429})
PAUSE: Final = 10.0
"""Seconds of silence after an exchange limited us without saying for how long."""
BAN: Final = 600.0
"""The same, where it banned our address."""

Params = Mapping[str, object] | Sequence[Mapping[str, object]]
"""Of a request: fields, or a list of such where an endpoint takes several at once."""
SILENT: Final = logging.Logger("silent", logging.CRITICAL + 1)


class NotListed(Unavailable):
    """The exchange has no such market."""


MAPPED: Final[Mapping[str, tuple[type[ZunoError], str]]] = {
    "BadSymbol": (NotListed, "does not know that symbol"),
    "BadRequest": (Unavailable, "does not take that request"),
    "AuthenticationError": (Unavailable, "does not let us in"),
    "PermissionDenied": (Unavailable, "does not let us in"),
    "RestrictedLocation": (Unavailable, "does not serve this place"),
    "OnMaintenance": (Unavailable, "is under maintenance"),
    "DDoSProtection": (Unavailable, "limits our requests"),
    "RateLimitExceeded": (Unavailable, "limits our requests"),
    "RequestTimeout": (Unavailable, "did not answer in time"),
    "ExchangeNotAvailable": (Unreachable, "could not be reached"),
    "BadResponse": (Malformed, "answered something that is no answer"),
    "ChecksumError": (Malformed, "answered something that is no answer"),
    "NetworkError": (Unreachable, "could not be reached"),
    "OperationFailed": (Unavailable, "failed"),
    "ExchangeError": (Unavailable, "declined"),
    "UnsubscribeError": (Unavailable, "declined"),
}
"""ccxt's errors by the name of their nearest ancestor here."""
WORTH_RETRYING: Final = frozenset({"RequestTimeout", "ExchangeNotAvailable", "NetworkError", "OperationFailed"})


@dataclass(frozen=True, slots=True)
class ExchangeVendor:
    """An exchange as ccxt and as people call it."""

    ccxt_id: str
    name: str
    host: str | None = None
    """Whether it can be reached is checked before ccxt is loaded, which takes seconds; None: not checked."""
    envelope: str | None = None
    """The field that every answer of it opens with, where there is one."""
    read_decline: Callable[[object], tuple[str, str] | None] | None = None
    """Code and reason in an answer that declines a request; None for an answer of another form. Such an answer is
    `VenueDeclined` to a client that sends orders."""
    pace_ms: int | None = None
    """Between two requests of weight 1, where the exchange allows a faster pace than ccxt's."""
    declines_with_ok: bool = False
    """An answer that declines comes with HTTP 200, too."""
    limit_codes: frozenset[str] = frozenset()
    """Codes in such an answer that mean: too many requests."""
    ban_statuses: frozenset[int] = frozenset()
    """HTTP statuses of an answer without words that bans an address for a while."""
    deadline: tuple[str, int] | None = None
    """A header with the moment after which the exchange carries a request out no more, and milliseconds until then."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    key: str = field(repr=False)
    """Where keys are those of a wallet: the address of the account."""
    secret: str = field(repr=False)
    passphrase: str = field(default="", repr=False)


class VenueDeclined(Refused):
    """The exchange declined a request (HTTP 4xx, or 200 where it declines so): it did nothing."""

    def __init__(self, name: str, status: int, code: str, reason: str) -> None:
        super().__init__(f"{name} declined: {reason} ({code})")
        self.status = status
        self.code = code
        self.reason = reason


@dataclass(eq=False, repr=False)
class ExchangeClient:
    """One exchange's endpoints, by ccxt's names; those of an account need `keys`; `demo`: its demo trading. `url`
    replaces the exchange's address. While a rate limit lasts, questions fail without being sent."""

    vendor: ExchangeVendor
    url: str | None = None
    _: KW_ONLY
    keys: ApiKeys | None = None
    demo: bool = False
    patience: RequestLimits = PATIENCE
    throttled: bool = True
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.name = self.vendor.name
        self._quiet_until = -math.inf
        self._ccxt: Any = None
        self._reached = False

    async def ask(self, endpoint: str, what: str, **params: object) -> VendorJson:
        """The answer of a raw endpoint; `what` names it in errors."""
        return await self._ask(endpoint, what, params, self.patience.attempts)

    async def _ask(self, endpoint: str, what: str, params: Params, attempts: int) -> VendorJson:
        attempt = 1
        while True:
            left = self._quiet_until - self.monotonic()
            if left > 0:
                raise RateLimited(f"{self.name} limits our requests; {math.ceil(left)} s are left to wait", left)
            try:
                await self._reach()
                own = dict(params) if isinstance(params, Mapping) else [*map(dict, params)]  # ccxt adds fields to them
                return VendorJson(f"{self.name}'s {what}", await getattr(self.opened, endpoint)(own))
            except RateLimited as asked:
                self._quiet_until = self.monotonic() + asked.seconds
                raise
            except Unreachable:
                if attempt >= attempts:
                    raise
            except ZunoError:
                raise
            except Exception as error:
                fault, again = self._translate(error, what)
                if not again or attempt >= attempts:
                    raise fault from None
            await self.sleep(Backoff(self.patience.first_wait, self.patience.longest_wait).delay(attempt))
            attempt += 1

    async def close(self) -> None:
        if self._ccxt is not None:
            opened, self._ccxt = self._ccxt, None
            await opened.close()

    async def _reach(self) -> None:
        """`Unreachable` where no connection comes about."""
        address = self.url or (self.vendor.host and f"https://{self.vendor.host}")
        if self._reached or self._ccxt is not None or not address:
            return
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            async with asyncio.timeout(self.patience.timeout):
                _, writer = await asyncio.open_connection(parts.hostname, port)
        except OSError:  # a timeout is one
            raise Unreachable(f"{self.name} could not be reached") from None
        writer.close()
        self._reached = True

    def _translate(self, error: Exception, what: str) -> tuple[ZunoError, bool]:
        """ccxt's error as one of ours, and whether to ask again. What is not ccxt's is our own bug."""
        kind = nearest_known(error)
        if kind is None:
            raise error
        if type(error).__name__ == "ExchangeError" and type(error.__cause__).__module__.startswith("aiohttp"):
            return Unavailable(f"{self.name} broke off in the middle of its {what}"), True
        tree, words = MAPPED[kind]
        if words == "limits our requests":
            self._quiet_until = self.monotonic() + PAUSE
        return tree(f"{self.name} {words} ({what}; {type(error).__name__})"), kind in WORTH_RETRYING

    @property
    def opened(self) -> Any:
        """ccxt's own client."""
        if self._ccxt is None:
            try:
                import ccxt.async_support as vendors
            except ImportError:
                raise Unavailable(
                    f"{self.name} is read with ccxt, which is not installed: {name_install('exchanges')}"
                ) from None
            vendor = self.vendor if self.keys is not None else replace(self.vendor, read_decline=None)
            kind = _bounded_class(getattr(vendors, vendor.ccxt_id), vendor, self.patience.max_bytes)
            options = {"timeout": round(self.patience.timeout * 1_000), "enableRateLimit": self.throttled}
            opened = kind(options if vendor.pace_ms is None else {**options, "rateLimit": vendor.pace_ms})
            opened.timeout_on_exit = 0
            if self.keys is not None and opened.requiredCredentials["privateKey"]:
                opened.walletAddress, opened.privateKey = self.keys.key, self.keys.secret
            elif self.keys is not None:
                opened.apiKey, opened.secret = self.keys.key, self.keys.secret
                opened.password = self.keys.passphrase
            if self.demo:
                trades_on_demo = opened.urls.keys() & {"demo", "demotrading"}
                (opened.enable_demo_trading if trades_on_demo else opened.set_sandbox_mode)(True)
            opened.ssl_context = _certificates(opened.cafile)
            if self.url is not None:
                here, urls = self.url.rstrip("/"), opened.urls["api"]
                opened.urls["api"] = {
                    part: here + urlsplit(url).path if isinstance(url, str) else url for part, url in urls.items()
                }
            self._ccxt = opened
        return self._ccxt


class ExchangeFeed:
    def __init__(self, exchange: ExchangeClient) -> None:
        self._exchange = exchange
        self.close = exchange.close


@cache
def _certificates(file: str) -> ssl.SSLContext:
    """Shared, because loading them takes longer than asking a question."""
    return ssl.create_default_context(cafile=file)


def nearest_known(error: BaseException) -> str | None:
    return next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in MAPPED), None)


def _bounded_class(kind: Any, vendor: ExchangeVendor, max_bytes: int) -> Any:
    """ccxt's class of an exchange, reading no more than it should and telling limits from other refusals."""
    import aiohttp

    class Bounded(aiohttp.ClientResponse):
        async def read(self) -> bytes:
            body = bytearray()
            async for chunk in self.content.iter_chunked(1 << 16):
                body += chunk
                if len(body) > max_bytes:
                    self.close()
                    raise Malformed(f"{vendor.name} answered with more than {max_bytes} bytes")
            self._body = bytes(body)
            return self._body

    class Careful(kind):  # type: ignore[misc]
        session: Any
        logger = SILENT

        def open(self, lazy: bool = False) -> None:
            fresh = self.session is None
            super().open(lazy)
            if fresh:
                self.session.detach()  # keeps the connector, with its certificates, for the session that counts bytes
                self.session = aiohttp.ClientSession(
                    connector=self.tcp_connector, response_class=Bounded, trust_env=self.aiohttp_trust_env
                )

        def sign(self, *args: Any, **options: Any) -> Any:
            """Without ccxt's mark as a broker, who would be paid for our orders."""
            request = super().sign(*args, **options)
            (request["headers"] or {}).pop("Referer", None)
            if vendor.deadline is not None and request["method"] == "POST":
                header, millis = vendor.deadline
                request["headers"][header] = str(self.nonce() + millis)
            return request

        def parse_json(self, text: str) -> object:
            """None for what is no JSON, as ccxt wants it."""
            try:
                return foreign_json.parse(text.encode())
            except (ValueError, RecursionError):
                return None

        def handle_errors(
            self, code: int, reason: str, url: str, method: str, headers: Any, body: str, response: Any, *asked: Any
        ) -> None:
            banned = code in vendor.ban_statuses and not isinstance(response, dict)
            if code in LIMITED or banned:
                wait = asked_wait({name.lower(): value for name, value in headers.items()})
                wait = (BAN if banned else PAUSE) if wait is None else wait
                raise RateLimited(
                    f"{vendor.name} limits our requests (HTTP {code}) and asks to wait {wait:.0f} s", wait
                )
            declines = 400 <= code < 500 or (code == 200 and vendor.declines_with_ok)
            declined = vendor.read_decline(response) if vendor.read_decline and declines else None
            if declined is not None:
                if declined[0] in vendor.limit_codes:
                    raise RateLimited(f"{vendor.name} limits our requests ({declined[0]})", PAUSE)
                raise VenueDeclined(vendor.name, code, *declined)
            if code < 400 and vendor.envelope and (not isinstance(response, dict) or vendor.envelope not in response):
                raise Malformed(f"{vendor.name} answered without {vendor.envelope!r}")
            try:
                super().handle_errors(code, reason, url, method, headers, body, response, *asked)
            except Exception as error:
                if nearest_known(error) is not None:
                    raise
                # ccxt reads an answer of a form it does not know as one it knows, and stumbles
                raise Malformed(f"{vendor.name} answered in a form nobody knows (HTTP {code})") from None

    return Careful
