"""The synthetic market's bars: walked where time is finest, summed exactly wherever it is coarser.

Prices are whole ticks and volumes whole lots until the very end, so that sums do not depend on order or rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from zuno.adapters.venues.synthetic.path import (
    END,
    HOURS,
    ZONES,
    Ints,
    Path,
    PathZone,
    RandomStream,
    by_daytime,
    decay_noise,
    exponent_of,
    hour_of,
    hours_to_bars,
    sum_last_axis,
)
from zuno.kernel.units import Millis
from zuno.markets.feeds import UPBIT
from zuno.markets.market import Symbol
from zuno.trading.measure.bars import Floats
from zuno.trading.measure.portable import exp, log, tanh
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Candle, Series, Timeframe, candles
from zuno.trading.ports.series import Batch

KOREA: Final = 0.012
"""The won market's volume, as a share of the dollar's."""
KRW_START: Final = 1_380.0
KRW_MINUTES_FROM: Final = END - 7 * DAY_MS


@dataclass(frozen=True, slots=True)
class MarketPrecision:
    """A market's precision: ticks per unit of the quote, lots per unit of the base."""

    ticks: int
    lots: int
    step: int = 1
    """Ticks between one price and the next."""

    def price(self, ticks: Any) -> Any:
        return ticks / self.ticks

    def size(self, lots: Any) -> Any:
        return lots / self.lots


@dataclass(frozen=True, slots=True, eq=False)
class TickBars:
    timeframe: Timeframe
    at: Ints
    open: Ints
    high: Ints
    low: Ints
    close: Ints
    volume: Ints
    taker_buy: Ints

    def part(self, chosen: Any) -> TickBars:
        return TickBars(self.timeframe, *(column[chosen] for column in self.columns))

    @property
    def columns(self) -> tuple[Ints, ...]:
        return (self.at, self.open, self.high, self.low, self.close, self.volume, self.taker_buy)


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticMarket:
    """One symbol's path with its bars; every other part of the market is drawn from it."""

    path: Path
    grain: MarketPrecision
    bars: Mapping[Timeframe, TickBars]
    last_steps: Ints
    """The price after each step of each minute, minutes × steps, in ticks."""

    @property
    def symbol(self) -> Symbol:
        return self.path.symbol

    @property
    def minutes(self) -> TickBars:
        return self.bars[Timeframe.M1]

    def minute_sigma(self) -> Floats:
        zone = ZONES[2]
        return np.repeat(self.path.sigma[hour_of(zone.start) :] / np.sqrt(60), 60)


def build_market(seed: int, path: Path) -> SyntheticMarket:
    grain = MarketPrecision(path.coin.ticks, path.coin.lots)
    natives, walked = _walk_bars(path, grain)
    went = [sum_last_axis(steps) / _bar_sigma(zone, path.sigma) for zone, steps in zip(ZONES, path.steps, strict=True)]
    volumes, shares = _volumes(seed, path, grain, natives, went), taker_buy_shares(seed, path, went)
    filled = [
        replace(bars, volume=volume, taker_buy=np.rint(volume * share).astype(np.int64))
        for bars, volume, share in zip(natives, volumes, shares, strict=True)
    ]
    return SyntheticMarket(path, grain, _all_lengths(*filled), walked)


def build_batches(made: SyntheticMarket) -> list[Batch[Any]]:
    return [
        _batch(candles(made.symbol.venue.feed, made.symbol, bars.timeframe), bars, made.grain)
        for bars in made.bars.values()
    ]


def build_krw_batches(seed: int, made: SyntheticMarket, krw_rate: Floats) -> list[Batch[Any]]:
    """The same price in won, on a market without empty bars and without taker volume."""
    power = exponent_of(made.path.coin.start * KRW_START) - 4  # a price has about five digits
    grain = MarketPrecision(10 ** max(0, -power), made.path.coin.won_lots, step=10 ** max(0, power))
    draw = RandomStream(seed, f"won {made.symbol}")
    bars, done = [], 0
    for zone in ZONES:
        whole = made.bars[_length(zone)]
        native = whole.part((whole.at >= zone.start) & (whole.at < zone.end))
        rate = krw_rate[done : done + len(native.at)]
        done += len(native.at)
        bars.append(_convert_to_krw(draw, native, rate, made.grain, grain))
    lengths = _all_lengths(*bars)
    lengths[Timeframe.M1] = lengths[Timeframe.M1].part(lengths[Timeframe.M1].at >= KRW_MINUTES_FROM)
    series = partial(candles, UPBIT, made.symbol)
    return [_batch(series(length.timeframe), length, grain, taker=False) for length in lengths.values()]


def draw_krw_rate(seed: int) -> Floats:
    """Won for one dollar at the end of every bar that was walked, oldest first."""
    spans = np.concatenate([np.full(zone.bars, zone.bar / HOUR_MS) for zone in ZONES])
    steps = RandomStream(seed, "won").normal(size=len(spans)) * 0.0007 * np.sqrt(spans)
    level, kept = np.empty(len(spans)), 0.0
    for place, (step, span) in enumerate(zip(steps.tolist(), spans.tolist(), strict=True)):
        kept = kept * (1 - 0.0006 * span) + step
        level[place] = kept
    return np.round(KRW_START * exp(level), 1)


def resample(timeframe: Timeframe, bars: TickBars) -> TickBars:
    """What these bars add up to, bucket by bucket, where the first and the last bucket are whole."""
    shift = timeframe.floor(0)
    bucket = (bars.at - shift) // timeframe.millis * timeframe.millis + shift
    whole = (bucket >= bars.at[0]) & (bucket + timeframe.millis <= bars.at[-1] + bars.timeframe.millis)
    bars, bucket = bars.part(whole), bucket[whole]
    at, first = np.unique(bucket, return_index=True)
    last = np.append(first[1:], len(bucket)) - 1
    return TickBars(
        timeframe,
        at,
        bars.open[first],
        np.maximum.reduceat(bars.high, first),
        np.minimum.reduceat(bars.low, first),
        bars.close[last],
        np.add.reduceat(bars.volume, first),
        np.add.reduceat(bars.taker_buy, first),
    )


def _length(zone: PathZone) -> Timeframe:
    return next(timeframe for timeframe in Timeframe if timeframe.millis == zone.bar)


def _walk_bars(path: Path, grain: MarketPrecision) -> tuple[list[TickBars], Ints]:
    """Bars without volume, each opening where the one before closed; and the last zone's every step."""
    start, bars = float(log(path.coin.start)), []
    walked: Ints = np.empty(0, np.int64)
    before = np.int64(np.rint(path.coin.start * grain.ticks))
    for zone, steps in zip(ZONES, path.steps, strict=True):
        logs = start + np.cumsum(steps.reshape(-1))
        start = logs[-1]
        walked = np.rint(exp(logs) * grain.ticks).astype(np.int64).reshape(steps.shape)
        close = walked[:, -1]
        opened = np.append(before, close[:-1])
        before = close[-1]
        high, low = np.maximum(opened, walked.max(axis=1)), np.minimum(opened, walked.min(axis=1))
        at = zone.start + zone.bar * np.arange(zone.bars)
        none = np.zeros(zone.bars, np.int64)
        bars.append(TickBars(_length(zone), at, opened, high, low, close, none, none))
    return bars, walked


def _volumes(
    seed: int, path: Path, grain: MarketPrecision, bars: Sequence[TickBars], went: Sequence[Floats]
) -> list[Ints]:
    """By the hour of the day, and more in volatile hours or after large moves."""
    volumes = []
    for zone, native, far in zip(ZONES, bars, went, strict=True):
        draw = RandomStream(seed, f"volume {zone.bar} {path.symbol}")
        noise = exp(draw.normal(0.3 if zone.bar < HOUR_MS else 0.12, zone.bars))
        busy = _busy(seed, path, zone) * noise * (0.65 + 0.4 * np.minimum(np.abs(far), 6))
        dollars = path.coin.traded * zone.bar / ZONES[0].bar * busy
        volumes.append(np.maximum(1, np.rint(dollars / grain.price(native.close) * grain.lots)).astype(np.int64))
    return volumes


def _bar_sigma(zone: PathZone, sigma: Floats) -> Floats:
    first, hours = hour_of(zone.start), (zone.end - zone.start) // HOUR_MS
    squares = np.square(sigma[first : first + hours])
    if zone.bar > HOUR_MS:
        return np.asarray(np.sqrt(sum_last_axis(squares.reshape(zone.bars, -1))), dtype=np.float64)
    return np.repeat(np.sqrt(squares * zone.bar / HOUR_MS), HOUR_MS // zone.bar)


def _busy(seed: int, path: Path, zone: PathZone) -> Floats:
    """Volume against an ordinary time, bar by bar."""
    noise = RandomStream(seed, f"busy {path.symbol}").normal(size=HOURS)
    drift = exp(decay_noise(noise, 1 - 1 / 24) * 0.25 * np.sqrt(2 / 24))
    season = by_daytime(0.4, np.arange(HOURS))
    hours = season * drift * exp(0.9 * log(path.sigma / path.coin.sigma))
    return hours_to_bars(zone, hours)


def _all_lengths(days: TickBars, hours: TickBars, minutes: TickBars) -> dict[Timeframe, TickBars]:
    """Every length there is, each from the next finer one."""
    hour = _join_bars(hours, resample(Timeframe.H1, minutes))
    day = _join_bars(days, resample(Timeframe.D1, hour))
    return {
        Timeframe.M1: minutes,
        Timeframe.H1: hour,
        Timeframe.H4: resample(Timeframe.H4, hour),
        Timeframe.D1: day,
        Timeframe.W1: resample(Timeframe.W1, day),
    }


def _join_bars(early: TickBars, late: TickBars) -> TickBars:
    pairs = zip(early.columns, late.columns, strict=True)
    return TickBars(early.timeframe, *(np.concatenate(pair) for pair in pairs))


def _convert_to_krw(
    draw: RandomStream, bars: TickBars, rate: Floats, dollars: MarketPrecision, grain: MarketPrecision
) -> TickBars:
    """Bars in won: each opens where the last one closed, and some minutes of the Korean night have no trade."""
    scale = rate / dollars.ticks * exp(draw.normal(0.0002, len(rate)))
    prices = (bars.open, bars.high, bars.low, bars.close)
    first, high, low, close = (np.rint(price * scale / grain.step).astype(np.int64) * grain.step for price in prices)
    opened = np.append(first[:1], close[:-1])
    high, low = np.maximum(high, opened), np.minimum(low, opened)
    volume = np.rint(bars.volume * KOREA * exp(draw.normal(0.3, len(rate))) * grain.lots / dollars.lots)
    hour = bars.at // HOUR_MS % 24
    silent = (draw.uniform(size=len(bars.at)) < 0.03) & (hour >= 17) & (hour < 22) & (bars.timeframe is Timeframe.M1)
    volumes = np.maximum(1, volume).astype(np.int64)
    return TickBars(bars.timeframe, bars.at, opened, high, low, close, volumes, bars.taker_buy).part(~silent)


def _batch(series: Series[Candle], bars: TickBars, grain: MarketPrecision, taker: bool = True) -> Batch[Candle]:
    prices = [grain.price(column).tolist() for column in bars.columns[1:5]]
    taken: list[Any] = grain.size(bars.taker_buy).tolist() if taker else [None] * len(bars.at)
    columns = zip(bars.at.tolist(), *prices, grain.size(bars.volume).tolist(), taken, strict=True)
    return Batch(series, [Candle(Millis(at), *rest) for at, *rest in columns])


BEHIND: Final = ((HOUR_MS, 0.021), (8 * HOUR_MS, 0.015))
"""How long takers run behind a move, and how far: a share of the volume, one deviation."""
OWN_MS, OWN = 24 * HOUR_MS, 0.009
"""The same of what they do for reasons of their own, which have nothing to do with the price."""
WITH, NOISE = 0.11, 0.03
"""How far a minute's takers go with the minute itself, and how far they scatter."""
_FARTHEST: Final = 5.0
"""Deviations of a bar that are still followed: a jump is not."""


def taker_buy_shares(seed: int, path: Path, surprises: Sequence[Floats]) -> list[Floats]:
    """The share of each bar's volume that takers bought, from how far it went against what was usual, scaled to its
    length. It looks back alone: takers say nothing of where the price goes."""
    shares = []
    behind = [_behind(surprises, memory) for memory, _ in BEHIND]
    keep = float(exp(-HOUR_MS / OWN_MS))
    noise = RandomStream(seed, f"takers {path.symbol}").normal(size=HOURS)
    own = decay_noise(noise, keep) * OWN * float(np.sqrt(1 - keep**2))
    for place, (zone, went) in enumerate(zip(ZONES, surprises, strict=True)):
        noise = RandomStream(seed, f"takers {zone.bar} {path.symbol}").normal(size=zone.bars)
        short = np.sqrt(MINUTE_MS / zone.bar)
        leaning = sum(far * parts[place] for (_, far), parts in zip(BEHIND, behind, strict=True))
        share = 0.5 + leaning + hours_to_bars(zone, own) + short * (WITH * tanh(went) + NOISE * noise)
        shares.append(np.clip(share, 0.05, 0.95))
    return shares


def _behind(surprises: Sequence[Floats], memory: int) -> list[Floats]:
    """What is left of all moves so far, each bar the mean over itself; of deviation one where bars are short."""
    parts, last = [], 0.0
    for zone, went in zip(ZONES, surprises, strict=True):
        span = zone.bar / memory
        keep = float(exp(-span))
        left = decay_noise(np.clip(went, -_FARTHEST, _FARTHEST) * np.sqrt(1 - keep**2), keep, start=last)
        last = float(left[-1])
        parts.append(left * np.sqrt(2 * (span - 1 + keep)) / span)
    return parts
