"""One timeframe of a symbol's own bars, measured; and what was measured before, to be used again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import LOOKBACK, Bars, bars
from zuno.trading.measure.indicators.all import (
    IndicatorValues,
    compute_indicators,
    drop_invalid_bars,
    take_last_indicators,
    take_newest_valid_bars,
)
from zuno.trading.measure.structure.all import Structure, measure_structure_of_window
from zuno.trading.model.bundle import same_rows
from zuno.trading.model.market import Candle, Symbol, Timeframe

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Frame:
    timeframe: Timeframe
    readings: IndicatorValues
    structure: Structure


def measure_frame(given: Bars, shoulder: int) -> Frame | None:
    """Of the last `LOOKBACK` sound bars; None when there is none."""
    clean = drop_invalid_bars(given)
    window = clean.last(LOOKBACK)
    if not len(window):
        return None
    indicators = compute_indicators(window)
    seen = take_last_indicators(window, indicators, unsound=len(given) - len(clean))
    return Frame(given.timeframe, seen, measure_structure_of_window(window, indicators, shoulder))


class FrameCache:
    """The newest bars and frame of each timeframe: a desk measures every quarter of an hour, and most bars close
    seldom. What is kept is used again where it would be measured of the very same candles."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[Sequence[Candle], Any]] = {}

    def read_bars(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle]) -> Bars:
        return self._read((symbol, timeframe), rows, lambda: bars(timeframe, rows))

    def read_frame(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle], shoulder: int) -> Frame | None:
        """With pivots of that shoulder; None where no bar can be believed."""
        return self._read(
            (symbol, timeframe, shoulder),
            rows,
            lambda: measure_frame(self.read_bars(symbol, timeframe, rows), shoulder),
        )

    def read_newest(self, symbol: Symbol, timeframe: Timeframe, rows: Sequence[Candle], as_of: Millis) -> Bars:
        """The last `LOOKBACK` sound bars that had closed by then."""
        moment, window = self._read(
            (symbol, timeframe, "newest"), rows, lambda: (as_of, take_newest_valid_bars(timeframe, rows, as_of))
        )
        return window if moment == as_of else take_newest_valid_bars(timeframe, rows, as_of)

    def _read(self, name: tuple[object, ...], rows: Sequence[Candle], measure: Callable[[], T]) -> T:
        """What was measured under that name, or is now."""
        kept = self._kept.get(name)
        if kept is not None and same_rows(kept[0], rows):
            found: T = kept[1]
            return found
        measured = measure()
        self._kept[name] = (rows, measured)
        return measured
