"""Reasons added up: each has a direction and a strength, and says in words what was seen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import copysign
from typing import Final

from zuno.trading.model.cycle import Signal, Stance

LEAST_LEAN: Final = 0.2
BAR_WEIGHT: Final = 0.35
VOLUME_WEIGHT: Final = 0.25
SIGNALS: Final[Mapping[int, Signal]] = {1: "BULLISH", 0: "NEUTRAL", -1: "BEARISH"}
MOST_CONFIDENT: Final = 0.9


@dataclass(frozen=True, slots=True)
class Reason:
    weight: float
    """Above zero: up."""
    said: str


def scale_weight(value: float, full: float, weight: float) -> float:
    """`weight` times value / `full`, capped at `weight`, with the sign of the value."""
    return copysign(min(abs(value) / full, 1.0) * weight, value)


def weigh_by_volume(backing: float, way: int) -> float:
    return round(way * (BAR_WEIGHT + VOLUME_WEIGHT * backing), 3)


def total_weight(reasons: Iterable[Reason]) -> float:
    return sum(reason.weight for reason in reasons)


def direction_of(reasons: Iterable[Reason]) -> Stance:
    lean = total_weight(reasons)
    if abs(lean) < LEAST_LEAN:
        return 0
    return 1 if lean > 0 else -1


def confidence(reasons: Sequence[Reason]) -> float:
    """How strong the leaning is, less where reasons disagree."""
    lean, all_ = total_weight(reasons), sum(abs(reason.weight) for reason in reasons)
    if not all_:
        return 0.0
    agreement = abs(lean) / all_
    return round(min(MOST_CONFIDENT, abs(lean) * (0.5 + 0.5 * agreement)), 2)


def confidence_toward(reasons: Sequence[Reason], way: Stance) -> float:
    """How strong the reasons are that way, less where others disagree; none where those outweigh."""
    return confidence(reasons) if way * total_weight(reasons) > 0 else 0.0


def summarise_reasons(reasons: Sequence[Reason], otherwise: str) -> str:
    """The strongest in words, first what goes with the sum, then what goes against it."""
    lean = total_weight(reasons)
    ordered = sorted(reasons, key=lambda reason: -abs(reason.weight))
    along = [reason.said for reason in ordered if reason.weight * lean > 0][:3]
    against = [reason.said for reason in ordered if reason.weight * lean <= 0][:2]
    if not along:
        return "; ".join(against) or otherwise
    return "; ".join(along) + (f"; against it: {'; '.join(against)}" if against else "")
