"""The exam of the trading desk's feeds: every vendor, over its own bytes on loopback, and the recording sit it.

A candidate is put into a small market (`vendors.world`) and asked. What a venue does not say (who took a bar's volume)
is taken out of what is expected of it, by name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from tests.wire.fakes.series import MemorySeries
from tests.wire.fakes.venues import RecordedFigures, RecordedTexts, RecordedVenue
from tests.wire.vendors import binance as binance_wire
from tests.wire.vendors import bybit as bybit_wire
from tests.wire.vendors import deribit as deribit_wire
from tests.wire.vendors import figures, words
from tests.wire.vendors import hyperliquid as hyperliquid_wire
from tests.wire.vendors import okx as okx_wire
from tests.wire.vendors import upbit as upbit_wire
from tests.wire.vendors.serving import Route, vendor
from tests.wire.vendors.stream import streaming
from tests.wire.vendors.world import HALF_PAST, NOON, SYMBOL, World, bars
from zuno.adapters.http import RequestLimits
from zuno.adapters.venues.binance import VENDOR as BINANCE_VENDOR
from zuno.adapters.venues.binance import Binance, BinanceSpot, BinanceTape
from zuno.adapters.venues.bybit import VENDOR as BYBIT_VENDOR
from zuno.adapters.venues.bybit import Bybit, BybitSpot, BybitTape
from zuno.adapters.venues.deribit import VENDOR as DERIBIT_VENDOR
from zuno.adapters.venues.deribit import Deribit
from zuno.adapters.venues.exchange import ExchangeClient, ExchangeVendor
from zuno.adapters.venues.hyperliquid import VENDOR as HYPERLIQUID_VENDOR
from zuno.adapters.venues.hyperliquid import Hyperliquid
from zuno.adapters.venues.macro import FearGreed, Fred, Yahoo
from zuno.adapters.venues.okx import VENDOR as OKX_VENDOR
from zuno.adapters.venues.okx import Okx, OkxSpot, OkxTape
from zuno.adapters.venues.texts import Channels, Search
from zuno.adapters.venues.upbit import VENDOR as UPBIT_VENDOR
from zuno.adapters.venues.upbit import Upbit
from zuno.adapters.venues.web import WebService
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model import market
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Feed,
    Heartbeat,
    Level,
    MacroRelease,
    Series,
    Side,
    TapeEvent,
    Text,
    Timeframe,
)
from zuno.trading.ports.feeds import (
    BookFeed,
    CandleFeed,
    DerivativesFeed,
    LevelFeed,
    MacroFeed,
    OptionsFeed,
    TapeFeed,
    TextFeed,
)
from zuno.trading.ports.series import Batch, Origin

QUICK = RequestLimits(timeout=2.0, attempts=1)
ALWAYS = Millis(0), Millis(NOON + 10 * DAY_MS)
LONG_AGO = Millis(NOON - 900 * DAY_MS), Millis(NOON - 899 * DAY_MS)


def after(hours: float) -> Millis:
    return Millis(round(NOON + hours * HOUR_MS))


# -- candidates: a feed that knows a world, and one that knows nothing

Making = Callable[[World], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True)
class Candidate:
    name: str
    knowing: Making
    symbol: str = SYMBOL
    unknown: str = "NOPEUSDT"
    says_taker: bool = True

    @property
    def venue_has_no_weeks(self) -> bool:
        return self.name.startswith("hyperliquid")


def over_exchange(
    kind: Callable[[ExchangeClient], Any], who: ExchangeVendor, routes: Callable[[World], dict[str, Route]]
) -> Making:
    @asynccontextmanager
    async def knowing(world: World) -> AsyncIterator[Any]:
        async with vendor(routes(world)) as here:
            feed = kind(ExchangeClient(who, here.url, patience=QUICK, throttled=False))
            try:
                yield feed
            finally:
                await feed.close()

    return knowing


def over_web(
    kind: Callable[[WebService, World], Any], path: str, routes: Callable[[World], dict[str, Route]]
) -> Making:
    @asynccontextmanager
    async def knowing(world: World) -> AsyncIterator[Any]:
        async with vendor(routes(world)) as here:
            feed = kind(WebService("The service", here.url + path, patience=QUICK), world)
            try:
                yield feed
            finally:
                await feed.close()

    return knowing


def over_store(kind: Callable[[MemorySeries, World], Any], symbol: str = SYMBOL) -> Making:
    @asynccontextmanager
    async def knowing(world: World) -> AsyncIterator[Any]:
        store = MemorySeries(Origin(synthetic=False, label="recorded"))
        await store.write(batches(world, "binance", symbol))
        yield kind(store, world)

    return knowing


def batches(world: World, venue: str, symbol: str) -> list[Batch[Any]]:
    given: list[tuple[Series[Any], Sequence[Any]]] = [
        (market.candles(venue, symbol, world.timeframe), world.candles),
        (market.funding(venue, symbol), world.funding),
        (market.funding_next(venue, symbol), [world.funding_next]),
        (market.open_interest(venue, symbol), world.open_interest),
        (market.long_short(venue, symbol), world.long_short),
        (market.basis(venue, symbol), [world.basis]),
        (market.books(venue, symbol), [world.book]),
        (market.options("deribit", "BTC"), [world.chain]),
        (market.dvol("deribit", "BTC"), world.dvol),
        (market.macro("yahoo", "NASDAQ"), world.prints),
        (market.fear_greed("alternative.me"), world.levels),
        (market.rates("upbit", "KRW-USDT"), world.levels),
        (market.texts(Feed.NEWS, "channels", "BTC"), world.texts),
    ]
    return [Batch(series, rows) for series, rows in given if rows]


def recorded(venue: str) -> Making:
    return over_store(lambda store, world: RecordedVenue(store, venue, lambda: Millis(world.now)))


BINANCE = Candidate("binance", over_exchange(Binance, BINANCE_VENDOR, binance_wire.routes))
BINANCE_IN_SHORT_PAGES = Candidate(
    "binance, seven rows a page", over_exchange(Binance, BINANCE_VENDOR, lambda world: binance_wire.routes(world, 7))
)
BYBIT = Candidate("bybit", over_exchange(Bybit, BYBIT_VENDOR, bybit_wire.routes), says_taker=False)
BYBIT_IN_SHORT_PAGES = replace(
    BYBIT,
    name="bybit, seven rows a page",
    knowing=over_exchange(Bybit, BYBIT_VENDOR, lambda world: bybit_wire.routes(world, 7)),
)
OKX = Candidate("okx", over_exchange(Okx, OKX_VENDOR, okx_wire.routes), says_taker=False)
SPOTS = (
    Candidate("binance spot", over_exchange(BinanceSpot, BINANCE_VENDOR, binance_wire.routes)),
    Candidate(
        "bybit spot",
        over_exchange(BybitSpot, BYBIT_VENDOR, lambda world: bybit_wire.routes(world, category="spot")),
        says_taker=False,
    ),
    Candidate("okx spot", over_exchange(OkxSpot, OKX_VENDOR, okx_wire.routes), says_taker=False),
)
HYPERLIQUID = Candidate(
    "hyperliquid",
    over_exchange(Hyperliquid, HYPERLIQUID_VENDOR, hyperliquid_wire.routes),
    "BTCUSDC",
    "NOPEUSDC",
    says_taker=False,
)
HYPERLIQUID_IN_SHORT_PAGES = replace(
    HYPERLIQUID,
    name="hyperliquid, seven rows a page",
    knowing=over_exchange(Hyperliquid, HYPERLIQUID_VENDOR, lambda world: hyperliquid_wire.routes(world, 7)),
)
OKX_IN_SHORT_PAGES = replace(
    OKX, name="okx, seven rows a page", knowing=over_exchange(Okx, OKX_VENDOR, lambda world: okx_wire.routes(world, 7))
)
UPBIT = Candidate(
    "upbit", over_exchange(Upbit, UPBIT_VENDOR, upbit_wire.routes), "KRW-BTC", "KRW-NOPE", says_taker=False
)
UPBIT_IN_SHORT_PAGES = replace(
    UPBIT,
    name="upbit, seven rows a page",
    knowing=over_exchange(Upbit, UPBIT_VENDOR, lambda world: upbit_wire.routes(world, 7)),
)
DERIBIT = Candidate("deribit", over_exchange(Deribit, DERIBIT_VENDOR, deribit_wire.routes), "BTC", "NOPE")
RECORDED = Candidate("recorded", recorded("binance"))


def sit(*candidates: Candidate) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("candidate", candidates, ids=lambda candidate: candidate.name)


# -- candles

of_candles = sit(
    BINANCE, BINANCE_IN_SHORT_PAGES, BYBIT, BYBIT_IN_SHORT_PAGES, OKX, OKX_IN_SHORT_PAGES, *SPOTS, HYPERLIQUID,
    HYPERLIQUID_IN_SHORT_PAGES, UPBIT, UPBIT_IN_SHORT_PAGES, RECORDED,
)  # fmt: skip


def expected(candidate: Candidate, world: World) -> list[market.Candle]:
    """All but the bar that is not over."""
    closed = [bar for bar in world.candles if bar.at + world.timeframe.millis <= world.now]
    return closed if candidate.says_taker else [bar._replace(taker_buy=None) for bar in closed]


@of_candles
async def test_closed_bars_come_oldest_first_and_the_one_that_runs_does_not(candidate: Candidate) -> None:
    world = World()
    async with candidate.knowing(world) as made:
        feed: CandleFeed = made
        found = await feed.candles(candidate.symbol, Timeframe.H1, after(-60), after(24))
    assert list(found) == expected(candidate, world)
    assert len(found) == 30


@of_candles
async def test_both_ends_of_the_time_are_included(candidate: Candidate) -> None:
    world = World()
    async with candidate.knowing(world) as feed:
        found = await feed.candles(candidate.symbol, Timeframe.H1, after(-9), after(-3))
        inside = await feed.candles(candidate.symbol, Timeframe.H1, after(-8.5), after(-3.5))
    assert [bar.at for bar in found] == [after(hour) for hour in range(-9, -2)]
    assert [bar.at for bar in inside] == [after(hour) for hour in range(-8, -3)]


@of_candles
async def test_a_bar_is_closed_when_the_venues_clock_is_past_its_end(candidate: Candidate) -> None:
    """Whatever time it is here: the same bars, and the venue's clock a moment before and at the end of the last."""
    for now, last in ((NOON + HOUR_MS - 1, -1), (NOON + HOUR_MS + 1, 0)):
        async with candidate.knowing(World(now=now)) as feed:
            found = await feed.candles(candidate.symbol, Timeframe.H1, after(-5), after(24))
        assert found[-1].at == after(last)


@of_candles
async def test_time_before_the_first_bar_is_empty(candidate: Candidate) -> None:
    async with candidate.knowing(World()) as feed:
        assert not await feed.candles(candidate.symbol, Timeframe.H1, after(-200), after(-100))


@of_candles
async def test_bars_of_a_symbol_nobody_knows_are_unavailable(candidate: Candidate) -> None:
    async with candidate.knowing(World()) as feed:
        with pytest.raises(Unavailable):
            await feed.candles(candidate.unknown, Timeframe.H1, after(-9), after(-3))


@of_candles
@pytest.mark.parametrize("timeframe", [Timeframe.M1, Timeframe.H4, Timeframe.D1, Timeframe.W1])
async def test_bars_of_every_length(candidate: Candidate, timeframe: Timeframe) -> None:
    world = World(candles=bars(9, timeframe, upto=HALF_PAST), timeframe=timeframe)
    if timeframe is Timeframe.W1 and candidate.venue_has_no_weeks:
        days = World(candles=bars(24, Timeframe.D1, upto=HALF_PAST), timeframe=Timeframe.D1)
        async with candidate.knowing(days) as feed:
            weeks = await feed.candles(candidate.symbol, timeframe, Millis(NOON - 90 * DAY_MS), after(24))
        assert weeks
        assert all(timeframe.floor(week.at) == week.at for week in weeks)
        return
    async with candidate.knowing(world) as feed:
        found = await feed.candles(candidate.symbol, timeframe, Millis(NOON - 90 * DAY_MS), after(24))
    assert list(found) == expected(candidate, world)


@sit(UPBIT, RECORDED)
async def test_where_no_bar_was_made_none_is_invented(candidate: Candidate) -> None:
    world = World()
    del world.candles[10:13]
    async with candidate.knowing(world) as feed:
        found = await feed.candles(candidate.symbol, Timeframe.H1, after(-60), after(24))
    assert list(found) == expected(candidate, world)


# -- derivatives

of_derivatives = sit(BINANCE, BINANCE_IN_SHORT_PAGES, BYBIT, BYBIT_IN_SHORT_PAGES, OKX, OKX_IN_SHORT_PAGES, RECORDED)


@of_derivatives
async def test_rates_are_fractions_for_the_venues_interval(candidate: Candidate) -> None:
    world = World()
    async with candidate.knowing(world) as made:
        feed: DerivativesFeed = made
        assert list(await feed.funding(candidate.symbol, after(-96), after(0))) == world.funding
        assert list(await feed.funding(candidate.symbol, after(-40), after(-8))) == world.funding[-6:-1]
        assert await feed.funding_next(candidate.symbol) == world.funding_next


@sit(BINANCE, BYBIT, OKX)
async def test_an_interval_that_is_not_eight_hours_is_the_venues_own(candidate: Candidate) -> None:
    async with candidate.knowing(World(hours=4.0)) as feed:
        assert (await feed.funding_next(candidate.symbol)).interval_hours == 4.0
        assert {row.interval_hours for row in await feed.funding(candidate.symbol, after(-96), after(0))} == {4.0}


@of_derivatives
async def test_a_rate_in_percent_is_kept_as_it_was_said(candidate: Candidate) -> None:
    """Whether it is plausible is for a rule to say."""
    world = World()
    world.funding[3] = world.funding[3]._replace(rate=0.0125)
    async with candidate.knowing(world) as feed:
        assert list(await feed.funding(candidate.symbol, after(-96), after(0))) == world.funding


@of_derivatives
async def test_open_interest_is_in_base_units_and_ratios_are_longs_for_a_short(candidate: Candidate) -> None:
    world = World()
    async with candidate.knowing(world) as feed:
        interest = await feed.open_interest(candidate.symbol, after(-1.5), after(0.5))
        ratios = await feed.long_short(candidate.symbol, after(-2), after(-0.5))
    assert [row.at for row in interest] == [row.at for row in world.open_interest[-19:]]
    assert [row.value for row in interest] == pytest.approx([row.value for row in world.open_interest[-19:]])
    assert [row.at for row in ratios] == [row.at for row in world.long_short[:19]]
    assert [row.value for row in ratios] == pytest.approx([row.value for row in world.long_short[:19]])


@of_derivatives
async def test_the_mark_stands_beside_its_index(candidate: Candidate) -> None:
    world = World()
    async with candidate.knowing(world) as feed:
        assert await feed.basis(candidate.symbol) == world.basis


@of_derivatives
async def test_derivatives_of_a_time_without_any_are_empty(candidate: Candidate) -> None:
    async with candidate.knowing(World()) as feed:
        assert not await feed.funding(candidate.symbol, after(-300), after(-200))
        assert not await feed.open_interest(candidate.symbol, after(-30), after(-20))
        assert not await feed.long_short(candidate.symbol, after(-30), after(-20))


@of_derivatives
async def test_derivatives_of_a_symbol_nobody_knows_are_unavailable(candidate: Candidate) -> None:
    async with candidate.knowing(World()) as feed:
        asked = [
            feed.funding(candidate.unknown, after(-9), after(-3)),
            feed.funding_next(candidate.unknown),
            feed.open_interest(candidate.unknown, after(-9), after(-3)),
            feed.long_short(candidate.unknown, after(-9), after(-3)),
            feed.basis(candidate.unknown),
        ]
        for question in asked:
            with pytest.raises(Unavailable):
                await question


@sit(HYPERLIQUID, HYPERLIQUID_IN_SHORT_PAGES)
async def test_hyperliquid_pays_every_hour_and_tells_what_is_open_now(candidate: Candidate) -> None:
    world = World()
    async with candidate.knowing(world) as feed:
        rates = await feed.funding(candidate.symbol, after(-96), after(0))
        assert list(rates) == [row._replace(interval_hours=1.0) for row in world.funding]
        assert await feed.funding_next(candidate.symbol) == world.funding_next._replace(interval_hours=1.0)
        assert await feed.basis(candidate.symbol) == world.basis
        assert list(await feed.open_interest(candidate.symbol, after(-9), after(1))) == [
            Level(HALF_PAST, world.open_interest[-1].value)
        ]
        late = Millis(HALF_PAST - 200)
        assert [row.at for row in await feed.open_interest(candidate.symbol, late, late)] == [late]
        assert not await feed.open_interest(candidate.symbol, after(-9), after(-3))
        for question in (
            feed.long_short(candidate.symbol, after(-9), after(-3)),
            feed.funding(candidate.unknown, after(-9), after(-3)),
            feed.basis(candidate.unknown),
        ):
            with pytest.raises(Unavailable):
                await question


@sit(HYPERLIQUID)
async def test_hyperliquids_weeks_are_whole_and_open_on_monday(candidate: Candidate) -> None:
    world = World(candles=bars(30, Timeframe.D1, upto=HALF_PAST), timeframe=Timeframe.D1)
    async with candidate.knowing(world) as feed:
        weeks = await feed.candles(candidate.symbol, Timeframe.W1, Millis(NOON - 90 * DAY_MS), after(24))
    assert len(weeks) == 3
    for week in weeks:
        days = [day for day in world.candles if week.at <= day.at < week.at + 7 * DAY_MS]
        assert Timeframe.W1.floor(week.at) == week.at
        assert len(days) == 7
        assert (week.open, week.close) == (days[0].open, days[-1].close)
        assert (week.high, week.low) == (max(day.high for day in days), min(day.low for day in days))
        assert week.volume == pytest.approx(sum(day.volume for day in days))


async def test_a_coin_by_the_thousand_has_hyperliquids_own_name() -> None:
    knowing = over_exchange(Hyperliquid, HYPERLIQUID_VENDOR, lambda world: hyperliquid_wire.routes(world, coin="kPEPE"))
    async with knowing(World()) as feed:
        assert await feed.basis("1000PEPEUSDC") == World().basis


# -- books

of_books = sit(BINANCE, BYBIT, OKX, *SPOTS, HYPERLIQUID, RECORDED)


@of_books
async def test_a_book_is_best_first_and_as_deep_as_asked(candidate: Candidate) -> None:
    world = World()
    async with candidate.knowing(world) as made:
        feed: BookFeed = made
        whole, top = await feed.book(candidate.symbol, 100), await feed.book(candidate.symbol, 3)
    assert whole == world.book
    assert (top.bids, top.asks) == (world.book.bids[:3], world.book.asks[:3])


@of_books
async def test_a_book_of_a_symbol_nobody_knows_is_unavailable(candidate: Candidate) -> None:
    async with candidate.knowing(World()) as feed:
        with pytest.raises(Unavailable):
            await feed.book(candidate.unknown, 5)


# -- options

of_options = sit(DERIBIT, Candidate("recorded", recorded("deribit"), "BTC", "NOPE"))


@of_options
async def test_every_option_has_its_expiry_and_its_forward(candidate: Candidate) -> None:
    world = World()
    async with candidate.knowing(world) as made:
        feed: OptionsFeed = made
        assert await feed.chain("BTC") == world.chain


@of_options
async def test_the_index_of_volatility_is_hourly_and_over(candidate: Candidate) -> None:
    world = World()
    async with candidate.knowing(world) as feed:
        assert list(await feed.dvol("BTC", after(-10), after(24))) == world.dvol[-11:]
        assert list(await feed.dvol("BTC", after(-10), after(-5))) == world.dvol[-11:-5]
        assert not await feed.dvol("BTC", after(-90), after(-80))


@of_options
async def test_options_of_a_currency_nobody_knows_are_unavailable(candidate: Candidate) -> None:
    async with candidate.knowing(World()) as feed:
        for question in (feed.chain("NOPE"), feed.dvol("NOPE", after(-9), after(-3))):
            with pytest.raises(Unavailable):
                await question


# -- figures

TODAY = Millis(NOON // DAY_MS * DAY_MS)
PRINTS = [
    MacroRelease(Millis(day), 20_000.25 + place, Millis(day + DAY_MS + 6 * HOUR_MS))
    for place, day in enumerate(figures.days(8, TODAY - 3 * DAY_MS))
]
YAHOO_PRINTS = [row._replace(released=Millis(row.at + DAY_MS + 4 * HOUR_MS)) for row in PRINTS]

FRED = Candidate(
    "fred",
    over_web(lambda web, world: Fred(web, figures.KEY, lambda: Millis(world.now)), "/fred", figures.fred),
    "DGS10",
)
YAHOO = Candidate("yahoo", over_web(lambda web, world: Yahoo(web), "", figures.yahoo), "NASDAQ")
RECORDED_FIGURES = Candidate(
    "recorded", over_store(lambda store, world: RecordedFigures(store, "yahoo", lambda: Millis(world.now))), "NASDAQ"
)
of_figures = sit(FRED, YAHOO, RECORDED_FIGURES)


@of_figures
async def test_prints_carry_the_day_they_speak_of_and_when_they_were_released(candidate: Candidate) -> None:
    prints = PRINTS if candidate is FRED else YAHOO_PRINTS
    async with candidate.knowing(World(prints=prints)) as made:
        feed: MacroFeed = made
        assert candidate.symbol in feed.figures
        found = await feed.prints(candidate.symbol, Millis(prints[2].at), Millis(prints[5].at))
    assert list(found) == prints[2:6]


@of_figures
async def test_a_time_without_prints_is_empty(candidate: Candidate) -> None:
    async with candidate.knowing(World(prints=YAHOO_PRINTS)) as feed:
        assert not await feed.prints(candidate.symbol, *LONG_AGO)


@of_figures
async def test_a_figure_nobody_prints_is_unavailable(candidate: Candidate) -> None:
    async with candidate.knowing(World(prints=YAHOO_PRINTS)) as feed:
        with pytest.raises(Unavailable):
            await feed.prints("NOPE", *ALWAYS)


# -- levels

MOODS = [Level(Millis(day), 30.0 + place) for place, day in enumerate(figures.days(9, TODAY))]
WON = [Level(Millis(NOON - n * MINUTE_MS), 1_400.5 + n) for n in range(12, -1, -1)]
MINUTES = [
    market.Candle(Millis(row.at - MINUTE_MS), row.value, row.value, row.value, row.value, 1.0, 0.5) for row in WON
]


def mood(web: WebService, world: World) -> FearGreed:
    return FearGreed(web, lambda: Millis(world.now))


def of_rate(making: Making) -> Making:
    """Rates are read from bars of minutes."""
    return lambda world: making(World(candles=MINUTES, timeframe=Timeframe.M1, now=NOON))


LEVELS = [
    (Candidate("fear and greed", over_web(mood, "", figures.fear_greed), "index"), MOODS),
    (Candidate("binance", of_rate(BINANCE.knowing), "USDC-USDT"), WON),
    (Candidate("upbit", of_rate(UPBIT.knowing), "KRW-USDT", "KRW-NOPE"), WON),
    (Candidate("recorded mood", recorded("alternative.me"), "index"), MOODS),
    (Candidate("recorded rate", recorded("upbit"), "KRW-USDT"), WON),
]
of_levels = pytest.mark.parametrize(("candidate", "levels"), LEVELS, ids=[candidate.name for candidate, _ in LEVELS])


@of_levels
async def test_levels_come_oldest_first_and_inside_the_time(candidate: Candidate, levels: list[Level]) -> None:
    async with candidate.knowing(World(levels=levels)) as made:
        feed: LevelFeed = made
        assert list(await feed.levels(candidate.symbol, levels[2].at, levels[-3].at)) == levels[2:-2]
        assert list(await feed.levels(candidate.symbol, levels[-2].at, after(20))) == levels[-2:]


@of_levels
async def test_a_level_nobody_publishes_is_unavailable(candidate: Candidate, levels: list[Level]) -> None:
    async with candidate.knowing(World(levels=levels)) as feed:
        if candidate.name != "recorded mood":  # one index, whatever it is called
            with pytest.raises(Unavailable):
                await feed.levels(candidate.unknown, levels[0].at, levels[-1].at)


# -- words

POSTS = [
    Text(Millis(NOON - 5 * HOUR_MS), words.CHANNEL, "7", "Bitcoin slips & recovers\nto 60k"),
    Text(Millis(NOON - 4 * HOUR_MS), words.CHANNEL, "8", "Fees on BTC are <low> again"),
    Text(Millis(NOON - 3 * HOUR_MS), words.CHANNEL, "9", "The market was calm"),
]
CHANNELS = Candidate("channels", over_web(lambda web, world: Channels(web, [words.CHANNEL]), "", words.channels), "BTC")
RECORDED_NEWS = Candidate(
    "recorded",
    over_store(lambda store, world: RecordedTexts(store, Feed.NEWS, "channels", lambda: Millis(world.now))),
    "BTC",
)


@sit(CHANNELS, RECORDED_NEWS)
async def test_words_carry_their_channel_and_time(candidate: Candidate) -> None:
    async with candidate.knowing(World(texts=POSTS)) as made:
        feed: TextFeed = made
        assert feed.feed is Feed.NEWS
        assert list(await feed.texts("BTC", POSTS[0].at, POSTS[-1].at)) == POSTS
        assert list(await feed.texts("BTC", POSTS[1].at, POSTS[1].at)) == POSTS[1:2]
        assert not await feed.texts("BTC", *LONG_AGO)


async def test_a_search_speaks_of_now_alone() -> None:
    making = over_web(lambda web, world: Search(web, lambda: Millis(world.now)), "", words.search)
    async with making(World(texts=POSTS)) as made:
        feed: TextFeed = made
        (found,) = await feed.texts("BTC", after(-1), HALF_PAST)
        assert (found.at, found.channel, found.body) == (HALF_PAST, "search", POSTS[-1].body)
        assert not await feed.texts("BTC", after(-9), after(-1))


# -- the tape

LIQUIDATED = [
    (Side.LONG, Millis(NOON + 10_000), 60_000.5, 0.5),
    (Side.SHORT, Millis(NOON + 70_000), 60_100.0, 2.0),
]


def strikes(found: Sequence[tuple[Series[Any], Any]]) -> list[tuple[Side, int, float, float, float]]:
    rows = [row for series, row in found if series.feed is Feed.LIQUIDATIONS and isinstance(row, TapeEvent)]
    return [(row.side, row.at, row.price, row.quantity, row.usd) for row in rows]


@asynccontextmanager
async def binance_tape() -> AsyncIterator[TapeFeed]:
    """Our clock is asked once with each message."""
    clock = iter([NOON - 1_000, *(at for _, at, _, _ in LIQUIDATED), NOON + 130_000])

    async def play(socket: ServerConnection) -> None:
        await socket.send(binance_wire.traded(NOON - 1_000))
        for side, at, price, quantity in LIQUIDATED:
            said = binance_wire.forced(at, "SELL" if side is Side.LONG else "BUY", str(quantity), str(price))
            await socket.send(said)
        await socket.send(binance_wire.traded(NOON + 130_000))

    async with streaming(play) as venue:
        yield BinanceTape(lambda: Millis(next(clock)), venue.url)


@asynccontextmanager
async def bybit_tape() -> AsyncIterator[TapeFeed]:
    """Our clock is asked once with each stamped message."""
    clock = iter([NOON - 1_000, *(at for _, at, _, _ in LIQUIDATED), NOON + 130_000])

    async def play(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(bybit_wire.taken())
        await socket.send(bybit_wire.ticker(NOON - 1_000))
        for side, at, price, quantity in LIQUIDATED:
            said = bybit_wire.forced(at, "Buy" if side is Side.LONG else "Sell", str(quantity), str(price))
            await socket.send(said)
        await socket.send(bybit_wire.ticker(NOON + 130_000))

    async with streaming(play) as venue:
        yield BybitTape(lambda: Millis(next(clock)), venue.url)


@asynccontextmanager
async def okx_tape() -> AsyncIterator[TapeFeed]:
    """Our clock is asked once with each stamped message; its liquidations have no stamp of their own."""
    clock = iter([NOON - 1_000, NOON + 130_000])

    async def contract(symbol: str) -> float:
        return okx_wire.CONTRACT

    async def play(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(okx_wire.taken("mark-price"))
        await socket.send(okx_wire.taken())
        await socket.send(okx_wire.mark(NOON - 1_000))
        for side, at, price, quantity in LIQUIDATED:
            order = "sell" if side is Side.LONG else "buy"
            await socket.send(okx_wire.forced(at, order, repr(round(quantity / okx_wire.CONTRACT, 6)), str(price)))
        await socket.send(okx_wire.mark(NOON + 130_000))

    async with streaming(play) as venue:
        yield OkxTape(lambda: Millis(next(clock)), venue.url, contract=contract)


@asynccontextmanager
async def recorded_tape() -> AsyncIterator[TapeFeed]:
    store = MemorySeries(Origin(synthetic=False, label="recorded"))
    rows = [TapeEvent(at, side, price, size, price * size, str(at)) for side, at, price, size in LIQUIDATED]
    minutes = [Heartbeat(NOON), Heartbeat(Millis(NOON + MINUTE_MS))]
    await store.write(
        [
            Batch(market.liquidations("binance", SYMBOL), rows),
            Batch(market.alive(Feed.LIQUIDATIONS, "binance", SYMBOL), minutes),
        ]
    )
    yield RecordedVenue(store, "binance", lambda: Millis(NOON + HOUR_MS))


async def heard(feed: TapeFeed, found: list[tuple[Series[Any], Any]]) -> None:
    async for item in feed.listen([SYMBOL]):
        found.append(item)


@pytest.mark.parametrize("tape", [binance_tape, bybit_tape, okx_tape, recorded_tape])
async def test_a_tape_tells_forced_trades_by_position_and_its_minutes_and_ends_lost(
    tape: Callable[[], AbstractAsyncContextManager[TapeFeed]],
) -> None:
    found: list[tuple[Series[Any], Any]] = []
    async with tape() as feed:
        with pytest.raises(Unavailable):
            await heard(feed, found)
    assert strikes(found) == [(side, at, price, size, price * size) for side, at, price, size in LIQUIDATED]
    minutes = [row.at for series, row in found if str(series).startswith("liq") and isinstance(row, Heartbeat)]
    assert minutes == [NOON, NOON + MINUTE_MS]
    told = [row for _, row in found]
    assert told.index(Heartbeat(NOON)) > next(place for place, row in enumerate(told) if isinstance(row, TapeEvent))
    assert {series.venue for series, _ in found} == {feed.venue}


# -- everybody


@sit(BINANCE, BYBIT, OKX, UPBIT, DERIBIT, FRED, YAHOO, CHANNELS)
async def test_a_venue_has_a_name_and_may_be_closed_twice(candidate: Candidate) -> None:
    async with candidate.knowing(World(prints=YAHOO_PRINTS, texts=POSTS)) as feed:
        assert feed.venue == candidate.name
        await feed.close()
