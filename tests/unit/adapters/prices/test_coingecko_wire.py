"""CoinGecko over a real socket: a local server answers in the service's own bytes, kind and unkind ones."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from zuno.adapters.http import RateLimited, RequestLimits
from zuno.adapters.prices.coingecko import CoinGecko, key_header
from zuno.kernel.errors import Malformed, Unavailable, UsageError, ZunoError
from zuno.kernel.units import Seconds
from zuno.lp.model.market import HOUR, Pair

ETH_USDC = Pair("ETH", "USDC")
NINE = 491_000 * HOUR
NOW = Seconds(NINE + 600)
KEY = "CG-s3cr3tK3yNobodyMaySee"
QUICK = RequestLimits(timeout=0.5, attempts=3, first_wait=0.5, longest_wait=20, max_bytes=5_000)


def rows(price: Callable[[int], str], hours: int = 30, last: str = "") -> bytes:
    """A chart as https://docs.coingecko.com/v3.0.1/reference/coins-id-market-chart shows it, without white space."""
    times = [(NINE - hour * HOUR) * 1000 + 66_845 for hour in reversed(range(hours))]
    listed = ",".join(f"[{at},{price(number)}]" for number, at in enumerate(times)) + last
    return b'{"prices":[' + listed.encode() + b'],"market_caps":[],"total_volumes":[]}'


ETHEREUM = rows(lambda number: f"3000.{number:02d}")
DOLLAR = rows(lambda number: "0.9998")

# Bodies of the errors listed on https://docs.coingecko.com/v3.0.1/reference/common-errors-rate-limit
TOO_MANY = (
    b'{"status":{"error_code":429,"error_message":"You\'ve exceeded the Rate Limit. Please visit '
    b'https://www.coingecko.com/en/api/pricing to subscribe to our API plans for higher rate limits."}}'
)
NO_SUCH_COIN = b'{"error":"coin not found"}'
BAD_KEY = b'{"status":{"error_code":10002,"error_message":"API Key Missing: ' + KEY.encode() + b'"}}'


def http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        "Content-Type: application/json; charset=utf-8",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


Reply = bytes | tuple[bytes | float, ...]


@dataclass
class Service:
    """Answers each coin with its replies in order, the last one for ever; a number in a reply is a pause in seconds."""

    replies: dict[str, deque[tuple[bytes | float, ...]]]
    url: str = ""
    requests: list[str] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            self.requests.append(request)
            self.heads.append({name.lower(): value for name, _, value in (line.partition(": ") for line in lines)})
            replies = self.replies[request.split("/coins/")[1].split("/")[0]]
            for part in replies.popleft() if len(replies) > 1 else replies[0]:
                if isinstance(part, bytes):
                    writer.write(part)
                    await writer.drain()
                else:
                    await asyncio.sleep(part)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the feed had enough, which is what some tests want
        finally:
            writer.close()


@asynccontextmanager
async def service(ethereum: list[Reply] | bytes | None = None, dollar: bytes | None = None) -> AsyncIterator[Service]:
    listed = ethereum if isinstance(ethereum, list) else [ethereum or http(ETHEREUM)]
    replies = deque(reply if isinstance(reply, tuple) else (reply,) for reply in listed)
    answering = Service({"ethereum": replies, "usd-coin": deque([(dollar or http(DOLLAR),)])})
    server = await asyncio.start_server(answering.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    answering.url = f"http://{host}:{port}/api/v3"
    async with server:
        yield answering


class Naps:
    """A sleep that only writes down how long it should have been."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@asynccontextmanager
async def feed(url: str, **options: Any) -> AsyncIterator[CoinGecko]:
    asking = CoinGecko(url, **({"patience": QUICK, "sleep": Naps(), "chance": lambda: 0.5} | options))  # type: ignore[arg-type]
    try:
        yield asking
    finally:
        await asking.close()
        await asking.close()


async def test_the_price_is_the_exact_ratio_of_both_legs_as_sent() -> None:
    async with service() as vendor, feed(vendor.url) as coingecko:
        fact = await coingecko.history(ETH_USDC, 24, NOW)
    assert fact.source == "coingecko"
    assert [point.price for point in fact.value.points] == [
        Fraction(f"3000.{number:02d}") / Fraction("0.9998") for number in range(6, 30)
    ]
    assert vendor.requests == [
        "GET /api/v3/coins/ethereum/market_chart?vs_currency=usd&days=2 HTTP/1.1",
        "GET /api/v3/coins/usd-coin/market_chart?vs_currency=usd&days=2 HTTP/1.1",
    ]


@pytest.mark.parametrize(
    ("hours", "days"), [(1, 2), (24, 2), (47, 2), (48, 3), (168, 8), (720, 31), (721, 31), (2160, 90), (5000, 90)]
)
async def test_asks_for_enough_days_and_never_for_so_many_that_rows_become_daily(hours: int, days: int) -> None:
    async with service() as vendor, feed(vendor.url) as coingecko:
        fact = await coingecko.history(ETH_USDC, hours, NOW)
    assert f"days={days} " in vendor.requests[0]
    assert len(fact.value.points) + fact.value.gaps == hours


async def test_an_hour_that_either_leg_lacks_is_a_gap() -> None:
    def without(body: bytes, hour: int) -> bytes:
        stamp = str((NINE - hour * HOUR) * 1000 + 66_845).encode()
        start = body.index(b"[" + stamp)
        return body[:start] + body[body.index(b"]", start) + 2 :]

    async with service(http(without(ETHEREUM, 3)), http(without(DOLLAR, 5))) as vendor, feed(vendor.url) as coingecko:
        series = (await coingecko.history(ETH_USDC, 24, NOW)).value
    missing = {NINE - hour * HOUR for hour in range(24)} - {point.at for point in series.points}
    assert missing == {NINE - 3 * HOUR, NINE - 5 * HOUR}
    assert series.gaps == 2


async def test_rows_dated_in_the_future_are_left_out() -> None:
    ahead = f",[{(NOW + 5) * 1000},9999],[{(NINE + HOUR) * 1000},9999],[{(NINE + 99 * HOUR) * 1000},9999]"
    async with service(http(rows(lambda number: "3000", last=ahead))) as vendor, feed(vendor.url) as coingecko:
        fact = await coingecko.history(ETH_USDC, 24, NOW)
        spot = await coingecko.spot(ETH_USDC, NOW)
    assert fact.as_of == NINE
    assert {point.price for point in fact.value.points} == {spot.value} == {Fraction(3000) / Fraction("0.9998")}


async def test_a_service_whose_clock_is_far_off_knows_nothing_about_our_hours() -> None:
    async with service() as vendor, feed(vendor.url) as coingecko:
        for now in (Seconds(NINE - 400 * HOUR), Seconds(NINE + 400 * HOUR)):
            with pytest.raises(Unavailable, match=r"hourly.*ETH/USDC"):
                await coingecko.history(ETH_USDC, 24, now)
        with pytest.raises(Unavailable, match="ETH/USDC"):
            await coingecko.spot(ETH_USDC, Seconds(NINE - 400 * HOUR))


async def test_spot_is_the_last_row_of_each_leg_dated_by_the_older() -> None:
    latest = f",[{(NOW - 45) * 1000},3100.5]"
    async with service(http(rows(lambda number: "3000", last=latest))) as vendor, feed(vendor.url) as coingecko:
        fact = await coingecko.spot(ETH_USDC, NOW)
    assert fact.value == Fraction("3100.5") / Fraction("0.9998")
    assert fact.as_of == NINE + 66
    assert fact.age == 534


# https://docs.coingecko.com/v3.0.1/reference/authentication and https://docs.coingecko.com/reference/authentication
async def test_the_key_travels_in_the_header_of_its_plan() -> None:
    async with service() as vendor, feed(vendor.url, api_key=f" {KEY}\n") as coingecko:
        await coingecko.history(ETH_USDC, 24, NOW)
    assert all(head["x-cg-demo-api-key"] == KEY for head in vendor.heads)
    assert all(KEY not in request for request in vendor.requests)


def test_the_paying_host_tells_the_plan() -> None:
    assert key_header("pro-api.coingecko.com") == "x-cg-pro-api-key"
    assert key_header("api.coingecko.com") == "x-cg-demo-api-key"


async def test_without_a_key_no_key_header_is_sent() -> None:
    async with service() as vendor, feed(vendor.url) as coingecko:
        await coingecko.history(ETH_USDC, 24, NOW)
    assert not any(name.startswith("x-cg") for head in vendor.heads for name in head)


async def test_charts_are_kept_for_their_time_by_the_callers_clock() -> None:
    async with service() as vendor, feed(vendor.url) as coingecko:
        await coingecko.history(ETH_USDC, 24, NOW)
        await coingecko.history(Pair("USDC", "ETH"), 24, Seconds(NOW + 299))
        await coingecko.spot(ETH_USDC, NOW)
        assert len(vendor.requests) == 2
        await coingecko.history(ETH_USDC, 24, Seconds(NOW + 300))
        assert len(vendor.requests) == 4
        await coingecko.history(ETH_USDC, 24, NOW)  # read "later" than asked: of no use to a clock that stands earlier
        assert len(vendor.requests) == 6
        await coingecko.history(ETH_USDC, 100, NOW)  # longer than what is kept
        assert len(vendor.requests) == 8


async def test_callers_at_the_same_moment_share_one_reading() -> None:
    async with service() as vendor, feed(vendor.url) as coingecko:
        facts = await asyncio.gather(*(coingecko.history(ETH_USDC, 24, NOW) for _ in range(5)))
    assert len(vendor.requests) == 2
    assert all(fact == facts[0] for fact in facts)


async def test_a_rate_limit_is_waited_out_as_long_as_the_service_asks() -> None:
    naps = Naps()
    limited = http(TOO_MANY, "429 Too Many Requests", "Retry-After: 7")
    async with service([limited, http(ETHEREUM)]) as vendor, feed(vendor.url, sleep=naps) as coingecko:
        fact = await coingecko.history(ETH_USDC, 24, NOW)
    assert naps.taken == [7.0]
    assert fact.value.gaps == 0


async def test_a_rate_limit_given_as_a_date_is_measured_by_the_services_own_clock() -> None:
    naps = Naps()
    dates = ("Date: Thu, 01 Jan 2026 10:00:00 GMT", "Retry-After: Thu, 01 Jan 2026 10:00:09 GMT")
    limited = http(TOO_MANY, "429 Too Many Requests", *dates)
    async with service([limited, http(ETHEREUM)]) as vendor, feed(vendor.url, sleep=naps) as coingecko:
        await coingecko.history(ETH_USDC, 24, NOW)
    assert naps.taken == [9.0]


@pytest.mark.parametrize("header", ["Retry-After: soon", "Retry-After: -5", "Retry-After: 1e3", "X-Nothing: 1"])
async def test_a_rate_limit_without_a_readable_time_backs_off_as_usual(header: str) -> None:
    naps = Naps()
    limited = http(TOO_MANY, "429 Too Many Requests", header)
    async with service([limited, http(ETHEREUM)]) as vendor, feed(vendor.url, sleep=naps) as coingecko:
        await coingecko.history(ETH_USDC, 24, NOW)
    assert naps.taken == [0.375]


async def test_a_service_that_asks_for_too_long_a_wait_is_left_alone_until_then() -> None:
    naps = Naps()
    limited = http(TOO_MANY, "429 Too Many Requests", "Retry-After: 119")
    async with service([limited, http(ETHEREUM)]) as vendor, feed(vendor.url, sleep=naps) as coingecko:
        with pytest.raises(RateLimited, match=r"HTTP 429.*119 s"):
            await coingecko.history(ETH_USDC, 24, NOW)
        with pytest.raises(Unavailable, match=r"\b19 s"):
            await coingecko.history(ETH_USDC, 24, Seconds(NOW + 100))
        assert len(vendor.requests) == 1
        assert (await coingecko.history(ETH_USDC, 24, Seconds(NOW + 119))).value.gaps == 0
    assert naps.taken == []


async def test_a_service_that_never_stops_limiting_is_given_up() -> None:
    naps = Naps()
    limited = http(TOO_MANY, "429 Too Many Requests", "Retry-After: 2")
    async with service(limited) as vendor, feed(vendor.url, sleep=naps) as coingecko:
        with pytest.raises(Unavailable, match="wait 2 s"):
            await coingecko.history(ETH_USDC, 24, NOW)
    assert (naps.taken, len(vendor.requests)) == ([2.0, 2.0], 3)


@pytest.mark.parametrize(
    "status", ["500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable", "408 Request Timeout"]
)
async def test_a_failing_server_is_tried_again_with_growing_jittered_waits(status: str) -> None:
    naps = Naps()
    failing = http(b"<html>upstream</html>", status)
    async with service([failing, failing, http(ETHEREUM)]) as vendor, feed(vendor.url, sleep=naps) as coingecko:
        assert (await coingecko.history(ETH_USDC, 24, NOW)).value.gaps == 0
    assert naps.taken == [0.375, 0.75]


async def test_a_server_that_keeps_failing_is_given_up_after_the_last_attempt() -> None:
    async with service(http(b"", "503 Service Unavailable")) as vendor, feed(vendor.url) as coingecko:
        with pytest.raises(Unavailable, match=r"HTTP 503.*3 times"):
            await coingecko.history(ETH_USDC, 24, NOW)
    assert len(vendor.requests) == 3


@pytest.mark.parametrize(("chance", "waits"), [(0.0, [0.25, 0.5]), (1.0, [0.5, 1.0])])
async def test_chance_moves_a_wait_between_half_and_all_of_it(chance: float, waits: list[float]) -> None:
    naps = Naps()
    options = {"sleep": naps, "chance": lambda: chance}
    async with service(http(b"", "500 Oops")) as vendor, feed(vendor.url, **options) as coingecko:
        with pytest.raises(Unavailable):
            await coingecko.history(ETH_USDC, 24, NOW)
    assert naps.taken == waits


async def test_a_connection_cut_half_way_is_tried_again() -> None:
    half = http(ETHEREUM)[:400]
    async with service([half, http(ETHEREUM)]) as vendor, feed(vendor.url) as coingecko:
        assert (await coingecko.history(ETH_USDC, 24, NOW)).value.gaps == 0
    async with service(half) as vendor, feed(vendor.url) as coingecko:
        with pytest.raises(Unavailable, match="3 times"):
            await coingecko.history(ETH_USDC, 24, NOW)


async def test_a_body_cut_where_http_cannot_tell_is_malformed() -> None:
    unsized = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + ETHEREUM[:300]
    async with service(unsized) as vendor, feed(vendor.url) as coingecko:
        with pytest.raises(Malformed, match=r"ethereum.*JSON"):
            await coingecko.history(ETH_USDC, 24, NOW)
    assert len(vendor.requests) == 1


async def test_a_silent_server_is_not_waited_for() -> None:
    patience = RequestLimits(timeout=0.05, attempts=2)
    async with service([(5.0, http(ETHEREUM))]) as vendor, feed(vendor.url, patience=patience) as coingecko:
        with pytest.raises(Unavailable, match=r"0\.05 s.*2 times"):
            await coingecko.history(ETH_USDC, 24, NOW)


@pytest.mark.slow
async def test_a_server_that_drips_bytes_cannot_hold_us() -> None:
    drip: tuple[bytes | float, ...] = (http(ETHEREUM)[:200], *([0.03, b" "] * 100))  # type: ignore[arg-type]
    patience = RequestLimits(timeout=0.2, attempts=1)
    async with service([drip]) as vendor, feed(vendor.url, patience=patience) as coingecko:
        with pytest.raises(Unavailable, match=r"\bonce\b"):
            await asyncio.wait_for(coingecko.history(ETH_USDC, 24, NOW), 2)


async def test_nobody_at_the_address_is_unavailable() -> None:
    async with service() as vendor:
        url = vendor.url
    async with feed(url) as coingecko:
        with pytest.raises(Unavailable, match="reached"):
            await coingecko.history(ETH_USDC, 24, NOW)


async def test_a_body_beyond_the_limit_is_not_read_to_its_end() -> None:
    endless = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b" " * 200_000
    async with service([(endless, 5.0)]) as vendor, feed(vendor.url) as coingecko:
        with pytest.raises(Malformed, match="5000 bytes"):
            await asyncio.wait_for(coingecko.history(ETH_USDC, 24, NOW), 2)


async def test_bytes_that_do_not_decompress_are_malformed() -> None:
    async with service(http(b"not gzip", "200 OK", "Content-Encoding: gzip")) as vendor, feed(vendor.url) as coingecko:
        with pytest.raises(Malformed, match="decompress"):
            await coingecko.history(ETH_USDC, 24, NOW)


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (http(NO_SUCH_COIN, "404 Not Found"), "does not know the coin ethereum"),
        (http(BAD_KEY, "401 Unauthorized"), r"declined \(HTTP 401\)"),
        (http(b"error code: 1020", "403 Forbidden"), r"declined \(HTTP 403\)"),
        (http(b"", "302 Found", "Location: http://127.0.0.1:1/"), r"declined \(HTTP 302\)"),
    ],
)
async def test_a_refusal_is_not_repeated(reply: bytes, sentence: str) -> None:
    async with service(reply) as vendor, feed(vendor.url) as coingecko:
        with pytest.raises(Unavailable, match=sentence):
            await coingecko.history(ETH_USDC, 24, NOW)
    assert len(vendor.requests) == 1


async def test_an_unknown_symbol_is_said_without_asking() -> None:
    async with service() as vendor, feed(vendor.url) as coingecko:
        with pytest.raises(Unavailable, match=r"PEPE: .*DAI, ETH, POL, USDC, USDT, WETH, WPOL"):
            await coingecko.history(Pair("ETH", "PEPE"), 24, NOW)
    assert vendor.requests == []


async def test_a_failure_is_not_remembered_as_a_price() -> None:
    async with service([http(b"garbage"), http(ETHEREUM)]) as vendor, feed(vendor.url) as coingecko:
        with pytest.raises(Malformed):
            await coingecko.history(ETH_USDC, 24, NOW)
        assert (await coingecko.history(ETH_USDC, 24, NOW)).value.gaps == 0


UNKIND: dict[str, Reply] = {
    "bad key": http(BAD_KEY, "401 Unauthorized"),
    "limited": http(TOO_MANY, "429 Too Many Requests", "Retry-After: 500"),
    "failing": http(BAD_KEY, "500 Internal Server Error"),
    "echo": http(BAD_KEY),
    "echo as rows": http(b'{"prices":[[1767229266845,"' + KEY.encode() + b'"]]}'),
    "garbage": http(b"garbage " + KEY.encode()),
    "not http": b"hello " + KEY.encode() + b"\r\n\r\n",
    "cut": http(ETHEREUM)[:50],
}


@pytest.mark.parametrize("reply", UNKIND.values(), ids=UNKIND.keys())
async def test_the_key_is_in_no_error_and_no_log(reply: Reply, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with service([reply]) as vendor, feed(vendor.url, api_key=KEY) as coingecko:
        with pytest.raises(ZunoError) as raised:
            await coingecko.history(ETH_USDC, 24, NOW)
        assert KEY not in repr(coingecko)
    assert KEY not in str(raised.value)
    assert KEY not in repr(raised.value)
    assert KEY not in caplog.text
    assert KEY not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("key", [f"{KEY}\nx: y", f"{KEY} b", f"{KEY}é", f"{KEY}\x00"])
def test_a_key_that_is_no_header_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(UsageError) as raised:
        CoinGecko(api_key=key)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.coingecko.com",
        "ftp://api.coingecko.com",
        "https://",
        "https://me:pw@host/",
        "https://host/?key=1",
        "http://[::",
    ],
)
def test_an_address_that_cannot_serve_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="address"):
        CoinGecko(url)


def test_a_key_is_never_sent_in_the_clear() -> None:
    with pytest.raises(UsageError, match="https"):
        CoinGecko("http://prices.example/api/v3", api_key=KEY)


def test_patience_has_at_least_one_attempt() -> None:
    with pytest.raises(ValueError, match="attempt"):
        RequestLimits(attempts=0)
