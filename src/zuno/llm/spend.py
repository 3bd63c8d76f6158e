"""Model spend in tokens and dollars, and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Spend:
    """Tokens and dollars together; negative when something is given back."""

    tokens: int = 0
    usd: Decimal = Decimal(0)

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: Spend) -> Spend:
        return Spend(self.tokens - other.tokens, self.usd - other.usd)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that may be spent; None is no limit."""

    tokens: int | None = None
    usd: Decimal | None = None

    def __str__(self) -> str:
        parts = [f"{self.tokens} tokens"] if self.tokens is not None else []
        parts += [f"${self.usd}"] if self.usd is not None else []
        return " and ".join(parts) or "no limit"

    def is_exceeded_by(self, total: Spend) -> bool:
        over_tokens = self.tokens is not None and total.tokens > self.tokens
        return over_tokens or (self.usd is not None and total.usd > self.usd)
