"""The rule of `trend` as one would write it down: day by day, market by market, each from its closes alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, sqrt


def weigh_row_by_row(closes: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Closes of each market, oldest first, ending on the same day; targets of every day from the longest's first."""
    longest = max(map(len, closes.values()))
    held = dict.fromkeys(closes, 0.0)
    weights: dict[str, list[float]] = {name: [] for name in closes}
    for day in range(longest):
        known = {name: day + 1 - (longest - len(series)) for name, series in closes.items()}
        listed = [name for name in closes if known[name] >= 121]
        for name, series in closes.items():
            wish = 0.0
            if name in listed:
                last = known[name] - 1
                up = sum(series[last] > series[last - days] for days in (10, 20, 30, 60, 90, 120))
                moves = [log(series[place] / series[place - 1]) for place in range(last - 29, last + 1)]
                mean = sum(moves) / 30
                deviation = sqrt(sum((move - mean) ** 2 for move in moves) / 29) * sqrt(365)
                wish = min(1.0, 0.30 * (up / 6) / deviation) / len(listed)
            if wish == 0.0 or abs(wish - held[name]) > 0.10 / max(1, len(listed)):
                held[name] = wish
            weights[name].append(held[name])
    return weights
