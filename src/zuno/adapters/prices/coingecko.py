"""Prices from CoinGecko, or any service that speaks its v3 API: the first source the desk asks.

Endpoint: https://docs.coingecko.com/v3.0.1/reference/coins-id-market-chart (hourly rows for 2–90 days).
Keys: https://docs.coingecko.com/v3.0.1/reference/authentication (demo) and /reference/authentication (pro).
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from urllib.parse import quote as quoted

import httpx2

from zuno.adapters.http import LOOPBACK, OK, PATIENCE, HttpClient, RateLimited, RequestLimits
from zuno.adapters.prices.feeds import SPOT_LIMIT, history_fact, window
from zuno.kernel import foreign_json
from zuno.kernel.errors import Malformed, Unavailable, UsageError
from zuno.kernel.units import Seconds
from zuno.lp.model.chains import CHAINS
from zuno.lp.model.market import HOUR, Fact, Pair, PriceSeries

PUBLIC_URL = "https://api.coingecko.com/api/v3"
PRO_HOST = "pro-api.coingecko.com"

COINS: Mapping[str, str] = MappingProxyType(
    {"USDC": "usd-coin", "USDT": "tether", "DAI": "dai"}
    | {symbol: chain.native.price_id for chain in CHAINS for symbol in (chain.native.symbol, chain.native.wrapped)}
)
"""Coin ids of the curated tokens. A symbol is not an identity: only ask for tokens that we named ourselves."""

KEEP = Seconds(300)
"""The service refreshes its charts every five minutes."""

NEAR_THE_HOUR_MS = 15 * 60 * 1000
FEWEST_DAYS, MOST_DAYS = 2, 90
"""Fewer days come in five-minute rows, more in daily ones."""

LARGEST_EXPONENT, MOST_DIGITS = 30, 60
"""Beyond any price. Without a bound 1e999999999, or a megabyte of digits, would become an integer of that size."""

NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Observation:
    """A coin's price in US dollars at a millisecond, with all digits that were sent."""

    at_ms: int
    usd: Decimal


@dataclass(frozen=True, slots=True)
class _Chart:
    days: int
    read_at: Seconds
    observations: tuple[Observation, ...]


class CoinGecko:
    """Both legs in US dollars, their ratio per hour. Charts are kept for `KEEP` by the caller's clock, in memory."""

    source = "coingecko"

    def __init__(
        self,
        base_url: str = PUBLIC_URL,
        api_key: str | None = None,
        *,
        patience: RequestLimits = PATIENCE,
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        url = _service_url(base_url, keyed=bool(api_key))
        headers = {"accept": "application/json", "user-agent": "zuno"}
        if api_key:
            headers[key_header(url.host)] = _header_safe(api_key)
        self._client = httpx2.AsyncClient(
            base_url=url, headers=headers, timeout=patience.timeout, transport=transport, follow_redirects=False
        )
        self._http = HttpClient("CoinGecko", self._client, patience, sleep=sleep, chance=chance)
        self._charts: dict[str, _Chart] = {}
        self._pause = range(0)
        # One request at a time: it spares the allowance, and whoever waits finds the chart already there.
        self._lock = asyncio.Lock()

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Fact[PriceSeries]:
        wanted = window(hours, now)
        days = min(MOST_DAYS, max(FEWEST_DAYS, len(wanted) // 24 + 1))
        base, quote = [hourly_closes(leg, now) for leg in await self._legs(pair, days, now)]
        closes = {at: Fraction(base[at]) / Fraction(quote[at]) for at in base.keys() & quote.keys()}
        return history_fact(closes, pair, hours, now, self.source)

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        """The ratio of both legs' newest rows: a chart ends with the price at the time of asking."""
        base, quote = [
            next((seen for seen in reversed(leg) if seen.at_ms <= now * 1000), None)
            for leg in await self._legs(pair, FEWEST_DAYS, now)
        ]
        if base is None or quote is None:
            raise Unavailable(f"{self.source} has no price of {pair} by {now}")
        as_of = Seconds(min(base.at_ms, quote.at_ms) // 1000)
        return Fact(Fraction(base.usd) / Fraction(quote.usd), self.source, as_of, now, SPOT_LIMIT)

    async def close(self) -> None:
        await self._client.aclose()

    async def _legs(self, pair: Pair, days: int, now: Seconds) -> list[tuple[Observation, ...]]:
        coins = [self._coin(pair.base), self._coin(pair.quote)]
        return [await self._chart(coin, days, now) for coin in coins]

    def _coin(self, symbol: str) -> str:
        try:
            return COINS[symbol]
        except KeyError:
            if symbol.startswith("0x"):
                raise Unavailable(f"{self.source} is not asked about {symbol}: nobody vouches for that token") from None
            known = ", ".join(sorted(COINS))
            raise Unavailable(f"{self.source} is not asked about {symbol}: the tokens it knows are {known}") from None

    async def _chart(self, coin: str, days: int, now: Seconds) -> tuple[Observation, ...]:
        async with self._lock:
            kept = self._charts.get(coin)
            if kept and kept.days >= days and 0 <= now - kept.read_at < KEEP:
                return kept.observations
            if now in self._pause:
                raise Unavailable(f"CoinGecko asked us to wait; {self._pause.stop - now} s are left")
            observations = await self._fetch(coin, days, now)
            self._charts[coin] = _Chart(days, now, observations)
            return observations

    async def _fetch(self, coin: str, days: int, now: Seconds) -> tuple[Observation, ...]:
        path = f"coins/{quoted(coin, safe='')}/market_chart"
        try:
            answer = await self._http.get(path, {"vs_currency": "usd", "days": str(days)})
        except RateLimited as asked:
            self._pause = range(now, now + math.ceil(asked.seconds))
            raise
        if answer.status == NOT_FOUND:
            raise Unavailable(f"CoinGecko does not know the coin {coin}")
        if answer.status != OK:
            raise Unavailable(f"CoinGecko declined (HTTP {answer.status}); check the address, the key and its plan")
        return parse_chart(answer.body, coin)


def parse_chart(body: bytes, coin: str) -> tuple[Observation, ...]:
    """The `prices` rows of a market chart, oldest first; of two with one time the later row holds, a null price is a
    gap. Anything else that is not [milliseconds, price above zero] is `Malformed`."""
    try:
        chart = foreign_json.parse(body)
    except ValueError as error:
        raise Malformed(f"CoinGecko's chart of {coin} is not JSON") from error
    rows = chart.get("prices") if isinstance(chart, dict) else None
    if not isinstance(rows, list):
        if isinstance(chart, dict) and (chart.get("error") or isinstance(chart.get("status"), dict)):
            raise Unavailable(f"CoinGecko declined to chart {coin}")  # it also refuses with HTTP 200
        raise Malformed(f"CoinGecko's chart of {coin} has no list of prices")
    prices: dict[int, Decimal] = {}
    for number, row in enumerate(rows):
        match row:
            case [int(at_ms), None] if _is_time(at_ms):
                continue
            case [int(at_ms), int() | Decimal() as price] if _is_time(at_ms) and _is_price(price):
                prices[at_ms] = Decimal(price)
            case _:
                raise Malformed(f"CoinGecko's chart of {coin}: row {number} is not a time and a price above zero")
    return tuple(Observation(at_ms, prices[at_ms]) for at_ms in sorted(prices))


def hourly_closes(observations: Sequence[Observation], now: Seconds) -> dict[int, Decimal]:
    """For each full hour by `now` the nearest observation, at most a quarter of an hour away: hourly rows come seconds
    to minutes after the hour, now and then before it."""
    nearest: dict[int, tuple[int, Decimal]] = {}
    for seen in observations:
        hour = (seen.at_ms + HOUR * 500) // (HOUR * 1000) * HOUR
        distance = abs(seen.at_ms - hour * 1000)
        if distance > NEAR_THE_HOUR_MS or hour > now or seen.at_ms > now * 1000:
            continue
        if hour not in nearest or distance < nearest[hour][0]:
            nearest[hour] = (distance, seen.usd)
    return {hour: usd for hour, (_, usd) in nearest.items()}


def _is_time(value: int) -> bool:
    return not isinstance(value, bool) and value > 0


def _is_price(value: int | Decimal) -> bool:
    if isinstance(value, bool) or value <= 0:
        return False
    exact = Decimal(value)
    return abs(exact.adjusted()) <= LARGEST_EXPONENT and len(exact.as_tuple().digits) <= MOST_DIGITS


def _service_url(text: str, *, keyed: bool) -> httpx2.URL:
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL as error:
        raise UsageError("The price service's address cannot be read") from error
    if url.scheme not in {"http", "https"} or not url.host or url.query or url.userinfo:
        raise UsageError("The price service's address must be http(s)://host/path, without user, password or query")
    if keyed and url.scheme == "http" and url.host not in LOOPBACK:
        raise UsageError("The price service's key is only sent over https")
    return url


def key_header(host: str) -> str:
    """Paying users have a host of their own."""
    return "x-cg-pro-api-key" if host == PRO_HOST else "x-cg-demo-api-key"


def _header_safe(key: str) -> str:
    """The key without surrounding white space. An illegal header value would be quoted in the transport's error."""
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError("The price service's key holds characters that no key has")
    return key
