"""Deribit's options: every listed one with its expiry, and the index of implied volatility.

Endpoints: https://docs.deribit.com/api-reference/market-data (get_instruments, get_book_summary_by_currency,
get_volatility_index_data). The summary names neither expiry nor strike: both lists are joined by name.
"""

from collections.abc import Sequence
from typing import Final

from zuno.adapters.venues.exchange import ExchangeFeed, ExchangeVendor
from zuno.adapters.venues.paging import fetch_regular, time_limit
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Millis
from zuno.markets.feeds import DERIBIT
from zuno.trading.model.market import HOUR_MS, Level, OptionChain, OptionQuote

VENDOR: Final = ExchangeVendor("deribit", "Deribit", "www.deribit.com")
HOURS_A_PAGE: Final = 1_000
_CALL: Final = {"call": True, "put": False}


class Deribit(ExchangeFeed):
    venue = DERIBIT

    async def chain(self, currency: str) -> OptionChain:
        """An option that is summed up but no longer listed (it just expired) keeps its figures and has no expiry."""
        async with time_limit("Deribit's options"):
            asked = {"currency": currency, "kind": "option"}
            listed = await self._exchange.ask("publicGetGetInstruments", "instruments", **asked, expired="false")
            summary = await self._exchange.ask("publicGetGetBookSummaryByCurrency", "summary", **asked)
        terms = {item.text("instrument_name"): _terms(item) for item in listed.children("result")}
        quotes = tuple(_quote(item, terms) for item in summary.children("result"))
        return OptionChain(summary.moment("usOut", per_second=1_000_000), quotes)

    async def dvol(self, currency: str, since: Millis, until: Millis) -> Sequence[Level]:
        """Each close at the moment its hour ended; the hour that still runs by the venue's clock is left out."""

        async def page(low: Millis, high: Millis) -> Sequence[Level]:
            asked = {"currency": currency, "start_timestamp": low, "end_timestamp": high, "resolution": "3600"}
            answer = await self._exchange.ask("publicGetGetVolatilityIndexData", "volatility index", **asked)
            return [Level(row.moment(0), row.number(4)) for row in answer.child("result").children("data")]

        now = (await self._exchange.ask("publicGetGetTime", "time")).moment("result")
        first = -(-since // HOUR_MS) * HOUR_MS - HOUR_MS
        newest = (now // HOUR_MS - 1) * HOUR_MS
        last = min((until // HOUR_MS - 1) * HOUR_MS, newest)
        what = "Deribit's volatility index"
        rows = await fetch_regular(what, page, Millis(first), Millis(last), HOUR_MS, HOURS_A_PAGE, newest)
        return [Level(Millis(row.at + HOUR_MS), row.value) for row in rows]


_Terms = tuple[Millis, float, bool]


def _terms(item: VendorJson) -> _Terms:
    kind = item.text("option_type")
    if kind not in _CALL:
        raise Malformed(f"{item.what}: an option is neither a call nor a put")
    return item.moment("expiration_timestamp"), item.number("strike"), _CALL[kind]


def _quote(item: VendorJson, terms: dict[str, _Terms]) -> OptionQuote:
    name = item.text("instrument_name")
    expiry, strike, call = terms[name] if name in terms else _terms_of_name(name, item.what)
    return OptionQuote(
        name,
        expiry,
        strike,
        call,
        item.maybe_number("mark_iv"),
        item.number("open_interest"),
        item.number("volume"),
        item.maybe_number("underlying_price"),
    )


def _terms_of_name(name: str, what: str) -> tuple[None, float, bool]:
    """`BTC-28MAR25-90000-C`; a strike below ten is written with a d for its point."""
    parts = name.split("-")
    try:
        return None, float(parts[2].replace("d", ".")), {"C": True, "P": False}[parts[3]]
    except (IndexError, ValueError, KeyError):
        raise Malformed(f"{what} names an option in a way that cannot be read") from None
