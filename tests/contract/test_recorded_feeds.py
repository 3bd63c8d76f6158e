"""The recording knows what was known by then, and says when it knows nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.wire.fakes.series import MemorySeries
from tests.wire.fakes.venues import RecordedFigures, RecordedTexts, RecordedVenue
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.market import (
    DAY_MS,
    MINUTE_MS,
    Book,
    Feed,
    Heartbeat,
    Level,
    MacroRelease,
    Quote,
    Side,
    TapeEvent,
    Text,
    alive,
    books,
    liquidations,
    macro,
    open_interest,
    texts,
    whales,
)
from zuno.trading.ports.series import Batch, Origin

NOON = Millis(1_760_011_200_000)


async def holding(*batches: Batch[Any]) -> MemorySeries:
    store = MemorySeries(Origin(synthetic=False, label="recorded"))
    await store.write(batches)
    return store


def at(millis: int) -> Callable[[], Millis]:
    return lambda: Millis(NOON + millis)


async def test_rows_that_reached_us_later_are_not_known() -> None:
    series = open_interest("okx", "BTCUSDT")
    old, late = Level(NOON, 5.0), Level(Millis(NOON + 1), 6.0)
    store = await holding(Batch(series, [old], known=NOON), Batch(series, [late], known=Millis(NOON + 500)))
    for now, rows in ((400, (old,)), (500, (old, late))):
        feed = RecordedVenue(store, "okx", at(now))
        assert await feed.open_interest("BTCUSDT", NOON, Millis(NOON + DAY_MS)) == rows


async def test_a_series_of_the_future_is_not_known_at_all() -> None:
    store = await holding(Batch(open_interest("okx", "BTCUSDT"), [Level(NOON, 5.0)]))
    with pytest.raises(Unavailable, match="open_interest/okx/BTCUSDT"):
        await RecordedVenue(store, "okx", at(-1)).open_interest("BTCUSDT", NOON, NOON)


async def test_a_revision_is_not_known_before_its_release() -> None:
    series = macro("fred", "CPIAUCSL")
    first = MacroRelease(NOON, 3.0, Millis(NOON + 10))
    revised = first._replace(value=2.9, released=Millis(NOON + 20))
    store = await holding(Batch(series, [first, revised]))
    for now, expected in ((15, first), (25, revised)):
        feed = RecordedFigures(store, "fred", at(now))
        assert list(await feed.prints("CPIAUCSL", NOON, NOON)) == [expected]
    assert "DGS10" in feed.figures


async def test_a_crossed_book_is_malformed() -> None:
    crossed = Book(NOON, (Quote(101.0, 1.0),), (Quote(100.0, 1.0),))
    sound = Book(Millis(NOON - 5), (Quote(99.0, 1.0),), (Quote(100.0, 1.0),))
    store = await holding(Batch(books("binance", "BTCUSDT"), [sound, crossed]))
    assert await RecordedVenue(store, "binance", at(-5)).book("BTCUSDT", 5) == sound
    with pytest.raises(Malformed, match="crossed"):
        await RecordedVenue(store, "binance", at(0)).book("BTCUSDT", 5)


async def test_a_tape_is_told_in_the_order_it_came_from_where_it_is_wanted() -> None:
    def strike(second: int, name: str) -> TapeEvent:
        return TapeEvent(Millis(NOON + second * 1_000), Side.LONG, 5.0, 2.0, 10.0, name)

    minutes = [Heartbeat(Millis(NOON + n * MINUTE_MS)) for n in range(2)]
    forced, large = [strike(5, "a"), strike(65, "c")], [strike(30, "b")]
    store = await holding(
        Batch(liquidations("binance", "BTCUSDT"), forced),
        Batch(whales("binance", "BTCUSDT"), large),
        Batch(alive(Feed.LIQUIDATIONS, "binance", "BTCUSDT"), minutes),
    )

    async def told(since: int) -> list[Any]:
        found: list[Any] = []
        feed = RecordedVenue(store, "binance", at(DAY_MS), heard_since=Millis(NOON + since))
        try:
            async for _, row in feed.listen(["BTCUSDT"]):
                found.append(row)
        except Unavailable:
            return found
        raise AssertionError("a recording has an end")

    assert await told(0) == [forced[0], large[0], minutes[0], forced[1], minutes[1]]
    assert await told(30_001) == [forced[1], minutes[1]]


async def test_words_are_by_what_they_are_about() -> None:
    text = Text(NOON, "wire", "1", "calm")
    store = await holding(Batch(texts(Feed.NEWS, "channels", "BTC"), [text]))
    feed = RecordedTexts(store, Feed.NEWS, "channels", at(0))
    assert list(await feed.texts("BTC", NOON, NOON)) == [text]
    with pytest.raises(Unavailable):
        await feed.texts("ETH", NOON, NOON)
