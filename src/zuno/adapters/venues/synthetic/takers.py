"""Who takes in the synthetic market: how much of each bar's volume was bought by takers.

Takers run with the bar they trade in, and behind the last hour and the last third of a day; and they lean one way for
a day or so for reasons of their own, which have nothing to do with the price. Each of these is cut to the length of the
bar it is told in: a day that is added up from minutes leans as far as one that was walked whole. All of it looks back
alone, and the price is symmetric given its past: how takers lean says nothing of where it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from zuno.adapters.venues.synthetic.path import HOURS, ZONES, Path, RandomStream, decay_noise, hours_to_bars
from zuno.trading.measure.bars import Floats
from zuno.trading.measure.portable import exp, tanh
from zuno.trading.model.market import HOUR_MS, MINUTE_MS

BEHIND: Final = ((HOUR_MS, 0.021), (8 * HOUR_MS, 0.015))
"""How long takers run behind a move, and how far: a share of the volume, one deviation."""
OWN_MS, OWN = 24 * HOUR_MS, 0.009
"""The same of what they do for reasons of their own."""
WITH, NOISE = 0.11, 0.03
"""How far a minute's takers go with the minute itself, and how far they scatter."""
_FARTHEST: Final = 5.0
"""Deviations of a bar that are still followed: a jump is not."""


def taker_buy_shares(seed: int, path: Path, surprises: Sequence[Floats]) -> list[Floats]:
    """The share of each bar's volume that takers bought, zone by zone, from how far it went against what was usual."""
    shares = []
    behind = [_behind(surprises, memory) for memory, _ in BEHIND]
    own = _own(seed, path)
    for place, (zone, went) in enumerate(zip(ZONES, surprises, strict=True)):
        noise = RandomStream(seed, f"takers {zone.bar} {path.symbol}").normal(size=zone.bars)
        short = np.sqrt(MINUTE_MS / zone.bar)
        leaning = sum(far * parts[place] for (_, far), parts in zip(BEHIND, behind, strict=True))
        share = 0.5 + leaning + hours_to_bars(zone, own) + short * (WITH * tanh(went) + NOISE * noise)
        shares.append(np.clip(share, 0.05, 0.95))
    return shares


def _behind(surprises: Sequence[Floats], memory: int) -> list[Floats]:
    """What is left of all moves so far, each bar the mean over itself; of deviation one where bars are short."""
    found, last = [], 0.0
    for zone, went in zip(ZONES, surprises, strict=True):
        span = zone.bar / memory
        keep = float(exp(-span))
        left = decay_noise(np.clip(went, -_FARTHEST, _FARTHEST) * np.sqrt(1 - keep**2), keep, start=last)
        last = float(left[-1])
        found.append(left * np.sqrt(2 * (span - 1 + keep)) / span)
    return found


def _own(seed: int, path: Path) -> Floats:
    """Hour by hour."""
    keep = float(exp(-HOUR_MS / OWN_MS))
    noise = RandomStream(seed, f"takers {path.symbol}").normal(size=HOURS)
    return decay_noise(noise, keep) * OWN * float(np.sqrt(1 - keep**2))
