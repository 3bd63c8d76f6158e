"""Which ticks are initialised, in words of 256: a swap must pause at a word's edge exactly where v4 does.

Every pause rounds the amounts once more, so a quicker search would be wrong by some wei.
"""

from __future__ import annotations

from collections.abc import Iterable

from zuno.kernel.errors import TickMisaligned

Words = dict[int, int]


def check_aligned(tick: int, tick_spacing: int) -> None:
    """Refuse a tick that is not a multiple of the spacing."""
    if tick % tick_spacing:
        raise TickMisaligned(f"tick {tick} is not a multiple of {tick_spacing}")


def flip(words: Words, tick: int, tick_spacing: int) -> None:
    """Turn one aligned tick on or off; an empty word takes no room."""
    compressed = tick // tick_spacing
    position = compressed >> 8
    word = words.get(position, 0) ^ 1 << (compressed & 0xFF)
    if word:
        words[position] = word
    else:
        del words[position]


def from_ticks(ticks: Iterable[int], tick_spacing: int) -> Words:
    """The bitmap of these initialised ticks."""
    words: Words = {}
    for tick in ticks:
        check_aligned(tick, tick_spacing)
        flip(words, tick, tick_spacing)
    return words


def next_tick_at_or_below(words: Words, tick: int, tick_spacing: int) -> tuple[int, bool]:
    """Where a falling price pauses next, and whether that tick is initialised."""
    compressed = tick // tick_spacing
    position = compressed >> 8
    word = words.get(position)
    if word is not None:
        candidates = word & ((2 << (compressed & 0xFF)) - 1)
        if candidates:
            return ((position << 8) + candidates.bit_length() - 1) * tick_spacing, True
    return (position << 8) * tick_spacing, False


def next_tick_above(words: Words, tick: int, tick_spacing: int) -> tuple[int, bool]:
    """Where a rising price pauses next, and whether that tick is initialised."""
    compressed = tick // tick_spacing + 1
    position = compressed >> 8
    word = words.get(position)
    if word is not None:
        candidates = word >> (compressed & 0xFF)
        if candidates:
            return (compressed + (candidates & -candidates).bit_length() - 1) * tick_spacing, True
    return (position << 8 | 0xFF) * tick_spacing, False
