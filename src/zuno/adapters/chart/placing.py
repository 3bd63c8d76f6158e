"""Where labels go when there are more of them than room: in order, apart from each other, near to where they belong."""

from __future__ import annotations

from collections.abc import Sequence


def spread(wanted: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Places for labels that would like to stand at `wanted`, in the same order.

    They keep their order, stay in [low, high] and no two are nearer than `apart`; where that cannot be, they are as far
    apart as the room allows. Labels that push each other share the way: each heap lies around the mean of its wishes.
    """
    if not wanted:
        return []
    gap = min(apart, (high - low) / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    heaps: list[tuple[float, int]] = []  # the sum of what its labels would like its first place to be; how many
    for place in order:
        sum_, count = wanted[place], 1
        while heaps and _start(*heaps[-1], gap, low, high) + heaps[-1][1] * gap > _start(sum_, count, gap, low, high):
            before, many = heaps.pop()
            sum_, count = before + sum_ - count * many * gap, many + count
        heaps.append((sum_, count))
    places = [
        start + step * gap
        for sum_, count in heaps
        for start in (_start(sum_, count, gap, low, high),)
        for step in range(count)
    ]
    found = [0.0] * len(wanted)
    for place, at in zip(order, places, strict=True):
        found[place] = at
    return found


def _start(sum_: float, count: int, gap: float, low: float, high: float) -> float:
    return max(low, min(sum_ / count, high - (count - 1) * gap))
