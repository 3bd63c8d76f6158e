"""OKX's linear perpetuals: what it says of funding, open interest and positions.

Endpoints: https://www.okx.com/docs-v5/en (Get funding rate, Get funding rate history, Get open
interest history, Get contract long/short ratio, Get mark price, Get index tickers, Get instruments). Open interest is
told in contracts; one contract is `ctVal` of the base currency.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from zuno.adapters.venues.exchange import ExchangeFeed, ExchangeVendor
from zuno.adapters.venues.paging import fetch_irregular, pick_period
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, HOUR_MS, Funding, Level, MarkAndIndex
from zuno.trading.model.venues import OKX

VENDOR: Final = ExchangeVendor("okx", "OKX", envelope="code")
POINTS_A_PAGE: Final = 100


class Okx(ExchangeFeed):
    """Derivatives of one venue."""

    venue = OKX

    async def funding(self, symbol: str, since: Millis, until: Millis) -> Sequence[Funding]:
        """The rate that was paid, with the interval the venue has now."""
        hours = _interval(await self._rate(symbol))

        async def page(low: Millis, high: Millis) -> Sequence[Funding]:
            answer = await self._ask(
                "PublicFundingRateHistory",
                "rates",
                instId=_swap(symbol),
                before=low - 1,
                after=high + 1,
                limit=POINTS_A_PAGE,
            )
            return [Funding(row.moment("fundingTime"), row.number("realizedRate"), hours) for row in answer]

        return await fetch_irregular("OKX's rates of funding", page, since, until, newest_first=True)

    async def funding_next(self, symbol: str) -> Funding:
        rate = await self._rate(symbol)
        return Funding(rate.moment("ts"), rate.number("fundingRate"), _interval(rate))

    async def open_interest(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        contract = await self._contract(symbol)
        return await self._points(symbol, since, until, "OpenInterestHistory", "open interest", contract)

    async def long_short(self, symbol: str, since: Millis, until: Millis) -> Sequence[Level]:
        endpoint = "LongShortAccountRatioContract"
        return await self._points(symbol, since, until, endpoint, "long/short ratios", 1.0)

    async def basis(self, symbol: str) -> MarkAndIndex:
        marks = await self._ask("PublicMarkPrice", "marks", instType="SWAP", instId=_swap(symbol))
        index = await self._ask("MarketIndexTickers", "index", instId=_swap(symbol).removesuffix("-SWAP"))
        mark, spot = _only(marks, symbol), _only(index, symbol)
        return MarkAndIndex(mark.moment("ts"), mark.number("markPx"), spot.number("idxPx"))

    async def _ask(self, endpoint: str, what: str, **params: object) -> list[VendorJson]:
        return (await self._exchange.ask(f"publicGet{endpoint}", what, **params)).children("data")

    async def _rate(self, symbol: str) -> VendorJson:
        return _only(await self._ask("PublicFundingRate", "rate", instId=_swap(symbol)), symbol)

    async def _contract(self, symbol: str) -> float:
        """How much of the base currency one contract is."""
        listed = _only(
            await self._ask("PublicInstruments", "instruments", instType="SWAP", instId=_swap(symbol)), symbol
        )
        base, size = listed.text("ctValCcy"), listed.number("ctVal")
        if base != symbol.removesuffix("USDT") or size <= 0:
            raise Malformed(
                f"OKX says that a contract of {symbol} is {size:g} {base[:10]}, which is not its base currency"
            )
        return size

    async def _points(
        self, symbol: str, since: Millis, until: Millis, endpoint: str, what: str, times: float
    ) -> Sequence[Level]:
        period, step = pick_period(since, until, "5m", "1H")

        async def page(low: Millis, high: Millis) -> Sequence[Level]:
            rows = await self._ask(
                f"RubikStatContracts{endpoint}",
                what,
                instId=_swap(symbol),
                period=period,
                begin=low - 1,
                end=high + 1,
                limit=POINTS_A_PAGE,
            )
            return [Level(row.moment(0), row.number(1) * times) for row in rows]

        span = POINTS_A_PAGE * step
        return await fetch_irregular(f"OKX's {what}", page, since, until, newest_first=True, apart=step, span=span)


def _swap(symbol: str) -> str:
    return f"{symbol.removesuffix('USDT')}-USDT-SWAP"


def _only(rows: list[VendorJson], symbol: str) -> VendorJson:
    if not rows:
        raise Unavailable(f"OKX says nothing of {symbol}")
    return VendorJson(rows[0].what, [row.value for row in rows]).only()


def _interval(rate: VendorJson) -> float:
    """Hours from the coming settlement to the one after it."""
    span = rate.moment("nextFundingTime") - rate.moment("fundingTime")
    if not 0 < span <= DAY_MS:
        raise Malformed(f"OKX says that {span} ms lie between two fundings, which cannot be")
    return span / HOUR_MS
