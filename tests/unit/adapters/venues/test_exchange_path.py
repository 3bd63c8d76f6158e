"""The exchange's candles as a reference: fourteen days, asked for once, turned round or over the dollar."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.wire.vendors.binance import NO_SYMBOL
from tests.wire.vendors.serving import Query, Vendor, vendor
from zuno.adapters.venues.exchange_path import KEPT, STEP, ExchangePath
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Seconds
from zuno.lp.model.market import Pair

NOW = Seconds(1_700_000_130)
SINCE = Seconds(NOW - 14 * 86_400)
FIRST_END = -(-SINCE // STEP) * STEP
Price = Callable[[int], float]


def klines(prices: dict[str, Price], now: list[int]) -> dict[str, Callable[[Query], Any]]:
    """A market of these symbols by the moment a candle opens; none that is still open."""

    def answer(query: Query) -> Any:
        if query["symbol"] not in prices:
            return NO_SYMBOL
        assert query["interval"] == "5m"
        low, high = int(query["startTime"]) // 1_000, int(query["endTime"]) // 1_000
        opens = [at for at in range(-(-low // STEP) * STEP, high + 1, STEP) if at + STEP <= now[0]]
        rows = []
        for at in opens[: int(query["limit"])]:
            price = f"{prices[query['symbol']](at):.4f}"
            rows.append([at * 1_000, price, price, price, price, "1", at * 1_000 + 299_999, "1", 1, "1", "1", "0"])
        return rows

    return {"/api/v3/klines": answer}


def asked(here: Vendor) -> int:
    return sum(path == "/api/v3/klines" for path, _ in here.asked)


async def test_fourteen_days_are_read_once_and_then_only_what_is_new(tmp_path: Path) -> None:
    now = [int(NOW)]
    async with vendor(klines({"ETHUSDC": lambda at: 3_000 + at % 7}, now)) as here:
        feed = ExchangePath(here.url, tmp_path)
        fact = await feed.path(Pair("WETH", "USDC"), SINCE, NOW)
        assert (fact.source, fact.value.minutes, fact.stale) == ("Binance", 5, False)
        ends = [point.at for point in fact.value.points]
        assert ends == list(range(FIRST_END, NOW + 1, STEP))
        assert fact.value.points[0].price == Fraction(f"{3_000 + (FIRST_END - STEP) % 7}")
        pages = asked(here)
        assert await feed.path(Pair("WETH", "USDC"), SINCE, NOW) == fact
        await feed.close()
        again = ExchangePath(here.url, tmp_path)
        assert await again.path(Pair("WETH", "USDC"), SINCE, NOW) == fact
        assert asked(here) == pages, "kept in the home"
        now[0] += 900
        later = await again.path(Pair("ETH", "USDC"), Seconds(SINCE + 900), Seconds(now[0]))
        assert len(later.value.points) == len(ends)
        assert asked(here) == pages + 1
        await again.close()


async def test_a_pair_is_turned_round_or_priced_over_the_dollar(tmp_path: Path) -> None:
    market: dict[str, Price] = {"ETHUSDC": lambda at: 2_000, "ETHUSDT": lambda at: 2_000, "BTCUSDT": lambda at: 50_000}
    since = Seconds(NOW - 3_600)
    async with vendor(klines(market, [int(NOW)])) as here:
        feed = ExchangePath(here.url, tmp_path)
        turned = await feed.path(Pair("USDC", "ETH"), since, NOW)
        assert {point.price for point in turned.value.points} == {Fraction(1, 2_000)}
        crossed = await feed.path(Pair("BTC", "ETH"), since, NOW)
        assert {point.price for point in crossed.value.points} == {Fraction(25)}
        for unknown in (Pair("LINK", "USDC"), Pair("0x" + "11" * 20, "USDC"), Pair("ETH", "WETH"), Pair("A/B", "USDC")):
            with pytest.raises(Unavailable):
                await feed.path(unknown, since, NOW)
        await feed.close()


@pytest.mark.parametrize("damage", [b"", b"[1]", b"{", b'{"1": 2, "x": "3"}', b'{"1700000000": "nan"}'])
async def test_a_kept_file_that_cannot_be_read_is_asked_for_again(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "ETHUSDC-5m.json").write_bytes(damage)
    async with vendor(klines({"ETHUSDC": lambda at: 2_000}, [int(NOW)])) as here:
        feed = ExchangePath(here.url, tmp_path)
        assert len((await feed.path(Pair("ETH", "USDC"), Seconds(NOW - 3_600), NOW)).value.points) == 12
        await feed.close()


async def test_no_more_than_fourteen_days_are_kept(tmp_path: Path) -> None:
    now = [int(NOW)]
    async with vendor(klines({"ETHUSDC": lambda at: 2_000}, now)) as here:
        feed = ExchangePath(here.url, tmp_path)
        for days in (0, 5, 10):
            now[0] = NOW + days * 86_400
            await feed.path(Pair("ETH", "USDC"), Seconds(now[0] - 14 * 86_400), Seconds(now[0]))
        assert (tmp_path / "ETHUSDC-5m.json").read_bytes().count(b":") <= KEPT // STEP + 1
        await feed.close()
