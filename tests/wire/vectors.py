"""Vectors as an embedder gives them, compared two at a time."""

from __future__ import annotations

from zuno.trading.measure.similarity import ONE, measure_all_cosines


def cosine(first: bytes, second: bytes) -> float:
    return int(measure_all_cosines([first, second])[0, 1]) / ONE
