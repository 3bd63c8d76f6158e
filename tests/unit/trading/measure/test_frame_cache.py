"""What is measured with a cache is what is measured without one, whatever was measured before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.wire.desk_bundles import World, bundle_of
from zuno.markets.feeds import BINANCE
from zuno.trading.measure.features import measure_features
from zuno.trading.measure.frames import Frame, FrameCache
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.market import Candle, Mode, Timeframe, candles

pytestmark = pytest.mark.slow


def with_candles(bundle: Bundle, timeframe: Timeframe, rows: tuple[Candle, ...]) -> Bundle:
    series = candles(BINANCE, bundle.symbol, timeframe)
    return replace(
        bundle,
        blocks=tuple(replace(block, rows=rows) if block.series == series else block for block in bundle.blocks),
    )


def test_a_frame_is_measured_anew_when_its_candles_or_its_mode_are_others() -> None:
    first, cache = bundle_of(World()), FrameCache()
    hours: Any = first.rows(candles(BINANCE, first.symbol, Timeframe.H1))
    mended = (*hours[:-1], hours[-1]._replace(close=hours[-1].low))
    bundles = [
        first,
        with_candles(first, Timeframe.H1, hours[:-1]),
        with_candles(first, Timeframe.H1, mended),
        with_candles(first, Timeframe.H1, ()),
        replace(first, mode=next(mode for mode in Mode if mode is not first.mode)),
        bundle_of(World(seed=4)),
        first,
    ]
    for bundle in bundles:
        assert repr(measure_features(bundle, cache)) == repr(measure_features(bundle))


def test_a_frame_of_the_same_candles_is_the_one_that_was_measured() -> None:
    bundle, cache = bundle_of(World()), FrameCache()
    before, after = measure_features(bundle, cache), measure_features(replace(bundle, slots=()), cache)
    assert any(isinstance(frame, Frame) for _, frame in before.frames)
    assert all(mine is theirs for (_, mine), (_, theirs) in zip(before.frames, after.frames, strict=True))
    assert measure_features(bundle).frames[0][1] is not before.frames[0][1]
