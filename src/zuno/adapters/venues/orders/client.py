"""Signed requests to an exchange that takes orders: a read may be repeated, an order is sent once unless the exchange
said that it did nothing."""

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from zuno.adapters.http import RateLimited, is_loopback
from zuno.adapters.venues.exchange import ApiKeys, ExchangeClient, Params, VenueDeclined
from zuno.adapters.venues.orders.wire import WireTable
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Unavailable, UsageError
from zuno.kernel.units import Millis
from zuno.trading.model.orders import ClientId

MOST_WAITS: Final = 3
"""How often one request waits for as long as the exchange asked."""
CLOCK_AGE: Final = 600.0
"""Seconds for which the measured clock offset is used."""


class TradingClient(ExchangeClient):
    """One account's endpoints, dated by the exchange's clock."""

    def __init__(self, wire: WireTable, keys: ApiKeys, url: str | None = None, **options: Any) -> None:
        if url is not None and urlsplit(url).scheme != "https" and not is_loopback(url):
            raise UsageError(f"The address of {wire.vendor.name} must be https: keys sign every request.")
        parts = (keys.key, keys.secret, keys.passphrase)
        if not all(part.isascii() and part.isprintable() and part.strip() == part for part in parts):
            raise UsageError(f"The keys of {wire.vendor.name} hold characters that no key has; copy them again.")
        super().__init__(wire.vendor, url, keys=keys, **options)
        self._wire = wire
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._synced = -math.inf

    async def read(self, endpoint: str, what: str, **params: object) -> VendorJson:
        """Ask; repeated after a failure that may pass."""
        return await self._send_dated(endpoint, what, params, self.patience.attempts)

    async def send(self, endpoint: str, what: str, params: Params | Callable[[], Params]) -> VendorJson:
        """Send an order once. `Unavailable`: whether it was carried out is unknown."""
        if self.vendor.deadline is not None:
            await self.read_time()  # the deadline is by the exchange's clock
        return await self._send_dated(endpoint, what, params, 1)

    def one_at_a_time(self, client_id: ClientId) -> asyncio.Lock:
        """Held from an order's look-up to the exchange's answer, so that two senders of one order take turns."""
        lock = self._locks.get(client_id)
        if lock is None:
            lock = self._locks[client_id] = asyncio.Lock()
        return lock

    async def sync_clock(self, within: float | None = None) -> Millis:
        """Read the exchange's time; requests are dated by it from now on. `Unavailable` where it does not answer within
        so many seconds. Those that loading the vendor's library takes are not the exchange's."""
        opened = self.opened
        asked = opened.milliseconds()
        endpoint, params, (*path, field) = self._wire.time
        try:
            async with asyncio.timeout(within):
                answer = await self._ask(endpoint, "time", params, self.patience.attempts)
        except TimeoutError as error:
            raise Unavailable(f"{self.name} does not say the time within {within:g} s") from error

        for part in path:
            answer = answer.child(part)
        server = answer.moment(field)
        opened.options["timeDifference"] = (asked + opened.milliseconds()) // 2 - server
        self._synced = self.monotonic()
        return server

    async def read_time(self) -> Millis:
        """The exchange's time, asked for where it was not for a while."""
        return self.now() if self.monotonic() - self._synced < CLOCK_AGE else await self.sync_clock()

    def now(self) -> Millis:
        """The exchange's time as far as it is known here."""
        opened = self.opened
        return Millis(opened.milliseconds() - int(opened.options.get("timeDifference", 0)))

    def response_header(self, name: str) -> str | None:
        headers: Mapping[str, str] = self.opened.last_response_headers or {}
        return next((value for header, value in headers.items() if header.lower() == name), None)

    async def _send_dated(
        self, endpoint: str, what: str, params: Params | Callable[[], Params], attempts: int
    ) -> VendorJson:
        try:
            return await self._send_patiently(endpoint, what, params() if callable(params) else params, attempts)
        except VenueDeclined as declined:
            if declined.code not in self._wire.clock_codes:
                raise
        await self.sync_clock()
        return await self._send_patiently(endpoint, what, params() if callable(params) else params, attempts)

    async def _send_patiently(self, endpoint: str, what: str, params: Params, attempts: int) -> VendorJson:
        """A rate-limited request was not carried out: it is sent again after the exchange's wait, if that is short."""
        waits = 0
        while True:
            try:
                return await self._ask(endpoint, what, params, attempts)
            except RateLimited as limited:
                waits += 1
                if limited.seconds > self.patience.longest_wait or waits > MOST_WAITS:
                    raise
                await self.sleep(limited.seconds)
                self._quiet_until = float("-inf")
