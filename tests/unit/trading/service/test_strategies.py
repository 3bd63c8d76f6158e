"""What sleeves would hold, on stored days: weights in money, reasons, and what a minimum order prevents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.trading.strategies.test_trend import draw_closes
from tests.wire.fakes.series import MemorySeries
from zuno.kernel.errors import NotFound
from zuno.kernel.units import Millis
from zuno.markets.market import Catalogue, Symbol, assume_market
from zuno.markets.venues import DEFAULT_VENUE, Kind, venue_of
from zuno.trading.data.daily_histories import read_days
from zuno.trading.model.market import DAY_MS, HOUR_MS, Candle, Funding, Timeframe, candles, funding
from zuno.trading.model.sleeves import SleeveShares, parse_sleeves
from zuno.trading.ports.series import INVENTED, Batch
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.strategies import SleeveAccount, StrategyDesk, StrategyTargetsView

BTC, ETH, SOL = Symbol("BTCUSDT"), Symbol("ETHUSDT"), Symbol("SOLUSDT")
FIRST = 1_700_006_400_000
"""2023-11-15."""
DAYS = 200
END = Millis(FIRST + DAYS * DAY_MS)
SPOT = venue_of(DEFAULT_VENUE.house, Kind.SPOT)


def make_bars(closes: Sequence[float], length: int, last: int = END) -> list[Candle]:
    first = last - length * len(closes)
    return [
        Candle(Millis(first + length * place), close, close, close, close, 10.0, None)
        for place, close in enumerate(closes)
    ]


async def make_store(*days: tuple[Symbol, Sequence[float]], rate: float | None = None) -> MemorySeries:
    store = MemorySeries(INVENTED)
    await store.write(
        [Batch(candles("binance", symbol, Timeframe.D1), make_bars(closes, DAY_MS)) for symbol, closes in days]
    )
    if rate is not None:
        times = range(FIRST + 8 * HOUR_MS, END + 1, 8 * HOUR_MS)
        prints = [Funding(Millis(at), rate, 8.0) for at in times]
        await store.write([Batch(funding("binance", symbol), prints) for symbol, _ in days])
    return store


def open_desk(
    store: MemorySeries,
    symbols: Sequence[Symbol] = (BTC, ETH),
    equity: int | None = 20_000,
    sleeves: str = "trend:0.5,cash-carry:0.2,debate:0.3",
    catalogue: Catalogue | None = None,
    capital: dict[str, float] | None = None,
) -> StrategyDesk:
    desk = TradingDesk(store, None, None, markets=tuple(symbols))  # type: ignore[arg-type]  # nothing is kept or painted

    async def read_account() -> SleeveAccount:
        shares: SleeveShares = parse_sleeves(sleeves)
        worth = None if equity is None else Decimal(equity)
        own = {name: None if worth is None else float(worth * shares.of(name)) for name in shares}
        return SleeveAccount("paper", shares, worth, own | (capital or {}))

    return StrategyDesk(desk, read_account, lambda: catalogue or Catalogue())


def rows_of(view: StrategyTargetsView, sleeve: str) -> dict[str, tuple[float, float | None, str, str]]:
    (section,) = (each for each in view.sleeves if each.name == sleeve)
    return {row.market: (row.weight, row.usd, row.why, row.prevented) for row in section.targets}


async def test_targets_in_money_and_why() -> None:
    store = await make_store((BTC, draw_closes(1, DAYS)), (ETH, draw_closes(2, DAYS)), rate=0.0002)
    view = await open_desk(store).targets()
    assert [(sleeve.name, sleeve.capital_usd) for sleeve in view.sleeves] == [("trend", 10_000), ("cash-carry", 4_000)]
    for weight, usd, why, _ in rows_of(view, "trend").values():
        assert usd == pytest.approx(10_000 * weight, abs=0.01)
        assert "of 6 trends up" in why
    carry = rows_of(view, "cash-carry")["BTCUSDT"]
    assert carry[:2] == (0.375, 1_500.0)
    assert "21.9 % a year" in carry[2]
    shown = await open_desk(store).show("trend")
    assert shown.sleeves == view.sleeves[:1]


async def test_a_sleeve_is_weighed_by_what_it_is_worth_itself_whatever_its_share() -> None:
    store = await make_store((BTC, draw_closes(1, DAYS)))
    view = await open_desk(store, [BTC], capital={"trend": 3_000, "cash-carry": 0}).targets()
    assert [(sleeve.name, sleeve.share, sleeve.capital_usd) for sleeve in view.sleeves] == [
        ("trend", 0.5, 3_000),
        ("cash-carry", 0.2, 0),
    ]
    weight, usd, _, _ = rows_of(view, "trend")["BTCUSDT"]
    assert usd == pytest.approx(3_000 * weight, abs=0.01)
    assert view.equity_usd == 20_000


async def test_a_small_account_is_told_what_the_least_order_prevents() -> None:
    closes = draw_closes(1, DAYS)
    store = await make_store((BTC, closes), (ETH, closes), rate=0.0001)
    small = await open_desk(store, equity=100).targets()
    weight, usd, _, prevented = rows_of(small, "cash-carry")["BTCUSDT"]
    assert weight > 0
    assert usd == pytest.approx(7.5)
    assert "$7.50" in prevented
    assert not any(row[3] for row in rows_of(await open_desk(store).targets(), "trend").values() if row[1] == 0)


async def test_without_an_equity_there_is_no_money() -> None:
    store = await make_store((BTC, draw_closes(1, DAYS)))
    view = await open_desk(store, [BTC], equity=None).targets()
    assert rows_of(view, "trend")["BTCUSDT"][1] is None


async def test_as_of_an_earlier_day_nothing_later_counts() -> None:
    closes = draw_closes(3, DAYS)
    early, whole = await make_store((BTC, closes)), await make_store((BTC, [*closes[:-30], *([1.0] * 30)]))
    views = [await open_desk(store, [BTC]).targets("30d") for store in (early, whole)]
    assert views[0].sleeves == views[1].sleeves
    assert views[0].sleeves != (await open_desk(early, [BTC]).targets()).sleeves


async def test_young_delisted_and_unpaid_markets_are_named() -> None:
    store = await make_store((BTC, draw_closes(1, DAYS)), (ETH, draw_closes(2, 60)))
    await store.write(
        [Batch(candles("binance", SOL, Timeframe.D1), make_bars(draw_closes(3, 90), DAY_MS, END - 40 * DAY_MS))]
    )
    view = await open_desk(store, [BTC, ETH, SOL]).targets()
    trend, carry = rows_of(view, "trend"), rows_of(view, "cash-carry")
    assert "60 closed days" in trend["ETHUSDT"][2]
    assert "delisted" in trend["SOLUSDT"][2]
    assert "funding is known for 0" in carry["BTCUSDT"][2]
    assert {row[0] for row in carry.values()} == {0.0}


async def test_a_venue_that_does_not_trade_the_coin_prevents_it() -> None:
    assert SPOT is not None
    gone = replace(assume_market(DEFAULT_VENUE, "BTC"), trading=False)
    catalogue = Catalogue((gone,), {DEFAULT_VENUE: END, SPOT: END})
    store = await make_store((BTC, [100.0 * 1.004**place * (1 + place % 2 / 50) for place in range(DAYS)]))
    view = await open_desk(store, [BTC], catalogue=catalogue).targets()
    weight, _, _, prevented = rows_of(view, "trend")["BTCUSDT"]
    assert weight > 0
    assert "does not trade it" in prevented
    assert "no spot market" in rows_of(view, "cash-carry")["BTCUSDT"][2]


async def test_a_strategy_nobody_knows_has_a_hint() -> None:
    desk = open_desk(await make_store((BTC, draw_closes(1, DAYS))))
    with pytest.raises(NotFound, match="trend"):
        await desk.show("trnd")


async def test_the_list_names_every_sleeve() -> None:
    desk = open_desk(await make_store(), sleeves="trend:0.5,mine:0.5")
    listed = {line.name: line.share for line in (await desk.list()).sleeves}
    assert listed == {"trend": 0.5, "cash-carry": 0.0, "debate": 0.0, "mine": 0.5}


async def test_days_without_a_bar_of_their_own_are_read_from_hours() -> None:
    closes = draw_closes(5, 10)
    store = await make_store((BTC, closes))
    whole = await read_days(store, [BTC], END)
    hours = MemorySeries(INVENTED)
    days = make_bars(closes, DAY_MS)
    early = [
        bar._replace(close=bar.close + 1, high=bar.close + 1)
        for bar in make_bars(closes[3:4], HOUR_MS, days[3].at + 5 * HOUR_MS)
    ]
    last = make_bars([closes[3]], HOUR_MS, days[3].at + 20 * HOUR_MS)
    await hours.write([Batch(candles("binance", BTC, Timeframe.D1), [*days[:3], *days[4:]])])
    await hours.write([Batch(candles("binance", BTC, Timeframe.H1), [*early, *last])])
    assert await read_days(hours, [BTC], END) == whole
    assert (await read_days(hours, [BTC], Millis(END - 1)))[0].days == whole[0].days[:-1]


async def test_a_day_counts_once_its_last_hour_is_known() -> None:
    store = await make_store((BTC, [100.0] * 3))
    hours = make_bars([200.0] * 23 + [300.0], HOUR_MS, END + DAY_MS)
    await store.write([Batch(candles("binance", BTC, Timeframe.H1), hours[:23])])
    midnight = Millis(END + DAY_MS + 5_000)
    assert (await read_days(store, [BTC], midnight))[0].closes == (100.0, 100.0, 100.0)
    assert (await read_days(store, [BTC], Millis(midnight + DAY_MS)))[0].closes[-1] == 200.0
    await store.write([Batch(candles("binance", BTC, Timeframe.H1), hours[23:])])
    assert (await read_days(store, [BTC], midnight))[0].closes[-1] == 300.0
