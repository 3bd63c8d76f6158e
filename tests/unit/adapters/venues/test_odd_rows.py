"""Rows no market can have made.

What is no number, no moment or no book is `Malformed`; a number that cannot be is passed on, for the store sets it
aside with its reason and its place.
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.vendors.questions import QUESTIONS, Question, after, asking
from tests.wire.vendors.serving import said
from tests.wire.vendors.world import HALF_PAST, NOON, World
from zuno.adapters.venues.vendor_json import VendorJson, parse_book
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.market import HOUR_MS, OptionQuote, Timeframe


def question(name: str) -> Question:
    return next(question for question in QUESTIONS if question.name == name)


def test_numbers_come_bare_or_in_quotes() -> None:
    row = VendorJson("a row", {"a": 1, "b": Decimal("1.5"), "c": "-2.25", "d": "1e3", "e": None, "f": ""})
    assert [row.number(name) for name in "abcd"] == [1.0, 1.5, -2.25, 1_000.0]
    assert (row.maybe_number("e"), row.maybe_number("f")) == (None, None)


@pytest.mark.parametrize(
    "value",
    ["NaN", "inf", "-Infinity", "1_000", "", None, True, [], {}, "0x10", "abc", "9" * 41, Decimal("1e400"), "1e400"],
)
def test_what_is_no_number_is_malformed(value: object) -> None:
    with pytest.raises(Malformed, match="field 'x'"):
        VendorJson("a row", {"x": value}).number("x")


@pytest.mark.parametrize(
    "value", [0, -5, 1_760_000_000, 1_760_000_000_000_000, "1760000000", 1.5, True, None, "x", "١٢"]
)
def test_a_moment_in_another_unit_is_malformed(value: object) -> None:
    with pytest.raises(Malformed, match="unit"):
        VendorJson("a row", {"x": value}).moment("x")


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner),
    )
)
def test_reading_strangers_values_is_malformed_or_works(value: Any) -> None:
    """Never anything else, whatever is sent."""
    answer = VendorJson("it", value)
    readers = [answer.number, answer.moment, answer.text, answer.flag, answer.day, answer.moment_of_text, answer.whole]
    readers += [partial(answer.moment, per_second=parts) for parts in (1, 1_000_000)]
    readers += [answer.children, answer.maybe_number]
    for read in readers:
        for field in ("a", 0, -1):
            try:
                read(field)
            except Malformed:
                continue


# -- candles


async def bars_with(change: Any) -> Any:
    asked = question("binance candles")
    async with asking(asked) as (here, feed):
        here.change = lambda path, document: change(document) if path.endswith("klines") else document
        return await asked.ask(feed)


@pytest.mark.slow
async def test_rows_out_of_order_are_sorted_and_repeated_ones_are_one() -> None:
    usual = await bars_with(lambda rows: rows)
    assert await bars_with(lambda rows: [*rows[::-1], rows[0]]) == usual


async def test_bars_that_contradict_each_other_are_malformed() -> None:
    with pytest.raises(Malformed, match="moment"):
        await bars_with(lambda rows: [*rows, [rows[0][0], *rows[1][1:]]])


@pytest.mark.parametrize("place", [1, 2, 3, 4, 5, 9])
async def test_a_bar_with_something_that_is_no_number_is_malformed(place: int) -> None:
    def spoil(rows: list[Any]) -> list[Any]:
        rows[3][place] = "NaN"
        return rows

    with pytest.raises(Malformed, match=f"field {place}"):
        await bars_with(spoil)


async def test_numbers_no_market_can_have_made_are_left_to_the_store() -> None:
    def spoil(rows: list[Any]) -> list[Any]:
        rows[2][5] = "-4.5"
        rows[3][2], rows[3][3] = rows[3][3], rows[3][2]
        return rows

    found = await bars_with(spoil)
    assert found[2].volume == -4.5
    assert found[3].high < found[3].low


async def test_a_bar_whose_own_end_the_venue_puts_later_is_not_closed() -> None:
    """The newest bar may still run by its own word and is left out; when it is two of them, the venue has stopped."""

    def longer(count: int) -> Any:
        def change(rows: list[Any]) -> list[Any]:
            for row in rows[-count:]:
                row[6] += 2 * HOUR_MS
            return rows

        return change

    usual = await bars_with(lambda rows: rows)
    assert await bars_with(longer(1)) == usual[:-1]
    with pytest.raises(Unavailable, match=r"\bstop\b"):
        await bars_with(longer(2))


async def test_a_venue_that_leaves_bars_out_is_asked_again() -> None:
    """The first page lacks three bars in its middle; asked for just those, the venue has them."""
    asked = question("binance candles")
    async with asking(asked) as (here, feed):
        usual = await asked.ask(feed)
        here.change = lambda path, rows: rows[:2] + rows[5:] if path.endswith("klines") and len(rows) > 5 else rows
        assert await asked.ask(feed) == usual


@pytest.mark.parametrize("name", ["binance candles", "bybit candles"])
async def test_a_page_that_stops_half_way_is_unavailable(name: str) -> None:
    def half(path: str, document: Any) -> Any:
        rows = document if isinstance(document, list) else document.get("result", {}).get("list")
        if isinstance(rows, list) and rows and isinstance(rows[0], list):
            rows[:] = [row for row in rows if int(row[0]) < after(-4)]
        return document

    asked = question(name)
    async with asking(asked) as (here, feed):
        here.change = half
        with pytest.raises(Unavailable, match=r"\bstop\b"):
            await asked.ask(feed)


# -- books


def book(bids: list[list[str]], asks: list[list[str]]) -> Any:
    return parse_book(VendorJson("a book", {"bids": bids, "asks": asks}), HALF_PAST, "bids", "asks", 10)


def test_a_book_out_of_order_is_put_best_first() -> None:
    made = book([["98", "1"], ["99", "2"]], [["102", "1"], ["101", "3"]])
    assert [quote.price for quote in made.bids] == [99.0, 98.0]
    assert [quote.price for quote in made.asks] == [101.0, 102.0]


@pytest.mark.parametrize(
    ("bids", "asks", "why"),
    [
        ([["101", "1"]], [["100", "1"]], "is crossed: 101 is bid and 100 asked"),
        ([["100", "1"]], [["100", "1"]], "is crossed"),
        ([], [["100", "1"]], "empty on one side"),
        ([["99", "-1"]], [["100", "1"]], "below zero"),
        ([["-99", "1"]], [["100", "1"]], "below zero"),
        ([["99", "1"], ["99", "2"]], [["100", "1"]], "one price twice"),
        ([["NaN", "1"]], [["100", "1"]], "is not a number"),
        ([["99"]], [["100", "1"]], "has no field 1"),
    ],
)
def test_what_is_no_book_is_malformed(bids: list[list[str]], asks: list[list[str]], why: str) -> None:
    with pytest.raises(Malformed, match=why):
        book(bids, asks)


# -- derivatives


@pytest.mark.parametrize(
    ("name", "path", "field", "value"),
    [
        ("bybit funding", "instruments-info", "fundingInterval", 0),
        ("okx funding", "public/funding-rate", "nextFundingTime", str(NOON - HOUR_MS)),
        ("okx open interest", "public/instruments", "ctValCcy", "USDT"),
        ("okx open interest", "public/instruments", "ctVal", "0"),
        ("bybit long/short", "account-ratio", "sellRatio", "0"),
        ("bybit long/short", "account-ratio", "buyRatio", "56.5"),
        ("fear and greed", "fng/", "value", "101"),
    ],
)
async def test_a_unit_that_cannot_be_is_malformed(name: str, path: str, field: str, value: object) -> None:
    asked = question(name)

    def spoil(at: str, document: Any) -> Any:
        text = json.dumps(document)
        rows = document.get("data") or document["result"]["list"] if at.endswith(path) else []
        for row in rows:
            row[field] = value
        assert not rows or json.dumps(document) != text
        return document

    async with asking(asked) as (here, feed):
        here.change = spoil
        with pytest.raises(Malformed):
            await asked.ask(feed)


async def test_binance_lists_only_intervals_that_were_changed() -> None:
    asked = question("binance next funding")
    async with asking(asked) as (here, feed):
        here.change = lambda path, document: [] if path.endswith("fundingInfo") else document
        assert (await asked.ask(feed)).interval_hours == 8.0


# -- options


async def test_an_option_that_is_no_longer_listed_has_no_expiry() -> None:
    gone = OptionQuote("BTC-9OCT25-58000-P", None, 58_000.0, False, None, 3.5, 0.0, None)
    world = World()
    world.chain = type(world.chain)(world.chain.at, (*world.chain.quotes, gone))
    async with asking(question("deribit chain"), world=world) as (_, feed):
        assert (await feed.chain("BTC")).quotes[-1] == gone


async def test_a_small_strike_is_written_with_a_d() -> None:
    gone = OptionQuote("XRP_USDC-9OCT25-0d625-C", None, 0.625, True, 80.0, 3.5, 0.0, None)
    world = World()
    world.chain = type(world.chain)(world.chain.at, (gone,))
    async with asking(question("deribit chain"), world=world) as (_, feed):
        assert (await feed.chain("BTC")).quotes == (gone,)


@pytest.mark.parametrize("name", ["BTC-PERPETUAL", "BTC-9OCT25-x-C", "BTC-9OCT25-58000-F", ""])
async def test_an_option_whose_name_says_nothing_is_malformed(name: str) -> None:
    world = World()
    gone = OptionQuote(name, None, 0.0, True, None, 0.0, 0.0, None)
    world.chain = type(world.chain)(world.chain.at, (gone,))
    async with asking(question("deribit chain"), world=world) as (_, feed):
        with pytest.raises(Malformed):
            await feed.chain("BTC")


# -- time


async def test_a_clock_that_is_wrong_here_changes_nothing() -> None:
    """No adapter of an exchange is told what time it is: only the venue's answers decide."""
    world = World(now=NOON + 20 * 60_000)
    async with asking(question("upbit candles"), world=world) as (_, feed):
        found = await feed.candles("KRW-BTC", Timeframe.H1, after(-3), Millis(2_000_000_000_000))
        assert found[-1].at == after(-1)


async def test_a_page_of_html_from_an_exchange_is_malformed() -> None:
    asked = question("binance candles")
    async with asking(asked) as (here, feed):
        here.next = [
            said({"serverTime": NOON}),
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>",
        ]
        with pytest.raises(Malformed, match="klines"):
            await asked.ask(feed)
