"""Tokens and dollars are set aside before a model is asked, so that calls side by side cannot overspend together."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from zuno.domain.errors import Unavailable
from zuno.domain.spend import Ceiling, Spend
from zuno.domain.units import Seconds
from zuno.ports.clock import Clock
from zuno.ports.model import DayBook

DAY = Seconds(86_400)
NOTHING = Spend()
NO_LIMIT = Ceiling()


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that may be spent, by one run and by everyone on one UTC day."""

    run: Ceiling = NO_LIMIT
    day: Ceiling = NO_LIMIT

    @property
    def dollars(self) -> bool:
        return self.run.usd is not None or self.day.usd is not None


@dataclass(frozen=True, slots=True)
class Reservation:
    """What was set aside for one call.

    It counts as spent until it is settled, so a call that is cancelled or never returns has been paid for.
    """

    spend: Spend
    day: int


@dataclass(slots=True)
class RunBudget:
    """What one run may spend. Closed means closed: an unknown price or an unreadable day book refuses too."""

    limits: Limits
    days: DayBook
    clock: Clock
    spent: Spend = NOTHING
    unpriced: int = 0
    """Calls whose price nobody knows: their tokens are counted, their dollars cannot be."""

    async def reserve(self, tokens: int, usd: Decimal | None) -> Reservation | str:
        """Set the estimate aside, or say in a clause why not."""
        if usd is None and self.limits.dollars:
            return "its price is not known and dollars are limited (ZUNO_MODEL_PRICES can name it)"
        change = Spend(tokens, usd or Decimal(0))
        if self.limits.run.broken_by(self.spent + change):
            return f"the call could pass this run's budget of {self.limits.run}"
        # Counted before the day is asked: another call of this run may come in between.
        self.spent += change
        day = self.clock.now() // DAY
        try:
            refusal = None if await self.days.book(day, change, self.limits.day) else _day_is_over(self.limits.day)
        except Unavailable as error:
            refusal = f"what was spent today is not known: {error}"
        if refusal is not None:
            self.spent -= change
            return refusal
        self.unpriced += usd is None
        return Reservation(change, day)

    async def settle(self, reservation: Reservation, tokens: int, usd: Decimal | None) -> None:
        """Replace the estimate by what the call took; where the dollars are not known, theirs stays."""
        change = Spend(tokens, reservation.spend.usd if usd is None else usd) - reservation.spend
        self.spent += change
        try:
            await self.days.book(reservation.day, change, NO_LIMIT)
        except Unavailable:
            return  # the reservation stays in the book: too much is counted there, never too little


def _day_is_over(ceiling: Ceiling) -> str:
    return f"the call could pass today's budget of {ceiling}"
