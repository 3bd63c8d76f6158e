"""A synthetic market in which two setups recur, to study whether memory helps.

Every eight hours a slot begins. In some slots, drawn at random, the book leans far to one side for an hour and large
takers with it, always the same side in one market, which gives the desk something to trade. Funding, fear and greed,
open interest, long/short ratio and basis tell the two setups apart. With consequences, the price then goes against that
side after the first setup and with it after the second, further than a usual stop or target. Without, the same signs
mean nothing: the path has no edge.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from zuno.adapters.venues.synthetic.path import END, MINUTES_FROM, ZONES, Path, RandomStream, draw_paths
from zuno.adapters.venues.synthetic.world import draw_batches
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Floats
from zuno.trading.model.market import HOUR_MS, Book, Feed, Level, Side, TapeEvent
from zuno.trading.ports.series import Batch, Origin

Setup: TypeAlias = Literal["failing", "paying", "ordinary"]
"""What follows in the market with consequences; `ordinary`: no signs, and nothing follows."""
SETUPS: Final[tuple[Setup, ...]] = ("failing", "paying", "ordinary")
SLOT_MS: Final = 8 * HOUR_MS
BLOCK: Final = 5
"""Slots in which each setup comes once, so that the price has no way to go in the long run."""
SHOWN_MS: Final = HOUR_MS
"""Of a slot, in which its signs are there; then the price moves."""
MOVE_MS: Final = 5 * HOUR_MS
MOVE_ATR: Final = 3.0
"""How far the price goes, in mean ranges of four hours before it."""
LEFT: Final = 0.5
"""Of the walk's own steps while it moves."""
LEANING: Final = 12.0
"""How many times heavier one side of the book becomes."""
_BAR_STEPS: Final = 4 * ZONES[2].per_hour
_BARS: Final = 14


@dataclass(frozen=True, slots=True)
class SetupSignals:
    funding: float
    """Predicted, as if for eight hours: not as much as would keep the desk from trading."""
    mood: float
    interest: float
    longs: float
    basis: float
    """Times what it would have been; of the basis a share of the price that is added."""


SETUP_SIGNALS: Final[Mapping[Setup, SetupSignals]] = {
    "failing": SetupSignals(-0.00024, 12.0, 1.08, 2.5, -0.002),
    "paying": SetupSignals(0.00024, 85.0, 0.92, 0.4, 0.002),
}


def planted_origin(seed: int, *, consequences: bool) -> Origin:
    return Origin(synthetic=True, label=f"SYNTHETIC seed {seed} {'planted setups' if consequences else 'empty signs'}")


def planted_slots(seed: int) -> tuple[tuple[Millis, Setup], ...]:
    """When the slots that are looked at begin, and their setups: of every five slots, one of each."""
    draw = RandomStream(seed, "planted")
    slots: list[tuple[Millis, Setup]] = []
    for block in range(MINUTES_FROM, END - BLOCK * SLOT_MS + 1, BLOCK * SLOT_MS):
        places = draw.permutation(BLOCK).tolist()
        slots += sorted((Millis(block + place * SLOT_MS), setup) for place, setup in zip(places, SETUPS, strict=False))
    return tuple(slots)


def planted_side(seed: int) -> Side:
    """What the desk is given to trade in the setups of a market."""
    return Side.LONG if seed % 2 else Side.SHORT


def planted_batches(seed: int, *, consequences: bool) -> list[Batch[Any]]:
    slots = planted_slots(seed)
    walks = draw_paths(seed)
    if consequences:
        walks = {symbol: move_path(path, slots, planted_side(seed)) for symbol, path in walks.items()}
    signs = _SignalPlanter(slots, planted_side(seed))
    return [signs.show(batch) for batch in draw_batches(seed, walks)]


# -- what happens


def move_path(path: Path, slots: Sequence[tuple[Millis, Setup]], side: Side) -> Path:
    """With the side after a setup that pays, against it after one that fails."""
    steps = path.steps[2].reshape(-1).copy()
    with_side = side.sign
    for start, setup in slots:
        if setup == "ordinary":
            continue
        begin, end = (step_at(start + ahead) for ahead in (SHOWN_MS, SHOWN_MS + MOVE_MS))
        far = MOVE_ATR * mean_range(steps[:begin]) * (with_side if setup == "paying" else -with_side)
        steps[begin:end] = LEFT * steps[begin:end] + far / (end - begin)
    return replace(path, steps=(*path.steps[:2], steps.reshape(path.steps[2].shape)))


def step_at(at: int) -> int:
    return (at - MINUTES_FROM) * ZONES[2].per_hour // HOUR_MS


def mean_range(steps: Floats) -> float:
    """Of the last whole bars, in logs; of a usual bar where there are none yet."""
    count = min(_BARS, len(steps) // _BAR_STEPS)
    if not count:
        return 0.01
    walked = np.cumsum(steps[len(steps) - count * _BAR_STEPS :]).reshape(count, _BAR_STEPS)
    ranges = walked.max(axis=1) - walked.min(axis=1)
    return float(np.cumsum(ranges)[-1]) / count


# -- what shows it


class _SignalPlanter:
    def __init__(self, slots: Sequence[tuple[Millis, Setup]], side: Side) -> None:
        self._slots = dict(slots)
        self._side = side

    def show(self, batch: Batch[Any]) -> Batch[Any]:
        alter = partial(self._alter, batch)
        match batch.series.feed:
            case Feed.FUNDING if batch.series.name.endswith("/next"):
                return alter(lambda row, its: row._replace(rate=round(its.funding * row.interval_hours / 8, 8)))
            case Feed.OPEN_INTEREST:
                return alter(lambda row, its: row._replace(value=round(row.value * its.interest, 3)))
            case Feed.LONG_SHORT:
                return alter(lambda row, its: row._replace(value=round(row.value * its.longs, 4)))
            case Feed.BASIS:
                return alter(lambda row, its: row._replace(spot=round(row.mark / (1 + its.basis), 2)))
            case Feed.BOOK:
                return self._alter(self._keep_looks(batch), lambda book, _: self._lean(book))
            case Feed.OPTIONS:
                return self._keep_looks(batch)
            case Feed.WHALES if batch.series.row is TapeEvent:
                return alter(lambda event, _: event._replace(side=self._side))
            case Feed.FEAR_GREED:
                return replace(batch, rows=self._moods(batch.rows))
        return batch

    def _lean(self, book: Book) -> Book:
        """Bids become heavier where it is to be bought, else asks."""
        heavy = book.bids if self._side is Side.LONG else book.asks
        enlarged = tuple(quote._replace(size=round(LEANING * quote.size, 3)) for quote in heavy)
        return replace(book, bids=enlarged) if self._side is Side.LONG else replace(book, asks=enlarged)

    def _alter(self, batch: Batch[Any], change: Callable[[Any, SetupSignals], Any]) -> Batch[Any]:
        signs = ((row, SETUP_SIGNALS.get(self._setup_at(row.at) or "ordinary")) for row in batch.rows)
        return replace(batch, rows=[row if its is None else change(row, its) for row, its in signs])

    def _setup_at(self, at: int) -> Setup | None:
        """In the hour before a slot is looked at, its end included."""
        ahead = (at - MINUTES_FROM - 1) % SLOT_MS + 1
        return self._slots.get(Millis(at - ahead)) if ahead <= SHOWN_MS else None

    def _keep_looks(self, batch: Batch[Any]) -> Batch[Any]:
        """A cycle reads only the newest book and option chain: the others would be stored for nothing."""
        return replace(batch, rows=[row for row in batch.rows if self._setup_at(row.at) is not None])

    def _moods(self, rows: Sequence[Level]) -> list[Level]:
        """A new value at the start of a slot with signs, and the old one again once its signs are gone."""
        levels = {row.at: row for row in rows}
        kept = sorted(rows)
        for start, setup in self._slots.items():
            if setup != "ordinary":
                last = max(row for row in kept if row.at <= start)
                levels[start] = Level(start, SETUP_SIGNALS[setup].mood)
                levels.setdefault(after := Millis(start + SHOWN_MS + 1), Level(after, last.value))
        return [levels[at] for at in sorted(levels)]
