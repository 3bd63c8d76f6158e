"""How an agent of the trading desk is heard: what it said, and who spoke for it at what price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from zuno.agents.question import Spoken, T
from zuno.messages.cycle import Voice

V = TypeVar("V")
WHY_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Heard(Generic[V]):
    """A word for the record, and whose it was."""

    value: V
    voice: Voice


def voice_of(role: str, spoken: Spoken[T]) -> Voice:
    """Who spoke for the role. Dollars are unknown as soon as those of one attempt are."""
    costs = [attempt.usd for attempt in spoken.attempts]
    known = [cost for cost in costs if cost is not None]
    return Voice(
        role=role,
        source=spoken.source,
        why=spoken.why[:WHY_CHARS],
        model=spoken.model,
        tokens=sum(attempt.tokens_in + attempt.tokens_out for attempt in spoken.attempts),
        usd=float(sum(known)) if len(known) == len(costs) else None,
    )
