"""The market data stores: one for synthetic data, one for recordings, never mixed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from zuno.kernel.errors import Broken
from zuno.settings import Settings

if TYPE_CHECKING:
    from zuno.adapters.series.sqlite import SqliteSeries
    from zuno.markets.market import Symbol
    from zuno.trading.ports.series import Batch, Origin, RenewedStore, SeriesStore


class Recordings:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened: dict[str, SqliteSeries] = {}
        self._inventing: asyncio.Task[SeriesStore] | None = None

    def selected_store(self) -> SqliteSeries:
        return self.own() if self.reads_own else self.synthetic()

    @cached_property
    def reads_own(self) -> bool:
        """By `ZUNO_RECORDING`, own in a live market. Decided once, so that a running desk stays in its market."""
        chosen = self._settings.recording
        return self._settings.market == "live" or chosen == "own" or (chosen == "auto" and self.own().has_imported())

    def describe_choice(self) -> str:
        imported = "rows were imported" if self.own().has_imported() else "nothing was imported"
        if self.own().has_imported() and not self.reads_own and self._settings.recording == "auto":
            imported += " since this process began; it reads them when it is started again"
        return f"ZUNO_MARKET={self._settings.market}, ZUNO_RECORDING={self._settings.recording}, {imported}"

    def synthetic(self) -> SqliteSeries:
        return self._store("synthetic")

    def own(self) -> SqliteSeries:
        return self._store("own")

    async def invent(self, seed: int, symbols: Sequence[Symbol]) -> RenewedStore:
        """Replace the synthetic market by another; a crash leaves one of them whole."""
        from zuno.adapters.venues.synthetic.world import build_batches, describe_origin

        return await self.replace_synthetic(
            describe_origin(seed), await asyncio.to_thread(build_batches, seed, symbols)
        )

    async def replace_synthetic(self, origin: Origin, rows: Sequence[Batch[Any]]) -> RenewedStore:
        """A damaged store is deleted first: a seed makes it anew."""
        try:
            return await self.synthetic().renew(origin, rows)
        except Broken:
            await self._opened.pop("synthetic").close()
            shutil.rmtree(self._settings.home / "market" / "synthetic", ignore_errors=True)
            return await self.synthetic().renew(origin, rows)

    async def invent_first(self, seed: int) -> SeriesStore:
        """Create the synthetic market unless there is one. The work goes on when a caller stops waiting."""
        if self._inventing is None or self._inventing.done():
            self._inventing = asyncio.create_task(self._begin_synthetic(seed))
        return await asyncio.shield(self._inventing)

    async def _begin_synthetic(self, seed: int) -> SeriesStore:
        from zuno.adapters.venues.synthetic.world import build_batches, describe_origin

        store = self.synthetic()
        if not await store.spans():
            await store.begin(
                describe_origin(seed), await asyncio.to_thread(build_batches, seed, self._settings.markets)
            )
        return store

    async def close(self) -> None:
        if self._inventing is not None and not self._inventing.done():
            self._inventing.cancel()
            await asyncio.wait([self._inventing])
        for store in self._opened.values():
            await store.close()
        self._opened.clear()

    def _store(self, name: str) -> SqliteSeries:
        from zuno.adapters.series.sqlite import SqliteSeries
        from zuno.trading.ports.series import INVENTED, RECORDED

        if name not in self._opened:
            origin = RECORDED if name == "own" else INVENTED
            self._opened[name] = SqliteSeries(self._settings.home / "market" / name, origin)
        return self._opened[name]
