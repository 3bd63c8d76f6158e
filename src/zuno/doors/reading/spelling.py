"""Slips of the keyboard: a word is mended when exactly one known meaning lies near enough."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final

LONG_WORD: Final = 8
"""From here on two slips are forgiven, below it one; under four letters none."""
SHORT_WORD: Final = 4
LONGEST: Final = 24


@lru_cache(maxsize=65_536)
def slips(word: str, other: str) -> int:
    """Letters to insert, drop, change or swap with their neighbour to turn one word into the other."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for row, letter in enumerate(word, 1):
        line = [row]
        for column, wanted in enumerate(other, 1):
            cost = 0 if letter == wanted else 1
            best = min(above[column] + 1, line[column - 1] + 1, above[column - 1] + cost)
            if row > 1 and column > 1 and letter == other[column - 2] and word[row - 2] == wanted:
                best = min(best, before[column - 2] + 1)
            line.append(best)
        before, above = above, line
    return above[-1]


def nearest(word: str, known: Mapping[str, str]) -> str | None:
    """The known word a slip away; None where none is near, or where near ones mean different things."""
    if not SHORT_WORD <= len(word) <= LONGEST:
        return None
    most = 2 if len(word) >= LONG_WORD else 1
    for distance in range(1, most + 1):
        near = [other for other in known if abs(len(other) - len(word)) <= distance and slips(word, other) == distance]
        near = [other for other in near if len(other) >= SHORT_WORD - 1 and (distance == 1 or len(other) >= LONG_WORD)]
        swapped = [other for other in near if sorted(other) == sorted(word)]
        near = swapped or near  # two letters in the wrong order say more than a letter too many
        if near:
            return near[0] if len({known[other] for other in near}) == 1 else None
    return None


def one_slip_from(word: str, words: Collection[str]) -> str | None:
    """The one of a few words that must not be guessed which this may be meant for."""
    if not SHORT_WORD - 1 <= len(word) <= LONGEST:
        return None
    near = (other for other in words if abs(len(other) - len(word)) <= 1 and slips(word, other) == 1)
    return next(near, None)
