"""Finite numbers no market has: whatever a source says, a store takes or sets aside, and the desk goes on."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import pytest

from tests.examples import mark_all_but
from tests.wire.collecting import END, SEED, market, rows
from tests.wire.fakes.series import MemorySeries
from zuno.adapters.venues.synthetic.world import describe_origin
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, BYBIT, DERIBIT
from zuno.markets.market import Symbol
from zuno.trading.chart.charting import describe
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.measure.features import measure_features
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.chart import numbers
from zuno.trading.model.market import (
    Book,
    Candle,
    Funding,
    Level,
    MacroRelease,
    Mode,
    OptionChain,
    Quote,
    Series,
    TapeEvent,
    funding,
    liquidations,
    open_interest,
    options,
    whales,
)
from zuno.trading.model.wanted import wanted_series
from zuno.trading.ports.series import Batch
from zuno.trading.service.features_to_view import features_view

BTC = Symbol("BTCUSDT")
EXTREMES = (5e-324, 1e-300, 1e-18, 1e-9, 1e-3, 0.0, 1.0, 1e3, 1e9, 1e18, 1e19, 1e150, 1e305, 1.7e308)
SHARES = (0.01, 0.2, 1.0)
"""Of a series, how many rows are spoilt; the last one always is."""
TO_SPOIL = [one for one in wanted_series(BTC) if {"alive", "narrative", "news"}.isdisjoint(str(one).split("/"))]


@cache
def usual(mode: Mode) -> Bundle:
    async def gathered() -> Bundle:
        return await build_bundle(await market(), BTC, mode, END)

    return asyncio.run(gathered())


@cache
def told(series: Series[Any]) -> tuple[Any, ...]:
    return dict(rows())[series]


def with_rows(mode: Mode, series: Series[Any], given: list[Any]) -> Bundle:
    """The usual market with these rows of one series, through a store."""

    async def gathered() -> Bundle:
        store = MemorySeries(describe_origin(SEED))
        await store.write([Batch(series, given)])
        return await build_bundle(store, BTC, mode, END)

    block = asyncio.run(gathered()).block(series)
    others = [one for one in usual(mode).blocks if one.series != series]
    blocks = others if block is None else [*others, block]
    return replace(usual(mode), blocks=tuple(sorted(blocks, key=lambda one: str(one.series))))


def goes_on(bundle: Bundle) -> None:
    """Every figure is a number or missing, every axis can be drawn."""
    found = measure_features(bundle)
    json.dumps(features_view(bundle, "name", found).features, allow_nan=False)
    json.dumps(numbers(describe(bundle)), allow_nan=False)


def spoilt(row: Any, dice: random.Random) -> Any:
    """The same row with numbers nobody has."""
    value = dice.choice(EXTREMES)
    match row:
        case Candle() if dice.random() < 0.5:
            return row._replace(open=value, high=value, low=value, close=value)
        case Candle() if dice.random() < 0.5:
            return row._replace(**dice.choice(({"high": value}, {"low": value})))  # type: ignore[arg-type]
        case Candle():
            return row._replace(volume=value, taker_buy=dice.choice((None, 0.0, value)))
        case Book():
            return replace(row, bids=_levels(row.bids, dice), asks=_levels(row.asks, dice))
        case OptionChain():
            some = dice.uniform(0.02, 1)
            quotes = tuple(_field(one, dice) if dice.random() < some else one for one in row.quotes)
            return replace(row, quotes=quotes)
        case _:
            return _field(row, dice)


def _levels(quotes: tuple[Quote, ...], dice: random.Random) -> tuple[Quote, ...]:
    return tuple(_field(one, dice) if dice.random() < 0.2 else one for one in quotes)


def _field(row: Any, dice: random.Random) -> Any:
    names = [one.name for one in fields(row)] if is_dataclass(row) else row._fields
    real = [name for name in names if isinstance(getattr(row, name), float)]
    change = {dice.choice(real): dice.choice((1, 1, 1, -1)) * dice.choice(EXTREMES)}
    return replace(row, **change) if is_dataclass(row) else row._replace(**change)  # type: ignore[type-var]


EACH = [(series, share) for share in SHARES for series in TO_SPOIL]
USUAL = [pair for place, pair in enumerate(EACH) if place % len(TO_SPOIL) % len(SHARES) == place // len(TO_SPOIL)]
"""Every series with one of the shares; `make test` tries a third of them, `make soak` all."""


def spoil(series: Series[Any], share: float) -> None:
    dice = random.Random(f"{series} {share}")
    given = [spoilt(row, dice) if dice.random() < share else row for row in told(series)]
    goes_on(with_rows(dice.choice(list(Mode)), series, [*given[:-1], spoilt(given[-1], dice)]))


@pytest.mark.soak
@pytest.mark.parametrize("spoiling", mark_all_but(3, USUAL, pytest.mark.soak), ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_no_finite_number_stops_the_desk(spoiling: tuple[Series[Any], float]) -> None:
    spoil(*spoiling)


@pytest.mark.soak
@pytest.mark.parametrize("series", TO_SPOIL, ids=str)
def test_no_finite_number_stops_the_desk_whatever_share_of_rows_it_is(series: Series[Any]) -> None:
    for share in SHARES:
        spoil(series, share)


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("series", "row"),
    [
        (funding(BINANCE, BTC), Funding(END, 1e-4, 1e305)),
        (funding(BINANCE, BTC), Funding(END, 1e-4, 24.1)),
        (funding(BINANCE, BTC), Funding(END, 1e-4, 5e-324)),
        (open_interest(BINANCE, BTC), Level(END, 1.7e308)),
        (open_interest(BINANCE, BTC), Level(END, 1e-300)),
    ],
)
def test_one_absurd_row_is_set_aside_and_the_row_before_speaks(series: Series[Any], row: Any) -> None:
    bundle = with_rows(Mode.SWING, series, [*told(series), row])
    goes_on(bundle)
    assert row not in bundle.rows(series)
    assert bundle.rows(series)[-1].at >= told(series)[-1].at - 1


@pytest.mark.slow
def test_sums_of_the_largest_amounts_are_numbers() -> None:
    for series in (liquidations(BYBIT, BTC), whales(BINANCE, BTC)):
        rows = [row._replace(price=1e18, quantity=1e18, usd=1e18) for row in told(series)]
        assert all(isinstance(row, TapeEvent) for row in rows)
        goes_on(with_rows(Mode.SWING, series, rows))
    chains = options(DERIBIT, BTC.base)
    most = [
        replace(chain, quotes=tuple(replace(one, open_interest=1e18, volume=1e18) for one in chain.quotes))
        for chain in told(chains)
    ]
    goes_on(with_rows(Mode.SWING, chains, most))


@pytest.mark.slow
def test_a_print_beyond_all_bounds_is_set_aside() -> None:
    series = next(one for one in wanted_series(BTC) if one.row is MacroRelease)
    worst = MacroRelease(Millis(END - 1), 1.7e308, Millis(END - 1))
    bundle = with_rows(Mode.SWING, series, [*told(series), worst])
    assert worst not in bundle.rows(series)
    goes_on(bundle)
