"""What a cycle measures of one symbol's market, moment after moment of a recorded past."""

from __future__ import annotations

from collections.abc import Sequence

from zuno.kernel.units import Millis
from zuno.trading.agents.case import Case, build_case
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.measure.frames import FrameCache
from zuno.trading.model.bundle import Bundle, Slot
from zuno.trading.model.market import Mode, Symbol
from zuno.trading.ports.series import SeriesStore


class MarketFigures:
    """Figures of one symbol: those of a single cycle, bit by bit."""

    def __init__(self, store: SeriesStore, symbol: Symbol, mode: Mode = Mode.SWING) -> None:
        self.store = store
        self.symbol = symbol
        self.mode = mode
        self._frames = FrameCache()

    async def load(self, moments: Sequence[Millis]) -> None:
        """Prepare for these moments, in ascending order."""

    async def measure(self, at: Millis, slots: Sequence[Slot]) -> tuple[Bundle, Case]:
        """What a cycle would freeze then with these slots, and what it would argue about."""
        bundle = await build_bundle(self.store, self.symbol, self.mode, at, slots)
        return bundle, build_case(bundle, self._frames)
