"""Signed requests: a read may be repeated, an order is sent once unless the exchange said that it did nothing."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from pydantic import ValidationError

from zuno.adapters.http import LOOPBACK, RateLimited
from zuno.adapters.venues.exchange import ApiKeys, ExchangeClient, ExchangeVendor, VenueDeclined
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed, Refused, Unavailable, Usage
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.orders import ClientId, OrderRequest

UNAUTHORIZED, FORBIDDEN = 401, 403
KEY_CODES: Final = frozenset({"-1002", "-1022", "-2014", "-2015"})
"""Binance's codes of keys that are wrong or may not do that, whatever the HTTP status."""
LONGEST_REASON: Final = 200
MOST_WAITS: Final = 3
"""How often one request waits for as long as the exchange asked."""

P = ParamSpec("P")
R = TypeVar("R")


class TradingClient(ExchangeClient):
    """One account's endpoints. `clock_codes` are an exchange's words for a request dated too early or too late."""

    def __init__(
        self,
        vendor: ExchangeVendor,
        keys: ApiKeys,
        url: str | None = None,
        *,
        demo: bool = False,
        clock_codes: frozenset[str] = frozenset(),
        time_endpoint: str = "",
        **options: Any,
    ) -> None:
        if url is not None and urlsplit(url).scheme != "https" and urlsplit(url).hostname not in LOOPBACK:
            raise Usage(f"The address of {vendor.name} must be https: keys sign every request.")
        if not all(part.isascii() and part.isprintable() and part.strip() == part for part in (keys.key, keys.secret)):
            raise Usage(f"The keys of {vendor.name} hold characters that no key has; copy them again.")
        super().__init__(vendor, url, keys=keys, demo=demo, **options)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._clock_codes = clock_codes
        self._time_endpoint = time_endpoint

    async def read(self, endpoint: str, what: str, **params: object) -> VendorJson:
        """A question: asked again after a failure that may pass."""
        return await self._send_dated(endpoint, what, params, self._patience.attempts)

    async def send(self, endpoint: str, what: str, **params: object) -> VendorJson:
        """An order: once. `Unavailable`: nobody knows what became of it."""
        return await self._send_dated(endpoint, what, params, 1)

    def one_at_a_time(self, client_id: ClientId) -> asyncio.Lock:
        """Held from the look-up of an order to the exchange's word on it: whoever places it too finds it."""
        lock = self._locks.get(client_id)
        if lock is None:
            lock = self._locks[client_id] = asyncio.Lock()
        return lock

    async def sync_clock(self) -> Millis:
        """The exchange's time; requests are dated by it from now on."""
        opened = self._open()
        asked = opened.milliseconds()
        server = (await self._ask(self._time_endpoint, "time", {}, self._patience.attempts)).moment("serverTime")
        opened.options["timeDifference"] = (asked + opened.milliseconds()) // 2 - server
        return server

    def now(self) -> Millis:
        """The exchange's time as far as it is known here."""
        opened = self._open()
        return Millis(opened.milliseconds() - int(opened.options.get("timeDifference", 0)))

    async def pause(self, seconds: float) -> None:
        await self._sleep(seconds)

    def response_header(self, name: str) -> str | None:
        """Of the last answer."""
        headers: Mapping[str, str] = self._open().last_response_headers or {}
        return next((value for header, value in headers.items() if header.lower() == name), None)

    async def _send_dated(self, endpoint: str, what: str, params: Mapping[str, object], attempts: int) -> VendorJson:
        try:
            return await self._send_patiently(endpoint, what, params, attempts)
        except VenueDeclined as declined:
            if declined.code not in self._clock_codes:
                raise
        await self.sync_clock()
        return await self._send_patiently(endpoint, what, params, attempts)

    async def _send_patiently(
        self, endpoint: str, what: str, params: Mapping[str, object], attempts: int
    ) -> VendorJson:
        """A limited request was not carried out: it is sent again when the exchange's wait is over, if that is soon."""
        waits = 0
        while True:
            try:
                return await self._ask(endpoint, what, params, attempts)
            except RateLimited as limited:
                waits += 1
                if limited.seconds > self._patience.longest_wait or waits > MOST_WAITS:
                    raise
                await self._sleep(limited.seconds)
                self._quiet_until = float("-inf")


def check_exchange(order: OrderRequest, exchange: Exchange) -> None:
    if order.exchange is not exchange:
        raise Refused(f"An order of {order.exchange} is no order of {exchange}.")


def read_reason(text: object) -> str:
    return plain_text(str(text), LONGEST_REASON)


def report_unreadable(method: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """What cannot be read is not known: `Unavailable`. Keys that are not let in are `Refused`."""

    @functools.wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await method(*args, **kwargs)
        except Malformed as error:
            raise Unavailable(str(error)) from error
        except ValidationError as error:
            wrong = ", ".join(".".join(map(str, part["loc"])) for part in error.errors(include_input=False))
            raise Unavailable(f"The exchange says what cannot be: {error.title} with that {wrong}") from None
        except VenueDeclined as error:
            if error.status in (UNAUTHORIZED, FORBIDDEN) or error.code in KEY_CODES:
                raise Refused(f"The keys are not let in: {error.reason} ({error.code})") from error
            raise Unavailable(str(error)) from error

    return call
