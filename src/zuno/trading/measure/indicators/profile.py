"""At which prices the volume was: 24 bins, the busiest, and the area around it that holds most."""

from __future__ import annotations

from math import fsum
from typing import Final

import numpy as np

from zuno.trading.measure.bars import Bars
from zuno.trading.model.chart import VolumeProfile

BINS: Final = 24
VALUE_AREA: Final = 0.70


def volume_profile(bars: Bars) -> VolumeProfile | None:
    """Of all these bars: each bar's volume lies evenly between its low and its high. None without volume."""
    total = fsum(bars.volume.tolist())
    if not total > 0:
        return None
    low, high = float(np.min(bars.low)), float(np.max(bars.high))
    if low == high:
        return VolumeProfile(low, high, (total, *(0.0,) * (BINS - 1)), low, low, low)
    edges = np.linspace(low, high, BINS + 1)
    volumes = _volume_by_bin(bars, edges)
    first, last = _value_area(volumes)
    busiest = int(np.argmax(volumes))
    middle = float(edges[busiest] + edges[busiest + 1]) / 2
    return VolumeProfile(low, high, tuple(volumes), middle, float(edges[first]), float(edges[last + 1]))


def _volume_by_bin(bars: Bars, edges: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    """Volume of each bin: by how much of a bar's height lies in it; a bar without height goes to the bin it is in."""
    height = bars.high - bars.low
    tall = height > 0
    low, high, density = bars.low[tall], bars.high[tall], bars.volume[tall] / height[tall]
    first = np.searchsorted(edges[1:-1], low, side="right")
    count = np.maximum(np.searchsorted(edges[1:-1], high, side="left") - first + 1, 1)
    # Each bar once for each bin it reaches into; a bin adds up its own in their order.
    row = np.repeat(np.arange(len(low)), count)
    place = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    covered = np.minimum(high[row], edges[place + 1]) - np.maximum(low[row], edges[place])
    volumes = np.bincount(place, density[row] * np.maximum(covered, 0.0), BINS)
    places = np.clip(np.searchsorted(edges, bars.low[~tall], side="right") - 1, 0, BINS - 1)
    np.add.at(volumes, places, bars.volume[~tall])
    return [float(volume) for volume in volumes]


def _value_area(volumes: list[float]) -> tuple[int, int]:
    first = last = volumes.index(max(volumes))
    held, wanted = volumes[first], VALUE_AREA * sum(volumes)
    while held < wanted and (first > 0 or last < len(volumes) - 1):
        below = volumes[first - 1] if first > 0 else -1.0
        above = volumes[last + 1] if last < len(volumes) - 1 else -1.0
        if above >= below:
            last += 1
        else:
            first -= 1
        held += max(above, below)
    return first, last
