"""Frames of many moments at once are, bit by bit, those that are measured by themselves."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence

import numpy as np
import pytest

from tests.paths import SHARED_DATA
from tests.wire.real_hours import instant
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.measure.bars import LOOKBACK, bars
from zuno.trading.measure.frames import FEWEST, Frame, FrameCache, PreparedFrames
from zuno.trading.measure.indicators import SUPERTREND, atr, newest_supertrends, supertrend
from zuno.trading.measure.structure import DivergenceSource
from zuno.trading.model.market import HOUR_MS, Candle, Timeframe

BTC, H1, SHOULDER = Symbol("BTCUSDT"), Timeframe.H1, 5
START = 1_700_006_400_000


def walk(count: int, seed: int, price: float = 30_000.0, *, digits: int = 2, taker: bool = True) -> list[Candle]:
    """Hours with a gap in time, one that stands still, and some of which nobody says what takers bought."""
    dice = np.random.default_rng(seed)
    close = np.round(price * np.exp(np.cumsum(dice.normal(0, 0.01, count))), digits).tolist()
    rows: list[Candle] = []
    for row in range(count):
        opened = close[row - 1] if row else price
        high = round(max(opened, close[row]) * (1 + abs(dice.normal(0, 0.004))), digits)
        low = round(min(opened, close[row]) * (1 - abs(dice.normal(0, 0.004))), digits)
        volume = round(float(dice.lognormal(3, 1)), 3)
        bought = round(volume * float(dice.random()), 3) if taker and not 400 < row < 460 else None
        rows.append(Candle(Millis(START + row * HOUR_MS), opened, high, low, close[row], volume, bought))
    still = close[count // 2]
    rows[count // 2] = Candle(rows[count // 2].at, still, still, still, still, 0.0, None)
    del rows[count - 200 : count - 197]
    return rows


def reaches(rows: Sequence[Candle], ends: Sequence[int], longest: int) -> list[Sequence[Candle]]:
    """The candles as they were known at each moment."""
    return [rows[max(0, end - longest) : end] for end in ends]


def compare(moments: Sequence[Sequence[Candle]]) -> list[Frame | None]:
    """Every frame and window, prepared and measured by itself."""
    prepared, plain = PreparedFrames(), FrameCache()
    prepared.prepare(H1, SHOULDER, moments)
    frames = []
    for rows in moments:
        as_of = Millis(rows[-1].at + HOUR_MS)
        frames.append(prepared.read_frame(BTC, H1, rows, SHOULDER))
        assert repr(frames[-1]) == repr(plain.read_frame(BTC, H1, rows, SHOULDER))
        for mine, theirs in (
            (prepared.read_bars(BTC, H1, rows), plain.read_bars(BTC, H1, rows)),
            (prepared.read_newest(BTC, H1, rows, as_of), plain.read_newest(BTC, H1, rows, as_of)),
        ):
            for name in ("at", "open", "high", "low", "close", "volume", "taker_buy"):
                assert getattr(mine, name).tobytes() == getattr(theirs, name).tobytes()
    return frames


def is_prepared(frames: PreparedFrames, rows: Sequence[Candle]) -> bool:
    """Whether a frame comes of the prepared past: it is then not kept as one that was measured."""
    frames.read_frame(BTC, H1, rows, SHOULDER)
    return not frames._kept


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(("seed", "price", "digits", "taker"), [(1, 30_000.0, 2, True), (2, 100.0, 11, False)])
def test_every_figure_is_the_one_that_is_measured_by_itself(seed: int, price: float, digits: int, taker: bool) -> None:
    """The second market goes to and fro over 100, where its prices lose a digit, and has more digits than are kept."""
    rows = walk(1_900, seed, price, digits=digits, taker=taker)
    ends = [1_000, 1_100, 1_101, 1_105, 1_400, 1_404, 1_650, len(rows) - 1, len(rows)]
    moments = reaches(rows, ends, 1_300)
    if digits == 11:
        assert {len(str(int(moment[0].close))) for moment in moments} == {2, 3}
    frames = compare(moments)
    found = [frame.structure for frame in frames if frame is not None]
    assert all(each.pivots and each.breaks and each.lines and each.gaps and each.zones for each in found)
    assert any(gap.filled_at is None for each in found for gap in each.gaps)
    gauges = {each.gauge for structure in found for each in structure.divergences}
    assert gauges == ({DivergenceSource.RSI, DivergenceSource.CVD} if taker else {DivergenceSource.RSI})


@pytest.mark.slow
def test_short_and_unsound_windows_are_measured_by_themselves() -> None:
    rows = walk(1_250, 3)
    broken = [*rows[:-4], rows[-4]._replace(low=rows[-4].high * 1.1), *rows[-3:]]
    moments = [*reaches(rows, [FEWEST - 1, FEWEST, 1_200, 1_240], 5_000), *reaches(broken, [len(rows)], 5_000)]
    compare(moments)
    prepared = PreparedFrames()
    prepared.prepare(H1, SHOULDER, moments)
    assert [is_prepared(prepared, moment) for moment in moments[1:4]] == [True] * 3
    assert not is_prepared(prepared, moments[0])


@pytest.mark.slow
def test_a_row_that_was_mended_in_between_is_seen_from_then_on() -> None:
    rows = walk(1_250, 4)
    mended = [*rows[:600], rows[600]._replace(close=rows[600].low), *rows[601:]]
    moments = [rows[:1_100], mended[:1_150], mended[:1_200]]
    before, after, later = compare(moments)
    assert repr(before) != repr(after) != repr(later)
    compare([rows[:1_150], rows[:1_150], rows[:1_100]])


def test_supertrends_of_many_windows_are_those_of_each() -> None:
    market = bars(H1, walk(1_700, 5))
    count, width = SUPERTREND
    windows = [market.cut(slice(first, first + LOOKBACK)) for first in range(0, 690, 23)]
    spread = np.stack([atr(each.high, each.low, each.close, count)[count:] for each in windows], axis=1)
    high, low, close = (
        np.stack([column[count:] for column in several], axis=1)
        for several in zip(*((each.high, each.low, each.close) for each in windows), strict=True)
    )
    lines, sides = newest_supertrends(high, low, close, width * spread)
    alone = [supertrend(window.high, window.low, window.close) for window in windows]
    assert lines.tolist() == [float(line[-1]) for line, _ in alone]
    assert sides.tolist() == [float(side[-1]) for _, side in alone]
    assert set(sides.tolist()) == {1.0, -1.0}


@pytest.mark.slow
def test_real_hours_are_measured_alike() -> None:
    path = SHARED_DATA / "btc-eth-history" / "btc-1h.csv.gz"
    if not path.exists():
        pytest.skip("no real hours: ../shared/data/btc-eth-history is not beside the checkout")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = list(csv.reader(file))[1 + 22_000 : 1 + 24_500]  # over 100,000 dollars for the first time
    hours = [(instant(at), *map(float, numbers), None) for at, *numbers in lines]
    rows = [Candle._make(hour) for hour in hours]
    compare(reaches(rows, range(1_900, 2_500, 83), 1_800))
