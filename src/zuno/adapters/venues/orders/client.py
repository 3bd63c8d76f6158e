"""What exchanges that take orders share: signed requests (a read may be repeated, an order is sent once unless the
exchange said that it did nothing), and placing an order (looked up, checked and sent, one at a time per client id)."""

from __future__ import annotations

import asyncio
import functools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from pydantic import ValidationError

from zuno.adapters.http import RateLimited, is_loopback
from zuno.adapters.venues.exchange import ApiKeys, ExchangeClient, ExchangeVendor, VenueDeclined
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed, NotFound, Refused, Unavailable, UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.orders import ClientId, Fill, Filters, Order, OrderRequest, OrderStatus, OrderType
from zuno.trading.rules.execution_styles import find_filter_breach

UNAUTHORIZED, FORBIDDEN = 401, 403
KEY_CODES: Final = frozenset({"-1002", "-1022", "-2014", "-2015"})
"""Binance's codes of keys that are wrong or may not do that, whatever the HTTP status."""
LONGEST_REASON: Final = 200
MOST_WAITS: Final = 3
"""How often one request waits for as long as the exchange asked."""
CLOCK_AGE: Final = 600.0
"""Seconds for which the measured clock offset is used."""
FILTERS_AGE: Final = 60.0
"""Seconds for which filters are taken as fresh when an order is checked."""
ADMITTED_FOR: Final = 600.0
"""Seconds for which the keys and the account's modes are taken as they were found."""
NEVER_PLACED: Final = "none"
"""The venue's id of an order that it did not take."""

P = ParamSpec("P")
R = TypeVar("R")


class TradingClient(ExchangeClient):
    """One account's endpoints. `clock_codes`: an exchange's codes for a request dated too early or too late."""

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
        if url is not None and urlsplit(url).scheme != "https" and not is_loopback(url):
            raise UsageError(f"The address of {vendor.name} must be https: keys sign every request.")
        if not all(part.isascii() and part.isprintable() and part.strip() == part for part in (keys.key, keys.secret)):
            raise UsageError(f"The keys of {vendor.name} hold characters that no key has; copy them again.")
        super().__init__(vendor, url, keys=keys, demo=demo, **options)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._clock_codes = clock_codes
        self._time_endpoint = time_endpoint
        self._synced = -math.inf

    async def read(self, endpoint: str, what: str, **params: object) -> VendorJson:
        """Ask; repeated after a failure that may pass."""
        return await self._send_dated(endpoint, what, params, self._patience.attempts)

    async def send(self, endpoint: str, what: str, **params: object) -> VendorJson:
        """Send an order once. `Unavailable`: whether it was carried out is unknown."""
        return await self._send_dated(endpoint, what, params, 1)

    def one_at_a_time(self, client_id: ClientId) -> asyncio.Lock:
        """Held from an order's look-up to the exchange's answer, so that two senders of one order take turns."""
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
        self._synced = self._monotonic()
        return server

    async def read_time(self) -> Millis:
        """The exchange's time, asked for where it was not for a while."""
        return self.now() if self._monotonic() - self._synced < CLOCK_AGE else await self.sync_clock()

    def now(self) -> Millis:
        """The exchange's time as far as it is known here."""
        opened = self._open()
        return Millis(opened.milliseconds() - int(opened.options.get("timeDifference", 0)))

    async def pause(self, seconds: float) -> None:
        await self._sleep(seconds)

    def response_header(self, name: str) -> str | None:
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
        """A rate-limited request was not carried out: it is sent again after the exchange's wait, if that is short."""
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


def read_reason(text: object) -> str:
    return plain_text(str(text), LONGEST_REASON)


def report_unreadable(method: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """An unreadable answer is `Unavailable`: what happened is unknown. Rejected keys are `Refused`."""

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


class ExchangeAccount(ABC):
    """One account at an exchange. Nothing is opened before the keys and the account's settings were checked; orders
    that reduce a position are sent all the same, and do not wait for filters."""

    exchange: Venue
    no_such_order: str
    """The exchange's code for an order that it does not have."""

    def __init__(self, client: TradingClient) -> None:
        self._client = client
        self._admitted: float | None = None
        self._filters: dict[Symbol, tuple[float, Filters]] = {}
        self._reducing: set[ClientId] = set()
        """Orders that reduce a position and may have been sent from here."""

    @abstractmethod
    async def now(self) -> Millis: ...

    @abstractmethod
    async def find(self, symbol: Symbol, client_id: ClientId, kind: OrderType | None = None) -> Order | None: ...

    @abstractmethod
    async def _read_filters(self, symbol: Symbol) -> Filters: ...

    @abstractmethod
    async def _check_account(self) -> None:
        """`Refused` where the keys may withdraw or not trade, or the account is set otherwise than it has to be."""

    @abstractmethod
    async def _make(self, order: OrderRequest, good_till: Millis | None) -> Order: ...

    async def order_fills(self, order: Order) -> tuple[Fill, ...] | None:
        return None

    @report_unreadable
    async def place(self, order: OrderRequest, good_till: Millis | None = None) -> Order:
        if order.exchange is not self.exchange:
            raise Refused(f"An order of {order.exchange} is no order of {self.exchange}.")
        async with self._client.one_at_a_time(order.client_id):
            known = await self._look_up(order)
            if known is not None:
                return known
            breach = await self._find_breach(order)
            if breach is not None:
                return self._reject(order, breach)
            if order.reduce_only:
                self._reducing.add(order.client_id)
            else:
                await self._admit()
            return await self._make(order, good_till)

    @report_unreadable
    async def filters(self, symbol: Symbol) -> Filters:
        filters = await self._read_filters(symbol)
        self._filters[symbol] = time.monotonic(), filters
        return filters

    async def close(self) -> None:
        await self._client.close()

    async def _look_up(self, order: OrderRequest) -> Order | None:
        """A reducing order is sent the first time even if it cannot be looked up: twice does no harm."""
        try:
            return await self.find(order.symbol, order.client_id, order.type)
        except RateLimited:
            raise
        except Unavailable:
            if not order.reduce_only or order.client_id in self._reducing:
                raise
            return None

    async def _read_order(self, endpoint: str, what: str, **named: object) -> VendorJson | None:
        try:
            return await self._client.read(endpoint, what, **named)
        except VenueDeclined as declined:
            if declined.code == self.no_such_order:
                return None
            raise

    async def _fresh_filters(self, symbol: Symbol) -> Filters:
        known = self._filters.get(symbol)
        if known is None or time.monotonic() - known[0] > FILTERS_AGE:
            return await self.filters(symbol)
        return known[1]

    async def _find_breach(self, order: OrderRequest) -> str | None:
        """What the filters have against an order. Reducing orders are checked by the last known filters."""
        known = self._filters.get(order.symbol)
        if order.reduce_only and known is not None and find_filter_breach(order, known[1]) is None:
            return None
        try:
            return find_filter_breach(order, await self._fresh_filters(order.symbol))
        except NotFound as delisted:
            return str(delisted)
        except Unavailable:
            if not order.reduce_only:
                raise
            return None

    async def _admit(self) -> None:
        if self._admitted is None or time.monotonic() - self._admitted >= ADMITTED_FOR:
            await self._check_account()
            self._admitted = time.monotonic()

    async def _check_age(self, symbol: Symbol, at: Millis, most: int) -> None:
        """By the exchange's clock, which is asked again before a price is called old."""
        if self._client.now() - at > most and (age := await self.now() - at) > most:
            raise Unavailable(f"{self._client.name}'s newest price of {symbol} is {age // 1_000} s old")

    def _reject(self, order: OrderRequest, reason: str) -> Order:
        return Order(
            request=order, venue_id=NEVER_PLACED, status=OrderStatus.REJECTED, updated=self._client.now(), reason=reason
        )
