"""The stores of the market's past: one for what was invented, one for what was recorded, never both in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zuno.ports.series import Origin, SeriesStore, Written
from zuno.settings import Settings

if TYPE_CHECKING:
    from zuno.adapters.series.sqlite import SqliteSeries

INVENTED: Final = Origin(True, "SYNTHETIC")
RECORDED: Final = Origin(False, "recorded")


class Recordings:
    """Both stores of a home, opened when first asked for."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened: dict[str, SqliteSeries] = {}

    def chosen(self) -> SqliteSeries:
        """The one `ZUNO_RECORDING` names; what is live is our own, whatever that says."""
        invented = self._settings.market == "recorded" and self._settings.recording == "synthetic"
        return self.synthetic() if invented else self.own()

    def synthetic(self) -> SqliteSeries:
        return self._store("synthetic", INVENTED)

    def own(self) -> SqliteSeries:
        return self._store("own", RECORDED)

    async def invent(self, seed: int) -> tuple[SeriesStore, Written]:
        """A crash in between leaves the store empty, never half of a market."""
        from zuno.adapters.market.synthetic.world import fill, origin

        store = self.synthetic()
        await store.renew(origin(seed))
        return store, await fill(store, seed)

    async def close(self) -> None:
        for store in self._opened.values():
            await store.close()
        self._opened.clear()

    def _store(self, name: str, origin: Origin) -> SqliteSeries:
        from zuno.adapters.series.sqlite import SqliteSeries

        if name not in self._opened:
            self._opened[name] = SqliteSeries(self._settings.home / "market" / name, origin)
        return self._opened[name]
