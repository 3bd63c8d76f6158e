"""What a cycle may know goes into bytes and comes out of them the same; nothing else is taken for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from zuno.kernel.canonical import canonical
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Millis, Seconds
from zuno.markets.market import Symbol
from zuno.trading.model.bundle import Absent, Block, Bundle, BundleEncoder, Slot, bundle_hash, content, read_bundle
from zuno.trading.model.market import (
    HOUR_MS,
    MINUTE_MS,
    Book,
    Candle,
    Feed,
    Funding,
    Heartbeat,
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
    alive,
    basis,
    books,
    candles,
    dvol,
    funding,
    liquidations,
    macro,
    options,
    texts,
)

T0 = Millis(1_700_000_040_000)
GOLDEN = "d0292790c4e443b7c916297c63746748389723352049318151a86ca4cfafa09a"
ROWS: list[tuple[Series[Any], tuple[object, ...]]] = [
    (
        candles("binance", "BTCUSDT", Timeframe.H1),
        (Candle(T0, 1.5, 2.0, 1.0, 1.25, 10.0, 4.0), Candle(T0, 1, 1, 1, 1, 0.0, None)),
    ),
    (funding("okx", "BTCUSDT"), (Funding(T0, -0.0001, 4.0),)),
    (dvol("deribit", "BTC"), (Level(T0, 61.5),)),
    (basis("bybit", "BTCUSDT"), (MarkAndIndex(T0, 100.5, 100.25),)),
    (macro("fred", "DGS2"), (MacroRelease(T0, 4.1, Millis(T0 + 5)),)),
    (liquidations("binance", "BTCUSDT"), (TapeEvent(T0, Side.SHORT, 9.5, 2.0, 19.0, "7"),)),
    (books("binance", "BTCUSDT"), (Book(T0, (Quote(9.0, 1.0), Quote(8.5, 2.0)), (Quote(9.5, 1.0),)),)),
    (
        options("deribit", "BTC"),
        (
            OptionChain(
                T0,
                (
                    OptionQuote("B-1-C", None, 50.0, True, None, 1.0, 0.0, None),
                    OptionQuote("B-2-P", T0, 40.0, False, 55.5, 0.0, 3.0, 41.0),
                ),
            ),
        ),
    ),
    (texts(Feed.NEWS, "channels", "BTC"), (Text(T0, "daily", "1/2", "a “quoted” line\nand another"),)),
    (
        alive(Feed.WHALES, "binance", "BTCUSDT"),
        tuple(Heartbeat(Millis(T0 + at * MINUTE_MS)) for at in (0, 1, 2, 5, 7, 8)),
    ),
]


def bundle() -> Bundle:
    blocks = tuple(Block(series, rows, T0, Seconds(30), Seconds(60), ("a note",)) for series, rows in ROWS)
    slots = (Slot("equity", {"usd": 2_000}, T0, "the paper book"),)
    return Bundle(
        Symbol("BTCUSDT"), Mode.SWING, T0, "SYNTHETIC seed 1", blocks, (Absent("memory", "none is kept yet"),), slots
    )


def test_every_kind_of_row_comes_back_equal() -> None:
    assert read_bundle(content(bundle())) == bundle()


def test_the_bytes_are_those_they_always_were() -> None:
    assert bundle_hash(bundle()) == GOLDEN


@pytest.mark.parametrize("seed", range(3))
def test_bundle_after_bundle_is_written_as_each_by_itself(seed: int) -> None:
    """A window that goes on, over rows of which some are replaced by equal ones that are written in another way."""
    random, encoder = Random(seed), BundleEncoder()
    hours, tape = candles("binance", "BTCUSDT", Timeframe.H1), liquidations("binance", "BTCUSDT")
    bars: list[Any] = [Candle(Millis(T0 + n * HOUR_MS), 2.0, 3.5, 1.0, 1e-7 * n, 10.0, None) for n in range(600)]
    events: list[Any] = [TapeEvent(Millis(T0 + n // 5), Side.LONG, 9.5, 2.0, 19.0, f"],[{n}") for n in range(600)]
    first, last = 0, 0
    for _ in range(25):
        last = min(600, last + random.choice((0, 1, 3, 70, 140)))
        first = random.choice((first, min(last, first + random.choice((1, 60, 64, 200))), max(0, first - 5)))
        if first < last and random.random() < 0.5:
            place = random.randrange(first, last)
            bars[place] = bars[place]._replace(open=2 if isinstance(bars[place].open, float) else 2.0)
        if random.random() < 0.2:
            del events[random.randrange(len(events))]
        blocks = tuple(
            Block(series, tuple(rows[first:last]), T0, Seconds(1), Seconds(60), ("a note",))
            for series, rows in ((hours, bars), (tape, events))
        )
        given = replace(bundle(), blocks=(*blocks, *bundle().blocks))
        assert encoder.encode(given) == content(given)


def test_no_text_and_no_content_is_taken_for_a_place_to_fill() -> None:
    trap = ',"rows":[],"blocks":[],'
    given = bundle()
    traps = tuple(replace(block, notes=(trap, "")) for block in given.blocks)
    slot = Slot("equity", {"a": 1, "blocks": [], "rows": [], "z": trap}, T0, trap)
    whole = replace(given, origin=trap, blocks=traps, absent=(Absent(trap, trap),), slots=(slot,))
    assert read_bundle(content(whole)) == whole
    assert read_bundle(content(replace(whole, blocks=()))) == replace(whole, blocks=())
    empty = replace(whole, blocks=(replace(traps[0], rows=()), replace(traps[5], rows=())))
    assert read_bundle(content(empty)) == empty


@pytest.mark.parametrize("series", [series for series, _ in ROWS], ids=str)
def test_a_series_is_found_under_its_own_name(series: Series[Any]) -> None:
    assert bundle().rows(series) == dict(ROWS)[series]
    assert bundle().block(dvol("deribit", "ETH")) is None
    assert bundle().rows(dvol("deribit", "ETH")) == ()


def test_what_is_absent_says_why() -> None:
    assert bundle().why_absent("memory") == "none is kept yet"
    assert bundle().why_absent(dvol("deribit", "BTC")) is None


def test_minutes_of_life_are_written_as_runs() -> None:
    block = next(one for one in json.loads(content(bundle()))["blocks"] if one["series"].endswith("/alive"))
    assert block["rows"] == [[T0, 3], [T0 + 5 * MINUTE_MS, 1], [T0 + 7 * MINUTE_MS, 2]]


def test_any_other_number_is_another_bundle() -> None:
    first, rows = ROWS[0]
    other = rows[0]._replace(close=1.2500000000000002)  # type: ignore[attr-defined]
    blocks = (Block(first, (other, *rows[1:]), T0, Seconds(30), Seconds(60), ("a note",)), *bundle().blocks[1:])
    changed = Bundle(Symbol("BTCUSDT"), Mode.SWING, T0, "SYNTHETIC seed 1", blocks, bundle().absent, bundle().slots)
    assert bundle_hash(changed) != bundle_hash(bundle())
    assert bundle_hash(bundle()) == bundle_hash(bundle())


def test_age_is_stale_one_second_past_the_limit() -> None:
    at_the_limit = Block(ROWS[0][0], (), T0, Seconds(60), Seconds(60))
    assert not at_the_limit.stale
    assert Block(ROWS[0][0], (), T0, Seconds(61), Seconds(60)).stale


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plain: plain.update(version=2),
        lambda plain: plain.pop("blocks"),
        lambda plain: plain["blocks"][0].update(series="candles"),
        lambda plain: plain["blocks"][0].update(series="nothing/of/that"),
        lambda plain: plain["blocks"][0]["rows"][0].append(1),
        lambda plain: plain["blocks"][0].update(rows=[7]),
        lambda plain: plain["blocks"][5]["rows"][0].__setitem__(1, "sideways"),
        lambda plain: plain.update(symbol="DOGE?"),
        lambda plain: plain.update(mode="casino"),
    ],
)
def test_what_is_no_bundle_is_not_taken_for_one(spoil: object) -> None:
    plain = json.loads(content(bundle()))
    spoil(plain)  # type: ignore[operator]
    with pytest.raises(Malformed):
        read_bundle(canonical(plain))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.replace(b'"version":1', b'"version": 1'),
        lambda data: data + b" ",
        lambda data: b'{"version":1,' + data[1:],
        lambda data: re.sub(rb"(\d\.\d+),", rb"\g<1>0,", data, count=1),
        lambda data: re.sub(rb"\d+\.\d+,", b"NaN,", data, count=1),
        lambda data: data[:-1],
        lambda data: b"\xff" + data,
        lambda data: b"[" * 100_000,
    ],
)
def test_bytes_that_are_not_canonical_are_refused(spoil: Callable[[bytes], bytes]) -> None:
    data = content(bundle())
    assert spoil(data) != data
    with pytest.raises(Malformed):
        read_bundle(spoil(data))
