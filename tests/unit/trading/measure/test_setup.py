"""A moment in phrases: the same for moments that are alike, none of a feed that is missing, no figure of a price."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from functools import cache
from math import inf, nextafter
from random import Random
from typing import Any

import pytest

from tests.wire.desk_bundles import World, bundle_of
from zuno.trading.measure.derivatives import FundingFigures
from zuno.trading.measure.features import Features, PriceContext, measure_features, read_price_context
from zuno.trading.measure.frames import Frame
from zuno.trading.measure.setup import NOTHING_MEASURED, describe_setup
from zuno.trading.measure.structure import Break, BreakKind, Extreme, Pivot, PriceDirection
from zuno.trading.measure.tape import SideHour
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Feed, Side, Timeframe
from zuno.trading.model.memory import SETUP_MAX

WORLDS = [World(), World(drift=-0.01, lean=-0.8, whales=-0.5, stocks=-0.03), World(dvol=60.0, seed=4)]


@cache
def measured(world: World) -> tuple[Features, PriceContext]:
    bundle = bundle_of(world)
    return measure_features(bundle), read_price_context(bundle)


def phrases(found: Features, context: PriceContext) -> list[str]:
    return describe_setup(found, context).split("; ")


def shift_floats(value: Any, dice: Random) -> Any:
    """Every float of a measured moment moved by one unit of its last place."""
    if isinstance(value, float):
        return nextafter(value, dice.choice((-inf, inf)))
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(shift_floats(item, dice) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.init]
        return replace(value, **{name: shift_floats(getattr(value, name), dice) for name in names})
    return value


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_a_last_bit_changes_no_phrase(world: World) -> None:
    found, context = measured(world)
    said = describe_setup(found, context)
    for seed in range(3):
        dice = Random(seed)
        assert describe_setup(shift_floats(found, dice), shift_floats(context, dice)) == said


@pytest.mark.parametrize("world", WORLDS)
def test_it_is_short_and_names_no_price(world: World) -> None:
    said = describe_setup(*measured(world))
    assert len(said) <= SETUP_MAX
    assert not re.search(r"\d{3}|\.\d|%", said)


def with_frame(found: Features, timeframe: Timeframe, **changes: Any) -> Features:
    frames = tuple(
        (each, frame if each is not timeframe or isinstance(frame, Missing) else replace(frame, **changes))
        for each, frame in found.frames
    )
    return replace(found, frames=frames)


def frame_of(found: Features, timeframe: Timeframe) -> Frame:
    frame = dict(found.frames)[timeframe]
    assert not isinstance(frame, Missing)
    return frame


@pytest.mark.parametrize(
    ("rate", "phrase"),
    [
        (0.0005, "funding extremely high"),
        (0.00049, "funding high"),
        (0.0002, "funding high"),
        (0.00019, "funding neutral"),
        (-0.0001, "funding negative"),
        (-0.0003, "funding extremely negative"),
    ],
)
def test_funding_has_five_words(rate: float, phrase: str) -> None:
    found, context = measured(WORLDS[0])
    first, *others = found.perpetuals
    paid = None if isinstance(first.predicted, Missing) else FundingFigures(first.predicted.at, rate, 8, rate)
    assert paid is not None
    said = phrases(replace(found, perpetuals=(replace(first, predicted=paid), *others)), context)
    assert [each for each in said if each.startswith("funding")] == [phrase]
    # a bound itself is met with either neighbour of its last bit
    for side in (0.0, inf):
        beside = replace(paid, per_8h=nextafter(rate, side))
        assert phrases(replace(found, perpetuals=(replace(first, predicted=beside), *others)), context) == said


def test_a_break_that_was_taken_back_failed() -> None:
    found, context = measured(WORLDS[0])
    frame = frame_of(found, Timeframe.H4)
    close, end = frame.readings.close, frame.readings.at + Timeframe.H4.millis

    def broken(level: float, bars: int) -> list[str]:
        known = end - bars * Timeframe.H4.millis
        pivot = Pivot(Extreme.HIGH, frame.readings.at, level, known)  # type: ignore[arg-type]
        last = Break(BreakKind.BOS, PriceDirection.UP, pivot, known, known)  # type: ignore[arg-type]
        shape = replace(frame.structure, breaks=(last,))
        return [each for each in phrases(with_frame(found, Timeframe.H4, structure=shape), context) if "break" in each]

    assert broken(close * 1.01, 2) == ["failed breakout up 4h"]
    assert broken(close * 0.99, 2) == ["breakout up 4h"]
    assert broken(close * 1.01, 7) == broken(close * 0.99, 4) == []


def test_liquidations_are_high_beside_their_own_past() -> None:
    found, context = measured(WORLDS[0])

    def hour(usd: float, high: float | Missing) -> list[str]:
        longs = SideHour(Side.LONG, usd, "lower bound", True, high, 200)
        said = phrases(replace(found, forced=replace(found.forced, longs_hour=longs)), context)
        return [each for each in said if "liquidations of longs" in each]

    assert all((hour(2e6, 1e6), hour(2e5, Missing("no past"))))
    assert not any((hour(5e5, 1e6), hour(5e4, 1e4), hour(5e4, Missing("no past"))))


@pytest.mark.slow
def test_a_feed_that_is_missing_says_nothing_and_adds_nothing() -> None:
    """Whatever one feed less leaves is what was said before, in the same order."""
    whole = bundle_of(WORLDS[1])
    said = describe_setup(*measured(WORLDS[1])).split("; ")
    for feed in (Feed.FUNDING, Feed.BOOK, Feed.DVOL, Feed.MACRO):
        less = replace(whole, blocks=tuple(block for block in whole.blocks if block.series.feed is not feed))
        left = phrases(measure_features(less), read_price_context(less))
        assert [each for each in said if each in left] == left, feed
    nothing = replace(whole, blocks=())
    assert describe_setup(measure_features(nothing), read_price_context(nothing)) == NOTHING_MEASURED


def test_another_symbol_at_another_price_in_the_same_state_has_the_same_phrases() -> None:
    """Of the same shape at a tenth of the price."""
    found, context = measured(WORLDS[0])
    frame = frame_of(found, Timeframe.H1)
    cheap = replace(
        frame.readings,
        **{
            name: value / 16
            for name in ("close", "ema50", "vwap", "atr")
            if (value := getattr(frame.readings, name)) is not None
        },
    )
    shape = replace(frame.structure, breaks=(), pivots=())
    both = [with_frame(found, Timeframe.H1, structure=shape, readings=each) for each in (frame.readings, cheap)]
    assert describe_setup(both[0], context) == describe_setup(both[1], context)
