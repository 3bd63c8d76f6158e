"""Names of markets as people write them, and what a catalogue knows of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zuno.kernel.errors import NotFound, UsageError
from zuno.kernel.units import Millis
from zuno.markets.market import (
    MAX_LIST_AGE,
    MOST_MARKETS,
    Catalogue,
    Market,
    Symbol,
    assume_market,
    describe_limits,
    parse_markets,
    parse_symbol,
    spell_symbol,
)
from zuno.markets.venues import VENUES, Kind, Venue

NOW = Millis(1_800_000_000_000)
BINANCE, UPBIT = Venue("BINANCE"), Venue("UPBIT")


def list_coins(venue: Venue, *coins: str) -> list[Market]:
    return [assume_market(venue, coin) for coin in coins]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SOL", "SOLUSDT"),
        (" sol/usdt ", "SOLUSDT"),
        ("sol-usdt", "SOLUSDT"),
        ("XBT", "BTCUSDT"),
        ("1000pepe", "1000PEPEUSDT"),
        ("binance:SOL/USDT:USDT", "SOLUSDT"),
        ("Binance:sol/usdt", "binance:SOL/USDT"),
        ("bybit:SOL/USDT:USDT", "bybit:SOL/USDT:USDT"),
        ("upbit:BTC/KRW", "upbit:BTC/KRW"),
    ],
)
def test_a_market_is_spelled_as_people_write_it(text: str, name: str) -> None:
    assert spell_symbol(text) == name


@pytest.mark.parametrize(
    "text", ["", "USDT", "foo:BTC/USDT", "hyperliquid:BTC/USDC", "upbit:BTC/KRW:KRW", "a b", "x" * 90]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        spell_symbol(text)


def test_markets_are_named_once_and_not_too_many() -> None:
    assert parse_markets(["btc", "SOLUSDT"]) == ("BTCUSDT", "SOLUSDT")
    assert len(parse_markets([f"A{number}" for number in range(MOST_MARKETS)])) == MOST_MARKETS
    for wrong in ([], ["btc", "BTCUSDT"], [f"A{number}" for number in range(MOST_MARKETS + 1)]):
        with pytest.raises(UsageError):
            parse_markets(wrong)


def test_a_coin_means_the_market_the_desk_trades() -> None:
    known = (Symbol("BTCUSDT"), Symbol("bybit:SOL/USDT:USDT"), Symbol("okx:XRP/USDT"), Symbol("bybit:XRP/USDT"))
    assert parse_symbol("sol", known) == "bybit:SOL/USDT:USDT"
    assert parse_symbol("OKX:xrp/usdt", known) == "okx:XRP/USDT"
    for unclear in ("xrp", "doge", "SOLUSDT"):
        with pytest.raises(UsageError):
            parse_symbol(unclear, known)
    with pytest.raises(UsageError, match="did you mean BTC"):
        parse_symbol("btcc", known)


def test_an_unknown_coin_is_answered_with_the_nearest_names() -> None:
    listed = Catalogue().renew(BINANCE, list_coins(BINANCE, "BTC", "SOL", "1000PEPE"), NOW)
    listed.require_listed(Symbol("SOLUSDT"))
    with pytest.raises(UsageError, match="SOL"):
        listed.require_listed(Symbol("SOLLUSDT"))
    with pytest.raises(UsageError, match="1000PEPE"):  # another unit is another market
        listed.require_listed(Symbol("PEPEUSDT"))
    with pytest.raises(NotFound, match="1000PEPE"):
        listed.find(BINANCE, Symbol("PEPEUSDT"))
    with pytest.raises(UsageError):
        listed.require_listed(Symbol("ZZZZUSDT"))
    never_read = Catalogue()
    never_read.require_listed(Symbol("ZZZZUSDT"))  # whoever has its history may trade it on paper
    with pytest.raises(UsageError, match="refresh"):
        never_read.require_listed(Symbol("SOLLUSDT"))


def test_a_list_is_fresh_for_a_day() -> None:
    listed = Catalogue().renew(BINANCE, list_coins(BINANCE, "BTC"), NOW)
    assert listed.find_stale(BINANCE, Millis(NOW + MAX_LIST_AGE)) is None
    for venue, now in ((BINANCE, NOW + MAX_LIST_AGE + 1), (BINANCE, NOW - 1), (UPBIT, NOW)):
        assert listed.find_stale(venue, Millis(now))


def test_a_delisted_market_stays_and_is_not_traded() -> None:
    before = Catalogue().renew(BINANCE, list_coins(BINANCE, "BTC", "LUNA"), NOW)
    before = before.renew(UPBIT, list_coins(UPBIT, "BTC"), NOW)
    after = before.renew(BINANCE, list_coins(BINANCE, "BTC", "SOL"), Millis(NOW + 1))
    assert {market.base: market.trading for market in after.list_at(BINANCE)} == {
        "BTC": True,
        "SOL": True,
        "LUNA": False,
    }
    after.require_listed(Symbol("LUNAUSDT"))
    assert after.list_at(UPBIT) == before.list_at(UPBIT)
    again = after.renew(BINANCE, list_coins(BINANCE, "BTC", "LUNA"), Millis(NOW + 2))
    assert {market.base: market.trading for market in again.list_at(BINANCE)} == {
        "BTC": True,
        "LUNA": True,
        "SOL": False,
    }


def test_a_search_goes_by_venue_kind_and_text() -> None:
    catalogue = Catalogue().renew(BINANCE, [replace(assume_market(BINANCE, "SOL"), tick=0.5)], NOW)
    assert {market.venue for market in catalogue.search(text="sol")} == set(VENUES)
    assert {market.kind for market in catalogue.search(kind=Kind.SPOT)} == {Kind.SPOT}
    assert [market.tick for market in catalogue.search(BINANCE)] == [0.5]
    assert [market.base for market in catalogue.search(UPBIT, text="xbt")] == ["BTC"]
    assert [market.base for market in catalogue.search(text="solusdt")][:1] == ["SOL"]


def test_a_venue_says_what_it_cannot_do() -> None:
    words = {str(venue): " ".join(describe_limits(venue)) for venue in VENUES}
    assert words["BINANCE"] == ""
    assert "stop orders" in words["UPBIT"]
    assert "agent key" in words["HYPERLIQUID"]
    assert all(("sold short" in text) == (not Venue(name).shorts) for name, text in words.items())


@pytest.mark.parametrize("text", ["upbit:BTC/KRW", "binance:ETH/BTC", "binance:SOL/FDUSD", "binance:SOL/USDC"])
def test_a_market_that_is_not_priced_in_its_venue_s_dollars_is_refused_where_it_is_named(text: str) -> None:
    quote = text.partition("/")[2]
    with pytest.raises(UsageError, match=rf"priced in {quote}.*{text[text.index(':') + 1 : text.index('/')]}USDT"):
        parse_markets([text])
    assert parse_markets(["hyperliquid:SOL/USDC:USDC", "BTCUSDT"])
