"""What a cycle measures of one symbol's market, for all moments of a recorded past."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE
from zuno.markets.market import Symbol
from zuno.trading.agents.case import Case, MarketCase, build_case, measure_market
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.measure.frames import FrameCache, PreparedFrames
from zuno.trading.model.bundle import Bundle, Slot, add_slots
from zuno.trading.model.market import Mode, Timeframe, candles
from zuno.trading.ports.series import SeriesStore

AT_ONCE: Final = 256


@dataclass(slots=True)
class _MomentFigures:
    bundle: Bundle
    """Of the market alone."""
    frames: FrameCache
    market: MarketCase | None = field(default=None)


class MarketFigures:
    """Figures of one symbol, bit by bit those of a single cycle; backtests that ask by turns share the market's."""

    def __init__(self, store: SeriesStore, symbol: Symbol, mode: Mode = Mode.SWING) -> None:
        self.store = store
        self.symbol = symbol
        self.mode = mode
        self._moments: tuple[Millis, ...] = ()
        self._places: dict[Millis, int] = {}
        self._known: dict[Millis, _MomentFigures] = {}
        self._frames = FrameCache()
        self._preparing = asyncio.Lock()
        self._origin: str | None = None

    @property
    def origin(self) -> str:
        """Label of the recorded market; read once."""
        self._origin = self._origin or self.store.origin.label
        return self._origin

    async def load(self, moments: Sequence[Millis]) -> None:
        """Which moments will be asked for, ascending: they are measured by the hundreds, any other by itself."""
        self._moments = tuple(moments)
        self._places = {at: place for place, at in enumerate(self._moments)}
        self._known = {}

    async def measure(self, at: Millis, slots: Sequence[Slot]) -> tuple[Bundle, Case]:
        """The bundle and the case of a cycle at that moment with these slots."""
        if at not in self._places:
            bundle = await build_bundle(self.store, self.symbol, self.mode, at, slots)
            return bundle, build_case(bundle, self._frames)
        async with self._preparing:
            if at not in self._known:
                await self._prepare(self._places[at])
            known = self._known[at]
        if known.market is None:
            known.market = measure_market(known.bundle, known.frames)
        bundle = add_slots(known.bundle, slots)
        return bundle, build_case(bundle, known.frames, known.market)

    async def _prepare(self, first: int) -> None:
        """The moments from that one on; those before are not asked for again."""
        moments = self._moments[first : first + AT_ONCE]
        bundles = [await build_bundle(self.store, self.symbol, self.mode, at) for at in moments]
        frames = PreparedFrames()
        for timeframe in sorted({*self.mode.timeframes, Timeframe.H1, Timeframe.D1}):
            series = candles(BINANCE, self.symbol, timeframe)
            frames.prepare(timeframe, self.mode.shoulder, [bundle.rows(series) for bundle in bundles])
        self._known = {at: _MomentFigures(bundle, frames) for at, bundle in zip(moments, bundles, strict=True)}
