"""Turning the description of a chart into an image."""

from typing import Protocol

from zuno.trading.model.chart import EquityChart, Picture, ReliabilityChart


class Painter(Protocol):
    """Promises: everything the picture describes is painted and nothing else; equal pictures give equal bytes, in any
    order, at the same time and in another process; any picture can be painted, however little it holds; nothing is
    written anywhere and nothing outside is read."""

    @property
    def media_type(self) -> str:
        """What the bytes are: `image/png`."""

    async def paint(self, picture: Picture) -> bytes: ...
    async def paint_equity(self, chart: EquityChart) -> bytes: ...
    async def paint_reliability(self, chart: ReliabilityChart) -> bytes: ...
