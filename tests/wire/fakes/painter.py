"""A painter for tests and dry runs: its image is the name of what it would have painted."""

from __future__ import annotations

from dataclasses import asdict

from zuno.kernel.canonical import canonical, digest
from zuno.trading.model.chart import EquityChart, Picture, ReliabilityChart


class DigestPainter:
    """Keeps what it was given, too."""

    media_type = "text/plain"

    def __init__(self) -> None:
        self.painted: list[Picture] = []

    async def paint(self, picture: Picture) -> bytes:
        self.painted.append(picture)
        return digest(canonical(asdict(picture))).encode()

    async def paint_equity(self, chart: EquityChart) -> bytes:
        return digest(canonical(asdict(chart))).encode()

    async def paint_reliability(self, chart: ReliabilityChart) -> bytes:
        return digest(canonical(asdict(chart))).encode()
