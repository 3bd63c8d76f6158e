"""Changed markets are the same markets in other words, and flips are counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zuno.kernel.units import Millis
from zuno.lab.invariance import (
    Change,
    ChangedRuling,
    InvarianceMoment,
    ParaphrasedSeries,
    RenamedSeries,
    ScaledSeries,
    build_invariance_view,
    rename_account,
    scale_account,
)
from zuno.lab.market_study import MarketPlan
from zuno.lab.market_views import MarketRows
from zuno.lab.rulings import STARTING_ACCOUNT
from zuno.markets.feeds import BINANCE, DERIBIT
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.account import Holding
from zuno.trading.model.market import Candle, Feed, Series, Side, Text, Timeframe, candles, options
from zuno.trading.ports.series import Origin

BTC, ETH = (candles(BINANCE, symbol, Timeframe.H1) for symbol in DEFAULT_SYMBOLS)
NEWS = Series(Feed.NEWS, "t.me", "channel", Text)
BAR = Candle(Millis(0), 100.0, 110.0, 90.0, 105.0, 20.0, 5.0)
SAID = Text(Millis(0), "channel", "1", "BTC rises. A large holder says so.")
LAST = Millis(2**53)


@pytest.fixture
def store() -> MarketRows:
    return MarketRows(Origin(True, "made up"), {BTC: [BAR], ETH: [BAR._replace(close=99.0)], NEWS: [SAID]})


async def test_each_market_stands_under_the_others_name(store: MarketRows) -> None:
    masked = RenamedSeries(store)
    (bar,) = await masked.read(ETH, Millis(0), LAST, LAST)
    assert bar == BAR
    assert masked.find_source(options(DERIBIT, "BTC")) == options(DERIBIT, "ETH")
    assert masked.find_source(NEWS) == NEWS


async def test_scaled_prices_leave_dollars_as_they_are(store: MarketRows) -> None:
    (bar,) = await ScaledSeries(store).read(BTC, Millis(0), LAST, LAST)
    assert bar == Candle(Millis(0), 1000.0, 1100.0, 900.0, 1050.0, 2.0, 0.5)
    assert await ScaledSeries(store).read(NEWS, Millis(0), LAST, LAST) == (SAID,)
    held = Holding(
        id="pos_1",
        symbol=Symbol("BTCUSDT"),
        exchange=Venue("BINANCE"),
        side=Side.LONG,
        quantity=2.0,
        entry=100.0,
        leverage=1.0,
        opened=Millis(0),
    )
    account = replace(STARTING_ACCOUNT, positions=(held,))
    (scaled,) = scale_account(account).positions
    assert (scaled.quantity, scaled.entry, scaled.stop) == (0.2, 1000.0, None)
    assert rename_account(account).positions[0].symbol is Symbol("ETHUSDT")


async def test_texts_say_the_same_in_other_words(store: MarketRows) -> None:
    (said,) = await ParaphrasedSeries(store).read(NEWS, Millis(0), LAST, LAST)
    assert said.body == "A big holder states so. BTC climbs."
    assert await ParaphrasedSeries(store).read(BTC, Millis(0), LAST, LAST) == (BAR,)


def test_flips_are_counted() -> None:
    def moment(number: int, ruling: str, after: str) -> InvarianceMoment:
        kept = ruling == after
        changed = ChangedRuling(Change.SCALED, after, None, kept, kept)
        return InvarianceMoment(1, number, Millis(0), "BTCUSDT", "swing", ruling, None, (changed,))

    moments = [moment(0, "HOLD", "HOLD"), moment(1, "LONG", "HOLD"), moment(2, "SHORT", "SHORT")]
    view = build_invariance_view(moments, [MarketPlan(1, 3)], stopped=False)
    scaled = next(row for row in view.changes if row.change == Change.SCALED.value)
    assert (scaled.rulings.count, scaled.rulings.total, scaled.active.count, scaled.active.total) == (1, 3, 1, 2)
    assert [(flip.ruling, flip.changed) for flip in scaled.flips] == [("LONG", "HOLD")]
    assert next(row for row in view.changes if row.change == Change.MASKED.value).rulings.rate is None
