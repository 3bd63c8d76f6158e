"""The Place that shell phrases are read in: the demo world on `sim`, with nothing shown before."""

from __future__ import annotations

from zuno.doors.reading.intents import Reading
from zuno.doors.reading.reader import read
from zuno.doors.reading.seen import ShownPosition, asks_for_list, find_position

POSITIONS = (ShownPosition("sim", "1", ("WETH", "USDC")), ShownPosition("sim", "2", ("ETH", "USDC")))
"""`zuno lp positions` of a fresh home lists these, in this order; its wallet holds ETH, WETH and USDC."""


def read_in_place(line: str) -> Reading:
    """As `zuno parse LINE` reads it."""
    reading = read(line)
    return find_position(reading, POSITIONS) if asks_for_list(reading) else reading
