"""Vectors as an embedder gives them, compared two at a time."""

from __future__ import annotations

from zuno.trading.measure.similarity import list_cosines


def cosine(first: bytes, second: bytes) -> float:
    return list_cosines([first, second])[1][0]
