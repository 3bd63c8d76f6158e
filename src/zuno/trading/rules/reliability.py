"""How far claimed probabilities can be relied on: Brier score, skill, calibration error and bins over scored claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Final, Protocol

from zuno.trading.measure.portable import round_digits
from zuno.trading.model.cycle import JudgeKind, Regime
from zuno.trading.model.memory import AgentClaim

LEAST_OUTCOMES: Final = 50
"""Below this many no verdict is given: chance alone could explain what is seen."""
BINS: Final = 10
EVERY_REGIME: Final = "all"
_SCALE: Final = 10**6
"""Claims are put into bins as whole millionths: no last bit moves one."""


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    low: float
    high: float
    n: int
    claimed: float
    """Mean of what was claimed."""
    came: float
    """Mean of what came."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """Of one agent, by who spoke for it and in which regime."""

    role: str
    source: JudgeKind
    regime: str
    n: int
    brier: float
    """Mean squared distance of claim and outcome; 0 is best."""
    skill: float | None
    """1 − brier / that of the fair rate: above zero, the claims said more than the distances alone. None where the
    fair rate leaves nothing to explain."""
    ece: float
    """Mean distance of claimed and come, bin by bin."""
    bins: tuple[ReliabilityBin, ...]

    @property
    def enough(self) -> bool:
        return self.n >= LEAST_OUTCOMES


class ClaimedTrade(Protocol):
    """A closed trade and what agents had claimed of it."""

    @property
    def claims(self) -> Sequence[AgentClaim]: ...

    @property
    def regime(self) -> Regime | None: ...


def measure_reliability(cases: Iterable[ClaimedTrade]) -> tuple[Reliability, ...]:
    """Each agent, first over all regimes, then in each that occurred."""
    groups: dict[tuple[str, JudgeKind, str], list[AgentClaim]] = {}
    for case in cases:
        for claim in case.claims:
            for regime in (EVERY_REGIME, *([] if case.regime is None else [case.regime.value])):
                groups.setdefault((claim.role, claim.source, regime), []).append(claim)
    order = [EVERY_REGIME, *Regime]
    keys = sorted(groups, key=lambda key: (key[0] != "judge", key[0], key[1], order.index(key[2])))
    return tuple(_measure(*key, groups[key]) for key in keys)


def _measure(role: str, source: JudgeKind, regime: str, claims: Sequence[AgentClaim]) -> Reliability:
    n = len(claims)
    brier = fsum((claim.claimed - claim.outcome) ** 2 for claim in claims) / n
    fair = fsum((claim.fair - claim.outcome) ** 2 for claim in claims) / n
    bins = _fill_bins(claims)
    return Reliability(
        role=role,
        source=source,
        regime=regime,
        n=n,
        brier=round_digits(brier),
        skill=None if fair == 0 else round_digits(1 - brier / fair),
        ece=round_digits(fsum(each.n * abs(each.claimed - each.came) for each in bins) / n),
        bins=bins,
    )


def _fill_bins(claims: Sequence[AgentClaim]) -> tuple[ReliabilityBin, ...]:
    """Those that hold any; the last one holds certainty."""
    held: dict[int, list[AgentClaim]] = {}
    for claim in claims:
        place = min(BINS - 1, round(claim.claimed * _SCALE) * BINS // _SCALE)
        held.setdefault(place, []).append(claim)
    return tuple(
        ReliabilityBin(
            low=place / BINS,
            high=(place + 1) / BINS,
            n=len(found),
            claimed=round_digits(fsum(claim.claimed for claim in found) / len(found)),
            came=round_digits(fsum(claim.outcome for claim in found) / len(found)),
        )
        for place, found in sorted(held.items())
    )
