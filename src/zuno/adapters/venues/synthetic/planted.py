"""A synthetic market in which one setup keeps coming back, for whoever asks whether memory helps.

In the first hours of every day large takers sell, which gives the desk something to trade. Some days are drawn by
chance and show it from their first moment on: funding is extremely negative and the mood extreme fear. With
consequences, the price of a drawn day then swings through both sides by more than a usual stop and less than a usual
target and comes back, so that trades of either side tend to fail. Without, the very same signs mean nothing: the walk
has no edge, as everywhere else in this package.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from zuno.adapters.venues.synthetic.path import END, MINUTES_FROM, ZONES, Path, chance, paths
from zuno.adapters.venues.synthetic.world import draw_batches
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Floats
from zuno.trading.model.market import DAY_MS, HOUR_MS, Feed, Funding, Level, Side, TapeEvent
from zuno.trading.ports.series import Batch, Origin

SHOWN_MS: Final = 4 * HOUR_MS
"""Of a day, in which its signs are there; then its swing begins."""
SWING_MS: Final = 12 * HOUR_MS
SHARE: Final = 0.4
"""Of the days that are drawn."""
FUNDING: Final = -0.00024
"""Predicted, as if for eight hours: not as much as would keep the desk from selling."""
FEAR: Final = 12.0
SWING_ATR: Final = 2.1
"""How far it goes to either side, in mean ranges of four hours of the walk as it would have been."""
LEFT: Final = 0.3
"""Of the walk's own steps while it swings."""
_BAR_STEPS: Final = 4 * ZONES[2].per_hour
_BARS: Final = 14


def planted_origin(seed: int, *, consequences: bool) -> Origin:
    return Origin(synthetic=True, label=f"SYNTHETIC seed {seed} {'planted setups' if consequences else 'empty signs'}")


def planted_days(seed: int) -> tuple[tuple[Millis, bool], ...]:
    """The first moment of every day of the time of minutes, and whether it was drawn."""
    count = (END - MINUTES_FROM) // DAY_MS
    drawn = chance(seed, "planted").uniform(size=count) < SHARE
    return tuple((Millis(MINUTES_FROM + place * DAY_MS), bool(is_drawn)) for place, is_drawn in enumerate(drawn))


def planted_batches(seed: int, *, consequences: bool) -> list[Batch[Any]]:
    """Everything a store is to be filled with, clean."""
    drawn = [start for start, is_drawn in planted_days(seed) if is_drawn]
    walks = paths(seed)
    if consequences:
        walks = {symbol: _swing(seed, path, drawn) for symbol, path in walks.items()}
    return [_show(batch, drawn) for batch in draw_batches(seed, walks)]


# -- what happens


def _swing(seed: int, path: Path, drawn: Sequence[int]) -> Path:
    """Which way a day goes first is drawn once for both symbols."""
    own = path.steps[2].reshape(-1)
    steps = own.copy()
    ways = chance(seed, "planted way").integers(0, 2, len(drawn)) * 2 - 1
    for start, way in zip(drawn, ways.tolist(), strict=True):
        begin, end = (_step_of(start + ahead) for ahead in (SHOWN_MS, SHOWN_MS + SWING_MS))
        far = way * SWING_ATR * _mean_range(own[:begin])
        steps[begin:end] = LEFT * own[begin:end] + far * _legs(end - begin)
    return replace(path, steps=(*path.steps[:2], steps.reshape(path.steps[2].shape)))


def _legs(count: int) -> Floats:
    """Steps of one swing of height one: a quarter of the time there, half of it to the other side, and back."""
    quarter = count // 4
    legs = np.full(count, 1.0 / quarter)
    legs[quarter : 3 * quarter] *= -1
    return legs


def _step_of(at: int) -> int:
    return (at - MINUTES_FROM) * ZONES[2].per_hour // HOUR_MS


def _mean_range(steps: Floats) -> float:
    """Of the last whole bars, in logs; of a usual bar where there are none yet."""
    count = min(_BARS, len(steps) // _BAR_STEPS)
    if not count:
        return 0.01
    walked = np.cumsum(steps[len(steps) - count * _BAR_STEPS :]).reshape(count, _BAR_STEPS)
    ranges = walked.max(axis=1) - walked.min(axis=1)
    return float(np.cumsum(ranges)[-1]) / count


# -- what shows it


def _show(batch: Batch[Any], drawn: Sequence[int]) -> Batch[Any]:
    feed, name = batch.series.feed, batch.series.name
    if feed is Feed.FUNDING and name.endswith("/next"):
        return replace(batch, rows=[_negative(row) if _is_in(drawn, row.at, DAY_MS) else row for row in batch.rows])
    if feed is Feed.FEAR_GREED:
        return replace(batch, rows=_moods(batch.rows, drawn))
    if feed is Feed.WHALES and batch.series.row is TapeEvent:
        return replace(batch, rows=[_sell(row) for row in batch.rows])
    return batch


def _is_in(drawn: Sequence[int], at: int, span: int) -> bool:
    """Whether a moment lies in the first stretch of a day that was drawn, its end included."""
    place = bisect_left(drawn, at) - 1
    return place >= 0 and at - drawn[place] <= span


def _negative(row: Funding) -> Funding:
    return Funding(row.at, round(FUNDING * row.interval_hours / 8, 8), row.interval_hours)


def _sell(row: TapeEvent) -> TapeEvent:
    return row._replace(side=Side.SHORT) if row.at % DAY_MS <= SHOWN_MS else row


def _moods(rows: Sequence[Level], drawn: Sequence[int]) -> list[Level]:
    """Said anew at the start of every day: fear in those that were drawn, else what the day says."""
    said = {row.at: row for row in rows if row.at <= MINUTES_FROM}
    kept, fearful = sorted(rows), set(drawn)
    for start in range(MINUTES_FROM, END, DAY_MS):
        last = max(row for row in kept if row.at <= start)
        said[Millis(start)] = Level(Millis(start), FEAR if start in fearful else last.value)
    return [said[at] for at in sorted(said)]
