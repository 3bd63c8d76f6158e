"""Bundles for the trading desk's minds: a small market by hand with every feed the desk reads, or with parts gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, lru_cache
from math import exp
from time import perf_counter
from typing import Any

import numpy as np

from tests.wire.accounts import build_account
from zuno.adapters.clock.system import SystemClock
from zuno.adapters.model.daily_spend import DailySpendInMemory
from zuno.adapters.model.registry import ModelTable
from zuno.kernel.units import Millis, Seconds
from zuno.llm.ask import Breakers, ModelContext
from zuno.llm.budget import Limits, RunBudget
from zuno.llm.port import Answered, Attempt, Model, ModelRequest, Reply, RoleModels, Usage
from zuno.llm.prompts import Prompts
from zuno.markets.feeds import BINANCE, DERIBIT, FIGURES, PERPETUALS
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model import market
from zuno.trading.model.account import Account, Holding, account_slots
from zuno.trading.model.bundle import Absent, Block, Bundle, Slot
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    STALE_AFTER,
    Book,
    Candle,
    Feed,
    Funding,
    Heartbeats,
    Level,
    MacroRelease,
    MarkAndIndex,
    Mode,
    OptionChain,
    OptionQuote,
    Quote,
    Series,
    Side,
    TapeEvent,
    Text,
    Timeframe,
)
from zuno.trading.model.memory import DeskRecord, make_slot
from zuno.trading.model.wanted import wanted_series

BTC = Symbol("BTCUSDT")
AS_OF = Millis(1_767_225_600_000)
PRICE = 80_000.0
_BARS = {Timeframe.M1: 1_500, Timeframe.H1: 1_100, Timeframe.H4: 600, Timeframe.D1: 400, Timeframe.W1: 200}
_HOURLY = 0.005


@dataclass(frozen=True)
class World:
    """What kind of market it is."""

    drift: float = 0.0
    """Of each day, as a share."""
    lean: float = 0.0
    """Of the book: −1 to 1."""
    dvol: float = 50.0
    """The last hour's; the hours before were at 50 or so."""
    skew: float = 1.5
    stocks: float = 0.0
    """Nasdaq over its last five prints, as a share."""
    whales: float = 0.0
    """What large takers bought less what they sold, as a share."""
    news: str = "Somebody said something about the market."
    seed: int = 1


def bundle_of(
    world: World | None = None,
    mode: Mode = Mode.SWING,
    account: Account | None = None,
    slots: Sequence[Slot] = (),
) -> Bundle:
    """Every series the desk wants, fresh, of one invented market."""
    blocks, gone = _market(world or World())
    held = account_slots(account or build_account(usd=2_000.0, krw=2_000_000.0), AS_OF)
    record = make_slot(DeskRecord(), AS_OF)
    return Bundle(BTC, mode, AS_OF, "SYNTHETIC by hand", blocks, gone, (*held, record, *slots))


@lru_cache(maxsize=16)
def _market(world: World) -> tuple[tuple[Block, ...], tuple[Absent, ...]]:
    """What is there and what is not, drawn once for all tests of the same market."""
    rows = _rows(world)
    blocks = tuple(
        _block(series, rows[str(series)])
        for series in sorted(wanted_series(BTC), key=str)
        if str(series) in rows and rows[str(series)]
    )
    return blocks, tuple(
        Absent(str(series), "not in this market") for series in wanted_series(BTC) if str(series) not in rows
    )


def without(bundle: Bundle, *gone: str) -> Bundle:
    left = tuple(one for one in bundle.blocks if str(one.series) not in gone)
    said = tuple(Absent(name, "the venue did not answer") for name in gone)
    return replace(bundle, blocks=left, absent=(*bundle.absent, *said))


def holding(side: Side, entry: float = PRICE) -> Account:
    one = Holding(
        id="pos_1",
        symbol=BTC,
        exchange=Venue("BINANCE"),
        side=side,
        quantity=0.01,
        entry=entry,
        leverage=2.0,
        opened=Millis(AS_OF - DAY_MS),
    )
    return build_account(usd=2_000.0, krw=2_000_000.0, positions=(one,))


def decided(call: str, hours: int = 4, mode: Mode = Mode.SWING) -> Slot:
    """What was decided some hours ago."""
    content = {"mode": mode.value, "decision": call, "regime": "RANGE_BOUND", "entry_price": 79_000.0}
    return Slot("previous_decision", content, Millis(AS_OF - hours * HOUR_MS), "journal")  # type: ignore[arg-type]


def _block(series: Series[Any], rows: Sequence[Any]) -> Block:
    limit = STALE_AFTER.get(series.feed, Seconds(2 * 7 * 86_400))
    kept = rows if isinstance(rows, Heartbeats) else tuple(rows)
    return Block(series, kept, AS_OF, Seconds(0), limit)


def _rows(world: World) -> dict[str, list[Any]]:
    dice = np.random.default_rng(world.seed)
    found: dict[str, list[Any]] = {}
    for timeframe in Timeframe:
        found[str(market.candles(BINANCE, BTC, timeframe))] = _walk(timeframe, world, dice)
    for venue in PERPETUALS:
        found |= _perpetual(venue, dice)
    for venue in PERPETUALS:
        found |= _tape(venue)
    found[str(market.whales(BINANCE, BTC))] = [
        TapeEvent(Millis(AS_OF - (place + 1) * 8 * MINUTE_MS), side, PRICE, 2.0, usd, f"w{place}{side}")
        for place in range(100)
        for side, usd in ((Side.LONG, 2e5 * (1 + world.whales)), (Side.SHORT, 2e5 * (1 - world.whales)))
    ]
    day = range(AS_OF - DAY_MS, AS_OF, MINUTE_MS)
    found[str(market.alive(Feed.WHALES, BINANCE, BTC))] = _beat(day)
    found[str(market.books(BINANCE, BTC))] = [
        _book(world.lean, AS_OF - back) for back in (56_000, 42_000, 28_000, 14_000, 0)
    ]
    found[str(market.options(DERIBIT, "BTC"))] = [_chain(world.skew)]
    found[str(market.dvol(DERIBIT, "BTC"))] = [
        Level(Millis(AS_OF - back * HOUR_MS), world.dvol if not back else round(50.0 + dice.normal(0, 1.5), 2))
        for back in range(300, -1, -1)
    ]
    for venue, figures in FIGURES.items():
        for figure in figures:
            found[str(market.macro(venue, figure))] = _prints(figure, world)
    found[str(market.fear_greed("alternative.me"))] = [Level(AS_OF, 50.0)]
    found[str(market.texts(Feed.NEWS, "channels", "BTC"))] = [Text(AS_OF, "channel", "n1", world.news)]
    found[str(market.texts(Feed.NARRATIVE, "search", "BTC"))] = [
        Text(AS_OF, "search", "s1", "The story goes that buyers wait.")
    ]
    found[str(market.rates("upbit", "KRW-USDT"))] = [Level(AS_OF, 1_350.0)]
    found[str(market.rates(BINANCE, "USDC-USDT"))] = [Level(AS_OF, 1.0)]
    return found


def _walk(timeframe: Timeframe, world: World, dice: np.random.Generator) -> list[Candle]:
    """Bars that end at the price."""
    count, hours = _BARS[timeframe], timeframe.millis / HOUR_MS
    sigma, drift = _HOURLY * hours**0.5, world.drift * hours / 24
    steps = dice.normal(drift, sigma, count)
    close = PRICE * np.exp(np.cumsum(steps) - steps.sum())
    opened = close * np.exp(-steps)
    high = np.maximum(opened, close) * (1 + np.abs(dice.normal(0, sigma / 3, count)))
    low = np.minimum(opened, close) * (1 - np.abs(dice.normal(0, sigma / 3, count)))
    volume = dice.lognormal(3, 0.5, count) * hours
    share = 0.5 + np.clip(steps / sigma, -1, 1) * 0.05 + dice.normal(0, 0.02, count)
    last = timeframe.floor(AS_OF) - timeframe.millis
    at = [Millis(last - (count - 1 - place) * timeframe.millis) for place in range(count)]
    # In ticks and lots, as a venue prints them: what a machine's own exponential does is rounded away.
    columns = (opened, high, low, close, volume, volume * np.clip(share, 0, 1))
    places = (1, 1, 1, 1, 3, 3)
    return list(
        map(Candle, at, *(np.round(column, place).tolist() for column, place in zip(columns, places, strict=True)))
    )


def _perpetual(venue: str, dice: np.random.Generator) -> dict[str, list[Any]]:
    eights = range(AS_OF - 30 * DAY_MS, AS_OF + 1, 8 * HOUR_MS)
    hours = range(AS_OF - 30 * DAY_MS, AS_OF + 1, HOUR_MS)
    open_ = 100_000 * np.exp(np.cumsum(dice.normal(0, 0.001, len(hours))))
    return {
        str(market.funding(venue, BTC)): [
            Funding(Millis(at), round(1e-4 + dice.normal(0, 2e-5), 8), 8.0) for at in eights
        ],
        str(market.funding_next(venue, BTC)): [Funding(AS_OF, 1e-4, 8.0)],
        str(market.open_interest(venue, BTC)): [
            Level(Millis(at), one) for at, one in zip(hours, np.round(open_, 3).tolist(), strict=True)
        ],
        str(market.long_short(venue, BTC)): [Level(AS_OF, 1.2)],
        str(market.basis(venue, BTC)): [MarkAndIndex(AS_OF, PRICE, PRICE * 0.9997)],
    }


def _beat(minutes: range) -> Any:
    """In one run, as the store gives them."""
    return Heartbeats([(Millis(minutes.start), len(minutes))])


@cache
def _tape(venue: str) -> dict[str, list[Any]]:
    """$80,000 an hour and side, over all venues."""
    minutes = range(AS_OF - 8 * DAY_MS, AS_OF, MINUTE_MS)
    strikes = [
        TapeEvent(
            Millis(AS_OF - HOUR_MS * place - MINUTE_MS), side, PRICE, 0.5, 8e4 / len(PERPETUALS), f"{place}{side}"
        )
        for place in range(8 * 24 - 1)
        for side in Side
    ]
    return {
        str(market.alive(Feed.LIQUIDATIONS, venue, BTC)): _beat(minutes),
        str(market.liquidations(venue, BTC)): sorted(strikes, key=lambda row: row.at),
    }


def _book(lean: float, at: int) -> Book:
    bids = tuple(Quote(round(PRICE - 0.1 - place * 4, 1), 3.0 * (1 + lean)) for place in range(60))
    asks = tuple(Quote(round(PRICE + 0.1 + place * 4, 1), 3.0 * (1 - lean)) for place in range(60))
    return Book(Millis(at), bids, asks)


def _chain(skew: float) -> OptionChain:
    quotes = []
    for days in (5, 9, 25, 40):
        expiry = Millis(AS_OF + days * DAY_MS)
        for step in range(-12, 13):
            strike = round(PRICE * exp(0.02 * step * (days / 7) ** 0.5), -1)
            away = -step / 6
            iv = 50.0 + skew / 2 * max(-2.0, min(2.0, away)) + 0.5 * away**2
            for call in (True, False):
                name = f"BTC-{days}-{strike:.0f}-{'C' if call else 'P'}"
                held = 100.0 if call else 80.0
                quotes.append(OptionQuote(name, expiry, strike, call, iv, held, 10.0, PRICE))
    return OptionChain(AS_OF, tuple(quotes))


def _prints(figure: str, world: World) -> list[MacroRelease]:
    start = {"DGS2": 4.0, "DGS10": 4.2, "CPIAUCSL": 320.0, "FEDFUNDS": 4.3}.get(figure, 100.0)
    change = world.stocks / 5 if figure in ("NASDAQ", "NASDAQCOM") else 0.0
    days = range(20, 0, -1)
    return [
        MacroRelease(
            Millis(AS_OF - day * DAY_MS),
            round(start * (1 - change) ** (day - 1), 4),
            Millis(AS_OF - day * DAY_MS + HOUR_MS),
        )
        for day in days
    ]


# -- who answers


class Scripted:
    """A model whose answers follow from what it is asked."""

    name = "scripted"

    def __init__(self, answer: Callable[[ModelRequest], str]) -> None:
        self._answer = answer
        self.asked: list[ModelRequest] = []

    async def price(self, tokens_in: int, tokens_out: int) -> Decimal:
        return Decimal(0)

    async def ready(self) -> None:
        return None

    async def reply(self, request: ModelRequest) -> Reply:
        self.asked.append(request)
        return Answered(self._answer(request), Usage(100, 50, Decimal("0.001")))

    async def close(self) -> None:
        return None


def minds_of(*models: Model, prompts: Prompts | None = None) -> ModelContext:
    """OpenModelContext with these models in every seat; with none, the rules."""
    clock = SystemClock()

    async def record(attempt: Attempt) -> None:
        return None

    return ModelContext(
        registry=ModelTable(RoleModels(tuple(models), "" if models else "nobody sits here")),
        prompts=prompts or Prompts("zuno.trading.agents"),
        budget=RunBudget(Limits(), DailySpendInMemory(), clock),
        breakers=Breakers(threshold=None),
        record=record,
        clock=clock,
        stopwatch=perf_counter,
    )


def saying(said: Mapping[str, Any] | str) -> Scripted:
    """A model that says one thing, whoever asks."""
    text = said if isinstance(said, str) else json.dumps(said)
    return Scripted(lambda _: text)
