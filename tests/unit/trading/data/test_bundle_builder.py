"""What a bundle says of its rows: when the newest was true, how old that is, and how old it may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.wire.fakes.series import MemorySeries
from zuno.adapters.venues.streams import MARGIN_MS
from zuno.kernel.canonical import to_json
from zuno.kernel.units import Millis
from zuno.markets.feeds import ALTERNATIVE, BINANCE, BYBIT, FRED
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.agents.case import build_case
from zuno.trading.data.bundle_builder import PROVEN_WITHIN, build_bundle
from zuno.trading.measure.features import measure_features
from zuno.trading.model.account import POSITIONS, Holding, PositionsSlot
from zuno.trading.model.bundle import Block, Bundle, Slot, has_own_reason
from zuno.trading.model.known import NotRecorded
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    Book,
    Candle,
    Feed,
    Funding,
    Heartbeat,
    Level,
    MacroRelease,
    Mode,
    Quote,
    Series,
    Side,
    TapeEvent,
    Timeframe,
    alive,
    books,
    candles,
    fear_greed,
    funding,
    funding_next,
    liquidations,
    macro,
)
from zuno.trading.ports.series import Batch, Origin

AS_OF = Millis(1_767_225_600_000)
BTC = Symbol("BTCUSDT")


async def gathered(*given: tuple[Series[Any], Sequence[Any]], at: int = AS_OF) -> dict[Series[Any], Block]:
    store = MemorySeries(Origin(False, "recorded"))
    await store.write([Batch(series, rows) for series, rows in given])
    return {block.series: block for block in (await build_bundle(store, BTC, Mode.SWING, Millis(at))).blocks}


@pytest.mark.parametrize(("late", "age"), [(0, 0), (1, 1), (SECOND_MS, 1), (SECOND_MS + 1, 2)])
async def test_an_age_is_rounded_up(late: int, age: int) -> None:
    """What is a millisecond too old is too old."""
    mood = fear_greed(ALTERNATIVE)
    block = (await gathered((mood, [Level(Millis(AS_OF - late), 50.0)])))[mood]
    assert (block.as_of, block.age) == (AS_OF - late, age)


async def test_a_fact_is_stale_a_millisecond_after_its_limit() -> None:
    mood = fear_greed(ALTERNATIVE)
    for late, stale in ((0, False), (1, True)):
        at = AS_OF + 36 * HOUR_MS + late
        assert (await gathered((mood, [Level(AS_OF, 50.0)]), at=at))[mood].stale is stale


@pytest.mark.parametrize("hours", [1.0, 4.0, 8.0])
async def test_a_settled_rate_may_be_as_old_as_its_venues_own_interval_and_ten_minutes(hours: float) -> None:
    series = funding(BYBIT, BTC)
    before = Funding(Millis(AS_OF - 16 * HOUR_MS), 1e-4, 2.0)  # the venue paid more often then
    block = (await gathered((series, [before, Funding(AS_OF, 1e-4, hours)])))[series]
    assert block.limit == hours * 3_600 + 600
    told = funding_next(BYBIT, BTC)
    assert (await gathered((told, [Funding(AS_OF, 1e-4, hours)])))[told].limit == 600


@pytest.mark.parametrize(("figure", "days"), [("DGS2", 5), ("CPIAUCSL", 36), ("DTWEXBGS", 12)])
async def test_a_figure_may_be_as_old_as_it_is_released_seldom(figure: str, days: int) -> None:
    series = macro(FRED, figure)
    block = (await gathered((series, [MacroRelease(Millis(AS_OF - DAY_MS), 4.0, AS_OF)])))[series]
    assert block.limit == days * 86_400


async def test_prints_are_as_new_as_the_last_release_whatever_day_it_is_of() -> None:
    series = macro(FRED, "DGS2")
    newest = MacroRelease(Millis(AS_OF - 2 * DAY_MS), 4.0, Millis(AS_OF - 5 * HOUR_MS))
    revised = MacroRelease(Millis(AS_OF - 9 * DAY_MS), 4.1, Millis(AS_OF - 2 * HOUR_MS))
    block = (await gathered((series, [revised, newest])))[series]
    assert (block.rows, block.as_of) == ((revised, newest), revised.released)


async def test_a_bar_is_as_new_as_its_end_and_may_be_two_bars_old() -> None:
    series = candles(BINANCE, BTC, Timeframe.H4)
    bar = Candle(Millis(AS_OF - 8 * HOUR_MS), 1.0, 1.0, 1.0, 1.0, 1.0, None)
    block = (await gathered((series, [bar])))[series]
    assert (block.as_of, block.age, block.limit) == (AS_OF - 4 * HOUR_MS, 4 * 3_600, 8 * 3_600)


async def test_a_stream_is_as_new_as_its_last_sign_of_life_events_or_none() -> None:
    series, signs = liquidations(BINANCE, BTC), alive(Feed.LIQUIDATIONS, BINANCE, BTC)
    proven = (signs, [Heartbeat(Millis(AS_OF - n * MINUTE_MS)) for n in (3, 2)])
    silent = (await gathered(proven))[series]
    assert (silent.rows, silent.as_of, silent.limit) == ((), AS_OF - MINUTE_MS, 60 + PROVEN_WITHIN)
    forced = TapeEvent(Millis(AS_OF - 10), Side.LONG, 1.0, 1.0, 1.0, "1")
    assert (await gathered(proven, (series, [forced])))[series].as_of == AS_OF - 10


@pytest.mark.parametrize(("late", "stale"), [(0, False), (1_500, False), (5_000, False), (5_001, True)])
async def test_a_living_stream_is_not_stale_while_its_last_minute_is_being_proven(late: int, stale: bool) -> None:
    """A minute is proven a second after its end at the earliest; a stream that is silent for longer is stale."""
    signs = alive(Feed.LIQUIDATIONS, BINANCE, BTC)
    found = await gathered((signs, [Heartbeat(Millis(AS_OF - MINUTE_MS))]), at=AS_OF + MINUTE_MS + late)
    assert [found[series].stale for series in (signs, liquidations(BINANCE, BTC))] == [stale, stale]
    assert MARGIN_MS < PROVEN_WITHIN * SECOND_MS


async def test_the_books_of_a_collector_are_five_over_the_minute() -> None:
    series = books(BINANCE, BTC)
    told = [Book(Millis(AS_OF - late * SECOND_MS), (Quote(9.0, 1.0),), (Quote(9.5, 2.0),)) for late in range(68, 0, -9)]
    block = (await gathered((series, told)))[series]
    assert [(AS_OF - row.at) // SECOND_MS for row in block.rows] == [68, 50, 32, 23, 5]
    assert (block.age, block.stale) == (5, False)


async def test_who_looked_in_between_takes_nothing_from_the_minute() -> None:
    series = books(BINANCE, BTC)
    moments = sorted({*range(2, 70, 9), 3, 4, 5, 6}, reverse=True)
    told = [Book(Millis(AS_OF - late * SECOND_MS), (Quote(9.0, 1.0),), (Quote(9.5, 2.0),)) for late in moments]
    block = (await gathered((series, told)))[series]
    assert [(AS_OF - row.at) // SECOND_MS for row in block.rows] == [65, 47, 29, 20, 2]


async def test_what_is_not_offered_for_a_coin_is_absent_says_so_and_is_not_judged() -> None:
    bundle = await build_bundle(MemorySeries(Origin(False, "recorded")), Symbol("SOLUSDT"), Mode.SWING, AS_OF)
    for name in ("options/deribit/SOL", "dvol/deribit/SOL"):
        gone = next(gone for gone in bundle.absent if gone.what == name)
        assert gone.why == "not offered for SOL"
        assert has_own_reason(gone)
    features = measure_features(bundle)
    assert isinstance(features.surface, NotRecorded)
    assert isinstance(features.dvol, NotRecorded)
    assert features.dvol.reason == "not offered for SOL"
    assert isinstance(build_case(bundle).inputs.panic, NotRecorded)
    assert not any("not offered" in gone.why for gone in (await build_bundle_of_bitcoin()).absent)


async def build_bundle_of_bitcoin(**asked: Any) -> Bundle:
    return await build_bundle(MemorySeries(Origin(False, "recorded")), BTC, Mode.SWING, AS_OF, **asked)


async def test_what_is_traded_or_held_beside_has_its_mark_in_the_bundle() -> None:
    """One series each, and of what is held the days that group markets: of ten markets a bundle does not become
    ten times as long."""
    held = Holding(
        id="x", exchange=Venue("BINANCE"), symbol=Symbol("LTCUSDT"), side=Side.LONG, quantity=1.0, entry=80.0,
        leverage=2, opened=AS_OF,
    )  # fmt: skip
    content = to_json(PositionsSlot(positions=(held,), pending=(), liquidity=()))
    slots = [Slot(POSITIONS, content, AS_OF, "paper book")]
    plain = await build_bundle_of_bitcoin()
    bundle = await build_bundle_of_bitcoin(slots=slots, markets=(BTC, Symbol("SOLUSDT"), Symbol("XRPUSDT")))
    named = {gone.what for gone in bundle.absent} - {gone.what for gone in plain.absent}
    assert named == {
        *(f"basis/binance/{coin}USDT" for coin in ("SOL", "XRP", "LTC")),
        "candles/binance/LTCUSDT/1d",
    }
